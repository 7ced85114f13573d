"""Where the weights of the default pack come from: a fit on conversations, cross-validated by conversation.

    python experiments/fit_default_pack.py locomo-dev5.json

Every question is recalled once, with the default pack's candidates; the slate holds every feature of the pool. A
logistic regression on the terms of ``recall-score`` is fitted on all conversations but one and ranks the pool of the
one left out. Prints recall@10 and nDCG@10 over the conversations left out, the coefficients with their spread over the
folds, what each term is worth (the same fit without it), and the weights for ``policies/default.hy`` fitted on all.

No weight is fitted to a name or a phrase: the terms are scores, shares and yes-or-no features.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

import memlab
from memlab.ingest import conversation, read_locomo

TERMS = {
    "similarity": "min-max",
    "lexical": "min-max",
    "coverage": "plain",
    "session-lexical": "min-max",
    "session-seed": "min-max",
    "received": "min-max",
    "before-coverage": "plain",
    "names-date": "0 for null",
    "names-other": "plain",
    "asks": "plain",
    "answers": "plain",
}


@dataclass
class Pool:
    """One question's candidates: the terms, which of them are evidence, and how much evidence there is in all."""

    conversation: str
    category: int
    terms: np.ndarray
    evidence: np.ndarray
    gold: int


def pools(path: Path) -> list[Pool]:
    """Recall every question of categories 1-4 with evidence and keep its pool."""
    found = []
    for benchmark in read_locomo(path):
        with memlab.open() as lab:
            conversation(lab, benchmark.conversation, project=benchmark.conversation.name)
            ids = dict(lab.memories.select("ref", "id").iter_rows())
            for question in benchmark.questions:
                if question.category == 5 or not question.evidence:
                    continue
                slate = lab.recall(question.text, project=benchmark.conversation.name, log=False).slate
                gold = [ids[ref] for ref in question.evidence]
                columns = [spread(slate.numbers[name], how) for name, how in TERMS.items()]
                found.append(
                    Pool(
                        benchmark.conversation.name,
                        question.category,
                        np.column_stack(columns),
                        np.isin(slate.ids, gold),
                        len(set(gold)),
                    )
                )
    return found


def spread(values: np.ndarray, how: str) -> np.ndarray:
    """The term as the policy computes it."""
    if how == "plain":
        return values
    if how == "0 for null":
        return np.nan_to_num(values)
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.zeros_like(values)


def fit(given: list[Pool], chosen: list[int]) -> np.ndarray:
    """One weight for each chosen term."""
    terms = np.vstack([pool.terms[:, chosen] for pool in given])
    evidence = np.concatenate([pool.evidence for pool in given])
    return LogisticRegression(max_iter=1000).fit(terms, evidence).coef_[0]


def judged(pool: Pool, scores: np.ndarray) -> tuple[float, float]:
    """Fractional recall@10 and nDCG@10 of the pool in the order of these scores."""
    top = pool.evidence[np.argsort(-scores, kind="stable")[:10]]
    gain = (top / np.log2(np.arange(2, len(top) + 2))).sum()
    best = (1 / np.log2(np.arange(2, min(10, pool.gold) + 2))).sum()
    return top.sum() / pool.gold, gain / best


def cross_validated(given: list[Pool], chosen: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Metrics of each question, ranked by the fit that did not see its conversation; and the folds' weights."""
    names = sorted({pool.conversation for pool in given})
    metrics, weights = [], []
    for name in names:
        weights.append(fit([pool for pool in given if pool.conversation != name], chosen))
        metrics += [
            (*judged(pool, pool.terms[:, chosen] @ weights[-1]), pool.category)
            for pool in given
            if pool.conversation == name
        ]
    return np.array(metrics), np.array(weights)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path)
    given = pools(parser.parse_args().path)
    names = list(TERMS)
    everything = list(range(len(names)))
    metrics, weights = cross_validated(given, everything)
    ceiling = np.mean([pool.evidence.sum() / pool.gold for pool in given])
    print(f"{len(given)} questions; the pool holds {ceiling:.3f} of the evidence")
    print(f"cross-validated by conversation: recall@10 {metrics[:, 0].mean():.3f}, nDCG@10 {metrics[:, 1].mean():.3f}")
    for category in (1, 2, 3, 4):
        print(f"  category {category}: recall@10 {metrics[metrics[:, 2] == category, 0].mean():.3f}")
    final = fit(given, everything)
    print(f"{'term':<18}{'weight':>8}{'folds':>16}{'share':>8}   recall@10 and nDCG@10 without it")
    scale = final[[name not in ("names-other", "asks") for name in names]].sum()
    for index, name in enumerate(names):
        without, _ = cross_validated(given, [other for other in everything if other != index])
        low, high = weights[:, index].min(), weights[:, index].max()
        print(
            f"{name:<18}{final[index]:8.2f}   {low:5.2f} .. {high:5.2f}{final[index] / scale:8.3f}"
            f"   {without[:, 0].mean():.3f}  {without[:, 1].mean():.3f}"
        )


if __name__ == "__main__":
    main()

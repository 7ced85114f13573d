"""Fit the weights of the default pack on two kinds of conversations, with cross-validation.

    python experiments/fit_default_pack.py locomo-dev5.json beam100k --corrections dev5-evidence-corrections.json

A pack that reads every term, with the cut of the default pack, recalls every question once; the slate holds the pool.
Two models of the terms of ``recall-score`` are fitted on all conversations but one. A logistic regression predicts
whether a memory is evidence, a listwise softmax whether evidence ranks first in its pool. Each weight vector is divided
by its L1 norm. Their sum is scaled so that positive weights sum to 1. It ranks the pools of the left-out conversation
together with the terms that have manual weights. ``--pools FILE`` keeps the pools.

Printed are recall@10 and nDCG@10 of each fold and set under the published labels, and for LoCoMo under the corrected
ones. Differences to the pack ``--against`` are paired, with intervals by conversation. The loss without each term and
the weights fitted on all data follow.

No weight is fitted to a name or a phrase: the terms are scores, shares and yes-or-no features.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
from results import Results, plot_dots
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

import memlab
from memlab.io.ingest import read_beam, read_locomo
from memlab.kernel.slates import Slate
from memlab.science.evaluation import cluster_interval

Columns = np.ndarray


def term_of(name: str) -> Callable[[Slate], Columns]:
    """Return a term that is the feature itself; missing values are 0."""
    return lambda slate: np.nan_to_num(slate.numbers[name])


def scaled_term(name: str) -> Callable[[Slate], Columns]:
    """Return a term that scales the feature to 0..1 over the pool, as ``min-max`` does."""

    def of(slate: Slate) -> Columns:
        values = slate.numbers[name]
        low, high = values.min(), values.max()
        return (values - low) / (high - low) if high > low else np.zeros_like(values)

    return of


def product_term(first: str, second: str) -> Callable[[Slate], Columns]:
    """Return a term that is the product of two features."""
    return lambda slate: slate.numbers[first] * slate.numbers[second]


def assistant_term(*, to_assistant: bool) -> Callable[[Slate], Columns]:
    """Return a term for memories of the assistant, in queries with this ``asks-you``."""

    def of(slate: Slate) -> Columns:
        is_assistant = np.array(
            [word == "assistant" for word in slate.words["speaker-role"]], dtype=np.float64
        )
        return is_assistant * (slate.numbers["asks-you"] == to_assistant)

    return of


def rule_term(slate: Slate) -> Columns:
    """Return a term for rules and preferences of a user, unless the query asks for a number.

    The term is larger for short texts, and smaller in a pool with many rules.
    """
    is_user = np.array([word == "user" for word in slate.words["speaker-role"]], dtype=np.float64)
    numbers = slate.numbers
    says_rule = is_user * numbers["says-rule"] * (1 - numbers["asks-how-many"])
    return says_rule * 20 / (20 + numbers["words"]) * (1 - numbers["says-rule"].mean())


def people_term(name: str) -> Callable[[Slate], Columns]:
    """Return a term that is the feature for speakers who are neither user nor assistant.

    Names in a text help among people, and hurt in chats with an assistant.
    """

    def of(slate: Slate) -> Columns:
        people = np.array(
            [word == "other" for word in slate.words["speaker-role"]], dtype=np.float64
        )
        return people * slate.numbers[name]

    return of


TERMS: dict[str, Callable[[Slate], Columns]] = {
    "similarity": scaled_term("similarity"),
    "coverage": term_of("coverage"),
    "session-lexical": scaled_term("session-lexical"),
    "session-seed": scaled_term("session-seed"),
    "before-coverage": term_of("before-coverage"),
    "names-date": term_of("names-date"),
    "names-other": term_of("names-other"),
    "asks": term_of("asks"),
    "answers": term_of("answers"),
    "around-similarity": scaled_term("around-similarity"),
    "around-lexical": scaled_term("around-lexical"),
    "late": scaled_term("late"),
    "late itself": term_of("late"),
    "names-things": people_term("names-things"),
    "words": lambda slate: np.log1p(slate.numbers["words"]),
    "first-person": term_of("first-person"),
    "says-when": term_of("says-when"),
    "asks-when says-when": product_term("asks-when", "says-when"),
    "asks-how-many says-number": product_term("asks-how-many", "says-number"),
    "assistant": assistant_term(to_assistant=False),
    "assistant asks-you": assistant_term(to_assistant=True),
    "user says-rule": rule_term,
}
"""The terms of ``recall-score`` as its policy computes them."""


def overtaking_term(*, changed: bool) -> Callable[[Slate], Columns]:
    """Return a term for statements that replace older ones, in queries about the present."""

    def of(slate: Slate) -> Columns:
        barred = [
            slate.numbers[name] for name in ("asks", "says-others", "names-speaker", "names-other")
        ]
        own = (scaled_term("late")(slate) + scaled_term("similarity")(slate)) / 2
        weights = (
            slate.numbers["takes-over"]
            * own**2
            * slate.numbers["asks-now"]
            * (np.max(barred, axis=0) == 0)
        )
        return weights * slate.numbers["says-change"] if changed else weights

    return of


BY_HAND = {
    "takes-over": (0.1, overtaking_term(changed=False)),
    "takes-over, says-change": (0.2, overtaking_term(changed=True)),
}
"""Terms with manual weights, from the development pairs of outdated.py; the questions here do not need them."""

_NUMBERS = ("late", "around-lexical", "around-similarity", "names-things", "words", "takes-over")
_FLAGS = (
    *("says-when", "says-number", "first-person", "says-change", "says-others", "says-rule"),
    *("asks-when", "asks-how-many", "asks-you", "asks-now"),
)
ALL = f"""(pack everything "The default pack's candidates, with every feature in the slate.")
{{cut}}
(defpolicy recall-score [speaker-role {" ".join(_NUMBERS + _FLAGS)}]
  (+ (if (= speaker-role "user") 1 0) {" ".join(_NUMBERS)} {" ".join(f"(if {name} 1 0)" for name in _FLAGS)}))
"""


@dataclass
class Pool:
    """Candidates of one question: terms, evidence under both labels, and results of the other pack."""

    kind: str
    conversation: str
    category: int | str
    terms: np.ndarray
    by_hand: np.ndarray
    evidence: np.ndarray
    gold: int
    corrected: np.ndarray
    corrected_gold: int
    against: tuple[float, ...]


def gather_pools(
    kind: str, labelled: Sequence, corrections: dict, cut: str | None, against: str
) -> list[Pool]:
    """Recall every answerable question with evidence under both packs; return the pools."""
    pools = []
    pack = ALL.format(cut=f"(defpolicy cut {cut})" if cut else "")
    for entry in labelled:
        talk = entry.conversation
        with memlab.open(pack=pack) as lab, memlab.open(pack=against) as other:
            for one_lab in (lab, other):
                one_lab.remember(talk.rows(project=talk.name), chain=True)
            ids = dict(lab.memories.select("ref", "id").iter_rows())
            for position, question in enumerate(entry.questions):
                if not question.answerable or not question.evidence:
                    continue
                at = talk.end + timedelta(days=1)
                slate = lab.recall(question.text, project=talk.name, at=at, log=False).slate
                gold = {ids[ref] for ref in question.evidence if ref in ids}
                better = {
                    ids[ref]
                    for ref in corrections.get((talk.name, position), question.evidence)
                    if ref in ids
                }
                if not gold:
                    continue
                hits = other.recall(question.text, project=talk.name, at=at, limit=10, log=False)
                places = -np.arange(len(hits), dtype=float)
                pools.append(
                    Pool(
                        kind,
                        talk.name,
                        question.category,
                        np.column_stack([term(slate) for term in TERMS.values()]),
                        sum(weight * term(slate) for weight, term in BY_HAND.values()),
                        np.isin(slate.ids, list(gold)),
                        len(gold),
                        np.isin(slate.ids, list(better)),
                        len(better),
                        tuple(
                            value
                            for wanted in (gold, better)
                            for value in measure_ranking(
                                places, np.isin([hit.id for hit in hits], list(wanted)), len(wanted)
                            )
                        ),
                    )
                )
    return pools


# -- fits -----------------------------------------------------------------------------------------------------


def fit_logistic(pools: list[Pool], chosen: list[int]) -> np.ndarray:
    """Fit a logistic regression; return its weights."""
    terms = np.vstack([pool.terms[:, chosen] for pool in pools])
    evidence = np.concatenate([pool.evidence for pool in pools])
    return LogisticRegression(max_iter=1000).fit(terms, evidence).coef_[0]


def fit_listwise(pools: list[Pool], chosen: list[int]) -> np.ndarray:
    """Minimise -sum over questions of [mean over evidence of s - logsumexp(s)] + w'w / 2."""
    answerable = [pool for pool in pools if pool.evidence.any()]
    terms = np.vstack([pool.terms[:, chosen] for pool in answerable])
    starts = np.cumsum([0, *(len(pool.evidence) for pool in answerable)])[:-1]
    sizes = np.array([len(pool.evidence) for pool in answerable])
    share = np.concatenate([pool.evidence / pool.evidence.sum() for pool in answerable])
    wanted = share @ terms

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores = terms @ weights
        scores -= np.repeat(np.maximum.reduceat(scores, starts), sizes)
        chance = np.exp(scores)
        total = np.add.reduceat(chance, starts)
        chance /= np.repeat(total, sizes)
        value = -(share @ scores - np.log(total).sum()) + weights @ weights / 2
        return value, chance @ terms - wanted + weights

    return minimize(loss, np.zeros(len(chosen)), jac=True, method="L-BFGS-B").x


def fit_both(pools: list[Pool], chosen: list[int]) -> np.ndarray:
    """Return the mean of both fits, each with an L1 norm of 1."""
    fits = [fit(pools, chosen) for fit in (fit_logistic, fit_listwise)]
    return sum(weights / np.abs(weights).sum() for weights in fits) / 2


def scale_weights(weights: np.ndarray) -> np.ndarray:
    """Scale weights so that the positive ones sum to 1, as the manual weights assume."""
    return weights / weights[weights > 0].sum()


# -- metrics ---------------------------------------------------------------------------------------------------


def measure_ranking(scores: np.ndarray, evidence: np.ndarray, gold: int) -> tuple[float, float]:
    """Return fractional recall@10 and nDCG@10 of a ranked pool; ties are in order of id."""
    top = evidence[np.argsort(-scores, kind="stable")[:10]]
    gain = (top / np.log2(np.arange(2, len(top) + 2))).sum()
    best = (1 / np.log2(np.arange(2, min(10, gold) + 2))).sum()
    return top.sum() / gold, gain / best


def measure_pool(pool: Pool, scores: np.ndarray) -> tuple[float, ...]:
    """Return recall@10 and nDCG@10 under the published labels, then under the corrected ones."""
    return (
        *measure_ranking(scores, pool.evidence, pool.gold),
        *measure_ranking(scores, pool.corrected, pool.corrected_gold),
    )


def cross_validate(
    pools: list[Pool], chosen: list[int], fit: Callable = fit_both
) -> tuple[np.ndarray, dict]:
    """Return the held-out metrics of each question, and the folds' weights."""
    weights = {
        name: scale_weights(fit([pool for pool in pools if pool.conversation != name], chosen))
        for name in dict.fromkeys(pool.conversation for pool in pools)
    }
    rows = [
        measure_pool(pool, pool.terms[:, chosen] @ weights[pool.conversation] + pool.by_hand)
        for pool in pools
    ]
    return np.array(rows), weights


def format_values(values: np.ndarray) -> str:
    """Return values with four digits."""
    return " ".join(f"{value:.4f}" for value in values)


def format_interval(differences: np.ndarray, conversations: list[str]) -> str:
    """Return a mean with its interval by conversation as text."""
    estimate = cluster_interval(differences, conversations)
    return (
        ""
        if estimate is None
        else f"{estimate.value:+.4f} [{estimate.low:+.4f}, {estimate.high:+.4f}]"
    )


def main() -> None:
    """Run the fit."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("locomo", type=Path)
    parser.add_argument("beam", type=Path)
    parser.add_argument("--corrections", type=Path)
    parser.add_argument(
        "--against", default="memlab", help="a pack, by name or path, to compare with"
    )
    parser.add_argument("--cut", help="a policy of the slot cut, from its parameters on")
    parser.add_argument(
        "--pools", type=Path, help="a file of pools, read if it exists and written otherwise"
    )
    parser.add_argument("--no-ablation", action="store_true")
    arguments = parser.parse_args()
    data = [arguments.locomo, arguments.beam, arguments.corrections]
    results = Results("fit_default_pack", arguments, data=data)
    corrections = {}
    if arguments.corrections:
        for item in json.loads(arguments.corrections.read_text()):
            corrections[item["sample_id"], item["qa"]] = item["correct"]
    if arguments.pools and arguments.pools.exists():
        pools = pickle.loads(arguments.pools.read_bytes())
    else:
        pools = gather_pools(
            "locomo", read_locomo(arguments.locomo), corrections, arguments.cut, arguments.against
        )
        pools += gather_pools(
            "beam", read_beam(arguments.beam), {}, arguments.cut, arguments.against
        )
        if arguments.pools:
            arguments.pools.write_bytes(pickle.dumps(pools))
    rows = print_report(pools, ablation=not arguments.no_ablation)
    results.save(
        rows,
        plot_dots(
            rows,
            label="term",
            value="weight",
            interval=("low", "high"),
            reference=0.0,
            title="Weights of the default pack and their range over folds",
        ),
        height=5.5,
    )


def print_report(pools: list[Pool], *, ablation: bool) -> list[dict[str, object]]:
    """Print the comparison and the weights; return a row for each term."""
    table: list[dict[str, object]] = []
    names = list(TERMS)
    everything = list(range(len(names)))
    kinds = list(dict.fromkeys(pool.kind for pool in pools))
    of = {kind: np.array([pool.kind == kind for pool in pools]) for kind in kinds}
    conversations = np.array([pool.conversation for pool in pools])
    for kind in kinds:
        ceiling = np.mean([pool.evidence.sum() / pool.gold for pool in pools if pool.kind == kind])
        print(f"{kind}: {of[kind].sum()} questions; the pool holds {ceiling:.3f} of the evidence")
    for fit in (fit_logistic, fit_listwise, fit_both):
        metrics_by_question, weights = cross_validate(pools, everything, fit)
        for kind in kinds:
            print(
                f"{fit.__name__:<14}{kind:<8}recall@10 nDCG@10, both labels: "
                f"{format_values(metrics_by_question[of[kind]].mean(axis=0))}"
            )
    against = np.array([pool.against for pool in pools])
    for kind in kinds:
        rows = of[kind]
        print(
            f"the other pack in the engine, {kind}: {format_values(against[rows].mean(axis=0))}; "
            "difference of the held-out fit:"
        )
        for column, what in enumerate(
            ("recall@10", "nDCG@10", "recall@10, corrected", "nDCG@10, corrected")
        ):
            difference = metrics_by_question[rows, column] - against[rows, column]
            print(f"  {what:<22}{format_interval(difference, conversations[rows].tolist())}")
    for name in dict.fromkeys(conversations.tolist()):
        print(
            f"  left out {name:<10}{format_values(metrics_by_question[conversations == name].mean(axis=0))}"
        )
    final = scale_weights(fit_both(pools, everything))
    spreads = np.array(list(weights.values()))
    print(
        f"{'term':<28}{'weight':>8}{'folds':>18}   loss of recall@10 and nDCG@10 without it, by set"
    )
    for index, name in enumerate(names):
        low, high = spreads[:, index].min(), spreads[:, index].max()
        table.append({"term": name, "weight": final[index], "low": low, "high": high})
        line = f"{name:<28}{final[index]:8.3f}   {low:6.3f} .. {high:6.3f}"
        if ablation:
            without, _ = cross_validate(pools, [other for other in everything if other != index])
            for kind in kinds:
                rows = of[kind]
                line += f"   {kind} " + " ".join(
                    f"{(metrics_by_question[rows, column] - without[rows, column]).mean():+.4f}"
                    for column in (0, 1)
                )
        print(line)
    return table


if __name__ == "__main__":
    main()

"""Where the weights of the default pack come from: a fit on two kinds of conversations, each conversation held out.

    python experiments/fit_default_pack.py locomo-dev5.json beam100k --corrections dev5-evidence-corrections.json

Every question is recalled once by a pack that reads every term, with the cut of the default pack; the slate holds the
pool. Two models are fitted on all conversations but one, on the terms of ``recall-score``: a logistic regression (is
this memory evidence?) and a listwise softmax (does evidence stand above the rest of its pool?). Each vector of weights
is divided by the sum of its absolutes, and the two are added, scaled so that positive weights sum to 1. The pool of the
conversation left out is ranked by that and by the terms with weights by hand. ``--pools FILE`` keeps the pools.

Prints, of each fold and set, recall@10 and nDCG@10 under the published labels and, of LoCoMo, the corrected ones;
differences to the pack as it stands, paired, with intervals by conversation; what each term is worth on each set (the
same fit without it); and the weights fitted on all.

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


def plain(name: str) -> Callable[[Slate], Columns]:
    return lambda slate: np.nan_to_num(slate.numbers[name])


def spread(name: str) -> Callable[[Slate], Columns]:
    """From 0 to 1 over the pool, as ``min-max`` has it."""

    def of(slate: Slate) -> Columns:
        values = slate.numbers[name]
        low, high = values.min(), values.max()
        return (values - low) / (high - low) if high > low else np.zeros_like(values)

    return of


def both(one: str, other: str) -> Callable[[Slate], Columns]:
    return lambda slate: slate.numbers[one] * slate.numbers[other]


def by_assistant(*, asked: bool) -> Callable[[Slate], Columns]:
    """Who said it is an assistant, in a question that does or does not speak of whom it asks."""

    def of(slate: Slate) -> Columns:
        said = np.array(
            [word == "assistant" for word in slate.words["speaker-role"]], dtype=np.float64
        )
        return said * (slate.numbers["asks-you"] == asked)

    return of


def of_people(name: str) -> Callable[[Slate], Columns]:
    """Of who is called neither user nor assistant: names in a text help among people, and cost in chats."""

    def of(slate: Slate) -> Columns:
        people = np.array(
            [word == "other" for word in slate.words["speaker-role"]], dtype=np.float64
        )
        return people * slate.numbers[name]

    return of


TERMS: dict[str, Callable[[Slate], Columns]] = {
    "similarity": spread("similarity"),
    "coverage": plain("coverage"),
    "session-lexical": spread("session-lexical"),
    "session-seed": spread("session-seed"),
    "before-coverage": plain("before-coverage"),
    "names-date": plain("names-date"),
    "names-other": plain("names-other"),
    "asks": plain("asks"),
    "answers": plain("answers"),
    "around-similarity": spread("around-similarity"),
    "around-lexical": spread("around-lexical"),
    "late": spread("late"),
    "late itself": plain("late"),
    "names-things": of_people("names-things"),
    "words": lambda slate: np.log1p(slate.numbers["words"]),
    "first-person": plain("first-person"),
    "says-when": plain("says-when"),
    "asks-when says-when": both("asks-when", "says-when"),
    "asks-how-many says-number": both("asks-how-many", "says-number"),
    "assistant": by_assistant(asked=False),
    "assistant asks-you": by_assistant(asked=True),
}
"""The terms of ``recall-score`` as its policy computes them."""


def overtaking(*, changed: bool) -> Callable[[Slate], Columns]:
    """What takes over from an older statement, where the question asks what holds and names nobody."""

    def of(slate: Slate) -> Columns:
        barred = [
            slate.numbers[name] for name in ("asks", "says-others", "names-speaker", "names-other")
        ]
        own = (spread("late")(slate) + spread("similarity")(slate)) / 2
        taken = (
            slate.numbers["takes-over"]
            * own**2
            * slate.numbers["asks-now"]
            * (np.max(barred, axis=0) == 0)
        )
        return taken * slate.numbers["says-change"] if changed else taken

    return of


BY_HAND = {
    "takes over": (0.1, overtaking(changed=False)),
    "takes over, changed": (0.2, overtaking(changed=True)),
}
"""Terms with weights of experiments/outdated.py's development pairs: no question of these sets pays for them."""

_NUMBERS = ("late", "around-lexical", "around-similarity", "names-things", "words", "takes-over")
_FLAGS = (
    *("says-when", "says-number", "first-person", "says-change", "says-others"),
    *("asks-when", "asks-how-many", "asks-you", "asks-now"),
)
ALL = f"""(pack everything "The default pack's candidates, with every feature in the slate.")
{{cut}}
(defpolicy recall-score [speaker-role {" ".join(_NUMBERS + _FLAGS)}]
  (+ (if (= speaker-role "user") 1 0) {" ".join(_NUMBERS)} {" ".join(f"(if {name} 1 0)" for name in _FLAGS)}))
"""


@dataclass
class Pool:
    """One question's candidates: the terms, and which of them are evidence by each of the labels; what another pack
    reaches on it in the engine.
    """

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


def gathered(
    kind: str, labelled: Sequence, corrections: dict, cut: str | None, against: str
) -> list[Pool]:
    """Recall every answerable question with evidence, and keep its pool; ask the pack ``against`` the same."""
    found = []
    pack = ALL.format(cut=f"(defpolicy cut {cut})" if cut else "")
    for one in labelled:
        held = one.conversation
        with memlab.open(pack=pack) as lab, memlab.open(pack=against) as other:
            for one_lab in (lab, other):
                one_lab.remember(held.rows(project=held.name), chain=True)
            ids = dict(lab.memories.select("ref", "id").iter_rows())
            for place, question in enumerate(one.questions):
                if not question.answerable or not question.evidence:
                    continue
                at = held.end + timedelta(days=1)
                slate = lab.recall(question.text, project=held.name, at=at, log=False).slate
                gold = {ids[ref] for ref in question.evidence if ref in ids}
                better = {
                    ids[ref]
                    for ref in corrections.get((held.name, place), question.evidence)
                    if ref in ids
                }
                if not gold:
                    continue
                hits = other.recall(question.text, project=held.name, at=at, limit=10, log=False)
                places = -np.arange(len(hits), dtype=float)
                found.append(
                    Pool(
                        kind,
                        held.name,
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
                            for value in judged(
                                places, np.isin([hit.id for hit in hits], list(wanted)), len(wanted)
                            )
                        ),
                    )
                )
    return found


# -- fits -----------------------------------------------------------------------------------------------------


def logistic(given: list[Pool], chosen: list[int]) -> np.ndarray:
    terms = np.vstack([pool.terms[:, chosen] for pool in given])
    evidence = np.concatenate([pool.evidence for pool in given])
    return LogisticRegression(max_iter=1000).fit(terms, evidence).coef_[0]


def listwise(given: list[Pool], chosen: list[int]) -> np.ndarray:
    """Minimises -sum over questions of [mean over evidence of s - logsumexp(s)] + w'w / 2."""
    asked = [pool for pool in given if pool.evidence.any()]
    terms = np.vstack([pool.terms[:, chosen] for pool in asked])
    starts = np.cumsum([0, *(len(pool.evidence) for pool in asked)])[:-1]
    sizes = np.array([len(pool.evidence) for pool in asked])
    share = np.concatenate([pool.evidence / pool.evidence.sum() for pool in asked])
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


def mean_of_both(given: list[Pool], chosen: list[int]) -> np.ndarray:
    found = [fit(given, chosen) for fit in (logistic, listwise)]
    return sum(weights / np.abs(weights).sum() for weights in found) / 2


def scaled(weights: np.ndarray) -> np.ndarray:
    """The same order, positive weights summing to 1: the scale of the terms by hand."""
    return weights / weights[weights > 0].sum()


# -- what came of it ------------------------------------------------------------------------------------------


def judged(scores: np.ndarray, evidence: np.ndarray, gold: int) -> tuple[float, float]:
    """Fractional recall@10 and nDCG@10 of a pool in the order of these scores, ties by id."""
    top = evidence[np.argsort(-scores, kind="stable")[:10]]
    gain = (top / np.log2(np.arange(2, len(top) + 2))).sum()
    best = (1 / np.log2(np.arange(2, min(10, gold) + 2))).sum()
    return top.sum() / gold, gain / best


def metrics(pool: Pool, scores: np.ndarray) -> tuple[float, ...]:
    """Recall@10 and nDCG@10 under the published labels, then under the corrected ones."""
    return (
        *judged(scores, pool.evidence, pool.gold),
        *judged(scores, pool.corrected, pool.corrected_gold),
    )


def cross_validated(
    given: list[Pool], chosen: list[int], fit: Callable = mean_of_both
) -> tuple[np.ndarray, dict]:
    """Metrics of each question, ranked by the fit that did not see its conversation; and the folds' weights."""
    weights = {
        name: scaled(fit([pool for pool in given if pool.conversation != name], chosen))
        for name in dict.fromkeys(pool.conversation for pool in given)
    }
    found = [
        metrics(pool, pool.terms[:, chosen] @ weights[pool.conversation] + pool.by_hand)
        for pool in given
    ]
    return np.array(found), weights


def shown(values: np.ndarray) -> str:
    return " ".join(f"{value:.4f}" for value in values)


def interval(differences: np.ndarray, conversations: list[str]) -> str:
    found = cluster_interval(differences, conversations)
    return "" if found is None else f"{found.value:+.4f} [{found.low:+.4f}, {found.high:+.4f}]"


def main() -> None:
    parser = Results.build_parser(__doc__)
    parser.add_argument("locomo", type=Path)
    parser.add_argument("beam", type=Path)
    parser.add_argument("--corrections", type=Path)
    parser.add_argument(
        "--against", default="memlab", help="a pack, by name or path, that is asked in the engine"
    )
    parser.add_argument("--cut", help="another policy of the slot cut, from its parameters on")
    parser.add_argument(
        "--pools", type=Path, help="a file of pools: read where it exists, else written"
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
        given = pickle.loads(arguments.pools.read_bytes())
    else:
        given = gathered(
            "locomo", read_locomo(arguments.locomo), corrections, arguments.cut, arguments.against
        )
        given += gathered("beam", read_beam(arguments.beam), {}, arguments.cut, arguments.against)
        if arguments.pools:
            arguments.pools.write_bytes(pickle.dumps(given))
    rows = report(given, ablation=not arguments.no_ablation)
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


def report(given: list[Pool], *, ablation: bool) -> list[dict[str, object]]:
    """Print the comparison and the weights; return a row for each term."""
    table: list[dict[str, object]] = []
    names = list(TERMS)
    everything = list(range(len(names)))
    kinds = list(dict.fromkeys(pool.kind for pool in given))
    of = {kind: np.array([pool.kind == kind for pool in given]) for kind in kinds}
    conversations = np.array([pool.conversation for pool in given])
    for kind in kinds:
        ceiling = np.mean([pool.evidence.sum() / pool.gold for pool in given if pool.kind == kind])
        print(f"{kind}: {of[kind].sum()} questions; the pool holds {ceiling:.3f} of the evidence")
    for fit in (logistic, listwise, mean_of_both):
        found, weights = cross_validated(given, everything, fit)
        for kind in kinds:
            print(
                f"{fit.__name__:<14}{kind:<8}recall@10 nDCG@10, both labels: {shown(found[of[kind]].mean(axis=0))}"
            )
    against = np.array([pool.against for pool in given])
    for kind in kinds:
        rows = of[kind]
        print(
            f"the other pack in the engine, {kind}: {shown(against[rows].mean(axis=0))}; held out less that:"
        )
        for place, what in enumerate(
            ("recall@10", "nDCG@10", "recall@10, corrected", "nDCG@10, corrected")
        ):
            print(
                f"  {what:<22}{interval(found[rows, place] - against[rows, place], conversations[rows].tolist())}"
            )
    for name in dict.fromkeys(conversations.tolist()):
        print(f"  left out {name:<10}{shown(found[conversations == name].mean(axis=0))}")
    final = scaled(mean_of_both(given, everything))
    spreads = np.array(list(weights.values()))
    print(f"{'term':<28}{'weight':>8}{'folds':>18}   recall@10 and nDCG@10 that go with it, by set")
    for index, name in enumerate(names):
        low, high = spreads[:, index].min(), spreads[:, index].max()
        table.append({"term": name, "weight": final[index], "low": low, "high": high})
        line = f"{name:<28}{final[index]:8.3f}   {low:6.3f} .. {high:6.3f}"
        if ablation:
            without, _ = cross_validated(given, [other for other in everything if other != index])
            for kind in kinds:
                rows = of[kind]
                line += f"   {kind} " + " ".join(
                    f"{(found[rows, place] - without[rows, place]).mean():+.4f}" for place in (0, 1)
                )
        print(line)
    return table


if __name__ == "__main__":
    main()

"""Measure how well scores separate answerable queries from unanswerable ones.

    python experiments/absence.py locomo-dev5.json [--beam beam100k] [--pack memlab] [--fit] [--json]

Unanswerable are LoCoMo's questions of category 5 and BEAM's questions of abstention. The AUC of a score is the
probability that an answerable question has the higher value. The raw scores come from the candidate pool of a recall:
the best score, its margins, and the best and mean similarity, lexical score and coverage. "less" marks a score that is
lower for answerable questions.

The best raw score is chosen on the questions that it is judged on, so its AUC is optimistic. Intervals are bootstraps
by conversation with 2,000 draws, paired where two scores are compared.

With ``--fit`` the row ``hits.known`` is a logistic regression on the terms of the default pack's slot ``known``. Each
conversation is judged by a fit on all others, with added questions of the wrong conversation. The weights of
recall-score are those of the pack, which saw the conversation. Weights fitted without it gave the same AUC on LoCoMo
within .001.

``--fit`` also prints the coefficients on all data, the calibration by tenths of the held-out probability, and the cost
of a floor. The cost is the share of the evidence in the top ten that is no longer shown below that probability.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from results import Results, plot_dots
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression

import memlab
from memlab.io.ingest import LabelledConversation, Question, conversation, read_beam, read_locomo
from memlab.kernel.base.progress import bar
from memlab.kernel.recall import Hits

Floats = NDArray[np.float64]
DRAWS = 2_000
TEN = 10
KNOWN = "hits.known"
STRANGE = 0.3
"""The weight of a question of another conversation; chosen, since their real share is unknown."""

PENALTY = -0.149
"""The default pack's penalty for a memory of a speaker whom the query does not name."""
FEATURES = ("similarity", "lexical", "coverage", "session-lexical", "received")


@dataclass(frozen=True)
class Asked:
    """Scores of one recall, whether its question is answerable, and its conversation."""

    scores: Mapping[str, float]
    answerable: bool
    cluster: str
    compute_terms: tuple[float, ...] = ()
    recalls: tuple[float, float] = (0.0, 0.0)
    """Recall of the top ten, and of the short list for unknown answers."""
    weight: float = 1.0


def compute_scores(hits: Hits) -> dict[str, float]:
    """Return the scores by name; NaN for a score of an empty pool."""
    slate = hits.slate
    final = np.sort(np.asarray(slate.scores, dtype=np.float64))[::-1]
    scores = {
        "top score": _value_at(final, 0),
        "margin to the second": _value_at(final, 0) - _value_at(final, 1),
        "margin to the tenth": _value_at(final, 0) - _value_at(final, TEN - 1),
        "mean of ten": float(final[:TEN].mean()) if len(final) else np.nan,
    }
    first = np.argsort(-np.asarray(slate.scores, dtype=np.float64), kind="stable")[:TEN]
    for name in FEATURES:
        if name not in slate.numbers:
            continue
        values = np.nan_to_num(np.asarray(slate.numbers[name], dtype=np.float64))
        ordered = np.sort(values)[::-1]
        scores[f"best {name}"] = _value_at(ordered, 0)
        scores[f"mean {name} of ten"] = float(values[first].mean()) if len(first) else np.nan
        scores[f"{name} of the first"] = float(values[first[0]]) if len(first) else np.nan
        scores[f"margin of {name}"] = _value_at(ordered, 0) - _value_at(ordered, TEN - 1)
    probability = getattr(hits, "known", None)
    if probability is not None:
        scores[KNOWN] = float(probability)
    return scores


TERMS = (
    "someone is named",
    *(f"{name}, named" for name in ("lead", "others speak", "mean score", "best late")),
    *(f"{name}, nobody named" for name in ("mean score", "best late")),
)


def compute_terms(hits: Hits) -> tuple[float, ...]:
    """Return the inputs of the default pack's slot ``known`` in the order of ``TERMS``.

    The lead is the best score of the named person minus the best score of all others, without the penalty for names.
    """
    slate = hits.slate
    other, is_named = (
        slate.numbers["names-other"] > 0,
        bool((slate.numbers["names-speaker"] > 0).any()),
    )
    free = slate.scores - PENALTY * other
    both = bool(other.any() and not other.all())
    lead = float(free[~other].max() - free[other].max()) if both else 0.0
    worth = (float(slate.scores.mean()), float(slate.numbers["late"].max()))
    nothing = (0.0, 0.0)
    return (
        float(is_named),
        lead,
        float(both),
        *(worth if is_named else nothing),
        *(nothing if is_named else worth),
    )


def recall_foreign_questions(
    chats: Sequence[LabelledConversation], pack: str, *, progress: bool
) -> list[Asked]:
    """Recall questions of the next conversation, which this conversation does not answer.

    Each is asked of the whole conversation and of a few of its turns. Of these turns, questions whose evidence they hold
    are asked, too; without them a fit would learn that a long conversation answers.
    """
    queries = []
    with bar(progress, len(chats), unit="chat") as step:
        for number, chat in enumerate(chats):
            talk, rng = chat.conversation, np.random.default_rng(number)
            own, strange = (
                _draw_questions(member, rng) for member in (chat, chats[(number + 1) % len(chats)])
            )
            rows = list(talk.rows(project=talk.name))
            refs = {row["ref"]: row for row in rows}
            at = talk.end + timedelta(days=1)
            with memlab.open(pack=pack) as lab:
                lab.remember(rows, chain=True)
                for position, (mine, theirs) in enumerate(zip(own, strange, strict=False)):
                    few = f"{talk.name}, {position}"
                    rows_by_ref = {ref: refs[ref] for ref in mine.evidence if ref in refs}
                    rows_by_ref |= {
                        rows[at]["ref"]: rows[at]
                        for at in rng.permutation(len(rows))[: rng.integers(5, 40)]
                    }
                    turns = sorted(rows_by_ref.values(), key=lambda row: row["at"])
                    lab.remember([row | {"project": few} for row in turns], chain=True)
                    for question, project, answerable in (
                        (theirs, talk.name, False),
                        (mine, few, True),
                        (theirs, few, False),
                    ):
                        hits = lab.recall(
                            question.text, limit=TEN, project=project, at=at, log=False
                        )
                        queries.append(
                            Asked({}, answerable, talk.name, compute_terms(hits), weight=STRANGE)
                        )
            step(1)
    return queries


def _draw_questions(chat: LabelledConversation, rng: np.random.Generator) -> list[Question]:
    """Return at most 30 random answerable questions, at most half of the conversation."""
    answerable = [
        question for question in chat.questions if question.answerable and question.evidence
    ]
    return [
        answerable[at] for at in rng.permutation(len(answerable))[: min(30, len(answerable) // 2)]
    ]


def _fit(queries: Sequence[Asked]) -> LogisticRegression:
    """Fit the probability that a query is answerable."""
    return LogisticRegression(C=100.0, max_iter=5000).fit(
        [query.terms for query in queries],
        [query.answerable for query in queries],
        sample_weight=[query.weight for query in queries],
    )


def predict_held_out(
    queries: Sequence[Asked], strange: Sequence[Asked]
) -> tuple[list[Asked], LogisticRegression]:
    """Return the queries with held-out probabilities, and the fit on all data."""
    every = [*queries, *strange]
    probabilities: dict[int, float] = {}
    for name in dict.fromkeys(query.cluster for query in queries):
        fit = _fit([query for query in every if query.cluster != name])
        inside = [position for position, query in enumerate(queries) if query.cluster == name]
        chances = fit.predict_proba([queries[position].terms for position in inside])[:, 1]
        probabilities |= dict(zip(inside, chances.tolist(), strict=True))
    return [
        replace(query, scores={**query.scores, KNOWN: probabilities[position]})
        for position, query in enumerate(queries)
    ], _fit(every)


def print_fit(queries: Sequence[Asked], fit: LogisticRegression) -> None:
    """Print the coefficients, the calibration and the cost of floors."""
    coefficients = zip(("constant", *TERMS), (fit.intercept_[0], *fit.coef_[0]), strict=True)
    print(
        "hits.known held out; on all: "
        + ", ".join(f"{name} {value:+.2f}" for name, value in coefficients)
    )
    probabilities = np.array([query.scores[KNOWN] for query in queries])
    answerable = np.array([query.answerable for query in queries])
    for low in np.arange(10) / 10:
        inside = (probabilities >= low) & (probabilities < low + 0.1 + 1e-12 * (low == 0.9))
        if inside.any():
            there = f"{answerable[inside].mean():.2f} had an answer"
            print(
                f"  {low:.1f}-{low + 0.1:.1f}: {inside.sum():4} questions, mean {probabilities[inside].mean():.2f}, {there}"
            )
    ten, few = np.array([query.recalls for query in queries])[answerable].T
    for floor in (0.1, 0.2, 0.3, 0.4):
        below = probabilities < floor
        cost = np.where(below[answerable], ten - few, 0.0).mean()
        print(
            f"  floor {floor}: recall@10 -{cost:.4f}; fewer shown of {below[~answerable].mean():.3f} without an answer"
        )


def _value_at(ordered: Floats, position: int) -> float:
    """Return the value at a position, or at the last one if there are fewer."""
    return float(ordered[min(position, len(ordered) - 1)]) if len(ordered) else np.nan


def recall_all(
    chats: Sequence[LabelledConversation], pack: str, *, fit: bool, progress: bool
) -> list[Asked]:
    """Recall every question; leave out answerable questions without evidence."""
    queries = []
    with bar(progress, sum(len(chat.questions) for chat in chats), unit="recall") as step:
        for chat in chats:
            talk = chat.conversation
            with memlab.open(pack=pack) as lab:
                conversation(lab, talk)
                ids = dict(lab.memories.select("ref", "id").iter_rows())
                at = talk.end + timedelta(days=1)
                for question in chat.questions:
                    step(1)
                    if question.answerable and not question.evidence:
                        continue
                    hits = lab.recall(question.text, limit=TEN, project=talk.name, at=at, log=False)
                    query = Asked(compute_scores(hits), question.answerable, talk.name)
                    if fit:
                        wanted = {ids[ref] for ref in question.evidence if ref in ids}
                        query = replace(
                            query, terms=compute_terms(hits), recalls=_measure_recalls(hits, wanted)
                        )
                    queries.append(query)
    return queries


def _measure_recalls(hits: Hits, wanted: set[int]) -> tuple[float, float]:
    """Return the recall of the top ten and of the short list for unknown answers."""
    slate = hits.slate
    first = slate.ids[np.argsort(-slate.scores, kind="stable")][:TEN].tolist()
    few = int(hits.pack.number("unknown-limit"))
    return tuple(
        len(wanted.intersection(first[:count])) / max(len(wanted), 1) for count in (TEN, few)
    )


def compute_auc(values: Floats, answerable: NDArray[np.bool_]) -> float:
    """Return the probability that an answerable query has the higher value; ties count half."""
    yes, no = int(answerable.sum()), int((~answerable).sum())
    if not yes or not no:
        return float("nan")
    ranks = rankdata(values)
    return float((ranks[answerable].sum() - yes * (yes + 1) / 2) / (yes * no))


def compare_aucs(queries: Sequence[Asked]) -> dict[str, Any]:
    """Return the AUC of each score, best first, and the gain of ``hits.known`` over the best."""
    names = list(queries[0].scores)
    table = np.nan_to_num(
        np.array([[query.scores.get(name, np.nan) for name in names] for query in queries]),
        nan=-1e9,
    )
    answerable = np.array([query.answerable for query in queries])
    clusters = np.array([query.cluster for query in queries])
    whole = np.array([compute_auc(column, answerable) for column in table.T])
    # a score that is lower for answerable queries is as informative as one that is higher
    signs = np.where(whole < 0.5, -1.0, 1.0)
    signs[[at for at, name in enumerate(names) if name == KNOWN]] = 1.0
    table, whole = table * signs, np.where(signs < 0, 1 - whole, whole)
    rng = np.random.default_rng(0)
    rows = {name: np.flatnonzero(clusters == name) for name in dict.fromkeys(clusters)}
    draws = []
    for _ in range(DRAWS):
        at = np.concatenate([rows[name] for name in rng.choice(list(rows), len(rows))])
        draws.append([compute_auc(column, answerable[at]) for column in table[at].T])
    drawn = np.array(draws)
    low, high = np.nanpercentile(drawn, [2.5, 97.5], axis=0)
    order = np.argsort(-whole)
    report: dict[str, Any] = {
        "questions": len(queries),
        "unanswerable": int((~answerable).sum()),
        "conversations": len(rows),
        "scores": [
            {
                "score": ("" if signs[at] > 0 else "less ") + names[at],
                "auc": float(whole[at]),
                "low": float(low[at]),
                "high": float(high[at]),
            }
            for at in order
        ],
    }
    if KNOWN in names:
        known_index = names.index(KNOWN)
        best = next(at for at in order if at != known_index)
        gain = drawn[:, known_index] - drawn[:, best]
        report["gain"] = {
            "over": names[best],
            "value": float(whole[known_index] - whole[best]),
            "low": float(np.nanpercentile(gain, 2.5)),
            "high": float(np.nanpercentile(gain, 97.5)),
        }
    return report


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("path", type=Path, help="conversations in LoCoMo's format")
    parser.add_argument("--beam", type=Path, help="a folder of BEAM's chats")
    parser.add_argument("--pack", default="memlab", help="a name or a .hy file")
    parser.add_argument(
        "--fit", action="store_true", help="judge a fit of hits.known, each conversation held out"
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = Results("absence", arguments, data=[arguments.path, arguments.beam])
    progress = sys.stderr.isatty()
    sets = {"LoCoMo": read_locomo(arguments.path)} | (
        {"BEAM": read_beam(arguments.beam)} if arguments.beam else {}
    )
    queries = {
        name: recall_all(chats, arguments.pack, fit=arguments.fit, progress=progress)
        for name, chats in sets.items()
    }
    if arguments.fit:
        strange = [
            report
            for chats in sets.values()
            for report in recall_foreign_questions(chats, arguments.pack, progress=progress)
        ]
        every, fit = predict_held_out(
            [report for some in queries.values() for report in some], strange
        )
        print_fit(every, fit)
        clusters = {name: {report.cluster for report in some} for name, some in queries.items()}
        queries = {
            name: [report for report in every if report.cluster in inside]
            for name, inside in clusters.items()
        }
    reports = {name: compare_aucs(some) for name, some in queries.items()}
    rows = [
        {"data": name, **score} for name, report in reports.items() for score in report["scores"]
    ]
    best = [row for name in reports for row in [row for row in rows if row["data"] == name][:12]]
    results.save(
        rows,
        plot_dots(
            best,
            label="score",
            value="auc",
            group="data",
            interval=("low", "high"),
            reference=0.5,
            title="The twelve scores that best separate answerable questions",
        ),
        height=5.0,
    )
    if arguments.json:
        print(json.dumps({"pack": arguments.pack, **reports}, indent=1))
        return
    for name, report in reports.items():
        print(
            f"{name}, {arguments.pack}: {report['questions']} questions, {report['unanswerable']} without an answer, "
            f"{report['conversations']} conversations; AUC [95%, bootstrap by conversation]"
        )
        for row in report["scores"]:
            print(f"  {row['score']:<34}{row['auc']:.3f}  [{row['low']:.3f}, {row['high']:.3f}]")
        if gain := report.get("gain"):
            interval = f"[{gain['low']:+.3f}, {gain['high']:+.3f}], paired"
            print(f"  {KNOWN} over {gain['over']}: {gain['value']:+.3f} {interval}")


if __name__ == "__main__":
    main()

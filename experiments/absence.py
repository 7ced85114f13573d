"""Measure how well scores separate answerable queries from unanswerable ones.

    python experiments/absence.py locomo-dev5.json [--beam beam100k] [--pack memlab] [--json]

Unanswerable are LoCoMo's questions of category 5 and BEAM's questions of abstention. The AUC of a score is the
probability that an answerable question has the higher value. The raw scores come from the candidate pool of a recall:
the best score, its margins, and the best and mean similarity, lexical score and coverage. "less" marks a score that is
lower for answerable questions.

The best raw score is chosen on the questions that it is judged on, so its AUC is optimistic. Intervals are bootstraps
by conversation with 2,000 draws, paired where two scores are compared.

``known.py`` fits and judges ``hits.known``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from results import Results, plot_dots
from scipy.stats import rankdata

import memlab
from memlab.io.ingest import LabelledConversation, conversation, read_beam, read_locomo
from memlab.kernel.base.progress import bar
from memlab.kernel.recall import Hits

Floats = NDArray[np.float64]
DRAWS = 2_000
TEN = 10
KNOWN = "hits.known"
FEATURES = ("similarity", "lexical", "coverage", "session-lexical", "received")


@dataclass(frozen=True)
class Asked:
    """Scores of one recall, whether its question is answerable, and its conversation."""

    scores: Mapping[str, float]
    answerable: bool
    cluster: str


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


def _value_at(ordered: Floats, position: int) -> float:
    """Return the value at a position, or at the last one if there are fewer."""
    return float(ordered[min(position, len(ordered) - 1)]) if len(ordered) else np.nan


def recall_all(chats: Sequence[LabelledConversation], pack: str, *, progress: bool) -> list[Asked]:
    """Recall every question; leave out answerable questions without evidence."""
    queries = []
    with bar(progress, sum(len(chat.questions) for chat in chats), unit="recall") as step:
        for chat in chats:
            talk = chat.conversation
            with memlab.open(pack=pack) as lab:
                conversation(lab, talk)
                at = talk.end + timedelta(days=1)
                for question in chat.questions:
                    step(1)
                    if question.answerable and not question.evidence:
                        continue
                    hits = lab.recall(question.text, limit=TEN, project=talk.name, at=at, log=False)
                    queries.append(Asked(compute_scores(hits), question.answerable, talk.name))
    return queries


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
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = Results("absence", arguments, data=[arguments.path, arguments.beam])
    progress = sys.stderr.isatty()
    sets = {"LoCoMo": read_locomo(arguments.path)} | (
        {"BEAM": read_beam(arguments.beam)} if arguments.beam else {}
    )
    queries = {
        name: recall_all(chats, arguments.pack, progress=progress) for name, chats in sets.items()
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

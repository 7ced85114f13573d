"""Can the score say that nothing is known? The AUC of raw scores, and of ``hits.known`` where a pack gives it.

    python experiments/absence.py locomo-dev5.json [--beam beam100k] [--pack memlab] [--json]

LoCoMo's questions of category 5 ask what the conversation does not say; BEAM's questions of abstention do, too. For
each raw score of a recall's pool (the first by ``recall-score``, its margins, the best and the mean of similarity, of
lexical scores and of coverage), the AUC is the probability that a question with an answer has the higher value than one
without; "less" is written before a score that falls where there is an answer. The best raw score is chosen on the same
questions, which is kind to it; what is fitted must be judged on conversations that it did not see. Intervals are a
bootstrap by conversation (2,000 draws), paired where two scores are compared.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

import memlab
from memlab.ingest import LabelledConversation, conversation, read_beam, read_locomo
from memlab.progress import bar
from memlab.recall import Hits

Floats = NDArray[np.float64]
DRAWS = 2_000
TEN = 10
KNOWN = "hits.known"
FEATURES = ("similarity", "lexical", "coverage", "session-lexical", "received")


@dataclass(frozen=True)
class Asked:
    """What a question's recall scored, whether it has an answer, and its conversation."""

    scores: Mapping[str, float]
    answerable: bool
    cluster: str


def raw_scores(hits: Hits) -> dict[str, float]:
    """The scores by name; NaN where there is nothing to compute one from."""
    slate = hits.slate
    final = np.sort(np.asarray(slate.scores, dtype=np.float64))[::-1]
    found = {
        "top score": _at(final, 0),
        "margin to the second": _at(final, 0) - _at(final, 1),
        "margin to the tenth": _at(final, 0) - _at(final, TEN - 1),
        "mean of ten": float(final[:TEN].mean()) if len(final) else np.nan,
    }
    first = np.argsort(-np.asarray(slate.scores, dtype=np.float64), kind="stable")[:TEN]
    for name in FEATURES:
        if name not in slate.numbers:
            continue
        values = np.nan_to_num(np.asarray(slate.numbers[name], dtype=np.float64))
        ordered = np.sort(values)[::-1]
        found[f"best {name}"] = _at(ordered, 0)
        found[f"mean {name} of ten"] = float(values[first].mean()) if len(first) else np.nan
        found[f"{name} of the first"] = float(values[first[0]]) if len(first) else np.nan
        found[f"margin of {name}"] = _at(ordered, 0) - _at(ordered, TEN - 1)
    known = getattr(hits, "known", None)
    if known is not None:
        found[KNOWN] = float(known)
    return found


def _at(ordered: Floats, place: int) -> float:
    return float(ordered[min(place, len(ordered) - 1)]) if len(ordered) else np.nan


def ask(chats: Sequence[LabelledConversation], pack: str, *, progress: bool) -> list[Asked]:
    """Every question, those without evidence that have an answer left out."""
    found = []
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
                    found.append(Asked(raw_scores(hits), question.answerable, talk.name))
    return found


def auc(values: Floats, answerable: NDArray[np.bool_]) -> float:
    """The probability that a question with an answer has the higher value, ties counted half."""
    yes, no = int(answerable.sum()), int((~answerable).sum())
    if not yes or not no:
        return float("nan")
    ranks = rankdata(values)
    return float((ranks[answerable].sum() - yes * (yes + 1) / 2) / (yes * no))


def aucs(asked: Sequence[Asked]) -> dict[str, Any]:
    """Each score's AUC with its interval, best first; and the difference of ``hits.known`` from the best raw score."""
    names = list(asked[0].scores)
    table = np.nan_to_num(np.array([[one.scores.get(name, np.nan) for name in names] for one in asked]), nan=-1e9)
    answerable = np.array([one.answerable for one in asked])
    clusters = np.array([one.cluster for one in asked])
    whole = np.array([auc(column, answerable) for column in table.T])
    # a score that falls where there is an answer says as much as one that rises
    signs = np.where(whole < 0.5, -1.0, 1.0)
    signs[[at for at, name in enumerate(names) if name == KNOWN]] = 1.0
    table, whole = table * signs, np.where(signs < 0, 1 - whole, whole)
    rng = np.random.default_rng(0)
    rows = {name: np.flatnonzero(clusters == name) for name in dict.fromkeys(clusters)}
    draws = []
    for _ in range(DRAWS):
        at = np.concatenate([rows[name] for name in rng.choice(list(rows), len(rows))])
        draws.append([auc(column, answerable[at]) for column in table[at].T])
    drawn = np.array(draws)
    low, high = np.nanpercentile(drawn, [2.5, 97.5], axis=0)
    order = np.argsort(-whole)
    report: dict[str, Any] = {
        "questions": len(asked),
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
        known = names.index(KNOWN)
        best = next(at for at in order if at != known)
        gain = drawn[:, known] - drawn[:, best]
        report["gain"] = {
            "over": names[best],
            "value": float(whole[known] - whole[best]),
            "low": float(np.nanpercentile(gain, 2.5)),
            "high": float(np.nanpercentile(gain, 97.5)),
        }
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, help="conversations in LoCoMo's format")
    parser.add_argument("--beam", type=Path, help="a folder of BEAM's chats")
    parser.add_argument("--pack", default="memlab", help="a name or a .hy file")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    progress = sys.stderr.isatty()
    sets = {"LoCoMo": read_locomo(chosen.path)} | ({"BEAM": read_beam(chosen.beam)} if chosen.beam else {})
    found = {name: aucs(ask(chats, chosen.pack, progress=progress)) for name, chats in sets.items()}
    if chosen.json:
        print(json.dumps({"pack": chosen.pack, **found}, indent=1))
        return
    for name, one in found.items():
        print(
            f"{name}, {chosen.pack}: {one['questions']} questions, {one['unanswerable']} without an answer, "
            f"{one['conversations']} conversations; AUC [95%, bootstrap by conversation]"
        )
        for row in one["scores"]:
            print(f"  {row['score']:<34}{row['auc']:.3f}  [{row['low']:.3f}, {row['high']:.3f}]")
        if gain := one.get("gain"):
            interval = f"[{gain['low']:+.3f}, {gain['high']:+.3f}], paired"
            print(f"  {KNOWN} over {gain['over']}: {gain['value']:+.3f} {interval}")


if __name__ == "__main__":
    main()

"""Can the score say that nothing is known? The AUC of raw scores, and of ``hits.known`` where a pack gives it.

    python experiments/absence.py locomo-dev5.json [--beam beam100k] [--pack memlab] [--fit] [--json]

LoCoMo's questions of category 5 ask what the conversation does not say; BEAM's questions of abstention do, too. For
each raw score of a recall's pool (the first by ``recall-score``, its margins, the best and the mean of similarity, of
lexical scores and of coverage), the AUC is the probability that a question with an answer has the higher value than one
without; "less" is written before a score that falls where there is an answer. The best raw score is chosen on the same
questions, which is kind to it; what is fitted must be judged on conversations that it did not see. Intervals are a
bootstrap by conversation (2,000 draws), paired where two scores are compared.

With ``--fit`` the row ``hits.known`` is a logistic regression on the terms of the default pack's slot ``known``, fitted
on all conversations of both sets but the one that is judged, and on questions asked of the wrong conversation.
The weights of recall-score are those of the pack, which saw the conversation; with weights fitted without it, too, the
AUC on LoCoMo was the same to .001. Coefficients on all of them are printed, how often an answer was there by tenths of
the probability held out, and what a floor costs: the share of the evidence among the ten first that is no longer shown
where the probability is below it.
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
"""The weight of a strange question in a fit: there is no telling how often they are asked."""

PENALTY = -0.149
"""What the default pack's recall-score adds where the question names someone else."""
FEATURES = ("similarity", "lexical", "coverage", "session-lexical", "received")


@dataclass(frozen=True)
class Asked:
    """What a question's recall scored, whether it has an answer, and its conversation."""

    scores: Mapping[str, float]
    answerable: bool
    cluster: str
    terms: tuple[float, ...] = ()
    found: tuple[float, float] = (0.0, 0.0)
    """Recall of the ten first, and of the few that are shown where nothing is known."""
    weight: float = 1.0


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


TERMS = (
    "someone is named",
    *(f"{name}, named" for name in ("lead", "others speak", "mean score", "best late")),
    *(f"{name}, nobody named" for name in ("mean score", "best late")),
)


def terms(hits: Hits) -> tuple[float, ...]:
    """What the default pack's slot ``known`` reads of a pool, by ``TERMS``. The lead is that of whom the question names
    over the others, with scores as if nobody were named.
    """
    slate = hits.slate
    other, named = (
        slate.numbers["names-other"] > 0,
        bool((slate.numbers["names-speaker"] > 0).any()),
    )
    free = slate.scores - PENALTY * other
    both = bool(other.any() and not other.all())
    lead = float(free[~other].max() - free[other].max()) if both else 0.0
    worth = (float(slate.scores.mean()), float(slate.numbers["late"].max()))
    nothing = (0.0, 0.0)
    return (
        float(named),
        lead,
        float(both),
        *(worth if named else nothing),
        *(nothing if named else worth),
    )


def ask_strangely(
    chats: Sequence[LabelledConversation], pack: str, *, progress: bool
) -> list[Asked]:
    """Questions of the next conversation, which this one does not answer: of all of it, and of a few of its turns, of
    which questions of its own with their evidence are asked, too. Without them a fit takes whatever is long for known.
    """
    found = []
    with bar(progress, len(chats), unit="chat") as step:
        for number, chat in enumerate(chats):
            talk, rng = chat.conversation, np.random.default_rng(number)
            own, strange = (_some(one, rng) for one in (chat, chats[(number + 1) % len(chats)]))
            rows = list(talk.rows(project=talk.name))
            refs = {row["ref"]: row for row in rows}
            at = talk.end + timedelta(days=1)
            with memlab.open(pack=pack) as lab:
                lab.remember(rows, chain=True)
                for place, (mine, theirs) in enumerate(zip(own, strange, strict=False)):
                    few = f"{talk.name}, {place}"
                    held = {ref: refs[ref] for ref in mine.evidence if ref in refs}
                    held |= {
                        rows[at]["ref"]: rows[at]
                        for at in rng.permutation(len(rows))[: rng.integers(5, 40)]
                    }
                    turns = sorted(held.values(), key=lambda row: row["at"])
                    lab.remember([row | {"project": few} for row in turns], chain=True)
                    for question, project, answerable in (
                        (theirs, talk.name, False),
                        (mine, few, True),
                        (theirs, few, False),
                    ):
                        hits = lab.recall(
                            question.text, limit=TEN, project=project, at=at, log=False
                        )
                        found.append(Asked({}, answerable, talk.name, terms(hits), weight=STRANGE))
            step(1)
    return found


def _some(chat: LabelledConversation, rng: np.random.Generator) -> list[Question]:
    asked = [question for question in chat.questions if question.answerable and question.evidence]
    return [asked[at] for at in rng.permutation(len(asked))[: min(30, len(asked) // 2)]]


def _fit(asked: Sequence[Asked]) -> LogisticRegression:
    return LogisticRegression(C=100.0, max_iter=5000).fit(
        [one.terms for one in asked],
        [one.answerable for one in asked],
        sample_weight=[one.weight for one in asked],
    )


def held_out(
    asked: Sequence[Asked], strange: Sequence[Asked]
) -> tuple[list[Asked], LogisticRegression]:
    """The same with ``hits.known`` of a fit that did not see the conversation; and the fit on all."""
    every = [*asked, *strange]
    known: dict[int, float] = {}
    for name in dict.fromkeys(one.cluster for one in asked):
        fit = _fit([one for one in every if one.cluster != name])
        inside = [place for place, one in enumerate(asked) if one.cluster == name]
        chances = fit.predict_proba([asked[place].terms for place in inside])[:, 1]
        known |= dict(zip(inside, chances.tolist(), strict=True))
    return [
        replace(one, scores={**one.scores, KNOWN: known[place]}) for place, one in enumerate(asked)
    ], _fit(every)


def tell_fit(asked: Sequence[Asked], fit: LogisticRegression) -> None:
    """Coefficients, calibration, and what floors cost."""
    told = zip(("constant", *TERMS), (fit.intercept_[0], *fit.coef_[0]), strict=True)
    print(
        "hits.known held out; on all: " + ", ".join(f"{name} {value:+.2f}" for name, value in told)
    )
    known = np.array([one.scores[KNOWN] for one in asked])
    answerable = np.array([one.answerable for one in asked])
    for low in np.arange(10) / 10:
        inside = (known >= low) & (known < low + 0.1 + 1e-12 * (low == 0.9))
        if inside.any():
            there = f"{answerable[inside].mean():.2f} had an answer"
            print(
                f"  {low:.1f}-{low + 0.1:.1f}: {inside.sum():4} questions, mean {known[inside].mean():.2f}, {there}"
            )
    ten, few = np.array([one.found for one in asked])[answerable].T
    for floor in (0.1, 0.2, 0.3, 0.4):
        below = known < floor
        cost = np.where(below[answerable], ten - few, 0.0).mean()
        print(
            f"  floor {floor}: recall@10 -{cost:.4f}; fewer shown of {below[~answerable].mean():.3f} without an answer"
        )


def _at(ordered: Floats, place: int) -> float:
    return float(ordered[min(place, len(ordered) - 1)]) if len(ordered) else np.nan


def ask(
    chats: Sequence[LabelledConversation], pack: str, *, fit: bool, progress: bool
) -> list[Asked]:
    """Every question, those without evidence that have an answer left out; with the terms of a ``fit``."""
    found = []
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
                    one = Asked(raw_scores(hits), question.answerable, talk.name)
                    if fit:
                        wanted = {ids[ref] for ref in question.evidence if ref in ids}
                        one = replace(one, terms=terms(hits), found=_recalls(hits, wanted))
                    found.append(one)
    return found


def _recalls(hits: Hits, wanted: set[int]) -> tuple[float, float]:
    """Recall of the first ten of the pool, and of the few that are shown where nothing is known."""
    slate = hits.slate
    first = slate.ids[np.argsort(-slate.scores, kind="stable")][:TEN].tolist()
    few = int(hits.pack.number("unknown-limit"))
    return tuple(
        len(wanted.intersection(first[:count])) / max(len(wanted), 1) for count in (TEN, few)
    )


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
    table = np.nan_to_num(
        np.array([[one.scores.get(name, np.nan) for name in names] for one in asked]), nan=-1e9
    )
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
    asked = {
        name: ask(chats, arguments.pack, fit=arguments.fit, progress=progress)
        for name, chats in sets.items()
    }
    if arguments.fit:
        strange = [
            one
            for chats in sets.values()
            for one in ask_strangely(chats, arguments.pack, progress=progress)
        ]
        every, fit = held_out([one for some in asked.values() for one in some], strange)
        tell_fit(every, fit)
        clusters = {name: {one.cluster for one in some} for name, some in asked.items()}
        asked = {
            name: [one for one in every if one.cluster in inside]
            for name, inside in clusters.items()
        }
    found = {name: aucs(some) for name, some in asked.items()}
    rows = [{"data": name, **score} for name, one in found.items() for score in one["scores"]]
    best = [row for name in found for row in [row for row in rows if row["data"] == name][:12]]
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
        print(json.dumps({"pack": arguments.pack, **found}, indent=1))
        return
    for name, one in found.items():
        print(
            f"{name}, {arguments.pack}: {one['questions']} questions, {one['unanswerable']} without an answer, "
            f"{one['conversations']} conversations; AUC [95%, bootstrap by conversation]"
        )
        for row in one["scores"]:
            print(f"  {row['score']:<34}{row['auc']:.3f}  [{row['low']:.3f}, {row['high']:.3f}]")
        if gain := one.get("gain"):
            interval = f"[{gain['low']:+.3f}, {gain['high']:+.3f}], paired"
            print(f"  {KNOWN} over {gain['over']}: {gain['value']:+.3f} {interval}")


if __name__ == "__main__":
    main()

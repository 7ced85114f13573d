"""Fit the default pack's slot ``known``, and judge it on kinds of data that the fit has not seen.

    python experiments/known.py CHATS [--seed 0] [--json]

CHATS is a folder with ``locomo/locomo-dev5.json``, ``beam100k/``, ``prefeval/`` (topics of PrefEval) and ``xquad/``
(``xquad.de.json``, ``xquad.ar.json``). Conversations in German, Russian and Japanese come with the repository. So there
are four kinds of data: conversations of friends, chats with an assistant, preferences and documents, in five languages.

Unanswerable questions are those of the benchmarks: LoCoMo's category 5, BEAM's abstention. Others are made: the memories
that answer are left out ("left out"), the question is one of another conversation ("foreign"), or it names the other
speaker ("other speaker"). Answerable and left-out questions are also asked of labs with 3 to 40 memories ("small"), because
without them a fit would learn that a long conversation answers.

The fit is a logistic regression on five inputs of the policy. Each kind and class has the same weight, except that
answerable questions have 1.5 times that of unanswerable ones. The true share of unanswerable questions is unknown.

The first table is held out: each row is judged by a fit on the other kinds (``--groups`` leaves all conversations of
friends, or all documents, out together). The second table is in sample, and the third has ``hits.known`` of the installed
pack, whose coefficients are rounded. "below .2" is the share of questions at which the default pack shows fewer results.
The AUC is the probability that an answerable question has a higher value than an unanswerable one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from absence import compute_auc
from numpy.typing import NDArray
from results import Results, plot_dots
from sklearn.linear_model import LogisticRegression

import memlab
from memlab.io.ingest import LabelledConversation, read_beam, read_locomo
from memlab.kernel.base.progress import bar
from memlab.kernel.recall import Hits

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Row = dict[str, Any]

TALKS = Path(__file__).parent / "data"
FLOOR = 0.2
"""The setting ``known-floor`` of the default pack."""

PENALTY = 0.149
"""The default pack's penalty for a memory of a speaker whom the query does not name."""

ANSWERABLE = 1.5
"""The weight of answerable questions; chosen, since the true share is unknown."""

SMALL = 40
"""Small labs of a kind with one conversation; with several conversations, 12 each."""

TERMS = ("named", "lead", "both speak", "late of the first", "coverage of the first")
GROUPS = {
    "talk-de": "talk",
    "talk-ru": "talk",
    "talk-ja": "talk",
    "locomo": "talk",
    "xquad-de": "documents",
    "xquad-ar": "documents",
}
"""Kinds that ``--groups`` leaves out together."""


@dataclass(frozen=True)
class Asking:
    """A question, the refs of the memories that answer it, and whether it has an answer."""

    text: str
    evidence: frozenset[str]
    answerable: bool


@dataclass(frozen=True)
class Memories:
    """The memories of one lab with its questions."""

    name: str
    rows: Sequence[Row]
    questions: Sequence[Asking]
    at: datetime | None


@dataclass(frozen=True)
class Case:
    """The inputs of the fit for one question."""

    kind: str
    part: str
    lab: str
    answerable: bool
    terms: tuple[float, ...]
    estimate: float
    weak: bool


def compute_terms(hits: Hits) -> tuple[float, ...]:
    """Return the inputs of the fit in the order of ``TERMS``.

    The lead is the best score of the named speaker minus the best score of all others, without the penalty for names.
    """
    slate = hits.slate
    if not len(slate):
        return (0.0,) * len(TERMS)
    other = slate.numbers["names-other"] > 0
    of_person = float((slate.numbers["names-speaker"] > 0).any())
    free = slate.scores + PENALTY * other
    both = bool(other.any() and not other.all())
    lead = float(free[~other].max() - free[other].max()) if both else 0.0
    first = int(np.argmax(slate.scores))
    late, coverage = (float(slate.numbers[name][first]) for name in ("late", "coverage"))
    return (
        of_person,
        of_person * lead,
        of_person * both,
        of_person * late,
        (1 - of_person) * coverage,
    )


def read_chats(chats: Sequence[LabelledConversation]) -> Iterator[Memories]:
    """Return each conversation with its questions; answerable ones need evidence."""
    for chat in chats:
        questions = [
            Asking(question.text, frozenset(question.evidence), question.answerable)
            for question in chat.questions
            if question.evidence or not question.answerable
        ]
        talk = chat.conversation
        yield Memories(
            talk.name, list(talk.rows(project="p")), questions, talk.end + timedelta(days=1)
        )


def read_xquad(path: Path) -> Iterator[Memories]:
    """Return the paragraphs of XQuAD as memories, with every third question."""
    rows: list[Row] = []
    questions = []
    for document in json.loads(path.read_text(encoding="utf-8"))["data"]:
        for paragraph in document["paragraphs"]:
            ref = f"p{len(rows)}"
            rows.append({"text": paragraph["context"], "ref": ref, "project": "p"})
            questions += [
                Asking(item["question"], frozenset({ref}), True) for item in paragraph["qas"]
            ]
    yield Memories(path.stem, rows, questions[::3], None)


def read_preferences(folder: Path) -> Iterator[Memories]:
    """Return all preferences of PrefEval as memories of one user."""
    items = [
        item
        for path in sorted(folder.glob("*.json"))
        for item in json.loads(path.read_text(encoding="utf-8"))
    ]
    rows = [
        {"text": item["preference"], "ref": f"p{number}", "project": "p", "speaker": "user"}
        for number, item in enumerate(items)
    ]
    questions = [
        Asking(item["question"], frozenset({row["ref"]}), True)
        for item, row in zip(items, rows, strict=True)
    ]
    yield Memories("prefeval", rows, questions, None)


def read_kinds(folder: Path) -> dict[str, list[Memories]]:
    """Return the labs of each kind."""
    chats = {
        "locomo": read_locomo(folder / "locomo" / "locomo-dev5.json"),
        "beam": read_beam(folder / "beam100k"),
        **{f"talk-{code}": read_locomo(TALKS / f"talk-{code}.json") for code in ("de", "ru", "ja")},
    }
    return {
        **{kind: list(read_chats(some)) for kind, some in chats.items()},
        "prefeval": list(read_preferences(folder / "prefeval")),
        **{
            f"xquad-{code}": list(read_xquad(folder / "xquad" / f"xquad.{code}.json"))
            for code in ("de", "ar")
        },
    }


def ask(
    kind: str, part: str, memories: Memories, rows: Sequence[Row], questions: Sequence[Asking]
) -> list[Case]:
    """Recall questions in a lab with some rows."""
    with memlab.open() as lab:
        lab.remember(list(rows), chain=any("session" in row for row in rows))
        at = {} if memories.at is None else {"at": memories.at}
        recalls = [lab.recall(question.text, log=False, **at) for question in questions]
        return [
            Case(
                kind,
                part,
                memories.name,
                question.answerable,
                compute_terms(hits),
                1.0 if hits.known is None else hits.known,
                hits.weak,
            )
            for question, hits in zip(questions, recalls, strict=True)
        ]


def ask_kind(kind: str, labs: Sequence[Memories], seed: int) -> Iterator[list[Case]]:
    """Recall the questions of a kind: as they are, and those made unanswerable."""
    for number, memories in enumerate(labs):
        rng = np.random.default_rng((seed, number))
        rows, questions = memories.rows, memories.questions
        refs = [row["ref"] for row in rows]
        yield ask(kind, "own", memories, rows, questions)
        answered = [question for question in questions if question.answerable]
        used = sorted({ref for question in answered for ref in question.evidence})
        gone = set(rng.permutation(used)[: len(used) // 2].tolist())
        yield ask(
            kind,
            "left out",
            memories,
            [row for row in rows if row["ref"] not in gone],
            _without_answer([question for question in answered if question.evidence <= gone]),
        )
        whole = [question for question in answered if question.evidence <= set(refs)]
        for at in rng.permutation(len(whole))[: SMALL if len(labs) == 1 else 12]:
            question = whole[at]
            few = set(rng.choice(refs, min(int(rng.integers(3, 40)), len(refs)), replace=False))
            for part, refs_in, own in (
                ("small", few | question.evidence, [question]),
                ("small, left out", few - question.evidence, _without_answer([question])),
            ):
                yield ask(kind, part, memories, [row for row in rows if row["ref"] in refs_in], own)
        if len(labs) > 1:
            others = labs[(number + 1) % len(labs)].questions
            foreign = _without_answer([question for question in others if question.answerable])
            chosen = [foreign[at] for at in rng.permutation(len(foreign))[:30]]
            yield ask(kind, "foreign", memories, rows, chosen)
        speakers = sorted({row.get("speaker") or "" for row in rows})
        if len(speakers) == 2 and kind != "beam":
            yield ask(
                kind, "other speaker", memories, rows, list(_swap_speakers(answered, *speakers))
            )


def _without_answer(questions: Sequence[Asking]) -> list[Asking]:
    """Return the questions as unanswerable ones."""
    return [Asking(question.text, frozenset(), False) for question in questions]


def _swap_speakers(questions: Sequence[Asking], first: str, second: str) -> Iterator[Asking]:
    """Return the questions that name one of two speakers, with the name of the other."""
    for question in questions:
        if (first in question.text) != (second in question.text):
            name, instead = (first, second) if first in question.text else (second, first)
            yield Asking(question.text.replace(name, instead), frozenset(), False)


def fit(cases: Sequence[Case]) -> LogisticRegression:
    """Fit the probability that a question is answerable."""
    weights = np.zeros(len(cases))
    groups: dict[tuple[str, bool], list[int]] = {}
    for index, case in enumerate(cases):
        groups.setdefault((case.kind, case.answerable), []).append(index)
    for (_, answerable), members in groups.items():
        weights[members] = (ANSWERABLE if answerable else 1.0) * 1000 / len(members)
    return LogisticRegression(C=100.0, max_iter=5000).fit(
        [case.terms for case in cases],
        [case.answerable for case in cases],
        sample_weight=weights,
    )


def predict(model: LogisticRegression, cases: Sequence[Case]) -> Floats:
    """Return the probability of an answer for each question."""
    return np.asarray(model.predict_proba([case.terms for case in cases])[:, 1])


def predict_held_out(cases: Sequence[Case], group_of: Mapping[str, str]) -> Floats:
    """Return the probabilities of each kind by a fit on the other groups of kinds."""
    chances = np.zeros(len(cases))
    groups = np.array([group_of.get(case.kind, case.kind) for case in cases])
    for group in np.unique(groups):
        inside = np.flatnonzero(groups == group)
        model = fit([case for case, other in zip(cases, groups == group, strict=True) if not other])
        chances[inside] = predict(model, [cases[index] for index in inside])
    return chances


def judge(cases: Sequence[Case], chances: Floats, figures: str) -> list[Row]:
    """Return a row of figures for each kind."""
    kinds, parts = (np.array([getattr(case, name) for case in cases]) for name in ("kind", "part"))
    answerable = np.array([case.answerable for case in cases])
    weak = np.array([case.weak for case in cases])
    rows: list[Row] = []
    for kind in dict.fromkeys(kinds.tolist()):
        of_kind = kinds == kind
        positives = of_kind & answerable & (parts == "own")
        row: Row = {
            "figures": figures,
            "kind": kind,
            "answerable": int(positives.sum()),
            "below": float((chances[positives] < FLOOR).mean()),
            "mean": float(chances[positives].mean()),
            "weak": float(weak[positives].mean()),
            "small labs": int((of_kind & (parts == "small")).sum()),
            "below, small": float((chances[of_kind & (parts == "small")] < FLOOR).mean()),
        }
        for part in ("own", "left out", "foreign", "other speaker"):
            without: Flags = of_kind & ~answerable & (parts == part)
            both = positives | without
            name = "unanswerable" if part == "own" else part
            row[name] = int(without.sum())
            row[f"auc, {name}"] = compute_auc(chances[both], answerable[both])
            row[f"weak, {name}"] = float(weak[without].mean()) if without.any() else np.nan
            row[f"below, {name}"] = (
                float((chances[without] < FLOOR).mean()) if without.any() else np.nan
            )
        rows.append(row)
    return rows


def print_table(title: str, rows: Sequence[Row]) -> None:
    """Print the figures of each kind."""
    print(f"\n{title}")
    print(
        f"{'kind':<10}{'answerable':>11}{'below .2':>9}{'mean':>6}{'small':>7}{'below .2':>9}"
        + "".join(
            f"{name:>15}{'AUC':>6}{'<.2':>6}"
            for name in ("unanswerable", "left out", "foreign", "other speaker")
        )
    )
    for row in rows:
        line = (
            f"{row['kind']:<10}{row['answerable']:>11}{row['below']:>9.3f}{row['mean']:>6.2f}"
            f"{row['small labs']:>7}{row['below, small']:>9.3f}"
        )
        for name in ("unanswerable", "left out", "foreign", "other speaker"):
            figures = (
                f"{row[f'auc, {name}']:>6.3f}{row[f'below, {name}']:>6.2f}"
                if row[name]
                else f"{'-':>6}{'-':>6}"
            )
            line += f"{row[name] or '-':>15}{figures}"
        print(line)


def print_weak(rows: Sequence[Row]) -> None:
    """Print the shares of questions whose results are weak."""
    parts = ("unanswerable", "left out", "foreign", "other speaker")
    print("\nhits.weak of the installed default pack: share of questions")
    print(f"{'kind':<10}{'answerable':>11}" + "".join(f"{name:>15}" for name in parts))
    for row in rows:
        shares = [f"{row[f'weak, {name}']:.3f}" if row[name] else "-" for name in parts]
        print(
            f"{row['kind']:<10}{row['weak']:>11.3f}" + "".join(f"{share:>15}" for share in shares)
        )


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("chats", type=Path, help="a folder with the four data sets")
    parser.add_argument("--seed", type=int, default=0, help="seed of all draws (default: 0)")
    parser.add_argument("--groups", action="store_true", help="leave related kinds out together")
    parser.add_argument("--json", action="store_true")
    arguments: argparse.Namespace = parser.parse_args()
    results = Results("known", arguments, data=[arguments.chats])
    kinds = read_kinds(arguments.chats)
    cases: list[Case] = []
    with bar(sys.stderr.isatty(), len(kinds), unit="kind") as step:
        for kind, labs in kinds.items():
            for some in ask_kind(kind, labs, arguments.seed):
                cases += some
            step(1)
    model = fit(cases)
    tables = {
        "held out": predict_held_out(cases, GROUPS if arguments.groups else {}),
        "in sample": predict(model, cases),
        "installed": np.array([case.estimate for case in cases]),
    }
    rows = [row for name, chances in tables.items() for row in judge(cases, chances, name)]
    results.save(
        rows,
        plot_dots(
            [row for row in rows if row["figures"] != "in sample"],
            label="kind",
            value="below",
            group="figures",
            reference=0.02,
            title="Answerable questions below the floor",
        ),
    )
    coefficients = dict(
        zip(("constant", *TERMS), (model.intercept_[0], *model.coef_[0]), strict=True)
    )
    if arguments.json:
        print(json.dumps({"coefficients": coefficients, "rows": rows}, indent=1))
        return
    print(
        f"{len(cases):,} questions, seed {arguments.seed}; "
        + ", ".join(f"{name} {value:+.2f}" for name, value in coefficients.items())
    )
    titles = {
        "held out": "Held out: each kind by a fit on the other "
        + ("groups of kinds" if arguments.groups else "kinds"),
        "in sample": "In sample: a fit on all kinds",
        "installed": "hits.known of the installed default pack (in sample, rounded)",
    }
    for name, title in titles.items():
        print_table(title, [row for row in rows if row["figures"] == name])
    print_weak([row for row in rows if row["figures"] == "installed"])


if __name__ == "__main__":
    main()

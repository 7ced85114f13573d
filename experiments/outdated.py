"""Measure whether the current statement ranks above the outdated one.

    python experiments/outdated.py [--pack memlab] [--split dev] [--beam beam100k] [--json]

``data/outdated.jsonl`` has a hundred pairs with controls, one per line, written before any rule. ``old`` is a statement
of the first months, ``new`` replaces it later, and ``question`` asks for the value. ``wording`` tells whether ``new``
is in words of change or in plain words. The control is ``kept`` (an old statement that is still true), ``beside`` (a
later one on the same subject that does not replace it) and ``kept_question``.

Sixty pairs are for development (``split``); the forty held-out pairs should be read once. Ten pairs and small talk make
a simulated life of 79 turns, which is a project of its own and is queried a day after its end.

leads            the outdated statement ranks above the current one, or only the outdated one is in the top ten. For
                 controls, the later statement, which does not answer, counts as the outdated one.
wanted found     the wanted statement is in the top ten

BEAM has pairs of its own. For knowledge updates they are the messages of ``original_info`` and ``updated_info``. For
contradictions they are those of both statements, and the later one counts as current. The answers of BEAM ask which one
is right, so that row is descriptive. Questions whose two lists share messages, or without either in the top ten, are
left out. Intervals are by life, and by chat on BEAM.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from results import Results, plot_dots

import memlab
from memlab.io.ingest import conversation, read_beam
from memlab.kernel.base.progress import bar
from memlab.science.evaluation import cluster_interval

DATA = Path(__file__).parent / "data"
START = datetime(2025, 1, 6, 9, tzinfo=UTC)
TEN = 10
GROUP = 10
"""The number of pairs in one life."""


@dataclass(frozen=True)
class Answer:
    """Ranks of both statements of a pair for its question; 0 if not in the top ten."""

    cluster: str
    wording: str
    current: int
    outdated: int

    @property
    def wrong(self) -> bool:
        """Whether the wrong statement ranks above the right one, or alone."""
        return bool(self.outdated) and (not self.current or self.outdated < self.current)


def build_lives(
    pairs: Sequence[Mapping[str, Any]],
) -> Iterable[tuple[str, list[dict[str, Any]], Sequence[Mapping[str, Any]]]]:
    """Yield name, turns and pairs of each life: old statements, small talk, then new ones."""
    talk = json.loads((DATA / "small_talk.json").read_text(encoding="utf-8"))
    for number in range(0, len(pairs), GROUP):
        group = pairs[number : number + GROUP]
        rng = np.random.default_rng(number)
        early = [(f"{pair['id']}-{part}", pair[part]) for pair in group for part in ("old", "kept")]
        late = [
            (f"{pair['id']}-{part}", pair[part]) for pair in group for part in ("new", "beside")
        ]
        chatter = [(f"talk-{at}", talk[at]) for at in rng.permutation(len(talk))]
        half = len(chatter) // 2
        turns = []
        for part, (statements, between) in enumerate(
            ((early, chatter[:half]), (late, chatter[half:]))
        ):
            mixed = [*statements, *between]
            for position, at in enumerate(rng.permutation(len(mixed))):
                ref, text = mixed[at]
                day = part * 150 + 4 * (position // 2)
                turns.append(
                    {
                        "text": text,
                        "ref": ref,
                        "at": START + timedelta(days=day, minutes=7 * position),
                    }
                )
        name = f"life-{number // GROUP + 1}"
        rows = [
            turn
            | {
                "kind": "turn",
                "speaker": "user",
                "session": f"{name}/{turn['at']:%j}",
                "project": name,
            }
            for turn in turns
        ]
        yield name, rows, group


def recall_pairs(pack: str, split: str, *, progress: bool) -> tuple[list[Answer], list[Answer]]:
    """Return the answers of the pairs and of their controls."""
    lines = (DATA / "outdated.jsonl").read_text(encoding="utf-8").splitlines()
    pairs = [pair for pair in map(json.loads, lines) if split in ("all", pair["split"])]
    changed, controls = [], []
    with memlab.open(pack=pack) as lab, bar(progress, 2 * len(pairs), unit="recall") as step:
        for name, rows, group in build_lives(pairs):
            lab.remember(rows, chain=True)
            at = max(row["at"] for row in rows) + timedelta(days=1)
            for pair in group:
                for question, current, outdated, answers_of_group in (
                    (pair["question"], "new", "old", changed),
                    (pair["kept_question"], "kept", "beside", controls),
                ):
                    refs = [
                        hit.ref
                        for hit in lab.recall(question, limit=TEN, project=name, at=at, log=False)
                    ]
                    ranks = [
                        find_rank(refs, [f"{pair['id']}-{part}"]) for part in (current, outdated)
                    ]
                    answers_of_group.append(Answer(name, pair["wording"], *ranks))
                    step(1)
    return changed, controls


def recall_beam(pack: str, folder: Path, *, progress: bool) -> dict[str, list[Answer]]:
    """Return the answers by ability, for the abilities with two statements."""
    answers: dict[str, list[Answer]] = {"knowledge_update": [], "contradiction_resolution": []}
    chats = read_beam(folder)
    with bar(progress, len(chats), unit="chat") as step:
        for chat in chats:
            talk = chat.conversation
            with memlab.open(pack=pack) as lab:
                conversation(lab, talk)
                for question in chat.questions:
                    if question.category not in answers or not question.outdated:
                        continue
                    first = question.outdated
                    second = [ref for ref in question.evidence if ref not in first]
                    at = talk.end + timedelta(days=1)
                    refs = [
                        hit.ref
                        for hit in lab.recall(
                            question.text, limit=TEN, project=talk.name, at=at, log=False
                        )
                    ]
                    answers[str(question.category)].append(
                        Answer(talk.name, "", find_rank(refs, second), find_rank(refs, first))
                    )
            step(1)
    return answers


def find_rank(refs: Sequence[str | None], wanted: Iterable[str]) -> int:
    """Return the best rank of the wanted refs; 0 if none is present."""
    sought = set(wanted)
    return next((at for at, ref in enumerate(refs, 1) if ref in sought), 0)


def measure_share(answers: Sequence[Answer], what: str) -> dict[str, Any]:
    """Return how often answers are wrong, or right statements present, with a 95% interval."""
    values = [float(answer.wrong if what == "wrong" else answer.current > 0) for answer in answers]
    interval = cluster_interval(values, [answer.cluster for answer in answers])
    return {
        "n": len(values),
        "share": float(np.mean(values)) if values else None,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
    }


def measure_groups(
    pack: str, split: str, beam: Path | None, *, progress: bool
) -> list[dict[str, Any]]:
    """Return a row for each group of questions."""
    changed, controls = recall_pairs(pack, split, progress=progress)
    groups = {
        f"pairs, {split}": changed,
        "  in words of change": [answer for answer in changed if answer.wording == "cue"],
        "  in plain words": [answer for answer in changed if answer.wording == "plain"],
        f"controls, {split}": controls,
    }
    for ability, answers in (recall_beam(pack, beam, progress=progress) if beam else {}).items():
        groups[f"BEAM {ability}"] = [
            answer for answer in answers if answer.current or answer.outdated
        ]
    return [
        {
            "questions": name,
            "wrong": measure_share(answers, "wrong"),
            "found": measure_share(answers, "found"),
        }
        for name, answers in groups.items()
    ]


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("--pack", default="memlab", help="a name or a .hy file")
    parser.add_argument("--split", choices=("dev", "held", "all"), default="dev")
    parser.add_argument("--beam", type=Path, help="a folder of BEAM's chats")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    data = [DATA / "outdated.jsonl", DATA / "small_talk.json", arguments.beam]
    results = Results("outdated", arguments, data=data)
    rows = measure_groups(
        arguments.pack, arguments.split, arguments.beam, progress=sys.stderr.isatty()
    )
    table = [
        {"questions": row["questions"].strip(), **row["wrong"], "found": row["found"]["share"]}
        for row in rows
    ]
    results.save(
        table,
        plot_dots(
            table,
            label="questions",
            value="share",
            interval=("low", "high"),
            title="Share of questions with the wrong statement first",
        ),
    )
    if arguments.json:
        summary = {"pack": arguments.pack, "split": arguments.split, "rows": rows}
        print(json.dumps(summary, indent=1))
        return
    print(
        f"{arguments.pack}: share of questions whose outdated statement leads "
        "(for controls: the later statement) [95% by simulated life or chat]"
    )
    print(f"{'':<32}{'n':>5}{'leads':>9}{'':>18}{'wanted found':>15}")
    for row in rows:
        wrong, retrieved = row["wrong"], row["found"]
        interval = f"[{wrong['low']:.3f}, {wrong['high']:.3f}]" if wrong["low"] is not None else ""
        shares = [
            f"{estimate['share']:.3f}" if estimate["share"] is not None else "-"
            for estimate in (wrong, retrieved)
        ]
        print(f"{row['questions']:<32}{wrong['n']:>5}{shares[0]:>9}{interval:>18}{shares[1]:>15}")


if __name__ == "__main__":
    main()

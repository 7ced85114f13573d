"""Count how many ordinary pairs of memories of one subject end with the older one hidden.

    python experiments/hidings.py --lives FOLDER... --locomo FILE [--pairs 100] [--seed 7] [--show]

The same number of pairs is drawn by seed from each of three sources. These are lessons that the hooks learn from the
transcripts in the folders, entries of changelogs of installed packages, and turns of the conversations in FILE. Both
memories of a pair come from the same life, package or conversation, and share at least two content words. Pairs with a
statement that the labels of a life call corrected are left out. Each pair is stored in a lab of its own, the older
memory first, in one project. Without other candidates, more are hidden than in a full lab.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import memlab
from experiments.work_lives import holds_evidence, read_event
from memlab.io.adapters.hooks import read_transcript
from memlab.io.formats import parse_messages
from memlab.subjects.extraction.proposing import Scope
from memlab.subjects.extraction.work import find_work
from memlab.subjects.reading.claims import Statement

_ENTRY = re.compile(r"^ *[-*+] +(\S.{30,300})$", re.M)
_LINK = re.compile(r"\bby \[.*|\(?`?#\d+.*|https?://\S+")
_SHARED = 2

Group = list[dict[str, Any]]
"""The memories of one life, package or conversation, oldest first."""


def read_life(folder: Path) -> Group:
    """Return the lessons of a life that the labels do not call corrected."""
    labels = json.loads((folder / "labels.json").read_text())
    memories = []
    for session in labels["sessions"]:
        event, _ = read_event(folder / session["file"])
        messages = parse_messages(
            list(read_transcript(Path(event["transcript_path"]), event["cwd"]))
        )
        for lesson in find_work(messages, Scope("p", event["session_id"], None)):
            fields = {name: lesson.fields[name] for name in ("kind", "provenance")}
            memories.append({"text": lesson.text, "session": event["session_id"], **fields})
    return [
        memory
        for memory in memories
        if not any(holds_evidence(memory["text"], item["evidence"]) for item in labels["outdated"])
    ]


def read_changelogs() -> Iterator[Group]:
    """Yield the listed entries in the description of each installed package that has a changelog."""
    for package in sorted(distributions(), key=lambda package: package.metadata["Name"].lower()):
        text = str(package.metadata.get("Description") or package.metadata.get_payload())
        if re.search(r"^\W*(?:changelog|release history|changes)\b", text, re.M | re.IGNORECASE):
            entries = [" ".join(entry.split()) for entry in _ENTRY.findall(text)]
            yield [make_memory(entry, number) for number, entry in enumerate(reversed(entries))]


def read_turns(file: Path) -> Iterator[Group]:
    """Yield the turns of each conversation of LoCoMo."""
    for sample in json.loads(file.read_text()):
        sessions = sample["conversation"]
        names = [name for name in sessions if re.fullmatch(r"session_\d+", name)]
        yield [
            make_memory(turn["text"], number)
            for number, name in enumerate(sorted(names, key=lambda name: int(name[8:])))
            for turn in sessions[name]
        ]


def make_memory(text: str, session: int) -> dict[str, Any]:
    """Return a statement of a person."""
    return {"text": text, "kind": "context", "provenance": "user-stated", "session": str(session)}


def draw_pairs(groups: list[Group], count: int, draw: random.Random) -> list[Group]:
    """Draw pairs of one group that share content words and come from different sessions."""
    groups = [group for group in groups if len(group) > 1]
    weights, pairs = [len(group) for group in groups], []
    contents: dict[str, frozenset[str]] = {}
    while len(pairs) < count:
        group = draw.choices(groups, weights)[0]
        first, second = sorted(draw.sample(range(len(group)), 2))
        pair = [group[first], group[second]]
        earlier, later = (
            contents.setdefault(memory["text"], Statement(_LINK.sub(" ", memory["text"])).content)
            for memory in pair
        )
        if len(earlier & later) >= _SHARED and pair[0]["session"] != pair[1]["session"]:
            pairs.append(pair)
    return pairs


def is_hidden(pair: Group) -> bool:
    """Return whether the older of two memories is hidden or superseded."""
    with memlab.open() as lab:
        for day, memory in enumerate(pair, 1):
            lab.remember(**memory, project="p", at=f"2026-01-{day:02}")
        return "updates" in lab.edges["relation"].to_list() or (
            "superseded" in lab.memories["status"].to_list()
        )


def main() -> None:
    """Draw the pairs, and print the count of each source and the hidden ones."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lives", type=Path, nargs="+", required=True)
    parser.add_argument("--locomo", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--show", action="store_true", help="print the first ten pairs of each source"
    )
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    sources = {
        "lives": [read_life(folder) for folder in arguments.lives],
        "changelogs": list(read_changelogs()),
        "turns": list(read_turns(arguments.locomo)),
    }
    for name, groups in sources.items():
        pairs = draw_pairs(groups, arguments.pairs, draw)
        hidden = [pair for pair in pairs if is_hidden(pair)]
        print(f"{name:10} {len(hidden)} of {len(pairs)} hidden, from {len(groups)} groups")
        for pair in hidden + (pairs[:10] if arguments.show else []):
            print(
                "   ",
                "hidden" if pair in hidden else "shown ",
                *(m["text"] for m in pair),
                sep=" | ",
            )


if __name__ == "__main__":
    main()

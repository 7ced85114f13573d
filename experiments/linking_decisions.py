"""Print which memories linking supersedes, merges and joins on real chats.

    python experiments/linking_decisions.py FOLDER                         # counts on the development chats
    python experiments/linking_decisions.py FOLDER --show --decision superseded
    python experiments/linking_decisions.py FOLDER --sample 60 --seed 1 --decision similar-to --pack cascade --show
    python experiments/linking_decisions.py FOLDER --held-out --judge out.jsonl

FOLDER holds locomo/locomo-dev5.json and beam100k/1 ... 12. A new lab for each chat remembers its messages with speaker,
time and linking "now", as memories of the kind that the pack is for. Printed are the decisions of each pack
(superseded, merged, skipped, and edges by relation), and the first three per 1,000 messages.

``--show`` prints the texts of the selected decisions. ``--judge FILE`` writes a line for each, without text: data set,
pack, message numbers, decision, certainty, and an empty judgement. ``--judged FILE`` prints the texts of the decisions
in such a file, and its counts.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

from held_out import BEAM_HELD_OUT, BEAM_READ, LOCOMO_HELD_OUT, LOCOMO_READ

import memlab
from memlab.io.ingest import read_beam, read_locomo
from memlab.kernel.base.clock import ManualClock
from memlab.kernel.embedding import Embedder, load_embedder

KINDS = {"companion": "event", "workbench": "context", "cascade": "fact", "factgraph": "fact"}
DESTROYS = ("superseded", "merged", "skipped")
EDGES = ("updates", "contradicts", "similar-to", "relates-to")


def read_chats(folder: Path, *, held_out: bool) -> dict[str, list[dict[str, Any]]]:
    """Return the messages of each chat as rows of text, speaker and time."""
    locomo, beam = (LOCOMO_HELD_OUT, BEAM_HELD_OUT) if held_out else (LOCOMO_READ, BEAM_READ)
    conversations = [
        entry.conversation
        for entry in read_locomo(folder / "locomo/locomo-dev5.json")
        if entry.conversation.name in locomo
    ]
    talks = {entry.name: entry for entry in conversations}
    talks |= {
        f"beam-{number}": read_beam(folder / "beam100k" / str(number))[0].conversation
        for number in beam
    }
    return {
        name: [
            {"text": turn.text, "speaker": turn.speaker, "at": turn.at}
            for turn in talk.turns
            if turn.text.strip()
        ]
        for name, talk in talks.items()
    }


def decide(
    pack: str, rows: list[dict[str, Any]], embedder: Embedder
) -> list[tuple[str, int, int, str]]:
    """Return decision, later message, earlier message and reason for one chat."""
    last = max(row["at"] for row in rows)
    with memlab.open(pack=pack, embedder=embedder, clock=ManualClock(last)) as lab:
        outcomes = lab.remember([{**row, "kind": KINDS[pack]} for row in rows], linking="now")
        number_of = {}
        for row, memory_id, outcome, *_ in outcomes.outcomes.rows():
            if outcome == "added":
                number_of[memory_id] = row
        decisions = []
        for row, memory_id, outcome, of, relation, why in outcomes.outcomes.rows():
            if outcome in ("merged", "skipped"):
                decisions.append((outcome, row, number_of[of], why))
            elif outcome == "superseded":
                decisions.append(("superseded", number_of[memory_id], number_of[of], why))
            elif outcome == "linked":
                decisions.append((relation, number_of[memory_id], number_of[of], why))
        return decisions


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--pack", action="append", choices=list(KINDS))
    parser.add_argument("--decision", action="append", choices=[*DESTROYS, *EDGES])
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--judge", type=Path)
    parser.add_argument("--judged", type=Path)
    parser.add_argument("--characters", type=int, default=600)
    arguments = parser.parse_args()
    embedder = load_embedder(None)
    conversations = read_chats(arguments.folder, held_out=arguments.held_out)
    if arguments.judged is not None:
        print_judged(arguments.judged, conversations, arguments.characters)
        return
    wanted = arguments.decision or list(DESTROYS)
    for pack in arguments.pack or list(KINDS):
        counts: Counter[str] = Counter()
        chosen: list[tuple[str, str, int, int, str]] = []
        messages = sum(map(len, conversations.values()))
        for name, rows in conversations.items():
            for decision, later, earlier, why in decide(pack, rows, embedder):
                counts[decision] += 1
                if decision in wanted:
                    chosen.append((name, decision, later, earlier, why))
        destroyed = sum(counts[name] for name in DESTROYS)
        print(
            f"{pack:10s} {messages:,} messages, {destroyed} superseded, merged or skipped "
            f"({1000 * destroyed / messages:.2f} per 1,000): {dict(sorted(counts.items()))}"
        )
        if arguments.sample is not None and len(chosen) > arguments.sample:
            chosen = sorted(random.Random(arguments.seed).sample(chosen, arguments.sample))
        for name, decision, later, earlier, why in chosen:
            if arguments.show:
                print_decision(
                    pack,
                    name,
                    decision,
                    conversations[name],
                    later,
                    earlier,
                    why,
                    arguments.characters,
                )
        if arguments.judge is not None:
            with arguments.judge.open("a", encoding="utf-8") as out:
                for name, decision, later, earlier, _ in chosen:
                    line = {
                        "data": name,
                        "pack": pack,
                        "decision": decision,
                        "later": later,
                        "earlier": earlier,
                    }
                    out.write(json.dumps({**line, "judgement": None}) + "\n")


def print_decision(
    pack: str,
    name: str,
    decision: str,
    rows: list[dict[str, Any]],
    later: int,
    earlier: int,
    why: str,
    maximum: int,
) -> None:
    """Print the two messages of one decision."""
    print(f"--- {pack} {name} {decision} {later} of {earlier}: {why}")
    for number in (earlier, later):
        print(
            f"    [{number}] {rows[number]['speaker']}: {' '.join(rows[number]['text'].split())[:maximum]}"
        )


def print_judged(path: Path, conversations: dict[str, list[dict[str, Any]]], maximum: int) -> None:
    """Print judged decisions with their texts, and the judgements by decision."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if line["data"] in conversations:
            say = f"judged {line['judgement']}"
            print_decision(
                line["pack"],
                line["data"],
                line["decision"],
                conversations[line["data"]],
                line["later"],
                line["earlier"],
                say,
                maximum,
            )
    for decision in dict.fromkeys(line["decision"] for line in lines):
        told_of = Counter(str(line["judgement"]) for line in lines if line["decision"] == decision)
        print(decision, dict(told_of))


if __name__ == "__main__":
    main()

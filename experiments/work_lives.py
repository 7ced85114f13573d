"""Measure what a coding agent is told by hooks alone, in a life of sessions on one repository.

    python experiments/work_lives.py FOLDER [--pack memlab] [--budget 800] [--explicit] [--show]

FOLDER has the transcripts of a life (``01.jsonl`` ...) and ``labels.json``: the task and the needed lessons of each
session, and statements that a later session corrects. The hooks of each session run in order: its start and its task
give contexts, its end learns from the transcript. A lesson is told if a note of the contexts contains all words of
one of its evidences. A statement is outdated if a session after its correction is told it.

lessons         needed lessons that were told, of all and by thirds of the life
outdated        corrected statements that were shown in a session that needs the correction
tokens          mean of both contexts of a session
shared          memories of the form "shared what", which say nothing
gotchas         learned gotchas that have files

With ``--explicit`` the agent remembers each lesson itself, in the words of the labels, and the hooks learn nothing.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import memlab
from memlab.io.adapters.hooks import answer_hook
from memlab.kernel.base.clock import ManualClock, to_micros


def holds_evidence(text: str, evidence: Iterable[Iterable[str]]) -> bool:
    """Return whether a note of a context, with its heading, has all words of one of the evidences."""
    notes = [note.casefold() for note in re.split(r"\n(?=\[|- |! )(?<!\]\n)", text)]
    return any(
        all(word.casefold() in note for word in words) for words in evidence for note in notes
    )


def read_event(path: Path) -> tuple[dict[str, Any], str]:
    """Return the fields that all events of a session share, and the time of its first message."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    first = next(line for line in lines if line.get("sessionId"))
    event = {"session_id": first["sessionId"], "cwd": first["cwd"], "transcript_path": str(path)}
    return event, first["timestamp"]


def main() -> None:
    """Run a life and print its scores."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pack", default="memlab")
    parser.add_argument("--budget", type=int, default=800)
    parser.add_argument(
        "--show", action="store_true", help="print what was missed, and all memories"
    )
    parser.add_argument("--explicit", action="store_true", help="the agent remembers its lessons")
    arguments = parser.parse_args()
    labels = json.loads((arguments.folder / "labels.json").read_text())
    if arguments.explicit:
        says = {lesson["id"]: lesson["says"] for lesson in labels["lessons"]}
        for lesson in labels["lessons"]:
            lesson["evidence"] = [[lesson["says"]]]
        for item in labels["outdated"]:
            item["evidence"] = [[says[item["old_lesson"]]]]
    lessons = {lesson["id"]: lesson for lesson in labels["lessons"]}
    clock = ManualClock(0)
    outcomes: list[tuple[int, str, bool]] = []
    outdated: set[str] = set()
    tokens: list[int] = []
    with memlab.open(pack=arguments.pack, clock=clock) as lab:
        for session in labels["sessions"]:
            event, at = read_event(arguments.folder / session["file"])
            clock.advance(seconds=max(0, (to_micros(at) - clock()) // 1_000_000))
            contexts = []
            for name in ("SessionStart", "UserPromptSubmit"):
                answer = answer_hook(
                    lab,
                    {**event, "hook_event_name": name, "prompt": session["task"]},
                    budget=arguments.budget,
                )
                contexts.append(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))
            text = "\n".join(contexts)
            tokens.append(len(text.encode()) // 4)
            outcomes += [
                (session["n"], need, holds_evidence(text, lessons[need]["evidence"]))
                for need in session["needs"]
            ]
            for number, item in enumerate(labels["outdated"]):
                if session["n"] in item["checked_in"] and holds_evidence(text, item["evidence"]):
                    outdated.add(f"{number}: {item['evidence']}")
            clock.advance(hours=1)
            if not arguments.explicit:
                answer_hook(lab, {**event, "hook_event_name": "SessionEnd"})
                continue
            for lesson in labels["lessons"]:
                if lesson["learned_in"] == session["n"]:
                    kind = "correction" if lesson["kind"] == "correction" else "convention"
                    project = Path(event["cwd"]).name
                    lab.remember(lesson["says"], kind=kind, project=project)
        memories = lab.memories
    count = max(session["n"] for session in labels["sessions"])
    thirds = [[ok for n, _, ok in outcomes if (n - 1) * 3 // count == third] for third in range(3)]
    shared = sum(
        bool(re.search(r"shared (what|where|their|an)\b", text)) for text in memories["text"]
    )
    gotchas = memories.filter(memories["kind"] == "gotcha")
    print(f"lessons   {sum(ok for *_, ok in outcomes)}/{len(outcomes)}   by thirds "
          + " ".join(f"{sum(third)}/{len(third)}" for third in thirds))  # fmt: skip
    print(f"outdated  {len(outdated)}/{len(labels['outdated'])}")
    print(f"tokens    {sum(tokens) / len(tokens):.0f} of at most {arguments.budget * 2}")
    print(f"memories  {memories.height}, shared {shared}, gotchas with files "
          f"{(gotchas['files'].list.len() > 0).sum()}/{gotchas.height}")  # fmt: skip
    if arguments.show:
        for n, need, ok in outcomes:
            if not ok:
                print(f"missed    session {n}: {need} {lessons[need]['says']}")
        print(*(f"outdated  {line}" for line in sorted(outdated)), sep="\n")
        for row in memories.select("id", "kind", "status", "text", "files", "superseded_by").rows():
            print(*row)


if __name__ == "__main__":
    main()

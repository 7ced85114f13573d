"""Build the labs of the data part: chats outside the repository, stored as digests and sums only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import memlab
from experiments.recording.labs import Built, ask_labelled
from memlab.io.ingest import LabelledConversation, conversation, read_beam, read_locomo

__all__ = ["CHATS"]

LOCOMO = ("conv-26", "conv-30", "conv-41", "conv-42", "conv-43")
BEAM = (3, 5)

CHATS: dict[str, Callable[[str, Path], Any]] = {}
"""Builders by name: context managers that take a pack and the data folder, and return the lab."""


@cache
def _locomo(folder: Path) -> dict[str, LabelledConversation]:
    return {
        entry.conversation.name: entry
        for entry in read_locomo(folder / "locomo" / "locomo-dev5.json")
    }


def _ask_and_link(labelled: LabelledConversation, pack: str) -> Iterator[Built]:
    """Yield the turns and questions of a chat, then the same texts as linked memories."""
    talk = labelled.conversation
    clock = memlab.ManualClock(talk.end + timedelta(days=1))
    with memlab.open(pack=pack, clock=clock) as lab:
        conversation(lab, talk)
        ask_labelled(lab, labelled, max(1, len(labelled.questions) // 12))
        turns = [{**row, "kind": "context", "project": "linked"} for row in talk.rows()]
        linked = lab.remember(turns, chain=True, linking="now")
        clock.advance(days=20)
        done = lab.upkeep.maintain(progress=False)
        extra = {"linked": linked.outcomes.to_dicts(), "upkeep": done.counts.to_dicts()}
        yield Built(lab, labelled.questions[1].text, (4, 17), extra)


def _add(name: str, read: Callable[[Path], LabelledConversation]) -> None:
    @contextmanager
    def build(pack: str, folder: Path) -> Iterator[Built]:
        yield from _ask_and_link(read(folder), pack)

    CHATS[name] = build


for _name in LOCOMO:
    _add(f"locomo-{_name}", lambda folder, name=_name: _locomo(folder)[name])
for _number in BEAM:
    _add(
        f"beam-{_number}",
        lambda folder, number=_number: read_beam(folder / "beam100k" / str(number))[0],
    )

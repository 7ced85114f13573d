"""Folders in the format of BEAM ("Beyond a Million Tokens", ICLR 2026): one folder a chat of a user with an assistant.

    1/chat.json                                     batches of turns; a turn is a few messages with role, id, content
    1/probing_questions/probing_questions.json      ten abilities, each with questions and ``source_chat_ids``

A batch is a session. A message's ``time_anchor`` ("March-15-2024") dates it and what follows; a chat without one begins
at the start of 2024. Messages carry a mark of the plan that they were generated from ("->-> 1,15"), which nobody said
and which is left out. Evidence is a list of message ids, or lists under names such as ``original_info``; questions of
abstention have none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memlab.errors import DatasetError
from memlab.io.formats.benchmarks.conversation import Conversation, Turn
from memlab.io.formats.benchmarks.files import Place, loaded, named
from memlab.io.formats.benchmarks.labels import LabelledConversation, Question
from memlab.kernel.base.arguments import checked

__all__ = ["read_beam"]

_CHAT = "chat.json"
_QUESTIONS = Path("probing_questions") / "probing_questions.json"
_UNDATED = datetime(2024, 1, 1, tzinfo=UTC)


@checked
def read_beam(folder: str | Path) -> tuple[LabelledConversation, ...]:
    """The chats of a BEAM folder, by number, each with its questions; also of the folder of one chat.

    Refs are the ids of messages; ``category`` is the ability. Raises ``DatasetError``.

    >>> from memlab.io.ingest import read_beam
    >>> [len(chat.questions) for chat in read_beam("beam/100K")]        # doctest: +SKIP
    [20, 20, 20]
    """
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        raise DatasetError(f"{folder} is no folder. BEAM is a folder of chats: 1/{_CHAT}, 1/{_QUESTIONS}, ...")
    chats = (
        [folder]
        if (folder / _CHAT).is_file()
        else sorted((path.parent for path in folder.glob(f"*/{_CHAT}")), key=_number)
    )
    if not chats:
        raise DatasetError(f"{folder} holds no chat: expected 1/{_CHAT} or {_CHAT}.")
    return tuple(_labelled(chat) for chat in chats)


def _number(chat: Path) -> tuple[int, str]:
    """Chats by number, then what has another name."""
    digits = chat.name.isascii() and chat.name.isdigit()
    return (int(chat.name[:18]) if digits else 10**18, chat.name)


def _labelled(chat: Path) -> LabelledConversation:
    turns = _turns(Place(chat / _CHAT))
    known = {turn.ref: place for place, turn in enumerate(turns)}
    name = f"beam-{chat.resolve().name}"
    return LabelledConversation(Conversation(name, turns), tuple(_questions(Place(chat / _QUESTIONS), known)))


_MARK = re.compile(r"\s*->->\s*[\w/]+,[\w/]+\)?\s*\Z")


def _turns(place: Place) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    at: datetime | None = None
    for session, batch, field in _batches(place):
        at = _time(batch, field, place) or at
        for message, where in _messages(batch, field, place):
            at = _time(message, where, place) or at
            role = place.text(message, "role", where)
            turns.append(
                Turn(
                    _ref(message.get("id"), f"{where}.id", place),
                    role,
                    _MARK.sub("", place.text(message, "content", where, required=False)),
                    session,
                    at or _UNDATED,
                    role=role,
                )
            )
    if not turns:
        raise place.error("(itself)", "no batch has a message.")
    ref, times = Counter(turn.ref for turn in turns).most_common(1)[0]
    if times > 1:
        raise place.error("(itself)", f"{times} messages have the id {ref}.")
    return tuple(turns)


def _batches(place: Place) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Session, batch and place of each."""
    for index, value in enumerate(place.items(loaded(place.path, "a chat of BEAM"), "(itself)", "batches")):
        yield f"session_{index + 1}", place.record(value, f"[{index}]"), f"[{index}]"


def _messages(batch: dict[str, Any], field: str, place: Place) -> Iterator[tuple[dict[str, Any], str]]:
    """Each message of a batch, and its place."""
    for number, turn in enumerate(place.items(batch.get("turns"), f"{field}.turns", "turns")):
        where = f"{field}.turns[{number}]"
        for index, message in enumerate(place.items(turn, where, "messages")):
            yield place.record(message, f"{where}[{index}]"), f"{where}[{index}]"


def _ref(given: object, field: str, place: Place) -> str:
    if isinstance(given, bool) or not isinstance(given, int):
        raise place.error(field, f"expected a whole number, found {named(given)}.")
    return str(given)


def _refs(given: object, field: str, place: Place) -> Iterator[str]:
    """Ids in lists, which may lie in lists."""
    if given is None:
        return
    if not isinstance(given, list):
        yield _ref(given, field, place)
        return
    for one in given:
        yield from _refs(one, field, place)


_DATE = re.compile(r"(?P<month>[A-Za-z]{3,9})[-\s]+(?P<day>\d{1,2}),?[-\s]+(?P<year>\d{4})\Z")


def _time(record: dict[str, Any], field: str, place: Place) -> datetime | None:
    """When a part of a chat was said; None where it has no anchor."""
    anchor = place.text(record, "time_anchor", field, required=False)
    return place.time(anchor, f"{field}.time_anchor", "March-15-2024", _DATE) if anchor else None


def _questions(place: Place, known: Mapping[str, int]) -> Iterator[Question]:
    abilities = place.record(
        loaded(place.path, "BEAM's questions"), "(itself)", "an object with a list for each ability"
    )
    for ability, asked in abilities.items():
        for index, value in enumerate(place.items(asked, ability, "questions")):
            field = f"{ability}[{index}]"
            yield _question(place.record(value, field), ability, known, field, place)


_STATEMENTS = (("original_info", "updated_info"), ("first_statement", "second_statement"))
"""Parts of the evidence of which the one that was said later replaces, or contradicts, the other one."""


def _outdated(parts: Mapping[str, Sequence[str]], order: Mapping[str, int]) -> tuple[str, ...]:
    """What was said first, and none of which is part of what was said later; some files name the later one first."""
    for names in _STATEMENTS:
        first, second = ([ref for ref in parts.get(name, ()) if ref in order] for name in names)
        if first and second and not set(first) & set(second):
            return tuple(min((first, second), key=lambda refs: min(order[ref] for ref in refs)))
    return ()


_ANSWERS = ("answer", "ideal_answer", "ideal_response", "ideal_summary")


def _question(item: dict[str, Any], ability: str, known: Mapping[str, int], field: str, place: Place) -> Question:
    given = item.get("source_chat_ids")
    lists = given if isinstance(given, dict) else {"": given}
    parts: list[tuple[str, tuple[str, ...]]] = []
    for part, ids in lists.items():
        where = f"{field}.source_chat_ids" + (f".{part}" if part else "")
        parts.append((part, tuple(dict.fromkeys(_refs(ids, where, place)))))
    cited = dict.fromkeys(ref for _, refs in parts for ref in refs)
    return Question(
        place.text(item, "question", field),
        ability,
        tuple(ref for ref in cited if ref in known),
        next((place.text(item, name, field, required=False) for name in _ANSWERS if item.get(name)), ""),
        tuple(ref for ref in cited if ref not in known),
        tuple((part, refs) for part, refs in parts if part),
        outdated=_outdated(dict(parts), known),
    )

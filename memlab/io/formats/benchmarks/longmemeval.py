"""Files in the format of LongMemEval (Wu et al. 2025, arXiv 2410.10813): one haystack of chats for each question.

A file is a list of instances with ``question_id`` (ending in ``_abs``: nothing answers it), ``question_type``,
``question``, ``answer``, ``question_date``, and ``haystack_session_ids``, ``haystack_dates``, ``haystack_sessions`` of
one length. A session is a list of ``{"role", "content"}``; turns that hold the evidence carry ``has_answer: true``.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

from memlab.errors import DatasetError
from memlab.io.formats.benchmarks.conversation import Conversation, Turn
from memlab.io.formats.benchmarks.files import Place, loaded, named
from memlab.io.formats.benchmarks.labels import LabelledConversation, Question
from memlab.kernel.base.arguments import checked

__all__ = ["read_longmemeval"]


@checked
def read_longmemeval(path: str | Path) -> tuple[LabelledConversation, ...]:
    """The instances of a LongMemEval file: conversations with one question each, asked at its date.

    Evidence is at the level of turns (``has_answer``); ``category`` is the question's type, or "abstention". A ref is
    ``session:number``, from 1. Raises ``DatasetError``.

    >>> from memlab.io.ingest import read_longmemeval
    >>> read_longmemeval("longmemeval_s_cleaned.json")[0].questions[0].category        # doctest: +SKIP
    'single-session-user'
    """
    path = Path(path).expanduser()
    items = Place(path).items(loaded(path, "a LongMemEval file"), "(itself)", "instances")
    if not items:
        raise DatasetError(f"{path}: a LongMemEval file is a list of instances, and this list is empty.")
    read = tuple(_labelled(item, Place(path, f"instance {index + 1}")) for index, item in enumerate(items))
    name, times = Counter(one.conversation.name for one in read).most_common(1)[0]
    if times > 1:
        raise DatasetError(f'{path}: {times} instances have the question_id "{name}".')
    return read


def _labelled(value: object, place: Place) -> LabelledConversation:
    item = place.record(value, "(itself)")
    name = place.text(item, "question_id", "")
    place = Place(place.path, f"{place.within} ({name[:40]})")
    lists = {
        field: place.items(item.get(field), field, what)
        for field, what in (
            ("haystack_session_ids", "ids"),
            ("haystack_dates", "dates"),
            ("haystack_sessions", "sessions"),
        )
    }
    if len({len(one) for one in lists.values()}) != 1:
        sizes = ", ".join(f"{len(one)} {field}" for field, one in lists.items())
        raise place.error("haystack_sessions", f"the lists differ in length: {sizes}.")
    turns: list[Turn] = []
    evidence: list[str] = []
    names: set[str] = set()
    for index, (id, date, session) in enumerate(zip(*lists.values(), strict=True)):
        at = _time(date, f"haystack_dates[{index}]", place)
        if not isinstance(id, str) or not id.strip():
            raise place.error(f"haystack_session_ids[{index}]", f"expected text, found {named(id)}.")
        # a session may stand in a haystack twice, under one id
        prefix = f"{id}#{index}" if id in names else id
        names.add(id)
        for number, turn in enumerate(place.items(session, f"haystack_sessions[{index}]", "turns"), 1):
            field = f"haystack_sessions[{index}][{number - 1}]"
            said = place.record(turn, field)
            role = place.text(said, "role", field)
            ref, text = f"{prefix}:{number}", place.text(said, "content", field, required=False)
            turns.append(Turn(ref, role, text, f"{index}-{id}", at, role=role))
            if _marked(said, field, place):
                evidence.append(ref)
    if not turns:
        raise place.error("haystack_sessions", "no session has a turn.")
    question = Question(
        place.text(item, "question", ""),
        "abstention" if name.endswith("_abs") else place.text(item, "question_type", ""),
        tuple(evidence),
        _answer(item.get("answer"), place),
        at=_time(item.get("question_date"), "question_date", place),
    )
    # some files are not sorted by time; a lab remembers in the order of the world
    turns.sort(key=lambda turn: turn.at)
    return LabelledConversation(Conversation(name, tuple(turns)), (question,))


def _marked(said: dict[str, Any], field: str, place: Place) -> bool:
    marked = said.get("has_answer", False)
    if marked is None:
        return False
    if not isinstance(marked, bool):
        raise place.error(f"{field}.has_answer", f"expected true or false, found {named(marked)}.")
    return marked


def _answer(answer: object, place: Place) -> str:
    if answer is None or isinstance(answer, str):
        return answer or ""
    if isinstance(answer, bool | int | float):
        return str(answer)
    raise place.error("answer", f"expected text or a number, found {named(answer)}.")


_DATE = re.compile(
    r"(?P<year>\d{4})/(?P<month>\d{2})/(?P<day>\d{2})\s*(?:\([A-Za-z]{3}\))?\s*"
    r"(?:(?P<hour>\d{2}):(?P<minute>\d{2}))?\Z"
)


def _time(given: object, field: str, place: Place) -> datetime:
    return place.time(given, field, "2023/05/20 (Sat) 02:21", _DATE)

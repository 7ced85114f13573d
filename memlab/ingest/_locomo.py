"""Files in the format of LoCoMo (Maharana et al. 2024, arXiv 2402.17753), with the repairs that the original needs.

The ten conversations hold evidence such as ``"D8:6; D9:17"``, ``"D9:1 D4:4"``, ``"D:11:26"``, ``"D30:05"`` and ``"D"``,
ids that no turn has, repeated ids, questions without evidence, dates of sessions that do not exist, and answers
that are numbers. All of these are read; what is not a LoCoMo file is a ``DatasetError`` that names the place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memlab.arguments import checked
from memlab.errors import DatasetError
from memlab.ingest._conversation import Conversation, Turn

__all__ = ["LabelledConversation", "Question", "read_locomo"]


@checked
@dataclass(frozen=True, slots=True)
class Question:
    """A question with its labels. ``evidence`` are refs of turns that exist; ``dropped`` is what the file said beside.

    ``category`` is 1-5 and has no name here, since published names conflict; 5 is adversarial.
    """

    text: str
    category: int
    evidence: tuple[str, ...]
    answer: str = ""
    dropped: tuple[str, ...] = ()


@checked
@dataclass(frozen=True, slots=True)
class LabelledConversation:
    """A conversation and, apart from it, what is asked about it."""

    conversation: Conversation
    questions: tuple[Question, ...]


@checked
def read_locomo(path: str | Path) -> tuple[LabelledConversation, ...]:
    """The conversations of a LoCoMo file, each with its questions. Raises ``DatasetError``.

    >>> from memlab.ingest import read_locomo
    >>> labelled = read_locomo("locomo10.json")[0]                      # doctest: +SKIP
    >>> labelled.conversation.speakers, len(labelled.questions)         # doctest: +SKIP
    (('Caroline', 'Melanie'), 199)
    """
    path = Path(path).expanduser()
    samples = _loaded(path)
    if not isinstance(samples, list) or not samples:
        raise DatasetError(f"{path}: a LoCoMo file is a list of conversations, not {_named(samples)}.")
    read = tuple(_labelled(sample, _Place(path, index)) for index, sample in enumerate(samples))
    names = [labelled.conversation.name for labelled in read]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise DatasetError(f'{path}: two conversations are called "{repeated}"; give each a sample_id of its own.')
    return read


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the file something was met, and the one way to complain about it."""

    path: Path
    index: int
    name: str = ""

    def error(self, field: str, problem: str) -> DatasetError:
        which = f"conversation {self.index + 1}" + (f" ({self.name})" if self.name else "")
        return DatasetError(f"{self.path}: {which}, field {field}: {problem}")

    def text(self, record: dict[str, Any], key: str, field: str, *, required: bool = True) -> str:
        value = record.get(key)
        if value is None and not required:
            return ""
        if not isinstance(value, str) or (required and not value.strip()):
            raise self.error(f"{field}.{key}", f"expected text, found {_named(value)}.")
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise self.error(f"{field}.{key}", "the text holds half of a surrogate pair and is not Unicode.")
        return value.strip()


def _loaded(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}.") from error
    except json.JSONDecodeError as error:
        raise DatasetError(f"{path}, line {error.lineno}, column {error.colno}: not JSON: {error.msg}.") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise DatasetError(f"{path} is not a LoCoMo file: {error}.") from error
    except RecursionError as error:
        raise DatasetError(f"{path} is nested too deeply to be a LoCoMo file.") from error


def _labelled(sample: object, place: _Place) -> LabelledConversation:
    if not isinstance(sample, dict):
        raise place.error("(itself)", f"expected an object, found {_named(sample)}.")
    name = place.text(sample, "sample_id", "(top)", required=False) or f"conversation-{place.index + 1}"
    place = _Place(place.path, place.index, name)
    turns = _turns(sample.get("conversation"), place)
    known = {turn.ref for turn in turns}
    items = sample.get("qa", [])
    if not isinstance(items, list):
        raise place.error("qa", f"expected a list of questions, found {_named(items)}.")
    questions = tuple(_question(item, known, f"qa[{index}]", place) for index, item in enumerate(items))
    return LabelledConversation(Conversation(name, turns), questions)


_SESSION = re.compile(r"session_(\d{1,6})\Z")


def _turns(record: object, place: _Place) -> tuple[Turn, ...]:
    if not isinstance(record, dict):
        raise place.error("conversation", f"expected an object with session_1, ..., found {_named(record)}.")
    numbered = sorted((int(match[1]), key) for key in record if (match := _SESSION.match(key)))
    turns: list[Turn] = []
    for _, session in numbered:
        items = record[session]
        if not isinstance(items, list):
            raise place.error(session, f"expected a list of turns, found {_named(items)}.")
        if not items:
            continue
        at = _time(record, f"{session}_date_time", place)
        for index, item in enumerate(items):
            field = f"{session}[{index}]"
            if not isinstance(item, dict):
                raise place.error(field, f"expected an object, found {_named(item)}.")
            ref = place.text(item, "dia_id", field)
            turns.append(
                Turn(
                    _canonical(ref) or ref,
                    place.text(item, "speaker", field),
                    place.text(item, "text", field, required=False),
                    session,
                    at,
                    place.text(item, "blip_caption", field, required=False),
                )
            )
    if not turns:
        raise place.error("conversation", "no session_1, session_2, ... with turns.")
    return tuple(turns)


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TIME = re.compile(r"(\d{1,2}):(\d{2})\s*([ap])\.?m\.?\s+on\s+(\d{1,2})\s+([a-z]+),?\s+(\d{4})\Z", re.IGNORECASE)


def _time(record: dict[str, Any], key: str, place: _Place) -> datetime:
    """``1:56 pm on 8 May, 2023`` or ISO 8601, as UTC. Month names are English whatever the locale."""
    time = place.text(record, key, "conversation")
    match = _TIME.match(time)
    try:
        if match is None:
            at = datetime.fromisoformat(time)
            return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        hour, minute, half, day, month, year = match.groups()
        if not 1 <= int(hour) <= 12:
            raise ValueError(hour)
        clock = int(hour) % 12 + (12 if half.lower() == "p" else 0)
        number = _MONTHS.index(month[:3].lower()) + 1
        return datetime(int(year), number, int(day), clock, int(minute), tzinfo=UTC)
    except (ValueError, OverflowError):
        raise place.error(f"conversation.{key}", f'"{time}" is not a time such as "1:56 pm on 8 May, 2023".') from None


_ID = re.compile(r"D:?0*(\d+):0*(\d+)\Z", re.IGNORECASE)
_BETWEEN = re.compile(r"[;,\s]+")


def _canonical(spelled: str) -> str | None:
    """``D11:26`` of ``D:11:26`` and of ``D11:026``; None if it is no id at all."""
    match = _ID.match(spelled)
    return f"D{match[1]}:{match[2]}" if match else None


def _question(item: object, known: Collection[str], field: str, place: _Place) -> Question:
    if not isinstance(item, dict):
        raise place.error(field, f"expected an object, found {_named(item)}.")
    category = item.get("category")
    if isinstance(category, bool) or not isinstance(category, int) or not 1 <= category <= 5:
        raise place.error(f"{field}.category", f"expected 1, 2, 3, 4 or 5, found {category!r}.")
    evidence, dropped = _evidence(item.get("evidence"), known, field, place)
    return Question(
        place.text(item, "question", field),
        category,
        evidence,
        _answer(item, field, place),
        dropped,
    )


def _evidence(
    given: object, known: Collection[str], field: str, place: _Place
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    listed = [] if given is None else [given] if isinstance(given, str) else given
    if not isinstance(listed, list):
        raise place.error(f"{field}.evidence", f"expected a list of turn ids, found {_named(given)}.")
    found: dict[str, None] = {}
    dropped: dict[str, None] = {}
    for entry in listed:
        if not isinstance(entry, str):
            raise place.error(f"{field}.evidence", f"expected turn ids as text, found {_named(entry)}.")
        for spelled in filter(None, _BETWEEN.split(entry)):
            # a turn may have an id of another form; then only the exact spelling names it
            ref = spelled if spelled in known else _canonical(spelled)
            if ref in known and ref is not None:
                found[ref] = None
            else:
                dropped[spelled] = None
    return tuple(found), tuple(dropped)


def _answer(item: dict[str, Any], field: str, place: _Place) -> str:
    answer = item.get("answer", item.get("adversarial_answer"))
    match answer:
        case None:
            return ""
        case str():
            return answer
        case bool() | int() | float():
            return str(answer)
        case list():
            return ", ".join(str(part) for part in answer)
    raise place.error(f"{field}.answer", f"expected text, a number or a list, found {_named(answer)}.")


def _named(value: object) -> str:
    """A JSON value by its kind, for a message."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case dict():
            return "an object"
        case list():
            return "a list" if value else "an empty list"
        case str():
            return f'"{value[:40]}"' if value.strip() else "empty text"
    return f"the number {value}"

"""Files in the format of LoCoMo (Maharana et al. 2024, arXiv 2402.17753), with the repairs that the original needs.

The ten conversations hold evidence such as ``"D8:6; D9:17"``, ``"D9:1 D4:4"``, ``"D:11:26"``, ``"D30:05"`` and ``"D"``,
ids that no turn has, repeated ids, questions without evidence, dates of sessions that do not exist, and answers
that are numbers. All of these are read; what is not a LoCoMo file is a ``DatasetError`` that names the place.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import urllib.error
import urllib.request
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from http.client import HTTPException
from pathlib import Path
from typing import Annotated, Any

from memlab.errors import DatasetError
from memlab.io.formats.labelled import (
    Conversation,
    LabelledConversation,
    Location,
    Question,
    Turn,
    describe_value,
    load_json,
)
from memlab.kernel.base.arguments import Taken, checked

__all__ = ["LOCOMO_SHA256", "LOCOMO_URL", "correct_evidence", "download_locomo", "read_locomo"]


@checked
def read_locomo(path: str | Path) -> tuple[LabelledConversation, ...]:
    """The conversations of a LoCoMo file, each with its questions. Raises ``DatasetError``.

    >>> from memlab.io.ingest import read_locomo
    >>> labelled = read_locomo("locomo10.json")[0]                      # doctest: +SKIP
    >>> labelled.conversation.speakers, len(labelled.questions)         # doctest: +SKIP
    (('Caroline', 'Melanie'), 199)
    """
    path = Path(path).expanduser()
    samples = load_json(path, "a LoCoMo file")
    if not isinstance(samples, list) or not samples:
        raise DatasetError(
            f"{path}: a LoCoMo file is a list of conversations, not {describe_value(samples)}."
        )
    read = tuple(
        _read_sample(
            sample, Location(path, f"conversation {index + 1}"), f"conversation-{index + 1}"
        )
        for index, sample in enumerate(samples)
    )
    names = [labelled.conversation.name for labelled in read]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise DatasetError(
            f'{path}: two conversations are called "{repeated}"; give each a sample_id of its own.'
        )
    return read


def _read_sample(item: object, place: Location, unnamed: str) -> LabelledConversation:
    sample = place.record(item, "(itself)")
    name = place.text(sample, "sample_id", "(top)", required=False)
    if name:
        place = Location(place.path, f"{place.within} ({name})")
    turns = _read_turns(sample.get("conversation"), place)
    conversation = Conversation(name or unnamed, turns)
    known = conversation.refs
    items = place.records(sample.get("qa", []), "qa", "questions")
    return LabelledConversation(
        conversation, tuple(_build_question(item, known, field, place) for field, item in items)
    )


_SESSION = re.compile(r"session_(\d{1,6})\Z")


def _read_turns(given: object, place: Location) -> tuple[Turn, ...]:
    record = place.record(given, "conversation", "an object with session_1, ...")
    numbered = sorted((int(match[1]), key) for key in record if (match := _SESSION.match(key)))
    turns: list[Turn] = []
    for _, session in numbered:
        for field, item in place.records(record[session], session, "turns"):
            at = _parse_time(record, f"{session}_date_time", place)
            ref, speaker = (place.text(item, name, field) for name in ("dia_id", "speaker"))
            text, caption = (
                place.text(item, name, field, required=False) for name in ("text", "blip_caption")
            )
            turns.append(Turn(parse_ref(ref) or ref, speaker, text, session, at, caption))
    if not turns:
        raise place.error("conversation", "no session_1, session_2, ... with turns.")
    return tuple(turns)


_TIME = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})\s*(?P<half>[ap])\.?m\.?\s+on\s+"
    r"(?P<day>\d{1,2})\s+(?P<month>[a-z]+),?\s+(?P<year>\d{4})\Z",
    re.IGNORECASE,
)


def _parse_time(record: dict[str, Any], key: str, place: Location) -> datetime:
    time = place.text(record, key, "conversation")
    return place.time(time, f"conversation.{key}", "1:56 pm on 8 May, 2023", _TIME)


_ID = re.compile(r"D:?0*(\d+):0*(\d+)\Z", re.IGNORECASE)
_BETWEEN = re.compile(r"[;,\s]+")


def parse_ref(spelled: str) -> str | None:
    """``D11:26`` of ``D:11:26`` and of ``D11:026``; None if it is no id at all."""
    match = _ID.match(spelled)
    return f"D{match[1]}:{match[2]}" if match else None


def _build_question(
    item: dict[str, Any], known: Collection[str], field: str, place: Location
) -> Question:
    category = item.get("category")
    if isinstance(category, bool) or not isinstance(category, int) or not 1 <= category <= 5:
        raise place.error(f"{field}.category", f"expected 1, 2, 3, 4 or 5, found {category!r}.")
    evidence, dropped = _split_evidence(item.get("evidence"), known, field, place)
    return Question(
        place.text(item, "question", field),
        category,
        evidence,
        _format_answer(item, field, place),
        dropped,
    )


def _split_evidence(
    given: object, known: Collection[str], field: str, place: Location
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    listed = [] if given is None else [given] if isinstance(given, str) else given
    listed = place.items(listed, f"{field}.evidence", "turn ids")
    found: dict[str, None] = {}
    dropped: dict[str, None] = {}
    for entry in listed:
        if not isinstance(entry, str):
            raise place.error(
                f"{field}.evidence", f"expected turn ids as text, found {describe_value(entry)}."
            )
        for spelled in filter(None, _BETWEEN.split(entry)):
            # a turn may have an id of another form; then only the exact spelling names it
            ref = spelled if spelled in known else parse_ref(spelled)
            if ref in known and ref is not None:
                found[ref] = None
            else:
                dropped[spelled] = None
    return tuple(found), tuple(dropped)


def _format_answer(item: dict[str, Any], field: str, place: Location) -> str:
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
    raise place.error(
        f"{field}.answer", f"expected text, a number or a list, found {describe_value(answer)}."
    )


# -- corrected labels -------------------------------------------------------------------------------------------------


@checked
def correct_evidence(
    conversations: Annotated[
        Sequence[LabelledConversation], Taken("what memlab.ingest.read_locomo(path) returns")
    ],
    path: str | Path,
) -> tuple[LabelledConversation, ...]:
    """The conversations, with the evidence that a file of corrections gives in place of what was cited.

    The file is a list of objects with ``sample_id``, ``qa`` (the question's place, from 0), ``question`` and
    ``correct`` (ids of turns). Corrections of conversations that are not given are passed over. Raises ``DatasetError``
    for one that names another question than stands there, or a turn that does not exist.

    >>> from memlab.io.ingest import correct_evidence, read_locomo
    >>> correct_evidence(read_locomo("locomo10.json"), "corrections.json")             # doctest: +SKIP
    """
    path = Path(path).expanduser()
    place = Location(path)
    held = {labelled.conversation.name: index for index, labelled in enumerate(conversations)}
    questions = [list(labelled.questions) for labelled in conversations]
    known = [labelled.conversation.refs for labelled in conversations]
    applied = 0
    for field, item in place.records(
        load_json(path, "a file of corrections"), "(itself)", "corrections"
    ):
        at = held.get(place.text(item, "sample_id", field))
        if at is None:
            continue
        number = _check_number(item, field, questions[at], place)
        questions[at][number] = replace(
            questions[at][number], evidence=_check_refs(item, field, known[at], place)
        )
        applied += 1
    if not applied:
        raise DatasetError(
            f"{path} corrects no question of {', '.join(held) or 'no conversation'}."
        )
    return tuple(
        replace(labelled, questions=tuple(corrected))
        for labelled, corrected in zip(conversations, questions, strict=True)
    )


def _check_number(
    item: dict[str, Any], field: str, questions: Sequence[Question], place: Location
) -> int:
    number = item.get("qa")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(questions):
        raise place.error(
            f"{field}.qa",
            f"expected the place of a question, 0-{len(questions) - 1}, found {describe_value(number)}.",
        )
    text = place.text(item, "question", field)
    if questions[number].text != text:
        raise place.error(
            f"{field}.question",
            f'"{text[:60]}" is not question {number}, "{questions[number].text[:60]}".',
        )
    return number


def _check_refs(
    item: dict[str, Any], field: str, known: frozenset[str], place: Location
) -> tuple[str, ...]:
    refs = place.items(item.get("correct"), f"{field}.correct", "turn ids")
    for ref in refs:
        if not isinstance(ref, str) or ref not in known:
            raise place.error(
                f"{field}.correct", f"the conversation has no turn {describe_value(ref)}."
            )
    return tuple(dict.fromkeys(refs))


# -- download ---------------------------------------------------------------------------------------------------------

LOCOMO_URL = "https://raw.githubusercontent.com/snap-research/locomo/main/data/locomo10.json"
LOCOMO_SHA256 = "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4"
_LARGEST = 64 * 2**20


@checked
def download_locomo(
    target: str | Path, *, url: str = LOCOMO_URL, sha256: str = LOCOMO_SHA256, timeout: float = 60
) -> Path:
    """The path of the file, fetched to ``target`` unless it is there already; its sha256 is checked either way.

    The data is licensed CC BY-NC 4.0 by its authors (Maharana et al. 2024, arXiv 2402.17753). Nothing is left at
    ``target`` when the download fails or its hash differs. Raises ``DatasetError``.
    """
    target = Path(target).expanduser()
    if target.exists():
        try:
            found = hashlib.sha256(target.read_bytes()).hexdigest()
        except OSError as error:
            raise DatasetError(f"{target} cannot be read: {error.strerror}.") from error
        if found == sha256:
            return target
        raise DatasetError(
            f"{target} exists and is another file (sha256 {found}). Move it, or name another target."
        )
    try:
        with urllib.request.urlopen(url, timeout=timeout) as response:
            body = response.read(_LARGEST + 1)
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise DatasetError(
            f"{url} could not be fetched: {reason}. Fetch it by hand and pass its path."
        ) from error
    found = hashlib.sha256(body).hexdigest()
    if found != sha256:
        raise DatasetError(
            f"{url} sent a file with sha256 {found}; {sha256} was expected. Nothing was kept."
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _write_atomically(target, body)
    except OSError as error:
        raise DatasetError(
            f"{target} cannot be written: {error.strerror}. Name another target."
        ) from error
    return target


def _write_atomically(target: Path, body: bytes) -> None:
    """Write the whole file or nothing."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)

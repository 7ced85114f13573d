"""Reader of LoCoMo (Maharana et al. 2024, arXiv 2402.17753), with repairs.

The ten conversations contain these deviations, all of which are read:

- evidence such as ``"D8:6; D9:17"``, ``"D9:1 D4:4"``, ``"D:11:26"``, ``"D30:05"`` and ``"D"``
- ids that no turn has, and repeated ids
- questions without evidence
- dates of sessions that do not exist
- answers that are numbers

Any other deviation is a ``DatasetError`` that names the location.
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
    describe_json,
    load_json,
)
from memlab.kernel.base.arguments import Taken, checked


@checked
def read_locomo(path: str | Path) -> tuple[LabelledConversation, ...]:
    """Read the conversations of a LoCoMo file with their questions.

    Parameters
    ----------
    path
        Path of the file.

    Returns
    -------
    tuple of LabelledConversation
        The conversations, in the order of the file.

    Raises
    ------
    DatasetError
        If the file is malformed, or two conversations have the same name.

    Examples
    --------
    >>> from memlab.io.ingest import read_locomo
    >>> labelled = read_locomo("locomo10.json")[0]                      # doctest: +SKIP
    >>> labelled.conversation.speakers, len(labelled.questions)         # doctest: +SKIP
    (('Caroline', 'Melanie'), 199)
    """
    path = Path(path).expanduser()
    samples = load_json(path, "a LoCoMo file")
    if not isinstance(samples, list) or not samples:
        raise DatasetError(
            f"{path}: a LoCoMo file must be a list of conversations, not {describe_json(samples)}."
        )
    labelled_samples = tuple(
        _read_sample(
            sample, Location(path, f"conversation {index + 1}"), f"conversation-{index + 1}"
        )
        for index, sample in enumerate(samples)
    )
    names = [labelled.conversation.name for labelled in labelled_samples]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise DatasetError(
            f'{path}: two conversations have the name "{repeated}". Give each its own sample_id.'
        )
    return labelled_samples


def _read_sample(item: object, location: Location, unnamed: str) -> LabelledConversation:
    """Read one conversation of a LoCoMo file with its questions."""
    sample = location.record(item, "(itself)")
    name = location.text(sample, "sample_id", "(top)", required=False)
    if name:
        location = Location(location.path, f"{location.within} ({name})")
    turns = _read_turns(sample.get("conversation"), location)
    conversation = Conversation(name or unnamed, turns)
    refs = conversation.refs
    items = location.records(sample.get("qa", []), "qa", "questions")
    return LabelledConversation(
        conversation, tuple(_build_question(item, refs, field, location) for field, item in items)
    )


# Keys of sessions.
_SESSION = re.compile(r"session_(\d{1,6})\Z")


def _read_turns(value: object, location: Location) -> tuple[Turn, ...]:
    """Read the turns in all sessions of a LoCoMo conversation."""
    record = location.record(value, "conversation", "an object with session_1, ...")
    numbered = sorted((int(match[1]), key) for key in record if (match := _SESSION.match(key)))
    turns: list[Turn] = []
    for _, session in numbered:
        for field, item in location.records(record[session], session, "turns"):
            at = _parse_time(record, f"{session}_date_time", location)
            ref, speaker = (location.text(item, name, field) for name in ("dia_id", "speaker"))
            text, caption = (
                location.text(item, name, field, required=False)
                for name in ("text", "blip_caption")
            )
            turns.append(Turn(parse_ref(ref) or ref, speaker, text, session, at, caption))
    if not turns:
        raise location.error("conversation", "there are no turns in session_1, session_2, ...")
    return tuple(turns)


# A time such as "1:56 pm on 8 May, 2023".
_TIME = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})\s*(?P<half>[ap])\.?m\.?\s+on\s+"
    r"(?P<day>\d{1,2})\s+(?P<month>[a-z]+),?\s+(?P<year>\d{4})\Z",
    re.IGNORECASE,
)


def _parse_time(record: dict[str, Any], key: str, location: Location) -> datetime:
    """Return the time of a LoCoMo session, such as "1:56 pm on 8 May, 2023"."""
    time = location.text(record, key, "conversation")
    return location.time(time, f"conversation.{key}", "1:56 pm on 8 May, 2023", _TIME)


# Spellings of a turn's id, and separators between ids in the original file.
_ID = re.compile(r"D:?0*(\d+):0*(\d+)\Z", re.IGNORECASE)
_BETWEEN = re.compile(r"[;,\s]+")


def parse_ref(id: str) -> str | None:
    """Normalise a turn id: ``D:11:026`` becomes ``D11:26``. Return None for an invalid id."""
    match = _ID.match(id)
    return f"D{match[1]}:{match[2]}" if match else None


def _build_question(
    item: dict[str, Any], refs: Collection[str], field: str, location: Location
) -> Question:
    """Build a question; ``dropped`` contains the evidence that matches no turn."""
    category = item.get("category")
    if isinstance(category, bool) or not isinstance(category, int) or not 1 <= category <= 5:
        raise location.error(f"{field}.category", f"expected 1, 2, 3, 4 or 5, found {category!r}.")
    evidence, dropped = _split_evidence(item.get("evidence"), refs, field, location)
    return Question(
        location.text(item, "question", field),
        category,
        evidence,
        _format_answer(item, field, location),
        dropped,
    )


def _split_evidence(
    value: object, refs: Collection[str], field: str, location: Location
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split evidence into refs of existing turns, and ids that match no turn."""
    entries = [] if value is None else [value] if isinstance(value, str) else value
    entries = location.items(entries, f"{field}.evidence", "turn ids")
    evidence: dict[str, None] = {}
    dropped: dict[str, None] = {}
    for entry in entries:
        if not isinstance(entry, str):
            raise location.error(
                f"{field}.evidence", f"expected turn ids as text, found {describe_json(entry)}."
            )
        for id in filter(None, _BETWEEN.split(entry)):
            # a turn may have an id of another form, which only its exact spelling names
            ref = id if id in refs else parse_ref(id)
            if ref in refs and ref is not None:
                evidence[ref] = None
            else:
                dropped[id] = None
    return tuple(evidence), tuple(dropped)


def _format_answer(item: dict[str, Any], field: str, location: Location) -> str:
    """Return an answer as text, with the items of a list joined by commas; "" without an answer."""
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
    raise location.error(
        f"{field}.answer", f"expected text, a number or a list, found {describe_json(answer)}."
    )


# -- corrected labels -------------------------------------------------------------------------------------------------


@checked
def correct_evidence(
    conversations: Annotated[
        Sequence[LabelledConversation], Taken("what memlab.ingest.read_locomo(path) returns")
    ],
    path: str | Path,
) -> tuple[LabelledConversation, ...]:
    """Replace the evidence of questions by the evidence in a file of corrections.

    The file is a list of objects with ``sample_id``, ``qa`` (the question's index, from 0), ``question`` and ``correct``
    (ids of turns). Corrections of other conversations are ignored.

    Parameters
    ----------
    conversations
        Conversations of ``read_locomo``.
    path
        Path of the file of corrections.

    Returns
    -------
    tuple of LabelledConversation
        The conversations with corrected evidence.

    Raises
    ------
    DatasetError
        If a correction names another question than the file has at this index, or a turn that does not exist.

    Examples
    --------
    >>> from memlab.io.ingest import correct_evidence, read_locomo
    >>> correct_evidence(read_locomo("locomo10.json"), "corrections.json")             # doctest: +SKIP
    """
    path = Path(path).expanduser()
    location = Location(path)
    index_by_name = {
        labelled.conversation.name: index for index, labelled in enumerate(conversations)
    }
    questions = [list(labelled.questions) for labelled in conversations]
    refs = [labelled.conversation.refs for labelled in conversations]
    applied = 0
    for field, item in location.records(
        load_json(path, "a file of corrections"), "(itself)", "corrections"
    ):
        index = index_by_name.get(location.text(item, "sample_id", field))
        if index is None:
            continue
        number = _check_number(item, field, questions[index], location)
        questions[index][number] = replace(
            questions[index][number], evidence=_check_refs(item, field, refs[index], location)
        )
        applied += 1
    if not applied:
        raise DatasetError(
            f"{path} corrects no question of the loaded conversations: {', '.join(index_by_name) or 'there are none'}."
        )
    return tuple(
        replace(labelled, questions=tuple(corrected))
        for labelled, corrected in zip(conversations, questions, strict=True)
    )


def _check_number(
    item: dict[str, Any], field: str, questions: Sequence[Question], location: Location
) -> int:
    """Check that a correction names an existing question; return its index."""
    number = item.get("qa")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(questions):
        raise location.error(
            f"{field}.qa",
            f"expected the index of a question, 0-{len(questions) - 1}, found {describe_json(number)}.",
        )
    text = location.text(item, "question", field)
    if questions[number].text != text:
        raise location.error(
            f"{field}.question",
            f'"{text[:60]}" is not question {number}, "{questions[number].text[:60]}".',
        )
    return number


def _check_refs(
    item: dict[str, Any], field: str, existing: frozenset[str], location: Location
) -> tuple[str, ...]:
    """Check that a correction names existing turns; return their refs."""
    refs = location.items(item.get("correct"), f"{field}.correct", "turn ids")
    for ref in refs:
        if not isinstance(ref, str) or ref not in existing:
            raise location.error(
                f"{field}.correct", f"the conversation has no turn {describe_json(ref)}."
            )
    return tuple(dict.fromkeys(refs))


# -- download ---------------------------------------------------------------------------------------------------------

# The published file and its digest.
LOCOMO_URL = "https://raw.githubusercontent.com/snap-research/locomo/main/data/locomo10.json"
LOCOMO_SHA256 = "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4"
# Bytes of a download; the file has 2.8 MB.
_MAX_DOWNLOAD = 64 * 2**20


@checked
def download_locomo(
    target: str | Path, *, url: str = LOCOMO_URL, sha256: str = LOCOMO_SHA256, timeout: float = 60
) -> Path:
    """Download the LoCoMo file if it does not exist, and check its digest.

    The authors license the data under CC BY-NC 4.0. A failed download leaves nothing at ``target``.

    Parameters
    ----------
    target
        Path of the file.
    url
        Address of the file.
    sha256
        Expected digest.
    timeout
        Seconds that the server may take to respond.

    Returns
    -------
    Path
        Path of the file.

    Raises
    ------
    DatasetError
        If the download fails, the digest differs, or the file cannot be written.

    Examples
    --------
    >>> from memlab.io.ingest import download_locomo
    >>> download_locomo("locomo10.json").name                           # doctest: +SKIP
    'locomo10.json'
    """
    target = Path(target).expanduser()
    if target.exists():
        try:
            digest = hashlib.sha256(target.read_bytes()).hexdigest()
        except OSError as error:
            raise DatasetError(f"{target} cannot be read: {error.strerror}.") from error
        if digest == sha256:
            return target
        raise DatasetError(
            f"{target} exists and is another file (sha256 {digest}). Move it, or give another target."
        )
    try:
        with urllib.request.urlopen(url, timeout=timeout) as response:
            body = response.read(_MAX_DOWNLOAD + 1)
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise DatasetError(
            f"{url} could not be downloaded: {reason}. Download it by hand and pass its path."
        ) from error
    digest = hashlib.sha256(body).hexdigest()
    if digest != sha256:
        raise DatasetError(
            f"{url} sent a file with the sha256 {digest}, not {sha256}. It was discarded."
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _write_atomically(target, body)
    except OSError as error:
        raise DatasetError(
            f"{target} cannot be written: {error.strerror}. Give another target."
        ) from error
    return target


def _write_atomically(target: Path, body: bytes) -> None:
    """Write a file atomically, so that the file appears complete or not at all."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)

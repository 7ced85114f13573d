"""Readers of the benchmarks BEAM, LongMemEval and LMEB.

BEAM ("Beyond a Million Tokens", ICLR 2026) is a folder for each chat of a user with an assistant.

    1/chat.json                                     batches of turns; a turn is a few messages with role, id, content
    1/probing_questions/probing_questions.json      ten abilities, each with questions and ``source_chat_ids``

A batch is a session. A ``time_anchor`` ("March-15-2024") dates its message and the messages that
follow; a chat without anchors begins at the start of 2024. Messages end with a mark of the plan
that generated them ("->-> 1,15"), which is removed. Evidence is a list of message ids, or lists
under names such as ``original_info``; questions of abstention have none.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memlab.errors import DatasetError
from memlab.io.formats.labelled import (
    Conversation,
    LabelledConversation,
    Location,
    Question,
    Turn,
    describe_json,
    load_json,
    open_text,
    read_json_lines,
)
from memlab.kernel.base.arguments import checked

# Names and paths of the benchmark, in the folder of each chat.
_CHAT = "chat.json"
_QUESTIONS = Path("probing_questions") / "probing_questions.json"
# A chat without dates begins here, in the year of the dated chats.
_UNDATED = datetime(2024, 1, 1, tzinfo=UTC)


@checked
def read_beam(folder: str | Path) -> tuple[LabelledConversation, ...]:
    """Read the chats of a BEAM folder with their questions.

    A turn's ref is the id of the message; a question's category is the ability.

    Parameters
    ----------
    folder
        Folder of chats, or of a single chat.

    Returns
    -------
    tuple of LabelledConversation
        The chats, by number.

    Raises
    ------
    DatasetError
        If the folder contains no chat, or a file is malformed.

    Examples
    --------
    >>> from memlab.io.ingest import read_beam
    >>> [len(chat.questions) for chat in read_beam("beam/100K")]        # doctest: +SKIP
    [20, 20, 20]
    """
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        raise DatasetError(
            f"{folder} is not a folder. BEAM is a folder of chats: 1/{_CHAT}, 1/{_QUESTIONS}, ..."
        )
    chats = (
        [folder]
        if (folder / _CHAT).is_file()
        else sorted((path.parent for path in folder.glob(f"*/{_CHAT}")), key=_chat_order)
    )
    if not chats:
        raise DatasetError(f"{folder} contains no chat. Expected 1/{_CHAT} or {_CHAT}.")
    return tuple(_read_chat(chat) for chat in chats)


def _chat_order(chat: Path) -> tuple[int, str]:
    """Return the sort key of a chat, so that numbers come first and other names follow."""
    digits = chat.name.isascii() and chat.name.isdigit()
    return (int(chat.name[:18]) if digits else 10**18, chat.name)


def _read_chat(chat: Path) -> LabelledConversation:
    """Read the chat and the questions of a folder as a labelled conversation."""
    turns = _read_turns(Location(chat / _CHAT))
    order = {turn.ref: position for position, turn in enumerate(turns)}
    name = f"beam-{chat.resolve().name}"
    return LabelledConversation(
        Conversation(name, turns), tuple(_read_questions(Location(chat / _QUESTIONS), order))
    )


# The generator's reference to its plan, at the end of a message: "->-> 1,15".
_MARK = re.compile(r"(?<!\s)\s*->->\s*[\w/]+,[\w/]+\)?\s*\Z")


def _read_turns(location: Location) -> tuple[Turn, ...]:
    """Read the messages of a BEAM chat as turns."""
    turns: list[Turn] = []
    at: datetime | None = None
    batches = location.records(load_json(location.path, "a chat of BEAM"), "(itself)", "batches")
    for number, (field, batch) in enumerate(batches, 1):
        at = _read_anchor(batch, field, location) or at
        for where, message in _list_messages(batch, field, location):
            at = _read_anchor(message, where, location) or at
            role, ref = (
                location.text(message, "role", where),
                _check_ref(message.get("id"), f"{where}.id", location),
            )
            text = _MARK.sub("", location.text(message, "content", where, required=False))
            turns.append(Turn(ref, role, text, f"session_{number}", at or _UNDATED, role=role))
    if not turns:
        raise location.error("(itself)", "no batch contains a message.")
    ref, times = Counter(turn.ref for turn in turns).most_common(1)[0]
    if times > 1:
        raise location.error("(itself)", f"{times} messages have the id {ref}.")
    return tuple(turns)


def _list_messages(
    batch: dict[str, Any], field: str, location: Location
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the field name and the record of each message of a batch."""
    for number, turn in enumerate(location.items(batch.get("turns"), f"{field}.turns", "turns")):
        yield from location.records(turn, f"{field}.turns[{number}]", "messages")


def _check_ref(value: object, field: str, location: Location) -> str:
    """Return an id as a ref, or raise DatasetError for an id that is not an integer."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise location.error(field, f"expected an integer, found {describe_json(value)}.")
    return str(value)


def _list_refs(value: object, field: str, location: Location) -> Iterator[str]:
    """Yield the message ids in nested lists of evidence, as refs."""
    if value is None:
        return
    if not isinstance(value, list):
        yield _check_ref(value, field, location)
        return
    for item in value:
        yield from _list_refs(item, field, location)


# A date such as "March-15-2024".
_ANCHOR = re.compile(r"(?P<month>[A-Za-z]{3,9})[-\s]+(?P<day>\d{1,2}),?[-\s]+(?P<year>\d{4})\Z")


def _read_anchor(record: dict[str, Any], field: str, location: Location) -> datetime | None:
    """Return the time in a record's ``time_anchor``, or None without an anchor."""
    anchor = location.text(record, "time_anchor", field, required=False)
    return (
        location.time(anchor, f"{field}.time_anchor", "March-15-2024", _ANCHOR) if anchor else None
    )


def _read_questions(location: Location, order: Mapping[str, int]) -> Iterator[Question]:
    """Yield the questions of a BEAM chat, ability by ability."""
    abilities = location.record(
        load_json(location.path, "BEAM's questions"),
        "(itself)",
        "an object with a list for each ability",
    )
    for ability, questions in abilities.items():
        for field, item in location.records(questions, ability, "questions"):
            yield _build_question(item, ability, order, field, location)


_STATEMENTS = (("original_info", "updated_info"), ("first_statement", "second_statement"))
"""Pairs of parts of the evidence: the later statement replaces or contradicts the earlier one."""


def _find_outdated(parts: Mapping[str, Sequence[str]], order: Mapping[str, int]) -> tuple[str, ...]:
    """Return the refs of earlier statements that a later statement replaces.

    Some files name the later statement first, so the order of the turns decides.
    """
    for names in _STATEMENTS:
        first, second = (list(filter(order.__contains__, parts.get(name, ()))) for name in names)
        if first and second and not set(first) & set(second):
            return tuple(min((first, second), key=lambda refs: min(order[ref] for ref in refs)))
    return ()


# Fields of the answer; they differ between abilities.
_ANSWERS = ("answer", "ideal_answer", "ideal_response", "ideal_summary")


def _build_question(
    item: dict[str, Any], ability: str, order: Mapping[str, int], field: str, location: Location
) -> Question:
    """Build a question; ``dropped`` contains the evidence that matches no message of the chat."""
    source_ids = item.get("source_chat_ids")
    lists = source_ids if isinstance(source_ids, dict) else {"": source_ids}
    parts: list[tuple[str, tuple[str, ...]]] = []
    for part, ids in lists.items():
        where = f"{field}.source_chat_ids" + (f".{part}" if part else "")
        parts.append((part, tuple(dict.fromkeys(_list_refs(ids, where, location)))))
    cited = dict.fromkeys(ref for _, refs in parts for ref in refs)
    return Question(
        location.text(item, "question", field),
        ability,
        tuple(ref for ref in cited if ref in order),
        next(
            (
                location.text(item, name, field, required=False)
                for name in _ANSWERS
                if item.get(name)
            ),
            "",
        ),
        tuple(ref for ref in cited if ref not in order),
        tuple((part, refs) for part, refs in parts if part),
        outdated=_find_outdated(dict(parts), order),
    )


# -- LongMemEval (Wu et al. 2025, arXiv 2410.10813): one haystack of chats for each question --------------------------
# A file is a list of instances with ``question_id`` (ending in ``_abs``: nothing answers it), ``question_type``,
# ``question``, ``answer``, ``question_date``, and ``haystack_session_ids``, ``haystack_dates``, ``haystack_sessions``
# of one length. A session is a list of ``{"role", "content"}``; turns that hold the evidence carry ``has_answer:
# true``.


@checked
def read_longmemeval(path: str | Path) -> tuple[LabelledConversation, ...]:
    """Read the instances of a LongMemEval file.

    An instance is a conversation with one question, asked at its date. The evidence is the turns
    that are marked ``has_answer``. The category is the question's type, or "abstention". A ref is
    ``session:number``, with numbers from 1.

    Parameters
    ----------
    path
        Path of the file.

    Returns
    -------
    tuple of LabelledConversation
        The instances, in the order of the file.

    Raises
    ------
    DatasetError
        If the file is malformed or empty.

    Examples
    --------
    >>> from memlab.io.ingest import read_longmemeval
    >>> read_longmemeval("longmemeval_s_cleaned.json")[0].questions[0].category        # doctest: +SKIP
    'single-session-user'
    """
    path = Path(path).expanduser()
    items = Location(path).items(load_json(path, "a LongMemEval file"), "(itself)", "instances")
    if not items:
        raise DatasetError(
            f"{path} contains no instance. A LongMemEval file is a list of instances."
        )
    instances = tuple(
        _read_instance(item, Location(path, f"instance {index + 1}"))
        for index, item in enumerate(items)
    )
    name, times = Counter(instance.conversation.name for instance in instances).most_common(1)[0]
    if times > 1:
        raise DatasetError(
            f'{path}: {times} instances have the question_id "{name}". Give each instance its own.'
        )
    return instances


def _read_instance(value: object, location: Location) -> LabelledConversation:
    """Read one instance of LongMemEval as a labelled conversation."""
    item = location.record(value, "(itself)")
    name = location.text(item, "question_id", "")
    location = Location(location.path, f"{location.within} ({name[:40]})")
    lists = {
        field: location.items(item.get(field), field, what)
        for field, what in (
            ("haystack_session_ids", "ids"),
            ("haystack_dates", "dates"),
            ("haystack_sessions", "sessions"),
        )
    }
    if len({len(items) for items in lists.values()}) != 1:
        sizes = ", ".join(f"{len(items)} {field}" for field, items in lists.items())
        raise location.error("haystack_sessions", f"the lists differ in length: {sizes}.")
    turns: list[Turn] = []
    evidence: list[str] = []
    names: set[str] = set()
    for index, (id, date, session) in enumerate(zip(*lists.values(), strict=True)):
        at = _parse_time(date, f"haystack_dates[{index}]", location)
        if not isinstance(id, str) or not id.strip():
            raise location.error(
                f"haystack_session_ids[{index}]", f"expected text, found {describe_json(id)}."
            )
        # a haystack may contain a session twice, under the same id
        prefix = f"{id}#{index}" if id in names else id
        names.add(id)
        for number, (field, message) in enumerate(
            location.records(session, f"haystack_sessions[{index}]", "turns"), 1
        ):
            role = location.text(message, "role", field)
            ref, text = (
                f"{prefix}:{number}",
                location.text(message, "content", field, required=False),
            )
            turns.append(Turn(ref, role, text, f"{index}-{id}", at, role=role))
            if _has_answer(message, field, location):
                evidence.append(ref)
    if not turns:
        raise location.error("haystack_sessions", "no session has a turn.")
    question = Question(
        location.text(item, "question", ""),
        "abstention" if name.endswith("_abs") else location.text(item, "question_type", ""),
        tuple(evidence),
        _format_answer(item.get("answer"), location),
        at=_parse_time(item.get("question_date"), "question_date", location),
    )
    # some files are not sorted by time, and a lab must remember in temporal order
    turns.sort(key=lambda turn: turn.at)
    return LabelledConversation(Conversation(name, tuple(turns)), (question,))


def _has_answer(message: dict[str, Any], field: str, location: Location) -> bool:
    """Return whether a turn is marked as evidence; raise DatasetError for a mark other than true, false or null."""
    value = message.get("has_answer", False)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise location.error(
            f"{field}.has_answer", f"expected true or false, found {describe_json(value)}."
        )
    return value


def _format_answer(answer: object, location: Location) -> str:
    """Return a text or number as text, and null as ""; raise DatasetError for other values."""
    if answer is None or isinstance(answer, str):
        return answer or ""
    if isinstance(answer, bool | int | float):
        return str(answer)
    raise location.error("answer", f"expected text or a number, found {describe_json(answer)}.")


# A date such as "2023/05/20 (Sat) 02:21"; the weekday and the time may be missing.
_DATE = re.compile(
    r"(?P<year>\d{4})/(?P<month>\d{2})/(?P<day>\d{2})\s*(?:\([A-Za-z]{3}\))?\s*"
    r"(?:(?P<hour>\d{2}):(?P<minute>\d{2}))?\Z"
)


def _parse_time(value: object, field: str, location: Location) -> datetime:
    """Parse a date of LongMemEval, such as "2023/05/20 (Sat) 02:21"."""
    return location.time(value, field, "2023/05/20 (Sat) 02:21", _DATE)


# -- LMEB (Zhao et al. 2026, arXiv 2603.12572): retrieval tasks over candidates of a scene ----------------------------
#     Dialogue/LoCoMo/corpus.jsonl               {"id", "title", "text"} a line
#     Dialogue/LoCoMo/candidates.jsonl           {"scene_id", "candidate_doc_ids"} a line
#     Dialogue/LoCoMo/single_hop/queries.jsonl   {"id", "text"} a line
#     Dialogue/LoCoMo/single_hop/qrels.tsv       query, document, score; without a head
#
# The corpus and the candidates are next to the queries or in a folder above. A query's scene is its id, or its id up to
# the second "_"; without candidates all documents belong to one scene.

# The texts have no time, so all get the same time.
_AT = datetime(2024, 1, 1, tzinfo=UTC)
_ABOVE = 2
"""Maximum number of folders between queries and corpus in the published data."""


@checked
def read_lmeb(folder: str | Path) -> tuple[LabelledConversation, ...]:
    """Read the LMEB tasks below a folder.

    Each scene is a conversation whose turns are its candidates, in order. The category of a question is the path of its
    task below ``folder``.

    Parameters
    ----------
    folder
        Folder of tasks.

    Returns
    -------
    tuple of LabelledConversation
        The scenes.

    Raises
    ------
    DatasetError
        If the folder contains no task, or a file is malformed.

    Examples
    --------
    >>> from memlab.io.ingest import read_lmeb
    >>> len(read_lmeb("eval_data/Dialogue/LoCoMo"))                     # doctest: +SKIP
    10
    """
    folder = Path(folder).expanduser()
    tasks = sorted(path.parent for path in folder.rglob("queries.jsonl")) if folder.is_dir() else []
    if not tasks:
        raise DatasetError(
            f"{folder} contains no queries.jsonl. LMEB is a folder of tasks with queries.jsonl and qrels.tsv."
        )
    corpora: dict[Path, Mapping[str, str]] = {}
    scenes: dict[tuple[Path, tuple[str, ...]], list[Question]] = {}
    for task in tasks:
        corpus = _find_above(task, "corpus.jsonl")
        if corpus is None:
            raise DatasetError(
                f"{task} has no corpus.jsonl, neither next to its queries nor in the {_ABOVE} folders above."
            )
        if corpus not in corpora:
            corpora[corpus] = dict(_read_corpus(corpus))
        category = task.relative_to(folder).as_posix() if task != folder else task.resolve().name
        for candidates, question in _read_task(task, category, corpora[corpus]):
            scenes.setdefault((corpus, candidates), []).append(question)
    return tuple(
        LabelledConversation(
            _build_conversation(f"scene-{number}", candidates, corpora[corpus]), tuple(questions)
        )
        for number, ((corpus, candidates), questions) in enumerate(scenes.items(), 1)
    )


def _find_above(task: Path, name: str) -> Path | None:
    """Find a file in a task's folder or the nearest ``_ABOVE`` parent folders; return None if missing."""
    return next(
        (folder / name for folder in (task, *task.parents[:_ABOVE]) if (folder / name).is_file()),
        None,
    )


def _read_corpus(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the id and the text of each document of an LMEB corpus, with the title before the text."""
    for number, value in read_json_lines(path, "LMEB's corpus"):
        location = Location(path, f"line {number}")
        item = location.record(value, "(itself)")
        title = location.text(item, "title", "", required=False)
        yield (
            location.text(item, "id", ""),
            f"{title} {location.text(item, 'text', '', required=False)}".strip(),
        )


def _read_task(
    task: Path, category: str, corpus: Mapping[str, str]
) -> Iterator[tuple[tuple[str, ...], Question]]:
    """Yield the ids of the candidate documents and the question, for each question of an LMEB task."""
    candidates = _read_candidates(task, corpus)
    relevant_by_query = _read_qrels(task / "qrels.tsv")
    for number, value in read_json_lines(task / "queries.jsonl", "LMEB's queries"):
        location = Location(task / "queries.jsonl", f"line {number}")
        item = location.record(value, "(itself)")
        query = (
            str(item["id"]) if isinstance(item.get("id"), int) else location.text(item, "id", "")
        )
        scene = query if query in candidates else "_".join(query.split("_")[:2])
        if candidates and scene not in candidates:
            raise location.error("id", f'"{query[:60]}" belongs to no scene of candidates.jsonl.')
        documents = candidates.get(scene, tuple(corpus))
        relevant = relevant_by_query.get(query, ())
        available = set(documents)
        yield (
            documents,
            Question(
                location.text(item, "text", ""),
                category,
                tuple(document for document in relevant if document in available),
                dropped=tuple(document for document in relevant if document not in available),
            ),
        )


def _read_candidates(task: Path, corpus: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Read the ids of each scene's candidate documents, or {} if candidates.jsonl does not exist."""
    path = _find_above(task, "candidates.jsonl")
    scenes: dict[str, tuple[str, ...]] = {}
    for number, value in read_json_lines(path, "LMEB's candidates") if path else ():
        location = Location(path or task, f"line {number}")
        item = location.record(value, "(itself)")
        scene = (
            str(item["scene_id"])
            if isinstance(item.get("scene_id"), int)
            else location.text(item, "scene_id", "")
        )
        ids = location.items(item.get("candidate_doc_ids"), "candidate_doc_ids", "ids")
        unknown = next((id for id in ids if not isinstance(id, str) or id not in corpus), None)
        if unknown is not None:
            raise location.error(
                "candidate_doc_ids", f"the corpus has no document {str(unknown)[:60]!r}."
            )
        scenes[scene] = tuple(dict.fromkeys(ids))
    return scenes


def _read_qrels(path: Path) -> dict[str, tuple[str, ...]]:
    """Read the ids of the documents with a positive score for each query id."""
    relevant: dict[str, list[str]] = {}
    with open_text(path, "LMEB's qrels") as file:
        for number, row in enumerate(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE), 1):
            if not row or (number == 1 and row[-1] == "score"):
                continue
            if len(row) != 3 or not row[2].lstrip("-").isdecimal():
                raise DatasetError(
                    f"{path}, line {number}: expected query, document and an integer score, separated by tabs."
                )
            if int(row[2][:9]) > 0:
                relevant.setdefault(row[0], []).append(row[1])
    return {query: tuple(dict.fromkeys(documents)) for query, documents in relevant.items()}


def _build_conversation(
    name: str, candidates: Sequence[str], corpus: Mapping[str, str]
) -> Conversation:
    """Build a conversation with one turn for each candidate document of a benchmark."""
    if not candidates:
        raise DatasetError(
            f"{name} has no candidates, so nothing can be retrieved. Give each question at least one document."
        )
    return Conversation(
        name,
        tuple(Turn(document, "", corpus[document], "session_1", _AT) for document in candidates),
    )

"""Readers of BEAM, LongMemEval and LMEB: chats with questions and the messages that answer them.

BEAM ("Beyond a Million Tokens", ICLR 2026) is a folder for each chat of a user with an assistant.

    1/chat.json                                     batches of turns; a turn is a few messages with role, id, content
    1/probing_questions/probing_questions.json      ten abilities, each with questions and ``source_chat_ids``

A batch is a session. A message's ``time_anchor`` ("March-15-2024") dates it and what follows; a chat without one begins
at the start of 2024. Messages carry a mark of the plan that they were generated from ("->-> 1,15"), which nobody said
and which is left out. Evidence is a list of message ids, or lists under names such as ``original_info``; questions of
abstention have none.
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
    describe_value,
    load_json,
    open_text,
    read_json_lines,
)
from memlab.kernel.base.arguments import checked

__all__ = ["read_beam", "read_lmeb", "read_longmemeval"]

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
        raise DatasetError(
            f"{folder} is no folder. BEAM is a folder of chats: 1/{_CHAT}, 1/{_QUESTIONS}, ..."
        )
    chats = (
        [folder]
        if (folder / _CHAT).is_file()
        else sorted((path.parent for path in folder.glob(f"*/{_CHAT}")), key=_chat_order)
    )
    if not chats:
        raise DatasetError(f"{folder} holds no chat: expected 1/{_CHAT} or {_CHAT}.")
    return tuple(_read_chat(chat) for chat in chats)


def _chat_order(chat: Path) -> tuple[int, str]:
    """Chats by number, then what has another name."""
    digits = chat.name.isascii() and chat.name.isdigit()
    return (int(chat.name[:18]) if digits else 10**18, chat.name)


def _read_chat(chat: Path) -> LabelledConversation:
    turns = _read_turns(Location(chat / _CHAT))
    known = {turn.ref: place for place, turn in enumerate(turns)}
    name = f"beam-{chat.resolve().name}"
    return LabelledConversation(
        Conversation(name, turns), tuple(_read_questions(Location(chat / _QUESTIONS), known))
    )


_MARK = re.compile(r"\s*->->\s*[\w/]+,[\w/]+\)?\s*\Z")


def _read_turns(place: Location) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    at: datetime | None = None
    batches = place.records(load_json(place.path, "a chat of BEAM"), "(itself)", "batches")
    for number, (field, batch) in enumerate(batches, 1):
        at = _read_anchor(batch, field, place) or at
        for where, message in _list_messages(batch, field, place):
            at = _read_anchor(message, where, place) or at
            role, ref = (
                place.text(message, "role", where),
                _check_ref(message.get("id"), f"{where}.id", place),
            )
            text = _MARK.sub("", place.text(message, "content", where, required=False))
            turns.append(Turn(ref, role, text, f"session_{number}", at or _UNDATED, role=role))
    if not turns:
        raise place.error("(itself)", "no batch has a message.")
    ref, times = Counter(turn.ref for turn in turns).most_common(1)[0]
    if times > 1:
        raise place.error("(itself)", f"{times} messages have the id {ref}.")
    return tuple(turns)


def _list_messages(
    batch: dict[str, Any], field: str, place: Location
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give each message of a batch, after its field."""
    for number, turn in enumerate(place.items(batch.get("turns"), f"{field}.turns", "turns")):
        yield from place.records(turn, f"{field}.turns[{number}]", "messages")


def _check_ref(given: object, field: str, place: Location) -> str:
    if isinstance(given, bool) or not isinstance(given, int):
        raise place.error(field, f"expected a whole number, found {describe_value(given)}.")
    return str(given)


def _list_refs(given: object, field: str, place: Location) -> Iterator[str]:
    """Ids in lists, which may lie in lists."""
    if given is None:
        return
    if not isinstance(given, list):
        yield _check_ref(given, field, place)
        return
    for one in given:
        yield from _list_refs(one, field, place)


_ANCHOR = re.compile(r"(?P<month>[A-Za-z]{3,9})[-\s]+(?P<day>\d{1,2}),?[-\s]+(?P<year>\d{4})\Z")


def _read_anchor(record: dict[str, Any], field: str, place: Location) -> datetime | None:
    """When a part of a chat was said; None where it has no anchor."""
    anchor = place.text(record, "time_anchor", field, required=False)
    return place.time(anchor, f"{field}.time_anchor", "March-15-2024", _ANCHOR) if anchor else None


def _read_questions(place: Location, known: Mapping[str, int]) -> Iterator[Question]:
    abilities = place.record(
        load_json(place.path, "BEAM's questions"),
        "(itself)",
        "an object with a list for each ability",
    )
    for ability, asked in abilities.items():
        for field, item in place.records(asked, ability, "questions"):
            yield _build_question(item, ability, known, field, place)


_STATEMENTS = (("original_info", "updated_info"), ("first_statement", "second_statement"))
"""Parts of the evidence of which the one that was said later replaces, or contradicts, the other one."""


def _find_outdated(parts: Mapping[str, Sequence[str]], order: Mapping[str, int]) -> tuple[str, ...]:
    """What was said first, and none of which is part of what was said later; some files name the later one first."""
    for names in _STATEMENTS:
        first, second = (list(filter(order.__contains__, parts.get(name, ()))) for name in names)
        if first and second and not set(first) & set(second):
            return tuple(min((first, second), key=lambda refs: min(order[ref] for ref in refs)))
    return ()


_ANSWERS = ("answer", "ideal_answer", "ideal_response", "ideal_summary")


def _build_question(
    item: dict[str, Any], ability: str, known: Mapping[str, int], field: str, place: Location
) -> Question:
    given = item.get("source_chat_ids")
    lists = given if isinstance(given, dict) else {"": given}
    parts: list[tuple[str, tuple[str, ...]]] = []
    for part, ids in lists.items():
        where = f"{field}.source_chat_ids" + (f".{part}" if part else "")
        parts.append((part, tuple(dict.fromkeys(_list_refs(ids, where, place)))))
    cited = dict.fromkeys(ref for _, refs in parts for ref in refs)
    return Question(
        place.text(item, "question", field),
        ability,
        tuple(ref for ref in cited if ref in known),
        next(
            (place.text(item, name, field, required=False) for name in _ANSWERS if item.get(name)),
            "",
        ),
        tuple(ref for ref in cited if ref not in known),
        tuple((part, refs) for part, refs in parts if part),
        outdated=_find_outdated(dict(parts), known),
    )


# -- LongMemEval (Wu et al. 2025, arXiv 2410.10813): one haystack of chats for each question --------------------------
# A file is a list of instances with ``question_id`` (ending in ``_abs``: nothing answers it), ``question_type``,
# ``question``, ``answer``, ``question_date``, and ``haystack_session_ids``, ``haystack_dates``, ``haystack_sessions``
# of one length. A session is a list of ``{"role", "content"}``; turns that hold the evidence carry ``has_answer:
# true``.


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
    items = Location(path).items(load_json(path, "a LongMemEval file"), "(itself)", "instances")
    if not items:
        raise DatasetError(
            f"{path}: a LongMemEval file is a list of instances, and this list is empty."
        )
    read = tuple(
        _read_instance(item, Location(path, f"instance {index + 1}"))
        for index, item in enumerate(items)
    )
    name, times = Counter(one.conversation.name for one in read).most_common(1)[0]
    if times > 1:
        raise DatasetError(f'{path}: {times} instances have the question_id "{name}".')
    return read


def _read_instance(value: object, place: Location) -> LabelledConversation:
    item = place.record(value, "(itself)")
    name = place.text(item, "question_id", "")
    place = Location(place.path, f"{place.within} ({name[:40]})")
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
        at = _parse_time(date, f"haystack_dates[{index}]", place)
        if not isinstance(id, str) or not id.strip():
            raise place.error(
                f"haystack_session_ids[{index}]", f"expected text, found {describe_value(id)}."
            )
        # a session may stand in a haystack twice, under one id
        prefix = f"{id}#{index}" if id in names else id
        names.add(id)
        for number, (field, said) in enumerate(
            place.records(session, f"haystack_sessions[{index}]", "turns"), 1
        ):
            role = place.text(said, "role", field)
            ref, text = f"{prefix}:{number}", place.text(said, "content", field, required=False)
            turns.append(Turn(ref, role, text, f"{index}-{id}", at, role=role))
            if _has_answer(said, field, place):
                evidence.append(ref)
    if not turns:
        raise place.error("haystack_sessions", "no session has a turn.")
    question = Question(
        place.text(item, "question", ""),
        "abstention" if name.endswith("_abs") else place.text(item, "question_type", ""),
        tuple(evidence),
        _format_answer(item.get("answer"), place),
        at=_parse_time(item.get("question_date"), "question_date", place),
    )
    # some files are not sorted by time; a lab remembers in the order of the world
    turns.sort(key=lambda turn: turn.at)
    return LabelledConversation(Conversation(name, tuple(turns)), (question,))


def _has_answer(said: dict[str, Any], field: str, place: Location) -> bool:
    marked = said.get("has_answer", False)
    if marked is None:
        return False
    if not isinstance(marked, bool):
        raise place.error(
            f"{field}.has_answer", f"expected true or false, found {describe_value(marked)}."
        )
    return marked


def _format_answer(answer: object, place: Location) -> str:
    if answer is None or isinstance(answer, str):
        return answer or ""
    if isinstance(answer, bool | int | float):
        return str(answer)
    raise place.error("answer", f"expected text or a number, found {describe_value(answer)}.")


_DATE = re.compile(
    r"(?P<year>\d{4})/(?P<month>\d{2})/(?P<day>\d{2})\s*(?:\([A-Za-z]{3}\))?\s*"
    r"(?:(?P<hour>\d{2}):(?P<minute>\d{2}))?\Z"
)


def _parse_time(given: object, field: str, place: Location) -> datetime:
    return place.time(given, field, "2023/05/20 (Sat) 02:21", _DATE)


# -- LMEB (Zhao et al. 2026, arXiv 2603.12572): retrieval tasks over candidates of a scene ----------------------------
#     Dialogue/LoCoMo/corpus.jsonl               {"id", "title", "text"} a line
#     Dialogue/LoCoMo/candidates.jsonl           {"scene_id", "candidate_doc_ids"} a line
#     Dialogue/LoCoMo/single_hop/queries.jsonl   {"id", "text"} a line
#     Dialogue/LoCoMo/single_hop/qrels.tsv       query, document, score; without a head
#
# The corpus and the candidates stand beside the queries or in a folder above. A query's scene is its id, or its id up
# to the second "_"; without candidates all documents are those of one scene. The texts have no time, so all are of one
# day.

_AT = datetime(2024, 1, 1, tzinfo=UTC)
_ABOVE = 2
"""How far above its queries a task's corpus stands at most."""


@checked
def read_lmeb(folder: str | Path) -> tuple[LabelledConversation, ...]:
    """The tasks below a folder: a conversation for each scene, whose turns are its candidates in the order given.

    ``category`` is the path of the task below ``folder``. Raises ``DatasetError``.

    >>> from memlab.io.ingest import read_lmeb
    >>> len(read_lmeb("eval_data/Dialogue/LoCoMo"))                     # doctest: +SKIP
    10
    """
    folder = Path(folder).expanduser()
    tasks = sorted(path.parent for path in folder.rglob("queries.jsonl")) if folder.is_dir() else []
    if not tasks:
        raise DatasetError(
            f"{folder} holds no queries.jsonl: LMEB is a folder of tasks with queries.jsonl and qrels.tsv."
        )
    corpora: dict[Path, Mapping[str, str]] = {}
    scenes: dict[tuple[Path, tuple[str, ...]], list[Question]] = {}
    for task in tasks:
        corpus = _find_above(task, "corpus.jsonl")
        if corpus is None:
            raise DatasetError(
                f"{task} has no corpus.jsonl beside its queries or in the {_ABOVE} folders above."
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
    return next(
        (place / name for place in (task, *task.parents[:_ABOVE]) if (place / name).is_file()), None
    )


def _read_corpus(path: Path) -> Iterator[tuple[str, str]]:
    for number, value in read_json_lines(path, "LMEB's corpus"):
        place = Location(path, f"line {number}")
        item = place.record(value, "(itself)")
        title = place.text(item, "title", "", required=False)
        yield (
            place.text(item, "id", ""),
            f"{title} {place.text(item, 'text', '', required=False)}".strip(),
        )


def _read_task(
    task: Path, category: str, corpus: Mapping[str, str]
) -> Iterator[tuple[tuple[str, ...], Question]]:
    candidates = _read_candidates(task, corpus)
    wanted = _read_qrels(task / "qrels.tsv")
    for number, value in read_json_lines(task / "queries.jsonl", "LMEB's queries"):
        place = Location(task / "queries.jsonl", f"line {number}")
        item = place.record(value, "(itself)")
        query = str(item["id"]) if isinstance(item.get("id"), int) else place.text(item, "id", "")
        scene = query if query in candidates else "_".join(query.split("_")[:2])
        if candidates and scene not in candidates:
            raise place.error("id", f'"{query[:60]}" is of no scene of candidates.jsonl.')
        held = candidates.get(scene, tuple(corpus))
        relevant = wanted.get(query, ())
        known = set(held)
        yield (
            held,
            Question(
                place.text(item, "text", ""),
                category,
                tuple(document for document in relevant if document in known),
                dropped=tuple(document for document in relevant if document not in known),
            ),
        )


def _read_candidates(task: Path, corpus: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    path = _find_above(task, "candidates.jsonl")
    found: dict[str, tuple[str, ...]] = {}
    for number, value in read_json_lines(path, "LMEB's candidates") if path else ():
        place = Location(path or task, f"line {number}")
        item = place.record(value, "(itself)")
        scene = (
            str(item["scene_id"])
            if isinstance(item.get("scene_id"), int)
            else place.text(item, "scene_id", "")
        )
        ids = place.items(item.get("candidate_doc_ids"), "candidate_doc_ids", "ids")
        strange = next((one for one in ids if not isinstance(one, str) or one not in corpus), None)
        if strange is not None:
            raise place.error(
                "candidate_doc_ids", f"the corpus has no document {str(strange)[:60]!r}."
            )
        found[scene] = tuple(dict.fromkeys(ids))
    return found


def _read_qrels(path: Path) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    with open_text(path, "LMEB's qrels") as file:
        for number, row in enumerate(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE), 1):
            if not row or (number == 1 and row[-1] == "score"):
                continue
            if len(row) != 3 or not row[2].lstrip("-").isdecimal():
                raise DatasetError(
                    f"{path}, line {number}: expected query, document and a whole score, with tabs between."
                )
            if int(row[2][:9]) > 0:
                found.setdefault(row[0], []).append(row[1])
    return {query: tuple(dict.fromkeys(documents)) for query, documents in found.items()}


def _build_conversation(
    name: str, candidates: Sequence[str], corpus: Mapping[str, str]
) -> Conversation:
    if not candidates:
        raise DatasetError(f"{name} has no candidates: there is nothing to find.")
    return Conversation(
        name,
        tuple(Turn(document, "", corpus[document], "session_1", _AT) for document in candidates),
    )

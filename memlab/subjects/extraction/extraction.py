"""Extraction in a lab: proposals from messages, commits, and lessons of sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import polars as pl

from memlab.errors import BadAnswer, InputError, ModelError, NoAnswer
from memlab.io.formats import Message, parse_messages
from memlab.kernel.base.clock import to_micros
from memlab.kernel.base.display import Displayed, clip, table
from memlab.kernel.base.printable import printable
from memlab.kernel.privacy import screen_many
from memlab.kernel.schema import infer_role
from memlab.kernel.state import validate_text
from memlab.kernel.storage.views import view_state
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.gate import check_agent, check_on
from memlab.kernel.verbs.linking import get_comparer, links_all
from memlab.kernel.verbs.registers import Gaps
from memlab.kernel.verbs.remembering.remember import Remembering
from memlab.kernel.verbs.results import Remembered
from memlab.kernel.verbs.tellings import Tellings
from memlab.subjects.extraction.asking import SORTS, Read, Turn, ask_model
from memlab.subjects.extraction.circumstances import find_role_play
from memlab.subjects.extraction.clause import USER
from memlab.subjects.extraction.learning import LESSONS, find_lessons, select_lessons
from memlab.subjects.extraction.proposing import Scope, propose
from memlab.subjects.extraction.staged import Asked, Extracted, Proposed
from memlab.subjects.extraction.work import WORK, find_work, read_calls
from memlab.subjects.models import LanguageModel, Otherwise, Refused
from memlab.subjects.reading.utterances import Utterance

# Facts are extracted from the messages of loaded chats.


_READ = ("turn", None)
"""The kinds of rows that are utterances. Memories of other kinds are not read."""


def group_chats(
    rows: Iterable[Mapping[str, Any]],
) -> dict[tuple[str | None, str | None], list[Message]]:
    """Group message rows by project and session, in order.

    If a project has one person and an assistant, "I" is the user. If it has several people, "I" is
    the speaker by name.

    Parameters
    ----------
    rows
        Rows as for ``remember``, with ``text`` and optionally ``speaker``, ``creator``,
        ``session``, ``project`` and ``at``.

    Returns
    -------
    The messages by project and session. Messages of the only person in a project with an assistant
    have no speaker. The ``index`` of a message is the number of its row.

    Examples
    --------
    >>> rows = [{"text": "I moved", "speaker": "Ada"}, {"text": "So did I", "speaker": "Bob"}]
    >>> [(message.role, message.speaker) for message in group_chats(rows)[None, None]]
    [('user', 'Ada'), ('user', 'Bob')]
    >>> rows = [{"text": "I moved", "speaker": "Ada"}, {"text": "Nice!", "speaker": "assistant"}]
    >>> [(message.role, message.speaker) for message in group_chats(rows)[None, None]]
    [('user', None), ('assistant', None)]
    """
    sessions: dict[
        tuple[str | None, str | None], list[tuple[str, str | None, int, Mapping[str, Any]]]
    ] = {}
    people: dict[str | None, set[str]] = {}
    assistants: set[str | None] = set()
    for position, row in enumerate(rows):
        if row.get("kind") not in _READ or not row.get("text"):
            continue
        speaker, project = row.get("speaker"), row.get("project")
        role = infer_role(speaker, row.get("creator"))
        if role == "other":
            people.setdefault(project, set()).add(str(speaker).casefold())
        elif role == "assistant":
            assistants.add(project)
        name = speaker if role == "other" else None
        sessions.setdefault((project, row.get("session")), []).append(
            ("user" if name else role, name, position, row)
        )
    chats = {}
    for (project, session), turns in sessions.items():
        is_only_person = len(people.get(project, ())) == 1 and project in assistants
        chats[project, session] = [
            Message(
                role,
                row["text"],
                row.get("at"),
                speaker=None if is_only_person else name,
                index=position,
            )
            for role, name, position, row in turns
        ]
    return chats


def find_unread(
    messages: Sequence[Message], fresh: Collection[int], tellings: Collection[tuple[int, str]]
) -> frozenset[int]:
    """Return the numbers of the messages of a session that extraction has not read.

    Sessions are read from their beginning. So if something was extracted from a message, all
    earlier messages were read too. A load that was killed leaves later messages unread.

    Parameters
    ----------
    messages
        The messages of the session, in order.
    fresh
        The numbers of the messages that are new to the lab.
    tellings
        The time in microseconds (UTC) and the quotation of everything that was extracted from the
        session.

    Returns
    -------
    The numbers of new messages, and of all messages after the last one from which something was
    extracted. If nothing was extracted, the numbers of all messages.

    Examples
    --------
    >>> texts = ["I moved to Oslo", "I bought a boat", "Hm"]
    >>> sorted(find_unread([Message("user", text) for text in texts], {2}, [(0, "I moved to Oslo")]))
    [1, 2]
    """
    if not tellings:
        return frozenset(range(len(messages)))
    last = len(messages) - 1
    for number in range(last, -1, -1):
        message = messages[number]
        at = None if message.at is None else to_micros(message.at)
        words = " ".join(message.text.split())
        if number not in fresh and any(
            at in (None, when) and quotation in words for when, quotation in tellings
        ):
            last = number
            break
    return frozenset(number for number in range(len(messages)) if number > last or number in fresh)


Admits = Callable[[str, Utterance, str], bool]

_SILENT = 3
"""The number of requests in a row without an answer after which a model is not called any more.

Each call may take its whole timeout.
"""

_HALVED = 6
"""The number of malformed answers in a row after which the messages of a request are not halved.

A single message that a model does not answer takes four of them in a request of twelve messages.
"""

_CHARACTERS = 12_000
"""The maximum number of characters of the messages in a request, about 3,000 tokens.

With the instructions and the answer, a request fits into a context of 8,000 tokens.
"""

_LINES = 5
"""The maximum number of lines of a summary, so that people read it."""

_KNOWN = 0.92
"""The similarity to a memory from which a lesson counts as already stored."""

_SESSION_TOKENS = 2_000
"""The maximum number of tokens of a session's lessons."""

# The words that introduce each sort of lesson in a summary.
_SAID = WORK | {
    "breakthrough": "Found out",
    "solution": "What works",
    "avoid": "To be avoided",
    "failure": "What failed",
    "pivot": "Changed course",
    "tools": "Steps that worked",
    "cue": "To be remembered",
    "dynamics": "How it went",
}


@dataclass(frozen=True)
class Learned(Displayed):
    """The lessons of a session, and their effect on existing memories.

    Attributes
    ----------
    session
        The name of the session.
    extracted
        The new lessons, then the proposals of the messages, as from ``lab.agents.extract``.
    remembered
        The results of storing the lessons and the other proposals, as from ``lab.remember``; ``()``
        with ``store=False``.
    notices
        A sentence for each conflict with existing memories, such as "Updated: tabs -> spaces".
    gaps
        The queries of the session that no memory answered, with the columns of
        ``lab.upkeep.review.gaps``.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> learned = lab.agents.end_session("s1", ["I live in Rome."], store=False)
    >>> print(learned.text)
    Here is what I learned:
    - The user lives in Rome
    """

    session: str
    extracted: Extracted
    remembered: tuple[Remembered, ...]
    notices: tuple[str, ...]
    gaps: pl.DataFrame = field(repr=False)

    @property
    def text(self) -> str:
        """The lessons in at most five lines, then conflicts and open knowledge gaps."""
        found_lessons = [
            lesson for sort in (*WORK, *LESSONS) for lesson in self.extracted if lesson.rule == sort
        ]
        lines = [
            f"- {_SAID[lesson.rule]}: {clip(lesson.text, 160)}" for lesson in found_lessons[:_LINES]
        ]
        facts = [lesson.text for lesson in self.extracted.facts]
        if facts and len(lines) < _LINES:
            lines.append(f"- {clip('; '.join(facts), 240)}")
        lines = (
            ["Here is what I learned:", *lines]
            if lines
            else ["No rule recognised a lesson in this session."]
        )
        lines += self.notices
        if self.gaps.height:
            lines.append(
                f"Recall returned nothing useful {self.gaps.height} "
                f"{'time' if self.gaps.height == 1 else 'times'} (lab.upkeep.review.gaps):"
            )
            newest = dict.fromkeys(self.gaps["snippet"].reverse())
            lines += [f"- {clip(snippet, 160)}" for snippet in list(newest)[:_LINES]]
        return "\n".join(lines)

    @property
    def frame(self) -> pl.DataFrame:
        """A frame with one row per proposal; see ``Extracted.frame``."""
        return self.extracted.frame

    def __repr__(self) -> str:
        return printable(self.text)

    def _display(self) -> object:
        """Return the table of lessons and proposals, and the text of the lessons as notes."""
        rows = [
            (proposal.rule, proposal.text, f"{proposal.confidence:g}")
            for proposal in self.extracted
        ]
        return table(
            f"Session {self.session}",
            ("rule", "what", "confidence"),
            rows,
            notes=self.text.splitlines(),
        )


class Extraction:
    """Extraction in one lab.

    ``observing`` decides by the pack's ``admit`` policy whether an utterance is stored.
    """

    def __init__(self, core: Core, remembering: Remembering, observing: Any) -> None:
        self._core, self._remembering, self._observing = core, remembering, observing

    def extract(
        self,
        messages: Any,
        role: str,
        where: Scope,
        model: LanguageModel | None,
        otherwise: Otherwise,
    ) -> Extracted:
        """Extract facts and memories from messages; see ``lab.agents.extract``."""
        return self._propose_all(_parse_messages(messages, role), where, model, otherwise)

    def _propose_all(
        self,
        messages: Sequence[Message],
        where: Scope,
        model: LanguageModel | None,
        otherwise: Otherwise,
        viewer: str | None = None,
        *,
        only: Collection[int] | None = None,
        before: Message | None = None,
        lessons: bool = False,
    ) -> Extracted:
        """Return the proposals of all messages; rules read only the messages numbered in ``only``, if given.

        ``before`` is the message that precedes the first message, for questions and answers. With
        ``lessons``, a model reports lessons too.
        """
        personal = self._core.personal()
        admits = self._admits(where, viewer)
        if model is not None:
            with self._core.reading() as state:
                # a project that is switched off must not reach a model either
                check_on(self._core.store, state, (where.project,))
            screened = screen_many([message.text for message in messages], personal=personal)
            redacted = [
                replace(message, text=after.text)
                for message, after in zip(messages, screened, strict=True)
            ]
            reader = _ModelReader(model, where, lessons)
            return reader.extract(redacted, otherwise, admits)
        earlier, role_play = [before, *messages], find_role_play(messages)
        by_message = [
            list(
                propose(
                    message, number, where, admits, earlier[number], role_play=number in role_play
                )
            )
            if only is None or number in only
            else []
            for number, message in enumerate(messages)
        ]
        nonempty = [number for number, proposed in enumerate(by_message) if proposed]
        screened = screen_many([messages[number].text for number in nonempty], personal=personal)
        for number, after in zip(nonempty, screened, strict=True):
            if after.findings:
                screened_message = replace(messages[number], text=after.text)
                by_message[number] = list(
                    propose(
                        screened_message,
                        number,
                        where,
                        admits,
                        earlier[number],
                        role_play=number in role_play,
                    )
                )
        return Extracted(tuple(chain.from_iterable(by_message)), len(messages))

    def _admits(self, where: Scope, viewer: str | None) -> Admits:
        """Return a function that decides by the active pack whether to store an utterance."""
        decisions: dict[tuple[object, ...], bool] = {}

        def admits(text: str, reading: Utterance, role: str) -> bool:
            """Return whether to store an utterance; earlier decisions are cached."""
            reads = self._core.pack.policies["admit"].inputs
            key = (
                role,
                reading.fired,
                reading.length if "length" in reads else 0,
                text if "nearest" in reads else "",
            )
            if key not in decisions:  # a policy gives the same answer for the same inputs
                decisions[key] = self._observing.admit(
                    text, role=role, project=where.project, viewer=viewer
                ).admitted
            return decisions[key]

        return admits

    def of_chats(self, rows: Sequence[tuple[Mapping[str, Any], bool]], linking: str | None) -> int:
        """Extract and store the facts in loaded rows, and return the number of stored facts.

        Each row comes with a flag that tells whether it is new to the lab. A session is read in
        order and stored in one transaction. Of a session that was read before, only unread messages
        are read: new rows, and rows that a killed load left unread. Each message is read together
        with the message before it, from the rows or from the lab.
        """
        stored = 0
        quotations = self._tellings()
        for (project, session), messages in group_chats(row for row, _ in rows).items():
            fresh = frozenset(
                number for number, message in enumerate(messages) if rows[message.index][1]
            )
            numbers = find_unread(messages, fresh, quotations.get((project, session), ()))
            if not numbers:
                continue
            before = self._turn_before(session, project, len(messages)) if 0 in fresh else None
            where = make_scope(None, project, session)
            extracted = self._propose_all(
                messages, where, None, "raise", only=numbers, before=before
            )
            if extracted:
                stored += len(self.commit(extracted, None, linking).ids)
        return stored

    def _tellings(self) -> dict[tuple[str | None, str | None], list[tuple[int, str]]]:
        """Return the time in microseconds and quotation of each earlier extraction, by project and session.

        Extractions that were merged into other memories are included.
        """
        with self._core.reading() as state:
            extracted = pl.col("reason").str.starts_with("extracted by ")
            columns = ("project", "session", "created", "context")
            rows = (
                state.memories().filter(extracted & pl.col("context").is_not_null()).select(columns)
            )
            tellings = [
                (telling.get("project"), telling.get("session"), telling["at"], telling["context"])
                for telling in state.projection(Tellings).all
                if (telling.get("reason") or "").startswith("extracted by ")
                and telling.get("context")
            ]
        quotations: dict[tuple[str | None, str | None], list[tuple[int, str]]] = {}
        for project, session, when, quotation in chain(rows.iter_rows(), tellings):
            quotations.setdefault((project, session), []).append((to_micros(when), quotation))
        return quotations

    def _turn_before(
        self, session: str | None, project: str | None, skipped: int
    ) -> Message | None:
        """Return the turn before a session's last ``skipped`` turns, or None in a short session."""
        if session is None:
            return None
        turns = self._turns(session, project, 1)
        return turns[-skipped - 1] if len(turns) > skipped else None

    def commit(
        self, extracted: Extracted, only: Iterable[int] | None, linking: str | None
    ) -> Remembered:
        """Store proposals in one transaction; see ``lab.agents.commit``."""
        rows = [
            proposal.row
            for proposal in (
                extracted if only is None else [extracted[position] for position in only]
            )
        ]
        # rows without a status get the pack's initial status, as they would if no row had one
        if any("status" in row for row in rows):
            initial_status = str(self._core.pack.settings["fact-status"])
            rows = [
                {"status": initial_status if "predicate" in row else "active", **row}
                for row in rows
            ]
        return self._remembering.remember_many(
            rows, chain=False, linking=linking, succeed=linking != "off"
        )

    def end(
        self,
        session: str,
        messages: Any,
        *,
        agent: str | None,
        project: str | None,
        model: LanguageModel | None = None,
        otherwise: Otherwise = "raise",
        store: bool,
        viewer: str | None = None,
        written: Callable[[Mapping[str, Any]], dict[str, Any]] = dict,
    ) -> Learned:
        """Return the lessons of a session, and store them if ``store`` is true.

        See ``lab.agents.end_session``. ``viewer`` is the agent that learns: private memories and
        queries of other agents do not count. ``written`` converts each row to its stored form.
        """
        validate_text(session, where="session")
        with self._core.reading() as state:
            gaps = (
                view_state(self._core.store.journal, state, viewer, always=True)
                .projection(Gaps)
                .frame
            )
            gaps = gaps.filter(pl.col("session") == session, pl.col("closed").is_null())
        raw = (
            _parse_messages(messages, "user")
            if messages is not None
            else self._turns(session, project, gaps.height)
        )
        screened = screen_many([item.text for item in raw], personal=self._core.personal())
        redacted = [
            replace(item, text=after.text) for item, after in zip(raw, screened, strict=True)
        ]
        where = make_scope(agent, project, session)
        stated = self._propose_all(redacted, where, model, otherwise, viewer, lessons=True)
        is_work = bool(read_calls(redacted))
        found_lessons = (
            find_work(redacted, where)
            if is_work
            else find_lessons(
                redacted, where, budget=_SESSION_TOKENS, open_words=self._core.open_words
            )
        )
        if stated.asked is not None:
            found_lessons, stated = _take_lessons(found_lessons, stated, stated.asked)
        with self._core.reading() as state:
            linking_facts = None if links_all(self._core.pack) else "now"
            comparison = get_comparer(self._core)
            # what a session taught before is not learned again, even if it was corrected or forgotten since
            before = set(
                state.memories()
                .filter(pl.col("session") == session, pl.col("kind") != "turn")["text"]
                .drop_nulls()
            )
            fresh = [
                item
                for item in found_lessons
                if item.text not in before
                and (comparison.nearest(item.text, project=project, viewer=viewer) or 0.0) <= _KNOWN
            ]
        lessons_of = Extracted(tuple(fresh), len(redacted))
        if is_work and stated.asked is None:
            stated = replace(
                stated,
                items=tuple(
                    item for item in stated if item.text not in before and _is_of_person(item)
                ),
            )
        remembered: tuple[Remembered, ...] = ()
        # lessons of talk are compared by similarity only: two failures do not contradict each other
        if store:
            remembered = tuple(
                self._remembering.remember_many(
                    [written(item.row) for item in proposed],
                    chain=False,
                    linking=linking,
                    succeed=True,
                )
                for proposed, linking in (
                    (lessons_of, None if is_work else "off"),
                    (stated, linking_facts),
                )
            )
        extracted = Extracted((*lessons_of, *stated), len(redacted), stated.asked)
        notices = tuple(dict.fromkeys(line for item in remembered for line in self._notices(item)))
        return Learned(session, extracted, remembered, notices, gaps)

    def _turns(self, session: str, project: str | None, gaps: int) -> list[Message]:
        """Return the stored turns of a session as messages, in order.

        Raises InputError if there are no turns and the session has no gaps.
        """
        with self._core.reading() as state:
            memories = state.memories()
        of_session = (pl.col("session") == session) & (pl.col("kind") == "turn")
        if project is not None:
            of_session &= pl.col("project") == project
        turns = memories.filter(of_session).select("speaker", "creator", "text", "created")
        if turns.is_empty() and not gaps:
            sessions = (
                memories.filter(pl.col("kind") == "turn")["session"]
                .drop_nulls()
                .unique()
                .sort()
                .to_list()
            )
            raise InputError(
                f"The lab has no turns of session {session!r:.60}. Pass messages=, or one of its sessions: "
                f"{', '.join(map(repr, sessions[:8])) or 'none, because it has no turns'}."
            )
        return [
            Message(infer_role(speaker, creator), text, created)
            if infer_role(speaker, creator) != "other"
            else Message("user", text, created, speaker=speaker)
            for speaker, creator, text, created in turns.iter_rows()
        ]

    def _notices(self, remembered: Remembered) -> list[str]:
        """Return a line for each earlier memory that the newly stored memories supersede or contradict."""
        outcomes = remembered.outcomes
        lines: list[str] = outcomes.filter(pl.col("outcome") == "superseded")["why"].to_list()
        against = outcomes.filter(
            (pl.col("outcome") == "linked") & (pl.col("relation") == "contradicts")
        )
        for id, old_id in against.select("id", "of").iter_rows():
            if id is not None and old_id is not None:
                new, old = self._core.memory(id).text, self._core.memory(old_id).text
                lines.append(f"Contradicts: {clip(new, 80)} / {clip(old, 80)}")
        return lines


def _is_of_person(proposal: Proposed) -> bool:
    """Return whether a proposal is a fact that users stated about themselves."""
    return proposal.fields.get("subject") == USER and proposal.fields["provenance"] == "user-stated"


def _take_lessons(
    by_rules: Sequence[Proposed], extracted: Extracted, usage: Asked
) -> tuple[list[Proposed], Extracted]:
    """Return the lessons of a session, and the model's proposals that are not lessons.

    The model's lessons replace the lessons that rules found in sentences, except in messages that
    the model did not read.
    """
    unread = {number for number, _ in usage.unread}
    remaining = [item for item in by_rules if item.rule not in SORTS or item.message in unread]
    stated = [item for item in extracted if item.rule in SORTS and item.message not in unread]
    others = tuple(item for item in extracted if item not in stated)
    # lessons of other rules than those of sentences, such as of commands, stay as they are
    lessons = [item for item in remaining if item.rule not in LESSONS]
    lessons += select_lessons([*remaining, *stated], _SESSION_TOKENS)
    return lessons, replace(extracted, items=others)


class _ModelReader:
    """Requests of one extraction to a model: several messages in each, and several at a time."""

    def __init__(self, model: LanguageModel, where: Scope, lessons: bool) -> None:
        self._model, self._where, self._lessons = model, where, lessons
        # Requests in a row without an answer, and with a malformed one. Threads may miss a count of
        # another thread, which costs at most a request for each thread.
        self._silent = self._malformed = 0

    def extract(
        self, messages: Sequence[Message], otherwise: Otherwise, admits: Admits
    ) -> Extracted:
        """Return a model's proposals for messages; secrets are already removed."""
        first, role_play = self._model.usage, find_role_play(messages)
        proposed: list[Proposed] = []
        dropped: Counter[str] = Counter()
        unread: list[tuple[int, str]] = []
        repaired = 0
        for turns, result in self._read_all(messages):
            if isinstance(result, Read):
                proposed += result.proposed
                dropped += result.dropped
                repaired += result.repaired
                continue
            numbers = [turn.number for turn in turns]
            if otherwise == "raise":
                which = (
                    f"Messages {numbers[0]}-{numbers[-1]}"
                    if numbers[1:]
                    else f"Message {numbers[0]}"
                )
                raise type(result)(
                    f'{which}: {result} To continue without the model, pass otherwise="rules" or "skip".'
                ) from result
            unread += [(number, str(result)) for number in numbers]
            if otherwise == "rules":
                for number, message, _ in turns:
                    proposed += propose(
                        message, number, self._where, admits, role_play=number in role_play
                    )
        used = self._model.usage - first
        usage = Asked(self._model.name, used, dict(dropped), tuple(unread), otherwise, repaired)
        return Extracted(tuple(proposed), len(messages), usage)

    def _read_all(
        self, messages: Sequence[Message]
    ) -> Iterator[tuple[Sequence[Turn], Read | ModelError]]:
        """Yield the proposals or the error of each request, in the order of the messages."""
        requests = _divide_messages(messages, self._model.batch)
        # The first request goes alone: it finds out whether the server answers, and which fields of
        # a request it refuses.
        yield from self._read(requests[0]) if requests else ()
        pool = ThreadPoolExecutor(self._model.concurrency, "memlab model")
        try:
            for results in pool.map(self._read, requests[1:]):
                yield from results
        finally:  # an error or an interrupt does not wait for requests of which nobody reads the answer
            pool.shutdown(wait=False, cancel_futures=True)

    def _read(self, turns: Sequence[Turn]) -> list[tuple[Sequence[Turn], Read | ModelError]]:
        """Return the proposals or error of a request, halving the request after an unusable answer."""
        try:
            if self._silent >= _SILENT:
                raise NoAnswer(
                    f"{self._model.name} is not called again, because {_SILENT} calls in a row had no answer."
                )
            read = ask_model(self._model, turns, self._where, lessons=self._lessons)
        except ModelError as error:
            self._silent = self._silent + 1 if isinstance(error, NoAnswer) else 0
            self._malformed += 1
            can_halve = isinstance(error, (BadAnswer, Refused)) and self._malformed <= _HALVED
            if not can_halve or len(turns) == 1:
                return [(turns, error)]
            half = len(turns) // 2
            return [*self._read(turns[:half]), *self._read(turns[half:])]
        self._silent = self._malformed = 0
        return [(turns, read)]


def _divide_messages(messages: Sequence[Message], batch: int) -> list[list[Turn]]:
    """Divide the messages of users and assistants into requests of limited length.

    A request has at most ``batch`` messages and ``_CHARACTERS`` characters, but at least one message.
    """
    requests: list[list[Turn]] = []
    before, length = None, 0
    for number, message in enumerate(messages):
        if not message.text or message.role not in ("user", "assistant"):
            continue
        length += len(message.text)
        if not requests or len(requests[-1]) == batch or length > _CHARACTERS:
            requests.append([])
            length = len(message.text)
        requests[-1].append(Turn(number, message, before))
        before = message
    return requests


def _parse_messages(conversation: Any, role: str) -> list[Message]:
    """Parse the messages of a conversation and validate their texts; "" is allowed."""
    messages = parse_messages(conversation, role)
    for message in messages:
        if message.text:
            validate_text(message.text, where=f"message {message.index}")
    return messages


def make_scope(agent: str | None, project: str | None, session: str | None) -> Scope:
    """Return the project, session and agent for the proposals of a call.

    Raises InputError if ``agent`` is not a valid name.
    """
    if agent is not None:
        check_agent(agent)
    return Scope(project, session, agent)

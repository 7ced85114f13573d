"""Extracting of one lab: proposals staged, committed through ``remember``, and what a session taught."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import polars as pl

from memlab.errors import InputError, ModelError, NoAnswer
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
from memlab.kernel.verbs.linking import get_comparer
from memlab.kernel.verbs.registers import Gaps
from memlab.kernel.verbs.remembering.remember import Remembering
from memlab.kernel.verbs.results import Remembered
from memlab.kernel.verbs.tellings import Tellings
from memlab.subjects.extraction.asking import asked
from memlab.subjects.extraction.circumstances import roles_played
from memlab.subjects.extraction.learning import LESSONS, lessons
from memlab.subjects.extraction.proposing import Where, proposals
from memlab.subjects.extraction.staged import Asked, Extracted, Proposed
from memlab.subjects.models import LanguageModel, Otherwise
from memlab.subjects.reading.utterances import Utterance

__all__ = ["Extraction", "Learned", "chats_of", "unread", "where_of"]


# Messages of a chat that was loaded, so that facts can be extracted of them: who speaks as "I".
#
# Where one person talks with an assistant, "I" is the user; where several people talk, "I" is the speaker by name.


_READ = ("turn", None)
"""Kinds of rows that were said; a memory of another kind is remembered already as what it is."""


def chats_of(
    rows: Iterable[Mapping[str, Any]],
) -> dict[tuple[str | None, str | None], list[Message]]:
    """Return the messages of each session of some rows, in order.

    Parameters
    ----------
    rows
        Rows as ``remember`` takes them, with text and, where known, speaker, creator, session, project and at.

    Returns
    -------
    dict
        Messages by project and session; a person alone with an assistant, or alone, has no name in them. The ``place``
        of a message is the number of its row.

    Examples
    --------
    >>> two = chats_of([{"text": "I moved", "speaker": "Ada"}, {"text": "So did I", "speaker": "Bob"}])
    >>> [(one.role, one.speaker) for one in two[None, None]]
    [('user', 'Ada'), ('user', 'Bob')]
    >>> one = chats_of([{"text": "I moved", "speaker": "Ada"}, {"text": "Nice!", "speaker": "assistant"}])
    >>> [(one.role, one.speaker) for one in one[None, None]]
    [('user', None), ('assistant', None)]
    """
    sessions: dict[
        tuple[str | None, str | None], list[tuple[str, str | None, int, Mapping[str, Any]]]
    ] = {}
    people: dict[str | None, set[str]] = {}
    assistants: set[str | None] = set()
    for place, row in enumerate(rows):
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
            ("user" if name else role, name, place, row)
        )
    found = {}
    for (project, session), said in sessions.items():
        alone = len(people.get(project, ())) == 1 and project in assistants
        found[project, session] = [
            Message(role, row["text"], row.get("at"), speaker=None if alone else name, index=place)
            for role, name, place, row in said
        ]
    return found


def unread(
    messages: Sequence[Message], fresh: Collection[int], tellings: Collection[tuple[int, str]]
) -> frozenset[int]:
    """Return the numbers of the messages of a session that extraction has not read.

    A session is read from its beginning and stored in one transaction, so what comes before a message of which
    something was extracted was read too. A load that was killed leaves the messages after it unread.

    Parameters
    ----------
    messages
        The messages of the session, in order.
    fresh
        The numbers of those that the lab did not hold before.
    tellings
        The instant, in microseconds UTC, and the quoted words of all that was extracted of the session so far.

    Returns
    -------
    frozenset
        The fresh messages, and those after the last of which something was extracted. All where nothing was.

    Examples
    --------
    >>> said = [Message("user", "I moved to Oslo"), Message("user", "I bought a boat"), Message("user", "Hm")]
    >>> sorted(unread(said, {2}, [(0, "I moved to Oslo")]))
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
            at in (None, when) and said in words for when, said in tellings
        ):
            last = number
            break
    return frozenset(number for number in range(len(messages)) if number > last or number in fresh)


Admits = Callable[[str, Utterance, str], bool]

_SILENT = 3
"""Messages in a row without an answer after which a model is not asked any more: each may take its whole timeout."""

_LINES = 5
_KNOWN = 0.92
"""Closeness to a memory above which a lesson is known already."""

_SESSION_TOKENS = 2_000
"""What a session's lessons may take, as its design has it."""

_SAID = {
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
    """What a session taught, and what storing it did to what was known.

    Attributes
    ----------
    session
        The session.
    extracted
        The lessons that were not known yet, then the proposals of its messages, as ``lab.agents.extract`` returns them.
    remembered
        Two results of ``lab.remember``: what became of the lessons, and of the other proposals. ``()`` with
        ``store=False``.
    notices
        A line for each conflict with what was known: "Updated: tabs -> spaces".
    gaps
        A frame of the open gaps of the session, with the columns of ``lab.upkeep.review.gaps``.
    """

    session: str
    extracted: Extracted
    remembered: tuple[Remembered, ...]
    notices: tuple[str, ...]
    gaps: pl.DataFrame = field(repr=False)

    @property
    def text(self) -> str:
        """ "Here is what I learned", in at most five lines, then conflicts and what stayed open."""
        lessons = [one for sort in LESSONS for one in self.extracted if one.rule == sort]
        lines = [f"- {_SAID[one.rule]}: {clip(one.text, 160)}" for one in lessons[:_LINES]]
        facts = [one.text for one in self.extracted.facts]
        if facts and len(lines) < _LINES:
            lines.append(f"- {clip('; '.join(facts), 240)}")
        lines = (
            ["Here is what I learned:", *lines]
            if lines
            else ["Nothing was learned that a rule recognises."]
        )
        lines += self.notices
        if self.gaps.height:
            lines.append(f"Looked for in vain {self.gaps.height} times (lab.upkeep.review.gaps):")
            newest = dict.fromkeys(self.gaps["snippet"].reverse())
            lines += [f"- {clip(snippet, 160)}" for snippet in list(newest)[:_LINES]]
        return "\n".join(lines)

    @property
    def frame(self) -> pl.DataFrame:
        """The frame of ``extracted``."""
        return self.extracted.frame

    def __repr__(self) -> str:
        return printable(self.text)

    def _display(self) -> object:
        rows = [(one.rule, one.text, f"{one.confidence:g}") for one in self.extracted]
        return table(
            f"Session {self.session}",
            ("rule", "what", "confidence"),
            rows,
            notes=self.text.splitlines(),
        )


class Extraction:
    """How one lab extracts. ``observing`` says by the pack whether an utterance is worth remembering: ``admit``."""

    def __init__(self, core: Core, remembering: Remembering, observing: Any) -> None:
        self._core, self._remembering, self._observing = core, remembering, observing

    def extract(
        self,
        messages: Any,
        role: str,
        where: Where,
        model: LanguageModel | None,
        otherwise: Otherwise,
    ) -> Extracted:
        """Facts and memories of messages; see ``Lab.extract``."""
        return self._of(_said(messages, role), where, model, otherwise)

    def _of(
        self,
        messages: Sequence[Message],
        where: Where,
        model: LanguageModel | None,
        otherwise: Otherwise,
        viewer: str | None = None,
        *,
        only: Collection[int] | None = None,
        before: Message | None = None,
    ) -> Extracted:
        """What messages propose: all, or those numbered ``only``; ``before`` is the message before the first."""
        personal = self._core.personal()
        admits = self._admits(where, viewer)
        if model is not None:
            with self._core.reading() as state:
                # nothing of it leaves the machine either
                check_on(self._core.store, state, (where.project,))
            screened = screen_many([one.text for one in messages], personal=personal)
            said = [
                replace(one, text=after.text) for one, after in zip(messages, screened, strict=True)
            ]
            return _asked(said, where, model, otherwise, admits)
        earlier, played = [before, *messages], roles_played(messages)
        found = [
            list(
                proposals(message, number, where, admits, earlier[number], played=number in played)
            )
            if only is None or number in only
            else []
            for number, message in enumerate(messages)
        ]
        telling = [number for number, proposed in enumerate(found) if proposed]
        screened = screen_many([messages[number].text for number in telling], personal=personal)
        for number, after in zip(telling, screened, strict=True):
            if after.findings:
                screened_message = replace(messages[number], text=after.text)
                found[number] = list(
                    proposals(
                        screened_message,
                        number,
                        where,
                        admits,
                        earlier[number],
                        played=number in played,
                    )
                )
        return Extracted(tuple(chain.from_iterable(found)), len(messages))

    def _admits(self, where: Where, viewer: str | None) -> Admits:
        """Whether what an utterance shows is worth remembering, by the pack."""
        known: dict[tuple[object, ...], bool] = {}

        def admits(text: str, shown: Utterance, role: str) -> bool:
            reads = self._core.pack.policies["admit"].inputs
            key = (
                role,
                shown.fired,
                shown.length if "length" in reads else 0,
                text if "nearest" in reads else "",
            )
            if key not in known:  # what a policy was asked with the same inputs it answers alike
                known[key] = self._observing.admit(
                    text, role=role, project=where.project, viewer=viewer
                ).admitted
            return known[key]

        return admits

    def of_chats(self, rows: Sequence[tuple[Mapping[str, Any], bool]], linking: str | None) -> int:
        """Extract facts and observations of rows that were loaded and store them; return how many are stored.

        Each row says whether it is new. A session is read in order and stored in one transaction. Of a session that was
        read before, only what is unread is read: new rows, and those that a killed load left. A message is always read
        together with the one before it, be that in the rows or in the lab.
        """
        stored = 0
        told = self._tellings()
        for (project, session), messages in chats_of(row for row, _ in rows).items():
            fresh = frozenset(
                number for number, message in enumerate(messages) if rows[message.index][1]
            )
            numbers = unread(messages, fresh, told.get((project, session), ()))
            if not numbers:
                continue
            before = self._turn_before(session, project, len(messages)) if 0 in fresh else None
            where = where_of(None, project, session)
            extracted = self._of(messages, where, None, "raise", only=numbers, before=before)
            if extracted:
                stored += len(self.commit(extracted, None, linking).ids)
        return stored

    def _tellings(self) -> dict[tuple[str | None, str | None], list[tuple[int, str]]]:
        """When what was extracted was said and in which words, by project and session; also where it was merged."""
        with self._core.reading() as state:
            extracted = pl.col("reason").str.starts_with("extracted by ")
            columns = ("project", "session", "created", "context")
            rows = (
                state.memories().filter(extracted & pl.col("context").is_not_null()).select(columns)
            )
            tellings = [
                (one.get("project"), one.get("session"), one["at"], one["context"])
                for one in state.projection(Tellings).all
                if (one.get("reason") or "").startswith("extracted by ") and one.get("context")
            ]
        found: dict[tuple[str | None, str | None], list[tuple[int, str]]] = {}
        for project, session, when, said in chain(rows.iter_rows(), tellings):
            found.setdefault((project, session), []).append((to_micros(when), said))
        return found

    def _turn_before(self, session: str | None, project: str | None, given: int) -> Message | None:
        """The last turn that a session had before its last ``given`` ones; None where there was none."""
        if session is None:
            return None
        turns = self._turns(session, project, 1)
        return turns[-given - 1] if len(turns) > given else None

    def commit(
        self, extracted: Extracted, only: Iterable[int] | None, linking: str | None
    ) -> Remembered:
        """Store what was extracted in one transaction; see ``LabAgents.commit``."""
        rows = [
            one.row for one in (extracted if only is None else [extracted[place] for place in only])
        ]
        # what is not staged begins as the pack says, as without a status
        if any("status" in row for row in rows):
            first = str(self._core.pack.settings["fact-status"])
            rows = [{"status": first if "predicate" in row else "active", **row} for row in rows]
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
        """What a session taught; see ``LabAgents.end_session``.

        ``viewer`` is who learns: what is private to others is not known, and what they looked for is no gap.
        ``written`` makes of each row what is stored.
        """
        validate_text(session, where="session")
        with self._core.reading() as state:
            gaps = (
                view_state(self._core.store.journal, state, viewer, always=True)
                .projection(Gaps)
                .frame
            )
            gaps = gaps.filter(pl.col("session") == session, pl.col("closed").is_null())
        given = (
            _said(messages, "user")
            if messages is not None
            else self._turns(session, project, gaps.height)
        )
        screened = screen_many([one.text for one in given], personal=self._core.personal())
        said = [replace(one, text=after.text) for one, after in zip(given, screened, strict=True)]
        where = where_of(agent, project, session)
        taught = lessons(said, where, budget=_SESSION_TOKENS, open_words=self._core.open_words)
        with self._core.reading():
            off = self._core.pack.settings["linking"] == "off"
            near = get_comparer(self._core)
            fresh = [
                one
                for one in taught
                if (near.nearest(one.text, project=project, viewer=viewer) or 0.0) <= _KNOWN
            ]
        lessons_of, stated = (
            Extracted(tuple(fresh), len(said)),
            self._of(said, where, model, otherwise, viewer),
        )
        remembered: tuple[Remembered, ...] = ()
        # lessons are told apart by their nearness alone: what failed once contradicts no other failure
        if store:
            remembered = tuple(
                self._remembering.remember_many(
                    [written(one.row) for one in found], chain=False, linking=how, succeed=True
                )
                for found, how in ((lessons_of, "off"), (stated, None if off else "now"))
            )
        extracted = Extracted((*lessons_of, *stated), len(said), stated.asked)
        notices = tuple(dict.fromkeys(line for one in remembered for line in self._notices(one)))
        return Learned(session, extracted, remembered, notices, gaps)

    def _turns(self, session: str, project: str | None, gaps: int) -> list[Message]:
        """The turns of a session that the lab holds, in order. InputError where it holds none, and knows of no gaps."""
        with self._core.reading() as state:
            memories = state.memories()
        of_session = (pl.col("session") == session) & (pl.col("kind") == "turn")
        if project is not None:
            of_session &= pl.col("project") == project
        turns = memories.filter(of_session).select("speaker", "creator", "text", "created")
        if turns.is_empty() and not gaps:
            known = (
                memories.filter(pl.col("kind") == "turn")["session"]
                .drop_nulls()
                .unique()
                .sort()
                .to_list()
            )
            raise InputError(
                f"The lab holds no turns of a session {session!r:.60}: give messages=, or name one of "
                f"{', '.join(map(repr, known[:8])) or 'none, as it holds no turns'}."
            )
        return [
            Message(infer_role(speaker, creator), text, created)
            if infer_role(speaker, creator) != "other"
            else Message("user", text, created, speaker=speaker)
            for speaker, creator, text, created in turns.iter_rows()
        ]

    def _notices(self, remembered: Remembered) -> list[str]:
        """A line for each memory that took another's place, or contradicts one that stays."""
        outcomes = remembered.outcomes
        lines: list[str] = outcomes.filter(pl.col("outcome") == "superseded")["why"].to_list()
        against = outcomes.filter(
            (pl.col("outcome") == "linked") & (pl.col("relation") == "contradicts")
        )
        for id, of in against.select("id", "of").iter_rows():
            if id is not None and of is not None:
                new, old = self._core.memory(id).text, self._core.memory(of).text
                lines.append(f"Contradicts: {clip(new, 80)} / {clip(old, 80)}")
        return lines


def _asked(
    messages: Sequence[Message],
    where: Where,
    model: LanguageModel,
    otherwise: Otherwise,
    admits: Admits,
) -> Extracted:
    """What a model proposes of messages without secrets; after a few without an answer it is not asked on."""
    found: list[Proposed] = []
    dropped: Counter[str] = Counter()
    unread: list[tuple[int, str]] = []
    silent, before, first = 0, "", model.usage
    played = roles_played(messages)
    for number, message in enumerate(messages):
        if not message.text or message.role not in ("user", "assistant"):
            continue
        try:
            if silent >= _SILENT:
                raise NoAnswer(
                    f"{model.name} is not asked any more, after {silent} questions without an answer."
                )
            proposed, refused = asked(model, message, before, number, where)
        except ModelError as error:
            if otherwise == "raise":
                raise type(error)(
                    f'Message {number}: {error} To go on without: otherwise="rules" or "skip".'
                ) from error
            silent = silent + 1 if isinstance(error, NoAnswer) else 0
            unread.append((number, str(error)))
            found += (
                proposals(message, number, where, admits, played=number in played)
                if otherwise == "rules"
                else ()
            )
        else:
            silent = 0
            found += proposed
            dropped += refused
        before = message.text
    used = Asked(model.name, model.usage - first, dict(dropped), tuple(unread), otherwise)
    return Extracted(tuple(found), len(messages), used)


def _said(given: Any, role: str) -> list[Message]:
    """The messages that are given, of texts that could be stored; an empty one is allowed, as nothing comes of it."""
    messages = parse_messages(given, role)
    for message in messages:
        if message.text:
            validate_text(message.text, where=f"message {message.index}")
    return messages


def where_of(agent: str | None, project: str | None, session: str | None) -> Where:
    """What the proposals of a call have in common. InputError for what is no name of an agent."""
    if agent is not None:
        check_agent(agent)
    return Where(project, session, agent)

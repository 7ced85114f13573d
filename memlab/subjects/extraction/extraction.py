"""Extracting of one lab: proposals staged, committed through ``remember_many``, and what a session taught."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from memlab.display import clip, table
from memlab.errors import InputError
from memlab.printable import printable
from memlab.privacy import screen, screen_many
from memlab.schema import role_of
from memlab.state import checked_text
from memlab.storage.views import seen
from memlab.subjects.agents.relationships import check_agent
from memlab.subjects.core import Core
from memlab.subjects.extraction.learning import LESSONS, lessons
from memlab.subjects.extraction.messages import Message, messages_of
from memlab.subjects.extraction.proposing import Where, proposals
from memlab.subjects.extraction.staged import Extracted, Proposed
from memlab.subjects.feedback.gaps import Gaps
from memlab.subjects.linking.comparing import Comparing
from memlab.subjects.remembering.detectors import Utterance
from memlab.subjects.remembering.remember import Remembering
from memlab.subjects.results import Remembered

__all__ = ["Extraction", "Learned"]

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
}


@dataclass(frozen=True)
class Learned:
    """What a session taught, and what storing it did to what was known.

    ``extracted`` are the lessons that were not known yet and the proposals of its messages, ``remembered`` what became
    of the ones and the others (empty unless they were stored). ``notices`` say in a line each what conflicts: "Updated:
    tabs -> spaces". ``gaps`` has the questions of the session to which nothing was found, as ``lab.review.gaps`` does.
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
        lines = ["Here is what I learned:", *lines] if lines else ["Nothing was learned that a rule recognises."]
        lines += self.notices
        if self.gaps.height:
            lines.append(f"Looked for in vain {self.gaps.height} times (lab.review.gaps):")
            newest = dict.fromkeys(self.gaps["snippet"].reverse())
            lines += [f"- {clip(snippet, 160)}" for snippet in list(newest)[:_LINES]]
        return "\n".join(lines)

    @property
    def frame(self) -> pl.DataFrame:
        """The frame of ``extracted``."""
        return self.extracted.frame

    def __repr__(self) -> str:
        return printable(self.text)

    def _repr_html_(self) -> str:
        rows = [(one.rule, one.text, f"{one.confidence:g}") for one in self.extracted]
        return table(f"Session {self.session}", ("rule", "what", "confidence"), rows, notes=self.text.splitlines())


class Extraction:
    """How one lab extracts."""

    def __init__(self, core: Core, remembering: Remembering) -> None:
        self._core, self._remembering = core, remembering

    def extract(
        self, messages: Any, *, role: str, agent: str | None, project: str | None, session: str | None
    ) -> Extracted:
        """Facts and memories of messages; see ``Lab.extract``."""
        return self._of(messages_of(messages, role), _where(agent, project, session))

    def _of(self, messages: Sequence[Message], where: Where, viewer: str | None = None) -> Extracted:
        known: dict[tuple[object, ...], bool] = {}

        def admits(text: str, shown: Utterance, role: str) -> bool:
            reads = self._core.pack.policies["admit"].inputs
            key = (role, shown.fired, shown.length if "length" in reads else 0, text if "nearest" in reads else "")
            if key not in known:  # what a policy was asked with the same inputs it answers alike
                known[key] = self._remembering.admit(text, role=role, project=where.project, viewer=viewer).admitted
            return known[key]

        found: list[Proposed] = []
        personal = self._core.personal()
        for number, message in enumerate(messages):
            proposed = list(proposals(message, number, where, admits))
            if proposed and (screened := screen(message.text, personal=personal)).findings:
                proposed = list(proposals(replace(message, text=screened.text), number, where, admits))
            found += proposed
        return Extracted(tuple(found), len(messages))

    def commit(self, extracted: Extracted, only: Iterable[int] | None, linking: str | None) -> Remembered:
        """Store what was extracted in one transaction; see ``LabAgents.commit``."""
        rows = [one.row for one in (extracted if only is None else [extracted[place] for place in only])]
        return self._remembering.many(rows, chain=False, linking=linking)

    def end(
        self,
        session: str,
        messages: Any,
        *,
        agent: str | None,
        project: str | None,
        store: bool,
        viewer: str | None = None,
        written: Callable[[Mapping[str, Any]], dict[str, Any]] = dict,
    ) -> Learned:
        """What a session taught; see ``LabAgents.end_session``.

        ``viewer`` is who learns: what is private to others is not known, and what they looked for is no gap.
        ``written`` makes of each row what is stored.
        """
        checked_text(session, where="session")
        with self._core.reading() as state:
            gaps = seen(self._core.store.journal, state, viewer, always=True).projection(Gaps).frame
            gaps = gaps.filter(pl.col("session") == session, pl.col("closed").is_null())
        given = messages_of(messages, "user") if messages is not None else self._turns(session, project, gaps.height)
        screened = screen_many([one.text for one in given], personal=self._core.personal())
        said = [replace(one, text=after.text) for one, after in zip(given, screened, strict=True)]
        where = _where(agent, project, session)
        taught = lessons(said, where, budget=_SESSION_TOKENS, open_words=self._core.open_words)
        with self._core.reading():
            off = self._core.pack.settings["linking"] == "off"
            near = Comparing(self._core)
            fresh = [one for one in taught if (near.nearest(one.text, project=project, viewer=viewer) or 0.0) <= _KNOWN]
        lessons_of, stated = Extracted(tuple(fresh), len(said)), self._of(said, where, viewer)
        remembered: tuple[Remembered, ...] = ()
        if store:  # lessons are told apart by their nearness alone: what failed once contradicts no other failure
            remembered = tuple(
                self._remembering.many([written(one.row) for one in found], chain=False, linking=how)
                for found, how in ((lessons_of, "off"), (stated, None if off else "now"))
            )
        extracted = Extracted((*lessons_of, *stated), len(said))
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
            known = memories.filter(pl.col("kind") == "turn")["session"].drop_nulls().unique().sort().to_list()
            raise InputError(
                f"The lab holds no turns of a session {session!r:.60}: give messages=, or name one of "
                f"{', '.join(map(repr, known[:8])) or 'none, as it holds no turns'}."
            )
        return [
            Message(role_of(speaker, creator), text, created)
            if role_of(speaker, creator) != "other"
            else Message("user", text, created, speaker=speaker)
            for speaker, creator, text, created in turns.iter_rows()
        ]

    def _notices(self, remembered: Remembered) -> list[str]:
        """A line for each memory that took another's place, or contradicts one that stays."""
        outcomes = remembered.outcomes
        lines: list[str] = outcomes.filter(pl.col("outcome") == "superseded")["why"].to_list()
        against = outcomes.filter((pl.col("outcome") == "linked") & (pl.col("relation") == "contradicts"))
        for id, of in against.select("id", "of").iter_rows():
            if id is not None and of is not None:
                new, old = self._core.memory(id).text, self._core.memory(of).text
                lines.append(f"Contradicts: {clip(new, 80)} / {clip(old, 80)}")
        return lines


def _where(agent: str | None, project: str | None, session: str | None) -> Where:
    if agent is not None:
        check_agent(agent)
    return Where(project, session, agent)

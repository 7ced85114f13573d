"""The columns that every room shares, each declared once with its type, unit and default.

``MEMORY`` and ``EDGE`` are what ``lab.memories`` and ``lab.edges`` show. A field of a memory is what a caller
may give to ``lab.remember``; the engine keeps the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = [
    "EDGE",
    "FIELDS",
    "KINDS",
    "MEMORY",
    "OUTCOMES",
    "PROVENANCES",
    "RECALLABLE",
    "RELATIONS",
    "ROLES",
    "SCOPES",
    "SOURCES",
    "STATUSES",
    "USES",
    "VISIBILITIES",
    "Column",
]

Storage = Literal["num", "bool", "time", "word", "name", "text", "list"]


@dataclass(frozen=True)
class Column:
    """One column: ``word`` draws from a closed vocabulary, ``name`` from an open one, ``time`` is UTC microseconds.

    ``given`` says whether a caller sets it. ``low`` and ``high`` bound a number, in ``unit``. A number without a
    default is null until it is set; columns hold it as NaN.
    """

    name: str
    storage: Storage
    doc: str
    default: float | bool | str | None = None
    unit: str = ""
    low: float = float("-inf")
    high: float = float("inf")
    words: tuple[str, ...] = ()
    given: bool = True

    @property
    def nullable(self) -> bool:
        """Whether it is a number that may be null."""
        return self.storage == "num" and self.default is None


KINDS = (
    # a turn of a conversation, as it was said
    "turn",
    # a coding assistant's memory graph
    "fact",
    "preference",
    "procedure",
    "correction",
    "negative",
    # an assistant that knows its user
    "personal",
    "goal",
    "trait",
    "observation",
    "event",
    "feeling",
    "learning",
    # what was learned in a code base
    "gotcha",
    "decision",
    "convention",
    "context",
    "error-pattern",
    "dependency-relation",
    "environment-quirk",
    "human-feedback",
    "pr-review",
    "pr-finding",
    "pr-pattern",
    "pr-gotcha",
    "session-insight",
    "codebase-discovery",
    "codebase-map",
    "task-outcome",
    # what consolidation leaves
    "summary",
)
SCOPES = ("global", "project", "session")
PROVENANCES = ("user-stated", "user-corrected", "observed", "inferred", "extracted")
SOURCES = ("conversation", "system", "file", "user-edit")
STATUSES = ("active", "forgotten", "staged", "confirmed", "superseded", "retracted")
RECALLABLE = ("active", "staged", "confirmed")
"""The statuses of what takes part in recall."""
ROLES = ("user", "assistant", "system", "tool")
USES = 8
"""How many of a memory's latest uses are kept with their times."""
VISIBILITIES = ("private", "team", "project")
OUTCOMES = ("success", "fail")
RELATIONS = (
    "next",
    "relates-to",
    "supersedes",
    "contradicts",
    "derived-from",
    "depends-on",
    "caused-by",
    "has-tag",
    "in-cluster",
)

MEMORY: dict[str, Column] = {
    column.name: column
    for column in (
        Column("text", "text", "What is remembered, after the privacy gate."),
        Column("kind", "word", "What sort of memory it is.", "fact", words=KINDS),
        Column("ref", "text", "The caller's own identifier; not interpreted, need not be unique."),
        Column("project", "name", "The project it belongs to; none means valid in every project."),
        Column("session", "name", "The session or conversation it came from."),
        Column("speaker", "name", "Who said it."),
        Column("branch", "name", "The branch of the code base it was learned on."),
        Column("creator", "name", "Who wrote it: user, agent:coder, ..."),
        Column("scope", "word", "How far it reaches: everywhere, its project, its session.", "project", words=SCOPES),
        Column("provenance", "word", "How it came to be known.", "user-stated", words=PROVENANCES),
        Column("visibility", "word", "Who may see it.", "project", words=VISIBILITIES),
        Column("source", "word", "What it was learned from.", "conversation", words=SOURCES),
        Column("tags", "list", "Free labels."),
        Column("files", "list", "Paths that it is about."),
        Column("triggers", "list", "What brings it up: it surfaces when one of these occurs in the question."),
        Column("importance", "num", "How much it matters.", 0.5, "share", 0, 1),
        Column("confidence", "num", "How sure it is.", 0.8, "share", 0, 1),
        Column(
            "strength", "num", "Vividness when last recalled, in percent, or how often it was confirmed.", 100.0, "", 0
        ),
        Column("emotional_weight", "num", "How much feeling it carries.", 5.0, "percent", 0, 100),
        Column("recency_weight", "num", "How much its own recency may add to a score.", 0.5, "share", 0, 1),
        Column("energy", "num", "Energy when last used; it decays from there.", 1.0, "share", 0, 1),
        Column("stability", "num", "Days until the chance of recalling it falls to 0.9.", None, "days", 0),
        Column("difficulty", "num", "How hard it is to keep, 1 to 10.", None, "", 1, 10),
        Column("ttl_days", "num", "Days that it is to live; none means for good.", None, "days", 0),
        Column("pinned", "bool", "Kept fresh whatever its age.", False),
        Column("created", "time", "When it was remembered, or `at` if given."),
        Column("status", "word", "Whether it takes part in recall.", "active", words=STATUSES, given=False),
        Column("accessed", "time", "When it was last recalled; at first its creation.", given=False),
        Column("access", "num", "How often it was recalled.", 0.0, "count", 0, given=False),
        Column("success", "num", "Feedback of success so far.", 0.0, "count", 0, given=False),
        Column("fail", "num", "Feedback of failure so far.", 0.0, "count", 0, given=False),
    )
}

FIELDS: tuple[str, ...] = tuple(name for name, column in MEMORY.items() if column.given and name != "created")
"""What ``lab.remember`` takes beside ``at``."""

EDGE: dict[str, Column] = {
    column.name: column
    for column in (
        Column("source", "num", "The memory it leaves, by id."),
        Column("target", "num", "The memory it enters, by id."),
        Column("relation", "word", "What joins them.", "relates-to", words=RELATIONS),
        Column("weight", "num", "How strongly.", 1.0, "share", 0, 1),
        Column("reinforcements", "num", "How often it was strengthened.", 0.0, "count", 0, given=False),
        Column("created", "time", "When it was made.", given=False),
    )
}

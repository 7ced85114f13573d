"""The columns that every package shares, each declared once with its type, unit and default.

``MEMORY`` and ``EDGE`` are what ``lab.memories`` and ``lab.edges`` show. A field of a memory is what a caller
may give to ``lab.remember``; the engine keeps the others.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "EDGE",
    "FIELDS",
    "FIXED",
    "KINDS",
    "MEMORY",
    "NEVER",
    "OF_THE_USER",
    "OUTCOMES",
    "PROVENANCES",
    "RECALLABLE",
    "RELATIONS",
    "ROLES",
    "SCOPES",
    "SOURCES",
    "SPEAKER_ROLES",
    "STATUSES",
    "USES",
    "VISIBILITIES",
    "Column",
    "infer_role",
    "is_open_word",
    "is_single_valued",
    "normalise_word",
]

Storage = Literal["num", "bool", "time", "word", "name", "text", "note", "list"]

NEVER = -(2**63)
"""The instant of what has not happened."""


@dataclass(frozen=True)
class Column:
    """One column: ``word`` draws from a closed vocabulary, ``name`` from an open one, ``time`` is UTC microseconds.

    ``note`` is a text that few memories have. ``given`` says whether a caller sets it. ``low`` and ``high`` bound a
    number, in ``unit``. A number or a time without a default is null until it is set; columns hold it as NaN, or as
    ``NEVER``. A column in which every row has the default takes no room. ``open`` says of a ``word`` that a pack with
    the setting ``open-words`` lets others in: a short word, as ``is_open_word`` knows it.
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
    open: bool = False

    @property
    def nullable(self) -> bool:
        """Whether it is a number or a time that may be null."""
        return self.storage in ("num", "time") and self.default is None


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
OF_THE_USER = ("personal", "preference", "goal", "trait")
"""The kinds that say something of the user, whoever remembers it."""
SCOPES = ("global", "project", "session")
PROVENANCES = ("user-stated", "user-corrected", "observed", "inferred", "extracted")
SOURCES = ("conversation", "system", "file", "user-edit")
STATUSES = (
    "active",
    # forgotten, until someone restores it
    "forgotten",
    # a fact's life
    "staged",
    "confirmed",
    "superseded",
    "retracted",
    # flagged as wrong; what its time to live took; on its way out, for 30 days; gone, its row alone is left
    "deprecated",
    "expired",
    "deleted",
    "purged",
    # part of a summary that stands for it
    "consolidated",
    # out of recall with all that came from the same place
    "quarantined",
)
RECALLABLE = ("active", "staged", "confirmed")
"""The statuses of what takes part in recall."""
ROLES = ("user", "assistant", "system", "tool")
SPEAKER_ROLES = (*ROLES, "other")
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
    "similar-to",
    "updates",
    "mentions",
)

MEMORY: dict[str, Column] = {
    column.name: column
    for column in (
        Column("text", "text", "What is remembered, after the privacy gate."),
        Column("kind", "word", "What sort of memory it is.", "fact", words=KINDS, open=True),
        Column("ref", "text", "The caller's own identifier; not interpreted, need not be unique."),
        Column("project", "name", "The project it belongs to; none means valid in every project."),
        Column("session", "name", "The session or conversation it came from."),
        Column("speaker", "name", "Who said it."),
        Column("branch", "name", "The branch of the code base it was learned on."),
        Column("creator", "name", "Who wrote it: user, agent:coder, ..."),
        Column(
            "scope",
            "word",
            "How far it reaches: everywhere, its project, its session.",
            "project",
            words=SCOPES,
        ),
        Column("provenance", "word", "How it came to be known.", "user-stated", words=PROVENANCES),
        Column("visibility", "word", "Who may see it.", "project", words=VISIBILITIES),
        Column("source", "word", "What it was learned from.", "conversation", words=SOURCES),
        Column("tags", "list", "Free labels."),
        Column("files", "list", "Paths that it is about."),
        Column("agents", "list", "Who contributed to it."),
        Column(
            "triggers",
            "list",
            "What brings it up: it surfaces when one of these occurs in the question.",
        ),
        Column("title", "name", "What a procedure is called."),
        Column("steps", "list", "What a procedure does, in order."),
        Column("prerequisites", "list", "What a procedure needs."),
        Column("warnings", "list", "What to beware of in a procedure."),
        Column(
            "operations",
            "note",
            "Operations in the dialect of `lab.upkeep.operations.run`, proposed when it is recalled.",
        ),
        Column("summary", "note", "It in a sentence of 25 to 35 tokens, for a prompt."),
        Column("context", "note", "What was said around it."),
        Column("reason", "note", "Why it is believed as it is, or why its status is what it is."),
        Column("subject", "name", "The entity that a fact is about."),
        Column("predicate", "name", "What the fact says of it: lives-in, prefers:theme, ..."),
        Column("object", "name", "The entity to which the predicate joins the subject."),
        Column("value", "name", "The value that the predicate has, where it is no entity."),
        Column("season", "name", "It takes part only while this season is on: release-week."),
        Column("origin", "name", "Where an imported memory comes from: a lab and its id there."),
        Column(
            "first_message",
            "num",
            "The first message of its session that it comes from.",
            None,
            "",
            0,
        ),
        Column("last_message", "num", "The last one.", None, "", 0),
        Column("importance", "num", "How much it matters.", 0.5, "share", 0, 1),
        Column("confidence", "num", "How sure it is.", 0.8, "share", 0, 1),
        Column(
            "strength",
            "num",
            "Vividness when last recalled, in percent, or how often it was confirmed.",
            100.0,
            "",
            0,
        ),
        Column("emotional_weight", "num", "How much feeling it carries.", 5.0, "percent", 0, 100),
        Column(
            "recency_weight",
            "num",
            "How much its own recency may add to a score.",
            0.5,
            "share",
            0,
            1,
        ),
        Column("energy", "num", "Energy when last used; it decays from there.", 1.0, "share", 0, 1),
        Column(
            "stability",
            "num",
            "Days until the chance of recalling it falls to 0.9.",
            None,
            "days",
            0,
        ),
        Column("difficulty", "num", "How hard it is to keep, 1 to 10.", None, "", 1, 10),
        Column("ttl_days", "num", "Days that it is to live; none means for good.", None, "days", 0),
        Column(
            "trust",
            "num",
            "Trust in where it comes from; none: by its provenance.",
            None,
            "share",
            0,
            1,
        ),
        Column("pinned", "bool", "Kept fresh whatever its age.", False),
        Column("valid_from", "time", "Since when it holds; none: since it was created."),
        Column("valid_until", "time", "Until when it held; none: it still does."),
        Column("created", "time", "When it was remembered, or `at` if given.", "now"),
        Column("status", "word", "Whether it takes part in recall.", "active", words=STATUSES),
        Column("label", "name", "The word that the label policy last had for it.", given=False),
        Column(
            "superseded_by",
            "num",
            "The memory that stands in its place, by id.",
            None,
            "",
            1,
            given=False,
        ),
        Column(
            "changed", "time", "When its status, label or fields were last changed.", given=False
        ),
        Column(
            "accessed",
            "time",
            "When it was last recalled; at first its creation.",
            "now",
            given=False,
        ),
        Column("access", "num", "How often it was recalled.", 0.0, "count", 0, given=False),
        Column("success", "num", "Feedback of success so far.", 0.0, "count", 0, given=False),
        Column("fail", "num", "Feedback of failure so far.", 0.0, "count", 0, given=False),
    )
}

FIELDS: tuple[str, ...] = tuple(
    name for name, column in MEMORY.items() if column.given and name != "created"
)
"""What ``lab.remember`` takes beside ``at``: docs/reference/memories.md#fields-of-a-memory."""

FIXED = ("text", "ref", "speaker", "project", "session", "created")
"""What is embedded, posted or chained as it was remembered: another value is another memory."""

EDGE: dict[str, Column] = {
    column.name: column
    for column in (
        Column("source", "num", "The memory it leaves, by id."),
        Column("target", "num", "The memory it enters, by id."),
        Column("relation", "word", "What joins them.", "relates-to", words=RELATIONS, open=True),
        Column("weight", "num", "How strongly.", 1.0, "share", 0, 1),
        Column(
            "reinforcements", "num", "How often it was strengthened.", 0.0, "count", 0, given=False
        ),
        Column("created", "time", "When it was made.", given=False),
    )
}


_OPEN_WORD = re.compile(r"[^\W\d_][\w:.-]{0,39}")


def is_open_word(word: object) -> bool:
    """Whether it may be a kind or a relation where these are open: a letter, then up to 39 of letters, digits, _ : . -

    >>> is_open_word("breakthrough"), is_open_word("two words")
    (True, False)
    """
    return isinstance(word, str) and _OPEN_WORD.fullmatch(word) is not None


_SYNONYMS = {"related-to": "relates-to"}
"""Words of the designs that another word here stands for: workbench calls its relation ``related-to``."""


def normalise_word(word: str, words: Collection[str]) -> str:
    """Return ``word`` as ``words`` spell it where an underscore stands for a hyphen, else ``word`` itself.

    A word of a design that stands for one of ``words`` is that one: ``related-to`` is ``relates-to``.

    >>> normalise_word("error_pattern", KINDS), normalise_word("my_kind", KINDS), normalise_word("related_to", RELATIONS)
    ('error-pattern', 'my_kind', 'relates-to')
    """
    hyphened = word.replace("_", "-")
    hyphened = _SYNONYMS.get(hyphened, hyphened)
    return hyphened if word not in words and hyphened in words else word


def is_single_valued(predicate: str, declared: str) -> bool:
    """Whether a new value of this predicate takes the place of the old one; ``declared`` is the setting of a pack.

    >>> is_single_valued("prefers:theme", "status prefers:*"), is_single_valued("uses", "status prefers:*")
    (True, False)
    """
    names = declared.split()
    return any(
        predicate.startswith(one[:-1]) if one.endswith("*") else predicate == one for one in names
    )


_ROLE_NAMES = {
    **{role: role for role in ROLES},
    **dict.fromkeys(("human", "me"), "user"),
    **dict.fromkeys(("ai", "agent", "bot", "model", "chatbot"), "assistant"),
    "function": "tool",
}


def infer_role(speaker: str | None, creator: str | None) -> str:
    """One of ``SPEAKER_ROLES``: what the speaker is called decides, and only where there is none, who wrote it.

    >>> infer_role("Assistant", None), infer_role("Ida", "user"), infer_role(None, "agent:coder")
    ('assistant', 'other', 'assistant')
    """
    name = (speaker if speaker is not None else (creator or "").partition(":")[0]).strip().lower()
    return _ROLE_NAMES.get(name, "other")

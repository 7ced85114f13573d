"""The columns that every package shares, declared once with type, unit and default.

`MEMORY` and `EDGE` declare the columns of ``lab.memories`` and ``lab.edges``. A caller may pass the columns in `FIELDS`
to ``lab.remember``. The engine maintains all others.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Storage = Literal["num", "bool", "time", "word", "name", "text", "note", "list"]

NEVER = -(2**63)
"""The value, in microseconds, of a time that is missing."""


@dataclass(frozen=True)
class Column:
    """One column of memories or edges.

    Parameters
    ----------
    name
        Name of the column.
    storage
        Type of the column. A ``word`` has a closed vocabulary, a ``name`` an open one. A ``time`` is in UTC microseconds. A
        ``note`` is a text that few memories have.
    doc
        Description of the column.
    default
        Value of a row for which the caller gives none. Without a default, a missing number is stored as NaN, and a
        missing time as `NEVER`. A column in which every row has the default takes no memory.
    unit
        Unit of a number.
    low, high
        Bounds of a number, both inclusive.
    words
        The vocabulary of a ``word``.
    given
        True if a caller sets the column, False if the engine does.
    open
        True if a pack with the setting ``open-words`` allows other short words; see `is_open_word`.
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
        """True for a number or time that may be null."""
        return self.storage in ("num", "time") and self.default is None


# The vocabularies below are stored in labs and hashed in signatures. Words may be added, never renamed.
KINDS = (
    # a turn of a conversation, in its words
    "turn",
    # kinds of a coding assistant's memory graph
    "fact",
    "preference",
    "procedure",
    "correction",
    "negative",
    # kinds of an assistant that knows its user
    "personal",
    "goal",
    "trait",
    "observation",
    "event",
    "feeling",
    "learning",
    # knowledge about a code base
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
    # results of consolidation
    "summary",
)
OF_THE_USER = ("personal", "preference", "goal", "trait")
"""Kinds of facts about the user, whichever agent stores them."""
# The places where a memory is valid, the ways in which it was obtained, and the types of its source.
SCOPES = ("global", "project", "session")
PROVENANCES = ("user-stated", "user-corrected", "observed", "inferred", "extracted")
SOURCES = ("conversation", "system", "file", "user-edit")
STATUSES = (
    "active",
    # forgotten, until it is restored
    "forgotten",
    # life cycle of a fact
    "staged",
    "confirmed",
    "superseded",
    "retracted",
    # marked as wrong; expired after its time to live; deleted and restorable for 30 days; purged, with an empty row left
    "deprecated",
    "expired",
    "deleted",
    "purged",
    # replaced by a summary
    "consolidated",
    # excluded from recall with all memories of the same source
    "quarantined",
)
RECALLABLE = ("active", "staged", "confirmed")
"""Statuses of memories that take part in recall."""
# Roles of the author of a text. A speaker may also have another role, such as a person with a name.
ROLES = ("user", "assistant", "system", "tool")
SPEAKER_ROLES = (*ROLES, "other")
USES = 8
"""The number of most recent uses whose times are stored for each memory."""
# Groups of viewers, outcomes of feedback, and relations of edges.
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

# Every column of a memory, in the order of ``lab.memories``.
MEMORY: dict[str, Column] = {
    column.name: column
    for column in (
        Column("text", "text", "Text of the memory, after redaction of secrets."),
        Column("kind", "word", "Kind of the memory.", "fact", words=KINDS, open=True),
        Column(
            "ref", "text", "Identifier of the caller; not interpreted and not necessarily unique."
        ),
        Column("project", "name", "Project of the memory; none means valid in every project."),
        Column("session", "name", "Session or conversation that the memory came from."),
        Column("speaker", "name", "Speaker of the text."),
        Column("branch", "name", "Branch of the code base on which it was learned."),
        Column("creator", "name", "Author of the memory: user, agent:coder, ..."),
        Column(
            "scope",
            "word",
            "Scope of the memory: everywhere, its project or its session.",
            "project",
            words=SCOPES,
        ),
        Column(
            "provenance",
            "word",
            "Way in which the memory was obtained.",
            "user-stated",
            words=PROVENANCES,
        ),
        Column(
            "visibility",
            "word",
            "Group of viewers who may see the memory.",
            "project",
            words=VISIBILITIES,
        ),
        Column(
            "source",
            "word",
            "Type of source from which it was learned.",
            "conversation",
            words=SOURCES,
        ),
        Column("tags", "list", "Tags, chosen freely."),
        Column("files", "list", "Paths of the files that the memory is about."),
        Column("agents", "list", "Agents that contributed to the memory."),
        Column(
            "triggers",
            "list",
            "Phrases that make the memory a candidate when the query contains one.",
        ),
        Column("title", "name", "Title of a procedure, or of the document and section of a text."),
        Column("steps", "list", "Steps of a procedure in their order."),
        Column("prerequisites", "list", "Prerequisites of a procedure."),
        Column("warnings", "list", "Warnings about a procedure."),
        Column(
            "operations",
            "note",
            "Operations for `lab.upkeep.operations.run`, proposed when the memory is recalled.",
        ),
        Column("summary", "note", "Summary of 25 to 35 tokens for a prompt."),
        Column("context", "note", "Text around the memory."),
        Column("reason", "note", "Reason for the memory's confidence or status."),
        Column("subject", "name", "Entity that a fact is about."),
        Column("predicate", "name", "Property that the fact states: lives-in, prefers:theme, ..."),
        Column("object", "name", "Entity that the predicate relates the subject to."),
        Column("value", "name", "Value of the predicate if it is not an entity."),
        Column(
            "season", "name", "Season during which the memory takes part in recall: release-week."
        ),
        Column("origin", "name", "Origin of an imported memory: a lab and the id there."),
        Column(
            "first_message",
            "num",
            "Number of the first message of the session that it comes from.",
            None,
            "",
            0,
        ),
        Column(
            "last_message", "num", "Number of the last message that it comes from.", None, "", 0
        ),
        Column(
            "importance",
            "num",
            "Importance, from 0 (trivial) to 1 (essential).",
            0.5,
            "share",
            0,
            1,
        ),
        Column("confidence", "num", "Confidence that the memory is correct.", 0.8, "share", 0, 1),
        Column(
            "strength",
            "num",
            "Vividness at the last recall in percent, or number of confirmations.",
            100.0,
            "",
            0,
        ),
        Column("emotional_weight", "num", "Emotional intensity.", 5.0, "percent", 0, 100),
        Column(
            "recency_weight",
            "num",
            "Largest amount that its own recency may add to a score.",
            0.5,
            "share",
            0,
            1,
        ),
        Column(
            "energy", "num", "Energy at the last use, from which it decays.", 1.0, "share", 0, 1
        ),
        Column(
            "stability",
            "num",
            "Days until the probability of recall falls to 0.9.",
            None,
            "days",
            0,
        ),
        Column(
            "difficulty", "num", "Difficulty of retaining the memory, 1 to 10.", None, "", 1, 10
        ),
        Column(
            "ttl_days",
            "num",
            "Time to live in days; none means that it never expires.",
            None,
            "days",
            0,
        ),
        Column(
            "trust",
            "num",
            "Trust in its source; none: by its provenance.",
            None,
            "share",
            0,
            1,
        ),
        Column(
            "pinned",
            "bool",
            "Whether the memory is pinned, which keeps it fresh at any age.",
            False,
        ),
        Column("valid_from", "time", "Start of validity; none: its creation."),
        Column("valid_until", "time", "End of validity; none: still valid."),
        Column("created", "time", "Time of storage, or `at` if given.", "now"),
        Column(
            "status",
            "word",
            "Lifecycle status, which decides whether it takes part in recall.",
            "active",
            words=STATUSES,
        ),
        Column("label", "name", "Last value of the label policy.", given=False),
        Column(
            "superseded_by",
            "num",
            "Id of the memory that superseded it.",
            None,
            "",
            1,
            given=False,
        ),
        Column(
            "changed", "time", "Time of the last change of status, label or fields.", given=False
        ),
        Column(
            "accessed",
            "time",
            "Time of the last recall; initially its creation.",
            "now",
            given=False,
        ),
        Column("access", "num", "Number of recalls.", 0.0, "count", 0, given=False),
        Column(
            "success",
            "num",
            "Number of times feedback called it a success.",
            0.0,
            "count",
            0,
            given=False,
        ),
        Column(
            "fail",
            "num",
            "Number of times feedback called it a failure.",
            0.0,
            "count",
            0,
            given=False,
        ),
    )
}

FIELDS: tuple[str, ...] = tuple(
    name for name, column in MEMORY.items() if column.given and name != "created"
)
"""Fields that ``lab.remember`` takes in addition to ``at``: docs/reference/memories.md#fields-of-a-memory."""

FIXED = ("text", "ref", "speaker", "project", "session", "created")
"""Fields that never change, because they are embedded, indexed or linked. Another value would make another memory."""

# Every column of an edge, in the order of ``lab.edges``.
EDGE: dict[str, Column] = {
    column.name: column
    for column in (
        Column("source", "num", "Id of the memory at the start."),
        Column("target", "num", "Id of the memory at the end."),
        Column(
            "relation",
            "word",
            "Relation of the two memories.",
            "relates-to",
            words=RELATIONS,
            open=True,
        ),
        Column("weight", "num", "Strength of the relation.", 1.0, "share", 0, 1),
        Column(
            "reinforcements",
            "num",
            "Number of times it was strengthened.",
            0.0,
            "count",
            0,
            given=False,
        ),
        Column("created", "time", "Time of creation.", given=False),
    )
}


# At most 40 characters, so that a word fits a table and a message.
_OPEN_WORD = re.compile(r"[^\W\d_][\w:.-]{0,39}")


def is_open_word(word: object) -> bool:
    """Return whether a word is allowed as a user-defined kind or relation.

    Such a word is a letter, then up to 39 letters, digits or ``_ : . -``.

    >>> is_open_word("breakthrough"), is_open_word("two words")
    (True, False)
    """
    return isinstance(word, str) and _OPEN_WORD.fullmatch(word) is not None


_SYNONYMS = {"related-to": "relates-to"}
"""Words of published designs with memlab's equivalents."""


def normalise_word(word: str, words: Collection[str]) -> str:
    """Return `word` as a vocabulary spells it, or unchanged if it is unknown.

    An underscore counts as a hyphen, and a synonym of a published design is replaced: ``related-to`` by ``relates-to``.

    >>> normalise_word("error_pattern", KINDS), normalise_word("my_kind", KINDS), normalise_word("related_to", RELATIONS)
    ('error-pattern', 'my_kind', 'relates-to')
    """
    hyphened = word.replace("_", "-")
    hyphened = _SYNONYMS.get(hyphened, hyphened)
    return hyphened if word not in words and hyphened in words else word


def is_single_valued(predicate: str, declared: str) -> bool:
    """Return whether a new value of a predicate replaces the old value.

    >>> is_single_valued("prefers:theme", "status prefers:*"), is_single_valued("uses", "status prefers:*")
    (True, False)
    """
    return any(
        predicate.startswith(name[:-1]) if name.endswith("*") else predicate == name
        for name in declared.split()
    )


# Names of speakers that common tools use for a role in their chats and exports.
_ROLE_NAMES = {
    **{role: role for role in ROLES},
    **dict.fromkeys(("human", "me"), "user"),
    **dict.fromkeys(("ai", "agent", "bot", "model", "chatbot"), "assistant"),
    "function": "tool",
}


def infer_role(speaker: str | None, creator: str | None) -> str:
    """Infer a speaker's role from the speaker's name, or from the creator if unnamed.

    >>> infer_role("Assistant", None), infer_role("Ida", "user"), infer_role(None, "agent:coder")
    ('assistant', 'other', 'assistant')
    """
    name = (speaker if speaker is not None else (creator or "").partition(":")[0]).strip().lower()
    return _ROLE_NAMES.get(name, "other")

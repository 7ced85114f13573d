"""Result classes of the verbs of a lab."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np
import polars as pl

from memlab.errors import RedactionWarning
from memlab.kernel.base.arguments import checked, get_item, warn_caller
from memlab.kernel.base.arrays import Flags, Floats, Ints, Values
from memlab.kernel.base.clock import from_micros
from memlab.kernel.base.display import Displayed, Markup, clip, render_html, table
from memlab.kernel.base.printable import count_of, printable
from memlab.kernel.state import Change, read_row_words

if TYPE_CHECKING:
    from memlab.kernel.privacy import Finding
    from memlab.kernel.state import State

OUTCOME = {
    "row": pl.Int64,
    "id": pl.Int64,
    "outcome": pl.String,
    "of": pl.Int64,
    "relation": pl.String,
    "why": pl.String,
}
"""The columns of ``Remembered.outcomes``."""

# Fields of `Memory` that are stored as codes of a vocabulary.
_WORDS = (
    "kind",
    "status",
    "project",
    "session",
    "speaker",
    "subject",
    "predicate",
    "object",
    "value",
)


M = TypeVar("M", bound="Memory")

_MAX_ROWS = 20
"""Maximum rows of a table in a notebook."""


@dataclass(frozen=True)
class Memory(Displayed):
    """One memory with its values at the time of the call.

    The object does not change afterwards. The fields are those that are read most often.
    ``lab.memories`` has every column of a memory.

    Attributes
    ----------
    id
        The number of the memory, from 1. Every call that takes a memory accepts it.
    text
        The text, without secrets; empty if the memory was purged.
    kind
        The kind of memory, such as "fact".
    ref
        The caller's own identifier.
    project
        The project of the memory. A memory without a project is valid in every project.
    session
        The session in which the memory was said or written.
    speaker
        The person who said the text.
    tags
        The tags of the memory, including tags that the pack infers.
    status
        "active", or what became of it; "staged" or "confirmed" for a fact under ``factgraph``.
    created
        The time of creation, in UTC.
    access
        The number of recalls that showed it.
    superseded_by
        The id of the memory that replaced it, or None.
    subject
        The entity that a fact is about.
    predicate
        The property that a fact states of its subject.
    object
        The entity to which the predicate relates the subject.
    value
        The value of the predicate if it is not an entity.
    redacted
        The kinds of secrets that the call removed from the text, such as "AWS access key".

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> memory = lab.remember("The user prefers tabs", kind="preference", tags=["editor"])
    >>> memory.id, memory.kind, memory.tags
    (1, 'preference', ('editor',))
    """

    id: int
    text: str
    kind: str
    ref: str | None
    project: str | None
    session: str | None
    speaker: str | None
    tags: tuple[str, ...]
    status: str
    created: datetime
    access: int
    superseded_by: int | None = None
    subject: str | None = None
    predicate: str | None = None
    object: str | None = None
    value: str | None = None
    redacted: tuple[str, ...] = ()

    @classmethod
    def of(cls, state: State, row: int) -> Memory:
        """Return the memory that a row of a state holds.

        Parameters
        ----------
        state
            The folded state of a lab.
        row
            The row, from 0.

        Returns
        -------
        Memory
            The memory with its current values.
        """
        by = float(state.numbers["superseded_by"].values[row])
        words: dict[str, Any] = dict(
            zip(_WORDS, read_row_words([state.names[name] for name in _WORDS], row), strict=True)
        )
        return cls(
            id=row + 1,
            text=state.texts.value_at(row) or "",
            ref=state.refs.value_at(row),
            tags=state.lists["tags"].value_at(row),
            created=from_micros(int(state.numbers["created"].values[row])),
            access=int(state.numbers["access"].values[row]),
            superseded_by=None if by != by else int(by),
            kind=words.pop("kind") or "",
            status=words.pop("status") or "",
            **words,
        )

    def __repr__(self) -> str:
        return printable(f"<Memory {self.id}, {self.kind}, {self.status}: {clip(self.text, 80)!r}>")

    def _display(self) -> Markup:
        fields = {
            name: value for name, value in vars(self).items() if value is not None and value != ()
        }
        del fields["id"], fields["text"]
        fields |= {"tags": ", ".join(self.tags)} if self.tags else {}
        rows = [
            (name, f"{value:%Y-%m-%d %H:%M} UTC" if name == "created" else value)
            for name, value in fields.items()
        ]
        return table(f"Memory {self.id}: {self.text}", ("", ""), rows)

    @property
    def sexp(self) -> str:
        """The memory as an S-expression.

        ``lab.io.export(format="sexp")`` writes every column.

        >>> import memlab
        >>> lab = memlab.open(clock=memlab.ManualClock("2026-03-01"))
        >>> lab.remember("Use tabs", kind="preference").sexp[:54]
        '(memory :id 1 :text "Use tabs" :kind "preference" :sta'
        """
        from memlab.kernel.language import write_call

        fields = {
            name: value for name, value in vars(self).items() if value is not None and value != ()
        }
        return write_call("memory", fields | {"created": self.created.isoformat()})


@dataclass(frozen=True, eq=False, repr=False)
class Edited(Memory):
    """A memory after ``lab.edit``, with the changes of values derived from its text.

    An edited memory has the attributes of `Memory` and equals the memory that ``lab[id]`` returns.

    Attributes
    ----------
    rebuilt
        Names of fields that were derived again from the new text. The name "extracted" stands for memories that were
        extracted from the old text.
    dropped
        Names of fields that could not be derived again; also "extracted" or "consolidation".
    notes
        A sentence for each rebuilt or dropped name, and for each memory that was superseded or left unchanged.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> memory = lab.remember("Deploys go out on Tuesdays", kind="convention")
    >>> lab.edit(memory, text="Deploys go out on Wednesdays").id
    2
    """

    rebuilt: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def memory(self) -> Memory:
        """The memory without the report of the edit."""
        return Memory(**{own.name: getattr(self, own.name) for own in fields(Memory)})

    def __eq__(self, other: object) -> bool:
        return self.memory == (other.memory if isinstance(other, Edited) else other)

    def __hash__(self) -> int:
        return hash(self.memory)

    def __repr__(self) -> str:
        return printable("\n".join([repr(self.memory), *(f"  {note}" for note in self.notes)]))

    def _display(self) -> Markup:
        return render_html((self.memory, list(self.notes)))

    @property
    def sexp(self) -> str:
        """The memory as an S-expression."""
        return self.memory.sexp


class Edits(tuple[Edited, ...], Displayed):
    """The memories that ``lab.edit`` changed by a frame, in the order of its rows.

    Attributes
    ----------
    rows
        The number of rows of the frame.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember(["The user prefers tabs", "Deploys go out on Tuesdays"])
    >>> lab.edit(lab.memories.with_columns(importance=pl.Series([0.5, 0.9])))
    <1 of 2 memories changed>
    """

    rows: int

    def __new__(cls, memories: Iterable[Edited], rows: int) -> Edits:
        """Return the result for a frame of ``rows`` rows."""
        edits = super().__new__(cls, memories)
        edits.rows = rows
        return edits

    def __repr__(self) -> str:
        return printable(f"<{len(self):,} of {count_of(self.rows, 'memory')} changed>")

    def _display(self) -> object:
        notes = [f"Memory {memory.id}: {note}" for memory in self for note in memory.notes]
        return [repr(self), *notes]


def note_redactions(memory: M, findings: Sequence[Finding]) -> M:
    """Return a memory with the kinds of its removed secrets; warn if there are any."""
    kinds = tuple(dict.fromkeys(finding.type for finding in findings))
    if kinds:
        warn_caller(
            f"An apparent secret was removed from memory {memory.id}: {', '.join(kinds)}. A "
            "placeholder in the text replaces it. If it is no secret, rephrase the text with lab.edit.",
            RedactionWarning,
        )
    return replace(memory, redacted=kinds) if kinds else memory


@dataclass(frozen=True)
class Feedback(Displayed):
    """One logged judgement of a memory.

    Attributes
    ----------
    event
        The number of its event (``lab.log``).
    decision
        The number of the judged recall, or None.
    memory
        The id of the memory.
    outcome
        "success", "fail" or None.
    reward
        The reward, or None.
    source
        The person or program that gave the judgement.
    rating
        The rating, 1 to 4, or None.
    agent
        The agent that used the memory, or None.
    notice
        A proposal to install an earlier policy that earned more than the active one. A proposal is
        made only once, so the value is nearly always None.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember("Deploys go out on Tuesdays")
    >>> feedback = lab.feedback(lab.recall("when do deploys go out?")[0], "success", rating=3)
    >>> feedback.memory, feedback.outcome, feedback.rating
    (1, 'success', 3)
    """

    event: int
    decision: int | None
    memory: int
    outcome: str | None
    reward: float | None
    source: str
    rating: int | None = None
    agent: str | None = None
    notice: Any = None

    def __repr__(self) -> str:
        fields = {"reward": self.reward, "rating": self.rating, "agent": self.agent}
        more = "".join(f", {name} {value}" for name, value in fields.items() if value is not None)
        recall = "no recall" if self.decision is None else f"recall {self.decision}"
        outcome = "judged" if self.outcome is None else self.outcome
        line = f"<Feedback {self.event}: memory {self.memory} {outcome}{more}, of {recall}, by {self.source}>"
        return printable(line if self.notice is None else f"{line}\n{self.notice!r}")


Outcome = Literal["added", "merged", "skipped"]
"""The outcome of a new memory: stored, merged into another, or left out because of a conflict."""


@dataclass(frozen=True)
class Linked:
    """The result of comparing new memories with stored memories and with each other.

    Attributes
    ----------
    outcomes
        The outcome of each new memory, by position.
    standing
        For each new memory, the id of the memory that represents it.
    superseded
        For each superseded memory: the position of the new memory, the id of the remaining memory, the id of the
        superseded memory and the reason.
    whys
        The reason of each merge or skip, by position.
    change
        The change that the fold applies once the new memories are stored.
    texts
        Combined texts of new memories and the memories they supersede, by position.
    edges
        For each new edge: the position of the new memory, the ids of both ends, the relation and the closeness.
    fact_times
        Of facts that were stated again: id, instants, gaps.
    """

    outcomes: tuple[Outcome, ...]
    standing: tuple[int, ...]
    superseded: tuple[tuple[int, int, int, str], ...]
    whys: dict[int, str]
    change: Change
    texts: dict[int, str]
    edges: tuple[Ints, Ints, Ints, Values, Floats]
    fact_times: list[list[Any]] = field(default_factory=list)

    @property
    def body(self) -> dict[str, Any]:
        """The fields of the event that links these memories; empty if nothing changes."""
        times = {"fact_times": self.fact_times} if self.fact_times else {}
        return {**self.change.body(), **times}

    @property
    def added(self) -> Flags:
        """A mask of the rows that were stored as new memories."""
        return np.array([outcome == "added" for outcome in self.outcomes], dtype=np.bool_)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The new memories, each followed by the memories that it superseded or links to.

        ``row`` is the position of the new memory, and ``id`` is its id, null if it was not stored.
        ``of`` is the id of the other memory.
        """
        own = pl.DataFrame(
            {
                "row": range(len(self.outcomes)),
                "id": [
                    standing_id if outcome == "added" else None
                    for outcome, standing_id in zip(self.outcomes, self.standing, strict=True)
                ],
                "outcome": self.outcomes,
                "of": [
                    None if outcome == "added" else standing_id
                    for outcome, standing_id in zip(self.outcomes, self.standing, strict=True)
                ],
                "relation": [None] * len(self.outcomes),
                "why": [self.whys.get(row, "new") for row in range(len(self.outcomes))],
            },
            schema=OUTCOME,
        )
        superseded = pl.DataFrame(
            [
                {
                    "row": row,
                    "id": stays,
                    "outcome": "superseded",
                    "of": goes,
                    "relation": "supersedes",
                    "why": why,
                }
                for row, stays, goes, why in self.superseded
            ],
            schema=OUTCOME,
        )
        row, source, target, relation, closeness = self.edges
        links = pl.DataFrame(
            [
                pl.Series("row", row, dtype=pl.Int64),
                pl.Series("id", source, dtype=pl.Int64),
                pl.Series("outcome", ["linked"] * len(row), dtype=pl.String),
                pl.Series("of", target, dtype=pl.Int64),
                pl.Series("relation", relation.tolist(), dtype=pl.String),
                pl.Series("closeness", closeness),
            ]
        ).select(*list(OUTCOME)[:-1], why=pl.format("closeness {}", pl.col("closeness").round(2)))
        return pl.concat([own, superseded, links]).sort("row", maintain_order=True)


class Remembered(Sequence[Memory], Displayed):
    """The result of storing several memories, in the order in which they were given.

    Each item is the memory that represents one given text. This is a new memory, or the stored
    memory into which the pack's policies ``link`` and ``resolve`` merged the text.

    Parameters
    ----------
    get
        A function from an id to a memory.
    frame
        A function that returns ``lab.memories``.
    ids
        The ids of the added memories.
    redacted
        Removed secrets, each with the id of the memory that represents its text.
    linked
        The result of linking, None if nothing was compared.
    waits
        Whether the memories wait to be linked in the background.

    Attributes
    ----------
    ids
        The ids of the added memories.
    redacted
        Removed secrets, each with the id of the memory that represents its text.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> remembered = lab.remember(["The user likes tea", "Deploys go out on Tuesdays"])
    >>> remembered.ids
    range(1, 3)
    >>> remembered[0].text
    'The user likes tea'
    >>> remembered.outcomes["outcome"].to_list()
    ['added', 'added']
    """

    def __init__(
        self,
        get: Callable[[int], Memory],
        frame: Callable[[], pl.DataFrame],
        ids: range,
        redacted: tuple[tuple[int, Finding], ...],
        *,
        linked: Linked | None = None,
        waits: bool = False,
    ) -> None:
        self._get, self._frame, self._linked, self._waits = get, frame, linked, waits
        self._standing: Sequence[int] = ids if linked is None else linked.standing
        self.ids = ids
        self.redacted = redacted

    def __len__(self) -> int:
        return len(self._standing)

    @overload
    def __getitem__(self, index: int) -> Memory: ...
    @overload
    def __getitem__(self, index: slice) -> list[Memory]: ...
    @checked
    def __getitem__(self, index: int | slice) -> Memory | list[Memory]:
        if isinstance(index, slice):
            return [self._get(id) for id in self._standing[index]]
        return self._get(get_item(self._standing, index, "memory of this call"))

    def __iter__(self) -> Iterator[Memory]:
        return (self._get(id) for id in self._standing)

    @property
    def frame(self) -> pl.DataFrame:
        """The rows of ``lab.memories`` for the added memories."""
        return self._frame().slice(self.ids.start - 1 if self.ids else 0, len(self.ids))

    @property
    def standing(self) -> tuple[int, ...]:
        """The id of the memory that represents each given text."""
        return tuple(self._standing)

    @property
    def outcomes(self) -> pl.DataFrame:
        """The outcome of each given text, and its effects on other memories.

        ``row`` is the position of the text, from 0. ``outcome`` is "added", "merged" (into the memory ``of``) or
        "skipped" (``of`` stays valid). Further rows describe effects: "superseded" (``of`` is no longer used) and
        "linked" (an edge of this ``relation`` leads to ``of``). The new memory's ``id`` is null if it was not stored.
        The reason is in ``why``.
        """
        if self._linked is not None:
            return self._linked.frame
        why = "new, and waits to be linked" if self._waits else "new"
        rows = [(row, id, "added", None, None, why) for row, id in enumerate(self.ids)]
        return pl.DataFrame(rows, schema=OUTCOME, orient="row")

    def __repr__(self) -> str:
        span = f" (ids {self.ids.start}-{self.ids.stop - 1})" if self.ids else ""
        text = f"<Remembered {len(self):,} memories{span}"
        for word, count in self._counts().items():
            text += f", {count:,} {word}"
        text += f", {len(self.redacted)} secrets redacted" if self.redacted else ""
        return f"{text}{', to be linked' if self._waits else ''}>"

    def _counts(self) -> dict[str, int]:
        """Return the numbers of merged, skipped and superseded memories, omitting zeros."""
        if self._linked is None:
            return {}
        counts = {word: self._linked.outcomes.count(word) for word in ("merged", "skipped")}
        counts["superseded"] = len(self._linked.superseded)
        return {word: count for word, count in counts.items() if count}

    def _display(self) -> object:
        if not self._counts():
            return repr(self)
        rows = self.outcomes.filter(
            pl.col("outcome").is_in(["merged", "skipped", "superseded"])
        ).head(_MAX_ROWS)
        return table(self, rows.columns, rows.iter_rows())


# Columns and number of memories in the overview of a lab in a notebook. Columns outside ``_REQUIRED`` are left out if
# they have no values.
_OVERVIEW = ("id", "text", "kind", "speaker", "project", "session", "status", "access", "created")
_REQUIRED = ("id", "text", "kind", "status", "access", "created")
_NEWEST = 8


def render_overview(title: str, memories: pl.DataFrame) -> str:
    """Render a lab's ``title`` and newest memories as HTML."""
    newest = memories.select(_OVERVIEW).tail(_NEWEST).reverse()
    columns = [
        name for name in newest.columns if name in _REQUIRED or newest[name].drop_nulls().len()
    ]
    newest = newest.with_columns(pl.col("created").dt.strftime("%Y-%m-%d %H:%M"))
    rows = [
        [clip(cell, 160) if isinstance(cell, str) else cell for cell in row]
        for row in newest[columns].rows()
    ]
    return table(
        title,
        columns,
        rows,
        notes=["the newest memories; lab.memories has all of them, with every column"]
        if rows
        else [],
    )

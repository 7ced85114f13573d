"""What the verbs of a lab return."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import RedactionWarning
from memlab.kernel.base.arguments import checked, get_item, warn_caller
from memlab.kernel.base.clock import from_micros
from memlab.kernel.base.display import Displayed, Markup, clip, render_html, table
from memlab.kernel.base.printable import printable
from memlab.kernel.state import Change, read_row_words

if TYPE_CHECKING:
    from memlab.kernel.privacy import Finding
    from memlab.kernel.state import State

__all__ = [
    "OUTCOME",
    "Edited",
    "Feedback",
    "Linked",
    "Memory",
    "Outcome",
    "Remembered",
    "overview",
    "with_redacted",
]

OUTCOME = {
    "row": pl.Int64,
    "id": pl.Int64,
    "outcome": pl.String,
    "of": pl.Int64,
    "relation": pl.String,
    "why": pl.String,
}
"""The columns of ``Remembered.outcomes``."""

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

_MOST_SHOWN = 20
"""Rows of a table in a notebook."""


@dataclass(frozen=True)
class Memory(Displayed):
    """One memory as it stood when it was asked for; it does not change afterwards.

    It has the fields that are shown most. ``lab.memories`` has every column of a memory.

    Attributes
    ----------
    id
        The number of the memory, from 1, by which every call takes it.
    text
        What is remembered, after the privacy gate; empty where it was purged.
    kind
        What sort of memory it is, such as "fact".
    ref
        The caller's own identifier.
    project
        The project it belongs to; None is valid in every project.
    session
        The session it came from.
    speaker
        Who said it.
    tags
        Its labels, those that the pack infers included.
    status
        "active" unless something became of it; "staged" or "confirmed" for a fact under ``factgraph``.
    created
        When it was remembered, in UTC.
    access
        How often it was recalled.
    superseded_by
        The id of the memory that replaced it; None while it stands.
    subject
        The entity that a fact is about.
    predicate
        What the fact says of the subject.
    object
        The entity to which the predicate joins the subject.
    value
        The value of the predicate, where that is no entity.
    redacted
        The kinds of secrets that were taken out of the text by the call that returned it, such as "AWS access key".
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
        """The memory in a row of a state."""
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
        """It as an S-expression: data, for introspection; ``lab.io.export(format="sexp")`` writes every column.

        >>> lab[1].sexp                                                                    # doctest: +SKIP
        '(memory :id 1 :text "tabs" :kind "preference" :status "active" :created "2026-03-01T12:00:00+00:00" ...)'
        """
        from memlab.kernel.language import write_call

        fields = {
            name: value for name, value in vars(self).items() if value is not None and value != ()
        }
        return write_call("memory", fields | {"created": self.created.isoformat()})


@dataclass(frozen=True, eq=False, repr=False)
class Edited(Memory):
    """A memory as ``lab.edit`` left it, with what the edit made of everything derived from its text.

    It has the attributes of a ``Memory``, and equals the same memory as ``lab[id]`` returns it.

    Attributes
    ----------
    rebuilt
        What was read again from the new text: names of fields, and "extracted" for memories read from the old one.
    dropped
        What could not be read again and is gone: names of fields, "extracted", or "consolidation".
    notes
        A sentence for each of these, and for what was superseded or left as it is.
    """

    rebuilt: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def memory(self) -> Memory:
        """The memory alone."""
        return Memory(**{one.name: getattr(self, one.name) for one in fields(Memory)})

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


def with_redacted(memory: M, findings: Sequence[Finding]) -> M:
    """Return a stored memory with the kinds of what was taken out of its text, and warn where there is any."""
    kinds = tuple(dict.fromkeys(found.type for found in findings))
    if kinds:
        warn_caller(
            f"Memory {memory.id} was stored without what looks like a secret: {', '.join(kinds)}. Its text has a mark "
            "in that place. If it is none, put it in other words with lab.edit.",
            RedactionWarning,
        )
    return replace(memory, redacted=kinds) if kinds else memory


@dataclass(frozen=True)
class Feedback(Displayed):
    """One logged judgement; ``event`` is its place in the journal, ``decision`` the recall that it belongs to.

    ``notice`` proposes to bring an earlier policy back: the judgement was the one by which the live policy was found to
    earn less than that one did. It is given once; None for nearly every judgement.
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
        place = "no recall" if self.decision is None else f"recall {self.decision}"
        outcome = "judged" if self.outcome is None else self.outcome
        told = f"<Feedback {self.event}: memory {self.memory} {outcome}{more}, of {place}, by {self.source}>"
        return printable(told if self.notice is None else f"{told}\n{self.notice!r}")


Outcome = Literal["added", "merged", "skipped"]
"""What became of a new memory: stored, merged into another, or left out because another says otherwise."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Linked:
    """What became of new memories: ``outcomes[i]`` of the i-th, and ``standing[i]``, the id of what represents it.

    ``superseded`` are (place of the new one, id of the one that stays, id of the one that goes, why); ``whys`` say why
    something was merged or skipped. ``change`` is what the fold applies once the stored ones are there.
    """

    outcomes: tuple[Outcome, ...]
    standing: tuple[int, ...]
    superseded: tuple[tuple[int, int, int, str], ...]
    whys: dict[int, str]
    change: Change
    texts: dict[int, str]
    """What some of the new ones say, by place, since they were combined with what they supersede."""
    edges: tuple[Ints, Ints, Ints, NDArray[Any], NDArray[np.float64]]
    """Of each edge that joins a new memory to another: place, ids of both ends, relation, closeness."""

    fact_times: list[list[Any]] = field(default_factory=list)
    """Of facts that were told again: id, instants, gaps."""

    @property
    def body(self) -> dict[str, Any]:
        """What the event carries that links these memories; empty where nothing changes."""
        told = {"fact_times": self.fact_times} if self.fact_times else {}
        return {**self.change.body(), **told}

    @property
    def added(self) -> NDArray[np.bool_]:
        """Which of the new ones are stored."""
        return np.array([outcome == "added" for outcome in self.outcomes], dtype=np.bool_)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """A row for what became of each new memory, then one for each memory that it superseded or was joined to.

        ``row`` is its place among the new ones, ``id`` its own (null if it was not stored), ``of`` the other memory's.
        """
        own = pl.DataFrame(
            {
                "row": range(len(self.outcomes)),
                "id": [
                    standing_id if came == "added" else None
                    for came, standing_id in zip(self.outcomes, self.standing, strict=True)
                ],
                "outcome": self.outcomes,
                "of": [
                    None if came == "added" else standing_id
                    for came, standing_id in zip(self.outcomes, self.standing, strict=True)
                ],
                "relation": [None] * len(self.outcomes),
                "why": [self.whys.get(place, "new") for place in range(len(self.outcomes))],
            },
            schema=OUTCOME,
        )
        gone = pl.DataFrame(
            [
                {
                    "row": place,
                    "id": stays,
                    "outcome": "superseded",
                    "of": goes,
                    "relation": "supersedes",
                    "why": why,
                }
                for place, stays, goes, why in self.superseded
            ],
            schema=OUTCOME,
        )
        place, source, target, relation, closeness = self.edges
        joined = pl.DataFrame(
            [
                pl.Series("row", place, dtype=pl.Int64),
                pl.Series("id", source, dtype=pl.Int64),
                pl.Series("outcome", ["linked"] * len(place), dtype=pl.String),
                pl.Series("of", target, dtype=pl.Int64),
                pl.Series("relation", relation.tolist(), dtype=pl.String),
                pl.Series("closeness", closeness),
            ]
        ).select(*list(OUTCOME)[:-1], why=pl.format("closeness {}", pl.col("closeness").round(2)))
        return pl.concat([own, gone, joined]).sort("row", maintain_order=True)


class Remembered(Sequence[Memory], Displayed):
    """What became of the memories that one call gave, in order.

    Each item is the memory that stands for what was given: the new one, or the old one where the pack's ``link`` and
    ``resolve`` merged or skipped it. ``ids`` are those of what was added; ``redacted`` lists what the privacy gate
    replaced, with the id of what stands for it; ``outcomes`` says what happened and why.
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
        """The rows of ``lab.memories`` that were added."""
        return self._frame().slice(self.ids.start - 1 if self.ids else 0, len(self.ids))

    @property
    def standing(self) -> tuple[int, ...]:
        """For each memory that was given the id of what stands for it: its own, or an older one's."""
        return tuple(self._standing)

    @property
    def outcomes(self) -> pl.DataFrame:
        """What happened to each row that was given (``row``, from 0), and what it did to others.

        ``outcome`` is "added", "merged" (into the memory ``of``) or "skipped" (``of`` stays); then, a row each,
        "superseded" (``of`` is out of use) and "linked" (an edge of this ``relation`` to ``of``). ``id`` is the new
        memory's, null if it was not stored; ``why`` says why.
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
        if self._linked is None:
            return {}
        counts = {word: self._linked.outcomes.count(word) for word in ("merged", "skipped")}
        counts["superseded"] = len(self._linked.superseded)
        return {word: count for word, count in counts.items() if count}

    def _display(self) -> object:
        if not self._counts():
            return repr(self)
        shown = self.outcomes.filter(
            pl.col("outcome").is_in(["merged", "skipped", "superseded"])
        ).head(_MOST_SHOWN)
        return table(self, shown.columns, shown.iter_rows())


_SHOWN = ("id", "text", "kind", "speaker", "project", "session", "status", "access", "created")
"""Columns of the newest memories that a notebook shows of a lab; of those that may be empty, the ones that are not."""
_ALWAYS = ("id", "text", "kind", "status", "access", "created")
_NEWEST = 8


def overview(title: str, memories: pl.DataFrame) -> str:
    """HTML of a lab: ``title`` and the newest rows of its memories."""
    newest = memories.select(_SHOWN).tail(_NEWEST).reverse()
    heads = [name for name in newest.columns if name in _ALWAYS or newest[name].drop_nulls().len()]
    newest = newest.with_columns(pl.col("created").dt.strftime("%Y-%m-%d %H:%M"))
    rows = [
        [clip(cell, 160) if isinstance(cell, str) else cell for cell in row]
        for row in newest[heads].rows()
    ]
    return table(
        title,
        heads,
        rows,
        notes=["the newest; lab.memories has all, with every column"] if rows else [],
    )

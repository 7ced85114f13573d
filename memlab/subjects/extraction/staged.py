"""What was extracted and not yet stored: facts and memories as proposals, each with where it comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, overload

import polars as pl

from memlab.kernel.base.arguments import checked, get_item
from memlab.kernel.base.display import Displayed, clip, table
from memlab.kernel.base.printable import printable
from memlab.kernel.language import write_data
from memlab.subjects.models import Usage

__all__ = ["Asked", "Extracted", "Proposed"]

_COLUMNS: dict[str, Any] = {
    "item": pl.Int64,
    "sort": pl.String,
    "kind": pl.String,
    "subject": pl.String,
    "predicate": pl.String,
    "object": pl.String,
    "value": pl.String,
    "text": pl.String,
    "confidence": pl.Float64,
    "provenance": pl.String,
    "rule": pl.String,
    "message": pl.Int64,
    "start": pl.Int64,
    "stop": pl.Int64,
    "span": pl.String,
    "operation": pl.String,
}


@dataclass(frozen=True)
class Proposed:
    """A fact or a memory that may be stored.

    ``fields`` are those of ``memlab.FIELDS`` that it would have beside its ``text``. ``span`` is what was said, from
    ``start`` to ``stop`` (characters) of the message number ``message``; ``rule`` is what recognised it there.
    """

    sort: Literal["fact", "memory"]
    text: str
    rule: str
    message: int
    start: int
    stop: int
    span: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The kind of memory that it would be."""
        return str(self.fields["kind"])

    @property
    def confidence(self) -> float:
        """How sure it is, 0-1."""
        return float(self.fields["confidence"])

    @property
    def operation(self) -> str:
        """It as an operation that a person can read, edit and run with ``lab.upkeep.operations.run``."""
        if self.sort == "memory":
            return f"(remember {write_data(self.text)} {write_data(self.kind)})"
        said = [
            self.fields["subject"],
            self.fields["predicate"],
            self.fields.get("object") or self.fields["value"],
        ]
        joined = " object" if self.fields.get("object") is not None else ""
        return f"(fact {' '.join(map(write_data, said))} {self.confidence:g}{joined})"

    @property
    def row(self) -> dict[str, Any]:
        """It as ``lab.remember`` takes it."""
        return {"text": self.text, **self.fields}

    def __repr__(self) -> str:
        return printable(
            f"<Proposed {self.sort}, {self.kind}, {self.confidence:g}: {clip(self.text, 80)!r}>"
        )


@dataclass(frozen=True)
class Asked:
    """What a language model was asked for an extraction, and what of it came to nothing.

    ``usage`` is what that took. ``dropped`` counts proposals that were not taken, by reason. ``unread`` are the numbers
    of the messages that it did not read, each with the error; ``instead`` is what was done of them: "rules" or "skip".
    """

    model: str
    usage: Usage
    dropped: Mapping[str, int] = field(default_factory=dict)
    unread: tuple[tuple[int, str], ...] = ()
    instead: str = "raise"

    @property
    def lines(self) -> list[str]:
        """It in words: what was asked, what was dropped, what was not read."""
        used = self.usage
        lines = [
            f"{self.model} was asked {used.calls} times, {used.tokens:,} tokens; {used.kept} answers were kept"
        ]
        if self.dropped:
            why = "; ".join(f"{count} with {reason}" for reason, count in self.dropped.items())
            lines.append(f"{sum(self.dropped.values())} of its proposals were dropped: {why}")
        for why, count in Counter(why for _, why in self.unread).items():
            then = "read by rules instead" if self.instead == "rules" else "skipped"
            lines.append(f"{count} messages were {then}: {why}")
        return lines


@dataclass(frozen=True)
class Extracted(Sequence[Proposed], Displayed):
    """Facts and memories found in ``messages`` messages, in order; nothing of them is stored.

    ``lab.agents.commit`` stores them, or a part: a slice of them is one. ``frame`` has a row for each, ``operations``
    is their text to read, edit and run. ``asked`` is what a language model was asked, None without one.
    """

    items: tuple[Proposed, ...] = ()
    messages: int = 0
    asked: Asked | None = None

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> Proposed: ...
    @overload
    def __getitem__(self, index: slice) -> Extracted: ...
    @checked
    def __getitem__(self, index: int | slice) -> Proposed | Extracted:
        if isinstance(index, slice):
            return replace(self, items=self.items[index])
        found: Proposed = get_item(self.items, index, "item that was extracted")
        return found

    def __iter__(self) -> Iterator[Proposed]:
        return iter(self.items)

    @property
    def facts(self) -> Extracted:
        """The facts alone."""
        return replace(self, items=tuple(one for one in self.items if one.sort == "fact"))

    @property
    def memories(self) -> Extracted:
        """What is no fact: what an agent remembers of what was said."""
        return replace(self, items=tuple(one for one in self.items if one.sort == "memory"))

    @property
    def frame(self) -> pl.DataFrame:
        """One row each, with what it would store and where it stands.

        Columns: item, sort, kind, subject, predicate, object, value, text, confidence, provenance, rule, message,
        start, stop, span, operation.
        """
        rows = [
            {name: one.fields.get(name) for name in _COLUMNS}
            | {
                "item": number,
                "sort": one.sort,
                "text": one.text,
                "rule": one.rule,
                "message": one.message,
            }
            | {"start": one.start, "stop": one.stop, "span": one.span, "operation": one.operation}
            for number, one in enumerate(self.items)
        ]
        return pl.DataFrame(rows, schema=_COLUMNS)

    @property
    def operations(self) -> str:
        """All of them as operations, a line each."""
        return "\n".join(one.operation for one in self.items)

    def __repr__(self) -> str:
        head = f"{len(self.facts)} facts and {len(self.memories)} memories of {self.messages} messages, not stored"
        return printable(
            "\n".join([head, *self._notes, *(f"  {one.operation}" for one in self.items)])
        )

    @property
    def _notes(self) -> list[str]:
        return [] if self.asked is None else self.asked.lines

    def _display(self) -> object:
        rows = [
            (number, one.kind, one.text, f"{one.confidence:g}", clip(one.span, 80), one.operation)
            for number, one in enumerate(self.items)
        ]
        heads = ("item", "kind", "what", "confidence", "said", "operation")
        return table(repr(self).splitlines()[0], heads, rows, notes=self._notes)

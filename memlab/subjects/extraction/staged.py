"""Facts and memories that were extracted and are not stored yet."""

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

# The columns of ``Extracted.frame``.
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
    """A proposal of extraction: a fact or memory that may be stored.

    Attributes
    ----------
    sort
        "fact" or "memory".
    text
        The text of the memory to store.
    rule
        The rule or model that recognised the fact or memory.
    message
        The number of the message that states it, from 0.
    start, stop
        The position of the quotation in the message, in characters.
    span
        The quoted words of the message.
    fields
        The other fields of the memory, with names as in ``memlab.FIELDS``.

    Examples
    --------
    >>> import memlab
    >>> fact = memlab.open().agents.extract("I live in Rome, you know.")[0]
    >>> fact.sort, fact.text, fact.span
    ('fact', 'The user lives in Rome', 'I live in Rome')
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
        """The kind of the memory to store."""
        return str(self.fields["kind"])

    @property
    def confidence(self) -> float:
        """The confidence of the proposal, 0 to 1."""
        return float(self.fields["confidence"])

    @property
    def operation(self) -> str:
        """The proposal as one operation for ``lab.upkeep.operations.run``."""
        if self.sort == "memory":
            return f"(remember {write_data(self.text)} {write_data(self.kind)})"
        parts = [
            self.fields["subject"],
            self.fields["predicate"],
            self.fields.get("object") or self.fields["value"],
        ]
        entity_flag = " object" if self.fields.get("object") is not None else ""
        return f"(fact {' '.join(map(write_data, parts))} {self.confidence:g}{entity_flag})"

    @property
    def row(self) -> dict[str, Any]:
        """The proposal as a row for ``lab.remember``."""
        return {"text": self.text, **self.fields}

    def __repr__(self) -> str:
        return printable(
            f"<Proposed {self.sort}, {self.kind}, {self.confidence:g}: {clip(self.text, 80)!r}>"
        )


@dataclass(frozen=True)
class Asked:
    """The use of a language model in an extraction.

    Attributes
    ----------
    model
        The name of the model.
    usage
        The number of calls and of tokens.
    dropped
        The number of rejected proposals by reason.
    unread
        The numbers of the messages that the model could not read, each with the error.
    instead
        The treatment of unread messages: "rules", "skip" or "raise".
    repaired
        The number of proposals of which a malformed field was replaced by a default.

    Examples
    --------
    >>> import memlab
    >>> memlab.open().agents.extract("I live in Rome.").asked is None
    True
    """

    model: str
    usage: Usage
    dropped: Mapping[str, int] = field(default_factory=dict)
    unread: tuple[tuple[int, str], ...] = ()
    instead: str = "raise"
    repaired: int = 0

    @property
    def lines(self) -> list[str]:
        """Sentences about the use of a language model, such as the number of its calls."""
        used = self.usage
        lines = [
            f"{self.model}: {used.calls} {'call' if used.calls == 1 else 'calls'}, {used.tokens:,} tokens, "
            f"{used.kept} answers from the cache"
        ]
        if self.dropped:
            why = "; ".join(f"{count} with {reason}" for reason, count in self.dropped.items())
            lines.append(f"proposals dropped: {sum(self.dropped.values())} ({why})")
        if self.repaired:
            lines.append(f"malformed fields replaced by defaults: in {self.repaired} proposals")
        for why, count in Counter(why for _, why in self.unread).items():
            then = "read by rules instead" if self.instead == "rules" else "skipped"
            lines.append(f"messages {then}: {count} ({why})")
        return lines


@dataclass(frozen=True)
class Extracted(Sequence[Proposed], Displayed):
    """The facts and memories extracted from messages, in order; none is stored yet.

    ``lab.agents.commit`` stores all or some of them. A slice is an ``Extracted`` too.

    Attributes
    ----------
    items
        The proposals.
    messages
        The number of messages that were read.
    asked
        The use of a language model; None if no model was used.

    Examples
    --------
    >>> import memlab
    >>> extracted = memlab.open().agents.extract("I live in Rome.")
    >>> print(extracted.facts.operations)
    (fact "user" "lives-in" "Rome" 0.95 object)
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
        proposal: Proposed = get_item(self.items, index, "extracted item")
        return proposal

    def __iter__(self) -> Iterator[Proposed]:
        return iter(self.items)

    @property
    def facts(self) -> Extracted:
        """The proposals that are facts."""
        return replace(
            self, items=tuple(proposal for proposal in self.items if proposal.sort == "fact")
        )

    @property
    def memories(self) -> Extracted:
        """The proposals that are memories rather than facts."""
        return replace(
            self, items=tuple(proposal for proposal in self.items if proposal.sort == "memory")
        )

    @property
    def frame(self) -> pl.DataFrame:
        """A frame with one row per proposal: fields, and position in the message.

        The columns are ``item``, ``sort``, ``kind``, ``subject``, ``predicate``, ``object``,
        ``value``, ``text``, ``confidence``, ``provenance``, ``rule``, ``message``, ``start``,
        ``stop``, ``span`` and ``operation``.
        """
        # a column is a field of the memory, or else an attribute of the proposal
        rows = [
            {name: proposal.fields.get(name, getattr(proposal, name, None)) for name in _COLUMNS}
            | {"item": number}
            for number, proposal in enumerate(self.items)
        ]
        return pl.DataFrame(rows, schema=_COLUMNS)

    @property
    def operations(self) -> str:
        """All proposals as operations, one per line."""
        return "\n".join(proposal.operation for proposal in self.items)

    def __repr__(self) -> str:
        title = f"{len(self.facts)} facts and {len(self.memories)} memories from {self.messages} messages, not stored"
        return printable(
            "\n".join(
                [title, *self._notes, *(f"  {proposal.operation}" for proposal in self.items)]
            )
        )

    @property
    def _notes(self) -> list[str]:
        """Sentences about the use of a language model; empty if no model was used."""
        return [] if self.asked is None else self.asked.lines

    def _display(self) -> object:
        """Return the table of proposals, with one row per proposal."""
        rows = [
            (
                number,
                proposal.kind,
                proposal.text,
                f"{proposal.confidence:g}",
                clip(proposal.span, 80),
                proposal.operation,
            )
            for number, proposal in enumerate(self.items)
        ]
        headings = ("item", "kind", "what", "confidence", "said", "operation")
        return table(repr(self).splitlines()[0], headings, rows, notes=self._notes)

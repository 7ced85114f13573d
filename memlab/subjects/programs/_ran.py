"""What a run of operations gave, and what a memory proposes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import polars as pl

from memlab.kernel.base.arguments import checked, item
from memlab.kernel.base.display import Displayed, clip, table
from memlab.kernel.base.printable import printable
from memlab.subjects.programs._program import Program

__all__ = ["Fuel", "Proposal", "Ran", "Step"]

_SHOWN = 300


@dataclass(frozen=True)
class Fuel:
    """What a run may use, as in ``lab.upkeep.operations.run(text, fuel=memlab.subjects.programs.Fuel(10))``.

    Attributes
    ----------
    operations
        How many operations there may be. They are counted before the first is run.
    memories
        How many memories they may touch. A memory counts each time that it is added, shown, judged, joined or reached.
        What a trace or an activation reaches is known when it is done: it may go beyond the fuel, and nothing is run
        after it.
    """

    operations: int = 1_000
    memories: int = 10_000


@dataclass(frozen=True)
class Step:
    """One operation that was run.

    ``value`` is that of the verb it calls. ``remember`` and ``fact``: the ``Memory``; ``recall``: the ``Hits``;
    ``feedback``: the ``Feedback``; ``consolidate``: the ``Consolidated``; ``decay!`` and ``get-policy``: the live
    ``Pack``; ``set-policy-fn``: the ``Version``; ``adapt-policy``: the ``Adapted``; ``stats``: the ``Stats``;
    ``trace``: the ``LabTrace``; ``activate``: a frame; ``associate``: None.

    Attributes
    ----------
    operation
        The name of the operation.
    line
        The line of the text on which it stands, from 1.
    source
        Its text.
    result
        What it returned, in a line.
    touched
        How many memories it touched.
    rows
        What it returned, as a list of dicts that ``Ran.json`` writes.
    value
        What it returned, as an object.
    """

    operation: str
    line: int
    source: str
    result: str
    touched: int
    rows: list[dict[str, Any]] = field(repr=False)
    value: Any = field(repr=False)


@dataclass(frozen=True)
class Ran(Sequence[Step], Displayed):
    """The steps of a run, in order: a sequence of ``Step``.

    Attributes
    ----------
    steps
        The steps as a tuple.
    event
        The number of the run's event in the journal.
    hash
        The SHA-256 of the text that was run.
    touched
        How many memories all steps touched.
    memory
        The id of the memory that proposed it; None where none did.
    """

    steps: tuple[Step, ...]
    event: int
    hash: str
    touched: int
    memory: int | None = None

    def __len__(self) -> int:
        return len(self.steps)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Step, ...]: ...
    @checked
    def __getitem__(self, index: int | slice) -> Step | tuple[Step, ...]:
        found: Step | tuple[Step, ...] = item(self.steps, index, "step")
        return found

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    @property
    def frame(self) -> pl.DataFrame:
        """One row an operation: step, line, operation, result, touched, source."""
        return pl.DataFrame(
            [(n, s.line, s.operation, s.result, s.touched, s.source) for n, s in enumerate(self.steps, 1)],
            schema={
                "step": pl.Int64,
                "line": pl.Int64,
                "operation": pl.String,
                "result": pl.String,
                "touched": pl.Int64,
                "source": pl.String,
            },
            orient="row",
        )

    def json(self) -> str:
        """The whole run as JSON."""
        steps = [
            {"operation": s.operation, "line": s.line, "result": s.result, "touched": s.touched, "rows": s.rows}
            for s in self.steps
        ]
        values = {
            "event": self.event,
            "hash": self.hash,
            "memory": self.memory,
            "touched": self.touched,
            "steps": steps,
        }
        return json.dumps(values, default=str, ensure_ascii=False)

    def __repr__(self) -> str:
        by = f", proposed by memory {self.memory}" if self.memory is not None else ""
        operations = "1 operation" if len(self) == 1 else f"{len(self)} operations"
        memories = "1 memory" if self.touched == 1 else f"{self.touched:,} memories"
        head = f"{operations} [{self.hash[:12]}], {memories} touched{by}"
        return printable("\n".join([head, *(f"  {step.operation:<14} {step.result}" for step in self.steps)]))

    def _display(self) -> object:
        rows = [(step.line, clip(step.source, _SHOWN), clip(step.result, _SHOWN)) for step in self.steps]
        return table(repr(self).splitlines()[0], ("line", "operation", "result"), rows)


@dataclass(frozen=True)
class Proposal(Displayed):
    """What a memory would do if someone consented; nothing has been done.

    ``problem`` says why its text cannot be run (a later version may have written it); then there is no ``program``.
    """

    memory: int
    text: str
    program: Program | None
    problem: str = ""

    @property
    def frame(self) -> pl.DataFrame:
        """One row an operation: memory_id, line, operation, does (reads, adds, decides), doc, source."""
        calls = self.program.calls if self.program is not None else ()
        return pl.DataFrame(
            [(self.memory, c.line, c.name, c.operation.does, c.operation.doc, c.source) for c in calls],
            schema={
                "memory_id": pl.Int64,
                "line": pl.Int64,
                "operation": pl.String,
                "does": pl.String,
                "doc": pl.String,
                "source": pl.String,
            },
            orient="row",
        )

    def __repr__(self) -> str:
        head = f"memory {self.memory} proposes"
        if self.program is None:
            return printable(f"{head} what cannot be run: {self.problem}")
        lines = [f"  {c.operation.does:<8} {clip(c.source, _SHOWN)}" for c in self.program.calls]
        return printable("\n".join([f"{head}, on your consent:", *lines]))

    def _display(self) -> object:
        if self.program is None:
            return repr(self)
        rows = [(c.operation.does, c.operation.doc, clip(c.source, _SHOWN)) for c in self.program.calls]
        return table(f"memory {self.memory} proposes, on your consent:", ("does", "", "operation"), rows)

"""``lab.upkeep.operations``: operations written down as text, proposed by memories, run with consent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, overload

import polars as pl

from memlab.errors import InputError, MemlabError, PolicyError, PolicyLimitError
from memlab.kernel.base.arguments import Seed, Within, checked, get_item
from memlab.kernel.base.display import Displayed, clip, table
from memlab.kernel.base.printable import printable
from memlab.kernel.verbs.core import Core, Memories, MemoryLike
from memlab.subjects.programs.adapting import (
    Adapted,
    Estimator,
    Missing,
    OperableLab,
    adapt,
    propose_revert,
)
from memlab.subjects.programs.program import Program, read_program

# What a run of operations gave, and what a memory proposes.


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
        found: Step | tuple[Step, ...] = get_item(self.steps, index, "step")
        return found

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    @property
    def frame(self) -> pl.DataFrame:
        """One row an operation: step, line, operation, result, touched, source."""
        return pl.DataFrame(
            [
                (n, s.line, s.operation, s.result, s.touched, s.source)
                for n, s in enumerate(self.steps, 1)
            ],
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
            {
                "operation": s.operation,
                "line": s.line,
                "result": s.result,
                "touched": s.touched,
                "rows": s.rows,
            }
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
        return printable(
            "\n".join([head, *(f"  {step.operation:<14} {step.result}" for step in self.steps)])
        )

    def _display(self) -> object:
        rows = [
            (step.line, clip(step.source, _SHOWN), clip(step.result, _SHOWN)) for step in self.steps
        ]
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
            [
                (self.memory, c.line, c.name, c.operation.does, c.operation.doc, c.source)
                for c in calls
            ],
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
        rows = [
            (c.operation.does, c.operation.doc, clip(c.source, _SHOWN)) for c in self.program.calls
        ]
        return table(
            f"memory {self.memory} proposes, on your consent:", ("does", "", "operation"), rows
        )


# Operations carried out one after the other by the verbs of a lab.


def run_program(
    lab: OperableLab,
    program: Program,
    *,
    fuel: Fuel,
    record: Callable[[], int],
    memory: int | None = None,
    consent: bool = False,
) -> Ran:
    """Run what was read and checked.

    ``record`` checks the ids, writes first that the program is run, and returns the event; ``memory`` is the one that
    proposed it; ``consent`` allows what is otherwise proposed only. Every operation is durable by itself. If one fails,
    those before it stay, and the error says which it was.
    """
    for what, value in (("operations", fuel.operations), ("memories", fuel.memories)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"The fuel of {what} is a whole number of at least 1, not {value!r}.")
    if len(program) > fuel.operations:
        last = program.calls[fuel.operations]
        raise last.error(
            PolicyLimitError,
            f"There are {len(program)} operations, and the fuel is {fuel.operations}.",
        )
    event = record()
    steps: list[Step] = []
    touched = 0
    for number, call in enumerate(program.calls, 1):
        before = (
            "Nothing was done."
            if number == 1
            else f"What came before it ({number - 1}) is done and stays."
        )
        needs = call.operation.needs(lab, call.arguments)
        if touched + needs > fuel.memories:
            raise call.error(
                PolicyLimitError,
                f"It may touch {needs:,} memories, and {fuel.memories - touched:,} of the fuel of {fuel.memories:,} "
                f"are left. {before}",
            )
        try:
            outcome = call.operation.verb(lab, {**call.arguments, "consent": consent})
        except MemlabError as error:
            error.add_note(
                f"Operation {number} of {len(program)}, line {call.line}: {call.source[:200]}. {before}"
            )
            raise
        touched += outcome.touched
        steps.append(
            Step(
                call.name,
                call.line,
                call.source,
                outcome.line,
                outcome.touched,
                outcome.rows,
                outcome.value,
            )
        )
    return Ran(tuple(steps), event, program.hash, touched, memory)


class LabOperations:
    """``lab.upkeep.operations``: run S-expressions that call the verbs of a lab, and see what memories propose."""

    def __init__(self, lab: OperableLab, core: Core) -> None:
        self._lab, self._core = lab, core

    @checked
    def run(
        self,
        operations: str | Path | MemoryLike | Proposal,
        *,
        consent: bool = False,
        fuel: Fuel | None = None,
    ) -> Ran:
        """Run operations such as ``(remember "tabs" "preference" 0.8 "30d")``: a text, a file, or what a memory holds.

        All of them are checked before the first is run: names, arity, types, limits and ids. A memory's operations run
        only with ``consent=True``; a proposal runs as it was shown, whatever the memory holds by now. Those of memories
        that are recalled meanwhile do not run. ``fuel`` bounds how many operations there may be and how many memories
        they touch. The operations and their arguments: docs/reference/operations.md. The run is an event, and so is
        whatever it does.

        Raises a PolicyError with line and caret; InputError without consent.

        >>> lab.upkeep.operations.run('(recall "how should I indent?" 3) (stats)')  # doctest: +SKIP
        """
        if isinstance(operations, str):
            return self._run(read_program(operations), fuel, consent)
        if isinstance(operations, Path):
            try:
                source = operations.expanduser().read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"Cannot read the operations in {operations}: {error}.") from None
            return self._run(read_program(source, file=str(operations)), fuel, consent)
        if isinstance(operations, Proposal):
            proposal = operations
        else:
            proposals = self.proposals(operations)
            if not proposals:
                raise InputError(f"{operations!r} holds no operations: there is nothing to run.")
            proposal = proposals[0]
        if proposal.program is None:
            raise InputError(
                f"The operations of memory {proposal.memory} cannot be run: {proposal.problem}"
            )
        if consent is not True:
            raise InputError(
                f"{proposal}\nTo run this, consent: lab.upkeep.operations.run({proposal.memory}, consent=True)."
            )
        return self._run(proposal.program, fuel, consent, proposal.memory)

    def _run(
        self, program: Program, fuel: Fuel | None, consent: bool, memory: int | None = None
    ) -> Ran:
        store = self._core.store

        def record() -> int:
            body = {
                "memory": memory,
                "operations": [call.name for call in program.calls],
                "hash": program.hash,
            }
            with store.writing() as tx:
                program.check_ids(len(store.state))
                if not store.versions.pack.settings["open-words"]:
                    program.check_words()
                return tx.event("run", body, at=store.clock())

        return run_program(
            self._lab, program, fuel=fuel or Fuel(), record=record, memory=memory, consent=consent
        )

    @checked
    def adapt_policy(
        self,
        *,
        missing: Missing | None = None,
        horizon: str | None = None,
        cluster: str | None = None,
        estimator: Estimator = "snips",
        level: Annotated[float, Within(0.5, 0.999)] = 0.95,
        reward_range: tuple[float, float] | None = None,
        consent: bool = False,
        seed: Seed = 0,
    ) -> Adapted:
        """Revert a policy that does worse, or install one that does better, as ``(adapt-policy)`` does.

        Below 20 recalls with a judgement nothing is concluded.

        Parameters
        ----------
        missing
            What missing feedback counts as, as in ``memlab.evaluate``: "zero", "censor", "inverse" or "bounds".
        horizon
            The time that each recall has to earn, such as "7d". Recalls that are younger are left out.
        cluster
            What belongs together and counts once: "day", "session", "decision" or a column of the decisions.
        estimator
            "snips" or "ht", as in ``memlab.evaluate``.
        level
            The probability with which nothing is called better wrongly, for each way of comparing.
        reward_range
            The smallest and the largest reward, where they are not 0 and 1.
        consent
            Whether to carry out the step. Without it, the step is proposed.
        seed
            The seed of the search for other numbers.

        Returns
        -------
        Adapted
            What was done or proposed, and the evidence.

        Raises
        ------
        InputError
            For a horizon that is no span of time, and for a cluster that is no column of the log.

        Examples
        --------
        >>> lab.upkeep.operations.adapt_policy(missing="zero", cluster="day", horizon="1d")             # doctest: +SKIP
        """
        return adapt(
            self._lab,
            missing=missing,
            horizon=horizon,
            cluster=cluster,
            estimator=estimator,
            level=level,
            reward_range=reward_range,
            consent=consent,
            seed=seed,
        )

    @checked
    def check_fall(
        self,
        *,
        missing: Missing = "censor",
        horizon: str | None = None,
        cluster: str | None = None,
        level: Annotated[float, Within(0.5, 0.999)] = 0.95,
        reward_range: tuple[float, float] | None = None,
    ) -> Adapted | None:
        """Return the proposal to bring an earlier policy back, or None where the live one has not fallen.

        ``lab.feedback`` gives the proposal of the defaults, once, with the judgement that showed the fall. The
        arguments are those of ``adapt_policy``; a log of successes alone needs ``missing="zero"``.

        Returns
        -------
        Adapted or None
            The proposal, with the call that carries it out.

        Raises
        ------
        InputError
            Where the log cannot be compared, such as rewards outside ``reward_range``.
        """
        return propose_revert(
            self._core.store,
            missing=missing,
            horizon=horizon,
            cluster=cluster,
            level=level,
            reward_range=reward_range,
        )

    @checked
    def proposals(self, memories: Memories) -> tuple[Proposal, ...]:
        """What these memories would do: hits of a recall, say, of which some hold operations. Nothing is run.

        A memory holds operations when it is remembered with them, at most 100 in 20,000 characters:
        ``lab.remember("On release day", kind="procedure", operations='(recall "release")')``. They are checked then.

        >>> lab.upkeep.operations.proposals(lab.recall("release day"))  # doctest: +SKIP
        """
        found = []
        with self._core.reading() as state:
            held = [
                (row + 1, state.notes["operations"].value_at(row))
                for row in self._core.rows(memories)
            ]
        for memory, text in held:
            if text is None:
                continue
            try:
                found.append(Proposal(memory, text, read_program(text, file=f"memory {memory}")))
            except PolicyError as error:
                found.append(Proposal(memory, text, None, str(error)))
        return tuple(found)

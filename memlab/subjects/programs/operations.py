"""``lab.upkeep.operations``: operations as text, which memories may propose."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, overload

import polars as pl

from memlab.errors import InputError, MemlabError, PolicyError, PolicyLimitError
from memlab.kernel.base.arguments import Seed, Within, checked, get_item
from memlab.kernel.base.disk import read_source
from memlab.kernel.base.display import Displayed, clip, table
from memlab.kernel.base.printable import count_of, printable
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

# The maximum number of characters of a source or result in a table, which take three lines in a notebook.
_SHOWN = 300


@dataclass(frozen=True)
class Fuel:
    """The limits of a run: ``lab.upkeep.operations.run(text, fuel=Fuel(10))``.

    Attributes
    ----------
    operations
        The maximum number of operations, checked before the first one runs.
    memories
        The maximum number of touched memories. A memory counts each time that it is added, shown, judged, linked or
        reached. The number that a trace or an activation reaches is known only afterwards. It may exceed the limit, and
        then no further operation runs.

    Examples
    --------
    >>> from memlab.subjects.programs import Fuel
    >>> Fuel(10)
    Fuel(operations=10, memories=10000)
    """

    operations: int = 1_000
    memories: int = 10_000


@dataclass(frozen=True)
class Step:
    """One operation that was run, with its result.

    Attributes
    ----------
    operation
        The name of the operation.
    line
        The line of the operation in the text, from 1.
    source
        The text of the operation.
    result
        The result of the operation in one line.
    touched
        The number of memories that the operation touched.
    rows
        The result as a list of dicts, which ``Ran.json`` includes.
    value
        The return value of the verb:

        - ``remember`` and ``fact``: a ``Memory``
        - ``recall``: ``Hits``
        - ``feedback``: a ``Feedback``
        - ``consolidate``: a ``Consolidated``
        - ``decay!`` and ``get-policy``: the active ``Pack``
        - ``set-policy-fn``: a ``Version``
        - ``adapt-policy``: an ``Adapted``
        - ``stats``: ``Stats``
        - ``trace``: a ``LabTrace``
        - ``activate``: a frame
        - ``associate``: None

    Examples
    --------
    >>> memlab.open().upkeep.operations.run('(remember "tabs")')[0].operation
    'remember'
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
    """The steps of a run, in order, as a sequence of ``Step``.

    Attributes
    ----------
    steps
        The steps as a tuple.
    event
        The number of the run's event in the journal.
    hash
        The SHA-256 of the text.
    touched
        The number of memories that all steps touched.
    memory
        The id of the memory that proposed the operations, or None for a text or a file.

    Examples
    --------
    >>> lab = memlab.open()
    >>> len(lab.upkeep.operations.run('(remember "tabs") (recall "tabs?" 3)'))
    2
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
        step: Step | tuple[Step, ...] = get_item(self.steps, index, "step")
        return step

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    @property
    def frame(self) -> pl.DataFrame:
        """A frame with one row per operation, which contains the operation's result.

        The columns are ``step``, ``line``, ``operation``, ``result``, ``touched`` and ``source``.
        """
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
        """Return the run as JSON text.

        Returns
        -------
        str
            An object with the event, the hash and the steps with their rows.
        """
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
        counts = count_of(len(self), "operation"), count_of(self.touched, "memory")
        head = f"{counts[0]} [{self.hash[:12]}], {counts[1]} touched{by}"
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
    """The operations that a memory proposes, which run only with consent.

    Attributes
    ----------
    memory
        The id of the memory.
    text
        The text of the operations.
    program
        The checked operations, or None if the text cannot be run.
    problem
        The reason why the text cannot be run, for example that it needs a later version of the language.

    Examples
    --------
    >>> lab = memlab.open()
    >>> hit = lab.remember("On release day", kind="procedure", operations='(recall "release")')
    >>> lab.upkeep.operations.proposals(hit)
    (memory 1 proposes, on your consent:
      reads    (recall "release"),)
    """

    memory: int
    text: str
    program: Program | None
    problem: str = ""

    @property
    def frame(self) -> pl.DataFrame:
        """A frame with one row per operation, which describes the operation.

        The columns are ``memory_id``, ``line``, ``operation``, ``does``, ``doc`` and ``source``.
        """
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
            return printable(f"{head} operations that cannot be run: {self.problem}")
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


def run_program(
    lab: OperableLab,
    program: Program,
    *,
    fuel: Fuel,
    record: Callable[[], int],
    memory: int | None = None,
    consent: bool = False,
) -> Ran:
    """Run the operations of a checked program in order.

    ``record`` checks the ids, records the run, and returns the number of its event. ``memory`` is the id of the memory
    that proposed the operations. ``consent`` allows operations that are otherwise only proposed. Each operation is
    durable on its own. If an operation fails, the earlier ones stay, and the error names the failed one.
    """
    for what, value in (("operations", fuel.operations), ("memories", fuel.memories)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(
                f"The fuel of {what} (the maximum that a run may use) must be a whole number of at least 1, not {value!r}."
            )
    if len(program) > fuel.operations:
        last = program.calls[fuel.operations]
        raise last.error(
            PolicyLimitError,
            f"There are {len(program)} operations, and the fuel allows {fuel.operations}. Pass a larger Fuel.",
        )
    event = record()
    steps: list[Step] = []
    touched = 0
    for number, call in enumerate(program.calls, 1):
        before = (
            "Nothing was done."
            if number == 1
            else f"The operations before it ({number - 1}) are done and stay."
        )
        needs = call.operation.needs(lab, call.arguments)
        if touched + needs > fuel.memories:
            raise call.error(
                PolicyLimitError,
                f"The operation may touch {needs:,} memories, and the fuel has {fuel.memories - touched:,} of "
                f"{fuel.memories:,} left. {before} Pass a larger Fuel.",
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
    """``lab.upkeep.operations``: run operations as text, and list proposals.

    Examples
    --------
    >>> lab = memlab.open()
    >>> lab.upkeep.operations.run('(remember "tabs")').touched
    1
    """

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
        """Run operations, such as ``(remember "tabs" "preference" 0.8 "30d")``.

        All names, arguments, types, limits and ids are checked before the first operation runs. The operations of a
        memory run only with ``consent=True``. A proposal runs as it was displayed, even if the memory was changed.
        Operations of memories that an operation recalls do not run. The run and each change are events of the journal.
        docs/reference/operations.md lists the operations.

        Parameters
        ----------
        operations
            The text of the operations, a ``Path`` to a file with the text, a memory or its id, or a proposal.
        consent
            Whether to run the operations of a memory, and operations that are otherwise only
            proposed.
        fuel
            The limits of the run, by default 1,000 operations and 10,000 memories.

        Returns
        -------
        Ran
            The steps with their results.

        Raises
        ------
        PolicyError
            If the text is invalid. The message has the line and a caret.
        InputError
            If the operations of a memory are run without consent, or if a file cannot be read or a memory has no
            operations.

        Examples
        --------
        >>> lab = memlab.open()
        >>> print(lab.upkeep.operations.run('(remember "tabs" "preference") (recall "tabs?" 1)')[1].result)
        #1 tabs
        """
        if isinstance(operations, str):
            return self._run(read_program(operations), fuel, consent)
        if isinstance(operations, Path):
            try:
                source = read_source(operations.expanduser())
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(
                    f"The operations in {operations} cannot be read: {error}. Check the path and the encoding."
                ) from None
            return self._run(read_program(source, file=str(operations)), fuel, consent)
        if isinstance(operations, Proposal):
            proposal = operations
        else:
            proposals = self.proposals(operations)
            if not proposals:
                raise InputError(f"{operations!r} has no operations, so there is nothing to run.")
            proposal = proposals[0]
        if proposal.program is None:
            raise InputError(
                f"The operations of memory {proposal.memory} cannot be run: {proposal.problem}"
            )
        if consent is not True:
            raise InputError(
                f"{proposal}\nTo run this, call lab.upkeep.operations.run({proposal.memory}, consent=True)."
            )
        return self._run(proposal.program, fuel, consent, proposal.memory)

    def _run(
        self, program: Program, fuel: Fuel | None, consent: bool, memory: int | None = None
    ) -> Ran:
        """Run a checked program, and record the run as an event."""
        store = self._core.store

        def record() -> int:
            """Check the ids and words of a program, and write the event of its run."""
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
        """Roll back a policy that performs worse, or install a better policy.

        The operation ``(adapt-policy)`` does the same. With fewer than 20 judged recalls, only a clear fall can be
        detected.

        Parameters
        ----------
        missing
            The treatment of missing feedback, as in ``memlab.evaluate``: "zero", "censor",
            "inverse" or "bounds".
        horizon
            The time within which feedback counts, such as "7d". Younger recalls are left out.
        cluster
            The unit of independent observations: "day", "session", "decision" or a column of the
            decisions.
        estimator
            "snips" or "ht", as in ``memlab.evaluate``.
        level
            The confidence level of each way of comparing, in 0.5..0.999.
        reward_range
            The minimum and maximum reward, by default 0 and 1.
        consent
            Whether to carry out the step. Otherwise it is proposed.
        seed
            The seed of the search for other numbers.

        Returns
        -------
        Adapted
            The change or the proposal, with the evidence.

        Raises
        ------
        InputError
            If ``horizon`` is no span of time.
        UnknownName
            If ``cluster`` is no column of the log.

        Examples
        --------
        >>> memlab.open().upkeep.operations.adapt_policy(missing="zero", horizon="1d").action
        'kept'
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
        """Return a proposal to restore an earlier policy, or None if there is no fall.

        A fall means that an earlier policy earned more while it was active than the active policy does.

        ``lab.feedback`` returns the proposal with default arguments once, for the judgement that showed the fall. A log
        that has only successes requires ``missing="zero"``.

        Parameters
        ----------
        missing
            The treatment of missing feedback, as in ``memlab.evaluate``.
        horizon
            The time within which feedback counts, such as "7d". Younger recalls are left out.
        cluster
            The unit of independent observations: "day", "session", "decision" or a column of the
            decisions.
        level
            The confidence level, in 0.5..0.999.
        reward_range
            The minimum and maximum reward, by default 0 and 1.

        Returns
        -------
        Adapted or None
            The proposal, with the call that carries it out.

        Raises
        ------
        InputError
            If the log cannot be compared, for example because rewards are outside ``reward_range``.

        Examples
        --------
        >>> memlab.open().upkeep.operations.check_fall() is None
        True
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
        """Return the operations that are stored with memories, without running them.

        ``lab.remember(..., operations='(recall "release")')`` stores operations with a memory, at
        most 100 in 20,000 characters. They are checked when they are stored.

        Parameters
        ----------
        memories
            A memory, an id, or several of them, for example the hits of a recall.

        Returns
        -------
        tuple of Proposal
            One proposal for each memory with operations.

        Examples
        --------
        >>> lab = memlab.open()
        >>> hit = lab.remember("On release day", kind="procedure", operations='(recall "release")')
        >>> lab.upkeep.operations.proposals(lab.recall("release day"))[0].text
        '(recall "release")'
        """
        proposals_found = []
        with self._core.reading() as state:
            texts = [
                (row + 1, state.notes["operations"].value_at(row))
                for row in self._core.rows(memories)
            ]
        for memory, text in texts:
            if text is None:
                continue
            try:
                proposals_found.append(
                    Proposal(memory, text, read_program(text, file=f"memory {memory}"))
                )
            except PolicyError as error:
                proposals_found.append(Proposal(memory, text, None, str(error)))
        return tuple(proposals_found)

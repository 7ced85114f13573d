"""Operations carried out one after the other by the verbs of a lab."""

from __future__ import annotations

from collections.abc import Callable

from memlab.errors import InputError, MemlabError, PolicyLimitError
from memlab.subjects.programs._lab import OperableLab
from memlab.subjects.programs._program import Program
from memlab.subjects.programs._ran import Fuel, Ran, Step

__all__ = ["run_program"]


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
        raise last.error(PolicyLimitError, f"There are {len(program)} operations, and the fuel is {fuel.operations}.")
    event = record()
    steps: list[Step] = []
    touched = 0
    for number, call in enumerate(program.calls, 1):
        before = "Nothing was done." if number == 1 else f"What came before it ({number - 1}) is done and stays."
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
            error.add_note(f"Operation {number} of {len(program)}, line {call.line}: {call.source[:200]}. {before}")
            raise
        touched += outcome.touched
        steps.append(
            Step(call.name, call.line, call.source, outcome.line, outcome.touched, outcome.rows, outcome.value)
        )
    return Ran(tuple(steps), event, program.hash, touched, memory)

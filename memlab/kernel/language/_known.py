"""A policy as a program over arrays, and the smaller one that it is where some inputs are known beforehand.

Much of a recall is the same for all candidates: what the query asks for, that it names no speaker and no day. What
follows from that is folded once, for each combination that is met, and not computed for every row of every recall.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from memlab.errors import InputError, MemlabError
from memlab.kernel.language._arrays import ArrayProgram, Ready
from memlab.kernel.language._changes import with_known
from memlab.kernel.language._dag import Value
from memlab.kernel.language._policy import Policy

__all__ = ["Known", "Program"]

Known = tuple[tuple[str, Value], ...]
"""Inputs by name with the value that all rows have, None for null."""

_MOST = 64
"""Combinations of known inputs of one policy whose programs are kept."""


class Program:
    """What a policy with one result computes from arrays of its inputs."""

    def __init__(self, policy: Policy, known: Known = ()) -> None:
        self.policy = policy
        (root,) = with_known((policy.root,), dict(known), rounded=False) if known else (policy.root,)
        self._arrays = ArrayProgram(root, policy.derived)
        self._smaller: dict[Known, Program] = {}
        self.reads = tuple(name for _, name, _, _ in self._arrays.inputs)
        """The inputs in the order in which ``compute`` takes them."""
        self.compares = self._arrays.coded
        """The inputs of words that ``compute`` takes as ``Coded``, too."""
        self.aggregates = self._arrays.aggregates
        """Whether its value for one row depends on the others."""

    def knowing(self, known: Known) -> Program:
        """The program where all rows have these values."""
        program = self._smaller.get(known)
        if program is None:
            if len(self._smaller) >= _MOST:
                self._smaller.clear()
            program = self._smaller[known] = Program(self.policy, known)
        return program

    def compute(
        self, ready: Sequence[Ready], size: int, *, order: NDArray[Any] | None = None, quiet: bool = False
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Values and nulls (or none) of ``size`` rows, whose inputs come in the order of ``reads``: each an array of
        the input's type and a null mask, None where nothing is null. ``quiet``: NumPy's warnings are off.
        """
        try:
            ((values, nulls),) = self._arrays.compute(ready, size, order, quiet)
        except MemlabError:
            raise
        except Exception as error:
            raise InputError(f"{self.policy.name} cannot read what was given: {error}") from error
        return values, nulls

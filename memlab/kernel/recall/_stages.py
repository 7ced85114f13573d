"""The stages of a recall, as a table: what each reads, what it gives, and the function that does it.

    question -> find -> admit -> seed -> spread -> cut -> score -> known -> select -> explore -> log

An extension may replace a stage by one of its own (``Extension(stages=...)``), which gives the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from memlab.errors import ExtensionError, InputError, MemlabError
from memlab.kernel.registry import Registry

__all__ = ["STAGES", "Stage", "own_stage", "run_extension_stage"]


@dataclass(frozen=True)
class Stage:
    """One step of a recall.

    Parameters
    ----------
    name
        One of those in the table of stages.
    doc
        What it does, in a sentence.
    reads, gives
        The attributes of a run that it reads, and those that it sets.
    run
        The function; it takes the run.
    """

    name: str
    doc: str
    reads: tuple[str, ...]
    gives: tuple[str, ...]
    run: Callable[[Any], None] = field(compare=False)
    owner: str = ""


class Stages(Registry[Stage]):
    """The stages in their order. What an extension declares takes the place of memlab's own, until it is forgotten."""

    def __init__(self) -> None:
        super().__init__("stage", kind="stages", about="doc", check=_refusal)
        self._own: dict[str, Stage] = {}

    def declare(self, stages: Iterable[Stage]) -> None:
        """Set memlab's own stages, in their order."""
        self._own = {stage.name: stage for stage in stages}
        self._items = dict(self._own)
        self.changes += 1

    def refusal(self, item: Stage) -> str | None:
        """Return why ``item`` cannot take the place of a stage, or None."""
        if (fault := _refusal(item)) is not None:
            return fault
        own = self._own.get(item.name)
        if own is None:
            return f"There is no stage {item.name}: an extension replaces one of {', '.join(self._own)}."
        if missing := [name for name in own.gives if name not in item.gives]:
            return f"The stage {item.name} gives {' and '.join(own.gives)}; this one lacks {' and '.join(missing)}."
        present = self._items[item.name]
        if present.owner and item.owner and present.owner.rpartition(" ")[0] != item.owner.rpartition(" ")[0]:
            return f"The stage {item.name} is replaced by the extension {present.owner} already."
        return None

    def remove(self, extension: str) -> None:
        """Put memlab's own stages in the place of those of an extension."""
        kept = {
            name: self._own[name] if stage.owner.rpartition(" ")[0] == extension else stage
            for name, stage in self._items.items()
        }
        if kept != self._items:
            self._items = kept
            self.changes += 1


def _refusal(item: Stage) -> str | None:
    if not isinstance(item, Stage):
        return f"A stage is a memlab.kernel.recall.Stage, not {type(item).__name__}."
    return None if callable(item.run) else f"The stage {item.name} has no function: give run=."


STAGES = Stages()
"""The stages of every recall."""


def own_stage(name: str) -> Stage:
    """Return memlab's own stage of a name, for an extension to build on."""
    if name not in STAGES._own:
        raise InputError(f"There is no stage {name}; there are {', '.join(STAGES._own)}.")
    return STAGES._own[name]


def run_extension_stage(stage: Stage, run: Any) -> None:
    """Run a stage that an extension declares, and check what it gives.

    Raises
    ------
    ExtensionError
        If the stage raises, does not set an attribute that it gives, or orders the pool wrongly.
    """
    try:
        stage.run(run)
        fault = _fault_of(stage, run)
    except MemlabError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the code of a user raises is said under its name
        fault = f"failed with {type(error).__name__}: {error}"
    if fault is not None:
        raise ExtensionError(f"The stage {stage.name} of the extension {stage.owner} {fault}")


def _fault_of(stage: Stage, run: Any) -> str | None:
    for name in stage.gives:
        if not hasattr(run, name):
            return f"did not set {name}: set each attribute of the run that the stage gives."
    if stage.name == "select":
        order = np.sort(run.selected.ranking.order)
        if not np.array_equal(order, np.arange(len(run.pool))):
            return "gave an order that does not hold each candidate of the pool once."
    return None

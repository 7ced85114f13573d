"""The stages of a recall as a table: what each stage reads, what it sets, and its function.

    query -> find -> admit -> seed -> spread -> cut -> score -> known -> select -> explore -> log

An extension may replace a stage (``Extension(stages=...)``). The replacement must set the same attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from memlab.errors import InputError
from memlab.kernel.registry import Registry


@dataclass(frozen=True)
class Stage:
    """One step of a recall.

    Parameters
    ----------
    name
        The name of a stage in ``STAGES``, such as ``"score"``.
    doc
        One sentence that says what the stage does.
    reads, gives
        The attributes of a ``Run`` that the stage reads, and those that it sets.
    run
        The function of the stage. The function takes the ``Run`` and returns nothing.
    owner
        The extension that declares the stage, with its version. memlab sets it.

    Examples
    --------
    >>> own_stage("score").gives
    ('scores',)
    """

    name: str
    doc: str
    reads: tuple[str, ...]
    gives: tuple[str, ...]
    run: Callable[[Any], None] = field(compare=False)
    owner: str = ""


class Stages(Registry[Stage]):
    """The stages of a recall in order.

    A stage of an extension replaces memlab's own until the extension is removed.
    """

    def __init__(self) -> None:
        super().__init__("stage", kind="stages", about="doc", check=_describe_stage_fault)
        self._builtin: dict[str, Stage] = {}

    def declare(self, stages: Iterable[Stage]) -> None:
        """Declare memlab's own stages in order."""
        self._builtin = {stage.name: stage for stage in stages}
        self._items = dict(self._builtin)
        self.changes += 1

    def refusal(self, item: Stage) -> str | None:
        """Return why ``item`` cannot replace a stage, or None if it can."""
        if (fault := _describe_stage_fault(item)) is not None:
            return fault
        own = self._builtin.get(item.name)
        if own is None:
            return f"There is no stage {item.name}. An extension replaces one of {', '.join(self._builtin)}."
        if missing := [name for name in own.gives if name not in item.gives]:
            return f"The stage {item.name} must give {' and '.join(own.gives)}; this one lacks {' and '.join(missing)}."
        present = self._items[item.name]
        if (
            present.owner
            and item.owner
            and present.owner.rpartition(" ")[0] != item.owner.rpartition(" ")[0]
        ):
            return f"The stage {item.name} is replaced by the extension {present.owner} already. Remove it first."
        return None

    def remove(self, extension: str) -> None:
        """Restore the built-in stages that ``extension`` replaced."""
        stages = {
            name: self._builtin[name] if stage.owner.rpartition(" ")[0] == extension else stage
            for name, stage in self._items.items()
        }
        if stages != self._items:
            self._items = stages
            self.changes += 1


def _describe_stage_fault(item: Stage) -> str | None:
    """Return the reason why an item is not a valid stage, or None for a valid stage."""
    if not isinstance(item, Stage):
        return f"A stage is a memlab.kernel.recall.Stage, not {type(item).__name__}."
    return None if callable(item.run) else f"The stage {item.name} has no function: give run=."


STAGES = Stages()
"""The stages of every recall."""


def own_stage(name: str) -> Stage:
    """Return memlab's own stage, for an extension to build on.

    Parameters
    ----------
    name
        The name of the stage, such as ``"score"``.

    Returns
    -------
    Stage
        The stage as memlab declares it, even where an extension replaces it.

    Raises
    ------
    InputError
        If there is no stage of this name.

    Examples
    --------
    >>> own_stage("cut").reads
    ('reached',)
    """
    if name not in STAGES._builtin:
        raise InputError(f"There is no stage {name}. Choose one of {', '.join(STAGES._builtin)}.")
    return STAGES._builtin[name]

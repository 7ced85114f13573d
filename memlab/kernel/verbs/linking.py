"""Linking as the verbs of the kernel use it: what compares new memories with those at hand is an extension's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from memlab.errors import UnknownName
from memlab.kernel.hooks import list_hooks
from memlab.kernel.policies import Pack
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.results import Linked

__all__ = ["LINKING", "Comparing", "Linker", "check_linking", "comparing", "linking_mode"]

LINKING = ("off", "now", "later")


class Comparing(Protocol):
    """Compares memories of one lab under its pack as it is now; writes nothing."""

    def before(
        self,
        columns: Mapping[str, list[Any]],
        edges: Mapping[str, Any] | None,
        texts: Sequence[str],
        vectors: NDArray[np.int8],
        *,
        first: int,
        now: int,
    ) -> Linked:
        """Decide what becomes of memories that are not stored yet, which have ids from ``first`` on."""

    def after(self, ids: range) -> Linked:
        """Decide what becomes of stored memories."""

    def nearest(self, text: str, *, project: str | None, viewer: str | None = None) -> float | None:
        """Return the closeness of the nearest memory that a recall may find, None where there is none."""


class Linker(Protocol):
    """The worker of one lab that links in the background what was remembered with linking "later"."""

    @property
    def waiting(self) -> list[int]:
        """The ids of the memories that wait, ascending."""

    def wake(self) -> None:
        """Link what waits, soon."""

    def link_all(self, timeout: float | None) -> bool:
        """Link until nothing waits, for at most ``timeout`` seconds; return whether nothing does."""


def comparing(core: Core) -> Comparing:
    """Return what compares memories of a lab: the last that was declared at the hook "compare"."""
    made: Comparing = list_hooks("compare")[-1](core)
    return made


def check_linking(given: object) -> None:
    """Refuse what is no way of linking; None stands for that of the pack."""
    if given is not None and given not in LINKING:
        raise UnknownName("way of linking", given, LINKING)


def linking_mode(pack: Pack, given: str | None, columns: Mapping[str, list[Any]]) -> str:
    """Return when new memories are linked: as the caller says, else the pack. Turns alone are not linked."""
    how = str(pack.settings["linking"]) if given is None else given
    kinds = columns.get("kind")
    return "off" if kinds is not None and all(kind == "turn" for kind in kinds) else how

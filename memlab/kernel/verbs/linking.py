"""Interfaces of linking: the comparison of memories and the background worker.

Extensions implement both; the kernel's verbs only call them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from memlab.errors import UnknownName
from memlab.kernel.base.arrays import Components
from memlab.kernel.hooks import list_hooks
from memlab.kernel.policies import Pack
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.results import Linked

LINKING = ("off", "corrections", "now", "later")
"""When new memories are compared with stored memories; see ``Lab.remember``."""


class Comparer(Protocol):
    """A comparison of one lab's memories under its active pack; it writes nothing."""

    def before(
        self,
        columns: Mapping[str, list[Any]],
        edges: Mapping[str, Any] | None,
        texts: Sequence[str],
        vectors: Components,
        *,
        first: int,
        now: int,
        corrections: bool = False,
    ) -> Linked | None:
        """Decide how new memories relate to stored memories before they are stored.

        The ids of the new memories begin at ``first``. With ``corrections``, only statements that
        report a change end others; the result is None if there is none.
        """

    def after(self, ids: range) -> Linked:
        """Decide how memories that are already stored relate to other memories."""

    def nearest(self, text: str, *, project: str | None, viewer: str | None = None) -> float | None:
        """Return the closeness of the nearest recallable memory, or None if there is none."""


class Linker(Protocol):
    """Background worker of one lab that links memories stored with linking "later"."""

    @property
    def waiting(self) -> list[int]:
        """The ids of the memories that wait to be linked, ascending."""

    def wake(self) -> None:
        """Schedule the linking of the waiting memories."""

    def link_all(self, timeout: float | None) -> bool:
        """Link all waiting memories, taking at most ``timeout`` seconds.

        Returns True if no memory waits afterwards.
        """


def get_comparer(core: Core) -> Comparer:
    """Return the lab's comparer, built by the last declared hook "compare"."""
    comparer: Comparer = list_hooks("compare")[-1](core)
    return comparer


def check_linking(linking: object) -> None:
    """Raise UnknownName for an unknown linking mode; None selects the pack's setting."""
    if linking is not None and linking not in LINKING:
        raise UnknownName("way of linking", linking, LINKING)


def links_all(pack: Pack) -> bool:
    """Return whether a pack compares all new memories, and not only corrections."""
    return pack.settings["linking"] not in ("off", "corrections")


def choose_linking(pack: Pack, linking: str | None, columns: Mapping[str, list[Any]]) -> str:
    """Return how new memories are linked, as one of ``LINKING``.

    The caller's choice overrides the pack's setting. A call that stores only turns of a conversation links nothing.
    """
    mode = str(pack.settings["linking"]) if linking is None else linking
    kinds = columns.get("kind")
    return "off" if kinds is not None and all(kind == "turn" for kind in kinds) else mode

"""Correcting: what was wrong, what is to go, and what comes back."""

from __future__ import annotations

from memlab.lab_base import LabBase, MemoryLike
from memlab.memory import Change, values_of

__all__ = ["LabCorrecting"]


class LabCorrecting(LabBase):
    """``edit``, ``deprecate``, ``forget``, ``delete``, ``restore``, ``purge``."""

    def forget(self, memory: MemoryLike) -> None:
        """Take a memory out of every recall; ``restore`` brings it back."""
        self._set_status(memory, "forget", "forgotten")

    def restore(self, memory: MemoryLike) -> None:
        """Undo ``forget``."""
        self._set_status(memory, "restore", "active")

    def _set_status(self, memory: MemoryLike, kind: str, status: str) -> None:
        with self._store.writing() as tx:
            now = self._store.clock()
            change = Change(set=[values_of([self._row(memory) + 1], status=status, changed=now)])
            tx.event(kind, change.body(), at=now)

"""Logged recalls by their numbers."""

from __future__ import annotations

from memlab.errors import UnknownName
from memlab.slates import Slate, decode
from memlab.storage.store import Store

__all__ = ["find_slate", "logged_slate"]


def find_slate(store: Store, decision: int) -> Slate | None:
    """The slate of a logged recall; None if no recall of this number was logged."""
    blob = next((blob for _, blob in store.journal.slates(decision - 1, upto=decision)), None)
    return None if blob is None else decode(blob, decision=decision)


def logged_slate(store: Store, decision: int) -> Slate:
    """The slate of a logged recall; UnknownName if there is none of this number."""
    slate = find_slate(store, decision)
    if slate is None:
        logged = (str(event.seq) for event in store.journal.events(kinds=("recall",)))
        raise UnknownName("logged recall", decision, logged)
    return slate

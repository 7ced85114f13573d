"""Copies that a lab wrote for people: mirrors and exports, listed in its journal, so that a purge knows of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import msgspec

from memlab.kernel.journal import Journal, JournalView
from memlab.kernel.storage.purging import PURGE_TIMEOUT, last_purge

if TYPE_CHECKING:
    from memlab.kernel.storage.store import Store

__all__ = [
    "COPIES",
    "Copy",
    "list_copies",
    "list_outdated_mirrors",
    "register_copy",
    "unregister_copy",
    "write_without_purge",
]

COPIES = "copies"
"""The value of the journal that lists them; a backup does not have it, as they are not copies of it."""

Kind = Literal["mirror", "export"]
Made = TypeVar("Made")
Given = TypeVar("Given")


class Copy(NamedTuple):
    """One copy: where it is, and the last purge that it was in step with (of an export, that it was written after)."""

    kind: Kind
    path: Path
    purge: int


def list_copies(journal: Journal | JournalView) -> list[Copy]:
    """Every copy that was noted, in the order in which they were first written."""
    rows = msgspec.json.decode(journal.meta(COPIES) or "[]", type=list[tuple[Kind, str, int]])
    return [Copy(kind, Path(path), purge) for kind, path, purge in rows]


def register_copy(
    journal: Journal | JournalView, kind: Kind, path: Path, *, begun: bool = False
) -> None:
    """List a copy as one that is in step, or is only ``begun``. A lab that is read only lists nothing."""
    if journal.read_only or not isinstance(journal, Journal):
        return
    known = list_copies(journal)
    path = path.absolute()
    listed = any(one.path == path for one in known)
    noted = Copy(kind, path, 0 if begun else last_purge(journal))
    if not listed:
        _put(journal, [*known, noted])
    elif not begun and noted not in known:
        _put(journal, [noted if one.path == path else one for one in known])


def unregister_copy(journal: Journal | JournalView, path: Path) -> None:
    """Take a copy that is there no more off the list."""
    left = [one for one in list_copies(journal) if one.path != path.absolute()]
    if (
        isinstance(journal, Journal)
        and not journal.read_only
        and len(left) < len(list_copies(journal))
    ):
        _put(journal, left)


def list_outdated_mirrors(journal: Journal | JournalView) -> list[Copy]:
    """The mirrors that are not in step with the last purge."""
    purge = last_purge(journal)
    return (
        [one for one in list_copies(journal) if one.kind == "mirror" and one.purge < purge]
        if purge
        else []
    )


def write_without_purge(
    store: Store, made: Callable[[], Made], write: Callable[[Made], Given]
) -> Given:
    """What ``write`` gives for what was ``made`` of the lab, so that no purge comes between the two.

    Rebuilt if one did. A lab that is read only has no lock to hold: others may purge meanwhile.
    """
    while True:
        purge = last_purge(store.journal)
        content = made()
        lock = nullcontext() if store.journal.read_only else store.derived.hold(PURGE_TIMEOUT)
        with lock:
            if last_purge(store.journal) == purge:
                return write(content)


def _put(journal: Journal, known: list[Copy]) -> None:
    with journal.write() as tx:
        rows = [(one.kind, str(one.path), one.purge) for one in known]
        tx.meta(COPIES, msgspec.json.encode(rows).decode())

"""Copies that a lab wrote for people: mirrors and exports.

The journal lists them, so a purge finds them.
"""

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
"""The journal's value that lists the copies; a backup lacks it, because they are not copies of the backup."""

Kind = Literal["mirror", "export"]
Content = TypeVar("Content")
Result = TypeVar("Result")


class Copy(NamedTuple):
    """A copy: its kind, its path, and a purge.

    For a mirror, ``purge`` is the last purge that the mirror follows. For an export, it is the last purge before it.
    """

    kind: Kind
    path: Path
    purge: int


def list_copies(journal: Journal | JournalView) -> list[Copy]:
    """Return all registered copies, ordered by their first write."""
    rows = msgspec.json.decode(journal.meta(COPIES) or "[]", type=list[tuple[Kind, str, int]])
    return [Copy(kind, Path(path), purge) for kind, path, purge in rows]


def register_copy(
    journal: Journal | JournalView, kind: Kind, path: Path, *, begun: bool = False
) -> None:
    """Register a copy as up to date, or as being written if ``begun`` is set.

    A read-only lab registers nothing.
    """
    if journal.read_only or not isinstance(journal, Journal):
        return
    registered = list_copies(journal)
    path = path.absolute()
    listed = any(copy.path == path for copy in registered)
    entry = Copy(kind, path, 0 if begun else last_purge(journal))
    if not listed:
        _put(journal, [*registered, entry])
    elif not begun and entry not in registered:
        _put(journal, [entry if copy.path == path else copy for copy in registered])


def unregister_copy(journal: Journal | JournalView, path: Path) -> None:
    """Remove a copy that no longer exists from the list."""
    left = [copy for copy in list_copies(journal) if copy.path != path.absolute()]
    if (
        isinstance(journal, Journal)
        and not journal.read_only
        and len(left) < len(list_copies(journal))
    ):
        _put(journal, left)


def list_outdated_mirrors(journal: Journal | JournalView) -> list[Copy]:
    """Return the mirrors that have not applied the last purge."""
    purge = last_purge(journal)
    return (
        [copy for copy in list_copies(journal) if copy.kind == "mirror" and copy.purge < purge]
        if purge
        else []
    )


def write_without_purge(
    store: Store, build: Callable[[], Content], write: Callable[[Content], Result]
) -> Result:
    """Build content from the lab and write it, without a purge in between.

    Returns the result of ``write``.

    The content is built again if a purge took place. A read-only lab has no lock, so that others may purge meanwhile.
    """
    while True:
        purge = last_purge(store.journal)
        content = build()
        lock = nullcontext() if store.journal.read_only else store.derived.hold(PURGE_TIMEOUT)
        with lock:
            if last_purge(store.journal) == purge:
                return write(content)


def _put(journal: Journal, registered: list[Copy]) -> None:
    """Store the list of copies in the journal."""
    with journal.write() as tx:
        rows = [(copy.kind, str(copy.path), copy.purge) for copy in registered]
        tx.meta(COPIES, msgspec.json.encode(rows).decode())

"""Copies of a lab's memories outside the lab: mirrors and exports.

The journal lists these copies, so that a purge can find them.
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

COPIES = "copies"
"""The key of the journal's list of copies. A backup lacks this list, because these are copies of the lab."""

Kind = Literal["mirror", "export"]
Content = TypeVar("Content")
Result = TypeVar("Result")


class Copy(NamedTuple):
    """A copy of a lab: its kind, its path, and the number of a purge event.

    For a mirror, ``purge`` is the last purge that was applied to it. For an export, it is the last purge before the export.
    """

    kind: Kind
    path: Path
    purge: int


def list_copies(journal: Journal | JournalView) -> list[Copy]:
    """Return all registered copies, in the order in which they were first written."""
    rows = msgspec.json.decode(journal.meta(COPIES) or "[]", type=list[tuple[Kind, str, int]])
    return [Copy(kind, Path(path), purge) for kind, path, purge in rows]


def register_copy(
    journal: Journal | JournalView, kind: Kind, path: Path, *, begun: bool = False
) -> None:
    """Add or update a copy in the journal's list of copies.

    The copy is recorded as up to date. With ``begun``, it is recorded as unfinished. A read-only lab registers nothing.
    """
    if journal.read_only or not isinstance(journal, Journal):
        return
    registered = list_copies(journal)
    path = path.absolute()
    listed = any(copy.path == path for copy in registered)
    entry = Copy(kind, path, 0 if begun else last_purge(journal))
    if not listed:
        _store_copies(journal, [*registered, entry])
    elif not begun and entry not in registered:
        _store_copies(journal, [entry if copy.path == path else copy for copy in registered])


def unregister_copy(journal: Journal | JournalView, path: Path) -> None:
    """Remove a path from the journal's list of copies."""
    left = [copy for copy in list_copies(journal) if copy.path != path.absolute()]
    if (
        isinstance(journal, Journal)
        and not journal.read_only
        and len(left) < len(list_copies(journal))
    ):
        _store_copies(journal, left)


def list_outdated_mirrors(journal: Journal | JournalView) -> list[Copy]:
    """Return the mirrors to which the last purge was not applied."""
    purge = last_purge(journal)
    return (
        [copy for copy in list_copies(journal) if copy.kind == "mirror" and copy.purge < purge]
        if purge
        else []
    )


def write_without_purge(
    store: Store, build: Callable[[], Content], write: Callable[[Content], Result]
) -> Result:
    """Build content from a lab and write it, with no purge between reading and writing.

    Returns the result of ``write``.

    If a purge took place after the content was built, the content is built again. A read-only lab takes no lock, so
    another process may purge during the write.
    """
    while True:
        purge = last_purge(store.journal)
        content = build()
        lock = nullcontext() if store.journal.read_only else store.derived.hold(PURGE_TIMEOUT)
        with lock:
            if last_purge(store.journal) == purge:
                return write(content)


def _store_copies(journal: Journal, registered: list[Copy]) -> None:
    """Store the list of the lab's registered mirrors and exports in the journal."""
    with journal.write() as tx:
        rows = [(copy.kind, str(copy.path), copy.purge) for copy in registered]
        tx.meta(COPIES, msgspec.json.encode(rows).decode())

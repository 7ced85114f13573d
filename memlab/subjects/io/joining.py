"""``lab.io.join``: reading the other lab from a path, an open lab or an export."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlab.errors import InputError
from memlab.kernel.journal import Event, Journal
from memlab.kernel.storage.store import Store
from memlab.kernel.storage.views import ViewerStore
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.gate import check_on
from memlab.kernel.verbs.projections import new_state

if TYPE_CHECKING:
    from memlab.io.formats import Bundle
    from memlab.subjects.io.results import Joined

# A function that reads the events of a lab. It is called only if the plan of a join needs them.
_Events = Callable[[], Iterable[Event]]


def join(core: Core, other: Any, *, dry_run: bool) -> Joined:
    """Join another lab into a lab; see ``LabIO.join``."""
    from memlab.io.formats import compute_lab_id
    from memlab.subjects.io.join import join_bundle

    if isinstance(core.store, ViewerStore):
        raise InputError(
            "A viewer's lab shows only part of the lab. Join the other lab into the lab itself."
        )
    bundle, events = _read_other(core, other)
    if not dry_run:
        with core.reading() as state:
            check_on(core.store, state, bundle.memories["project"].unique().to_list())
    return join_bundle(
        core.store, bundle, own=compute_lab_id(core.store.journal), events=events, dry_run=dry_run
    )


def _read_other(core: Core, other: Any) -> tuple[Bundle, _Events | None]:
    """Return the content of the other lab or export, and a reader of its journal or None without a journal.

    Raises InputError if the other lab is this lab.
    """
    from memlab.io.formats import (
        EXPORTS,
        build_bundle,
        compute_lab_id,
        find_reader,
        read_bundle,
        read_lab,
    )

    store = getattr(getattr(other, "io", None), "store", None)
    if isinstance(store, Store):
        if store.journal is core.store.journal or (
            store.folder is not None and _is_own_folder(core, store.folder)
        ):
            raise InputError("A lab cannot be joined with itself. Name another lab.")
        with store.reading() as state:
            bundle = build_bundle(state, lab=compute_lab_id(store.journal), now=store.clock())
        return replace(
            bundle, source=store.folder.name if store.folder else bundle.lab
        ), store.journal.events
    if not isinstance(other, str | Path):
        raise InputError(
            f"join takes the path of a lab or of an export, or an open lab, not {type(other).__name__}."
        )
    path = Path(str.__str__(other) if isinstance(other, str) else other).expanduser()
    if not path.exists():
        raise InputError(f"There is nothing at {path}. Check the path.")
    reader = find_reader(path)
    format = "" if reader is None else reader.name
    if format == "lab":
        if _is_own_folder(core, path):
            raise InputError("A lab cannot be joined with itself. Name another lab.")
        return read_lab(path, new_state(), now=core.store.clock()), lambda: _read_events(path)
    if format not in EXPORTS:
        raise InputError(
            f"{path} is neither a lab nor an export of one. lab.load reads other files."
        )
    return read_bundle(path, format), None


def _is_own_folder(core: Core, folder: Path) -> bool:
    """Return whether a folder, with links resolved, is the lab's own folder."""
    return core.store.folder is not None and core.store.folder.resolve() == folder.resolve()


def _read_events(folder: Path) -> Iterator[Event]:
    """Yield the events of a closed lab, read through a read-only journal."""
    with Journal.open(folder, read_only=True, create=False) as journal:
        yield from journal.events(upto=journal.head)

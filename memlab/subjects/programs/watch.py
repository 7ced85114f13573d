"""``lab.policies.watch``: every save of a file decides from the next recall on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl

from memlab.errors import InputError, LabError, MemlabError, ReadOnlyLab, did_you_mean
from memlab.kernel.base.clock import from_micros
from memlab.kernel.base.display import Displayed, Markup, code_block
from memlab.kernel.base.printable import printable
from memlab.kernel.base.progress import in_notebook
from memlab.kernel.base.threads import Background, ThreadLock, Worker
from memlab.kernel.language import compile_policy
from memlab.kernel.policies import get_slot, pack_from_sources
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.policies.policies import LabPolicies

_MOST_BYTES = 1_000_000
"""A policy's text has 20,000 characters at most, a pack's 200,000."""

_MAX_CHANGES = 1_000

_EMPTY_READINGS = 25
"""Readings in a row that have to find an empty file before it counts: many programs empty a file, then write it."""


@dataclass(frozen=True)
class Change(Displayed):
    """What a save led to.

    ``outcome`` is "live" (it decides now), "same" (its meaning is that of the save before, or what is live already) or
    "error" (it is broken or gone, and what was live stays so). ``hash`` is that of the pack or policy, where it could
    be read.
    """

    at: datetime
    outcome: Literal["live", "same", "error"]
    file: str
    what: str
    hash: str | None = None
    note: str = ""
    error: MemlabError | None = None

    def __repr__(self) -> str:
        head = f"{self.at:%H:%M:%S} {self.file}"
        if self.error is not None:
            return printable(f"{head}: not installed; what was live remains live\n{self.error}")
        words = {"live": "is live", "same": "has not changed in meaning; nothing was installed"}[
            self.outcome
        ]
        return printable(
            f"{head}: {self.what} [{(self.hash or '')[:12]}] {words}{f'; {self.note}' if self.note else ''}"
        )

    def _display(self) -> object:
        head, _, rest = repr(self).partition("\n")
        colour = "#cf222e" if self.error is not None else "inherit"
        edge = Markup("<div style='border-left:3px solid {};padding-left:.6em'>{}{}</div>")
        return edge.format(colour, head, code_block(rest) if rest else "")


OnChange = Callable[[Change], None]


class _Look(NamedTuple):
    """What a file held at one look: its bytes, or why there are none."""

    content: bytes | None
    trouble: str = ""


class Watch(Background, Displayed):
    """A ``.hy`` file whose every save is used at once; made by ``lab.policies.watch``.

    ``stop`` it, or use it in a ``with``: what is live stays live, and a swap that has begun is finished first. A
    thread reads the file every ``every`` seconds. A change counts when two readings in a row have found it, so that a
    half-written file is let finish, and an empty file when 25 in a row have found it so; then its pack is used, or
    its policy installed, as an event with the reason "saved FILE". A save that is broken changes nothing: the error
    is shown at once, in a notebook below the cell and elsewhere on standard error, and is ``error`` until a save
    mends it. A save whose hash is that of the one before (layout, comments and documentation do not count) changes
    nothing, also if something else has been made live meanwhile.

    ``changes`` lists every save that was seen, the last thousand.
    """

    def __init__(
        self,
        policies: LabPolicies,
        path: str | Path,
        slot: str | None = None,
        *,
        clock: Callable[[], int],
        every: float = 0.2,
        on_change: OnChange | None = None,
    ) -> None:
        if slot is not None:
            get_slot(slot)
        self.path = Path(path).expanduser().absolute()
        self.slot = slot
        self._policies, self._clock = policies, clock
        self._on_change = on_change or _Shown()
        self._changes: list[Change] = []
        self._good: str | None = None
        self._error: MemlabError | None = None
        self._looking = ThreadLock()
        self._settled = self._before = _look(self.path)
        self._readings = 1
        if self._settled.content is None:
            near = [item.name for item in self.path.parent.glob("*.hy")]
            raise InputError(
                f"{path} {self._settled.trouble}. {did_you_mean(self.path.name, near)}"
            )
        self._changes.append(self._applied(self._settled.content, f"watching {self.path.name}"))
        self._every = float(every)
        self._worker = Worker(
            f"watches {self.path.name}", self._step, delay=self._every, after_error=self._every
        )
        self._worker.start()

    # -- what has been seen -----------------------------------------------------------------------------------

    @property
    def error(self) -> MemlabError | None:
        """Why the file as it is now is not live, None if all is well."""
        return self._error

    @property
    def changes(self) -> tuple[Change, ...]:
        """What each save led to, oldest first; the first is the file as it was when watching began."""
        return tuple(self._changes)

    @property
    def frame(self) -> pl.DataFrame:
        """``changes`` as a frame: ``at``, ``outcome``, ``hash``, ``note``, ``error``."""
        rows = self.changes
        return pl.DataFrame(
            {
                "at": [row.at for row in rows],
                "outcome": [row.outcome for row in rows],
                "hash": [row.hash for row in rows],
                "note": [row.note for row in rows],
                "error": [None if row.error is None else str(row.error) for row in rows],
            },
            schema={
                "at": pl.Datetime("us", "UTC"),
                "outcome": pl.String,
                "hash": pl.String,
                "note": pl.String,
                "error": pl.String,
            },
        )

    # -- watching ---------------------------------------------------------------------------------------------

    def look(self) -> Change | None:
        """Read the file now: what the thread does time and again. Returns the change, if this reading settled one."""
        with self._looking:
            if self._worker.stopping:
                return None
            found = _look(self.path)
            if found != self._before:
                self._before, self._readings = found, 1
                return None
            self._readings += 1
            if found == self._settled or (
                found.content == b"" and self._readings < _EMPTY_READINGS
            ):
                return None
            change = self._taken(found)
            if isinstance(change.error, LabError):
                # Not the file's fault, as when another process holds the lab: tried again at every look, reported once.
                if type(change.error) is type(self._error):
                    return None
            else:
                self._settled = found
            self._error = change.error
            self._changes.append(change)
            del self._changes[:-_MAX_CHANGES]
        self._on_change(change)
        return change

    def __repr__(self) -> str:
        state = "watching" if self.active else "stopped"
        swaps = sum(change.outcome == "live" for change in self._changes[1:])
        return printable(f"<Watch {self.path.name}: {state}, {swaps} swaps>\n{self._changes[-1]!r}")

    def _display(self) -> object:
        head, _, _ = repr(self).partition("\n")
        return head, self._changes[-1]

    # -- within -----------------------------------------------------------------------------------------------

    def _step(self) -> float:
        self.look()
        return self._every

    def _taken(self, found: _Look) -> Change:
        try:
            if found.content is None:
                raise InputError(f"{self.path.name} {found.trouble}.")
            return self._applied(found.content, f"saved {self.path.name}")
        except MemlabError as error:
            return Change(
                from_micros(self._clock()),
                "error",
                self.path.name,
                self.slot or "pack",
                error=error,
            )

    def _applied(self, content: bytes, reason: str) -> Change:
        """Make what the file holds live, unless it means what it meant or what is live already."""
        text = _decoded(content, self.path.name)
        pack = None
        if self.slot is None:
            pack = pack_from_sources((text,), file=self.path.name)
            what, hash = f"pack {pack.name}", pack.hash
        else:
            signature = get_slot(self.slot).signature
            what = self.slot
            hash = compile_policy(text, signature, name=self.slot, file=self.path.name).hash
        held: list[str] = []
        with self._policies.reading() as versions:
            # The mutex is held: between this comparison and the swap no recall and no other swap of this process comes.
            if pack is not None:
                same = versions.with_pins(pack).hash == versions.pack.hash
                held = [
                    slot
                    for slot, pin in versions.pins.items()
                    if pack.policies[slot].hash != pin.policy.hash
                ]
            else:
                same = versions.pack.policies[what].hash == hash
            swap = not same and hash != self._good
            if swap and pack is not None:
                self._policies.use(pack, reason=reason)
            elif swap:
                self._policies.install(what, text, reason=reason)
        self._good = hash
        note = f"pinned, and so not from this file: {', '.join(held)}" if held else ""
        now = from_micros(self._clock())
        return Change(now, "live" if swap else "same", self.path.name, what, hash, note)


class Watches:
    """The watches of one lab: one for each file and slot."""

    def __init__(self, core: Core) -> None:
        self._store, self._policies = core.store, LabPolicies(core)
        self._watches: dict[tuple[str, str | None], Watch] = {}

    def start(
        self, path: str | Path, slot: str | None, *, every: float, on_change: OnChange | None
    ) -> Watch:
        """Watch a file; a watch of the same file for the same slot ends."""
        if self._store.journal.read_only:
            raise ReadOnlyLab(
                f"{self._store.where} was opened with read_only=True: a save could not be used."
            )
        key = str(Path(path).expanduser().absolute()), slot
        if key in self._watches:
            self._watches.pop(key).stop()
        watch = Watch(
            self._policies, path, slot, clock=self._store.clock, every=every, on_change=on_change
        )
        self._watches[key] = watch
        return watch

    def stop(self) -> None:
        """End every watch, and wait for swaps that have begun."""
        for watch in self._watches.values():
            watch.stop()

    def stop_soon(self) -> None:
        """End every watch soon, without waiting: for a finalizer, which may run anywhere."""
        for watch in self._watches.values():
            watch.stop_soon()


class _Shown:
    """Shows changes: in a notebook one place below the cell, which the next change replaces; else errors on stderr."""

    def __init__(self) -> None:
        self._place: Any = None

    def __call__(self, change: Change) -> None:
        if not in_notebook():
            if change.error is not None:
                print(change, file=sys.stderr)
            return
        from IPython.display import display

        if self._place is None:
            self._place = display(change, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._place.update(change)


def _look(path: Path) -> _Look:
    """The file as it is. Reading a pack costs 14 microseconds, and unlike times and sizes, its bytes cannot deceive."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        return _Look(None, "is not there")
    except OSError as error:
        return _Look(None, f"cannot be read: {error.strerror}")
    if len(content) > _MOST_BYTES:
        return _Look(None, f"is larger than {_MOST_BYTES:,} bytes")
    return _Look(content)


def _decoded(content: bytes, file: str) -> str:
    try:
        # As text files are read: with one kind of line end, so that the same policy has the same hash everywhere.
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{file} is not UTF-8 text: {error.reason} at byte {error.start}."
        ) from None

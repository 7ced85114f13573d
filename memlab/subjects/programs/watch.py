"""``lab.policies.watch``: each saved version of a policy file takes effect at the next recall."""

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
from memlab.kernel.base.disk import open_regular
from memlab.kernel.base.display import Displayed, Markup, code_block
from memlab.kernel.base.printable import printable
from memlab.kernel.base.progress import in_notebook
from memlab.kernel.base.threads import Background, ThreadLock, Worker
from memlab.kernel.language import compile_policy
from memlab.kernel.policies import get_slot, inherited_helpers, pack_from_sources
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.policies.policies import LabPolicies

_MOST_BYTES = 1_000_000
"""The maximum size of a file in bytes. A policy has at most 20,000 characters, and a pack 200,000."""

# A watch may run for weeks, so only its last thousand changes are stored.
_MAX_CHANGES = 1_000

_EMPTY_READINGS = 25
"""The number of equal readings after which an empty file counts as saved, because many programs empty a file before
writing it."""


@dataclass(frozen=True)
class Change(Displayed):
    """The effect of one save of a watched file.

    Attributes
    ----------
    at
        The time of the reading, in UTC.
    outcome
        "live" if the content of the file is now active. "same" if it is equivalent to the last save or to the active
        version. "error" if it is invalid or missing, so that the active version stays.
    file
        The name of the file.
    what
        The pack or the slot.
    hash
        The hash of the pack or policy, or None for an unreadable file.
    note
        A note about pinned slots that the file does not change, or "".
    error
        The error if the outcome is "error", otherwise None.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "mine.hy"
    >>> _ = path.write_text('(pack mine "Mine." :inherits memlab) (setting limit 5)')
    >>> with memlab.open().policies.watch(path) as watch:
    ...     watch.changes[0].outcome
    'live'
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
            return printable(f"{head}: not installed; the active version stays\n{self.error}")
        words = {"live": "is active", "same": "means the same as before; nothing was installed"}[
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


class _Reading(NamedTuple):
    """The content of a file at one reading, or None with the reason why it cannot be read."""

    content: bytes | None
    trouble: str = ""


class Watch(Background, Displayed):
    """A ``.hy`` file whose content is installed whenever it is saved.

    ``lab.policies.watch`` creates it.

    A thread reads the file every ``every`` seconds. A change counts after two equal readings, so that a half-written
    file is not used. An empty file counts after 25 equal readings. The pack or policy in the file is then installed, as
    an event with the reason "saved FILE". To end the watch, call ``stop`` or use it in a ``with`` statement. The active
    version then stays.

    An invalid save changes nothing. Its error is displayed below the cell of a notebook, or otherwise on standard
    error, and is stored in ``error`` until a valid save. A save with the same hash as the last save changes nothing,
    even if another version has become active meanwhile. Layout, comments and documentation do not change the hash.

    Parameters
    ----------
    policies
        The policies of the lab.
    path
        The file.
    slot
        The slot of the policy in the file, or None for a file with a pack.
    clock
        A function that returns the time in microseconds.
    every
        Seconds between two readings.
    on_change
        A function that is called with each change, instead of the display.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "mine.hy"
    >>> _ = path.write_text('(pack mine "Mine." :inherits memlab) (setting limit 5)')
    >>> lab = memlab.open()
    >>> with lab.policies.watch(path) as watch:
    ...     lab.policies.pack.name, watch.error
    ('mine', None)
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
        self._on_change = on_change or _ChangeDisplay()
        self._changes: list[Change] = []
        self._good: str | None = None
        self._error: MemlabError | None = None
        # The thread and a call of ``look`` must not read at the same time, because a change is compared with the
        # previous reading.
        self._reading = ThreadLock()
        self._settled = self._before = _read_file(self.path)
        self._readings = 1
        if self._settled.content is None:
            near = [item.name for item in self.path.parent.glob("*.hy")]
            raise InputError(
                f"{path} {self._settled.trouble}. {did_you_mean(self.path.name, near)}"
            )
        self._changes.append(self._apply(self._settled.content, f"watching {self.path.name}"))
        self._every = float(every)
        self._worker = Worker(
            f"watches {self.path.name}", self._step, delay=self._every, after_error=self._every
        )
        self._worker.start()

    @property
    def error(self) -> MemlabError | None:
        """The error in the file's current content, or None if the content is active."""
        return self._error

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes that the initial content and each save caused, oldest first."""
        return tuple(self._changes)

    @property
    def frame(self) -> pl.DataFrame:
        """A frame with one row per change.

        The columns are ``at``, ``outcome``, ``hash``, ``note`` and ``error``.
        """
        rows = [
            (row.at, row.outcome, row.hash, row.note, row.error and str(row.error))
            for row in self.changes
        ]
        texts = dict.fromkeys(("outcome", "hash", "note", "error"), pl.String)
        schema: dict[str, Any] = {"at": pl.Datetime("us", "UTC"), **texts}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def look(self) -> Change | None:
        """Read the file now, without waiting for the watching thread.

        Returns
        -------
        Change or None
            The change if this reading completed a change, otherwise None.
        """
        with self._reading:
            if self._worker.stopping:
                return None
            reading = _read_file(self.path)
            if reading != self._before:
                self._before, self._readings = reading, 1
                return None
            self._readings += 1
            if reading == self._settled or (
                reading.content == b"" and self._readings < _EMPTY_READINGS
            ):
                return None
            change = self._apply_reading(reading)
            if isinstance(change.error, LabError):
                # The lab refused the installation, for example because another process is writing. The installation is
                # tried again at every reading, and the error is reported once.
                if type(change.error) is type(self._error):
                    return None
            else:
                self._settled = reading
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

    def _step(self) -> float:
        """Read the file once, and return the seconds until the next reading."""
        self.look()
        return self._every

    def _apply_reading(self, reading: _Reading) -> Change:
        """Install the content that was read from the file, and return any error as a change."""
        try:
            if reading.content is None:
                raise InputError(f"{self.path.name} {reading.trouble}. Save a valid file.")
            return self._apply(reading.content, f"saved {self.path.name}")
        except MemlabError as error:
            return Change(
                from_micros(self._clock()),
                "error",
                self.path.name,
                self.slot or "pack",
                error=error,
            )

    def _apply(self, content: bytes, reason: str) -> Change:
        """Install new content, unless it equals the last or the active version."""
        text = _decode(content, self.path.name)
        pack = None
        if self.slot is None:
            pack = pack_from_sources((text,), file=self.path.name)
            what, hash = f"pack {pack.name}", pack.hash
        else:
            what, file = self.slot, self.path.name
            helpers = inherited_helpers(what, text, (), lambda: self._policies.pack, file=file)
            signature = get_slot(what).signature
            hash = compile_policy(text, signature, name=what, helpers=helpers, file=file).hash
        pinned: list[str] = []
        with self._policies.reading() as versions:
            # The block holds the lab's mutex, so no other recall or installation of this process comes in between.
            if pack is not None:
                same = versions.with_pins(pack).hash == versions.pack.hash
                pinned = [
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
        note = f"pinned, so not changed by this file: {', '.join(pinned)}" if pinned else ""
        now = from_micros(self._clock())
        return Change(now, "live" if swap else "same", self.path.name, what, hash, note)


class Watches:
    """The watches of one lab: at most one for each file and slot."""

    def __init__(self, core: Core) -> None:
        self._store, self._policies = core.store, LabPolicies(core)
        self._watches: dict[tuple[str, str | None], Watch] = {}

    def start(
        self, path: str | Path, slot: str | None, *, every: float, on_change: OnChange | None
    ) -> Watch:
        """Watch a file, and end any earlier watch of the same file and slot."""
        if self._store.journal.read_only:
            raise ReadOnlyLab(
                f"{self._store.where} was opened with read_only=True, so a saved policy file could not be installed. "
                "Open the lab for writing."
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
        """End all watches, and wait for installations that have started."""
        for watch in self._watches.values():
            watch.stop()

    def stop_soon(self) -> None:
        """Signal all watches to stop, and return without waiting.

        Finalizers call this method, because they may run in any thread and must not wait.
        """
        for watch in self._watches.values():
            watch.stop_soon()


class _ChangeDisplay:
    """A function that displays changes: the latest one below a notebook's cell, or errors on standard error."""

    def __init__(self) -> None:
        self._handle: Any = None

    def __call__(self, change: Change) -> None:
        if not in_notebook():
            if change.error is not None:
                print(change, file=sys.stderr)
            return
        from IPython.display import display

        if self._handle is None:
            self._handle = display(change, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(change)


def _read_file(path: Path) -> _Reading:
    """Return the content of a watched file, or the reason that it cannot be read.

    The whole content is read, which takes 14 microseconds for a pack. Comparing only times and sizes could miss a change.
    """
    try:
        with open_regular(path) as file:
            content = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        return _Reading(None, "is not there")
    except OSError as error:
        return _Reading(None, f"cannot be read: {error.strerror}")
    except InputError:
        return _Reading(None, "is no regular file")
    if len(content) > _MOST_BYTES:
        return _Reading(None, f"is larger than {_MOST_BYTES:,} bytes")
    return _Reading(content)


def _decode(content: bytes, file: str) -> str:
    """Return the content of a file as text with line feeds at line ends; raise InputError if it is not UTF-8."""
    try:
        # All line ends become line feeds, so that a policy has the same hash on every system.
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{file} is not UTF-8 text: {error.reason} at byte {error.start}. Save it as UTF-8."
        ) from None

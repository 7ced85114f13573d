"""Sealed slates: immutable Parquet segments beside the journal, which can be deleted at any time.

A segment is a folder ``slates-AFTER-UPTO`` with the three tables of every recall ``AFTER < decision <= UPTO`` and a
manifest with sizes and checksums, the identity of the journal and its chain value at ``UPTO``. It is written beside,
synced and renamed, so it is there whole or not at all. The segments of a log follow one another; the first one that is
missing, damaged or of another history ends it, and what comes after is read from the journal until it is sealed anew.
"""

from __future__ import annotations

import os
import shutil
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

import msgspec
import polars as pl

from memlab.errors import DamagedLab, DamageWarning, InputError
from memlab.kernel.base.disk import read_sealed, sync, write_sealed, writing
from memlab.kernel.slates._columns import Logged, tables_of
from memlab.kernel.slates._slate import FORMAT, Slate
from memlab.kernel.version import __version__

__all__ = ["SlateLog"]

_PREFIX, _DRAFT, _MANIFEST = "slates-", ".draft-", "manifest.json"
_TABLES = Logged._fields

# 76,000 candidates with 33 features: 17 MB and 24 ms to read with lz4, 16 MB and 23 ms with zstd, 17 MB and 9 ms with
# snappy. What compresses is what Parquet's dictionaries have already found.
_COMPRESSION: Literal["snappy"] = "snappy"


class _Manifest(msgspec.Struct, frozen=True):
    format: int
    after: int
    upto: int
    decisions: int
    lab: str  # the identity of the journal
    chain: str  # and its chain value at ``upto``
    sums: dict[str, tuple[int, int]]  # file -> size, CRC


@dataclass(frozen=True)
class _Segment:
    path: Path
    manifest: _Manifest

    def table(self, name: str) -> pl.LazyFrame:
        return pl.scan_parquet(self.path / f"{name}.parquet", glob=False)


class SlateLog:
    """The sealed part of a lab's slates, in ``folder``.

    ``sealed`` is the last decision that it holds, 0 for none: the slates of later decisions are the caller's.
    ``faults`` says what was found damaged; each is also a warning, and the log ends before it.

    Sealing is for one process at a time, as writing to a lab is; anyone may read meanwhile.

    >>> log = SlateLog(lab.io.path / "slates")                                                # doctest: +SKIP
    >>> log.append([decode(blob, decision=seq) for seq, blob in journal.slates(log.sealed)])   # doctest: +SKIP
    >>> decisions, candidates, exposures = log.scan()                                      # doctest: +SKIP
    """

    def __init__(
        self, folder: Path | str, *, lab: str = "", chain: Callable[[int], bytes | None] | None = None
    ) -> None:
        """``lab`` and ``chain`` are the identity of the journal and what it says of an event."""
        self.folder, self._lab = Path(folder), lab
        self._chain = _nothing if chain is None else chain
        self._segments: list[_Segment] = []
        self._unsound: list[Path] = []
        self.faults: tuple[str, ...] = ()
        self.refresh()

    def refresh(self) -> None:
        """See what other processes have sealed or thrown away; only segments that are new are read."""
        known = {segment.path: segment.manifest for segment in self._segments}
        before, self.faults = self.faults, ()
        self._segments, self._unsound = [], []
        for path in sorted(self.folder.glob(f"{_PREFIX}*")):
            if self.faults:
                self._unsound.append(path)
                continue
            try:
                manifest = _manifest(path)
                _check_place(manifest, path, self.sealed)
                if (manifest.lab, manifest.chain) != (self._lab, (self._chain(manifest.upto) or b"").hex()):
                    raise _Fault("is of another history than the journal")
                if manifest != known.get(path):
                    _check_files(manifest, path)
            except _Fault as fault:
                self.faults = (f"The segment {path.name} {fault}; its slates are read from the journal.",)
                self._unsound.append(path)
            else:
                self._segments.append(_Segment(path, manifest))
        if self.faults and self.faults != before and _EARLIER not in self.faults[0]:
            warnings.warn(self.faults[0], DamageWarning, stacklevel=3)

    @property
    def sealed(self) -> int:
        """The last decision of the last sound segment; 0 if there is none."""
        return self._segments[-1].manifest.upto if self._segments else 0

    def __len__(self) -> int:
        """How many decisions it holds."""
        return sum(segment.manifest.decisions for segment in self._segments)

    def append(self, slates: Sequence[Slate]) -> None:
        """Seal these slates, in the order of their decisions; what is sealed is passed over, what was damaged goes.

        Raises InputError for slates out of order, LabError where the disk refuses.
        """
        for one, following in pairwise(slates):
            if following.decision <= one.decision:
                raise InputError(f"Slates are sealed by decision: {following.decision} comes after {one.decision}.")
        self.refresh()
        after = self.sealed
        slates = [slate for slate in slates if slate.decision > after]
        if not slates:
            return
        upto = slates[-1].decision
        final = self.folder / f"{_PREFIX}{after:012d}-{upto:012d}"
        draft = self.folder / f"{_DRAFT}{os.getpid()}-{final.name}"
        with writing(f"{self.folder.name}/{final.name}", pl.exceptions.PolarsError):
            self.folder.mkdir(exist_ok=True)  # no parents: a lab that is gone is not made again
            self.drop_unsound()
            for path in self.folder.glob(f"{_DRAFT}*"):
                shutil.rmtree(path, ignore_errors=True)
            draft.mkdir()
            try:
                manifest = _write(draft, slates, after, upto, self._lab, (self._chain(upto) or b"").hex())
                draft.rename(final)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
            sync(self.folder)
        self._segments.append(_Segment(final, manifest))

    def scan(self) -> tuple[pl.LazyFrame, pl.LazyFrame, pl.LazyFrame]:
        """The decisions, candidates and exposures of all sound segments, in the order of decisions.

        A feature that a segment does not have is null in its rows.
        """
        decisions, candidates, exposures = (self._scan(name) for name in _TABLES)
        return decisions, candidates, exposures

    def _scan(self, name: str) -> pl.LazyFrame:
        if not self._segments:
            return getattr(tables_of([]), name).lazy()  # type: ignore[no-any-return]
        return pl.concat([segment.table(name) for segment in self._segments], how="diagonal_relaxed")

    def drop_unsound(self) -> None:
        """Remove the segments that are not read: the journal has what they held."""
        for path in self._unsound:
            shutil.rmtree(path, ignore_errors=True)
        self._unsound, self.faults = [], ()

    def __repr__(self) -> str:
        return f"<SlateLog {self.folder.name}: {len(self):,} decisions in {len(self._segments)} segments>"


def _nothing(seq: int) -> bytes | None:
    """The chain value of a log that belongs to no journal."""


_EARLIER = "was sealed by an earlier version"


class _Fault(Exception):
    """Why a segment is not read."""


def _write(draft: Path, slates: Sequence[Slate], after: int, upto: int, lab: str, chain: str) -> _Manifest:
    sums = {}
    for name, table in zip(_TABLES, tables_of(slates), strict=True):
        path = draft / f"{name}.parquet"
        table.write_parquet(path, compression=_COMPRESSION)
        data = path.read_bytes()
        sums[path.name] = len(data), zlib.crc32(data)
        sync(path)
    manifest = _Manifest(FORMAT, after, upto, len(slates), lab, chain, sums)
    write_sealed(draft / _MANIFEST, msgspec.json.encode(manifest))
    sync(draft)
    return manifest


def _manifest(path: Path) -> _Manifest:
    try:
        if (path / _MANIFEST).read_bytes()[:1] == b"{":
            raise _Fault(_EARLIER)
        data = read_sealed(path / _MANIFEST)
        version = msgspec.json.decode(data, type=_Version).format
        if version != FORMAT:
            raise _Fault(f"has format {version}, and memlab {__version__} reads format {FORMAT}")
        return msgspec.json.decode(data, type=_Manifest)
    except OSError as error:
        raise _Fault(f"cannot be read ({error.strerror})") from None
    except DamagedLab as error:
        raise _Fault(f"is not believed ({str(error).rstrip('.')})") from None
    except msgspec.MsgspecError:
        raise _Fault(f"is damaged in {_MANIFEST}") from None


def _check_files(manifest: _Manifest, path: Path) -> None:
    """Every byte is read, as Parquet by itself does not notice a flipped bit: 15 ms for 76,000 candidates."""
    for name in _TABLES:
        file = f"{name}.parquet"
        try:
            data = (path / file).read_bytes()
        except OSError as error:
            raise _Fault(f"cannot be read ({file}: {error.strerror})") from None
        if manifest.sums.get(file) != (len(data), zlib.crc32(data)):
            raise _Fault(f"is damaged in {file}")


class _Version(msgspec.Struct):
    format: int


def _check_place(manifest: _Manifest, path: Path, sealed: int) -> None:
    if path.name != f"{_PREFIX}{manifest.after:012d}-{manifest.upto:012d}":
        raise _Fault("does not hold what its name says")
    if manifest.after != sealed:
        raise _Fault(f"begins after decision {manifest.after}, and the one before it ends at {sealed}")

"""Snapshots: folded states written to disk.

With a snapshot, a lab opens without reading its whole journal. A snapshot is a folder named by the last event that it
includes. The folder is written under a draft name, synced and renamed, so a snapshot is either complete or absent. It
can be deleted at any time. Its manifest has the id of the lab, the journal's chain value at the last event, and a
checksum of each file. A snapshot of another history, or with a changed file, is not used.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import polars as pl

from memlab.errors import DamagedLab
from memlab.kernel.base.disk import checksum_of, read_sealed, sync, write_sealed, writing
from memlab.kernel.graph import Edges, Nodes
from memlab.kernel.index import Vectors, Words
from memlab.kernel.journal import Vault, unlock
from memlab.kernel.state.columns import Names, RecentTimes, Texts
from memlab.kernel.state.projections import Projection
from memlab.kernel.state.state import LISTED, NAMED, NOTED, NUMERIC, State, first_name
from memlab.kernel.version import __version__

_FORMAT = 11
"""The format of a snapshot. Any change to the files increases it, and older snapshots are rebuilt."""

_PREFIX, _DRAFT = (
    "snapshot-",
    ".draft-",
)  # the first characters of complete and of unfinished folders

PolicyEvent = tuple[int, int, str, dict[str, Any]]
"""An event that changed the active policies: ``seq``, ``at``, ``kind``, ``body``."""


class OldSnapshot(DamagedLab):
    """A snapshot in a format that this version of memlab does not read."""

    @classmethod
    def of_format(cls, path: Path, number: object, written_by: object) -> OldSnapshot:
        """Return the error for a snapshot whose format is not supported.

        ``written_by`` is the version of memlab that wrote the snapshot, or None if unknown.
        """
        by = "" if written_by is None else f", written by memlab {written_by}"
        later = isinstance(number, int) and number > _FORMAT
        return cls(
            f"The snapshot {path.name} has format {number}{by}, and memlab {__version__} reads format {_FORMAT}: it is "
            f"rebuilt from the journal, which takes longer.{' Upgrade memlab to use it.' if later else ''}"
        )


@dataclass(frozen=True)
class Snapshot:
    """A stored state with the identity of its journal.

    ``lab`` and ``chain`` are the id of the lab and the journal's chain value at the snapshot. ``decided`` has the
    policy events up to the snapshot.
    """

    state: State
    lab: str
    chain: bytes
    decided: tuple[PolicyEvent, ...]


def save_snapshot(
    state: State,
    folder: Path,
    *,
    lab: str = "",
    chain: bytes = b"",
    decided: Sequence[PolicyEvent] = (),
) -> Path:
    """Write a snapshot of ``state`` below ``folder``, and remove all others.

    Unfinished snapshots are removed too. ``lab`` and ``chain`` are the identity of the journal and its chain value at
    ``state.seq``. An intact snapshot of the same event and chain is kept. Raises LabError if the files cannot be
    written; earlier snapshots then stay.
    """
    final = folder / f"{_PREFIX}{state.seq:012d}"
    if final.exists() and _matches_journal(final, lab, chain, state.declared):
        return final
    draft = folder / f"{_DRAFT}{os.getpid()}-{state.seq:012d}"
    vault = unlock(folder.parent)
    with writing(f"The snapshot {final.name}", pl.exceptions.PolarsError, OverflowError):
        folder.mkdir(exist_ok=True)
        for left in folder.glob(f"{_DRAFT}*"):
            shutil.rmtree(left, ignore_errors=True)
        draft.mkdir()
        try:
            _write(state, draft, _Files(draft, final.name, vault), lab, chain, decided)
            remove_snapshot(final)
            draft.rename(final)
            sync(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    for other in folder.glob(f"{_PREFIX}*"):
        if other.name != final.name:
            remove_snapshot(other)
    return final


def remove_snapshot(path: Path) -> None:
    """Remove the snapshot at ``path`` if it exists.

    The folder is renamed first, so a process that is killed leaves a draft and never half a snapshot.
    """
    left = path.with_name(f"{_DRAFT}{os.getpid()}-{path.name}")
    with suppress(OSError):
        path.rename(left)
    shutil.rmtree(left, ignore_errors=True)


class _Files:
    """The files of one snapshot, encrypted in an encrypted lab."""

    def __init__(self, path: Path, name: str, vault: Vault | None) -> None:
        self._path, self._name, self._vault = path, name, vault

    def write(self, name: str, save: Callable[[Path | BinaryIO], object]) -> None:
        """Write a file whose content the function ``save`` writes."""
        if self._vault is None:
            save(self._path / name)
            return
        # Plain bytes are only in memory. The snapshot's name is part of the name, so files of two snapshots do not mix.
        save(content := BytesIO())
        self.write_bytes(name, content.getvalue())

    def write_bytes(self, name: str, content: bytes) -> None:
        """Write a file with the given content."""
        (self._path / name).write_bytes(self.encrypt(name, content))

    def encrypt(self, name: str, content: bytes) -> bytes:
        """Return the bytes to store for a file's content, encrypted if the lab has a key."""
        vault = self._vault
        return content if vault is None else vault.encrypt(f"{self._name}/{name}", content)

    def open(self, name: str) -> Path | BinaryIO:
        """Return the path of a file to read or map, or its decrypted content."""
        return self._path / name if self._vault is None else BytesIO(self.read(name))

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        return self.decrypt(name, (self._path / name).read_bytes())

    def decrypt(self, name: str, data: bytes) -> bytes:
        """Return the content of a file from its stored bytes, decrypted if the lab has a key."""
        return data if self._vault is None else self._vault.decrypt(f"{self._name}/{name}", data)


def _write(
    state: State,
    draft: Path,
    files: _Files,
    lab: str,
    chain: bytes,
    decided: Sequence[PolicyEvent],
) -> None:
    """Write and sync the files and manifest of a snapshot in the folder ``draft``."""
    # Columns without values are left out. Most of the forty columns are empty, and reading them would double the time.
    columns = [
        state.texts.series("text"),
        state.refs.series("ref"),
        pl.Series("place", state.contexts.codes),
        pl.Series("asks", state.asks.values),
        pl.Series("uses", state.uses.values),
        *(
            pl.Series(name, state.numbers[name].values)
            for name in NUMERIC
            if state.numbers[name].has_values
        ),
        *(
            pl.Series(name, state.names[name].codes)
            for name in NAMED
            if state.names[name].has_values
        ),
        *(state.lists[name].series(name) for name in LISTED if state.lists[name].has_values),
        *(state.notes[name].series(name) for name in NOTED if state.notes[name].has_values),
    ]
    memories = pl.DataFrame(columns)
    files.write("memories.parquet", lambda to: memories.write_parquet(to, compression="lz4"))
    files.write("edges.bin", state.edges.save)
    files.write("vectors.bin", state.vectors.save)
    files.write("words.npz", state.words.save)
    for language, words in state.other_words.items():
        files.write(f"words-{language}.npz", words.save)
    registers = {name: projection.dump() for name, projection in state.sound_projections.items()}
    files.write_bytes("registers.msgpack", msgspec.msgpack.encode(registers))
    files.write_bytes("decided.msgpack", msgspec.msgpack.encode(decided))
    written = sorted(draft.iterdir())
    manifest = {
        "format": _FORMAT,
        "memlab": __version__,
        "lab": lab,
        "chain": chain.hex(),
        "seq": state.seq,
        "count": len(state),
        "fingerprint": state.fingerprint,
        "embedder": state.embedder_name,
        "unembedded": state.unembedded,
        "scale": state.scale,
        "languages": list(state.other_words),
        "extensions": sorted(state.extensions),
        "contexts": state.contexts.vocabulary,
        "names": {name: state.names[name].vocabulary for name in NAMED},
        "nodes": state.nodes.vocabularies(),
        "relations": state.edges.relations,
        "sums": {item.name: [item.stat().st_size, checksum_of(item)] for item in written},
    }
    encoded = msgspec.json.encode(manifest)
    write_sealed(draft / "manifest.json", files.encrypt("manifest.json", encoded))
    for item in written:
        sync(item)
    sync(draft)


def _matches_journal(
    path: Path, lab: str, chain: bytes, projections: Sequence[type[Projection]]
) -> bool:
    """Return whether a snapshot is intact and matches this lab and journal hash."""
    try:
        snapshot = load_snapshot(path, projections)
    except DamagedLab:
        return False
    return (snapshot.lab, snapshot.chain) == (lab, chain)


def latest_snapshot(folder: Path) -> Path | None:
    """Return the newest snapshot below ``folder``, or None without a snapshot."""
    snapshots = sorted(folder.glob(f"{_PREFIX}*"))
    return snapshots[-1] if snapshots else None


def load_snapshot(path: Path, projections: Sequence[type[Projection]]) -> Snapshot:
    """Read the snapshot at ``path``; raise DamagedLab if it cannot be used."""
    try:
        written = (path / "manifest.json").read_bytes()
        if written[:1] == b"{":  # before format 5, a manifest had no checksum
            raise OldSnapshot.of_format(path, msgspec.json.decode(written)["format"], None)
        files = _Files(path, path.name, unlock(path.parents[1]))
        manifest: dict[str, Any] = msgspec.json.decode(
            files.decrypt("manifest.json", read_sealed(path / "manifest.json"))
        )
        if manifest["format"] != _FORMAT:
            raise OldSnapshot.of_format(path, manifest["format"], manifest.get("memlab"))
        _check_files(path, manifest["sums"])
        memories = pl.read_parquet(files.open("memories.parquet"))
        state = State(projections)
        state.edges = Edges.load(files.open("edges.bin"))
        state.edges.relations = list(manifest["relations"])
        state.nodes = Nodes(manifest["nodes"], memories=len(memories))
        state.vectors = Vectors.load(files.open("vectors.bin"))
        state.words = Words.load(files.open("words.npz"))
        state.other_words = {
            name: Words.load(files.open(f"words-{name}.npz")) for name in manifest["languages"]
        }
        registers = msgspec.msgpack.decode(files.read("registers.msgpack"))
        if not registers.keys() >= state.projections.keys():
            raise OldSnapshot(
                f"The snapshot {path.name} lacks the data of an extension that is registered now; "
                "it is rebuilt from the journal."
            )
        for name, projection in state.projections.items():
            projection.load(registers[name])
        decided = msgspec.msgpack.decode(
            files.read("decided.msgpack"), type=tuple[PolicyEvent, ...]
        )
    except OldSnapshot:
        raise
    except (
        OSError,
        msgspec.MsgspecError,
        KeyError,
        ValueError,
        pl.exceptions.PolarsError,
        DamagedLab,
    ) as error:
        raise DamagedLab(f"The snapshot {path.name} cannot be used: {error}") from None
    state.seq, state.fingerprint = manifest["seq"], manifest["fingerprint"]
    state.embedder_name, state.scale = manifest["embedder"], manifest.get("scale")
    state.unembedded = manifest.get("unembedded", 0)
    state.extensions = set(manifest.get("extensions", ()))
    _load_memories(state, memories, manifest)
    state.generation = 1
    return Snapshot(state, manifest["lab"], bytes.fromhex(manifest["chain"]), decided)


def _load_memories(state: State, memories: pl.DataFrame, manifest: Mapping[str, Any]) -> None:
    """Load the fields of all memories; fields that the snapshot lacks get their defaults."""
    state.texts, state.refs = Texts(memories["text"]), Texts(memories["ref"])
    state.uses = RecentTimes(state.uses.values.shape[1], memories["uses"].to_numpy())
    count, stored = len(memories), set(memories.columns)
    for name, numbers in state.numbers.items():
        if name in stored:
            numbers.append(memories[name].to_numpy())
        else:
            numbers.extend(numbers.default, count)
    for name in NAMED:
        state.names[name] = Names(manifest["names"][name], default=first_name(name))
        if name in stored:
            state.names[name].append_codes(memories[name].to_numpy())
        else:
            state.names[name].extend(first_name(name), count)
    for name in LISTED:
        if name in stored:
            state.lists[name].append_series(memories[name])
        else:
            state.lists[name].extend(None, count)
    for name in NOTED:
        state.notes[name].append(memories[name].to_list() if name in stored else [None] * count)
    state.contexts = type(state.contexts)(manifest["contexts"])
    state.contexts.append_codes(memories["place"].to_numpy())
    state.rows = len(state.contexts)
    state.asks.append(memories["asks"].to_numpy())


def _check_files(path: Path, sums: dict[str, list[int]]) -> None:
    """Raise DamagedLab unless the files match the sizes and checksums in ``sums``.

    ``sums`` is the entry of the manifest with the size and checksum of each file.
    """
    for name, (size, sum) in sums.items():
        if (path / name).stat().st_size != size:
            raise DamagedLab(f"{name} is truncated")
        if checksum_of(path / name) != sum:
            raise DamagedLab(f"the checksum of {name} does not match")

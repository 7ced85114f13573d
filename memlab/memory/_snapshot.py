"""Snapshots: a fold written down as Parquet and arrays, so that a lab opens without reading its whole journal.

A snapshot is a folder named by the event that it includes. It is written beside, synced and renamed, so it is
there whole or not at all; it can be thrown away at any time.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from memlab.disk import sync
from memlab.errors import DamagedLab
from memlab.graph import Edges, Nodes
from memlab.index import Vectors, Words
from memlab.memory._columns import Latest, Names, Texts
from memlab.memory._state import LISTED, NAMED, NOTED, NUMERIC, State, first_name

__all__ = ["latest_snapshot", "load_snapshot", "save_snapshot"]

_FORMAT = 4
_PREFIX = "snapshot-"


def save_snapshot(state: State, folder: Path) -> Path:
    """Write ``state`` below ``folder`` and remove all other snapshots.

    One of the same event is kept if it can be read. One of a later event is of another journal: ``state`` has seen all.
    """
    folder.mkdir(exist_ok=True)
    final = folder / f"{_PREFIX}{state.seq:012d}"
    if final.exists() and _readable(final):
        return final
    draft = folder / f".draft-{os.getpid()}-{state.seq:012d}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    columns = [
        state.texts.series("text"),
        state.refs.series("ref"),
        pl.Series("place", state.contexts.codes),
        pl.Series("asks", state.asks.values),
        pl.Series("uses", state.uses.values),
        *(pl.Series(name, state.numbers[name].values) for name in NUMERIC if state.numbers[name].held),
        *(pl.Series(name, state.names[name].codes) for name in NAMED if state.names[name].held),
        *(state.lists[name].series(name) for name in LISTED if state.lists[name].held),
        *(state.notes[name].series(name) for name in NOTED if state.notes[name].held),
    ]
    pl.DataFrame(columns).write_parquet(draft / "memories.parquet", compression="lz4")
    state.edges.save(draft / "edges.bin")
    state.vectors.save(draft / "vectors.bin")
    state.words.save(draft / "words.npz")
    for language, words in state.other_words.items():
        words.save(draft / f"words-{language}.npz")
    (draft / "registers.msgpack").write_bytes(
        msgspec.msgpack.encode({name: register.dump() for name, register in state.registers.items()})
    )
    manifest = {
        "format": _FORMAT,
        "seq": state.seq,
        "count": len(state),
        "fingerprint": state.fingerprint,
        "embedder": state.embedder_name,
        "languages": list(state.other_words),
        "contexts": state.contexts.vocabulary,
        "names": {name: state.names[name].vocabulary for name in NAMED},
        "nodes": state.nodes.vocabularies(),
        "sizes": {item.name: item.stat().st_size for item in sorted(draft.iterdir())},
    }
    (draft / "manifest.json").write_bytes(msgspec.json.encode(manifest))
    for item in draft.iterdir():
        sync(item)
    sync(draft)
    shutil.rmtree(final, ignore_errors=True)
    draft.rename(final)
    sync(final)
    sync(folder)
    for other in folder.glob(f"{_PREFIX}*"):
        if other.name != final.name:
            shutil.rmtree(other, ignore_errors=True)
    return final


def _readable(path: Path) -> bool:
    try:
        load_snapshot(path)
    except DamagedLab:
        return False
    return True


def latest_snapshot(folder: Path) -> Path | None:
    """The newest snapshot below ``folder``."""
    found = sorted(folder.glob(f"{_PREFIX}*"))
    return found[-1] if found else None


def load_snapshot(path: Path) -> State:
    """The state that was written down; DamagedLab if any file is missing, truncated or of another format."""
    try:
        manifest: dict[str, Any] = msgspec.json.decode((path / "manifest.json").read_bytes())
        if manifest["format"] != _FORMAT:
            raise DamagedLab(f"The snapshot {path.name} has format {manifest['format']}, not {_FORMAT}.")
        for name, size in manifest["sizes"].items():
            if (path / name).stat().st_size != size:
                raise DamagedLab(f"The file {name} of the snapshot {path.name} is truncated.")
        memories = pl.read_parquet(path / "memories.parquet")
        state = State()
        state.edges = Edges.load(path / "edges.bin")
        state.nodes = Nodes(manifest["nodes"], memories=len(memories))
        state.vectors = Vectors.load(path / "vectors.bin")
        state.words = Words.load(path / "words.npz")
        state.other_words = {name: Words.load(path / f"words-{name}.npz") for name in manifest["languages"]}
        registers = msgspec.msgpack.decode((path / "registers.msgpack").read_bytes())
        for name, register in state.registers.items():
            register.load(registers[name])
    except (OSError, msgspec.MsgspecError, KeyError, ValueError, pl.exceptions.PolarsError) as error:
        raise DamagedLab(f"The snapshot {path.name} cannot be read: {error}") from None
    state.seq, state.fingerprint, state.embedder_name = manifest["seq"], manifest["fingerprint"], manifest["embedder"]
    state.texts, state.refs = Texts(memories["text"]), Texts(memories["ref"])
    state.uses = Latest(state.uses.values.shape[1], memories["uses"].to_numpy())
    count, held = len(memories), set(memories.columns)
    for name, numbers in state.numbers.items():
        if name in held:
            numbers.append(memories[name].to_numpy())
        else:
            numbers.extend(numbers.default, count)
    for name in NAMED:
        state.names[name] = Names(manifest["names"][name], default=first_name(name))
        if name in held:
            state.names[name].append_codes(memories[name].to_numpy())
        else:
            state.names[name].extend(first_name(name), count)
    for name in LISTED:
        state.lists[name].append_series(memories[name]) if name in held else state.lists[name].extend(None, count)
    for name in NOTED:
        state.notes[name].append(memories[name].to_list() if name in held else [None] * count)
    state.contexts = type(state.contexts)(manifest["contexts"])
    state.contexts.append_codes(memories["place"].to_numpy())
    state.asks.append(memories["asks"].to_numpy())
    state.generation = 1
    return state

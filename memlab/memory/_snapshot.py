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
from memlab.memory._columns import Latest, Texts
from memlab.memory._state import LISTED, NAMED, NUMERIC, State

__all__ = ["latest_snapshot", "load_snapshot", "save_snapshot"]

_FORMAT = 3
_PREFIX = "snapshot-"


def save_snapshot(state: State, folder: Path) -> Path:
    """Write ``state`` below ``folder`` and remove the snapshots before it."""
    folder.mkdir(exist_ok=True)
    final = folder / f"{_PREFIX}{state.seq:012d}"
    if final.exists():
        return final
    draft = folder / f".draft-{os.getpid()}-{state.seq:012d}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    columns = [
        state.texts.series("text"),
        state.refs.series("ref"),
        pl.Series("context", state.contexts.codes),
        pl.Series("asks", state.asks.values),
        pl.Series("uses", state.uses.values),
        *(pl.Series(name, state.numbers[name].values) for name in NUMERIC),
        *(pl.Series(name, state.names[name].codes) for name in NAMED),
        *(state.lists[name].series(name) for name in LISTED),
    ]
    pl.DataFrame(columns).write_parquet(draft / "memories.parquet", compression="lz4")
    state.edges.save(draft / "edges.bin")
    state.vectors.save(draft / "vectors.bin")
    state.words.save(draft / "words.npz")
    manifest = {
        "format": _FORMAT,
        "seq": state.seq,
        "count": len(state),
        "fingerprint": state.fingerprint,
        "embedder": state.embedder_name,
        "contexts": state.contexts.vocabulary,
        "names": {name: state.names[name].vocabulary for name in NAMED},
        "nodes": state.nodes.vocabularies(),
        "sizes": {item.name: item.stat().st_size for item in sorted(draft.iterdir())},
    }
    (draft / "manifest.json").write_bytes(msgspec.json.encode(manifest))
    for item in draft.iterdir():
        sync(item)
    sync(draft)
    draft.rename(final)
    sync(final)
    sync(folder)
    for older in folder.glob(f"{_PREFIX}*"):
        if older.name < final.name:
            shutil.rmtree(older, ignore_errors=True)
    return final


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
    except (OSError, msgspec.MsgspecError, KeyError, ValueError, pl.exceptions.PolarsError) as error:
        raise DamagedLab(f"The snapshot {path.name} cannot be read: {error}") from None
    state.seq, state.fingerprint, state.embedder_name = manifest["seq"], manifest["fingerprint"], manifest["embedder"]
    state.texts, state.refs = Texts(memories["text"]), Texts(memories["ref"])
    state.uses = Latest(state.uses.values.shape[1], memories["uses"].to_numpy())
    for name in NUMERIC:
        state.numbers[name].append(memories[name].to_numpy())
    for name in NAMED:
        state.names[name] = type(state.names[name])(manifest["names"][name])
        state.names[name].append_codes(memories[name].to_numpy())
    for name in LISTED:
        state.lists[name].append_series(memories[name])
    state.contexts = type(state.contexts)(manifest["contexts"])
    state.contexts.append_codes(memories["context"].to_numpy())
    state.asks.append(memories["asks"].to_numpy())
    state.generation = 1
    return state

"""Parquet: a folder with one file a table and a manifest, or one file in which each row is a memory, an edge or an
event.

Whatever is no table (nodes, registers, policies) stands in the manifest, which every file carries in its metadata too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import polars as pl

from memlab.errors import DatasetError
from memlab.io.formats.bundle import Bundle
from memlab.io.formats.lines import MAX_EXPORT_BYTES, decode_json
from memlab.io.formats.records import (
    Record,
    build_bundle_from_records,
    check_fields,
    export_records,
)
from memlab.kernel.schema import MEMORY

__all__ = [
    "MANIFEST",
    "UNREADABLE",
    "is_parquet_export",
    "read_parquet",
    "write_parquet_file",
    "write_parquet_folder",
]

MANIFEST = "manifest.json"
_KEY = "memlab"
_TABLES = {"memory": "memories", "edge": "edges", "event": "events"}
_STAMP = pl.Datetime("us", "UTC")
UNREADABLE = (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException)
"""What Polars raises of a damaged file; a panic is no Exception."""
_MOST_ROWS = 20_000_000


def write_parquet_folder(bundle: Bundle, folder: Path) -> None:
    """``memories.parquet``, ``edges.parquet``, ``events.parquet`` (of a whole lab) and ``manifest.json``."""
    about = _encode_manifest(bundle)
    for kind, frame in _build_frames(bundle).items():
        frame.write_parquet(folder / f"{_TABLES[kind]}.parquet", metadata={_KEY: about})
    (folder / MANIFEST).write_text(about, encoding="utf-8")


def write_parquet_file(bundle: Bundle, file: BinaryIO) -> None:
    """One file: a column ``table``, and a struct for each table that is null in the rows of the others."""
    parts = [
        frame.select(pl.lit(kind).alias("table"), pl.struct(pl.all()).alias(kind))
        for kind, frame in _build_frames(bundle).items()
    ]
    pl.concat(parts, how="diagonal").write_parquet(file, metadata={_KEY: _encode_manifest(bundle)})


def _build_frames(bundle: Bundle) -> dict[str, pl.DataFrame]:
    times = [
        pl.col(name).cast(_STAMP) for name, column in MEMORY.items() if column.storage == "time"
    ]
    frames = {
        "memory": bundle.memories.with_columns(*times, pl.col("uses").cast(pl.List(_STAMP))),
        "edge": bundle.edges.with_columns(pl.col("created").cast(_STAMP)),
    }
    if bundle.events is not None:
        frames["event"] = bundle.events
    return frames


def _encode_manifest(bundle: Bundle) -> str:
    records = [
        {record.kind: record.fields}
        for record in export_records(bundle)
        if record.kind not in ("memory", "edge")
    ]
    return msgspec.json.encode(records).decode()


def is_parquet_export(path: Path, start: str) -> bool:
    """Whether a file of Parquet is a lab's, by its metadata, or a folder one of tables. DatasetError for no Parquet."""
    if path.is_dir():
        return (path / MANIFEST).is_file() and (path / "memories.parquet").is_file()
    if path.suffix.lower() != ".parquet":
        return False
    try:
        return _KEY in pl.read_parquet_metadata(path)
    except (*UNREADABLE, UnicodeDecodeError) as error:
        raise DatasetError(f"{path.name} cannot be read as Parquet: {error}") from None


def read_parquet(path: Path) -> Bundle:
    """What either of the two wrote. Events are not read: they are the history of the lab that they come from."""
    name = path.name
    try:
        if path.is_dir():
            tables = {
                kind: _read_table(path / f"{_TABLES[kind]}.parquet") for kind in ("memory", "edge")
            }
        else:
            union = _read_table(path)
            tables = {kind: _select_table(union, kind, name) for kind in ("memory", "edge")}
        about = _read_manifest(path / "memories.parquet" if path.is_dir() else path, name)
        return build_bundle_from_records(_build_records(about, tables, name), name)
    except (*UNREADABLE, UnicodeDecodeError) as error:
        raise DatasetError(f"{name} cannot be read as Parquet: {error}") from None


def _read_table(path: Path) -> pl.DataFrame:
    if path.stat().st_size > MAX_EXPORT_BYTES:
        raise DatasetError(
            f"{path.name} has {path.stat().st_size:,} bytes; at most {MAX_EXPORT_BYTES:,} are read."
        )
    scan = pl.scan_parquet(path, glob=False)
    rows = int(scan.select(pl.len()).collect().item())
    if rows > _MOST_ROWS:
        raise DatasetError(f"{path.name} has {rows:,} rows; at most {_MOST_ROWS:,} are read.")
    return scan.collect()


def _select_table(frame: pl.DataFrame, kind: str, source: str) -> pl.DataFrame:
    if "table" not in frame.columns:
        raise DatasetError(
            f'{source}: A file of a lab has a column "table"; this one has {", ".join(frame.columns[:8])}.'
        )
    rows = frame.filter(pl.col("table") == kind)
    if kind not in frame.columns:
        return pl.DataFrame()
    if not isinstance(frame.schema[kind], pl.Struct):
        raise DatasetError(
            f"{source}, field {kind}: A struct stands here, not {frame.schema[kind]}."
        )
    return rows.select(kind).unnest(kind)


def _read_manifest(path: Path, source: str) -> list[Any]:
    metadata = pl.read_parquet_metadata(path).get(_KEY)
    if metadata is None:
        raise DatasetError(f'{source}: Its metadata holds no "{_KEY}": it is no export of a lab.')
    about = decode_json(metadata.encode(), f"{source}, metadata", 1)
    if not isinstance(about, list):
        raise DatasetError(
            f"{source}, metadata: A list of records stands here, not {type(about).__name__}."
        )
    return about


def _build_records(
    about: list[Any], tables: Mapping[str, pl.DataFrame], source: str
) -> Iterator[Record]:
    for entry in about:
        for kind, fields in check_fields(entry, source, "metadata").items():
            yield Record(kind, dict(check_fields(fields, source, "metadata")), "metadata")
    for kind, frame in tables.items():
        micros = frame.with_columns(
            pl.col(name).cast(pl.Int64 if not isinstance(dtype, pl.List) else pl.List(pl.Int64))
            for name, dtype in frame.schema.items()
            if dtype == _STAMP or dtype == pl.List(_STAMP)
        )
        for number, row in enumerate(micros.iter_rows(named=True), 1):
            fields = {name: value for name, value in row.items() if value is not None}
            if kind == "edge":
                fields = _merge_ends(fields)
            yield Record(kind, fields, f"table {_TABLES[kind]}, row {number}")


def _merge_ends(fields: dict[str, Any]) -> dict[str, Any]:
    """An edge as records tell it: the end that is no memory in place of an id."""
    for end in ("source", "target"):
        node = fields.pop(f"{end}_node", None)
        if node is not None:
            fields[end] = node
    return fields

"""Exports as Parquet: a folder with one file per table, or a single file.

The manifest holds nodes, registers and policies, which are not tables. Every file has it in its metadata, too.
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
from memlab.io.formats.parquet_limits import UNREADABLE, scan_parquet
from memlab.io.formats.records import (
    Record,
    build_bundle_from_records,
    check_fields,
    export_records,
)
from memlab.kernel.base.clock import INSTANT
from memlab.kernel.base.disk import check_regular
from memlab.kernel.schema import MEMORY

# Name of the manifest in a folder; it also identifies the folder as an export.
MANIFEST = "manifest.json"
# Key of the manifest in a file's metadata, which identifies an export.
_KEY = "memlab"
# File of each kind of record.
_TABLES = {"memory": "memories", "edge": "edges", "event": "events"}


def write_parquet_folder(bundle: Bundle, folder: Path) -> None:
    """Write a bundle to a folder: one Parquet file per table, and a manifest."""
    about = _encode_manifest(bundle)
    for kind, frame in _build_frames(bundle).items():
        frame.write_parquet(folder / f"{_TABLES[kind]}.parquet", metadata={_KEY: about})
    (folder / MANIFEST).write_text(about, encoding="utf-8")


def write_parquet_file(bundle: Bundle, file: BinaryIO) -> None:
    """Write a bundle as a single Parquet file.

    A column ``table`` names the table of a row; each table is a struct that is null in rows of the others.
    """
    parts = [
        frame.select(pl.lit(kind).alias("table"), pl.struct(pl.all()).alias(kind))
        for kind, frame in _build_frames(bundle).items()
    ]
    pl.concat(parts, how="diagonal").write_parquet(file, metadata={_KEY: _encode_manifest(bundle)})


def _build_frames(bundle: Bundle) -> dict[str, pl.DataFrame]:
    """Return memories, edges and events with times as UTC datetimes."""
    times = [
        pl.col(name).cast(INSTANT) for name, column in MEMORY.items() if column.storage == "time"
    ]
    frames = {
        "memory": bundle.memories.with_columns(*times, pl.col("uses").cast(pl.List(INSTANT))),
        "edge": bundle.edges.with_columns(pl.col("created").cast(INSTANT)),
    }
    if bundle.events is not None:
        frames["event"] = bundle.events
    return frames


def _encode_manifest(bundle: Bundle) -> str:
    """Return the header, nodes, registers and policies of a bundle as JSON."""
    records = [
        {record.kind: record.fields}
        for record in export_records(bundle)
        if record.kind not in ("memory", "edge")
    ]
    return msgspec.json.encode(records).decode()


def is_parquet_export(path: Path, start: str) -> bool:
    """Return whether a file or folder is a Parquet export, by its metadata or manifest.

    Raises DatasetError for a file that cannot be read as Parquet.
    """
    if path.is_dir():
        return (path / MANIFEST).is_file() and (path / "memories.parquet").is_file()
    if path.suffix.lower() != ".parquet":
        return False
    check_regular(path)
    try:
        return _KEY in pl.read_parquet_metadata(path)
    except (*UNREADABLE, UnicodeDecodeError) as error:
        raise DatasetError(f"{path.name} cannot be read as Parquet: {error}") from None


def read_parquet(path: Path) -> Bundle:
    """Read a Parquet export: a single file or a folder.

    Events are not read, because they are the history of the exporting lab.
    """
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
    """Read a Parquet file, or raise DatasetError if the file is too large."""
    if path.stat().st_size > MAX_EXPORT_BYTES:
        raise DatasetError(
            f"{path.name} has {path.stat().st_size:,} bytes; the maximum is {MAX_EXPORT_BYTES:,}."
        )
    return scan_parquet(path).collect()


def _select_table(frame: pl.DataFrame, kind: str, source: str) -> pl.DataFrame:
    """Return the rows of one table of a single-file export; an empty frame without this table."""
    if "table" not in frame.columns:
        raise DatasetError(
            f'{source}: An export has a column "table"; this file has {", ".join(frame.columns[:8])}.'
        )
    rows = frame.filter(pl.col("table") == kind)
    if kind not in frame.columns:
        return pl.DataFrame()
    if not isinstance(frame.schema[kind], pl.Struct):
        raise DatasetError(f"{source}, field {kind}: Expected a struct, not {frame.schema[kind]}.")
    return rows.select(kind).unnest(kind)


def _read_manifest(path: Path, source: str) -> list[Any]:
    """Return the records of the manifest in a Parquet file's metadata."""
    metadata = pl.read_parquet_metadata(path).get(_KEY)
    if metadata is None:
        raise DatasetError(
            f'{source}: The metadata of the file has no "{_KEY}", so it is not an export of a lab.'
        )
    about = decode_json(metadata.encode(), f"{source}, metadata", 1)
    if not isinstance(about, list):
        raise DatasetError(
            f"{source}, metadata: Expected a list of records, not {type(about).__name__}."
        )
    return about


def _build_records(
    about: list[Any], tables: Mapping[str, pl.DataFrame], source: str
) -> Iterator[Record]:
    """Yield the records that a manifest and its tables describe."""
    for entry in about:
        for kind, fields in check_fields(entry, source, "metadata").items():
            yield Record(kind, dict(check_fields(fields, source, "metadata")), "metadata")
    for kind, frame in tables.items():
        micros = frame.with_columns(
            pl.col(name).cast(pl.Int64 if not isinstance(dtype, pl.List) else pl.List(pl.Int64))
            for name, dtype in frame.schema.items()
            if dtype == INSTANT or dtype == pl.List(INSTANT)
        )
        for number, row in enumerate(micros.iter_rows(named=True), 1):
            fields = {name: value for name, value in row.items() if value is not None}
            if kind == "edge":
                fields = _merge_ends(fields)
            yield Record(kind, fields, f"table {_TABLES[kind]}, row {number}")


def _merge_ends(fields: dict[str, Any]) -> dict[str, Any]:
    """Merge the id and name columns of each end of an edge into one column."""
    for end in ("source", "target"):
        node = fields.pop(f"{end}_node", None)
        if node is not None:
            fields[end] = node
    return fields

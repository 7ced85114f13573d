"""Limits of Parquet files, checked before any row is decoded.

A file of one kilobyte may contain a billion values, because equal values are stored once. The footer says how many values
each column has, and the lengths of texts are summed without building the texts. The footer is encoded in the compact
protocol of Thrift, and Polars does not show it.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from memlab.errors import DatasetError
from memlab.kernel.base.disk import check_regular, open_regular

UNREADABLE = (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException)
"""Errors of Polars for a damaged file; a panic does not derive from Exception."""

# Errors of a footer with fields of other types, without a field, with an end before that of its values, or with a length
# that no file has.
_MALFORMED = (
    IndexError,
    KeyError,
    UnicodeDecodeError,
    TypeError,
    AttributeError,
    RecursionError,
    MemoryError,
    OverflowError,
)
# Maximum rows of a table, because a small compressed file may claim billions of equal rows.
_MAX_ROWS = 20_000_000
# Polars takes a second for each 4,000 columns.
_MAX_COLUMNS = 5_000
# Decoded bytes that every file may have: a file of this size loads within seconds.
_FREE_BYTES = 64 << 20
# Decoded bytes for each byte of a file. Real chats and logs, compressed with zstd, have 3 to 30.
_MAX_RATIO = 1_000
# Bytes of a decoded number, the widest type in use.
_WIDTH = 8
# A list or struct within so many others is refused; memories have two levels, logs of services up to ten.
_MAX_DEPTH = 32
# Fields of the footer by number: file -> row groups -> columns -> metadata -> number of values, compressed bytes, and
# offsets of the first page of data and of the dictionary, which comes before it.
_ROW_GROUPS, _COLUMNS, _METADATA, _VALUES, _COMPRESSED, _OFFSETS = 4, 1, 3, 5, 7, (9, 11)


def scan_parquet(path: Path) -> pl.LazyFrame:
    """Return a Parquet file as a lazy frame, or raise an error if the file is too large.

    Raises InputError unless it is a regular file, and DatasetError if it is damaged or decodes to too much.
    """
    size = check_regular(path)
    limit = max(_FREE_BYTES, _MAX_RATIO * size)
    try:
        with open_regular(path) as file:
            values = _count_values(file, size)
        scan = pl.scan_parquet(path, glob=False)
        rows = int(scan.select(pl.len()).collect().item())
        if rows > _MAX_ROWS:
            raise DatasetError(f"{path.name} has {rows:,} rows; the maximum is {_MAX_ROWS:,}.")
        decoded = _WIDTH * values
        if decoded <= limit:
            schema = scan.collect_schema()
            if len(schema) > _MAX_COLUMNS:
                raise DatasetError(
                    f"{path.name} has {len(schema):,} columns; the maximum is {_MAX_COLUMNS:,}. Select fewer columns."
                )
            lengths = [
                length for name, dtype in schema.items() for length in _measure(pl.col(name), dtype)
            ]
            sums = scan.select(pl.sum_horizontal([pl.lit(0), *lengths]))
            decoded += int(sums.collect(engine="streaming").item())
    except (*UNREADABLE, *_MALFORMED) as error:
        raise DatasetError(f"{path.name} cannot be read as Parquet: {_first_line(error)}") from None
    if decoded > limit:
        raise DatasetError(
            f"{path.name} has {size:,} bytes and decodes to {decoded:,}; the maximum for its size is {limit:,}. "
            "Split it, or write it as JSON Lines."
        )
    return scan


def _first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the error's type without a message."""
    return str(error).partition("\n")[0] or type(error).__name__


def _measure(values: pl.Expr, dtype: Any, depth: int = 0) -> Iterator[pl.Expr]:
    """Yield an expression for the size in bytes of each column of texts or binary values, also nested ones."""
    if depth > _MAX_DEPTH:
        raise DatasetError(f"A column has more than {_MAX_DEPTH} levels of lists. Flatten it.")
    if isinstance(dtype, pl.List | pl.Array):
        yield from _measure(values.explode(), dtype.inner, depth + 1)
    elif isinstance(dtype, pl.Struct):
        for field in dtype.fields:
            yield from _measure(values.struct.field(field.name), field.dtype, depth + 1)
    elif dtype == pl.Binary:
        yield values.bin.size().cast(pl.Int64).sum()
    elif dtype in (pl.String, pl.Categorical, pl.Enum):
        yield values.cast(pl.String).str.len_bytes().cast(pl.Int64).sum()


def _count_values(file: BinaryIO, size: int) -> int:
    """Return the number of values in a Parquet file's columns, according to its footer.

    Raises DatasetError for a damaged file.
    """
    file.seek(max(0, size - 8))
    length = int.from_bytes(file.read(4), "little")
    if file.read(4) != b"PAR1" or length > size - 8:
        raise DatasetError(f"{file.name} is damaged: its end is not that of a Parquet file.")
    file.seek(size - 8 - length)
    footer = _read_value(io.BytesIO(file.read(length)), _STRUCT)
    values = 0
    for group in footer.get(_ROW_GROUPS, ()):
        for column in group.get(_COLUMNS, ()):
            metadata = column[_METADATA]
            start = min((metadata[name] for name in _OFFSETS if name in metadata), default=-1)
            # Polars panics, with a backtrace on stderr
            if not 0 <= start <= start + metadata[_COMPRESSED] <= size:
                raise DatasetError(
                    f"{file.name} is damaged: a column lies beyond its end. Write or download the file again."
                )
            values += abs(metadata[_VALUES])
    return values


# Types of the compact protocol.
_BOOLEANS, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _STRUCT = (
    (1, 2),
    3,
    (4, 5, 6),
    7,
    8,
    (9, 10),
    12,
)


def _read_value(data: BinaryIO, kind: int) -> Any:
    """Read a value of the Thrift compact protocol; raise IndexError at the end of the data."""
    if kind in _INTEGERS:
        number = _read_varint(data)
        return number >> 1 ^ -(number & 1)
    if kind == _BINARY:
        return data.read(_read_varint(data))
    if kind in _LISTS:
        head = data.read(1)[0]
        count = head >> 4 if head < 0xF0 else _read_varint(data)
        return [_read_value(data, head & 15) for _ in range(count)]
    if kind == _STRUCT:
        fields, field = dict[int, Any](), 0
        while head := data.read(1)[0]:
            field = field + (head >> 4) if head >> 4 else _read_value(data, _INTEGERS[0])
            inner = head & 15
            # the type of a boolean field is its value, and no byte follows
            fields[field] = inner == 1 if inner in _BOOLEANS else _read_value(data, inner)
        return fields
    return data.read(8 if kind == _DOUBLE else 1)[0]


def _read_varint(data: BinaryIO) -> int:
    """Read a variable-length integer; raise IndexError beyond 64 bits."""
    number = shift = 0
    while (byte := data.read(1)[0]) > 127:
        number |= (byte & 127) << shift
        shift += 7
        # without a limit, a long integer takes quadratic time
        if shift > 63:
            raise IndexError("an integer has more than 64 bits")
    return number | byte << shift

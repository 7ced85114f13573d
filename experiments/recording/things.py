"""Split frames, JSON values and texts into parts, each with exact content and floats.

Integers, ids, order, text and hashes must be equal on every machine. Floats must be equal to the bit on the machine
that wrote the record. On other machines the last bits differ, because vector units and BLAS kernels sum in another
order. There the relative difference may be 1e-12, or the absolute difference if the value is below 1.

A digest cannot check a tolerance, and all floats together are 20 MB, too much to commit with every change. So the
record stores a weighted sum of every run of 64 floats, with different weights between 1 and 2:

- If every float is within the tolerance, each sum is within the sum of the weighted tolerances: no false alarm.
- If one float of a run of ordinary size (about 1) differs by more than 3e-10, the sum differs by more than that bound.
  A smaller difference is detected on the machine that wrote the record, and may be missed on others.
- Exchanged floats and differences that cancel are detected, because the weights differ.

Sums also locate a difference to 64 values. Digests alone would only name the column, and digests of rounded values
would differ for some of a million floats near a rounding boundary.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["RUN", "TOLERANCE", "Part", "Thing", "digest", "frame_thing", "json_thing", "text_thing"]

RUN = 64
"""Floats per sum: 64 keep the sums below 200 kB, and a changed value above the bound of its run."""

TOLERANCE = 1e-12

Floats = NDArray[np.float64]

_DECIMAL = re.compile(r"(?<![\w.])-?\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+)(?![\w.])")
"""A float as JSON, Python and Hy write it; no version, no hash and no part of a name."""

_STEP = 2654435761
"""Knuth's multiplier: consecutive multiples modulo 2**32 are spread evenly, so weights within a run differ."""


def digest(content: bytes) -> str:
    """Return 12 hexadecimal digits: enough for 50,000 parts, short enough to read."""
    return hashlib.blake2b(content, digest_size=6).hexdigest()


@dataclass(frozen=True)
class Part:
    """One column, key or text: ``exact`` is the digest of all but its finite floats, which are in ``floats``."""

    exact: str
    floats: Floats = field(repr=False)

    @property
    def bits(self) -> str:
        """Digest of the floats to the bit; empty without floats."""
        return (
            digest(np.ascontiguousarray(self.floats, dtype="<f8").tobytes())
            if len(self.floats)
            else ""
        )

    def sums(self) -> Floats:
        """Return the weighted sum of each run of floats."""
        return _run_sums(self.floats * _weights(len(self.floats)))

    def bounds(self) -> Floats:
        """Return how far each sum may differ if every float is within the tolerance."""
        return _run_sums(
            np.maximum(np.abs(self.floats), 1.0) * _weights(len(self.floats)) * TOLERANCE
        )


@dataclass(frozen=True)
class Thing:
    """A named frame, JSON value or text. ``rows`` is its height or length; ``content`` is what ``--dump`` writes."""

    name: str
    rows: int
    parts: Mapping[str, Part]
    content: str = field(repr=False, default="")


def frame_thing(name: str, frame: pl.DataFrame, *, keep: bool = False) -> Thing:
    """Split a frame into its columns, in their order; a column without values is only its type.

    ``keep`` also writes the content out, for ``--dump``.
    """
    order = Part(digest(json.dumps(frame.columns).encode()), np.empty(0))
    parts = {"(columns)": order, **{column: _column(frame[column]) for column in frame.columns}}
    return Thing(name, frame.height, parts, _lines(frame) if keep else "")


def json_thing(name: str, value: Mapping[str, Any], *, keep: bool = False) -> Thing:
    """Split a JSON object into its keys."""
    parts = {str(key): _json_part(item) for key, item in value.items()}
    return Thing(
        name,
        len(parts),
        parts,
        json.dumps(value, indent=1, default=str, ensure_ascii=False) if keep else "",
    )


def text_thing(name: str, text: str, *, keep: bool = False) -> Thing:
    """Split a text into its decimal numbers and the rest."""
    return Thing(name, text.count("\n"), {"text": _text_part([text])}, text if keep else "")


def _column(series: pl.Series) -> Part:
    kind = str(series.dtype)
    if series.null_count() == len(series):
        return Part(digest(f"null {kind} {len(series)}".encode()), np.empty(0))
    if series.dtype.is_float():
        return _float_part(series)
    if series.dtype == pl.String or series.dtype == pl.Categorical or series.dtype == pl.Enum:
        return _text_part(series.cast(pl.String).to_list(), kind)
    if series.dtype.is_nested():
        return _json_part(series.to_list(), kind)
    return Part(
        digest(f"{kind} {json.dumps(series.to_physical().to_list())}".encode()), np.empty(0)
    )


def _float_part(series: pl.Series) -> Part:
    values = series.cast(pl.Float64)
    numbers = values.fill_null(0.0).to_numpy()
    kinds = np.select(
        [values.is_null().to_numpy(), np.isnan(numbers), numbers == np.inf, numbers == -np.inf],
        [1, 2, 3, 4],
        0,
    )
    return Part(
        digest(f"{series.dtype} ".encode() + kinds.astype(np.uint8).tobytes()), numbers[kinds == 0]
    )


def _text_part(texts: Iterable[str | None], kind: str = "text") -> Part:
    floats: list[float] = []

    def extract(match: re.Match[str]) -> str:
        number = float(match[0])
        if not math.isfinite(number):
            return match[0]
        floats.append(number)
        return "#"

    rest = [None if text is None else _DECIMAL.sub(extract, text) for text in texts]
    return Part(digest(f"{kind} {json.dumps(rest)}".encode()), np.array(floats, dtype=np.float64))


def _json_part(value: Any, kind: str = "json") -> Part:
    floats: list[float] = []

    def skeleton(item: Any) -> Any:
        if isinstance(item, float):
            if not math.isfinite(item):
                return str(item)
            floats.append(item)
            return "#"
        if isinstance(item, Mapping):
            return {str(key): skeleton(inner) for key, inner in item.items()}
        if isinstance(item, list | tuple):
            return [skeleton(inner) for inner in item]
        return item if item is None or isinstance(item, str | int | bool) else str(item)

    rest = json.dumps(skeleton(value))
    return Part(digest(f"{kind} {rest}".encode()), np.array(floats, dtype=np.float64))


def _weights(count: int) -> Floats:
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_STEP) % np.uint64(2**32)
    return 1.0 + steps.astype(np.float64) / 2**32


def _run_sums(values: Floats) -> Floats:
    return np.add.reduceat(values, np.arange(0, len(values), RUN)) if len(values) else np.empty(0)


def _lines(frame: pl.DataFrame) -> str:
    rows = (json.dumps(row, default=str, ensure_ascii=False) for row in frame.iter_rows(named=True))
    return "".join(f"{row}\n" for row in rows)

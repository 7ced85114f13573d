"""Where memories stand on a map, and what colours them.

By principal components, fitted to an even sample: always the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import UnknownName
from memlab.kernel.recall import Moment
from memlab.kernel.state import seen_rows
from memlab.subjects.lab import Lab

__all__ = ["COLOURS", "Points", "read_points", "shades"]

COLOURS = ("kind", "status", "cluster", "retention", "recalled")
_MOST = 200_000
_PLACES = 7
"""Words that have a colour and a shape of their own; the eighth is that of all others."""
_FITTED = 10_000
"""Vectors that the axes are fitted to: all of 100,000 took nine times as long, for the same picture."""
_BLOCK = 4_096
_DAY = 86_400_000_000

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Points:
    """Points (id, x, y, from -1 to 1) of ``memories``, of the first ``rows`` of a lab; ``kept`` is the share of the
    variance that they show, None where that says nothing."""

    rows: int
    memories: int
    frame: pl.DataFrame
    kept: float | None


def read_points(lab: Lab, last: Points | None) -> Points:
    """Read the points of a lab; return ``last`` where no memory came since."""
    with lab.io.store.reading() as state:
        if last is not None and last.rows == state.rows:
            return last
        seen = seen_rows(state)
        rows = np.arange(state.rows) if seen is None else seen
        total, count = state.rows, len(rows)
        if count > _MOST:
            rows = rows[np.linspace(0, count - 1, _MOST).astype(np.int64)]
        vectors = state.vectors.take(rows)
    places, kept = _pca(vectors)
    x, y = _spanned(places).T
    ids = (rows + 1).astype(np.int32)
    return Points(total, count, pl.DataFrame({"id": ids, "x": x, "y": y}), kept)


def _pca(vectors: NDArray[np.int8]) -> tuple[Floats, float | None]:
    """The two directions of most variance of unit vectors, and the share of it that they show."""
    if len(vectors) < 3:
        return np.column_stack([np.arange(len(vectors)), np.zeros(len(vectors))]).astype(np.float32), None
    dim = vectors.shape[1]
    total, products = np.zeros(dim), np.zeros((dim, dim))
    fitted = vectors[np.linspace(0, len(vectors) - 1, min(_FITTED, len(vectors))).astype(np.int64)]
    for block in _units(fitted):
        total += block.sum(axis=0, dtype=np.float64)
        products += (block.T @ block).astype(np.float64)
    mean = total / len(fitted)
    values, axes = np.linalg.eigh(products / len(fitted) - np.outer(mean, mean))
    best = axes[:, -2:][:, ::-1]
    best *= np.sign(best[np.abs(best).argmax(axis=0), [0, 1]])  # an axis has no direction of its own: one is chosen
    narrow, centre = best.astype(np.float32), (mean @ best).astype(np.float32)
    kept = float(values[-2:].sum() / values.sum()) if values.sum() > 0 else None
    placed = np.empty((len(vectors), 2), dtype=np.float32)
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK].astype(np.float32)
        length = np.sqrt(np.einsum("ij,ij->i", block, block))[:, None]
        placed[start : start + _BLOCK] = block @ narrow / np.maximum(length, 1e-9) - centre
    return placed, kept


def _units(vectors: NDArray[np.int8]) -> Any:
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK].astype(np.float32)
        yield block / np.maximum(np.linalg.norm(block, axis=1, keepdims=True), 1e-9)


def _spanned(places: Floats) -> Floats:
    """Within -1..1, one scale for both axes; the farthest thousandth lies on the border, so that no outlier rules."""
    if not len(places):
        return places.reshape(0, 2)
    centred = places - np.median(places, axis=0)
    reach = float(np.quantile(np.abs(centred), 0.999)) or 1.0
    return np.asarray(np.clip(centred / reach, -1, 1), dtype=np.float32)


def shades(lab: Lab, points: Points, colour: str) -> tuple[pl.DataFrame, dict[str, Any]]:
    """For each point ``place`` (of a word of the legend; 255: none) and ``value`` (0..1, NaN: none), and the legend.

    The legend of words has ``words`` [name, count]; that of a scale what its ends are called, and ``none``.
    """
    if colour not in COLOURS:
        raise UnknownName("colour", colour, COLOURS)
    ids = points.frame["id"].cast(pl.Int64)
    with lab.io.store.reading() as state:
        rows = ids.to_numpy() - 1
        if colour in ("kind", "status"):
            return _worded(state.column(colour).gather(rows), colour)
        if colour == "retention":
            left = np.asarray(
                Moment(state, lab.policies.pack, rows, lab.io.store.clock())["retention"], dtype=np.float32
            )
            return _scaled(left, ("0: faded", "1: as new"), "no retention")
        if colour == "recalled":
            at = state.column("accessed").to_physical().gather(rows).cast(pl.Float64).to_numpy()
            days = np.maximum(0.0, lab.io.store.clock() - at) / _DAY
            most = float(np.nanmax(days)) if np.isfinite(days).any() else 1.0
            fresh = 1 - np.log1p(days) / max(np.log1p(most), 1e-9)
            return _scaled(fresh.astype(np.float32), (f"{most:.0f} days ago", "now"), "never recalled")
    found = lab.edges.filter(relation="in-cluster").unique("source", keep="last")
    named = points.frame.select(pl.col("id").cast(pl.Int64)).join(
        found.select(pl.col("source").alias("id"), "to"), on="id", how="left", maintain_order="left"
    )
    return _worded(named["to"], "cluster")


def _worded(values: pl.Series, colour: str) -> tuple[pl.DataFrame, dict[str, Any]]:
    counted = values.drop_nulls().value_counts(sort=True)
    words = counted[values.name].to_list()
    code = {word: min(place, _PLACES) for place, word in enumerate(words)}
    places = values.replace_strict(code, default=255, return_dtype=pl.UInt8).fill_null(255)
    shown = [list(row) for row in counted.head(_PLACES).rows()]
    if len(words) > _PLACES:
        shown.append([f"{len(words) - _PLACES:,} others", int(counted["count"][_PLACES:].sum())])
    frame = pl.DataFrame({"place": places, "value": pl.repeat(float("nan"), len(places), dtype=pl.Float32, eager=True)})
    return frame, {"colour": colour, "words": shown, "none": int(values.null_count())}


def _scaled(values: Floats, ends: tuple[str, str], none: str) -> tuple[pl.DataFrame, dict[str, Any]]:
    frame = pl.DataFrame({"place": np.full(len(values), 255, dtype=np.uint8), "value": np.clip(values, 0, 1)})
    return frame, {"ends": list(ends), "named": none, "none": int(np.isnan(values).sum())}

"""What a recall leaves behind: the pool with every feature, the scores, what was shown, under which hashes.

A slate is written in one blob beside its event: a msgpack header and the features as one float64 matrix
(19 kB for 100 candidates). Evaluation needs nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import DamagedLab

__all__ = ["Slate", "Slates", "decode", "encode"]

_FORMAT = 1


@dataclass(frozen=True)
class Slate:
    """One recall. Arrays run over the candidates in the order of their ids.

    ``numbers`` holds the numeric and boolean features (booleans as 0 and 1, null as NaN), ``words`` the others.
    ``shown`` are ids in the order in which they were shown. ``cut`` says how the pool was chosen.
    """

    at: int
    query: str
    vector: bytes
    limit: int
    project: str | None
    pack: str
    pack_hash: str
    policies: dict[str, str]
    settings: dict[str, float | bool | str]
    fingerprints: dict[str, str]
    state: int
    cut: str
    sampler: str
    ids: NDArray[np.int64]
    scores: NDArray[np.float64]
    numbers: dict[str, NDArray[np.float64]]
    words: dict[str, list[str | None]]
    shown: tuple[int, ...]
    decision: int = 0

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The candidates: ``memory_id``, every feature, ``score`` and ``rank`` (null where not shown)."""
        rank = {memory: position for position, memory in enumerate(self.shown, 1)}
        return pl.DataFrame(
            [
                pl.Series("memory_id", self.ids),
                *(pl.Series(name, values) for name, values in self.numbers.items()),
                *(pl.Series(name, values, dtype=pl.String) for name, values in self.words.items()),
                pl.Series("score", self.scores),
                pl.Series("rank", [rank.get(int(memory)) for memory in self.ids], dtype=pl.Int64),
            ]
        )


_SCALARS = [
    "at",
    "query",
    "vector",
    "limit",
    "project",
    "pack",
    "pack_hash",
    "policies",
    "settings",
    "fingerprints",
    "state",
    "cut",
    "sampler",
    "words",
    "shown",
]


def encode(slate: Slate) -> bytes:
    """The bytes that the journal keeps."""
    header = {name: getattr(slate, name) for name in _SCALARS}
    header["format"] = _FORMAT
    header["names"] = list(slate.numbers)
    header["count"] = len(slate.ids)
    head = msgspec.msgpack.encode(header)
    matrix = [values.astype("<f8", copy=False).tobytes() for values in slate.numbers.values()]
    return b"".join(
        [
            len(head).to_bytes(4, "little"),
            head,
            slate.ids.astype("<i8", copy=False).tobytes(),
            slate.scores.astype("<f8", copy=False).tobytes(),
            *matrix,
        ]
    )


def decode(blob: bytes, *, decision: int = 0) -> Slate:
    """The slate that ``encode`` wrote."""
    try:
        size = int.from_bytes(blob[:4], "little")
        header: dict[str, Any] = msgspec.msgpack.decode(blob[4 : 4 + size])
        count, names = header["count"], header["names"]
        body = np.frombuffer(blob, dtype="<f8", offset=4 + size).reshape(2 + len(names), count)
        values = {name: header[name] for name in _SCALARS}
    except (msgspec.DecodeError, KeyError, ValueError) as error:
        raise DamagedLab(f"The slate of decision {decision} cannot be read: {error}.") from None
    if header["format"] != _FORMAT:
        raise DamagedLab(
            f"The slate of decision {decision} has format {header['format']}; this version reads {_FORMAT}."
        )
    values["shown"] = tuple(values["shown"])
    return Slate(
        **values,
        ids=body[0].view("<i8"),
        scores=body[1],
        numbers=dict(zip(names, body[2:], strict=True)),
        decision=decision,
    )


class Slates:
    """The four tables of a log, as lazy frames: ``decisions``, ``candidates``, ``exposures`` and ``feedback``.

    >>> lab.slates.exposures.collect()                                  # doctest: +SKIP
    """

    def __init__(
        self,
        decisions: pl.LazyFrame,
        candidates: pl.LazyFrame,
        exposures: pl.LazyFrame,
        feedback: pl.LazyFrame,
    ) -> None:
        self.decisions, self.candidates = decisions, candidates
        self.exposures, self.feedback = exposures, feedback

    @classmethod
    def of(cls, slates: Iterable[Slate], feedback: pl.DataFrame) -> Slates:
        """The tables of these slates."""
        known = list(slates)
        stamp = pl.Datetime("us", "UTC")
        decisions = pl.DataFrame(
            {
                "decision": pl.Series([slate.decision for slate in known], dtype=pl.Int64),
                "at": pl.Series([slate.at for slate in known], dtype=pl.Int64).cast(stamp),
                "query": pl.Series([slate.query for slate in known], dtype=pl.String),
                "project": pl.Series([slate.project for slate in known], dtype=pl.String),
                "limit": pl.Series([slate.limit for slate in known], dtype=pl.Int64),
                "pack": pl.Series([slate.pack for slate in known], dtype=pl.String),
                "pack_hash": pl.Series([slate.pack_hash for slate in known], dtype=pl.String),
                "state": pl.Series([slate.state for slate in known], dtype=pl.Int64),
                "sampler": pl.Series([slate.sampler for slate in known], dtype=pl.String),
                "cut": pl.Series([slate.cut for slate in known], dtype=pl.String),
                "candidates": pl.Series([len(slate) for slate in known], dtype=pl.Int64),
            }
        )
        pools = [
            slate.frame.drop("rank").insert_column(0, pl.lit(slate.decision, dtype=pl.Int64).alias("decision"))
            for slate in known
        ]
        candidates = pl.concat(pools, how="diagonal") if pools else pl.DataFrame(schema={"decision": pl.Int64})
        exposures = pl.DataFrame(
            {
                "decision": pl.Series([slate.decision for slate in known for _ in slate.shown], dtype=pl.Int64),
                "position": pl.Series(
                    [position for slate in known for position, _ in enumerate(slate.shown, 1)], dtype=pl.Int64
                ),
                "memory_id": pl.Series([memory for slate in known for memory in slate.shown], dtype=pl.Int64),
            }
        ).with_columns(probability=pl.lit(1.0))
        return cls(decisions.lazy(), candidates.lazy(), exposures.lazy(), feedback.lazy())

    def __repr__(self) -> str:
        count = self.decisions.select(pl.len()).collect().item()
        return f"<Slates: {count} decisions>"

"""The log of a lab: sealed segments as lazy tables, and whole slates of any of its recalls."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import msgspec
import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from memlab.errors import DamagedLab
from memlab.kernel.slates._schema import CANDIDATES, DECISIONS, EXPOSURES, STAMP
from memlab.kernel.slates._segments import IDS, META, Segment
from memlab.kernel.slates._slate import FORMAT, Question, Slate, decode, is_sealed

__all__ = ["LogJournal", "SealedLog", "read_slates"]


class LogJournal(Protocol):
    """What of a journal a log is read from."""

    def slates(self, after: int = 0, *, upto: int | None = None) -> Iterator[tuple[int, bytes]]: ...

    def segments(self) -> dict[int, str | None]: ...

    def segment_part(self, upto: int, name: str) -> bytes: ...


_kept: WeakKeyDictionary[LogJournal, tuple[int, bytes, Segment]] = WeakKeyDictionary()
"""The segment that was read last: whoever asks for one slate of it asks for the next."""


def read_slates(journal: LogJournal, after: int = 0, *, upto: int | None = None) -> Iterator[Slate]:
    """Yield the slates of the recalls ``after < decision <= upto``, in order, whether they are sealed or not.

    Raises DamagedLab for one that is not what was written.
    """
    ends: list[int] | None = None
    waiting: dict[int, bytes] = {}
    end = 0
    for decision, blob in journal.slates(after, upto=upto):
        if waiting and (decision > end or not is_sealed(blob)):
            yield from _segment_at(journal, end).slates(waiting)
            waiting = {}
        if not is_sealed(blob):
            yield decode(blob, decision=decision)
            continue
        ends = list(journal.segments()) if ends is None else ends
        place = bisect_left(ends, decision)
        if place == len(ends):
            raise DamagedLab(f"The slate of decision {decision} was sealed, and no segment holds it.")
        end = ends[place]
        waiting[decision] = blob
    if waiting:
        yield from _segment_at(journal, end).slates(waiting)


def _segment_at(journal: LogJournal, upto: int) -> Segment:
    meta = journal.segment_part(upto, META)
    known = _kept.get(journal)
    if known is not None and known[:2] == (upto, meta):
        return known[2]
    segment = Segment(partial(journal.segment_part, upto))
    _kept[journal] = upto, meta, segment
    return segment


class SealedLog:
    """The sealed part of a log: segments by their last recall, read when a table needs them."""

    def __init__(self, journal: LogJournal, ends: Sequence[int]) -> None:
        self._journal = journal
        self._ends = tuple(ends)
        metas = [Segment(partial(journal.segment_part, end)) for end in ends]
        self.thinned = sum(one.meta.count for one in metas if one.thinned)
        self.features = _features_of(metas)

    def __len__(self) -> int:
        return len(self._ends)

    def scan(self) -> tuple[pl.LazyFrame, pl.LazyFrame, pl.LazyFrame]:
        """The decisions, candidates and exposures of all segments, in the order of decisions.

        A feature that a segment does not have is null in its rows.
        """
        ids = {name: kind for name, kind in CANDIDATES.items() if name in ("decision", IDS)}
        candidates = {**ids, **self.features, **{name: kind for name, kind in CANDIDATES.items() if name not in ids}}
        return (
            self._lazy(DECISIONS, _decisions_of),
            self._lazy(candidates, _candidates_of),
            self._lazy(EXPOSURES, _exposures_of),
        )

    def _lazy(self, schema: Mapping[str, pl.DataType], make: _Make) -> pl.LazyFrame:
        def read(
            columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, batch: int | None
        ) -> Iterator[pl.DataFrame]:
            wanted = list(schema) if columns is None else columns
            for end in self._ends:
                if rows is not None and rows <= 0:
                    return
                frame = make(Segment(partial(self._journal.segment_part, end)), wanted, schema, self._questions)
                frame = frame if predicate is None else frame.filter(predicate)
                frame = frame if rows is None else frame.head(rows)
                rows = None if rows is None else rows - frame.height
                yield frame

        return register_io_source(read, schema=dict(schema))

    def _questions(self, segment: Segment) -> list[Question]:
        meta = segment.meta
        blobs = self._journal.slates(meta.first - 1, upto=meta.last)
        return [Question.decoded(blob, decision) for decision, blob in blobs]


_Questions = Callable[[Segment], list[Question]]
_Make = Callable[[Segment, list[str], Mapping[str, pl.DataType], _Questions], pl.DataFrame]


_TYPES: dict[str, pl.DataType] = {"num": pl.Float64(), "bool": pl.Boolean(), "str": pl.String()}


def _features_of(segments: Sequence[Segment]) -> dict[str, pl.DataType]:
    """The features of all segments with their types: a flag in all of them, or a number."""
    found: dict[str, pl.DataType] = {}
    for segment in segments:
        for name in segment.meta.features:
            kind = pl.Boolean() if name in segment.flags else pl.Float64()
            found[name] = kind if found.get(name, kind) == kind else pl.Float64()
        found |= dict.fromkeys(segment.meta.words, pl.String())
    for segment in segments:
        for name, lost in segment.meta.lost.items():
            found.setdefault(name, _TYPES[lost])
    return found


def _candidates_of(
    segment: Segment, wanted: list[str], schema: Mapping[str, pl.DataType], questions: _Questions
) -> pl.DataFrame:
    held = {"decision", *CANDIDATES, *segment.meta.features, *segment.meta.words}
    count = sum(segment.recalls.size)
    return pl.DataFrame(
        [
            segment.series(name).cast(schema[name])
            if name in held
            else pl.Series(name, [None], dtype=schema[name]).new_from_index(0, count)
            for name in wanted
        ]
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _decisions_of(
    segment: Segment, wanted: list[str], schema: Mapping[str, pl.DataType], questions: _Questions
) -> pl.DataFrame:
    recalls, shared, count = segment.recalls, segment.meta.shared, segment.meta.count
    of_pack: dict[str, list[Any]] = {
        **{name: [getattr(one, name) for one in shared] for name in ("pack", "pack_hash", "sampler", "cut")},
        **{name: [_json(getattr(one, name)) for one in shared] for name in ("fingerprints", "settings")},
    }
    columns: dict[str, Any] = {name: getattr(recalls, name) for name in schema if hasattr(recalls, name)}
    columns |= {name: [held[code] for code in recalls.shared] for name, held in of_pack.items() if name in wanted}
    columns |= {"candidates": recalls.size, "format": [FORMAT] * count}
    columns["challenge"] = [None if one is None else _json(one) for one in recalls.challenge]
    if not {"query", "project", "session", "cluster", "filters"}.isdisjoint(wanted):
        asked = questions(segment)
        columns |= {name: [getattr(one, name) for one in asked] for name in ("query", "project", "session")}
        columns["cluster"] = [
            one.project or one.session or str(decision) for one, decision in zip(asked, recalls.decision, strict=True)
        ]
        columns["filters"] = [_json(one.filters) for one in asked]
    return pl.DataFrame([_typed(name, columns[name], schema[name]) for name in wanted])


def _typed(name: str, values: Sequence[Any], kind: pl.DataType) -> pl.Series:
    if kind == STAMP:
        return pl.Series(name, values, dtype=pl.Int64).cast(kind)
    return pl.Series(name, values, dtype=kind)


def _exposures_of(
    segment: Segment, wanted: list[str], schema: Mapping[str, pl.DataType], questions: _Questions
) -> pl.DataFrame:
    recalls = segment.recalls
    sizes = [len(shown) for shown in recalls.shown]
    shown = np.array([id for some in recalls.shown for id in some], dtype=np.int64)
    stop = np.cumsum(recalls.size)
    places = [
        start + np.searchsorted(segment.ids[start:end], ids)
        for start, end, ids in zip(stop - recalls.size, stop, recalls.shown, strict=True)
    ]
    propensity = segment.numbers("propensity")[np.concatenate([np.empty(0, dtype=np.int64), *places])]
    sure = np.where(propensity == 1.0, 1.0, np.nan)
    ends = np.cumsum(sizes)
    for given, size, end in zip(recalls.conditional, sizes, ends, strict=True):
        if given:
            sure[end - size : end] = given
    probes = zip(recalls.shown, recalls.probes, strict=True)
    columns = {
        "decision": np.repeat(np.array(recalls.decision, dtype=np.int64), sizes),
        "position": np.concatenate([np.arange(1, size + 1) for size in sizes]),
        IDS: shown,
        "propensity": propensity,
        "conditional": pl.Series(sure).fill_nan(None),
        "probe": pl.Series([id in some for ids, some in probes for id in ids], dtype=pl.Boolean),
    }
    return pl.DataFrame([pl.Series(name, columns[name], dtype=schema[name]) for name in wanted])

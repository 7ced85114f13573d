"""Sealed slates: some hundred recalls as compressed columns, and the questions that were asked.

Sealing takes a slate apart. What a purge may have to change (the words of the question, its vector, names and filters)
stays with the recall, as a ``Question`` of some hundred bytes. All else becomes a column over the candidates of all
recalls of the segment, under a name: numbers, ids of memories, words of memlab's own vocabularies. A segment therefore
holds no text, and is never written again but to be thinned.

Every bit of a number is kept. A column is written in the way that takes the fewest bytes of those that give it back:

=====  =====================================================================================================
how    what is kept
=====  =====================================================================================================
one    one number for all
same   the name of a column that is equal
pick   of two columns, which one has the number, or whether their sum is it: ``activation`` of ``seed``, ``received``
among  which candidate of the same recall has the number in another column: ``session-seed`` among ``seed``
line   a column and the knots between which it is interpolated: ``closeness`` of ``similarity``
days   instants, from which the days until the recall follow: what differs between recalls is the same instant
codes  which of few numbers; by memory, where that makes longer runs
float  float32, its bytes apart
plain  float64, its bytes apart
=====  =====================================================================================================

Of a log of 1,500 recalls with 76 features of 100 candidates each, a blob takes 32.6 kB a recall, Parquet with zstd
13.1, and a segment 5.3.
"""

from __future__ import annotations

import hashlib
import io
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.io.plugins import register_io_source

from memlab.errors import DamagedLab
from memlab.kernel.base.clock import DAY
from memlab.kernel.embedding import SHIPPED_KNOTS
from memlab.kernel.journal import digest_parts
from memlab.kernel.schema import (
    KINDS,
    PROVENANCES,
    SCOPES,
    SOURCES,
    SPEAKER_ROLES,
    STATUSES,
    VISIBILITIES,
)
from memlab.kernel.slates._schema import CANDIDATES, DECISIONS, EXPOSURES, STAMP
from memlab.kernel.slates._slate import (
    FORMAT,
    Question,
    Slate,
    decode,
    is_sealed,
    number_series,
    same_slates,
)

__all__ = [
    "KEPT_WHEN_THIN",
    "LogJournal",
    "Sealed",
    "SealedLog",
    "Segment",
    "read_slates",
    "seal",
    "thin_parts",
]


Floats = NDArray[np.float64]
Bits = NDArray[np.int64]
Column = list[Any]
"""How a column is written, and what is kept of it."""

META, RECALLS, IDS = "", "recalls", "memory_id"
KEPT_WHEN_THIN = (META, RECALLS, IDS, "score", "rank", "propensity")
"""The parts that are left of a segment once its features are gone."""

_FORMAT = 1
_PICKS = {"activation": ("seed", "received")}
_AMONG = {"session-seed": "seed"}
_LINES = {"closeness": "similarity"}
_WORDS = frozenset(
    (*KINDS, *PROVENANCES, *SCOPES, *SOURCES, *SPEAKER_ROLES, *STATUSES, *VISIBILITIES, None)
)
"""The words that a segment may hold: those of memlab's own vocabularies, which tell of no memory."""

_NEVER = np.iinfo(np.int64).min
_ENCODER = msgspec.msgpack.Encoder()


class _Shared(msgspec.Struct, frozen=True):
    """What the slates of one pack have in common."""

    pack: str
    pack_hash: str
    policies: dict[str, str]
    settings: dict[str, bool | int | float | str]
    fingerprints: dict[str, str]
    names: tuple[str, ...]
    words: tuple[str, ...]
    flags: tuple[str, ...]
    cut: str
    sampler: str


class _Meta(msgspec.Struct):
    format: int
    after: int
    upto: int
    first: int
    last: int
    count: int
    shared: list[_Shared]
    features: list[str]
    words: list[str]
    thinned: str = ""
    lost: dict[str, str] = {}
    """The features that were thinned out, each with its type."""


_OF_RECALL = (
    *(
        "decision",
        "at",
        "limit",
        "state",
        "seed",
        "kappa",
        "known",
        "wanted",
        "shown",
        "conditional",
        "probes",
    ),
    *("also", "challenge"),
)


class _Recalls(msgspec.Struct):
    """A column for each field that slates of one pack do not share."""

    decision: list[int]
    at: list[int]
    limit: list[int]
    state: list[int]
    seed: list[int | None]
    kappa: list[float | None]
    known: list[float | None]
    wanted: list[int | None]
    shown: list[tuple[int, ...]]
    conditional: list[tuple[float, ...]]
    probes: list[tuple[int, ...]]
    also: list[dict[int, tuple[int, ...]]]
    challenge: list[dict[str, Any] | None]
    size: list[int]
    shared: list[int]
    ranked: list[bool]
    weighted: list[bool]


class Sealed(msgspec.Struct):
    """What becomes of slates when they are sealed: the parts of a segment, and what stays with each recall."""

    after: int
    upto: int
    parts: dict[str, bytes]
    questions: dict[int, bytes]

    @property
    def body(self) -> dict[str, Any]:
        """The event that tells of it."""
        digest = digest_parts(sorted(self.parts.items()))
        return {
            "after": self.after,
            "upto": self.upto,
            "recalls": len(self.questions),
            "digest": digest,
        }


# -- sealing ----------------------------------------------------------------------------------------------------------


def seal(slates: Sequence[Slate], *, after: int) -> Sealed:
    """Take slates apart, in the order of their decisions; those before belong to earlier segments.

    What is written is read again and compared with the slates. Raises DamagedLab where it differs.
    """
    shared: dict[bytes, int] = {}
    kept: list[_Shared] = []
    recalls: dict[str, list[Any]] = {name: [] for name in _Recalls.__struct_fields__}
    questions = {}
    for slate in slates:
        own = {name: words for name, words in slate.words.items() if not _WORDS.issuperset(words)}
        questions[slate.decision] = Question.of(slate, own).encoded()
        common = _shared_of(slate, [name for name in slate.words if name not in own])
        key = _ENCODER.encode(common)
        if key not in shared:
            shared[key] = len(kept)
            kept.append(common)
        recalls["shared"].append(shared[key])
        recalls["size"].append(len(slate))
        recalls["ranked"].append(slate.ranks is not None)
        recalls["weighted"].append(slate.propensity is not None)
        for name in _OF_RECALL:
            recalls[name].append(getattr(slate, name))
    features = list(dict.fromkeys(chain.from_iterable(one.names for one in kept)))
    words = list(dict.fromkeys(chain.from_iterable(one.words for one in kept)))
    ends = slates[0].decision, slates[-1].decision
    meta = _Meta(_FORMAT, after, ends[1], *ends, len(slates), kept, features, words)
    parts = {META: _squeezed(meta), RECALLS: _squeezed(_Recalls(**recalls))}
    parts |= {
        name: _ENCODER.encode(column)
        for name, column in _columns_of(slates, features, words).items()
    }
    sealed = Sealed(after, ends[1], parts, questions)
    _compare(sealed, slates)
    return sealed


def _shared_of(slate: Slate, words: Sequence[str]) -> _Shared:
    return _Shared(
        *(slate.pack, slate.pack_hash, slate.policies, slate.settings, slate.fingerprints),
        *(tuple(slate.numbers), tuple(words), tuple(slate.flags), slate.cut, slate.sampler),
    )


def _squeezed(value: Any) -> bytes:
    return _compressed(np.frombuffer(_ENCODER.encode(value), dtype=np.uint8))


def _columns_of(
    slates: Sequence[Slate], features: Sequence[str], words: Sequence[str]
) -> dict[str, Column]:
    sizes = [len(slate) for slate in slates]
    ids = np.concatenate([slate.ids for slate in slates])
    at = np.repeat(np.array([slate.at for slate in slates], dtype=np.int64), sizes)
    writer = _Writer(at, ids, sizes)
    columns: dict[str, Column] = {IDS: _ids_column(ids, sizes)}
    for name in features:
        columns[name] = writer.column(
            name, np.concatenate([_numbers(slate, name) for slate in slates])
        )
    columns["score"] = writer.column("score", np.concatenate([slate.scores for slate in slates]))
    ranks = np.concatenate([slate.ranking for slate in slates])
    columns["rank"] = writer.column("rank", ranks.astype(np.float64))
    columns["propensity"] = writer.column(
        "propensity", np.concatenate([slate.inclusion for slate in slates])
    )
    for name in words:
        said = chain.from_iterable(_said(slate, name) for slate in slates)
        columns[name] = _words_column(list(said))
    return columns


def _numbers(slate: Slate, name: str) -> Floats:
    found = slate.numbers.get(name)
    return np.full(len(slate), np.nan) if found is None else found


def _said(slate: Slate, name: str) -> Sequence[str | None]:
    said = slate.words.get(name)
    return said if said is not None and _WORDS.issuperset(said) else [None] * len(slate)


def _ids_column(ids: NDArray[np.int64], sizes: Sequence[int]) -> Column:
    """Ids ascend within a recall: what is kept are the steps between them."""
    steps = np.diff(ids, prepend=0)
    starts = np.cumsum([0, *sizes[:-1]])
    starts = starts[np.array(sizes) > 0]
    steps[starts] = ids[starts]
    return ["steps", _compressed(_narrow(steps))]


def _narrow(values: NDArray[np.int64]) -> NDArray[Any]:
    """The same whole numbers in as few bytes as hold them."""
    if not len(values) or values.min() >= 0:
        for kind in (np.uint8, np.uint16, np.uint32):
            if not len(values) or values.max() <= np.iinfo(kind).max:
                return values.astype(kind)
    return values


def _words_column(said: list[str | None]) -> Column:
    vocabulary = list(dict.fromkeys(said))
    number = {word: code for code, word in enumerate(vocabulary)}
    return [
        "words",
        vocabulary,
        _compressed(_narrow(np.array([number[word] for word in said], dtype=np.int64))),
    ]


class _Writer:
    """Columns over the candidates of a segment, written one after another."""

    def __init__(self, at: NDArray[np.int64], ids: NDArray[np.int64], sizes: Sequence[int]) -> None:
        self._at = at
        stops = np.cumsum(sizes).tolist()
        self._spans = [(stop - size, stop) for stop, size in zip(stops, sizes, strict=True) if size]
        self._by_memory = _order_by_memory(ids)
        self._written: dict[bytes, str] = {}
        self._values: dict[str, Floats] = {}

    def column(self, name: str, values: Floats) -> Column:
        """Return how these numbers are written in the fewest bytes."""
        values = np.ascontiguousarray(values, dtype=np.float64)
        bits = values.view(np.int64)
        self._values[name] = values
        if not len(bits) or (bits == bits[0]).all():
            return ["one", values[:1].tobytes()]
        key = hashlib.blake2b(bits.tobytes(), digest_size=16).digest()
        if key in self._written:
            return ["same", self._written[key]]
        self._written[key] = name
        return self._derived(name, bits) or self._stored(values, bits)

    def _derived(self, name: str, bits: Bits) -> Column | None:
        """Return how the column follows from others of the segment; None if it does not."""
        if name in _PICKS and all(one in self._values for one in _PICKS[name]):
            choices = _choices(*(self._values[one] for one in _PICKS[name])).view(np.int64)
            chosen = np.argmax(choices == bits, axis=0)
            if np.array_equal(np.take_along_axis(choices, chosen[None], axis=0)[0], bits):
                return ["pick", *_PICKS[name], _compressed(_narrow(chosen))]
        if name in _AMONG and _AMONG[name] in self._values:
            places = self._places_among(self._values[_AMONG[name]].view(np.int64), bits)
            if places is not None:
                return ["among", _AMONG[name], _compressed(_narrow(places))]
        if name in _LINES and _LINES[name] in self._values:
            found = _on_line(self._values[_LINES[name]], SHIPPED_KNOTS)
            if np.array_equal(found.view(np.int64), bits):
                return ["line", _LINES[name], list(SHIPPED_KNOTS)]
        return None

    def _places_among(self, others: Bits, bits: Bits) -> Bits | None:
        """Which candidate of its own recall has each number among ``others``; None where not all are there."""
        found = np.empty(len(bits), dtype=np.int64)
        for start, stop in self._spans:
            order = np.argsort(others[start:stop], kind="stable")
            held = others[start:stop][order]
            place = np.minimum(np.searchsorted(held, bits[start:stop]), max(stop - start - 1, 0))
            if not np.array_equal(held[place], bits[start:stop]):
                return None
            found[start:stop] = order[place]
        return found

    def _stored(self, values: Floats, bits: Bits) -> Column:
        candidates: list[Column] = []
        instants = _instants(values, self._at)
        if instants is not None:
            candidates.append(["days", *self._coded(instants)])
        distinct, codes = np.unique(bits, return_inverse=True)
        if len(distinct) <= len(bits) // 4:
            candidates.append(["codes", *self._codes(distinct, codes)])
        with np.errstate(over="ignore", invalid="ignore"):
            single = values.astype(np.float32)
        if np.array_equal(single.astype(np.float64).view(np.int64), bits):
            candidates.append(["float", _compressed(_apart(single))])
        else:
            candidates.append(["plain", _compressed(_apart(values)), True])
            candidates.append(["plain", _compressed(bits), False])
        return min(candidates, key=_length)

    def _coded(self, numbers: Bits) -> Column:
        distinct, codes = np.unique(numbers, return_inverse=True)
        return self._codes(distinct, codes)

    def _codes(self, distinct: Bits, codes: NDArray[np.int64]) -> Column:
        """The distinct numbers ascending, as steps, and which of them each row has: by memory if that is shorter."""
        steps = _compressed(_apart(np.diff(distinct, prepend=0)))
        plain, sorted_ = (_compressed(_narrow(some)) for some in (codes, codes[self._by_memory]))
        return [steps, min(plain, sorted_, key=len), len(sorted_) < len(plain)]


def _length(column: Column) -> int:
    return sum(len(part) for part in column if isinstance(part, bytes))


def _order_by_memory(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    small = ids.astype(np.uint16) if len(ids) and ids.min() >= 0 and ids.max() < 1 << 16 else ids
    return np.argsort(small, kind="stable")


def _instants(values: Floats, at: NDArray[np.int64]) -> Bits | None:
    """The instants since which these are the days; None if they are not."""
    unknown = np.isnan(values)
    sample = slice(0, 64)
    for some in (sample, slice(None)):
        known = np.where(unknown[some], 0.0, values[some])
        if not (np.abs(known) < 1e6).all():
            return None
        instants = np.where(unknown[some], _NEVER, at[some] - np.rint(known * DAY).astype(np.int64))
        if not np.array_equal(
            _days(instants, at[some]).view(np.int64), values[some].view(np.int64)
        ):
            return None
    return instants


def _days(instants: Bits, at: NDArray[np.int64]) -> Floats:
    days = np.maximum((at - np.where(instants == _NEVER, at, instants)) / DAY, 0.0)
    days[instants == _NEVER] = np.nan
    return np.asarray(days)


def _choices(first: Floats, second: Floats) -> Floats:
    """What may be picked: of either column, or their sum."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.stack([first, second, first + second])


def _on_line(values: Floats, knots: Sequence[Sequence[float]]) -> Floats:
    """What ``numpy.interp`` gives, in steps that every machine rounds alike."""
    scale, levels = np.array(knots, dtype=np.float64).T
    place = np.clip(np.searchsorted(scale, values, side="right") - 1, 0, len(scale) - 2)
    slopes = np.diff(levels) / np.diff(scale)
    found = slopes[place] * (values - scale[place]) + levels[place]
    found = np.where(values >= scale[-1], levels[-1], found)
    return np.asarray(np.where(values < scale[0], levels[0], found))


def _apart(values: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes of numbers, all first ones first: what is alike in them stands together."""
    return np.ascontiguousarray(values.view(np.uint8).reshape(len(values), -1).T).ravel()


def _together(data: NDArray[np.uint8], kind: str) -> NDArray[Any]:
    size = np.dtype(kind).itemsize
    return np.ascontiguousarray(data.reshape(size, -1).T).view(kind).ravel()


def _compressed(values: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    pl.DataFrame([pl.Series("", np.ascontiguousarray(values))]).write_ipc(file, compression="zstd")
    return file.getvalue()


def _plain(data: bytes) -> NDArray[Any]:
    return pl.read_ipc(io.BytesIO(data)).to_series().to_numpy()


def _compare(sealed: Sealed, slates: Sequence[Slate]) -> None:
    """Raise DamagedLab unless the parts give back every slate to the bit."""
    segment = Segment(sealed.parts.__getitem__)
    for slate, again in zip(slates, segment.slates(sealed.questions), strict=True):
        if not same_slates(slate, again):
            raise DamagedLab(
                f"The slate of decision {slate.decision} is not what was sealed; it stays as it is."
            )


# -- reading ----------------------------------------------------------------------------------------------------------


class Segment:
    """A sealed segment, whose parts are read when they are needed: ``part`` gives the bytes of one by its name."""

    def __init__(self, part: Callable[[str], bytes]) -> None:
        self._part = part
        self._columns: dict[str, Floats] = {}
        self._said: dict[str, pl.Series] = {}
        self.meta = msgspec.msgpack.decode(_plain(part(META)).tobytes(), type=_Meta)

    @cached_property
    def recalls(self) -> _Recalls:
        """What is told of each recall."""
        return msgspec.msgpack.decode(_plain(self._part(RECALLS)).tobytes(), type=_Recalls)

    @property
    def thinned(self) -> str:
        """When the features were thinned out; empty if they are there."""
        return self.meta.thinned

    @cached_property
    def flags(self) -> frozenset[str]:
        """The features that are flags in every slate that has them."""
        shared = self.meta.shared
        return frozenset(
            name
            for name in self.meta.features
            if all(name in one.flags for one in shared if name in one.names)
        )

    @cached_property
    def ids(self) -> NDArray[np.int64]:
        """The memory of each candidate."""
        steps = _plain(self._column(IDS)[1]).astype(np.int64)
        if not len(steps):
            return steps
        sizes = np.array(self.recalls.size)
        total = np.cumsum(steps)
        starts = (np.cumsum(sizes) - sizes)[sizes > 0]
        before = np.where(starts > 0, total[starts - 1], 0)
        return np.asarray(total - np.repeat(before, sizes[sizes > 0]))

    def series(self, name: str) -> pl.Series:
        """A column of the candidates, as the table of candidates has it."""
        if name == "decision":
            return pl.Series(
                name, np.repeat(np.array(self.recalls.decision, dtype=np.int64), self.recalls.size)
            )
        if name == IDS:
            return pl.Series(name, self.ids)
        if name in self.meta.words:
            return self._words(name)
        values = self.numbers(name)
        if name == "rank":
            return pl.Series(name, values.astype(np.int64))
        if name in self.meta.features:
            return number_series(name, values, flag=name in self.flags)
        return pl.Series(name, values)

    def _words(self, name: str) -> pl.Series:
        if name not in self._said:
            _, vocabulary, codes = self._column(name)
            self._said[name] = pl.Series(name, vocabulary, dtype=pl.String).gather(_plain(codes))
        return self._said[name]

    def _column(self, name: str) -> Column:
        column: Column = msgspec.msgpack.decode(self._part(name))
        return column

    def numbers(self, name: str) -> Floats:
        """The numbers of a column, NaN where a slate lacks it."""
        if name not in self._columns:
            self._columns[name] = self._read(self._column(name))
        return self._columns[name]

    def _read(self, column: Column) -> Floats:
        how, *kept = column
        if how == "one":
            one = np.frombuffer(kept[0], dtype="<f8")
            return np.full(len(self.ids), one[0]) if len(one) else np.empty(0)
        if how == "same":
            return self.numbers(kept[0])
        if how == "pick":
            choices = _choices(self.numbers(kept[0]), self.numbers(kept[1]))
            return np.asarray(
                np.take_along_axis(choices, _plain(kept[2])[None].astype(np.int64), axis=0)[0]
            )
        if how == "among":
            return self.numbers(kept[0])[_plain(kept[1]) + self._starts]
        if how == "line":
            return _on_line(self.numbers(kept[0]), kept[1])
        if how == "days":
            return _days(self._decoded(kept), self._at)
        if how == "codes":
            return self._decoded(kept).view(np.float64)
        if how == "float":
            return _together(_plain(kept[0]), "<f4").astype(np.float64)
        if how == "plain":
            data = _plain(kept[0])
            return _together(data, "<f8") if kept[1] else data.view(np.float64)
        raise DamagedLab(
            f"A sealed segment has a column of a kind that there never was: {how!r:.40}."
        )

    def _decoded(self, kept: Sequence[Any]) -> Bits:
        steps, codes, by_memory = kept
        distinct = np.cumsum(_together(_plain(steps), "<i8"))
        found = _plain(codes)
        if by_memory:
            ordered = np.empty_like(found)
            ordered[self._by_memory] = found
            found = ordered
        return np.asarray(distinct[found])

    @cached_property
    def _at(self) -> NDArray[np.int64]:
        return np.repeat(np.array(self.recalls.at, dtype=np.int64), self.recalls.size)

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """Where the candidates of its recall begin, for each candidate."""
        sizes = np.array(self.recalls.size)
        return np.repeat(np.cumsum(sizes) - sizes, sizes)

    @cached_property
    def _by_memory(self) -> NDArray[np.int64]:
        return _order_by_memory(self.ids)

    def slates(self, questions: Mapping[int, bytes]) -> Iterable[Slate]:
        """The slates of these recalls, each with the question that stayed with it. Thinned ones have no features."""
        recalls, stop = self.recalls, np.cumsum(self.recalls.size).tolist()
        for place, decision in enumerate(recalls.decision):
            if decision in questions:
                rows = slice(stop[place] - recalls.size[place], stop[place])
                yield self._slate(place, rows, Question.decoded(questions[decision], decision))

    def _slate(self, place: int, rows: slice, question: Question) -> Slate:
        recalls, shared = self.recalls, self.meta.shared[self.recalls.shared[place]]
        words = {name: self._words(name)[rows].to_list() for name in shared.words}
        given = {name: getattr(recalls, name)[place] for name in _OF_RECALL}
        return Slate(
            **given,
            **{
                name: getattr(question, name)
                for name in Question.__struct_fields__
                if name != "words"
            },
            **{
                name: getattr(shared, name)
                for name in ("pack", "pack_hash", "policies", "settings", "fingerprints")
            },
            cut=shared.cut,
            sampler=shared.sampler,
            flags=shared.flags,
            ids=self.ids[rows],
            scores=self.numbers("score")[rows],
            numbers={name: self.numbers(name)[rows] for name in shared.names},
            words=words | question.words,
            ranks=self.numbers("rank")[rows].astype(np.int64) if recalls.ranked[place] else None,
            propensity=self.numbers("propensity")[rows] if recalls.weighted[place] else None,
        )


def thin_parts(parts: Mapping[str, bytes], *, when: str) -> dict[str, bytes]:
    """Return the parts of a segment without its features; ``when`` is what its fingerprints say from then on."""
    meta = msgspec.msgpack.decode(_plain(parts[META]).tobytes(), type=_Meta)
    gone: dict[str, Any] = {"names": (), "words": (), "flags": (), "fingerprints": {THINNED: when}}
    meta.shared = [msgspec.structs.replace(one, **gone) for one in meta.shared]
    segment = Segment(parts.__getitem__)
    meta.lost |= {name: "bool" if name in segment.flags else "num" for name in meta.features}
    meta.lost |= dict.fromkeys(meta.words, "str")
    meta.features, meta.words, meta.thinned = [], [], when
    kept = {name: parts[name] for name in KEPT_WHEN_THIN}
    kept[META] = _squeezed(meta)
    # a column that is equal to a feature is written out, as the feature goes
    for name in ("score", "rank", "propensity"):
        if segment._column(name)[0] in ("same", "pick", "among", "line"):
            kept[name] = _ENCODER.encode(
                _Writer(segment._at, segment.ids, segment.recalls.size).column(
                    name, segment.numbers(name)
                )
            )
    return kept


THINNED = "thinned"
"""In the place of fingerprints: when the features of a recall were thinned out."""


# The log of a lab: sealed segments as lazy tables, and whole slates of any of its recalls.


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
            raise DamagedLab(
                f"The slate of decision {decision} was sealed, and no segment holds it."
            )
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
        candidates = {
            **ids,
            **self.features,
            **{name: kind for name, kind in CANDIDATES.items() if name not in ids},
        }
        return (
            self._lazy(DECISIONS, _decisions_of),
            self._lazy(candidates, _candidates_of),
            self._lazy(EXPOSURES, _exposures_of),
        )

    def _lazy(self, schema: Mapping[str, pl.DataType], make: _Make) -> pl.LazyFrame:
        def read(
            columns: list[str] | None,
            predicate: pl.Expr | None,
            rows: int | None,
            batch: int | None,
        ) -> Iterator[pl.DataFrame]:
            wanted = list(schema) if columns is None else columns
            for end in self._ends:
                if rows is not None and rows <= 0:
                    return
                frame = make(
                    Segment(partial(self._journal.segment_part, end)),
                    wanted,
                    schema,
                    self._questions,
                )
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
        **{
            name: [getattr(one, name) for one in shared]
            for name in ("pack", "pack_hash", "sampler", "cut")
        },
        **{
            name: [_json(getattr(one, name)) for one in shared]
            for name in ("fingerprints", "settings")
        },
    }
    columns: dict[str, Any] = {
        name: getattr(recalls, name) for name in schema if hasattr(recalls, name)
    }
    columns |= {
        name: [held[code] for code in recalls.shared]
        for name, held in of_pack.items()
        if name in wanted
    }
    columns |= {"candidates": recalls.size, "format": [FORMAT] * count}
    columns["challenge"] = [None if one is None else _json(one) for one in recalls.challenge]
    if not {"query", "project", "session", "cluster", "filters"}.isdisjoint(wanted):
        asked = questions(segment)
        columns |= {
            name: [getattr(one, name) for one in asked] for name in ("query", "project", "session")
        }
        columns["cluster"] = [
            one.project or one.session or str(decision)
            for one, decision in zip(asked, recalls.decision, strict=True)
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
    propensity = segment.numbers("propensity")[
        np.concatenate([np.empty(0, dtype=np.int64), *places])
    ]
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

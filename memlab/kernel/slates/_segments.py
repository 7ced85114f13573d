"""Sealed slates: some hundred recalls as compressed columns, and their queries.

Sealing splits a slate into two. The query, its vector, names and filters stay with the recall as a ``Question`` of some
hundred bytes, because a purge may have to change them. All other fields become named columns over the candidates of all
recalls of the segment. These columns contain numbers, memory ids, and words of memlab's own vocabularies. A segment
therefore contains no text, and is only rewritten when it is thinned.

Numbers are stored exactly. Each column has the encoding with the fewest bytes among those that reproduce it:

| kind | content |
|---|---|
| one | one number for all candidates |
| same | the name of an equal column |
| pick | the index of one of two columns, or of their sum: ``activation`` of ``seed`` and ``received`` |
| among | the index of the candidate of the same recall with this number in another column: ``session-seed`` in ``seed`` |
| line | a column, and the knots between which it is interpolated: ``closeness`` of ``similarity`` |
| days | instants, from which the days until the recall are computed |
| codes | the index of one of few numbers; sorted by memory if that makes longer runs |
| float | float32, transposed to bytes |
| plain | float64, transposed to bytes |

Measured on 1,500 recalls with 76 features of 100 candidates: a segment takes 5.3 kB per recall. A blob takes 32.6 kB,
and Parquet with zstd 13.1 kB.
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
from memlab.kernel.base.arrays import NO_ROWS, Floats, Ints, Values
from memlab.kernel.base.clock import DAY, INSTANT
from memlab.kernel.embedding import SHIPPED_KNOTS
from memlab.kernel.journal import Body, digest_parts
from memlab.kernel.schema import (
    KINDS,
    PROVENANCES,
    SCOPES,
    SOURCES,
    SPEAKER_ROLES,
    STATUSES,
    VISIBILITIES,
)
from memlab.kernel.slates._schema import CANDIDATES, DECISIONS, EXPOSURES
from memlab.kernel.slates._slate import (
    FORMAT,
    Question,
    Slate,
    decode,
    is_sealed,
    number_series,
    same_slates,
)

Bits = Ints
Column = list[Any]
"""An encoded column: the kind of its encoding, then its content."""

# The names of the parts of a segment that are not features.
META, RECALLS, IDS = "", "recalls", "memory_id"
KEPT_WHEN_THIN = (META, RECALLS, IDS, "score", "rank", "propensity")
"""The parts of a segment that remain after thinning."""

# The format of segments.
_FORMAT = 1

# Columns that can usually be derived from other columns. Each relation is verified for each segment before it is used.
_PICKS = {"activation": ("seed", "received")}
_AMONG = {"session-seed": "seed"}
_LINES = {"closeness": "similarity"}
_WORDS = frozenset(
    (*KINDS, *PROVENANCES, *SCOPES, *SOURCES, *SPEAKER_ROLES, *STATUSES, *VISIBILITIES, None)
)
"""The words that a segment may contain: memlab's own vocabularies, which reveal nothing about a memory."""

# The instant that represents a missing number of days.
_NEVER = np.iinfo(np.int64).min
_ENCODER = msgspec.msgpack.Encoder()


class _Shared(msgspec.Struct, frozen=True):
    """The fields that all slates of one pack have in common."""

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
    """The types of the features that thinning removed, by name."""


# Fields of a slate that are stored per recall.
_OF_RECALL = (
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
    "also",
    "challenge",
)


class _Recalls(msgspec.Struct):
    """The fields that differ between the recalls of a segment, as columns.

    Each column has one element per recall.
    """

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
    """The parts of a segment, and the queries of its recalls.

    Parameters
    ----------
    after, upto
        The numbers of the last recall before the segment and of the last recall in it.
    parts
        The encoded parts of the segment by name.
    questions
        The bytes that stay with each recall, by its number.
    """

    after: int
    upto: int
    parts: dict[str, bytes]
    questions: dict[int, bytes]

    @property
    def body(self) -> Body:
        """The body of the ``seal`` event that records this segment."""
        digest = digest_parts(sorted(self.parts.items()))
        return {
            "after": self.after,
            "upto": self.upto,
            "recalls": len(self.questions),
            "digest": digest,
        }


# -- sealing ----------------------------------------------------------------------------------------------------------


def seal(slates: Sequence[Slate], *, after: int) -> Sealed:
    """Split slates into the columns of a segment and the queries of the recalls.

    The segment is read back and compared with the slates before it is returned.

    Parameters
    ----------
    slates
        The slates, in the order of their decisions.
    after
        The number of the last recall of the previous segment.

    Returns
    -------
    Sealed
        The parts of the segment and the queries.

    Raises
    ------
    DamagedLab
        If a slate cannot be read back exactly.
    """
    # Slates of one pack have many fields in common. Each distinct set of these fields is stored once, and recalls refer
    # to it by index.
    shared: dict[bytes, int] = {}
    shared_fields: list[_Shared] = []
    recalls: dict[str, list[Any]] = {name: [] for name in _Recalls.__struct_fields__}
    questions = {}
    for slate in slates:
        own = {name: words for name, words in slate.words.items() if not _WORDS.issuperset(words)}
        questions[slate.decision] = Question.of(slate, own).encoded()
        common = _collect_shared(slate, [name for name in slate.words if name not in own])
        key = _ENCODER.encode(common)
        if key not in shared:
            shared[key] = len(shared_fields)
            shared_fields.append(common)
        recalls["shared"].append(shared[key])
        recalls["size"].append(len(slate))
        recalls["ranked"].append(slate.ranks is not None)
        recalls["weighted"].append(slate.propensity is not None)
        for name in _OF_RECALL:
            recalls[name].append(getattr(slate, name))
    features = list(dict.fromkeys(chain.from_iterable(fields.names for fields in shared_fields)))
    words = list(dict.fromkeys(chain.from_iterable(fields.words for fields in shared_fields)))
    ends = slates[0].decision, slates[-1].decision
    meta = _Meta(_FORMAT, after, ends[1], *ends, len(slates), shared_fields, features, words)
    parts = {META: _compress_struct(meta), RECALLS: _compress_struct(_Recalls(**recalls))}
    parts |= {
        name: _ENCODER.encode(column)
        for name, column in _encode_columns(slates, features, words).items()
    }
    sealed = Sealed(after, ends[1], parts, questions)
    _compare_sealed(sealed, slates)
    return sealed


def _collect_shared(slate: Slate, words: Sequence[str]) -> _Shared:
    """Return the fields of a slate that other slates of its pack share."""
    return _Shared(
        *(slate.pack, slate.pack_hash, slate.policies, slate.settings, slate.fingerprints),
        *(tuple(slate.numbers), tuple(words), tuple(slate.flags), slate.cut, slate.sampler),
    )


def _compress_struct(value: Any) -> bytes:
    """Encode a struct as msgpack and compress it."""
    return _compress(np.frombuffer(_ENCODER.encode(value), dtype=np.uint8))


def _encode_columns(
    slates: Sequence[Slate], features: Sequence[str], words: Sequence[str]
) -> dict[str, Column]:
    """Return the encoded columns of recalls, by name. A column may refer only to earlier columns."""
    # Features come first, because score, rank and propensity may equal one of them.
    sizes = [len(slate) for slate in slates]
    ids = np.concatenate([slate.ids for slate in slates])
    at = np.repeat(np.array([slate.at for slate in slates], dtype=np.int64), sizes)
    writer = _Writer(at, ids, sizes)
    columns: dict[str, Column] = {IDS: _encode_ids(ids, sizes)}
    for name in features:
        columns[name] = writer.column(
            name, np.concatenate([_read_numbers(slate, name) for slate in slates])
        )
    columns["score"] = writer.column("score", np.concatenate([slate.scores for slate in slates]))
    ranks = np.concatenate([slate.ranking for slate in slates])
    columns["rank"] = writer.column("rank", ranks.astype(np.float64))
    columns["propensity"] = writer.column(
        "propensity", np.concatenate([slate.inclusion for slate in slates])
    )
    for name in words:
        values = chain.from_iterable(_words_of(slate, name) for slate in slates)
        columns[name] = _encode_words(list(values))
    return columns


def _read_numbers(slate: Slate, name: str) -> Floats:
    """Return a numeric feature of a slate, or NaN for each candidate if it is missing."""
    values = slate.numbers.get(name)
    return np.full(len(slate), np.nan) if values is None else values


def _words_of(slate: Slate, name: str) -> Sequence[str | None]:
    """Return a string feature of a slate, or None for each candidate if unavailable.

    All values are None if the slate lacks the feature or has words outside memlab's vocabularies.
    """
    values = slate.words.get(name)
    return values if values is not None and _WORDS.issuperset(values) else [None] * len(slate)


def _encode_ids(ids: Ints, sizes: Sequence[int]) -> Column:
    """Encode memory ids as differences, which are small in ascending ids."""
    steps = np.diff(ids, prepend=0)
    starts = np.cumsum([0, *sizes[:-1]])
    starts = starts[np.array(sizes) > 0]
    steps[starts] = ids[starts]
    return ["steps", _compress(_narrow(steps))]


def _narrow(values: Ints) -> Values:
    """Convert whole numbers to uint8, uint16 or uint32 if one of these can store all; otherwise return them unchanged."""
    if not len(values) or values.min() >= 0:
        for kind in (np.uint8, np.uint16, np.uint32):
            if not len(values) or values.max() <= np.iinfo(kind).max:
                return values.astype(kind)
    return values


def _encode_words(values: list[str | None]) -> Column:
    """Encode a column of words as its vocabulary and the code of each word."""
    vocabulary = list(dict.fromkeys(values))
    number = {word: code for code, word in enumerate(vocabulary)}
    return [
        "words",
        vocabulary,
        _compress(_narrow(np.array([number[word] for word in values], dtype=np.int64))),
    ]


class _Writer:
    """The encoder of a segment's columns. A column may refer to columns encoded before it."""

    def __init__(self, at: Ints, ids: Ints, sizes: Sequence[int]) -> None:
        self._at = at
        stops = np.cumsum(sizes).tolist()
        self._spans = [(stop - size, stop) for stop, size in zip(stops, sizes, strict=True) if size]
        self._by_memory = _order_by_memory(ids)
        self._written: dict[bytes, str] = {}
        self._values: dict[str, Floats] = {}

    def column(self, name: str, values: Floats) -> Column:
        """Return a column in the encoding with the fewest bytes."""
        values = np.ascontiguousarray(values, dtype=np.float64)
        bits = values.view(np.int64)
        self._values[name] = values
        if not len(bits) or (bits == bits[0]).all():
            return ["one", values[:1].tobytes()]
        key = hashlib.blake2b(bits.tobytes(), digest_size=16).digest()
        if key in self._written:
            return ["same", self._written[key]]
        self._written[key] = name
        return self._encode_derived(name, bits) or self._encode_values(values, bits)

    def _encode_derived(self, name: str, bits: Bits) -> Column | None:
        """Encode a column by reference to columns that determine it, or return None."""
        # A reference is only used if it reproduces the column exactly.
        if name in _PICKS and all(source in self._values for source in _PICKS[name]):
            choices = _stack_choices(*(self._values[source] for source in _PICKS[name])).view(
                np.int64
            )
            chosen = np.argmax(choices == bits, axis=0)
            if np.array_equal(np.take_along_axis(choices, chosen[None], axis=0)[0], bits):
                return ["pick", *_PICKS[name], _compress(_narrow(chosen))]
        if name in _AMONG and _AMONG[name] in self._values:
            indices = self._find_indices(self._values[_AMONG[name]].view(np.int64), bits)
            if indices is not None:
                return ["among", _AMONG[name], _compress(_narrow(indices))]
        if name in _LINES and _LINES[name] in self._values:
            line = _interpolate(self._values[_LINES[name]], SHIPPED_KNOTS)
            if np.array_equal(line.view(np.int64), bits):
                return ["line", _LINES[name], list(SHIPPED_KNOTS)]
        return None

    def _find_indices(self, others: Bits, bits: Bits) -> Bits | None:
        """Return, for each number, the index of an equal number of ``others`` in the same recall.

        Returns None if a number does not occur there.
        """
        indices = np.empty(len(bits), dtype=np.int64)
        for start, stop in self._spans:
            order = np.argsort(others[start:stop], kind="stable")
            sorted_numbers = others[start:stop][order]
            position = np.minimum(
                np.searchsorted(sorted_numbers, bits[start:stop]), max(stop - start - 1, 0)
            )
            if not np.array_equal(sorted_numbers[position], bits[start:stop]):
                return None
            indices[start:stop] = order[position]
        return indices

    def _encode_values(self, values: Floats, bits: Bits) -> Column:
        """Return the shortest encoding of a column that does not refer to other columns."""
        candidates: list[Column] = []
        instants = _find_instants(values, self._at)
        if instants is not None:
            candidates.append(["days", *self._encode_distinct(instants)])
        distinct, codes = np.unique(bits, return_inverse=True)
        if len(distinct) <= len(bits) // 4:
            candidates.append(["codes", *self._encode_codes(distinct, codes)])
        with np.errstate(over="ignore", invalid="ignore"):
            single = values.astype(np.float32)
        if np.array_equal(single.astype(np.float64).view(np.int64), bits):
            candidates.append(["float", _compress(_transpose_bytes(single))])
        else:
            candidates.append(["plain", _compress(_transpose_bytes(values)), True])
            candidates.append(["plain", _compress(bits), False])
        return min(candidates, key=_count_bytes)

    def _encode_distinct(self, numbers: Bits) -> Column:
        """Encode numbers as a list of distinct numbers and an index for each number."""
        distinct, codes = np.unique(numbers, return_inverse=True)
        return self._encode_codes(distinct, codes)

    def _encode_codes(self, distinct: Bits, codes: Ints) -> Column:
        """Encode a column as its ascending distinct values and one code per row.

        Codes are stored in the order of candidates or of memory ids, whichever compresses better.
        """
        steps = _compress(_transpose_bytes(np.diff(distinct, prepend=0)))
        plain, sorted_ = (
            _compress(_narrow(codes_in_order)) for codes_in_order in (codes, codes[self._by_memory])
        )
        return [steps, min(plain, sorted_, key=len), len(sorted_) < len(plain)]


def _count_bytes(column: Column) -> int:
    """Return the number of bytes of an encoded column."""
    return sum(len(part) for part in column if isinstance(part, bytes))


def _order_by_memory(ids: Ints) -> Ints:
    """Return the indices that stably sort candidates by memory id."""
    small = ids.astype(np.uint16) if len(ids) and ids.min() >= 0 and ids.max() < 1 << 16 else ids
    return np.argsort(small, kind="stable")


def _find_instants(values: Floats, at: Ints) -> Bits | None:
    """Return instants that reproduce a column of ages in days, or None if none do.

    The first 64 numbers are tested first, because most columns do not contain days.
    """
    unknown = np.isnan(values)
    sample = slice(0, 64)
    for part in (sample, slice(None)):
        days = np.where(unknown[part], 0.0, values[part])
        if not (np.abs(days) < 1e6).all():
            return None
        instants = np.where(unknown[part], _NEVER, at[part] - np.rint(days * DAY).astype(np.int64))
        if not np.array_equal(
            _days_since(instants, at[part]).view(np.int64), values[part].view(np.int64)
        ):
            return None
    return instants


def _days_since(instants: Bits, at: Ints) -> Floats:
    """Return the days from each instant to its recall, or NaN for a missing instant."""
    days = np.maximum((at - np.where(instants == _NEVER, at, instants)) / DAY, 0.0)
    days[instants == _NEVER] = np.nan
    return np.asarray(days)


def _stack_choices(first: Floats, second: Floats) -> Floats:
    """Return two columns and their sum, stacked in one array.

    The encoding "pick" stores which of the three equals each value.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return np.stack([first, second, first + second])


def _interpolate(values: Floats, knots: Sequence[Sequence[float]]) -> Floats:
    """Interpolate like ``numpy.interp``, with identical rounding on every machine."""
    scale, levels = np.array(knots, dtype=np.float64).T
    segment = np.clip(np.searchsorted(scale, values, side="right") - 1, 0, len(scale) - 2)
    slopes = np.diff(levels) / np.diff(scale)
    levels_at = slopes[segment] * (values - scale[segment]) + levels[segment]
    levels_at = np.where(values >= scale[-1], levels[-1], levels_at)
    return np.asarray(np.where(values < scale[0], levels[0], levels_at))


def _transpose_bytes(values: Values) -> NDArray[np.uint8]:
    """Reorder the bytes of numbers: first all first bytes, then all second bytes.

    Neighbouring bytes are then often equal, which compresses well.
    """
    return np.ascontiguousarray(values.view(np.uint8).reshape(len(values), -1).T).ravel()


def _restore_bytes(data: NDArray[np.uint8], kind: str) -> Values:
    """Restore numbers from bytes reordered by ``_transpose_bytes``."""
    return np.ascontiguousarray(data.reshape(np.dtype(kind).itemsize, -1).T).view(kind).ravel()


def _compress(values: Values) -> bytes:
    """Compress an array as an Arrow file with zstd."""
    file = io.BytesIO()
    pl.DataFrame([pl.Series("", np.ascontiguousarray(values))]).write_ipc(file, compression="zstd")
    return file.getvalue()


def _decompress(data: bytes) -> Values:
    """Decompress an array from an Arrow file."""
    return pl.read_ipc(io.BytesIO(data)).to_series().to_numpy()


def _compare_sealed(sealed: Sealed, slates: Sequence[Slate]) -> None:
    """Raise DamagedLab unless each slate can be read back exactly."""
    segment = Segment(sealed.parts.__getitem__)
    for slate, again in zip(slates, segment.slates(sealed.questions), strict=True):
        if not same_slates(slate, again):
            raise DamagedLab(
                f"The slate of decision {slate.decision} cannot be read back from its new segment, so this file of slates "
                "was not written. Run memlab upkeep check."
            )


# -- reading ----------------------------------------------------------------------------------------------------------


class Segment:
    """A sealed segment. Each of its parts is read at first use.

    Parameters
    ----------
    part
        A function that returns the bytes of a part by its name.
    """

    def __init__(self, part: Callable[[str], bytes]) -> None:
        self._part = part
        self._columns: dict[str, Floats] = {}
        self._word_columns: dict[str, pl.Series] = {}
        self.meta = msgspec.msgpack.decode(_decompress(part(META)).tobytes(), type=_Meta)

    @cached_property
    def recalls(self) -> _Recalls:
        """The fields that a segment stores once per recall."""
        return msgspec.msgpack.decode(_decompress(self._part(RECALLS)).tobytes(), type=_Recalls)

    @property
    def thinned(self) -> str:
        """The time when the features were removed by thinning, or "" if they are present."""
        return self.meta.thinned

    @cached_property
    def flags(self) -> frozenset[str]:
        """The features that are boolean in every slate that has them."""
        shared = self.meta.shared
        return frozenset(
            name
            for name in self.meta.features
            if all(name in fields.flags for fields in shared if name in fields.names)
        )

    @cached_property
    def ids(self) -> Ints:
        """The memory id of each candidate."""
        steps = _decompress(self._column(IDS)[1]).astype(np.int64)
        if not len(steps):
            return steps
        sizes = np.array(self.recalls.size)
        total = np.cumsum(steps)
        starts = (np.cumsum(sizes) - sizes)[sizes > 0]
        before = np.where(starts > 0, total[starts - 1], 0)
        return np.asarray(total - np.repeat(before, sizes[sizes > 0]))

    def series(self, name: str) -> pl.Series:
        """Return one column of the table of candidates for this segment.

        Parameters
        ----------
        name
            The name of the column.

        Returns
        -------
        polars.Series
            One value per candidate of the segment.
        """
        if name == "decision":
            return pl.Series(
                name, np.repeat(np.array(self.recalls.decision, dtype=np.int64), self.recalls.size)
            )
        if name == IDS:
            return pl.Series(name, self.ids)
        if name in self.meta.words:
            return self._read_words(name)
        values = self.numbers(name)
        if name == "rank":
            return pl.Series(name, values.astype(np.int64))
        if name in self.meta.features:
            return number_series(name, values, flag=name in self.flags)
        return pl.Series(name, values)

    def _read_words(self, name: str) -> pl.Series:
        """Return a string feature of all candidates as a series."""
        if name not in self._word_columns:
            _, vocabulary, codes = self._column(name)
            self._word_columns[name] = pl.Series(name, vocabulary, dtype=pl.String).gather(
                _decompress(codes)
            )
        return self._word_columns[name]

    def _column(self, name: str) -> Column:
        """Return a column of the segment in its encoded form."""
        column: Column = msgspec.msgpack.decode(self._part(name))
        return column

    def numbers(self, name: str) -> Floats:
        """Return a numeric column, with NaN for slates that lack it.

        Parameters
        ----------
        name
            The name of the column.

        Returns
        -------
        numpy.ndarray
            One number per candidate of the segment.
        """
        if name not in self._columns:
            self._columns[name] = self._decode_column(self._column(name))
        return self._columns[name]

    def _decode_column(self, column: Column) -> Floats:
        """Decode a numeric column from its encoded form."""
        # The table at the top of this module explains the kinds.
        kind, *content = column
        if kind == "one":
            number = np.frombuffer(content[0], dtype="<f8")
            return np.full(len(self.ids), number[0]) if len(number) else np.empty(0)
        if kind == "same":
            return self.numbers(content[0])
        if kind == "pick":
            choices = _stack_choices(self.numbers(content[0]), self.numbers(content[1]))
            return np.asarray(
                np.take_along_axis(choices, _decompress(content[2])[None].astype(np.int64), axis=0)[
                    0
                ]
            )
        if kind == "among":
            return self.numbers(content[0])[_decompress(content[1]) + self._starts]
        if kind == "line":
            return _interpolate(self.numbers(content[0]), content[1])
        if kind == "days":
            return _days_since(self._decode_codes(content), self._at)
        if kind == "codes":
            return self._decode_codes(content).view(np.float64)
        if kind == "float":
            return _restore_bytes(_decompress(content[0]), "<f4").astype(np.float64)
        if kind == "plain":
            data = _decompress(content[0])
            return _restore_bytes(data, "<f8") if content[1] else data.view(np.float64)
        raise DamagedLab(
            f"A sealed segment has a column of an unknown kind: {kind!r:.40}. Restore the lab from a backup."
        )

    def _decode_codes(self, content: Sequence[Any]) -> Bits:
        """Replace codes by the distinct numbers that the codes index."""
        steps, codes, by_memory = content
        distinct = np.cumsum(_restore_bytes(_decompress(steps), "<i8"))
        numbers = _decompress(codes)
        if by_memory:
            ordered = np.empty_like(numbers)
            ordered[self._by_memory] = numbers
            numbers = ordered
        return np.asarray(distinct[numbers])

    @cached_property
    def _at(self) -> Ints:
        return np.repeat(np.array(self.recalls.at, dtype=np.int64), self.recalls.size)

    @cached_property
    def _starts(self) -> Ints:
        """For each candidate, the index of the first candidate of the same recall."""
        sizes = np.array(self.recalls.size)
        return np.repeat(np.cumsum(sizes) - sizes, sizes)

    @cached_property
    def _by_memory(self) -> Ints:
        return _order_by_memory(self.ids)

    def slates(self, questions: Mapping[int, bytes]) -> Iterable[Slate]:
        """Yield the slates of recalls. Slates of a thinned segment have no features.

        Parameters
        ----------
        questions
            The encoded query of each recall, by its number. Recalls without an entry are skipped.

        Yields
        ------
        Slate
            The slates in order.
        """
        recalls, stop = self.recalls, np.cumsum(self.recalls.size).tolist()
        for index, decision in enumerate(recalls.decision):
            if decision in questions:
                rows = slice(stop[index] - recalls.size[index], stop[index])
                yield self._slate(index, rows, Question.decoded(questions[decision], decision))

    def _slate(self, index: int, rows: slice, question: Question) -> Slate:
        """Build the slate of one recall from its rows in the segment and its query."""
        recalls, shared = self.recalls, self.meta.shared[self.recalls.shared[index]]
        words = {name: self._read_words(name)[rows].to_list() for name in shared.words}
        fields = {name: getattr(recalls, name)[index] for name in _OF_RECALL}
        return Slate(
            **fields,
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
            ranks=self.numbers("rank")[rows].astype(np.int64) if recalls.ranked[index] else None,
            propensity=self.numbers("propensity")[rows] if recalls.weighted[index] else None,
        )


def thin_parts(parts: Mapping[str, bytes], *, when: str) -> dict[str, bytes]:
    """Return the parts of a segment after removing all features.

    Parameters
    ----------
    parts
        The parts of the segment.
    when
        The time of thinning. It replaces the fingerprints of the removed features.

    Returns
    -------
    dict
        The remaining parts by name.
    """
    meta = msgspec.msgpack.decode(_decompress(parts[META]).tobytes(), type=_Meta)
    emptied: dict[str, Any] = {
        "names": (),
        "words": (),
        "flags": (),
        "fingerprints": {THINNED: when},
    }
    meta.shared = [msgspec.structs.replace(fields, **emptied) for fields in meta.shared]
    segment = Segment(parts.__getitem__)
    meta.lost |= {name: "bool" if name in segment.flags else "num" for name in meta.features}
    meta.lost |= dict.fromkeys(meta.words, "str")
    meta.features, meta.words, meta.thinned = [], [], when
    remaining = {name: parts[name] for name in KEPT_WHEN_THIN}
    remaining[META] = _compress_struct(meta)
    # A column that refers to a feature is stored in full, because the feature is removed.
    for name in ("score", "rank", "propensity"):
        if segment._column(name)[0] in ("same", "pick", "among", "line"):
            remaining[name] = _ENCODER.encode(
                _Writer(segment._at, segment.ids, segment.recalls.size).column(
                    name, segment.numbers(name)
                )
            )
    return remaining


THINNED = "thinned"
"""The key under which the fingerprints of a thinned recall store the time of thinning."""


# The log of a lab is read as lazy tables of sealed segments, or as the slates of single recalls.


class LogJournal(Protocol):
    """The methods of a journal that reading a log needs."""

    def slates(self, after: int = 0, *, upto: int | None = None) -> Iterator[tuple[int, bytes]]: ...

    def segments(self) -> dict[int, str | None]: ...

    def segment_part(self, upto: int, name: str) -> bytes: ...


_last_segments: WeakKeyDictionary[LogJournal, tuple[int, bytes, Segment]] = WeakKeyDictionary()
"""The segment that was last read from each journal. Slates are read in order, so it is usually needed again."""


def read_slates(journal: LogJournal, after: int = 0, *, upto: int | None = None) -> Iterator[Slate]:
    """Yield the sealed and unsealed slates of the recalls ``after < decision <= upto``.

    Parameters
    ----------
    journal
        The journal of a lab.
    after, upto
        The range of decisions. None means no upper bound.

    Yields
    ------
    Slate
        The slates in the order of decisions.

    Raises
    ------
    DamagedLab
        If a slate was altered.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember("Ana prefers tabs")
    >>> hits = lab.recall("tabs")
    >>> [slate.query for slate in read_slates(lab.io.store.journal)]
    ['tabs']
    """
    ends: list[int] | None = None
    waiting: dict[int, bytes] = {}
    end = 0
    for decision, blob in journal.slates(after, upto=upto):
        if waiting and (decision > end or not is_sealed(blob)):
            yield from _load_segment(journal, end).slates(waiting)
            waiting = {}
        if not is_sealed(blob):
            yield decode(blob, decision=decision)
            continue
        ends = list(journal.segments()) if ends is None else ends
        index = bisect_left(ends, decision)
        if index == len(ends):
            raise DamagedLab(
                f"The slate of decision {decision} was sealed, but no segment contains it. Restore the lab from a backup."
            )
        end = ends[index]
        waiting[decision] = blob
    if waiting:
        yield from _load_segment(journal, end).slates(waiting)


def _load_segment(journal: LogJournal, upto: int) -> Segment:
    """Return the segment whose last recall is ``upto``, from a cache if unchanged."""
    meta = journal.segment_part(upto, META)
    cached = _last_segments.get(journal)
    if cached is not None and cached[:2] == (upto, meta):
        return cached[2]
    segment = Segment(partial(journal.segment_part, upto))
    _last_segments[journal] = upto, meta, segment
    return segment


class SealedLog:
    """The sealed segments of a log. A segment is read when a query of a table needs it.

    Parameters
    ----------
    journal
        The journal with the segments.
    ends
        The number of the last recall of each segment.
    """

    def __init__(self, journal: LogJournal, ends: Sequence[int]) -> None:
        self._journal = journal
        self._ends = tuple(ends)
        metas = [Segment(partial(journal.segment_part, end)) for end in ends]
        self.thinned = sum(segment.meta.count for segment in metas if segment.thinned)
        self.features = _merge_features(metas)

    def __len__(self) -> int:
        return len(self._ends)

    def scan(self) -> tuple[pl.LazyFrame, pl.LazyFrame, pl.LazyFrame]:
        """Return decisions, candidates and exposures of all segments as lazy frames.

        Returns
        -------
        tuple of polars.LazyFrame
            Rows in the order of decisions. A feature that a segment lacks is null.
        """
        ids = {name: kind for name, kind in CANDIDATES.items() if name in ("decision", IDS)}
        candidates = {
            **ids,
            **self.features,
            **{name: kind for name, kind in CANDIDATES.items() if name not in ids},
        }
        return (
            self._scan_table(DECISIONS, _decisions_of),
            self._scan_table(candidates, _candidates_of),
            self._scan_table(EXPOSURES, _exposures_of),
        )

    def _scan_table(self, schema: Mapping[str, pl.DataType], make: _Make) -> pl.LazyFrame:
        """Return a lazy frame of one table over all segments; ``make`` builds the frame of one segment.

        Collecting the frame reads only the columns that the query needs.
        """

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
        """Return the queries of a segment's recalls, in order."""
        meta = segment.meta
        blobs = self._journal.slates(meta.first - 1, upto=meta.last)
        return [Question.decoded(blob, decision) for decision, blob in blobs]


_Questions = Callable[[Segment], list[Question]]
_Make = Callable[[Segment, list[str], Mapping[str, pl.DataType], _Questions], pl.DataFrame]


# The Polars types by the names of types that a segment stores for removed features.
_TYPES: dict[str, pl.DataType] = {"num": pl.Float64(), "bool": pl.Boolean(), "str": pl.String()}


def _merge_features(segments: Sequence[Segment]) -> dict[str, pl.DataType]:
    """Return the names and types of the features of all segments.

    A feature is boolean if it is boolean in every segment that has it.
    """
    features: dict[str, pl.DataType] = {}
    for segment in segments:
        for name in segment.meta.features:
            kind = pl.Boolean() if name in segment.flags else pl.Float64()
            features[name] = kind if features.get(name, kind) == kind else pl.Float64()
        features |= dict.fromkeys(segment.meta.words, pl.String())
    for segment in segments:
        for name, lost in segment.meta.lost.items():
            features.setdefault(name, _TYPES[lost])
    return features


def _candidates_of(
    segment: Segment, wanted: list[str], schema: Mapping[str, pl.DataType], questions: _Questions
) -> pl.DataFrame:
    """Return the requested columns of a segment's candidates as a frame; columns without data are null."""
    available = {"decision", *CANDIDATES, *segment.meta.features, *segment.meta.words}
    count = sum(segment.recalls.size)
    return pl.DataFrame(
        [
            segment.series(name).cast(schema[name])
            if name in available
            else pl.Series(name, [None], dtype=schema[name]).new_from_index(0, count)
            for name in wanted
        ]
    )


def _write_json(value: object) -> str:
    """Encode a value as JSON text."""
    return msgspec.json.encode(value).decode()


def _decisions_of(
    segment: Segment, wanted: list[str], schema: Mapping[str, pl.DataType], questions: _Questions
) -> pl.DataFrame:
    """Return the requested columns of a segment's decisions as a frame."""
    recalls, shared, count = segment.recalls, segment.meta.shared, segment.meta.count
    # Fields of a pack are converted once per pack. Queries are only decoded if a requested column needs them.
    of_pack: dict[str, list[Any]] = {
        **{
            name: [getattr(row, name) for row in shared]
            for name in ("pack", "pack_hash", "sampler", "cut")
        },
        **{
            name: [_write_json(getattr(row, name)) for row in shared]
            for name in ("fingerprints", "settings")
        },
    }
    columns: dict[str, Any] = {
        name: getattr(recalls, name) for name in schema if hasattr(recalls, name)
    }
    columns |= {
        name: [values[code] for code in recalls.shared]
        for name, values in of_pack.items()
        if name in wanted
    }
    columns |= {"candidates": recalls.size, "format": [FORMAT] * count}
    columns["challenge"] = [None if row is None else _write_json(row) for row in recalls.challenge]
    if not {"query", "project", "session", "cluster", "filters"}.isdisjoint(wanted):
        queries = questions(segment)
        columns |= {
            name: [getattr(row, name) for row in queries]
            for name in ("query", "project", "session")
        }
        columns["cluster"] = [
            row.project or row.session or str(decision)
            for row, decision in zip(queries, recalls.decision, strict=True)
        ]
        columns["filters"] = [_write_json(row.filters) for row in queries]
    return pl.DataFrame([_build_series(name, columns[name], schema[name]) for name in wanted])


def _build_series(name: str, values: Sequence[Any], kind: pl.DataType) -> pl.Series:
    """Return a column in its declared type, with times given as microseconds."""
    if kind == INSTANT:
        return pl.Series(name, values, dtype=pl.Int64).cast(kind)
    return pl.Series(name, values, dtype=kind)


def _exposures_of(
    segment: Segment, wanted: list[str], schema: Mapping[str, pl.DataType], questions: _Questions
) -> pl.DataFrame:
    """Return the requested columns of a segment's exposures as a frame."""
    recalls = segment.recalls
    # An item without a logged conditional probability gets 1 if it was certain to be shown, and null otherwise.
    sizes = [len(ids) for ids in recalls.shown]
    ids_shown = np.array(
        [id for ids_of_recall in recalls.shown for id in ids_of_recall], dtype=np.int64
    )
    stop = np.cumsum(recalls.size)
    indices = [
        start + np.searchsorted(segment.ids[start:end], ids)
        for start, end, ids in zip(stop - recalls.size, stop, recalls.shown, strict=True)
    ]
    propensity = segment.numbers("propensity")[np.concatenate([NO_ROWS, *indices])]
    conditional = np.where(propensity == 1.0, 1.0, np.nan)
    ends = np.cumsum(sizes)
    for probabilities, size, end in zip(recalls.conditional, sizes, ends, strict=True):
        if probabilities:
            conditional[end - size : end] = probabilities
    probes = zip(recalls.shown, recalls.probes, strict=True)
    columns = {
        "decision": np.repeat(np.array(recalls.decision, dtype=np.int64), sizes),
        "position": np.concatenate([np.arange(1, size + 1) for size in sizes]),
        IDS: ids_shown,
        "propensity": propensity,
        "conditional": pl.Series(conditional).fill_nan(None),
        "probe": pl.Series(
            [id in ids_of_recall for ids, ids_of_recall in probes for id in ids], dtype=pl.Boolean
        ),
    }
    return pl.DataFrame([pl.Series(name, columns[name], dtype=schema[name]) for name in wanted])

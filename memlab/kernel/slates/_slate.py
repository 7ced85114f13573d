"""One recall and its bytes.

A slate is one blob beside its event: a msgpack header, then ids, scores and features in columns, guarded by a CRC,
because a flipped bit in a matrix of doubles would otherwise change a result without a word.

Every bit of a feature is kept, and no more than it takes: a column that is the same for all candidates is one float64,
one that float32 holds exactly (a flag, a count) is float32, any other float64. A default slate of 100 candidates and 46
features takes 22 kB instead of 50, and its commit half the time.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import DamagedLab, InputError, NewerLab
from memlab.kernel.base.display import Displayed, clip, table
from memlab.kernel.base.printable import printable

__all__ = [
    "BLOB_FORMAT",
    "FORMAT",
    "Constants",
    "Question",
    "Slate",
    "constants_of",
    "decode",
    "encode",
    "is_sealed",
    "question_of",
    "same_slates",
    "with_question",
]

FORMAT = 2
"""The format of segments and tables. Format 1 knew neither ranks nor propensities."""

BLOB_FORMAT = 3
"""The format of blobs. Formats 1 and 2 kept every feature as a row of float64."""

_MAGIC = b"MLS"
_PREFIX = 12  # magic and format, CRC of what follows, length of the header: four bytes each

_WHOLE, _SAME, _SINGLE = b"wsf"
"""How a column of numbers is kept: float64, one float64 for all candidates, float32."""

_FLAGS_OF_FORMAT_1 = (
    "names-speaker",
    "names-other",
    "same-session",
    "same-branch",
    "asks",
    "answers",
    "pinned",
)


@dataclass(frozen=True)
class Slate(Displayed):
    """One recall. Arrays run over the candidates in the order of their ids.

    ``numbers`` holds the numeric and boolean features (booleans as 0 and 1, null as NaN; ``flags`` names them),
    ``words`` the others. ``shown`` are ids in the order in which they were shown, ``probes`` those of them that were
    shown to learn. ``cut`` says how the pool was chosen.

    ``ranks`` are those of the logging policy over the whole pool, from 1; None means by score, ties by id.
    ``propensity`` is the probability with which each candidate was to be shown; None means 1 for what was shown and 0
    for the rest. ``conditional`` holds, for each one shown, its probability given those drawn before it; empty means 1
    where that follows from the propensity, else unknown.

    ``filters`` says what the caller admitted, by the names of ``recall``'s arguments; ``also``, by the id of one shown,
    the near-duplicates for which it stands. ``challenge`` holds, while packs were challenged, the ``design``, the most
    that chance could add (``draws``), the head of the ``live`` pack and the ``heads`` of challengers by memory ids; of
    an A/B, ``whose`` head was shown ("" for the live pack's) and the probability of each (``shares``).
    ``known`` is what the slot of that name gave: the probability that something of the pool answers; below its floor
    ``wanted`` is how many the caller asked for, and the head's ``limit`` may be less.
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
    seed: int | None = None
    kappa: float | None = None
    ranks: NDArray[np.int64] | None = None
    propensity: NDArray[np.float64] | None = None
    conditional: tuple[float, ...] = ()
    probes: tuple[int, ...] = ()
    session: str | None = None
    branch: str | None = None
    flags: tuple[str, ...] = ()
    filters: dict[str, Any] = field(default_factory=dict)
    also: dict[int, tuple[int, ...]] = field(default_factory=dict)
    challenge: dict[str, Any] | None = None
    known: float | None = None
    wanted: int | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        place = f"recall {self.decision}" if self.decision else "not logged"
        size = f"{len(self):,} candidates, {len(self.shown)} shown, for {clip(self.query)!r}"
        return printable(f"<Slate, {place}: {size}, pack {self.pack} [{self.pack_hash[:12]}]>")

    def _display(self) -> object:
        best = self.frame.select("rank", "memory_id", "score", "propensity").sort("rank").head(10)
        rows = [
            [rank, id, f"{score:.4f}", f"{chance:.3f}"]
            for rank, id, score, chance in best.iter_rows()
        ]
        notes = ["the best by score; slate.frame has all, with their features"]
        return table(self, best.columns, rows, notes=notes)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Where each one shown stands among the candidates; InputError if one is not among them."""
        wanted = np.array(self.shown, dtype=np.int64)
        places = np.minimum(np.searchsorted(self.ids, wanted), max(len(self.ids) - 1, 0))
        if len(wanted) and (not len(self.ids) or (self.ids[places] != wanted).any()):
            raise InputError(
                f"Decision {self.decision} shows what is no candidate, or its ids do not ascend."
            )
        return places

    @cached_property
    def ranking(self) -> NDArray[np.int64]:
        """The rank of each candidate by the logging policy, from 1: ``ranks``, or by score with ties by id."""
        if self.ranks is not None:
            return self.ranks
        ranks = np.empty(len(self.ids), dtype=np.int64)
        ranks[np.argsort(-self.scores, kind="stable")] = np.arange(1, len(ranks) + 1)
        return ranks

    @cached_property
    def inclusion(self) -> NDArray[np.float64]:
        """The probability with which each candidate was to be shown: ``propensity``, or certainty."""
        if self.propensity is not None:
            return self.propensity
        sure = np.zeros(len(self.ids))
        sure[self.places] = 1.0
        return sure

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The candidates: ``memory_id``, the features, ``score``, ``rank`` over the pool and ``propensity``."""
        return pl.DataFrame(
            [
                pl.Series("memory_id", self.ids),
                *(
                    number_series(name, values, flag=name in self.flags)
                    for name, values in self.numbers.items()
                ),
                *(pl.Series(name, values, dtype=pl.String) for name, values in self.words.items()),
                pl.Series("score", self.scores),
                pl.Series("rank", self.ranking),
                pl.Series("propensity", self.inclusion),
            ]
        )


def same_slates(one: Slate, other: Slate) -> bool:
    """Return whether two slates are the same to the bit, NaN equal to NaN."""
    return all(_alike(getattr(one, part.name), getattr(other, part.name)) for part in fields(one))


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return (
            isinstance(other, np.ndarray)
            and one.dtype == other.dtype
            and one.tobytes() == other.tobytes()
        )
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_alike(one[name], other[name]) for name in one)
    return bool(one == other)


def number_series(name: str, values: NDArray[np.float64], *, flag: bool) -> pl.Series:
    """A numeric feature as a column, a flag as a boolean one; null where the slate holds NaN."""
    if not flag:
        return pl.Series(name, values, nan_to_null=True)
    unknown = np.isnan(values)
    series = pl.Series(name, values > 0.5)
    return series.set(pl.Series(unknown), None) if unknown.any() else series


class _Given(msgspec.Struct, kw_only=True):
    """What the header of every format holds."""

    format: int
    count: int
    names: list[str]
    at: int
    query: str
    vector: bytes
    limit: int
    project: str | None
    pack: str
    pack_hash: str
    policies: dict[str, str]
    settings: dict[str, bool | int | float | str]
    fingerprints: dict[str, str]
    state: int
    cut: str
    sampler: str
    words: dict[str, list[str | None] | str | None]
    shown: tuple[int, ...]


class _Header(_Given, kw_only=True):
    """``kept`` says of each name how its numbers are kept; a word of its own stands for all candidates."""

    kept: bytes = b""
    seed: int | None
    kappa: float | None
    conditional: tuple[float, ...]
    probes: tuple[int, ...]
    session: str | None
    branch: str | None = None
    flags: tuple[str, ...]
    ranked: bool
    weighted: bool
    filters: dict[str, Any] = {}
    also: dict[int, tuple[int, ...]] = {}
    challenge: dict[str, Any] | None = None
    known: float | None = None
    wanted: int | None = None


class _Known(_Header, kw_only=True):
    """A header whose constant parts are encoded already."""

    names: msgspec.Raw  # type: ignore[assignment]  # the same bytes
    policies: msgspec.Raw  # type: ignore[assignment]
    settings: msgspec.Raw  # type: ignore[assignment]
    fingerprints: msgspec.Raw  # type: ignore[assignment]
    flags: msgspec.Raw  # type: ignore[assignment]


_OF_THE_BLOB = ("format", "count", "names", "words", "ranked", "weighted", "kept")
_TAKEN = [name for name in _Header.__struct_fields__ if name not in _OF_THE_BLOB]
_TAKE = attrgetter(*_TAKEN)
_TAKEN_1 = [name for name in _Given.__struct_fields__ if name not in _OF_THE_BLOB]
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Header)
_DECODER_1 = msgspec.msgpack.Decoder(_Given)


@dataclass(frozen=True)
class Constants:
    """What the headers of all slates of a pack share: fields by name, each with its bytes."""

    fields: dict[str, msgspec.Raw]


def constants_of(**fields: Any) -> Constants:
    """Encode what all slates of a pack share: ``names``, ``policies``, ``settings``, ``fingerprints``, ``flags``."""
    return Constants({name: msgspec.Raw(_ENCODER.encode(value)) for name, value in fields.items()})


def encode(
    slate: Slate, *, constants: Constants | None = None, table: NDArray[np.float64] | None = None
) -> bytes:
    """The bytes that the journal keeps; the same slate gives the same bytes.

    Who made the slate may give what it took from elsewhere: the ``constants`` of its pack, and the ``table`` of which
    its numbers are the rows.
    """
    count, names = len(slate.ids), list(slate.numbers)
    if table is None:
        columns = [np.empty(0), *slate.numbers.values()]
        table = np.concatenate(columns, dtype="<f8", casting="unsafe").reshape(len(names), count)
    kept, parts_of_table = _packed(table)
    given = dict(zip(_TAKEN, _TAKE(slate), strict=True))
    given["names"] = names
    header = (_Header if constants is None else _Known)(
        format=BLOB_FORMAT,
        count=count,
        kept=kept,
        ranked=slate.ranks is not None,
        weighted=slate.propensity is not None,
        words={name: _one_for_all(values) for name, values in slate.words.items()},
        **(given if constants is None else given | constants.fields),
    )
    head = _ENCODER.encode(header)
    parts: list[Any] = [len(head).to_bytes(4, "little"), head, bytes(-(_PREFIX + len(head)) % 8)]
    parts.append(np.ascontiguousarray(slate.ids, dtype="<i8"))
    if slate.ranks is not None:
        parts.append(np.ascontiguousarray(slate.ranks, dtype="<i8"))
    if slate.propensity is not None:
        parts.append(np.ascontiguousarray(slate.propensity, dtype="<f8"))
    parts.append(np.ascontiguousarray(slate.scores, dtype="<f8"))
    parts += parts_of_table
    body = b"".join(parts)
    return _MAGIC + bytes([BLOB_FORMAT]) + zlib.crc32(body).to_bytes(4, "little") + body


def _packed(numbers: NDArray[np.float64]) -> tuple[bytes, list[NDArray[Any]]]:
    """How each row of a table is kept, and what is kept of them all."""
    if not numbers.size:
        return bytes([_WHOLE]) * len(numbers), []
    kept = np.full(len(numbers), _WHOLE, dtype=np.uint8)
    bits = numbers.view("<i8")  # NaN equals itself, and -0 is not 0
    with np.errstate(over="ignore", invalid="ignore"):
        single = numbers.astype("<f4")
    kept[np.equal(single, numbers).all(axis=1)] = _SINGLE
    kept[np.equal(bits, bits[:, :1]).all(axis=1)] = _SAME
    return kept.tobytes(), [
        numbers[kept == _WHOLE],
        numbers[kept == _SAME, 0],
        single[kept == _SINGLE],
    ]


def _one_for_all(values: list[str | None]) -> list[str | None] | str | None:
    return values[0] if values and values.count(values[0]) == len(values) else values


def decode(blob: bytes, *, decision: int = 0) -> Slate:
    """The slate that ``encode`` wrote, of this format or an older one.

    Raises DamagedLab for bytes that are truncated or altered, NewerLab for a later format.
    """
    if blob[:3] != _MAGIC:
        return _decode_1(blob, decision)
    if len(blob) < _PREFIX:
        raise _damaged(decision, "it is truncated")
    if blob[3] > BLOB_FORMAT:
        raise NewerLab.of_format(f"The slate of decision {decision}", blob[3], BLOB_FORMAT)
    if zlib.crc32(memoryview(blob)[8:]) != int.from_bytes(blob[4:8], "little"):
        raise _damaged(decision, "its checksum does not match")
    size = int.from_bytes(blob[8:12], "little")
    try:
        header = _DECODER.decode(memoryview(blob)[_PREFIX : _PREFIX + size])
        if header.format != blob[3]:
            raise ValueError(f"its header says format {header.format}")
        body = memoryview(blob)[_PREFIX + size + -(_PREFIX + size) % 8 :]
        kept = np.frombuffer(
            header.kept if blob[3] > 2 else bytes([_WHOLE]) * len(header.names), dtype=np.uint8
        )
        whole = 2 + header.ranked + header.weighted + int((kept == _WHOLE).sum())
        first = np.frombuffer(body[: 8 * whole * header.count], dtype="<f8").reshape(
            whole, header.count
        )
        numbers = _numbers(
            header, kept, first[whole - int((kept == _WHOLE).sum()) :], body[first.nbytes :]
        )
    except (msgspec.DecodeError, ValueError) as error:
        raise _damaged(decision, error) from None
    rows = iter(first)
    ids = next(rows).view("<i8")
    ranks = next(rows).view("<i8") if header.ranked else None
    propensity = next(rows) if header.weighted else None
    given = {name: getattr(header, name) for name in _TAKEN}
    return _built(
        header,
        given,
        decision,
        ids=ids,
        ranks=ranks,
        propensity=propensity,
        scores=next(rows),
        rows=numbers,
    )


def _numbers(
    header: _Header, kept: NDArray[np.uint8], whole: NDArray[np.float64], rest: memoryview
) -> list[NDArray[np.float64]]:
    """The numbers of each name, from the rows kept whole and the bytes of the others."""
    same, single = int((kept == _SAME).sum()), int((kept == _SINGLE).sum())
    if not header.count:
        same = single = 0
    if len(kept) != len(header.names) or len(rest) != 8 * same + 4 * single * header.count:
        raise ValueError("its columns do not fill it")
    once = np.frombuffer(rest[: 8 * same], dtype="<f8")
    floats = (
        np.frombuffer(rest[8 * same :], dtype="<f4")
        .reshape(single, header.count)
        .astype(np.float64)
    )
    numbers = np.empty((len(kept), header.count))
    if header.count:
        numbers[kept == _WHOLE], numbers[kept == _SAME], numbers[kept == _SINGLE] = (
            whole,
            once[:, None],
            floats,
        )
    return list(numbers)


def _decode_1(blob: bytes, decision: int) -> Slate:
    """Format 1: the length of the header, the header, ids, scores and numbers."""
    size = int.from_bytes(blob[:4], "little")
    try:
        header = _DECODER_1.decode(memoryview(blob)[4 : 4 + size])
        body = np.frombuffer(blob, dtype="<f8", offset=4 + size).reshape(
            2 + len(header.names), header.count
        )
    except (msgspec.DecodeError, ValueError) as error:
        raise _damaged(decision, error) from None
    if header.format != 1:
        raise _damaged(decision, f"its header says format {header.format}")
    given = {name: getattr(header, name) for name in _TAKEN_1}
    given["flags"] = tuple(name for name in _FLAGS_OF_FORMAT_1 if name in header.names)
    rows = iter(body)
    return _built(header, given, decision, ids=next(rows).view("<i8"), scores=next(rows), rows=rows)


def _built(
    header: _Given, given: dict[str, Any], decision: int, *, rows: Any, **arrays: Any
) -> Slate:
    words = {
        name: values if isinstance(values, list) else [values] * header.count
        for name, values in header.words.items()
    }
    numbers = dict(zip(header.names, rows, strict=True))
    slate = Slate(**given, **arrays, words=words, numbers=numbers, decision=decision)
    if any(len(values) != header.count for values in words.values()):
        raise _damaged(decision, "its columns differ in length")
    return slate


# -- the question by itself -------------------------------------------------------------------------------------------

_QUESTION = b"MLQ\x01"
"""How the bytes of a question begin that stayed when its slate was sealed: what they are, and their format."""


class Question(msgspec.Struct, frozen=True):
    """What of a recall may tell of a memory: a purge changes it, and a sealed segment does not hold it.

    ``words`` are features in words that are not of memlab's own vocabularies, as some extension's are.
    """

    query: str
    vector: bytes
    project: str | None
    session: str | None
    branch: str | None
    filters: dict[str, Any]
    words: dict[str, list[str | None]]

    @classmethod
    def of(cls, slate: Slate, words: dict[str, list[str | None]]) -> Question:
        """Take the question of a slate, with these of its words."""
        return cls(
            slate.query,
            slate.vector,
            slate.project,
            slate.session,
            slate.branch,
            slate.filters,
            words,
        )

    def encoded(self) -> bytes:
        """Return the bytes that stay with the recall."""
        body = _ENCODER.encode(self)
        return _QUESTION + zlib.crc32(body).to_bytes(4, "little") + body

    @classmethod
    def decoded(cls, blob: bytes, decision: int) -> Question:
        """Read what ``encoded`` wrote. Raises DamagedLab for other bytes, NewerLab for a later format."""
        if blob[3] > _QUESTION[3]:
            raise NewerLab.of_format(f"The question of decision {decision}", blob[3], _QUESTION[3])
        if zlib.crc32(memoryview(blob)[8:]) != int.from_bytes(blob[4:8], "little"):
            raise _damaged(decision, "its checksum does not match")
        try:
            return _QUESTION_DECODER.decode(memoryview(blob)[8:])
        except msgspec.DecodeError as error:
            raise _damaged(decision, error) from None


_QUESTION_DECODER = msgspec.msgpack.Decoder(Question)


def is_sealed(blob: bytes) -> bool:
    """Return whether these bytes are a question alone: its slate is in a sealed segment."""
    return blob[:3] == _QUESTION[:3]


def question_of(blob: bytes, *, decision: int) -> Question:
    """Return the question of a recall, whether its slate is sealed or not."""
    if is_sealed(blob):
        return Question.decoded(blob, decision)
    slate = decode(blob, decision=decision)
    return Question.of(slate, slate.words)


def with_question(blob: bytes, question: Question, *, decision: int) -> bytes:
    """Return the bytes of a recall, sealed or not, with another question in the place of its own."""
    if is_sealed(blob):
        return question.encoded()
    own = {name: getattr(question, name) for name in Question.__struct_fields__}
    return encode(replace(decode(blob, decision=decision), **own))


def _damaged(decision: int, why: object) -> DamagedLab:
    return DamagedLab(f"The slate of decision {decision} cannot be read: {why}.")

"""The slate of one recall and its encoding.

A slate is stored as one blob next to its event. The blob is a msgpack header followed by columns of ids, scores and
features. A CRC detects damage, because a flipped bit in a matrix of doubles would otherwise change results unnoticed.

Features are stored exactly and compactly. A constant column is one float64. A column whose values float32 represents
exactly, such as flags and counts, is float32, and any other column is float64. A default slate of 100 candidates and 46
features takes 22 kB instead of 50 kB, and writing it takes half the time.
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
from memlab.kernel.base.arrays import Floats, Ints, Values
from memlab.kernel.base.display import Displayed, clip, table
from memlab.kernel.base.printable import printable

FORMAT = 2
"""The format of segments and tables. Format 1 had neither ranks nor propensities."""

BLOB_FORMAT = 3
"""The format of blobs. Formats 1 and 2 stored every feature as a row of float64."""

# A blob begins with these three bytes and one byte for its format. The CRC of the following bytes and the length of the
# header take four bytes each.
_MAGIC = b"MLS"
_PREFIX = 12

_WHOLE, _SAME, _SINGLE = b"wsf"
"""The encodings of a numeric column: float64, one float64 for all candidates, and float32."""

# The boolean features of format 1, which did not list them.
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
    """The record of one recall: the query, the candidate pool and the shown items.

    Arrays have one element per candidate, in ascending order of ids.

    Parameters
    ----------
    at
        The time of the recall in microseconds UTC.
    query, vector
        The text of the query, and its embedding as int8 bytes.
    limit
        The number of results.
    project, session, branch
        The project, session and branch of the recall, or None.
    pack, pack_hash
        The name and the hash of the pack.
    policies, settings, fingerprints
        The hashes of the pack's policies, its settings, and the fingerprints of the stored features.
    state
        The number of the event before the recall.
    cut
        How the candidate pool was chosen.
    sampler
        How the shown items were chosen; one of ``SAMPLERS``.
    ids, scores
        The memory ids and the scores of the candidates.
    numbers, words, flags
        The numeric and boolean features (booleans as 0 and 1, null as NaN), the string features, and the names of the
        boolean features.
    shown, probes
        The ids of the shown items in order, and the ids of the exploration items among them.
    decision
        The number of the logged recall; 0 if it was not logged.
    seed, kappa
        The seed of the draw, and the threshold of Gumbel top-k; None if nothing was drawn.
    ranks
        The ranks over the whole pool, from 1. None means the order of scores, with ties by id.
    propensity
        The inclusion probability of each candidate. None means 1 for shown items and 0 for others.
    conditional
        The probability of each shown item, given the items drawn before it. Empty means 1 if the item was certain, and
        unknown otherwise.
    filters
        The filters that the caller passed, by the names of the arguments of ``recall``.
    also
        The ids of the near-duplicates that are hidden behind each shown item, by the id of the shown item.
    challenge
        The record of a challenge, if packs were challenged at the time. It has the ``design``, the maximum number of
        ``draws``, and as ids the results of the active pack (``live``) and of challengers (``heads``). For an A/B test
        it also has the drawn pack (``whose``, "" for the active pack) and the probability of each pack (``shares``).
    known
        The estimated probability that the pool contains the answer.
    wanted
        The number of results that the caller requested, if fewer were shown because ``known`` was low.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember(["Ana prefers tabs", "Ben prefers spaces"])
    >>> slate = lab.recall("tabs").slate
    >>> len(slate), slate.shown, slate.ids.tolist()
    (2, (1, 2), [1, 2])
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
    ids: Ints
    scores: Floats
    numbers: dict[str, Floats]
    words: dict[str, list[str | None]]
    shown: tuple[int, ...]
    decision: int = 0
    seed: int | None = None
    kappa: float | None = None
    ranks: Ints | None = None
    propensity: Floats | None = None
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
        origin = f"recall {self.decision}" if self.decision else "not logged"
        size = f"{len(self):,} candidates, {len(self.shown)} shown, for {clip(self.query)!r}"
        return printable(f"<Slate, {origin}: {size}, pack {self.pack} [{self.pack_hash[:12]}]>")

    def _display(self) -> object:
        best = self.frame.select("rank", "memory_id", "score", "propensity").sort("rank").head(10)
        rows = [
            [rank, id, f"{score:.4f}", f"{chance:.3f}"]
            for rank, id, score, chance in best.iter_rows()
        ]
        notes = ["the ten best by rank; slate.frame has all candidates with their features"]
        return table(self, best.columns, rows, notes=notes)

    @cached_property
    def places(self) -> Ints:
        """The index of each shown item among the candidates.

        Raises InputError if a shown item is not a candidate.
        """
        wanted = np.array(self.shown, dtype=np.int64)
        indices = np.minimum(np.searchsorted(self.ids, wanted), max(len(self.ids) - 1, 0))
        if len(wanted) and (not len(self.ids) or (self.ids[indices] != wanted).any()):
            raise InputError(
                f"Decision {self.decision}: its slate shows a memory that is not among its candidates, or the "
                "candidate ids are not sorted. Sort them, and add each shown memory."
            )
        return indices

    @cached_property
    def ranking(self) -> Ints:
        """The 1-based rank of each candidate: from ``ranks``, or by score, then id."""
        if self.ranks is not None:
            return self.ranks
        ranks = np.empty(len(self.ids), dtype=np.int64)
        ranks[np.argsort(-self.scores, kind="stable")] = np.arange(1, len(ranks) + 1)
        return ranks

    @cached_property
    def inclusion(self) -> Floats:
        """The inclusion probability of each candidate: ``propensity``, or 1 if shown."""
        if self.propensity is not None:
            return self.propensity
        propensity = np.zeros(len(self.ids))
        propensity[self.places] = 1.0
        return propensity

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The candidates as a frame of ids, features, scores, ranks and propensities."""
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


def same_slates(first: Slate, second: Slate) -> bool:
    """Return whether two slates are bit-identical.

    Parameters
    ----------
    first, second
        Slates to compare. NaN equals NaN.

    Returns
    -------
    bool
        Whether every field is equal.
    """
    return all(
        _are_equal(getattr(first, part.name), getattr(second, part.name)) for part in fields(first)
    )


def _are_equal(first: Any, second: Any) -> bool:
    """Return whether two values are equal; arrays must have equal types and bits."""
    if isinstance(first, np.ndarray):
        return (
            isinstance(second, np.ndarray)
            and first.dtype == second.dtype
            and first.tobytes() == second.tobytes()
        )
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(
            _are_equal(first[name], second[name]) for name in first
        )
    return bool(first == second)


def number_series(name: str, values: Floats, *, flag: bool) -> pl.Series:
    """Return a numeric feature as a series, boolean for a flag, with null for NaN."""
    if not flag:
        return pl.Series(name, values, nan_to_null=True)
    unknown = np.isnan(values)
    series = pl.Series(name, values > 0.5)
    return series.set(pl.Series(unknown), None) if unknown.any() else series


class _HeaderOfAllFormats(msgspec.Struct, kw_only=True):
    """The fields that the header of a blob has in every format."""

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


class _Header(_HeaderOfAllFormats, kw_only=True):
    """The header of a blob in formats 2 and 3.

    ``kept`` has the encoding of each numeric column. In ``words``, a single string is the value of all candidates.
    """

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


class _EncodedHeader(_Header, kw_only=True):
    """A header whose constant fields are already encoded."""

    # These fields are encoded to the same bytes as the declared types.
    names: msgspec.Raw  # type: ignore[assignment]
    policies: msgspec.Raw  # type: ignore[assignment]
    settings: msgspec.Raw  # type: ignore[assignment]
    fingerprints: msgspec.Raw  # type: ignore[assignment]
    flags: msgspec.Raw  # type: ignore[assignment]


# Fields of the header that describe the blob. All others are fields of the slate. Encoders and decoders are created
# once, because creating one takes longer than a call.
_OF_THE_BLOB = ("format", "count", "names", "words", "ranked", "weighted", "kept")
_FIELDS = [name for name in _Header.__struct_fields__ if name not in _OF_THE_BLOB]
_READ_FIELDS = attrgetter(*_FIELDS)
_FIELDS_1 = [name for name in _HeaderOfAllFormats.__struct_fields__ if name not in _OF_THE_BLOB]
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Header)
_DECODER_1 = msgspec.msgpack.Decoder(_HeaderOfAllFormats)


@dataclass(frozen=True)
class Constants:
    """The header fields that all slates of a pack share, as encoded bytes by name."""

    fields: dict[str, msgspec.Raw]


def constants_of(**fields: Any) -> Constants:
    """Encode the header fields that all slates of a pack share.

    Parameters
    ----------
    **fields
        ``names``, ``policies``, ``settings``, ``fingerprints`` and ``flags``.

    Returns
    -------
    Constants
        The encoded fields, for ``encode``.
    """
    return Constants({name: msgspec.Raw(_ENCODER.encode(value)) for name, value in fields.items()})


def encode(
    slate: Slate, *, constants: Constants | None = None, table: Floats | None = None
) -> bytes:
    """Encode a slate for the journal. Equal slates give equal bytes.

    Parameters
    ----------
    slate
        The slate.
    constants
        The header fields of the slate's pack, if they are already encoded.
    table
        A table whose rows are the numeric features of the slate, if the caller has one.

    Returns
    -------
    bytes
        The blob.
    """
    count, names = len(slate.ids), list(slate.numbers)
    if table is None:
        columns = [np.empty(0), *slate.numbers.values()]
        table = np.concatenate(columns, dtype="<f8", casting="unsafe").reshape(len(names), count)
    encodings, parts_of_table = _encode_rows(table)
    fields = dict(zip(_FIELDS, _READ_FIELDS(slate), strict=True))
    fields["names"] = names
    header = (_Header if constants is None else _EncodedHeader)(
        format=BLOB_FORMAT,
        count=count,
        kept=encodings,
        ranked=slate.ranks is not None,
        weighted=slate.propensity is not None,
        words={name: _collapse_words(values) for name, values in slate.words.items()},
        **(fields if constants is None else fields | constants.fields),
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


def _encode_rows(numbers: Floats) -> tuple[bytes, list[Values]]:
    """Choose an encoding for each row of a table; return the encodings and the encoded rows."""
    if not numbers.size:
        return bytes([_WHOLE]) * len(numbers), []
    encodings = np.full(len(numbers), _WHOLE, dtype=np.uint8)
    # Rows are compared as bits, so that NaN equals NaN and -0 differs from 0.
    bits = numbers.view("<i8")
    with np.errstate(over="ignore", invalid="ignore"):
        single = numbers.astype("<f4")
    encodings[np.equal(single, numbers).all(axis=1)] = _SINGLE
    encodings[np.equal(bits, bits[:, :1]).all(axis=1)] = _SAME
    return encodings.tobytes(), [
        numbers[encodings == _WHOLE],
        numbers[encodings == _SAME, 0],
        single[encodings == _SINGLE],
    ]


def _collapse_words(values: list[str | None]) -> list[str | None] | str | None:
    """Return a single string if all strings of a list are equal, otherwise the list."""
    return values[0] if values and values.count(values[0]) == len(values) else values


def decode(blob: bytes, *, decision: int = 0) -> Slate:
    """Decode the blob of a slate, in the current or an older format.

    Parameters
    ----------
    blob
        The bytes that ``encode`` returned.
    decision
        The number of the logged recall, for the slate and for errors.

    Returns
    -------
    Slate
        The slate.

    Raises
    ------
    DamagedLab
        If the bytes are truncated or altered.
    NewerLab
        If a later version of memlab wrote them.
    """
    if blob[:3] != _MAGIC:
        return _decode_1(blob, decision)
    if len(blob) < _PREFIX:
        raise _damage_error(decision, "it is truncated")
    if blob[3] > BLOB_FORMAT:
        raise NewerLab.of_format(f"The slate of decision {decision}", blob[3], BLOB_FORMAT)
    if zlib.crc32(memoryview(blob)[8:]) != int.from_bytes(blob[4:8], "little"):
        raise _damage_error(decision, "its checksum does not match")
    size = int.from_bytes(blob[8:12], "little")
    try:
        header = _DECODER.decode(memoryview(blob)[_PREFIX : _PREFIX + size])
        if header.format != blob[3]:
            raise ValueError(f"its header states format {header.format}, its first bytes {blob[3]}")
        body = memoryview(blob)[_PREFIX + size + -(_PREFIX + size) % 8 :]
        encodings = np.frombuffer(
            header.kept if blob[3] > 2 else bytes([_WHOLE]) * len(header.names), dtype=np.uint8
        )
        whole = 2 + header.ranked + header.weighted + int((encodings == _WHOLE).sum())
        first = np.frombuffer(body[: 8 * whole * header.count], dtype="<f8").reshape(
            whole, header.count
        )
        numbers = _decode_numbers(
            header,
            encodings,
            first[whole - int((encodings == _WHOLE).sum()) :],
            body[first.nbytes :],
        )
    except (msgspec.DecodeError, ValueError) as error:
        raise _damage_error(decision, error) from None
    rows = iter(first)
    ids = next(rows).view("<i8")
    ranks = next(rows).view("<i8") if header.ranked else None
    propensity = next(rows) if header.weighted else None
    fields = {name: getattr(header, name) for name in _FIELDS}
    return _build_slate(
        header,
        fields,
        decision,
        ids=ids,
        ranks=ranks,
        propensity=propensity,
        scores=next(rows),
        rows=numbers,
    )


def _decode_numbers(
    header: _Header, encodings: NDArray[np.uint8], whole: Floats, rest: memoryview
) -> list[Floats]:
    """Decode the columns of numeric features.

    ``whole`` has the columns stored as float64, and ``rest`` the bytes of all other columns.
    """
    same, single = int((encodings == _SAME).sum()), int((encodings == _SINGLE).sum())
    if not header.count:
        same = single = 0
    if len(encodings) != len(header.names) or len(rest) != 8 * same + 4 * single * header.count:
        raise ValueError("the columns of the slate do not have the size that its header states")
    constants = np.frombuffer(rest[: 8 * same], dtype="<f8")
    floats = (
        np.frombuffer(rest[8 * same :], dtype="<f4")
        .reshape(single, header.count)
        .astype(np.float64)
    )
    numbers = np.empty((len(encodings), header.count))
    if header.count:
        numbers[encodings == _WHOLE], numbers[encodings == _SAME], numbers[encodings == _SINGLE] = (
            whole,
            constants[:, None],
            floats,
        )
    return list(numbers)


def _decode_1(blob: bytes, decision: int) -> Slate:
    """Decode a blob of format 1: header length, header, ids, scores and features."""
    size = int.from_bytes(blob[:4], "little")
    try:
        header = _DECODER_1.decode(memoryview(blob)[4 : 4 + size])
        body = np.frombuffer(blob, dtype="<f8", offset=4 + size).reshape(
            2 + len(header.names), header.count
        )
    except (msgspec.DecodeError, ValueError) as error:
        raise _damage_error(decision, error) from None
    if header.format != 1:
        raise _damage_error(decision, f"its header says format {header.format}")
    fields = {name: getattr(header, name) for name in _FIELDS_1}
    fields["flags"] = tuple(name for name in _FLAGS_OF_FORMAT_1 if name in header.names)
    rows = iter(body)
    return _build_slate(
        header, fields, decision, ids=next(rows).view("<i8"), scores=next(rows), rows=rows
    )


def _build_slate(
    header: _HeaderOfAllFormats, fields: dict[str, Any], decision: int, *, rows: Any, **arrays: Any
) -> Slate:
    """Build a slate from the decoded header and arrays of its blob."""
    words = {
        name: values if isinstance(values, list) else [values] * header.count
        for name, values in header.words.items()
    }
    numbers = dict(zip(header.names, rows, strict=True))
    slate = Slate(**fields, **arrays, words=words, numbers=numbers, decision=decision)
    if any(len(values) != header.count for values in words.values()):
        raise _damage_error(decision, "its columns differ in length")
    return slate


# -- the query without its slate -------------------------------------------------------------------------------------------

_QUESTION = b"MLQ\x01"
"""The first bytes of a query that stays in the journal after its slate is sealed, with the format as last byte."""


class Question(msgspec.Struct, frozen=True):
    """The fields of a recall that may reveal the content of a memory.

    A purge can rewrite these fields, so they are not part of a sealed segment.

    Attributes
    ----------
    query, vector
        The text of the query, and its embedding as int8 bytes.
    project, session, branch
        The project, session and branch of the recall, or None.
    filters
        The filters of the caller.
    words
        String features with values outside memlab's vocabularies, such as those of extensions.
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
        """Return the query of a slate, with the other fields that a purge may rewrite.

        Parameters
        ----------
        slate
            The slate.
        words
            The string features that stay with the query.

        Returns
        -------
        Question
            The query.
        """
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
        """Return the bytes that stay in the journal after the slate is sealed."""
        body = _ENCODER.encode(self)
        return _QUESTION + zlib.crc32(body).to_bytes(4, "little") + body

    @classmethod
    def decoded(cls, blob: bytes, decision: int) -> Question:
        """Decode the query of a recall from the bytes that ``encoded`` returned.

        Parameters
        ----------
        blob
            The bytes that ``encoded`` returned.
        decision
            The number of the logged recall, for errors.

        Returns
        -------
        Question
            The query.

        Raises
        ------
        DamagedLab
            If the bytes are altered.
        NewerLab
            If a later version of memlab wrote them.
        """
        if blob[3] > _QUESTION[3]:
            raise NewerLab.of_format(f"The query of decision {decision}", blob[3], _QUESTION[3])
        if zlib.crc32(memoryview(blob)[8:]) != int.from_bytes(blob[4:8], "little"):
            raise _damage_error(decision, "its checksum does not match")
        try:
            return _QUESTION_DECODER.decode(memoryview(blob)[8:])
        except msgspec.DecodeError as error:
            raise _damage_error(decision, error) from None


# The decoder is created once, after the class that it decodes.
_QUESTION_DECODER = msgspec.msgpack.Decoder(Question)


def is_sealed(blob: bytes) -> bool:
    """Return whether the stored bytes of a recall show that its slate is sealed."""
    return blob[:3] == _QUESTION[:3]


def question_of(blob: bytes, *, decision: int) -> Question:
    """Return the query of a recall, whether or not its slate is sealed.

    Parameters
    ----------
    blob
        The bytes in the journal.
    decision
        The number of the logged recall, for errors.

    Returns
    -------
    Question
        The query.
    """
    if is_sealed(blob):
        return Question.decoded(blob, decision)
    slate = decode(blob, decision=decision)
    return Question.of(slate, slate.words)


def with_question(blob: bytes, question: Question, *, decision: int) -> bytes:
    """Return the bytes of a recall with its query replaced.

    Parameters
    ----------
    blob
        The bytes in the journal, sealed or not.
    question
        The new query.
    decision
        The number of the logged recall, for errors.

    Returns
    -------
    bytes
        The new bytes.
    """
    if is_sealed(blob):
        return question.encoded()
    own = {name: getattr(question, name) for name in Question.__struct_fields__}
    return encode(replace(decode(blob, decision=decision), **own))


def _damage_error(decision: int, why: object) -> DamagedLab:
    """Return the error for a slate that cannot be decoded."""
    return DamagedLab(
        f"The slate of decision {decision} cannot be read: {why}. Restore the lab from a backup."
    )

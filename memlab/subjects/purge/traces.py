"""The search for purged texts in files, as bytes and in decoded content.

A text is searched for by pieces of up to ``PIECE`` characters that no format escapes, so a part of
it is found too. A piece that remaining memories contain is no trace: it is reported and not
searched for. A piece that may be a word of a vocabulary ("town"), or is very short, is searched for
as a whole value only.
"""

from __future__ import annotations

import io
import re
import subprocess
import zipfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
import polars as pl

from memlab.errors import MemlabError
from memlab.kernel.journal import FILE, open_database, sql_errors, unlock
from memlab.kernel.slates import decode, is_sealed, question_of

PIECE = 32
"""The maximum number of characters in a piece."""

_ANYWHERE, _MINIMUM = 6, 2
"""The minimum bytes of a pattern, and of a whole value. Among a hundred million bytes of vectors, five given bytes occur
at random once in ten thousand times."""

# Bytes that are searched at a time, which bounds the memory.
_AT_ONCE = 16_000_000
_FEW = 64
"""The number of patterns up to which a plain search for any of them comes first, because it is faster."""

_UNWRITTEN = re.compile('["\\\\<&\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]+')
"""Characters that some format escapes, so that a text with them may be written in another form."""

# The form of words that code may use, and the minimum characters of a piece: two or three words.
_VOCABULARY = re.compile(r"[a-z][a-z0-9_-]*")
_RUN = 12


@dataclass(frozen=True)
class SearchTerms:
    """The byte patterns to search for after a purge.

    Attributes
    ----------
    patterns
        Bytes to find anywhere, with a description of their source.
    values
        Bytes to find as whole values only, with a description of their source.
    stated
        The ids of remaining memories that contain a purged piece, with its source.
    short
        The number of texts and names that are too short to search for.
    """

    patterns: Mapping[bytes, str]
    values: Mapping[bytes, str]
    stated: tuple[tuple[int, str], ...] = ()
    short: int = 0

    def hits(self, blobs: Iterable[bytes]) -> list[Counter[bytes]]:
        """Return the number of matches of each search term in each blob."""
        wanted = {pattern.decode("latin-1"): pattern for pattern in self.patterns}
        wanted |= {
            mark.decode("latin-1"): value for value in self.values for mark in _delimit(value)
        }
        blobs = list(blobs)
        if len(wanted) <= _FEW:
            # This takes a tenth of the time of the search below, which decodes the bytes first.
            together = b"\n".join(blobs)
            if not any(pattern.encode("latin-1") in together for pattern in wanted):
                return [Counter() for _ in blobs]
        decoded = pl.Series([blob.decode("latin-1") for blob in blobs], dtype=pl.String)
        matches = decoded.str.extract_many(list(wanted), overlapping=True)
        return [Counter(wanted[text] for text in texts) for texts in matches.to_list()]

    def source_of(self, pattern: bytes) -> str:
        """Return a description of the text or name that a search term is part of."""
        return self.patterns.get(pattern) or self.values[pattern]


@dataclass(frozen=True)
class Trace:
    """A trace of purged content: the file, the source of the content, and the part of the file."""

    file: Path
    what: str
    part: str
    count: int = 1


@dataclass
class SearchReport:
    """The extent of a search for purged content, and its traces.

    ``opaque`` counts files that could not be decoded and were searched as bytes only. ``decrypted`` counts encrypted
    databases, of which the rows were searched: bytes outside rows have no meaning without the key.
    """

    files: int = 0
    bytes: int = 0
    opaque: int = 0
    decrypted: int = 0
    traces: list[Trace] = field(default_factory=list)


def search_terms(
    texts: Mapping[int, str], names: Iterable[str], stays: pl.DataFrame, borne: Collection[str]
) -> SearchTerms:
    """Return the terms to search for after a purge of texts and names.

    ``stays`` has the ``id`` and ``text`` of every remaining memory, ``borne`` the names that they
    have.
    """
    # Pieces that remaining memories contain, and names that they have, are removed from the terms
    # at the end.
    patterns: dict[str, str] = {}
    values: dict[str, str] = {}
    short = 0
    for id, text in texts.items():
        pieces = list(_pieces(text))
        short += not pieces
        for piece in pieces:
            (patterns if _is_distinctive(piece) else values)[piece] = f"text of memory {id}"
    for name in names:
        (patterns if _is_distinctive(name) else values).setdefault(name, "a name")
    stating = (
        stays.select("id", pl.col("text").str.extract_many(list(patterns), overlapping=True))
        if patterns
        else None
    )
    rows = (
        ()
        if stating is None
        else stating.explode("text").drop_nulls().unique(maintain_order=True).rows()
    )
    shared = {piece for _, piece in rows} | {name for name in values if name in borne}
    return SearchTerms(
        {piece.encode(): what for piece, what in patterns.items() if piece not in shared},
        {
            name.encode(): what
            for name, what in values.items()
            if name not in shared and len(name.encode()) >= _MINIMUM
        },
        tuple(dict.fromkeys((id, patterns[piece]) for id, piece in rows)),
        short + sum(len(name.encode()) < _MINIMUM for name in values),
    )


def _is_distinctive(word: str) -> bool:
    """Return whether a word is distinctive enough to search for in raw bytes."""
    return len(word.encode()) >= _ANYWHERE and _VOCABULARY.fullmatch(word) is None


def _pieces(text: str) -> Iterator[str]:
    """Yield the longer parts of a text between characters that a format may escape, cut into pieces."""
    runs = [run.strip() for run in _UNWRITTEN.split(text)]
    longest = max(map(len, runs), default=0)
    for run in runs:
        if run and (len(run) >= _RUN or len(run) == longest):
            yield from (
                run[start : start + PIECE] for start in range(0, max(len(run) - _RUN + 1, 1), PIECE)
            )


def _delimit(value: bytes) -> tuple[bytes, ...]:
    """Return a value with the delimiters of JSON, of MessagePack and of tables."""
    return b'"%b"' % value, msgspec.msgpack.encode(value.decode()), b"\0%b\0" % value


FileParts = Iterator[tuple[str, bytes]]
"""The parts of a file, each with a description and its bytes."""


def search_files(roots: Iterable[Path], terms: SearchTerms) -> SearchReport:
    """Search all files at or below the paths, each file once."""
    report = SearchReport()
    files = {
        file
        for root in roots
        for file in ([root] if root.is_file() else root.rglob("*"))
        if file.is_file()
    }
    for file in sorted(files):
        try:
            raw = _count_raw(file, terms)
            report.bytes += file.stat().st_size
            report.files += 1
            report.decrypted += file.suffix == ".enc"
            report.traces += _find_traces(file, raw, terms, report)
        except OSError as error:
            report.traces.append(Trace(file, "not searched", error.strerror or str(error)))
    return report


def _find_traces(
    file: Path, raw: Counter[bytes], terms: SearchTerms, report: SearchReport
) -> Iterator[Trace]:
    """Yield the traces of purged content in a file's decoded parts and remaining bytes."""
    live: Counter[bytes] = Counter()
    traces: dict[tuple[str, str], list[str]] = {}
    unreadable: tuple[type[Exception], ...] = (
        MemlabError,
        msgspec.MsgspecError,
        *sql_errors(),
        pl.exceptions.PolarsError,
        zipfile.BadZipFile,
        ValueError,
    )
    try:
        for parts in _batched(_READERS.get(file.suffix, _contents)(file)):
            for (part_name, blob), hits in zip(
                parts, terms.hits(blob for _, blob in parts), strict=True
            ):
                live.update(hits)
                for pattern in hits:
                    if pattern in terms.patterns or _is_value(
                        pattern.decode(), file, part_name, blob
                    ):
                        kind, _, number = part_name.partition(" ")
                        traces.setdefault((terms.source_of(pattern), kind), []).append(number)
    except unreadable:
        report.opaque += 1
    for (what, kind), numbers in traces.items():
        several = list(dict.fromkeys(numbers))
        more = f" and {len(several) - 3:,} more" if len(several) > 3 else ""
        yield Trace(file, what, f"{kind} {', '.join(several[:3])}{more}".strip(), len(several))
    for pattern, count in raw.items():
        # In raw bytes the delimiters of a value prove nothing, because keys and memlab's own words have them too.
        if count > live[pattern] and (pattern in terms.patterns or live[pattern]):
            yield Trace(file, terms.source_of(pattern), "free bytes", count - live[pattern])


def _count_raw(file: Path, terms: SearchTerms) -> Counter[bytes]:
    """Return the number of occurrences of each term in the raw bytes of a file.

    The file is read in blocks. The end of a block is searched with the next one, and its own matches are subtracted.
    """
    marks = [mark for value in terms.values for mark in _delimit(value)]
    overlap = max(map(len, (*terms.patterns, *marks)), default=1) - 1
    counts: Counter[bytes] = Counter()
    tail = b""
    with _bytes_of(file) as stream:
        while block := stream.read(_AT_ONCE):
            whole, again = terms.hits([tail + block, tail])
            counts.update(whole)
            counts.subtract(again)
            tail = (tail + block)[-overlap:] if overlap else b""
    return counts


def _batched(parts: FileParts) -> Iterator[list[tuple[str, bytes]]]:
    """Yield a file's parts in batches of a few megabytes."""
    batch: list[tuple[str, bytes]] = []
    size = 0
    for part in parts:
        batch.append(part)
        size += len(part[1])
        if size > _AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _contents(file: Path) -> FileParts:
    """Yield the whole content of a plain or unknown file as one part."""
    with _bytes_of(file) as stream:
        yield "file", stream.read()


@contextmanager
def _bytes_of(file: Path) -> Iterator[IO[bytes]]:
    """Open a file as bytes; a database is read by another process.

    Closing a database file drops every POSIX lock that SQLite holds on it in this process. The next
    process to open the lab would then take the write-ahead log for an abandoned one.
    """
    if not file.name.startswith((FILE, "journal.enc")):
        with file.open("rb") as stream:
            yield stream
        return
    with subprocess.Popen(
        ["cat", "--", str(file)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as reader:
        assert reader.stdout is not None
        yield reader.stdout


_CELLS = {
    "payload": "id, text",
    "event": "seq, body",
    "slate": "seq, data",
    "vector": "first_id",
    "segment": "upto, name",
}
"""The columns of the journal's tables that may contain words; the rest is searched as bytes of the file."""

# What rows of a table are called in a receipt.
_CALLED = {"payload": "memory", "slate": "recall"}


def _database(file: Path) -> FileParts:
    """Yield the schemas and the text and binary cells of an SQLite database."""
    # A database without a log, such as a backup, is opened as immutable, so that SQLite creates no files next to it.
    closed = not file.with_name(f"{file.name}-wal").exists()
    vault = unlock(file.parent) if file.suffix == ".enc" else None
    option = f"mode=ro{'&immutable=1' if closed else ''}"
    with closing(open_database(file.absolute(), option, 5.0, vault)) as connection:
        for name, sql in connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"
        ):
            yield f"schema {name}", sql.encode()
        for (table,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchall():
            for key, *cells in connection.execute(
                f'SELECT {_CELLS.get(table, "*")} FROM "{table}"'
            ):
                for cell in (key, *cells):
                    if isinstance(cell, str | bytes):
                        blob = cell if isinstance(cell, bytes) else b"\0%b\0" % cell.encode()
                        yield f"{_CALLED.get(table, table)} {str(key)[:12]}", blob


def _table(file: Path) -> FileParts:
    """Yield the columns of a Parquet file that may contain text."""
    for column in pl.read_parquet(file):
        values = column
        while values.dtype.base_type() is pl.List:
            values = values.explode()
        if values.dtype == pl.String:
            yield f"column {column.name}", _listed(values.drop_nulls().unique())
        elif values.dtype.base_type() in (pl.Struct, pl.Object, pl.Binary, pl.Categorical, pl.Enum):
            yield f"column {column.name}", str(values.to_list()).encode()


def _archive(file: Path) -> FileParts:
    """Yield the members of an archive; NumPy arrays of strings are decoded."""
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            if name.endswith(".npy"):
                array = np.load(io.BytesIO(data), allow_pickle=False)
                data = _listed(map(str, array.ravel())) if array.dtype.kind == "U" else data
            yield f"member {name}", data


def _listed(words: Iterable[str]) -> bytes:
    """Return words as bytes, delimited by zero bytes."""
    return b"\0%b\0" % "\0".join(words).encode()


# The decoder for each suffix; a file with another suffix is a single part.
_READERS = {
    ".db": _database,
    ".enc": _database,
    ".parquet": _table,
    ".npz": _archive,
    ".zip": _archive,
}


def _is_value(name: str, file: Path, part_name: str, blob: bytes) -> bool:
    """Return whether a name occurs in a file part as a value rather than as a key."""
    kind = part_name.partition(" ")[0]
    if kind in ("event", "recall") or file.suffix == ".msgpack":
        try:
            decoded = (
                _slate(blob) if kind == "recall" else msgspec.msgpack.decode(blob, strict=False)
            )
        except (MemlabError, msgspec.MsgspecError):
            return True
        return any(name == text for text in _strings(decoded))
    return (
        kind != "schema"
        and re.search(rb'"%b"(?!\s*:)|\0%b\0' % ((re.escape(name.encode()),) * 2), blob) is not None
    )


def _slate(blob: bytes) -> dict[str, Any]:
    """Return the fields of a stored recall, or only the query of a sealed recall."""
    return (
        msgspec.structs.asdict(question_of(blob, decision=0))
        if is_sealed(blob)
        else vars(decode(blob))
    )


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings in a value, its nested mappings and lists, except keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)

"""Searching files for what was purged: as bytes, and in what they decode to where they are compressed or lie in pages.

A text is looked for by pieces of up to ``PIECE`` characters that no format writes otherwise, so a part of it is found
too. What memories that stay say as well is no trace: it is listed, and not looked for. What may be a word of a
vocabulary (``town``) or is very short is looked for as a whole value only, all else anywhere.
"""

from __future__ import annotations

import io
import re
import sqlite3
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
from memlab.kernel.journal import FILE
from memlab.kernel.slates import decode, is_sealed, question_of

__all__ = ["Found", "SearchReport", "SearchTerms", "search_files", "search_terms"]

PIECE = 32
"""Characters of a piece at most."""

_ANYWHERE, _LEAST = 6, 2
"""Bytes from which something is looked for anywhere, and as a whole value: among a hundred million bytes of vectors,
five are found by chance once in ten thousand times."""

_AT_ONCE = 16_000_000
_FEW = 64
"""Pieces up to which it pays to ask first whether any of them is there at all."""

_UNWRITTEN = re.compile('["\\\\<&\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]+')
"""What some format escapes."""

_VOCABULARY = re.compile(r"[a-z][a-z0-9_-]*")
_RUN = 12


@dataclass(frozen=True)
class SearchTerms:
    """What to look for: ``patterns`` by bytes, each with what it tells of; ``values`` count as whole values only.

    ``stated`` are the memories that stay and say as much, with what that tells of. ``short`` counts texts and names
    that are too short to be looked for.
    """

    patterns: Mapping[bytes, str]
    values: Mapping[bytes, str]
    stated: tuple[tuple[int, str], ...] = ()
    short: int = 0

    def hits(self, blobs: Iterable[bytes]) -> list[Counter[bytes]]:
        """How often each pattern, and each value between the marks of a format, occurs in each of these."""
        wanted = {pattern.decode("latin-1"): pattern for pattern in self.patterns}
        wanted |= {
            mark.decode("latin-1"): value for value in self.values for mark in _marked(value)
        }
        blobs = list(blobs)
        if len(wanted) <= _FEW:
            # a tenth of the time that the search for many takes, which has to make text of bytes
            together = b"\n".join(blobs)
            if not any(one.encode("latin-1") in together for one in wanted):
                return [Counter() for _ in blobs]
        held = pl.Series([blob.decode("latin-1") for blob in blobs], dtype=pl.String)
        found = held.str.extract_many(list(wanted), overlapping=True)
        return [Counter(wanted[one] for one in some) for some in found.to_list()]

    def source_of(self, one: bytes) -> str:
        """What a pattern or value tells of."""
        return self.patterns.get(one) or self.values[one]


@dataclass(frozen=True)
class Found:
    """Where a trace is: the file, what it tells of, and what of the file holds it."""

    file: Path
    what: str
    held: str
    count: int = 1


@dataclass
class SearchReport:
    """How much was searched, and what was found. ``opaque`` counts files whose form was not read, only their bytes."""

    files: int = 0
    bytes: int = 0
    opaque: int = 0
    found: list[Found] = field(default_factory=list)


def search_terms(
    texts: Mapping[int, str], names: Iterable[str], stays: pl.DataFrame, borne: Collection[str]
) -> SearchTerms:
    """What to look for of purged ``texts``, by memory, and ``names``.

    ``stays`` has the ``id`` and ``text`` of every memory that stays, ``borne`` the names that those have.
    """
    patterns: dict[str, str] = {}
    values: dict[str, str] = {}
    short = 0
    for id, text in texts.items():
        pieces = list(_pieces(text))
        short += not pieces
        for piece in pieces:
            (patterns if _telling(piece) else values)[piece] = f"text of memory {id}"
    for name in names:
        (patterns if _telling(name) else values).setdefault(name, "a name")
    same = (
        stays.select("id", pl.col("text").str.extract_many(list(patterns), overlapping=True))
        if patterns
        else None
    )
    rows = (
        () if same is None else same.explode("text").drop_nulls().unique(maintain_order=True).rows()
    )
    shared = {piece for _, piece in rows} | {name for name in values if name in borne}
    return SearchTerms(
        {piece.encode(): what for piece, what in patterns.items() if piece not in shared},
        {
            name.encode(): what
            for name, what in values.items()
            if name not in shared and len(name.encode()) >= _LEAST
        },
        tuple(dict.fromkeys((id, patterns[piece]) for id, piece in rows)),
        short + sum(len(name.encode()) < _LEAST for name in values),
    )


def _telling(word: str) -> bool:
    """Whether its bytes tell of it wherever they stand."""
    return len(word.encode()) >= _ANYWHERE and _VOCABULARY.fullmatch(word) is None


def _pieces(text: str) -> Iterator[str]:
    runs = [run.strip() for run in _UNWRITTEN.split(text)]
    longest = max(map(len, runs), default=0)
    for run in runs:
        if run and (len(run) >= _RUN or len(run) == longest):
            yield from (
                run[start : start + PIECE] for start in range(0, max(len(run) - _RUN + 1, 1), PIECE)
            )


def _marked(value: bytes) -> tuple[bytes, ...]:
    """A whole value in JSON, in msgpack, and among those of a table."""
    return b'"%b"' % value, msgspec.msgpack.encode(value.decode()), b"\0%b\0" % value


# -- files ------------------------------------------------------------------------------------------------------------

Held = Iterator[tuple[str, bytes]]
"""The parts of a file: what each is, and its bytes."""


def search_files(roots: Iterable[Path], wanted: SearchTerms) -> SearchReport:
    """Look through every file at or below these paths, each once."""
    done = SearchReport()
    files = {
        file
        for root in roots
        for file in ([root] if root.is_file() else root.rglob("*"))
        if file.is_file()
    }
    for file in sorted(files):
        try:
            raw = _raw(file, wanted)
            done.bytes += file.stat().st_size
            done.files += 1
            done.found += _found(file, raw, wanted, done)
        except OSError as error:
            done.found.append(Found(file, "not searched", error.strerror or str(error)))
    return done


def _found(
    file: Path, raw: Counter[bytes], wanted: SearchTerms, done: SearchReport
) -> Iterator[Found]:
    live: Counter[bytes] = Counter()
    traces: dict[tuple[str, str], list[str]] = {}
    try:
        for parts in _batched(_READERS.get(file.suffix, _contents)(file)):
            for (held, blob), hits in zip(
                parts, wanted.hits(blob for _, blob in parts), strict=True
            ):
                live.update(hits)
                for one in hits:
                    if one in wanted.patterns or _is_value(one.decode(), file, held, blob):
                        kind, _, number = held.partition(" ")
                        traces.setdefault((wanted.source_of(one), kind), []).append(number)
    except (
        MemlabError,
        msgspec.MsgspecError,
        sqlite3.Error,
        pl.exceptions.PolarsError,
        zipfile.BadZipFile,
        ValueError,
    ):
        done.opaque += 1
    for (what, kind), numbers in traces.items():
        several = list(dict.fromkeys(numbers))
        more = f" and {len(several) - 3:,} more" if len(several) > 3 else ""
        yield Found(file, what, f"{kind} {', '.join(several[:3])}{more}".strip(), len(several))
    for one, count in raw.items():
        # among raw bytes a value's marks prove nothing by themselves: keys and memlab's own words have them too
        if count > live[one] and (one in wanted.patterns or live[one]):
            yield Found(file, wanted.source_of(one), "free bytes", count - live[one])


def _raw(file: Path, wanted: SearchTerms) -> Counter[bytes]:
    """How often each occurs in the bytes of a file, which are read in parts that overlap."""
    marks = [mark for value in wanted.values for mark in _marked(value)]
    most = max(map(len, (*wanted.patterns, *marks)), default=1) - 1
    found: Counter[bytes] = Counter()
    tail = b""
    with _bytes_of(file) as opened:
        while part := opened.read(_AT_ONCE):
            whole, again = wanted.hits([tail + part, tail])
            found.update(whole)
            found.subtract(again)
            tail = (tail + part)[-most:] if most else b""
    return found


def _batched(parts: Held) -> Iterator[list[tuple[str, bytes]]]:
    """Some megabytes of parts at a time."""
    some: list[tuple[str, bytes]] = []
    size = 0
    for part in parts:
        some.append(part)
        size += len(part[1])
        if size > _AT_ONCE:
            yield some
            some, size = [], 0
    if some:
        yield some


def _contents(file: Path) -> Held:
    """A file that is what it says: its bytes."""
    with _bytes_of(file) as opened:
        yield "file", opened.read()


@contextmanager
def _bytes_of(file: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file. Those of a database come from another process: to close its file drops every lock that
    SQLite holds on it in this one (POSIX), and who opens the lab next would take the log for one that nobody writes.
    """
    if not file.name.startswith(FILE):
        with file.open("rb") as opened:
            yield opened
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
"""What of a journal's tables may hold words; the rest is hashes and numbers, and is looked at as bytes of the file."""

_CALLED = {"payload": "memory", "slate": "recall"}


def _database(file: Path) -> Held:
    """The cells of a database."""
    # what is closed for good, as a backup, is read without making anything beside it
    closed = not file.with_name(f"{file.name}-wal").exists()
    uri = f"{file.absolute().as_uri()}?mode=ro{'&immutable=1' if closed else ''}"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
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


def _table(file: Path) -> Held:
    """The columns of a Parquet file."""
    for column in pl.read_parquet(file):
        held = column
        while held.dtype.base_type() is pl.List:
            held = held.explode()
        if held.dtype == pl.String:
            yield f"column {column.name}", _listed(held.drop_nulls().unique())
        elif held.dtype.base_type() in (pl.Struct, pl.Object, pl.Binary, pl.Categorical, pl.Enum):
            yield f"column {column.name}", str(held.to_list()).encode()


def _archive(file: Path) -> Held:
    """The members of an archive, and of NumPy's."""
    with zipfile.ZipFile(file) as opened:
        for name in opened.namelist():
            data = opened.read(name)
            if name.endswith(".npy"):
                array = np.load(io.BytesIO(data), allow_pickle=False)
                data = _listed(map(str, array.ravel())) if array.dtype.kind == "U" else data
            yield f"member {name}", data


def _listed(words: Iterable[str]) -> bytes:
    return b"\0%b\0" % "\0".join(words).encode()


_READERS = {".db": _database, ".parquet": _table, ".npz": _archive, ".zip": _archive}


def _is_value(name: str, file: Path, held: str, blob: bytes) -> bool:
    """Whether a name is a value there: not a key, nor a word of memlab's own."""
    kind = held.partition(" ")[0]
    if kind in ("event", "recall") or file.suffix == ".msgpack":
        try:
            decoded = (
                _slate(blob) if kind == "recall" else msgspec.msgpack.decode(blob, strict=False)
            )
        except (MemlabError, msgspec.MsgspecError):
            return True
        return any(name == one for one in _strings(decoded))
    return (
        kind != "schema"
        and re.search(rb'"%b"(?!\s*:)|\0%b\0' % ((re.escape(name.encode()),) * 2), blob) is not None
    )


def _slate(blob: bytes) -> dict[str, Any]:
    """What the journal holds of a recall: the slate, or the question of one that is sealed."""
    return (
        msgspec.structs.asdict(question_of(blob, decision=0))
        if is_sealed(blob)
        else vars(decode(blob))
    )


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)

"""From whatever is given to rows: which reader it is for, guessed by what it is and how it begins."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from memlab.errors import DatasetError, InputError, UnknownName
from memlab.io.ingest import LabelledConversation, read_beam, read_locomo
from memlab.io.reading._columns import TARGETS
from memlab.io.reading._content import plain_object
from memlab.io.reading._json import Entries, document, entry_rows, lines
from memlab.io.reading._lines import Lines, head_of
from memlab.io.reading._notes import Notes
from memlab.io.reading._prose import log, notes_of, speakers
from memlab.io.reading._readers import OWN_SUFFIXES, READERS, entries_of, reader_of
from memlab.io.reading._sheets import frame_entries, is_pandas, pandas_entries, sheet
from memlab.kernel.base.arguments import Called, shown
from memlab.kernel.privacy import is_sensitive

__all__ = ["Options", "Source", "folder_files", "read_file", "read_object", "sources_of_folder"]

_LINES = (".jsonl", ".ndjson")
_SHEETS = (".csv", ".tsv")
_PROSE = (".md", ".markdown", ".txt", ".log")
_SAMPLE_BYTES = 4 << 20
_END = object()

Rows = Iterator[tuple[int, dict[str, Any]]]


@dataclass(frozen=True)
class Options:
    """What a caller says of what is read; see ``Lab.load``."""

    format: str | None = None
    columns: Mapping[str, str | None] = field(default_factory=dict)
    session: str | None = None
    project: str | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in READERS:
            raise UnknownName("format", self.format, READERS)
        for name in self.columns:
            if name not in TARGETS:
                raise UnknownName("field of columns", name, TARGETS)


@dataclass
class Source:
    """One file or object: its rows with their places, to be read once; notes are filled as they are read."""

    notes: Notes
    rows: Rows
    size: int
    """What ``done`` ends with: bytes of a file, rows of an object, 0 where nobody knows."""
    done: Callable[[], int] = lambda: 0
    unit: str = "B"


# -- files --------------------------------------------------------------------------------------------------------


def read_file(path: Path, options: Options, name: str | None = None) -> Source:
    """A file; ``name`` is what it is called in notes. InputError for what is no file, DatasetError for no known format.

    >>> [text for _, row in read_file(Path("chat.md"), Options()).rows for text in [row["text"]]]  # doctest: +SKIP
    """
    notes = Notes(name or path.name, strict=options.strict)
    suffix, head = path.suffix.lower(), "" if path.suffix.lower() == ".parquet" else head_of(path)
    format, size = options.format, path.stat().st_size
    unnamed = (name or path.name).removesuffix(path.suffix)[:200]
    if (reader := reader_of(path, head, format)) is not None:
        return _source(notes, entries_of(reader, path), replace(options, format=None), unnamed, unit="message")
    if suffix == ".parquet":
        return _source(notes, frame_entries(pl.scan_parquet(path, glob=False)), options, unnamed, unit="row")
    begins = head.lstrip()[:1]
    if format == "locomo" or (format is None and begins == "[" and '"session_1' in head and '"speaker_a"' in head):
        return _labelled(notes, read_locomo(path), options, "locomo")
    read = Lines(path, notes)
    if suffix in _SHEETS or format == "csv":
        return _source(notes, sheet(read, head), options, unnamed, unit="line", read=read, size=size)
    if format in ("log", "notes") or (suffix in _PROSE and format is None):
        known = speakers(head)
        if format == "notes" or (format is None and not known and suffix in (".md", ".markdown")):
            return Source(notes, notes_of(read, session=options.session, project=options.project), size, _done(read))
        if not known:
            raise DatasetError(
                f'{notes.source}: no line names a speaker, such as "User:", "**Ida:**" or "## Assistant". '
                'format="notes" reads its paragraphs.'
            )
        rows = log(read, known, session=options.session, project=options.project, unnamed=unnamed)
        return Source(notes, rows, size, _done(read))
    if suffix in _LINES or (suffix != ".json" and begins == "{") or _is_lines(head):
        return _source(notes, lines(read), options, unnamed, unit="line", read=read, size=size)
    if suffix == ".json" or begins == "[" or format in ("messages", "records"):
        size, entries = document(path, notes)
        return _source(notes, entries, options, unnamed, unit="entry")
    raise DatasetError(
        f"{notes.source} is of no format that is read here: {', '.join(_known_suffixes())}. Say it: format= one of "
        f"{', '.join(READERS)}."
    )


def _known_suffixes() -> tuple[str, ...]:
    """Return the endings of files that are read, those of extensions included."""
    own = [suffix for reader in READERS.values() for suffix in reader.suffixes]
    return (*OWN_SUFFIXES, *own)


def _is_lines(head: str) -> bool:
    """Whether a text is one JSON object a line, and more than one line."""
    first, _, rest = head.strip().partition("\n")
    if not first.startswith("{") or not rest.lstrip().startswith("{"):
        return False
    try:
        msgspec.json.decode(first)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def _source(
    notes: Notes,
    entries: Entries,
    options: Options,
    unnamed: str,
    *,
    unit: str,
    read: Lines | None = None,
    size: int = 0,
) -> Source:
    notes.unit = unit
    rows = entry_rows(
        entries,
        notes,
        options.columns,
        session=options.session,
        project=options.project,
        unnamed=unnamed,
        format="records" if options.format == "csv" else options.format,
        enough=(lambda: False) if read is None else (lambda: read.done > _SAMPLE_BYTES),
    )
    return Source(notes, rows, size, (lambda: 0) if read is None else _done(read))


def _done(read: Lines) -> Callable[[], int]:
    return lambda: read.done


def _labelled(notes: Notes, labelled: Iterable[LabelledConversation], options: Options, reader: str) -> Source:
    notes.unit = "turn"
    notes.guessed |= {"reader": reader, "session": "conversation and session", "project": "conversation"}
    rows = [row for one in labelled for row in one.conversation.rows(project=options.project or one.conversation.name)]
    return Source(notes, iter(enumerate(rows, 1)), len(rows), unit="turn")


# -- folders ------------------------------------------------------------------------------------------------------


def sources_of_folder(folder: Path, options: Options) -> Iterator[Source]:
    """Each file of a folder that has a format, by name; a folder of BEAM as its chats.

    Links are not followed, hidden files and files that hold secrets are not read; both are counted, as is what has no
    known format. The last source has no rows and tells of them.
    """
    if options.format == "beam" or (options.format is None and _is_beam(folder)):
        yield _labelled(Notes(folder.name, strict=options.strict), read_beam(folder), options, "beam")
        return
    rest = Notes(folder.name, "file", options.strict)
    none = True
    for number, path in enumerate(folder_files(folder, rest), 1):
        try:
            source = read_file(path, options, path.relative_to(folder).as_posix())
        except (DatasetError, InputError) as problem:
            rest.skip(number, "file that is not read", str(problem))
            continue
        none = False
        yield source
    if none:
        first = f" The first: {rest.places[0][2]}" if rest.places else ""
        raise DatasetError(f"{folder}: none of its files is an export or of a format that is read.{first}")
    yield Source(rest, iter(()), 0)


def folder_files(folder: Path, notes: Notes) -> Iterator[Path]:
    """The regular files below a folder with a suffix that is known here, sorted by name."""
    suffixes = _known_suffixes()
    for here, folders, files in os.walk(folder):
        links = [name for name in folders if Path(here, name).is_symlink()]
        hidden = [name for name in folders if name.startswith(".")]
        folders[:] = sorted(set(folders).difference(links, hidden))
        notes.left_out["link"] += len(links)
        for name in sorted(files):
            path = Path(here, name)
            if path.is_symlink():
                notes.left_out["link"] += 1
            elif is_sensitive(path.relative_to(folder).as_posix()):
                notes.left_out["file of secrets"] += 1
            elif name.startswith(".") or path.suffix.lower() not in suffixes:
                notes.left_out["file of no known format"] += 1
            else:
                yield path
    notes.left_out += type(notes.left_out)()  # without what was counted as none


def _is_beam(folder: Path) -> bool:
    return (folder / "chat.json").is_file() or next(folder.glob("*/chat.json"), None) is not None


# -- objects ------------------------------------------------------------------------------------------------------


def read_object(x: Any, options: Options) -> Source:
    """Messages, rows or a frame that Python holds. InputError for anything else."""
    notes = Notes("what was given", "row", options.strict)
    if isinstance(x, pl.DataFrame | pl.LazyFrame):
        return _source(notes, frame_entries(x), options, "frame", unit="row")
    if is_pandas(x):
        return _source(notes, pandas_entries(x), options, "frame", unit="row")
    if isinstance(x, Mapping):
        items: Iterable[Any] = [x]
    elif isinstance(x, bytes | bytearray) or not isinstance(x, Iterable):
        whole = Called(plain_object, "load")(x)
        if whole is None:
            raise InputError(
                f"load takes a path, a list of messages or of rows, a conversation or a frame, not {shown(x)}."
            )
        items = [whole]
    else:
        items = x
    return _source(notes, _items(items, notes), options, "messages", unit="message")


def _items(items: Iterable[Any], notes: Notes) -> Entries:
    following = Called(iter, "load")(items)
    number = 0
    while (item := Called(next, "load")(following, _END)) is not _END:
        number += 1
        if isinstance(item, str):
            yield number, {"text": item}
            continue
        entry = item if isinstance(item, Mapping) else Called(plain_object, "load")(item)
        if entry is None:
            notes.skip(number, "neither a message nor a row", shown(item))
        else:
            yield number, dict(Called(dict, "load")(entry))

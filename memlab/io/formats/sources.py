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
from memlab.io.formats.benchmarks.beam import read_beam
from memlab.io.formats.benchmarks.labels import LabelledConversation
from memlab.io.formats.benchmarks.locomo import read_locomo
from memlab.io.formats.exports import foreign, jsonl, markdown, parquet, sexp
from memlab.io.formats.exports.lab_folder import is_lab, read_lab
from memlab.io.formats.registry import OWN_SUFFIXES, File, Reader, Source, entries_of, refusal_of
from memlab.io.formats.rows.columns import TARGETS
from memlab.io.formats.rows.content import plain_object
from memlab.io.formats.rows.json import Entries, document, entry_rows, lines
from memlab.io.formats.rows.lines import Lines, head_of
from memlab.io.formats.rows.notes import Notes
from memlab.io.formats.rows.prose import log, notes_of, speakers
from memlab.io.formats.rows.sheets import frame_entries, is_pandas, pandas_entries, sheet
from memlab.kernel.base.arguments import Called, shown
from memlab.kernel.privacy import is_sensitive
from memlab.kernel.registry import Registry

__all__ = [
    "EXPORTS",
    "IMPORTS",
    "READERS",
    "Options",
    "find_reader",
    "folder_files",
    "read_file",
    "read_object",
    "sources_of_folder",
]

_LINES = (".jsonl", ".ndjson")
_SHEETS = (".csv", ".tsv")
_MARKDOWN = (".md", ".markdown")
_SAMPLE_BYTES = 4 << 20
_END = object()


@dataclass(frozen=True)
class Options:
    """What a caller says of what is read; see ``Lab.load``."""

    format: str | None = None
    columns: Mapping[str, str | None] = field(default_factory=dict)
    session: str | None = None
    project: str | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        if self.format is not None and (self.format not in READERS or READERS[self.format]._is_import):
            raise UnknownName("format", self.format, _row_formats())
        for name in self.columns:
            if name not in TARGETS:
                raise UnknownName("field of columns", name, TARGETS)


# -- readers of rows ----------------------------------------------------------------------------------------------


def _read_locomo(file: File, options: Options) -> Source:
    return _labelled(file.notes, read_locomo(file.path), options, "locomo")


def _read_beam(file: File, options: Options) -> Source:
    return _labelled(file.notes, read_beam(file.path), options, "beam")


def _read_sheet(file: File, options: Options) -> Source:
    read = Lines(file.path, file.notes)
    return _source(file.notes, sheet(read, file.head), options, file.unnamed, unit="line", read=read)


def _read_notes(file: File, options: Options) -> Source:
    read = Lines(file.path, file.notes)
    rows = notes_of(read, session=options.session, project=options.project)
    return Source(file.notes, rows, read.size, read.count_done)


def _read_log(file: File, options: Options) -> Source:
    known = speakers(file.head)
    if not known:
        raise DatasetError(
            f'{file.notes.source}: no line names a speaker, such as "User:", "**Ida:**" or "## Assistant". '
            'format="notes" reads its paragraphs.'
        )
    read = Lines(file.path, file.notes)
    rows = log(read, known, session=options.session, project=options.project, unnamed=file.unnamed)
    return Source(file.notes, rows, read.size, read.count_done)


def _read_entries(file: File, options: Options) -> Source:
    """Read JSON, JSON Lines or a table as messages, conversations or records: the first entries decide which."""
    notes, suffix = file.notes, file.suffix
    if suffix == ".parquet":
        frame = pl.scan_parquet(file.path, glob=False)
        return _source(notes, frame_entries(frame), options, file.unnamed, unit="row")
    if suffix in _SHEETS:
        return _read_sheet(file, options)
    if suffix in _LINES or (suffix != ".json" and _opening(file.head) == "{") or _is_lines(file.head):
        read = Lines(file.path, notes)
        return _source(notes, lines(read), options, file.unnamed, unit="line", read=read)
    size, entries = document(file.path, notes)
    return _source(notes, entries, options, file.unnamed, unit="entry", size=size)


def _is_locomo(path: Path, head: str) -> bool:
    return _opening(head) == "[" and '"session_1' in head and '"speaker_a"' in head


def _is_beam(folder: Path, head: str) -> bool:
    if not folder.is_dir():
        return False
    return (folder / "chat.json").is_file() or next(folder.glob("*/chat.json"), None) is not None


def _is_notes(path: Path, head: str) -> bool:
    return path.suffix.lower() in _MARKDOWN and not speakers(head)


def _is_entries(path: Path, head: str) -> bool:
    return path.suffix.lower() in (".json", ".parquet", *_LINES) or _opening(head) in ("{", "[")


def _has_suffix(*suffixes: str) -> Callable[[Path, str], bool]:
    return lambda path, head: path.suffix.lower() in suffixes


def _opening(head: str) -> str:
    return head.lstrip()[:1]


def _is_lines(head: str) -> bool:
    """Return whether a text is one JSON object a line, and more than one line."""
    first, _, rest = head.strip().partition("\n")
    if not first.startswith("{") or not rest.lstrip().startswith("{"):
        return False
    try:
        msgspec.json.decode(first)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


# -- the registry -------------------------------------------------------------------------------------------------

READERS: Registry[Reader] = Registry(
    "format",
    (
        Reader(
            "jsonl",
            "an export of a lab in JSON Lines",
            (".jsonl", ".ndjson"),
            matches=jsonl.is_export,
            _bundle=jsonl.read_jsonl,
            _write=jsonl.write_jsonl,
        ),
        Reader(
            "parquet",
            "an export of a lab in Parquet: one file, or a folder of tables",
            (".parquet",),
            matches=parquet.is_export,
            _bundle=parquet.read_parquet,
            _write=parquet.write_parquet_file,
        ),
        Reader(
            "markdown",
            "an export of a lab in Markdown",
            _MARKDOWN,
            matches=markdown.is_export,
            _bundle=markdown.read_markdown,
            _write=markdown.write_markdown,
        ),
        Reader(
            "sexp",
            "an export of a lab as S-expressions",
            (".sexp", ".hy", ".lisp"),
            matches=_has_suffix(".sexp", ".hy", ".lisp"),
            _bundle=sexp.read_sexp,
            _write=sexp.write_sexp,
        ),
        Reader(
            "mem0",
            "memories as mem0 lists them",
            matches=foreign.is_mem0,
            _bundle=foreign.read_mem0,
        ),
        Reader(
            "langgraph",
            "items of a LangGraph store",
            matches=foreign.is_langgraph,
            _bundle=foreign.read_langgraph,
        ),
        Reader("lab", "the folder of a lab", matches=is_lab, _bundle=read_lab),
        Reader("locomo", "conversations of the LoCoMo benchmark", matches=_is_locomo, _rows=_read_locomo),
        Reader("beam", "chats of the BEAM benchmark", matches=_is_beam, _rows=_read_beam),
        Reader(
            "csv",
            "a table with a header, separated by commas, semicolons or tabs",
            _SHEETS,
            matches=_has_suffix(*_SHEETS),
            _rows=_read_sheet,
        ),
        Reader("notes", "paragraphs, each of them a memory", _MARKDOWN, matches=_is_notes, _rows=_read_notes),
        Reader(
            "log",
            "lines or blocks that begin with a speaker",
            (".txt", ".log"),
            matches=_has_suffix(*_MARKDOWN, ".txt", ".log"),
            _rows=_read_log,
        ),
        Reader(
            "messages",
            "messages with roles or speakers, as chat services export them",
            (".json", *_LINES, ".parquet"),
            matches=_is_entries,
            _rows=_read_entries,
        ),
        Reader("records", "rows with a text and fields of memories", _rows=_read_entries),
    ),
    kind="readers",
    about="doc",
    check=refusal_of,
)
"""What ``format=`` may name, in the order in which a file is compared with them; extensions come after imports."""

IMPORTS = tuple(reader.name for reader in READERS.values() if reader._is_import)
"""Formats that keep what a lab knows of a memory: its id, times, counts, status and edges."""
EXPORTS = tuple(reader.name for reader in READERS.values() if reader._write is not None)


def _row_formats() -> tuple[str, ...]:
    return tuple(reader.name for reader in READERS.values() if not reader._is_import)


def find_reader(path: Path, format: str | None = None, *, head: str | None = None) -> Reader | None:
    """Return the reader of the file or folder at ``path``, or None if it is of no known format.

    ``format`` names the reader. ``head`` is how the file begins: where it is given, the file is read as rows, whatever
    wrote it.
    """
    if format is not None:
        return READERS[format]
    as_rows = head is not None
    if head is None:
        head = _head_of(path)
    rank = {True: 0, False: 2}
    ordered = sorted(READERS.values(), key=lambda reader: 1 if reader.owner else rank[reader._is_import])
    for reader in ordered:
        if not (as_rows and reader._is_import) and reader._is_of(path, head):
            return reader
    return None


def _head_of(path: Path) -> str:
    return "" if path.is_dir() or path.suffix.lower() == ".parquet" else head_of(path)


# -- files --------------------------------------------------------------------------------------------------------


def read_file(path: Path, options: Options, name: str | None = None) -> Source:
    """Read a file as rows; ``name`` is what it is called in notes.

    Raises InputError for what is no file, DatasetError for no known format.

    >>> [row["text"] for _, row in read_file(Path("chat.md"), Options()).rows]  # doctest: +SKIP
    """
    notes = Notes(name or path.name, strict=options.strict)
    head = _head_of(path)
    unnamed = (name or path.name).removesuffix(path.suffix)[:200]
    reader = find_reader(path, options.format, head=head)
    if reader is None:
        raise DatasetError(
            f"{notes.source} is of no format that is read here: {', '.join(_known_suffixes())}. Say it: format= one of "
            f"{', '.join(_row_formats())}."
        )
    if reader._rows is not None:
        return reader._rows(File(path, head, notes, unnamed), options)
    plain = replace(options, format=None)
    return _source(notes, entries_of(reader, path), plain, unnamed, unit="message")


def _known_suffixes() -> tuple[str, ...]:
    """Return the endings of files that are read, those of extensions included."""
    own = [suffix for reader in READERS.values() if reader.owner for suffix in reader.suffixes]
    return (*OWN_SUFFIXES, *own)


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
    return Source(notes, rows, size) if read is None else Source(notes, rows, read.size, read.count_done)


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
    if options.format == "beam" or (options.format is None and _is_beam(folder, "")):
        yield _read_beam(File(folder, "", Notes(folder.name, strict=options.strict), ""), options)
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

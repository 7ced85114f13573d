"""The registry of file formats: how a file is recognised, read and written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from memlab.errors import DatasetError, ExtensionError, MemlabError, UnknownName
from memlab.io.formats.agent_logs import (
    is_codex,
    is_inspect,
    is_server_memory,
    is_spans,
    parse_codex,
    parse_inspect,
    parse_server_memory,
    parse_spans,
)
from memlab.io.formats.archives import is_archive
from memlab.io.formats.bundle import Bundle
from memlab.io.formats.chat_services import (
    is_discord,
    is_slack,
    is_telegram,
    parse_discord,
    parse_slack,
    parse_telegram,
)
from memlab.io.formats.chats import read_beam
from memlab.io.formats.columns import TARGETS
from memlab.io.formats.entries import (
    Entries,
    convert_entries,
    parse_document,
    parse_json_lines,
    parse_sheet,
    read_frame,
)
from memlab.io.formats.foreign import is_langgraph, is_mem0, read_langgraph, read_mem0
from memlab.io.formats.lab_folder import is_lab, read_lab
from memlab.io.formats.labelled import LabelledConversation
from memlab.io.formats.lines import Lines, Notes, read_start
from memlab.io.formats.locomo import read_locomo
from memlab.io.formats.parquet import is_parquet_export, read_parquet, write_parquet_file
from memlab.io.formats.parquet_limits import scan_parquet
from memlab.io.formats.prose import find_speakers, has_markup, is_log, parse_log, parse_notes
from memlab.io.formats.text_formats import (
    is_jsonl_export,
    is_markdown_export,
    read_jsonl,
    read_markdown,
    read_sexp,
    write_jsonl,
    write_markdown,
    write_sexp,
)
from memlab.io.formats.whatsapp import is_whatsapp, parse_whatsapp
from memlab.kernel.registry import Registry

OWN_SUFFIXES = (
    ".json",
    ".jsonl",
    ".ndjson",
    ".csv",
    ".tsv",
    ".md",
    ".markdown",
    ".txt",
    ".log",
    ".parquet",
    ".eval",
)
"""Suffixes of files that memlab reads as rows; ``format=`` may name another reader for such a file."""


Rows = Iterator[tuple[int, dict[str, Any]]]


@dataclass
class Source:
    """The memory rows of one file or object, which can be read once.

    Attributes
    ----------
    notes
        Guesses, omissions and skipped rows; filled while rows are read.
    rows
        Pairs of a location (line, row or message number) and a row for ``lab.remember``.
    size
        Final value of ``done``: bytes of a file, rows of an object, 0 if unknown.
    done
        Function that returns how much has been read so far.
    unit
        Unit of ``size``.
    """

    notes: Notes
    rows: Rows
    size: int
    """The final value of ``done``: bytes of a file, rows of an object, 0 if unknown."""
    done: Callable[[], int] = lambda: 0
    unit: str = "B"


@dataclass(frozen=True)
class File:
    """A file to be read as rows, with its beginning and the notes to fill.

    Attributes
    ----------
    path
        Path of the file.
    start
        Its first 64 kB as text.
    notes
        Notes to fill while it is read.
    default_session
        Name of a session that has none in the file.
    """

    path: Path
    start: str
    notes: Notes
    default_session: str

    @property
    def suffix(self) -> str:
        """The suffix of the file's name in lower case."""
        return self.path.suffix.lower()


@dataclass(frozen=True)
class Reader:
    """A file format that is read as messages or rows.

    Parameters
    ----------
    name
        Name of the format, for ``format=``.
    doc
        Description of the format in one sentence.
    suffixes
        Suffixes of its files in lower case, such as ``".vtt"``.
    read
        Function from a path to mappings: messages (``text``, optionally ``speaker``, ``role``, ``at``, ``session``,
        ``project``) or rows. It raises ``memlab.errors.DatasetError`` for a malformed file.
    matches
        Function from a path and the beginning of the file to whether a file with an unknown suffix has this format.
    owner
        Name of the extension that declares the format; empty for formats of memlab.
    """

    name: str
    doc: str
    suffixes: tuple[str, ...] = ()
    read: Callable[[Path], Iterable[Mapping[str, Any]]] | None = field(default=None, compare=False)
    matches: Callable[[Path, str], bool] | None = field(default=None, compare=False)
    owner: str = ""
    _rows: Callable[[File, Any], Source] | None = field(
        default=None, compare=False, repr=False, kw_only=True
    )
    """Reader of memlab's own formats of rows and messages."""
    _bundle: Callable[..., Bundle] | None = field(
        default=None, compare=False, repr=False, kw_only=True
    )
    """Reader of formats that keep id, times, counts, status and edges of a memory."""
    _write: Callable[[Bundle, BinaryIO], None] | None = field(
        default=None, compare=False, repr=False, kw_only=True
    )
    _is_folder: bool = field(default=False, compare=False, repr=False, kw_only=True)
    """Whether a folder of files is one source of rows."""

    @property
    def _keeps_ids(self) -> bool:
        """Whether the format preserves ids, times, counts and edges of memories."""
        return self._bundle is not None

    def _recognises(self, path: Path, start: str) -> bool:
        """Return whether a file has this format, judged by its suffix and its beginning ``start``."""
        suffix = path.suffix.lower()
        if not self.owner:
            return self.matches is not None and self.matches(path, start)
        if suffix in self.suffixes:
            return True
        return suffix not in OWN_SUFFIXES and self.matches is not None and self.matches(path, start)


def find_fault(reader: Reader) -> str | None:
    """Return why an extension's reader is refused, or None if the reader is valid."""
    if reader.read is None:
        return f"The reader {reader.name} has no function. Give read=, a function from a path to messages."
    refused = [
        suffix for suffix in reader.suffixes if suffix in OWN_SUFFIXES or not suffix.startswith(".")
    ]
    return f"The reader {reader.name} cannot have the suffix {refused[0]}." if refused else None


def read_entries(reader: Reader, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each message of an extension's reader with the message's number.

    Raises ExtensionError if the reader fails, DatasetError if it returns something else.
    """
    assert reader.read is not None
    owner = f"The reader {reader.name} of the extension {reader.owner}"
    number = 0
    try:
        for number, entry in enumerate(reader.read(path), 1):
            if not isinstance(entry, Mapping):
                raise DatasetError(
                    f"{path.name}: {owner} returned {type(entry).__name__} as message "
                    f"{number}; each message must be a mapping."
                )
            yield number, dict(entry)
    except MemlabError:
        raise
    except Exception as error:
        raise ExtensionError(
            f"{owner} failed after {number} messages of {path.name} with {type(error).__name__}: {error}"
        ) from error


# Suffixes of JSON Lines, of tables and of Markdown.
_LINES = (".jsonl", ".ndjson")
_SHEETS = (".csv", ".tsv")
_MARKDOWN = (".md", ".markdown")
# Bytes after which a sample of entries suffices, so that long lines do not delay the first row.
_SAMPLE_BYTES = 4 << 20


@dataclass(frozen=True)
class Options:
    """The arguments of ``Lab.load`` that concern the reading of files."""

    format: str | None = None
    columns: Mapping[str, str | None] = field(default_factory=dict)
    session: str | None = None
    project: str | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        if self.format is not None and (
            self.format not in READERS or READERS[self.format]._keeps_ids
        ):
            raise UnknownName("format", self.format, list_row_formats())
        for name in self.columns:
            if name not in TARGETS:
                raise UnknownName("field of columns", name, TARGETS)


# -- readers of rows ----------------------------------------------------------------------------------------------


def _read_locomo(file: File, options: Options) -> Source:
    """Read the conversations of a LoCoMo file as memory rows."""
    return _build_labelled_source(file.notes, read_locomo(file.path), options, "locomo")


def read_beam_folder(file: File, options: Options) -> Source:
    """Read the chats of a BEAM folder as memory rows."""
    return _build_labelled_source(file.notes, read_beam(file.path), options, "beam")


def _read_sheet(file: File, options: Options) -> Source:
    """Read the rows of a CSV or TSV file as memory rows."""
    lines = Lines(file.path, file.notes)
    return build_source(
        file.notes,
        parse_sheet(lines, file.start),
        options,
        file.default_session,
        unit="line",
        read=lines,
    )


def _read_notes(file: File, options: Options) -> Source:
    """Read the paragraphs of a Markdown file as memory rows."""
    lines = Lines(file.path, file.notes)
    rows = parse_notes(lines, session=options.session, project=options.project)
    return Source(file.notes, rows, lines.size, lines.count_done)


def _read_chat(
    name: str, parse: Callable[[Path, Notes], Rows], kind: str = "turn"
) -> Callable[[File, Options], Source]:
    """Return the reader of a format whose parser yields complete rows."""

    def read(file: File, options: Options) -> Source:
        """Read the messages of a file; a session and project of the caller take precedence."""
        file.notes.guessed["reader"] = name
        chosen = {"session": options.session, "project": options.project}
        common = {field: value for field, value in chosen.items() if value is not None}
        rows = (
            (location, {"kind": kind, **row, **common})
            for location, row in parse(file.path, file.notes)
        )
        return Source(file.notes, rows, 0)

    return read


def _read_agent_log(
    name: str, parse: Callable[[Path, Notes], Entries]
) -> Callable[[File, Options], Source]:
    """Return the reader of a format whose parser yields messages with content parts."""

    def read(file: File, options: Options) -> Source:
        """Convert the messages of a file to rows."""
        file.notes.guessed["reader"] = name
        return build_source(
            file.notes,
            parse(file.path, file.notes),
            replace(options, format="messages"),
            file.default_session,
            unit=file.notes.unit,
        )

    return read


def _read_log(file: File, options: Options) -> Source:
    """Read the turns of a conversation log as memory rows."""
    speakers = find_speakers(file.start)
    if not speakers:
        raise DatasetError(
            f'{file.notes.source}: no speakers were found in its first 64 kB. A speaker is a role, such as "User:" or '
            '"## Assistant", or a name that begins several lines, such as "**Ida:**". format="notes" reads the file as '
            "paragraphs."
        )
    lines = Lines(file.path, file.notes)
    rows = parse_log(
        lines,
        speakers,
        session=options.session,
        project=options.project,
        default_session=file.default_session,
    )
    return Source(file.notes, rows, lines.size, lines.count_done)


def _read_entries(file: File, options: Options) -> Source:
    """Read JSON, JSON Lines or a table as rows, from messages, conversations or records.

    The first entries decide between messages, conversations and records.
    """
    notes, suffix = file.notes, file.suffix
    if suffix == ".parquet":
        frame = scan_parquet(file.path)
        return build_source(notes, read_frame(frame), options, file.default_session, unit="row")
    if suffix in _SHEETS:
        return _read_sheet(file, options)
    if (
        suffix in _LINES
        or (suffix != ".json" and _first_character(file.start) == "{")
        or _is_json_lines(file.start)
    ):
        lines = Lines(file.path, notes)
        return build_source(
            notes, parse_json_lines(lines), options, file.default_session, unit="line", read=lines
        )
    size, entries = parse_document(file.path, notes)
    return build_source(notes, entries, options, file.default_session, unit="entry", size=size)


def _is_locomo(path: Path, start: str) -> bool:
    """Return whether the beginning of a file has the format of LoCoMo."""
    return _first_character(start) == "[" and '"session_1' in start and '"speaker_a"' in start


def is_beam(folder: Path, start: str) -> bool:
    """Return whether a folder contains BEAM chats."""
    if not folder.is_dir():
        return False
    chats = chain((folder / "chat.json",), folder.glob("*/chat.json"))
    first = next(filter(Path.is_file, chats), None)
    # other programs name their files chat.json, too
    return first is not None and '"turns"' in read_start(first)


def _is_notes(path: Path, start: str) -> bool:
    """Return whether a file is Markdown, or text with headings or lists, but no conversation."""
    suffix = path.suffix.lower()
    if suffix == ".txt" and (find_speakers(start) or not has_markup(start)):
        return False
    return suffix in (*_MARKDOWN, ".txt") and not is_log(start)


def _is_entries(path: Path, start: str) -> bool:
    """Return whether a file is JSON, JSON Lines or Parquet, by suffix or content."""
    return path.suffix.lower() in (".json", ".parquet", *_LINES) or _first_character(start) in (
        "{",
        "[",
    )


def _has_suffix(*suffixes: str) -> Callable[[Path, str], bool]:
    """Return a predicate that tests whether a file has one of these suffixes."""
    return lambda path, start: path.suffix.lower() in suffixes


def _first_character(start: str) -> str:
    """Return the first character of a text that is not white space."""
    return start.lstrip()[:1]


def _is_json_lines(start: str) -> bool:
    """Return whether a text's first line is a JSON object and the rest also begins with "{"."""
    first, _, rest = start.strip().partition("\n")
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
            matches=is_jsonl_export,
            _bundle=read_jsonl,
            _write=write_jsonl,
        ),
        Reader(
            "parquet",
            "an export of a lab in Parquet: one file, or a folder of tables",
            (".parquet",),
            matches=is_parquet_export,
            _bundle=read_parquet,
            _write=write_parquet_file,
        ),
        Reader(
            "markdown",
            "an export of a lab in Markdown",
            _MARKDOWN,
            matches=is_markdown_export,
            _bundle=read_markdown,
            _write=write_markdown,
        ),
        Reader(
            "sexp",
            "an export of a lab as S-expressions",
            (".sexp", ".hy", ".lisp"),
            matches=_has_suffix(".sexp", ".hy", ".lisp"),
            _bundle=read_sexp,
            _write=write_sexp,
        ),
        Reader(
            "mem0",
            "memories as mem0 lists them",
            matches=is_mem0,
            _bundle=read_mem0,
        ),
        Reader(
            "langgraph",
            "items of a LangGraph store",
            matches=is_langgraph,
            _bundle=read_langgraph,
        ),
        Reader("lab", "the folder of a lab", matches=is_lab, _bundle=read_lab),
        Reader(
            "locomo",
            "conversations of the LoCoMo benchmark",
            matches=_is_locomo,
            _rows=_read_locomo,
        ),
        Reader(
            "beam",
            "chats of the BEAM benchmark",
            matches=is_beam,
            _rows=read_beam_folder,
            _is_folder=True,
        ),
        Reader(
            "whatsapp",
            "chats that WhatsApp exports as text",
            matches=is_whatsapp,
            _rows=_read_chat("whatsapp", parse_whatsapp),
        ),
        Reader(
            "slack",
            "the folder of a Slack export, or one channel of it",
            matches=is_slack,
            _rows=_read_chat("slack", parse_slack),
            _is_folder=True,
        ),
        Reader(
            "discord",
            "a Discord channel as DiscordChatExporter writes it in JSON",
            matches=is_discord,
            _rows=_read_chat("discord", parse_discord),
        ),
        Reader(
            "telegram",
            "chats that Telegram's desktop app exports in JSON",
            matches=is_telegram,
            _rows=_read_chat("telegram", parse_telegram),
        ),
        Reader(
            "codex",
            "the rollout of a Codex session",
            matches=is_codex,
            _rows=_read_agent_log("codex", parse_codex),
        ),
        Reader(
            "spans",
            "OpenTelemetry spans of language models, from the SDK's exporters",
            matches=is_spans,
            _rows=_read_agent_log("spans", parse_spans),
        ),
        Reader(
            "inspect",
            "a log of Inspect: .eval or JSON",
            matches=is_inspect,
            _rows=_read_agent_log("inspect", parse_inspect),
        ),
        Reader(
            "server-memory",
            "the graph of server-memory of the Model Context Protocol",
            matches=is_server_memory,
            _rows=_read_chat("server-memory", parse_server_memory, kind="fact"),
        ),
        Reader(
            "csv",
            "a table with a header, separated by commas, semicolons or tabs",
            _SHEETS,
            matches=_has_suffix(*_SHEETS),
            _rows=_read_sheet,
        ),
        Reader(
            "notes",
            "paragraphs, each one a memory",
            _MARKDOWN,
            matches=_is_notes,
            _rows=_read_notes,
        ),
        Reader(
            "log",
            "lines or paragraphs that begin with a speaker",
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
    check=find_fault,
)
"""All formats by name, in the order in which they are compared with a file; extensions come after imports."""

IMPORTS = tuple(reader.name for reader in READERS.values() if reader._keeps_ids)
"""Formats that keep id, times, counts, status and edges of a memory."""
# Formats that can be written.
EXPORTS = tuple(reader.name for reader in READERS.values() if reader._write is not None)


def list_row_formats() -> tuple[str, ...]:
    """Return the names of all formats whose readers yield rows."""
    return tuple(reader.name for reader in READERS.values() if not reader._keeps_ids)


def find_reader(
    path: Path, format: str | None = None, *, start: str | None = None
) -> Reader | None:
    """Return the reader of a file or folder, or None if no reader recognises it.

    ``format`` names a reader directly. If ``start``, the beginning of the file, is given, only
    formats that contain rows are considered.
    """
    if format is not None:
        return READERS[format]
    as_rows = start is not None
    if start is None:
        start = read_start_of_path(path)
    # formats of memlab that keep ids are the most specific; extensions come before general formats
    rank = {True: 0, False: 2}
    ordered = sorted(
        READERS.values(), key=lambda reader: 1 if reader.owner else rank[reader._keeps_ids]
    )
    for reader in ordered:
        if not (as_rows and reader._keeps_ids) and reader._recognises(path, start):
            return reader
    return None


def read_start_of_path(path: Path) -> str:
    """Return the beginning of a file as text, or "" for folders, archives and Parquet files."""
    is_binary = path.is_dir() or path.suffix.lower() in (".parquet", ".eval") or is_archive(path)
    return "" if is_binary else read_start(path)


def list_suffixes() -> tuple[str, ...]:
    """Return the suffixes of readable files, including suffixes that extensions declare."""
    own = [suffix for reader in READERS.values() if reader.owner for suffix in reader.suffixes]
    return (*OWN_SUFFIXES, *own)


def build_source(
    notes: Notes,
    entries: Entries,
    options: Options,
    default_session: str,
    *,
    unit: str,
    read: Lines | None = None,
    size: int = 0,
) -> Source:
    """Convert entries to a source of memory rows."""
    notes.unit = unit
    rows = convert_entries(
        entries,
        notes,
        options.columns,
        session=options.session,
        project=options.project,
        default_session=default_session,
        format="records" if options.format == "csv" else options.format,
        enough=(lambda: False) if read is None else (lambda: read.done > _SAMPLE_BYTES),
    )
    return (
        Source(notes, rows, size)
        if read is None
        else Source(notes, rows, read.size, read.count_done)
    )


def _build_labelled_source(
    notes: Notes, labelled: Iterable[LabelledConversation], options: Options, reader: str
) -> Source:
    """Convert the turns of benchmark conversations to a source of memory rows."""
    notes.unit = "turn"
    notes.guessed |= {
        "reader": reader,
        "session": "conversation and session",
        "project": "conversation",
    }
    rows = [
        row
        for item in labelled
        for row in item.conversation.rows(project=options.project or item.conversation.name)
    ]
    return Source(notes, iter(enumerate(rows, 1)), len(rows), unit="turn")

"""Formats of files that ``lab.load`` takes: those of memlab by name, and readers that extensions declare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memlab.errors import DatasetError, ExtensionError, MemlabError
from memlab.kernel.registry import Registry

__all__ = ["OWN_SUFFIXES", "READERS", "Reader", "entries_of", "reader_of"]


@dataclass(frozen=True)
class Reader:
    """A format of files, read as messages or rows.

    Parameters
    ----------
    name
        What ``format=`` names.
    doc
        One sentence: what the format is.
    suffixes
        Endings of file names, lower case, such as ``".vtt"``: a file with one of them is of this format.
    read
        Called with a path; gives a mapping for each message (``text``, and any of ``speaker``, ``role``, ``at``,
        ``session``, ``project``) or row. It raises ``memlab.errors.DatasetError`` for a malformed file.
    matches
        Says from a path and the beginning of the file whether a file without a known ending is of this format.
    """

    name: str
    doc: str
    suffixes: tuple[str, ...] = ()
    read: Callable[[Path], Iterable[Mapping[str, Any]]] | None = field(default=None, compare=False)
    matches: Callable[[Path, str], bool] | None = field(default=None, compare=False)
    owner: str = ""


def _refusal(reader: Reader) -> str | None:
    """Return why an extension's reader is refused."""
    if reader.read is None:
        return f"The reader {reader.name} has no function: give read=, a function from a path to messages."
    if not reader.suffixes and reader.matches is None:
        return None
    taken = [suffix for suffix in reader.suffixes if suffix in OWN_SUFFIXES or not suffix.startswith(".")]
    return f"The reader {reader.name} cannot have the ending {taken[0]}." if taken else None


OWN_SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".md", ".markdown", ".txt", ".log", ".parquet")
"""Endings of files that memlab reads itself; ``format=`` may name another reader for such a file."""

READERS: Registry[Reader] = Registry(
    "format",
    (
        Reader("messages", "messages with roles or speakers, as chat services export them"),
        Reader("records", "rows with a text and fields of memories"),
        Reader("csv", "a table with a header, separated by commas, semicolons or tabs"),
        Reader("log", "lines or blocks that begin with a speaker"),
        Reader("notes", "paragraphs, each of them a memory"),
        Reader("locomo", "conversations of the LoCoMo benchmark"),
        Reader("beam", "chats of the BEAM benchmark"),
    ),
    kind="readers",
    about="doc",
    check=_refusal,
)
"""What ``format=`` may name, besides the formats of imports."""


def reader_of(path: Path, head: str, format: str | None) -> Reader | None:
    """Return the extension's reader for a file; None where memlab reads it itself."""
    if format is not None:
        return READERS[format] if READERS[format].read is not None else None
    suffix = path.suffix.lower()
    for reader in READERS.values():
        if reader.read is None:
            continue
        if suffix in reader.suffixes or (suffix not in OWN_SUFFIXES and reader.matches and reader.matches(path, head)):
            return reader
    return None


def entries_of(reader: Reader, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Give each message of a file with its number; ExtensionError where the reader fails or gives something else."""
    assert reader.read is not None
    called = f"The reader {reader.name} of the extension {reader.owner}"
    number = 0
    try:
        for number, entry in enumerate(reader.read(path), 1):
            if not isinstance(entry, Mapping):
                raise DatasetError(f"{path.name}: {called} gave {type(entry).__name__} as message {number}.")
            yield number, dict(entry)
    except MemlabError:
        raise
    except Exception as error:
        raise ExtensionError(
            f"{called} failed after {number} messages of {path.name} with {type(error).__name__}: {error}"
        ) from error

"""A format of files: how a file of it is known, read and written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from memlab.errors import DatasetError, ExtensionError, MemlabError
from memlab.io.formats.exports.bundle import Bundle
from memlab.io.formats.rows.notes import Notes

__all__ = ["OWN_SUFFIXES", "File", "Reader", "Source", "entries_of", "refusal_of"]

OWN_SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".md", ".markdown", ".txt", ".log", ".parquet")
"""Endings of files that memlab reads as rows; ``format=`` may name another reader for such a file."""


Rows = Iterator[tuple[int, dict[str, Any]]]


@dataclass
class Source:
    """One file or object: its rows with their places, to be read once; notes are filled as they are read."""

    notes: Notes
    rows: Rows
    size: int
    """What ``done`` ends with: bytes of a file, rows of an object, 0 where nobody knows."""
    done: Callable[[], int] = lambda: 0
    unit: str = "B"


@dataclass(frozen=True)
class File:
    """A file that is read as rows; ``head`` is how it begins, ``unnamed`` names a session that has no name."""

    path: Path
    head: str
    notes: Notes
    unnamed: str

    @property
    def suffix(self) -> str:
        """The ending of its name in lower case."""
        return self.path.suffix.lower()


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
    _rows: Callable[[File, Any], Source] | None = field(default=None, compare=False, repr=False, kw_only=True)
    """Of memlab's own formats of rows and messages."""
    _bundle: Callable[..., Bundle] | None = field(default=None, compare=False, repr=False, kw_only=True)
    """Of formats that keep what a lab knows of a memory: its id, times, counts, status and edges."""
    _write: Callable[[Bundle, BinaryIO], None] | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def _is_import(self) -> bool:
        return self._bundle is not None

    def _is_of(self, path: Path, head: str) -> bool:
        """Return whether a file is of this format; ``head`` is how it begins."""
        suffix = path.suffix.lower()
        if not self.owner:
            return self.matches is not None and self.matches(path, head)
        if suffix in self.suffixes:
            return True
        return suffix not in OWN_SUFFIXES and self.matches is not None and self.matches(path, head)


def refusal_of(reader: Reader) -> str | None:
    """Return why an extension's reader is refused."""
    if reader.read is None:
        return f"The reader {reader.name} has no function: give read=, a function from a path to messages."
    taken = [suffix for suffix in reader.suffixes if suffix in OWN_SUFFIXES or not suffix.startswith(".")]
    return f"The reader {reader.name} cannot have the ending {taken[0]}." if taken else None


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

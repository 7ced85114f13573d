"""The six commands of Claude's memory tool on a lab: each file is a memory.

    from memlab.io.adapters.claude import MemoryFiles
    files = MemoryFiles(memlab.open("agent.memlab"))
    files.run({"command": "create", "path": "/memories/ada.md", "file_text": "Ada prefers tea."})

| command | in the lab |
|---|---|
| ``view`` of a file | ``recall`` of the memory, by its path and beginning: logged, and counted as a use |
| ``view`` of a folder | lists names without texts, so nothing is logged |
| ``create`` | ``remember``: the text of the file is the text of the memory; an existing file is not replaced |
| ``str_replace``, ``insert`` | ``edit``: earlier versions stay in the history |
| ``rename`` | ``edit`` of the path, for each file in a folder |
| ``delete`` | ``delete``: excluded from recall; ``lab.restore`` restores it |

There is no file system: a path is a name in the lab, and a path outside of ``/memories`` is refused
before any lookup. Secrets in a file are redacted, as in every text. ``LabMemoryTool`` and ``AsyncLabMemoryTool`` of
``memlab.io.adapters.claude_tool`` offer the commands as a tool of the ``anthropic`` package.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from memlab.errors import InputError, did_you_mean
from memlab.io.adapters._records import (
    Record,
    Records,
    Write,
    build_write,
    decode_value,
    encode_value,
)
from memlab.kernel.base.arguments import checked, describe_value
from memlab.kernel.recall import Hits
from memlab.kernel.state import is_blank
from memlab.subjects.lab import Lab

# The directory of Claude's memory tool.
ROOT = "/memories"
_COMMANDS: dict[str, dict[str, bool]] = {
    "view": {"path": True, "view_range": False},
    "create": {"path": True, "file_text": True},
    "str_replace": {"path": True, "old_str": True, "new_str": False},
    "insert": {"path": True, "insert_line": True, "insert_text": True},
    "delete": {"path": True},
    "rename": {"old_path": True, "new_path": True},
}
"""Arguments of each command, and whether they are required."""
# Line numbers have six digits in the format of the tool.
_MAX_LINES = 999_999
# Limits of common file systems, so that files can be exported.
_MAX_NAME, _MAX_DEPTH = 255, 32
# Characters of a file in the query that logs a view: enough to rank the file first.
_QUERY_CHARACTERS = 500


class MemoryFiles:
    """The memory files of one agent, stored as memories of a lab.

    Every command returns the sentence that the model reads. Errors (InputError) are written for the model, too.
    Sentences and errors have the words of the SDK's own tool, which models were trained on. A refused command
    changes nothing.

    Parameters
    ----------
    lab
        The lab that stores the files.
    name
        Name that separates these files from others in the lab.
    project
        Project of each memory.
    creator
        Creator of each memory.

    Examples
    --------
    >>> import memlab
    >>> from memlab.io.adapters.claude import MemoryFiles
    >>> files = MemoryFiles(memlab.open())
    >>> files.create("/memories/ada.md", "Ada prefers tea.")
    'File created successfully at: /memories/ada.md'
    """

    @checked
    def __init__(
        self,
        lab: Lab,
        *,
        name: str = "claude",
        project: str | None = None,
        creator: str | None = None,
    ) -> None:
        self._records = Records(lab, name, project=project, creator=creator)

    @property
    def hits(self) -> Hits | None:
        """The hits of the last view of a file, or None before the first view.

        ``lab.feedback`` and ``lab.agents.credits.answer`` take them.
        """
        return self._records.hits

    @checked
    def run(self, command: Mapping[str, Any]) -> str:
        """Execute a command of the model, and return the reply for the model.

        Parameters
        ----------
        command
            Dict with ``command`` and its arguments.

        Returns
        -------
        str
            The sentence for the model.

        Raises
        ------
        InputError
            If the command or an argument is unknown, or the command is refused.
        """
        arguments = {name: value for name, value in dict(command).items() if value is not None}
        name = arguments.pop("command", None)
        if not isinstance(name, str) or name not in _COMMANDS:
            raise InputError(
                f"The memory tool has no command {describe_value(name)}. {did_you_mean(str(name), _COMMANDS)}"
            )
        parameters = _COMMANDS[name]
        for argument in arguments:
            if argument not in parameters:
                raise InputError(
                    f"{name} has no argument {describe_value(argument)}. {did_you_mean(str(argument), parameters)}"
                )
        for argument, required in parameters.items():
            if required and argument not in arguments:
                raise InputError(f"{name} needs {argument}.")
        sentence: str = getattr(self, name)(**arguments)
        return sentence

    @checked
    def view(self, path: str, view_range: list[int] | None = None) -> str:
        """Return the numbered lines of a file, or the contents of a folder with sizes.

        Parameters
        ----------
        path
            Path of a file or folder.
        view_range
            First and last line, from 1; -1 as the last is the end. Default: all lines.

        Returns
        -------
        str
            The lines; for a folder, its files down to two levels.

        Raises
        ------
        InputError
            If nothing has this path.
        """
        parts = _split_path(path)
        record = self._records.get(parts) if parts else None
        if record is None:
            return self._list_folder(path, parts)
        content = _read_content(record)
        lines = content.split("\n")
        if len(lines) > _MAX_LINES:
            raise InputError(f"File {path} exceeds maximum line limit of {_MAX_LINES:,} lines.")
        first, last = 1, len(lines)
        if view_range is not None:
            if len(view_range) != 2:
                raise InputError(
                    f"view_range must be a first and a last line, not {describe_value(view_range)}."
                )
            first, last = view_range[0], last if view_range[1] == -1 else view_range[1]
            if not 1 <= first <= len(lines) or last < first:
                raise InputError(
                    f"view_range must be within 1 to {len(lines)}, not {describe_value(view_range)}."
                )
        # the text is part of the query, because a pack may require similarity
        self._records.recall(
            f"{path} {content[:_QUERY_CHARACTERS]}", 1, self._records.select_records([record])
        )
        return (
            f"Here's the content of {path} with line numbers:\n{_number_lines(lines, first, last)}"
        )

    @checked
    def create(self, path: str, file_text: str) -> str:
        """Create a file, whose text becomes a memory.

        Parameters
        ----------
        path
            Path of the new file.
        file_text
            Its text.

        Returns
        -------
        str
            The sentence for the model.

        Raises
        ------
        InputError
            If a file or folder has this path.
        """
        parts = _split_path(path)
        with self._records.lock:
            self._check_free(parts, f"File {path} already exists")
            self._records.put([_build_file(parts, file_text)])
        return f"File created successfully at: {path}"

    @checked
    def str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        """Replace a text that occurs exactly once in a file.

        Parameters
        ----------
        path
            Path of the file.
        old_str
            The text to replace.
        new_str
            The new text.

        Returns
        -------
        str
            The sentence for the model, with the changed lines.

        Raises
        ------
        InputError
            If the text does not occur, or occurs more than once.
        """
        with self._records.lock:
            record, content = self._get_file(path)
            count = content.count(old_str) if old_str else 0
            if not count:
                raise InputError(
                    f"No replacement was performed, old_str `{old_str}` did not appear verbatim in {path}."
                )
            if count > 1:
                starts = re.finditer(
                    f"(?={re.escape(old_str)})", content
                )  # overlapping ones as well
                lines = [str(content.count("\n", 0, start.start()) + 1) for start in starts]
                raise InputError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines: "
                    f"{', '.join(lines)}. Please ensure it is unique"
                )
            self._records.put([_build_file(record.path, content.replace(old_str, new_str))])
            changed = content[: content.index(old_str)].count("\n") + 1
            after = _read_content(self._get_file(path)[0]).split("\n")
        snippet = _number_lines(after, max(1, changed - 2), min(len(after), changed + 2))
        return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"

    @checked
    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Insert lines into a file.

        Parameters
        ----------
        path
            Path of the file.
        insert_line
            Line after which the text is inserted; 0 is the beginning.
        insert_text
            The lines.

        Returns
        -------
        str
            The sentence for the model.

        Raises
        ------
        InputError
            If the file has no such line.
        """
        with self._records.lock:
            record, content = self._get_file(path)
            lines = content.removesuffix("\n").split("\n") if content else []
            if not 0 <= insert_line <= len(lines):
                raise InputError(
                    f"Invalid `insert_line` parameter: {insert_line}. It should be within the range [0, {len(lines)}]."
                )
            lines.insert(insert_line, insert_text.removesuffix("\n"))
            self._records.put([_build_file(record.path, "\n".join(lines) + "\n")])
        return f"The file {path} has been edited."

    @checked
    def delete(self, path: str) -> str:
        """Delete a file, or all files in a folder.

        Parameters
        ----------
        path
            Path of the file or folder.

        Returns
        -------
        str
            The sentence for the model.

        Raises
        ------
        InputError
            If nothing has this path.
        """
        if not _split_path(path):
            raise InputError(f"Cannot delete the {ROOT} directory itself")
        with self._records.lock:
            self._records.delete(self._get_files(path))
        return f"Successfully deleted {path}"

    @checked
    def rename(self, old_path: str, new_path: str) -> str:
        """Move a file, or all files in a folder, to another path.

        Parameters
        ----------
        old_path
            Path of the file or folder.
        new_path
            The new path.

        Returns
        -------
        str
            The sentence for the model.

        Raises
        ------
        InputError
            If the new path exists, or is inside the old one.
        """
        old, new = _split_path(old_path), _split_path(new_path)
        if not old:
            raise InputError(f"Cannot rename the {ROOT} directory itself")
        with self._records.lock:
            files = self._get_files(old_path)
            self._check_free(new, f"The destination {new_path} already exists")
            if len(new) > len(old) and new[: len(old)] == old:
                raise InputError(
                    f"{new_path} is inside {old_path}. A folder cannot be moved into itself."
                )
            self._records.move(
                [(record, (*new, *record.path[len(old) :])) for record in files],
                provenance="inferred",
            )
        return f"Successfully renamed {old_path} to {new_path}"

    @checked
    def clear(self) -> str:
        """Delete all files.

        Returns
        -------
        str
            The sentence for the model.
        """
        with self._records.lock:
            self._records.delete(self._records.get_below())
        return "All memory cleared"

    # -- paths --------------------------------------------------------------------------------------------------------

    def _get_file(self, path: str) -> tuple[Record, str]:
        """Return the record and text of a file, or raise InputError if the file does not exist."""
        parts = _split_path(path)
        record = self._records.get(parts) if parts else None
        if record is None:
            raise self._build_missing(path, parts)
        return record, _read_content(record)

    def _get_files(self, path: str) -> list[Record]:
        """Return the file at a path, or all files in the folder at this path; raise InputError without any file."""
        parts = _split_path(path)
        record = self._records.get(parts)
        files = self._records.get_below(parts) if record is None else [record]
        if not files:
            raise self._build_missing(path, parts)
        return files

    def _build_missing(self, path: str, parts: tuple[str, ...]) -> InputError:
        """Return the error for a path that is a folder or does not exist, with the nearest existing path."""
        if not parts or self._records.get_below(parts):
            return InputError(f"The path {path} is not a file.")
        paths = ["/".join((ROOT, *names)) for names in self._records.paths()]
        hint = f" {did_you_mean(path, paths)}" if paths else ""
        return InputError(f"The path {path} does not exist. Please provide a valid path.{hint}")

    def _check_free(self, parts: tuple[str, ...], sentence: str) -> None:
        """Raise InputError if a path already exists or lies inside a file."""
        if not parts or self._records.get(parts) is not None or self._records.get_below(parts):
            raise InputError(sentence)
        for end in range(1, len(parts)):
            if self._records.get(parts[:end]) is not None:
                raise InputError(f"The path {'/'.join((ROOT, *parts[:end]))} is not a directory.")

    def _list_folder(self, path: str, parts: tuple[str, ...]) -> str:
        """Format a list of a folder's files and folders with sizes, two levels deep, without hidden ones."""
        files = self._records.get_below(parts)
        if parts and not files:
            raise self._build_missing(path, parts)
        # the size of a folder is that of all files in it
        sizes: dict[tuple[str, ...], int] = {(): 0}
        for record in files:
            names, size = record.path[len(parts) :], len(_read_content(record).encode())
            for end in range(len(names) + 1):
                sizes[names[:end]] = sizes.get(names[:end], 0) + size
        folders = {
            record.path[len(parts) : end]
            for record in files
            for end in range(len(parts), len(record.path))
        }
        lines = []
        for names, size in sorted(sizes.items()):
            if len(names) <= 2 and not any(name.startswith(".") for name in names):
                slash = "/" if names and names in folders else ""
                lines.append(f"{_format_size(size)}\t{'/'.join((path.rstrip('/'), *names))}{slash}")
        heading = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
        return "\n".join([heading, *lines])


def _split_path(path: str) -> tuple[str, ...]:
    """Split a path into its names below ``/memories``; raise InputError for a bad or outside path."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise InputError(f"Path must start with {ROOT}, got: {path}")
    # normalised and encoded spellings of ".." are refused, too, although no file system sees them
    parts = tuple(part for part in path[len(ROOT) :].split("/") if part)
    if len(parts) > _MAX_DEPTH:
        raise InputError(
            f"Path {path} has {len(parts)} names below {ROOT}; the maximum is {_MAX_DEPTH}."
        )
    for part in parts:
        if unicodedata.normalize("NFKC", part).strip() in (".", "..") or "%2e" in part.lower():
            raise InputError(f"Path {path} would escape {ROOT} directory")
        if "\\" in part or any(
            unicodedata.category(character) in ("Cc", "Cs") for character in part
        ):
            raise InputError(
                f"{describe_value(path)} contains a backslash or a control character. Choose a name without them."
            )
        if len(part) > _MAX_NAME:
            raise InputError(
                f"A name in a path may have at most {_MAX_NAME} characters, not {len(part)}."
            )
    return parts


# -- contents -----------------------------------------------------------------------------------------------------


def _build_file(parts: tuple[str, ...], content: str) -> Write:
    """Build the record to write for a file of the memory tool."""
    if not is_blank(content):
        return build_write(parts, content, provenance="inferred", source="file")
    # a memory needs a text, so that a blank file has its path as text and its content as value
    return build_write(
        parts,
        "/".join(parts),
        encode_value(content, "file_text"),
        provenance="inferred",
        source="file",
    )


def _read_content(record: Record) -> str:
    """Return the text of a memory file from its record."""
    content: str = record.text if record.value is None else decode_value(record.value)
    return content


def _number_lines(lines: list[str], first: int, last: int) -> str:
    """Return the lines ``first`` to ``last``, each prefixed with its line number."""
    return "\n".join(
        f"{number:6}\t{line}" for number, line in enumerate(lines[first - 1 : last], first)
    )


def _format_size(size: int) -> str:
    """Format a number of bytes as text, such as 1.5K."""
    if size < 1024:
        return f"{size}B"
    return f"{size / 1024:.1f}K" if size < 1024**2 else f"{size / 1024**2:.1f}M"

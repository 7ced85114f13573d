"""The six commands of Claude's memory tool on a lab: each file under ``/memories`` is a memory.

    from memlab.io.adapters.claude import MemoryFiles
    files = MemoryFiles(memlab.open("agent.memlab"))
    files.run({"command": "create", "path": "/memories/ada.md", "file_text": "Ada prefers tea."})

| command | the lab |
|---|---|
| ``view`` of a file | ``recall`` of that memory, by its path and beginning: it leaves a slate and counts as a use |
| ``view`` of a folder | a look at the names; texts are not shown, so nothing is logged |
| ``create`` | ``remember``: the text of the file is the memory's; what is there already is not replaced |
| ``str_replace``, ``insert`` | ``edit``: the versions before stay in the history |
| ``rename`` | ``edit`` of where it stands, for each file under a folder |
| ``delete`` | ``delete``: out of use, ``lab.restore`` brings it back |

Files are in no file system: a path is a name in the lab, and one that would lead out of ``/memories`` is refused before
anything is looked up. A secret in a file is redacted, as in every text. ``LabMemoryTool`` of
``memlab.adapters.claude_tool`` is the same as a tool of the ``anthropic`` package.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from memlab.errors import InputError, UnknownName, did_you_mean
from memlab.io.adapters._records import Record, Records, Write, decoded, encoded, these, written
from memlab.kernel.base.arguments import checked, describe_value
from memlab.kernel.recall import Hits
from memlab.kernel.state import is_blank
from memlab.subjects.lab import Lab

__all__ = ["MemoryFiles"]

ROOT = "/memories"
_COMMANDS: dict[str, dict[str, bool]] = {
    "view": {"path": True, "view_range": False},
    "create": {"path": True, "file_text": True},
    "str_replace": {"path": True, "old_str": True, "new_str": False},
    "insert": {"path": True, "insert_line": True, "insert_text": True},
    "delete": {"path": True},
    "rename": {"old_path": True, "new_path": True},
}
"""The arguments of each command, and whether it needs them."""
_MOST_LINES = 999_999
_LONGEST_NAME, _DEEPEST = 255, 32
_MOST_ASKED = 500


class MemoryFiles:
    """The files of one agent in a lab. ``name`` sets them apart; ``project`` and ``creator`` are given to each memory.

    Every command returns the sentence that the model reads. Errors are for the model to read as well: UnknownName for a
    path that is not there, InputError for one that leads elsewhere or for what cannot be done. Nothing is changed then.
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
        """What the last view of a file recalled: for ``lab.feedback`` and ``lab.agents.credits.answer``."""
        return self._records.hits

    @checked
    def run(self, command: Mapping[str, Any]) -> str:
        """Carry out a command as the model gave it: a dict of ``command`` and its arguments."""
        given = {name: value for name, value in dict(command).items() if value is not None}
        name = given.pop("command", None)
        if not isinstance(name, str) or name not in _COMMANDS:
            raise InputError(
                f"There is no command {describe_value(name)}. {did_you_mean(str(name), _COMMANDS)}"
            )
        known = _COMMANDS[name]
        for argument in given:
            if argument not in known:
                raise InputError(
                    f"{name} has no argument {describe_value(argument)}. {did_you_mean(str(argument), known)}"
                )
        for argument, needed in known.items():
            if needed and argument not in given:
                raise InputError(f"{name} needs {argument}.")
        sentence: str = getattr(self, name)(**given)
        return sentence

    @checked
    def view(self, path: str, view_range: list[int] | None = None) -> str:
        """The lines of a file with their numbers, all or from the first to the last of ``view_range`` (-1: the end).

        Of a folder, what is in it, two levels deep, with sizes.
        """
        parts = _parts(path)
        record = self._records.at(parts) if parts else None
        if record is None:
            return self._listing(path, parts)
        content = _content(record)
        lines = content.split("\n")
        if len(lines) > _MOST_LINES:
            raise InputError(f"{path} has more than {_MOST_LINES:,} lines.")
        first, last = 1, len(lines)
        if view_range is not None:
            if len(view_range) != 2:
                raise InputError(
                    f"view_range is a first and a last line, not {describe_value(view_range)}."
                )
            first, last = view_range[0], last if view_range[1] == -1 else view_range[1]
            if not 1 <= first <= len(lines) or last < first:
                raise InputError(
                    f"view_range lies in 1 to {len(lines)}, not {describe_value(view_range)}."
                )
        # the beginning of the text, so that a pack that asks for nearness shows it, too
        self._records.ask(f"{path} {content[:_MOST_ASKED]}", 1, these([record]))
        return f"Here's the content of {path} with line numbers:\n{_numbered(lines, first, last)}"

    @checked
    def create(self, path: str, file_text: str) -> str:
        """Make a file. InputError if there is one, or if a folder is called so."""
        parts = _file_parts(path)
        with self._records.lock:
            self._refuse_taken(path, parts)
            self._records.put([_written(parts, file_text)])
        return f"File created successfully at: {path}"

    @checked
    def str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        """Replace a text that stands in a file exactly once."""
        with self._records.lock:
            record, content = self._file(path)
            count = content.count(old_str) if old_str else 0
            if not count:
                raise InputError(
                    f"No replacement was performed: {describe_value(old_str)} does not stand verbatim in {path}."
                )
            if count > 1:
                lines = [
                    n
                    for n, line in enumerate(content.split("\n"), 1)
                    if old_str.split("\n")[0] in line
                ]
                raise InputError(
                    f"No replacement was performed: {describe_value(old_str)} stands {count} times in {path}, in lines "
                    f"{', '.join(map(str, lines[:20]))}. Give more of what is around it."
                )
            self._records.put([_written(record.path, content.replace(old_str, new_str))])
            changed = content[: content.index(old_str)].count("\n") + 1
            after = _content(self._file(path)[0]).split("\n")
        snippet = _numbered(after, max(1, changed - 2), min(len(after), changed + 2))
        return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"

    @checked
    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Put lines in after line ``insert_line``; 0 puts them first."""
        with self._records.lock:
            record, content = self._file(path)
            lines = content.removesuffix("\n").split("\n") if content else []
            if not 0 <= insert_line <= len(lines):
                raise InputError(f"insert_line lies in 0 to {len(lines)}, not {insert_line}.")
            lines.insert(insert_line, insert_text.removesuffix("\n"))
            self._records.put([_written(record.path, "\n".join(lines) + "\n")])
        return f"The file {path} has been edited."

    @checked
    def delete(self, path: str) -> str:
        """Delete a file, or all files under a folder."""
        with self._records.lock:
            self._records.delete(self._files(path))
        return f"Successfully deleted {path}"

    @checked
    def rename(self, old_path: str, new_path: str) -> str:
        """Give a file, or all files under a folder, another path. InputError if that is taken."""
        old, new = _file_parts(old_path), _file_parts(new_path)
        with self._records.lock:
            found = self._files(old_path)
            self._refuse_taken(new_path, new)
            if len(new) > len(old) and new[: len(old)] == old:
                raise InputError(
                    f"{new_path} lies under {old_path}: a folder cannot go into itself."
                )
            self._records.move(
                [(record, (*new, *record.path[len(old) :])) for record in found],
                provenance="inferred",
            )
        return f"Successfully renamed {old_path} to {new_path}"

    @checked
    def clear(self) -> str:
        """Delete all files."""
        with self._records.lock:
            self._records.delete(self._records.under())
        return "All memory cleared"

    # -- paths --------------------------------------------------------------------------------------------------------

    def _file(self, path: str) -> tuple[Record, str]:
        parts = _file_parts(path)
        record = self._records.at(parts)
        if record is None:
            raise self._no_file(path, parts)
        return record, _content(record)

    def _files(self, path: str) -> list[Record]:
        """The file of a path, or all files under a folder."""
        parts = _file_parts(path)
        record = self._records.at(parts)
        found = self._records.under(parts) if record is None else [record]
        if not found:
            raise self._no_file(path, parts)
        return found

    def _no_file(self, path: str, parts: tuple[str, ...]) -> InputError:
        if self._records.under(parts):
            return InputError(f"{path} is a folder, not a file.")
        return UnknownName(
            "path", path, ["/".join((ROOT, *one.path)) for one in self._records.under()]
        )

    def _refuse_taken(self, path: str, parts: tuple[str, ...]) -> None:
        if self._records.at(parts) is not None:
            raise InputError(f"File {path} already exists.")
        if self._records.under(parts):
            raise InputError(f"{path} is a folder.")
        for end in range(1, len(parts)):
            if self._records.at(parts[:end]) is not None:
                raise InputError(f"{'/'.join((ROOT, *parts[:end]))} is a file, not a folder.")

    def _listing(self, path: str, parts: tuple[str, ...]) -> str:
        files = self._records.under(parts)
        if parts and not files:
            raise self._no_file(path, parts)
        sizes: dict[tuple[str, ...], int] = {(): 0}
        for record in files:
            rest, size = record.path[len(parts) :], len(_content(record).encode())
            for end in range(len(rest) + 1):
                sizes[rest[:end]] = sizes.get(rest[:end], 0) + size
        folders = {
            record.path[len(parts) : end]
            for record in files
            for end in range(len(parts), len(record.path))
        }
        lines = []
        for rest, size in sorted(sizes.items()):
            if len(rest) <= 2 and not any(name.startswith(".") for name in rest):
                slash = "/" if rest and rest in folders else ""
                lines.append(f"{_size(size)}\t{'/'.join((path.rstrip('/'), *rest))}{slash}")
        head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
        return "\n".join([head, *lines])


def _parts(path: str) -> tuple[str, ...]:
    """The names in a path under ``/memories``; InputError for another one, or one that could be read as leading out."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise InputError(f"A path starts with {ROOT}, not {describe_value(path)}.")
    parts = tuple(part for part in path[len(ROOT) :].split("/") if part)
    if len(parts) > _DEEPEST:
        raise InputError(f"A path has at most {_DEEPEST} names, not {len(parts)}.")
    for part in parts:
        if unicodedata.normalize("NFKC", part).strip() in (".", "..") or "%2e" in part.lower():
            raise InputError(f"{describe_value(path)} would lead out of {ROOT}.")
        if "\\" in part or any(
            unicodedata.category(character) in ("Cc", "Cs") for character in part
        ):
            raise InputError(
                f"{describe_value(path)} holds a backslash or a control character, which no name of a file has."
            )
        if len(part) > _LONGEST_NAME:
            raise InputError(
                f"A name in a path has at most {_LONGEST_NAME} characters, not {len(part)}."
            )
    return parts


def _file_parts(path: str) -> tuple[str, ...]:
    parts = _parts(path)
    if not parts:
        raise InputError(f"{ROOT} itself is no file, and stays.")
    return parts


# -- contents -----------------------------------------------------------------------------------------------------


def _written(parts: tuple[str, ...], content: str) -> Write:
    if not is_blank(content):
        return written(parts, content, provenance="inferred", source="file")
    # a memory needs a text: a blank file's is its path, and its value what the file holds
    return written(
        parts, "/".join(parts), encoded(content, "file_text"), provenance="inferred", source="file"
    )


def _content(record: Record) -> str:
    content: str = record.text if record.value is None else decoded(record.value)
    return content


def _numbered(lines: list[str], first: int, last: int) -> str:
    return "\n".join(
        f"{number:6}\t{line}" for number, line in enumerate(lines[first - 1 : last], first)
    )


def _size(size: int) -> str:
    if size < 1024:
        return f"{size}B"
    return f"{size / 1024:.1f}K" if size < 1024**2 else f"{size / 1024**2:.1f}M"

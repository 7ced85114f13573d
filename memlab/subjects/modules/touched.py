"""Files that a session touched: paths, calls of tools, messages with such calls, or the report of a hook."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["known_path", "paths_in"]

_KEYS = ("file_path", "filePath", "notebook_path", "path", "file", "relative_workspace_path", "target_file")
"""What tools of coding assistants call the file that they read or write."""
_WITHIN = ("tool_input", "input", "arguments", "args", "content", "message", "tool_calls", "function", "parameters")
"""Where a message, a call or a hook's report keeps the arguments of a tool."""
_DEEPEST = 8


def paths_in(given: Any, depth: int = 0) -> Iterator[str]:
    """Return the paths that an item names: a path itself, or the files of the calls of tools within it.

    >>> list(paths_in({"tool_name": "Edit", "tool_input": {"file_path": "src/auth.ts", "new_string": "x"}}))
    ['src/auth.ts']
    """
    if depth > _DEEPEST:
        return
    if isinstance(given, str):
        if depth == 0:
            yield given
        elif given.startswith("{"):  # arguments as JSON
            try:
                yield from paths_in(json.loads(given), depth)
            except (ValueError, RecursionError):
                return
    elif isinstance(given, Mapping):
        for key in _KEYS if depth else ():
            if isinstance(given.get(key), str):
                yield given[key]
        for key in _WITHIN:
            if key in given:
                yield from paths_in(given[key], depth + 1)
    elif isinstance(given, Iterable):
        for one in given:
            yield from paths_in(one, depth + 1) if not isinstance(one, str) else ()


def known_path(path: str, files: Iterable[str]) -> str | None:
    """Return a path as the map writes it: an absolute one without what stands before the project's own folders.

    None for an absolute path of which no end is a file of the map or lies in one of its folders.
    """
    plain = path.replace("\\", "/").removeprefix("./")
    held = set(files)
    if not plain.startswith("/") and plain[1:3] != ":/":
        return plain
    parts = plain.split("/")
    ends = ["/".join(parts[at:]) for at in range(1, len(parts))]
    for end in ends:
        if end in held:
            return end
    folders = {path.rpartition("/")[0] for path in held} - {""}
    return next((end for end in ends if end.rpartition("/")[0] in folders), None)

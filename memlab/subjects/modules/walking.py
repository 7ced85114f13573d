"""The files of a folder that belong to a project: no links, no hidden or generated folders, nothing that is ignored.

A folder is untrusted: it may be deep, large, full of links in a circle, and its names may be anything. What is left out
is counted, with the reason.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from memlab.kernel.privacy import Ignored, screen_many
from memlab.subjects.reading.tags import code_words, file_language

__all__ = ["Tree", "walk"]

_MOST_SEEN = 200_000
_MOST_FILES = 20_000
_LONGEST = 500
_INSTRUCTIONS = frozenset(
    (".github", ".cursor", ".windsurf", ".clinerules", ".roo", ".continue", ".amazonq", ".kiro", ".junie")
)
"""Hidden folders that hold instructions: nothing else of them is read."""


class Tree:
    """The files of a project, as paths below its ``root`` with /, sorted; ``left_out`` counts others by their reason.

    ``sources`` are those that are written in a language; ``others`` the rest, such as settings and instructions.
    """

    def __init__(self, root: Path, sources: list[str], others: list[str], left_out: Counter[str]) -> None:
        self.root, self.sources, self.others, self.left_out = root, sources, others, left_out

    def text(self, path: str, most: int) -> str:
        """The beginning of a file, at most so many bytes; empty where it is binary or cannot be read."""
        try:
            with (self.root / path).open("rb") as file:
                given = file.read(most)
        except OSError:
            self.left_out["cannot be read"] += 1
            return ""
        if b"\0" in given:
            return ""
        return given.decode("utf-8-sig", "replace")


def walk(root: Path) -> Tree:
    """The files below a folder. More than 20,000, or 200,000 entries, are not looked at: the rest is left out."""
    ignored, left_out = Ignored(root), Counter[str]()
    found: list[str] = []
    folders, seen = [""], 0
    while folders:
        folder = folders.pop()
        try:
            entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
        except OSError:
            left_out["cannot be read"] += 1
            continue
        below = []
        for entry in entries:
            seen += 1
            path = f"{folder}/{entry.name}" if folder else entry.name
            if why := _reason(entry, path, ignored):
                left_out[why] += why != "hidden"
            elif entry.is_dir(follow_symlinks=False):
                below.append(path)
            elif len(found) >= _MOST_FILES or seen > _MOST_SEEN:
                left_out["beyond the limit"] += 1
            elif entry.is_file(follow_symlinks=False):
                found.append(path)
        if seen <= _MOST_SEEN:
            folders += reversed(below)
    held = [not screening.findings for screening in screen_many(found)]
    left_out["named like a secret"] += held.count(False)
    kept = sorted(path for path, fine in zip(found, held, strict=True) if fine)
    sources = [path for path in kept if file_language(path) and path.split("/")[0] not in _INSTRUCTIONS]
    others = sorted(set(kept) - set(sources))
    return Tree(root, sources, others, +left_out)


def _reason(entry: os.DirEntry[str], path: str, ignored: Ignored) -> str:
    """Why an entry is left out; empty where it is not."""
    if not path.isprintable() or len(path) > _LONGEST:
        return "a name that cannot be stored"
    if entry.is_symlink():
        return "a link"
    if entry.is_dir(follow_symlinks=False):
        if entry.name.startswith(".") and entry.name not in _INSTRUCTIONS:
            return "hidden"
        if entry.name in code_words("generated") or entry.name.endswith(".egg-info"):
            return "generated or of others"
        return "ignored" if f"{path}/" in ignored else ""
    return "ignored" if path in ignored else ""

"""Folders of Markdown with front matter, as Letta keeps an agent's memory (MemFS), read into a lab and written from it.

    from memlab.io.adapters.memfs import read_memfs, write_memfs
    read_memfs(lab, "~/.letta/agents/agent-1/memory")
    write_memfs(lab, "memory")

A file is a memory: its body is the text, its ``description`` the summary, and what is below ``system/``, which such an
agent always has in its prompt, is pinned. Front matter is kept as it stands, so a file that was read is written back
byte for byte (but for secrets, which are redacted in texts, and refused in front matter). A changed file is an edit.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from memlab.errors import DatasetError, InputError
from memlab.io.adapters._records import Record, Records, Write, decoded, encoded, written
from memlab.io.formats import file_name
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.disk import translate_error
from memlab.kernel.base.printable import printable
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.state import MAX_TEXT_BYTES, is_blank
from memlab.kernel.storage import copies
from memlab.kernel.verbs.core import Memories, MemoryLike, listed_memories
from memlab.kernel.verbs.results import Memory
from memlab.subjects.lab import Lab

__all__ = ["Synced", "read_memfs", "write_memfs"]

_FRONT = re.compile(r"---\r?\n(.*?)^---[ \t]*\r?\n", re.DOTALL | re.MULTILINE)
_VIEW = re.compile(r'^memlab: "(\d+) ([0-9a-f]{8})"\r?$', re.MULTILINE)
_DESCRIPTION = re.compile(r"^description:[ \t]*(.*)$", re.MULTILINE)
_MOST_DESCRIBED = 200
_NAME = re.compile(r"[^\\/:*?\"<>|\x00-\x1f\x7f]{1,200}")


@dataclass(frozen=True)
class Synced:
    """What ``read_memfs`` or ``write_memfs`` did: paths in the folder, in order.

    ``skipped`` are files that were left, each with why.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        parts = [f"{len(paths):,} {name}" for name, paths in vars(self).items() if paths]
        return printable(f"<MemFS: {', '.join(parts) or 'no files'}>")


@checked
def read_memfs(
    lab: Lab,
    folder: str | Path,
    *,
    name: str = "memfs",
    project: str | None = None,
    delete: bool = False,
) -> Synced:
    """Remember each Markdown file below ``folder``, or edit what was remembered of it.

    ``name`` sets one folder's files apart in the lab. ``delete=True`` also deletes what was read before and is not
    there any more. Hidden files and folders (``.git``) are no memory; links are not followed. Nothing is stored if a
    file cannot be read: DatasetError names it. InputError for what is no folder.
    """
    root = Path(folder).expanduser()
    if not root.is_dir() or root.is_symlink():
        raise InputError(f"{root} is no folder.")
    records = Records(lab, name, project=project)
    with records.lock:
        before = {record.path: record for record in records.under()}
        writes: list[Write] = []
        paths: dict[str, list[str]] = {"added": [], "changed": [], "same": []}
        skipped: list[tuple[str, str]] = []
        for path, file in _files(root, (), skipped):
            shown = "/".join(path)
            content = _content(file, shown)
            front, body = _split(content)
            if is_blank(body):
                skipped.append((shown, "it is empty"))
                continue
            view = _VIEW.search(front)
            if view is not None and view[2] == _sum(body):
                skipped.append((shown, f"a copy of memory {view[1]}, as it was written"))
                continue
            write = _written(path, front, body)
            old = before.pop(path, None)
            kept = old is not None and (old.text, old.value) == (write.text, write.value)
            paths["added" if old is None else "same" if kept else "changed"].append(shown)
            writes.append(write)
        records.put(writes)
        if delete:
            records.delete(before.values())
    gone = ["/".join(path) for path in before] if delete else []
    return Synced(
        **{key: tuple(found) for key, found in paths.items()},
        deleted=tuple(gone),
        skipped=tuple(skipped),
    )


@checked
def write_memfs(
    lab: Lab, folder: str | Path, *, name: str = "memfs", memories: Memories = ()
) -> Synced:
    """Write what ``read_memfs`` has read to ``folder``, and these ``memories`` beside it.

    Of those, each in use is one file: pinned ones below ``system/``, others below ``reference/`` by their kind, with a
    ``description`` and a line ``memlab`` by which ``read_memfs`` knows a copy that nobody changed. A file that says the
    same is left, another one at its path is replaced, and nothing else in the folder is touched. Each is listed as an
    export: ``lab.purge`` searches it, and removes it with ``remove_exports=True``. LabError for what the disk refuses.
    """
    root = Path(folder).expanduser()
    if root.is_symlink() or (root.exists() and not root.is_dir()):
        raise InputError(f"{root} is no folder.")
    given = listed_memories(memories)
    return copies.written(
        lab.io.store, lambda: _pages(lab, name, given), lambda pages: _put_all(lab, root, pages)
    )


def _pages(lab: Lab, name: str, memories: list[MemoryLike]) -> dict[tuple[str, ...], str]:
    """What each file is to hold."""
    own = Records(lab, name).under()
    pages = {record.path: _page(record) for record in own}
    taken = {record.id for record in own}
    chosen = [
        one
        for one in map(lab.__getitem__, memories)
        if one.status in RECALLABLE and one.id not in taken
    ]
    with lab.io.store.reading() as state:
        for memory in chosen:
            pinned = bool(state.numbers["pinned"].values[memory.id - 1])
            place = ("system",) if pinned else ("reference", memory.kind)
            summary = state.notes["summary"].at(memory.id - 1)
            pages[(*place, file_name(memory.id, memory.text))] = _copy(memory, summary)
    return pages


def _put_all(lab: Lab, root: Path, pages: Mapping[tuple[str, ...], str]) -> Synced:
    paths: dict[str, list[str]] = {"added": [], "changed": [], "same": []}
    skipped = []
    for path, content in pages.items():
        shown = "/".join(path)
        if not all(_NAME.fullmatch(part) and part.strip(". ") for part in path):
            skipped.append((shown, "no name of a file on every system"))
            continue
        file = root.joinpath(*path)
        # first, as a process may be killed
        copies.note_copy(lab.io.store.journal, "export", file, begun=True)
        try:
            paths[_put(root, path, content)].append(shown)
        except OSError as error:
            raise translate_error(str(file), error) from error
    return Synced(**{key: tuple(found) for key, found in paths.items()}, skipped=tuple(skipped))


# -- files --------------------------------------------------------------------------------------------------------


def _files(
    folder: Path, path: tuple[str, ...], skipped: list[tuple[str, str]]
) -> Iterator[tuple[tuple[str, ...], Path]]:
    """The Markdown files below a folder, in the order of their names."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise DatasetError(
            f"{'/'.join(path) or folder} cannot be read: {error.strerror}."
        ) from error
    for entry in entries:
        here = (*path, entry.name)
        if entry.name.startswith("."):
            continue
        if entry.is_symlink():
            skipped.append((printable("/".join(here)), "a link"))
        elif entry.is_dir():
            yield from _files(folder / entry.name, here, skipped)
        elif entry.name.endswith(".md") and entry.is_file():
            yield here, folder / entry.name


def _content(file: Path, shown: str) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(2 * MAX_TEXT_BYTES + 1)
        if len(content) > 2 * MAX_TEXT_BYTES:
            raise DatasetError(
                f"{shown} has more than {2 * MAX_TEXT_BYTES:,} bytes: no file of an agent's memory."
            )
        return content.decode()
    except UnicodeDecodeError as error:
        raise DatasetError(f"{shown} is no UTF-8, at byte {error.start}.") from None
    except OSError as error:
        raise DatasetError(f"{shown} cannot be read: {error.strerror}.") from error


def _put(root: Path, path: tuple[str, ...], content: str) -> str:
    """Write a file; whether it was added, changed or the same. A link on the way is not followed."""
    folder = root
    folder.mkdir(parents=True, exist_ok=True)
    for part in path[:-1]:
        folder = folder / part
        if folder.is_symlink():
            raise InputError(f"{folder} is a link: files are written into folders of their own.")
        folder.mkdir(exist_ok=True)
    file, data = folder / path[-1], content.encode()
    there = file.is_file() and not file.is_symlink()
    if there and file.read_bytes() == data:
        return "same"
    draft = folder / f".{path[-1]}.draft"
    draft.unlink(missing_ok=True)
    with draft.open("xb") as opened:  # a new file: a link in its place is not followed
        opened.write(data)
    draft.replace(file)
    return "changed" if there else "added"


# -- pages --------------------------------------------------------------------------------------------------------


def _split(content: str) -> tuple[str, str]:
    """The front matter with its fences, "" if there is none, and the body."""
    front = _FRONT.match(content)
    return ("", content) if front is None else (front[0], content[front.end() :])


def _written(path: tuple[str, ...], front: str, body: str) -> Write:
    found = _DESCRIPTION.search(front)
    summary = _scalar(found[1].strip()) if found else ""
    value = encoded({"front": front}, "front matter") if front else None
    pinned = path[0] == "system"
    return written(path, body, value, summary=summary or None, pinned=pinned, source="file")


def _scalar(text: str) -> str:
    """A scalar of YAML on one line: quoted or plain; "" for one that goes on below."""
    if text.startswith('"'):
        try:
            value = json.loads(text)
        except ValueError:
            return ""
        return value if isinstance(value, str) else ""
    if text.startswith("'"):
        return text[1:-1].replace("''", "'") if text.endswith("'") and len(text) > 1 else ""
    return "" if text[:1] in ("|", ">", "[", "{", "&", "*", "!") else text


def _page(record: Record) -> str:
    front = decoded(record.value).get("front", "") if record.value else ""
    return f"{front}{record.text}"


def _copy(memory: Memory, summary: str | None) -> str:
    description = " ".join((summary or memory.text).split())[:_MOST_DESCRIBED]
    # JSON scalars are YAML
    front = f'description: {json.dumps(description)}\nmemlab: "{memory.id} {_sum(memory.text)}"'
    return f"---\n{front}\n---\n{memory.text}"


def _sum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"

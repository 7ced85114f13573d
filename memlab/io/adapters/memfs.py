"""Folders of Markdown as Letta stores an agent's memory (MemFS).

    from memlab.io.adapters.memfs import read_memfs, write_memfs
    read_memfs(lab, "~/.letta/agents/agent-1/memory")
    write_memfs(lab, "memory")

A file is a memory: its body is the text, its ``description`` the summary. Files below ``system/``, which Letta's
agents always have in their prompt, are pinned. Front matter is stored unchanged, so that a file is written back byte
for byte. Only secrets differ: they are redacted in texts and refused in front matter. A changed file is an edit.
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
from memlab.io.adapters._records import (
    Record,
    Records,
    Write,
    build_write,
    decode_value,
    encode_value,
)
from memlab.io.formats import build_file_name
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.disk import open_regular, translate_error
from memlab.kernel.base.printable import printable
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.state import MAX_TEXT_BYTES, is_blank
from memlab.kernel.storage import copies
from memlab.kernel.verbs.core import Memories, MemoryLike, listed_memories
from memlab.kernel.verbs.results import Memory
from memlab.subjects.lab import Lab

# Front matter with its fences; the line of an unchanged copy; the description; names valid on every system.
_FRONT = re.compile(r"---\r?\n(.*?)^---[ \t]*\r?\n", re.DOTALL | re.MULTILINE)
_VIEW = re.compile(r'^memlab: "(\d+) ([0-9a-f]{8})"\r?$', re.MULTILINE)
_DESCRIPTION = re.compile(r"^description:[ \t]*(.*)$", re.MULTILINE)
# Characters of a description; an agent has those of all files in its prompt.
_MAX_DESCRIPTION = 200
# Names of files that every system accepts.
_NAME = re.compile(r"[^\\/:*?\"<>|\x00-\x1f\x7f]{1,200}")


@dataclass(frozen=True)
class Synced:
    """The files or memories that ``read_memfs`` or ``write_memfs`` processed.

    Parameters
    ----------
    added
        New files or memories.
    changed
        Files or memories with new contents.
    same
        Files that have not changed.
    deleted
        Memories that were deleted because their file is missing.
    skipped
        Files that were not read or written, each with the reason.

    Examples
    --------
    >>> from memlab.io.adapters.memfs import Synced
    >>> Synced(added=("system/human.md",))
    <MemFS: 1 added>
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
    """Remember the Markdown files in a folder, or update their memories.

    Hidden files and folders (such as ``.git``) are ignored, and links are not followed.

    Parameters
    ----------
    lab
        The lab that stores the memories.
    folder
        The folder.
    name
        Name that separates this folder's memories from others in the lab.
    project
        Project of each memory.
    delete
        Whether to delete memories whose file is missing.

    Returns
    -------
    Synced
        What was added, changed and skipped.

    Raises
    ------
    InputError
        If there is no such folder.
    DatasetError
        If a file cannot be read; nothing is stored then.

    Examples
    --------
    >>> read_memfs(lab, "~/.letta/agents/agent-1/memory")                               # doctest: +SKIP
    <MemFS: 12 added>
    """
    root = Path(folder).expanduser()
    if not root.is_dir() or root.is_symlink():
        raise InputError(f"{root} is not a folder. Give the folder of the memory files.")
    records = Records(lab, name, project=project)
    with records.lock:
        # at the end, `stored` has the records whose file is missing
        stored = {record.path: record for record in records.get_below()}
        writes: list[Write] = []
        paths: dict[str, list[str]] = {"added": [], "changed": [], "same": []}
        skipped: list[tuple[str, str]] = []
        for path, file in _list_files(root, (), skipped):
            label = "/".join(path)
            content = _read_content(file, label)
            front, body = _split_front_matter(content)
            if is_blank(body):
                skipped.append((label, "the file is empty"))
                continue
            view = _VIEW.search(front)
            if view is not None and view[2] == _checksum(body):
                skipped.append((label, f"an unchanged copy of memory {view[1]}"))
                continue
            write = _build_file(path, front, body)
            old = stored.pop(path, None)
            unchanged = old is not None and (old.text, old.value) == (write.text, write.value)
            paths["added" if old is None else "same" if unchanged else "changed"].append(label)
            writes.append(write)
        records.put(writes)
        if delete:
            records.delete(stored.values())
    gone = ["/".join(path) for path in stored] if delete else []
    return Synced(
        **{key: tuple(names) for key, names in paths.items()},
        deleted=tuple(gone),
        skipped=tuple(skipped),
    )


@checked
def write_memfs(
    lab: Lab, folder: str | Path, *, name: str = "memfs", memories: Memories = ()
) -> Synced:
    """Write memories to a folder as Markdown files that ``read_memfs`` can read.

    A memory of ``memories`` becomes a file below ``system/`` if it is pinned, otherwise below ``reference/`` by its
    kind. It has a ``description``, and a line ``memlab`` by which ``read_memfs`` recognises an unchanged copy.
    Other files in the folder stay. Each file is registered as an export: ``lab.purge`` searches it, and removes it
    with ``remove_exports=True``.

    Parameters
    ----------
    lab
        The lab.
    folder
        The folder; it is created if it does not exist.
    name
        The ``name`` of ``read_memfs``.
    memories
        Other memories to write, by id, as hits or as memories.

    Returns
    -------
    Synced
        What was added, changed and skipped.

    Raises
    ------
    InputError
        If ``folder`` is a file or a link.
    LabError
        If the system refuses to write.

    Examples
    --------
    >>> write_memfs(lab, "memory", memories=[3, 7])                                     # doctest: +SKIP
    <MemFS: 2 added, 12 same>
    """
    root = Path(folder).expanduser()
    if root.is_symlink() or (root.exists() and not root.is_dir()):
        raise InputError(f"{root} is a file or a link, not a folder. Give another path.")
    listed = listed_memories(memories)
    return copies.write_without_purge(
        lab.io.store,
        lambda: _build_pages(lab, name, listed),
        lambda pages: _write_pages(lab, root, pages),
    )


def _build_pages(lab: Lab, name: str, memories: list[MemoryLike]) -> dict[tuple[str, ...], str]:
    """Return the Markdown content of each file to write, by path."""
    own = Records(lab, name).get_below()
    pages = {record.path: _format_file(record) for record in own}
    written = {record.id for record in own}
    others = [
        memory
        for memory in map(lab.__getitem__, memories)
        if memory.status in RECALLABLE and memory.id not in written
    ]
    with lab.io.store.reading() as state:
        for memory in others:
            pinned = bool(state.numbers["pinned"].values[memory.id - 1])
            parent = ("system",) if pinned else ("reference", memory.kind)
            summary = state.notes["summary"].value_at(memory.id - 1)
            pages[(*parent, build_file_name(memory.id, memory.text))] = _format_copy(
                memory, summary
            )
    return pages


def _write_pages(lab: Lab, root: Path, pages: Mapping[tuple[str, ...], str]) -> Synced:
    """Write each page to a file that is registered as an export; return the added, changed and skipped files."""
    paths: dict[str, list[str]] = {"added": [], "changed": [], "same": []}
    skipped = []
    for path, content in pages.items():
        label = "/".join(path)
        if not all(_NAME.fullmatch(part) and part.strip(". ") for part in path):
            skipped.append((label, "the name is not valid on every system"))
            continue
        file = root.joinpath(*path)
        # the export is registered before the file is written, because the process may be killed in
        # between
        copies.register_copy(lab.io.store.journal, "export", file, begun=True)
        try:
            paths[_write_page(root, path, content)].append(label)
        except OSError as error:
            raise translate_error(str(file), error) from error
    return Synced(**{key: tuple(names) for key, names in paths.items()}, skipped=tuple(skipped))


# -- files --------------------------------------------------------------------------------------------------------


def _list_files(
    folder: Path, path: tuple[str, ...], skipped: list[tuple[str, str]]
) -> Iterator[tuple[tuple[str, ...], Path]]:
    """Yield the path of names and the file of each Markdown file below a folder, without hidden ones or links."""
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
            yield from _list_files(folder / entry.name, here, skipped)
        elif entry.name.endswith(".md") and entry.is_file():
            yield here, folder / entry.name


def _read_content(file: Path, label: str) -> str:
    """Return a file's text; raise DatasetError if the file is too large, not UTF-8 or unreadable."""
    try:
        with open_regular(file) as stream:
            content = stream.read(2 * MAX_TEXT_BYTES + 1)
        if len(content) > 2 * MAX_TEXT_BYTES:
            raise DatasetError(
                f"{label} has more than {2 * MAX_TEXT_BYTES:,} bytes, the maximum of a memory file. Split it."
            )
        return content.decode()
    except UnicodeDecodeError as error:
        raise DatasetError(f"{label} is not UTF-8: invalid byte at {error.start}.") from None
    except OSError as error:
        raise DatasetError(f"{label} cannot be read: {error.strerror}.") from error


def _write_page(root: Path, path: tuple[str, ...], content: str) -> str:
    """Write a file, and return "added", "changed" or, if it already has this content, "same".

    Links in its path are not followed.
    """
    folder = root
    folder.mkdir(parents=True, exist_ok=True)
    for part in path[:-1]:
        folder = folder / part
        if folder.is_symlink():
            raise InputError(
                f"{folder} is a link, so no file is written into it. Replace it by a folder."
            )
        folder.mkdir(exist_ok=True)
    file, data = folder / path[-1], content.encode()
    exists = file.is_file() and not file.is_symlink()
    if exists and file.read_bytes() == data:
        return "same"
    draft = folder / f".{path[-1]}.draft"
    draft.unlink(missing_ok=True)
    with draft.open("xb") as stream:  # "x" creates the file, so that a link is not followed
        stream.write(data)
    draft.replace(file)
    return "changed" if exists else "added"


# -- pages --------------------------------------------------------------------------------------------------------


def _split_front_matter(content: str) -> tuple[str, str]:
    """Return the front matter with its fences ("" without front matter), and the body."""
    front = _FRONT.match(content)
    return ("", content) if front is None else (front[0], content[front.end() :])


def _build_file(path: tuple[str, ...], front: str, body: str) -> Write:
    """Build the record to write for a file: body as text, description as summary."""
    description = _DESCRIPTION.search(front)
    summary = _parse_scalar(description[1].strip()) if description else ""
    value = encode_value({"front": front}, "front matter") if front else None
    pinned = path[0] == "system"
    return build_write(path, body, value, summary=summary or None, pinned=pinned, source="file")


def _parse_scalar(text: str) -> str:
    """Parse a quoted or plain YAML scalar on one line; return "" for other YAML."""
    if text.startswith('"'):
        try:
            value = json.loads(text)
        except ValueError:
            return ""
        return value if isinstance(value, str) else ""
    if text.startswith("'"):
        return text[1:-1].replace("''", "'") if text.endswith("'") and len(text) > 1 else ""
    return "" if text[:1] in ("|", ">", "[", "{", "&", "*", "!") else text


def _format_file(record: Record) -> str:
    """Return the file content of a record: its front matter and its text."""
    front = decode_value(record.value).get("front", "") if record.value else ""
    return f"{front}{record.text}"


def _format_copy(memory: Memory, summary: str | None) -> str:
    """Build the file content of a memory that did not come from a file."""
    description = " ".join((summary or memory.text).split())[:_MAX_DESCRIPTION]
    # JSON strings are valid YAML
    front = (
        f'description: {json.dumps(description)}\nmemlab: "{memory.id} {_checksum(memory.text)}"'
    )
    return f"---\n{front}\n---\n{memory.text}"


def _checksum(text: str) -> str:
    """Return the CRC-32 of a text in hexadecimal, which detects changes."""
    return f"{zlib.crc32(text.encode()):08x}"

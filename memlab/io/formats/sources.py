"""Sources of rows and bundles: files, folders and objects; exports as files and folders."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from memlab.errors import DatasetError, InputError, UnknownName
from memlab.io.formats.bundle import Bundle
from memlab.io.formats.entries import (
    Entries,
    frame_entries,
    is_pandas,
    pandas_entries,
)
from memlab.io.formats.lines import Notes
from memlab.io.formats.messages import plain_object
from memlab.io.formats.parquet import (
    MANIFEST,
    write_parquet_folder,
)
from memlab.io.formats.readers import (
    EXPORTS,
    READERS,
    File,
    Options,
    Source,
    entries_of,
    find_reader,
    head_of_path,
    is_beam,
    known_suffixes,
    read_beam_folder,
    row_formats,
    source_of,
)
from memlab.kernel.base.arguments import Called, describe_value
from memlab.kernel.base.disk import sync, translate_error
from memlab.kernel.privacy import is_sensitive

__all__ = [
    "folder_files",
    "read_bundle",
    "read_file",
    "read_object",
    "remove_export",
    "sources_of_folder",
    "sweep_drafts",
    "write_bundle",
]

_END = object()

# -- files --------------------------------------------------------------------------------------------------------


def read_file(path: Path, options: Options, name: str | None = None) -> Source:
    """Read a file as rows; ``name`` is what it is called in notes.

    Raises InputError for what is no file, DatasetError for no known format.

    >>> [row["text"] for _, row in read_file(Path("chat.md"), Options()).rows]  # doctest: +SKIP
    """
    notes = Notes(name or path.name, strict=options.strict)
    head = head_of_path(path)
    unnamed = (name or path.name).removesuffix(path.suffix)[:200]
    reader = find_reader(path, options.format, head=head)
    if reader is None:
        raise DatasetError(
            f"{notes.source} is of no format that is read here: {', '.join(known_suffixes())}. Say it: format= one of "
            f"{', '.join(row_formats())}."
        )
    if reader._rows is not None:
        return reader._rows(File(path, head, notes, unnamed), options)
    plain = replace(options, format=None)
    return source_of(notes, entries_of(reader, path), plain, unnamed, unit="message")


# -- folders ------------------------------------------------------------------------------------------------------


def sources_of_folder(folder: Path, options: Options) -> Iterator[Source]:
    """Each file of a folder that has a format, by name; a folder of BEAM as its chats.

    Links are not followed, hidden files and files that hold secrets are not read; both are counted, as is what has no
    known format. The last source has no rows and tells of them.
    """
    if options.format == "beam" or (options.format is None and is_beam(folder, "")):
        yield read_beam_folder(
            File(folder, "", Notes(folder.name, strict=options.strict), ""), options
        )
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
        raise DatasetError(
            f"{folder}: none of its files is an export or of a format that is read.{first}"
        )
    yield Source(rest, iter(()), 0)


def folder_files(folder: Path, notes: Notes) -> Iterator[Path]:
    """The regular files below a folder with a suffix that is known here, sorted by name."""
    suffixes = known_suffixes()
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
        return source_of(notes, frame_entries(x), options, "frame", unit="row")
    if is_pandas(x):
        return source_of(notes, pandas_entries(x), options, "frame", unit="row")
    if isinstance(x, Mapping):
        items: Iterable[Any] = [x]
    elif isinstance(x, bytes | bytearray) or not isinstance(x, Iterable):
        whole = Called(plain_object, "load")(x)
        if whole is None:
            raise InputError(
                f"load takes a path, a list of messages or of rows, a conversation or a frame, not {describe_value(x)}."
            )
        items = [whole]
    else:
        items = x
    return source_of(notes, _items(items, notes), options, "messages", unit="message")


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
            notes.skip(number, "neither a message nor a row", describe_value(item))
        else:
            yield number, dict(Called(dict, "load")(entry))


# -- exports as files and folders: written whole or not at all ---


def write_bundle(
    bundle: Bundle, path: Path, format: str | None, *, overwrite: bool = False
) -> Path:
    """Write a bundle beside and rename it, so that ``path`` is whole or untouched."""
    suffixes = {suffix: name for name in EXPORTS for suffix in READERS[name].suffixes}
    chosen = suffixes.get(path.suffix.lower()) if format is None else format
    if chosen is None:
        known = ", ".join(sorted(suffixes))
        raise InputError(
            f'"{path.name}" does not say its format. Give format=..., or a suffix of {known}.'
        )
    if chosen not in EXPORTS:
        raise UnknownName("format of an export", chosen, EXPORTS)
    if (path.exists() or path.is_symlink()) and not overwrite:
        raise InputError(
            f"There is something at {path} already. Give another path, or overwrite=True."
        )
    if path.is_dir() and not (path / MANIFEST).is_file() and any(path.iterdir()):
        raise InputError(f"{path} is a folder that holds other things: it is not overwritten.")
    draft = path.with_name(_draft_name(path, os.getpid()))
    sweep_drafts(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if chosen == "parquet" and path.suffix.lower() != ".parquet":
            draft.mkdir()
            write_parquet_folder(bundle, draft)
            for item in draft.iterdir():
                sync(item)
        elif (write := READERS[chosen]._write) is not None:
            with draft.open("xb") as file:
                write(bundle, file)
        sync(draft)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        draft.replace(path)
    except OSError as error:
        raise translate_error(str(path), error) from error
    finally:
        _remove(draft)
    return path


def sweep_drafts(path: Path) -> None:
    """Remove what processes that were killed have left beside ``path``."""
    for left in path.parent.glob(_draft_name(path, "*")) if path.parent.is_dir() else ():
        number = left.name.split(".")[-2]
        if number.isdecimal() and not _lives(int(number)):
            _remove(left)


def remove_export(path: Path) -> None:
    """Remove an export; InputError for a folder that holds other things, or where the disk refuses."""
    if path.is_dir() and not path.is_symlink() and not (path / MANIFEST).is_file():
        raise InputError(f"{path} is a folder that holds other things: it is not removed.")
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be removed: {error.strerror}.") from None


def _draft_name(path: Path, process: int | str) -> str:
    name = path.name[:100]
    return f".{glob.escape(name) if process == '*' else name}.{process}.draft"


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def read_bundle(path: Path, format: str) -> Bundle:
    """Return what is at ``path``, checked as far as that needs no lab. Raises DatasetError."""
    read = READERS[format]._bundle if format in READERS else None
    if read is None or format == "lab":
        raise DatasetError(f"{path.name} is no file of a format that is read here.")
    return read(path)

"""Sources of rows and bundles: files, folders, objects. Writing of exports."""

from __future__ import annotations

import glob
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import polars as pl

from memlab.errors import DatasetError, InputError, UnknownName
from memlab.io.formats.archives import unpack_archive
from memlab.io.formats.bundle import Bundle
from memlab.io.formats.chat_services import is_telegram
from memlab.io.formats.entries import (
    Entries,
    is_pandas,
    read_frame,
    read_pandas,
)
from memlab.io.formats.lines import Notes
from memlab.io.formats.messages import to_mapping
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
    build_source,
    find_reader,
    list_row_formats,
    list_suffixes,
    read_entries,
    read_start_of_path,
)
from memlab.kernel.base.arguments import Called, describe_value, iterate
from memlab.kernel.base.disk import sync, translate_error
from memlab.kernel.privacy import is_sensitive

MAX_FILES = 200_000
"""Maximum files of a folder, readable or not; the largest collection of notes we know has a tenth."""

# Levels of folders; os.walk calls itself for each, up to Python's limit of 1,000.
_MAX_LEVELS = 64
# Items in sequence that are no rows, after which an iterable is refused: it may have no end.
_MAX_UNKNOWN = 1_000

# -- files --------------------------------------------------------------------------------------------------------


def read_file(path: Path, options: Options, name: str | None = None) -> Source:
    """Read a file as memory rows; notes call the file ``name``.

    Raises InputError if there is no such file, DatasetError if its format is unknown.

    >>> [row["text"] for _, row in read_file(Path("chat.md"), Options()).rows]  # doctest: +SKIP
    """
    notes = Notes(name or path.name, strict=options.strict)
    start = read_start_of_path(path)
    default_session = (name or path.name).removesuffix(path.suffix)[:200]
    reader = find_reader(path, options.format, start=start)
    if reader is None:
        raise DatasetError(
            f"The format of {notes.source} is unknown. "
            f"Readable suffixes: {', '.join(list_suffixes())}. Or name it by format=, one of "
            f"{', '.join(list_row_formats())}."
        )
    if reader._rows is not None:
        return reader._rows(File(path, start, notes, default_session), options)
    plain = replace(options, format=None)
    return build_source(notes, read_entries(reader, path), plain, default_session, unit="message")


# -- folders ------------------------------------------------------------------------------------------------------


def read_folder(folder: Path, options: Options) -> Iterator[Source]:
    """Yield the source of each readable file in a folder or zip archive, by name.

    Some formats, such as BEAM, are folders that are one source. Links are not followed; hidden files and files of secrets
    are not read. The notes of a final source without rows count these files, side files of exports and
    files of unknown format.
    """
    rest = Notes(folder.name, "file", options.strict)
    if folder.is_dir():
        yield from _read_folder(folder, options, rest)
    else:
        with unpack_archive(folder, list_suffixes(), rest) as unpacked:
            yield from _read_folder(unpacked, options, rest)


def _read_folder(folder: Path, options: Options, rest: Notes) -> Iterator[Source]:
    """Yield the sources in a folder, then notes on the files that were not read.

    Raises DatasetError if no file is readable.
    """
    for reader in READERS.values():
        is_chosen = options.format in (None, reader.name) and reader._is_folder
        if is_chosen and reader._recognises(folder, "") and reader._rows is not None:
            yield reader._rows(File(folder, "", rest, ""), options)
            return
    empty = True
    for number, path in enumerate(_omit_side_files(list_files(folder, rest), rest), 1):
        try:
            source = _begin(read_file(path, options, path.relative_to(folder).as_posix()))
        except (DatasetError, InputError) as problem:
            rest.skip(number, "file not read", str(problem))
            continue
        empty = False
        yield source
    if empty:
        first = f" The first file: {rest.locations[0][2]}" if rest.locations else ""
        raise DatasetError(
            f"{rest.source} contains no export and no file of a readable format.{first}"
        )
    yield Source(rest, iter(()), 0)


def _begin(source: Source) -> Source:
    """Read the first row of a source in advance, so that a wrong format is refused early."""
    first = list(islice(source.rows, 1))
    return replace(source, rows=chain(first, source.rows))


# The files with the messages of an export; other files of the same folder belong to it and contain no messages.
_MESSAGES = re.compile(r"conversations(?:-\d+)?\.json|_chat\.txt|.*whatsapp.*\.txt", re.IGNORECASE)


def _omit_side_files(paths: Iterable[Path], notes: Notes) -> list[Path]:
    """Drop and count an export's side files, which are next to or below the messages."""
    paths = list(paths)
    messages = {
        path
        for path in paths
        if _MESSAGES.fullmatch(path.name)
        or (path.name == "result.json" and is_telegram(path, read_start_of_path(path)))
    }
    folders = {path.parent for path in messages}
    others = {
        path for path in paths if path not in messages and not folders.isdisjoint(path.parents)
    }
    if others:
        notes.left_out["side file of an export"] += len(others)
    return [path for path in paths if path not in others]


def list_files(folder: Path, notes: Notes) -> Iterator[Path]:
    """Yield the regular files below a folder that have a known suffix, in sorted order."""
    suffixes, count = list_suffixes(), 0
    for parent, folders, files in os.walk(folder):
        count += len(files)
        if count > MAX_FILES:
            raise DatasetError(
                f"{folder} has more than {MAX_FILES:,} files. Load its folders one by one."
            )
        if len(Path(parent).parts) - len(folder.parts) >= _MAX_LEVELS:
            notes.left_out[f"folder below {_MAX_LEVELS} others"] += len(folders)
            folders.clear()
        links = [name for name in folders if Path(parent, name).is_symlink()]
        hidden = [name for name in folders if name.startswith(".")]
        folders[:] = sorted(set(folders).difference(links, hidden))
        notes.left_out["link"] += len(links)
        for name in sorted(files):
            path = Path(parent, name)
            if path.is_symlink():
                notes.left_out["link"] += 1
            elif is_sensitive(path.relative_to(folder).as_posix()):
                notes.left_out["file of secrets"] += 1
            elif name.startswith(".") or path.suffix.lower() not in suffixes:
                notes.left_out["file of no known format"] += 1
            else:
                yield path
    notes.left_out += type(notes.left_out)()  # removes counters of zero


# -- objects ------------------------------------------------------------------------------------------------------


def read_object(x: Any, options: Options) -> Source:
    """Convert messages, rows or a data frame to a source of memory rows."""
    notes = Notes("what was given", "row", options.strict)
    if isinstance(x, pl.DataFrame | pl.LazyFrame):
        return build_source(notes, read_frame(x), options, "frame", unit="row")
    if is_pandas(x):
        return build_source(notes, read_pandas(x), options, "frame", unit="row")
    if isinstance(x, Mapping):
        items: Iterable[Any] = [x]
    elif isinstance(x, bytes | bytearray) or not isinstance(x, Iterable):
        whole = Called(to_mapping, "load")(x)
        if whole is None:
            raise InputError(
                f"load needs a path, a list of messages or rows, a conversation or a frame, not {describe_value(x)}."
            )
        items = [whole]
    else:
        items = x
    return build_source(notes, _convert_items(items, notes), options, "messages", unit="message")


def _convert_items(items: Iterable[Any], notes: Notes) -> Entries:
    """Yield the items of an iterable as numbered entries; skip invalid items."""
    unknown = 0
    for number, item in enumerate(iterate(items, "load"), 1):
        if isinstance(item, str):
            yield number, {"text": item}
            continue
        entry = item if isinstance(item, Mapping) else Called(to_mapping, "load")(item)
        if entry is None:
            notes.skip(number, "neither a message nor a row", describe_value(item))
            unknown += 1
            if unknown == _MAX_UNKNOWN:
                raise InputError(
                    f"The {unknown} items up to item {number:,} are neither messages nor "
                    "rows. Pass a list of messages or rows."
                )
        else:
            unknown = 0
            yield number, dict(Called(dict, "load")(entry))


# -- exports: written completely or not at all ---


def write_bundle(
    bundle: Bundle, path: Path, format: str | None, *, overwrite: bool = False
) -> Path:
    """Write an export to a temporary path, then rename it to ``path``.

    After a failure, ``path`` is unchanged.
    """
    suffixes = {suffix: name for name in EXPORTS for suffix in READERS[name].suffixes}
    format_name = suffixes.get(path.suffix.lower()) if format is None else format
    if format_name is None:
        listed = ", ".join(sorted(suffixes))
        raise InputError(
            f'The suffix of "{path.name}" names no format. Use one of {listed}, or give format=....'
        )
    if format_name not in EXPORTS:
        raise UnknownName("format of an export", format_name, EXPORTS)
    if (path.exists() or path.is_symlink()) and not overwrite:
        raise InputError(f"{path} exists. Give another path, or overwrite=True.")
    if path.is_dir() and not (path / MANIFEST).is_file() and any(path.iterdir()):
        raise InputError(
            f"{path} is a folder with other files, so it is not overwritten. Give another path."
        )
    # next to the target, so that the rename stays in one file system
    draft = path.with_name(_draft_name(path, os.getpid()))
    sweep_drafts(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if format_name == "parquet" and path.suffix.lower() != ".parquet":
            draft.mkdir()
            write_parquet_folder(bundle, draft)
            for item in draft.iterdir():
                sync(item)
        elif (write := READERS[format_name]._write) is not None:
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
    """Remove the temporary files that killed processes left next to ``path``."""
    for draft in path.parent.glob(_draft_name(path, "*")) if path.parent.is_dir() else ():
        process = draft.name.split(".")[-2]
        if process.isdecimal() and not _is_running(int(process)):
            _remove(draft)


def remove_export(path: Path) -> None:
    """Remove an exported file or folder.

    Raises InputError for a folder that contains other files, and if the system refuses.
    """
    if path.is_dir() and not path.is_symlink() and not (path / MANIFEST).is_file():
        raise InputError(
            f"{path} is a folder with other files, so it is not removed. Remove it by hand."
        )
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"{path} cannot be removed: {error.strerror}. Check its permissions, or remove it yourself."
        ) from None


def _draft_name(path: Path, process: int | str) -> str:
    """Return the name of an export's temporary file; ``"*"`` gives a glob pattern for all."""
    name = path.name[:100]
    return f".{glob.escape(name) if process == '*' else name}.{process}.draft"


def _is_running(process: int) -> bool:
    """Return whether a process with this id is running."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _remove(path: Path) -> None:
    """Remove a file or folder if it exists."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def read_bundle(path: Path, format: str) -> Bundle:
    """Read and check an export, or raise DatasetError for an invalid export."""
    read = READERS[format]._bundle if format in READERS else None
    if read is None or format == "lab":
        raise DatasetError(f"{path.name} is not an export in a readable format.")
    return read(path)

"""Exports as files and folders: written whole or not at all, read by the format's name, removed."""

from __future__ import annotations

import glob
import os
import shutil
from pathlib import Path

from memlab.errors import DatasetError, InputError, UnknownName
from memlab.io.formats.exports.bundle import Bundle
from memlab.io.formats.exports.parquet import MANIFEST, write_parquet_folder
from memlab.io.formats.sources import EXPORTS, READERS
from memlab.kernel.base.disk import refusal, sync

__all__ = ["read_bundle", "remove_export", "sweep_drafts", "write_bundle"]


def write_bundle(bundle: Bundle, path: Path, format: str | None, *, overwrite: bool = False) -> Path:
    """Write a bundle beside and rename it, so that ``path`` is whole or untouched."""
    suffixes = {suffix: name for name in EXPORTS for suffix in READERS[name].suffixes}
    chosen = suffixes.get(path.suffix.lower()) if format is None else format
    if chosen is None:
        known = ", ".join(sorted(suffixes))
        raise InputError(f'"{path.name}" does not say its format. Give format=..., or a suffix of {known}.')
    if chosen not in EXPORTS:
        raise UnknownName("format of an export", chosen, EXPORTS)
    if (path.exists() or path.is_symlink()) and not overwrite:
        raise InputError(f"There is something at {path} already. Give another path, or overwrite=True.")
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
        raise refusal(str(path), error) from error
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

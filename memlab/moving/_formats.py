"""The formats by name, by suffix and by what a file holds; a file is there whole or not at all."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from memlab.disk import refusal, sync
from memlab.errors import DatasetError, InputError, UnknownName
from memlab.moving._bundle import Bundle
from memlab.moving._foreign import FOREIGN, foreign_shape, read_foreign
from memlab.moving._jsonl import read_jsonl, write_jsonl
from memlab.moving._markdown import read_markdown, write_markdown
from memlab.moving._parquet import MANIFEST, read_parquet, write_parquet_file, write_parquet_folder
from memlab.moving._sexp import read_sexp, write_sexp
from memlab.moving._text import json_of, lines_of

__all__ = ["EXPORTS", "IMPORTS", "format_of", "read_bundle", "remove_export", "sweep_drafts", "write_bundle"]

EXPORTS = ("jsonl", "parquet", "markdown", "sexp")
IMPORTS = (*EXPORTS, *FOREIGN, "lab")
_SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".md": "markdown",
    ".markdown": "markdown",
    ".sexp": "sexp",
    ".hy": "sexp",
    ".lisp": "sexp",
}
_WRITERS: dict[str, Callable[[Bundle, BinaryIO], None]] = {
    "jsonl": write_jsonl,
    "markdown": write_markdown,
    "sexp": write_sexp,
}
_READERS: dict[str, Callable[[Path], Bundle]] = {
    "jsonl": read_jsonl,
    "parquet": read_parquet,
    "markdown": read_markdown,
    "sexp": read_sexp,
}


def write_bundle(bundle: Bundle, path: Path, format: str | None, *, overwrite: bool = False) -> Path:
    """Write a bundle beside and rename it, so that ``path`` is whole or untouched."""
    chosen = _SUFFIXES.get(path.suffix.lower()) if format is None else format
    if chosen is None:
        known = ", ".join(sorted(_SUFFIXES))
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
        elif chosen == "parquet":
            write_parquet_file(bundle, draft)
        else:
            with draft.open("xb") as file:
                _WRITERS[chosen](bundle, file)
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


def format_of(path: Path) -> str:
    """The format of what is at ``path``: of a folder by what it holds, of a file by its suffix and first entries."""
    if not path.exists():
        raise InputError(f"There is nothing at {path}.")
    if path.is_dir():
        if (path / MANIFEST).is_file() and (path / "memories.parquet").is_file():
            return "parquet"
        return "lab"
    suffix = path.suffix.lower()
    if suffix == ".json":
        return "json"
    if suffix not in _SUFFIXES:
        known = ", ".join(sorted((*_SUFFIXES, ".json")))
        raise InputError(f'"{path.name}" does not say its format. Give format=..., or a suffix of {known}.')
    if _SUFFIXES[suffix] == "jsonl":
        number, line = next(lines_of(path), (1, b"null"))
        return foreign_shape([json_of(line, path.name, number)]) or "jsonl"
    return _SUFFIXES[suffix]


def read_bundle(path: Path, format: str) -> Bundle:
    """What is at ``path``, checked as far as that needs no lab. Raises DatasetError."""
    if format in _READERS:
        return _READERS[format](path)
    if format == "json":
        return read_foreign(path)
    if format in FOREIGN:
        return read_foreign(path, format)
    raise DatasetError(f"{path.name} is no file of a format that is read here.")

"""The formats by name, by suffix and by what a file holds; a file is there whole or not at all."""

from __future__ import annotations

import glob
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from memlab.errors import DatasetError, InputError, UnknownName
from memlab.io.moving._bundle import Bundle
from memlab.io.moving._foreign import FOREIGN, entries_of, foreign_shape, read_foreign
from memlab.io.moving._jsonl import read_jsonl, write_jsonl
from memlab.io.moving._markdown import read_markdown, write_markdown
from memlab.io.moving._parquet import MANIFEST, is_export, read_parquet, write_parquet_file, write_parquet_folder
from memlab.io.moving._sexp import read_sexp, write_sexp
from memlab.io.moving._text import json_of
from memlab.kernel.base.disk import refusal, sync
from memlab.kernel.journal import FILE, HEAD

__all__ = ["EXPORTS", "IMPORTS", "export_at", "read_bundle", "remove_export", "sweep_drafts", "write_bundle"]

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
_HEAD = 1 << 16
_FENCE = re.compile(rb"^`{3,}yaml memlab\s*$", re.MULTILINE)
_FOREIGN = re.compile(rb'"(?:memory|namespace)"\s*:')
"""What a file of another tool says near its beginning."""

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


def export_at(path: Path) -> str | None:
    """The format of what is at ``path``, if a lab or a tool that is known here wrote it; None for anything else."""
    if path.is_dir():
        if (path / MANIFEST).is_file() and (path / "memories.parquet").is_file():
            return "parquet"
        return "lab" if (path / FILE).exists() or (path / HEAD).exists() else None
    suffix = path.suffix.lower()
    suffix_format = "json" if suffix == ".json" else _SUFFIXES.get(suffix)
    if suffix_format in (None, "sexp"):
        return suffix_format
    if suffix_format == "parquet":
        return "parquet" if is_export(path) else None
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    if suffix_format == "markdown":
        return "markdown" if _FENCE.search(head) else None
    if suffix_format == "json":
        return foreign_shape([one for _, one in entries_of(path)]) if _FOREIGN.search(head) else None
    try:
        first = json_of(head.lstrip(b"\xef\xbb\xbf \r\n").partition(b"\n")[0], path.name, 1)
    except DatasetError:
        return None
    if isinstance(first, dict) and len(first) == 1 and isinstance(first.get("memlab"), dict):
        return "jsonl"
    return foreign_shape([first])


def read_bundle(path: Path, format: str) -> Bundle:
    """What is at ``path``, checked as far as that needs no lab. Raises DatasetError."""
    if format in _READERS:
        return _READERS[format](path)
    if format in FOREIGN:
        return read_foreign(path, format)
    raise DatasetError(f"{path.name} is no file of a format that is read here.")

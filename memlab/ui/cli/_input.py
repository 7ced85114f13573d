"""Arguments of commands that are texts or files: ``-`` is standard input, and a URL is refused."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from memlab.errors import InputError
from memlab.kernel.base.disk import is_url

__all__ = ["InputFile", "LocalPath", "Text"]

_READ = "memlab.ui.cli: who has read standard input"
_MOST = 64 << 20
"""Bytes of a text that are read from standard input: beyond the largest memory, and no danger to this machine."""


class Text(click.ParamType[str]):
    """A text; ``-`` reads it from standard input, without the line ends after it."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value != "-":
            return str(value)
        given = _standard_input(param, ctx, _MOST + 1)
        if len(given) > _MOST:
            raise InputError(f"Standard input has more than {_MOST >> 20} MiB. For a large file: memlab load LAB FILE.")
        try:
            text = given.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise InputError(f"Standard input is not UTF-8: {error.reason} at byte {error.start}.") from None
        if not text.strip():
            raise InputError("Standard input is empty: there is no text to take. Pipe a text in, or give it in quotes.")
        return text


class LocalPath(click.Path):
    """A path of this machine."""

    def __init__(self, **given: Any) -> None:
        super().__init__(path_type=Path, **given)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if is_url(value):
            raise InputError(f"{value} is a URL, and memlab keeps labs and reads files on this machine. Give a path.")
        return super().convert(value, param, ctx)


class InputFile(LocalPath):
    """A file to read; ``-`` is standard input, kept in a temporary file called ``standard-input`` and ``suffix``."""

    def __init__(self, suffix: str = "", *, as_text: bool = False, **given: Any) -> None:
        super().__init__(**given)
        self._suffix, self._as_text = suffix, as_text

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value) == "-":
            value = self._kept(param, ctx)
        path = super().convert(value, param, ctx)
        return str(path) if self._as_text else path

    def _kept(self, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        given = _standard_input(param, ctx, -1)
        if not given.strip():
            raise InputError("Standard input is empty: there is nothing to read. Pipe a file in, or name one.")
        folder = tempfile.TemporaryDirectory(prefix="memlab-")
        if ctx is not None:
            ctx.find_root().call_on_close(folder.cleanup)
        path = Path(folder.name) / f"standard-input{self._suffix}"
        path.write_bytes(given)
        return path


def _standard_input(param: click.Parameter | None, ctx: click.Context | None, most: int) -> bytes:
    """Read standard input, which one argument of a command can do."""
    if ctx is not None:
        if _READ in ctx.meta:
            called = param.human_readable_name if param is not None else "another argument"
            raise click.UsageError(f"{called}: standard input was read for {ctx.meta[_READ]} already.", ctx)
        ctx.meta[_READ] = param.human_readable_name if param is not None else "another argument"
    return sys.stdin.buffer.read(most)

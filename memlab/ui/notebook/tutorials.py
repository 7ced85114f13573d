"""The tutorials of memlab, copied to a folder to work in."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from memlab.errors import InputError, UnknownName

_ORIGINALS = Path(__file__).parent / "notebooks"
"""Folder of the notebooks: a link in a checkout, files in an installed package."""


class Copies(NamedTuple):
    """The names of copied tutorials, and of tutorials that existed already.

    Attributes
    ----------
    folder
        The folder.
    copied
        Names of the copied files.
    existing
        Names of files that existed, and were not overwritten.
    """

    folder: Path
    copied: tuple[str, ...]
    existing: tuple[str, ...]


def tutorial_names() -> tuple[str, ...]:
    """Return the names of the tutorials, in order."""
    return tuple(sorted(path.stem for path in _ORIGINALS.glob("*.ipynb")))


def copy_tutorials(folder: Path, name: str | None = None) -> Copies:
    """Copy all tutorials, or one tutorial by name or number, into a folder.

    Existing files are not overwritten. Raises UnknownName for an unknown tutorial, InputError if the folder is not
    writable.
    """
    names = tutorial_names()
    requested = None if name is None else name.removesuffix(".ipynb")
    chosen = [
        tutorial
        for tutorial in names
        if requested is None or requested in (tutorial, tutorial.partition("-")[0])
    ]
    if not chosen:
        raise UnknownName("notebook", name, names)
    copied, existing = [], []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for tutorial in chosen:
            file = f"{tutorial}.ipynb"
            try:
                with (folder / file).open("xb") as to, (_ORIGINALS / file).open("rb") as original:
                    shutil.copyfileobj(original, to)
                copied.append(file)
            except FileExistsError:
                existing.append(file)
    except OSError as error:
        raise InputError(f"The notebooks cannot be copied to {folder}: {error.strerror}.") from None
    return Copies(folder, tuple(copied), tuple(existing))

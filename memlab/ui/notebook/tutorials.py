"""The tutorials that come with memlab, as copies to work in."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from memlab.errors import InputError, UnknownName

__all__ = ["Copies", "copy_tutorials", "tutorial_names"]

_ORIGINALS = Path(__file__).parent / "notebooks"
"""In a checkout a link to the notebooks at its top, in a wheel the files themselves."""


class Copies(NamedTuple):
    """``folder`` with the tutorials in it: which were ``copied``, and which were there and ``kept`` as they are."""

    folder: Path
    copied: tuple[str, ...]
    kept: tuple[str, ...]


def tutorial_names() -> tuple[str, ...]:
    """The tutorials, in their order."""
    return tuple(sorted(path.stem for path in _ORIGINALS.glob("*.ipynb")))


def copy_tutorials(folder: Path, name: str | None = None) -> Copies:
    """Copy all tutorials, or the one of this name or number, into a folder; no file there is overwritten.

    UnknownName for a name that no tutorial has, InputError for a folder that cannot be written.
    """
    known = tutorial_names()
    asked = None if name is None else name.removesuffix(".ipynb")
    chosen = [one for one in known if asked is None or asked in (one, one.partition("-")[0])]
    if not chosen:
        raise UnknownName("notebook", name, known)
    copied, kept = [], []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for one in chosen:
            file = f"{one}.ipynb"
            try:
                with (folder / file).open("xb") as to, (_ORIGINALS / file).open("rb") as original:
                    shutil.copyfileobj(original, to)
                copied.append(file)
            except FileExistsError:
                kept.append(file)
    except OSError as error:
        raise InputError(f"The notebooks cannot be copied to {folder}: {error.strerror}.") from None
    return Copies(folder, tuple(copied), tuple(kept))

"""Store each result by the hash of its inputs, in a folder of JSON and Parquet files.

A *cell* is the result of one task, such as one pack on one data set. Its folder ``cells/HASH`` has
``cell.json`` (what went in, and the figures) and ``rows.parquet`` (one row for each question, recall
or trial). A folder is written under another name and renamed when its files are on the disk, so a
killed process or a full disk leaves complete cells only.

Names, texts and paths are not part of the hash. So a cell stays valid when a file is moved or a pack
renamed, and on another machine.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import polars as pl

from memlab.errors import DatasetError
from memlab.kernel.base.disk import sync, writing
from memlab.kernel.base.progress import Step
from memlab.kernel.version import __version__
from memlab.science.batch import run_tasks

_Task = TypeVar("_Task")

_FORMAT = 1
"""The version of the files of a cell."""

_PACKAGES = ("numpy", "polars", "PyStemmer", "scipy")
"""The packages whose versions can change a figure: arithmetic, frames, stems of words, and searches of parameters."""


class Inputs(NamedTuple):
    """The inputs of a cell: JSON values that determine the result, and values that describe the cell.

    ``about`` is not part of the hash: the name and the text of a pack, the name of the data.
    """

    values: Mapping[str, Any]
    about: Mapping[str, Any] = {}


class Outcome(NamedTuple):
    """The result of a task: figures as JSON values, and one row for each unit."""

    results: Mapping[str, Any]
    rows: pl.DataFrame


@dataclass(frozen=True)
class Cell:
    """A stored result.

    Parameters
    ----------
    inputs
        The JSON values that decide the result: hashes of packs and data, metrics, seed, versions.
    about
        The JSON values that describe it and are not part of the hash: names, the text and the parents of a
        pack.
    results
        The figures, as JSON values.
    rows
        One row for each question, recall or trial.

    Examples
    --------
    >>> cell = Cell({"seed": 0}, {}, {"questions": 2}, pl.DataFrame({"question": ["q1", "q2"]}))
    >>> cell.hash[:8]
    'de7d7744'
    """

    inputs: Mapping[str, Any]
    about: Mapping[str, Any]
    results: Mapping[str, Any]
    rows: pl.DataFrame = field(repr=False)

    @property
    def hash(self) -> str:
        """The SHA-256 of the inputs, 64 hexadecimal digits."""
        return hash_inputs(self.inputs)


def hash_inputs(inputs: object) -> str:
    """Return the SHA-256 of JSON values and times, independent of the order of keys."""
    text = json.dumps(inputs, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@cache  # the metadata of a package take a millisecond each
def package_versions() -> dict[str, str]:
    """Return the versions of memlab and of packages that can change a figure; "" if one is not installed."""
    versions = {"memlab": __version__}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = ""
    return versions


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Create the folder of cells, and lock it for the ``with`` block of one process."""
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    with (folder / "cells" / ".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write_cell(folder: Path, cell: Cell) -> Path:
    """Write a cell below ``folder/cells``, and return its folder.

    Raises LabError if the disk is full or refuses the files; no part of the cell is left then.
    """
    target = folder / "cells" / cell.hash
    draft = target.with_name(f"{cell.hash}.draft")
    data = io.BytesIO()
    cell.rows.write_parquet(data)
    rows = data.getvalue()
    about = {
        "format": _FORMAT,
        "hash": cell.hash,
        "inputs": cell.inputs,
        "about": cell.about,
        "results": cell.results,
        "rows": hashlib.sha256(rows).hexdigest(),
    }
    text = json.dumps(about, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    with writing(f"The cell {target}"), lock_folder(folder):
        if target.exists():
            return target
        shutil.rmtree(draft, ignore_errors=True)
        try:
            draft.mkdir()
            for name, content in (("rows.parquet", rows), ("cell.json", text.encode())):
                (draft / name).write_bytes(content)
                sync(draft / name)
            draft.rename(target)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        sync(target.parent)
    return target


def find_cell(folder: Path, hash: str) -> Cell | None:
    """Return the cell with a hash below ``folder/cells``, or None; raise DatasetError if it was altered."""
    path = folder / "cells" / hash
    return _read_cell(path) if path.exists() else None


def read_cells(folder: str | Path) -> Iterator[Cell]:
    """Yield all cells below a folder, such as ``runs`` or ``runs/NAME``, in the order of their paths.

    Raises DatasetError if a file was changed after it was written.
    """
    for path in sorted(Path(folder).expanduser().glob("**/cells/*/cell.json")):
        if path.parent.suffix != ".draft":
            yield _read_cell(path.parent)


def _read_cell(path: Path) -> Cell:
    """Read the cell of a folder. Raises DatasetError if a file cannot be read or does not match its hash."""
    try:
        about = json.loads((path / "cell.json").read_text(encoding="utf-8"))
        rows = (path / "rows.parquet").read_bytes()
        if about["format"] > _FORMAT:
            raise DatasetError(
                f"{path} was written by a later version of memlab. Update memlab to read it."
            )
        if hashlib.sha256(rows).hexdigest() != about["rows"]:
            raise ValueError("rows.parquet has another SHA-256 than cell.json states")
        cell = Cell(about["inputs"], about["about"], about["results"], pl.read_parquet(rows))
        if not cell.hash == about["hash"] == path.name:
            raise ValueError("the inputs in cell.json have another SHA-256 than it states")
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(
            f"{path} was changed after it was written: {error}. Delete this folder, and run again what wrote it."
        ) from error
    return cell


def run_cells(
    folder: Path | None,
    work: Callable[[_Task, Step], Outcome],
    tasks: Sequence[tuple[Inputs, _Task]],
    executor: Any,
    step: Step,
    units: float = 1,
) -> list[Cell]:
    """Return the cell of each task; run tasks without a cell, and store each new cell at once.

    Parameters
    ----------
    folder
        The folder with ``cells``; None stores nothing.
    work
        A function of a module, as for ``run_tasks``. A task that has a cell is not run.
    tasks
        What goes into each cell, and the task. Tasks with equal inputs are run once.
    executor, step, units
        As for ``run_tasks``. Tasks that have a cell advance the progress at once.

    Returns
    -------
    list of Cell
        A cell for each task, in their order.
    """
    hashes = [hash_inputs(inputs.values) for inputs, _ in tasks]
    cells: dict[str, Cell] = {}
    if folder is not None:
        cells = {hash: cell for hash in hashes if (cell := find_cell(folder, hash)) is not None}
    waiting = {hash: task for hash, task in zip(hashes, tasks, strict=True) if hash not in cells}
    step(units * (len(tasks) - len(waiting)))
    order = iter(waiting.items())

    def keep(outcome: Outcome) -> None:
        """Store the result of the next task."""
        hash, (inputs, _) = next(order)
        cells[hash] = cell = Cell(inputs.values, inputs.about, outcome.results, outcome.rows)
        if folder is not None:
            write_cell(folder, cell)

    run_tasks(work, [task for _, task in waiting.values()], executor, step, units, keep)
    return [cells[hash] for hash in hashes]

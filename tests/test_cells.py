"""Results that are stored by the hash of all that went in."""

from __future__ import annotations

import errno
import json
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.errors import DatasetError, LabError
from memlab.kernel.base.progress import Step
from memlab.science.cells import (
    Cell,
    Inputs,
    Outcome,
    find_cell,
    hash_inputs,
    read_cells,
    run_cells,
    write_cell,
)

ROWS = pl.DataFrame({"question": ["q1", "q2"], "recall@10": [1.0, None]})


def build_cell(seed: int = 0) -> Cell:
    return Cell({"seed": seed, "pack": "ab"}, {"pack": {"name": "mine"}}, {"recall@10": 0.5}, ROWS)


def square(log: Path, number: int, step: Step) -> Outcome:
    """Square a number, and count the call in a file, because it may be in another process."""
    with log.open("a") as file:
        file.write(f"{number}\n")
    if number < 0:
        raise ValueError(number)
    step(1)
    return Outcome({"square": number**2}, pl.DataFrame({"number": [number]}))


def test_what_is_written_is_read_and_found_by_hash(tmp_path: Path) -> None:
    cell = build_cell()
    path = write_cell(tmp_path / "mine", cell)
    assert path == tmp_path / "mine" / "cells" / cell.hash
    found = find_cell(tmp_path / "mine", cell.hash)
    assert found is not None
    assert (found.inputs, found.about, found.results) == (cell.inputs, cell.about, cell.results)
    assert found.rows.equals(ROWS)
    assert [each.hash for each in read_cells(tmp_path)] == [cell.hash]
    assert find_cell(tmp_path, hash_inputs({"other": 1})) is None


def test_the_hash_covers_inputs_alone_in_any_order() -> None:
    cell = build_cell()
    renamed = Cell({"pack": "ab", "seed": 0}, {}, {}, pl.DataFrame())
    assert cell.hash == renamed.hash != build_cell(1).hash


def test_equal_cells_have_equal_bytes(tmp_path: Path) -> None:
    paths = [write_cell(tmp_path / name, build_cell()) for name in "ab"]
    for name in ("cell.json", "rows.parquet"):
        assert (paths[0] / name).read_bytes() == (paths[1] / name).read_bytes()


@pytest.mark.parametrize(
    "fault", ["rows", "other rows", "json", "inputs", "missing", "folder", "later"]
)
def test_a_changed_cell_is_refused_with_its_folder(tmp_path: Path, fault: str) -> None:
    path = write_cell(tmp_path, cell := build_cell())
    about = json.loads((path / "cell.json").read_text())
    if fault == "rows":
        data = bytearray((path / "rows.parquet").read_bytes())
        data[20] ^= 1
        (path / "rows.parquet").write_bytes(bytes(data))
    elif fault == "other rows":
        ROWS.reverse().write_parquet(path / "rows.parquet")
    elif fault == "json":
        (path / "cell.json").write_text("{")
    elif fault == "inputs":
        about["inputs"]["seed"] = 7
        (path / "cell.json").write_text(json.dumps(about))
    elif fault == "missing":
        (path / "rows.parquet").unlink()
    elif fault == "folder":
        path = path.rename(path.with_name("0" * 64))
    else:
        (path / "cell.json").write_text(json.dumps(about | {"format": 99}))
    with pytest.raises(DatasetError, match=str(path)):
        find_cell(tmp_path, path.name)
    if fault != "later":
        with pytest.raises(DatasetError, match="Delete this folder"):
            list(read_cells(tmp_path))
    assert cell.hash


@pytest.mark.parametrize("call", range(4))
def test_a_full_disk_leaves_no_part_of_a_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    calls = 0

    def fail_once(method: Any, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call + 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return method(*arguments)

    for name in ("write_bytes", "mkdir", "rename"):
        method = getattr(Path, name)
        monkeypatch.setattr(
            Path,
            name,
            lambda self, *a, _m=method, **k: fail_once(partial(_m, self, **k), *a),
        )
    with pytest.raises(LabError, match="the disk is full"):
        write_cell(tmp_path, build_cell())
    monkeypatch.undo()
    assert not list(tmp_path.glob("cells/*/*"))
    assert find_cell(tmp_path, build_cell().hash) is None
    assert write_cell(tmp_path, build_cell()).exists()


def test_a_draft_of_a_killed_process_is_no_cell_and_is_replaced(tmp_path: Path) -> None:
    draft = tmp_path / "cells" / f"{build_cell().hash}.draft"
    draft.mkdir(parents=True)
    (draft / "cell.json").write_text("{")
    assert not list(read_cells(tmp_path))
    write_cell(tmp_path, build_cell())
    assert not draft.exists()
    assert len(list(read_cells(tmp_path))) == 1


@pytest.mark.parametrize("executor", [None, pytest.param(2, marks=pytest.mark.long)])
def test_only_tasks_without_a_cell_run(tmp_path: Path, executor: int | None) -> None:
    log = tmp_path / "log"
    work = partial(square, log)
    shown: list[float] = []

    def run(numbers: list[int]) -> list[int]:
        tasks = [(Inputs({"number": number}), number) for number in numbers]
        cells = run_cells(tmp_path, work, tasks, executor, shown.append)
        return [cell.results["square"] for cell in cells]

    assert run([1, 2, 2]) == [1, 4, 4]
    assert run([3, 2, 1]) == [9, 4, 1]
    assert sorted(log.read_text().split()) == ["1", "2", "3"]
    assert sum(shown) == 6
    with pytest.raises(ValueError, match="-1"):
        run([5, -1, 6])
    assert find_cell(tmp_path, hash_inputs({"number": 5})) is not None

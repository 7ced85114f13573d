"""Published packs: written, pulled, refused after a change, challenged, and attacked."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

import memlab
from memlab.errors import DatasetError, InputError, LabError, MissingExtension, NewerLab, PrivacyError
from memlab.io import publishing
from memlab.science.cells import Cell, write_cell
from memlab.ui.cli import main

hostile: Any = importlib.import_module("tests.campaigns.hostile_packs")

MINE = """(pack mine "Prefers recent memories." :inherits companion)
(defpolicy recall-score [similarity recency] (+ (* 0.7 similarity) (* 0.3 recency)))
"""


def store(folder: Path, pack: memlab.Pack, values: list[float | None]) -> Cell:
    rows = pl.DataFrame(
        {
            "cluster": ["a", "b"] * (len(values) // 2),
            "question": [f"q{n}" for n in range(len(values))],
            "ranking": [[str(n), "7"] for n in range(len(values))],
            "recall@5": values,
        }
    )
    cell = hostile.make_cell(pack.hash, rows)
    write_cell(folder, cell)
    return cell


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.hy"
    path.write_text(MINE)
    return path


def reseal(path: Path, change: Any) -> Path:
    """Change the content of a file, and write the right checksum."""
    content = json.loads(path.read_bytes().partition(b"\n")[2])
    change(content)
    path.write_bytes(hostile.seal(json.dumps(content).encode()))
    return path


def test_a_pack_travels_with_its_origin_and_evidence(tmp_path: Path, mine: Path) -> None:
    pack = memlab.load_pack(mine)
    cells = [store(tmp_path / "runs/a", pack, [0.1, None, 1 / 3, 1.0])]
    cells.append(store(tmp_path / "runs/b", pack, [0.5, 0.25]))
    store(tmp_path / "runs/b", memlab.load_pack("actr"), [0.9, 0.8])
    lineage = memlab.Lineage((memlab.load_pack("companion").hash,), "crossover", "e" * 64)
    path = memlab.publish_pack(
        replace(pack, lineage=lineage), tmp_path / "mine.mempack", evidence=tmp_path / "runs", licence="MIT"
    )
    pulled = memlab.pull_pack(path)
    assert (pulled.pack.hash, pulled.pack.name, pulled.licence) == (pack.hash, "mine", "MIT")
    assert pulled.pack.sources == pack.sources
    assert pulled.pack.lineage == lineage
    assert {cell.hash for cell in pulled.cells} == {cell.hash for cell in cells}
    rows = {cell.hash: cell.rows.to_dicts() for cell in pulled.cells}
    assert all(rows[cell.hash] == cell.rows.to_dicts() for cell in cells)
    assert pulled.frame["questions"].sort().to_list() == [2, 4]
    for text in (repr(pulled), pulled._repr_html_()):
        assert "mine" in text and "MIT" in text and "crossover" in text and "recall@5" in text


def test_equal_packs_and_evidence_give_equal_bytes(tmp_path: Path, mine: Path) -> None:
    pack = memlab.load_pack(mine)
    for name in ("a", "b"):
        for values in ([0.1, 0.2], [0.3, 0.4, 0.5, 0.6])[:: 1 if name == "a" else -1]:
            store(tmp_path / name, pack, values)
        memlab.publish_pack(mine, tmp_path / f"{name}.mempack", evidence=[tmp_path / name])
    assert (tmp_path / "a.mempack").read_bytes() == (tmp_path / "b.mempack").read_bytes()


def test_one_changed_byte_is_refused_anywhere(tmp_path: Path) -> None:
    path = memlab.publish_pack("actr", tmp_path / "actr.mempack", licence="MIT")
    data = path.read_bytes()
    step = 1 if len(data) < 2_000 else len(data) // 1_000
    for position in [*range(100), *range(100, len(data), step), len(data) - 1]:
        changed = bytearray(data)
        changed[position] ^= 1 << position % 8
        path.write_bytes(changed)
        with pytest.raises((DatasetError, NewerLab)):
            memlab.pull_pack(path)
    for changed in (data + b"\n", data[:-1], data[1:], b""):
        path.write_bytes(changed)
        with pytest.raises(DatasetError):
            memlab.pull_pack(path)


def test_a_forged_hash_cell_or_figure_is_refused(tmp_path: Path, mine: Path) -> None:
    pack = memlab.load_pack(mine)
    store(tmp_path / "runs", pack, [0.1, 0.2])

    def forge(change: Any) -> Path:
        path = memlab.publish_pack(mine, tmp_path / "mine.mempack", evidence=tmp_path / "runs")
        return reseal(path, change)

    assert memlab.pull_pack(forge(lambda content: None)).pack == pack
    with pytest.raises(DatasetError, match="give a pack with the hash"):
        memlab.pull_pack(forge(lambda content: content.update(hash="0" * 64)))
    weaker = MINE.replace("0.3 recency", "0.2 recency")
    with pytest.raises(DatasetError, match="give a pack with the hash"):
        memlab.pull_pack(forge(lambda content: content["sources"].__setitem__(0, weaker)))
    with pytest.raises(DatasetError, match="does not compile here"):
        memlab.pull_pack(forge(lambda content: content["sources"].__setitem__(0, "(import os)")))
    with pytest.raises(DatasetError, match="inputs have another hash"):
        memlab.pull_pack(forge(lambda content: content["cells"][0]["inputs"].update(seed=3)))

    def of_another_pack(content: Any) -> None:
        cell = content["cells"][0]
        cell["inputs"]["pack"] = memlab.load_pack("actr").hash
        cell["hash"] = Cell(cell["inputs"], {}, {}, pl.DataFrame()).hash

    with pytest.raises(DatasetError, match="it measured another pack"):
        memlab.pull_pack(forge(of_another_pack))
    with pytest.raises(DatasetError, match="figures"):
        memlab.pull_pack(
            forge(lambda content: content["cells"][0]["metrics"]["recall@5"].update(value=0.9))
        )
    with pytest.raises(DatasetError, match="is invalid"):
        memlab.pull_pack(forge(lambda content: content["cells"][0]["rows"].clear()))

    def of_other_rows(content: Any) -> None:
        content["cells"][0]["rows"]["recall@5"] = [1.0, 1.0]

    with pytest.raises(DatasetError, match="figures of recall@5"):
        memlab.pull_pack(forge(of_other_rows))


def test_what_cannot_be_published_is_said_and_nothing_is_written(tmp_path: Path, mine: Path) -> None:
    target = tmp_path / "mine.mempack"
    store(tmp_path / "runs", memlab.load_pack("actr"), [0.1, 0.2])
    with pytest.raises(InputError, match="1 cells and none of the pack mine"):
        memlab.publish_pack(mine, target, evidence=tmp_path / "runs")
    with pytest.raises(InputError, match="0 cells"):
        memlab.publish_pack(mine, target, evidence=tmp_path / "nowhere")
    changed = memlab.load_pack(mine).with_params({"near": 0.5})
    with pytest.raises(InputError, match="changed after it was read"):
        memlab.publish_pack(changed, target)
    mine.write_text(MINE + "; password = 'hunter2-Xk29dkQ!'\n")
    with pytest.raises(PrivacyError):
        memlab.publish_pack(mine, target)
    with pytest.raises(LabError, match="cannot be written"):
        memlab.publish_pack("actr", tmp_path / "missing" / "a.mempack")
    with pytest.raises(DatasetError):
        memlab.publish_pack("actr", target, licence="x" * 300)
    assert not target.exists()


def test_a_later_format_and_other_files_are_refused(tmp_path: Path) -> None:
    path = memlab.publish_pack("actr", tmp_path / "actr.mempack")
    path.write_bytes(path.read_bytes().replace(b"mempack 1", b"mempack 2", 1))
    with pytest.raises(NewerLab, match="format 2"):
        memlab.pull_pack(path)
    with pytest.raises(InputError, match="Cannot read"):
        memlab.pull_pack(tmp_path / "missing.mempack")
    with pytest.raises(DatasetError, match="not a published pack"):
        memlab.pull_pack(Path(__file__))


def test_a_file_larger_than_the_limit_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    path = memlab.publish_pack("actr", tmp_path / "actr.mempack")
    monkeypatch.setattr(publishing, "_MAX_BYTES", 1 << 10)
    with pytest.raises(DatasetError, match="has more than"):
        memlab.pull_pack(path)

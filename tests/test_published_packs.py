"""Published packs: written, pulled, refused after a change, challenged, and attacked."""

from __future__ import annotations

import importlib
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

import memlab
from memlab.errors import (
    DatasetError,
    InputError,
    LabError,
    MissingExtension,
    NewerLab,
    PrivacyError,
)
from memlab.io import publishing
from memlab.kernel.base.disk import replacing
from memlab.kernel.extension import forget_extension
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


@pytest.mark.long
def test_a_pack_travels_with_its_origin_and_evidence(tmp_path: Path, mine: Path) -> None:
    pack = memlab.load_pack(mine)
    cells = [store(tmp_path / "runs/a", pack, [0.1, None, 1 / 3, 1.0])]
    cells.append(store(tmp_path / "runs/b", pack, [0.5, 0.25]))
    store(tmp_path / "runs/b", memlab.load_pack("actr"), [0.9, 0.8])
    lineage = memlab.Lineage((memlab.load_pack("companion").hash,), "crossover", "e" * 64)
    path = memlab.publish_pack(
        replace(pack, lineage=lineage),
        tmp_path / "mine.mempack",
        evidence=tmp_path / "runs",
        licence="MIT",
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
        assert all(word in text for word in ("mine", "MIT", "crossover", "recall@5"))


@pytest.mark.long
def test_equal_packs_and_evidence_give_equal_bytes(tmp_path: Path, mine: Path) -> None:
    pack = memlab.load_pack(mine)
    for name in ("a", "b"):
        for values in ([0.1, 0.2], [0.3, 0.4, 0.5, 0.6])[:: 1 if name == "a" else -1]:
            store(tmp_path / name, pack, values)
        memlab.publish_pack(mine, tmp_path / f"{name}.mempack", evidence=[tmp_path / name])
    store(tmp_path / "c", pack, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    both = [tmp_path / "a", tmp_path / "c"]
    memlab.publish_pack(mine, tmp_path / "c.mempack", evidence=both)
    memlab.publish_pack(mine, tmp_path / "d.mempack", evidence=both[::-1])
    data = {name: (tmp_path / f"{name}.mempack").read_bytes() for name in "abcd"}
    assert data["a"] == data["b"] != data["c"] == data["d"]


@pytest.mark.long
def test_one_changed_byte_is_refused_anywhere(tmp_path: Path) -> None:
    path = memlab.publish_pack("actr", tmp_path / "actr.mempack", licence="MIT")
    data = path.read_bytes()
    for position in [*range(90), *range(90, len(data), 150), len(data) - 1]:
        changed = bytearray(data)
        changed[position] ^= 1 << position % 8
        path.write_bytes(changed)
        with pytest.raises((DatasetError, NewerLab)):
            memlab.pull_pack(path)
    for changed in (data + b"\n", data[:-1], data[1:], b""):
        path.write_bytes(changed)
        with pytest.raises(DatasetError):
            memlab.pull_pack(path)


@pytest.mark.long
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
    with pytest.raises(DatasetError, match="hash does not match its inputs"):
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


@pytest.mark.long
def test_inputs_that_are_nested_deeply_are_refused(tmp_path: Path, mine: Path) -> None:
    store(tmp_path / "runs", memlab.load_pack(mine), [0.1, 0.2])
    path = memlab.publish_pack(mine, tmp_path / "mine.mempack", evidence=tmp_path / "runs")
    body = path.read_bytes().partition(b"\n")[2]
    # JSON is decoded to a greater depth than Python encodes it, by a few levels
    for depth in (*range(700, 1_000, 3), 100_000):
        nested = b'"inputs":{"a":' + b"[" * depth + b"]" * depth + b","
        path.write_bytes(hostile.seal(body.replace(b'"inputs":{', nested)))
        with pytest.raises(DatasetError, match=r"is invalid|too deeply"):
            memlab.pull_pack(path)


@pytest.mark.long
def test_what_cannot_be_published_is_said_and_nothing_is_written(
    tmp_path: Path, mine: Path
) -> None:
    target = tmp_path / "mine.mempack"
    store(tmp_path / "runs", memlab.load_pack("actr"), [0.1, 0.2])
    with pytest.raises(InputError, match="1 cell and none of the pack mine"):
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


# -- checks of figures ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(tmp_path_factory: Any) -> Any:
    """A published pack with the figures of an experiment, the data, and the folder of the experiment."""
    folder = tmp_path_factory.mktemp("measured")
    source = folder / "mine.hy"
    source.write_text(MINE)
    data = Path(shutil.copy(memlab.examples.CONVERSATION, folder / "talk.json"))
    experiment = memlab.Experiment("talks", source, data, folder=folder / "runs").run()
    path = memlab.publish_pack(source, folder / "mine.mempack", evidence=experiment.folder)
    return path, data, experiment


@pytest.mark.long
def test_figures_are_computed_again_to_the_last_digit(measured: Any, tmp_path: Path) -> None:
    path, data, experiment = measured
    pulled = memlab.pull_pack(path)
    results = experiment.results.sort("metric")
    assert pulled.frame["value"].to_list() == results["value"].to_list()
    # data are recognised by their content, wherever they are
    moved = shutil.copy(data, tmp_path / "elsewhere.json")
    checked = pulled.check(moved)
    assert checked["equal"].to_list() == [True, True]
    assert (
        checked["stated"].to_list()
        == checked["computed"].to_list()
        == pulled.frame["value"].to_list()
    )
    assert checked["differing"].to_list() == [0, 0]
    assert checked["inputs"].to_list() == ["", ""]


@pytest.mark.long
def test_a_forger_who_changes_rows_and_figures_alike_is_found_by_the_check(
    measured: Any, tmp_path: Path
) -> None:
    path, data, _ = measured
    forged = Path(shutil.copy(path, tmp_path / "forged.mempack"))

    def improve(content: Any) -> None:
        (cell,) = content["cells"]
        rows = pl.DataFrame(cell["rows"]).with_columns(
            pl.when(pl.col("recall@10") == 0).then(1.0).otherwise("recall@10").alias("recall@10")
        )
        cell["rows"] = rows.to_dict(as_series=False)
        cell["metrics"] = hostile.summarise_rows(rows, ["recall@10", "ndcg@10"])["metrics"]
        cell["inputs"]["versions"]["polars"] = "0.1"
        cell["hash"] = Cell(cell["inputs"], {}, {}, rows).hash

    checked = memlab.pull_pack(reseal(forged, improve)).check(data)
    by_metric = {row["metric"]: row for row in checked.to_dicts()}
    assert by_metric["ndcg@10"]["equal"]
    assert not by_metric["recall@10"]["equal"]
    assert by_metric["recall@10"]["differing"] > 0
    assert by_metric["recall@10"]["stated"] > by_metric["recall@10"]["computed"]
    assert by_metric["recall@10"]["inputs"] == f"polars 0.1, here {pl.__version__}"


@pytest.mark.long
def test_the_last_digit_of_a_figure_counts(measured: Any, tmp_path: Path) -> None:
    path, data, _ = measured
    forged = Path(shutil.copy(path, tmp_path / "forged.mempack"))

    def round_up(content: Any) -> None:
        figure = content["cells"][0]["metrics"]["recall@10"]
        figure["value"] = math.nextafter(figure["value"], 1)

    checked = memlab.pull_pack(reseal(forged, round_up)).check(data)
    assert dict(zip(checked["metric"], checked["equal"], strict=True)) == {
        "ndcg@10": True,
        "recall@10": False,
    }


@pytest.mark.long
def test_other_data_are_refused_with_the_names_of_the_right_ones(
    measured: Any, tmp_path: Path
) -> None:
    path, data, _ = measured
    other = tmp_path / "talk.json"
    other.write_text(data.read_text().replace("a", "e", 1))
    with pytest.raises(
        InputError, match=r"no figures that can be computed on .* It has figures of: talk \["
    ):
        memlab.pull_pack(path).check(other)
    with pytest.raises(InputError, match="measure="):
        memlab.pull_pack(path).check(data, measure=len)
    with pytest.raises(InputError, match="figures of: none"):
        memlab.pull_pack(memlab.publish_pack("actr", tmp_path / "actr.mempack")).check(data)


def count_words(pack: memlab.Pack, data: Any, seed: int) -> dict[str, float]:
    """Return a figure that depends on the pack, the data and the seed."""
    return {"words": len(pack.sources[0].split()) / (3 + seed) + data[0]}


@pytest.mark.long
def test_figures_of_a_function_are_computed_again_by_it(tmp_path: Path, mine: Path) -> None:
    data = tmp_path / "numbers.json"
    data.write_text("[1.5]")
    experiment = memlab.Experiment(
        "words",
        mine,
        {"numbers": data},
        metrics="words",
        seeds=(1, 4),
        measure=read_and_count,
        folder=tmp_path,
    ).run()
    path = memlab.publish_pack(mine, tmp_path / "mine.mempack", evidence=experiment.folder)
    checked = memlab.pull_pack(path).check(data, measure=read_and_count)
    assert checked["equal"].all()
    assert sorted(checked["seed"]) == [1, 4]
    with pytest.raises(InputError, match="measure="):
        memlab.pull_pack(path).check(data)


def read_and_count(pack: memlab.Pack, data: Path, seed: int) -> dict[str, float]:
    """Read numbers from a file, and count words."""
    return count_words(pack, json.loads(data.read_text()), seed)


@pytest.mark.long
def test_a_pack_that_a_search_made_travels_with_its_parents(tmp_path: Path) -> None:
    with memlab.open() as lab:
        names = [
            f"{name} likes {what}"
            for name in ("Ana", "Ben", "Cy", "Di", "Eli", "Fay", "Gus", "Hal")
            for what in ("tea", "rain", "Rome", "chess", "fog")
        ]
        lab.remember(names)
        for number, text in enumerate(names, 1):
            lab.questions.add(f"Who says that {text}?", wants=number)
        best = memlab.evolve(lab, "recency", budget=60, seed=1).best
        assert best is not None
        experiment = memlab.Experiment(
            "best", {"best": best}, memlab.examples.CONVERSATION, folder=tmp_path
        )
        path = memlab.publish_pack(
            best, tmp_path / "best.mempack", evidence=experiment.run().folder
        )
        pulled = memlab.pull_pack(path)
        assert pulled.pack.lineage == best.lineage
        assert pulled.check(memlab.examples.CONVERSATION)["equal"].all()
        assert lab.challenge(pulled.pack).pack.lineage == best.lineage


# -- extensions, commands, attacks ------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_missing_extension_is_named_with_its_version(tmp_path: Path) -> None:
    feature = memlab.Feature(
        "size", "num", "memory", "length", compute=lambda pool: [0.0 for _ in pool.texts]
    )
    memlab.extend(memlab.Extension("sizes", "1.2", features=(feature,)))
    text = "(pack sized :inherits memlab)\n(defpolicy recall-score [similarity size] (+ similarity (* 0.01 size)))"
    path = memlab.publish_pack(text, tmp_path / "sized.mempack")
    assert memlab.pull_pack(path).pack.name == "sized"
    forget_extension("sizes")
    with pytest.raises(MissingExtension, match=r"needs an extension: sizes 1\.2 is not registered"):
        memlab.pull_pack(path)
    # a file that hides the need is refused, too
    with pytest.raises(DatasetError, match="does not compile here"):
        memlab.pull_pack(reseal(path, lambda content: content.update(needs={})))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: Any) -> Any:
    monkeypatch.chdir(tmp_path)

    def call(*words: object, status: int = 0) -> Any:
        result = CliRunner().invoke(main, ["pack", *(str(word) for word in words)])
        assert result.exit_code == status, result.output
        return result

    return call


@pytest.mark.long
def test_a_pack_is_published_pulled_and_challenges_by_commands(
    run: Any, measured: Any, tmp_path: Path
) -> None:
    published, data, experiment = measured
    source = published.with_suffix(".hy")
    done = run(
        "publish", source, "--evidence", experiment.folder.parent, "--licence", "MIT", "--json"
    )
    report = json.loads(done.stdout)
    assert report["file"] == "mine.mempack"
    assert (tmp_path / "mine.mempack").exists()
    assert [row["metric"] for row in report["evidence"]] == ["ndcg@10", "recall@10"]
    with memlab.open(tmp_path / "a.memlab") as lab:
        active = lab.policies.pack.hash
    out = run("pull", "mine.mempack", "--check", data, "--lab", "a.memlab").output
    assert "Licence: MIT" in out
    assert "Challenge of mine" in out
    with memlab.open(tmp_path / "a.memlab") as lab:
        assert lab.policies.pack.hash == active
        (challenge,) = lab.policies.challenges
        assert challenge.pack.hash == memlab.load_pack(source).hash
        assert challenge.reason.startswith("pulled from mine.mempack [")
    assert "challenger already" in run("pull", "mine.mempack", "--lab", "a.memlab", status=1).stderr


@pytest.mark.long
def test_a_pack_whose_figures_differ_does_not_challenge(
    run: Any, measured: Any, tmp_path: Path
) -> None:
    published, data, _ = measured
    forged = Path(shutil.copy(published, tmp_path / "forged.mempack"))

    def improve(content: Any) -> None:
        (cell,) = content["cells"]
        for value in (cell["rows"]["ranking"], cell["rows"]["recall@10"]):
            value.reverse()

    memlab.open(tmp_path / "a.memlab").close()
    done = run("pull", reseal(forged, improve), "--check", data, "--lab", "a.memlab", status=1)
    assert "figures differ" in done.output
    with memlab.open(tmp_path / "a.memlab") as lab:
        assert lab.policies.challenges == ()


@pytest.mark.parametrize(("cases", "seed"), [(38, 1), pytest.param(200, 2, marks=pytest.mark.long)])
def test_hostile_packs_are_read_or_refused_and_nothing_is_executed(
    cases: int, seed: int, tmp_path: Path
) -> None:
    valid = hostile.publish_valid(tmp_path / "valid", packs=3 if cases < 100 else 13)
    puller = hostile.Puller(tmp_path, valid[2])
    outcomes = [
        (name, puller.pull(data)) for name, data in hostile.hostile_packs(valid, cases, seed)
    ]
    assert [outcome for outcome in outcomes if outcome[1].kind not in ("read", "refused")] == []
    assert {outcome.kind for _, outcome in outcomes} == {"read", "refused"}


def test_two_writers_of_a_file_do_not_meet_and_a_failed_one_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.mempack"
    with replacing(path) as first:
        first.write(b"first")
        with replacing(path) as second:
            second.write(b"second, longer")
        assert path.read_bytes() == b"second, longer"
    assert path.read_bytes() == b"first"
    with pytest.raises(TypeError), replacing(path) as file:
        file.write("half")  # type: ignore[arg-type]
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.long
def test_a_hostile_name_cannot_control_the_terminal_of_a_check(tmp_path: Path) -> None:
    source, data = tmp_path / "mine.hy", memlab.examples.CONVERSATION
    source.write_text(MINE)
    experiment = memlab.Experiment("x", source, data, folder=tmp_path / "runs").run()
    path = memlab.publish_pack(source, tmp_path / "x.mempack", evidence=experiment.folder)

    def rename(content: Any) -> None:
        cell = content["cells"][0]
        cell["data"] = "\x1b[31m\x07data"
        cell["inputs"]["versions"]["\x1b[2J"] = "\x9b1"
        cell["hash"] = Cell(cell["inputs"], {}, {}, pl.DataFrame()).hash

    figures = memlab.pull_pack(reseal(path, rename)).check(data)
    assert figures["equal"].all()
    assert not any(c in str(figures.to_dicts()) for c in ("\\x1b", "\\x07", "\\x9b"))
    with pytest.raises(DatasetError, match="it has no metric"):
        memlab.pull_pack(reseal(path, lambda content: content["cells"][0].update(metrics={})))

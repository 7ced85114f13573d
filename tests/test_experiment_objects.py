"""Experiments: measured once, stored, resumed after a kill or on another machine, and compared."""

from __future__ import annotations

import errno
import json
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from embedders import letters
from scipy import stats

import memlab
from memlab import Experiment
from memlab.errors import DatasetError, InputError, LabError, PolicyError, UnknownName
from memlab.io.ingest import read_locomo
from memlab.kernel.policies import Pack
from memlab.science.cells import read_cells
from memlab.science.evaluation import cluster_interval
from memlab.science.experiments import _experiment as experiments

TALK = memlab.examples.CONVERSATION


def count_calls(log: str, pack: Pack, data: Any, seed: int) -> pl.DataFrame:
    """Return invented figures of a pack, and count the call in a file."""
    with Path(log).open("a") as file:
        file.write(f"{pack.name} {json.dumps(data)} {seed}\n")
    draws = np.random.default_rng([seed, len(pack.name), int(data["noise"])])
    return pl.DataFrame(
        {
            "cluster": ["a", "a", "b", "c"],
            "question": ["1", "2", "3", "4"],
            "gain": draws.normal(size=4) + len(pack.name),
            "cost": [1.0, 2.0, None, float("nan")],
        }
    )


def draw_seed(pack: Pack, data: Any, seed: int) -> dict[str, float]:
    """Return one figure for a seed."""
    return {"gain": float(np.random.default_rng([seed, len(pack.name)]).normal())}


@pytest.fixture
def calls(tmp_path: Path) -> Any:
    """Return a function that returns the calls since its last call."""
    log = tmp_path / "calls"
    log.touch()

    def read() -> list[str]:
        lines = log.read_text().splitlines()
        log.write_text("")
        return lines

    read.path = str(log)  # type: ignore[attr-defined]
    return read


@pytest.fixture
def build(tmp_path: Path, calls: Any) -> Any:
    """Return a function that builds an experiment of three packs, two data sets and two seeds."""

    def build_experiment(**changes: Any) -> Experiment:
        options: dict[str, Any] = {
            "policies": ["memlab", "bm25", "dense"],
            "data": {"easy": {"noise": 1}, "hard": {"noise": 2}},
            "metrics": ["gain", "cost"],
            "seeds": [1, 2],
            "folder": tmp_path / "runs",
            "measure": partial(count_calls, calls.path),
        }
        return Experiment("mine", **options | changes)

    return build_experiment


@pytest.mark.long
def test_a_second_run_measures_nothing(build: Any, calls: Any) -> None:
    first = build().run()
    assert len(calls()) == 12
    second = build().run()
    assert calls() == []
    assert first.results.equals(second.results)
    assert second.missing == 0
    assert (first.folder / "experiment.json").is_file()


@pytest.mark.long
def test_a_changed_pack_measures_its_own_cells_alone(build: Any, calls: Any) -> None:
    build().run()
    calls()
    changed = "(pack dense :inherits memlab) (setting pool 30)"
    build(policies=["memlab", "bm25", changed]).run()
    assert sorted(calls()) == sorted(
        f'dense {{"noise": {noise}}} {seed}' for noise in (1, 2) for seed in (1, 2)
    )
    build().run()
    build(policies={"renamed": "bm25"}).run()
    assert calls() == []


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    [{"metrics": ["gain"]}, {"seeds": [3]}, {"measure": draw_seed, "metrics": "gain"}],
)
def test_whatever_decides_the_result_is_part_of_the_hash(
    build: Any, calls: Any, change: dict[str, Any]
) -> None:
    before = {cell.hash for cell in read_cells(build().run().folder)}
    after = {cell.hash for cell in read_cells(build(**change).run().folder)}
    assert len(after - before) == 6 * len(build(**change).seeds)


@pytest.mark.long
def test_a_cell_says_what_went_in(build: Any) -> None:
    experiment = build().run()
    for cell in read_cells(experiment.folder.parent):
        pack = experiment.packs[cell.about["pack"]["name"]]
        assert cell.inputs["pack"] == cell.about["pack"]["hash"] == pack.hash
        assert cell.about["pack"]["text"] == pack.sources[0]
        assert cell.inputs["data"] == cell.about["data"]["sha256"]
        assert cell.inputs["metrics"] == ["gain", "cost"]
        assert cell.inputs["versions"]["memlab"] == memlab.__version__
        assert cell.rows.columns == ["cluster", "question", "gain", "cost"]
        assert cell.results["metrics"]["cost"]["value"] == 1.5


@pytest.mark.long
def test_results_are_the_figures_of_the_benchmark(tmp_path: Path) -> None:
    experiment = Experiment("words", ["memlab", "bm25"], TALK, folder=tmp_path).run()
    bench = memlab.bench_conversations(read_locomo(TALK), packs="memlab").systems
    expected = {system.name: system.metrics for system in bench}
    assert experiment.results.height == 4
    for row in experiment.results.iter_rows(named=True):
        assert row["value"] == pytest.approx(expected[row["policy"]][row["metric"]], abs=1e-15)
        assert row["questions"] == 36
        assert (row["low"], row["clusters"]) == (None, 1)


@pytest.mark.long
def test_moved_and_renamed_it_measures_nothing(tmp_path: Path, calls: Any) -> None:
    first = Experiment("words", {"a": "bm25"}, TALK, folder=tmp_path / "here").run()
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    copy = shutil.copy(TALK, tmp_path / "copy.json")
    data = {TALK.stem: copy}
    moved = Experiment("words", {"b": "bm25"}, data, folder=tmp_path / "there")
    assert moved.missing == 0
    assert moved.results["value"].equals(first.results["value"])
    assert moved.run().rows.drop("policy").equals(first.rows.drop("policy"))
    written = "".join(path.read_text() for path in (tmp_path / "there").rglob("*.json"))
    assert str(tmp_path) not in written


@pytest.mark.long
def test_data_that_changed_under_their_name_are_refused(build: Any, calls: Any) -> None:
    build().run()
    calls()
    with pytest.raises(DatasetError, match=r'"hard" of the experiment mine changed.*another name'):
        build(data={"easy": {"noise": 1}, "hard": {"noise": 3}}).run()
    assert calls() == []
    build(data={"hard-2": {"noise": 3}}).run()
    assert len(calls()) == 6
    with pytest.raises(DatasetError, match="changed"):
        build(data={"hard": {"noise": 3}}).run()


@pytest.mark.long
def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    copy = Path(shutil.copy(TALK, tmp_path / "talk.json"))
    experiment = Experiment("words", "bm25", copy, folder=tmp_path / "runs").run()
    copy.write_text(copy.read_text().replace("Oslo", "Rome") + "\n")
    with pytest.raises(DatasetError, match=r"sha256 was .* Restore them"):
        experiment.run()
    assert experiment.results.height == 2


@pytest.mark.long
def test_seeds_have_a_row_each_and_one_over_all(build: Any) -> None:
    experiment = build().run()
    results = experiment.results.filter(policy="bm25", data="easy", metric="gain")
    assert results["seed"].to_list() == [1, 2, None]
    rows = experiment.rows.filter(policy="bm25", data="easy")
    assert results["value"][2] == pytest.approx(rows["gain"].mean())
    assert results["clusters"].to_list() == [3, 3, 3]


@pytest.mark.long
def test_a_comparison_is_that_of_the_means_over_questions(build: Any) -> None:
    experiment = build().run()
    frame = experiment.compare("memlab", "bm25").frame
    assert frame["data"].to_list() == ["easy", "hard", None] * 2
    rows = experiment.rows
    for name in ("easy", "hard"):
        means = (
            rows.filter(data=name)
            .pivot(
                "policy", index=["cluster", "question"], values="gain", aggregate_function="mean"
            )
            .with_columns(difference=pl.col("memlab") - pl.col("bm25"))
        )
        expected = cluster_interval(means["difference"].to_numpy(), means["cluster"].to_list())
        assert expected is not None
        row = frame.row(
            by_predicate=(pl.col("metric") == "gain") & (pl.col("data") == name), named=True
        )
        assert row["p"] == pytest.approx(expected.p)
        assert (row["low"], row["high"]) == pytest.approx((expected.low, expected.high))
        assert row["difference"] == pytest.approx(means["difference"].mean())
        values = [
            experiment.results.row(
                by_predicate=(pl.col("metric") == "gain")
                & (pl.col("data") == name)
                & (pl.col("policy") == policy)
                & pl.col("seed").is_null(),
                named=True,
            )["value"]
            for policy in ("memlab", "bm25")
        ]
        assert row["difference"] == pytest.approx(values[0] - values[1])
        assert row["a"] - row["b"] == pytest.approx(row["difference"])
        assert (row["questions"], row["clusters"]) == (4, 3)
    known = frame.drop_nulls("low")
    assert known["metric"].to_list() == ["gain", "gain", "gain", "cost"]
    assert known["difference"].is_between(known["low"], known["high"]).all()
    everything = frame.row(2, named=True)
    assert (everything["questions"], everything["clusters"]) == (8, 6)
    opposite = experiment.compare("bm25", "memlab").frame
    assert opposite["difference"].to_list() == pytest.approx((-frame["difference"]).to_list())
    for adjust in ("bonferroni", "bh"):
        adjusted = experiment.compare("memlab", "bm25", adjust=adjust).frame
        assert (adjusted["p"] >= frame["p"]).all()
        assert (adjusted["low"] <= frame["low"]).all()


@pytest.mark.long
def test_without_clusters_seeds_are_independent(build: Any) -> None:
    experiment = build(measure=draw_seed, metrics="gain", seeds=range(8), data={"one": None}).run()
    rows = experiment.rows.pivot("policy", index="seed", values="gain")
    expected = stats.ttest_rel(rows["memlab"], rows["dense"])
    (row,) = experiment.compare("memlab", "dense").frame.iter_rows(named=True)
    assert row["p"] == pytest.approx(expected.pvalue)
    assert row["clusters"] == 8


@pytest.mark.long
def test_a_full_disk_leaves_complete_cells_and_a_later_run_finishes(
    build: Any, calls: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, written = Path.write_bytes, 0

    def fail_later(path: Path, data: bytes) -> int:
        nonlocal written
        written += 1
        if written == 8:
            write(path, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", fail_later)
    with pytest.raises(LabError, match="the disk is full"):
        build().run()
    monkeypatch.undo()
    assert build().missing == 9
    assert len(calls()) == 4
    assert build().run().missing == 0
    assert len(calls()) == 9


KILLED = """
import sys, time
sys.path.insert(0, {folder!r})
from study import experiment
print("ready", flush=True)
experiment.run()
"""

STUDY = """
import time
import numpy as np
import polars as pl
import memlab

def measure(pack, data, seed):
    time.sleep(0.02)
    draws = np.random.default_rng([seed, len(pack.name), data])
    return pl.DataFrame({"question": list("abcdefgh"), "gain": draws.normal(size=8)})

experiment = memlab.Experiment(
    "killed", ["memlab", "bm25", "dense"], {"one": 1, "two": 2}, metrics="gain", seeds=range(4), folder="runs",
    measure=measure,
)
"""


@pytest.mark.slow
def test_killed_at_ten_points_it_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "study.py").write_text(STUDY)

    def start(name: str) -> subprocess.Popen[str]:
        script = KILLED.format(folder=str(tmp_path / name))
        return subprocess.Popen(
            [sys.executable, "-c", script], cwd=tmp_path / name, stdout=subprocess.PIPE, text=True
        )

    def read_bytes(name: str) -> dict[str, bytes]:
        folder = tmp_path / name / "runs"
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }

    with start("whole") as process:
        assert process.wait() == 0
    cells = {name for name in read_bytes("whole") if name.endswith("cell.json")}
    assert len(cells) == 24
    delays = np.random.default_rng(0).uniform(0, 0.1, size=10)
    counts = []
    for delay in delays:
        with start("killed") as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
        # What a kill leaves is readable at any time.
        counts.append(sum(1 for _ in read_cells(tmp_path / "killed")))
    assert counts == sorted(counts)
    assert counts[0] < 24
    with start("killed") as process:
        assert process.wait() == 0
    assert read_bytes("killed") == read_bytes("whole")


@pytest.mark.long
def test_several_runs_at_once_store_the_same_results(tmp_path: Path) -> None:
    (tmp_path / "study.py").write_text(STUDY)
    script = KILLED.format(folder=str(tmp_path))
    running = [
        subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, stdout=subprocess.DEVNULL)
        for _ in range(3)
    ]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert len(list(read_cells(tmp_path))) == 24
    assert not list(tmp_path.rglob("*.draft"))


@pytest.mark.long
def test_other_processes_give_the_same_bytes(tmp_path: Path) -> None:
    policies = ["bm25", "dense"]
    folders = [tmp_path / name for name in ("here", "there")]
    Experiment("words", policies, TALK, folder=folders[0]).run()
    Experiment("words", policies, TALK, folder=folders[1]).run(executor=2)
    contents = [
        {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
        for folder in folders
    ]
    assert contents[0] == contents[1]


@pytest.mark.long
def test_a_lab_is_measured_by_its_questions(tmp_path: Path) -> None:
    with memlab.open(tmp_path / "agent.memlab") as lab:
        lab.remember(["The spare key hangs in the boiler room.", "Rent is due on the third."])
        with pytest.raises(DatasetError, match="has no questions"):
            Experiment("own", "memlab", {"agent": lab}, folder=tmp_path / "runs").run()
    shutil.rmtree(tmp_path / "runs")
    with memlab.open(tmp_path / "agent.memlab") as lab:
        lab.questions.add(
            pl.DataFrame({"query": ["Where is the key?", "When is rent due?"], "wants": [[1], [2]]})
        )
        recalls = lab.log.height
    by_path = Experiment(
        "own", ["memlab", "bm25"], tmp_path / "agent.memlab", folder=tmp_path / "runs"
    )
    assert by_path.run().results["value"].to_list()[:2] == [1.0, 1.0]
    with memlab.open(tmp_path / "agent.memlab") as lab:
        assert lab.log.height == recalls
        opened = Experiment("own", ["memlab", "bm25"], {"agent": lab}, folder=tmp_path / "runs")
        assert opened.missing == 0
        lab.remember("The deploy day is Friday.")
        with pytest.raises(DatasetError, match="changed"):
            opened.run()


@pytest.mark.long
def test_a_lab_of_another_embedder_is_measured_with_it(tmp_path: Path) -> None:
    with memlab.open(tmp_path / "own.memlab", embedder=letters) as lab:
        lab.remember(["The spare key hangs in the boiler room.", "Rent is due on the third."])
        lab.questions.add(pl.DataFrame({"query": ["Where is the key?"], "wants": [[1]]}))
    experiment = Experiment(
        "own", "dense", tmp_path / "own.memlab", folder=tmp_path / "runs", embedder=letters
    )
    assert experiment.run().results.height == 2


@pytest.mark.long
def test_reports_have_the_results_and_no_markup_of_names(build: Any, tmp_path: Path) -> None:
    experiment = build(data={"<b>easy & hard_</b>": {"noise": 1}})
    with pytest.raises(InputError, match="no result yet"):
        experiment.report(tmp_path / "early.html")
    experiment.run()
    page = experiment.report(tmp_path / "page.html").read_text()
    assert "<b>easy" not in page
    assert "&lt;b&gt;easy" in page
    assert "bm25 minus memlab" in page
    latex = experiment.report(tmp_path / "table.tex").read_text()
    assert r"easy \& hard\_" in latex
    assert experiment.packs["bm25"].hash[:12] in latex
    csv = pl.read_csv(experiment.report(tmp_path / "rows.csv"))
    assert csv["value"].to_list() == experiment.results["value"].to_list()
    with pytest.raises(InputError, match=r"\.html, \.tex or \.csv"):
        experiment.report(tmp_path / "page.pdf")
    assert experiment.figure("gain").axes
    with pytest.raises(UnknownName):
        experiment.figure("recall@10")


@pytest.mark.long
def test_an_experiment_file_is_read_and_never_executed(tmp_path: Path) -> None:
    (tmp_path / "mine.hy").write_text("(pack mine :inherits memlab) (setting pool 50)")
    shutil.copy(TALK, tmp_path / "talk.json")
    path = tmp_path / "words.toml"
    path.write_text(
        'policies = ["bm25", "mine.hy"]\ndata = {talk = "talk.json"}\nmetrics = ["recall@5"]\nfolder = "out"\n'
    )
    experiment = Experiment.read(path)
    assert (experiment.name, list(experiment.packs)) == ("words", ["bm25", "mine"])
    assert experiment.run().folder == tmp_path / "out" / "words"
    assert experiment.results.height == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("policies = [", "is not TOML"),
        ('policies = ["bm25"]', "has no data"),
        ('data = ["talk.json"]', "has no policies"),
        ('policies = ["bm25"]\ndata = ["a.json"]\nmetric = "x"', 'unknown key "metric"'),
        ('policies = ["bm25"]\ndata = ["a.json"]\nmeasure = "os:system"', 'unknown key "measure"'),
        ('policies = ["bm26"]\ndata = ["a.json"]', "bm26"),
        ('policies = ["bm25"]\ndata = 7', "needs data: paths"),
        ('policies = ["bm25"]\ndata = ["a.json"]\nmetrics = ["speed@3"]', "speed@3"),
        ('policies = ["bm25"]\ndata = ["a.json"]\nseeds = ["x"]', "seeds"),
        ('policies = 3\ndata = ["a.json"]', "A policy must be a text"),
        ('policies = ["bm25"]\ndata = ["a.json"]\nfolder = 3', "folder (is|must be) a path"),
        ('name = "../up"\npolicies = ["bm25"]\ndata = ["a.json"]', "cannot be the name"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises((InputError, PolicyError), match=message):
        Experiment.read(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policies": []}, "needs policies"),
        ({"policies": ["bm25", "bm25"]}, "Two policies"),
        ({"data": {}}, "needs data"),
        ({"data": ["a/talk.json", "b/talk.json"]}, "same name"),
        ({"data": [1, 2]}, "needs data: paths"),
        ({"metrics": []}, "at least one metric"),
        ({"metrics": "cluster"}, "Name the metric differently"),
        ({"seeds": []}, "one seed"),
        ({"seeds": [1, 2], "measure": None, "metrics": "recall@5"}, "draws nothing"),
        ({"measure": 3}, "measure (is|must be) a function"),
        ({"measure": len}, "measure (is|must be) a function"),
        ({"measure": partial(draw_seed, object())}, "measure (is|must be) a function"),
    ],
)
def test_bad_arguments_are_refused(build: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build(**options)


def return_value(value: Any, pack: Pack, data: Any, seed: int) -> Any:
    return json.loads(value) if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("7", "measure returned 7 without finite metrics gain"),
        ("[]", "a row for each unit"),
        ('{"other": 1}', 'unable to find column "gain"'),
        ('{"gain": "high"}', "conversion"),
        ('{"gain": Infinity}', "not JSON compliant"),
    ],
)
def test_what_measure_returns_is_checked(build: Any, value: str, message: str) -> None:
    experiment = build(measure=partial(return_value, value), metrics="gain")
    with pytest.raises(InputError, match=message):
        experiment.run()
    assert experiment.missing == 12


def return_nothing(pack: Pack, data: Any, seed: int) -> pl.DataFrame:
    """Return a frame without rows."""
    return pl.DataFrame(schema={"gain": pl.Float64})


def test_a_frame_without_rows_is_no_result(build: Any) -> None:
    experiment = build(measure=return_nothing, metrics="gain")
    with pytest.raises(InputError, match="no rows"):
        experiment.run()
    assert experiment.missing == 12


@pytest.mark.long
def test_objects_that_have_no_stable_content_are_no_data(build: Any) -> None:
    with pytest.raises(InputError, match="a path, a lab, a log"):
        build(data={"object": object()}).run()
    frame = pl.DataFrame({"a": [1]})
    for value in (
        frame,
        memlab.Slates.from_wide(
            pl.read_parquet(memlab.examples.LOG),
            decision="query_id",
            item="memory_id",
            shown="rank",
            reward="clicked",
            propensity="p",
            limit=3,
        ),
    ):
        experiment = build(data={"value": value}, measure=draw_seed, metrics="gain")
        experiment.run()
        assert build(data={"value": value}, measure=draw_seed, metrics="gain").missing == 0
        shutil.rmtree(experiment.folder)


def scale_seed(factor: Any) -> Any:
    """Return a measure that depends on a variable of this function."""

    def measure(pack: Pack, data: Any, seed: int) -> dict[str, float]:
        """Return the seed, scaled."""
        return {"gain": seed * float(factor)}

    return measure


def add_constant(pack: Pack, data: Any, seed: int, constant: Any = 1) -> dict[str, float]:
    """Return the seed and a constant."""
    return {"gain": seed + float(constant)}


class Offset:
    """An object whose method measures."""

    def measure(self, pack: Pack, data: Any, seed: int) -> dict[str, float]:
        """Return the seed."""
        return {"gain": float(seed)}


@pytest.mark.long
def test_variables_and_defaults_of_a_measure_are_part_of_the_hash(
    build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(measure=scale_seed(2), metrics="gain").run()
    assert build(measure=scale_seed(2), metrics="gain").missing == 0
    assert build(measure=scale_seed(3), metrics="gain").missing == 12
    build(measure=add_constant, metrics="gain").run()
    monkeypatch.setattr(add_constant, "__defaults__", (2,))
    assert build(measure=add_constant, metrics="gain").missing == 12
    for measure in (scale_seed({1}), Offset().measure):
        with pytest.raises(InputError, match="an enclosing function are JSON values"):
            build(measure=measure, metrics="gain")


def test_data_without_a_result_may_change(tmp_path: Path) -> None:
    with memlab.open() as lab:
        lab.remember(["The spare key hangs in the boiler room.", "Rent is due on the third."])
        experiment = Experiment("own", "bm25", {"lab": lab}, folder=tmp_path / "runs")
        with pytest.raises(DatasetError, match="has no questions"):
            experiment.run()
        lab.questions.add("Where is the key?", [1])
        assert experiment.run().missing == 0


@pytest.mark.long
def test_results_are_of_the_data_that_were_passed(build: Any, tmp_path: Path) -> None:
    build().run()
    assert build(data={"easy": {"noise": 5}, "hard": {"noise": 2}}).missing == 6
    copy = Path(shutil.copy(TALK, tmp_path / "talk.json"))
    Experiment("words", "bm25", copy, folder=tmp_path / "runs").run()
    copy.write_text(copy.read_text() + "\n")
    assert Experiment("words", "bm25", copy, folder=tmp_path / "runs").missing == 1
    copy.unlink()
    assert Experiment("words", "bm25", copy, folder=tmp_path / "runs").missing == 0


@pytest.mark.long
def test_two_runs_keep_the_digests_of_each_other(
    build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = build(data={"other": {"noise": 4}})
    digest = experiments.digest_data

    def run_between(value: Any, embedder: Any = None) -> str:
        """Run another experiment while the first one reads its data."""
        monkeypatch.setattr(experiments, "digest_data", digest)
        other.run()
        return digest(value, embedder)

    monkeypatch.setattr(experiments, "digest_data", run_between)
    experiment = build().run()
    recorded = json.loads((experiment.folder / "experiment.json").read_text())["data"]
    assert sorted(recorded) == ["easy", "hard", "other"]


@pytest.mark.long
def test_names_with_dollar_signs_are_no_formulas(build: Any, tmp_path: Path) -> None:
    experiment = build(policies={"a$b^_$": "bm25"}, metrics="gain $_$", measure=price_seed).run()
    page = experiment.report(tmp_path / "prices.html").read_text()
    assert "a$b^_$" in page


def price_seed(pack: Pack, data: Any, seed: int) -> dict[str, float]:
    """Return two metrics, one with the name of the other and an ending."""
    return {"gain $_$": float(seed), "gain $_$/b": 0.0}


def ask_of_pack(pack: Pack, data: Any, seed: int) -> pl.DataFrame:
    """Return questions that depend on the pack."""
    return pl.DataFrame({"question": [pack.name], "gain": [1.0]})


@pytest.mark.long
def test_policies_without_a_common_question_are_not_compared(build: Any) -> None:
    experiment = build(measure=ask_of_pack, metrics="gain").run()
    with pytest.raises(InputError, match="no question in common"):
        experiment.compare("bm25", "dense")
    with pytest.raises(InputError, match=r"from 0\.5 to 0\.9999"):
        experiment.compare("bm25", "dense", level=1)


def test_frames_differ_by_numbers_that_json_does_not_have() -> None:
    digests = [
        experiments.digest_data(pl.DataFrame({"a": [value]}, schema={"a": dtype}))
        for value, dtype in (
            *(
                (value, pl.Float64)
                for value in (None, np.nan, np.inf, -np.inf, 0.1, np.nextafter(0.1, 1))
            ),
            *((value, pl.Binary) for value in (None, b"a", b"\xff")),
        )
    ]
    assert len(set(digests)) == len(digests)
    with pytest.raises(InputError, match="a frame"):
        experiments.digest_data(pl.DataFrame({"a": pl.Series([object()], dtype=pl.Object)}))


def test_no_data_is_said_as_passed(build: Any) -> None:
    with pytest.raises(InputError, match=r"not \[\]"):
        build(data=[])


@pytest.mark.long
def test_a_metric_may_have_an_ending(build: Any) -> None:
    metrics = ["gain $_$", "gain $_$/b"]
    frame = build(metrics=metrics, measure=price_seed).run().compare("bm25", "dense").frame
    assert frame["difference"].to_list() == [0.0] * 6


@pytest.mark.long
def test_missing_cells_are_told(build: Any) -> None:
    build(seeds=[1]).run()
    experiment = build()
    assert experiment.missing == 6
    assert "6 cells without a result" in repr(experiment)
    with pytest.raises(InputError, match="have no result"):
        experiment.compare("memlab", "bm25")
    with pytest.raises(UnknownName):
        experiment.compare("memlab", "bm26")
    assert "minus" not in experiment.report(experiment.folder / "part.html").read_text()


@pytest.mark.long
def test_a_damaged_declaration_is_refused(build: Any) -> None:
    experiment = build().run()
    (experiment.folder / "experiment.json").write_text('{"data": 3}')
    with pytest.raises(DatasetError, match="Delete it, and run again"):
        build().run()


@pytest.mark.long
def test_a_benchmark_keeps_the_result_of_each_pack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversations = read_locomo(TALK)
    first = memlab.bench_conversations(conversations, packs="memlab", folder=tmp_path / "b")
    # Without recalls, only stored results can be returned.
    monkeypatch.setattr("memlab.science.bench._bench._recall_questions", None)
    again = memlab.bench_conversations(conversations, packs="memlab", folder=tmp_path / "b")
    assert again.to_dict() == first.to_dict()
    assert again.systems == first.systems
    with pytest.raises(TypeError):
        memlab.bench_conversations(conversations, packs="actr", folder=tmp_path / "b")


@pytest.mark.long
def test_a_search_of_parameters_continues_and_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = memlab.Slates.from_wide(
        pl.read_parquet(memlab.examples.LOG),
        decision="query_id",
        item="memory_id",
        shown="rank",
        reward="clicked",
        propensity="p",
        limit=3,
        scores=["old_score", "new_score"],
    )
    policy = "(fn [old_score new_score] (+ new_score (* (param :w 0.5 :low 0 :high 1) old_score)))"
    tune = partial(memlab.tune, log, policy, missing="zero", metric="order", budget=20, folds=3)
    plain = tune()
    search = memlab.science.evaluation._tune._evolve
    done = 0

    def stop_later(*arguments: Any) -> Any:
        nonlocal done
        done += 1
        if done == 3:
            raise KeyboardInterrupt
        return search(*arguments)

    monkeypatch.setattr("memlab.science.evaluation._tune._evolve", stop_later)
    with pytest.raises(KeyboardInterrupt):
        tune(folder=tmp_path)
    assert len(list(read_cells(tmp_path))) == 2
    stored = tune(folder=tmp_path)
    assert done == 5
    assert tune(folder=tmp_path).trials.equals(stored.trials)
    assert done == 5
    assert stored.params == plain.params
    assert stored.trials.equals(plain.trials)
    assert stored.gain == plain.gain
    tune(folder=tmp_path, seed=1)
    assert done == 9

"""Short runs of the experiments that compare: a few turns, whatever peers are installed, through the command."""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from memlab.io.ingest import digest, read_locomo
from memlab.ui.demo import CONVERSATION

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
recombined: Any = importlib.import_module("recombined")
measuring: Any = importlib.import_module("measuring")
results: Any = importlib.import_module("results")
bare_indexes: Any = importlib.import_module("bare_indexes")


def run(script: str, figures: Path, *arguments: str) -> dict[str, Any]:
    command = [
        sys.executable,
        str(EXPERIMENTS / script),
        str(CONVERSATION),
        "--figures",
        str(figures),
        "--json",
        *arguments,
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    data: dict[str, Any] = json.loads(ran.stdout)
    return data


@pytest.fixture(scope="module")
def turns() -> Any:
    return recombined.Recombined(read_locomo(CONVERSATION), seed=3)


@pytest.mark.slow
def test_side_by_side_measures_memlab_and_names_who_is_not_installed(tmp_path: Path) -> None:
    (told,) = run(
        "side_by_side.py",
        tmp_path,
        "--runs",
        "1",
        "--questions",
        "5",
        "--systems",
        "memlab",
        "mem0",
    )
    names = [row["system"] for row in told["rows"]]
    assert names[0] == "memlab"
    assert set(names) | set(told["left_out"]) == {"memlab", "mem0"}
    row = told["rows"][0]
    assert 0 < row["recall"] <= 1
    assert row["p50"] <= row["p95"]
    assert row["rss"] >= row["imports"] > 0
    assert (tmp_path / "side-by-side.svg").read_text(encoding="utf-8").count("<svg") == 1


@pytest.mark.long
def test_the_template_writes_a_table_a_page_and_what_went_in(tmp_path: Path) -> None:
    command = [sys.executable, str(EXPERIMENTS / "template.py"), "--weights", "0", "1"]
    ended = subprocess.run(
        [*command, "--results", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "weight-1 minus weight-0" in ended.stdout
    folder = tmp_path / "template"
    table = pl.read_csv(folder / "table.csv").filter(metric="recall@10")
    assert table["policy"].to_list() == ["weight-0", "weight-1"]
    assert table["value"].is_between(0.1, 1.0).all()
    assert "<svg" in (folder / "report.html").read_text(encoding="utf-8")
    declared = json.loads((folder / "experiment.json").read_text(encoding="utf-8"))
    digest = hashlib.sha256(CONVERSATION.read_bytes()).hexdigest()
    assert declared["data"] == {CONVERSATION.stem: digest}
    assert list(declared["policies"]) == ["weight-0", "weight-1"]
    assert {"metrics", "seeds", "versions", "embedder"} <= set(declared)
    assert len(list(folder.glob("cells/*/cell.json"))) == 2


@pytest.mark.long
def test_the_record_of_a_run_names_seeds_and_digests_of_folders(tmp_path: Path) -> None:
    data = tmp_path / "chats"
    data.mkdir()
    (data / "a.json").write_text("[]", encoding="utf-8")
    arguments = argparse.Namespace(results=tmp_path / "out", seed=7, runs=2)
    first = digest(data)
    study = results.Results("small", arguments, data=[data, None])
    study.save([{"x": 1, "y": 2.0, "parts": [1, 2]}, {"x": 2, "y": None, "parts": []}])
    run = json.loads((tmp_path / "out/small/run.json").read_text(encoding="utf-8"))
    assert run["seeds"] == {"seed": 7}
    assert run["data"] == {"chats": first}
    (data / "b.json").write_text("[]", encoding="utf-8")
    assert digest(data) != first


@pytest.mark.long
@pytest.mark.parametrize("name", ["plot_dots", "plot_bars", "plot_lines"])
def test_a_figure_has_the_same_bytes_for_the_same_rows(name: str, tmp_path: Path) -> None:
    rows = [
        {"pack": "a", "set": "one", "x": 1, "value": 0.4, "low": 0.3, "high": 0.5},
        {"pack": "b", "set": "two", "x": 2, "value": None, "low": None, "high": None},
    ]
    options = {
        "plot_dots": {
            "label": "pack",
            "value": "value",
            "group": "set",
            "interval": ("low", "high"),
        },
        "plot_bars": {"label": "pack", "value": "value"},
        "plot_lines": {"x": "x", "y": "value", "group": "set"},
    }[name]
    study = results.Results("small", argparse.Namespace(results=tmp_path))
    draw = getattr(results, name)(rows, **options)
    first = study.write_figure(draw).read_bytes()
    assert study.write_figure(draw).read_bytes() == first


def test_every_script_is_listed_in_the_readme() -> None:
    text = (EXPERIMENTS / "README.md").read_text(encoding="utf-8")
    missing = [
        path.name
        for path in sorted(EXPERIMENTS.glob("*.py"))
        if path.name not in text and f"experiments.{path.stem}" not in text
    ]
    assert missing == []


SMALL = ("--sizes", "60", "--questions", "5", "--singles", "3", "--indexes", "numpy exact")


@pytest.mark.slow
def test_scale_measures_a_size(tmp_path: Path) -> None:
    result = run("scale.py", tmp_path, *SMALL)
    assert [(row["size"], row["system"]) for row in result["rows"]] == [
        (60, "memlab"),
        (60, "numpy exact"),
    ]
    assert all(row["recall"] == 1 for row in result["rows"]), "exact search finds all"
    assert (tmp_path / "scale.svg").read_text(encoding="utf-8").count("<svg") == 1


@pytest.mark.slow
def test_scale_reuses_the_labs_it_built(tmp_path: Path) -> None:
    first, second = (
        run("scale.py", tmp_path, *SMALL, "--folder", str(tmp_path / "kept")) for _ in range(2)
    )
    assert [row["ingest"] for row in first["rows"]] == [row["ingest"] for row in second["rows"]]
    assert all(row["kept"] for row in second["rows"])


@pytest.mark.long
def test_a_longer_corpus_begins_with_the_shorter(turns: Any) -> None:
    assert list(turns.rows(75)) == list(turns.rows(200))[:75]


@pytest.mark.long
def test_another_seed_gives_other_turns(turns: Any) -> None:
    other = recombined.Recombined(read_locomo(CONVERSATION), seed=4)
    assert [row["text"] for row in turns.rows(50)] != [row["text"] for row in other.rows(50)]


def test_a_turn_is_made_of_real_words_and_has_no_mark_left(turns: Any) -> None:
    rows = list(turns.rows(300))
    assert all(row["text"] and not {"\0", "\1"} & set(row["text"]) for row in rows)
    real = {
        word
        for held in read_locomo(CONVERSATION)
        for turn in held.conversation.turns
        for word in turn.text.split()
    }
    words = [word for row in rows for word in row["text"].split()]
    assert sum(word in real for word in words) > 0.8 * len(words)


@pytest.mark.long
def test_questions_name_someone_who_speaks(turns: Any) -> None:
    rows = list(turns.rows(1000))
    projects = {row["project"] for row in rows}
    asked = turns.questions(20, rows=1000)
    assert {project for _, project in asked} <= projects
    assert not any("\1" in text for text, _ in asked)


@pytest.mark.parametrize(
    "name", [index.name for index in bare_indexes.INDEXES if not index.lexical]
)
def test_a_bare_index_finds_a_vector_itself(name: str, tmp_path: Path) -> None:
    [index] = [index for index in bare_indexes.INDEXES if index.name == name]
    if (reason := measuring.missing([index.needs])) is not None:
        pytest.skip(reason)
    vectors = np.random.default_rng(5).normal(size=(50, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index.build(vectors, tmp_path / "index")
    find = index.serve(tmp_path / "index", 16)(index.efforts[-1])
    assert all(row in list(find(vectors[row])) for row in range(0, 50, 7))


@pytest.mark.long
def test_a_child_that_fails_says_why(tmp_path: Path) -> None:
    script = tmp_path / "failing.py"
    script.write_text(
        f"import sys\nsys.path.insert(0, {str(EXPERIMENTS)!r})\nfrom measuring import serve_child\n"
        "def broken(what):\n    raise ValueError(f'no {what}')\nserve_child((broken,))\n",
        encoding="utf-8",
    )
    with pytest.raises(measuring.Failed, match="broken: ValueError: no bread"):
        measuring.run_child(str(script), "broken", {"what": "bread"})


@pytest.mark.long
def test_a_child_has_no_network(tmp_path: Path) -> None:
    script = tmp_path / "calling.py"
    script.write_text(
        f"import socket, sys\nsys.path.insert(0, {str(EXPERIMENTS)!r})\nfrom measuring import serve_child\n"
        "def calling():\n    socket.create_connection(('127.0.0.1', 9))\n    return {}\nserve_child((calling,))\n",
        encoding="utf-8",
    )
    with pytest.raises(measuring.Failed, match="no network"):
        measuring.run_child(str(script), "calling", {})

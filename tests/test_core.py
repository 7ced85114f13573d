"""memlab-core runs without the packages of its extras: each step in a process that cannot import them."""

import json
import subprocess
import sys

import pytest

import memlab

pytestmark = pytest.mark.long

BLOCKED = {
    *(
        "IPython",
        "annoy",
        "anywidget",
        "comm",
        "huggingface_hub",
        "ipywidgets",
        "joblib",
        "jupyterlab",
        "matplotlib",
    ),
    *(
        "mcp",
        "mcp_types",
        "model2vec",
        "pydantic",
        "safetensors",
        "scipy",
        "sklearn",
        "tokenizers",
        "tornado",
    ),
    "traitlets",
}
PROLOGUE = f"""
import sys, warnings
warnings.simplefilter("error")
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Refuse())
import memlab
from memlab.errors import MissingExtra
"""


def run(program, *arguments, folder):
    """Run a program in a process without the blocked packages, and return what it prints."""
    done = start(program, *arguments, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def start(program, *arguments, folder):
    """Run a program in a process without the blocked packages."""
    return subprocess.run(
        [sys.executable, "-c", PROLOGUE + program, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )


DAILY = """
from datetime import UTC, datetime
clock = memlab.ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
with memlab.open("agent.memlab", clock=clock) as lab:
    lab.remember(["The user prefers tabs", "Noor monitors rivers", "Ann lives in Lisbon"])
    lab.remember("Ann moved to Porto")
    hits = lab.recall("where does Ann live?")
    assert hits[0].text.startswith("Ann"), hits
    assert str(hits[0].explain())
    assert "Porto" in str(lab.context("where does Ann live?"))
    lab.facts.add("Ada", "lives-in", object="Oslo")
    assert lab.facts.frame(subject="ada")["object"].to_list() == ["Oslo"]
    extracted = lab.agents.extract("My name is Ben and I live in Oslo.")
    assert str(extracted)
    lab.challenge("companion", reason="which recalls better?")
    for number in range(40):
        clock.advance(hours=5)
        for hit in lab.recall(f"question {number} about Ann, rivers and tabs"):
            lab.feedback(hit, "success" if hit.id % 2 else "fail")
    evaluation = memlab.evaluate(lab.slates(), ["memlab", "companion"], missing="zero")
    assert evaluation.frame.height >= 2
    assert str(lab.verdict())
    assert str(memlab.plan(lab.slates(), ["companion"]))
    assert lab.io.check().sound
    lab.io.backup("backup")
    lab.forget(1)
    try:
        evaluation.report("report.html")
    except MissingExtra as error:
        print(error)
with memlab.open("agent.memlab", read_only=True) as again:
    assert again.recall("tabs")
"""


def test_daily_work_evaluation_and_backup(tmp_path):
    printed = run(DAILY, folder=tmp_path)
    assert printed.strip() == (
        "A figure needs matplotlib. Install it with: pip install 'memlab-core[plots]'"
    )
    assert not (tmp_path / "report.html").exists()


MAINTAIN = """
from datetime import UTC, datetime
for pack in sys.argv[1:]:
    clock = memlab.ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    with memlab.open(pack=pack, clock=clock) as lab:
        for day in range(45):
            clock.advance(days=1)
            lab.remember([f"Day {day}: the user prefers {thing} in project {day % 5}" for thing in ("tea", "tabs")])
            for hit in lab.recall("what does the user prefer?")[:2]:
                lab.feedback(hit, "success")
        print(pack, lab.upkeep.maintain() is not None)
"""


def test_maintenance_under_each_pack(tmp_path):
    packs = memlab.packs()
    assert run(MAINTAIN, *packs, folder=tmp_path).splitlines() == [f"{pack} True" for pack in packs]


def test_the_command_line(tmp_path):
    program = "from memlab.ui.cli import main; main(sys.argv[1:])"
    assert "recall" in run(program, "--help", folder=tmp_path)
    run(program, "remember", "agent.memlab", "The user prefers tabs", folder=tmp_path)
    shown = json.loads(run(program, "recall", "agent.memlab", "tabs", "--json", folder=tmp_path))
    assert "The user prefers tabs" in json.dumps(shown)
    refused = start(program, "view", "agent.memlab", folder=tmp_path)
    assert refused.returncode == 1
    assert "memlab view needs" in refused.stderr
    assert "pip install 'memlab-core[widgets]'" in refused.stderr
    assert "Traceback" not in refused.stderr


CALLS = {
    "annoy": "print(wide().failure)",
    "mcp": "from memlab.io.serving import lab_server; lab_server(lab)",
    "mcp-client": "from memlab.io.serving import connect; connect('http://127.0.0.1:1', token='x' * 16)",
    "models": "memlab.open(embedder='minishlab/potion-base-8M')",
    "models-folder": "memlab.open(embedder='.')",
    "plots-demo": "from memlab.ui.demo import run_demo; run_demo()",
    "plots": "from memlab.subjects.drawing import draw_figure; draw_figure(print, width=1, height=1)",
    "science": "lab.graph.clusters.find()",
    "science-tune": "tune()",
    "widgets": "memlab.widgets.RecallExplorer(lab)",
    "workbench": "memlab.load_ipython_extension(None)",
}
SETTING = """
import numpy as np
from memlab.kernel.index import Neighbours, Vectors
def wide():
    vectors = Vectors(8, exact_up_to=1_000)
    vectors.append(np.random.default_rng(0).integers(-127, 128, (4_096, 8), dtype=np.int8))
    neighbours = Neighbours(None, vectors)
    neighbours.refresh()
    return neighbours
def tune():
    import polars as pl
    slates = memlab.Slates.from_wide(
        pl.read_parquet(memlab.examples.LOG), decision="query_id", item="memory_id", shown="rank", reward="clicked",
        propensity="p", limit=3, scores=["old_score", "new_score"],
    )
    policy = "(fn [old_score new_score] (+ new_score (* (param :w 0.5 :low 0 :high 1) old_score)))"
    memlab.tune(slates, policy, metric="value", missing="zero", budget=20, folds=2)
memlab.open("x.memlab").close()
lab = memlab.open()
names, things = ("Ann", "Ben", "Noor", "Ida"), ("tea", "tabs", "rain")
lab.remember([f"{name} prefers {thing}" for name in names for thing in things])
for number in range(30):
    lab.feedback(lab.recall(f"what does Ann prefer, {number}?")[0], "success")
for name, call in CALLS.items():
    try:
        exec(call)
    except MissingExtra as error:
        print(name, error)
"""


def test_each_missing_extra_answers_with_the_line_that_installs_it(tmp_path):
    printed = run(f"CALLS = {CALLS!r}\n{SETTING}", folder=tmp_path)
    for name in CALLS:
        extra = name.partition("-")[0]
        lines = [line for line in printed.splitlines() if line.startswith(f"{name} ")]
        lines = lines or [line for line in printed.splitlines() if line.startswith("An index")]
        assert len(lines) == 1, (name, printed)
        assert lines[0].endswith(f"Install it with: pip install 'memlab-core[{extra}]'"), lines


def test_the_first_answer_loads_nothing_of_the_extras_and_few_modules(tmp_path):
    program = f"""
lab = memlab.open()
lab.remember(["The user prefers tabs", "Deploys go out on Tuesdays", "Noor monitors rivers"])
assert lab.recall("how should I indent?")
print(*({BLOCKED!r} | {{"jinja2", "tqdm", "hy", "click"}}) & {{name.partition(".")[0] for name in sys.modules}})
"""
    assert run(program, folder=tmp_path).split() == []

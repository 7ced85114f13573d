"""No text of a memory can control the reader's terminal: every command, every representation."""

import ast
import json
import re
from pathlib import Path

import click
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memlab
from memlab.kernel.base.display import Report, Table
from memlab.kernel.base.printable import json_safe, printable
from memlab.subjects.io.keeping import Thinning
from memlab.ui.cli import main

EVIL = "\x1b]0;owned\x07 \x9b31m \x08\x08 \u202egnp.exe\u2066 \x7f"
ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.mark.long
@given(st.text())
def test_a_printable_text_has_no_control_character_and_json_keeps_its_value(text):
    assert not ACTIVE.search(printable(text))
    assert printable(printable(text)) == printable(text)
    result = json_safe(json.dumps(text, ensure_ascii=False))
    assert not ACTIVE.search(result)
    assert json.loads(result) == text


@pytest.mark.parametrize("text", ["two\nlines\tand a tab", "שלום \u200f", "👩\u200d🔬 naïve"])
def test_harmless_characters_stay(text):
    assert printable(text) == text


def fill(lab):
    """Fill every field that a caller may set with hostile text."""
    words = {
        "speaker": EVIL,
        "title": EVIL,
        "summary": EVIL,
        "tags": [f"tag {EVIL}"],
        "context": EVIL,
    }
    lab.remember(
        f"first {EVIL}",
        **words,
        project=f"project {EVIL}",
        session=f"session {EVIL}",
        creator=f"who {EVIL}",
    )
    lab.remember(f"second {EVIL}", triggers=[EVIL], reason=EVIL)
    lab.facts.add(f"Ada {EVIL}", "likes", f"tea {EVIL}")
    lab.facts.entities.declare(f"Ada {EVIL}", type="person", aliases=[f"Countess {EVIL}"])
    lab.graph.link(1, 2)
    return lab


# -- commands -------------------------------------------------------------------------------------------------------

LAB = "evil.memlab"
CALLS = {
    "remember": [LAB, f"again {EVIL}"],
    "recall": [LAB, f"first {EVIL}", "--explain"],
    "context": [LAB, f"first {EVIL}", "--session", f"now {EVIL}", "--file", EVIL],
    "agent metrics": [LAB],
    "feedback": [LAB, 1, "success"],
    "policy challenge": [LAB, "cascade", "--reason", EVIL],
    "policy guard": [LAB, "companion", "--plan", "--reason", EVIL],
    "pack publish": ["actr", "--licence", EVIL],
    "pack pull": ["actr.mempack", "--lab", LAB, "--reason", EVIL],
    "policy verdict": [LAB],
    "policy plan": [LAB, "companion"],
    "policy adapt": [LAB, "--missing", "zero"],
    "bench lab": [LAB, "wanted.jsonl", "--packs", "memlab"],
    "bench failures": [LAB, "--labels", "labels.csv"],
    "bench wanted": [LAB, "--packs", "memlab"],
    "audit-log": [LAB],
    "policy score": [LAB, "companion", "--questions", "labels.csv"],
    "agent attribute": [LAB, "--recall", 1, "--answer", "answer.txt"],
    "agent extract": [LAB, "said.txt", "--commit"],
    "show": [LAB, 1],
    "upkeep stats": [LAB],
    "graph trace": [LAB, 1],
    "graph similar": [LAB, 1],
    "policy use": [LAB, "cascade", "--reason", EVIL],
    "upkeep maintain": [LAB],
    "upkeep consolidate": [LAB, "--dry-run"],
    "upkeep export": [LAB, "out.md", "--overwrite"],
    "load": [LAB, "out.md"],
    "upkeep move": [LAB, "moved.memlab"],
    "upkeep join": [LAB, "moved.memlab"],
    "upkeep mirror": [LAB, "mirrored"],
    "upkeep backup": [LAB],
    "evaluate": [LAB, "--policies", "default"],
    "evolve": [LAB, "--budget", 4, "--missing", "zero"],
    "edit": [LAB, 2, "--set", f"title=more {EVIL}"],
    "forget": [LAB, 2],
    "restore": [LAB, 2],
    "agent switch-off": [LAB, "--project", f"p {EVIL}", "--reason", f"why {EVIL}"],
    "agent switch-on": [LAB],
    "upkeep check": [LAB],
    "purge": [LAB, 2, "--reason", EVIL, "--yes"],
    "agent run": [LAB, "evil.hy"],
    "policy explore": [LAB, "off"],
    "policy history": [LAB],
    "policy attribution": [LAB],
    "policy install": [LAB, "recall-score", "evil.hy"],
    "policy rollback": [LAB, "recall-score"],
    "policy pin": [LAB, "recall-score", "--reason", EVIL],
    "policy unpin": [LAB, "recall-score", "--reason", EVIL],
    "policy watch": [LAB, "evil.hy", "--seconds", 0],
    "policy check": ["evil.hy", "--lab", LAB],
    "policy show": ["evil.hy", "--color"],
    "policy hash": ["evil.hy"],
    "policy diff": ["evil.hy", "default", "--color"],
    "policy explain": ["evil.hy", "recency=1"],
    "policy packs": [],
    "upkeep restore": [LAB],
    "view": [LAB, "--bundle", "page"],
    "agent scan": [LAB, "code", "--project", f"code {EVIL}"],
    "agent modules": [LAB],
    "agent touch": [LAB, "x.py", EVIL, "--session", f"now {EVIL}", "--project", f"code {EVIL}"],
    "graph link": [LAB, 1, 2, "--relation", "depends-on"],
    "graph tag": [LAB, 1, "--tag", f"tag {EVIL}", "--describe", f"for {EVIL}"],
    "upkeep thin": [LAB],
    "upkeep du": [LAB],
}
AS_JSON = (
    "recall",
    "context",
    "agent metrics",
    "show",
    "graph trace",
    "graph similar",
    "agent touch",
    "graph link",
    "graph tag",
    "upkeep thin",
    "upkeep du",
)
BESIDE = {
    "demo",
    "notebook",
    "repl",
    "try",
    "bench locomo",
    "bench beam",
    "bench longmemeval",
    "bench lmeb",
    "bench reviews",
    "experiment new",
    "experiment run",
    "experiment compare",
    "experiment report",
    "serve",
    "hook run",
    "hook install",
    "upkeep encrypt",
    "upkeep decrypt",
    "upkeep rekey",
}
"""They show no lab of the caller's, or show it to programs: tests/serving; or need the extra secure: test_encryption."""


def commands(group=main, path=""):
    for name, command in group.commands.items():
        yield from (
            commands(command, f"{path}{name} ")
            if isinstance(command, click.Group)
            else [f"{path}{name}"]
        )


@pytest.mark.long
def test_no_command_prints_what_steers_a_terminal(run, tmp_path):
    assert set(commands()) == CALLS.keys() | BESIDE
    fill(memlab.open(tmp_path / LAB)).close()
    (tmp_path / "labels.csv").write_text(f"question,memory_id\nfirst {EVIL},1\n", encoding="utf-8")
    wanted = {"question": f"first {EVIL}", "wanted": [1], "category": f"kind {EVIL}"}
    (tmp_path / "wanted.jsonl").write_text(json.dumps(wanted), encoding="utf-8")
    (tmp_path / "answer.txt").write_text(f"The first one {EVIL} says so.", encoding="utf-8")
    (tmp_path / "said.txt").write_text(f"I live in Rome {EVIL} and I like tea.", encoding="utf-8")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "x.py").write_text(f'"""What {EVIL} is."""', encoding="utf-8")
    (tmp_path / "evil.hy").write_text(
        f'(remember "told {EVIL}" "no kind" {EVIL})', encoding="utf-8"
    )
    text = ""
    forgetting = [
        ("forget", [LAB, "--how", "quarantine", "--creator", f"who {EVIL}"]),
        ("restore", [LAB, "--quarantine", 1]),
        ("forget", [LAB, 2, "--how", "deprecate", "--reason", EVIL]),
        ("forget", [LAB, 2, "--how", "delete", "--project", f"nowhere {EVIL}"]),
    ]
    calls = [
        *CALLS.items(),
        *forgetting,
        ("show", [LAB]),
        ("graph tag", [LAB]),
        ("graph link", [LAB, 1, 2, "--relation", EVIL]),
    ]
    for name, words in calls:
        for more in ([], ["--json"])[: 1 + (name in AS_JSON)]:
            done = run(*name.split(), *words, *more)
            assert done.exit_code in (0, 1, 2), (name, done.output, done.exception)
            shown = (
                re.sub("\x1b\\[[0-9;]*m", "", done.output)
                if "--color" in words and not more
                else done.output
            )
            assert not ACTIVE.search(shown), (name, more)
            text += "" if more else done.output
    assert text.count("owned") > 10


def test_only_one_place_of_the_command_line_prints():
    folder = Path(memlab.__file__).parent / "ui" / "cli"
    assert [file.name for file in folder.glob("*.py") if "echo(" in file.read_text()] == [
        "_base.py"
    ]


# -- representations ------------------------------------------------------------------------------------------------

OF_NUMBERS = {
    *(
        "Node",
        "Called",
        "Within",
        "Gate",
        "IndexReport",
        "Remembered",
        "Clusters",
        "Clustered",
        "Version",
    ),
    *("Corrected", "DemoResult", "AsyncLab", "Listener", "Path"),
}
"""They show numbers, words of closed vocabularies and paths that the caller gave; ``Hit`` quotes its text."""

RENDERED = {"Report", "Stats"}
"""Their text is that of ``render_text``, which makes it printable."""


def is_made_printable(value):
    """Return whether a returned expression is a call of ``printable``, or a text of the source that needs none."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return not ACTIVE.search(value.value)
    return getattr(getattr(value, "func", None), "id", "") == "printable"


@pytest.mark.long
def test_every_class_that_says_how_it_is_shown_makes_it_printable():
    raw = set()
    for file in Path(memlab.__file__).parent.rglob("*.py"):
        source = file.read_text(encoding="utf-8")
        for found in ast.walk(ast.parse(source)) if re.search("def __(repr|str)__", source) else ():
            for method in found.body if isinstance(found, ast.ClassDef) else ():
                if isinstance(method, ast.FunctionDef) and method.name in ("__repr__", "__str__"):
                    values = [
                        node.value for node in ast.walk(method) if isinstance(node, ast.Return)
                    ]
                    if not all(map(is_made_printable, values)):
                        raw.add(found.name)
    assert raw == OF_NUMBERS | RENDERED | {"Hit"}


class Told(Report):
    def __init__(self, *parts):
        self.parts = parts

    def _display(self):
        return self.parts


@pytest.mark.parametrize("width", [None, 40])
@pytest.mark.parametrize(
    "part",
    [EVIL, [EVIL, f"again {EVIL}"], Table(EVIL, ["what", EVIL], [[EVIL, 1], ["b", EVIL]], [EVIL])],
    ids=["text", "list", "table"],
)
def test_a_report_is_shown_without_control_characters(part, width):
    report = Told("a finding", part)
    for told in (repr(report), str(report), report.text(width)):
        assert not ACTIVE.search(told)
        assert "owned" in told


@pytest.mark.long
def test_results_of_the_verbs_are_shown_without_control_characters(lab, tmp_path):
    fill(lab)
    hits, about = lab.recall(f"first {EVIL}", limit=3), f"Ada {EVIL}"
    with pytest.raises(memlab.InputError) as refused:
        lab.forget(project=f"project {EVIL} 2", how="delete")
    shown = [
        *(
            lab,
            lab[1],
            lab.memories.rows(),
            hits,
            hits[0],
            hits[0].explain(),
            hits.slate,
            lab.facts.narrative(about),
            lab.facts.profile(),
            lab.context(about),
            lab.agents.metrics(),
        ),
        *(
            lab.graph.trace(1),
            lab.graph.stats(progress=False),
            lab.policies,
            lab.slates(),
            refused.value,
            lab.forget(2, how="deprecate", reason=EVIL),
        ),
        *(
            lab.remember([f"third {EVIL}"]),
            lab.upkeep.maintain(progress=False),
            lab.feedback(1, "success"),
        ),
        *(
            lab.agents.observe(f"hear {EVIL}"),
            lab.io.mirror(tmp_path / "copy"),
            lab.upkeep.operations.proposals(1),
            lab.upkeep.consolidation.run(dry_run=True),
        ),
        *(
            lab.upkeep.usage(),
            lab.upkeep.thin(full_days=1, thin_days=2),
            Thinning(
                pl.DataFrame({"act": ["thin"], "recalls": [3], "bytes": [9]}), (f"pack {EVIL}",)
            ),
        ),
        *(lab.upkeep.operations.run('(recall "first" 2)'), lab.purge(2, reason=EVIL)),
    ]
    for item in shown:
        for told in (repr(item), str(item)):
            assert not ACTIVE.search(told), type(item)
    assert "owned" in str(lab.facts.narrative(about))
    assert not ACTIVE.search(lab.facts.narrative(about).text)
    assert isinstance(hits.slate.frame, pl.DataFrame)

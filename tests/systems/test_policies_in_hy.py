"""The programs of the how-to about Hy run as written, and ``memlab repl`` opens Hy on a lab."""

import re
import sys
import types
from pathlib import Path

import hy
import pytest
from click.testing import CliRunner

import memlab
from memlab.ui.cli import main

pytestmark = pytest.mark.long

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "policies-in-hy.md"
BLOCKS = re.findall(r"```hy\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_programs_of_the_page_run(capsys, monkeypatch):
    module = types.ModuleType("policies_in_hy")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert len(BLOCKS) == 14
    for block in BLOCKS:
        hy.eval(hy.read_many(block), locals=module.__dict__, module=module)
    printed = capsys.readouterr().out
    for words in (
        "(fn [recency] (+ (inherited) (* 0.05 recency)))",
        "best weight:",
        "2 (fn [similarity] (+ (inherited)",
        "[-0.02-]{+0.05+}",
        "(* 0.05 recency)",
        "show-8 8",
        "cosine:",
    ):
        assert words in printed, words
    module.lab.close()


def test_the_first_programs_run(capsys):
    names = {"memlab": memlab, "lab": memlab.open()}
    for block in BLOCKS[1:3]:
        hy.eval(hy.read_many(block), locals=names, module="tests.systems.test_policies_in_hy")
    assert "(* 0.05 recency)" in capsys.readouterr().out
    names["lab"].close()


def repl(*arguments, lines):
    done = CliRunner().invoke(main, ["repl", *map(str, arguments)], input="\n".join(lines) + "\n")
    return done.output


def test_a_repl_has_a_lab(tmp_path):
    memlab.open(tmp_path / "lab").close()
    printed = repl(
        tmp_path / "lab",
        lines=[
            '(lab.remember "The user prefers tabs")',
            "`(fn [similarity] (* ~(+ 1 1) similarity))",
            '(setv version (lab.policies.install "recall-score" `(fn [similarity] (* ~(+ 1 1) similarity))))',
            "version.number",
            '(pl.col "x")',
            "(undefined)",
            "(len lab)",
        ],
    )
    assert "<Memory 1, fact, active: 'The user prefers tabs'>" in printed
    assert "'(fn [similarity] (* 2 similarity))" in printed
    assert "=> 2" in printed
    with memlab.open(tmp_path / "lab") as lab:
        assert lab.policies["recall-score"].source == "(fn [similarity] (* 2 similarity))"
        assert len(lab) == 1


def test_a_repl_may_only_read(tmp_path):
    memlab.open(tmp_path / "lab").close()
    printed = repl(tmp_path / "lab", "--read-only", lines=["(len lab)", '(lab.remember "x")'])
    assert "=> 0" in printed
    assert len(memlab.open(tmp_path / "lab")) == 0
    assert "needs LAB" in repl("--read-only", lines=[])
    assert "in memory" in repl(lines=["(len lab)"])
    repl(tmp_path / "none", lines=["(len lab)"])
    assert not (tmp_path / "none").exists()

"""``%load_ext memlab`` and ``%%hy`` in a real IPython shell."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[InteractiveShell]:
    """A shell with nothing loaded, and no trace of it afterwards."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(sys, "displayhook", sys.displayhook)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    opened = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    opened.run_line_magic("load_ext", "memlab")
    yield opened
    opened.run_line_magic("unload_ext", "memlab")
    opened.restore_sys_module_state()


@pytest.fixture
def hy(shell: InteractiveShell) -> Callable[[str], Any]:
    """Runs a cell of Hy as a notebook does."""

    def run(cell: str) -> Any:
        result = shell.run_cell(f"%%hy\n{cell}")
        result.raise_error()
        return result.result

    return run


def test_a_cell_shares_the_notebooks_names(shell: InteractiveShell, hy: Callable[[str], Any]) -> None:
    shell.run_cell("rate = 0.5").raise_error()
    assert hy("(setv half-life (* 2 rate))\n(+ half-life 1)") == 2.0
    assert shell.run_cell("half_life + 2").result == 3.0


def test_a_policy_is_a_function_of_the_notebook(shell: InteractiveShell, hy: Callable[[str], Any]) -> None:
    hy('(defpolicy recall-score [similarity age-days] "Near and fresh." (/ similarity (half-life-decay age-days 30)))')
    assert shell.run_cell("recall_score(0.5, age_days=30)").result == 1.0
    assert shell.run_cell("recall_score(0.5, 1e9)").result == math.inf
    assert shell.run_cell("recall_score.doc").result == "Near and fresh."
    hy("(defpolicy tuned [x] (* x (param :scale 2)))")
    assert shell.run_cell("tuned.with_params({'scale': 3})(2)").result == 6.0


def test_the_dialects_words_and_hys_own(hy: Callable[[str], Any]) -> None:
    assert hy("((lambda (a b) (/ a b)) 1 0)") == math.inf
    assert hy("(defn many [#* items] (print items) (len items)) (many 1 2)") == 2
    assert hy("((fn [a b] (// a b)) 7 2)") == 3


def test_defn_is_the_dialects_from_a_pack_to_the_end_of_its_cell(hy: Callable[[str], Any]) -> None:
    assert hy("(pack mine) (defn over [a b] (/ a b)) (defpolicy f [a] (over a 0)) (f 1)") == math.inf
    assert hy("(defn many [#* items] (print items) (len items)) (many 1 2 3)") == 3


def test_a_cell_without_a_value_shows_none(hy: Callable[[str], Any]) -> None:
    assert hy("(setv x 1)") is None
    assert hy("; nothing") is None


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("%%hy fast\n1", "takes nothing on its line"),
        ("%%hy\n(defpolicy f [x] (clamp x 1))", "clamp takes 3 arguments, and here are 2"),
        ("%%hy\n(+ 1", "<ipython-input"),
    ],
)
def test_mistakes_are_said_in_a_line(shell: InteractiveShell, cell: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        shell.run_cell(cell).raise_error()


def test_an_error_of_the_code_is_its_own(hy: Callable[[str], Any]) -> None:
    with pytest.raises(ZeroDivisionError):
        hy("(/ 1 0)")


def test_unloading_takes_the_magic_away(shell: InteractiveShell) -> None:
    shell.run_line_magic("unload_ext", "memlab")
    assert "hy" not in shell.magics_manager.magics["cell"]
    shell.run_line_magic("load_ext", "memlab")
    assert "hy" in shell.magics_manager.magics["cell"]


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # the way in which a terminal asks
@pytest.mark.parametrize(
    ("typed", "offered"),
    [('lab.policies["recall', "recall-score"), ('lab.use("comp', "companion"), ('memlab.load_pack("act', "actr")],
)
def test_slots_and_packs_are_completed(shell: InteractiveShell, typed: str, offered: str) -> None:
    shell.run_cell("import memlab\nlab = memlab.open()").raise_error()
    shell.Completer.use_jedi = False
    assert offered in shell.complete("", typed, len(typed))[1]
    shell.run_line_magic("unload_ext", "memlab")
    assert offered not in shell.complete("", typed, len(typed))[1]
    shell.run_line_magic("load_ext", "memlab")


def test_an_error_shows_the_callers_code_and_no_frame_within(
    shell: InteractiveShell, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(InteractiveShell, "_instance", shell)
    shell.run_cell("import memlab\nmemlab.open().recall('tabs', limit=-1)")
    told = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    assert "memlab.open().recall" in told
    assert "limit is a whole number of at least 1, not -1" in told
    assert "memlab/lab.py" not in told

"""``%load_ext memlab`` and its magics in a real IPython shell."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from tests.displays import html_of


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[InteractiveShell]:
    """Yield a shell with nothing loaded, and remove every trace of it afterwards."""
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
    """Return a function that runs a cell of Hy as a notebook does."""

    def run(cell: str) -> Any:
        result = shell.run_cell(f"%%hy\n{cell}")
        result.raise_error()
        return result.result

    return run


@pytest.mark.long
def test_a_cell_shares_the_notebooks_names(
    shell: InteractiveShell, hy: Callable[[str], Any]
) -> None:
    shell.run_cell("rate = 0.5").raise_error()
    assert hy("(setv half-life (* 2 rate))\n(+ half-life 1)") == 2.0
    assert shell.run_cell("half_life + 2").result == 3.0


@pytest.mark.long
def test_a_policy_is_a_function_of_the_notebook(
    shell: InteractiveShell, hy: Callable[[str], Any]
) -> None:
    hy(
        '(defpolicy recall-score [similarity age-days] "Near and fresh." (/ similarity (half-life-decay age-days 30)))'
    )
    assert shell.run_cell("recall_score(0.5, age_days=30)").result == 1.0
    assert shell.run_cell("recall_score(0.5, 1e9)").result == math.inf
    assert shell.run_cell("recall_score.doc").result == "Near and fresh."
    hy("(defpolicy tuned [x] (* x (param :scale 2)))")
    assert shell.run_cell("tuned.with_params({'scale': 3})(2)").result == 6.0


@pytest.mark.long
def test_the_dialects_words_and_hys_own(hy: Callable[[str], Any]) -> None:
    assert hy("((lambda (a b) (/ a b)) 1 0)") == math.inf
    assert hy("(defn many [#* items] (print items) (len items)) (many 1 2)") == 2
    assert hy("((fn [a b] (// a b)) 7 2)") == 3


@pytest.mark.long
def test_defn_is_the_dialects_from_a_pack_to_the_end_of_its_cell(hy: Callable[[str], Any]) -> None:
    assert (
        hy("(pack mine) (defn over [a b] (/ a b)) (defpolicy f [a] (over a 0)) (f 1)") == math.inf
    )
    assert hy("(defn many [#* items] (print items) (len items)) (many 1 2 3)") == 3


@pytest.mark.long
def test_defmacro_is_the_dialects_from_a_pack_to_the_end_of_its_cell(
    hy: Callable[[str], Any],
) -> None:
    macro = "(defmacro over [a b] `(let [t ~a] (/ t ~b)))"
    assert hy(f"(pack mine) {macro} (defpolicy f [a] (over a 0)) (f 1)") == math.inf
    assert hy("(defmacro twice [form] `(* 2 ~(+ form 1))) (twice 3)") == 8


@pytest.mark.long
def test_a_cell_without_a_value_shows_none(hy: Callable[[str], Any]) -> None:
    assert hy("(setv x 1)") is None
    assert hy("; nothing") is None


@pytest.mark.long
@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("%%hy fast\n1", "takes no arguments"),
        ("%%hy\n(defpolicy f [x] (clamp x 1))", "clamp takes 3 arguments, but 2 are given"),
        ("%%hy\n(+ 1", "<ipython-input"),
    ],
)
def test_mistakes_are_said_in_a_line(shell: InteractiveShell, cell: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        shell.run_cell(cell).raise_error()


@pytest.mark.long
def test_an_error_of_the_code_is_its_own(hy: Callable[[str], Any]) -> None:
    with pytest.raises(ZeroDivisionError):
        hy("(/ 1 0)")


def test_unloading_takes_the_magic_away(shell: InteractiveShell) -> None:
    shell.run_line_magic("unload_ext", "memlab")
    assert "hy" not in shell.magics_manager.magics["cell"]
    shell.run_line_magic("load_ext", "memlab")
    assert "hy" in shell.magics_manager.magics["cell"]


@pytest.fixture
def cell(shell: InteractiveShell) -> Callable[[str], Any]:
    """Return a function that runs a cell as a notebook does, with one lab of three memories."""
    shell.run_cell(
        "import memlab\n"
        "lab = memlab.open()\n"
        "lab.remember('The user indents with tabs', kind='preference', at='2026-01-05')\n"
        "lab.remember('The linter accepts tabs and spaces', at='2026-02-01')\n"
        "lab.remember('Deploys go out on Tuesdays', kind='convention', at='2026-03-01')"
    ).raise_error()

    def run(source: str) -> Any:
        result = shell.run_cell(source)
        result.raise_error()
        return result.result

    return run


@pytest.mark.long
def test_policy_installs_a_cell_and_shows_what_moved(cell: Callable[[str], Any]) -> None:
    cell("%recall tabs or spaces?")
    cell("%recall when are deploys?")
    before = cell("lab.slates().decisions.collect().height")
    shown = cell(
        "%%policy recall-score --reason the older the better\n\n(fn [age-days]\n  age-days)\n"
    )
    version = shown.version
    assert (version.source, version.reason) == (
        "(fn [age-days]\n  age-days)",
        "the older the better",
    )
    assert cell("lab.policies['recall-score'].hash") == version.hash
    first = shown.moves.filter(pl.col("rank_after") == 1)
    assert first["question"].to_list() == ["when are deploys?", "tabs or spaces?"]
    assert set(first["text"]) == {"The user indents with tabs"}
    assert "2 of 3 pairs reordered" in repr(shown) or "3 of 3 pairs reordered" in repr(shown)
    assert "<details open><summary" in html_of(shown)
    # the comparison leaves no trace
    assert cell("lab.slates().decisions.collect().height") == before
    # what was shown is what a recall shows now
    assert cell("%recall when are deploys?")[0].text == "The user indents with tabs"


@pytest.mark.long
def test_a_policy_with_helpers_and_one_that_decides_no_rank(cell: Callable[[str], Any]) -> None:
    shown = cell(
        "%%policy --lab lab recall-score\n(defn twice [x] (* 2 x))\n(fn [similarity] (twice similarity))"
    )
    assert "There are no queries to compare yet" in repr(shown)
    assert shown.moves.is_empty()
    shown = cell("%%policy admit --reason 'all of it'\n(fn [] 1)")
    assert "does not change ranks" in repr(shown)
    assert shown.version.reason == "all of it"


@pytest.mark.long
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("%%policy\n(fn [] 1)", "needs one slot"),
        ("%%policy recall-score fast\n(fn [] 1)", "needs one slot"),
        ("%%policy recal-score\n(fn [] 1)", "Did you mean recall-score"),
        ("%%policy recall-score --lap lab\n(fn [] 1)", "has no option --lap. Did you mean lab"),
        ("%%policy recall-score --lab\n(fn [] 1)", "--lab of %%policy needs a value"),
        ("%%policy recall-score --lab lob\n(fn [] 1)", 'no lab "lob". Did you mean lab'),
        (
            "%%policy recall-score\n\n(fn [similarty] similarty)",
            r"line 3, column 6: .*Did you mean similarity.*\n.*\n +\^{9}$",
        ),
        ("%%policy recall-score\n(defpolicy spread [weight] weight)", "%%policy spread"),
        ("%recall", "needs a query"),
        ("%recall --limit few tabs", "must be a whole number of at least 1"),
        ("%recall --pack compinion tabs", "Did you mean companion"),
        ("%remember --kind preference", "needs a text"),
        ("%remember --kind preferance tabs", "Did you mean preference"),
        ("%%memory fast\n(stats)", "Write operations below it"),
        (
            '%%memory\n(stats)\n(recal "tabs" 3)',
            r"line 3, column 2: .*Did you mean recall\?\n.*\n +\^{5}$",
        ),
    ],
)
def test_a_magic_says_what_is_wrong_in_a_line_and_changes_nothing(
    cell: Callable[[str], Any], source: str, message: str
) -> None:
    before = cell("lab.log.height")
    with pytest.raises(UsageError, match=message):
        cell(source)
    assert cell("lab.log.height") == before


def test_no_frame_of_memlab_is_in_a_traceback(cell: Callable[[str], Any], capsys: Any) -> None:
    with pytest.raises(UsageError):
        cell("%%policy recall-score\n(fn [x] x)")
    output = capsys.readouterr()
    assert "Traceback" not in output.out + output.err
    assert "memlab/" not in output.out + output.err


@pytest.mark.long
def test_recall_and_remember_take_their_line_unparsed(cell: Callable[[str], Any]) -> None:
    assert (
        cell("%remember --kind 'gotcha' Don't say \"never\" -- why?").text
        == 'Don\'t say "never" -- why?'
    )
    assert cell("lab[4].kind") == "gotcha"
    cell("hits = %recall --limit 1 tabs or spaces?")
    assert cell("len(hits)") == 1
    assert cell("hits.decision") is not None
    assert cell("%recall --pack companion tabs?").decision is None
    cell("asked = 'tabs'")
    assert cell("%recall {asked} or spaces?").slate.query == "tabs or spaces?"


@pytest.mark.long
def test_memory_runs_operations(cell: Callable[[str], Any]) -> None:
    ran = cell(
        '%%memory\n(remember "Ines reviews on Fridays" "convention" 0.8)\n(recall "who reviews?" 2)'
    )
    assert [step.operation for step in ran] == ["remember", "recall"]
    assert [step.line for step in ran] == [2, 3]
    assert cell("lab[4].kind") == "convention"


@pytest.mark.long
def test_the_lab_is_the_only_one_or_the_named_one(cell: Callable[[str], Any]) -> None:
    cell("same = lab")
    assert cell("%recall tabs?")
    cell("class Life: pass\nlife = Life()\nlife.lab = lab\nother = memlab.open()")
    with pytest.raises(
        UsageError, match=r"several labs here: lab, same, other. Choose one: --lab lab"
    ):
        cell("%recall tabs?")
    assert not cell("%recall --lab other tabs?")
    assert cell("%recall --lab life.lab tabs?")
    cell("other.close()")  # a closed lab cannot be meant
    assert cell("%recall tabs?")
    cell("lab.close()")
    with pytest.raises(UsageError, match=r"no lab in this notebook. Open one"):
        cell("%recall tabs?")


def test_unloading_brings_back_what_was_there(shell: InteractiveShell) -> None:
    shell.run_line_magic("unload_ext", "memlab")
    magics = {kind: dict(names) for kind, names in shell.magics_manager.magics.items()}
    matchers, transformers = (
        list(shell.Completer.custom_matchers),
        list(shell.input_transformers_cleanup),
    )
    assert "HistoryMagics" in repr(magics["line"]["recall"])
    for _ in range(2):
        shell.run_line_magic("load_ext", "memlab")
        assert "LabMagics" in repr(shell.magics_manager.magics["line"]["recall"])
        shell.run_line_magic("reload_ext", "memlab")
        shell.run_line_magic("unload_ext", "memlab")
        assert shell.magics_manager.magics == magics
        assert shell.Completer.custom_matchers == matchers
        assert shell.input_transformers_cleanup == transformers
    shell.run_line_magic("load_ext", "memlab")


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # the way in which a terminal asks
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ('lab.policies["recall', "recall-score"),
        ('lab.policies.use("comp', "companion"),
        ('memlab.load_pack("act', "actr"),
        ("%%policy rec", "recall-score"),
        ("%%policy --lab lab rec", "recall-score"),
        ("%recall --pack comp", "companion"),
        ("%%policy recall-score\n(fn [simil", "similarity"),
        ("%%policy recall-score\n(fn [similarity] (half-li", "half-life-decay"),
        ("%%policy cut --reason shorter\n(fn [recei", "received"),
        ("%%memory\n(reme", "remember"),
    ],
)
def test_slots_and_packs_are_completed(shell: InteractiveShell, typed: str, offered: str) -> None:
    shell.run_cell("import memlab\nlab = memlab.open()").raise_error()
    shell.Completer.use_jedi = False
    assert offered in _completed(shell, typed)
    shell.run_line_magic("unload_ext", "memlab")
    assert offered not in _completed(shell, typed)
    shell.run_line_magic("load_ext", "memlab")


@pytest.mark.parametrize(
    "typed", ["%%policy recall-score --lab l", "%recall --limit 3 --lab l", "%%memory --lab la"]
)
def test_labs_are_completed(
    cell: Callable[[str], Any], shell: InteractiveShell, typed: str
) -> None:
    shell.Completer.use_jedi = False
    assert _completed(shell, typed) == ["lab"]


def test_macros_of_the_language_and_of_a_cell_are_completed(shell: InteractiveShell) -> None:
    cell = "%%policy recall-score\n(defmacro weigh-twice [e] `(* 2 ~e))\n(fn [similarity] ("
    assert "weigh-twice" in _completed(shell, f"{cell}weigh")
    assert "unless" in _completed(shell, f"{cell}unl")


def _completed(shell: InteractiveShell, typed: str) -> list[str]:
    """Return the completions at the end of a cell, as a notebook requests them."""
    with provisionalcompleter():  # the call by which a kernel answers a notebook
        return [completion.text for completion in shell.Completer.completions(typed, len(typed))]


@pytest.mark.long
def test_an_error_shows_the_callers_code_and_no_frame_within(
    shell: InteractiveShell, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(InteractiveShell, "_instance", shell)
    shell.run_cell("import memlab\nmemlab.open().recall('tabs', limit=-1)")
    text = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    assert "memlab.open().recall" in text
    assert "limit is a whole number of at least 1, not -1" in text
    assert "memlab/subjects/lab.py" not in text


@pytest.mark.long
def test_the_magic_recall_never_explores(shell: InteractiveShell) -> None:
    shell.run_cell(
        "import memlab\n"
        "lab = memlab.open(pack='(pack always :inherits memlab) (setting probe-rate 1)')\n"
        "_ = lab.remember([f'boat number {number}' for number in range(20)])\n"
        "lab.policies.explore(True)"
    ).raise_error()
    assert len(shell.user_ns["lab"].recall("boat").probes) == 1
    hits = shell.run_line_magic("recall", "boat")
    assert hits.decision is not None
    assert hits.probes == ()

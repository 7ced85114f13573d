"""The demo: one run, one page, the same each time but for milliseconds."""

import contextlib
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
from matplotlib.figure import Figure

import memlab
from memlab.errors import InputError
from memlab.io.ingest import read_locomo
from memlab.science.evaluation import Estimate
from memlab.science.simulation import WORLDS
from memlab.subjects.drawing import CYCLE
from memlab.ui.demo import CONVERSATION, draw_terms, run_demo
from memlab.ui.demo.quarter import agreement, live_quarter

pytestmark = pytest.mark.long

SHORT = replace(WORLDS["differs"], days=4)
"""A world that is simulated in a second, for tests that do not need a quarter."""


QUARTER = pytest.param(WORLDS["differs"], marks=pytest.mark.slow)
of_the_quarter = pytest.mark.parametrize("ran", [QUARTER], indirect=True, ids=["quarter"])


@pytest.fixture(scope="module", params=[SHORT, QUARTER], ids=["short", "quarter"])
def ran(request, tmp_path_factory):
    """Run the demo; return its result and its output."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        done = run_demo(
            output=tmp_path_factory.mktemp("demo") / "page.html", full=True, world=request.param
        )
    return done, printed.getvalue()


@pytest.fixture(scope="module")
def run(ran):
    return ran[0]


@pytest.fixture(scope="module")
def html(run):
    return run.output.read_text(encoding="utf-8")


class Elements(HTMLParser):
    """Checks that elements nest, and collects ids, what attributes point to, and the text."""

    VOID = ("meta", "br", "img", "path", "use", "line", "rect", "circle", "input", "hr", "link")

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.targets, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        self._attributes(attrs)

    def handle_startendtag(self, tag, attrs):
        self._attributes(attrs)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def _attributes(self, attrs):
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "action", "srcset"):
                self.targets.append(value)


@pytest.fixture(scope="module")
def elements(html):
    parser = Elements()
    parser.feed(html)
    parser.close()
    return parser


def test_the_conversation_is_whole():
    (labelled,) = read_locomo(CONVERSATION)
    talk = labelled.conversation
    assert len(talk.turns) == 171
    assert talk.turns[0].at < talk.end
    assert [turn.at for turn in talk.turns] == sorted(turn.at for turn in talk.turns)
    assert len({turn.ref for turn in talk.turns}) == 171
    assert len(labelled.questions) == 39
    assert all(
        question.evidence and not question.dropped and question.answer
        for question in labelled.questions
    )


def test_the_swap_puts_what_holds_now_above_what_once_held(run):
    assert run.memories == 171
    assert {"D13:1", "D1:9"} <= set(run.before)
    assert run.before != run.after
    above = [ref for ref in run.after if ref in ("D13:1", "D1:9")]
    assert above[0] == "D13:1"
    assert run.after.index("D13:1") <= run.before.index("D13:1")


def test_all_packs_and_both_baselines_are_ranked(run):
    assert {system.name for system in run.bench.systems} == {*memlab.packs(), "bm25", "dense"}
    assert run.bench.questions == 36


def test_the_page_is_well_formed_and_asks_for_nothing(html, elements):
    assert elements.open == []
    assert len(elements.ids) == len(set(elements.ids))
    assert all(target.startswith("#") and target[1:] in elements.ids for target in elements.targets)
    assert all(target in elements.ids for target in re.findall(r"url\(#([^)]+)\)", html))
    assert "@import" not in html
    assert "<script" not in html
    assert not re.search(r"https?://", html)


def test_terms_beyond_the_colours_are_one_entry_of_the_legend_and_what_decides_has_a_colour():
    def explained(**terms):
        parts = tuple(("", name, value) for name, value in terms.items())
        return SimpleNamespace(parts=parts, score=sum(terms.values()))

    small = {f"small-{number:02}": 0.01 for number in range(len(CYCLE) + 2)}
    axes = Figure().add_subplot()
    draw_terms([explained(**small, decides=0.05), explained(**small)], ["first", "second"])(axes)
    told = axes.get_legend_handles_labels()[1]
    assert told[0] == "decides"
    assert told[-1] == "3 smaller terms"
    assert len(told) == len(CYCLE) + 1


def test_the_page_says_by_which_hashes_it_came_about(run, html):
    assert {"conversation", "embedder", "pack memlab", "pack bm25"} <= set(run.hashes)
    assert all(digest in html for digest in run.hashes.values())
    assert memlab.__version__ in html
    assert "the ranking is the first one again" in html


def test_the_result_is_json(run):
    data = json.loads(json.dumps(run.to_dict(), allow_nan=False))
    assert data["before"] == list(run.before)
    assert data["bench"]["questions"] == 36
    quarter = data["quarter"]
    assert (quarter["world"], quarter["days"]) == ("differs", run.quarter.world.days)
    assert {row["policy"] for row in quarter["policies"]} == {
        name for name in memlab.packs() if not name.endswith("-plus")
    }
    assert all(
        row["low"] <= row["value"] <= row["high"]
        for row in quarter["policies"]
        if row["value"] is not None
    )


@of_the_quarter
def test_the_log_of_the_quarter_tells_what_is_true(run):
    assert run.quarter.world.days == 90
    quarter = run.quarter
    assert quarter.evaluation.baseline == "memlab"
    assert quarter.agreement.intervals >= 4
    assert quarter.agreement.holding >= quarter.agreement.intervals - 1
    assert quarter.agreement.ordered >= 0.8 * quarter.agreement.pairs
    assert quarter.probes > quarter.recalls
    valued = [row for row in quarter.evaluation.rows if row.value is not None]
    worst = min(valued, key=lambda row: row.value.value)
    assert worst.verdict == "worse"
    assert quarter.truth[worst.policy] == min(quarter.truth[row.policy] for row in valued)


def test_the_evaluation_report_is_next_to_the_page_which_does_not_need_it(run, html):
    assert run.report.parent == run.output.parent
    assert run.report.name == "page-evaluation.html"
    assert run.report.name in html
    assert "memlab.evaluate(" in run.report.read_text(encoding="utf-8")


def test_without_the_quarter_it_is_the_same_story_and_a_page_of_its_own(
    run, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("memlab.science.bench.bench_conversations", lambda *_, **__: run.bench)
    short = run_demo(output=tmp_path / "short.html", progress=True)
    captured = capsys.readouterr()
    assert "live" not in captured.out
    assert captured.out.splitlines()[-1].endswith("short.html")
    assert (short.before, short.after) == (run.before, run.after)
    assert short.quarter is short.report is None
    assert list(tmp_path.iterdir()) == [short.output]
    data = json.loads(json.dumps(short.to_dict(), allow_nan=False))
    assert "quarter" not in data
    parser = Elements()
    parser.feed(short.output.read_text(encoding="utf-8"))
    assert parser.open == []
    assert all(target[1:] in parser.ids for target in parser.targets)
    assert "memlab demo --full" in "".join(parser.text)


def test_agreement_counts_pairs_in_order_and_intervals_that_hold(run):
    rows = run.quarter.evaluation.rows
    values = {"a": (0.9, 0.8, 1.0), "b": (0.5, 0.4, 0.6), "c": (0.2, 0.1, 0.3)}
    made = [
        replace(rows[0], policy=name, value=Estimate(value, low, high, 0.05, 0.0))
        for name, (value, low, high) in values.items()
    ]
    evaluation = replace(
        run.quarter.evaluation, rows=(*made, replace(rows[0], policy="d", value=None))
    )
    result = agreement(evaluation, {"a": 0.85, "b": 0.1, "c": 0.25, "d": 5.0})
    assert (result.pairs, result.ordered) == (3, 2)
    assert (result.intervals, result.holding) == (3, 2)


def test_the_demo_prints_a_short_story(ran):
    run, told = ran[0], ran[1].splitlines()
    assert len(told) <= 56
    where = str(run.output.parent)  # the path is the caller's
    assert max(len(line) - len(where) * (where in line) for line in told) <= 120
    assert told[-1].endswith("page.html")
    assert str(run.report) in told[-2]


@of_the_quarter
def test_a_second_run_differs_in_milliseconds_only(run, tmp_path):
    again = run_demo(output=tmp_path / "again.html", full=True, world=SHORT, quiet=True)
    assert (again.before, again.after) == (run.before, run.after)
    for first, second in zip(run.bench.systems, again.bench.systems, strict=True):
        assert (first.name, first.metrics) == (second.name, second.metrics)
    quarter, twin = again.quarter, live_quarter(world=SHORT)
    assert quarter.digest == twin.digest != run.quarter.digest
    assert quarter.truth == twin.truth
    assert quarter.evaluation.frame.equals(twin.evaluation.frame)


def test_a_page_that_cannot_be_written_is_said_before_the_work(tmp_path, capsys):
    with pytest.raises(InputError, match="The page cannot be written to"):
        run_demo(output=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Give another --output"):
        run_demo(output=tmp_path / "file" / "page.html")
    assert capsys.readouterr().out == ""

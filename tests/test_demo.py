"""The demo: one run, one page, the same each time but for milliseconds."""

import json
import re
from html.parser import HTMLParser

import pytest

import memlab
from memlab.demo import CONVERSATION, run_demo
from memlab.errors import InputError
from memlab.ingest import read_locomo


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return run_demo(output=tmp_path_factory.mktemp("demo") / "page.html", quiet=True)


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
    assert all(question.evidence and not question.dropped and question.answer for question in labelled.questions)


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


def test_the_page_says_by_which_hashes_it_came_about(run, html):
    assert {"conversation", "embedder", "pack memlab", "pack bm25"} <= set(run.hashes)
    assert all(digest in html for digest in run.hashes.values())
    assert memlab.__version__ in html
    assert "the first ranking is back, hit by hit" in html


def test_the_result_is_json(run):
    told = json.loads(json.dumps(run.to_dict(), allow_nan=False))
    assert told["before"] == list(run.before)
    assert told["bench"]["questions"] == 36


def test_a_second_run_differs_in_milliseconds_only_and_prints_a_short_story(run, tmp_path, capsys):
    again = run_demo(output=tmp_path / "again.html")
    assert (again.before, again.after, again.hashes) == (run.before, run.after, run.hashes)
    for first, second in zip(run.bench.systems, again.bench.systems, strict=True):
        assert (first.name, first.metrics) == (second.name, second.metrics)
    told = capsys.readouterr().out.splitlines()
    assert len(told) <= 45
    assert max(len(line) for line in told) <= 120
    assert told[-1].endswith("again.html")


def test_a_page_that_cannot_be_written_is_said_before_the_work(tmp_path, capsys):
    with pytest.raises(InputError, match="The page cannot be written to"):
        run_demo(output=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Name another --output"):
        run_demo(output=tmp_path / "file" / "page.html")
    assert capsys.readouterr().out == ""

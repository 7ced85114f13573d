"""What every widget stands on: requests, faults, bundles."""

import inspect
import subprocess
import sys

import polars as pl
import pytest
import traitlets

from memlab.errors import InputError
from memlab.ui import widgets
from memlab.ui.widgets import Widget, arrow
from memlab.ui.widgets.bundles import STATIC


class Counter(Widget, bundle="explorer"):
    count = traitlets.Int(0).tag(sync=True)

    def answer_add(self, by):
        self.count += by

    def answer_table(self):
        return {"rows": pl.DataFrame({"x": [1, 2]}), "height": 2}

    def answer_refuse(self):
        raise InputError("Not this one.")

    def answer_break(self):
        raise KeyError("gone")


@pytest.fixture
def counter(lab):
    made = Counter(lab)
    made.sent = []
    made.send = lambda content, buffers=None: made.sent.append((content, buffers))
    return made


def test_a_request_is_answered_and_its_tables_are_arrow(counter, ask):
    assert ask(counter, "add", by=2) == {}
    assert counter.count == 2
    found = ask(counter, "table")
    assert (found["height"], found["rows"]["x"].to_list()) == (2, [1, 2])


@pytest.mark.parametrize(
    "message", [{}, {"verb": "_repr_html_"}, {"verb": ["add"]}, {"verb": "add", "arguments": 3}]
)
def test_a_message_that_is_no_request_is_answered_with_a_sentence(counter, message):
    reply, _ = counter.answer({"id": 3, **message})
    assert set(reply) == {"id", "error"}


def test_a_refusal_is_sent_as_its_sentence(counter):
    counter._handle_custom_msg({"id": 1, "verb": "refuse"}, [])
    assert counter.sent == [({"id": 1, "error": "Not this one."}, [])]


def test_a_fault_of_its_own_is_sent_and_raised(counter):
    with pytest.raises(KeyError):
        counter._receive(counter, {"id": 1, "verb": "break"}, [])
    assert "memlab failed here: KeyError: 'gone'" in counter.sent[0][0]["error"]


def test_a_fault_while_a_trait_is_followed_is_shown(counter):
    with counter.faults_shown():
        raise InputError("No such place.")
    assert counter.fault == "No such place."
    with pytest.raises(KeyError), counter.faults_shown():
        raise KeyError("gone")
    assert "KeyError" in counter.fault
    with counter.faults_shown():
        pass
    assert counter.fault == ""


JUNK = [None, True, -1, 10**30, 1.5, "", "x" * 10_000, "\ud800", [], [1], {}, {"a": 1}]


@pytest.mark.long
@pytest.mark.parametrize("name", widgets.SHIPPED)
def test_junk_in_a_request_is_answered(lab, name):
    """Every verb of every widget, one junk value for all of its arguments: a sentence or an answer, never an error."""
    lab.remember("The user prefers tabs")
    widget = getattr(widgets, name)(lab)
    verbs = [
        verb.removeprefix("answer_") for verb in dir(type(widget)) if verb.startswith("answer_")
    ]
    for verb in verbs:
        arguments = list(inspect.signature(getattr(widget, f"answer_{verb}")).parameters)
        for given in ({}, {"unknown": 1}, *(dict.fromkeys(arguments, junk) for junk in JUNK)):
            reply, _ = widget.answer({"id": 1, "verb": verb, "arguments": given})
            assert set(reply) in ({"id", "value", "tables"}, {"id", "error"})


def test_every_widget_has_its_bundle_and_says_what_it_is():
    for name in widgets.SHIPPED:
        made = getattr(widgets, name)
        assert (STATIC / f"{made.bundle}.js").is_file()
        assert made.__doc__


def test_a_bundle_asks_for_nothing_on_the_network():
    for file in STATIC.glob("*.js"):
        text = file.read_text(encoding="utf-8")
        assert "https://" not in text.replace("https://www.w3.org/", ""), file.name


def test_no_source_makes_markup_of_a_text():
    for file in (STATIC.parent / "src").glob("*/*.ts*"):
        assert "nnerHTML" not in file.read_text(encoding="utf-8"), file.name


def test_arrow_keeps_types_that_every_reader_knows():
    frame = pl.DataFrame({"a": ["x", None], "b": [[1], []], "c": [True, None]})
    assert pl.read_ipc_stream(arrow(frame)).equals(frame)


@pytest.mark.long
def test_importing_memlab_loads_no_widget_library():
    code = "import sys, memlab, memlab.widgets; assert not {'anywidget', 'ipywidgets'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)

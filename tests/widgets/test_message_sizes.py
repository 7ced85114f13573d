"""No message of a widget exceeds what hosts of notebooks carry.

Colab shows at most 10 MB of data in a notebook. Servers of Jupyter, which VS Code uses for remote kernels, close a
connection at a message of 10 MiB (the default of Tornado). The smaller one holds for every widget.
"""

import json

import polars as pl
import pytest

import memlab
from memlab.ui import widgets

pytestmark = pytest.mark.long

LIMIT = 10_000_000
NAMES = widgets.SHIPPED


def state_size(widget):
    rest, _, buffers = widget.plain_state()
    return len(json.dumps(rest)) + sum(map(len, buffers))


def answer_size(widget, verb, **arguments):
    reply, buffers = widget.answer({"id": 1, "verb": verb, "arguments": arguments})
    assert "error" not in reply
    return len(json.dumps(reply)) + sum(map(len, buffers))


@pytest.fixture(scope="module")
def long_texts():
    """A lab whose texts exceed a tenth of the limit, with one logged recall of all of them."""
    lab = memlab.open(clock=memlab.ManualClock("2026-03-01"))
    lab.remember([f"harbour {n} " + "-" * 40_000 for n in range(30)])
    for hit in lab.recall("harbour", limit=30):
        lab.feedback(hit, "success")
    return lab


@pytest.mark.parametrize("name", NAMES)
def test_lists_have_the_beginnings_of_long_texts(long_texts, name):
    options = {"RecallExplorer": {"question": "harbour", "limit": 30}}.get(name, {})
    widget = getattr(widgets, name)(long_texts, **options)
    if name == "LifePlayer":
        widget.fill()
        assert answer_size(widget, "event", event=2) < LIMIT / 10
    assert state_size(widget) < LIMIT / 10
    if name == "MemoryTable":
        assert answer_size(widget, "similar", memory=1) < LIMIT / 10
        assert answer_size(widget, "page", start=0, count=500) < LIMIT / 10


def test_an_answer_that_is_too_long_is_refused_in_a_sentence(lab):
    class Long(widgets.Widget, bundle="table"):
        def answer_all(self):
            return {"rows": pl.DataFrame({"text": ["x" * 1_000] * 11_000})}

    reply, buffers = Long(lab).answer({"id": 1, "verb": "all"})
    assert "Ask for fewer rows" in reply["error"]
    assert buffers == []


@pytest.mark.slow
def test_a_lab_of_100_000_memories_keeps_to_the_limit():
    lab = memlab.open(clock=memlab.ManualClock("2026-03-01"))
    count = 100_000
    rows = {
        "text": [f"note {n} on topic {n % 97} and place {n % 1013}" for n in range(count)],
        "speaker": [f"speaker {n % 50}" for n in range(count)],
        "session": [f"session {n // 40}" for n in range(count)],
    }
    lab.remember(pl.DataFrame(rows))
    lab.recall("note on topic 7", limit=50)
    sizes = {}
    for name in NAMES:
        widget = getattr(widgets, name)(lab)
        for colour in ("speaker", "session", "created") if name == "MemoryMap" else ():
            widget.colour = colour
            sizes[name, colour] = state_size(widget)
        if name == "MemoryTable":
            sizes[name, "ids"] = answer_size(widget, "ids")
            widget.ids = list(range(1, count + 1))
            start = 0
            while start is not None:
                reply, _ = widget.answer({"id": 1, "verb": "export", "arguments": {"start": start}})
                sizes[name, "export", start] = len(json.dumps(reply))
                start = reply["value"]["next"]
        if name == "LifePlayer":
            widget.fill()
        sizes[name] = state_size(widget)
    assert max(sizes.values()) < LIMIT, sizes

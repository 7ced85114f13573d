"""Rows of an event that name no memories, next to a hidden memory: their strings are removed, their numbers stay."""

import numpy as np
import pytest

from memlab.kernel.extension import Extension, extend, forget_extension
from memlab.kernel.journal import Event
from memlab.kernel.state import EventType, Field, State, mapping_field
from memlab.kernel.state.events import rows_field
from memlab.kernel.state.view import VisibleBody

KIND = "walks/walked"


@pytest.fixture
def declared():
    said = rows_field(
        {"said": Field("text", of="about"), "by": Field("word"), "count": Field("number")}
    )
    body = mapping_field({"about": Field("memory"), "walks": said})
    extend(Extension("walks", "1.0", events=(EventType(KIND, "A person walked.", body.fields),)))
    yield
    forget_extension("walks")


def visible(about, texts):
    """Return what is visible of two walks where the second memory is hidden."""
    walks = {"said": texts, "by": "foot", "count": [3, 4]}
    event = Event(1, 0, KIND, {"about": about, "walks": walks})
    return VisibleBody(event, np.array([False, True]), State(())).body["walks"]


@pytest.mark.usefixtures("declared")
def test_texts_of_rows_next_to_a_hidden_memory_are_emptied_and_their_numbers_stay():
    left = visible([1, 2], ["to the goat", "to the gold"])
    assert left == {"said": ["", ""], "by": "foot", "count": [3, 4]}


@pytest.mark.usefixtures("declared")
def test_texts_of_rows_next_to_visible_memories_stay():
    left = visible([1], ["to the goat", "to the sea"])
    assert left == {"said": ["to the goat", "to the sea"], "by": "foot", "count": [3, 4]}

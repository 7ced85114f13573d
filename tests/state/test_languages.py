"""Postings in another language: whenever they are asked for first, they are those of a state that always kept them."""

import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from memlab.kernel.state import load_snapshot, save_snapshot
from memlab.kernel.state import state as module
from memlab.kernel.verbs.projections import PROJECTIONS, new_state

SAID = ["die Häuser am Meer", "das Haus", "ein Flugzeug", "東京都に住む", "the houses", ""]
QUESTIONS = ("Haus", "wer lebt am Meer?", "東京", "house")
batches = st.lists(
    st.lists(
        st.tuples(st.sampled_from(SAID), st.sampled_from([None, "Änne"])), min_size=1, max_size=4
    ),
    max_size=6,
)


class Shelf:
    def __init__(self, batches):
        self.said = batches

    def texts(self, ids):
        return [self.said[id - 1] for id in ids]

    def vectors(self, fingerprint, *, after_id=0):
        yield after_id + 1, np.ones((len(self.said) - after_id, 4), dtype=np.int8)


def happened(batches):
    """Return the journal of these batches, and the texts it refers to."""
    events = [
        SimpleNamespace(
            seq=1, at=0, kind="embedder", body={"fingerprint": "f", "name": "e", "dim": 4}
        )
    ]
    said = []
    for batch in batches:
        columns = {"speaker": [speaker for _, speaker in batch]}
        body = {"first": len(said) + 1, "count": len(batch), "columns": columns}
        events.append(
            SimpleNamespace(seq=len(events) + 1, at=len(events), kind="remember", body=body)
        )
        said += [text for text, _ in batch]
    return events, Shelf(said)


def same(first, two):
    assert first.language == two.language
    assert first.vocabulary == two.vocabulary
    assert first.lengths.tolist() == two.lengths.tolist()
    for question in QUESTIONS:
        hits = [
            sorted(zip(*map(np.ndarray.tolist, found), strict=True))
            for found in (hits_of(first, question), hits_of(two, question))
        ]
        assert hits[0] == hits[1]


def hits_of(words, question):
    hits = words.hits(words.query(question))
    return hits.row, hits.term, hits.tf


@pytest.mark.long
@given(batches, st.sampled_from(["german", "none", "english"]), st.data())
@examples(40)
def test_asked_for_late_equals_kept_from_the_start(given, language, data):
    events, shelf = happened(given)
    cut = data.draw(st.integers(1, len(events)))
    always, late = new_state(), new_state()
    always.get_words(language)
    always.fold(events, shelf)
    late.fold(events[:cut], Shelf(shelf.said[: count(events[:cut])]))
    late.get_words(language)
    late.fold(events[cut:], shelf)
    same(always.get_words(language), late.get_words(language))
    after = new_state()
    after.fold(events, shelf)
    same(always.get_words(language), after.get_words(language))


def count(events):
    return sum(event.body.get("count", 0) for event in events)


@pytest.mark.long
@given(batches, st.data())
@examples(20)
def test_a_snapshot_keeps_every_language_that_was_asked_for(given, data):
    events, shelf = happened(given)
    cut = data.draw(st.integers(1, len(events)))
    before, whole = new_state(), new_state()
    whole.fold(events, shelf)
    before.fold(events[:cut], Shelf(shelf.said[: count(events[:cut])]))
    before.get_words("german")
    with tempfile.TemporaryDirectory() as folder:
        restored = load_snapshot(save_snapshot(before, Path(folder)), PROJECTIONS).state
    assert list(restored.other_words) == ["german"]
    restored.fold(events[cut:], shelf)
    same(restored.get_words("german"), whole.get_words("german"))
    same(restored.words, whole.words)


def test_many_texts_are_posted_block_by_block(monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 3)
    events, shelf = happened([[(text, None) for text in SAID * 2]])
    state = new_state()
    state.fold(events, shelf)
    words = state.get_words("german")
    assert words.lengths.tolist() == [2, 1, 1, 9, 2, 0] * 2
    assert words is state.get_words("german")
    assert state.words is state.get_words("english")

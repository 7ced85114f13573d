"""The fold of any prefix of the journal and then the rest equals the fold of all, snapshots included."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from events import Event
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import memlab
from memlab.errors import NewerLab
from memlab.kernel.journal import check_event_format
from memlab.kernel.policies import VersionLog
from memlab.kernel.schema import KINDS, RELATIONS
from memlab.kernel.state import load_snapshot, save_snapshot
from memlab.kernel.verbs.projections import PROJECTIONS, new_state

DIM = 4
words = st.sampled_from(["goat", "sea", "bakery", "tabs", "spaces", "deploy", "review"])


class Shelf:
    """Where the fold finds texts and vectors: here, two lists."""

    def __init__(self):
        self.said = []

    def texts(self, ids):
        return [self.said[id - 1] for id in ids]

    def vectors(self, fingerprint, *, after_id=0):
        fresh = self.said[after_id:]
        if fresh:
            yield (
                after_id + 1,
                np.array([[len(text), ord(text[0]) - 97, 1, -3] for text in fresh], dtype=np.int8),
            )


def mentions(count):
    return {"relation": "mentions", "weight": [0.5] * count}


def folded(events, shelf):
    state = new_state()
    state.fold(events, shelf)
    return state


def changes(count):
    """Draw columns of every storage, with one value for all rows or one for each."""

    def each(values, *, value=True):
        many = st.lists(values, min_size=count, max_size=count)
        return (values | many) if value else many

    tags = st.none() | st.lists(words, min_size=1, max_size=2)
    columns = {
        "status": each(st.sampled_from(["active", "forgotten", "superseded"])),
        "strength": each(st.floats(0, 100)),
        "stability": each(st.none() | st.floats(0, 9)),
        "pinned": each(st.booleans()),
        "valid_until": each(st.none() | st.integers(-(2**50), 2**50)),
        "branch": each(st.none() | words),
        "summary": each(st.none() | words),
        "triggers": each(tags, value=False),
        "tags": each(tags, value=False),
    }
    return st.lists(st.sampled_from(sorted(columns)), min_size=1, max_size=4, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: columns[name] for name in names})
    )


@st.composite
def lives(draw):
    """Draw a possible journal, and its texts."""
    shelf = Shelf()
    events = [Event(1, 0, "embedder", {"fingerprint": "f", "name": "e", "dim": DIM})]
    for at in range(1, draw(st.integers(1, 12))):
        known = len(shelf.said)
        kind = draw(
            st.sampled_from(
                ["remember", "remember", "link", "recall", "feedback", "edit", "strengthen", "use"]
            )
        )
        one = st.integers(1, max(known, 1))
        if kind == "remember":
            texts = draw(
                st.lists(
                    st.lists(words, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=4
                )
            )
            count = len(texts)
            columns = {
                "kind": draw(
                    st.sampled_from(KINDS)
                    | st.lists(st.sampled_from(KINDS), min_size=count, max_size=count)
                ),
                "session": draw(st.none() | st.sampled_from("ab")),
                "importance": draw(st.floats(0, 1)),
                "stability": draw(
                    st.none()
                    | st.lists(st.none() | st.floats(0, 9), min_size=count, max_size=count)
                ),
                "triggers": [
                    draw(st.none() | st.lists(words, min_size=1, max_size=2)) for _ in texts
                ],
                "tags": [draw(st.none() | st.lists(words, min_size=1, max_size=2)) for _ in texts],
            }
            shelf.said += texts
            body = {"first": known + 1, "count": count, "columns": columns}
            if known:
                body["edges"] = {
                    "source": [draw(one)],
                    "target": [known + 1],
                    "relation": "next",
                    "weight": 1.0,
                }
        elif known == 0 and kind != "use":
            continue
        elif kind == "link":
            source, target = draw(one), draw(one)
            if source == target:
                continue
            relation = draw(st.sampled_from(RELATIONS))
            body = {
                "edges": {
                    "source": [source],
                    "target": [target],
                    "relation": relation,
                    "weight": 0.5,
                }
            }
        elif kind == "recall":
            body = {"ids": draw(st.lists(one, max_size=3, unique=True))}
        elif kind == "feedback":
            body = {
                "memory": draw(one),
                "outcome": draw(st.sampled_from([None, "success", "fail"])),
            }
        elif kind == "edit":
            ids = draw(st.lists(one, min_size=1, max_size=3, unique=True))
            body = {"set": [{"ids": ids, "columns": draw(changes(len(ids)))}]}
            body["join"] = [
                {"source": ids, "kind": "entity", "target": ["goat"] * len(ids)}
                | mentions(len(ids))
            ]
        elif kind == "strengthen":
            living = [
                number for number, alive in enumerate(folded(events, shelf).edges.alive) if alive
            ]
            if len(living) < 2:
                continue
            body = {
                "strengthen": {"edges": living[:1], "weight": [0.25]},
                "unlink": [draw(st.sampled_from(living[1:]))],
            }
        else:
            body = {}
        events.append(Event(len(events) + 1, at * 1000, kind, body))
    return events, shelf


def same(first, two):
    assert first.seq == two.seq
    assert first.memories().equals(two.memories())
    assert first.edge_frame().equals(two.edge_frame())
    assert np.array_equal(first.uses.values, two.uses.values)
    assert dict(first.lists["triggers"].items()) == dict(two.lists["triggers"].items())
    rows = np.arange(len(first))
    probe = np.array([3, 1, 1, -2], dtype=np.int8)
    assert np.array_equal(
        first.vectors.similarity(probe, rows), two.vectors.similarity(probe, rows)
    )
    assert np.array_equal(first.words.lengths, two.words.lengths)
    assert np.array_equal(first.asks.values, two.asks.values)
    for text in ("goat sea", "tabs"):
        hits = [state.words.hits(state.words.query(text), None) for state in (first, two)]
        assert np.array_equal(*(np.sort(hit.row) for hit in hits))


@pytest.mark.long
@given(lives(), st.data())
@examples(60, quick=8)
def test_prefix_and_rest_equal_all(life, data):
    events, shelf = life
    cut = data.draw(st.integers(0, len(events)))
    whole, parts = new_state(), new_state()
    whole.fold(events, shelf)
    parts.fold(events[:cut], shelf)
    parts.fold(events[cut:], shelf)
    same(whole, parts)


@pytest.mark.long
@given(lives(), st.data())
@examples(40, quick=8)
def test_a_snapshot_is_a_fold_that_was_written_down(life, data):
    events, shelf = life
    cut = data.draw(st.integers(1, len(events)))
    whole, before = new_state(), new_state()
    whole.fold(events, shelf)
    before.fold(events[:cut], shelf)
    with tempfile.TemporaryDirectory() as folder:
        restored = load_snapshot(save_snapshot(before, Path(folder)), PROJECTIONS).state
        restored.fold(events[cut:], shelf)
        same(whole, restored)


def test_an_event_of_a_later_version_is_not_guessed_at():
    with pytest.raises(
        NewerLab,
        match=rf'Event 1 is of kind "dreamt", which memlab {memlab.__version__} does not know.* Upgrade',
    ):
        new_state().fold([Event(1, 0, "dreamt")], Shelf())


def test_an_event_says_the_version_of_its_body():
    added = {"first": 1, "count": 1, "columns": {}, "format": 2}
    text = (
        rf"Event 1 \(remember\) has format 2, written by a later memlab\. This is memlab {memlab.__version__}, which "
        r"reads formats up to 1\. Upgrade memlab\."
    )
    with pytest.raises(NewerLab, match=text):
        new_state().fold([Event(1, 0, "remember", added)], Shelf())
    with pytest.raises(NewerLab, match=r"Event 1 \(use\) has format 3"):
        VersionLog().fold(Event(1, 0, "use", {"sources": [], "format": 3}), {}.__getitem__)
    check_event_format(Event(1, 0, "remember", {"format": 1}), 1)
    check_event_format(Event(1, 0, "remember", added), 2)
    with pytest.raises(NewerLab, match=r"has format 3.*reads formats up to 2"):
        check_event_format(Event(1, 0, "remember", {**added, "format": 3}), 2)


def test_the_status_of_the_first_labs_is_folded(lab):
    lab.remember(["Ana likes tea", "the deploy failed"])
    state = lab.io.store.state
    state.fold([Event(state.seq + 1, 5, "status", {"ids": [2], "status": "forgotten"})], Shelf())
    assert state.memories()["status"].to_list() == ["active", "forgotten"]


@pytest.mark.long
@given(lives())
def test_a_column_in_which_nothing_was_said_takes_no_room(life):
    events, shelf = life
    state = folded(events, shelf)
    assert not any(
        state.numbers[name].has_values for name in ("difficulty", "ttl_days", "trust", "valid_from")
    )
    assert not any(
        state.names[name].has_values for name in ("subject", "predicate", "object", "season")
    )
    assert state.memories()["trust"].null_count() == len(state)


def test_a_changed_tag_moves_its_edge():
    state, _ = remembered(tags=[["a", "b"], ["b"]])
    state.fold(
        [Event(3, 20, "edit", {"set": [{"ids": [1], "columns": {"tags": [["b", "c"]]}}]})], Shelf()
    )
    assert state.edge_frame().select("source", "to").rows() == [(1, "b"), (2, "b"), (1, "c")]


def remembered(**columns):
    shelf, state = Shelf(), new_state()
    shelf.said = ["goat", "sea"]
    events = [
        Event(1, 0, "embedder", {"fingerprint": "f", "name": "e", "dim": DIM}),
        Event(2, 10, "remember", {"first": 1, "count": 2, "columns": columns}),
    ]
    state.fold(events, shelf)
    return state, shelf


def test_a_number_without_a_default_is_null_until_it_is_set():
    state, _ = remembered(stability=[None, 2.5])
    assert state.memories()["stability"].to_list() == [None, 2.5]
    assert state.memories()["difficulty"].to_list() == [None, None]


def test_uses_are_the_creation_and_every_recall():
    state, shelf = remembered()
    state.fold([Event(3, 20, "recall", {"ids": [2]}), Event(4, 15, "recall", {"ids": [2]})], shelf)
    assert state.uses.values[:, :4].tolist() == [
        [10, *[state.uses.NEVER] * 3],
        [20, 15, 10, state.uses.NEVER],
    ]

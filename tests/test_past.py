"""A logged question asked again: the state before it, whatever has happened since."""

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.kernel.recall import Recaller
from memlab.kernel.verbs.recalling.past import Past

WORDS = ["goat", "sea", "bakery", "tabs", "deploy", "review", "swim", "village", "six", "branch"]


@pytest.fixture
def lived(lab, clock):
    """Return a lab with many changes between its recalls, and the decisions of those recalls."""
    dice = np.random.default_rng(3)
    decisions = []
    for day in range(12):
        clock.advance(days=1)
        rows = [{"text": " ".join(dice.choice(WORDS, 4)), "session": str(day)} for _ in range(4)]
        lab.remember(rows, chain=True)
        # else it is chance whether what the last pack links in the background is there yet
        lab.graph.link_waiting()
        hits = lab.recall(" ".join(dice.choice(WORDS, 2)), limit=3)
        decisions.append(hits.decision)
        lab.feedback(hits[0], "success" if day % 2 else "fail")
        if day == 5:
            lab.forget(hits[0])
        if day == 7:
            lab.policies.use("associative")
    return lab, decisions


def past(lab):
    return Past(lab.io.store.journal, Recaller(lab.io.embedder))


@pytest.mark.long
def test_the_pack_that_logged_gives_what_was_logged(lived):
    lab, decisions = lived
    again = past(lab)
    for decision in decisions:
        logged = again.logged(decision)
        pack = "memlab" if logged.pack == "memlab" else "associative"
        repeated = again.recall(decision, memlab.load_pack(pack))
        features = [name for name in logged.frame.columns if name != "propensity"]
        assert repeated.frame.select(features).equals(logged.frame.select(features))


@pytest.mark.long
def test_the_order_of_asking_does_not_matter(lived):
    lab, decisions = lived
    forward, backward, pack = past(lab), past(lab), memlab.load_pack("cascade")
    there = [forward.recall(decision, pack).frame for decision in decisions]
    back = [backward.recall(decision, pack).frame for decision in reversed(decisions)]
    assert all(item.equals(two) for item, two in zip(there, reversed(back), strict=True))


@pytest.mark.long
def test_nothing_is_written(lived):
    lab, decisions = lived
    head = lab.io.store.journal.head
    lab.policies.recall_again({"decision": decisions[3]}, memlab.load_pack("workbench"))
    assert lab.io.store.journal.head == head


@pytest.mark.long
def test_slates_are_the_same_sealed_or_not(disk, monkeypatch):
    monkeypatch.setattr("memlab.kernel.storage.store._SEAL_EVERY", 3)
    with disk() as lab:
        lab.remember(["goat by the sea", "a bakery", "six tabs"])
        for turn in range(4):
            lab.feedback(lab.recall(f"goat {turn}", limit=2)[0], "success")
        first = lab.slates().collect()
        assert lab.io.store.journal.segments()
        lab.recall("bakery")
        second = lab.slates().collect()
        assert len(second) == len(first) + 1
        assert (
            second.candidates.collect()
            .head(first.candidates.collect().height)
            .equals(first.candidates.collect())
        )
    with disk() as lab:
        assert lab.slates().collect().candidates.collect().equals(second.candidates.collect())


def test_probes_are_marked_and_last(trigrams):
    always = "(pack always) (setting probe-rate 1) (setting limit 2)"
    with memlab.open(embedder=trigrams, pack=always) as lab:
        lab.remember([f"goat number {number}" for number in range(9)])
        hits = lab.recall("goat", explore=True)
        assert [hit.probe for hit in hits] == [False, False, True]
        table = lab.slates().exposures.collect()
        assert table["probe"].to_list() == [False, False, True]
        probability = table["propensity"][2]
        pool = lab.slates().candidates.collect()
        assert (
            pool.filter(pl.col("memory_id") == hits[2].id)["propensity"].item() == probability < 1
        )
        assert "?" in repr(hits)

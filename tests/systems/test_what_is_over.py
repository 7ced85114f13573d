"""What has expired or has no strength left is not recalled, and not revived, whether anybody called maintain or not."""

import numpy as np
import pytest

import memlab
from memlab.kernel.recall import Moment
from memlab.kernel.recall._ending import is_expired

PACKS = ("memlab", "cascade", "companion", "workbench", "associative", "factgraph", "actr", "fsrs")


@pytest.fixture
def opened(clock):
    labs = []

    def open_(pack):
        labs.append(memlab.open(pack=pack, clock=clock))
        return labs[-1]

    yield open_
    for lab in labs:
        lab.close()


def test_a_memory_without_strength_is_not_recalled_and_not_revived(opened, clock):
    lab = opened("companion")
    lab.remember("We laughed about the goat", kind="event")
    clock.advance(days=60)
    assert len(lab.recall("We laughed about the goat")) == 0
    assert lab.memories.select("strength", "access").rows() == [(100.0, 0.0)]
    assert lab.upkeep.maintain().frame["to"].to_list() == ["deleted"]


def test_a_faded_memory_is_not_reached_over_links(opened, clock):
    lab = opened("companion")
    fresh = lab.remember("The user likes goats", kind="preference")
    old = lab.remember("We laughed a lot", kind="event", linking="off")
    lab.graph.link(fresh, old)
    assert set(lab.recall("The user likes goats", log=False).ids) == {fresh.id, old.id}
    clock.advance(days=60)
    assert lab.recall("The user likes goats").ids == (fresh.id,)


@pytest.mark.parametrize("pack", PACKS)
def test_a_memory_with_a_day_to_live_is_over_after_two_in_every_pack(opened, clock, pack):
    lab = opened(pack)
    lab.remember("the release train leaves on Monday", ttl_days=1.0)
    lab.remember("the release train leaves from platform nine", linking="off")
    question = "the release train leaves"
    assert set(lab.recall(question, log=False).ids) == {1, 2}
    clock.advance(days=2)
    assert lab.recall(question).ids == (2,)
    assert lab.memories["access"].to_list() == [0.0, 1.0]


@pytest.mark.long
def test_a_fact_that_upkeep_would_retract_is_not_recalled(opened, clock):
    lab = opened("factgraph")
    lab.facts.add("Ada", "uses", "Rust", confidence=0.4)
    assert len(lab.recall("What does Ada use?", log=False)) == 1
    clock.advance(days=7 * 30)
    assert len(lab.recall("What does Ada use?")) == 0
    assert lab.memories["access"].to_list() == [0.0]


@pytest.mark.long
def test_an_expired_memory_supersedes_no_valid_one(opened, clock):
    lab = opened("cascade")  # which looks at the ten nearest
    for number in range(30):
        lab.remember(f"the release train leaves on track {number}", ttl_days=1.0, linking="off")
    result = lab.remember("the release train leaves at noon", linking="off")
    clock.advance(days=2)
    assert lab.recall("the release train leaves").ids == (result.id,)


def test_a_warning_that_has_expired_warns_nobody(opened, clock):
    lab = opened("cascade")
    lab.remember("Never log secrets", kind="negative", triggers=["println"], ttl_days=1.0)
    assert len(lab.recall("println! here", log=False)) == 1
    clock.advance(days=2)
    assert len(lab.recall("println! here", log=False)) == 0


def test_a_memory_that_is_pulled_back_in_time_shows_what_held_then(opened, clock):
    lab = opened("companion")
    lab.remember("We laughed about the goat", kind="event")
    start = clock()
    clock.advance(days=60)
    assert (
        len(
            lab.recall(
                "We laughed about the goat",
                at=memlab.kernel.base.clock.from_micros(start),
                log=False,
            )
        )
        == 1
    )


@pytest.mark.long
@pytest.mark.parametrize("pack", PACKS)
def test_a_recall_leaves_out_what_upkeep_would_take_out(opened, clock, pack):
    """Upkeep is the oracle: a memory that it removes at an instant is missing from a recall at that instant."""
    lab = opened(pack)
    draw = np.random.default_rng(5)
    for number in range(40):
        more = {"ttl_days": float(draw.integers(1, 90))} if draw.random() < 0.4 else {}
        kind = ("event", "preference", "fact")[number % 3]
        lab.remember(
            f"note {number}",
            kind=kind,
            confidence=float(draw.uniform(0.1, 1)),
            linking="off",
            **more,
        )
        clock.advance(days=1)
    for _ in range(4):
        clock.advance(days=12)
        state = lab.io.store.state
        rows = np.arange(state.rows)
        over = set((rows[is_expired(Moment(state, lab.policies.pack, rows, clock()))] + 1).tolist())
        before = set(
            lab.memories.filter(lab.memories["status"].is_in(memlab.kernel.schema.RECALLABLE))["id"]
        )
        lab.upkeep.maintain()
        after = set(
            lab.memories.filter(lab.memories["status"].is_in(memlab.kernel.schema.RECALLABLE))["id"]
        )
        assert over == before - after

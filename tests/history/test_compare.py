"""Two labs over time, each measure against what a reader would count."""

import polars as pl
import pytest

import memlab
from memlab.errors import InputError
from tests.displays import html_of

pytestmark = pytest.mark.long


@pytest.fixture
def pair(trigrams):
    """Return two labs with the same memories; the second forgets the unused ones."""
    labs = []
    for forgetful in (False, True):
        clock = memlab.ManualClock("2026-01-01")
        lab = memlab.open(embedder=trigrams, clock=clock)
        lab.remember("Ada lives in Rome", subject="Ada", predicate="lives-in", value="Rome")
        lab.remember("The bus was late")
        clock.advance(days=100)
        hits = lab.recall("where does Ada live?", limit=1)
        lab.feedback(hits[0], "success")
        if forgetful:
            lab.forget(2)
        clock.advance(days=100)
        lab.remember("Ada lives in Oslo", subject="Ada", predicate="lives-in", value="Oslo")
        clock.advance(days=10)
        lab.feedback(lab.recall("Ada lives in Rome", limit=1)[0], "fail")
        labs.append(lab)
    yield labs
    for lab in labs:
        lab.close()


@pytest.fixture
def frame(pair):
    return memlab.compare(*pair, names=("keeps", "forgets"), points=22).frame


def last(frame, lab):
    return frame.filter(pl.col("lab") == lab).row(-1, named=True)


def test_size_is_what_takes_part_in_recall(frame):
    assert last(frame, "keeps")["live"] == 3
    assert last(frame, "forgets")["live"] == 2
    assert last(frame, "forgets")["memories"] == 3
    assert frame.filter(pl.col("lab") == "keeps")["live"].to_list()[:2] == [2, 2]


def test_junk_is_faded_and_was_never_of_use(frame):
    # half-life 30 days: after 110 days without use less than .1 is left of the bus, and of Rome too, which was of use
    assert last(frame, "keeps")["junk"] == pytest.approx(1 / 3)
    assert last(frame, "forgets")["junk"] == 0


def test_a_hit_is_stale_when_a_newer_memory_says_otherwise(frame):
    keeps = frame.filter(pl.col("lab") == "keeps").drop_nulls("stale")
    assert keeps["stale"].to_list() == [0.0, 1.0]
    assert keeps["shown"].to_list() == [1, 1]
    assert keeps["failed"].to_list() == [0.0, 1.0]


def test_useful_memories_are_retained_as_long_as_the_pack_defines(frame, pair):
    row = last(frame, "keeps")
    memory = pair[0].memories.row(0, named=True)
    idle = (row["at"] - memory["accessed"]).total_seconds() / 86400
    assert row["retained"] == pytest.approx(0.5 ** (idle / 30))


def test_labs_of_the_same_pack_are_distinguished(pair):
    assert memlab.compare(*pair, points=3).labs == ("memlab (1)", "memlab (2)")


def test_a_comparison_renders(pair):
    comparison = memlab.compare(*pair, names=("<b>a", "b"), points=5)
    page = html_of(comparison)
    assert "<svg" in page
    assert "<b>a" not in page


def test_bad_input(pair, lab):
    with pytest.raises(InputError, match="nothing to compare"):
        memlab.compare(pair[0], lab)
    with pytest.raises(InputError, match="points"):
        memlab.compare(*pair, points=1)
    with pytest.raises(InputError, match="as many names"):
        memlab.compare(*pair, names=("one",))

"""Where two policies differ: the recalls furthest apart, with terms that sum to the scores."""

import polars as pl
import pytest
from probed_logs import World

from memlab.errors import InputError, UnknownName
from memlab.science.evaluation import evaluate
from tests.displays import html_of

WORLD = World(clusters=4, recalls=10, pool=12, limit=3, depth=4)
SOURCE = "(defpolicy mixed [similarity good] (+ (* 0.3 (min-max similarity)) (* 0.7 (min-max good)) 0.1))"


@pytest.fixture(scope="module")
def ev():
    frames = WORLD.frames()
    frames["candidates"] = frames["candidates"].with_columns(
        similarity=pl.col("noise"), text=pl.format("what item {} says <b>", pl.col("memory_id"))
    )
    return evaluate(WORLD.slates(**frames), [SOURCE, "far", pl.col("score").alias("again")])


def distance(first, second):
    """Return the sum over items of |1/rank - 1/rank|, where an item that is not shown counts 0."""
    ranks = [{item: rank for rank, item in enumerate(head, 1)} for head in (first, second)]

    def gain(item, position):
        return 1 / ranks[position][item] if item in ranks[position] else 0

    return sum(abs(gain(item, 0) - gain(item, 1)) for item in set(first) | set(second))


def heads(ev, name):
    target = ev.target(name)
    result = {}
    for recall, memory in zip(target.recall.tolist(), target.memory.to_list(), strict=True):
        result.setdefault(recall + 1, []).append(memory)
    return result


@pytest.mark.long
def test_they_are_the_recalls_whose_heads_are_furthest_apart(ev):
    mixed, logged = heads(ev, "mixed"), heads(ev, "logged")
    by_hand = sorted(mixed, key=lambda recall: (-distance(mixed[recall], logged[recall]), recall))[
        :4
    ]
    result = ev.disagreements("mixed", "logged", 4)
    assert [entry.decision for entry in result] == by_hand
    for entry in result:
        assert entry.distance == pytest.approx(
            distance(mixed[entry.decision], logged[entry.decision])
        )
        assert entry.shared == len(set(mixed[entry.decision]) & set(logged[entry.decision]))
        assert {item.memory for item in entry.items} == set(mixed[entry.decision]) | set(
            logged[entry.decision]
        )
        for item in entry.items:
            at = (
                mixed[entry.decision].index(item.memory) + 1
                if item.memory in mixed[entry.decision]
                else None
            )
            assert item.ranks[0] == at
            assert item.text == f"what item {item.memory} says <b>"
            assert item.shown == WORLD.shown[entry.decision - 1, item.memory - 1]


@pytest.mark.long
def test_terms_sum_to_the_score(ev):
    for entry in ev.disagreements("mixed", "logged", 3):
        explained = [item for item in entry.items if item.terms[0]]
        assert explained
        for item in explained:
            assert item.terms[1] == ()
            if item.scores[0] is not None:
                assert sum(value for _, value in item.terms[0]) == pytest.approx(item.scores[0])


def test_policies_that_agree_have_none(ev):
    assert len(ev.disagreements("again", "logged")) == 0
    assert ev.disagreements("again", "logged").frame.is_empty()


def test_they_render_and_escape(ev):
    result = ev.disagreements("far", "mixed", 2)
    assert result.frame.height == sum(len(entry.items) for entry in result)
    assert repr(result).startswith("far vs. mixed: the 2 recalls")
    assert "&lt;b&gt;" in html_of(result)
    assert "<b>what" not in html_of(result)
    assert len(result[:1]) == 1


def test_unknown_names_and_numbers_are_refused(ev):
    with pytest.raises(UnknownName, match="Did you mean mixed"):
        ev.disagreements("mixd", "logged")
    with pytest.raises(InputError, match="n is a whole number"):
        ev.disagreements("mixed", "logged", 0)

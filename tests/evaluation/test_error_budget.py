"""The error of all verdicts of a log: each comparison has its share, fixed when it begins and spent once."""

import json

import numpy as np
import polars as pl
import pytest
from test_verdicts import challenged

import memlab
from memlab.kernel.slates import Slates
from memlab.science.evaluation.parts import level_of


def with_second(slates, *, after, name="c", live="a"):
    """Return the log with another challenger, equal to the live pack, that joins after some recalls."""

    def joined(number, text):
        if number < after:
            return text
        logged = json.loads(text)
        logged["heads"][name] = {"hash": "k", "ids": logged["live"]}
        if logged["design"] == "ab":
            logged["shares"][name] = 0.5
        return json.dumps(logged)

    decisions = slates.decisions.collect()
    texts = [joined(*row) for row in decisions.select("decision", "challenge").rows()]
    hashes = [live] * len(texts)
    changed = decisions.with_columns(challenge=pl.Series(texts), pack_hash=pl.Series(hashes))
    return Slates(changed.lazy(), slates.candidates, slates.exposures, slates.feedback)


def first(slates, count):
    """Return the log as it was after ``count`` recalls."""
    tables = slates.decisions, slates.candidates, slates.exposures, slates.feedback
    return Slates(*(table.filter(pl.col("decision") < count) for table in tables))


def figures(evaluation):
    return (
        evaluation.sentence,
        # An estimate with a nan equals no other in Python 3.13.
        *map(repr, (evaluation.better, evaluation.difference, evaluation.planned)),
        evaluation.needed,
        evaluation.track.to_dict(as_series=False),
    )


def test_the_shares_are_fixed_and_sum_to_the_error():
    errors = [1 - level_of(number, 0.95) for number in range(1, 20_000)]
    assert errors == sorted(errors, reverse=True)
    assert sum(errors) == pytest.approx(0.05, abs=1e-5)
    assert sum(errors) < 0.05


@pytest.mark.parametrize("design", ["extra", "lot", "ab"])
@pytest.mark.parametrize("after", [1, 150, 299])
def test_a_later_challenge_changes_no_bit_of_a_running_one(design, after):
    slates = challenged(design, gain=0.2)
    alone = memlab.verdict(slates)["b"]
    both = memlab.verdict(with_second(slates, after=after))
    assert figures(both["b"]) == figures(alone)
    assert (both["b"].number, both["c"].number) == (1, 2)
    assert both["c"].level == level_of(2, 0.95)


def test_asked_by_name_the_share_is_the_same():
    slates = with_second(challenged("extra"), after=100)
    every = memlab.verdict(slates)
    for name in ("b", "c"):
        assert figures(memlab.verdict(slates, name)[name]) == figures(every[name])


def test_a_longer_log_keeps_the_share_of_each_comparison():
    """A look at each length: the share of the first is the same at all of them."""
    slates = with_second(challenged("extra"), after=100)
    for length in (50, 101, 300):
        verdict = memlab.verdict(first(slates, length))
        assert {item.challenger: item.number for item in verdict} == (
            {"b": 1} if length < 101 else {"b": 1, "c": 2}
        )


def test_another_version_is_another_comparison_and_the_old_one_goes_on_with_its_share():
    slates = challenged("extra", recalls=90)
    decisions = slates.decisions.collect()

    def of(hashes):
        lives = np.repeat(hashes, 30).tolist()
        changed = decisions.with_columns(pack_hash=pl.Series(lives))
        return memlab.verdict(
            Slates(changed.lazy(), slates.candidates, slates.exposures, slates.feedback)
        )["b"]

    assert (of(["a", "a", "z"]).number, of(["a", "a", "z"]).recalls) == (2, 30)
    assert (of(["a", "z", "a"]).number, of(["a", "z", "a"]).recalls) == (1, 60)
    assert of(["a", "z", "y"]).number == 3


def test_a_lab_that_starts_another_challenge_keeps_its_verdict(trigrams):
    """On the same recalls of one lab: the second challenge starts after them, and was logged."""
    clock = memlab.ManualClock("2026-03-01")
    blind = '(pack blind "Least asked for.") (defpolicy recall-score [access] (- 0 access))'
    near = '(pack near "Words.") (defpolicy recall-score [lexical] lexical)'
    with memlab.open(embedder=trigrams, clock=clock) as lab:
        lab.remember([f"note {n} on {'red' if n % 2 else 'blue'} birds" for n in range(20)])
        lab.challenge(blind)
        for _ in range(60):
            clock.advance(hours=1)
            for hit in lab.recall("red birds", limit=4):
                lab.feedback(hit, reward=float("red" in hit.text))
        before = lab.verdict(horizon="1h", missing="zero")["blind"]
        lab.challenge(near)
        assert figures(lab.verdict(horizon="1h", missing="zero")["blind"]) == figures(before)
        at = before.recalls
        clock.advance(hours=2)
        for hit in lab.recall("blue birds", limit=4):
            lab.feedback(hit, reward=1.0)
        clock.advance(hours=2)
        lab.recall("red birds", limit=4)
        after = lab.verdict(horizon="1h", missing="zero")
        assert (after["blind"].number, after["near"].number) == (1, 2)
        assert after["blind"].level == before.level
        assert after["blind"].track.head(at)["low"].to_list() == before.track["low"].to_list()

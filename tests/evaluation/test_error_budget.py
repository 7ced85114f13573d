"""The error of all verdicts of a log: each comparison has its share, fixed when it begins and spent once."""

import json

import numpy as np
import polars as pl
import pytest
from test_verdicts import challenged

import memlab
from memlab.errors import InputError
from memlab.kernel.slates import Slates
from memlab.science.evaluation._sequence import level_of


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


@pytest.mark.long
@pytest.mark.parametrize("design", ["extra", "lot", "ab"])
@pytest.mark.parametrize("after", [1, 150, 299])
def test_a_later_challenge_changes_no_bit_of_a_running_one(design, after):
    slates = challenged(design, gain=0.2)
    alone = memlab.verdict(slates)["b"]
    both = memlab.verdict(with_second(slates, after=after))
    assert figures(both["b"]) == figures(alone)
    assert (both["b"].number, both["c"].number) == (1, 2)
    assert both["c"].level == level_of(2, 0.95)


@pytest.mark.long
def test_asked_by_name_the_share_is_the_same():
    slates = with_second(challenged("extra"), after=100)
    every = memlab.verdict(slates)
    for name in ("b", "c"):
        assert figures(memlab.verdict(slates, name)[name]) == figures(every[name])


@pytest.mark.long
def test_a_longer_log_keeps_the_share_of_each_comparison():
    """A look at each length: the share of the first is the same at all of them."""
    slates = with_second(challenged("extra"), after=100)
    for length in (50, 101, 300):
        verdict = memlab.verdict(first(slates, length))
        assert {item.challenger: item.number for item in verdict} == (
            {"b": 1} if length < 101 else {"b": 1, "c": 2}
        )


@pytest.mark.long
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


@pytest.mark.long
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


WORDS, BLIND, NEAR = (
    f'(pack {name} "A challenger.") (defpolicy recall-score [{feature}] {score})'
    for name, feature, score in (
        ("words", "lexical", "lexical"),
        ("blind", "access", "(- 0 access)"),
        ("near", "closeness", "closeness"),
    )
)


@pytest.fixture
def birds(trigrams):
    """A lab of twenty notes, and a function that recalls and judges ``count`` times."""
    clock = memlab.ManualClock("2026-03-01")
    with memlab.open(embedder=trigrams, clock=clock) as lab:
        lab.remember([f"note {n} on {'red' if n % 2 else 'blue'} birds" for n in range(20)])

        def recall(count):
            for _ in range(count):
                clock.advance(hours=1)
                for hit in lab.recall("red birds", limit=4):
                    lab.feedback(hit, reward=float("red" in hit.text))

        yield lab, recall


def numbers_of(slates):
    return {
        verdict.challenger: (verdict.number, verdict.level)
        for verdict in memlab.verdict(slates, missing="zero")
    }


def cut(slates, start, stop):
    """Return the recalls of a log with these indices."""
    kept = slates.decisions.select("decision").collect()["decision"].sort()[start:stop].implode()
    tables = slates.decisions, slates.candidates, slates.exposures, slates.feedback
    return Slates(*(table.filter(pl.col("decision").is_in(kept)) for table in tables))


@pytest.mark.long
def test_every_part_of_a_log_has_the_level_of_the_whole(birds):
    lab, recall = birds
    for source in (BLIND, WORDS, NEAR):
        lab.challenge(source)
        recall(6)
    whole = lab.slates()
    expected = {
        name: (number, level_of(number, 0.95))
        for number, name in enumerate(("blind", "words", "near"), 1)
    }
    assert numbers_of(whole) == expected
    assert numbers_of(cut(whole, 12, 18)) == expected
    assert numbers_of(cut(whole, 6, 12)) == {name: expected[name] for name in ("blind", "words")}
    for name in expected:
        assert (
            memlab.verdict(cut(whole, 15, 18), name, missing="zero")[name].number
            == (expected[name][0])
        )


@pytest.mark.long
def test_the_event_states_number_and_share_and_a_reopened_lab_counts_on(disk):
    with disk() as lab:
        lab.challenge("companion")
        lab.policies.end_challenge("companion")
        lab.challenge("associative")
    with disk() as lab:
        (event,) = (body for body in lab.policies.challenges if body.name == "associative")
        assert (event.number, event.share) == (2, pytest.approx(6 / (np.pi * 2) ** 2))
        again = lab.challenge("companion")
        assert (again.number, again.share) == (1, pytest.approx(6 / np.pi**2))


@pytest.mark.long
def test_a_challenge_without_a_recall_has_spent_its_share(birds):
    lab, recall = birds
    lab.challenge(BLIND)
    lab.policies.end_challenge("blind")
    lab.challenge(WORDS)
    recall(3)
    assert numbers_of(lab.slates())["words"] == (2, level_of(2, 0.95))


@pytest.mark.long
def test_a_new_live_pack_begins_a_comparison_and_the_old_one_keeps_its_number(birds):
    lab, recall = birds
    lab.challenge(WORDS)
    recall(3)
    lab.policies.use(NEAR)
    recall(3)
    assert [challenge.number for challenge in lab.policies.challenges] == [2]
    assert numbers_of(lab.slates()) == {"words": (2, level_of(2, 0.95))}
    assert lab.challenge(BLIND).number == 3
    lab.policies.use("memlab")
    assert {item.name: item.number for item in lab.policies.challenges} == {"words": 1, "blind": 4}
    recall(3)
    assert numbers_of(lab.slates()) == {
        "words": (1, level_of(1, 0.95)),
        "blind": (4, level_of(4, 0.95)),
    }


@pytest.mark.long
def test_designs_with_one_estimand_continue_a_comparison(birds):
    lab, recall = birds
    for design, number in (("extra", 1), ("lot", 1), ("ab", 2), ("extra", 1)):
        assert lab.challenge(WORDS, design=design).number == number
        recall(3)
        assert numbers_of(lab.slates())["words"][0] == number
        lab.policies.end_challenge("words")


def without_numbers(slates):
    """Return a log as labs wrote it before comparisons were numbered."""

    def plain(text):
        logged = json.loads(text)
        for head in logged["heads"].values():
            del head["number"], head["share"]
        return json.dumps(logged)

    decisions = slates.decisions.collect()
    texts = pl.Series([text and plain(text) for text in decisions["challenge"]])
    changed = decisions.with_columns(challenge=texts).lazy()
    return Slates(changed, slates.candidates, slates.exposures, slates.feedback)


@pytest.mark.long
def test_a_challenge_from_before_is_counted_in_its_log(birds):
    lab, recall = birds
    lab.challenge(BLIND)
    lab.policies.end_challenge("blind")
    for source in (WORDS, NEAR):
        lab.challenge(source)
        recall(4)
    old = without_numbers(lab.slates())
    assert {name: number for name, (number, _) in numbers_of(old).items()} == {
        "words": 1,
        "near": 2,
    }


@pytest.mark.long
def test_an_old_challenge_never_shares_a_number_with_a_new_one():
    """Recalls of a new comparison state number 3; an old one that begins later has 4."""
    slates = challenged("extra", recalls=60)

    def text(number, logged):
        logged = json.loads(logged)
        if number < 30:
            logged["heads"]["b"] |= {"number": 3, "share": 0.5}
        else:
            logged["heads"]["c"] = {"hash": "k", "ids": logged["live"]}
        return json.dumps(logged)

    decisions = slates.decisions.collect()
    texts = [text(*row) for row in decisions.select("decision", "challenge").rows()]
    changed = decisions.with_columns(challenge=pl.Series(texts)).lazy()
    result = memlab.verdict(Slates(changed, slates.candidates, slates.exposures, slates.feedback))
    assert {item.challenger: item.number for item in result} == {"b": 3, "c": 4}
    # A stated share counts as stated, also when its formula changes later.
    assert result["b"].level == pytest.approx(1 - 0.05 * 0.5)


@pytest.mark.parametrize(
    ("number", "share"), [(0, 0.5), (1, 0.0), (-1, 0.5), (1, 1.5), (1, -0.1), (2, float("nan"))]
)
def test_a_wrong_share_is_refused_with_its_recall(number, share):
    slates = challenged("extra", recalls=3)
    decisions = slates.decisions.collect()

    def text(logged):
        logged = json.loads(logged)
        logged["heads"]["b"] |= {"number": number, "share": share}
        return json.dumps(logged)

    changed = decisions.with_columns(
        challenge=pl.Series([text(logged) for logged in decisions["challenge"]])
    ).lazy()
    with pytest.raises(InputError, match="recall 0"):
        memlab.verdict(Slates(changed, slates.candidates, slates.exposures, slates.feedback))

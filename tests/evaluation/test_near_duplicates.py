"""Near-duplicates that a policy would show together and the log showed one by one: bounded, and said."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import memlab
from memlab import Slates
from memlab.science.evaluation._duplicates import find_repeated
from memlab.science.evaluation._log import read_log

pytestmark = pytest.mark.long


def wide(recalls=300, seed=0, pool=12, limit=3):
    """Return a table in which the new policy prefers three copies of one fact, of which the first earns."""
    dice = np.random.default_rng(seed)
    rows = []
    for recall in range(recalls):
        fact = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9]
        old = dice.permutation(pool).astype(float)
        old[9:] -= pool
        new = np.array(old)
        new[9:] += 3 * pool
        head = np.argsort(-old)[:limit].tolist()
        shown, probe = list(head), int(dice.choice(np.setdiff1d(np.arange(pool), head)))
        shown.insert(int(dice.integers(1, limit + 1)), probe)
        used = set()
        for rank, item in enumerate(shown, 1):
            worth = 0.8 if fact[item] == 9 else 0.5
            clicked = float(dice.random() < worth and fact[item] not in used)
            used |= {fact[item]} if clicked else set()
            rows.append(
                (
                    recall,
                    item,
                    rank,
                    clicked,
                    1.0 if item in head else 1 / 9,
                    old[item],
                    new[item],
                    fact[item],
                )
            )
        rows += [
            (recall, item, None, None, 1 / 9, old[item], new[item], fact[item])
            for item in range(pool)
            if item not in shown
        ]
    names = ["q", "item", "rank", "clicked", "p", "old", "new", "group"]
    return pl.DataFrame(rows, schema=names, orient="row")


def slates_of(frame):
    return Slates.from_wide(
        frame,
        decision="q",
        item="item",
        shown="rank",
        reward="clicked",
        propensity="p",
        limit=3,
        scores=["old", "new"],
    )


def find_slowly(log, rows, ranks):
    """Return the repeated rows, by loops over all pairs."""
    values = log.pool(["group"])["group"].to_list()
    own, repeated = dict(zip(rows.tolist(), ranks.tolist(), strict=True)), set()
    for item, rank in own.items():
        if not 0 < log.propensity[item] < 1:
            continue
        for other in range(len(log.recall)):
            same = log.recall[other] == log.recall[item] and other != item
            if not same or values[other] != values[item]:
                continue
            first = other in own and 0 < log.propensity[other] < 1 and own[other] < rank
            instead = other not in own and log.exposed[other] and log.propensity[other] >= 1
            if first or instead:
                repeated.add(item)
    return sorted(repeated)


def test_repeated_items_are_those_of_a_search_over_all_pairs():
    dice = np.random.default_rng(3)
    frame = wide(recalls=20)
    frame = frame.with_columns(group=pl.Series(dice.integers(0, 5, len(frame))))
    log = read_log(slates_of(frame))
    for _ in range(20):
        rows = np.sort(
            np.concatenate(
                [dice.choice(12, 4, replace=False) + 12 * recall for recall in range(20)]
            )
        )
        ranks = np.concatenate([dice.permutation(4) + 1 for _ in range(20)])
        assert find_repeated(log, rows, ranks).tolist() == find_slowly(log, rows, ranks)


def test_copies_that_no_recall_showed_together_count_as_any_reward():
    """The true value of the new policy is 1 - .2^3; a sum of three copies is 2.4."""
    evaluation = memlab.evaluate(slates_of(wide()), ["old", "new"])
    new = next(row for row in evaluation.rows if row.policy == "new")
    truth = 1 - 0.2**3
    assert new.value.low <= truth <= new.value.high
    assert new.verdict == "not separated"
    assert new.measured.unsupported == pytest.approx(2 / 3)
    assert any(
        "repeat an item that no recall showed with them" in note for note in evaluation.notes
    )
    assert "redundancy" not in {gate.name for gate in new.untested}


def test_a_log_that_does_not_know_its_copies_says_so():
    evaluation = memlab.evaluate(slates_of(wide().drop("group")), ["old", "new"])
    new = next(row for row in evaluation.rows if row.policy == "new")
    assert "redundancy" in {gate.name for gate in (*new.untested, *new.closed)}
    assert "redundancy" in evaluation.to_dict()["headline"]


def test_the_memories_of_a_lab_tell_its_copies():
    lab = memlab.open()
    texts = [
        "The deploy day is Friday.",
        "the deploy day is friday",
        "Tests run with pytest.",
        "The user likes green tea.",
        "The user likes black tea.",
    ]
    ids = [lab.remember(text).id for text in texts]
    for _ in range(3):
        lab.recall("When is the deploy day?", limit=1)
    log = read_log(lab.slates())
    log = replace(log, propensity=np.full(len(log.recall), 0.5))
    rows = np.arange(len(log.recall))
    ranks = np.concatenate([np.arange(1, count + 1) for count in np.bincount(log.recall)])
    repeated = log.ids["memory_id"].to_numpy()[find_repeated(log, rows, ranks)]
    assert set(repeated.tolist()) == {ids[1]}


def test_feedback_that_still_arrives_is_said():
    days = pl.datetime_range(
        pl.datetime(2026, 1, 1), pl.datetime(2026, 3, 1), "1d", time_zone="UTC", eager=True
    )
    frame = pl.DataFrame({"q": range(len(days)), "item": 1, "rank": 1, "r": 1.0, "at": days})
    columns = {"decision": "q", "item": "item", "shown": "rank", "reward": "r", "at": "at"}
    for delay, expected in (("6h", False), ("8d", True)):
        log = Slates.from_wide(
            frame.with_columns(later=pl.col("at").dt.offset_by(delay)),
            **columns,
            feedback_at="later",
        )
        notes = read_log(log).notes
        assert any('Set horizon="24d"' in note for note in notes) == expected
        assert not any("Set horizon" in note for note in read_log(log, horizon=1).notes)


def test_heavy_tails_are_said():
    dice = np.random.default_rng(1)
    tail = np.minimum((1 - dice.random(900)) ** (-1 / 1.6), 100.0)
    for reward, expected in (
        (tail, True),
        (dice.normal(50, 9, 900), False),
        ((tail > 20) * 1.0, False),
    ):
        frame = wide(recalls=225).filter(pl.col("rank").is_not_null())
        log = Slates.from_wide(
            frame.with_columns(clicked=pl.Series(reward)),
            decision="q",
            item="item",
            shown="rank",
            reward="clicked",
            propensity="p",
            limit=3,
            scores=["old", "new"],
            reward_range=(0.0, 100.0),
        )
        notes = memlab.evaluate(log, ["old", "new"]).notes
        assert any("heavy tails" in note for note in notes) == expected

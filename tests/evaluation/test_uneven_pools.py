"""Logs whose recalls had pools of unequal size: the ranks of their candidates, and the results of the gates."""

import numpy as np
import polars as pl
import pytest

from memlab import Slates
from memlab.science.evaluation import evaluate
from memlab.science.evaluation._tests import Balance

pytestmark = pytest.mark.long


def log_of(sizes, *, sampler):
    """Log each candidate with a random propensity; return the recall, position and draw of each candidate as well."""
    dice = np.random.default_rng(4)
    recall = np.repeat(np.arange(len(sizes)), sizes)
    place = np.concatenate([np.arange(size) for size in sizes])
    propensity = dice.uniform(0.2, 0.5, len(recall))
    shown = dice.random(len(recall)) < propensity
    candidates = pl.DataFrame(
        {
            "decision": recall,
            "memory_id": place + 1,
            "score": -place.astype(float),
            "other": dice.random(len(recall)),
            "propensity": propensity,
        }
    )
    exposures = candidates.filter(shown).select("decision", "memory_id", "propensity")
    exposures = exposures.with_columns(
        position=pl.int_range(1, pl.len() + 1).over("decision").cast(pl.Int64)
    )
    reward = dice.integers(0, 2, len(exposures)).astype(float)
    slates = Slates.from_frames(
        decisions=pl.DataFrame({"decision": np.arange(len(sizes)), "limit": 1}).with_columns(
            sampler=pl.lit(sampler)
        ),
        candidates=candidates,
        exposures=exposures,
        feedback=exposures.select("decision", "memory_id", reward=pl.Series(reward)),
        empty="keep",
    )
    return slates, recall, place, propensity, shown, candidates["other"].to_numpy()


def balance_of(slates):
    row = next(row for row in evaluate(slates, ["other"]).rows if row.policy == "other")
    return next(gate.figure for gate in row.measured.gates if gate.name == "balance")


def expected(recall, position, propensity, propensity_shown, other, *, rank, weight=None):
    head = np.zeros(len(recall))
    for number in np.unique(recall):
        rows = np.flatnonzero(recall == number)
        head[rows[np.argmax(other[rows])]] = 1.0
    fixed = np.column_stack([np.ones(len(recall)), rank])
    return Balance(fixed, propensity_shown, propensity, recall, weight).p(head[:, None])


@pytest.mark.parametrize("sizes", [[3, 12] * 100, [80] + [3] * 100], ids=["padded", "one large"])
def test_propensities_are_held_against_ranks_from_0_to_1_whatever_the_size_of_a_pool(sizes):
    slates, recall, place, *rest = log_of(sizes, sampler="probe")
    p = expected(recall, place, *rest, rank=place / np.array(sizes)[recall])
    assert balance_of(slates) == pytest.approx(p)


def test_propensities_of_a_gumbel_draw_are_weighed_by_the_same_place_in_all_other_recalls():
    sizes = [3, 12] * 100
    slates, recall, place, propensity, *rest = log_of(sizes, sampler="gumbel")
    weight = [
        propensity[(place == place[row]) & (recall != recall[row])].mean()
        for row in range(len(recall))
    ]
    p = expected(
        recall,
        place,
        propensity,
        *rest,
        rank=place / np.array(sizes)[recall],
        weight=np.array(weight),
    )
    assert balance_of(slates) == pytest.approx(p)

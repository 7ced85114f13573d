"""How often places are looked at is itself estimated, and intervals know how far it may be off."""

import numpy as np
import polars as pl
import pytest
from test_position import world

from memlab import Slates
from memlab.science.evaluation import evaluate

RECALLS, PARTS = 400, 40


def turned(log):
    """Estimate the value of a policy that reverses the usual top-k, which depends on the position effects."""
    evaluation = evaluate(log, ["turned"], position=True)
    return next(row.value for row in evaluation.rows if row.policy == "turned")


@pytest.mark.long
def test_the_error_of_a_value_is_about_that_of_estimating_all_of_it_without_each_fortieth_of_the_log():
    log, _ = world(0.8, recalls=RECALLS, seed=2)
    left = [
        turned(
            Slates(
                *(
                    table.filter(pl.col("decision") % PARTS != part)
                    for table in (log.decisions, log.candidates, log.exposures, log.feedback)
                )
            )
        ).value
        for part in range(PARTS)
    ]
    jackknife = np.std(left) * np.sqrt(PARTS - 1)
    assert turned(log).error == pytest.approx(jackknife, rel=0.15)

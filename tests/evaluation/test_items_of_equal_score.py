"""Tests that look at rewards given the score: items that share the greatest score are compared among themselves."""

import numpy as np

from memlab.science.evaluation._tests import position_p, score_strata


def test_rewards_that_follow_the_score_alone_say_nothing_of_places_where_most_items_have_the_greatest():
    """Two items in a hundred have a lower score, stand lower and earn nothing."""
    low = np.tile(np.arange(50) == 0, 8)
    recall, position = np.arange(400) // 4, np.where(low, 3, np.arange(400) % 2 + 1)
    score, reward = np.where(low, 0.5, 1.0), np.where(low, 0.0, 1.0)
    strata = score_strata(score, position - 1, recall)
    assert np.isnan(position_p(strata, position, reward, recall))

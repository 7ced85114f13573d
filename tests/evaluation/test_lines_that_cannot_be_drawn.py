"""Rewards read from answers that the judged sample cannot correct are not calibrated, without a warning."""

import polars as pl
import pytest
from probed_logs import World

from memlab.science.evaluation import evaluate

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("judged", "read"),
    [([0.0, 0.0], [0.25, 0.75]), ([0.0, 1.0], [0.5, 0.5])],
    ids=["all were judged alike", "all were read alike"],
)
def test_rewards_count_as_they_were_read_and_numpy_warns_of_nothing(judged, read):
    world = World(clusters=10, recalls=16, pool=12, limit=3, depth=4)
    table = world.frames()["feedback"].with_row_index()
    odd = (pl.col("index") // 2) % 2 == 0
    by_hand = pl.col("index") % 2 == 0
    given = pl.when(odd).then(read[0]).otherwise(read[1])
    true = pl.when(odd).then(judged[0]).otherwise(judged[1])
    table = table.with_columns(
        reward=pl.when(by_hand).then(true).otherwise(given),
        source=pl.when(by_hand).then(pl.lit("user")).otherwise(pl.lit("attributed")),
        attributed=given,
    ).drop("index")
    notes = evaluate(world.slates(feedback=table), ["good"], missing="censor").notes
    assert any("are not calibrated" in note for note in notes)

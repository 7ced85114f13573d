"""A log as arrays: the same whatever the order of its rows, and refused by row where it contradicts itself."""

import numpy as np
import polars as pl
import pytest
from probed_logs import World

from memlab import Slates
from memlab.errors import InputError
from memlab.science.evaluation._log import read_log

WORLD = World(clusters=3, recalls=4, pool=8, limit=2, depth=3, rate=0.8, seed=4)


def read(**changed):
    return read_log(WORLD.slates(**changed))


def altered(name, row, **values):
    """Return a table with some values of one row replaced."""
    frame = WORLD.frames()[name]
    for column, value in values.items():
        series = frame[column].to_list()
        series[row] = value
        frame = frame.with_columns(
            pl.Series(column, series, dtype=frame.schema[column], strict=False)
        )
    return {name: frame}


def test_the_arrays_hold_what_the_tables_say():
    log = read()
    assert len(log) == 12
    assert log.recall.tolist() == np.repeat(np.arange(12), 8).tolist()
    assert (log.exposed.reshape(12, 8) == WORLD.shown).all()
    np.testing.assert_array_equal(log.propensity.reshape(12, 8), WORLD.propensity)
    assert (log.reward.reshape(12, 8)[WORLD.shown] == WORLD.reward[WORLD.shown]).all()
    assert np.isnan(log.reward[~log.exposed]).all()
    assert (log.clusters, log.cluster.tolist()) == (3, np.repeat([0, 1, 2], 4).tolist())
    assert (log.silent, log.open, log.notes) == (0.0, 0, ())


def test_the_order_of_rows_does_not_matter():
    plain = read()
    frames = {
        name: frame.sample(fraction=1.0, shuffle=True, seed=7)
        for name, frame in WORLD.frames().items()
    }
    mixed = read(**frames)
    for name in ("recall", "propensity", "exposed", "reward", "limit", "cluster"):
        np.testing.assert_array_equal(getattr(mixed, name), getattr(plain, name))
    assert mixed.pool(["good"]).equals(plain.pool(["good"]))


def test_ids_may_be_text():
    text = [
        pl.col("decision").cast(pl.String).str.zfill(4),
        pl.col("memory_id").cast(pl.String).str.zfill(3),
    ]
    frames = {
        name: frame.with_columns(text if "memory_id" in frame.columns else text[0])
        for name, frame in WORLD.frames().items()
    }
    np.testing.assert_array_equal(read(**frames).reward, read().reward)


def test_a_recall_without_a_cluster_is_one_of_its_own():
    assert read(**altered("decisions", 0, cluster=None)).clusters == 4
    bare = WORLD.frames()["decisions"].drop("cluster")
    assert read(decisions=bare).clusters == 12


def test_shown_candidates_have_the_propensity_of_their_exposure():
    drawn = altered("exposures", 0, propensity=0.25)
    log = read(**drawn)
    row = drawn["exposures"].row(0, named=True)
    assert log.propensity[(row["decision"] - 1) * 8 + row["memory_id"] - 1] == 0.25


def test_an_unknown_propensity_stays_unknown():
    frames = WORLD.frames()
    bare = {name: frames[name].drop("propensity") for name in ("candidates", "exposures")}
    assert np.isnan(read(**bare).propensity).all()


def test_silence_is_counted_and_is_zero_only_if_said():
    frames = WORLD.frames()
    half = {"feedback": frames["feedback"].head(frames["feedback"].height // 2)}
    log = read(**half)
    assert log.silent == pytest.approx(0.5, abs=0.03)
    assert np.isnan(log.reward[log.exposed]).mean() == pytest.approx(log.silent)
    zero = read_log(WORLD.slates(**half), zero=True)
    assert (zero.silent, np.isnan(zero.reward[zero.exposed]).any()) == (0.0, False)


def test_recalls_whose_window_is_open_are_left_out_whole():
    log = read_log(WORLD.slates(), horizon=5 * 3_600_000_000)
    assert (len(log), log.open) == (7, 5)
    assert log.recall.max() == 6
    assert log.pool(["good"]).height == 7 * 8


def test_a_recall_without_candidates_is_reported():
    frames = WORLD.frames()
    gone = {
        name: frames[name].filter(pl.col("decision") != 3)
        for name in ("candidates", "exposures", "feedback")
    }
    assert read(**gone).notes == (
        "1 recall without candidates: no policy can show an item, so the reward is 0.",
    )


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (
            altered("exposures", 3, propensity=0.0),
            r"Row 3 of exposures \(recall .*, memory .*\) has the propensity",
        ),
        (altered("exposures", 3, propensity=1.01), "Row 3 of exposures .* propensity 1.01"),
        (altered("exposures", 3, propensity=-0.1), "Row 3 of exposures .* propensity -0.1"),
        (altered("exposures", 3, propensity=float("nan")), "Row 3 of exposures .* propensity nan"),
        (
            altered("candidates", 5, propensity=1.5),
            r"Row 5 of candidates .* propensity 1.5. Log a probability between 0 and 1",
        ),
        (
            altered("candidates", 5, propensity=float("nan")),
            "Row 5 of candidates .* propensity nan",
        ),
        (
            altered("decisions", 1, decision=1),
            "Row 0 of decisions has the id 1, which is null or not unique",
        ),
        (altered("decisions", 1, decision=None), "Row 1 of decisions has the id None"),
        (altered("decisions", 1, limit=0), "Recall 2 has the limit 0"),
        (altered("decisions", 1, limit=None), "Recall 2 has the limit None"),
        (altered("candidates", 1, memory_id=1), "Memory 1 is a candidate of recall 1 twice"),
        (altered("candidates", 1, memory_id=None), "A candidate of recall 1 has no memory_id"),
        (
            altered("candidates", 0, decision=99),
            "candidates has the recall 99, and decisions does not",
        ),
        (
            altered("exposures", 0, decision=99),
            "exposures has the recall 99, and decisions does not",
        ),
        (
            altered("exposures", 0, memory_id=99),
            "Recall 1 shows memory 99, which is not among its candidates",
        ),
    ],
)
def test_a_log_that_contradicts_itself_is_refused(changed, reason):
    with pytest.raises(InputError, match=reason):
        read(**changed)


def test_an_item_shown_twice_is_refused():
    exposures = WORLD.frames()["exposures"]
    with pytest.raises(InputError, match=r"Recall 1 shows memory .* twice"):
        read(exposures=pl.concat([exposures, exposures.head(1)]))


def test_shown_items_must_have_been_candidates():
    frames = WORLD.frames()
    exposures = frames["exposures"].with_columns(propensity=pl.lit(None, dtype=pl.Float64))
    first = exposures.row(0, named=True)
    hit = (pl.col("decision") == first["decision"]) & (pl.col("memory_id") == first["memory_id"])
    candidates = frames["candidates"].with_columns(
        propensity=pl.when(hit).then(0.0).otherwise("propensity")
    )
    with pytest.raises(InputError, match="whose propensity in candidates is 0"):
        read(exposures=exposures, candidates=candidates)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("decisions", "The log has no recalls"),
        ("exposures", "The table exposures is empty"),
        ("candidates", "not among its cand"),
    ],
)
def test_empty_tables_are_refused(table, reason):
    with pytest.raises(InputError, match=reason):
        read(**{table: WORLD.frames()[table].clear()})


@pytest.mark.parametrize(
    ("table", "column"),
    [("decisions", "limit"), ("candidates", "memory_id"), ("exposures", "decision")],
)
def test_missing_columns_are_named(table, column):
    with pytest.raises(InputError, match=f"The table {table} has no column {column}"):
        read(**{table: WORLD.frames()[table].drop(column)})


def test_ids_of_two_types_are_refused():
    exposures = WORLD.frames()["exposures"].with_columns(pl.col("decision").cast(pl.String))
    with pytest.raises(InputError, match="decision is String in exposures and Int64 in decisions"):
        read(exposures=exposures)


def test_labels_need_no_exposures():
    log = read_log(WORLD.slates(exposures=WORLD.frames()["exposures"].clear()), feedback=False)
    assert not log.exposed.any()


@pytest.mark.long
def test_tables_may_be_lazy_scans(tmp_path):
    frames = WORLD.frames()
    for name, frame in frames.items():
        frame.write_parquet(tmp_path / f"{name}.parquet")
    scans = (
        pl.scan_parquet(tmp_path / f"{name}.parquet")
        for name in ("decisions", "candidates", "exposures", "feedback")
    )
    np.testing.assert_array_equal(read_log(Slates(*scans)).reward, read().reward)

"""Retention as a forecast: the policies of a lab on histories of uses, and scores that scikit-learn agrees with."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.errors import DatasetError
from memlab.kernel.base.clock import ManualClock
from memlab.kernel.policies import load_pack, pack_names
from memlab.kernel.recall import Moment
from memlab.science.bench import bench_reviews, bench_wanted
from memlab.science.bench._uses import Uses, replay, retain
from memlab.subjects.opening import open_lab

START = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = [0.0, 0.004, 1.5, 4.2, 4.3, 15.0, 40.5, 41.0, 90.0, 91.5, 140.0]
RATINGS = [1, 3, 3, 2, 1, 3, 4, 3, 1, 3, 2]
LOG = Path(os.environ.get("MEMLAB_DATA", "/nowhere")) / "fsrs" / "review_logs_josh.csv"


@pytest.mark.long
@pytest.mark.parametrize("name", pack_names())
def test_retention_is_that_of_a_lab(name):
    pack, clock, expected = load_pack(name), ManualClock(START), []
    with open_lab(pack=pack, clock=clock) as lab:
        lab.remember("A card.", linking="off")
        for days, rating in zip(DAYS, RATINGS, strict=True):
            clock.set(START + timedelta(days=days))
            with lab.io.store.reading() as state:
                moment = Moment(state, pack, np.zeros(1, np.int64), clock())
                expected.append(float(moment.retention()[0]))
            hits = lab.recall("card", limit=1)
            if not hits:  # the pack has forgotten the memory
                break
            lab.feedback(hits[0], "fail" if rating == 1 else "success", rating=rating)
    count = len(expected)
    item = np.zeros(count, np.int64)
    uses = Uses(item, np.array(DAYS[:count]), np.array(RATINGS[:count], float), np.zeros(1))
    values = retain(pack, uses, replay(pack, uses), item, np.arange(count) - 1, uses.days)
    assert values.tolist() == expected
    assert count > 5


@pytest.mark.long
def test_items_do_not_mix():
    pack = load_pack("fsrs")
    generator = np.random.default_rng(3)
    alone, item, days, ratings = [], [], [], []
    for card in range(20):
        count = int(generator.integers(1, 9))
        own = np.sort(generator.uniform(0, 60, count))
        rating = generator.integers(1, 5, count).astype(float)
        uses = Uses(np.zeros(count, np.int64), own, rating, own[:1])
        alone += replay(pack, uses)["stability"].tolist()
        item += [card] * count
        days += own.tolist()
        ratings += rating.tolist()
    first = np.array([days[item.index(card)] for card in range(20)])
    together = replay(pack, Uses(np.array(item), np.array(days), np.array(ratings), first))
    assert together["stability"].tolist() == alone


def log_of(cards=60, seed=1):
    """Reviews of cards whose chance of recall falls with the days since the last review."""
    generator = np.random.default_rng(seed)
    rows = []
    for card in range(cards):
        day, gap = int(generator.integers(0, 20_000)) / 1024, 1.0
        for _ in range(8):
            recalled = generator.random() < 0.95 * 0.9 ** (gap / 6)
            rows.append((card, day, 3 if recalled else 1))
            gap = gap * 2.2 if recalled else 1.0
            day += round(gap * 1024) / 1024  # exact, so that sums and differences are too
    return pl.DataFrame(rows, schema=["card_id", "day_offset", "rating"], orient="row")


@pytest.mark.long
def test_scores_are_those_of_scikit_learn():
    from sklearn.metrics import log_loss, roc_auc_score

    result = bench_reviews(log_of(), packs=["fsrs", "memlab"], splits=3)
    for row in result.frame.iter_rows(named=True):
        own = result.predictions.filter(pl.col("pack") == row["pack"])
        assert row["log_loss"] == pytest.approx(log_loss(own["outcome"], own["chance"]), abs=1e-9)
        assert row["auc"] == pytest.approx(roc_auc_score(own["outcome"], own["chance"]), abs=1e-9)
        assert row["low"] < row["log_loss"] < row["high"]
    assert result.calibration["count"].sum() == len(result.predictions)
    assert "log-loss" in repr(result)
    assert result.to_dict()["rows"][0]["pack"] == result.frame["pack"][0]
    assert result.figure().axes[0].get_xlabel() == "predicted chance"


@pytest.mark.long
def test_a_forecast_does_not_read_what_comes_after_it():
    log = log_of()
    whole = bench_reviews(log, packs=["fsrs"], splits=1).predictions
    last = whole["days"].max()
    changed = log.with_columns(
        rating=pl.when(pl.col("day_offset") == last).then(4 - pl.col("rating")).otherwise("rating")
    )
    other = bench_reviews(changed, packs=["fsrs"], splits=1).predictions
    columns = ["pack", "item", "days", "chance", "recalibrated"]
    assert whole.select(columns).equals(other.select(columns))


@pytest.mark.long
def test_logs_of_anki_and_of_pyfsrs_are_the_same():
    log = log_of()
    times = [START + timedelta(days=day) for day in log["day_offset"]]
    ours = log.select("card_id", review_rating="rating").with_columns(review_time=pl.Series(times))
    anki = log.select(cid="card_id", ease="rating").with_columns(
        id=pl.Series([int(time.timestamp() * 1000) for time in times])
    )
    text = ours.with_columns(pl.col("review_time").dt.to_string("iso:strict"))
    frames = [bench_reviews(frame, packs=["fsrs"]).frame for frame in (ours, anki, text)]
    for frame in frames[1:]:
        assert frame["log_loss"].to_list() == pytest.approx(
            frames[0]["log_loss"].to_list(), abs=1e-6
        )


@pytest.mark.long
def test_users_are_cut_by_their_own_time():
    log = log_of()
    late = log.with_columns(user_id=pl.lit("b"), day_offset=pl.col("day_offset") + 5000)
    both = pl.concat([log.with_columns(user_id=pl.lit("a")), late.select(*log.columns, "user_id")])
    one = bench_reviews(log, packs=["fsrs"]).frame
    two = bench_reviews(both, packs=["fsrs"]).frame
    assert two["log_loss"].to_list() == pytest.approx(one["log_loss"].to_list(), abs=1e-9)
    assert two["count"].to_list() == (one["count"] * 2).to_list()


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (pl.DataFrame({"card_id": [1]}), "no column for ratings"),
        (pl.DataFrame({"card_id": [1], "rating": [7], "day_offset": [1]}), "rating of 1 to 4"),
        (
            pl.DataFrame({"card_id": [1], "rating": [3], "day_offset": [1]}),
            "cannot be predicted|can be predicted",
        ),
        (pl.DataFrame({"card_id": [1], "rating": [3], "review_time": ["soon"]}), "no time"),
        (pl.DataFrame({"card_id": [1], "rating": ["x"], "day_offset": [1]}), "rating of 1 to 4"),
        (pl.DataFrame({"card_id": [None], "rating": [3], "day_offset": [1.0]}), "no card"),
        (pl.DataFrame({"card_id": [1], "rating": [3], "day_offset": [float("inf")]}), "no time"),
    ],
)
def test_other_logs_are_refused(frame, says):
    with pytest.raises(DatasetError, match=says):
        bench_reviews(frame, packs=["fsrs"])


@pytest.mark.long
def test_wanted_memories_are_predicted_from_the_log():
    clock = ManualClock(START)
    with open_lab(clock=clock) as lab:
        lab.remember(
            [f"Note {number}: {word}" for number, word in enumerate(("tea", "dog", "sea"))]
        )
        with pytest.raises(DatasetError, match="No memory of this log got positive feedback"):
            bench_wanted(lab)
        for week in range(10):
            clock.set(START + timedelta(days=7 * week + 3))
            hits = lab.recall("tea" if week % 2 else "dog", limit=1)
            lab.feedback(hits[0], "success")
        result = bench_wanted(lab, packs=["memlab", "fsrs"])
        rows = result.predictions.filter(pl.col("pack") == "memlab")
        # three memories at each of the weeks that have a past and a week after them
        assert set(rows["item"].to_list()) == {0, 1, 2}
        assert rows.filter(pl.col("item") == 2)["outcome"].sum() == 0
        assert rows["outcome"].sum() == rows["days"].n_unique()
        with pytest.raises(DatasetError, match="less than three times"):
            bench_wanted(lab, within_days=60)


@pytest.mark.long
def test_fitted_parameters_predict_better():
    result = bench_reviews(log_of(cards=150), packs=["fsrs"], fit=["fsrs"])
    losses = dict(result.frame.select("pack", "log_loss").iter_rows())
    assert losses["fsrs (fitted)"] < losses["fsrs"]
    assert result.parameters["parameter"].n_unique() == 21
    with pytest.raises(DatasetError, match="no bounded parameters"):
        bench_reviews(log_of(), packs=["fsrs"], fit=["factgraph"])


@pytest.mark.skipif(not LOG.exists(), reason="needs the review log of py-fsrs in MEMLAB_DATA")
def test_the_log_of_pyfsrs():
    result = bench_reviews(pl.read_csv(LOG), packs=["fsrs"])
    scores = result.frame.row(0, named=True)
    assert (scores["pack"], scores["count"]) == ("fsrs", 2665)
    assert scores["log_loss"] == pytest.approx(0.4378, abs=5e-5)
    assert memlab.packs()

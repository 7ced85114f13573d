"""A run's pools can be logged again under another random design: the design is exact, the true values stay."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lives import small
from redraw import Pools, _positions, _probes

from memlab.errors import InputError
from memlab.science.simulation import live


@pytest.fixture(scope="module")
def pools(fortnight):
    return Pools.of(fortnight, rate=0.6, depth=8, floor=0.4, explore=pl.col("activation").clip(0))


def collected(slates):
    return [
        frame.collect()
        for frame in (slates.decisions, slates.candidates, slates.exposures, slates.feedback)
    ]


@pytest.mark.long
def test_the_same_seed_gives_the_same_log(pools):
    for item, two in zip(collected(pools.redraw(7)), collected(pools.redraw(7)), strict=True):
        assert item.equals(two)
    assert not pools.redraw(7).exposures.collect().equals(pools.redraw(8).exposures.collect())


@pytest.mark.long
def test_the_head_is_always_shown_and_at_most_one_probe(pools):
    exposures = pools.redraw(1).exposures.collect()
    decisions = pools.decisions.select("decision", "limit", "candidates")
    by = exposures.group_by("decision").agg(
        heads=(~pl.col("probe")).sum(),
        probes=pl.col("probe").sum(),
        last=(pl.col("probe") & (pl.col("position") != pl.len())).any(),
        counted=(pl.col("position") == pl.int_range(1, pl.len() + 1)).all(),
    )
    joined = decisions.join(by, on="decision", how="left")
    assert (
        joined["heads"] == joined.select(pl.min_horizontal("limit", "candidates")).to_series()
    ).all()
    assert joined["probes"].max() == 1
    assert not joined["last"].any()
    assert joined["counted"].all()
    probes = exposures.filter("probe")
    assert (probes["conditional"] * 0.6).to_numpy() == pytest.approx(
        probes["propensity"].to_numpy()
    )


@pytest.mark.long
def test_the_design_is_the_contracts(pools):
    frame = pools.candidates.with_columns(position=pl.int_range(1, pl.len() + 1).over("decision"))
    head, band = (
        frame.filter(pl.col("position") <= 5),
        frame.filter(pl.col("position").is_between(6, 13)),
    )
    assert (head["propensity"] == 1).all()
    assert (frame.filter(pl.col("position") > 13)["propensity"] == 0).all()
    expected = band.with_columns(w=pl.col("activation").clip(0)).with_columns(
        p=0.6
        * (0.6 * pl.col("w") / pl.col("w").sum().over("decision") + 0.4 / pl.len().over("decision"))
    )
    assert expected["propensity"].to_numpy() == pytest.approx(expected["p"].to_numpy())
    assert band.group_by("decision").agg(pl.col("propensity").sum())[
        "propensity"
    ].to_numpy() == pytest.approx(0.6)


@pytest.mark.long
def test_the_logged_probabilities_are_kept_unless_others_are_given(fortnight):
    pools = Pools.of(fortnight)
    key = ["decision", "memory_id"]
    logged = fortnight.slates.candidates.select(*key, "propensity").collect()
    redrawn = pools.redraw(3).candidates.select(*key, "propensity").collect()
    assert redrawn.sort(key).equals(logged.sort(key))
    table = pools.redraw(3).exposures.collect()
    assert table.filter("probe").height == pytest.approx(0.9 * len(fortnight.questions), rel=0.1)


@pytest.mark.long
def test_several_probes_have_no_probabilities_of_their_own():
    with live(small("differs", days=4)) as life:
        with pytest.raises(InputError, match="several probes"):
            Pools.of(life)
        assert Pools.of(life, rate=1.0).redraw(0).exposures.collect()["probe"].any()


@pytest.mark.long
def test_weighing_by_propensities_is_unbiased(fortnight, pools):
    """The value of a policy that the log would not have chosen, from 300 logs: within four standard errors."""
    candidates = pools.candidates.with_columns(
        position=pl.int_range(1, pl.len() + 1).over("decision")
    )
    target = candidates.filter(pl.col("position").is_between(4, 8)).select("decision", "memory_id")
    worth = target.join(fortnight.worth, on=["decision", "memory_id"])
    answers, known = fortnight.world.user.answers, fortnight.world.events()[-1].at
    early = fortnight.slates.decisions.filter(
        pl.col("at").dt.epoch("us") < known - 5 * 86_400_000_000
    )
    early = early.select("decision").collect()
    truth = worth.join(early, on="decision")["reward"].sum() * answers / early.height
    values = []
    for seed in range(300):
        log = pools.redraw(seed)
        key = ["decision", "memory_id"]
        paid = (
            log.feedback.filter(pl.col("reward") == 1)
            .join(log.exposures, on=key)
            .join(target.lazy(), on=key)
        )
        paid = paid.join(early.lazy(), on="decision")
        values.append(paid.select((1 / pl.col("propensity")).sum()).collect().item() / early.height)
    assert abs(np.mean(values) - truth) < 4 * np.std(values) / len(values) ** 0.5
    assert np.std(values) > 0


@pytest.mark.long
def test_clusters_are_drawn_whole_and_distinguished(pools):
    log = pools.redraw(5, clusters=7)
    decisions, candidates, exposures, _ = collected(log)
    assert decisions["cluster"].n_unique() == 7
    assert decisions["decision"].n_unique() == decisions.height
    assert set(candidates["decision"]) == set(
        decisions.filter(pl.col("candidates") > 0)["decision"]
    )
    sizes = dict(pools.decisions.group_by("cluster").len().iter_rows())
    for name, size in decisions.group_by("cluster").len().iter_rows():
        assert size == sizes[name.rsplit(" (", 1)[0]]
    assert exposures.join(candidates, on=["decision", "memory_id"], how="anti").is_empty()


def test_without_a_rate_nothing_is_left_to_chance(fortnight):
    log = Pools.of(fortnight, rate=0.0).redraw(1)
    assert not log.exposures.collect()["probe"].any()
    assert log.decisions.collect()["sampler"].unique().to_list() == ["deterministic"]


@pytest.mark.long
def test_impossible_designs_are_refused(fortnight, pools):
    with pytest.raises(InputError, match="rate"):
        Pools.of(fortnight, rate=1.1)
    with pytest.raises(InputError, match="floor"):
        Pools.of(fortnight, rate=1, floor=-1)
    with pytest.raises(InputError, match="depth"):
        Pools.of(fortnight, rate=1, depth=0)
    with pytest.raises(InputError, match="cluster"):
        pools.redraw(0, clusters=0)


@pytest.mark.long
@given(
    st.lists(st.lists(st.sampled_from([0.0, 0.1, 0.25, 1.0]), max_size=6), min_size=1, max_size=6),
    st.integers(0, 99),
)
def test_probes_are_drawn_as_one_would_by_hand(pools, seed):
    """Pool by pool: the first candidate at which the running sum of probabilities passes the roll."""
    capped = [
        [p if sum(c for c in pool[: i + 1] if c < 1) <= 1 else 0.0 for i, p in enumerate(pool)]
        for pool in pools
    ]
    count = np.array([len(pool) for pool in capped])
    start = np.cumsum(count) - count
    flat = np.array([p for pool in capped for p in pool], dtype=np.float64)
    rolls = np.random.default_rng(seed).random(len(capped))
    expected = []
    for pool, begin, roll in zip(capped, start, rolls, strict=True):
        upto = 0.0
        for index, p in enumerate(pool):
            upto += p if p < 1 else 0.0
            if roll < upto:
                expected.append(begin + index)
                break
    assert _probes(flat, start, count, np.random.default_rng(seed)).tolist() == expected


@given(st.lists(st.integers(0, 4), max_size=8))
def test_positions_count_within_each_decision(sizes):
    owner = np.repeat(np.arange(len(sizes)), sizes)
    assert _positions(owner).tolist() == [
        position for size in sizes for position in range(1, size + 1)
    ]

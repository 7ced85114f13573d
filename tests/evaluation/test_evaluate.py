"""``memlab.evaluate`` on logs whose truth is known, and on logs that must be refused."""

import numpy as np
import polars as pl
import pytest
from probed_logs import World

from memlab import Slates
from memlab.errors import InputError, UnknownName
from memlab.science.evaluation import GATES, evaluate

MANY = World(clusters=40, recalls=40, seed=1)
FEW = World(clusters=8, recalls=60, seed=2)


def row(ev, name):
    return next(row for row in ev.rows if row.policy == name)


def closed(ev, name):
    return {gate.name for gate in row(ev, name).closed}


@pytest.fixture(scope="module")
def many():
    return evaluate(MANY.slates(), ["good", "noise", "far"])


@pytest.mark.long
def test_the_truth_lies_in_the_intervals_and_the_better_policy_is_found(many):
    for name, score in (("good", "good"), ("noise", "noise"), ("logged", "plain")):
        value = row(many, name).value
        assert value.low < MANY.value(score) < value.high
    values = [row.value.value for row in many.rows if row.value and np.isfinite(row.value.value)]
    assert values == sorted(values, reverse=True)
    assert (many.rows[0].policy, many.rows[-1].policy) == ("good", "far")
    assert {row.policy: row.verdict for row in many.rows} == {
        "good": "better",
        "logged": "baseline",
        "noise": "not separated",
        "far": "not separated",
    }
    assert many.baseline == "logged"
    assert "good would have done better than logged." in repr(many)


@pytest.mark.long
def test_the_policy_that_logged_is_worth_the_mean_of_its_log(many):
    earned = np.where(MANY.rank <= MANY.limit, MANY.reward, 0).sum(axis=1).mean()
    assert row(many, "logged").value.value == pytest.approx(earned)


@pytest.mark.long
@pytest.mark.parametrize("estimator", ["snips", "ht"])
def test_the_value_is_that_of_a_loop_over_recalls(estimator):
    ev = evaluate(FEW.slates(), ["good"], estimator=estimator)
    certain = weighted = weight = probes = 0.0
    for recall in range(FEW.count):
        best = sorted(range(FEW.pool), key=lambda item: (-FEW.good[recall, item], item))[
            : FEW.limit
        ]
        for item in best:
            chance = FEW.propensity[recall, item]
            if chance == 1:
                certain += FEW.reward[recall, item]
                continue
            probes += chance > 0
            if FEW.shown[recall, item]:
                weighted += FEW.reward[recall, item] / chance
                weight += 1 / chance
    left = weighted if estimator == "ht" else probes * weighted / weight
    # what could not be shown (few items of this policy) is worth anything between the bounds
    low, high = row(ev, "good").lower, row(ev, "good").upper
    assert low == pytest.approx((certain + left) / FEW.count)
    assert high >= low
    assert low <= row(ev, "good").value.value <= high


@pytest.mark.long
def test_of_a_policy_that_was_never_shown_only_the_bounds_are_known(many):
    far = row(many, "far")
    assert (far.lower, far.upper) == (0.0, MANY.limit)
    assert (far.value.low, far.value.high) == (0.0, MANY.limit)
    assert np.isnan(far.value.value)
    assert far.difference.low < -2 < 2 < far.difference.high
    assert far.measured.unsupported == 1
    assert many.frame.filter(pl.col("policy") == "far")["value"].to_list() == [None]
    assert many.rows[-1] is far


def half_supported(reward):
    """Return a policy of two items of the logged top four and two from the end of the pool, which are unsupported."""
    world = World(clusters=10, recalls=30, limit=4, depth=4)
    world.reward[:] = reward
    half = world.plain.copy()
    half[world.rank == world.pool] = 50
    half[world.rank == world.pool - 1] = 49
    frames = world.frames()
    frames["candidates"] = frames["candidates"].with_columns(half=pl.Series(half.ravel()))
    return world, frames


@pytest.mark.long
def test_unsupported_items_widen_the_interval_by_the_range_of_rewards():
    world, frames = half_supported(1.0)
    ev = evaluate(world.slates(**frames), ["half"])
    values = row(ev, "half")
    assert (values.lower, values.upper) == pytest.approx((2.0, 4.0))
    assert (values.value.low, values.value.high) == pytest.approx((2.0, 4.0))
    assert (values.difference.low, values.difference.high) == pytest.approx((-2.0, 0.0))
    assert values.verdict == "not separated"
    _, zeros = half_supported(0.0)
    ev = evaluate(world.slates(**zeros), ["half"], reward_range=(-1.0, 0.0))
    assert row(ev, "half").upper == pytest.approx(0.0)
    assert row(ev, "half").verdict == "not separated"


@pytest.mark.long
def test_bounds_decide_when_even_the_worst_case_is_better():
    world = World(clusters=10, recalls=30, limit=4, depth=4)
    head, tail = world.rank <= 4, world.rank > 8
    world.reward, world.plain = np.where(head, 0.0, 1.0), -world.rank.astype(float)
    score = np.where(
        tail & (world.rank == 9), 9.0, np.where((world.rank > 4) & (world.rank <= 8), 5.0, 0.0)
    )
    frames = world.frames()
    frames["candidates"] = frames["candidates"].with_columns(
        below=pl.Series((score - 0.01 * world.rank).ravel())
    )
    ev = evaluate(world.slates(**frames), ["below"])
    # a quarter of it could not have been shown; the other three quarters earn 1 where the logged top-k earns 0
    assert row(ev, "below").measured.unsupported == 0.25
    assert row(ev, "below").verdict == "better"
    assert row(ev, "below").difference.low == pytest.approx(3.0)
    assert "below would have done better than logged." in repr(ev)


@pytest.mark.long
def test_a_deterministic_log_gives_a_sharp_value_only_to_logged_items():
    world = World(clusters=10, recalls=30, rate=0.0)
    ev = evaluate(world.slates(), ["good", pl.col("plain").alias("same")])
    good = row(ev, "good")
    assert good.value.low < world.value("good") < good.value.high
    assert good.upper - good.lower == pytest.approx(good.measured.unsupported * world.limit)
    assert row(ev, "same").value.value == row(ev, "logged").value.value
    assert not any(row.verdict in ("better", "worse") for row in ev.rows)
    assert any("lab.challenge" in line for line in ev.details)
    assert ev.model_values["good"] == pytest.approx(world.value("good"), abs=0.4)


@pytest.mark.long
def test_unknown_propensities_are_refused():
    frames = FEW.frames()
    bare = {name: frames[name].drop("propensity") for name in ("candidates", "exposures")}
    ev = evaluate(FEW.slates(**bare), ["good"])
    assert all("propensities" in closed(ev, name) for name in ("good", "logged"))
    assert row(ev, "good").value is None
    assert repr(ev).startswith("No ranking")
    # What was shown and earned needs no propensities.
    known = evaluate(FEW.slates(), ["good"])
    assert row(ev, "logged").value.value == pytest.approx(row(known, "logged").value.value)
    assert ev.observed.value == known.observed.value


@pytest.mark.long
def test_a_log_of_shown_items_alone_has_unknown_support():
    frames = FEW.frames()
    candidates = frames["candidates"].with_columns(propensity=pl.lit(None, dtype=pl.Float64))
    ev = evaluate(FEW.slates(candidates=candidates), ["good", "far"])
    assert np.isnan(row(ev, "good").measured.unsupported)
    assert ev.frame.filter(pl.col("policy") == "good")["unsupported"].to_list() == [None]
    assert any("unsupported items is unknown" in line for line in ev.details)


@pytest.mark.long
def test_propensities_that_are_not_those_of_the_draws_are_found_out():
    frames = FEW.frames()
    wrong = pl.when(pl.col("propensity") < 1).then(pl.col("propensity") / 3).otherwise("propensity")
    changed = {
        name: frames[name].with_columns(propensity=wrong) for name in ("candidates", "exposures")
    }
    assert "balance" in closed(evaluate(FEW.slates(**changed), ["good"]), "good")


@pytest.mark.long
def test_a_day_with_a_single_cluster_query_and_policy():
    frames = World(clusters=1, recalls=60).frames()
    day = frames["decisions"].with_columns(at=pl.lit(frames["decisions"]["at"][0]))
    ev = evaluate(World(clusters=1, recalls=60).slates(**{**frames, "decisions": day}), "good")
    assert "clusters" in closed(ev, "good")
    query = World(clusters=1, recalls=1)
    ev = evaluate(query.slates(), ["good"])
    assert "clusters" in closed(ev, "good")
    single = evaluate(FEW.slates(), ["good"], baseline="good")
    assert single.frame.height == 1
    assert repr(single).startswith("The expected reward of good is")
    assert single.pair is None
    assert not single.ranked


@pytest.mark.long
def test_a_log_of_one_cluster_falls_into_days():
    ev = evaluate(World(clusters=1, recalls=240).slates(), ["good"])
    assert ev.clusters == 10
    assert "10 clusters (day)" in ev.method
    by_recall = evaluate(World(clusters=1, recalls=240).slates(), ["good"], cluster="decision")
    assert by_recall.clusters == 240
    with pytest.raises(InputError, match="The table decisions has no column user"):
        evaluate(World(clusters=1, recalls=240).slates(), ["good"], cluster="user")


@pytest.mark.long
def test_recalls_that_earn_alike_are_not_taken_as_independent():
    world = World(clusters=12, recalls=40, spread=2.0, seed=4)
    frames = world.frames()
    alone = evaluate(
        world.slates(**{**frames, "decisions": frames["decisions"].drop("cluster")}), ["good"]
    )
    assert "independence" in closed(alone, "good")
    assert "independence" not in closed(evaluate(world.slates(), ["good"]), "good")


@pytest.mark.long
def test_the_baseline_may_be_named():
    ev = evaluate(FEW.slates(), ["good", "noise"], baseline="noise")
    assert ev.baseline == "noise"
    assert row(ev, "logged") if "logged" in ev.frame["policy"] else True
    assert row(ev, "noise").verdict == "baseline"
    assert evaluate(FEW.slates(), ["good"], baseline="logged").baseline == "logged"
    with pytest.raises(UnknownName, match="There is no policy to compare with"):
        evaluate(FEW.slates(), ["good"], baseline="goood")


@pytest.mark.long
def test_differences_are_paired():
    """Policies that share most of their head differ with far less error than their values have."""
    ev = evaluate(MANY.slates(), ["good"])
    gap, value = row(ev, "good").difference, row(ev, "good").value
    assert gap.error < 0.8 * value.error


@pytest.mark.long
def test_other_evaluated_policies_change_no_value():
    alone = row(evaluate(MANY.slates(), ["good"]), "good")
    together = evaluate(MANY.slates(), ["noise", "far", "good"])
    values = row(together, "good")
    assert alone.value == values.value
    # Of a difference, only the interval depends on the others: all intervals hold together.
    compared = sum(row.difference is not None for row in together.rows)
    assert compared > 1
    assert alone.difference.at_level(1 - 0.05 / compared) == values.difference


@pytest.mark.long
def test_the_number_of_recalls_that_would_do_is_told():
    ev = evaluate(World(clusters=16, recalls=40, seed=3).slates(), ["good", "noise"])
    first, second, count = ev.needed
    assert {first, second} < {"good", "noise", "logged"}
    assert count > 160
    assert f"Separating {first} and {second} needs about" in repr(ev) or count <= 640


@pytest.mark.long
def test_the_need_of_a_withheld_policy_is_stated_once():
    """Either recalls alone would do, or nothing says that they would."""
    short = evaluate(World(clusters=8, recalls=6, limit=2, rate=0.9, seed=3).slates(), ["good"])
    withheld = row(short, "good")
    assert "answered probes" in closed(short, "good")
    assert withheld.needed > 0
    assert short.needed == ("good", "logged", 48 + withheld.needed)
    assert repr(short).count("recalls at this probe rate") == 1
    assert repr(short).splitlines()[-1].startswith("Next: show items that good would show")
    bare = evaluate(
        World(clusters=8, recalls=6, limit=2, rate=0.9, seed=3).slates(), ["good", "far"]
    )
    data = bare.to_dict()
    assert {(entry["policy"], entry["gate"]) for entry in data["withheld"]} == {
        (row.policy, gate.name) for row in bare.rows for gate in row.closed
    }
    for item in data["withheld"]:
        assert any(item["reason"] in line for line in bare.details)
    assert [policy["recalls_needed"] for policy in data["policies"]] == [
        row.needed for row in bare.rows
    ]


@pytest.mark.long
def test_a_level_widens_intervals():
    narrow, wide = (
        row(evaluate(FEW.slates(), ["good"], level=level), "good").value for level in (0.8, 0.99)
    )
    assert narrow.value == wide.value
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


def heard(share, seed=5):
    dice = np.random.default_rng(seed)
    feedback = MANY.frames()["feedback"]
    return {"feedback": feedback.filter(pl.Series(dice.random(feedback.height) < share))}


@pytest.mark.long
def test_silence_is_not_a_no_unless_said():
    with pytest.raises(
        InputError,
        match="30% of the items shown have no reward: set what missing feedback counts as",
    ):
        evaluate(MANY.slates(**heard(0.7)), ["good"])
    censored = evaluate(MANY.slates(**heard(0.7)), ["good"], missing="censor")
    assert censored.silent == pytest.approx(0.3, abs=0.02)
    assert row(censored, "good").value.low < MANY.value("good") < row(censored, "good").value.high
    zero = evaluate(MANY.slates(**heard(0.7)), ["good"], missing="zero")
    assert row(zero, "good").value.value == pytest.approx(
        0.7 * row(censored, "good").value.value, rel=0.05
    )
    bounds = evaluate(MANY.slates(**heard(0.7)), ["good"], missing="bounds")
    assert row(bounds, "good").lower <= row(zero, "good").value.value + 0.05
    assert row(bounds, "good").value.low < row(censored, "good").value.low
    assert row(bounds, "good").value.high > row(censored, "good").value.high
    with pytest.raises(
        InputError, match="30% of the items shown have no known reward, and Horvitz-Thompson's sum"
    ):
        evaluate(MANY.slates(**heard(0.7)), ["good"], estimator="ht", missing="censor")
    few = evaluate(MANY.slates(**heard(0.95)), ["good"])
    assert few.silent == pytest.approx(0.05, abs=0.02)


@pytest.mark.long
def test_a_log_of_one_reward_does_not_say_what_silence_means():
    clicks = {"feedback": MANY.frames()["feedback"].filter(pl.col("reward") == 1)}
    with pytest.raises(InputError, match="Every reward in the log is 1"):
        evaluate(MANY.slates(**clicks), ["good"])
    assert row(
        evaluate(MANY.slates(**clicks), ["good"], missing="zero"), "good"
    ).value.low < MANY.value("good")


@pytest.mark.long
def test_silence_that_follows_the_score_is_not_left_out_but_weighed():
    dice = np.random.default_rng(6)
    chance = 1 / (1 + np.exp(-MANY.plain))
    frames = MANY.frames()
    odds = pl.DataFrame(
        {
            "decision": np.repeat(np.arange(1, MANY.count + 1), MANY.pool),
            "memory_id": np.tile(np.arange(1, MANY.pool + 1), MANY.count),
            "chance": chance.ravel(),
        }
    )
    kept = frames["feedback"].join(
        odds, on=["decision", "memory_id"], how="left", maintain_order="left"
    )
    kept = kept.filter(pl.Series(dice.random(kept.height)) < pl.col("chance")).drop("chance")
    censored = evaluate(MANY.slates(feedback=kept), ["good"], missing="censor")
    assert "silence" in closed(censored, "good")
    weighed = evaluate(MANY.slates(feedback=kept), ["good"], missing="inverse")
    assert "silence" not in closed(weighed, "good")
    assert row(weighed, "good").value.low < MANY.value("good") < row(weighed, "good").value.high


@pytest.mark.long
def test_rewards_that_come_late_wait_for_their_horizon():
    """A reward comes at once and its absence is told two days later: an open window would count the first alone."""
    frames = MANY.frames()
    late = pl.when(pl.col("reward") == 0).then(pl.col("at") + pl.duration(days=2)).otherwise("at")
    end = frames["decisions"]["at"].max()
    feedback = frames["feedback"].with_columns(at=late).filter(pl.col("at") <= end)
    naive = evaluate(MANY.slates(feedback=feedback), ["good"])
    fair = evaluate(MANY.slates(feedback=feedback), ["good"], horizon="3d")
    assert fair.open_windows == 72
    assert fair.recalls + fair.open_windows == MANY.count
    assert fair.silent == 0
    assert row(naive, "logged").value.value > row(fair, "logged").value.value


@pytest.mark.long
def test_frames_diagnostics_and_settings():
    ev = evaluate(FEW.slates(), ["good", "far"], horizon="1h", missing="zero")
    assert ev.frame.columns == [
        *("policy", "value", "low", "high", "difference", "difference_low", "difference_high", "p"),
        *("lower", "upper", "probes", "unsupported", "untested", "kind", "estimator", "verdict"),
    ]
    assert ev.diagnostics.height == 3 * len(GATES)
    assert (ev.settings.horizon, ev.settings.missing, ev.settings.estimator) == (
        "1h",
        "zero",
        "snips",
    )
    with pytest.raises(AttributeError):
        ev.baseline = "good"


@pytest.mark.parametrize(
    ("arguments", "error", "reason"),
    [
        ({"missing": "drop"}, UnknownName, "There is no missing of evaluate"),
        ({"estimator": "dr"}, UnknownName, "There is no estimator"),
        ({"level": 95}, InputError, "level must be a probability"),
        ({"level": True}, InputError, "level is a "),
        ({"reward_range": (1, 0)}, InputError, "reward_range must be the minimum"),
        ({"reward_range": (0, float("inf"))}, InputError, r"reward_range\[1\] is a finite number"),
        ({"reward_range": 1}, InputError, "reward_range is a tuple of 2"),
        ({"horizon": "soon"}, InputError, "horizon must be a number"),
        ({"cluster": 3}, InputError, "cluster is "),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments, error, reason):
    with pytest.raises(error, match=reason):
        evaluate(FEW.slates(), ["good"], **arguments)


@pytest.mark.long
def test_a_declared_range_of_rewards_is_kept_to():
    frames = FEW.frames()
    frames["feedback"] = frames["feedback"].with_columns(pl.col("reward") * 5)
    with pytest.raises(InputError, match=r"outside 0\.\.1"):
        evaluate(FEW.slates(**frames), ["good"])
    declared = Slates.from_frames(**frames, reward_range=(0, 5))
    ev = evaluate(declared, ["good"])
    assert ev.settings.reward_range == (0.0, 5.0)
    assert row(ev, "good").value.value == pytest.approx(
        5 * row(evaluate(FEW.slates(), ["good"]), "good").value.value
    )


@pytest.mark.long
def test_two_columns_of_anybodys_csv(tmp_path):
    frames = FEW.frames()
    wide = frames["candidates"].join(
        frames["feedback"].select("decision", "memory_id", "reward"),
        on=["decision", "memory_id"],
        how="left",
    )
    wide = wide.with_columns(
        rank=pl.Series(np.where(FEW.shown, FEW.rank, 0).ravel()),
        cluster=pl.Series(np.repeat(FEW.cluster, FEW.pool)),
    )
    wide.select(
        "decision", "memory_id", "rank", "reward", "propensity", "cluster", "good", "noise"
    ).write_csv(tmp_path / "log.csv")
    slates = Slates.from_wide(
        pl.read_csv(tmp_path / "log.csv"),
        decision="decision",
        item="memory_id",
        shown="rank",
        reward="reward",
        propensity="propensity",
        cluster="cluster",
        scores=["good", "noise"],
        limit=FEW.limit,
    )
    ev = evaluate(slates, ["good", "noise"])
    assert row(ev, "good").value.value == pytest.approx(
        row(evaluate(FEW.slates(), ["good"]), "good").value.value
    )


@pytest.mark.long
def test_a_lab_repeats_its_logged_recalls(lab, clock):
    """A pack with another damping is asked of the state before each recall; without edges it finds the same."""
    lab.policies.use(
        '(pack one "One.") (setting damping 0.5) (setting probe-rate 0.5)'
        " (defpolicy recall-score [activation] activation)"
    )
    lab.remember([f"note {number} about the harbour and the boat" for number in range(30)])
    for _ in range(12):
        clock.advance(hours=1)
        for hit in lab.recall("harbour boat 7", limit=3, explore=True):
            lab.feedback(hit, "success")
        lab.remember("a later note about the harbour boat 7")
    other = '(pack other "Other.") (setting damping 0.9) (defpolicy recall-score [activation] activation)'
    ev = evaluate(lab.slates(), {"same": lab.policies.pack, "other": other})
    assert {row.policy: row.kind for row in ev.rows} == {
        "same": "re-scored",
        "other": "re-recalled",
    }
    assert ev.target("other").memory.to_list() == ev.target("same").memory.to_list()
    assert ev.target("other").row.tolist() == ev.target("same").row.tolist()


@pytest.mark.long
def test_every_pair_is_either_different_or_indistinguishable():
    ev = evaluate(MANY.slates(), ["good", "noise", "plain"], baseline="plain")
    pairs = ev.pairs()
    assert pairs.height == 3
    for item in pairs.iter_rows(named=True):
        if item["verdict"] == "withheld":
            assert item["difference"] is None
            continue
        turned = evaluate(MANY.slates(), [item["policy"], item["other"]], baseline=item["other"])
        alone = row(turned, item["policy"])
        assert item["difference"] == pytest.approx(alone.difference.value)
        assert item["p"] >= alone.difference.p - 1e-12
        assert item["low"] <= item["difference"] <= item["high"]
    sharper = ev.pairs(adjust="bh")
    assert (sharper["p"].drop_nulls() <= pairs["p"].drop_nulls() + 1e-12).all()
    with pytest.raises(InputError, match="adjust"):
        ev.pairs(adjust="holm")


@pytest.mark.long
def test_the_text_ends_with_a_single_next_step():
    """A gate that no number of recalls opens comes before more recalls; a finding needs no step."""
    better = evaluate(MANY.slates(), ["good"])
    assert "Next:" not in repr(better)
    assert better.to_dict()["next"] is None
    few = evaluate(
        World(clusters=8, recalls=6, limit=2, rate=0.9, seed=3).slates(), ["good", "far"]
    )
    assert repr(few).count("Next:") == 1
    assert few.to_dict()["next"] in repr(few)
    frames = World(clusters=8, recalls=6).frames()
    unknown = frames["exposures"].with_columns(propensity=pl.lit(None, dtype=pl.Float64))
    blind = frames["candidates"].drop("propensity")
    bare = evaluate(
        World(clusters=8, recalls=6).slates(
            **{**frames, "exposures": unknown, "candidates": blind}
        ),
        ["good"],
    )
    assert repr(bare).splitlines()[-1].startswith("Next: Log the probability")

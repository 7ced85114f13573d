"""A comparison without each session, user and day: sums of the sequence, and verdicts that rest on one group."""

import numpy as np
import polars as pl
import pytest
from test_verdicts import challenged

import memlab
from memlab.kernel.slates import Slates
from memlab.science.evaluation._influence import level_without
from memlab.science.evaluation._sequence import RATES, WEIGHTS, Process


def process(dice, count=40, *, wide=False, sized=False):
    """Return a process of random observations, some of them known within bounds only."""
    values = dice.choice([-1.0, 0.0, 3.0], size=count, p=[0.2, 0.5, 0.3])
    floor = np.where(wide & (dice.random(count) < 0.1), -30.0, -2.0)
    sizes = dice.integers(1, 4, count).astype(float) if sized else np.ones(count)
    slack = 0.5 * (dice.random(count) < 0.2)
    ceiling = np.full(count, 5.0)
    return Process(values - slack, values + slack, floor, ceiling, sizes, 1.0)


def log_evidence(values, floor, sizes, kept, mean):
    """Return the logarithm of the mixture over the kept observations, by plain loops."""
    terms = []
    for rate, weight in zip(RATES, WEIGHTS, strict=True):
        total, earlier, count = np.log(weight), 0.0, 0.0
        for value, least, size, keep in zip(values, floor, sizes, kept, strict=True):
            expected = max(earlier / (count + 1) * size, least)
            reach = rate * max(expected - least, 1e-6)
            factor = 1.0 if reach < 1 else 0.9 / reach
            if keep:
                total += rate * (least + factor * (expected - least) - mean * size)
                total += np.log1p(rate * factor * (value - expected))
            earlier, count = earlier + value, count + size
        terms.append(total)
    return np.logaddexp.reduce(terms)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("sized", [False, True])
def test_bounds_without_a_group_are_those_of_the_definition(wide, sized):
    dice = np.random.default_rng(3)
    sums = process(dice, wide=wide, sized=sized)
    group = dice.integers(-1, 4, 40)
    bounds = sums.without(group, 4, 0.8)
    for number in range(4):
        kept = group != number
        middle = ((sums.lower + sums.upper) / 2)[kept].sum() / sums.sizes[kept].sum()
        assert bounds.mean[number] == pytest.approx(middle)
        for end, values, floor, sign in (
            (bounds.low, sums.lower, sums.floor, 1),
            (bounds.high, -sums.upper, -sums.ceiling, -1),
        ):
            at = sign * end[number]
            inside, outside = (
                log_evidence(values, floor, sums.sizes, kept, at + step) for step in (1e-6, -1e-6)
            )
            assert inside < np.log(10) <= outside


def test_without_no_group_the_bounds_are_those_of_the_sequence():
    sums = process(np.random.default_rng(4), sized=True)
    none = sums.without(np.full(40, -1), 1, 0.9)
    whole = sums.bounds(0.9)
    assert none.low[0] == pytest.approx(whole.low[-1])
    assert none.high[0] == pytest.approx(whole.high[-1])


def test_without_a_group_of_all_recalls_nothing_is_known():
    bounds = process(np.random.default_rng(5)).without(np.zeros(40, dtype=np.int64), 1, 0.8)
    assert (np.isnan(bounds.mean[0]), bounds.low[0], bounds.high[0]) == (True, -np.inf, np.inf)


@pytest.mark.long
@pytest.mark.parametrize("above", [True, False])
def test_earlier_recalls_are_decided_as_if_the_log_ended_there(above):
    dice = np.random.default_rng(6)
    whole = process(dice, 150)
    if not above:
        whole = Process(-whole.upper, -whole.lower, -whole.ceiling, -whole.floor, whole.sizes, 1.0)
    group = dice.integers(0, 5, 150)
    decided = whole.decided_without(group, range(5), 0.8, above=above)
    assert 0 < decided.sum() < 150
    for stop in range(5, 151, 5):
        part = Process(
            *(
                getattr(whole, name)[:stop]
                for name in ("lower", "upper", "floor", "ceiling", "sizes")
            ),
            1.0,
        )
        bounds = part.without(group[:stop], 5, 0.8)
        expected = bounds.low.min() > 0 if above else bounds.high.max() < 0
        assert decided[stop - 1] == expected


def with_groups(slates, hostile=(), **columns):
    """Return the log with columns of the decisions, and reversed rewards in some recalls.

    In hostile recalls, items of the challenger alone succeed and all other items fail.
    """
    decisions = slates.decisions.collect().with_columns(
        **{name: pl.Series(values) for name, values in columns.items()}
    )
    reversed_reward = (pl.col("memory_id") % 2 == 0) & (pl.col("memory_id") >= 4)
    feedback = slates.feedback.with_columns(
        reward=pl.when(pl.col("decision").is_in(list(hostile)))
        .then(reversed_reward.cast(pl.Float64))
        .otherwise("reward")
    )
    return Slates(decisions.lazy(), slates.candidates, slates.exposures, feedback)


SESSIONS = [f"s{number // 12}" for number in range(300)]
LOUD = [number // 48 == 3 for number in range(300)]


@pytest.mark.long
@pytest.mark.parametrize("design", ["extra", "lot", "ab"])
def test_honest_sessions_give_the_verdict(design):
    log = with_groups(challenged(design), session=SESSIONS)
    result = memlab.verdict(log)["b"]
    assert (result.better, result.rests_on) == ("b", "")
    sessions = result.influence.filter(kind="session")
    assert sessions["recalls"].to_list() == [12] * 25
    assert sessions["share"].sum() == pytest.approx(1)
    assert sessions["better"].unique().to_list() == ["b"]
    assert (sessions["low"] < sessions["difference"]).all()


@pytest.mark.long
def test_one_hostile_session_is_named_and_gives_no_verdict():
    slates = challenged("extra", gain=-0.05, seed=2)
    hostile = np.flatnonzero(LOUD).tolist()
    names = ["loud" if loud else name for loud, name in zip(LOUD, SESSIONS, strict=True)]
    # Without names of sessions the hostile one decides.
    assert memlab.verdict(with_groups(slates, hostile))["b"].better == "b"
    result = memlab.verdict(with_groups(slates, hostile, session=names))["b"]
    assert result.better is None
    assert result.since is None
    assert result.title == "No verdict on b: the gate single session is closed."
    assert (
        "without session loud (16% of the recalls), the packs are indistinguishable"
        in result.details
    )
    row = result.influence.filter(group="loud").row(0, named=True)
    assert row["difference"] < 0 < result.difference.value
    honest = memlab.verdict(slates)["b"].track
    assert row["recalls"] == 48
    assert row["difference"] == pytest.approx(
        (300 * honest["difference"][-1] - sum_loud(honest)) / 252
    )


def sum_loud(track):
    """Return the sum of the observations of the honest log at the recalls of the loud session."""
    sums = np.diff(track["difference"].to_numpy() * np.arange(1, 301), prepend=0)
    return sums[np.array(LOUD)].sum()


@pytest.mark.long
def test_a_log_of_one_session_gives_no_verdict():
    result = memlab.verdict(with_groups(challenged("extra"), session=["s"] * 300))["b"]
    assert result.better is None
    assert "all recalls are of session s" in result.details
    row = result.influence.row(0, named=True)
    assert (row["share"], row["difference"], row["better"]) == (1.0, None, None)


@pytest.mark.long
def test_recalls_without_a_session_are_never_left_out():
    names = [None if number < 290 else "s" for number in range(300)]
    result = memlab.verdict(with_groups(challenged("extra"), session=names))["b"]
    assert result.better == "b"
    assert result.influence["recalls"].to_list() == [10]
    nameless = memlab.verdict(with_groups(challenged("extra"), session=[None] * 300))["b"]
    assert nameless.better == "b"
    assert nameless.influence.filter(kind="session").is_empty()


@pytest.mark.long
def test_a_project_that_matters_is_named_and_leaves_the_verdict():
    projects = ["main" if number < 270 else "side" for number in range(300)]
    log = with_groups(challenged("extra", gain=0.3), session=SESSIONS, project=projects)
    result = memlab.verdict(log)["b"]
    assert result.better == "b"
    assert result.rests_on == (
        "Without project main (90% of the recalls), the packs are indistinguishable."
    )
    assert result.rests_on in result.sentence


@pytest.mark.long
def test_a_project_that_turns_the_verdict_withholds_it():
    projects = ["loud" if number % 3 == 0 else "quiet" for number in range(600)]
    log = challenged("ab", recalls=600, gain=-0.2)
    log = with_groups(log, range(0, 600, 3), project=projects)
    result = memlab.verdict(log)["b"]
    assert result.influence.filter(group="loud")["better"].item() == "live"
    assert result.better is None
    assert "without project loud (33% of the recalls), live is better" in result.details


@pytest.mark.long
def test_two_versions_of_one_pack_are_told_by_the_sign():
    """Both packs are named b, and the verdict turns without the loud project."""
    projects = ["loud" if number % 3 == 0 else "quiet" for number in range(600)]
    log = with_groups(
        challenged("ab", recalls=600, gain=-0.2),
        range(0, 600, 3),
        project=projects,
        pack=["b"] * 600,
    )
    assert "gate single project" in memlab.verdict(log)["b"].title


@pytest.mark.long
@pytest.mark.parametrize(
    "values", [[[1]] * 300, [{"a": 1}] * 300, [b"\xff"] * 300, list(range(300)), [1.5] * 300]
)
def test_columns_of_any_type_name_groups_or_none(values):
    result = memlab.verdict(with_groups(challenged("extra"), user=values))["b"]
    assert result.better == "b"
    assert set(result.influence["kind"]) <= {"user"}
    assert result.influence.columns == memlab.verdict(challenged("extra"))["b"].influence.columns


@pytest.mark.long
def test_control_characters_of_a_name_are_not_printed():
    names = ["\x1b[31mred"] * 300
    assert (
        "\x1b" not in memlab.verdict(with_groups(challenged("extra"), session=names))["b"].sentence
    )


@pytest.mark.long
def test_the_time_of_a_verdict_is_that_from_which_no_session_decides():
    times = np.datetime64("2026-01-01", "us") + np.arange(300) * np.timedelta64(1, "h")
    at = pl.Series(times).dt.replace_time_zone("UTC")
    plain = memlab.verdict(with_groups(challenged("extra"), at=at))["b"]
    sessions = [str(number // 40) for number in range(300)]
    log = with_groups(challenged("extra"), at=at, session=sessions)
    result = memlab.verdict(log)["b"]
    assert plain.since < result.since
    first = int((at < result.since).sum()) + 1

    def look(count):
        tables = log.decisions, log.candidates, log.exposures, log.feedback
        part = Slates(*(table.filter(pl.col("decision") < count) for table in tables))
        return memlab.verdict(part)["b"].better

    assert [look(first - 1), look(first)] == [None, "b"]


@pytest.mark.long
def test_a_block_has_a_bounded_weight():
    users = np.repeat(np.arange(12), 25)
    users[150:] = np.arange(100, 250)
    log = with_groups(challenged("extra"), session=[str(user) for user in users])
    result = memlab.verdict(log, cluster="session")["b"]
    ends = result.track["recalls"].to_numpy()
    assert ends.tolist() == [25, 50, 75, 100, 125, 150, *range(151, 301)]
    singles = memlab.verdict(log)["b"].track["difference"].to_numpy() * np.arange(1, 301)
    values = np.diff(singles[ends - 1], prepend=0)
    weights = np.minimum(np.diff(ends, prepend=0), 2)
    expected = (values * weights / np.diff(ends, prepend=0)).cumsum() / weights.cumsum()
    assert result.track["difference"].to_numpy() == pytest.approx(expected)


@pytest.mark.long
def test_blocks_reach_a_verdict():
    users = np.repeat(np.arange(150), 8)
    log = challenged("lot", recalls=1200, users=users.tolist(), gain=0.6, seed=1)
    result = memlab.verdict(log, cluster="cluster")["b"]
    assert result.track.height == 150
    assert result.better == "b"


@pytest.mark.long
def test_a_hostile_session_rarely_names_a_pack_in_a_tie():
    """The hostile session knows all earlier rewards and chooses its size; the bound on each side is .1."""
    named = np.zeros(2)
    runs = 300
    for seed in range(runs):
        dice = np.random.default_rng((11, seed))
        count, size = 300, int(dice.integers(5, 120))
        session = np.repeat(np.arange(60), 5)
        values = 5.0 * (dice.random(count) < 0.2) - dice.binomial(5, 0.2, count)
        start = int(dice.integers(0, count))
        sign = 1 if values[:start].sum() >= 0 else -1
        values = np.concatenate([values[:start], np.full(size, 5.0 * sign), values[start:]])
        session = np.concatenate([session[:start], np.full(size, 99), session[start:]])
        limit = np.full(len(values), 5.0)
        sums = Process(values, values, -limit, limit, np.ones(len(values)), 1.0)
        bounds = sums.bounds(0.97)
        for side, above in enumerate((True, False)):
            decided = sums.decided_without(
                session, np.unique(session).tolist(), level_without(0.95), above=above
            )
            named[side] += (decided & (bounds.low > 0 if above else bounds.high < 0)).any()
    assert (named / runs < 0.1).all()
    assert level_without(0.95) == pytest.approx(0.8)


@pytest.mark.long
def test_the_page_names_the_groups_that_matter_most(tmp_path):
    slates = challenged("extra", gain=-0.05, seed=2)
    names = ["<b>loud</b>" if loud else name for loud, name in zip(LOUD, SESSIONS, strict=True)]
    result = memlab.verdict(with_groups(slates, np.flatnonzero(LOUD).tolist(), session=names))
    assert result["b"].closed
    page = result.report(tmp_path / "out.html").read_text()
    table = page[page.index("Who decides this?") : page.index("Can it be trusted?")]
    assert table.index("&lt;b&gt;loud&lt;/b&gt;") < table.index("<td>session</td>", 2000)
    assert table.count("<td>session</td>") == 8
    assert "at a level of 80%" in table
    assert "single session" in page[page.index("Can it be trusted?") :]
    everything = with_groups(slates, session=["only"] * 300)
    alone = memlab.verdict(everything).report(tmp_path / "out.html").read_text()
    assert "no other recalls" in alone

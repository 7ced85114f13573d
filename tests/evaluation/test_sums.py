"""Sums of partitions: the bits of a log however it is cut, and the results of ``memlab.evaluate``."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import memlab
from memlab.errors import DatasetError, InputError, MemlabError, UnknownName
from memlab.science.evaluation import Evaluation, Sums, partial
from memlab.science.evaluation._exact import (
    LOWER,
    add_frames,
    exact_sums,
    fix,
    round_exact,
    unfix,
)
from memlab.science.evaluation._sums import choose_bits
from tests.properties import examples

COLUMNS = {
    "decision": "query_id",
    "item": "memory_id",
    "shown": "rank",
    "reward": "clicked",
    "propensity": "p",
    "limit": 3,
}
POLICIES = ["old_score", "new_score", "x"]


def make_log(recalls: int = 120, seed: int = 0, pool: int = 12, **more: Any) -> pl.DataFrame:
    """Return a log with awkward propensities and real-valued rewards, a row for each candidate."""
    dice = np.random.default_rng(seed)
    old = dice.random((recalls, pool))
    rank = np.argsort(np.argsort(-old, axis=1), axis=1) + 1
    p = np.where(rank <= 3, 1.0, np.where(rank <= 10, 0.7 / 7, 0.0))
    at = 3 + dice.integers(1, 8, recalls)
    drawn = dice.random(recalls) < 0.7
    probe = drawn[:, None] & (rank == at[:, None])
    place = np.where(drawn, dice.integers(2, 5, recalls), 9)[:, None]
    position = np.where(probe, place, np.where(rank <= 3, rank + (rank >= place), 0))
    reward = np.where(position > 0, dice.random((recalls, pool)) ** 3, np.nan)
    if more.pop("gaps", False):
        reward = np.where(dice.random((recalls, pool)) < 0.3, np.nan, reward)
    return pl.DataFrame(
        {
            "query_id": np.repeat(np.arange(recalls), pool),
            "memory_id": np.tile(np.arange(pool), recalls),
            "rank": position.ravel(),
            "clicked": reward.ravel(),
            "p": p.ravel(),
            "old_score": old.ravel(),
            "new_score": (0.5 * old + 0.5 * dice.random((recalls, pool))).ravel(),
            "x": dice.random((recalls, pool)).ravel(),
            "user": np.repeat(dice.integers(0, 15, recalls), pool),
        }
    ).with_columns(pl.col("clicked").fill_nan(None), pl.col("user").cast(pl.String))


CLUSTERED = COLUMNS | {"cluster": "user", "score": "old_score"}
NAMES = ["new_score", "x"]


def sum_parts(
    log: pl.DataFrame, codes: np.ndarray[Any, Any], columns: Any = CLUSTERED
) -> list[Sums]:
    """Return the sums of the parts of a log; ``codes`` has the part of each recall."""
    part = pl.Series(codes)[log["query_id"]]
    return [
        partial(log.filter(part == code), NAMES, columns=columns, missing="censor")
        for code in np.unique(codes)
    ]


def assert_close(first: Evaluation, second: Evaluation, *, same_gates: bool = True) -> None:
    """Assert that two evaluations agree to 1e-12, their gates included."""
    assert [row.policy for row in first.rows] == [row.policy for row in second.rows]
    for a, b in zip(first.rows, second.rows, strict=True):
        assert a.verdict == b.verdict
        numbers: list[tuple[float, float]] = [
            (a.lower, b.lower),
            (a.upper, b.upper),
            (a.estimate, b.estimate),
        ]
        numbers += [(a.adjusted, b.adjusted)]
        for left, right in ((a.value, b.value), (a.difference, b.difference)):
            assert (left is None) == (right is None)
            if left is not None and right is not None:
                names = ("value", "low", "high", "error", "p")
                numbers += [(getattr(left, name), getattr(right, name)) for name in names]
        assert a.measured is not None
        assert b.measured is not None
        assert a.measured.probes == b.measured.probes
        numbers += [(a.measured.unsupported, b.measured.unsupported)]
        if same_gates:
            for ours, theirs in zip(a.measured.gates, b.measured.gates, strict=True):
                assert ours.state == theirs.state, ours.name
                numbers += [(ours.figure, theirs.figure)]
        for left_number, right_number in numbers:
            assert left_number == pytest.approx(right_number, rel=1e-9, abs=1e-12, nan_ok=True)
    assert first.needed == second.needed
    assert (first.baseline, first.recalls, first.clusters) == (
        second.baseline,
        second.recalls,
        second.clusters,
    )


# -- exact sums -------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), max_size=40))
@examples(200)
def test_an_exact_sum_is_the_sum_of_fractions(values: list[float]) -> None:
    """The sum of floats as fractions is the reference; no rounding until the end."""
    column = np.array(values, dtype=np.float64)[:, None]
    total = exact_sums(column)[0]
    assert Fraction(total, 1 << 1127) == sum(map(Fraction, values), Fraction(0))
    if abs(total) < 1 << (1127 + 1023):
        assert round_exact(total) == math.fsum(values)


@pytest.mark.long
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.integers(0, 29))
@example([2.0**-23], 0)  # it has a lower part only
@examples(200)
def test_fixed_point_adds_without_order(values: list[float], cut: int) -> None:
    """Frames of two parts add up to the frame of the whole, and to the sum up to 2^-60 for each value."""
    fixed = fix(np.array(values)[:, None])
    frame = pl.DataFrame({"key": ["a"] * len(values), "s": fixed[:, 0], f"s{LOWER}": fixed[:, 1]})
    whole = add_frames([frame], "key")
    parts = add_frames(
        [add_frames([part], "key") for part in (frame[cut:], frame[:cut]) if len(part)], "key"
    )
    assert whole.equals(parts)
    upper, lower = (
        whole[name].to_numpy() if name in whole.columns else np.zeros(1, np.int64)
        for name in ("s", f"s{LOWER}")
    )
    assert unfix(upper, lower)[0] == pytest.approx(math.fsum(values), rel=1e-15, abs=1e-17)


def test_a_sum_beyond_fixed_point_is_refused() -> None:
    with pytest.raises(InputError, match="limit of exact sums"):
        fix(np.array([[5e12]]))
    one = pl.DataFrame({"key": ["a"], "s": [(1 << 62) - 1]})
    with pytest.raises(InputError, match="limit of exact sums"):
        add_frames([one, one], "key")


def test_buckets_of_parts_are_the_buckets_of_the_whole() -> None:
    dice = np.random.default_rng(0)
    numbers = np.sort(dice.integers(0, 1 << 52, 20_000))
    bits = choose_bits(numbers, 52)
    assert len(np.unique(numbers >> (52 - bits))) <= 2_048 < len(np.unique(numbers >> (51 - bits)))
    for part in (numbers[:3_000], numbers[5::7]):
        coarse = choose_bits(part, 52)
        assert coarse >= bits


# -- the same results as in memory ------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    ("columns", "options"),
    [
        (CLUSTERED, {"missing": "censor"}),
        (CLUSTERED, {"missing": "zero"}),
        (CLUSTERED, {"missing": "bounds"}),
        (COLUMNS | {"score": "old_score"}, {"missing": "censor"}),
        (COLUMNS, {"missing": "zero"}),
        (CLUSTERED, {"missing": "zero", "cluster": "decision"}),
        (CLUSTERED, {"missing": "zero", "estimator": "ht", "level": 0.9, "baseline": "x"}),
        (CLUSTERED, {"missing": "zero", "reward_range": (-0.5, 2.0)}),
    ],
)
def test_sums_evaluate_like_the_log_in_memory(
    columns: dict[str, Any], options: dict[str, Any]
) -> None:
    log = make_log(gaps=True)
    whole = memlab.evaluate(memlab.Slates.from_wide(log, **columns), NAMES, **options)
    last = {
        name: options.pop(name) for name in ("estimator", "level", "baseline") if name in options
    }
    halves = [
        partial(part, NAMES, columns=columns, **options)
        for _, part in log.group_by(pl.col("query_id") % 2)
    ]
    summed = sum(halves, Sums()).evaluate(**last)
    assert_close(whole, summed)
    assert whole.notes == summed.notes
    assert whole.method == summed.method
    assert whole.observed is not None
    assert summed.observed is not None
    assert whole.observed.judged == summed.observed.judged
    assert whole.observed.value.low == pytest.approx(summed.observed.value.low, rel=1e-12)


@pytest.mark.long
def test_the_pairs_and_the_page_of_sums(tmp_path: Path) -> None:
    log = make_log()
    whole = memlab.evaluate(memlab.Slates.from_wide(log, **CLUSTERED), NAMES)
    summed = partial(log, NAMES, columns=CLUSTERED).evaluate()
    left, right = whole.pairs("bh"), summed.pairs("bh")
    assert left.select("policy", "other", "verdict").equals(
        right.select("policy", "other", "verdict")
    )
    assert np.allclose(left["difference"], right["difference"], atol=1e-12, equal_nan=True)
    page = summed.report(tmp_path / "page.html")
    assert "new_score" in Path(page).read_text()
    assert summed.model_values.keys() == whole.model_values.keys()
    with pytest.raises(InputError, match="made from sums, which have no recalls"):
        summed.disagreements("new_score", "x")
    assert "new_score" in str(summed)


@pytest.mark.long
def test_packs_and_texts_are_policies_of_partitions() -> None:
    """Policies are compiled on each partition; the names in the sums are those of the caller."""
    text = "(defpolicy recall-score [old_score x] (+ old_score (* 0.5 x)))"
    log, policies = make_log(), {"mine": text, "double": pl.col("x") * 2}
    columns = CLUSTERED | {"features": ["x"]}
    slates = memlab.Slates.from_wide(log.with_columns(old_score=pl.col("old_score")), **columns)
    policies["mine"] = "(defpolicy recall-score [x] (* x x))"
    whole = memlab.evaluate(slates, policies)
    summed = partial(slates, policies).evaluate()
    assert_close(whole, summed)
    refused = partial(slates, [*NAMES[1:], "(defpolicy recall-score [lexical] lexical)"])
    assert [refusal.reason for refusal in refused.evaluate().refusals] == [
        refusal.reason
        for refusal in memlab.evaluate(
            slates, ["x", "(defpolicy recall-score [lexical] lexical)"]
        ).refusals
    ]


@pytest.mark.long
def test_a_log_of_a_lab_evaluates_like_its_slates(tmp_path: Path) -> None:
    clock = memlab.ManualClock("2026-03-01T12:00:00")
    with memlab.open(tmp_path / "lab", clock=clock) as lab:
        lab.remember([f"note {number} about topic {number % 7}" for number in range(60)])
        for number in range(40):
            clock.advance(hours=1)
            for hit in lab.recall(f"topic {number % 7}", limit=4, explore=True):
                lab.feedback(hit, "success" if (hit.id + number) % 3 else "fail")
        slates = lab.slates()
        whole = memlab.evaluate(slates, ["memlab", "similarity"])
        summed = partial(slates, ["memlab", "similarity"]).evaluate()
    assert whole.clusters == summed.clusters
    assert_close(whole, summed)


# -- however a log is cut ---------------------------------------------------------------------------------------------


@pytest.mark.long
@given(st.integers(0, 2**32), st.integers(1, 6), st.booleans())
@examples(200, quick=5)
def test_sums_have_the_same_bits_however_a_log_is_cut(seed: int, parts: int, along: bool) -> None:
    dice = np.random.default_rng(seed)
    log = _LOG
    users = (
        log.unique("query_id", keep="first", maintain_order=True)["user"].cast(pl.Int64).to_numpy()
    )
    codes = users % parts if along else dice.integers(0, parts, 120)
    pieces = sum_parts(log, codes)
    order = dice.permutation(len(pieces))
    added = Sums()
    for index in order:
        added = pieces[index] + added
    assert added == Sums.merge(pieces) == _WHOLE
    assert added.to_bytes() == _WHOLE.to_bytes()
    assert Sums.from_bytes(added.to_bytes()) == pickle.loads(pickle.dumps(added)) == _WHOLE
    assert added.evaluate().frame.equals(_EXPECTED)


_LOG = make_log(gaps=True)
_WHOLE = partial(_LOG, NAMES, columns=CLUSTERED, missing="censor")
_EXPECTED = _WHOLE.evaluate().frame


def test_plain_sums_would_differ() -> None:
    """The test above tests something: sums of floats depend on how this log is cut."""
    weights = (_LOG["clicked"] / _LOG["p"]).fill_nan(None).drop_nulls().to_numpy()
    assert (
        len(
            {
                float(weights[::step].sum()) + float(np.delete(weights, np.s_[::step]).sum())
                for step in range(2, 9)
            }
        )
        > 1
    )


@pytest.mark.long
def test_large_logs_fold_and_sample_the_same_recalls() -> None:
    log = make_log(recalls=6_000, pool=6)
    whole = partial(log, NAMES, columns=CLUSTERED)
    # parts of 100, 1,900 and 4,000 recalls, whose buckets are of unequal width
    pieces = sum_parts(log, np.searchsorted([100, 2_000], np.arange(6_000), side="right"))
    assert Sums.merge(pieces).buckets.equals(whole.buckets)
    assert whole.sample["recall"].n_unique() == 5_000
    assert whole.buckets.height <= 2_048
    memory = memlab.evaluate(memlab.Slates.from_wide(log, **CLUSTERED), NAMES)
    summed = whole.evaluate()
    assert_close(memory, summed, same_gates=False)
    assert any("5,000 recalls, drawn by a hash" in note for note in summed.notes)
    for ours, theirs in zip(memory.rows, summed.rows, strict=True):
        assert ours.measured is not None
        assert theirs.measured is not None
        for a, b in zip(ours.measured.gates, theirs.measured.gates, strict=True):
            assert a.state == b.state
            if a.name in ("balance", "propensities", "clusters", "answered probes"):
                assert a.figure == pytest.approx(b.figure, rel=1e-9, nan_ok=True)


# -- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_folder_of_parquet_is_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files may cut a recall in two; a stream puts it together."""
    for number, start in enumerate(range(0, _LOG.height, 401)):
        _LOG[start : start + 401].write_parquet(tmp_path / f"{number:03}.parquet")
    monkeypatch.setattr("memlab.science.evaluation._partial._ROWS", 250)
    options: dict[str, Any] = {"columns": CLUSTERED, "missing": "censor"}
    assert partial(tmp_path, NAMES, **options) == _WHOLE
    assert partial(_LOG.lazy(), NAMES, **options) == _WHOLE
    for source in (tmp_path, str(tmp_path), pl.scan_parquet(tmp_path / "*.parquet"), _LOG.lazy()):
        assert memlab.evaluate(source, NAMES, **options).frame.equals(_EXPECTED)


@pytest.mark.long
def test_tables_of_arrow_are_partitions() -> None:
    class Foreign:
        """A table of another library that speaks Arrow's C interface."""

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            return _LOG.__arrow_c_stream__(requested_schema)

    assert partial(Foreign(), NAMES, columns=CLUSTERED, missing="censor") == _WHOLE


# -- bad input --------------------------------------------------------------------------------------------------------


def test_empty_partitions_add_nothing() -> None:
    empty = partial(_LOG.clear(), NAMES, columns=CLUSTERED, missing="censor")
    assert not empty
    assert len(empty) == 0
    assert str(empty)
    assert empty + _WHOLE == _WHOLE + empty == _WHOLE
    assert Sums.from_bytes(empty.to_bytes()) == empty
    with pytest.raises(InputError, match="no recalls, so there is nothing to evaluate"):
        empty.evaluate()


@pytest.mark.long
def test_the_same_recall_twice_is_refused() -> None:
    """A worker that returns twice, and a recall that is cut in two."""
    with pytest.raises(
        InputError, match=r"120 recalls are in more than one of these sums .first: recall 0"
    ):
        _WHOLE + _WHOLE
    upper = _LOG.filter(pl.col("memory_id") < 6)
    kept = CLUSTERED | {"empty": "keep"}
    lower = _LOG.filter((pl.col("memory_id") >= 6) & (pl.col("query_id") == 7))
    with pytest.raises(
        InputError, match=r"1 recall is in more than one of these sums .first: recall 7.. Add"
    ):
        sum(partial(part, "x", columns=kept, missing="zero") for part in (upper, lower))
    texts = _LOG.with_columns(pl.format("q{}", "query_id").alias("query_id"))
    named = partial(texts, NAMES, columns=CLUSTERED, missing="censor")
    with pytest.raises(InputError, match=r"120 recalls are in more than one of these sums. Add"):
        named + named
    with pytest.raises(InputError, match="columns of candidates"):
        named + _WHOLE


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policies": ["new_score"]}, "different policies"),
        ({"policies": {"new_score": pl.col("new_score") * 2, "x": "x"}}, "different policies"),
        (
            {"missing": "zero"},
            "different treatment of missing feedback cannot be added: zero and censor",
        ),
        (
            {"missing": None},
            "different treatment of missing feedback cannot be added: none and censor",
        ),
        ({"cluster": "decision"}, "different argument cluster"),
        ({"reward_range": (0.0, 2.0)}, "different range of rewards"),
    ],
)
def test_sums_of_different_things_are_refused_by_name(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {
        "policies": NAMES,
        "columns": CLUSTERED,
        "missing": "censor",
    } | change
    policies = arguments.pop("policies")
    with pytest.raises(InputError, match=message):
        partial(_LOG, policies, **arguments) + _WHOLE


def test_sums_of_another_version_are_refused() -> None:
    assert _WHOLE.definition is not None
    later = type(_WHOLE.definition)(
        **{name: getattr(_WHOLE.definition, name) for name in _WHOLE.definition.__struct_fields__}
        | {"version": "99.0"}
    )
    with pytest.raises(
        InputError, match=r"different version of memlab cannot be added: .* and 99.0"
    ):
        _WHOLE + replace(_WHOLE, definition=later)
    with pytest.raises(InputError, match="not sums of memlab"):
        Sums.from_bytes(b"nothing")
    with pytest.raises(InputError, match="not sums of memlab"):
        Sums.from_bytes(_WHOLE.to_bytes()[:-20])
    with pytest.raises(TypeError):
        _WHOLE + 1  # type: ignore[operator]


@pytest.mark.long
def test_a_partition_with_other_columns_is_refused() -> None:
    other = partial(
        _LOG.with_columns(y=pl.col("x") + 1), NAMES, columns=CLUSTERED, missing="censor"
    )
    with pytest.raises(InputError, match="different columns of candidates cannot be added"):
        _WHOLE + other


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"missing": "inverse"}, "fits a model on the whole log"),
        ({"columns": None}, "query_id|decision"),
        ({"columns": CLUSTERED | {"decision": "nothing"}}, "nothing"),
        ({"policies": "nothing"}, "nothing"),
        ({"policies": [pl.col("x") * number for number in range(13)]}, "at most 12"),
    ],
)
def test_bad_arguments_of_partitions(arguments: dict[str, Any], message: str) -> None:
    whole: dict[str, Any] = {"policies": NAMES, "columns": CLUSTERED, "missing": "zero"} | arguments
    policies = whole.pop("policies")
    with pytest.raises(MemlabError, match=message):
        partial(_LOG, policies, **whole)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (pl.when(pl.col("p") == 1).then(0.0).otherwise("p").alias("p"), "0, which is impossible"),
        (pl.when(pl.col("p") == 1).then(1.2).otherwise("p").alias("p"), "above 1"),
        (pl.when(pl.col("rank") > 0).then(1).otherwise(0).alias("rank"), "1 occurs twice"),
        ((pl.col("clicked") + 2).alias("clicked"), r"outside 0..1"),
        (pl.lit(1).alias("memory_id"), "candidate twice"),
    ],
)
def test_an_invalid_partition_is_refused_by_row(change: pl.Expr, message: str) -> None:
    with pytest.raises((DatasetError, InputError), match=message):
        partial(_LOG.with_columns(change), NAMES, columns=CLUSTERED, missing="zero")


@pytest.mark.long
def test_small_and_even_logs() -> None:
    """One recall, constant scores, and one reward: gates say what lacks, and nothing fails."""
    one = _LOG.filter(pl.col("query_id") == 3)
    single = partial(one, NAMES, columns=CLUSTERED, missing="zero").evaluate()
    memory = memlab.evaluate(memlab.Slates.from_wide(one, **CLUSTERED), NAMES, missing="zero")
    assert [row.verdict for row in single.rows] == [row.verdict for row in memory.rows]
    even = _LOG.with_columns(old_score=pl.lit(0.5), x=pl.lit(1.0))
    assert_close(
        memlab.evaluate(memlab.Slates.from_wide(even, **CLUSTERED), NAMES, missing="zero"),
        partial(even, NAMES, columns=CLUSTERED, missing="zero").evaluate(),
    )
    with pytest.raises(InputError, match="set what missing feedback counts as"):
        partial(_LOG, NAMES, columns=CLUSTERED).evaluate()
    nothing = _LOG.with_columns(y=pl.lit(None, dtype=pl.Float64))
    whole = partial(nothing, ["x", "y"], columns=CLUSTERED, missing="zero").evaluate()
    assert [refusal.policy for refusal in whole.refusals] == ["y"]
    with pytest.raises(UnknownName):
        _WHOLE.evaluate(baseline="z")


@pytest.mark.long
def test_arguments_of_a_log_on_disk(tmp_path: Path) -> None:
    _LOG.write_parquet(tmp_path / "log.parquet")
    for name, value in {"horizon": "7d", "position": True, "labels": pl.DataFrame()}.items():
        with pytest.raises(InputError, match=f"{name}= needs the whole log"):
            memlab.evaluate(tmp_path, NAMES, columns=CLUSTERED, **{name: value})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="There is no Parquet file"):
        memlab.evaluate(tmp_path / "other", NAMES)
    with pytest.raises(InputError, match="columns= is for a log on disk"):
        memlab.evaluate(memlab.Slates.from_wide(_LOG, **CLUSTERED), NAMES, columns=CLUSTERED)
    (tmp_path / "log.parquet").write_bytes(b"PAR1 and nothing else PAR1")
    with pytest.raises(InputError, match="The log cannot be read"):
        memlab.evaluate(tmp_path, NAMES, columns=CLUSTERED)


@pytest.mark.long
def test_a_wrong_propensity_closes_the_gate_of_sums() -> None:
    """The test of propensities from moments is that of single recalls."""
    log = make_log(recalls=600).with_columns(
        pl.when(pl.col("p") < 1).then(pl.col("p") * 0.5).otherwise("p").alias("p")
    )
    whole = memlab.evaluate(memlab.Slates.from_wide(log, **CLUSTERED), NAMES, missing="zero")
    summed = partial(log, NAMES, columns=CLUSTERED, missing="zero").evaluate()
    assert_close(whole, summed)
    assert all(
        "balance" in {gate.name for gate in row.closed}
        for row in summed.rows
        if row.policy != "logged"
    )

"""``beta-sample`` in ``explore``: exact chances, the same in every back end and in the log."""

from fractions import Fraction
from inspect import signature
from math import comb, factorial

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.errors import PolicyError
from memlab.kernel.language import Input, Signature, compile_policy
from memlab.kernel.policies import SLOTS

SLOT = Signature("explore", [Input("a"), Input("b")], aggregates=True, draws=True)
POLICY = compile_policy("(fn [a b] (beta-sample a b))", SLOT)


def density(a, b):
    """Return the polynomial of Beta(a, b) for whole a and b."""
    scale = Fraction(factorial(a + b - 1), factorial(a - 1) * factorial(b - 1))
    return [Fraction(0)] * (a - 1) + [scale * comb(b - 1, k) * (-1) ** k for k in range(b)]


def integral(polynomial):
    return [Fraction(0)] + [c / (i + 1) for i, c in enumerate(polynomial)]


def product(p, q):
    result = [Fraction(0)] * (len(p) + len(q) - 1)
    for i, x in enumerate(p):
        for j, y in enumerate(q):
            result[i + j] += x * y
    return result


def exact(pairs):
    """Return the chance that each draw is the largest, in exact arithmetic."""
    chances = []
    for i, pair in enumerate(pairs):
        polynomial = density(*pair)
        for j, other in enumerate(pairs):
            if i != j:
                polynomial = product(polynomial, integral(density(*other)))
        chances.append(float(sum(integral(polynomial))))
    return chances


def chances_of(pairs, **columns):
    frame = pl.DataFrame(
        {"a": [a for a, _ in pairs], "b": [b for _, b in pairs], "memory_id": range(len(pairs))},
        schema={"a": pl.Float64, "b": pl.Float64, "memory_id": pl.Int64},
    ).with_columns(**{name: pl.Series(values) for name, values in columns.items()})
    return frame, POLICY.columns(frame, by="slate" if columns else None)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_a_chance_is_that_of_exact_arithmetic(seed):
    dice = np.random.default_rng(seed)
    count, most = int(dice.integers(1, 7)), 3 + 4 * seed
    pairs = [tuple(int(v) for v in dice.integers(1, most, 2)) for _ in range(count)]
    _, chances = chances_of(pairs)
    assert chances.to_list() == pytest.approx(exact(pairs), abs=2e-6)
    assert sum(chances) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.long
def test_it_agrees_with_draws():
    pairs = [(0.5, 0.5), (40.0, 3.0), (1e6, 1e5), (2.0, 9.0), (0.02, 0.1), (1.0, 1.0)]
    draws = np.random.default_rng(1).beta(*np.array(pairs).T, size=(400_000, len(pairs)))
    shares = np.bincount(draws.argmax(1), minlength=len(pairs)) / len(draws)
    assert chances_of(pairs)[1].to_list() == pytest.approx(shares, abs=4e-3)


def test_row_columns_and_arrays_agree_and_slates_are_separate():
    pairs = [(1.0, 2.0), (3.0, 1.0), (3.0, 1.0), (5.0, 5.0), (1.0, 1.0)]
    frame, chances = chances_of(pairs, slate=[1, 2, 1, 2, 1])
    for slate in (1, 2):
        rows = (frame["slate"] == slate).to_list()
        alone = chances_of([pair for pair, own in zip(pairs, rows, strict=True) if own])[1]
        assert chances.filter(pl.Series(rows)).to_list() == alone.to_list()
    frame, chances = chances_of(pairs)
    values, nulls = POLICY.arrays({"a": frame["a"].to_numpy(), "b": frame["b"].to_numpy()})
    assert values.tolist() == chances.to_list()
    assert nulls is None
    aggregates = POLICY.aggregates(frame).rows(named=True)
    own = [
        POLICY.row({"a": a, "b": b}, aggregates=row)
        for (a, b), row in zip(pairs, aggregates, strict=True)
    ]
    assert own == chances.to_list()
    # The order of the rows has no effect.
    backwards = POLICY.columns(frame.reverse())
    assert backwards.reverse().to_list() == chances.to_list()


def test_a_parameter_that_is_no_positive_number_takes_no_part():
    pairs = [(1.0, 2.0), (None, 1.0), (0.0, 1.0), (1.0, -1.0), (float("inf"), 1.0), (2.0, 1.0)]
    chances = chances_of(pairs)[1].to_list()
    assert chances[1:5] == [None] * 4
    assert [chances[0], chances[5]] == pytest.approx(exact([(1, 2), (2, 1)]), abs=1e-6)
    assert chances_of([])[1].to_list() == []
    nan = POLICY.columns(pl.DataFrame({"a": [np.nan, 1.0], "b": [1.0, 1.0], "memory_id": [1, 2]}))
    assert nan.to_list() == [None, 1.0]


def test_only_explore_draws():
    for slot in ("recall-score", "select", "known", "spread"):
        with pytest.raises(PolicyError, match="belongs to explore"):
            compile_policy("(fn [] (beta-sample 1 2))", SLOTS[slot].signature)
    with pytest.raises(PolicyError, match="takes 2 arguments"):
        compile_policy("(fn [] (beta-sample 1))", SLOTS["explore"].signature)
    policy = compile_policy("(fn [score] (exp score))", SLOTS["explore"].signature)
    assert policy.inputs == ("score",)


# Recalls that may be asked to explore are asked.
EXPLORING = {"explore": True} if "explore" in signature(memlab.Lab.recall).parameters else {}
PACK = """(pack thompson "Thompson sampling." :inherits memlab)
(setting probe-rate 1) (setting probe-floor 0) (setting probe-depth 5) (setting probes 1)
(defpolicy explore [success fail score]
  (* WEIGHT (beta-sample (+ 1 success) (+ 1 fail))))"""


@pytest.mark.long
@pytest.mark.parametrize("weight", ["1", "(exp (* 3 score))"])
def test_the_log_has_the_exact_chance_of_each_candidate(weight):
    lab = memlab.open(seed=3)
    lab.remember([f"note {i} about indenting with tabs" for i in range(8)])
    for memory, outcome in (
        (1, "success"),
        (1, "success"),
        (2, "fail"),
        (3, "success"),
        (5, "fail"),
    ):
        lab.feedback(memory, outcome)
    lab.policies.use(PACK.replace("WEIGHT", weight), compare=0)
    drawn = set()
    for _ in range(12):
        hits = lab.recall("indenting with tabs", limit=2, **EXPLORING)
        frame = hits.slate.frame.sort("rank")
        band = frame.slice(2, 5)
        assert frame["propensity"].to_list()[:2] == [1.0, 1.0]
        pairs = [(int(1 + s), int(1 + f)) for s, f in band.select("success", "fail").iter_rows()]
        weights = np.array(exact(pairs))
        if "score" in weight:
            weights = weights * np.exp(3 * band["score"].to_numpy())
        assert band["propensity"].to_numpy() == pytest.approx(weights / weights.sum(), abs=1e-6)
        assert sum(frame["propensity"]) == pytest.approx(3.0)
        drawn |= {hit.id for hit in hits} & set(band["memory_id"].to_list())
    assert len(drawn) > 1

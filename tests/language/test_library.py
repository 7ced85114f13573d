"""Each helper of the library against its formula in Python, on row, columns and arrays."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from memlab.errors import PolicyTypeError
from memlab.kernel.language import Input, Policy, Signature, compile_policy
from memlab.kernel.language.texts import library

LN2 = math.log(2)


def smooth(x: float, a: float, b: float) -> float:
    t = min(1, max(0, (x - a) / (b - a)))
    return 3 * t**2 - 2 * t**3


def wilson(success: float, fail: float, z: float) -> float:
    n = success + fail
    if n == 0:
        return 0.0
    p = success / n
    return (p + z**2 / (2 * n) - z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))) / (
        1 + z**2 / n
    )


def hybrid(n: float, idle: float, age: float, d: float) -> float:
    older = (
        (n - 1) * (age ** (1 - d) - idle ** (1 - d)) / ((1 - d) * (age - idle)) if age > idle else 0
    )
    return math.log(idle**-d + older)


FORMULAS: dict[str, tuple[Callable[..., float], list[tuple[float, ...]]]] = {
    "half-life-decay": (lambda t, h: 0.5 ** (t / h), [(0, 30), (30, 30), (45, 30), (1000, 7)]),
    "half-life": (lambda t, h: 0.5 ** (t / h), [(0, 30), (60, 30), (45, 30)]),
    "recency": (lambda t, h: 0.5 ** (t / h), [(0, 30), (30, 30), (1, 7)]),
    "exponential-decay": (lambda t, k: math.e ** (-t / k), [(0, 30), (30, 30), (45, 30)]),
    "power-law": (lambda t, s, e: 1 / (1 + t / s) ** e, [(0, 1, 0.5), (3, 1, 0.5), (9, 3, 2)]),
    "hyperbolic": (lambda t, s: s / (s + t), [(0, 10), (10, 10), (30, 10)]),
    "stretched-decay": (
        lambda t, s, k: math.exp(-((t / s) ** k)),
        [(0, 10, 0.5), (10, 10, 0.5), (40, 10, 0.5)],
    ),
    "ebbinghaus-savings": (
        lambda m: 100 * 1.84 / (math.log10(m) ** 1.25 + 1.84) / 100,
        [(1,), (19,), (63,), (525,), (1440,)],
    ),
    "retrievability": (lambda t, s: (1 + 19 / 81 * t / s) ** -0.5, [(0, 10), (10, 10), (100, 10)]),
    "forgetting-curve": (
        lambda t, s, w: (1 + (0.9 ** (-1 / w) - 1) * t / s) ** -w,
        [(0, 10, 0.5), (10, 10, 0.1542), (100, 10, 0.1542)],
    ),
    "base-level": (
        lambda n, t, d: math.log(n / (1 - d)) - d * math.log(t),
        [(1, 1, 0.5), (10, 100, 0.5)],
    ),
    "base-level-hybrid": (hybrid, [(1, 5, 5, 0.5), (4, 2, 90, 0.5), (2, 1, 10, 0.3)]),
    "recall-probability": (
        lambda a, t, s: 1 / (1 + math.exp((t - a) / s)),
        [(0, 0, 0.4), (1, 0, 0.4), (-2, 1, 0.4)],
    ),
    "fan-strength": (lambda s, fan: s - math.log(fan), [(2, 1), (2, 5)]),
    "sigmoid": (lambda x: 1 / (1 + math.exp(-x)), [(0,), (2,), (-2,)]),
    "logistic": (
        lambda x, c, w: 1 / (1 + math.exp(-(x - c) / w)),
        [(5, 5, 2), (7, 5, 2), (0, 5, 2)],
    ),
    "logit": (lambda p: math.log(p) - math.log(1 - p), [(0.5,), (0.9,), (0.01,)]),
    "saturate": (lambda x, h: x / (x + h), [(0, 3), (3, 3), (9, 3)]),
    "hill": (lambda x, h, n: x**n / (x**n + h**n), [(0, 3, 2), (3, 3, 2), (9, 3, 2), (5, 3, 1)]),
    "log-saturate": (
        lambda x, c: min(1, math.log(1 + x) / math.log(1 + c)),
        [(0, 20), (3, 20), (50, 20)],
    ),
    "capped": (lambda x, c: min(1, x / c), [(5, 20), (30, 20)]),
    "gauss": (
        lambda x, c, w: math.exp(-((x - c) ** 2) / (2 * w**2)),
        [(5, 5, 2), (7, 5, 2), (0, 5, 2)],
    ),
    "linear": (
        lambda x, a, b: min(1, max(0, (x - a) / (b - a))),
        [(5, 0, 10), (-1, 0, 10), (11, 0, 10)],
    ),
    "smoothstep": (smooth, [(5, 0, 10), (2, 0, 10), (-1, 0, 10), (11, 0, 10)]),
    "softplus": (lambda x: math.log(1 + math.exp(x)), [(0,), (3,), (-3,)]),
    "boost": (lambda a, b, w: a + b * w, [(0.5, 0.9, 0.1), (0.5, 0, 1), (-1, 2, 0.5)]),
    "penalise": (lambda a, b, w: a - b * w, [(0.5, 0.9, 0.1), (0.5, 0, 1), (-1, 2, 0.5)]),
    "blend": (lambda a, b, w: a + (b - a) * w, [(1, 3, 0.25), (1, 3, 0), (1, 3, 1)]),
    "mix": (lambda a, b, w: a + (b - a) * w, [(1, 3, 0.25), (1, 3, 0), (1, 3, 1)]),
    "harmonic-mean": (lambda a, b: 1 / ((1 / a + 1 / b) / 2), [(0.5, 0.5), (0.2, 0.9)]),
    "geometric-mean": (
        lambda a, b: math.exp((math.log(a) + math.log(b)) / 2),
        [(0.5, 0.5), (0.2, 0.9)],
    ),
    "reciprocal-rank": (lambda r, k: 1 / (k + r), [(1, 60), (10, 60)]),
    "rank-discount": (lambda r: 1 / math.log2(1 + r), [(1,), (2,), (10,)]),
    "success-rate": (lambda s, f: (s + 1) / (s + f + 2), [(0, 0), (1, 0), (3, 9)]),
    "smoothed-rate": (
        lambda s, f, p, w: (s + p * w) / (s + f + w),
        [(0, 0, 0.3, 5), (4, 1, 0.3, 5)],
    ),
    "wilson-lower": (wilson, [(0, 0, 1.96), (1, 0, 1.96), (8, 2, 1.96), (0, 4, 1.64)]),
    "ucb1": (
        lambda m, n, total: m + math.sqrt(2 * math.log(total) / n),
        [(0.5, 3, 100), (0.1, 50, 100)],
    ),
    "sm2-ease": (
        lambda e, q: max(1.3, e + (0.1 - (5 - q) * (0.08 + (5 - q) * 0.02))),
        [(2.5, 5), (2.5, 4), (2.5, 3), (1.3, 0)],
    ),
    "square": (lambda x: x**2, [(3,), (-0.5,)]),
    "log2": (math.log2, [(8,), (0.3,)]),
    "log10": (math.log10, [(1000,), (0.3,)]),
}
# For counts and times there is a value at the end of the range that the plain formula does not reach.
LIMITS = [
    ("(saturate 0 0)", math.nan),
    ("(ucb1 0.5 0 10)", math.inf),
    ("(hill 0 3 2)", 0.0),
    ("(logit 1)", math.inf),
    ("(softplus 1000)", 1000.0),
    ("(softplus -1000)", 0.0),
    ("(ebbinghaus-savings 0)", 1.0),
    ("(half-life-decay 5 0)", 0.0),
    ("(base-level 0 10 0.5)", -math.inf),
    ("(power-law -2 1 0.5)", math.nan),
]


def called(name: str) -> Policy:
    arguments = library()[name].arguments
    slot = Signature("helper", [Input(f"in-{a}") for a in arguments])
    given = " ".join(f"in-{a}" for a in arguments)
    return compile_policy(f"(fn [{given}] ({name} {given}))", slot)


def columns(name: str, values: list[tuple[float | None, ...]]) -> dict[str, list[float | None]]:
    return {
        f"in-{a}": list(v)
        for a, v in zip(library()[name].arguments, zip(*values, strict=True), strict=True)
    }


def test_every_helper_has_a_formula() -> None:
    assert set(FORMULAS) == set(library())


@pytest.mark.parametrize("name", library())
def test_a_helper_is_its_formula(name: str) -> None:
    formula, values = FORMULAS[name]
    expected = pytest.approx([formula(*v) for v in values], rel=1e-12)
    policy, given = called(name), columns(name, values)
    rows = [dict(zip(given, v, strict=True)) for v in values]
    assert [policy.row(row) for row in rows] == expected
    assert (
        policy.columns(pl.DataFrame(given, schema=dict.fromkeys(given, pl.Float64))).to_list()
        == expected
    )
    assert policy.arrays({k: np.array(v, float) for k, v in given.items()})[0].tolist() == expected


@pytest.mark.parametrize(("body", "expected"), LIMITS)
def test_the_ends_of_a_range(body: str, expected: float) -> None:
    assert compile_policy(f"(fn [] {body})", Signature("helper", [])).row({}) == pytest.approx(
        expected, nan_ok=True
    )


@pytest.mark.parametrize("name", library())
def test_unknown_inputs_give_unknown_results(name: str) -> None:
    """Null in any place gives null, NaN gives NaN: no helper invents a number."""
    policy, (_, values) = called(name), FORMULAS[name]
    given = columns(name, [values[-1]])
    row = {key: value[0] for key, value in given.items()}
    for key in row:
        assert policy.row({**row, key: None}) is None
        result = policy.row({**row, key: math.nan})
        assert isinstance(result, float)
        assert math.isnan(result)


def test_a_half_life_by_three_names_is_one_curve() -> None:
    names = ("half-life-decay", "half-life", "recency")
    rows = [(age, half) for age in (0.0, 0.1, 13.0, 1e6) for half in (0.5, 30.0)]
    first, *others = (
        [called(n).row(dict(zip(columns(n, rows), row, strict=True))) for row in rows]
        for n in names
    )
    assert all(other == first for other in others)


def test_acts_base_levels_agree_with_the_sum_over_uses() -> None:
    """Both are closed forms for ln(sum of t^-d); the hybrid keeps the last use and is the nearer one."""
    uses, age = 20, 100.0
    times = [age * (i + 0.5) / uses for i in range(uses)]
    exact = math.log(sum(t**-0.5 for t in times))
    even = called("base-level").row({"in-uses": uses, "in-age": age, "in-decay": 0.5})
    hybrid = called("base-level-hybrid").row(
        {"in-uses": uses, "in-idle": times[0], "in-age": age, "in-decay": 0.5}
    )
    assert even == pytest.approx(exact, abs=0.2)
    assert hybrid == pytest.approx(exact, abs=0.1)


def test_helpers_stand_alone() -> None:
    """None calls another: a pack that gives a name a new meaning changes that name alone."""

    def heads(form: object) -> set[str]:
        inner = [h for item in form.items for h in heads(item)]  # type: ignore[attr-defined]
        return {form.head, *inner} - {""}  # type: ignore[attr-defined]

    for helper in library().values():
        assert heads(helper.body) & set(library()) <= set(helper.arguments), helper.name


def test_a_feature_hides_the_helper_of_its_name() -> None:
    slot = Signature("recall-score", [Input("recency"), Input("age-days")])
    assert (
        compile_policy("(fn [age-days] (recency age-days 30))", slot).row({"age-days": 30.0}) == 0.5
    )
    assert compile_policy("(fn [recency] recency)", slot).row({"recency": 0.25}) == 0.25
    with pytest.raises(PolicyTypeError, match="recency is a number here, not a function"):
        compile_policy("(fn [recency age-days] (recency age-days 30))", slot)


def test_every_helper_has_a_description() -> None:
    for helper in library().values():
        assert helper.doc.endswith(".")
        assert len(helper.doc) < 120

"""The forms of the dialect, one by one, in both of their spellings."""

from __future__ import annotations

import math

import polars as pl
import pytest

from memlab.errors import InputError, UnknownName
from memlab.kernel.language import Input, Policy, Signature, compile_policy

INPUTS = (
    Input("x"),
    Input("y"),
    Input("age_days"),
    Input("pinned", "bool"),
    Input("kind", "str", words=("fact", "event", "goal")),
    Input("branch", "str"),
    Input("new/kind", "str", words=("fact", "event", "goal")),
)
SLOT = Signature("recall-score", INPUTS)
TEST = Signature("eligible", INPUTS, "bool")
ROW = {
    "x": 2.0,
    "y": 8.0,
    "age_days": 30.0,
    "pinned": False,
    "kind": "fact",
    "branch": "main",
    "new/kind": "event",
}


def value(body: str, signature: Signature = SLOT, **changes: object) -> object:
    arguments = " ".join(i.name for i in INPUTS)
    return compile_policy(f"(fn [{arguments}] {body})", signature).row({**ROW, **changes})


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("(+ x y 1)", 11.0),
        ("(- y x 1)", 5.0),
        ("(- x)", -2.0),
        ("(* x y 2)", 32.0),
        ("(/ y x 2)", 2.0),
        ("(/ x)", 0.5),
        ("(/ x 0)", math.inf),
        ("(pow x 10)", 1024.0),
        ("(expt x 3)", 8.0),
        ("(** x 0.5)", math.sqrt(2)),
        ("(min x y 1)", 1.0),
        ("(max x y)", 8.0),
        ("(clamp y 0 1)", 1.0),
        ("(abs (- x y))", 6.0),
        ("(floor -0.5)", -1.0),
        ("(ceil 0.2)", 1.0),
        ("(sign (- x y))", -1.0),
        ("(exp 0)", 1.0),
        ("(log 1)", 0.0),
        ("(log1p 0)", 0.0),
        ("(sqrt y)", math.sqrt(8)),
        ("(tanh 0)", 0.0),
        ("(log 0)", -math.inf),
        ("(exp 1000)", math.inf),
    ],
)
def test_arithmetic(body: str, expected: float) -> None:
    assert value(body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("(< x y)", True),
        ("(< x y 5)", False),
        ("(<= x x y)", True),
        ("(> y x)", True),
        ("(>= x y)", False),
        ("(= x 2)", True),
        ("(eq? x 2)", True),
        ("(!= x 2)", False),
        ("(not= x 3)", True),
        ("(and (< x y) (not pinned))", True),
        ('(or pinned (= kind "fact"))', True),
        ("(= kind 'fact)", True),
        ("(eq? kind (quote event))", False),
        ('(in kind ["fact" "goal"])', True),
        ("(member? kind '(fact goal))", True),
        ('(one-of kind "event" "goal")', False),
        ('(not-in kind ["event" "goal"])', True),
        ("(in x [1 2 3])", True),
        ("(= kind new/kind)", False),
        ("(null? x)", False),
        ("#t", True),
        ("#false", False),
        ("(= branch #[[main]])", True),
    ],
)
def test_tests(body: str, expected: bool) -> None:
    assert value(body, TEST) is expected


@pytest.mark.parametrize(
    "body",
    [
        "(let [a x b (+ a 1)] (* a b))",
        "(let ((a x) (b (+ a 1))) (* a b))",
        "(let* ((a x) (b (+ a 1))) (* a b))",
        "(let ([a x] [b (+ a 1)]) (* a b))",
        "(let* [a x] (let* [b (+ a 1)] (* a b)))",
        "(let [a 1 a x b (+ a 1)] (* a b))",
    ],
)
def test_let_binds_in_sequence_in_every_spelling(body: str) -> None:
    assert value(body) == 6.0


@pytest.mark.parametrize(
    "body",
    [
        "(if pinned 1 (if (> x 1) 2 3))",
        "(cond pinned 1 (> x 1) 2 else 3)",
        "(cond pinned 1 (> x 1) 2 True 3)",
        "(cond (pinned 1) ((> x 1) 2) (else 3))",
        "(cond [pinned 1] [(> x 1) 2] [else 3])",
        "(cond (not (not pinned)) 1 (not pinned) (+ 2) else 3)",
    ],
)
def test_choices_in_every_spelling(body: str) -> None:
    assert value(body) == 2.0


@pytest.mark.parametrize(
    "body",
    [
        '(case kind "event" 1 "fact" 2 else 3)',
        '(case kind ["event" "goal"] 1 else 2)',
        "(case kind ((event goal) 1) ((fact) 2) (else 3))",
        '(case kind [["event" "goal"] 1] ["fact" 2] [else 3])',
        '(case kind "event" x "fact" 2 else y)',
        "(case x 1 1 2 2 else 3)",
        "(case x ((0 1) 1) ((2 3) 2) (else 3))",
    ],
)
def test_case_in_every_spelling(body: str) -> None:
    assert value(body) == 2.0


def test_null_spreads_and_is_tested() -> None:
    assert value("(+ x 1)", x=None) is None
    assert value("(if-null x 7)", x=None) == 7.0
    assert value("(coalesce x y 7)", x=None, y=None) == 7.0
    assert value("(null? x)", TEST, x=None) is True
    assert value("(min x y)", x=None) == 8.0
    assert value("(if (> x 1) 1 2)", x=None) == 2.0
    assert value("(and pinned (> x 1))", TEST, x=None, pinned=False) is False
    assert value("(or pinned (> x 1))", TEST, x=None, pinned=False) is None
    assert value("(when pinned x)") is None
    assert value("(if pinned x null)") is None


def test_nan_equals_itself_and_is_greatest() -> None:
    nan = math.nan
    assert value("(= x x)", TEST, x=nan) is True
    assert value("(> x y)", TEST, x=nan, y=math.inf) is True
    assert value("(max x y)", x=nan) == 8.0


@pytest.mark.parametrize(
    ("body", "expected"),
    [("(days 3)", 3.0), ("(weeks 2)", 14.0), ("(hours 36)", 1.5), ("(minutes 720)", 0.5)],
)
def test_units_give_days(body: str, expected: float) -> None:
    assert value(body) == expected
    assert (
        value(
            body.replace(")", " )").replace(body.split()[1][:-1], "x"),
            x=float(body.split()[1][:-1]),
        )
        == expected
    )


def test_both_spellings_of_a_name_are_one() -> None:
    policy = compile_policy("(fn [age_days] (let [half_life 30] (/ age-days half-life)))", SLOT)
    assert policy.inputs == ("age-days",)
    assert policy.row({"age_days": 15.0}) == policy.row({"age-days": 15}) == 0.5
    assert policy.columns(pl.DataFrame({"age_days": [15, 30]})).to_list() == [0.5, 1.0]
    assert policy.columns(pl.DataFrame({"age-days": [15, 30]})).to_list() == [0.5, 1.0]
    assert policy.arrays({"age_days": [15.0]})[0].tolist() == [0.5]


def test_a_policy_reads_only_the_inputs_it_needs() -> None:
    policy = compile_policy("(fn [x y kind] (+ y 0))", SLOT)
    assert policy.inputs == ("y",)
    frame = pl.DataFrame({"y": [1.0, 2.0]})
    result = policy.columns(frame)
    assert result.to_list() == [1.0, 2.0]
    assert result.name == "recall-score"


def test_a_constant_policy_is_as_long_as_its_frame() -> None:
    policy = compile_policy("(fn [] 0.5)", SLOT)
    assert policy.columns(pl.DataFrame({"a": [1, 2, 3]})).to_list() == [0.5] * 3
    assert policy.arrays({"a": [1, 2, 3]})[0].tolist() == [0.5] * 3
    assert policy.row({}) == 0.5


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_every_type_keeps_its_type_at_every_length(rows: int) -> None:
    frame = pl.DataFrame(
        {"x": [1] * rows, "branch": ["a"] * rows}, schema={"x": pl.Int8, "branch": pl.Categorical}
    )
    label = Signature("label", INPUTS, "str")
    for signature, body, dtype in (
        (SLOT, "(* x 200)", pl.Float64),
        (TEST, "(< x 2)", pl.Boolean),
        (label, "branch", pl.String),
        (label, '(if (> x 1) "new" branch)', pl.String),
    ):
        policy = compile_policy(f"(fn [x branch] {body})", signature)
        series = policy.columns(frame)
        assert series.dtype == dtype
        assert len(series) == rows
        values, nulls = policy.arrays({"x": [1] * rows, "branch": ["a"] * rows})
        assert values.tolist() == series.to_list()
        assert nulls is None


def test_inputs_are_cast_to_float64_on_entry() -> None:
    frame = pl.DataFrame({"x": [1, 2], "y": [250, 3]}, schema={"x": pl.UInt8, "y": pl.UInt8})
    assert compile_policy("(fn [x y] (- x y))", SLOT).columns(frame).to_list() == [-249.0, -1.0]


def test_a_column_made_from_a_literal_is_no_literal() -> None:
    frame = pl.DataFrame({"x": [5.0, 7.0]}).with_columns(y=pl.lit(3.0))
    policy = compile_policy("(fn [x y] (/ x y))", SLOT)
    assert policy.columns(frame).to_list() == [5 / 3, 7 / 3]


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 17, 129, 1000, 5000])
@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_bits_do_not_depend_on_the_length_of_the_frame(rows: int, chunks: int) -> None:
    policy = compile_policy("(fn [x y] (pow x y))", SLOT)
    x, y = (
        [(1 / 3, 1.7, 0.1)[i % 3] for i in range(rows)],
        [(5.0, 7.0, 3.0, 6.0)[i % 4] for i in range(rows)],
    )
    frame = pl.DataFrame({"x": x, "y": y})
    frame = pl.concat(
        [frame[i : i + 1] for i in range(chunks - 1)] + [frame[chunks - 1 :]], rechunk=False
    )
    assert policy.columns(frame).to_list() == [math.pow(a, b) for a, b in zip(x, y, strict=True)]


def test_a_frame_must_hold_the_inputs_in_their_types() -> None:
    policy = compile_policy("(fn [age-days] age-days)", SLOT)
    with pytest.raises(UnknownName, match=r'no column "age-days". Did you mean age_day'):
        policy.columns(pl.DataFrame({"age_day": [1.0]}))
    with pytest.raises(InputError, match="contains String, but the feature is a number"):
        policy.columns(pl.DataFrame({"age_days": ["1"]}))
    with pytest.raises(UnknownName, match="age-days"):
        policy.arrays({"x": [1.0]})
    with pytest.raises(InputError, match="has 1 rows, but another has 2"):
        compile_policy("(fn [x y] (+ x y))", SLOT).arrays({"x": [1.0, 2.0], "y": [1.0]})
    with pytest.raises(UnknownName, match='no value "age-days"'):
        policy.row({"x": 1})
    with pytest.raises(InputError, match="age-days must be a num"):
        policy.row({"age-days": "old"})


def test_results_never_alias_the_callers_arrays() -> None:
    import numpy as np

    x = np.array([1.0, 2.0])
    values, _ = compile_policy("(fn [x] x)", SLOT).arrays({"x": x})
    values[0] = 9.0
    assert x[0] == 1.0


# Helpers.


def test_helpers_are_inlined_and_see_only_their_arguments() -> None:
    source = "(defn twice [n] (* 2 n)) (defn four [n] (twice (twice n))) (fn [x] (four x))"
    assert compile_policy(source, SLOT).row({"x": 3.0}) == 12.0
    given = compile_policy(
        "(fn [x] (twice x))", SLOT, helpers=('(defn twice [n] "Doubles." (* 2 n))',)
    )
    assert given.row({"x": 3.0}) == 6.0


def test_a_helper_hides_one_of_the_library() -> None:
    assert compile_policy("(fn [x] (square x))", SLOT).row({"x": 3.0}) == 9.0
    assert compile_policy("(defn square [n] n) (fn [x] (square x))", SLOT).row({"x": 3.0}) == 3.0


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("(half-life-decay 30 30)", 0.5),
        ("(exponential-decay 30 30)", math.exp(-1)),
        ("(power-law 3 1 0.5)", 0.5),
        ("(retrievability 10 10)", 0.9),
        ("(base-level 10 100 0.5)", math.log(20) - 0.5 * math.log(100)),
        ("(sigmoid 0)", 0.5),
        ("(saturate 3 3)", 0.5),
        ("(capped 30 20)", 1.0),
        ("(gauss 5 5 2)", 1.0),
        ("(linear 5 0 10)", 0.5),
        ("(mix 1 3 0.25)", 1.5),
        ("(success-rate 1 0)", 2 / 3),
        ("(square 3)", 9.0),
        ("(log2 8)", 3.0),
        ("(log10 1000)", 3.0),
    ],
)
def test_library(body: str, expected: float) -> None:
    assert value(body) == pytest.approx(expected, rel=1e-12)
    head, *numbers = body.strip("()").split()
    names = ["x", "y", "age-days"][: len(numbers)]
    changes = dict(zip(names, map(float, numbers), strict=True))
    assert value(f"({head} {' '.join(names)})", **changes) == pytest.approx(expected, rel=1e-12)


def test_every_helper_of_the_library_has_a_description() -> None:
    from memlab.kernel.language.texts import library

    assert all(helper.doc for helper in library().values())


# Parameters.


def scaled(**params: float) -> Policy:
    return compile_policy(
        "(fn [x] (* (param :scale 2 :low 0 :high 10) x))", SLOT, params=params or None
    )


def test_params_have_defaults_bounds_and_values() -> None:
    policy = scaled()
    (param,) = policy.params.values()
    assert (param.name, param.default, param.low, param.high, param.value) == (
        "scale",
        2.0,
        0.0,
        10.0,
        2.0,
    )
    other = policy.with_params({"scale": 5})
    assert other.row({"x": 1.0}) == 5.0
    assert other.params["scale"].default == 2.0
    assert other.hash != policy.hash
    assert other.source_hash == policy.source_hash
    assert other.with_params({"scale": 2}) == policy == scaled(scale=2.0)


def test_params_are_checked() -> None:
    with pytest.raises(UnknownName, match=r'no parameter "scal". Did you mean scale'):
        scaled().with_params({"scal": 1})
    with pytest.raises(InputError, match=r"scale must be between 0 and 10, not 11\.0"):
        scaled().with_params({"scale": 11})
    with pytest.raises(InputError, match="not nan"):
        scaled().with_params({"scale": math.nan})


def test_compiling_is_cached_by_content() -> None:
    source = "(fn [x] (+ x 1))"
    assert compile_policy(source, SLOT) is compile_policy(
        source, Signature("recall_score", list(INPUTS))
    )

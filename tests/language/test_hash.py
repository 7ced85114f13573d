"""Identity: the source hash forgives spelling, the meaning hash forgives form, the version hash forgives nothing."""

from __future__ import annotations

import polars as pl
import pytest

from memlab.kernel.language import Input, Policy, Signature, compile_policy

SLOT = Signature("score", [Input("x"), Input("y"), Input("age_days"), Input("kind", "str")])
BASE = '(fn [x y kind] (let [a (+ x 1) b (* a y)] (if (= kind "fact") (/ b 3) a)))'


def policy(source: str, **options) -> Policy:
    return compile_policy(source, SLOT, **options)


@pytest.mark.parametrize(
    "same",
    [
        '(fn [x y kind]\n  (let [a (+ x 1)   b (* a y)] ; twice\n    (if (= kind "fact") (/ b 3) a)))',
        '(lambda (x y kind) (let* ((a (+ x 1)) (b (* a y))) (if (= kind "fact") (/ b 3) a)))',
        '(fn [x y kind] (let [sum (+ x 1) product (* sum y)] (if (= kind "fact") (/ product 3) sum)))',
        "(fn [x y kind] (let [a (+ x 1) b (* a y)] (if (= kind 'fact) (/ b 3) a)))",
        "(fn [x y kind] (let [a (+ x 1) b (* a y)] (if (= kind (quote fact)) (/ b 3) a)))",
        "(fn [x y kind] (let [a (+ x 1) b (* a y)] (if (= kind #[[fact]]) (/ b 3) a)))",
        '(fn [x y kind] (let [a (+ x 1) b (* a y)] #_ (ignored form) (if (= kind "fact") (/ b 3) a)))',
        '(defpolicy any-name [x y kind] "A docstring." (let [a (+ x 1) b (* a y)] (if (= kind "fact") (/ b 3) a)))',
    ],
)
def test_spelling_does_not_change_the_source(same: str) -> None:
    assert policy(same).source_hash == policy(BASE).source_hash
    assert policy(same).hash == policy(BASE).hash
    assert policy(same).meaning_hash == policy(BASE).meaning_hash


@pytest.mark.parametrize(
    "other",
    [
        BASE.replace("3", "3.0"),
        BASE.replace("3", "4"),
        BASE.replace("fact", "event"),
        BASE.replace("[x y kind]", "[y x kind]"),
        BASE.replace("(+ x 1)", "(+ 1 x)"),
        BASE.replace("(* a y)", "(* y a)"),
        '(fn [x y kind] (let [a (+ x 1)] (if (= kind "fact") (/ (* a y) 3) a)))',
    ],
)
def test_another_source_has_another_hash(other: str) -> None:
    assert policy(other).source_hash != policy(BASE).source_hash
    assert policy(other).hash != policy(BASE).hash


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("(fn [x] (* 2 x))", "(fn [x] (* 2.0 x))"),
        ("(fn [x] (* (+ 1 1) x))", "(fn [x] (* 2 x))"),
        ("(fn [x] (let [a (exp x)] (+ a a)))", "(fn [x] (+ (exp x) (exp x)))"),
        ("(fn [x y] (if (> x y) 1 0))", "(fn [y x] (if (< y x) 1 0))"),
        ("(fn [x] (square x))", "(fn [x] (* x x))"),
        ("(fn [x] (* (param :a 2) x))", "(fn [x] (* 2 x))"),
        ("(fn [age_days] age_days)", "(fn [age-days] age-days)"),
        ("(fn [x] (pow x 2))", "(fn [x] (* x x))"),
    ],
)
def test_meaning_is_more_than_form(a: str, b: str) -> None:
    assert policy(a).meaning_hash == policy(b).meaning_hash


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("(fn [x] (- x 1))", "(fn [x] (- 1 x))"),
        ("(fn [x] (* 0.0 x))", "(fn [x] (* -0.0 x))"),
        ("(fn [x] x)", "(fn [y] y)"),
        ("(fn [x] (min x 1))", "(fn [x] (max x 1))"),
        ('(fn [kind] (case kind "a" 1 else 2))', '(fn [kind] (case kind "b" 1 else 2))'),
    ],
)
def test_other_meanings_have_other_hashes(a: str, b: str) -> None:
    assert policy(a).meaning_hash != policy(b).meaning_hash


def test_rebound_names_are_distinguished() -> None:
    a = policy("(fn [x] (let [a 1 a 2 b 3] (let [c 4] (+ a c))))")
    b = policy("(fn [x] (let [a 1 a 2 b 3] (let [c 4] (+ b c))))")
    assert a.source_hash != b.source_hash


def test_the_version_covers_helpers_and_parameter_values() -> None:
    source = "(fn [x] (grow x))"
    one, two = "(defn grow [n] (* 2 n))", "(defn grow [n] (* 3 n))"
    assert policy(source, helpers=(one,)).source_hash == policy(source, helpers=(two,)).source_hash
    assert policy(source, helpers=(one,)).hash != policy(source, helpers=(two,)).hash
    renamed = "(defn grow [m]\n  (* 2 m))"
    assert policy(source, helpers=(one,)).hash == policy(source, helpers=(renamed,)).hash
    unused = "(defn other [n] n)"
    assert policy(source, helpers=(one, unused)).hash == policy(source, helpers=(one,)).hash


def test_hashes_are_pinned() -> None:
    """These change only with the dialect's version: logs of older labs name policies by them."""
    result = policy("(fn [x y] (+ (* 0.5 x) (half-life-decay y 30)))")
    assert result.source_hash[:16] == "3346accba6c9b300"
    assert result.meaning_hash[:16] == "28f4a206fdc3ee2d"
    assert result.hash[:16] == "e1ffb86ca5ba78c2"


def test_the_order_of_arguments_is_part_of_the_text_and_not_of_the_meaning():
    one, other = policy("(fn [x y] (- x y))"), policy("(fn [y x] (- x y))")
    assert one.meaning_hash == other.meaning_hash
    assert one.hash != other.hash


def test_negative_zero_is_a_value_of_its_own():
    divided = policy("(fn [x] (/ x (param :d 1.0)))")
    values = [divided.with_params({"d": d}).row({"x": 1.0}) for d in (0.0, -0.0)]
    assert values == [divided.with_params({"d": d}).columns(_one_row()).item() for d in (0.0, -0.0)]
    assert [divided.with_params({"d": d}).params["d"].value.hex() for d in (0.0, -0.0)] == [
        "0x0.0p+0",
        "-0x0.0p+0",
    ]


def _one_row() -> pl.DataFrame:
    return pl.DataFrame({"x": [1.0]})

"""Every primitive on every special value: columns and row agree on each bit, arrays agree within 1e-12.

Each argument is a column or a literal, because Polars computes the two differently: ``x / literal`` multiplies,
``x + 0`` does nothing, and of two zeros ``min`` keeps the last.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest

from memlab.kernel.language import Input, Policy, Signature, compile_policy
from tests.language.programs import bits

NUMBERS: list[float | None] = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, 4.0, -2.0, 1 / 3, 1e-310, 5e-324, 1e308, -1e308, 1e16, math.pi,
    math.inf, -math.inf, math.nan, None,
]  # fmt: skip
BOOLS: list[bool | None] = [True, False, None]
STRINGS: list[str | None] = ["a", "b", "", "über", None]
SLOT = Signature(
    "score",
    [Input("x"), Input("y"), Input("z"), Input("p", "bool"), Input("q", "bool"), Input("s", "str")],
)
NAMES = "xyz"

UNARY = (
    "-",
    "/",
    "abs",
    "exp",
    "log",
    "log1p",
    "sqrt",
    "tanh",
    "sign",
    "floor",
    "ceil",
    "+",
    "*",
    "min",
    "null?",
)
UNITS = ("days", "hours", "minutes", "weeks")
BINARY = ("+", "-", "*", "/", "pow", "min", "max", "=", "!=", "<", "<=", ">", ">=", "if-null")
TERNARY = ("clamp", "+", "-", "*", "min", "max", "<", "<=", "=")


def literal(value: float | None) -> str | None:
    """Return the source of a constant, or None if the dialect has no such literal."""
    if value is None:
        return "null"
    return (
        repr(value)
        if math.isfinite(value)
        else {"inf": "(/ 1.0 0)", "-inf": "(/ -1.0 0)", "nan": "(/ 0.0 0)"}[str(value)]
    )


def agree(source: str, rows: dict[str, list], slot: Signature) -> None:
    """Check that columns equal rows on every bit, and arrays nearly, for every row of a table."""
    policy = compile_policy(source, slot)
    frame = pl.DataFrame(
        rows,
        schema={
            n: {"num": pl.Float64, "bool": pl.Boolean, "str": pl.String}[slot.inputs[n].type]
            for n in rows
        },
    )
    columns = policy.columns(frame).to_list()
    single = [
        policy.row(dict(zip(rows, values, strict=True)))
        for values in zip(*rows.values(), strict=True)
    ]
    wrong = [
        (v, c, r)
        for v, c, r in zip(zip(*rows.values(), strict=True), columns, single, strict=True)
        if bits(c) != bits(r)
    ]
    assert not wrong, f"{source}: {len(wrong)} differ, such as {wrong[:3]}"
    near(policy, rows, slot, single)


def near(policy: Policy, rows: dict[str, list], slot: Signature, expected: list) -> None:
    blank = {"num": 0.0, "bool": False, "str": ""}
    dtype = {"num": float, "bool": bool, "str": object}
    arguments = {}
    for name, values in rows.items():
        kind = slot.inputs[name].type
        filled = np.array([blank[kind] if v is None else v for v in values], dtype[kind])
        arguments[name] = (filled, np.array([v is None for v in values]))
    values, nulls = policy.arrays(arguments)
    missing = np.zeros(len(values), bool) if nulls is None else nulls
    assert missing.tolist() == [e is None for e in expected], policy.source
    if policy.signature.returns == "num":
        wanted = np.array([math.nan if e is None else e for e in expected])
        np.testing.assert_allclose(
            values[~missing], wanted[~missing], rtol=1e-12, atol=0, err_msg=policy.source
        )
        zero = ~missing & (wanted == 0)
        assert (np.signbit(values[zero]) == np.signbit(wanted[zero])).all(), (
            f"{policy.source}: signs of zeros"
        )
    else:
        assert [v for v, m in zip(values.tolist(), missing, strict=True) if not m] == [
            e for e in expected if e is not None
        ]


def returning(op: str) -> Signature:
    return BOOL_SLOT if op in ("=", "!=", "<", "<=", ">", ">=", "null?") else SLOT


BOOL_SLOT = Signature("test", SLOT.inputs, "bool")
STR_SLOT = Signature("word", SLOT.inputs, "str")


@pytest.mark.parametrize("op", UNARY + UNITS)
def test_unary(op: str) -> None:
    agree(f"(fn [x] ({op} x))", {"x": NUMBERS}, returning(op))


@pytest.mark.parametrize("op", BINARY)
def test_binary_on_columns(op: str) -> None:
    x, y = zip(*itertools.product(NUMBERS, NUMBERS), strict=True)
    agree(f"(fn [x y] ({op} x y))", {"x": list(x), "y": list(y)}, returning(op))
    agree(f"(fn [x] ({op} x x))", {"x": NUMBERS}, returning(op))


@pytest.mark.long
@pytest.mark.parametrize("op", BINARY)
def test_binary_with_a_literal(op: str) -> None:
    for value in NUMBERS:
        agree(f"(fn [x] ({op} x {literal(value)}))", {"x": NUMBERS}, returning(op))
        agree(f"(fn [x] ({op} {literal(value)} x))", {"x": NUMBERS}, returning(op))


@pytest.mark.long
def test_constant_powers() -> None:
    """Polars takes products for some whole exponents, which round differently from ``pow``."""
    bases = [
        x * sign for x in np.random.default_rng(0).lognormal(0, 2, 300).tolist() for sign in (1, -1)
    ] + NUMBERS
    for exponent in [*range(-40, 41), 0.25, -0.5, 1.5, 2.5, 100, 1e300]:
        agree(f"(fn [x] (pow x {exponent}))", {"x": bases}, SLOT)
        agree(f"(fn [x] (pow {exponent} x))", {"x": bases}, SLOT)


@pytest.mark.long
@pytest.mark.parametrize("op", TERNARY)
def test_ternary_on_columns(op: str) -> None:
    x, y, z = zip(*itertools.product(NUMBERS, NUMBERS, NUMBERS), strict=True)
    agree(f"(fn [x y z] ({op} x y z))", {"x": list(x), "y": list(y), "z": list(z)}, returning(op))


def ternary_with_literals(op: str, values: list[float | None]) -> None:
    x, y = (list(c) for c in zip(*itertools.product(NUMBERS, NUMBERS), strict=True))
    for a in values:
        agree(f"(fn [x y] ({op} x y {literal(a)}))", {"x": x, "y": y}, returning(op))
        agree(f"(fn [x y] ({op} x {literal(a)} y))", {"x": x, "y": y}, returning(op))
        agree(f"(fn [x y] ({op} {literal(a)} x y))", {"x": x, "y": y}, returning(op))
        for b in values:
            agree(f"(fn [x] ({op} x {literal(a)} {literal(b)}))", {"x": NUMBERS}, returning(op))


@pytest.mark.long
@pytest.mark.parametrize("op", TERNARY)
def test_ternary_with_some_literals(op: str) -> None:
    ternary_with_literals(op, [0.0, -0.0, 1.0, 2.0, math.inf, math.nan, None])


@pytest.mark.slow
@pytest.mark.parametrize("op", TERNARY)
def test_ternary_with_every_literal(op: str) -> None:
    ternary_with_literals(op, NUMBERS)


@pytest.mark.long
def test_if_on_every_type() -> None:
    p, x, y = (list(c) for c in zip(*itertools.product(BOOLS, NUMBERS, NUMBERS), strict=True))
    agree("(fn [p x y] (if p x y))", {"p": p, "x": x, "y": y}, SLOT)
    agree("(fn [p x] (if p x null))", {"p": p, "x": x}, SLOT)
    agree("(fn [p x] (when p x))", {"p": p, "x": x}, SLOT)
    p, q = (list(c) for c in zip(*itertools.product(BOOLS, BOOLS), strict=True))
    agree("(fn [p q] (if p q (not q)))", {"p": p, "q": q}, BOOL_SLOT)
    p, s = (list(c) for c in zip(*itertools.product(BOOLS, STRINGS), strict=True))
    agree('(fn [p s] (if p s "other"))', {"p": p, "s": s}, STR_SLOT)
    agree('(fn [p s] (if-null (if p s null) "none"))', {"p": p, "s": s}, STR_SLOT)


@pytest.mark.parametrize("op", ["and", "or", "=", "!=", "if-null"])
def test_logic_is_kleenes(op: str) -> None:
    p, q = (list(c) for c in zip(*itertools.product(BOOLS, BOOLS), strict=True))
    agree(f"(fn [p q] ({op} p q))", {"p": p, "q": q}, BOOL_SLOT)
    for word in ("true", "false", "null"):
        agree(f"(fn [p] ({op} p {word}))", {"p": BOOLS}, BOOL_SLOT)
        agree(f"(fn [p] ({op} {word} p))", {"p": BOOLS}, BOOL_SLOT)


@pytest.mark.parametrize(
    "body",
    [
        '(= s "a")', '(!= s "a")', '(in s ["a" "über"])', '(one-of s "a")', '(not-in s ["a" ""])', "(null? s)",
        '(= s (if (= s "a") "b" s))', '(= "a" s "a")', "(= s s)", '(in (if-null s "b") ["b" ""])',
    ],
)  # fmt: skip
def test_strings(body: str) -> None:
    agree(f"(fn [s] {body})", {"s": STRINGS}, BOOL_SLOT)


@pytest.mark.parametrize(
    "body",
    [
        '(case s "a" 1 "b" 2 else 3)',
        '(case s ["a" "b"] x else -0.0)', '(case x 1 2 3 4 else 5)', "(case x [0 1] 2 else x)",
        '(case (if-null s "a") "a" 1 "" 2 else 3)', "(in x [0 1 3])",
    ],
)  # fmt: skip
def test_case(body: str) -> None:
    s, x = (list(c) for c in zip(*itertools.product(STRINGS, NUMBERS), strict=True))
    agree(f"(fn [s x] {body})", {"s": s, "x": x}, BOOL_SLOT if body.startswith("(in") else SLOT)


@pytest.mark.long
@pytest.mark.parametrize(
    "choice",
    [
        "(if p 0.3 0.7)",
        "(cond p 0.3 q 0.1 else 0.7)",
        '(case s "a" 0.3 else 0.7)',
        "(if-null y 0.3)",
        "(when p 0.3)",
        "(if p 0 1)",
    ],
)
@pytest.mark.parametrize("op", ["/", "*", "+", "-", "pow", "min", "max"])
def test_a_choice_that_takes_one_branch_throughout(op: str, choice: str) -> None:
    for p, s, y in itertools.product(BOOLS, ["a", "b", None], [1.0, None]):
        count = len(NUMBERS)
        rows = {
            "x": NUMBERS,
            "y": [y] * count,
            "p": [p] * count,
            "q": [p] * count,
            "s": [s] * count,
        }
        agree(f"(fn [x y p q s] ({op} x {choice}))", rows, SLOT)
        agree(f"(fn [x y p q s] ({op} {choice} x))", rows, SLOT)

"""Random well-typed programs of the dialect, and random tables for them.

``program`` shrinks well and keeps to scalars; ``policies`` and ``slates`` draw from the whole grammar: helpers,
parameters, aggregates, sets, records and lists too.
"""

from __future__ import annotations

import math
import struct

import polars as pl
from hypothesis import strategies as st

from memlab.kernel.language import Input, Signature
from tests.language.grammar import Grammar
from tests.language.vocabulary import records

INPUTS = (
    Input("x"),
    Input("y"),
    Input("z"),
    Input("p", "bool"),
    Input("q", "bool"),
    Input("s", "str"),
    Input("t", "str"),
)
NUM = Signature("score", INPUTS)
BOOL = Signature("eligible", INPUTS, "bool")
STR = Signature("label", INPUTS, "str")
ARGUMENTS = "x y z p q s t"
WORDS = ("a", "b", "fact", "")
# These round differently in NumPy; everything else is exact IEEE arithmetic and must agree on each bit.
INEXACT = ("exp", "log", "log1p", "tanh")

literals = st.one_of(
    st.sampled_from(
        ["0", "-0.0", "0.0", "1", "-1", "2", "0.5", "3", "4", "0.1", "1e300", "1e-300", "-7"]
    ),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)
words = st.sampled_from([f'"{w}"' for w in WORDS])


def _call(head: str, *arguments: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*arguments).map(lambda items: f"({head} {' '.join(items)})")


def _any(heads: tuple[str, ...], *arguments: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.sampled_from(heads).flatmap(lambda head: _call(head, *arguments))


def _let(
    value: st.SearchStrategy[str], body: st.SearchStrategy[str], name: str
) -> st.SearchStrategy[str]:
    # The bound value is used twice, so that staging has something to share.
    return st.tuples(value, body).map(lambda v: f"(let [{name} {v[0]}] (if-null {v[1]} {name}))")


def program(type: str, depth: int, inexact: bool) -> st.SearchStrategy[str]:
    """Draw the source of an expression of a type."""
    leaves = {
        "num": st.one_of(st.sampled_from(["x", "y", "z"]), literals),
        "bool": st.sampled_from(["p", "q", "true", "false", "null"]),
        "str": st.one_of(st.sampled_from(["s", "t"]), words),
    }
    if depth == 0:
        return leaves[type]
    n, b, s = (program(t, depth - 1, inexact) for t in ("num", "bool", "str"))
    unary = (
        "-",
        "/",
        "abs",
        "sqrt",
        "sign",
        "floor",
        "ceil",
        "hours",
        "weeks",
        *(INEXACT if inexact else ()),
    )
    same = {"num": n, "bool": b, "str": s}[type]
    common = [
        leaves[type],
        _call("if", b, same, same),
        _call("if-null", same, same),
        _call("when", b, same),
        st.tuples(b, same, b, same, same).map(lambda v: "(cond {} {} {} {} else {})".format(*v)),
        _let(same, same, {"num": "x", "bool": "p", "str": "s"}[type]),
        st.tuples(s, words, same, words, words, same, same).map(
            lambda v: "(case {} {} {} [{} {}] {} else {})".format(*v)
        ),
    ]
    if type == "num":
        own = [
            _any(unary, n),
            _any(("+", "-", "*", "/", "min", "max"), n, n),
            _any(("+", "*", "min", "max", "clamp"), n, n, n),
            _call("pow", n, st.sampled_from(["0.5", "1", "2", "3", "4"]) if not inexact else n),
            st.tuples(s, words, literals, literals).map(
                lambda v: "(case {} {} {} else {})".format(*v)
            ),
        ]
    elif type == "bool":
        own = [
            _any(("=", "!=", "<", "<=", ">", ">="), n, n),
            _any(("=", "<", ">="), n, n, n),
            _any(("=", "!="), s, s),
            _any(("=", "!=", "and", "or"), b, b),
            _call("not", b),
            _call("null?", st.one_of(n, b, s)),
            st.tuples(s, words, words).map(lambda v: "(in {} [{} {}])".format(*v)),
        ]
    else:
        own = []
    return st.one_of(*common, *own)


def bits(value: object) -> object:
    """Return a key for the bits of a value: signed zeros differ, all NaNs are equal."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack(">d", value)
    return value


numbers = st.one_of(
    st.none(),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, math.inf, -math.inf, math.nan, 1e-310, 1e16]),
    st.floats(),
)
rows = st.lists(
    st.fixed_dictionaries(
        {
            **dict.fromkeys("xyz", numbers),
            **dict.fromkeys("pq", st.sampled_from([True, False, None])),
            **dict.fromkeys("st", st.sampled_from([*WORDS, "über", None])),
        }
    ),
    min_size=1,
    max_size=6,
)
SCHEMA = {
    **dict.fromkeys("xyz", pl.Float64),
    **dict.fromkeys("pq", pl.Boolean),
    **dict.fromkeys("st", pl.String),
}

dice = st.randoms(use_true_random=False)
policies = dice.map(lambda drawn: Grammar(drawn, depth=3).policy())
slates = st.tuples(dice, st.sampled_from([1, 2, 3, 6])).map(lambda drawn: records(*drawn))

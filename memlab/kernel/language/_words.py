"""The words of the dialect: its operators by kind, other names of them, literals, and what is left out."""

from __future__ import annotations

from typing import Final, Literal

__all__ = [
    "ABSENT",
    "AGGREGATE_FORMS",
    "ALIASES",
    "COMPARISONS",
    "DIRECT",
    "FOLDS",
    "FUNCTION_HEADS",
    "LITERALS",
    "RESPELLED",
    "UNITS",
    "canonical",
    "quoted",
]

DIRECT: Final = ("abs", "exp", "log", "log1p", "sqrt", "tanh", "pow", "sign", "floor", "ceil", "clamp", "not")
FOLDS: Final[dict[str, Literal["num", "bool"]]] = {
    "+": "num",
    "*": "num",
    "min": "num",
    "max": "num",
    "and": "bool",
    "or": "bool",
}
COMPARISONS: Final = ("=", "!=", "<", "<=", ">", ">=")
UNITS: Final = {"days": (1.0, 1.0), "weeks": (7.0, 1.0), "hours": (1.0, 24.0), "minutes": (1.0, 1440.0)}
"""Units of time, as days: times the first number, divided by the second."""
AGGREGATE_FORMS: Final = ("slate-min", "slate-max", "slate-mean", "slate-rank", "min-max")

FUNCTION_HEADS: Final = ("fn", "lambda", "λ")

RESPELLED: Final = {
    **dict.fromkeys(FUNCTION_HEADS, "fn"),
    "let*": "let",
    "True": "true",
    "False": "false",
    "None": "null",
    "nil": "null",
}
"""What the source hash takes for the same; of the aliases it does not."""

ALIASES: Final = {
    **dict.fromkeys(FUNCTION_HEADS[1:], "fn"),
    "let*": "let",
    **dict.fromkeys(("==", "=?", "eq?", "eqv?", "equal?"), "="),
    "not=": "!=",
    **dict.fromkeys(("expt", "**"), "pow"),
    "ceiling": "ceil",
    **dict.fromkeys(("nil?", "none?", "missing?"), "null?"),
    "coalesce": "if-null",
    "member?": "in",
}
"""Other names of a form, and the one that the tables have."""

LITERALS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("true", "True"), True),
    **dict.fromkeys(("false", "False"), False),
    **dict.fromkeys(("null", "nil", "None"), None),
}

ABSENT: Final = {
    "//": "Integer division is left out: it differs between back ends. Write (floor (/ a b)).",
    "%": "The remainder is left out: it differs between back ends. Write (- a (* b (floor (/ a b)))).",
    "mod": "The remainder is left out: it differs between back ends. Write (- a (* b (floor (/ a b)))).",
    "random": "A policy has no source of chance; exploration is the engine's, from the weights that explore returns.",
    "now": "A policy has no clock: time enters as features such as age-days.",
    "setv": "A policy changes nothing: bind names with let.",
    "set!": "A policy changes nothing: bind names with let.",
    "define": "Helpers are written (defn name [arguments] body).",
    "for": "A policy has no loops: it is applied to every item of a slate.",
    "while": "A policy has no loops: it is applied to every item of a slate.",
    "import": "A policy imports nothing.",
    "require": "A policy imports nothing.",
    "eval": "A policy evaluates no code.",
    **dict.fromkeys(
        ("choice", "flip"), "Chance is the engine's: give each item a weight, and it draws by the weights."
    ),
    **dict.fromkeys(
        ("map", "reduce", "fold", "sort", "argmax", "argmin", "cons", "append", "rest", "take", "reverse"),
        "Of lists there are only length, range, filter, nth, empty? and first: write a weight for each item instead.",
    ),
}
"""What the dialect leaves out, and what to write instead."""


def canonical(name: str) -> str:
    """``a_b`` and ``a-b`` are one name, as they are for Hy: the kebab-case one.

    >>> canonical("recency_ms")
    'recency-ms'
    """
    return name.replace("_", "-") if len(name) > 1 else name


def quoted(text: str) -> str:
    """A string as a literal of the dialect."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

"""The dialect's operations as ordinary functions of values, total and to the bit: what trusted Hy code calls.

Polars computes with a literal otherwise than with a column, and the graph follows it: ``x/3`` is ``x*(1/3)``, ``x+0``
is ``x`` (see ``_dag``). So a constant that stands in a policy stays one while it is computed with: it is a constant
``Node``, everything else a plain value, and an operation on a constant asks the graph's own rules. ``plain`` ends that.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from memlab.errors import PolicyTypeError
from memlab.language._check import COMPARISONS, DIRECT, FOLDS, UNITS
from memlab.language._dag import Dag, Node, NodeType, Value, constant_key
from memlab.language._derived import Derived
from memlab.language._primitives import PRIMITIVES, equal
from memlab.language._signature import Type

__all__ = [
    "FUNCTIONS",
    "Arity",
    "call",
    "checked",
    "choose",
    "decided",
    "helper",
    "if_null",
    "literal",
    "looked_up",
    "one_of",
    "plain",
    "set_test",
    "value_of",
]

Thunk = Callable[[], Any]


class _Rules(Dag):
    """The graph's rules on values: what they leave of an operation is computed at once."""

    def _node(self, op: str, args: tuple[Node, ...], type: NodeType, value: object = None) -> Node:
        if op in ("const", "value"):
            return Node(op, (), type, value, 0)
        primitive, given = PRIMITIVES[op], [a.value for a in args]
        null = primitive.strict and any(v is None for v in given)
        return Node("value", (), type, None if null else primitive.scalar(*given), 0)


_RULES = _Rules()


def literal(value: Value) -> Node:
    """A constant that stands in the source."""
    return Node("const", (), None, value, 0)


def value_of(value: Any) -> Any:
    return value.value if value.__class__ is Node else value


def plain(value: Any) -> Any:
    """A value as Python has it, numbers as float."""
    value = value_of(value)
    if value.__class__ is float or value.__class__ is bool or value is None:
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    return float(value) if isinstance(value, int | float | np.number) else value


def checked(value: Any, type: Type, name: str) -> Any:
    """A plain value as an argument of ``type``, or an error that names the function."""
    if value is None or (value.__class__ is float and type == "num"):
        return value
    if type == "num":
        if isinstance(value, int | float | np.number | np.bool_):
            return float(value)
    elif type == "bool":
        if isinstance(value, bool | np.bool_):
            return bool(value)
    elif isinstance(value, str):
        return value
    what = {"num": "a number", "bool": "true or false", "str": "a string"}[type]
    raise PolicyTypeError(f"{name} takes {what}, and {value!r} is not.")


def _primitive(op: str) -> Callable[..., Any]:
    primitive = PRIMITIVES[op]
    takes, scalar, strict = primitive.takes, primitive.scalar, primitive.strict

    def apply(*values: Any) -> Any:
        given = [checked(value_of(v), t, op) for v, t in zip(values, takes, strict=True)]
        if any(v.__class__ is Node for v in values):
            nodes = [
                literal(x) if v.__class__ is Node else Node("value", (), None, x, 0)
                for v, x in zip(values, given, strict=True)
            ]
            result = _RULES.make(op, *nodes)
            return result if result.constant else result.value
        return None if strict and None in given else scalar(*given)

    return apply


_PRIMITIVE = {op: _primitive(op) for op in (*DIRECT, *FOLDS, "-", "/", "neg", "<", "<=")}


def _same(x: Any, y: Any) -> Any:
    a, b = value_of(x), value_of(y)
    if a is None or b is None:
        result = None
    elif isinstance(a, str) is not isinstance(b, str):
        raise PolicyTypeError(f"= compares values of one type, and {a!r} and {b!r} are of two.")
    else:
        result = equal(a, b)
    # null is known as soon as one side is known to be null
    known = [v.__class__ is Node for v in (x, y)]
    if all(known) or (known[0] and a is None) or (known[1] and b is None):
        return literal(result)
    return result


def _fold(name: str) -> Callable[..., Any]:
    pair = _PRIMITIVE[name]
    return lambda first, *rest: functools.reduce(pair, rest, first)


def _minus(first: Any, *rest: Any) -> Any:
    return functools.reduce(_PRIMITIVE["-"], rest, first) if rest else _PRIMITIVE["neg"](first)


def _divide(first: Any, *rest: Any) -> Any:
    return functools.reduce(_PRIMITIVE["/"], rest, first) if rest else _PRIMITIVE["/"](literal(1.0), first)


def _pair(name: str) -> Callable[[Any, Any], Any]:
    if name in (">", ">="):
        order = _PRIMITIVE["<" if name == ">" else "<="]
        return lambda x, y: order(y, x)
    if name in ("<", "<="):
        return _PRIMITIVE[name]
    return _same if name == "=" else lambda x, y: _PRIMITIVE["not"](_same(x, y))


def _compare(name: str) -> Callable[..., Any]:
    pair = _pair(name)

    def compare(*values: Any) -> Any:
        return functools.reduce(_PRIMITIVE["and"], [pair(x, y) for x, y in pairwise(values)])

    return compare


def _unit(name: str) -> Callable[[Any], Any]:
    times, per = map(literal, UNITS[name])
    return lambda amount: _PRIMITIVE["/"](_PRIMITIVE["*"](amount, times), per)


def _is_null(value: Any) -> Any:
    return literal(value.value is None) if value.__class__ is Node else value is None


# Choices. Branches come as functions without arguments, so that only what is needed runs.


def _holds(test: Any) -> bool:
    value = value_of(test)
    if value is None or isinstance(value, bool | np.bool_):
        return bool(value)
    raise PolicyTypeError(f"A test is true or false, and {value!r} is not.")


def choose(test: Any, then: Thunk, otherwise: Thunk, pure: bool) -> Any:
    """``if``. A choice between two equal constants is that constant: if both branches are ``pure``, the dialect's own
    and so total, the other one is looked at too when the one taken is a constant.
    """
    taken, other = (then, otherwise) if _holds(test) else (otherwise, then)
    value = taken()
    if test.__class__ is Node or value.__class__ is not Node:
        return value
    second = other() if pure else None
    same = second.__class__ is Node and constant_key(second.value) == constant_key(value.value)
    return value if same else value.value


def looked_up(subject: Any, found: Any) -> Any:
    """A ``case`` of strings that gives numbers is a table: its value is none that the graph knows."""
    if subject.__class__ is not Node and found.__class__ is Node and found.value.__class__ is float:
        return found.value
    return found


def if_null(value: Any, otherwise: Thunk) -> Any:
    if value.__class__ is Node:
        return otherwise() if value.value is None else value
    return value_of(otherwise()) if value is None else value


def decided(op: str, first: Any, second: Thunk) -> Any:
    """``and`` or ``or`` whose second side is somebody's own code: it runs only if it matters."""
    if value_of(first) is (op == "or"):
        return first
    return _PRIMITIVE[op](first, second())


# Membership.


def one_of(value: Any, options: Sequence[Any]) -> Any:
    """Null when the value is; options that are null are passed over."""
    x, given = value_of(value), [plain(o) for o in options]
    for option in given:
        if option is not None and x is not None and isinstance(option, str) is not isinstance(x, str):
            raise PolicyTypeError(f"{x!r} is compared with {option!r}, which is of another type.")
    result = None if x is None else any(option is not None and equal(x, option) for option in given)
    return literal(result) if value.__class__ is Node else result


def set_test(op: str, sets: Sequence[Any], words: Sequence[str]) -> Any:
    """``has``, ``overlap`` ... on collections of strings."""
    names = ("the first set", "the second set")[: len(sets)]
    return Derived(op, names, tuple(dict.fromkeys(words))).row(dict(zip(names, sets, strict=True)))


# Functions: the dialect's, and anyone's.


def helper(function: FunctionType) -> Callable[..., Any]:
    """A ``defn`` for everyone: plain values out. The dialect calls ``__memlab__``, where constants stay constants."""

    @functools.wraps(function)
    def public(*args: Any, **kwargs: Any) -> Any:
        return plain(function(*args, **kwargs))

    public.__memlab__ = function  # type: ignore[attr-defined]
    return public


def call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """A function that is none of the dialect: plain values in. A constant reaches it as it is written, 3 as an int."""
    if isinstance(function, FunctionType) and hasattr(function, "__memlab__"):
        return function.__memlab__(*[literal(plain(a)) if a.__class__ is Node else a for a in args], **kwargs)
    return function(*map(value_of, args), **kwargs)


class Arity(NamedTuple):
    """How many arguments a function takes; no ``most`` is any number."""

    least: int
    most: int | None


FUNCTIONS: dict[str, tuple[Callable[..., Any], Arity]] = {
    **{name: (_PRIMITIVE[name], Arity(len(PRIMITIVES[name].takes), len(PRIMITIVES[name].takes))) for name in DIRECT},
    **{name: (_fold(name), Arity(1, None)) for name in FOLDS},
    **{name: (_compare(name), Arity(2, 2 if name == "!=" else None)) for name in COMPARISONS},
    **{name: (_unit(name), Arity(1, 1)) for name in UNITS},
    "-": (_minus, Arity(1, None)),
    "/": (_divide, Arity(1, None)),
    "null?": (_is_null, Arity(1, 1)),
}
"""The dialect's functions of scalars by name: what they do and how many arguments they take."""

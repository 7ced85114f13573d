"""Filters over JSON values, as LangGraph and mem0 write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from memlab.errors import InputError, did_you_mean
from memlab.kernel.base.arguments import shown

__all__ = ["fits"]


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Numbers with numbers, texts with texts; anything else is in no order, and no fit."""

    def fit(value: Any, given: Any) -> bool:
        numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (value, given))
        texts = isinstance(value, str) and isinstance(given, str)
        return (numbers or texts) and compare(value, given)

    return fit


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, given: bool(value == given),
    "ne": lambda value, given: bool(value != given),
    "gt": _ordered(lambda value, given: value > given),
    "gte": _ordered(lambda value, given: value >= given),
    "lt": _ordered(lambda value, given: value < given),
    "lte": _ordered(lambda value, given: value <= given),
    "in": lambda value, given: isinstance(given, list | tuple) and value in given,
    "nin": lambda value, given: isinstance(given, list | tuple) and value not in given,
    "contains": lambda value, given: isinstance(value, str) and isinstance(given, str) and given in value,
    "icontains": lambda value, given: (
        isinstance(value, str) and isinstance(given, str) and given.casefold() in value.casefold()
    ),
}


def fits(value: Any, wanted: Any, operators: tuple[str, ...], sign: str = "") -> bool:
    """Whether a value is what a filter wants: an equal one, the same parts in a dict or list, or as ``operators`` say.

    ``sign`` stands before the names of operators. InputError for an operator that is none of them.

    >>> fits({"age": 30}, {"age": {"$gte": 18}}, ("gte",), "$")
    True
    """
    if isinstance(wanted, Mapping):
        if any(_is_operator(name, operators, sign) for name in wanted):
            for name in wanted:
                if not _is_operator(name, operators, sign) or name.removeprefix(sign) not in operators:
                    near = did_you_mean(str(name), [sign + operator for operator in operators])
                    raise InputError(f"There is no operator {shown(name)} in a filter. {near}")
            return all(_OPERATORS[name.removeprefix(sign)](value, given) for name, given in wanted.items())
        return isinstance(value, Mapping) and all(
            fits(value.get(name), part, operators, sign) for name, part in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(wanted)
            and all(fits(one, other, operators, sign) for one, other in zip(value, wanted, strict=True))
        )
    return bool(value == wanted)


def _is_operator(name: object, operators: tuple[str, ...], sign: str) -> bool:
    if not isinstance(name, str):
        return False
    return name.startswith(sign) if sign else name in operators

"""``(param :name default :low a :high b)``: a constant that may be tuned. Bounds are inclusive and may be left out."""

from __future__ import annotations

import math
from dataclasses import dataclass

from memlab.errors import PolicyTypeError
from memlab.kernel.language._reader import Form, Text

__all__ = ["Param", "declared_param"]

_SHAPE = "(param :name default :low a :high b)"


@dataclass(frozen=True)
class Param:
    """A constant that may be tuned: its default, its bounds and the value in force."""

    name: str
    default: float
    low: float
    high: float
    value: float


def declared_param(form: Form, text: Text) -> Param:
    """The declaration in ``form``, with its default in force."""
    items = form.items[1:]
    if len(items) < 2 or items[0].kind != "keyword":
        at = items[0] if items and items[0].kind != "keyword" else form
        raise text.error(PolicyTypeError, f"A parameter is a name, as a keyword, and a default: {_SHAPE}.", at)
    name, default = items[0].text, items[1]
    if default.kind not in ("int", "float"):
        raise text.error(PolicyTypeError, f"The default of :{name} is a number.", default)
    bounds = {"low": -math.inf, "high": math.inf}
    if len(items) > 6 or len(items) % 2:
        raise text.error(PolicyTypeError, f"A bound is :low or :high and a number: {_SHAPE}.", items[-1])
    for key, value in zip(items[2::2], items[3::2], strict=True):
        if key.kind != "keyword" or key.text not in bounds or value.kind not in ("int", "float"):
            raise text.error(PolicyTypeError, "A bound is :low or :high and a number.", key)
        bounds[key.text] = value.number
    if not bounds["low"] <= default.number <= bounds["high"]:
        raise text.error(PolicyTypeError, f"The default of :{name} is outside its own bounds.", default)
    return Param(name, default.number, bounds["low"], bounds["high"], default.number)

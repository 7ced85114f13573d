"""Arithmetic, units and comparisons: their arguments are numbers, or a pair to compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from memlab.language._check import COMPARISONS, DIRECT, FOLDS, UNITS
from memlab.language._primitives import PRIMITIVES, at_most, both, less
from memlab.language._reader import Form
from memlab.language.lists._closures import applied, constant
from memlab.language.lists._compiler import Compiler, Operator, Scope
from memlab.language.lists._machine import CLASSES, NULL, WORDS, Code, Machine, Place, kind, same

__all__ = ["OPERATORS", "primitive"]


def primitive(compiler: Compiler, name: str, codes: list[Code], forms: Sequence[Form], form: Form, why: str) -> Code:
    """A scalar operation in the canonical form of the graph, so that it rounds alike."""
    operation = PRIMITIVES[name]
    takes, scalar = operation.takes, operation.scalar
    for code, argument, type in zip(codes, forms, takes, strict=True):
        if code.constant and code.value is not None and code.value.__class__ is not CLASSES[type]:
            raise compiler.error(f"{why} {WORDS[type]}, and this is {kind(code.value)}.", argument)
    if all(code.constant for code in codes):
        values = [code.value for code in codes]
        return constant(None if operation.strict and None in values else scalar(*values))
    rewritten = _rewritten(name, [code.value if code.constant else None for code in codes])
    if rewritten is not None:
        scalar, kept = rewritten
        codes, forms, takes = [codes[kept]], [forms[kept]], ("num",)
    classes, strict = tuple(CLASSES[t] for t in takes), operation.strict
    first = takes[0]

    def checked(machine: Machine, at: Place, *values: Any) -> Any:
        null = False
        for i, value in enumerate(values):
            if value is None:
                null = True
            elif value.__class__ is not classes[i]:
                raise at.error(f"{why} {WORDS[first]}, and this is {kind(value)}.", i)
        return None if null and strict else scalar(*values)

    quick = scalar if set(takes) == {"num"} else None
    return applied(checked, codes, compiler.place(form, forms), quick)


def _rewritten(name: str, values: list[Any]) -> tuple[Callable[[float], float], int] | None:
    """What the graph makes of an operation with one constant side (see ``_dag``), and which side is left."""
    if len(values) != 2:
        return None
    x, y = values
    if name == "/" and y is not None:
        reciprocal: float = PRIMITIVES["/"].scalar(1.0, y)
        return (lambda number: number * reciprocal), 0
    if name in ("+", "-") and y == 0.0:
        return (lambda number: number), 0
    if name in ("+", "-") and x == 0.0:
        return (lambda number: number) if name == "+" else PRIMITIVES["neg"].scalar, 1
    if name == "pow" and y == 0.5:
        return PRIMITIVES["sqrt"].scalar, 0
    if name == "pow" and y in range(1, 10):
        exponent = int(y)
        return (lambda number: _product(number, exponent)), 0
    return None


def _product(x: float, n: int) -> float:
    if n == 1:
        return x
    half = _product(x, n // 2)
    return half * half * x if n % 2 else half * half


def _direct(compiler: Compiler, name: str, form: Form, scope: Scope) -> Code:
    count = len(PRIMITIVES[name].takes)
    forms = compiler.arity(form, count, count)
    return primitive(compiler, name, [compiler.code(a, scope) for a in forms], forms, form, f"{form.head} takes")


def _folded(compiler: Compiler, name: str, form: Form, scope: Scope) -> Code:
    forms = compiler.arity(form, 1)
    first, *rest = [compiler.code(a, scope) for a in forms]
    why = f"{form.head} takes"
    if not rest:
        if name == "-":
            return primitive(compiler, "neg", [first], forms, form, why)
        if name == "/":
            first, rest = constant(1.0), [first]
        else:
            name, rest = "+", [constant(0.0)]  # which is the number itself
    for code, argument in zip(rest, forms[1:] or forms, strict=True):
        first = primitive(compiler, name, [first, code], (forms[0], argument), form, why)
    return first


def _unit(compiler: Compiler, name: str, form: Form, scope: Scope) -> Code:
    forms = compiler.arity(form, 1, 1)
    code = compiler.code(forms[0], scope)
    for operator, factor in zip("*/", UNITS[name], strict=True):
        code = primitive(compiler, operator, [code, constant(factor)], [forms[0], form], form, f"{name} takes")
    return code


def _compared(compiler: Compiler, name: str, form: Form, scope: Scope) -> Code:
    forms = compiler.arity(form, 2, 2 if name == "!=" else None)
    codes = [compiler.code(a, scope) for a in forms]
    at = compiler.place(form)
    if name in ("=", "!="):

        def pair(x: Any, y: Any, place: int) -> Any:
            found = same(x, y, at, place)
            return found if name == "=" or found is None else not found
    else:
        order = less if name in ("<", ">") else at_most
        swap = name in (">", ">=")

        def pair(x: Any, y: Any, place: int) -> Any:
            for value, argument in ((x, place - 1), (y, place)):
                if value.__class__ not in (float, NULL):
                    raise at.error(f"{form.head} compares numbers, and this is {kind(value)}.", argument)
            if x is None or y is None:
                return None
            return order(y, x) if swap else order(x, y)

    def compared(machine: Machine, at: Place, *values: Any) -> Any:
        result: Any = True
        for i in range(1, len(values)):
            result = both(result, pair(values[i - 1], values[i], i))
        return result

    if all(code.constant for code in codes):
        return constant(compared(Machine("", 0, 0), at, *[code.value for code in codes]))
    return applied(compared, codes, at, _QUICK[name])


_QUICK: dict[str, Callable[[float, float], bool]] = {
    "=": PRIMITIVES["="].scalar,
    "!=": lambda x, y: not PRIMITIVES["="].scalar(x, y),
    "<": less,
    "<=": at_most,
    ">": lambda x, y: less(y, x),
    ">=": lambda x, y: at_most(y, x),
}

OPERATORS: dict[str, Operator] = {
    **dict.fromkeys(DIRECT, _direct),
    **dict.fromkeys([name for name, type in FOLDS.items() if type == "num"], _folded),
    **dict.fromkeys(("-", "/"), _folded),
    **dict.fromkeys(UNITS, _unit),
    **dict.fromkeys(COMPARISONS, _compared),
}

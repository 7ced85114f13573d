"""The forms of a list policy that are no functions: binding, choice, membership, quotes, parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memlab.language._check import ALIASES
from memlab.language._forms import FORMS, bindings, is_clause, literals, paired, unquoted
from memlab.language._primitives import both, either
from memlab.language._reader import Form
from memlab.language.lists._closures import applied, bind, choose, constant, let_code
from memlab.language.lists._compiler import Compiler, Scope, SpecialForm, plain
from memlab.language.lists._functions import FUNCTIONS, member
from memlab.language.lists._lift import LIFTED
from memlab.language.lists._machine import CLASSES, NULL, WORDS, Code, Environment, Function, Machine, Place, kind
from memlab.language.lists._operators import primitive

__all__ = ["SPECIAL"]


def _fn(compiler: Compiler, form: Form, scope: Scope) -> Code:
    items = form.items
    if len(items) != 3 or items[1].kind not in ("list", "call") or any(a.kind != "symbol" for a in items[1].items):
        raise compiler.error(f"A function is written ({form.head} [names] body).", form)
    names = [a.text for a in items[1].items]
    if len(set(names)) < len(names):
        raise compiler.error("An argument stands here twice; a-b and a_b are one name.", items[1])
    body = compiler.code(items[2], scope.bind(names))
    bodies = {len(names): body._replace(cost=body.cost + 1 + scope.size // 8)}
    return Code(lambda machine, env: Function(bodies, env))


def _let(compiler: Compiler, form: Form, scope: Scope) -> Code:
    names, size, values = dict(scope.names), scope.size, list[Code]()
    for name, value in bindings(compiler, form):
        if name.kind != "symbol":
            raise compiler.error("A binding begins with a name.", name)
        if ALIASES.get(name.text, name.text) in LIFTED or name.text in ("else", "true", "false", "null"):
            raise compiler.error(f"{name.text} is a form of the dialect and cannot be bound.", name)
        if value.kind == "symbol" and value.text in names:
            names[name.text] = names[value.text]
            continue
        compiler.binding.append(name.text)
        code = compiler.code(value, Scope(names, size))
        compiler.binding.pop()
        size = bind(name.text, code, names, values, size)
    if len(form.items) != 3:
        raise compiler.error(f"{form.head} has one expression as its body, and here are {len(form.items) - 2}.", form)
    return let_code(values, compiler.code(form.items[2], Scope(names, size)), compiler.place(form), size)


def _if(compiler: Compiler, form: Form, scope: Scope) -> Code:
    test, then, otherwise = [compiler.code(a, scope) for a in compiler.arity(form, 3, 3)]
    return choose(test, then, otherwise, compiler.place(form))


def _when(compiler: Compiler, form: Form, scope: Scope) -> Code:
    test, then = [compiler.code(a, scope) for a in compiler.arity(form, 2, 2)]
    return choose(test, then, constant(None), compiler.place(form))


def _cond(compiler: Compiler, form: Form, scope: Scope) -> Code:
    items = compiler.arity(form, 1)
    clauses = all(is_clause(compiler, item, scope.names) for item in items)
    pairs, otherwise = paired(compiler, form, items, clauses)
    codes = [(test, compiler.code(test, scope), compiler.code(value, scope)) for test, value in pairs]
    result = compiler.code(otherwise, scope)
    for test, asked, value in reversed(codes):
        result = choose(asked, value, result, compiler.place(form, (test,)))
    return result


def _case(compiler: Compiler, form: Form, scope: Scope) -> Code:
    subject, *rest = compiler.arity(form, 3)
    clauses = all(i.kind in ("call", "list") and len(i.items) == 2 and i.head != "quote" for i in rest)
    pairs, default = paired(compiler, form, tuple(rest), clauses)
    branches: dict[Any, Code] = {}
    type: str | None = None
    for key, value in pairs:
        code = compiler.code(value, scope)
        for literal in literals(compiler, key, clause=clauses):
            type = type or ("str" if literal.kind == "str" else "num")
            if (literal.kind == "str") != (type == "str"):
                raise compiler.error("The keys of case are all strings or all numbers.", literal)
            branches.setdefault(literal.text if type == "str" else literal.number, code)
    asked, otherwise = compiler.code(subject, scope), compiler.code(default, scope)
    wanted = CLASSES[type or "str"]
    at = compiler.place(form)

    def branch(value: Any) -> Code:
        if value is None:
            return otherwise
        if value.__class__ is not wanted:
            raise at.error(f"case compares {WORDS[type or 'str']} here, and this is {kind(value)}.", 0)
        return branches.get(value, otherwise)

    if asked.constant:
        return branch(asked.value)
    codes = [*branches.values(), otherwise]
    cost = sum([code.cost for code in codes])

    def case(machine: Machine, env: Environment) -> Any:
        value = asked.run(machine, env)
        return machine.settle((value,), lambda v: branch(v[0]).run(machine, env), at, cost)

    return Code(case, 1 + asked.cost + cost, 3 + max([asked.frames, *[code.frames for code in codes]]))


def _quote(compiler: Compiler, form: Form, scope: Scope) -> Code:
    literal = unquoted(form)
    if literal.kind == "list":
        return constant(tuple([_constant_of(item) for item in (literals(compiler, form) if literal.items else ())]))
    if literal.kind not in ("str", "int", "float"):
        raise compiler.error("Only a name, a number, a string or a list of these is quoted here.", form)
    return constant(_constant_of(literal))


def _constant_of(literal: Form) -> float | str:
    return literal.text if literal.kind == "str" else literal.number


def _in(compiler: Compiler, form: Form, scope: Scope) -> Code:
    value, options = compiler.arity(form, 2, 2)
    return applied(member, [compiler.code(value, scope), compiler.code(options, scope)], compiler.place(form))


def _not_in(compiler: Compiler, form: Form, scope: Scope) -> Code:
    return primitive(compiler, "not", [_in(compiler, form, scope)], [form], form, "not takes")


def _one_of(compiler: Compiler, form: Form, scope: Scope) -> Code:
    value, *options = compiler.arity(form, 2)
    keys = tuple(_constant_of(key) for option in options for key in literals(compiler, option))
    return applied(member, [compiler.code(value, scope), constant(keys)], compiler.place(form))


def _length(compiler: Compiler, form: Form, scope: Scope) -> Code:
    """The length of an argument is the slate's: it reads no column."""
    (items,) = compiler.arity(form, 1, 1)
    argument = compiler.given.get(id(scope.names.get(items.text))) if items.kind == "symbol" else None
    if argument is None or argument not in compiler.signature.lists:
        return applied(FUNCTIONS[plain(form.head)].run, [compiler.code(items, scope)], compiler.place(form))
    return Code(lambda machine, env: float(machine.size)) if plain(form.head) == "length" else constant(False)


def _param(compiler: Compiler, form: Form, scope: Scope) -> Code:
    return constant(FORMS["param"](compiler, form, {}, False).value)


def _lazy(
    stops: Callable[[Any], bool], combine: Callable[[Any, Any], Any], type: str | None, least: int
) -> SpecialForm:
    """A form whose later arguments are only looked at if the earlier ones do not decide."""

    def pair(left: Code, right: Code, at: Place, places: tuple[int, int]) -> Code:
        def expected(value: Any, place: int) -> Any:
            if type is not None and value is not None and value.__class__ is not CLASSES[type]:
                raise at.error(f"{at.name} takes {WORDS[type]}, and this is {kind(value)}.", place)
            return value

        def behind(x: Any, machine: Machine, env: Environment) -> Any:
            if stops(expected(x, places[0])):
                return x
            y = right.run(machine, env)
            return machine.settle((y,), lambda v: combine(x, expected(v[0], places[1])), at)

        def lazy(machine: Machine, env: Environment) -> Any:
            x = left.run(machine, env)
            return machine.settle((x,), lambda v: behind(v[0], machine, env), at, right.cost)

        return Code(lazy, 1 + left.cost + right.cost, 4 + max(left.frames, right.frames))

    def handler(compiler: Compiler, form: Form, scope: Scope) -> Code:
        forms = compiler.arity(form, least)
        codes = [compiler.code(a, scope) for a in forms]
        result, at = codes[0], compiler.place(form)
        for code, argument in zip(codes, forms, strict=True):
            if type is not None and code.constant and code.value.__class__ not in (CLASSES[type], NULL):
                raise compiler.error(f"{form.head} takes {WORDS[type]}, and this is {kind(code.value)}.", argument)
        for i, code in enumerate(codes[1:], start=1):
            if result.constant and code.constant:
                result = constant(result.value if stops(result.value) else combine(result.value, code.value))
            else:
                result = pair(result, code, at, (i - 1, i))
        return result

    return handler


SPECIAL: dict[str, SpecialForm] = {
    "fn": _fn,
    "let": _let,
    "if": _if,
    "when": _when,
    "cond": _cond,
    "case": _case,
    "quote": _quote,
    "in": _in,
    "not-in": _not_in,
    "one-of": _one_of,
    "length": _length,
    "empty?": _length,
    "param": _param,
    "and": _lazy(lambda x: x is False, both, "bool", 1),
    "or": _lazy(lambda x: x is True, either, "bool", 1),
    "if-null": _lazy(lambda x: x is not None, lambda x, y: y, None, 2),
}

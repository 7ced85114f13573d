"""The forms of a trusted policy that are no functions, as Hy models: bindings, choices, updates, aggregates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hy.models import Dict, Float, List, String, Symbol

from memlab.language._check import AGGREGATE_FORMS, ALIASES, LITERALS
from memlab.language._derived import SET_TESTS
from memlab.language._forms import FORMS, bindings, is_clause, literals, paired, unquoted
from memlab.language._params import declared_param
from memlab.language._reader import Form
from memlab.language.trusted._expand import (
    FUNCTION_HEADS,
    SLATE,
    Expander,
    ExpanderForm,
    Local,
    Scope,
    expression,
    local_name,
    memlab,
    thunk,
    wrapped,
)

__all__ = ["SPECIAL"]


def _let(expander: Expander, form: Form, scope: Scope, tail: bool) -> Any:
    inside = scope
    for name, value in bindings(expander, form):
        if name.kind != "symbol":
            raise expander.error("A binding begins with a name.", name)
        if ALIASES.get(name.text, name.text) in FORMS or name.text in ("else", *LITERALS):
            raise expander.error(f"{name.text} is a form of the dialect and cannot be bound.", name)
        model, symbol = expander.code(value, inside), Symbol(local_name(name.text))
        names = {**inside.names, name.text: Local(symbol, value, inside)}
        inside = Scope(names, (*inside.bound, (symbol, model)), inside.inner)
    if len(form.items) != 3:
        raise expander.error(f"{form.head} has one expression as its body, and here are {len(form.items) - 2}.", form)
    body = expander.code(form.items[2], inside, tail)
    return wrapped(inside.bound[len(scope.bound) :], body)


def _chosen(expander: Expander, test: Any, then: Form, otherwise: Callable[[], Any], scope: Scope, tail: bool) -> Any:
    before = expander.foreign
    left = expander.code(then, scope, tail)
    right = otherwise()
    pure = Symbol(str(expander.foreign == before))
    return memlab("choose", test, thunk(left), thunk(right), pure)


def _if(expander: Expander, form: Form, scope: Scope, tail: bool) -> Any:
    test, then, otherwise = expander.arity(form, 3, 3)
    asked = expander.code(test, scope)
    return _chosen(expander, asked, then, lambda: expander.code(otherwise, scope, tail), scope, tail)


def _when(expander: Expander, form: Form, scope: Scope, tail: bool) -> Any:
    test, then = expander.arity(form, 2, 2)
    asked = expander.code(test, scope)
    return _chosen(expander, asked, then, lambda: memlab("literal", Symbol("None")), scope, tail)


def _branches(
    expander: Expander, pairs: Sequence[tuple[Callable[[], Any], Form]], last: Form, scope: Scope, tail: bool
) -> Any:
    if not pairs:
        return expander.code(last, scope, tail)
    (test, value), rest = pairs[0], pairs[1:]
    return _chosen(expander, test(), value, lambda: _branches(expander, rest, last, scope, tail), scope, tail)


def _cond(expander: Expander, form: Form, scope: Scope, tail: bool) -> Any:
    items = expander.arity(form, 1)
    clauses = all(is_clause(expander, item, scope.names) for item in items)
    pairs, otherwise = paired(expander, form, items, clauses)
    tests = [(lambda test=test: expander.code(test, scope), value) for test, value in pairs]
    return _branches(expander, tests, otherwise, scope, tail)


def _case(expander: Expander, form: Form, scope: Scope, tail: bool) -> Any:
    subject, *rest = expander.arity(form, 3)
    clauses = all(i.kind in ("call", "list") and len(i.items) == 2 and i.head != "quote" for i in rest)
    pairs, otherwise = paired(expander, form, tuple(rest), clauses)
    keys = [literals(expander, key, clause=clauses) for key, _ in pairs]
    kinds = {key.kind == "str" for group in keys for key in group}
    if len(kinds) > 1:
        raise expander.error("The keys of case are all strings or all numbers.", form)
    symbol = Symbol(f"_case_{len(scope.bound)}")
    model = expander.code(subject, scope)
    inside = Scope(scope.names, (*scope.bound, (symbol, model)), scope.inner)
    tests = [
        (lambda group=group: memlab("one-of", symbol, _constants(group)), value)
        for group, (_, value) in zip(keys, pairs, strict=True)
    ]
    found = _branches(expander, tests, otherwise, inside, tail)
    if True in kinds:
        found = memlab("looked-up", symbol, found)
    return expression("let", List([symbol, model]), found)


def _constants(keys: Sequence[Form]) -> Any:
    return List([String(k.text) if k.kind == "str" else Float(k.number) for k in keys])


def _quote(expander: Expander, form: Form, scope: Scope, tail: bool) -> Any:
    found = unquoted(form)
    if found.kind == "list":
        return _constants(literals(expander, form) if found.items else ())
    if found.kind not in ("str", "int", "float"):
        raise expander.error("Only a name, a number, a string or a list of these is quoted here.", form)
    return memlab("literal", String(found.text) if found.kind == "str" else Float(found.number))


def _in(expander: Expander, form: Form, scope: Scope, tail: bool) -> Any:
    value, options = expander.arity(form, 2, 2)
    if unquoted(options).kind == "list":
        return memlab("one-of", expander.code(value, scope), _constants(literals(expander, options)))
    return memlab("one-of", expander.code(value, scope), memlab("plain", expander.code(options, scope)))


def _not_in(expander: Expander, form: Form, scope: Scope, tail: bool) -> Any:
    return memlab("not", _in(expander, form, scope, False))


def _one_of(expander: Expander, form: Form, scope: Scope, tail: bool) -> Any:
    value, *options = expander.arity(form, 2)
    keys = tuple(key for option in options for key in literals(expander, option))
    return memlab("one-of", expander.code(value, scope), _constants(keys))


def _if_null(expander: Expander, form: Form, scope: Scope, tail: bool) -> Any:
    *values, last = [expander.code(a, scope) for a in expander.arity(form, 2)]
    for value in reversed(values):
        last = memlab("if-null", value, thunk(last))
    return last


def _logic(op: str, expander: Expander, form: Form, scope: Scope, tail: bool) -> Any:
    first, *rest = expander.arity(form, 1)
    result = expander.code(first, scope)
    for item in rest:
        before = expander.foreign
        model = expander.code(item, scope)
        if expander.foreign == before:
            result = memlab(op, result, model)
        else:
            result = memlab("decided", String(op), result, thunk(model))
    return result


def _param(expander: Expander, form: Form, scope: Scope, tail: bool) -> Any:
    param = declared_param(form, expander.text)
    if expander.params.setdefault(param.name, param) != param:
        raise expander.error(f":{param.name} is declared twice, with another default or other bounds.", form.items[1])
    numbers = [Float(x) for x in (param.default, param.low, param.high)]
    return memlab("parameter", Symbol("__params__"), String(param.name), *numbers)


def _update(expander: Expander, form: Form, scope: Scope, tail: bool) -> Any:
    if not tail:
        raise expander.error("update is the last thing of a policy: a branch may end in it, nothing uses it.", form)
    items = form.items[1:]
    if len(items) % 2:
        raise expander.error("The last field of this update has no value.", items[-1])
    expander.fields = expander.fields or set()
    entries: dict[str, Any] = {}
    for key, value in zip(items[::2], items[1::2], strict=True):
        if key.kind != "keyword":
            raise expander.error("A field is written as a keyword: (update :stability value).", key)
        if key.text in entries:
            raise expander.error(f":{key.text} is updated twice.", key)
        entries[key.text] = memlab("plain", expander.code(value, scope))
    expander.fields |= entries.keys()
    return Dict([part for name, model in entries.items() for part in (String(name), model)])


def _aggregate(op: str, expander: Expander, form: Form, scope: Scope, tail: bool) -> Any:
    (value,) = expander.arity(form, 1, 1)
    if scope.inner:
        raise expander.error(f"{op} ranges over the slate, not over a list: it stands outside of functions.", form)
    key = f"({op} {expander.shown(value, scope)})"
    found = (op, wrapped(scope.bound, expander.code(value, scope), needed=True))
    while expander.aggregates.setdefault(key, found) != found:
        key += "'"  # the same words about other things
    return memlab("aggregate", SLATE, String(key))


def _set_test(op: str, expander: Expander, form: Form, scope: Scope, tail: bool) -> Any:
    count = 1 if op == "size" else 2
    sets = list(expander.arity(form, count, count))
    words: tuple[Form, ...] = ()
    if op.startswith("has"):
        options = sets.pop()
        words = literals(expander, options)
        if op == "has" and unquoted(options).kind == "list":
            raise expander.error('has takes one string: (has tags "style"); several go with has-any, has-all.', options)
        if any(key.kind != "str" for key in words):
            raise expander.error("A set holds strings.", options)
    given = List([memlab("plain", expander.code(s, scope)) for s in sets])
    return memlab("set-test", String(op), given, _constants(words))


def _function(expander: Expander, form: Form, scope: Scope, tail: bool) -> Any:
    return expander.function(form, scope)


def _named(handler: Callable[..., Any], name: str) -> ExpanderForm:
    return lambda expander, form, scope, tail: handler(name, expander, form, scope, tail)


SPECIAL: dict[str, ExpanderForm] = {
    "let": _let,
    "if": _if,
    "when": _when,
    "cond": _cond,
    "case": _case,
    "quote": _quote,
    "in": _in,
    "not-in": _not_in,
    "one-of": _one_of,
    "if-null": _if_null,
    "param": _param,
    "update": _update,
    **dict.fromkeys(FUNCTION_HEADS, _function),
    **{name: _named(_logic, name) for name in ("and", "or")},
    **{name: _named(_aggregate, name) for name in AGGREGATE_FORMS},
    **{name: _named(_set_test, name) for name in SET_TESTS},
}

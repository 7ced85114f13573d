"""Policies over lists, as some originals of exploration are written: checked once, then run by a small interpreter.

Such a policy gets a slate as parallel lists and returns the index of an item; an index outside the slate, such as -1,
or null picks nothing. All outcomes of ``(choice list)`` and ``(flip probability)`` are enumerated, so the weight of
an item is the probability that the program picks it, exact up to rounding. Lists and functions as values exist here
only.

Types are found at run time: a list may hold anything. Names, arities and forms are checked at the start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError, PolicyError, PolicyLimitError, PolicyNameError, UnknownName, did_you_mean
from memlab.language._check import Checker, Helper
from memlab.language._dag import Node, Value
from memlab.language._forms import FORMS, bindings, case_keys, is_clause, literals, paired, unquoted
from memlab.language._hash import digest, source_hash
from memlab.language._limits import MAX_STEPS
from memlab.language._machine import (
    CLASSES,
    FUNCTIONS,
    MAX_ITEMS,
    Code,
    Distribution,
    Environment,
    Function,
    Machine,
    Place,
    expect,
    holds,
    kind_of_value,
)
from memlab.language._primitives import both, either
from memlab.language._reader import Form, Text
from memlab.language._row import row_value
from memlab.language._signature import Signature
from memlab.language._words import ALIASES, LITERALS

__all__ = ["SPECIAL_FORMS", "ListProgram"]

_MAX_NESTING = 120
"""Forms within forms, helpers included: what bounds the recursion of the checker itself."""

_HERE = {
    "random": "Chance is written (choice list), each item alike, or (flip probability).",
    "for": "There are no loops: go through a list with map, filter or reduce.",
    "while": "There are no loops: go through a list with map, filter or reduce.",
}
_NO_RECURSION = "The dialect has no recursion: go through a list with map, filter or reduce."


class ListProgram:
    """A list policy, checked. ``lists`` of the signature says what its arguments hold; every other argument is an
    input of the slot that must be the same for all rows of a slate, such as ``limit``.

    ``inputs`` are the features that it reads, sorted; the length of a list is the slate's and reads none. ``checker``
    has its parameters and the helpers that it calls; ``digest`` hashes all that its weights depend on.

    >>> from memlab.language import Input
    >>> from memlab.language._definition import definition
    >>> from memlab.language._reader import read_forms
    >>> text = Text("(lambda (accs) (choice (filter (lambda (i) (< (nth accs i) 5)) (range (length accs)))))")
    >>> slot = Signature("explore", [Input("access")], lists={"accs": "access"})
    >>> program = ListProgram(("accs",), definition(read_forms(text)[0], text).body, text, slot, {}, {})
    >>> program.weights({"access": [9.0, 1.0, 0.0]}, 3).tolist()
    [0.0, 0.5, 0.5]
    """

    def __init__(
        self,
        arguments: tuple[str, ...],
        body: Form,
        text: Text,
        signature: Signature,
        helpers: Mapping[str, Helper],
        params: Mapping[str, float],
    ) -> None:
        self.signature, self.place = signature, Place(text, body, ())
        self.features = {name: self._feature(name, text) for name in arguments}
        self.checker = compiler = _Compiler(text, signature, helpers, params, arguments)
        self.code = compiler.code(body, compiler.arguments)
        self.arguments = tuple(name if name in compiler.read else None for name in arguments)
        self.inputs = tuple(sorted({self.features[name] for name in compiler.read}))
        held = [part for name in arguments for part in (name, self.features[name])]
        helped = [f"{helper.name}:{helper.hash}" for _, helper in sorted(compiler.used.items())]
        chosen = [part for _, param in sorted(compiler.params.items()) for part in (param.name, param.value)]
        self.digest = digest("interpreted", source_hash(arguments, body), *held, "helpers", *helped, "params", *chosen)

    def weights(self, columns: Mapping[str, Sequence[Value]], size: int) -> NDArray[np.float64]:
        """The probability with which each item of one slate is picked: ``size`` float64, their sum at most 1.

        ``columns`` holds the features of ``inputs``, in the slate's order, None for null. Raises ``InputError`` for
        columns that do not fit, ``PolicyTypeError`` for a value of the wrong type, ``PolicyLimitError`` when the
        fuel is spent.
        """
        weights = np.zeros(size)
        if size == 0:
            return weights
        slot = self.signature.slot
        if size > MAX_ITEMS:
            message = f"{slot} goes through at most {MAX_ITEMS:,} items, and this slate has {size:,}."
            raise self.place.error(f"{message} Write it as a weight for each item.", error=PolicyLimitError)
        machine = Machine(slot, size)
        machine.spend(self.code.cost, self.place)
        env = tuple([None if name is None else self._argument(name, columns, size) for name in self.arguments])
        try:
            picked = self.code.run(machine, env)
        except RecursionError:
            raise machine.limit("nests functions too deeply", self.place, _NO_RECURSION) from None
        for value, probability in picked.outcomes if picked.__class__ is Distribution else ((picked, 1.0),):
            if value is not None and value.__class__ is not float:
                raise self.place.error(f"{slot} returns an index: a number, and this is {kind_of_value(value)}.")
            if value is not None and 0.0 <= value < size and value.is_integer():
                weights[int(value)] += probability
        return weights

    def weights_of(self, given: Mapping[str, Any]) -> NDArray[np.float64]:
        """The weights, of what the arguments hold by name: lists of one length, and one value for any other."""
        lists = [given[name] for name in self.features if name in self.signature.lists and name in given]
        size = len(lists[0]) if lists else 0
        columns = {
            self.features[name]: value if name in self.signature.lists else [value] * size
            for name, value in given.items()
            if name in self.features
        }
        return self.weights(columns, size)

    def _feature(self, name: str, text: Text) -> str:
        """The feature that an argument reads."""
        signature = self.signature
        feature = signature.lists.get(name, name)
        if feature not in signature.inputs:
            message = (
                f"{name} is no input of {signature.slot}. {did_you_mean(name, [*signature.lists, *signature.inputs])}"
            )
            raise text.error(PolicyNameError, message, None)
        if signature.inputs[feature].type == "set":
            message = f"{name} is a set: a list policy reads numbers, booleans and strings."
            raise text.error(PolicyNameError, message, None)
        return feature

    def _argument(self, name: str, columns: Mapping[str, Sequence[Value]], size: int) -> Any:
        feature = self.features[name]
        column = columns.get(feature, columns.get(feature.replace("-", "_")))
        if column is None:
            raise UnknownName("column", feature, columns)
        if len(column) != size:
            raise InputError(f"Column {feature} has {len(column)} rows, and the slate has {size}.")
        type = self.signature.inputs[feature].type
        wanted = CLASSES[type]
        values = tuple([v if v.__class__ is wanted else row_value(feature, v, type) for v in column])
        if name in self.signature.lists:
            return values
        first = values[0]
        if any(v != first and (v == v or first == first) for v in values):
            raise InputError(
                f"{name} is one value of the whole slate, and its rows differ; what differs comes as a list."
            )
        return first


class _Scope(NamedTuple):
    """The names that an expression may read, and how many of them are positions of the environment."""

    names: Mapping[str, Code]
    size: int

    def bind(self, names: Sequence[str]) -> _Scope:
        return _Scope({**self.names, **{n: _local(self.size + i) for i, n in enumerate(names)}}, self.size + len(names))


def _local(position: int) -> Code:
    return Code(lambda machine, env: env[position])


def _constant(value: Any) -> Code:
    return Code(lambda machine, env: value, literal=value)


class _Compiler(Checker):
    """Forms to closures. From ``Checker`` come errors, arities, parameters and the look-up of names."""

    def __init__(
        self,
        text: Text,
        signature: Signature,
        helpers: Mapping[str, Helper],
        params: Mapping[str, float],
        arguments: tuple[str, ...],
    ) -> None:
        super().__init__(text, signature, helpers, params, {**FORMS, **SPECIAL_FORMS, **FUNCTIONS})  # type: ignore[dict-item]
        self.arguments = _Scope({}, 0).bind(arguments)
        self.given = {id(code): name for name, code in self.arguments.names.items()}
        self.read: set[str] = set()
        self.binding: list[str] = []
        self.functions: dict[str, Code] = {}

    def place(self, form: Form, arguments: Sequence[Form] | None = None) -> Place:
        return Place(self.text, form, form.items[1:] if arguments is None else tuple(arguments))

    def code(self, form: Form, scope: _Scope) -> Code:
        """The closure of an expression."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise self.error(f"The policy and its helpers have more than {MAX_STEPS:,} forms.", form, PolicyLimitError)
        if form.kind == "symbol":
            return self.name(form, scope)
        if form.kind in ("int", "float"):
            return _constant(form.number)
        if form.kind == "str":
            return _constant(form.text)
        if form.kind == "keyword":
            raise self.error(f":{form.text} is a keyword, and a value is expected here.", form)
        self.open += 1
        if self.open > _MAX_NESTING:
            raise self.error(f"Forms, helpers included, nest deeper than {_MAX_NESTING}.", form, PolicyLimitError)
        if form.kind == "list":
            codes = [self.code(item, scope) for item in form.items]
            code = _applied(FUNCTIONS["list"].run, codes, self.place(form, form.items))
        else:
            code = self.called(form, scope)
        self.open -= 1
        return code

    def name(self, form: Form, scope: _Scope) -> Code:
        found = scope.names.get(form.text)
        if found is not None:
            argument = self.given.get(id(found))
            if argument is not None:
                self.read.add(argument)
            return found
        self.check_recursion(form)
        name = ALIASES.get(form.text, form.text)
        if name in FUNCTIONS:
            fewest, most = FUNCTIONS[name].fewest, FUNCTIONS[name].most
            return self.as_value(form, range(max(fewest, 1), min(most or 3, 3) + 1))
        if name in ("and", "or", "if-null"):
            return self.as_value(form, (2,))
        if form.text in self.helpers:
            return self.helper(self.helpers[form.text], form)
        literal = self.lookup(form, scope.names)
        assert isinstance(literal, Node)
        return _constant(LITERALS[form.text])

    def check_recursion(self, form: Form) -> None:
        if form.text in self.binding:
            raise self.error(f"{form.text} is used in its own value; the dialect has no recursion.", form)

    def as_value(self, form: Form, counts: Sequence[int]) -> Code:
        """A function of the dialect as a value, for each of these numbers of arguments."""
        bodies: dict[int, Code] = {}
        for count in counts:
            names = [f" {i}" for i in range(count)]  # with a space, which no source can write
            call = form._replace(kind="call", items=(form, *(form._replace(text=n) for n in names)))
            bodies[count] = self.code(call, _Scope({}, 0).bind(names))
        return _constant(Function(bodies))

    def helper(self, helper: Helper, form: Form) -> Code:
        """A helper as a function; its body is compiled once and sees its arguments alone."""
        if helper.name in self.calls:
            raise self.error(f"{helper.name} calls itself; the dialect has no recursion.", form)
        self.used[helper.name] = helper
        if helper.name not in self.functions:
            caller, self.text = self.text, helper.text
            binding, self.binding = self.binding, []
            self.calls.append(helper.name)
            body = self.code(helper.body, _Scope({}, 0).bind(helper.arguments))
            self.calls.pop()
            self.text, self.binding = caller, binding
            self.functions[helper.name] = _constant(Function({len(helper.arguments): body}))
        return self.functions[helper.name]

    def called(self, form: Form, scope: _Scope) -> Code:
        if not form.items:
            raise self.error("An empty form has no value.", form)
        head = form.items[0]
        bound = head.kind == "symbol" and head.text in scope.names
        if bound or head.kind == "call":
            function, *arguments = [self.code(item, scope) for item in form.items]
            if function.literal is not ... and function.literal.__class__ is not Function:
                raise self.error(f"{head.text} is {kind_of_value(function.literal)} here, not a function.", head)
            return _applied(_call, [function, *arguments], self.place(form, form.items))
        if head.kind != "symbol":
            raise self.error("The first item of a form is a function.", head)
        self.check_recursion(head)
        name = ALIASES.get(head.text, head.text)
        if name in SPECIAL_FORMS:
            return SPECIAL_FORMS[name](self, form, scope)
        if name in FUNCTIONS:
            return self.function(name, form, scope)
        if head.text in self.helpers:
            helper = self.helpers[head.text]
            self.check_count(helper, form)
            codes = [self.helper(helper, head), *[self.code(item, scope) for item in form.items[1:]]]
            return _applied(_call, codes, self.place(form, form.items))
        raise self.unknown(head, (*SPECIAL_FORMS, *FUNCTIONS))

    def function(self, name: str, form: Form, scope: _Scope) -> Code:
        """A call of one of ``FUNCTIONS``. A literal of the wrong type is found before anything runs."""
        function, at = FUNCTIONS[name], self.place(form)
        forms = self.arity(form, function.fewest, function.most)
        if name in ("length", "empty?") and forms[0].kind == "symbol":
            argument = self.given.get(id(scope.names.get(forms[0].text)))
            if argument in self.signature.lists:  # the length of an argument is the slate's: it reads no column
                return Code(lambda machine, env: float(machine.size)) if name == "length" else _constant(False)
        codes = [self.code(argument, scope) for argument in forms]
        for i, code in enumerate(codes):
            if code.literal is not ... and function.takes is not None:
                expect(code.literal, function.takes, at, i)
        return _applied(function.run, codes, at)

    def unknown(self, head: Form, forms: Iterable[str]) -> PolicyError:
        """The error of a name in front of a call that is no function."""
        name = ALIASES.get(head.text, head.text)
        if name in _HERE:
            return self.error(_HERE[name], head, PolicyNameError)
        if name in FORMS:
            return self.error(f"{name} is no form of a policy over lists: write it with map, filter and reduce.", head)
        return super().unknown(head, forms)


# Expressions made of expressions.


def _applied(function: Callable[..., Any], codes: Sequence[Code], at: Place) -> Code:
    """``function`` of the machine, the place and plain values."""
    runs = tuple(code.run for code in codes)
    cost = 1 + sum([code.cost for code in codes])

    def run(machine: Machine, env: Environment) -> Any:
        values = [run(machine, env) for run in runs]
        for value in values:
            if value.__class__ is Distribution:
                return machine.over_outcomes(values, lambda plain: function(machine, at, *plain), at)
        return function(machine, at, *values)

    if len(runs) != 2:
        return Code(run, cost)
    left, right = runs

    def run_pair(machine: Machine, env: Environment) -> Any:  # what filters do for each item: half the time of run
        x, y = left(machine, env), right(machine, env)
        if x.__class__ is Distribution or y.__class__ is Distribution:
            return machine.over_outcomes((x, y), lambda plain: function(machine, at, *plain), at)
        return function(machine, at, x, y)

    return Code(run_pair, cost)


def _call(machine: Machine, at: Place, function: Any, *arguments: Any) -> Any:
    """A function as a value, applied."""
    if function.__class__ is not Function:
        raise at.error(f"{at.name} is {kind_of_value(function)} here, not a function.", 0)
    return machine.body(at, function, len(arguments)).run(machine, function.env + arguments)


def _after(first: Code, rest: Callable[[Any, Machine, Environment], Any], at: Place, cost: int) -> Code:
    """``rest`` of the plain value of ``first``; ``cost`` is what it visits."""
    start = first.run

    def run(machine: Machine, env: Environment) -> Any:
        value = start(machine, env)
        if value.__class__ is Distribution:
            return machine.over_outcomes((value,), lambda values: rest(values[0], machine, env), at, cost)
        return rest(value, machine, env)

    return Code(run, 1 + first.cost + cost)


def _choose(test: Code, then: Code, otherwise: Code, at: Place) -> Code:
    """``then`` where the test is true, else ``otherwise``; only the one that is needed runs."""
    if test.literal is not ...:
        holds(test.literal, at)
    yes, no = then.run, otherwise.run
    return _after(test, lambda met, m, env: (yes if holds(met, at) else no)(m, env), at, then.cost + otherwise.cost)


def _bound(values: Sequence[Code], body: Code, at: Place, size: int) -> Code:
    """``body`` after ``values`` have been added to the environment, each drawn once."""
    for value in reversed(values):
        run = body.run
        # extending an environment copies it
        cost = body.cost + size // 8
        body = _after(value, lambda x, machine, env, run=run: run(machine, (*env, x)), at, cost)  # type: ignore[misc]
    return body


# The forms that are no functions.


def _fn(compiler: _Compiler, form: Form, scope: _Scope) -> Code:
    items = form.items
    if len(items) != 3 or items[1].kind not in ("list", "call") or any(a.kind != "symbol" for a in items[1].items):
        raise compiler.error(f"A function is written ({form.head} [names] body).", form)
    names = [a.text for a in items[1].items]
    if len(set(names)) < len(names):
        raise compiler.error("An argument is listed twice; a-b and a_b are one name.", items[1])
    body = compiler.code(items[2], scope.bind(names))
    bodies = {len(names): body._replace(cost=body.cost + 1 + scope.size // 8)}
    return Code(lambda machine, env: Function(bodies, env))


def _let(compiler: _Compiler, form: Form, scope: _Scope) -> Code:
    names, values, size = dict(scope.names), list[Code](), scope.size
    for name, value in bindings(compiler, form):
        if value.kind == "symbol" and value.text in names:
            names[name.text] = names[value.text]
            continue
        compiler.binding.append(name.text)
        values.append(compiler.code(value, _Scope(names, size)))
        compiler.binding.pop()
        names = {**names, name.text: _local(size)}
        size += 1
    return _bound(values, compiler.code(form.items[2], _Scope(names, size)), compiler.place(form), size)


def _if(compiler: _Compiler, form: Form, scope: _Scope) -> Code:
    test, then, otherwise = [compiler.code(a, scope) for a in compiler.arity(form, 3, 3)]
    return _choose(test, then, otherwise, compiler.place(form))


def _when(compiler: _Compiler, form: Form, scope: _Scope) -> Code:
    test, then = [compiler.code(a, scope) for a in compiler.arity(form, 2, 2)]
    return _choose(test, then, _constant(None), compiler.place(form))


def _cond(compiler: _Compiler, form: Form, scope: _Scope) -> Code:
    items = compiler.arity(form, 1)
    clauses = all(is_clause(compiler, item, scope.names) for item in items)
    pairs, otherwise = paired(compiler, form, items, clauses)
    result = compiler.code(otherwise, scope)
    for test, value in reversed(pairs):
        condition, then = compiler.code(test, scope), compiler.code(value, scope)
        result = _choose(condition, then, result, compiler.place(form, (test,)))
    return result


def _case(compiler: _Compiler, form: Form, scope: _Scope) -> Code:
    subject, pairs, default = case_keys(compiler, form)
    branches: dict[Any, Code] = {}
    type = "num" if pairs and pairs[0][0][0].kind != "str" else "str"
    for keys, value in pairs:
        code = compiler.code(value, scope)
        for key in keys:
            if (key.kind == "str") != (type == "str"):
                raise compiler.error("The keys of case are all strings or all numbers.", key)
            branches.setdefault(_value_of(key), code)
    otherwise, at = compiler.code(default, scope), compiler.place(form)
    what = f"compares {kind_of_value(CLASSES[type]())} here"

    def chosen(value: Any, machine: Machine, env: Environment) -> Any:
        expect(value, type, at, 0, what)
        return branches.get(value, otherwise).run(machine, env)

    cost = otherwise.cost + sum([code.cost for code in branches.values()])
    return _after(compiler.code(subject, scope), chosen, at, cost)


def _value_of(literal: Form) -> float | str:
    return literal.text if literal.kind == "str" else literal.number


def _quote(compiler: _Compiler, form: Form, scope: _Scope) -> Code:
    literal = unquoted(form)
    if literal.kind == "list":
        return _constant(tuple(_value_of(item) for item in (literals(compiler, form) if literal.items else ())))
    if literal.kind not in ("str", "int", "float"):
        raise compiler.error("Only a name, a number, a string or a list of these is quoted here.", form)
    return _constant(_value_of(literal))


def _not_in(compiler: _Compiler, form: Form, scope: _Scope) -> Code:
    return _applied(FUNCTIONS["not"].run, [compiler.function("in", form, scope)], compiler.place(form, (form,)))


def _one_of(compiler: _Compiler, form: Form, scope: _Scope) -> Code:
    value, *options = compiler.arity(form, 2)
    keys = tuple(_value_of(key) for option in options for key in literals(compiler, option))
    return _applied(FUNCTIONS["in"].run, [compiler.code(value, scope), _constant(keys)], compiler.place(form))


def _param(compiler: _Compiler, form: Form, scope: _Scope) -> Code:
    return _constant(FORMS["param"](compiler, form, {}, False).value)


def _lazy(decides: Callable[[Any], bool], combine: Callable[[Any, Any], Any], type: str | None) -> _SpecialForm:
    """A form whose later arguments are only looked at if the earlier ones do not decide."""

    def handler(compiler: _Compiler, form: Form, scope: _Scope) -> Code:
        at, codes = compiler.place(form), [compiler.code(a, scope) for a in compiler.arity(form, 1 if type else 2)]

        def checked(value: Any, place: int) -> Any:
            return value if type is None else expect(value, type, at, place)

        def pair(left: Code, right: Code, place: int) -> Code:
            def rest(x: Any, machine: Machine, env: Environment) -> Any:
                if decides(checked(x, place - 1)):
                    return x
                y = right.run(machine, env)
                return machine.over_outcomes((y,), lambda values: combine(x, checked(values[0], place)), at)

            return _after(left, rest, at, right.cost)

        for i, code in enumerate(codes):
            if code.literal is not ...:
                checked(code.literal, i)
        result = codes[0]
        for i, code in enumerate(codes[1:], 1):
            result = pair(result, code, i)
        return result

    return handler


_SpecialForm = Callable[[_Compiler, Form, _Scope], Code]
SPECIAL_FORMS: dict[str, _SpecialForm] = {
    "fn": _fn,
    "let": _let,
    "if": _if,
    "when": _when,
    "cond": _cond,
    "case": _case,
    "quote": _quote,
    "not-in": _not_in,
    "one-of": _one_of,
    "param": _param,
    "and": _lazy(lambda x: x is False, both, "bool"),
    "or": _lazy(lambda x: x is True, either, "bool"),
    "if-null": _lazy(lambda x: x is not None, lambda x, y: y, None),
}

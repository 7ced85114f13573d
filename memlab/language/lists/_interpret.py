"""Policies over lists that need a loop: checked once, then run by a small interpreter with fuel, one slate at a time.

Such a policy gets a slate as parallel lists and returns the index of an item; an index outside the slate, such as -1,
or null picks nothing. What ``_lift`` turns into columns means the same here, rounding included, but for NaN and -0.0 at
a computed place of a list, which an aggregate reads as null and 0.0. Beyond it there are functions as values, the list
functions of ``_interpret_forms`` and chance: ``(choice list)``, uniform, and ``(flip probability)``. All outcomes are
gone through, so the weight of an item is the probability that the program picks it, exact up to rounding. A name that
a ``let`` binds is drawn once; each call of ``choice`` draws anew.

Types are found at run time: a list may hold anything. Names, arities, constants and forms are checked at the start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError, PolicyError, PolicyLimitError, PolicyNameError, UnknownName, did_you_mean
from memlab.language._check import _ABSENT, _ALIASES, _COMPARISONS, _DIRECT, _FOLDS, _UNITS, Checker, Helper
from memlab.language._dag import Node, Value
from memlab.language._forms import FORMS, _is_clause, _literals, _pairs, _unquoted, bindings
from memlab.language._hash import digest, source_hash
from memlab.language._limits import MAX_STEPS
from memlab.language._params import Param
from memlab.language._primitives import PRIMITIVES, at_most, both, either, less
from memlab.language._reader import Form, Text
from memlab.language._row import row_value
from memlab.language._signature import Signature
from memlab.language.lists._interpret_forms import (
    FUNCTIONS,
    MAX_FRAMES,
    MAX_ITEMS,
    Code,
    Environment,
    Function,
    Machine,
    Place,
    Spread,
    holds,
    kind,
    member,
    same,
)
from memlab.language.lists._lift import LIFTED

__all__ = ["ListProgram"]

_MAX_NESTING = 120
"""Forms within forms, helpers inlined: what bounds the recursion of the checker itself."""

_MORE_ALIASES = {"car": "first", "cdr": "rest", "len": "length", "count": "length", "fold": "reduce", "lambda": "fn"}
_CLASSES: dict[str, type] = {"num": float, "bool": bool, "str": str}
_HERE = {
    "random": "Chance is written (choice list), each item alike, or (flip probability).",
    "for": "There are no loops: go through a list with map, filter or reduce.",
    "while": "There are no loops: go through a list with map, filter or reduce.",
}


class Scope(NamedTuple):
    """The names that an expression may read, and how many of them are positions of the environment."""

    names: Mapping[str, Code]
    size: int

    def bind(self, names: Sequence[str]) -> Scope:
        return Scope({**self.names, **{n: _local(self.size + i) for i, n in enumerate(names)}}, self.size + len(names))


class ListProgram:
    """A list policy, checked. ``lists`` and ``counts`` of the signature say what its arguments hold; every other
    argument is an input of the slot that must be the same for all rows of a slate, such as ``limit``.

    ``inputs`` are the features that it reads, sorted; the length of a list is the slate's and reads none. ``params``
    and ``used`` are its parameters and the helpers that it calls; ``digest`` hashes all that its weights depend on.

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
        for name in arguments:
            self._check(name, text)
        compiler = _Compiler(text, signature, helpers, params, arguments)
        self.code = compiler.code(body, compiler.arguments)
        self.arguments = tuple([name if name in compiler.read else None for name in arguments])
        self.inputs = tuple(sorted({feature for name in compiler.read if (feature := self._feature(name))}))
        self.params: dict[str, Param] = compiler.params
        self.used: dict[str, Helper] = compiler.used
        held = [part for name in arguments for part in (name, self._feature(name) or "")]
        helped = [f"{helper.name}:{helper.hash}" for _, helper in sorted(self.used.items())]
        chosen = [part for _, param in sorted(self.params.items()) for part in (param.name, param.value)]
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
        if size > MAX_ITEMS:
            message = f"{self.signature.slot} goes through at most {MAX_ITEMS:,} items, and this slate has {size:,}."
            raise self.place.error(f"{message} Write it as a weight for each item.", error=PolicyLimitError)
        machine = Machine(self.signature.slot, size, self.code.frames)
        machine.spend(self.code.cost, self.place)
        env = tuple([None if name is None else self._argument(name, columns, size) for name in self.arguments])
        picked = self.code.run(machine, env)
        for value, probability in picked.outcomes if picked.__class__ is Spread else ((picked, 1.0),):
            if value is None:
                continue
            if value.__class__ is not float:
                raise self.place.error(f"{self.signature.slot} returns an index: a number, and this is {kind(value)}.")
            if 0.0 <= value < size and value.is_integer():
                weights[int(value)] += probability
        return weights

    def _feature(self, name: str) -> str | None:
        """The feature that an argument reads; none if it is the slate's length."""
        feature = self.signature.lists.get(name)
        return None if feature is None and name in self.signature.counts else feature or name

    def _check(self, name: str, text: Text) -> None:
        feature, signature = self._feature(name), self.signature
        if feature is None:
            return
        if feature not in signature.inputs:
            known = [*signature.lists, *signature.counts, *signature.inputs]
            message = f"{name} is no input of {signature.slot}. {did_you_mean(name, known)}"
            raise text.error(PolicyNameError, message, None)
        type = signature.inputs[feature].type
        if type not in _CLASSES:
            message = f"{name} is a {type}: a list policy reads numbers, booleans and strings."
            raise text.error(PolicyNameError, message, None)

    def _argument(self, name: str, columns: Mapping[str, Sequence[Value]], size: int) -> Any:
        feature = self._feature(name)
        if feature is None:
            return float(size)
        column = columns.get(feature)
        if column is None:
            column = columns.get(feature.replace("-", "_"))
            if column is None:
                raise UnknownName("column", feature, columns)
        if len(column) != size:
            raise InputError(f"Column {feature} has {len(column)} rows, and the slate has {size}.")
        type = self.signature.inputs[feature].type
        wanted = _CLASSES[type]
        values = tuple([v if v.__class__ is wanted else row_value(feature, v, type) for v in column])
        if name in self.signature.lists:
            return values
        first = values[0]
        if any(v != first and (v == v or first == first) for v in values):
            raise InputError(
                f"{name} stands for one value of the whole slate, and its rows differ; what differs comes as a list."
            )
        return first


class _Compiler(Checker):
    """Forms to closures. From ``Checker`` come its errors, arities, parameters and the look-up of names."""

    def __init__(
        self,
        text: Text,
        signature: Signature,
        helpers: Mapping[str, Helper],
        params: Mapping[str, float],
        arguments: tuple[str, ...],
    ) -> None:
        super().__init__(text, signature, helpers, params, LIFTED)
        self.arguments = Scope({}, 0).bind(arguments)
        self.given = {id(code): name for name, code in self.arguments.names.items()}
        self.read: set[str] = set()
        self.binding: list[str] = []
        self.nesting = 0

    def is_function(self, name: str) -> bool:
        name = _plain(name)
        return name in _SPECIAL or name in FUNCTIONS or name in _OPERATORS or name in self.helpers

    def place(self, form: Form, arguments: Sequence[Form] | None = None) -> Place:
        return Place(self.text, form, form.items[1:] if arguments is None else tuple(arguments))

    # Expressions.

    def code(self, form: Form, scope: Scope) -> Code:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise self.error(f"Inlining visits more than {MAX_STEPS:,} forms.", form, PolicyLimitError)
        if form.kind == "symbol":
            return self.name(form, scope)
        if form.kind in ("int", "float"):
            return _constant(form.number)
        if form.kind == "str":
            return _constant(form.text)
        if form.kind == "keyword":
            raise self.error(f":{form.text} stands where a value is expected.", form)
        self.nesting += 1
        if self.nesting > _MAX_NESTING:
            raise self.error(f"Forms, helpers included, nest deeper than {_MAX_NESTING}.", form, PolicyLimitError)
        if form.kind == "list":
            codes = [self.code(item, scope) for item in form.items]
            code = _applied(FUNCTIONS["list"].run, codes, self.place(form, form.items))
        else:
            code = self.called(form, scope)
        self.nesting -= 1
        if code.frames > MAX_FRAMES:
            raise self.error("Too many operations depend on one another here.", form, PolicyLimitError)
        return code

    def name(self, form: Form, scope: Scope) -> Code:
        found = scope.names.get(form.text)
        if found is None:
            if form.text in self.binding:
                raise self.error(f"{form.text} stands in its own value; the dialect has no recursion.", form)
            counts = _arities(_plain(form.text))
            if counts:
                return self.operator(form, counts)
            if form.text in self.helpers:
                count = len(self.helpers[form.text].arguments)
                return self.operator(form, (count,))
            literal = self.lookup(form, scope.names)
            assert isinstance(literal, Node)
            return _constant(literal.value)
        argument = self.given.get(id(found))
        if argument is not None:
            self.read.add(argument)
        return found

    def operator(self, form: Form, counts: Sequence[int]) -> Code:
        """A function of the dialect or a helper as a value."""
        bodies: dict[int, Code] = {}
        for count in counts:
            names = [f" {i}" for i in range(count)]  # with a space, which no source can write
            call = form._replace(kind="call", items=(form, *(form._replace(text=n) for n in names)))
            bodies[count] = self.code(call, Scope({}, 0).bind(names))
        return _constant(Function(bodies, ()))

    def called(self, form: Form, scope: Scope) -> Code:
        if not form.items:
            raise self.error("An empty form has no value.", form)
        head = form.items[0]
        if head.kind == "call" or (head.kind == "symbol" and head.text in scope.names):
            function, *arguments = [self.code(item, scope) for item in form.items]
            if function.constant and function.value.__class__ is not Function:
                raise self.error(f"{head.text} is {kind(function.value)} here, not a function.", head)
            return _applied(_call, [function, *arguments], self.place(form, form.items))
        if head.kind != "symbol":
            raise self.error("The first item of a form is a function.", head)
        name = _plain(head.text)
        if head.text in self.binding:
            raise self.error(f"{head.text} stands in its own value; the dialect has no recursion.", head)
        if name in _SPECIAL:
            return _SPECIAL[name](self, form, scope)
        if name in FUNCTIONS:
            listed = FUNCTIONS[name]
            arguments = [self.code(a, scope) for a in self.arity(form, listed.least, listed.most)]
            return _applied(listed.run, arguments, self.place(form))
        if name in _OPERATORS:
            return _OPERATORS[name](self, name, form, scope)
        if name in self.helpers:
            return self.inlined(self.helpers[name], form, scope)
        raise self.unknown(name, head)

    def unknown(self, name: str, head: Form) -> PolicyError:
        if name in _HERE or name in _ABSENT:
            return self.error(_HERE.get(name) or _ABSENT[name], head, PolicyNameError)
        if name in FORMS:
            return self.error(
                f"{name} does not stand in a policy over lists: write it with map, filter and reduce.", head
            )
        if name in self.signature.inputs:
            return self.error(f"{name} is a feature, not a function.", head)
        known = [*_SPECIAL, *FUNCTIONS, *_OPERATORS, *self.helpers]
        return self.error(f'There is no function "{name}". {did_you_mean(name, known)}', head, PolicyNameError)

    def inlined(self, helper: Helper, form: Form, scope: Scope) -> Code:
        """A helper's body under its own names: constants stay constants, as in a policy over columns."""
        count = len(helper.arguments)
        if len(form.items) - 1 != count:
            signature = " ".join((helper.name, *helper.arguments))
            raise self.error(f"({signature}) takes {count} arguments, and here are {len(form.items) - 1}.", form)
        if helper.name in self.calls:
            raise self.error(f"{helper.name} calls itself; the dialect has no recursion.", form)
        values: list[Code] = []
        names: dict[str, Code] = {}
        size = scope.size
        for name, argument in zip(helper.arguments, form.items[1:], strict=True):
            value = self.code(argument, Scope(scope.names, size))
            size = _bound(name, value, names, values, size)
        self.used[helper.name] = helper
        at = self.place(form)
        caller, self.text = self.text, helper.text
        binding, self.binding = self.binding, []
        self.calls.append(helper.name)
        body = self.code(helper.body, Scope(names, size))
        self.calls.pop()
        self.text, self.binding = caller, binding
        return _let_code(values, body, at, size)

    # Scalar operations, in the canonical form of the graph, so that they round alike.

    def primitive(self, name: str, codes: list[Code], forms: Sequence[Form], form: Form, why: str) -> Code:
        operation = PRIMITIVES[name]
        takes, scalar = operation.takes, operation.scalar
        for code, argument, type in zip(codes, forms, takes, strict=True):
            if code.constant and code.value is not None and code.value.__class__ is not _CLASSES[type]:
                raise self.error(f"{why} {_WORDS[type]}, and this is {kind(code.value)}.", argument)
        if all(code.constant for code in codes):
            values = [code.value for code in codes]
            return _constant(None if operation.strict and None in values else scalar(*values))
        rewritten = _rewritten(name, [code.value if code.constant else None for code in codes])
        if rewritten is not None:
            scalar, kept = rewritten
            codes, forms, takes = [codes[kept]], [forms[kept]], ("num",)
        classes, strict = tuple(_CLASSES[t] for t in takes), operation.strict
        first = takes[0]

        def checked(machine: Machine, at: Place, *values: Any) -> Any:
            null = False
            for i, value in enumerate(values):
                if value is None:
                    null = True
                elif value.__class__ is not classes[i]:
                    raise at.error(f"{why} {_WORDS[first]}, and this is {kind(value)}.", i)
            return None if null and strict else scalar(*values)

        quick = scalar if set(takes) == {"num"} else None
        return _applied(checked, codes, self.place(form, forms), quick)


def _plain(name: str) -> str:
    name = _ALIASES.get(name, name)
    return _MORE_ALIASES.get(name, name)


def _constant(value: Any) -> Code:
    return Code(lambda machine, env: value, constant=True, value=value)


def _local(position: int) -> Code:
    return Code(lambda machine, env: env[position])


_WORDS = {"num": "a number", "bool": "true or false", "str": "a string"}


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


# Closures.


def _applied(
    function: Callable[..., Any], codes: Sequence[Code], at: Place, quick: Callable[..., Any] | None = None
) -> Code:
    """``function`` of the machine, the place and plain values; ``quick`` of the values alone when all are floats."""
    runs = tuple(code.run for code in codes)
    cost = 1 + sum([code.cost for code in codes])
    frames = 3 + max([code.frames for code in codes], default=0)

    def settled(machine: Machine, values: Sequence[Any]) -> Any:
        return machine.settle(values, lambda plain: function(machine, at, *plain), at)

    if len(runs) == 1:
        (only,) = runs

        def unary(machine: Machine, env: Environment) -> Any:
            x = only(machine, env)
            if quick is not None and x.__class__ is float:
                return quick(x)
            return settled(machine, (x,)) if x.__class__ is Spread else function(machine, at, x)

        return Code(unary, cost, frames)
    if len(runs) == 2:
        left, right = runs

        def binary(machine: Machine, env: Environment) -> Any:
            x, y = left(machine, env), right(machine, env)
            if quick is not None and x.__class__ is float and y.__class__ is float:
                return quick(x, y)
            if x.__class__ is Spread or y.__class__ is Spread:
                return settled(machine, (x, y))
            return function(machine, at, x, y)

        return Code(binary, cost, frames)

    def several(machine: Machine, env: Environment) -> Any:
        return settled(machine, [run(machine, env) for run in runs])

    return Code(several, cost, frames)


def _call(machine: Machine, at: Place, function: Any, *arguments: Any) -> Any:
    if function.__class__ is not Function:
        raise at.error(f"{at.name} is {kind(function)} here, not a function.", 0)
    return machine.apply(at, function, *arguments)


def _bound(name: str, code: Code, names: dict[str, Code], values: list[Code], size: int) -> int:
    """Binds ``name``: to a constant itself, or to the next position of the environment."""
    if code.constant:
        names[name] = code
        return size
    names[name] = _local(size)
    values.append(code)
    return size + 1


def _let_code(values: list[Code], body: Code, at: Place, size: int) -> Code:
    """``body`` after ``values`` have been added to the environment, each drawn once."""
    runs = tuple(value.run for value in values)
    # extending an environment copies it
    cost = 1 + body.cost + sum([value.cost + 1 + size // 8 for value in values])

    def resumed(machine: Machine, env: Environment, start: int) -> Any:
        for i in range(start, len(runs)):
            value = runs[i](machine, env)
            if value.__class__ is Spread:
                return machine.settle((value,), _resume(resumed, machine, env, i + 1), at, cost)
            env = (*env, value)
        return body.run(machine, env)

    frames = 2 + max([body.frames, *[value.frames for value in values]])
    return Code(lambda machine, env: resumed(machine, env, 0), cost, frames)


def _resume(
    resumed: Callable[[Machine, Environment, int], Any], machine: Machine, env: Environment, start: int
) -> Callable[[Sequence[Any]], Any]:
    return lambda values: resumed(machine, (*env, values[0]), start)


def _choose(test: Code, then: Code, otherwise: Code, at: Place) -> Code:
    """``then`` where the test is true, else ``otherwise``; only the one that is needed runs."""
    if test.constant:
        return then if holds(test.value, at) else otherwise
    asks, yes, no = test.run, then.run, otherwise.run
    cost = then.cost + otherwise.cost

    def choose(machine: Machine, env: Environment) -> Any:
        met = asks(machine, env)
        if met is True:
            return yes(machine, env)
        if met.__class__ is Spread:
            return machine.settle((met,), lambda v: (yes if holds(v[0], at) else no)(machine, env), at, cost)
        return yes(machine, env) if holds(met, at) else no(machine, env)

    return Code(choose, 1 + test.cost + cost, 2 + max(test.frames, then.frames, otherwise.frames))


# Forms.


def _fn(compiler: _Compiler, form: Form, scope: Scope) -> Code:
    items = form.items
    if len(items) != 3 or items[1].kind not in ("list", "call") or any(a.kind != "symbol" for a in items[1].items):
        raise compiler.error(f"A function is written ({form.head} [names] body).", form)
    names = [a.text for a in items[1].items]
    if len(set(names)) < len(names):
        raise compiler.error("An argument stands here twice; a-b and a_b are one name.", items[1])
    body = compiler.code(items[2], scope.bind(names))
    bodies = {len(names): body._replace(cost=body.cost + 1 + scope.size // 8)}
    return Code(lambda machine, env: Function(bodies, env))


def _let(compiler: _Compiler, form: Form, scope: Scope) -> Code:
    names, size, values = dict(scope.names), scope.size, list[Code]()
    for name, value in bindings(compiler, form):
        if name.kind != "symbol":
            raise compiler.error("A binding begins with a name.", name)
        if _ALIASES.get(name.text, name.text) in LIFTED or name.text in ("else", "true", "false", "null"):
            raise compiler.error(f"{name.text} is a form of the dialect and cannot be bound.", name)
        if value.kind == "symbol" and value.text in names:
            names[name.text] = names[value.text]
            continue
        compiler.binding.append(name.text)
        code = compiler.code(value, Scope(names, size))
        compiler.binding.pop()
        size = _bound(name.text, code, names, values, size)
    if len(form.items) != 3:
        raise compiler.error(f"{form.head} has one expression as its body, and here are {len(form.items) - 2}.", form)
    return _let_code(values, compiler.code(form.items[2], Scope(names, size)), compiler.place(form), size)


def _if(compiler: _Compiler, form: Form, scope: Scope) -> Code:
    test, then, otherwise = [compiler.code(a, scope) for a in compiler.arity(form, 3, 3)]
    return _choose(test, then, otherwise, compiler.place(form))


def _when(compiler: _Compiler, form: Form, scope: Scope) -> Code:
    test, then = [compiler.code(a, scope) for a in compiler.arity(form, 2, 2)]
    return _choose(test, then, _constant(None), compiler.place(form))


def _cond(compiler: _Compiler, form: Form, scope: Scope) -> Code:
    items = compiler.arity(form, 1)
    clauses = all(_is_clause(compiler, item, scope.names) for item in items)
    pairs, otherwise = _pairs(compiler, form, items, clauses)
    codes = [(test, compiler.code(test, scope), compiler.code(value, scope)) for test, value in pairs]
    result = compiler.code(otherwise, scope)
    for test, asked, value in reversed(codes):
        result = _choose(asked, value, result, compiler.place(form, (test,)))
    return result


def _case(compiler: _Compiler, form: Form, scope: Scope) -> Code:
    subject, *rest = compiler.arity(form, 3)
    clauses = all(i.kind in ("call", "list") and len(i.items) == 2 and i.head != "quote" for i in rest)
    pairs, default = _pairs(compiler, form, tuple(rest), clauses)
    branches: dict[Any, Code] = {}
    type: str | None = None
    for key, value in pairs:
        code = compiler.code(value, scope)
        for literal in _literals(compiler, key, clause=clauses):
            type = type or ("str" if literal.kind == "str" else "num")
            if (literal.kind == "str") != (type == "str"):
                raise compiler.error("The keys of case are all strings or all numbers.", literal)
            branches.setdefault(literal.text if type == "str" else literal.number, code)
    asked, otherwise = compiler.code(subject, scope), compiler.code(default, scope)
    wanted = _CLASSES[type or "str"]
    at = compiler.place(form)

    def branch(value: Any) -> Code:
        if value is None:
            return otherwise
        if value.__class__ is not wanted:
            raise at.error(f"case compares {_WORDS[type or 'str']} here, and this is {kind(value)}.", 0)
        return branches.get(value, otherwise)

    if asked.constant:
        return branch(asked.value)
    codes = [*branches.values(), otherwise]
    cost = sum([code.cost for code in codes])

    def case(machine: Machine, env: Environment) -> Any:
        value = asked.run(machine, env)
        return machine.settle((value,), lambda v: branch(v[0]).run(machine, env), at, cost)

    return Code(case, 1 + asked.cost + cost, 3 + max([asked.frames, *[code.frames for code in codes]]))


def _quote(compiler: _Compiler, form: Form, scope: Scope) -> Code:
    literal = _unquoted(form)
    if literal.kind == "list":
        return _constant(tuple([_constant_of(item) for item in (_literals(compiler, form) if literal.items else ())]))
    if literal.kind not in ("str", "int", "float"):
        raise compiler.error("Only a name, a number, a string or a list of these is quoted here.", form)
    return _constant(_constant_of(literal))


def _constant_of(literal: Form) -> float | str:
    return literal.text if literal.kind == "str" else literal.number


def _in(compiler: _Compiler, form: Form, scope: Scope) -> Code:
    value, options = compiler.arity(form, 2, 2)
    return _applied(member, [compiler.code(value, scope), compiler.code(options, scope)], compiler.place(form))


def _not_in(compiler: _Compiler, form: Form, scope: Scope) -> Code:
    return compiler.primitive("not", [_in(compiler, form, scope)], [form], form, "not takes")


def _one_of(compiler: _Compiler, form: Form, scope: Scope) -> Code:
    value, *options = compiler.arity(form, 2)
    keys = tuple(_constant_of(key) for option in options for key in _literals(compiler, option))
    return _applied(member, [compiler.code(value, scope), _constant(keys)], compiler.place(form))


def _length(compiler: _Compiler, form: Form, scope: Scope) -> Code:
    """The length of an argument is the slate's: it reads no column."""
    (items,) = compiler.arity(form, 1, 1)
    argument = compiler.given.get(id(scope.names.get(items.text))) if items.kind == "symbol" else None
    if argument is None or argument not in compiler.signature.lists:
        return _applied(FUNCTIONS[_plain(form.head)].run, [compiler.code(items, scope)], compiler.place(form))
    return Code(lambda machine, env: float(machine.size)) if _plain(form.head) == "length" else _constant(False)


def _param(compiler: _Compiler, form: Form, scope: Scope) -> Code:
    return _constant(FORMS["param"](compiler, form, {}, False).value)


def _lazy(stops: Callable[[Any], bool], combine: Callable[[Any, Any], Any], type: str | None, least: int) -> _Form:
    """A form whose later arguments are only looked at if the earlier ones do not decide."""

    def pair(left: Code, right: Code, at: Place, places: tuple[int, int]) -> Code:
        def expected(value: Any, place: int) -> Any:
            if type is not None and value is not None and value.__class__ is not _CLASSES[type]:
                raise at.error(f"{at.name} takes {_WORDS[type]}, and this is {kind(value)}.", place)
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

    def handler(compiler: _Compiler, form: Form, scope: Scope) -> Code:
        forms = compiler.arity(form, least)
        codes = [compiler.code(a, scope) for a in forms]
        result, at = codes[0], compiler.place(form)
        for code, argument in zip(codes, forms, strict=True):
            if type is not None and code.constant and code.value.__class__ not in (_CLASSES[type], _NULL):
                raise compiler.error(f"{form.head} takes {_WORDS[type]}, and this is {kind(code.value)}.", argument)
        for i, code in enumerate(codes[1:], start=1):
            if result.constant and code.constant:
                result = _constant(result.value if stops(result.value) else combine(result.value, code.value))
            else:
                result = pair(result, code, at, (i - 1, i))
        return result

    return handler


_NULL = None.__class__
_Form = Callable[[_Compiler, Form, Scope], Code]

_SPECIAL: dict[str, _Form] = {
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


# Operators: their arguments are numbers, or a pair to compare.


def _direct(compiler: _Compiler, name: str, form: Form, scope: Scope) -> Code:
    count = len(PRIMITIVES[name].takes)
    forms = compiler.arity(form, count, count)
    return compiler.primitive(name, [compiler.code(a, scope) for a in forms], forms, form, f"{form.head} takes")


def _folded(compiler: _Compiler, name: str, form: Form, scope: Scope) -> Code:
    forms = compiler.arity(form, 1)
    first, *rest = [compiler.code(a, scope) for a in forms]
    why = f"{form.head} takes"
    if not rest:
        if name == "-":
            return compiler.primitive("neg", [first], forms, form, why)
        if name == "/":
            first, rest = _constant(1.0), [first]
        else:
            name, rest = "+", [_constant(0.0)]  # which is the number itself
    for code, argument in zip(rest, forms[1:] or forms, strict=True):
        first = compiler.primitive(name, [first, code], (forms[0], argument), form, why)
    return first


def _unit(compiler: _Compiler, name: str, form: Form, scope: Scope) -> Code:
    forms = compiler.arity(form, 1, 1)
    code = compiler.code(forms[0], scope)
    for operator, factor in zip("*/", _UNITS[name], strict=True):
        code = compiler.primitive(operator, [code, _constant(factor)], [forms[0], form], form, f"{name} takes")
    return code


def _compared(compiler: _Compiler, name: str, form: Form, scope: Scope) -> Code:
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
                if value.__class__ not in (float, _NULL):
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
        return _constant(compared(Machine("", 0, 0), at, *[code.value for code in codes]))
    return _applied(compared, codes, at, _QUICK[name])


_QUICK: dict[str, Callable[[float, float], bool]] = {
    "=": PRIMITIVES["="].scalar,
    "!=": lambda x, y: not PRIMITIVES["="].scalar(x, y),
    "<": less,
    "<=": at_most,
    ">": lambda x, y: less(y, x),
    ">=": lambda x, y: at_most(y, x),
}

_OPERATORS: dict[str, Callable[[_Compiler, str, Form, Scope], Code]] = {
    **dict.fromkeys(_DIRECT, _direct),
    **dict.fromkeys([name for name, type in _FOLDS.items() if type == "num"], _folded),
    **dict.fromkeys(("-", "/"), _folded),
    **dict.fromkeys(_UNITS, _unit),
    **dict.fromkeys(_COMPARISONS, _compared),
}


def _arities(name: str) -> Sequence[int]:
    """With how many arguments a name may be handed over as a function; none: it stands only in front."""
    if name in FUNCTIONS:
        return range(max(FUNCTIONS[name].least, 1), min(FUNCTIONS[name].most or 3, 3) + 1)
    if name in _DIRECT:
        return (len(PRIMITIVES[name].takes),)
    if name in _FOLDS or name in ("-", "/"):
        return (1, 2, 3)
    if name in _COMPARISONS:
        return (2,) if name == "!=" else (2, 3)
    return (1,) if name in _UNITS else (2,) if name == "if-null" else ()

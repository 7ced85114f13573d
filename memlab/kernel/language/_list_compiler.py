"""Forms of a policy over lists to closures; names, arities and literals are checked here, other types as it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from memlab.errors import PolicyError, PolicyLimitError, PolicyNameError
from memlab.kernel.language._check import Checker, Helper
from memlab.kernel.language._dag import Node
from memlab.kernel.language._forms import FORMS, bindings, case_keys, is_clause, literals, paired, unquoted
from memlab.kernel.language._limits import MAX_STEPS
from memlab.kernel.language._list_functions import FUNCTIONS
from memlab.kernel.language._machine import (
    CLASSES,
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
from memlab.kernel.language._primitives import both, either
from memlab.kernel.language._reader import Form, Text
from memlab.kernel.language._signature import Signature
from memlab.kernel.language._words import ALIASES, LITERALS

__all__ = ["SPECIAL_FORMS", "ListCompiler"]

_MAX_NESTING = 120
"""Forms within forms, helpers included: what bounds the recursion of the checker itself."""

_HERE = {
    "random": "Chance is written (choice list), each item alike, or (flip probability).",
    "for": "There are no loops: go through a list with map, filter or reduce.",
    "while": "There are no loops: go through a list with map, filter or reduce.",
}


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


class ListCompiler(Checker):
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


def _fn(compiler: ListCompiler, form: Form, scope: _Scope) -> Code:
    items = form.items
    if len(items) != 3 or items[1].kind not in ("list", "call") or any(a.kind != "symbol" for a in items[1].items):
        raise compiler.error(f"A function is written ({form.head} [names] body).", form)
    names = [a.text for a in items[1].items]
    if len(set(names)) < len(names):
        raise compiler.error("An argument is listed twice; a-b and a_b are one name.", items[1])
    body = compiler.code(items[2], scope.bind(names))
    bodies = {len(names): body._replace(cost=body.cost + 1 + scope.size // 8)}
    return Code(lambda machine, env: Function(bodies, env))


def _let(compiler: ListCompiler, form: Form, scope: _Scope) -> Code:
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


def _if(compiler: ListCompiler, form: Form, scope: _Scope) -> Code:
    test, then, otherwise = [compiler.code(a, scope) for a in compiler.arity(form, 3, 3)]
    return _choose(test, then, otherwise, compiler.place(form))


def _when(compiler: ListCompiler, form: Form, scope: _Scope) -> Code:
    test, then = [compiler.code(a, scope) for a in compiler.arity(form, 2, 2)]
    return _choose(test, then, _constant(None), compiler.place(form))


def _cond(compiler: ListCompiler, form: Form, scope: _Scope) -> Code:
    items = compiler.arity(form, 1)
    clauses = all(is_clause(compiler, item, scope.names) for item in items)
    pairs, otherwise = paired(compiler, form, items, clauses)
    result = compiler.code(otherwise, scope)
    for test, value in reversed(pairs):
        condition, then = compiler.code(test, scope), compiler.code(value, scope)
        result = _choose(condition, then, result, compiler.place(form, (test,)))
    return result


def _case(compiler: ListCompiler, form: Form, scope: _Scope) -> Code:
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


def _quote(compiler: ListCompiler, form: Form, scope: _Scope) -> Code:
    literal = unquoted(form)
    if literal.kind == "list":
        return _constant(tuple(_value_of(item) for item in (literals(compiler, form) if literal.items else ())))
    if literal.kind not in ("str", "int", "float"):
        raise compiler.error("Only a name, a number, a string or a list of these is quoted here.", form)
    return _constant(_value_of(literal))


def _not_in(compiler: ListCompiler, form: Form, scope: _Scope) -> Code:
    return _applied(FUNCTIONS["not"].run, [compiler.function("in", form, scope)], compiler.place(form, (form,)))


def _one_of(compiler: ListCompiler, form: Form, scope: _Scope) -> Code:
    value, *options = compiler.arity(form, 2)
    keys = tuple(_value_of(key) for option in options for key in literals(compiler, option))
    return _applied(FUNCTIONS["in"].run, [compiler.code(value, scope), _constant(keys)], compiler.place(form))


def _param(compiler: ListCompiler, form: Form, scope: _Scope) -> Code:
    return _constant(FORMS["param"](compiler, form, {}, False).value)


def _lazy(decides: Callable[[Any], bool], combine: Callable[[Any, Any], Any], type: str | None) -> _SpecialForm:
    """A form whose later arguments are only looked at if the earlier ones do not decide."""

    def handler(compiler: ListCompiler, form: Form, scope: _Scope) -> Code:
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


_SpecialForm = Callable[[ListCompiler, Form, _Scope], Code]
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

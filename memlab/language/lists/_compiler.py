"""Forms to closures: names, arities, constants and forms are checked once, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from memlab.errors import PolicyError, PolicyLimitError, PolicyNameError, did_you_mean
from memlab.language._check import ABSENT, ALIASES, COMPARISONS, DIRECT, FOLDS, UNITS, Checker, Helper
from memlab.language._dag import Node
from memlab.language._forms import FORMS
from memlab.language._limits import MAX_STEPS
from memlab.language._primitives import PRIMITIVES
from memlab.language._reader import Form, Text
from memlab.language._signature import Signature
from memlab.language.lists._closures import applied, bind, call, constant, let_code, local
from memlab.language.lists._functions import FUNCTIONS
from memlab.language.lists._lift import LIFTED
from memlab.language.lists._machine import MAX_FRAMES, Code, Function, Place, kind

__all__ = ["Compiler", "Operator", "Scope", "SpecialForm", "plain"]

_MAX_NESTING = 120
"""Forms within forms, helpers inlined: what bounds the recursion of the checker itself."""

_MORE_ALIASES = {"car": "first", "cdr": "rest", "len": "length", "count": "length", "fold": "reduce", "lambda": "fn"}
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
        return Scope({**self.names, **{n: local(self.size + i) for i, n in enumerate(names)}}, self.size + len(names))


class Compiler(Checker):
    """Checks one policy. ``special`` and ``operators`` are its tables of forms, by the name in front.

    From ``Checker`` come its errors, arities, parameters and the look-up of names.
    """

    def __init__(
        self,
        text: Text,
        signature: Signature,
        helpers: Mapping[str, Helper],
        params: Mapping[str, float],
        arguments: tuple[str, ...],
        special: Mapping[str, SpecialForm],
        operators: Mapping[str, Operator],
    ) -> None:
        super().__init__(text, signature, helpers, params, LIFTED)
        self.special, self.operators = special, operators
        self.arguments = Scope({}, 0).bind(arguments)
        self.given = {id(code): name for name, code in self.arguments.names.items()}
        self.read: set[str] = set()
        self.binding: list[str] = []
        self.nesting = 0

    def is_function(self, name: str) -> bool:
        name = plain(name)
        return name in self.special or name in FUNCTIONS or name in self.operators or name in self.helpers

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
            return constant(form.number)
        if form.kind == "str":
            return constant(form.text)
        if form.kind == "keyword":
            raise self.error(f":{form.text} stands where a value is expected.", form)
        self.nesting += 1
        if self.nesting > _MAX_NESTING:
            raise self.error(f"Forms, helpers included, nest deeper than {_MAX_NESTING}.", form, PolicyLimitError)
        if form.kind == "list":
            codes = [self.code(item, scope) for item in form.items]
            code = applied(FUNCTIONS["list"].run, codes, self.place(form, form.items))
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
            counts = _arities(plain(form.text))
            if counts:
                return self.operator(form, counts)
            if form.text in self.helpers:
                count = len(self.helpers[form.text].arguments)
                return self.operator(form, (count,))
            literal = self.lookup(form, scope.names)
            assert isinstance(literal, Node)
            return constant(literal.value)
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
        return constant(Function(bodies, ()))

    def called(self, form: Form, scope: Scope) -> Code:
        if not form.items:
            raise self.error("An empty form has no value.", form)
        head = form.items[0]
        if head.kind == "call" or (head.kind == "symbol" and head.text in scope.names):
            function, *arguments = [self.code(item, scope) for item in form.items]
            if function.constant and function.value.__class__ is not Function:
                raise self.error(f"{head.text} is {kind(function.value)} here, not a function.", head)
            return applied(call, [function, *arguments], self.place(form, form.items))
        if head.kind != "symbol":
            raise self.error("The first item of a form is a function.", head)
        name = plain(head.text)
        if head.text in self.binding:
            raise self.error(f"{head.text} stands in its own value; the dialect has no recursion.", head)
        if name in self.special:
            return self.special[name](self, form, scope)
        if name in FUNCTIONS:
            listed = FUNCTIONS[name]
            arguments = [self.code(a, scope) for a in self.arity(form, listed.least, listed.most)]
            return applied(listed.run, arguments, self.place(form))
        if name in self.operators:
            return self.operators[name](self, name, form, scope)
        if name in self.helpers:
            return self.inlined(self.helpers[name], form, scope)
        raise self.unknown(name, head)

    def unknown(self, name: str, head: Form) -> PolicyError:
        if name in _HERE or name in ABSENT:
            return self.error(_HERE.get(name) or ABSENT[name], head, PolicyNameError)
        if name in FORMS:
            return self.error(
                f"{name} does not stand in a policy over lists: write it with map, filter and reduce.", head
            )
        if name in self.signature.inputs:
            return self.error(f"{name} is a feature, not a function.", head)
        known = [*self.special, *FUNCTIONS, *self.operators, *self.helpers]
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
            size = bind(name, value, names, values, size)
        self.used[helper.name] = helper
        at = self.place(form)
        caller, self.text = self.text, helper.text
        binding, self.binding = self.binding, []
        self.calls.append(helper.name)
        body = self.code(helper.body, Scope(names, size))
        self.calls.pop()
        self.text, self.binding = caller, binding
        return let_code(values, body, at, size)


SpecialForm = Callable[[Compiler, Form, Scope], Code]
Operator = Callable[[Compiler, str, Form, Scope], Code]
"""Also takes the plain name, of which the form may hold an alias."""


def plain(name: str) -> str:
    """The name that an alias stands for."""
    name = ALIASES.get(name, name)
    return _MORE_ALIASES.get(name, name)


def _arities(name: str) -> Sequence[int]:
    """With how many arguments a name may be handed over as a function; none: it stands only in front."""
    if name in FUNCTIONS:
        return range(max(FUNCTIONS[name].least, 1), min(FUNCTIONS[name].most or 3, 3) + 1)
    if name in DIRECT:
        return (len(PRIMITIVES[name].takes),)
    if name in FOLDS or name in ("-", "/"):
        return (1, 2, 3)
    if name in COMPARISONS:
        return (2,) if name == "!=" else (2, 3)
    return (1,) if name in UNITS else (2,) if name == "if-null" else ()

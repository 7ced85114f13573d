"""Forms to Hy models: the body of a trusted policy as Hy code, which Hy's compiler makes an ordinary function of.

The code calls ``_memlab``, which is ``TOTAL`` of ``_total``. From ``Checker`` come the arities, the spellings and the
errors; types are found at run time. Names that the dialect does not know are the module's own: a function of Hy or
Python gets plain values, and a form of Hy, such as ``(get table key)``, is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import hy
from hy.models import Dict, Expression, Float, Integer, Keyword, List, Sequence, String, Symbol
from hy.reader import mangle

from memlab.errors import PolicyNameError
from memlab.language._check import ALIASES, LITERALS, Checker, Helper
from memlab.language._definition import Definition
from memlab.language._derived import quoted
from memlab.language._forms import FORMS
from memlab.language._reader import Form, Text, canonical
from memlab.language._signature import Signature
from memlab.language.trusted._total_lists import LISTS
from memlab.language.trusted._total_scalars import FUNCTIONS, Arity

__all__ = [
    "FUNCTION_HEADS",
    "SLATE",
    "Expander",
    "ExpanderForm",
    "Facts",
    "Local",
    "Scope",
    "expression",
    "local_name",
    "memlab",
    "thunk",
    "wrapped",
]

_SIGNATURE = Signature("the trusted policy", {}, aggregates=True)
_LIST_ALIASES = {"car": "first", "cdr": "rest", "len": "length", "count": "length", "fold": "reduce"}
SLATE = Symbol("_memlab_slate")
"""What a function that ranges over its slate calls the aggregates it was given."""

FUNCTION_HEADS = ("fn", "lambda", "λ")
_CHANCE = ("choice", "flip")


class Facts(NamedTuple):
    """What is known of a helper: whether it is the dialect's all through, whether it ranges over a slate or goes
    through lists, and the models of its forms.
    """

    pure: bool
    over_slate: bool
    over_lists: bool
    models: Mapping[int, Any]


class Local(NamedTuple):
    """A name in scope: its Hy symbol, and what it was bound to (nothing for an argument)."""

    symbol: Any
    form: Form | None = None
    scope: Scope | None = None


class Scope(NamedTuple):
    """The names in scope; ``bound`` are the bindings around, outermost first; ``inner`` is inside a function."""

    names: Mapping[str, Local]
    bound: tuple[tuple[Any, Any], ...] = ()
    inner: bool = False


def expression(*items: Any) -> Any:
    """``(a b ...)``; strings are symbols, or names with dots."""
    return Expression([_symbol(i) if type(i) is str else i for i in items])


def _symbol(name: str) -> Any:
    if "." not in name.strip("."):
        return Symbol(name)
    return Expression([Symbol("."), *map(Symbol, name.split("."))])


def memlab(name: str, *arguments: Any) -> Any:
    """A call of ``TOTAL[name]``."""
    return Expression([expression("get", "_memlab", String(name)), *arguments])


def local_name(name: str) -> str:
    """What a name of the dialect is called in Python: ``new/kind`` is ``new_kind``, the rest as Hy mangles it."""
    mangled: str = mangle(name.replace("/", "_"))
    return mangled


def thunk(model: Any) -> Any:
    return expression("fn", List(), model)


ExpanderForm = Callable[["Expander", Form, Scope, bool], Any]
"""Expands one form: the expander, the form, the names in scope, and whether its value is the policy's."""


class Expander(Checker):
    """Expands one definition. ``models`` are the Hy models that the forms came from, by the identity of the form;
    ``is_macro`` knows the macros of the module, ``facts`` its helpers, ``special`` the forms that are no functions.
    """

    def __init__(
        self,
        text: Text,
        helpers: Mapping[str, Helper],
        facts: Mapping[str, Facts],
        models: Mapping[int, Any],
        is_macro: Callable[[str], bool],
        special: Mapping[str, ExpanderForm],
    ) -> None:
        super().__init__(text, _SIGNATURE, helpers, {}, FORMS)
        self.facts, self.models, self.is_macro, self.special = facts, models, is_macro, special
        self.foreign = 0
        """How often names were met that are not the dialect's."""
        self.over_lists = False
        self.fields: set[str] | None = None
        """What ``update`` sets; none if there is no ``update``."""
        self.aggregates: dict[str, tuple[str, Any]] = {}
        """By expression: which aggregate, and its argument as code among the policy's arguments."""

    # Definitions.

    def scope_of(self, parts: Definition) -> Scope:
        """The arguments of a definition."""
        names = {a.text: Local(Symbol(local_name(a.text))) for a in parts.arguments}
        seen: dict[str, Form] = {}
        for argument in parts.arguments:
            twin = seen.setdefault(local_name(argument.text), argument)
            if twin is not argument:
                raise self.error(
                    f"{twin.text} and {argument.text} are one name in Python: {local_name(argument.text)}.", argument
                )
        return Scope(names)

    def body(self, parts: Definition) -> Any:
        """The body of a definition. Its value may be a constant node."""
        model = self.code(parts.body, self.scope_of(parts), tail=True)
        if self.aggregates and any(a.text == "aggregates" for a in parts.arguments):
            raise self.error("An argument called aggregates hides those of the slate.", parts.body)
        return self.slate_bound(model)

    def slate_bound(self, model: Any) -> Any:
        if not self.aggregates:
            return model
        return expression("do", expression("setv", SLATE, "aggregates"), model)

    def parameters(self, parts: Definition) -> Any:
        """The list of parameters: the arguments, then by keyword the old values of fields that are none of them, and
        the aggregates.
        """
        names = [local_name(a.text) for a in parts.arguments]
        fields = [local_name(f) for f in sorted(self.fields or ())]
        more = [List([Symbol(f), Symbol("Ellipsis")]) for f in fields if f not in names]
        if self.aggregates:
            more.append(List([Symbol("aggregates"), Symbol("None")]))
        return List([*map(Symbol, names), *([Symbol("*"), *more] if more else [])])

    def slate_functions(self, parts: Definition) -> Any:
        """A dictionary of the aggregates: which one, and its argument as a function of the policy's arguments."""
        names = [Symbol(local_name(a.text)) for a in parts.arguments]
        arguments = List([*names, Symbol("*"), List([Symbol("aggregates"), Symbol("None")])])
        items: list[Any] = []
        for key, (op, model) in self.aggregates.items():
            function = expression("fn", arguments, self.slate_bound(memlab("plain", model)))
            items += [String(key), List([String(op), function])]
        return Dict(items)

    # Expressions.

    def code(self, form: Form, scope: Scope, tail: bool = False) -> Any:
        """Hy code whose value is that of ``form``, or a constant node that holds it."""
        model = self.models.get(id(form))
        if form.kind == "call" and not form.items and model is not None and type(model) is not Expression:
            return self.hosted(model, scope)
        if form.kind == "symbol":
            return self.name(form, scope)
        if form.kind in ("int", "float"):
            return memlab("literal", Float(form.number))
        if form.kind == "str":
            return memlab("literal", String(form.text))
        if form.kind == "keyword":
            raise self.error(f":{form.text} stands where a value is expected.", form)
        if form.kind == "list":
            return memlab("list", *[self.code(item, scope) for item in form.items])
        return self.called(form, scope, tail)

    def name(self, form: Form, scope: Scope) -> Any:
        local = scope.names.get(form.text)
        if local is not None:
            return local.symbol
        if form.text in LITERALS:
            value = LITERALS[form.text][0]
            return memlab("literal", Symbol(str(value)))
        if form.text == "else":
            raise self.error("else stands only as the last test of cond or case.", form)
        name = plain_name(form.text)
        if form.text in self.facts:
            return Symbol(local_name(form.text))
        if form.text in self.helpers:
            return memlab("library", String(form.text))
        if name in FUNCTIONS or name in LISTS:
            return expression("get", "_memlab", String(name))
        if name in self.forms:
            raise self.error(f"{form.text} is a form: call it as ({form.text} ...).", form)
        return self.host_name(form)

    def is_function(self, name: str) -> bool:
        return super().is_function(name) or plain_name(name) in LISTS

    def host_name(self, form: Form) -> Any:
        """A name of the module itself."""
        model = self.models.get(id(form))
        if model is None:
            raise self.error(f'Nothing is called "{form.text}" here.', form, PolicyNameError)
        self.foreign += 1
        return model

    def called(self, form: Form, scope: Scope, tail: bool) -> Any:
        if not form.items:
            raise self.error("An empty form has no value.", form)
        head = form.items[0]
        if head.kind != "symbol":
            own = head.head in FUNCTION_HEADS
            called = self.function(head, scope) if own else self.hosted(self.models[id(head)], scope)
            return self.host_call(called, form, scope)
        if head.text in scope.names:
            return self.host_call(scope.names[head.text].symbol, form, scope)
        name = plain_name(head.text)
        handler = self.special.get(name)
        if handler is not None:
            return handler(self, form, scope, tail)
        if name in FUNCTIONS:
            return self.applied(name, FUNCTIONS[name][1], form, scope)
        if name in self.helpers:
            return self.helped(self.helpers[name], form, scope)
        if name in LISTS:
            self.over_lists = True
            return self.applied(name, LISTS[name][1], form, scope)
        if name in _CHANCE:
            message = f"{name} draws, and a function called from Python has no source of chance: use the safe road."
            raise self.error(message, head, PolicyNameError)
        if name in self.forms:
            self.forms[name](self, form, {}, False)  # says where it may stand
        function = self.host_name(head)
        if self.is_macro(str(function)):
            return self.hosted(self.models[id(form)], scope)
        return self.host_call(function, form, scope)

    def applied(self, name: str, arity: Arity, form: Form, scope: Scope) -> Any:
        arguments = self.arity(form, *arity)
        return memlab(name, *[self.code(a, scope) for a in arguments])

    def helped(self, helper: Helper, form: Form, scope: Scope) -> Any:
        """A helper called; one that ranges over the slate is put in place, because only the policy knows its slate."""
        count = len(helper.arguments)
        if len(form.items) - 1 != count:
            signature = " ".join((helper.name, *helper.arguments))
            raise self.error(f"({signature}) takes {count} arguments, and here are {len(form.items) - 1}.", form)
        facts = self.facts.get(helper.name)
        arguments = [self.code(a, scope) for a in form.items[1:]]
        if facts is None:
            return Expression([memlab("library", String(helper.name)), *arguments])
        self.foreign += not facts.pure
        self.over_lists |= facts.over_lists
        if not facts.over_slate:
            return Expression([expression(".", local_name(helper.name), "__memlab__"), *arguments])
        names: dict[str, Local] = {}
        bound = scope.bound
        for name, argument, model in zip(helper.arguments, form.items[1:], arguments, strict=True):
            symbol = Symbol(f"_{local_name(helper.name)}_{local_name(name)}_{len(bound)}")
            names[name] = Local(symbol, argument, scope)
            bound = (*bound, (symbol, model))
        caller = self.text, self.models
        self.text, self.models = helper.text, facts.models
        inside = self.code(helper.body, Scope(names, bound, scope.inner))
        self.text, self.models = caller
        return wrapped(bound[len(scope.bound) :], inside)

    def function(self, form: Form, scope: Scope) -> Any:
        """``(fn [i] body)`` as a value: plain values in and out."""
        items = form.items
        if len(items) != 3 or items[1].kind not in ("list", "call") or any(a.kind != "symbol" for a in items[1].items):
            raise self.error(f"A function is written ({form.head} [names] body).", form)
        own = {a.text: Local(Symbol(local_name(a.text))) for a in items[1].items}
        body = self.code(items[2], Scope({**scope.names, **own}, scope.bound, True))
        return expression("fn", List([local.symbol for local in own.values()]), memlab("plain", body))

    # What is not the dialect's.

    def host_call(self, function: Any, form: Form, scope: Scope) -> Any:
        self.foreign += 1
        arguments: list[Any] = []
        for argument in form.items[1:]:
            model = self.models.get(id(argument))
            if argument.kind == "keyword":
                arguments.append(Keyword(argument.text))
            elif argument.head in ("unpack-iterable", "unpack-mapping"):
                inner = memlab("value", self.code(argument.items[1], scope))
                arguments.append(expression(argument.head, inner))
            elif argument.kind == "int" and model is not None:
                arguments.append(memlab("literal", Integer(model)))
            else:
                arguments.append(self.code(argument, scope))
        if isinstance(function, Expression) and function[:2] == expression(".", "None"):
            # (.lower kind): the first argument is the object
            return Expression([function, *[memlab("value", a) for a in arguments]])
        return memlab("call", function, *arguments)

    def hosted(self, model: Any, scope: Scope) -> Any:
        """A form of Hy as it is; the names in it that are bound here hold plain values."""
        self.foreign += 1
        for symbol in dict.fromkeys(_symbols(model)):
            local = scope.names.get(canonical(str(symbol)))
            if local is not None:
                model = expression("let", List([symbol, memlab("value", local.symbol)]), model)
        return model

    # Aggregates by their expressions.

    def shown(self, form: Form, scope: Scope) -> str:
        """A form as source among the policy's arguments."""
        if form.kind == "symbol":
            local = scope.names.get(form.text)
            if local is None or local.form is None or local.scope is None:
                return form.text
            return self.shown(local.form, local.scope)
        if form.kind in ("int", "float"):
            return repr(int(form.number)) if form.number.is_integer() else repr(form.number)
        if form.kind == "str":
            return quoted(form.text)
        if form.kind == "keyword":
            return f":{form.text}"
        if not form.items and id(form) in self.models:
            return str(hy.repr(self.models[id(form)]))
        inside = " ".join(self.shown(item, scope) for item in form.items)
        return f"({inside})" if form.kind == "call" else f"[{inside}]"


def plain_name(name: str) -> str:
    name = ALIASES.get(name, name)
    return _LIST_ALIASES.get(name, name)


def wrapped(bound: Sequence[tuple[Any, Any]], model: Any, *, needed: bool = False) -> Any:
    """``model`` inside one let a binding, or only inside those that it needs."""
    for symbol, value in reversed(bound):
        if not needed or symbol in _symbols(model):
            model = expression("let", List([symbol, value]), model)
    return model


def _symbols(model: Any) -> Iterator[Any]:
    if isinstance(model, Symbol):
        yield model
    elif isinstance(model, Sequence):
        for item in model:
            yield from _symbols(item)

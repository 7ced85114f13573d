"""Forms to a typed graph: names are resolved, types and arities checked, helpers inlined. Nothing is evaluated.

Every error carries the form it is about. Work is bounded: each form visited costs one step of fuel, and the graph has a
largest size and depth, so an expansion that doubles at every level ends in microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from memlab.errors import PolicyError, PolicyLimitError, PolicyNameError, PolicyTypeError, did_you_mean
from memlab.language._dag import Dag, Node
from memlab.language._derived import SET_TESTS, Derived, SetName
from memlab.language._limits import MAX_DEPTH, MAX_NODES, MAX_OPEN, MAX_STEPS
from memlab.language._params import Param
from memlab.language._primitives import PRIMITIVES
from memlab.language._reader import Form, Text
from memlab.language._signature import Signature, Type

__all__ = [
    "ABSENT",
    "AGGREGATE_FORMS",
    "ALIASES",
    "COMPARISONS",
    "DIRECT",
    "FOLDS",
    "LITERALS",
    "UNITS",
    "Checker",
    "Env",
    "Handler",
    "Helper",
    "kind_of",
]

Env = Mapping[str, object]
"""Names to nodes; a policy lifted from lists also binds lists (see ``_lift``)."""

_KINDS: dict[str | None, str] = {
    "num": "a number",
    "bool": "true or false",
    "str": "a string",
    "set": "a set",
    "record": "an update",
    None: "null",
}

ALIASES = {
    "==": "=",
    "=?": "=",
    "eq?": "=",
    "eqv?": "=",
    "equal?": "=",
    "not=": "!=",
    "expt": "pow",
    "**": "pow",
    "ceiling": "ceil",
    "nil?": "null?",
    "none?": "null?",
    "missing?": "null?",
    "coalesce": "if-null",
    "let*": "let",
    "λ": "lambda",
    "member?": "in",
}
"""Other spellings of a form, and the one that the tables have."""
DIRECT = ("abs", "exp", "log", "log1p", "sqrt", "tanh", "pow", "sign", "floor", "ceil", "clamp", "not")
FOLDS = {"+": "num", "*": "num", "min": "num", "max": "num", "and": "bool", "or": "bool"}
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
UNITS = {"days": (1.0, 1.0), "weeks": (7.0, 1.0), "hours": (1.0, 24.0), "minutes": (1.0, 1440.0)}
"""Units of time, as days: times the first number, divided by the second."""
AGGREGATE_FORMS = ("slate-min", "slate-max", "slate-mean", "slate-rank", "min-max")
LITERALS: dict[str, tuple[bool | None, Type | None]] = {
    "true": (True, "bool"),
    "True": (True, "bool"),
    "false": (False, "bool"),
    "False": (False, "bool"),
    "null": (None, None),
    "nil": (None, None),
    "None": (None, None),
}
ABSENT = {
    "//": "Integer division is left out: it differs between back ends. Write (floor (/ a b)).",
    "%": "The remainder is left out: it differs between back ends. Write (- a (* b (floor (/ a b)))).",
    "mod": "The remainder is left out: it differs between back ends. Write (- a (* b (floor (/ a b)))).",
    "random": "A policy has no source of chance; exploration is the engine's, from the weights that explore returns.",
    "now": "A policy has no clock: time enters as features such as age-days.",
    "setv": "A policy changes nothing: bind names with let.",
    "set!": "A policy changes nothing: bind names with let.",
    "define": "Helpers are written (defn name [arguments] body).",
    "for": "A policy has no loops: it is applied to every item of a slate.",
    "while": "A policy has no loops: it is applied to every item of a slate.",
    "import": "A policy imports nothing.",
    "require": "A policy imports nothing.",
    "eval": "A policy evaluates no code.",
}
"""What the dialect leaves out, and what to write instead."""


@dataclass(frozen=True, eq=False)
class Helper:
    """A ``defn``: inlined wherever it is called."""

    name: str
    arguments: tuple[str, ...]
    doc: str
    body: Form
    form: Form
    text: Text
    hash: str


def kind_of(type: str | None) -> str:
    """A type in words."""
    return _KINDS[type]


Handler = Callable[["Checker", Form, Env, bool], Node]
"""Checks one form: the checker, the form, what is bound, and whether its value is the policy's."""


class Checker:
    """Checks one policy. ``params`` are values that override the defaults; those never met are the caller's to
    report.
    """

    def __init__(
        self,
        text: Text,
        signature: Signature,
        helpers: Mapping[str, Helper],
        params: Mapping[str, float],
        forms: Mapping[str, Handler],
    ) -> None:
        self.forms = forms
        """The names that stand in front of a call and are no helpers."""
        self.text, self.signature, self.helpers, self.overrides = text, signature, helpers, params
        self.dag = Dag()
        self.params: dict[str, Param] = {}
        self.derived: dict[str, Derived] = {}
        self.used: dict[str, Helper] = {}
        self.calls: list[str] = []
        self.steps = 0
        self.open = 0

    def error(self, message: str, form: Form, kind: type[PolicyError] = PolicyTypeError) -> PolicyError:
        """An error with its caret under ``form``, to be raised."""
        return self.text.error(kind, message, form)

    # The policy as a whole.

    def argument(self, name: str) -> object | None:
        """What an argument stands for, or None if the slot gives no such thing."""
        declared = self.signature.inputs.get(name)
        if declared is None:
            return None
        return SetName(name) if declared.type == "set" else self.scalar(name)

    def scalar(self, name: str) -> Node:
        """The input of this name, which is no set."""
        type = self.signature.inputs[name].type
        assert type != "set"
        return self.dag.input(name, type)

    def argument_names(self) -> list[str]:
        """What an argument may be called."""
        return list(self.signature.inputs)

    def result(self, body: Form, env: Env) -> Node:
        """The node of the whole policy, which must have the type that the slot returns."""
        returns = self.signature.returns
        if returns != "record":
            return self.want(body, env, returns, f"{self.signature.slot} returns", tail=True)
        node = self.check(body, env, tail=True)
        if node.type != "record":
            shape = f"(update :{self.signature.fields[0]} value ...)"
            raise self.error(f"{self.signature.slot} returns {shape}, and this is {kind_of(node.type)}.", body)
        return node

    # Expressions.

    def check(self, form: Form, env: Env, *, tail: bool = False) -> Node:
        """The node of an expression; ``tail`` marks the place of the policy's result, whose words are then checked."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise self.error(f"Inlining visits more than {MAX_STEPS:,} forms.", form, PolicyLimitError)
        kind = form.kind
        if kind == "symbol":
            return self.symbol(form, env)
        if kind in ("int", "float"):
            return self.dag.number(form.number)
        if kind == "call":
            self.open += 1
            if self.open > MAX_OPEN:
                raise self.error(f"Helpers within helpers nest deeper than {MAX_OPEN} forms.", form, PolicyLimitError)
            node = self.call(form, env, tail)
            self.open -= 1
            if node.depth > MAX_DEPTH:
                raise self.error(
                    f"More than {MAX_DEPTH} operations depend on one another here.", form, PolicyLimitError
                )
            if len(self.dag.nodes) > MAX_NODES:
                raise self.error(f"The policy has more than {MAX_NODES:,} distinct operations.", form, PolicyLimitError)
            return node
        if kind == "str":
            if tail and self.signature.words:
                self.word(form, self.signature.words, f"a result of {self.signature.slot}")
            return self.dag.constant(form.text, "str")
        if kind == "keyword":
            raise self.error(f":{form.text} stands where a value is expected.", form)
        raise self.error("A list stands only behind in, or as the bindings of let.", form)

    def want(self, form: Form, env: Env, type: Type, why: str, *, tail: bool = False) -> Node:
        """The node of an expression that must have ``type``."""
        node = self.check(form, env, tail=tail)
        if node.type is None:
            return self.dag.typed(node, type)
        if node.type != type:
            raise self.error(f"{why} {kind_of(type)}, and this is {kind_of(node.type)}.", form)
        return node

    def symbol(self, form: Form, env: Env) -> Node:
        value = self.lookup(form, env)
        if isinstance(value, Node):
            return value
        if isinstance(value, SetName):
            raise self.error(f"{form.text} is a set: only {', '.join(SET_TESTS)} take sets.", form)
        raise self.error(f"{form.text} is a list here: length, empty?, first, nth and filter take lists.", form)

    def lookup(self, form: Form, env: Env) -> object:
        name = form.text
        value = env.get(name)
        if value is not None:
            return value
        if name in LITERALS:
            return self.dag.constant(*LITERALS[name])
        if name == "else":
            raise self.error("else stands only as the last test of cond or case.", form)
        if name in self.signature.inputs and not self.calls:
            raise self.unlisted(form)
        if self.is_function(name):
            raise self.error(f"{name} is a function: call it as ({name} ...).", form)
        known = [*env, *(() if self.calls else self.signature.inputs)]
        raise self.error(f'Nothing is called "{name}" here. {did_you_mean(name, known)}', form, PolicyNameError)

    def unlisted(self, form: Form) -> PolicyError:
        """The error of a feature that the policy does not list among its arguments."""
        return self.error(
            f"{form.text} is a feature, but no argument of this policy: add it to the arguments.", form, PolicyNameError
        )

    def is_function(self, name: str) -> bool:
        name = ALIASES.get(name, name)
        return name in self.forms or name in self.helpers

    def call(self, form: Form, env: Env, tail: bool) -> Node:
        if not form.items:
            raise self.error("An empty form has no value.", form)
        head = form.items[0]
        if head.kind != "symbol":
            raise self.error("The first item of a form is the name of a function.", head)
        name = head.text
        if name in env:
            bound = env[name]
            what = kind_of(bound.type) if isinstance(bound, Node) else "a set or a list"
            raise self.error(f"{name} is {what} here, not a function.", head)
        name = ALIASES.get(name, name)
        handler = self.forms.get(name)
        if handler is not None:
            return handler(self, form, env, tail)
        helper = self.helpers.get(name)
        if helper is not None:
            return self.inline(helper, form, env)
        if name in ABSENT:
            raise self.error(ABSENT[name], head, PolicyNameError)
        if name in self.signature.inputs:
            raise self.error(f"{name} is a feature, not a function.", head)
        raise self.error(
            f'There is no function "{name}". {did_you_mean(name, [*self.forms, *self.helpers])}',
            head,
            PolicyNameError,
        )

    def arity(self, form: Form, least: int, most: int | None = None) -> tuple[Form, ...]:
        """The arguments of a call, counted."""
        arguments = form.items[1:]
        if len(arguments) < least or (most is not None and len(arguments) > most):
            expected = f"{least}" if most == least else f"at least {least}" if most is None else f"{least} to {most}"
            plural = "" if expected == "1" or expected.endswith(" 1") else "s"
            raise self.error(f"{form.head} takes {expected} argument{plural}, and here are {len(arguments)}.", form)
        return arguments

    def inline(self, helper: Helper, form: Form, env: Env) -> Node:
        count = len(helper.arguments)
        if len(form.items) - 1 != count:
            signature = " ".join((helper.name, *helper.arguments))
            raise self.error(f"({signature}) takes {count} arguments, and here are {len(form.items) - 1}.", form)
        if helper.name in self.calls:
            raise self.error(f"{helper.name} calls itself; the dialect has no recursion.", form)
        values = [self.check(argument, env) for argument in form.items[1:]]
        self.used[helper.name] = helper
        caller, self.text = self.text, helper.text
        self.calls.append(helper.name)
        try:
            return self.check(helper.body, dict(zip(helper.arguments, values, strict=True)))
        finally:
            self.text = caller
            self.calls.pop()

    def unify(self, nodes: list[Node], forms: list[Form], what: str) -> list[Node]:
        """The nodes of several branches, which must have one type; ``null`` takes the type of the others."""
        type = next((n.type for n in nodes if n.type is not None), None)
        for node, form in zip(nodes, forms, strict=True):
            if node.type is not None and node.type != type:
                raise self.error(f"{what} have two types: {kind_of(type)}, and here {kind_of(node.type)}.", form)
        return [self.dag.typed(node, type) for node in nodes]

    def choose(self, test: Node, then: Node, otherwise: Node) -> Node:
        """``if``; of two updates, field by field: what a branch leaves out keeps its old value."""
        if then.type != "record":
            return self.dag.make("if", test, then, otherwise)
        then, otherwise = (node if node.op == "record" else self.dag.record({}) for node in (then, otherwise))
        left, right = (dict(zip(node.value, node.args, strict=True)) for node in (then, otherwise))
        fields = {}
        for name in {**left, **right}:
            values = [side[name] if name in side else self.scalar(name) for side in (left, right)]
            fields[name] = self.dag.make("if", test, *values)
        return self.dag.record(fields)

    def bound(self, form: Form, env: Env) -> object:
        """What a name of let stands for."""
        if form.kind == "symbol" and isinstance(env.get(form.text), SetName):
            return env[form.text]
        return self.check(form, env)

    # Closed vocabularies.

    def word(self, form: Form, words: tuple[str, ...], what: str) -> None:
        if form.text not in words:
            raise self.error(f'"{form.text}" is not {what}. {did_you_mean(form.text, words)}', form)

    def vocabulary(self, node: Node) -> tuple[str, ...]:
        """The words that a string may be, or none unless it comes from inputs that declare theirs."""
        words: dict[str, None] = {}
        declared = False
        stack = [node]
        while stack:
            node = stack.pop()
            if node.op == "input" and self.signature.inputs[node.value].words:
                words |= dict.fromkeys(self.signature.inputs[node.value].words)
                declared = True
            elif node.constant:
                if node.value is not None:
                    words[str(node.value)] = None
            elif node.op in ("if", "if-null"):
                stack.extend(node.args[-2:])
            else:
                return ()
        return tuple(words) if declared else ()

    def check_word(self, literal: Form, other: Node) -> None:
        """An error if a literal can never equal ``other``."""
        words = self.vocabulary(other)
        if words and literal.kind == "str" and not other.constant:
            source = other.value if other.op == "input" else "that"
            self.word(literal, words, f"a value of {source}")

    # Operators.

    def direct(self, name: str, form: Form, env: Env) -> Node:
        takes = PRIMITIVES[name].takes
        arguments = self.arity(form, len(takes), len(takes))
        why = f"{form.head} takes"
        return self.dag.make(name, *[self.want(a, env, t, why) for a, t in zip(arguments, takes, strict=True)])

    def fold(self, name: str, form: Form, env: Env) -> Node:
        type: Type = FOLDS[name]  # type: ignore[assignment]
        why = f"{form.head} takes"
        nodes = [self.want(a, env, type, why) for a in self.arity(form, 1)]
        result = nodes[0]
        for node in nodes[1:]:
            result = self.dag.make(name, result, node)
        return result

    def compare(self, name: str, form: Form, env: Env) -> Node:
        arguments = list(self.arity(form, 2, 2 if name == "!=" else None))
        if name in ("=", "!="):
            nodes = self.unify([self.check(a, env) for a in arguments], arguments, f"The sides of {form.head}")
            for i, argument in enumerate(arguments):
                if argument.kind == "str":
                    self.check_word(argument, nodes[i - 1] if i else nodes[1])
        else:
            nodes = [self.want(a, env, "num", f"{form.head} compares numbers:") for a in arguments]
        result: Node | None = None
        for left, right in pairwise(nodes):
            pair = self.compare_pair(name, left, right)
            result = pair if result is None else self.dag.make("and", result, pair)
        assert result is not None
        return result

    def compare_pair(self, name: str, left: Node, right: Node) -> Node:
        if name in (">", ">="):
            return self.dag.make("<" if name == ">" else "<=", right, left)
        if name in ("<", "<="):
            return self.dag.make(name, left, right)
        op = {"str": "same", "bool": "iff"}.get(left.type or "", "=")
        same = self.dag.make(op, self.dag.typed(left, "num"), self.dag.typed(right, "num"))
        return same if name == "=" else self.dag.make("not", same)

"""The checker: turns forms into a typed graph by resolving names, checking types and arities, and inlining helpers.

Nothing is evaluated. Every error points at the form that it is about. The work is bounded: each visited form costs one
step, and the size and depth of the graph are limited. An expansion that doubles at every level is refused within
microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from memlab.errors import (
    PolicyError,
    PolicyLimitError,
    PolicyNameError,
    PolicyTypeError,
    did_you_mean,
)
from memlab.kernel.language.graph import Dag, Node, reachable
from memlab.kernel.language.reader import (
    ABSENT,
    ALIASES,
    LITERALS,
    MAX_DEPTH,
    MAX_NODES,
    MAX_OPEN,
    MAX_STEPS,
    Form,
    Text,
)
from memlab.kernel.language.signature import SET_TESTS, Derived, Param, SetName, Signature, Type

Env = Mapping[str, Node | SetName]
"""Node or set of each name in scope."""

# Types in the words of error messages.
_KINDS: dict[str | None, str] = {
    "num": "a number",
    "bool": "true or false",
    "str": "a string",
    "set": "a set",
    "record": "an update",
    "list": "a list",
    "length": "a length",
    "items": "a list of positions",
    "position": "the position of any item",
    "pick": "the position of an item",
    None: "null",
}


@dataclass(frozen=True, eq=False)
class Helper:
    """A ``defn``, which is inlined wherever it is called."""

    name: str
    arguments: tuple[str, ...]
    doc: str
    body: Form
    form: Form
    text: Text
    hash: str
    scope: Mapping[str, Helper] = field(default_factory=dict)
    """The helpers that the text of an inherited policy may call."""
    listed: tuple[Form, ...] = ()
    """The arguments of an inherited policy. The name of the policy's pack is in `doc`."""


def kind_of(type: str | None) -> str:
    """Return the description of a type for error messages."""
    return _KINDS[type]


Handler = Callable[["Checker", Form, Env, bool], Node]
"""A function that checks one form.

The function's arguments are the checker, the form, the names in scope, and whether the form is the
result of the policy.
"""


class Checker:
    """A checker of one policy.

    `params` are values that override defaults of parameters. The caller reports names that the policy does not declare.
    """

    def __init__(
        self,
        text: Text,
        signature: Signature,
        helpers: Mapping[str, Helper],
        params: Mapping[str, float],
        forms: Mapping[str, Handler],
        macros: Iterable[str] = (),
    ) -> None:
        self.forms = forms
        """Handlers of the built-in forms, by name."""
        self.macros = macros
        """Names of macros, for suggestions."""
        self.text, self.signature, self.helpers, self.overrides = text, signature, helpers, params
        self.dag = Dag()
        self.params: dict[str, Param] = {}
        self.derived: dict[str, Derived] = {}
        self.used: dict[str, Helper] = {}
        self.inherited: dict[Helper, Node] = {}
        """Value of each inherited policy. It is checked once, however often ``(inherited)`` is written."""
        self.calls: list[str] = []
        self.steps = 0
        self.open = 0

    def error(
        self, message: str, form: Form, kind: type[PolicyError] = PolicyTypeError
    ) -> PolicyError:
        """Build an error with its caret under `form`, to be raised by the caller."""
        return self.text.error(kind, message, form)

    # The whole policy.

    def argument(self, name: str) -> Node | SetName | None:
        """Return the node or set of a policy argument, or None for an unknown argument."""
        if name in self.signature.lists:
            return self.dag.of_slate("list", self.scalar(self.signature.lists[name]))
        declared = self.signature.inputs.get(name)
        if declared is None:
            return None
        return SetName(name) if declared.type == "set" else self.scalar(name)

    def bind(self, arguments: Iterable[Form]) -> Env:
        """Return the node or set of each argument of a policy."""
        env: dict[str, Node | SetName] = {}
        for argument in arguments:
            value = self.argument(argument.text)
            if value is None:
                slot, suggestion = (
                    self.signature.slot,
                    did_you_mean(argument.text, self.signature.inputs),
                )
                raise self.error(
                    f"Unknown input {argument.text} of {slot}. {suggestion}",
                    argument,
                    PolicyNameError,
                )
            env[argument.text] = value
        return env

    def scalar(self, name: str) -> Node:
        """Return the graph node of an input that is not a set."""
        type = self.signature.inputs[name].type
        assert type != "set"
        return self.dag.input(name, type)

    def result(self, body: Form, env: Env) -> Node:
        """Check the policy body against the slot's return type and return its node."""
        returns = self.signature.returns
        if "first" in self.forms:
            # A policy over lists: list nodes must not survive in the weight of an item.
            weight = self.picked(self.check(body, env, tail=True), body)
            for node in reachable(weight):
                if node.op == node.type:
                    raise self.error(
                        f"This policy returns {kind_of(node.type)}. Pass it to length, filter, nth, empty? or first.",
                        body,
                    )
            return weight
        if returns != "record":
            return self.want(body, env, returns, f"{self.signature.slot} returns", tail=True)
        node = self.check(body, env, tail=True)
        if node.type != "record":
            shape = f"(update :{self.signature.fields[0]} value ...)"
            raise self.error(
                f"{self.signature.slot} returns {shape}, but this expression is {kind_of(node.type)}.",
                body,
            )
        return node

    # Expressions.

    def check(self, form: Form, env: Env, *, tail: bool = False) -> Node:
        """Type-check an expression and return its graph node.

        `tail` is True for the result of the policy, whose words are then checked against the slot's vocabulary.
        """
        # The limits are checked before and after each form, so that no expansion grows beyond them.
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise self.error(
                f"With its helpers inlined, the policy has more than {MAX_STEPS:,} forms. Call fewer or smaller helpers.",
                form,
                PolicyLimitError,
            )
        kind = form.kind
        if kind == "symbol":
            return self.symbol(form, env)
        if kind in ("int", "float"):
            return self.dag.number(form.number)
        if kind == "call":
            self.open += 1
            if self.open > MAX_OPEN:
                raise self.error(
                    f"With helpers inlined in helpers, forms nest deeper than {MAX_OPEN}. "
                    "Call fewer helpers within helpers.",
                    form,
                    PolicyLimitError,
                )
            node = self.call(form, env, tail)
            self.open -= 1
            if node.depth > MAX_DEPTH:
                raise self.error(
                    f"More than {MAX_DEPTH} operations depend on one another here. Shorten the chain.",
                    form,
                    PolicyLimitError,
                )
            if len(self.dag.nodes) > MAX_NODES:
                raise self.error(
                    f"The policy has more than {MAX_NODES:,} distinct operations. Shorten it.",
                    form,
                    PolicyLimitError,
                )
            return node
        if kind == "str":
            if tail and self.signature.words:
                self.check_in(
                    form.text, self.signature.words, f"a result of {self.signature.slot}", form
                )
            return self.dag.constant(form.text, "str")
        if kind == "keyword":
            raise self.error(f":{form.text} is a keyword, but a value is expected here.", form)
        raise self.error(
            "A list in brackets is allowed only after in and as the bindings of let. Use parentheses.",
            form,
        )

    def want(self, form: Form, env: Env, type: Type, why: str, *, tail: bool = False) -> Node:
        """Check that an expression has the type `type` and return its node."""
        node = self.check(form, env, tail=tail)
        if node.type is None:
            return self.dag.typed(node, type)
        if node.type != type:
            raise self.error(
                f"{why} {kind_of(type)}, but this expression is {kind_of(node.type)}.", form
            )
        return node

    def symbol(self, form: Form, env: Env) -> Node:
        """Return the node of a name; refuse the name of a set."""
        value = self.lookup(form, env)
        if isinstance(value, SetName):
            raise self.error(f"{form.text} is a set: only {', '.join(SET_TESTS)} take sets.", form)
        return value

    def lookup(self, form: Form, env: Mapping[str, Any]) -> Node | SetName:
        """Return the node or set of a name or literal.

        An unknown name raises an error with the nearest name.
        """
        name = form.text
        value: Node | SetName | None = env.get(name)
        if value is not None:
            return value
        if name in LITERALS:
            return self.dag.constant(LITERALS[name], None if LITERALS[name] is None else "bool")
        if name == "else":
            raise self.error("else can only be the last test of cond or case.", form)
        if name in self.signature.inputs and not self.calls:
            raise self.unlisted(form)
        if self.is_function(name):
            raise self.error(f"{name} is a function: call it as ({name} ...).", form)
        names = [*env, *(() if self.calls else self.signature.inputs)]
        raise self.error(
            f'Nothing is called "{name}" here. {did_you_mean(name, names)}', form, PolicyNameError
        )

    def unlisted(self, form: Form) -> PolicyError:
        """Build the error for a feature missing from the policy's arguments."""
        return self.error(
            f"{form.text} is a feature, but not an argument of this policy: add it to the arguments.",
            form,
            PolicyNameError,
        )

    def is_function(self, name: str) -> bool:
        """Return True if a name denotes a function."""
        return ALIASES.get(name, name) in self.forms or name in self.helpers

    def call(self, form: Form, env: Env, tail: bool) -> Node:
        """Return the node of a call to a built-in form or a helper."""
        if not form.items:
            raise self.error(
                "An empty form has no value. Write a function and its arguments.", form
            )
        head = form.items[0]
        if head.kind != "symbol":
            raise self.error("The first item of a form must be the name of a function.", head)
        name = head.text
        if name in env:
            bound = env[name]
            what = kind_of(bound.type if isinstance(bound, Node) else "set")
            raise self.error(f"{name} is {what} here, not a function.", head)
        handler = self.forms.get(ALIASES.get(name, name))
        if handler is not None:
            return handler(self, form, env, tail)
        helper = self.helpers.get(name)
        if helper is not None:
            return self.inline(helper, form, env)
        raise self.unknown(head, self.forms)

    def unknown(self, head: Form, forms: Iterable[str]) -> PolicyError:
        """Build the error for a call to a name that is not a function."""
        name = head.text
        if name in ABSENT:
            return self.error(ABSENT[name], head, PolicyNameError)
        if name in self.signature.inputs:
            return self.error(f"{name} is a feature, not a function.", head)
        suggestion = did_you_mean(name, [*forms, *self.helpers, *self.macros])
        return self.error(f'There is no function "{name}". {suggestion}', head, PolicyNameError)

    def arity(self, form: Form, minimum: int, maximum: int | None = None) -> tuple[Form, ...]:
        """Return the arguments of a call, or raise an error if their number is wrong."""
        arguments = form.items[1:]
        if len(arguments) < minimum or (maximum is not None and len(arguments) > maximum):
            expected = (
                f"{minimum}"
                if maximum == minimum
                else f"at least {minimum}"
                if maximum is None
                else f"{minimum} to {maximum}"
            )
            plural = "" if expected == "1" or expected.endswith(" 1") else "s"
            raise self.error(
                f"{form.head} takes {expected} argument{plural}, but {len(arguments)} are given.",
                form,
            )
        return arguments

    def check_count(self, helper: Helper, form: Form) -> None:
        """Raise an error if a helper is called with the wrong number of arguments."""
        count = len(helper.arguments)
        if len(form.items) - 1 != count:
            signature = " ".join((helper.name, *helper.arguments))
            raise self.error(
                f"({signature}) takes {count} arguments, but {len(form.items) - 1} are given.", form
            )

    def inline(self, helper: Helper, form: Form, env: Env) -> Node:
        """Return a helper's body with the arguments of a call substituted."""
        self.check_count(helper, form)
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
        """Return the nodes of branches, which must have one type.

        ``null`` takes the type of the others.
        """
        # Branches of a policy over lists are positions, which are represented by the weight of each item.
        if any(node.type == "pick" for node in nodes):
            weights = [self.picked(node, form) for node, form in zip(nodes, forms, strict=True)]
            return [self.dag.of_slate("pick", weight) for weight in weights]
        type = next((n.type for n in nodes if n.type is not None), None)
        for node, form in zip(nodes, forms, strict=True):
            if node.type is not None and node.type != type:
                raise self.error(
                    f"{what} must have one type: the first is {kind_of(type)}, but this one is {kind_of(node.type)}.",
                    form,
                )
        return [self.dag.typed(node, type) for node in nodes]

    def choose(self, test: Node, then: Node, otherwise: Node) -> Node:
        """Build an ``if`` node; for updates, build one for each field.

        A field that a branch omits keeps its old value.
        """
        if then.type == "pick":
            return self.dag.of_slate(
                "pick", self.dag.make("if", test, then.args[0], otherwise.args[0])
            )
        if then.type != "record":
            return self.dag.make("if", test, then, otherwise)
        # A branch may be null instead of an update, which changes no field.
        then, otherwise = (
            node if node.op == "record" else self.dag.record({}) for node in (then, otherwise)
        )
        left, right = (dict(zip(node.value, node.args, strict=True)) for node in (then, otherwise))
        fields = {}
        for name in {**left, **right}:
            values = [side[name] if name in side else self.scalar(name) for side in (left, right)]
            fields[name] = self.dag.make("if", test, *values)
        return self.dag.record(fields)

    def picked(self, node: Node, form: Form) -> Node:
        """Return item weights of a policy over lists: 1 for the picked item, otherwise 0."""
        if node.type == "pick":
            return node.args[0]
        if node.constant and (
            node.value is None or (isinstance(node.value, float) and node.value < 0.0)
        ):
            return self.dag.number(0.0)
        raise self.error(
            f"A policy over lists returns a position: (first items), or -1 for none; this is {kind_of(node.type)}.",
            form,
        )

    # Closed vocabularies.

    def check_in(self, word: str, words: tuple[str, ...], what: str, form: Form) -> None:
        """Raise an error with the nearest word unless `word` is in the vocabulary."""
        if word not in words:
            raise self.error(f'"{word}" is not {what}. {did_you_mean(word, words)}', form)

    def vocabulary(self, node: Node) -> tuple[str, ...]:
        """Return the words that a string node can evaluate to, empty if they are unknown."""
        words: dict[str, None] = {}
        declared = False
        stack = [node]
        while stack:
            node = stack.pop()
            declared_input = self.signature.inputs.get(node.value) if node.op == "input" else None
            if declared_input is not None and declared_input.words:
                words |= dict.fromkeys(declared_input.words)
                declared = True
            elif node.constant:
                if node.value is not None:
                    words[str(node.value)] = None
            elif node.op in ("if", "if-null"):
                stack.extend(node.args[-2:])
            else:
                return ()
        return tuple(words) if declared else ()

    def check_word(self, literal: Node, other: Node, form: Form) -> None:
        """Raise an error that points at `form` if a constant string can never equal `other`."""
        if other.constant or not (literal.constant and isinstance(literal.value, str)):
            return
        words = self.vocabulary(other)
        if words:
            source = other.value if other.op == "input" else "that"
            self.check_in(literal.value, words, f"a value of {source}", form)

"""Policies written for lists, lifted to columns.

Some original policies get a slate as parallel lists (``acts``, ``accs`` ...) and return the index of one item. The
signature says which feature each list holds (``Signature.lists``) and which arguments are the slate's length
(``counts``). Then a list is a feature, an index is a row's position in the slate, ``filter`` is a mask, ``nth`` reads
a column, ``first`` is an aggregate: the least position whose mask is true. The policy becomes a weight for each item:
1 for the chosen index, 0 for the others; an index outside the slate, such as -1, chooses nothing.

Lists are ``range`` over the whole slate, list arguments, and what ``filter`` and ``map`` make of them. Whatever else
needs a loop is ``NotLiftable``, and ``_program`` runs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from memlab.errors import PolicyTypeError
from memlab.language._check import Checker, Env, Handler
from memlab.language._dag import Node
from memlab.language._forms import FORMS
from memlab.language._primitives import AGGREGATES
from memlab.language._reader import Form

__all__ = ["LIFTED", "Lifter", "Listing", "NotLiftable"]

_LOOPS = (
    *("all?", "any?", "append", "argmax", "argmin", "cdr", "choice", "cons", "flip", "fold", "list", "reduce", "rest"),
    *("reverse", "sort", "sum", "take"),
)
"""What goes through a list one item at a time, or draws from one."""


_UNIFORM = ("slate-min", "slate-max", "slate-mean", "slate-count")


class NotLiftable(PolicyTypeError):
    """A policy over lists that is no expression over columns. It never leaves this package: ``_program`` runs it."""


@dataclass(frozen=True, eq=False)
class Listing:
    """A list over the slate: for each row an item, and whether the list holds it."""

    item: Node
    held: Node


class Lifter(Checker):
    """A checker whose names may also stand for lists."""

    applying = False
    """Whether a function is being applied to the items of a list."""

    @property
    def index(self) -> Node:
        """The position of a row in its slate."""
        return self.dag.aggregate("slate-index")

    def argument(self, name: str) -> object | None:
        if name in self.signature.lists:
            return Listing(self.scalar(self.signature.lists[name]), self.dag.constant(True, "bool"))
        if name in self.signature.counts:
            return self.length(Listing(self.index, self.dag.constant(True, "bool")))
        return super().argument(name)

    def argument_names(self) -> list[str]:
        return [*self.signature.lists, *self.signature.counts, *super().argument_names()]

    def result(self, body: Form, env: Env) -> Node:
        chosen = self.want(body, env, "num", f"{self.signature.slot} returns an index:")
        here = self.dag.make("=", self.index, chosen)
        return self.dag.make("if", here, self.dag.number(1.0), self.dag.number(0.0))

    def bound(self, form: Form, env: Env) -> object:
        return self.listing(form, env) or super().bound(form, env)

    def check(self, form: Form, env: Env, *, tail: bool = False) -> Node:
        if form.kind == "list":
            raise self.refusal("a list of its own", form)
        return super().check(form, env, tail=tail)

    def lookup(self, form: Form, env: Env) -> object:
        if form.text not in env and self.is_function(form.text):
            raise self.refusal("a function is a value", form)
        return super().lookup(form, env)

    def listing(self, form: Form, env: Env) -> Listing | None:
        """The list that a form denotes, or None if it denotes a value."""
        if form.kind == "symbol":
            found = env.get(form.text)
            return found if isinstance(found, Listing) else None
        if form.head == "quote" and len(form.items) == 2 and not form.items[1].items:
            return Listing(self.index, self.dag.constant(False, "bool"))
        if form.head == "range":
            return self.range(form, env)
        if form.head in ("filter", "map"):
            function, source = self.arity(form, 2, 2)
            listing = self.a_list(source, env)
            made = self.apply(function, listing.item, env)
            if form.head == "map":
                return Listing(made, listing.held)
            if made.type != "bool":
                raise self.error("filter keeps what its function finds true or false; this gives neither.", function)
            return Listing(listing.item, self.dag.make("and", listing.held, made))
        if form.head == "if":
            branches = [self.listing(branch, env) for branch in form.items[2:]]
            if any(branches):
                raise self.refusal("a choice between lists", form)
        return None

    def a_list(self, form: Form, env: Env) -> Listing:
        listing = self.listing(form, env)
        if listing is None:
            if form.head in _LOOPS:
                raise self.refusal(f"{form.head} goes through a list", form)
            raise self.error("A list is expected here: a list argument, range, filter or map.", form)
        return listing

    def refusal(self, what: str, form: Form) -> NotLiftable:
        """The error of a policy that needs a loop."""
        error = self.text.error(NotLiftable, f"This is no expression over columns: {what}.", form)
        assert isinstance(error, NotLiftable)
        return error

    def apply(self, function: Form, item: Node, env: Env) -> Node:
        if function.head not in ("fn", "lambda", "λ"):
            raise self.refusal("the function is not written out as (lambda (i) ...)", function)
        if len(function.items) != 3 or len(function.items[1].items) != 1 or function.items[1].items[0].kind != "symbol":
            raise self.refusal("a function with other than one argument", function)
        if self.applying:
            # Both arguments would be the same column: two items can only be compared by a loop.
            raise self.refusal("a function goes through a list for each item of another", function)
        self.applying = True
        made = self.check(function.items[2], {**env, function.items[1].items[0].text: item})
        self.applying = False
        return made

    def range(self, form: Form, env: Env) -> Listing:
        bounds = [self.want(a, env, "num", "range takes") for a in self.arity(form, 1, 2)]
        size = self.length(Listing(self.index, self.dag.constant(True, "bool")))
        if bounds[-1] is not size:
            raise self.refusal("range ends elsewhere than at the length of the slate", form)
        if len(bounds) == 1:
            return Listing(self.index, self.dag.constant(True, "bool"))
        start = bounds[0]
        if not start.constant or not isinstance(start.value, float) or start.value < 0 or start.value % 1:
            raise self.refusal("range begins elsewhere than at a constant whole number", form)
        return Listing(self.index, self.dag.make("<=", start, self.index))

    def where(self, listing: Listing, value: Node) -> Node:
        """A value where the list holds the row, else null, which aggregates skip."""
        return self.dag.make("if", listing.held, value, self.dag.constant(None, value.type))

    def length(self, listing: Listing) -> Node:
        return self.dag.aggregate("slate-count", self.where(listing, self.index))

    def at(self, listing: Listing, position: Node, form: Form) -> Node:
        """The item of the row at ``position``, null where there is no such row."""
        if position is self.index:
            return listing.item
        if listing.item is not self.index or not self.uniform(position):
            raise self.refusal("nth reads at a place that differs from item to item", form)
        zero, size = self.dag.number(0.0), self.length(Listing(self.index, self.dag.constant(True, "bool")))
        inside = self.dag.make("and", self.dag.make("<=", zero, position), self.dag.make("<", position, size))
        whole = self.dag.make("=", position, self.dag.make("floor", position))
        exists = self.dag.make("and", inside, whole)
        return self.dag.make("if", exists, position, self.dag.constant(None, "num"))

    def uniform(self, node: Node) -> bool:
        """Whether a value is the same for every row of the slate."""
        per_row = set(self.signature.lists.values())
        stack, seen = [node], set()
        while stack:
            node = stack.pop()
            if node.index in seen or node.op in _UNIFORM:
                continue
            seen.add(node.index)
            if node.op in AGGREGATES or (node.op == "input" and node.value in per_row):
                return False
            stack.extend(node.args)
        return True

    def first(self, form: Form, env: Env) -> Node:
        listing = self.a_list(self.arity(form, 1, 1)[0], env)
        if listing.item is not self.index:
            # An aggregate would skip NaN, and an item may be one.
            raise self.refusal("first reads the value of one item for all", form)
        return self.dag.aggregate("slate-min", self.where(listing, self.index))

    def nth(self, form: Form, env: Env) -> Node:
        source, place = self.arity(form, 2, 2)
        listing = self.a_list(source, env)
        if not (listing.held.constant and listing.held.value is True):
            raise self.refusal("nth of a filtered list", form)
        return self.at(listing, self.want(place, env, "num", "nth takes as its second argument"), form)

    def count(self, form: Form, env: Env) -> Node:
        return self.length(self.a_list(self.arity(form, 1, 1)[0], env))

    def is_empty(self, form: Form, env: Env) -> Node:
        return self.dag.make("=", self.count(form, env), self.dag.number(0.0))

    def lone_list(self, form: Form, env: Env) -> NoReturn:
        raise self.error("A list stands where a value is expected: length, empty?, first and nth give values.", form)

    def function(self, form: Form, env: Env) -> NoReturn:
        raise self.refusal("a function is a value", form)

    def loops(self, form: Form, env: Env) -> NoReturn:
        raise self.refusal(f"{form.head} goes through a list", form)


def _method(name: str) -> Handler:
    return lambda lifter, form, env, tail: getattr(lifter, name)(form, env)


LIFTED: dict[str, Handler] = {
    **FORMS,
    **{name: _method("first") for name in ("first", "car")},
    **{name: _method("count") for name in ("length", "len", "count")},
    **{name: _method("is_empty") for name in ("empty?",)},
    "nth": _method("nth"),
    **{name: _method("lone_list") for name in ("range", "filter", "map")},
    **{name: _method("function") for name in ("fn", "lambda")},
    **{name: _method("loops") for name in _LOOPS},
}

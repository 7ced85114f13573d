"""A program as an ordered tree in which layout and spelling do not count, for laying two side by side.

A name that let binds stands for its binding. Bindings of the two sides are paired by name and place first, then by name
and value, by value, by name, and by order, so that renaming alone is no difference. What comes and goes together, a
name and its value, a test and its result, is one tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from memlab.language._check import ALIASES
from memlab.language._dag import constant_key
from memlab.language._reader import Form

__all__ = ["Keys", "Program", "Side", "Tree", "pair_binders"]

_SAME = {"True": "true", "False": "false", "None": "null", "nil": "null"}


class Program(NamedTuple):
    """The body of a policy or helper, its source, and the names that are arguments."""

    body: Form
    source: str
    arguments: tuple[str, ...] = ()


@dataclass(eq=False)
class Binder:
    name: str
    path: tuple[int, ...]
    value: int
    """The interned value, with the names in it replaced by theirs."""
    id: int = -1


class Tree:
    __slots__ = ("binder", "form", "items", "key", "label", "parent", "path", "size")

    def __init__(
        self, form: Form, path: tuple[int, ...], label: tuple[object, ...], items: list[Tree], binder: Binder | None
    ) -> None:
        self.form, self.path, self.label, self.items, self.binder = form, path, label, items, binder
        self.size: int = sum(item.size for item in items) or 2
        self.parent: Tree | None = None
        self.key = -1
        for item in items:
            item.parent = self

    @property
    def head(self) -> tuple[object, ...]:
        return self.items[0].label if self.items else ()


class Keys:
    """Numbers for labels and for trees, the same for equal ones."""

    def __init__(self) -> None:
        self.known: dict[tuple[object, ...], int] = {}

    def of(self, *parts: object) -> int:
        return self.known.setdefault(parts, len(self.known))


class Side:
    """One program as a tree, with its bindings in the order of the text."""

    def __init__(self, program: Program, keys: Keys) -> None:
        self.source, self.keys = program.source, keys
        self.binders: list[Binder] = []
        self.values: dict[int, int] = {}
        scope = {name: self._bind(name, (i,), keys.of("argument", i)) for i, name in enumerate(program.arguments)}
        self.root = self._tree(program.body, (), scope, False)

    def text(self, tree: Tree) -> str:
        return self.source[tree.form.start : tree.form.stop]

    def _bind(self, name: str, path: tuple[int, ...], value: int) -> Binder:
        binder = Binder(name, path, value)
        self.binders.append(binder)
        return binder

    def _value(self, tree: Tree) -> int:
        """The tree's number with every bound name standing for its value."""
        if id(tree) not in self.values:
            own = tree.label if tree.binder is None else ("bound", tree.binder.value)
            self.values[id(tree)] = self.keys.of("value", own, *[self._value(item) for item in tree.items])
        return self.values[id(tree)]

    def _tree(self, form: Form, path: tuple[int, ...], scope: dict[str, Binder], head: bool) -> Tree:
        kind = form.kind
        if kind == "symbol":
            binder = scope.get(form.text)
            name = ALIASES.get(form.text, form.text) if head else _SAME.get(form.text, form.text)
            return Tree(form, path, ("symbol", name), [], binder)
        if kind in ("int", "float"):
            return Tree(form, path, ("number", constant_key(form.number)), [], None)
        if kind in ("str", "keyword"):
            return Tree(form, path, (kind, form.text), [], None)
        if form.head == "quote" and len(form.items) == 2:
            return self._quoted(form.items[1], (*path, 1))
        if form.head in ("let", "let*") and len(form.items) > 1:
            return self._let(form, path, scope)
        if form.head in ("cond", "case") and len(form.items) > 2:
            return self._choice(form, path, scope)
        if form.head in ("fn", "lambda", "λ") and len(form.items) > 1:
            arguments = form.items[1].items
            scope = {
                **scope,
                **{a.text: self._bind(a.text, (*path, 1, i), self.keys.of("item", i)) for i, a in enumerate(arguments)},
            }
        items = [self._tree(item, (*path, i), scope, kind == "call" and i == 0) for i, item in enumerate(form.items)]
        return Tree(form, path, (kind,), items, None)

    def _quoted(self, form: Form, path: tuple[int, ...]) -> Tree:
        if form.kind == "symbol":
            return Tree(form, path, ("str", form.text), [], None)
        if form.items:
            items = [self._quoted(item, (*path, i)) for i, item in enumerate(form.items)]
            return Tree(form, path, ("list",), items, None)
        return self._tree(form, path, {}, False)

    def _let(self, form: Form, path: tuple[int, ...], scope: dict[str, Binder]) -> Tree:
        scope = dict(scope)
        pairs = []
        for (name, at), (value, there) in _bindings(form, path):
            tree = self._tree(value, there, scope, False)
            scope[name.text] = self._bind(name.text, at, self._value(tree))
            pairs.append(_pair_of(Tree(name, at, ("symbol", name.text), [], scope[name.text]), tree))
        bound = Tree(form.items[1], (*path, 1), ("bindings",), pairs, None)
        bodies = [self._tree(item, (*path, i), scope, False) for i, item in enumerate(form.items) if i > 1]
        head = Tree(form.items[0], (*path, 0), ("symbol", "let"), [], None)
        return Tree(form, path, ("call",), [head, bound, *bodies], None)

    def _choice(self, form: Form, path: tuple[int, ...], scope: dict[str, Binder]) -> Tree:
        """``cond`` or ``case`` with its tests and values in pairs, however they are bracketed."""
        first = 1 if form.head == "cond" else 2
        trees = [self._tree(item, (*path, i), scope, i == 0) for i, item in enumerate(form.items)]
        rest = trees[first:]
        if all(len(tree.items) == 2 for tree in rest):
            pairs = [_pair_of(*tree.items) for tree in rest]
        else:
            pairs = [_pair_of(a, b) for a, b in zip(rest[::2], rest[1::2], strict=True)]
        return Tree(form, path, ("call",), [*trees[:first], *pairs], None)

    def finish(self) -> None:
        """Keys for every tree, once the bindings are paired."""
        for tree in reversed(list(_below(self.root))):
            own = tree.label if tree.binder is None else ("bound", tree.binder.id)
            tree.key = self.keys.of("tree", own, *[item.key for item in tree.items])


def _bindings(
    form: Form, path: tuple[int, ...]
) -> Iterator[tuple[tuple[Form, tuple[int, ...]], tuple[Form, tuple[int, ...]]]]:
    """Names and values of a let with their paths, from pairs or from a flat list."""
    items = form.items[1].items
    if items and items[0].kind in ("list", "call"):
        for i, pair in enumerate(items):
            name, value = pair.items
            yield (name, (*path, 1, i, 0)), (value, (*path, 1, i, 1))
        return
    for i in range(0, len(items), 2):
        yield (items[i], (*path, 1, i)), (items[i + 1], (*path, 1, i + 1))


def _pair_of(left: Tree, right: Tree) -> Tree:
    """Two trees that come and go together, as one."""
    form = Form("list", start=left.form.start, stop=right.form.stop)
    return Tree(form, left.path, ("pair",), [left, right], None)


def _below(root: Tree) -> Iterator[Tree]:
    stack = [root]
    while stack:
        tree = stack.pop()
        yield tree
        stack.extend(tree.items)


def pair_binders(before: list[Binder], after: list[Binder]) -> None:
    """Gives the bindings of both sides numbers, equal where they are taken to be the same binding."""
    left, right = list(before), list(after)
    count = 0
    for same in (
        lambda a: (a.name, a.path),
        lambda a: (a.name, a.value),
        lambda a: (a.value,),
        lambda a: (a.name,),
        lambda a: (),
    ):
        waiting: dict[tuple[object, ...], list[Binder]] = {}
        for binder in right:
            waiting.setdefault(same(binder), []).append(binder)
        for binder in left:
            options = waiting.get(same(binder))
            if options:
                binder.id = options.pop(0).id = count
                count += 1
        left = [b for b in left if b.id < 0]
        right = [b for b in right if b.id < 0]
    for binder in (*left, *right):
        binder.id, count = count, count + 1

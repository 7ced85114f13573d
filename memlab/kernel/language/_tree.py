"""A computation as a tree with the value at each node: what was chosen, what was not, and what each part gave.

The graph shares nodes, and a tree that repeats them may be exponentially larger. So a shared node is opened once, at
its first place on a live branch if it has one, and every other place shows its value and that it is opened elsewhere.
A tree therefore never has more nodes than the graph has arguments.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import polars as pl

from memlab.kernel.base.arguments import checked
from memlab.kernel.base.display import Displayed, Markup
from memlab.kernel.base.printable import printable
from memlab.kernel.language._dag import Node, Value
from memlab.kernel.language._row import Evaluation
from memlab.kernel.language._source import chain, clauses, literal, shown, source, written_as

__all__ = ["Tree", "TreeNode"]

_DEPTH, _LINES = 6, 60
_WIDTH = 96
_MOST = 500
"""Nodes of one HTML page, which a notebook keeps in its file: at most 400 kB."""
_OPEN = 3
"""Levels that are open in HTML at first."""


@dataclass(frozen=True)
class TreeNode:
    """One operation or input and its value.

    ``role`` is what it is to the node above: a ``test``, the value of ``then`` or ``else``, or an argument
    (empty). ``live`` is false where a test chose another branch. ``complete`` is false when ``text`` is shortened;
    else it is source that gives the same value. ``elsewhere`` marks a shared node that is opened at another place.
    """

    text: str
    value: Value
    live: bool
    role: str
    complete: bool
    elsewhere: bool
    children: tuple[TreeNode, ...]


class Tree(Displayed):
    """``root`` and everything below it; ``repr`` is for a terminal, and ``text`` takes its bounds."""

    def __init__(self, item: Evaluation) -> None:
        self._item = item

    @cached_property
    def root(self) -> TreeNode:
        """The outermost node: the value itself."""
        return _Builder(self._item).build()

    def walk(self) -> Iterator[tuple[int, TreeNode]]:
        """Depth and node, each node before those below it."""
        return _walk(self.root)

    @property
    def frame(self) -> pl.DataFrame:
        """One row a node.

        ``depth``, ``role``, ``source``, ``value`` (false and true as 0 and 1, null for strings), ``shown`` (the value
        as text) and ``live``.
        """
        rows = [
            (depth, node.role, node.text, _as_number(node.value), literal(node.value), node.live)
            for depth, node in self.walk()
        ]
        texts = dict.fromkeys(("role", "source"), pl.String)
        schema = {"depth": pl.Int64, **texts, "value": pl.Float64, "shown": pl.String, "live": pl.Boolean}
        return pl.DataFrame(rows, schema=schema, orient="row")

    @checked
    def text(self, *, depth: int = _DEPTH, lines: int = _LINES, dead: bool = False) -> str:
        """At most ``depth`` levels and ``lines`` lines; branches not taken are one line each unless ``dead``."""
        rows = [("value", "source")]
        left = 0
        for place in _places(self.root, depth, dead):
            if len(rows) > lines:
                left += 1
                continue
            rows.append((shown(place.node.value) if place.node is not None else "", place.line))
        width = max(len(value) for value, _ in rows)
        rows_of_text = [f"{value:>{width}}  {line}" for value, line in rows]
        return "\n".join([*rows_of_text, *([f"{'':>{width}}  ... {left} more"] if left else [])])

    def __repr__(self) -> str:
        return printable(self.text())

    def _display(self) -> object:
        pieces: list[str] = []
        _html(self.root, 0, pieces, [_MOST])
        return Markup(f'<div style="font-family:monospace;line-height:1.6;max-width:64em">{"".join(pieces)}</div>')


class _Place(NamedTuple):
    """A line of the text; without a node it counts what is left out."""

    line: str
    node: TreeNode | None


def _places(root: TreeNode, depth: int, dead: bool) -> Iterator[_Place]:
    stack: list[tuple[TreeNode, str, str, int]] = [(root, "", "", 0)]
    while stack:
        node, lead, below, level = stack.pop()
        line = f"{lead}{_label(node)}"
        yield _Place(line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}...", node)
        opens = node.live or dead
        if not node.children or not opens:
            continue
        if level == depth:
            yield _Place(f"{below}└ ... {sum(1 for _ in _walk(node)) - 1} below", None)
            continue
        last = len(node.children) - 1
        stack.extend(
            (
                child,
                f"{below}{'└' if place == last else '├'} ",
                f"{below}{' ' if place == last else '│'} ",
                level + 1,
            )
            for place, child in reversed(list(enumerate(node.children)))
        )


def _label(node: TreeNode) -> str:
    role = f"{node.role} " if node.role else ""
    note = "" if node.live else "  (not taken)"
    if node.elsewhere and node.live:
        note = "  (opened elsewhere)"
    return f"{role}{node.text}{note}"


def _walk(root: TreeNode) -> Iterator[tuple[int, TreeNode]]:
    stack = [(0, root)]
    while stack:
        depth, node = stack.pop()
        yield depth, node
        stack.extend((depth + 1, child) for child in reversed(node.children))


def _as_number(value: Value) -> float | None:
    return None if value is None or isinstance(value, str) else float(value)


def _html(node: TreeNode, level: int, pieces: list[str], left: list[int]) -> None:
    if left[0] <= 0:
        if left[0] == 0:
            pieces.append("<div>… more, see .frame</div>")
        left[0] = -1
        return
    left[0] -= 1
    role = f'<span style="opacity:.6">{html.escape(node.role)}</span> ' if node.role else ""
    note = "not taken" if not node.live else "opened elsewhere" if node.elsewhere else ""
    if note:
        note = f' <span style="opacity:.6;font-style:italic">{note}</span>'
    width = "100% - 1.5em" if node.children else "100% - .4em"  # the triangle of an opening block is 1.1 em wide
    text = (
        f'<span style="display:inline-flex;width:calc({width});justify-content:space-between;gap:1.5em">'
        f'<span style="white-space:pre-wrap;text-align:left;overflow-wrap:anywhere">'
        f"{role}{html.escape(node.text)}{note}</span>"
        f'<span style="font-variant-numeric:tabular-nums;white-space:nowrap">'
        f"{html.escape(shown(node.value))}</span></span>"
    )
    dim = "" if node.live else ";opacity:.5"
    if not node.children:
        pieces.append(f'<div style="padding-left:1.1em{dim}">{text}</div>')
        return
    wide = " open" if node.live and level < _OPEN else ""
    pieces.append(f'<details{wide} style="text-align:left{dim}"><summary>{text}</summary>')
    pieces.append('<div style="margin-left:.35em;padding-left:.75em;border-left:1px solid rgba(128,128,128,.4)">')
    for child in node.children:
        _html(child, level + 1, pieces, left)
    pieces.append("</div></details>")


class _Builder:
    def __init__(self, item: Evaluation) -> None:
        self.root, self.value = item.root, item.value
        self.uses = Counter(a.index for node in item.program.nodes for a in node.args)
        self.live: set[int] = set()
        self.opened: set[int] = set()

    def build(self) -> TreeNode:
        stack = [self.root]
        while stack:
            node = stack.pop()
            if node.index not in self.live:
                self.live.add(node.index)
                stack.extend(child for child, _, taken in self.children(node) if taken)
        return self.open(self.root, "", True)

    def open(self, node: Node, role: str, live: bool) -> TreeNode:
        text, complete = source(node)
        inside = self.children(node)
        # what lives elsewhere is opened there
        again = bool(inside) and (node.index in self.opened or (not live and node.index in self.live))
        children: tuple[TreeNode, ...] = ()
        if inside and not again:
            self.opened.add(node.index)
            children = tuple(self.open(child, part, live and taken) for child, part, taken in inside)
        return TreeNode(text, self.value(node), live, role, complete, again, children)

    def children(self, node: Node) -> list[tuple[Node, str, bool]]:
        """The nodes below with their roles, and whether they are on the way to the value. Constants are left out."""
        if node.op == "if":
            result: list[tuple[Node, str, bool]] = []
            pairs, last = clauses(node, self.once)
            chosen = False
            for test, then in pairs:
                taken = not chosen and self.value(test) is True
                result += [(test, "test", not chosen), (then, "then", taken)]
                chosen = chosen or taken
            return [*result, (last, "else", not chosen)]
        if node.op == "if-null":
            here = self.value(node.args[0]) is not None
            return [(node.args[0], "", True), (node.args[1], "else", not here)]
        if node.op in ("+", "*", "and", "or", "min", "max"):
            return [(part, "", True) for part in chain(node, self.once) if not part.constant]
        return [(part, "", True) for part in written_as(node)[1] if not part.constant]

    def once(self, node: Node) -> bool:
        """Whether a node is used at one place."""
        return self.uses[node.index] == 1

"""A computation as text of the dialect, and as a tree with the value at each node.

The graph shares nodes, and a tree that repeats them may be exponentially larger. So a shared node is opened once, at
its first place on a live branch if it has one, and every other place shows its value and that it is opened elsewhere.
A tree therefore never has more nodes than the graph has arguments.
"""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import polars as pl

from memlab.kernel.base.arguments import checked
from memlab.kernel.base.display import Displayed, Markup
from memlab.kernel.base.printable import printable
from memlab.kernel.language.columns import Evaluation
from memlab.kernel.language.graph import Node, Value
from memlab.kernel.language.writer import literal, number

# Nodes of the graph as text of the dialect: what reads back as the same node, as long as it fits.
#
# Shared nodes make the full text of a small graph exponential, so nothing is written before it is known to fit: pieces
# come lazily, and the writer stops at the limit and tries again with the deepest places left out.


LIMIT = 400
"""Characters of one node's text."""
_DEPTHS = (12, 8, 6, 5, 4, 3, 2, 1)
_WORD, _ARGUMENTS = 24, 8
"""Where a text is shortened, longer strings and further arguments go too."""
_SPELLING = {"neg": "-", "same": "=", "iff": "="}
_CHAINS = ("+", "*", "and", "or", "min", "max")


@lru_cache(maxsize=8192)
def source(node: Node, *, limit: int = LIMIT) -> tuple[str, bool]:
    """A node as source, and whether that is all of it: what does not fit is ``...``, deepest places first."""
    whole = _written(_pieces(node, None), limit)
    if whole is not None:
        return whole, True
    for depth in _DEPTHS:
        text = _written(_pieces(node, depth), limit)
        if text is not None:
            return text, False
    return (f"({_SPELLING.get(node.op, node.op)} ...)" if node.args else '"..."'), False


def render(node: Node) -> str:
    """A node as source of the dialect, shortened where it is long."""
    return source(node)[0]


def scaled(node: Node, scale: float) -> str:
    """``scale`` times a node, as it was most likely written."""
    if scale == 1.0:
        return render(node)
    if scale == -1.0:
        return f"(- {render(node)})"
    if node.constant:
        return number(scale * float(node.value))
    before, after = _around(scale)
    return f"{before}{render(node)}{after}"


def shown(value: Value) -> str:
    """A value for people: six digits of a number."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = literal(value)
    return text if len(text) <= 24 else text[:22] + '…"'


def chain(node: Node, continues: Callable[[Node], bool] = lambda node: True) -> list[Node]:
    """The arguments of a chain that leans left, as it was most likely written; ``continues`` says how far it goes."""
    op, last = node.op, [node.args[1]]
    while node.args[0].op == op and continues(node.args[0]):
        node = node.args[0]
        last.append(node.args[1])
    return [node.args[0], *reversed(last)]


def clauses(
    node: Node, continues: Callable[[Node], bool] = lambda node: True
) -> tuple[list[tuple[Node, Node]], Node]:
    """Nested ``if`` as the tests and values of a ``cond``, and its last value; ``continues`` says how far it goes."""
    pairs = [(node.args[0], node.args[1])]
    while node.args[2].op == "if" and continues(node.args[2]):
        node = node.args[2]
        pairs.append((node.args[0], node.args[1]))
    return pairs, node.args[2]


def written_as(node: Node) -> tuple[str, tuple[Node, ...]]:
    """The head and the arguments under which a node is written: ``>`` for a ``<`` with its constant in front."""
    op, args = node.op, node.args
    if op == "not" and args[0].op in ("=", "same", "iff"):
        return "!=", args[0].args
    if op in ("<", "<=") and args[0].constant:
        return (">" if op == "<" else ">="), (args[1], args[0])
    if op in _CHAINS:
        return op, tuple(chain(node))
    return _SPELLING.get(op, op), args


def _around(factor: float) -> tuple[str, str]:
    """What is written before and after the other factor: a product, or the division that it most likely was."""
    inverse = 1.0 / factor if factor and math.isfinite(factor) else math.inf
    if (
        math.isfinite(inverse)
        and len(number(factor)) > 9 > len(number(inverse))
        and 1.0 / inverse == factor
    ):
        return "(/ ", f" {number(inverse)})"
    return f"(* {number(factor)} ", ")"


def _written(pieces: Iterator[str], limit: int) -> str | None:
    """The pieces as one text, or None once they are longer than ``limit``."""
    text: list[str] = []
    for piece in pieces:
        limit -= len(piece)
        if limit < 0:
            return None
        text.append(piece)
    return "".join(text)


def _pieces(node: Node, depth: int | None) -> Iterator[str]:
    op, args, value = node.op, node.args, node.value
    if op == "input":
        yield str(value)
        return
    if op == "const":
        short = depth is None or not isinstance(value, str) or len(value) <= _WORD
        yield literal(value) if short else '"..."'
        return
    if depth == 0:
        yield "..."
        return
    below = None if depth is None else depth - 1
    if op == "*" and (args[0].constant or args[1].constant):
        factor, other = (args[0], args[1]) if args[0].constant else (args[1], args[0])
        before, after = _around(factor.value)
        yield before
        yield from _pieces(other, below)
        yield after
        return
    if op == "if" and args[2].op == "if":
        pairs, last = clauses(node)
        most = len(pairs) if depth is None else _ARGUMENTS // 2
        yield "(cond"
        for part in (part for pair in pairs[:most] for part in pair):
            yield " "
            yield from _pieces(part, below)
        yield " else " if len(pairs) <= most else " ... else "
        yield from _pieces(last, below)
        yield ")"
        return
    head, parts = written_as(node)
    if op == "table":
        head = "case"
    elif op == "record":
        head = "update"
    yield f"({head}"
    most = len(parts) if depth is None else _ARGUMENTS
    for place, part in enumerate(parts[:most]):
        yield f" :{value[place]} " if op == "record" else " "
        yield from _pieces(part, below)
    if len(parts) > most:
        yield " ..."
    if op == "in":
        yield " ["
        for place, word in enumerate(value):
            yield literal(word) if not place else f" {literal(word)}"
        yield "]"
    elif op == "table":
        words, numbers, default = value
        for word, found in zip(words, numbers, strict=True):
            yield f" {literal(word)} {number(found)}"
        yield f" else {number(default)}"
    yield ")"


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
        schema = {
            "depth": pl.Int64,
            **texts,
            "value": pl.Float64,
            "shown": pl.String,
            "live": pl.Boolean,
        }
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
        return Markup(
            f'<div style="font-family:monospace;line-height:1.6;max-width:64em">{"".join(pieces)}</div>'
        )


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
    # the triangle of an opening block is 1.1 em wide
    width = "100% - 1.5em" if node.children else "100% - .4em"
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
    pieces.append(
        '<div style="margin-left:.35em;padding-left:.75em;border-left:1px solid rgba(128,128,128,.4)">'
    )
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
        again = bool(inside) and (
            node.index in self.opened or (not live and node.index in self.live)
        )
        children: tuple[TreeNode, ...] = ()
        if inside and not again:
            self.opened.add(node.index)
            children = tuple(
                self.open(child, part, live and taken) for child, part, taken in inside
            )
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

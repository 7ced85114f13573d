"""The computation of a policy as source text, and as a tree with the value of each node.

The graph shares nodes, so a tree that repeats them may be exponentially larger. A shared node is therefore expanded
once, if possible at its first position on a branch that was taken. At all other positions, the tree shows only its
value. So a tree never has more nodes than the graph has arguments.
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

# A node is written as source text. Unless the text is shortened, reading it gives the same node.
#
# With shared nodes, the full text of a small graph may be exponentially long. So the pieces are generated lazily. At
# the limit, the text is generated again without its deepest parts.


LIMIT = 400
"""The maximum number of characters of one node's text."""
# The maximum depths that are tried for a long text, greatest first.
_DEPTHS = (12, 8, 6, 5, 4, 3, 2, 1)
_WORD, _ARGUMENTS = 24, 8
"""The maximum length of a string, and the maximum number of arguments, in a shortened text."""
# Operations that have another name in source, and operations of which a chain is written as one form.
_SPELLING = {"neg": "-", "same": "=", "iff": "="}
_CHAINS = ("+", "*", "and", "or", "min", "max")


# Texts are cached, because the explanations of one recall contain the same terms for each hit.
@lru_cache(maxsize=8192)
def source(node: Node, *, limit: int = LIMIT) -> tuple[str, bool]:
    """Return the source text of a node, and whether the text is complete.

    The deepest parts of a long text are replaced by ``...``.
    """
    whole = _join_pieces(_pieces(node, None), limit)
    if whole is not None:
        return whole, True
    for depth in _DEPTHS:
        text = _join_pieces(_pieces(node, depth), limit)
        if text is not None:
            return text, False
    return (f"({_SPELLING.get(node.op, node.op)} ...)" if node.args else '"..."'), False


def render(node: Node) -> str:
    """Return the source text of a node; a long text is shortened."""
    return source(node)[0]


def scaled(node: Node, scale: float, source: str = "") -> str:
    """Return the shortest source text of ``scale`` times a node.

    ``source`` replaces the text of the node.
    """
    written = source or render(node)
    if scale == 1.0:
        return written
    if scale == -1.0:
        return f"(- {written})"
    if node.constant:
        return number(scale * float(node.value))
    before, after = _wrap_factor(scale)
    return f"{before}{written}{after}"


def format_value(value: Value) -> str:
    """Return a value as text, with six digits for numbers."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = literal(value)
    return text if len(text) <= 24 else text[:22] + '…"'


def chain(node: Node, continues: Callable[[Node], bool] = lambda node: True) -> list[Node]:
    """Return the operands of nested nodes of one operation, as one list.

    ``continues`` returns whether a nested node belongs to the chain.
    """
    op, last = node.op, [node.args[1]]
    while node.args[0].op == op and continues(node.args[0]):
        node = node.args[0]
        last.append(node.args[1])
    return [node.args[0], *reversed(last)]


def clauses(
    node: Node, continues: Callable[[Node], bool] = lambda node: True
) -> tuple[list[tuple[Node, Node]], Node]:
    """Return the tests and values of nested ``if`` nodes, and the value if all tests fail.

    ``continues`` returns whether a nested ``if`` belongs to the cascade.
    """
    pairs = [(node.args[0], node.args[1])]
    while node.args[2].op == "if" and continues(node.args[2]):
        node = node.args[2]
        pairs.append((node.args[0], node.args[1]))
    return pairs, node.args[2]


def written_as(node: Node) -> tuple[str, tuple[Node, ...]]:
    """Return a node's operator and arguments as they appear in source text.

    For example, ``<`` with a constant as its first argument is written as ``>``.
    """
    op, args = node.op, node.args
    if op == "not" and args[0].op in ("=", "same", "iff"):
        return "!=", args[0].args
    if op in ("<", "<=") and args[0].constant:
        return (">" if op == "<" else ">="), (args[1], args[0])
    if op in _CHAINS:
        return op, tuple(chain(node))
    return _SPELLING.get(op, op), args


def _wrap_factor(factor: float) -> tuple[str, str]:
    """Return the source text that surrounds a node when ``factor`` multiplies the node."""
    inverse = 1.0 / factor if factor and math.isfinite(factor) else math.inf
    if (
        math.isfinite(inverse)
        and len(number(factor)) > 9 > len(number(inverse))
        and 1.0 / inverse == factor
    ):
        return "(/ ", f" {number(inverse)})"
    return f"(* {number(factor)} ", ")"


def _join_pieces(pieces: Iterator[str], limit: int) -> str | None:
    """Return the pieces as one text, or None if the text is longer than ``limit``."""
    text: list[str] = []
    for piece in pieces:
        limit -= len(piece)
        if limit < 0:
            return None
        text.append(piece)
    return "".join(text)


def _pieces(node: Node, depth: int | None) -> Iterator[str]:
    """Yield a node's source text in pieces; with ``depth``, deeper calls, long texts and further arguments become "..."."""
    # Scaled products and cascades of if are written first, because they have their own forms.
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
        before, after = _wrap_factor(factor.value)
        yield before
        yield from _pieces(other, below)
        yield after
        return
    if op == "if" and args[2].op == "if":
        pairs, last = clauses(node)
        count = len(pairs) if depth is None else _ARGUMENTS // 2
        yield "(cond"
        for part in (part for pair in pairs[:count] for part in pair):
            yield " "
            yield from _pieces(part, below)
        yield " else " if len(pairs) <= count else " ... else "
        yield from _pieces(last, below)
        yield ")"
        return
    head, parts = written_as(node)
    if op == "table":
        head = "case"
    elif op == "record":
        head = "update"
    yield f"({head}"
    count = len(parts) if depth is None else _ARGUMENTS
    for index, part in enumerate(parts[:count]):
        yield f" :{value[index]} " if op == "record" else " "
        yield from _pieces(part, below)
    if len(parts) > count:
        yield " ..."
    if op == "in":
        yield " ["
        for index, word in enumerate(value):
            yield literal(word) if not index else f" {literal(word)}"
        yield "]"
    elif op == "table":
        words, numbers, default = value
        for word, result in zip(words, numbers, strict=True):
            yield f" {literal(word)} {number(result)}"
        yield f" else {number(default)}"
    yield ")"


# The default depth and number of lines of a text, and the width of a line, which fit on a screen.
_DEPTH, _LINES, _WIDTH = 6, 60, 96
_MAX_NODES = 500
"""The maximum number of nodes in HTML. They take at most 400 kB in the file of a notebook."""
_OPEN = 3
"""The number of levels that are initially open in HTML."""


@dataclass(frozen=True)
class TreeNode:
    """One operation or input of a policy, with its value and its children.

    Attributes
    ----------
    text
        The source of the node.
    value
        The value of the node.
    live
        False if the node is on a branch that was not taken.
    role
        The role in the parent node: "test", "then", "else" or "" for an argument.
    complete
        False if ``text`` is shortened. A complete text is source that gives the same value.
    elsewhere
        True for a shared node whose children are at another position of the tree.
    children
        The nodes below.

    Examples
    --------
    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> policy = compile_policy("(fn [x] (+ 1 (* 2 x)))", Signature("score", [Input("x")]))
    >>> [node.text for node in policy.explain({"x": 3}).tree.root.children]
    ['(* 2 x)']
    """

    text: str
    value: Value
    live: bool
    role: str
    complete: bool
    elsewhere: bool
    children: tuple[TreeNode, ...]


class Tree(Displayed):
    """A computation as a tree with the value of each node.

    ``repr`` fits on the screen of a terminal. ``text`` takes the maximum depth and number of lines.

    Examples
    --------
    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> policy = compile_policy("(fn [x] (* 2 x))", Signature("score", [Input("x")]))
    >>> policy.explain({"x": 3}).tree
    value  source
        6  (* 2 x)
        3  └ x
    """

    def __init__(self, item: Evaluation) -> None:
        self._item = item

    @cached_property
    def root(self) -> TreeNode:
        """The outermost node, whose value is the value of the policy."""
        return _Builder(self._item).build()

    def walk(self) -> Iterator[tuple[int, TreeNode]]:
        """Yield each node with its depth, each parent before its children.

        Yields
        ------
        tuple of int and TreeNode
            The depth, 0 for the root, and the node.
        """
        return _walk(self.root)

    @property
    def frame(self) -> pl.DataFrame:
        """A frame with one row per node of the tree.

        The columns are ``depth``, ``role``, ``source``, ``value`` (false and true as 0 and 1, null for strings),
        ``shown`` (the value as text) and ``live``.
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
        """Return the tree as text, with one line per node.

        Parameters
        ----------
        depth
            The maximum number of levels.
        lines
            The maximum number of lines.
        dead
            Whether to expand branches that were not taken. By default each is one line.

        Returns
        -------
        str
            One line for each node, with its value and its source.
        """
        rows = [("value", "source")]
        left = 0
        for line in _lines(self.root, depth, dead):
            if len(rows) > lines:
                left += 1
                continue
            rows.append((format_value(line.node.value) if line.node is not None else "", line.text))
        width = max(len(value) for value, _ in rows)
        rows_of_text = [f"{value:>{width}}  {line}" for value, line in rows]
        return "\n".join([*rows_of_text, *([f"{'':>{width}}  ... {left} more"] if left else [])])

    def __repr__(self) -> str:
        return printable(self.text())

    def _display(self) -> object:
        pieces: list[str] = []
        _html(self.root, 0, pieces, [_MAX_NODES])
        return Markup(
            f'<div style="font-family:monospace;line-height:1.6;max-width:64em">{"".join(pieces)}</div>'
        )


class _Line(NamedTuple):
    """A line of the text of a tree. A line without a node reports the number of omitted nodes."""

    text: str
    node: TreeNode | None


def _lines(root: TreeNode, depth: int, dead: bool) -> Iterator[_Line]:
    """Yield the lines of a tree to a depth; ``dead`` includes branches that are not taken."""
    stack: list[tuple[TreeNode, str, str, int]] = [(root, "", "", 0)]
    while stack:
        node, lead, below, level = stack.pop()
        line = f"{lead}{_label(node)}"
        yield _Line(line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}...", node)
        opens = node.live or dead
        if not node.children or not opens:
            continue
        if level == depth:
            yield _Line(f"{below}└ ... {sum(1 for _ in _walk(node)) - 1} below", None)
            continue
        last = len(node.children) - 1
        stack.extend(
            (
                child,
                f"{below}{'└' if number == last else '├'} ",
                f"{below}{' ' if number == last else '│'} ",
                level + 1,
            )
            for number, child in reversed(list(enumerate(node.children)))
        )


def _label(node: TreeNode) -> str:
    """Return the text of a node's line: its role, its source and a note."""
    role = f"{node.role} " if node.role else ""
    note = "" if node.live else "  (not taken)"
    if node.elsewhere and node.live:
        note = "  (opened elsewhere)"
    return f"{role}{node.text}{note}"


def _walk(root: TreeNode) -> Iterator[tuple[int, TreeNode]]:
    """Yield each node with its depth, each parent before its children."""
    stack = [(0, root)]
    while stack:
        depth, node = stack.pop()
        yield depth, node
        stack.extend((depth + 1, child) for child in reversed(node.children))


def _as_number(value: Value) -> float | None:
    """Return a number or boolean as a float, or None for other values."""
    return None if value is None or isinstance(value, str) else float(value)


def _html(node: TreeNode, level: int, pieces: list[str], left: list[int]) -> None:
    """Append a node and its children as HTML until ``left[0]`` nodes are written."""
    # -1 records that the note about omitted nodes was added.
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
    # The triangle of a block that can be opened is 1.1 em wide.
    width = "100% - 1.5em" if node.children else "100% - .4em"
    text = (
        f'<span style="display:inline-flex;width:calc({width});justify-content:space-between;gap:1.5em">'
        f'<span style="white-space:pre-wrap;text-align:left;overflow-wrap:anywhere">'
        f"{role}{html.escape(node.text)}{note}</span>"
        f'<span style="font-variant-numeric:tabular-nums;white-space:nowrap">'
        f"{html.escape(format_value(node.value))}</span></span>"
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
    """The builder of the tree of one evaluation."""

    def __init__(self, item: Evaluation) -> None:
        self.root, self.value = item.root, item.value
        self.uses = Counter(a.index for node in item.program.nodes for a in node.args)
        self.live: set[int] = set()
        self.opened: set[int] = set()

    def build(self) -> TreeNode:
        """Build the tree and return its root node."""
        stack = [self.root]
        while stack:
            node = stack.pop()
            if node.index not in self.live:
                self.live.add(node.index)
                stack.extend(child for child, _, on_path in self.children(node) if on_path)
        return self.open(self.root, "", True)

    def open(self, node: Node, role: str, live: bool) -> TreeNode:
        """Return a node with its children, unless another node already displays them."""
        text, complete = source(node)
        inside = self.children(node)
        # A node that is also on a taken branch is expanded there.
        again = bool(inside) and (
            node.index in self.opened or (not live and node.index in self.live)
        )
        children: tuple[TreeNode, ...] = ()
        if inside and not again:
            self.opened.add(node.index)
            children = tuple(
                self.open(child, part, live and on_path) for child, part, on_path in inside
            )
        return TreeNode(text, self.value(node), live, role, complete, again, children)

    def children(self, node: Node) -> list[tuple[Node, str, bool]]:
        """Return the children of a node, each with its role and whether it was evaluated.

        Constants are left out.
        """
        if node.op == "if":
            result: list[tuple[Node, str, bool]] = []
            pairs, last = clauses(node, self.once)
            chosen = False
            for test, then in pairs:
                holds = not chosen and self.value(test) is True
                result += [(test, "test", not chosen), (then, "then", holds)]
                chosen = chosen or holds
            return [*result, (last, "else", not chosen)]
        if node.op == "if-null":
            here = self.value(node.args[0]) is not None
            return [(node.args[0], "", True), (node.args[1], "else", not here)]
        if node.op in ("+", "*", "and", "or", "min", "max"):
            return [(part, "", True) for part in chain(node, self.once) if not part.constant]
        return [(part, "", True) for part in written_as(node)[1] if not part.constant]

    def once(self, node: Node) -> bool:
        """Return whether a node is used only once in the policy."""
        return self.uses[node.index] == 1

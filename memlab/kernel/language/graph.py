"""The meaning of a policy: a typed graph of primitives in which equal subexpressions share one node.

The graph is kept in canonical form, so that every back end executes the same operations. Constants are folded with the
scalar functions, a choice between equal values is removed, and a small whole power becomes a product.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, Literal

from memlab.kernel.language.primitives import AGGREGATES, PRIMITIVES
from memlab.kernel.language.signature import Returns, Type

Value = float | bool | str | None
ListType = Literal["list", "length", "items", "position", "pick"]
NodeType = Returns | ListType | None
"""None is the type of the literal ``null`` until its context determines one.

List types exist only while a policy is checked: list forms are rewritten as numbers and booleans of each item.
"""


class Node:
    """One operation with its arguments and type.

    `value` is a constant, the name of an input, the table of a ``table`` or ``in``, or the fields of a ``record``.
    """

    __slots__ = ("args", "depth", "digest_bytes", "index", "op", "type", "value")

    def __init__(
        self, op: str, args: tuple[Node, ...], type: NodeType, value: Any, index: int
    ) -> None:
        self.op, self.args, self.type, self.value, self.index = op, args, type, value, index
        self.depth: int = 1 + max([a.depth for a in args]) if args else 0
        self.digest_bytes: bytes | None = None

    @property
    def constant(self) -> bool:
        """True if the node is a constant."""
        return self.op == "const"

    @property
    def digest(self) -> str:
        """The meaning hash of the subgraph below this node, in 64 hexadecimal digits."""
        return self._digest().hex()

    def _digest(self) -> bytes:
        """Return the hash of the node's operation, type, value and arguments."""
        if self.digest_bytes is None:
            parts = [self.op.encode(), (self.type or "null").encode(), constant_key(self.value)]
            parts += [a._digest() for a in self.args]
            self.digest_bytes = hashlib.sha256(
                b"".join(struct.pack(">I", len(p)) + p for p in parts)
            ).digest()
        return self.digest_bytes

    def __repr__(self) -> str:
        return f"Node({self.op}, {self.value!r}, {len(self.args)} args)"


def constant_key(value: object) -> bytes:
    """Return a constant and its type as bytes, for comparison.

    Floats use their bits, so 0.0 and -0.0 differ and every NaN is equal.
    """
    if isinstance(value, float):
        return b"f" + struct.pack(">d", value if value == value else float("nan"))
    if isinstance(value, bool):
        return b"t" if value else b"b"
    if isinstance(value, str):
        return b"s" + value.encode()
    if value is None:
        return b"n"
    if isinstance(value, tuple):
        keys = [constant_key(v) for v in value]
        return b"l" + b"".join(struct.pack(">I", len(k)) + k for k in keys)
    raise TypeError(type(value))


class Dag:
    """A builder of nodes that creates each distinct node once."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._known: dict[tuple[object, ...], Node] = {}

    def _node(self, op: str, args: tuple[Node, ...], type: NodeType, value: object = None) -> Node:
        """Return the existing node with these attributes, or create a new node."""
        key = (op, type, None if value is None else constant_key(value), *[a.index for a in args])
        node = self._known.get(key)
        if node is None:
            node = self._known[key] = Node(op, args, type, value, len(self.nodes))
            self.nodes.append(node)
        return node

    def constant(self, value: Value, type: NodeType) -> Node:
        """Return the node of a constant of a given type."""
        return self._node("const", (), type, value)

    def number(self, value: float) -> Node:
        """Return the node of a constant number."""
        return self._node("const", (), "num", value)

    def input(self, name: str, type: Type) -> Node:
        """Return the node of the input with the given name."""
        return self._node("input", (), type, name)

    def aggregate(self, op: str, *args: Node) -> Node:
        """Return the node of an aggregate over the slate's candidates."""
        assert op in AGGREGATES
        return self._node(op, args, "num")

    def of_slate(self, type: ListType, *args: Node) -> Node:
        """Return the node that stands for a list of items, or for a position in a list.

        Such a node exists only while a policy over lists is checked.
        """
        return self._node(type, args, type)

    def record(self, fields: Mapping[str, Node]) -> Node:
        """Return the node of a record with one value per field.

        Fields are sorted by name.
        """
        names = tuple(sorted(fields))
        return self._node("record", tuple(fields[name] for name in names), "record", names)

    def typed(self, node: Node, type: NodeType) -> Node:
        """Give an untyped ``null`` the type `type`; return other nodes unchanged."""
        return self.constant(None, type) if node.type is None else node

    def member(self, x: Node, words: Iterable[str]) -> Node:
        """Return the node that tests whether a string is in `words`; null stays null."""
        options = tuple(dict.fromkeys(words))
        if x.constant:
            return self.constant(None if x.value is None else x.value in options, "bool")
        if len(options) == 1:
            return self.make("same", x, self.constant(options[0], "str"))
        return self._node("in", (x,), "bool", options)

    def table(
        self, x: Node, words: tuple[str, ...], numbers: tuple[float, ...], default: float
    ) -> Node:
        """Return a node that maps the string ``x`` to a number by a table of words.

        Any other string and null have the default.
        """
        if x.constant:
            return self.number(dict(zip(words, numbers, strict=True)).get(x.value, default))
        return self._node("table", (x,), "num", (words, numbers, default))

    def unfolded(self, op: str, args: tuple[Node, ...]) -> Node:
        """Build a node of `op` without folding constant arguments."""
        return self._node(op, args, PRIMITIVES[op].gives)

    def make(self, op: str, *args: Node) -> Node:
        """Return `op` applied to arguments of the right types, in canonical form."""
        primitive = PRIMITIVES[op]
        # A choice has the type of its last argument.
        type = args[-1].type if op in ("if", "if-null") else primitive.gives
        if primitive.strict and any(a.op == "const" and a.value is None for a in args):
            return self.constant(None, type)
        if all(a.op == "const" for a in args):
            return self.constant(primitive.scalar(*(a.value for a in args)), type)
        rewrite = _REWRITES.get(op)
        node = None if rewrite is None else rewrite(self, *args)
        return self._node(op, args, type) if node is None else node


def _is(node: Node, value: Value) -> bool:
    """Return True if a node is the constant ``value``, which is not null."""
    return node.op == "const" and node.value == value and node.value is not None


def _multiply(dag: Dag, x: Node, y: Node) -> Node | None:
    """Simplify a multiplication by 1 or -1; return None if neither factor is 1 or -1."""
    for factor, other in ((y, x), (x, y)):
        if _is(factor, 1.0):
            return other
        if _is(factor, -1.0):
            return dag.make("neg", other)
    return None


def _divide(dag: Dag, x: Node, y: Node) -> Node | None:
    """Simplify a division by 1; return None for any other divisor."""
    return x if _is(y, 1.0) else None


def _negate(dag: Dag, x: Node) -> Node | None:
    """Simplify a double negation of a number; return None if the argument is not a negation."""
    return x.args[0] if x.op == "neg" else None


def _power(dag: Dag, x: Node, y: Node) -> Node | None:
    """Rewrite a power with the exponent 0.5 or a small whole number; return None for other exponents."""
    if _is(y, 0.5):
        return dag.make("sqrt", x)
    exponent = y.value if y.constant else None
    if not isinstance(exponent, float) or exponent not in _SMALL_POWERS:
        return None
    return _product(dag, x, int(exponent))


def _product(dag: Dag, x: Node, n: int) -> Node:
    """Expand an integer power into products by repeated squaring."""
    if n == 1:
        return x
    half = _product(dag, x, n // 2)
    square = dag.make("*", half, half)
    return dag.make("*", square, x) if n % 2 else square


def _not(dag: Dag, x: Node) -> Node | None:
    """Simplify the logical negation of a negation, ``<`` or ``<=``; return None for any other argument."""
    if x.op == "not":
        return x.args[0]
    if x.op == "<":
        return dag.make("<=", x.args[1], x.args[0])
    return dag.make("<", x.args[1], x.args[0]) if x.op == "<=" else None


def _and(dag: Dag, x: Node, y: Node) -> Node | None:
    """Rewrite a conjunction with a constant or with two equal arguments; return None for others."""
    # Constants and equal arguments decide or drop out of the conjunction, also in three-valued logic.
    if x is y or _is(y, True) or _is(x, False):
        return x
    return y if _is(x, True) or _is(y, False) else None


def _or(dag: Dag, x: Node, y: Node) -> Node | None:
    """Rewrite a disjunction with a constant or with two equal arguments; return None for others."""
    if x is y or _is(y, False) or _is(x, True):
        return x
    return y if _is(x, False) or _is(y, True) else None


def _if(dag: Dag, test: Node, then: Node, otherwise: Node) -> Node | None:
    """Rewrite a choice with a constant test or with equal branches; return None for other choices."""
    if then is otherwise:
        return then
    if test.constant:
        return then if test.value is True else otherwise
    return None


def _if_null(dag: Dag, x: Node, y: Node) -> Node | None:
    """Simplify an ``if-null`` of equal nodes or with one constant; return None if neither rule applies."""
    if x is y:
        return x
    if x.constant:
        return y if x.value is None else x
    return x if y.constant and y.value is None else None


def _skip_null(dag: Dag, x: Node, y: Node) -> Node | None:
    """Return the other argument of a minimum or maximum of which one is a constant null, otherwise None."""
    if x.constant and x.value is None:
        return y
    return x if y.constant and y.value is None else None


_SMALL_POWERS = frozenset(float(n) for n in range(1, 10))
"""Exponents written as products: a column of a million numbers takes 3 ms instead of 23 ms by ``pow``."""

# Rewrites into canonical form, by operation. Each returns None if it does not apply.
_REWRITES: dict[str, Callable[..., Node | None]] = {
    "*": _multiply,
    "/": _divide,
    "neg": _negate,
    "pow": _power,
    "not": _not,
    "and": _and,
    "or": _or,
    "if": _if,
    "if-null": _if_null,
    "min": _skip_null,
    "max": _skip_null,
}


def reachable(*roots: Node, ends: Container[int] = ()) -> list[Node]:
    """Return the nodes reachable from `roots`, arguments before users. A node in `ends` ends a path."""
    nodes: dict[int, Node] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.index not in nodes:
            nodes[node.index] = node
            if node.index not in ends:
                stack.extend(node.args)
    return [nodes[index] for index in sorted(nodes)]


# Specialisation: inputs whose values are known become constants.

_ROUNDED = ("exp", "log", "log1p", "tanh", "pow")
"""Functions whose last digit may differ between back ends."""

# Aggregates that return the common value if all rows are equal.
_EXTREMES = ("slate-min", "slate-max")


def with_known(
    roots: Sequence[Node], constants: Mapping[str, Value], *, rounded: bool = True
) -> list[Node]:
    """Substitute constants for known inputs and fold the graph of `roots`.

    Without `rounded`, functions whose last digit differs between back ends are not folded, so that
    the back end computes them.
    """
    dag = Dag()
    rebuilt: dict[int, Node] = {}
    for node in reachable(*roots):
        args = tuple(rebuilt[a.index] for a in node.args)
        # Folding here would use the scalar function, whose last digit may differ from the back end's.
        if (
            not rounded
            and node.op in _ROUNDED
            and all(a.constant and a.value is not None for a in args)
        ):
            rebuilt[node.index] = dag.unfolded(node.op, args)
        elif node.op in _EXTREMES and args[0].constant:
            # All rows have the same value. Zeros become positive, as in every aggregate.
            extreme = args[0].value
            rebuilt[node.index] = dag.constant(None if extreme is None else extreme + 0.0, "num")
        else:
            rebuilt[node.index] = _rebuild(dag, node, args, constants)
    return [rebuilt[node.index] for node in roots]


def _rebuild(dag: Dag, node: Node, args: tuple[Node, ...], constants: Mapping[str, Value]) -> Node:
    """Rebuild `node` with the arguments `args`; an input that `constants` names becomes that constant."""
    op = node.op
    if op == "const":
        return dag.constant(node.value, node.type)
    if op == "input":
        assert node.type in ("num", "bool", "str")
        return (
            dag.constant(constants[node.value], node.type)
            if node.value in constants
            else dag.input(node.value, node.type)
        )
    if op == "in":
        return dag.member(args[0], node.value)
    if op == "table":
        return dag.table(args[0], *node.value)
    return dag.aggregate(op, *args) if op in AGGREGATES else dag.make(op, *args)

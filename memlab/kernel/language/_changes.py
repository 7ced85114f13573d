"""What a policy can come out as, and which fields of a record policy other than they went in, before anything is run.

Values that some inputs are known to have are put into the graph, which folds what follows from them. A field that is
then nothing but its own old value is left alone, whatever the other inputs are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from memlab.kernel.language._dag import Dag, Node, Value, reachable
from memlab.kernel.language._policy import Policy
from memlab.kernel.language._primitives import AGGREGATES

__all__ = ["changed_fields", "possible_results", "with_known"]


def changed_fields(policy: Policy, given: Mapping[str, Value]) -> tuple[str, ...]:
    """The fields that ``policy`` may change when its inputs have the values ``given``, sorted.

    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> slot = Signature("reinforce", [Input("outcome", "str"), Input("strength")], "record", fields=("strength",))
    >>> grow = compile_policy('''(fn [outcome strength]
    ...     (if (= outcome "success") (update :strength (+ 1 strength)) (update)))''', slot)
    >>> changed_fields(grow, {"outcome": "success"}), changed_fields(grow, {"outcome": "fail"})
    (('strength',), ())
    """
    return _changed(policy, tuple(sorted(given.items())))


@lru_cache(maxsize=1024)
def _changed(policy: Policy, given: tuple[tuple[str, Value], ...]) -> tuple[str, ...]:
    if not policy.fields:
        return ()
    ends = with_known(policy.root.args, dict(given))
    return tuple(name for name, end in zip(policy.fields, ends, strict=True) if (end.op, end.value) != ("input", name))


def possible_results(policy: Policy, given: Mapping[str, Value]) -> frozenset[tuple[str, Value]] | None:
    """What ``policy`` can give when its inputs have the values ``given``: ("const", value), or ("input", name) where an
    input is handed through. None where it computes something, or is a record.

    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> slot = Signature("promote", [Input("status", "str"), Input("ttl")], "str")
    >>> fade = compile_policy('(fn [status ttl] (if (if-null (> ttl 3) false) "expired" status))', slot)
    >>> possible_results(fade, {"ttl": None})
    frozenset({('input', 'status')})
    """
    return _possible(policy, tuple(sorted(given.items())))


@lru_cache(maxsize=1024)
def _possible(policy: Policy, given: tuple[tuple[str, Value], ...]) -> frozenset[tuple[str, Value]] | None:
    found: set[tuple[str, Value]] = set()
    waiting = with_known((policy.root,), dict(given)) if not policy.fields else []
    while waiting:
        node = waiting.pop()
        if node.op == "if":
            waiting += node.args[1:]
        elif node.op in ("const", "input"):
            found.add((node.op, node.value))
        else:
            return None
    return frozenset(found) or None


_ROUNDED = ("exp", "log", "log1p", "tanh", "pow")
"""Functions whose last place may differ between back ends."""

_EXTREMES = ("slate-min", "slate-max")


def with_known(roots: Sequence[Node], known: Mapping[str, Value], *, rounded: bool = True) -> list[Node]:
    """The graph of these roots with values for some inputs, and what follows from them.

    Without ``rounded``, functions whose last place differs between back ends are left for the back end to compute.
    """
    dag = Dag()
    rebuilt: dict[int, Node] = {}
    for node in reachable(*roots):
        args = tuple(rebuilt[a.index] for a in node.args)
        if not rounded and node.op in _ROUNDED and all(a.constant and a.value is not None for a in args):
            rebuilt[node.index] = dag.unfolded(node.op, args)
        elif node.op in _EXTREMES and args[0].constant:
            extreme = args[0].value  # of rows that all have it; zeros are made positive, as everywhere
            rebuilt[node.index] = dag.constant(None if extreme is None else extreme + 0.0, "num")
        else:
            rebuilt[node.index] = _rebuilt(dag, node, args, known)
    return [rebuilt[node.index] for node in roots]


def _rebuilt(dag: Dag, node: Node, args: tuple[Node, ...], known: Mapping[str, Value]) -> Node:
    """The same operation on these arguments, which may have become constants."""
    op = node.op
    if op == "const":
        return dag.constant(node.value, node.type)
    if op == "input":
        assert node.type in ("num", "bool", "str")
        return dag.constant(known[node.value], node.type) if node.value in known else dag.input(node.value, node.type)
    if op == "in":
        return dag.member(args[0], node.value)
    if op == "table":
        return dag.table(args[0], *node.value)
    return dag.aggregate(op, *args) if op in AGGREGATES else dag.make(op, *args)

"""Which fields of a record policy can come out other than they went in, known before anything is run.

Values that some inputs are known to have are put into the graph, which folds what follows from them. A field that is
then nothing but its own old value is left alone, whatever the other inputs are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from memlab.language._dag import Dag, Node, Value, reachable
from memlab.language._policy import Policy
from memlab.language._primitives import AGGREGATES

__all__ = ["changed_fields"]


def changed_fields(policy: Policy, given: Mapping[str, Value]) -> tuple[str, ...]:
    """The fields that ``policy`` may change when its inputs have the values ``given``, sorted.

    >>> from memlab.language import Input, Signature, compile_policy
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
    dag, known = Dag(), dict(given)
    rebuilt: dict[int, Node] = {}
    for node in reachable(*policy.root.args):
        rebuilt[node.index] = _rebuilt(dag, node, tuple(rebuilt[a.index] for a in node.args), known)
    ends = (rebuilt[node.index] for node in policy.root.args)
    return tuple(name for name, end in zip(policy.fields, ends, strict=True) if (end.op, end.value) != ("input", name))


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
    if op == "interpreted":
        return dag.interpreted(node.value, args)
    return dag.aggregate(op, *args) if op in AGGREGATES else dag.make(op, *args)

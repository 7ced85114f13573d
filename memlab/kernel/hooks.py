"""Hooks: functions of extensions that the verbs of the kernel call at named points.

    memlab.extend(Extension("chess", "1.0", hooks=[Hook("openings", "read-facts", openings_in)]))

A hook of memlab's own names its function, ``"module:function"``, which is imported when it is first called.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from memlab.kernel.registry import Registry

__all__ = ["HOOKS", "PARTS", "POINTS", "Hook", "list_hooks", "load_function", "load_part"]

POINTS = {
    "compare": "(core) -> a Comparing: what new memories are to those at hand; the last that is declared counts",
    "describe-text": "() -> a Describing: tags, a summary, names and feelings of a text; the last that is declared "
    "counts",
    "read-facts": "(text, role) -> facts, each with subject, predicate, value and entity: what a corrected text states",
    "retell": "(before, given, text) -> the text of a memory of which an edit gives some fields, None to keep it",
    "rederive": "(before, old, new, given, pack) -> a Rederived: the fields that follow from an edited text",
    "facts-stored": "(state, pack, columns, ids, gone=, told=, now=) -> an object with change and fact_times: what new "
    "facts end",
    "feedback": "(state, pack, agent, outcome) -> fields of the event of feedback that names an agent",
    "dependents": "() -> a Dependents: memories that an extension made of the words of others",
    "delete-project": "(state, project) -> whether the extension keeps something of a project that goes with it",
    "stand-ins": "(state) -> by the id of a memory that stands for others an object with members, their ids, and was, "
    "their ids by the status that they had",
    "upkeep": "(store, now) -> numbers of the events that it wrote: what follows a pass of lab.upkeep",
    "after-turn": "(store, now, spanning=) -> numbers of the events that it wrote, None where nothing was due: what "
    "may be done while an agent works",
    "copies": "(store) -> by path a problem, or nothing: copies outside the lab that a purge brings in step",
    "project-map": "(state, project) -> a map of the parts of a project, None without: see lab.context",
}
"""When the functions of each point are called, and with what. Only memlab's own may be at "feedback": they give fields
of an event of memlab."""


@dataclass(frozen=True)
class Hook:
    """A function that a verb of the kernel calls.

    Parameters
    ----------
    name
        The name of the hook, unique among all.
    point
        When it is called: a key of ``POINTS``.
    call
        The function, or ``"module:function"``.
    """

    name: str
    point: str
    call: Callable[..., Any] | str = field(compare=False)
    owner: str = ""


def _refusal(hook: Hook) -> str | None:
    """Return why an extension's hook is refused."""
    if hook.point not in POINTS:
        return (
            f"The hook {hook.name} names the point {hook.point!r}; there are {', '.join(POINTS)}."
        )
    if hook.point == "feedback":
        return f"The hook {hook.name} gives fields of memlab's event feedback: declare an event of your own."
    return (
        None
        if callable(hook.call) or isinstance(hook.call, str)
        else f"The hook {hook.name} is no function."
    )


HOOKS: Registry[Hook] = Registry("hook", kind="hooks", about="point", check=_refusal)
"""Every hook, those of extensions included."""

_by_point: dict[str, tuple[int, tuple[Callable[..., Any], ...]]] = {}


def list_hooks(point: str) -> tuple[Callable[..., Any], ...]:
    """Return the functions of a point, in the order in which they were declared."""
    known = _by_point.get(point)
    if known is None or known[0] != HOOKS.changes:
        functions = tuple(
            load_function(hook.call) for hook in HOOKS.values() if hook.point == point
        )
        known = _by_point[point] = (HOOKS.changes, functions)
    return known[1]


def load_function(named: Callable[..., Any] | str) -> Callable[..., Any]:
    """Return a function that may be named as ``"module:function"``."""
    if not isinstance(named, str):
        return named
    module, _, name = named.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


PARTS = {
    "attribute-feedback": "memlab.subjects.lens.attribution:attribute_feedback",
    "check-operations": "memlab.subjects.programs.program:checked_operations",
    "compare-policies": "memlab.subjects.lens.diff:PolicyDiff",
    "compare-values": "memlab.subjects.lens.explain:why",
    "explain-value": "memlab.subjects.lens.explain:explain",
    "show-policy": "memlab.subjects.lens.highlight:show_policy",
    "ranking-notice": "memlab.subjects.programs.comparing:ranking_notice",
}
"""Functions of memlab's own extensions that the kernel calls by name, each at one place."""


def load_part(name: str) -> Callable[..., Any]:
    """Return a function of ``PARTS``; its module is imported when it is first asked for."""
    return load_function(PARTS[name])

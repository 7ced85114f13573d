"""Hooks: functions of extensions that the verbs of the kernel call at named points.

    memlab.extend(Extension("chess", "1.0", hooks=[Hook("openings", "read-facts", openings_in)]))

A hook of memlab's own names its function as ``"module:function"``, which is imported at the first call.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from memlab.kernel.registry import Registry

POINTS = {
    "compare": "(core) -> a Comparing, which relates new memories to existing ones; the last declared hook counts",
    "describe-text": "() -> a Describing, which finds tags, summary, names and feelings of a text; the last declared "
    "hook counts",
    "read-facts": "(text, role) -> the facts of a corrected text, each with subject, predicate, value and entity",
    "retell": "(before, given, text) -> the new text of a memory after an edit of some fields; None keeps the text",
    "rederive": "(before, old, new, given, pack) -> a Rederived with the fields that follow from an edited text",
    "facts-stored": "(state, pack, columns, ids, gone=, told=, now=) -> an object with change and fact_times: older "
    "facts that the new ones end",
    "feedback": "(state, pack, agent, outcome) -> fields of a feedback event that names an agent",
    "judged": "(core) -> None: called after feedback was stored",
    "dependents": "() -> a Dependents: memories that an extension derived from other memories",
    "delete-project": "(state, project) -> True if the extension has data of the project to delete",
    "stand-ins": "(state) -> by the id of a summary an object with members, the replaced ids, and was, their ids by "
    "former status",
    "upkeep": "(store, now) -> numbers of the events written after a run of lab.upkeep",
    "after-turn": "(store, now, spanning=) -> numbers of the events written between an agent's turns; None if nothing "
    "was due",
    "copies": "(store) -> a problem or None by path: copies outside the lab that a purge updates",
    "read-answers": "() -> an object whose method rewards infers which texts an answer used; the last declared hook counts",
    "project-map": "(state, project) -> a map of the parts of a project for lab.context, or None",
}
"""The arguments and the result of the functions that are called at each point.

Only memlab's own hooks may use the point "feedback", because they return fields of an event of memlab.
"""


@dataclass(frozen=True)
class Hook:
    """A function that a verb of the kernel calls.

    Parameters
    ----------
    name
        Name of the hook, unique among all hooks.
    point
        Point at which the function is called: a key of ``POINTS``.
    call
        The function, or its name as ``"module:function"``.
    owner
        Name and version of the extension that declares the hook, or "" for memlab's own hooks.
    """

    name: str
    point: str
    call: Callable[..., Any] | str = field(compare=False)
    owner: str = ""


def _describe_hook_fault(hook: Hook) -> str | None:
    """Return why an extension's hook is refused, or None if it is accepted."""
    if hook.point not in POINTS:
        return f"The hook {hook.name} names the unknown point {hook.point!r}. Choose one of {', '.join(POINTS)}."
    if hook.point == "feedback":
        return f"The hook {hook.name} would write fields of memlab's feedback event: declare your own event instead."
    return (
        None
        if callable(hook.call) or isinstance(hook.call, str)
        else f'The hook {hook.name} is not a function: give a callable or "module:function".'
    )


HOOKS: Registry[Hook] = Registry("hook", kind="hooks", about="point", check=_describe_hook_fault)
"""Every hook, including those of extensions."""

# The functions of each point are cached, because verbs call hooks often. The number is the registry's counter of changes.
_by_point: dict[str, tuple[int, tuple[Callable[..., Any], ...]]] = {}


def list_hooks(point: str) -> tuple[Callable[..., Any], ...]:
    """Return the functions of all hooks at a point, in the order of declaration."""
    entry = _by_point.get(point)
    if entry is None or entry[0] != HOOKS.changes:
        functions = tuple(
            load_function(hook.call) for hook in HOOKS.values() if hook.point == point
        )
        entry = _by_point[point] = (HOOKS.changes, functions)
    return entry[1]


def load_function(reference: Callable[..., Any] | str) -> Callable[..., Any]:
    """Return a hook function, importing it if given as ``"module:function"``."""
    if not isinstance(reference, str):
        return reference
    module, _, name = reference.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


PARTS = {
    "attribute-feedback": "memlab.subjects.lens.attribution:attribute_feedback",
    "calibrate-known": "memlab.subjects.questions.calibrating:calibrate",
    "check-operations": "memlab.subjects.programs.program:check_operations",
    "compare-policies": "memlab.subjects.lens.diff:PolicyDiff",
    "compare-values": "memlab.subjects.lens.explain:compare_values",
    "explain-value": "memlab.subjects.lens.explain:explain",
    "group-terms": "memlab.subjects.lens.labels:group_terms",
    "print-terms": "memlab.subjects.lens.labels:list_lines",
    "show-policy": "memlab.subjects.lens.highlight:show_policy",
    "select-person": "memlab.subjects.purge.selecting:select_person",
    "ranking-notice": "memlab.subjects.programs.comparing:ranking_notice",
    "write-pack": "memlab.subjects.lens.packing:draft_pack",
    "score-notice": "memlab.subjects.questions.scoring:score_notice",
}
"""Functions of memlab's own extensions that are called by name, so that their callers need not import them."""


def load_part(name: str) -> Callable[..., Any]:
    """Return a function listed in ``PARTS``, importing its module at the first call."""
    return load_function(PARTS[name])

"""Import every ``declared`` module and register its projections, events and hooks."""

from __future__ import annotations

from importlib import import_module

from memlab.kernel.hooks import HOOKS
from memlab.kernel.state import (
    Projection,
    State,
    add_extension_projections,
    declare_events,
    declare_projections,
    extend_event,
)
from memlab.kernel.verbs.declared import Declared, Make

_MODULES = (
    *(f"{name}.declared" for name in import_module("memlab.subjects").EXTENSIONS),
    "memlab.kernel.verbs.registers",
    *(f"memlab.kernel.verbs.{name}.declared" for name in ("recalling", "remembering")),
)
"""The modules with declarations, in the order in which their hooks are called."""

# The declarations are read at import, because events must be declared before a journal is folded.
_DECLARED: tuple[Declared, ...] = tuple(import_module(name).DECLARED for name in _MODULES)

# Projections are sorted by name, so that snapshots do not depend on the order of the folders.
PROJECTIONS: tuple[type[Projection], ...] = tuple(
    sorted(
        (kind for declared in _DECLARED for kind in declared.projections),
        key=lambda kind: kind.__name__,
    )
)

COMPONENTS: dict[str, Make] = {
    name: make for declared in _DECLARED for name, make in declared.accessors.items()
}
"""Constructors of components by name, called at each access."""
LASTING_COMPONENTS: dict[str, Make] = {
    name: make for declared in _DECLARED for name, make in declared.lasting.items()
}
"""Constructors of components by name, called once for each lab."""

declare_projections(PROJECTIONS)
for _declared in _DECLARED:
    declare_events(_declared.events)
    HOOKS.register(_declared.hooks)
for _declared in _DECLARED:
    for _kind, _fields in _declared.fields.items():
        extend_event(_kind, _fields)


def new_state() -> State:
    """Return an empty state with all projections, as before the first event."""
    return State(add_extension_projections(PROJECTIONS))

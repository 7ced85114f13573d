"""Declarations of memlab's own subjects, one ``declared.py`` per folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from memlab.kernel.hooks import Hook, load_function
from memlab.kernel.state import EventType, Field, Projection

Make = Callable[[Any], Any]
"""A function from the `Verbs` of a lab to a component of it."""


@dataclass(frozen=True)
class Declared:
    """The declarations of one folder; users declare a ``memlab.Extension`` instead.

    Parameters
    ----------
    projections
        Tables folded from events, together with the kinds of events that they declare.
    events
        Kinds of events that no projection declares.
    fields
        Fields added to events of other folders, by kind of event.
    hooks
        Functions that the kernel calls. Each hook names its module, which is imported at the first
        call.
    accessors
        Functions by name, each of which makes a new component from the lab's `Verbs` at every
        access. The functions import their modules when they are called.
    lasting
        Functions by name, each of which makes its component once for each lab. The component's method ``stop`` is
        called when the lab is closed.
    """

    projections: Sequence[type[Projection]] = ()
    events: Sequence[EventType] = ()
    fields: Mapping[str, Mapping[str, Field]] = field(default_factory=dict)
    hooks: Sequence[Hook] = ()
    accessors: Mapping[str, Make] = field(default_factory=dict)
    lasting: Mapping[str, Make] = field(default_factory=dict)


def construct(path: str, *needs: str) -> Make:
    """Return a function that imports a class and constructs it from parts of `Verbs`.

    Parameters
    ----------
    path
        The class as ``"module:class"``.
    *needs
        The constructor's arguments: names of `Verbs` or of components that other folders declare;
        ``store`` is the store of the core.
    """
    return lambda verbs: load_function(path)(*(verbs.get(name) for name in needs))


def bind(path: str, *needs: str) -> Make:
    """Return a function that imports another function and binds its first arguments.

    Parameters
    ----------
    path
        The function as ``"module:function"``.
    *needs
        The names of its first arguments, as for ``construct``.
    """
    return lambda verbs: partial(load_function(path), *(verbs.get(name) for name in needs))

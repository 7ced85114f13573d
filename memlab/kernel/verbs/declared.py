"""What a folder of memlab's own adds to a lab, declared in its ``declared.py``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from memlab.kernel.hooks import Hook, load_function
from memlab.kernel.state import EventType, Field, Projection

__all__ = ["Declared", "Make", "bound", "made_of"]

Make = Callable[[Any], Any]
"""From the `Verbs` of a lab to what an extension offers of it."""


@dataclass(frozen=True)
class Declared:
    """The declarations of one folder; those of users are a ``memlab.Extension``.

    Parameters
    ----------
    projections
        Tables that are folded from events, with the events that they declare.
    events
        Kinds of events that no projection declares.
    fields
        Fields that it writes into events of others, by kind.
    hooks
        Functions that the kernel calls; each names its module, which is imported when it is first called.
    accessors
        By name, what makes an object of the lab's `Verbs`, each time anew. It imports what it needs when it is called.
    kept
        Likewise, made once for each lab; a method ``stop`` is called when the lab is closed.
    """

    projections: Sequence[type[Projection]] = ()
    events: Sequence[EventType] = ()
    fields: Mapping[str, Mapping[str, Field]] = field(default_factory=dict)
    hooks: Sequence[Hook] = ()
    accessors: Mapping[str, Make] = field(default_factory=dict)
    kept: Mapping[str, Make] = field(default_factory=dict)


def made_of(named: str, *needs: str) -> Make:
    """Return what makes a class of some `Verbs`, by name; its module is imported when it is first made.

    Parameters
    ----------
    named
        ``"module:class"``.
    *needs
        The arguments, as names of `Verbs` or of what other folders declare; ``store`` is that of the core.
    """
    return lambda verbs: load_function(named)(*(verbs.get(name) for name in needs))


def bound(named: str, *needs: str) -> Make:
    """Return likewise a function whose first arguments are given."""
    return lambda verbs: partial(load_function(named), *(verbs.get(name) for name in needs))

"""The kernel's verbs of one lab, from which the components of subjects are constructed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.corrections.corrections import Corrections
from memlab.kernel.verbs.feedback import Judgements
from memlab.kernel.verbs.recalling.asking import Questions
from memlab.kernel.verbs.remembering.remember import Remembering

__all__ = ["Verbs"]


@dataclass(frozen=True)
class Verbs:
    """The kernel's verbs of one lab.

    Attributes
    ----------
    core
        The lab's core. For an accessor it keeps the lab alive; for a component that lives as long
        as the lab it does not.
    questions, judgements, remembering, corrections
        The verbs of daily use.
    component
        A function from the name of another folder's component to the component.
    """

    core: Core
    questions: Questions
    judgements: Judgements
    remembering: Remembering
    corrections: Corrections
    component: Callable[[str], Any]

    def get(self, name: str) -> Any:
        """Return a component by name, including the lab, its store and all verbs."""
        own = {"verbs": self, "lab": self.core.owner, "store": self.core.store, **vars(self)}
        return own[name] if name in own else self.component(name)

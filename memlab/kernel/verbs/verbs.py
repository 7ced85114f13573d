"""The kernel's verbs of one lab, passed to the constructors of subject components."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.corrections.corrections import Corrections
from memlab.kernel.verbs.feedback import Judgements
from memlab.kernel.verbs.recalling.asking import Questions
from memlab.kernel.verbs.remembering.remember import Remembering


@dataclass(frozen=True)
class Verbs:
    """The kernel's verbs of one lab.

    Attributes
    ----------
    core
        The lab's core. A core passed to an accessor keeps the lab alive. A core passed to a lasting component does not.
    questions, judgements, remembering, corrections
        The objects that implement ``recall``, ``feedback``, ``remember`` and the corrections.
    component
        A function that returns the component that another folder declares under a name.
    """

    core: Core
    questions: Questions
    judgements: Judgements
    remembering: Remembering
    corrections: Corrections
    component: Callable[[str], Any]

    def get(self, name: str) -> Any:
        """Return the verb, the lab, its store or the component with the given name."""
        own = {"verbs": self, "lab": self.core.owner, "store": self.core.store, **vars(self)}
        return own[name] if name in own else self.component(name)

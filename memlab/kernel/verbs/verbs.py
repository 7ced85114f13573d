"""The verbs of the kernel on one lab, as objects: what the accessors of memlab's own folders are made of."""

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
    """The kernel of one lab.

    Attributes
    ----------
    core
        Its store. For an accessor it keeps the lab alive; for what is kept with the lab it does not.
    questions, judgements, remembering, corrections
        The verbs of daily use.
    made
        Returns what another folder declares under a name, as an accessor does.
    """

    core: Core
    questions: Questions
    judgements: Judgements
    remembering: Remembering
    corrections: Corrections
    made: Callable[[str], Any]

    def get(self, name: str) -> Any:
        """Return a verb, all of them, the lab, its store, or what a folder declares, by name."""
        own = {"verbs": self, "lab": self.core.owner, "store": self.core.store, **vars(self)}
        return own[name] if name in own else self.made(name)

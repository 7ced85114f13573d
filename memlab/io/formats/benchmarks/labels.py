"""What is asked about a conversation, apart from it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memlab.io.formats.benchmarks.conversation import Conversation
from memlab.kernel.base.arguments import checked

__all__ = ["LabelledConversation", "Question"]

_UNANSWERABLE = (5, "abstention")


@checked
@dataclass(frozen=True, slots=True)
class Question:
    """A question with its labels. ``evidence`` are refs of turns that exist; ``dropped`` is what the file said beside.

    ``category`` is what the file sorts questions by: 1-5 of LoCoMo, which have no names here since published names
    conflict, or the name of an ability. ``parts`` are named parts of the evidence, such as BEAM's ``original_info`` and
    ``updated_info``. ``at`` is when it is asked, where the file says so. ``outdated`` is what of the evidence was put
    right by the rest of it.
    """

    text: str
    category: int | str
    evidence: tuple[str, ...]
    answer: str = ""
    dropped: tuple[str, ...] = ()
    parts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    at: datetime | None = None
    outdated: tuple[str, ...] = ()

    @property
    def answerable(self) -> bool:
        """Whether the conversation holds an answer: LoCoMo's category 5 and questions of abstention have none.

        >>> Question("When did Ida climb K2?", 5, ("D1:1",)).answerable
        False
        """
        return self.category not in _UNANSWERABLE


@checked
@dataclass(frozen=True, slots=True)
class LabelledConversation:
    """A conversation and, apart from it, what is asked about it."""

    conversation: Conversation
    questions: tuple[Question, ...]

"""A conversation as it was held, and the way it enters a lab."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from memlab.kernel.base.arguments import checked

__all__ = ["Conversation", "Turn", "conversation"]


@checked
@dataclass(frozen=True, slots=True)
class Turn:
    """What one speaker said at one time (UTC); ``caption`` describes a picture that came with it.

    ``role`` is what the speaker is in a chat: user, assistant, tool. Among people there is none.
    """

    ref: str
    speaker: str
    text: str
    session: str
    at: datetime
    caption: str = ""
    role: str = ""

    @property
    def content(self) -> str:
        """The words to remember: the text, and what the picture shows. Empty when the turn has neither.

        >>> from datetime import UTC
        >>> Turn("D1:1", "Ida", "Look!", "s1", datetime(2026, 1, 1, tzinfo=UTC), "a dog in the snow").content
        'Look! [image: a dog in the snow]'
        """
        image = f"[image: {self.caption}]" if self.caption else ""
        return f"{self.text} {image}".strip()


@checked
@dataclass(frozen=True, slots=True)
class Conversation:
    """The turns between some speakers, over one or more sessions, in the order in which they were said."""

    name: str
    turns: tuple[Turn, ...]

    @property
    def speakers(self) -> tuple[str, ...]:
        """Who speaks, by first appearance."""
        return tuple(dict.fromkeys(turn.speaker for turn in self.turns))

    @property
    def end(self) -> datetime:
        """When its last turn was said."""
        return max(turn.at for turn in self.turns)

    @checked
    def rows(self, *, project: str | None = None) -> list[dict[str, object]]:
        """One row a turn for ``lab.remember``; a turn without words has none.

        A session's name is unique among conversations: two of them in one lab do not share a ``session_1``.
        """
        return [
            {
                "text": turn.content,
                "kind": "turn",
                "speaker": turn.speaker or None,
                "session": f"{self.name}/{turn.session}",
                "project": project,
                "at": turn.at,
                "ref": turn.ref,
            }
            for turn in self.turns
            if turn.content
        ]


Remembered = TypeVar("Remembered", covariant=True)


class Remembers(Protocol[Remembered]):
    """What a conversation needs of a lab: its public verb."""

    def remember(self, rows: Sequence[dict[str, Any]], /, *, chain: bool = False) -> Remembered: ...


@checked
def conversation(lab: Remembers[Remembered], conversation: Conversation, *, project: str | None = None) -> Remembered:
    """Remember every turn, in one transaction, consecutive turns of a session joined by ``next`` edges.

    ``project`` is the conversation's name unless given. Returns what ``lab.remember`` returns.

    >>> import memlab
    >>> from memlab.io.ingest import conversation, read_locomo
    >>> for labelled in read_locomo("locomo10.json"):                   # doctest: +SKIP
    ...     conversation(memlab.open(), labelled.conversation)
    """
    named = conversation.name if project is None else project
    return lab.remember(conversation.rows(project=named), chain=True)

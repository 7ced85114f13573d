"""The projection of labelled questions: queries with the memories that answer them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from memlab.kernel.journal import Body, Event
from memlab.kernel.state import (
    FLAG,
    MEMORY_ID,
    NUMBER,
    PROJECT,
    TIME,
    WORD,
    EventType,
    Field,
    Projection,
    list_field,
    mapping_field,
)

# A purge of a wanted memory, or of a text that the query quotes, drops the whole question.
_QUESTIONS = list_field(
    mapping_field(
        {
            "question": NUMBER,
            "query": Field("text", asked=True),
            "wants": MEMORY_ID,
            "project": PROJECT,
            "viewer": Field("creator", held="reference", shared=True),
            "at": TIME,
            "category": Field("label", shared=True),
            "source": WORD,
            "accepted": FLAG,
        }
    ),
    drops=True,
    required=True,
)
_NUMBERS = {"questions": NUMBER}


class Labels(Projection):
    """Labelled questions by number, in the order in which they were added."""

    name = "questions"
    kinds = ("question", "accept-question", "remove-question")
    # A replay has other ids of memories, so it leaves the questions out.
    events = (
        EventType(
            "question",
            "Labelled questions were added.",
            {"added": _QUESTIONS, "last": NUMBER},
            replay="left-out",
        ),
        EventType(
            "accept-question", "Proposed questions were accepted.", _NUMBERS, replay="left-out"
        ),
        EventType("remove-question", "Questions were removed.", _NUMBERS, replay="left-out"),
    )
    dumped = mapping_field({"last": NUMBER, "questions": _QUESTIONS})

    def __init__(self) -> None:
        self.last = 0
        """The number of the newest question, also of one that was removed."""
        self._rows: dict[int, dict[str, Any]] = {}

    @property
    def all(self) -> Iterable[Mapping[str, Any]]:
        """All questions, including proposed questions."""
        return self._rows.values()

    def __contains__(self, number: object) -> bool:
        return number in self._rows

    def fold(self, event: Event) -> None:
        """Apply an event: add, accept or remove its questions."""
        # A purge removes questions from the event, and their numbers must not be used again.
        self.last = event.body.get("last", self.last)
        for row in event.body.get("added", ()):
            # A viewer's event has an empty query in place of a question that wants a hidden memory.
            if row["query"]:
                self._rows[row["question"]] = dict(row)
        for number in event.body.get("questions", ()):
            if event.kind == "remove-question":
                self._rows.pop(number, None)
            elif number in self._rows:
                self._rows[number]["accepted"] = True

    def shows(self, kind: str, body: Body, *, viewer: str, seen: bool) -> bool | None:
        """Return False for an event with questions of other viewers, otherwise None."""
        others = {row.get("viewer") for row in body.get("added", ())} - {None, viewer}
        return False if others else None

    def dump(self) -> Any:
        """Return the questions and the last number, or None before the first question."""
        if not self.last:
            return None
        return {"last": self.last, "questions": [dict(row) for row in self._rows.values()]}

    def load(self, dumped: Any) -> None:
        """Restore the questions from the result of ``dump``."""
        rows = [] if dumped is None else dumped["questions"]
        self.last = 0 if dumped is None else dumped["last"]
        self._rows = {row["question"]: dict(row) for row in rows}

"""The memories that each session has received, so that none is injected twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from memlab.kernel.journal import Body, Event
from memlab.kernel.state import (
    AGENT,
    FLAG,
    MEMORY_ID,
    NUMBER,
    PROJECT,
    SESSION,
    EventType,
    Field,
    Projection,
    list_field,
)

_MAX_SESSIONS = 10_000
"""Maximum number of stored sessions.

The latest sessions are kept, because a session ends within days.
"""

_Session = tuple[str, str, str]


class Injected(Projection):
    """The memories that an agent received in each session of a project.

    An edit in place that changes the words of a prompt removes the memory from the list, so that it
    may be injected once more.
    """

    name = "injected"
    kinds = ("inject", "edit", "edit-frame")
    events = (
        EventType(
            "inject",
            "Memories were written into an agent's prompt.",
            {
                "decision": NUMBER,
                "ids": MEMORY_ID,
                "tokens": NUMBER,
                "budget": NUMBER,
                "session": SESSION,
                "agent": AGENT,
                "project": PROJECT,
                "searched": FLAG,
            },
        ),
    )
    adds: ClassVar[Mapping[str, Mapping[str, Field]]] = {
        "edit": {"again": MEMORY_ID},
        "edit-frame": {"again": MEMORY_ID},
    }
    dumped = list_field(AGENT, PROJECT, SESSION, MEMORY_ID)
    exported = False

    def __init__(self) -> None:
        self._ids: dict[_Session, list[int]] = {}

    def ids(
        self, *, agent: str | None, project: str | None, session: str | None
    ) -> tuple[int, ...]:
        """Return the ids of the memories injected into a session, in order of injection."""
        return (
            ()
            if session is None
            else tuple(self._ids.get((agent or "", project or "", session), ()))
        )

    def fold(self, event: Event) -> None:
        """Record injected memories ("inject" event) or forget edited memories."""
        body = event.body
        if event.kind != "inject":
            edited = frozenset(body.get("again", ()))
            if edited:
                self._ids = {
                    key: [id for id in ids if id not in edited] for key, ids in self._ids.items()
                }
            return
        if body.get("session") is None:
            return
        key = (body.get("agent") or "", body.get("project") or "", body["session"])
        # The session moves to the end, because the first one is removed at the maximum.
        self._ids[key] = [*self._ids.pop(key, ()), *body["ids"]]
        if len(self._ids) > _MAX_SESSIONS:
            del self._ids[next(iter(self._ids))]

    def shows(self, kind: str, body: Body, *, viewer: str, seen: bool) -> bool | None:
        """Return False for events of agents other than the viewer, otherwise None."""
        return None if body.get("agent") in (None, viewer) else False

    def dump(self) -> Any:
        """Return a list of agent, project, session and ids for each session."""
        return [[*key, ids] for key, ids in self._ids.items()]

    def load(self, dumped: Any) -> None:
        """Restore the sessions from the result of ``dump``."""
        self._ids = {
            (agent, project, session): list(ids) for agent, project, session, ids in dumped
        }

"""Google ADK's ``BaseMemoryService`` on a lab.

    from memlab.io.adapters.google_adk import LabMemoryService
    runner = Runner(..., memory_service=LabMemoryService(memlab.open("agent.memlab")))

| ADK | in the lab |
|---|---|
| ``add_session_to_memory``, ``add_events_to_memory`` | ``remember``: a turn for each new event with a text |
| ``add_memory`` | ``remember``: a memory for each entry |
| ``search_memory`` | ``recall`` among the memories of the app and user: logged |
| ``delete_memory`` | ``delete``: excluded from recall; ``lab.restore`` restores it |

The thoughts of a model, and calls and results of tools, are not stored. A deleted event is not stored again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from memlab.errors import InputError, require_extra
from memlab.io.adapters._records import (
    Path,
    Record,
    Records,
    Write,
    build_write,
    clean_text,
    decode_value,
    encode_value,
)
from memlab.kernel.base.arguments import checked
from memlab.subjects.lab import Lab

with require_extra("google-adk", "memlab.io.adapters.google_adk"):
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.genai import types

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

    from memlab.kernel.recall import Hits


class LabMemoryService(BaseMemoryService):
    """Memory service of ADK runners whose memories are in a lab.

    Each app and user sees only its own memories.

    Parameters
    ----------
    lab
        The lab.
    name
        Name that separates these memories from the memories of other services in the lab.
    limit
        Maximum number of memories that a search returns.
    project
        Project of each memory. Searches are limited to this project.

    Examples
    --------
    >>> Runner(agent=agent, app_name="chat", session_service=sessions,
    ...        memory_service=LabMemoryService(lab))                                       # doctest: +SKIP
    """

    @checked
    def __init__(
        self, lab: Lab, *, name: str = "adk", limit: int = 10, project: str | None = None
    ) -> None:
        if limit < 1:
            raise InputError(f"limit must be at least 1, not {limit}.")
        self._records = Records(lab, name, project=project)
        self._limit = limit

    @property
    def hits(self) -> Hits | None:
        """The hits of the last search, for ``lab.feedback``; None before the first search."""
        return self._records.hits

    async def add_session_to_memory(self, session: Session) -> None:
        """Store those events of a session that the lab does not contain yet.

        Parameters
        ----------
        session
            The session, at any time of its life.
        """
        await self.add_events_to_memory(
            app_name=session.app_name,
            user_id=session.user_id,
            events=session.events,
            session_id=session.id,
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store those events that the lab does not contain yet.

        Parameters
        ----------
        app_name, user_id
            The app and the user whose memories they are.
        events
            The events; those without a text are left out.
        session_id
            Their session.
        custom_metadata
            Metadata that is stored with each event and returned by searches.
        """
        about = dict(custom_metadata or {})
        writes = []
        for event in events:
            text = _read_text(event.content)
            if text:
                writes.append(
                    _build_turn(
                        (app_name, user_id, event.id),
                        text,
                        author=event.author,
                        created=datetime.fromtimestamp(event.timestamp, UTC),
                        about=about,
                        session=session_id,
                        kind="turn",
                    )
                )
        await asyncio.to_thread(self._append_new, writes, chain=True)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store memories of ADK, without extraction or merging.

        Parameters
        ----------
        app_name, user_id
            The app and the user whose memories they are.
        memories
            The memories; a memory without an id, or with a new id, is added.
        custom_metadata
            Metadata that is stored with each memory, next to the memory's own metadata.

        Raises
        ------
        InputError
            If a memory has no text, or a timestamp that is not in ISO format.
        """
        writes = []
        for number, entry in enumerate(memories):
            text = _read_text(entry.content)
            if not text:
                raise InputError(f"memories[{number}] has no text. Leave it out.")
            writes.append(
                _build_turn(
                    (app_name, user_id, entry.id or uuid4().hex),
                    text,
                    author=entry.author,
                    created=_read_time(entry.timestamp, number),
                    about={**(custom_metadata or {}), **entry.custom_metadata},
                    session=None,
                    kind="observation",
                )
            )
        await asyncio.to_thread(self._append_new, writes, chain=False)

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Recall memories of a user.

        Parameters
        ----------
        app_name, user_id
            The app and the user whose memories are searched.
        query
            What to search for.

        Returns
        -------
        SearchMemoryResponse
            The memories, best first. Their metadata has the score and ``recall``, the number of the logged recall.
        """
        if not query.strip():
            return SearchMemoryResponse()
        return await asyncio.to_thread(self._recall_entries, app_name, user_id, query)

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Delete a memory of a user; ignore an id that the user does not have.

        Parameters
        ----------
        app_name, user_id
            The app and the user whose memory it is.
        memory_id
            Id of the memory, as searches return it.
        """
        if memory_id:
            path = (app_name, user_id, memory_id)
            await asyncio.to_thread(lambda: self._records.delete(self._records.get_all(path)))

    def _append_new(self, writes: Sequence[Write], *, chain: bool) -> None:
        """Store the records whose paths the lab has never contained, in one transaction."""
        with self._records.lock:
            new: dict[Path, Write] = {}
            for write in writes:
                if not self._records.versions(write.path):
                    new.setdefault(write.path, write)
            self._records.append(list(new.values()), chain=chain)

    def _recall_entries(self, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Recall the memories of a user, in the form that ADK expects."""
        below = self._records.select_below((app_name, user_id))
        results = self._records.recall(query, self._limit, below)
        recall = self._records.hits.decision if self._records.hits else None
        return SearchMemoryResponse(
            memories=[_build_entry(record, score, recall) for record, score in results]
        )


def _read_text(content: types.Content | None) -> str:
    """Join the texts of an ADK content, without the model's thoughts."""
    parts = (content.parts or []) if content is not None else []
    return "\n".join(
        part.text for part in parts if part.text and part.text.strip() and not part.thought
    )


def _read_time(timestamp: str | None, number: int) -> datetime | None:
    """Parse the ISO timestamp of a memory, or return None if there is none.

    A time without a time zone is read as UTC.
    """
    if timestamp is None:
        return None
    try:
        when = datetime.fromisoformat(timestamp)
    except ValueError as error:
        raise InputError(
            f"memories[{number}].timestamp is {timestamp[:40]!r}. Give a time in ISO format."
        ) from error
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def _build_turn(
    path: Path,
    text: str,
    *,
    author: str | None,
    created: datetime | None,
    about: Mapping[str, Any],
    session: str | None,
    kind: str,
) -> Write:
    """Build the record that stores an event or a memory of ADK."""
    value = encode_value({"author": author, "about": dict(about)}, "custom_metadata")
    fields: dict[str, Any] = {
        "kind": kind,
        "speaker": author or None,
        "session": session,
        "provenance": "user-stated" if author == "user" else "inferred",
    }
    if created is not None:
        fields["at"] = created
    return build_write(path, clean_text(text, "(no text)"), value, **fields)


def _build_entry(record: Record, score: float, recall: int | None) -> MemoryEntry:
    """Convert a recalled record to a memory entry of ADK."""
    value = decode_value(record.value or "{}")
    author = value.get("author")
    return MemoryEntry(
        id=record.path[-1],
        author=author,
        timestamp=record.created.isoformat(),
        content=types.Content(
            role="user" if author == "user" else "model", parts=[types.Part(text=record.text)]
        ),
        custom_metadata={**value.get("about", {}), "score": score, "recall": recall},
    )

"""Messages of a chat that was loaded, so that facts can be extracted of them: who speaks as "I".

Where one person talks with an assistant, "I" is the user; where several people talk, "I" is the speaker by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from memlab.reading import Message
from memlab.schema import role_of

__all__ = ["chats_of"]

_READ = ("turn", None)
"""Kinds of rows that were said; a memory of another kind is remembered already as what it is."""


def chats_of(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str | None, str | None], list[Message]]:
    """Return the messages of each session of some rows, in order.

    Parameters
    ----------
    rows
        Rows as ``remember_many`` takes them, with text and, where known, speaker, creator, session, project and at.

    Returns
    -------
    dict
        Messages by project and session; a person alone with an assistant, or alone, has no name in them.

    Examples
    --------
    >>> two = chats_of([{"text": "I moved", "speaker": "Ada"}, {"text": "So did I", "speaker": "Bob"}])
    >>> [(one.role, one.speaker) for one in two[None, None]]
    [('user', 'Ada'), ('user', 'Bob')]
    >>> one = chats_of([{"text": "I moved", "speaker": "Ada"}, {"text": "Nice!", "speaker": "assistant"}])
    >>> [(one.role, one.speaker) for one in one[None, None]]
    [('user', None), ('assistant', None)]
    """
    sessions: dict[tuple[str | None, str | None], list[tuple[str, str | None, Mapping[str, Any]]]] = {}
    people: dict[str | None, set[str]] = {}
    assistants: set[str | None] = set()
    for row in rows:
        if row.get("kind") not in _READ or not row.get("text"):
            continue
        speaker, project = row.get("speaker"), row.get("project")
        role = role_of(speaker, row.get("creator"))
        if role == "other":
            people.setdefault(project, set()).add(str(speaker).casefold())
        elif role == "assistant":
            assistants.add(project)
        name = speaker if role == "other" else None
        sessions.setdefault((project, row.get("session")), []).append(("user" if name else role, name, row))
    found = {}
    for (project, session), said in sessions.items():
        alone = len(people.get(project, ())) == 1 and project in assistants
        found[project, session] = [
            Message(role, row["text"], row.get("at"), speaker=None if alone else name) for role, name, row in said
        ]
    return found

"""Messages of a chat that was loaded, so that facts can be extracted of them: who speaks as "I".

Where one person talks with an assistant, "I" is the user; where several people talk, "I" is the speaker by name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from memlab.io.formats import Message
from memlab.kernel.base.clock import to_micros
from memlab.kernel.schema import role_of

__all__ = ["chats_of", "unread"]

_READ = ("turn", None)
"""Kinds of rows that were said; a memory of another kind is remembered already as what it is."""


def chats_of(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str | None, str | None], list[Message]]:
    """Return the messages of each session of some rows, in order.

    Parameters
    ----------
    rows
        Rows as ``remember`` takes them, with text and, where known, speaker, creator, session, project and at.

    Returns
    -------
    dict
        Messages by project and session; a person alone with an assistant, or alone, has no name in them. The ``place``
        of a message is the number of its row.

    Examples
    --------
    >>> two = chats_of([{"text": "I moved", "speaker": "Ada"}, {"text": "So did I", "speaker": "Bob"}])
    >>> [(one.role, one.speaker) for one in two[None, None]]
    [('user', 'Ada'), ('user', 'Bob')]
    >>> one = chats_of([{"text": "I moved", "speaker": "Ada"}, {"text": "Nice!", "speaker": "assistant"}])
    >>> [(one.role, one.speaker) for one in one[None, None]]
    [('user', None), ('assistant', None)]
    """
    sessions: dict[tuple[str | None, str | None], list[tuple[str, str | None, int, Mapping[str, Any]]]] = {}
    people: dict[str | None, set[str]] = {}
    assistants: set[str | None] = set()
    for place, row in enumerate(rows):
        if row.get("kind") not in _READ or not row.get("text"):
            continue
        speaker, project = row.get("speaker"), row.get("project")
        role = role_of(speaker, row.get("creator"))
        if role == "other":
            people.setdefault(project, set()).add(str(speaker).casefold())
        elif role == "assistant":
            assistants.add(project)
        name = speaker if role == "other" else None
        sessions.setdefault((project, row.get("session")), []).append(("user" if name else role, name, place, row))
    found = {}
    for (project, session), said in sessions.items():
        alone = len(people.get(project, ())) == 1 and project in assistants
        found[project, session] = [
            Message(role, row["text"], row.get("at"), speaker=None if alone else name, place=place)
            for role, name, place, row in said
        ]
    return found


def unread(
    messages: Sequence[Message], fresh: Collection[int], tellings: Collection[tuple[int, str]]
) -> frozenset[int]:
    """Return the numbers of the messages of a session that extraction has not read.

    A session is read from its beginning and stored in one transaction, so what comes before a message of which
    something was extracted was read too. A load that was killed leaves the messages after it unread.

    Parameters
    ----------
    messages
        The messages of the session, in order.
    fresh
        The numbers of those that the lab did not hold before.
    tellings
        The instant, in microseconds UTC, and the quoted words of all that was extracted of the session so far.

    Returns
    -------
    frozenset
        The fresh messages, and those after the last of which something was extracted. All where nothing was.

    Examples
    --------
    >>> said = [Message("user", "I moved to Oslo"), Message("user", "I bought a boat"), Message("user", "Hm")]
    >>> sorted(unread(said, {2}, [(0, "I moved to Oslo")]))
    [1, 2]
    """
    if not tellings:
        return frozenset(range(len(messages)))
    last = len(messages) - 1
    for number in range(last, -1, -1):
        message = messages[number]
        at = None if message.at is None else to_micros(message.at)
        words = " ".join(message.text.split())
        if number not in fresh and any(at in (None, when) and said in words for when, said in tellings):
            last = number
            break
    return frozenset(number for number in range(len(messages)) if number > last or number in fresh)

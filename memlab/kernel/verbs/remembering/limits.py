"""What an agent may write: so many memories a session, of so many bytes. Turns of a conversation do not count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from memlab.errors import InputError, PrivacyError
from memlab.kernel.policies import Pack
from memlab.kernel.privacy import ignored_by
from memlab.kernel.schema import MEMORY
from memlab.kernel.state import State
from memlab.kernel.verbs.gate import is_agent

__all__ = ["check_bytes", "check_files", "check_sessions"]


def check_files(pack: Pack, columns: Mapping[str, Sequence[Any]]) -> None:
    """PrivacyError for a file that its project leaves out, where the setting ``ignored-files`` asks for it."""
    if not pack.settings["ignored-files"]:
        return
    for row, paths in enumerate(columns.get("files", ())):
        for path in paths or ():
            if (rules := ignored_by(path)) is not None:
                raise PrivacyError(
                    f'Row {row}, field files: "{path}" is left out by {rules}, so no memory points to it under the '
                    f"pack {pack.name} (setting ignored-files). Leave it out of files."
                )


def check_bytes(pack: Pack, columns: Mapping[str, list[Any]], texts: Sequence[str]) -> None:
    """InputError if an agent's memory has more bytes than the setting ``write-bytes``; 0 is any number."""
    most = int(pack.settings["write-bytes"])
    for row in _written_by_agents(columns, len(texts)) if most else ():
        size = len(texts[row].encode())
        if size > most:
            raise InputError(
                f"Row {row}: {columns['creator'][row]} gives {size:,} bytes, and a memory of an agent has at most "
                f"{most:,} under the pack {pack.name} (setting write-bytes). Shorten or split it; a log of turns is "
                'stored whole with kind="turn".'
            )


def check_sessions(state: State, pack: Pack, columns: Mapping[str, list[Any]], count: int) -> None:
    """InputError if an agent writes more memories in a session than the setting ``session-writes``; 0 is any number.

    Counted are what is about to be stored and what the session has of the agent; without a session nothing is.
    """
    most = int(pack.settings["session-writes"])
    if not most:
        return
    nothing = [None] * count
    projects, sessions = columns.get("project", nothing), columns.get("session", nothing)
    fresh: dict[tuple[str, str | None, str], int] = {}
    for row in _written_by_agents(columns, count):
        if sessions[row] is not None:
            place = columns["creator"][row], projects[row], sessions[row]
            fresh[place] = fresh.get(place, 0) + 1
    for (creator, project, session), more in fresh.items():
        written = _written(state, creator, project, session)
        if written + more > most:
            raise InputError(
                f'{creator} has written {written:,} memories in session "{session}" and gives {more:,} more; the pack '
                f"{pack.name} allows {most:,} (setting session-writes). Keep what matters, or go on in the next "
                'session; a log of turns is stored whole with kind="turn".'
            )


def _written_by_agents(columns: Mapping[str, list[Any]], count: int) -> list[int]:
    creators = columns.get("creator")
    if creators is None:
        return []
    kinds = columns.get("kind", [MEMORY["kind"].default] * count)
    return [row for row in range(count) if is_agent(creators[row]) and kinds[row] != "turn"]


def _written(state: State, creator: str, project: str | None, session: str) -> int:
    """How many memories of a session an agent has written, whatever became of them."""
    names = state.names
    place = state.contexts.code(f"{project or ''}\x1f{session}")
    found = (state.contexts.codes == place) & (names["creator"].codes == names["creator"].code(creator))
    return int(np.count_nonzero(found & (names["kind"].codes != names["kind"].code("turn"))))

"""The memories of one call on their way into a lab: a row each, filled in as the pack says, as an event's body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError, PrivacyError
from memlab.kernel.hooks import list_hooks
from memlab.kernel.policies import Pack
from memlab.kernel.privacy import Finding, Screened, find_ignore_file
from memlab.kernel.schema import MEMORY, infer_role
from memlab.kernel.state import (
    EVERYONE,
    NOBODY,
    State,
    compact_columns,
    entity_key,
    hidden_rows,
    normalize_entity_name,
    prefix_speaker,
)
from memlab.kernel.verbs.fact_rows import build_mention_edges, get_entities
from memlab.kernel.verbs.gate import is_agent

__all__ = [
    "Describing",
    "Rows",
    "chained",
    "check_files",
    "describing",
    "event_body",
    "names_in_texts",
    "visibility_of",
]


@dataclass
class Rows:
    """Memories that are about to be stored.

    Attributes
    ----------
    columns
        Their checked values by field, without the text. A field that no row has is missing.
    given
        What the caller gave by field.
    texts
        Their texts, without secrets.
    findings
        What was taken out of each text.
    vectors
        Their vectors, empty until they are embedded.
    """

    columns: dict[str, list[Any]]
    given: Mapping[str, Sequence[Any]]
    texts: list[Screened]
    findings: list[tuple[Finding, ...]]
    vectors: NDArray[np.int8] = field(default_factory=lambda: np.empty((0, 0), dtype=np.int8))

    def __len__(self) -> int:
        return len(self.texts)

    def column(self, name: str) -> Sequence[Any]:
        """Return a field of every row, None where it is not known."""
        return self.columns.get(name) or [None] * len(self)

    def said(self, row: int) -> str:
        """Return the text of a row with its speaker, as it is embedded."""
        return prefix_speaker(self.texts[row], self.column("speaker")[row])

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Leave out all other rows."""
        if kept.all():
            return
        rows = np.flatnonzero(kept).tolist()
        self.columns = {
            name: [values[row] for row in rows] for name, values in self.columns.items()
        }
        self.given = {name: [values[row] for row in rows] for name, values in self.given.items()}
        self.texts = [self.texts[row] for row in rows]
        self.findings = [self.findings[row] for row in rows]
        self.vectors = self.vectors[rows] if len(self.vectors) else self.vectors

    def missing(self, name: str) -> list[int]:
        """Return the rows for which the caller gave no value of a field."""
        given = self.given.get(name)
        return [row for row in range(len(self)) if given is None or given[row] is None]

    def fill(self, name: str, values: Mapping[int, Any]) -> None:
        """Set a field of some rows; the others keep their value, or get the default."""
        if values:
            column = self.columns.setdefault(name, [MEMORY[name].default] * len(self))
            for row, value in values.items():
                column[row] = value

    def fill_from_pack(self, pack: Pack) -> None:
        """Fill in what the caller left open: the weight of feelings, confidence, strength, visibility."""
        kinds = self.column("kind")
        feelings = [row for row in self.missing("emotional_weight") if kinds[row] == "feeling"]
        if feelings:
            weights = {row: describing().emotional_weight(self.texts[row]) for row in feelings}
            self.fill(
                "emotional_weight", {row: weight for row, weight in weights.items() if weight}
            )
        for name in ("confidence", "strength"):
            first = pack.number(f"initial-{name}")
            if first != MEMORY[name].default:
                self.fill(name, dict.fromkeys(self.missing(name), first))
        if "creator" in self.columns:
            creators, default = self.columns["creator"], MEMORY["visibility"].default
            seen_by = {
                row: visibility_of(creators[row], pack) for row in self.missing("visibility")
            }
            if str(pack.settings["visibility"]) != default:
                self.fill(
                    "visibility", {row: word for row, word in seen_by.items() if word is not None}
                )

    def infer(self, pack: Pack) -> None:
        """Add tags as ``infer-tags`` says, and summaries where ``write-summary`` is set; turns get none.

        Tags that are given stay first, and a summary that is given stays.
        """
        rows = [row for row, kind in enumerate(self.column("kind")) if kind != "turn"]
        how = pack.settings["infer-tags"]
        if how != "off" and rows:
            tags = [tuple(given or ()) for given in self.column("tags")]
            files, subjects, objects = map(self.column, ("files", "subject", "object"))
            for row in rows:
                text = self.texts[row] if how == "all" else ""
                entities = (subjects[row], objects[row]) if how == "all" else ()
                inferred = describing().tags_of(text, files[row] or (), entities)
                tags[row] = tuple(dict.fromkeys([*tags[row], *inferred]))
            if any(tags):
                self.columns["tags"] = [list(given) for given in tags]
        if pack.settings["write-summary"] and rows:
            summaries, steps = list(self.column("summary")), self.column("steps")
            for row in rows:
                if not steps[row]:  # a procedure is told by its steps
                    summaries[row] = summaries[row] or describing().summary_of(self.texts[row])
            self.columns["summary"] = summaries

    def check_bytes(self, pack: Pack) -> None:
        """Refuse an agent's memory of more bytes than the setting ``write-bytes``; 0 is any number."""
        most = int(pack.settings["write-bytes"])
        for row in self._written_by_agents() if most else ():
            size = len(self.texts[row].encode())
            if size > most:
                raise InputError(
                    f"Row {row}: {self.columns['creator'][row]} gives {size:,} bytes, and a memory of an agent has at "
                    f"most {most:,} under the pack {pack.name} (setting write-bytes). Shorten or split it; a log of "
                    'turns is stored whole with kind="turn".'
                )

    def check_sessions(self, state: State, pack: Pack) -> None:
        """Refuse more memories of an agent in a session than the setting ``session-writes``; 0 is any number.

        Counted are what is about to be stored and what the session has of the agent; without a session nothing is.
        """
        most = int(pack.settings["session-writes"])
        if not most:
            return
        projects, sessions = self.column("project"), self.column("session")
        fresh: dict[tuple[str, str | None, str], int] = {}
        for row in self._written_by_agents():
            if sessions[row] is not None:
                place = self.columns["creator"][row], projects[row], sessions[row]
                fresh[place] = fresh.get(place, 0) + 1
        for (creator, project, session), more in fresh.items():
            written = _count_written(state, creator, project, session)
            if written + more > most:
                raise InputError(
                    f'{creator} has written {written:,} memories in session "{session}" and gives {more:,} more; the '
                    f"pack {pack.name} allows {most:,} (setting session-writes). Keep what matters, or go on in the "
                    'next session; a log of turns is stored whole with kind="turn".'
                )

    def _written_by_agents(self) -> list[int]:
        kinds = self.columns.get("kind", [MEMORY["kind"].default] * len(self))
        creators = self.column("creator")
        return [row for row in range(len(self)) if is_agent(creators[row]) and kinds[row] != "turn"]


class Describing(Protocol):
    """What the words of a text give a memory; see ``memlab.subjects.reading.tags``."""

    def tags_of(
        self, text: str, files: Sequence[str], entities: Sequence[str | None] = ()
    ) -> list[str]:
        """Return tags of a text, of paths and of names."""

    def summary_of(self, text: str) -> str:
        """Return a summary in the text's own words."""

    def emotional_weight(self, text: str) -> float | None:
        """Return how much feeling a text carries, 0-100; None where no word of feeling stands in it."""

    def proper_names(self, text: str) -> list[str]:
        """Return the names that a text mentions."""


def describing() -> Describing:
    """Return what reads texts for tags, summaries, feelings and names: the last declared at "describe-text"."""
    read: Describing = list_hooks("describe-text")[-1]()
    return read


def check_files(pack: Pack, columns: Mapping[str, Sequence[Any]]) -> None:
    """Refuse a file that its project leaves out, where the setting ``ignored-files`` asks for it."""
    if not pack.settings["ignored-files"]:
        return
    for row, paths in enumerate(columns.get("files", ())):
        for path in paths or ():
            rules = find_ignore_file(path)
            if rules is not None:
                raise PrivacyError(
                    f'Row {row}, field files: "{path}" is left out by {rules}, so no memory points to it under the '
                    f"pack {pack.name} (setting ignored-files). Leave it out of files."
                )


def visibility_of(creator: str | None, pack: Pack) -> str | None:
    """Return the visibility of what a creator says nothing else of; None without a creator.

    What a person keeps is private where the pack says "by-creator", and what an agent keeps is the project's.
    """
    how = str(pack.settings["visibility"])
    if creator is None or how != "by-creator":
        return None if creator is None else how
    return str(MEMORY["visibility"].default) if is_agent(creator) else "private"


def names_in_texts(
    state: State, pack: Pack, columns: Mapping[str, Sequence[Any]], texts: Sequence[str]
) -> dict[int, list[str]]:
    """Return by row the names of entities in texts, as ``infer-entities`` says; of turns and facts none.

    A name that an entity bears stands for that entity; a speaker does not mention themselves. What an assistant writes
    names what is known already, and makes no new entity.
    """
    if pack.settings["infer-entities"] == "off":
        return {}
    nothing: list[Any] = [None] * len(texts)
    kinds, predicates = columns.get("kind", nothing), columns.get("predicate", nothing)
    speakers, entities = columns.get("speaker", nothing), get_entities(state)
    found: dict[int, list[str]] = {}
    for row, text in enumerate(texts):
        if kinds[row] == "turn" or predicates[row] is not None:
            continue
        speaker = speakers[row]
        by_assistant = speaker is not None and infer_role(speaker, None) == "assistant"
        named = {name: entities.canonical_name(name) for name in describing().proper_names(text)}
        names = [
            known or normalize_entity_name(name)
            for name, known in named.items()
            if known or not by_assistant
        ]
        own = None if speaker is None else entity_key(speaker)
        kept = [name for name in dict.fromkeys(names) if entity_key(name) != own]
        if kept:
            found[row] = kept
    return found


def event_body(
    state: State,
    columns: Mapping[str, list[Any]],
    first: int,
    count: int,
    *,
    chain: bool,
    named_in: Mapping[int, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Return the body of the event that adds ``count`` memories from the id ``first`` on.

    ``named_in`` has by row the names in its text.
    """
    body: dict[str, Any] = {
        "first": first,
        "count": count,
        "columns": compact_columns(columns) if count else {},
    }
    body |= build_mention_edges(columns, range(first, first + count), named_in).body()
    if chain:
        body["edges"] = chained(state, columns, first, count)
    return body


def chained(
    state: State, columns: Mapping[str, Sequence[Any]], first: int, count: int
) -> dict[str, Any]:
    """Return ``next`` edges to new memories, each from the last of its session that whoever sees it sees."""
    nothing = [None] * count
    fresh: dict[tuple[str | None, str], list[tuple[int, str]]] = {}
    source, target = [], []
    fields = (
        columns.get(name, nothing) for name in ("project", "session", "creator", "visibility")
    )
    for id, (project, session, creator, visibility) in enumerate(zip(*fields, strict=True), first):
        if session is None:
            continue
        audience = creator or NOBODY if visibility == "private" else EVERYONE
        come = fresh.setdefault((project, session), [])
        before = next((id for id, whose in reversed(come) if whose in (EVERYONE, audience)), None)
        before = _last_of(state, project, session, audience) if before is None else before
        if before is not None:
            source.append(before)
            target.append(id)
        come.append((id, audience))
    return {"source": source, "target": target, "relation": "next", "weight": 1.0}


def _last_of(state: State, project: str | None, session: str, audience: str) -> int | None:
    """Return the id of the newest memory of a session that an audience sees."""
    last = state.last_in_session(project, session)
    hidden = None if last is None else hidden_rows(state, audience)
    if hidden is None or last is None or not hidden[last - 1]:
        return last
    rows = np.flatnonzero((state.contexts.codes == state.contexts.codes[last - 1]) & ~hidden)
    return int(rows[-1]) + 1 if len(rows) else None


def _count_written(state: State, creator: str, project: str | None, session: str) -> int:
    """Return how many memories of a session an agent has written, whatever became of them."""
    names = state.names
    place = state.contexts.code(f"{project or ''}\x1f{session}")
    found = (state.contexts.codes == place) & (
        names["creator"].codes == names["creator"].code(creator)
    )
    return int(np.count_nonzero(found & (names["kind"].codes != names["kind"].code("turn"))))

"""New memories of one call: rows, values filled in by the pack, the body of their event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from memlab.errors import InputError, PrivacyError
from memlab.kernel.base.arrays import Components, Flags
from memlab.kernel.hooks import list_hooks
from memlab.kernel.policies import Pack
from memlab.kernel.privacy import Finding, Screened, find_ignore_file
from memlab.kernel.schema import MEMORY, infer_role
from memlab.kernel.state import (
    EVERYONE,
    NOBODY,
    PREFIXED,
    State,
    add_prefix,
    compact_columns,
    entity_key,
    get_prefix,
    hidden_rows,
    normalize_entity_name,
)
from memlab.kernel.verbs.fact_rows import build_mention_edges, get_entities
from memlab.kernel.verbs.gate import is_agent


@dataclass
class Rows:
    """Memories that are about to be stored.

    Attributes
    ----------
    columns
        Checked values by field, without the text. A field that no row has is missing.
    given
        The caller's values by field.
    texts
        The texts, without secrets.
    findings
        The secrets that were removed from each text.
    vectors
        The vectors; empty until the texts are embedded.
    """

    columns: dict[str, list[Any]]
    given: Mapping[str, Sequence[Any]]
    texts: list[Screened]
    findings: list[tuple[Finding, ...]]
    vectors: Components = field(default_factory=lambda: np.empty((0, 0), dtype=np.int8))

    def __len__(self) -> int:
        return len(self.texts)

    def column(self, name: str) -> Sequence[Any]:
        """Return the values of a field, one per row, or None where the value is unknown."""
        return self.columns.get(name) or [None] * len(self)

    def embedded_text(self, row: int) -> str:
        """Return the text of a row in the form that is embedded, with its speaker or title."""
        prefix = get_prefix(*(self.column(name)[row] for name in PREFIXED))
        return add_prefix(self.texts[row], prefix)

    def keep(self, mask: Flags) -> None:
        """Keep only the rows whose mask value is True."""
        if mask.all():
            return
        rows = np.flatnonzero(mask).tolist()
        self.columns = {
            name: [values[row] for row in rows] for name, values in self.columns.items()
        }
        self.given = {name: [values[row] for row in rows] for name, values in self.given.items()}
        self.texts = [self.texts[row] for row in rows]
        self.findings = [self.findings[row] for row in rows]
        self.vectors = self.vectors[rows] if len(self.vectors) else self.vectors

    def missing(self, name: str) -> list[int]:
        """Return the rows for which the caller gave no value of a field."""
        values = self.given.get(name)
        return [row for row in range(len(self)) if values is None or values[row] is None]

    def fill(self, name: str, values: Mapping[int, Any]) -> None:
        """Set a field of some rows; other rows keep their value or get the default."""
        if values:
            column = self.columns.setdefault(name, [MEMORY[name].default] * len(self))
            for row, value in values.items():
                column[row] = value

    def fill_from_pack(self, pack: Pack) -> None:
        """Fill in emotional weight, confidence, strength and visibility where missing."""
        # Defaults are not written, so that events stay short.
        kinds = self.column("kind")
        feelings = [row for row in self.missing("emotional_weight") if kinds[row] == "feeling"]
        if feelings:
            weights = {row: get_describer().emotional_weight(self.texts[row]) for row in feelings}
            self.fill(
                "emotional_weight", {row: weight for row, weight in weights.items() if weight}
            )
        for name in ("confidence", "strength"):
            initial = pack.number(f"initial-{name}")
            if initial != MEMORY[name].default:
                self.fill(name, dict.fromkeys(self.missing(name), initial))
        if "creator" in self.columns:
            creators, default = self.columns["creator"], MEMORY["visibility"].default
            visibilities = {
                row: default_visibility(creators[row], pack) for row in self.missing("visibility")
            }
            if str(pack.settings["visibility"]) != default:
                self.fill(
                    "visibility",
                    {row: word for row, word in visibilities.items() if word is not None},
                )

    def infer(self, pack: Pack) -> None:
        """Infer tags (setting ``infer-tags``) and summaries (setting ``write-summary``).

        Turns get neither. Inferred tags follow the caller's tags, and the caller's summaries are kept.
        """
        # Summaries come after tags, because the order of columns is part of the event.
        rows = [row for row, kind in enumerate(self.column("kind")) if kind != "turn"]
        mode = pack.settings["infer-tags"]
        if mode != "off" and rows:
            tags = [tuple(row_tags or ()) for row_tags in self.column("tags")]
            files, subjects, objects = map(self.column, ("files", "subject", "object"))
            for row in rows:
                text = self.texts[row] if mode == "all" else ""
                entities = (subjects[row], objects[row]) if mode == "all" else ()
                inferred = get_describer().tags_of(text, files[row] or (), entities)
                tags[row] = tuple(dict.fromkeys([*tags[row], *inferred]))
            if any(tags):
                self.columns["tags"] = [list(row_tags) for row_tags in tags]
        if pack.settings["write-summary"] and rows:
            summaries, steps = list(self.column("summary")), self.column("steps")
            for row in rows:
                if not steps[row]:  # the steps of a procedure are its summary
                    summaries[row] = summaries[row] or get_describer().summary_of(self.texts[row])
            self.columns["summary"] = summaries

    def check_bytes(self, pack: Pack) -> None:
        """Refuse agents' memories that are longer than the setting ``write-bytes``."""
        maximum = int(pack.settings["write-bytes"])
        for row in self._written_by_agents() if maximum else ():
            size = len(self.texts[row].encode())
            if size > maximum:
                raise InputError(
                    f"Row {row}: the text of {self.columns['creator'][row]} has {size:,} "
                    f"bytes, but the pack {pack.name} allows agents at most {maximum:,} "
                    "per memory (setting write-bytes). Shorten or split it; turns of a "
                    'log are stored whole with kind="turn".'
                )

    def check_sessions(self, state: State, pack: Pack) -> None:
        """Refuse more agents' memories in a session than the setting ``session-writes`` allows.

        New and stored memories of the session are counted. Memories without a session are not
        limited.
        """
        maximum = int(pack.settings["session-writes"])
        if not maximum:
            return
        projects, sessions = self.column("project"), self.column("session")
        fresh: dict[tuple[str, str | None, str], int] = {}
        for row in self._written_by_agents():
            if sessions[row] is not None:
                key = self.columns["creator"][row], projects[row], sessions[row]
                fresh[key] = fresh.get(key, 0) + 1
        for (creator, project, session), added in fresh.items():
            written = _count_written(state, creator, project, session)
            if written + added > maximum:
                raise InputError(
                    f'{creator} has written {written:,} memories in session "{session}" and gives {added:,} more; the '
                    f"pack {pack.name} allows {maximum:,} (setting session-writes). Select the important ones, or use "
                    'another session; turns of a log are stored whole with kind="turn".'
                )

    def _written_by_agents(self) -> list[int]:
        """Return the rows that agents write, except conversation turns."""
        kinds = self.columns.get("kind", [MEMORY["kind"].default] * len(self))
        creators = self.column("creator")
        return [row for row in range(len(self)) if is_agent(creators[row]) and kinds[row] != "turn"]


class Describer(Protocol):
    """Functions that derive tags, summaries, emotional weight and names from a text.

    ``memlab.subjects.reading.tags`` implements it.
    """

    def tags_of(
        self, text: str, files: Sequence[str], entities: Sequence[str | None] = ()
    ) -> list[str]:
        """Infer tags from a text, its file paths and its entity names."""

    def summary_of(self, text: str) -> str:
        """Return a summary of a text that uses the text's own words."""

    def emotional_weight(self, text: str) -> float | None:
        """Return the emotional weight of a text, 0 to 100, or None without emotional words."""

    def proper_names(self, text: str) -> list[str]:
        """Return the names that a text mentions."""


def get_describer() -> Describer:
    """Return the describer, built by the last declared hook "describe-text"."""
    describer: Describer = list_hooks("describe-text")[-1]()
    return describer


def check_files(pack: Pack, columns: Mapping[str, Sequence[Any]]) -> None:
    """Raise PrivacyError for a file that its project ignores, if the pack enables this check."""
    if not pack.settings["ignored-files"]:
        return
    for row, paths in enumerate(columns.get("files", ())):
        for path in paths or ():
            rules = find_ignore_file(path)
            if rules is not None:
                raise PrivacyError(
                    f'Row {row}, field files: "{path}" is ignored by {rules}, so the pack {pack.name} admits no '
                    "memory with it (setting ignored-files). Leave it out of files."
                )


def default_visibility(creator: str | None, pack: Pack) -> str | None:
    """Return the default visibility of a creator's memory, or None without a creator.

    Under "by-creator", a person's memory is private and an agent's is visible to its project.
    """
    setting = str(pack.settings["visibility"])
    if creator is None or setting != "by-creator":
        return None if creator is None else setting
    return str(MEMORY["visibility"].default) if is_agent(creator) else "private"


def find_names(
    state: State, pack: Pack, columns: Mapping[str, Sequence[Any]], texts: Sequence[str]
) -> dict[int, list[str]]:
    """Return the entity names in each text, by row (setting ``infer-entities``).

    Turns and facts are not searched. A name or alias of an entity becomes its canonical name. The speaker's own name is
    left out. In texts of an assistant, only names of existing entities count.
    """
    if pack.settings["infer-entities"] == "off":
        return {}
    nothing: list[Any] = [None] * len(texts)
    kinds, predicates = columns.get("kind", nothing), columns.get("predicate", nothing)
    speakers, entities = columns.get("speaker", nothing), get_entities(state)
    by_row: dict[int, list[str]] = {}
    for row, text in enumerate(texts):
        if kinds[row] == "turn" or predicates[row] is not None:
            continue
        speaker = speakers[row]
        by_assistant = speaker is not None and infer_role(speaker, None) == "assistant"
        canonical_names = {
            name: entities.canonical_name(name) for name in get_describer().proper_names(text)
        }
        names = [
            canonical or normalize_entity_name(name)
            for name, canonical in canonical_names.items()
            if canonical or not by_assistant
        ]
        own = None if speaker is None else entity_key(speaker)
        mentioned_names = [name for name in dict.fromkeys(names) if entity_key(name) != own]
        if mentioned_names:
            by_row[row] = mentioned_names
    return by_row


def build_event_body(
    state: State,
    columns: Mapping[str, list[Any]],
    first: int,
    count: int,
    *,
    chain: bool,
    named_in: Mapping[int, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Build the event body that adds ``count`` memories with ids from ``first``.

    ``named_in`` maps a row to the names in its text.
    """
    body: dict[str, Any] = {
        "first": first,
        "count": count,
        "columns": compact_columns(columns) if count else {},
    }
    body |= build_mention_edges(columns, range(first, first + count), named_in).body()
    if chain:
        body["edges"] = make_chain(state, columns, first, count)
    return body


def make_chain(
    state: State, columns: Mapping[str, Sequence[Any]], first: int, count: int
) -> dict[str, Any]:
    """Return ``next`` edges to new memories from their predecessors in the session.

    The predecessor is the newest memory of the session that everybody who sees the new one sees too.
    """
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
        earlier = fresh.setdefault((project, session), [])
        before = next(
            (id for id, seen_by in reversed(earlier) if seen_by in (EVERYONE, audience)), None
        )
        before = _find_last(state, project, session, audience) if before is None else before
        if before is not None:
            source.append(before)
            target.append(id)
        earlier.append((id, audience))
    return {"source": source, "target": target, "relation": "next", "weight": 1.0}


def _find_last(state: State, project: str | None, session: str, audience: str) -> int | None:
    """Return the id of the session's newest memory that an audience may see, or None if there is none."""
    last = state.last_in_session(project, session)
    hidden = None if last is None else hidden_rows(state, audience)
    if hidden is None or last is None or not hidden[last - 1]:
        return last
    rows = np.flatnonzero((state.contexts.codes == state.contexts.codes[last - 1]) & ~hidden)
    return int(rows[-1]) + 1 if len(rows) else None


def _count_written(state: State, creator: str, project: str | None, session: str) -> int:
    """Return the number of memories, except turns, that an agent wrote in a session."""
    names = state.names
    code = state.contexts.code(f"{project or ''}\x1f{session}")
    own = (state.contexts.codes == code) & (
        names["creator"].codes == names["creator"].code(creator)
    )
    return int(np.count_nonzero(own & (names["kind"].codes != names["kind"].code("turn"))))

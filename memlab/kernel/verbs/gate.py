"""Checks before reads and writes: names of agents, memory switched off, consent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import polars as pl

from memlab.errors import InputError, MemoryOff
from memlab.kernel.base.arrays import NO_ROWS, Ints
from memlab.kernel.base.clock import INSTANT, from_micros
from memlab.kernel.journal import Event
from memlab.kernel.privacy import refuse
from memlab.kernel.recall import Filters, Question
from memlab.kernel.state import (
    FLAG,
    PROJECT,
    REASON,
    TIME,
    WORD,
    EventType,
    Field,
    Projection,
    State,
    list_field,
    mapping_field,
    validate_text,
)
from memlab.kernel.storage.store import Store
from memlab.kernel.verbs.core import Core

# -- names of agents, as creators, sources and viewers ----------------------------------------------------------------


# Prefixes of creators that are programs.
_AGENT = "agent:"
_PROGRAMS = (_AGENT, "runner:")


def is_agent(creator: object) -> bool:
    """Return whether a creator is an agent or a runner, and not a person.

    >>> is_agent("agent:coder"), is_agent("runner:insights"), is_agent("user")
    (True, True, False)
    """
    return isinstance(creator, str) and creator.startswith(_PROGRAMS)


def format_agent(name: str) -> str:
    """Return an agent's name with the prefix that creators, sources and viewers have.

    >>> format_agent("coder"), format_agent("agent:coder")
    ('agent:coder', 'agent:coder')
    """
    return f"{_AGENT}{name.removeprefix(_AGENT)}"


def check_agent(agent: object) -> None:
    """Raise InputError for an invalid agent name, and PrivacyError for a name with a secret."""
    if not isinstance(agent, str) or not agent or len(agent) > 1000:
        raise InputError(
            f'An agent must be a name of 1 to 1000 characters, such as "coder", not {agent!r:.60}.'
        )
    refuse(validate_text(agent, where="agent"), "the name of an agent")


# -- memory switched off, for all or for a project --------------------------------------------------------------------

# While memory is off for a project, writes are refused and recalls omit the project. Under a pack whose setting
# ``consent`` is "needed", a project is off until a person has switched it on.

# Columns of ``Switches.frame`` and ``Consents.frame``.
_SCHEMA: dict[str, Any] = {"project": pl.String, "since": pl.Int64, "reason": pl.String}
_CONSENTS: dict[str, Any] = {
    "project": pl.String,
    "since": pl.Int64,
    "creator": pl.String,
    "reason": pl.String,
    "embedder": pl.String,
    "remote": pl.String,
}


# A switch holds its project even if no memory has it, so a purge must know the role of the name.
_DECLARED_PROJECT = replace(PROJECT, held="declared")
_CREATOR = Field("creator", held="reference", shared=True)


class Switches(Projection):
    """Projects for which memory is off (None: everything), with time and reason."""

    name = "switches"
    kinds = ("switch",)
    events = (
        EventType(
            "switch",
            "Memory was switched on or off for a project, or for all.",
            {
                "project": _DECLARED_PROJECT,
                "on": FLAG,
                "reason": REASON,
                "creator": _CREATOR,
                "consent": mapping_field({"embedder": WORD, "remote": WORD}),
            },
        ),
    )
    dumped = list_field(
        mapping_field({"project": _DECLARED_PROJECT, "since": TIME, "reason": REASON})
    )

    def __init__(self) -> None:
        self._off: dict[str | None, tuple[int, str]] = {}

    def off(self, project: str | None) -> str | None:
        """Return the reason why memory is off for a project, or None if it is on."""
        for name in dict.fromkeys((None, project)):
            if name in self._off:
                since, reason = self._off[name]
                what = "for all" if name is None else f'for the project "{name}"'
                return f"Memory is off {what} since {from_micros(since):%Y-%m-%d %H:%M} UTC{reason and f': {reason}'}."
        return None

    def has(self, project: str | None) -> bool:
        """Return whether a switch turned memory off for exactly this project; None means all."""
        return project in self._off

    @property
    def projects(self) -> tuple[str, ...]:
        """The projects for which memory is switched off, sorted."""
        return tuple(sorted(name for name in self._off if name is not None))

    def fold(self, event: Event) -> None:
        """Record that a "switch" event turned memory on or off for a project."""
        project = event.body["project"]
        if event.body["on"]:
            self._off.pop(project, None)
        else:
            self._off[project] = (event.at, event.body["reason"])

    @property
    def frame(self) -> pl.DataFrame:
        """A frame with the project (null for all), start and reason of each switch."""
        return _build_frame(self.dump(), _SCHEMA)

    def dump(self) -> Any:
        """Return the switches as a list of dicts, for a snapshot."""
        return [
            {"project": project, "since": since, "reason": why}
            for project, (since, why) in self._off.items()
        ]

    def load(self, dumped: Any) -> None:
        """Restore the switches from the result of ``dump``."""
        self._off = {row["project"]: (row["since"], row["reason"]) for row in dumped}


class Consents(Projection):
    """Consents to store memories, by project (None: memories without a project).

    A consent is valid only for this lab, so no export contains consents.
    """

    name = "consents"
    kinds = ("switch",)
    dumped = list_field(
        mapping_field(
            {
                "project": _DECLARED_PROJECT,
                "since": TIME,
                "creator": _CREATOR,
                "reason": REASON,
                "embedder": WORD,
                "remote": WORD,
            }
        )
    )
    exported = False

    def __init__(self) -> None:
        self._consents: dict[str | None, dict[str, Any]] = {}

    def to(self, project: str | None, remote: str | None) -> bool:
        """Return whether a person consented to memory for a project with the given embedder.

        A consent covers local embedders and the one remote embedder that it names.
        """
        consent = self._consents.get(project)
        return consent is not None and remote in (None, consent["remote"])

    def fold(self, event: Event) -> None:
        """Record the consent of a "switch" event, or remove it if memory was turned off."""
        project, body = event.body["project"], event.body
        if not body["on"]:
            self._consents.pop(project, None)
        elif "consent" in body:
            consent = {"creator": body["creator"], "reason": body["reason"], **body["consent"]}
            self._consents[project] = {"since": event.at, **consent}

    @property
    def frame(self) -> pl.DataFrame:
        """A frame with the project, start, creator, reason and embedder of each consent."""
        return _build_frame(self.dump(), _CONSENTS)

    def dump(self) -> Any:
        """Return the consents as a list of dicts, for a snapshot."""
        return [{"project": project, **consent} for project, consent in self._consents.items()]

    def load(self, dumped: Any) -> None:
        """Restore the consents from the result of ``dump``."""
        self._consents = {
            row["project"]: {name: row[name] for name in _CONSENTS if name != "project"}
            for row in dumped
        }


def _build_frame(rows: Any, schema: Any) -> pl.DataFrame:
    """Return a frame of switches or consents, sorted by project."""
    frame = pl.DataFrame(rows, schema=schema).sort("project", nulls_last=False)
    return frame.with_columns(pl.col("since").cast(INSTANT))


def describe_disclosure(store: Store) -> str:
    """Describe where a remote embedder sends texts; return "" for a local embedder."""
    embedder = store.embedder
    if embedder.remote is None:
        return ""
    return f"Texts and queries are sent to {embedder.remote} to be embedded ({embedder.name})."


def consent_fields(store: Store) -> dict[str, str | None]:
    """Return the event fields that name the embedder covered by a consent."""
    return {"embedder": store.embedder.name, "remote": store.embedder.remote}


def lacks_consent(store: Store, state: State, project: str | None) -> bool:
    """Return whether a project needs a consent under the active pack but has none."""
    if store.versions.pack.settings["consent"] != "needed":
        return False
    return not state.projection(Consents).to(project, store.embedder.remote)


def explain_off(store: Store, state: State, project: str | None) -> str | None:
    """Return why memory is off for a project (switch or consent), or None if it is on."""
    why = state.projection(Switches).off(project)
    if why is None and lacks_consent(store, state, project):
        what = "memories with no project" if project is None else f'the project "{project}"'
        why = f"Memory is off for {what}: the active pack needs consent (setting consent)."
        if sentence := describe_disclosure(store):
            why = f"{why} {sentence}"
    return why


def check_on(store: Store, state: State, projects: Iterable[str | None]) -> None:
    """Raise MemoryOff if memory is off for one of the projects of a write."""
    switches = state.projection(Switches)
    for project in dict.fromkeys(projects):
        why = explain_off(store, state, project)
        if why is not None:
            all_off = switches.has(None) or project is None
            call = (
                "lab.agents.switch_on()"
                if all_off
                else f"lab.agents.switch_on(project={project!r})"
            )
            raise MemoryOff(f"{why} Nothing is remembered until you call {call}.")


def check_disclosed(store: Store, state: State, project: str | None) -> None:
    """Raise MemoryOff if a remote embedder would receive texts without consent."""
    if store.embedder.remote is not None and lacks_consent(store, state, project):
        check_on(store, state, [project])


def apply_switches(
    store: Store, state: State, project: str | None, filters: Filters
) -> tuple[Filters, str | None]:
    """Return filters without switched-off projects, and the reason if all memory is off.

    The second value is None if the recall admits memories.
    """
    why = explain_off(store, state, project)
    if why is not None:
        return replace(filters, without=None), why
    without: tuple[str | None, ...] = state.projection(Switches).projects
    if store.versions.pack.settings["consent"] == "needed":
        projects = [None, *state.names["project"].vocabulary]
        without = tuple(
            dict.fromkeys(
                [*without, *(name for name in projects if lacks_consent(store, state, name))]
            )
        )
    return (replace(filters, without=without) if without else filters), None


# -- the calibration of a user's own embedder, at the first use of a lab with enough memories -------------------------


def calibrate_embedder(core: Core) -> None:
    """Calibrate the embedder, if due, on the memories that a plain recall may show."""

    def find_rows(state: State) -> Ints:
        filters, off = apply_switches(core.store, state, None, Filters())
        if off is not None:
            return NO_ROWS
        question = Question("", at=core.store.clock(), filters=filters)
        return core.recaller.population(state, question).rows

    core.store.calibrate_embedder(find_rows)

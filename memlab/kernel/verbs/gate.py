"""Who writes, by name, and whether memory is on: what every verb checks before it reads or writes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

import polars as pl

from memlab.errors import InputError, MemoryOff
from memlab.kernel.base.clock import from_micros
from memlab.kernel.journal import Event
from memlab.kernel.privacy import refuse
from memlab.kernel.recall import Filters
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

__all__ = [
    "Consents",
    "Switches",
    "as_agent",
    "check_agent",
    "check_disclosed",
    "check_on",
    "consent_of",
    "disclosure",
    "filters_while_off",
    "is_agent",
    "lacks_consent",
    "why_off",
]


# -- names of agents, as creators, sources and viewers ----------------------------------------------------------------


_AGENT = "agent:"
_PROGRAMS = (_AGENT, "runner:")


def is_agent(creator: object) -> bool:
    """Return whether a creator is a program and not a person: an agent or a runner.

    >>> is_agent("agent:coder"), is_agent("runner:insights"), is_agent("user")
    (True, True, False)
    """
    return isinstance(creator, str) and creator.startswith(_PROGRAMS)


def as_agent(name: str) -> str:
    """How a creator, a source and a viewer are written that is the agent of this name.

    >>> as_agent("coder"), as_agent("agent:coder")
    ('agent:coder', 'agent:coder')
    """
    return f"{_AGENT}{name.removeprefix(_AGENT)}"


def check_agent(agent: object) -> None:
    """Raise InputError for what is no name of an agent, PrivacyError for a secret."""
    if not isinstance(agent, str) or not agent or len(agent) > 1000:
        raise InputError(
            f'An agent is a name of 1 to 1000 characters, such as "coder", not {agent!r:.60}.'
        )
    refuse(validate_text(agent, where="agent"), "the name of an agent")


# -- memory switched off, for all or for a project: what is refused then, and what a recall leaves out ----------------

# Under a pack whose setting ``consent`` is "needed" a project is off until somebody has switched it on.

_SCHEMA: dict[str, Any] = {"project": pl.String, "since": pl.Int64, "reason": pl.String}
_CONSENTS: dict[str, Any] = {
    "project": pl.String,
    "since": pl.Int64,
    "creator": pl.String,
    "reason": pl.String,
    "embedder": pl.String,
    "remote": pl.String,
}


_DECLARED_PROJECT = replace(PROJECT, held="declared")
_CREATOR = Field("creator", held="reference", shared=True)


class Switches(Projection):
    """What is switched off: all (None), or projects, each since when and why."""

    name: ClassVar[str] = "switches"
    kinds: ClassVar[tuple[str, ...]] = ("switch",)
    events: ClassVar[tuple[EventType, ...]] = (
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
    dumped: ClassVar[Field] = list_field(
        mapping_field({"project": _DECLARED_PROJECT, "since": TIME, "reason": REASON})
    )

    def __init__(self) -> None:
        self._off: dict[str | None, tuple[int, str]] = {}

    def off(self, project: str | None) -> str | None:
        """Why memory is off for what belongs to this project, or to none; None where it is on."""
        for name in dict.fromkeys((None, project)):
            if name in self._off:
                since, reason = self._off[name]
                what = "for all" if name is None else f'for the project "{name}"'
                return f"Memory is off {what} since {from_micros(since):%Y-%m-%d %H:%M} UTC{reason and f': {reason}'}."
        return None

    def has(self, project: str | None) -> bool:
        """Whether this project, or with None all, is switched off by itself."""
        return project in self._off

    @property
    def projects(self) -> tuple[str, ...]:
        """The projects that are off."""
        return tuple(sorted(name for name in self._off if name is not None))

    def fold(self, event: Event) -> None:
        project = event.body["project"]
        if event.body["on"]:
            self._off.pop(project, None)
        else:
            self._off[project] = (event.at, event.body["reason"])

    @property
    def frame(self) -> pl.DataFrame:
        """One row for all (project null) and each project that is off: project, since, reason."""
        rows = [
            {"project": project, "since": since, "reason": why}
            for project, (since, why) in self._off.items()
        ]
        frame = pl.DataFrame(rows, schema=_SCHEMA).sort("project", nulls_last=False)
        return frame.with_columns(pl.col("since").cast(pl.Datetime("us", "UTC")))

    def dump(self) -> Any:
        return [
            {"project": project, "since": since, "reason": why}
            for project, (since, why) in self._off.items()
        ]

    def load(self, dumped: Any) -> None:
        self._off = {row["project"]: (row["since"], row["reason"]) for row in dumped}


class Consents(Projection):
    """Who consented to memory for which projects (None: for what has none). No export holds it: it is of this lab."""

    name: ClassVar[str] = "consents"
    kinds: ClassVar[tuple[str, ...]] = ("switch",)
    dumped: ClassVar[Field] = list_field(
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
    exported: ClassVar[bool] = False

    def __init__(self) -> None:
        self._given: dict[str | None, dict[str, Any]] = {}

    def to(self, project: str | None, remote: str | None) -> bool:
        """Whether somebody consented to memory for a project whose texts go to ``remote``.

        Consent to an embedder on this machine, or to one elsewhere, is none to another one elsewhere.
        """
        given = self._given.get(project)
        return given is not None and remote in (None, given["remote"])

    def fold(self, event: Event) -> None:
        project, body = event.body["project"], event.body
        if not body["on"]:
            self._given.pop(project, None)
        elif "consent" in body:
            told = {"creator": body["creator"], "reason": body["reason"], **body["consent"]}
            self._given[project] = {"since": event.at, **told}

    @property
    def frame(self) -> pl.DataFrame:
        """One row for each consent: project, since, creator, reason, embedder, remote."""
        frame = pl.DataFrame(self.dump(), schema=_CONSENTS).sort("project", nulls_last=False)
        return frame.with_columns(pl.col("since").cast(pl.Datetime("us", "UTC")))

    def dump(self) -> Any:
        return [{"project": project, **given} for project, given in self._given.items()]

    def load(self, dumped: Any) -> None:
        self._given = {
            row["project"]: {name: row[name] for name in _CONSENTS if name != "project"}
            for row in dumped
        }


def disclosure(store: Store) -> str:
    """A sentence that says where texts and questions go to be embedded; empty where they stay on this machine."""
    embedder = store.embedder
    if embedder.remote is None:
        return ""
    return f"Texts and questions are sent to {embedder.remote} to be embedded ({embedder.name})."


def consent_of(store: Store) -> dict[str, str | None]:
    """What whoever consents now is told, as an event keeps it."""
    return {"embedder": store.embedder.name, "remote": store.embedder.remote}


def lacks_consent(store: Store, state: State, project: str | None) -> bool:
    """Whether the live pack needs a consent for this project, or for what has none, that nobody gave."""
    if store.versions.pack.settings["consent"] != "needed":
        return False
    return not state.projection(Consents).to(project, store.embedder.remote)


def why_off(store: Store, state: State, project: str | None) -> str | None:
    """Why memory is off for what belongs to this project, or to none; None where it is on."""
    why = state.projection(Switches).off(project)
    if why is None and lacks_consent(store, state, project):
        what = "what belongs to no project" if project is None else f'the project "{project}"'
        why = f"Memory is off for {what} until somebody consents to it (setting consent of the live pack)."
        if said := disclosure(store):
            why = f"{why} {said}"
    return why


def check_on(store: Store, state: State, projects: Iterable[str | None]) -> None:
    """MemoryOff where something is to be remembered for a project, or for none, for which memory is off."""
    switches = state.projection(Switches)
    for project in dict.fromkeys(projects):
        why = why_off(store, state, project)
        if why is not None:
            all_off = switches.has(None) or project is None
            again = (
                "lab.agents.switch_on()"
                if all_off
                else f"lab.agents.switch_on(project={project!r})"
            )
            raise MemoryOff(f"{why} Nothing is remembered until {again}.")


def check_disclosed(store: Store, state: State, project: str | None) -> None:
    """MemoryOff where an embedder elsewhere would be sent a text of a project without consent to it."""
    if store.embedder.remote is not None and lacks_consent(store, state, project):
        check_on(store, state, [project])


def filters_while_off(
    store: Store, state: State, project: str | None, filters: Filters
) -> tuple[Filters, str | None]:
    """What a recall from this project admits, and why it admits nothing; None where it does."""
    why = why_off(store, state, project)
    if why is not None:
        return replace(filters, without=None), why
    without: tuple[str | None, ...] = state.projection(Switches).projects
    if store.versions.pack.settings["consent"] == "needed":
        named = [None, *state.names["project"].vocabulary]
        without = tuple(
            dict.fromkeys([*without, *(one for one in named if lacks_consent(store, state, one))])
        )
    return (replace(filters, without=without) if without else filters), None

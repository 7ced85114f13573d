"""Who asks and writes: an agent or whoever is connected, its project, and what its role allows. The one place for that.

A *reader* asks. A *member* also writes, and changes what is its own: what it created and nobody else contributed to.
An *owner* changes whatever it sees. Everybody sees what is not private to another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import polars as pl

from memlab.errors import InputError, MemoryOff, NotPermitted, UnknownName
from memlab.kernel.base.arguments import shown
from memlab.kernel.base.clock import from_micros
from memlab.kernel.base.printable import printable
from memlab.kernel.journal import Event
from memlab.kernel.policies import Pack
from memlab.kernel.privacy import refuse
from memlab.kernel.recall import Filters
from memlab.kernel.schema import MEMORY, OF_THE_USER
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
    checked_text,
    hidden_from,
    listed,
    mapping,
)
from memlab.kernel.storage.store import Store

__all__ = [
    "ROLES",
    "Consents",
    "Identity",
    "Role",
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
        raise InputError(f'An agent is a name of 1 to 1000 characters, such as "coder", not {agent!r:.60}.')
    refuse(checked_text(agent, where="agent"), "the name of an agent")


Role = Literal["reader", "member", "owner"]

ROLES: tuple[str, ...] = get_args(Role)

_LONGEST = 1000

_COMPARED = ("project", "creator", "kind")
"""Fields of a memory that are held against those of who writes."""


@dataclass(frozen=True)
class Identity:
    """``name`` is whom memories are created by and who views ("agent:tutor", "user"); None is nobody, who sees all.

    With a ``project`` it reads that project and what belongs to none, and writes into it alone. ``session`` is what its
    questions and memories belong to. ``keeps``: what it remembers that is no fact is private to it, where the pack has
    no rule (the setting ``visibility``) and nothing else is given.
    """

    name: str | None
    project: str | None
    session: str | None
    role: str = "owner"
    keeps: bool = False

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise UnknownName("role", self.role, ROLES)
        if self.name is None and self.role == "member":
            raise InputError('A member is somebody, such as "agent:coder", who has memories of its own: say who.')
        for what, text in (("name", self.name), ("project", self.project), ("session", self.session)):
            if text is not None and (not text or len(text) > _LONGEST):
                raise InputError(f"The {what} of an agent or viewer has 1 to {_LONGEST} characters, not {text!r:.60}.")
            if text is not None:
                refuse(checked_text(text, where=what), what)

    @property
    def writes(self) -> bool:
        """Whether its role lets it write at all."""
        return self.role != "reader"

    def check_writes(self) -> None:
        """NotPermitted for a reader."""
        if not self.writes:
            raise NotPermitted(f"{self._called} is a reader here: it recalls, and only a member or an owner writes.")

    def place(self, project: str | None) -> str | None:
        """The project of a call that names this one or none. NotPermitted for another project than its own."""
        if self.project is None or project in (None, self.project):
            return self.project or project
        raise NotPermitted(
            f'{self._called} is of the project "{self.project}", and neither reads nor writes '
            f'"{printable(project or "")[:60]}": leave `project` out.'
        )

    def row(self, pack: Pack, given: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a memory as this identity writes it.

        It is created by it, of its project and session, and an agent is a source of it. Facts are shared by all agents:
        of a user (personal, preference, goal, trait), said to be of the kind "fact", or with subject and predicate.
        """
        self.check_fields(given)
        row = {**given, "project": self.place(given.get("project"))}
        if row.get("session") is None:
            row["session"] = self.session
        if self.name is not None:
            row["creator"] = self.name
            if is_agent(self.name):
                row["agents"] = [self.name]
                if self.keeps and not is_fact(given):
                    row.setdefault("visibility", visibility_of_own(pack))
        return {name: value for name, value in row.items() if value is not None}

    def check_fields(self, given: Mapping[str, Any]) -> None:
        """Whether it may give a memory these fields. NotPermitted for another project, creator or source."""
        for name in _COMPARED:
            if not isinstance(given.get(name), str | None):
                raise InputError(f"{name} is a text, not {shown(given[name])}.")
        agents = given.get("agents")
        texts = isinstance(agents, list | tuple) and all(isinstance(one, str) for one in agents)
        if agents is not None and not texts:
            raise InputError(f"agents is a list of texts, not {shown(agents)}.")
        self.place(given.get("project"))
        if self.name is not None:
            self._check_own("creator", given.get("creator"), self.name)
            if is_agent(self.name):
                self._check_own("agents", None if agents is None else list(agents), [self.name])

    def check_sees(self, state: State, rows: Iterable[int]) -> None:
        """UnknownName for what it does not see, and for what belongs to another project than its own."""
        hidden = None if self.name is None else hidden_from(state, self.name)
        for row in rows:
            project = state.names["project"].at(row)
            elsewhere = self.project is not None and project not in (None, self.project)
            if elsewhere or (hidden is not None and hidden[row]):
                raise UnknownName("memory", row + 1)

    def check_changes(self, state: State, rows: Iterable[int]) -> None:
        """Whether it may change these memories; NotPermitted for what is not its own, unless it is an owner.

        UnknownName for what it does not see, as if it did not exist.
        """
        self.check_writes()
        chosen = list(rows)
        self.check_sees(state, chosen)
        for row in chosen if self.role != "owner" else ():
            creator = state.names["creator"].at(row)
            others = [one for one in state.lists["agents"].at(row) if one != self.name]
            if creator != self.name or others:
                whose = f"shared with {others[0]}" if creator == self.name else f"of {creator or 'nobody'}"
                raise NotPermitted(
                    printable(
                        f"Memory {row + 1} is {whose[:80]}, and {self._called} changes its own alone: remember what is "
                        "right, or say with feedback that it failed."
                    )
                )

    def _check_own(self, field: str, value: Any, own: Any) -> None:
        if value is not None and value != own:
            raise NotPermitted(f"{self._called} writes as itself: leave {field}= out.")

    @property
    def _called(self) -> str:
        return printable(self.name or "This connection")


def is_fact(given: Mapping[str, Any]) -> bool:
    """Whether what is to be remembered is a fact, which all agents share."""
    stated = given.get("subject") is not None and given.get("predicate") is not None
    return stated or given.get("kind") in (*OF_THE_USER, "fact")


def visibility_of_own(pack: Pack) -> str | None:
    """Who sees what an agent remembers that is no fact: itself, or, with None, whom the pack says."""
    return "private" if pack.settings["visibility"] == MEMORY["visibility"].default else None


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
                "consent": mapping({"embedder": WORD, "remote": WORD}),
            },
        ),
    )
    dumped: ClassVar[Field] = listed(mapping({"project": _DECLARED_PROJECT, "since": TIME, "reason": REASON}))

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
        rows = [{"project": project, "since": since, "reason": why} for project, (since, why) in self._off.items()]
        frame = pl.DataFrame(rows, schema=_SCHEMA).sort("project", nulls_last=False)
        return frame.with_columns(pl.col("since").cast(pl.Datetime("us", "UTC")))

    def dump(self) -> Any:
        return [{"project": project, "since": since, "reason": why} for project, (since, why) in self._off.items()]

    def load(self, dumped: Any) -> None:
        self._off = {row["project"]: (row["since"], row["reason"]) for row in dumped}


class Consents(Projection):
    """Who consented to memory for which projects (None: for what has none). No export holds it: it is of this lab."""

    name: ClassVar[str] = "consents"
    kinds: ClassVar[tuple[str, ...]] = ("switch",)
    dumped: ClassVar[Field] = listed(
        mapping(
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
        self._given = {row["project"]: {name: row[name] for name in _CONSENTS if name != "project"} for row in dumped}


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
            again = "lab.agents.switch_on()" if all_off else f"lab.agents.switch_on(project={project!r})"
            raise MemoryOff(f"{why} Nothing is remembered until {again}.")


def check_disclosed(store: Store, state: State, project: str | None) -> None:
    """MemoryOff where an embedder elsewhere would be sent a text of a project without consent to it."""
    if store.embedder.remote is not None and lacks_consent(store, state, project):
        check_on(store, state, [project])


def filters_while_off(store: Store, state: State, project: str | None, filters: Filters) -> tuple[Filters, str | None]:
    """What a recall from this project admits, and why it admits nothing; None where it does."""
    why = why_off(store, state, project)
    if why is not None:
        return replace(filters, without=None), why
    without: tuple[str | None, ...] = state.projection(Switches).projects
    if store.versions.pack.settings["consent"] == "needed":
        named = [None, *state.names["project"].vocabulary]
        without = tuple(dict.fromkeys([*without, *(one for one in named if lacks_consent(store, state, one))]))
    return (replace(filters, without=without) if without else filters), None

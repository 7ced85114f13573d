"""Identities of agents and connections: project, role, and permission to write.

A *reader* recalls. A *member* also writes, and changes memories that it created and nobody else
contributed to. An *owner* changes every memory it sees. Everybody sees what is not private to
another creator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from memlab.errors import InputError, NotPermitted, UnknownName
from memlab.kernel.base.arguments import describe_value
from memlab.kernel.base.printable import printable
from memlab.kernel.policies import Pack
from memlab.kernel.privacy import refuse
from memlab.kernel.schema import MEMORY, OF_THE_USER
from memlab.kernel.state import State, hidden_rows, validate_text
from memlab.kernel.verbs.gate import is_agent

Role = Literal["reader", "member", "owner"]

ROLES: tuple[str, ...] = get_args(Role)
"""The roles, from the fewest permissions to the most."""

_MAX_LENGTH = 1000
"""Maximum characters of a name, a project or a session, as for names of agents."""

_COMPARED = ("project", "creator", "kind")
"""Fields of a memory that must agree with those of its writer."""


@dataclass(frozen=True)
class Identity:
    """A writer and viewer of a lab: a person, an agent or a connection.

    Attributes
    ----------
    name
        The creator of its memories and the viewer of its recalls ("agent:tutor", "user"). None
        means no name: memories get no creator, and recalls see every memory.
    project
        The only project that it reads and writes; it also reads memories without a project.
    session
        The session of its queries and memories.
    role
        "reader", "member" or "owner".
    keeps
        Whether its memories that are not facts are private to it by default. The pack's setting
        ``visibility`` has precedence.
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
            raise InputError('A member needs a name, such as "agent:coder", to own memories.')
        for what, text in (
            ("name", self.name),
            ("project", self.project),
            ("session", self.session),
        ):
            if text is not None and (not text or len(text) > _MAX_LENGTH):
                raise InputError(
                    f"The {what} of an agent or viewer must have 1 to {_MAX_LENGTH} characters, not {text!r:.60}."
                )
            if text is not None:
                refuse(validate_text(text, where=what), what)

    @property
    def writes(self) -> bool:
        """Whether the role permits writing."""
        return self.role != "reader"

    def check_writes(self) -> None:
        """Raise NotPermitted if the role is reader."""
        if not self.writes:
            raise NotPermitted(f"{self._label} is a reader: only a member or an owner writes.")

    def check_project(self, project: str | None) -> str | None:
        """Return the project of a call, or raise NotPermitted for another project."""
        if self.project is None or project in (None, self.project):
            return self.project or project
        raise NotPermitted(
            f'{self._label} belongs to the project "{self.project}", and neither reads nor writes '
            f'"{printable(project or "")[:60]}": leave `project` out.'
        )

    def row(self, pack: Pack, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a memory, with the identity as its writer.

        The memory gets its creator, project and session, and an agent as its source. Facts are
        visible to all agents: memories about the user (personal, preference, goal, trait), of the
        kind "fact", or with subject and predicate.
        """
        self.check_fields(fields)
        row = {**fields, "project": self.check_project(fields.get("project"))}
        if row.get("session") is None:
            row["session"] = self.session
        if self.name is not None:
            row["creator"] = self.name
            if is_agent(self.name):
                row["agents"] = [self.name]
                if self.keeps and not is_fact(fields):
                    row.setdefault("visibility", _default_visibility(pack))
        return {name: value for name, value in row.items() if value is not None}

    def check_fields(self, fields: Mapping[str, Any]) -> None:
        """Check a memory's fields; raise NotPermitted for another project or creator."""
        for name in _COMPARED:
            if not isinstance(fields.get(name), str | None):
                raise InputError(f"{name} must be a text, not {describe_value(fields[name])}.")
        agents = fields.get("agents")
        texts = isinstance(agents, list | tuple) and all(isinstance(agent, str) for agent in agents)
        if agents is not None and not texts:
            raise InputError(f"agents must be a list of texts, not {describe_value(agents)}.")
        self.check_project(fields.get("project"))
        if self.name is not None:
            self._check_own("creator", fields.get("creator"), self.name)
            if is_agent(self.name):
                self._check_own("agents", None if agents is None else list(agents), [self.name])

    def check_sees(self, state: State, rows: Iterable[int]) -> None:
        """Raise UnknownName if a memory is hidden or belongs to another project."""
        hidden = None if self.name is None else hidden_rows(state, self.name)
        for row in rows:
            project = state.names["project"].value_at(row)
            elsewhere = self.project is not None and project not in (None, self.project)
            if elsewhere or (hidden is not None and hidden[row]):
                raise UnknownName("memory", row + 1)

    def check_changes(self, state: State, rows: Iterable[int]) -> None:
        """Raise NotPermitted for memories of another identity, unless the role is owner.

        Raises UnknownName for memories that the identity does not see.
        """
        self.check_writes()
        chosen = list(rows)
        self.check_sees(state, chosen)
        for row in chosen if self.role != "owner" else ():
            creator = state.names["creator"].value_at(row)
            others = [agent for agent in state.lists["agents"].value_at(row) if agent != self.name]
            if creator != self.name or others:
                ownership = (
                    f"shared with {others[0]}"
                    if creator == self.name
                    else f"of {creator or 'nobody'}"
                )
                raise NotPermitted(
                    printable(
                        f"Memory {row + 1} is {ownership[:80]}, and {self._label} changes only its "
                        "own. Remember a corrected text, or give feedback that it failed."
                    )
                )

    def _check_own(self, field: str, value: Any, own: Any) -> None:
        """Raise NotPermitted if a field names a writer other than this identity."""
        if value is not None and value != own:
            raise NotPermitted(
                f"{self._label} can write only in its own name, not as {value!r}: leave {field}= out."
            )

    @property
    def _label(self) -> str:
        """The name by which messages refer to the identity."""
        return printable(self.name or "This connection")


def is_fact(fields: Mapping[str, Any]) -> bool:
    """Return whether a new memory is a fact, which all agents see."""
    stated = fields.get("subject") is not None and fields.get("predicate") is not None
    return stated or fields.get("kind") in (*OF_THE_USER, "fact")


def _default_visibility(pack: Pack) -> str | None:
    """Return "private" if the pack's ``visibility`` has the default of the schema, otherwise None."""
    return "private" if pack.settings["visibility"] == MEMORY["visibility"].default else None

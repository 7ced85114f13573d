"""Who asks and writes: an agent or whoever is connected, its project, and what its role allows. The one place for that.

A *reader* asks. A *member* also writes, and changes what is its own: what it created and nobody else contributed to.
An *owner* changes whatever it sees. Everybody sees what is not private to another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from memlab.errors import InputError, NotPermitted, UnknownName
from memlab.kernel.base.arguments import shown
from memlab.kernel.base.printable import printable
from memlab.kernel.policies import Pack
from memlab.kernel.privacy import refuse
from memlab.kernel.schema import MEMORY, OF_THE_USER
from memlab.kernel.state import State, hidden_rows, validate_text
from memlab.kernel.verbs.gate import is_agent

__all__ = ["ROLES", "Identity", "Role", "is_fact"]

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
            raise InputError(
                'A member is somebody, such as "agent:coder", who has memories of its own: say who.'
            )
        for what, text in (
            ("name", self.name),
            ("project", self.project),
            ("session", self.session),
        ):
            if text is not None and (not text or len(text) > _LONGEST):
                raise InputError(
                    f"The {what} of an agent or viewer has 1 to {_LONGEST} characters, not {text!r:.60}."
                )
            if text is not None:
                refuse(validate_text(text, where=what), what)

    @property
    def writes(self) -> bool:
        """Whether its role lets it write at all."""
        return self.role != "reader"

    def check_writes(self) -> None:
        """NotPermitted for a reader."""
        if not self.writes:
            raise NotPermitted(
                f"{self._called} is a reader here: it recalls, and only a member or an owner writes."
            )

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
                    row.setdefault("visibility", _visibility_of_own(pack))
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
        hidden = None if self.name is None else hidden_rows(state, self.name)
        for row in rows:
            project = state.names["project"].value_at(row)
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
            creator = state.names["creator"].value_at(row)
            others = [one for one in state.lists["agents"].value_at(row) if one != self.name]
            if creator != self.name or others:
                whose = (
                    f"shared with {others[0]}"
                    if creator == self.name
                    else f"of {creator or 'nobody'}"
                )
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


def _visibility_of_own(pack: Pack) -> str | None:
    """Who sees what an agent remembers that is no fact: itself, or, with None, whom the pack says."""
    return "private" if pack.settings["visibility"] == MEMORY["visibility"].default else None

"""What one server works on: a lab, and what of it whoever is connected may see and change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from memlab.errors import UnknownName
from memlab.kernel.recall import Hits
from memlab.kernel.slates import Slate
from memlab.kernel.verbs.corrections.editing import versions_from
from memlab.kernel.verbs.gate.identity import Identity
from memlab.kernel.verbs.recalling.asking import logged_slate
from memlab.kernel.verbs.results import Memory
from memlab.subjects.lab import Lab

__all__ = ["Desk"]


@dataclass(frozen=True)
class Desk:
    """``seen`` is the lab as the viewer sees it: what is read by a name or a number is read there.

    ``pages`` are the studios that pages of a host have open.
    """

    lab: Lab
    seen: Lab
    who: Identity
    pages: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, lab: Lab, *, project: str | None, viewer: str | None, session: str | None, role: str = "owner") -> Self:
        """What a server of ``lab`` works on; InputError for what is no viewer or role."""
        who = Identity(viewer, project, session, role)
        return cls(lab, lab if viewer is None else lab.at(viewer=viewer), who)

    @property
    def project(self) -> str | None:
        """The project of this connection; None: a call may name one."""
        return self.who.project

    @property
    def viewer(self) -> str | None:
        """Who is connected; None: nobody in particular, who sees all."""
        return self.who.name

    @property
    def session(self) -> str | None:
        """What a call belongs to that names no session."""
        return self.who.session

    @property
    def read_only(self) -> bool:
        """Whether nothing is written, recalls included."""
        return self.lab.io.store.journal.read_only

    @property
    def writes(self) -> bool:
        """Whether there are tools that write: the lab can be written, and the role may."""
        return self.who.writes and not self.read_only

    @property
    def owns(self) -> bool:
        """Whether it may change what decides for everybody: policies."""
        return self.writes and self.who.role == "owner"

    def memory(self, id: int) -> Memory:
        """A memory that may be read; UnknownName for any other, as if it did not exist."""
        memory = self.seen[id]
        if self.project is not None and memory.project not in (None, self.project):
            raise UnknownName("memory", id)
        return memory

    def memories(self, ids: Sequence[int]) -> list[Memory]:
        """Several of them, each once."""
        return [self.memory(id) for id in dict.fromkeys(ids)]

    def changes(self, memories: Sequence[Memory]) -> None:
        """Whether this connection may change these memories; NotPermitted where it may not."""
        with self.lab.io.store.reading() as state:
            self.who.check_changes(state, [memory.id - 1 for memory in memories])

    def versions(self, memory: Memory) -> list[Memory]:
        """Return a memory and the edits that replaced it, oldest first: an edit of any edits the last."""
        with self.lab.io.store.reading() as state:
            return [Memory.of(state, row) for row in versions_from(state, memory.id - 1)]

    def found(self, hits: Hits) -> list[Memory]:
        """The memories that a recall showed, read at once."""
        with self.lab.io.store.reading() as state:
            return [Memory.of(state, id - 1) for id in hits.ids]

    def slate(self, recall: int) -> Slate:
        """A logged recall of whoever is connected; UnknownName if there is none of this number."""
        slate = logged_slate(self.seen.io.store, recall)
        if self.project is not None and slate.project != self.project:
            raise UnknownName("logged recall", recall)
        return slate

"""What one server works on: a lab, and what of it whoever is connected may see and change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from memlab.errors import InputError, UnknownName
from memlab.lab import Lab
from memlab.recall import Hits
from memlab.slates import Slate
from memlab.subjects.recalling.logged import logged_slate
from memlab.subjects.results import Memory

__all__ = ["Desk"]


@dataclass(frozen=True)
class Desk:
    """``seen`` is the lab as the viewer sees it: what is read by a name or a number is read there."""

    lab: Lab
    seen: Lab
    project: str | None
    viewer: str | None
    session: str | None

    @classmethod
    def of(cls, lab: Lab, *, project: str | None, viewer: str | None, session: str | None) -> Self:
        """What a server of ``lab`` works on; InputError for what is no viewer."""
        return cls(lab, lab if viewer is None else lab.viewed_by(viewer), project, viewer, session)

    @property
    def read_only(self) -> bool:
        """Whether nothing is written, recalls included."""
        return self.lab.store.journal.read_only

    def project_of(self, given: str | None) -> str | None:
        """The project of a call: the server's if it has one."""
        if given is not None and self.project is not None and given != self.project:
            raise InputError(f'This server is of the project "{self.project}": leave `project` out.')
        return given if self.project is None else self.project

    def memory(self, id: int) -> Memory:
        """A memory that may be read and changed; UnknownName for any other, as if it did not exist."""
        memory = self.seen[id]
        if self.project is not None and memory.project not in (None, self.project):
            raise UnknownName("memory", id)
        return memory

    def memories(self, ids: Sequence[int]) -> list[Memory]:
        """Several of them, each once."""
        return [self.memory(id) for id in dict.fromkeys(ids)]

    def found(self, hits: Hits) -> list[Memory]:
        """The memories that a recall showed, read at once."""
        with self.lab.store.reading() as state:
            return [Memory.of(state, id - 1) for id in hits.ids]

    def slate(self, recall: int) -> Slate:
        """A logged recall of whoever is connected; UnknownName if there is none of this number."""
        slate = logged_slate(self.seen.store, recall)
        if self.project is not None and slate.project != self.project:
            raise UnknownName("logged recall", recall)
        return slate

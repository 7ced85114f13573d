"""What the verbs of a lab return."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, overload

import polars as pl

from memlab.clock import from_micros

if TYPE_CHECKING:
    from memlab.memory import State
    from memlab.privacy import Finding

__all__ = ["Feedback", "Memory", "Remembered"]


@dataclass(frozen=True)
class Memory:
    """One memory as it stood when it was asked for."""

    id: int
    text: str
    kind: str
    ref: str | None
    project: str | None
    session: str | None
    speaker: str | None
    tags: tuple[str, ...]
    status: str
    created: datetime
    access: int
    superseded_by: int | None = None
    """The memory that stands in its place."""

    @classmethod
    def of(cls, state: State, row: int) -> Memory:
        names, by = state.names, float(state.numbers["superseded_by"].values[row])
        return cls(
            id=row + 1,
            text=state.texts.at(row) or "",
            kind=names["kind"].at(row) or "",
            ref=state.refs.at(row),
            project=names["project"].at(row),
            session=names["session"].at(row),
            speaker=names["speaker"].at(row),
            tags=state.lists["tags"].at(row),
            status=names["status"].at(row) or "",
            created=from_micros(int(state.numbers["created"].values[row])),
            access=int(state.numbers["access"].values[row]),
            superseded_by=None if by != by else int(by),
        )


@dataclass(frozen=True)
class Feedback:
    """One logged judgement; ``event`` is its place in the journal, ``decision`` the recall that it belongs to."""

    event: int
    decision: int | None
    memory: int
    outcome: str | None
    reward: float | None
    source: str
    rating: int | None = None
    agent: str | None = None


class Remembered(Sequence[Memory]):
    """The memories that one call added, in order; ``redacted`` lists what the privacy gate replaced."""

    def __init__(
        self,
        get: Callable[[int], Memory],
        frame: Callable[[], pl.DataFrame],
        ids: range,
        redacted: tuple[tuple[int, Finding], ...],
    ) -> None:
        self._get, self._frame = get, frame
        self.ids = ids
        self.redacted = redacted

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, index: int) -> Memory: ...
    @overload
    def __getitem__(self, index: slice) -> list[Memory]: ...
    def __getitem__(self, index: int | slice) -> Memory | list[Memory]:
        if isinstance(index, slice):
            return [self._get(id) for id in self.ids[index]]
        return self._get(self.ids[index])

    def __iter__(self) -> Iterator[Memory]:
        return (self._get(id) for id in self.ids)

    @property
    def frame(self) -> pl.DataFrame:
        """The rows of ``lab.memories`` that were added."""
        return self._frame().slice(self.ids.start - 1 if self.ids else 0, len(self.ids))

    def __repr__(self) -> str:
        note = f", {len(self.redacted)} secrets redacted" if self.redacted else ""
        span = f" (ids {self.ids.start}-{self.ids.stop - 1})" if self.ids else ""
        return f"<Remembered {len(self):,} memories{span}{note}>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self)[1:-1])}</p>"

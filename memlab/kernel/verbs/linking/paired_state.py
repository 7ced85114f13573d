"""A lab's memories and those that are about to join it, as one row of rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.index import Vectors
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Moment
from memlab.kernel.state import State
from memlab.kernel.verbs.linking.negation import Statement
from memlab.kernel.verbs.linking.reading import read_text

__all__ = ["PairedState", "RowView"]

USER = "user"
"""Who speaks where nobody is named."""

Ints = NDArray[np.int64]
Values = NDArray[Any]


class PairedState:
    """The memories of ``state``, then those of ``fresh``, which are in no journal yet: row ``len(state) + p``.

    ``before`` says which row each of the fresh follows in its session, -1 for none. Without ``fresh``, what is new was
    stored already and is among the rows of the state.
    """

    def __init__(
        self, state: State, pack: Pack, now: int, *, fresh: State | None = None, before: Ints | None = None
    ) -> None:
        self.state, self.pack, self.now, self.fresh = state, pack, now, fresh
        self.size = state.rows
        """How many are stored; ``total`` counts the fresh too."""
        self.total = state.rows + (0 if fresh is None else fresh.rows)
        self.before = before

    def side(self, rows: Ints) -> RowView:
        """These rows (strictly ascending) with their features."""
        return RowView(self, rows)

    def home(self, row: int) -> tuple[State, int]:
        """The state that holds a row, and the row's number there."""
        if self.fresh is not None and row >= self.size:
            return self.fresh, row - self.size
        return self.state, row

    def vectors(self, rows: Ints) -> tuple[Vectors, Ints]:
        """Where the vectors of rows that are all old or all fresh are, and the rows' numbers there."""
        if self.fresh is not None and len(rows) and rows[0] >= self.size:
            return self.fresh.vectors, rows - self.size
        return self.state.vectors, rows


class RowView:
    """Some rows of a ``PairedState``: features by name, columns, and texts."""

    def __init__(self, joint: PairedState, rows: Ints) -> None:
        self.rows, self.pack = rows, joint.pack
        cut = int(np.searchsorted(rows, joint.size)) if joint.fresh is not None else len(rows)
        self._moments = [Moment(joint.state, joint.pack, rows[:cut], joint.now)]
        if joint.fresh is not None and cut < len(rows):
            places = rows[cut:] - joint.size
            late = Moment(joint.fresh, joint.pack, places, joint.now)
            if joint.before is not None:
                late.give(answers=_answers(joint, joint.before[places]))
            self._moments = [*(self._moments if cut else []), late]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Values:
        return _joined([moment[name] for moment in self._moments])

    def word(self, column: str) -> Values:
        """A column of names as an object array, null as None."""
        return _joined([moment.word(column) for moment in self._moments])

    def number(self, column: str) -> Values:
        return _joined([moment.number(column) for moment in self._moments])

    @cached_property
    def statements(self) -> Values:
        """Each text as the detectors of negation see it: an object array of ``Statement``."""
        return _objects([Statement(text) for text in self.texts])

    @cached_property
    def texts(self) -> list[str]:
        """Each text, empty where there is none."""
        return [text or "" for moment in self._moments for text in moment.state.texts.take(moment.rows)]

    @cached_property
    def readings(self) -> Values:
        """Each text as its statements: an object array of ``Reading``."""
        return _objects([read_text(text) for text in self.texts])

    @cached_property
    def extracted(self) -> Values:
        """bool[rows]: what extraction made of a message, by the reason that it gives."""
        reasons = [moment.state.notes["reason"].at(row) for moment in self._moments for row in moment.rows.tolist()]
        return np.array([one is not None and one.startswith("extracted by ") for one in reasons], dtype=np.bool_)

    @cached_property
    def speakers(self) -> Values:
        """Who speaks, without the case of letters; the user where nobody is named."""
        words = self.word("speaker").tolist()
        return _objects([USER if word is None or not word.strip() else word.strip().casefold() for word in words])


def _objects(found: list[Any]) -> Values:
    objects = np.empty(len(found), dtype=object)
    objects[:] = found
    return objects


def _joined(parts: list[Values]) -> Values:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _answers(joint: PairedState, before: Ints) -> Values:
    """Whether the row before asks, for rows whose edges are not there yet."""
    asks = joint.state.asks.values
    if joint.fresh is not None:
        asks = np.concatenate([asks, joint.fresh.asks.values])
    return np.asarray((before >= 0) & asks[np.maximum(before, 0)])

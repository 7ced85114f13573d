"""A lab as one viewer sees it: states without what is private to others, and a store of such, to read and not to write.

One mechanism for every reader: ``view_state`` gives the state that a reader reads. It is the state itself where no memory
is hidden, and else one that is folded from the same events as the viewer sees them, kept up from then on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from weakref import WeakKeyDictionary

import numpy as np

from memlab.errors import InputError, ReadOnlyLab
from memlab.kernel.base.clock import Clock
from memlab.kernel.index import Neighbours
from memlab.kernel.journal import Event, Journal, JournalView, Transaction
from memlab.kernel.slates import question_of
from memlab.kernel.state import State, ViewerState, hidden_rows
from memlab.kernel.storage.store import Store

__all__ = ["ViewerJournal", "ViewerStore", "view_state"]

_KEPT = 8
"""Viewers of one state whose views are kept: each has columns and edges of its own, some 20 MB for 100,000 memories."""

_views: WeakKeyDictionary[State, OrderedDict[str, ViewerState]] = WeakKeyDictionary()


def view_state(
    journal: Journal | JournalView, state: State, viewer: str | None, *, always: bool = False
) -> State:
    """What ``viewer`` sees of ``state``, which was folded from ``journal``; None sees all.

    Where no memory is hidden that is the state itself, unless ``always`` a view is made: what others asked, and found
    nothing, is hidden too.

    The first question of a viewer from whom something is hidden folds the journal, some 0.3 s for 100,000 memories;
    later ones what came since. Needs what guards the state.
    """
    if isinstance(state, ViewerState) or viewer is None:
        return state
    kept = _views.setdefault(state, OrderedDict())
    view = kept.get(viewer)
    if view is not None and view.upto == state.seq:
        kept.move_to_end(viewer)
        return view
    hidden = hidden_rows(state, viewer)
    if hidden is None:
        if not always:
            return state
        hidden = np.zeros(len(state), dtype=np.bool_)
    if view is None or (view.hidden != hidden[: len(view.hidden)]).any():
        view = ViewerState(state, viewer)
    # kept again once it has followed to the end: an interrupt leaves none that is half folded
    kept.pop(viewer, None)
    view.follow(journal.events(after=view.upto, upto=state.seq), journal, hidden, _Askers(journal))
    kept[viewer] = view
    kept.move_to_end(viewer)
    while len(kept) > _KEPT:
        kept.popitem(last=False)
    return view


class _Askers:
    """As whom a logged recall was asked; None for nobody in particular."""

    def __init__(self, journal: Journal | JournalView) -> None:
        self._journal = journal

    def __call__(self, decision: int) -> str | None:
        for seq, blob in self._journal.slates(after=decision - 1, upto=decision):
            viewer = question_of(blob, decision=seq).filters.get("viewer")
            return None if viewer is None else str(viewer)
        return None


class ViewerJournal(JournalView):
    """The events that a viewer sees, and the recalls that were asked as that viewer."""

    def __init__(self, store: Store, viewer: str) -> None:
        self._store, self._viewer = store, viewer
        self._journal = (
            store.journal._journal if isinstance(store.journal, JournalView) else store.journal
        )
        self._closed = False

    @property
    def head(self) -> int:  # type: ignore[override]
        return self._store.journal.head

    @property
    def full(self) -> Journal | JournalView:
        """The journal with all that it holds."""
        return self._store.journal

    def events(
        self, after: int = 0, *, upto: int | None = None, kinds: Iterable[str] | None = None
    ) -> Iterator[Event]:
        found = self.full.events(after, upto=upto, kinds=kinds)
        state = self._state()
        if not isinstance(state, ViewerState):
            return found
        return (
            Event(event.seq, event.at, event.kind, state.visible_body(event))
            for event in found
            if event.seq in state.visible
        )

    def slates(self, after: int = 0, *, upto: int | None = None) -> Iterator[tuple[int, bytes]]:
        for decision, blob in self.full.slates(after, upto=upto):
            if question_of(blob, decision=decision).filters.get("viewer") == self._viewer:
                yield decision, blob

    def texts(self, ids: Sequence[int]) -> list[str]:
        state, texts = self._state(), self.full.texts(ids)
        hidden = isinstance(state, ViewerState) and state.hidden
        return (
            texts
            if hidden is False
            else ["" if hidden[id - 1] else text for id, text in zip(ids, texts, strict=True)]
        )

    def last_at(self, instant: int) -> int:
        return self.full.last_at(instant)

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Transaction]:
        raise ReadOnlyLab(
            f'This is the lab as "{self._viewer}" sees it, to read and to ask: write to the lab itself, and give the '
            "creator and the visibility of what you remember."
        )
        yield  # what makes it a context manager

    def _state(self) -> State:
        with self._store.reading() as state:
            return view_state(self._store.journal, state, self._viewer, always=True)


class ViewerStore(Store):
    """What ``viewer`` sees of ``store``. It ends with it, and keeps nothing beside it."""

    def __init__(self, store: Store, viewer: str) -> None:
        self._of, self.viewer = store, viewer
        self._marked = self._looking = False
        self.folder, self.embedder, self.clock = None, store.embedder, store.clock
        self.mutex, self.derived = store.mutex, store.derived
        self.journal = ViewerJournal(store, viewer)
        self.fold()

    @property
    def where(self) -> str:
        return f'{self._of.where} as "{self.viewer}" sees it'

    @contextmanager
    def reading(self) -> Iterator[State]:
        with self._of.reading() as state:
            self.state = view_state(self._of.journal, state, self.viewer, always=True)
            self.versions = self._of.versions
            yield self.state

    def fold(self) -> None:
        with self.reading():
            pass

    def as_of(self, view: JournalView, clock: Clock) -> Store:
        return ViewerStore(self._of.as_of(view, clock), self.viewer)

    def refresh_index(self) -> None:
        self._of.refresh_index()

    @property
    def neighbours(self) -> Neighbours:  # type: ignore[override]
        raise InputError(
            "The index is that of the whole lab: ask the lab itself for lab.upkeep.index."
        )

    def close(self) -> None:
        self.journal.close()

"""Turns: an agent says what it is doing and goes on; what its memory has to say about it is there at the next turn."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import LabError, MemlabError
from memlab.kernel.base.arguments import Seconds, checked, get_item
from memlab.kernel.base.display import Displayed, table
from memlab.kernel.base.printable import printable
from memlab.kernel.base.threads import ThreadLock, Worker
from memlab.kernel.hooks import list_hooks
from memlab.kernel.recall import Hit, Hits
from memlab.kernel.state import validate_text
from memlab.kernel.storage.store import Store
from memlab.subjects.agents.verifying import Verifying, verdict_of
from memlab.subjects.verifiers import Verdict, Verifier

__all__ = ["PATIENCE", "BegunTurns", "Surfaced", "Turns"]

PATIENCE = 10.0
"""Seconds that a verifier has for one recall, unless the caller says: a model at hand answers in a few."""

_REST = 50
"""How long, in times of what it took, clusters that recalls span are left alone after a refinement: the lab, which it
holds, is then free for 98% of the time (0.2 s beside 10,000 memories, 1.4 s beside 100,000).
"""

_LOOK = 0.05
"""Seconds between two looks at whether the turns are closed, while a verifier is waited for."""

_MOST_SAID = 300
"""Characters of what a verifier raised."""


@dataclass(frozen=True)
class Surfaced(Sequence[Hit], Displayed):
    """What came up since the offer before, best first, none of it twice on one topic: a sequence of ``Hit``.

    ``len()`` is the number of hits and iteration gives them; it is empty, and false, where nothing came up.

    Attributes
    ----------
    hits
        The hits as a tuple.
    contexts
        The contexts that were searched.
    decisions
        The numbers of their logged recalls, in the same order.
    new_topic
        Whether one of the contexts began another topic.
    skipped
        Contexts that were never searched, because a newer one came before the worker got to them.
    notes
        What went otherwise: a verifier that raised, named what it was not shown or gave no answer in time (what its
        recall showed comes up unverified), clusters that could not be refined, memory that is switched off.
    """

    hits: tuple[Hit, ...] = ()
    contexts: tuple[str, ...] = ()
    decisions: tuple[int | None, ...] = ()
    new_topic: bool = False
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Hit]: ...
    @checked
    def __getitem__(self, index: int | slice) -> Hit | Sequence[Hit]:
        found: Hit | Sequence[Hit] = get_item(self.hits, index, "hit")
        return found

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    @property
    def frame(self) -> pl.DataFrame:
        """``decision``, ``memory_id``, ``score``, ``text``, ``kind``."""
        return pl.DataFrame(
            {
                "decision": [hit.decision for hit in self],
                "memory_id": [hit.id for hit in self],
                "score": [hit.score for hit in self],
                "text": [hit.text for hit in self],
                "kind": [hit.kind for hit in self],
            },
            schema={
                "decision": pl.Int64,
                "memory_id": pl.Int64,
                "score": pl.Float64,
                "text": pl.String,
                "kind": pl.String,
            },
        )

    def _display(self) -> object:
        topic = "a new topic; " if self.new_topic else ""
        rows = [(hit.id, f"{hit.score:.4f}", hit.text) for hit in self]
        notes = [f"not searched: {context}" for context in self.skipped]
        return table(
            f"{topic}{len(self)} came up",
            ("id", "score", "memory"),
            rows,
            notes=[*notes, *self.notes],
        )


class Turns:
    """The turns of one agent; made by ``lab.agents.turns``. One thread, which waits until something is offered.

    ``offer`` takes what the agent is doing and returns at once. One worker searches: while it is at a context, the
    newest of those that come waits, and it takes the place of any that waited before. A memory comes up once; when the
    closeness of a context to the one before falls below the setting ``topic-closeness``, the topic is new, and
    everything may come up again. What came up before still takes part in the recall, and counts as used.

    Each recall is verified (see ``lab.agents.verify``), and only what passes comes up. A verifier runs in a thread of
    its own, and has ``patience`` seconds; one that fails, or names what it was not shown, changes nothing in the lab.
    One that hangs is not asked again before it has answered.

    When nothing waits, clusters are refined where the pack says that it is due: after ``refine-every`` recalls of the
    lab, those of ``lab.recall`` counted too, or when the last one spans several.

    >>> turns = lab.agents.turns(project="api")                                                   # doctest: +SKIP
    >>> turns.offer("the build fails on CI")       # the first time there is nothing yet
    ... # doctest: +SKIP
    >>> turns.offer("a test times out")            # what is known about the build
    ... # doctest: +SKIP
    """

    def __init__(
        self,
        ask: Callable[[str], Hits],
        verifying: Verifying,
        verifier: Verifier | None,
        store: Store,
        *,
        patience: float = PATIENCE,
    ) -> None:
        """``ask`` recalls for a context; ``store`` is that of the lab which it asks."""
        asked = None if verifier is None else _Asked(verifying, verifier, patience)
        self._search = _Search(ask, asked, store)
        weakref.finalize(self, self._search.worker.stop_soon)

    @checked
    def offer(self, context: str) -> Surfaced:
        """What came up for the contexts before, as far as it is ready; then this one waits to be searched.

        Returns at once: nothing is asked of the lab here. An error of a search is raised at the offer after it; what
        else was ready comes with the next.
        """
        return self._search.offer(validate_text(context))

    @checked
    def wait(self, timeout: Seconds | None = None) -> bool:
        """Until the worker has done all that there is to do, at most ``timeout`` seconds; whether it has."""
        return self._search.wait(timeout)

    def close(self) -> None:
        """Let the search that is running end, leave out what waits, and begin no more.

        A verdict that has not come by then is not waited for: what its recall showed stays unverified.
        """
        self._search.close()

    def __enter__(self) -> Turns:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Search:
    """What the worker of some turns does. It does not know them, so that they may be left and not closed."""

    def __init__(self, ask: Callable[[str], Hits], verifying: _Asked | None, store: Store) -> None:
        self._ask, self._verifying, self._store = ask, verifying, store
        self.worker = Worker(f"turns of {store.where}", self._step)
        self._mutex = ThreadLock()
        self._idle = threading.Event()
        self._idle.set()
        self._closed = False
        # guarded by the mutex
        self._next: str | None = None
        self._skipped: list[str] = []
        self._ready: list[Surfaced] = []
        self._failed: list[Exception] = []
        self._notes: list[str] = []
        # of the worker alone: what came up on this topic, and the vector of the last context
        self._known: set[int] = set()
        self._last: NDArray[np.int8] | None = None
        self._rests_until = 0.0

    def offer(self, context: str) -> Surfaced:
        with self._mutex:
            if self._closed:
                raise LabError("These turns have ended: the lab was closed.")
            if self._next is not None:
                self._skipped.append(self._next)
            self._next = context
            self._idle.clear()
            failed = self._failed.pop(0) if self._failed else None
            if failed is None:
                ready, self._ready = self._ready, []
                skipped, self._skipped = self._skipped, []
                notes, self._notes = self._notes, []
        self.worker.wake()
        if failed is not None:
            raise failed
        return _together(ready, skipped, notes)

    def wait(self, timeout: float | None) -> bool:
        if not self._closed and not self._idle.is_set():
            self.worker.wake()  # an interrupt may have ended an offer just before
        return self._idle.wait(timeout)

    def close(self) -> None:
        with self._mutex:
            self._closed = True
        self.worker.stop()
        self._idle.set()

    def _step(self) -> float | None:
        """One search, or where nothing waits what else there is to do; the seconds until the next."""
        with self._mutex:
            context, self._next = self._next, None
        found: Surfaced | None = None
        failed: Exception | None = None
        try:
            if context is None:
                self._maintain()
            else:
                found = self._searched(context)
        except Exception as error:  # noqa: BLE001  also what a caller's expression raises: it is raised at the next offer
            failed = error
        with self._mutex:
            self._ready += [] if found is None else [found]
            self._failed += [] if failed is None else [failed]
            if context is None and self._next is None:
                self._idle.set()
                return None
        return 0.0

    def _searched(self, context: str) -> Surfaced:
        hits = self._ask(context)
        new = self._is_new(hits)
        if new:
            self._known.clear()
        passing, notes = set(hits.ids), () if hits.off is None else (hits.off,)
        if self._verifying is not None and hits.decision is not None:
            verified = self._verifying(hits, stopping=lambda: self.worker.stopping)
            if isinstance(verified, str):
                notes = (*notes, verified)
            else:
                passing = verified
        fresh = tuple(hit for hit in hits if hit.id in passing and hit.id not in self._known)
        self._known.update(hit.id for hit in fresh)
        return Surfaced(fresh, (hits.slate.query,), (hits.decision,), new, notes=notes)

    def _maintain(self) -> None:
        """Call what is due between two turns, such as a refinement of clusters."""
        store = self._store
        if store.journal.read_only or self.worker.stopping:
            return
        began = time.monotonic()
        try:
            spanning = began >= self._rests_until
            made = [
                call(store, store.clock(), spanning=spanning) for call in list_hooks("after-turn")
            ]
        except MemlabError as error:
            with self._mutex:
                self._notes.append(str(error))
            return
        if any(events is not None for events in made):
            ended = time.monotonic()
            self._rests_until = ended + _REST * (ended - began)

    def _is_new(self, hits: Hits) -> bool:
        """Whether this context begins another topic than the last one; the first one begins none."""
        vector, last = np.frombuffer(hits.slate.vector, dtype=np.int8), self._last
        self._last = vector
        if last is None:
            return False
        a, b = vector.astype(np.float64), last.astype(np.float64)
        lengths = float(np.sqrt(a @ a) * np.sqrt(b @ b))
        cosine = float(a @ b) / lengths if lengths else 0.0
        closeness = self._store.embedder.closeness(np.array([cosine]))
        return float(closeness[0]) < hits.pack.number("topic-closeness")


class _Asked:
    """A verifier that is asked in a thread of its own, at most one at a time, and for so long."""

    def __init__(self, verifying: Verifying, verifier: Verifier, patience: float) -> None:
        self._verifying, self._verifier, self._patience = verifying, verifier, patience
        self._thread: threading.Thread | None = None
        self._asked: int | None = None

    def __call__(self, hits: Hits, *, stopping: Callable[[], bool]) -> set[int] | str:
        """The ids that pass, with the verdict carried out; or why there is none."""
        if self._thread is not None and self._thread.is_alive():
            return f"Not verified: the verifier has not answered for recall {self._asked} yet."
        answered: list[Verdict | str] = []

        def ask() -> None:
            try:
                answered.append(verdict_of(hits, self._verifier))
            except Exception as error:  # noqa: BLE001  a caller's own: it is told with what came up
                answered.append(f"{type(error).__name__}: {error}")

        self._asked = hits.decision
        self._thread = threading.Thread(target=ask, name="memlab verifier", daemon=True)
        self._thread.start()
        until = time.monotonic() + self._patience
        while self._thread.is_alive() and not stopping() and (left := until - time.monotonic()) > 0:
            self._thread.join(min(left, _LOOK))
        late = (
            f"it gave no verdict within {self._patience:g} s"
            if self._thread.is_alive()
            else "it gave no verdict"
        )
        verdict = answered[0] if answered else late
        if isinstance(verdict, Verdict):
            try:
                return set(self._verifying.verify(hits, verdict).accepted)
            except MemlabError as error:
                verdict = str(error)
        return printable(f"Recall {hits.decision} is not verified: {verdict[:_MOST_SAID]}")


def _together(several: list[Surfaced], skipped: list[str], notes: list[str]) -> Surfaced:
    hits = {hit.id: hit for one in several for hit in one.hits}
    return Surfaced(
        tuple(hits.values()),
        tuple(context for one in several for context in one.contexts),
        tuple(decision for one in several for decision in one.decisions),
        any(one.new_topic for one in several),
        tuple(skipped),
        (*(note for one in several for note in one.notes), *notes),
    )


class BegunTurns(weakref.WeakSet[Turns]):
    """The turns that a lab has begun and that somebody still holds."""

    def stop(self) -> None:
        """Close all of them."""
        for turns in list(self):
            turns.close()

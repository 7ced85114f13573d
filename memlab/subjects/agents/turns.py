"""Turns: recalls in the background while an agent works, ready at its next turn."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import polars as pl

from memlab.errors import LabError, MemlabError
from memlab.kernel.base.arguments import Seconds, checked, get_item
from memlab.kernel.base.arrays import Components
from memlab.kernel.base.display import Displayed, table
from memlab.kernel.base.printable import printable
from memlab.kernel.base.threads import ThreadLock, Worker
from memlab.kernel.hooks import list_hooks
from memlab.kernel.recall import Hit, Hits
from memlab.kernel.state import validate_text
from memlab.kernel.storage.store import Store
from memlab.subjects.agents.verifying import Verifying, get_verdict
from memlab.subjects.verifiers import Verdict, Verifier

PATIENCE = 10.0
"""Default seconds that a verifier has for one recall; a local model answers in a few."""

_REST = 50
"""Pause after a refinement of clusters that span recalls, as a multiple of its duration.

A refinement locks the lab, which is then free for 98% of the time (0.2 s with 10,000 memories, 1.4
s with 100,000).
"""

_POLL_SECONDS = 0.05
"""Seconds between two checks for closed turns while a verifier runs."""

_MAX_ERROR_LENGTH = 300
"""Maximum characters of an error of a verifier."""


@dataclass(frozen=True)
class Surfaced(Sequence[Hit], Displayed):
    """The memories that surfaced since the previous offer, best first.

    It is a sequence of ``Hit``, empty if nothing surfaced. No memory surfaces twice on one topic.

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
        Contexts that were not searched, because a newer one arrived first.
    notes
        Problems: a verifier that raised, named other memories or did not answer in time (its hits
        surface unverified), clusters that could not be refined, memory that is switched off.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember("The build on CI needs Node 20")
    >>> with lab.agents.turns() as turns:
    ...     _ = turns.offer("the build fails on CI")
    ...     _ = turns.wait()
    ...     surfaced = turns.offer("a test times out")
    >>> surfaced.contexts, len(surfaced)
    (('the build fails on CI',), 1)
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
        selected: Hit | Sequence[Hit] = get_item(self.hits, index, "hit")
        return selected

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    @property
    def frame(self) -> pl.DataFrame:
        """A frame with one row per hit.

        The columns are ``decision``, ``memory_id``, ``score``, ``text`` and ``kind``.
        """
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
            f"{topic}{len(self)} {'memory' if len(self) == 1 else 'memories'} surfaced",
            ("id", "score", "memory"),
            rows,
            notes=[*notes, *self.notes],
        )


class Turns:
    """Turns of one agent, from ``lab.agents.turns``: recalls in the background.

    ``offer`` takes what the agent is doing and returns at once. One worker searches; while it is
    busy, only the newest context waits, and replaces an older one.

    Parameters
    ----------
    ask
        A function from a context to its hits.
    verifying
        The lab's verification.
    verifier
        The verifier of each recall, or None.
    store
        The store of the lab.
    patience
        The seconds that the verifier has for one recall.

    Notes
    -----
    A memory surfaces once per topic. A topic is new if the closeness of a context to the previous
    one is below the setting ``topic-closeness``; then every memory may surface again. Memories that
    have surfaced still take part in recalls, and count as used.

    Each recall is verified (``lab.agents.verify``), and only accepted hits surface. The verifier
    runs in its own thread for at most ``patience`` seconds. If it fails or names other memories,
    nothing in the lab changes. While it hangs, it is not called again.

    When no context waits, clusters are refined if the pack says so: after ``refine-every`` recalls
    of the lab, or when the last recall spans several clusters.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember("The build on CI needs Node 20")
    >>> turns = lab.agents.turns()
    >>> len(turns.offer("the build fails on CI"))  # nothing is ready at the first turn
    0
    >>> turns.wait()
    True
    >>> turns.offer("a test times out")[0].text
    'The build on CI needs Node 20'
    >>> turns.close()
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
        timed_verifier = None if verifier is None else _TimedVerifier(verifying, verifier, patience)
        self._search = _Search(ask, timed_verifier, store)
        weakref.finalize(self, self._search.worker.stop_soon)

    @checked
    def offer(self, context: str) -> Surfaced:
        """Queue a context for background recall; return the hits of earlier contexts.

        The call returns at once. An error of a search is raised at the next offer; other results
        come with the offer after that.

        Parameters
        ----------
        context
            What the agent is doing.

        Returns
        -------
        Surfaced
            The new hits since the previous offer.

        Raises
        ------
        LabError
            If the turns are closed.

        Examples
        --------
        >>> import memlab
        >>> with memlab.open().agents.turns() as turns:
        ...     len(turns.offer("the build fails on CI"))
        0
        """
        return self._search.offer(validate_text(context))

    @checked
    def wait(self, timeout: Seconds | None = None) -> bool:
        """Wait until the worker has searched all contexts.

        Parameters
        ----------
        timeout
            The maximum number of seconds. Default: no limit.

        Returns
        -------
        bool
            Whether the worker has finished.

        Examples
        --------
        >>> import memlab
        >>> with memlab.open().agents.turns() as turns:
        ...     turns.wait(1.0)
        True
        """
        return self._search.wait(timeout)

    def close(self) -> None:
        """Finish the current search, drop waiting contexts, and end the turns.

        The call does not wait for a pending verdict; the recall stays unverified.

        Examples
        --------
        >>> import memlab
        >>> turns = memlab.open().agents.turns()
        >>> turns.close()
        """
        self._search.close()

    def __enter__(self) -> Turns:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Search:
    """The background worker of one ``Turns``, with its queue and results.

    It holds no reference to the turns, so that abandoned turns can end.
    """

    def __init__(
        self, ask: Callable[[str], Hits], verifying: _TimedVerifier | None, store: Store
    ) -> None:
        self._ask, self._verifying, self._store = ask, verifying, store
        self.worker = Worker(f"turns of {store.where}", self._step)
        # Guards what the worker and the caller of ``offer`` share.
        self._mutex = ThreadLock()
        self._idle = threading.Event()
        self._idle.set()
        self._closed = False
        self._next: str | None = None
        self._skipped: list[str] = []
        self._ready: list[Surfaced] = []
        self._failed: list[Exception] = []
        self._notes: list[str] = []
        # Used by the worker alone: what surfaced on this topic, and the vector of the last context.
        self._surfaced_ids: set[int] = set()
        self._last: Components | None = None
        self._rests_until = 0.0

    def offer(self, context: str) -> Surfaced:
        """Queue a context; return the finished results, or raise the error of an earlier search."""
        with self._mutex:
            if self._closed:
                raise LabError(
                    "These turns, or their lab, are closed. Start new turns with lab.agents.turns()."
                )
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
        return _merge_results(ready, skipped, notes)

    def wait(self, timeout: float | None) -> bool:
        """Wait until no context is queued; return False after a timeout."""
        if not self._closed and not self._idle.is_set():
            self.worker.wake()  # an interrupt may have ended an offer before it woke the worker
        return self._idle.wait(timeout)

    def close(self) -> None:
        """Stop the worker, and release the callers that wait."""
        with self._mutex:
            self._closed = True
        self.worker.stop()
        self._idle.set()

    def _step(self) -> float | None:
        """Search the waiting context, or do maintenance if none waits; return 0.0 to be called again at once.

        The result is None after maintenance if no new context has arrived: the worker then sleeps.
        """
        with self._mutex:
            context, self._next = self._next, None
        surfaced: Surfaced | None = None
        failed: Exception | None = None
        try:
            if context is None:
                self._maintain()
            else:
                surfaced = self._search(context)
        except Exception as error:  # noqa: BLE001  any error is raised at the next offer
            failed = error
        with self._mutex:
            self._ready += [] if surfaced is None else [surfaced]
            self._failed += [] if failed is None else [failed]
            if context is None and self._next is None:
                self._idle.set()
                return None
        return 0.0

    def _search(self, context: str) -> Surfaced:
        """Recall memories for a context; return the verified hits that have not surfaced before on this topic."""
        hits = self._ask(context)
        new = self._is_new(hits)
        if new:
            self._surfaced_ids.clear()
        passing, notes = set(hits.ids), () if hits.off is None else (hits.off,)
        if self._verifying is not None and hits.decision is not None:
            verified = self._verifying(hits, stopping=lambda: self.worker.stopping)
            if isinstance(verified, str):
                notes = (*notes, verified)
            else:
                passing = verified
        fresh = tuple(hit for hit in hits if hit.id in passing and hit.id not in self._surfaced_ids)
        self._surfaced_ids.update(hit.id for hit in fresh)
        return Surfaced(fresh, (hits.slate.query,), (hits.decision,), new, notes=notes)

    def _maintain(self) -> None:
        """Call the hooks for work between two turns, such as refining clusters."""
        store = self._store
        if store.journal.read_only or self.worker.stopping:
            return
        start = time.monotonic()
        try:
            spanning = start >= self._rests_until
            results = [
                call(store, store.clock(), spanning=spanning) for call in list_hooks("after-turn")
            ]
        except MemlabError as error:
            with self._mutex:
                self._notes.append(str(error))
            return
        if any(events is not None for events in results):
            end = time.monotonic()
            self._rests_until = end + _REST * (end - start)

    def _is_new(self, hits: Hits) -> bool:
        """Return whether the topic of these hits' context differs from the last context's; False for the first."""
        vector, last = np.frombuffer(hits.slate.vector, dtype=np.int8), self._last
        self._last = vector
        if last is None:
            return False
        a, b = vector.astype(np.float64), last.astype(np.float64)
        lengths = float(np.sqrt(a @ a) * np.sqrt(b @ b))
        cosine = float(a @ b) / lengths if lengths else 0.0
        closeness = self._store.embedder.closeness(np.array([cosine]))
        return float(closeness[0]) < hits.pack.number("topic-closeness")


class _TimedVerifier:
    """A verifier that runs in its own thread, with a time limit for each recall."""

    def __init__(self, verifying: Verifying, verifier: Verifier, patience: float) -> None:
        self._verifying, self._verifier, self._patience = verifying, verifier, patience
        self._thread: threading.Thread | None = None
        self._decision: int | None = None

    def __call__(self, hits: Hits, *, stopping: Callable[[], bool]) -> set[int] | str:
        """Apply a verdict; return the accepted ids, or the reason that no verdict was applied."""
        if self._thread is not None and self._thread.is_alive():
            return f"Not verified: the verifier has not answered for recall {self._decision} yet."
        answers: list[Verdict | str] = []

        def ask() -> None:
            try:
                answers.append(get_verdict(hits, self._verifier))
            except Exception as error:  # noqa: BLE001  any error of the verifier becomes a note
                answers.append(f"{type(error).__name__}: {error}")

        self._decision = hits.decision
        self._thread = threading.Thread(target=ask, name="memlab verifier", daemon=True)
        self._thread.start()
        until = time.monotonic() + self._patience
        while self._thread.is_alive() and not stopping() and (left := until - time.monotonic()) > 0:
            self._thread.join(min(left, _POLL_SECONDS))
        no_answer = (
            f"it gave no verdict within {self._patience:g} s"
            if self._thread.is_alive()
            else "it gave no verdict"
        )
        verdict = answers[0] if answers else no_answer
        if isinstance(verdict, Verdict):
            try:
                return set(self._verifying.verify(hits, verdict).accepted)
            except MemlabError as error:
                verdict = str(error)
        return printable(f"Recall {hits.decision} is not verified: {verdict[:_MAX_ERROR_LENGTH]}")


def _merge_results(results: list[Surfaced], skipped: list[str], notes: list[str]) -> Surfaced:
    """Merge the results of several searched contexts into one, with each memory at its first position."""
    # A memory that surfaced in several searches is returned once, at the position of the first.
    hits = {hit.id: hit for result in results for hit in result.hits}
    return Surfaced(
        tuple(hits.values()),
        tuple(context for result in results for context in result.contexts),
        tuple(decision for result in results for decision in result.decisions),
        any(result.new_topic for result in results),
        tuple(skipped),
        (*(note for result in results for note in result.notes), *notes),
    )


class OpenTurns(weakref.WeakSet[Turns]):
    """The open turns of a lab that are still referenced."""

    def stop(self) -> None:
        """Close all turns."""
        for turns in list(self):
            turns.close()

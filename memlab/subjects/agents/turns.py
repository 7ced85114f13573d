"""Turns: an agent says what it is doing and goes on; what its memory has to say about it is there at the next turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.arguments import Seconds, checked, item
from memlab.display import table
from memlab.errors import LabError
from memlab.interrupts import ThreadLock
from memlab.recall import Hit, Hits
from memlab.state import checked_text
from memlab.subjects.feedback.feedback import Judgements
from memlab.verifiers import Verifier

__all__ = ["Surfaced", "Turns"]


@dataclass(frozen=True)
class Surfaced(Sequence[Hit]):
    """What came up since the turn before, best first, none of it twice on one topic.

    ``decisions`` are the recalls that it comes from (one, unless turns came faster than recalls), ``contexts`` what
    they were asked for, and ``new_topic`` says whether one of those began another topic.
    """

    hits: tuple[Hit, ...] = ()
    contexts: tuple[str, ...] = ()
    decisions: tuple[int | None, ...] = ()
    new_topic: bool = False

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Hit]: ...
    @checked
    def __getitem__(self, index: int | slice) -> Hit | Sequence[Hit]:
        found: Hit | Sequence[Hit] = item(self.hits, index, "hit")
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

    def _repr_html_(self) -> str:
        note = "a new topic; " if self.new_topic else ""
        rows = [(hit.id, f"{hit.score:.4f}", hit.text) for hit in self]
        return table(f"{note}{len(self)} came up", ("id", "score", "memory"), rows)


class Turns:
    """The turns of one agent; made by ``lab.agents.turns``. One thread, which runs only while there is something to do.

    Contexts are searched in the order in which they came. A memory comes up once; when the closeness of a context to
    the one before falls below the setting ``topic-closeness``, the topic is new, and everything may come up again.
    What came up before still takes part in the recall, and counts as used.

    With a ``verifier`` each recall is verified (see ``lab.verify``), and only what passes comes up.

    >>> turns = lab.agents.turns(project="api", verifier=memlab.verifiers.overlap)                # doctest: +SKIP
    >>> turns.turn("the build fails on CI")        # the first time there is nothing yet
    ... # doctest: +SKIP
    >>> turns.turn("a test times out")             # what is known about the build
    ... # doctest: +SKIP
    """

    def __init__(
        self,
        ask: Callable[[str], Hits],
        judgements: Judgements,
        verifier: Verifier | None,
        closeness: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    ) -> None:
        """``ask`` recalls for a context; ``closeness`` puts cosines on the scale of ``topic-closeness``."""
        self._ask, self._judgements, self._verifier, self._closeness = ask, judgements, verifier, closeness
        self._mutex = ThreadLock()
        self._worker: ThreadPoolExecutor | None = None
        self._begun: list[Future[Surfaced]] = []
        self._closed = False
        # of the worker alone: what came up on this topic, and the vector of the last context
        self._known: set[int] = set()
        self._last: np.ndarray[Any, np.dtype[np.int8]] | None = None

    @checked
    def turn(self, context: str) -> Surfaced:
        """What came up for the contexts before, as far as it is ready; then the search for this one begins.

        Returns at once. An error of a search is raised at the turn after it; what else was ready comes with the next.
        """
        text = checked_text(context)
        with self._mutex:
            if self._closed:
                raise LabError("These turns have ended: the lab was closed.")
            failed, ready = self._ready()
            if self._worker is None:
                self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="memlab-turns")
            self._begun.append(self._worker.submit(self._search, text))
        if failed is not None:
            raise failed
        return _together([future.result() for future in ready])

    @checked
    def wait(self, timeout: Seconds | None = None) -> bool:
        """Until the worker has done all that was begun, at most ``timeout`` seconds; whether it has."""
        with self._mutex:
            begun = list(self._begun)
        return not wait(begun, timeout).not_done

    def close(self) -> None:
        """Let the search that is running end, leave out those that wait, and begin no more."""
        with self._mutex:
            self._closed = True
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Turns:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _ready(self) -> tuple[BaseException | None, list[Future[Surfaced]]]:
        """Searches that have ended, which are forgotten here; or the first error among them, and nothing else."""
        done = [future for future in self._begun if future.done()]
        failed = next((future for future in done if future.exception() is not None), None)
        taken = done if failed is None else [failed]
        self._begun = [future for future in self._begun if future not in taken]
        return (None, done) if failed is None else (failed.exception(), [])

    def _search(self, context: str) -> Surfaced:
        hits = self._ask(context)
        new = self._is_new(hits)
        if new:
            self._known.clear()
        passing = set(hits.ids)
        if self._verifier is not None and hits.decision is not None:
            passing = set(self._judgements.verify(hits, self._verifier).accepted)
        fresh = tuple(hit for hit in hits if hit.id in passing and hit.id not in self._known)
        self._known.update(hit.id for hit in fresh)
        return Surfaced(fresh, (hits.slate.query,), (hits.decision,), new)

    def _is_new(self, hits: Hits) -> bool:
        """Whether this context begins another topic than the last one; the first one begins none."""
        vector, last = np.frombuffer(hits.slate.vector, dtype=np.int8), self._last
        self._last = vector
        if last is None:
            return False
        a, b = vector.astype(np.float64), last.astype(np.float64)
        lengths = float(np.sqrt(a @ a) * np.sqrt(b @ b))
        cosine = float(a @ b) / lengths if lengths else 0.0
        return float(self._closeness(np.array([cosine]))[0]) < hits.pack.number("topic-closeness")


def _together(several: list[Surfaced]) -> Surfaced:
    hits = {hit.id: hit for one in several for hit in one.hits}
    return Surfaced(
        tuple(hits.values()),
        tuple(context for one in several for context in one.contexts),
        tuple(decision for one in several for decision in one.decisions),
        any(one.new_topic for one in several),
    )

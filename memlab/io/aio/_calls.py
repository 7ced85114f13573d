"""Calls of a lab that are written down first and run later, on the lab's own thread."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import copy_context
from functools import partial
from typing import Any

from memlab.errors import LabError
from memlab.subjects.agent_verbs.agents import Agent
from memlab.subjects.agent_verbs.session import Session
from memlab.subjects.agents.turns import Turns
from memlab.subjects.lab import Lab

LIVE = (Lab, Agent, Session, Turns)
"""Results whose methods use the lab, so they are awaited, too. All other results are values."""


class LabThread:
    """The thread on which all calls of one lab run, in the order in which they were made."""

    def __init__(self) -> None:
        # One thread: a lab serves one call at a time anyway, and each further thread would compete with the event
        # loop for the interpreter (100 recalls on many threads delayed a loop by 99 ms, on one by 5 to 10 ms).
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="memlab")
        self.is_closed = False

    async def run(
        self,
        call: Callable[[], Any],
        *,
        undo: Callable[[Any], object] | None = None,
        ends: bool = False,
    ) -> Any:
        """Run a call on the thread and return its result.

        A cancelled call that has not begun never begins. One that has begun is completed, so that no
        write is half done, and ``undo`` gets its result. A call that ``ends`` a block is always
        completed; only the wait for it is cancelled.
        """
        if self.is_closed:
            raise LabError("This AsyncLab is closed. Open another with AsyncLab.open(...).")
        # The context carries the caller's trace and other context variables.
        job: Future[Any] = self._pool.submit(copy_context().run, call)
        waiting = asyncio.wrap_future(job)
        try:
            return await (asyncio.shield(waiting) if ends else waiting)
        except asyncio.CancelledError:
            if undo is not None:
                job.add_done_callback(partial(_undo, undo))
            raise

    def close(self) -> None:
        """Refuse further calls, and complete the pending calls."""
        self.is_closed = True
        self._pool.shutdown(wait=False)


def _undo(undo: Callable[[Any], object], job: Future[Any]) -> None:
    """Reverse the effect of a finished call whose caller was cancelled."""
    if not job.cancelled() and job.exception() is None:
        undo(job.result())


class Path:
    """A name below a lab, such as ``agents.observe``, or a live object with methods to await.

    A further name or call extends it. ``await`` returns its value, which the lab's thread computes, and ``async
    with`` enters it.
    """

    def __init__(self, thread: LabThread, resolve: Callable[[], Any], path: str) -> None:
        self._thread, self._resolve, self._path = thread, resolve, path
        self._is_forgotten = False
        self._entered: AbstractContextManager[Any] | None = None

    def __getattr__(self, name: str) -> Path:
        if name.startswith("_"):
            raise AttributeError(f"{self._path} has no attribute {name!r}.", name=name, obj=self)
        self._is_forgotten = False
        return Path(
            self._thread, lambda: getattr(self._resolve_once(), name), f"{self._path}.{name}"
        )

    def __call__(self, *args: Any, **keywords: Any) -> Call:
        return Call(
            self._thread,
            lambda: self._resolve_once()(*args, **keywords),
            f"{self._path}(...)",
        )

    def __getitem__(self, key: Any) -> Call:
        self._is_forgotten = False
        return Call(self._thread, lambda: self._resolve_once()[key], f"{self._path}[...]")

    def __repr__(self) -> str:
        return f"<{self._path}, to be awaited>"

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._run().__await__()

    async def _run(self) -> Any:
        self._is_forgotten = False
        return self._wrap(await self._thread.run(self._resolve_once))

    def _resolve_once(self) -> Any:
        """Compute the value; must run on the lab's thread. A `Call` keeps the value."""
        return self._resolve()

    def _wrap(self, value: Any) -> Any:
        """Return plain values unchanged; wrap a live object of the lab in a path."""
        if not isinstance(value, LIVE):
            return value
        return Path(self._thread, lambda: value, type(value).__name__.lower())

    async def __aenter__(self) -> Any:
        self._is_forgotten = False

        def enter() -> tuple[AbstractContextManager[Any], Any]:
            manager = self._resolve_once()
            return manager, manager.__enter__()

        self._entered, value = await self._thread.run(
            enter, undo=lambda entered: entered[0].__exit__(None, None, None)
        )
        return self._wrap(value)

    async def __aexit__(self, *error: Any) -> Any:
        assert self._entered is not None
        return await self._thread.run(partial(self._entered.__exit__, *error), ends=True)


class Call(Path, Coroutine[Any, Any, Any]):
    """A call below a lab. It is a coroutine, so tasks and task groups take it; its value is computed once."""

    def __init__(self, thread: LabThread, resolve: Callable[[], Any], path: str) -> None:
        super().__init__(thread, resolve, path)
        # Until it is awaited or extended; a forgotten await is a mistake, as for any coroutine.
        self._is_forgotten = True
        self._value: tuple[Any] | None = None
        self._running: Coroutine[Any, Any, Any] | None = None

    def _resolve_once(self) -> Any:
        # An agent has many calls behind it, and is made once.
        if self._value is None:
            self._value = (self._resolve(),)
        return self._value[0]

    def send(self, value: Any) -> Any:
        """Continue the call. asyncio calls this method."""
        self._running = self._running or self._run()
        return self._running.send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an error in the call, such as a cancellation. asyncio calls this method."""
        self._running = self._running or self._run()
        return self._running.throw(*error)

    def close(self) -> Any:
        """Abandon the call. asyncio calls this method."""
        self._is_forgotten = False
        if self._running is not None:
            self._running.close()

    def __del__(self) -> None:
        if self._is_forgotten:
            warnings.warn(
                f"{self._path} was never awaited, so it did not run.", RuntimeWarning, stacklevel=2
            )

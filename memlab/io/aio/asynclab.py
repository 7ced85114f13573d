"""``AsyncLab``: a lab whose verbs are awaited."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path as FilePath
from typing import Annotated, Any, Self

from memlab.errors import LabError
from memlab.io.aio._calls import Call, LabThread, Path
from memlab.kernel.base.arguments import AsGiven, checked
from memlab.subjects.lab import ACCESSORS, Lab
from memlab.subjects.listening import Listener, VerbCall
from memlab.subjects.opening import open_lab


class AsyncLab:
    """A lab to await: each verb and accessor of ``Lab``, for event loops.

    ``await lab.recall("...")`` and ``await lab.agents.observe("...")`` take the arguments and return
    the results of the same names of ``Lab``. The calls run on a thread of the lab's own, in order,
    so the event loop stays free. ``lab.agent("coder")``, its ``session`` and ``lab.agents.turns()`` have
    methods to await, too. Errors are the same as in ``Lab``.

    Parameters
    ----------
    path
        The directory of the lab, None for a lab in memory, or a ``Lab`` that is open already.
    **options
        The other arguments of ``memlab.open``.

    Raises
    ------
    LabError
        If the lab is used before it is open, or after it was closed.

    Notes
    -----
    A cancelled call that waits for the thread never begins. A call that runs is completed, so a write
    is stored whole or not at all; only its result is lost. The end of ``async with`` is always completed.

    A result has the same type as in ``Lab``. Methods of results that compute, such as ``hit.explain``,
    run on the thread by ``await lab.run(hit.explain)``.

    Examples
    --------
    >>> import asyncio, memlab
    >>> async def main():
    ...     async with memlab.AsyncLab() as lab:
    ...         await lab.remember("The user prefers tabs")
    ...         return (await lab.recall("tabs or spaces?"))[0].text
    >>> asyncio.run(main())
    'The user prefers tabs'
    """

    @checked
    def __init__(self, path: str | FilePath | Lab | None = None, **options: Any) -> None:
        self._thread = LabThread()
        self._lab = path if isinstance(path, Lab) else None
        self._open: Callable[[], Lab] = partial(open_lab, path, **options)  # type: ignore[arg-type]  # a Lab is open
        # Tasks of coroutine functions that listen: asyncio itself keeps only weak references.
        self._tasks: set[asyncio.Task[Any]] = set()

    @classmethod
    @checked
    async def open(cls, path: str | FilePath | None = None, **options: Any) -> Self:
        """Open a lab; see ``memlab.open`` for the arguments and errors.

        Parameters
        ----------
        path
            The directory of the lab; None for a lab in memory.
        **options
            The other arguments of ``memlab.open``.

        Returns
        -------
        AsyncLab
            The open lab. ``await lab.close()`` closes it.

        Examples
        --------
        >>> import asyncio, memlab
        >>> async def main():
        ...     lab = await memlab.AsyncLab.open()
        ...     await lab.close()
        >>> asyncio.run(main())
        """
        return await cls(path, **options).__aenter__()

    @property
    def lab(self) -> Lab:
        """The lab, for functions that take a ``Lab``; its calls block their caller."""
        if self._lab is None:
            raise LabError(
                "This AsyncLab is not open. Use `async with AsyncLab(...) as lab:` or `await AsyncLab.open(...)`."
            )
        return self._lab

    def __getattr__(self, name: str) -> Path:
        if name.startswith("_") or not (hasattr(Lab, name) or name in ACCESSORS):
            raise AttributeError(f"AsyncLab has no attribute {name!r}.", name=name, obj=self)
        lab = self.lab
        return Path(self._thread, lambda: getattr(lab, name), name)

    def __getitem__(self, memory: Any) -> Call:
        lab = self.lab
        return Path(self._thread, lambda: lab, "lab")[memory]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(Lab), *ACCESSORS})

    def __repr__(self) -> str:
        return f"<AsyncLab {'not open' if self._lab is None else self._lab.io.path or 'in memory'}>"

    @checked
    async def run(self, f: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
        """Call a function, such as a result's method, on the lab's thread.

        Parameters
        ----------
        f
            The function.
        *args, **keywords
            Its arguments.

        Returns
        -------
        Any
            The result of the function.

        Examples
        --------
        >>> import asyncio, memlab
        >>> async def main():
        ...     async with memlab.AsyncLab() as lab:
        ...         await lab.remember("The user prefers tabs")
        ...         hits = await lab.recall("tabs or spaces?")
        ...         return await lab.run(hits[0].explain)
        >>> asyncio.run(main()) is not None
        True
        """
        return await self._thread.run(partial(f, *args, **keywords))

    @checked
    async def on(self, verb: str, f: Annotated[Any, AsGiven]) -> Listener:
        """Call a function, or start a coroutine, after each call of a verb.

        ``Lab.on`` lists the verbs.

        Parameters
        ----------
        verb
            The verb, or "*".
        f
            A function, called on the lab's thread, or a coroutine function, started in this event loop.

        Returns
        -------
        Listener
            The listener; ``remove`` it, or use it in a ``with`` block.

        Examples
        --------
        >>> import asyncio, memlab
        >>> async def main():
        ...     async with memlab.AsyncLab() as lab:
        ...         queries = []
        ...         await lab.on("recall", lambda call: queries.append(call.arguments["query"]))
        ...         await lab.recall("tabs or spaces?")
        ...         return queries
        >>> asyncio.run(main())
        ['tabs or spaces?']
        """
        listening = f
        if inspect.iscoroutinefunction(f):
            loop = asyncio.get_running_loop()

            def start(call: VerbCall) -> None:
                task = loop.create_task(f(call))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

            def listening(call: VerbCall) -> Any:
                return loop.call_soon_threadsafe(start, call)

        return await self.run(self.lab.on, verb, listening)  # type: ignore[no-any-return]

    async def close(self) -> None:
        """Close the lab as ``Lab.close`` does, after all pending calls have finished.

        Closing twice has no effect.

        Examples
        --------
        >>> import asyncio, memlab
        >>> async def main():
        ...     lab = await memlab.AsyncLab.open()
        ...     await lab.close()
        >>> asyncio.run(main())
        """
        if self._lab is not None and not self._thread.is_closed:
            try:
                await self._thread.run(self._lab.close, ends=True)
            finally:
                self._thread.close()

    async def __aenter__(self) -> Self:
        if self._lab is None:
            self._lab = await self._thread.run(self._open, undo=Lab.close)
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.close()

"""Run the tasks of a batch in this process, in other processes, or on a cluster.

Every call with the argument ``executor`` splits its work into tasks that are independent of one
another, and passes them to ``run_tasks``. A task is a function of a module and a value, so it can be
pickled. Its result depends on its value alone, so results are the same bits with any executor.

A worker may end, answer late, or run a task twice. Each task has one future, which is read once, so
nothing is counted twice. A batch returns all results or raises an error.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import closing, contextmanager
from multiprocessing import get_context
from typing import Annotated, Any, NamedTuple, Protocol, TypeAlias, TypeVar

from memlab.errors import InputError, MemlabError, WorkerLost
from memlab.kernel.base.arguments import Taken, describe_value
from memlab.kernel.base.progress import Step
from memlab.kernel.version import __version__

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")

_ATTEMPTS = 2
"""How often memlab starts processes for a batch.

The system ends a process at random if memory is short, so a second attempt often succeeds. A task that
ends its process twice would end it again.
"""


class Executor(Protocol):
    """An object that runs calls elsewhere, such as ``concurrent.futures.ProcessPoolExecutor``."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        """Schedule a call, and return a future with ``result`` and ``cancel``."""


def _read_executor(executor: Any) -> Any:
    """Return the argument ``executor`` of a batch after checking it."""
    number = isinstance(executor, int) and not isinstance(executor, bool) and executor > 0
    if not (number or executor is None or callable(getattr(executor, "submit", None))):
        raise InputError(
            "An executor must be a number of processes, at least 1, or an object with submit, such as a "
            f"ProcessPoolExecutor or a dask.distributed.Client; not {describe_value(executor)}."
        )
    # Polars starts threads, which a forked process does not have, so its first query would wait forever.
    context = getattr(executor, "_mp_context", None)
    if context is not None and context.get_start_method() == "fork":
        raise InputError(
            "The executor forks its processes, and Polars would wait forever in them. Pass a number of processes, or "
            'ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")).'
        )
    return executor


Workers: TypeAlias = Annotated[Any, Taken("an executor", _read_executor)]
"""The argument ``executor``: a number of processes, an object with ``submit``, or None."""


class _Outcome(NamedTuple):
    """The result or exception of a task, and the worker's version of memlab."""

    version: str
    result: Any = None
    error: Exception | None = None


def _run_task(work: Callable[[Any, Step], Any], task: Any) -> _Outcome:
    """Run a task in a worker, and return its result or its exception as an outcome.

    An exception of the task is part of the outcome, so that any other exception of its future is a
    failure of the executor, whichever class the executor raises.
    """
    try:
        return _Outcome(__version__, work(task, _ignore_progress))
    except _Terminated:
        # The pool would give this process its next task, so the process ends without the pool.
        os._exit(1)
    except Exception as error:  # noqa: BLE001 - the exception is raised where the batch was called
        if not isinstance(error, MemlabError):
            error.add_note(traceback.format_exc())
        return _Outcome(__version__, None, error)


class _Terminated(SystemExit):
    """The end of a process of memlab, which lets its task remove temporary files."""


def _ignore_progress(n: float) -> None:
    """Show no progress, because a worker process has no display."""


def _keep_nothing(result: object) -> None:
    """Store no result."""


def _prepare_process() -> None:
    """Make a worker process ignore interrupts, and clean up when the process is terminated.

    A keyboard interrupt reaches all processes. The calling process then terminates its workers.
    """

    def terminate(*_: object) -> None:
        raise _Terminated(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, terminate)


@contextmanager
def _open_executor(executor: Any) -> Iterator[Any]:
    """Provide an executor: the given one, or a pool of that many new processes, which end afterwards."""
    if not isinstance(executor, int):
        yield executor
        return
    pool = ProcessPoolExecutor(executor, get_context("spawn"), _prepare_process)
    try:
        yield pool
    except BaseException:
        for process in (pool._processes or {}).values():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def run_tasks(
    work: Callable[[_Task, Step], _Result],
    tasks: Sequence[_Task],
    executor: Any = None,
    step: Step = _ignore_progress,
    units: float = 1,
    keep: Callable[[_Result], object] = _keep_nothing,
) -> list[_Result]:
    """Run a function on each task, and return the results in the order of the tasks.

    Parameters
    ----------
    work
        A function of a module, or a ``functools.partial`` of one. It takes a task and a function that
        advances the progress.
    tasks
        The tasks. With an executor, each is pickled together with ``work``.
    executor
        A number of processes to start, or an object with ``submit``. Default: this thread.
    step
        The function that advances the progress.
    units
        The units of progress of a task. In this thread, ``work`` advances the progress itself.
    keep
        A function that gets each result as soon as the results of this task and of all earlier tasks are known.

    Returns
    -------
    list
        A result for each task.

    Raises
    ------
    WorkerLost
        If the executor does not return a result, because a worker ended or a task cannot be pickled.
    InputError
        If a worker runs another version of memlab.
    Exception
        If a task fails: the exception of the first such task.
    """
    results: list[_Result] = []
    if executor is None or not tasks:
        for task in tasks:
            results.append(work(task, step))
            keep(results[-1])
        return results
    if isinstance(executor, int):
        executor = min(executor, len(tasks))
    for attempt in range(_ATTEMPTS):
        waiting = tasks[len(results) :]
        try:
            with (
                _open_executor(executor) as pool,
                closing(_submit(pool, work, waiting)) as outcomes,
            ):
                for outcome in outcomes:
                    results.append(_read_outcome(outcome))
                    keep(results[-1])
                    step(units)
            break
        except WorkerLost as error:
            # Only processes of memlab can be started again. Dask gives the tasks of a dead worker to the others.
            broken = isinstance(error.__cause__, BrokenExecutor) and isinstance(executor, int)
            if not broken or attempt + 1 == _ATTEMPTS:
                raise
    return results


def _submit(
    pool: Executor, work: Callable[..., Any], tasks: Sequence[Any]
) -> Generator[_Outcome, None, None]:
    """Submit all tasks, then yield their outcomes in order; cancel waiting tasks at the end.

    If the pool loses a task, WorkerLost is raised.
    """
    futures: list[Any] = []
    try:
        for task in tasks:
            futures.append(pool.submit(_run_task, work, task))  # noqa: PERF401 - the next one may raise
        for future in futures:
            yield future.result()
    except Exception as error:
        raise WorkerLost(
            f"{type(pool).__name__} lost a task of {len(tasks)}, and no result was kept: {type(error).__name__}: "
            f"{error}. Each worker needs memlab {__version__}, memory for a task, and arguments that can be pickled; a "
            'script that starts processes calls memlab below if __name__ == "__main__".'
        ) from error
    finally:
        for future in futures:
            future.cancel()


def _read_outcome(outcome: _Outcome) -> Any:
    """Return the result of a task, or raise the task's exception."""
    if outcome.version != __version__:
        raise InputError(
            f"A worker runs memlab {outcome.version}, and this process {__version__}. Install the same version."
        )
    if outcome.error is not None:
        raise outcome.error
    return outcome.result

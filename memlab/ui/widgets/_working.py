"""Widgets whose work takes longer than a request may: it is done in a thread, and the browser asks how far it is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from time import monotonic
from typing import Any

from memlab.subjects.lab import Lab
from memlab.ui.widgets._widget import Widget

__all__ = ["WorkingWidget"]

_KEPT = 40
"""Results kept by what they were asked for."""


class WorkingWidget(Widget):
    """A widget with one piece of work at a time, in a thread that touches no trait.

    What it gave is handed over in the thread in which requests are answered (``progress``), so it does not depend on a
    host whether a thread may speak to the browser. Work that nobody waits for any more is not begun.
    """

    def __init__(self, lab: Lab | None, **state: Any) -> None:
        self._results: dict[Hashable, Any] = {}
        self._waiting: dict[str, tuple[Hashable, Callable[[], Any], Callable[[Any], None]]] = {}
        self._at_work: _Work | None = None
        super().__init__(lab, **state)

    def work(self, what: str, key: Hashable, call: Callable[[], Any], deliver: Callable[[Any], None]) -> None:
        """Give ``deliver`` what ``call`` returns: at once where it is known for ``key``, or when it is done.

        ``what`` is said while it is under way; of the same ``what`` only the latest is waited for.
        """
        if (what, key) in self._results:
            self._waiting.pop(what, None)
            deliver(self._results[what, key])
            return
        self._waiting[what] = key, call, deliver
        self._go_on()

    def answer_progress(self) -> dict[str, Any]:
        """Take what is done, and say what is under way since how many seconds: nothing where all is done.

        What the work raised is raised here.
        """
        self._take()
        self._go_on()
        one = self._at_work
        return {} if one is None else {"work": one.what, "seconds": monotonic() - one.began}

    def finish(self) -> None:
        """Wait until nothing is left to do."""
        while self._at_work is not None:
            self._at_work.thread.join()
            self.answer_progress()

    def _go_on(self) -> None:
        if self._at_work is None and self._waiting:
            what, (key, call, _) = next(iter(self._waiting.items()))
            self._at_work = _Work(what, key, call)

    def _take(self) -> None:
        one = self._at_work
        if one is None or one.thread.is_alive():
            return
        self._at_work = None
        wanted = self._waiting.get(one.what)
        if wanted is not None and wanted[0] == one.key:
            del self._waiting[one.what]
        if one.error is not None:
            raise one.error
        while len(self._results) >= _KEPT:
            del self._results[next(iter(self._results))]
        self._results[one.what, one.key] = one.result
        if wanted is not None and wanted[0] == one.key:
            wanted[2](one.result)


class _Work:
    """A call in a thread that does not keep the process alive."""

    def __init__(self, what: str, key: Hashable, call: Callable[[], Any]) -> None:
        self.what, self.key, self.call, self.began = what, key, call, monotonic()
        self.result: Any = None
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name=f"memlab {what}", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.result = self.call()
        except BaseException as error:  # noqa: BLE001  raised where the result is taken
            self.error = error

"""The base of every widget: its bundle, requests of a browser, and faults.

The state of a widget is in traits; tables are Arrow bytes (``arrow``). A browser requests everything
else by a message ``{id, verb, arguments}``, which the method ``answer_<verb>`` answers. A refusal is
returned as the sentence of its error and shown in the widget.
"""

from __future__ import annotations

import inspect
import io
import re
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar

import anywidget
import polars as pl
import traitlets

from memlab.errors import InputError, MemlabError, UnknownName
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.display import paragraph
from memlab.kernel.base.printable import printable
from memlab.kernel.registry import Owned, Registry
from memlab.subjects.lab import Lab
from memlab.ui.widgets import bundles
from memlab.ui.widgets.bundles import STATIC

Answer = dict[str, Any]
"""The fields of an answer to a request of the browser."""

MOST_TEXT = 2_000
"""Characters of each text in a list of memories, a screen; one memory alone has its whole text."""
_MOST_BYTES = 10_000_000
"""Bytes of an answer. Colab's limit is 10 MB; servers of Jupyter, which VS Code uses too, close at 10 MiB."""
_OF_JUPYTER = {"_esm", "_css", "layout", "tabbable", "tooltip"}
"""Traits that belong to Jupyter, not to the state of the widget."""
_VERB = "answer_"
"""The prefix of methods that answer requests of a browser."""
_READ_ONLY = (
    "This lab is read-only. To write, open it without read_only=True, or view it with --write."
)
"""The reason why controls that write are disabled."""


def _text_of(esm: str | Path) -> str:
    """Return the text of a script, which may be in a file."""
    return esm.read_text(encoding="utf-8") if isinstance(esm, Path) else esm


_TRAITS = {str: traitlets.Unicode, bytes: traitlets.Bytes, int: traitlets.Int, dict: traitlets.Dict}
"""The trait of each type of a default value."""


def synced(default: Any, **limits: Any) -> Any:
    """Return a trait shared with the browser, with the type of its default value.

    ``synced([str])`` is a list of texts.
    """
    if isinstance(default, list):
        items = [_TRAITS[kind]() for kind in default]
        return traitlets.List(*items, **limits).tag(sync=True)
    return _TRAITS[type(default)](default, **limits).tag(sync=True)


def _read_hints(cls: type) -> dict[str, str]:
    """Return the first line of each ``answer_<verb>`` method's docstring as the verb's hint."""
    return {
        name.removeprefix("answer_"): (inspect.getdoc(getattr(cls, name)) or "")
        .partition("\n")[0]
        .rstrip(".")
        for name in dir(cls)
        if name.startswith("answer_")
    }


class Widget(anywidget.AnyWidget):
    """The base class of all widgets of memlab.

    A subclass names its bundle: ``class Counter(Widget, bundle="counter")``.
    A widget of an extension has its own script, a text or the path of a file:
    ``class Counter(Widget, bundle="counter", esm=Path("counter.js"))``. The script is a module for
    anywidget, ``export default {render({model, el}) {...}}``. It may send
    ``model.send({id, verb, arguments})``, which ``answer_<verb>`` answers.

    Parameters
    ----------
    lab
        The lab; None for a widget of a log.
    **state
        The values of traits.

    Attributes
    ----------
    fault
        The last error as a sentence; empty if there is none.
    read_only
        The reason why the lab cannot be written; empty if it can.
    hints
        The tooltip of each button, by verb: the summary of the method ``answer_<verb>``.
    """

    bundle: ClassVar[str]
    script: ClassVar[str]
    lab: Lab

    fault = synced("")
    read_only = synced("")
    hints = synced({})

    def __init_subclass__(
        cls, *, bundle: str | None = None, esm: str | Path | None = None, **more: Any
    ) -> None:
        if bundle is not None:  # traitlets derives subclasses without arguments.
            cls.bundle = bundle
            cls.script = cls._esm = bundles.bundle(bundle) if esm is None else _text_of(esm)
        super().__init_subclass__(**more)

    def __init__(self, lab: Lab | None, **state: Any) -> None:
        self.lab = lab  # type: ignore[assignment]  # Widgets of a log have no lab.
        read_only = lab is not None and lab.io.store.journal.read_only
        super().__init__(
            read_only=_READ_ONLY if read_only else "", hints=_read_hints(type(self)), **state
        )
        self.on_msg(self._receive)

    @property
    def where(self) -> str:
        """The name of the lab."""
        return self.lab.io.store.where

    @checked
    def answer(self, message: Mapping[str, Any]) -> tuple[Answer, list[bytes]]:
        """Return the reply to a browser's message, and its tables as Arrow buffers.

        Errors other than MemlabError are raised, because they are faults of memlab.

        Parameters
        ----------
        message
            ``{id, verb, arguments}``.

        Returns
        -------
        tuple
            A reply and its buffers. The reply is ``{id, value, tables}``, where ``tables`` names the
            values in the buffers, or ``{id, error}`` with a sentence.
        """
        reply: Answer = {"id": message.get("id")}
        try:
            value = self._call_verb(message.get("verb"), message.get("arguments", {}))
        except MemlabError as error:
            return {**reply, "error": str(error)}, []
        tables = {name: item for name, item in value.items() if isinstance(item, pl.DataFrame)}
        rest = {name: item for name, item in value.items() if name not in tables}
        buffers = [arrow(item) for item in tables.values()]
        if (size := sum(map(len, buffers))) > _MOST_BYTES:
            refusal = f"The answer has {size:,} bytes, and notebooks carry {_MOST_BYTES:,}. Ask for fewer rows."
            return {**reply, "error": refusal}, []
        return {**reply, "value": rest, "tables": list(tables)}, buffers

    def plain_state(self) -> tuple[dict[str, Any], list[list[str]], list[bytes]]:
        """Return the widget's state as JSON values and named buffers."""
        state = {name: value for name, value in self.get_state().items() if name not in _OF_JUPYTER}
        binary = [name for name, value in state.items() if isinstance(value, bytes | memoryview)]
        rest = {name: value for name, value in state.items() if name not in binary}
        return rest, [[name] for name in binary], [bytes(state[name]) for name in binary]

    @classmethod
    def title(cls) -> str:
        """Return the widget's title on a page, such as ``Recall explorer``.

        Returns
        -------
        str
            The name of the class as words.
        """
        return re.sub("(?<=[a-z])([A-Z])", lambda match: f" {match[1].lower()}", cls.__name__)

    def refresh(self) -> None:
        """Update the widget after another process has written to the lab."""

    def fill(self) -> None:
        """Compute results that normally wait for a request, before the state is saved."""

    def page(self) -> str:
        """Return the HTML that replaces the widget on a page without Python."""
        return paragraph(f"{type(self).__name__} of {self.where}: run the notebook to use it.")

    @contextmanager
    def faults_shown(self) -> Iterator[None]:
        """Show memlab's errors in the widget in place of raising them.

        Errors other than MemlabError are shown and raised.
        """
        try:
            yield
        except MemlabError as error:
            self.fault = str(error)
        except Exception as error:
            self.fault = _own_fault(error)
            raise
        else:
            self.fault = ""

    def _call_verb(self, verb: object, arguments: Any) -> Answer:
        verbs = sorted(
            name.removeprefix(_VERB) for name in dir(type(self)) if name.startswith(_VERB)
        )
        if verb not in verbs:
            raise UnknownName(f"request to {type(self).__name__}", verb, verbs)
        if not isinstance(arguments, dict):
            raise InputError(
                f"The arguments of {verb!r} must be an object of names and values, not {arguments!r}."
            )
        method = getattr(self, f"{_VERB}{verb}")
        try:
            inspect.signature(method).bind(**arguments)
        except TypeError as error:
            raise InputError(f"The arguments do not fit the request {verb!r}: {error}.") from None
        value: Answer | None = method(**arguments)
        return value or {}

    def _receive(self, _: object, message: Any, buffers: object) -> None:
        """Handle a browser's message; show an error in the widget, then raise the error."""
        try:
            reply, out = self.answer(message if isinstance(message, dict) else {})
        except Exception as error:
            self.send({"id": message.get("id"), "error": _own_fault(error)})
            raise
        self.send(reply, out)

    def __repr__(self) -> str:
        return printable(f"<{type(self).__name__} of {self.where}>")

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Return the MIME bundle of the widget, with HTML for pages without scripts."""
        bundle = super()._repr_mimebundle_(**options)
        if bundle is None:
            return None
        data, metadata = bundle
        try:
            html = self.page()
        except MemlabError as error:  # a closed lab
            html = paragraph(str(error))
        return {**data, "text/html": html}, metadata


def arrow(frame: pl.DataFrame) -> bytes:
    """Return a frame as Arrow IPC, restricted to types that every reader supports."""
    out = io.BytesIO()
    frame.write_ipc_stream(out, compat_level=pl.CompatLevel.oldest())
    return out.getvalue()


def _own_fault(error: Exception) -> str:
    return f"memlab failed here: {type(error).__name__}: {error}. The traceback is in the log of the kernel."


# -- widgets of extensions --------------------------------------------------------------------------------------------


def _refusal(declared: Owned) -> str | None:
    """Return the reason why an extension's widget is refused, or None if it is accepted."""
    kind = declared.value
    if (
        not isinstance(kind, type)
        or not issubclass(kind, Widget)
        or not getattr(kind, "bundle", "")
    ):
        return f'{declared.name} is no widget: class {declared.name}(memlab.widgets.Widget, bundle="...", esm="...").'
    own = {item.stem for item in STATIC.glob("*.js")}
    return (
        f"The bundle {kind.bundle} is one of memlab's: choose another name."
        if kind.bundle in own
        else None
    )


WIDGETS: Registry[Owned] = Registry("widget", kind="widgets", about="doc", check=_refusal)
"""The widgets of extensions."""


# -- widgets that work in a thread ------------------------------------------------------------------------------------

_CACHED_RESULTS = 40
"""Results that are cached, so that returning to earlier settings is instant."""


class WorkingWidget(Widget):
    """A widget that does one piece of work at a time in a thread.

    The thread sets no trait. The request ``progress`` delivers the result in the thread that answers
    requests, because some hosts do not allow other threads to send messages. Superseded work is not
    begun.
    """

    def __init__(self, lab: Lab | None, **state: Any) -> None:
        self._results: dict[Hashable, Any] = {}
        self._waiting: dict[str, tuple[Hashable, Callable[[], Any], Callable[[Any], None]]] = {}
        self._at_work: _Work | None = None
        super().__init__(lab, **state)

    def work(
        self, what: str, key: Hashable, call: Callable[[], Any], deliver: Callable[[Any], None]
    ) -> None:
        """Run ``call`` in the background, and pass its cached result to ``deliver``.

        ``what`` describes the work while it runs. A later call with the same ``what`` replaces an earlier call.
        """
        if (what, key) in self._results:
            self._waiting.pop(what, None)
            deliver(self._results[what, key])
            return
        self._waiting[what] = key, call, deliver
        self._start_next()

    def answer_progress(self) -> Answer:
        """Deliver finished results; return a description of the work still running.

        An error of the work is raised here.
        """
        self._deliver_finished()
        self._start_next()
        work = self._at_work
        return {} if work is None else {"work": work.what, "seconds": monotonic() - work.began}

    def finish(self) -> None:
        """Wait until all background work is done."""
        while self._at_work is not None:
            self._at_work.thread.join()
            self.answer_progress()

    def _start_next(self) -> None:
        if self._at_work is None and self._waiting:
            what, (key, call, _) = next(iter(self._waiting.items()))
            self._at_work = _Work(what, key, call)

    def _deliver_finished(self) -> None:
        work = self._at_work
        if work is None or work.thread.is_alive():
            return
        self._at_work = None
        wanted = self._waiting.get(work.what)
        if wanted is not None and wanted[0] == work.key:
            del self._waiting[work.what]
        if work.error is not None:
            raise work.error
        while len(self._results) >= _CACHED_RESULTS:
            del self._results[next(iter(self._results))]
        self._results[work.what, work.key] = work.result
        if wanted is not None and wanted[0] == work.key:
            wanted[2](work.result)


class _Work:
    """A call that runs in a daemon thread, with its result or its error."""

    def __init__(self, what: str, key: Hashable, call: Callable[[], Any]) -> None:
        self.what, self.key, self.call, self.began = what, key, call, monotonic()
        self.result: Any = None
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name=f"memlab {what}", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.result = self.call()
        except BaseException as error:  # noqa: BLE001  raised where the result is delivered
            self.error = error

"""What every widget has: its bundle, requests of the browser that are answered, and faults that are shown in it.

What a widget shows is state, in traits; tables among it are Arrow bytes (``arrow``). What a browser wants to know
besides is a request: a message ``{id, verb, arguments}``, which the method ``answer_<verb>`` answers. Whatever is
refused there comes back as the sentence of its error and is shown in the widget.
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
from memlab.kernel.base.display import paragraph
from memlab.kernel.base.printable import printable
from memlab.kernel.registry import Owned, Registry
from memlab.subjects.lab import Lab
from memlab.ui.widgets import bundles
from memlab.ui.widgets.bundles import STATIC

__all__ = ["WIDGETS", "Widget", "WorkingWidget", "arrow", "synced"]

_OF_JUPYTER = {"_esm", "_css", "layout", "tabbable", "tooltip"}
_VERB = "answer_"
_READ_ONLY = "This lab is open to be read. To write to it, open it without read_only=True, or view it with --write."


def _text_of(esm: str | Path) -> str:
    """Return a script that is given as a text or as the path of a file."""
    return esm.read_text(encoding="utf-8") if isinstance(esm, Path) else esm


_TRAITS = {str: traitlets.Unicode, bytes: traitlets.Bytes, int: traitlets.Int, dict: traitlets.Dict}


def synced(default: Any, **limits: Any) -> Any:
    """Return a trait that a browser shares, of the type of its default; ``synced([str])`` is a list of texts."""
    if isinstance(default, list):
        items = [_TRAITS[kind]() for kind in default]
        return traitlets.List(*items, **limits).tag(sync=True)
    return _TRAITS[type(default)](default, **limits).tag(sync=True)


class Widget(anywidget.AnyWidget):
    """A widget on ``lab``. A subclass names its bundle: ``class Counter(Widget, bundle="counter")``.

    A widget of an extension brings its own script, a text or the path of a file: ``class Counter(Widget,
    bundle="counter", esm=Path("counter.js"))``. The script is a module as anywidget takes it, ``export default
    {render({model, el}) {...}}``; it may ask ``model.send({id, verb, arguments})``, which ``answer_<verb>`` answers.

    ``fault`` is what went wrong last, in words; empty where nothing did. ``read_only`` says why the lab cannot be
    written, empty where it can.
    """

    bundle: ClassVar[str]
    script: ClassVar[str]
    lab: Lab

    fault = synced("")
    read_only = synced("")

    def __init_subclass__(
        cls, *, bundle: str | None = None, esm: str | Path | None = None, **more: Any
    ) -> None:
        if bundle is not None:  # traitlets makes a subclass of each widget, without arguments
            cls.bundle = bundle
            cls.script = cls._esm = bundles.bundle(bundle) if esm is None else _text_of(esm)
        super().__init_subclass__(**more)

    def __init__(self, lab: Lab | None, **state: Any) -> None:
        self.lab = lab  # type: ignore[assignment]  # None is for widgets of a log, which ask nothing of a lab
        read_only = lab is not None and lab.io.store.journal.read_only
        super().__init__(read_only=_READ_ONLY if read_only else "", **state)
        self.on_msg(self._receive)

    @property
    def where(self) -> str:
        """What it shows, by name."""
        return self.lab.io.store.where

    def answer(self, message: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """The reply to a message ``{id, verb, arguments}`` of a browser, and its tables as Arrow buffers.

        A reply is ``{id, value, tables}``, where ``tables`` names those entries of the value that are buffers, or
        ``{id, error}`` with a sentence. Whatever is no MemlabError is raised: it is a fault of memlab's own.
        """
        reply: dict[str, Any] = {"id": message.get("id")}
        try:
            value = self._call_verb(message.get("verb"), message.get("arguments", {}))
        except MemlabError as error:
            return {**reply, "error": str(error)}, []
        tables = {name: one for name, one in value.items() if isinstance(one, pl.DataFrame)}
        rest = {name: one for name, one in value.items() if name not in tables}
        return {**reply, "value": rest, "tables": list(tables)}, [
            arrow(one) for one in tables.values()
        ]

    def plain_state(self) -> tuple[dict[str, Any], list[list[str]], list[bytes]]:
        """The state without what is Jupyter's: values for JSON, and the names and contents of its buffers."""
        state = {name: value for name, value in self.get_state().items() if name not in _OF_JUPYTER}
        binary = [name for name, value in state.items() if isinstance(value, bytes | memoryview)]
        rest = {name: value for name, value in state.items() if name not in binary}
        return rest, [[name] for name in binary], [bytes(state[name]) for name in binary]

    @classmethod
    def title(cls) -> str:
        """What it is called on a page: ``Recall explorer``."""
        return re.sub("(?<=[a-z])([A-Z])", lambda found: f" {found[1].lower()}", cls.__name__)

    def refresh(self) -> None:
        """Show what another process wrote to the lab: called by ``memlab view`` once there is something new."""

    def fill(self) -> None:
        """Work out what is otherwise worked out when somebody asks: called before the state is kept as a copy."""

    def page(self) -> str:
        """What stands in the widget's place on a page without Python, as HTML."""
        return paragraph(f"{type(self).__name__} of {self.where}: run the notebook to use it.")

    @contextmanager
    def faults_shown(self) -> Iterator[None]:
        """What is refused within becomes ``fault``: for what no browser asked, such as a trait that is set.

        What memlab itself did wrong is shown, and raised as well.
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

    def _call_verb(self, verb: object, given: Any) -> dict[str, Any]:
        verbs = sorted(
            name.removeprefix(_VERB) for name in dir(type(self)) if name.startswith(_VERB)
        )
        if verb not in verbs:
            raise UnknownName(f"request to {type(self).__name__}", verb, verbs)
        if not isinstance(given, dict):
            raise InputError(
                f"The arguments of {verb!r} are an object of names and values, not {given!r}."
            )
        method = getattr(self, f"{_VERB}{verb}")
        try:
            inspect.signature(method).bind(**given)
        except TypeError as error:
            raise InputError(f"The request {verb!r} has other arguments: {error}.") from None
        value: dict[str, Any] | None = method(**given)
        return value or {}

    def _receive(self, _: object, message: Any, buffers: object) -> None:
        """Answer a browser. A fault is shown there and raised, so that the host logs its traceback."""
        try:
            reply, out = self.answer(message if isinstance(message, dict) else {})
        except Exception as error:
            self.send({"id": message.get("id"), "error": _own_fault(error)})
            raise
        self.send(reply, out)

    def __repr__(self) -> str:
        return printable(f"<{type(self).__name__} of {self.where}>")

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """With HTML: anywidget gives none, and a page without Python would show nothing."""
        shown = super()._repr_mimebundle_(**options)
        if shown is None:
            return None
        data, metadata = shown
        try:
            html = self.page()
        except MemlabError as error:  # a closed lab
            html = paragraph(str(error))
        return {**data, "text/html": html}, metadata


def arrow(frame: pl.DataFrame) -> bytes:
    """A frame as Arrow IPC, in types that every reader knows."""
    out = io.BytesIO()
    frame.write_ipc_stream(out, compat_level=pl.CompatLevel.oldest())
    return out.getvalue()


def _own_fault(error: Exception) -> str:
    return f"memlab failed here: {type(error).__name__}: {error}. The traceback is in the log of the kernel."


# -- widgets of extensions --------------------------------------------------------------------------------------------


def _refusal(declared: Owned) -> str | None:
    """Return why an extension's widget is refused."""
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


# -- widgets that work in a thread ------------------------------------------------------------------------------------

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

    def work(
        self, what: str, key: Hashable, call: Callable[[], Any], deliver: Callable[[Any], None]
    ) -> None:
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

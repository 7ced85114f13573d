"""Widgets on a local web page: the bundles of the notebook, each over a websocket.

The Python half of a widget is the same as in a notebook, with another comm. A frame to the browser is
binary: four bytes with the length of a header, the header ``{data, sizes}`` as JSON, and the buffers.
``data`` is the content of a widget message of Jupyter: ``update`` with ``state`` and ``buffer_paths``,
or ``custom`` with ``content``. A frame from the browser is ``data`` as JSON.
"""

from __future__ import annotations

import asyncio
import base64
import html
import json
import signal
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any
from weakref import WeakSet

from comm.base_comm import BaseComm
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.iostream import IOStream
from tornado.web import Application, HTTPError, RequestHandler
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from memlab.errors import MemlabError
from memlab.kernel.base.clock import from_micros
from memlab.kernel.base.disk import writing
from memlab.subjects.lab import Lab
from memlab.subjects.loopback import (
    HOST,
    REQUEST_SECONDS,
    is_same_token,
    max_connections,
    new_token,
    open_socket,
    own_host_names,
)
from memlab.ui import widgets
from memlab.ui.widgets._widget import WIDGETS, Widget
from memlab.ui.widgets.bundles import bundle

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The content security policy: the page may load only scripts of memlab."""
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">{head}<title>{title}</title>
<style>html {{ color-scheme: light dark }} body {{ margin: 16px; background: Canvas }}</style>
<script type="application/json" id="memlab">{about}</script><main></main>{scripts}</html>
"""
"""The page: its scripts read their settings from the element with the id "memlab"."""


# Bytes of a message of a page, at most; the longest has the text of an edited pack, which has 11,000 characters.
_MAX_MESSAGE = 1 << 20
# Bytes of the headers of a request, and of its body.
_MAX_HEAD = 16 << 10


class Page:
    """A server of one widget, or of several behind tabs, at ``url`` until ``close``.

    The server runs on the event loop of the thread that creates it. Several widgets are passed as
    classes, and ``make`` is called when a tab is opened. The address is local and contains a token. A request
    is refused without the token, for another host name (an attacker's name may resolve to this
    machine), or from a page of another origin. ``note`` appears next to the tabs. Raises InputError
    if the port is in use.
    """

    def __init__(
        self,
        widgets: Widget | Sequence[type[Widget]],
        *,
        make: Callable[[type[Widget]], Widget] | None = None,
        port: int = 0,
        title: str = "memlab",
        note: str = "",
    ) -> None:
        self.token = new_token()
        self.title, self.note = title, note
        self._make: Callable[[type[Widget]], Widget]
        # The widgets of opened tabs, by the name of the bundle.
        self.live: dict[str, Widget] = {}
        if isinstance(widgets, Widget):
            alone = widgets
            self._kinds, self._make = [type(alone)], lambda _: alone
        else:
            assert make is not None
            self._kinds, self._make = list(widgets), make
        handled = {"page": self}
        application = Application(
            [
                ("/", _Index, handled),
                ("/live/(.*)", _Live, handled),
                ("/static/(.*)[.]js", _Script, handled),
            ],
            log_function=lambda _: None,  # A log would contain the token.
            websocket_max_message_size=_MAX_MESSAGE,
        )
        listener = open_socket(port)
        listener.setblocking(False)
        self.port = listener.getsockname()[1]
        application.settings["hosts"] = own_host_names(self.port)
        self._server = _Server(
            application,
            idle_connection_timeout=REQUEST_SECONDS,  # also that of a head
            body_timeout=REQUEST_SECONDS,
            max_header_size=_MAX_HEAD,
            max_body_size=_MAX_HEAD,  # no request of a page has a body
        )
        self._server.add_socket(listener)
        self.url = f"http://{HOST}:{self.port}/?token={self.token}"

    def widget(self, bundle: str) -> Widget:
        """Return the widget of a tab, creating it on first use."""
        if bundle not in self.live:
            (kind,) = (kind for kind in self._kinds if kind.bundle == bundle)
            widget = self._make(kind)
            widget.comm = _PageComm()
            self.live[bundle] = widget
        return self.live[bundle]

    def refresh(self) -> None:
        """Refresh each widget after a write, and show errors in the widget."""
        for widget in self.live.values():
            with widget.faults_shown():
                widget.refresh()

    def close(self) -> None:
        """Stop the server and close the connections."""
        self._server.stop()
        for widget in self.live.values():
            for live in list(widget.comm.open_pages):
                live.close(1001, "memlab has ended")

    @property
    def tabs(self) -> dict[str, str]:
        """The titles of the tabs by bundle name, in order."""
        return {kind.bundle: kind.title() for kind in self._kinds}

    @property
    def scripts(self) -> dict[str, str]:
        """The page's script, and the widgets' scripts by bundle name."""
        return {"page": bundle("page")} | {kind.bundle: kind.script for kind in self._kinds}

    @property
    def about(self) -> dict[str, Any]:
        """The tabs, the title and the note, for the page's script."""
        return {"tabs": self.tabs, "title": self.title, "note": self.note}


class _Server(HTTPServer):
    """A server that closes the oldest connection without a page when there are too many."""

    def handle_stream(self, stream: IOStream, address: Any) -> None:
        """Handle a new connection, and close an old one beyond the maximum."""
        streams = [other for other in getattr(self, "streams", ()) if not other.closed()]
        self.streams = [*streams, stream]
        if len(streams) >= max_connections():
            oldest = next((other for other in streams if other not in _PAGES), stream)
            oldest.close()
        if not stream.closed():
            super().handle_stream(stream, address)


# Streams of open pages, which have shown the token.
_PAGES: WeakSet[IOStream] = WeakSet()


class _PageComm(BaseComm):
    """A comm whose messages go to every open page, from any thread."""

    def __init__(self) -> None:
        self.open_pages: set[_Live] = set()
        self._loop = IOLoop.current()
        super().__init__(target_name="jupyter.widget")

    def publish_msg(
        self,
        msg_type: str,
        data: Any = None,
        metadata: Any = None,
        buffers: Sequence[Any] | None = None,
        **keys: Any,
    ) -> None:
        if msg_type == "comm_msg":
            frame = _frame(data, buffers or [])
            self._loop.add_callback(self._send, frame)

    def _send(self, frame: bytes) -> None:
        """Send a message to every open page."""
        for page in list(self.open_pages):
            page.send(frame)


class _LocalHandler(RequestHandler):
    """A handler that refuses other host names and pages of other origins."""

    def set_default_headers(self) -> None:
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Cross-Origin-Resource-Policy", "same-origin")

    def prepare(self) -> None:
        own = self.settings["hosts"]
        if self.request.host not in own:
            raise HTTPError(403, reason="memlab accepts requests by the name of this machine only")
        origin = self.request.headers.get("Origin")
        if origin is not None and origin not in {f"http://{host}" for host in own}:
            raise HTTPError(403, reason="memlab accepts requests of its own page only")


class _Script(_LocalHandler):
    """The scripts of the page and its widgets, which need no token."""

    def initialize(self, page: Page) -> None:
        self.page = page

    def get(self, name: str) -> None:
        scripts = self.page.scripts
        if name not in scripts:
            raise HTTPError(404)
        self.set_header("Content-Type", "text/javascript; charset=utf-8")
        self.write(scripts[name])


class _Handler(_LocalHandler):
    def initialize(self, page: Page) -> None:
        self.page = page

    def prepare(self) -> None:
        super().prepare()
        # the bytes as sent, because Tornado removes control characters from arguments
        (token,) = (
            part.decode("latin-1") for part in self.request.query_arguments.get("token", [b""])[-1:]
        )
        if not is_same_token(token, self.page.token):
            raise HTTPError(403, reason="The address needs the token that memlab printed")


class _Index(_Handler):
    def get(self) -> None:
        self.set_header("Content-Security-Policy", _POLICY)
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("Cache-Control", "no-store")
        self.write(page_html(self.page.about, scripts=["static/page.js"]))


class _Live(_Handler, WebSocketHandler):
    def open(self, bundle: str) -> None:
        if bundle not in self.page.tabs:
            return self.close(1008, "no such widget")
        try:
            self.widget = self.page.widget(bundle)
        except MemlabError as error:
            return self.close(1008, str(error).encode()[:120].decode(errors="ignore"))
        state, paths, buffers = self.widget.plain_state()
        if (stream := getattr(self.ws_connection, "stream", None)) is not None:
            _PAGES.add(stream)
        self.send(_frame({"method": "update", "state": state, "buffer_paths": paths}, buffers))
        self.widget.comm.open_pages.add(self)
        return None

    def on_message(self, message: str | bytes) -> None:
        try:
            data = dict(json.loads(message))
        except (ValueError, TypeError, RecursionError):
            return self.close(1007, "not a message")
        self.widget.comm.handle_msg({"content": {"data": data}, "buffers": []})
        if data.get("method") == "update":  # the other pages of this widget
            for page in self.widget.comm.open_pages - {self}:
                page.send(_frame(data, []))
        return None

    def send(self, frame: bytes) -> None:
        """Send a message to the page, unless the page is closed."""
        with suppress(WebSocketClosedError):
            sent = self.write_message(frame, binary=True)
            # reads the error of a page that closes meanwhile, which asyncio would log with a traceback
            sent.add_done_callback(lambda done: done.cancelled() or done.exception())

    def on_close(self) -> None:
        if hasattr(self, "widget"):
            self.widget.comm.open_pages.discard(self)


def page_html(about: Mapping[str, Any], *, scripts: Sequence[str], head: str = "") -> str:
    """Return the HTML page that loads and shows the widgets."""
    settings = json.dumps(about).replace("<", "\\u003c")
    tags = "".join(f'<script src="{script}"></script>' for script in scripts)
    return _PAGE.format(
        head=head, title=html.escape(str(about["title"])), about=settings, scripts=tags
    )


def _frame(data: Any, buffers: Sequence[Any]) -> bytes:
    parts = [bytes(part) for part in buffers]
    head = json.dumps({"data": data, "sizes": [len(part) for part in parts]}).encode()
    return b"".join([len(head).to_bytes(4, "big"), head, *parts])


# -- memlab view ------------------------------------------------------------------------------------------------------

_POLL = 1.0
"""Seconds between two checks for new events; a check takes microseconds."""
_SHARE = 10
"""Refreshing the widgets takes at most one part in ten of the time."""
_FOLDER_POLICY = (
    "default-src 'none'; script-src 'self' file: blob:; style-src 'unsafe-inline'; img-src data:"
)
"""The content security policy of a saved page, whose scripts are files and blobs."""


def serve(
    lab: Lab, *, port: int = 0, open_browser: bool = True, tell: Callable[[str], object] = print
) -> None:
    """Serve a lab's widgets until interrupted; pass the address to ``tell``.

    The widgets follow changes by other processes. Raises InputError if the port is in use.
    """
    note = "read only" if lab.io.store.journal.read_only else "writable"
    where = lab.io.store.where

    def make_page() -> Page:
        """Return the page, on the event loop that serves it."""
        return Page(_kinds(), make=lambda kind: kind(lab), port=port, title=where, note=note)

    serve_page(make_page, lambda: lab, open_browser=open_browser, tell=tell)


def serve_page(
    make_page: Callable[[], Page],
    lab: Callable[[], Lab],
    *,
    open_browser: bool,
    tell: Callable[[str], object],
) -> None:
    """Serve a page until interrupted; its widgets follow changes of the lab."""
    asyncio.run(_serve(make_page, lab, open_browser, tell))


async def _serve(
    make_page: Callable[[], Page],
    lab: Callable[[], Lab],
    open_browser: bool,
    tell: Callable[[str], object],
) -> None:
    page = make_page()
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    try:
        tell(page.url)
        if open_browser:
            webbrowser.open(page.url)
        following = asyncio.create_task(_follow(lab, page))
        await ended.wait()
        following.cancel()
    finally:
        page.close()
        await asyncio.sleep(0)  # The loop sends the closing messages.


async def _follow(lab: Callable[[], Lab], page: Page) -> None:
    """Refresh the widgets after each write to the lab."""
    seen_head, rest = lab().io.store.journal.head, _POLL
    while True:
        await asyncio.sleep(rest)
        began, head = monotonic(), lab().io.store.journal.head
        if head != seen_head:
            seen_head = head
            page.refresh()
        rest = max(_POLL, _SHARE * (monotonic() - began))


def write_bundle(lab: Lab, folder: Path) -> Path:
    """Write the widgets as a page without Python, and return the path of its index.

    The folder contains the bundles. ``state.js`` has the state of each widget: values as JSON, and
    tables as Arrow in base64. ``bundles.js`` contains the bundles as texts, because a page on a disk
    may import no file. The folder contains the memories that its widgets show.
    """
    states, tabs = {}, {}
    texts = {"page": bundle("page")}
    for kind in _kinds():
        widget = kind(lab)
        with widget.faults_shown():
            widget.fill()
        states[kind.bundle], tabs[kind.bundle] = _save_state(widget), kind.title()
        texts[kind.bundle] = kind.script
        widget.close()
    now = from_micros(lab.io.store.clock())
    files = {"state.js": f"globalThis.memlabState = {json.dumps(states)};\n"}
    for name, text in texts.items():
        files[f"static/{name}.js"] = text
    texts.pop("page")
    files["bundles.js"] = f"globalThis.memlabBundles = {json.dumps(texts)};\n"
    note = f"a copy of {now:%Y-%m-%d %H:%M} UTC"
    still = f"This is {note}. For anything else, open the lab itself: memlab view LAB."
    about = {"tabs": tabs, "title": lab.io.store.where, "note": note, "still": still}
    head = f'<meta http-equiv="Content-Security-Policy" content="{_FOLDER_POLICY}">'
    files["index.html"] = page_html(about, scripts=["state.js", "static/page.js"], head=head)
    with writing(f"The folder {folder}"):
        (folder / "static").mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    return folder / "index.html"


def _kinds() -> list[type[Widget]]:
    """Return the classes of all widgets: those of memlab, then those of extensions."""
    own = [getattr(widgets, name) for name in widgets.SHIPPED]
    return own + [declared.value for declared in WIDGETS.values()]


def _save_state(widget: Widget) -> dict[str, Any]:
    state, paths, buffers = widget.plain_state()
    tables = {
        path[0]: base64.b64encode(buffer).decode()
        for path, buffer in zip(paths, buffers, strict=True)
    }
    return {"values": state, "tables": tables}

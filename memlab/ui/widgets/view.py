"""Widgets as a page of this machine: the bundles that a notebook loads, over a websocket each.

The Python half stays as it is, and talks to another comm. A frame to the browser is binary: four bytes with the length
of the head, the head ``{data, sizes}`` as JSON, and the buffers one after another; ``data`` is what Jupyter's widget
messages carry (``update`` with ``state`` and ``buffer_paths``, or ``custom`` with ``content``). A frame from the
browser is such ``data`` as JSON.
"""

from __future__ import annotations

import asyncio
import base64
import html
import json
import signal
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from comm.base_comm import BaseComm
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.web import Application, HTTPError, RequestHandler
from tornado.websocket import WebSocketHandler

from memlab.errors import MemlabError
from memlab.kernel.base.clock import from_micros
from memlab.kernel.base.disk import writing
from memlab.subjects.lab import Lab
from memlab.subjects.loopback import HOST, is_same_token, new_token, open_socket, own_host_names
from memlab.ui import widgets
from memlab.ui.widgets._widget import WIDGETS, Widget
from memlab.ui.widgets.bundles import bundle

__all__ = ["Page", "page_html", "serve", "write_bundle"]

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What the page may load: memlab's own scripts, and nothing from elsewhere."""
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">{head}<title>{title}</title>
<style>html {{ color-scheme: light dark }} body {{ margin: 16px; background: Canvas }}</style>
<script type="application/json" id="memlab">{about}</script><main></main>{scripts}</html>
"""


class Page:
    """Serves a widget, or several behind tabs, at ``url`` on the loop of the thread that makes it, until ``close``.

    Several are given as their classes, and ``make`` is called when somebody opens the tab of one. The address is of the
    loopback and carries a token. Refused is a request without it, for another host (a name that an attacker lets point
    here), or from a page of another origin. ``note`` stands beside the tabs. InputError for a port that is taken.
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
        self.live: dict[str, Widget] = {}
        """What was made so far, by the name of its bundle."""
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
            log_function=lambda _: None,  # which would write the token into a log
        )
        found = open_socket(port)
        found.setblocking(False)
        self.port = found.getsockname()[1]
        application.settings["hosts"] = own_host_names(self.port)
        self._server = HTTPServer(application)
        self._server.add_socket(found)
        self.url = f"http://{HOST}:{self.port}/?token={self.token}"

    def widget(self, bundle: str) -> Widget:
        """The widget of a tab; made, and given a comm of this page, where nobody has opened it before."""
        if bundle not in self.live:
            (kind,) = (one for one in self._kinds if one.bundle == bundle)
            widget = self._make(kind)
            widget.comm = _PageComm()
            self.live[bundle] = widget
        return self.live[bundle]

    def refresh(self) -> None:
        """Let each widget see what happened in the lab since; what is refused is shown in it."""
        for widget in self.live.values():
            with widget.faults_shown():
                widget.refresh()

    def close(self) -> None:
        """Serve nothing more, and end the connections."""
        self._server.stop()
        for widget in self.live.values():
            for live in list(widget.comm.open_pages):
                live.close(1001, "memlab has ended")

    @property
    def tabs(self) -> dict[str, str]:
        """Titles by the names of bundles, in their order."""
        return {one.bundle: one.title() for one in self._kinds}

    @property
    def scripts(self) -> dict[str, str]:
        """The script of the page, and those of its widgets by the names of their bundles."""
        return {"page": bundle("page")} | {kind.bundle: kind.script for kind in self._kinds}

    @property
    def about(self) -> dict[str, Any]:
        """What the page has to know before it asks."""
        return {"tabs": self.tabs, "title": self.title, "note": self.note}


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
            self._loop.add_callback(
                lambda: [page.write_message(frame, binary=True) for page in self.open_pages]
            )


class _OfThisMachine(RequestHandler):
    """Refuses what came by another name than this machine's, or from a page of another origin."""

    def prepare(self) -> None:
        own = self.settings["hosts"]
        if self.request.host not in own:
            raise HTTPError(403, reason="memlab answers to the name of this machine alone")
        origin = self.request.headers.get("Origin")
        if origin is not None and origin not in {f"http://{host}" for host in own}:
            raise HTTPError(403, reason="memlab answers to its own page alone")


class _Script(_OfThisMachine):
    """The scripts of the page and of its widgets, which are no secret."""

    def initialize(self, page: Page) -> None:
        self.page = page

    def get(self, name: str) -> None:
        scripts = self.page.scripts
        if name not in scripts:
            raise HTTPError(404)
        self.set_header("Content-Type", "text/javascript; charset=utf-8")
        self.write(scripts[name])


class _Handler(_OfThisMachine):
    def initialize(self, page: Page) -> None:
        self.page = page

    def prepare(self) -> None:
        super().prepare()
        given = self.get_query_argument("token", "")
        if not is_same_token(given, self.page.token):
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
        self.write_message(
            _frame({"method": "update", "state": state, "buffer_paths": paths}, buffers),
            binary=True,
        )
        self.widget.comm.open_pages.add(self)
        return None

    def on_message(self, message: str | bytes) -> None:
        data = json.loads(message)
        self.widget.comm.handle_msg({"content": {"data": data}, "buffers": []})
        if data.get("method") == "update":  # the other pages of this widget
            for page in self.widget.comm.open_pages - {self}:
                page.write_message(_frame(data, []), binary=True)

    def on_close(self) -> None:
        if hasattr(self, "widget"):
            self.widget.comm.open_pages.discard(self)


def page_html(about: Mapping[str, Any], *, scripts: Sequence[str], head: str = "") -> str:
    """The page that shows widgets: one script finds in it which, and loads their bundles."""
    known = json.dumps(about).replace("<", "\\u003c")
    tags = "".join(f'<script src="{one}"></script>' for one in scripts)
    return _PAGE.format(
        head=head, title=html.escape(str(about["title"])), about=known, scripts=tags
    )


def _frame(data: Any, buffers: Sequence[Any]) -> bytes:
    parts = [bytes(one) for one in buffers]
    head = json.dumps({"data": data, "sizes": [len(one) for one in parts]}).encode()
    return b"".join([len(head).to_bytes(4, "big"), head, *parts])


# -- memlab view ------------------------------------------------------------------------------------------------------

_LOOK = 1.0
"""Seconds between two looks at whether something was written: one look takes microseconds."""
_SHARE = 10
"""What the widgets need to ask again is at most one part in so many of the time."""
_FOLDER_POLICY = (
    "default-src 'none'; script-src 'self' file: blob:; style-src 'unsafe-inline'; img-src data:"
)


def serve(
    lab: Lab, *, port: int = 0, open_browser: bool = True, tell: Callable[[str], object] = print
) -> None:
    """Serve the widgets of ``lab`` until the process is interrupted or ended; ``tell`` is given the address.

    While another process writes to the lab, the widgets follow. InputError for a port that is taken.
    """
    asyncio.run(_serve(lab, port, open_browser, tell))


async def _serve(lab: Lab, port: int, open_browser: bool, tell: Callable[[str], object]) -> None:
    note = "read only" if lab.io.store.journal.read_only else "writable"
    page = Page(
        _kinds(), make=lambda kind: kind(lab), port=port, title=lab.io.store.where, note=note
    )
    ended = asyncio.Event()
    for one in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(one, ended.set)
    try:
        tell(page.url)
        if open_browser:
            webbrowser.open(page.url)
        following = asyncio.create_task(_follow(lab, page))
        await ended.wait()
        following.cancel()
    finally:
        page.close()
        await asyncio.sleep(0)  # the goodbyes are written


async def _follow(lab: Lab, page: Page) -> None:
    """Let the widgets ask again whenever something was written, more seldom where that takes long."""
    known, rest = lab.io.store.journal.head, _LOOK
    while True:
        await asyncio.sleep(rest)
        began, head = monotonic(), lab.io.store.journal.head
        if head != known:
            known = head
            page.refresh()
        rest = max(_LOOK, _SHARE * (monotonic() - began))


def write_bundle(lab: Lab, folder: Path) -> Path:
    """Write what the widgets show as a page that needs no Python, and return the path of its ``index.html``.

    Beside it lie the bundles as they are, and ``state.js`` with the state of each widget: its values as JSON, its
    tables as Arrow in base64. ``bundles.js`` holds the bundles once more, as texts: a page that is opened from a disk
    may import no file. Whoever has the folder has what its widgets show of the memories.
    """
    states, tabs = {}, {}
    texts = {"page": bundle("page")}
    for kind in _kinds():
        widget = kind(lab)
        with widget.faults_shown():
            widget.fill()
        states[kind.bundle], tabs[kind.bundle] = _kept(widget), kind.title()
        texts[kind.bundle] = kind.script
        widget.close()
    now = from_micros(lab.io.store.clock())
    files = {"state.js": f"globalThis.memlabState = {json.dumps(states)};\n"}
    for name, text in texts.items():
        files[f"static/{name}.js"] = text
    texts.pop("page")
    files["bundles.js"] = f"globalThis.memlabBundles = {json.dumps(texts)};\n"
    note = f"a copy of {now:%Y-%m-%d %H:%M} UTC"
    still = f"This is {note}. To ask anything else, open the lab itself: memlab view LAB."
    about = {"tabs": tabs, "title": lab.io.store.where, "note": note, "still": still}
    head = f'<meta http-equiv="Content-Security-Policy" content="{_FOLDER_POLICY}">'
    files["index.html"] = page_html(about, scripts=["state.js", "static/page.js"], head=head)
    with writing(f"The folder {folder}"):
        (folder / "static").mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    return folder / "index.html"


def _kinds() -> list[type[Widget]]:
    """Return every widget, those of extensions last."""
    own = [getattr(widgets, name) for name in widgets.SHIPPED]
    return own + [declared.value for declared in WIDGETS.values()]


def _kept(widget: Widget) -> dict[str, Any]:
    state, paths, buffers = widget.plain_state()
    tables = {
        path[0]: base64.b64encode(one).decode() for path, one in zip(paths, buffers, strict=True)
    }
    return {"values": state, "tables": tables}

"""One widget as a page of this machine: the bundle that a notebook loads, over a websocket.

The Python half stays as it is, and talks to another comm. A frame to the browser is binary: four bytes with the length
of the head, the head ``{data, sizes}`` as JSON, and the buffers one after another; ``data`` is what Jupyter's widget
messages carry (``update`` with ``state`` and ``buffer_paths``, or ``custom`` with ``content``). A frame from the
browser is such ``data`` as JSON.
"""

from __future__ import annotations

import hmac
import html
import json
import secrets
from collections.abc import Sequence
from typing import Any

from comm.base_comm import BaseComm
from ipywidgets.widgets.widget import _remove_buffers
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler, StaticFileHandler
from tornado.websocket import WebSocketHandler

from memlab.widgets._widget import STATIC, Widget

__all__ = ["Page"]

_HOST = "127.0.0.1"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What the page may load: memlab's own scripts, and nothing from elsewhere."""
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>{title}</title>
<style>html {{ color-scheme: light dark }} body {{ margin: 16px; background: Canvas }}</style>
<main data-widget="{bundle}"></main><script type="module" src="static/page.js"></script></html>"""


class Page:
    """Serves ``widget`` at ``url`` on the loop of the thread that makes it, until ``close``.

    The address is of the loopback and carries a token; a request without it is refused.
    """

    def __init__(self, widget: Widget, *, port: int = 0) -> None:
        self.token = secrets.token_urlsafe(24)
        self._comm = widget.comm = _PageComm()
        handled = {"page": self, "widget": widget, "comm": self._comm}
        application = Application(
            [
                ("/", _Index, handled),
                ("/live", _Live, handled),
                ("/static/(.*)", StaticFileHandler, {"path": str(STATIC)}),
            ]
        )
        sockets = bind_sockets(port, _HOST)
        self._server = HTTPServer(application)
        self._server.add_sockets(sockets)
        self.url = f"http://{_HOST}:{sockets[0].getsockname()[1]}/?token={self.token}"

    def close(self) -> None:
        """Serve nothing more, and end the connections."""
        self._server.stop()
        for live in list(self._comm.open_pages):
            live.close()


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
            self._loop.add_callback(lambda: [page.write_message(frame, binary=True) for page in self.open_pages])


class _Handler(RequestHandler):
    def initialize(self, page: Page, widget: Widget, comm: _PageComm) -> None:
        self.page, self.widget, self.comm = page, widget, comm

    def prepare(self) -> None:
        given = self.get_query_argument("token", "")
        if not hmac.compare_digest(given.encode(), self.page.token.encode()):
            raise HTTPError(403, reason="The address needs the token that memlab printed")


class _Index(_Handler):
    def get(self) -> None:
        self.set_header("Content-Security-Policy", _POLICY)
        self.set_header("Referrer-Policy", "no-referrer")
        title = html.escape(f"memlab: {self.widget.lab.store.where}")
        self.write(_PAGE.format(title=title, bundle=self.widget.bundle))


class _Live(_Handler, WebSocketHandler):
    def open(self) -> None:
        state, paths, buffers = _remove_buffers(
            {name: value for name, value in self.widget.get_state().items() if name not in _OF_JUPYTER}
        )
        self.write_message(_frame({"method": "update", "state": state, "buffer_paths": paths}, buffers), binary=True)
        self.comm.open_pages.add(self)

    def on_message(self, message: str | bytes) -> None:
        self.comm.handle_msg({"content": {"data": json.loads(message)}, "buffers": []})

    def on_close(self) -> None:
        self.comm.open_pages.discard(self)


_OF_JUPYTER = {"_esm", "_css", "layout", "tabbable", "tooltip"}


def _frame(data: Any, buffers: Sequence[Any]) -> bytes:
    parts = [bytes(one) for one in buffers]
    head = json.dumps({"data": data, "sizes": [len(one) for one in parts]}).encode()
    return b"".join([len(head).to_bytes(4, "big"), head, *parts])

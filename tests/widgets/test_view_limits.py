"""Limits of the local page: heads, messages, connections, tokens; and broken connections."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPClientError
from tornado.websocket import WebSocketClosedError, websocket_connect

import memlab
from memlab.ui import widgets
from memlab.ui.widgets import view
from memlab.ui.widgets.view import Page

pytestmark = pytest.mark.long


def run(check: Callable[[Page], Awaitable[None]]) -> None:
    """Run a check while a page with one widget is open."""

    async def main() -> None:
        with memlab.open() as lab:
            lab.remember("The user likes tea")
            page = Page([widgets.PolicyStudio], make=lambda kind: kind(lab))
            try:
                await asyncio.wait_for(check(page), 20)
            finally:
                page.close()
                await asyncio.sleep(0.05)

    asyncio.run(main())


async def status(url: str) -> int:
    try:
        return (await AsyncHTTPClient(force_instance=True).fetch(url)).code
    except HTTPClientError as error:
        return error.code


def address(page: Page, path: str = "", token: str | None = None, scheme: str = "http") -> str:
    return f"{scheme}://127.0.0.1:{page.port}/{path}?token={page.token if token is None else token}"


def test_paths_and_tokens_with_control_characters_are_refused(caplog: Any) -> None:
    async def check(page: Page) -> None:
        answer = await AsyncHTTPClient(force_instance=True).fetch(page.url)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert await status(address(page, "static/%00.js")) == 404
        assert await status(address(page, "static/%00")) == 404
        assert await status(address(page, "static/..%2fpage.js")) == 404
        for token in (
            "%00" + page.token,
            page.token + "%0a",
            "%20" + page.token,
            "",
            page.token[:-1],
        ):
            assert await status(address(page, token=token)) == 403
        assert await status(f"http://127.0.0.1:{page.port}/") == 403

    run(check)
    assert not [record for record in caplog.records if record.exc_info]


def test_a_long_message_ends_the_connection_and_reaches_no_widget() -> None:
    async def check(page: Page) -> None:
        for message in ("x" * 9_000_000, "x" * (view._MAX_MESSAGE + 1)):
            live = await websocket_connect(address(page, "live/studio", scheme="ws"))
            assert await live.read_message() is not None
            with suppress(WebSocketClosedError):
                await live.write_message(message)
            while await live.read_message() is not None:
                pass
            assert live.close_code in (1009, None)
            live.close()
        for message in ("{broken", "[1]", "5", "[" * 100_000):
            live = await websocket_connect(address(page, "live/studio", scheme="ws"))
            assert await live.read_message() is not None
            await live.write_message(message)
            while await live.read_message() is not None:
                pass
            assert live.close_code == 1007
            live.close()
        assert await status(page.url) == 200

    run(check)


def test_pages_that_close_during_a_message_leave_no_traceback_and_the_others_get_it(
    caplog: Any,
) -> None:
    async def check(page: Page) -> None:
        lives = [
            await websocket_connect(address(page, "live/studio", scheme="ws")) for _ in range(12)
        ]
        for live in lives:
            await live.read_message()
        open_pages = page.live["studio"].comm.open_pages
        while len(open_pages) < 12:
            await asyncio.sleep(0.01)
        for closing in list(open_pages)[:6]:
            closing.ws_connection.stream.close()
        page.live["studio"].comm.publish_msg("comm_msg", {"method": "custom", "content": "tea"})
        received = 0
        for live in lives:
            try:
                received += (await live.read_message()) is not None
            except Exception:  # noqa: BLE001  a closed connection
                continue
        assert received == 6
        for live in lives:
            live.close()
        await asyncio.sleep(0.05)

    with caplog.at_level(logging.WARNING):
        run(check)
    assert not [record for record in caplog.records if record.exc_info]


def test_the_error_of_a_page_that_closes_while_a_frame_is_sent_is_read(caplog: Any) -> None:
    class Closing:
        def write_message(self, _frame: bytes, *, binary: bool) -> asyncio.Future[None]:
            assert binary
            sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            sent.set_exception(WebSocketClosedError())
            return sent

    async def check(_page: Page) -> None:
        view._Live.send(Closing(), b"frame")  # type: ignore[arg-type]
        await asyncio.sleep(0)
        gc.collect()

    run(check)
    assert not [record for record in caplog.records if record.exc_info]


def test_half_sent_heads_give_way_to_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "max_connections", lambda: 8)

    async def check(page: Page) -> None:
        live = await websocket_connect(address(page, "live/studio", scheme="ws"))
        await live.read_message()
        halves = []
        for _ in range(30):
            half = socket.create_connection(("127.0.0.1", page.port))
            half.send(b"GET / HTTP/1.1\r\nHost: 127")
            halves.append(half)
        assert await status(page.url) == 200
        # an open page with its token keeps its connection
        await live.write_message('{"method": "custom", "content": {}}')
        assert len(page.live["studio"].comm.open_pages) == 1
        still_open = [other for other in page._server.streams if not other.closed()]
        assert len(still_open) <= 9
        for connection in (live, *halves):
            connection.close()
        await asyncio.sleep(0.05)

    run(check)


def test_a_head_that_does_not_end_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "REQUEST_SECONDS", 0.2)

    async def check(page: Page) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", page.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: 127")
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", page.port)
        writer.write(b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000)
        with suppress(ConnectionError):
            await writer.drain()
            assert b"200" not in await asyncio.wait_for(reader.read(), 5)
        writer.close()

    run(check)

"""Limits of servers: connections, seconds for a request, and bytes of a line of standard input.

A program that sends half a request keeps its connection, and uvicorn neither closes nor counts such connections. Here, the
connection that has waited longest is closed when there are too many, so that a client with a request is always accepted.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn
from starlette.requests import ClientDisconnect
from uvicorn.protocols.http.h11_impl import H11Protocol

from memlab.io.serving.forms import LONGEST_REQUEST
from memlab.subjects.loopback import REQUEST_SECONDS, max_connections

# Bytes of the headers of a request: a token, a few names and a path.
_MAX_HEAD = 16 << 10
# Connections that are accepted at once. asyncio accepts as many as the backlog before it handles one of them.
_ACCEPTED_AT_ONCE = 16
# Connections that the system holds until they are accepted; it applies its own limit.
_BACKLOG = 4096
# The module of the SDK that logs a traceback for each request whose client ended the connection.
_TRANSPORT = "mcp.server.streamable_http"
# Ticks of uvicorn, of a tenth of a second, between two searches for late requests, and seconds between two reports.
_TICKS, _REPORT_SECONDS = 10, 60.0


def configure(app: Any, shutdown_seconds: int) -> uvicorn.Config:
    """Return the configuration of a server with these limits."""
    return uvicorn.Config(
        app,
        loop="asyncio",
        http=_Connection,
        # a line for each invalid request would fill the disk
        log_level="error",
        access_log=False,
        backlog=_ACCEPTED_AT_ONCE,
        h11_max_incomplete_event_size=_MAX_HEAD,
        timeout_graceful_shutdown=shutdown_seconds,
    )


class _Connection(H11Protocol):
    """A connection that is closed if its request does not arrive in time, or if there are too many."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Add the connection; beyond the maximum, close the connection that has waited longest."""
        super().connection_made(transport)
        self.waits_since = self.loop.time()
        if len(self.connections) > max_connections():
            waiting = [other for other in _list_own(self.connections) if other.is_waiting()]
            min(waiting, key=lambda other: other.waits_since).drop()

    def is_waiting(self) -> bool:
        """Return whether the connection waits for a request, or for the rest of one."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def on_response_complete(self) -> None:
        """Start waiting for the next request."""
        self.waits_since = self.loop.time()
        super().on_response_complete()

    def drop(self) -> None:
        """Close the connection at once."""
        self.connections.discard(self)
        self.transport.abort()


def _list_own(connections: Any) -> list[_Connection]:
    """Return the HTTP connections, without the websockets that uvicorn lists with them."""
    return [connection for connection in connections if isinstance(connection, _Connection)]


class GuardedServer(uvicorn.Server):
    """A server that closes connections whose request is late, and reports broken ones once a minute."""

    broken = 0
    """Connections that broke during a request, and were not reported yet."""
    _reported = -_REPORT_SECONDS

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and let the system queue more connections than asyncio's default."""
        await super().startup(sockets)
        logging.getLogger(_TRANSPORT).addFilter(self._count_broken)
        for listener in sockets or ():
            listener.listen(_BACKLOG)

    def _count_broken(self, record: logging.LogRecord) -> bool:
        """Count the log record of a client's disconnect and return False; return True for other records."""
        is_broken = record.exc_info is not None and isinstance(record.exc_info[1], ClientDisconnect)
        self.broken += is_broken
        return not is_broken

    async def on_tick(self, counter: int) -> bool:
        """Close connections whose request is overdue, once a second."""
        if counter % _TICKS == 0:
            now = asyncio.get_running_loop().time()
            for connection in _list_own(self.server_state.connections):
                if connection.is_waiting() and now - connection.waits_since > REQUEST_SECONDS:
                    connection.drop()
                    self.broken += 1
            if self.broken and now - self._reported >= _REPORT_SECONDS:
                print(
                    f"{self.broken} connections ended or were closed before their request was complete.",
                    file=sys.stderr,
                )
                self.broken, self._reported = 0, now
        return await super().on_tick(counter)


# -- standard input ---------------------------------------------------------------------------------------------------

MAX_LINE = 4 * LONGEST_REQUEST
"""Maximum bytes of a line: a tool refuses a text of 10 MB with its size, which a client needs to know."""


# An escape of JSON; the group is half of a surrogate pair, as clients write that cut a text within an emoji.
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(u[dD][89a-fA-F]\w\w)|.)")


class Lines:
    """The lines of standard input, as a file for anyio; lines that are too long are skipped during reading."""

    def __init__(self) -> None:
        self._file = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
        # a child process must not read the messages of the client
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), sys.stdin.fileno())

    def readline(self) -> str:
        """Return the next line; replace a line that is too long by an invalid message."""
        line = self._file.readline(MAX_LINE + 1)
        if len(line) <= MAX_LINE:
            if b"\\ud" in line or b"\\uD" in line:
                # the request would not be JSON, and its answer could not name it
                line = _ESCAPE.sub(lambda match: b"\\ufffd" if match[1] else match[0], line)
            return line.decode(errors="replace")
        while line and not line.endswith(b"\n"):
            line = self._file.readline(MAX_LINE)
        return "{}\n"

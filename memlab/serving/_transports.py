"""How a server is reached: standard input and output, or HTTP of this machine alone with a token."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from memlab.loopback import listening, matches, new_token, own_names

__all__ = ["run_http", "run_stdio"]

_LONGEST_BODY = 4 << 20
"""Bytes of a request: a memory of 1 MB, escaped, and some room."""
_LAST_ANSWERS = 3
"""Seconds for calls under way when the server is ended."""


def run_stdio(server: Server[Any]) -> None:
    """Serve until the input ends, or a signal ends the process: nothing waits for a line that never comes."""
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_DFL)
    anyio.run(_stdio, server)


async def _stdio(server: Server[Any]) -> None:
    async with stdio_server() as (read, write), _answering(read, write) as heard:
        await server.run(heard, write, server.create_initialization_options())


@asynccontextmanager
async def _answering(read: Any, write: Any) -> AsyncIterator[MemoryObjectReceiveStream[SessionMessage | Exception]]:
    """The messages of a client; a line that is none is answered by an error, which the SDK would only log."""
    sender, receiver = anyio.create_memory_object_stream[SessionMessage | Exception]()

    async def relay() -> None:
        async with sender:
            async for item in read:
                if isinstance(item, Exception):
                    await write.send(SessionMessage(_no_message(item)))
                else:
                    await sender.send(item)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(relay)
        yield receiver
        tasks.cancel_scope.cancel()


def _no_message(fault: Exception) -> types.JSONRPCError:
    unread = isinstance(fault, ValidationError) and fault.errors()[0]["type"] == "json_invalid"
    code, message = (
        (types.PARSE_ERROR, "This line is not JSON; nothing was done.")
        if unread
        else (types.INVALID_REQUEST, "This line is no message of JSON-RPC 2.0; nothing was done.")
    )
    return types.JSONRPCError(jsonrpc="2.0", id=None, error=types.ErrorData(code=code, message=message))


def run_http(
    server: Server[Any], *, host: str, port: int, token: str | None, tell: Callable[[str, str], object]
) -> None:
    """Serve until SIGINT or SIGTERM. No session is kept between two requests, so none is left over."""
    bound = listening(port, host)
    names = own_names(bound.getsockname()[1], host)
    secret = token or new_token()
    app = server.streamable_http_app(
        json_response=True,
        stateless_http=True,
        max_request_body_size=_LONGEST_BODY,
        transport_security=TransportSecuritySettings(
            allowed_hosts=sorted(names), allowed_origins=[f"http://{name}" for name in sorted(names)]
        ),
    )
    config = uvicorn.Config(
        _Guarded(app, secret), log_level="warning", access_log=False, timeout_graceful_shutdown=_LAST_ANSWERS
    )
    shown = f"[{host}]" if ":" in host else host
    tell(f"http://{shown}:{bound.getsockname()[1]}/mcp", secret)
    uvicorn.Server(config).run(sockets=[bound])


class _Guarded:
    """An application that is reached with a token alone."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._knows(scope):
            said = {"error": "A request needs the header Authorization: Bearer TOKEN, with the token of memlab serve."}
            refusal = JSONResponse(said, status_code=401, headers={"WWW-Authenticate": "Bearer"})
            await refusal(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _knows(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return False
        kind, _, token = given[0].decode("latin-1").partition(" ")
        return kind.lower() == "bearer" and matches(token.strip(), self._token)

"""How a server is reached: standard input and output, or HTTP of this machine alone with a token."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
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
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from memlab.io.serving._forms import LONGEST_REQUEST
from memlab.kernel.base.loopback import listening, matches, own_names

__all__ = ["run_http", "run_stdio"]

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


def run_http(servers: Mapping[str, Server[Any]], *, host: str, port: int, tell: Callable[[str], object]) -> None:
    """Serve until SIGINT or SIGTERM, each token its own server. No session is kept between two requests."""
    bound = listening(port, host)
    names = own_names(bound.getsockname()[1], host)
    apps = {
        token: server.streamable_http_app(
            json_response=True,
            stateless_http=True,
            max_request_body_size=LONGEST_REQUEST,
            transport_security=TransportSecuritySettings(
                allowed_hosts=sorted(names), allowed_origins=[f"http://{name}" for name in sorted(names)]
            ),
        )
        for token, server in servers.items()
    }

    @asynccontextmanager
    async def running(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for app in apps.values():
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    outer = Starlette(routes=[Mount("/", _Guarded(apps))], lifespan=running)
    config = uvicorn.Config(outer, log_level="warning", access_log=False, timeout_graceful_shutdown=_LAST_ANSWERS)
    shown = f"[{host}]" if ":" in host else host
    tell(f"http://{shown}:{bound.getsockname()[1]}/mcp")
    uvicorn.Server(config).run(sockets=[bound])


class _Guarded:
    """Applications that are reached with a token alone, each with its own."""

    def __init__(self, apps: Mapping[str, ASGIApp]) -> None:
        self._apps = apps

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._asked(scope)
        if app is None:
            said = {"error": "A request needs the header Authorization: Bearer TOKEN, with the token of memlab serve."}
            refusal = JSONResponse(said, status_code=401, headers={"WWW-Authenticate": "Bearer"})
            await refusal(scope, receive, send)
        else:
            await app(scope, receive, send)

    def _asked(self, scope: Scope) -> ASGIApp | None:
        """The application whose token a request has; every token is compared, so that the time tells of none."""
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        kind, _, token = given[0].decode("latin-1").partition(" ") if len(given) == 1 else ("", "", "")
        fits = [app for known, app in self._apps.items() if matches(token.strip(), known)]
        return fits[0] if fits and kind.lower() == "bearer" else None

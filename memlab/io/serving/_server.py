"""A desk as a server of the official SDK, over standard input and output or HTTP of this machine alone."""

from __future__ import annotations

import functools
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
import uvicorn
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.server.apps import EXTENSION_ID
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from memlab.errors import (
    InputError,
    MemlabError,
    NotPermitted,
    ReadOnlyLab,
    UnknownName,
    did_you_mean,
)
from memlab.io.serving._desk import NOTE, Desk, describe_error
from memlab.io.serving._resources import FIXED, NAMED, read
from memlab.io.serving.forms import LONGEST_REQUEST, faults_of, schema_of
from memlab.io.serving.tools import TOOLS, Said, Tool
from memlab.kernel.base.printable import printable
from memlab.kernel.version import __version__
from memlab.subjects.loopback import is_same_token, open_socket, own_host_names

__all__ = ["run_http", "run_stdio", "server_of"]

_INSTRUCTIONS = (
    "The long-term memory of an agent. At the start of a task ask for `context`; before answering about the user or "
    "earlier work, `recall`; when you learn something that lasts, or are corrected, `remember`; after an answer that "
    f"used memories, `feedback`. {NOTE}"
)

Context = ServerRequestContext[Any]


def server_of(desk: Desk) -> Server[Any]:
    """A server whose calls run in threads, one lab among them; it knows no transport."""
    tools = {tool.name: tool for tool in TOOLS if desk.writes or not tool.writes}
    declared = {name: _declared(tool) for name, tool in tools.items()}

    async def list_tools(
        _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(declared.values()))

    def input_schema(name: str) -> Mapping[str, Any] | None:
        return declared[name].input_schema if name in declared else None

    async def call_tool(_: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in tools:
            return _refused(_no_tool(desk, params.name[:100], list(tools)))
        tool = tools[params.name]
        try:
            given = tool.form.model_validate(params.arguments or {})
        except ValidationError as error:
            return _refused(InputError(faults_of(error, tool.form)), tool.name)
        try:
            said: Said = await _in_thread(tool.run, desk, given)
        except MemlabError as error:
            return _refused(error, tool.name)
        answer = said.answer.model_dump(mode="json", exclude_defaults=True)
        return types.CallToolResult(content=[_text(said.text)], structured_content=answer)

    async def list_resources(
        _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    name=one.name, uri=one.uri, description=one.about, mime_type=one.mime
                )
                for one in FIXED
            ]
        )

    async def list_templates(
        _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    name=one.name,
                    uri_template=one.template,
                    description=one.about,
                    mime_type=one.mime,
                )
                for one in NAMED
            ]
        )

    async def read_resource(
        _: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            text, mime = await _in_thread(read, desk, uri)
        except MemlabError as error:
            code = types.INVALID_PARAMS if isinstance(error, InputError) else types.INTERNAL_ERROR
            raise MCPError(
                code=code, message=str(error), data={"uri": printable(uri[:200])}
            ) from error
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=params.uri, text=text, mime_type=mime)]
        )

    server: Server[Any] = Server(
        "memlab",
        version=__version__,
        title="memlab",
        instructions=_INSTRUCTIONS,
        get_tool_input_schema=input_schema,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )
    server.extensions[EXTENSION_ID] = {}
    return server


async def _in_thread(run: Callable[..., Any], *given: Any) -> Any:
    """A call in a thread of its own, so that a long one lets others be heard; the lab takes them one by one."""
    return await anyio.to_thread.run_sync(functools.partial(run, *given))


def _declared(tool: Tool[Any]) -> types.Tool:
    # A recall is logged and counted, which is the memory's own book-keeping: it asks for nobody's consent.
    hints = types.ToolAnnotations(
        title=tool.title,
        read_only_hint=not tool.writes,
        destructive_hint=tool.destroys,
        idempotent_hint=tool.idempotent,
        open_world_hint=False,
    )
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.when,
        input_schema=schema_of(tool.form),
        output_schema=schema_of(tool.answer),
        annotations=hints,
        # the page of a host that speaks MCP Apps
        _meta=None if tool.page is None else {"ui": {"resourceUri": tool.page}},
    )


def _no_tool(desk: Desk, name: str, known: list[str]) -> MemlabError:
    if name not in {tool.name for tool in TOOLS}:
        return UnknownName("tool", name, known)
    refusal = ReadOnlyLab if desk.read_only else NotPermitted
    return refusal(f'There is no tool "{name}" here. {did_you_mean(name, known)}')


def _refused(error: MemlabError, tool: str | None = None) -> types.CallToolResult:
    message = f"{tool}: {error}" if tool else str(error)
    return types.CallToolResult(
        content=[_text(printable(message))], is_error=True, _meta=describe_error(error)
    )


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


# -- transports -------------------------------------------------------------------------------------------------------

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
async def _answering(
    read: Any, write: Any
) -> AsyncIterator[MemoryObjectReceiveStream[SessionMessage | Exception]]:
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
    return types.JSONRPCError(
        jsonrpc="2.0", id=None, error=types.ErrorData(code=code, message=message)
    )


def run_http(
    servers: Mapping[str, Server[Any]], *, host: str, port: int, tell: Callable[[str], object]
) -> None:
    """Serve until SIGINT or SIGTERM, each token its own server. No session is kept between two requests."""
    bound = open_socket(port, host)
    names = own_host_names(bound.getsockname()[1], host)
    hosts = sorted(names)
    security = TransportSecuritySettings(
        allowed_hosts=hosts, allowed_origins=[f"http://{name}" for name in hosts]
    )
    apps = {
        token: server.streamable_http_app(
            json_response=True,
            stateless_http=True,
            max_request_body_size=LONGEST_REQUEST,
            transport_security=security,
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
    config = uvicorn.Config(
        outer, log_level="warning", access_log=False, timeout_graceful_shutdown=_LAST_ANSWERS
    )
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
            said = {
                "error": "A request needs the header Authorization: Bearer TOKEN, with the token of memlab serve."
            }
            refusal = JSONResponse(said, status_code=401, headers={"WWW-Authenticate": "Bearer"})
            await refusal(scope, receive, send)
        else:
            await app(scope, receive, send)

    def _asked(self, scope: Scope) -> ASGIApp | None:
        """The application whose token a request has; every token is compared, so that the time tells of none."""
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        kind, _, token = (
            given[0].decode("latin-1").partition(" ") if len(given) == 1 else ("", "", "")
        )
        fits = [app for known, app in self._apps.items() if is_same_token(token.strip(), known)]
        return fits[0] if fits and kind.lower() == "bearer" else None

"""Servers of the Model Context Protocol over standard input or local HTTP."""

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
from memlab.io.serving._connection import NOTE, Connection, describe_error
from memlab.io.serving._resources import FIXED, NAMED, read_resource
from memlab.io.serving.forms import LONGEST_REQUEST, build_schema, describe_faults
from memlab.io.serving.tools import TOOLS, Reply, Tool
from memlab.kernel.base.printable import printable
from memlab.kernel.version import __version__
from memlab.subjects.loopback import is_same_token, open_socket, own_host_names

__all__ = ["build_server", "run_http", "run_stdio"]

# Instructions that a host shows to a model at the start of a session: when to call which tool.
_INSTRUCTIONS = (
    "The long-term memory of an agent. Call `context` at the start of a task; `recall` before you answer about the user "
    "or earlier work; `remember` when you learn something lasting or are corrected; `feedback` after an answer that "
    f"used memories. {NOTE}"
)

Context = ServerRequestContext[Any]


def build_server(connection: Connection) -> Server[Any]:
    """Create an MCP server for a connection, independent of any transport.

    Calls run in threads, so that a long one does not delay the others; the lab's lock orders them.
    """
    # A client sees no tool that it may not use, so that a model does not try it.
    tools = {tool.name: tool for tool in TOOLS if connection.can_write or not tool.writes}
    declared = {name: _declare_tool(tool) for name, tool in tools.items()}

    async def list_tools(
        _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """Return the tools that the client may call."""
        return types.ListToolsResult(tools=list(declared.values()))

    def input_schema(name: str) -> Mapping[str, Any] | None:
        """Return the input schema of a tool, or None for an unknown tool."""
        return declared[name].input_schema if name in declared else None

    async def call_tool(_: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Call a tool; return an error of memlab as a refused result."""
        if params.name not in tools:
            return _refuse(_unknown_tool(connection, params.name[:100], list(tools)))
        tool = tools[params.name]
        try:
            arguments = tool.form.model_validate(params.arguments or {})
        except ValidationError as error:
            return _refuse(InputError(describe_faults(error, tool.form)), tool.name)
        try:
            reply: Reply = await _run_in_thread(tool.run, connection, arguments)
        except MemlabError as error:
            return _refuse(error, tool.name)
        answer = reply.answer.model_dump(mode="json", exclude_defaults=True)
        return types.CallToolResult(content=[_text(reply.text)], structured_content=answer)

    async def list_resources(
        _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Return the resources with a fixed address."""
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    name=resource.name,
                    uri=resource.uri,
                    description=resource.description,
                    mime_type=resource.mime,
                )
                for resource in FIXED
            ]
        )

    async def list_templates(
        _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Return the resources with a parameter in their address."""
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    name=resource.name,
                    uri_template=resource.template,
                    description=resource.description,
                    mime_type=resource.mime,
                )
                for resource in NAMED
            ]
        )

    async def answer_read(
        _: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Return the text of a resource, or raise an error of the protocol."""
        uri = str(params.uri)
        try:
            text, mime = await _run_in_thread(read_resource, connection, uri)
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
        on_read_resource=answer_read,
    )
    server.extensions[EXTENSION_ID] = {}
    return server


async def _run_in_thread(run: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function in a thread, so that the server reads messages meanwhile."""
    return await anyio.to_thread.run_sync(functools.partial(run, *arguments))


def _declare_tool(tool: Tool[Any]) -> types.Tool:
    """Return the description of a tool as the protocol lists it."""
    # A recall counts as read-only although it is logged: a host would otherwise ask for consent each time.
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
        description=tool.description,
        input_schema=build_schema(tool.form),
        output_schema=build_schema(tool.answer),
        annotations=hints,
        # hosts with MCP Apps show this page next to the answer
        _meta=None if tool.page is None else {"ui": {"resourceUri": tool.page}},
    )


def _unknown_tool(connection: Connection, name: str, available: list[str]) -> MemlabError:
    """Return the error for a tool that does not exist or is not permitted."""
    if name not in {tool.name for tool in TOOLS}:
        return UnknownName("tool", name, available)
    refusal = ReadOnlyLab if connection.read_only else NotPermitted
    return refusal(f'The tool "{name}" is not available here. {did_you_mean(name, available)}')


def _refuse(error: MemlabError, tool: str | None = None) -> types.CallToolResult:
    """Return the answer of a call that failed, with the error's class as metadata."""
    message = f"{tool}: {error}" if tool else str(error)
    return types.CallToolResult(
        content=[_text(printable(message))], is_error=True, _meta=describe_error(error)
    )


def _text(text: str) -> types.TextContent:
    """Wrap a text as content of a tool's result."""
    return types.TextContent(type="text", text=text)


# -- transports -------------------------------------------------------------------------------------------------------

# Seconds for calls in progress when the server ends: most take milliseconds.
_SHUTDOWN_SECONDS = 3


def run_stdio(server: Server[Any]) -> None:
    """Serve over standard input and output until the input or the process ends."""
    # Python's handlers would only run after the blocking read of the next line, which may never come
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    anyio.run(_serve_stdio, server)


async def _serve_stdio(server: Server[Any]) -> None:
    """Answer the messages of standard input on standard output."""
    async with stdio_server() as (read, write), _relay_messages(read, write) as messages:
        await server.run(messages, write, server.create_initialization_options())


@asynccontextmanager
async def _relay_messages(
    read: Any, write: Any
) -> AsyncIterator[MemoryObjectReceiveStream[SessionMessage | Exception]]:
    """Stream a client's valid messages; reply to invalid lines with an error.

    The SDK itself would only log them.
    """
    sender, receiver = anyio.create_memory_object_stream[SessionMessage | Exception]()

    async def relay() -> None:
        """Forward valid messages to the server; answer other lines with an error."""
        async with sender:
            async for item in read:
                if isinstance(item, Exception):
                    await write.send(SessionMessage(_refuse_message(item)))
                else:
                    await sender.send(item)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(relay)
        yield receiver
        tasks.cancel_scope.cancel()


def _refuse_message(fault: Exception) -> types.JSONRPCError:
    """Return the protocol error for a line that is not a message."""
    invalid_json = (
        isinstance(fault, ValidationError) and fault.errors()[0]["type"] == "json_invalid"
    )
    code, message = (
        (types.PARSE_ERROR, "This line is not JSON. It was ignored.")
        if invalid_json
        else (types.INVALID_REQUEST, "This line is not a JSON-RPC 2.0 message. It was ignored.")
    )
    return types.JSONRPCError(
        jsonrpc="2.0", id=None, error=types.ErrorData(code=code, message=message)
    )


def run_http(
    servers: Mapping[str, Server[Any]], *, host: str, port: int, tell: Callable[[str], object]
) -> None:
    """Serve over HTTP until SIGINT or SIGTERM, with a separate server per token.

    Requests are independent of one another, without sessions of the protocol. ``tell`` is called with the address.
    """
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
    async def run_apps(_: Starlette) -> AsyncIterator[None]:
        """Run the applications of all tokens as long as the server runs."""
        async with AsyncExitStack() as stack:
            for app in apps.values():
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    outer = Starlette(routes=[Mount("/", _TokenGuard(apps))], lifespan=run_apps)
    config = uvicorn.Config(
        outer, log_level="warning", access_log=False, timeout_graceful_shutdown=_SHUTDOWN_SECONDS
    )
    url_host = f"[{host}]" if ":" in host else host
    tell(f"http://{url_host}:{bound.getsockname()[1]}/mcp")
    uvicorn.Server(config).run(sockets=[bound])


class _TokenGuard:
    """Application that passes each request to the application of its token."""

    def __init__(self, apps: Mapping[str, ASGIApp]) -> None:
        self._apps = apps

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._find_app(scope)
        if app is None:
            message = "Unauthorized. Send the header Authorization: Bearer TOKEN, with the token of memlab serve."
            refusal = JSONResponse(
                {"error": message}, status_code=401, headers={"WWW-Authenticate": "Bearer"}
            )
            await refusal(scope, receive, send)
        else:
            await app(scope, receive, send)

    def _find_app(self, scope: Scope) -> ASGIApp | None:
        """Return the application of the token in a request's header."""
        values = [value for name, value in scope["headers"] if name == b"authorization"]
        kind, _, token = (
            values[0].decode("latin-1").partition(" ") if len(values) == 1 else ("", "", "")
        )
        # every token is compared, so that the response time reveals nothing about them
        apps = [app for valid, app in self._apps.items() if is_same_token(token.strip(), valid)]
        return apps[0] if apps and kind.lower() == "bearer" else None

"""Servers of the Model Context Protocol over standard input or local HTTP."""

from __future__ import annotations

import functools
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import (
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from typing import Any, Protocol, TextIO, cast

import anyio
import anyio.to_thread
import mcp_types as types
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
from memlab.io.serving._connection import NOTE, Client, Connection, describe_error
from memlab.io.serving._limits import MAX_LINE, GuardedServer, Lines, configure
from memlab.io.serving._prompts import PROMPTS, Prompt, write_prompt
from memlab.io.serving._resources import FIXED, NAMED, Resource, read_resource
from memlab.io.serving.audit import list_ids
from memlab.io.serving.forms import LONGEST_REQUEST, build_schema, describe_faults
from memlab.io.serving.tools import TOOLS, Reply, Tool
from memlab.kernel.base.printable import printable
from memlab.kernel.version import __version__
from memlab.subjects.loopback import open_socket, own_host_names

# Instructions that a host shows to a model at the start of a session: when to call which tool.
_INSTRUCTIONS = (
    "The long-term memory of an agent. Call `context` at the start of a task; `recall` before you answer about the user "
    "or earlier work; `about` when the user asks what you know; `remember` when you learn something lasting or are "
    "corrected, and at the end of a session; `feedback` after an answer that used memories. If results are weak, "
    f"probably no memory answers: do not guess. {NOTE}"
)

Context = ServerRequestContext[Any]


def build_server(find: Callable[[Context], Connection], *, can_write: bool) -> Server[Any]:
    """Create an MCP server that is independent of any transport.

    ``find`` returns the connection of a request. Calls run in threads, so that a long call does not
    delay the others; the lab's lock orders them.
    """
    # A client sees no tool that it may not use, so that a model does not try it.
    tools = {tool.name: tool for tool in TOOLS if can_write or not tool.writes}
    declared = {name: _declare_tool(tool) for name, tool in tools.items()}
    prompts = [_declare_prompt(prompt) for prompt in PROMPTS if can_write or not prompt.writes]
    resources = [
        types.Resource(uri=resource.uri, **_describe_resource(resource)) for resource in FIXED
    ]
    templates = [
        types.ResourceTemplate(uri_template=resource.template, **_describe_resource(resource))
        for resource in NAMED
    ]

    async def list_tools(
        _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """Return the tools that the client may call."""
        return types.ListToolsResult(tools=list(declared.values()))

    def input_schema(name: str) -> Mapping[str, Any] | None:
        """Return the input schema of a tool, or None for an unknown tool."""
        return declared[name].input_schema if name in declared else None

    async def call_tool(
        context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Call a tool; return an error of memlab as a failed result."""
        connection = find(context)
        try:
            answer, text = await _run_in_thread(_call_tool, connection, tools, params)
        except MemlabError as error:
            return _refuse(error, params.name if params.name in tools else None)
        return types.CallToolResult(content=[_text(text)], structured_content=answer)

    async def list_resources(
        _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Return the resources with a fixed address."""
        return types.ListResourcesResult(resources=resources)

    async def list_templates(
        _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Return the resources with a parameter in their address."""
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def answer_read(
        context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Return the text of a resource, or raise a protocol error."""
        uri = str(params.uri)
        with _as_protocol_error({"uri": printable(uri[:200])}):
            text, mime = await _run_in_thread(_read_logged, find(context), uri)
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=params.uri, text=text, mime_type=mime)]
        )

    async def list_prompts(
        _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        """Return the prompts that the client may use."""
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(
        context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """Return the message of a prompt, or raise a protocol error."""
        with _as_protocol_error({"prompt": printable(params.name[:100])}):
            text = await _run_in_thread(
                _write_logged, find(context), params.name, params.arguments or {}
            )
        message = types.PromptMessage(role="user", content=_text(text))
        return types.GetPromptResult(messages=[message])

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
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
    server.extensions[EXTENSION_ID] = {}
    return server


def _call_tool(
    connection: Connection, tools: Mapping[str, Tool[Any]], params: types.CallToolRequestParams
) -> tuple[dict[str, Any], str]:
    """Execute a call and log it; return the answer as structured data and as text."""
    name = params.name[:100]
    with _logging_errors(connection, name):
        if name not in tools:
            raise _unknown_tool(connection, name, list(tools))
        tool = tools[name]
        try:
            arguments = tool.form.model_validate(params.arguments or {})
        except ValidationError as error:
            raise InputError(describe_faults(error, tool.form)) from None
        reply: Reply = tool.run(connection, arguments)
    answer = reply.answer.model_dump(mode="json", exclude_defaults=True)
    connection.log(name, list_ids(answer))
    return answer, reply.text


def _read_logged(connection: Connection, uri: str) -> tuple[str, str]:
    """Read a resource; log its kind, but not its name, which may be private."""
    kind, _, name = uri.removeprefix("memlab://").partition("/")
    call = f"read {kind[:100]}"
    with _logging_errors(connection, call):
        content = read_resource(connection, uri)
    connection.log(call, [int(name)] if kind == "memory" and name.isdecimal() else ())
    return content


def _write_logged(connection: Connection, name: str, arguments: Mapping[str, str]) -> str:
    """Write the message of a prompt and log the call."""
    call = f"prompt {name[:100]}"
    with _logging_errors(connection, call):
        text = write_prompt(connection, name, arguments)
    connection.log(call)
    return text


@contextmanager
def _as_protocol_error(data: Mapping[str, str]) -> Iterator[None]:
    """Convert errors of memlab to protocol errors that carry ``data``."""
    try:
        yield
    except MemlabError as error:
        code = types.INVALID_PARAMS if isinstance(error, InputError) else types.INTERNAL_ERROR
        raise MCPError(code=code, message=str(error), data=dict(data)) from error


@contextmanager
def _logging_errors(connection: Connection, call: str) -> Iterator[None]:
    """Log a call that raises an error, with the error's class."""
    try:
        yield
    except MemlabError as error:
        connection.log(call, outcome=type(error).__name__)
        raise


async def _run_in_thread(run: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function in a thread, so that the server can read messages at the same time."""
    return await anyio.to_thread.run_sync(functools.partial(run, *arguments))


def _declare_tool(tool: Tool[Any]) -> types.Tool:
    """Return the description of a tool in the form that the protocol requires."""
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


def _declare_prompt(prompt: Prompt) -> types.Prompt:
    """Return the description of a prompt in the form that the protocol requires."""
    argument = types.PromptArgument(
        name=prompt.argument, description=prompt.about, required=prompt.required
    )
    return types.Prompt(name=prompt.name, description=prompt.description, arguments=[argument])


def _describe_resource(resource: Resource) -> dict[str, Any]:
    """Return the fields that the protocol requires of each resource, without its address."""
    return {
        "name": resource.name,
        "description": resource.description,
        "mime_type": resource.mime,
    }


def _unknown_tool(connection: Connection, name: str, available: list[str]) -> MemlabError:
    """Return the error for a tool that is unknown or not permitted."""
    if name not in {tool.name for tool in TOOLS}:
        return UnknownName("tool", name, available)
    refusal = ReadOnlyLab if connection.read_only else NotPermitted
    return refusal(f'The tool "{name}" is not available here. {did_you_mean(name, available)}')


def _refuse(error: MemlabError, tool: str | None = None) -> types.CallToolResult:
    """Return the answer to a failed call, with the error's class as metadata."""
    message = f"{tool}: {error}" if tool else str(error)
    return types.CallToolResult(
        content=[_text(printable(message))], is_error=True, _meta=describe_error(error)
    )


def _text(text: str) -> types.TextContent:
    """Wrap a text as the content of a tool's result."""
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
    """Answer messages from standard input on standard output."""
    lines = anyio.wrap_file(cast("TextIO", Lines()))
    async with stdio_server(lines) as (read, write), _relay_messages(read, write) as messages:
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
        """Forward valid messages to the server; answer invalid lines with an error."""
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
        else (
            types.INVALID_REQUEST,
            f"This line is not a JSON-RPC 2.0 message of at most {MAX_LINE:,} bytes. It was ignored.",
        )
    )
    return types.JSONRPCError(
        jsonrpc="2.0", id=None, error=types.ErrorData(code=code, message=message)
    )


class Door(Protocol):
    """The lab or labs of an HTTP server, found by the token of each request."""

    def find_client(self, token: str) -> Client | None:
        """Return the client with this token, or None if the token is unknown."""

    def connect(self, client: Client) -> AbstractContextManager[Connection]:
        """Return a context manager that yields a client's connection for one request."""

    def refuse(self) -> None:
        """Count a request without a valid token in the audit log."""

    def close(self) -> None:
        """Close the labs and logs that this object opened."""


def run_http(door: Door, *, host: str, port: int, tell: Callable[[str], object]) -> None:
    """Serve over HTTP until SIGINT or SIGTERM.

    Requests are independent of one another, without sessions of the protocol. ``tell`` is called with the address.
    """
    bound = open_socket(port, host)
    hosts = sorted(own_host_names(bound.getsockname()[1], host))
    security = TransportSecuritySettings(
        allowed_hosts=hosts, allowed_origins=[f"http://{name}" for name in hosts]
    )
    # There are two applications, because clients that may write see more tools. ``_TokenGuard`` stores
    # the connection in the request.
    apps = {
        can_write: build_server(_get_connection, can_write=can_write).streamable_http_app(
            json_response=True,
            stateless_http=True,
            max_request_body_size=LONGEST_REQUEST,
            transport_security=security,
        )
        for can_write in (False, True)
    }

    @asynccontextmanager
    async def run_apps(_: Starlette) -> AsyncIterator[None]:
        """Run the applications of both protocols until the server stops."""
        async with AsyncExitStack() as stack:
            # closed here, because the signal that ends the server also ends the process once the server returns
            stack.callback(door.close)
            for app in apps.values():
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    outer = Starlette(routes=[Mount("/", _TokenGuard(door, apps))], lifespan=run_apps)
    server = GuardedServer(configure(outer, _SHUTDOWN_SECONDS))
    url_host = f"[{host}]" if ":" in host else host
    tell(f"http://{url_host}:{bound.getsockname()[1]}/mcp")
    server.run(sockets=[bound])


# The key under which the scope of a request contains its connection.
_CONNECTION = "memlab.connection"


def _get_connection(context: Context) -> Connection:
    """Return the connection that ``_TokenGuard`` stored in a request."""
    assert context.request is not None
    connection: Connection = context.request.scope[_CONNECTION]
    return connection


# Requests that may wait for a lab at the same time; further ones wait for a thread.
_OPENERS = 40


class _TokenGuard:
    """Application that opens the connection of each request's token and passes the request on."""

    def __init__(self, door: Door, apps: Mapping[bool, ASGIApp]) -> None:
        self._door, self._apps = door, apps
        self._openers: anyio.CapacityLimiter | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = self._door.find_client(_read_token(scope))
        if client is None:
            await _run_in_thread(self._door.refuse)
            message = "Unauthorized. Send the header Authorization: Bearer TOKEN, with the token of memlab serve."
            headers = {"WWW-Authenticate": "Bearer"}
            refusal = JSONResponse({"error": message}, status_code=401, headers=headers)
            await refusal(scope, receive, send)
            return
        # Threads of their own: requests that wait for a lab would otherwise take the threads of requests that use one.
        if self._openers is None:
            self._openers = anyio.CapacityLimiter(_OPENERS)
        opened = self._door.connect(client)
        try:
            connection = await anyio.to_thread.run_sync(opened.__enter__, limiter=self._openers)
        except MemlabError as error:
            unavailable = JSONResponse({"error": printable(str(error))}, status_code=503)
            await unavailable(scope, receive, send)
            return
        try:
            await self._apps[connection.can_write](
                {**scope, _CONNECTION: connection}, receive, send
            )
        finally:
            with anyio.CancelScope(shield=True):
                await _run_in_thread(opened.__exit__, None, None, None)


def _read_token(scope: Scope) -> str:
    """Return the bearer token in a request's header, or "" if there is no token."""
    values = [value for name, value in scope["headers"] if name == b"authorization"]
    kind, _, token = (
        values[0].decode("latin-1").partition(" ") if len(values) == 1 else ("", "", "")
    )
    return token.strip() if kind.lower() == "bearer" else ""

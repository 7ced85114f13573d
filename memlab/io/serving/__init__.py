"""Serve a lab over the Model Context Protocol, and connect to a served lab.

The official package ``mcp`` is an optional dependency that takes a second to import, so only a server imports it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Annotated

from memlab.errors import InputError, MemlabError, require_extra
from memlab.io.serving._connection import SHORTEST_TOKEN, Client, check_token, read_clients
from memlab.io.serving._connection import describe_error as describe_error  # for tests
from memlab.io.serving._connection import restore_error as restore_error  # for tests
from memlab.io.serving.audit import AuditLog, read_audit_log
from memlab.kernel.base.arguments import Count, Within, checked
from memlab.subjects.identity import Role
from memlab.subjects.lab import Lab
from memlab.subjects.loopback import HOST, new_token

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from memlab.io.serving.remote import RemoteLab

__all__ = [
    "SHORTEST_TOKEN",
    "connect",
    "lab_server",
    "read_audit_log",
    "serve_http",
    "serve_root",
    "serve_stdio",
]


@checked
def lab_server(
    lab: Lab,
    *,
    project: str | None = None,
    viewer: str | None = None,
    session: str | None = None,
    role: Role = "owner",
) -> Server:
    """Create an MCP server for a lab, for any transport of the package ``mcp``.

    The server ends when the lab is closed. A lab that is open for reading has no tools that write.

    Parameters
    ----------
    lab
        The lab to serve.
    project
        Project of the connection. New memories belong to this project, and only memories of this project or of no
        project are visible. Default: each call may name a project.
    viewer
        Name of the client, such as "agent:coder"; memories private to others are invisible. Default: all are visible.
    session
        Session of calls that name none.
    role
        "reader" recalls; "member" also writes, and changes memories that it alone contributed to, which needs a
        ``viewer``; "owner" changes every visible memory.

    Returns
    -------
    mcp.server.lowlevel.Server
        A server of the official SDK.

    Raises
    ------
    MissingExtra
        If the package ``mcp`` is not installed.
    InputError
        If the viewer or role is invalid.

    Examples
    --------
    >>> import memlab
    >>> from memlab.io.serving import lab_server
    >>> with memlab.open() as lab:
    ...     lab_server(lab, role="reader").name
    'memlab'
    """
    with require_extra("mcp", "memlab serve"):
        import mcp  # noqa: F401

        from memlab.io.serving._connection import Connection
        from memlab.io.serving._server import build_server

    connection = Connection.from_lab(
        lab, project=project, viewer=viewer, session=session, role=role
    )
    return build_server(lambda _: connection, can_write=connection.can_write)


# Seconds until the embedder loads: the first message of a client is answered in .1 s, and is not to wait.
_WARM_UP_AFTER = 0.5


def _warm_up(lab: Lab) -> None:
    """Load the embedder and the data for recalls in a thread, while the client initializes.

    Otherwise the first call of a model would wait for the embedder.
    """

    def recall() -> None:
        """Recall once without logging. Ignore an error, because the next call raises it again."""
        with suppress(MemlabError):
            lab.recall("memory", log=False)

    timer = Timer(_WARM_UP_AFTER, recall)
    timer.daemon = True
    timer.start()


@checked
def serve_stdio(
    lab: Lab,
    *,
    project: str | None = None,
    viewer: str | None = None,
    session: str | None = None,
    role: Role = "owner",
) -> None:
    """Serve a lab over standard input and output until the input ends.

    A signal ends the process at once; every acknowledged write is on disk already.

    Parameters
    ----------
    lab, project, viewer, session, role
        As for ``lab_server``.

    Raises
    ------
    MissingExtra
        If the package ``mcp`` is not installed.
    InputError
        If the viewer or role is invalid.

    Examples
    --------
    >>> serve_stdio(memlab.open("lab"), viewer="agent:coder", role="member")  # doctest: +SKIP
    """
    server = lab_server(lab, project=project, viewer=viewer, session=session, role=role)
    from memlab.io.serving._server import run_stdio

    _warm_up(lab)
    run_stdio(server)


@checked
def serve_http(
    lab: Lab,
    *,
    host: str = HOST,
    port: int = 0,
    token: str | None = None,
    project: str | None = None,
    viewer: str | None = None,
    role: Role = "owner",
    clients: str | Path | None = None,
    audit: bool = True,
    tell: Callable[[str, str], object] = print,
) -> None:
    """Serve a lab over HTTP on this machine until the process is interrupted.

    The transport is the streamable HTTP of the protocol.

    Requests need a valid token, and are refused under another host name or from a page of another origin.

    Parameters
    ----------
    lab, project, viewer, role
        As for ``lab_server``.
    host
        Address to listen on; it must be a loopback address.
    port
        Port to listen on; 0 lets the system choose one.
    token
        Token of all clients, at least 16 characters. Default: a random token.
    clients
        Path of a TOML file with a table per client, such as ``[coder]``, which has ``token``, ``role`` and optionally
        ``viewer`` (default: "agent:coder") and ``project``. It replaces the other arguments about clients.
    audit
        Whether to log client, call, ids and outcome in the lab's folder; `read_audit_log` reads the log. A lab in memory
        has none.
    tell
        Function that is called with the address and the common token (empty with ``clients``) before requests are
        accepted.

    Raises
    ------
    InputError
        If the port is in use, other machines can reach the address, a token is invalid, or other users can read the
        file of clients.
    MissingExtra
        If the package ``mcp`` is not installed.

    Examples
    --------
    >>> serve_http(memlab.open("lab"), port=8765)  # doctest: +SKIP
    http://127.0.0.1:8765/mcp 0vXb...
    """
    if clients is not None and (token, project, viewer, role) != (None, None, None, "owner"):
        raise InputError(
            "The file of clients sets token, project, viewer and role of each client. Omit these arguments."
        )
    if token is not None:
        check_token(token, "token")
    common = token or new_token()
    accepted = (
        [Client(common, role, viewer, project)] if clients is None else read_clients(Path(clients))
    )
    with require_extra("mcp", "memlab serve"):
        from memlab.io.serving._doors import LabDoor
        from memlab.io.serving._server import run_http

    folder = lab.io.path
    log = AuditLog(folder) if audit and folder is not None else None
    shared = common if clients is None else ""
    _warm_up(lab)
    run_http(LabDoor(lab, accepted, log), host=host, port=port, tell=lambda url: tell(url, shared))


@checked
def serve_root(
    root: str | Path,
    *,
    host: str = HOST,
    port: int = 0,
    clients: str | Path | None = None,
    capacity: Count | None = None,
    audit: bool = True,
    tell: Callable[[str], object] = print,
) -> None:
    """Serve the labs of a folder over HTTP on this machine, each with its tokens.

    The token of a request decides which lab answers. The first request for a lab opens the lab, or creates a lab that
    does not exist. Few labs are open at a time.

    Parameters
    ----------
    root
        The folder of the labs.
    host
        Address to listen on; it must be a loopback address.
    port
        Port to listen on; 0 lets the system choose one.
    clients
        Path of a TOML file with a table per client, such as ``[ada]``, which has ``token`` and ``role``, and optionally
        ``lab`` (default: the folder "ada" in ``root``), ``viewer`` and ``project``. It is read again when it changes.
        Default: clients.toml in ``root``.
    capacity
        Number of labs that are open at a time. Default: as many as the limit of open files permits, at most 64.
    audit
        Whether to log client, call, ids and outcome in the folder of each lab, and refused logins in ``root``.
    tell
        Function that is called with the address before requests are accepted.

    Raises
    ------
    InputError
        If ``root`` is no folder, the port is in use, other machines can reach the address, or the file of clients is
        invalid or readable by other users.
    MissingExtra
        If the package ``mcp`` is not installed.

    Examples
    --------
    >>> serve_root("labs", port=8765)  # doctest: +SKIP
    http://127.0.0.1:8765/mcp
    """
    with require_extra("mcp", "memlab serve"):
        from memlab.io.serving._doors import RootDoor, default_capacity
        from memlab.io.serving._server import run_http

    folder = Path(root)
    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a folder. Create it, with a file clients.toml that lists the clients."
        )
    path = folder / "clients.toml" if clients is None else Path(clients)
    if capacity is None:
        capacity = default_capacity()
    run_http(RootDoor(folder, path, capacity, audit=audit), host=host, port=port, tell=tell)


@checked
def connect(
    url: str,
    *,
    token: str | None = None,
    timeout: Annotated[float, Within(0, 86_400, above=True)] = 30.0,
    insecure: bool = False,
) -> RemoteLab:
    """Connect to a lab served by ``memlab serve LAB --http``.

    No request is sent until a method is called, so the server may start later. Proxies are not used and redirects are
    not followed.

    Parameters
    ----------
    url
        Address that ``memlab serve`` prints; the path ``/mcp`` may be omitted.
    token
        Token that ``memlab serve`` prints, or one of its file of clients. Default: the environment variable
        ``MEMLAB_TOKEN``.
    timeout
        Maximum seconds per call, above 0 and at most 86,400.
    insecure
        Whether to send the token over plain http to another machine.

    Returns
    -------
    RemoteLab
        The lab behind the address.

    Raises
    ------
    InputError
        If the address is invalid or would expose the token, or if there is no valid token.
    MissingExtra
        If pydantic, a dependency of the package ``mcp``, is not installed.

    Examples
    --------
    >>> connect("http://127.0.0.1:8765", token="at-least-16-characters")
    <RemoteLab http://127.0.0.1:8765/mcp>
    """
    with require_extra("mcp", "memlab.io.serving.connect"):
        from memlab.io.serving.remote import RemoteLab

    secret = token if token is not None else os.environ.get("MEMLAB_TOKEN")
    if not secret:
        raise InputError(
            "connect needs a token. Pass token=..., or set MEMLAB_TOKEN to the token that memlab serve prints."
        )
    return RemoteLab._at(url, secret, timeout, insecure=insecure)

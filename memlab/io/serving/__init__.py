"""A lab as a server of the Model Context Protocol: five tools, and everything else to read.

The official package ``mcp`` is an extra and takes a second to import, so it is imported when a server is made.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from memlab.errors import InputError, MissingExtra
from memlab.io.serving._desk import SHORTEST_TOKEN, Client, check_token, clients_in
from memlab.io.serving._desk import describe_error as describe_error  # for tests
from memlab.io.serving._desk import restore_error as restore_error  # for tests
from memlab.kernel.base.arguments import Within, checked
from memlab.subjects.identity import Role
from memlab.subjects.lab import Lab
from memlab.subjects.loopback import HOST, new_token

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from memlab.io.serving.remote import RemoteLab

__all__ = ["SHORTEST_TOKEN", "connect", "lab_server", "serve_http", "serve_stdio"]


@checked
def lab_server(
    lab: Lab,
    *,
    project: str | None = None,
    viewer: str | None = None,
    session: str | None = None,
    role: Role = "owner",
) -> Server:
    """A server of ``lab`` that any transport of the package ``mcp`` can carry; the lab ends it by closing.

    With ``project`` it remembers into that project, and reads and changes what belongs to it or to none. ``viewer`` is
    whoever asks and writes, such as "agent:coder": what is private to others does not exist. ``session`` is what
    memories and questions belong to where a call names none. A lab that is read only has no tools that write.

    ``role`` is what the connection may do: a "reader" asks, a "member" also writes and changes what it created and
    nobody else contributed to, an "owner" changes whatever it sees. A member is a ``viewer``.

    MissingExtra where ``mcp`` is not installed; InputError for what is no viewer or role.
    """
    try:
        import mcp  # noqa: F401
    except ImportError:
        raise MissingExtra("memlab serve", "the package mcp", "mcp") from None
    from memlab.io.serving._desk import Desk
    from memlab.io.serving._server import server_of

    return server_of(Desk.of(lab, project=project, viewer=viewer, session=session, role=role))


@checked
def serve_stdio(
    lab: Lab,
    *,
    project: str | None = None,
    viewer: str | None = None,
    session: str | None = None,
    role: Role = "owner",
) -> None:
    """Serve ``lab`` over standard input and output until the input ends; the arguments are those of ``lab_server``.

    A signal ends the process at once: what was acknowledged is on the disk.
    """
    server = lab_server(lab, project=project, viewer=viewer, session=session, role=role)
    from memlab.io.serving._server import run_stdio

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
    tell: Callable[[str, str], object] = print,
) -> None:
    """Serve ``lab`` as streamable HTTP to this machine alone, until the process is interrupted or ended.

    One token for all clients, or ``clients``: a TOML file with a table for each, ``[coder]`` with ``token`` and
    ``role``, and ``viewer`` (without one: "agent:coder") and ``project`` where they are wanted.

    ``tell`` is given the address, and the token where there is one for all, else an empty text. Refused is a request
    without a token that is known, by another name than this machine's, or from a page of another origin. InputError for
    a port that is taken, an address that other machines can reach, a ``token`` of less than 16 characters (without one
    it is made), and a file of clients that others can read.
    """
    if clients is not None and (token, project, viewer, role) != (None, None, None, "owner"):
        raise InputError(
            "The file of clients says each one's token, project, viewer and role: leave them out here."
        )
    if token is not None:
        check_token(token, "token")
    made = token or new_token()
    known = [Client(made, role, viewer, project)] if clients is None else clients_in(Path(clients))
    servers = {
        one.token: lab_server(lab, project=one.project, viewer=one.viewer, role=one.role)
        for one in known
    }
    from memlab.io.serving._server import run_http

    run_http(
        servers, host=host, port=port, tell=lambda url: tell(url, made if clients is None else "")
    )


@checked
def connect(
    url: str,
    *,
    token: str | None = None,
    timeout: Annotated[float, Within(0, 86_400, above=True)] = 30.0,
    insecure: bool = False,
) -> RemoteLab:
    """Return the lab that another process serves over HTTP, as ``memlab serve LAB --http`` does.

    Nothing is sent until a verb is called, so a server may be started later. No proxy is used and no redirection is
    followed.

    Parameters
    ----------
    url
        The address that ``memlab serve`` prints; the path ``/mcp`` may be left out.
    token
        The token that it prints, or one of its file of clients. Default: the environment variable ``MEMLAB_TOKEN``.
    timeout
        Seconds within which each call is answered, from 0 (excluded) to a day.
    insecure
        Send the token over plain http to another machine.

    Raises
    ------
    InputError
        If the address is not one of http or https, would send the token in plain text to another machine, or if there
        is no valid token.
    MissingExtra
        If pydantic is not installed, which the package mcp brings.

    Examples
    --------
    >>> connect("http://127.0.0.1:8765", token="at-least-16-characters")
    <RemoteLab http://127.0.0.1:8765/mcp>
    """
    try:
        import pydantic  # noqa: F401
    except ImportError:
        raise MissingExtra("memlab.io.serving.connect", "the package mcp", "mcp") from None
    from memlab.io.serving.remote import RemoteLab

    secret = token if token is not None else os.environ.get("MEMLAB_TOKEN")
    if not secret:
        raise InputError(
            "connect needs a token: pass token=..., or set MEMLAB_TOKEN to what memlab serve prints."
        )
    return RemoteLab.at(url, secret, timeout, insecure=insecure)

"""A lab as a server of the Model Context Protocol: five tools, and everything else to read.

The official package ``mcp`` is an extra and takes a second to import, so it is imported when a server is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from memlab.arguments import checked
from memlab.errors import InputError, MissingExtra
from memlab.lab import Lab
from memlab.loopback import HOST
from memlab.subjects.agents.identity import Role

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

__all__ = ["SHORTEST_TOKEN", "lab_server", "serve_http", "serve_stdio"]

SHORTEST_TOKEN = 16
"""Characters of a token that a caller chooses."""


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
    from memlab.serving._desk import Desk
    from memlab.serving._server import server_of

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
    from memlab.serving._transports import run_stdio

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
    tell: Callable[[str, str], object] = print,
) -> None:
    """Serve ``lab`` as streamable HTTP to this machine alone, until the process is interrupted or ended.

    ``tell`` is given the address and the token. Refused is a request without the token, by another name than this
    machine's, or from a page of another origin. InputError for a port that is taken, an address that other machines can
    reach, and a ``token`` of less than 16 characters; without one it is made.
    """
    if token is not None and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        raise InputError(
            f"A token has at least {SHORTEST_TOKEN} characters, of ASCII and printable; without one memlab makes it."
        )
    server = lab_server(lab, project=project, viewer=viewer, role=role)
    from memlab.serving._transports import run_http

    run_http(server, host=host, port=port, token=token, tell=tell)

"""Local servers: a socket on the loopback address, its host names, and an access token."""

from __future__ import annotations

import errno
import hmac
import ipaddress
import resource
import secrets
import socket

from memlab.errors import InputError

HOST = "127.0.0.1"
"""The address of this machine that no other machine can reach."""

REQUEST_SECONDS = 10.0
"""Seconds until a request must have arrived completely; one of 4 MB takes milliseconds on one machine."""

# Bounds of the connections of a server, and the part of the limit of open files that they may take: labs need the rest.
_FEWEST, _MOST, _FILES_FOR_EACH = 16, 256, 8


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is reachable from this machine alone.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def max_connections() -> int:
    """Return the number of connections that the limit on open files permits."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(_FEWEST, min(_MOST, files // _FILES_FOR_EACH))


def open_socket(port: int, host: str = HOST) -> socket.socket:
    """Return a socket that listens on a port; port 0 selects a free port.

    Raises InputError for a port in use or reserved, and for an address that is not local.
    """
    if not is_loopback(host):
        raise InputError(
            f"{host!r} is reachable from other machines: use {HOST}, ::1 or localhost."
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        problem = "taken" if error.errno == errno.EADDRINUSE else "reserved"
        raise InputError(
            f"Port {port} of this machine is {problem}: choose another, or 0 for any free one."
        ) from None
    # Connections inherit the option. asyncio sets it only on sockets that it makes itself, and
    # without it an answer waits for 40 ms.
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return server


def own_host_names(port: int, host: str = HOST) -> set[str]:
    """Return the values that are accepted in a request's ``Host`` header.

    Other names are refused, because an attacker may let a host name resolve to this machine.
    """
    return {f"{f'[{name}]' if ':' in name else name}:{port}" for name in (host, HOST, "localhost")}


def new_token() -> str:
    """Return an unguessable token of 32 characters that are valid in a URL."""
    return secrets.token_urlsafe(24)


def is_same_token(received: str, token: str) -> bool:
    """Compare two tokens in constant time, and return whether they are equal."""
    return hmac.compare_digest(received.encode("utf-8", "replace"), token.encode())

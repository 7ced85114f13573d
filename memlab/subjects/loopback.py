"""Servers of this machine alone: a socket of the loopback, the names by which it may be asked, and a token."""

from __future__ import annotations

import errno
import hmac
import ipaddress
import secrets
import socket

from memlab.errors import InputError

__all__ = ["HOST", "is_loopback", "listening", "matches", "new_token", "own_names"]

HOST = "127.0.0.1"


def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine's own, which no other machine can reach.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listening(port: int, host: str = HOST) -> socket.socket:
    """A socket that listens on a port, or on any free one for 0.

    InputError for a port that is taken or reserved, and for an address that other machines can reach.
    """
    if not is_loopback(host):
        raise InputError(
            f"{host!r} is not an address of this machine alone, such as {HOST}, ::1 or localhost."
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        found = socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        what = "taken" if error.errno == errno.EADDRINUSE else "reserved"
        raise InputError(
            f"Port {port} of this machine is {what}: choose another, or 0 for any free one."
        ) from None
    # connections inherit it: asyncio sets it on sockets of its own making alone, and an answer would wait for 40 ms
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def own_names(port: int, host: str = HOST) -> set[str]:
    """What the header ``Host`` of a request may say; another name may be one that an attacker lets point here."""
    return {f"{f'[{name}]' if ':' in name else name}:{port}" for name in (host, HOST, "localhost")}


def new_token() -> str:
    """A token that nobody guesses: 32 characters that may stand in an address."""
    return secrets.token_urlsafe(24)


def matches(given: str, token: str) -> bool:
    """Whether two tokens are the same; how long it takes does not tell how much of them is."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())

"""One request and its reply, within a number of bytes and of seconds, whatever the server does."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from time import monotonic
from typing import NamedTuple
from urllib.parse import SplitResult

from memlab.errors import NoAnswer

__all__ = ["MOST_BYTES", "Broken", "Reply", "Unreached", "posted"]

MOST_BYTES = 1 << 20
"""Bytes of a reply that are read; a longer one is refused."""


class Unreached(NoAnswer):
    """No connection was made, so nothing was sent."""


class Broken(NoAnswer):
    """A connection that ended before the reply did: another try may do better."""


class Reply(NamedTuple):
    """``wait``: the seconds after which the server asks to be asked again, 0 unless it says."""

    status: int
    body: bytes
    wait: float


def posted(
    url: SplitResult, body: bytes, headers: dict[str, str], seconds: float, *, max_bytes: int = MOST_BYTES
) -> Reply:
    """What a server replies to a POST. Redirections are not followed, and no proxy is used.

    Unreached where nobody listens; another NoAnswer where the reply is not whole after ``seconds`` in all, or is longer
    than ``max_bytes``: the server may have acted on the request.
    """
    end = monotonic() + seconds
    where = url.netloc
    try:
        connected = _connected(url, seconds)
    except TimeoutError:
        raise Unreached(f"{where} cannot be reached within {seconds:g} s.") from None
    except OSError as error:
        raise Unreached(f"{where} cannot be reached: {error.strerror or error}.") from None
    late = threading.Event()

    def stop() -> None:
        late.set()
        with suppress(OSError):  # a server may send a byte now and then: no time limit of one read ends that
            socket.socket.shutdown(connected, socket.SHUT_RDWR)

    timer = threading.Timer(max(end - monotonic(), 0.0), stop)
    timer.daemon = True
    timer.start()
    try:
        reply = _exchanged(connected, url, body, headers, max_bytes)
    except (OSError, HTTPException, ValueError) as error:
        if not late.is_set() and not isinstance(error, TimeoutError):  # the socket's own limit may come first
            raise Broken(f"The connection to {where} broke: {type(error).__name__}.") from None
    else:
        if not late.is_set():
            return reply
    finally:
        timer.cancel()
        connected.close()
    raise NoAnswer(f"{where} has not answered whole within {seconds:g} s.")


def _connected(url: SplitResult, seconds: float) -> socket.socket:
    assert url.hostname is not None
    secure = url.scheme == "https"
    found = socket.create_connection((url.hostname, url.port or (443 if secure else 80)), timeout=seconds)
    if secure:  # the handshake comes when the time is watched
        context = ssl.create_default_context()
        return context.wrap_socket(found, server_hostname=url.hostname, do_handshake_on_connect=False)
    return found


def _exchanged(
    connected: socket.socket, url: SplitResult, body: bytes, headers: dict[str, str], max_bytes: int
) -> Reply:
    if isinstance(connected, ssl.SSLSocket):
        try:
            connected.do_handshake()
        except ssl.SSLCertVerificationError as error:
            raise Unreached(f"{url.netloc} has no certificate that is trusted here: {error.verify_message}.") from None
    assert url.hostname is not None
    connection = HTTPConnection(url.hostname, url.port)
    connection.sock = connected
    connection.request("POST", url.path, body, headers)
    with connection.getresponse() as response:
        read = response.read(max_bytes + 1)
        if len(read) > max_bytes:
            raise NoAnswer(f"{url.netloc} sends more than {max_bytes:,} bytes.")
        if response.length:
            raise HTTPException("the reply is cut off")
        return Reply(response.status, read, _wait(response))


def _wait(response: HTTPResponse) -> float:
    try:
        return max(float(response.headers.get("Retry-After", "0")), 0.0)
    except ValueError:  # a date: nobody waits for one here
        return 0.0

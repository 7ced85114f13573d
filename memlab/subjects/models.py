"""Language models behind servers that speak OpenAI's chat completions: asked within bounds, where a caller gives one.

What comes back is taken for hostile until it was read: it is bounded in size and time, and a secret in it is redacted.
Nothing here knows what is asked, or a lab.
"""

from __future__ import annotations

import hashlib
import socket
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec

from memlab.errors import BadAnswer, DamagedLab, InputError, ModelError, NoAnswer, OverBudget
from memlab.kernel.base.arguments import Count, Within, checked, describe_value
from memlab.kernel.base.disk import read_sealed, write_sealed, writing
from memlab.kernel.base.display import clip
from memlab.kernel.base.printable import printable
from memlab.kernel.base.threads import ThreadLock
from memlab.kernel.privacy import screen
from memlab.kernel.version import __version__
from memlab.subjects.loopback import is_loopback

__all__ = [
    "MOST_BYTES",
    "Answers",
    "Broken",
    "LanguageModel",
    "Otherwise",
    "Reply",
    "Unreached",
    "Usage",
    "posted",
    "read_json_answer",
]


# One request and its reply, within a number of bytes and of seconds, whatever the server does.


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
    url: SplitResult,
    body: bytes,
    headers: dict[str, str],
    seconds: float,
    *,
    max_bytes: int = MOST_BYTES,
) -> Reply:
    """What a server replies to a POST. Redirections are not followed, and no proxy is used.

    Unreached where nobody listens; another NoAnswer where the reply is not whole after ``seconds`` in all, or is longer
    than ``max_bytes``: the server may have acted on the request.
    """
    end = time.monotonic() + seconds
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
        # a server may send a byte now and then: no time limit of one read ends that
        with suppress(OSError):
            socket.socket.shutdown(connected, socket.SHUT_RDWR)

    timer = threading.Timer(max(end - time.monotonic(), 0.0), stop)
    timer.daemon = True
    timer.start()
    try:
        reply = _exchanged(connected, url, body, headers, max_bytes)
    except (OSError, HTTPException, ValueError) as error:
        # the socket's own limit may come first
        if not late.is_set() and not isinstance(error, TimeoutError):
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
    found = socket.create_connection(
        (url.hostname, url.port or (443 if secure else 80)), timeout=seconds
    )
    if secure:  # the handshake comes when the time is watched
        context = ssl.create_default_context()
        return context.wrap_socket(
            found, server_hostname=url.hostname, do_handshake_on_connect=False
        )
    return found


def _exchanged(
    connected: socket.socket, url: SplitResult, body: bytes, headers: dict[str, str], max_bytes: int
) -> Reply:
    if isinstance(connected, ssl.SSLSocket):
        try:
            connected.do_handshake()
        except ssl.SSLCertVerificationError as error:
            raise Unreached(
                f"{url.netloc} has no certificate that is trusted here: {error.verify_message}."
            ) from None
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


# The answer of a language model as the value that was asked for.


T = TypeVar("T")


def read_json_answer(content: str, type: type[T], asked_for: str) -> T:
    """Return an answer in JSON, which may stand after what a model thought and within a fence.

    Parameters
    ----------
    content
        The text of the answer.
    type
        What the JSON is decoded to.
    asked_for
        What the JSON holds, to end the sentence "The answer is not JSON with ...".

    Raises
    ------
    BadAnswer
        If the answer is anything else.

    Examples
    --------
    >>> read_json_answer('<think>a list?</think> [1, 2]', list[int], "numbers")
    [1, 2]
    """
    text = content.rpartition("</think>")[2].strip()
    if text.startswith("```"):
        text = text.partition("\n")[2].rpartition("```")[0]
    try:
        return msgspec.json.decode(text, type=type)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = clip(" ".join(str(error).split()), 120)
        raise BadAnswer(f"The answer is not JSON with {asked_for}: {why}.") from None


# Answers by what was asked: in memory, and in a folder if there is one.


class Answers:
    """What a model answered, each under the checksum of the whole request, which names the model."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._held: dict[str, str] = {}
        if folder is not None:
            with writing(str(folder)):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def get(self, request: bytes) -> str | None:
        """The answer that is kept; None without one, and for a file that holds something else."""
        name = _file_of(request)
        if name not in self._held and self.folder is not None:
            with suppress(DamagedLab, UnicodeDecodeError):
                self._held[name] = read_sealed(self.folder / name).decode()
        return self._held.get(name)

    def keep(self, request: bytes, answer: str) -> None:
        """Keep an answer; LabError where the disk refuses it."""
        name = _file_of(request)
        self._held[name] = answer
        if self.folder is not None:
            with writing(str(self.folder)):
                draft = self.folder / f"{name}.{uuid.uuid4().hex}"
                write_sealed(draft, answer.encode())
                draft.replace(self.folder / name)


def _file_of(request: bytes) -> str:
    return f"{hashlib.blake2b(request, digest_size=16).hexdigest()}.answer"


Otherwise = Literal["raise", "rules", "skip"]
"""What becomes of a message that a model does not read: an error, the rules read it, or it is left out."""

_ANSWER_TOKENS = 1_000
_BYTES_A_TOKEN = 4
_ROOM = ("max_completion_tokens", "max_tokens")
"""Options that say how long an answer may be."""

_BUSY = (429, 500, 502, 503, 504)
_FIRST_WAIT, _LONGEST_WAIT = 0.25, 10.0
"""Seconds before another try: doubled each time, or as the server asks, within the second of these."""


@dataclass(frozen=True)
class Usage:
    """What a model was asked: ``calls`` of its server, ``tokens`` that they took, and answers that were ``kept``."""

    calls: int = 0
    tokens: int = 0
    kept: int = 0

    def __sub__(self, before: Usage) -> Usage:
        """What was asked since an earlier usage of the same model."""
        return Usage(
            self.calls - before.calls, self.tokens - before.tokens, self.kept - before.kept
        )


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: Any = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: Any = None


class LanguageModel:
    """A model behind a server that speaks OpenAI's chat completions, here or elsewhere. Making one asks nothing.

    ``url`` is the address before ``/chat/completions``, ``name`` what the server calls the model. ``key`` is sent as a
    bearer token, over https or to this machine alone, and is shown nowhere. At most ``calls`` requests and ``tokens``
    are spent over the life of this object, prompts and answers together (None: any number): a request that might take
    more is not made, and raises OverBudget. Tokens are what the server counts, and at least an eighth of the bytes.

    An answer is kept, in memory and in the folder ``cache`` if one is given, under the checksum of the whole request:
    it costs nothing again. The folder holds what was answered, without secrets, as plain text: whoever purges a lab
    empties it too. An answer that is not whole after ``timeout`` seconds is none; a server that is busy, or a
    connection that breaks, is tried ``retries`` times more. ``options`` are further fields of the request; None takes
    one away (``{"temperature": None}``).

    Redirections are not followed and no proxy is used. The errors are ModelErrors: NoAnswer, BadAnswer, OverBudget.

    >>> LanguageModel("http://127.0.0.1:8080/v1", "qwen3-4b", tokens=50_000)
    <LanguageModel qwen3-4b at http://127.0.0.1:8080/v1, 0 calls, 0 of 50,000 tokens>
    """

    @checked
    def __init__(
        self,
        url: str,
        name: str,
        *,
        key: str | None = None,
        calls: Count | None = None,
        tokens: Count | None = 1_000_000,
        cache: str | Path | None = None,
        timeout: Annotated[float, Within(0, 3600, above=True)] = 60.0,
        retries: Annotated[int, Within(0, 10)] = 2,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.url, self.name = url.rstrip("/"), _name(name)
        self._post = _address(self.url)
        self._headers = {"Content-Type": "application/json", "User-Agent": f"memlab/{__version__}"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {_key(key, self._post)}"
        self._secret = key
        self._most_calls, self._most_tokens = calls, tokens
        self._timeout, self._retries = float(timeout), retries
        self._options = _options(options or {})
        self._room = max(
            (one for name in _ROOM if type(one := self._options.get(name)) is int),
            default=_ANSWER_TOKENS,
        )
        self._answers = Answers(None if cache is None else Path(cache))
        self._usage = Usage()
        self._lock = ThreadLock()

    @property
    def usage(self) -> Usage:
        """What was spent so far."""
        return self._usage

    @checked
    def ask(
        self,
        instructions: str,
        text: str,
        *,
        schema: Mapping[str, Any] | None = None,
        read: Callable[[str], Any] = str,
    ) -> Any:
        """What ``read`` makes of the model's answer to ``text`` under ``instructions``: its words, unless it is given.

        ``schema`` is the JSON schema that servers which know how hold the answer to. What ``read`` raises is not kept.
        Secrets in the answer are redacted before it is read. One question at a time: others wait.

        >>> model.ask("Answer in one word.", "Which colour has the sky?")                  # doctest: +SKIP
        'Blue'
        """
        said = [{"role": "system", "content": instructions}, {"role": "user", "content": text}]
        fields: dict[str, Any] = {
            "model": self.name,
            "messages": said,
            "temperature": 0,
            "max_tokens": _ANSWER_TOKENS,
        }
        if schema is not None:
            form = {"name": "answer", "strict": True, "schema": dict(schema)}
            fields["response_format"] = {"type": "json_schema", "json_schema": form}
        request = _request(fields, self._options)
        with self._lock:
            if (kept := self._answers.get(request)) is not None:
                with suppress(ModelError):  # it was read in another way then
                    found = read(kept)
                    self._usage = replace(self._usage, kept=self._usage.kept + 1)
                    return found
            answer = self._answered(request)
            found = read(answer)
            self._answers.keep(request, answer)
        return found

    def _answered(self, request: bytes) -> str:
        """The words of an answer, without secrets."""
        reply = self._replied(request)
        try:
            found = msgspec.json.decode(reply.body, type=_Completion)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._spend(tokens=_cost(request, reply.body, None))
            said = f"{self._post.netloc} does not answer as chat completions do"
            raise BadAnswer(f"{said}: {clip(str(error), 200)}.") from None
        self._spend(tokens=_cost(request, reply.body, found.usage))
        choice = found.choices[0] if found.choices else None
        if choice is None or not choice.message.content or not choice.message.content.strip():
            raise BadAnswer(f"The answer of {self.name} holds no words.")
        if choice.finish_reason == "length":
            raise BadAnswer(
                f'The answer of {self.name} is cut off: options={{"max_tokens": ...}} allows a longer one.'
            )
        return screen(self._without_key(choice.message.content)).text

    def _replied(self, request: bytes) -> Reply:
        """The reply of the server, asked again while it is busy or the connection breaks."""
        for left in range(self._retries, -1, -1):
            self._check_budget(request)
            self._spend(calls=1)
            wait = _FIRST_WAIT * 2 ** (self._retries - left)
            try:
                reply = posted(self._post, request, self._headers, self._timeout)
            except Broken as error:
                if not left:
                    raise NoAnswer(str(error)) from None
            else:
                if reply.status == 200:
                    return reply
                if reply.status not in _BUSY or not left:
                    raise NoAnswer(self._refused(reply))
                wait = max(wait, reply.wait)
            time.sleep(min(wait, _LONGEST_WAIT))
        raise AssertionError("the last try returns or raises")

    def _refused(self, reply: Reply) -> str:
        """What a server says that gives no answer, in few characters and without secrets."""
        said: object = reply.body.decode(errors="replace")
        with suppress(
            msgspec.DecodeError, UnicodeDecodeError, RecursionError, LookupError, TypeError
        ):
            said = msgspec.json.decode(reply.body)["error"]["message"]
        said = clip(screen(self._without_key(str(said))[:2_000]).text, 200) or "no word"
        moved = (
            " Redirections are not followed: give the address itself."
            if 300 <= reply.status < 400
            else ""
        )
        return (
            f"{self._post.netloc} answers {reply.status} for the model {self.name}: {said}.{moved}"
        )

    def _without_key(self, said: str) -> str:
        return said if self._secret is None else said.replace(self._secret, "[REDACTED: key]")

    def _check_budget(self, request: bytes) -> None:
        spent = self._usage
        if self._most_calls is not None and spent.calls >= self._most_calls:
            raise OverBudget(
                f"All {self._most_calls:,} calls of {self.name} are made. Give more: calls=."
            )
        if self._most_tokens is None:
            return
        may, left = _tokens(request) + self._room, max(self._most_tokens - spent.tokens, 0)
        if may > left:
            raise OverBudget(
                f"A call of {self.name} may take {may:,} tokens, and {left:,} of {self._most_tokens:,} are left. "
                "Give more: tokens=."
            )

    def _spend(self, *, calls: int = 0, tokens: int = 0) -> None:
        self._usage = replace(
            self._usage, calls=self._usage.calls + calls, tokens=self._usage.tokens + tokens
        )

    def __repr__(self) -> str:
        spent = [
            f"{count:,} {what}" if most is None else f"{count:,} of {most:,} {what}"
            for what, count, most in (
                ("calls", self._usage.calls, self._most_calls),
                ("tokens", self._usage.tokens, self._most_tokens),
            )
        ]
        return printable(f"<LanguageModel {self.name} at {self.url}, {', '.join(spent)}>")


def _tokens(data: bytes) -> int:
    return -(-len(data) // _BYTES_A_TOKEN)


def _cost(request: bytes, reply: bytes, usage: object) -> int:
    """The tokens of a call as the server counts them, if it does, but not fewer than it can have been."""
    estimate = _tokens(request + reply)
    counted = usage.get("total_tokens") if isinstance(usage, dict) else None
    return max(counted, estimate // 2) if type(counted) is int else estimate


def _options(options: Mapping[str, Any]) -> dict[str, Any]:
    for name in ("messages", "model", "stream"):
        if name in options:
            raise InputError(f"LanguageModel(options=...): {name} is none of the options.")
    try:
        msgspec.json.encode(options)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"LanguageModel(options=...): options are fields of a request in JSON: {error}."
        ) from None
    return dict(options)


def _request(fields: Mapping[str, Any], options: Mapping[str, Any]) -> bytes:
    whole = {name: value for name, value in {**fields, **options}.items() if value is not None}
    try:
        return msgspec.json.encode(whole, order="sorted")
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"LanguageModel.ask(schema=...): a schema is an object of JSON: {error}."
        ) from None


def _name(name: str) -> str:
    if not name.strip() or not name.isprintable() or len(name) > 200:
        raise InputError(
            f"LanguageModel(name=...): a name is a printable text of at most 200 characters, not {describe_value(name)}."
        )
    return name


def _address(url: str) -> SplitResult:
    """The address to which questions go. InputError for what is none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InputError(
            f"LanguageModel(url=...): {describe_value(url)} is no address: {error}."
        ) from None
    known = parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0
    if (
        not known
        or parts.query
        or parts.fragment
        or not url.isascii()
        or any(one <= " " for one in url)
    ):
        raise InputError(
            f"LanguageModel(url=...): an address is such as http://127.0.0.1:8080/v1, not {describe_value(url)}."
        )
    if parts.username is not None or parts.password is not None:
        raise InputError(
            "LanguageModel(url=...): an address holds no user and no password. Give a key: key=."
        )
    return parts._replace(path=f"{parts.path}/chat/completions")


def _key(key: str, url: SplitResult) -> str:
    if not key or not key.isascii() or not all(" " < one < "\x7f" for one in key):
        raise InputError("LanguageModel(key=...): a key is visible ASCII, without spaces.")
    if url.scheme != "https" and not is_loopback(url.hostname or ""):
        raise InputError(
            f"LanguageModel(key=...): a key goes over https or to this machine alone, not over http to {url.netloc}."
        )
    return key

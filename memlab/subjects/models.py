"""Language models behind the APIs of OpenAI and Anthropic, used within budgets.

Replies are untrusted: their size and duration are limited, and secrets in them are redacted. This
module knows neither labs nor what a prompt is for.
"""

from __future__ import annotations

import hashlib
import re
import socket
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
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
from memlab.subjects.model_apis import Api, find_api, find_refused, read_answer

# -- one request and its reply, within a number of bytes and of seconds


MAX_BYTES = 1 << 20
"""Maximum bytes of a reply; a longer one is refused."""


class Unreached(NoAnswer):
    """A failure to connect: the request was not sent."""


class Broken(NoAnswer):
    """A connection that ended before the reply was complete; a retry may succeed."""


class Refused(NoAnswer):
    """A request that the server does not accept: too long, or with fields it does not know."""


class Reply(NamedTuple):
    """A server's reply: status, body, and seconds to wait before a retry (0: none)."""

    status: int
    body: bytes
    wait: float


def post(
    url: SplitResult,
    body: bytes,
    headers: dict[str, str],
    seconds: float,
    *,
    max_bytes: int = MAX_BYTES,
) -> Reply:
    """Send a POST request without redirects or a proxy, and return the reply.

    Raises Unreached if no connection is made. Raises another NoAnswer if the reply is incomplete
    after ``seconds`` or longer than ``max_bytes``; the server may have processed the request then.
    """
    # A timer closes the socket, because the limit of a single read does not bound a slow reply.
    end = time.monotonic() + seconds
    host = url.netloc
    try:
        connection = _connect(url, seconds)
    except TimeoutError:
        raise Unreached(
            f"{host} cannot be reached within {seconds:g} s. Check the address, or raise the timeout."
        ) from None
    except OSError as error:
        raise Unreached(f"{host} cannot be reached: {error.strerror or error}.") from None
    expired = threading.Event()

    def stop() -> None:
        expired.set()
        # A server that sends a byte now and then never exceeds the limit of one read.
        with suppress(OSError):
            socket.socket.shutdown(connection, socket.SHUT_RDWR)

    timer = threading.Timer(max(end - time.monotonic(), 0.0), stop)
    timer.daemon = True
    timer.start()
    try:
        reply = _exchange(connection, url, body, headers, max_bytes)
    except (OSError, HTTPException, ValueError) as error:
        # The limit of the socket may expire before the timer.
        if not expired.is_set() and not isinstance(error, TimeoutError):
            raise Broken(f"The connection to {host} broke: {type(error).__name__}.") from None
    else:
        if not expired.is_set():
            return reply
    finally:
        timer.cancel()
        connection.close()
    raise NoAnswer(
        f"{host} has not completed its answer within {seconds:g} s. Try again, or raise the timeout."
    )


def _connect(url: SplitResult, seconds: float) -> socket.socket:
    """Return a socket connected to the server, before any TLS handshake."""
    assert url.hostname is not None
    secure = url.scheme == "https"
    plain = socket.create_connection(
        (url.hostname, url.port or (443 if secure else 80)), timeout=seconds
    )
    if secure:  # the handshake happens after the timer has started
        return ssl.create_default_context().wrap_socket(
            plain, server_hostname=url.hostname, do_handshake_on_connect=False
        )
    return plain


def _exchange(
    open_socket: socket.socket,
    url: SplitResult,
    body: bytes,
    headers: dict[str, str],
    max_bytes: int,
) -> Reply:
    """Send a POST request over a connected socket, and return the reply; raise NoAnswer beyond ``max_bytes``."""
    if isinstance(open_socket, ssl.SSLSocket):
        try:
            open_socket.do_handshake()
        except ssl.SSLCertVerificationError as error:
            raise Unreached(
                f"The certificate of {url.netloc} is not trusted: {error.verify_message}. Install its root certificate."
            ) from None
    assert url.hostname is not None
    connection = HTTPConnection(url.hostname, url.port)
    connection.sock = open_socket
    connection.request("POST", url.path, body, headers)
    with connection.getresponse() as response:
        content = response.read(max_bytes + 1)
        if len(content) > max_bytes:
            raise NoAnswer(
                f"{url.netloc} sends more than {max_bytes:,} bytes, so its answer was not read. Check the address."
            )
        if response.length:
            raise HTTPException("the connection ended before the reply was complete")
        return Reply(response.status, content, _read_wait(response))


def _read_wait(response: HTTPResponse) -> float:
    """Return the seconds that a server asks a client to wait; 0 without such a header or for a date."""
    try:
        return max(float(response.headers.get("Retry-After", "0")), 0.0)
    except ValueError:  # a date, which is too far away to wait for
        return 0.0


# -- answers as values


T = TypeVar("T")


def read_json_answer(content: str, type: type[T], asked_for: str) -> T:
    """Decode a model's JSON answer, even with text around it or trailing commas.

    Parameters
    ----------
    content
        The text of the answer.
    type
        The type of the decoded value.
    asked_for
        The content of the JSON, to end the sentence "The answer is not JSON with ...".

    Returns
    -------
    T
        The decoded value.

    Raises
    ------
    BadAnswer
        If the answer is not JSON of this type.

    Examples
    --------
    >>> read_json_answer('<think>a list?</think> [1, 2]', list[int], "numbers")
    [1, 2]
    >>> read_json_answer('Two numbers: [1, 2,]', list[int], "numbers")
    [1, 2]
    """
    text = content.rpartition("</think>")[2].strip()
    try:
        return msgspec.json.decode(text, type=type)
    except _NOT_JSON as error:
        why = clip(" ".join(str(error).split()), 120)
    if (fence := _FENCE.search(text)) is not None:
        text = text[fence.end() :].rpartition("```")[0] or text[fence.end() :]
    start = min((at for at in map(text.find, "[{") if at >= 0), default=0)
    stop = max(map(text.rfind, "]}")) + 1
    with suppress(*_NOT_JSON):
        text = _TRAILING.sub(lambda match: match[1] or "", text[start:stop])
        return msgspec.json.decode(text, type=type)
    raise BadAnswer(f"The answer is not JSON with {asked_for}: {why}.")


# The errors of a text that is not JSON, or not of the expected type.
_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

# The beginning of a code block, and a comma before a closing bracket. Strings are matched first,
# with or without their end, so that commas within them stay and the search takes linear time.
_FENCE = re.compile(r"^```\w*", re.MULTILINE)
_TRAILING = re.compile(r'("(?:[^"\\]|\\.)*+"?)|,(?=\s*+[\]}])', re.DOTALL)


# -- the cache of answers, by request: in memory, and in a folder if there is one


class Answers:
    """A cache of answers by the checksum of the whole request, which names the model."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._held: dict[str, str] = {}
        if folder is not None:
            with writing(str(folder)):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def get(self, request: bytes) -> str | None:
        """Return the stored answer, or None if the answer's file is missing or damaged."""
        name = _answer_file(request)
        if name not in self._held and self.folder is not None:
            with suppress(DamagedLab, UnicodeDecodeError):
                self._held[name] = read_sealed(self.folder / name).decode()
        return self._held.get(name)

    def keep(self, request: bytes, answer: str) -> None:
        """Store the answer to a request; raise LabError if the answer cannot be written."""
        name = _answer_file(request)
        self._held[name] = answer
        if self.folder is not None:
            with writing(str(self.folder)):
                draft = self.folder / f"{name}.{uuid.uuid4().hex}"
                write_sealed(draft, answer.encode())
                draft.replace(self.folder / name)


def _answer_file(request: bytes) -> str:
    """Return the name of the file that stores the answer to a request."""
    return f"{hashlib.blake2b(request, digest_size=16).hexdigest()}.answer"


Otherwise = Literal["raise", "rules", "skip"]
"""Handling of a message that the model fails to read: raise, use the rules, or skip it."""

# The bytes per token of English text, and the options of the APIs that limit an answer.
_BYTES_A_TOKEN = 4
_LENGTH_OPTIONS = ("max_completion_tokens", "max_tokens", "max_output_tokens")

# Statuses of HTTP after which a retry may succeed (529: Anthropic is overloaded), and those of a
# request that the server does not accept.
_BUSY = (429, 500, 502, 503, 504, 529)
_INVALID = (400, 413, 422)
# The bytes of an error that are read, which no error of a server needs.
_ERROR = 2_000
# Seconds before a retry: doubled each time, or as the server asks, up to the second value.
_FIRST_WAIT, _MAX_WAIT = 0.25, 10.0


@dataclass(frozen=True)
class Usage:
    """The calls and tokens that a language model has used so far.

    Attributes
    ----------
    calls
        The number of requests to the model's server.
    tokens
        The number of tokens of prompts and answers.
    kept
        The number of answers that came from the cache.

    Examples
    --------
    >>> Usage(calls=3, tokens=900) - Usage(calls=1, tokens=200)
    Usage(calls=2, tokens=700, kept=0)
    """

    calls: int = 0
    tokens: int = 0
    kept: int = 0

    def __sub__(self, before: Usage) -> Usage:
        """Return the usage since an earlier measurement."""
        return Usage(
            self.calls - before.calls, self.tokens - before.tokens, self.kept - before.kept
        )


class LanguageModel:
    """A model behind a server with an API of OpenAI or Anthropic, local or remote.

    Making one sends nothing. Answers are cached by the checksum of the whole request, so that a
    repeated request is free.

    Parameters
    ----------
    url
        The address of an API that ends with ``/chat/completions`` or ``/responses`` (OpenAI) or
        with ``/messages`` (Anthropic). To any other address, ``/chat/completions`` is added.
    name
        The server's name of the model.
    key
        A key of the API, sent over https or to this machine only, and displayed nowhere.
    calls
        The maximum number of requests of this object; None: no limit.
    tokens
        The maximum number of tokens of prompts and answers; None: no limit. The server's count is
        used, but at least an eighth of the bytes.
    cache
        A folder for answers, in plain text without secrets. Empty it when you purge a lab.
    timeout
        The seconds after which an incomplete answer is abandoned, at most 3600.
    retries
        The number of retries, 0 to 10, if the server is busy or the connection breaks.
    options
        Further fields of the request; None removes one (``{"temperature": None}``).
    concurrency
        The maximum number of requests that extraction sends at the same time, 1 to 64.
    batch
        The maximum number of messages that extraction puts into a request, 1 to 100. A small model
        may need fewer.

    Raises
    ------
    InputError
        If an argument is invalid.

    Notes
    -----
    A request that might exceed the budget is not sent and raises OverBudget. Redirections are not
    followed, and no proxy is used. All errors of requests are ModelErrors: NoAnswer, BadAnswer,
    OverBudget.

    A server may refuse a field that memlab sets: ``temperature``, ``max_tokens`` or a schema. This
    request and later ones are then sent without the field, or with the name that the server
    wants. Fields in ``options`` are never left out.

    Examples
    --------
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
        concurrency: Annotated[int, Within(1, 64)] = 4,
        batch: Annotated[int, Within(1, 100)] = 12,
    ) -> None:
        self.url, self.name = url.rstrip("/"), _check_name(name)
        self.concurrency, self.batch = concurrency, batch
        self._api, self._post = _parse_address(self.url)
        self._headers = {
            "Content-Type": "application/json",
            "User-Agent": f"memlab/{__version__}",
            "anthropic-version": "2023-06-01",  # required by Anthropic, ignored by others
        }
        if key is not None:
            self._headers |= self._api.sign(_check_key(key, self._post))
        self._secret = key
        self._max_calls, self._max_tokens = calls, tokens
        self._timeout, self._retries = float(timeout), retries
        self._options = _check_options(options or {})
        self._answers = Answers(None if cache is None else Path(cache))
        # The fields that the server refused, with their new names, or None to leave them out.
        self._refused: dict[str, str | None] = {}
        # Tokens are reserved while requests run, so that requests of several threads together stay
        # within the budget. The lock guards both counts, and is not held during a request.
        self._usage, self._reserved = Usage(), 0
        self._lock = ThreadLock()

    @property
    def usage(self) -> Usage:
        """The calls and tokens used so far."""
        return self._usage

    @checked
    def ask(
        self,
        instructions: str,
        text: str,
        *,
        schema: Mapping[str, Any] | None = None,
        read: Callable[[str], Any] = str,
        length: Count = 1_000,
    ) -> Any:
        """Return the model's answer to ``text`` under ``instructions``.

        Secrets in the answer are redacted. Several threads may ask at the same time.

        Parameters
        ----------
        instructions
            The system message.
        text
            The user message.
        schema
            A JSON schema for servers that enforce one.
        read
            A function from the text of the answer to the result. Answers for which it raises are
            not cached.
        length
            The maximum number of tokens of the answer, unless ``options`` sets it.

        Returns
        -------
        object
            The result of ``read``; by default the text of the answer.

        Raises
        ------
        NoAnswer
            If the server cannot be reached, is busy, or does not answer in time.
        BadAnswer
            If the answer is empty or cut off, or ``read`` refuses it.
        OverBudget
            If the request might exceed ``calls`` or ``tokens``.

        Examples
        --------
        A server is needed, so this example does not run:

        >>> model = LanguageModel("http://127.0.0.1:8080/v1", "qwen3-4b")
        >>> model.ask("Answer in one word.", "Which colour has the sky?")  # doctest: +SKIP
        'Blue'
        """
        fields = self._api.write(instructions, text, None if schema is None else dict(schema))
        fields |= {"model": self.name, "temperature": 0}
        if not any(name in self._options for name in _LENGTH_OPTIONS):
            fields[self._api.length] = length
        fields |= self._options
        request = _encode_request(fields)
        if (cached := self._answers.get(request)) is not None:
            with suppress(ModelError):  # a different `read` accepted the answer
                result = read(cached)
                self._spend(kept=1)
                return result
        lengths = [fields[name] for name in _LENGTH_OPTIONS if type(fields.get(name)) is int]
        with self._reserve(_estimate_tokens(request) + max(lengths, default=length)):
            answer = self._fetch_answer(fields)
        result = read(answer)
        self._answers.keep(request, answer)
        return result

    def _fetch_answer(self, fields: Mapping[str, Any]) -> str:
        """Request a new answer, and return its text with secrets redacted.

        Raises BadAnswer for an answer that is malformed, cut off or empty, and NoAnswer for a reported error.
        """
        request, reply = self._fetch_reply(fields)
        try:
            answer = read_answer(reply.body)
        except _NOT_JSON as error:
            self._spend(tokens=_count_tokens(request, reply.body, None))
            problem = f"{self._post.netloc} does not answer as {self._api.path} does"
            raise BadAnswer(f"{problem}: {clip(str(error), 200)}.") from None
        self._spend(tokens=_count_tokens(request, reply.body, answer.tokens))
        if answer.has_failed:  # gateways report errors of a model with status 200
            raise NoAnswer(self._describe_refusal(reply))
        if answer.is_cut_off:
            raise BadAnswer(
                f"The answer of {self.name} was cut off at its length limit. Raise the "
                f'limit: options={{"{self._name_field(self._api.length)}": ...}}.'
            )
        if not answer.text.strip():
            raise BadAnswer(f"The answer of {self.name} is empty.")
        return screen(self._remove_key(answer.text)).text

    def _fetch_reply(self, fields: Mapping[str, Any]) -> tuple[bytes, Reply]:
        """Send a request without fields that the server refuses, and retry if it is busy; return request and reply."""
        left = self._retries
        while True:  # each round leaves out another field, or uses one of the retries
            sent = {self._name_field(field): value for field, value in fields.items()}
            request = _encode_request({name: sent[name] for name in sent if name is not None})
            self._spend(calls=1)
            wait = _FIRST_WAIT * 2 ** (self._retries - left)
            try:
                reply = post(self._post, request, self._headers, self._timeout)
            except Broken as error:
                if not left:
                    raise NoAnswer(str(error)) from None
            else:
                if reply.status == 200:
                    return request, reply
                if reply.status in _INVALID and self._leave_out(sent, reply):
                    continue
                if reply.status not in _BUSY or not left:
                    refused = Refused if reply.status in _INVALID else NoAnswer
                    raise refused(self._describe_refusal(reply))
                wait = max(wait, reply.wait)
            left -= 1
            time.sleep(min(wait, _MAX_WAIT))

    def _name_field(self, field: str) -> str | None:
        """Return a field's name for this server, or None for a field that the server refuses."""
        return field if field in self._options else self._refused.get(field, field)

    def _leave_out(self, sent: Iterable[str | None], reply: Reply) -> bool:
        """Record the fields that a reply refuses, and return whether there are any."""
        own = [field for field in sent if field is not None and field not in self._options]
        refused = find_refused(own, reply.body.decode(errors="replace")[:_ERROR])
        self._refused |= refused
        return bool(refused)

    def _describe_refusal(self, reply: Reply) -> str:
        """Return a short message about an error reply, without secrets."""
        detail: object = reply.body.decode(errors="replace")
        with suppress(
            msgspec.DecodeError, UnicodeDecodeError, RecursionError, LookupError, TypeError
        ):
            detail = msgspec.json.decode(reply.body)["error"]["message"]
        detail = clip(screen(self._remove_key(str(detail))[:_ERROR]).text, 200) or "no details"
        advice = (
            " Redirections are not followed: give the final address."
            if 300 <= reply.status < 400
            else ""
        )
        return f"{self._post.netloc} answers {reply.status} for the model {self.name}: {detail}.{advice}"

    def _remove_key(self, text: str) -> str:
        """Return a text with the API key redacted."""
        return text if self._secret is None else text.replace(self._secret, "[REDACTED: key]")

    @contextmanager
    def _reserve(self, tokens: int) -> Iterator[None]:
        """Reserve tokens of the budget during a ``with`` block; raise OverBudget if too few are left."""
        with self._lock:
            if self._max_tokens is not None:
                left = max(self._max_tokens - self._usage.tokens - self._reserved, 0)
                if tokens > left:
                    raise OverBudget(
                        f"A call of {self.name} may take {tokens:,} tokens, and {left:,} of {self._max_tokens:,} are "
                        "left: raise tokens=."
                    )
            self._reserved += tokens
        try:
            yield
        finally:
            with self._lock:
                self._reserved -= tokens

    def _spend(self, *, calls: int = 0, tokens: int = 0, kept: int = 0) -> None:
        """Add calls, tokens and stored answers to the usage; raise OverBudget if no call is left."""
        with self._lock:
            used = self._usage
            if calls and self._max_calls is not None and used.calls >= self._max_calls:
                raise OverBudget(
                    f"All {self._max_calls:,} calls of {self.name} are used: raise calls=."
                )
            self._usage = Usage(used.calls + calls, used.tokens + tokens, used.kept + kept)

    def __repr__(self) -> str:
        spent = [
            f"{count:,} {unit}" if maximum is None else f"{count:,} of {maximum:,} {unit}"
            for unit, count, maximum in (
                ("calls", self._usage.calls, self._max_calls),
                ("tokens", self._usage.tokens, self._max_tokens),
            )
        ]
        return printable(f"<LanguageModel {self.name} at {self.url}, {', '.join(spent)}>")


def _estimate_tokens(data: bytes) -> int:
    """Return the estimated number of tokens in a request or reply."""
    return -(-len(data) // _BYTES_A_TOKEN)


def _count_tokens(request: bytes, reply: bytes, counted: int | None) -> int:
    """Return the server's token count of a call, but at least half of the estimate; without a count, the estimate."""
    estimate = _estimate_tokens(request + reply)
    return estimate if counted is None else max(counted, estimate // 2)


def _check_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return request options as a dict; raise InputError for a reserved or non-JSON option."""
    for name in ("messages", "model", "stream", "input", "instructions", "system"):
        if name in options:
            raise InputError(f"LanguageModel(options=...): {name} is set by memlab: leave it out.")
    try:
        msgspec.json.encode(options)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"LanguageModel(options=...): options must be JSON: {error}.") from None
    return dict(options)


def _encode_request(fields: Mapping[str, Any]) -> bytes:
    """Return a request as JSON without null fields, with sorted keys so that equal requests have equal bytes."""
    whole = {name: value for name, value in fields.items() if value is not None}
    try:
        return msgspec.json.encode(whole, order="sorted")
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"LanguageModel.ask(schema=...): a schema must be a JSON object: {error}."
        ) from None


def _check_name(name: str) -> str:
    """Return the name of a model; raise InputError for an invalid name."""
    if not name.strip() or not name.isprintable() or len(name) > 200:
        raise InputError(
            "LanguageModel(name=...): a name must be a printable text of at most 200 "
            f"characters, not {describe_value(name)}."
        )
    return name


def _parse_address(url: str) -> tuple[Api, SplitResult]:
    """Return the API and parts of an address; raise InputError for an invalid URL."""
    # Credentials, queries and fragments are refused, because the address appears in messages.
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InputError(
            f"LanguageModel(url=...): {describe_value(url)} is not an address: {error}."
        ) from None
    is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0
    if (
        not is_http
        or parts.query
        or parts.fragment
        or not url.isascii()
        or any(character <= " " for character in url)
    ):
        raise InputError(
            f"LanguageModel(url=...): give an address such as http://127.0.0.1:8080/v1, not {describe_value(url)}."
        )
    if parts.username is not None or parts.password is not None:
        raise InputError(
            "LanguageModel(url=...): an address must not contain a user or a password. Pass a secret as key=."
        )
    api, path = find_api(parts.path)
    return api, parts._replace(path=path)


def _check_key(key: str, url: SplitResult) -> str:
    """Return an API key; raise InputError for an invalid key or an unencrypted address."""
    if not key or not key.isascii() or not all(" " < character < "\x7f" for character in key):
        raise InputError(
            "LanguageModel(key=...): a key must be visible ASCII characters without spaces."
        )
    if url.scheme != "https" and not is_loopback(url.hostname or ""):
        raise InputError(
            f"LanguageModel(key=...): a key is sent over https or to this machine only, not over http to {url.netloc}."
        )
    return key

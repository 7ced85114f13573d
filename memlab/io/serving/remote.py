"""A lab that another process serves: the five tools of ``memlab serve LAB --http`` as verbs.

Each call is one request on a connection of its own, which is not sent twice. Nothing is kept between two calls, so a
server that comes back is found by the next one.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias, TypeVar, overload
from urllib.parse import SplitResult, urlsplit

import polars as pl
from pydantic import BaseModel, Field, ValidationError

from memlab.errors import InputError, LabUnavailable, MemlabError, ModelError, NotPermitted
from memlab.io.serving._desk import check_token, restore_error
from memlab.io.serving.forms import (
    LONGEST_REQUEST,
    ContextAnswer,
    ContextForm,
    FeedbackAnswer,
    FeedbackForm,
    ForgetAnswer,
    ForgetForm,
    Found,
    RecallAnswer,
    RecallForm,
    RememberAnswer,
    RememberForm,
    faults_of,
)
from memlab.kernel.base.arguments import get_item
from memlab.kernel.base.display import Displayed, clip, table
from memlab.kernel.base.printable import printable
from memlab.subjects.loopback import is_loopback
from memlab.subjects.models import Reply, Unreached, post

__all__ = ["RemoteHits", "RemoteLab"]

_LONGEST_ANSWER = 16 << 20
"""Bytes of an answer: every text stands in it twice, and a memory has at most 1 MB."""
_PROTOCOL = "2025-11-25"
"""The newest protocol whose requests need no handshake and no description of the client."""
_NUMBER = 1
"""The id of a request: each has a connection of its own."""

_A = TypeVar("_A", bound=BaseModel)
_Verb = TypeVar("_Verb", bound=Callable[..., Any])
_One: TypeAlias = int | Found | RememberAnswer
Memories: TypeAlias = _One | Iterable[_One]
"""Memories by id, or as a recall and ``remember`` return them; one or several."""


class _Text(BaseModel):
    text: str = ""


class _Result(BaseModel):
    content: tuple[_Text, ...] = ()
    structured: dict[str, Any] | None = Field(None, alias="structuredContent")
    refused: bool = Field(False, alias="isError")
    beside: dict[str, Any] | None = Field(None, alias="_meta")


class _Fault(BaseModel):
    message: str


class _Message(BaseModel):
    """An answer of JSON-RPC: a result, or a fault of the server."""

    jsonrpc: Literal["2.0"]
    id: Literal[1]
    result: _Result | None = None
    error: _Fault | None = None


@dataclass(frozen=True, repr=False)
class RemoteHits(Sequence[Found], Displayed):
    """The hits of a recall over a connection, best first: a sequence with a length, to index and to slice.

    A hit has id, text, kind, created, score, status, ref, project, speaker, tags and probe.

    Attributes
    ----------
    query
        What was asked.
    answer
        The answer of the tool as it came, checked.
    """

    query: str
    answer: RecallAnswer

    @property
    def recall(self) -> int | None:
        """The number of the logged recall, for ``feedback``; None where it was not logged."""
        return self.answer.recall

    @property
    def known(self) -> float | None:
        """The probability that these memories contain the answer; None where the pack does not say."""
        return self.answer.known

    @property
    def off(self) -> str | None:
        """Why memory is switched off, so that nothing is shown or logged; None where it is on."""
        return self.answer.off

    @property
    def repeated(self) -> tuple[int, ...]:
        """The ids of memories that the session was given before; ``again=True`` shows them."""
        return self.answer.given_before

    @property
    def ids(self) -> tuple[int, ...]:
        """The memories that were shown, best first."""
        return tuple(hit.id for hit in self)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """A row for each hit, best first: rank, memory_id, score, and the other fields of a hit."""
        schema: dict[str, Any] = dict.fromkeys(Found.model_fields, pl.String)
        schema |= {
            "id": pl.Int64,
            "score": pl.Float64,
            "tags": pl.List(pl.String),
            "probe": pl.Boolean,
        }
        rows = pl.DataFrame([hit.model_dump() for hit in self], schema=schema)
        rows = (
            rows.rename({"id": "memory_id"})
            .with_row_index("rank", 1)
            .with_columns(pl.col("rank").cast(pl.Int64))
        )
        return rows.select("rank", "memory_id", "score", pl.exclude("rank", "memory_id", "score"))

    def __len__(self) -> int:
        return len(self.answer.memories)

    @overload
    def __getitem__(self, index: int) -> Found: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Found]: ...
    def __getitem__(self, index: int | slice) -> Found | Sequence[Found]:
        return (
            self.answer.memories[index]
            if isinstance(index, slice)
            else get_item(self.answer.memories, index, "hit")
        )

    def __iter__(self) -> Iterator[Found]:
        return iter(self.answer.memories)

    @property
    def _caption(self) -> str:
        number = "not logged" if self.recall is None else f"recall {self.recall}"
        return f"{len(self)} memories for {clip(self.query, 70)!r}, {number}{f'; {self.off}' if self.off else ''}"

    def __repr__(self) -> str:
        lines = [f"{hit.score:7.4f}  #{hit.id:<6} {clip(hit.text, 84)}" for hit in self]
        return printable("\n".join([self._caption, *lines]))

    def _display(self) -> object:
        rows = [(f"{hit.score:.4f}", hit.id, hit.text, hit.kind) for hit in self]
        return table(self._caption, ("score", "id", "memory", "kind"), rows)


def _takes(form: type[BaseModel]) -> Callable[[_Verb], _Verb]:
    """Give a verb the arguments of its tool, for help and completion: the form alone lists them."""

    def signed(verb: _Verb) -> _Verb:
        own = inspect.signature(verb, eval_str=False)
        named = [
            one for one in own.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        others = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=one.annotation
            )
            for name, one in form.model_fields.items()
            if name not in own.parameters
        ]
        verb.__signature__ = own.replace(parameters=[*named, *others])  # type: ignore[attr-defined]
        return verb

    return signed


@dataclass(frozen=True, repr=False)
class RemoteLab:
    """A lab behind a server of ``memlab serve LAB --http``; ``memlab.io.serving.connect`` makes it.

    The token decides who asks and writes, in which project and in which role: no argument changes that. Every verb
    raises ``LabUnavailable`` where the server gives no answer, ``NotPermitted`` where it refuses the token, and
    otherwise the error that a local lab raises. The arguments of every verb are in
    docs/reference/serving.md#arguments.

    Attributes
    ----------
    url
        The address of the server.
    timeout
        Seconds within which an answer is complete.
    """

    url: str
    timeout: float
    _to: SplitResult = field(compare=False)
    _token: str = field(compare=False)

    @classmethod
    def at(cls, url: str, token: str, timeout: float, *, insecure: bool) -> RemoteLab:
        """Return the lab behind an address that was checked; nothing is sent."""
        check_token(token, "token")
        to = _split(url, insecure=insecure)
        return cls(to.geturl(), timeout, to, token)

    def __repr__(self) -> str:
        return printable(f"<RemoteLab {self.url}>")

    @_takes(RememberForm)
    def remember(self, text: str, **options: Any) -> RememberAnswer:
        """Remember a text.

        Parameters
        ----------
        text
            One statement that needs no context.
        **options
            Other arguments of the tool ``remember``, such as ``kind``, ``tags``, ``project`` and ``replaces``.
        """
        return self._call("remember", RememberForm, RememberAnswer, {"text": text, **options})

    @_takes(RecallForm)
    def recall(self, query: str, **options: Any) -> RemoteHits:
        """Recall what answers a query.

        Parameters
        ----------
        query
            What is asked.
        **options
            Other arguments of the tool ``recall``: ``limit``, ``project``, ``session``, ``again``.
        """
        return RemoteHits(
            query, self._call("recall", RecallForm, RecallAnswer, {"query": query, **options})
        )

    @_takes(FeedbackForm)
    def feedback(
        self, memories: Memories = (), outcome: str | None = None, **options: Any
    ) -> FeedbackAnswer:
        """Record feedback on memories, or on an answer that was made of a recall.

        Parameters
        ----------
        memories
            Ids or hits. Default: all that the recall showed.
        outcome
            "success" or "fail".
        **options
            Other arguments of the tool ``feedback``: ``recall``, ``answer``, ``reply``.
        """
        given = {"memories": _ids(memories), "outcome": outcome, **options}
        return self._call("feedback", FeedbackForm, FeedbackAnswer, given)

    def forget(self, memories: Memories) -> ForgetAnswer:
        """Take memories out of use; ``memlab restore`` on the server's machine restores them.

        Parameters
        ----------
        memories
            Ids or hits.
        """
        return self._call("forget", ForgetForm, ForgetAnswer, {"memories": _ids(memories)})

    @_takes(ContextForm)
    def context(self, task: str, **options: Any) -> ContextAnswer:
        """Build a prompt context for a task within a token budget.

        Parameters
        ----------
        task
            The task in a sentence or two.
        **options
            Other arguments of the tool ``context``: ``budget``, ``files``, ``project``, ``session``.
        """
        return self._call("context", ContextForm, ContextAnswer, {"task": task, **options})

    def _call(
        self, tool: str, form: type[BaseModel], answer: type[_A], given: dict[str, Any]
    ) -> _A:
        try:
            arguments = form.model_validate(given).model_dump(
                mode="json", exclude_unset=True, exclude_none=True
            )
        except ValidationError as error:
            raise InputError(f"{tool}: {faults_of(error, form)}") from None
        asked = {"name": tool, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": _NUMBER, "method": "tools/call", "params": asked}
        try:
            body = json.dumps(message, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = error.object[error.start]
            raise InputError(
                f"{tool}: a text holds half of a character ({half!a}), which no text can."
            ) from None
        if len(body) > LONGEST_REQUEST:
            raise InputError(
                f"{tool}: the request has {len(body):,} bytes; the server takes {LONGEST_REQUEST:,}."
            )
        result = self._result(self._post(body), tool)
        try:
            return answer.model_validate(result.structured)
        except ValidationError:
            raise self._no_answer(f"what it answers is no answer of {tool}", sent=True) from None

    def _post(self, body: bytes) -> Reply:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": _PROTOCOL,
        }
        try:
            return post(self._to, body, headers, self.timeout, max_bytes=_LONGEST_ANSWER)
        except ModelError as error:
            raise self._no_answer(str(error), sent=not isinstance(error, Unreached)) from None

    def _result(self, reply: Reply, tool: str) -> _Result:
        """Return the result of a tool that did its work; otherwise raise the error that the reply stands for."""
        if reply.status in (401, 403):
            raise NotPermitted(
                f"{self.url} refuses the token (status {reply.status}). Nothing was done: check the token."
            )
        if reply.status != 200:
            raise self._no_answer(
                _meaning(reply.status), sent=reply.status < 300 or reply.status >= 500
            )
        try:
            message = _Message.model_validate_json(reply.body)
        except ValidationError:
            raise self._no_answer(
                "what it sends is no message of memlab serve", sent=True
            ) from None
        if message.error is not None:
            why = clip(message.error.message, 300)
            raise MemlabError(
                f"{tool}: the server at {self.url} failed, maybe after writing: {why}"
            )
        if message.result is None:
            raise self._no_answer("its message has no result", sent=True)
        if message.result.refused:
            text = (
                " ".join(one.text for one in message.result.content)
                or f"{tool}: refused without a reason"
            )
            raise restore_error(message.result.beside, text)
        return message.result

    def _no_answer(self, why: str, *, sent: bool) -> LabUnavailable:
        return LabUnavailable.behind(self.url, why, sent=sent)


def _split(url: str, *, insecure: bool) -> SplitResult:
    """Return the parts of an address that a token may be sent to; InputError for another."""
    wanted = "An address is such as http://127.0.0.1:8765/mcp, as memlab serve prints it"
    try:
        to = urlsplit(url)
        host, port = to.hostname, to.port
    except ValueError as error:
        raise InputError(f"{wanted}: {error}.") from None
    if to.scheme not in ("http", "https") or not host:
        raise InputError(f"{wanted}, with http or https and a host.")
    if "@" in to.netloc or to.query or to.fragment:
        raise InputError(f"{wanted}: without a name, a password, a query or a fragment.")
    if not url.isascii() or not url.isprintable() or " " in url or port == 0:
        raise InputError(f"{wanted}: of ASCII without spaces, and with a port from 1.")
    if to.scheme == "http" and not is_loopback(host) and not insecure:
        raise InputError(
            f"Over plain http anybody on the way to {host} can read the token and the memories. Use https, or a tunnel "
            "to this machine such as SSH's; insecure=True sends them all the same."
        )
    return to._replace(path=to.path if to.path.strip("/") else "/mcp")


def _meaning(status: int) -> str:
    known = {
        404: "there is no server of memlab under this path",
        413: "the request is too large for it",
        421: "it is addressed by another name or port than its own; a tunnel needs the same port at both ends",
    }
    redirected = (
        "it redirects, and a token is not sent elsewhere" if 300 <= status < 400 else "it failed"
    )
    return f"status {status}: {known.get(status, redirected)}"


def _ids(memories: Memories) -> list[Any]:
    several = isinstance(memories, Iterable) and not isinstance(memories, BaseModel | str)
    return [getattr(one, "id", one) for one in (memories if several else (memories,))]  # type: ignore[union-attr]

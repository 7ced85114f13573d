"""Labs that another process serves, with the tools of the server as methods.

Each call is one HTTP request on its own connection and is never sent twice. No state is kept between calls, so the next
call reaches a server that was restarted.
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
from memlab.io.serving._connection import check_token, count_memories, restore_error
from memlab.io.serving.forms import (
    LONGEST_REQUEST,
    AboutAnswer,
    AboutForm,
    ContextAnswer,
    ContextForm,
    FeedbackAnswer,
    FeedbackForm,
    ForgetAnswer,
    ForgetForm,
    MemoryAnswer,
    RecallAnswer,
    RecallForm,
    RememberAnswer,
    RememberForm,
    describe_faults,
)
from memlab.kernel.base.arguments import checked, get_item
from memlab.kernel.base.clock import INSTANT
from memlab.kernel.base.display import Displayed, clip, table
from memlab.kernel.base.printable import printable
from memlab.kernel.recall import WEAK
from memlab.subjects.loopback import is_loopback
from memlab.subjects.models import Reply, Unreached, post

# Bytes of an answer: it contains every text twice, and a memory has at most 1 MB.
_MAX_ANSWER_BYTES = 16 << 20
# The newest protocol whose requests need neither a handshake nor a description of the client.
_PROTOCOL = "2025-11-25"
# The id of every request, because each has its own connection.
_REQUEST_ID = 1

_A = TypeVar("_A", bound=BaseModel)
_Verb = TypeVar("_Verb", bound=Callable[..., Any])
_MemoryLike: TypeAlias = int | MemoryAnswer | RememberAnswer
Memories: TypeAlias = _MemoryLike | Iterable[_MemoryLike]
"""One or several memories: ids, hits of ``recall``, or answers of ``remember``."""


class _Text(BaseModel):
    """A text in the result of a tool call."""

    text: str = ""


class _Result(BaseModel):
    """The result of a tool call: texts, data, and whether the call was refused."""

    content: tuple[_Text, ...] = ()
    structured: dict[str, Any] | None = Field(None, alias="structuredContent")
    refused: bool = Field(False, alias="isError")
    metadata: dict[str, Any] | None = Field(None, alias="_meta")


class _Fault(BaseModel):
    """An error of the JSON-RPC protocol, in contrast to the refusal of a tool."""

    message: str


class _Message(BaseModel):
    """A JSON-RPC response: a result, or an error of the server."""

    jsonrpc: Literal["2.0"]
    id: Literal[1]
    result: _Result | None = None
    error: _Fault | None = None


@dataclass(frozen=True, repr=False)
class RemoteHits(Sequence[MemoryAnswer], Displayed):
    """The results of a recall on a remote lab, best first.

    They are a sequence that can be indexed and sliced. A hit has the attributes id, text, kind, created, score, status,
    ref, project, speaker, tags and probe.

    Parameters
    ----------
    query
        The text of the query.
    answer
        The validated answer of the tool.

    Examples
    --------
    >>> hits = RemoteHits("tea?", RecallAnswer(recall=7, memories=()))
    >>> hits
    0 memories for 'tea?', recall 7
    """

    query: str
    answer: RecallAnswer

    @property
    def recall(self) -> int | None:
        """The number of the logged recall, for ``feedback``; None if not logged."""
        return self.answer.recall

    @property
    def known(self) -> float | None:
        """The probability that these memories contain the answer, or None."""
        return self.answer.known

    @property
    def weak(self) -> bool:
        """Whether memory probably has no answer; see ``lab.recall(...).weak``."""
        return self.answer.weak

    @property
    def confidence(self) -> str:
        """The probability of an answer as a phrase, or the reason why it is unknown."""
        return self.answer.confidence

    @property
    def off(self) -> str | None:
        """Why memory is switched off and the recall empty, or None if memory is on."""
        return self.answer.off

    @property
    def repeated(self) -> tuple[int, ...]:
        """Ids of memories omitted because the session already returned them."""
        return self.answer.given_before

    @property
    def ids(self) -> tuple[int, ...]:
        """Ids of the memories, best first."""
        return tuple(hit.id for hit in self)

    @property
    def probes(self) -> tuple[int, ...]:
        """Ids of the exploration items among the memories, which were drawn at random."""
        return tuple(hit.id for hit in self if hit.probe)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """One row per hit, best first: rank, memory_id, score and other attributes."""
        schema: dict[str, Any] = dict.fromkeys(MemoryAnswer.model_fields, pl.String)
        schema |= {
            "id": pl.Int64,
            "created": INSTANT,
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
    def __getitem__(self, index: int) -> MemoryAnswer: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[MemoryAnswer]: ...
    def __getitem__(self, index: int | slice) -> MemoryAnswer | Sequence[MemoryAnswer]:
        return (
            self.answer.memories[index]
            if isinstance(index, slice)
            else get_item(self.answer.memories, index, "hit")
        )

    def __iter__(self) -> Iterator[MemoryAnswer]:
        return iter(self.answer.memories)

    @property
    def _caption(self) -> str:
        """The heading of the table of hits."""
        number = "not logged" if self.recall is None else f"recall {self.recall}"
        notes = [self.off or "", f"weak: {WEAK}" * self.weak]
        text = f"{count_memories(len(self))} for {clip(self.query, 70)!r}, {number}"
        return "; ".join([text, *filter(None, notes)])

    def __repr__(self) -> str:
        lines = [f"{hit.score:7.4f}  #{hit.id:<6} {clip(hit.text, 84)}" for hit in self]
        return printable("\n".join([self._caption, *lines]))

    def _display(self) -> object:
        """Return the table that a notebook shows."""
        rows = [(f"{hit.score:.4f}", hit.id, hit.text, hit.kind) for hit in self]
        return table(self._caption, ("score", "id", "memory", "kind"), rows)


def _add_options(form: type[BaseModel]) -> Callable[[_Verb], _Verb]:
    """Return a decorator that adds the arguments of a tool to a method's signature.

    Help and completion show them; the method itself declares ``**options``, so that the form alone lists them.
    """

    def decorate(verb: _Verb) -> _Verb:
        """Give a method a signature that lists the tool's arguments."""
        signature = inspect.signature(verb, eval_str=False)
        explicit = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        options = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=field.annotation,
            )
            for name, field in form.model_fields.items()
            if name not in signature.parameters
        ]
        verb.__signature__ = signature.replace(parameters=[*explicit, *options])  # type: ignore[attr-defined]
        return verb

    return decorate


@dataclass(frozen=True, repr=False)
class RemoteLab:
    """A client of a lab that ``memlab serve LAB --http`` serves in another process.

    ``memlab.io.serving.connect`` returns it. The token determines viewer, project and role. Every method raises
    ``LabUnavailable`` if the server does not answer, ``NotPermitted`` if it refuses the token, and otherwise the
    errors of a local lab. All arguments are listed in docs/reference/serving.md#arguments.

    Parameters
    ----------
    url
        The address of the server.
    timeout
        Maximum seconds until an answer is complete.

    Examples
    --------
    >>> from memlab.io.serving import connect
    >>> connect("http://127.0.0.1:8765", token="at-least-16-characters").url
    'http://127.0.0.1:8765/mcp'
    """

    url: str
    timeout: float
    _to: SplitResult = field(compare=False)
    _token: str = field(compare=False)

    @classmethod
    def _at(cls, url: str, token: str, timeout: float, *, insecure: bool) -> RemoteLab:
        """Return the lab at a valid address, without sending a request."""
        check_token(token, "token")
        to = _split(url, insecure=insecure)
        return cls(to.geturl(), timeout, to, token)

    def __repr__(self) -> str:
        return printable(f"<RemoteLab {self.url}>")

    @_add_options(RememberForm)
    @checked
    def remember(self, text: str, **options: Any) -> RememberAnswer:
        """Store a text as a memory.

        Parameters
        ----------
        text
            One statement in full sentences, clear without context.
        **options
            Other arguments of the tool ``remember``, such as ``kind``, ``tags``, ``project``,
            ``replaces`` and ``transcript``.

        Returns
        -------
        RememberAnswer
            Id and outcome, superseded memories and types of redacted secrets.

        Raises
        ------
        LabUnavailable
            If the server does not answer.

        Examples
        --------
        >>> lab.remember("The user prefers tabs", kind="preference").id  # doctest: +SKIP
        1
        """
        return self._call("remember", RememberForm, RememberAnswer, {"text": text, **options})

    @_add_options(RecallForm)
    @checked
    def recall(self, query: str, **options: Any) -> RemoteHits:
        """Retrieve the memories that answer a query best.

        Parameters
        ----------
        query
            The query, a text.
        **options
            Other arguments of the tool ``recall``: ``limit``, ``project``, ``session``, ``again``.

        Returns
        -------
        RemoteHits
            The memories, best first.

        Raises
        ------
        LabUnavailable
            If the server does not answer.

        Examples
        --------
        >>> lab.recall("tabs or spaces?")[0].text  # doctest: +SKIP
        'The user prefers tabs'
        """
        return RemoteHits(
            query, self._call("recall", RecallForm, RecallAnswer, {"query": query, **options})
        )

    @_add_options(FeedbackForm)
    @checked
    def feedback(
        self, memories: Memories = (), outcome: str | None = None, **options: Any
    ) -> FeedbackAnswer:
        """Record feedback on memories, or on an answer that used the results of a recall.

        Parameters
        ----------
        memories
            Ids or hits. Default: all results of the recall.
        outcome
            "success" or "fail".
        **options
            Other arguments of the tool ``feedback``: ``recall``, ``answer``, ``reply``.

        Returns
        -------
        FeedbackAnswer
            The logged judgements and rewards.

        Raises
        ------
        LabUnavailable
            If the server does not answer.

        Examples
        --------
        >>> lab.feedback(hits[0], "success").judged[0].memory  # doctest: +SKIP
        1
        """
        arguments = {"memories": _ids_of(memories), "outcome": outcome, **options}
        return self._call("feedback", FeedbackForm, FeedbackAnswer, arguments)

    @checked
    def forget(self, memories: Memories) -> ForgetAnswer:
        """Exclude memories from recall.

        ``memlab restore`` on the server's machine restores them.

        Parameters
        ----------
        memories
            Ids or hits.

        Returns
        -------
        ForgetAnswer
            Ids of the forgotten memories, and of memories that were not in use.

        Raises
        ------
        LabUnavailable
            If the server does not answer.

        Examples
        --------
        >>> lab.forget([1, 4]).forgotten  # doctest: +SKIP
        (1, 4)
        """
        return self._call("forget", ForgetForm, ForgetAnswer, {"memories": _ids_of(memories)})

    @_add_options(ContextForm)
    @checked
    def context(self, task: str, **options: Any) -> ContextAnswer:
        """Build a prompt context for a task within a token budget.

        Parameters
        ----------
        task
            The task in a sentence or two.
        **options
            Other arguments of the tool ``context``: ``budget``, ``files``, ``project``, ``session``.

        Returns
        -------
        ContextAnswer
            Text for a prompt, with the number of tokens and the included memories.

        Raises
        ------
        LabUnavailable
            If the server does not answer.

        Examples
        --------
        >>> lab.context("fix the token refresh", budget=500).tokens  # doctest: +SKIP
        148
        """
        return self._call("context", ContextForm, ContextAnswer, {"task": task, **options})

    @_add_options(AboutForm)
    @checked
    def about(self, subject: str | None = None, **options: Any) -> AboutAnswer:
        """List the memories about a subject, or all subjects.

        Parameters
        ----------
        subject
            Subject, or "user" for the user. Default: list all subjects.
        **options
            Other arguments of the tool ``about``: ``project``.

        Returns
        -------
        AboutAnswer
            Current facts as prose and the newest memories, or the subjects with their numbers of memories.

        Raises
        ------
        LabUnavailable
            If the server does not answer.

        Examples
        --------
        >>> lab.about("user").memories[0].text  # doctest: +SKIP
        'The user prefers tabs'
        """
        return self._call("about", AboutForm, AboutAnswer, {"subject": subject, **options})

    def _call(
        self, tool: str, form: type[BaseModel], answer: type[_A], options: dict[str, Any]
    ) -> _A:
        """Call a tool and return its validated answer, or raise the server's error."""
        try:
            arguments = form.model_validate(options).model_dump(
                mode="json", exclude_unset=True, exclude_none=True
            )
        except ValidationError as error:
            raise InputError(f"{tool}: {describe_faults(error, form)}") from None
        params = {"name": tool, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": _REQUEST_ID, "method": "tools/call", "params": params}
        try:
            body = json.dumps(message, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            surrogate = error.object[error.start]
            raise InputError(
                f"{tool}: a text contains a lone surrogate ({surrogate!a}). Decode its source as UTF-8."
            ) from None
        if len(body) > LONGEST_REQUEST:
            raise InputError(
                f"{tool}: the request has {len(body):,} bytes; the maximum is {LONGEST_REQUEST:,}. Shorten the text."
            )
        result = self._parse_result(self._post(body), tool)
        try:
            return answer.model_validate(result.structured)
        except ValidationError:
            raise self._unavailable(
                f"its answer does not match the output schema of the tool {tool}", sent=True
            ) from None

    def _post(self, body: bytes) -> Reply:
        """Send a request body to the server, and return the reply; raise LabUnavailable without a reply."""
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": _PROTOCOL,
        }
        try:
            return post(self._to, body, headers, self.timeout, max_bytes=_MAX_ANSWER_BYTES)
        except ModelError as error:
            raise self._unavailable(str(error), sent=not isinstance(error, Unreached)) from None

    def _parse_result(self, reply: Reply, tool: str) -> _Result:
        """Return the result of a successful call, or raise the error in a failed reply."""
        if reply.status in (401, 403):
            raise NotPermitted(
                f"{self.url} refuses the token (status {reply.status}), so nothing was done. Check the token."
            )
        if reply.status != 200:
            raise self._unavailable(
                _describe_status(reply.status), sent=reply.status < 300 or reply.status >= 500
            )
        try:
            message = _Message.model_validate_json(reply.body)
        except ValidationError:
            raise self._unavailable(
                "its answer is not a message of memlab serve", sent=True
            ) from None
        if message.error is not None:
            why = clip(message.error.message, 300)
            raise MemlabError(
                f"{tool}: the server at {self.url} failed, possibly after it wrote to the lab: {why}"
            )
        if message.result is None:
            raise self._unavailable("its JSON-RPC message has no result", sent=True)
        if message.result.refused:
            text = (
                " ".join(part.text for part in message.result.content)
                or f"{tool}: the server refused the call without a reason"
            )
            raise restore_error(message.result.metadata, text)
        return message.result

    def _unavailable(self, why: str, *, sent: bool) -> LabUnavailable:
        """Return the error for a request without a usable answer; ``sent`` means that the server may have executed it."""
        return LabUnavailable.behind(self.url, why, sent=sent)


def _split(url: str, *, insecure: bool) -> SplitResult:
    """Return the parts of a server's address; raise InputError for an invalid or unsafe address."""
    expected = "An address has the form http://127.0.0.1:8765/mcp, as memlab serve prints it"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InputError(f"{expected}: {error}.") from None
    if parts.scheme not in ("http", "https") or not host:
        raise InputError(f"{expected}, with http or https and a host.")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InputError(f"{expected}, without a name, a password, a query or a fragment.")
    if not url.isascii() or not url.isprintable() or " " in url or port == 0:
        raise InputError(f"{expected}, in ASCII without spaces, and with a port of at least 1.")
    if parts.scheme == "http" and not is_loopback(host) and not insecure:
        raise InputError(
            f"Plain http to {host} would expose the token and the memories to the network. "
            "Use https, or a tunnel to this machine such as SSH's. insecure=True uses plain http anyway."
        )
    return parts._replace(path=parts.path if parts.path.strip("/") else "/mcp")


def _describe_status(status: int) -> str:
    """Describe the meaning of an HTTP status other than 200 for a call."""
    reasons = {
        404: "there is no memlab server under this path",
        413: "the request is too large for it",
        421: "it was addressed by another name or port; a tunnel needs the same port at both ends",
    }
    default = (
        "it redirects, and a token is not sent elsewhere" if 300 <= status < 400 else "it failed"
    )
    return f"status {status}: {reasons.get(status, default)}"


def _ids_of(memories: Memories) -> list[Any]:
    """Return the ids of one or several memories, without checks."""
    several = isinstance(memories, Iterable) and not isinstance(memories, BaseModel | str)
    return [getattr(item, "id", item) for item in (memories if several else (memories,))]  # type: ignore[union-attr]

"""Requests and replies of three APIs for language models: two of OpenAI and one of Anthropic.

An API is named by the end of its address. Servers and gateways of other makers offer the same
three. This module sends nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

Fields = dict[str, Any]


class Api(NamedTuple):
    """One API: the end of its address, and how a request is written.

    ``length`` names the field that limits an answer. ``write`` returns the fields of a prompt, from
    instructions, a text, and a JSON schema or None. ``sign`` returns the headers of a key.
    """

    path: str
    length: str
    write: Callable[[str, str, Fields | None], Fields]
    sign: Callable[[str], dict[str, str]]


def _write_chat(instructions: str, text: str, schema: Fields | None) -> Fields:
    """Return the request fields of OpenAI's Chat Completions API."""
    system = {"role": "system", "content": instructions}
    fields: Fields = {"messages": [system, {"role": "user", "content": text}]}
    if schema is not None:
        form = {"name": "answer", "strict": True, "schema": schema}
        fields["response_format"] = {"type": "json_schema", "json_schema": form}
    return fields


def _write_responses(instructions: str, text: str, schema: Fields | None) -> Fields:
    """Return the request fields of OpenAI's Responses API, with storage turned off."""
    fields: Fields = {"instructions": instructions, "input": text, "store": False}
    if schema is not None:
        form = {"type": "json_schema", "name": "answer", "strict": True, "schema": schema}
        fields["text"] = {"format": form}
    return fields


def _write_messages(instructions: str, text: str, schema: Fields | None) -> Fields:
    """Return the request fields of Anthropic's Messages API."""
    fields: Fields = {"system": instructions, "messages": [{"role": "user", "content": text}]}
    if schema is not None:
        fields["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    return fields


def _sign_bearer(key: str) -> dict[str, str]:
    """Return the header that carries a key as a bearer token."""
    return {"Authorization": f"Bearer {key}"}


def _sign_anthropic(key: str) -> dict[str, str]:
    """Return the header that carries a key for Anthropic's API."""
    return {"x-api-key": key}


# Chat completions are the default, because most servers and gateways have this API.
_CHAT = Api("/chat/completions", "max_tokens", _write_chat, _sign_bearer)
# The APIs that an address may name by its end.
_APIS = (
    _CHAT,
    Api("/responses", "max_output_tokens", _write_responses, _sign_bearer),
    Api("/messages", "max_tokens", _write_messages, _sign_anthropic),
)


def find_api(path: str) -> tuple[Api, str]:
    """Return the API that an address ends with, and the path for requests.

    >>> find_api("/v1/messages")[1], find_api("/v1")[1]
    ('/v1/messages', '/v1/chat/completions')
    """
    api = next((api for api in _APIS if path.endswith(api.path)), None)
    return (_CHAT, f"{path}{_CHAT.path}") if api is None else (api, path)


# The fields that some models refuse, with a pattern of the errors that say so. Reasoning models of
# OpenAI take `max_completion_tokens` for `max_tokens`, and neither they nor Claude from Opus 4.7 on
# take a temperature. Many servers have no schemas; prompts state the form of the answer as well.
_REFUSALS = {
    "temperature": "temperature",
    "max_tokens": "max_completion_tokens",
    "response_format": "response_format|json_schema",
    "output_config": "output_config|output_format|json_schema",
    "text": r"text\.format|json_schema",
    "store": r"\bstore\b",
}


def find_refused(fields: Iterable[str], error: str) -> dict[str, str | None]:
    """Return the new name of each field that an error refuses, or None to omit the field.

    >>> find_refused(["temperature", "model"], "`temperature` is deprecated for this model.")
    {'temperature': None}
    """
    return {
        field: "max_completion_tokens" if field == "max_tokens" else None
        for field in fields
        if field in _REFUSALS and re.search(_REFUSALS[field], error)
    }


class _Part(msgspec.Struct):
    """A part of a content; its text counts if it is neither a thought nor a call."""

    type: str = "text"
    text: Any = None


class _Message(msgspec.Struct):
    """A message of a reply, or an item of its output."""

    content: str | list[_Part | str] | None = None
    type: str = "message"


class _Choice(msgspec.Struct):
    """One answer in a reply of chat completions, and why it ended."""

    message: _Message
    finish_reason: Any = None


class _Reply(msgspec.Struct):
    """A reply of any of the APIs: each has its own of these fields."""

    choices: list[_Choice] | None = None
    content: str | list[_Part | str] | None = None
    stop_reason: Any = None
    output: list[_Message] | None = None
    incomplete_details: Any = None
    error: Any = None
    usage: Any = None


class Answer(NamedTuple):
    """The text of a reply, and the server's count of tokens or None.

    ``is_cut_off`` tells whether the text is incomplete, ``has_failed`` whether an error came with it.
    """

    text: str
    is_cut_off: bool
    has_failed: bool
    tokens: int | None


def read_answer(body: bytes) -> Answer:
    """Return the answer in a reply's body; raise an error of msgspec for other bodies.

    >>> read_answer(b'{"content": [{"type": "text", "text": "Hi"}], "stop_reason": "max_tokens"}')
    Answer(text='Hi', is_cut_off=True, has_failed=False, tokens=None)
    """
    reply = msgspec.json.decode(body, type=_Reply)
    messages, end = [_Message(reply.content)], reply.stop_reason
    if reply.choices:
        messages, end = [reply.choices[0].message], reply.choices[0].finish_reason
    elif reply.output is not None:
        messages = [item for item in reply.output if item.type == "message"]
        end = reply.incomplete_details
        end = end.get("reason") if isinstance(end, dict) else None
    text = "".join(_read_content(message.content) for message in messages)
    is_cut_off = end in ("length", "max_tokens", "max_output_tokens")
    return Answer(text, is_cut_off, reply.error is not None, _count_used(reply.usage))


def _read_content(content: str | list[_Part | str] | None) -> str:
    """Return the text in a message's content, without reasoning and tool calls."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(
        part if isinstance(part, str) else part.text
        for part in content
        if isinstance(part, str)
        or (part.type in ("text", "output_text") and isinstance(part.text, str))
    )


def _count_used(usage: object) -> int | None:
    """Return the number of tokens that a reply reports, or None without a report."""
    if not isinstance(usage, Mapping):
        return None
    counts = [usage.get(name) for name in ("total_tokens", "input_tokens", "output_tokens")]
    total, *parts = (count if type(count) is int else None for count in counts)
    if total is None and None not in parts:
        total = sum(count for count in parts if count is not None)
    return total

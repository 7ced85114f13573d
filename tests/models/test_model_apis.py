"""The three APIs of language models: replies after the providers' documentation, and the requests that they refuse.

The bodies follow the published examples of OpenAI's chat completions and Responses, Anthropic's Messages, and reports of
errors by users of OpenAI, Anthropic and DeepSeek.
"""

import json
import threading

import pytest
from chat_server import completion, serving

from memlab import InputError, LanguageModel
from memlab.errors import BadAnswer, NoAnswer, OverBudget
from memlab.subjects.model_apis import read_answer

SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}
KEY = "key-of-a-provider"

MESSAGES = {
    "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
    "type": "message",
    "role": "assistant",
    "model": "claude-haiku-4-5",
    "content": [
        {"type": "thinking", "thinking": "A colour.", "signature": "EqQBCg"},
        {"type": "text", "text": "Bl"},
        {"type": "text", "text": "ue", "citations": None},
        {"type": "tool_use", "id": "toolu_1", "name": "x", "input": {}},
    ],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1_500, "output_tokens": 503, "cache_read_input_tokens": 0},
}
RESPONSES = {
    "id": "resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b",
    "object": "response",
    "created_at": 1741476542,
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "output": [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "Hm"}],
        },
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Blue", "annotations": []}],
        },
    ],
    "usage": {
        "input_tokens": 1_500,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 503,
        "total_tokens": 2_003,
    },
}
PARTS = {
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "A colour."}]},
                    {"type": "text", "text": "Blue"},
                ],
            },
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 1_500, "completion_tokens": 503, "total_tokens": 2_003},
}


def ask(path, reply, **options):
    """Ask a server for a colour at this address; return the answer, the model, and the request."""
    body = json.dumps(reply).encode()
    with serving(lambda _, __: body) as (url, requests):
        model = LanguageModel(url + path, "small", **{"key": KEY, "tokens": None, **options})
        return model.ask("One word.", "Which colour?", schema=SCHEMA), model, requests[0]


def test_messages_of_anthropic():
    answer, model, (path, headers, body) = ask("/messages", MESSAGES)
    assert (answer, path, model.usage.tokens) == ("Blue", "/v1/messages", 2_003)
    assert (headers["x-api-key"], headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "Authorization" not in headers
    assert body == {
        "model": "small",
        "system": "One word.",
        "messages": [{"role": "user", "content": "Which colour?"}],
        "max_tokens": 1_000,
        "temperature": 0,
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    }


def test_responses_of_openai():
    answer, model, (path, headers, body) = ask("/responses", RESPONSES)
    assert (answer, path, model.usage.tokens) == ("Blue", "/v1/responses", 2_003)
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body == {
        "model": "small",
        "instructions": "One word.",
        "input": "Which colour?",
        "max_output_tokens": 1_000,
        "temperature": 0,
        "store": False,
        "text": {
            "format": {"type": "json_schema", "name": "answer", "strict": True, "schema": SCHEMA}
        },
    }


def test_chat_completions_with_a_content_of_parts():
    for path in ("/chat/completions", "/chat/completions/", ""):
        answer, model, (requested, *_) = ask(path, PARTS)
        assert (answer, requested, model.usage.tokens) == ("Blue", "/v1/chat/completions", 2_003)


@pytest.mark.parametrize(
    ("path", "reply"),
    [
        ("/messages", MESSAGES | {"stop_reason": "max_tokens"}),
        (
            "/responses",
            RESPONSES
            | {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
        ),
        # a reasoning model that has used its tokens for thoughts returns no text
        ("", {"choices": [{"message": {"content": ""}, "finish_reason": "length"}]}),
    ],
)
def test_an_answer_that_is_cut_off_is_refused(path, reply):
    with pytest.raises(BadAnswer, match=r"cut off.*options=\{\"max_"):
        ask(path, reply)


@pytest.mark.parametrize(
    ("path", "reply"),
    [
        ("/messages", MESSAGES | {"content": []}),
        ("/messages", MESSAGES | {"content": [{"type": "text", "text": 3}]}),
        ("/messages", MESSAGES | {"content": {"type": "text", "text": "Blue"}}),
        ("/messages", PARTS | {"choices": 3}),
        ("/responses", RESPONSES | {"output": []}),
        ("/responses", RESPONSES | {"output": [{"type": "message", "content": None}]}),
        ("/responses", RESPONSES | {"output": [[]]}),
    ],
)
def test_a_reply_without_a_text_is_refused(path, reply):
    with pytest.raises(BadAnswer):
        ask(path, reply)


def test_an_error_in_a_reply_of_success_is_said():
    with pytest.raises(NoAnswer, match="200 for the model small: Provider returned error"):
        ask("", {"error": {"code": 502, "message": "Provider returned error"}})


# The error messages of providers, by the field that they refuse.
REFUSED = {
    "temperature": "Unsupported value: 'temperature' does not support 0 with this model. "
    "Only the default (1) value is supported.",
    "max_tokens": "Unsupported parameter: 'max_tokens' is not supported with this model. "
    "Use 'max_completion_tokens' instead.",
    "response_format": "This response_format type is unavailable now",
    "output_config": "output_config: Extra inputs are not permitted",
    "text": "Invalid parameter: 'text.format' of type 'json_schema' is not supported with this model.",
}


def refuse(body, fields):
    """Return the error for the first of some fields that a request has, or None."""
    field = next((field for field in fields if field in body), None)
    if field is None:
        return None
    error = {"message": REFUSED[field], "type": "invalid_request_error", "param": field}
    return 400, json.dumps({"error": error}).encode()


@pytest.mark.parametrize(
    ("path", "reply", "fields"),
    [
        ("", PARTS, ["max_tokens", "temperature"]),
        ("", PARTS, ["response_format"]),
        ("/messages", MESSAGES, ["temperature", "output_config"]),
        ("/responses", RESPONSES, ["temperature", "text"]),
    ],
)
def test_fields_that_a_model_refuses_are_left_out_from_then_on(path, reply, fields, tmp_path):
    body = json.dumps(reply).encode()
    with serving(lambda sent, _: refuse(sent, fields) or body) as (url, requests):
        model = LanguageModel(url + path, "small", tokens=None, cache=tmp_path)
        assert model.ask("One word.", "Which colour?", schema=SCHEMA) == "Blue"
        assert model.usage.calls == len(requests) == len(fields) + 1
        assert model.ask("One word.", "Which other?", schema=SCHEMA) == "Blue"
        assert len(requests) == len(fields) + 2
        last = requests[-1][2]
        assert not set(fields) & set(last)
        assert ("max_completion_tokens" in last) is ("max_tokens" in fields)
        again = LanguageModel(url + path, "small", cache=tmp_path)
        assert again.ask("One word.", "Which colour?", schema=SCHEMA) == "Blue"
        assert again.usage.calls == 0


def test_a_field_of_the_user_is_not_left_out_and_a_refusal_ends():
    def respond(body, _):
        return refuse(body, ["temperature"]) or json.dumps(PARTS).encode()

    with serving(respond) as (url, requests):
        model = LanguageModel(url, "small", options={"temperature": 0.3})
        with pytest.raises(NoAnswer, match=r"400.*temperature"):
            model.ask("a", "b")
        assert len(requests) == 1
    error = json.dumps({"error": {"message": " ".join(REFUSED.values())}}).encode()
    with serving(lambda *_: (400, error)) as (url, requests):
        with pytest.raises(NoAnswer, match="400"):
            LanguageModel(url, "small").ask("a", "b", schema=SCHEMA)
        assert len(requests) == 2
    with serving(lambda *_: (400, error)) as (url, requests):
        with pytest.raises(OverBudget, match="calls="):
            LanguageModel(url, "small", calls=1).ask("a", "b")
        assert len(requests) == 1


def test_threads_that_meet_the_same_refusal_all_get_an_answer():
    together = threading.Barrier(4)

    def respond(body, _):
        if "temperature" in body:
            together.wait(5)
        return refuse(body, ["temperature"]) or completion("x")

    with serving(respond) as (url, _):
        model, answers = LanguageModel(url, "small"), []
        threads = [
            threading.Thread(target=lambda text=str(n): answers.append(model.ask("a", text)))
            for n in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == ["x"] * 4


@pytest.mark.long
def test_threads_together_stay_within_the_tokens():
    arrived = threading.Semaphore(0)

    def respond(body, _):
        arrived.release()
        return completion("x", tokens=100)

    with serving(respond) as (url, requests):
        model, refused = LanguageModel(url, "small", tokens=2_500), []

        def run(number):
            try:
                model.ask("a", str(number))
            except OverBudget:
                refused.append(number)

        threads = [threading.Thread(target=run, args=(n,)) for n in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert model.usage.tokens <= 2_500
        assert len(requests) + len(refused) == 30
        assert model.ask("a", "later") == "x" or model.usage.tokens > 1_400


def test_one_length_is_sent():
    *_, (_, _, body) = ask("", PARTS, options={"max_completion_tokens": 50})
    assert "max_tokens" not in body
    with pytest.raises(InputError, match="input is set by memlab"):
        LanguageModel("http://127.0.0.1:9/v1/responses", "small", options={"input": "x"})


def test_replies_of_other_shapes_raise_only_errors_of_msgspec():
    for body in (b"", b"[]", b'{"choices": [{}]}', b'{"output": {}}', b'{"content": [1]}'):
        with pytest.raises(Exception, match=r"JSON|Expected|missing|truncated") as raised:
            read_answer(body)
        assert type(raised.value).__module__ == "msgspec"

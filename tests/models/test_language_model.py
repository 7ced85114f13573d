"""A language model is asked over a real socket: its protocol, its bounds, and servers that do not keep to it."""

import json
import socket
import threading
import time

import pytest
from chat_server import completion, serving

from memlab import InputError, LanguageModel
from memlab.errors import BadAnswer, ModelError, NoAnswer, OverBudget

KEY = "sk-" + "Q3EGSIBUKDA7LMNPq3egsibukda7lmnp"


def ask_model(answer, **options):
    """Send one request to a server that gives this answer, and return the result."""
    with serving(answer) as (url, _):
        return LanguageModel(url, "small", **options).ask("Answer.", "What?")


def test_a_schema_is_an_object_of_json():
    with (
        serving(completion("Blue")) as (url, requests),
        pytest.raises(InputError, match="schema must be a JSON object"),
    ):
        LanguageModel(url, "small").ask("One word.", "Which colour?", schema={"type": object()})
    assert not requests


def test_a_client_speaks_the_protocol():
    with serving(lambda body, _: completion("Blue", tokens=40)) as (url, requests):
        model = LanguageModel(url + "/", "small", key=KEY, options={"seed": 7, "temperature": None})
        assert model.ask("One word.", "Which colour?", schema={"type": "string"}) == "Blue"
        ((path, headers, body),) = requests
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body["messages"] == [
        {"role": "system", "content": "One word."},
        {"role": "user", "content": "Which colour?"},
    ]
    assert (body["model"], body["seed"], "temperature" in body) == ("small", 7, False)
    assert body["response_format"]["json_schema"]["schema"] == {"type": "string"}
    assert (model.usage.calls, model.usage.kept) == (1, 0)
    assert model.usage.tokens >= 40
    assert KEY not in repr(model)


def test_an_answer_is_asked_for_once_and_kept_on_the_disk(tmp_path):
    with serving(lambda body, _: completion(body["messages"][1]["content"].upper())) as (
        url,
        requests,
    ):
        first = LanguageModel(url, "small", cache=tmp_path / "answers")
        assert [first.ask("x", "a"), first.ask("x", "a"), first.ask("x", "b")] == ["A", "A", "B"]
        assert (first.usage.calls, first.usage.kept) == (2, 1)
        again = LanguageModel(url, "small", cache=tmp_path / "answers", calls=1)
        assert [again.ask("x", "a"), again.ask("x", "b")] == ["A", "B"]
        assert (again.usage.calls, again.usage.tokens, again.usage.kept) == (0, 0, 2)
        other = LanguageModel(url, "large", cache=tmp_path / "answers")
        assert (other.ask("x", "a"), len(requests)) == ("A", 3)
        for file in (tmp_path / "answers").iterdir():
            file.write_bytes(file.read_bytes()[:-1] + b"?")
        assert LanguageModel(url, "small", cache=tmp_path / "answers").ask("x", "a") == "A"
        assert len(requests) == 4


def test_an_answer_that_its_reader_refuses_is_not_cached():
    answers = iter(["one", "2"])
    with serving(lambda body, _: completion(next(answers))) as (url, _):
        model = LanguageModel(url, "small")
        with pytest.raises(InputError, match="raised ValueError"):
            model.ask("A number.", "Which?", read=int)
        assert model.ask("A number.", "Which?", read=int) == 2


def test_no_call_is_made_that_might_go_over_the_budget():
    with serving(lambda body, _: completion("x", tokens=900)) as (url, requests):
        model = LanguageModel(url, "small", tokens=2_000)
        model.ask("a", "b")
        with pytest.raises(OverBudget, match=r"1,100 of 2,000 are left.*tokens="):
            model.ask("a", "c" * 1_000)
        assert model.ask("a", "b") == "x"
        model = LanguageModel(url, "small", calls=1, tokens=None)
        model.ask("a", "b")
        with pytest.raises(OverBudget, match="calls="):
            model.ask("a", "c")
        assert len(requests) == 2


@pytest.mark.parametrize("tokens", [-(10**9), 0, True, "many", 1.5, [], 10**30])
def test_a_server_with_false_token_counts_is_charged_the_maximum(tokens):
    with serving(lambda body, _: completion("x", tokens=tokens)) as (url, _):
        model = LanguageModel(url, "small", tokens=None)
        model.ask("a", "b" * 800)
        assert model.usage.tokens >= 100


@pytest.mark.long
@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_again_so_many_times(status):
    with serving(lambda body, _: (status, b'{"error": {"message": "wait"}}')) as (url, requests):
        with pytest.raises(NoAnswer, match=f"{status}.*wait"):
            LanguageModel(url, "small", retries=1).ask("a", "b")
        assert len(requests) == 2
    statuses = iter([status, 200])
    assert ask_model(lambda body, _: (next(statuses), completion("well")), retries=1) == "well"


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (401, b'{"error": {"message": "wrong key"}}', "401.*wrong key"),
        (404, b"no \x1b[2J such thing", "404"),
        (302, b"", "302.*not followed"),
        (400, b"[" * 100_000, "400"),
    ],
)
def test_a_refusal_is_said_and_not_tried_again(status, body, says):
    with serving(lambda _, __: (status, body)) as (url, requests):
        with pytest.raises(NoAnswer, match=says) as raised:
            LanguageModel(url, "small").ask("a", "b")
        assert len(requests) == 1
    assert len(str(raised.value)) < 500
    assert "\x1b" not in str(raised.value)


HOSTILE = {
    "no JSON": b"Sure! Here is your answer.",
    "half of it": completion("x")[:-20],
    "a number": b"3",
    "no choices": b"{}",
    "an empty list": b'{"choices": []}',
    "choices of numbers": b'{"choices": [1]}',
    "no content": completion(None),
    "blank": completion(" \n"),
    "content of a number": b'{"choices": [{"message": {"content": 3}}]}',
    "deep": b'{"choices": ' + b"[" * 200_000,
    "no UTF-8": b'{"choices": [{"message": {"content": "\xff"}}]}',
    "lone surrogate": b'{"choices": [{"message": {"content": "\\ud800"}}]}',
    "cut off": completion('{"facts": [', finish="length"),
    "zeros": b"\0" * 1000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_answer_that_is_none_is_refused(name):
    with pytest.raises(BadAnswer):
        ask_model(lambda body, _: HOSTILE[name])


@pytest.mark.long
def test_a_huge_answer_is_not_read_to_its_end():
    begun = time.perf_counter()
    with pytest.raises(NoAnswer, match=r"more than 1,048,576 bytes"):
        ask_model(lambda body, _: completion("x" * (8 << 20)), retries=0)
    assert time.perf_counter() - begun < 2


def endless(beginning):
    """Serve an answer that never ends, a little at a time, so that no single read times out."""

    def answer(body, handler):
        handler.wfile.write(beginning)
        while True:
            handler.wfile.write(b"x")
            handler.wfile.flush()
            time.sleep(0.02)

    return answer


@pytest.mark.long
@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nX-",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_an_answer_that_never_ends_ends_with_the_time(beginning):
    begun = time.perf_counter()
    with pytest.raises(NoAnswer, match=r"within 0\.3 s|broke"):
        ask_model(endless(beginning), timeout=0.3, retries=0)
    assert time.perf_counter() - begun < 1.5


@pytest.mark.long
def test_a_server_that_says_nothing_or_goes_away():
    begun = time.perf_counter()
    with pytest.raises(NoAnswer, match=r"within 0\.2 s"):
        ask_model(lambda body, _: time.sleep(1), timeout=0.2)
    with pytest.raises(NoAnswer, match="broke"):
        ask_model(lambda body, _: None, retries=0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(NoAnswer, match="cannot be reached"):
        LanguageModel(f"http://127.0.0.1:{port}/v1", "small").ask("a", "b")
    with (
        serving(lambda body, _: completion("x")) as (url, _),
        pytest.raises(NoAnswer, match="broke"),
    ):
        LanguageModel(url.replace("http:", "https:"), "small", retries=0, timeout=1.0).ask("a", "b")
    assert time.perf_counter() - begun < 3


def test_no_secret_of_an_answer_and_no_key_goes_on(tmp_path):
    said = f"Your key is {KEY}, and the other AKIA" + "Q3EGSIBUKDA7LMNP."
    own = "own-key-of-this-server"
    with serving(lambda body, _: completion(f"{said} {own}")) as (url, _):
        answer = LanguageModel(url, "small", key=own, cache=tmp_path).ask("a", "b")
    assert KEY not in answer
    assert "AKIA" not in answer
    assert own not in answer
    assert all(own.encode() not in file.read_bytes() for file in tmp_path.iterdir())
    with serving(
        lambda body, _: (401, json.dumps({"error": {"message": f"no {own}"}}).encode())
    ) as (url, _):
        with pytest.raises(NoAnswer) as raised:
            LanguageModel(url, "small", key=own).ask("a", "b")
        assert own not in str(raised.value)


@pytest.mark.parametrize(
    "arguments",
    [
        {"url": "ftp://127.0.0.1/v1"},
        {"url": "127.0.0.1:8080"},
        {"url": "http://user:word@127.0.0.1/v1"},
        {"url": "http://127.0.0.1:99999/v1"},
        {"url": "http://127.0.0.1/v1?x=1"},
        {"url": "http://127.0.0.1/v 1\r\nX: y"},
        {"url": "http://[::1/v1"},
        {"url": "http://models.example/v1", "key": "secret"},
        {"key": "two words"},
        {"key": "line\r\nX: y"},
        {"name": " "},
        {"options": {"stream": True}},
        {"options": {"x": object()}},
        {"timeout": 0},
        {"calls": 0},
        {"retries": 11},
    ],
)
def test_an_invalid_model_is_refused_before_any_request(arguments):
    with pytest.raises(InputError):
        LanguageModel(**{"url": "http://127.0.0.1:9/v1", "name": "small", **arguments})


def test_questions_of_threads_come_one_after_another():
    with serving(lambda body, _: completion(body["messages"][1]["content"])) as (url, requests):
        model = LanguageModel(url, "small", calls=8)
        results = []

        def ask(number):
            try:
                results.append(model.ask("x", str(number)))
            except ModelError as error:
                results.append(type(error).__name__)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(requests), results.count("OverBudget"), model.usage.calls) == (8, 4, 8)

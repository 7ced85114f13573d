"""Answers of a language model under a frozen contract: runs that end early, and servers that lie or answer garbage."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from chat_server import completion, serving

import memlab
from memlab import LanguageModel
from memlab.errors import InputError, LabError, NoAnswer, OverBudget
from memlab.io.ingest import read_locomo
from memlab.science.bench import Contract, bench_budgets

pytestmark = pytest.mark.long

CHATS = Path(__file__).parents[1] / "fixtures" / "two_chats.json"
CHAT = read_locomo(CHATS)[:1]
ANSWERS = {
    question.text: question.answer for chat in read_locomo(CHATS) for question in chat.questions
}


def answer_by_rule(body, _=None):
    """Answer each question with its expected answer; accept answers that are equal to the expected one."""
    text = body["messages"][1]["content"]
    if body["model"] == "judge":
        fields = json.loads(text)
        return completion("Correct." if fields["answer"] == fields["expected"] else "wrong")
    return completion(ANSWERS[text.rpartition("Question: ")[2]])


def run(url, folder, *, chats=None, judged=True, **limits):
    """Measure two budgets with a model and a judge at an address."""
    return bench_budgets(
        chats or read_locomo(CHATS),
        budgets=[60, 400],
        baselines=False,
        answers=LanguageModel(url, "small", retries=0, timeout=60, **limits),
        judge=LanguageModel(url, "judge", retries=0, timeout=60) if judged else None,
        folder=folder,
        dataset="two chats",
    )


def test_answers_contexts_and_verdicts_are_stored(tmp_path):
    with serving(answer_by_rule) as (url, requests):
        result = run(url, tmp_path / "run")
        sent = len(requests)
        again = run(url, tmp_path / "run")
        assert len(requests) == sent
    assert again.records.drop("ms").equals(result.records.drop("ms"))
    rows = result.frame.filter(system="memlab")
    assert rows["correct"].to_list() == [1, 1]
    assert rows["f1"].to_list() == [1, 1]
    assert result.frame.filter(system="memlab, plain fill")["correct"].to_list() == [None, None]
    assert result.false_accepts == (0, 13)
    assert "accepts 0.0% of 13 wrong answers" in repr(result)
    stored = pl.read_parquet(tmp_path / "run" / "answers.parquet")
    assert len(stored) == 26
    assert stored["context"].str.contains("<memory").all()
    lines = (tmp_path / "run" / "calls.jsonl").read_text().splitlines()
    calls = [json.loads(line) for line in lines]
    assert len(calls) == len({call["key"] for call in calls}) == sent
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest == result.contract.to_dict()
    assert manifest["packs"] == dict(result.packs)


def test_a_judge_that_accepts_everything_is_found_out(tmp_path):
    def accept(body, _):
        return completion("correct") if body["model"] == "judge" else answer_by_rule(body)

    with serving(accept) as (url, _):
        assert run(url, tmp_path / "run").false_accepts == (1, 13)


SCRIPT = """
import sys
from test_model_answers import run
run(sys.argv[1], sys.argv[2])
"""


def test_a_run_that_is_killed_twice_repeats_no_call(tmp_path):
    process, served, kills = None, [], [5, 17]

    def answer(body, handler):
        if kills and len(served) == kills[0]:
            kills.pop(0)
            os.kill(process.pid, signal.SIGKILL)
            return None  # the request was never answered
        served.append(json.dumps(body))
        return answer_by_rule(body)

    paths = [str(Path(__file__).parent), str(Path(__file__).parents[1]), *sys.path]
    with serving(answer) as (url, requests):
        codes = []
        for _ in range(3):
            process = subprocess.Popen(
                [sys.executable, "-c", SCRIPT, url, str(tmp_path / "run")],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            )
            codes.append(process.wait())
        assert codes == [-signal.SIGKILL, -signal.SIGKILL, 0]
        assert len(served) == len(set(served))
        assert len(requests) == len(served) + 2
        before = len(requests)
        assert run(url, tmp_path / "run").false_accepts == (0, 13)
        assert len(requests) == before


def test_a_line_that_was_cut_off_is_requested_again(tmp_path):
    with serving(answer_by_rule) as (url, requests):
        result = run(url, tmp_path / "run")
        sent = len(requests)
        path = tmp_path / "run" / "calls.jsonl"
        path.write_bytes(path.read_bytes()[:-9])
        again = run(url, tmp_path / "run")
        assert len(requests) == sent + 1
        assert again.records.drop("ms").equals(result.records.drop("ms"))
        lines = path.read_text().splitlines()
        path.write_text("\n".join([lines[0], "{]", *lines[1:]]) + "\n")
        with pytest.raises(InputError, match=r"Line 2 of .* is damaged"):
            run(url, tmp_path / "run")


def test_a_folder_has_one_contract(tmp_path):
    with serving(answer_by_rule) as (url, _):
        result = run(url, tmp_path / "run")
        with pytest.raises(InputError, match="other options or data: hash, judge"):
            run(url, tmp_path / "run", judged=False)
    contract = result.contract
    assert replace(contract, answer_prompt=contract.answer_prompt + ".").hash != contract.hash
    assert Contract(**vars(contract)).hash == contract.hash
    (tmp_path / "run" / "manifest.json").write_text("[]")
    with (
        serving(answer_by_rule) as (url, _),
        pytest.raises(InputError, match="should state the options and data of a run"),
    ):
        run(url, tmp_path / "run")


@pytest.mark.parametrize(
    "reply", ["", "   ", "<think>hm</think>", "correct or wrong", "\u202e" * 50]
)
def test_garbage_counts_as_a_failure_and_is_not_requested_again(tmp_path, reply):
    with serving(lambda body, _: completion(reply)) as (url, requests):
        result = run(url, tmp_path / "run", chats=CHAT)
        sent = len(requests)
        assert (
            run(url, tmp_path / "run", chats=CHAT).frame["correct"].to_list()
            == result.frame["correct"].to_list()
        )
        assert len(requests) == sent
    assert not result.frame.filter(system="memlab")["correct"].sum()
    assert result.false_accepts is None


@pytest.mark.parametrize(
    "answer",
    [
        lambda body, _: (500, b"down"),
        lambda body, _: None,
        lambda body, _: (302, b""),
        lambda body, handler: handler.wfile.write(
            b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"
        ),
    ],
)
def test_a_server_that_is_down_ends_the_run_and_keeps_the_replies(tmp_path, answer):
    served = []

    def serve(body, handler):
        served.append(body)
        return answer_by_rule(body) if len(served) <= 4 else answer(body, handler)

    with serving(serve) as (url, _), pytest.raises(NoAnswer, match="4 replies are in"):
        run(url, tmp_path / "run", chats=CHAT)
    with serving(answer_by_rule) as (url, requests):
        result = run(url, tmp_path / "run", chats=CHAT)
        assert len(requests) == len((tmp_path / "run" / "calls.jsonl").read_text().splitlines()) - 4
    assert result.frame.filter(system="memlab")["correct"].to_list() == [1, 1]


def test_a_budget_ends_the_run_and_a_larger_one_continues(tmp_path):
    with serving(answer_by_rule) as (url, _):
        with pytest.raises(OverBudget, match=r"raise calls=\. \d replies are in"):
            run(url, tmp_path / "run", calls=3)
        assert run(url, tmp_path / "run").false_accepts == (0, 13)


def test_two_runs_in_one_folder_do_not_mix(tmp_path):
    with serving(answer_by_rule) as (url, _):
        with pytest.raises(OverBudget):
            run(url, tmp_path / "run", calls=1)

        def nested(body, _):
            with pytest.raises(InputError, match="Another run writes to"):
                run(url, tmp_path / "run")
            return answer_by_rule(body)

        with serving(nested) as (other, _), pytest.raises(OverBudget):
            run(other, tmp_path / "run", calls=1)


def test_a_full_disk_ends_the_run(tmp_path, monkeypatch):
    def fail(_):
        raise OSError(28, "No space left on device")

    with serving(answer_by_rule) as (url, _):
        monkeypatch.setattr("memlab.science.bench._answers.os.fsync", fail)
        with pytest.raises(LabError, match=r"calls\.jsonl"):
            run(url, tmp_path / "run")


def test_a_folder_that_cannot_be_written_is_refused_before_any_call(tmp_path):
    (tmp_path / "run").write_text("a file")
    with serving(answer_by_rule) as (url, requests), pytest.raises(memlab.MemlabError):
        run(url, tmp_path / "run")
    assert not requests

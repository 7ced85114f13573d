"""``memlab try``: the sample lab, the user's own file, and the notebook cell that repeats both."""

import base64
import json
import os
import signal
import subprocess
import sys

import pytest

import memlab
from memlab.ui.demo import sample_lab
from memlab.ui.demo.first_minutes import FirstMinutes, Trial
from memlab.ui.widgets import PolicyStudio, QuestionList

pytestmark = pytest.mark.long

CHAT = "".join(
    json.dumps({"role": role, "content": text, "created_at": f"2026-03-0{day}T10:00:00Z"}) + "\n"
    for day, (role, text) in enumerate(
        [
            ("user", "I live in Rome"),
            ("assistant", "Noted: Rome."),
            ("user", "My sister lives in Oslo"),
            ("user", "<img src=x onerror=alert(1)> deploys go out on Tuesdays"),
        ],
        1,
    )
)


@pytest.fixture
def chat(tmp_path):
    path = tmp_path / "chat.jsonl"
    path.write_text(CHAT, encoding="utf-8")
    return path


def test_a_file_replaces_the_sample_and_its_card_says_what_was_read(chat, ask):
    trial = Trial()
    widget = trial.make(FirstMinutes)
    switched = []
    trial.switched = lambda: switched.append(len(trial.current))
    assert "sample" in widget._offer["note"]
    assert ask(widget, "load", path=str(chat)) == {"read": True}
    assert switched == [4]
    own = trial.make(FirstMinutes)
    card = dict(own._card)
    assert card["speakers"] == "2: user (3), assistant (1)"
    assert "2026-03-01" in card["time"]
    assert "in memory" in own._offer["note"]
    assert "--lab" in own._offer["note"]
    assert trial.make(QuestionList).lab is trial.current
    assert trial.current.questions.frame["accepted"].to_list() == [False] * len(
        trial.current.questions.frame
    )
    assert trial.current.questions.frame.height > 0


def test_a_dropped_file_is_read_and_kept_nowhere(ask, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    trial = Trial()
    widget = trial.make(FirstMinutes)
    content = base64.b64encode(CHAT.encode()).decode()
    for name in ("..", "", "a\0b"):
        assert "is not a valid file name" in ask(widget, "drop", name=name, content=content)
    assert "was not received" in ask(widget, "drop", name="chat.jsonl", content="?")
    assert trial.loaded is None
    assert ask(widget, "drop", name="../../chat.jsonl", content=content) == {"read": True}
    assert len(trial.current) == 4
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_read_leaves_the_sample(ask, tmp_path):
    trial = Trial(tmp_path / "own.memlab")
    widget = trial.make(FirstMinutes)
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    for path in (tmp_path / "missing.zip", empty):
        assert path.name in ask(widget, "load", path=str(path))
    assert trial.loaded is None
    assert len(trial.current) == 172
    with memlab.open(tmp_path / "own.memlab") as lab:  # the lock is free again
        assert len(lab) == 0


def test_a_second_file_is_added(chat, ask):
    trial = Trial(file=chat)
    other = chat.with_name("other.jsonl")
    other.write_text('{"role": "user", "content": "The harbour is in the north"}\n')
    ask(trial.make(FirstMinutes), "load", path=str(other))
    assert len(trial.current) == 5
    assert trial.cell.count("lab.load(") == 2


def test_the_cell_repeats_the_state_in_another_lab(chat):
    trial = Trial(file=chat)
    lab = trial.current
    lab.questions.accept(lab.questions.frame["id"].to_list())
    lab.policies.install(
        "recall-score", '(fn [similarity] ; "why"\n similarity)', reason="it's new"
    )
    names = {}
    exec(trial.cell.replace("memlab.widgets.PolicyStudio(lab)", ""), names)
    again = names["lab"]
    assert again.memories["text"].to_list() == lab.memories["text"].to_list()
    assert again.policies["recall-score"].hash == lab.policies["recall-score"].hash
    asked = [
        one.questions.frame.filter("accepted").select("query", "wants") for one in (lab, again)
    ]
    assert asked[0].equals(asked[1])
    assert asked[0].height > 0
    assert again.score().frame["value"].to_list() == lab.score().frame["value"].to_list()


def test_the_cell_of_the_sample_and_of_a_lab_on_a_disk(chat, tmp_path):
    trial = Trial()
    fresher = "(fn [recency] (+ (inherited) (* 0.001 recency)))"
    trial.current.policies.install("recall-score", fresher, reason="try")
    names = {}
    exec(trial.cell.replace("memlab.widgets.PolicyStudio(lab)", ""), names)
    assert names["lab"].policies["recall-score"] == trial.current.policies["recall-score"]
    kept = Trial(tmp_path / "it's.memlab", chat)
    kept.current.close()
    exec(kept.cell.replace("memlab.widgets.PolicyStudio(lab)", ""), names)
    with names["lab"] as lab:
        assert len(lab) == 4


def test_the_studio_asks_the_questions_with_the_worst_ranks():
    trial = Trial()
    studio = trial.make(PolicyStudio)
    assert len(studio.questions) == 10
    assert studio.questions[0] == "When should Noor take Mungo to the vet?"


def test_the_sample_is_written_to_a_new_directory_only(tmp_path):
    with sample_lab(tmp_path / "sample.memlab") as lab:
        assert len(lab.questions) == 36
    with pytest.raises(memlab.InputError, match="has memories already"):
        sample_lab(tmp_path / "sample.memlab")


def test_the_command_serves_the_page_until_ctrl_c_and_keeps_the_lab(chat, tmp_path):
    words = ["try", str(chat), "--lab", str(tmp_path / "own.memlab"), "--no-open", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "memlab", *words], stdout=subprocess.PIPE, text=True, env=os.environ
    )
    told = json.loads(process.stdout.readline())
    assert (told["memories"], told["lab"]) == (4, str(tmp_path / "own.memlab"))
    assert told["url"].startswith("http://127.0.0.1:")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 0
    with memlab.open(tmp_path / "own.memlab") as lab:
        assert len(lab) == 4

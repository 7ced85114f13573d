"""The README's examples run unchanged."""

import re
from pathlib import Path

import pytest

import memlab
from tests.chat_server import completion, serving

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


FIRST, OWN_DATA, FACTS, CHAT, LOG = range(5)


def test_there_are_five_examples():
    assert len(EXAMPLES) == 5


@pytest.mark.long
@pytest.mark.parametrize("number", [FIRST, OWN_DATA, FACTS, LOG])
def test_an_example_gives_the_same_result_when_it_runs_again(number, folder):
    (folder / "chats.jsonl").write_text('{"text": "We decided that the login uses passkeys."}\n')
    first, second = _run(number), _run(number)
    if "lab" in first:
        assert len(first["lab"]) == len(second["lab"]) == (1 if number == OWN_DATA else 2)
    if number == LOG:
        assert (folder / "out.html").exists()


@pytest.mark.long
def test_the_first_example_ranks_as_its_comments_say(folder):
    names = _run(FIRST)
    assert names["hits"][0].text == "The user has moved to four spaces"
    assert "recency" not in repr(names["hits"][0].explain())
    assert "recency" in repr(names["swapped"][0].explain())
    assert "recency" not in names["lab"].policies["recall-score"].source


@pytest.mark.long
def test_the_example_with_own_data_loads_a_folder(folder):
    (folder / "chats.jsonl").write_text('{"text": "We decided that the login uses passkeys."}\n')
    assert [hit.text for hit in _run(OWN_DATA)["lab"].recall("login?")] == [
        "We decided that the login uses passkeys."
    ]


@pytest.mark.long
def test_the_lab_of_the_past_recalls_the_superseded_fact(folder):
    past = _run(FACTS)["lab"].at("2026-02-01").recall("Where does Ada live?")
    assert "Rome" in past[0].text


@pytest.mark.long
def test_the_log_of_the_last_example_names_the_better_score(folder):
    rows = {row.policy: row for row in _run(LOG)["evaluation"].rows}
    assert rows["new_score"].verdict == "better"


@pytest.mark.long
def test_the_chatbot_has_at_most_twelve_lines_and_a_memory(folder, monkeypatch, capsys):
    assert len([line for line in EXAMPLES[CHAT].splitlines() if line.strip()]) <= 12
    monkeypatch.setenv("CHAT_MODEL", "small")
    answers = iter(["Noted.", "On Tuesdays.", "On Tuesdays."])

    def talk(*texts):
        said = iter([*texts, ""])
        monkeypatch.setattr("builtins.input", lambda _prompt: next(said))
        names = _run(CHAT)
        assert names["lab"]._core.store.journal.closed

    with serving(lambda _body, _handler: completion(next(answers))) as (url, requests):
        monkeypatch.setenv("CHAT_URL", f"{url}/chat/completions")
        talk("Important: we always deploy on Tuesdays.", "When do we deploy?")
        # Another day: what was learned is there, and the same session continues.
        talk("Remind me: when do we deploy?")
    sent = [body["messages"] for _path, _headers, body in requests]
    assert [len(messages) for messages in sent] == [1, 3, 5]
    assert capsys.readouterr().out.splitlines() == ["Noted.", "On Tuesdays.", "On Tuesdays."]
    with memlab.open("agent.memlab") as lab:
        assert lab.memories.filter(kind="turn").height == 6
        assert lab.agents.recalls().height == 3


def _run(number):
    names = {}
    exec(compile(EXAMPLES[number], f"README.md, example {number + 1}", "exec"), names)
    return names


def test_every_link_to_a_file_leads_somewhere():
    targets = re.findall(r"\]\((?!http)([^)#]+)\)", README)
    assert targets
    assert not [target for target in targets if not (Path(__file__).parents[1] / target).exists()]

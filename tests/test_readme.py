"""What the README shows runs as it stands there."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_there_are_four_examples():
    assert len(EXAMPLES) == 4


@pytest.mark.parametrize("number", [0, 1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_an_example_runs_twice_and_the_second_time_is_as_the_first(number, folder):
    first, second = _run(number), _run(number)
    if number == 0:
        assert len(first["lab"]) == len(second["lab"]) == 2
    if number == 2:
        assert (folder / "out.html").exists()
    if number == 3:
        assert first["verdict"].frame.equals(second["verdict"].frame)


def test_the_swap_puts_another_memory_first(folder):
    left = _run(0)
    assert left["hits"][0].text == "The user has moved to four spaces"
    assert left["swapped"][0].text == "The user indents with tabs"


def test_the_log_of_the_third_example_says_which_is_better(folder):
    rows = {row.policy: row for row in _run(2)["evaluation"].rows}
    assert rows["new_score"].verdict == "better"


@pytest.mark.long
def test_the_challenger_of_the_fourth_example_wins():
    assert _run(3)["verdict"]["memlab"].better == "memlab"


def _run(number):
    names = {}
    exec(compile(EXAMPLES[number], f"README.md, example {number + 1}", "exec"), names)
    return names


def test_every_link_to_a_file_leads_somewhere():
    targets = re.findall(r"\]\((?!http)([^)#]+)\)", README)
    assert targets
    assert not [target for target in targets if not (Path(__file__).parents[1] / target).exists()]

"""``-`` is standard input wherever a command takes a text or a file, and a URL is no path."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import memlab
from memlab.ui.cli import main


def piped(content, *words):
    return CliRunner().invoke(main, list(map(str, words)), input=content)


@pytest.mark.long
def test_a_text_comes_from_standard_input(tmp_path):
    lab = tmp_path / "lab"
    assert piped("Deploys go out\non Tuesdays\n", "remember", lab, "-").exit_code == 0
    with memlab.open(lab) as opened:
        assert opened[1].text == "Deploys go out\non Tuesdays"
    assert json.loads(piped("deploys\n", "recall", lab, "-", "--json").output)["hits"][0]["id"] == 1
    assert "Tuesdays" in piped("when are deploys?\n", "context", lab, "-").output
    assert "Mondays" in piped("Deploys go out on Mondays", "edit", lab, "1", "--text", "-").output
    piped("it is wrong", "deprecate", lab, "2", "-")
    with memlab.open(lab) as opened:
        assert opened[2].status == "deprecated"


@pytest.mark.long
def test_a_file_comes_from_standard_input(tmp_path):
    lab = tmp_path / "lab"
    chat = json.dumps([{"role": "user", "content": "I moved to Bergen."}])
    assert piped(chat, "load", lab, "-").exit_code == 0
    with memlab.open(lab) as opened:
        assert opened[1].text == "I moved to Bergen."
    assert "Bergen" in piped(chat, "extract", lab, "-").output
    assert piped("(pack small)", "policy", "check", "-").exit_code == 0
    assert piped('(remember "tabs")', "run", lab, "-", "--yes").exit_code == 0
    assert "tabs" in piped("", "list", lab).output


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_an_empty_standard_input_is_refused_and_makes_no_lab(tmp_path, content):
    result = piped(content, "remember", tmp_path / "lab", "-")
    assert (result.exit_code, "Standard input is empty" in result.output) == (1, True)
    assert not (tmp_path / "lab").exists()
    assert piped(content, "load", tmp_path / "lab", "-").exit_code == 1


def test_input_that_is_no_text_is_refused(tmp_path):
    result = piped(b"\xff\xfe\x00", "remember", tmp_path / "lab", "-")
    assert (result.exit_code, "not UTF-8" in result.output) == (1, True)


def test_standard_input_is_read_once(tmp_path):
    result = piped("(pack small)", "policy", "diff", "-", "-")
    assert (result.exit_code, "is already used for" in result.output) == (2, True)
    assert piped("[]", "load", tmp_path / "lab", "-", "-").exit_code == 2


URLS = [
    "postgresql://x/y",
    "http://x.org/lab",
    "s3://bucket/key",
    "sqlite:///x.db",
    "file:///tmp/x",
]


@pytest.mark.parametrize("url", URLS)
def test_a_url_is_no_path(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in (url, Path(url)):
        with pytest.raises(memlab.InputError, match="URL"):
            memlab.open(path)
    with memlab.open() as lab:
        with pytest.raises(memlab.InputError, match="URL"):
            lab.load(url)
        with pytest.raises(memlab.InputError, match="URL"):
            lab.agents.modules.scan(url)
        with pytest.raises(memlab.InputError, match="URL"):
            lab.io.backup(url)
    result = piped("", "remember", url, "x")
    assert (result.exit_code, "is a URL" in result.output) == (1, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["C:/labs/a", "a:b", "notes: mine", "http"])
def test_drive_letters_and_colons_are_paths(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with memlab.open(name) as lab:
        lab.remember("x")


def test_the_command_reports_redactions(tmp_path):
    result = piped("", "remember", tmp_path / "lab", "the key is AKIAIOSFODNN7EXAMPLE")
    assert result.output.splitlines()[1:] == ["removed before it was stored: AWS access key"]

"""The commands that put memories in quarantine and release them."""

import pytest

import memlab

pytestmark = pytest.mark.long


def test_memories_of_a_session_are_quarantined_and_released(json_of, run):
    json_of("remember", "a.memlab", "deploys on Tuesdays", "--project", "api")
    with memlab.open("a.memlab") as lab:
        lab.remember("deploys on Fridays", session="web 17", creator="agent:web")
        lab.recall("when are deploys?")
    would = json_of("forget", "--how", "quarantine", "a.memlab", "--session", "web 17", "--dry-run")
    assert (would["event"], would["quarantined"]) == (None, [2])
    done = json_of(
        "forget",
        "--how",
        "quarantine",
        "a.memlab",
        "--creator",
        "agent:web",
        "--since",
        "2020-01-01",
        "--reason",
        "a page",
    )
    assert (done["quarantined"], done["back"]) == ([2], [])
    assert [row["memory_id"] for row in done["shown"]] == [2]
    assert done["replay"][0]["left"] == [2]
    assert json_of("show", "a.memlab", 2)["status"] == "quarantined"
    released = run("release", "a.memlab", done["event"])
    assert released.stdout == "#2 is active (was quarantined)\n"
    assert run("release", "a.memlab", done["event"]).stdout == "nothing to change\n"
    text = run(
        "forget", "--how", "quarantine", "a.memlab", "--source", "conversation", "--replay", 0
    ).stdout
    assert "2 memories left recall" in text
    assert "undo: memlab restore LAB --quarantine" in text


def test_wrong_calls_are_refused(json_of, run):
    json_of("remember", "a.memlab", "deploys on Tuesdays")
    result = run("forget", "--how", "quarantine", "a.memlab")
    assert (result.exit_code, "--session and --creator" in result.output) == (2, True)
    assert run("forget", "--how", "quarantine", "a.memlab", "--session", "web").exit_code == 1
    assert run("forget", "--how", "quarantine", "a.memlab", "--source", "web").exit_code == 2
    assert (
        run(
            "forget", "--how", "quarantine", "a.memlab", "--creator", "x", "--since", "soon"
        ).exit_code
        == 1
    )
    assert run("release", "a.memlab", 1).exit_code == 1

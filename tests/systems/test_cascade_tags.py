"""cascade: tags have a name, a description and a count; they are given, taken away and listed."""

import json

import polars as pl
import pytest
from click.testing import CliRunner

import memlab
from memlab.ui.cli import main

pytestmark = pytest.mark.long


@pytest.fixture
def lab():
    with memlab.open(pack="cascade", clock=memlab.ManualClock("2026-06-01")) as opened:
        opened.remember("The login form posts twice", tags=["auth"], linking="off")
        opened.remember("Tokens are refreshed at midnight", tags=["auth", "ops"], linking="off")
        opened.remember("The cake is in the oven", linking="off")
        yield opened


def tags(lab):
    return lab.graph.tags().select("tag", "memories", "description").rows()


def test_a_tag_has_a_name_a_description_and_a_count(lab):
    lab.graph.describe_tag("#auth", "login, sessions and tokens")
    assert tags(lab) == [("auth", 2, "login, sessions and tokens"), ("ops", 1, None)]
    lab.graph.describe_tag("auth", "")
    assert tags(lab)[0] == ("auth", 2, None)
    with pytest.raises(memlab.errors.UnknownName, match="auth"):
        lab.graph.describe_tag("atuh", "x")
    lab.graph.describe_tag("auth", "key AKIAIOSFODNN7EXAMPLQ")
    assert "AKIA" not in lab.graph.tags()["description"][0]


def test_memories_are_tagged_and_untagged_once(lab):
    assert lab.graph.tag([2, 3], ["#kitchen", "ops"]) == (2, 3)
    assert lab.graph.tag([2, 3], "kitchen") == ()
    assert lab.memories["tags"].to_list() == [
        ["auth"],
        ["auth", "ops", "kitchen"],
        ["kitchen", "ops"],
    ]
    assert lab.graph.tag(lab.memories.filter(pl.col("id") > 1), "kitchen", remove=True) == (2, 3)
    assert lab.memories["tags"].to_list() == [["auth"], ["auth", "ops"], ["ops"]]
    lab.forget(1, how="delete")
    with pytest.raises(memlab.InputError, match="deleted"):
        lab.graph.tag([1, 3], "late")
    with pytest.raises(memlab.InputError, match="needs a tag"):
        lab.graph.tag(3, [])
    assert lab.memories["tags"].to_list()[2] == ["ops"]


def test_descriptions_survive_a_snapshot_an_export_and_a_replay(lab, tmp_path):
    lab.graph.describe_tag("auth", "login, sessions and tokens")
    file = lab.io.export(tmp_path / "lab.jsonl")
    with memlab.open(pack="cascade") as other:
        other.load(file)
        assert tags(other) == tags(lab)
    again = memlab.replay(lab, "cascade", progress=False)
    assert tags(again.lab)[0] == ("auth", 2, "login, sessions and tokens")
    assert lab.at(viewer="agent:coder").graph.tags().height == 2


def test_a_purge_takes_what_was_said_of_a_tag_that_only_a_purged_memory_had(tmp_path):
    with memlab.open(tmp_path / "lab", pack="cascade") as lab:
        lab.remember("Something of the zephyr plan", tags=["zephyr"])
        lab.remember("The login form posts twice", tags=["auth"])
        lab.graph.describe_tag("zephyr", "all of the secret wind")
        lab.graph.describe_tag("auth", "login")
        assert lab.purge(1).found.is_empty()
        assert lab.graph.tags().filter(pl.col("tag") == "auth")["description"].to_list() == [
            "login"
        ]
        assert "wind" not in repr([event.body for event in lab.io.store.journal.events()])


def test_the_command_line_links_tags_and_lists(tmp_path):
    def run(*words):
        done = CliRunner().invoke(main, [*map(str, words)])
        assert done.exit_code == 0, done.output
        return done.output

    path = tmp_path / "lab"
    for text in (
        "The login form posts twice",
        "Tokens are refreshed at midnight",
        "The cake is in the oven",
    ):
        run("remember", path, text)
    assert run("graph", "link", path, 1, 2, "--relation", "depends_on") == "#1 depends-on #2\n"
    assert run("graph", "tag", path, 1, 2, "--tag", "auth") == "#1, #2 changed\n"
    run("graph", "tag", path, "--tag", "auth", "--describe", "login and tokens")
    assert run("graph", "tag", path) == "     2  auth  login and tokens\n"
    assert [row["id"] for row in json.loads(run("show", path, "--tag", "#auth", "--json"))] == [
        1,
        2,
    ]
    run("remember", path, "Port 80 is taken", "--kind", "error_pattern")
    assert "Port 80" in run("show", path, "--kind", "error_pattern")


@pytest.mark.parametrize(
    ("written", "name"), [("#auth", "auth"), ("auth", "auth"), ("##auth", "#auth"), ("#", "#")]
)
def test_a_tag_has_one_name_however_it_is_given(tmp_path, written, name):
    path = tmp_path / "lab"
    with memlab.open(path) as lab:
        lab.remember("the login page times out", tags=[written])
        lab.remember("the session ends after an hour")
        lab.graph.tag(2, written)
        lab.graph.describe_tag(written, "login, sessions and tokens")
        assert lab.memories["tags"].to_list() == [[name], [name]]
        assert lab.graph.tags()["tag"].to_list() == [name]
    done = CliRunner().invoke(main, ["show", str(path), "--tag", written, "--json"])
    assert [row["id"] for row in json.loads(done.output)] == [1, 2]

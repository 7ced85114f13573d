"""Names and commands of earlier versions: each still works, and says what to write instead."""

import warnings

import pytest

from memlab.errors import InputError, RenamedWarning
from memlab.subjects.lab import RENAMED
from memlab.ui.cli import FORMER


@pytest.mark.parametrize("name", sorted(RENAMED))
def test_a_former_name_of_a_lab_names_the_new_one(lab, name):
    instead = RENAMED[name] if isinstance(RENAMED[name], str) else RENAMED[name][0]
    with pytest.warns(RenamedWarning) as warned:
        getattr(lab, name)
    assert f"lab.{name} is lab.{instead} from now on" in str(warned[0].message)
    assert warned[0].filename == __file__
    assert name not in dir(lab)


def test_an_unknown_name_is_an_attribute_error(lab):
    with pytest.raises(AttributeError, match="Lab has no attribute 'remember_all'"):
        lab.remember_all  # noqa: B018
    assert not hasattr(lab.agents("coder"), "remember_all")


@pytest.mark.long
def test_former_names_do_what_they_did(lab):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RenamedWarning)
        assert tuple(
            lab.remember_many(["tabs", {"text": "spaces", "kind": "preference"}], chain=True).ids
        ) == (1, 2)
        assert tuple(lab.remember_many(rows=["tea"]).ids) == (3,)
        assert tuple(lab.agent("coder").remember_many(["coffee"]).ids) == (4,)
        assert [
            item.memory for item in lab.feedback_many([{"memory": 1, "outcome": "success"}])
        ] == [1]
        assert lab.delete(3).frame["status"].to_list() == ["deleted"]
        assert 4 not in lab.viewed_by("agent:tester").memories["id"].to_list()
        assert lab.pack.hash == lab.policies.pack.hash
        assert lab.use("companion").name == lab.policies.pack.name == "companion"
        assert (lab.path, lab.embedder, lab.seed) == (lab.io.path, lab.io.embedder, lab.io.seed)
        assert lab.store is lab.io.store
        assert lab.similar(1).equals(lab.graph.similar(1))
        assert lab.check().sound
        hits = lab.recall("tabs")
        assert len(lab.attribute("tabs it is", hits).frame) == len(hits)


class TestOneVerbForSeveral:
    def test_remember_takes_one_text_or_several(self, lab):
        assert lab.remember("tabs").id == 1
        assert tuple(lab.remember(["spaces", {"text": "tea"}]).ids) == (2, 3)
        assert tuple(lab.remember(iter(["coffee"])).ids) == (4,)
        assert tuple(lab.remember(lab.memories.select("text").head(1)).ids) == (5,)

    @pytest.mark.parametrize("arguments", [{"kind": "fact"}, {"at": "2026-01-01"}])
    def test_several_say_their_own_fields(self, lab, arguments):
        for verb in (lab.remember, lab.agents("coder").remember):
            with pytest.raises(InputError, match="fields and at= are not allowed"):
                verb(["tabs"], **arguments)
        assert lab.memories.is_empty()

    @pytest.mark.parametrize("wrong", [3, None, b"tabs", {"text": "tabs"}])
    def test_an_unknown_argument_is_reported(self, lab, wrong):
        with pytest.raises(InputError, match="text is a text or"):
            lab.remember(wrong)

    def test_feedback_takes_one_or_several(self, lab):
        lab.remember(["tabs", "tea"])
        assert lab.feedback(1, "success").memory == 1
        rows = [{"memory": 1, "outcome": "fail"}, {"memory": 2, "reward": 1.0}]
        assert [item.memory for item in lab.feedback(rows)] == [1, 2]
        with pytest.raises(InputError, match="other arguments are not allowed"):
            lab.feedback(rows, "success")


class TestForget:
    @pytest.fixture
    def three_notes(self, lab):
        lab.remember(
            [
                {"text": text, "project": "api", "session": "web"}
                for text in ("tabs", "spaces", "tea")
            ]
        )
        return lab

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("how", "arguments", "status"),
        [
            ("forget", {}, "forgotten"),
            ("delete", {}, "deleted"),
            ("deprecate", {"reason": "wrong"}, "deprecated"),
        ],
    )
    def test_each_way_has_a_status_and_restore_is_its_inverse(
        self, three_notes, how, arguments, status
    ):
        before = three_notes.memories.select("id", "status")
        assert three_notes.forget([1, 2], how=how, **arguments).ids == (1, 2)
        assert three_notes.memories["status"].to_list() == [status, status, "active"]
        assert {hit.id for hit in three_notes.recall("tabs spaces tea")} == {3}
        three_notes.restore([1, 2])
        assert three_notes.memories.select("id", "status").equals(before)

    def test_a_project_is_deleted_and_brought_back(self, three_notes):
        assert three_notes.forget(project="api", how="delete").ids == (1, 2, 3)
        assert three_notes.restore(project="api").ids == (1, 2, 3)

    @pytest.mark.long
    def test_a_quarantine_by_its_result_or_its_event(self, three_notes):
        done = three_notes.forget(how="quarantine", session="web", reason="odd", progress=False)
        assert set(three_notes.memories["status"]) == {"quarantined"}
        three_notes.restore(quarantine=done)
        event = three_notes.forget(how="quarantine", session="web", progress=False).event
        three_notes.restore(quarantine=event)
        assert set(three_notes.memories["status"]) == {"active"}

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({}, "takes memories"),
            ({"how": "deprecate", "reason": "x"}, "takes memories"),
            ({"memory": 1, "reason": "x"}, "takes no reason="),
            ({"memory": 1, "project": "api"}, "takes no project"),
            ({"memory": 1, "session": "web"}, "takes no session"),
            ({"memory": 1, "how": "quarantine", "session": "web"}, "and no memories"),
            ({"how": "quarantine"}, "at least one of source"),
            ({"memory": 1, "how": "hide"}, "hide"),
        ],
    )
    def test_incompatible_arguments_are_refused(self, three_notes, arguments, message):
        with pytest.raises(InputError, match=message):
            three_notes.forget(**arguments)
        assert set(three_notes.memories["status"]) == {"active"}

    def test_restore_takes_one_of_three(self, three_notes):
        with pytest.raises(InputError, match="needs exactly one of"):
            three_notes.restore(1, quarantine=3)


@pytest.mark.long
def test_a_viewer_of_the_past(lab):
    lab.agents("coder").remember("tabs are private")
    event = lab.io.store.state.seq
    lab.agents("coder").remember("so is tea")
    assert lab.at(event=event, viewer="agent:coder").memories.height == 1
    assert lab.at(event=event, viewer="agent:tester").memories.height == 0
    seen = lab.at(viewer="agent:coder")
    assert seen.memories.height == 2
    assert seen.at(viewer="agent:coder") is seen


class TestCommands:
    @pytest.fixture
    def filled(self, run):
        for text in ("tabs", "spaces", "tea"):
            run("remember", "a.memlab", text, "--session", "web")
        return "a.memlab"

    @pytest.mark.parametrize("name", sorted(FORMER))
    def test_a_former_command_names_the_new_one_and_has_its_help(self, run, name):
        if name == "restore":
            return  # with ids it is another command now
        done = run(name, "--help")
        assert done.exit_code == 0
        assert f"memlab {name} is now memlab {FORMER[name]};" in done.stderr
        assert "Usage:" in done.stdout

    @pytest.mark.long
    def test_former_commands_do_what_they_did(self, json_of, run, filled):
        assert [row["id"] for row in json_of("list", filled)] == [1, 2, 3]
        assert json_of("delete", filled, 1)["changed"][0]["status"] == "deleted"
        assert (
            json_of("deprecate", filled, 2, "it is wrong")["changed"][0]["status"] == "deprecated"
        )
        assert [row["status"] for row in json_of("undelete", filled, 1, 2)["changed"]] == [
            "active",
            "active",
        ]
        event = json_of("quarantine", filled, "--session", "web")["event"]
        assert len(json_of("release", filled, event)["changed"]) == 3
        assert json_of("use", filled, "cascade")["pack"] == "cascade"
        assert json_of("check", filled)["sound"]
        path = json_of("backup", filled)["path"]
        assert (
            json_of("restore", filled, path).keys()
            == json_of("upkeep", "restore", filled, path).keys()
        )
        assert run("deprecate", filled).exit_code == 2

    @pytest.mark.long
    def test_restore_brings_back_memories_by_their_ids(self, json_of, run, filled):
        json_of("forget", filled, 1, 2)
        done = run("restore", filled, 1, 2, "--json")
        assert (done.exit_code, done.stderr) == (0, "")
        assert {row["status"] for row in json_of("show", filled)} == {"active"}

    @pytest.mark.long
    def test_a_reason_comes_from_standard_input(self, json_of, filled):
        changed = json_of("deprecate", filled, 1, "-", input="it is wrong")["changed"]
        assert changed[0]["status"] == "deprecated"

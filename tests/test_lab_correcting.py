"""Editing, flagging, deleting and bringing back: each one event, and the journal tells it all."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
from embedders import letters

import memlab
from memlab.errors import InputError, LabError, PrivacyError, ReadOnlyLab, UnknownName
from memlab.kernel.schema import FIELDS, FIXED, RECALLABLE
from tests.displays import html_of

spawn = multiprocessing.get_context("spawn")


def kinds(lab):
    return [event.kind for event in lab.io.store.journal.events()]


def row(lab, id):
    return lab.memories.row(id - 1, named=True)


# -- editing --------------------------------------------------------------------------------------------------------


def test_a_field_is_changed_in_place(lab, clock):
    memory = lab.remember("tabs, not spaces", tags=["style"], importance=0.2)
    clock.advance(days=1)
    edited = lab.edit(
        memory, tags=["style", "editor"], importance=0.9, summary="tabs", branch="main", pinned=True
    )
    assert (edited.id, edited.tags, edited.superseded_by) == (1, ("style", "editor"), None)
    values = row(lab, 1)
    assert (values["importance"], values["summary"], values["branch"], values["pinned"]) == (
        0.9,
        "tabs",
        "main",
        True,
    )
    assert values["changed"] > values["created"]
    assert kinds(lab)[-1] == "edit"
    assert lab.edges["to"].to_list() == ["style", "editor"]


def test_none_removes_a_value(lab):
    memory = lab.remember(
        "tabs", tags=["x"], summary="s", branch="main", ttl_days=3, valid_from="2026-01-01"
    )
    lab.edit(
        memory,
        tags=None,
        summary=None,
        branch=None,
        ttl_days=None,
        valid_from=None,
        importance=None,
    )
    values = row(lab, 1)
    assert values["tags"] == []
    assert [values[name] for name in ("summary", "branch", "ttl_days", "valid_from")] == [None] * 4
    assert values["importance"] == 0.5


def test_another_text_is_another_memory_that_supersedes_the_old(lab, clock):
    old = lab.remember(
        "deploys on Tuesdays",
        kind="convention",
        tags=["ci"],
        project="api",
        importance=0.9,
        summary="s",
    )
    clock.advance(days=2)
    new = lab.edit(old, text="deploys on Wednesdays", tags=["ci", "release"])
    assert (new.id, new.text, new.kind, new.project, new.tags) == (
        2,
        "deploys on Wednesdays",
        "convention",
        "api",
        ("ci", "release"),
    )
    assert (lab[1].status, lab[1].superseded_by, lab[1].text) == (
        "superseded",
        2,
        "deploys on Tuesdays",
    )
    values = row(lab, 2)
    assert (values["provenance"], values["source"], values["importance"]) == (
        "user-corrected",
        "user-edit",
        0.9,
    )
    assert (values["summary"], new.dropped) == (None, ("summary",)), "it told the old words"
    assert values["created"].day == 3
    edge = lab.edges.filter(relation="supersedes").row(0, named=True)
    assert (edge["source"], edge["target"]) == (2, 1)
    assert lab.recall("when do deploys go out", project="api").ids == (2,)


@pytest.mark.parametrize("name", [name for name in FIXED if name not in ("text", "created")])
def test_changing_a_fixed_field_makes_a_new_memory(lab, name):
    old = lab.remember("tabs", **{name: "one"})
    assert lab.edit(old, **{name: "one"}).id == 1
    new = lab.edit(old, **{name: "two"})
    assert (new.id, new.text, getattr(new, name)) == (2, "tabs", "two")
    assert lab.edit(new, **{name: None}).id == 3


def test_the_same_text_is_no_new_memory(lab):
    memory = lab.remember("tabs")
    assert lab.edit(memory, text="tabs", importance=1.0).id == 1
    assert lab.edit(memory, text="tabs ").id == 2


def test_every_field_is_carried_over(lab):
    values = {
        "str": "x",
        "num": 0.5,
        "bool": True,
        "list": ["one", "two"],
        "time": "2026-02-03T04:05:06+00:00",
        "word": None,
    }
    columns = memlab.kernel.schema.MEMORY
    arguments = {}
    for name in FIELDS:
        column = columns[name]
        if name in ("text", "status", "origin", "provenance", "source"):
            continue
        if column.storage == "word":
            arguments[name] = column.words[0]
        elif column.storage == "num":
            arguments[name] = max(column.low, 1.0)
        else:
            arguments[name] = (
                '(recall "tabs?")' if name == "operations" else values.get(column.storage, "x")
            )
    lab.remember("a text", **arguments)
    of_its_words = ("summary", "subject", "predicate", "object", "value")
    assert set(lab.edit(1, text="another").dropped) == set(of_its_words)
    one, two = row(lab, 1), row(lab, 2)
    for name in arguments:
        assert two[name] == (None if name in of_its_words else one[name]), name


def test_editing_an_edited_memory_edits_its_successor(lab):
    lab.remember("a")
    lab.edit(1, text="b")
    assert lab.edit(1, text="c").id == 3
    assert lab.edit(1, importance=1.0).id == 3
    assert lab.memories["status"].to_list() == ["superseded", "superseded", "active"]
    assert lab.memories["superseded_by"].to_list() == [2, 3, None]


def test_the_words_of_the_past_stay_and_its_fields_can_be_edited(lab):
    old = lab.remember("Zoe lives in Oslo", subject="Zoe", predicate="lives-in", value="Oslo")
    now = lab.remember("Zoe lives in Rome", subject="Zoe", predicate="lives-in", value="Rome")
    lab.graph.link(now, old, "supersedes")
    change = {"ids": [1], "columns": {"status": "superseded", "superseded_by": 2.0}}
    with lab.io.store.writing() as tx:
        tx.event("resolve", {"set": [change]}, at=0)
    before = kinds(lab)
    with pytest.raises(InputError, match=r"superseded by memory 2, .* Edit memory 2"):
        lab.edit(old, text="Zoe lived in Bergen", value="Bergen")
    assert (len(lab), kinds(lab)) == (2, before)
    fixed = lab.edit(old, valid_until="2026-02-01")
    assert (fixed.id, fixed.status, fixed.superseded_by) == (1, "superseded", 2)


def test_a_correction_of_what_was_flagged_is_in_use(lab):
    lab.remember("tabs")
    lab.forget(1, how="deprecate", reason="wrong")
    assert lab.edit(1, text="spaces").status == "active"


def test_entities_follow_the_subject(lab):
    lab.remember("she likes tea", subject="Zoe", predicate="likes", value="tea")
    lab.edit(1, subject="Ada")
    mentions = lab.edges.filter(relation="mentions")["to"].to_list()
    assert mentions == ["Ada"]
    lab.edit(1, object="Zoe")
    assert sorted(lab.edges.filter(relation="mentions")["to"].to_list()) == ["Ada", "Zoe"]


def test_secrets_do_not_come_in_by_an_edit(lab):
    lab.remember("the deploy user")
    key = "AKIA" + "IOSFODNN7EXAMPLQ"
    new = lab.edit(1, text=f"the deploy key is {key}")
    assert key not in new.text
    assert "REDACTED" in new.text
    with pytest.raises(PrivacyError):
        lab.edit(1, tags=[key])
    with pytest.raises(PrivacyError):
        lab.forget(1, how="deprecate", reason=f"it is {key}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "to change"),
        ({"importance": 2}, "must be in 0..1"),
        ({"kind": "goatt"}, "kind"),
        ({"colour": "red"}, 'no field "colour"'),
        ({"status": "active"}, "status cannot be edited"),
        ({"at": "2026-01-01"}, "cannot be edited"),
        ({"text": " "}, "empty"),
        ({"tags": "x"}, "list of strings"),
    ],
)
def test_bad_edits_change_nothing(lab, arguments, message):
    lab.remember("tabs")
    before = kinds(lab)
    with pytest.raises(InputError, match=message):
        lab.edit(1, **arguments)
    assert kinds(lab) == before


@pytest.mark.long
@pytest.mark.parametrize("text", ["ab", "🐐" * 500, "שלום עולם", "x" * 1_000_000])
def test_texts_of_any_kind_and_length(lab, text):
    lab.remember("before")
    assert lab.edit(1, text=text).text == text


# -- deleting and restoring -----------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_flagged_memory_leaves_recall_and_its_succession_is_reviewed(lab):
    lab.remember("the office is in Rome")
    lab.edit(1, text="the office is in Oslo")
    done = lab.forget(2, how="deprecate", reason="it never moved")
    assert done.ids == (2,)
    assert done.frame.row(0, named=True)["before"] == "active"
    assert done.review.select("memory_id", "how", "text").rows() == [
        (1, "superseded by it", "the office is in Rome")
    ]
    assert lab.upkeep.review.related().equals(done.review)
    assert lab.upkeep.review.related(1).height == 1
    assert (row(lab, 2)["reason"], lab[2].status) == ("it never moved", "deprecated")
    assert lab.recall("office").ids == ()
    assert "review" in repr(done)
    assert "&lt;" in html_of(lab.forget(2, how="deprecate", reason="<b>"))
    lab.restore(2)
    assert lab.recall("office").ids == (2,)


def test_each_memory_is_restored_to_its_former_status(lab):
    lab.remember(["a", "b", "c"])
    with lab.io.store.writing() as tx:
        tx.event(
            "maintain",
            {"set": [{"ids": [1, 2], "columns": {"status": ["confirmed", "staged"]}}]},
            at=0,
        )
    lab.forget(2, how="deprecate", reason="doubtful")
    lab.forget([1, 2, 3], how="delete")
    assert lab.restore([1, 2, 3]).frame["status"].to_list() == ["confirmed", "deprecated", "active"]
    assert lab.restore(2).frame["status"].to_list() == ["staged"]
    assert len(lab.restore([1, 3])) == 2
    assert lab.memories["status"].to_list() == ["confirmed", "staged", "active"]


def test_a_whole_project_goes_and_comes_back(lab):
    lab.remember("ours", project="api")
    lab.remember([{"text": "a", "project": "web"}, {"text": "b", "project": "web"}])
    lab.forget(2)
    assert lab.forget(project="web", how="delete").ids == (2, 3)
    assert len(lab.forget(project="web", how="delete")) == 0
    assert lab.memories["status"].to_list() == ["active", "deleted", "deleted"]
    assert lab.restore(project="web").frame["status"].to_list() == ["forgotten", "active"]
    with pytest.raises(UnknownName, match="web"):
        lab.forget(project="wep", how="delete")
    with pytest.raises(InputError, match="either memories or a project"):
        lab.forget(how="delete")
    with pytest.raises(InputError, match="either memories or a project"):
        lab.restore(1, project="web")


@pytest.mark.long
@pytest.mark.parametrize("status", RECALLABLE)
def test_a_superseded_memory_is_inactive_while_its_successor_is_active(lab, status):
    lab.remember("deploys on mondays")
    lab.remember("deploys on fridays", status=status, linking="off")
    lab.graph.link(2, 1, "supersedes")
    assert [row(lab, id)["status"] for id in (1, 2)] == ["superseded", status]
    before = lab.memories
    with pytest.raises(InputError, match="superseded by memory 2, which is active"):
        lab.restore(1)
    assert lab.memories.equals(before)
    for leave in (
        lab.forget,
        lambda id: lab.forget(id, how="delete"),
        lambda id: lab.forget(id, how="deprecate", reason="wrong"),
    ):
        leave(2)
        assert lab.restore(1).frame["status"].to_list() == ["active"]
        assert row(lab, 1)["superseded_by"] is None
        lab.restore(2)
        assert row(lab, 2)["status"] in RECALLABLE
        lab.graph.link(2, 1, "supersedes", weight=0.5)
        assert row(lab, 1)["status"] == "superseded"


def test_deleted_memories_cannot_be_edited_and_superseded_ones_not_restored(lab):
    lab.remember("a")
    lab.edit(1, text="b")
    with pytest.raises(InputError, match="superseded by memory 2, which is active"):
        lab.restore(1)
    lab.forget(2, how="delete")
    before = kinds(lab)
    for change in (
        lambda: lab.edit(2, text="c"),
        lambda: lab.forget(2),
        lambda: lab.forget(2, how="deprecate", reason="x"),
    ):
        with pytest.raises(InputError, match="Restore it first"):
            change()
    with pytest.raises(UnknownName):
        lab.forget([1, 99], how="delete")
    assert kinds(lab) == before


def test_a_lab_that_is_read_only_stays_as_it_is(disk):
    with disk() as lab:
        lab.remember("a")
    with disk(read_only=True) as lab:
        for verb in (lab.forget, lambda id: lab.forget(id, how="delete"), lab.restore, lab.purge):
            with pytest.raises(ReadOnlyLab):
                verb(1)
        with pytest.raises(ReadOnlyLab):
            lab.edit(1, text="b")


def edit_many(path: Path, name: str, barrier) -> None:
    with memlab.open(path, embedder=letters) as lab:
        barrier.wait(60)
        for number in range(12):
            lab.edit(1, text=f"{name} says {number}", tags=[name])
            lab.edit(1, importance=number / 100)


@pytest.mark.long
def test_two_processes_edit_one_memory_the_last_counts_and_both_are_kept(tmp_path):
    path, barrier = tmp_path / "agent.memlab", spawn.Barrier(2)
    with memlab.open(path, embedder=letters) as lab:
        lab.remember("as it was")
    workers = [
        spawn.Process(target=edit_many, args=(path, name, barrier)) for name in ("ada", "bob")
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0]
    with memlab.open(path, embedder=letters) as lab:
        table = lab.memories
        assert table.height == 25
        assert table["status"].to_list() == ["superseded"] * 24 + ["active"]
        assert table["superseded_by"].to_list() == [*range(2, 26), None]
        for name in ("ada", "bob"):
            said = [text for text in table["text"] if text.startswith(name)]
            assert said == [f"{name} says {number}" for number in range(12)]
        assert table["text"][-1].endswith("says 11")
        assert table["importance"][-1] == 0.11


# -- backups --------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_backup_opens_as_a_lab_and_three_are_kept(disk, trigrams, tmp_path, clock):
    with disk() as lab:
        for number in range(5):
            lab.remember(f"memory {number}", tags=["x"])
            lab.recall("memory")
            result = lab.io.backup()
            clock.advance(days=1)
        assert result.frame["event"].is_sorted()
        assert result.frame.height == 3
        assert result.size > 1000
        assert result.path.parent == tmp_path / "agent.memlab" / "backups"
        with memlab.open(result.path, embedder=trigrams) as copy:
            assert copy.memories.equals(lab.memories)
            assert copy.edges.equals(lab.edges)
            assert copy.slates().decisions.collect().height == 5
            copy.remember("its own way")
        assert len(lab) == 5
        assert lab.io.backup(keep=1).frame.height == 1


@pytest.mark.long
def test_a_lab_in_memory_is_saved_by_a_backup(lab, trigrams, tmp_path):
    lab.remember("a")
    with pytest.raises(InputError, match="in memory"):
        lab.io.backup()
    with memlab.open(lab.io.backup(tmp_path / "kept").path, embedder=trigrams) as copy:
        assert copy.memories.equals(lab.memories)


@pytest.mark.long
def test_backups_are_made_on_opening_once_a_day_and_on_closing_if_there_is_something_new(
    disk, tmp_path, clock
):
    def backup_numbers():
        return sorted(
            int(path.name.split("-")[1])
            for path in (tmp_path / "agent.memlab" / "backups").iterdir()
        )

    with disk(backups=True) as lab:
        assert backup_numbers() == [1]
        lab.remember("a")
    assert backup_numbers() == [1, 2]
    with disk(backups=True):
        assert backup_numbers() == [1, 2]
    assert backup_numbers() == [1, 2]
    with disk() as lab:
        lab.remember("b")
    clock.advance(hours=2)
    with disk(backups=True):
        assert backup_numbers() == [1, 2]
    assert backup_numbers() == [1, 2, 3]
    with disk() as lab:
        lab.remember("c")
    clock.advance(days=2)
    with disk(backups=True):
        assert backup_numbers() == [2, 3, 4]
    with pytest.raises(InputError, match="backups=True"):
        memlab.open(backups=True)
    with pytest.raises(InputError, match="backups=True"):
        disk(backups=True, read_only=True)


@pytest.mark.long
def test_a_place_that_is_a_file_is_refused_and_nothing_else_is_removed(disk, tmp_path):
    (tmp_path / "file").touch()
    other = tmp_path / "kept" / "backup-of-photos"
    other.mkdir(parents=True)
    with disk() as lab:
        lab.remember("a")
        with pytest.raises(LabError, match=r"A backup in .* cannot be written"):
            lab.io.backup(tmp_path / "file")
        with pytest.raises(InputError, match="keep"):
            lab.io.backup(keep=0)
        for _ in range(3):
            lab.io.backup(tmp_path / "kept", keep=1)
    assert other.exists()
    with disk(read_only=True) as lab, pytest.raises(ReadOnlyLab):
        lab.io.backup()

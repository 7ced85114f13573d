"""What was purged is nowhere: not in a byte of any file below the lab, whatever kept it and whenever a process died."""

from __future__ import annotations

import io
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest
from embedders import letters
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from properties import examples

import memlab
from memlab.errors import InputError, LabBusy, LabError, PrivacyError, UnknownName
from memlab.kernel.state import State
from memlab.kernel.verbs.corrections.editing import find_latest_version
from memlab.kernel.verbs.projections import new_state
from memlab.subjects.purge.planning import tombstones_of
from memlab.subjects.purge.traces import search_files, search_terms
from tests.displays import html_of

TEXT = "The xylophonist Zanzibarov keeps his quokkas in a shed"
FIELDS = {
    "tags": ["quokkatag", "town"],
    "project": "acmeproj",
    "session": "secretsession",
    "speaker": "Ottokarla",
    "summary": "Wombats and quokkas live there",
    "subject": "Zanzibarov",
    "predicate": "keeps",
    "object": "Numbatson",
    "title": "Quokkakeeping",
    "steps": ["quokkastep"],
    "files": ["src/quokka.py"],
    "triggers": ["quokkatrigger"],
    "ref": "ref-quokka",
    "reason": "heard from Quollina",
    "branch": "quokkabranch",
    "creator": "agent:quokka",
}
WORDS = (
    *(
        "xylophon",
        "zanzibarov",
        "quokka",
        "wombat",
        "bettongia",
        "pademelon",
        "numbatson",
        "quollina",
    ),
    *("secretsession", "ottokarla", "acmeproj"),
)


def contents(file: Path) -> bytes:
    """Return the bytes of a file, and their decompressed content."""
    data = file.read_bytes()
    if file.suffix == ".parquet":
        return data + str(pl.read_parquet(io.BytesIO(data)).to_dict(as_series=False)).encode()
    if file.suffix == ".npz":
        with np.load(io.BytesIO(data)) as arrays:
            return data + b"".join(arrays[name].tobytes() for name in arrays)
    if file.suffix == ".db":
        results = [data]
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            for (table,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            ).fetchall():
                for row in connection.execute(f"SELECT * FROM {table}"):
                    results += [
                        value if isinstance(value, bytes) else str(value).encode() for value in row
                    ]
        return b"\n".join(results)
    return data


def traces(folder: Path, words=WORDS) -> set[str]:
    """Return the words that occur in any file below ``folder``, in any case, with the files."""
    unique = set()
    for file in folder.rglob("*"):
        if file.is_file():
            held = contents(file).lower()
            unique |= {
                f"{word} in {file.relative_to(folder)}" for word in words if word.encode() in held
            }
    return unique


def fill(lab, *, clock=None) -> None:
    """Fill a lab in which memory 1 and its correction 4, used everywhere, are to be purged."""
    lab.remember(TEXT, **FIELDS)
    lab.remember("A fair in the town", tags=["town"], context=f"before that: {TEXT}. So he said.")
    lab.remember("Nothing of the sort", tags=["other"])
    lab.edit(1, text="The xylophonist feeds a pademelon", summary="Bettongia")
    lab.graph.link(2, 1)
    lab.graph.link(2, 3)
    lab.edit(3, tags=["other", "late"], importance=0.75)
    lab.recall(TEXT)
    lab.recall("fair", session="secretsession")
    lab.recall("fair", project="acmeproj")
    lab.recall("fair", where=pl.col("project") != "acmeproj")
    lab.feedback(2, "success")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "agent.memlab"


def everywhere(lab, monkeypatch):
    """Write snapshots, sealed slates and backups."""
    monkeypatch.setattr("memlab.kernel.storage.store._SEAL_EVERY", 2)
    lab.slates().collect()
    assert lab.io.store.journal.segments()
    lab.io.snapshot()
    lab.io.backup()


# -- nothing is left ------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_no_byte_is_left(disk, folder, monkeypatch):
    with disk() as lab:
        fill(lab)
        everywhere(lab, monkeypatch)
        there = {trace.split(" in ")[1].split("/")[0] for trace in traces(folder)}
        assert there >= {"journal.db", "backups", "snapshots"}
        vector = lab.io.store.state.vectors.take(np.array([0])).tobytes()
        assert any(vector in contents(file) for file in folder.rglob("*") if file.is_file())

        done = lab.purge([1, 4], reason="he asked for it")
        assert (done.ids, len(done)) == ((1, 4), 2)
        assert traces(folder) == set()
        assert not any(vector in contents(file) for file in folder.rglob("*") if file.is_file())
        assert [path.name[:13] for path in (folder / "backups").iterdir()] == ["backup-000002"]
        lab.slates().collect()
        lab.io.snapshot()
    assert traces(folder) == set()
    with disk() as lab:
        lab.remember("afterwards")
        assert traces(folder) == set()


@pytest.mark.long
def test_a_purged_row_keeps_its_numbers_and_a_tombstone(disk):
    with disk() as lab:
        fill(lab)
        before = lab.memories
        lab.purge([1, 4], reason="he asked for it")
        after = lab.memories
        for id in (1, 4):
            row, was = after.row(id - 1, named=True), before.row(id - 1, named=True)
            assert row["status"] == "purged"
            assert row["text"] == ""
            assert row["tags"] == []
            for name in FIELDS:
                assert row[name] in (None, []), name
            for name in ("kind", "created", "importance", "access", "provenance", "accessed"):
                assert row[name] == was[name], name
        lived = ["text", "tags", "importance", "status", "access", "success", "created", "summary"]
        assert after[1:3].select(lived).equals(before[1:3].select(lived))
        assert after["context"][1] == "before that: . So he said."
        tombstones = tombstones_of(lab.io.store.state)
        assert tombstones.is_purged(TEXT)
        assert tombstones.is_purged(f" {TEXT.replace(' ', chr(10))}")
        assert not tombstones.is_purged("A fair in the town")
        assert [event.kind for event in lab.io.store.journal.events()][-1] == "purge"
        decisions = lab.slates().decisions.collect()
        assert decisions["query"].to_list() == ["", "fair", "fair", "fair"]
        assert "acmeproj" not in str(decisions.to_dicts())


def test_remaining_traces_are_listed(lab):
    lab.remember("one")
    lab.edit(1, text="two")
    lab.remember("a summary of two")
    lab.graph.link(3, 2, "derived-from")
    done = lab.purge(2)
    assert sorted(done.review.select("memory_id", "how").rows()) == [
        (1, "superseded by it"),
        (3, "derived from it"),
    ]
    assert "2 to review" in repr(done)
    assert done.frame.filter(step="removed", what="memories")["count"].to_list() == [1]
    assert "review" in html_of(done)


@pytest.mark.long
def test_the_lab_goes_on(lab):
    fill(lab)
    edges = lab.edges.filter((pl.col("source").is_in([2, 3])) & (pl.col("to_kind") == "tag"))
    lab.purge(1)
    lab.purge(4)
    texts = ["source", "to", "relation", "weight", "created", "edge"]
    assert lab.edges.filter(pl.col("to_kind") == "tag").select(texts).equals(edges.select(texts))
    assert lab.recall("fair in the town").ids
    assert lab.recall("xylophonist quokkas", status=["purged", "active"]).frame.height
    lab.graph.stats(progress=False)
    lab.graph.similar(2)
    lab.graph.trace(2)
    lab.upkeep.maintain(progress=False)
    new = lab.remember("the goat of the town", tags=["town"])
    assert lab.recall("goat")[0].id == new.id


def texts_of_the_past(lab):
    """Return the memories of the past state that the lab keeps between recalls of logged questions."""
    return str(lab._questions._past._state.memories().to_dicts()).lower()


@pytest.mark.long
def test_a_recall_of_the_past_knows_it_no_more(lab):
    fill(lab)
    pack = memlab.load_pack("cascade")
    logged_queries = lab.slates().decisions.collect().to_dicts()
    assert lab.policies.recall_again(logged_queries[1], pack) is not None
    assert "xylophon" in texts_of_the_past(lab)
    lab.purge([1, 4])
    assert (
        lab.policies.recall_again(logged_queries[0], pack) is None
    )  # the question itself was the text
    assert lab.policies.recall_again(logged_queries[1], pack) is not None
    assert "xylophon" not in texts_of_the_past(lab)


@pytest.mark.long
def test_a_lab_of_the_past_that_is_open_knows_it_no_more(lab):
    fill(lab)
    past = lab.at(event=lab.io.store.journal.head)
    assert past[1].text == TEXT
    lab.purge([1, 4])
    assert past[1].text == ""
    assert all(tag.startswith("[purged ") for tag in past.memories["tags"][0])
    assert past.recall("fair in the town").ids


# -- the questions ------------------------------------------------------------------------------------------------


def logged_queries(lab):
    return lab.slates().decisions.collect()["query"].to_list()


@pytest.mark.long
def test_a_question_that_quotes_a_part_goes_and_one_that_another_memory_explains_stays(lab):
    lab.remember("The xylophonist Zanzibarov keeps 17 quokkas in a shed in Ghent")
    lab.remember("There is a shed in Ghent with a leaking roof")
    quoting = [
        "who keeps 17 QUOKKAS in there?",
        "where does zanzibarov live",
        "is the xylophonist  zanz",
    ]
    staying = ["what about a shed in Ghent with a roof", "who keeps anything", "quokkas"]
    for question in (*quoting, *staying):
        lab.recall(question)
    done = lab.purge(1)
    assert logged_queries(lab) == ["", "", "", *staying]
    assert done.questions == 3
    assert done.frame.filter(what="questions")["count"].item() == 3


# -- what is purged -------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_project_goes_with_the_questions_that_were_asked_in_it(disk, folder):
    with disk() as lab:
        fill(lab)
        lab.recall("where are the bettongia", project="acmeproj")
        done = lab.purge(project="acmeproj")
        assert done.ids == (1, 4)
        assert traces(folder) == set()
        assert lab.slates().decisions.collect()["query"].to_list() == ["", "fair", "", "fair", ""]


@pytest.mark.long
def test_a_session_goes_with_the_questions_that_were_asked_in_it(disk, folder):
    with disk() as lab:
        fill(lab)
        lab.recall("what was it again", session="secretsession")
        done = lab.purge(session="secretsession")
        assert done.ids == (1, 4)
        assert done.found.is_empty()
        assert traces(folder) == set()
        assert logged_queries(lab) == ["", "", "fair", "fair", ""]


@pytest.mark.long
def test_a_creators_memories_are_purged_with_the_queries_of_that_viewer(lab):
    lab.remember("Fennel tops for the rabbit", creator="agent:coder")
    lab.remember("Hay for the rabbit", creator="agent:vet")
    lab.recall("the rabbit", viewer="agent:coder")
    lab.recall("the rabbit", viewer="agent:vet")
    assert lab.purge(creator="agent:coder").ids == (1,)
    assert logged_queries(lab) == ["", "the rabbit"]
    assert "agent:coder" not in str(lab.slates().decisions.collect().to_dicts())


@pytest.mark.long
def test_a_subject_goes_under_all_its_names(disk, folder):
    with disk() as lab:
        lab.facts.add("Adele Quuxley", "likes", "goat cheese")
        lab.facts.add("A. Quuxley", "lives in", "Ostend")
        lab.facts.add("Bob", "likes", "tea")
        lab.remember("Someone saw Adele Quuxley at the fair")
        lab.facts.entities.declare("Adele Quuxley", type="person", aliases=["Della"])
        lab.facts.entities.merge("A. Quuxley", "Adele Quuxley")
        lab.facts.add("della", "speaks", "Dutch")
        lab.recall("what does Della like")
        lab.recall("what does Bob like")
        lab.io.snapshot()
        lab.io.backup()
        done = lab.purge(subject="DELLA")
        assert done.ids == (1, 2, 5)
        assert traces(folder, ["goat cheese", "ostend", "della", "a. quuxley", "dutch"]) == set()
        assert done.found.rows() == [
            ("a name", "memory 4", 1, "contains it too, and was not purged")
        ]
        assert logged_queries(lab) == ["", "what does Bob like"]
        assert "Bob" in lab.facts.entities.frame()["name"].to_list()
        live = content_of(lab.io.store.state)
    with disk() as lab:
        assert content_of(lab.io.store.state) == live


@pytest.mark.long
def test_names_narrow_each_other(lab):
    for project in ("web", "api"):
        for session in ("monday", "friday"):
            lab.remember(f"{project} on {session}", project=project, session=session)
    lab.recall("which", project="web", session="monday")
    lab.recall("which", project="api", session="monday")
    assert lab.purge(project="web", session="monday").ids == (1,)
    assert logged_queries(lab) == ["", "which"]
    assert lab.slates().decisions.collect()["project"].to_list() == ["web", "api"]
    assert lab.purge(project="web", session="monday").ids == ()
    assert lab.purge(session="monday").ids == (3,)
    for wrong in ({"session": "tuesday"}, {"creator": "nobody"}, {"subject": "Nobody"}):
        with pytest.raises(UnknownName):
            lab.purge(**wrong)


def test_overdue_deletions(lab, clock):
    lab.remember(["a", "b", "c"])
    lab.forget(1, how="delete")
    clock.advance(days=29)
    lab.forget(2, how="delete")
    assert lab.purge(overdue=True).ids == ()
    clock.advance(days=1)
    assert lab.purge(overdue=True).ids == (1,)
    clock.advance(days=-300)
    assert lab.purge(overdue=True).ids == ()
    assert lab.memories["status"].to_list() == ["purged", "deleted", "active"]


def test_twice_is_once(lab):
    lab.remember("a")
    lab.purge(1)
    head = lab.io.store.journal.head
    assert lab.purge(1).ids == ()
    assert lab.io.store.journal.head == head
    lab.remember("b")
    linked = (lambda: lab.graph.link(1, 2), lambda: lab.graph.link(2, 1, "supersedes"))
    for verb in (
        lambda: lab.restore(1),
        lambda: lab.edit(1, text="b"),
        lambda: lab.forget(1),
        *linked,
    ):
        with pytest.raises(InputError, match="is purged"):
            verb()
    assert len(lab.forget(1, how="delete")) == 0
    assert lab[1].status == "purged"


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"memory": 1, "overdue": True},
        {"project": "x", "overdue": True},
        {"memory": 1, "session": "x"},
    ],
)
def test_a_preview_lists_exactly_what_is_purged(lab, wrong):
    lab.remember("a", project="x")
    with pytest.raises(InputError, match="exactly one"):
        lab.purge(**wrong)
    with pytest.raises(UnknownName):
        lab.purge(2)
    with pytest.raises(PrivacyError):
        lab.purge(1, reason="AKIA" + "IOSFODNN7EXAMPLQ")
    assert lab[1].status == "active"


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    ["ab", "🐐 quokkagoat שלום", pytest.param("quokkaword " * 90_000, marks=pytest.mark.slow)],
)
def test_texts_of_any_length_and_script(disk, folder, text):
    with disk() as lab:
        lab.remember("before", tags=[f"town{number}" for number in range(10_000)])
        lab.remember(text)
        lab.purge([1, 2])
        assert traces(folder, ["quokka", "שלום", "town77"]) == set()
        assert lab.memories["text"].to_list() == ["", ""]


@pytest.mark.long
def test_a_backup_somewhere_else_is_reached_or_the_purge_is_not_ended(disk, folder, tmp_path):
    kept = tmp_path / "kept"
    with disk() as lab:
        fill(lab)
        lab.io.backup(kept)
        lab.purge([1, 4])
        assert traces(kept) == set()
        assert len(list(kept.iterdir())) == 1
        shutil.rmtree(kept)
        with pytest.raises(LabError, match="cannot be reached"):
            lab.purge(2)
        assert lab[2].status == "purged"
    with pytest.warns(UserWarning, match="is not complete"):
        disk().close()
    kept.mkdir()
    disk().close()
    with disk() as lab:
        assert not lab.io.store.journal.meta("purging")


@pytest.mark.long
def test_a_snapshot_from_before_is_not_believed(disk, folder, tmp_path):
    with disk() as lab:
        fill(lab)
        lab.io.snapshot()
        shutil.copytree(folder / "snapshots", tmp_path / "old")
        lab.purge([1, 4])
    shutil.rmtree(folder / "snapshots", ignore_errors=True)
    shutil.copytree(tmp_path / "old", folder / "snapshots")
    with (
        pytest.warns(memlab.DamageWarning, match="belongs to another history"),
        disk(read_only=True) as lab,
    ):
        assert lab[1].text == ""


# -- the receipt ----------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_receipt_says_what_went_from_where_and_that_a_search_found_nothing(
    disk, monkeypatch, tmp_path
):
    with disk() as lab:
        fill(lab)
        everywhere(lab, monkeypatch)
        lab.io.backup(tmp_path / "kept")
        lab.io.mirror(tmp_path / "copy")
        assert traces(tmp_path / "copy")
        done = lab.purge([1, 4], reason="he asked for it")
        files = sum(file.is_file() for file in tmp_path.rglob("*"))
        assert done.found.is_empty()
        assert traces(tmp_path) == set()
        counts = dict(
            done.frame.filter(step="removed").group_by("what").agg(pl.col("count").sum()).rows()
        )
        some = {what: counts.pop(what) for what in ("edges", "names")}
        assert min(some.values()) > 0
        assert counts == {
            "memories": 2,
            "events": done.events,
            "slates": done.slates,
            "questions": 1,
            "vectors": 2,
            "snapshots": 1,
            "indexes": 0,
            "backups": 2,
            "mirrors": 1,
        }
        assert done.frame.filter(what="mirrors")["how"].to_list() == ["updated"]
        (searched,) = done.frame.filter(step="searched").rows(named=True)
        assert searched["count"] == files
        assert searched["bytes"] > 10_000
        for shown in (repr(done), html_of(done), done.frame.write_csv()):
            assert not [word for word in WORDS if word in shown.lower()]
        assert "found    nothing" in repr(done)


@pytest.mark.long
@pytest.mark.parametrize("name", ["out.jsonl", "out.md", "out.sexp", "out.parquet", "tables"])
def test_an_export_is_known_and_named_or_removed(disk, tmp_path, name):
    with disk() as lab:
        fill(lab)
        path = lab.io.export(tmp_path / name, format="parquet" if name == "tables" else None)
        lab.io.export(tmp_path / "other.md", where=pl.col("id") == 3)
        # left by a process that was killed
        (tmp_path / f".{name}.999999999.draft").write_text(TEXT)
        done = lab.purge(4)
        assert {Path(where).relative_to(tmp_path).parts[0] for where in done.found["where"]} == {
            name
        }
        assert all("an export, which is kept" in how for how in done.found["how"])
        assert path.exists()
        assert not list(tmp_path.glob(".*.draft"))
        done = lab.purge(1, remove_exports=True)
        assert done.found.is_empty()
        assert not path.exists()
        assert done.frame.filter(step="removed", what="exports")["where"].to_list() == [str(path)]
        assert lab.purge(2).found.is_empty()


@pytest.mark.long
def test_an_export_that_is_gone_is_told_and_one_that_failed_is_not_listed(lab, tmp_path):
    lab.remember("The quokka sleeps in the shed")
    lab.remember("The wombat digs behind the shed")
    lab.io.export(tmp_path / "a.md").unlink()
    with pytest.raises(InputError):
        lab.io.export(tmp_path)
    done = lab.purge(1)
    assert done.found["how"].to_list() == ["not there: it was moved, renamed or removed"]


def test_a_memory_that_says_the_same_is_told(lab):
    lab.remember("The quokka sleeps in the shed")
    lab.remember("Once more: The quokka sleeps in the shed, he said")
    done = lab.purge(1)
    assert done.found.rows() == [
        ("text of memory 1", "memory 2", 1, "contains it too, and was not purged")
    ]


@pytest.mark.long
def test_a_mirror_that_cannot_be_written_or_is_not_there_is_told_and_reached_later(disk, tmp_path):
    with disk() as lab:
        fill(lab)
        lab.io.mirror(tmp_path / "copy").stop()
        lab.io.mirror(tmp_path / "away").stop()
        (tmp_path / "away").rename(tmp_path / "moved")
        (tmp_path / "copy" / "diary.txt").write_text("mine")
        done = lab.purge([1, 4])
        assert done.frame["step"].unique(maintain_order=True).to_list() == [
            "removed",
            "searched",
            "found",
        ]
        problems = {
            Path(row["where"]).name: row["how"]
            for row in done.found.filter(what="mirror").to_dicts()
        }
        assert problems["away"] == "not there"
        assert "contains diary.txt" in problems["copy"]
        assert "file" in done.found.filter(what="text of memory 4")["how"].to_list()
    (tmp_path / "moved").rename(tmp_path / "away")
    with pytest.warns(UserWarning, match="diary"):
        disk().close()
    assert traces(tmp_path / "away") == set()
    assert traces(tmp_path / "copy")
    (tmp_path / "copy" / "diary.txt").unlink()
    disk().close()
    assert traces(tmp_path) == set()


@pytest.mark.parametrize("kind", ["db", "free", "parquet", "npz", "zip", "txt", "json", "msgpack"])
def test_a_search_finds_a_part_of_a_text_and_a_name_in_every_form(tmp_path, kind):
    text = f"he said: {TEXT[10:]} \u2026"
    file = tmp_path / f"held.{'db' if kind == 'free' else kind}"
    if file.suffix == ".db":
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            connection.execute("PRAGMA secure_delete=OFF")
            connection.execute("CREATE TABLE note (id INTEGER PRIMARY KEY, said TEXT, town TEXT)")
            connection.execute("INSERT INTO note VALUES (7, ?, 'acmeproj')", (text,))
            if kind == "free":
                connection.execute("DELETE FROM note")
    elif kind == "parquet":
        pl.DataFrame({"acmeproj": [text], "name": [["acmeproj"]]}).write_parquet(file)
    elif kind == "npz":
        np.savez_compressed(file, said=np.array([text, "acmeproj"]))
    elif kind == "zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as opened:
            opened.writestr("a.json", f'{{"acmeproj": 1, "of": "acmeproj", "said": "{text}"}}')
    else:
        value = {"acmeproj": 1, "of": "acmeproj", "said": text}
        file.write_bytes(
            msgspec.msgpack.encode(value) if kind == "msgpack" else msgspec.json.encode(value)
        )
    (tmp_path / "keys.json").write_text('{"acmeproj": 1, "sedan": "acmeprojects"}')
    stays = pl.DataFrame({"id": [2], "text": ["nothing of the sort"]})
    done = search_files([tmp_path], search_terms({4: TEXT}, ["acmeproj"], stays, ()))
    assert {trace.file for trace in done.traces} == {file}
    what = {trace.what for trace in done.traces}
    assert what == ({"text of memory 4"} if kind == "free" else {"text of memory 4", "a name"})
    assert (done.files, done.opaque) == (2, 0)
    same = pl.DataFrame({"id": [2], "text": [f"as he says: {TEXT}"]})
    assert search_terms({4: TEXT}, ["acmeproj"], same, {"acmeproj"}).stated == (
        (2, "text of memory 4"),
    )


# -- several processes ----------------------------------------------------------------------------------------------

CHILD = """
import sys
sys.path.insert(0, {tests!r})
import memlab
from embedders import letters
lab = memlab.open({path!r}, embedder=letters)
{work}
"""


def child(path: Path, work: str) -> subprocess.Popen:
    code = CHILD.format(tests=str(Path(__file__).parent), path=str(path), work=work)
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(process: subprocess.Popen) -> int:
    _, said = process.communicate(timeout=120)
    assert process.returncode in (0, -signal.SIGKILL), said
    return process.returncode


@pytest.mark.long
def test_a_lab_that_is_open_elsewhere_forgets_it_too(disk, folder):
    with disk() as lab:
        fill(lab)
        lab.io.snapshot()
        assert lab[1].text == TEXT
        ended(child(folder, "lab.purge([1, 4]); lab.remember('from the other'); lab.close()"))
        assert lab[1].text == ""
        assert lab[5].text == "from the other"
        assert lab.recall("fair in the town").ids
        lab.remember("from here")
        lab.io.snapshot()
        lab.slates().collect()
        assert traces(folder) == set()
        live = lab.memories
    with disk() as lab:
        assert lab.memories.equals(live)


KILLED = """
import os, signal
left = [{step}]
def count(event, arguments):
    if event in ("shutil.rmtree", "os.remove", "os.rmdir", "os.rename", "os.mkdir", "sqlite3.connect", "fcntl.flock"):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
import sys
sys.addaudithook(count)
lab.purge([1, 4])
sys.exit(0)
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "step",
    [3, 24, *(pytest.param(step, marks=pytest.mark.slow) for step in (2, 6, 14, 19, 28, 30, 33))],
)
def test_killed_anywhere_it_is_not_begun_or_is_ended_by_the_next_opening(
    disk, folder, monkeypatch, step
):
    with disk() as lab:
        fill(lab)
        everywhere(lab, monkeypatch)
    ended(child(folder, KILLED.format(step=step)))
    with disk() as lab:
        texts = lab.memories["text"].to_list()
        if texts[0] == TEXT:
            assert lab[1].status == "superseded"
            assert lab[4].status == "active"
            assert lab.purge([1, 4]).ids == (1, 4)
        assert [lab[id].status for id in (1, 4)] == ["purged", "purged"]
        assert traces(folder) == set()
        assert not lab.io.store.journal.meta("purging")
    assert traces(folder) == set()


@pytest.mark.long
@pytest.mark.parametrize(
    "delay", [0.01, *(pytest.param(delay, marks=pytest.mark.slow) for delay in (0.0, 0.03, 0.06))]
)
def test_killed_at_any_moment(disk, folder, monkeypatch, delay):
    with disk() as lab:
        fill(lab)
        everywhere(lab, monkeypatch)
    process = child(folder, "print('now', flush=True); lab.purge([1, 4]); import os; os._exit(0)")
    assert process.stdout.readline() == "now\n"
    try:
        process.wait(delay)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
    ended(process)
    with disk() as lab:
        if lab[1].status != "purged":
            assert lab[1].text == TEXT
            lab.purge([1, 4])
    assert traces(folder) == set()


@pytest.mark.long
def test_a_purge_waits_for_the_writer_of_a_snapshot(disk, monkeypatch):
    monkeypatch.setattr("memlab.subjects.purge.purge.PURGE_TIMEOUT", 0.1)
    with disk() as lab, disk() as other:
        lab.remember("a")
        with other.io.store.derived.hold(1), pytest.raises(LabBusy):
            lab.purge(1)
        assert lab[1].status == "active"
        assert lab.purge(1).ids == (1,)


# -- any life -------------------------------------------------------------------------------------------------------

verbs = st.sampled_from(
    [
        "remember",
        "remember",
        "text",
        "fields",
        "forget",
        "delete",
        "restore",
        "purge",
        "link",
        "say",
    ]
)
names = st.sampled_from(["goat", "sea", "bakery", "tabs"])


def fold_of(lab, *cuts) -> State:
    state, journal = new_state(), lab.io.store.journal
    for after, upto in zip((0, *cuts), (*cuts, journal.head), strict=True):
        state.fold(journal.events(after=after, upto=upto), journal)
    return state


def stands_for(lab, id: int) -> int:
    return find_latest_version(lab.io.store.state, id - 1) + 1


def content_of(state: State):
    registers = {
        name: msgspec.msgpack.encode(register.dump())
        for name, register in state.projections.items()
    }
    rows = np.arange(len(state))
    return (
        state.memories().to_dicts(),
        state.edge_frame().drop("target", "to").to_dicts(),
        state.uses.values.tolist(),
        state.vectors.take(rows).tolist(),
        state.words.lengths.tolist(),
        registers,
        state.nodes.vocabularies(),
    )


@pytest.mark.long
@given(
    st.lists(st.tuples(verbs, st.integers(0, 9), names, names), min_size=3, max_size=14), st.data()
)
@examples(
    25, quick=8, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
def test_after_any_corrections_the_fold_of_a_prefix_and_the_rest_is_the_fold_of_all(
    trigrams, life, data
):
    clock = memlab.ManualClock("2026-03-01")
    with memlab.open(embedder=trigrams, clock=clock) as lab:
        purged: set[int] = set()
        for verb, which, one, two in life:
            clock.advance(hours=1)
            id = which % max(len(lab), 1) + 1
            status = lab[id].status if len(lab) else None
            if verb == "remember":
                lab.remember(f"{one} {two}", tags=[one, two], session=one, subject=two, chain=True)
            elif status is None:
                continue
            elif verb == "say":
                lab.recall(f"{one} {two}", session=one)
            elif verb == "link" and id > 1:
                if {1, id} & purged:
                    with pytest.raises(InputError, match="is purged"):
                        lab.graph.link(id, 1, "supersedes")
                else:
                    lab.graph.link(id, 1, "supersedes")
            elif verb == "purge":
                ids = sorted({id, which % 3 + 1} & set(range(1, len(lab) + 1)) - purged)
                rest = pl.col("id").is_in([*purged, *ids]).not_()
                before, edges = lab.memories.filter(rest), lab.edges
                lab.purge(ids)
                purged.update(ids)
                assert lab.memories.filter(rest).equals(before)
                lived = (pl.col("to_kind") != "memory") | pl.col("target").is_in(
                    list(purged)
                ).not_()
                lived &= pl.col("source").is_in(list(purged)).not_()
                texts = ["edge", "source", "relation", "weight", "reinforcements", "created", "to"]
                assert lab.edges.select(texts).equals(edges.filter(lived).select(texts))
            elif verb != "restore" and {"purged", "deleted"} & {
                status,
                lab[stands_for(lab, id)].status,
            }:
                continue
            elif verb == "text":
                lab.edit(id, text=f"{two} {one}", tags=[one])
            elif verb == "fields":
                lab.edit(id, tags=[two], summary=one, branch=None)
            elif verb == "restore" and status not in ("purged", "superseded"):
                lab.restore(id)
            elif verb in ("forget", "delete"):
                lab.forget(id, how=verb)
        whole = content_of(fold_of(lab))
        assert content_of(lab.io.store.state) == whole
        cut = data.draw(st.integers(0, lab.io.store.journal.head))
        assert content_of(fold_of(lab, cut)) == whole


@pytest.mark.long
def test_reopening_equals_the_live_state(disk):
    with disk() as lab:
        fill(lab)
        lab.purge([1, 4])
        lab.edit(3, text="something else")
        lab.forget(2)
        live = content_of(lab.io.store.state)
        lab.io.snapshot()
    for _ in range(2):
        with disk() as lab:
            assert content_of(lab.io.store.state) == live
        with closing(sqlite3.connect(lab.io.path / "journal.db")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        shutil.rmtree(lab.io.path / "snapshots", ignore_errors=True)


@pytest.mark.long
def test_an_index_made_of_the_vectors_goes(tmp_path, folder):
    with memlab.open(folder, embedder=letters) as lab:
        lab.remember([f"text {number} quokkaword{number}" for number in range(4200)])
        assert lab.io.store.neighbours.rebuild()
        assert list((folder / "neighbours").glob("*.index"))
        (folder / "neighbours" / ".draft-vectors").write_bytes(b"left by a builder that was killed")
        lab.purge(range(1, 4))
        assert [path.name for path in (folder / "neighbours").iterdir()] == ["build.lock"]
        assert traces(folder, ["quokkaword1 ", "quokkaword2\x00"]) == set()
        assert lab.graph.similar(9).height


def test_an_entity_of_whom_only_the_purged_told_is_not_listed(lab):
    lab.remember("she keeps quokkas", subject="Zoe", predicate="keeps", value="quokkas")
    lab.remember("Ada likes tea", subject="Ada", predicate="likes", value="tea")
    number = lab.facts.entities.frame().filter(name="Ada")["id"].item()
    lab.purge(1)
    assert lab.facts.entities.frame()["name"].to_list() == ["Ada"]
    assert lab.facts.entities.frame()["id"].item() == number

"""Labs that past versions wrote open as those versions say they are; see tests/fixtures/labs/README.md."""

import json
import sqlite3
import zipfile
from contextlib import closing
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

import memlab
from memlab.kernel.journal._database import VERSION
from tests.journal.formats import format_of

LABS = Path(__file__).parent / "fixtures" / "labs"
NAMES = sorted(path.stem for path in LABS.glob("*.zip"))

pytestmark = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def folder(name, tmp_path):
    """Copy the lab that the version wrote."""
    target = tmp_path / "agent.memlab"
    with zipfile.ZipFile(LABS / f"{name}.zip") as packed:
        packed.extractall(target)
    return target


@pytest.fixture
def report(name):
    """Return what the version reported about the lab."""
    return json.loads((LABS / f"{name}.json").read_text(encoding="utf-8"))


def open_later(folder, **more):
    """Open the lab a day after its last event, because the pack companion forgets everything within a year."""
    return memlab.open(folder, clock=memlab.ManualClock("2026-01-06"), **more)


def rows_of(frame, *, like):
    """Return the rows of a frame as JSON has them, in the columns of the older version."""
    columns = list(like[0])
    return json.loads(json.dumps(frame.select(columns).to_dicts(), default=datetime.isoformat))


def check_same(lab, report):
    """Check the lab against the report of the version that wrote it."""
    assert rows_of(lab.memories, like=report["memories"]) == report["memories"]
    edges = rows_of(lab.edges, like=report["edges"])
    # the column tags had no edges yet
    if not any(edge["relation"] == "has-tag" for edge in report["edges"]):
        edges = [edge for edge in edges if edge["relation"] != "has-tag"]
    assert edges == report["edges"]
    assert lab.policies.pack.name == report["pack"]
    assert report["pack_hash"] in lab.io.store.versions.pack_hashes
    slates = lab.slates()
    for table in ("decisions", "candidates", "exposures", "feedback"):
        assert getattr(slates, table).collect().height == report["counts"][table], table


@pytest.mark.long
def test_an_earlier_format_is_read_without_a_change(folder, report):
    before = (folder / "journal.db").read_bytes()
    number, _ = format_of(folder)
    assert number < VERSION
    with open_later(folder, read_only=True) as lab:
        check_same(lab, report)
        assert {
            query: sorted(hit.id for hit in lab.recall(query)) for query in report["recalled"]
        } == report["recalled"]
        assert lab.log["event"].to_list() == list(range(1, lab.io.store.journal.head + 1))
        past = lab.at(event=lab.io.store.journal.head - 1)
        assert past.memories["text"].to_list() == lab.memories["text"].to_list()[:-1]
    assert (folder / "journal.db").read_bytes() == before
    assert format_of(folder) == (number, None)


# The first plain recall says that the lab still explores; tests/recall/test_consent.py is about that.
@pytest.mark.long
@pytest.mark.filterwarnings("ignore::memlab.errors.ExplorationWarning")
def test_an_earlier_format_can_be_written_and_reopened(folder, report):
    with open_later(folder) as lab:
        check_same(lab, report)
        assert format_of(folder) == (VERSION, memlab.__version__)
        assert lab.io.check().sound
        new = lab.remember("The heating is broken", project="home")
        assert new.id == report["counts"]["memories"] + 1
        assert new.id in [hit.id for hit in lab.recall("Is the heating broken?", limit=3)]
        lab.feedback(lab.recall("How long does the build take?", limit=3)[0], "success")
        lab.edit(1, text="Ana likes black tea")
        after = lab.memories
        lab.io.snapshot()
    with open_later(folder) as lab:
        assert lab.memories.equals(after)
        assert lab.io.check().sound
        assert lab.purge(new.id)
    assert memlab.check(folder).sound


@pytest.mark.long
def test_the_journal_alone_is_enough(folder, report):
    """Snapshots of earlier formats are ignored; their content is in the journal."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.name != "journal.db":
            path.rmdir() if path.is_dir() else path.unlink()
    with open_later(folder, read_only=True) as lab:
        check_same(lab, report)


def test_the_file_is_small_and_in_the_state_in_which_it_was_closed(folder, name):
    assert (LABS / f"{name}.zip").stat().st_size <= 60_000
    with closing(sqlite3.connect(f"file:{folder / 'journal.db'}?mode=ro", uri=True)) as database:
        seqs = [seq for (seq,) in database.execute("SELECT seq FROM event ORDER BY seq")]
    assert all(after == before + 1 for before, after in pairwise(seqs))

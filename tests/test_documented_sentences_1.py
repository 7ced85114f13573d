"""What the documentation says of privacy, checksums, certainty, recall and context: a test for each sentence."""

import re
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import memlab
from memlab.errors import DamagedLab
from memlab.kernel.journal import Event
from memlab.kernel.state.state import State
from memlab.kernel.state.view import VisibleBody
from memlab.subjects.context.writing import Entry, Sheet

SECRET = {"visibility": "private", "creator": "ann"}
HIDDEN = np.array([False, True, False, True])
"""Of four memories, the second and the fourth."""


def visible(kind, body):
    """Return the body of an event that names some of four memories, without the hidden ones."""
    return VisibleBody(Event(1, 0, kind, body), HIDDEN, State(())).body


def superseding(ids, by):
    """Return a part of an event in which memories were superseded by others."""
    return {"ids": ids, "columns": {"superseded_by": by}}


# -- what is private to another ---------------------------------------------------------------------------------------


def test_the_texts_of_hidden_memories_are_not_returned_to_a_viewer(lab):
    lab.remember("The goat eats hay", creator="bob")
    lab.remember("The goat of Ann eats gold", **SECRET)
    lab.remember("The horse eats oats", creator="bob")
    asked = np.array([2, 1, 0])
    for viewer, second in (("ann", "The goat of Ann eats gold"), ("bob", None)):
        texts = lab.at(viewer=viewer).io.store.state.texts.to_list(asked)
        assert texts == ["The horse eats oats", second, "The goat eats hay"]


def test_a_list_of_which_a_viewer_sees_nothing_is_left_out():
    left = visible("forget", {"reason": "old", "set": [superseding([2, 4], [1.0, 1.0])]})
    assert "set" not in left


def test_a_list_that_was_written_empty_stays_empty():
    assert visible("forget", {"reason": "old", "set": []})["set"] == []


def test_a_viewer_reads_what_superseded_a_memory_unless_it_is_hidden():
    whole = superseding([1, 2, 3], [3.0, 1.0, 4.0])
    [left] = visible("forget", {"set": [whole]})["set"]
    assert left == superseding([1, 3], [3.0, None])


def test_a_viewer_reads_one_successor_of_several_memories_unless_it_is_hidden():
    for by, told in ((3.0, 3.0), (4.0, None), (None, None)):
        [left] = visible("forget", {"set": [superseding([1, 2], by)]})["set"]
        assert left == superseding([1], told)


@pytest.mark.long
def test_private_acts_of_others_change_no_probe():
    def probes(*, private):
        pack = (
            "(pack curious :inherits memlab) (setting probe-rate 1) (setting probes 2) (setting pool 100)"
            "(setting probe-depth 40)"
        )
        with memlab.open(pack=pack, seed=1) as lab:
            lab.remember("Ann keeps this", **SECRET)
            lab.remember([f"the goat eats hay {n}" for n in range(40)], linking="off")
            shown = []
            for turn in range(4):
                if private:
                    lab.edit(1, importance=0.1 + turn / 10)
                lab.remember(f"the sea is calm on day {turn}", linking="off")
                shown.append(lab.recall("what eats the goat?", viewer="bob", limit=3).ids)
            return shown

    assert probes(private=True) == probes(private=False)


# -- what is compared with a checksum ---------------------------------------------------------------------------------


def test_a_changed_byte_of_a_slate_is_reported_on_reading(disk, tmp_path):
    with disk() as lab:
        lab.remember("Ana likes tea")
        lab.recall("does Ana like tea?")
    journal = tmp_path / "agent.memlab" / "journal.db"
    with closing(sqlite3.connect(journal)) as database, database:
        [data] = database.execute("SELECT data FROM slate").fetchone()
        changed = data.replace(b"does Ana like tea?", b"does Ana like sea?")
        assert len(changed) == len(data)
        assert changed != data
        database.execute("UPDATE slate SET data = ?", (changed,))
    with (
        disk(read_only=True) as lab,
        pytest.raises(DamagedLab, match=r"slate of event \d+ was changed since it was written"),
    ):
        lab.slates().decisions.collect()


def test_a_slate_swapped_with_another_is_reported_on_reading(disk, tmp_path):
    with disk() as lab:
        lab.remember("Ana likes tea")
        lab.recall("does Ana like tea?")
        lab.recall("does Ana like wine?")
    journal = tmp_path / "agent.memlab" / "journal.db"
    with closing(sqlite3.connect(journal)) as database, database:
        database.execute("UPDATE slate SET data = (SELECT data FROM slate ORDER BY seq LIMIT 1)")
    with (
        disk(read_only=True) as lab,
        pytest.raises(DamagedLab, match=r"slate of event \d+ was changed since it was written"),
    ):
        lab.slates().decisions.collect()


# -- what destroys needs to be nearly certain -------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("resolution", ["keep-new", "keep-old", "merge"])
def test_below_destroy_certainty_nothing_is_superseded_merged_or_dropped(resolution, trigrams):
    counts = {}
    for bound in (0.9, 0):
        pack = (
            f"(pack sure :inherits memlab) (setting destroy-certainty {bound}) "
            f'(defpolicy link [pair/similarity] (if (> pair/similarity 0.1) "updates" "none")) '
            f'(defpolicy resolve [pair/rank] (if (> pair/rank 99) "keep-both" "{resolution}"))'
        )
        with memlab.open(pack=pack, embedder=trigrams) as lab:
            lab.remember("the boat lies in the harbour")
            lab.remember("the boat lies in the harbour by the sea", linking="now")
            counts[bound] = lab.memories["status"].to_list().count("active")
    assert counts == {0.9: 2, 0: 1}


# -- how sure a recall is ---------------------------------------------------------------------------------------------


def test_known_is_the_greatest_probability_that_is_given_to_a_candidate():
    pack = "(pack sure :inherits memlab) (defpolicy known [score importance] (+ (* 0 score) importance))"
    with memlab.open(pack=pack) as lab:
        lab.remember(["a cat sat", "two cats", "three cats"], linking="off")
        for id, importance in ((1, 0.2), (2, 0.9), (3, 0.4)):
            lab.edit(id, importance=importance)
        assert lab.recall("cats").known == pytest.approx(0.9)


# -- a context --------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_closing_mark_depends_on_all_text_before_it():
    def mark(*texts):
        with memlab.open() as lab:
            lab.remember(list(texts), linking="off")
            [number] = re.findall(r"^</memory (\w+)>$", lab.context("cat", budget=400).text, re.M)
            return number

    assert mark("the cat eats fish") == mark("the cat eats fish")
    assert mark("the cat eats fish") != mark("the cat eats mice")


def test_a_sheet_that_fits_never_exceeds_its_budget_at_four_bytes_a_token():
    for budget in range(80, 160, 7):
        sheet, number = Sheet(budget), 0
        while sheet.cost(entry := Entry(number, "note", f"*cat* {number}")) <= sheet.free:
            sheet.add(entry)
            number += 1
        assert number
        assert len(sheet.text.encode()) <= 4 * budget
        assert len(sheet.markdown.encode()) <= 4 * budget

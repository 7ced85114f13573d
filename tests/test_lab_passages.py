"""Long memories in a lab: found by their best passage, shown whole with it marked, gone with their text."""

import shutil

import pytest

import memlab
from memlab.kernel.base.clock import ManualClock
from tests.displays import html_of

pytestmark = pytest.mark.long

FILLER = " ".join(
    f"The garden of house {number} has a fence and a <gate> & a pond." for number in range(30)
)
ANSWER = "The boiler was serviced by Ottokar Quint, whose bill was <b>ninety</b> crowns."
LONG = f"{FILLER} {ANSWER} {FILLER}"
SHORT = ("I like tea.", "ok thanks!", "The boiler is in the cellar.")
QUESTION = "Who serviced the boiler, and what was the bill?"


def filled(path=None, **options):
    lab = memlab.open(path, clock=ManualClock("2026-01-01"), **options)
    lab.remember(
        [{"text": text, "speaker": "Ann", "session": "s"} for text in (*SHORT, LONG)], chain=True
    )
    return lab


def scores(lab):
    slate = lab.recall(QUESTION, log=False).slate
    return slate.ids.tolist(), slate.scores.tolist(), slate.numbers["late"].tolist()


class TestFound:
    def test_values_do_not_depend_on_how_the_words_came(self, tmp_path):
        with filled(tmp_path / "lab") as lab:
            expected = scores(lab)
            lab.io.snapshot()
        assert list((tmp_path / "lab").rglob("words.npz"))
        with memlab.open(tmp_path / "lab", clock=ManualClock("2026-01-02")) as lab:
            assert scores(lab) == expected
            before = lab.io.store.state.seq
            for text in (LONG, *SHORT):
                lab.remember(text, project="other")
            lab.remember([{"text": f"{ANSWER} {LONG}"}])
            assert scores(lab.at(event=before)) == expected
            whole = scores(lab)
        shutil.rmtree(tmp_path / "lab" / "snapshots")
        with memlab.open(tmp_path / "lab", clock=ManualClock("2026-01-02")) as lab:
            assert scores(lab) == whole


class TestShown:
    def test_the_passage_is_marked_within_the_whole(self):
        with filled() as lab:
            hits = lab.recall(QUESTION, log=False)
            hit = next(hit for hit in hits if hit.text == LONG)
            assert ANSWER in hit.passage
            assert hit.passage in LONG
            assert len(hit.passage) < len(LONG) / 4
            html = html_of(hits)
            inside = html[html.index("<mark>") + 6 : html.index("</mark>")]
            assert "&lt;b&gt;ninety&lt;/b&gt;" in inside
            assert "<b>" not in html
            assert "<gate>" not in html

    def test_a_short_text_and_one_without_a_word_of_the_question_have_none(self):
        with filled() as lab:
            assert {hit.passage for hit in lab.recall(QUESTION, log=False) if hit.text != LONG} == {
                None
            }
            hits = lab.recall("zebra", log=False)
            assert [hit.passage for hit in hits] == [None] * len(hits)
            assert "<mark>" not in html_of(hits)


class TestGone:
    def test_a_purged_text_leaves_no_passage(self, tmp_path):
        with filled(tmp_path / "lab") as lab:
            lab.purge(4)
            assert [hit.id for hit in lab.recall(QUESTION, log=False) if hit.passage] == []
            assert lab.io.store.state.words.passages is None
            after = scores(lab)
        files = [path for path in (tmp_path / "lab").rglob("*") if path.is_file()]
        assert not [
            path for path in files if b"Quint" in path.read_bytes() or b"quint" in path.read_bytes()
        ]
        with memlab.open(tmp_path / "lab", clock=ManualClock("2026-01-01")) as lab:
            assert scores(lab) == after

    def test_private_texts_change_nothing_for_others(self):
        with filled() as lab, filled() as other:
            other.remember([{"text": LONG, "visibility": "private", "creator": "Bob"}])
            assert scores(lab.at(viewer="Eve")) == scores(other.at(viewer="Eve"))

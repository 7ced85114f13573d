"""The Python half of the version timeline: histories, comparisons, and the way back."""

import io
from dataclasses import replace

import polars as pl
import pytest

import memlab
from memlab.ui.widgets import VersionTimeline
from tests.displays import page_of
from tests.widgets.shared import shared

TURNED = "(fn [similarity]\n  (- similarity))"
QUESTIONS = ["tabs or spaces?", "when do deploys go out?"]


@pytest.fixture
def lived(asked, clock):
    """A lab with two versions of a slot, feedback under both, a challenge that has ended, and a pin."""
    for question in QUESTIONS:
        asked.feedback(asked.recall(question)[0], "success")
    clock.advance(days=3)
    asked.policies.install("recall-score", TURNED, reason="<b>turned</b>")
    asked.policies.challenge("companion", reason="fresh?")
    clock.advance(days=2)
    for question in QUESTIONS:
        asked.feedback(asked.recall(question)[0], "fail")
    asked.policies.end_challenge("companion")
    asked.policies.pin("half-life")
    return asked


@pytest.fixture
def timeline(lived):
    return VersionTimeline(lived, questions=QUESTIONS)


def frame(trait):
    return pl.read_ipc_stream(io.BytesIO(trait))


@pytest.mark.long
def test_the_last_two_versions_are_picked_and_compared(timeline, lived):
    assert timeline.picked == [1, 2]
    assert timeline.versions.equals(lived.policies.history("recall-score"))
    rows = shared(timeline, "diff")["rows"]
    assert "\n".join(after for _, _, _, line, after in rows if line) == TURNED
    before = "\n".join(text for _, line, text, _, _ in rows if line)
    assert before == memlab.load_pack("memlab").policies["recall-score"].source
    assert shared(timeline, "diff")["changes"]


@pytest.mark.long
def test_the_questions_are_ranked_under_both(timeline, lived):
    for question in QUESTIONS:
        own = timeline.moves.filter(pl.col("question") == question)
        assert own.sort("rank_after")["memory_id"].to_list() == list(
            lived.recall(question, log=False).ids
        )
        before = lived.recall(question, pack="memlab", log=False)
        assert own.sort("rank_before")["memory_id"].to_list() == list(before.ids)
    assert all(one["pairs"] for one in shared(timeline, "sums"))


@pytest.mark.long
def test_every_slot_stands_on_the_axis(timeline, lived):
    events = frame(shared(timeline, "events"))
    assert events.height == lived.policies.history().height
    assert events.filter(pl.col("slot") == "half-life")["pinned"].to_list() == [False, True]
    assert shared(timeline, "about")["pins"] == {"half-life": 1}


@pytest.mark.long
def test_challengers_have_a_beginning_and_an_end(timeline, lived):
    (one,) = shared(timeline, "challenges")
    assert (one["name"], one["reason"]) == ("companion", "fresh?")
    assert one["until"] - one["since"] == 2 * 86_400_000
    lived.policies.challenge("actr")
    history = lived.policies.challenge_history
    assert history["name"].to_list() == ["companion", "actr"]
    assert history["until"].is_null().to_list() == [False, True]


@pytest.mark.long
def test_feedback_is_counted_by_when_it_was_given(timeline):
    bins = frame(shared(timeline, "rewards"))
    assert (bins["good"].sum(), bins["count"].sum()) == (2, 4)
    assert bins["good"].to_list() == [2, 0]
    judged = frame(shared(timeline, "judged"))
    assert judged.select("version", "success", "fail").rows() == [(1, 2, 0), (2, 0, 2)]


@pytest.mark.long
def test_a_version_is_brought_back_with_a_reason(timeline, lived, ask):
    assert "Type a reason" in ask(timeline, "rollback", version=1, reason="")
    assert ask(timeline, "rollback", version=1, reason="worse") == {}
    assert lived.policies["recall-score"] == memlab.load_pack("memlab").policies["recall-score"]
    assert (
        frame(shared(timeline, "events"))
        .filter(pl.col("slot") == "recall-score")["action"]
        .to_list()[-1]
        == "rollback"
    )
    assert "active again, as version 3" in shared(timeline, "note")
    assert "no version of recall-score" in ask(timeline, "rollback", version=9, reason="x")


@pytest.mark.long
def test_other_versions_and_slots_are_picked_from_python(timeline, lived):
    timeline.picked = [2]
    assert (shared(timeline, "diff"), timeline.moves.height) == ({}, 0)
    timeline.picked = [2, 1]
    assert next(
        row[4] for row in shared(timeline, "diff")["rows"] if row[0] != "removed"
    ).startswith("(defpolicy")
    timeline.picked = [1, 7]
    assert "no version of recall-score" in timeline.fault
    timeline.slot = "half-life"
    assert (timeline.fault, timeline.picked) == ("", [])
    timeline.slot = "haf-life"
    assert "Did you mean half-life?" in timeline.fault
    timeline.slot = "recall-score"
    assert (timeline.fault, timeline.picked) == ("", [1, 2])


@pytest.mark.long
def test_what_was_installed_elsewhere_is_seen_on_another_look(timeline, lived, ask):
    lived.policies.install("recall-score", "(fn [lexical] lexical)")
    assert ask(timeline, "look") == {}
    assert (
        frame(shared(timeline, "events")).filter(pl.col("slot") == "recall-score")["version"].max()
        == 3
    )


@pytest.mark.long
def test_a_slot_over_lists_that_ranks_nothing(lived, ask):
    lived.policies.install("explore", "(fn [acts] (first (range (length acts))))")
    timeline = VersionTimeline(lived, slot="explore", questions=QUESTIONS)
    assert (timeline.picked, shared(timeline, "about")["ranks"]) == ([1, 2], False)
    assert timeline.moves["rank_before"].equals(timeline.moves["rank_after"])


def test_an_empty_lab_has_one_version_and_no_feedback(lab):
    timeline = VersionTimeline(lab)
    assert (timeline.picked, timeline.questions, frame(shared(timeline, "rewards")).height) == (
        [],
        [],
        0,
    )


@pytest.mark.long
def test_a_closed_lab_is_said(timeline, lived, ask):
    lived.close()
    assert "was closed" in ask(timeline, "look")
    timeline.picked = []
    assert "was closed" in timeline.fault


@pytest.mark.long
def test_two_timelines_on_one_lab(timeline, lived, ask):
    other = VersionTimeline(lived, slot="half-life")
    ask(timeline, "rollback", version=1, reason="worse")
    assert ask(other, "look") == {}
    assert other.slot == "half-life"


@pytest.mark.parametrize(
    "bad", [{"slot": "recal-score"}, {"questions": ["x"] * 51}, {"questions": "tabs?"}]
)
def test_a_constructor_refuses_what_it_cannot_show(asked, bad):
    with pytest.raises(memlab.InputError):
        VersionTimeline(asked, **bad)


@pytest.mark.long
def test_a_page_without_python_has_the_history(timeline):
    html = page_of(timeline)
    assert "&lt;b&gt;turned" in html
    assert "<b>turned" not in html


@pytest.mark.long
def test_versions_carry_their_lineage(timeline, lived):
    lineage = memlab.Lineage(("a" * 64,), "crossover", "c" * 64)
    lived.policies.unpin("half-life")
    lived.policies.install(
        "recall-score", replace(memlab.load_pack("companion"), lineage=lineage), compare=0
    )
    timeline.refresh()
    rows = frame(timeline._events).filter(pl.col("slot") == "recall-score")
    assert rows["operator"].to_list() == [None, None, "crossover"]
    assert rows["parents"].to_list()[-1] == ["a" * 64]
    assert rows["evidence"].to_list()[-1] == "c" * 64


@pytest.mark.long
def test_a_parent_is_the_pack_of_an_earlier_event(timeline, lived):
    parent = lived.policies.pack
    lived.policies.use(
        replace(memlab.load_pack("companion"), lineage=memlab.Lineage((parent.hash,), "evolve"))
    )
    timeline.refresh()
    rows = frame(timeline._events).filter(pl.col("slot") == "recall-score").sort("event")
    assert parent.hash in rows["pack_hash"].to_list()[:-1]
    assert rows["pack_hash"][-1] == lived.policies.pack.hash

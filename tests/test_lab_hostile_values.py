"""What a lab refuses by name: texts that show nothing, purged memories, reversed times, forms of odd values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import hy
import pytest
from hy.models import Expression, List, Symbol

import memlab
from memlab import InputError

UNSEEN = ["", " \n", "\u200b", "\x00\x07", "\u202e\u202c", "\ufeff", "\u3164", "\u00ad \u2060"]
OUTSIDE = [
    -(2**63),
    2**63,
    "9999-12-31",
    datetime.max,
    datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
]


@pytest.fixture
def lab():
    with memlab.open(clock=memlab.ManualClock("2026-06-01")) as lab:
        yield lab


class TestUnseenTexts:
    @pytest.mark.parametrize("text", UNSEEN)
    def test_a_text_that_shows_nothing_is_empty(self, lab, text):
        memory = lab.remember("The kettle is descaled on Sundays")
        for call in (
            lambda: lab.edit(memory, text=text),
            lambda: lab.remember(text),
            lambda: lab.agents.observe(text),
            lambda: lab.remember("words", speaker=text),
            lambda: lab.facts.add("Ada", "likes", text),
        ):
            with pytest.raises(InputError):
                call()
        assert lab.memories["text"].to_list() == ["The kettle is descaled on Sundays"]

    @pytest.mark.parametrize("text", ["-", "👩‍👩‍👧", "مرحبا\u200f", "a\u200b", "\u0301e"])
    def test_a_text_that_shows_something_is_one(self, lab, text):
        assert lab.remember(text).text == text


class TestPurged:
    def test_a_purged_memory_is_reported_as_purged(self, lab):
        memory = lab.remember("The kettle is descaled on Sundays")
        hit = lab.recall("kettle")[0]
        lab.purge(memory)
        for call in (
            lambda: lab.edit(memory, text="other"),
            lambda: lab.edit(hit, importance=0.5),
            lambda: lab.edit(1, text="other"),
            lambda: lab.graph.similar(memory),
        ):
            with pytest.raises(InputError, match="Memory 1 is purged"):
                call()

    def test_a_memory_of_another_lab_is_reported_as_such(self, lab):
        lab.remember("mine")
        with memlab.open() as other:
            theirs = other.remember("theirs")
        with pytest.raises(InputError, match="another lab"):
            lab.edit(theirs, text="changed")


class TestTimes:
    @pytest.mark.parametrize("pack", ["memlab", "factgraph", "companion"])
    @pytest.mark.parametrize("when", OUTSIDE, ids=str)
    def test_a_time_beyond_the_calendar_is_refused_by_its_field(self, pack, when):
        with memlab.open(pack=pack) as lab:
            for field in ("valid_from", "valid_until"):
                with pytest.raises(InputError, match=field):
                    lab.facts.add("Ada", "lives_in", "Oslo", **{field: when})
                with pytest.raises(InputError, match=field):
                    lab.remember("words", **{field: when})
            assert lab.memories.is_empty()

    def test_a_time_that_a_calendar_has_is_named_by_its_date(self, lab):
        with pytest.raises(InputError, match=r"not at 9999-12-31T00.*Leave valid_until out"):
            lab.remember("words", valid_until="9999-12-31")

    def test_an_end_before_the_beginning_is_refused_wherever_both_are_given(self, lab):
        reversed_ = {"valid_from": "2026-05-01", "valid_until": "2026-01-01"}
        with pytest.raises(InputError, match="is before"):
            lab.remember("words", **reversed_)
        with pytest.raises(InputError, match=r"Row 1: .*is before"):
            lab.remember([{"text": "first"}, {"text": "second", **reversed_}])
        memory = lab.remember("held", valid_from="2026-05-01")
        with pytest.raises(InputError, match="is before"):
            lab.edit(memory, valid_until="2026-01-01")
        with pytest.raises(InputError, match="is before"):
            lab.edit(lab.memories.with_columns(valid_until=datetime(2026, 1, 1, tzinfo=UTC)))
        lab.edit(memory, valid_until="2026-01-01", valid_from="2025-01-01")
        assert lab.memories["valid_until"].to_list() == [datetime(2026, 1, 1, tzinfo=UTC)]


class _Whole(int):
    def __int__(self):
        raise RuntimeError("an int that is asked")

    __index__ = __int__


class _Real(float):
    def __float__(self):
        raise RuntimeError("a float that is asked")


def form(value):
    return Expression([Symbol("fn"), List([Symbol("similarity")]), value])


@pytest.mark.parametrize("value", [_Whole(3), _Real(0.5)], ids=["int", "float"])
def test_a_number_of_a_subclass_is_its_own_value(lab, value):
    source = lab.policies.check("recall-score", form(value)).source
    assert (
        source == lab.policies.check("recall-score", hy.read(f"(fn [similarity] {value!r})")).source
    )


def test_the_designs_word_related_to_is_relates_to():
    with memlab.open(pack="workbench") as lab:
        first, second = lab.remember("first", linking="off"), lab.remember("second", linking="off")
        lab.graph.link(first, second, "related_to")
        lab.graph.link(second, first, "related-to")
        assert lab.edges["relation"].to_list() == ["relates-to", "relates-to"]


def test_nothing_in_a_profile_or_narrative_steers_a_terminal(lab):
    lab.facts.add("\x1b[31mAda\x1b[0m", "lives-in", "Oslo\u202e")
    for text in (lab.facts.profile("\x1b[31mAda\x1b[0m").text, lab.facts.narrative("Oslo").text):
        assert text
        assert "\x1b" not in text
        assert "\u202e" not in text

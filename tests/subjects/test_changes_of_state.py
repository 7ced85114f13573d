"""Linking notices changes of state that no rule reads, and ends a value only where another took its place."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import memlab
from memlab.kernel.base.clock import ManualClock
from memlab.kernel.english import words_of
from memlab.subjects.reading import change
from memlab.subjects.reading.change import (
    SIGNS,
    Telling,
    features,
    moves_a_value,
    score,
    signs_of_change,
)
from memlab.subjects.reading.comparison import MOST_WORDS, Verdict, compare, read_text

DATA = Path(__file__).parents[2] / "experiments/data"


def verdict(before: str, after: str) -> Verdict:
    return compare(read_text(after), read_text(before), same_speaker=True, user_speaks=False)


def pairs(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def test_every_weight_is_of_a_feature_and_every_feature_has_a_weight() -> None:
    weights = json.loads(
        Path(change.__file__).with_name("certainty.json").read_text(encoding="utf-8")
    )["weights"]
    result = features(
        Telling("I sold 5 bikes", "I sold 5 bikes"),
        Telling("I have 7 bikes", "I have 7 bikes"),
        0.0,
    )
    assert set(weights) == set(result)


def test_the_odds_are_the_weighted_sum_of_the_features() -> None:
    fitted = json.loads(
        Path(change.__file__).with_name("certainty.json").read_text(encoding="utf-8")
    )
    later, earlier = (
        Telling(text, text) for text in ("The choir disbanded in May", "I sing in the choir")
    )
    result = features(later, earlier, 0.5)
    expected = fitted["bias"] + sum(
        fitted["weights"][name] * value for name, value in result.items()
    )
    assert score(later, earlier, 0.5) == pytest.approx(expected)


def test_texts_that_share_no_word_are_not_asked_about() -> None:
    later, earlier = (
        Telling(text, text) for text in ("We cancelled it", "The choir meets on Tuesdays")
    )
    assert score(later, earlier, 0.0) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "I'm the treasurer of the rowing club.",
            "I stepped down as treasurer of the rowing club, no more spreadsheets.",
        ),
        ("We keep the logs in Splunk.", "We got rid of Splunk, the logs are no longer there."),
        (
            "My sister shares a flat with Ines.",
            "Ines moved out of the flat, so my sister no longer shares it.",
        ),
    ],
)
def test_a_change_in_plain_words_is_flagged_and_not_certain(before: str, after: str) -> None:
    result = verdict(before, after)
    assert result.updates or result.conflicts
    assert result.rule != "change" or result.certainty < 0.9


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "The budget for the relocation is $3,000.",
            "We adjusted the budget for the relocation to $3,500.",
        ),
        ("My Zotero library holds 45 sources.", "My Zotero library now holds 52 sources."),
        (
            "The Zoom meeting with Danielle is at 3 PM.",
            "The Zoom meeting with Danielle was moved to 4:30 PM.",
        ),
    ],
)
def test_a_value_that_was_moved_is_nearly_certain(before: str, after: str) -> None:
    assert verdict(before, after).updates
    assert verdict(before, after).certainty >= 0.9


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "I had lunch with Carla at the Blue Lagoon on March 1.",
            "I had dinner with Carla at the Blue Lagoon on July 14.",
        ),
        (
            "The call with Matthew is on April 4.",
            "The dinner with Ada was moved from May 1 to May 3.",
        ),
        ("The gym costs 24 pounds a month.", "Gym towels cost another 2 pounds a visit."),
    ],
)
def test_two_values_of_two_things_end_nothing(before: str, after: str) -> None:
    earlier, later = read_text(before).telling, read_text(after).telling
    assert earlier is not None
    assert later is not None
    assert not moves_a_value(later, earlier)


@pytest.mark.long
def test_of_the_pairs_that_writers_made_few_controls_are_noticed() -> None:
    told = [pair for name in ("", "_a", "_b") for pair in pairs(f"changes_of_state{name}.jsonl")]
    noticed = {"change": 0, "control": 0}
    for pair in told:
        if pair["before"]["speaker"] == pair["after"]["speaker"]:
            result = verdict(pair["before"]["text"], pair["after"]["text"])
            noticed[pair["kind"]] += result.updates or result.conflicts
    assert noticed["change"] >= 90
    assert noticed["control"] <= 12


@pytest.mark.long
def test_greetings_questions_and_wishes_end_nothing() -> None:
    before = [pair["before"]["text"].rstrip(".!") for pair in pairs("changes_of_state.jsonl")[:60]]
    asked = [f"Do you remember that {text}?" for text in before[:20]]
    wished = [f"I wish it were no longer so that {text}." for text in before[20:40]]
    imagined = [f"What if {text} no longer?" for text in before[40:]]
    clock = ManualClock("2026-03-01")
    with memlab.open(pack="companion", clock=clock) as lab:
        lab.remember([{"text": text, "kind": "event"} for text in before], linking="now")
        clock.advance(days=1)
        told = ["Hi there!", "Good morning!", "See you now!", *asked, *wished, *imagined]
        outcomes = lab.remember(
            [{"text": text, "kind": "event"} for text in told], linking="now"
        ).outcomes
    assert not outcomes["outcome"].is_in(["superseded", "merged", "skipped"]).any()


@pytest.mark.long
def test_signs_are_found_in_steps_proportional_to_the_words() -> None:
    def steps(size: int) -> int:
        count = 0

        def on_line(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal count
            count += event == "line"
            return on_line

        words = ["gave", "i", "not", "from", "went"] * size
        before = sys.gettrace()
        sys.settrace(on_line)
        try:
            signs_of_change(words)
        finally:
            sys.settrace(before)
        return count

    assert 100 < steps(1000) < 11 * steps(100)


def test_signs_are_of_the_known_kinds_and_gaps_hold_words() -> None:
    assert set(
        signs_of_change(words_of("I gave my old bike back and we switched to the bus for good"))
    ) <= set(SIGNS)
    assert signs_of_change(["gave", "it", "back"])["over"] == 1
    assert "over" not in signs_of_change(["gave", "a", "b", "c", "d", "back"])


def test_a_long_text_is_asked_for_no_change() -> None:
    assert read_text("The bike is red. " * MOST_WORDS).telling is None
    assert read_text("Hello!").telling is None

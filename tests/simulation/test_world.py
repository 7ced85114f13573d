"""A world is a function of its settings, and its truth follows from its own facts."""

import hashlib
import os
import subprocess
import sys
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lives import small
from properties import examples

from memlab.errors import InputError
from memlab.science.simulation import HABIT, WORLDS, MessageEvent, Phase, QuestionEvent, User, World
from memlab.science.simulation._world import ASPECTS, take_names


def bytes_of(world):
    return msgspec.json.encode(world.events())


def split(world):
    events = world.events()
    return [event for event in events if isinstance(event, MessageEvent)], [
        event for event in events if isinstance(event, QuestionEvent)
    ]


tiny = st.builds(
    World,
    name=st.just("any"),
    seed=st.integers(0, 2**31),
    days=st.integers(2, 20),
    projects=st.integers(1, 4),
    people=st.integers(0, 3),
    aspects=st.integers(1, 6),
    tastes=st.integers(0, 4),
    messages_per_day=st.floats(1, 15),
    questions_per_day=st.floats(1, 8),
    phases=st.builds(lambda days: (Phase(0.5, change_days=days), Phase(1.0)), st.floats(1.5, 60)),
    grading=st.sampled_from(["facts", "alike"]),
)


@pytest.mark.long
@examples(20)
@given(tiny)
def test_the_same_settings_give_the_same_bytes(world):
    assert bytes_of(world) == bytes_of(replace(world))


@pytest.mark.long
def test_the_bytes_do_not_depend_on_the_process():
    program = (
        "import hashlib, msgspec; from memlab.science.simulation import WORLDS;"
        "print(hashlib.sha256(msgspec.json.encode(WORLDS['differs'].events())).hexdigest())"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == hashlib.sha256(bytes_of(WORLDS["differs"])).hexdigest()


@pytest.mark.long
def test_another_seed_is_another_life():
    assert bytes_of(small("differs")) != bytes_of(small("differs", seed=12))


@pytest.mark.long
@pytest.mark.parametrize(
    "change", [{"packs": ((0, HABIT),)}, {"user": User(answers=0.1, errors=0.3)}]
)
def test_neither_the_pack_nor_the_feedback_changes_what_happens(change):
    assert bytes_of(small("differs")) == bytes_of(small("differs", **change))


@pytest.mark.long
def test_each_concern_has_its_own_chance():
    """More off-topic messages leave the questions, their times and their meaning unchanged."""
    quiet, loud = (split(small("differs", messages_per_day=said)) for said in (12, 40))
    assert len(loud[0]) > 2 * len(quiet[0])
    assert [(item.at, item.text, item.project) for item in quiet[1]] == [
        (item.at, item.text, item.project) for item in loud[1]
    ]
    for said_quiet, said_loud, question, same in zip(
        [quiet[0]], [loud[0]], quiet[1], loud[1], strict=False
    ):
        texts = [{item.ref: item.text for item in said} for said in (said_quiet, said_loud)]
        assert {texts[0][ref]: u for ref, u in question.useful.items()} == {
            texts[1][ref]: u for ref, u in same.useful.items()
        }


@pytest.mark.long
@examples(25)
@given(tiny)
def test_the_truth_is_made_of_what_was_said_before(world):
    said, asked = split(world)
    known = {item.ref: item for item in said}
    assert len(known) == len(said)
    assert [item.number for item in asked] == list(range(1, len(asked) + 1))
    for question in asked:
        assert 0 <= question.otherwise <= 1
        if world.grading == "facts":
            assert max(question.useful.values()) == 1
        for ref, utility in question.useful.items():
            assert 0 < utility <= 1
            assert known[ref].at < question.at
            assert known[ref].project in (None, question.project)


@pytest.mark.long
def test_useful_statements_agree_on_the_value_and_outdated_ones_have_no_utility():
    """With plain statements alone, all that is useful for a question states one value of the same thing."""
    world = small(
        "differs",
        people=0,
        tastes=0,
        replies=0.0,
        reasons=0.0,
        about=(1, 0, 0),
        messages_per_day=0,
        days=60,
    )
    said, asked = split(world)
    text = {item.ref: item.text.lower() for item in said}
    values = {value.lower() for aspect in ASPECTS for value in aspect.values}
    shared = [
        set.intersection(
            *({value for value in values if value in text[ref]} for ref in question.useful)
        )
        for question in asked
    ]
    assert len(asked) > 100
    assert all(shared)
    changed = [
        question for question in asked if any("no longer" in text[ref] for ref in question.useful)
    ]
    assert changed, "some question should follow a change"
    for question in changed:
        (change,) = [text[ref] for ref in question.useful if "no longer" in text[ref]][:1]
        old = change.rsplit("no longer ", 1)[1].rstrip(".")
        stale = [
            ref
            for ref, value in text.items()
            if value.endswith(f"is {old}.") and ref in question.useful
        ]
        assert not stale


@pytest.mark.long
def test_later_statements_are_worth_more_than_their_repetitions():
    said, asked = split(small("differs", reasons=0.0, about=(1, 0, 0)))
    at = {item.ref: item.at for item in said}
    several = [question for question in asked if len(question.useful) > 1]
    assert several
    for question in several:
        assert max(question.useful, key=at.__getitem__) == max(
            question.useful, key=question.useful.__getitem__
        )


@pytest.mark.long
def test_projects_start_in_their_own_time_and_never_share_a_name():
    assert len(set(take_names(("Ida", "Bo"), 7, "person"))) == 7
    said, _ = split(
        World("many", days=3, projects=70, aspects=1, tastes=0, people=0, messages_per_day=100)
    )
    assert len({item.project for item in said}) == 70


@pytest.mark.parametrize("name", WORLDS)
def test_every_world_has_a_description(name):
    world = WORLDS[name]
    assert world.name == name
    assert len(world.doc) > 80


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"days": 0}, "days of a World must be at least 1"),
        ({"aspects": 99}, "1 to 16 aspects"),
        ({"synonyms": 1.5}, "synonyms"),
        ({"phases": (Phase(0.7), Phase(0.5))}, "rising"),
        ({"packs": ((3, "memlab"),)}, "day 0"),
    ],
)
def test_impossible_worlds_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        World("wrong", **wrong)


def test_an_impossible_user_is_refused():
    with pytest.raises(InputError, match="errors"):
        User(errors=0.7)

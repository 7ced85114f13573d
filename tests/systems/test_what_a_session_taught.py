"""At the end of a session: breakthroughs, failures and what to avoid, pivots, solutions, steps that worked."""

import polars as pl
import pytest

import memlab
from memlab.errors import InputError

SESSION = [
    {"role": "user", "content": "Fix the failing build on CI."},
    {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "grep"}}]},
    {"role": "tool", "name": "grep", "content": "3 matches"},
    {"role": "tool", "name": "pip", "content": "error: version not found"},
    {"role": "tool", "name": "edit", "content": "ok"},
    {"role": "tool", "name": "pytest", "content": "12 passed, 0 failed"},
    {
        "role": "assistant",
        "content": "The root cause was an unpinned dependency. Fixed it by pinning numpy to 1.26.",
    },
    {
        "role": "assistant",
        "content": "Clearing the wheel cache failed on the runner. Don't use moment.js in CI.",
    },
    {
        "role": "user",
        "content": "Let's switch to uv instead of pip. Important: the runner has only two cores.",
    },
    {"role": "user", "content": "Would it have failed with uv? If it crashed, I would know."},
]


@pytest.fixture
def learned(clock):
    with memlab.open(pack="cascade", clock=clock) as lab:
        yield lab, lab.agents.end_session("monday", SESSION, agent="coder", project="api")


def texts(learned, rule):
    return [item.text for item in learned.extracted if item.rule == rule]


@pytest.mark.long
def test_each_analyzer_finds_its_own(learned):
    _, found = learned
    assert texts(found, "breakthrough") == ["The root cause was an unpinned dependency."]
    assert texts(found, "solution") == ["Fixed it by pinning numpy to 1.26."]
    assert texts(found, "failure") == ["Clearing the wheel cache failed on the runner."]
    assert texts(found, "avoid") == ["Don't use moment.js in CI."]
    assert texts(found, "pivot") == ["Let's switch to uv instead of pip."]
    assert texts(found, "cue") == ["Important: the runner has only two cores."]


@pytest.mark.long
def test_tools_that_led_to_success_are_a_procedure(learned):
    lab, _ = learned
    procedure = lab.memories.filter(pl.col("kind") == "procedure").row(0, named=True)
    assert procedure["steps"] == ["grep", "edit", "pytest"]
    assert procedure["warnings"] == ["pip failed"]
    assert procedure["title"] == "Fix the failing build on CI."


@pytest.mark.long
def test_warnings_are_surfaced_by_name(learned):
    lab, _ = learned
    assert "Don't use moment.js in CI." in [
        hit.text for hit in lab.recall("is moment fine?", project="api")
    ]


@pytest.mark.long
def test_here_is_what_i_learned_in_a_few_lines(learned):
    _, found = learned
    assert found.text.startswith("Here is what I learned:\n- Found out: The root cause")
    assert 4 <= len(found.text.splitlines()) <= 7


@pytest.mark.long
def test_all_of_it_says_its_session_agent_and_confidence(learned):
    lab, found = learned
    memories = lab.memories
    assert len(memories) == len(found.extracted)
    assert memories["session"].unique().to_list() == ["monday"]
    assert memories["confidence"].max() <= 0.95
    assert set(memories["provenance"]) <= {"user-stated", "inferred"}


@pytest.mark.long
def test_conflicts_are_detected(clock):
    with memlab.open(pack="workbench", clock=clock) as lab:
        lab.agents.end_session("monday", ["I prefer tabs for indentation."])
        clock.advance(days=1)
        result = lab.agents.end_session("tuesday", ["I prefer spaces for indentation."])
        assert any("tabs" in notice and "spaces" in notice for notice in result.notices)
        assert any("tabs" in line for line in result.text.splitlines())


def test_the_turns_that_a_lab_holds_are_read(clock):
    with memlab.open(clock=clock) as lab:
        rows = [
            {"text": "I live in Rome", "speaker": "user"},
            {"text": "I am an assistant", "speaker": "assistant"},
        ]
        lab.remember([{**row, "kind": "turn", "session": "monday"} for row in rows])
        result = lab.agents.end_session("monday", store=False)
        assert [fact.text for fact in result.extracted.facts] == ["The user lives in Rome"]
        assert len(lab) == 2
        with pytest.raises(InputError, match="monday"):
            lab.agents.end_session("tuesday")


@pytest.mark.long
def test_a_lesson_is_learned_once(learned):
    lab, found = learned
    again = lab.agents.end_session("tuesday", SESSION, agent="coder", project="api")
    assert not [
        item
        for item in again.extracted
        if item.rule in ("breakthrough", "solution", "avoid", "failure")
    ]
    assert len(lab) < 2 * len(found.extracted)


@pytest.mark.long
def test_words_are_open_where_the_pack_says_so(clock):
    with memlab.open(pack="associative", clock=clock) as lab:
        lab.agents.end_session("monday", SESSION)
        assert {"breakthrough", "failure", "pivot", "solution"} <= set(lab.memories["kind"])


@pytest.mark.long
def test_two_thousand_tokens_at_most(clock):
    with memlab.open(clock=clock) as lab:
        said = [
            f"The problem was that part {n} of the long pipeline hung {'again ' * 60}"
            for n in range(300)
        ]
        assert len(lab.agents.end_session("monday", said, store=False).extracted) <= 5

"""cascade: a context says a low confidence and a flagged contradiction, on both lines."""

import pytest

import memlab


def lab_of(pack="cascade"):
    clock = memlab.ManualClock("2025-06-01")
    return memlab.open(pack=pack, clock=clock), clock


@pytest.mark.long
def test_an_inference_of_a_year_ago_is_marked_and_a_fresh_one_is_not():
    lab, clock = lab_of()
    lab.remember("The parser was slow because of regular expressions", provenance="inferred")
    assert "(uncertain)" not in lab.context("why is the parser slow?").text
    clock.advance(days=365)
    lab.remember("The parser was slow on Windows")
    lines = lab.context("why is the parser slow?").text.splitlines()
    assert [line.endswith("(uncertain)") for line in lines if "regular" in line] == [True]
    assert [line.endswith("(uncertain)") for line in lines if "Windows" in line] == [False]


def test_both_lines_of_a_contradiction_are_marked():
    lab, _ = lab_of()
    tabs = lab.remember("The team indents with tabs", linking="off")
    spaces = lab.remember("The team indents with spaces", linking="off")
    lab.graph.link(spaces, tabs, "contradicts")
    text = lab.context("how does the team indent?").text
    assert "The team indents with tabs (contradicts: The team indents with spaces)" in text
    assert "The team indents with spaces (contradicts: The team indents with tabs)" in text
    lab.forget(tabs)
    assert "contradicts" not in lab.context("how does the team indent?").text


@pytest.mark.long
def test_private_memories_of_others_are_not_named():
    lab, _ = lab_of()
    tabs = lab.remember(
        "The team indents with tabs", linking="off", visibility="private", creator="agent:coder"
    )
    spaces = lab.remember("The team indents with spaces", linking="off")
    lab.graph.link(spaces, tabs, "contradicts")
    assert "tabs" not in lab.context("how does the team indent?", viewer="agent:tester").text
    assert "tabs" in lab.context("how does the team indent?", viewer="agent:coder").text


@pytest.mark.long
def test_a_mark_costs_tokens_of_the_budget():
    lab, clock = lab_of()
    for number in range(30):
        lab.remember(
            f"The parser of part {number} is slow because of regular expressions",
            provenance="inferred",
        )
    clock.advance(days=365)
    for budget in (60, 100, 200, 400):
        context = lab.context("why is the parser slow?", budget=budget)
        assert len(context.text.encode()) <= 4 * budget
        assert len(context.markdown.encode()) <= 4 * budget


def test_a_pack_that_does_not_ask_for_marks_writes_none():
    lab, clock = lab_of("memlab")
    tabs = lab.remember("The team indents with tabs", provenance="inferred", confidence=0.01)
    lab.graph.link(lab.remember("The team indents with spaces"), tabs, "contradicts")
    clock.advance(days=365)
    assert "(" not in lab.context("how does the team indent?").text.split("<memory", 1)[1]

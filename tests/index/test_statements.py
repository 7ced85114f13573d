"""Statements that a later text replaces: which are noticed, which are not, and which a query asks about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.kernel.english import Asked, restated

ASIDE = "Thanks for your patience! I had 3 cups of tea, and it rained all day."


def around(texts):
    return f"I want to be realistic about the week. {texts} {ASIDE}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Our bakery sells 220 loaves a day.", "In summer our bakery sells 310 loaves a day."),
        ("My visa expires on 12 March.", "My visa was renewed and expires on 20 October."),
        ("I'm at $3,200 for the motorbike.", "I've got $4,150 for the motorbike by now."),
        ("The test suite covers 58% of payments.", "The test suite covers 74% of payments."),
        ("The call with Ada is at 9 am.", "The call with Ada is at 2 pm."),
        ("I submitted the cover letter to Greg.", "I've never submitted the cover letter to Greg."),
        ("I've never flown with a small airline.", "I have flown with a small airline twice."),
    ],
)
def test_a_statement_within_a_long_message_is_replaced(old, new):
    (found,) = restated(around(old), around(new))
    assert around(old)[slice(*found.old)] in around(old)
    assert around(old)[slice(*found.old)].rstrip(".") in old
    assert around(new)[slice(*found.new)].rstrip(".") in new
    assert 0.4 <= found.likeness <= 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # other things
        ("Our bakery sells 220 loaves a day.", "Our bakery sells 80 croissants a day."),
        ("My visa expires on 12 March.", "My passport expires on 20 October."),  # of something else
        ("I do 25 push-ups.", "My sister does 40 push-ups."),  # of another person
        # still so
        (
            "Our bakery sells 220 loaves a day.",
            "Our bakery sells 220 loaves a day, and 90 in winter.",
        ),
        ("I submitted the cover letter to Greg.", "I've never submitted the invoice to Paula."),
        ("I've never flown with a small airline.", "My aunt has flown with a small airline."),
        ("I've never flown with a small airline.", "How do I get a seat with a small airline?"),
        ("Call `retry(3)` first.", "Call `retry(5)` first."),  # code is nobody's statement
    ],
)
def test_unrelated_statements_replace_nothing(old, new):
    assert restated(around(old), around(new)) == []


def test_a_question_is_about_one_statement_of_a_message():
    old = "The shed has 12 shelves, and the door is made of oak."
    new = "The shed has 15 shelves."
    assert Asked("How many shelves are in the shed?").outdated(old, new) == 1
    assert Asked("What is the door made of?").outdated(old, new) == 0
    assert Asked("").outdated(old, new) == 0


@pytest.mark.long
@given(st.text(max_size=200), st.text(max_size=200), st.sampled_from(["english", "german", "none"]))
def test_any_two_texts_can_be_compared(old, new, language):
    for found in restated(old, new, language):
        assert 0 < found.likeness <= 1 + 1e-9
        assert 0 <= found.old[0] <= found.old[1] <= len(old)
        assert 0 <= found.new[0] <= found.new[1] <= len(new)
    assert (
        restated(old, old, language) == []
        or "never" in old.lower()
        or "n't" in old.lower()
        or "not" in old.lower()
    )


@pytest.mark.long
def test_of_a_table_only_the_first_values_are_compared():
    """Comparing takes the product of the values: a pasted table must not make it slow."""
    older, newer = (
        "; ".join(f"shelf holds {n} cups" for n in range(start, start + 900))
        for start in (0, 7_000)
    )
    assert 0 < len(restated(older, newer)) <= 256
    [found] = [
        item
        for item in restated(f"The shed cost $900. {older}", f"The shed cost $800. {newer}")
        if item.words == {"shed", "cost"}
    ]
    assert found.old == (0, 18)

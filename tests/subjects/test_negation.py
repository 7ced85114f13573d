"""What two texts say of each other, word by word."""

import pytest

from memlab.subjects.reading.claims import LONGEST_STATEMENT, Statement, difference


@pytest.mark.parametrize(
    ("old", "new", "negated"),
    [
        ("Indent with tabs", "From now on indent with spaces", "tabs -> spaces"),
        (
            "Deploy on fridays",
            "Do not deploy on fridays",
            "Deploy on fridays -> Do not deploy on fridays",
        ),
        ("The API needs a token", "The API no longer needs a token", None),
        ("The port is 8080", "The port is now 8081", "8080 -> 8081"),
    ],
)
def test_a_changed_statement_keeps_its_negation(old, new, negated):
    changes = difference(old, new)
    assert changes == negated if negated else "no longer" in changes


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Server A is the primary", "Server B is the primary"),
        ("We meet on Monday", "We meet on Tuesday"),
        ("The port is 8080", "The port is 8081"),
        ("Release in March", "Release in April"),
    ],
)
def test_things_distinguished_by_a_letter_a_number_or_a_day(first, second):
    assert Statement(first).numbers != Statement(second).numbers
    assert (
        Statement(first).numbers
        == Statement(first.lower().capitalize() if first[0].islower() else first).numbers
    )


def test_i_and_a_are_words_where_a_sentence_begins():
    assert Statement("A token is needed").numbers == Statement("The token is needed").numbers


def test_the_same_words_in_another_order_say_something_else():
    assert not Statement("Alice owes Bob money").same_order(Statement("Bob owes Alice money"))
    assert Statement("Alice owes Bob money").same_order(
        Statement("Alice owes the money to Bob soon")
    )
    assert Statement("tabs please").same_order(Statement("please, tabs!")) is False


def test_of_a_text_that_says_more_than_one_thing_nothing_is_said():
    told = "We no longer use tabs" + ", and there is much to say of this and of that" * 6
    assert len(Statement(told).words) > LONGEST_STATEMENT
    assert Statement("We no longer use tabs").denies(Statement("We use tabs"))
    assert not Statement(told).denies(Statement("We use tabs"))
    assert not Statement("We no longer use tabs").denies(Statement(told.replace("no longer ", "")))
    assert not Statement(told).updates(Statement("We use tabs"))

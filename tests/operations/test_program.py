"""Operations are read and checked whole: every mistake has its line, its column and its caret."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import (
    InputError,
    PolicyError,
    PolicyLimitError,
    PolicyNameError,
    PolicySyntaxError,
    PolicyTypeError,
)
from memlab.kernel.state import is_blank
from memlab.subjects.programs import OPERATIONS, read_program

SPELLINGS = [
    (
        '(remember "tabs" "preference" 0.8 "30d" ["style" "x"])',
        {"type": "preference", "ttl": 30.0, "tags": ["style", "x"]},
    ),
    (
        '(remember "tabs" preference 1 "perpetual" \'(style x))',
        {"importance": 1, "ttl": None, "tags": ["style", "x"]},
    ),
    (
        '(remember "tabs" nil 0.5 "2w" (list "style"))',
        {"type": None, "ttl": 14.0, "tags": ["style"]},
    ),
    (
        '(remember "tabs")',
        {"text": "tabs", "type": None, "importance": None, "ttl": None, "tags": None},
    ),
    (
        '(fact "user" "lives-in" "Rome" 0.9 object)',
        {"subject": "user", "value": "Rome", "sort": "object"},
    ),
    ('(fact "user" "likes" "tea")', {"confidence": None, "sort": None}),
    ('(recall "tabs?" 5)', {"query": "tabs?", "limit": 5}),
    ('(recall "tabs?")', {"limit": None}),
    (
        '(associate 1 2 "relates-to" 0.5)',
        {"from": 1, "to": 2, "relation": "relates-to", "weight": 0.5},
    ),
    ('(feedback 3 "success")', {"id": 3, "outcome": "success"}),
    ("(consolidate)", {}),
    ("(decay! 12.5)", {"half-life-days": 12.5}),
    ("(get-policy)", {}),
    ("(set-policy-fn decay (fn [base-half-days] base-half-days))", {"name": "half-life"}),
    (
        '(set-policy-fn "recall-score" "(lambda (activation) activation)")',
        {"code": "(lambda (activation) activation)"},
    ),
    (
        "(set-policy-fn recall '(lambda (recency) recency))",
        {"name": "recall-score", "code": "(lambda (recency) recency)"},
    ),
    ("(adapt-policy)", {"missing": None}),
    ("(adapt-policy censor)", {"missing": "censor"}),
    (
        '(adapt-policy "zero" "1d" "day")',
        {"missing": "zero", "horizon": "1d", "cluster": "day", "level": None},
    ),
    (
        '(adapt-policy "zero" :cluster "day" :horizon "1d")',
        {"missing": "zero", "horizon": "1d", "cluster": "day"},
    ),
    (
        "(adapt-policy :missing :bounds :level 0.9 :seed 3 :estimator ht)",
        {"missing": "bounds", "level": 0.9, "seed": 3},
    ),
    ("(adapt-policy :missing nil)", {"missing": None}),
    (
        '(remember "tabs" :tags ["style"] :importance 0.5)',
        {"type": None, "importance": 0.5, "tags": ["style"]},
    ),
    ("(feedback 3 :success)", {"outcome": "success"}),
    ("(stats)", {}),
    ("(trace 7 3)", {"id": 7, "depth": 3}),
    ("(activate [1 2] 3 0.7 0.01)", {"seeds": [1, 2], "steps": 3, "decay": 0.7, "threshold": 0.01}),
    ("(activate 4)", {"seeds": [4], "steps": None}),
]


@pytest.mark.parametrize(("text", "arguments"), SPELLINGS)
def test_every_operation_in_its_spelling(text, arguments):
    (call,) = read_program(text).calls
    assert call.source == text
    assert arguments.items() <= call.arguments.items()


def test_all_thirteen_are_declared():
    spelt = {read_program(text).calls[0].name for text, _ in SPELLINGS}
    assert spelt == set(OPERATIONS)
    assert len(OPERATIONS) == 13


MISTAKES = [
    ('(remembr "x")', PolicyNameError, 1, 2, "Did you mean remember"),
    ("(recall)", PolicyTypeError, 1, 1, "Argument query is missing: write (recall query [limit])"),
    ('(stats)\n  (recall "x" 0)', PolicyTypeError, 2, 15, "limit must be in 1..10000, not 0"),
    ('(recall "x" 1.5)', PolicyTypeError, 1, 13, "a whole number"),
    ('(recall "  ")', PolicyTypeError, 1, 9, "The text is empty"),
    ("(recall tabs)", PolicyTypeError, 1, 9, "a text in quotes"),
    ('(recall "a" 1 2)', PolicyTypeError, 1, 15, "recall takes 1 to 2"),
    ('(adapt-policy :horizon "soon")', PolicyTypeError, 1, 24, 'a span in quotes, such as "7d"'),
    ("(adapt-policy :horizon 7)", PolicyTypeError, 1, 24, "a span in quotes"),
    ("(adapt-policy :horizon)", PolicyTypeError, 1, 15, ":horizon has no value"),
    (
        '(adapt-policy :cluster "day" "zero")',
        PolicyTypeError,
        1,
        30,
        "After :cluster come names and values",
    ),
    ('(adapt-policy "zero" :missing "censor")', PolicyTypeError, 1, 22, ":missing occurs twice"),
    ("(adapt-policy :level 2)", PolicyTypeError, 1, 22, "level must be in 0.5..0.999"),
    ("(adapt-policy :wrong 2)", PolicyNameError, 1, 15, "wrong"),
    ("(stats 1)", PolicyTypeError, 1, 8, "stats takes no argument"),
    ('(remember "a" fackt)', PolicyNameError, 1, 15, "Did you mean fact"),
    ('(remember "a" fact 2)', PolicyTypeError, 1, 20, "importance must be in 0..1, not 2"),
    (
        '(remember "a" fact 0.5 "30 days")',
        PolicyTypeError,
        1,
        24,
        '"30d" (h, d, w, m or y) or "perpetual"',
    ),
    ('(remember "a" fact 0.5 "0d")', PolicyTypeError, 1, 24, "perpetual"),
    ('(remember "a" fact 0.5 "30d" "tag")', PolicyTypeError, 1, 30, "a list such as"),
    ('(remember "a" fact 0.5 "30d" [1])', PolicyTypeError, 1, 31, "a list of texts"),
    ("(associate 1 1)", PolicyTypeError, 1, 14, "cannot be joined to itself"),
    ("(associate 0 1)", PolicyTypeError, 1, 12, "the id of a memory"),
    ("(associate 1 2 likes)", PolicyNameError, 1, 16, "There is no relation"),
    ('(feedback 1 "sucess")', PolicyNameError, 1, 13, "Did you mean success"),
    ("(decay! 0)", PolicyTypeError, 1, 9, "half-life-days must be in 1e-06..1e+09"),
    ("(set-policy-fn recal-score (fn [] 1))", PolicyNameError, 1, 16, "Did you mean recall-score"),
    ("(set-policy-fn decay (fn [sucess] 1))", PolicyNameError, 1, 22, "Did you mean success"),
    (
        '(set-policy-fn decay "(fn [success] \\"a\\")")',
        PolicyTypeError,
        1,
        22,
        "The policy half-life is invalid",
    ),
    (
        "(set-policy-fn decay (defpolicy explore [access] access))",
        PolicyNameError,
        1,
        22,
        "Unknown input|explore",
    ),
    ("(set-policy-fn decay 7)", PolicyTypeError, 1, 22, "a policy such as"),
    ("(trace 1 11)", PolicyTypeError, 1, 10, "depth must be in 1..10"),
    ("(activate [])", PolicyTypeError, 1, 11, "an id or a list"),
    ("(activate [1] 101)", PolicyTypeError, 1, 15, "steps must be in 0..100"),
    ('(recall "x"', PolicySyntaxError, 1, 1, "The text ends"),
    ('"recall"', PolicySyntaxError, 1, 1, "An operation must be a form"),
    ("((recall))", PolicySyntaxError, 1, 1, "An operation must be a form"),
    ("(import os)", PolicyNameError, 1, 2, 'no operation "import"'),
    ("(os.system 1)", PolicySyntaxError, 1, 2, "dotted name"),
    ('(eval "1")', PolicyNameError, 1, 2, 'no operation "eval"'),
    ("#(1)", PolicySyntaxError, 1, 1, "tuple"),
]


@pytest.mark.parametrize(("text", "kind", "line", "column", "message"), MISTAKES)
def test_a_mistake_is_shown_where_it_is(text, kind, line, column, message):
    with pytest.raises(kind) as raised:
        read_program(text, file="day.hy").check_words()
    error = raised.value
    assert (error.line, error.column) == (line, column)
    assert any(part in str(error) for part in message.split("|"))
    assert str(error).startswith("day.hy")
    assert "^" in str(error)


def test_an_empty_text_and_one_that_is_too_long():
    with pytest.raises(PolicySyntaxError, match="no operation in the text"):
        read_program(" ; nothing\n")
    with pytest.raises(PolicyLimitError, match="more than 3 operations") as raised:
        read_program("(stats)\n" * 5, limit=3)
    assert raised.value.line == 4
    with pytest.raises(PolicyLimitError, match="characters"):
        read_program("(stats)" * 10, characters=20)
    with pytest.raises(PolicyLimitError, match="nest deeper"):
        read_program("(" * 5000)
    with pytest.raises(InputError, match="not int"):
        read_program(7)


def test_a_program_refers_to_ids_that_it_will_create():
    program = read_program(
        '(remember "a") (associate 1 2) (remember "b") (feedback 3 "fail") (activate [1 4])'
    )
    with pytest.raises(PolicyNameError, match=r"No memory has the id 4\. There are 3") as raised:
        program.check_ids(1)
    assert raised.value.column == program.source.index("[1 4]") + 1
    program.check_ids(2)


@pytest.mark.long
@given(st.text(max_size=200))
def test_whatever_is_read_is_a_program_or_a_policy_error(text):
    with contextlib.suppress(PolicyError):
        read_program(text)


@pytest.mark.long
@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), min_size=1).filter(
        lambda text: not is_blank(text)
    )
)
def test_any_text_can_be_remembered_by_a_program(text):
    from memlab.kernel.language import write_data

    (call,) = read_program(f"(remember {write_data(text)})").calls
    assert call.arguments["text"] == text

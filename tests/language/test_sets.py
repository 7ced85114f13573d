"""Sets are read only through tests that give a scalar; the tests agree on every back end."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import InputError, PolicyError, UnknownName
from memlab.kernel.language import Input, Signature, compile_policy

SETS = [Input("tags", "set"), Input("query-tags", "set"), Input("new/tags", "set"), Input("x")]
SLOTS = {"num": Signature("score", SETS), "bool": Signature("test", SETS, "bool")}
words = st.sampled_from(["a", "b", "c", 'q"t', "über", ""])
maybe_set = st.none() | st.lists(st.none() | words, max_size=5)

REFERENCE = {
    "(has tags \"a\")": ("bool", lambda s, t: "a" in s),
    '(has tags "q\\"t")': ("bool", lambda s, t: 'q"t' in s),
    '(has-any tags ["a" "b"])': ("bool", lambda s, t: bool(s & {"a", "b"})),
    '(has-all tags ["a" "b"])': ("bool", lambda s, t: s >= {"a", "b"}),
    '(has-any tags "a")': ("bool", lambda s, t: "a" in s),
    "(size tags)": ("num", lambda s, t: float(len(s))),
    "(overlap tags query-tags)": ("num", lambda s, t: float(len(s & t))),
    "(jaccard tags query-tags)": ("num", lambda s, t: len(s & t) / len(s | t) if s | t else 0.0),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("test", REFERENCE)
@given(table=st.lists(st.tuples(maybe_set, maybe_set), min_size=1, max_size=6))
def test_each_agrees_with_python_on_every_back_end(test: str, table: list[tuple]) -> None:
    returns, reference = REFERENCE[test]
    policy = compile_policy(f"(fn [tags query-tags] {test})", SLOTS[returns])
    needs_both = "query-tags" in test
    expected = [
        None
        if s is None or (needs_both and t is None)
        else reference(set(s) - {None}, set(t or ()) - {None})
        for s, t in table
    ]
    schema = dict.fromkeys(["tags", "query_tags"], pl.List(pl.String))
    frame = pl.DataFrame(
        {"tags": [s for s, _ in table], "query_tags": [t for _, t in table]}, schema=schema
    )
    assert policy.columns(frame).to_list() == expected
    assert [policy.row(row) for row in frame.to_dicts()] == expected
    values, nulls = policy.arrays(
        {"tags": frame["tags"].to_list(), "query_tags": frame["query_tags"].to_list()}
    )
    results = [None if nulls is not None and nulls[i] else v for i, v in enumerate(values.tolist())]
    assert results == expected


def test_the_input_of_a_policy_is_the_test_itself() -> None:
    policy = compile_policy('(fn [tags x] (if (has tags "a") x 0))', SLOTS["num"])
    assert policy.inputs == ('(has tags "a")', "x")
    assert policy.derived['(has tags "a")'].sets == ("tags",)
    assert policy.row({'(has tags "a")': True, "x": 2}) == 2.0
    assert policy.columns(
        pl.DataFrame({'(has tags "a")': [True, False], "x": [2, 2]})
    ).to_list() == [2.0, 0.0]
    assert policy.arrays({'(has tags "a")': np.array([True, False]), "x": [2, 2]})[0].tolist() == [
        2.0,
        0.0,
    ]


def test_order_and_layout_do_not_make_two_inputs() -> None:
    policy = compile_policy(
        "(fn [tags query-tags] (- (overlap tags query-tags) (overlap query-tags tags)))",
        SLOTS["num"],
    )
    assert policy.inputs == ("(overlap query-tags tags)",)


def test_a_set_may_be_bound_and_may_be_of_a_pair() -> None:
    policy = compile_policy('(fn [new/tags] (let [t new/tags] (has t "a")))', SLOTS["bool"])
    assert policy.inputs == ('(has new/tags "a")',)
    assert policy.row({"new/tags": {"a"}}) is True


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "(+ tags 1)",
            "tags is a set: only has, has-any, has-all, overlap, jaccard, size take sets",
        ),
        ('(has x "a")', "has takes a set here; the sets of score are tags, query-tags, new/tags"),
        ("(if (has tags 1) 1 0)", "A set can contain strings only"),
        ('(if (has tags ["a" "b"]) 1 0)', "several go with has-any, has-all"),
        ("(overlap tags tags)", "both are the same here"),
        ("(overlap tags query-tags)", "query-tags is a feature, but not an argument"),
        ('(tags "a")', "tags is a set here, not a function"),
    ],
)
def test_errors(body: str, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        compile_policy(f"(fn [tags x] {body})", SLOTS["num"])
    assert message in str(caught.value)


def test_values_that_are_no_sets() -> None:
    policy = compile_policy('(fn [tags] (has tags "a"))', SLOTS["bool"])
    with pytest.raises(InputError, match="tags must be a set of strings"):
        policy.row({"tags": "abc"})
    with pytest.raises(InputError, match="contains other values"):
        policy.row({"tags": [1]})
    with pytest.raises(InputError, match="a column of lists of strings"):
        policy.columns(pl.DataFrame({"tags": [1, 2]}))
    with pytest.raises(UnknownName):
        policy.row({"x": 1})

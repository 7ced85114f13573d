"""Expressions over the memories: what they give, how they are logged, and that nothing in a log is run."""

import contextlib
import datetime as dt
import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memlab
from memlab.errors import PrivacyError
from memlab.kernel.recall import Where
from memlab.kernel.recall._population import memory_columns
from memlab.kernel.schema import MEMORY

DAY = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)

PLAIN = [
    (pl.col("importance") > 0.5) & (pl.col("kind") == "fact"),
    pl.col("kind").is_in(["fact", "goal"]),
    pl.col("id").is_in([1, 3, None]),
    pl.col("id").is_in(pl.Series([2, 3])),
    pl.col("tags").list.contains("x"),
    pl.col("tags").list.len() == 0,
    pl.col("tags").list.eval(pl.element() == "x").list.any(),
    pl.col("text").str.contains("goat", literal=True) | pl.col("text").str.starts_with("a"),
    pl.col("text").str.to_lowercase().str.len_chars() % 2 == 0,
    pl.col("created") > DAY,
    pl.col("created").dt.date() >= DAY.date(),
    pl.col("created") - pl.col("accessed") < dt.timedelta(days=1),
    pl.col("importance") > pl.col("importance").mean(),
    pl.col("importance") >= pl.col("importance").quantile(0.5),
    pl.col("importance") >= pl.col("importance").max().over("kind"),
    pl.col("ref").is_null() & ~pl.col("pinned"),
    pl.col("importance").is_between(0.2, 0.8),
    pl.when(pl.col("pinned")).then(True).otherwise(pl.col("access") > 2),
    pl.col("importance").cast(pl.Int64) == 1,
    -pl.col("importance") < 0,
    pl.col("ref").fill_null("none") == "none",
    pl.any_horizontal(pl.col("pinned"), pl.col("importance") > 0.9),
    (pl.col("access") < 1).alias("unused"),
    (pl.col("pinned") == True) | (pl.len() > 2),  # noqa: E712
]
"""Expressions that a log can hold."""


@pytest.fixture
def stocked(lab):
    """Return a lab with memories of several kinds, one without most fields."""
    lab.remember(
        [
            {
                "text": "a goat",
                "kind": "goal",
                "importance": 1.0,
                "tags": ["x", "y"],
                "ref": "r1",
                "stability": 3.0,
            },
            {
                "text": "Tabs",
                "kind": "fact",
                "importance": 0.2,
                "pinned": True,
                "at": DAY - dt.timedelta(days=9),
            },
            {
                "text": "no GOAT",
                "kind": "fact",
                "importance": 0.7,
                "tags": ["z"],
                "session": "s",
                "speaker": "Ana",
            },
            {"text": "nothing else"},
        ]
    )
    lab.recall("goat", limit=1)
    return lab


@pytest.mark.long
def test_the_columns_are_those_of_lab_memories(stocked):
    everything = memory_columns(stocked.io.store.state, ["id", *MEMORY])
    assert everything.equals(stocked.memories)
    assert everything.schema == stocked.memories.schema


@pytest.mark.parametrize("expression", PLAIN, ids=str)
def test_the_mask_is_what_polars_filters(stocked, expression):
    where = Where.of(expression)
    expected = stocked.memories.filter(expression)["id"].to_list()
    assert [row + 1 for row in where.mask(stocked.io.store.state).nonzero()[0]] == expected


@pytest.mark.parametrize("expression", PLAIN, ids=str)
def test_a_log_holds_it_as_data_and_gives_it_back(stocked, expression):
    where = Where.of(expression)
    assert where.plain
    again = Where.read(where.text)
    state = stocked.io.store.state
    assert again == where
    assert again.mask(state).tolist() == where.mask(state).tolist()


def test_the_same_expression_has_the_same_identity():
    one, two = (Where.of(pl.col("kind").is_in(["fact"])) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert one != Where.of(pl.col("kind").is_in(["goal"]))


RAN = []


def spy(text):
    RAN.append(text)
    return True


def test_a_filter_that_calls_python_works_but_is_never_read_back(stocked):
    expression = pl.col("text").map_elements(spy, return_dtype=pl.Boolean)
    where = Where.of(expression)
    assert not where.plain
    assert where.mask(stocked.io.store.state).tolist() == [True] * 4
    RAN.clear()
    with pytest.raises(memlab.InputError, match="logged filter"):
        Where.read(where.text)
    for hidden in (
        expression,
        expression & pl.col("pinned"),
        pl.col("id").sum().over(expression) > 1,
    ):
        with pytest.raises(memlab.InputError, match="not loaded from a log"):
            Where.read(hidden.meta.serialize(format="json"))
    assert RAN == []


def forged():
    """Return expression trees as memlab writes them, with a Python pickle inserted."""
    pickled = json.loads(
        pl.col("text").map_elements(spy, return_dtype=pl.Boolean).meta.serialize(format="json")
    )
    places = []
    for expression in PLAIN:
        tree = json.loads(Where.of(expression).text)

        def visit(node, tree=tree):
            for key in (
                node
                if isinstance(node, dict)
                else range(len(node))
                if isinstance(node, list)
                else ()
            ):
                kept, node[key] = node[key], pickled
                places.append(json.dumps(tree))
                node[key] = kept
                visit(kept)

        visit(tree)
    return places


@pytest.mark.long
def test_a_pickle_anywhere_in_a_tree_is_refused():
    RAN.clear()
    for text in forged():
        with pytest.raises(memlab.InputError, match="logged filter"):
            Where.read(text)
    assert RAN == []


NAMES = [
    "Column",
    "Literal",
    "Scalar",
    "Dyn",
    "Function",
    "input",
    "function",
    "BinaryExpr",
    "left",
    "Values",
    "type",
]
NAMES += ["shape", "items", "Agg", "Alias", "Over", "Cast", "Int"]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["Column", "Len", "Element", "Int64", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(NAMES),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@pytest.mark.long
@given(JSON.map(json.dumps) | st.text(max_size=20))
def test_any_text_is_an_expression_or_an_input_error(text):
    with contextlib.suppress(memlab.InputError):
        Where.read(text)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (
            pl.col("importence") > 1,
            'no column of the memories "importence". Did you mean importance',
        ),
        (pl.col("importance") * 2, "gives values of type Float64. It must give true or false"),
        (pl.col("importance").mean() > 0.5, "gives 1 values for 4 memories. It aggregates"),
        (pl.lit(True), "It aggregates"),
        (pl.col("kind").unique() == "fact", "gives [123] values for 4 memories"),
        (pl.col("text") > 3, "cannot be computed"),
        (pl.col("kind", "text") == "x", "gives several"),
        (pl.all().is_null(), "gives several"),
        ("kind == 'fact'", "where is a Polars expression"),
        (True, "where is a Polars expression"),
    ],
)
def test_an_invalid_filter_says_why(stocked, expression, message):
    with pytest.raises(memlab.InputError, match=message):
        stocked.recall("goat", where=expression)


def test_a_secret_does_not_reach_the_log(stocked):
    with pytest.raises(PrivacyError, match="filter"):
        stocked.recall("goat", where=pl.col("text").str.contains("ghp_" + "a1B2" * 9))


def test_null_admits_nothing(stocked):
    assert stocked.recall("goat", where=pl.col("ref") == "r1", log=False).ids == (1,)
    assert 1 not in stocked.recall("goat", where=pl.col("ref") != "r1", log=False).ids

"""Filters: a filtered recall is that of a lab which holds nothing else."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import memlab
from memlab.kernel.recall import Filters, Question, Recaller
from memlab.kernel.schema import SCOPES, STATUSES, VISIBILITIES

WORDS = ["goat", "sea", "bakery", "tabs", "deploy", "review", "swim", "village"]


@st.composite
def memories(draw):
    word = st.sampled_from
    return [
        {
            "text": " ".join(draw(st.lists(word(WORDS), min_size=1, max_size=4))),
            "ref": str(number),
            "scope": draw(word(["global", "project"])),
            "visibility": draw(word(VISIBILITIES)),
            "branch": draw(st.none() | word(["main", "fix", "next"])),
            "creator": draw(st.none() | word(["user", "agent:a"])),
            "project": draw(st.none() | word(["p", "q"])),
            "session": draw(st.none() | word(["1", "2"])),
            "importance": draw(st.sampled_from([0.2, 0.5, 0.9])),
            "tags": draw(st.none() | st.just(["x"])),
        }
        for number in range(draw(st.integers(1, 8)))
    ]


def some(words):
    return (
        st.none()
        | st.sampled_from(words)
        | st.lists(st.sampled_from(words), min_size=1, max_size=3)
    )


ARGUMENTS = st.fixed_dictionaries(
    {
        "scope": some(SCOPES),
        "visibility": some(VISIBILITIES),
        "branch": some(["main", "fix", "unheard-of"]),
        "viewer": st.none() | st.sampled_from(["user", "agent:a", "agent:b"]),
        "project": st.none() | st.sampled_from(["p", "q"]),
        "where": st.none()
        | st.sampled_from(
            [
                pl.col("importance") > 0.4,
                pl.col("tags").list.contains("x"),
                pl.col("session").is_null(),
            ]
        ),
    }
)


def admits(memory, arguments):
    """Return whether the filter admits a memory, by the documentation of ``recall``."""

    def matches_filter(name, value, *more):
        wanted = arguments[name]
        return (
            wanted is None
            or value in (wanted if isinstance(wanted, list) else [wanted])
            or value in more
        )

    secret = memory["visibility"] == "private" and memory["creator"] != arguments["viewer"]
    where = arguments["where"]
    frame = pl.DataFrame(
        [memory], schema_overrides={"tags": pl.List(pl.String), "session": pl.String}
    )
    frame = frame.with_columns(pl.col("tags").fill_null([]))
    return (
        matches_filter("scope", memory["scope"])
        and matches_filter("visibility", memory["visibility"])
        and matches_filter("branch", memory["branch"], None)
        and (matches_filter("project", memory["project"], None) or memory["scope"] == "global")
        and not (secret and arguments["viewer"] is not None)
        and (where is None or frame.filter(where).height == 1)
    )


@pytest.mark.long
@given(memories(), ARGUMENTS, st.sampled_from(memlab.packs()), st.sampled_from(WORDS))
@examples(120, quick=8)
def test_an_excluded_memory_changes_no_result(trigrams, filters, arguments, pack, query):
    """The same memories in the same order with the same scores and features as in a lab that has only them.

    Without linking: that compares memories whatever a later query leaves out. One that ``where`` leaves out may have
    been merged with one that it admits, or be among the nearest to which alone that one was linked.
    """
    clock = memlab.ManualClock("2026-03-01")
    admitted = [memory for memory in filters if admits(memory, arguments)]
    with memlab.open(embedder=trigrams, clock=clock, pack=pack) as lab:
        lab.remember(filters, linking="off")
        hits = lab.recall(query, log=False, **arguments)
    with memlab.open(embedder=trigrams, clock=clock, pack=pack) as small:
        small.remember(admitted, linking="off")
        alone = small.recall(query, log=False, branch=arguments["branch"])
    assert_the_same(hits, alone)


def assert_the_same(found, alone):
    assert [(hit.ref, hit.score) for hit in found] == [(hit.ref, hit.score) for hit in alone]
    for name, values in alone.slate.numbers.items():
        assert np.array_equal(found.slate.numbers[name], values, equal_nan=True), name


LINKS = """
    (pack links :inherits {}) (setting destroy-certainty 0) (setting link-candidates 3) (setting edges-per-node 2)
    (defpolicy link [pair/similarity]
      (cond (> pair/similarity 0.9) "duplicate" (> pair/similarity 0.5) "updates" (> pair/similarity 0.2) "similar"
            (> pair/similarity 0) "related" else "none"))
    (defpolicy resolve [pair/similarity] (if (> pair/similarity 0.9) "merge" "keep-new"))
"""
"""Merges, supersedes and links whatever it can, among few neighbours."""


@st.composite
def rows_of_many(draw, **fields):
    """Return enough memories of a few words to be linked with one another."""
    words = st.lists(st.sampled_from(WORDS[:5]), min_size=1, max_size=3).map(" ".join)
    row = st.fixed_dictionaries(
        {"text": words, "session": st.none() | st.sampled_from(["1", "2"]), **fields}
    )
    return [
        item | {"ref": str(number)}
        for number, item in enumerate(draw(st.lists(row, min_size=6, max_size=24)))
    ]


CREATORS = st.sampled_from(["user", "agent:a", "agent:b"])


@pytest.mark.long
@given(
    rows_of_many(
        visibility=st.sampled_from(["private", "private", "project", "team"]),
        creator=CREATORS,
        tags=st.sampled_from([[], ["x"]]),
        kind=st.sampled_from(["fact", "decision", "turn"]),
    ),
    CREATORS,
    st.sampled_from(memlab.packs()),
    st.sampled_from(["off", "now"]),
    st.sampled_from(WORDS[:5]),
)
@examples(300, quick=15)
def test_recalls_reveal_nothing_of_a_hidden_memory(
    trigrams, arguments, viewer, pack, linking, query
):
    """Not by order, score or feature, whatever was merged, superseded and linked."""
    clock = memlab.ManualClock("2026-03-01")
    seen = [row for row in arguments if row["visibility"] != "private" or row["creator"] == viewer]
    with memlab.open(embedder=trigrams, clock=clock, pack=LINKS.format(pack)) as lab:
        lab.remember(arguments, linking=linking)
        hits = lab.recall(query, log=False, viewer=viewer)
        own = lab.at(viewer=viewer).recall(query, log=False)
    with memlab.open(embedder=trigrams, clock=clock, pack=LINKS.format(pack)) as small:
        small.remember(seen, linking=linking)
        alone = small.recall(query, log=False)
    assert_the_same(hits, alone)
    assert_the_same(own, alone)


@pytest.mark.long
@given(
    rows_of_many(project=st.sampled_from(["p", "q"]), branch=st.sampled_from(["main", "fix"])),
    st.sampled_from(memlab.packs()),
    st.sampled_from(WORDS[:5]),
)
@examples(200, quick=10)
def test_memories_of_other_projects_and_branches_change_no_result(trigrams, arguments, pack, query):
    """Linking compares a memory with what a recall from its own project and branch would find."""
    clock = memlab.ManualClock("2026-03-01")
    here = [row for row in arguments if row["project"] == "p" and row["branch"] == "main"]
    with memlab.open(embedder=trigrams, clock=clock, pack=LINKS.format(pack)) as lab:
        lab.remember(arguments, linking="now")
        hits = lab.recall(query, log=False, project="p", branch="main")
    with memlab.open(embedder=trigrams, clock=clock, pack=LINKS.format(pack)) as small:
        small.remember(here, linking="now")
        alone = small.recall(query, log=False, project="p", branch="main")
    assert_the_same(hits, alone)


@pytest.mark.long
@pytest.mark.parametrize("count", [3, 500])
def test_neighbours_in_a_session_are_those_that_pass_the_filter(lab, count):
    """What is left out between them, however much, takes no place."""
    texts = ["goat", *[f"sea {number}" for number in range(count)], "goat hay", "tabs"]
    lab.remember(
        [
            {"text": text, "session": "s", "branch": "fix" if "sea" in text else "main"}
            for text in texts
        ],
        linking="off",
    )
    policy = "(fn [around-similarity around-lexical] (+ around-similarity around-lexical))"
    lab.policies.install("recall-score", policy)
    hits = lab.recall("hay", log=False, branch="main")
    with memlab.open(
        embedder=lab.io.store.embedder, clock=lab.io.store.clock, pack=lab.policies.pack
    ) as small:
        small.remember(
            [{"text": text, "session": "s"} for text in ("goat", "goat hay", "tabs")], linking="off"
        )
        alone = small.recall("hay", log=False)
    assert [(hit.text, hit.score) for hit in hits] == [(hit.text, hit.score) for hit in alone]
    assert len(hits) == 3


@pytest.fixture
def stages(lab):
    """Return a lab with a memory in each status that a verb can set, and of each visibility."""
    lab.remember([{"text": f"goat {number}"} for number in range(3)])
    lab.forget(2)
    return lab


def ids(lab, **more):
    return sorted(lab.recall("goat", log=False, **more).ids)


def test_status(stages):
    assert ids(stages) == [1, 3]
    assert ids(stages, status="forgotten") == [2]
    assert ids(stages, status=["forgotten", "active"]) == [1, 2, 3]
    assert ids(stages, status="superseded") == []


def test_private_memories_are_for_their_creator(lab):
    lab.remember(
        [
            {"text": "goat", "visibility": "private", "creator": "user"},
            {"text": "goat", "visibility": "private", "creator": "agent:a"},
            {"text": "goat", "visibility": "private"},
            {"text": "goat", "visibility": "team", "creator": "user"},
        ]
    )
    assert ids(lab) == [1, 2, 3, 4]
    assert ids(lab, viewer="agent:a") == [2, 4]
    assert ids(lab, viewer="nobody") == [4]
    assert ids(lab, viewer="agent:a", visibility="private") == [2]


def test_a_session_scoped_memory_stays_in_its_session(lab):
    lab.remember(
        [{"text": "goat", "scope": "session", "session": "1"}, {"text": "goat", "scope": "global"}]
    )
    assert ids(lab, scope="session") == []
    assert ids(lab, scope="session", session="1") == [1]
    assert ids(lab, scope=["session", "global"], session="2") == [2]


def test_spreading_does_not_leave_the_filter(lab):
    lab.remember([{"text": text, "session": "s"} for text in ("goat", "aa", "bb")], chain=True)
    assert ids(lab) == [1, 2, 3]
    assert ids(lab, where=pl.col("text") != "aa") == [1, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"status": "actve"}, 'There is no status "actve". Did you mean active'),
        ({"scope": ["project", "world"]}, 'There is no scope "world"'),
        (
            {"visibility": []},
            r"visibility=\[\] admits no memory. Name at least one of private, team, project",
        ),
        ({"branch": []}, r"branch=\[\] admits no memory"),
        ({"branch": ""}, "branch must be a word or a list of words"),
        ({"status": 3}, "status is a text or a list of which each is a text, not 3"),
        ({"status": ["active", None]}, r"status\[1\] is a text"),
        ({"viewer": ""}, "viewer must be the name of a user"),
    ],
)
def test_an_invalid_word_says_why(stages, arguments, message):
    with pytest.raises(memlab.InputError, match=message):
        stages.recall("goat", **arguments)


def test_a_log_returns_the_filter_that_was_logged():
    filters = Filters.of(
        status=["superseded", "active"],
        branch="main",
        viewer="agent:a",
        where=pl.col("kind").is_in(["fact"]),
    )
    assert Filters.read(filters.logged()) == filters
    assert Filters.of() == Filters.read({}) == Filters()
    assert Filters().logged() == {}
    assert set(STATUSES) >= set(filters.status)


class TestPopulationsAreKept:
    @pytest.fixture
    def population(self, stages):
        recaller = Recaller(stages.io.embedder)

        def of(**arguments):
            question = Question("goat", at=0, filters=Filters.of(**arguments))
            return recaller.population(stages.io.store.state, question)

        return of

    def test_until_a_memory_is_added_or_changes_its_status(self, stages, population):
        arguments = {"where": pl.col("text").str.contains("goat")}
        first = population(**arguments)
        assert population(**arguments) is first
        stages.recall("goat")
        assert population(**arguments) is first
        stages.restore(2)
        assert population(**arguments).rows.tolist() == [0, 1, 2]
        stages.remember("a goat again")
        assert population(**arguments).rows.tolist() == [0, 1, 2, 3]

    def test_until_the_next_event_where_use_is_read(self, stages, population):
        unused = {"where": pl.col("access") == 0}
        assert population(**unused).rows.tolist() == [0, 2]
        ids = stages.recall("goat", limit=1).ids
        assert population(**unused).rows.tolist() == sorted({0, 2} - {id - 1 for id in ids})

    def test_not_where_python_is_called(self, stages, population):
        wanted = {"goat 0"}
        arguments = {
            "where": pl.col("text").map_batches(
                lambda texts: texts.is_in(wanted), return_dtype=pl.Boolean
            )
        }
        assert population(**arguments).rows.tolist() == [0]
        wanted.add("goat 2")
        assert population(**arguments).rows.tolist() == [0, 2]

"""Who takes part is counted once, and then only what was added: always the same as counting all of them."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import memlab
from memlab.kernel.recall import Filters
from memlab.kernel.recall._population import Populations

FILTERS = [
    {},
    {"project": "api"},
    {"session": "monday"},
    {"filters": Filters.of(scope="session"), "session": "monday"},
    {"filters": Filters.of(branch=["main"])},
    {"filters": Filters.of(visibility="private"), "project": "web"},
    {"filters": Filters.of(status=["forgotten", "active"])},
    {"filters": Filters.of(viewer="agent:a")},
    {"filters": Filters.of(where=pl.col("text").str.contains("tabs"))},
    {"filters": Filters.of(where=pl.col("access") < pl.col("access").max())},
]

memories = st.fixed_dictionaries(
    {"text": st.sampled_from(["tabs", "the user prefers spaces", "of the", "what about tabs?"])},
    optional={
        "project": st.sampled_from(["api", "web"]),
        "session": st.sampled_from(["monday", "tuesday"]),
        "speaker": st.sampled_from(["Ana", "Bo", "Cy"]),
        "scope": st.sampled_from(["global", "session"]),
        "branch": st.sampled_from(["main", "draft"]),
        "visibility": st.just("private"),
        "creator": st.sampled_from(["agent:a", "agent:b"]),
        "at": st.sampled_from(["2019-05-07", "2021-01-01"]),
    },
)
happenings = st.one_of(
    st.tuples(st.just("remember"), st.lists(memories, min_size=1, max_size=3)),
    st.tuples(st.sampled_from(["forget", "restore", "success"]), st.integers(0, 50)),
    st.tuples(st.just("ask"), st.integers(0, len(FILTERS) - 1)),
)


def happen(lab, kind, what):
    if kind == "remember":
        lab.remember(what)
    elif len(lab):
        memory = what % len(lab) + 1
        if kind == "success":
            lab.feedback(memory, "success")
        else:
            getattr(lab, kind)(memory)


def content_of(state, population):
    lengths = population.lengths(state, state.words)
    return {
        "mask": None if population.mask is None else population.mask.tolist(),
        "rows": population.rows.tolist(),
        "speakers": population.speakers.tolist(),
        "newest": population.newest(state) if len(population) else None,
        "count": len(population),
        "mean": lengths.mean,
        "total": lengths.sessions.total.tolist(),
        "rows of sessions": lengths.sessions.rows.tolist(),
        "sessions": (lengths.sessions.count, lengths.sessions.mean),
    }


def get_population(populations, state, *, project=None, session=None, filters=None):
    return populations.get(state, project=project, session=session, filters=filters or Filters.of())


@pytest.mark.long
@examples(60)
@given(st.lists(happenings, max_size=25))
def test_an_extended_population_equals_a_new_count(story):
    kept = Populations()
    with memlab.open(embedder=lambda texts: [[1.0, len(text)] for text in texts]) as lab:
        state = lab.io.store.state
        for kind, what in [*story, *(("ask", number) for number in range(len(FILTERS)))]:
            if kind == "ask":
                assert content_of(
                    state, get_population(kept, state, **FILTERS[what])
                ) == content_of(state, get_population(Populations(), state, **FILTERS[what]))
            else:
                happen(lab, kind, what)


@pytest.fixture
def lab():
    with memlab.open(embedder=lambda texts: [[1.0, len(text)] for text in texts]) as opened:
        opened.remember([{"text": "tabs", "speaker": "Ana", "session": "a"}] * 5)
        yield opened


class TestWhatIsKept:
    def test_the_same_question_gets_the_same_population(self, lab):
        populations, state = Populations(), lab.io.store.state
        first = get_population(populations, state)
        lab.feedback(1, "success")
        assert get_population(populations, state) is first

    def test_a_new_memory_is_appended_to_the_same_arrays(self, lab):
        populations, state = Populations(), lab.io.store.state
        results = [get_population(populations, state)]
        for session in "bc":
            results[-1].lengths(state, state.words)
            lab.remember("spaces", speaker="Bo", session=session)
            results.append(get_population(populations, state))
        first, second, third = results
        assert np.shares_memory(second.rows, third.rows)
        assert third.lengths(state, state.words).sessions.rows.tolist() == [5, 1, 1]
        # what was handed out is not touched
        assert (len(first), first.lengths(state, state.words).sessions.rows.tolist()) == (5, [5])

    def test_a_memory_that_takes_no_part_leaves_the_others_as_they_were(self, lab):
        populations, state = Populations(), lab.io.store.state
        assert get_population(populations, state).mask is None
        lab.remember("spaces", scope="session", session="elsewhere")
        result = get_population(populations, state)
        assert np.flatnonzero(~result.mask).tolist() == [5]
        assert result.search["rows"].tolist() == [0, 1, 2, 3, 4]

    def test_a_changed_memory_forces_a_new_count(self, lab):
        populations, state = Populations(), lab.io.store.state
        get_population(populations, state)
        lab.forget(2)
        assert get_population(populations, state).rows.tolist() == [0, 2, 3, 4]

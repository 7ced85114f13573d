"""Triggers: what the pattern language means, and that many of them cost little."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memlab
from memlab.kernel.recall._mentions import Triggers, occurs

patterns = st.text(alphabet="abA*. ", min_size=1, max_size=6).filter(str.strip)


def as_regex(trigger, text):
    """Match the same pattern by a regular expression, which has no time bound."""
    low = trigger.lower()
    parts = [re.escape(part) for part in low.split("*")] if low.strip("*") else [re.escape(low)]
    return re.search(".*".join(parts), text.lower(), re.DOTALL) is not None


@pytest.mark.long
@given(patterns, st.text(alphabet="abAB*. \n", max_size=12))
def test_a_star_matches_any_text(trigger, text):
    assert occurs(trigger, text) == as_regex(trigger, text)


@pytest.mark.parametrize(
    ("trigger", "text", "expected"),
    [
        ("log file", "open the LOG FILE", True),
        ("log*password", "log the password", True),
        ("log*password", "the password of the log", False),
        ("log*log", "log", False),
        ("*.env", "read .env", True),
        ("*", "what is 2 * 3", True),
        ("*", "what is 6", False),
        ("(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", False),
        ("Straße", "in der STRASSE", False),
    ],
)
def test_the_language(trigger, text, expected):
    assert occurs(trigger, text) is expected


def rows(lab, text, triggers=None):
    return (triggers or Triggers()).match(lab.io.store.state, text).tolist()


@pytest.mark.long
@given(
    st.lists(st.lists(patterns, max_size=2), min_size=1, max_size=6),
    st.text(alphabet="abA*. ", max_size=12),
)
def test_the_rows_with_a_trigger_that_occurs(rows_with_triggers, text):
    with memlab.open(embedder=lambda texts: [[1.0]] * len(texts)) as lab:
        lab.remember(
            [{"text": "x", "triggers": triggers or None} for triggers in rows_with_triggers]
        )
        expected = [
            row
            for row, triggers in enumerate(rows_with_triggers)
            if any(occurs(trigger, text) for trigger in triggers)
        ]
        assert rows(lab, text) == expected
        assert rows(lab, text + "x" * 50) == [
            row
            for row, triggers in enumerate(rows_with_triggers)
            if any(occurs(t, text + "x" * 50) for t in triggers)
        ]


def test_new_memories_are_learned_and_another_lab_is_another(lab, trigrams):
    known = Triggers()
    lab.remember("one", triggers=["alpha"])
    assert rows(lab, "alpha beta", known) == [0]
    lab.remember("two", triggers=["beta", "alpha"])
    assert rows(lab, "alpha beta", known) == [0, 1]
    with memlab.open(embedder=trigrams) as other:
        other.remember(["zero", {"text": "one", "triggers": ["gamma"]}])
        assert rows(other, "alpha beta gamma", known) == [1]
    assert rows(lab, "beta", known) == [1]


@pytest.fixture(scope="module")
def crowd(trigrams):
    """Return a lab of 3,000 warnings with two triggers each, and notes that share the words of the query."""
    with memlab.open(embedder=trigrams, pack="cascade") as lab:
        warnings = [
            {
                "text": f"Beware of {number}",
                "kind": "negative",
                "triggers": [f"{number:05d}!", f"drop*{number:05d}?"],
            }
            for number in range(3_000)
        ]
        lab.remember([*warnings, *[f"We drop table {number} on Monday" for number in range(200)]])
        yield lab


@pytest.mark.long
class TestThousands:
    def test_a_warning_surfaces_that_neither_words_nor_vectors_found(self, crowd):
        hits = crowd.recall("drop table 02123? on Monday", log=False)
        assert hits[0].id == 2124
        assert hits.slate.numbers["lexical"][hits.slate.ids == 2124] == 0
        crowd.policies.use("(pack mute :inherits cascade) (setting triggers false)")
        assert 2124 not in crowd.recall("drop table 02123? on Monday", log=False).slate.ids
        crowd.policies.use("cascade")

    def test_a_memory_whose_trigger_did_not_occur_is_not_added(self, crowd):
        assert all(
            hit.kind != "negative" for hit in crowd.recall("drop table on Monday", log=False)
        )

    def test_looking_takes_less_than_a_loop_over_all(self, crowd):
        known, state = Triggers(), crowd.io.store.state
        known.match(state, "x")

        def best(call):
            return min(_timed(call) for _ in range(20))

        everything = [t for _, triggers in state.lists["triggers"].items() for t in triggers]
        loop = best(lambda: [t for t in everything if t.lower() in "drop table 02123? on monday"])
        assert best(lambda: known.match(state, "drop table 02123? on monday")) < loop


def _timed(call):
    started = time.process_time()
    call()
    return time.process_time() - started


def test_no_pattern_is_slow():
    """A backtracking matcher would take 100,000 ** 12 steps."""
    started = time.process_time()
    assert not occurs("*".join("a" * 12) + "*b", "a" * 100_000)
    assert time.process_time() - started < 1

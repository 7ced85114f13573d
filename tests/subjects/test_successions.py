"""Which statement supersedes which, whatever the policies of linking say: each value has one successor."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from embedders import letters
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import memlab
from memlab.kernel.embedding import load_embedder
from memlab.kernel.schema import RECALLABLE

TRIGRAMS = load_embedder(letters)
LINK = """
(fn [pair/similarity pair/negates pair/update-words]
  (cond (< pair/similarity 0.3) "none"
        pair/update-words "updates"
        pair/negates "contradicts"
        (> pair/similarity 0.7) "duplicate"
        else "related"))
"""
RESOLVE = (
    '(fn [pair/rank pair/update-words] (if pair/update-words "{}" (if (> pair/rank 1) "{}" "{}")))'
)
LONGEST = 1500
"""Characters of two texts in one: an embedder has read no more of a text."""

SURE = '(pack sure "Whatever it decides is done." :inherits memlab) (setting destroy-certainty 0)'

resolutions = st.sampled_from(["keep-new", "keep-old", "merge", "keep-both"])
texts = st.lists(
    st.sampled_from(["goat", "sea", "not", "now", "tabs"]), min_size=1, max_size=3
).map(" ".join)
days = st.sampled_from(["2026-02-01", "2026-02-05", "2026-02-09"])
told_rows = st.fixed_dictionaries({"text": texts, "valid_from": days}) | st.fixed_dictionaries(
    {
        "text": texts,
        "subject": st.just("goat"),
        "predicate": st.just("eats"),
        "value": st.sampled_from(["sea", "tabs"]),
    },
    optional={"valid_from": days},
)


def opened(link: str, resolve: str) -> memlab.Lab:
    lab = memlab.open(pack=SURE, embedder=TRIGRAMS, clock=memlab.ManualClock("2026-03-01"))
    lab.policies.install("link", link, reason="for this test")
    lab.policies.install("resolve", resolve, reason="for this test")
    return lab


def in_use(lab: memlab.Lab) -> set[int]:
    return set(lab.memories.filter(lab.memories["status"].is_in(RECALLABLE))["id"])


@pytest.mark.long
@examples(120, 25)
@given(
    st.tuples(resolutions, resolutions, resolutions),
    st.lists(st.lists(texts | told_rows, min_size=1, max_size=6), max_size=3),
)
def test_nothing_is_superseded_twice_or_by_what_was_superseded_before(
    decided: tuple[str, str, str], batches: Sequence[Sequence[str | dict[str, str]]]
) -> None:
    """In the order of the new texts, each place is taken of a memory in use, by one that is in use itself."""
    with opened(LINK, RESOLVE.format(*decided)) as lab:
        for batch in batches:
            before = in_use(lab)
            result = lab.remember(batch, linking="now")
            successors = dict(lab.memories.select("id", "superseded_by").rows())
            unique: set[int] = set()
            for of in result.outcomes.filter(outcome="superseded")["of"]:
                assert of in before | set(result.ids)
                assert of not in unique
                assert successors[of] not in unique
                assert successors[of] in before | set(result.ids)
                unique.add(of)
            assert before | set(result.ids) == in_use(lab) | unique
            assert set(result.standing) <= in_use(lab) | unique
            edges = lab.edges.filter(relation="supersedes").select("target", "source").rows()
            assert {(of, successors[of]) for of in unique} <= set(edges)


def test_a_memory_superseded_on_arrival_supersedes_nothing() -> None:
    """Told late, between an older statement and the newer one, which is nearer and so decided first."""
    with opened('(fn [pair/rank] "updates")', '(fn [pair/rank] "keep-new")') as lab:
        older, newer, late = (
            {"text": text, "valid_from": day}
            for text, day in (
                ("a goat", "2026-01-01"),
                ("tabs today", "2026-02-01"),
                ("tabs now", "2026-01-15"),
            )
        )
        lab.remember([older, newer], linking="off")
        result = lab.remember([late], linking="now")
        assert result.outcomes.filter(outcome="superseded")["of"].to_list() == list(result.ids)
        assert lab.memories.select("status", "superseded_by").rows() == [
            ("active", None),
            ("active", None),
            ("superseded", 2),
        ]


@pytest.mark.parametrize("decided", ["merge", "keep-old"])
def test_a_fact_that_ends_another_stays_where_a_text_says_the_same(decided: str) -> None:
    """The text could not stand for it: it is no value of the property."""
    link = '(fn [pair/similarity] (if (> pair/similarity 0.95) "duplicate" "updates"))'
    resolve = f'(fn [pair/similarity] (if (> pair/similarity 0.95) "{decided}" "keep-new"))'
    fact = {"subject": "Ann", "predicate": "lives-in"}
    with opened(link, resolve) as lab:
        rows = [fact | {"value": "Bonn", "text": "Ann lives in Bonn"}, "Ann lives in Kyiv"]
        lab.remember(rows, linking="off")
        lab.remember([fact | {"value": "Kyiv", "text": "Ann lives in Kyiv"}], linking="now")
        assert lab.memories["superseded_by"].to_list() == [3, None, None]
        edges = lab.edges.filter(source=3).select("target", "relation").rows()
        assert set(edges) >= {(1, "supersedes"), (2, "similar-to")}


@pytest.mark.parametrize("decided", ["merge", "keep-old"])
def test_a_late_statement_that_does_not_stay_has_no_edge(decided: str) -> None:
    link = '(fn [pair/similarity] (if (> pair/similarity 0.95) "duplicate" "contradicts"))'
    with opened(link, f'(fn [pair/rank] "{decided}")') as lab:
        lab.remember(["the goat is at sea now", "the goat is at sea"], linking="off")
        result = lab.remember(
            [{"text": "the goat is at sea", "valid_from": "2026-01-01"}], linking="now"
        )
        assert list(result.standing) == [2]
        assert lab.memories["status"].to_list() == ["active", "active"]
        assert lab.edges.filter(relation="contradicts").is_empty()


def words(count: int, letter: str) -> str:
    """Return a text of ``count`` characters whose words no other letter has."""
    text = " ".join(f"{letter}{number:03d}" for number in range(count))
    return text[:count].rstrip().ljust(count, letter)


@pytest.mark.long
@pytest.mark.parametrize("more", [-200, -1, 0, 1, 200])
@pytest.mark.parametrize("old", [20, 750, 1400])
def test_two_texts_become_one_of_at_most_what_an_embedder_reads(old: int, more: int) -> None:
    first = words(old, "a")
    second = words(LONGEST - old - len("; ") + more, "b") if LONGEST - old - 2 + more > 0 else ""
    if not second:
        return
    with opened('(fn [pair/rank] "updates")', '(fn [pair/rank] "merge")') as lab:
        lab.remember(first)
        lab.remember(second, linking="now")
        shown = lab.memories.select("text", "status").rows()
        if more <= 0:
            assert shown == [(first, "superseded"), (f"{first}; {second}", "active")]
        else:
            assert shown == [(first, "active"), (second, "active")]
            assert lab.edges["relation"].to_list() == ["updates"]


@pytest.mark.long
def test_a_text_that_others_are_merged_into_does_not_grow_beyond_that() -> None:
    with opened(
        '(fn [pair/rank] (if (= pair/rank 1) "updates" "none"))', '(fn [pair/rank] "merge")'
    ) as lab:
        for letter in "abcdefgh":
            lab.remember(words(400, letter), linking="now")
        lengths = lab.memories["text"].str.len_chars().to_list()
        assert max(lengths) > 1000
        assert all(length <= LONGEST for length in lengths)

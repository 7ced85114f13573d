"""Which strings a purge treats as traces of a purged text, and how it reports a difference."""

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.subjects.purge.traces import search_files, search_terms
from memlab.subjects.purge.verifying import find_differences


@pytest.mark.long
def test_a_name_that_only_a_purged_memory_says_takes_questions_with_it(lab):
    lab.remember("The xylophonist met Zanzibarov at Ghent")
    lab.remember("There is a shed in Ghent")
    for question in ("seen zanzibarov?", "seen ghent?"):
        lab.recall(question)
    lab.purge(1)
    assert lab.slates().decisions.collect()["query"].to_list() == ["", "seen ghent?"]


@pytest.mark.long
def test_a_name_that_is_a_key_of_what_the_journal_holds_is_no_trace(disk, tmp_path):
    with disk() as lab:
        lab.remember("a note on the tide", tags=["harbour"])
        lab.recall("tide")
    nothing = pl.DataFrame({"id": [2], "text": ["nothing of the sort"]})

    def traces(name):
        return search_files([tmp_path], search_terms({}, [name], nothing, ())).traces

    assert {trace.what for trace in traces("harbour")} == {"a name"}
    assert traces("columns") == []


def test_of_memories_whose_uses_differ_the_first_is_named(trigrams):
    def state(recalled):
        clock = memlab.ManualClock("2026-03-01")
        with memlab.open(embedder=trigrams, clock=clock) as lab:
            lab.remember(["about goats", "about the sea", "about tabs"])
            clock.advance(hours=1)
            if recalled:
                assert [hit.id for hit in lab.recall("about the sea", limit=1)] == [2]
            return lab.io.store.state

    result = find_differences(state(False), state(True), np.array([], dtype=np.int64))
    assert "1 memories differ in uses, the first of them memory 2." in result

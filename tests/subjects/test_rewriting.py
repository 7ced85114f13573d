"""Replacement of names by a purge: texts stay as long as their meaning does not depend on a purged name."""

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.kernel.state import PLACEHOLDER
from memlab.subjects.purge.planning import plan_purge
from memlab.subjects.purge.rewriting import redact_event
from memlab.subjects.purge.verifying import find_differences


def purged(lab, *ids):
    """Purge, and whatever differs from the lab as it was without these memories."""
    before = lab.io.store.state
    lab.purge(list(ids))
    return find_differences(before, lab.io.store.state, np.array(ids) - 1)


@pytest.mark.long
def test_a_name_that_a_purged_text_begins_with_stays(lab):
    lab.facts.add("Adele Quuxley", "likes", "cheese")
    lab.facts.entities.declare("Adele Quuxley", type="person", aliases=["Adele Q."])
    assert lab[1].text == "Adele Quuxley likes cheese"
    assert purged(lab, 1) == []
    row = lab.facts.entities.frame().row(0, named=True)
    assert (row["name"], row["type"], row["aliases"]) == (
        "Adele Quuxley",
        "person",
        ["Adele Q."],
    )
    assert lab.facts.add("adele q.", "likes", "tea").subject == "Adele Quuxley"


@pytest.mark.long
def test_a_name_that_is_the_purged_text_has_one_placeholder_everywhere(lab):
    lab.facts.entities.declare("Quokka", aliases=["Bettong"])
    lab.facts.add("Ada", "likes", "tea")
    lab.facts.entities.merge("Quokka", "Ada")
    lab.agents.conversation("Quokka")
    lab.remember("Quokka")
    assert purged(lab, 2) == []
    assert "quokka" not in str([event.body for event in lab.io.store.journal.events()]).lower()
    assert lab.facts.entities.split("Bettong").name.startswith(PLACEHOLDER)
    assert lab.agents.relationships()["agent"][0].startswith(PLACEHOLDER)


def test_a_name_that_another_memory_bears_stays_though_it_is_the_purged_text(lab):
    lab.remember("goat", tags=["goat"])
    lab.remember("so it goes", tags=["goat"], subject="goat", project="goat")
    assert purged(lab, 1) == []
    assert lab[2].tags == ("goat",)
    assert lab.facts.entities.frame()["name"].to_list() == ["goat"]
    assert lab.facts.entities.frame()["mentions"].to_list() == [1]


@pytest.mark.parametrize(
    "spelled", ["Zoe\u0308 of Trondheim", "ZO\u00cb OF TRONDHEIM", "zo\u00eb  of trondheim"]
)
def test_every_spelling_is_one_entity(lab, spelled):
    lab.facts.add("Zo\u00eb of Trondheim", "likes", "goats")
    lab.facts.add(spelled, "knows", object="Ada")
    lab.facts.entities.merge(spelled, "Ada")
    assert purged(lab, 1) == []
    lab.facts.entities.split(spelled)
    assert lab.facts.frame(subject=spelled)["id"].to_list() == [2]


def test_a_split_name_counts_the_remaining_uses(lab):
    for number in range(4):
        lab.facts.add("Alex", "likes", f"thing {number}")
    lab.facts.entities.split("Alex", "Alex of Oslo", facts=[1, 2, 3])
    assert purged(lab, 1, 2) == []
    counted = dict(lab.facts.entities.frame().select("name", "mentions").rows())
    assert {counted["Alex"], counted["Alex of Oslo"]} == {1}


@pytest.mark.long
def test_a_cluster_has_the_same_name_in_its_register_its_edges_and_its_summary(lab):
    lab.remember([f"xylophonists play quokka tunes {number % 2}" for number in range(6)])
    lab.remember([f"deploys go out on tuesdays {number}" for number in range(6)])
    lab.graph.clusters.find(min_size=2)
    lab.upkeep.consolidation.run(older_than_days=0, keep=1)
    assert purged(lab, *range(1, 7)) == []
    edges = lab.edges.filter(pl.col("to_kind") == "cluster", pl.col("source") <= len(lab))
    assert set(edges["to"]) <= set(lab.graph.clusters.frame()["name"])


@pytest.mark.long
def test_notes_are_cut_and_operations_are_whole_or_gone(lab):
    lab.remember("The xylophonist keeps goats")
    lab.remember(
        "b", context="He said: The xylophonist keeps goats. So.", operations='(recall "goats" 2)'
    )
    lab.remember(
        "c",
        operations='(remember "The xylophonist keeps goats")',
        reason="The xylophonist keeps goats",
    )
    assert purged(lab, 1) == []
    notes = lab.memories.select("context", "operations", "reason")
    assert notes.rows()[1:] == [("He said: . So.", '(recall "goats" 2)', None), (None, None, None)]


@pytest.mark.long
def test_why_a_policy_was_installed_may_quote_what_is_gone(disk):
    with disk() as lab:
        lab.remember("The xylophonist keeps goats")
        lab.policies.install(
            "recall-score", "(fn [similarity] similarity)", reason="The xylophonist keeps goats, so"
        )
        lab.purge(1)
        told = lab.policies.history("recall-score")["reason"][-1]
        assert told == ", so"
    with disk() as lab:
        assert lab.policies.history("recall-score")["reason"][-1] == told


def test_a_placeholder_that_an_import_brought_is_not_given_again(lab):
    lab.remember("one", tags=["quokka"])
    lab.remember("two", tags=[f"{PLACEHOLDER}9-1]"])
    gone = plan_purge(lab.io.store.state, lab.io.store.journal.events(), np.array([0]), seq=9)
    assert gone.alias("quokka") == f"{PLACEHOLDER}9-2]" == gone.alias("quokka")
    assert gone.alias(f"{PLACEHOLDER}9-1]") == f"{PLACEHOLDER}9-1]"


def test_bodies_without_what_is_gone_are_left_as_they_are(lab):
    lab.remember("one", subject="Ada")
    lab.remember("two", subject="Bob")
    lab.facts.entities.merge("Ada", "Bob")
    events = list(lab.io.store.journal.events())
    gone = plan_purge(lab.io.store.state, events, np.array([], dtype=np.int64), seq=9)
    assert all(redact_event(event, gone) is None for event in events)


@pytest.mark.long
def test_differences_are_found_in_each_part(lab, trigrams, clock):
    def state(change=lambda other: None):
        with memlab.open(embedder=trigrams, clock=clock) as other:
            other.remember(
                [{"text": f"text {n}", "tags": ["t"], "subject": "Ada"} for n in range(3)]
            )
            other.graph.link(2, 3)
            change(other)
            return other.io.store.state

    before, row = state(), np.array([0])
    assert find_differences(before, state(lambda other: other.purge(1)), row) == []
    assert find_differences(before, state(), row)  # nothing was purged
    for change, what in {
        lambda other: other.edit(2, summary="x"): "summary",
        lambda other: other.edit(2, tags=["u"]): "tags",
        lambda other: other.edit(2, title="x"): "title",
        lambda other: other.graph.link(3, 2): "edges",
        lambda other: other.facts.entities.declare("Ada", type="person"): "type",
        lambda other: other.facts.entities.declare("Bob"): "'Bob'",
        lambda other: other.agents.conversation("a"): "relationships",
        lambda other: other.recall("text"): "access",
    }.items():

        def also(other, change=change):
            change(other)
            other.purge(1)

        assert any(
            what in difference for difference in find_differences(before, state(also), row)
        ), what


# -- names in filters, and names of clusters ------------------------------------------------------------------------

NAMES = ["Q", "Qo", "Qol", "Quol", "Quoll", "Quolle"]


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("field", ["speaker", "project", "branch", "creator", "subject"])
def test_a_name_of_four_letters_or_more_goes_from_an_expression_that_filtered_a_recall(
    lab, name, field
):
    """A name of three letters or fewer is part of too many words to identify a person."""
    lab.remember("tabs or spaces", **{field: name})
    lab.remember("spaces or tabs")
    hits = lab.recall("tabs", where=(pl.col(field) == name) | pl.col(field).is_null())
    assert purged(lab, 1) == []
    (filters,) = lab.slates().decisions.collect()["filters"]
    assert (name in filters) == (len(name) <= 3)
    assert hits.decision


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_a_memory_that_stays_bears_stays_in_the_expression(lab, name):
    lab.remember(
        [{"text": "tabs or spaces", "speaker": name}, {"text": "spaces or tabs", "speaker": name}]
    )
    lab.recall("tabs", where=pl.col("speaker") == name)
    assert purged(lab, 1) == []
    assert name in lab.slates().decisions.collect()["filters"][0]


@pytest.mark.parametrize("gone", [[1], [1, 2], [1, 2, 3], [1, 2, 3, 4]])
def test_the_name_of_a_cluster_goes_when_nobody_who_stays_said_one_of_its_words(lab, gone):
    """Four memories speak of the quokka, two of which also of the numbat: a cluster's name quotes those words."""
    lab.remember(
        ["quokka numbat one", "quokka numbat two", "quokka three", "quokka four"], linking="off"
    )
    state, names = lab.io.store.state, ["quokka", "numbat", "quokka numbat", "wombat"]
    state.nodes.intern("cluster", names)
    plan = plan_purge(state, lab.io.store.journal.events(), np.array(gone) - 1, seq=9)
    numbat, quokka = set(gone) >= {1, 2}, set(gone) >= {1, 2, 3, 4}
    goes = {"quokka": quokka, "numbat": numbat, "quokka numbat": numbat or quokka, "wombat": False}
    assert plan.clusters == {name for name in names if goes[name]}
    for name in names:
        assert plan.node("cluster", name).startswith(PLACEHOLDER) == goes[name]

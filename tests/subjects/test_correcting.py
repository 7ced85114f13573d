"""Corrections as decisions: which memory supersedes which, what merged into it, and the status before."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from memlab.errors import InputError
from memlab.kernel.schema import RECALLABLE, STATUSES
from memlab.kernel.verbs.corrections.editing import (
    find_latest_version,
    find_previous_statuses,
    find_related,
    restore_statuses,
    take_out_of_use,
)
from memlab.kernel.verbs.projections import new_state
from memlab.subjects.purge.planning import Cut, PurgePlan, plan_purge, purge_change
from memlab.subjects.purge.rewriting import redact_event


@dataclass
class Event:
    seq: int
    kind: str
    body: dict[str, Any] = field(default_factory=dict)
    at: int = 0


def remember(count, first=1, seq=1, **columns):
    return Event(seq, "remember", {"first": first, "count": count, "columns": columns})


def sets(seq, ids, kind="edit", **columns):
    return Event(seq, kind, {"set": [{"ids": ids, "columns": columns}]})


class Shelf:
    def texts(self, ids):
        return [f"text {id}" for id in ids]

    def vectors(self, fingerprint, *, after_id=0):
        return iter(())


def folded(*events):
    state = new_state()
    state.fold(events, Shelf())
    return state


def gone(state, events, *ids):
    return plan_purge(state, events, np.array(ids) - 1, seq=len(events) + 1)


# -- the status before ----------------------------------------------------------------------------------------------


def test_the_status_before_is_the_last_of_another_kind_and_restoring_steps_back():
    events = [
        remember(2, status=["confirmed", "active"]),
        sets(2, [1], status="deprecated"),
        sets(3, [1, 2], status="deleted"),
        sets(4, [2], status=["deleted"]),
    ]
    assert find_previous_statuses(events, [0, 1]) == {0: "deprecated", 1: "active"}
    back = [*events, sets(5, [1], "restore", status="deprecated")]
    assert find_previous_statuses(back, [0]) == {0: "confirmed"}


def test_a_memory_without_a_recorded_status_was_active():
    assert find_previous_statuses([remember(1)], [0]) == {0: "active"}


def test_undoing_does_not_return_to_a_retracted_memory():
    events = [
        remember(1, status="confirmed"),
        sets(2, [1], status="retracted"),
        sets(3, [1], status="deleted"),
    ]
    assert find_previous_statuses(events, [0]) == {0: "confirmed"}


@pytest.mark.parametrize(
    "status", [status for status in STATUSES if status not in (*RECALLABLE, "purged")]
)
def test_everything_comes_back_but_what_is_purged(status):
    state = folded(remember(1), sets(2, [1], status=status))
    state.fold(
        [Event(3, "restore", restore_statuses(state, [0], {0: "active"}, 30).body())], Shelf()
    )
    assert state.names["status"].value_at(0) == "active"


def test_a_superseded_memory_returns_once_its_successor_is_inactive():
    state = folded(
        remember(2), sets(2, [1], status="superseded", superseded_by=2.0, valid_until=20)
    )
    with pytest.raises(InputError, match="superseded by memory 2, which is active"):
        restore_statuses(state, [0], {0: "active"}, 30)
    state.fold([sets(3, [2], "deprecate", status="deprecated")], Shelf())
    state.fold(
        [Event(4, "restore", restore_statuses(state, [0], {0: "active"}, 30).body())], Shelf()
    )
    assert state.memories().row(0, named=True) | {
        "status": "active",
        "superseded_by": None,
        "valid_until": None,
    } == (state.memories().row(0, named=True))


def test_a_reason_goes_with_the_flag():
    state = folded(remember(1), sets(2, [1], "deprecate", status="deprecated", reason="wrong"))
    state.fold(
        [Event(3, "restore", restore_statuses(state, [0], {0: "active"}, 30).body())], Shelf()
    )
    assert state.memories()["reason"].to_list() == [None]


@pytest.mark.parametrize("status", ["deleted", "purged"])
def test_a_memory_due_for_deletion_is_not_deleted_again(status):
    state = folded(remember(1), sets(2, [1], status=status))
    with pytest.raises(InputError, match=f"Memory 1 is {status}"):
        take_out_of_use(state, [0], "forgotten", 5)


# -- succession -----------------------------------------------------------------------------------------------------


def test_former_ids_lead_to_an_edited_memory_but_not_to_a_superseding_fact():
    state = folded(
        remember(4, source=["conversation", "user-edit", "user-edit", "conversation"]),
        sets(2, [1, 2], status="superseded", superseded_by=[2.0, 3.0]),
        sets(3, [3], status="superseded", superseded_by=4.0),
    )
    assert [find_latest_version(state, row) for row in range(4)] == [2, 2, 2, 3]


def test_both_sides_of_a_succession_are_up_for_review_once():
    supersedes = {"source": [2, 3], "target": [1, 2], "relation": "supersedes"}
    state = folded(
        remember(4),
        Event(2, "link", {"edges": supersedes}),
        sets(3, [2], superseded_by=3.0),
        sets(4, [4], superseded_by=2.0),
        Event(5, "link", {"edges": {"source": [1], "target": [2], "relation": "derived-from"}}),
    )
    result = find_related(state, [1]).select("memory_id", "how").rows()
    assert sorted(result) == [
        (1, "superseded by it"),
        (3, "supersedes it"),
        (4, "superseded by it"),
    ]
    assert (1, "derived from it") in find_related(state, [1], derived=True).select(
        "memory_id", "how"
    ).rows()


# -- what a purge writes in place -----------------------------------------------------------------------------------


def test_names_lists_and_notes_become_null_and_numbers_and_vocabularies_stay():
    event = remember(
        3,
        kind="fact",
        speaker="Ada",
        subject=["Zoe", None, "Oslo"],
        importance=[0.1, 0.2, 0.3],
        summary=["a", "b", None],
    )
    state = folded(event)
    body = redact_event(event, gone(state, [event], 1))
    assert body["columns"] == {
        "kind": "fact",
        "speaker": [None, "Ada", "Ada"],
        "subject": [None, None, "Oslo"],
        "importance": [0.1, 0.2, 0.3],
        "summary": [None, "b", None],
    }
    assert redact_event(event, gone(state, [event], 2)) is not None
    assert redact_event(remember(1, first=9, speaker="Ada"), gone(state, [event], 1)) is None


def test_an_edge_keeps_its_number_because_a_tag_is_replaced_by_a_placeholder():
    events = [
        remember(2, tags=[["secret", "town"], ["town"]]),
        sets(2, [2, 1], tags=[["late"], ["other", "town"]]),
        Event(3, "link", {"edges": {"source": [2], "target": [1], "relation": "mentions"}}),
        Event(4, "maintain", {"strengthen": {"edges": [5], "weight": [0.25]}}),
    ]
    state = folded(*events)
    out = gone(state, events, 1)
    after = folded(*(Event(e.seq, e.kind, redact_event(e, out) or e.body) for e in events))
    for name in ("source", "relation", "weight", "alive", "reinforcements"):
        assert np.array_equal(getattr(after.edges, name), getattr(state.edges, name)), name
    words = str([after.nodes.vocabularies(), after.memories().to_dicts()])
    assert "secret" not in words
    assert "other" not in words
    assert "town" in words


def test_the_purge_takes_the_edges_away_and_marks_the_row():
    events = [
        remember(2, tags=[["x"], ["y"]]),
        Event(2, "link", {"edges": {"source": [2], "target": [1]}}),
    ]
    state = folded(*events)
    change, tombstones = purge_change(state, np.array([0]), 9)
    assert change.unlink == [0, 2]
    state.fold([Event(3, "purge", {"tombstones": tombstones, **change.body()})], Shelf())
    row = state.memories().row(0, named=True)
    assert (row["status"], row["tags"]) == ("purged", [])
    assert state.edges.live == 1
    purged = state.projections["purged"]
    assert purged.is_purged(" text\n1 ")
    assert not purged.is_purged("text 2")


def test_own_fields_lose_only_texts_names_and_the_vector_of_the_purged_text():
    long = "the quokkas sleep in the shed behind the house"
    nobody: frozenset[str] = frozenset()
    cut = Cut(frozenset({long}), {long[:12]: (long,)})
    out = PurgePlan(
        np.array([1]), frozenset({"Zoe Q", "person"}), nobody, nobody, cut, np.array([0]), "7"
    )
    event = Event(
        9,
        "verify",
        {
            "decision": 4,
            "gap": {"snippet": long[:30] + "…", "vector": b"\x05\x06", "project": "p"},
            "notes": [f"before: {long}, after", "person", "Zoe"],
            "session": "Zoe Q",
            "bytes": b"\x01",
        },
    )
    assert redact_event(event, out) == {
        "decision": 4,
        "gap": {"snippet": "", "vector": b"\x00\x00", "project": "p"},
        "notes": ["before: , after", "person", "Zoe"],
        "session": "[purged 7-1]",
        "bytes": b"\x01",
    }


def test_declared_entities_keep_their_names():
    events = [
        Event(1, "entity", {"name": "Zoe Q", "type": "person", "aliases": ["Zed Q"]}),
        remember(1, seq=2, subject="Zoe Q"),
    ]
    state = folded(*events)
    assert redact_event(events[0], gone(state, events, 1)) is None


def test_a_part_that_sets_many_is_split():
    event = sets(
        3, [1, 2, 3], importance=[0.1, 0.2, 0.3], branch=["a", "b", "c"], tags=[["p"], ["q"], None]
    )
    state = folded(remember(3), event)
    assert redact_event(event, gone(state, [remember(3), event], 2))["set"] == [
        {
            "ids": [1, 2, 3],
            "columns": {"importance": [0.1, 0.2, 0.3], "tags": [["p"], ["[purged 3-1]"], None]},
        },
        {"ids": [1, 3], "columns": {"branch": ["a", "c"]}},
    ]


def test_imported_edges_lead_to_placeholders_where_only_the_purged_had_them():
    graph = {
        "nodes": [["tag", "shared"], ["tag", "alone"]],
        "source": [1, 2, 1],
        "target": [-1, -1, -2],
        "relation": ["has-tag"] * 3,
        "weight": [1.0] * 3,
    }
    nobody: frozenset[str] = frozenset()
    out = PurgePlan(
        np.array([1]), frozenset({"alone"}), nobody, nobody, Cut(nobody, {}), np.array([0]), "5"
    )
    body = redact_event(Event(1, "import", {"graph": graph}), out)["graph"]
    assert body["nodes"] == [["tag", "shared"], ["tag", "[purged 5-1]"], ["tag", "[purged 5-2]"]]
    assert body["target"] == [-3, -1, -2]


def test_of_imported_nodes_the_names_go_that_lead_to_purged_memories_alone():
    graph = {
        "nodes": [["tag", "shared"], ["tag", "alone"], ["entity", "Zoe of Ys"], ["tag", "stays"]],
        "source": [1, 2, 1, 1, 2],
        "target": [-1, -1, -2, -3, -4],
        "relation": ["has-tag"] * 5,
        "weight": [1.0] * 5,
    }
    plan = gone(folded(remember(2)), [remember(2), Event(2, "import", {"graph": graph})], 1)
    assert plan.names == {"alone", "Zoe of Ys"}
    assert plan.entities == {"zoe of ys"}


def test_a_cluster_is_not_called_by_a_word_that_only_the_purged_said():
    class Said(Shelf):
        def texts(self, ids):
            return [["the quokka sleeps", "the goat sleeps", "a goat eats"][id - 1] for id in ids]

    join = {"source": [1, 2, 3], "kind": "cluster", "relation": "in-cluster", "weight": [1.0] * 3}
    body = {
        "clusters": [{"id": 1, "name": "quokka", "size": 2}, {"id": 2, "name": "goat", "size": 1}]
    }
    events = [
        remember(3),
        Event(2, "cluster", {**body, "join": [{**join, "target": ["quokka", "quokka", "goat"]}]}),
    ]
    state = new_state()
    state.fold(events, Said())
    after = redact_event(events[1], gone(state, events, 1))
    assert after["join"][0]["target"] == ["[purged 3-1]", "[purged 3-1]", "goat"]
    assert [cluster["name"] for cluster in after["clusters"]] == ["[purged 3-1]", "goat"]
    assert redact_event(events[1], gone(state, events, 3))["join"][0]["target"] == [
        "quokka",
        "quokka",
        "[purged 3-1]",
    ]


def test_an_agent_is_not_purged_with_its_memories():
    talked = Event(
        2,
        "conversation",
        {"relationship": {"agent": "Coder One", "trust": 1.0, "familiarity": 2.0}},
    )
    events = [remember(1, creator="Coder One"), talked]
    assert redact_event(talked, gone(folded(*events), events, 1)) is None


def test_a_memory_superseded_by_a_purged_one_becomes_independent():
    state = folded(
        remember(2, source=["conversation", "user-edit"]),
        sets(2, [1], status="superseded", superseded_by=2.0),
        sets(3, [2], status="purged"),
    )
    assert find_latest_version(state, 0) == 0

"""Clusters and summaries as registers: folded in any two parts they are the same, and a snapshot holds all of them."""

import msgspec
import pytest
from events import Event
from hypothesis import given
from hypothesis import strategies as st

from memlab.subjects.clusters.registers import Centroids, Summaries

numbers = st.integers(1, 6)
floats = st.floats(0, 1)


@st.composite
def clusterings(draw):
    """Draw events about clusters as a lab writes them: new numbers have a name, ended ones existed."""
    events, live, following = [], [], 1
    for seq in range(1, draw(st.integers(1, 8)) + 1):
        kind = draw(st.sampled_from(["cluster", "refine"]))
        told = []
        for _ in range(draw(st.integers(0, 2))):
            fresh = {
                "name": f"about {following}",
                "centroid": draw(st.binary(min_size=8, max_size=8)),
            }
            told.append({"id": following, **fresh, "radius": draw(floats), "size": draw(numbers)})
            live.append(following)
            following += 1
        if live:
            id = draw(st.sampled_from(live))
            told.append(
                {"id": id, "size": draw(numbers)}
                | draw(st.sampled_from([{}, {"centroid": b"1", "radius": 0.5}]))
            )
        body = {"clusters": told}
        if len(live) > 1 and draw(st.booleans()):
            gone = live.pop(draw(st.integers(0, len(live) - 1)))
            body["gone"] = [[gone, draw(st.sampled_from([None, *live]))]]
        if draw(st.booleans()):
            body |= {
                "fingerprint": draw(st.sampled_from("ab")),
                "centre": b"c",
                "method": "m",
                "settings": {"seed": seq},
            }
            body["upto"] = seq
        if draw(st.booleans()):
            body["looked"] = seq + 1
        events.append(Event(seq, 10 * seq, kind, body))
    return events


@st.composite
def consolidations(draw):
    events, made, first = [], [], 10
    for seq in range(1, draw(st.integers(1, 6)) + 1):
        standing = [id for id in made if draw(st.booleans())]
        if standing:
            made.remove(standing[0])
            events.append(Event(seq, seq, "unconsolidate", {"summary": standing[0]}))
        else:
            was = {"active": draw(st.lists(numbers, min_size=1)), "staged": draw(st.lists(numbers))}
            told = [{"summary": first, "of": "about goats", "was": was}]
            events.append(Event(seq, seq, "consolidate", {"by": "clusters", "summaries": told}))
            made.append(first)
            first += 1
    return events


def folded(kind, events):
    register = kind()
    for event in events:
        register.fold(event)
    return register


def through_a_snapshot(register):
    again = type(register)()
    again.load(msgspec.msgpack.decode(msgspec.msgpack.encode(register.dump())))
    return again


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "lives"), [(Centroids, clusterings()), (Summaries, consolidations())]
)
@given(data=st.data())
def test_a_prefix_and_then_the_rest_is_all(kind, lives, data):
    events = data.draw(lives)
    cut = data.draw(st.integers(0, len(events)))
    register = through_a_snapshot(folded(kind, events[:cut]))
    for event in events[cut:]:
        register.fold(event)
    assert register.dump() == folded(kind, events).dump()


def test_an_ended_cluster_keeps_its_number_and_name_and_its_successor():
    new = [
        {"id": 1, "name": "about goats", "centroid": b"1", "radius": 0.1, "size": 5},
        {"id": 2, "name": "about sheep", "centroid": b"2", "radius": 0.2, "size": 4},
    ]
    moved = [{"id": 1, "centroid": b"3", "radius": 0.3, "size": 9}]
    register = folded(
        Centroids,
        [
            Event(1, 10, "cluster", {"clusters": new}),
            Event(2, 20, "refine", {"clusters": moved, "gone": [[2, 1]]}),
        ],
    )
    assert list(register.live) == [1]
    assert (register.all[1].created, register.all[1].refined, register.all[1].size) == (10, 20, 9)
    assert (register.all[2].name, register.all[2].ended, register.all[2].into) == (
        "about sheep",
        20,
        1,
    )
    assert register.all[2].centroid == b"", "what is gone takes no room"

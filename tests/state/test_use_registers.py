"""Judgements, gaps, relationships, the count of recalls: the fold of any prefix and then the rest is that of all."""

from typing import Any

import msgspec
import pytest
from events import Event
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import InputError, UnknownName
from memlab.kernel.verbs.gate import Consents, Switches
from memlab.kernel.verbs.registers import Gaps, Judged
from memlab.subjects.agents.relationships import Relationships
from memlab.subjects.clusters.registers import Recalls

ids = st.integers(1, 5)
shares = st.floats(0, 100)


@st.composite
def journals(draw):
    """Draw events of use in any possible order."""
    events, gaps = [], []
    for seq in range(1, draw(st.integers(1, 25))):
        kind = draw(
            st.sampled_from(
                ["recall", "feedback", "verify", "close-gap", "conversation", "refine", "switch"]
            )
        )
        body: dict[str, Any] = {}
        if kind == "recall":
            body = {"ids": draw(st.lists(ids, max_size=4, unique=True))}
        elif kind == "feedback":
            outcome = draw(st.sampled_from([None, "success", "fail"]))
            body = {"decision": draw(st.none() | ids), "memory": draw(ids), "outcome": outcome}
        elif kind == "verify":
            body = {
                "decision": draw(ids),
                "verified": [],
                "rejected": draw(st.lists(ids, unique=True)),
            }
            if draw(st.booleans()):
                gap = {
                    "snippet": "goat",
                    "vector": b"\x01\xff",
                    "embedder": "f",
                    "project": None,
                    "session": "s",
                }
                body["gap"] = gap
                gaps.append(seq)
        elif kind == "close-gap":
            if not gaps:
                continue
            body = {"gap": draw(st.sampled_from(gaps)), "reason": "done"}
        elif kind == "switch":
            project = draw(st.sampled_from([None, "api", "web"]))
            body = {
                "project": project,
                "on": draw(st.booleans()),
                "reason": draw(st.sampled_from(["", "audit"])),
            }
            if body["on"] and draw(st.booleans()):
                body |= {
                    "creator": "ida",
                    "consent": {"embedder": "letters", "remote": draw(st.none() | st.just("h"))},
                }
        if kind in ("feedback", "conversation") and draw(st.booleans()):
            body["relationship"] = {"agent": draw(st.sampled_from("ab")), "trust": draw(shares)}
            body["relationship"]["familiarity"] = draw(shares)
        events.append(Event(seq, draw(st.integers(-(10**15), 10**16)), kind, body))
    return events


def folded(kind, events, register=None):
    register = kind() if register is None else register
    for event in events:
        if event.kind in kind.kinds:
            register.fold(event)
    return register


@pytest.mark.long
@pytest.mark.parametrize("kind", [Judged, Gaps, Relationships, Recalls, Switches, Consents])
@given(journals(), st.data())
def test_prefix_and_rest_equal_all_through_a_snapshot(kind, events, data):
    cut = data.draw(st.integers(0, len(events)))
    before, restored = folded(kind, events[:cut]), kind()
    restored.load(msgspec.msgpack.decode(msgspec.msgpack.encode(before.dump())))
    assert restored.dump() == before.dump()
    whole = folded(kind, events)
    assert folded(kind, events[cut:], restored).dump() == whole.dump()
    assert folded(kind, events[cut:], before).dump() == whole.dump()
    if kind in (Gaps, Relationships):
        assert restored.frame.equals(whole.frame)


def test_successes_of_a_decision_in_the_order_in_which_they_came():
    told = [
        (1, 3, "success"),
        (1, 2, "fail"),
        (1, 5, "success"),
        (1, 3, "success"),
        (2, 4, "success"),
    ]
    events = [
        Event(seq, 0, "feedback", {"decision": decision, "memory": memory, "outcome": outcome})
        for seq, (decision, memory, outcome) in enumerate(told, 1)
    ]
    judged = folded(Judged, events)
    assert (judged.successes(1), judged.successes(2), judged.successes(3)) == ((3, 5), (4,), ())


@pytest.mark.long
def test_only_the_latest_decisions_are_kept():
    events = [
        Event(n, 0, "feedback", {"decision": n, "memory": 1, "outcome": "success"})
        for n in range(1, 10_102)
    ]
    events += [Event(n, 0, "verify", {"decision": n, "verified": []}) for n in range(1, 10_102)]
    judged = folded(Judged, events)
    assert (judged.successes(101), judged.verified(101)) == ((), False)
    assert (judged.successes(102), judged.verified(102)) == ((1,), True)


def test_refining_sets_the_count_back():
    recalls = folded(Recalls, [Event(n, 0, "recall", {"ids": [n]}) for n in range(1, 4)])
    assert (recalls.since_refined, recalls.last) == (3, (3,))
    assert folded(Recalls, [Event(4, 0, "refine")], recalls).dump() == [0, []]


def test_only_an_open_gap_is_closed():
    gap = {"snippet": "goat", "vector": b"", "embedder": "f", "project": None, "session": None}
    gaps = folded(Gaps, [Event(7, 0, "verify", {"decision": 1, "verified": [], "gap": gap})])
    gaps.check_open(7)
    with pytest.raises(UnknownName, match='no gap "8"'):
        gaps.check_open(8)
    gaps.fold(Event(8, 5, "close-gap", {"gap": 7, "reason": "done"}))
    with pytest.raises(InputError, match="closed already"):
        gaps.check_open(7)

"""Decay and expiry: a pass against one memory at a time, and changes that no pass makes."""

import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import memlab
from memlab.errors import InputError, UnknownName
from memlab.kernel.base.clock import DAY, to_micros
from memlab.kernel.policies import load_pack
from memlab.kernel.recall import Moment
from memlab.kernel.schema import RECALLABLE, STATUSES
from memlab.kernel.state import Change, build_values
from memlab.subjects.retention import upkeep
from memlab.subjects.retention.upkeep import find_transitions, run_upkeep

BEGIN = to_micros("2026-03-01T12:00:00")
PACKS = sorted(memlab.packs())
LIVE = tuple(word for word in STATUSES if word != "purged")


def alone(name):
    """Return a pack in which memories are not compared, so that time alone changes them."""
    return f'(pack alone :inherits {name}) (setting linking "off")'


TANGLED = """(pack tangled "Status, half-life and label answer to one another.")
(defpolicy half-life [status] (if (= status "staged") 1 20))
(defpolicy promote [status retention] (cond (= status "active") (if (< retention 0.5) "staged" status)
                                            (= status "staged") (if (< retention 0.1) "confirmed" status)
                                            else status))
(defpolicy forget [status retention] (and (= status "confirmed") (< retention 0.3)))
(defpolicy label [status retention] (if (< retention 0.7) status null))"""


def written(lab, *events):
    """Write events (kind, at, body) into a lab, as if another process had written them."""
    with lab.io.store.writing() as tx:
        for kind, at, body in events:
            tx.event(kind, body, at=at)


def head(lab):
    return lab.io.store.journal.head


def statuses_by_id(lab):
    return {row["id"]: (row["status"], row["label"]) for row in lab.memories.iter_rows(named=True)}


@st.composite
def memories(draw):
    fields = {
        "kind": st.sampled_from(["fact", "preference", "gotcha", "turn", "context"]),
        "status": st.sampled_from(LIVE),
        "source": st.sampled_from(["conversation", "file", "user-edit"]),
        "confidence": st.floats(0, 1),
        "strength": st.floats(0, 100),
        "emotional_weight": st.floats(0, 100),
        "energy": st.floats(0, 1),
        "stability": st.none() | st.floats(0.1, 100),
        "ttl_days": st.none() | st.floats(0, 60),
    }
    age = st.floats(0, 400).map(lambda days: BEGIN - round(days * DAY))
    rows = draw(st.lists(st.fixed_dictionaries({**fields, "at": age}), min_size=1, max_size=8))
    return [{"text": f"memory {index}", **row} for index, row in enumerate(rows)]


@pytest.fixture(scope="module")
def opened(trigrams):
    """Return a lab in memory with these memories, some of them recalled."""

    def fresh(pack, rows, uses=()):
        lab = memlab.open(embedder=trigrams, clock=memlab.ManualClock(BEGIN), pack=pack)
        lab.remember(rows)
        for use in uses:
            written(lab, ("recall", BEGIN, {"ids": [1 + use % len(rows)]}))
        return lab

    return fresh


def transition_of(lab, pack, id, now):
    """Apply the pack's policies to one memory, row by row; return its status and label afterwards."""
    state, row = lab.io.store.state, id - 1
    status, label = state.names["status"].value_at(row), state.names["label"].value_at(row)
    changed = int(state.numbers["changed"].values[row])
    if changed > now or (changed == now and status == "retracted"):
        return status, label
    result = status

    def ask(slot):
        moment = Moment(state, pack, np.array([row]), now)
        moment.give(status=np.array([result], dtype=object))
        policy = pack.policies[slot]
        values = {name: moment[name][0] for name in policy.inputs}
        return policy.row(
            {name: None if value != value else value for name, value in values.items()}
        )

    if status in RECALLABLE:
        while result in RECALLABLE and (ask("promote") or result) != result:
            result = ask("promote")
    if (result in RECALLABLE or status == "retracted") and ask("forget"):
        result = pack.settings["forgotten-as"]
    return result, (ask("label") or label) if result in RECALLABLE else label


uses = st.lists(st.integers(0, 7), max_size=12)
passes = st.floats(0, 200).map(lambda days: BEGIN + round(days * DAY))


@pytest.mark.long
@pytest.mark.parametrize("name", [*map(alone, PACKS), TANGLED], ids=[*PACKS, "tangled"])
@examples(25, quick=5)
@given(rows=memories(), uses=uses, now=passes)
def test_a_pass_is_every_memory_on_its_own(opened, name, rows, uses, now):
    lab, pack = opened(name, rows, uses), load_pack(name)
    before = statuses_by_id(lab)
    wanted = {id: transition_of(lab, pack, id, now) for id in before}
    upkeep = lab.upkeep.maintain(now)
    assert statuses_by_id(lab) == wanted
    moved = {
        (row["id"], row["what"]): (row["from"], row["to"])
        for row in upkeep.frame.iter_rows(named=True)
    }
    assert moved == {
        (id, what): (before[id][index], wanted[id][index])
        for id in before
        for index, what in enumerate(("status", "label"))
        if before[id][index] != wanted[id][index]
    }


@pytest.mark.long
@pytest.mark.parametrize("name", [*map(alone, PACKS), TANGLED], ids=[*PACKS, "tangled"])
@examples(25, quick=5)
@given(rows=memories(), uses=uses, nows=st.lists(passes, min_size=1, max_size=5))
def test_whatever_the_clock_does_nothing_is_undone_or_repeated(opened, name, rows, uses, nows):
    lab = opened(name, rows, uses)
    result = statuses_by_id(lab)
    since = lab.memories["changed"].to_physical().fill_null(-(2**62)).to_list()
    for now in nows:
        for row in lab.upkeep.maintain(now).frame.iter_rows(named=True):
            place = ("status", "label").index(row["what"])
            assert result[row["id"]][place] == row["from"], (
                "each transition begins where the last one ended"
            )
            result[row["id"]] = (
                (row["to"], result[row["id"]][1])
                if place == 0
                else (result[row["id"]][0], row["to"])
            )
            assert since[row["id"] - 1] <= now, "nothing that changed later is touched"
        until = lab.memories["changed"].to_physical().fill_null(-(2**62)).to_list()
        assert all(late >= early for early, late in zip(since, until, strict=True))
        since, seen = until, head(lab)
        assert not lab.upkeep.maintain(now)
        assert head(lab) == seen, "a second pass at the same instant writes nothing"
    assert statuses_by_id(lab) == result


@pytest.mark.long
@examples(15, quick=5)
@given(rows=memories(), now=passes, block=st.integers(1, 5), cut=st.integers(0, 4))
def test_a_pass_that_was_stopped_is_finished_by_the_next(opened, rows, now, block, cut):
    whole, parts = opened(alone("companion"), rows), opened(alone("companion"), rows)
    whole.upkeep.maintain(now)
    looks = iter(range(100))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(upkeep, "_BLOCK", block)
        begun = run_upkeep(parts.io.store, now, is_stopped=lambda: next(looks) >= cut)
        assert begun.complete == (cut >= -(-len(rows) // block))
        rest = parts.upkeep.maintain(now)
    assert rest.complete
    assert statuses_by_id(parts) == statuses_by_id(whole)
    assert len(begun.events) + len(rest.events) <= -(-len(rows) // block), (
        "one event a block, and none for nothing"
    )


class TestStatuses:
    @pytest.mark.long
    def test_a_fact_is_staged_confirmed_retracted_and_cleaned_up(self, lab, clock):
        lab.policies.use(alone("factgraph"))
        lab.remember("Ann lives in Rome", status="active")
        lab.remember("Bo sails", status="active", confidence=0.3)
        assert lab.upkeep.maintain().counts.filter(what="status").rows() == [
            ("status", "active", "staged", 2)
        ]
        for _ in range(3):
            written(lab, ("recall", clock(), {"ids": [1]}))
        assert lab.upkeep.maintain().frame.filter(what="status").select("id", "to").rows() == [
            (1, "confirmed")
        ]
        # 0.3 * 0.95^x < 0.2 after x = 7.9 weeks, and a week of grace
        clock.advance(days=7 * (1 + math.log(2 / 3) / math.log(0.95)))
        clock.advance(seconds=1)
        assert lab.upkeep.maintain().frame.filter(what="status").select("id", "to").rows() == [
            (2, "retracted")
        ]
        assert not lab.upkeep.maintain(), "it is seen as retracted until the next pass"
        clock.advance(hours=4)
        assert lab.upkeep.maintain().frame.select("id", "from", "to").rows() == [
            (2, "retracted", "deleted")
        ]
        assert lab[1].status == "confirmed"

    def test_a_deleted_memory_is_due_for_purging_after_thirty_days(self, lab, clock):
        lab.policies.use(alone("companion"))
        lab.remember("a dream")
        clock.advance(days=30)
        lab.upkeep.maintain()
        assert lab[1].status == "deleted"
        clock.advance(days=29.9)
        assert lab.upkeep.maintain().due.is_empty()
        clock.advance(days=0.1)
        [(id, deleted, due)] = lab.upkeep.maintain().due.rows()
        assert (id, (due - deleted).days) == (1, 30)

    @pytest.mark.parametrize("name", PACKS)
    def test_a_time_to_live_ends_under_every_pack(self, lab, clock, name):
        lab.policies.use(alone(name))
        lab.remember("for a week", ttl_days=7, emotional_weight=100)
        lab.remember("for good", emotional_weight=100)
        clock.advance(days=6.9)
        lab.upkeep.maintain()
        assert lab[1].status in RECALLABLE
        clock.advance(days=0.1)
        lab.upkeep.maintain()
        assert (lab[1].status, lab[2].status in RECALLABLE) == ("expired", True)

    def test_an_inactive_memory_is_unchanged(self, lab, clock):
        lab.policies.use(alone("companion"))
        out = [word for word in LIVE if word not in (*RECALLABLE, "retracted")]
        lab.remember([{"text": word, "status": word} for word in out])
        clock.advance(days=400)
        assert not lab.upkeep.maintain()

    def test_a_status_that_never_settles_is_refused_and_nothing_is_written(self, lab):
        lab.remember("x")
        lab.policies.install("promote", '(fn [status] (if (= status "active") "staged" "active"))')
        seen = head(lab)
        with pytest.raises(InputError, match=r"keeps changing the status of memory 1"):
            lab.upkeep.maintain()
        assert head(lab) == seen

    def test_a_word_that_is_no_status_is_refused(self, lab):
        lab.remember("x", kind="fact")
        lab.policies.install("promote", "(fn [kind] kind)")
        with pytest.raises(UnknownName, match='no status "fact"'):
            lab.upkeep.maintain()

    def test_no_policy_may_say_that_something_is_purged(self, lab):
        with pytest.raises(memlab.PolicyError, match="purged"):
            lab.policies.install("promote", '(fn [] "purged")')

    @pytest.mark.parametrize("status", ["forgotten", "expired", "deleted"])
    def test_an_expired_memory_gets_the_status_of_the_pack(self, lab, status):
        lab.policies.use(
            f'(pack p) (setting forgotten-as "{status}") (defpolicy forget [age-days] (>= age-days 0))'
        )
        lab.remember("x")
        lab.upkeep.maintain()
        assert lab[1].status == status


class TestLabels:
    def test_a_policy_that_reads_nothing(self, lab):
        lab.policies.install("label", '(fn [] "same")')
        lab.remember(["a", "b"])
        assert lab.upkeep.maintain().frame.rows() == [
            (id, "label", None, "same", lab.memories["changed"][0]) for id in (1, 2)
        ]

    @pytest.mark.long
    def test_null_leaves_the_label_that_was_there(self, lab, clock):
        lab.policies.install("label", '(fn [age-days] (if (< age-days 1) "new" null))')
        lab.remember("a")
        lab.upkeep.maintain()
        clock.advance(days=2)
        assert not lab.upkeep.maintain()
        assert statuses_by_id(lab)[1] == ("active", "new")

    @pytest.mark.long
    def test_a_memory_that_leaves_recall_keeps_its_last_label(self, lab, clock):
        lab.policies.use(alone("companion"))
        lab.remember("a")
        lab.upkeep.maintain()
        clock.advance(days=60)
        lab.upkeep.maintain()
        assert statuses_by_id(lab)[1] == ("deleted", "vivid")

    @pytest.mark.long
    def test_another_pack_has_other_words(self, lab):
        lab.remember("a")
        lab.upkeep.maintain()
        lab.policies.use(alone("associative"))
        assert lab.upkeep.maintain().frame.select("from", "to").rows() == [("vivid", "emerging")]

    @pytest.mark.long
    @pytest.mark.parametrize(
        "created", ["0001-01-02", "1815-12-10", "1970-01-01", "2200-01-01", "9998-01-01"]
    )
    def test_any_date(self, lab, created):
        lab.remember("a", at=created)
        lab.upkeep.maintain("2026-01-01")
        assert statuses_by_id(lab)[1][1] == ("vivid" if created > "2026" else "fragment")


@pytest.mark.long
def test_a_change_at_a_later_instant_waits_for_the_clock(lab, clock):
    lab.policies.use(alone("companion"))
    lab.remember("a")
    clock.advance(days=5)
    lab.upkeep.maintain()
    assert statuses_by_id(lab)[1][1] == "clear"
    clock.advance(days=-3)
    assert not lab.upkeep.maintain()
    lab.remember("b")
    assert lab.upkeep.maintain().frame["id"].to_list() == [2], "what is new is not held up"
    clock.advance(days=9)
    assert lab.upkeep.maintain().frame.select("id", "to").rows() == [(1, "hazy"), (2, "clear")]


@pytest.mark.long
def test_a_transition_is_an_event_that_folds_without_a_policy(trigrams):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.memlab"
        with memlab.open(
            path, embedder=trigrams, clock=memlab.ManualClock(BEGIN), pack=alone("companion")
        ) as lab:
            lab.remember([f"memory {n}" for n in range(5)])
            lab.upkeep.maintain(BEGIN + 5 * DAY)
            told, events = (
                statuses_by_id(lab),
                list(lab.io.store.journal.events(kinds=["maintain"])),
            )
        assert [event.at for event in events] == [BEGIN + 5 * DAY]
        assert events[0].body["set"] == [
            {"ids": [1, 2, 3, 4, 5], "columns": {"label": "clear", "changed": BEGIN + 5 * DAY}}
        ]
        assert events[0].body["pack"] == load_pack(alone("companion")).hash
        with memlab.open(path, embedder=trigrams, clock=memlab.ManualClock(BEGIN)) as again:
            assert statuses_by_id(again) == told


def test_nothing_is_decided_of_no_memories(lab):
    result = find_transitions(lab.io.store.state, lab.policies.pack, np.empty(0, dtype=np.int64), 0)
    assert not result.change
    assert result.frame.is_empty()
    assert not lab.upkeep.maintain()


def test_a_retracted_memory_expires_only_at_a_later_instant(lab, clock):
    lab.policies.use(alone("factgraph"))
    lab.remember("a")
    change = Change(set=[build_values([1], status="retracted", changed=clock())])
    written(lab, ("edit", clock(), change.body()))
    assert not lab.upkeep.maintain()
    assert lab.upkeep.maintain(clock() + 1).frame.select("to").rows() == [("deleted",)]

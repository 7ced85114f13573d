"""Feedback by id and in batches: whose recall it belongs to, and all or nothing."""

import polars as pl
import pytest

import memlab
from memlab.errors import InputError, UnknownName

GROWING = "(pack growing :inherits memlab) (defpolicy reinforce [importance] (update :importance (+ importance 0.1)))"


@pytest.fixture
def lab():
    with memlab.open(clock=memlab.ManualClock("2026-01-01")) as lab:
        lab.remember(["goats eat grass", "goats climb", "sheep eat grass"])
        yield lab


def test_feedback_by_id_belongs_to_the_last_recall_that_showed_it(lab):
    first = lab.recall("goats climb", limit=1)
    second = lab.recall("goats climb", limit=1)
    lab.recall("sheep", limit=1)
    assert first.ids == second.ids
    assert lab.feedback(first.ids[0], "success").decision == second.decision
    assert lab.feedback(lab[first.ids[0]], "success").decision == second.decision
    assert lab.feedback(first[0], "success").decision == first.decision
    assert lab.feedback(first.ids[0], "success", decision=first.decision).decision == first.decision


def test_feedback_on_memories_that_no_recall_showed_has_no_decision(lab):
    lab.recall("goats", limit=1, log=False)
    assert lab.feedback(1, "success").decision is None


def test_an_operation_belongs_to_the_last_recall_too(lab):
    hits = lab.recall("goats climb", limit=1)
    lab.upkeep.operations.run(f'(feedback {hits.ids[0]} "success")')
    row = lab.slates().feedback.collect().row(0, named=True)
    assert (row["decision"], row["source"]) == (hits.decision, "operation")


@pytest.mark.long
def test_the_last_recall_is_known_after_a_snapshot(tmp_path):
    with memlab.open(tmp_path / "lab") as lab:
        lab.remember("goats climb")
        decision = lab.recall("goats").decision
        lab.io.store.snapshot()
    with memlab.open(tmp_path / "lab") as lab:
        assert lab.feedback(1, "success").decision == decision


@pytest.mark.long
def test_a_batch_is_what_one_after_another_would_be():
    rows = [
        {"memory": 1, "outcome": "success"},
        {"memory": 1, "outcome": "success", "rating": 4},
        {"memory": 2, "reward": 0.5, "source": "judge"},
        {"memory": 1, "rating": 1},
    ]
    labs = []
    for batch in (True, False):
        lab = memlab.open(pack=GROWING, clock=memlab.ManualClock("2026-01-01"))
        lab.remember(["goats eat grass", "goats climb"])
        lab.recall("goats")
        if batch:
            lab.feedback(rows)
        else:
            for row in rows:
                lab.feedback(
                    row["memory"],
                    row.get("outcome"),
                    **{k: v for k, v in row.items() if k not in ("memory", "outcome")},
                )
        labs.append(lab)
    one, other = labs
    assert one.memories.equals(other.memories)
    assert one.memories["importance"].to_list()[0] == pytest.approx(0.9)  # the recall counts, too
    assert one.slates().feedback.collect().equals(other.slates().feedback.collect())


def test_a_write_that_fails_half_way_leaves_the_lab_as_it_was(lab):
    lab.recall("goats")
    seen, before = len(lab.log), lab.memories

    def half_way():
        with lab.io.store.writing() as tx:
            tx.event(
                "feedback",
                {"decision": None, "memory": 1, "outcome": "success", "source": "user"},
                at=0,
            )
            lab.io.store.settle(tx)
            assert lab.io.store.state.numbers["success"].values[0] == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half_way()
    assert len(lab.log) == seen
    assert lab.memories.equals(before)


def test_a_frame_of_hits_will_do(lab):
    hits = lab.recall("goats")
    logged = lab.feedback(hits.frame.select("memory_id", outcome=pl.lit("success")))
    assert [item.memory for item in logged] == list(hits.ids)
    assert {item.decision for item in logged} == {hits.decision}
    assert lab.feedback([]) == ()


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({"memory": 99, "outcome": "success"}, UnknownName),
        ({"memory": 1, "outcome": "sucess"}, UnknownName),
        ({"memory": 1}, InputError),
        ({"outcome": "success"}, InputError),
        ({"memory": 1, "outcom": "success"}, UnknownName),
        ({"memory": 1, "rating": 5}, InputError),
        ({"memory": 1, "reward": float("nan")}, InputError),
        ({"memory": 1, "reward": "much"}, InputError),
        ({"memory": 1, "outcome": "success", "decision": 12_345}, UnknownName),
        ("success", InputError),
    ],
)
def test_a_bad_row_is_named_and_nothing_is_logged(lab, row, error):
    lab.recall("goats")
    seen, before = len(lab.log), lab.memories
    with pytest.raises(error, match=r"Row 1|hit\[1\]"):
        lab.feedback([{"memory": 1, "outcome": "success"}, row])
    assert len(lab.log) == seen
    assert lab.memories.equals(before)

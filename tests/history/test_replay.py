"""The same inputs under another pack: nothing of what the old pack decided comes along."""

from concurrent.futures import Future, ThreadPoolExecutor

import polars as pl
import pytest

import memlab
from memlab.errors import InputError, UnknownName, WorkerLost
from tests.displays import html_of

pytestmark = pytest.mark.long


@pytest.fixture
def month(lab, clock):
    """Fill a lab with a month of use: a conversation, queries about it, feedback, and a correction."""
    lab.remember(
        [
            {"text": f"I like {what}", "session": "1", "ref": what}
            for what in ("tea", "hills", "chess", "rain")
        ],
        chain=True,
    )
    for _ in range(6):
        clock.advance(days=5)
        hits = lab.recall("what do I like? tea", limit=2, explore=True)
        first, second = (hit for hit in hits if not hit.probe)
        lab.feedback(first, "success")
        lab.feedback(second, "fail")
    lab.forget(4)
    lab.graph.link(1, 2, "relates-to", weight=0.5)
    return lab


def test_under_its_own_pack_a_life_goes_as_it_went(month):
    again = memlab.replay(month, "memlab", every_days=0)
    assert again.frame["left_out"].sum() == 0
    assert again.lab.memories.equals(month.memories)
    assert again.lab.edges.drop("edge").equals(month.edges.drop("edge"))
    assert again.ids.rows() == [(1, 1), (2, 2), (3, 3), (4, 4)]


def test_replayed_slates_equal_those_of_a_lab_under_the_pack(month):
    again = memlab.replay(month, "memlab", every_days=0)
    old, new = (lab.slates().candidates.collect().drop("decision") for lab in (month, again.lab))
    assert new.equals(old)
    assert again.lab.slates().decisions.collect()["query"].to_list() == ["what do I like? tea"] * 6


def test_a_replay_explores_where_the_recalls_did(lab):
    lab.policies.use("(pack always :inherits memlab) (setting probe-rate 1) (setting limit 2)")
    lab.remember([f"goat number {number}" for number in range(9)])
    for explore in (True, False, True):
        lab.recall("goat", explore=explore)
    again = memlab.replay(lab, "memlab").lab.slates().decisions.collect()
    assert again["sampler"].to_list() == ["probe", "deterministic", "probe"]


def test_time_is_simulated(month, clock):
    again = memlab.replay(month, "memlab")
    assert again.lab.memories["accessed"].max() == month.memories["accessed"].max()
    assert again.lab.log["at"].max() == month.log["at"].max()


def test_another_pack_decides_by_its_own_policies(month):
    again = memlab.replay(month, "companion")
    assert again.pack == "companion"
    # a recall adds 5 to the strength as it stands, which has lost 5 times 4.85: after four nothing is left for a fifth
    rows = again.lab.memories.filter(pl.col("access") > 0)
    assert rows["access"].to_list() == [4, 4]
    assert rows["strength"].to_list() == pytest.approx([100 - 4 * (5 * 4.85 - 5)] * 2)
    assert rows["status"].to_list() == ["deleted", "deleted"]


def test_feedback_counts_only_where_the_memory_was_shown(month):
    nothing = "(pack nothing)\n(defpolicy eligible [] false)"
    frame = memlab.replay(month, nothing).frame
    row = frame.filter(pl.col("kind") == "feedback").row(0, named=True)
    assert (row["inputs"], row["applied"], row["left_out"]) == (12, 0, 12)
    assert row["why"] == "12 not shown by the new lab"


def test_manual_corrections_are_replayed(month):
    again = memlab.replay(month, "memlab").lab
    assert again[4].status == "forgotten"
    assert again.edges.filter(pl.col("relation") == "relates-to")["weight"].to_list() == [0.5]


def test_background_links_are_made_before_the_clock_advances(month):
    pack = '(pack eager :inherits memlab) (setting linking "later") (defpolicy link [] "similar")'
    again = memlab.replay(month, pack)
    linked = again.lab.edges.filter(relation="similar-to")
    assert len(linked) > 1
    assert again.lab.graph.waiting() == 0
    assert set(linked["created"]) == set(month.memories["created"])


def test_upkeep_runs_when_it_is_due_in_simulated_time(month):
    with_upkeep = memlab.replay(month, "companion", every_days=1).lab.log
    without = memlab.replay(month, "companion", every_days=0).lab.log
    assert "maintain" in with_upkeep["kind"].to_list()
    assert "maintain" not in without["kind"].to_list()


def test_a_replay_can_be_stored_on_disk_and_stopped_early(month, tmp_path):
    event = month.log.filter(pl.col("kind") == "recall")["event"][0]
    again = memlab.replay(month, "memlab", path=tmp_path / "again", upto=event)
    assert again.frame.rows(named=True)[0]["inputs"] == 1
    again.lab.close()
    with pytest.raises(InputError, match="a replay needs a new lab"):
        memlab.replay(month, "memlab", path=tmp_path / "again")


def test_a_recall_that_cannot_be_repeated_is_left_out_by_name(month):
    month.recall("tea", where=pl.col("text").map_elements(len, return_dtype=pl.Int64) > 3)
    row = memlab.replay(month, "memlab").frame.filter(pl.col("kind") == "recall").row(0, named=True)
    assert row["left_out"] == 1
    assert "expression that is not in the log" in row["why"]


def test_bad_input(month):
    with pytest.raises(UnknownName, match="companion"):
        memlab.replay(month, "companoin")
    with pytest.raises(InputError, match="every_days"):
        memlab.replay(month, "memlab", every_days=-1)


def test_a_replay_renders(month):
    again = memlab.replay(month, "memlab")
    assert "21 of 21 inputs applied" in repr(again)
    assert "<table" in html_of(again)


def test_several_packs_give_a_lab_each(month, tmp_path):
    both = memlab.replay(month, ["companion", "cascade"], path=tmp_path / "new", progress=False)
    assert [again.pack for again in both] == ["companion", "cascade"]
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["cascade", "companion"]
    alone = memlab.replay(month, "cascade", progress=False)
    assert both[1].lab.memories.equals(alone.lab.memories)
    (named,) = memlab.replay(month, {"mine": "companion"}, progress=False)
    assert named.pack == "mine"
    for packs in (["memlab", "memlab"], []):
        with pytest.raises(InputError, match="packs with different names"):
            memlab.replay(month, packs)


class OneTask:
    """An executor that runs one task and refuses more."""

    used = False

    def submit(self, fn, /, *args):
        if self.used:
            raise RuntimeError("full")
        self.used = True
        future = Future()
        future.set_result(fn(*args))
        return future


def test_an_executor_replays_copies_and_all_new_labs_appear_at_once(month, tmp_path):
    packs = ["companion", "cascade"]
    expected = memlab.replay(month, packs, progress=False)
    with ThreadPoolExecutor(2) as threads:
        both = memlab.replay(month, packs, path=tmp_path / "new", executor=threads)
        one = memlab.replay(month, "cascade", path=tmp_path / "one", executor=threads)
        for again, other in zip((*both, one), (*expected, expected[1]), strict=True):
            assert again.lab.memories.equals(other.lab.memories)
            assert again.lab.log.equals(other.lab.log)
            assert again.lab.edges.equals(other.lab.edges)
            assert again.frame.equals(other.frame)
            assert again.ids.equals(other.ids)
            assert again.lab.io.store.clock() == other.lab.io.store.clock()
        before = sorted(path.name for path in tmp_path.iterdir())
        assert before == ["new", "one"]
        with pytest.raises(InputError, match="Pass a path"):
            memlab.replay(month, packs, executor=threads)
        past = month.at(event=5)
        with pytest.raises(InputError, match="the lab itself with upto"):
            memlab.replay(past, packs, path=tmp_path / "more", executor=threads)
    # The executor refuses the second replay, after the first one.
    full = OneTask()
    with pytest.raises(WorkerLost, match="full"):
        memlab.replay(month, packs, path=tmp_path / "more", executor=full)
    assert full.used
    assert sorted(path.name for path in tmp_path.iterdir()) == before

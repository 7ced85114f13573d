"""``lab.upkeep.maintain`` and ``lab.upkeep.schedule``: real labs, real threads, and no waiting by the clock."""

import gc
import queue
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from waiting import until

import memlab
from memlab.errors import InputError, LabError, ReadOnlyLab
from memlab.subjects.retention import upkeep
from memlab.subjects.retention.retention import Pace
from memlab.subjects.retention.upkeep import run_upkeep
from tests.displays import html_of

QUIET = '(pack quiet :inherits companion) (setting linking "off")'
SOON, NEVER = timedelta(milliseconds=1), timedelta(days=365)
UNSETTLED = '(fn [status] (if (= status "active") "staged" "active"))'


@pytest.fixture
def lab(trigrams, clock):
    with memlab.open(embedder=trigrams, clock=clock, pack=QUIET) as opened:
        yield opened


def head(lab):
    return lab.io.store.journal.head


class TestMaintain:
    def test_the_report_of_maintain(self, lab, clock):
        lab.remember(["a", "b", "c"])
        clock.advance(days=5)
        upkeep = lab.upkeep.maintain()
        assert upkeep
        assert len(upkeep) == 3
        assert upkeep.counts.rows() == [("label", None, "clear", 3)]
        assert upkeep.frame.columns == ["id", "what", "from", "to", "at"]
        assert upkeep.frame["at"].unique().to_list() == [datetime(2026, 3, 6, 12, tzinfo=UTC)]
        assert (upkeep.pack, upkeep.pack_hash) == ("quiet", lab.policies.pack.hash)
        assert [
            event.kind for event in lab.io.store.journal.events(after=upkeep.events[0] - 1)
        ] == ["maintain"]
        assert repr(upkeep) == "<Upkeep 2026-03-06 12:00 UTC, pack quiet: 3 label none -> clear>"

    def test_where_nothing_changed_nothing_is_written(self, lab):
        lab.remember("a")
        lab.upkeep.maintain()
        before = head(lab)
        upkeep = lab.upkeep.maintain()
        assert (upkeep.events, bool(upkeep), head(lab)) == ((), False, before)
        assert "nothing changed" in repr(upkeep)
        assert "nothing changed" in html_of(upkeep)

    def test_a_page_is_escaped(self, lab, clock):
        lab.policies.install("label", '(fn [] "<b>")')
        lab.remember("a")
        page = html_of(lab.upkeep.maintain())
        assert "&lt;b&gt;" in page
        assert "<td style='text-align:left;padding:.1em .5em'><b>" not in page

    def test_at_any_instant_that_a_caller_says(self, lab):
        lab.remember("a", at="2026-01-01")
        assert lab.upkeep.maintain("2026-01-06").frame["to"].to_list() == ["clear"]
        assert lab.upkeep.maintain(datetime(2026, 1, 12)).frame["to"].to_list() == ["hazy"]

    @pytest.mark.parametrize("now", [2**62, -(2**62), "9999-06-01"])
    def test_impossible_dates_are_refused(self, lab, now):
        lab.remember("a")
        before = head(lab)
        with pytest.raises(InputError, match="a time must be in the years 1 to 9998"):
            lab.upkeep.maintain(now)
        assert head(lab) == before

    @pytest.mark.long
    def test_two_labs_on_one_folder(self, disk, clock):
        with disk(pack=QUIET) as one, disk() as other:
            one.remember([f"memory {n}" for n in range(4)])
            clock.advance(days=30)
            assert one.upkeep.maintain().counts.rows() == [("status", "active", "deleted", 4)]
            assert not other.upkeep.maintain()
            assert other.memories.equals(one.memories)

    def test_writes_between_the_decision_and_the_lock_are_considered(
        self, disk, clock, monkeypatch
    ):
        """Another process confirms a memory just before the write that was about to delete it."""
        with disk(pack=QUIET) as one, disk() as other:
            one.remember(["a", "b"])
            clock.advance(days=30)
            decided = upkeep.find_transitions
            calls = []

            def once(state, pack, rows, now):
                result = decided(state, pack, rows, now)
                calls.append(len(rows))
                if calls == [0, 2]:
                    with other.io.store.writing() as tx:
                        tx.event("recall", {"ids": [1]}, at=now)
                return result

            monkeypatch.setattr(upkeep, "find_transitions", once)
            one.upkeep.maintain()
            assert calls == [0, 2, 2], "decided again with a state that includes the recall"
            assert one.memories["status"].to_list() == ["active", "deleted"]

    @pytest.mark.long
    def test_reading_only(self, disk):
        with disk(pack=QUIET) as lab:
            lab.remember("a")
        with disk(read_only=True) as lab:
            for upkeep in (lab.upkeep.maintain, lab.upkeep.schedule):
                with pytest.raises(ReadOnlyLab, match="read_only=True"):
                    upkeep()
            assert lab.upkeep.forecast(1, "2026-04-01").frame.height == 100

    @pytest.mark.parametrize(("fields", "status"), [({}, "deleted"), ({"ttl_days": 7}, "expired")])
    def test_a_restored_memory_does_not_expire_at_once(self, lab, clock, fields, status):
        lab.remember("a dream", **fields)
        clock.advance(days=30)
        lab.upkeep.maintain()
        assert lab[1].status == status
        lab.restore(1)
        clock.advance(hours=4)
        lab.upkeep.maintain()
        assert lab[1].status == "active"

    def test_recall_goes_by_what_was_found(self, lab, clock):
        lab.remember(["the sea at night", "the sea at noon"])
        clock.advance(days=10)
        lab.recall("the sea at night", limit=1)
        clock.advance(days=12)
        lab.upkeep.maintain()
        assert {hit.text for hit in lab.recall("the sea", log=False)} <= {"the sea at night"}


class TestSchedule:
    def test_at_once_and_then_again(self, lab, clock):
        lab.remember("a")
        passes = queue.Queue()
        with lab.upkeep.schedule(every=SOON, on_upkeep=passes.put) as schedule:
            assert passes.get(timeout=30).counts.rows() == [("label", None, "vivid", 1)]
            clock.advance(days=30)
            value = passes.get(timeout=30)
            while not value:
                value = passes.get(timeout=30)
            assert value.counts.rows() == [("status", "active", "deleted", 1)]
            assert schedule.active
        assert not schedule.active
        assert schedule.next is None
        assert schedule.last is not None
        assert schedule.passes >= 2
        assert "stopped" in repr(schedule)
        assert html_of(schedule)

    def test_every_is_the_pack_s_unless_it_is_said(self, lab, trigrams):
        with lab.upkeep.schedule(on_upkeep=lambda found: None) as schedule:
            assert schedule.every == timedelta(hours=4)
            assert timedelta(hours=3.9) < schedule.next - datetime.now(UTC) <= timedelta(hours=4)
            lab.policies.use("(pack p) (setting upkeep-hours 24)")
            assert schedule.every == timedelta(hours=24)
        with lab.upkeep.schedule(every=timedelta(minutes=5)) as schedule:
            assert schedule.every == timedelta(minutes=5)

    def test_a_second_one_takes_the_place_of_the_first(self, lab):
        first = lab.upkeep.schedule(every=NEVER)
        second = lab.upkeep.schedule(every=NEVER)
        assert (first.active, second.active) == (False, True)

    def test_closing_the_lab_stops_it(self, disk):
        lab = disk(pack=QUIET)
        schedule = lab.upkeep.schedule(every=SOON)
        lab.close()
        assert not schedule.active
        with pytest.raises(LabError, match="closed"):
            lab.upkeep.maintain()

    def test_the_thread_may_close_the_lab_itself(self, disk):
        lab, closed = disk(pack=QUIET), threading.Event()

        def close(error):
            lab.close()
            closed.set()

        schedule = lab.upkeep.schedule(every=SOON, on_upkeep=close)
        assert closed.wait(30)
        assert until(lambda: not schedule.active)
        assert not schedule.active

    def test_a_journal_that_was_closed_ends_it(self, disk):
        lab = disk(pack=QUIET)
        schedule = lab.upkeep.schedule(every=SOON)
        lab.io.store.close()
        assert until(lambda: not schedule.active)
        assert not schedule.active
        assert schedule.error is None

    @pytest.mark.long
    def test_an_unreferenced_lab_is_released(self, trigrams, clock):
        schedule = memlab.open(embedder=trigrams, clock=clock).upkeep.schedule(every=SOON)
        gc.collect()
        assert until(lambda: not schedule.active)
        assert not schedule.active

    def test_a_pass_that_fails_is_told_once_and_mended_by_one_that_succeeds(self, lab, capfd):
        lab.remember("a")
        lab.policies.install("promote", UNSETTLED)
        passes = queue.Queue()
        schedule = lab.upkeep.schedule(every=SOON, on_upkeep=passes.put)
        while schedule.passes < 5:
            time.sleep(0.001)
        assert "keeps changing the status" in str(schedule.error)
        assert "keeps changing the status" in repr(schedule)
        assert "keeps changing the status" in html_of(schedule)
        lab.policies.rollback("promote")
        passes.get(timeout=30)
        schedule.stop()
        assert schedule.error is None
        assert capfd.readouterr().err.count("keeps changing the status") == 1

    @pytest.mark.long
    @pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
    def test_a_callback_that_fails_does_not_end_it(self, lab):
        result = queue.Queue()

        def fails(error):
            result.put(error)
            raise KeyError("mine")

        with lab.upkeep.schedule(every=SOON, on_upkeep=fails) as schedule:
            for _ in range(3):
                result.get(timeout=30)
            assert schedule.active

    def test_upkeep_stops_between_blocks(self, lab, monkeypatch):
        """A pass over a million memories does not hold up who closes the lab."""
        monkeypatch.setattr(upkeep, "_BLOCK", 1)
        lab.remember(["a", "b", "c"])
        looks = iter([False, True, True, True])
        report = run_upkeep(lab.io.store, lab.io.store.clock(), is_stopped=lambda: next(looks))
        assert (report.complete, report.frame["id"].to_list()) == (False, [1])
        assert "stopped early" in repr(report)
        assert lab.upkeep.maintain().frame["id"].to_list() == [2, 3]

    @pytest.mark.parametrize(
        "every", [4, 0.5, timedelta(0), timedelta(days=-1), timedelta(days=366), "4h", True]
    )
    def test_another_kind_of_time_is_refused(self, lab, every):
        with pytest.raises(InputError, match=r"every (is|must be) a timedelta"):
            lab.upkeep.schedule(every=every)

    @pytest.mark.long
    def test_upkeep_does_not_delay_another_writer(self, lab):
        with lab.upkeep.schedule(every=SOON):
            for number in range(50):
                lab.remember(f"memory {number}")
                lab.recall("memory", limit=1)
        lab.upkeep.maintain()
        assert lab.memories["label"].to_list() == ["vivid"] * 50


class TestPace:
    """Two clocks: a settable one, and one that may stop while the machine sleeps."""

    def test_a_pass_is_due_after_so_many_seconds(self):
        assert Pace(1000, 50).left(60, 1010, 60) == 50

    def test_a_night_asleep_makes_one_pass(self):
        pace = Pace(1000, 50)
        awake = (1000 + 8 * 3600, 51)
        assert pace.left(3600, *awake) < 0
        assert Pace(*awake).left(3600, *awake) == 3600, (
            "the next is an hour away, and none is made up for"
        )

    def test_a_clock_that_was_set_back_holds_up_nothing(self):
        assert Pace(1000, 50).left(60, -86_400, 110) == 0

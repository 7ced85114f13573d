"""``lab.policies.watch``: what is saved decides the next recall. Real files, real threads, no waiting by the clock."""

import gc
import json
import os
import queue
import threading

import pytest
from waiting import until

from memlab.errors import InputError, LabError, PolicyError, PrivacyError, ReadOnlyLab, UnknownName
from memlab.kernel.policies import load_pack
from tests.displays import html_of

SLOT = "recall-score"
LONG = "(fn [length]\n  length)"
SHORT = "(fn [length]\n  (- length))"
BROKEN = "(fn [length]\n  (- lenght))"
PACK = "(pack mine)\n(setting seeds 3)\n(defpolicy recall-score [length] length)"
NEVER = 86_400
"""Seconds between two looks of a thread that shall not look: the test does, by ``watch.look``."""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.hy"
    path.write_text(LONG)
    return path


class Seen:
    """The changes that a watch tells of, waited for one by one."""

    def __init__(self):
        self.changes = queue.Queue()

    def __call__(self, change):
        self.changes.put(change)

    def next(self):
        return self.changes.get(timeout=30)


@pytest.fixture
def notices():
    return Seen()


def replaced(path, text):
    """Save as many editors do: another file, moved into its place."""
    beside = path.with_suffix(".tmp")
    beside.write_text(text)
    beside.replace(path)


def settled(watch):
    """Check the file until nothing changes: twice, or more often if the file is empty."""
    return next(filter(None, (watch.look() for _ in range(30))), None)


@pytest.mark.long
class TestSaving:
    @pytest.mark.parametrize(
        "save", [lambda path, text: path.write_text(text), replaced], ids=["in place", "replaced"]
    )
    def test_a_save_decides_the_next_recall(self, lab, file, notices, save):
        lab.remember(["short", "a rather longer text than the other"])
        with lab.policies.watch(file, SLOT, every=0.01, on_change=notices) as watch:
            assert lab.recall("text")[0].id == 2
            save(file, SHORT)
            assert notices.next().outcome == "live"
            assert lab.recall("text")[0].id == 1
            save(file, LONG)
            assert notices.next().outcome == "live"
            assert lab.recall("text")[0].id == 2
            assert watch.error is None
        history = lab.policies.history(SLOT)
        assert history["action"].to_list() == ["use", "install", "install", "install"]
        assert history["reason"].to_list() == [
            "",
            "watching mine.hy",
            "saved mine.hy",
            "saved mine.hy",
        ]

    def test_a_pack(self, lab, file, notices):
        file.write_text(PACK)
        with lab.policies.watch(file, every=0.01, on_change=notices):
            assert (lab.policies.pack.name, lab.policies.pack.count("seeds")) == ("mine", 3)
            file.write_text(PACK.replace("3", "4"))
            change = notices.next()
            assert (change.outcome, change.hash) == ("live", lab.policies.pack.hash)
            assert lab.policies.pack.count("seeds") == 4

    def test_a_broken_save_leaves_the_last_good_one_live(self, lab, file, notices):
        with lab.policies.watch(file, SLOT, every=0.01, on_change=notices) as watch:
            before = lab.policies.pack.hash
            file.write_text(BROKEN)
            change = notices.next()
            assert (change.outcome, lab.policies.pack.hash) == ("error", before)
            assert isinstance(watch.error, PolicyError)
            assert "mine.hy, recall-score" in str(change.error)
            assert "line 2, column 6" in str(change.error)
            assert "Did you mean length" in repr(change)
            file.write_text(LONG)
            assert notices.next().outcome == "same"
            assert (watch.error, lab.policies.pack.hash) == (None, before)

    def test_a_deleted_file_is_told_and_may_come_back(self, lab, file, notices):
        with lab.policies.watch(file, SLOT, every=0.01, on_change=notices) as watch:
            file.unlink()
            assert notices.next().outcome == "error"
            assert "mine.hy is not there" in str(watch.error)
            assert lab.policies[SLOT].source == LONG
            file.write_text(SHORT)
            assert notices.next().outcome == "live"
            assert watch.error is None

    def test_two_files_for_two_slots(self, lab, file, tmp_path, notices):
        other = tmp_path / "other.hy"
        other.write_text("(fn [similarity] similarity)")
        with (
            lab.policies.watch(file, SLOT, every=0.01, on_change=notices),
            lab.policies.watch(other, "seed-score", every=0.01),
        ):
            file.write_text(SHORT)
            notices.next()
            assert lab.policies[SLOT].source == SHORT
            assert lab.policies["seed-score"].source == other.read_text()


class TestLooking:
    """One check at a time."""

    @pytest.fixture
    def watch(self, lab, file):
        with lab.policies.watch(file, SLOT, every=NEVER, on_change=lambda change: None) as watch:
            yield watch

    def test_a_file_that_is_still_being_written_is_not_read(self, lab, file, watch):
        for end in range(1, len(SHORT)):
            file.write_text(SHORT[:end])
            assert watch.look() is None
        file.write_text(SHORT)
        assert watch.look() is None
        assert watch.look().outcome == "live"
        assert lab.policies[SLOT].source == SHORT
        assert [change.outcome for change in watch.changes] == ["live", "live"]

    def test_gone_for_a_moment_is_nothing(self, file, watch):
        file.unlink()
        assert watch.look() is None
        file.write_text(LONG)
        assert settled(watch) is None

    def test_a_change_that_keeps_size_and_times_is_seen(self, lab, file, watch):
        times = file.stat()
        file.write_text(LONG.replace("length", "access"))
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert file.stat().st_size == times.st_size
        assert file.stat().st_mtime_ns == times.st_mtime_ns
        assert settled(watch).outcome == "live"
        assert lab.policies[SLOT].inputs == ("access",)

    def test_a_touch_is_no_change(self, file, watch):
        os.utime(file, (1, 1))
        assert settled(watch) is None

    def test_a_save_without_a_change_of_meaning_installs_nothing(self, lab, file, watch):
        head = lab.io.store.journal.head
        file.write_text('; a remark\n(fn [length] "It is long." length)\r\n')
        assert settled(watch).outcome == "same"
        assert lab.io.store.journal.head == head

    def test_a_save_after_a_manual_installation_is_not_installed(self, lab, file, watch):
        lab.policies.install(SLOT, SHORT)
        file.write_text(f"; a remark\n{LONG}")
        assert settled(watch).outcome == "same"
        assert lab.policies[SLOT].source == SHORT
        file.write_text("(fn [access] access)")
        assert settled(watch).outcome == "live"

    def test_the_active_policy_is_not_installed_again(self, lab, file, watch):
        lab.policies.install(SLOT, SHORT)
        file.write_text(SHORT)
        head = lab.io.store.journal.head
        assert settled(watch).outcome == "same"
        assert lab.io.store.journal.head == head

    @pytest.mark.parametrize(
        ("content", "error", "message"),
        [
            (b"", PolicyError, "empty"),
            (b"\xff\xfe", InputError, "not UTF-8"),
            (b"(" * 2_000_000, InputError, "larger than 1,000,000 bytes"),
            (b'(fn [length] (if (= "AKIAIOSFODNN7EXAMPLE" "a") length 0))', PrivacyError, "secret"),
        ],
    )
    def test_invalid_policies_are_reported(self, lab, file, watch, content, error, message):
        before = lab.policies.pack.hash
        file.write_bytes(content)
        change = settled(watch)
        assert isinstance(change.error, error)
        assert message in str(watch.error)
        assert lab.policies.pack.hash == before

    def test_a_file_that_is_emptied_before_it_is_written_is_let_finish(self, file, watch):
        file.write_text("")
        assert [watch.look() for _ in range(10)] == [None] * 10
        file.write_text(SHORT)
        assert settled(watch).outcome == "live"

    def test_a_folder_in_its_place(self, file, watch):
        file.unlink()
        file.mkdir()
        assert "cannot be read" in str(settled(watch).error)

    def test_a_pinned_slot_says_so(self, lab, file, watch):
        lab.policies.pin(SLOT)
        file.write_text(SHORT)
        assert "unpin" in str(settled(watch).error)
        assert lab.policies[SLOT].source == LONG

    def test_a_pack_is_used_around_pins(self, lab, tmp_path):
        lab.policies.pin(SLOT)
        pack = tmp_path / "pack.hy"
        pack.write_text(PACK)
        with lab.policies.watch(pack, every=NEVER) as watch:
            assert watch.changes[0].note == "pinned, so not changed by this file: recall-score"
            assert lab.policies.pack.count("seeds") == 3
            assert lab.policies[SLOT].hash == load_pack("memlab").policies[SLOT].hash

    @pytest.mark.long
    def test_a_failure_outside_the_file_is_retried(self, disk, file):
        told = []
        with (
            disk() as lab,
            disk() as other,
            lab.policies.watch(file, SLOT, every=NEVER, on_change=told.append) as watch,
        ):
            lab.io.store.journal._timeout = 0.01
            file.write_text(SHORT)
            with other.io.store.writing():
                assert isinstance(settled(watch).error, LabError)
                assert watch.look() is None
                assert lab.policies[SLOT].source == LONG
            assert watch.look().outcome == "live"
            assert lab.policies[SLOT].source == SHORT
            assert [change.outcome for change in told] == ["error", "live"]

    def test_the_watch_reports_what_it_saw(self, file, watch):
        file.write_text(BROKEN)
        settled(watch)
        assert watch.frame["outcome"].to_list() == ["live", "error"]
        assert "lenght" in watch.frame["error"][1]
        assert repr(watch).startswith("<Watch mine.hy: watching, 0 swaps>")
        assert "lenght" in html_of(watch)


class TestStarting:
    def test_a_broken_file_is_refused(self, lab, file):
        file.write_text(BROKEN)
        before = lab.policies.pack.hash
        with pytest.raises(PolicyError, match="Did you mean length"):
            lab.policies.watch(file, SLOT)
        assert lab.policies.pack.hash == before

    def test_files_that_do_not_exist(self, lab, file):
        with pytest.raises(InputError, match=r"is not there. Did you mean mine\.hy"):
            lab.policies.watch(file.with_name("mime.hy"), SLOT)
        with pytest.raises(UnknownName, match="Did you mean recall-score"):
            lab.policies.watch(file, "recal-score")

    @pytest.mark.parametrize("every", [0, -1, True, "1", float("nan")])
    def test_a_time_that_is_none(self, lab, file, every):
        with pytest.raises(InputError, match="every="):
            lab.policies.watch(file, SLOT, every=every)

    def test_a_read_only_lab_cannot_be_swapped(self, disk, file):
        disk().close()
        with disk(read_only=True) as lab, pytest.raises(ReadOnlyLab, match="read_only"):
            lab.policies.watch(file, SLOT)

    def test_an_active_policy_writes_no_event(self, lab, file):
        lab.policies.install(SLOT, LONG)
        head = lab.io.store.journal.head
        with lab.policies.watch(file, SLOT, every=NEVER) as watch:
            assert watch.changes[0].outcome == "same"
        assert lab.io.store.journal.head == head

    def test_watching_again_ends_the_watch_before(self, lab, file):
        first = lab.policies.watch(file, SLOT)
        second = lab.policies.watch(file, SLOT)
        assert (first.active, second.active) == (False, True)
        second.stop()


class TestStopping:
    def test_after_stop_nothing_is_swapped(self, lab, file):
        watch = lab.policies.watch(file, SLOT, every=0.01)
        watch.stop()
        watch.stop()
        file.write_text(SHORT)
        assert settled(watch) is None
        assert lab.policies[SLOT].source == LONG
        assert "stopped" in repr(watch)

    def test_closing_the_lab_stops_it(self, disk, file):
        lab = disk()
        watch = lab.policies.watch(file, SLOT, every=0.01)
        lab.close()
        assert not watch.active
        with pytest.raises(LabError, match="closed"):
            lab.policies.watch(file, SLOT)

    def test_the_thread_may_close_the_lab_itself(self, disk, file):
        lab, closed = disk(), threading.Event()

        def close(change):
            lab.close()
            closed.set()

        lab.policies.watch(file, SLOT, every=0.01, on_change=close)
        file.write_text(SHORT)
        assert closed.wait(30)
        with disk() as again:
            assert again.policies[SLOT].source == SHORT

    @pytest.mark.long
    def test_a_lab_that_nobody_has_any_more_is_not_watched(self, file, trigrams, clock):
        import memlab

        watch = memlab.open(embedder=trigrams, clock=clock).policies.watch(file, SLOT, every=0.01)
        gc.collect()
        assert until(lambda: not watch.active)
        assert not watch.active


@pytest.mark.long
def test_saves_while_another_thread_recalls(disk, file, notices):
    """Whatever the moment of a swap: a recall is decided by what was saved, and its event names it."""
    sources = [LONG, SHORT, "(fn [access] access)"]
    with disk() as lab:
        lab.remember(["short", "a rather longer text than the other"])
        with lab.policies.watch(file, SLOT, every=0.001, on_change=notices):
            known, stop, slates, failed = {lab.policies[SLOT].hash}, threading.Event(), [], []

            def recall():
                try:
                    while not stop.is_set():
                        slates.append(lab.recall("text", limit=1).slate)
                except BaseException as error:
                    failed.append(error)
                    raise

            recalling = threading.Thread(target=recall)
            recalling.start()
            for turn in range(1, 13):
                replaced(file, sources[turn % 3])
                known.add(notices.next().hash)
            stop.set()
            recalling.join()
        assert not failed
        assert len(known) == 3
        assert {slate.policies[SLOT] for slate in slates} <= known
        hashes = [slate.pack_hash for slate in slates]
        assert [
            event.body["pack"] for event in lab.io.store.journal.events(kinds=["recall"])
        ] == hashes
        assert lab.policies.attribution(SLOT).frame["recalls"].sum() == len(slates)


def test_outside_a_notebook_errors_go_to_standard_error(lab, file, capfd):
    with lab.policies.watch(file, SLOT, every=NEVER) as watch:
        file.write_text(BROKEN)
        settled(watch)
    assert "Did you mean length" in capfd.readouterr().err


# the kernel's own start-up, in threads of jupyter_client, is not ours to keep silent
@pytest.mark.long
@pytest.mark.filterwarnings(
    "default::DeprecationWarning", "default::pytest.PytestUnraisableExceptionWarning"
)
def test_a_notebook_shows_a_broken_save_at_once(execute_notebook):
    source = f"""
import memlab, pathlib, time
lab = memlab.open(embedder=lambda texts: [[float(len(text)), 1.0] for text in texts])
file = pathlib.Path("mine.hy")
file.write_text({LONG!r})
watch = lab.policies.watch(file, {SLOT!r}, every=0.01)
file.write_text({BROKEN!r})
for _ in range(1000):
    if watch.error is not None:
        break
    time.sleep(0.01)
watch.stop()
"""
    cell = {
        "cell_type": "code",
        "source": source,
        "metadata": {},
        "outputs": [],
        "execution_count": None,
    }
    notebook = execute_notebook(
        json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4})
    )
    [shown] = [
        output for output in notebook.cells[0].outputs if output.output_type == "display_data"
    ]
    assert "Did you mean length" in shown["data"]["text/html"]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_callback_that_fails_does_not_end_the_watch(lab, tmp_path):
    file = tmp_path / "mine.hy"
    file.write_text("(fn [similarity] similarity)")
    result: queue.Queue[int] = queue.Queue()

    def fails_once_it_is_live(change):
        result.put(result.qsize())
        if file.read_text() != "(fn [similarity] similarity)":
            raise KeyError("mine")

    watch = lab.policies.watch(file, "recall-score", every=0.01, on_change=fails_once_it_is_live)
    for text in ("(fn [recency] recency)", "(fn [importance] importance)"):
        file.write_text(text)
        result.get(timeout=60)
    assert watch.active
    assert lab.policies["recall-score"].inputs == ("importance",)

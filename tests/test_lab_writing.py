"""Writing: what is worth it, what an agent may write, and linking in the background."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest
from embedders import letters
from waiting import link_by_hand, until

import memlab
from memlab.errors import InputError, PrivacyError, ReadOnlyLab, UnknownName
from memlab.kernel.embedding import load_embedder
from tests.displays import html_of

NEAR = '(fn [pair/similarity] (if (> pair/similarity 0.5) "similar" "none"))'
LATER = """
(pack queued "Links in the background.")
(setting linking "later")
(defpolicy link [pair/similarity]
  (cond (> pair/similarity 0.999) "duplicate"
        (> pair/similarity 0.5) "similar"
        else "none"))
"""


def joined(lab: memlab.Lab) -> list[tuple[int, int, str]]:
    return lab.edges.select("source", "target", "relation").rows()


class TestAdmit:
    def test_admission_gives_its_reason_and_confidence(self, lab: memlab.Lab) -> None:
        lab.policies.use("companion")
        decision = lab.agents.admit("I prefer tabs, thanks")
        assert (decision.worth, decision.admitted, decision.reasons, decision.confidence) == (
            0.8,
            True,
            ("tells-preference",),
            0.8,
        )
        assert (decision.pack, decision.pack_hash, decision.threshold) == (
            "companion",
            lab.policies.pack.hash,
            0.5,
        )
        skipped = lab.agents.admit("How do I rename a branch?")
        assert (skipped.admitted, skipped.reasons, skipped.confidence) == (
            False,
            ("asks-plainly",),
            1.0,
        )
        assert decision.frame.height == 1

    def test_an_extract_pattern_wins_over_a_skip_pattern(self, lab: memlab.Lab) -> None:
        lab.policies.use("companion")
        decision = lab.agents.admit("Please note: my name is Ada. What is yours?")
        assert decision.admitted
        assert decision.reasons == ("tells-identity", "asks-plainly")

    def test_nothing_is_written(self, lab: memlab.Lab) -> None:
        head = lab.io.store.journal.head
        lab.agents.admit("My name is Ada")
        assert lab.io.store.journal.head == head

    @pytest.mark.parametrize("pack", memlab.packs())
    def test_every_pack_admits_something_and_not_everything(
        self, lab: memlab.Lab, pack: str
    ) -> None:
        lab.policies.use(pack)
        assert lab.agents.admit("My name is Ada").admitted
        assert not lab.agents.admit("What is a monad?").admitted

    def test_a_policy_may_ask_for_the_nearest(self, lab: memlab.Lab) -> None:
        lab.policies.install(
            "admit", "(fn [nearest] (- 1 (if-null nearest 0)))", reason="only what is new"
        )
        assert lab.agents.admit("goats by the sea").worth == 1
        lab.remember("goats by the sea", project="a")
        assert lab.agents.admit("goats by the sea", project="a").worth == 0
        assert lab.agents.admit("goats by the sea", project="b").worth == 1

    def test_role_and_length_are_features(self, lab: memlab.Lab) -> None:
        lab.policies.install(
            "admit", '(fn [role length] (if (= role "user") (/ length 10) 0))', reason=""
        )
        assert lab.agents.admit("one two three").worth == pytest.approx(0.3)
        assert lab.agents.admit("one two three", role="tool").worth == 0

    def test_bad_input(self, lab: memlab.Lab) -> None:
        with pytest.raises(UnknownName, match="Did you mean user"):
            lab.agents.admit("hello", role="usr")
        with pytest.raises(InputError, match="empty"):
            lab.agents.admit("  ")

    def test_html_is_escaped(self, lab: memlab.Lab) -> None:
        lab.policies.use("workbench")
        assert "<script>" not in html_of(lab.agents.observe("I like <script>alert(1)</script>"))
        again = lab.remember([{"text": "I like <script>alert(2)</script> no more"}])
        assert "<script>" not in html_of(again)


class TestHear:
    def test_an_utterance_below_the_threshold_is_not_stored(self, lab: memlab.Lab) -> None:
        lab.policies.use("companion")
        heard = lab.agents.observe("Hello there!")
        assert not heard
        assert (heard.memory, len(lab), heard.admission.reasons) == (None, 0, ("greets",))

    def test_kind_and_provenance_follow_from_what_was_said(self, lab: memlab.Lab) -> None:
        lab.policies.use("companion")
        said = [
            ("user", "I prefer tea"),
            ("user", "Actually, I am a nurse"),
            ("assistant", "The user wants to move"),
        ]
        for role, text in said:
            assert lab.agents.observe(text, role=role, linking="off")
        assert lab.memories["kind"].to_list() == ["preference", "correction", "goal"]
        assert lab.memories["provenance"].to_list() == ["user-stated", "user-corrected", "inferred"]

    def test_explicit_fields_are_kept(self, lab: memlab.Lab) -> None:
        heard = lab.agents.observe(
            "I prefer tea", kind="trait", provenance="observed", tags=["drinks"], at="2026-01-01"
        )
        assert heard.memory is not None
        assert (heard.memory.kind, heard.memory.tags) == ("trait", ("drinks",))
        assert lab.memories["provenance"].item() == "observed"

    def test_a_secret_never_arrives(self, lab: memlab.Lab) -> None:
        heard = lab.agents.observe("I like my key AKIAIOSFODNN7EXAMPLE")
        assert heard.memory is not None
        assert "AKIA" not in heard.memory.text + heard.admission.text


class TestWhoseMemoriesAreCompared:
    """``admit`` reads the nearest memory that every viewer of the new one can see: private ones of others do not count."""

    NEW = '(pack news "What is near something known is not new." :inherits {}) (setting admit-threshold 0.5)'
    ADMIT = "(defpolicy admit [nearest] (if (> nearest 0.95) 0 1))"
    SAID = "I like my tea with a slice of lemon"

    @pytest.mark.parametrize("pack", ["memlab", "workbench"])
    @pytest.mark.parametrize("stored", ["private", "project"])
    @pytest.mark.parametrize("utterance", ["private", "project", None])
    @pytest.mark.parametrize("creator", ["agent:a", "agent:b", "user", None])
    def test_a_private_utterance_is_compared_with_its_creators_own(
        self, lab: memlab.Lab, pack: str, stored: str, utterance: str | None, creator: str | None
    ) -> None:
        lab.policies.use(self.NEW.format(pack) + self.ADMIT)
        lab.remember(self.SAID, creator="agent:a", visibility=stored, linking="off")
        arguments = {"creator": creator, "visibility": utterance}
        fields = {name: value for name, value in arguments.items() if value is not None}
        heard = lab.agents.observe(self.SAID, linking="off", **fields)
        sees = stored == "project" or (creator == "agent:a" and utterance == "private")
        assert (heard.memory is None) == sees

    def test_an_utterance_the_pack_makes_private_is_compared_with_its_creators_own(
        self, lab: memlab.Lab
    ) -> None:
        lab.policies.use(self.NEW.format("workbench") + self.ADMIT)
        assert lab.agents.observe(self.SAID, creator="user", linking="off")
        assert lab.memories["visibility"].to_list() == ["private"]
        assert not lab.agents.observe(self.SAID, creator="user", linking="off")
        assert lab.agents.observe(self.SAID, creator="agent:a", linking="off")


class TestConfidence:
    def test_the_pack_says_with_which_a_memory_begins(self, lab: memlab.Lab) -> None:
        lab.policies.use("workbench")
        lab.remember(
            [
                {"text": "goats"},
                {"text": "a bakery", "confidence": 0.9},
                {"text": "tabs", "confidence": None},
            ]
        )
        assert lab.memories["confidence"].to_list() == [0.5, 0.9, 0.5]


class TestLimits:
    AGENT: ClassVar[dict[str, Any]] = {"creator": "agent:coder", "session": "s", "project": "api"}

    @pytest.fixture
    def few(self, lab: memlab.Lab) -> memlab.Lab:
        lab.policies.use("(pack few) (setting session-writes 3) (setting write-bytes 20)")
        return lab

    def test_so_many_a_session(self, few: memlab.Lab) -> None:
        few.remember([{"text": "goats", **self.AGENT}] * 3)
        few.remember("goats", **{**self.AGENT, "session": "t"})
        few.remember("goats", **{**self.AGENT, "creator": "agent:other"})
        few.remember("goats", **{**self.AGENT, "creator": "user"})
        with pytest.raises(
            InputError, match=r'agent:coder has written 3 memories in session "s" and gives 1 more'
        ):
            few.remember("goats", **self.AGENT)
        assert len(few) == 6

    def test_nothing_is_stored_of_a_batch_that_is_too_long(self, few: memlab.Lab) -> None:
        with pytest.raises(InputError, match="gives 4 more; the pack few allows 3"):
            few.remember([{"text": f"goat {row}", **self.AGENT} for row in range(4)])
        assert len(few) == 0

    def test_so_many_bytes(self, few: memlab.Lab) -> None:
        few.remember("goats and goats here", **self.AGENT)
        with pytest.raises(
            InputError, match=r"Row 1: the text of agent:coder has 21 bytes.*at most 20"
        ):
            few.remember([{"text": "goats"}, {"text": "g\u00f6ats and goats here", **self.AGENT}])
        few.remember("the user may say as much as there is to say", creator="user")

    def test_a_log_is_exempt_and_never_drops_turns(self, few: memlab.Lab) -> None:
        rows = [{"text": "ok, as I said before, and again", "kind": "turn", **self.AGENT}] * 10
        few.remember(rows)
        assert len(few) == 10
        few.remember([{"text": "goats", **self.AGENT}] * 3)

    @pytest.mark.long
    def test_a_merged_memory_was_not_written(self, few: memlab.Lab) -> None:
        same = '(fn [pair/similarity] (if (> pair/similarity 0.999) "duplicate" "none"))'
        few.policies.install("link", same, reason="")
        few.policies.install("resolve", '(fn [pair/rank] "merge")', reason="")
        for _ in range(6):
            few.remember("goats", **self.AGENT, linking="now")
        assert len(few) == 1

    def test_workbench_has_the_numbers_of_its_original(self, lab: memlab.Lab) -> None:
        lab.policies.use("workbench")
        lab.remember("g" * 2048, **self.AGENT, linking="off")
        with pytest.raises(InputError, match="2,049 bytes"):
            lab.remember("g" * 2049, **self.AGENT, linking="off")
        lab.remember([{"text": f"goat {row}", **self.AGENT} for row in range(49)], linking="off")
        with pytest.raises(InputError, match="allows 50"):
            lab.remember("one more", **self.AGENT, linking="off")


class TestLater:
    @pytest.mark.long
    def test_a_memory_is_linked_in_the_background(self, lab: memlab.Lab) -> None:
        lab.policies.use(LATER)
        added = lab.remember(["goats by the sea", "goats by the lake"])
        assert added.outcomes["why"].to_list() == ["new, and waits to be linked"] * 2
        assert until(lambda: joined(lab) == [(2, 1, "similar-to")])
        assert until(lambda: lab.graph.waiting() == 0)

    @pytest.mark.long
    def test_settle_links_here_and_now(self, lab: memlab.Lab) -> None:
        lab.policies.install("link", NEAR, reason="")
        link_by_hand(lab)
        lab.remember([f"goats number {row}" for row in range(150)], linking="later")
        assert lab.graph.waiting() == 150
        assert not lab.graph.link_waiting(timeout=0)
        assert lab.graph.link_waiting()
        assert lab.graph.waiting() == 0
        assert len(joined(lab)) > 100
        head = lab.io.store.journal.head
        assert lab.graph.link_waiting()
        assert lab.io.store.journal.head == head

    @pytest.mark.long
    def test_blocks_and_their_timing_change_nothing(
        self, trigrams: Any, clock: memlab.ManualClock
    ) -> None:
        rows = [f"goats number {row}" for row in range(150)]

        def life(sizes: list[int]) -> pl.DataFrame:
            with memlab.open(embedder=trigrams, clock=clock) as lab:
                lab.policies.install("link", NEAR, reason="")
                link_by_hand(lab)
                start = 0
                for size in sizes:
                    lab.remember(rows[start : start + size], linking="later")
                    start += size
                    if size % 2:
                        lab.graph.link_waiting()
                lab.graph.link_waiting()
                return lab.edges.drop("edge").sort("source", "target")

        whole = life([150])
        assert whole.equals(life([1] * 150))
        assert whole.equals(life([70, 33, 47]))

    def test_a_duplicate_was_acknowledged_so_it_is_superseded(self, lab: memlab.Lab) -> None:
        lab.policies.use(LATER)
        lab.policies.install("resolve", '(fn [pair/rank] "merge")', reason="")
        lab.remember("goats", tags=["a"])
        second = lab.remember("goats", tags=["b"])
        assert second.id == 2
        lab.graph.link_waiting()
        assert lab[2].status == "superseded"
        assert lab.memories["superseded_by"].to_list() == [None, 1]
        assert (lab[1].tags, lab.memories["strength"].to_list()) == (("a", "b"), [101, 100])
        assert (1, 2, "supersedes") in joined(lab)
        assert [hit.id for hit in lab.recall("goats")] == [1]

    def test_a_memory_forgotten_meanwhile_is_not_linked(self, lab: memlab.Lab) -> None:
        lab.policies.install("link", NEAR, reason="")
        link_by_hand(lab)
        lab.remember(["goats", "goats", "goats"], linking="later")
        lab.forget(2)
        lab.graph.link_waiting()
        assert joined(lab) == [(3, 1, "similar-to")]

    @pytest.mark.long
    def test_links_pending_at_closing_are_made_after_the_next_opening(self, disk: Any) -> None:
        with disk() as lab:
            lab.policies.use(LATER)
            link_by_hand(lab)
            lab.remember(["goats by the sea", "goats by the lake"])
        with disk(read_only=True) as lab:
            assert lab.graph.waiting() == 2
            with pytest.raises(ReadOnlyLab):
                lab.graph.link_waiting()
        with disk() as lab:
            assert until(lambda: lab.graph.waiting() == 0)
            assert joined(lab) == [(2, 1, "similar-to")]
        with disk() as lab:
            assert lab.graph.waiting() == 0

    def test_a_snapshot_remembers_what_waits(self, disk: Any) -> None:
        with disk() as lab:
            lab.policies.use(LATER)
            link_by_hand(lab)
            lab.remember(["goats by the sea", "goats by the lake"])
            lab.io.snapshot()
        with disk(read_only=True) as lab:
            assert lab.graph.waiting() == 2

    @pytest.mark.long
    def test_many_threads_write_and_everything_is_linked_once(self, lab: memlab.Lab) -> None:
        lab.policies.use(LATER)

        def write(thread: int) -> None:
            for row in range(10):
                lab.remember(f"goats of {thread} number {row}")

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert until(lambda: lab.graph.waiting() == 0)
        once(lab)
        assert len(joined(lab)) >= 39


def once(lab: memlab.Lab) -> None:
    """Check that no edge exists twice, and that the marks of the link events ascend."""
    assert lab.edges.select("source", "target", "relation").is_unique().all()
    marks = [event.body["upto"] for event in lab.io.store.journal.events(kinds=("link",))]
    assert marks == sorted(set(marks))


def _write_and_die(path: Path, count: int) -> None:
    lab = memlab.open(path, embedder=load_embedder(letters))
    lab.remember([f"goats number {row}" for row in range(count)], linking="later")
    os.kill(os.getpid(), signal.SIGKILL)


def _write(path: Path, name: str, count: int) -> None:
    with memlab.open(path, embedder=load_embedder(letters)) as lab:
        for row in range(count):
            lab.remember(f"goats of {name} number {row}", linking="later")
        lab.graph.link_waiting()


@pytest.mark.long
class TestProcesses:
    def test_a_killed_process_loses_nothing_that_waits(self, tmp_path: Path) -> None:
        path, context = tmp_path / "agent.memlab", multiprocessing.get_context("spawn")
        with memlab.open(path, embedder=load_embedder(letters)) as lab:
            lab.policies.install("link", NEAR, reason="")
        child = context.Process(target=_write_and_die, args=(path, 300))
        child.start()
        child.join()
        assert child.exitcode == -signal.SIGKILL
        with memlab.open(path, embedder=load_embedder(letters)) as lab:
            assert len(lab) == 300
            assert lab.graph.link_waiting()
            once(lab)
            assert set(lab.edges["source"]) == set(range(2, 301))

    def test_two_processes_never_link_the_same_memory_twice(self, tmp_path: Path) -> None:
        path, context = tmp_path / "agent.memlab", multiprocessing.get_context("spawn")
        with memlab.open(path, embedder=load_embedder(letters)) as lab:
            lab.policies.install("link", NEAR, reason="")
        children = [context.Process(target=_write, args=(path, name, 40)) for name in ("a", "b")]
        for child in children:
            child.start()
        for child in children:
            child.join()
        assert [child.exitcode for child in children] == [0, 0]
        with memlab.open(path, embedder=load_embedder(letters)) as lab:
            assert (len(lab), lab.graph.waiting()) == (80, 0)
            once(lab)
            assert set(lab.edges["source"]) == set(range(2, 81))


class TestRemembered:
    def test_off_is_as_it_was(self, lab: memlab.Lab) -> None:
        added = lab.remember(["goats", "goats"])
        assert added.outcomes.rows() == [
            (0, 1, "added", None, None, "new"),
            (1, 2, "added", None, None, "new"),
        ]
        assert (added.standing, list(added.ids), repr(added)) == (
            (1, 2),
            [1, 2],
            "<Remembered 2 memories (ids 1-2)>",
        )

    def test_nothing_gives_an_empty_frame_of_the_same_columns(self, lab: memlab.Lab) -> None:
        assert (
            lab.remember([], linking="now").outcomes.schema == lab.remember(["a"]).outcomes.schema
        )

    def test_an_unknown_way_of_linking(self, lab: memlab.Lab) -> None:
        with pytest.raises(UnknownName, match="Did you mean later"):
            lab.remember("goats", linking="latr")
        assert len(lab) == 0

    def test_a_refused_write_leaves_nothing(self, lab: memlab.Lab) -> None:
        lab.policies.use("workbench")
        lab.remember("goats")
        head = lab.io.store.journal.head
        with pytest.raises(PrivacyError):
            lab.remember([{"text": "goats"}, {"text": "b", "tags": ["AKIAIOSFODNN7EXAMPLE"]}])
        assert (len(lab), lab.io.store.journal.head) == (1, head)

    @pytest.mark.long
    @pytest.mark.parametrize(
        "text", ["ab", "\U0001f410" * 500, "\u0645\u0631\u062d\u0628\u0627", "goats " * 20_000]
    )
    @pytest.mark.parametrize("at", ["1850-01-01", "2300-06-01"])
    def test_any_text_at_any_time(
        self, lab: memlab.Lab, clock: memlab.ManualClock, text: str, at: str
    ) -> None:
        lab.policies.use("cascade")
        lab.remember(text, at=at, tags=[f"t{number}" for number in range(50)])
        clock.advance(days=-400)
        assert lab.remember(text, at=at, tags=["more"]).id == 1
        assert len(lab) == 1
        assert len(lab[1].tags) == 51


@pytest.mark.long
def test_ten_thousand_tags_are_united(lab: memlab.Lab) -> None:
    lab.policies.use("cascade")
    lab.remember("goats", tags=[f"a{number}" for number in range(5_000)])
    merged = lab.remember("goats", tags=[f"b{number}" for number in range(5_000)])
    assert (merged.id, len(merged.tags)) == (1, 10_000)

"""``lab.policies``: every change is an event, attributable, reversible, and seen by everyone who has the lab open."""

import multiprocessing
import threading
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import memlab
from memlab.errors import InputError, LabError, PolicyError, PrivacyError, ReadOnlyLab, UnknownName
from memlab.kernel.embedding import load_embedder
from memlab.kernel.policies import SLOTS, VersionLog, load_pack
from tests.displays import completions_of, html_of

LONG = "(fn [length] length)"
SHORT = "(fn [length] (- length))"
TUNED = "(fn [length] (* length (param :weight 0.5)))"
SLOT = "recall-score"
SECRET = "AKIAIOSFODNN7EXAMPLE"


def events(lab, *kinds):
    return list(lab.io.store.journal.events(kinds=kinds or None))


def last(lab):
    return events(lab)[-1]


class TestPinning:
    def test_a_pin_holds_through_a_use(self, lab):
        pinned = lab.policies.install(SLOT, LONG)
        assert lab.policies.pin(SLOT, reason="it is good") == pinned
        live = lab.policies.use("associative")
        assert live.policies[SLOT].hash == pinned.hash
        assert lab.policies["spread"].hash == load_pack("associative").policies["spread"].hash

    def test_an_earlier_version_can_be_pinned(self, lab):
        first = lab.policies.install(SLOT, LONG)
        lab.policies.install(SLOT, SHORT)
        pinned = lab.policies.pin(SLOT, first.number)
        assert (pinned.number, pinned.hash, pinned.action) == (4, first.hash, "pin")
        lab.policies.pin(SLOT, 3)
        assert lab.policies.pins[SLOT].source == SHORT

    def test_pinned_slots_are_neither_installed_nor_rolled_back(self, lab):
        lab.policies.install(SLOT, LONG)
        lab.policies.pin(SLOT)
        for change in (
            lambda: lab.policies.install(SLOT, SHORT),
            lambda: lab.policies.rollback(SLOT),
        ):
            with pytest.raises(
                InputError, match=r'pinned to version 2 .*lab\.policies\.unpin\("recall-score"\)'
            ):
                change()
        assert lab.policies[SLOT].source == LONG

    def test_unpinned_it_is_free_again(self, lab):
        lab.policies.pin(SLOT)
        lab.policies.unpin(SLOT, reason="enough")
        assert lab.policies.install(SLOT, LONG).number == 2
        with pytest.raises(InputError, match=r"recall-score is not pinned. Pinned: none"):
            lab.policies.unpin(SLOT)

    def test_a_slot_that_does_not_exist(self, lab):
        for verb in (
            lab.policies.pin,
            lab.policies.unpin,
            lab.policies.rollback,
            lab.policies.history,
        ):
            with pytest.raises(UnknownName, match="Did you mean recall-score"):
                verb("recal-score")

    def test_a_changed_pack_is_used_around_a_pin(self, lab):
        pinned = lab.policies.pin(SLOT)
        pack = load_pack("associative").with_policy(SLOT, load_pack("cascade").policies[SLOT])
        assert lab.policies.use(pack).policies[SLOT].hash == pinned.hash

    def test_installed_policies_survive_reopening(self, disk):
        with disk() as lab:
            lab.policies.install(SLOT, LONG)
            lab.policies.pin(SLOT)
            lab.policies.use("associative")
            before = lab.policies.pack.hash, lab.policies.history()
        with disk(read_only=True) as lab:
            assert (lab.policies.pack.hash, SLOT in lab.policies.pins) == (before[0], True)
            assert lab.policies.history().equals(before[1])
            with pytest.raises(ReadOnlyLab):
                lab.policies.unpin(SLOT)

    def test_the_history_of_all_slots_shows_it(self, lab):
        lab.policies.pin(SLOT, reason="it is good")
        history = lab.policies.history()
        [row] = history.filter(pl.col("action") == "pin").to_dicts()
        assert (row["slot"], row["version"], row["pinned"], row["reason"]) == (
            SLOT,
            1,
            True,
            "it is good",
        )
        assert history["event"].is_sorted()


def pin_it(path):
    with memlab.open(path, embedder=_embed) as lab:
        lab.policies.install(SLOT, LONG)
        lab.policies.pin(SLOT)


def _embed(texts):
    return [[float(len(text)), 1.0] for text in texts]


@pytest.mark.long
def test_another_process_pins(tmp_path):
    with memlab.open(tmp_path / "lab", embedder=_embed) as lab:
        policies = lab.policies
        other = multiprocessing.get_context("spawn").Process(
            target=pin_it, args=(tmp_path / "lab",)
        )
        other.start()
        other.join()
        assert other.exitcode == 0
        assert policies.pins[SLOT].source == LONG
        with pytest.raises(InputError, match="pinned"):
            policies.install(SLOT, SHORT)


class TestRollingBackPacks:
    def test_the_pack_before(self, lab):
        lab.policies.install(SLOT, LONG)
        before = lab.policies.pack
        lab.policies.use("associative")
        lab.policies.install(SLOT, SHORT)
        back = lab.policies.rollback(reason="worse")
        assert (back.hash, back.name, back.settings) == (before.hash, "memlab", before.settings)
        assert lab.policies.pack.hash == before.hash
        assert lab.policies.rollback().name == "associative"

    def test_any_pack_that_was_live(self, lab):
        first = lab.policies.pack.hash
        event = last(lab).seq
        lab.policies.use("associative")
        lab.policies.use("cascade")
        assert lab.policies.rollback(to=first[:12]).hash == first
        lab.policies.use("cascade")
        assert lab.policies.rollback(to=event).hash == first
        with pytest.raises(UnknownName):
            lab.policies.rollback(to="nothing")

    def test_pins_survive_reopening(self, disk):
        with disk() as lab:
            lab.policies.install(SLOT, LONG)
            before = lab.policies.pack.hash
            lab.policies.use("associative")
            lab.policies.rollback()
        with disk() as lab:
            assert lab.policies.pack.hash == before
            assert lab.policies.history(SLOT)["action"].to_list() == [
                "use",
                "install",
                "use",
                "rollback",
            ]


class TestEvents:
    """Every event says by hashes what decided, or what decides from now on."""

    def test_changes_carry_the_hash_of_the_live_pack(self, lab):
        def recorded():
            return last(lab).kind, last(lab).body["live"] == lab.policies.pack.hash

        lab.policies.use("associative")
        assert recorded() == ("use", True)
        assert last(lab).body["policies"] == lab.policies.pack.policy_hashes
        installed = lab.policies.install(SLOT, LONG)
        assert recorded() == ("install", True)
        assert last(lab).body["hash"] == installed.hash
        lab.policies.rollback(SLOT)
        assert recorded() == ("rollback", True)
        lab.policies.pin(SLOT)
        assert recorded() == ("pin", True)
        lab.policies.unpin(SLOT)
        assert recorded() == ("unpin", True)
        lab.policies.rollback()
        assert recorded() == ("rollback-pack", True)

    def test_recalls_and_feedback_lead_to_every_policy_that_decided(self, lab):
        lab.remember("the goat is in the garden")
        hits = lab.recall("goat")
        deciding = {slot: policy.hash for slot, policy in lab.policies.pack.policies.items()}
        lab.policies.install(SLOT, LONG)
        lab.feedback(hits[0], "success")
        [recall], [feedback] = events(lab, "recall"), events(lab, "feedback")
        assert recall.body["pack"] == feedback.body["pack"] == hits.pack.hash
        assert recall.body["probes"] == []
        assert feedback.body["probe"] is False
        versions = lab.policies.deciders(feedback.body["pack"])
        assert {slot: version.hash for slot, version in versions.items()} == deciding

    def test_feedback_without_a_recall_claims_none(self, lab):
        memory = lab.remember("the goat is in the garden")
        lab.feedback(memory, "success")
        assert "pack" not in last(lab).body

    def test_a_lab_of_the_first_version_opens(self, lab):
        """Events without the hashes of today, and without probes."""
        lab.remember("the goat is in the garden")
        lab.recall("goat")
        old = VersionLog()
        for event in events(lab, "use", "install", "rollback"):
            body = {key: event.body[key] for key in ("pack", "hash", "sources", "reason")}
            old.fold(
                type(event)(event.seq, event.at, event.kind, body), lab.io.store.journal.source
            )
        assert old.pack.hash == lab.policies.pack.hash
        with lab.io.store.writing() as tx:
            tx.event("recall", {"ids": [1]}, at=0)
        assert lab.policies.attribution().frame["recalls"].to_list() == [2]


def test_a_policy_that_this_version_cannot_read_is_not_passed_over(disk):
    """As when another process, of a later version, installs what this one does not know."""
    with disk() as lab, disk() as later:
        with later.io.store.journal.write() as tx:
            tx.source("later", "(fn [telepathy] telepathy)")
            tx.event(
                "install", {"slot": SLOT, "source": "later", "helpers": [], "reason": ""}, at=0
            )
        for _ in range(2):
            with pytest.raises(PolicyError, match="telepathy"):
                lab.recall("text")


class TestUsing:
    def test_parameters_of_a_changed_pack_are_kept(self, disk):
        tuned = load_pack(
            "(pack mine) (defpolicy recall-score [length] (* length (param :weight 0.5)))"
        )
        tuned = tuned.with_policy(SLOT, tuned.policies[SLOT].with_params({"weight": 0.7}))
        with disk() as lab:
            assert lab.policies.use(tuned).hash == tuned.hash
        with disk() as lab:
            assert lab.policies.pack.hash == tuned.hash
            assert lab.policies[SLOT].params["weight"].value == 0.7

    def test_a_changed_pack_is_one_step(self, lab):
        head = last(lab).seq
        changed = load_pack("associative").with_policy(SLOT, load_pack("cascade").policies[SLOT])
        lab.policies.use(changed)
        assert [event.kind for event in events(lab) if event.seq > head] == ["use", "install"]
        assert lab.policies.pack.hash == changed.hash

    def test_settings_that_no_text_holds_are_refused(self, lab):
        pack = load_pack("associative")
        before = lab.policies.pack.hash
        changed = replace(pack, settings={**pack.settings, "seeds": 3}, hash="another")
        with pytest.raises(InputError, match=r"Write them in its text"):
            lab.policies.use(changed)
        assert lab.policies.pack.hash == before

    def test_install_with_parameters(self, lab):
        lab.policies.install(SLOT, TUNED, params={"weight": 0.7})
        assert lab.policies[SLOT].params["weight"].value == 0.7
        lab.policies.install(SLOT, LONG)
        lab.policies.rollback(SLOT)
        assert lab.policies[SLOT].params["weight"].value == 0.7

    def test_no_secret_reaches_the_journal(self, lab):
        head = last(lab).seq
        policies = lab.policies
        for change in (
            lambda: policies.install(SLOT, LONG, reason=SECRET),
            lambda: policies.install(SLOT, LONG, helpers=(f'(defn key [] "{SECRET}")',)),
            lambda: policies.install(SLOT, f"(fn [length] length) ; {SECRET}"),
            lambda: policies.use("associative", reason=SECRET),
            lambda: policies.pin(SLOT, reason=SECRET),
        ):
            with pytest.raises(PrivacyError):
                change()
        assert last(lab).seq == head


class TestLooking:
    def test_each_slot_with_its_version_pack_and_pin(self, lab):
        lab.policies.use("associative")
        version = lab.policies.pin(SLOT)
        lab.policies.use("cascade")
        [line] = [line for line in repr(lab.policies).splitlines() if line.split()[0] == SLOT]
        assert line.split()[1:5] == [
            str(version.number),
            f"[{version.hash[:12]}]",
            "associative",
            "pinned",
        ]
        page = html_of(lab.policies)
        assert page.count("<tr>") == len(SLOTS) + 1
        assert page.count(">pinned<") == 1

    def test_the_accessor_lists_the_slots(self, lab):
        assert list(lab.policies) == list(SLOTS)
        assert SLOT in lab.policies
        assert len(lab.policies) == len(SLOTS)
        assert SLOT in completions_of(lab.policies)

    def test_two_versions_of_one_policy(self, lab):
        lab.policies.install(SLOT, LONG)
        lab.policies.install(SLOT, SHORT)
        assert f"-{LONG}" in lab.policies.diff(SLOT).lines
        assert f"+{SHORT}" in lab.policies.diff(SLOT, 2, 3).lines
        with pytest.raises(UnknownName, match="version of recall-score"):
            lab.policies.diff(SLOT, 9)

    def test_a_closed_lab_says_so(self, disk):
        lab = disk()
        policies = lab.policies
        lab.close()
        with pytest.raises(LabError, match="closed"):
            policies.history()


class TestAttribution:
    @pytest.mark.long
    def test_feedback_counts_for_the_version_that_showed_it(self, lab):
        lab.remember(["short", "a rather longer text than the other"])
        lab.policies.install(SLOT, LONG)
        for _ in range(3):
            lab.feedback(lab.recall("text", limit=1)[0], "success")
        lab.policies.install(SLOT, SHORT)
        hit = lab.recall("text", limit=1)[0]
        lab.policies.rollback(SLOT)
        lab.feedback(hit, "fail")
        frame = lab.policies.attribution().frame
        assert frame["recalls"].to_list() == [0, 3, 1, 0]
        assert frame["success"].to_list() == [0, 3, 0, 0]
        assert frame["fail"].to_list() == [0, 0, 1, 0]
        whole = lab.policies.attribution("spread").frame
        assert whole.select("recalls", "success", "fail").rows() == [(4, 3, 1)]

    @pytest.mark.long
    def test_probes_are_counted_apart_also_where_events_did_not_tell(self, lab):
        lab.remember([f"goat number {number}" for number in range(40)])
        lab.policies.use(
            "(pack probing :inherits memlab) (setting probe-rate 1) (setting probe-depth 20)"
        )
        hits = lab.recall("goat", limit=5, explore=True)
        (probe,) = (hit for hit in hits if hit.probe)
        lab.feedback(probe, "success")
        lab.feedback(next(hit for hit in hits if not hit.probe), "fail")
        row = lab.policies.attribution().frame.row(-1, named=True)
        assert (row["shown"], row["judged"], row["fail"]) == (5, 1, 1)
        assert (row["probes"], row["probe_judged"], row["probe_success"]) == (1, 1, 1)
        before = lab.policies.attribution().frame
        with lab.io.store.writing() as tx:
            recall = events(lab, "recall")[0]
            old = {"ids": recall.body["ids"], "pack": recall.body["pack"]}
            decision = tx.event("recall", old, at=recall.at)
            tx.slate(decision, next(iter(lab.io.store.journal.slates()))[1])
        again = lab.policies.attribution().frame
        assert again["probes"].sum() == 2 * before["probes"].sum()

    def test_a_slot_that_does_not_exist(self, lab):
        with pytest.raises(UnknownName, match="Did you mean recall-score"):
            lab.policies.attribution("recal-score")


@pytest.mark.long
def test_swaps_from_one_thread_while_another_recalls(disk):
    """Each recall is decided by one pack, whole, and its event names it."""
    with disk() as lab:
        lab.remember(["short", "a rather longer text than the other"])
        packs = [load_pack(name) for name in ("associative", "cascade")]
        done = threading.Event()

        def swap():
            for turn in range(20):
                lab.policies.use(packs[turn % 2])
            done.set()

        swapping = threading.Thread(target=swap)
        swapping.start()
        slates = []
        while not done.is_set() or len(slates) < 5:
            slates.append(lab.recall("text").slate)
        swapping.join()
        known = {pack.hash: pack for pack in (*packs, load_pack("memlab"))}
        for slate in slates:
            pack = known[slate.pack_hash]
            assert slate.policies == pack.policy_hashes
        assert lab.policies.attribution().frame["recalls"].sum() == len(slates)


SOURCES = st.sampled_from([LONG, SHORT, "(fn [similarity] similarity)"])
PACKS = st.sampled_from(["memlab", "associative", "cascade"])
CHOSEN = st.sampled_from([SLOT, "seed-score"])
EMBEDDER = load_embedder(_embed)


class Changes(RuleBasedStateMachine):
    """Whatever is done in whatever order: a model of plain dictionaries agrees, and so does a second fold."""

    def __init__(self):
        super().__init__()
        self.lab = memlab.open(embedder=EMBEDDER)
        self.live = self.hashes(load_pack("memlab"))
        self.pinned = {}

    def hashes(self, pack):
        return {slot: policy.hash for slot, policy in pack.policies.items()}

    @rule(pack=PACKS)
    def use(self, pack):
        self.lab.policies.use(pack)
        self.live = {**self.hashes(load_pack(pack)), **self.pinned}

    @rule(slot=CHOSEN, source=SOURCES)
    def install(self, slot, source):
        if slot in self.pinned:
            with pytest.raises(InputError, match="unpin"):
                self.lab.policies.install(slot, source)
        else:
            self.live[slot] = self.lab.policies.install(slot, source).hash

    @rule(slot=CHOSEN, number=st.integers(1, 4))
    def pin(self, slot, number):
        known = self.lab.policies.history(slot)["version"].max()
        self.live[slot] = self.pinned[slot] = self.lab.policies.pin(slot, min(number, known)).hash

    @rule(slot=CHOSEN)
    def unpin(self, slot):
        if self.pinned.pop(slot, None) is None:
            with pytest.raises(InputError, match="not pinned"):
                self.lab.policies.unpin(slot)
        else:
            self.lab.policies.unpin(slot)

    @rule(slot=CHOSEN)
    @precondition(lambda self: not self.pinned)
    def rollback(self, slot):
        history = self.lab.policies.history(slot).filter(pl.col("action") != "unpin")
        others = [hash for hash in history["hash"] if hash != self.live[slot]]
        if not others:
            with pytest.raises(InputError, match="nothing to roll back"):
                self.lab.policies.rollback(slot)
        else:
            self.live[slot] = self.lab.policies.rollback(slot).hash
            assert self.live[slot] in others

    @rule(data=st.data())
    def rollback_pack(self, data):
        seen = self.lab.io.store.versions._lives
        place = data.draw(st.integers(0, len(seen) - 1))
        self.lab.policies.rollback(to=seen[place].seq)
        self.live = {**self.hashes(seen[place].pack), **self.pinned}

    @invariant()
    def the_model_agrees(self):
        assert self.hashes(self.lab.policies.pack) == self.live
        assert {
            slot: version.hash for slot, version in self.lab.policies.pins.items()
        } == self.pinned
        for slot in (SLOT, "seed-score"):
            assert self.lab.policies.history(slot).filter("live")["hash"].unique().to_list() == [
                self.live[slot]
            ]

    def teardown(self):
        again = VersionLog()
        for event in events(self.lab):
            again.fold(event, self.lab.io.store.journal.source)
        assert again.frame().equals(self.lab.policies.history())
        assert again.pack.hash == self.lab.policies.pack.hash
        for live in again._lives:
            versions = again.deciders(live.hash)
            assert {slot: version.hash for slot, version in versions.items()} == self.hashes(
                live.pack
            )
        self.lab.close()


TestChanges = pytest.mark.long(Changes.TestCase)
TestChanges.settings = settings(max_examples=15, stateful_step_count=12, deadline=None)

"""Which policy was live when, and which is pinned: a fold of events, whatever order people change their minds in."""

from dataclasses import dataclass

import pytest

from memlab.errors import InputError, UnknownName
from memlab.kernel.policies import SLOTS, VersionLog, load_pack
from memlab.subjects.lens import PolicyDiff
from tests.displays import html_of

NEAR = "(fn [similarity] similarity)"
FRESH = "(fn [similarity recency] (+ similarity recency))"
TUNED = "(fn [similarity] (* similarity (param :weight 0.5)))"
TWICE = "(defn twice [x] (* 2 x))"
THRICE = "(defn twice [x] (* 3 x))"
CALLS = "(fn [similarity] (twice similarity))"


@dataclass
class Event:
    seq: int
    kind: str
    body: dict
    at: int = 0


class Log:
    """A version log with its own small journal. Its events are as the first version wrote them: without hashes."""

    def __init__(self):
        self.log, self.sources, self.seq = VersionLog(), {}, 0

    def happen(self, kind, **body):
        self.seq += 1
        self.log.fold(Event(self.seq, kind, body), self.sources.__getitem__)

    def use(self, pack):
        sources = load_pack(pack).sources
        keys = [f"{pack}{index}" for index in range(len(sources))]
        self.sources |= dict(zip(keys, sources, strict=True))
        self.happen("use", sources=keys, reason="")

    def install(self, source, slot="recall-score", kind="install", **more):
        self.sources[source] = source
        self.happen(kind, slot=slot, source=source, reason="a try", **more)

    def pin(self, source, slot="recall-score"):
        self.install(source, slot, kind="pin")

    def live(self, slot="recall-score"):
        return self.log.pack.policies[slot]


@pytest.fixture
def log():
    fresh = Log()
    fresh.use("memlab")
    return fresh


def test_a_pack_begins_the_history_of_every_slot(log):
    assert [version.action for version in log.log.versions("recall-score")] == ["use"]
    assert log.log.pack.name == "memlab"
    assert set(log.log.frame()["slot"]) == set(SLOTS)


def test_installing_changes_one_slot_and_the_hash(log):
    before = log.log.pack
    log.install(NEAR)
    assert log.log.pack.hash != before.hash
    assert log.log.pack.policies["spread"].hash == before.policies["spread"].hash
    assert log.log.frame("recall-score")["live"].to_list() == [False, True]


def test_an_event_of_another_kind_changes_nothing(log):
    log.happen("recall", ids=[1])
    assert log.log.frame().height == len(SLOTS)


def test_nothing_is_live_before_the_first_pack():
    log = VersionLog()
    assert log.empty
    with pytest.raises(InputError, match="No pack is active"):
        _ = log.pack


def test_previous_skips_what_is_the_same_policy(log):
    log.install(NEAR)
    log.install(" (fn [similarity]   similarity)")
    assert log.log.previous("recall-score").number == 1


def test_a_slot_with_one_policy_has_nothing_to_go_back_to(log):
    with pytest.raises(InputError, match="nothing to roll back"):
        log.log.previous("recall-score")


def test_another_pack_ends_what_was_installed(log):
    log.install(NEAR)
    log.use("associative")
    log.use("memlab")
    assert log.log.pack.hash == load_pack("memlab").hash
    packs = [version.pack for version in log.log.versions("recall-score")]
    assert packs == ["memlab", "memlab", "associative", "memlab"]


def test_a_version_is_found_by_number_or_by_hash(log):
    log.install(FRESH)
    second = log.log.version("recall-score", 2)
    assert log.log.version("recall-score", second.hash[:10]) == second
    for nothing in (9, "", "zz"):
        with pytest.raises(UnknownName):
            log.log.version("recall-score", nothing)


def test_a_version_keeps_the_hash_that_was_logged(log):
    log.install(NEAR, hash="as it was under an older dialect")
    assert log.log.versions("recall-score")[-1].hash == "as it was under an older dialect"
    assert log.log.versions("recall-score")[-1].policy.hash == log.live().hash


def test_parameters_are_part_of_a_version(log):
    log.install(TUNED)
    log.install(TUNED, params={"weight": 0.7})
    version = log.log.versions("recall-score")[-1]
    assert version.params == (("weight", 0.7),)
    assert version.policy.row({"similarity": 1}) == log.live().row({"similarity": 1}) == 0.7


class TestPins:
    def test_a_pin_outlives_packs(self, log):
        log.pin(NEAR)
        near = log.live().hash
        log.use("associative")
        assert log.live().hash == near
        assert log.live("spread").hash == load_pack("associative").policies["spread"].hash
        assert log.log.pins["recall-score"].hash == near

    def test_once_unpinned_a_policy_stays_until_the_next_pack(self, log):
        log.pin(NEAR)
        near = log.live().hash
        log.happen("unpin", slot="recall-score")
        assert log.live().hash == near
        assert not log.log.pins
        log.use("associative")
        assert log.live().hash == load_pack("associative").policies["recall-score"].hash

    def test_a_pin_of_what_is_live_is_no_new_version(self, log):
        log.install(NEAR)
        log.pin(NEAR)
        log.happen("unpin", slot="recall-score")
        assert len(log.log.versions("recall-score")) == 2
        history = log.log.frame("recall-score")
        assert history["action"].to_list() == ["use", "install", "pin", "unpin"]
        assert history["version"].to_list() == [1, 2, 2, 2]
        assert history["pinned"].to_list() == [False, False, True, False]
        assert history["live"].to_list() == [False, False, False, True]


class TestPacksBefore:
    def test_the_pack_before_comes_back_with_what_was_installed_in_it(self, log):
        log.install(NEAR)
        with_near = log.log.pack.hash
        log.use("associative")
        log.install(FRESH)
        log.happen("rollback-pack", to=log.log.previous_pack())
        assert log.log.pack.hash == with_near
        assert log.log.pack.name == "memlab"
        assert log.log.frame("recall-score")["action"].to_list() == [
            "use",
            "install",
            "use",
            "install",
            "rollback",
        ]

    def test_a_second_rollback_undoes_the_first(self, log):
        log.use("associative")
        log.install(FRESH)
        after = log.log.pack.hash
        for _ in range(2):
            log.happen("rollback-pack", to=log.log.previous_pack())
        assert log.log.pack.hash == after

    def test_pins_hold_through_it(self, log):
        log.use("associative")
        log.pin(NEAR)
        near = log.live().hash
        log.happen("rollback-pack", to=log.log.previous_pack())
        assert log.live().hash == near
        assert log.live("spread").hash == load_pack("memlab").policies["spread"].hash

    def test_versions_that_decide_equally_under_the_pins_are_skipped(self, log):
        """Two packs differ in a slot that is pinned since: to go back to the other would change nothing."""
        log.use("associative")
        log.use("memlab")
        log.use(f"(pack near :inherits memlab) (defpolicy seed-score {NEAR})")
        log.pin(FRESH, "seed-score")
        log.happen("rollback-pack", to=log.log.previous_pack())
        assert log.log.pack.name == "associative"
        assert log.live("seed-score").hash == log.log.pins["seed-score"].hash

    @pytest.mark.parametrize("pinned", [False, True])
    def test_nothing_is_rolled_back_to_where_every_pack_decides_the_same(self, log, pinned):
        log.use(f"(pack near :inherits memlab) (defpolicy seed-score {NEAR})")
        first = log.log.live_at(1)
        if not pinned:
            log.happen("rollback-pack", to=log.log.previous_pack())
            assert log.log.pack.hash == first.hash
            return
        log.pin(FRESH, "seed-score")
        with pytest.raises(InputError, match="nothing to roll back to"):
            log.log.previous_pack()

    def test_the_first_pack_has_none_before_it(self, log):
        with pytest.raises(InputError, match="nothing to roll back"):
            log.log.previous_pack()
        log.use("memlab")
        with pytest.raises(InputError, match="nothing to roll back"):
            log.log.previous_pack()
        log.install(NEAR)
        with pytest.raises(InputError, match="nothing to roll back"):
            log.log.previous_pack()  # an install is undone in its slot

    def test_a_fresh_start_of_the_same_pack_can_be_undone(self, log):
        log.install(NEAR)
        tried = log.log.pack.hash
        log.use("memlab")
        log.happen("rollback-pack", to=log.log.previous_pack())
        assert log.log.pack.hash == tried

    def test_a_live_pack_is_found_by_its_event_or_its_hash(self, log):
        first = log.log.pack.hash
        log.install(NEAR)
        assert log.log.event_of(first[:12]) == log.log.event_of(1) == 1
        for nothing in (3, "zz", ""):
            with pytest.raises(UnknownName):
                log.log.event_of(nothing)


def test_each_pack_hash_tells_the_policies_that_decided(log):
    first = log.log.pack
    log.install(NEAR)
    second = log.log.pack
    for pack in (first, second):
        hashes = {slot: version.hash for slot, version in log.log.deciders(pack.hash).items()}
        assert hashes == {slot: policy.hash for slot, policy in pack.policies.items()}


class TestDiff:
    def differ(self, log):
        return PolicyDiff(*log.log.versions("recall-score")[-2:])

    def test_lines_of_the_texts(self, log):
        log.install(NEAR)
        log.install(FRESH)
        diff = self.differ(log)
        assert f"-{NEAR}" in diff.lines
        assert f"+{FRESH}" in diff.lines
        assert diff.verdict == ""
        assert "{+recency+}" in repr(diff)

    def test_forms(self, log):
        log.install(NEAR)
        log.install(FRESH)
        assert self.differ(log).forms.changes
        assert "recency" in html_of(self.differ(log))

    def test_the_same_policy_in_another_layout(self, log):
        log.install(NEAR)
        log.install("(fn [similarity]\n  similarity)")
        diff = self.differ(log)
        assert not diff
        assert "are the same policy: layout" in repr(diff)
        assert "the same policy" in html_of(diff)

    def test_parameters_alone(self, log):
        log.install(TUNED)
        log.install(TUNED, params={"weight": 0.7})
        diff = self.differ(log)
        assert diff.lines == ()
        assert (
            diff.verdict
            == "The source is the same. They differ in recall-score: weight 0.5 -> 0.7."
        )

    def test_helpers_alone(self, log):
        log.install(CALLS, helpers=[TWICE])
        log.install(CALLS, helpers=[THRICE, "(defn unused [x] x)"])
        diff = self.differ(log)
        assert "unused" not in repr(diff)
        assert diff.verdict == "The source is the same. They differ in recall-score, helper twice."

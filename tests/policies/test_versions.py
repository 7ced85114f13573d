"""Which policy was live when: a fold of events, whatever order people change their minds in."""

from dataclasses import dataclass

import pytest

from memlab.errors import InputError, UnknownName
from memlab.policies import VersionLog, load_pack

NEAR = "(fn [similarity] similarity)"
FRESH = "(fn [similarity recency] (+ similarity recency))"


@dataclass
class Event:
    seq: int
    kind: str
    body: dict
    at: int = 0


class Log:
    """A version log with its own small journal."""

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

    def install(self, source, slot="recall-score"):
        self.sources[source] = source
        self.happen("install", slot=slot, source=source, reason="a try")


@pytest.fixture
def log():
    fresh = Log()
    fresh.use("memlab")
    return fresh


def test_a_pack_begins_the_history_of_every_slot(log):
    assert [version.action for version in log.log.versions("recall-score")] == ["use"]
    assert log.log.pack.name == "memlab"


def test_installing_changes_one_slot_and_the_hash(log):
    before = log.log.pack
    log.install(NEAR)
    assert log.log.pack.hash != before.hash
    assert log.log.pack.policies["spread"].hash == before.policies["spread"].hash
    assert log.log.frame("recall-score")["live"].to_list() == [False, True]


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
    with pytest.raises(UnknownName):
        log.log.version("recall-score", 9)

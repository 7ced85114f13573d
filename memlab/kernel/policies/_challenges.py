"""Packs that are compared with the live one, by showing now and then what only they would show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.policies._packs import Pack

__all__ = ["CHALLENGE_DESIGNS", "Challenge", "ChallengeDesign", "same_candidates"]

ChallengeDesign = Literal["extra", "lot", "ab"]
CHALLENGE_DESIGNS: tuple[ChallengeDesign, ...] = ("extra", "lot", "ab")

_AFTER_THE_POOL = frozenset(
    {
        *("limit", "probe-rate", "probe-depth", "probe-floor", "probes", "mmr-weight", "collapse-above"),
        *("known-floor", "unknown-limit"),
    }
)
"""Settings that decide nothing until the candidates are scored."""

_OF_THE_POOL = ("promote", "forget", "eligible", "seed-score", "spread", "cut", "half-life", "retention")
"""Slots that decide which candidates are scored, and what their features are."""


@dataclass(frozen=True)
class Challenge(Displayed):
    """One pack that is compared with the live one since the event ``seq``.

    ``design`` "extra": beside the head, ``extra`` items are shown that only challengers would show. "lot": as many
    items as ever are shown, and a lot decides among those on which the packs differ. "ab": the whole head of one of the
    packs is shown, each with the same probability. ``rate`` is the share of recalls.
    """

    pack: Pack
    design: ChallengeDesign
    extra: int
    rate: float
    seq: int
    at: int
    reason: str

    @property
    def name(self) -> str:
        """The name of its pack."""
        return self.pack.name

    def __repr__(self) -> str:
        items = {"lot": "by lot", "ab": "A/B"}.get(self.design, f"{self.extra} extra item{'s' * (self.extra > 1)}")
        why = f": {self.reason}" if self.reason else ""
        return printable(f"<Challenge of {self.name} [{self.pack.hash[:12]}], {items} in {self.rate:.0%}{why}>")


def same_candidates(live: Pack, other: Pack) -> bool:
    """Whether two packs score the same candidates with the same features, and so differ in the order alone."""
    if any(live.policies[slot].hash != other.policies[slot].hash for slot in _OF_THE_POOL):
        return False
    names = (live.settings.keys() | other.settings.keys()) - _AFTER_THE_POOL
    return all(live.settings.get(name) == other.settings.get(name) for name in names)

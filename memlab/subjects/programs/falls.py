"""The search for an earlier pack that earned more than the active one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from memlab.errors import MemlabError
from memlab.kernel.policies import Pack, VersionLog
from memlab.kernel.slates import Slates

if TYPE_CHECKING:
    from memlab.science.evaluation import Period, Periods


@dataclass(frozen=True)
class Fall:
    """The finding that the active version earns less than an earlier version did.

    ``slot`` and ``to`` identify the version to restore. If several slots or a setting have changed since then, ``slot``
    is None and ``to`` is the number of the event whose pack is restored.
    """

    slot: str | None
    to: int | str
    name: str
    after: str
    period: Period
    live: Period
    note: str

    @property
    def command(self) -> str:
        """The call that restores the earlier version."""
        what = (
            f'to="{self.after[:12]}"'
            if self.slot is None
            else f'"{self.slot}", to="{self.after[:12]}"'
        )
        return f"lab.policies.rollback({what})"

    @property
    def gap(self) -> tuple[float, float, float]:
        """The difference in mean reward in favour of the earlier version, with its bounds."""
        assert self.period.difference is not None
        return self.period.difference

    @property
    def reason(self) -> str:
        """The comparison in sentences, with a note on confounding."""
        value, low, high = self.gap
        return (
            f"{self.name} earned {value:+.3f} [{low:+.3f}, {high:+.3f}] more per judged memory while it was active "
            f"({self.period.earned:.3f} in {self.period.recalls:,} recalls) than the active version "
            f"({self.live.earned:.3f} in {self.live.recalls:,} recalls). {self.note}"
        )


def find_fall(
    slates: Slates, versions: VersionLog, options: Mapping[str, Any]
) -> tuple[Fall | None, Periods | None, dict[str, str]]:
    """Compare the rewards of the active pack with rewards of each earlier active pack.

    ``options`` has the arguments ``horizon``, ``missing``, ``cluster``, ``level`` and ``reward_range`` of
    ``compare_periods``. Returns the fall from the best earlier pack or None, the comparison or None, and the reasons
    why an earlier pack is not proposed, by hash.
    """
    from memlab.science.evaluation import CONFOUNDED, compare_periods

    packs, live = versions.pack_hashes, versions.live_hash
    if len(packs) < 2:
        return None, None, {}
    comparison = compare_periods(slates, packs, live, **options)
    refused: dict[str, str] = {}
    for period in comparison.fallen:
        assert comparison.live is not None
        pack = versions.live_at(versions.event_of(period.pack_hash))
        revert = _find_revert(versions, pack, period.pack_hash)
        if isinstance(revert, str):
            refused[period.pack_hash] = revert
        elif shows_the_same(select_recalls(slates, live), versions.pack, pack):
            refused[period.pack_hash] = (
                "It would have shown the same memories in the recalls of the active version."
            )
        else:
            slot, to, name, after = revert
            return (
                Fall(slot, to, name, after, period, comparison.live, CONFOUNDED),
                comparison,
                refused,
            )
    return None, comparison, refused


def _find_revert(
    versions: VersionLog, pack: Pack, hash: str
) -> tuple[str | None, int | str, str, str] | str:
    """Return how to restore a pack, or the reason that it cannot be restored.

    The result is a slot and the hash of its version, or None and an event of the whole pack; then a name and a hash.
    """
    now = versions.pack
    slots = [
        slot for slot, policy in pack.policies.items() if now.policies[slot].hash != policy.hash
    ]
    pinned = [slot for slot in slots if slot in versions.pins]
    if pinned:
        return (
            f"{', '.join(pinned)} is pinned."
            if len(pinned) == 1
            else f"{', '.join(pinned)} are pinned."
        )
    if len(slots) == 1 and now.with_policy(slots[0], pack.policies[slots[0]]).hash == pack.hash:
        version = versions.version(slots[0], pack.policies[slots[0]].hash)
        return slots[0], version.hash, f"{slots[0]} version {version.number}", version.hash
    event = versions.event_of(hash)
    return None, event, f"the pack {pack.name} of event {event}", pack.hash


def shows_the_same(slates: Slates, live: Pack, other: Pack) -> bool:
    """Return whether two packs return the same memories in all logged recalls.

    Returns False if the recalls cannot be evaluated.
    """
    from memlab.science.evaluation import evaluate

    try:
        evaluation = evaluate(
            slates, {"live": live, "other": other}, missing="censor", baseline="live"
        )
        targets = [evaluation.target(name) for name in ("live", "other")]
    except MemlabError:
        return False
    pairs = [
        set(zip(target.recall.tolist(), target.memory.to_list(), strict=True)) for target in targets
    ]
    return pairs[0] == pairs[1]


def select_recalls(slates: Slates, pack: str) -> Slates:
    """Return the part of a log whose recalls one pack decided."""
    decisions = slates.decisions.filter(pl.col("pack_hash") == pack)
    recalls = decisions.select("decision")

    def select(table: pl.LazyFrame) -> pl.LazyFrame:
        return table.join(recalls, on="decision", how="semi")

    return replace(
        slates,
        decisions=decisions,
        candidates=select(slates.candidates),
        exposures=select(slates.exposures),
        feedback=select(slates.feedback),
    )

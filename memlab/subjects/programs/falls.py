"""Find the earlier version that the live one does worse than, by what each earned while it was live."""

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
    """The live version earns less than ``period`` did; ``slot`` and ``to`` name what brings that one back.

    ``slot`` is None where more than one slot, or a setting, changed since: then the whole pack of the event ``to``
    comes back, else the version of the slot whose hash is ``to``.
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
        """The call that carries out the revert."""
        what = (
            f'to="{self.after[:12]}"'
            if self.slot is None
            else f'"{self.slot}", to="{self.after[:12]}"'
        )
        return f"lab.policies.rollback({what})"

    @property
    def gap(self) -> tuple[float, float, float]:
        """What the earlier version earned more, with an interval that holds at every look."""
        assert self.period.difference is not None
        return self.period.difference

    @property
    def reason(self) -> str:
        """What was found, and what cannot be told apart from it."""
        value, low, high = self.gap
        return (
            f"{self.name} earned {value:+.3f} [{low:+.3f}, {high:+.3f}] more a judged memory while it was live "
            f"({self.period.earned:.3f} in {self.period.recalls:,} recalls) than the live version "
            f"({self.live.earned:.3f} in {self.live.recalls:,} recalls). {self.note}"
        )


def find_fall(
    slates: Slates, versions: VersionLog, asked: Mapping[str, Any]
) -> tuple[Fall | None, Periods | None, dict[str, str]]:
    """Compare the live pack with each pack that was live before.

    ``asked`` are the arguments ``horizon``, ``missing``, ``cluster``, ``level`` and ``reward_range`` of
    ``compare_periods``. Returns the
    fall to the best earlier pack, if there is one; what was compared; and by hash why a fall proposes nothing.
    """
    from memlab.science.evaluation import CONFOUNDED, compare_periods

    packs, live = versions.pack_hashes, versions.live_hash
    if len(packs) < 2:
        return None, None, {}
    found = compare_periods(slates, packs, live, **asked)
    refused: dict[str, str] = {}
    for period in found.fallen:
        assert found.live is not None
        pack = versions.live_at(versions.event_of(period.pack_hash))
        way = _way_back(versions, pack, period.pack_hash)
        if isinstance(way, str):
            refused[period.pack_hash] = way
        elif same_heads(under(slates, live), versions.pack, pack):
            refused[period.pack_hash] = (
                "It would have shown the same memories in the recalls of the live version."
            )
        else:
            slot, to, name, after = way
            return Fall(slot, to, name, after, period, found.live, CONFOUNDED), found, refused
    return None, found, refused


def _way_back(
    versions: VersionLog, pack: Pack, hash: str
) -> tuple[str | None, int | str, str, str] | str:
    """The slot, what to bring back, its name and the hash after that; or why it cannot come back."""
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


def same_heads(slates: Slates, live: Pack, other: Pack) -> bool:
    """Whether two packs show the same memories in every recall; False where the log cannot tell."""
    from memlab.science.evaluation import evaluate

    try:
        found = evaluate(slates, {"live": live, "other": other}, missing="censor", baseline="live")
        heads = [found.target(name) for name in ("live", "other")]
    except MemlabError:
        return False
    shown = [set(zip(one.recall.tolist(), one.memory.to_list(), strict=True)) for one in heads]
    return shown[0] == shown[1]


def under(slates: Slates, pack: str) -> Slates:
    """The recalls that the pack of this hash answered, and what belongs to them."""
    decisions = slates.decisions.filter(pl.col("pack_hash") == pack)
    kept = decisions.select("decision")

    def of_them(table: pl.LazyFrame) -> pl.LazyFrame:
        return table.join(kept, on="decision", how="semi")

    return replace(
        slates,
        decisions=decisions,
        candidates=of_them(slates.candidates),
        exposures=of_them(slates.exposures),
        feedback=of_them(slates.feedback),
    )

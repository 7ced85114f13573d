"""Whether the live policy has fallen, watched while judgements come in: constant work for each."""

from __future__ import annotations

from typing import Any

import polars as pl

from memlab.errors import MemlabError
from memlab.kernel.base.threads import ThreadLock
from memlab.kernel.storage.store import Store
from memlab.subjects.programs import Adapted, Missing, find_fall, of_fall

__all__ = ["FallWatch", "propose_revert"]

_DAY = 86_400_000_000
_REWARDS = {"success": 1.0, "fail": 0.0}
_PATIENCE = 1.5
"""A comparison that found no fall is made again when the live version has half as many blocks again: so the number of
comparisons grows as the logarithm of the log."""


def propose_revert(
    store: Store,
    *,
    missing: Missing = "censor",
    horizon: str | None = None,
    cluster: str | None = None,
    level: float = 0.95,
    reward_range: tuple[float, float] | None = None,
) -> Adapted | None:
    """Return the proposal to bring an earlier policy back, or None where the live one has not fallen.

    The arguments are those of ``compare_periods``. Missing feedback is left out by default: nobody was asked what it
    means.
    """
    asked = {"missing": missing, "horizon": horizon, "cluster": cluster, "level": level, "reward_range": reward_range}
    with store.reading():
        versions = store.versions
        if len(versions.pack_hashes) < 2:
            return None
        slates = store.slates()
        if not slates.decisions.select(pl.len()).collect().item():
            return None
        fall, _, _ = find_fall(slates, versions, asked)
        if fall is None:
            return None
        pack = versions.pack
        before = pack.hash if fall.slot is None else pack.policies[fall.slot].hash
        return of_fall(fall, before, fall.period.recalls + fall.live.recalls)


class FallWatch:
    """Watches the judgements of a lab for a fall of the live policy.

    It begins with the second call of a process in which more than one pack was live: what asks once and ends, such as
    the command line, does not pay for reading the judgements of the log. Rewards count as if they lay in 0..1; where
    they do not, ``propose_revert`` with their range compares them.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = ThreadLock()
        self._earned: Any = None
        self._days: dict[int, int] = {}
        self._cursor = 0
        self._calls = 0
        self._again: dict[str, float] = {}
        self._live = ""
        self._told: set[str] = set()

    def after_feedback(self) -> Adapted | None:
        """Count what was judged since the last call; the proposal if that shows a fall for the first time.

        A proposal is made once for each time that a pack is live.
        """
        with self._lock:
            self._calls += 1
            with self._store.reading() as state:
                packs, live, head = self._store.versions.pack_hashes, self._store.versions.live_hash, state.seq
            if self._calls < 2 or len(packs) < 2:
                return None
            if live != self._live:
                self._live = live
                self._told.clear()
            self._count(head)
            blocks = self._earned.blocks(live)
            if not self._earned.may_have_fallen(packs, live) or blocks < self._again.get(live, 0):
                return None
            self._again[live] = _PATIENCE * blocks
            try:
                found = propose_revert(self._store)
            except MemlabError:  # the judgement is stored: a log that cannot be compared is told of by adapt-policy
                return None
            if found is None or found.after in self._told:
                return None
            self._told.add(found.after)
            return found

    def _count(self, head: int) -> None:
        if self._earned is None:
            from memlab.science.evaluation import Earnings  # loaded only where more than one pack was live

            self._earned = Earnings()
        for event in self._store.journal.events(self._cursor, upto=head, kinds=("recall", "feedback")):
            if event.kind == "recall":
                self._days[event.seq] = event.at // _DAY
                continue
            body = event.body
            reward = body["reward"] if body["reward"] is not None else _REWARDS.get(body["outcome"])
            day = self._days.get(body["decision"])
            if body.get("pack") is not None and not body.get("probe") and reward is not None and day is not None:
                self._earned.add(body["pack"], day, min(max(reward, 0.0), 1.0), body["decision"])
        self._cursor = head

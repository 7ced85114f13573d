"""Whether the live policy has fallen, watched while judgements come in: constant work for each."""

from __future__ import annotations

from typing import Any

import polars as pl

from memlab.errors import MemlabError
from memlab.interrupts import ThreadLock
from memlab.operations import Adapted, find_fall, of_fall
from memlab.storage.store import Store

__all__ = ["FallWatch", "propose_revert"]

_DAY = 86_400_000_000
_REWARDS = {"success": 1.0, "fail": 0.0}
_PATIENCE = 1.5
"""A comparison that found no fall is made again when the live version has half as many blocks again: so the number of
comparisons grows as the logarithm of the log."""


def propose_revert(store: Store, **asked: Any) -> Adapted | None:
    """The proposal to bring an earlier policy back, from the log; None where the live one has not fallen.

    What has no feedback is left out, unless ``missing`` says otherwise: nobody was asked what it means.
    """
    with store.reading():
        versions = store.versions
        if len(versions.pack_hashes) < 2:
            return None
        slates = store.slates()
        if not slates.decisions.select(pl.len()).collect().item():
            return None
        fall, _, _ = find_fall(slates, versions, {"missing": "censor", **asked})
        if fall is None:
            return None
        pack = versions.pack
        before = pack.hash if fall.slot is None else pack.policies[fall.slot].hash
        return of_fall(fall, before, fall.period.recalls + fall.live.recalls)


class FallWatch:
    """Watches the judgements of a lab for a fall of the live policy.

    It begins with the second call of a process in which more than one pack was live: what asks once and ends, such as
    the command line, does not pay for reading the judgements of the log.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = ThreadLock()
        self._earned: Any = None
        self._cursor = 0
        self._calls = 0
        self._again: dict[str, float] = {}
        self._told: set[tuple[str, str]] = set()

    def after_feedback(self) -> Adapted | None:
        """Count what was judged since the last call; the proposal if that shows a fall for the first time."""
        with self._lock:
            self._calls += 1
            with self._store.reading() as state:
                packs, live, head = self._store.versions.pack_hashes, self._store.versions.live_hash, state.seq
            if self._calls < 2 or len(packs) < 2:
                return None
            self._count(head)
            blocks = self._earned.blocks(live)
            if not self._earned.may_have_fallen(packs, live) or blocks < self._again.get(live, 0):
                return None
            self._again[live] = _PATIENCE * blocks
            try:
                found = propose_revert(self._store)
            except MemlabError:  # the judgement is stored: a log that cannot be compared is told of by adapt-policy
                return None
            if found is None or (live, found.after) in self._told:
                return None
            self._told.add((live, found.after))
            return found

    def _count(self, head: int) -> None:
        if self._earned is None:
            from memlab.evaluation import Earnings  # loaded only where more than one pack was live

            self._earned = Earnings()
        for event in self._store.journal.events(self._cursor, upto=head, kinds=("feedback",)):
            body = event.body
            reward = body["reward"] if body["reward"] is not None else _REWARDS.get(body["outcome"])
            if body.get("pack") is not None and not body.get("probe") and reward is not None:
                self._earned.add(body["pack"], event.at // _DAY, min(max(reward, 0.0), 1.0))
        self._cursor = head

"""Version timeline: policy versions over time, their feedback, differences and restoration."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.clock import from_micros
from memlab.kernel.policies import SLOTS, get_slot
from memlab.subjects.lab import Lab
from memlab.ui.widgets._widget import arrow, synced
from memlab.ui.widgets.quality import Quality, ShowsQuality
from memlab.ui.widgets.ranks import (
    DECIDES_RANKS,
    NOTHING,
    Ranks,
    latest_questions,
    moved,
    shown_moves,
    summed_moves,
)

_BINS = 60
"""Bars of the feedback histogram, one for about ten pixels."""
_MOST_QUESTIONS = 50
"""Queries that are ranked under two versions within a second."""


class VersionTimeline(ShowsQuality, bundle="timeline"):
    """The versions of every slot over time, with pins, challengers and feedback.

    Two picked versions are compared: their texts side by side, nDCG@10 and hit@5 on the lab's
    labelled questions, and the ranks of queries below. Any version can be restored with a reason.

    Parameters
    ----------
    lab
        The lab.
    slot
        The slot.
    questions
        At most 50 queries. Default: the ten latest of the log, or else of the labelled questions.

    Attributes
    ----------
    picked
        The numbers of at most two versions.

    Examples
    --------
    >>> timeline = memlab.widgets.VersionTimeline(lab)                                     # doctest: +SKIP
    >>> timeline.picked = [1, 3]                                                           # doctest: +SKIP
    """

    slot = synced("recall-score")
    picked = synced([int], maxlen=2)
    questions = synced([str], maxlen=_MOST_QUESTIONS)

    _events = synced(b"")
    _rewards = synced(b"")
    _judged = synced(b"")
    _challenges = synced([])
    _diff = synced({})
    _moves = synced(b"")
    _sums = synced([])
    _about = synced({})
    _note = synced("")

    @checked
    def __init__(
        self, lab: Lab, *, slot: str = "recall-score", questions: Sequence[str] | None = None
    ) -> None:
        get_slot(slot)
        self._judge = Quality(lab)
        queries = (
            latest_questions(lab, 10) or self._judge.queries[:10]
            if questions is None
            else list(questions)
        )
        if len(queries) > _MOST_QUESTIONS:
            raise InputError(
                f"VersionTimeline ranks at most {_MOST_QUESTIONS} queries under two versions of a policy, "
                f"not {len(queries)}. Pass fewer in questions=."
            )
        self._ranks, self._frame = (
            Ranks(lab, labelled=self._judge.labelled),
            moved(NOTHING, NOTHING),
        )
        super().__init__(lab, slot=slot, questions=queries, picked=_last_two(lab, slot))
        self.observe(
            lambda change: self._follow(change["name"]), names=["slot", "picked", "questions"]
        )
        self._look()

    @property
    def versions(self) -> pl.DataFrame:
        """The history of the slot, in the form of ``lab.policies.history``."""
        return self.lab.policies.history(self.slot)

    @property
    def moves(self) -> pl.DataFrame:
        """The rank and the score of every candidate under the two selected versions."""
        queries = pl.Series(self.questions, dtype=pl.String)
        return self._frame.with_columns(question=queries.gather(self._frame["question"]))

    def refresh(self) -> None:
        """Read the versions, feedback and challenges again."""
        self._look()

    def page(self) -> str:
        """Return the history of the slot as an HTML table."""
        return (
            super().page()
            + self.versions.select("version", "at", "action", "pack", "reason")._repr_html_()
        )

    # -- what a browser asks ------------------------------------------------------------------------------------

    @checked
    def answer_look(self) -> None:
        """Read the versions, feedback and challenges again."""
        self._look()

    @checked
    def answer_rollback(self, version: int, reason: str) -> None:
        """Restore this version from the next recall on."""
        if not reason.strip():
            raise InputError("Type a reason first. It is recorded in the history.")
        restored = self.lab.policies.rollback(self.slot, to=version, reason=reason)
        self._look()
        self._note = (
            f"Version {version} of {self.slot} is active again, as version {restored.number}."
        )

    # -- looking ------------------------------------------------------------------------------------------------

    def _follow(self, name: str) -> None:
        with self.faults_shown():
            get_slot(self.slot)
            if name == "slot":
                with self.hold_trait_notifications():
                    self.picked = _last_two(self.lab, self.slot)
            self._look()

    def _look(self) -> None:
        """Read the versions, feedback, challenges and pins from the current lab."""
        lab = self.lab
        # Parents are hashes of packs, so a version is their descendant if it names the pack of an earlier event.
        with lab.policies.reading() as log:
            packs = log.timeline(self.slot).select("event", "pack_hash")
        events = lab.policies.history().join(packs, on="event", how="left", maintain_order="left")
        feedback = lab.slates().feedback.select("at", "outcome", "reward").collect()
        judged = lab.policies.attribution(self.slot).frame
        with self.hold_sync():
            self._events = arrow(
                _timed(events.drop("hash"), "at").with_columns(hash=events["hash"].str.head(12))
            )
            self._rewards = arrow(_binned(feedback))
            self._judged = arrow(
                judged.select("version", "recalls", "success", "fail", "rate", "low", "high")
            )
            spans = _timed(lab.policies.challenge_history, "since", "until")
            self._challenges = spans.select("name", "since", "until", "reason").to_dicts()
            self._compare()
            self._about = {
                "now": from_micros(lab.io.store.clock()).timestamp() * 1e3,
                "slots": list(SLOTS),
                "doc": SLOTS[self.slot].doc,
                "ranks": self.slot in DECIDES_RANKS,
                "writable": not lab.io.store.journal.read_only,
                "pins": {slot: version.number for slot, version in lab.policies.pins.items()},
            }
            self.fault = ""

    def _compare(self) -> None:
        """Compare the texts and rankings of the two selected versions."""
        if len(self.picked) < 2:
            self._diff, self._frame, self._quality = {}, moved(NOTHING, NOTHING), {}
        else:
            difference = self.lab.policies.diff(self.slot, *self.picked)
            rows = side_by_side(difference.before.source, difference.after.source)
            changes = [str(change) for change in difference.forms.changes] if difference else []
            self._diff = {"verdict": difference.verdict, "rows": rows, "changes": changes}
            versions = (difference.before, difference.after)
            self._frame = moved(
                *(
                    self._ranks.under(self.slot, version.policy, self.questions)
                    for version in versions
                )
            )
            packs = [
                self.lab.policies.pack.with_policy(self.slot, each.policy) for each in versions
            ]
            self._quality = self._judge.describe(self.slot, *packs)
        self._moves, self._sums = (
            arrow(shown_moves(self._frame, self._ranks, self.questions)),
            summed_moves(self._frame, self.questions),
        )


def _last_two(lab: Lab, slot: str) -> list[int]:
    """Return the last two versions of a slot, or [] if the slot has only one."""
    numbers = lab.policies.history(slot)["version"].unique().sort().to_list()
    return numbers[-2:] if len(numbers) > 1 else []


def _timed(frame: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Convert columns of instants to milliseconds, the unit of browsers."""
    return frame.with_columns(pl.col(name).dt.epoch("us").cast(pl.Float64) / 1e3 for name in names)


def _binned(feedback: pl.DataFrame) -> pl.DataFrame:
    """Count positive judgements and all judgements in time periods of equal length."""
    at = _timed(feedback, "at")["at"]
    low, high = (float(at.to_numpy().min()), float(at.to_numpy().max())) if len(at) else (0.0, 0.0)
    width = max((high - low) / _BINS, 1.0)
    good = (pl.col("outcome") == "success") | pl.col("outcome").is_null() & (pl.col("reward") > 0)
    binned = feedback.with_columns(bin=((at - low) / width).floor().clip(0, _BINS - 1))
    counts = (
        binned.group_by("bin")
        .agg(good=good.sum().cast(pl.Int32), count=pl.len().cast(pl.Int32))
        .sort("bin")
    )
    return counts.select(
        since=low + pl.col("bin") * width,
        until=low + (pl.col("bin") + 1) * width,
        good="good",
        count="count",
    )


def side_by_side(before: str, after: str) -> list[list[Any]]:
    """Align the lines of two texts for a side-by-side diff."""
    old, new = before.splitlines(), after.splitlines()
    rows: list[list[Any]] = []
    for tag, a, a_end, b, b_end in difflib.SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        for step in range(max(a_end - a, b_end - b)):
            left = [a + step + 1, old[a + step]] if a + step < a_end else [None, ""]
            right = [b + step + 1, new[b + step]] if b + step < b_end else [None, ""]
            kind = (
                "same"
                if tag == "equal"
                else "changed"
                if left[0] and right[0]
                else "removed"
                if left[0]
                else "added"
            )
            rows.append([kind, *left, *right])
    return rows

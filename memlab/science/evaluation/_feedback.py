"""From feedback to rewards: what counts, what is not known yet, and what is never averaged away.

With a horizon, a recall's window runs from its time to the horizon's end. A recall whose window is still open at the
last event of the log is left out whole: keeping what it has earned so far would favour what pays early. Feedback that
came after the window is left out too, so that every recall had the same time to earn.

Silence about an item that was shown in a recall that counts (``MISSING``):

- ``"censor"``: left out. The estimate then speaks for the items that people answered, which is right where silence
  does not depend on the item; a gate tests that it does not follow the item's features.
- ``"inverse"``: left out, and what was answered counts for 1 / P(answered | features, position), by a model that saw
  no recall of its cluster. Right where silence depends on those alone.
- ``"bounds"``: anything within the range of rewards, which widens the interval. Nothing is assumed.
- ``"zero"``: a reward of 0. With a horizon that is known, because the window has closed; without one it is the
  caller's word that nothing more will come.

A log in which more than a tenth is silent, or in which only one reward occurs (clicks, and nothing for the rest), does
not say which of these holds: the caller must.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, get_args

import polars as pl

from memlab.errors import InputError
from memlab.kernel.schema import OUTCOMES
from memlab.kernel.slates import ATTRIBUTED

__all__ = ["MISSING", "Answers", "Horizon", "Missing", "closed", "horizon_micros", "read_answers"]

Missing = Literal["censor", "inverse", "bounds", "zero"]
MISSING: tuple[Missing, ...] = get_args(Missing)


Horizon = str | timedelta | None
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)([mhdw])\Z")
_KEY = ["decision", "memory_id"]


def horizon_micros(horizon: Horizon) -> int | None:
    """A horizon in microseconds: a ``timedelta``, or a number and m, h, d or w.

    >>> horizon_micros("7d") == 7 * 86_400_000_000
    True
    """
    if horizon is None:
        return None
    if isinstance(horizon, str):
        match = _SPAN.match(horizon.strip())
        if match is None:
            raise InputError(f'horizon is a number and m, h, d or w, such as "7d" or "12h"; not "{horizon}".')
        horizon = timedelta(**{_UNITS[match[2]]: float(match[1])})
    if not isinstance(horizon, timedelta) or horizon <= timedelta(0):
        raise InputError(f"horizon is a positive span of time, such as '7d' or a timedelta; not {horizon!r}.")
    return horizon // timedelta(microseconds=1)


def closed(decisions: pl.DataFrame, feedback: pl.DataFrame, horizon: int) -> pl.Series:
    """Whether the window of each recall had closed at the last event of the log."""
    for name, frame in (("decisions", decisions), ("feedback", feedback)):
        if "at" not in frame.columns or frame["at"].null_count():
            raise InputError(f"A horizon needs the time of every row, and column at of {name} has gaps. Leave it out?")
    micros = pl.col("at").dt.epoch("us")
    ends = [frame.select(micros.max()).item() for frame in (decisions, feedback)]
    last = max(end for end in ends if end is not None)
    known = decisions.select(micros + horizon <= last).to_series()
    if not known.any():
        raise InputError("No recall's window has closed: the log is shorter than the horizon. Shorten it, or wait.")
    return known


@dataclass(frozen=True)
class Answers:
    """``frame``: every item that was shown and answered; ``notes`` what was left out.

    decision, memory_id, reward; ``attributed`` (the reward that was read from an answer, null where none was) and
    ``stated`` (whether somebody gave the reward).
    """

    frame: pl.DataFrame
    notes: tuple[str, ...]


def read_answers(
    feedback: pl.DataFrame,
    exposures: pl.DataFrame,
    decisions: pl.DataFrame,
    *,
    horizon: int | None,
    reward_range: tuple[float, float],
) -> Answers:
    """One reward for each item that was shown and answered within its window.

    ``exposures`` and ``decisions`` are those of all recalls, open windows included, so that what names neither is seen.
    """
    rewards = _rewards(feedback, reward_range)
    notes: list[str] = []
    # a judgement of a memory without a recall tells policies something, and evaluation nothing; Slates notes how many
    rewards = rewards.filter(pl.col("decision").is_not_null() & pl.col("memory_id").is_not_null())
    strays = rewards.join(exposures, on=_KEY, how="anti")
    if strays.height:
        first = strays.row(0, named=True)
        notes.append(
            f"{strays.height} feedbacks name an item that its recall did not show: left out "
            f"(the first: recall {first['decision']}, memory {first['memory_id']})."
        )
        rewards = rewards.join(exposures, on=_KEY, how="semi")
    early = _early(rewards, decisions)
    if early:
        notes.append(f"{early} feedbacks are dated before their recall: a clock ran back. They count as given at once.")
    if horizon is not None:
        within = rewards.join(decisions.select("decision", asked="at"), on="decision").filter(
            pl.col("at").dt.epoch("us") <= pl.col("asked").dt.epoch("us") + horizon
        )
        if within.height < rewards.height:
            notes.append(f"{rewards.height - within.height} feedbacks came after the horizon: left out.")
        rewards = within
    frame, more = _once(rewards.select(*_KEY, "reward", "at", "attributed", "stated"))
    return Answers(frame, (*notes, *more))


def _early(rewards: pl.DataFrame, decisions: pl.DataFrame) -> int:
    """How many are dated before their recall."""
    if "at" not in decisions.columns or rewards["at"].null_count() == rewards.height:
        return 0
    asked = rewards.join(decisions.select("decision", asked="at"), on="decision", how="left")
    return asked.filter(pl.col("at") < pl.col("asked")).height


def _rewards(feedback: pl.DataFrame, reward_range: tuple[float, float]) -> pl.DataFrame:
    """Every row with its reward: the one given, or 1 for a success and 0 for a fail."""
    missing = [name for name in _KEY if name not in feedback.columns]
    if missing:
        raise InputError(f"The table feedback has no column {missing[0]}.")
    given = pl.col("reward").cast(pl.Float64) if "reward" in feedback.columns else pl.lit(None, dtype=pl.Float64)
    outcome = pl.col("outcome") if "outcome" in feedback.columns else pl.lit(None, dtype=pl.String)
    at = pl.col("at") if "at" in feedback.columns else pl.lit(None, dtype=pl.Datetime("us", "UTC"))
    by_outcome = pl.when(outcome == OUTCOMES[0]).then(1.0).when(outcome == OUTCOMES[1]).then(0.0)
    source = pl.col("source") if "source" in feedback.columns else pl.lit(None, dtype=pl.String)
    read = pl.col("attributed").cast(pl.Float64) if "attributed" in feedback.columns else pl.lit(None, dtype=pl.Float64)
    rewards = feedback.select(
        *_KEY, reward=pl.coalesce(given, by_outcome), at=at, attributed=read, stated=source.ne_missing(ATTRIBUTED)
    )
    low, high = reward_range
    bad = rewards.with_row_index("row").filter(
        pl.col("reward").is_null() | ~pl.col("reward").is_finite() | ~pl.col("reward").is_between(low, high)
    )
    if not bad.height:
        return rewards
    row = bad.row(0, named=True)
    where = f"Row {row['row']} of feedback (recall {row['decision']}, memory {row['memory_id']})"
    if row["reward"] is None:
        raise InputError(f"{where} has neither a reward nor an outcome that is success or fail.")
    raise InputError(
        f"{where} has the reward {row['reward']:g}, outside {low:g}..{high:g}. State the range of your rewards: "
        f"reward_range=(low, high)."
    )


def _once(rewards: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """One row an item: repeats count once, and of contradicting ones the last."""
    again = rewards.select(pl.struct(_KEY).is_duplicated().sum()).item()
    if not again:
        return rewards.drop("at"), []
    groups = rewards.group_by(_KEY, maintain_order=True).agg(
        pl.col("reward").n_unique().alias("values"),
        pl.col("reward").sort_by("at").last(),
        pl.col("at").null_count().alias("timeless"),
        (pl.col("at") == pl.col("at").max()).sum().alias("last"),
        pl.col("attributed").drop_nulls().last(),
        pl.col("stated").any(),
    )
    unclear = groups.filter((pl.col("values") > 1) & ((pl.col("timeless") > 0) | (pl.col("last") > 1)))
    if unclear.height:
        first = unclear.row(0, named=True)
        raise InputError(
            f"Recall {first['decision']}, memory {first['memory_id']} has feedback that contradicts itself, and no "
            f"time that tells which came last."
        )
    notes = []
    repeats = rewards.height - groups.height
    changed = groups.filter(pl.col("values") > 1).height
    if repeats:
        note = f"{repeats} feedbacks repeat one about the same item of the same recall: counted once"
        notes.append(note + (f"; {changed} items were judged otherwise later: the last counts." if changed else "."))
    return groups.select(*_KEY, "reward", "attributed", "stated"), notes

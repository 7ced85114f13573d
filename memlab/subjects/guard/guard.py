"""``lab.guard``: begin a guard, report on it, and forecast it from the log."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arrays import Floats
from memlab.kernel.base.clock import INSTANT, from_micros
from memlab.kernel.base.display import Report, Table
from memlab.kernel.base.printable import count_of
from memlab.kernel.policies import Pack, PolicyLike, as_pack
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.policies.policies import begin_challenge
from memlab.subjects.guard.process import LossProcess, forecast_recalls
from memlab.subjects.guard.register import GuardRecord, Guards

_LOSSES = (0.1, 0.2, 0.4, 0.8)
"""Losses of the forecast, in standard deviations of the reward of a recall."""

_QUERIES, _RECALLS = 20, 1_000
"""Queries that both packs rank, and judged recalls that are read, for the forecast.

Ranking takes a third of a second. A standard deviation of 1,000 rewards is within 5%.
"""

_FEW = 20
"""Minimum number of judged recalls for a standard deviation, which is then within 16% in most cases."""


@dataclass(frozen=True, repr=False)
class Guard(Report):
    """A pack that serves a share of recalls until it is in use, rolled back or ended.

    A loss is the mean reward of a recall under the active pack minus that under the guarded pack.

    Attributes
    ----------
    pack, hash
        Name and hash of the guarded pack.
    state
        "planned", "running", "rolled back", "in use" (the pack became active), "replaced" (another
        pack became active) or "ended" (by hand).
    share
        Probability that a recall shows the results of the guarded pack; 0 in shadow.
    tolerance
        Loss of reward per recall that is accepted.
    level
        Confidence of ``low``, of ``high`` and of a rollback.
    since, until
        Times of the beginning and of the end; None before them.
    served
        Number of recalls with results of the active pack only, of the guarded pack only, and of both.
    judged
        Number of recalls whose feedback counts.
    loss, low, high
        Loss per judged recall, and its bounds, each of which holds after every recall with the
        confidence ``level``.
    reason, end_reason
        Reasons given for the guard, and for its end; "" before it.
    forecast
        Number of recalls after which a loss rolls the pack back, from the log before the guard. It is
        empty in later reports. ``loss`` is per recall, and ``sd`` the loss in standard deviations of
        the reward of a recall. ``judged`` and ``judged_95`` are judged recalls, in half and in 95% of
        cases; ``recalls_95`` has recalls without feedback too. Null means more than ten million, or a
        loss above the mean reward.
    basis
        Data of the forecast, in one sentence.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> guard = lab.guard("companion", share=0.1)
    >>> guard.state, guard.judged
    ('running', 0)
    """

    pack: str
    hash: str
    state: str
    share: float
    tolerance: float
    level: float
    since: datetime | None
    until: datetime | None
    served: tuple[int, int, int]
    judged: int
    loss: float
    low: float
    high: float
    reason: str
    end_reason: str
    forecast: pl.DataFrame = field(compare=False)
    basis: str
    _lab: Any = field(compare=False)
    _record: GuardRecord = field(compare=False)

    @property
    def frame(self) -> pl.DataFrame:
        """One row for each judged recall, or each recall in shadow.

        ``recall`` is the event of the recall. ``guarded`` is 1 for results of the guarded pack, 0 for
        those of the active pack, and -1 if both have the same. ``reward`` is from 0 to 1. ``loss``,
        ``low`` and ``high`` are those after the recall.

        In shadow, ``common`` is the share of the results that the guarded pack has too. ``reward`` is
        the sum over the results, and ``retained`` the part of results that both packs have.
        """
        if self._record.shadow:
            return _read_shadow(self._lab, self._record)
        return _track(self._lab, self._record, self.judged)

    @property
    def title(self) -> str:
        """The state of the guard in one or two sentences."""
        if self._record.shadow:
            active, _, same = self.served
            recalls = count_of(active + same, "recall")
            return f"{self.pack} in shadow: {self.state}. Other results in {active:,} of {recalls}."
        title = f"{self.pack} at {self.share:.0%} of recalls: {self.state}."
        if not self.judged:
            return f"{title} No judged recall counts yet."
        return (
            f"{title} After {count_of(self.judged, 'judged recall')}, the loss per recall is {self.loss:.3f}, between "
            f"{self.low:.3f} and {self.high:.3f}."
        )

    def _display(self) -> object:
        rows = [
            (
                f"{loss:.3f}",
                f"{sd:.1f}",
                *("-" if count is None else f"{count:,}" for count in counts),
            )
            for loss, sd, *counts in self.forecast.iter_rows()
        ]
        heads = ("loss", "sd", "judged, half", "judged, 95%", "recalls, 95%")
        title = "Recalls until a loss rolls the pack back"
        return self.title, *([Table(title, heads, rows, (self.basis,))] if rows else [])


def guard_pack(
    lab: Any,
    core: Core,
    pack: PolicyLike | None,
    *,
    share: float,
    tolerance: float,
    level: float,
    shadow: bool,
    missing: Literal["censor", "zero"],
    wait: int,
    reward_range: tuple[float, float],
    plan: bool,
    reason: str,
) -> Guard:
    """Begin a guard, forecast its length, or report on it; see ``Lab.guard``."""
    low, high = map(float, reward_range)
    if not low < high or not math.isfinite(high - low):
        raise InputError(
            f"reward_range must be a lower and a higher number, not {reward_range!r:.60}."
        )
    if tolerance >= high - low:
        raise InputError(
            f"With rewards from {low:g} to {high:g}, no loss can exceed a tolerance of "
            f"{tolerance:g}, so the guard would never act. Pass a smaller tolerance."
        )
    if missing == "zero" and not wait:
        raise InputError(
            'With missing="zero" and wait=0, every recall counts with the lowest reward before its feedback comes. Pass '
            "wait=1 or more."
        )
    if pack is None:
        with core.reading() as state:
            records = state.projection(Guards).records
        if not records:
            raise InputError("No pack was guarded yet. Begin with lab.guard(pack, share=0.1).")
        return _report(lab, records[-1])
    loaded = as_pack(pack, lambda: core.pack)
    options = {
        "share": 0.0 if shadow else share,
        "tolerance": tolerance / (high - low),
        "level": level,
        "shadow": int(shadow),
        "zero": int(missing == "zero"),
        "wait": wait,
        "low": low,
        "high": high,
    }
    forecast, basis = (pl.DataFrame(), "") if shadow else _forecast(lab, loaded, options)
    if plan:
        # A guard from 0 to 0 has no recalls.
        names = loaded.name, loaded.hash, "", reason
        planned = GuardRecord(0, 0, *names, options, until=0, ended="planned")
        return _report(lab, planned, forecast, basis)
    with core.store.exclusive():
        if core.store.versions.refuses_chance:
            raise InputError(
                "A guard draws results at random, and the owner of this lab refused random draws with "
                "lab.policies.explore(False). Allow it with lab.policies.explore(True)."
            )
        # Design ab draws one of both packs in ``rate`` of the recalls, so the guarded one in half of them.
        begin_challenge(
            lab.policies, loaded, "ab", "auto", 2 * options["share"], reason, guard=options
        )
        return _report(lab, core.store.state.projection(Guards).records[-1], forecast, basis)


def _report(
    lab: Any, record: GuardRecord, forecast: pl.DataFrame | None = None, basis: str = ""
) -> Guard:
    """Return the report on a guard, with its estimates in units of the reward."""
    options = record.options
    scale, bounds = options["high"] - options["low"], [math.nan] * 3
    judged = 0 if record.shadow else int(record.process.recalls[0])
    if judged:
        bounds = [float(bound[0]) for bound in record.process.bounds(options["level"])]
    active, guarded, same = record.served
    return Guard(
        record.pack,
        record.hash,
        record.ended or "running",
        options["share"],
        options["tolerance"] * scale,
        options["level"],
        from_micros(record.at) if record.at else None,
        from_micros(record.until) if record.until else None,
        (active, guarded, same),
        judged,
        bounds[0] * scale,
        bounds[1] * scale,
        bounds[2] * scale,
        record.reason,
        record.why,
        pl.DataFrame() if forecast is None else forecast,
        basis,
        lab,
        record,
    )


# -- frames -----------------------------------------------------------------------------------------------------------


def _track(lab: Any, record: GuardRecord, judged: int) -> pl.DataFrame:
    """Return a frame, rebuilt from events, of the first ``judged`` recalls whose feedback counts."""
    guards, rows, states = Guards(), list[list[float]](), []
    for event in lab.io.store.journal.events(record.seq - 1, kinds=Guards.kinds):
        if len(rows) == judged:
            break
        guards.fold(event)
        again = guards.records[0]
        if again.process.recalls[0] > len(rows):
            rows.append(again.latest)
            states.append(again.process.dump())
    frame = pl.DataFrame(
        rows,
        schema={"recall": pl.Float64, "guarded": pl.Float64, "reward": pl.Float64},
        orient="row",
    ).cast({"recall": pl.Int64, "guarded": pl.Int8})
    # The intervals of all rows are computed at once: a bisection for each would take minutes.
    process = LossProcess(record.options["share"], runs=len(rows))
    if rows:
        process.load(np.array(states).T)
    scale = record.options["high"] - record.options["low"]
    bounds = process.bounds(record.options["level"])
    return frame.with_columns(
        pl.Series(name, values * scale)
        for name, values in zip(("loss", "low", "high"), bounds, strict=True)
    )


def _read_shadow(lab: Any, record: GuardRecord) -> pl.DataFrame:
    """Return a row per recall under a shadow guard: share of common results, reward, and reward of the pack's results."""
    slates = lab.slates()
    decisions = slates.decisions.filter(
        pl.col("decision") > record.seq, pl.col("challenge").is_not_null()
    )
    judged = slates.feedback.filter(pl.col("decision") > record.seq)
    rewards: dict[int, dict[int, float]] = {}
    columns = "decision", "memory_id", "reward"
    for decision, memory, reward in judged.select(columns).collect().iter_rows():
        rewards.setdefault(decision, {})[memory] = reward
    rows = []
    for decision, at, text in decisions.select("decision", "at", "challenge").collect().iter_rows():
        challenge = json.loads(text)
        head = challenge["heads"].get(record.pack)
        if head is None or (record.until is not None and at > from_micros(record.until)):
            continue
        own, live, earned = set(head["ids"]), challenge["live"], rewards.get(decision, {})
        common = sum(id in own for id in live) / len(live) if live else 1.0
        retained = sum(reward for id, reward in earned.items() if id in own)
        rows.append((decision, at, common, float(sum(earned.values())), float(retained)))
    floats = dict.fromkeys(("common", "reward", "retained"), pl.Float64)
    return pl.DataFrame(rows, schema={"recall": pl.Int64, "at": INSTANT, **floats}, orient="row")


# -- the forecast -----------------------------------------------------------------------------------------------------


class _Log(NamedTuple):
    """Rewards from 0 to 1 of judged recalls, the share of judged recalls, and of differing results."""

    rewards: Floats
    judged: float
    differs: float
    basis: str


def _forecast(lab: Any, pack: Pack, options: Mapping[str, float]) -> tuple[pl.DataFrame, str]:
    """Return the forecast number of recalls before a rollback for each assumed loss of reward, and its basis."""
    log = _read_log(lab, pack, options)
    rows = []
    for sd in _LOSSES:
        loss = sd * float(log.rewards.std())
        excess = loss - options["tolerance"]
        counts = [
            # Recalls with the same results cost nothing and say nothing.
            forecast_recalls(
                log.rewards,
                excess / log.differs if log.differs else 0.0,
                options["share"],
                level=options["level"],
                chance=chance,
            )
            for chance in (0.5, 0.95)
        ]
        half, slow = (
            None if count is None else math.ceil(count / log.differs + options["wait"])
            for count in counts
        )
        recalls = None if slow is None else math.ceil(slow / log.judged)
        rows.append((loss * (options["high"] - options["low"]), sd, half, slow, recalls))
    columns = {"loss": pl.Float64, "sd": pl.Float64} | dict.fromkeys(
        ("judged", "judged_95", "recalls_95"), pl.Int64
    )
    return pl.DataFrame(rows, schema=columns, orient="row"), log.basis


def _read_log(lab: Any, pack: Pack, options: Mapping[str, float]) -> _Log:
    """Return the rewards of the latest logged recalls, the share that counts, and the share of queries that differ.

    A query differs if the pack gives it other results than the active pack.
    """
    slates, low, scale = lab.slates(), options["low"], options["high"] - options["low"]
    judged = slates.feedback.filter(pl.col("decision").is_not_null())
    by_recall = judged.group_by("decision").agg(pl.col("reward").mean())
    latest = by_recall.sort("decision").tail(_RECALLS).collect()
    rewards = np.clip((latest["reward"].to_numpy() - low) / scale, 0.0, 1.0)
    first = latest["decision"].min() if len(latest) else 0
    decisions = slates.decisions.filter(pl.col("decision") >= first).select("query").collect()
    silent = max(len(decisions) - len(latest), 0)
    judged = len(latest) / (len(latest) + silent) if len(latest) else 1.0
    if options["zero"]:
        rewards, judged = np.concatenate([rewards, np.zeros(silent)]), 1.0
    queries = decisions["query"].drop_nulls().unique(maintain_order=True).tail(_QUERIES).to_list()
    differing = [
        lab.recall(query, log=False).slate.shown
        != lab.recall(query, pack=pack, log=False).slate.shown
        for query in queries
    ]
    differs = float(np.mean(differing)) if differing else 1.0
    if len(latest) < _FEW or not rewards.std():
        rewards = np.array([0.0, 1.0])
        basis = (
            f"The log has {len(latest)} judged recalls, too few or too equal for a forecast. Rewards are assumed to be "
            "the lowest or the highest one, each in half of the recalls."
        )
    else:
        basis = (
            f"From {len(latest):,} judged recalls: mean reward {low + float(rewards.mean()) * scale:.2f}, standard "
            f"deviation {float(rewards.std()) * scale:.2f}. {judged:.0%} of recalls count."
        )
    if queries:
        basis += f" {differs:.0%} of {len(queries)} logged queries have other results."
    return _Log(rewards, judged, differs, basis)

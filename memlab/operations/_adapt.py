"""Policies that change with what worked: one step of ``(adapt-policy)``.

First back: a slot whose live version was judged worse than an earlier one returns to it, where the central 95% of
the two posteriors (Jeffreys' prior) do not overlap. Else forward: the numbers of the live recall-score become
parameters and are searched on the log, and what is found is installed only if it does better on recalls that the
search has not seen, with the whole interval above zero. Else nothing is changed, with the reason: a log of a few
judgements supports no change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from memlab.display import paragraph
from memlab.errors import InputError
from memlab.language import NumericLiteral, Policy, literals, parametrize
from memlab.operations._lab import OperableLab
from memlab.printable import printable

__all__ = ["Adapted", "adapt"]

_SLOTS = ("recall-score", "seed-score", "half-life", "explore", "spread", "eligible")
"""The slots that decide what a recall shows, and so are judged by what became of it."""

_SLOT = "recall-score"
_MIN_JUDGED = 20
"""Recalls with a judgement below which nothing is searched: their clusters make no five folds of four."""

_MAX_PARAMETERS = 8
_SPAN = 4.0
"""A number is searched from its quarter to four times itself."""

_FOLDS, _BUDGET = 5, 60


@dataclass(frozen=True)
class Adapted:
    """What one step did. ``action`` is installed, rolled back or kept; ``reason`` says why in a sentence.

    ``before`` and ``after`` are hashes of the slot's policy. ``gain`` is the value on recalls that the search had not
    seen, less that of the policy before, with its interval; None where nothing was searched.
    """

    slot: str
    action: str
    reason: str
    before: str
    after: str
    judged: int
    gain: tuple[float, float, float] | None = None
    params: tuple[tuple[str, float], ...] = ()
    attribution: pl.DataFrame | None = field(default=None, repr=False)

    @property
    def frame(self) -> pl.DataFrame:
        """One row: slot, action, before, after, judged, gain, low, high, reason."""
        gain, low, high = self.gain or (None, None, None)
        return pl.DataFrame(
            {
                "slot": [self.slot],
                "action": [self.action],
                "before": [self.before],
                "after": [self.after],
                "judged": [self.judged],
                "gain": [gain],
                "low": [low],
                "high": [high],
                "reason": [self.reason],
            },
            schema_overrides={"gain": pl.Float64, "low": pl.Float64, "high": pl.Float64},
        )

    def __repr__(self) -> str:
        return printable(f"{self.slot} {self.action}: {self.reason}")

    def _repr_html_(self) -> str:
        return paragraph(self)


def adapt(lab: OperableLab, *, seed: int = 0) -> Adapted:
    """Take back what does worse, else install what does better, else say why nothing is done. Logged and reversible."""
    back = next((found for slot in _SLOTS if (found := _roll_back(lab, slot)) is not None), None)
    return back if back is not None else _search(lab, seed)


def _roll_back(lab: OperableLab, slot: str) -> Adapted | None:
    """The slot rolled back to the earlier version that was judged better beyond doubt, if there is one."""
    attribution = lab.policies.attribution(slot)
    rows = attribution.frame.filter(pl.col("rate").is_not_null())
    live = attribution.frame.row(-1, named=True)
    if slot in lab.policies.pins or live["rate"] is None:
        return None
    better = rows.filter((pl.col("low") > live["high"]) & (pl.col("hash") != live["hash"])).sort("rate", "version")
    if better.is_empty():
        return None
    best = better.row(-1, named=True)
    reason = (
        f"version {live['version']} succeeds at {live['rate']:.2f} [{live['low']:.2f}, {live['high']:.2f}] of "
        f"{live['success'] + live['fail']} judgements, version {best['version']} at {best['rate']:.2f} "
        f"[{best['low']:.2f}, {best['high']:.2f}] of {best['success'] + best['fail']}"
    )
    version = lab.policies.rollback(slot, to=best["version"], reason=f"adapt-policy: {reason}")
    judged = int(live["judged"])
    return Adapted(slot, "rolled back", reason, live["hash"], version.hash, judged, attribution=attribution.frame)


def _search(lab: OperableLab, seed: int) -> Adapted:
    """The live recall-score with other numbers, where they do better on recalls that were held out."""
    policy = lab.policies[_SLOT]
    slates = lab.slates()
    judged = int(slates.feedback.select(pl.col("decision").drop_nulls().n_unique()).collect().item())

    def unchanged(reason: str, **more: Any) -> Adapted:
        return Adapted(_SLOT, "kept", reason, policy.hash, policy.hash, judged, **more)

    if _SLOT in lab.policies.pins:
        return unchanged("the slot is pinned")
    if judged < _MIN_JUDGED:
        return unchanged(
            f"{judged} recalls were judged, and {_MIN_JUDGED} is the minimum from which anything can be concluded"
        )
    tunable = _tunable(policy)
    if tunable is None:
        return unchanged("the policy has no number that could be another one")
    from memlab.evaluation import tune  # a twentieth of what opening a lab takes: loaded where it is asked for

    try:
        found = tune(slates, tunable, missing="censor", folds=_FOLDS, budget=_BUDGET, seed=seed)
    except InputError as error:
        return unchanged(f"the log does not tell: {error}")
    gain = (found.gain.value, found.gain.low, found.gain.high)
    if not found.pays:
        return unchanged(found.verdict, gain=gain)
    params = {name: float(f"{value:.6g}") for name, value in found.params.items()}
    version = lab.policies.install(
        _SLOT, tunable.source, helpers=tunable.helpers, params=params, reason=f"adapt-policy: {found.verdict}"
    )
    return Adapted(
        _SLOT, "installed", found.verdict, policy.hash, version.hash, judged, gain, tuple(sorted(params.items()))
    )


def _tunable(policy: Policy) -> Policy | None:
    """The policy with bounded parameters: its own, or its first numbers as such."""
    if any(math.isfinite(param.low) and math.isfinite(param.high) for param in policy.params.values()):
        return policy
    choices: dict[NumericLiteral, str | tuple[str, float | None, float | None]] = {}
    for literal in literals(policy):
        if literal.replaceable and not literal.structural and literal.value and len(choices) < _MAX_PARAMETERS:
            low, high = sorted((literal.value / _SPAN, literal.value * _SPAN))
            choices[literal] = (f"w{len(choices) + 1}", low, high)
    return parametrize(policy, choices) if choices else None

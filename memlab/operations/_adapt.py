"""Policies that change with what worked: one step of ``(adapt-policy)``.

First back: each earlier version of a slot is evaluated on the recalls that the live pack answered, against what was
shown there, and returns only if it would have earned more: with its whole interval, adjusted for how many were tried,
and every gate open. The two meet the same questions, so a time of harder questions moves neither. Else forward: the
numbers of the live recall-score become parameters and are searched on the log, and what is found is installed only if
it does better on recalls that the search has not seen, with the whole interval above zero. Else nothing is changed,
with the reason. Without consent nothing is changed at all: what would be is proposed, with the evidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import polars as pl

from memlab.display import paragraph
from memlab.errors import InputError
from memlab.language import NumericLiteral, Policy, literals, parametrize
from memlab.operations._lab import OperableLab
from memlab.policies import Version
from memlab.printable import printable
from memlab.slates import Slates

if TYPE_CHECKING:
    from memlab.evaluation import PolicyValue

__all__ = ["MISSING", "Adapted", "adapt"]

Missing = Literal["zero", "censor", "inverse", "bounds"]
MISSING: tuple[Missing, ...] = get_args(Missing)
"""What silence may mean; ``memlab.evaluate`` says what each of them is."""

_SLOTS = ("recall-score", "seed-score", "half-life", "spread")
"""The slots that decide how candidates are scored, and so which head a logged pool would have had."""

_SLOT = "recall-score"
_MIN_JUDGED = 20
"""Recalls with a judgement below which nothing is searched: their clusters make no five folds of four."""

_MAX_PARAMETERS = 8
_SPAN = 4.0
"""A number is searched from its quarter to four times itself."""

_FOLDS, _BUDGET = 5, 60

_EVIDENCE: dict[str, Any] = {
    "policy": pl.String,
    "value": pl.Float64,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "recalls": pl.Int64,
    "verdict": pl.String,
    "why": pl.String,
}


@dataclass(frozen=True)
class Adapted:
    """What one step did. ``action`` is installed, rolled back, proposed or kept; ``reason`` says why in a sentence.

    ``before`` and ``after`` are hashes of the slot's policy; of a proposal, ``after`` is what it would be. ``gain`` is
    the difference that decided, with its interval; None where nothing was compared. ``evidence`` has a row for each
    policy that was held against the live one: ``policy``, ``value``, ``difference`` with ``low`` and ``high``, ``p``
    (Holm), ``recalls``, ``verdict``, and ``why`` there is none.
    """

    slot: str
    action: Literal["installed", "rolled back", "proposed", "kept"]
    reason: str
    before: str
    after: str
    judged: int
    gain: tuple[float, float, float] | None = None
    params: tuple[tuple[str, float], ...] = ()
    evidence: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_EVIDENCE), repr=False)

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
        return f"{paragraph(self)}{self.evidence._repr_html_() if self.evidence.height else ''}"


def adapt(lab: OperableLab, *, missing: Missing | None = None, consent: bool = False, seed: int = 0) -> Adapted:
    """Take back what does worse, else install what does better, else say why nothing is done. Logged and reversible.

    ``missing`` says what silence means, as in ``memlab.evaluate``; where the log needs to be told and is not, nothing
    is changed. Without ``consent`` the step is proposed and not done.
    """
    return _Step(lab, missing, consent, seed).taken()


class _Step:
    """One step on one lab."""

    def __init__(self, lab: OperableLab, missing: Missing | None, consent: bool, seed: int) -> None:
        self._lab, self._missing, self._consent, self._seed = lab, missing, consent, seed
        self._slates: Slates = lab.slates()
        judged = self._slates.feedback.select(pl.col("decision").drop_nulls().n_unique())
        self._judged = int(judged.collect().item())
        self._evidence = pl.DataFrame(schema=_EVIDENCE)

    def taken(self) -> Adapted:
        if self._judged < _MIN_JUDGED:
            return self._kept(
                f"{self._judged} recalls were judged, and {_MIN_JUDGED} is the minimum from which anything can be "
                "concluded"
            )
        try:
            return self._back() or self._forward()
        except InputError as error:
            return self._kept(f"the log does not tell: {error}")

    def _kept(self, reason: str, gain: tuple[float, float, float] | None = None) -> Adapted:
        hash = self._lab.policies[_SLOT].hash
        return Adapted(_SLOT, "kept", reason, hash, hash, self._judged, gain, evidence=self._evidence)

    def _back(self) -> Adapted | None:
        """The slot rolled back to the earlier version that would have earned more, if there is one."""
        from memlab.evaluation import evaluate  # a twentieth of what opening a lab takes: loaded where it is asked for

        policies = self._lab.policies
        earlier = {f"{one.slot} version {one.number}": one for slot in _SLOTS for one in self._earlier(slot)}
        period = _under(self._slates, policies.pack.hash)
        if not earlier or not int(period.feedback.select(pl.len()).collect().item()):
            return None
        packs = {name: policies.pack.with_policy(one.slot, one.policy) for name, one in earlier.items()}
        found = evaluate(period, packs, missing=self._missing)
        rows = [row for row in found.rows if row.policy in earlier]
        refused = [
            (one.policy, None, None, None, None, None, found.recalls, "refused", one.reason) for one in found.refusals
        ]
        self._record([*(_line(row, found.recalls) for row in rows), *refused])
        # rows stand best first; what is better is so with its whole interval and after Holm's adjustment
        best = next(
            (row for row in rows if row.verdict == "better" and row.difference and row.difference.low > 0), None
        )
        if best is None or best.difference is None:
            return None
        gap, version = best.difference, earlier[best.policy]
        reason = (
            f"{best.policy} would have earned {gap.value:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}] more a recall than "
            f"the live one, on the same {found.recalls} recalls"
        )
        return self._done(
            version.slot,
            "rolled back",
            reason,
            version.hash,
            (gap.value, gap.low, gap.high),
            lambda: policies.rollback(version.slot, to=version.number, reason=f"adapt-policy: {reason}"),
        )

    def _earlier(self, slot: str) -> list[Version]:
        """The versions that a slot had before, each policy once; none of a pinned one."""
        with self._lab.policies.seen() as versions:
            known = versions.versions(slot)
        if slot in self._lab.policies.pins:
            return []
        latest = {one.hash: one for one in known}
        return [one for hash, one in latest.items() if hash != known[-1].hash]

    def _forward(self) -> Adapted:
        """The live recall-score with other numbers, where they do better on recalls that were held out."""
        policies = self._lab.policies
        policy = policies[_SLOT]
        if _SLOT in policies.pins:
            return self._kept("the slot is pinned")
        tunable = _tunable(policy)
        if tunable is None:
            return self._kept("the policy has no number that could be another one")
        from memlab.evaluation import tune

        found = tune(self._slates, tunable, missing=self._missing, folds=_FOLDS, budget=_BUDGET, seed=self._seed)
        gain = (found.gain.value, found.gain.low, found.gain.high)
        why = " ".join(str(gate) for gate in found.closed)
        recalls = int(self._slates.decisions.select(pl.len()).collect().item())
        verdict = "better" if found.pays else "withheld" if found.closed else "not separated"
        row = (f"{_SLOT}, other numbers", found.held_out.value, *gain, found.gain.p, recalls, verdict, why)
        self._record([tuple(None if isinstance(one, float) and math.isnan(one) else one for one in row)])
        if not found.pays:
            return self._kept(found.verdict, gain)
        params = {name: float(f"{value:.6g}") for name, value in found.params.items()}

        def install() -> Version:
            version: Version = policies.install(
                _SLOT, tunable.source, helpers=tunable.helpers, params=params, reason=f"adapt-policy: {found.verdict}"
            )
            return version

        after = tunable.with_params(params).hash
        done = self._done(_SLOT, "installed", found.verdict, after, gain, install)
        return replace(done, params=tuple(sorted(params.items())))

    def _done(
        self,
        slot: str,
        action: Literal["installed", "rolled back"],
        reason: str,
        after: str,
        gain: tuple[float, float, float],
        act: Callable[[], Version],
    ) -> Adapted:
        """Carried out on consent, else proposed."""
        before = self._lab.policies[slot].hash
        if self._consent:
            after = act().hash
            return Adapted(slot, action, reason, before, after, self._judged, gain, evidence=self._evidence)
        would = "roll back" if action == "rolled back" else "install"
        reason = f"on your consent, {would} [{after[:12]}]. {reason}"
        return Adapted(slot, "proposed", reason, before, after, self._judged, gain, evidence=self._evidence)

    def _record(self, rows: list[tuple[Any, ...]]) -> None:
        self._evidence = pl.concat([self._evidence, pl.DataFrame(rows, schema=_EVIDENCE, orient="row")])


def _line(row: PolicyValue, recalls: int) -> tuple[Any, ...]:
    """One policy's row of the evidence."""
    gap = row.difference
    numbers = (row.value.value if row.value else None, *((gap.value, gap.low, gap.high) if gap else (None, None, None)))
    known = [None if one is None or math.isnan(one) else one for one in (*numbers, row.adjusted)]
    return (row.policy, *known, recalls, row.verdict, " ".join(str(gate) for gate in row.closed))


def _under(slates: Slates, pack: str) -> Slates:
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

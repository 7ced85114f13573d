"""What an evaluation found: numbers, the reasons for missing ones, and where policies differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from math import nan
from typing import Any, Literal

import numpy as np
import polars as pl

from memlab.errors import UnknownName
from memlab.kernel.base.arguments import Count, checked
from memlab.science.evaluation._clusters import Estimate, benjamini_hochberg, holm
from memlab.science.evaluation._compare import Measured
from memlab.science.evaluation._disagreements import Disagreements, disagreements
from memlab.science.evaluation._gates import ONE_CLUSTER, Gate, recalls_to_open
from memlab.science.evaluation._log import Log
from memlab.science.evaluation._model import predicted_rewards
from memlab.science.evaluation._prepared import Settings
from memlab.science.evaluation._targets import Refused, Target

__all__ = ["Between", "Findings", "PolicyValue", "separated"]

Between = Callable[[str, str], tuple[Estimate, tuple[Gate, ...]]]
"""The difference of two policies by their names, and the gates of their comparison."""


@dataclass(frozen=True)
class PolicyValue:
    """What one policy is worth on the log.

    ``value`` and ``difference`` are None where a gate is closed; ``estimate`` is what the arithmetic gave all the
    same, for diagnosis. ``lower`` and ``upper`` bound the value, sampling error left aside.
    """

    policy: str
    kind: Literal["re-scored", "re-recalled"]
    value: Estimate | None
    difference: Estimate | None
    adjusted: float
    lower: float
    upper: float
    verdict: str
    estimate: float
    measured: Measured | None
    metrics: dict[str, float]

    @property
    def closed(self) -> tuple[Gate, ...]:
        """The gates that are closed, which withhold the value."""
        if self.measured is None:
            return () if self.value else (ONE_CLUSTER,)
        return tuple(gate for gate in self.measured.gates if gate.closed)

    @property
    def untested(self) -> tuple[Gate, ...]:
        """The gates that the log cannot test; they withhold nothing, and have not passed."""
        return () if self.measured is None else tuple(gate for gate in self.measured.gates if gate.untested)

    @property
    def needed(self) -> int | None:
        """How many more recalls like these would give it a value: 0 if it has one, None where they alone would not."""
        return recalls_to_open(self.closed)


@dataclass(frozen=True, repr=False)
class Findings:
    """Policies on one log, best first, as data; ``Evaluation`` shows them.

    ``refusals`` are policies that this log cannot evaluate; ``notes`` what was left out of the log and why; ``method``
    how intervals were made. ``needed``: the two best policies that have a value, and how many recalls like these would
    separate them; where nothing but the baseline has a value, the policy that is nearest to one, the baseline, and the
    recalls that it needs. None where recalls like these would not do. Each row has a ``needed`` of its own.
    """

    rows: tuple[PolicyValue, ...]
    refusals: tuple[Refused, ...]
    notes: tuple[str, ...]
    settings: Settings
    baseline: str
    method: str
    recalls: int
    clusters: int
    needed: tuple[str, str, int] | None
    given: tuple[str, ...]
    _log: Log = field(repr=False)
    _targets: tuple[Target, ...] = field(repr=False)
    _schema: pl.Schema = field(repr=False)
    _features: tuple[str, ...] = field(repr=False)
    _lab: Any = field(repr=False)
    _between: Between = field(repr=False)

    @cached_property
    def model_values(self) -> dict[str, float]:
        """The direct method: what a model of rewards expects each policy to be worth. An extrapolation, not a result.

        NaN where the model has too little to learn from, or the policy was re-recalled (its pool has other features).
        """
        if self.settings.measure == "labels":
            return {}
        expected = self._expected()
        values = {}
        for target in self._targets:
            known = expected is not None and target.kind == "re-scored"
            values[target.name] = float(expected[target.row].sum()) / self.recalls if known else float("nan")  # type: ignore[index]
        return values

    def _expected(self) -> np.ndarray[Any, np.dtype[np.float64]] | None:
        names = [
            name
            for name in self._features
            if (dtype := self._schema.get(name)) is not None and (dtype.is_numeric() or dtype == pl.Boolean)
        ]
        log = self._log
        features = log.pool(names).select(pl.col(name).cast(pl.Float64) for name in names).to_numpy()
        cluster = log.cluster[log.recall]
        return predicted_rewards(features, log.reward, log.answered, cluster, self.settings.reward_range)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """One row a policy, best first, refused ones last.

        ``policy``, ``value``, ``low``, ``high``, ``difference``, ``difference_low``, ``difference_high``, ``p`` (Holm),
        ``lower``, ``upper`` (bounds), ``probes`` (answered, by which it is told from the baseline), ``unsupported``,
        ``untested`` (names of the untested gates, "" for none), ``kind``, ``estimator``, ``verdict``; with labels,
        every metric in place of what concerns feedback.
        """
        labels = self.settings.measure == "labels"
        rows: list[dict[str, object]] = []
        for row in self.rows:
            record: dict[str, object] = {
                "policy": row.policy,
                **_parts("", row.value),
                **_parts("difference", row.difference),
                "p": _known(row.adjusted),
            }
            if labels:
                record |= row.metrics
            else:
                assert row.measured is not None
                record |= {
                    "lower": _known(row.lower),
                    "upper": _known(row.upper),
                    "probes": row.measured.probes,
                    "unsupported": _known(row.measured.unsupported),
                    "untested": ", ".join(gate.name for gate in row.untested),
                }
            estimator = self.settings.metric if labels else self.settings.estimator
            rows.append(record | {"kind": row.kind, "estimator": estimator, "verdict": row.verdict})
        refused = [{"policy": one.policy, "kind": "refused", "verdict": "refused"} for one in self.refusals]
        numbers = ("value", "low", "high", "difference", "difference_low", "difference_high", "p")
        overrides = dict.fromkeys(numbers, pl.Float64) if rows else {}
        return pl.DataFrame([*rows, *refused], infer_schema_length=None, schema_overrides=overrides)

    @checked
    def pairs(self, adjust: Literal["holm", "bh"] = "holm") -> pl.DataFrame:
        """Every pair of policies that have a value: a row each, in the order of the values.

        ``policy``, ``other``, ``difference`` (of the one less the other), ``low``, ``high``, ``p`` (adjusted over all
        pairs), ``verdict`` ("better", "worse", "not separated"; "withheld" where a gate of that pair is closed, and
        then no numbers), ``untested`` (names of the untested gates of that pair). ``adjust``: "holm" keeps
        the probability of any wrong finding, "bh" (Benjamini & Hochberg 1995) the share of wrong ones among the
        findings.

        >>> ev.pairs(adjust="bh")                                                          # doctest: +SKIP
        """
        names = [row.policy for row in self.rows if row.value is not None]
        found = [(a, b, *self._between(a, b)) for a, b in combinations(names, 2)]
        passed = [not any(gate.closed for gate in gates) for *_, gates in found]
        known = [gap.p if told else nan for (_, _, gap, _), told in zip(found, passed, strict=True)]
        adjusted = holm(known) if adjust == "holm" else benjamini_hochberg(known)
        rows: list[tuple[object, ...]] = []
        for (a, b, gap, gates), told, p in zip(found, passed, adjusted, strict=True):
            parts = [_known(part) if told else None for part in (gap.value, gap.low, gap.high)]
            verdict = separated(gap, p, self.settings.level) if told else "withheld"
            rows.append((a, b, *parts, _known(p), verdict, ", ".join(gate.name for gate in gates if gate.untested)))
        texts, numbers = ("policy", "other"), ("difference", "low", "high", "p")
        schema = dict.fromkeys(texts, pl.String) | dict.fromkeys(numbers, pl.Float64)
        schema |= dict.fromkeys(("verdict", "untested"), pl.String)
        return pl.DataFrame(rows, schema=schema, orient="row")

    @cached_property
    def diagnostics(self) -> pl.DataFrame:
        """One row a policy and gate, and the raw ``estimate`` of the policy.

        ``figure``, ``threshold``, ``state`` ("open", "closed", "untested", "not needed"), ``open`` (true or false; null
        where nothing was tested), ``finding`` and ``advice`` (of a closed or untested gate).
        """
        rows = [
            {
                "policy": row.policy,
                "gate": gate.name,
                "figure": float(gate.figure),
                "threshold": gate.threshold,
                "state": gate.state,
                "open": gate.open if gate.open or gate.closed else None,
                "finding": "" if gate.open else gate.finding,
                "advice": "" if gate.open else gate.advice,
                "estimate": row.estimate,
                "largest_weight": float(row.measured.weights[0]) if len(row.measured.weights) else None,
            }
            for row in self.rows
            if row.measured is not None
            for gate in row.measured.gates
        ]
        schema = {
            "policy": pl.String,
            "gate": pl.String,
            "figure": pl.Float64,
            "threshold": pl.String,
            "state": pl.String,
            "open": pl.Boolean,
            "finding": pl.String,
            "advice": pl.String,
            "estimate": pl.Float64,
            "largest_weight": pl.Float64,
        }
        return pl.DataFrame(rows, schema=schema)

    @property
    def silent(self) -> float:
        """The share of what was shown whose reward is not known."""
        return self._log.silent

    @property
    def open_windows(self) -> int:
        """Recalls that were left out because their horizon had not closed."""
        return self._log.open

    @property
    def ranked(self) -> bool:
        """Whether at least two policies passed their gates."""
        return sum(row.value is not None for row in self.rows) > 1

    @checked
    def target(self, policy: str) -> Target:
        """What this policy would have shown."""
        for target in self._targets:
            if target.name == policy:
                return target
        raise UnknownName("evaluated policy", policy, [target.name for target in self._targets])

    @checked
    def disagreements(self, a: str, b: str, n: Count = 5) -> Disagreements:
        """The ``n`` recalls on which two policies differ most, with the items and the terms of their scores."""
        return disagreements(self._log, self.target(a), self.target(b), n, schema=self._schema, lab=self._lab)

    @property
    def pair(self) -> tuple[str, str] | None:
        """The two policies that are most worth comparing: the best and the baseline, or the next."""
        names = [row.policy for row in self.rows]
        if len(names) < 2:
            return None
        others = [name for name in names if name != self.baseline]
        return others[0], self.baseline if self.baseline in names else others[1]


def separated(gap: Estimate | None, adjusted: float, level: float) -> str:
    """The verdict on a difference, by its adjusted p."""
    if gap is None:
        return "ranked, without a baseline to compare with"
    if adjusted < 1 - level:
        return "better" if gap.low > 0 or (gap.value > 0 and not gap.high < 0) else "worse"
    return "not separated"


def _parts(name: str, estimate: Estimate | None) -> dict[str, object]:
    prefix = f"{name}_" if name else ""
    values = (None, None, None) if estimate is None else (estimate.value, estimate.low, estimate.high)
    known = [None if value is None else _known(value) for value in values]
    return {name or "value": known[0], f"{prefix}low": known[1], f"{prefix}high": known[2]}


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value

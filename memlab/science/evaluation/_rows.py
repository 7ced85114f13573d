"""Rank policies by values and gates, from a log in memory or from sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from memlab.science.evaluation._evaluation import NO_CHANCE, Between, PolicyValue, name_verdict
from memlab.science.evaluation._intervals import Estimate, adjust_all
from memlab.science.evaluation._log import Missing
from memlab.science.evaluation._measure import Compared, Measured, recalls_needed
from memlab.science.evaluation._targets import Ranker
from memlab.science.evaluation._tests import Gate


class Ranked(NamedTuple):
    """The rows of an evaluation, the forecast of recalls, and the comparison of a pair."""

    rows: tuple[PolicyValue, ...]
    needed: tuple[str, str, int] | None
    between: Between


def rank_policies(
    kinds: Mapping[str, Literal["re-scored", "re-recalled"]],
    baseline: str,
    level: float,
    recalls: int,
    compare: Callable[[str, str | None], Compared],
    measure: Callable[[Compared], Measured],
    state_fact: Callable[[str], Compared | None],
) -> Ranked:
    """Rank policies by their values, and withhold the values of policies with a closed gate.

    ``kinds`` has the policies by name. ``compare`` estimates the value of a policy and its
    difference to another, ``measure`` checks the gates of a comparison, and ``state_fact`` returns
    the observed value of a policy that logged. These functions read a log in memory, or the sums of
    a larger log.
    """
    estimates, measured = {}, {}
    for name in kinds:
        other = baseline if baseline in kinds and name != baseline else None
        estimates[name] = compare(name, other)
        measured[name] = measure(estimates[name])
    passed = {
        name
        for name, measurement in measured.items()
        if not any(gate.closed for gate in measurement.gates)
    }
    family = [
        name for name in estimates if name in passed and baseline in passed and name != baseline
    ]
    differences = [estimates[name].difference for name in family]
    # Only reported comparisons belong to the family of the adjustment.
    adjusted = dict(zip(family, adjust_all(differences, level), strict=True))  # type: ignore[arg-type]
    rows = []
    for name, compared in estimates.items():
        ranked, (gap, p) = name in passed, adjusted.get(name, (None, np.nan))
        fact = None if ranked else state_fact(name)
        source = compared if fact is None else fact
        verdict = (
            "baseline"
            if name == baseline and (ranked or fact)
            else "observed"
            if fact
            else "withheld"
            if not ranked
            else name_verdict(gap, p, level)
        )
        rows.append(
            PolicyValue(
                name,
                kinds[name],
                source.value if ranked or fact else None,
                gap,
                p,
                source.lower,
                source.upper,
                verdict,
                source.value.value,
                measured[name],
                {},
            )
        )
    ordered = sort_rows(rows)

    def between(first: str, second: str) -> tuple[Estimate, tuple[Gate, ...]]:
        """Return the estimated difference of two policies, and the gates of their comparison."""
        compared = compare(first, second)
        assert compared.difference is not None
        return compared.difference, measure(compared).gates

    return Ranked(ordered, _forecast_recalls(ordered, baseline, recalls, level, compare), between)


def _forecast_recalls(
    rows: Sequence[PolicyValue],
    baseline: str,
    recalls: int,
    level: float,
    compare: Callable[[str, str | None], Compared],
) -> tuple[str, str, int] | None:
    """Forecast how many recalls distinguish the two best policies with a power of .8.

    Returns the two policies and the number of recalls. If fewer than two policies have a value, it returns the
    policy that needs the fewest recalls for a value, the baseline, and the recalls until that value. The result is
    None if nothing can be forecast.
    """
    best = [row.policy for row in rows if row.value is not None][:2]
    if len(best) < 2:
        candidates = [
            (row.needed, row.policy)
            for row in rows
            if row.value is None and row.needed and row.policy != baseline
        ]
        if not candidates:
            return None
        fewest, policy = min(candidates)
        return policy, baseline, recalls + fewest
    count = recalls_needed(compare(*best), recalls, level)
    return None if count is None else (best[0], best[1], count)


def sort_rows(rows: list[PolicyValue]) -> tuple[PolicyValue, ...]:
    """Sort policies by value, best first; policies without a value come last."""
    valued = [row for row in rows if row.value is not None]
    valued.sort(key=lambda row: np.inf if np.isnan(row.estimate) else -row.estimate)
    return (*valued, *(row for row in rows if row.value is None))


def name_logging(rankers: Sequence[Ranker], packs: Sequence[str | None]) -> set[str]:
    """Return the names of the logging policies: the logged ranking, and the log's only pack."""
    return {"logged", *(ranker.name for ranker in rankers if [ranker.hash] == packs)}


def describe_assumptions(
    missing: Missing, silent: float, *, without_chance: bool, pool_unknown: bool
) -> list[str]:
    """Return a sentence for each assumption of the estimates that the log cannot test.

    ``without_chance`` says that no item was randomised though propensities are known,
    ``pool_unknown`` that a candidate without a propensity was not shown.
    """
    notes = []
    if missing == "inverse" and silent:
        notes.append(
            "Missing feedback is assumed to depend on the logged features and the position alone."
        )
    if without_chance:
        notes.append(NO_CHANCE)
    if pool_unknown:
        notes.append(
            "The log does not record which other items could have been shown, so the share of unsupported items is unknown."
        )
    return notes

"""The linear policies with which a search begins: weighted sums of features, fitted to pairs of candidates."""

from __future__ import annotations

import numpy as np

from memlab.errors import PolicyError
from memlab.kernel.base.arrays import Floats, Ints
from memlab.kernel.language import Policy
from memlab.kernel.policies import FEATURES
from memlab.science.evolution._data import Data, Part
from memlab.science.evolution._matrix import LabelGoal
from memlab.science.evolution._search import score_program
from memlab.science.regression import fit_logistic

_CELLS = 2_000_000
"""The pairs times the features that are read, which bounds a fit to a second."""
_PENALTIES = 1e-3, 1e-4, 1e-2
"""The penalties of half the squared weights for each pair. The selection part chooses one; the first drops terms."""
_TERMS = 20, 10
"""The maximum numbers of terms of the two policies: what is bred from longer ones takes several times as long to score."""


def fit_linear(data: Data, seed: int) -> list[Policy]:
    """Fit linear policies to the search part; the selection part chooses their penalties.

    A term is a number as it is, a number scaled within its recall, or a boolean as 0 or 1. The fit is a
    logistic regression of which candidate of a pair is worth more. Half of the terms, those of the
    smallest weights, are dropped until few are left. There is no policy if no two candidates differ.
    """
    part, inputs = data.parts["search"], data.signature.inputs
    rng = np.random.default_rng((seed, len(part.log)))
    better, worse = _pair(part, rng, _CELLS // len(inputs))
    terms: list[tuple[str, str, float]] = []
    columns: list[Floats] = []
    for name, item in inputs.items() if len(better) > 1 else ():
        certain = name in FEATURES and not FEATURES[name].nullable
        blank = "{}" if certain else "(if-null {} 0)"
        numbers = [blank.format(name), blank.format(f"(min-max {name})")]
        for term in {"num": numbers, "bool": [f"(if {name} 1 0)"]}.get(item.type, []):
            try:  # a foreign log may have a name that cannot be written, or that of an operation
                probe = data.compile(f"(fn [{name}] (+ (* 1 {term}) (if-null (min-max 0) 0)))")
            except PolicyError:
                continue
            values = part.matrix.scores(probe)
            with np.errstate(invalid="ignore", over="ignore"):
                difference = values[better] - values[worse]
                scale = float(np.sqrt(np.mean(difference**2)))
            if 0 < scale < np.inf:
                terms.append((name, term, scale))
                columns.append(difference / scale)
    if not terms:
        return []
    # Every other pair is turned round, so that both outcomes occur and the intercept is about 0.
    turned = np.where(np.arange(len(better)) % 2, -1.0, 1.0)
    table = np.column_stack(columns) * turned[:, None]

    def fit(chosen: Ints, penalty: float) -> Floats:
        """Return the weights of some terms."""
        # The penalty of `fit_logistic` is 1, so that of smaller columns is larger.
        shrink = 1 / np.sqrt(penalty * len(table))
        return np.asarray(fit_logistic(table[:, chosen] * shrink, turned > 0)[:-1] * shrink)

    def write(chosen: Ints, weights: Floats) -> Policy:
        """Return the policy of some terms."""
        names = dict.fromkeys(terms[i][0] for i in chosen)
        pairs = zip(chosen, weights, strict=True)
        total = " ".join(f"(* {weight / terms[i][2]:.3g} {terms[i][1]})" for i, weight in pairs)
        return data.compile(f"(fn [{' '.join(names)}] (+ {total}))")

    chosen, policies = np.arange(len(terms)), []
    for limit in _TERMS:
        while len(chosen) > limit:
            order = np.argsort(-np.abs(fit(chosen, _PENALTIES[0])), kind="stable")
            chosen = np.sort(chosen[order[: (len(chosen) + 1) // 2]])
        fitted = [write(chosen, fit(chosen, penalty)) for penalty in _PENALTIES]
        policies.append(
            max(
                fitted,
                key=lambda policy: score_program(data.parts["selection"], policy, (), "").value,
            )
        )
    return policies


def _pair(part: Part, rng: np.random.Generator, limit: int) -> tuple[Ints, Ints]:
    """Return the better and the worse candidates of up to ``limit`` pairs, from recalls in random order."""
    log, goal = part.log, part.goal
    if isinstance(goal, LabelGoal):
        worth = np.zeros(len(log.recall))
        worth[goal.rows] = 1.0
    else:
        worth = np.where(log.answered, log.reward, np.nan)
    bounds = np.searchsorted(log.recall, np.arange(len(log) + 1))
    pairs, count = [np.empty((2, 0), dtype=np.int64)], 0
    for recall in rng.permutation(len(log)):
        own = worth[bounds[recall] : bounds[recall + 1]]
        pairs.append(np.array(np.nonzero(own[:, None] > own)) + bounds[recall])
        count += pairs[-1].shape[1]
        if count >= limit:
            break
    better, worse = np.hstack(pairs)[:, :limit]
    return better, worse

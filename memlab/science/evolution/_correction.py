"""The correction of the start: a weighted sum of features that is added to it, fitted to pairs of candidates."""

from __future__ import annotations

import numpy as np

from memlab.errors import PolicyError
from memlab.kernel.base.arrays import Floats, Ints
from memlab.kernel.language import Policy
from memlab.kernel.policies import FEATURES
from memlab.science.evolution._archive import Program
from memlab.science.evolution._data import Data, Part
from memlab.science.evolution._matrix import LabelGoal
from memlab.science.evolution._search import summarise
from memlab.science.regression import fit_logistic
from memlab.subjects.lens import replace, subtrees

_CELLS = 2_000_000
"""The pairs times the features that are read, which bounds a fit to a second."""
_PENALTIES = 10.0, 1.0, 0.1, 0.01
"""The penalties of half the squared weights for each pair."""
_FOLDS = 5
"""The maximum number of parts of the clusters that are left out in turn."""
_PAIRS, _BETTER = ((15, 10), (0, 25)), 5
"""The worse candidates of each of 5: those that the start ranks highest, and random ones. A weak start needs the second."""
_FREE = 30.0
"""The factor of the start's column, with which the penalty of its weight is negligible."""


def fit_correction(data: Data, seed: int, last: str = "selection") -> tuple[Policy, Program] | None:
    """Fit a weighted sum of all features that is added to the start, to the parts up to the last one given.

    A term is a number as it is, a number scaled within its recall, or a boolean as 0 or 1. The fit is a
    logistic regression of which candidate of a pair is worth more, with the start as another term that
    has no penalty. Parts of the clusters are left out in turn. The pairs and the penalty are the first of
    those with the best goal on what is left out.

    Returns the policy, and what the fits have on the clusters of the last part that they did not read.
    Returns None if these fits are not better than the start on all clusters left out.
    """
    code = list(data.parts).index(last)
    recalls = np.flatnonzero(data.codes <= code)
    part = data.read(recalls)
    groups = np.unique(data.units[recalls], return_inverse=True)[1] % _FOLDS
    start = part.matrix.scores(data.start)

    def measure(totals: Floats) -> float:
        """Return the goal over all recalls."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(part.goal.statistic(totals.sum(axis=0)))

    best, policy = part.goal.totals(start), None
    for pairs in _PAIRS:
        rng = np.random.default_rng((seed, len(recalls)))
        better, worse = _pair(part, rng, _CELLS // len(data.signature.inputs), start, *pairs)
        of_pair = groups[part.log.recall[better]]
        if len(of_pair) - np.bincount(of_pair, minlength=1).max() < 2:
            continue  # nothing would be fitted if the clusters with pairs are left out
        terms, table = _read_terms(data, part, start, better, worse)
        for penalty in _PENALTIES:
            totals = np.empty_like(best)
            for group in set(groups.tolist()):
                own = _write(data, terms, _fit(table[of_pair != group], penalty))
                totals[groups == group] = part.goal.totals(part.matrix.scores(own))[groups == group]
            if measure(totals) > measure(best):
                best, policy = totals, _write(data, terms, _fit(table, penalty))
    if policy is None:
        return None
    left_out = best[data.codes[recalls] == code]
    return policy, summarise(data.parts[last], policy, left_out, (data.start.hash,), "correction")


def _write(data: Data, terms: list[tuple[str, float]], weights: Floats) -> Policy:
    """Return a weighted sum of terms, of which the first is the start."""
    sums = [f"(* {w / size:.5g} {term})" for (term, size), w in zip(terms, weights, strict=True)]
    # Sums of ten, because a chain of operations has a limit.
    tens = [f"(+ {' '.join(sums[i : i + 10])})" for i in range(0, len(sums), 10)]
    return replace(data.start, (), f"(+ {' '.join(tens)})", extend=True)


def _read_terms(
    data: Data, part: Part, start: Floats, better: Ints, worse: Ints
) -> tuple[list[tuple[str, float]], Floats]:
    """Return the text and the scale of each term, first the start, and its scaled differences in pairs of candidates."""
    with np.errstate(invalid="ignore"):
        own = np.nan_to_num(start[better] - start[worse], nan=0.0, posinf=0.0, neginf=0.0)
    scale = float(np.sqrt(np.mean(own**2))) or np.inf
    terms, columns = [(subtrees(data.start)[0].source, scale)], [own / scale]
    for name, item in data.signature.inputs.items():
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
                terms.append((term, scale))
                columns.append(difference / scale)
    return terms, np.column_stack(columns)


def _fit(table: Floats, penalty: float) -> Floats:
    """Return the weights of columns with which the sums of rows are positive; the first has no penalty."""
    # The penalty of `fit_logistic` is 1, so that of smaller columns is larger.
    shrink = np.full(table.shape[1], 1 / np.sqrt(penalty * len(table)))
    shrink[0] = _FREE
    # Every other pair is turned round, so that both outcomes occur and the intercept is about 0.
    turned = np.where(np.arange(len(table)) % 2, -1.0, 1.0)
    return np.asarray(fit_logistic(table * shrink * turned[:, None], turned > 0)[:-1] * shrink)


def _pair(
    part: Part, rng: np.random.Generator, limit: int, start: Floats, hard: int, drawn: int
) -> tuple[Ints, Ints]:
    """Return the better and the worse candidates of up to ``limit`` pairs, from recalls in random order.

    A better candidate is paired with ``hard`` worse ones that the start ranks highest, and with ``drawn`` random ones.
    """
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
        above = own[:, None] > own
        scores = start[bounds[recall] : bounds[recall + 1]]
        chosen = np.flatnonzero(above.any(axis=1))
        above[chosen[_BETTER:]] = False
        for index in chosen[:_BETTER]:
            row = above[index]
            others = np.flatnonzero(row)
            row[:] = False
            row[others[np.argsort(-scores[others], kind="stable")][:hard]] = True
            row[rng.choice(others, min(drawn, len(others)), replace=False)] = True
        pairs.append(np.array(np.nonzero(above)) + bounds[recall])
        count += pairs[-1].shape[1]
        if count >= limit:
            break
    better, worse = np.hstack(pairs)[:, :limit]
    return better, worse

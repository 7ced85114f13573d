"""``lab.policies.calibrate``: fit the slot ``known`` to the active ranking on labelled questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arrays import Flags, Floats
from memlab.kernel.base.clock import from_micros
from memlab.kernel.base.display import Report
from memlab.kernel.recall import Hits
from memlab.science.regression import fit_logistic, predict_chance
from memlab.subjects.questions.questions import read_asked

MINIMUM = 20
"""The minimum number of questions: each gives an answerable and an unanswerable case, ten for each weight."""

_FOLDS = 5
"""Folds of the cross-validation: each fit sees 80% of the questions."""
_ODDS = 1.5
"""The odds that a question has an answer, as in the fit of the default pack (experiments/known.py)."""

# The margin and the lead are shares of the spread of scores, so that they fit a recall-score of any scale.
_POLICY = """(fn [score late coverage names-other names-speaker]
  "Probability of an answer, fitted by lab.policies.calibrate on {questions} questions."
  (let [first (= (slate-rank score) 1)
        spread (max 1e-9 (- (slate-max score) (slate-min score)))
        lead (- (slate-max (if names-other null score)) (slate-max (if names-other score null)))]
    (sigmoid (+ {constant:.3f}
                (* {margin:.3f} (/ (- (slate-max score) (slate-mean score)) spread))
                (* {lead:.3f} (if (> (slate-max (if names-speaker 1 0)) 0) (if-null (/ lead spread) 0) 0))
                (* {late:.3f} (if-null (slate-max (if first late null)) 0))
                (* {coverage:.3f} (if-null (slate-max (if first coverage null)) 0))))))"""


@dataclass(frozen=True, repr=False)
class Calibration(Report):
    """A fit of the slot ``known``; made by ``lab.policies.calibrate``.

    Parameters
    ----------
    questions
        The number of questions. Each was recalled with its answer, and without the memories that
        answer it.
    auc
        The probability that a question with its answer has the higher value than one without, by
        fits on other questions.
    below
        The share of questions with their answer whose held-out value is below ``known-floor``, so
        that a recall would show fewer results.
    policy
        The text of the fitted policy.
    version
        The number of the installed version of the slot; None if it was not installed.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> ids = lab.remember([f"Door {number} has code {number * 7}." for number in range(20)]).ids
    >>> for number, id in enumerate(ids):
    ...     question = lab.questions.add(f"Which code has door {number}?", wants=[id])
    >>> fitted = lab.policies.calibrate(install=False)
    >>> fitted.questions, fitted.version
    (20, None)
    """

    questions: int
    auc: float
    below: float
    policy: str
    version: int | None

    @property
    def sentence(self) -> str:
        """One sentence about the quality of the fit."""
        version = "Not installed" if self.version is None else f"Version {self.version} of known"
        return (
            f"{version}: fitted on {self.questions} questions. On held-out questions, the AUC of answerable questions "
            f"against unanswerable ones is {self.auc:.2f}, and {self.below:.0%} of the answerable ones are below the floor."
        )

    def _display(self) -> object:
        weak = (
            "It hardly distinguishes them: read the probabilities as a constant."
            if self.auc < 0.6
            else None
        )
        return self.sentence, weak

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as JSON values.

        Returns
        -------
        dict
            The keys are the names of the attributes.
        """
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def calibrate(lab: Any, questions: Any, install: bool, reason: str) -> Calibration:
    """Fit the policy ``known`` to the active ranking; see ``LabPolicies.calibrate``."""
    resolved = read_asked(lab.questions, questions)
    if len(resolved) < MINIMUM:
        raise InputError(
            f"A calibration of known needs at least {MINIMUM} questions, and there are {len(resolved)}. Add questions with "
            'lab.questions.add("...", wants=[...]), or accept proposed ones: lab.questions.propose(). Until then, '
            "recalls show no probability of an answer."
        )
    pack = lab.policies.pack
    now = lab.io.store.clock()
    # Each question twice: with its answer, and without the memories that answer it.
    terms = np.array(
        [_compute_terms(_recall(lab, row, now, keep)) for keep in (True, False) for row in resolved]
    )
    answerable = np.arange(len(terms)) < len(resolved)
    fold = np.tile(np.arange(len(resolved)) % _FOLDS, 2)
    chances = np.zeros(len(terms))
    for number in range(_FOLDS):
        inside = fold == number
        chances[inside] = predict_chance(terms[inside], _fit(terms[~inside], answerable[~inside]))
    weights = _fit(terms, answerable)
    names = ("margin", "lead", "late", "coverage", "constant")
    text = _POLICY.format(questions=len(resolved), **dict(zip(names, weights, strict=True)))
    won = chances[answerable][:, None] - chances[~answerable][None, :]
    version = None
    if install:
        version = lab.policies.install("known", text, reason=reason, compare=0).number
    return Calibration(
        len(resolved),
        float((won > 0).mean() + (won == 0).mean() / 2),
        float((chances[answerable] < pack.number("known-floor")).mean()),
        text,
        version,
    )


def _fit(terms: Floats, answerable: Flags) -> Floats:
    """Return the fitted weights of the terms, with the intercept last, which is shifted by the log of ``_ODDS``."""
    weights = fit_logistic(terms, answerable)
    weights[-1] += np.log(_ODDS)
    return weights


def _recall(lab: Any, row: Mapping[str, Any], now: int, keep: bool) -> Hits:
    """Recall a question's query, with or without the memories that answer the question."""
    where = {} if keep else {"where": ~pl.col("id").is_in([int(id) for id in row["wants"]])}
    hits: Hits = lab.recall(
        row["query"],
        project=row.get("project"),
        viewer=row.get("viewer"),
        at=from_micros(row.get("at") or now),
        log=False,
        **where,
    )
    return hits


def _compute_terms(hits: Hits) -> tuple[float, ...]:
    """Return the values of one recall for the terms of the fitted policy ``known``."""
    slate = hits.slate
    scores = np.where(np.isfinite(slate.scores), slate.scores, np.nan)
    if not np.isfinite(scores).any():
        return 0.0, 0.0, 0.0, 0.0
    numbers = {
        name: np.nan_to_num(np.asarray(slate.numbers[name], dtype=np.float64))
        for name in ("late", "coverage", "names-other", "names-speaker")
    }
    spread = max(1e-9, float(np.nanmax(scores) - np.nanmin(scores)))
    first, other = int(np.nanargmax(scores)), numbers["names-other"] > 0
    lead = 0.0
    if (numbers["names-speaker"] > 0).any() and other.any() and not other.all():
        lead = float(np.nanmax(scores[~other]) - np.nanmax(scores[other])) / spread
    margin = float(np.nanmax(scores) - np.nanmean(scores)) / spread
    return margin, lead, float(numbers["late"][first]), float(numbers["coverage"][first])

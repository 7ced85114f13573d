"""Compare policies on the feedback of a log, or on labels.

Feedback is what users did with the memories that a recall showed them. Labels are complete
judgements of which memories answer a question. Each has its own metrics, and no figure mixes the
two. The function ``evaluate`` estimates the value of policies on a log, with feedback or with
labels. The function ``tune`` searches the parameters of a policy. Both need a log, but no lab.
"""

from typing import Any

from memlab.errors import missing_name
from memlab.science.evaluation._basis import Basis
from memlab.science.evaluation._disagreements import Disagreement, Disagreements
from memlab.science.evaluation._evaluate import evaluate
from memlab.science.evaluation._evaluation import Evaluation, PolicyValue
from memlab.science.evaluation._failures import PLACES, Failures, failures
from memlab.science.evaluation._intervals import Estimate, cluster_interval
from memlab.science.evaluation._labels import METRICS, Judged, judge, measure
from memlab.science.evaluation._merged import Sums
from memlab.science.evaluation._observed import Observed
from memlab.science.evaluation._partial import partial
from memlab.science.evaluation._periods import (
    CONFOUNDED,
    Earnings,
    Period,
    Periods,
    compare_periods,
)
from memlab.science.evaluation._plan import Plan, plan
from memlab.science.evaluation._targets import BASELINES, PolicySpec, RecallsAgain, Refused
from memlab.science.evaluation._tests import GATES, Gate
from memlab.science.evaluation._tune import Tuning, tune
from memlab.science.evaluation._verdict import Verdict, Verdicts, verdict

__all__ = [
    "BASELINES",
    "CONFOUNDED",
    "GATES",
    "METRICS",
    "PLACES",
    "Basis",
    "Disagreement",
    "Disagreements",
    "Earnings",
    "Estimate",
    "Evaluation",
    "Failures",
    "Gate",
    "Judged",
    "Observed",
    "Period",
    "Periods",
    "Plan",
    "PolicySpec",
    "PolicyValue",
    "RecallsAgain",
    "Refused",
    "Sums",
    "Tuning",
    "Verdict",
    "Verdicts",
    "cluster_interval",
    "compare_periods",
    "evaluate",
    "failures",
    "judge",
    "measure",
    "partial",
    "plan",
    "tune",
    "verdict",
]

_REMOVED = {"estimators": "memlab.evaluate for a log of recalls; obp or vw-estimators for arrays"}
"""Removed public names, with what to use instead."""


def __getattr__(name: str) -> Any:
    """Raise an AttributeError that names the replacement of a removed name."""
    raise missing_name(__name__, name, _REMOVED)

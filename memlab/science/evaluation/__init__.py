"""Which policy remembers better: on a log's feedback, and on labels.

Feedback is what people did with what they were shown; labels are complete judgements of what answers a question.
They are two kinds of input with metrics of their own and are never mixed. ``evaluate`` reads either beside a log;
``tune`` searches a policy's parameters. It needs a log and no lab.
"""

from typing import Any

from memlab.errors import missing_name
from memlab.science.evaluation._disagreements import Disagreement, Disagreements
from memlab.science.evaluation._evaluate import evaluate
from memlab.science.evaluation._evaluation import Evaluation, PolicyValue
from memlab.science.evaluation._failures import PLACES, Failures, failures
from memlab.science.evaluation._intervals import Estimate, cluster_interval
from memlab.science.evaluation._labels import METRICS, Judged, judge, measure
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
    "Disagreement",
    "Disagreements",
    "Earnings",
    "Estimate",
    "Evaluation",
    "Failures",
    "Gate",
    "Judged",
    "Period",
    "Periods",
    "Plan",
    "PolicySpec",
    "PolicyValue",
    "RecallsAgain",
    "Refused",
    "Tuning",
    "Verdict",
    "Verdicts",
    "cluster_interval",
    "compare_periods",
    "evaluate",
    "failures",
    "judge",
    "measure",
    "plan",
    "tune",
    "verdict",
]

_REMOVED = {"estimators": "memlab.evaluate for a log of recalls; obp or vw-estimators for arrays"}
"""Public names of earlier versions, and what to use instead."""


def __getattr__(name: str) -> Any:
    raise missing_name(__name__, name, _REMOVED)

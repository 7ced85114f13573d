"""Which policy remembers better: on a log's feedback, on labels, and on labelled conversations.

Feedback is what people did with what they were shown; labels are complete judgements of what answers a question.
They are two kinds of input with metrics of their own and are never mixed. ``evaluate`` reads either beside a log;
``bench_locomo`` runs packs through the engine on labelled conversations; ``tune`` searches a policy's parameters.
"""

from memlab.evaluation._baselines import BASELINES
from memlab.evaluation._bench import bench_locomo
from memlab.evaluation._clusters import Estimate
from memlab.evaluation._disagreements import Disagreement, Disagreements
from memlab.evaluation._evaluate import evaluate
from memlab.evaluation._evaluation import Evaluation, PolicyValue
from memlab.evaluation._gates import GATES, Gate
from memlab.evaluation._intervals import Interval, cluster_interval
from memlab.evaluation._metrics import METRICS, Judged, judge, measure
from memlab.evaluation._rankers import PolicySpec
from memlab.evaluation._result import BenchResult, SystemResult
from memlab.evaluation._targets import RecallsAgain, Refused
from memlab.evaluation._tune import Tuning, tune

__all__ = [
    "BASELINES",
    "GATES",
    "METRICS",
    "BenchResult",
    "Disagreement",
    "Disagreements",
    "Estimate",
    "Evaluation",
    "Gate",
    "Interval",
    "Judged",
    "PolicySpec",
    "PolicyValue",
    "RecallsAgain",
    "Refused",
    "SystemResult",
    "Tuning",
    "bench_locomo",
    "cluster_interval",
    "evaluate",
    "judge",
    "measure",
    "tune",
]

"""How well a pack remembers, measured against labels.

Labels are complete judgements of what answers a question; they are one kind of input, with metrics of their own
(``measure``). ``bench_locomo`` runs packs through the engine on labelled conversations.
"""

from memlab.evaluation._baselines import BASELINES
from memlab.evaluation._bench import bench_locomo
from memlab.evaluation._intervals import Interval, cluster_interval
from memlab.evaluation._metrics import METRICS, Judged, judge, measure
from memlab.evaluation._result import BenchResult, SystemResult

__all__ = [
    "BASELINES",
    "METRICS",
    "BenchResult",
    "Interval",
    "Judged",
    "SystemResult",
    "bench_locomo",
    "cluster_interval",
    "judge",
    "measure",
]

"""Internals of the evaluation that ``memlab.evolve``, experiments and guards use.

The public interface is ``memlab.science.evaluation``.
"""

from memlab.science.evaluation._evidence import (
    ARM,
    Evidence,
    TopK,
    gather_evidence,
    value_statistic,
)
from memlab.science.evaluation._intervals import Adjustment, Sample, Statistic, adjust_all, mean
from memlab.science.evaluation._item_tests import Tests
from memlab.science.evaluation._labels import (
    Gold,
    LabelsRecalls,
    frame_of_labels,
    read_gold,
    split_metric,
)
from memlab.science.evaluation._log import RESERVED, Horizon, Log, Missing
from memlab.science.evaluation._measure import compare, measure
from memlab.science.evaluation._prepared import Prepared, prepare
from memlab.science.evaluation._reward_model import select_features
from memlab.science.evaluation._sequence import excluded_mean, log_mixture, observation_penalties
from memlab.science.evaluation._targets import rank_top_k
from memlab.science.evaluation._tests import untested_sentence
from memlab.science.evaluation._tune import search_point

__all__ = [
    "ARM",
    "RESERVED",
    "Adjustment",
    "Evidence",
    "Gold",
    "Horizon",
    "LabelsRecalls",
    "Log",
    "Missing",
    "Prepared",
    "Sample",
    "Statistic",
    "Tests",
    "TopK",
    "adjust_all",
    "compare",
    "excluded_mean",
    "frame_of_labels",
    "gather_evidence",
    "log_mixture",
    "mean",
    "measure",
    "observation_penalties",
    "prepare",
    "rank_top_k",
    "read_gold",
    "search_point",
    "select_features",
    "split_metric",
    "untested_sentence",
    "value_statistic",
]

"""Parts of the evaluation that tests and slow references call; the interface is ``memlab.science.evaluation``."""

from memlab.science.evaluation._duels import Course
from memlab.science.evaluation._intervals import (
    FEW,
    Sample,
    benjamini_hochberg,
    cluster_interval,
    cluster_sums,
    degrees_of_freedom,
    holm,
)
from memlab.science.evaluation._log import closed, horizon_micros, read_answers, read_log
from memlab.science.evaluation._measure import ARM, COLUMNS, difference_statistic, predicted_rewards, value_statistic
from memlab.science.evaluation._periods import Bets, difference_bounds, falls_at, lower_bound, pair_numbers
from memlab.science.evaluation._position import harvest, lot_p, moved_p, random_places
from memlab.science.evaluation._sequence import (
    RATES,
    WEIGHTS,
    level_of,
    log_mixture,
    rate_penalty,
    recalls_of_sequence,
    recalls_to_end,
    sequence,
)
from memlab.science.evaluation._tests import (
    Balance,
    Facts,
    Gate,
    effective_count,
    gates,
    independence_p,
    recalls_to_open,
    rounded,
    untested_sentence,
)

__all__ = [
    "ARM",
    "COLUMNS",
    "FEW",
    "RATES",
    "WEIGHTS",
    "Balance",
    "Bets",
    "Course",
    "Facts",
    "Gate",
    "Sample",
    "benjamini_hochberg",
    "closed",
    "cluster_interval",
    "cluster_sums",
    "degrees_of_freedom",
    "difference_bounds",
    "difference_statistic",
    "effective_count",
    "falls_at",
    "gates",
    "harvest",
    "holm",
    "horizon_micros",
    "independence_p",
    "level_of",
    "log_mixture",
    "lot_p",
    "lower_bound",
    "moved_p",
    "pair_numbers",
    "predicted_rewards",
    "random_places",
    "rate_penalty",
    "read_answers",
    "read_log",
    "recalls_of_sequence",
    "recalls_to_end",
    "recalls_to_open",
    "rounded",
    "sequence",
    "untested_sentence",
    "value_statistic",
]

"""Benchmarks of packs on published conversations, or on a lab of one's own."""

from memlab.science.bench._bench import bench_conversations, bench_lab
from memlab.science.bench._dynamics import DynamicsResult, LivedAbility, bench_dynamics
from memlab.science.bench._forecast import ForecastResult, bench_reviews, bench_wanted
from memlab.science.bench._result import BenchResult, SystemResult

__all__ = [
    "BenchResult",
    "DynamicsResult",
    "ForecastResult",
    "LivedAbility",
    "SystemResult",
    "bench_conversations",
    "bench_dynamics",
    "bench_lab",
    "bench_reviews",
    "bench_wanted",
]

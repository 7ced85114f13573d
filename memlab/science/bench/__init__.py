"""Benchmarks of packs on published conversations, or on your own lab."""

from memlab.science.bench._bench import bench_conversations, bench_lab
from memlab.science.bench._dynamics import DynamicsResult, LivedAbility, bench_dynamics
from memlab.science.bench._result import BenchResult, SystemResult

__all__ = [
    "BenchResult",
    "DynamicsResult",
    "LivedAbility",
    "SystemResult",
    "bench_conversations",
    "bench_dynamics",
    "bench_lab",
]

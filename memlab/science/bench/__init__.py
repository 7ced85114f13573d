"""Benchmarks of packs on published conversations, or on your own lab."""

from memlab.science.bench._answers import Contract
from memlab.science.bench._bench import bench_conversations, bench_lab
from memlab.science.bench._budgets import BudgetResult, bench_budgets
from memlab.science.bench._dynamics import DynamicsResult, LivedAbility, bench_dynamics
from memlab.science.bench._forecast import ForecastResult, bench_reviews, bench_wanted
from memlab.science.bench._reader import read_answer, token_f1
from memlab.science.bench._result import BenchResult, SystemResult

__all__ = [
    "BenchResult",
    "BudgetResult",
    "Contract",
    "DynamicsResult",
    "ForecastResult",
    "LivedAbility",
    "SystemResult",
    "bench_budgets",
    "bench_conversations",
    "bench_dynamics",
    "bench_lab",
    "bench_reviews",
    "bench_wanted",
    "read_answer",
    "token_f1",
]

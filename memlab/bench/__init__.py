"""Packs run through the engine on labelled conversations: ``bench_locomo`` and what it found."""

from memlab.bench._bench import bench_locomo
from memlab.bench._result import BenchResult, SystemResult

__all__ = ["BenchResult", "SystemResult", "bench_locomo"]

"""Parts of benchmarks that experiments use: questions, labs and rankings of packs."""

from memlab.science.bench._bench import (
    PackTask,
    describe_pack,
    digest_lab,
    open_again,
    open_filled,
    open_folder,
    rank_questions,
)
from memlab.science.bench._questions import (
    QUESTION_DELAY,
    collect_questions,
    own_plan,
    own_questions,
)
from memlab.science.bench._result import summarise_rows

__all__ = [
    "QUESTION_DELAY",
    "PackTask",
    "collect_questions",
    "describe_pack",
    "digest_lab",
    "open_again",
    "open_filled",
    "open_folder",
    "own_plan",
    "own_questions",
    "rank_questions",
    "summarise_rows",
]

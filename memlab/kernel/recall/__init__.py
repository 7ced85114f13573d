"""Recall: from a query to a slate of scored candidates, and to hits."""

from memlab.kernel.recall._ending import apply_promote, encode_words, in_recall, read_statuses
from memlab.kernel.recall._features import Candidates
from memlab.kernel.recall._hits import (
    WEAK,
    Hit,
    Hits,
    ScoreExplanation,
    best_span,
    is_weak,
    read_memories,
    similar,
)
from memlab.kernel.recall._mentions import named_dates
from memlab.kernel.recall._moment import Column, Moment, Pool, columns
from memlab.kernel.recall._pipeline import Recaller
from memlab.kernel.recall._population import Filters, Population, Where, WordOrWords
from memlab.kernel.recall._query import Question, QuestionFeatures, first_mention
from memlab.kernel.recall._ranking import (
    ADDED_SHARE,
    ChallengeDraw,
    ChallengerResults,
    Chosen,
    Ranking,
    Selection,
    describe_challenge,
    diversifies,
    drafted,
    draw_challenge,
    generator,
    maximum_draws,
    put_among,
    rank_by_score,
)
from memlab.kernel.recall._stages import Stage

__all__ = [
    "ADDED_SHARE",
    "WEAK",
    "Candidates",
    "ChallengeDraw",
    "ChallengerResults",
    "Chosen",
    "Column",
    "Filters",
    "Hit",
    "Hits",
    "Moment",
    "Pool",
    "Population",
    "Question",
    "QuestionFeatures",
    "Ranking",
    "Recaller",
    "ScoreExplanation",
    "Selection",
    "Stage",
    "Where",
    "WordOrWords",
    "apply_promote",
    "best_span",
    "columns",
    "describe_challenge",
    "diversifies",
    "drafted",
    "draw_challenge",
    "encode_words",
    "first_mention",
    "generator",
    "in_recall",
    "is_weak",
    "maximum_draws",
    "named_dates",
    "put_among",
    "rank_by_score",
    "read_memories",
    "read_statuses",
    "similar",
]

"""Recall: from a question to a slate of scored candidates, and to hits."""

from memlab.kernel.recall._features import Candidates
from memlab.kernel.recall._hits import Hit, Hits, ScoreExplanation, recalled, similar
from memlab.kernel.recall._mentions import named_dates, occurs
from memlab.kernel.recall._moment import Column, Moment, Pool, columns
from memlab.kernel.recall._pipeline import Recaller
from memlab.kernel.recall._plan import STAGES, Run, Stage, coded, in_recall, own_stage, promoted, status_of
from memlab.kernel.recall._population import Filters, Population, Where, WordOrWords
from memlab.kernel.recall._query import Question, QuestionFeatures, first_mention
from memlab.kernel.recall._ranking import Chosen, Ranking, Selection, diversifies, draw_challenge, inclusion

__all__ = [
    "STAGES",
    "Candidates",
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
    "Run",
    "ScoreExplanation",
    "Selection",
    "Stage",
    "Where",
    "WordOrWords",
    "coded",
    "columns",
    "diversifies",
    "draw_challenge",
    "first_mention",
    "in_recall",
    "inclusion",
    "named_dates",
    "occurs",
    "own_stage",
    "promoted",
    "recalled",
    "similar",
    "status_of",
]

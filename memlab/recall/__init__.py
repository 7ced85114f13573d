"""Recall: from a question to a slate of scored candidates, and to hits."""

from memlab.recall._challenge import draw_challenge, inclusion
from memlab.recall._dates import named_dates
from memlab.recall._diversity import Ranking, diversifies
from memlab.recall._entities import first_mention
from memlab.recall._extended import Pool
from memlab.recall._features import Candidates
from memlab.recall._filters import Filters, WordOrWords
from memlab.recall._hits import Hit, Hits, ScoreExplanation, recalled
from memlab.recall._moment import Moment
from memlab.recall._pipeline import Recaller
from memlab.recall._population import Population
from memlab.recall._question import Question, QuestionFeatures
from memlab.recall._reading import Column, columns
from memlab.recall._run import Run
from memlab.recall._selected import Chosen, Selection
from memlab.recall._similar import similar
from memlab.recall._stages import STAGES, Stage, own_stage
from memlab.recall._standing import coded, in_recall, promoted, status_of
from memlab.recall._triggers import occurs
from memlab.recall._where import Where

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

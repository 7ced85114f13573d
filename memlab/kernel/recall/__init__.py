"""Recall: from a question to a slate of scored candidates, and to hits."""

from memlab.kernel.recall._challenge import draw_challenge, inclusion
from memlab.kernel.recall._dates import named_dates
from memlab.kernel.recall._diversity import Ranking, diversifies
from memlab.kernel.recall._entities import first_mention
from memlab.kernel.recall._extended import Pool
from memlab.kernel.recall._features import Candidates
from memlab.kernel.recall._filters import Filters, WordOrWords
from memlab.kernel.recall._hits import Hit, Hits, ScoreExplanation, recalled
from memlab.kernel.recall._moment import Moment
from memlab.kernel.recall._pipeline import Recaller
from memlab.kernel.recall._population import Population
from memlab.kernel.recall._question import Question, QuestionFeatures
from memlab.kernel.recall._reading import Column, columns
from memlab.kernel.recall._run import Run
from memlab.kernel.recall._selected import Chosen, Selection
from memlab.kernel.recall._similar import similar
from memlab.kernel.recall._stages import STAGES, Stage, own_stage
from memlab.kernel.recall._standing import coded, in_recall, promoted, status_of
from memlab.kernel.recall._triggers import occurs
from memlab.kernel.recall._where import Where

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

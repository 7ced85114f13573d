"""Recall: from a question to a slate of scored candidates, and to hits."""

from memlab.recall._hits import Hit, Hits, ScoreExplanation, recalled
from memlab.recall._pipeline import Recaller
from memlab.recall._question import Question

__all__ = ["Hit", "Hits", "Question", "Recaller", "ScoreExplanation", "recalled"]

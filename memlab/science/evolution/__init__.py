"""Search for better policies on logs and labelled questions, judged on held-out data.

Programs are bred by typed mutation and crossover, or proposed by a function or a language model. The
function ``evolve`` searches on one part of the clusters, selects on a second and reports on a third.
"""

from memlab.science.evolution._evolve import evolve
from memlab.science.evolution._propose import ParentEvidence
from memlab.science.evolution._result import Evolved

__all__ = ["Evolved", "ParentEvidence", "evolve"]

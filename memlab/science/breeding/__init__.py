"""Mutation and crossover of policies, for a search over policies.

>>> import numpy as np
>>> from memlab.kernel.language import compile_policy
>>> from memlab.kernel.policies import SLOTS
>>> policy = compile_policy("(fn [recency] (* 2 recency))", SLOTS["recall-score"].signature)
>>> mutate(policy, np.random.default_rng(1)).changed
True
"""

from memlab.science.breeding._breed import crossover, draft_crossover, draft_mutation, mutate

__all__ = ["MUTATIONS", "Offspring", "crossover", "draft_crossover", "draft_mutation", "mutate"]

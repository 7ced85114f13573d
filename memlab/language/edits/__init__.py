"""Policies as text that changes: subtrees, literals, parameters, mutation, crossover, differences."""

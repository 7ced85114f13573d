"""Experiments as objects: packs on data, stored by the hash of all that went in, and compared."""

from memlab.science.experiments._data import digest_data
from memlab.science.experiments._experiment import Comparison, Experiment

__all__ = ["Comparison", "Experiment", "digest_data"]

"""Experiments as objects: packs on data, with results stored by the hash of their inputs."""

from memlab.science.experiments._data import digest_data
from memlab.science.experiments._experiment import Comparison, Experiment

__all__ = ["Comparison", "Experiment", "digest_data"]

"""Histories lived again: the same inputs under another pack, and two labs side by side over time.

again = replay(lab, "companion")
compare(lab, again.lab)
"""

from memlab.science.history._compare import Comparison, compare
from memlab.science.history._replay import Replay, replay

__all__ = ["Comparison", "Replay", "compare", "replay"]

"""``lab.at`` and ``lab.log``: labs of the past or of one viewer, and their events.

>>> again = replay(lab, "companion")                                         # doctest: +SKIP
>>> compare(lab, again.lab)                                                  # doctest: +SKIP
"""

from memlab.science.history._compare import Comparison, compare
from memlab.science.history._replay import Replay, replay

__all__ = ["Comparison", "Replay", "compare", "replay"]

"""``memlab demo``: the main job in one run, offline, on what comes with memlab.

First a conversation: Noor, who watches rivers, tells her assistant Quill what matters to her over three months. The
demo remembers what they said, recalls, explains, takes feedback, swaps a policy while the lab is open, and ranks the
packs on labelled questions. Then a simulated quarter: it is lived with logging and probes, every pack is evaluated
from the log alone, and the result is held against the truth that only the simulator knows. One page tells both.
"""

from memlab.demo._quarter import Quarter, live_quarter
from memlab.demo._result import DemoResult
from memlab.demo._run import CONVERSATION, QUESTION, SLOT, SOURCE, run_demo

__all__ = ["CONVERSATION", "QUESTION", "SLOT", "SOURCE", "DemoResult", "Quarter", "live_quarter", "run_demo"]

"""``memlab demo``: the main job in one run, on a conversation that comes with memlab, offline.

Noor, who watches rivers, tells her assistant Quill what matters to her over three months. The demo remembers what
they said, recalls, explains, takes feedback, swaps a policy while the lab is open, ranks the packs on labelled
questions, and writes one page about it.
"""

from memlab.demo._result import DemoResult
from memlab.demo._run import CONVERSATION, QUESTION, SLOT, SOURCE, run_demo

__all__ = ["CONVERSATION", "QUESTION", "SLOT", "SOURCE", "DemoResult", "run_demo"]

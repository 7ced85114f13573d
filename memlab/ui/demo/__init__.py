"""``memlab demo``: one run, offline, on what comes with memlab, that ends with a page.

Noor, who watches rivers, says to her assistant Quill what matters to her over three months. The demo remembers the
conversation, recalls, explains, takes feedback, swaps a policy while the lab is open, and ranks the packs on labelled
questions. ``memlab demo --full`` adds a simulated quarter: it is lived with logging and probes, every pack is evaluated
from the log alone, and the result is held against the truth that only the simulator knows.
"""

from memlab.ui.demo._run import CONVERSATION, QUESTION, SLOT, SOURCE, DemoResult, run_demo
from memlab.ui.demo._run import draw_terms as draw_terms  # for tests

__all__ = ["CONVERSATION", "QUESTION", "SLOT", "SOURCE", "DemoResult", "run_demo"]

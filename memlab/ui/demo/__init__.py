"""``memlab demo``: an offline run on bundled data that writes a page.

Noor, who monitors rivers, tells her assistant Quill over three months what matters to her. The demo remembers the
conversation, recalls, explains, takes feedback, swaps a policy while the lab is open, and ranks the packs on labelled
questions. The option ``--full`` adds a simulated quarter with logging and exploration. Every pack is evaluated from
the log alone, and the estimates are compared with the true values, which only the simulator knows.
"""

from memlab.ui.demo._run import CONVERSATION, QUESTION, SLOT, SOURCE, DemoResult, run_demo
from memlab.ui.demo._run import draw_terms as draw_terms  # for tests
from memlab.ui.demo._sample import sample_lab

__all__ = ["CONVERSATION", "QUESTION", "SLOT", "SOURCE", "DemoResult", "run_demo", "sample_lab"]

"""The command line: one verb a command, each with ``--json``, a useful exit status and plain errors.

Exit status: 0 done, 1 refused with a reason, 2 a wrong call.
"""

from memlab.ui.cli import _agents, _evaluate, _memories, _policy, _policy_lab, _start, _upkeep
from memlab.ui.cli._base import FORMER, SECTIONS, main

__all__ = ["FORMER", "SECTIONS", "main"]

# Each module adds its commands to the group when it is imported.
_ = (_agents, _evaluate, _memories, _policy, _policy_lab, _start, _upkeep)

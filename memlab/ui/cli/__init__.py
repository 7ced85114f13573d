"""The command line: one command per verb, each with ``--json`` and an exit status.

Exit status: 0 done, 1 refused with a reason, 2 wrong usage.
"""

from memlab.ui.cli import (
    _agents,
    _evaluate,
    _experiment,
    _hook,
    _memories,
    _pack,
    _policy,
    _policy_lab,
    _start,
    _upkeep,
)
from memlab.ui.cli._base import FORMER, SECTIONS, main

__all__ = ["FORMER", "SECTIONS", "main"]

# Each module adds its commands to the group when it is imported.
_ = (
    _agents,
    _evaluate,
    _experiment,
    _hook,
    _memories,
    _pack,
    _policy,
    _policy_lab,
    _start,
    _upkeep,
)

"""The command line: one verb a command, each with ``--json``, a useful exit status and plain errors.

Exit status: 0 done, 1 refused with a reason, 2 a wrong call.
"""

from memlab.ui.cli import (
    _bench,
    _correcting,
    _extract,
    _graph,
    _health,
    _jobs,
    _lab,
    _living,
    _modules,
    _moving,
    _notebook,
    _policy_lab,
    _serve,
    _view,
)
from memlab.ui.cli._base import main

__all__ = ["main"]

# Each module adds its commands to the group when it is imported.
_ = (
    _bench,
    _correcting,
    _extract,
    _graph,
    _jobs,
    _lab,
    _living,
    _modules,
    _moving,
    _notebook,
    _policy_lab,
    _health,
    _serve,
    _view,
)

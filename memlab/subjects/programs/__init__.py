"""Operations as S-expressions: ``(remember "tabs" "preference" 0.8 "30d" ["style"])``, ``(recall "tabs?" 5)``, ...

A text is read by the reader of policies, checked whole, and run by the verbs of a lab with fuel. A memory may hold
such a text and propose it; nothing runs it but a person's consent. Policies that adapt to the log, and files of
policies that are watched, stand here as well. Each module is loaded when a name of it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_WHERE = {
    **dict.fromkeys(
        ("Adapted", "Estimator", "Missing", "OperableLab", "adapt", "of_fall"), "adapting"
    ),
    **dict.fromkeys(("Fall", "find_fall"), "falls"),
    **dict.fromkeys(
        ("Fuel", "LabOperations", "Proposal", "Ran", "Step", "run_program"), "operations"
    ),
    **dict.fromkeys(
        ("OPERATIONS", "Call", "Operation", "Program", "checked_operations", "read_program"),
        "program",
    ),
    **dict.fromkeys(("Change", "Watch"), "watch"),
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)

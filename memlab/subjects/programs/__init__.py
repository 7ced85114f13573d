"""Operations as S-expressions, such as ``(recall "tabs?" 5)``.

A text of operations is parsed and checked completely before it runs. The verbs of a lab run it within limits
(``Fuel``). A memory may contain such a text and propose it, but it runs only with a user's consent. The package also
adapts policies to the log and watches policy files. Each module is imported when one of its names is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

# The module of each public name.
_WHERE = {
    **dict.fromkeys(
        ("Adapted", "Estimator", "Missing", "OperableLab", "adapt", "of_fall"), "adapting"
    ),
    **dict.fromkeys(("Fall", "find_fall"), "falls"),
    **dict.fromkeys(
        ("Fuel", "LabOperations", "Proposal", "Ran", "Step", "run_program"), "operations"
    ),
    **dict.fromkeys(
        ("OPERATIONS", "Call", "Operation", "Program", "check_operations", "read_program"),
        "program",
    ),
    **dict.fromkeys(("Change", "Watch"), "watch"),
}


def __getattr__(name: str) -> Any:
    """Import the module that defines a public name, and return the name's value."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)

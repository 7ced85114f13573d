"""Hooks that update derived fields after an edit."""

from __future__ import annotations

from memlab.kernel.hooks import Hook
from memlab.kernel.verbs.declared import Declared

# Names of functions are strings, so that their modules are imported on first use.
DECLARED = Declared(
    hooks=(
        Hook("rederive-fields", "rederive", "memlab.subjects.rederiving.rederiving:rederive"),
        Hook("retell-facts", "retell", "memlab.subjects.rederiving.rederiving:retell"),
    ),
)

"""The slots ``inject`` and ``uncertain``, by which packs decide on contexts."""

from __future__ import annotations

from pathlib import Path

from memlab.kernel.extension import Extension
from memlab.kernel.language import Input
from memlab.kernel.policies import Slot

EXTENSION = Extension(
    "context",
    "1.0",
    slots=[
        Slot(
            "uncertain",
            "Whether a context marks a memory as uncertain. lab.context evaluates uncertain for all candidates.",
            stages=("memory",),
            returns="bool",
            file=Path(__file__).parent / "defaults" / "uncertain.hy",
        ),
        Slot(
            "inject",
            "Priority of a memory within the token budget of one tier; a memory without a positive "
            "priority is left out. lab.context evaluates inject last, for all scored candidates.",
            inputs=(
                Input(
                    "tier",
                    "num",
                    "the tier: 1 (in every context), 2 (for the task) or 3 (further results, shortened)",
                ),
                Input(
                    "role",
                    "str",
                    "the role of the agent that gets the prompt: coder for agent:coder",
                ),
                Input("in-task", "bool", "the task names a file of the memory, or its folder"),
                Input(
                    "called",
                    "bool",
                    "the task names a trigger, file, module or entity of the memory",
                ),
                Input(
                    "elsewhere",
                    "bool",
                    "the task names files or modules, and no file of the memory belongs to them",
                ),
                Input(
                    "injected",
                    "bool",
                    "the session has received the memory, which is then not injected again",
                ),
                Input("tokens", "num", "the tokens of the memory at full length"),
                Input("budget", "num", "the maximum number of tokens of the tier"),
                Input("rank", "num", "the memory's rank among all scored candidates, from 1"),
                Input("score", "num", "the memory's recall-score"),
                Input(
                    "share",
                    "num",
                    "the memory's recall-score divided by the best one; 1 unless the best one is above 0",
                ),
            ),
            stages=("memory", "query", "spread"),
        ),
    ],
)
"""The extension that declares the slots."""

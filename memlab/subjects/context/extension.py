"""The slots ``inject`` and ``uncertain``, by which packs decide on contexts."""

from __future__ import annotations

from pathlib import Path

from memlab.kernel.extension import Extension
from memlab.kernel.language import Input
from memlab.kernel.policies import Slot

__all__ = ["EXTENSION"]

EXTENSION = Extension(
    "context",
    "1.0",
    slots=[
        Slot(
            "uncertain",
            "Whether a context marks a memory as uncertain. lab.context evaluates it for all candidates.",
            stages=("memory",),
            returns="bool",
            file=Path(__file__).parent / "defaults" / "uncertain.hy",
        ),
        Slot(
            "inject",
            "The priority of a memory within the token budget of one tier; memories without a priority above 0 stay out. "
            "lab.context evaluates it last, for all scored candidates.",
            inputs=(
                Input(
                    "tier",
                    "num",
                    "1: in every context, 2: for the task, 3: further results, shortened",
                ),
                Input(
                    "role",
                    "str",
                    "the role of the agent that gets the prompt: coder for agent:coder",
                ),
                Input("in-task", "bool", "the task names one of its files, or the folder of one"),
                Input(
                    "called",
                    "bool",
                    "the task names its trigger, file, module or entity",
                ),
                Input(
                    "elsewhere",
                    "bool",
                    "the task names files or modules, and none of its files belongs to them",
                ),
                Input(
                    "injected",
                    "bool",
                    "the session has received it; it is not injected twice, whatever its priority",
                ),
                Input("tokens", "num", "its tokens, if it is not shortened"),
                Input("budget", "num", "the tokens of the tier"),
                Input("rank", "num", "its rank among all scored candidates, from 1"),
                Input("score", "num", "its recall-score"),
            ),
            stages=("memory", "query", "spread"),
        ),
    ],
)
"""The extension that declares the slots."""

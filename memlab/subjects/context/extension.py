"""What a context lets a pack decide: the slots ``inject`` and ``uncertain``."""

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
            "Whether a context says of a memory that it is uncertain. lab.context asks it of what it could write.",
            stages=("memory",),
            returns="bool",
            file=Path(__file__).parent / "defaults" / "uncertain.hy",
        ),
        Slot(
            "inject",
            "The priority of a memory within the token budget of one tier; what has none above 0 stays out of it. "
            "lab.context asks it last, of all that was scored.",
            inputs=(
                Input("tier", "num", "1: always there, 2: for the task at hand, 3: asked for"),
                Input(
                    "role",
                    "str",
                    "the role of the agent that the prompt is for: coder, where agent:coder asks",
                ),
                Input("in-task", "bool", "the task names one of its files, or the folder of one"),
                Input(
                    "called",
                    "bool",
                    "the task calls it up by a trigger, a file, a module or an entity",
                ),
                Input(
                    "elsewhere",
                    "bool",
                    "the task names files or modules, and none of its files is theirs",
                ),
                Input(
                    "injected",
                    "bool",
                    "it was injected before in this session, where nothing is injected twice, whatever its priority",
                ),
                Input("tokens", "num", "how many it takes, if it is not cut"),
                Input("budget", "num", "how many the tier has"),
                Input("rank", "num", "its rank among all that was scored, from 1"),
                Input("score", "num", "its recall-score"),
            ),
            stages=("memory", "query", "spread"),
        ),
    ],
)

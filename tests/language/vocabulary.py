"""What random policies are made of: the slots that they fill, words, tags and numbers; and rows of special values."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from typing import Any

from memlab.kernel.language import Input, Signature

__all__ = ["INPUTS", "KINDS", "NUMBERS", "SLOTS", "TAGS", "WORDS", "records"]

WORDS = ("a", "b", "fact", "")
KINDS = ("fact", "event", "goal")
TAGS = ("a", "b", "style", "über")
INPUTS = (
    *(Input(name) for name in ("x", "y", "z", "pair/similarity")),
    Input("p", "bool"),
    Input("q", "bool"),
    Input("s", "str"),
    Input("new/branch", "str"),
    Input("kind", "str", words=KINDS),
    Input("old/kind", "str", words=KINDS),
    Input("tags", "set"),
    Input("query-tags", "set"),
)
SLOTS: dict[str, Signature] = {
    "num": Signature("score", INPUTS, aggregates=True),
    "bool": Signature("eligible", INPUTS, "bool", aggregates=True),
    "str": Signature("label", INPUTS, "str", aggregates=True),
    "word": Signature("promote", INPUTS, "str", words=KINDS),
    "record": Signature("reinforce", INPUTS, "record", fields=("x", "y", "p", "kind")),
    "list": Signature(
        "explore",
        (*INPUTS, Input("tail-n")),
        aggregates=True,
        lists={"acts": "x", "accs": "y", "flags": "p"},
    ),
}
NUMBERS = (
    "0",
    "-0.0",
    "0.0",
    "1",
    "-1",
    "2",
    "0.5",
    "3",
    "4",
    "0.1",
    "1e300",
    "1e-300",
    "-7",
    "1e16",
    "9007199254740992",
)

_SPECIAL_NUMBERS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    5.0,
    math.inf,
    -math.inf,
    math.nan,
    1e-310,
    1e16,
    1e308,
    None,
)


def records(
    dice: random.Random, count: int, inputs: Iterable[Input] = INPUTS
) -> list[dict[str, Any]]:
    """Return rows of special values for every input."""
    declarations = tuple(inputs)

    def value(declared: Input) -> Any:
        if declared.name == "tail-n":
            return float(count)
        if declared.type == "num":
            return dice.choice(_SPECIAL_NUMBERS) if dice.random() < 0.7 else dice.gauss(0, 3)
        if declared.type == "bool":
            return dice.choice((True, False, None))
        if declared.type == "set":
            return dice.choice(
                (None, [], *[dice.sample(TAGS, dice.randint(1, 4)) for _ in range(4)])
            )
        return dice.choice((*(declared.words or (*WORDS, "über")), None))

    return [{declared.name: value(declared) for declared in declarations} for _ in range(count)]

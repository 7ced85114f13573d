"""The answer of a language model as the value that was asked for."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from memlab.errors import BadAnswer
from memlab.kernel.base.display import clip

__all__ = ["read_json_answer"]

T = TypeVar("T")


def read_json_answer(content: str, type: type[T], asked_for: str) -> T:
    """Return an answer in JSON, which may stand after what a model thought and within a fence.

    Parameters
    ----------
    content
        The text of the answer.
    type
        What the JSON is decoded to.
    asked_for
        What the JSON holds, to end the sentence "The answer is not JSON with ...".

    Raises
    ------
    BadAnswer
        If the answer is anything else.

    Examples
    --------
    >>> read_json_answer('<think>a list?</think> [1, 2]', list[int], "numbers")
    [1, 2]
    """
    text = content.rpartition("</think>")[2].strip()
    if text.startswith("```"):
        text = text.partition("\n")[2].rpartition("```")[0]
    try:
        return msgspec.json.decode(text, type=type)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = clip(" ".join(str(error).split()), 120)
        raise BadAnswer(f"The answer is not JSON with {asked_for}: {why}.") from None

"""The corpus of attacks: texts that try to run something, to cost too much or to look like something else.

Each line of ``attacks/*.txt`` is one text as JSON: a string, or a list of strings and repetitions to be joined. A
repetition is ``[text, times]``, or ``[text, times, first]`` where ``{i}`` counts from ``first`` and ``{j}`` is one
less. So a megabyte of brackets is one short line, and halves of surrogate pairs have a spelling.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["FAMILIES", "attacks"]

_FOLDER = Path(__file__).parent / "attacks"
FAMILIES = tuple(sorted(path.stem for path in _FOLDER.glob("*.txt")))


def attacks(family: str | None = None) -> list[str]:
    """Return the texts of one family of attacks, or all of them."""
    names = FAMILIES if family is None else (family,)
    lines = [
        line
        for name in names
        for line in (_FOLDER / f"{name}.txt").read_text(encoding="ascii").splitlines()
    ]
    return [_joined(json.loads(line)) for line in lines]


def _joined(parts: str | list[Any]) -> str:
    if isinstance(parts, str):
        return parts
    return "".join(part if isinstance(part, str) else _repeated(*part) for part in parts)


def _repeated(text: str, times: int, first: int | None = None) -> str:
    if first is None:
        return text * times
    numbers = range(first, first + times)
    return "".join(text.replace("{i}", str(i)).replace("{j}", str(i - 1)) for i in numbers)

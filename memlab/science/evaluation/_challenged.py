"""What the decisions of a log say of challenges: the heads that stood against each other, and how one was drawn."""

from __future__ import annotations

import msgspec
import polars as pl

from memlab.errors import InputError
from memlab.science.evaluation._log import Log

__all__ = ["Challenged", "challenges_of"]


class _Head(msgspec.Struct):
    ids: list[int | str]
    hash: str = ""


class Challenged(msgspec.Struct):
    """One recall: the items of the live head and of each challenger's, best first, and how many were drawn at most.

    With the design "ab" ``whose`` names the pack whose head was shown ("" the live one), and ``shares`` gives the
    probability of each.
    """

    live: list[int | str]
    heads: dict[str, _Head]
    draws: float = 0.0
    design: str = ""
    whose: str = ""
    shares: dict[str, float] = {}


_DECODER = msgspec.json.Decoder(Challenged)


def challenges_of(log: Log) -> list[Challenged | None]:
    """Of each recall; None where nothing was challenged. InputError with the recall where it cannot be read."""
    if "challenge" not in log.decisions.columns:
        return [None] * len(log)
    texts = log.decisions["challenge"].to_list()
    return [text and _read(text, log, number) for number, text in enumerate(texts)]


def _read(text: str, log: Log, number: int) -> Challenged:
    where = f"The challenge of recall {log.decisions['decision'][number]}"
    try:
        found = _DECODER.decode(text)
    except (msgspec.DecodeError, TypeError) as error:
        raise InputError(f"{where} cannot be read: {error}.") from None
    kind = str if log.ids["memory_id"].dtype == pl.String else int
    named = (item for head in (found.live, *(head.ids for head in found.heads.values())) for item in head)
    stray = next((item for item in named if not isinstance(item, kind)), None)
    if stray is not None:
        raise InputError(f"{where} names the memory {stray!r}; ids of this log are {log.ids['memory_id'].dtype}.")
    if found.design == "ab" or found.shares:
        names = ("", *found.heads)
        wrong = next((name for name in names if not 0 < found.shares.get(name, 0) <= 1), None)
        if wrong is not None:
            raise InputError(f"{where} gives the head of {wrong or 'the live pack'} no probability above 0.")
        if found.whose not in names:
            raise InputError(f"{where} shows the head of {found.whose!r}, which is none of its packs.")
    return found

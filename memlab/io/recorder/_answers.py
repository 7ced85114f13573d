"""Infer from an answer which results it used, with memlab's credits and the shipped models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memlab.io.recorder._items import Item
from memlab.kernel.embedding import load_embedder
from memlab.kernel.index import Words
from memlab.kernel.policies import load_pack
from memlab.subjects.attribution.attribution import SHIPPED, compute_credit
from memlab.subjects.attribution.cues import Answer, RetrievedMemory, compute_cues

__all__ = ["AnswerReader"]

_TEXTS = 20_000
"""The number of texts over which the rarity of words is counted; more hardly change it and take memory."""


class AnswerReader:
    """Infer rewards from answers, with the rarity of words in all texts read so far.

    With the texts of one search alone, half as many used memories of LoCoMo were credited.
    """

    def __init__(self) -> None:
        self._pack, self._embedder = load_pack("memlab"), load_embedder()
        self._words = Words()
        self._read: set[str] = set()

    def rewards(
        self, answer: Answer, pool: Sequence[Item], results: Sequence[Item]
    ) -> list[tuple[str, float, float]]:
        """Return the id, reward and confidence of each shown result on which an answer decides."""
        new = [item for item in pool if item.text and item.id not in self._read]
        new = new[: _TEXTS - len(self._read)]
        self._words.append([item.text for item in new])
        self._read.update(item.id for item in new)
        items = [item for item in results if item.text]
        vectors = self._embedder.encode([item.text for item in items])
        memories = [
            RetrievedMemory(number, item.text, None, item.created, "", vector)
            for number, (item, vector) in enumerate(zip(items, vectors, strict=True), start=1)
        ]
        cues = compute_cues(answer, memories, self._words, self._embedder)
        credit, decided = compute_credit(self._pack, cues, np.arange(len(items)))
        columns = credit.clip(0).tolist(), SHIPPED.confidence(credit).tolist(), decided
        rows = zip(items, *columns, strict=True)
        return [(item.id, reward, confidence) for item, reward, confidence, says in rows if says]

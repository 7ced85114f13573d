"""Infer from an answer which texts outside a lab it used, with the shipped policy and models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from memlab.kernel.base.clock import Micros
from memlab.kernel.embedding import load_embedder
from memlab.kernel.index import Words
from memlab.kernel.policies import load_pack
from memlab.subjects.attribution.attribution import SHIPPED, compute_credit
from memlab.subjects.attribution.cues import Answer, RetrievedMemory, compute_cues

_TEXTS = 20_000
"""The number of texts over which the rarity of words is counted; more texts hardly change the rarity and take memory."""


class AnswerReader:
    """Infer rewards from answers, with the rarity of words in all texts read so far.

    It is the hook ``read-answers``.

    With the texts of one search alone, half as many used memories of LoCoMo were credited.
    """

    def __init__(self) -> None:
        self._pack, self._embedder = load_pack("memlab"), load_embedder()
        self._words = Words()
        self._read: set[str] = set()

    def rewards(
        self,
        answer: tuple[str, str, Micros, str, str],
        texts: Mapping[str, tuple[str, Micros]],
        ids: Sequence[str],
    ) -> list[tuple[str, float, float]]:
        """Return the id, reward and confidence of each text that was compared with the answer.

        ``answer`` has the query, the answer, its time, the arguments of tools and the user's reply.
        ``texts`` has the text and the time of each candidate by id, and ``ids`` are those that the
        answer could use. Candidates without a text are left out.
        """
        new = [id for id, (text, _) in texts.items() if text and id not in self._read]
        new = new[: _TEXTS - len(self._read)]
        self._words.append([texts[id][0] for id in new])
        self._read.update(new)
        ids = [id for id in ids if texts[id][0]]
        vectors = self._embedder.encode([texts[id][0] for id in ids])
        memories = [
            RetrievedMemory(number, texts[id][0], None, texts[id][1], "", vector)
            for number, (id, vector) in enumerate(zip(ids, vectors, strict=True), start=1)
        ]
        cues = compute_cues(Answer(*answer), memories, self._words, self._embedder)
        credit, decided = compute_credit(self._pack, cues, np.arange(len(ids)))
        columns = ids, credit.clip(0).tolist(), SHIPPED.confidence(credit).tolist()
        return [row for row, says in zip(zip(*columns, strict=True), decided, strict=True) if says]

"""Words as they are written: which of them each row holds, how many, and the signs that they are.

Postings lead from a word to its rows; this leads from a row to its words, so that the words of some hundred rows can be
compared with those of a question. A form is a word in lower case that was not stemmed: two forms may have one stem.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.index._segments import ranges
from memlab.index._signs import signs_of
from memlab.index._stored import Grown

__all__ = ["Written"]

_CAPITAL = re.compile(r"\s[A-ZÀ-ÖØ-ÞΑ-ΩЀ-Я]\w+")
_ENDS = ".!?:"

Ints = NDArray[np.int64]


class Written:
    """The forms of ``len(written)`` rows, appended and never changed.

    ``term_of`` gives the term id of a form, -1 for a stop word. Stop words count and may be signs, and are not held.
    """

    def __init__(self, language: str | None, term_of: Callable[[str], int]) -> None:
        self._signs, self._term_of = signs_of(language), term_of
        self._ids: dict[str, int] = {}
        self._names: list[str] = []
        self._forms = Grown(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.uint8))
        self._rows = Grown(np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64))
        self._held = Grown(np.empty(0, dtype=np.int32))

    def __len__(self) -> int:
        return self._rows.size

    @property
    def forms(self) -> int:
        """How many there are."""
        return len(self._ids)

    @property
    def terms(self) -> NDArray[np.int32]:
        """The term id of each form."""
        return self._forms.columns[0]

    @property
    def signs(self) -> NDArray[np.uint8]:
        """The signs that the words of each row are, by the bits of ``SAYS``."""
        return self._rows.columns[0]

    @property
    def counts(self) -> NDArray[np.int32]:
        """The number of words of each row, stop words counted."""
        return self._rows.columns[1]

    def id_of(self, form: str) -> int:
        """The id of a form, -1 if no row ever had it."""
        return self._ids.get(form, -1)

    def names(self, ids: Ints) -> list[str]:
        """The forms with these ids."""
        return [self._names[one] for one in ids.tolist()]

    def held(self, rows: Ints) -> tuple[Ints, NDArray[np.bool_], Ints]:
        """What these rows hold, each form of a row once: forms, whether one stands with a capital inside a sentence, and
        how many there are of each row.
        """
        stops = self._rows.columns[2]
        starts = np.where(rows > 0, stops[rows - 1], 0)
        counts = stops[rows] - starts
        packed = self._held.columns[0].take(ranges(starts, counts))
        return (packed >> 1).astype(np.int64), (packed & 1).astype(np.bool_), counts

    def append(self, said: Sequence[Sequence[str]], texts: Sequence[str], before: Sequence[int]) -> tuple[Ints, Ints]:
        """One more row for each text, of whose words the first ``before`` are who said it: they are posted, not held.

        The term of each word and the number of its row, from 0, are returned; stop words are left out.
        """
        look_up, ids = self._ids.get, []
        for words in said:
            for word in words:
                found = look_up(word)
                ids.append(self._learned(word) if found is None else found)
        sizes = np.fromiter(map(len, said), dtype=np.int64, count=len(said))
        forms, rows = np.array(ids, dtype=np.int64), np.repeat(np.arange(len(said)), sizes)
        all_terms, all_signs = self._forms.columns
        terms = all_terms[forms]
        names = np.array(before, dtype=np.int64)
        own = np.arange(len(forms)) - np.repeat(np.cumsum(sizes) - sizes, sizes) >= names[rows]
        signs = np.zeros(len(said), dtype=np.uint8)
        for bit in (1, 2, 4):
            signs[rows[own & (all_signs[forms] & bit > 0)]] |= bit
        content = own & (terms >= 0)
        width = max(len(self._ids), 1)
        keys = np.unique(rows[content] * width + forms[content])
        capitals = np.array(self._capitals(texts, width), dtype=np.int64)
        stops = int(self._held.size) + np.cumsum(np.bincount(keys // width, minlength=len(said)))
        self._held.append(((keys % width) << 1 | np.isin(keys, capitals)).astype(np.int32))
        self._rows.append(signs, (sizes - names).astype(np.int32), stops.astype(np.int64))
        kept = terms >= 0
        return terms[kept].astype(np.int64), rows[kept]

    def _learned(self, word: str) -> int:
        found = self._ids[word] = len(self._ids)
        self._names.append(word)
        self._forms.append(
            np.array([self._term_of(word)], dtype=np.int32), np.array([self._signs.of(word)], dtype=np.uint8)
        )
        return found

    def _capitals(self, texts: Sequence[str], width: int) -> list[int]:
        """The keys of the forms that begin with a capital inside a sentence."""
        found = []
        for row, text in enumerate(texts):
            for match in _CAPITAL.finditer(text):
                start = match.start()
                if start and text[start - 1] not in _ENDS and not text[start - 1].isspace():
                    form = self._ids.get(match[0][1:].lower())
                    if form is not None:
                        found.append(row * width + form)
        return found

    # -- on disk ----------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that it is, by name."""
        terms, bits = self._forms.columns
        signs, counts, stops = self._rows.columns
        return {
            "forms": np.frombuffer("\n".join(self._names).encode(), dtype=np.uint8),
            "form_terms": terms,
            "form_signs": bits,
            "signs": signs,
            "counts": counts,
            "stops": stops,
            "held": self._held.columns[0],
        }

    def restore(self, arrays: dict[str, NDArray[Any]], vocabulary: int) -> None:
        """Take over what ``arrays`` gave; ValueError where the parts contradict each other."""
        text = arrays["forms"].tobytes().decode()
        forms = text.split("\n") if text else []
        terms, stops, held = arrays["form_terms"], arrays["stops"], arrays["held"]
        sound = (
            len(set(forms)) == len(forms) == len(terms) == len(arrays["form_signs"])
            and len(stops) == len(arrays["signs"]) == len(arrays["counts"])
            and bool((np.diff(stops, prepend=0) >= 0).all())
            and len(held) == (int(stops[-1]) if len(stops) else 0)
            and (not len(held) or (int(held.min()) >= 0 and int(held.max()) >> 1 < len(forms)))
            and (not len(terms) or (int(terms.min()) >= -1 and int(terms.max()) < vocabulary))
        )
        if not sound:
            raise ValueError("the words of the rows contradict each other")
        self._names, self._ids = forms, {form: place for place, form in enumerate(forms)}
        self._forms, self._rows, self._held = (
            Grown(terms, arrays["form_signs"]),
            Grown(arrays["signs"], arrays["counts"], stops),
            Grown(held),
        )

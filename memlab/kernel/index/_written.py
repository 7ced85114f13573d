"""Words as they are written: which of them each row holds, how many, and the signs that they are.

Postings lead from a word to its rows; this leads from a row to its words, so that the words of some hundred rows can be
compared with those of a question. A form is a word in lower case that was not stemmed: two forms may have one stem.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.english import signs_of
from memlab.kernel.index._segments import ranges
from memlab.kernel.index._stored import Grown

__all__ = ["Written"]

_CAPITAL = re.compile(r"\s(?<=[^.!?: \n\t]\s)([A-ZÀ-ÖØ-ÞΑ-ΩЀ-Я]\w+)")
"""A word with a capital, not where a text or a sentence begins."""

_WAITING = 256
"""Texts whose words wait until somebody asks for them, together: one alone costs as much as ten of many."""

Ints = NDArray[np.int64]


class Written:
    """The forms of ``len(written)`` rows, appended and never changed.

    ``term_of`` gives the term id of a form, -1 for a stop word. Stop words count and may be signs, and are not held.
    """

    def __init__(self, language: str | None, term_of: Callable[[str], int]) -> None:
        self._signs, self._term_of = signs_of(language), term_of
        self._names: list[str] = []
        self._ids = _Forms(self._names)
        self._forms = Grown(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.uint8))
        self._rows = Grown(np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64))
        self._held = Grown(np.empty(0, dtype=np.int32))
        self._late: list[tuple[list[int], list[int], list[int], list[int]]] = []
        self._waiting = 0

    def __len__(self) -> int:
        return self._rows.size + self._waiting

    def beside(self) -> Written:
        """No rows yet, and the forms of these: one that is new here is new there."""
        other = Written(None, self._term_of)
        other._signs, other._names, other._ids, other._forms = self._signs, self._names, self._ids, self._forms
        return other

    @property
    def forms(self) -> int:
        """How many there are."""
        return len(self._ids)

    @property
    def terms(self) -> NDArray[np.int32]:
        """The term id of each form."""
        return self._forms.column(0)

    @property
    def signs(self) -> NDArray[np.uint8]:
        """The signs that the words of each row are, by the bits of ``SAYS``."""
        self._settle()
        return self._rows.column(0)

    @property
    def counts(self) -> NDArray[np.int32]:
        """The number of words of each row, stop words counted."""
        self._settle()
        return self._rows.column(1)

    def id_of(self, form: str) -> int:
        """The id of a form, -1 if no row ever had it."""
        return self._ids.get(form, -1)

    def names(self, ids: Ints) -> list[str]:
        """The forms with these ids."""
        return [self._names[one] for one in ids.tolist()]

    def held(self, rows: Ints) -> tuple[Ints, NDArray[np.bool_], Ints]:
        """What these rows hold, each form of a row once: the forms, whether one stands with a capital inside a
        sentence, and how many there are of each row.
        """
        self._settle()
        stops = self._rows.column(2)
        starts = np.where(rows > 0, stops[rows - 1], 0)
        counts = stops[rows] - starts
        packed = self._held.column(0).take(ranges(starts, counts))
        return (packed >> 1).astype(np.int64), (packed & 1).astype(np.bool_), counts

    def append(self, said: Sequence[Sequence[str]], texts: Sequence[str], before: Sequence[int]) -> tuple[Ints, Ints]:
        """One more row for each text, of whose words the first ``before`` are who said it: they are posted, not held.

        The term of each word and the number of its row, from 0, are returned; stop words are left out.
        """
        ids: list[int] = []
        held: list[int] = []
        capital: list[int] = []
        sizes: list[int] = []
        different: list[int] = []
        counts: list[int] = []
        look_up = self._ids.__getitem__
        for words, text, names in zip(said, texts, before, strict=True):
            found = list(map(look_up, words))
            own = dict.fromkeys(found[names:] if names else found, 0)
            for word in _CAPITAL.findall(text):
                form = self._ids.get(word.lower(), -1)
                if form in own:
                    own[form] = 1
            ids += found
            held += own
            capital += own.values()
            sizes.append(len(found))
            different.append(len(own))
            counts.append(len(found) - names)
        self._learn()
        self._late.append((held, capital, different, counts))
        self._waiting += len(sizes)
        if self._waiting > _WAITING:
            self._settle()
        terms = self.terms.take(np.array(ids, dtype=np.int64))
        places = np.arange(len(sizes)).repeat(sizes)
        (kept,) = (terms >= 0).nonzero()
        return terms[kept].astype(np.int64), places[kept]

    def _settle(self) -> None:
        """Take in the rows that wait."""
        if not self._late:
            return
        held, capital, different, counts = (
            np.fromiter(chain.from_iterable(parts), dtype=np.int64) for parts in zip(*self._late, strict=True)
        )
        terms_of, signs_of_forms = self._forms.columns
        rows = np.arange(len(counts)).repeat(different)
        bits = signs_of_forms.take(held)
        signs = np.zeros(len(counts), dtype=np.uint8)
        (signed,) = bits.nonzero()
        np.bitwise_or.at(signs, rows[signed], bits[signed])
        (content,) = (terms_of.take(held) >= 0).nonzero()
        packed = held << 1 | capital
        stops = self._held.size + np.bincount(rows[content], minlength=len(counts)).cumsum()
        self._held.append(packed[content].astype(np.int32))
        self._rows.append(signs, counts.astype(np.int32), stops)
        self._late, self._waiting = [], 0

    def _learn(self) -> None:
        """The terms and signs of the forms that came since."""
        fresh = self._names[self._forms.size :]
        if fresh:
            terms, signs = map(self._term_of, fresh), map(self._signs.of, fresh)
            self._forms.append(
                np.fromiter(terms, dtype=np.int32, count=len(fresh)),
                np.fromiter(signs, dtype=np.uint8, count=len(fresh)),
            )

    # -- on disk ----------------------------------------------------------------------------------------------

    def forms_arrays(self) -> dict[str, NDArray[Any]]:
        """The forms, by name."""
        terms, bits = self._forms.columns
        forms = np.frombuffer("\n".join(self._names).encode(), dtype=np.uint8)
        return {"forms": forms, "form_terms": terms, "form_signs": bits}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What it holds of its rows, by name."""
        self._settle()
        signs, counts, stops = self._rows.columns
        return {"signs": signs, "counts": counts, "stops": stops, "held": self._held.columns[0]}

    def restore_forms(self, forms: NDArray[Any], terms: NDArray[Any], signs: NDArray[Any], *, vocabulary: int) -> None:
        """Take over what ``forms_arrays`` gave; ValueError where the parts contradict each other."""
        text = forms.tobytes().decode()
        names = text.split("\n") if text else []
        sound = len(set(names)) == len(names) == len(terms) == len(signs) and (
            not len(terms) or (int(terms.min()) >= -1 and int(terms.max()) < vocabulary)
        )
        if not sound:
            raise ValueError("the forms of the words contradict each other")
        self._names, self._ids, self._forms = names, _Forms(names), Grown(terms, signs)

    def restore(self, signs: NDArray[Any], counts: NDArray[Any], stops: NDArray[Any], held: NDArray[Any]) -> None:
        """Take over what ``arrays`` gave, the forms being there; ValueError where the parts contradict each other."""
        sound = (
            len(stops) == len(signs) == len(counts)
            and bool((np.diff(stops, prepend=0) >= 0).all())
            and len(held) == (int(stops[-1]) if len(stops) else 0)
            and (not len(held) or (int(held.min()) >= 0 and int(held.max()) >> 1 < len(self._names)))
        )
        if not sound:
            raise ValueError("the words of the rows contradict each other")
        self._rows, self._held = Grown(signs, counts, stops), Grown(held)


class _Forms(dict[str, int]):
    """The id of each form of ``names``; a new one is added to them."""

    def __init__(self, names: list[str]) -> None:
        super().__init__((form, place) for place, form in enumerate(names))
        self._names = names

    def __missing__(self, form: str) -> int:
        found = self[form] = len(self)
        self._names.append(form)
        return found

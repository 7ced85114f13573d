"""From text to words: lower case, runs of letters and digits, Snowball stems.

Unicode letters, their accents and digits make words; an underscore parts them, so ``get_user_name`` is found by "user
name". Scripts that put no space between words give pairs of neighbouring characters, as Lucene's CJK analyser does, and
so does Hangul, whose endings no stemmer here takes off. A Han character says something alone and is a word, too.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName
from memlab.kernel.english import signs_of
from memlab.kernel.index._arrays import Grown, ranges

__all__ = [
    "LANGUAGES",
    "LONG",
    "Tokens",
    "Written",
    "passages_of",
    "words_of",
]


LANGUAGES = (
    *(
        "none",
        "arabic",
        "armenian",
        "basque",
        "catalan",
        "czech",
        "danish",
        "dutch",
        "english",
        "esperanto",
    ),
    *(
        "estonian",
        "finnish",
        "french",
        "german",
        "greek",
        "hindi",
        "hungarian",
        "indonesian",
        "irish",
        "italian",
    ),
    *(
        "lithuanian",
        "nepali",
        "norwegian",
        "persian",
        "polish",
        "portuguese",
        "romanian",
        "russian",
        "serbian",
    ),
    *("sesotho", "spanish", "swedish", "tamil", "turkish", "yiddish"),
)
"""What words may be read as: a language of which Snowball has a stemmer, or ``none``: no stems and no stop words."""

_HAN = "\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_HANGUL = "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3"
_SOUTH_EAST_ASIAN = "\u0e00-\u0e3a\u0e40-\u0eff\u1000-\u109f\u1780-\u17ff"
_WITHOUT_SPACES = f"{_HAN}{_KANA}{_HANGUL}{_SOUTH_EAST_ASIAN}"
_UNSPACED = re.compile(f"[{_WITHOUT_SPACES}]")
_ASCII_WORD = re.compile(r"[^\W_]+", re.ASCII)
_IS_HAN = re.compile(f"[{_HAN}]")
_DOTTED = "i\u0307"


def words_of(text: str) -> list[str]:
    """The words of a text, in order, lower case, not stemmed.

    >>> words_of("Don't rename get_user_name!")
    ['don', 't', 'rename', 'get', 'user', 'name']
    >>> words_of("東京 です")
    ['東', '東京', '京', 'です']
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    # a decomposed accent would make another word; the capital I with a dot leaves its dot behind
    text = unicodedata.normalize("NFC", text.lower()).replace(_DOTTED, "i")
    spaced, mixed, character = _patterns()
    if not _UNSPACED.search(text):
        return spaced.findall(text)
    words: list[str] = []
    for found in mixed.findall(text):
        if _UNSPACED.match(found):
            words += _pairs(character.findall(found))
        else:
            words.append(found)
    return words


def _pairs(characters: list[str]) -> list[str]:
    """Each pair of neighbours; a character without one, and every Han character, is a word of its own."""
    if len(characters) == 1:
        return characters
    words = []
    for place, one in enumerate(characters):
        if _IS_HAN.match(one):
            words.append(one)
        if place + 1 < len(characters):
            words.append(one + characters[place + 1])
    return words


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """A word where all scripts part their words; a word or a run of an unspaced script; a character of such a run.

    Python's ``\\w`` leaves out the marks that write the vowels of Hindi or Thai. Finding them takes 20 ms, once, and no
    text of plain ASCII waits for it. Variation selectors, which choose between two pictures of a sign, are no marks.
    """
    marks = "".join(_ranges(0x300, 0xFE00)) + "".join(_ranges(0xFE20, 0x1E950))
    every, letters = r"[^\W_]", rf"[^\W_{_WITHOUT_SPACES}]"
    character = rf"(?=[{_WITHOUT_SPACES}]){every}[{marks}]*"
    return (
        re.compile(rf"{every}+(?:[{marks}]+{every}*)*"),
        re.compile(rf"(?:{character})+|{letters}+(?:[{marks}]+{letters}*)*"),
        re.compile(character),
    )


def _ranges(start: int, stop: int) -> list[str]:
    """The accents and vowel signs of these codes, as ranges of a character class."""
    found: list[str] = []
    first = None
    for code in range(start, stop + 1):
        mark = code < stop and unicodedata.category(chr(code)) in ("Mn", "Mc")
        if mark and first is None:
            first = code
        elif not mark and first is not None:
            found.append(f"{chr(first)}-{chr(code - 1)}")
            first = None
    return found


class Tokens(dict[str, int]):
    """The term id of each word seen so far; a new word is stemmed once, stop words have id -1.

    ``terms[i]`` is the stem with id ``i``. Stemming costs 1 microsecond a word, a look-up a twentieth of that.
    """

    def __init__(
        self, language: str | None, stop_words: Iterable[str] = (), terms: Iterable[str] = ()
    ) -> None:
        super().__init__()
        if isinstance(stop_words, str):
            raise InputError(
                f"Stop words are several words, such as {{'the', 'a'}}, not the text {stop_words!r}."
            )
        self.language, self.stop_words = language, frozenset(stop_words)
        self.terms: list[str] = list(terms)
        self._ids: dict[str, int] = {term: index for index, term in enumerate(self.terms)}
        if language is None:
            self._stem = str
        else:
            import Stemmer

            if language not in Stemmer.algorithms():
                raise UnknownName("stemmer", language, Stemmer.algorithms())
            # the cache above makes the stemmer's own one a second copy
            self._stem = Stemmer.Stemmer(language, 0).stemWord

    def __missing__(self, word: str) -> int:
        if word in self.stop_words:
            self[word] = -1
            return -1
        term = self._stem(word)
        found = self._ids.get(term)
        if found is None:
            found = self._ids[term] = len(self.terms)
            self.terms.append(term)
        self[word] = found
        return found

    def recognised(self, word: str) -> int | None:
        """The id of a word whose stem is known, -1 for a stop word, else None; kept, so that it is stemmed once."""
        stem = self.stem(word)
        known = -1 if stem is None else self._ids.get(stem)
        if known is not None:
            self[word] = known
        return known

    def stem(self, word: str) -> str | None:
        """The stem of a word, None for a stop word; learns nothing."""
        return None if word in self.stop_words else self._stem(word)

    def id_of(self, term: str) -> int:
        """The id of a stem, -1 if no text had it."""
        return self._ids.get(term, -1)


# Long texts as passages: where one ends and the next begins, and which of them answers a question.


LONG = 160
"""Words above which a text is several passages; the longest of 2,760 turns between people has 82."""

_WORDS = 80
"""Words of a passage, about: measured on long chats with an assistant, nDCG@10 rises from 200 to 120 to 80."""

_ENDS = re.compile(r"(?<=[.!?:;])\s+|\s*\n\s*|(?<=[。！？])")
_SPACE = re.compile(r"\s+")

Span = tuple[int, int]


def passages_of(text: str) -> list[Span]:
    """Where the passages of a text begin and end: one after the other and of like length, together the whole text.

    A text of at most ``LONG`` words is one. A passage ends with a sentence or a line; a longer sentence is cut at
    spaces. What has no spaces is not cut.

    >>> passages_of("Tabs or spaces?")
    [(0, 15)]
    """
    total = len(words_of(text))
    if total <= LONG:
        return [(0, len(text))]
    wanted = total / -(-total // _WORDS)
    ends, counted = [0], 0.0
    for start, words in _pieces(text, wanted):
        # the piece goes where more than half of it fits
        if start > ends[-1] and counted + words / 2 > wanted * len(ends):
            ends.append(start)
        counted += words
    return list(pairwise((*ends, len(text))))


def _pieces(text: str, most: float) -> list[tuple[int, int]]:
    """Where each sentence or line begins, of longer ones each part between spaces, and the number of its words."""
    found: list[tuple[int, int]] = []
    for start, stop in _cut(_ENDS, text, 0, len(text)):
        words = len(words_of(text[start:stop]))
        if words <= most:
            found.append((start, words))
        else:
            found += [
                (one, len(words_of(text[one:other])))
                for one, other in _cut(_SPACE, text, start, stop)
            ]
    return found


def _cut(ends: re.Pattern[str], text: str, start: int, stop: int) -> list[Span]:
    """The spans between places where ``ends`` is found, what is found there left with the span before it."""
    places = [match.end() for match in ends.finditer(text, start, stop)]
    return [(one, other) for one, other in pairwise((start, *places, stop)) if one < other]


# Words as they are written: which of them each row holds, how many, and the signs that they are.
#
# Postings lead from a word to its rows; this leads from a row to its words, so that the words of some hundred rows can
# be compared with those of a question. A form is a word in lower case that was not stemmed: two forms may have one
# stem.


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
        self.ids = _Forms(self._names)
        """The id of each form that some row had."""
        self._forms = Grown(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.uint8))
        self._rows = Grown(
            np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
        )
        self._held = Grown(np.empty(0, dtype=np.int32))
        self._late: list[tuple[list[int], list[int], list[int], list[int]]] = []
        self._waiting = 0

    def __len__(self) -> int:
        return self._rows.size + self._waiting

    def beside(self) -> Written:
        """No rows yet, and the forms of these: one that is new here is new there."""
        other = Written(None, self._term_of)
        other._signs, other._names, other.ids, other._forms = (
            self._signs,
            self._names,
            self.ids,
            self._forms,
        )
        return other

    @property
    def forms(self) -> int:
        """How many there are."""
        return len(self.ids)

    @property
    def terms(self) -> NDArray[np.int32]:
        """The term id of each form."""
        return self._forms.column(0)

    @property
    def signs(self) -> NDArray[np.uint8]:
        """The signs that the words of each row are, by the bits of ``SAYS``."""
        if self._late:
            self._settle()
        return self._rows.column(0)

    @property
    def counts(self) -> NDArray[np.int32]:
        """The number of words of each row, stop words counted."""
        if self._late:
            self._settle()
        return self._rows.column(1)

    def names(self, ids: Ints) -> list[str]:
        """The forms with these ids."""
        return [self._names[one] for one in ids.tolist()]

    def held(self, rows: Ints) -> tuple[Ints, NDArray[np.bool_], Ints]:
        """What these rows hold, each form of a row once: the forms, whether one stands with a capital inside a
        sentence, and how many there are of each row.
        """
        if self._late:
            self._settle()
        stops = self._rows.column(2)
        starts = np.where(rows > 0, stops[rows - 1], 0)
        counts = stops[rows] - starts
        packed = self._held.column(0).take(ranges(starts, counts))
        return (packed >> 1).astype(np.int64), (packed & 1).astype(np.bool_), counts

    def append(
        self, said: Sequence[Sequence[str]], texts: Sequence[str], before: Sequence[int]
    ) -> tuple[Ints, Ints]:
        """One more row for each text, of whose words the first ``before`` are who said it: they are posted, not held.

        The term of each word and the number of its row, from 0, are returned; stop words are left out.
        """
        ids: list[int] = []
        held: list[int] = []
        capital: list[int] = []
        sizes: list[int] = []
        different: list[int] = []
        counts: list[int] = []
        look_up = self.ids.__getitem__
        for words, text, names in zip(said, texts, before, strict=True):
            found = list(map(look_up, words))
            own = dict.fromkeys(found[names:] if names else found, 0)
            for word in _CAPITAL.findall(text):
                form = self.ids.get(word.lower(), -1)
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
            np.fromiter(chain.from_iterable(parts), dtype=np.int64)
            for parts in zip(*self._late, strict=True)
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

    def restore_forms(
        self, forms: NDArray[Any], terms: NDArray[Any], signs: NDArray[Any], *, vocabulary: int
    ) -> None:
        """Take over what ``forms_arrays`` gave; ValueError where the parts contradict each other."""
        text = forms.tobytes().decode()
        names = text.split("\n") if text else []
        sound = len(set(names)) == len(names) == len(terms) == len(signs) and (
            not len(terms) or (int(terms.min()) >= -1 and int(terms.max()) < vocabulary)
        )
        if not sound:
            raise ValueError("the forms of the words contradict each other")
        self._names, self.ids, self._forms = names, _Forms(names), Grown(terms, signs)

    def restore(
        self, signs: NDArray[Any], counts: NDArray[Any], stops: NDArray[Any], held: NDArray[Any]
    ) -> None:
        """Take over what ``arrays`` gave, the forms being there; ValueError where the parts contradict each other."""
        sound = (
            len(stops) == len(signs) == len(counts)
            and bool((np.diff(stops, prepend=0) >= 0).all())
            and len(held) == (int(stops[-1]) if len(stops) else 0)
            and (
                not len(held) or (int(held.min()) >= 0 and int(held.max()) >> 1 < len(self._names))
            )
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

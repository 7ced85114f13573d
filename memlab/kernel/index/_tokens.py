"""The splitting of text into words.

A word is a run of letters and digits in lower case. Its stem is computed with Snowball.

Letters of all scripts, with their accents, belong to words. An underscore separates words, so "user name" matches
``get_user_name``. Scripts without spaces give pairs of neighbouring characters, as Lucene's CJK analyser does. Hangul
is treated in the same way, because no stemmer here removes its endings. A Han character has a meaning of its own, so it
is also a word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arrays import NO_ROWS, Codes, Flags, Ints, Values
from memlab.kernel.english import signs_of
from memlab.kernel.index._arrays import Grown, ranges

LANGUAGES = (
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
    "lithuanian",
    "nepali",
    "norwegian",
    "persian",
    "polish",
    "portuguese",
    "romanian",
    "russian",
    "serbian",
    "sesotho",
    "spanish",
    "swedish",
    "tamil",
    "turkish",
    "yiddish",
)
"""The languages of texts: those with a Snowball stemmer, and ``none`` for texts without stemming and stop words."""

# Ranges of characters in scripts without spaces between words, patterns of words, and a lower-case i with two dots.
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
    """Return the words of a text in order, in lower case and without stemming.

    >>> words_of("Don't rename get_user_name!")
    ['don', 't', 'rename', 'get', 'user', 'name']
    >>> words_of("東京 です")
    ['東', '東京', '京', 'です']
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    # A decomposed accent would make a different word. Lower-casing a capital I with a dot leaves a separate dot.
    text = unicodedata.normalize("NFC", text.lower()).replace(_DOTTED, "i")
    spaced, mixed, character = _patterns()
    if not _UNSPACED.search(text):
        return spaced.findall(text)
    words: list[str] = []
    for run in mixed.findall(text):
        if _UNSPACED.match(run):
            words += _neighbour_pairs(character.findall(run))
        else:
            words.append(run)
    return words


def _neighbour_pairs(characters: list[str]) -> list[str]:
    """Return all pairs of neighbouring characters, and each Han character alone.

    A single character is returned as a word.
    """
    if len(characters) == 1:
        return characters
    words = []
    for position, character in enumerate(characters):
        if _IS_HAN.match(character):
            words.append(character)
        if position + 1 < len(characters):
            words.append(character + characters[position + 1])
    return words


# Listing the marks takes 20 ms, and only texts with characters outside ASCII need them.
@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    r"""Compile the patterns of words and characters of all scripts.

    The first pattern matches a word in scripts with spaces. The second also matches a run of characters in scripts
    without spaces, and the third one character of such a run. Python's ``\w`` excludes marks for the vowels of Hindi or
    Thai, so they are added. Variation selectors, which choose between two glyphs of a character, are excluded.
    """
    marks = "".join(_mark_ranges(0x300, 0xFE00)) + "".join(_mark_ranges(0xFE20, 0x1E950))
    every, letters = r"[^\W_]", rf"[^\W_{_WITHOUT_SPACES}]"
    character = rf"(?=[{_WITHOUT_SPACES}]){every}[{marks}]*"
    return (
        re.compile(rf"{every}+(?:[{marks}]+{every}*)*"),
        re.compile(rf"(?:{character})+|{letters}+(?:[{marks}]+{letters}*)*"),
        re.compile(character),
    )


def _mark_ranges(start: int, stop: int) -> list[str]:
    """Return accents and vowel signs as ranges for a character class.

    The code points are those from ``start`` to ``stop - 1``.
    """
    ranges: list[str] = []
    first = None
    for code in range(start, stop + 1):
        mark = code < stop and unicodedata.category(chr(code)) in ("Mn", "Mc")
        if mark and first is None:
            first = code
        elif not mark and first is not None:
            ranges.append(f"{chr(first)}-{chr(code - 1)}")
            first = None
    return ranges


class Tokens(dict[str, int]):
    """The term id of each word that was looked up; stop words have id -1.

    Looking up a new word stems and adds it. ``terms[i]`` is the stem with id ``i``. Stemming takes 1 microsecond per
    word, and a look-up a twentieth of that.
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
            # Size 0 turns off the cache of the stemmer, because this dictionary is a cache of words.
            self._stem = Stemmer.Stemmer(language, 0).stemWord

    def __missing__(self, word: str) -> int:
        if word in self.stop_words:
            self[word] = -1
            return -1
        term = self._stem(word)
        term_id = self._ids.get(term)
        if term_id is None:
            term_id = self._ids[term] = len(self.terms)
            self.terms.append(term)
        self[word] = term_id
        return term_id

    def find_known(self, word: str) -> int | None:
        """Return the term id of a word, -1 for a stop word, or None for an unknown stem.

        The id is cached, so that the word is stemmed once.
        """
        stem = self.stem(word)
        term_id = -1 if stem is None else self._ids.get(stem)
        if term_id is not None:
            self[word] = term_id
        return term_id

    def stem(self, word: str) -> str | None:
        """Return the stem of a word, or None for a stop word.

        New words are not learned.
        """
        return None if word in self.stop_words else self._stem(word)

    def id_of(self, term: str) -> int:
        """Return the id of a stem, or -1 if no text contains it."""
        return self._ids.get(term, -1)


# The passages of long texts.


LONG = 160
"""The number of words above which a text has several passages. The longest of 2,760 human turns has 82 words."""

_WORDS = 80
"""The approximate number of words of a passage. On long chats, 80 words give a higher nDCG@10 than 120 or 200."""

# Patterns for the ends of sentences and lines, and for spaces, at which long sentences are cut.
_ENDS = re.compile(r"(?<=[.!?:;])\s+|(?<!\s)\s*\n\s*|(?<=[。！？])")
_SPACE = re.compile(r"\s+")

Span = tuple[int, int]


def passages_of(text: str) -> list[Span]:
    """Return the start and end of each passage of a text, in characters.

    Passages follow one another, have similar lengths, and cover the whole text. A text of at most ``LONG`` words has
    one passage. A passage ends at the end of a sentence or line. A sentence that is longer than a passage is cut at
    spaces. Text without spaces is not cut.

    >>> passages_of("Tabs or spaces?")
    [(0, 15)]
    """
    total = len(words_of(text))
    if total <= LONG:
        return [(0, len(text))]
    wanted = total / -(-total // _WORDS)
    ends, counted = [0], 0.0
    for start, words in _split_pieces(text, wanted):
        # A piece belongs to the passage in which more than half of it fits.
        if start > ends[-1] and counted + words / 2 > wanted * len(ends):
            ends.append(start)
        counted += words
    return list(pairwise((*ends, len(text))))


def _split_pieces(text: str, maximum: float) -> list[tuple[int, int]]:
    """Return the start, as a character position, and the number of words of each sentence or line of a text.

    A sentence of more than ``maximum`` words becomes one piece per part between spaces.
    """
    pieces: list[tuple[int, int]] = []
    for start, stop in _split_spans(_ENDS, text, 0, len(text)):
        words = len(words_of(text[start:stop]))
        if words <= maximum:
            pieces.append((start, words))
        else:
            pieces += [
                (begin, len(words_of(text[begin:end])))
                for begin, end in _split_spans(_SPACE, text, start, stop)
            ]
    return pieces


def _split_spans(ends: re.Pattern[str], text: str, start: int, stop: int) -> list[Span]:
    """Return the spans of a text between matches of the pattern ``ends``.

    A span includes the match at its end.
    """
    positions = [match.end() for match in ends.finditer(text, start, stop)]
    return [(begin, end) for begin, end in pairwise((start, *positions, stop)) if begin < end]


# The forward index: the word forms, the number of words and the signs of each row.
#
# Postings give the rows of a word. The forward index gives the words of a row, so that the words of some hundred rows
# can be compared with those of a query. A form is a word in lower case before stemming, so two forms may have the same
# stem. A sign is a class of words that matters for a statement, such as negation; see ``SAYS``.


_CAPITAL = re.compile(r"\s(?<=[^.!?: \n\t]\s)([A-ZÀ-ÖØ-ÞΑ-ΩЀ-Я]\w+)")
"""A capitalised word inside a sentence."""

_WAITING = 256
"""The number of texts that are indexed together. A single text would take as long as ten texts of a batch."""


class Written:
    """The word forms of each row of text; rows are only added.

    ``term_of`` returns the term id of a form, or -1 for a stop word. Stop words count as words and may be signs. They
    are not stored as forms of a row.
    """

    def __init__(self, language: str | None, term_of: Callable[[str], int]) -> None:
        self._signs, self._term_of = signs_of(language), term_of
        self._names: list[str] = []
        self.ids = _Forms(self._names)
        """The id of each form that occurs in a row."""
        self._forms = Grown(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.uint8))
        self._rows = Grown(np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.int32), NO_ROWS)
        self._packed_forms = Grown(np.empty(0, dtype=np.int32))
        self._pending: list[tuple[list[int], list[int], list[int], list[int]]] = []
        self._waiting = 0

    def __len__(self) -> int:
        return self._rows.size + self._waiting

    def share_forms(self) -> Written:
        """Return an empty index that shares this index's table of word forms.

        A form that is added to either index is known to both.
        """
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
        """The number of distinct word forms in all rows."""
        return len(self.ids)

    @property
    def terms(self) -> Codes:
        """The term id of each word form."""
        return self._forms.column(0)

    @property
    def signs(self) -> NDArray[np.uint8]:
        """A bit mask of what each text mentions, such as a time or a number; see ``SAYS``."""
        if self._pending:
            self._index_pending()
        return self._rows.column(0)

    @property
    def counts(self) -> Codes:
        """The number of words of each row, including stop words."""
        if self._pending:
            self._index_pending()
        return self._rows.column(1)

    def names(self, ids: Ints) -> list[str]:
        """Return the word forms with the given ids."""
        return [self._names[id] for id in ids.tolist()]

    def forms_of(self, rows: Ints) -> tuple[Ints, Flags, Ints]:
        """Return the distinct word forms of each row.

        Returns the form ids, whether each form is capitalised inside a sentence, and the number of forms per row.
        """
        if self._pending:
            self._index_pending()
        stops = self._rows.column(2)
        starts = np.where(rows > 0, stops[rows - 1], 0)
        counts = stops[rows] - starts
        packed = self._packed_forms.column(0).take(ranges(starts, counts))
        return (packed >> 1).astype(np.int64), (packed & 1).astype(np.bool_), counts

    def append(
        self,
        words_of_rows: Sequence[Sequence[str]],
        texts: Sequence[str],
        name_lengths: Sequence[int],
    ) -> tuple[Ints, Ints]:
        """Add one row for each text; return the term and the row of each word.

        The first words of a row, as many as ``name_lengths`` says, are the name of the speaker. They are returned for
        the postings, but not stored as forms of the row. The returned arrays leave out stop words, and rows are
        numbered from 0.
        """
        ids: list[int] = []
        forms: list[int] = []
        capital: list[int] = []
        sizes: list[int] = []
        different: list[int] = []
        counts: list[int] = []
        look_up = self.ids.__getitem__
        for words, text, names in zip(words_of_rows, texts, name_lengths, strict=True):
            form_ids = list(map(look_up, words))
            own = dict.fromkeys(form_ids[names:] if names else form_ids, 0)
            for word in _CAPITAL.findall(text):
                form = self.ids.get(word.lower(), -1)
                if form in own:
                    own[form] = 1
            ids += form_ids
            forms += own
            capital += own.values()
            sizes.append(len(form_ids))
            different.append(len(own))
            counts.append(len(form_ids) - names)
        self._learn_forms()
        self._pending.append((forms, capital, different, counts))
        self._waiting += len(sizes)
        if self._waiting > _WAITING:
            self._index_pending()
        terms = self.terms.take(np.array(ids, dtype=np.int64))
        rows = np.arange(len(sizes)).repeat(sizes)
        (is_content,) = (terms >= 0).nonzero()
        return terms[is_content].astype(np.int64), rows[is_content]

    def _index_pending(self) -> None:
        """Move the rows that wait for indexing into the arrays."""
        if not self._pending:
            return
        forms, capital, different, counts = (
            np.fromiter(chain.from_iterable(parts), dtype=np.int64)
            for parts in zip(*self._pending, strict=True)
        )
        terms_of, signs_of_forms = self._forms.columns
        rows = np.arange(len(counts)).repeat(different)
        bits = signs_of_forms.take(forms)
        signs = np.zeros(len(counts), dtype=np.uint8)
        (signed,) = bits.nonzero()
        np.bitwise_or.at(signs, rows[signed], bits[signed])
        (content,) = (terms_of.take(forms) >= 0).nonzero()
        packed = forms << 1 | capital
        stops = self._packed_forms.size + np.bincount(rows[content], minlength=len(counts)).cumsum()
        self._packed_forms.append(packed[content].astype(np.int32))
        self._rows.append(signs, counts.astype(np.int32), stops)
        self._pending, self._waiting = [], 0

    def _learn_forms(self) -> None:
        """Store the term id and the sign bits of each new word form."""
        added = self._names[self._forms.size :]
        if added:
            terms, signs = map(self._term_of, added), map(self._signs.of, added)
            self._forms.append(
                np.fromiter(terms, dtype=np.int32, count=len(added)),
                np.fromiter(signs, dtype=np.uint8, count=len(added)),
            )

    # -- on disk ----------------------------------------------------------------------------------------------

    def forms_arrays(self) -> dict[str, Values]:
        """Return the table of word forms as arrays by name."""
        terms, bits = self._forms.columns
        forms = np.frombuffer("\n".join(self._names).encode(), dtype=np.uint8)
        return {"forms": forms, "form_terms": terms, "form_signs": bits}

    def arrays(self) -> dict[str, Values]:
        """Return the signs, word counts and forms of all rows as arrays by name."""
        self._index_pending()
        signs, counts, stops = self._rows.columns
        return {
            "signs": signs,
            "counts": counts,
            "stops": stops,
            "held": self._packed_forms.columns[0],
        }

    def restore_forms(
        self, forms: Values, terms: Values, signs: Values, *, vocabulary: int
    ) -> None:
        """Restore the table of forms; raise ValueError if the arrays are inconsistent."""
        text = forms.tobytes().decode()
        names = text.split("\n") if text else []
        sound = len(set(names)) == len(names) == len(terms) == len(signs) and (
            not len(terms) or (int(terms.min()) >= -1 and int(terms.max()) < vocabulary)
        )
        if not sound:
            raise ValueError("the table of word forms and their terms is inconsistent")
        self._names, self.ids, self._forms = names, _Forms(names), Grown(terms, signs)

    def restore(self, signs: Values, counts: Values, stops: Values, packed: Values) -> None:
        """Restore all rows from arrays. Word forms must be restored first.

        Raises ValueError if the arrays are inconsistent.
        """
        sound = (
            len(stops) == len(signs) == len(counts)
            and bool((np.diff(stops, prepend=0) >= 0).all())
            and len(packed) == (int(stops[-1]) if len(stops) else 0)
            and (
                not len(packed)
                or (int(packed.min()) >= 0 and int(packed.max()) >> 1 < len(self._names))
            )
        )
        if not sound:
            raise ValueError("the offsets, counts and word codes of the rows are inconsistent")
        self._rows, self._packed_forms = Grown(signs, counts, stops), Grown(packed)


class _Forms(dict[str, int]):
    """The id of each word form. Looking up a new form adds it."""

    def __init__(self, names: list[str]) -> None:
        super().__init__((form, id) for id, form in enumerate(names))
        self._names = names

    def __missing__(self, form: str) -> int:
        id = self[form] = len(self)
        self._names.append(form)
        return id

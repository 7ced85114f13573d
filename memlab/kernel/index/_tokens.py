"""From text to words: lower case, runs of letters and digits, Snowball stems.

Unicode letters, their accents and digits make words; an underscore parts them, so ``get_user_name`` is found by "user
name". Scripts that put no space between words give pairs of neighbouring characters, as Lucene's CJK analyser does, and
so does Hangul, whose endings no stemmer here takes off. A Han character says something alone and is a word, too.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

from memlab.errors import InputError, UnknownName

__all__ = ["LANGUAGES", "Tokens", "words_of"]

LANGUAGES = (
    *("none", "arabic", "armenian", "basque", "catalan", "czech", "danish", "dutch", "english", "esperanto"),
    *("estonian", "finnish", "french", "german", "greek", "hindi", "hungarian", "indonesian", "irish", "italian"),
    *("lithuanian", "nepali", "norwegian", "persian", "polish", "portuguese", "romanian", "russian", "serbian"),
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

    def __init__(self, language: str | None, stop_words: Iterable[str] = (), terms: Iterable[str] = ()) -> None:
        super().__init__()
        if isinstance(stop_words, str):
            raise InputError(f"Stop words are several words, such as {{'the', 'a'}}, not the text {stop_words!r}.")
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

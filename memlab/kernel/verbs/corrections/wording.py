"""What an edit did to the words of a text: which words are gone, and which phrase took the place of which."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import NamedTuple

from memlab.kernel.english import STOP_WORDS

__all__ = ["Wording"]

_TOKEN = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_PATH = re.compile(r"[\w.~-]*(?:/[\w.-]+)+|[\w-]+\.[A-Za-z][A-Za-z0-9]{0,4}\b")
_LONGEST = 2_000
"""Words of a text up to which phrases are aligned: alignment takes quadratic time, 0.2 s for two texts of 2,000."""
_PHRASE = 8
"""Words of a phrase up to which another phrase is taken for its correction; a longer one is another sentence."""
_PLAIN = STOP_WORDS["english"]


class _Word(NamedTuple):
    low: str
    start: int
    stop: int


@dataclass(frozen=True)
class Wording:
    """The words of a text before and after an edit.

    Examples
    --------
    >>> words = Wording("Deploy with make ship", "Deploy with make deploy")
    >>> sorted(words.gone), words.corrected("run make ship twice")
    (['ship'], 'run make deploy twice')
    """

    old: str
    new: str

    @cached_property
    def gone(self) -> frozenset[str]:
        """Words with a meaning of their own that the old text has and the new text lacks, in lower case."""
        left = {word.low for word in self._new}
        return frozenset(word.low for word in self._old if word.low not in left and word.low not in _PLAIN)

    @cached_property
    def same_words(self) -> bool:
        """Whether both texts say the same words, whatever their marks, cases and plain words are."""
        fresh = {word.low for word in self._new}.difference(word.low for word in self._old)
        return not self.gone and fresh <= _PLAIN

    def quotes(self, text: str) -> frozenset[str]:
        """Return the words of ``text`` that only the old text has."""
        if not self.gone:
            return frozenset()
        low = text.lower()
        # scripts without spaces have no words to compare: there a run of letters may stand within a longer one
        unspaced = {word for word in self.gone if not word.isascii() and word in low}
        return self.gone.intersection(word.low for word in _words(text)) | unspaced

    def corrected(self, text: str) -> str:
        """Return ``text`` with each corrected phrase of the old text replaced by its correction."""
        for phrase, correction in self.corrections:
            text = phrase.sub(correction.replace("\\", r"\\"), text)
        return text

    def named(self, name: str) -> bool:
        """Whether the new text says ``name`` as whole words."""
        return _says(self.new, name)

    def was_named(self, name: str) -> bool:
        """Whether the old text says ``name`` as whole words."""
        return _says(self.old, name)

    @cached_property
    def corrections(self) -> list[tuple[re.Pattern[str], str]]:
        """Phrases of the old text, each with the words that took its place; the longest phrases come first."""
        old, new = self._old, self._new
        if not self.gone or max(len(old), len(new)) > _LONGEST:
            return []
        found: dict[tuple[str, ...], str] = {}
        aligned = SequenceMatcher(None, [word.low for word in old], [word.low for word in new], autojunk=False)
        for what, start, stop, first, last in aligned.get_opcodes():
            if what != "replace" or max(stop - start, last - first) > _PHRASE:
                continue
            self._correct(found, old[start:stop], new[first:last])
            if stop - start == last - first:
                for one, other in zip(old[start:stop], new[first:last], strict=True):
                    self._correct(found, [one], [other])
        ordered = sorted(found.items(), key=lambda pair: -len(pair[0]))
        return [(_pattern(phrase), said) for phrase, said in ordered]

    def corrected_path(self, path: str) -> str | None:
        """Return ``path`` as the new text writes it; None if the old text names it and the new text does not."""
        if path not in self.old or path in self.new:
            return path
        before, after = set(_PATH.findall(self.old)), set(_PATH.findall(self.new))
        fresh = after - before
        return fresh.pop() if len(fresh) == 1 and before - after == {path} else None

    def _correct(self, found: dict[tuple[str, ...], str], old: list[_Word], new: list[_Word]) -> None:
        phrase = tuple(word.low for word in old)
        if self.gone.intersection(phrase):
            found.setdefault(phrase, self.new[new[0].start : new[-1].stop])

    @cached_property
    def _old(self) -> list[_Word]:
        return _words(self.old)

    @cached_property
    def _new(self) -> list[_Word]:
        return _words(self.new)


def _words(text: str) -> list[_Word]:
    return [_Word(_low(found.group()), found.start(), found.end()) for found in _TOKEN.finditer(text)]


def _low(word: str) -> str:
    return word.lower().replace("\u2019", "'").removesuffix("'s")


def _says(text: str, name: str) -> bool:
    words = [word.low for word in _words(name)]
    return bool(words) and _pattern(words).search(text) is not None


def _pattern(words: Iterable[str]) -> re.Pattern[str]:
    joined = r"[\W_]+".join(re.escape(word).replace("'", "['\u2019]") for word in words)
    return re.compile(rf"(?<![^\W_]){joined}(?![^\W_])", re.IGNORECASE)

"""What a question says of a memory in passing: two words that stand together, a file, a tag."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from memlab.kernel.index import Words

__all__ = ["Phrases", "file_namer", "tag_namer"]

_READ = 20_000
"""Characters of a memory in which phrases are looked for: a pool of long documents is read in milliseconds."""

_SHORT = 3
"""A file's stem counts from so many letters on; ``a.py`` is named by its whole name."""

_APART = re.compile(r"[\s\"'`()\[\]{}<>,;:?!=|]+")


class Phrases:
    """The pairs of different stems that are neighbours in a question, stop words left out.

    >>> asked = Phrases(Words(), "When is the board meeting in Lisbon?")
    >>> [asked.share(text) for text in ("They moved the board meeting", "The board: a meeting of Lisbon", "a meeting")]
    [0.5, 1.0, 0.0]
    """

    def __init__(self, words: Words, question: str) -> None:
        stems = words.stems(question)
        self._words, self._pairs = words, _pairs(stems)
        number = {stem: term for term, stem in enumerate(dict.fromkeys(stem for stem in stems if stem in words))}
        self.terms = [(number[one], number[two]) for one, two in self._pairs if one in number and two in number]
        """The pairs that a text can have, as the numbers of the question's known terms."""

    def share(self, text: str) -> float:
        """The share of them that are neighbours in the text, too; 0 where the question has none."""
        if not self._pairs:
            return 0.0
        return len(self._pairs.intersection(pairwise(self._words.stems(text[:_READ])))) / len(self._pairs)


def _pairs(stems: list[str]) -> set[tuple[str, str]]:
    return {(one, two) for one, two in pairwise(stems) if one != two}


def tag_namer(words: Words, question: str) -> Callable[[str], bool]:
    """Whether the stems of a tag stand in the question, one after the other.

    >>> named = tag_namer(Words(), "which deploy scripts are flaky?")
    >>> named("deploy-script"), named("deploy"), named("flaky-deploy"), named("which")
    (True, True, False, False)
    """
    asked = _joined(words.stems(question))
    known: dict[str, bool] = {}

    def named(tag: str) -> bool:
        if tag not in known:
            stems = words.stems(tag)
            known[tag] = bool(stems) and _joined(stems) in asked
        return known[tag]

    return named


def _joined(stems: list[str]) -> str:
    return "\x1f" + "".join(f"{stem}\x1f" for stem in stems)


def file_namer(stop_words: frozenset[str], question: str) -> Callable[[str], bool]:
    """Whether the question names a file: by its path, by the end of its path, by its name or by its stem; in any case.

    >>> named = file_namer(frozenset(["all"]), "Who wrote recall/_pipeline.py, and all of parser?")
    >>> named("memlab/kernel/recall/_pipeline.py"), named("src/parser.rs"), named("src/all.rs"), named("pipeline.py")
    (True, True, False, False)
    """
    said = {piece.strip("./") for piece in _APART.split(question.lower().replace("\\", "/"))} - {""}

    def named(path: str) -> bool:
        parts = [part for part in path.lower().replace("\\", "/").split("/") if part and part != "."]
        if any("/".join(parts[start:]).strip("./") in said for start in range(max(len(parts) - _DEEP, 0), len(parts))):
            return True
        stem = parts[-1].rpartition(".")[0] if parts else ""
        return len(stem) >= _SHORT and stem not in stop_words and stem in said

    return named


_DEEP = 32
"""Folders from the end of a path that a question may give."""

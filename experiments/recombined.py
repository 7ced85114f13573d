"""Generate synthetic conversations of any length from real ones, for ``scale.py``.

Real sentences are cut at a joint (a comma, "and", "because", "to", ...). The first part of one sentence is joined to
the last part of another with the same joint. A turn has as many sentences as some real turn. A session of twenty turns
draws its sentences from three real sessions, so that it has few subjects. A conversation has two speakers with invented
names, and 25 sessions.

So words keep their shares, and Zipf's law and the lengths of posting lists are kept with them. The tail of rare words
must grow with the corpus, as in real text (Heaps' law). A word that occurs in one real turn only is therefore redrawn,
log-uniformly over ranks (density 1/rank), from the end of the real vocabulary up to rank 200,000. The first of these
are further words of the embedder, then compounds of two of them.

The same seed gives the same turns, and a longer corpus begins with the shorter one.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

from memlab.io.ingest import LabelledConversation

__all__ = ["START", "Recombined"]

START = datetime(2000, 1, 1, tzinfo=UTC)
TURNS, SESSIONS, THEMES = 20, 25, 3
"""Turns per session, sessions per conversation, and real sessions per generated session."""
LAST_RANK = 200_000
_SMALL = "and but so because when while if that which who where to for with in on at of from about like as"
JOINTS = frozenset(_SMALL.split())

_RARE, _OTHER = "\0", "\1"
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_SYLLABLES = [
    first + last
    for first in "bdfgklmnrstvz"
    for last in ("a", "e", "i", "o", "u", "ai", "or", "en")
]


@dataclass
class _Session:
    """Sentences of a real session: whole, and their parts by joint, with marks for rare words."""

    whole: list[tuple[str, tuple[tuple[str, str], ...]]] = field(default_factory=list)
    tails: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, sentence: str) -> None:
        words = sentence.split()
        heads = []
        for position in range(2, len(words) - 1):
            word = words[position].lower()
            joint = word if word in JOINTS else "," if words[position - 1].endswith(",") else None
            if joint is not None:
                heads.append((joint, " ".join(words[:position])))
                self.tails[joint].append(" ".join(words[position:]))
        self.whole.append((sentence, tuple(heads)))


class Recombined:
    """Rows and questions generated from labelled conversations."""

    def __init__(self, source: Sequence[LabelledConversation], seed: int) -> None:
        self.seed = seed
        texts = [turn.text for entry in source for turn in entry.conversation.turns if turn.text]
        counts = Counter(
            word for text in texts for word in {word.lower() for word in _WORD.findall(text)}
        )
        self._speakers = {name.lower() for entry in source for name in entry.conversation.speakers}
        self._once = {
            word for word, turns in counts.items() if turns == 1 and len(word) > 3
        } - self._speakers
        self._first_rank = len(counts)
        self._further = [word for word in _embedder_words() if word not in counts]
        self._lengths = [len(_SENTENCE.split(text)) for text in texts]
        self._sessions: list[_Session] = []
        for entry in source:
            of_one: dict[str, _Session] = defaultdict(_Session)
            for turn in entry.conversation.turns:
                for sentence in _SENTENCE.split(turn.text):
                    if sentence:
                        of_one[turn.session].add(self._marked(sentence, rare=True))
            self._sessions += of_one.values()
        questions_asked = (
            question for entry in source for question in entry.questions if question.category != 5
        )
        self._questions = [self._marked(question.text, rare=False) for question in questions_asked]

    def rows(self, count: int) -> Iterator[dict[str, Any]]:
        """Yield the first ``count`` turns: text, speaker, session, project and ``minute``."""
        for number in range(-(-count // TURNS)):
            yield from self._session(number, min(TURNS, count - number * TURNS))

    def questions(self, count: int, *, rows: int) -> list[tuple[str, str]]:
        """Return real questions about speakers of the first ``rows`` turns: (text, project)."""
        dice = random.Random(f"{self.seed}/questions/{rows}")
        drawn = []
        for _ in range(count):
            conversation = dice.randrange(-(-rows // (TURNS * SESSIONS)))
            name = _invent_name(2 * conversation + dice.randrange(2))
            drawn.append((dice.choice(self._questions).replace(_OTHER, name), f"p{conversation}"))
        return drawn

    def _session(self, number: int, turns: int) -> Iterator[dict[str, Any]]:
        dice = random.Random(f"{self.seed}/{number}")
        conversation = number // SESSIONS
        names = (_invent_name(2 * conversation), _invent_name(2 * conversation + 1))
        themes = dice.sample(self._sessions, min(THEMES, len(self._sessions)))
        for turn in range(turns):
            sentences = (self._sentence(themes, dice) for _ in range(dice.choice(self._lengths)))
            yield {
                "text": " ".join(sentences).replace(_OTHER, names[1 - turn % 2]),
                "speaker": names[turn % 2],
                "session": f"p{conversation}/s{number % SESSIONS}",
                "project": f"p{conversation}",
                "minute": 60 * number + turn,
            }

    def _sentence(self, themes: Sequence[_Session], dice: random.Random) -> str:
        sentence, heads = dice.choice(dice.choice(themes).whole)
        if heads:
            joint, head = dice.choice(heads)
            tails = dice.choice(themes).tails.get(joint)
            if tails:
                sentence = f"{head} {dice.choice(tails)}"
        if _RARE not in sentence:
            return sentence
        first, *rest = sentence.split(_RARE)
        return first + "".join(self._rare(dice) + part for part in rest)

    def _rare(self, dice: random.Random) -> str:
        words = self._further
        rank = (
            int(self._first_rank * (LAST_RANK / self._first_rank) ** dice.random())
            - self._first_rank
        )
        if rank < len(words):
            return words[rank]
        return words[rank % len(words)] + words[rank * 7919 // len(words) % len(words)]

    def _marked(self, text: str, *, rare: bool) -> str:
        def mark(match: re.Match[str]) -> str:
            word = match[0].lower()
            if word.removesuffix("'s") in self._speakers:
                return _OTHER + ("'s" if word.endswith("'s") else "")
            return _RARE if rare and word in self._once else match[0]

        return _WORD.sub(mark, text)


def _invent_name(number: int) -> str:
    """Return an invented first name for each number."""
    number += len(_SYLLABLES)
    parts = []
    while number:
        number, part = divmod(number, len(_SYLLABLES))
        parts.append(_SYLLABLES[part])
    return "".join(parts).capitalize()


def _embedder_words() -> list[str]:
    """Return the embedder's whole words, the most frequent first."""
    tokenizer = json.loads(
        (files("memlab.kernel.embedding") / "model" / "tokenizer.json").read_text(encoding="utf-8")
    )
    vocabulary: dict[str, int] = tokenizer["model"]["vocab"]
    words = sorted(vocabulary, key=vocabulary.__getitem__)
    return [word for word in words if word.isascii() and word.isalpha() and len(word) > 3]


def time_of_row(minute: int) -> datetime:
    """Return the time of a row."""
    return START + timedelta(minutes=minute)

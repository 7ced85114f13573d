"""English for the kernel: words, tables, numbers and restated statements.

The package is independent of memories and labs. Its tables are in ``english.toml`` and, for signs in queries and
statements, in ``signs.toml``. ``memlab.subjects.reading`` interprets sentences with the same tables.
"""

from memlab.kernel.english._statements import SAYS, Asked, asks_for_fact, restated, signs_of
from memlab.kernel.english._stop_words import STOP_WORDS
from memlab.kernel.english._words import (
    NUMBER_WORDS,
    WEEKDAYS,
    Token,
    first_of,
    holds,
    lexicon,
    number_of,
    padded,
    phrases,
    table,
    tokenize,
    vocabulary,
    word_pattern,
    words_of,
)

__all__ = [
    "NUMBER_WORDS",
    "SAYS",
    "STOP_WORDS",
    "WEEKDAYS",
    "Asked",
    "Token",
    "asks_for_fact",
    "first_of",
    "holds",
    "lexicon",
    "number_of",
    "padded",
    "phrases",
    "restated",
    "signs_of",
    "table",
    "tokenize",
    "vocabulary",
    "word_pattern",
    "words_of",
]

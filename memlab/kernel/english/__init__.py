"""English as the kernel reads it: words, tables, numbers, and statements that another text makes anew.

It knows no memory and no lab. The tables are ``english.toml`` and, of what queries and statements show, ``signs.toml``.
What a sentence does and says is read by ``memlab.subjects.reading``, from the same tables.
"""

from memlab.kernel.english._statements import SAYS, Asked, Restated, Signs, restated, signs_of
from memlab.kernel.english._stop_words import STOP_WORDS
from memlab.kernel.english._words import (
    NUMBER_WORDS,
    WEEKDAYS,
    Shape,
    Token,
    first_of,
    holds,
    lexicon,
    number_of,
    padded,
    phrases,
    read_number,
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
    "Restated",
    "Shape",
    "Signs",
    "Token",
    "first_of",
    "holds",
    "lexicon",
    "number_of",
    "padded",
    "phrases",
    "read_number",
    "restated",
    "signs_of",
    "table",
    "tokenize",
    "vocabulary",
    "word_pattern",
    "words_of",
]

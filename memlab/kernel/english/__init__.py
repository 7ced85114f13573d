"""English as memlab reads it: words, numbers, sentences, clauses, and what kind of act a sentence is.

One package reads English for linking, extraction, statements, detectors, credit and dates. It knows no memory and no
lab, imports the standard library alone, and learns nothing from data; its tables are ``english.toml`` and, of
ordinary words, ``plain_words.txt``.
"""

from memlab.kernel.english._acts import Act, Person, Sentence, read_sentences, speech_act, subject_person
from memlab.kernel.english._answers import Completed, complete_answer, last_question
from memlab.kernel.english._changes import SIGNS, signs_of_change
from memlab.kernel.english._clauses import LONGEST, Clause, asserted, contracted_words
from memlab.kernel.english._code_bases import code_words, file_language, file_subject, name_stems, stem_code_word
from memlab.kernel.english._excerpts import BYTES_A_TOKEN, count_tokens, sentences_and_lines, shorten
from memlab.kernel.english._feelings import emotional_weight
from memlab.kernel.english._foreign import code_lines, without_quotations
from memlab.kernel.english._lexicon import first_of, holds, lexicon, padded, phrases, table, vocabulary
from memlab.kernel.english._names import proper_names
from memlab.kernel.english._numbers import NUMBER_WORDS, number_of, read_number
from memlab.kernel.english._plain import is_plain_word
from memlab.kernel.english._sentences import clauses, sentence_spans, sentences
from memlab.kernel.english._tokens import Shape, Token, tokenize, word_pattern, words_of

__all__ = [
    "BYTES_A_TOKEN",
    "LONGEST",
    "NUMBER_WORDS",
    "SIGNS",
    "Act",
    "Clause",
    "Completed",
    "Person",
    "Sentence",
    "Shape",
    "Token",
    "asserted",
    "clauses",
    "code_lines",
    "code_words",
    "complete_answer",
    "contracted_words",
    "count_tokens",
    "emotional_weight",
    "file_language",
    "file_subject",
    "first_of",
    "holds",
    "is_plain_word",
    "last_question",
    "lexicon",
    "name_stems",
    "number_of",
    "padded",
    "phrases",
    "proper_names",
    "read_number",
    "read_sentences",
    "sentence_spans",
    "sentences",
    "sentences_and_lines",
    "shorten",
    "signs_of_change",
    "speech_act",
    "stem_code_word",
    "subject_person",
    "table",
    "tokenize",
    "vocabulary",
    "without_quotations",
    "word_pattern",
    "words_of",
]

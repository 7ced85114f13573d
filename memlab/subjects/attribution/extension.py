"""What attribution lets a pack decide: the slot ``credit``."""

from __future__ import annotations

from pathlib import Path

from memlab.kernel.extension import Extension
from memlab.kernel.language import Input
from memlab.kernel.policies import Slot

__all__ = ["EXTENSION"]

_INPUTS = (
    Input(
        "covers", "num", "share of the answer's new words, by rarity, that the memory holds, 0-1"
    ),
    Input("alone", "num", "covers, each word divided among the shown memories that hold it"),
    Input(
        "words",
        "num",
        "how many of the answer's new words it holds, by rarity: a word of its own counts 1",
    ),
    Input("rarest", "num", "rarity of the rarest new word that it holds, 0-1"),
    Input(
        "quoted",
        "num",
        "words in the longest run that both hold, 4 at least, else 0; held by nothing else",
    ),
    Input("names", "num", "how many names within the answer's sentences it holds"),
    Input("numbers", "num", "how many of the answer's numbers it holds"),
    Input(
        "same-date", "num", "how nearly both name one day or span, each as of when it was said, 0-1"
    ),
    Input(
        "said-then",
        "bool",
        "the answer names the day on which it was said, or a span around that day",
    ),
    Input(
        "alike",
        "num",
        "how near the answer's new words have their nearest word in it, by meaning, 0-1",
    ),
    Input("near", "num", "cosine of question and answer together with the memory"),
    Input(
        "asked",
        "num",
        "share of the question's words, by rarity, in it or the memory just before it, 0-1",
    ),
    Input("asked-words", "num", "how many of the question's words it holds, by rarity"),
    Input(
        "evidence",
        "num",
        "it speaks of the question and holds the answer: the product of the two, 0-1",
    ),
    *(
        Input(f"{name}-lead", "num", f"{name}, less the greatest of the other shown memories")
        for name in ("words", "alike", "near", "asked", "evidence")
    ),
    Input("in-arguments", "num", "share of the new words of tool arguments that it holds, 0-1"),
    Input("is-question", "bool", "it holds a question mark"),
    Input("of-another", "bool", "the question is about another speaker than who said it"),
    Input("length", "num", "its number of different words, stop words left out"),
    Input("cited", "bool", "the answer names its id, and no more than five ids of what was shown"),
    Input("listed", "bool", "the answer names its id among more than five"),
    Input("restates", "num", "share of the answer's words that stand in the question, 0-1"),
    Input("explained", "num", "share of the answer's new words that any shown memory holds, 0-1"),
    Input("abstains", "bool", "the answer says that there is none"),
    Input("corrected", "bool", "what the user says next puts something right"),
    Input("denied", "bool", "what the user says next denies what it says"),
)
"""An answer, a memory that was shown for it, and what the others that were shown have of the same."""

EXTENSION = Extension(
    "attribution",
    "1.0",
    slots=[
        Slot(
            "credit",
            "What an answer owes to a memory that was shown for it: 1 all, 0 nothing, below 0 it misled; null: no say. "
            "lab.agents.credits.answer asks it and logs the reward.",
            inputs=_INPUTS,
            file=Path(__file__).parent / "defaults" / "credit.hy",
        )
    ],
)

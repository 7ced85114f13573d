"""The slot ``credit``, by which packs decide which memories an answer used."""

from __future__ import annotations

from pathlib import Path

from memlab.kernel.extension import Extension
from memlab.kernel.language import Input
from memlab.kernel.policies import Slot

_INPUTS = (
    Input(
        "covers",
        "num",
        "share of the answer's new words that the memory has, weighted by rarity, 0-1",
    ),
    Input(
        "alone", "num", "like covers, but each word is divided among the hits that contain the word"
    ),
    Input(
        "words",
        "num",
        "number of the answer's new words in the memory, by rarity; a unique word counts 1",
    ),
    Input("rarest", "num", "rarity of the rarest of the answer's new words in the memory, 0-1"),
    Input(
        "quoted",
        "num",
        "words of the longest quote, which no other hit has; 0 if below 4 words",
    ),
    Input("names", "num", "number of names from the answer's sentences in the memory"),
    Input("numbers", "num", "number of the answer's numbers in the memory"),
    Input("same-date", "num", "overlap of the days that answer and memory name, 0-1"),
    Input(
        "said-then",
        "bool",
        "the answer names the day of the memory, or a span around that day",
    ),
    Input(
        "alike",
        "num",
        "similarity in meaning of the answer's new words to words of the memory, 0-1",
    ),
    Input("near", "num", "cosine of query and answer together with the memory"),
    Input(
        "asked",
        "num",
        "share of the query's words in the memory or the one just before, by rarity, 0-1",
    ),
    Input("asked-words", "num", "number of the query's words in the memory, weighted by rarity"),
    Input(
        "evidence",
        "num",
        "product of the shares of the query and of the answer in the memory, 0-1",
    ),
    *(
        Input(f"{name}-lead", "num", f"{name} of the memory, minus the maximum of the other hits")
        for name in ("words", "alike", "near", "asked", "evidence")
    ),
    Input(
        "in-arguments", "num", "share of the new words of tool arguments that the memory has, 0-1"
    ),
    Input("is-question", "bool", "the memory contains a question mark"),
    Input("of-another", "bool", "the query is about another speaker than the memory's"),
    Input("length", "num", "number of distinct words of the memory, without stop words"),
    Input("cited", "bool", "the answer names the memory's id, and at most five ids of hits"),
    Input("listed", "bool", "the answer names the memory's id among more than five"),
    Input("restates", "num", "share of the answer's words that are in the query, 0-1"),
    Input("explained", "num", "share of the answer's new words in any of the hits, 0-1"),
    Input("abstains", "bool", "the answer says that it does not know"),
    Input("corrected", "bool", "the next message of the user corrects something"),
    Input("denied", "bool", "the next message of the user denies the memory"),
)
"""The inputs of the slot, which compare an answer with a memory and the other hits."""

EXTENSION = Extension(
    "attribution",
    "1.0",
    slots=[
        Slot(
            "credit",
            "Credit of a retrieved memory for an answer: 1 if the answer used the memory, 0 if not, "
            "negative if the memory misled, null if undecided. lab.agents.credits.answer evaluates credit"
            " and logs the reward.",
            inputs=_INPUTS,
            file=Path(__file__).parent / "defaults" / "credit.hy",
        )
    ],
)
"""The extension that declares the slot ``credit``."""

"""The slot ``credit``, by which packs decide on attribution."""

from __future__ import annotations

from pathlib import Path

from memlab.kernel.extension import Extension
from memlab.kernel.language import Input
from memlab.kernel.policies import Slot

__all__ = ["EXTENSION"]

_INPUTS = (
    Input("covers", "num", "share of the answer's new words, by rarity, in the memory, 0-1"),
    Input("alone", "num", "covers, each word divided among the hits that contain it"),
    Input(
        "words",
        "num",
        "number of the answer's new words in it, weighted by rarity: a unique word counts 1",
    ),
    Input("rarest", "num", "rarity of the rarest new word in it, 0-1"),
    Input(
        "quoted",
        "num",
        "words of the longest run in both and in no other memory; 0 below 4 words",
    ),
    Input("names", "num", "number of names within the answer's sentences in it"),
    Input("numbers", "num", "number of the answer's numbers in it"),
    Input(
        "same-date", "num", "overlap of the days that both name, each relative to its own time, 0-1"
    ),
    Input(
        "said-then",
        "bool",
        "the answer names the day of the memory, or a span around that day",
    ),
    Input(
        "alike",
        "num",
        "closeness of the answer's new words to their nearest words in it, by meaning, 0-1",
    ),
    Input("near", "num", "cosine of query and answer together with the memory"),
    Input(
        "asked",
        "num",
        "share of the query's words, by rarity, in it or the memory just before it, 0-1",
    ),
    Input("asked-words", "num", "number of the query's words in it, weighted by rarity"),
    Input(
        "evidence",
        "num",
        "it covers the query and the answer: the product of both shares, 0-1",
    ),
    *(
        Input(f"{name}-lead", "num", f"{name}, minus the maximum of the other hits")
        for name in ("words", "alike", "near", "asked", "evidence")
    ),
    Input("in-arguments", "num", "share of the new words of tool arguments in it, 0-1"),
    Input("is-question", "bool", "it contains a question mark"),
    Input("of-another", "bool", "the query is about another speaker than the memory's"),
    Input("length", "num", "its number of distinct words, without stop words"),
    Input("cited", "bool", "the answer names its id, and at most five ids of hits"),
    Input("listed", "bool", "the answer names its id among more than five"),
    Input("restates", "num", "share of the answer's words that are in the query, 0-1"),
    Input("explained", "num", "share of the answer's new words in any of the hits, 0-1"),
    Input("abstains", "bool", "the answer says that it does not know"),
    Input("corrected", "bool", "the next message of the user corrects something"),
    Input("denied", "bool", "the next message of the user denies the memory"),
)
"""Inputs of the slot: an answer, a retrieved memory, and the other hits."""

EXTENSION = Extension(
    "attribution",
    "1.0",
    slots=[
        Slot(
            "credit",
            "The credit of a retrieved memory for an answer: 1 all, 0 none, below 0 it misled; null: undecided. "
            "lab.agents.credits.answer evaluates it and logs the reward.",
            inputs=_INPUTS,
            file=Path(__file__).parent / "defaults" / "credit.hy",
        )
    ],
)
"""The extension that declares the slot."""

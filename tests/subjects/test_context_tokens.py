"""Contexts whose tokens the caller counts, and contexts that say that their memories are weak."""

import math
import random
import re

import pytest

import memlab
from memlab.subjects.context import writing

PIECES = re.compile(r" ?[^\W\d_]{1,5}| ?\d{1,3}|\s+(?=\S)|[^\w\s]|_|\s")

COUNTS = {
    "four bytes": None,
    "characters": len,
    "words": lambda text: len(text.split()),
    "pieces": lambda text: len(PIECES.findall(text)),
    "a fraction": lambda text: len(text.encode()) / 3.3,
    "with an overhead of each call": lambda text: 7 + len(text) // 4,
    "nothing": lambda text: 0,
    "too much": lambda text: 10**6,
}
"""Functions that count tokens, by name."""


def make_rows(dice):
    """Return rows of memories with hostile words."""
    words = ["harbour", "key", "*", "<b>", "日本", "\U0001f600", "a_b", "|", "note", "door", "why"]
    return [
        {
            "text": " ".join(dice.choices(words, k=dice.choice((1, 5, 40, 400)))) + f" {n}.",
            "speaker": dice.choice((None, "Ana", "日本")),
            "kind": dice.choice(("fact", "turn", "gotcha")),
            "files": dice.choice(((), ("src/harbour/a_very_long_name.py",))),
            "pinned": n % 20 == 0,
        }
        for n in range(60)
    ]


@pytest.mark.long
@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("seed", range(2))
def test_no_context_exceeds_its_budget_by_the_callers_count(name, seed, clock):
    check_contexts(name, seed, clock, contexts=10)


@pytest.mark.long
@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("seed", range(2, 7))
def test_no_context_of_two_thousand_exceeds_its_budget(name, seed, clock):
    check_contexts(name, seed, clock, contexts=50)


def check_contexts(name, seed, clock, *, contexts):
    dice, tokens = random.Random(seed), COUNTS[name]
    count = tokens or (lambda text: len(text.encode()) / 4)
    with memlab.open(clock=clock) as lab:
        lab.remember(make_rows(dice), linking="off")
        lab.facts.add("Ana", "likes", object="harbours")
        lengths = []
        for number in range(contexts):
            budget = dice.randrange(1, 1_500)
            task = "why does Ana have the " + " ".join(
                dice.choices(("harbour", "key", "ship"), k=2)
            )
            context = lab.context(
                task, budget=budget, log=number % 2 == 0, tokens=tokens, session=f"s{number}"
            )
            for text in filter(None, (context.text, context.markdown)):
                assert count(text) <= budget
            assert context.tokens == (math.ceil(count(context.text)) if context.text else 0)
            lengths.append(len(context))
        assert (max(lengths) > 0) == (name != "too much")


@pytest.mark.long
def test_more_memories_fit_where_the_caller_counts_fewer_tokens(clock):
    with memlab.open(clock=clock) as lab:
        lab.remember([f"The harbour has the key number {n} in its drawer" for n in range(60)])
        task = "Where is the key of the harbour?"
        few = lab.context(task, budget=200, log=False)
        many = lab.context(task, budget=200, log=False, tokens=lambda text: len(text) // 8)
        assert len(many) > len(few)
        same = lab.context(task, budget=200, log=False, tokens=lambda text: len(text.encode()) / 4)
        assert few.hits.ids[: len(same)] == same.hits.ids
        assert len(same) >= len(few) - 1  # 16 tokens are spare for the marks


@pytest.mark.long
@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (lambda text: 1 / 0, "tokens=...*raised ZeroDivisionError"),
        (lambda text: float("nan"), "returned nan for a text"),
        (lambda text: float("inf"), "returned inf for a text"),
        (lambda text: -1, "returned -1 for a text"),
        (lambda text: "12", "returned '12' for a text"),
        (lambda text: None, "returned None for a text"),
        (lambda text: True, "returned True for a text"),
        (lambda text: [1, 2], "returned .* for a text"),
        (lambda: 3, "raised TypeError"),
        (lambda text: len(text) ** 2 // 100, "more than the budget"),
    ],
)
def test_a_count_that_is_none_is_refused_and_nothing_is_logged(tokens, message, clock):
    with memlab.open(clock=clock) as lab:
        lab.remember([f"The harbour has the key number {n}" for n in range(60)])
        events = len(lab.log)
        with pytest.raises(memlab.InputError, match=message):
            lab.context("the harbour key", budget=1_000, tokens=tokens)
        assert len(lab.log) == events
        assert len(lab.context("the harbour key")) > 0


def test_a_slow_count_is_refused(clock, monkeypatch):
    monkeypatch.setattr(writing, "_TOKENIZER_SECONDS", 0.0)
    with memlab.open(clock=clock) as lab:
        lab.remember("The harbour key hangs behind the door")
        with pytest.raises(memlab.InputError, match="Pass a faster function"):
            lab.context("the harbour key", tokens=len)


def test_a_context_says_that_its_memories_are_weak(clock):
    with memlab.open(clock=clock) as lab:
        lab.remember(["The user prefers tabs", "The user has a dog"])
        weak = lab.context("What is the capital of Mongolia?", budget=200)
        assert weak.weak
        assert len(weak) > 0
        first, second = weak.text.splitlines()[:2]
        assert "These memories are weak: probably no memory answers this." in first
        assert second.startswith("<memory ")
        assert "weak" in weak.markdown
        assert "weak" in repr(weak)
        assert weak.tokens <= 200
        known = lab.context("Does the user prefer tabs or spaces?", budget=200)
        assert not known.weak
        assert "weak" not in known.text


@pytest.mark.long
def test_the_word_weak_takes_no_room_that_a_memory_needs(clock):
    with memlab.open(clock=clock) as lab:
        lab.remember("The user prefers tabs")
        for budget in range(1, 90):
            context = lab.context("What is the capital of Mongolia?", budget=budget, log=False)
            assert context.tokens <= budget
            assert len(context.markdown.encode()) <= 4 * budget
            if "weak" in context.text:
                assert len(context) == 1

"""What is read here, Hy's own reader reads alike."""

from __future__ import annotations

import random
from pathlib import Path

import hy.models
import pytest
from hy.reader import read_many

import memlab
from memlab.errors import PolicyError
from memlab.kernel.language import Form, Text, read_forms
from tests.campaigns.fuzzing.mutations import MUTATIONS
from tests.language.corpus import attacks
from tests.language.grammar import Grammar

PACKS = sorted((Path(memlab.__file__).parent / "kernel" / "policies" / "packs").glob("*.hy"))

UNKNOWN_TO_HY = ("#t", "#f", "\r", "\\r", "#_")
"""Scheme's truth values, a carriage return in a string (a newline here), and ``#_`` with no white space after it."""


def of_hy(model: object) -> object:
    """Convert a model of Hy to nested tuples; names in one spelling, numbers as float64."""
    if isinstance(model, hy.models.Expression | hy.models.List):
        return type(model).__name__, [of_hy(item) for item in model]
    if isinstance(model, hy.models.Integer | hy.models.Float):
        return "number", float(model).hex()
    if isinstance(model, hy.models.Keyword):
        return "keyword", kebab(model.name)
    kind = "string" if isinstance(model, hy.models.String) else "symbol"
    return kind, str(model) if kind == "string" else kebab(str(model))


def of_ours(form: Form) -> object:
    if form.kind in ("call", "list"):
        return "Expression" if form.kind == "call" else "List", [
            of_ours(item) for item in form.items
        ]
    if form.kind in ("int", "float"):
        return "number", form.number.hex()
    return "string" if form.kind == "str" else form.kind, form.text


def kebab(name: str) -> str:
    return name.replace("_", "-") if len(name) > 1 else name


def check(text: str) -> bool:
    """Return whether a text can be read; check that Hy reads it equally, apart from forms unknown to Hy."""
    try:
        forms = read_forms(Text(text), characters=60_000, forms=6_000)
    except PolicyError:
        return False
    if text.isascii() and not any(piece in text for piece in UNKNOWN_TO_HY):
        assert [of_ours(form) for form in forms] == [of_hy(model) for model in read_many(text)], (
            text
        )
    return True


@pytest.mark.parametrize("path", PACKS, ids=lambda path: path.stem)
def test_the_shipped_packs(path: Path) -> None:
    assert check(path.read_text(encoding="utf-8").replace("(require memlab.dialect *)", ""))


@pytest.mark.long
@pytest.mark.parametrize("every", [15, pytest.param(1, marks=pytest.mark.slow)])
def test_drawn_programs_attacks_and_what_is_near_them(every: int) -> None:
    rng = random.Random(3)
    grammar = Grammar(rng)
    texts = [grammar.policy().source for _ in range(300 // every)]
    texts += [text for text in attacks()[::every] if len(text) < 200]
    for mutation in MUTATIONS:
        texts += [mutation(rng.choice(texts), rng.choice(texts), rng) for _ in range(20 // every)]
    assert sum(map(check, texts)) > 700 // every


def test_the_documented_limits_hold_to_the_character_and_the_integer():
    rest = 20_000 - len("(fn [] 1)")
    read_forms(Text("(fn [] 1)" + " " * rest))
    with pytest.raises(PolicyError, match="20,000"):
        read_forms(Text("(fn [] 1)" + " " * (rest + 1)))
    read_forms(Text(f"(fn [] {2**53})"))
    with pytest.raises(PolicyError):
        read_forms(Text(f"(fn [] {2**53 + 1})"))

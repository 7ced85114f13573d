"""The words that a policy may be written with, for editors and completion."""

from __future__ import annotations

from functools import cache
from typing import Literal, NamedTuple

from memlab.kernel.language._library import library

__all__ = ["FORM_SHAPES", "Word", "vocabulary"]

FORM_SHAPES = {
    "if": "(if test then else)",
    "when": "(when test value): null where the test does not hold",
    "cond": "(cond test value ... else value)",
    "case": '(case kind ["event" "goal"] value ... else value)',
    "let": "(let [name value ...] body)",
    "fn": "(fn [features] body)",
    "defn": "(defn name [arguments] body): a helper, in front of the policy",
    "defpolicy": '(defpolicy slot [features] "what it does" body)',
    "param": "(param :name value :low a :high b): a number that has a slider",
    "update": "(update :field value ...): for slots that return a record",
    "quote": "(quote word): the word as a string",
    "in": '(in kind ["fact" "event"])',
    "not-in": '(not-in kind ["fact" "event"])',
    "one-of": '(one-of kind "fact" "event")',
    "null?": "(null? x)",
    "if-null": "(if-null x otherwise)",
    "+": "(+ x ...)",
    "-": "(- x y ...)",
    "*": "(* x ...)",
    "/": "(/ x y ...): by zero is infinite",
    "min": "(min x ...)",
    "max": "(max x ...)",
    "abs": "(abs x)",
    "exp": "(exp x)",
    "log": "(log x): natural",
    "log1p": "(log1p x): log of 1 + x",
    "sqrt": "(sqrt x)",
    "tanh": "(tanh x)",
    "pow": "(pow x exponent)",
    "sign": "(sign x): -1, 0 or 1",
    "floor": "(floor x)",
    "ceil": "(ceil x)",
    "clamp": "(clamp x low high)",
    "and": "(and test ...)",
    "or": "(or test ...)",
    "not": "(not test)",
    "=": "(= x y ...)",
    "!=": "(!= x y)",
    "<": "(< x y ...)",
    "<=": "(<= x y ...)",
    ">": "(> x y ...)",
    ">=": "(>= x y ...)",
    "days": "(days amount), in days",
    "weeks": "(weeks amount), in days",
    "hours": "(hours amount), in days",
    "minutes": "(minutes amount), in days",
    "has": '(has tags "x")',
    "has-any": '(has-any tags ["x" "y"])',
    "has-all": '(has-all tags ["x" "y"])',
    "overlap": "(overlap tags query-tags): how many they share",
    "jaccard": "(jaccard tags query-tags): share of their union, 0-1",
    "size": "(size tags)",
    "slate-min": "(slate-min x): the least of all candidates",
    "slate-max": "(slate-max x): the greatest of all candidates",
    "slate-mean": "(slate-mean x): the mean of all candidates",
    "slate-rank": "(slate-rank x): 1 for the greatest of all candidates",
    "min-max": "(min-max x): 0 for the least of all candidates, 1 for the greatest",
}
"""How each form is written."""


class Word(NamedTuple):
    """A name that a policy may call: ``shape`` is how it is written, ``doc`` what it gives."""

    name: str
    kind: Literal["form", "helper"]
    shape: str
    doc: str


@cache
def vocabulary() -> tuple[Word, ...]:
    """The forms of the dialect and the helpers of its library.

    >>> next(word.shape for word in vocabulary() if word.name == "half-life-decay")
    '(half-life-decay age half-life)'
    """
    forms = [Word(name, "form", *_split(shape)) for name, shape in FORM_SHAPES.items()]
    helpers = [
        Word(one.name, "helper", f"({' '.join([one.name, *one.arguments])})", one.doc) for one in library().values()
    ]
    return (*forms, *helpers)


def _split(shape: str) -> tuple[str, str]:
    written, _, doc = shape.partition("): ")
    return (f"{written})", doc) if doc else (shape, "")

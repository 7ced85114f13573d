"""The source of policies in colour, for terminals and for notebooks, and the words that editors complete."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Literal, NamedTuple

from memlab.errors import InputError
from memlab.kernel.base.display import Markup
from memlab.kernel.base.printable import printable
from memlab.kernel.language import Policy
from memlab.kernel.language.forms import FORMS, LIST_FORMS
from memlab.kernel.language.reader import ALIASES, FUNCTION_HEADS, LITERALS, canonical
from memlab.kernel.language.texts import library

PRE = "line-height:1.35;word-break:normal;overflow-wrap:break-word"
"""Of a ``<pre>`` with source: JupyterLab's own style breaks a line within its names."""

_TOKEN = re.compile(
    r"""(?P<comment>;[^\n]*|\#_)
    |(?P<string>"(?:[^"\\]|\\.)*"?|\#\[(?P<mark>[A-Za-z0-9-]*)\[.*?\](?P=mark)\])
    |(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?=[\s()\[\]{};"']|\Z))
    |(?P<param>:[^\s()\[\]{};"'`~]+)
    |(?P<name>[^\s()\[\]{};"'`~]+)
    |\s+|.""",
    re.DOTALL | re.VERBOSE,
)
_LISTED = re.compile(
    r'\((?:fn|lambda|λ|defpolicy\s+[^\s()\[\]]+(?:\s+"(?:[^"\\]|\\.)*")?(?:\s+\((?:fn|lambda|λ))?)\s*[\[(]([^()\[\]]*)'
)
"""The arguments of a policy."""
_DEFINING = (*FUNCTION_HEADS, "defn", "defpolicy", "pack", "setting", "require")
_BINDING = ("let", "let*", "if", "when", "cond", "case", "else", "update", "param", "quote")

_COLOURS = {
    "comment": ("--jp-mirror-editor-comment-color", "#7a8288", "90"),
    "string": ("--jp-mirror-editor-string-color", "#b5542c", "33"),
    "number": ("--jp-mirror-editor-number-color", "#1f8a5b", "32"),
    "keyword": ("--jp-mirror-editor-keyword-color", "#9a5bd0", "1;35"),
    "builtin": ("--jp-mirror-editor-builtin-color", "#3b82c4", "34"),
    "feature": ("--jp-mirror-editor-variable-2-color", "#2b7fa8", "36"),
    "param": ("--jp-mirror-editor-attribute-color", "#b07900", "1;33"),
}
"""The colour of JupyterLab's theme, that of any other page (mid tones, with a contrast of 3.7 or more on white and on
#111 alike), and that of a terminal.
"""


def highlight(
    source: str, format: Literal["html", "terminal"] = "html", *, features: Iterable[str] = ()
) -> str:
    r"""The source with colours: a ``<pre>`` with inline styles that follow the notebook's theme, or ANSI sequences.

    Text of any kind is accepted, broken or not. HTML is escaped, and so are control characters for the terminal, which
    obeys them. ``features`` are names to mark as features, besides the arguments of ``fn`` and ``defpolicy``.

    >>> highlight("(fn [x] 1)", "terminal")[:10]
    '(\x1b[1;35mfn'
    """
    if format not in ("html", "terminal"):
        raise InputError(f'A format is "html" or "terminal", not {format!r}.')
    pieces = read_tokens(
        source, frozenset(canonical(name) for name in features) | _arguments(source)
    )
    if format == "terminal":
        shown = ((kind, printable(text)) for kind, text in pieces)
        return "".join(
            f"\x1b[{_COLOURS[kind][2]}m{text}\x1b[0m" if kind else text for kind, text in shown
        )
    body = "".join(
        f'<span style="{_style(kind)}">{html.escape(text)}</span>' if kind else html.escape(text)
        for kind, text in pieces
    )
    return f'<pre style="{PRE}">{body}</pre>'


def show_policy(policy: Policy) -> object:
    """A policy for a notebook: its name, the start of its hash, and its source in colour."""
    head = Markup("{} <code>[{}]</code>").format(policy.name, policy.hash[:12])
    return head, Markup(highlight(policy.source, "html", features=policy.inputs))


def read_tokens(source: str, features: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Kinds, which are names of colours or empty, and texts, which together are the source."""
    for match in _TOKEN.finditer(source):
        kind, text = match.lastgroup or "", match.group()
        if kind == "name":
            called = source[match.start() - 1 : match.start()] == "("
            kind = _kind(text, called) or ("feature" if canonical(text) in features else "")
        yield kind, text


def _kind(name: str, called: bool) -> str:
    """What a name is wherever it is written; ``called`` after an opening bracket."""
    if name in _BINDING or (called and name in _DEFINING):
        return "keyword"
    if name in LITERALS:
        return "number"
    return "builtin" if called and name in _builtins() else ""


@lru_cache(maxsize=1)
def _builtins() -> frozenset[str]:
    return frozenset({*FORMS, *LIST_FORMS, *ALIASES, *library()})


def _style(kind: str) -> str:
    variable, colour, _ = _COLOURS[kind]
    return f"color:var({variable},{colour})" + (";font-weight:600" if kind == "keyword" else "")


def _arguments(source: str) -> frozenset[str]:
    """The names after ``fn``, ``lambda`` and ``defpolicy``, by their look, so that a broken text has them too."""
    lists = (re.sub(r";[^\n]*", "", found) for found in _LISTED.findall(source))
    return frozenset(canonical(name) for names in lists for name in names.split())


# The words that a policy may be written with, for editors and completion.


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
        Word(one.name, "helper", f"({' '.join([one.name, *one.arguments])})", one.doc)
        for one in library().values()
    ]
    return (*forms, *helpers)


def _split(shape: str) -> tuple[str, str]:
    written, _, doc = shape.partition("): ")
    return (f"{written})", doc) if doc else (shape, "")

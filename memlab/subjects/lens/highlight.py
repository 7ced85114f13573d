"""Syntax highlighting of policies, and the words that editors offer for completion."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Literal, NamedTuple

from memlab.errors import InputError
from memlab.kernel.base.display import Markup, details
from memlab.kernel.base.printable import printable
from memlab.kernel.language import Policy
from memlab.kernel.language.forms import FORMS, LIST_FORMS
from memlab.kernel.language.macros import MACROS
from memlab.kernel.language.reader import ALIASES, FUNCTION_HEADS, LITERALS, canonical
from memlab.kernel.language.texts import library

PRE = "line-height:1.35;word-break:normal;overflow-wrap:break-word"
"""The style of a ``<pre>`` element with source, because JupyterLab's own style breaks lines within names."""

# The pattern of a token. Each character of a text belongs to a token, even if the text is invalid.
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
"""The pattern of a policy's arguments, also in an incomplete text."""
# Words that are keywords only after an opening bracket, and words that are always keywords.
_DEFINING = (
    *FUNCTION_HEADS,
    "defn",
    "defmacro",
    "inherit",
    "defpolicy",
    "pack",
    "setting",
    "require",
)
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
"""Colours of JupyterLab's theme, of other pages (mid tones with a contrast of at least 3.7 on white and on #111), and of
a terminal.
"""


def highlight(
    source: str, format: Literal["html", "terminal"] = "html", *, features: Iterable[str] = ()
) -> str:
    r"""Return the source of a policy with coloured tokens.

    Invalid source is accepted too. HTML is escaped, and control characters are escaped for a terminal.

    Parameters
    ----------
    source
        The text.
    format
        "html" for a ``<pre>`` with inline styles that follow the notebook's theme, "terminal" for
        ANSI sequences.
    features
        Names to mark as features, in addition to the arguments of ``fn`` and ``defpolicy``.

    Returns
    -------
    str
        The text with colours.

    Raises
    ------
    InputError
        If ``format`` is unknown.

    Examples
    --------
    >>> highlight("(fn [x] 1)", "terminal")[:10]
    '(\x1b[1;35mfn'
    """
    if format not in ("html", "terminal"):
        raise InputError(f'format must be "html" or "terminal", not {format!r}.')
    pieces = read_tokens(
        source, frozenset(canonical(name) for name in features) | _arguments(source)
    )
    if format == "terminal":
        escaped = ((kind, printable(text)) for kind, text in pieces)
        return "".join(
            f"\x1b[{_COLOURS[kind][2]}m{text}\x1b[0m" if kind else text for kind, text in escaped
        )
    body = "".join(
        f'<span style="{_style(kind)}">{html.escape(text)}</span>' if kind else html.escape(text)
        for kind, text in pieces
    )
    return f'<pre style="{PRE}">{body}</pre>'


def show_policy(policy: Policy) -> object:
    """Return what a notebook shows of a policy: name, start of the hash, and source."""
    head = Markup("{} <code>[{}]</code>").format(policy.name, policy.hash[:12])
    source = Markup(highlight(policy.source, "html", features=policy.inputs))
    parent = policy.inherited
    if parent is None:
        return head, source
    return head, source, details(f"(inherited): {parent.name}", show_policy(parent))


def read_tokens(source: str, features: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield the tokens of a text and their token classes, "" for other tokens."""
    for match in _TOKEN.finditer(source):
        kind, text = match.lastgroup or "", match.group()
        if kind == "name":
            called = source[match.start() - 1 : match.start()] == "("
            kind = _kind(text, called) or ("feature" if canonical(text) in features else "")
        yield kind, text


def _kind(name: str, called: bool) -> str:
    """Return the token class of a name, or "" for a plain one; ``called`` is True after an opening bracket."""
    if name in _BINDING or (called and name in _DEFINING):
        return "keyword"
    if name in LITERALS:
        return "number"
    return "builtin" if called and name in _builtins() else ""


# The set is built at first use, because the library is read from a file.
@lru_cache(maxsize=1)
def _builtins() -> frozenset[str]:
    """Return the names of all forms of the language and of all library helpers."""
    return frozenset({*FORMS, *MACROS, *LIST_FORMS, *ALIASES, *library()})


def _style(kind: str) -> str:
    """Return the inline CSS style of a token class."""
    variable, colour, _ = _COLOURS[kind]
    return f"color:var({variable},{colour})" + (";font-weight:600" if kind == "keyword" else "")


def _arguments(source: str) -> frozenset[str]:
    """Return the names of arguments in source text, even if the text is invalid."""
    lists = (re.sub(r";[^\n]*", "", arguments) for arguments in _LISTED.findall(source))
    return frozenset(canonical(name) for names in lists for name in names.split())


# The words that a policy may use, for completion in editors.


FORM_SHAPES = {
    "if": "(if test then else): one of two values; a null test takes the second",
    "when": "(when test value): the value if the test is true, else null",
    "unless": "(unless test value): the value if the test is not true, else null",
    "do": "(do value ... last): the last value; the others are checked only",
    "->": "(-> x (f a) g): the steps in sequence, each with the value before as its first argument, (g (f x a))",
    "->>": "(->> x (f a) g): the same with the value before as the last argument, (g (f a x))",
    "cond": "(cond test value ... else value): the value of the first true test",
    "case": '(case kind ["event" "goal"] value ... else value): the value of the first equal literal',
    "let": "(let [name value ...] body): the body, with names for values, bound in sequence",
    "fn": "(fn [features] body): a policy of these features",
    "defn": '(defn name [arguments] "description" body): a helper, in front of a policy or in a pack',
    "defmacro": "(defmacro name [a #* rest] template): a call of name stands for the template, a form after a backquote",
    "defpolicy": '(defpolicy slot [features] "what it does" body): the policy of a slot in a pack',
    "inherited": "(inherited): the value of the parent's policy, in a lab or in a pack with :inherits",
    "inherit": "(inherit pack policy): in front of a policy, the policy that (inherited) stands for",
    "param": "(param :name value :low a :high b): a constant that may be tuned",
    "update": "(update :field value ...): new values of fields, in slots that return a record",
    "quote": "(quote word): the word as a string",
    "in": '(in kind ["fact" "event"]): true if the list contains the value',
    "not-in": '(not-in kind ["fact" "event"]): true if the list does not contain the value',
    "one-of": '(one-of kind "fact" "event"): true if one of the literals equals the value',
    "null?": "(null? x): true if the value is null",
    "if-null": "(if-null x default ...): the first value that is not null",
    "+": "(+ x ...): sum",
    "-": "(- x y ...): difference; of one number, its negative",
    "*": "(* x ...): product",
    "/": "(/ x y ...): quotient; of one number, its inverse; division by zero is infinite",
    "min": "(min x ...): minimum",
    "max": "(max x ...): maximum",
    "abs": "(abs x): absolute value",
    "exp": "(exp x): e to the power of x",
    "log": "(log x): natural logarithm; NaN for a negative number",
    "log1p": "(log1p x): natural logarithm of 1 + x",
    "sqrt": "(sqrt x): square root",
    "tanh": "(tanh x): hyperbolic tangent",
    "pow": "(pow x exponent): x to the power of the exponent",
    "sign": "(sign x): -1, 0 or 1",
    "floor": "(floor x): largest integer that is not above x",
    "ceil": "(ceil x): smallest integer that is not below x",
    "clamp": "(clamp x low high): x limited to two bounds; a null bound does not apply",
    "and": "(and test ...): true if all tests are true",
    "or": "(or test ...): true if a test is true",
    "not": "(not test): the opposite of a test",
    "=": "(= x y ...): true if all are equal; they have one type",
    "!=": "(!= x y): true if two values differ",
    "<": "(< x y ...): true if each number is below the next",
    "<=": "(<= x y ...): true if no number is above the next",
    ">": "(> x y ...): true if each number is above the next",
    ">=": "(>= x y ...): true if no number is below the next",
    "days": "(days amount): an amount of days, in days",
    "weeks": "(weeks amount): an amount of weeks, in days",
    "hours": "(hours amount): an amount of hours, in days",
    "minutes": "(minutes amount): an amount of minutes, in days",
    "has": '(has tags "x"): true if the set contains the word',
    "has-any": '(has-any tags ["x" "y"]): true if the set contains one of the words',
    "has-all": '(has-all tags ["x" "y"]): true if the set contains all of the words',
    "overlap": "(overlap tags query-tags): number of words in both sets",
    "jaccard": "(jaccard tags query-tags): overlap divided by the size of the union; 0 for two empty sets",
    "size": "(size tags): number of words in the set",
    "slate-min": "(slate-min x): minimum over all candidates",
    "slate-max": "(slate-max x): maximum over all candidates",
    "slate-mean": "(slate-mean x): mean over all candidates",
    "slate-rank": "(slate-rank x): rank among all candidates, 1 for the maximum; ties by memory id",
    "min-max": "(min-max x): scaled to 0 for the minimum of all candidates and 1 for the maximum",
    "beta-sample": "(beta-sample a b): chance that the draw from Beta(a, b) is the largest of all candidates",
}
"""Each form of the language, with its syntax and its meaning."""


class Word(NamedTuple):
    """A name that a policy may call, with its syntax (``shape``) and its meaning."""

    name: str
    kind: Literal["form", "helper"]
    shape: str
    doc: str


# The result is cached, because editors request it at every keystroke.
@cache
def vocabulary() -> tuple[Word, ...]:
    """Return the forms of the policy language and the helpers of its library.

    Returns
    -------
    tuple of Word
        The forms, followed by the helpers.

    Examples
    --------
    >>> next(word.shape for word in vocabulary() if word.name == "half-life-decay")
    '(half-life-decay age half-life)'
    """
    forms = [Word(name, "form", *_split(shape)) for name, shape in FORM_SHAPES.items()]
    helpers = [
        Word(helper.name, "helper", f"({' '.join([helper.name, *helper.arguments])})", helper.doc)
        for helper in library().values()
    ]
    return (*forms, *helpers)


def _split(shape: str) -> tuple[str, str]:
    """Return the syntax and the meaning in an entry of ``FORM_SHAPES``."""
    written, _, doc = shape.partition("): ")
    return (f"{written})", doc) if doc else (shape, "")

"""The source of policies in colour, by a Pygments lexer of the dialect: for terminals and for notebooks."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Literal

from memlab.errors import InputError
from memlab.language._forms import FORMS
from memlab.language._library import library
from memlab.language._machine import FUNCTIONS
from memlab.language._words import ALIASES, UNITS, canonical
from memlab.printable import printable

__all__ = ["highlight", "lexer_class"]

_DEFINING = ("fn", "lambda", "λ", "defn", "defpolicy", "pack", "setting", "require")
_BINDING = ("let", "let*", "if", "when", "cond", "case", "else", "update", "param", "quote")
_CONSTANTS = ("true", "false", "null", "nil", "True", "False", "None")
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?=[\s()\[\]{};\"']|\Z)"
_SYMBOL = r"[^\s()\[\]{};\"'`~]+"

_STYLES: dict[str, tuple[str, str]] = {
    "comment": ("--jp-mirror-editor-comment-color", "#7a8288"),
    "string": ("--jp-mirror-editor-string-color", "#b5542c"),
    "number": ("--jp-mirror-editor-number-color", "#1f8a5b"),
    "keyword": ("--jp-mirror-editor-keyword-color", "#9a5bd0"),
    "builtin": ("--jp-mirror-editor-builtin-color", "#3b82c4"),
    "feature": ("--jp-mirror-editor-variable-2-color", "#2b7fa8"),
    "param": ("--jp-mirror-editor-attribute-color", "#b07900"),
}
"""Colours of JupyterLab's theme; elsewhere mid tones, with a contrast of 3.7 or more on white and on #111 alike."""
_BOLD = ("keyword",)
_ANSI = {
    "comment": "\x1b[90m",
    "string": "\x1b[33m",
    "number": "\x1b[32m",
    "keyword": "\x1b[1;35m",
    "builtin": "\x1b[34m",
    "feature": "\x1b[36m",
    "param": "\x1b[1;33m",
}
_RESET = "\x1b[0m"


def highlight(source: str, format: Literal["html", "terminal"] = "html", *, features: Iterable[str] = ()) -> str:
    r"""The source with colours: a ``<pre>`` with inline styles that follow the notebook's theme, or ANSI sequences.

    Text of any kind is accepted, broken or not. HTML is escaped, and so are control characters for the terminal, which
    obeys them. ``features`` are names to mark as features, besides the arguments of ``fn`` and ``defpolicy``.

    >>> highlight("(fn [x] 1)", "terminal")[:10]
    '(\x1b[1;35mfn'
    """
    if format not in ("html", "terminal"):
        raise InputError(f'A format is "html" or "terminal", not {format!r}.')
    names = frozenset(canonical(name) for name in features) | _arguments(source)
    pieces = _pieces(source, names)
    if format == "terminal":
        shown = ((kind, printable(text)) for kind, text in pieces)
        return "".join(f"{_ANSI[kind]}{text}{_RESET}" if kind else text for kind, text in shown)
    body = "".join(
        f'<span style="{_style(kind)}">{html.escape(text)}</span>' if kind else html.escape(text)
        for kind, text in pieces
    )
    return f'<pre style="line-height:1.35">{body}</pre>'


def _style(kind: str) -> str:
    variable, colour = _STYLES[kind]
    return f"color:var({variable},{colour})" + (";font-weight:600" if kind in _BOLD else "")


@lru_cache(maxsize=1)
def lexer_class() -> Any:
    """The lexer, built on first use: importing Pygments takes 30 ms. ``features=[...]`` is an option of it."""
    from pygments.lexer import RegexLexer, words
    from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

    ends = r"(?=[\s()\[\]{};\"'`~]|\Z)"
    ordinary = {*FORMS, *FUNCTIONS, *ALIASES, *library()} - set(_DEFINING) - set(_BINDING) - set(UNITS)

    class PolicyLexer(RegexLexer):  # type: ignore[misc]
        """The dialect of policies. ``Name.Variable`` is a feature, ``Name.Attribute`` a keyword such as ``:low``."""

        name = "memlab policy"
        aliases = ("memlab", "memlab-policy")
        filenames = ("*.hy",)
        tokens = {  # noqa: RUF012
            "root": [
                (r";[^\n]*", Comment.Single),
                (r"#_", Comment.Special),
                (r'"(?:[^"\\]|\\.)*"?', String),
                (r"#\[([A-Za-z0-9-]*)\[(?:.|\n)*?\]\1\]", String),
                (_NUMBER, Number),
                (r":[^\s()\[\]{};\"'`~]+", Name.Attribute),
                (words(_DEFINING, prefix=r"(?<=\()", suffix=ends), Keyword.Declaration),
                (words(_BINDING, suffix=ends), Keyword),
                (words(_CONSTANTS, suffix=ends), Keyword.Constant),
                (words(tuple(UNITS), prefix=r"(?<=\()", suffix=ends), Name.Builtin),
                (words(tuple(sorted(ordinary)), prefix=r"(?<=\()", suffix=ends), Name.Builtin),
                (_SYMBOL, Name),
                (r"[()\[\]{}]", Punctuation),
                (r"['`~]", Operator),
                (r"\s+", Text.Whitespace),
            ]
        }

        def __init__(self, **options: Any) -> None:
            self.features = frozenset(canonical(name) for name in options.get("features", ()))
            # a policy keeps its first and last empty lines
            super().__init__(**{"stripnl": False, "ensurenl": False, **options})

        def get_tokens_unprocessed(self, text: str, stack: Any = ("root",)) -> Iterator[tuple[int, Any, str]]:
            for at, kind, value in super().get_tokens_unprocessed(text, stack):
                yield at, Name.Variable if kind is Name and canonical(value) in self.features else kind, value

    return PolicyLexer


@lru_cache(maxsize=1)
def _kinds() -> dict[Any, str]:
    from pygments.token import Comment, Keyword, Name, Number, String

    return {
        Comment: "comment",
        String: "string",
        Number: "number",
        Keyword: "keyword",
        Keyword.Constant: "number",
        Name.Builtin: "builtin",
        Name.Variable: "feature",
        Name.Attribute: "param",
    }


def _pieces(source: str, features: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Runs of one colour, which together are the source, character by character."""
    kinds = _kinds()
    lexer = lexer_class()(features=features)
    for _, token, text in lexer.get_tokens_unprocessed(source):
        kind = ""
        while token.parent is not None and not kind:
            kind = kinds.get(token, "")
            token = token.parent
        yield kind, text


_LISTED = re.compile(
    r'\((?:fn|lambda|λ|defpolicy\s+[^\s()\[\]]+(?:\s+"(?:[^"\\]|\\.)*")?(?:\s+\((?:fn|lambda|λ))?)\s*[\[(]([^()\[\]]*)'
)


def _arguments(source: str) -> frozenset[str]:
    """The names behind ``fn``, ``lambda`` and ``defpolicy``, by their look, so that a broken text has them too."""
    lists = (re.sub(r";[^\n]*", "", found) for found in _LISTED.findall(source))
    return frozenset(canonical(name) for names in lists for name in names.split())

r"""Numbers, names and strings as LaTeX that MathJax, KaTeX and LaTeX itself set alike.

Names and strings come from strangers' files. They are set character by character, so none can leave its group, start a
command, end the mathematics or begin a tag.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from memlab.language._dag import Value
from memlab.language._derived import Derived

__all__ = [
    "AND",
    "ATOM",
    "OR",
    "POWER",
    "PRODUCT",
    "SUM",
    "TEST",
    "Math",
    "cases",
    "constant",
    "divisor",
    "name_text",
    "number_text",
    "parameter_text",
    "set_test",
    "string_text",
    "width",
    "word_set",
]

OR, AND, TEST, SUM, PRODUCT, POWER, ATOM = range(7)
"""How tightly LaTeX binds, loosest first."""

_LONGEST = 60
"""Characters of a name or a string before it is cut."""


class Math(NamedTuple):
    """LaTeX and how tightly it binds."""

    text: str
    binds: int

    def within(self, least: int) -> str:
        return self.text if self.binds >= least else rf"\left({self.text}\right)"


def divisor(factor: float) -> float | None:
    """The number by which a division most likely divided: 30 for a factor of 1/30."""
    if not 0.0 < factor < 1.0 or math.isinf(1.0 / factor):
        return None
    inverse = 1.0 / factor
    return inverse if 1.0 / inverse == factor and len(repr(factor)) > 9 > len(f"{inverse:.15g}") else None


def number_text(value: float) -> str:
    """Six digits, or the constant or the simple fraction that it is to the last bit."""
    if value != value:
        return r"\text{NaN}"
    if value < 0:
        return f"-{number_text(-value)}"
    if math.isinf(value):
        return r"\infty"
    if value == math.e:
        return r"\mathrm{e}"
    for n in (2, 10):
        if value == math.log(n):
            return rf"\ln {n}"
    if value.is_integer() and value < 1e7:
        return str(int(value))
    text = repr(value)
    if len(text) > 10:
        simple = Fraction(value).limit_denominator(100)
        if simple and float(simple) == value:
            return rf"\frac{{{simple.numerator}}}{{{simple.denominator}}}"
        text = f"{value:.6g}"
    digits, _, exponent = text.partition("e")
    return rf"{digits} \times 10^{{{int(exponent)}}}" if exponent else text


def word_set(words: Iterable[str]) -> str:
    return rf"\left\{{{', '.join(string_text(word) for word in words)}\right\}}"


def name_text(name: str) -> str:
    return rf"\mathrm{{{_letters(name)}}}"


def parameter_text(name: str) -> str:
    return rf"\theta_{{{name_text(name)}}}"


_PLAIN = re.compile(r"[A-Za-z0-9/?!:*+.=]")
_SPECIAL = {
    "\\": r"\backslash ",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"{\wedge}",
    "~": r"{\sim}",
    "<": r"{<}",
    ">": r"{>}",
    "`": r"\text{‘}",
}
"""Commands that mean the same in MathJax, KaTeX and LaTeX; in braces, so that no letter joins a command and no ``<``
begins a tag.
"""


def _letters(name: str) -> str:
    """A name inside ``\\mathrm``."""
    clipped = name if len(name) <= _LONGEST else name[:_LONGEST] + "…"
    return "".join(c if _PLAIN.match(c) else _SPECIAL.get(c) or rf"\text{{{_printable(c)}}}" for c in clipped)


def string_text(word: str) -> str:
    """A string literal in quotation marks: plain runs as text, every special character as a command between them."""
    clipped = word if len(word) <= _LONGEST else word[:_LONGEST] + "…"
    pieces = ["“"]
    for c in clipped:
        if c in _SPECIAL:
            pieces.append(f"}}{_SPECIAL[c]}\\text{{")
        else:
            pieces.append(_printable(c))
    return rf"\text{{{''.join(pieces)}”}}".replace(r"\text{}", "")


def _printable(c: str) -> str:
    """A character, or the number of one that is not seen or changes how others are read."""
    category = unicodedata.category(c)
    return f"[U+{ord(c):04X}]" if category[0] == "C" or category in ("Zl", "Zp") else c


def width(text: str) -> int:
    """About how many characters a formula is wide."""
    return len(_COMMAND.sub("xx", _UNSEEN.sub("", _ESCAPED.sub("x", text))))


_ESCAPED = re.compile(r"\\[{}$&#%_ ]")
_UNSEEN = re.compile(r"\\(?:(?:begin|end)\{cases\}|(?:mathrm|text|left|right|operatorname|frac)\b|,)|[{}&\s^_]")
_COMMAND = re.compile(r"\\[a-zA-Z]+")


def constant(value: Value) -> Math:
    if value is None:
        return Math(r"\text{null}", ATOM)
    if isinstance(value, bool):
        return Math(rf"\text{{{str(value).lower()}}}", ATOM)
    if isinstance(value, str):
        return Math(string_text(value), ATOM)
    return Math(number_text(value), SUM if value < 0 else ATOM)


def cases(rows: Iterable[tuple[str, str]]) -> Math:
    body = r" \\ ".join(f"{value} & {test}" for value, test in rows)
    return Math(rf"\begin{{cases}} {body} \end{{cases}}", ATOM)


def set_test(test: Derived) -> Math:
    sets = [name_text(name) for name in test.sets]
    first = sets[0]
    if test.op == "has":
        return Math(rf"{string_text(test.words[0])} \in {first}", TEST)
    if test.op == "has-all":
        return Math(rf"{word_set(test.words)} \subseteq {first}", TEST)
    if test.op == "has-any":
        return Math(rf"{first} \cap {word_set(test.words)} \neq \varnothing", TEST)
    if test.op == "size":
        return Math(rf"\left|{first}\right|", ATOM)
    shared = rf"\left|{first} \cap {sets[1]}\right|"
    if test.op == "overlap":
        return Math(shared, ATOM)
    return Math(rf"\frac{{{shared}}}{{\left|{first} \cup {sets[1]}\right|}}", PRODUCT)

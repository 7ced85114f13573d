"""Text to forms: Hy's syntax, read by one pass over the tokens; the words and the limits of the dialect.

What is read here, Hy's own reader reads alike (a test holds the two side by side); what would run or build code is
refused by name: reader macros, f-strings, bytes, templates, sets, dicts, tuples, unpacking, quasi-quotes and dotted
names. Nesting and the number of forms are counted while reading, so that a hostile text is refused before it is in
memory.
"""

from __future__ import annotations

import math
import re
from typing import Final, Literal, NamedTuple

from memlab.errors import PolicyError, PolicyLimitError, PolicySyntaxError, PolicyTypeError

# The words of the dialect: its operators by kind, other names of them, literals, and what is left out.


DIRECT: Final = (
    "abs",
    "exp",
    "log",
    "log1p",
    "sqrt",
    "tanh",
    "pow",
    "sign",
    "floor",
    "ceil",
    "clamp",
    "not",
)
FOLDS: Final[dict[str, Literal["num", "bool"]]] = {
    "+": "num",
    "*": "num",
    "min": "num",
    "max": "num",
    "and": "bool",
    "or": "bool",
}
COMPARISONS: Final = ("=", "!=", "<", "<=", ">", ">=")
UNITS: Final = {
    "days": (1.0, 1.0),
    "weeks": (7.0, 1.0),
    "hours": (1.0, 24.0),
    "minutes": (1.0, 1440.0),
}
"""Units of time, as days: times the first number, divided by the second."""
AGGREGATE_FORMS: Final = ("slate-min", "slate-max", "slate-mean", "slate-rank", "min-max")

FUNCTION_HEADS: Final = ("fn", "lambda", "λ")

RESPELLED: Final = {
    **dict.fromkeys(FUNCTION_HEADS, "fn"),
    "let*": "let",
    "True": "true",
    "False": "false",
    "None": "null",
    "nil": "null",
}
"""What the source hash takes for the same; of the aliases it does not."""

ALIASES: Final = {
    **dict.fromkeys(FUNCTION_HEADS[1:], "fn"),
    "let*": "let",
    **dict.fromkeys(("==", "=?", "eq?", "eqv?", "equal?"), "="),
    "not=": "!=",
    **dict.fromkeys(("expt", "**"), "pow"),
    "ceiling": "ceil",
    **dict.fromkeys(("nil?", "none?", "missing?"), "null?"),
    "coalesce": "if-null",
    "member?": "in",
}
"""Other names of a form, and the one that the tables have."""

LITERALS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("true", "True"), True),
    **dict.fromkeys(("false", "False"), False),
    **dict.fromkeys(("null", "nil", "None"), None),
}

ABSENT: Final = {
    "//": "Integer division is left out: it differs between back ends. Write (floor (/ a b)).",
    "%": "The remainder is left out: it differs between back ends. Write (- a (* b (floor (/ a b)))).",
    "mod": "The remainder is left out: it differs between back ends. Write (- a (* b (floor (/ a b)))).",
    "random": "A policy has no source of chance; exploration is the engine's, from the weights that explore returns.",
    "now": "A policy has no clock: time enters as features such as age-days.",
    "setv": "A policy changes nothing: bind names with let.",
    "set!": "A policy changes nothing: bind names with let.",
    "define": "Helpers are written (defn name [arguments] body).",
    "for": "A policy has no loops: it is applied to every item of a slate.",
    "while": "A policy has no loops: it is applied to every item of a slate.",
    "import": "A policy imports nothing.",
    "require": "A policy imports nothing.",
    "eval": "A policy evaluates no code.",
    **dict.fromkeys(
        ("choice", "flip"),
        "Chance is the engine's: give each item a weight, and it draws by the weights.",
    ),
    **dict.fromkeys(
        (
            "map",
            "reduce",
            "fold",
            "sort",
            "argmax",
            "argmin",
            "cons",
            "append",
            "rest",
            "take",
            "reverse",
        ),
        "Of lists there are only length, range, filter, nth, empty? and first: write a weight for each item instead.",
    ),
}
"""What the dialect leaves out, and what to write instead."""


def canonical(name: str) -> str:
    """``a_b`` and ``a-b`` are one name, as they are for Hy: the kebab-case one.

    >>> canonical("recency_ms")
    'recency-ms'
    """
    return name.replace("_", "-") if len(name) > 1 else name


def quoted(text: str) -> str:
    """A string as a literal of the dialect."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# The limits of the dialect. Each one bounds the time that an untrusted text can cost.
#
# Measured on two cores: a policy at every limit at once compiles in under 50 ms; the shipped policies use 1-5% of them.


MAX_CHARACTERS = 20_000
"""Characters of one policy or helper, checked before anything is read."""

MAX_FORMS = 4_000
"""Atoms and lists in one policy."""

MAX_NESTING = 100
"""Open brackets at any one place."""

MAX_OPEN = 150
"""Calls within calls once helpers are inlined: some five frames of Python each, of the thousand that there are."""

MAX_NODES = 2_000
"""Distinct operations after helpers are inlined."""

MAX_DEPTH = 100
"""Operations between an input and the result; a chain of 3,000 costs Polars 16 s."""

MAX_STEPS = 8_000
"""Forms visited while helpers are inlined: the fuel that ends an exponential expansion."""

MAX_INTEGER = 2**53
"""Beyond it float64 no longer holds every integer."""

MAX_PACK_CHARACTERS = 60_000
MAX_PACK_FORMS = 6_000
"""Of a whole file: ten times the largest that ships, read in under 50 ms."""


FormKind = Literal["symbol", "keyword", "int", "float", "str", "call", "list"]

_TOKEN = re.compile(
    r"""(?P<space>[ \t\n\r\f\v]+|;[^\n]*)
    |(?P<open>[(\[])
    |(?P<close>[)\]}])
    |(?P<quote>')
    |(?P<discard>\#_)
    |(?P<bracket>\#\[)
    |(?P<tag>\#)
    |(?P<string>")
    |(?P<refused>[{`~])
    |(?P<atom>[^()\[\]{};"'`~ \t\n\r\f\v]+)""",
    re.VERBOSE,
)
_IDENT = re.compile(r"[^()\[\]{};\"'`~ \t\n\r\f\v]*")
_CLOSER = {"(": ")", "[": "]"}
_NUMERIC = re.compile(r"[+-]?\.?[0-9]")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$")
_INTEGER = re.compile(r"[+-]?[0-9]+$")
_WORD_NUMBERS = frozenset({"nan", "inf", "infinity"})
_STRING = re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = {"\\": "\\", '"': '"', "'": "'", "n": "\n", "t": "\t", "r": "\r", "\n": ""}
_BRACKET = re.compile(r"([A-Za-z0-9-]*)\[")
_LITERAL_TAGS = {"t": "True", "true": "True", "f": "False", "false": "False"}
_REFUSED = {
    "{": "A dictionary is no value of the dialect.",
    "`": "Quasi-quotes build code, and a policy does not: write the expression itself.",
    "~": "Unquoting builds code, and a policy does not: write the expression itself.",
}
_REFUSED_TAGS = {
    "{": "A set is no value of the dialect; write a list such as [1 2].",
    "(": "A tuple is no value of the dialect; write a list such as [1 2].",
    "*": "Unpacking is not part of the dialect.",
    "**": "Unpacking is not part of the dialect.",
    "^": "Annotations are not part of the dialect.",
}


class Form(NamedTuple):
    """One symbol, keyword, number, string, ``(...)`` or ``[...]``, and where it is in the text."""

    kind: FormKind
    text: str = ""
    """Name of a symbol or keyword, content of a string."""
    number: float = 0.0
    items: tuple[Form, ...] = ()
    start: int = 0
    stop: int = 0
    """Offsets into the text; the form is ``source[start:stop]``."""

    @property
    def head(self) -> str:
        """The symbol in front of a call, else an empty string."""
        return (
            self.items[0].text
            if self.kind == "call" and self.items and self.items[0].kind == "symbol"
            else ""
        )


def flat_pairs(items: tuple[Form, ...]) -> tuple[Form, ...]:
    """Names and values in turn, from ``a 1 b 2`` or from ``(a 1) (b 2)``, which may be malformed."""
    if items and items[0].kind in ("list", "call"):
        return tuple(part for pair in items for part in pair.items)
    return items


class Text(NamedTuple):
    """A source and what errors call it."""

    source: str
    name: str | None = None
    file: str | None = None
    hash: str | None = None

    def line(self, offset: int) -> int:
        """The line of an offset, from 1."""
        return self.source.count("\n", 0, offset) + 1

    def column(self, offset: int) -> int:
        """The column of an offset in its line, from 1."""
        return offset - self.source.rfind("\n", 0, offset)

    def error(self, kind: type[PolicyError], message: str, form: Form | None) -> PolicyError:
        """An error of ``kind`` with its caret under ``form``."""
        if form is None:
            return kind(
                message, source=self.source, policy=self.name, file=self.file, hash=self.hash
            )
        after = self.source.find("\n", form.start)
        line_end = len(self.source) if after < 0 else after
        return kind(
            message,
            source=self.source,
            line=self.line(form.start),
            column=self.column(form.start),
            end_column=self.column(form.stop) - 1 if form.stop <= line_end else None,
            policy=self.name,
            hash=self.hash,
            file=self.file,
        )


def read_forms(
    text: Text, *, characters: int = MAX_CHARACTERS, forms: int = MAX_FORMS
) -> tuple[Form, ...]:
    """Every top-level form of a text, or a ``PolicySyntaxError`` or ``PolicyLimitError`` with its place."""
    if len(text.source) > characters:
        raise text.error(
            PolicyLimitError,
            f"The text has {len(text.source):,} characters; the limit is {characters:,}.",
            None,
        )
    try:
        text.source.encode()
    except UnicodeEncodeError as error:
        message = f"Character {error.start + 1} is half of a surrogate pair."
        raise PolicySyntaxError(message, policy=text.name, file=text.file) from None
    return _Reader(text, forms).items("")


class _Reader:
    """Reads one text; ``at`` is the offset of what comes next."""

    def __init__(self, text: Text, limit: int) -> None:
        self.text, self.limit, self.source = text, limit, text.source
        self.at = self.count = 0
        self.open: list[int] = []
        """Where the forms begin that are not complete yet."""

    def error(
        self, message: str, start: int, stop: int | None = None, *, limit: bool = False
    ) -> PolicyError:
        form = Form("symbol", start=start, stop=start + 1 if stop is None else stop)
        return self.text.error(PolicyLimitError if limit else PolicySyntaxError, message, form)

    def items(self, closer: str) -> tuple[Form, ...]:
        """The forms up to a closing bracket, or with an empty one up to the end of the text."""
        found = []
        while (form := self.read(closer)) is not None:
            found.append(form)
        return tuple(found)

    def one(self) -> Form:
        """The next form, which there must be."""
        form = self.read(None)
        assert form is not None
        return form

    def read(self, closer: str | None) -> Form | None:
        """The next form, or None at what ends the form around it: ``closer``, the end of the text if that is empty."""
        while match := _TOKEN.match(self.source, self.at):
            start, kind, token = self.at, match.lastgroup, match.group()
            self.at = match.end()
            if kind == "space":
                continue
            if kind == "close":
                if token == closer:
                    return None
                if closer is None:
                    raise self.error(
                        f'"{token}" closes nothing, and a form is expected here.', start
                    )
                missing = f"; {closer} is missing" if closer else ""
                raise self.error(f'"{token}" closes nothing here{missing}.', start)
            if kind == "atom":
                form = self.atom(token, start)
            elif kind == "string":
                form = self.string(start)
            elif kind == "refused":
                raise self.error(_REFUSED[token], start)
            else:
                self.open.append(start)
                if len(self.open) > MAX_NESTING:
                    raise self.error(f"Forms nest deeper than {MAX_NESTING}.", start, limit=True)
                inside = self.inside(token, start)
                self.open.pop()
                if inside is None:
                    continue
                form = inside
            self.count += 1
            if self.count > self.limit:
                raise self.error(f"There are more than {self.limit:,} forms.", start, limit=True)
            return form
        if closer == "":
            return None
        if not self.open:
            raise self.error(
                "The text ends where a form is expected.", max(0, len(self.source) - 1)
            )
        start = self.open[-1]
        missing = _CLOSER.get(self.source[start], "")
        missing = missing and f": {missing} is missing"
        raise self.error(
            f"The text ends before the form that opens here is complete{missing}.", start
        )

    def inside(self, token: str, start: int) -> Form | None:
        """The form that a bracket, a quote or a tag opens; None for one that is discarded."""
        if token in _CLOSER:
            items = self.items(_CLOSER[token])
            return Form("call" if token == "(" else "list", "", 0.0, items, start, self.at)
        if token == "'":
            quoted = self.one()
            quote = Form("symbol", "quote", start=start, stop=self.at)
            return Form("call", "", 0.0, (quote, quoted), start, self.at)
        if token == "#_":
            self.one()
            return None
        return self.bracket_string(start) if token == "#[" else self.tagged(start)

    def atom(self, text: str, start: int) -> Form:
        """A keyword, a number or a name."""
        stop = self.at
        if text[0] == ":":
            if len(text) == 1 or "." in text:
                raise self.error("A keyword is a colon and a name, such as :low.", start, stop)
            return Form("keyword", canonical(text[1:]), 0.0, (), start, stop)
        if self.source[stop : stop + 1] == '"':
            message = f"A string takes no prefix: remove {text[:40]} before the quotation mark."
            raise self.error(message, start, stop + 1)
        if _NUMERIC.match(text):
            return self.number(text, start)
        if text.lstrip("+-").lower() in _WORD_NUMBERS:
            raise self.error(
                f"{text} cannot be written as a number: constants are finite.", start, stop
            )
        if "." in text:
            message = f"{text[:40]} is a dotted name, which reaches into Python; pair inputs are written new/kind."
            raise self.error(message, start, stop)
        return Form("symbol", canonical(text), 0.0, (), start, stop)

    def number(self, text: str, start: int) -> Form:
        if not _NUMBER.match(text):
            message = f"{text[:40]} is not a number as the dialect writes them: 12, -0.5, 1e-3."
            raise self.error(message, start, self.at)
        value, whole = float(text), _INTEGER.match(text)
        if not math.isfinite(value):
            raise self.error(f"{text[:40]} is beyond the range of float64.", start, self.at)
        if whole and (len(text) > 400 or abs(int(text)) > MAX_INTEGER):
            message = f"{text[:40]} is an integer beyond 2^53, which float64 does not hold."
            raise self.error(message, start, self.at)
        return (
            Form("int", "", float(int(text)), (), start, self.at)
            if whole
            else Form("float", "", value, (), start, self.at)
        )

    def string(self, start: int) -> Form:
        match = _STRING.match(self.source, self.at)
        if match is None:
            raise self.error("This string is not closed.", start)
        self.at = match.end()
        body = match.group()[:-1]
        if "\\" in body:
            body = _ESCAPE.sub(lambda escape: self.unescaped(escape.group(1), start), body)
        return self.content(body, start)

    def unescaped(self, code: str, start: int) -> str:
        if code[0] in "ux" and len(code) > 1:
            return chr(int(code[1:], 16))
        if code not in _ESCAPES:
            raise self.error(f"\\{code} is no escape of the dialect.", start, self.at)
        return _ESCAPES[code]

    def content(self, body: str, start: int) -> Form:
        if any("\ud800" <= c <= "\udfff" for c in body):
            raise self.error("A string holds half of a surrogate pair.", start, self.at)
        return Form("str", body.replace("\r\n", "\n").replace("\r", "\n"), 0.0, (), start, self.at)

    def tagged(self, start: int) -> Form:
        """``#t`` and ``#f``; what else begins with ``#`` is refused."""
        rest = self.source[self.at : self.at + 2]
        for tag in (rest, rest[:1]):
            if tag in _REFUSED_TAGS:
                raise self.error(_REFUSED_TAGS[tag], start, self.at + len(tag))
        match = _IDENT.match(self.source, self.at)
        ident = match.group() if match else ""
        self.at += len(ident)
        if ident not in _LITERAL_TAGS:
            raise self.error(
                f"#{ident[:40]} is a reader macro, and a policy runs none.", start, self.at
            )
        return Form("symbol", _LITERAL_TAGS[ident], 0.0, (), start, self.at)

    def bracket_string(self, start: int) -> Form:
        match = _BRACKET.match(self.source, self.at)
        if match is None:
            raise self.error("A bracket string begins with #[[ or #[name[.", start)
        mark = match.group(1)
        if mark in {"f", "t"} or mark.startswith(("f-", "t-")):
            raise self.error(
                "A string that holds code is not part of the dialect.", start, match.end()
            )
        end = self.source.find(f"]{mark}]", match.end())
        if end < 0:
            raise self.error("This string is not closed.", start)
        self.at = end + len(mark) + 2
        body = self.source[match.end() : end]
        return self.content(body[1:] if body[:1] == "\n" else body, start)


# Definitions taken apart: ``fn``, ``lambda``, ``defn`` and ``defpolicy``, in Hy's spelling and in Scheme's.


class Definition(NamedTuple):
    """The parts of ``(fn [a b] "doc" body)``, ``(defpolicy name [a b] ...)``, ``(defpolicy name (fn ...))``, a defn."""

    kind: str
    name: str
    listed: Form
    """The list of arguments, brackets included."""
    doc: str
    body: Form

    @property
    def arguments(self) -> tuple[Form, ...]:
        return self.listed.items


def definition(form: Form, text: Text) -> Definition:
    """Takes a definition apart, or says what it lacks."""

    def fail(message: str, at: Form) -> PolicyError:
        return text.error(PolicyTypeError, message, at)

    kind = "fn" if form.head in FUNCTION_HEADS else form.head
    shape = "(fn [features] body)" if kind == "fn" else f'({kind} name [features] "doc" body)'
    rest = form.items[1:]
    name = ""
    if kind != "fn":
        if not rest or rest[0].kind != "symbol":
            raise fail(f"{kind} needs a name: {shape}.", rest[0] if rest else form)
        name, rest = rest[0].text, rest[1:]
        bare = rest[1:] if len(rest) == 2 and rest[0].kind == "str" else rest
        if len(bare) == 1 and bare[0].head in FUNCTION_HEADS:
            # (defpolicy name (lambda (a b) body)): how Scheme names a function
            inner = definition(bare[0], text)
            doc = rest[0].text if len(rest) == 2 else inner.doc
            return Definition(kind, name, inner.listed, doc, inner.body)
    if not rest or rest[0].kind not in ("list", "call"):
        raise fail(f"The arguments are missing: {shape}.", rest[0] if rest else form)
    listed, rest = rest[0], rest[1:]
    seen: set[str] = set()
    for argument in listed.items:
        if argument.kind != "symbol":
            raise fail("An argument is a name.", argument)
        if argument.text in seen:
            raise fail(
                f"The argument {argument.text} is listed twice; a-b and a_b are one name.", argument
            )
        seen.add(argument.text)
    doc = ""
    if len(rest) > 1 and rest[0].kind == "str":
        doc, rest = rest[0].text, rest[1:]
    if len(rest) != 1:
        raise fail(
            f"The body is missing: {shape}."
            if not rest
            else "A policy has one expression as its body.",
            rest[1] if rest else form,
        )
    return Definition(kind, name, listed, doc, rest[0])

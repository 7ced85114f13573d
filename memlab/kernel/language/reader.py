"""The reader: turns text in Hy's syntax into forms, in one pass over the tokens. Also the words and limits of the language.

Hy's own reader returns the same forms, which a test compares. Syntax that would run or build code is refused by name:
reader macros, f-strings, bytes, sets, dicts, tuples and dotted names. Quasi-quotes and ``#*`` are read within a
``defmacro`` only. Nesting and the number of forms are counted while reading, so that a hostile text is refused before it
fills the memory.
"""

from __future__ import annotations

import math
import re
from typing import Final, Literal, NamedTuple

from memlab.errors import PolicyError, PolicyLimitError, PolicySyntaxError, PolicyTypeError

# The words of the language: operators by type, aliases, literals, and forms that do not exist.


# Operators with a fixed number of arguments, operators that fold any number of them, and comparisons.
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
"""Units of time: a number of units times the first number, divided by the second, is a number of days."""

# Aggregates over the slate, and the names of an anonymous function in Hy and Scheme.
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
"""Spellings that the source hash treats as equal. Other aliases have hashes of their own."""

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
"""Aliases of forms and their canonical names."""

# Constants with a name; None is null.
LITERALS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("true", "True"), True),
    **dict.fromkeys(("false", "False"), False),
    **dict.fromkeys(("null", "nil", "None"), None),
}

ABSENT: Final = {
    "//": "Integer division is left out: it differs between back ends. Write (floor (/ a b)).",
    "%": "The remainder is left out: it differs between back ends. Write (- a (* b (floor (/ a b)))).",
    "mod": "The remainder is left out: it differs between back ends. Write (- a (* b (floor (/ a b)))).",
    "random": "A policy has no random numbers: return weights from the explore policy, and the engine draws.",
    "now": "A policy has no clock: time enters as features such as age-days.",
    "setv": "A policy changes nothing: bind names with let.",
    "set!": "A policy changes nothing: bind names with let.",
    "define": "Helpers are written (defn name [arguments] body).",
    "for": "A policy has no loops: it is applied to every item of a slate.",
    "while": "A policy has no loops: it is applied to every item of a slate.",
    "import": "A policy cannot import.",
    "defmacro": "A macro is defined in front of a policy or in a pack.",
    "require": "A policy cannot import.",
    "eval": "A policy cannot evaluate code.",
    **dict.fromkeys(
        ("choice", "flip"),
        "A policy does not draw: give each item a weight, and the engine draws by the weights.",
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
        "The only list functions are length, range, filter, nth, empty? and first: write a weight for each item instead.",
    ),
}
"""Messages for forms that do not exist: the reason, and what to write instead."""


def canonical(name: str) -> str:
    """Return a name with hyphens instead of underscores.

    ``a_b`` and ``a-b`` are one name, as in Hy.

    >>> canonical("recency_ms")
    'recency-ms'
    """
    return name.replace("_", "-") if len(name) > 1 else name


def quoted(text: str) -> str:
    """Return a string as a literal of the language."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# Limits of the language. Each one bounds the time that an untrusted text can cost.
#
# Measured on two cores: a policy at all limits at once compiles in under 50 ms; the shipped policies use 1-5% of them.


MAX_CHARACTERS = 20_000
"""Maximum characters of one policy or helper, checked before reading."""

MAX_FORMS = 4_000
"""Maximum atoms and lists in one policy."""

MAX_NESTING = 100
"""Maximum depth of brackets."""

MAX_OPEN = 150
"""Maximum depth of calls after inlining of helpers. Each takes about five of Python's thousand stack frames."""

MAX_NODES = 2_000
"""Maximum distinct operations after inlining of helpers."""

MAX_DEPTH = 100
"""Maximum operations between an input and the result; a chain of 3,000 costs Polars 16 s."""

MAX_STEPS = 8_000
"""Maximum forms visited while helpers are inlined, which ends an exponential expansion."""

MAX_EXPANSIONS = 1_000
"""Maximum calls of macros in one policy. More than any policy needs; it ends a macro that is passed itself."""

MAX_INTEGER = 2**53
"""Largest integer literal: float64 does not represent every integer above it."""

MAX_PACK_CHARACTERS = 60_000
"""Maximum characters of a pack: several times the largest shipped pack, read in under 50 ms."""

MAX_PACK_FORMS = 6_000
"""Maximum atoms and lists in a pack."""


FormKind = Literal["symbol", "keyword", "int", "float", "str", "call", "list"]

# Tokens of Hy's syntax. A group that a policy may not use is matched as well, so that its error has a name.
_TOKEN = re.compile(
    r"""(?P<space>[ \t\n\r\f\v]+|;[^\n]*)
    |(?P<open>[(\[])
    |(?P<close>[)\]}])
    |(?P<quote>'|`|~@|~)
    |(?P<discard>\#_)
    |(?P<bracket>\#\[)
    |(?P<tag>\#)
    |(?P<string>")
    |(?P<refused>[{])
    |(?P<atom>[^()\[\]{};"'`~ \t\n\r\f\v]+)""",
    re.VERBOSE,
)
# Lexical details of Hy: names, brackets, numbers, strings with their escapes, and reader tags.
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
# Names of marks before a form, as Hy's reader gives them. All but the quote belong to templates of macros.
_MARKS = {"'": "quote", "`": "quasiquote", "~": "unquote", "~@": "unquote-splice"}
_UNQUOTING = "Unquoting builds code, which only the template of a defmacro can do: write the expression itself."
_MARKED = re.compile(r"(?<=[^\s~])~\d+")
_REFUSED = {
    "{": "The policy language has no dictionaries.",
    "`": "Quasi-quotes build code, which only a defmacro can do: write the expression itself.",
    **dict.fromkeys(("~", "~@"), _UNQUOTING),
}
_REFUSED_TAGS = {
    "{": "The policy language has no set literals; write a list such as [1 2].",
    "(": "The policy language has no tuples; write a list such as [1 2].",
    "*": "The policy language has no unpacking.",
    "**": "The policy language has no unpacking.",
    "^": "The policy language has no annotations.",
}


class Form(NamedTuple):
    """One symbol, keyword, number, string, ``(...)`` or ``[...]``, and its position in the text.

    `text` is the name of a symbol or keyword or the content of a string. The form is ``source[start:stop]``. If a macro
    wrote the form, `macro` is the name of that macro, and the position is that of the form that it stands for.
    """

    kind: FormKind
    text: str = ""
    number: float = 0.0
    items: tuple[Form, ...] = ()
    start: int = 0
    stop: int = 0
    macro: str = ""

    @property
    def head(self) -> str:
        """The symbol at the start of a call, otherwise an empty string."""
        return (
            self.items[0].text
            if self.kind == "call" and self.items and self.items[0].kind == "symbol"
            else ""
        )


def flat_pairs(items: tuple[Form, ...]) -> tuple[Form, ...]:
    """Flatten pairs to alternating names and values.

    Pairs are written ``a 1 b 2`` or ``(a 1) (b 2)``. Malformed pairs are not checked.
    """
    if items and items[0].kind in ("list", "call"):
        return tuple(part for pair in items for part in pair.items)
    return items


class Text(NamedTuple):
    """A source text with its name, file and hash for error messages."""

    source: str
    name: str | None = None
    file: str | None = None
    hash: str | None = None

    def line(self, offset: int) -> int:
        """Return the 1-based line number of a character offset.

        Parameters
        ----------
        offset
            Offset into the source, from 0.

        Returns
        -------
        int
            Number of the line.
        """
        return self.source.count("\n", 0, offset) + 1

    def column(self, offset: int) -> int:
        """Return the 1-based column number of a character offset.

        Parameters
        ----------
        offset
            Offset into the source, from 0.

        Returns
        -------
        int
            Number of the column.
        """
        return offset - self.source.rfind("\n", 0, offset)

    def error(self, kind: type[PolicyError], message: str, form: Form | None) -> PolicyError:
        """Build an error that shows a caret under a form.

        Parameters
        ----------
        kind
            Class of the error.
        message
            Description of the fault.
        form
            The form at fault; None if the fault has no position.

        Returns
        -------
        PolicyError
            The error, to be raised by the caller.
        """
        if form is None:
            return kind(
                message, source=self.source, policy=self.name, file=self.file, hash=self.hash
            )
        if form.macro:
            # Names that a template binds are shown as they are written there, without their marks.
            message = f"{_MARKED.sub('', message)} This is in the expansion of {form.macro}."
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
    """Return every top-level form of a text.

    Parameters
    ----------
    text
        The text to read.
    characters
        Maximum number of characters.
    forms
        Maximum number of atoms and lists.

    Returns
    -------
    tuple of Form
        The forms in their order.

    Raises
    ------
    PolicySyntaxError
        If the text is not readable.
    PolicyLimitError
        If the text exceeds a limit.
    """
    if len(text.source) > characters:
        raise text.error(
            PolicyLimitError,
            f"The text has {len(text.source):,} characters; the limit is {characters:,}. Shorten it.",
            None,
        )
    try:
        text.source.encode()
    except UnicodeEncodeError as error:
        message = f"Character {error.start + 1} is half of a surrogate pair."
        raise PolicySyntaxError(message, policy=text.name, file=text.file) from None
    return _Reader(text, forms).items("")


class _Reader:
    """A reader of one text.

    `at` is the offset of the next token, and `open` has the starts of incomplete forms. `macros` is the number of
    enclosing ``defmacro`` forms.
    """

    def __init__(self, text: Text, limit: int) -> None:
        self.text, self.limit, self.source = text, limit, text.source
        self.at = self.count = self.macros = 0
        self.open: list[int] = []

    def error(
        self, message: str, start: int, stop: int | None = None, *, limit: bool = False
    ) -> PolicyError:
        """Build an error at a range of the text."""
        form = Form("symbol", start=start, stop=start + 1 if stop is None else stop)
        return self.text.error(PolicyLimitError if limit else PolicySyntaxError, message, form)

    def items(self, closer: str) -> tuple[Form, ...]:
        """Parse forms until the bracket `closer`.

        An empty `closer` means the end of the text.
        """
        forms: list[Form] = []
        outside = self.macros
        while (form := self.read(closer)) is not None:
            if not forms and closer == ")" and form.text == "defmacro":
                self.macros += 1
            forms.append(form)
        self.macros = outside
        return tuple(forms)

    def next_form(self) -> Form:
        """Return the next form, which must exist."""
        form = self.read(None)
        assert form is not None
        return form

    def read(self, closer: str | None) -> Form | None:
        """Parse the next form, or return None at `closer`.

        An empty `closer` means the end of the text.
        """
        # A bracket or quote reads its items by recursion; the depth is bounded by MAX_NESTING.
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
                raise self.error(
                    f"The text has more than {self.limit:,} forms (names, numbers, strings, lists and calls).",
                    start,
                    limit=True,
                )
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
        """Parse the form that a bracket, a quote or a tag opens.

        Returns None for a discarded form.
        """
        if token in _CLOSER:
            items = self.items(_CLOSER[token])
            return Form("call" if token == "(" else "list", "", 0.0, items, start, self.at)
        if token in _MARKS:
            if token != "'" and not self.macros:
                raise self.error(_REFUSED[token], start, self.at)
            return self.marked(_MARKS[token], start)
        if token == "#_":
            self.next_form()
            return None
        return self.bracket_string(start) if token == "#[" else self.tagged(start)

    def marked(self, name: str, start: int) -> Form:
        """Return the call that a mark before a form stands for."""
        marked = self.next_form()
        head = Form("symbol", name, start=start, stop=self.at)
        return Form("call", "", 0.0, (head, marked), start, self.at)

    def atom(self, text: str, start: int) -> Form:
        """Parse a keyword, a number or a name."""
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
                f"{text} is not a number of the policy language: all numbers are finite.",
                start,
                stop,
            )
        if "." in text:
            message = f"{text[:40]} is a dotted name, which reaches into Python; pair inputs are written new/kind."
            raise self.error(message, start, stop)
        return Form("symbol", canonical(text), 0.0, (), start, stop)

    def number(self, text: str, start: int) -> Form:
        """Parse a number, checking its syntax and range."""
        if not _NUMBER.match(text):
            message = f"{text[:40]} is not a number; numbers are written 12, -0.5, 1e-3."
            raise self.error(message, start, self.at)
        value, whole = float(text), _INTEGER.match(text)
        if not math.isfinite(value):
            raise self.error(f"{text[:40]} is beyond the range of float64.", start, self.at)
        if whole and (len(text) > 400 or abs(int(text)) > MAX_INTEGER):
            message = f"{text[:40]} is an integer beyond 2^53, which float64 cannot represent."
            raise self.error(message, start, self.at)
        return (
            Form("int", "", float(int(text)), (), start, self.at)
            if whole
            else Form("float", "", value, (), start, self.at)
        )

    def string(self, start: int) -> Form:
        """Parse a string and replace its escape sequences."""
        match = _STRING.match(self.source, self.at)
        if match is None:
            raise self.error("This string is not closed.", start)
        self.at = match.end()
        body = match.group()[:-1]
        if "\\" in body:
            body = _ESCAPE.sub(lambda escape: self.unescaped(escape.group(1), start), body)
        return self.content(body, start)

    def unescaped(self, code: str, start: int) -> str:
        """Return the character of an escape sequence."""
        if code[0] in "ux" and len(code) > 1:
            return chr(int(code[1:], 16))
        if code not in _ESCAPES:
            raise self.error(f"\\{code} is not an escape of the policy language.", start, self.at)
        return _ESCAPES[code]

    def content(self, body: str, start: int) -> Form:
        """Return a string form whose line ends are line feeds."""
        if any("\ud800" <= c <= "\udfff" for c in body):
            raise self.error("A string contains half of a surrogate pair.", start, self.at)
        return Form("str", body.replace("\r\n", "\n").replace("\r", "\n"), 0.0, (), start, self.at)

    def tagged(self, start: int) -> Form:
        """Parse ``#t`` or ``#f`` as a literal, and refuse any other tag."""
        rest = self.source[self.at : self.at + 2]
        if self.macros and rest[:1] == "*" != rest[1:]:
            self.at += 1
            return self.marked("unpack-iterable", start)
        for tag in (rest, rest[:1]):
            if tag in _REFUSED_TAGS:
                raise self.error(_REFUSED_TAGS[tag], start, self.at + len(tag))
        match = _IDENT.match(self.source, self.at)
        ident = match.group() if match else ""
        self.at += len(ident)
        if ident not in _LITERAL_TAGS:
            raise self.error(
                f"#{ident[:40]} is a reader macro, which a policy cannot run.", start, self.at
            )
        return Form("symbol", _LITERAL_TAGS[ident], 0.0, (), start, self.at)

    def bracket_string(self, start: int) -> Form:
        """Parse a bracket string of Hy, such as ``#[[text]]``."""
        match = _BRACKET.match(self.source, self.at)
        if match is None:
            raise self.error("A bracket string begins with #[[ or #[name[.", start)
        mark = match.group(1)
        if mark in {"f", "t"} or mark.startswith(("f-", "t-")):
            raise self.error(
                "The policy language has no f-strings: write a plain string.", start, match.end()
            )
        end = self.source.find(f"]{mark}]", match.end())
        if end < 0:
            raise self.error("This string is not closed.", start)
        self.at = end + len(mark) + 2
        body = self.source[match.end() : end]
        return self.content(body[1:] if body[:1] == "\n" else body, start)


# Definitions: ``fn``, ``lambda``, ``defn`` and ``defpolicy``, in the spelling of Hy or Scheme.


class Definition(NamedTuple):
    """The parts of an ``fn``, ``lambda``, ``defn`` or ``defpolicy``.

    `listed` is the bracketed list of arguments.
    """

    kind: str
    name: str
    listed: Form
    doc: str
    body: Form

    @property
    def arguments(self) -> tuple[Form, ...]:
        """The arguments of the definition, in order."""
        return self.listed.items


def definition(form: Form, text: Text) -> Definition:
    """Split a definition into its parts, or raise an error.

    The error names the missing part.
    """

    def fail(message: str, at: Form) -> PolicyError:
        return text.error(PolicyTypeError, message, at)

    # The parts are read from left to right: the name, Scheme's lambda instead of arguments, the
    # arguments, the document string, the body.
    kind = "fn" if form.head in FUNCTION_HEADS else form.head
    shape = "(fn [features] body)" if kind == "fn" else f'({kind} name [features] "doc" body)'
    rest = form.items[1:]
    name = ""
    if kind != "fn":
        if not rest or rest[0].kind != "symbol":
            raise fail(
                f"A {kind} form needs a name after {kind}: write {shape}.",
                rest[0] if rest else form,
            )
        name, rest = rest[0].text, rest[1:]
        bare = rest[1:] if len(rest) == 2 and rest[0].kind == "str" else rest
        if len(bare) == 1 and bare[0].head in FUNCTION_HEADS:
            # (defpolicy name (lambda (a b) body)) is the definition of a function in Scheme.
            inner = definition(bare[0], text)
            doc = rest[0].text if len(rest) == 2 else inner.doc
            return Definition(kind, name, inner.listed, doc, inner.body)
    if not rest or rest[0].kind not in ("list", "call"):
        raise fail(f"The arguments are missing: {shape}.", rest[0] if rest else form)
    listed, rest = rest[0], rest[1:]
    names: set[str] = set()
    for argument in listed.items:
        if argument.kind != "symbol":
            raise fail(
                "An argument is a name without parentheses or quotes, such as similarity.", argument
            )
        if argument.text in names:
            raise fail(
                f"The argument {argument.text} is listed twice; a-b and a_b are one name.", argument
            )
        names.add(argument.text)
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

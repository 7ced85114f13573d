"""Text to forms: Hy's reader, used for its syntax and its models, never for its compiler.

Three things differ from the stock ``HyReader``. Positions are kept as offsets, so that ``fill_pos`` does not copy
every enclosing model again (99 nested parentheses cost the stock reader 560 ms, this one 0.3). Characters come from one
string with an index (a policy of 400 characters: 2.6 ms and 0.26). Nesting and the number of forms are counted while
reading, so that a hostile text is refused before it is in memory. Reader macros, f-strings, bytes, templates, sets,
dicts, tuples, unpacking, quasi-quotes and dotted names are refused by name.

Hy's models are converted at once into ``Form``; nothing below this file knows Hy.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

from memlab.errors import PolicyError, PolicyLimitError, PolicySyntaxError
from memlab.language._limits import MAX_CHARACTERS, MAX_FORMS, MAX_INTEGER, MAX_NESTING
from memlab.language._words import canonical

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Form", "FormKind", "Text", "flat_pairs", "read_forms"]

FormKind = Literal["symbol", "keyword", "int", "float", "str", "call", "list"]

_SPACE = re.compile(r"[ \t\n\r\f\v]+")
_IDENT = re.compile(r"[^()\[\]{};\"'`~ \t\n\r\f\v]*")
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
    """One symbol, keyword, number, string, ``(...)`` or ``[...]``, and where it stands in the text."""

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
        return self.items[0].text if self.kind == "call" and self.items and self.items[0].kind == "symbol" else ""


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
            return kind(message, source=self.source, policy=self.name, file=self.file, hash=self.hash)
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


def read_forms(text: Text, *, characters: int = MAX_CHARACTERS, forms: int = MAX_FORMS) -> tuple[Form, ...]:
    """Every top-level form of a text, or a ``PolicySyntaxError`` or ``PolicyLimitError`` with its place."""
    if len(text.source) > characters:
        raise text.error(
            PolicyLimitError, f"The text has {len(text.source):,} characters; the limit is {characters:,}.", None
        )
    try:
        text.source.encode()
    except UnicodeEncodeError as error:
        message = f"Character {error.start + 1} is half of a surrogate pair."
        raise PolicySyntaxError(message, policy=text.name, file=text.file) from None
    reader = _reader_class()(text, forms)
    return tuple(reader.forms())


@lru_cache(maxsize=1)
def _reader_class() -> Callable[[Text, int], Any]:
    """The reader, built on first use: importing Hy takes 60 ms."""
    import hy.models as models
    from hy.reader import HyReader
    from hy.reader.exceptions import LexException

    symbol_type, keyword_type, string_type = models.Symbol, models.Keyword, models.String
    integer_type, float_type = models.Integer, models.Float
    call_type, list_type = models.Expression, models.List

    class PolicyReader(HyReader):  # type: ignore[misc]
        def __init__(self, text: Text, limit: int) -> None:
            super().__init__()
            self.text, self.limit = text, limit
            self.string, self.at = text.source, 0
            self.open: list[int] = []
            self.count = 0
            self._set_source(io.StringIO(text.source))
            for character in _REFUSED:
                self.reader_table[character] = refuse
            self.reader_table['"'] = read_string
            self.reader_table["#"] = read_tag
            self.reader_table["'"] = read_quote
            self.reader_table[";"] = skip_comment
            self.reader_table[":"] = read_keyword

        def error(self, message: str, start: int, stop: int | None = None, *, limit: bool = False) -> PolicyError:
            form = Form("symbol", start=start, stop=start + 1 if stop is None else stop)
            return self.text.error(PolicyLimitError if limit else PolicySyntaxError, message, form)

        # The stream: an index into a string in place of a deque of characters.

        @property
        def pos(self) -> tuple[int, int]:
            return (1, self.at)

        def peekc(self) -> str:
            return self.string[self.at : self.at + 1]

        def getc(self) -> str:
            c = self.string[self.at : self.at + 1]
            self.at += len(c)
            return c

        def peeking(self, eof_ok: bool = False) -> Iterator[str]:
            return iter(self.string[self.at :])

        def slurp_space(self) -> str:
            match = _SPACE.match(self.string, self.at)
            if match is None:
                return ""
            self.at = match.end()
            return match.group()

        def read_ident(self, just_peeking: bool = False) -> str:
            match = _IDENT.match(self.string, self.at)
            ident = match.group() if match else ""
            if not just_peeking:
                self.at += len(ident)
            return ident

        def getn(self, n: int) -> str:
            self.at += n
            return self.string[self.at - n : self.at]

        # Forms.

        def fill_pos(self, model: Any, start: int) -> Any:
            model._start_line, model._end_line = start, self.at
            return model

        def try_parse_one_form(self) -> Any:
            self.slurp_space()
            return self.one_form()

        def one_form(self) -> Any:
            start = self.at
            c = self.getc()
            if not c:
                raise self.ended()
            handler = self.reader_table.get(c)
            if handler is None:
                model = self.read_default(c)
            elif c in "(['#":
                self.open.append(start)
                if len(self.open) > MAX_NESTING:
                    raise self.error(f"Forms nest deeper than {MAX_NESTING}.", start, limit=True)
                model = handler(self, c)
                self.open.pop()
            else:
                model = handler(self, c)
            if model is None:
                return None
            self.count += 1
            if self.count > self.limit:
                raise self.error(f"There are more than {self.limit:,} forms.", start, limit=True)
            return self.fill_pos(model, start)

        def parse_forms_until(self, closer: str) -> Iterator[Any]:
            while True:
                self.slurp_space()
                c = self.peekc()
                if not c:
                    if not closer:
                        return
                    raise self.ended()
                if c == closer:
                    self.at += 1
                    return
                if c in ")]}":
                    raise self.error(f'"{c}" closes nothing here{f"; {closer} is missing" if closer else ""}.', self.at)
                model = self.one_form()
                if model is not None:
                    yield model

        def ended(self) -> PolicyError:
            if self.open:
                start = self.open[-1]
                closer = {"(": ": ) is missing", "[": ": ] is missing"}.get(self.string[start], "")
                return self.error(f"The text ends before the form that opens here is complete{closer}.", start)
            return self.error("The text ends where a form is expected.", max(0, len(self.string) - 1))

        def read_default(self, key: str) -> Any:
            start = self.at - 1
            ident = key + self.read_ident()
            if self.peekc() == '"':
                raise self.error(
                    f"A string takes no prefix: remove {ident[:40]} before the quotation mark.", start, self.at + 1
                )
            if _NUMERIC.match(ident):
                if not _NUMBER.match(ident):
                    raise self.error(
                        f"{ident[:40]} is not a number as the dialect writes them: 12, -0.5, 1e-3.", start, self.at
                    )
                if not math.isfinite(float(ident)):
                    raise self.error(f"{ident[:40]} is beyond the range of float64.", start, self.at)
                if _INTEGER.match(ident) and (len(ident) > 400 or abs(int(ident)) > MAX_INTEGER):
                    raise self.error(
                        f"{ident[:40]} is an integer beyond 2^53, which float64 does not hold.", start, self.at
                    )
                return integer_type(int(ident)) if _INTEGER.match(ident) else float_type(ident)
            if ident.lstrip("+-").lower() in _WORD_NUMBERS:
                raise self.error(f"{ident} cannot be written as a number: constants are finite.", start, self.at)
            if "." in ident:
                raise self.error(
                    f"{ident[:40]} is a dotted name, which reaches into Python; pair inputs are written new/kind.",
                    start,
                    self.at,
                )
            return symbol_type(ident, from_parser=True)

        def forms(self) -> Iterator[Form]:
            try:
                for model in self.parse_forms_until(""):
                    yield self.convert(model)
            except LexException as error:
                message = str(error.msg or "The text cannot be read.")
                raise self.error(message, max(0, min(self.at, len(self.string)) - 1)) from None

        def convert(self, model: Any) -> Form:
            start, stop, kind = model._start_line, model._end_line, type(model)
            if kind is symbol_type:
                return Form("symbol", canonical(str(model)), 0.0, (), start, stop)
            if kind is call_type:
                return Form("call", "", 0.0, tuple([self.convert(m) for m in model]), start, stop)
            if kind is list_type:
                return Form("list", "", 0.0, tuple([self.convert(m) for m in model]), start, stop)
            if kind is integer_type:
                return Form("int", "", float(int(model)), (), start, stop)
            if kind is float_type:
                return Form("float", "", float(model), (), start, stop)
            if kind is string_type:
                return Form("str", str(model), 0.0, (), start, stop)
            if kind is keyword_type:
                return Form("keyword", canonical(model.name), 0.0, (), start, stop)
            raise self.error(f"{kind.__name__} is no form of the dialect.", start, stop)

    def refuse(reader: Any, key: str) -> NoReturn:
        raise reader.error(_REFUSED[key], reader.at - 1)

    def skip_comment(reader: Any, _: str) -> None:
        end = reader.string.find("\n", reader.at)
        reader.at = len(reader.string) if end < 0 else end + 1

    def read_keyword(reader: Any, _: str) -> Any:
        ident = reader.read_ident()
        if not ident or "." in ident:
            raise reader.error("A keyword is a colon and a name, such as :low.", reader.at - len(ident) - 1, reader.at)
        return keyword_type(ident, from_parser=True)

    def read_quote(reader: Any, _: str) -> Any:
        start = reader.at - 1
        quoted = reader.parse_one_form()
        return call_type((reader.fill_pos(symbol_type("quote", from_parser=True), start), quoted))

    def read_string(reader: Any, _: str) -> Any:
        start = reader.at - 1
        match = _STRING.match(reader.string, reader.at)
        if match is None:
            raise reader.error("This string is not closed.", start)
        reader.at = match.end()
        body = match.group()[:-1]
        if "\\" in body:
            body = _ESCAPE.sub(lambda m: unescape(reader, start, m.group(1)), body)
        return text_model(reader, body, start)

    def unescape(reader: Any, start: int, code: str) -> str:
        if code[0] in "ux" and len(code) > 1:
            return chr(int(code[1:], 16))
        if code not in _ESCAPES:
            raise reader.error(f"\\{code} is no escape of the dialect.", start, reader.at)
        return _ESCAPES[code]

    def text_model(reader: Any, body: str, start: int) -> Any:
        if any("\ud800" <= c <= "\udfff" for c in body):
            raise reader.error("A string holds half of a surrogate pair.", start, reader.at)
        return string_type(body.replace("\r\n", "\n").replace("\r", "\n"))

    def read_tag(reader: Any, _: str) -> Any:
        start = reader.at - 1
        rest = reader.string[reader.at : reader.at + 2]
        if rest[:1] == "_":
            reader.at += 1
            reader.parse_one_form()
            return None
        if rest[:1] == "[":
            return read_bracket_string(reader, start)
        for tag in (rest, rest[:1]):
            if tag in _REFUSED_TAGS:
                raise reader.error(_REFUSED_TAGS[tag], start, reader.at + len(tag))
        ident = reader.read_ident()
        if ident in _LITERAL_TAGS:
            return symbol_type(_LITERAL_TAGS[ident], from_parser=True)
        raise reader.error(f"#{ident[:40]} is a reader macro, and a policy runs none.", start, reader.at)

    def read_bracket_string(reader: Any, start: int) -> Any:
        reader.at += 1
        match = _BRACKET.match(reader.string, reader.at)
        if match is None:
            raise reader.error("A bracket string begins with #[[ or #[name[.", start)
        mark = match.group(1)
        if mark in {"f", "t"} or mark.startswith(("f-", "t-")):
            raise reader.error("A string that holds code is not part of the dialect.", start, match.end())
        end = reader.string.find(f"]{mark}]", match.end())
        if end < 0:
            raise reader.error("This string is not closed.", start)
        reader.at = end + len(mark) + 2
        body = reader.string[match.end() : end]
        return text_model(reader, body[1:] if body[:1] == "\n" else body, start)

    return PolicyReader

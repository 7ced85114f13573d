"""Macros: templates of a text or a pack, and ``->``, ``->>``, ``do``, ``unless`` and ``when`` of several values.

A macro is expanded once, after reading and before checking and hashing. Nothing is computed and nothing runs: a template
is copied, and its parameters are replaced by the forms of the call.

Expansion is hygienic (Kohlbecker, Friedman, Felleisen and Duba 1986). Every name that a template writes gets a mark, such
as ``t~3``, which no text can contain. A name keeps its mark where the expansion binds it, so it is invisible to the forms
of the call. Every other name loses its mark, and means a form or a helper. If the caller has bound that name, the
expansion is refused, because the template would read the wrong value.

>>> from memlab.kernel.language.reader import read_forms
>>> text = Text("(defmacro square-of [x] `(let [t ~x] (* t t))) (fn [t] (square-of (+ t 1)))")
>>> first, policy = read_forms(text)
>>> expander = Expander({"square-of": read_macro(first, text)}, ())
>>> body = expander.definition(policy, text).items[-1]
>>> body.items[1].items[0].text, body.items[1].items[1].items[1].text
('t~1', 't')
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from memlab.errors import (
    PolicyError,
    PolicyLimitError,
    PolicyNameError,
    PolicySyntaxError,
    PolicyTypeError,
)
from memlab.kernel.language.reader import (
    FUNCTION_HEADS,
    MAX_EXPANSIONS,
    MAX_NESTING,
    MAX_PACK_FORMS,
    Definition,
    Form,
    Text,
    definition,
    flat_pairs,
)

MARK: Final = "~"
"""Separates a name that a template writes from the number of the expansion. The reader returns no such name."""

MACROS: Final = ("->", "->>", "do", "unless")
"""Macros of the language. A helper, a bound name or a macro of the text may have one of these names and hides it."""

# The words that make an expansion necessary, between the ends of a word. Most texts contain none.
_WORDS = re.compile(r"""(?<![^\s()\[\]{};"'`~])(?:[-_]>>?|do|unless|when)(?![^\s()\[\]{};"'`~])""")

_PROSE = re.compile(r'"(?:[^"\\]|\\.)*"|;[^\n]*', re.DOTALL)
"""Strings and comments."""

_MAX_STEPS = 2 * MAX_PACK_FORMS
"""Maximum forms written and visited while the macros of one text are expanded: a text at its limit is visited once."""

# The form of a definition, for error messages.
_SHAPE = "(defmacro name [a b #* rest] `(template ~a ~b ~@rest))"


class Macro(NamedTuple):
    """A ``defmacro``: a template with parameters. `rest` is the parameter after ``#*``, or an empty string."""

    name: str
    parameters: tuple[str, ...]
    rest: str
    doc: str
    template: Form
    form: Form
    text: Text

    @property
    def source(self) -> str:
        """The text of the macro."""
        return self.text.source[self.form.start : self.form.stop]


def read_macro(form: Form, text: Text) -> Macro:
    """Parse a ``defmacro`` and check its template.

    Raises a PolicyError with the position of the fault.
    """
    rest, plain = "", form
    listed = form.items[2] if len(form.items) > 2 else form
    if listed is not form and listed.items and listed.items[-1].head == "unpack-iterable":
        name = listed.items[-1].items[1]
        rest = name.text
        listed = listed._replace(items=(*listed.items[:-1], name))
        plain = form._replace(items=(*form.items[:2], listed, *form.items[3:]))
    parts = definition(plain, text)
    template = parts.body
    if template.head == "quasiquote" and len(template.items) == 2:
        template = template.items[1]
    elif template.kind not in ("int", "float", "str"):
        raise text.error(
            PolicySyntaxError, f"A macro is a template and computes nothing: {_SHAPE}.", template
        )
    names = tuple(argument.text for argument in parts.arguments)
    _check_template(template, parts, rest, text)
    plain_names = names[:-1] if rest else names
    return Macro(parts.name, plain_names, rest, parts.doc, template, form, text)


def _check_template(template: Form, parts: Definition, rest: str, text: Text) -> None:
    """Raise a PolicyError unless a template inserts all of its parameters and nothing else."""
    # A form after ~ must be a parameter; a form after ~@ must be inside a call or list. Quasi-quotes do not nest.
    names = {argument.text for argument in parts.arguments}
    used: set[str] = set()
    waiting = [(template, False)]
    while waiting:
        form, listed = waiting.pop()
        if form.head == "quasiquote":
            raise text.error(
                PolicySyntaxError, "A template must not contain another template.", form
            )
        if form.head not in ("unquote", "unquote-splice"):
            waiting += [(item, True) for item in reversed(form.items)]
            continue
        name = form.items[1].text if len(form.items) == 2 and not form.items[1].items else ""
        if name not in names:
            raise text.error(
                PolicySyntaxError,
                f"A template computes nothing: ~ must be followed by a parameter of {parts.name}.",
                form,
            )
        if (form.head == "unquote" and name == rest) or not (listed or form.head == "unquote"):
            raise text.error(
                PolicySyntaxError,
                f"Several forms can only be inserted by ~@{name}, and only into a call or a list.",
                form,
            )
        used.add(name)
    for argument in parts.arguments:
        if argument.text not in used:
            raise text.error(
                PolicySyntaxError,
                f"The template does not use {argument.text}. Insert it, ~{argument.text}, or remove the parameter.",
                argument,
            )


def may_expand(source: str) -> bool:
    """Return False if a text calls no macro of the language."""
    # Most texts have such a word only in comments. In a bracket string, quotes and semicolons are letters.
    return bool(_WORDS.search(source if "#[" in source else _PROSE.sub("", source)))


class Expander:
    """An expansion of the macros in the definitions of one text or pack.

    `macros` are those of the text, and `helpers` are the names of its helpers.
    """

    def __init__(self, macros: Mapping[str, Macro], helpers: Collection[str]) -> None:
        self.macros, self.helpers = macros, helpers
        self.calls: dict[tuple[int, int], Form] = {}
        """Calls of macros that the author wrote, by their spans."""
        self._steps = self._count = 0
        self._origins: dict[str, tuple[str, str]] = {}
        """For each mark, the macro that wrote it and the mark of the name by which that macro was called."""
        self._text = Text("")

    def definition(self, form: Form, text: Text) -> Form:
        """Return a ``fn``, ``defn`` or ``defpolicy`` with an expanded body.

        Raises a PolicyError with its position if a macro is misused.
        """
        parts = definition(form, text)
        self._text = text
        if not self.macros and not may_expand(text.source):
            return form
        scope = frozenset(argument.text for argument in parts.arguments)
        return _with_body(form, parts.body, self._expand(parts.body, scope, 0))

    def _error(self, kind: type[PolicyError], message: str, form: Form) -> PolicyError:
        """Build an error that points at a form and does not name the macro that produced it."""
        return self._text.error(kind, message, form._replace(macro=""))

    def _step(self, form: Form, count: int = 1) -> None:
        """Count written or visited forms, and raise PolicyLimitError above the limit."""
        self._steps += count
        if self._steps > _MAX_STEPS:
            raise self._error(
                PolicyLimitError,
                f"Macros expand to more than {_MAX_STEPS:,} forms. Call fewer macros, or write smaller templates.",
                form,
            )

    def _expand(self, form: Form, scope: frozenset[str], depth: int) -> Form:
        """Return a form with all its macros expanded. `scope` contains the names that are bound around it."""
        written = form
        while (name := self._called(form, scope)) is not None:
            form = self._expand_call(name, form)
        if form is not written and not written.macro:
            self.calls[written.start, written.stop] = written
        self._step(form)
        if form.kind == "symbol":
            return self._resolve(form, scope)
        if not form.items:
            return form
        if depth > MAX_NESTING:
            raise self._error(
                PolicyLimitError, f"Macros expand to forms nested deeper than {MAX_NESTING}.", form
            )
        # Names in quotes and in keys of case are words, which nothing binds.
        head, *rest = form.items
        head = self._expand(head, scope, depth + 1)
        form = form._replace(items=(head, *rest))
        if form.head == "quote":
            return _unmarked(form)
        if form.head == "case" and len(rest) > 1 and all(map(is_case_clause, rest[1:])):
            subject = self._expand(rest[0], scope, depth + 1)
            clauses = [
                clause._replace(
                    items=(
                        _unmarked(clause.items[0]),
                        self._expand(clause.items[1], scope, depth + 2),
                    )
                )
                for clause in rest[1:]
            ]
            return form._replace(items=(head, subject, *clauses))
        if (bindings := flat_bindings(form)) is not None:
            pairs: list[Form] = []
            for bound, value in zip(bindings[::2], bindings[1::2], strict=True):
                pairs += [bound, self._expand(value, scope, depth + 2)]
                scope |= {bound.text}
            rest[0] = rest[0]._replace(kind="list", items=tuple(pairs))
        elif form.head in FUNCTION_HEADS and rest and rest[0].kind in ("list", "call"):
            scope |= {argument.text for argument in rest[0].items}
        else:
            return form._replace(
                items=(head, *(self._expand(item, scope, depth + 1) for item in rest))
            )
        body = (self._expand(item, scope, depth + 1) for item in rest[1:])
        return form._replace(items=(head, rest[0], *body))

    def _resolve(self, form: Form, scope: frozenset[str]) -> Form:
        """Return a name without its hygiene mark, unless the expansion itself binds the name.

        Raises PolicyNameError if only the caller binds the name.
        """
        name, mark, _ = form.text.partition(MARK)
        if not mark or form.text in scope:
            return form
        if name in scope:
            raise self._error(
                PolicyNameError,
                f"The template of {form.macro} uses the name {name}, which the caller has bound. "
                "Make it a parameter of the macro.",
                form,
            )
        return form._replace(text=name)

    def _called(self, form: Form, scope: frozenset[str]) -> str | None:
        """Return the name of the macro that a form calls, or None for other forms."""
        text = form.head
        name = text.partition(MARK)[0]
        if not name or text in scope or name in scope:
            return None
        if name in self.macros:
            return name
        if name in self.helpers:
            return None
        return name if name in MACROS or (name == "when" and len(form.items) > 3) else None

    def _expand_call(self, name: str, form: Form) -> Form:
        """Return the expansion of one call, which may contain macros."""
        self._count += 1
        if self._count > MAX_EXPANSIONS:
            raise self._error(
                PolicyLimitError,
                f"More than {MAX_EXPANSIONS:,} macros are expanded. A macro that reaches itself has no end.",
                form,
            )
        count, mark = str(self._count), form.head.partition(MARK)[2]
        self._origins[count] = name, mark
        while mark:
            caller, mark = self._origins[mark]
            if caller == name:
                raise self._error(
                    PolicyTypeError,
                    f"The template of {name} calls {name} again, so its expansion has no end.",
                    form,
                )
        macro = self.macros.get(name)
        if macro is None:
            return self._expand_own(name, form, count)
        arguments, number = form.items[1:], len(macro.parameters)
        if len(arguments) < number or (len(arguments) > number and not macro.rest):
            shape = " ".join((name, *macro.parameters, *(("...",) if macro.rest else ())))
            raise self._error(
                PolicyTypeError,
                f"({shape}) takes {'at least ' if macro.rest else ''}{number} arguments, but {len(arguments)} are given.",
                form,
            )
        values = dict(zip(macro.parameters, arguments, strict=False))
        origin = form._replace(macro=name)
        values[macro.rest] = origin._replace(items=arguments[number:])
        return self._fill(macro.template, values, origin, count)

    def _fill(self, form: Form, values: Mapping[str, Form], call: Form, mark: str) -> Form:
        """Return a template filled with the forms of a macro call, at the position of the call.

        The template's own names get the mark ``mark``.
        """
        self._step(call)
        if form.head == "unquote":
            return values[form.items[1].text]
        items: list[Form] = []
        for item in form.items:
            if item.head == "unquote-splice":
                several = values[item.items[1].text]
                if several.kind not in ("call", "list"):
                    raise self._error(
                        PolicyTypeError,
                        f"{call.macro} inserts the items of this argument, so the argument must be a call or a list.",
                        several,
                    )
                self._step(call, len(several.items))
                items += several.items
            else:
                items.append(self._fill(item, values, call, mark))
        text = f"{form.text}{MARK}{mark}" if form.kind == "symbol" else form.text
        return Form(form.kind, text, form.number, tuple(items), call.start, call.stop, call.macro)

    def _expand_own(self, name: str, form: Form, mark: str) -> Form:
        """Return the expansion of a call to a built-in macro."""
        minimum = 1 if name in ("->", "->>", "do") else 2
        if len(form.items) <= minimum:
            raise self._error(
                PolicyTypeError,
                f"{name} takes at least {minimum} argument{'s' * (minimum > 1)}, but {len(form.items) - 1} are given.",
                form,
            )
        first, *rest = form.items[1:]
        origin = Form("call", start=form.start, stop=form.stop, macro=form.macro or name)
        symbol = origin._replace(kind="symbol")
        if name == "do":
            *ignored, last = form.items[1:]
            if not ignored:
                return last
            # The values before the last are checked, and do not count.
            unused = symbol._replace(text=f"do{MARK}{mark}")
            pairs = tuple(part for value in ignored for part in (unused, value))
            return origin._replace(
                items=(symbol._replace(text="let"), origin._replace(kind="list", items=pairs), last)
            )
        if name in ("unless", "when"):
            value = self._expand_own("do", form._replace(items=(symbol, *rest)), mark)
            if name == "when":
                return form._replace(items=(*form.items[:2], value))
            words = [symbol._replace(text=word) for word in ("if", "null")]
            return origin._replace(items=(words[0], first, words[1], value))
        for number, step in enumerate(rest, 1):
            at = form if number == len(rest) else step
            if step.kind == "symbol":
                items: tuple[Form, ...] = (step, first)
            elif step.kind == "call" and step.items:
                items = (
                    (step.items[0], first, *step.items[1:])
                    if name == "->"
                    else (*step.items, first)
                )
            else:
                raise self._error(
                    PolicyTypeError, f"A step of {name} is a function or a call of one.", step
                )
            first = origin._replace(items=items, start=at.start, stop=at.stop)
        return first


def _with_body(form: Form, old: Form, new: Form) -> Form:
    """Return a definition whose body, its last form or that of its ``lambda``, is ``new`` instead of ``old``."""
    last = form.items[-1]
    return form._replace(
        items=(*form.items[:-1], new if last is old else _with_body(last, old, new))
    )


def _unmarked(form: Form) -> Form:
    """Return a form without the hygiene marks of its names."""
    return form._replace(
        text=form.text.partition(MARK)[0] if form.kind == "symbol" else form.text,
        items=tuple(map(_unmarked, form.items)),
    )


def is_case_clause(form: Form) -> bool:
    """Return True if a form can be a clause of Scheme's ``case``: keys and a value."""
    return form.kind in ("call", "list") and len(form.items) == 2 and form.head != "quote"


def flat_bindings(form: Form) -> tuple[Form, ...] | None:
    """Return the alternating names and values of a ``let``, or None if malformed.

    Malformed bindings are reported by the checker.
    """
    if (
        form.head not in ("let", "let*")
        or len(form.items) < 2
        or form.items[1].kind not in ("list", "call")
    ):
        return None
    pairs = form.items[1].items
    if pairs and pairs[0].kind in ("list", "call") and any(len(pair.items) != 2 for pair in pairs):
        return None
    items = flat_pairs(pairs)
    return None if len(items) % 2 or any(name.kind != "symbol" for name in items[::2]) else items

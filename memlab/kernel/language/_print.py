"""The canonical print of a form: one spelling, one layout, no comments. What means the same to the hash prints alike,
but for the names that let binds.
"""

from __future__ import annotations

from memlab.kernel.language._definition import definition
from memlab.kernel.language._forms import ELSE, unquoted
from memlab.kernel.language._reader import Form, Text, flat_pairs
from memlab.kernel.language._source import literal, number
from memlab.kernel.language._words import ALIASES, RESPELLED

__all__ = ["lay_out", "print_definition", "print_form"]

WIDTH = 88


def print_definition(form: Form, text: Text, *, width: int = WIDTH) -> str:
    """A policy as ``(fn [a b] body)`` or a helper as ``(defn name [a b] body)``, without its document string.

    >>> from memlab.kernel.language._reader import read_forms
    >>> text = Text("(defpolicy score (lambda (x_y) (coalesce x_y 'a)))")
    >>> print(print_definition(read_forms(text)[0], text))
    (fn [x-y]
      (if-null x-y "a"))
    """
    parts = definition(form, text)
    head = f"defn {parts.name}" if parts.kind == "defn" else "fn"
    arguments = " ".join(argument.text for argument in parts.arguments)
    return f"({head} [{arguments}]\n  {print_form(parts.body, 2, width)})"


def print_form(form: Form, indent: int = 0, width: int = WIDTH) -> str:
    """A form that begins ``indent`` characters from the left, broken where a line would be longer than ``width``."""
    return _laid_out(_plain(form), indent, width)


def lay_out(form: Form, *, width: int = WIDTH) -> str:
    """Return a form as text, each word as it is spelled, broken where a line would be longer than ``width``."""
    return _laid_out(form, 0, width)


def _plain(form: Form) -> Form:
    """The form in the spelling of the tables: brackets, pairs and strings as Hy has them."""
    form = unquoted(form)
    if form.kind == "symbol":
        return form._replace(text=RESPELLED.get(form.text, form.text))
    if form.kind != "call" or not form.items:
        return form._replace(items=tuple(map(_plain, form.items)))
    head = ALIASES.get(form.head, form.head)
    items = list(form.items[1:])
    if head == "let" and items:
        items[0] = Form("list", items=flat_pairs(items[0].items))
    elif head in ("cond", "case") and items[-1].items and items[-1].items[0].text in ELSE:
        first = 0 if head == "cond" else 1
        clauses = [[_key(c.items[0]) if first else c.items[0], c.items[1]] for c in items[first:]]
        items = [*items[:first], *[part for clause in clauses for part in clause]]
    elif head == "fn" and items:
        items[0] = items[0]._replace(kind="list")
    first_item = form.items[0]._replace(text=head) if form.head else form.items[0]
    return form._replace(items=(first_item, *map(_plain, items)))


def _key(form: Form) -> Form:
    """The key of a Scheme clause of case, whose symbols are words."""
    if form.kind == "symbol" and form.text not in ELSE:
        return form._replace(kind="str")
    if form.kind == "call" and form.head != "quote":
        keys = tuple(map(_key, form.items))
        return keys[0] if len(keys) == 1 else form._replace(kind="list", items=keys)
    return form


def _laid_out(form: Form, indent: int, width: int) -> str:
    flat = _on_one_line(form)
    if len(flat) + indent <= width or not form.items:
        return flat
    opening, closing = "()" if form.kind == "call" else "[]"
    head, items = "", form.items
    if form.head:
        head, items = form.head, items[1:]
    first = 1 if form.head in ("let", "case", "fn", "if") else 0
    paired = form.kind == "list" or form.head in ("cond", "case")
    inside = indent + (2 if form.head else 1)
    lines = [head]
    for item in items[:first]:
        lines[0] += f" {_laid_out(item, indent + 2 + len(lines[0]), width)}"
    rest = items[first:]
    step = 2 if paired and len(rest) > 1 else 1
    for i in range(0, len(rest), step):
        line = ""
        for item in rest[i : i + step]:
            line += " " * bool(line) + _laid_out(item, inside + len(line) + bool(line), width)
        lines.append(line)
    if not head:
        lines = lines[1:]
    return opening + f"\n{' ' * inside}".join(lines) + closing


def _on_one_line(form: Form) -> str:
    if form.kind in ("call", "list"):
        opening, closing = "()" if form.kind == "call" else "[]"
        return f"{opening}{' '.join(map(_on_one_line, form.items))}{closing}"
    if form.kind in ("int", "float"):
        return number(form.number)
    if form.kind == "str":
        return literal(form.text)
    return f":{form.text}" if form.kind == "keyword" else form.text

"""How two policies, or two packs, differ: word by word in their canonical print, side by side when much changed.

Layout, comments, documentation and the spelling of a form (``lambda`` or ``fn``, ``let*`` or ``let``, ``'a`` or
``"a"``) do not count.
"""

from __future__ import annotations

import difflib
import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from memlab.kernel.base.arguments import checked
from memlab.kernel.base.display import Displayed, Markup
from memlab.kernel.base.printable import printable
from memlab.kernel.language.forms import ELSE, unquoted
from memlab.kernel.language.policy import Policy
from memlab.kernel.language.reader import ALIASES, RESPELLED, Form, Text, definition, flat_pairs
from memlab.kernel.language.texts import used_helpers
from memlab.kernel.language.writer import WIDTH, lay_out, number
from memlab.kernel.policies import Version
from memlab.subjects.lens.edit import parsed
from memlab.subjects.lens.highlight import PRE, highlight

if TYPE_CHECKING:
    import polars as pl

# The canonical print of a form: one spelling, one layout, no comments. What means the same to the hash prints alike,
# but for the names that let binds.


def print_definition(form: Form, text: Text, *, width: int = WIDTH) -> str:
    """A policy as ``(fn [a b] body)`` or a helper as ``(defn name [a b] body)``, without its document string.

    >>> from memlab.kernel.language.reader import read_forms
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
    return lay_out(_plain(form), indent, width)


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


ChangeKind = Literal["changed", "added", "removed", "parameter", "setting"]

_WORD = re.compile(r'(\s*)("(?:[^"\\]|\\.)*"|[(\[][^\s()\[\]"]*|[)\]]|[^\s()\[\]"]+)')
"""White space and a word: an opening bracket with what follows it, a closing one, an atom."""
_MUCH = 0.6
"""The share of words in common below which the two are shown side by side."""
_NARROW = 56
"""Columns of each side."""
_STYLE = {"del": "background:rgba(248,81,73,.28)", "ins": "background:rgba(46,160,67,.28)"}
"""Translucent, so that they read on a light page and on a dark one."""
_CELL = "text-align:left;vertical-align:top;max-width:34em;overflow-x:auto"
"""Of two sides by each other: a long line scrolls within its own."""
_COLOUR = {"del": "\x1b[31;9m", "ins": "\x1b[32m"}
_RESET = "\x1b[0m"


@dataclass(frozen=True)
class Change:
    """One difference: ``before`` and ``after`` are text of the two sides, None where there is none.

    ``place`` is the slot, ``slot, helper name`` or ``settings``; ``name`` that of a parameter or setting; ``line`` the
    line of the newer canonical print.
    """

    place: str
    kind: ChangeKind
    before: str | None
    after: str | None
    name: str = ""
    line: int | None = None

    def __str__(self) -> str:
        before, after = _short(self.before), _short(self.after)
        where = f"{self.place}:{self.line}" if self.line else self.place
        if self.name:
            line = f"{self.place}: {self.name} {before} -> {after}"
        elif self.before is None or self.after is None:
            line = f"{where}  {'+' if self.before is None else '-'} {after if self.before is None else before}"
        else:
            line = f"{where}  ~ {before} -> {after}"
        return printable(line)


class Piece(NamedTuple):
    """A stretch of two texts merged: on both sides, or on one."""

    kind: Literal["same", "del", "ins"]
    text: str


@dataclass(frozen=True)
class _Block:
    """One policy or helper that differs, as its canonical prints; an empty one is not there."""

    title: str
    before: str
    after: str
    narrow: tuple[str, str]

    @cached_property
    def _words(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]], SequenceMatcher[str]]:
        old, new = _WORD.findall(self.before), _WORD.findall(self.after)
        return (
            old,
            new,
            SequenceMatcher(None, [w for _, w in old], [w for _, w in new], autojunk=False),
        )

    @property
    def rewritten(self) -> bool:
        """Whether most of it is new, so that a merged text would be a mash."""
        return bool(self.before and self.after) and self._words[2].ratio() < _MUCH

    def pieces(self) -> Iterator[Piece]:
        """The two merged, in the layout of the newer."""
        old, new, matcher = self._words
        for tag, i, i_end, j, j_end in matcher.get_opcodes():
            if tag == "delete":
                yield Piece("del", old[i][0] + _joined(old[i:i_end]))
                continue
            yield Piece("same", new[j][0])
            if tag == "replace":
                yield Piece("del", _joined(old[i:i_end]))
            yield Piece("same" if tag == "equal" else "ins", _joined(new[j:j_end]))

    def changes(self) -> Iterator[Change]:
        """What differs, in the order of the text; once for the whole where most of it is new."""
        if self.rewritten or not (self.before and self.after):
            kind: ChangeKind = "changed" if self.rewritten else "added" if self.after else "removed"
            yield Change(self.title, kind, self.before or None, self.after or None)
            return
        old, new, matcher = self._words
        for tag, i, i_end, j, j_end in matcher.get_opcodes():
            if tag == "equal" or all(word in ")]" for _, word in (*old[i:i_end], *new[j:j_end])):
                continue  # a closing bracket goes with the opening one
            kind = "changed" if tag == "replace" else "added" if tag == "insert" else "removed"
            before, after = (
                _balanced(_joined(part)) if part else None for part in (old[i:i_end], new[j:j_end])
            )
            line = 1 + "".join(lead for lead, _ in new[: j + 1]).count("\n")
            yield Change(self.title, kind, before, after, line=line)

    def sides(self) -> Iterator[tuple[bool, str, str]]:
        """The lines of both sides beside one another, and whether they are the same."""
        left, right = (text.split("\n") for text in self.narrow)
        for tag, i, i_end, j, j_end in SequenceMatcher(
            None, left, right, autojunk=False
        ).get_opcodes():
            for n in range(max(i_end - i, j_end - j)):
                a = left[i + n] if i + n < i_end else ""
                yield tag == "equal", a, right[j + n] if j + n < j_end else ""


@dataclass(frozen=True, repr=False)
class FormDiff(Displayed):
    """What differs, true when anything does. ``repr`` lists the changes; ``text`` and notebooks show them in place."""

    before: str
    """What the older side is called."""
    after: str
    changes: tuple[Change, ...]
    _blocks: tuple[_Block, ...] = field(default=(), compare=False)

    def __bool__(self) -> bool:
        return bool(self.changes)

    @property
    def frame(self) -> pl.DataFrame:
        """One row a change: place, kind, before, after, name, line."""
        import polars as pl

        texts = dict.fromkeys(("place", "kind", "before", "after", "name"), pl.String)
        rows = [(c.place, c.kind, c.before, c.after, c.name, c.line) for c in self.changes]
        return pl.DataFrame(rows, schema={**texts, "line": pl.Int64}, orient="row")

    def __repr__(self) -> str:
        return printable("\n".join([self._title, *(f"  {change}" for change in self.changes)]))

    @checked
    def text(self, *, color: bool = False) -> str:
        """The canonical print with ``[-removed-]`` and ``{+added+}`` words in it; with ``color`` in red and green.

        What is mostly new is shown beside what it was.
        """
        lines = [self._title, *[printable(str(c)) for c in self.changes if c.name]]
        for block in self._blocks:
            lines += ["", f"; {printable(block.title)}"]
            if block.rewritten:
                lines += [_beside(*side, color) for side in block.sides()]
            else:
                lines.append("".join(_marked(piece, color) for piece in block.pieces()))
        return "\n".join(lines)

    def _display(self) -> object:
        parts: list[object] = [
            Markup("<b>{}</b>").format(self._title),
            [str(c) for c in self.changes if c.name],
        ]
        for block in self._blocks:
            parts.append(block.title)
            if block.rewritten:
                cells = "".join(
                    f'<td style="{_CELL}">{highlight(side)}</td>' for side in block.narrow
                )
                parts.append(Markup(f"<table><tr>{cells}</tr></table>"))
            else:
                source = "".join(_tagged(piece) for piece in block.pieces())
                parts.append(Markup(f'<pre style="{PRE}">{source}</pre>'))
        return parts

    @property
    def _title(self) -> str:
        count = len(self.changes)
        how = "no difference" if not count else f"{count} change{'s' if count > 1 else ''}"
        return printable(f"{self.before} -> {self.after}: {how}")


@dataclass(frozen=True)
class PolicyDiff(Displayed):
    """How two versions differ. ``forms`` lists words, parameter values and helpers, ``lines`` compares the texts.

    ``verdict`` is a sentence when the source is the same and something else differs, or when nothing does.
    """

    before: Version
    after: Version

    @cached_property
    def forms(self) -> FormDiff:
        """Which words of the canonical print, parameter values and helpers differ."""
        return diff_policies(self.before.policy, self.after.policy)

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """A unified diff of the texts, comments and layout included."""
        old, new = (version.source.splitlines() for version in (self.before, self.after))
        return tuple(difflib.unified_diff(old, new, str(self.before), str(self.after), lineterm=""))

    @property
    def verdict(self) -> str:
        """What the texts alone do not show; empty when they show it all."""
        if not self:
            only = (
                ": layout, comments, documentation and bound names do not count"
                if self.lines
                else ""
            )
            return f"{self.before} and {self.after} are the same policy{only}."
        if self.before.policy.source_hash != self.after.policy.source_hash:
            return ""
        what = "; ".join(dict.fromkeys(str(c) if c.name else c.place for c in self.forms.changes))
        return f"The source is the same. They differ in {what}."

    def __bool__(self) -> bool:
        return self.before.policy.hash != self.after.policy.hash

    def __repr__(self) -> str:
        return printable(
            "\n\n".join(part for part in (self.verdict, self.forms.text() if self else "") if part)
        )

    def _display(self) -> object:
        return self.verdict or None, self.forms if self else None


class _Pack(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def hash(self) -> str: ...
    @property
    def policies(self) -> Mapping[str, Policy]: ...
    @property
    def settings(self) -> Mapping[str, float | bool | str]: ...


def diff_policies(before: Policy, after: Policy) -> FormDiff:
    """Which words, parameter values and helpers differ from one policy to another.

    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> slot = Signature("recall-score", [Input("x"), Input("y")])
    >>> old = compile_policy("(fn [x y] (+ (* 0.4 x) y))", slot)
    >>> new = compile_policy("(fn [x y] (+ (* 0.5 x) y 1))", slot)
    >>> [(c.kind, c.before, c.after) for c in diff_policies(old, new).changes]
    [('changed', '0.4', '0.5'), ('added', None, '1')]
    """
    changes, blocks = _compare(before.signature.slot, before, after)
    return FormDiff(_named(before), _named(after), tuple(changes), tuple(blocks))


def diff_packs(before: _Pack, after: _Pack) -> FormDiff:
    """Which settings and policies differ from one complete pack to another; a slot that only one side has counts as
    added or removed.
    """
    changes: list[Change] = []
    blocks: list[_Block] = []
    for name in dict.fromkeys((*before.settings, *after.settings)):
        old, new = before.settings.get(name), after.settings.get(name)
        if old != new or type(old) is not type(new):
            changes.append(Change("settings", "setting", _value(old), _value(new), name))
    for slot in dict.fromkeys((*before.policies, *after.policies)):
        found, shown = _compare(slot, before.policies.get(slot), after.policies.get(slot))
        changes += found
        blocks += shown
    return FormDiff(_named(before), _named(after), tuple(changes), tuple(blocks))


def _compare(
    place: str, before: Policy | None, after: Policy | None
) -> tuple[list[Change], list[_Block]]:
    """The changes from one policy to another, either of which may be missing, and the texts that show them."""
    if before is not None and after is not None and before.hash == after.hash:
        return [], []
    changes: list[Change] = []
    params = [{} if side is None else side.params for side in (before, after)]
    for name in dict.fromkeys((*params[0], *params[1])):
        values = [side[name].value if name in side else None for side in params]
        defaults = [side[name].default if name in side else None for side in params]
        # another default shows in the source
        if values[0] != values[1] and values != defaults:
            changes.append(Change(place, "parameter", _value(values[0]), _value(values[1]), name))
    texts = [_prints(place, side) for side in (before, after)]
    blocks = []
    for title in dict.fromkeys((*texts[0], *texts[1])):
        nothing = ("", "")
        old, new = (side.get(title, nothing) for side in texts)
        # a helper that only one side calls is seen where it is called
        if old[0] != new[0] and (title == place or (old[0] and new[0])):
            blocks.append(_Block(title, old[0], new[0], (old[1], new[1])))
    return [*changes, *(change for block in blocks for change in block.changes())], blocks


def _prints(place: str, policy: Policy | None) -> dict[str, tuple[str, str]]:
    """The canonical prints of a policy and of the helpers that it calls, in two widths."""
    if policy is None:
        return {}
    whole = parsed(policy)
    texts = {place: (whole.form, whole.text)}
    for item in sorted(used_helpers([whole.parts.body], whole.helpers), key=lambda item: item.name):
        texts[f"{place}, helper {item.name}"] = item.form, item.text
    return {
        title: (print_definition(form, text), print_definition(form, text, width=_NARROW))
        for title, (form, text) in texts.items()
    }


def _joined(words: list[tuple[str, str]]) -> str:
    """Words with the white space between them."""
    return words[0][1] + "".join(lead + word for lead, word in words[1:]) if words else ""


def _balanced(text: str) -> str:
    """A stretch of a print without closing brackets too many, and with those that it lacks."""
    missing: list[str] = []
    for word in _WORD.findall(text):
        if word[1][0] in "([":
            missing.append(")" if word[1][0] == "(" else "]")
        elif word[1] in ")]" and missing:
            missing.pop()
        elif word[1] in ")]":
            return text.rstrip(")]").rstrip()
    return text + "".join(reversed(missing))


def _short(text: str | None, width: int = 72) -> str:
    flat = "none" if text is None else printable(" ".join(text.split()))
    return flat if len(flat) <= width else f"{flat[: width - 3]}..."


def _named(side: Policy | _Pack) -> str:
    return f"{side.name} [{side.hash[:12]}]"


def _value(value: float | bool | str | None) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else number(float(value))


def _marked(piece: Piece, color: bool) -> str:
    text = printable(piece.text)
    if piece.kind == "same" or not text:
        return text
    if color:
        return f"{_COLOUR[piece.kind]}{text}{_RESET}"
    return f"[-{text}-]" if piece.kind == "del" else f"{{+{text}+}}"


def _beside(same: bool, left: str, right: str, color: bool) -> str:
    """A line of both sides."""
    a, b = printable(left).ljust(_NARROW), printable(right)
    if color and not same:
        a, b = f"\x1b[31m{a}{_RESET}", f"\x1b[32m{b}{_RESET}"
    return f"{a} {' ' if same else '|'} {b}".rstrip()


def _tagged(piece: Piece) -> str:
    text = html.escape(piece.text)
    return (
        text
        if piece.kind == "same" or not text
        else f'<{piece.kind} style="{_STYLE[piece.kind]}">{text}</{piece.kind}>'
    )

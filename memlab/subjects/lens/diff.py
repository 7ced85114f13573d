"""The differences between two policies or packs, word by word in their canonical texts.

Layout, comments, documentation and the spelling of a form (``lambda`` or ``fn``, ``let*`` or ``let``, ``'a`` or
``"a"``) are ignored. Texts with few common words are shown side by side.
"""

from __future__ import annotations

import difflib
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from memlab.kernel.base.arguments import checked
from memlab.kernel.base.display import Displayed, Markup
from memlab.kernel.base.printable import count_of, printable
from memlab.kernel.language.forms import ELSE, unquoted
from memlab.kernel.language.macros import MARK
from memlab.kernel.language.policy import Policy
from memlab.kernel.language.reader import ALIASES, RESPELLED, Form, Text, definition, flat_pairs
from memlab.kernel.language.texts import used_helpers
from memlab.kernel.language.writer import WIDTH, lay_out, number
from memlab.kernel.policies import Pack, Version
from memlab.subjects.lens.edit import parsed
from memlab.subjects.lens.highlight import PRE, highlight

if TYPE_CHECKING:
    import polars as pl

# The canonical text of a form has one spelling, one layout and no comments. Forms with the same hash have the same
# canonical text, except for names bound by let.


def print_definition(form: Form, text: Text, *, width: int = WIDTH) -> str:
    """Return the canonical text of a policy or helper.

    The text of a helper is ``(defn name [a b] body)``. Documentation strings are left out.

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
    """Return a form as text; its first line starts ``indent`` characters from the left.

    Lines that are longer than ``width`` are broken.
    """
    return lay_out(_plain(form), indent, width)


def _plain(form: Form) -> Form:
    """Return a form with names, brackets, pairs and quotes in canonical spelling."""
    # The spellings of Scheme and Hy differ in the pairs of let, the clauses of cond and case, and the brackets of fn.
    form = unquoted(form)
    if form.kind == "symbol":
        # A name that a macro binds is shown without its mark, whose number depends on other calls.
        name = form.text.partition(MARK)[0]
        return form._replace(text=RESPELLED.get(name, name))
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
    """Return the key of a Scheme ``case`` clause, in which symbols become strings."""
    if form.kind == "symbol" and form.text not in ELSE:
        return form._replace(kind="str")
    if form.kind == "call" and form.head != "quote":
        keys = tuple(map(_key, form.items))
        return keys[0] if len(keys) == 1 else form._replace(kind="list", items=keys)
    return form


ChangeKind = Literal["changed", "added", "removed", "parameter", "setting"]

# The pattern of a word of a canonical text, with the white space before it.
_WORD = re.compile(r'(\s*)("(?:[^"\\]|\\.)*"|[(\[][^\s()\[\]"]*|[)\]]|[^\s()\[\]"]+)')
"""A word is an opening bracket with the name after it, a closing bracket, or an atom."""
_REWRITTEN = 0.6
"""The share of common words below which two texts are shown side by side, because a merged text would be unreadable."""
_NARROW = 56
"""The width, in characters, of each side of a side-by-side diff."""
_STYLE = {"del": "background:rgba(248,81,73,.28)", "ins": "background:rgba(46,160,67,.28)"}
"""Translucent colours, which are readable on a light and on a dark page."""
_CELL = "text-align:left;vertical-align:top;max-width:34em;overflow-x:auto"
"""The HTML style of each side of a side-by-side diff. Long lines scroll."""
# Colours for a terminal: removed words are red and struck through, added words are green.
_COLOUR = {"del": "\x1b[31;9m", "ins": "\x1b[32m"}
_RESET = "\x1b[0m"


@dataclass(frozen=True)
class Change:
    """One difference between two policies or packs.

    Attributes
    ----------
    place
        The slot, "slot, helper name" or "settings", in which the difference is.
    kind
        "changed", "added", "removed", "parameter" or "setting".
    before, after
        The text before and after the change, or None if it is absent.
    name
        The name of a parameter or setting.
    line
        The line number in the newer canonical text, or None.

    Examples
    --------
    >>> print(Change("recall-score", "changed", "0.4", "0.5", line=2))
    recall-score:2  ~ 0.4 -> 0.5
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
    """A piece of two merged texts, which is on both sides, removed or added."""

    kind: Literal["same", "del", "ins"]
    text: str


@dataclass(frozen=True)
class _Block:
    """One policy or helper that differs: its canonical texts before and after, "" if absent."""

    title: str
    before: str
    after: str
    narrow: tuple[str, str]

    @cached_property
    def _words(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]], SequenceMatcher[str]]:
        """The words of both texts with preceding white space, and the alignment of the words."""
        old, new = _WORD.findall(self.before), _WORD.findall(self.after)
        return (
            old,
            new,
            SequenceMatcher(None, [w for _, w in old], [w for _, w in new], autojunk=False),
        )

    @property
    def rewritten(self) -> bool:
        """Whether the two texts share few words."""
        return bool(self.before and self.after) and self._words[2].ratio() < _REWRITTEN

    def pieces(self) -> Iterator[Piece]:
        """Yield unchanged, deleted and inserted pieces in the layout of the newer text."""
        old, new, matcher = self._words
        for tag, i, i_end, j, j_end in matcher.get_opcodes():
            if tag == "delete":
                yield Piece("del", old[i][0] + _join_words(old[i:i_end]))
                continue
            yield Piece("same", new[j][0])
            if tag == "replace":
                yield Piece("del", _join_words(old[i:i_end]))
            yield Piece("same" if tag == "equal" else "ins", _join_words(new[j:j_end]))

    def changes(self) -> Iterator[Change]:
        """Yield the changes in the order of the text; a rewritten text is one change."""
        if self.rewritten or not (self.before and self.after):
            kind: ChangeKind = "changed" if self.rewritten else "added" if self.after else "removed"
            yield Change(self.title, kind, self.before or None, self.after or None)
            return
        old, new, matcher = self._words
        for tag, i, i_end, j, j_end in matcher.get_opcodes():
            if tag == "equal" or all(word in ")]" for _, word in (*old[i:i_end], *new[j:j_end])):
                continue  # Closing brackets change whenever opening brackets do, so they are not reported.
            kind = "changed" if tag == "replace" else "added" if tag == "insert" else "removed"
            before, after = (
                _balanced(_join_words(part)) if part else None
                for part in (old[i:i_end], new[j:j_end])
            )
            line = 1 + "".join(lead for lead, _ in new[: j + 1]).count("\n")
            yield Change(self.title, kind, before, after, line=line)

    def sides(self) -> Iterator[tuple[bool, str, str]]:
        """Yield pairs of lines from both texts, and whether the two lines are equal."""
        left, right = (text.split("\n") for text in self.narrow)
        for tag, i, i_end, j, j_end in SequenceMatcher(
            None, left, right, autojunk=False
        ).get_opcodes():
            for n in range(max(i_end - i, j_end - j)):
                a = left[i + n] if i + n < i_end else ""
                yield tag == "equal", a, right[j + n] if j + n < j_end else ""


@dataclass(frozen=True, repr=False)
class FormDiff(Displayed):
    """The differences between two policies or packs; False if there are none.

    ``repr`` lists the changes. ``text`` and notebooks show the changes within the source.

    Attributes
    ----------
    before, after
        The names of both sides.
    changes
        The differences.

    Examples
    --------
    >>> lab = memlab.open()
    >>> bool(diff_packs(lab.policies.pack, lab.policies.pack))
    False
    """

    before: str
    after: str
    changes: tuple[Change, ...]
    _blocks: tuple[_Block, ...] = field(default=(), compare=False)

    def __bool__(self) -> bool:
        return bool(self.changes)

    @property
    def frame(self) -> pl.DataFrame:
        """A frame with one row per change.

        The columns are ``place``, ``kind``, ``before``, ``after``, ``name`` and ``line``.
        """
        import polars as pl

        texts = dict.fromkeys(("place", "kind", "before", "after", "name"), pl.String)
        rows = [(c.place, c.kind, c.before, c.after, c.name, c.line) for c in self.changes]
        return pl.DataFrame(rows, schema={**texts, "line": pl.Int64}, orient="row")

    def __repr__(self) -> str:
        return printable("\n".join([self._title, *(f"  {change}" for change in self.changes)]))

    @checked
    def text(self, *, color: bool = False) -> str:
        """Return the canonical texts, with changes as ``[-removed-]`` and ``{+added+}``.

        If a policy was rewritten, both texts are shown side by side.

        Parameters
        ----------
        color
            Whether to mark words with red and green for a terminal, instead of with brackets.

        Returns
        -------
        str
            The text, with one section for each policy or helper that differs.
        """
        lines = [self._title, *[printable(str(c)) for c in self.changes if c.name]]
        for block in self._blocks:
            lines += ["", f"; {printable(block.title)}"]
            if block.rewritten:
                lines += [_join_sides(*side, color) for side in block.sides()]
            else:
                lines.append("".join(_mark_text(piece, color) for piece in block.pieces()))
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
                source = "".join(_mark_html(piece) for piece in block.pieces())
                parts.append(Markup(f'<pre style="{PRE}">{source}</pre>'))
        return parts

    @property
    def _title(self) -> str:
        count = count_of(len(self.changes), "change") if self.changes else "no difference"
        return printable(f"{self.before} -> {self.after}: {count}")


@dataclass(frozen=True)
class PolicyDiff(Displayed):
    """The differences between two versions of a policy; true if their hashes differ.

    ``lab.policies.diff`` returns it.

    Attributes
    ----------
    before, after
        The two versions.

    Examples
    --------
    >>> lab = memlab.open()
    >>> bool(lab.policies.diff("recall-score", 1, 1))
    False
    """

    before: Version
    after: Version

    @cached_property
    def forms(self) -> FormDiff:
        """The differences in canonical words, parameter values and helpers."""
        return diff_policies(self.before.policy, self.after.policy)

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """A unified diff of the texts, including comments and layout."""
        old, new = (version.source.splitlines() for version in (self.before, self.after))
        return tuple(difflib.unified_diff(old, new, str(self.before), str(self.after), lineterm=""))

    @property
    def verdict(self) -> str:
        """One sentence about differences outside the source, or "" if there are none."""
        if not self:
            only = (
                ": layout, comments, documentation and bound names do not count"
                if self.lines
                else ""
            )
            return f"{self.before} and {self.after} are the same policy{only}."
        if self.before.policy.source_hash != self.after.policy.source_hash:
            return ""
        differences = "; ".join(
            dict.fromkeys(str(c) if c.name else c.place for c in self.forms.changes)
        )
        return f"The source is the same. They differ in {differences}."

    def __bool__(self) -> bool:
        return self.before.policy.hash != self.after.policy.hash

    def __repr__(self) -> str:
        return printable(
            "\n\n".join(part for part in (self.verdict, self.forms.text() if self else "") if part)
        )

    def _display(self) -> object:
        return self.verdict or None, self.forms if self else None


def diff_policies(before: Policy, after: Policy) -> FormDiff:
    """Return the differences between two policies in words, parameters and helpers.

    Parameters
    ----------
    before, after
        The policies.

    Returns
    -------
    FormDiff
        The differences.

    Examples
    --------
    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> slot = Signature("recall-score", [Input("x"), Input("y")])
    >>> old = compile_policy("(fn [x y] (+ (* 0.4 x) y))", slot)
    >>> new = compile_policy("(fn [x y] (+ (* 0.5 x) y 1))", slot)
    >>> [(c.kind, c.before, c.after) for c in diff_policies(old, new).changes]
    [('changed', '0.4', '0.5'), ('added', None, '1')]
    """
    changes, blocks = _compare_forms(before.signature.slot, before, after)
    return FormDiff(_describe_side(before), _describe_side(after), tuple(changes), tuple(blocks))


def diff_packs(before: Pack, after: Pack) -> FormDiff:
    """Return the differences between the settings and policies of two complete packs.

    A slot that only one of the packs has is reported as added or removed.

    Parameters
    ----------
    before, after
        The packs.

    Returns
    -------
    FormDiff
        The differences.

    Examples
    --------
    >>> from memlab.kernel.policies import load_pack
    >>> changes = diff_packs(load_pack("memlab"), load_pack("companion-plus")).changes
    >>> changes[0].place
    'settings'
    """
    changes: list[Change] = []
    blocks: list[_Block] = []
    for name in dict.fromkeys((*before.settings, *after.settings)):
        old, new = before.settings.get(name), after.settings.get(name)
        if old != new or type(old) is not type(new):
            changes.append(Change("settings", "setting", _value(old), _value(new), name))
    for slot in dict.fromkeys((*before.policies, *after.policies)):
        slot_changes, slot_blocks = _compare_forms(
            slot, before.policies.get(slot), after.policies.get(slot)
        )
        changes += slot_changes
        blocks += slot_blocks
    return FormDiff(_describe_side(before), _describe_side(after), tuple(changes), tuple(blocks))


def _compare_forms(
    slot: str, before: Policy | None, after: Policy | None
) -> tuple[list[Change], list[_Block]]:
    """Return the changes between two policies, and the blocks of text that differ."""
    if before is not None and after is not None and before.hash == after.hash:
        return [], []
    changes: list[Change] = []
    params = [{} if side is None else side.params for side in (before, after)]
    for name in dict.fromkeys((*params[0], *params[1])):
        values = [side[name].value if name in side else None for side in params]
        defaults = [side[name].default if name in side else None for side in params]
        # A changed default is part of the source, which is compared below.
        if values[0] != values[1] and values != defaults:
            changes.append(Change(slot, "parameter", _value(values[0]), _value(values[1]), name))
    texts = [_print_texts(slot, side) for side in (before, after)]
    blocks = []
    for title in dict.fromkeys((*texts[0], *texts[1])):
        nothing = ("", "")
        old, new = (side.get(title, nothing) for side in texts)
        # A helper that only one side calls is visible in the text that calls it, so it is not reported separately.
        whole = title == slot or ", inherited" in title
        if old[0] != new[0] and (whole or (old[0] and new[0])):
            blocks.append(_Block(title, old[0], new[0], (old[1], new[1])))
    return [*changes, *(change for block in blocks for change in block.changes())], blocks


def _print_texts(slot: str, policy: Policy | None) -> dict[str, tuple[str, str]]:
    """Return the canonical text of a policy and of each helper by title, in two line widths."""
    if policy is None:
        return {}
    whole = parsed(policy)
    texts = {slot: (whole.form, whole.text)}
    for item in sorted(used_helpers([whole.parts.body], whole.helpers), key=lambda item: item.name):
        texts[f"{slot}, helper {item.name}"] = item.form, item.text
    prints = {
        title: (print_definition(form, text), print_definition(form, text, width=_NARROW))
        for title, (form, text) in texts.items()
    }
    # The parent's policy is part of the version, so a diff of two parents shows it.
    return prints | (
        {} if policy.inherited is None else _print_texts(f"{slot}, inherited", policy.inherited)
    )


def _join_words(words: list[tuple[str, str]]) -> str:
    """Join words with the white space that precedes them in the text."""
    return words[0][1] + "".join(lead + word for lead, word in words[1:]) if words else ""


def _balanced(text: str) -> str:
    """Close the open brackets of a piece of source, or remove closing brackets at its end that were not opened."""
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
    """Return a text on one line, cut at ``width`` characters, or "none" for None."""
    flat = "none" if text is None else printable(" ".join(text.split()))
    return flat if len(flat) <= width else f"{flat[: width - 3]}..."


def _describe_side(side: Policy | Pack) -> str:
    """Return the name of a policy or pack with the first digits of its hash."""
    return f"{side.name} [{side.hash[:12]}]"


def _value(value: float | bool | str | None) -> str | None:
    """Return the value of a setting or parameter as text; a missing value stays None."""
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else number(float(value))


def _mark_text(piece: Piece, color: bool) -> str:
    """Return a piece of a diff as text, with signs or colours if the piece changed."""
    text = printable(piece.text)
    if piece.kind == "same" or not text:
        return text
    if color:
        return f"{_COLOUR[piece.kind]}{text}{_RESET}"
    return f"[-{text}-]" if piece.kind == "del" else f"{{+{text}+}}"


def _join_sides(same: bool, left: str, right: str, color: bool) -> str:
    """Return one line of a side-by-side diff for a terminal."""
    a, b = printable(left).ljust(_NARROW), printable(right)
    if color and not same:
        a, b = f"\x1b[31m{a}{_RESET}", f"\x1b[32m{b}{_RESET}"
    return f"{a} {' ' if same else '|'} {b}".rstrip()


def _mark_html(piece: Piece) -> str:
    """Return a piece of a diff as HTML, with a colour if the piece changed."""
    text = html.escape(piece.text)
    return (
        text
        if piece.kind == "same" or not text
        else f'<{piece.kind} style="{_STYLE[piece.kind]}">{text}</{piece.kind}>'
    )

"""How two policies, or two packs, differ: as a list, as a frame, and marked in the source.

Layout, comments, documentation, the spelling of a form (``lambda`` or ``fn``, ``let*`` or ``let``, ``'a`` or ``"a"``)
and the names that let binds do not count. ``_match`` lays the trees side by side.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from memlab.language._policy import Policy
from memlab.language.edits._match import Change, Mark, compared
from memlab.language.edits._parsed import known_helpers, parsed, used_helpers
from memlab.language.edits._shape import Program
from memlab.language.insight._source import number
from memlab.printable import printable

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Change", "FormDiff", "diff_packs", "diff_policies"]

_STYLE = {
    "del": "background:rgba(248,81,73,.28);color:inherit;text-decoration:line-through",
    "ins": "background:rgba(46,160,67,.28);color:inherit;text-decoration:none",
}
"""Translucent, so that they read on a light page and on a dark one."""
_COLOUR = {"del": "\x1b[31;9m", "ins": "\x1b[32m", "bold": "\x1b[1m"}
_RESET = "\x1b[0m"
_SIGN = {"added": "+", "removed": "-"}


class Piece(NamedTuple):
    """A stretch of the merged source."""

    kind: Literal["same", "del", "ins"]
    text: str


class _Block(NamedTuple):
    """The source of one policy or helper, with what changed in it."""

    title: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, repr=False)
class FormDiff:
    """What differs, true when anything does. ``repr`` lists the changes; ``text`` and notebooks mark them in the newer
    source.
    """

    before: str
    """What the older side is called."""
    after: str
    changes: tuple[Change, ...]
    _blocks: tuple[_Block, ...] = field(default=(), compare=False)

    def __bool__(self) -> bool:
        return bool(self.changes)

    @property
    def frame(self) -> pl.DataFrame:
        """One row a change: place, kind, path, before, after, within, line, column."""
        import polars as pl

        texts = ("place", "kind", "path", "before", "after", "within")
        schema: dict[str, pl.DataType] = dict.fromkeys(texts, pl.String())
        schema |= {"path": pl.List(pl.Int64), "line": pl.Int64(), "column": pl.Int64()}
        rows = [(c.place, c.kind, list(c.path), c.before, c.after, c.within, c.line, c.column) for c in self.changes]
        return pl.DataFrame(rows, schema=schema, orient="row")

    def __repr__(self) -> str:
        lines = [self._title(), *(f"  {_told(change)}" for change in self.changes)]
        return printable("\n".join(lines))

    def text(self, *, color: bool = False) -> str:
        """The newer source with ``[-what went-]`` and ``{+what came+}`` in it; with ``color`` in red and green."""
        lines = [_painted("bold", self._title(), color)]
        lines += [_told(change) for change in self._beside()]
        for block in self._blocks:
            lines += ["", f"; {printable(block.title)}", "".join(_inline(piece, color) for piece in block.pieces)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [html.escape(_told(change)) for change in self._beside()]
        parts = [f"<div><b>{html.escape(self._title())}</b></div>", *(f"<div>{row}</div>" for row in rows)]
        for block in self._blocks:
            source = "".join(_tag(piece) for piece in block.pieces)
            parts.append(f'<div>{html.escape(block.title)}</div><pre style="line-height:1.35">{source}</pre>')
        return "".join(parts)

    def _beside(self) -> list[Change]:
        """The changes that no source shows."""
        return [change for change in self.changes if change.kind in ("parameter", "setting")]

    def _title(self) -> str:
        count = len(self.changes)
        how = "no difference" if not count else f"{count} change{'s' if count > 1 else ''}"
        return printable(f"{self.before} -> {self.after}: {how}")


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
    """Which forms, arguments, parameter values and helpers differ from one policy to another.

    >>> from memlab.language import Input, Signature, compile_policy
    >>> slot = Signature("recall-score", [Input("x"), Input("y")])
    >>> old = compile_policy("(fn [x y] (+ (* 0.4 x) y))", slot)
    >>> new = compile_policy("(fn [x y] (+ (* 0.5 x) y 1))", slot)
    >>> [(c.kind, c.before, c.after) for c in diff_policies(old, new).changes]
    [('constant', '0.4', '0.5'), ('added', None, '1')]
    """
    changes, blocks = _policies(before.signature.slot, before, after)
    return FormDiff(_called(before.name, before.hash), _called(after.name, after.hash), tuple(changes), tuple(blocks))


def diff_packs(before: _Pack, after: _Pack) -> FormDiff:
    """Which settings and policies differ from one complete pack to another; a slot that only one side has counts as
    added or removed.
    """
    changes: list[Change] = []
    blocks: list[_Block] = []
    for name in dict.fromkeys((*before.settings, *after.settings)):
        old, new = before.settings.get(name), after.settings.get(name)
        if old != new or type(old) is not type(new):
            changes.append(Change("settings", "setting", (), _value(old), _value(new), name))
    for slot in dict.fromkeys((*before.policies, *after.policies)):
        left, right = before.policies.get(slot), after.policies.get(slot)
        if left is None and right is not None:
            changes.append(Change(slot, "added", (), None, right.source))
            blocks.append(_Block(slot, (Piece("ins", right.source),)))
        elif left is not None and right is None:
            changes.append(Change(slot, "removed", (), left.source, None))
            blocks.append(_Block(slot, (Piece("del", left.source),)))
        elif left is not None and right is not None and left.hash != right.hash:
            found, shown = _policies(slot, left, right)
            changes += found
            blocks += shown
    return FormDiff(_called(before.name, before.hash), _called(after.name, after.hash), tuple(changes), tuple(blocks))


def _policies(place: str, before: Policy, after: Policy) -> tuple[list[Change], list[_Block]]:
    old, new = parsed(before), parsed(after)
    names = [tuple(a.text for a in side.parts.arguments) for side in (old, new)]
    changes = [Change(place, "argument", (), name, None) for name in names[0] if name not in names[1]]
    changes += [Change(place, "argument", (), None, name) for name in names[1] if name not in names[0]]
    for name in dict.fromkeys((*before.params, *after.params)):
        values = [side.params[name].value if name in side.params else None for side in (before, after)]
        defaults = [side.params[name].default if name in side.params else None for side in (before, after)]
        # another default shows in the source
        if values[0] != values[1] and values != defaults:
            changes.append(Change(place, "parameter", (), _value(values[0]), _value(values[1]), name))
    marks: list[Mark] = []
    if before.source_hash != after.source_hash:
        found, marks = compared(place, Program(old.parts.body, before.source), Program(new.parts.body, after.source))
        changes += found
    marks += [Mark(a.start, a.stop, "") for a in new.parts.arguments if a.text not in names[0]]
    end = new.arguments.stop - 1
    marks += [Mark(end, end, f" {name}") for name in names[0] if name not in names[1]]
    # helpers in front of the newer policy are shown with their own changes below
    pieces = _merged(after.source, sorted(marks, key=lambda mark: mark[:2]), new.form.start, new.form.stop)
    blocks = [_Block(place, tuple(pieces))] if marks else []
    helpers = []
    for side, policy in ((old, before), (new, after)):
        helpers.append({item.name: item for item in used_helpers([side.parts.body], known_helpers(policy))})
    for name in sorted(helpers[0].keys() & helpers[1].keys()):
        left_helper, right_helper = helpers[0][name], helpers[1][name]
        if left_helper.hash == right_helper.hash:
            continue
        where = f"{place}, helper {name}"
        sides = [Program(item.body, item.text.source, item.arguments) for item in (left_helper, right_helper)]
        inner, marks = compared(where, sides[0], sides[1])
        # without inner changes the arguments alone differ, in number
        given = [" ".join(item.arguments) for item in (left_helper, right_helper)]
        changes += inner or [Change(where, "argument", (), given[0], given[1])]
        form = right_helper.form
        blocks.append(_Block(where, tuple(_merged(right_helper.text.source, marks, form.start, form.stop))))
    return changes, blocks


def _merged(source: str, marks: list[Mark], start: int, stop: int) -> Iterator[Piece]:
    """The newer text from start to stop, with what the marks say."""
    at = start
    for mark in marks:
        if mark.start > at:
            yield Piece("same", source[at : mark.start])
        if mark.before:
            yield Piece("del", mark.before)
        if mark.stop > mark.start:
            yield Piece("ins", source[mark.start : mark.stop])
        at = max(at, mark.stop)
    yield Piece("same", source[at:stop])


def _told(change: Change) -> str:
    """A change in one line."""
    before, after = (None if side is None else _short(side) for side in (change.before, change.after))
    if change.kind in ("setting", "parameter"):
        return f"{change.place}: {change.within} {before} -> {after}"
    where = f"{change.place}:{change.line}:{change.column}" if change.line else change.place
    what = {"argument": "argument "}.get(change.kind, "")
    if before is None or after is None:
        text = f"{'+' if before is None else '-'} {what}{after if before is None else before}"
    elif change.kind == "moved":
        text = f"~ {after} moved"
    else:
        text = f"~ {before} -> {after}"
    return printable(f"{where}  {text}{f'   in {_short(change.within)}' if change.within else ''}")


def _short(text: str, width: int = 72) -> str:
    flat = printable(" ".join(text.split()))
    return flat if len(flat) <= width else f"{flat[: width - 3]}..."


def _called(name: str, hash: str) -> str:
    return f"{name} [{hash[:12]}]"


def _value(value: float | bool | str | None) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else number(float(value))


def _painted(style: str, text: str, color: bool) -> str:
    return f"{_COLOUR[style]}{text}{_RESET}" if color else text


def _inline(piece: Piece, color: bool) -> str:
    text = printable(piece.text)
    if piece.kind == "same":
        return text
    if color:
        return _painted(piece.kind, text, True)
    return f"[-{text}-]" if piece.kind == "del" else f"{{+{text}+}}"


def _tag(piece: Piece) -> str:
    text = html.escape(piece.text)
    return text if piece.kind == "same" else f'<{piece.kind} style="{_STYLE[piece.kind]}">{text}</{piece.kind}>'

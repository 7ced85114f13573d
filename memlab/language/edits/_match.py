"""Two programs laid side by side: the cheapest way to turn the forms of one into those of the other.

One form matches another by its items, in order (Selkow's tree edit distance), or as a whole inside the other, which
shows ``x`` becoming ``(clamp x 0 1)`` as a wrap rather than as a new form. Equal subtrees are known by interned keys,
and the number of pairs that are looked at is bounded: beyond it forms match as wholes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from memlab.language.edits._shape import Keys, Program, Side, Tree, pair_binders

__all__ = ["Change", "ChangeKind", "Mark", "compared"]

ChangeKind = Literal[
    "constant", "changed", "added", "removed", "moved", "wrapped", "unwrapped", "argument", "parameter", "setting"
]

_PAIRS = 40_000
"""Pairs of forms that are compared: 0.3 s at most. Two policies of 300 forms need 2,000."""
_WIDE = 2_500
"""Cells of one alignment of items; wider ones go by equal runs."""


@dataclass(frozen=True)
class Change:
    """One difference. ``path`` leads to it in the newer body, for what was removed in the older one; ``before`` and
    ``after`` are text of the two sides, None where there is none; ``within`` is the form around it. ``place`` is the
    slot, ``helper name``, ``parameters`` or ``settings``. ``line`` and ``column`` are of the side that ``path`` is of.
    """

    place: str
    kind: ChangeKind
    path: tuple[int, ...]
    before: str | None
    after: str | None
    within: str = ""
    line: int | None = None
    column: int | None = None


class Mark(NamedTuple):
    """In the newer text: what stands from ``start`` to ``stop`` is new, and ``before`` stood there."""

    start: int
    stop: int
    before: str


def compared(place: str, before: Program, after: Program) -> tuple[list[Change], list[Mark]]:
    """The changes from one body to the other, and the marks that they leave in the newer text."""
    keys = Keys()
    old, new = Side(before, keys), Side(after, keys)
    pair_binders(old.binders, new.binders)
    old.finish()
    new.finish()
    match = _Match(place, old, new)
    match.trace(old.root, new.root)
    return match.told()


class _Match:
    def __init__(self, place: str, old: Side, new: Side) -> None:
        self.place, self.old, self.new = place, old, new
        self.known: dict[tuple[int, int], tuple[int, str, int]] = {}
        self.found: list[tuple[Change, Tree]] = []
        self.marks: list[Mark] = []

    # The cheapest step for a pair: (cost, step, which item).

    def cost(self, a: Tree, b: Tree) -> int:
        return self.best(a, b)[0]

    def best(self, a: Tree, b: Tree) -> tuple[int, str, int]:
        if a.key == b.key:
            return 0, "same", 0
        pair = (id(a), id(b))
        found = self.known.get(pair)
        if found is None:
            found = self.known[pair] = self._best(a, b)
        return found

    def _best(self, a: Tree, b: Tree) -> tuple[int, str, int]:
        if not a.items and not b.items:
            numbers = a.label[0] == b.label[0] == "number"
            return (2 if numbers else 3), "replace", 0
        # one less than to take one away and put the other there
        best = (a.size + b.size - 1, "replace", 0)
        if len(self.known) > _PAIRS:
            return best
        # a placeholder, so that nothing below counts the pair again
        self.known[id(a), id(b)] = best
        if a.items and b.items and a.label == b.label:
            cost = self.align(a, b)[0]
            # forms that share little read better side by side than interleaved
            if cost * (4 if a.head == b.head else 9) <= best[0] * 3:
                best = (cost, "items", 0)
        if b.label == ("call",):
            for i, item in enumerate(b.items[1:], 1):
                best = min(best, (self.cost(a, item) + b.size - item.size + 1, "wrap", i), key=lambda found: found[0])
        if a.label == ("call",):
            for i, item in enumerate(a.items[1:], 1):
                best = min(best, (self.cost(item, b) + a.size - item.size + 1, "unwrap", i), key=lambda found: found[0])
        return best

    def align(self, a: Tree, b: Tree) -> tuple[int, list[tuple[Tree | None, Tree | None]]]:
        """The items of two forms in order: pairs, and items that stand alone."""
        left, right = a.items, b.items
        low = 0
        while low < min(len(left), len(right)) and left[low].key == right[low].key:
            low += 1
        high = 0
        while high < min(len(left), len(right)) - low and left[-1 - high].key == right[-1 - high].key:
            high += 1
        head = list(zip(left[:low], right[:low], strict=True))
        tail = list(zip(left[len(left) - high :], right[len(right) - high :], strict=True))
        cost, middle = self._middle(left[low : len(left) - high], right[low : len(right) - high])
        return cost, [*head, *middle, *tail]

    def _middle(self, left: list[Tree], right: list[Tree]) -> tuple[int, list[tuple[Tree | None, Tree | None]]]:
        if len(left) * len(right) > _WIDE:
            return self._runs(left, right)
        table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
        for i, a in enumerate(left):
            table[i + 1][0] = table[i][0] + a.size
        for j, b in enumerate(right):
            table[0][j + 1] = table[0][j] + b.size
        for i, a in enumerate(left):
            for j, b in enumerate(right):
                table[i + 1][j + 1] = min(
                    table[i][j] + self.cost(a, b), table[i][j + 1] + a.size, table[i + 1][j] + b.size
                )
        pairs: list[tuple[Tree | None, Tree | None]] = []
        i, j = len(left), len(right)
        while i or j:
            # from the end, so that what is new comes last where there is a choice
            if j and table[i][j] == table[i][j - 1] + right[j - 1].size:
                j -= 1
                pairs.append((None, right[j]))
            elif i and table[i][j] == table[i - 1][j] + left[i - 1].size:
                i -= 1
                pairs.append((left[i], None))
            else:
                i, j = i - 1, j - 1
                pairs.append((left[i], right[j]))
        return table[-1][-1], pairs[::-1]

    def _runs(self, left: list[Tree], right: list[Tree]) -> tuple[int, list[tuple[Tree | None, Tree | None]]]:
        pairs: list[tuple[Tree | None, Tree | None]] = []
        cost = 0
        matcher = SequenceMatcher(None, [t.key for t in left], [t.key for t in right], autojunk=False)
        for _, i, i_end, j, j_end in matcher.get_opcodes():
            both = min(i_end - i, j_end - j)
            pairs += zip(left[i : i + both], right[j : j + both], strict=True)
            cost += sum(self.cost(a, b) for a, b in zip(left[i : i + both], right[j : j + both], strict=True))
            pairs += [(a, None) for a in left[i + both : i_end]]
            pairs += [(None, b) for b in right[j + both : j_end]]
            cost += sum(t.size for t in (*left[i + both : i_end], *right[j + both : j_end]))
        return cost, pairs

    # What the steps say.

    def trace(self, a: Tree, b: Tree) -> None:
        _, step, which = self.best(a, b)
        if step == "replace":
            numbers = a.label[0] == b.label[0] == "number"
            self._say("constant" if numbers else "changed", a, b)
            self._mark(b.form.start, b.form.stop, self.old.text(a))
        elif step == "items":
            self._items(a, b)
        elif step == "wrap":
            inner = b.items[which]
            self._say("wrapped", a, b)
            self._mark(b.form.start, inner.form.start, "")
            self._mark(inner.form.stop, b.form.stop, "")
            self.trace(a, inner)
        elif step == "unwrap":
            inner, text = a.items[which], self.old.source
            self._say("unwrapped", a, b)
            self._mark(b.form.start, b.form.start, text[a.form.start : inner.form.start])
            self._mark(b.form.stop, b.form.stop, text[inner.form.stop : a.form.stop])
            self.trace(inner, b)

    def _items(self, a: Tree, b: Tree) -> None:
        at = b.form.start + 1
        for left, right in self.align(a, b)[1]:
            if left is not None and right is not None:
                self.trace(left, right)
            elif right is not None:
                self._say("added", None, right)
                self._mark(right.form.start, right.form.stop, "")
            elif left is not None:
                self._say("removed", left, None)
                self._mark(at, at, f" {self.old.text(left)}" if at > b.form.start + 1 else f"{self.old.text(left)} ")
            if right is not None:
                at = right.form.stop

    def _say(self, kind: ChangeKind, a: Tree | None, b: Tree | None) -> None:
        tree, side = (b, self.new) if b is not None else (a, self.old)
        assert tree is not None
        parent = tree.parent
        while parent is not None and parent.label != ("call",):
            parent = parent.parent
        start = tree.form.start
        change = Change(
            self.place,
            kind,
            tree.path,
            None if a is None else self.old.text(a),
            None if b is None else self.new.text(b),
            "" if parent is None else " ".join(side.text(parent).split()),
            side.source.count("\n", 0, start) + 1,
            start - side.source.rfind("\n", 0, start),
        )
        self.found.append((change, tree))

    def _mark(self, start: int, stop: int, before: str) -> None:
        if stop > start or before:
            self.marks.append(Mark(start, stop, before))

    def told(self) -> tuple[list[Change], list[Mark]]:
        """The changes in the order found; what was removed here and added there has moved."""
        gone: dict[int, list[int]] = {}
        for n, (change, tree) in enumerate(self.found):
            if change.kind == "removed":
                gone.setdefault(tree.key, []).append(n)
        moved: dict[int, Change] = {}
        dropped = set()
        for n, (change, tree) in enumerate(self.found):
            if change.kind == "added" and gone.get(tree.key):
                source = gone[tree.key].pop(0)
                dropped.add(source)
                moved[n] = replace(change, kind="moved", before=self.found[source][0].before)
        changes = [moved.get(n, change) for n, (change, _) in enumerate(self.found) if n not in dropped]
        return changes, sorted(self.marks, key=lambda mark: mark[:2])

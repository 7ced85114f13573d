"""What ``%%policy`` shows: the version that is live now, and what moved on the lab's last questions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from memlab.errors import PolicyError
from memlab.kernel.base.display import Displayed, box, details, table
from memlab.kernel.base.printable import printable
from memlab.kernel.language import compile_policy, slot_of
from memlab.kernel.policies import Version, slot_named
from memlab.subjects.lab import Lab
from memlab.ui.widgets.ranks import (
    DECIDES_RANKS,
    NOTHING,
    TOP,
    Ranks,
    latest_questions,
    moved,
    shown_moves,
    summed_moves,
)

__all__ = ["Installed", "install_and_compare"]

_QUESTIONS = 10


@dataclass(frozen=True)
class Installed(Displayed):
    """A ``version`` that was installed, and its ``moves``: by question and memory, ranks and scores before and after.

    ``moves`` has what stands among the first eight before or after; a rank is null where it is never shown.
    """

    version: Version
    moves: pl.DataFrame
    _sums: tuple[dict[str, Any], ...] = field(repr=False)

    def _lines(self) -> Iterator[str]:
        for one in self._sums:
            new = f"{one['new']} new in the top {TOP}" if one["new"] else f"the top {TOP} as before"
            yield f"{one['question']}: {one['pairs']} of {one['of']} pairs reordered, {new}"

    def _head(self) -> str:
        if self._sums:
            return f"{self.version} is live. On the {len(self._sums)} questions that were asked last:"
        if self.version.slot not in DECIDES_RANKS:
            return f"{self.version} is live. {self.version.slot} decides no rank, so no answer moves by it alone."
        return f"{self.version} is live. Nothing was asked yet that could move."

    def __repr__(self) -> str:
        return printable("\n".join([self._head(), *(f"  {line}" for line in self._lines())]))

    def _display(self) -> object:
        parts: list[object] = []
        for one, line in zip(self._sums, self._lines(), strict=True):
            own = self.moves.filter((pl.col("question") == one["question"]) & (pl.col("rank_after") <= TOP))
            rows = own.select("rank_after", "rank_before", "text").rows()
            inside = table(
                "", ("after", "before", "memory"), [[a, "-" if b is None else b, text] for a, b, text in rows]
            )
            parts.append(details(line, inside, opened=not parts))
        return self._head(), box(parts)


def install_and_compare(lab: Lab, slot: str, source: str, *, first_line: int = 1, reason: str = "") -> Installed:
    """Install a policy, and compare the ranks of the lab's last questions before and after, without a trace of that.

    Errors count the lines of ``source`` from ``first_line`` on; what they are about is not installed.
    """
    text = source.strip("\n")
    placed = "\n" * (first_line - 1 + len(source) - len(source.lstrip("\n"))) + text
    if (named := slot_of(placed)) not in ("", slot):
        raise PolicyError(f"This is a policy of {named}, and {slot} is to be filled: write %%policy {named}.")
    draft = compile_policy(placed, slot_named(slot).signature, name=slot)
    questions = latest_questions(lab, _QUESTIONS) if slot in DECIDES_RANKS else []
    ranks = Ranks(lab)
    both = [ranks.under(slot, one, questions) for one in (lab.policies[slot], draft)] if questions else [NOTHING] * 2
    frame = moved(*both)
    # both are ranked before the new one is live: the questions are asked once, of the same state
    moves = shown_moves(frame, ranks)
    version = lab.policies.install(slot, text, reason=reason)
    asked = pl.Series(questions, dtype=pl.String)
    named_moves = moves.with_columns(question=asked.gather(moves["question"]))
    return Installed(version, named_moves, tuple(summed_moves(frame, questions)))

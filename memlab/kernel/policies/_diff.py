"""Two versions of a policy side by side."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cached_property

from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.language import FormDiff, diff_policies
from memlab.kernel.policies._versions import Version

__all__ = ["PolicyDiff"]


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
            only = ": layout, comments, documentation and bound names do not count" if self.lines else ""
            return f"{self.before} and {self.after} are the same policy{only}."
        if self.before.policy.source_hash != self.after.policy.source_hash:
            return ""
        what = "; ".join(dict.fromkeys(str(c) if c.name else c.place for c in self.forms.changes))
        return f"The source is the same. They differ in {what}."

    def __bool__(self) -> bool:
        return self.before.policy.hash != self.after.policy.hash

    def __repr__(self) -> str:
        return printable("\n\n".join(part for part in (self.verdict, self.forms.text() if self else "") if part))

    def _display(self) -> object:
        return self.verdict or None, self.forms if self else None

"""Two versions of a policy side by side: form by form, line by line, and in parameters and helpers."""

from __future__ import annotations

import difflib
import html
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from memlab.policies._versions import Version
from memlab.printable import printable

if TYPE_CHECKING:
    from memlab.language import FormDiff

__all__ = ["PolicyDiff"]

_HELPER_NAME = re.compile(r"\(\s*defn\s+([^\s()\[\]]+)")
_SYMBOL = re.compile(r"[^\s()\[\]\"']+")
_COLOUR = {"+": "#1a7f37", "-": "#cf222e", "@": "#6e7781"}


@dataclass(frozen=True)
class PolicyDiff:
    """How two versions differ. ``forms`` is the difference of their trees, ``lines`` that of their texts.

    ``params`` are the parameters whose values differ, as name: (before, after), None where there is none; ``helpers``
    the names of the ``defn`` forms that differ and that one of the two calls. ``verdict`` says in a sentence when the
    source is the same and something else differs, or when nothing does.
    """

    before: Version
    after: Version

    @cached_property
    def forms(self) -> FormDiff:
        """Which forms, parameter values, arguments and helpers differ."""
        from memlab.language import diff_policies

        return diff_policies(self.before.policy, self.after.policy)

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """A unified diff of the texts, with the helpers that they call in front."""
        texts = [[*_called(version).values(), version.source] for version in (self.before, self.after)]
        old, new = ("\n".join(parts).splitlines() for parts in texts)
        return tuple(difflib.unified_diff(old, new, str(self.before), str(self.after), lineterm=""))

    @cached_property
    def params(self) -> dict[str, tuple[float | None, float | None]]:
        """Parameters whose values differ."""
        old, new = (
            {param.name: param.value for param in version.policy.params.values()}
            for version in (self.before, self.after)
        )
        names = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
        return {name: (old.get(name), new.get(name)) for name in names}

    @cached_property
    def helpers(self) -> tuple[str, ...]:
        """Names of the helpers that differ."""
        old, new = _called(self.before), _called(self.after)
        return tuple(sorted(name for name in {*old, *new} if old.get(name) != new.get(name)))

    @property
    def verdict(self) -> str:
        """What the texts alone do not show; empty when they show it all."""
        if self.before.policy.hash == self.after.policy.hash:
            only = ": layout, comments, documentation and bound names do not count" if self.lines else ""
            return f"{self.before} and {self.after} are the same policy{only}."
        if self.before.policy.source_hash != self.after.policy.source_hash:
            return ""
        what = []
        if self.params:
            told = ", ".join(f"{name} {_number(old)} -> {_number(new)}" for name, (old, new) in self.params.items())
            what.append(f"parameters: {told}")
        if self.helpers:
            what.append(f"helpers: {', '.join(self.helpers)}")
        return f"The source is the same. They differ in {'; '.join(what)}."

    def __bool__(self) -> bool:
        return self.before.policy.hash != self.after.policy.hash

    def __repr__(self) -> str:
        parts = [self.verdict, repr(self.forms) if self else "", "\n".join(self.lines)]
        return printable("\n\n".join(part for part in parts if part))

    def _repr_html_(self) -> str:
        verdict = f"<p>{html.escape(self.verdict)}</p>" if self.verdict else ""
        forms = self.forms._repr_html_() if self else ""
        rows = "".join(
            f'<div style="color:{_COLOUR.get(line[:1], "inherit")}">{html.escape(line)}</div>' for line in self.lines
        )
        lines = f"<details><summary>line by line</summary><pre style='line-height:1.35'>{rows}</pre></details>"
        return f"<div>{verdict}{forms}{lines if rows else ''}</div>"


def _called(version: Version) -> dict[str, str]:
    """The helpers that a version's source calls, directly or through others, by name."""
    known = {match[1]: text for text in version.helpers if (match := _HELPER_NAME.match(text))}
    called: dict[str, str] = {}
    left = [version.source]
    while left:
        for name in set(_SYMBOL.findall(left.pop())) & (known.keys() - called.keys()):
            called[name] = known[name]
            left.append(known[name])
    return dict(sorted(called.items()))


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"

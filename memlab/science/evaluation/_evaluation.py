"""An evaluation: findings that show themselves as text, as a page and as figures."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from memlab.kernel.base.arguments import Count, checked
from memlab.kernel.base.drawing import OnAxes
from memlab.kernel.base.printable import printable
from memlab.science.evaluation._findings import Findings
from memlab.science.evaluation._render import as_html, as_latex, as_text, caption, headline, next_step, remarks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Evaluation"]


@dataclass(frozen=True, repr=False)
class Evaluation(Findings):
    """Policies on one log, best first. A trailing expression renders it; made by ``memlab.evaluate``.

    ``refusals`` are policies that this log cannot evaluate; ``notes`` what was left out of the log and why; ``method``
    how intervals were made. ``needed``: the two best policies that have a value, and how many recalls like these would
    separate them; where nothing but the baseline has a value, the policy that is nearest to one, the baseline, and the
    recalls that it needs. None where recalls like these would not do. Each row has a ``needed`` of its own.
    """

    @checked
    def figure(
        self, kind: Literal["leaderboard", "weights", "disagreement"] = "leaderboard", *, axes: OnAxes | None = None
    ) -> Figure:
        """A matplotlib figure: ``leaderboard`` with intervals, ``weights``, or the greatest ``disagreement``.

        With ``axes`` it is drawn there, and their figure is returned.
        """
        from memlab.science.evaluation._figures import figure

        return figure(self, kind, axes)

    @checked
    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML file, and return its path."""
        from memlab.kernel.base.drawing import write_page
        from memlab.science.evaluation._report import page

        return write_page(page(self), path)

    def to_dict(self) -> dict[str, Any]:
        """All that the text says, as JSON values: each refusal, closed gate and untested gate, with its reason."""
        return {
            "headline": headline(self),
            "method": caption(self),
            "policies": [
                row | {"recalls_needed": needed}
                for row, needed in zip(
                    self.frame.to_dicts(),
                    [*(one.needed for one in self.rows), *(None for _ in self.refusals)],
                    strict=True,
                )
            ],
            "refusals": [{"policy": one.policy, "reason": one.reason} for one in self.refusals],
            "withheld": [
                {
                    "policy": row.policy,
                    "gate": gate.name,
                    "figure": gate.figure if isfinite(gate.figure) else None,
                    "threshold": gate.threshold,
                    "reason": gate.finding,
                    "advice": gate.advice,
                }
                for row in self.rows
                for gate in row.closed
            ],
            "untested": [
                {
                    "policy": row.policy,
                    "gate": gate.name,
                    "threshold": gate.threshold,
                    "reason": gate.finding,
                    "advice": gate.advice,
                }
                for row in self.rows
                for gate in row.untested
            ],
            "needed": self.needed and {"policies": list(self.needed[:2]), "recalls": self.needed[2]},
            "next": next_step(self) or None,
            "notes": remarks(self),
        }

    def to_latex(self) -> str:
        r"""The leaderboard as a LaTeX table, for the package booktabs; the caption says how numbers were made.

        >>> print(ev.to_latex())                                                           # doctest: +SKIP
        """
        return as_latex(self)

    @checked
    def text(self, width: Count | None = None) -> str:
        """The finding, its table and the reasons as text, in lines of at most ``width`` characters.

        Of a table that is wider, columns are left out; ``frame`` has them all.
        """
        return printable(as_text(self, width))

    def __repr__(self) -> str:
        return printable(self.text())

    def _repr_html_(self) -> str:
        return as_html(self)

"""An evaluation: findings that show themselves as text, as a page and as figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from memlab.arguments import checked
from memlab.evaluation._findings import Findings
from memlab.evaluation._render import as_html, as_text
from memlab.printable import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Evaluation"]


@dataclass(frozen=True, repr=False)
class Evaluation(Findings):
    """Policies on one log, best first. A trailing expression renders it; made by ``memlab.evaluate``.

    ``refusals`` are policies that this log cannot evaluate; ``notes`` what was left out of the log and why; ``method``
    how intervals were made; ``needed`` names the two best policies and the recalls that would tell them apart.
    """

    @checked
    def figure(self, kind: Literal["leaderboard", "weights", "disagreement"] = "leaderboard") -> Figure:
        """A matplotlib figure: ``leaderboard`` with intervals, ``weights``, or the greatest ``disagreement``."""
        from memlab.evaluation._figures import figure

        return figure(self, kind)

    @checked
    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML file, and return its path."""
        from memlab.evaluation._report import write_report

        return write_report(self, Path(path).expanduser())

    def __repr__(self) -> str:
        return printable(as_text(self))

    def _repr_html_(self) -> str:
        return as_html(self)

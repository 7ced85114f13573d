"""Draw the README's pictures from real runs: ``python experiments/readme_figures.py``.

``explained.png`` shows the terms of the scores of one recall on the bundled conversation. ``leaderboard.png`` and
``truth.png`` show the estimates of every pack on the demo's simulated quarter, and their agreement with the true
values. All are written to ``docs/figures``; the same code gives the same bytes. ``screenshots.py`` draws the widgets.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib import rc_context
from matplotlib.figure import Figure

import memlab
from memlab.io.ingest import conversation, read_locomo
from memlab.subjects.drawing import STYLE
from memlab.ui.demo import CONVERSATION, QUESTION
from memlab.ui.demo._run import draw_terms, draw_truth
from memlab.ui.demo.quarter import live_quarter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TARGET = Path(__file__).parents[1] / "docs" / "figures"
LARGER = STYLE | {"font.size": 11.0, "axes.titlesize": 12.0}


def main() -> None:
    """Draw the pictures."""
    TARGET.mkdir(parents=True, exist_ok=True)
    (labelled,) = read_locomo(CONVERSATION)
    talk = labelled.conversation
    with memlab.open(clock=memlab.ManualClock(talk.end + timedelta(days=1))) as lab:
        conversation(lab, talk)
        before = lab.recall(QUESTION, limit=8, log=False)
        explanations = [hit.explain() for hit in before]
    texts = [hit.text for hit in before]
    _draw_panel(
        "explained",
        draw_terms(explanations, texts),
        f"“{QUESTION}”  why each was recalled",
        9.6,
        4.6,
    )

    quarter = live_quarter(progress=True)
    evaluation = quarter.evaluation
    with rc_context(LARGER):
        board = evaluation.figure("leaderboard")
        board.set_size_inches(9.6, 3.9)
        board.set_facecolor("white")
        layout = board.get_layout_engine()
        layout.set(w_pad=0.12, h_pad=0.1)
        board.axes[0].set_title(
            f"What {evaluation.recalls} logged recalls say of {len(evaluation.rows)} policies, one of them live",
            pad=28,
        )
        _save(board, "leaderboard")
    agreed = quarter.agreement
    title = f"From the log alone, compared with the true values: {agreed.ordered} of {agreed.pairs} pairs in order"
    _draw_panel("truth", draw_truth(quarter), title, 9.6, 5.4)


def _draw_panel(
    name: str, draw: Callable[[Axes], None], title: str, width: float, height: float
) -> None:
    """Draw a picture of one panel."""
    with rc_context(LARGER):
        figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
        layout: Any = figure.get_layout_engine()
        layout.set(w_pad=0.12, h_pad=0.1)
        axes = figure.add_subplot()
        draw(axes)
        figure.suptitle(title, x=0.012, ha="left", weight="bold", size=12.0)
        _save(figure, name)


def _save(figure: Figure, name: str) -> None:
    """Write a picture."""
    target = TARGET / f"{name}.png"
    figure.savefig(target, dpi=160, metadata={"Software": None})
    print(f"{target.relative_to(TARGET.parents[1])}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

"""The page of the demo: one file of HTML that asks for nothing else."""

from __future__ import annotations

import platform
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlab.kernel.base.drawing import element, render_page, svg
from memlab.kernel.version import __version__
from memlab.ui.demo import figures
from memlab.ui.demo._result import SLOT, SOURCE, DemoResult

if TYPE_CHECKING:
    from memlab.io.ingest import Turn
    from memlab.kernel.recall import Hits

__all__ = ["page"]

_PACKAGES = ("hy", "polars", "numpy", "model2vec")
_WIDTH = 8.2


def page(story: DemoResult) -> str:
    """The story as HTML, everything from texts escaped. Tables are what a notebook shows of the same objects."""
    from markupsafe import Markup

    talk, quarter = story.labelled.conversation, story.quarter
    # The demo's lab numbers memories from 1, in the order of the conversation.
    when = {number: turn.at for number, turn in enumerate((turn for turn in talk.turns if turn.content), 1)}
    shown: dict[str, Any] = {"hits": story.hits, "bench": story.bench}
    if quarter is not None:
        shown |= {"evaluation": quarter.evaluation, "refused": quarter.refused}
    return render_page(
        Path(__file__).parent / "page.html",
        {},
        story=story,
        slot=SLOT,
        new_source=SOURCE,
        talk=talk,
        excerpt=_excerpt(story),
        quarter=quarter,
        back=_unprobed(story.restored) == _unprobed(story.hits),
        figures={name: Markup(text) for name, text in _draw(story, when).items()},
        tables={name: Markup(one._repr_html_()) for name, one in shown.items()},
        versions=[("memlab", __version__), ("Python", platform.python_version())]
        + [(name, version(name)) for name in _PACKAGES],
    )


def _draw(story: DemoResult, when: dict[int, datetime]) -> dict[str, str]:
    """The figures as SVG, by name."""
    drawn = {
        "timeline": (figures.draw_timeline(story.hits, when, [story.helped, story.stale]), 3.4),
        "moves": (figures.draw_moves(story.hits, story.hits_after), 3.1),
        "terms": (figures.draw_terms(story.explanations, [hit.text for hit in story.hits]), 3.6),
    }
    if story.quarter is not None:
        drawn["truth"] = (figures.draw_truth(story.quarter), 4.4)
    found = {name: svg(draw, name=name, width=_WIDTH, height=height) for name, (draw, height) in drawn.items()}
    if story.quarter is not None:
        found["leaderboard"] = element(story.quarter.evaluation.figure("leaderboard"), name="leaderboard")
        found["forecast"] = element(story.quarter.forecast.figure(), name="forecast")
    return found


def _unprobed(hits: Hits) -> list[int]:
    return [hit.id for hit in hits if not hit.probe]


def _excerpt(story: DemoResult) -> list[tuple[Turn, bool]]:
    """The turns around the two on which the demo hangs, and whether each is one of them."""
    turns = story.labelled.conversation.turns
    marked = {story.helped.ref, story.stale.ref}
    near = {
        place
        for at, turn in enumerate(turns)
        if turn.ref in marked
        for place in (at - 1, at, at + 1)
        if 0 <= place < len(turns) and turns[place].session == turn.session
    }
    return [(turns[at], turns[at].ref in marked) for at in sorted(near)]

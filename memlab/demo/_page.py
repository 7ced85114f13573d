"""The page of the demo: one file of HTML that asks for nothing else."""

from __future__ import annotations

import platform
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlab.demo import figures
from memlab.demo._result import SLOT, SOURCE, DemoResult
from memlab.drawing import element, svg
from memlab.version import __version__

if TYPE_CHECKING:
    from memlab.demo.quarter import Quarter
    from memlab.ingest import Turn

__all__ = ["page"]

_PACKAGES = ("hy", "polars", "numpy", "model2vec")
_WIDTH = 8.2


def page(story: DemoResult) -> str:
    """The story as HTML, everything from texts escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    talk, quarter = story.labelled.conversation, story.quarter
    # The demo's lab numbers memories from 1, in the order of the conversation.
    when = {number: turn.at for number, turn in enumerate((turn for turn in talk.turns if turn.said), 1)}
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["share"] = lambda value: f"{value:.2f}".lstrip("0") if value < 1 else f"{value:.2f}"
    return environment.get_template("page.html").render(
        story=story,
        slot=SLOT,
        new_source=SOURCE,
        talk=talk,
        excerpt=_excerpt(story),
        when=when,
        scale=max(abs(hit.score) for hit in story.hits) or 1.0,
        quarter=quarter,
        refusals=_refusals(quarter) if quarter is not None else [],
        back=_unprobed(story.restored) == _unprobed(story.hits),
        figures={name: Markup(text) for name, text in _draw(story, when).items()},
        versions=[("memlab", __version__), ("Python", platform.python_version())]
        + [(name, version(name)) for name in _PACKAGES],
    )


def _draw(story: DemoResult, when: dict[int, datetime]) -> dict[str, str]:
    """The figures as SVG, by name."""
    drawn = {
        "timeline": (figures.draw_timeline(story.hits, when, [story.helped, story.stale]), 3.4),
        "moves": (figures.draw_moves(story.hits, story.hits_after), 3.1),
        "terms": (figures.draw_terms(story.explanations, [hit.text for hit in story.hits]), 3.6),
        "bench": (figures.draw_bench(story.bench), 0.6 + 0.3 * len(story.bench.systems)),
    }
    if story.quarter is not None:
        drawn["truth"] = (figures.draw_truth(story.quarter), 4.4)
    found = {name: svg(draw, name=name, width=_WIDTH, height=height) for name, (draw, height) in drawn.items()}
    if story.quarter is not None:
        found["leaderboard"] = element(story.quarter.evaluation.figure("leaderboard"), name="leaderboard")
        found["fading"] = element(figures.draw_fading(story.quarter), name="fading")
    return found


def _unprobed(hits: Any) -> list[int]:
    return [hit.id for hit in hits if not hit.probe]


def _excerpt(story: DemoResult) -> list[tuple[Turn, bool]]:
    """What was said around the two turns on which the demo turns, and whether it is one of them."""
    turns = story.labelled.conversation.turns
    marked = {story.helped.ref, story.stale.ref}
    kept = {
        near
        for at, turn in enumerate(turns)
        if turn.ref in marked
        for near in (at - 1, at, at + 1)
        if 0 <= near < len(turns) and turns[near].session == turn.session
    }
    return [(turns[at], turns[at].ref in marked) for at in sorted(kept)]


def _refusals(quarter: Quarter) -> list[dict[str, Any]]:
    """For each pack on the log without probes: what could not have been shown, what its value lies between, and why."""
    return [
        {
            "row": row,
            "unsupported": 0.0 if row.measured is None else row.measured.unsupported,
            "why": str(row.closed[0]) if row.closed else "",
        }
        for row in quarter.refused.rows
    ]

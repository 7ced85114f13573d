"""The page of the demo: one file of HTML that asks for nothing else."""

from __future__ import annotations

import hashlib
import platform
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from memlab import __version__
from memlab.demo._quarter import DAYS_REFUSED, HORIZON, LOGGING, Quarter
from memlab.demo._result import Story
from memlab.demo.figures import (
    draw_bench,
    draw_fading,
    draw_moves,
    draw_terms,
    draw_timeline,
    draw_truth,
)
from memlab.drawing import element, svg

__all__ = ["digests", "page"]

_HERE = Path(__file__).parent
_PACKAGES = ("hy", "polars", "numpy", "model2vec")


def digests(story: Story) -> dict[str, str]:
    """What the run was made of, by hash: conversation, embedder, and each pack that took part."""
    found = {
        "conversation": hashlib.sha256((_HERE / "conversation.json").read_bytes()).hexdigest(),
        "embedder": story.embedder,
        f"policy {story.slot}, before": story.before.pack.policies[story.slot].hash,
        f"policy {story.slot}, after": story.after.pack.policies[story.slot].hash,
        "pack memlab, after": story.after.pack.hash,
    }
    found |= {f"pack {system.name}": system.hash for system in story.bench.systems}
    return found | {"pack that logged the quarter": story.quarter.pack.hash, "log of the quarter": story.quarter.digest}


def page(story: Story, *, report: str) -> str:
    """The story as HTML, everything from texts escaped; ``report`` is the name of the evaluation's own page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    when, quarter = _when(story), story.quarter
    moved = [story.helped, story.stale]
    figures = {
        "timeline": svg(draw_timeline(story.before, when, moved), name="timeline", width=8.2, height=3.4),
        "moves": svg(draw_moves(story.before, story.after), name="moves", width=8.2, height=3.1),
        "terms": svg(
            draw_terms(story.explanations, [hit.text for hit in story.before]), name="terms", width=8.2, height=3.6
        ),
        "leaderboard": element(quarter.evaluation.figure("leaderboard"), name="leaderboard"),
        "truth": svg(draw_truth(quarter), name="truth", width=8.2, height=4.4),
        "fading": element(draw_fading(quarter), name="fading"),
        "bench": svg(draw_bench(story.bench), name="bench", width=8.2, height=0.6 + 0.3 * len(story.bench.systems)),
    }
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["share"] = _share
    return environment.get_template("page.html").render(
        story=story,
        talk=story.labelled.conversation,
        excerpt=_excerpt(story),
        when=when,
        scale=max(abs(hit.score) for hit in story.before) or 1.0,
        quarter=quarter,
        logging=LOGGING,
        horizon=HORIZON,
        refused_days=min(quarter.world.days, DAYS_REFUSED),
        refusals=_refusals(quarter),
        report=report,
        back=[hit.id for hit in story.restored if not hit.probe] == [hit.id for hit in story.before if not hit.probe],
        figures={name: Markup(text) for name, text in figures.items()},
        categories=sorted(story.bench.systems[0].asked),
        digests=digests(story),
        versions=[("memlab", __version__), ("Python", platform.python_version())]
        + [(name, version(name)) for name in _PACKAGES],
    )


def _when(story: Story) -> dict[int, datetime]:
    """When each memory was said; the demo's lab numbers them from 1, in the order of the conversation."""
    said = [turn for turn in story.labelled.conversation.turns if turn.said]
    return {number: turn.at for number, turn in enumerate(said, 1)}


def _excerpt(story: Story) -> list[Any]:
    """What was said around the two turns on which the demo turns."""
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
    told = []
    for row in quarter.refused.rows:
        unsupported = 0.0 if row.measured is None else row.measured.unsupported
        told.append({"row": row, "unsupported": unsupported, "why": str(row.closed[0]) if row.closed else ""})
    return told


def _share(value: float) -> str:
    return f"{value:.2f}".lstrip("0") if value < 1 else f"{value:.2f}"

"""One self-contained HTML file: the finding, the evidence, its limits, and how to have it again."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from memlab.kernel.base.drawing import render_page, svg
from memlab.kernel.version import __version__
from memlab.science.evaluation._figures import SIZES, draw_disagreement, draw_leaderboard, draw_weights, height_of
from memlab.science.evaluation._findings import Findings
from memlab.science.evaluation._gates import GATES, share
from memlab.science.evaluation._render import caption, headline, interval, number, reasons, remarks, stars

__all__ = ["log_digest", "page"]

_TEMPLATE = Path(__file__).parent / "report.html"
_PACKAGES = ("polars", "numpy")
_EXAMPLES = 4


def page(ev: Findings) -> str:
    """The page. Everything that came from text is escaped."""
    from markupsafe import Markup

    pair = ev.pair
    differ = ev.disagreements(*pair, n=_EXAMPLES) if pair else None
    figures = {"leaderboard": svg(draw_leaderboard(ev), name="leaderboard", width=7.6, height=height_of(ev))}
    if ev.settings.measure == "feedback":
        width, height = SIZES["weights"]
        figures["weights"] = svg(draw_weights(ev), name="weights", width=width, height=height)
    if pair and differ:
        width, height = SIZES["disagreement"]
        figures["disagreement"] = svg(
            draw_disagreement(differ[0], *pair), name="disagreement", width=width, height=height
        )
    return render_page(
        _TEMPLATE,
        _FILTERS,
        ev=ev,
        caption=caption(ev),
        headline=headline(ev),
        reasons=reasons(ev),
        remarks=remarks(ev),
        labels=ev.settings.measure == "labels",
        figures={name: Markup(text) for name, text in figures.items()},
        differ=differ,
        pair=pair,
        rankers=[target.ranker for target in ev._targets],
        gates=GATES,
        kinds=sorted({row.kind for row in ev.rows}),
        line=reproduction(ev),
        digest=log_digest(ev),
        versions=[("memlab", __version__), ("Python", platform.python_version())]
        + [(name, version(name)) for name in _PACKAGES],
    )


def reproduction(ev: Findings) -> str:
    """The call that gives this evaluation again."""
    settings = ev.settings
    given = ", ".join(repr(name) for name in ev.given)
    parts = [f"memlab.evaluate(slates, [{given}]"]
    if settings.measure == "labels":
        parts.append("labels=labels")
    else:
        parts.append(f"horizon={settings.horizon!r}, missing={settings.missing!r}, estimator={settings.estimator!r}")
        if settings.cluster is not None:
            parts.append(f"cluster={settings.cluster!r}")
        parts.append(f"reward_range={settings.reward_range!r}")
    parts.append(f"level={settings.level!r}, baseline={ev.baseline!r})")
    return (",\n" + " " * len("memlab.evaluate(")).join(parts)


def log_digest(ev: Findings) -> str:
    """A sha256 of what the log says: recalls, candidates, probabilities, what was shown and what it earned."""
    log = ev._log
    digest = hashlib.sha256()
    for array in (log.recall, log.propensity, log.shown, log.reward, log.limit, log.cluster):
        digest.update(np.ascontiguousarray(array).tobytes())
    for name in ("decision", "memory_id"):
        digest.update("\x1f".join(map(str, log.ids[name].to_list())).encode())
    return digest.hexdigest()


def _known(value: Any) -> bool:
    return value is not None and bool(np.isfinite(value))


_FILTERS: dict[str, Callable[..., Any]] = {
    "number": number,
    "interval": interval,
    "stars": stars,
    "share": share,
    "known": _known,
}

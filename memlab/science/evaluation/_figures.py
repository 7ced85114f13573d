"""The figures of an evaluation: leaderboard with intervals, weights, and the recall where two policies differ most."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Mapping
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.display import Markup, clip
from memlab.kernel.version import __version__
from memlab.science.evaluation._disagreements import Disagreement
from memlab.science.evaluation._evaluation import (
    Evaluation,
    caption,
    headline,
    interval,
    number,
    reasons,
    remarks,
    stars,
)
from memlab.science.evaluation._tests import GATES, share
from memlab.subjects.drawing import BLUE, CYCLE, GREY, INK, ORANGE, Draw, draw_ranks, drawn, render_page, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "SIZES",
    "draw_disagreement",
    "draw_leaderboard",
    "draw_sequences",
    "draw_weights",
    "figure",
    "height_of",
    "log_digest",
    "page",
]


SIZES = {"leaderboard": (7.6, 0.0), "weights": (7.6, 3.0), "disagreement": (7.6, 3.3)}
"""Inches; the height of a leaderboard follows its rows."""

_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
_MOST_LINES = len(CYCLE)
_MOST_RANKS = 8


def figure(ev: Evaluation, kind: str, axes: Axes | None) -> Figure:
    """One of the figures of ``Evaluation.figure``."""
    makers: dict[str, Callable[[Evaluation], Draw]] = {
        "leaderboard": draw_leaderboard,
        "weights": draw_weights,
        "disagreement": _greatest,
    }
    width, height = SIZES[kind]
    return drawn(makers[kind](ev), width=width, height=height or height_of(ev), axes=axes)


def height_of(ev: Evaluation) -> float:
    """Inches that a leaderboard needs."""
    return 1.0 + 0.36 * max(1, len(ev.rows))


def draw_leaderboard(ev: Evaluation) -> Draw:
    """One line a policy: its value with its interval, its bounds in grey, and the model's guess as a hollow diamond."""
    rows = list(reversed(ev.rows))
    labels = ev.settings.measure == "labels"

    def draw(axes: Axes) -> None:
        base = next((row.value.value for row in rows if row.policy == ev.baseline and row.value), None)
        if base is not None:
            axes.axvline(base, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
        for y, row in enumerate(rows):
            bounded = row.measured is not None and row.upper > row.lower and np.isfinite(row.lower)
            if bounded:
                label = "bounds, for what could not be shown"
                axes.plot([row.lower, row.upper], [y, y], color=GREY, alpha=0.35, linewidth=5, label=label, zorder=1)
            if row.value is not None:
                colour = INK if row.policy == ev.baseline else BLUE
                if np.isfinite(row.value.low):
                    axes.plot([row.value.low, row.value.high], [y, y], color=colour, linewidth=2.2, zorder=2)
                axes.scatter([row.value.value], [y], s=46, color=colour, zorder=3)
            else:
                across = axes.get_yaxis_transform()
                axes.text(1.01, y, row.verdict, transform=across, va="center", color=GREY, fontsize=9)
            if not labels and np.isfinite(ev.model_values[row.policy]):
                axes.scatter(
                    [ev.model_values[row.policy]],
                    [y - 0.26],
                    s=24,
                    marker="D",
                    facecolors="none",
                    edgecolors=ORANGE,
                    linewidths=1.5,
                    label="direct method (a model)",
                    zorder=4,
                )
        axes.set_yticks(range(len(rows)), [row.policy for row in rows])
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_xlim(*_range(ev))
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
        axes.set_xlabel(f"mean {ev.settings.metric}" if labels else "mean reward per recall (top k)")
        _legend(axes)

    return draw


def _range(ev: Evaluation) -> tuple[float, float]:
    """What holds every interval and its model's guess; wide bounds and guesses of what is withheld may run out."""
    valued = [row for row in ev.rows if row.value is not None]
    ends = [end for row in ev.rows if row.value for end in (row.value.value, row.value.low, row.value.high)]
    ends += [ev.model_values.get(row.policy, np.nan) for row in valued or ev.rows]
    if not valued:
        ends += [end for row in ev.rows for end in (row.lower, row.upper)]
    known = [end for end in ends if np.isfinite(end)] or [0.0, 1.0]
    room = 0.12 * (max(known) - min(known)) or 0.5
    return min(known) - room, max(known) + room


def draw_weights(ev: Evaluation) -> Draw:
    """How much of the weight the heaviest items hold; the gate asks that 1% of them hold at most half."""
    if ev.settings.measure == "labels":
        raise InputError("Labels are counted, not weighted: there is no figure of weights.")
    rows = [row for row in ev.rows if row.measured is not None and len(row.measured.weights)][:_MOST_LINES]

    def draw(axes: Axes) -> None:
        axes.axvline(0.01, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
        axes.plot([0.01], [0.5], marker="_", color=GREY, markersize=16, markeredgewidth=1.5)
        axes.annotate("gate", (0.01, 0.5), xytext=(10, 0), textcoords="offset points", va="center", color=GREY)
        for place, row in enumerate(rows):
            assert row.measured is not None
            weights = row.measured.weights
            share = np.arange(1, len(weights) + 1) / len(weights)
            held = np.cumsum(weights) / weights.sum()
            # 200 points draw the line; a log may hold a million items
            at = np.unique(np.geomspace(1, len(weights), 200).astype(np.int64)) - 1
            style = _DASHES[place % len(_DASHES)]
            axes.plot(share[at], held[at], color=CYCLE[place], linewidth=1.8, linestyle=style, label=row.policy)
        axes.set_xscale("log")
        axes.set_ylim(0, 1.02)
        ticks = [tick for tick in (0.0001, 0.001, 0.01, 0.1, 1.0) if tick >= axes.get_xlim()[0]]
        axes.set_xticks(ticks, [f"{100 * tick:g}%" for tick in ticks])
        axes.minorticks_off()
        axes.set_yticks([0, 0.5, 1], ["0", "half", "all"])
        axes.set_xlabel("heaviest items of the policy that were shown and answered")
        axes.set_ylabel("of the weight")
        axes.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
        _legend(axes)

    return draw


def _greatest(ev: Evaluation) -> Draw:
    pair = ev.pair
    if pair is None:
        raise InputError("A disagreement needs two policies that could be evaluated.")
    found = ev.disagreements(*pair, n=1)
    if not found:
        raise InputError(f"{pair[0]} and {pair[1]} would have shown the same items in the same order, always.")
    return draw_disagreement(found[0], *pair)


def draw_disagreement(one: Disagreement, a: str, b: str) -> Draw:
    """The heads of one recall under two policies, joined by lines; what earned something is marked."""
    most = min(max(rank for item in one.items for rank in item.ranks if rank is not None), _MOST_RANKS)
    rows = []
    for item in one.items:
        left, right = (rank if rank is not None and rank <= most else None for rank in item.ranks)
        earned = "" if item.reward is None else f" ({item.reward:g})"
        if left or right:
            rows.append((left, right, clip(item.text or f"memory {item.memory}", 36) + earned))
    return draw_ranks((a, b), rows, most=most, below="lower, or not at all", margin=3.1, size=9)


def _legend(axes: Axes) -> None:
    """Each sign once, above the axes."""
    handles, labels = axes.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    if once:
        axes.legend(
            list(once.values()),
            list(once),
            frameon=False,
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=min(3, len(once)),
            borderpad=0,
            handletextpad=0.5,
            columnspacing=1.4,
        )


def draw_sequences(tracks: Mapping[str, pl.DataFrame], live: str) -> Draw:
    """The running difference of each challenger to the live pack, in the interval that holds at every look.

    A track has ``recalls``, ``difference``, ``low`` and ``high``.
    """

    def draw(axes: Axes) -> None:
        axes.axhline(0, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
        reach = 0.0
        for colour, dash, (name, track) in zip(cycle(CYCLE), cycle(_DASHES), tracks.items()):
            x = track["recalls"].to_numpy()
            axes.fill_between(x, track["low"], track["high"], color=colour, alpha=0.15, linewidth=0)
            axes.plot(x, track["difference"], color=colour, linestyle=dash, linewidth=1.8, label=f"{name} less {live}")
            late = track.tail(max(1, track.height * 4 // 5))
            reach = max(reach, float(late["high"].max()), -float(late["low"].min()))  # type: ignore[arg-type]
        axes.set_ylim(-1.15 * reach, 1.15 * reach)
        axes.set_xlabel("recalls while challenged")
        axes.set_ylabel("difference in rewards a recall")
        _legend(axes)

    return draw


# One self-contained HTML file: the finding, the evidence, its limits, and how to have it again.


_TEMPLATE = Path(__file__).parent / "report.html"
_PACKAGES = ("polars", "numpy")
_EXAMPLES = 4


def page(ev: Evaluation) -> str:
    """The page. Everything that came from text is escaped."""
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


def reproduction(ev: Evaluation) -> str:
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


def log_digest(ev: Evaluation) -> str:
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

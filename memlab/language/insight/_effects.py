"""What a change of its features does to a value or to an order: results that render.

``memlab.language.insight._sensitivity`` computes them.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from memlab.language._dag import Value
from memlab.language.insight._source import literal
from memlab.language.insight._tree import shown
from memlab.printable import printable

__all__ = ["Change", "FeatureEffect", "Sensitivity", "SlateSensitivity"]

_BLUE, _RED = "#4c78a8", "#e45756"


@dataclass(frozen=True)
class Change:
    """One feature set to another value, and what the policy then gives.

    ``at`` says which: ``10%`` or ``90%`` of the slate, ``flip`` or ``word``. ``change`` is ``result`` minus the value
    as it is (false and true count as 0 and 1); None when one of the two is null or a string.
    """

    feature: str
    value: Value
    to: Value
    at: str
    result: Value
    change: float | None


@dataclass(frozen=True)
class Sensitivity:
    """What changes the value of one item. ``slopes`` are per unit of each number, None where the value is null.

    ``changes`` are those that move it, furthest first, then those that do not.
    """

    policy: str
    value: Value
    slopes: Mapping[str, float | None]
    changes: tuple[Change, ...]

    @property
    def frame(self) -> pl.DataFrame:
        """One row a change: ``feature``, ``value``, ``to``, ``at``, ``result`` (as text), ``change``, ``slope``.

        A number with no slate, and so with nothing to be set to, has one row with its slope.
        """
        told = {c.feature for c in self.changes}
        rows: list[tuple[str | float | None, ...]] = [
            (c.feature, literal(c.value), literal(c.to), c.at, literal(c.result), c.change, self.slopes.get(c.feature))
            for c in self.changes
        ]
        rows += [(name, None, None, None, None, None, slope) for name, slope in self.slopes.items() if name not in told]
        names = {
            **dict.fromkeys(("feature", "value", "to", "at", "result"), pl.String),
            **dict.fromkeys(("change", "slope"), pl.Float64),
        }
        return pl.DataFrame(rows, schema=names, orient="row")

    def __repr__(self) -> str:
        lines = [f"{self.policy} gives {shown(self.value)}; one feature changed, all else as it is:"]
        width = max((len(c.feature) for c in self.changes), default=0)
        for c in self.changes:
            change = f"{c.change:+.4f}" if c.change is not None else ""
            lines.append(
                f"  {change:>10}  {c.feature:<{width}}  {shown(c.value)} -> {shown(c.to)} ({c.at}): {shown(c.result)}"
            )
        slopes = [f"{name} {slope:.4g}" for name, slope in self.slopes.items() if slope]
        return printable("\n".join([*lines, *([f"slopes: {', '.join(slopes)}"] if slopes else [])]))

    def _repr_html_(self) -> str:
        top = max((abs(c.change) for c in self.changes if c.change is not None and math.isfinite(c.change)), default=0)
        rows = "".join(
            f"<tr><td style='text-align:left'>{html.escape(c.feature)}</td>"
            f"<td style='text-align:right'>{html.escape(shown(c.value))}</td>"
            f"<td style='text-align:right'>{html.escape(shown(c.to))}</td><td>{html.escape(c.at)}</td>"
            f"<td style='text-align:right'>{html.escape(shown(c.result))}</td>"
            f"<td style='text-align:right'>{'' if c.change is None else f'{c.change:+.4f}'}</td>"
            f"<td>{_bar(c.change, top)}</td>"
            f"<td style='text-align:right'>{_slope(self.slopes.get(c.feature))}</td></tr>"
            for c in self.changes
        )
        alone = {name for name in self.slopes if name not in {c.feature for c in self.changes}}
        rows += "".join(
            f"<tr><td style='text-align:left'>{html.escape(name)}</td>{'<td></td>' * 6}"
            f"<td style='text-align:right'>{_slope(self.slopes[name])}</td></tr>"
            for name in sorted(alone)
        )
        heads = "".join(
            f"<th>{name}</th>" for name in ("feature", "value", "set to", "", "result", "change", "", "slope")
        )
        return (
            f"<div><p>{html.escape(self.policy)} gives <b>{html.escape(shown(self.value))}</b>; one feature changed, "
            f"all else as it is</p><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
        )


@dataclass(frozen=True)
class FeatureEffect:
    """One feature made the same for every item of a slate.

    ``moved`` is the mean absolute change of the score over items that have one before and after (None for strings);
    ``changed`` the share of items whose value changes at all; ``turned`` the share of pairs of items whose order turns,
    and ``lost`` how many of the best are no longer among them (None for strings).
    """

    feature: str
    to: Value
    moved: float | None
    changed: float
    turned: float | None
    lost: int | None


@dataclass(frozen=True)
class SlateSensitivity:
    """What the order of a slate owes to each feature: ``effects``, what turns most first. ``top`` is the size of the
    head.
    """

    policy: str
    items: int
    top: int
    effects: tuple[FeatureEffect, ...]

    @property
    def frame(self) -> pl.DataFrame:
        """One row a feature: ``feature``, ``to``, ``moved``, ``changed``, ``turned``, ``lost``."""
        return pl.DataFrame(
            [(e.feature, literal(e.to), e.moved, e.changed, e.turned, e.lost) for e in self.effects],
            schema={
                "feature": pl.String,
                "to": pl.String,
                "moved": pl.Float64,
                "changed": pl.Float64,
                "turned": pl.Float64,
                "lost": pl.Int64,
            },
            orient="row",
        )

    def __repr__(self) -> str:
        width = max([len(e.feature) for e in self.effects] + [7])
        lines = [
            f"{self.policy} over {self.items} items; one feature made the same for all:",
            f"  {'feature':<{width}}  {'moved':>8}  {'turned':>7}  {f'top {self.top} lost':>11}  set to",
        ]
        for e in self.effects:
            moved = "" if e.moved is None else f"{e.moved:.4f}"
            turned = f"{e.changed:.1%} new" if e.turned is None else f"{e.turned:.1%}"
            lost = "" if e.lost is None else str(e.lost)
            lines.append(f"  {e.feature:<{width}}  {moved:>8}  {turned:>7}  {lost:>11}  {shown(e.to)}")
        return printable("\n".join(lines))

    def _repr_html_(self) -> str:
        top = max((e.turned for e in self.effects if e.turned is not None), default=0.0)
        rows = "".join(
            f"<tr><td style='text-align:left'>{html.escape(e.feature)}</td>"
            f"<td style='text-align:right'>{html.escape(shown(e.to))}</td>"
            f"<td style='text-align:right'>{'' if e.moved is None else f'{e.moved:.4f}'}</td>"
            f"<td style='text-align:right'>{e.changed:.0%}</td>"
            f"<td style='text-align:right'>{'' if e.turned is None else f'{e.turned:.1%}'}</td>"
            f"<td>{_bar(e.turned, top)}</td>"
            f"<td style='text-align:right'>{'' if e.lost is None else e.lost}</td></tr>"
            for e in self.effects
        )
        heads = "".join(
            f"<th>{name}</th>"
            for name in ("feature", "set to", "mean |change|", "changed", "pairs turned", "", f"of the top {self.top}")
        )
        return (
            f"<div><p>{html.escape(self.policy)} over {self.items} items; one feature made the same for all</p>"
            f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
        )


def _slope(slope: float | None) -> str:
    return "" if slope is None else f"{slope:.4g}"


def _bar(value: float | None, top: float) -> str:
    if not value or not top or value != value:
        return ""
    share = min(100.0, 100 * abs(value) / top)
    side = "margin-left:auto;" if value < 0 else ""
    bar = f"<div style='{side}height:.8em;width:{share:.1f}%;background:{_BLUE if value > 0 else _RED}'></div>"
    left, right = (bar, "") if value < 0 else ("", bar)
    half = "<div style='width:5em;{}'>{}</div>"
    return (
        f"<div style='display:flex'>{half.format('border-right:1px solid rgba(128,128,128,.6)', left)}"
        f"{half.format('', right)}</div>"
    )

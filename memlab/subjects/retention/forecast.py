"""Forecasts: the retention and status of unused memories under one pack or several."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.arrays import Flags, Floats, Ints, Rows, Values
from memlab.kernel.base.clock import INSTANT, Micros, from_micros
from memlab.kernel.base.display import Displayed, Markup, clip, table
from memlab.kernel.base.printable import printable
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Moment, read_statuses
from memlab.kernel.schema import RECALLABLE, STATUSES
from memlab.kernel.state import State, to_datetimes
from memlab.subjects.drawing import CYCLE, GREY, OnPanels, add_legend, draw_panels, render_svg
from memlab.subjects.retention.upkeep import decode_words, evaluate_standing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The result of a forecast, its figure and its page.


# Limits of a figure and a table that people can read, and seconds per day.
_MOST_LINES = len(CYCLE)
_MOST_SHOWN = 12
_ACROSS = 3
_DAY = 86_400.0
_STYLES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)))
"""A line style per cycle of colours, so that lines differ without colour too."""


@dataclass(frozen=True)
class Forecast(Displayed):
    """The future retention and status of memories that are not used.

    A memory that does not decay has a retention of 1. Its half-life is the result of the pack's
    ``half-life`` policy: 1e300 for pinned memories under ``workbench``, and null where the policy
    gives null. Packs whose ``retention`` uses no half-life (``companion``, ``factgraph``, ``fsrs``,
    ``actr``) report ``base-half-life``.

    Attributes
    ----------
    at, until
        The beginning and the end, in UTC.
    packs
        The names and hashes of the packs.
    texts
        The ids and texts of the memories.
    frame
        One row per pack, memory and instant: pack, memory_id, at, retention (1 for a new memory), half_life
        (days), label and status.
    transitions
        One row per change: pack, memory_id, at (to the second), what (status or label), from and to.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember("The goat eats hay.")
    >>> future = lab.upkeep.forecast(1, "2100-01-01", points=3)
    >>> future.frame["retention"].len()
    3
    """

    at: datetime
    until: datetime
    packs: tuple[tuple[str, str], ...]
    texts: tuple[tuple[int, str], ...]
    frame: pl.DataFrame = field(repr=False)
    transitions: pl.DataFrame = field(repr=False)

    @checked
    def figure(self, *, axes: OnPanels | None = None) -> Figure:
        """Draw retention over time.

        Several memories have a panel per pack and a line per memory; a single memory has a line per
        pack. A dot marks a transition with its new status or label. A line is pale after its memory
        has left recall.

        Parameters
        ----------
        axes
            Matplotlib axes to draw on, one per panel; by default a new figure.

        Returns
        -------
        The matplotlib figure.

        Raises
        ------
        InputError
            If the number of axes differs from the number of panels.
        """
        return _draw_figure(self, axes)

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.packs)
        return printable(
            f"<Forecast of {len(self.texts):,} memories, {self.at:%Y-%m-%d %H:%M} to {self.until:%Y-%m-%d %H:%M} UTC, "
            f"under {names}: {self.transitions.height:,} transitions>"
        )

    def _display(self) -> object:
        """Return the figure and the table of changes for a notebook."""
        return _render_forecast(self)


def _draw_figure(future: Forecast, axes: Sequence[Axes] | None = None) -> Figure:
    """Draw the panels of a forecast; see ``Forecast.figure``."""
    packs, memories = [name for name, _ in future.packs], [id for id, _ in future.texts]
    is_single = len(memories) == 1 and len(packs) > 1
    lines = packs[:_MOST_LINES] if is_single else [str(id) for id in memories[:_MOST_LINES]]
    panels = [""] if is_single else packs
    columns = 2 if len(panels) == 4 else min(_ACROSS, len(panels))
    rows = -(-len(panels) // columns)

    def draw(panel_axes: Sequence[Axes]) -> None:
        """Draw the panels of a forecast and their legend."""
        for position, panel in enumerate(panel_axes):
            _draw_panel(panel, future, lines, packs[position], is_single)
            panel.set_title(f"Memory {memories[0]}" if is_single else panels[position], pad=8)
            if axes is not None or position + columns >= len(panels):
                panel.set_xlabel("days")
                panel.tick_params(labelbottom=True)
            if axes is not None or position % columns == 0:
                panel.set_ylabel("retention")
        hidden = (len(packs) if is_single else len(memories)) - len(lines)
        title = f"and {hidden:,} more, not drawn" if hidden > 0 else None
        if len(lines) > 1:
            add_legend(
                panel_axes,
                alone=axes is not None,
                ncols=4 if is_single else 2,
                title=title,
                fontsize=8.2,
                handlelength=1.8,
            )

    width = 4.8 if columns == 1 and not is_single else min(9.6, 3.4 * max(columns, 2))
    return draw_panels(
        draw,
        len(panels),
        shape=(rows, columns),
        width=width,
        height=0.7 + 2.4 * rows,
        axes=axes,
        sharex=True,
        sharey=True,
    )


def _draw_panel(axes: Axes, future: Forecast, lines: list[str], pack: str, is_single: bool) -> None:
    """Draw the lines of one panel."""
    for position, line in enumerate(lines):
        is_line = (
            pl.col("pack") == line
            if is_single
            else (pl.col("pack") == pack) & (pl.col("memory_id") == int(line))
        )
        rows = future.frame.filter(is_line)
        days = _days(rows["at"], future)
        retention = rows["retention"].fill_null(float("nan")).to_numpy()
        colour, style = CYCLE[position % len(CYCLE)], _STYLES[position % len(_STYLES)]
        name = line if is_single else f"{line}: {clip(dict(future.texts)[int(line)], 44)}"
        in_recall = rows["status"].is_in(RECALLABLE).to_numpy()
        shared: dict[str, Any] = {"color": colour, "linewidth": 1.8, "linestyle": style}
        axes.plot(
            days,
            np.where(_extend_runs(in_recall), retention, np.nan),
            label=_legend_label(name),
            **shared,
        )
        axes.plot(days, np.where(in_recall, np.nan, retention), alpha=0.3, clip_on=False, **shared)
        changes = future.transitions.filter(is_line & pl.col("from").is_not_null())
        if not changes.height:
            continue
        change_days = _days(changes["at"], future)
        axes.scatter(
            change_days,
            np.interp(change_days, days, retention),
            s=16,
            color=colour,
            zorder=3,
            clip_on=False,
        )
        if len(lines) == 1:
            _annotate_changes(
                axes,
                change_days,
                np.interp(change_days, days, retention),
                changes["to"].to_list(),
                colour,
            )
    axes.set_ylim(bottom=0)
    axes.margins(x=0.02)
    axes.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)


def _annotate_changes(
    axes: Axes, days: Floats, retention: Floats, words: list[str], colour: str
) -> None:
    """Write new statuses and labels next to the dots of a drawn line."""
    for x in np.unique(days):
        same_day = np.flatnonzero(days == x)
        label = axes.annotate(
            ", ".join(words[position] for position in same_day),
            (float(x), float(retention[same_day[0]])),
            xytext=(5, 4),
            textcoords="offset points",
            fontsize=8.2,
            color=colour,
        )
        label.set_parse_math(False)


def _extend_runs(inside: Flags) -> Flags:
    """Return a mask in which each run of true values lasts one instant longer."""
    extended = inside.copy()
    extended[1:] |= inside[:-1]
    return extended


def _days(at: pl.Series, future: Forecast) -> Floats:
    """Return the number of days since the beginning of a forecast."""
    start = pl.Series([future.at]).cast(INSTANT).to_physical()[0]
    return np.asarray((at.to_physical() - start).to_numpy() / 1e6 / _DAY)


def _legend_label(name: str) -> str:
    """Return a name as a legend label that matplotlib does not omit."""
    return f" {name}" if name.startswith("_") else name


def _render_forecast(future: Forecast) -> object:
    """Return the figure and the table of changes for a notebook."""
    with warnings.catch_warnings():
        # the font of the page has glyphs that matplotlib's default font lacks
        warnings.filterwarnings(
            "ignore", message="Glyph .* missing from font", category=UserWarning
        )
        drawing = render_svg(_draw_figure(future), name="forecast")
    first_transitions = future.transitions.head(_MOST_SHOWN)
    when, old = pl.col("at").dt.strftime("%Y-%m-%d %H:%M"), pl.col("from").fill_null("none")
    rows = first_transitions.select("pack", "memory_id", when, "what", old, "to").iter_rows()
    headings = ("pack", "memory", "at", "what", "from", "to")
    hidden = future.transitions.height - first_transitions.height
    notes = [f"and {hidden:,} more transitions"] if hidden > 0 else []
    listed = table("", headings, rows, notes=notes)
    face = "--face:var(--jp-content-font-family,system-ui,sans-serif)"
    return Markup(f'<div style="max-width:62em;{face}">{drawing}</div>'), listed


Instants = Ints


_MOST_VALUES = 5_000_000
"""Maximum rows of a frame, about 300 MB."""

_FINEST: Micros = 1_000_000
"""The resolution of transitions: one second."""

_MOST_MOVES = 16
"""Maximum transitions of one memory between two instants; further ones get the second instant."""

# An array, because a forecast looks up the status of every memory at every step.
_IN_RECALL = np.array([word in RECALLABLE for word in STATUSES])


def compute_forecast(
    state: State,
    packs: Sequence[Pack],
    rows: Rows,
    now: Micros,
    until: Micros,
    *,
    points: int = 100,
) -> Forecast:
    """Forecast `rows`, which ascend, under each pack at `points` instants.

    Both `now` and `until` are included. Nothing is changed. Upkeep is assumed to follow at once:
    status and label are the results of ``promote``, ``forget`` and ``label`` at each instant for
    recallable memories; others keep theirs. A transition that is undone between two instants is not
    visible.
    """
    # The checks come first, because a large forecast takes minutes.
    if until <= now:
        raise InputError(
            f"until= must be after the beginning of the forecast, but {from_micros(until):%Y-%m-%d %H:%M:%S} is not after "
            f"{from_micros(now):%Y-%m-%d %H:%M:%S} UTC."
        )
    if not packs:
        raise InputError("A forecast needs at least one pack, and packs= is empty.")
    if len(rows) * points * len(packs) > _MOST_VALUES:
        raise InputError(
            f"{len(rows):,} memories at {points:,} instants under {len(packs)} packs exceed {_MOST_VALUES:,} values. "
            "Reduce the memories, points= or packs=."
        )
    step = (until - now) / (points - 1)
    instants = [*dict.fromkeys(now + round(step * number) for number in range(points - 1)), until]
    walks = [
        _walk_pack(state, pack, name, rows, instants)
        for pack, name in zip(packs, _distinct_names(packs), strict=True)
    ]
    return Forecast(
        at=from_micros(now),
        until=from_micros(until),
        packs=tuple(
            (name, pack.hash) for name, pack in zip(_distinct_names(packs), packs, strict=True)
        ),
        texts=tuple(
            (row + 1, text or "")
            for row, text in zip(rows.tolist(), state.texts.to_list(rows), strict=True)
        ),
        frame=pl.concat([frame for frame, _ in walks]),
        transitions=pl.concat([changes for _, changes in walks]),
    )


def _distinct_names(packs: Sequence[Pack]) -> list[str]:
    """Return the names of packs, with part of the hash if two packs share a name."""
    names = [pack.name for pack in packs]
    return [
        f"{pack.name} [{pack.hash[:6]}]" if names.count(pack.name) > 1 else pack.name
        for pack in packs
    ]


@dataclass(frozen=True)
class _Values:
    """The status and label of some memories at an instant, as codes.

    The label is a code of ``words``, -1 for none.
    """

    rows: Rows
    status: Ints
    label: Ints

    def at(self, positions: Values) -> _Values:
        """Return the statuses and labels of the memories at `positions`."""
        return _Values(self.rows[positions], self.status[positions], self.label[positions])

    def where(self, mask: Flags, other: _Values) -> _Values:
        """Return these values where `mask` is true, and values of `other` elsewhere."""
        return _Values(
            self.rows,
            np.where(mask, self.status, other.status),
            np.where(mask, self.label, other.label),
        )

    @classmethod
    def joined(cls, parts: Sequence[_Values]) -> _Values:
        """Concatenate several sets of values."""
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.status for part in parts]),
            np.concatenate([part.label for part in parts]),
        )

    def differs(self, other: _Values) -> Flags:
        """Return a mask of memories whose status or label differs in `other`."""
        return np.asarray((self.status != other.status) | (self.label != other.label))


@dataclass(frozen=True)
class _Step:
    """The values of some memories just after ``since`` and at ``until``."""

    old: _Values
    new: _Values
    since: Instants
    until: Instants

    @classmethod
    def joined(cls, steps: Sequence[_Step]) -> _Step:
        """Concatenate several sets of steps."""
        return cls(
            _Values.joined([step.old for step in steps]),
            _Values.joined([step.new for step in steps]),
            np.concatenate([step.since for step in steps]),
            np.concatenate([step.until for step in steps]),
        )


class _Walk:
    """The evaluation of one pack over time, with the label words that occurred."""

    def __init__(self, state: State, pack: Pack) -> None:
        self.state, self.pack = state, pack
        self.words: list[str] = []

    def begun(self, rows: Rows) -> _Values:
        """Return the present statuses and labels of memories."""
        labels = self.state.names["label"]
        self.words = list(labels.vocabulary)
        return _Values(rows, read_statuses(self.state, rows), labels.codes[rows].astype(np.int64))

    def on(self, values: _Values, now: Micros | Instants) -> _Values:
        """Return the statuses and labels at `now`: one instant, or one instant per memory."""
        in_recall = np.flatnonzero(_IN_RECALL[values.status])
        if not len(in_recall):
            return values
        instants = now if isinstance(now, int) else now[in_recall]
        new_standing = evaluate_standing(
            self.state, self.pack, values.rows[in_recall], instants, status=values.status[in_recall]
        )
        for word in new_standing.words:
            if word not in self.words:
                self.words.append(word)
        codes = np.array([*map(self.words.index, new_standing.words), -1])
        status, label = values.status.copy(), values.label.copy()
        status[in_recall] = new_standing.status
        label[in_recall] = np.where(
            new_standing.label >= 0, codes[new_standing.label], label[in_recall]
        )
        return _Values(values.rows, status, label)


def _walk_pack(
    state: State, pack: Pack, name: str, rows: Rows, instants: Sequence[Micros]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the forecast and the changes of status and label under one pack."""
    walk, count = _Walk(state, pack), len(rows)
    values, before = walk.begun(rows), instants[0] - 1
    numbers: list[tuple[Values, Values, _Values]] = []
    steps: list[_Step] = []
    for now in instants:
        after = walk.on(values, now)
        positions = np.flatnonzero(after.differs(values))
        steps.append(
            _Step(
                values.at(positions),
                after.at(positions),
                np.full(len(positions), before),
                np.full(len(positions), now),
            )
        )
        values, before = after, now
        moment = Moment(state, pack, rows, now)
        numbers.append((moment.retention(), moment.half_life(), values))
    located_steps = _locate_transitions(walk, steps)
    words = walk.words
    frame = pl.DataFrame(
        [
            pl.Series("pack", [name], dtype=pl.String).new_from_index(0, count * len(instants)),
            pl.Series("memory_id", np.tile(rows + 1, len(instants)), dtype=pl.Int64),
            to_datetimes("at", np.repeat(np.array(instants, dtype=np.int64), count)),
            pl.Series(
                "retention",
                np.concatenate([retention for retention, _, _ in numbers]),
                dtype=pl.Float64,
            ).fill_nan(None),
            pl.Series(
                "half_life",
                np.concatenate([half_life for _, half_life, _ in numbers]),
                dtype=pl.Float64,
            ).fill_nan(None),
            decode_words(
                np.concatenate([values_then.label for _, _, values_then in numbers]), words
            ).alias("label"),
            decode_words(
                np.concatenate([values_then.status for _, _, values_then in numbers]), STATUSES
            ).alias("status"),
        ]
    )
    parts = [pl.DataFrame(schema=_MOVED)]
    for step in located_steps:
        for column, old_codes, new_codes, vocabulary in (
            ("status", step.old.status, step.new.status, STATUSES),
            ("label", step.old.label, step.new.label, words),
        ):
            positions = np.flatnonzero(old_codes != new_codes)
            parts.append(
                pl.DataFrame(
                    [
                        pl.Series("pack", [name], dtype=pl.String).new_from_index(
                            0, len(positions)
                        ),
                        pl.Series("memory_id", step.old.rows[positions] + 1, dtype=pl.Int64),
                        to_datetimes("at", step.until[positions]),
                        pl.Series("what", [column], dtype=pl.String).new_from_index(
                            0, len(positions)
                        ),
                        decode_words(old_codes[positions], vocabulary).alias("from"),
                        decode_words(new_codes[positions], vocabulary).alias("to"),
                    ]
                )
            )
    by_memory = frame.sort("memory_id", "at", maintain_order=True)
    return by_memory, pl.concat(parts).sort("memory_id", "at", maintain_order=True)


# The columns of transitions.
_MOVED: dict[str, Any] = {
    "pack": pl.String,
    "memory_id": pl.Int64,
    "at": INSTANT,
    "what": pl.String,
    "from": pl.String,
    "to": pl.String,
}


def _locate_transitions(walk: _Walk, steps: Sequence[_Step]) -> list[_Step]:
    """Find the instants at which statuses or labels change between two time steps.

    All memories are bisected at once.
    """
    located: list[_Step] = []
    remaining = _Step.joined(steps)
    for _ in range(_MOST_MOVES):
        if not len(remaining.old.rows):
            return located
        lower, upper = remaining.since.copy(), remaining.until.copy()
        # a transition at the very end of a step is not visible inside it, so the end counts as its instant
        while (unresolved := np.flatnonzero(upper - lower > _FINEST)).size:
            middle = lower[unresolved] + (upper[unresolved] - lower[unresolved]) // 2
            has_changed = walk.on(remaining.old.at(unresolved), middle).differs(
                remaining.old.at(unresolved)
            )
            upper[unresolved[has_changed]], lower[unresolved[~has_changed]] = (
                middle[has_changed],
                middle[~has_changed],
            )
        is_end = upper == remaining.until
        new = walk.on(remaining.old, upper).where(~is_end, remaining.new)
        located.append(_Step(remaining.old, new, lower, upper))
        unfinished = np.flatnonzero(new.differs(remaining.new))
        remaining = _Step(
            new.at(unfinished),
            remaining.new.at(unfinished),
            upper[unfinished],
            remaining.until[unfinished],
        )
    return [*located, remaining]

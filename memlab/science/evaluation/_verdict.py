"""``memlab.verdict``: which is better, the live pack or its challenger, at any look.

While a pack is challenged, what only one of the two would show is shown with a known probability, and the rewards of
each recall give one unbiased observation of the difference: the rewards of what only the challenger would show, each
over its probability, less those of what only the live pack would. Where whole heads are shown (design "ab") it is the
reward of the recall, less what recalls earned so far, over the probability of the head that was shown; nothing is then
assumed of places, or of how items depend on one another. A recall enters once, when its horizon has closed.
The interval is a confidence sequence: one may look every day, and stop at any. It is for the mean, over the recalls so
far, of what each was worth given those before it; each counts alike, however large its head. Beside it stands the
interval for a single look that was planned.

The error of all verdicts of a log together is at most 1 - ``level``. Each comparison (a challenger's version against a
live version, by whole heads or by items) has a share of it that is fixed when the comparison begins: the k-th that the
log began has 6 / (pi k)^2 of it, and these shares sum to 1. So no later challenge changes an earlier verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.display import Columns, Markup, Report, Table, format_rows
from memlab.kernel.base.printable import printable
from memlab.kernel.slates import Slates
from memlab.kernel.version import __version__
from memlab.science.evaluation._duels import (
    Course,
    Duel,
    Seen,
    answer_rate,
    by_items,
    by_recalls,
    duels_of,
)
from memlab.science.evaluation._intervals import Estimate, Floats, Sample, cluster_sums
from memlab.science.evaluation._log import Horizon, Missing, horizon_micros, read_log
from memlab.science.evaluation._measure import (
    Credited,
    Tests,
    compare,
    credited_note,
    gather,
    head_support,
    known_features,
    measure,
    recalibrate,
)
from memlab.science.evaluation._prepared import (
    HasSlates,
    Settings,
    check_settings,
    check_silence,
    feature_names,
)
from memlab.science.evaluation._sequence import level_of, recalls_to_end, sequence
from memlab.science.evaluation._tests import Facts, Gate, arms_p, gates, rounded, untested_sentence
from memlab.subjects.drawing import Draw, OnAxes, draw_figure, draw_svg, render_page, write_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Verdict", "Verdicts", "verdict"]


@dataclass(frozen=True)
class Verdict:
    """One challenger against the live pack, over the recalls while it was one.

    ``difference``: the challenger's reward a recall less the live pack's, with the interval that holds at every look;
    ``planned`` the same for one look. ``better`` is the name of the better pack, None while they are not told apart;
    ``since`` the time of the recall by which it was. ``closed`` are the gates that withhold a verdict, ``untested``
    those that this log cannot test. ``number`` counts the comparisons that the log had begun with this one, and
    ``level`` is the confidence with which the interval holds at every look, fixed by that number. ``needed`` is how
    many recalls from the beginning would tell them apart four times out of five if the difference is what it seems;
    None where no number would.
    """

    challenger: str
    live: str
    better: str | None
    difference: Estimate
    planned: Estimate | None
    recalls: int
    needed: int | None
    unsupported: float
    closed: tuple[Gate, ...]
    since: Any
    faster: str
    track: pl.DataFrame = field(repr=False)
    """A row a recall (or block): ``at``, ``recalls``, ``difference``, ``low``, ``high``."""
    untested: tuple[Gate, ...] = ()
    number: int = 1
    level: float = math.nan

    @property
    def sentence(self) -> str:
        """What a person can act on, and the untested gates that it rests on."""
        return (
            self._finding
            if self.closed
            else f"{self._finding} {untested_sentence(self.untested)}".rstrip()
        )

    @property
    def _finding(self) -> str:
        gap = self.difference
        span = f"[{gap.low:+.2f}, {gap.high:+.2f}]"
        if self.closed:
            return f"No verdict on {self.challenger}: {self.closed[0]}"
        if self.better is not None:
            worse, advice = self.live, f"Install {self.challenger}."
            if self.better == self.live:
                worse, advice = self.challenger, f"Keep {self.live}."
                # of the better less the worse, as the value
                span = f"[{-gap.high:+.2f}, {-gap.low:+.2f}]"
            return (
                f"{self.better} is better than {worse} by {abs(gap.value):.2f} rewards a recall {span}, "
                f"after {self.recalls:,} recalls. {advice}"
            )
        told = f"{self.challenger} and {self.live} are not told apart after {self.recalls:,} recalls: {gap.value:+.2f}"
        if self.needed is None:
            return f"{told} {span}. {self.faster}"
        more = max(self.needed - self.recalls, 1)
        return f"{told} {span}. About {rounded(more)} more would do at this rate. {self.faster}".rstrip()


@dataclass(frozen=True, repr=False)
class Verdicts(Report):
    """One verdict for each challenger, and the settings by which they were found."""

    verdicts: tuple[Verdict, ...]
    settings: Settings
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.verdicts)

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    @checked
    def __getitem__(self, challenger: str) -> Verdict:
        for one in self.verdicts:
            if one.challenger == challenger:
                return one
        raise UnknownName("challenger", challenger, [one.challenger for one in self.verdicts])

    @cached_property
    def frame(self) -> pl.DataFrame:
        """A row a challenger.

        ``difference``, ``low`` and ``high`` (at every look), ``planned_low`` and ``planned_high`` (one look),
        ``level`` (of the interval at every look), ``recalls``, ``needed``, ``unsupported``, ``untested`` (names of the
        untested gates), ``better``, ``sentence``.
        """
        rows = [
            {
                "challenger": one.challenger,
                "live": one.live,
                "difference": one.difference.value,
                "low": one.difference.low,
                "high": one.difference.high,
                "planned_low": None if one.planned is None else one.planned.low,
                "planned_high": None if one.planned is None else one.planned.high,
                "level": one.level,
                "recalls": one.recalls,
                "needed": one.needed,
                "unsupported": one.unsupported,
                "untested": ", ".join(gate.name for gate in one.untested),
                "better": one.better,
                "sentence": one.sentence,
            }
            for one in self.verdicts
        ]
        overrides = {"planned_low": pl.Float64, "planned_high": pl.Float64, "needed": pl.Int64}
        return pl.DataFrame(rows, schema_overrides=overrides, infer_schema_length=None)

    def _table(self) -> Table:
        columns: Columns = (
            ("challenger", "{challenger}"),
            (f"to {self.verdicts[0].live}", "{difference:+.3f}"),
            ("at every look", "[{low:+.3f}, {high:+.3f}]"),
            ("one planned look", "[{planned_low:+.3f}, {planned_high:+.3f}]"),
            ("recalls", "{recalls:,}"),
            ("needed", lambda row: "-" if row["needed"] is None else rounded(row["needed"])),
            ("unsupported", "{unsupported:.0%}"),
            ("untested gates", "{untested}"),
            ("better", "{better}"),
        )
        return Table(
            "", *format_rows(self.frame.iter_rows(named=True), columns), self.notes, left=(0, 7, 8)
        )

    def _display(self) -> object:
        return [one.sentence for one in self.verdicts], self._table()

    def to_dict(self) -> dict[str, Any]:
        """The frame and the notes, as JSON values; each closed and each untested gate with its reason."""
        rows = self.frame.to_dicts()
        for row, one in zip(rows, self.verdicts, strict=True):
            row |= {
                "withheld": [str(gate) for gate in one.closed],
                "untested": [{"gate": gate.name, "reason": str(gate)} for gate in one.untested],
                "faster": one.faster,
            }
        return {"verdicts": rows, "notes": list(self.notes)}

    @property
    def withheld(self) -> tuple[tuple[str, Gate], ...]:
        """Each closed gate with the name of its challenger."""
        return tuple((one.challenger, gate) for one in self for gate in one.closed)

    @property
    def untested(self) -> tuple[tuple[str, Gate], ...]:
        """Each untested gate with the name of its challenger."""
        return tuple((one.challenger, gate) for one in self for gate in one.untested)

    @checked
    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML file, and return its path. InputError where that is not possible."""
        settings, table = self.settings, self._table()
        facts = [
            ("recalls", f"{max(one.recalls for one in self):,}"),
            ("level", f"{settings.level:.0%}"),
        ]
        facts += [
            ("missing feedback counts as", settings.missing or "not stated"),
            ("blocks", settings.cluster or "each recall"),
        ]
        html = render_page(
            Path(__file__).parent / "verdict.html",
            {"safe_text": printable},
            verdicts=self,
            facts=facts,
            figure=Markup(draw_svg(self._draw(), name="track", width=7.6, height=3.2)),
            head=table.heads,
            rows=table.rows,
            version=__version__,
        )
        return write_page(html, path)

    @checked
    def figure(self, *, axes: OnAxes | None = None) -> Figure:
        """The difference to the live pack as the recalls came in, with the interval that holds at every look.

        With ``axes`` it is drawn there, and their figure is returned.
        """
        return draw_figure(self._draw(), width=7.6, height=3.2, axes=axes)

    def _draw(self) -> Draw:
        from memlab.science.evaluation._figures import draw_sequences

        return draw_sequences({one.challenger: one.track for one in self}, self.verdicts[0].live)


@checked
def verdict(
    slates: Slates | HasSlates,
    challenger: str | None = None,
    *,
    horizon: Horizon = None,
    missing: Missing | None = None,
    cluster: str | None = None,
    level: float = 0.95,
    reward_range: tuple[float, float] | None = None,
) -> Verdicts:
    """Which is better, the live pack or each of its challengers; valid at every look.

    ``slates`` of a lab in which ``lab.challenge`` was called, or the lab. ``horizon`` and ``missing`` are those of
    ``memlab.evaluate``; a recall whose horizon is open is not counted yet. ``cluster`` ("session", "day", a column of
    the decisions): recalls that belong together enter as one block; each by itself unless given.

    All verdicts of a log hold together at ``level``. The k-th comparison that the log began has 6 / (pi k)^2 of the
    error 1 - ``level``: .61 of it for the first, .15 for the second, .07 for the third. The share is fixed when the
    comparison begins, so another challenge, started or ended later, never changes a verdict. A challenger begins
    another comparison when it or the live pack changes, and goes on with the old one when both are as they were.

    A verdict is about one step: what these recalls would have earned. What becomes of a memory that lives under another
    pack, ``memlab.trial`` tells. Raises InputError where nothing was challenged, UnknownName for a challenger.

    >>> memlab.verdict(lab, horizon="1d", missing="zero")                                      # doctest: +SKIP
    """
    slates = slates if isinstance(slates, Slates) else slates.slates()
    bounds = (slates.reward_range or (0.0, 1.0)) if reward_range is None else reward_range
    settings = check_settings(horizon, missing, "snips", level, bounds, None, cluster)
    log = read_log(
        slates,
        horizon=horizon_micros(horizon),
        zero=missing == "zero",
        reward_range=settings.reward_range,
        cluster=cluster,
    )
    if missing == "inverse":
        raise InputError(
            "A model of who answers is learned from the whole log, and a sequence may look at the past alone: say "
            'missing="censor", "bounds" or "zero"; memlab.evaluate knows "inverse".'
        )
    duels = duels_of(log, challenger)
    if missing is None:
        check_silence(log)
    schema, names = slates.candidates.collect_schema(), feature_names(slates)
    found, more = zip(*(_judged(duel, settings, names, schema) for duel in duels), strict=True)
    notes = [*log.notes, *dict.fromkeys(note for notes in more for note in notes)]
    if log.open:
        notes.append(f"{log.open:,} recalls whose horizon had not closed are left out.")
    notes += [note for duel in duels for note in duel.notes]
    notes.append(
        "One step: what these recalls would have earned. memlab.trial lives on with each pack."
    )
    return Verdicts(found, settings, tuple(notes))


@dataclass(frozen=True)
class _Weighed:
    """What the recalls of a duel say: observations, the interval of one planned look, and what speaks against them."""

    seen: Seen
    planned: Estimate | None
    unsupported: float
    gates: tuple[Gate, ...]
    credited: Credited | None


def _judged(
    duel: Duel, settings: Settings, names: Sequence[str], schema: pl.Schema
) -> tuple[Verdict, list[str]]:
    """The verdict, and what is to be said of rewards that were read from answers."""
    level = level_of(duel.number, settings.level)
    log, unit = duel.log, settings.reward_range[1] - settings.reward_range[0]
    course = Course.of(log, clustered=settings.cluster is not None)
    rate = answer_rate(log, course) if settings.missing == "censor" else np.ones(len(log))
    weigh = _by_items if duel.shares is None else _by_recalls
    weighed = weigh(duel, settings, known_features(log, names, schema), course, rate)
    columns, sizes = (
        [course.sums(values) for values in weighed.seen],
        course.sizes.astype(np.float64),
    )
    found = sequence(
        columns[0],
        columns[1],
        floor=columns[2],
        ceiling=columns[3],
        sizes=sizes,
        unit=unit,
        level=level,
    )
    at = log.decisions["at"][course.last] if "at" in log.decisions.columns else None
    rested_on = [gate for gate in weighed.gates if gate.name not in _NOT_RESTED_ON]
    closed = tuple(gate for gate in rested_on if gate.closed)
    better, since = None, None
    if not closed and (found.low[-1] > 0 or found.high[-1] < 0):
        better = duel.challenger if found.low[-1] > 0 else duel.live
        before = np.flatnonzero(~(found.low > 0 if found.low[-1] > 0 else found.high < 0))
        since = None if at is None else at[int(before[-1]) + 1 if len(before) else 0]
    pace = _Pace.of(columns, sizes, unit, level)
    track = pl.DataFrame(
        {
            **({} if at is None else {"at": at}),
            "recalls": np.cumsum(sizes).astype(np.int64),
            "difference": found.mean,
            "low": found.low,
            "high": found.high,
        }
    )
    more = credited_note(log, weighed.credited)
    if weighed.credited is not None:
        which = (
            "The interval that holds at every look takes"
            if duel.shares is None
            else "Both intervals take"
        )
        more.append(f"{which} the line of attributed rewards for given.")
    found_so_far = Verdict(
        challenger=duel.challenger,
        live=duel.live,
        better=better,
        difference=Estimate(
            float(found.mean[-1]), float(found.low[-1]), float(found.high[-1]), math.nan, math.nan
        ),
        planned=weighed.planned,
        recalls=len(log),
        needed=pace.needed,
        unsupported=weighed.unsupported,
        closed=closed,
        since=since,
        faster="" if better else _faster(pace, weighed.unsupported, duel, course),
        track=track,
        untested=tuple(gate for gate in rested_on if gate.untested),
        number=duel.number,
        level=level,
    )
    return found_so_far, more


def _by_items(
    duel: Duel, settings: Settings, features: Floats, course: Course, rate: Floats
) -> _Weighed:
    log = duel.log
    evidence = gather(log, settings, features, answered=rate[log.recall])
    compared = compare(evidence, duel.own, duel.base)
    measured = measure(evidence, compared, Tests(log, settings, features))
    seen = by_items(duel, evidence, compared, rate, settings)
    return _Weighed(
        seen, compared.difference, measured.unsupported, measured.gates, evidence.credited
    )


def _by_recalls(
    duel: Duel, settings: Settings, features: Floats, course: Course, rate: Floats
) -> _Weighed:
    """Whole heads: neither places nor what else is shown matter, and no sum over items is made."""
    assert duel.shares is not None
    log, credited = recalibrate(duel.log)
    seen = by_recalls(duel, log, credited, course, rate, settings)
    sums = cluster_sums([np.ones(len(log)), *seen[:2]], log.cluster, log.clusters)
    sample = Sample(sums, level=settings.level)
    planned = sample.estimate(
        *(lambda total, at=at: total[..., at] / total[..., 0] for at in (1, 2))
    )
    tests, (unsupported, unknown, _) = (
        Tests(duel.log, settings, features),
        head_support(log, duel.own),
    )
    facts = Facts(
        unknown=unknown,
        clusters=log.clusters,
        recalls=len(log),
        balance=arms_p(np.column_stack([duel.arm > 0, duel.arm < 0]), duel.shares),
        silence=tests.silence,
    )
    return _Weighed(seen, planned, unsupported, gates(facts), credited)


_NOT_RESTED_ON = ("answered probes", "influence", "clusters", "independence")
"""Gates of an interval for one look, which a sequence does without."""


@dataclass(frozen=True)
class _Pace:
    """How many recalls like these would bring a sequence to a verdict; what lies between the bounds does not shrink.

    ``wide`` are the blocks that may fall more than twice as far below the mean as half of all, ``reach`` f64[blocks]
    how far that is, and ``without`` the number if there were none of them.
    """

    needed: int | None
    wide: NDArray[np.int64]
    reach: Floats
    without: int | None

    @classmethod
    def of(cls, columns: Sequence[Floats], sizes: Floats, unit: float, level: float) -> _Pace:
        least, most, floor, ceiling = columns
        if np.sign(least.sum()) != np.sign(most.sum()):
            return cls(None, np.zeros(0, dtype=np.int64), least, None)
        values, bottom = (least, floor) if least.sum() > 0 else (-most, -ceiling)
        reach = values.mean() - bottom

        def needed(chosen: NDArray[np.bool_]) -> int | None:
            if not chosen.any():
                return None
            blocks = recalls_to_end(values[chosen], bottom[chosen], unit=unit, level=level)
            return None if blocks is None else math.ceil(blocks * sizes[chosen].mean())

        wide = reach > 2 * np.median(reach)
        return cls(
            needed(np.ones(len(wide), dtype=np.bool_)), np.flatnonzero(wide), reach, needed(~wide)
        )


def _faster(pace: _Pace, unsupported: float, duel: Duel, course: Course) -> str:
    needed, without = pace.needed, pace.without
    if needed is None and unsupported > 0.02:
        return (
            f"{unsupported:.0%} of what {duel.challenger} would show may not be shown under {duel.live}: only a trial "
            "(memlab.trial) or installing it for a while tells."
        )
    if len(pace.wide) and without is not None and (needed is None or 1.5 * without < needed):
        widest = int(pace.wide[np.argmax(pace.reach[pace.wide])])
        which = (
            "recall" if len(course.first) == len(course.order) else "block that ends with recall"
        )
        return (
            f"Large heads delay it: the {which} {duel.log.decisions['decision'][int(course.last[widest])]} may change "
            f"the sum by {pace.reach[widest]:.0f} rewards, {np.median(pace.reach):.0f} are usual. Without the "
            f"{len(pace.wide):,} largest about {rounded(without)} recalls would do: ask with a smaller limit."
        )
    if needed is None:
        return "The difference, if there is one, is too small to be told in reasonable time."
    draws = math.inf if duel.shares is not None else float(duel.draws.max(initial=0.0))
    # without a draw the live pack shows all that the challenger would show: nothing is extra
    if not 0 < draws <= 2:
        return ""
    return f"Showing {draws + 1:.0f} extra items (extra={draws + 1:.0f}) would be faster."

"""``memlab.verdict``: decide whether a challenger or the live pack is better.

The decision stays valid at every interim analysis.

While a pack is challenged, items that only one of the two packs would show are shown with a known
probability. The rewards of each recall then give one unbiased observation of the difference. It is
the sum of the rewards of the challenger's items, each divided by its probability, minus the same
sum for the live pack's items.

With the design "ab" a recall shows the results of one pack as a whole. The observation is then the
reward of the recall minus the mean reward of earlier recalls, divided by the probability of the
results shown. This needs no assumption on positions, or on how rewards of items depend on each
other. A recall enters once, when its horizon has closed.

The interval is a confidence sequence: it stays valid if it is read every day and the comparison
stops at any time. The estimand is the mean, over the recalls so far, of the difference that is
expected given earlier recalls. Each recall has equal weight. Reports also show the interval of a
fixed-sample test.

All verdicts of a lab hold together: the probability that any of them is wrong is at most 1 -
``level``. Each comparison has a share of that error, which is fixed when the comparison begins, and
which each of its recalls states. The k-th comparison has the share 6 / (pi k)^2, and these shares
sum to 1. So neither a later challenge nor a part of the log changes a verdict.
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

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.arrays import NO_ROWS, Flags, Floats, Ints
from memlab.kernel.base.display import Columns, Markup, Report, Table, format_rows
from memlab.kernel.base.printable import count_of, printable
from memlab.kernel.slates import Slates
from memlab.kernel.version import __version__
from memlab.science.evaluation._basis import (
    SEQUENCE,
    Basis,
    describe_basis,
    find_basis,
    list_groups,
)
from memlab.science.evaluation._credited import Credited, calibrate_rewards, credited_note
from memlab.science.evaluation._duels import (
    Course,
    Duel,
    Observations,
    answer_rate,
    find_duels,
    observe_items,
    observe_recalls,
)
from memlab.science.evaluation._evidence import gather_evidence
from memlab.science.evaluation._influence import Influence, level_without
from memlab.science.evaluation._intervals import Estimate, Sample, cluster_sums
from memlab.science.evaluation._item_tests import Tests
from memlab.science.evaluation._log import Horizon, Log, Missing, horizon_micros, read_log
from memlab.science.evaluation._measure import compare, measure, measure_support, repeated_note
from memlab.science.evaluation._observed import Observed, observe
from memlab.science.evaluation._prepared import (
    HasSlates,
    Settings,
    check_missing,
    check_settings,
    feature_names,
)
from memlab.science.evaluation._reward_model import select_features
from memlab.science.evaluation._sequence import Bounds, Process, recalls_to_end
from memlab.science.evaluation._tests import (
    GATE_TITLES,
    GATES,
    Facts,
    Gate,
    arms_p,
    format_count,
    format_signed,
    gates,
    untested_sentence,
)
from memlab.subjects.drawing import (
    Draw,
    OnAxes,
    draw_figure,
    draw_svg,
    render_latex,
    render_page,
    write_page,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Verdict:
    """The comparison of one challenger with the live pack.

    Parameters
    ----------
    challenger, live
        The names of the two packs.
    better
        The name of the better pack; None while they are indistinguishable.
    difference
        The challenger's reward per recall minus the live pack's reward per recall, with the
        anytime-valid interval.
    planned
        The same difference with the interval of a fixed-sample test.
    recalls
        The number of recalls of the comparison.
    needed
        The forecast number of recalls, counted from the beginning of the comparison, that gives a
        verdict with a power of 80%. None if no number of recalls would.
    unsupported
        The share of the challenger's items that no recall could show.
    closed, untested
        The gates that withhold a verdict, and the gates that the log cannot test.
    since
        The time of the recall from which on the verdict holds.
    faster
        Advice on how to reach a verdict sooner; "" if there is none.
    track
        A row for each recall or block: ``at``, ``recalls``, ``difference``, ``low`` and ``high``.
    number
        The number of this comparison in the lab, from 1.
    level
        The confidence level of the anytime-valid interval, fixed when the comparison began.
    same
        The share of recalls in which both packs show the same items.
    influence
        A row for each session, user, agent, project and day that the log names, with the difference
        if that group is left out, and its anytime-valid bounds. Columns: ``kind``, ``group``,
        ``recalls``, ``share`` (of the recalls), ``difference``, ``low``, ``high`` and ``better``.
        The error of these bounds is four times 1 - ``level`` of the evaluation.
    rests_on
        A sentence that names a group without which there is no verdict; "" if there is none.
    basis
        What the verdict rests on: the design and its probabilities, the range of rewards, missing
        feedback, all gates, and the hashes of the packs.
    preference
        Whether the challenge was a draft without extra items. A draft shows the better half of what
        each pack alone would show. ``difference`` is then the credit per recall, which says which
        pack is better and not by how much.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> memories = lab.remember(["The deploy day is Friday.", "Tests run with pytest."])
    >>> challenge = lab.challenge("companion", reason="an example")
    >>> for number in range(3):
    ...     hits = lab.recall("When do we deploy?", limit=1)
    ...     judgement = lab.feedback(hits[0], "success")
    >>> (verdict,) = lab.verdict(missing="zero")
    >>> verdict.challenger, verdict.better, verdict.recalls
    ('companion', None, 3)
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
    basis: Basis = field(repr=False)
    untested: tuple[Gate, ...] = ()
    number: int = 1
    level: float = math.nan
    same: float = 0.0
    influence: pl.DataFrame = field(default_factory=pl.DataFrame, repr=False)
    rests_on: str = ""
    preference: bool = False

    @property
    def title(self) -> str:
        """The finding in one sentence, without the interval."""
        if self.closed:
            return f"No verdict on {self.challenger}: the gate {self.closed[0].title} is closed."
        after = f"After {count_of(self.recalls, 'recall')}, "
        if self.better is not None and self.preference:
            other = self.live if self.better == self.challenger else self.challenger
            return f"{after}{self.better} is preferred to {other}."
        if self.better is None:
            same = ": they show the same in 100% of recalls" * (self.same == 1)
            return f"{after}{self.challenger} and {self.live} are indistinguishable{same}."
        worse = self.live if self.better == self.challenger else self.challenger
        return f"{after}{self.better} is better than {worse} by {abs(self.difference.value):.2f} rewards per recall."

    @property
    def details(self) -> str:
        """The interval, an action and untested gates, or the reason why a gate is closed."""
        if self.closed:
            return str(self.closed[0])
        # The difference is that of the better pack minus the worse one, like the value in the title.
        gap, sign = self.difference, -1 if self.better == self.live else 1
        low, high = sorted((sign * gap.low, sign * gap.high))
        advice = self.faster
        if self.better is not None:
            advice = f"Keep {self.live}." if sign < 0 else f"Install {self.challenger}."
        elif self.needed is not None:
            more = format_count(max(self.needed - self.recalls, 1))
            advice = f"About {more} more recalls are needed at this rate. {advice}"
        credit = "Credit per recall" if self.preference else "Difference"
        return (
            f"{credit} {format_signed(sign * gap.value)}, {self.level:.1%} interval [{format_signed(low)}, "
            f"{format_signed(high)}]. "
            + " ".join(
                part
                for part in (advice.strip(), self.rests_on, untested_sentence(self.untested))
                if part
            )
        )

    @property
    def sentence(self) -> str:
        """The finding, its details and the action to take."""
        return f"{self.title} {self.details}"


@dataclass(frozen=True, repr=False)
class Verdicts(Report):
    """One verdict for each challenger, and the settings of the comparison.

    Index ``Verdicts`` by the name of a challenger, or iterate over the verdicts.

    Parameters
    ----------
    verdicts
        The verdicts, in the order of the challengers.
    settings
        The settings of the evaluation.
    notes
        Remarks on the recalls that were left out, and on assumptions of the comparison.
    observed
        Observed counts and mean rewards of the log, and the outcomes of each query. No gate
        withholds these facts.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> memories = lab.remember(["The deploy day is Friday.", "Tests run with pytest."])
    >>> challenge = lab.challenge("companion", reason="an example")
    >>> for number in range(3):
    ...     hits = lab.recall("When do we deploy?", limit=1)
    ...     judgement = lab.feedback(hits[0], "success")
    >>> verdicts = lab.verdict(missing="zero")
    >>> len(verdicts), verdicts["companion"].live
    (1, 'memlab')
    """

    verdicts: tuple[Verdict, ...]
    settings: Settings
    notes: tuple[str, ...]
    observed: Observed
    _log: Log = field(repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.verdicts)

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    @checked
    def __getitem__(self, challenger: str) -> Verdict:
        for verdict in self.verdicts:
            if verdict.challenger == challenger:
                return verdict
        raise UnknownName(
            "challenger", challenger, [verdict.challenger for verdict in self.verdicts]
        )

    @cached_property
    def frame(self) -> pl.DataFrame:
        """A row for each challenger.

        ``difference`` has the bounds ``low`` and ``high`` of the anytime-valid interval, at the
        confidence ``level``. ``planned_low`` and ``planned_high`` are the bounds of the
        fixed-sample interval. ``preference`` says that the difference is the credit of a draft.
        ``untested`` lists the ids of the untested gates. The other columns
        are attributes of ``Verdict``.
        """
        rows = [
            {
                "challenger": verdict.challenger,
                "live": verdict.live,
                "difference": verdict.difference.value,
                "low": verdict.difference.low,
                "high": verdict.difference.high,
                "planned_low": None if verdict.planned is None else verdict.planned.low,
                "planned_high": None if verdict.planned is None else verdict.planned.high,
                "level": verdict.level,
                "preference": verdict.preference,
                "recalls": verdict.recalls,
                "needed": verdict.needed,
                "unsupported": verdict.unsupported,
                "untested": ", ".join(gate.name for gate in verdict.untested),
                "better": verdict.better,
                "sentence": verdict.sentence,
            }
            for verdict in self.verdicts
        ]
        overrides = {"planned_low": pl.Float64, "planned_high": pl.Float64, "needed": pl.Int64}
        return pl.DataFrame(rows, schema_overrides=overrides, infer_schema_length=None)

    def _table(self) -> Table:
        """Return the table of the report, one row for each challenger."""
        columns: Columns = (
            ("challenger", "{challenger}"),
            ("vs.", "{live}"),
            ("difference", "{difference:+.3f}"),
            ("anytime-valid", "[{low:+.3f}, {high:+.3f}]"),
            ("fixed-sample", "[{planned_low:+.3f}, {planned_high:+.3f}]"),
            ("recalls", "{recalls:,}"),
            (
                "recalls needed",
                lambda row: "-" if row["needed"] is None else format_count(row["needed"]),
            ),
            ("unsupported", "{unsupported:.0%}"),
            ("untested gates", "{untested}"),
            ("better pack", "{better}"),
        )
        return Table(
            "",
            *format_rows(self.frame.iter_rows(named=True), columns),
            self.notes,
            left=(0, 1, 8, 9),
        )

    def _display(self) -> object:
        sentences = [*(verdict.sentence for verdict in self.verdicts), self.observed.sentence]
        return sentences, self._table()

    def to_dict(self) -> dict[str, Any]:
        """Return the frame and the notes as JSON values.

        Each verdict also has the reasons of its closed and untested gates.

        Returns
        -------
        dict
            The keys are ``verdicts``, ``observed`` and ``notes``.
        """
        rows = self.frame.to_dicts()
        for row, verdict in zip(rows, self.verdicts, strict=True):
            row |= {
                "withheld": [str(gate) for gate in verdict.closed],
                "untested": [{"gate": gate.name, "reason": str(gate)} for gate in verdict.untested],
                "faster": verdict.faster,
                "rests_on": verdict.rests_on,
                "number": verdict.number,
                "basis": verdict.basis.to_dict(),
            }
        return {"verdicts": rows, "observed": self.observed.to_dict(), "notes": list(self.notes)}

    @property
    def withheld(self) -> tuple[tuple[str, Gate], ...]:
        """The closed gates, each with the name of its challenger."""
        return tuple((verdict.challenger, gate) for verdict in self for gate in verdict.closed)

    @property
    def untested(self) -> tuple[tuple[str, Gate], ...]:
        """The untested gates, each with the name of its challenger."""
        return tuple((verdict.challenger, gate) for verdict in self for gate in verdict.untested)

    @checked
    def report(self, path: str | Path) -> Path:
        """Write the verdicts as one self-contained HTML file.

        Parameters
        ----------
        path
            The file to write.

        Returns
        -------
        Path
            The path of the written file.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        settings, table = self.settings, self._table()
        bases = [
            (verdict, verdict.basis, describe_basis(verdict.basis, settings.missing))
            for verdict in self
        ]
        facts = [
            ("recalls", f"{max(verdict.recalls for verdict in self):,}"),
            ("level of all verdicts", f"{settings.level:.0%}"),
            ("missing feedback counts as", settings.missing or "not stated"),
            ("blocks", settings.cluster or "each recall"),
        ]
        html = render_page(
            Path(__file__).parent / "verdict.html",
            {"safe_text": printable},
            verdicts=self,
            facts=facts,
            figure=Markup(draw_svg(self._draw(), name="track", width=7.6, height=3.2)),
            headings=table.heads,
            rows=table.rows,
            bases=bases,
            gates={gate.name: gate for _, basis, _ in bases for gate in basis.gates}.values(),
            groups=[
                (verdict, list_groups(verdict.influence, verdict.difference.value))
                for verdict in self
                if verdict.influence.height
            ],
            group_level=level_without(settings.level),
            wanted=GATES,
            titles=GATE_TITLES,
            sequence=SEQUENCE,
            digest=self._log.digest(),
            line=self._reproduction(),
            version=__version__,
        )
        return write_page(html, path)

    def to_latex(self) -> str:
        """Return the table as LaTeX, in the style of the package booktabs.

        The caption has the findings, the sequence of the intervals, the hashes of packs and log, the
        seeds of the draws, and the version of memlab.

        Returns
        -------
        str
            An environment ``table``, without columns whose cells are all empty.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> memories = lab.remember(["The deploy day is Friday.", "Tests run with pytest."])
        >>> challenge = lab.challenge("companion", reason="an example")
        >>> for number in range(3):
        ...     hits = lab.recall("When do we deploy?", limit=1)
        ...     judgement = lab.feedback(hits[0], "success")
        >>> "toprule" in lab.verdict(missing="zero").to_latex()
        True
        """
        hashes: dict[str, str | None] = {}
        for verdict in self:
            basis = verdict.basis
            hashes |= {verdict.challenger: basis.hash, verdict.live: basis.live_hash}
        findings = " ".join(verdict.sentence for verdict in self)
        return render_latex(
            self._table(), f"{findings} Anytime-valid: {SEQUENCE} {self._log.provenance(hashes)}"
        )

    def _reproduction(self) -> str:
        """Return the Python call that reproduces these verdicts."""
        names = ("horizon", "missing", "cluster", "level", "reward_range")
        options = "".join(f",\n    {name}={getattr(self.settings, name)!r}" for name in names)
        return f"memlab.verdict(\n    slates{options},\n)"

    @checked
    def figure(self, *, axes: OnAxes | None = None) -> Figure:
        """Draw the difference to the live pack against the number of recalls.

        The shaded area is the anytime-valid interval of the difference.

        Parameters
        ----------
        axes
            The matplotlib axes to draw on; a new figure by default.

        Returns
        -------
        Figure
            The figure of the axes.
        """
        return draw_figure(self._draw(), width=7.6, height=3.2, axes=axes)

    def _draw(self) -> Draw:
        """Return a function that draws each challenger's running difference."""
        from memlab.science.evaluation._figures import draw_sequences

        return draw_sequences(
            {f"{verdict.challenger} minus {verdict.live}": verdict.track for verdict in self}
        )


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
    """Decide whether the live pack or a challenger is better, at any time.

    Parameters
    ----------
    slates
        The tables of a lab in which ``lab.challenge`` was called, or the lab itself.
    challenger
        The name of one challenger; all challengers by default.
    horizon
        The time that each recall has to get feedback, such as "7d". A recall whose horizon is
        open does not count yet.
    missing
        What missing feedback counts as: "zero", "censor" or "bounds". Required if more than a tenth
        of the feedback is missing.
    cluster
        The recalls that enter as one block: "session", "day" or a column of the decisions. A block
        weighs at most 2 recalls. By default each recall is a block.
    level
        The confidence level at which all verdicts of a log hold together, between 0 and 1.
    reward_range
        The minimum and maximum reward. Default: the range of the log.

    Returns
    -------
    Verdicts
        One verdict for each challenger.

    Raises
    ------
    InputError
        If no recall was challenged, or the tables of the log contradict each other.
    UnknownName
        If there is no challenger of this name.

    Notes
    -----
    The k-th comparison of a lab has the share 6 / (pi k)^2 of the error 1 - ``level``: .61 for the
    first, .15 for the second and .07 for the third. The share is fixed when the comparison begins,
    so another challenge never changes a verdict. A change of the challenger or of the live pack
    begins a new comparison. The old comparison continues if both packs are changed back.

    A verdict must also hold without any one session that the log names, or any one block, at the
    level 1 - 4 (1 - ``level``). So one session with hostile feedback can prevent a verdict, but it
    names a wrong pack with a probability of at most 2 (1 - ``level``). The verdict is withheld,
    too, if it turns when one user, agent, project or day is left out.

    A verdict compares the rewards of these recalls only. ``memlab.trial`` measures how the memories
    develop under each pack.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> memories = lab.remember(["The deploy day is Friday.", "Tests run with pytest."])
    >>> challenge = lab.challenge("companion", reason="an example")
    >>> for number in range(3):
    ...     hits = lab.recall("When do we deploy?", limit=1)
    ...     judgement = lab.feedback(hits[0], "success")
    >>> print(memlab.verdict(lab, missing="zero")["companion"].title)
    After 3 recalls, companion and memlab are indistinguishable: they show the same in 100% of recalls.
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
    # Arguments that a confidence sequence cannot use are refused before the log is split into duels.
    if missing == "inverse":
        raise InputError(
            'missing="inverse" needs a feedback model fitted on the whole log, but each interim analysis may '
            'use earlier recalls only. Set missing to "censor", "bounds" or "zero", or call memlab.evaluate.'
        )
    duels = find_duels(log, challenger)
    if missing is None:
        check_missing(log.silent, *log.reward_ends)
    schema, names = slates.candidates.collect_schema(), feature_names(slates)
    verdicts, remarks = zip(
        *(_decide(duel, settings, names, schema) for duel in duels), strict=True
    )
    notes = [*log.notes, *dict.fromkeys(note for notes in remarks for note in notes)]
    if log.open:
        notes.append(
            f"{count_of(log.open, 'recall')} left out, because the time for feedback (horizon) is not over."
        )
    notes += [note for duel in duels for note in duel.notes]
    notes.append(
        "The verdict is about the rewards of these recalls; memlab.trial simulates how memory develops under each pack."
    )
    return Verdicts(verdicts, settings, tuple(notes), observe(log, level), log)


@dataclass(frozen=True)
class _Evidence:
    """The evidence of the recalls of a duel.

    It holds the observation of each recall, the interval of a fixed-sample test, and the
    unsupported share of items. It also holds the gates and the calibration of attributed rewards.
    """

    observations: Observations
    planned: Estimate | None
    unsupported: float
    gates: tuple[Gate, ...]
    credited: Credited | None
    repeated: int = 0
    """The number of items that repeat another item and that no recall showed together with it."""


def _decide(
    duel: Duel, settings: Settings, names: Sequence[str], schema: pl.Schema
) -> tuple[Verdict, list[str]]:
    """Decide whether a challenger or the live pack is better; also return remarks."""
    level = 1 - (1 - settings.level) * duel.share
    log, unit = duel.log, settings.reward_range[1] - settings.reward_range[0]
    course = Course.of(log, clustered=settings.cluster is not None)
    rate = answer_rate(log, course) if settings.missing == "censor" else np.ones(len(log))
    weigh = _weigh_recalls if duel.kind == "ab" else _weigh_items
    evidence = weigh(duel, settings, select_features(log, names, schema), course, rate)
    process = evidence.observations.process(course, unit / duel.scale, _BLOCK_WEIGHT)
    bounds = process.bounds(level)
    times = log.decisions["at"][course.last] if "at" in log.decisions.columns else None
    # Packs that show the same have no difference, whatever positions, other items or probabilities do.
    required = [
        gate
        for gate in evidence.gates
        if gate.name not in _FIXED_SAMPLE_GATES and not duel.same.all()
    ]
    closed = tuple(gate for gate in required if gate.closed)
    influence = Influence.of(process, course, duel, settings.cluster, level_without(settings.level))
    outcome = _name_better(bounds, influence, closed, settings.cluster)
    better, since = outcome.better, None
    if better is not None and times is not None:
        since = times[outcome.since]
    pace = _Pace.of(process, course, level)
    track = pl.DataFrame(
        {
            **({} if times is None else {"at": times}),
            "recalls": np.cumsum(course.sizes),
            "difference": bounds.mean,
            "low": bounds.low,
            "high": bounds.high,
        }
    )
    verdict = Verdict(
        challenger=duel.challenger,
        live=duel.live,
        better=better,
        difference=Estimate(
            float(bounds.mean[-1]),
            float(bounds.low[-1]),
            float(bounds.high[-1]),
            math.nan,
            math.nan,
        ),
        planned=evidence.planned,
        recalls=len(log),
        needed=pace.needed,
        unsupported=evidence.unsupported,
        closed=outcome.closed,
        since=since,
        faster="" if better else _advise(pace, evidence, duel, course),
        track=track,
        untested=tuple(gate for gate in required if gate.untested),
        number=duel.number,
        level=level,
        same=float(duel.same.mean()),
        influence=influence.frame,
        rests_on=outcome.rests_on,
        basis=find_basis(duel, evidence.observations, settings, (*required, *outcome.closed)),
        preference=duel.kind == "draft",
    )
    return verdict, _list_remarks(duel, evidence)


def _list_remarks(duel: Duel, evidence: _Evidence) -> list[str]:
    """Return remarks on what the evidence of a duel can say."""
    remarks = [
        *credited_note(duel.log, evidence.credited),
        *repeated_note(duel.challenger, evidence.repeated),
    ]
    if duel.kind == "draft":
        remarks.append(
            f"{duel.challenger}: a draft says which pack is better, not by how much. Its credit counts the better half "
            'of the results that only one pack would show. lab.challenge(..., design="draft", extra=2) estimates the '
            "difference."
        )
    if evidence.credited is not None:
        subject = (
            "Both intervals treat" if duel.kind == "ab" else "The anytime-valid interval treats"
        )
        remarks.append(f"{subject} the calibration of attributed rewards as exact.")
    return remarks


@dataclass(frozen=True)
class _Outcome:
    """The better pack, if a verdict names one, and the observation from which on the verdict holds."""

    better: str | None
    closed: tuple[Gate, ...]
    since: int = 0
    rests_on: str = ""


def _name_better(
    bounds: Bounds, influence: Influence, closed: tuple[Gate, ...], cluster: str | None
) -> _Outcome:
    """Return the better pack, or none if the interval contains zero, a gate is closed or one group is decisive."""
    above, duel = bool(bounds.low[-1] > 0), influence.duel
    if closed or not (above or bounds.high[-1] < 0):
        return _Outcome(None, closed)
    better = duel.challenger if above else duel.live
    kinds = ("session", cluster or "session")
    gate, rests_on = influence.judge(above, kinds)
    if gate is not None:
        return _Outcome(None, (gate,))
    decided = bounds.low > 0 if above else bounds.high < 0
    undecided = np.flatnonzero(~(decided & influence.decided(kinds, above=above)))
    return _Outcome(better, (), int(undecided[-1]) + 1 if len(undecided) else 0, rests_on)


def _weigh_items(
    duel: Duel, settings: Settings, features: Floats, course: Course, rate: Floats
) -> _Evidence:
    """Return the evidence of a duel whose random draws choose between single items.

    ``rate`` is the share of shown items with feedback in earlier blocks.
    """
    log = duel.log
    evidence = gather_evidence(log, settings, features, answered=rate[log.recall])
    compared = compare(evidence, duel.own, duel.base)
    measured = measure(evidence, compared, Tests(log, settings, features))
    observations = observe_items(duel, evidence, compared, rate, settings)
    return _Evidence(
        observations,
        compared.difference,
        measured.unsupported,
        measured.gates,
        evidence.credited,
        compared.top_k.repeated,
    )


def _weigh_recalls(
    duel: Duel, settings: Settings, features: Floats, course: Course, rate: Floats
) -> _Evidence:
    """Return the evidence of a duel in which each recall showed the results of one pack.

    ``rate`` is the share of shown items with feedback in earlier blocks. Positions and other items do not
    matter, because rewards are not summed over the items of a pack.
    """
    assert duel.shares is not None
    log, credited = calibrate_rewards(duel.log)
    observations = observe_recalls(duel, log, credited, course, rate, settings)
    sums = cluster_sums(
        [np.ones(len(log)), observations.lower, observations.upper], log.cluster, log.clusters
    )
    sample = Sample(sums, level=settings.level)
    planned = sample.estimate(
        *(lambda total, at=at: total[..., at] / total[..., 0] for at in (1, 2))
    )
    tests, (unsupported, unknown, _) = (
        Tests(duel.log, settings, features),
        measure_support(log, duel.own),
    )
    facts = Facts(
        unknown=unknown,
        clusters=log.clusters,
        recalls=len(log),
        balance=arms_p(np.column_stack([duel.arm > 0, duel.arm < 0]), duel.shares),
        missing=tests.missing,
    )
    return _Evidence(observations, planned, unsupported, gates(facts), credited)


_BLOCK_WEIGHT = 2.0
"""The maximum weight of a block, in recalls.

The range of a block grows with its weight, and rates fall with the range. With sessions of 5 to 30
recalls, a difference of .35 is found after 2,100 recalls in the median, with a maximum of 1 after
2,800, of 4 after 2,400, and of 8 after 4,100. With sums of blocks it is not found in 5,000 recalls
(experiments/hostile_sessions.py).
"""

_FIXED_SAMPLE_GATES = ("answered probes", "influence", "clusters", "independence")
"""Gates of the fixed-sample test alone.

The interval of a sequence holds at any number of recalls, so a sequence needs none of these gates.
"""


@dataclass(frozen=True)
class _Pace:
    """A forecast of the recalls that a sequence needs for a verdict.

    If zero lies between the bounds of the difference, the forecast is None: that range does not
    shrink with more recalls.

    Attributes
    ----------
    reach
        How far the observation of each block may fall below the mean observation, f64[blocks].
    wide
        The numbers of the blocks whose reach is more than twice the reach of the median block.
    without
        The number of recalls needed if the wide blocks are left out.
    """

    needed: int | None
    wide: Ints
    reach: Floats
    without: int | None

    @classmethod
    def of(cls, process: Process, course: Course, level: float) -> _Pace:
        """Forecast the number of recalls needed, based on the observations so far."""
        block = process.block
        lower, upper, floor, ceiling = (
            np.bincount(block, weights=values).astype(np.float64)
            for values in (process.lower, process.upper, process.floor, process.ceiling)
        )
        if np.sign(lower.sum()) != np.sign(upper.sum()):
            return cls(None, NO_ROWS, lower, None)
        is_better = lower.sum() > 0
        reach = lower.mean() - floor if is_better else ceiling - upper.mean()
        values, minimum = process.sides[not is_better]
        recalls = (course.sizes / np.bincount(block))[block]

        def needed(selected: Flags) -> int | None:
            chosen = selected[block]
            if not chosen.any():
                return None
            count = recalls_to_end(values[chosen], minimum[chosen], unit=process.unit, level=level)
            return None if count is None else math.ceil(count * recalls[chosen].mean())

        wide = reach > 2 * np.median(reach)
        return cls(
            needed(np.ones(len(wide), dtype=np.bool_)), np.flatnonzero(wide), reach, needed(~wide)
        )


def _advise(pace: _Pace, evidence: _Evidence, duel: Duel, course: Course) -> str:
    """Return advice on reaching a verdict sooner, or "" without advice."""
    if duel.same.all():
        return f"No recall can distinguish them: end the challenge, or change {duel.challenger}."
    needed, without, unsupported = pace.needed, pace.without, evidence.unsupported
    if needed is None and evidence.repeated:
        return repeated_note(duel.challenger, evidence.repeated)[0]
    if needed is None and unsupported > 0.02:
        return (
            f"{unsupported:.0%} of the items of {duel.challenger} cannot be shown under {duel.live}. Run memlab.trial, "
            f"or install {duel.challenger} for a while."
        )
    if len(pace.wide) and without is not None and (needed is None or 1.5 * without < needed):
        widest = int(pace.wide[np.argmax(pace.reach[pace.wide])])
        unit = "recall" if len(course.first) == len(course.order) else "block ending with recall"
        return (
            f"A few unusually long result lists dominate the comparison: {unit} "
            f"{duel.log.decisions['decision'][int(course.last[widest])]} may move the sum by "
            f"{pace.reach[widest]:.0f} rewards, and {np.median(pace.reach):.0f} is typical. Recall with a smaller limit: "
            f"without the {len(pace.wide):,} longest, about {format_count(without)} recalls would be enough."
        )
    if needed is None:
        return "The difference, if any, is too small to detect within ten million recalls."
    draws = float(duel.draws.max(initial=0.0)) if not duel.kind else math.inf
    # Without a draw, the live pack already shows all items of the challenger.
    if not 0 < draws <= 2:
        return ""
    return f"Show {draws + 1:.0f} extra items (extra={draws + 1:.0f}) to get a verdict sooner."

"""Retention as a forecast: how well a pack's ``retention`` predicts which items are remembered or wanted.

``bench_reviews`` scores the chance that a card is recalled, on a log of reviews. ``bench_wanted`` scores the
chance that a memory is wanted within some days, on a lab's own log. Only the past of a prediction is
used. The log of each user is cut by time and a part is predicted. The parts before it serve to fit parameters and to
recalibrate.

A review on the day of the previous review is replayed and not scored, as srs-benchmark does. The bins of ``rmse`` are
its bins too: days since the previous review, number of reviews, and number of lapses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl

from memlab.errors import DatasetError, require_extra
from memlab.kernel.base.arguments import Within, checked
from memlab.kernel.base.arrays import Flags, Floats, Ints, Rows
from memlab.kernel.base.display import Columns, Report, Table, format_rows
from memlab.kernel.base.progress import bar
from memlab.kernel.policies import Pack, PolicyLike, as_packs, pack_names
from memlab.science.bench._uses import Uses, replay, retain
from memlab.science.evaluation import cluster_interval
from memlab.science.regression import fit_logistic, predict_chance
from memlab.subjects.drawing import CYCLE, GREY, OnAxes, draw_figure
from memlab.subjects.lab import Lab

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


BASE_RATE = "(base rate)"
"""The forecast that is the same for every item: the share of outcomes in the past."""
# A retention of 0 or 1 would cost an infinite loss; srs-benchmark's models stay within such bounds.
_CLIP = 1e-7
# A number above it is a time in milliseconds since 1970; smaller ones are days.
_MILLISECONDS = 1e10
# More splits than parts of a month's log would leave parts without outcomes.
_MAX_SPLITS = 50
# The policies that decide retention. A parameter of the same name in two of them is one parameter.
_FITTED = ("retention", "half-life", "reinforce")
# Penalties of a squared distance of 1, the whole range of a parameter, in units of the loss of one forecast.
_STRENGTHS = (3.0, 30.0, 300.0, 3000.0)
# On a log of 5,000 scored reviews, 15 steps of L-BFGS come within .0005 of what 40 reach, in a third of the time.
_STEPS = 15


@dataclass(frozen=True, repr=False)
class ForecastResult(Report):
    """The forecasts of packs, and their scores.

    Parameters
    ----------
    dataset
        The name of the data.
    what
        What is predicted.
    predictions
        A row for each forecast: pack, user, item, time in days, chance, recalibrated chance, outcome and bin.
    parameters
        The fitted parameters: pack, user, split, parameter, value.
    hashes
        The hash of each pack.
    sha256
        The SHA-256 digest of the data.

    Examples
    --------
    >>> from memlab.science.bench import bench_reviews
    >>> import polars as pl
    >>> bench_reviews(pl.read_csv("revlog.csv"), packs=["fsrs"]).frame                   # doctest: +SKIP
    """

    dataset: str
    what: str
    predictions: pl.DataFrame
    parameters: pl.DataFrame
    hashes: Mapping[str, str]
    sha256: str = field(default="", repr=False)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """A row for each pack: log-loss with a 95% interval, and other scores."""
        rows = [
            {"pack": name, **_score(own)}
            for (name,), own in self.predictions.group_by("pack", maintain_order=True)
        ]
        return pl.DataFrame(rows, infer_schema_length=None).sort("log_loss", maintain_order=True)

    @cached_property
    def calibration(self) -> pl.DataFrame:
        """A row for each pack and tenth of forecasts: mean prediction and observed share."""
        tenth = (pl.col("chance") * 10).floor().clip(0, 9).cast(pl.Int8)
        return (
            self.predictions.group_by("pack", tenth.alias("tenth"), maintain_order=True)
            .agg(
                pl.len().alias("count"),
                pl.col("chance").mean(),
                pl.col("outcome").mean().alias("share"),
            )
            .sort("pack", "tenth")
        )

    @checked
    def figure(self, packs: Sequence[str] | None = None, *, axes: OnAxes | None = None) -> Figure:
        """Draw the observed share of successes against the predicted probability.

        Parameters
        ----------
        packs
            The packs to draw. Default: the three with the smallest log-loss.
        axes
            The axes to draw on. Default: a new figure.

        Returns
        -------
        Figure
            A line for each pack; the diagonal is a calibrated forecast.
        """
        best = self.frame.filter(pl.col("pack") != BASE_RATE)["pack"].head(3).to_list()

        def draw(axes: Axes) -> None:
            axes.plot([0, 1], [0, 1], color=GREY, linewidth=1)
            for number, name in enumerate(best if packs is None else packs):
                own = self.calibration.filter(pl.col("pack") == name)
                colour = CYCLE[number % len(CYCLE)]
                axes.plot(
                    own["chance"], own["share"], "-o", color=colour, label=name, markersize=3.5
                )
            axes.set_xlabel("predicted chance")
            axes.set_ylabel("share of outcomes")
            axes.legend(frameon=False)

        return draw_figure(draw, width=4.8, height=4.0, axes=axes)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values.

        Returns
        -------
        dict
            The keys are ``dataset``, ``what``, ``sha256``, ``packs``, ``rows``, ``calibration`` and ``parameters``.
        """
        return {
            "dataset": self.dataset,
            "what": self.what,
            "sha256": self.sha256,
            "packs": dict(self.hashes),
            "rows": self.frame.to_dicts(),
            "calibration": self.calibration.to_dicts(),
            "parameters": self.parameters.to_dicts(),
        }

    def _display(self) -> object:
        count = len(self.predictions) // len(self.frame)
        caption = f"{self.dataset}: {count:,} forecasts by pack of {self.what}; 95% intervals by user or item"
        headings, rows = format_rows(self.frame.iter_rows(named=True), _COLUMNS)
        return caption, Table("", headings, rows, left=(0,))


# The columns of the table in a terminal and a notebook.
_COLUMNS: Columns = (
    ("pack", "{pack}"),
    ("log-loss", "{log_loss:.4f}"),
    (
        "95% interval",
        lambda row: "" if row["low"] is None else "{low:.3f}-{high:.3f}".format(**row),
    ),
    ("recalibrated", "{recalibrated:.4f}"),
    ("RMSE in bins", "{rmse:.4f}"),
    ("AUC", "{auc:.3f}"),
)


@checked
def bench_reviews(
    reviews: pl.DataFrame,
    *,
    packs: PolicyLike | None = None,
    fit: PolicyLike | None = None,
    splits: Annotated[int, Within(1, _MAX_SPLITS)] = 1,
    dataset: str = "reviews",
    sha256: str = "",
    progress: bool = False,
) -> ForecastResult:
    """Score how well packs predict whether a user recalls a card.

    The log of a user is cut by time into ``splits + 1`` parts of equally many scored reviews. Each part but the first is
    predicted. The parts before it recalibrate the forecasts and fit the parameters of the packs in ``fit``.

    Parameters
    ----------
    reviews
        A row for each review, with the columns of Anki's table ``revlog`` (``id``, ``cid``, ``ease``), of py-fsrs
        (``card_id``, ``review_rating``, ``review_time``) or of srs-benchmark (``card_id``, ``rating``, ``day_offset``,
        ``review_th``). ``user_id`` is optional.
    packs
        The packs to score. Default: all packs of memlab.
    fit
        Packs whose parameters are fitted too; the result calls them "NAME (fitted)".
    splits
        The number of predicted parts.
    dataset
        The name of the data, for reports.
    sha256
        The SHA-256 digest of the data, for reports.
    progress
        Whether to show a progress bar.

    Returns
    -------
    ForecastResult
        The forecasts and their scores.

    Raises
    ------
    DatasetError
        If a column is missing, or no user has enough scored reviews with both outcomes.
    UnknownName, PolicyError
        If a pack does not exist or is invalid.

    Examples
    --------
    >>> from memlab.science.bench import bench_reviews
    >>> import polars as pl
    >>> result = bench_reviews(pl.read_csv("revlog.csv"), fit=["fsrs"])                  # doctest: +SKIP
    """
    logs = [_read_user(str(user), own) for (user,), own in _by_user(reviews)]
    return _bench(logs, packs, fit, splits, dataset, "whether a card is recalled", sha256, progress)


@checked
def bench_wanted(
    lab: Lab,
    *,
    within_days: Annotated[float, Within(0.01, 3650)] = 7.0,
    packs: PolicyLike | None = None,
    fit: PolicyLike | None = None,
    splits: Annotated[int, Within(1, _MAX_SPLITS)] = 1,
    progress: bool = False,
) -> ForecastResult:
    """Score how well packs predict whether a memory is wanted within some days.

    A memory is wanted when a recall shows it and its feedback is positive. Every ``within_days`` days, the retention of
    each memory that exists is the forecast for the days that follow. Retention is not a chance of being wanted, so
    read the recalibrated log-loss, and compare it with the log-loss of the base rate.

    Parameters
    ----------
    lab
        The lab, with its log.
    within_days
        The horizon in days.
    packs, fit, splits, progress
        As for ``bench_reviews``; parts are cut by the time of the forecast.

    Returns
    -------
    ForecastResult
        The forecasts and their scores.

    Raises
    ------
    DatasetError
        If the log is shorter than three horizons, or contains no wanted memory.
    UnknownName, PolicyError
        If a pack does not exist or is invalid.

    Examples
    --------
    >>> from memlab.science.bench import bench_wanted
    >>> bench_wanted(lab, within_days=7, packs=["memlab", "fsrs"]).frame                    # doctest: +SKIP
    """
    log = _read_lab(lab, within_days)
    what = f"whether a memory is wanted within {within_days:g} days"
    return _bench([log], packs, fit, splits, "the lab's log", what, "", progress)


@dataclass(frozen=True, eq=False)
class _Log:
    """The uses of one user and the outcomes to predict, in temporal order."""

    user: str
    uses: Uses
    item: Rows
    last: Rows
    days: Floats
    outcome: Flags

    def until(self, past: Rows) -> _Log:
        """Return a log with only the given forecasts, and with the uses up to the last of these."""
        early = self.uses.days <= self.days[past].max()
        moved = np.cumsum(early) - 1
        uses = Uses(
            self.uses.item[early], self.uses.days[early], self.uses.rating[early], self.uses.created
        )
        item, last = self.item[past], self.last[past]
        used = last >= self.uses.start[item]
        last = np.where(used, moved[last], uses.start[item] - 1)
        return _Log(self.user, uses, item, last, self.days[past], self.outcome[past])

    def bins(self) -> Ints:
        """Assign each forecast to a bin by idle days, uses and failures, on logarithmic scales."""
        features = self.uses.features((), self.item, self.last, self.days)
        columns = (
            _logarithmic(features["elapsed-days"], 3.62),
            _logarithmic(features["access"], 1.89),
            _logarithmic(features["fail"], 1.73),
        )
        return np.unique(np.stack(columns), axis=1, return_inverse=True)[1].ravel()


def _logarithmic(values: Floats, base: float) -> Rows:
    """Return the integer part of each value's logarithm to ``base``; -1000 for values below one."""
    with np.errstate(divide="ignore"):
        logarithms = np.floor(np.log(values) / np.log(base))
    return np.where(values >= 1, logarithms, -1000).astype(np.int64)


def _by_user(reviews: pl.DataFrame) -> Iterator[tuple[tuple[object, ...], pl.DataFrame]]:
    """Yield each user's name and reviews with a rating of 1 to 4, sorted by card and by time in days."""

    def find_column(what: str, *names: str) -> str:
        present = next((name for name in names if name in reviews.columns), None)
        if present is None:
            raise DatasetError(
                f"The reviews have no column for {what}. Rename the column of {what} to one of: {', '.join(names)}."
            )
        return present

    card = find_column("cards", "card_id", "cid", "card")
    rating = find_column("ratings", "review_rating", "rating", "ease", "button_chosen")
    time = find_column("times", "review_time", "day_offset", "time", "id")
    user = next((name for name in ("user_id", "user") if name in reviews.columns), None)
    days = _to_days(reviews[time], reviews.get_column("review_th", default=None))
    rated = pl.DataFrame(
        {
            "user": reviews[user].cast(pl.String)
            if user
            else pl.repeat("", len(reviews), eager=True),
            "card": reviews[card],
            "days": days,
            "rating": reviews[rating].cast(pl.Float64, strict=False),
        }
    ).filter(pl.col("rating").is_in([1.0, 2.0, 3.0, 4.0]))
    if rated.is_empty():
        raise DatasetError(
            f"No review has a rating of 1 to 4 in the column {rating}. Pass such reviews."
        )
    if (
        rated["days"].is_null().any()
        or not rated["days"].is_finite().all()
        or rated["card"].is_null().any()
    ):
        raise DatasetError(
            f"A review has no card or no time in the columns {card} and {time}. Leave it out."
        )
    return iter(
        rated.sort("user", "card", "days", maintain_order=True).group_by(
            "user", maintain_order=True
        )
    )


def _to_days(times: pl.Series, order: pl.Series | None) -> pl.Series:
    """Convert times to days: dates, ISO texts, milliseconds since 1970, or days.

    Reviews of one day are in their order, if it is given.
    """
    if times.dtype == pl.String:
        times = times.str.to_datetime(time_zone="UTC", strict=False)
    if times.dtype.is_temporal():
        return times.dt.epoch("us") / 86_400e6
    numbers = times.cast(pl.Float64, strict=False)
    if (numbers > _MILLISECONDS).any():
        return numbers / 86_400e3
    return numbers if order is None else numbers + order.cast(pl.Float64, strict=False) * 1e-9


def _read_user(user: str, own: pl.DataFrame) -> _Log:
    """Return a user's log; score only reviews at least a day after the card's previous review."""
    item = own["card"].rank("dense").to_numpy().astype(np.int64) - 1
    days, rating = own["days"].to_numpy(), own["rating"].to_numpy()
    start = np.searchsorted(item, np.arange(item[-1] + 1))
    uses = Uses(item, days, rating, days[start])
    rows = np.arange(len(item))
    scored = rows[(rows > start[item]) & (np.diff(days, prepend=days[0]) >= 1)]
    scored = scored[np.argsort(days[scored], kind="stable")]
    return _Log(user, uses, item[scored], scored - 1, days[scored], rating[scored] > 1)


def _read_lab(lab: Lab, within: float) -> _Log:
    """Return a lab's log, with forecasts every ``within`` days of each memory's use in the next ``within``."""
    # the uses are the positive judgements, at the time of their recalls
    slates = lab.slates()
    uses_frame = (
        slates.feedback.filter(pl.col("reward") > 0)
        .select("decision", "memory_id")
        .unique()
        .join(slates.decisions.select("decision", "at"), on="decision")
        .sort("memory_id", "at")
        .collect()
    )
    memories = lab.memories.select("id", "created").sort("id")
    if uses_frame.is_empty():
        raise DatasetError(
            "No memory of this log got positive feedback on a recall, so no use is known. Log lab.feedback first."
        )
    created = memories["created"].dt.epoch("us").to_numpy() / 86_400e6
    number = {id: row for row, id in enumerate(memories["id"].to_list())}
    existing = uses_frame.filter(pl.col("memory_id").is_in(list(number)))
    item = np.array([number[id] for id in existing["memory_id"].to_list()], dtype=np.int64)
    days = existing["at"].dt.epoch("us").to_numpy() / 86_400e6
    uses = Uses(item, days, np.full(len(item), np.nan), created)
    ends = days.max()
    times = np.arange(created.min() + within, ends - within + 1e-9, within)
    if len(times) < 2:
        raise DatasetError(
            f"The log covers less than three times {within:g} days. Log for longer, or pass a shorter `within`."
        )
    forecasts = [(row, time) for time in times for row in np.flatnonzero(created <= time)]
    items = np.array([row for row, _ in forecasts], dtype=np.int64)
    when = np.array([time for _, time in forecasts])
    last = uses.last_before(items, when)
    later = uses.last_before(items, when + within)
    return _Log("lab", uses, items, last, when, later > last)


def _bench(
    logs: Sequence[_Log],
    packs: PolicyLike | None,
    fit: PolicyLike | None,
    splits: int,
    dataset: str,
    what: str,
    sha256: str,
    progress: bool,
) -> ForecastResult:
    """Forecast each later part of each log with the packs, and with the packs of ``fit``, fitted on earlier parts.

    ``splits`` is the number of later parts.
    """
    chosen = as_packs(pack_names() if packs is None else packs)
    fitted = () if fit is None else as_packs(fit)
    tables: list[pl.DataFrame] = []
    values: list[dict[str, Any]] = []
    with bar(progress, len(logs) * splits, unit="part", desc="predicting") as step:
        for log in logs:
            edges = np.linspace(0, len(log.item), splits + 2).astype(int)
            for number, (begin, end) in enumerate(pairwise(edges[1:].tolist())):
                past, part = np.arange(begin), np.arange(begin, end)
                if len(set(log.outcome[past].tolist())) == 2 and end > begin:
                    tables += _predict(log, past, part, chosen, fitted, number, values)
                step(1)
    if not tables:
        raise DatasetError(
            "No part of the log can be predicted, because both outcomes must occur before that part. Pass a longer log."
        )
    schema = {"pack": pl.String, "user": pl.String, "split": pl.Int64, "parameter": pl.String}
    parameters = pl.DataFrame(values, schema={**schema, "value": pl.Float64})
    hashes = {pack.name: pack.hash for pack in (*chosen, *fitted)}
    return ForecastResult(dataset, what, pl.concat(tables), parameters, hashes, sha256)


def _predict(
    log: _Log,
    past: Rows,
    part: Rows,
    chosen: Sequence[Pack],
    fitted: Sequence[Pack],
    number: int,
    values: list[dict[str, Any]],
) -> Iterator[pl.DataFrame]:
    """Yield forecasts for one part of a log by the base rate, the packs and the fitted packs.

    The fitted parameters are appended to ``values``, under the number of the part.
    """
    bins = log.bins()[part]
    base = np.full(len(log.item), log.outcome[past].mean())

    def table(name: str, chances: Floats) -> pl.DataFrame:
        return pl.DataFrame(
            {
                "pack": np.full(len(part), name),
                "user": np.full(len(part), log.user),
                "item": log.item[part],
                "days": log.days[part],
                "chance": chances[part],
                "recalibrated": _recalibrate(chances, log.outcome, past)[part],
                "outcome": log.outcome[part],
                "bin": bins,
            }
        )

    yield table(BASE_RATE, base)
    for pack in chosen:
        yield table(pack.name, _chances(pack, log))
    for pack in fitted:
        best, parameters = _fit(pack, log, past)
        name = f"{pack.name} (fitted)"
        values += [
            {"pack": name, "user": log.user, "split": number, "parameter": key, "value": value}
            for key, value in parameters.items()
        ]
        yield table(name, _chances(best, log))


def _chances(pack: Pack, log: _Log) -> Floats:
    """Return the retention that a pack predicts for each forecast, clipped to probabilities."""
    fields = replay(pack, log.uses)
    values = retain(pack, log.uses, fields, log.item, log.last, log.days)
    return np.clip(np.nan_to_num(values, nan=0.0), _CLIP, 1 - _CLIP)


def _losses(chances: Floats, outcome: Flags) -> Floats:
    """Return the logarithmic loss of each forecast from its probability and outcome."""
    return -np.log(np.where(outcome, chances, 1 - chances))


def _recalibrate(chances: Floats, outcome: Flags, past: Rows) -> Floats:
    """Return all forecasts, recalibrated by a logistic regression on the log-odds of past forecasts."""
    odds = np.log(chances / (1 - chances))[:, None]
    if np.ptp(odds[past]) == 0:
        return np.full(len(chances), outcome[past].mean())
    return np.clip(predict_chance(odds, fit_logistic(odds[past], outcome[past])), _CLIP, 1 - _CLIP)


def _fit(pack: Pack, log: _Log, past: Rows) -> tuple[Pack, dict[str, float]]:
    """Return a pack whose retention parameters are fitted on past forecasts, and these parameters.

    The loss is penalised by the distance of the parameters from their values in the pack. The strength
    of the penalty is the one whose fit of the first two thirds of the past predicts the last third
    best.
    """
    names, start, low, high = _parameters(pack)
    if not names:
        raise DatasetError(
            f"The pack {pack.name} has no bounded parameters to fit. Leave it out of fit=."
        )

    def to_pack(x: Floats) -> Pack:
        return _with_parameters(pack, to_values(x))

    def to_values(x: Floats) -> dict[str, float]:
        return dict(zip(names, np.clip(low + x * (high - low), low, high).tolist(), strict=True))

    origin = (start - low) / (high - low)
    early, late = past[: len(past) * 2 // 3], past[len(past) * 2 // 3 :]
    tried = {strength: _minimise(to_pack, log, early, origin, strength) for strength in _STRENGTHS}
    losses = {
        strength: _losses(_chances(to_pack(x), log)[late], log.outcome[late]).mean()
        for strength, x in tried.items()
    }
    strength = min(losses, key=losses.__getitem__)
    best = _minimise(to_pack, log, past, origin, strength)
    return to_pack(best), to_values(best)


def _minimise(
    to_pack: Callable[[Floats], Pack], log: _Log, past: Rows, origin: Floats, strength: float
) -> Floats:
    """Fit parameters by the penalised loss of past forecasts; return them scaled to 0..1.

    The penalty is ``strength`` times the squared distance from ``origin``.
    """
    with require_extra("science", "fit="):
        from scipy.optimize import minimize
    short = log.until(past)

    def loss(x: Floats) -> float:
        penalty = strength * float(np.square(x - origin).sum())
        return float(_losses(_chances(to_pack(x), short), short.outcome).sum() + penalty) / len(
            past
        )

    bounds = [(0.0, 1.0)] * len(origin)
    options = {"maxiter": _STEPS, "eps": 1e-4}
    return np.asarray(minimize(loss, origin, method="L-BFGS-B", bounds=bounds, options=options).x)


def _parameters(pack: Pack) -> tuple[list[str], Floats, Floats, Floats]:
    """Return the bounded parameters of the retention policies: names, values, and bounds."""
    read = {
        name: param
        for slot in _FITTED
        for name, param in pack.policies[slot].params.items()
        if np.isfinite(param.low) and np.isfinite(param.high) and param.low < param.high
    }
    numbers = np.array([(param.value, param.low, param.high) for param in read.values()])
    return list(read), *numbers.reshape(-1, 3).T


def _with_parameters(pack: Pack, values: Mapping[str, float]) -> Pack:
    """Return a pack with new parameter values, in every policy that declares the parameter."""
    return pack.with_params(
        {
            f"{slot}:{name}": value
            for slot in _FITTED
            for name, value in values.items()
            if name in pack.policies[slot].params
        }
    )


def _score(own: pl.DataFrame) -> dict[str, Any]:
    """Return the scores of one forecaster over all its forecasts: losses with an interval, calibration error, AUC."""
    chances, outcome = own["chance"].to_numpy(), own["outcome"].to_numpy()
    losses = _losses(chances, outcome)
    users = own["user"]
    groups = users if users.n_unique() > 1 else own["item"]
    interval = cluster_interval(losses, groups.to_list())
    bins = (
        own.group_by("user", "bin")
        .agg((pl.col("chance").mean() - pl.col("outcome").mean()).alias("gap"), pl.len())
        .select((pl.col("gap").pow(2) * pl.col("len")).sum() / pl.col("len").sum())
    )
    ranks, hits = own["chance"].rank("average").to_numpy(), int(outcome.sum())
    misses = len(outcome) - hits
    pairs = hits * misses
    return {
        "count": len(outcome),
        "log_loss": float(losses.mean()),
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "recalibrated": float(_losses(own["recalibrated"].to_numpy(), outcome).mean()),
        "rmse": float(bins.item() ** 0.5),
        "auc": None if not pairs else float((ranks[outcome].sum() - hits * (hits + 1) / 2) / pairs),
    }

"""The four tables of a log, built from slates or from frames of another system.

Each column is concatenated from all slates at once, which is faster than one frame per slate.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base import arguments
from memlab.kernel.base.arrays import Floats, Ints, Values
from memlab.kernel.base.clock import INSTANT, When, from_micros, to_micros
from memlab.kernel.base.display import Displayed, table
from memlab.kernel.base.printable import printable
from memlab.kernel.slates._checking import Duplicates, Empty, check_log
from memlab.kernel.slates._faults import read_frame
from memlab.kernel.slates._schema import (
    ATTRIBUTED,
    CANDIDATES,
    DECISIONS,
    FEEDBACK,
    IDS,
    reward_of,
)
from memlab.kernel.slates._segments import SealedLog
from memlab.kernel.slates._slate import FORMAT, Slate, number_series
from memlab.kernel.slates._wide import narrow, widen


class Logged(NamedTuple):
    """The tables of decisions, candidates and exposures, which recalls write."""

    decisions: pl.DataFrame
    candidates: pl.DataFrame
    exposures: pl.DataFrame


def tables_of(slates: Sequence[Slate]) -> Logged:
    """Return the tables of decisions, candidates and exposures of slates.

    A feature that a slate lacks is null.
    """
    return Logged(_build_decisions(slates), _build_candidates(slates), _build_exposures(slates))


def _build_decisions(slates: Sequence[Slate]) -> pl.DataFrame:
    """Build the table of decisions: one row for each slate, with the columns of ``DECISIONS``."""

    def json(value: object) -> str:
        """Encode a value as JSON text."""
        return msgspec.json.encode(value).decode()

    # One list per column, in the order of DECISIONS.
    columns: dict[str, list[Any]] = {
        "decision": [slate.decision for slate in slates],
        "at": [slate.at for slate in slates],
        "query": [slate.query for slate in slates],
        "cluster": [slate.project or slate.session or str(slate.decision) for slate in slates],
        "limit": [slate.limit for slate in slates],
        "pack": [slate.pack for slate in slates],
        "pack_hash": [slate.pack_hash for slate in slates],
        "state": [slate.state for slate in slates],
        "sampler": [slate.sampler for slate in slates],
        "seed": [slate.seed for slate in slates],
        "kappa": [slate.kappa for slate in slates],
        "cut": [slate.cut for slate in slates],
        "candidates": [len(slate.ids) for slate in slates],
        "fingerprints": [json(slate.fingerprints) for slate in slates],
        "settings": [json(slate.settings) for slate in slates],
        "format": [FORMAT] * len(slates),
        "project": [slate.project for slate in slates],
        "session": [slate.session for slate in slates],
        "filters": [json(slate.filters) for slate in slates],
        "challenge": [
            None if slate.challenge is None else json(slate.challenge) for slate in slates
        ],
        "known": [slate.known for slate in slates],
    }
    return pl.DataFrame(
        [
            pl.Series(name, columns[name], dtype=pl.Int64).cast(kind)
            if kind == INSTANT
            else pl.Series(name, columns[name], dtype=kind)
            for name, kind in DECISIONS.items()
        ]
    )


def _build_candidates(slates: Sequence[Slate]) -> pl.DataFrame:
    """Build the table of candidates, with every feature that any slate has."""
    blocks: dict[tuple[tuple[str, ...], ...], list[int]] = {}
    for index, slate in enumerate(slates):
        blocks.setdefault((tuple(slate.numbers), tuple(slate.words), slate.flags), []).append(index)
    frames = [
        _build_block([slates[index] for index in indices]) for indices in blocks.values()
    ] or [_build_block([])]
    if len(frames) == 1:
        return frames[0]
    last = ["score", "rank", "propensity"]
    joined = pl.concat(frames, how="diagonal_relaxed")
    owner = np.concatenate(
        [
            np.repeat(indices, [len(slates[index].ids) for index in indices])
            for indices in blocks.values()
        ]
    )
    features = [name for name in joined.columns if name not in last]
    return joined[np.argsort(owner, kind="stable")].select(*features, *last)


def _build_block(slates: Sequence[Slate]) -> pl.DataFrame:
    """Build the table of candidates for slates that have the same features."""
    # Each column is concatenated once for all slates, which is faster than one frame per slate.
    numbers, words, flags = (
        (slates[0].numbers, slates[0].words, slates[0].flags) if slates else ({}, {}, ())
    )
    sizes = [len(slate.ids) for slate in slates]
    decisions = np.repeat(np.array([slate.decision for slate in slates], dtype=np.int64), sizes)
    return pl.DataFrame(
        [
            pl.Series("decision", decisions),
            pl.Series("memory_id", _concatenate([slate.ids for slate in slates], np.int64)),
            *(
                number_series(
                    name,
                    _concatenate([slate.numbers[name] for slate in slates], np.float64),
                    flag=name in flags,
                )
                for name in numbers
            ),
            *(
                pl.Series(
                    name,
                    list(chain.from_iterable(slate.words[name] for slate in slates)),
                    dtype=pl.String,
                )
                for name in words
            ),
            pl.Series("score", _concatenate([slate.scores for slate in slates], np.float64)),
            pl.Series("rank", _concatenate(list(map(_ranking_of, slates)), np.int64)),
            pl.Series("propensity", _concatenate(list(map(_inclusion_of, slates)), np.float64)),
        ]
    )


def _build_exposures(slates: Sequence[Slate]) -> pl.DataFrame:
    """Build the table of exposures: a row for each shown item, in the order of positions."""
    # An item without a logged conditional probability gets 1 if it was certain to be shown, and null otherwise.
    sizes = [len(slate.shown) for slate in slates]
    propensity = _concatenate([_inclusion_of(slate)[slate.places] for slate in slates], np.float64)
    conditional = np.where(propensity == 1.0, 1.0, np.nan)
    ends = np.cumsum(sizes)
    for slate, size, end in zip(slates, sizes, ends, strict=True):
        if slate.conditional:
            conditional[end - size : end] = slate.conditional
    return pl.DataFrame(
        [
            pl.Series(
                "decision",
                np.repeat(np.array([slate.decision for slate in slates], dtype=np.int64), sizes),
            ),
            pl.Series(
                "position", _concatenate([np.arange(1, size + 1) for size in sizes], np.int64)
            ),
            pl.Series(
                "memory_id",
                list(chain.from_iterable(slate.shown for slate in slates)),
                dtype=pl.Int64,
            ),
            pl.Series("propensity", propensity),
            pl.Series("conditional", conditional).fill_nan(None),
            pl.Series(
                "probe",
                [memory in slate.probes for slate in slates for memory in slate.shown],
                dtype=pl.Boolean,
            ),
        ]
    )


def _inclusion_of(slate: Slate) -> Floats:
    """Return a slate's inclusion probabilities without caching them in the slate."""
    return slate.inclusion if slate.propensity is None else slate.propensity


def _ranking_of(slate: Slate) -> Ints:
    """Return a slate's ranks without caching them in the slate."""
    return slate.ranking if slate.ranks is None else slate.ranks


def _concatenate(parts: Sequence[Values], kind: type[np.generic]) -> Values:
    """Concatenate arrays, or return an empty array if there are none."""
    return np.concatenate(parts) if parts else np.empty(0, dtype=kind)


def feedback_table(feedback: pl.DataFrame) -> pl.DataFrame:
    """Return the table of feedback of a lab, with the reward of each judgement.

    An outcome without a reward counts 1 (success) or 0 (fail). The last reward that was derived from an answer counts
    only if no user judged the memory. If a user did, the derived reward is in the column ``attributed``.
    """
    absent = [
        pl.lit(None, dtype=kind).alias(name)
        for name, kind in FEEDBACK.items()
        if name not in feedback.columns
    ]
    item, attributed = ["decision", "memory_id"], pl.col("source").eq_missing(ATTRIBUTED)
    stated = (~attributed).any().over(item)
    derived = reward_of("reward", "outcome").filter(attributed).last().over(item)
    last = pl.int_range(pl.len()).over(item) == pl.len().over(item) - 1
    return (
        feedback.with_columns(absent)
        .with_columns(attributed=derived)
        .filter(~attributed | (~stated & last))
        .select(*("decision", "memory_id"), reward_of("reward", "outcome"), *list(FEEDBACK)[3:])
    )


# The summary of a log: counts, time span, samplers, probes, feedback, packs.


@dataclass(frozen=True)
class Summary:
    """The summary of a log, shown when the log is printed.

    ``probes`` is the share of shown items that are flagged as probes, and ``judged`` the share with feedback.
    ``probes`` is None if items were drawn at random and none is flagged.
    """

    decisions: int
    clusters: int
    candidates: int
    shown: int
    first: datetime | None
    last: datetime | None
    samplers: tuple[tuple[str, int], ...]
    packs: tuple[tuple[str, int], ...]
    probes: float | None
    judged: float
    features: tuple[str, ...]
    policies: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def rows(self) -> list[tuple[str, str]]:
        """The rows of the summary as pairs of label and text."""
        span = "not logged"
        if self.first is not None and self.last is not None:
            span = f"{self.first:%Y-%m-%d %H:%M} to {self.last:%Y-%m-%d %H:%M} UTC"
        a_decision = (
            f" ({self.candidates / self.decisions:.1f} per decision)" if self.decisions else ""
        )
        a_probe = "" if self.probes is None else f", {self.probes:.1%} of them probes"
        return [
            ("decisions", f"{self.decisions:,} in {self.clusters:,} clusters"),
            ("candidates", f"{self.candidates:,}{a_decision}"),
            ("shown", f"{self.shown:,}{a_probe}"),
            ("feedback", f"for {self.judged:.1%} of shown items"),
            ("sampler", _write_counts(self.samplers) or "not logged"),
            ("packs", _write_counts(self.packs) or "not logged"),
            ("time", span),
            *([("features", _write_names(self.features))] if self.features else []),
            *([("policies", _write_names(self.policies))] if self.policies else []),
        ]

    def as_text(self) -> str:
        """Return the summary as text for a terminal."""
        rows = [*self.rows, *(("note", note) for note in self.notes)]
        return "\n".join(["<Slates", *(f"  {name:<11}{text}" for name, text in rows)]) + ">"


def _write_counts(pairs: tuple[tuple[str, int], ...]) -> str:
    """Format names with their counts; a single name has no count."""
    return (
        pairs[0][0]
        if len(pairs) == 1
        else ", ".join(f"{name} ({count:,})" for name, count in pairs)
    )


def summary_of(
    tables: Sequence[pl.LazyFrame],
    *,
    features: tuple[str, ...],
    policies: tuple[str, ...],
    notes: tuple[str, ...],
) -> Summary:
    """Compute the summary of a log from its four tables.

    Features are not read. A missing column is summarised as not logged.
    """
    decisions, candidates, exposures, feedback = tables
    decision_columns = set(decisions.collect_schema().names())
    judged = exposures.join(feedback, on=list(IDS), how="semi").select(judged=pl.len())
    exposure_columns = set(exposures.collect_schema().names())
    probes = pl.col("probe").mean() if "probe" in exposure_columns else pl.lit(0.0)
    is_random = (
        (pl.col("propensity") < 1).any() if "propensity" in exposure_columns else pl.lit(False)
    )
    overall = [
        pl.len().alias("decisions"),
        (pl.col("cluster").n_unique() if "cluster" in decision_columns else pl.len()).alias(
            "clusters"
        ),
        (pl.col("at").min() if "at" in decision_columns else pl.lit(None)).alias("first"),
        (pl.col("at").max() if "at" in decision_columns else pl.lit(None)).alias("last"),
    ]
    grouped = [name for name in ("sampler", "pack") if name in decision_columns]
    parts = pl.collect_all(
        [
            decisions.select(overall),
            candidates.select(candidates=pl.len()),
            exposures.select(
                pl.len().alias("shown"), probes.alias("probes"), is_random.alias("by_chance")
            ),
            judged,
            *(
                decisions.filter(pl.col(name).is_not_null())
                .group_by(name)
                .len()
                .sort("len", name, descending=[True, False])
                for name in grouped
            ),
        ]
    )
    row = pl.concat(parts[:4], how="horizontal").row(0, named=True)
    counts = {name: tuple(frame.rows()) for name, frame in zip(grouped, parts[4:], strict=True)}
    return Summary(
        decisions=row["decisions"],
        clusters=row["clusters"],
        candidates=row["candidates"],
        shown=row["shown"],
        first=row["first"],
        last=row["last"],
        samplers=counts.get("sampler", ()),
        packs=counts.get("pack", ()),
        probes=None if row["by_chance"] and not row["probes"] else row["probes"] or 0.0,
        judged=row["judged"] / row["shown"] if row["shown"] else 0.0,
        features=features,
        policies=policies,
        notes=notes,
    )


def _write_names(names: tuple[str, ...]) -> str:
    """Format up to six names and the number of the other names."""
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


# ``Slates``: the four tables of a log, from a lab or from frames of another system.


Frame = pl.DataFrame | pl.LazyFrame


@arguments.checked
@dataclass(frozen=True, eq=False, repr=False)
class Slates(Displayed):
    """The four tables of a log, as lazy frames.

    Parameters
    ----------
    decisions
        One row per recall.
    candidates
        One row per memory in the pool of a recall, with its features.
    exposures
        One row per shown item, with its propensity.
    feedback
        One row per judgement.
    lab
        The lab that wrote the log, if it is available.
    policies
        The columns of ``candidates`` with scores of other policies.
    reward_range
        The minimum and maximum possible reward, if declared.
    notes
        Observations about the log, such as columns that were left out.

    Notes
    -----
    ``memlab.kernel.slates.TABLES`` lists the columns of each table.

    Examples
    --------
    A log in one frame, with one row per candidate:

    >>> log = pl.DataFrame({
    ...     "query_id": [1, 1, 1, 2, 2, 2], "memory_id": [7, 8, 9, 7, 8, 9], "rank": [1, 2, 0, 2, 0, 1],
    ...     "clicked": [1, 0, 0, 0, 0, 1], "p": [1.0, 0.2, 0.8, 0.5, 0.5, 1.0], "mine": [0.1, 0.5, 0.4, 0.3, 0.2, 0.9]})
    >>> slates = Slates.from_wide(log, decision="query_id", item="memory_id", shown="rank", reward="clicked",
    ...                           propensity="p", scores=["mine"])
    >>> slates
    <Slates
      decisions  2 in 2 clusters
      candidates 6 (3.0 per decision)
      shown      4
      feedback   for 100.0% of shown items
      sampler    logged
      packs      not logged
      time       not logged
      policies   mine
      note       No limit is given, so the results of a recall are all items that it showed, probes included.
      note       2 rows that were not shown have clicked 0; they are left out, as without feedback.>
    """

    decisions: pl.LazyFrame
    candidates: pl.LazyFrame
    exposures: pl.LazyFrame
    feedback: pl.LazyFrame
    lab: object | None = None
    policies: tuple[str, ...] = ()
    reward_range: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()

    # -- constructors -------------------------------------------------------------------------------------------------

    @classmethod
    def of(
        cls, slates: Iterable[Slate], feedback: pl.DataFrame, *, lab: object | None = None
    ) -> Slates:
        """Build a log from memlab's own slates and feedback, without checks.

        Parameters
        ----------
        slates
            The slates of the recalls.
        feedback
            A frame with ``decision`` (null for a judgement without a recall), ``memory_id``, ``outcome``, ``reward``,
            ``source`` and ``at``. Without a reward, success counts 1 and failure 0.
        lab
            The lab of the log.

        Returns
        -------
        Slates
            The log.
        """
        return cls.of_log(None, slates, feedback, lab=lab)

    @classmethod
    def of_log(
        cls,
        log: SealedLog | None,
        tail: Iterable[Slate],
        feedback: pl.DataFrame,
        *,
        lab: object | None = None,
        notes: Sequence[str] = (),
    ) -> Slates:
        """Build a log from sealed segments, later slates, and feedback.

        Parameters
        ----------
        log
            The sealed segments, which are read when needed, or None.
        tail
            The slates since the last segment.
        feedback
            A frame with the columns that ``Slates.of`` describes.
        lab
            The lab of the log.
        notes
            Observations about the log.

        Returns
        -------
        Slates
            The log.
        """
        recent = [table.lazy() for table in tables_of(list(tail))]
        if log is not None and len(log):
            recent = [
                pl.concat([sealed, new], how="diagonal_relaxed")
                for sealed, new in zip(log.scan(), recent, strict=True)
            ]
        unlinked = feedback["decision"].null_count()
        observations = list(notes)
        if unlinked:
            observations.append(
                f"{unlinked:,} judgement{'s' * (unlinked > 1)} ignored: not linked to a recall."
            )
        counted = feedback_table(feedback)
        attributed = counted["source"].eq_missing(ATTRIBUTED).sum()
        if attributed:
            observations.append(
                f"{attributed:,} of {counted.height:,} rewards were derived from answers and not stated by a user."
            )
        decisions, candidates, exposures = recent
        return cls(
            decisions,
            _reorder_columns(candidates),
            exposures,
            counted.lazy(),
            lab=lab,
            notes=tuple(observations),
        )

    @classmethod
    @arguments.checked
    def from_frames(
        cls,
        decisions: Frame,
        candidates: Frame,
        exposures: Frame,
        feedback: Frame | None = None,
        *,
        policies: Sequence[str] = (),
        reward_range: tuple[float, float] | None = None,
        duplicates: Duplicates = "refuse",
        empty: Empty = "refuse",
        lab: object | None = None,
    ) -> Slates:
        """Build, check and complete a log from four frames of another system.

        Parameters
        ----------
        decisions, candidates, exposures, feedback
            The frames. Each needs the column ``decision``, and all but ``decisions`` need ``memory_id``. ``feedback``
            needs ``reward`` or ``outcome``. Ids are whole numbers or text. ``memlab.kernel.slates.TABLES`` lists the
            optional columns.
        policies
            The columns of ``candidates`` with scores of other policies. Other unknown columns are features.
        reward_range
            The minimum and maximum possible reward.
        duplicates
            Which judgement counts if one source judged a memory of a decision twice.
        empty
            Whether decisions that showed nothing are refused, kept or dropped.
        lab
            The lab that can recall the logged queries again.

        Returns
        -------
        Slates
            The log.

        Raises
        ------
        DatasetError
            If a row is impossible. The message names the table, the row, its ids and the reason.
        UnknownName
            If a required column is missing.
        InputError
            If a column has the wrong type.

        Notes
        -----
        Missing columns are derived if possible: ``rank`` from ``score``, ``position`` from the order of rows, and
        ``limit`` from the number of shown items. ``cluster`` is derived from ``project``, ``session`` or the decision.
        Other missing columns are null. Unknown columns of ``decisions`` are kept.

        A propensity is the probability that an item is shown. The column may be in ``exposures``, ``candidates`` or
        both. Without propensities and without a ``sampler``, the sampler is "unknown", and ``notes`` says so.

        Examples
        --------
        >>> slates = Slates.from_frames(
        ...     pl.DataFrame({"decision": ["q1"]}),
        ...     pl.DataFrame({"decision": ["q1", "q1"], "memory_id": [1, 2], "similarity": [0.9, 0.4]}),
        ...     pl.DataFrame({"decision": ["q1"], "memory_id": [1], "propensity": [1.0]}),
        ...     pl.DataFrame({"decision": ["q1"], "memory_id": [1], "outcome": ["success"]}))
        >>> slates.feedback.collect()["reward"].to_list(), slates.features
        ([1.0], ('similarity',))
        >>> Slates.from_frames(
        ...     pl.DataFrame({"decision": ["q1"]}), pl.DataFrame({"decision": ["q1"], "memory_id": [1]}),
        ...     pl.DataFrame({"decision": ["q1"], "memory_id": [1], "propensity": [1.2]}))
        Traceback (most recent call last):
        memlab.errors.DatasetError: exposures, row 0 (decision 'q1', memory_id 1): propensity is 1.2, above 1.
        """
        if feedback is None:
            feedback = pl.DataFrame(schema=FEEDBACK)
        tables = {
            "decisions": decisions,
            "candidates": candidates,
            "exposures": exposures,
            "feedback": feedback,
        }
        frames = {name: read_frame(frame, name) for name, frame in tables.items()}
        log = check_log(
            frames,
            policies=tuple(policies),
            reward_range=reward_range,
            duplicates=duplicates,
            empty=empty,
        )
        return cls(
            log.decisions.lazy(),
            log.candidates.lazy(),
            log.exposures.lazy(),
            log.feedback.lazy(),
            lab=lab,
            policies=tuple(policies),
            reward_range=reward_range,
            notes=log.notes,
        )

    @classmethod
    @arguments.checked
    def from_wide(
        cls,
        frame: Frame,
        *,
        decision: str,
        item: str,
        shown: str | None = None,
        reward: str | None = None,
        propensity: str | None = None,
        score: str | None = None,
        scores: Sequence[str] = (),
        cluster: str | None = None,
        at: str | None = None,
        limit: str | int | None = None,
        query: str | None = None,
        feedback_at: str | None = None,
        features: Sequence[str] | None = None,
        reward_range: tuple[float, float] | None = None,
        empty: Empty = "refuse",
    ) -> Slates:
        """Build, check and complete a log from one frame with a row per candidate.

        Parameters
        ----------
        frame
            The frame.
        decision, item
            The columns with the ids of decisions and of memories.
        shown
            The column with the rank among the shown items (null or 0 if not shown), or a Boolean column. By default
            every row was shown.
        reward
            The column with the reward, a number or a Boolean. Null or NaN means no feedback. A reward of 0 for an item
            that was not shown counts as no feedback.
        propensity
            The column with the probability of being shown. By default it is unknown, even if every row was shown.
        score
            The column with the score that the logging policy gave the item.
        scores
            The columns with scores of policies to evaluate.
        cluster
            The column whose values group decisions that depend on one another.
        at
            The column with the time of the decision.
        limit
            The number of results, as the name of a column or a number. The default is the number of shown items.
        query
            The column with the text of the query.
        feedback_at
            The column with the time of the feedback.
        features
            The columns with features. The default is all other numeric and Boolean columns. Leave out columns that were
            measured after the decision. A column ``group`` or ``refs``, which near-duplicates share, is kept too.
        reward_range
            The minimum and maximum possible reward.
        empty
            Whether decisions that showed nothing are refused, kept or dropped.

        Returns
        -------
        Slates
            The log.

        Raises
        ------
        DatasetError
            If a row is impossible. The message names the row of the frame and the reason.
        UnknownName
            If a named column is missing.
        InputError
            If a column has the wrong type.

        Examples
        --------
        >>> frame = pl.DataFrame({"q": [1, 1], "doc": [7, 8], "shown": [True, False], "clicked": [1, 0]})
        >>> log = Slates.from_wide(frame, decision="q", item="doc", shown="shown", reward="clicked")
        >>> log.exposures.collect()["memory_id"].to_list()
        [7]
        """
        frames, labels, notes = narrow(
            frame,
            decision=decision,
            item=item,
            shown=shown,
            reward=reward,
            propensity=propensity,
            score=score,
            scores=scores,
            cluster=cluster,
            at=at,
            limit=limit,
            query=query,
            feedback_at=feedback_at,
            features=features,
        )
        log = check_log(
            frames, policies=tuple(scores), reward_range=reward_range, empty=empty, labels=labels
        )
        return cls(
            log.decisions.lazy(),
            log.candidates.lazy(),
            log.exposures.lazy(),
            log.feedback.lazy(),
            policies=tuple(scores),
            reward_range=reward_range,
            notes=(*notes, *log.notes),
        )

    @arguments.checked
    def to_wide(self, *, duplicates: Duplicates = "refuse") -> pl.DataFrame:
        """Return the log as one frame with one row per candidate.

        Parameters
        ----------
        duplicates
            Which judgement counts if a memory of a decision was judged more than once, by any source.

        Returns
        -------
        polars.DataFrame
            Each candidate with its decision, exposure and feedback. A column for which ``from_wide`` has no parameter
            begins with the name of its table, such as ``decision.pack``. ``from_wide`` recognises such columns.

        Raises
        ------
        DatasetError
            If there are repeated judgements and ``duplicates`` is "refuse".

        Notes
        -----
        Decisions without candidates and judgements without a recall have no row, and the order of feedback is lost.
        Otherwise ``from_wide`` restores the log exactly.

        Examples
        --------
        >>> wide = slates.to_wide()                                                        # doctest: +SKIP
        >>> Slates.from_wide(wide, **WIDE, scores=slates.policies, features=slates.features)   # doctest: +SKIP
        """
        return widen(
            self._tables, features=self.features, policies=self.policies, duplicates=duplicates
        )

    # -- parts ------------------------------------------------------------------------------------------------

    @arguments.checked
    def filter(self, *predicates: pl.Expr) -> Slates:
        """Return the part of the log whose decisions satisfy all predicates.

        Parameters
        ----------
        *predicates
            Polars expressions over the columns of ``decisions``.

        Returns
        -------
        Slates
            A lazy log; nothing is computed yet.

        Examples
        --------
        >>> recent = slates.filter(pl.col("at") >= pl.datetime(2026, 3, 1, time_zone="UTC"))   # doctest: +SKIP
        """
        return self._restrict(self.decisions.filter(*predicates))

    @arguments.checked
    def split(
        self,
        by: Literal["time", "cluster"] = "time",
        *,
        share: float = 0.5,
        at: When | None = None,
        seed: int = 0,
    ) -> tuple[Slates, Slates]:
        """Split the log into a part to choose a policy and a part to evaluate the policy.

        Parameters
        ----------
        by
            "time" splits into earlier and later decisions, and keeps decisions of the same instant together. "cluster"
            draws clusters at random, so that dependent decisions stay together.
        share
            The share of decisions or clusters in the first part, between 0 and 1.
        at
            The time of the split, instead of ``share``.
        seed
            The seed of the draw of clusters.

        Returns
        -------
        tuple of Slates
            The two parts.

        Raises
        ------
        InputError
            If a part would be empty, or the log has no times.

        Examples
        --------
        >>> choose, judge = slates.split("cluster", share=0.5)                             # doctest: +SKIP
        """
        if not 0 < share < 1:
            raise InputError(f"share must be between 0 and 1, not {share!r}.")
        if by == "cluster":
            if at is not None:
                raise InputError(
                    'at= only works with a split by time: slates.split("time", at=...).'
                )
            return self._split_by_cluster(share, seed)
        if by != "time":
            raise UnknownName("way to split", by, ("time", "cluster"))
        return self._split_by_time(share, None if at is None else to_micros(at))

    def _split_by_time(self, share: float, cut: int | None) -> tuple[Slates, Slates]:
        """Split the log into an earlier and a later part, at the instant ``cut`` or by a share of decisions.

        ``share`` is the share of the earlier part. Decisions at ``cut`` are in the later part. Raises
        InputError if a part would be empty.
        """
        times = self.decisions.select("at").collect()["at"]
        if times.null_count():
            raise InputError('The log has no times. Split it by cluster: slates.split("cluster").')
        instants = times.cast(pl.Int64).unique().sort()
        if cut is None:
            if len(instants) < 2:
                raise InputError(
                    "Every decision has the same time, so there is no earlier and later part. Split by cluster."
                )
            ordered = times.cast(pl.Int64).sort()
            cut = max(ordered[min(round(share * len(ordered)), len(ordered) - 1)], instants[1])
        elif not instants.len() or not instants[0] < cut <= instants[-1]:
            span = (
                f"{from_micros(instants[0])} to {from_micros(instants[-1])}"
                if len(instants)
                else "empty"
            )
            raise InputError(
                f"{from_micros(cut)} leaves one part empty. Choose a time within the log: {span}."
            )
        before = pl.col("at") < pl.lit(cut, dtype=pl.Int64).cast(INSTANT)
        return self.filter(before), self.filter(~before)

    def _split_by_cluster(self, share: float, seed: int) -> tuple[Slates, Slates]:
        """Split the log by clusters, in the order of a seeded hash of their names.

        ``share`` is the share of clusters in the first part; each part has at least one.
        """
        clusters: list[str] = (
            self.decisions.select("cluster").unique().collect()["cluster"].to_list()
        )
        if len(clusters) < 2:
            raise InputError(
                f"The log has {len(clusters)} cluster, and a split by cluster needs two. Split by time."
            )

        def draw(cluster: str) -> bytes:
            """Return the seeded hash that orders clusters."""
            return hashlib.blake2b(f"{seed}\x1f{cluster}".encode(), digest_size=16).digest()

        count = min(max(round(share * len(clusters)), 1), len(clusters) - 1)
        chosen = pl.col("cluster").is_in(sorted(clusters, key=draw)[:count])
        return self.filter(chosen), self.filter(~chosen)

    def _restrict(self, decisions: pl.LazyFrame) -> Slates:
        """Return the log with only the rows of the given decisions in all tables."""
        ids = decisions.select("decision")

        def select(table: pl.LazyFrame) -> pl.LazyFrame:
            """Return the rows of a table that belong to the given decisions."""
            return table.join(ids, on="decision", how="semi", maintain_order="left")

        return replace(
            self,
            decisions=decisions,
            candidates=select(self.candidates),
            exposures=select(self.exposures),
            feedback=select(self.feedback),
        )

    @arguments.checked
    def collect(self) -> Slates:
        """Read all tables into memory and return the log with these tables.

        Returns
        -------
        Slates
            The log.
        """
        decisions, candidates, exposures, feedback = (
            table.lazy() for table in pl.collect_all(self._tables)
        )
        return replace(
            self, decisions=decisions, candidates=candidates, exposures=exposures, feedback=feedback
        )

    # -- contents ----------------------------------------------------------------------------------------------

    @cached_property
    def features(self) -> tuple[str, ...]:
        """The names of the features of the candidates."""
        names = self.candidates.collect_schema().names()
        return tuple(name for name in names if name not in CANDIDATES and name not in self.policies)

    @arguments.checked
    def fingerprints(self, decision: int | str) -> dict[str, str]:
        """Return the fingerprint of each feature of one decision.

        Parameters
        ----------
        decision
            The id of the decision.

        Returns
        -------
        dict
            The fingerprints by name of the feature, empty if none were logged.

        Raises
        ------
        UnknownName
            If there is no such decision.
        """
        rows = (
            self.decisions.filter(pl.col("decision") == decision).select("fingerprints").collect()
        )
        if rows.is_empty():
            raise UnknownName("decision", decision, ())
        text: str | None = rows.item()
        return {} if text is None else msgspec.json.decode(text, type=dict[str, str])

    @cached_property
    def _length(self) -> int:
        """The number of decisions in the log."""
        return int(self.decisions.select(pl.len()).collect().item())

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return printable(self._summary().as_text())

    def _display(self) -> object:
        summary = self._summary()
        return table("Slates", ("", ""), summary.rows, notes=summary.notes)

    def _summary(self) -> Summary:
        """Return the summary of the log."""
        return summary_of(
            self._tables, features=self.features, policies=self.policies, notes=self.notes
        )

    @property
    def _tables(self) -> tuple[pl.LazyFrame, ...]:
        """The tables of decisions, candidates, exposures and feedback."""
        return self.decisions, self.candidates, self.exposures, self.feedback


def _reorder_columns(candidates: pl.LazyFrame) -> pl.LazyFrame:
    """Move score, rank and propensity to the end of the table of candidates.

    The ids come first, then the features.
    """
    names = candidates.collect_schema().names()
    ends = ["score", "rank", "propensity"]
    return candidates.select(*(name for name in names if name not in ends), *ends)

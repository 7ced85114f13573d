"""From slates to columns: one concatenation a column, not a frame a slate."""

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
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName
from memlab.kernel.base import arguments
from memlab.kernel.base.clock import When, from_micros, to_micros
from memlab.kernel.base.display import Displayed, table
from memlab.kernel.base.printable import printable
from memlab.kernel.slates._foreign import Duplicates, Empty, checked, narrow, taken, widened
from memlab.kernel.slates._schema import (
    ATTRIBUTED,
    CANDIDATES,
    DECISIONS,
    FEEDBACK,
    IDS,
    STAMP,
    reward_of,
)
from memlab.kernel.slates._segments import SealedLog
from memlab.kernel.slates._slate import FORMAT, Slate, number_series

__all__ = ["Frame", "Logged", "Slates", "Summary", "feedback_table", "summary_of", "tables_of"]


class Logged(NamedTuple):
    """The three tables that recalls write; feedback comes later."""

    decisions: pl.DataFrame
    candidates: pl.DataFrame
    exposures: pl.DataFrame


def tables_of(slates: Sequence[Slate]) -> Logged:
    """The tables of these slates, in their order. A feature that a slate lacks is null there."""
    return Logged(_decisions(slates), _candidates(slates), _exposures(slates))


def _decisions(slates: Sequence[Slate]) -> pl.DataFrame:
    def json(value: object) -> str:
        return msgspec.json.encode(value).decode()

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
            if kind == STAMP
            else pl.Series(name, columns[name], dtype=kind)
            for name, kind in DECISIONS.items()
        ]
    )


def _candidates(slates: Sequence[Slate]) -> pl.DataFrame:
    blocks: dict[tuple[tuple[str, ...], ...], list[int]] = {}
    for index, slate in enumerate(slates):
        blocks.setdefault((tuple(slate.numbers), tuple(slate.words), slate.flags), []).append(index)
    frames = [_block([slates[index] for index in indices]) for indices in blocks.values()] or [
        _block([])
    ]
    if len(frames) == 1:
        return frames[0]
    last = ["score", "rank", "propensity"]
    together = pl.concat(frames, how="diagonal_relaxed")
    owner = np.concatenate(
        [
            np.repeat(indices, [len(slates[index].ids) for index in indices])
            for indices in blocks.values()
        ]
    )
    features = [name for name in together.columns if name not in last]
    return together[np.argsort(owner, kind="stable")].select(*features, *last)


def _block(slates: Sequence[Slate]) -> pl.DataFrame:
    """The candidates of slates that have the same features."""
    numbers, words, flags = (
        (slates[0].numbers, slates[0].words, slates[0].flags) if slates else ({}, {}, ())
    )
    sizes = [len(slate.ids) for slate in slates]
    decisions = np.repeat(np.array([slate.decision for slate in slates], dtype=np.int64), sizes)
    return pl.DataFrame(
        [
            pl.Series("decision", decisions),
            pl.Series("memory_id", _joined([slate.ids for slate in slates], np.int64)),
            *(
                number_series(
                    name,
                    _joined([slate.numbers[name] for slate in slates], np.float64),
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
            pl.Series("score", _joined([slate.scores for slate in slates], np.float64)),
            pl.Series("rank", _joined(list(map(_ranking, slates)), np.int64)),
            pl.Series("propensity", _joined(list(map(_inclusion, slates)), np.float64)),
        ]
    )


def _exposures(slates: Sequence[Slate]) -> pl.DataFrame:
    sizes = [len(slate.shown) for slate in slates]
    propensity = _joined([_inclusion(slate)[slate.places] for slate in slates], np.float64)
    sure = np.where(propensity == 1.0, 1.0, np.nan)
    ends = np.cumsum(sizes)
    for slate, size, end in zip(slates, sizes, ends, strict=True):
        if slate.conditional:
            sure[end - size : end] = slate.conditional
    return pl.DataFrame(
        [
            pl.Series(
                "decision",
                np.repeat(np.array([slate.decision for slate in slates], dtype=np.int64), sizes),
            ),
            pl.Series("position", _joined([np.arange(1, size + 1) for size in sizes], np.int64)),
            pl.Series(
                "memory_id",
                list(chain.from_iterable(slate.shown for slate in slates)),
                dtype=pl.Int64,
            ),
            pl.Series("propensity", propensity),
            pl.Series("conditional", sure).fill_nan(None),
            pl.Series(
                "probe",
                [memory in slate.probes for slate in slates for memory in slate.shown],
                dtype=pl.Boolean,
            ),
        ]
    )


def _inclusion(slate: Slate) -> NDArray[np.float64]:
    return slate.inclusion if slate.propensity is None else slate.propensity


def _ranking(slate: Slate) -> NDArray[np.int64]:
    return slate.ranking if slate.ranks is None else slate.ranks


def _joined(parts: Sequence[NDArray[Any]], kind: type[np.generic]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0, dtype=kind)


def feedback_table(feedback: pl.DataFrame) -> pl.DataFrame:
    """The feedback that a lab logged, in its order; an outcome without a reward is worth 1 (success) or 0 (fail).

    What was attributed to a memory of a recall counts where nobody stated anything of it, and counts once: the last.
    Beside what was stated it is kept, in ``attributed``.
    """
    absent = [
        pl.lit(None, dtype=kind).alias(name)
        for name, kind in FEEDBACK.items()
        if name not in feedback.columns
    ]
    item, attributed = ["decision", "memory_id"], pl.col("source").eq_missing(ATTRIBUTED)
    stated = (~attributed).any().over(item)
    read = reward_of("reward", "outcome").filter(attributed).last().over(item)
    last = pl.int_range(pl.len()).over(item) == pl.len().over(item) - 1
    return (
        feedback.with_columns(absent)
        .with_columns(attributed=read)
        .filter(~attributed | (~stated & last))
        .select(*("decision", "memory_id"), reward_of("reward", "outcome"), *list(FEEDBACK)[3:])
    )


# What a log is at a glance: counts, time span, samplers, probes, feedback, packs.


@dataclass(frozen=True)
class Summary:
    """``probes`` and ``judged`` are shares of what was shown: flagged as probes, and given feedback.

    ``probes`` is None where items were shown by chance and none is flagged: the log does not say which were probes.
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
        """What is shown, as pairs of a word and a text."""
        span = "no times"
        if self.first is not None and self.last is not None:
            span = f"{self.first:%Y-%m-%d %H:%M} to {self.last:%Y-%m-%d %H:%M} UTC"
        a_decision = (
            f" ({self.candidates / self.decisions:.1f} a decision)" if self.decisions else ""
        )
        a_probe = "" if self.probes is None else f", {self.probes:.1%} of them probes"
        return [
            ("decisions", f"{self.decisions:,} in {self.clusters:,} clusters"),
            ("candidates", f"{self.candidates:,}{a_decision}"),
            ("shown", f"{self.shown:,}{a_probe}"),
            ("feedback", f"for {self.judged:.1%} of what was shown"),
            ("sampler", _counted(self.samplers) or "not told"),
            ("packs", _counted(self.packs) or "not told"),
            ("time", span),
            *([("features", _clipped(self.features))] if self.features else []),
            *([("policies", _clipped(self.policies))] if self.policies else []),
        ]

    def as_text(self) -> str:
        """For a terminal."""
        rows = [*self.rows, *(("note", note) for note in self.notes)]
        return "\n".join(["<Slates", *(f"  {name:<11}{text}" for name, text in rows)]) + ">"


def _counted(pairs: tuple[tuple[str, int], ...]) -> str:
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
    """The summary of a log's four tables; values of features are not read, and a column that the tables lack counts as
    untold.
    """
    decisions, candidates, exposures, feedback = tables
    asked = set(decisions.collect_schema().names())
    answered = exposures.join(feedback, on=list(IDS), how="semi").select(judged=pl.len())
    told = set(exposures.collect_schema().names())
    probes = pl.col("probe").mean() if "probe" in told else pl.lit(0.0)
    by_chance = (pl.col("propensity") < 1).any() if "propensity" in told else pl.lit(False)
    overall = [
        pl.len().alias("decisions"),
        (pl.col("cluster").n_unique() if "cluster" in asked else pl.len()).alias("clusters"),
        (pl.col("at").min() if "at" in asked else pl.lit(None)).alias("first"),
        (pl.col("at").max() if "at" in asked else pl.lit(None)).alias("last"),
    ]
    named = [name for name in ("sampler", "pack") if name in asked]
    parts = pl.collect_all(
        [
            decisions.select(overall),
            candidates.select(candidates=pl.len()),
            exposures.select(
                pl.len().alias("shown"), probes.alias("probes"), by_chance.alias("by_chance")
            ),
            answered,
            *(
                decisions.filter(pl.col(name).is_not_null())
                .group_by(name)
                .len()
                .sort("len", name, descending=[True, False])
                for name in named
            ),
        ]
    )
    row = pl.concat(parts[:4], how="horizontal").row(0, named=True)
    counts = {name: tuple(frame.rows()) for name, frame in zip(named, parts[4:], strict=True)}
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


def _clipped(names: tuple[str, ...]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


# ``Slates``: the four tables of a log, from a lab or from anybody's frames.


Frame = pl.DataFrame | pl.LazyFrame


@arguments.checked
@dataclass(frozen=True, eq=False, repr=False)
class Slates(Displayed):
    """The four tables of a log, as lazy frames.

    ``decisions`` has a row a recall, ``candidates`` a row for each memory in its pool with its features, ``exposures``
    what was shown and with which probability, ``feedback`` what came of it. ``memlab.kernel.slates.TABLES`` lists their
    columns. ``lab`` is the lab that they came from, if it is at hand; ``policies`` names columns of ``candidates`` that
    hold the scores of other policies; ``reward_range`` is the least and the greatest possible reward, where declared;
    ``notes`` says what was found while the log was taken.

    A log in one frame, one row a candidate:

    >>> log = pl.DataFrame({
    ...     "query_id": [1, 1, 1, 2, 2, 2], "memory_id": [7, 8, 9, 7, 8, 9], "rank": [1, 2, 0, 2, 0, 1],
    ...     "clicked": [1, 0, 0, 0, 0, 1], "p": [1.0, 0.2, 0.8, 0.5, 0.5, 1.0], "mine": [0.1, 0.5, 0.4, 0.3, 0.2, 0.9]})
    >>> slates = Slates.from_wide(log, decision="query_id", item="memory_id", shown="rank", reward="clicked",
    ...                           propensity="p", scores=["mine"])
    >>> slates
    <Slates
      decisions  2 in 2 clusters
      candidates 6 (3.0 a decision)
      shown      4
      feedback   for 100.0% of what was shown
      sampler    logged
      packs      not told
      time       no times
      policies   mine
      note       No limit is given: a head is all that its recall showed, probes included.
      note       2 rows that were not shown have clicked 0: no feedback, and left out.>
    """

    decisions: pl.LazyFrame
    candidates: pl.LazyFrame
    exposures: pl.LazyFrame
    feedback: pl.LazyFrame
    lab: object | None = None
    policies: tuple[str, ...] = ()
    reward_range: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()

    # -- from where -------------------------------------------------------------------------------------------------

    @classmethod
    def of(
        cls, slates: Iterable[Slate], feedback: pl.DataFrame, *, lab: object | None = None
    ) -> Slates:
        """The tables of these slates and of what was said about them; nothing is checked, as memlab wrote it.

        ``feedback`` has ``decision`` (null for a judgement without a recall), ``memory_id``, ``outcome``, ``reward``,
        ``source`` and ``at``. Success is worth 1 and failure 0 where no reward was given.
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
        """The tables of sealed segments, read when they are needed, and of the slates since they were sealed."""
        recent = [table.lazy() for table in tables_of(list(tail))]
        if log is not None and len(log):
            recent = [
                pl.concat([sealed, new], how="diagonal_relaxed")
                for sealed, new in zip(log.scan(), recent, strict=True)
            ]
        loose = feedback["decision"].null_count()
        found = list(notes)
        if loose:
            found.append(f"{loose:,} feedback{'s' * (loose > 1)} ignored: not linked to a recall.")
        counted = feedback_table(feedback)
        attributed = counted["source"].eq_missing(ATTRIBUTED).sum()
        if attributed:
            found.append(
                f"{attributed:,} of {counted.height:,} rewards were read from answers; nobody stated them."
            )
        decisions, candidates, exposures = recent
        return cls(
            decisions,
            _last(candidates),
            exposures,
            counted.lazy(),
            lab=lab,
            notes=tuple(found),
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
        """Anybody's four frames, checked and completed.

        Required are ``decision`` in each, ``memory_id`` in all but the first, and ``reward`` or ``outcome`` in
        ``feedback``. Ids are whole numbers or text. ``memlab.kernel.slates.TABLES`` lists the other columns; what is
        absent follows from the rest (``rank`` from ``score``, ``position`` from the order of rows, ``limit`` from how
        many were shown, ``cluster`` from ``project``, ``session`` or the decision itself) or is null. Other columns of
        ``candidates`` are features, or scores if ``policies`` names them; other columns of ``decisions`` are kept.

        A propensity is the probability of being shown; it may stand in ``exposures``, ``candidates`` or both. Without
        any, and without a ``sampler``, the sampler is "unknown", and ``notes`` says so.

        ``duplicates`` says what counts if one source judged a memory of a decision twice; ``empty`` whether decisions
        that showed nothing are refused, kept or dropped.

        Raises DatasetError with table, row, ids and reason for the first row that cannot be; UnknownName for a missing
        column; InputError for a column of the wrong type.

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
        given = {
            "decisions": decisions,
            "candidates": candidates,
            "exposures": exposures,
            "feedback": feedback,
        }
        frames = {name: taken(frame, name) for name, frame in given.items()}
        found = checked(
            frames,
            policies=tuple(policies),
            reward_range=reward_range,
            duplicates=duplicates,
            empty=empty,
        )
        return cls(
            found.decisions.lazy(),
            found.candidates.lazy(),
            found.exposures.lazy(),
            found.feedback.lazy(),
            lab=lab,
            policies=tuple(policies),
            reward_range=reward_range,
            notes=found.notes,
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
        """A log in one frame, one row a candidate; the arguments name its columns.

        ``shown`` is a rank (null or 0: not shown) or Boolean; without it every row was shown. ``reward`` is a number
        or Boolean, null or NaN where there was no feedback, ``feedback_at`` its time; 0 for what was not shown counts
        as none. ``propensity`` is the probability with which the row was to be shown; without it that is unknown,
        even if every row was shown. ``score`` is what the logging policy gave, ``scores`` are those of policies to
        evaluate. ``limit`` is the size of the head, a column or a number: without it, all that was shown. All other
        numeric and Boolean columns become features, unless ``features`` lists them: leave out what was measured
        afterwards.

        Raises as ``from_frames`` does, in the words of the frame.
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
        found = checked(
            frames, policies=tuple(scores), reward_range=reward_range, empty=empty, labels=labels
        )
        return cls(
            found.decisions.lazy(),
            found.candidates.lazy(),
            found.exposures.lazy(),
            found.feedback.lazy(),
            policies=tuple(scores),
            reward_range=reward_range,
            notes=(*notes, *found.notes),
        )

    @arguments.checked
    def to_wide(self, *, duplicates: Duplicates = "refuse") -> pl.DataFrame:
        """One row a candidate, with its decision, exposure and feedback beside it: the inverse of ``from_wide``.

        Columns that ``from_wide`` has no argument for have the table in their names, such as ``decision.pack``; it
        reads them back. The way back is exact but for the order of feedback: decisions without candidates and
        judgements without a recall have no row here.

        ``duplicates`` says what counts if a memory of a decision was judged more than once, by whatever source.

        >>> wide = slates.to_wide()                                                        # doctest: +SKIP
        >>> Slates.from_wide(wide, **WIDE, scores=slates.policies, features=slates.features)   # doctest: +SKIP
        """
        return widened(
            self._tables, features=self.features, policies=self.policies, duplicates=duplicates
        )

    # -- parts of it ------------------------------------------------------------------------------------------------

    @arguments.checked
    def filter(self, *predicates: pl.Expr) -> Slates:
        """The part of the log whose decisions satisfy all ``predicates``; nothing is computed yet.

        >>> recent = slates.filter(pl.col("at") >= pl.datetime(2026, 3, 1, time_zone="UTC"))   # doctest: +SKIP
        """
        return self._part(self.decisions.filter(*predicates))

    @arguments.checked
    def split(
        self,
        by: Literal["time", "cluster"] = "time",
        *,
        share: float = 0.5,
        at: When | None = None,
        seed: int = 0,
    ) -> tuple[Slates, Slates]:
        """Two parts of the log: one to choose on, and one to judge the choice by.

        By time, the first ``share`` of decisions and the later ones, or those before ``at`` and the rest; decisions of
        one instant stay together. By cluster, whole clusters drawn by ``seed``, so that what is not independent stays
        together.

        >>> choose, judge = slates.split("cluster", share=0.5)                             # doctest: +SKIP
        """
        if not 0 < share < 1:
            raise InputError(f"share lies between 0 and 1, not {share!r}.")
        if by == "cluster":
            if at is not None:
                raise InputError('at= splits by time: slates.split("time", at=...).')
            return self._by_cluster(share, seed)
        if by != "time":
            raise UnknownName("way to split", by, ("time", "cluster"))
        return self._by_time(share, None if at is None else to_micros(at))

    def _by_time(self, share: float, cut: int | None) -> tuple[Slates, Slates]:
        times = self.decisions.select("at").collect()["at"]
        if times.null_count():
            raise InputError('The log has no times; split it by cluster: slates.split("cluster").')
        instants = times.cast(pl.Int64).unique().sort()
        if cut is None:
            if len(instants) < 2:
                raise InputError(
                    "Every decision has the same time: there is no earlier and later part."
                )
            ordered = times.cast(pl.Int64).sort()
            cut = max(ordered[min(round(share * len(ordered)), len(ordered) - 1)], instants[1])
        elif not instants.len() or not instants[0] < cut <= instants[-1]:
            span = (
                f"{from_micros(instants[0])} to {from_micros(instants[-1])}"
                if len(instants)
                else "empty"
            )
            raise InputError(f"{from_micros(cut)} leaves one part empty: the log is {span}.")
        before = pl.col("at") < pl.lit(cut, dtype=pl.Int64).cast(STAMP)
        return self.filter(before), self.filter(~before)

    def _by_cluster(self, share: float, seed: int) -> tuple[Slates, Slates]:
        clusters: list[str] = (
            self.decisions.select("cluster").unique().collect()["cluster"].to_list()
        )
        if len(clusters) < 2:
            raise InputError(f"The log has {len(clusters)} cluster: it cannot be split by cluster.")

        def draw(cluster: str) -> bytes:
            return hashlib.blake2b(f"{seed}\x1f{cluster}".encode(), digest_size=16).digest()

        count = min(max(round(share * len(clusters)), 1), len(clusters) - 1)
        chosen = pl.col("cluster").is_in(sorted(clusters, key=draw)[:count])
        return self.filter(chosen), self.filter(~chosen)

    def _part(self, decisions: pl.LazyFrame) -> Slates:
        kept = decisions.select("decision")

        def theirs(table: pl.LazyFrame) -> pl.LazyFrame:
            return table.join(kept, on="decision", how="semi", maintain_order="left")

        return replace(
            self,
            decisions=decisions,
            candidates=theirs(self.candidates),
            exposures=theirs(self.exposures),
            feedback=theirs(self.feedback),
        )

    @arguments.checked
    def collect(self) -> Slates:
        """The same log with its four tables in memory, so that each is read and filtered once."""
        decisions, candidates, exposures, feedback = (
            table.lazy() for table in pl.collect_all(self._tables)
        )
        return replace(
            self, decisions=decisions, candidates=candidates, exposures=exposures, feedback=feedback
        )

    # -- what it holds ----------------------------------------------------------------------------------------------

    @cached_property
    def features(self) -> tuple[str, ...]:
        """The features that the candidates carry."""
        names = self.candidates.collect_schema().names()
        return tuple(name for name in names if name not in CANDIDATES and name not in self.policies)

    @arguments.checked
    def fingerprints(self, decision: int | str) -> dict[str, str]:
        """The fingerprint of each feature as it was logged for one decision; empty where none was."""
        rows = (
            self.decisions.filter(pl.col("decision") == decision).select("fingerprints").collect()
        )
        if rows.is_empty():
            raise UnknownName("decision", decision, ())
        text: str | None = rows.item()
        return {} if text is None else msgspec.json.decode(text, type=dict[str, str])

    @cached_property
    def _length(self) -> int:
        return int(self.decisions.select(pl.len()).collect().item())

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return printable(self._summary().as_text())

    def _display(self) -> object:
        summary = self._summary()
        return table("Slates", ("", ""), summary.rows, notes=summary.notes)

    def _summary(self) -> Summary:
        return summary_of(
            self._tables, features=self.features, policies=self.policies, notes=self.notes
        )

    @property
    def _tables(self) -> tuple[pl.LazyFrame, ...]:
        return self.decisions, self.candidates, self.exposures, self.feedback


def _last(candidates: pl.LazyFrame) -> pl.LazyFrame:
    """The candidates with their features between the ids and the score, also where tables of several kinds met."""
    names = candidates.collect_schema().names()
    ends = ["score", "rank", "propensity"]
    return candidates.select(*(name for name in names if name not in ends), *ends)

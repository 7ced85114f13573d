"""``Slates``: the four tables of a log, from a lab or from anybody's frames."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import msgspec
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base import arguments
from memlab.kernel.base.clock import When, from_micros, to_micros
from memlab.kernel.base.display import Displayed, table
from memlab.kernel.base.printable import printable
from memlab.kernel.slates._checks import taken
from memlab.kernel.slates._columns import feedback_table, tables_of
from memlab.kernel.slates._frames import Duplicates, Empty, checked
from memlab.kernel.slates._schema import ATTRIBUTED, CANDIDATES, FEEDBACK, STAMP
from memlab.kernel.slates._segments import SlateLog
from memlab.kernel.slates._slate import Slate
from memlab.kernel.slates._summary import Summary, summary_of
from memlab.kernel.slates._wide import narrow, widened

__all__ = ["Frame", "Slates"]

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
    def of(cls, slates: Iterable[Slate], feedback: pl.DataFrame, *, lab: object | None = None) -> Slates:
        """The tables of these slates and of what was said about them; nothing is checked, as memlab wrote it.

        ``feedback`` has ``decision`` (null for a judgement without a recall), ``memory_id``, ``outcome``, ``reward``,
        ``source`` and ``at``. Success is worth 1 and failure 0 where no reward was given.
        """
        return cls.of_log(None, slates, feedback, lab=lab)

    @classmethod
    def of_log(
        cls, log: SlateLog | None, tail: Iterable[Slate], feedback: pl.DataFrame, *, lab: object | None = None
    ) -> Slates:
        """The tables of sealed segments, read when they are needed, and of the slates since ``log.sealed``."""
        recent = [table.lazy() for table in tables_of(list(tail))]
        if log is not None and log.sealed:
            recent = [
                pl.concat([sealed, new], how="diagonal_relaxed") for sealed, new in zip(log.scan(), recent, strict=True)
            ]
        loose = feedback["decision"].null_count()
        notes: tuple[str, ...] = (
            (f"{loose:,} feedback{'s' * (loose > 1)} ignored: not linked to a recall.",) if loose else ()
        )
        counted = feedback_table(feedback)
        attributed = counted["source"].eq_missing(ATTRIBUTED).sum()
        if attributed:
            notes += (f"{attributed:,} of {counted.height:,} rewards were read from answers; nobody stated them.",)
        decisions, candidates, exposures = recent
        return cls(
            decisions,
            _last(candidates),
            exposures,
            counted.lazy(),
            lab=lab,
            notes=notes,
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
        given = {"decisions": decisions, "candidates": candidates, "exposures": exposures, "feedback": feedback}
        frames = {name: taken(frame, name) for name, frame in given.items()}
        found = checked(frames, policies=tuple(policies), reward_range=reward_range, duplicates=duplicates, empty=empty)
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
        found = checked(frames, policies=tuple(scores), reward_range=reward_range, empty=empty, labels=labels)
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
        return widened(self._tables, features=self.features, policies=self.policies, duplicates=duplicates)

    # -- parts of it ------------------------------------------------------------------------------------------------

    @arguments.checked
    def filter(self, *predicates: pl.Expr) -> Slates:
        """The part of the log whose decisions satisfy all ``predicates``; nothing is computed yet.

        >>> recent = slates.filter(pl.col("at") >= pl.datetime(2026, 3, 1, time_zone="UTC"))   # doctest: +SKIP
        """
        return self._part(self.decisions.filter(*predicates))

    @arguments.checked
    def split(
        self, by: Literal["time", "cluster"] = "time", *, share: float = 0.5, at: When | None = None, seed: int = 0
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
                raise InputError("Every decision has the same time: there is no earlier and later part.")
            ordered = times.cast(pl.Int64).sort()
            cut = max(ordered[min(round(share * len(ordered)), len(ordered) - 1)], instants[1])
        elif not instants.len() or not instants[0] < cut <= instants[-1]:
            span = f"{from_micros(instants[0])} to {from_micros(instants[-1])}" if len(instants) else "empty"
            raise InputError(f"{from_micros(cut)} leaves one part empty: the log is {span}.")
        before = pl.col("at") < pl.lit(cut, dtype=pl.Int64).cast(STAMP)
        return self.filter(before), self.filter(~before)

    def _by_cluster(self, share: float, seed: int) -> tuple[Slates, Slates]:
        clusters: list[str] = self.decisions.select("cluster").unique().collect()["cluster"].to_list()
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
        decisions, candidates, exposures, feedback = (table.lazy() for table in pl.collect_all(self._tables))
        return replace(self, decisions=decisions, candidates=candidates, exposures=exposures, feedback=feedback)

    # -- what it holds ----------------------------------------------------------------------------------------------

    @cached_property
    def features(self) -> tuple[str, ...]:
        """The features that the candidates carry."""
        names = self.candidates.collect_schema().names()
        return tuple(name for name in names if name not in CANDIDATES and name not in self.policies)

    @arguments.checked
    def fingerprints(self, decision: int | str) -> dict[str, str]:
        """The fingerprint of each feature as it was logged for one decision; empty where none was."""
        rows = self.decisions.filter(pl.col("decision") == decision).select("fingerprints").collect()
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
        return summary_of(self._tables, features=self.features, policies=self.policies, notes=self.notes)

    @property
    def _tables(self) -> tuple[pl.LazyFrame, ...]:
        return self.decisions, self.candidates, self.exposures, self.feedback


def _last(candidates: pl.LazyFrame) -> pl.LazyFrame:
    """The candidates with their features between the ids and the score, also where tables of several kinds met."""
    names = candidates.collect_schema().names()
    ends = ["score", "rank", "propensity"]
    return candidates.select(*(name for name in names if name not in ends), *ends)

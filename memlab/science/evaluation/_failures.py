"""``memlab.failures``: where does it fail? Every wanted memory, and the place at which it was lost.

A memory that a question wants is lost in one of four places, each with a remedy of its own: it was never stored, it did
not become a candidate, it was a candidate and ranked below the head, or it was shown and nobody could use it. What is
wanted is said by labels, or by the feedback of people who found it helpful.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import Share, Within, checked
from memlab.kernel.base.display import Columns, Report, Table, clip, format_rows
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.slates import Slates
from memlab.science.evaluation._intervals import Estimate, Sample
from memlab.science.evaluation._log import Log, read_log
from memlab.science.evaluation._prepared import HasSlates

__all__ = ["PLACES", "Failures", "failures"]

PLACES: Mapping[str, str] = MappingProxyType(
    {
        "never stored": "the lab did not hold it when the question was asked",
        "not in the pool": "it was stored, and no search brought it up as a candidate",
        "ranked out": "it was a candidate, and stood below the head",
        "shown and unused": "it stood in the head, and feedback says that it did not help",
    }
)
"""Where a wanted memory may be lost, with what that means; in the order of a recall."""

FOUND = "found"
_ORDER = (*PLACES, FOUND)
_ABOVE = 3
_HALF = 0.5


@dataclass(frozen=True, repr=False)
class Failures(Report):
    """Where wanted memories were lost.

    ``rows`` has one for each memory that a question wanted: ``decision``, ``question``, ``memory_id``, ``ref``,
    ``place`` (one of ``PLACES``, or found), ``rank`` and ``pool`` (its size), ``limit``, ``reward``, ``status`` of the
    memory. ``examples`` are some of each place, with ``wanted`` (its text) and ``above`` (what stood first).
    ``known`` counts recalls with a wanted memory, ``unknown`` those of which it is said that nothing was known, and
    ``unlabelled`` those of which nothing is said.
    """

    rows: pl.DataFrame
    examples: pl.DataFrame
    shares: Mapping[str, Estimate]
    known: int
    unknown: int
    unlabelled: int
    method: str
    level: float
    notes: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        """How many wanted memories were lost."""
        return self.rows.filter(pl.col("place") != FOUND).height

    @cached_property
    def frame(self) -> pl.DataFrame:
        """A row a place, and one for what was found: place, count, share, low, high, meaning."""
        counted = dict(self.rows.group_by("place").len().iter_rows())
        return pl.DataFrame(
            [
                {
                    "place": place,
                    "count": counted.get(place, 0),
                    "share": self.shares[place].value,
                    "low": _bounded(self.shares[place].low),
                    "high": _bounded(self.shares[place].high),
                    "meaning": PLACES.get(place, "it stood in the head"),
                }
                for place in _ORDER
            ],
            schema_overrides={"low": pl.Float64, "high": pl.Float64},
        )

    @property
    def sentence(self) -> str:
        """Where most is lost."""
        lost, wanted = len(self), self.rows.height
        if not lost:
            return f"All {wanted:,} wanted memories were in the head."
        worst = self.frame.filter(pl.col("place") != FOUND).sort(
            "count", descending=True, maintain_order=True
        )
        place, count = worst.row(0)[:2]
        return f"{lost:,} of {wanted:,} wanted memories were lost, most of them {place}: {count:,} ({count / lost:.0%})."

    @property
    def remarks(self) -> tuple[str, ...]:
        """How many recalls this rests on, and what was left out."""
        said = (
            f"{self.known:,} recalls wanted something; of {self.unknown:,} nothing was known, of {self.unlabelled:,} "
            "nothing is said."
        )
        return (said, f"{self.level:.0%} intervals: {self.method}.", *self.notes)

    def _display(self) -> object:
        places = Table(
            "", *format_rows(self.frame.iter_rows(named=True), _COLUMNS), left=(0, 4), optional=(4,)
        )
        heads, rows = format_rows(self.examples.iter_rows(named=True), _EXAMPLES)
        examples = (
            Table("Examples", heads, rows, left=(0, 1, 2, 4), optional=(4,)) if rows else None
        )
        return self.sentence, places, examples, list(self.remarks)

    def to_dict(self) -> dict[str, Any]:
        """The finding, the table, the examples and the counts, as JSON values."""
        return {
            "headline": self.sentence,
            "places": self.frame.to_dicts(),
            "examples": self.examples.to_dicts(),
            "recalls": {
                "known": self.known,
                "unknown": self.unknown,
                "unlabelled": self.unlabelled,
            },
            "method": self.method,
            "notes": list(self.notes),
        }


_COLUMNS: Columns = (
    ("place", "{place}"),
    ("count", "{count:,}"),
    ("share", "{share:.0%}"),
    ("interval", "[{low:.0%}, {high:.0%}]"),
    ("what it means", "{meaning}"),
)
_EXAMPLES: Columns = (
    ("place", "{place}"),
    ("question", lambda row: clip(row["question"])),
    ("wanted", lambda row: clip(row["wanted"])),
    ("rank", "{rank} of {pool}"),
    ("above it", lambda row: "; ".join(clip(text, 40) for text in row["above"])),
)


@checked
def failures(
    slates: Slates | HasSlates,
    labels: pl.DataFrame | None = None,
    *,
    examples: Annotated[int, Within(0, 1000)] = 3,
    cluster: str | None = None,
    level: Share = 0.95,
) -> Failures:
    """Sort every wanted memory of a log by where it was lost: see ``PLACES``.

    ``slates`` of a lab, or the lab. ``labels`` has a row for each wanted memory: ``decision`` or ``question`` (the
    words that were asked), and ``memory_id`` or ``ref``; a ``relevance`` of 0, or neither id nor ref, says that the
    recall was looked at and nothing wanted is known. A ``ref`` is looked for in the project of the recall. Without
    labels, what feedback calls a success (a reward of at least a half) is what was wanted: that finds what a probe
    brought up, and cannot find what nobody ever saw.

    The head is the first ``limit`` of the logged ranking, whatever exploration added or a lot left out. A memory in it
    is unused if its reward is below a half; silence counts as found. Shares are of wanted memories, with intervals by
    cluster (``cluster`` as for ``memlab.evaluate``). ``examples`` of each place are given, with texts if the lab is at
    hand; without it, what is no candidate counts as not in the pool.

    Raises InputError for labels without those columns, or of which the log knows no recall.

    >>> memlab.failures(lab, pl.DataFrame({"question": ["Where is Ada?"], "ref": ["D1:3"]}))       # doctest: +SKIP
    """
    slates = slates if isinstance(slates, Slates) else slates.slates()
    shown = bool(slates.exposures.select(pl.len()).collect().item())
    bounds = slates.reward_range or (0.0, 1.0)
    log = read_log(slates, reward_range=bounds, feedback=shown, cluster=cluster)
    pools = _pools(log, ranked="rank" in slates.candidates.collect_schema())
    memories = _memories(slates.lab)
    if labels is None:
        wanted, listed, notes = _from_feedback(slates, log)
    else:
        wanted, listed, notes = _from_labels(labels, log)
    if not wanted.height:
        raise InputError(
            "Nothing is known to be wanted: there is no label, and no success in the feedback."
        )
    rows = _placed(wanted, log, pools, memories)
    if memories is None:
        notes.append("The lab is not at hand: what was never stored counts as not in the pool.")
    sample = _sample(rows, log, level)
    known = rows["recall"].n_unique()
    return Failures(
        rows=rows.drop("recall", "_key", "created", "_at"),
        examples=_examples(rows, pools, slates.lab, examples),
        shares={place: _share(sample, at) for at, place in enumerate(_ORDER)},
        known=known,
        unknown=listed - known,
        unlabelled=len(log) - listed,
        method=sample.method.replace("clusters", f"clusters ({log.clustered})", 1),
        level=level,
        notes=(*log.notes, *notes),
    )


def _pools(log: Log, *, ranked: bool) -> pl.DataFrame:
    """Every candidate: recall, memory_id, rank, head, reward, pool (how many there are)."""
    pool = log.pool(["rank"] if ranked else [])
    rank = (
        pool["rank"].cast(pl.Int64)
        if ranked
        else pl.repeat(None, pool.height, dtype=pl.Int64, eager=True)
    )
    frame = pl.DataFrame(
        {
            "recall": log.recall,
            "memory_id": pool["memory_id"],
            "rank": rank,
            "able": np.isnan(log.propensity) | (log.propensity > 0),
            "shown": log.shown,
            "limit": log.limit[log.recall],
            "reward": pl.Series(log.reward, nan_to_null=True),
        }
    )
    first = (pl.col("rank") <= pl.col("limit")) & pl.col("able")
    return frame.with_columns(
        head=pl.when(pl.col("rank").is_null()).then(pl.col("shown")).otherwise(first),
        pool=pl.len().over("recall"),
    ).drop("able", "shown", "limit")


def _memories(lab: object | None) -> pl.DataFrame | None:
    """memory_id, ref, project, status, created of everything that the lab holds."""
    found = getattr(lab, "memories", None)
    if found is None:
        return None
    return pl.DataFrame(found).select(
        pl.col("id").alias("memory_id"), "ref", "project", "status", "created"
    )


def _from_feedback(slates: Slates, log: Log) -> tuple[pl.DataFrame, int, list[str]]:
    given = slates.feedback.select("decision", "memory_id", "reward").collect()
    numbered = (
        log.decisions.select("decision")
        .with_row_index("recall")
        .with_columns(pl.col("recall").cast(pl.Int64))
    )
    judged = (
        given.join(numbered, on="decision", how="inner")
        .group_by("recall", "memory_id")
        .agg(pl.col("reward").mean())
    )
    wanted = (
        judged.filter(pl.col("reward") >= _HALF)
        .select("recall", "memory_id")
        .sort("recall", "memory_id")
    )
    notes = ["What is wanted was read from feedback: what nobody was shown is not among it."]
    return (
        wanted.with_columns(ref=pl.lit(None, dtype=pl.String)),
        judged["recall"].n_unique(),
        notes,
    )


def _from_labels(labels: pl.DataFrame, log: Log) -> tuple[pl.DataFrame, int, list[str]]:
    """recall, memory_id, ref of what is wanted; how many recalls the labels speak of; what was left out."""
    by = next((name for name in ("decision", "question") if name in labels.columns), None)
    if by is None:
        raise InputError(
            f"The labels have no column decision or question: {', '.join(labels.columns)}."
        )
    if not {"memory_id", "ref"} & set(labels.columns):
        raise InputError(
            f"The labels have no column memory_id or ref: {', '.join(labels.columns)}."
        )
    known = log.decisions["decision"].dtype
    if by == "decision":
        asked = log.decisions.select("decision")
    elif "query" in log.decisions.columns:
        asked = log.decisions.select(question="query")
    else:
        raise UnknownName("column of the decisions", "query", log.decisions.columns)
    if labels[by].dtype != asked[by].dtype:
        raise InputError(
            f"{by} is {labels[by].dtype} in the labels and {asked[by].dtype} in the decisions ({known})."
        )
    numbered = asked.with_row_index("recall").with_columns(pl.col("recall").cast(pl.Int64))
    own = log.ids["memory_id"].dtype
    given = labels.with_columns(
        memory_id=pl.col("memory_id").cast(own, strict=False)
        if "memory_id" in labels.columns
        else pl.lit(None, dtype=own),
        ref=pl.col("ref").cast(pl.String)
        if "ref" in labels.columns
        else pl.lit(None, dtype=pl.String),
        relevance=pl.col("relevance").cast(pl.Float64)
        if "relevance" in labels.columns
        else pl.lit(1.0),
    ).select(by, "memory_id", "ref", "relevance")
    joined = given.join(numbered, on=by, how="inner").unique(maintain_order=True)
    strays = given.join(numbered, on=by, how="anti").height
    if not joined.height:
        raise InputError(
            f"The log holds no recall that the labels speak of: of {given.height:,} labels none matches."
        )
    notes = (
        [f"{strays:,} labels speak of recalls that the log does not hold: left out."]
        if strays
        else []
    )
    named = pl.col("memory_id").is_not_null() | pl.col("ref").is_not_null()
    wanted = joined.filter(named & (pl.col("relevance") > 0)).select("recall", "memory_id", "ref")
    return wanted, joined["recall"].n_unique(), notes


def _placed(
    wanted: pl.DataFrame, log: Log, pools: pl.DataFrame, memories: pl.DataFrame | None
) -> pl.DataFrame:
    """Every wanted memory with its place. Where several memories have a ref, the best placed stands for it."""
    columns = log.decisions.columns
    about = log.decisions.select(
        pl.int_range(pl.len(), dtype=pl.Int64).alias("recall"),
        "decision",
        "limit",
        (pl.col("query") if "query" in columns else pl.lit(None, dtype=pl.String)).alias(
            "question"
        ),
        (pl.col("project") if "project" in columns else pl.lit(None, dtype=pl.String)).alias(
            "asked_in"
        ),
        (pl.col("at") if "at" in columns else pl.lit(None, dtype=pl.Datetime("us", "UTC"))).alias(
            "_at"
        ),
    )
    rows = wanted.with_row_index("_key").join(about, on="recall", how="left", maintain_order="left")
    if memories is None:
        if rows["memory_id"].null_count():
            raise InputError(
                "The labels name refs, and no lab is at hand to look them up: give memory_id."
            )
        rows = rows.with_columns(
            stored=pl.lit(True), status=pl.lit(None, dtype=pl.String), created=pl.col("_at")
        )
    else:
        by_id = rows.filter(pl.col("memory_id").is_not_null()).join(
            memories.drop("ref", "project"), on="memory_id", how="left", maintain_order="left"
        )
        by_ref = rows.filter(pl.col("memory_id").is_null()).drop("memory_id")
        named = memories.filter(pl.col("ref").is_not_null())
        by_ref = by_ref.join(named, on="ref", how="left", maintain_order="left")
        elsewhere = pl.col("asked_in").is_not_null() & pl.col("project").is_not_null()
        elsewhere &= pl.col("asked_in") != pl.col("project")
        gone = [
            pl.when(elsewhere).then(None).otherwise(pl.col(name)).alias(name)
            for name in ("memory_id", "status", "created")
        ]
        rows = pl.concat([by_id, by_ref.with_columns(gone).select(by_id.columns)])
        # what came after the question was not there when it was asked
        later = (pl.col("created") > pl.col("_at")).fill_null(False)
        rows = rows.with_columns(stored=pl.col("status").is_not_null() & ~later)
    rows = rows.join(pools, on=["recall", "memory_id"], how="left", maintain_order="left")
    place = (
        pl.when(pl.col("head").fill_null(False) & ~(pl.col("reward") < _HALF).fill_null(False))
        .then(4)
        .when(pl.col("head").fill_null(False))
        .then(3)
        .when(pl.col("head").is_not_null())
        .then(2)
        .when(pl.col("stored"))
        .then(1)
        .otherwise(0)
    )
    best = (
        rows.with_columns(_place=place)
        .sort("_key", "_place", "memory_id", descending=[False, True, False], maintain_order=True)
        .unique("_key", keep="first", maintain_order=True)
    )
    named_place = pl.col("_place").replace_strict(dict(enumerate(_ORDER)), return_dtype=pl.String)
    return best.with_columns(place=named_place).select(
        *(
            "recall",
            "_key",
            "decision",
            "question",
            "memory_id",
            "ref",
            "place",
            "rank",
            "pool",
            "limit",
            "reward",
        ),
        *("status", "created", "_at"),
    )


def _sample(rows: pl.DataFrame, log: Log, level: float) -> Sample:
    """By cluster: how many memories were wanted, and how many of them are in each place."""
    cluster = log.cluster[rows["recall"].to_numpy()]
    held = np.unique(cluster, return_inverse=True)[1]
    places = rows["place"].to_numpy()
    flags: NDArray[np.float64] = np.column_stack(
        [np.ones(len(places)), *((places == place).astype(np.float64) for place in _ORDER)]
    )
    sums = np.zeros((int(held.max()) + 1, flags.shape[1]))
    np.add.at(sums, held, flags)
    return Sample(sums, level=level)


def _share(sample: Sample, place: int) -> Estimate:
    return sample.estimate(lambda totals: np.asarray(totals[..., 1 + place] / totals[..., 0]))


def _bounded(value: float) -> float | None:
    return None if np.isnan(value) else float(np.clip(value, 0.0, 1.0))


def _examples(
    rows: pl.DataFrame, pools: pl.DataFrame, lab: object | None, count: int
) -> pl.DataFrame:
    """Some misses of each place, the nearest ones first, with what stood above them."""
    order = pl.col("place").replace_strict(
        {place: at for at, place in enumerate(_ORDER)}, return_dtype=pl.Int64
    )
    lost = rows.filter(pl.col("place") != FOUND).sort(order, "rank", "_key", nulls_last=True)
    chosen = lost.group_by("place", maintain_order=True).head(count)
    first = (
        pools.join(chosen.select("recall").unique(), on="recall", how="semi")
        .sort("recall", "rank", nulls_last=True)
        .select("recall", "rank", "memory_id")
    )
    above: list[list[Any]] = []
    for row in chosen.iter_rows(named=True):
        before = first.filter(pl.col("recall") == row["recall"])
        if row["rank"] is not None:
            before = before.filter(pl.col("rank") < row["rank"])
        above.append(before["memory_id"].head(_ABOVE).to_list())
    ids = {id for ids in above for id in ids} | set(chosen["memory_id"].drop_nulls())
    texts = _texts(lab, ids)
    ended = pl.col("status").is_not_null() & ~pl.col("status").is_in(RECALLABLE)
    return chosen.select(
        "place",
        "decision",
        "question",
        pl.Series(
            "wanted",
            [
                texts.get(id) or ref or f"#{id}"
                for id, ref in chosen.select("memory_id", "ref").iter_rows()
            ],
            dtype=pl.String,
        ),
        "memory_id",
        "ref",
        "rank",
        "pool",
        "limit",
        pl.when(ended).then("status").alias("status"),
        pl.Series(
            "above",
            [[texts.get(id) or f"#{id}" for id in ids] for ids in above],
            dtype=pl.List(pl.String),
        ),
    )


def _texts(lab: object | None, ids: set[Any]) -> dict[Any, str]:
    memories = getattr(lab, "memories", None)
    if memories is None or not ids:
        return {}
    return dict(
        pl.DataFrame(memories)
        .filter(pl.col("id").is_in(list(ids)))
        .select("id", "text")
        .iter_rows()
    )

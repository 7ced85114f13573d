"""``memlab.failures``: find the stage at which each wanted memory was lost.

A wanted memory is lost at one of four stages, each with its own remedy. It was never stored; it was
not a candidate; it was a candidate ranked below the results; or it was shown and did not help.
Wanted memories are read from labels, or from feedback of users who called a memory helpful.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import Share, Within, checked
from memlab.kernel.base.arrays import Floats
from memlab.kernel.base.clock import INSTANT
from memlab.kernel.base.display import Columns, Report, Table, clip, format_rows
from memlab.kernel.base.printable import count_of
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.slates import Slates
from memlab.science.evaluation._intervals import Estimate, Sample
from memlab.science.evaluation._labels import LabelsRecalls, frame_of_labels
from memlab.science.evaluation._log import Log, number_recalls, optional_column, read_log
from memlab.science.evaluation._prepared import HasSlates

PLACES: Mapping[str, str] = MappingProxyType(
    {
        "never stored": "not in the lab at the time of the query",
        "not in the pool": "stored, but not among the candidates",
        "ranked out": "a candidate, but ranked below the results",
        "shown and unused": "in the results, but feedback says it did not help",
    }
)
"""The stages at which a wanted memory may be lost, in the order of a recall.

The value of each stage is its meaning.
"""

FOUND = "found"
"""The value of the column ``place`` for a wanted memory that was retrieved."""
_ORDER = (*PLACES, FOUND)
"""All values of ``place``, from the first stage of a recall to success."""
_SHOWN_ABOVE = 3
"""The number of memories that an example shows above a lost memory."""
_SUCCESS = 0.5
"""The minimum reward that counts as a success."""


@dataclass(frozen=True, repr=False)
class Failures(Report):
    """The stages at which wanted memories were lost; made by ``memlab.failures``.

    Parameters
    ----------
    rows
        A row for each wanted memory of a query, with ``decision``, ``question``, ``memory_id``,
        ``ref``, ``rank``, ``limit``, ``reward`` and ``status``. ``place`` is a key of ``PLACES``,
        or "found". ``pool`` is the number of candidates.
    examples
        Some lost memories of each stage, with the text of the memory in ``wanted`` and the memories
        ranked higher in ``above``.
    shares
        The share of wanted memories for each value of ``place``, with its interval.
    known
        The number of recalls for which a wanted memory is known.
    unknown
        The number of recalls that were judged and have no known wanted memory.
    unlabelled
        The number of recalls without a label.
    method, level
        The method and the confidence level of the intervals.
    notes
        Remarks on the data that were left out.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> memories = lab.remember(["The deploy day is Friday.", "Tests run with pytest."])
    >>> hits = lab.recall("When do we deploy?", limit=1)
    >>> labels = pl.DataFrame({"question": ["When do we deploy?"], "memory_id": [2]})
    >>> lost = memlab.failures(lab, labels)
    >>> len(lost), lost.rows["place"].to_list(), lost.rows["rank"].to_list()
    (1, ['ranked out'], [2])
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
        """Return the number of wanted memories that were lost."""
        return self.rows.filter(pl.col("place") != FOUND).height

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The count and the share of wanted memories for each ``place``.

        The columns are ``place``, ``count``, ``share``, its bounds ``low`` and ``high``, and
        ``meaning``.
        """
        counted = dict(self.rows.group_by("place").len().iter_rows())
        return pl.DataFrame(
            [
                {
                    "place": stage,
                    "count": counted.get(stage, 0),
                    "share": self.shares[stage].value,
                    "low": _clip_share(self.shares[stage].low),
                    "high": _clip_share(self.shares[stage].high),
                    "meaning": PLACES.get(stage, "in the results"),
                }
                for stage in _ORDER
            ],
            schema_overrides={"low": pl.Float64, "high": pl.Float64},
        )

    @property
    def sentence(self) -> str:
        """The finding: the number of lost memories and the most frequent stage."""
        lost, wanted = len(self), self.rows.height
        noun = "memory was" if wanted == 1 else "memories were"
        if not lost:
            return f"{wanted:,} of {wanted:,} wanted {noun} in the results."
        worst = self.frame.filter(pl.col("place") != FOUND).sort(
            "count", descending=True, maintain_order=True
        )
        stage, count = worst.row(0)[:2]
        return f"{lost:,} of {wanted:,} wanted {noun} lost, most often {stage}: {count:,} ({count / lost:.0%})."

    @property
    def remarks(self) -> tuple[str, ...]:
        """The size of the sample, the interval method, and the data left out."""
        sample = (
            f"{count_of(self.known, 'recall')} with a wanted memory, {self.unknown:,} with none known, "
            f"{self.unlabelled:,} unlabelled."
        )
        return (sample, f"{self.level:.0%} intervals: {self.method}.", *self.notes)

    def _display(self) -> object:
        summary = Table(
            "", *format_rows(self.frame.iter_rows(named=True), _COLUMNS), left=(0, 4), optional=(4,)
        )
        headings, rows = format_rows(self.examples.iter_rows(named=True), _EXAMPLES)
        examples = (
            Table("Examples", headings, rows, left=(0, 1, 2, 4), optional=(4,)) if rows else None
        )
        return self.sentence, summary, examples, list(self.remarks)

    def to_dict(self) -> dict[str, Any]:
        """Return the finding, the tables and the counts as JSON values.

        Returns
        -------
        dict
            The keys are ``headline``, ``places``, ``examples``, ``recalls``, ``method`` and
            ``notes``.
        """
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


# Columns of the two tables of a report.
_COLUMNS: Columns = (
    ("stage", "{place}"),
    ("count", "{count:,}"),
    ("share", "{share:.0%}"),
    ("interval", "[{low:.0%}, {high:.0%}]"),
    ("what it means", "{meaning}"),
)
# An example shows the query, the lost memory and the memories ranked above it.
_EXAMPLES: Columns = (
    ("stage", "{place}"),
    ("question", lambda row: clip(row["question"])),
    ("wanted", lambda row: clip(row["wanted"])),
    ("rank", "{rank} of {pool}"),
    ("ranked above", lambda row: "; ".join(clip(text, 40) for text in row["above"])),
)


@checked
def failures(
    slates: Slates | HasSlates,
    labels: pl.DataFrame | LabelsRecalls | None = None,
    *,
    examples: Annotated[int, Within(0, 1000)] = 3,
    cluster: str | None = None,
    level: Share = 0.95,
) -> Failures:
    """Find the stage at which each wanted memory of a log was lost.

    Parameters
    ----------
    slates
        The tables of a log, or a lab. Without a lab, a memory that was never stored counts as not
        in the pool.
    labels
        A frame with a row for each wanted memory: ``decision`` or ``question`` (the text of the
        query), and ``memory_id`` or ``ref``. A row with a ``relevance`` of 0, or with neither id
        nor ref, labels a recall for which no wanted memory is known. A ``ref`` is looked up in the
        project of the recall. ``lab.questions`` label the recalls with the same queries. Without
        labels, memories with a reward of at least .5 are wanted. These include probes, but not
        memories that no user saw.
    examples
        The number of examples of each stage, 0 to 1,000.
    cluster
        The unit whose recalls depend on each other, as for ``memlab.evaluate``.
    level
        The confidence level, between 0 and 1.

    Returns
    -------
    Failures
        The stage of each wanted memory, with shares and examples.

    Raises
    ------
    InputError
        If labels lack these columns or match no recall, or if no wanted memory is known.

    Notes
    -----
    The results of a recall are the first ``limit`` of the logged ranking, without exploration. A
    memory in the results counts as unused if its reward is below .5, and as found if it has no
    feedback.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> memories = lab.remember(["The deploy day is Friday.", "Tests run with pytest."])
    >>> hits = lab.recall("When do we deploy?", limit=1)
    >>> labels = pl.DataFrame({"question": ["When do we deploy?"], "memory_id": [2]})
    >>> memlab.failures(lab, labels).sentence
    '1 of 1 wanted memory was lost, most often ranked out: 1 (100%).'
    """
    slates = slates if isinstance(slates, Slates) else slates.slates()
    labels = frame_of_labels(labels, slates)
    has_exposures = bool(slates.exposures.select(pl.len()).collect().item())
    bounds = slates.reward_range or (0.0, 1.0)
    log = read_log(slates, reward_range=bounds, feedback=has_exposures, cluster=cluster)
    pools = _list_candidates(log, ranked="rank" in slates.candidates.collect_schema())
    memories = _list_memories(slates.lab)
    if labels is None:
        wanted, listed, notes = _from_feedback(slates, log)
    else:
        wanted, listed, notes = _from_labels(labels, log)
    if not wanted.height:
        raise InputError(
            "No wanted memory is known: there are no labels, and no feedback is a success. Pass labels, or log feedback "
            "on memories that helped."
        )
    rows = _assign_places(wanted, log, pools, memories)
    if memories is None:
        notes.append("Without the lab, memories that were never stored count as not in the pool.")
    sample = _count_places(rows, log, level)
    wanting = rows["recall"].n_unique()
    return Failures(
        rows=rows.drop("recall", "_key", "created", "_at"),
        examples=_pick_examples(rows, pools, slates.lab, examples),
        shares={stage: _estimate_share(sample, index) for index, stage in enumerate(_ORDER)},
        known=wanting,
        unknown=listed - wanting,
        unlabelled=len(log) - listed,
        method=sample.method.replace("clusters", f"clusters ({log.clustered})", 1),
        level=level,
        notes=(*log.notes, *notes),
    )


def _list_candidates(log: Log, *, ranked: bool) -> pl.DataFrame:
    """Return every candidate of the log with its rank and reward.

    ``head`` is whether the candidate is in the results, ``pool`` the number of candidates of its
    recall. Unless the log is ``ranked``, ranks are null and the results are the shown items.
    """
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
            "shown": log.exposed,
            "limit": log.limit[log.recall],
            "reward": pl.Series(log.reward, nan_to_null=True),
        }
    )
    first = (pl.col("rank") <= pl.col("limit")) & pl.col("able")
    return frame.with_columns(
        head=pl.when(pl.col("rank").is_null()).then(pl.col("shown")).otherwise(first),
        pool=pl.len().over("recall"),
    ).drop("able", "shown", "limit")


def _list_memories(lab: object | None) -> pl.DataFrame | None:
    """Return ids, refs, projects, status and times of a lab's memories; None without a lab."""
    memories = getattr(lab, "memories", None)
    if memories is None:
        return None
    return pl.DataFrame(memories).select(
        pl.col("id").alias("memory_id"), "ref", "project", "status", "created"
    )


def _from_feedback(slates: Slates, log: Log) -> tuple[pl.DataFrame, int, list[str]]:
    """Return the memories with helpful feedback, which count as the wanted memories.

    Also returns the number of recalls with feedback, and remarks.
    """
    feedback = slates.feedback.select("decision", "memory_id", "reward").collect()
    numbered = number_recalls(log.decisions.select("decision"))
    judged = (
        feedback.join(numbered, on="decision", how="inner")
        .group_by("recall", "memory_id")
        .agg(pl.col("reward").mean())
    )
    wanted = (
        judged.filter(pl.col("reward") >= _SUCCESS)
        .select("recall", "memory_id")
        .sort("recall", "memory_id")
    )
    notes = ["Wanted memories were read from feedback, so memories that no user saw are missing."]
    return (
        wanted.with_columns(ref=pl.lit(None, dtype=pl.String)),
        judged["recall"].n_unique(),
        notes,
    )


def _from_labels(labels: pl.DataFrame, log: Log) -> tuple[pl.DataFrame, int, list[str]]:
    """Return the wanted memories in labels, the number of labelled recalls, and remarks."""
    by = next((name for name in ("decision", "question") if name in labels.columns), None)
    if by is None:
        raise InputError(
            "The labels have no column decision or question, only "
            f"{', '.join(labels.columns)}. Add one of them, so that labels can be matched to recalls."
        )
    if not {"memory_id", "ref"} & set(labels.columns):
        raise InputError(
            "The labels have no column memory_id or ref, only "
            f"{', '.join(labels.columns)}. Add one of them, so that the wanted memories are named."
        )
    id_type = log.decisions["decision"].dtype
    if by == "decision":
        recalls = log.decisions.select("decision")
    elif "query" in log.decisions.columns:
        recalls = log.decisions.select(question="query")
    else:
        raise UnknownName("column of the decisions", "query", log.decisions.columns)
    if labels[by].dtype != recalls[by].dtype:
        raise InputError(
            f"The column {by} is {labels[by].dtype} in the labels and {recalls[by].dtype} in the decisions ({id_type} "
            f"ids). Cast the labels to that type."
        )
    numbered = number_recalls(recalls)
    memory_type = log.ids["memory_id"].dtype
    checked = labels.with_columns(
        memory_id=optional_column(labels.columns, "memory_id", memory_type).cast(
            memory_type, strict=False
        ),
        ref=optional_column(labels.columns, "ref", pl.String).cast(pl.String),
        relevance=pl.col("relevance").cast(pl.Float64)
        if "relevance" in labels.columns
        else pl.lit(1.0),
    ).select(by, "memory_id", "ref", "relevance")
    joined = checked.join(numbered, on=by, how="inner").unique(maintain_order=True)
    strays = checked.join(numbered, on=by, how="anti").height
    if not joined.height:
        raise InputError(
            f"None of {count_of(checked.height, 'label')} matches a recall of the log. Check the column {by}."
        )
    notes = (
        [f"{count_of(strays, 'label')} of recalls that are not in the log: left out."]
        if strays
        else []
    )
    has_memory = pl.col("memory_id").is_not_null() | pl.col("ref").is_not_null()
    wanted = joined.filter(has_memory & (pl.col("relevance") > 0)).select(
        "recall", "memory_id", "ref"
    )
    return wanted, joined["recall"].n_unique(), notes


def _assign_places(
    wanted: pl.DataFrame, log: Log, pools: pl.DataFrame, memories: pl.DataFrame | None
) -> pl.DataFrame:
    """Return each wanted memory with the stage at which it was lost, or "found".

    If several memories have the ref of a label, the memory that reached the latest stage counts.
    """
    columns = log.decisions.columns
    about = number_recalls(log.decisions).select(
        "recall",
        "decision",
        "limit",
        question=optional_column(columns, "query", pl.String),
        asked_in=optional_column(columns, "project", pl.String),
        _at=optional_column(columns, "at", INSTANT),
    )
    rows = wanted.with_row_index("_key").join(about, on="recall", how="left", maintain_order="left")
    rows = _find_stored(rows, memories)
    rows = rows.join(pools, on=["recall", "memory_id"], how="left", maintain_order="left")
    stage = (
        pl.when(pl.col("head").fill_null(False) & ~(pl.col("reward") < _SUCCESS).fill_null(False))
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
        rows.with_columns(_place=stage)
        .sort("_key", "_place", "memory_id", descending=[False, True, False], maintain_order=True)
        .unique("_key", keep="first", maintain_order=True)
    )
    named_place = pl.col("_place").replace_strict(dict(enumerate(_ORDER)), return_dtype=pl.String)
    return best.with_columns(place=named_place).select(
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
        "status",
        "created",
        "_at",
    )


def _find_stored(rows: pl.DataFrame, memories: pl.DataFrame | None) -> pl.DataFrame:
    """Return wanted memories with status, creation, and whether each was stored before its query.

    A ref is looked up in the project of the query.
    """
    if memories is None:
        if rows["memory_id"].null_count():
            raise InputError(
                "Labels with refs need a lab to look them up, and none was passed. Label memory_id instead."
            )
        return rows.with_columns(
            stored=pl.lit(True), status=pl.lit(None, dtype=pl.String), created=pl.col("_at")
        )
    by_id = rows.filter(pl.col("memory_id").is_not_null()).join(
        memories.drop("ref", "project"), on="memory_id", how="left", maintain_order="left"
    )
    by_ref = rows.filter(pl.col("memory_id").is_null()).drop("memory_id")
    with_ref = memories.filter(pl.col("ref").is_not_null())
    by_ref = by_ref.join(with_ref, on="ref", how="left", maintain_order="left")
    elsewhere = pl.col("asked_in").is_not_null() & pl.col("project").is_not_null()
    elsewhere &= pl.col("asked_in") != pl.col("project")
    cleared = [
        pl.when(elsewhere).then(None).otherwise(pl.col(name)).alias(name)
        for name in ("memory_id", "status", "created")
    ]
    rows = pl.concat([by_id, by_ref.with_columns(cleared).select(by_id.columns)])
    # A memory that was created after the query could not be retrieved by the query.
    is_later = (pl.col("created") > pl.col("_at")).fill_null(False)
    return rows.with_columns(stored=pl.col("status").is_not_null() & ~is_later)


def _count_places(rows: pl.DataFrame, log: Log, level: float) -> Sample:
    """Return the counts of wanted memories by cluster, in total and by the stage at which they were lost."""
    cluster = log.cluster[rows["recall"].to_numpy()]
    clusters = np.unique(cluster, return_inverse=True)[1]
    places = rows["place"].to_numpy()
    flags: Floats = np.column_stack(
        [np.ones(len(places)), *((places == stage).astype(np.float64) for stage in _ORDER)]
    )
    sums = np.zeros((int(clusters.max()) + 1, flags.shape[1]))
    np.add.at(sums, clusters, flags)
    return Sample(sums, level=level)


def _estimate_share(sample: Sample, index: int) -> Estimate:
    """Estimate the share of wanted memories with the outcome ``index``: lost at one stage, or found."""
    return sample.estimate(lambda totals: np.asarray(totals[..., 1 + index] / totals[..., 0]))


def _clip_share(value: float) -> float | None:
    """Clip a share to 0..1; return None for NaN."""
    return None if np.isnan(value) else float(np.clip(value, 0.0, 1.0))


def _pick_examples(
    rows: pl.DataFrame, pools: pl.DataFrame, lab: object | None, count: int
) -> pl.DataFrame:
    """Return up to ``count`` memories lost at each stage, with the memories ranked above them."""
    # The lost memories with the best rank come first, because a small change of the policy may retrieve them.
    order = pl.col("place").replace_strict(
        {stage: index for index, stage in enumerate(_ORDER)}, return_dtype=pl.Int64
    )
    lost = rows.filter(pl.col("place") != FOUND).sort(order, "rank", "_key", nulls_last=True)
    # ``group_by(...).head(0)`` returns a row of nulls for each group.
    chosen = lost.filter(pl.int_range(pl.len()).over("place") < count)
    ranking = (
        pools.join(chosen.select("recall").unique(), on="recall", how="semi")
        .sort("recall", "rank", nulls_last=True)
        .select("recall", "rank", "memory_id")
    )
    above: list[list[Any]] = []
    for row in chosen.iter_rows(named=True):
        before = ranking.filter(pl.col("recall") == row["recall"])
        if row["rank"] is not None:
            before = before.filter(pl.col("rank") < row["rank"])
        above.append(before["memory_id"].head(_SHOWN_ABOVE).to_list())
    ids = {id for ids in above for id in ids} | set(chosen["memory_id"].drop_nulls())
    texts = _read_texts(lab, ids)
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


def _read_texts(lab: object | None, ids: set[Any]) -> dict[Any, str]:
    """Return the texts of memories by id, or an empty dict without a lab."""
    memories = getattr(lab, "memories", None)
    if memories is None or not ids:
        return {}
    return dict(
        pl.DataFrame(memories)
        .filter(pl.col("id").is_in(list(ids)))
        .select("id", "text")
        .iter_rows()
    )

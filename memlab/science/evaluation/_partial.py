"""Sum the recalls of one partition of a log."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.arrays import Flags, Floats, Ints
from memlab.kernel.base.progress import Step
from memlab.kernel.slates import WIDE, Slates
from memlab.kernel.version import __version__
from memlab.science.evaluation._duplicates import count_unseen
from memlab.science.evaluation._evidence import ARM, COLUMNS, UNSUPPORTED, Evidence, TopK
from memlab.science.evaluation._exact import LOWER, add_frames, exact_sums, fix
from memlab.science.evaluation._item_tests import Tests
from memlab.science.evaluation._log import Log, Missing
from memlab.science.evaluation._measure import bound_repeated
from memlab.science.evaluation._merged import Sums
from memlab.science.evaluation._prepared import Prepared, prepare
from memlab.science.evaluation._reward_model import name_numeric, read_score, select_features
from memlab.science.evaluation._sums import (
    FACTS,
    ITEMS,
    WIDTH,
    Definition,
    choose_bits,
    mix,
    sample_recalls,
)
from memlab.science.evaluation._targets import (
    NO_FINGERPRINTS,
    PolicySpec,
    Ranker,
    Target,
    find_targets,
    make_logged_ranker,
)

_ROWS = 1_000_000
"""The number of candidates that are read at a time. They take .6 GB, and their sums are small."""
_POLICIES = 12
"""The maximum number of policies: sums have totals of each pair, so their size is quadratic."""


@runtime_checkable
class ArrowTable(Protocol):
    """A table or record batch of Arrow, for example of pyarrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table as a stream of the C interface of Arrow."""


Partition = Slates | pl.DataFrame | pl.LazyFrame | ArrowTable | Path | str
"""A partition of a log: slates, a frame with a row for each candidate, an Arrow table, or Parquet."""


@checked
def partial(
    table: Partition,
    policies: PolicySpec,
    *,
    columns: Mapping[str, Any] | None = None,
    missing: Missing | None = None,
    cluster: str | None = None,
    reward_range: tuple[float, float] | None = None,
) -> Sums:
    """Sum one partition of a log, so that policies can be evaluated on the whole log.

    Partitions are cut by decision: all candidates of a recall are in one partition. The function
    reads nothing but its arguments, so any engine may call it on its workers. A lazy frame or a file
    is read a million candidates at a time, which needs the rows of each recall to be next to one
    another. Other tables are read at once, in about .6 GB for a million candidates.

    Parameters
    ----------
    table
        The partition: ``memlab.Slates``, a frame with a row for each candidate (Polars, or any
        table of Arrow), or the path of Parquet files.
    policies
        One or several policies, as for ``memlab.evaluate``, at most 12.
    columns
        The columns of the frame, as arguments of ``Slates.from_wide``, such as
        ``{"decision": "query_id", "item": "memory_id", "limit": 10}``. By default the columns that
        ``Slates.to_wide`` writes.
    missing
        What missing feedback counts as: "zero", "censor" or "bounds", as for ``memlab.evaluate``.
    cluster
        The unit whose recalls depend on each other: a column of the decisions, "day" or "decision".
        The default is the column ``cluster``, and without one the query.
    reward_range
        The minimum and maximum reward of an item. By default 0 and 1.

    Returns
    -------
    Sums
        The sums. The sums of a partition without rows have no recalls and may be added to any others.

    Raises
    ------
    InputError
        If the partition is invalid, or needs the whole log: ``missing="inverse"``, rewards inferred
        from answers, draws of several probes, and challenges by lot.
    UnknownName
        If there is no pack or column of a given name.
    PolicyError
        If the text of a policy is invalid.

    Examples
    --------
    >>> import polars as pl
    >>> import memlab
    >>> columns = dict(
    ...     decision="query_id", item="memory_id", shown="rank", reward="clicked", propensity="p", limit=3
    ... )
    >>> len(memlab.science.evaluation.partial(memlab.examples.LOG, "new_score", columns=columns, missing="zero"))
    418
    """
    if missing == "inverse":
        raise InputError(
            'missing="inverse" fits a model on the whole log, so partitions cannot be summed. Use "bounds", "censor" or '
            '"zero", or evaluate the log in memory: memlab.evaluate(slates).'
        )
    options = columns, missing, cluster, reward_range
    if isinstance(table, str | Path):
        table = pl.scan_parquet(find_files(Path(table)))
    if isinstance(table, pl.LazyFrame):
        return _merge_stream(
            _sum_slates(_read_frame(frame, columns), policies, *options)
            for frame in _cut_by_decision(table, (columns or WIDE)["decision"])
        )
    slates = table if isinstance(table, Slates) else _read_frame(pl.DataFrame(table), columns)
    return _sum_slates(slates, policies, *options)


def find_files(path: Path) -> list[Path]:
    """Return a Parquet file, or all Parquet files below a folder, sorted by path."""
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files or not files[0].exists():
        raise InputError(
            f"There is no Parquet file at {path}. Pass a file or a folder of them; of a lab, pass memlab.open(path)."
        )
    return files


def sum_file(policies: PolicySpec, options: Mapping[str, Any], path: Path, step: Step) -> Sums:
    """Sum the recalls of a Parquet file, as a task for an executor."""
    sums = partial(path, policies, **options)
    step(1)
    return sums


def _cut_by_decision(frame: pl.LazyFrame, decision: str) -> Iterator[pl.DataFrame]:
    """Yield the rows of a lazy frame in parts, without splitting consecutive rows of a recall."""
    try:
        names = frame.collect_schema().names()
        if decision not in names:
            raise UnknownName("column of the log named", decision, names)
        yield from _cut_batches(frame, decision)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"The log cannot be read: {error}. All Parquet files of a log need the same columns."
        ) from error


def _cut_batches(frame: pl.LazyFrame, decision: str) -> Iterator[pl.DataFrame]:
    """Yield batches of a lazy frame, each up to the end of its last complete recall."""
    rest: pl.DataFrame | None = None
    for batch in frame.collect_batches(chunk_size=_ROWS, engine="streaming"):
        part = batch if rest is None else rest.vstack(batch)
        # The last recall may continue in the next batch.
        cut = part.select((pl.col(decision).ne_missing(pl.col(decision).last())).arg_true().max())
        end = cut.item()
        rest = part if end is None else part[end + 1 :]
        if end is not None:
            yield part[: end + 1]
    if rest is not None:
        yield rest


def _merge_stream(parts: Iterable[Sums]) -> Sums:
    """Merge arriving sums pairwise, so that each is added only a few times."""
    levels: list[Sums] = []
    for number, part in enumerate(parts):
        levels.append(part)
        # The number of ones at the end of the binary number of parts.
        for _ in range(((number + 1) & -(number + 1)).bit_length() - 1):
            levels.append(Sums.merge([levels.pop(), levels.pop()]))
    return Sums.merge(levels)


def _sum_slates(
    slates: Slates | None,
    policies: PolicySpec,
    columns: Mapping[str, Any] | None,
    missing: Missing | None,
    cluster: str | None,
    reward_range: tuple[float, float] | None,
) -> Sums:
    """Sum the recalls of slates into one partition."""
    if slates is None or not slates.decisions.select(pl.len()).collect().item():
        return Sums()
    prepared = prepare(
        slates,
        policies,
        horizon=None,
        missing=missing or "censor",
        estimator="snips",
        level=0.95,
        reward_range=reward_range,
        labels=None,
        cluster=cluster,
    )
    log = prepared.log
    _refuse_whole(log)
    own = make_logged_ranker(slates.candidates, prepared.schema)
    names = [ranker.name for ranker in prepared.rankers]
    rankers = [own, *prepared.rankers] if own and own.name not in names else prepared.rankers
    if len(rankers) > _POLICIES:
        raise InputError(
            f"There are {len(rankers)} policies, but sums can hold at most {_POLICIES}, "
            "because they store totals of every pair. Evaluate them in groups with the same baseline."
        )
    targets, refused = find_targets(
        rankers, log, prepared.schema, prepared.fingerprints, None, whole=False
    )
    unit, clusters = _name_clusters(log, cluster, is_own=columns is None)
    definition = _define(
        prepared,
        [target.ranker for target in targets],
        requested=tuple(names),
        refusals=tuple((refusal.policy, refusal.reason) for refusal in refused),
        missing=missing,
        cluster=cluster,
        unit=unit,
    )
    return _sum_recalls(prepared, targets, definition, clusters, slates)


def _read_frame(frame: pl.DataFrame, columns: Mapping[str, Any] | None) -> Slates | None:
    """Return the slates in a frame with a row for each candidate; None for an empty frame."""
    if not frame.height:
        return None
    if columns is None:
        roles = {role: name for role, name in WIDE.items() if name in frame.columns}
        columns = {"decision": "decision", "item": "memory_id", **roles}
    propensity = frame.get_column(columns.get("propensity", ""), default=None)
    if propensity is not None and propensity.null_count() < frame.height:
        # ``from_wide`` takes recalls without a probe for deterministic if the whole frame has none. A partition must
        # not differ from the log in that.
        sampler = pl.lit("logged").alias("decision.sampler")
        frame = frame if "decision.sampler" in frame.columns else frame.with_columns(sampler)
    return Slates.from_wide(frame, **columns)


def _refuse_whole(log: Log) -> None:
    """Raise InputError for a log that can only be evaluated as a whole."""
    samplers = set(log.decisions["sampler"]) if "sampler" in log.decisions else set()
    reason = (
        "Recalls that drew several probes (sampler gumbel) are tested"
        if "gumbel" in samplers
        else "Challenges by lot are tested"
        if "lot" in samplers
        else "Rewards inferred from answers are calibrated"
        if (~np.isnan(log.attributed) & ~log.stated & log.answered).any()
        else ""
    )
    if reason:
        raise InputError(
            f"{reason} on the whole log, so partitions cannot be summed. Evaluate the log in memory: "
            "memlab.evaluate(slates)."
        )


def _name_clusters(log: Log, cluster: str | None, *, is_own: bool) -> tuple[str, pl.Series]:
    """Return the unit of a cluster, and each recall's cluster as a text.

    A recall without a cluster is a cluster of its own. Without a unit, the recalls of one query are
    a cluster. With ``is_own``, clusters that repeat the ids of decisions count as absent.
    """
    decisions = log.decisions
    own = decisions["decision"].cast(pl.String)
    if cluster == "day":
        return "day", decisions["at"].dt.date().cast(pl.String)
    column = cluster or "cluster"
    absent = column not in decisions or (
        cluster is None and is_own and (decisions[column].cast(pl.String) == own).all()
    )
    if cluster == "decision" or absent:
        queries = decisions.get_column("query", default=None)
        if cluster is None and queries is not None and not queries.null_count():
            return "query", queries.str.strip_chars()
        return "decision", own
    # No text of a caller begins with a null character.
    return column, decisions[column].cast(pl.String).fill_null("\0" + own)


def _define(prepared: Prepared, rankers: Sequence[Ranker], **more: Any) -> Definition:
    """Return the definition of a partition's sums, which all partitions must share."""
    schema = prepared.schema
    read = {name for ranker in rankers if ranker.policy is not None for name in ranker.reads}
    return Definition(
        version=__version__,
        policies=tuple(
            (ranker.name, ranker.sort, ranker.source, ranker.hash) for ranker in rankers
        ),
        reward_range=prepared.settings.reward_range,
        schema=tuple((name, str(kind)) for name, kind in schema.items()),
        numeric=len(name_numeric(prepared.features, schema)),
        score=read_score(prepared.log, prepared.features, schema)[0],
        fingerprints=tuple(
            (
                name,
                tuple(sorted({str(logged.get(name)) for logged in prepared.fingerprints.logged})),
            )
            for name in sorted(read)
        ),
        **more,
    )


def _sum_recalls(
    prepared: Prepared,
    targets: Sequence[Target],
    definition: Definition,
    clusters: pl.Series,
    slates: Slates,
) -> Sums:
    """Sum the recalls of a partition."""
    log, settings = prepared.log, prepared.settings
    evidence = Evidence(
        log,
        estimator="snips",
        level=settings.level,
        reward_range=settings.reward_range,
        bounds=settings.missing == "bounds",
    )
    top_ks = [bound_repeated(log, evidence.top_k(target)) for target in targets]
    members = [_mark(top_k, len(log.recall)) for top_k in top_ks]
    totals, sums = _sum_sets(evidence, top_ks, members)
    recalls = _number_decisions(log.decisions["decision"])
    # Tests and models use the score alone unless missing feedback is tested for its dependence on features.
    features = select_features(
        log, prepared.features, prepared.schema, 1 << 62 if settings.missing == "censor" else 0
    )
    tests = Tests(log, settings, features)
    for number, (top_k, target) in enumerate(zip(top_ks, targets, strict=True)):
        totals[f"balance {number}"] = _sum_moments(*tests.balance_sums(top_k))
        totals[f"unscored {number}"] = (target.unscored,)
        totals[f"repeated {number}"] = top_k.repeated, count_unseen(log, top_k.rows)
    totals["log"] = _count_log(log)
    at = (
        log.decisions["at"].dt.epoch("us")
        if "at" in log.decisions
        else pl.Series([None] * len(log), dtype=pl.Int64)
    )
    totals["untimed"] = (at.null_count(),)
    frame = pl.DataFrame(
        {"cluster": clusters, "at": at, "recalls": np.ones(len(log), np.int64), **sums}
    )
    numbers = (mix(recalls) >> np.uint64(64 - WIDTH)).astype(np.int64)
    bits = choose_bits(np.sort(numbers), WIDTH)
    buckets = frame.drop("cluster", "at").with_columns(bucket=pl.Series(numbers >> (WIDTH - bits)))
    notes = [*slates.notes, *log.notes]
    if not prepared.fingerprints.any and any(target.ranker.policy for target in targets):
        notes.append(NO_FINGERPRINTS)
    return Sums(
        definition=definition,
        totals=dict(sorted(totals.items())),
        ends=log.reward_ends,
        cells=add_frames([frame], "cluster"),
        buckets=add_frames([buckets], "bucket"),
        bits=bits,
        recalls=recalls.sort(),
        sample=sample_recalls(_list_shown(log, recalls, tests, features), recalls.sort()),
        packs=tuple(sorted(log.packs, key=str)),
        notes=_count_notes(notes),
    )


def _count_log(log: Log) -> tuple[int, ...]:
    """Return the counts of a log's candidates, in the order in which merged sums read them."""
    exposed, randomised = log.exposed, (log.propensity > 0) & (log.propensity < 1)
    unknown = np.isnan(log.propensity)
    return tuple(
        int(count)
        for count in (
            exposed.sum(),
            (exposed & ~log.answered).sum(),
            len(unknown),
            randomised.sum(),
            unknown.sum(),
            (unknown & ~exposed).sum(),
            ((log.propensity >= 1) & ~exposed).sum(),
        )
    )


def _list_shown(log: Log, recalls: pl.Series, tests: Tests, features: Floats) -> pl.DataFrame:
    """Return a row for each shown item, with what the tests of the merged sums read."""
    rows = np.flatnonzero(log.exposed)
    return pl.DataFrame(
        {
            "recall": recalls.to_numpy()[log.recall[rows]],
            "position": log.position[rows],
            "propensity": log.propensity[rows],
            "reward": log.reward[rows],
            "rank": tests.scaled_rank[rows],
            "stratum": tests.strata[rows],
            **{f"feature {number}": column for number, column in enumerate(features[rows].T)},
        }
    )


def _sum_moments(rows: Floats, squares: Floats) -> tuple[int, ...]:
    """Return the row count, and exact sums of the rows, their pairwise products, and squares."""
    left, right = np.triu_indices(rows.shape[1])
    return len(rows), *exact_sums(
        np.concatenate([rows, rows[:, left] * rows[:, right], squares], axis=1)
    )


def _mark(top_k: TopK, size: int) -> Flags:
    """Return whether each candidate belongs to a top-k."""
    member = np.zeros(size, dtype=np.bool_)
    member[top_k.rows] = True
    return member


# What an item outside the log adds to the counts of its set, in the order of ITEMS.
_OUTSIDE = np.array([name in ("items", "impossible", "hidden") for name in ITEMS], dtype=np.int64)


def _sum_sets(
    evidence: Evidence, top_ks: Sequence[TopK], members: Sequence[Flags]
) -> tuple[dict[str, tuple[int, ...]], dict[str, Ints]]:
    """Return the counts of item sets, and the fixed-point totals of each set by recall.

    The sets are the items of each policy ("0"), those that two policies share ("0&1"), and all
    items that were shown ("shown"). Items that only one of two policies would show are the
    difference of two sets, exactly, because totals are integers.
    """
    log = evidence.log
    rows = np.flatnonzero(np.logical_or.reduce([*members, log.exposed]))
    answered = log.answered[rows]
    facts = np.column_stack(
        [log.exposed[rows], answered, np.where(answered, np.nan_to_num(log.reward[rows]), 0.0)]
    )
    fixed = fix(np.concatenate([evidence.columns[rows], facts], axis=1))
    propensity, exposed = log.propensity[rows], log.exposed[rows]
    counted = np.column_stack(
        [
            np.ones(len(rows), dtype=np.int64),
            evidence.probe[rows],
            evidence.probe[rows] & answered,
            exposed & np.isnan(propensity),
            propensity == 0,
            ~exposed & np.isnan(propensity),
            ~exposed,
        ]
    )
    recall = log.recall[rows]
    names = [*COLUMNS, *FACTS]
    totals: dict[str, tuple[int, ...]] = {}
    sums: dict[str, Ints] = {}

    def add_set(name: str, member: Flags, columns: range, outside: Floats | None = None) -> None:
        """Add the totals of a set of items under a name, including items outside the log."""
        # Items outside the log have no row: they add to the unsupported items of their recall alone.
        missing = np.zeros(len(log)) if outside is None else outside
        if not member.any() and not missing.any():
            return
        numbers = recall[member]
        first = np.flatnonzero(np.diff(numbers, prepend=-1))
        by_recall = np.zeros((len(log), fixed.shape[1]), dtype=np.int64)
        if len(first):
            by_recall[numbers[first]] = np.add.reduceat(fixed[member], first, axis=0)
        by_recall[:, [UNSUPPORTED, len(names) + UNSUPPORTED]] += fix(missing[:, None])
        for column in columns:
            upper, lower = by_recall[:, column], by_recall[:, len(names) + column]
            if lower.any():
                sums[f"{name} {names[column]}{LOWER}"] = lower
            if upper.any() or lower.any():
                sums[f"{name} {names[column]}"] = upper
        unsupported = int(missing.sum()) * _OUTSIDE
        totals[f"items {name}"] = tuple((counted[member].sum(axis=0) + unsupported).tolist())

    inside = [member[rows] for member in members]
    add_set("shown", exposed, range(ARM, len(names)))
    for second, own in enumerate(inside):
        add_set(f"{second}", own, range(len(names)), top_ks[second].outside)
        for first in range(second):
            add_set(f"{first}&{second}", own & inside[first], range(ARM))
    return totals, sums


def _number_decisions(decisions: pl.Series) -> pl.Series:
    """Convert decision ids to Int64: keep integers, and hash texts."""
    if decisions.dtype.is_integer():
        return decisions.cast(pl.Int64).rename("recall")
    hashes = [
        int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), signed=True)
        for text in decisions.to_list()
    ]
    return pl.Series("recall", hashes, pl.Int64)


_COUNT = re.compile(
    r"(?<![\w.])(\d[\d,]*)(?: (candidate|decision|item|judgement|recall|reward|row)s?\b)?(?![\w.%])"
)
"""A count in a note, and the noun after it, whose plural depends on the count."""


def _count_notes(notes: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return templates of notes with their counts, so that partitions can add the counts.

    Examples in parentheses name one row of a partition, so they are left out.

    >>> _count_notes(["2 items (first: recall 3) of 1,000 are left out."])
    {'{item} of {} are left out.': (2, 1000)}
    """
    counted: dict[str, tuple[int, ...]] = {}
    for note in notes:
        text = re.sub(r" \(first: [^)]*\)", "", note)
        counts = tuple(int(match[1].replace(",", "")) for match in _COUNT.finditer(text))
        template = _COUNT.sub(lambda match: f"{{{match[2] or ''}}}", text)
        counted[template] = tuple(
            map(sum, zip(counts, counted.get(template, (0,) * len(counts)), strict=True))
        )
    return counted

"""The items that each policy would have shown in each logged recall.

A policy is either re-scored on the logged pool, or its recalls are repeated on the past state of
the lab.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arrays import Floats, Ints
from memlab.kernel.embedding import load_embedder
from memlab.kernel.language import (
    Input,
    InputType,
    Policy,
    Signature,
    compile_policy,
)
from memlab.kernel.policies import (
    FEATURES,
    SLOTS,
    Pack,
    PolicyLike,
    SinglePolicy,
    as_pack,
    get_slot,
    inherited_helpers,
    list_policies,
    logged_owner,
    pack_names,
    read_policy,
)
from memlab.kernel.recall import diversifies
from memlab.kernel.slates import THINNED
from memlab.science.evaluation._log import RESERVED, Log

# Rankers: packs, single policies, expressions and columns of scores, under one interface.


SLOT = "recall-score"
"""The slot whose policy orders the candidates."""


PolicySpec: TypeAlias = PolicyLike
"""A policy to evaluate: any form of ``PolicyLike``, a Polars expression, or the name of a column of scores."""


@dataclass(frozen=True)
class Ranker:
    """A policy that ranks candidates.

    Attributes
    ----------
    reads
        The columns of candidates that the policy needs.
    source
        The text of the policy.
    hash
        The version of the policy.
    """

    name: str
    sort: Literal["pack", "policy", "expression", "column", "logged"]
    reads: tuple[str, ...]
    source: str
    hash: str
    policy: Policy | None = None
    pack: Pack | None = None
    expression: pl.Expr | None = None


def make_rankers(
    policies: PolicySpec,
    schema: pl.Schema,
    lab: Any = None,
) -> list[Ranker]:
    """Build a uniquely named ranker for each policy; ``(inherited)`` is the lab's own policy."""
    rankers = []
    for name, spec in list_policies(policies):
        ranker = _make_ranker(spec, schema, lab)
        rankers.append(replace(ranker, name=name) if name else ranker)
    if not rankers:
        raise InputError(
            "There are no policies to evaluate. Pass the name of a pack, a column of scores or the text of a recall-score."
        )
    hashes: dict[str, str] = {}
    for ranker in rankers:
        if ranker.name in hashes and hashes[ranker.name] == ranker.hash:
            raise InputError(f"The policy {ranker.name} was passed twice. Pass each policy once.")
        hashes[ranker.name] = ranker.hash
    names = [ranker.name for ranker in rankers]
    return [
        replace(ranker, name=f"{ranker.name} [{ranker.hash[:8]}]")
        if names.count(ranker.name) > 1
        else ranker
        for ranker in rankers
    ]


def _make_ranker(spec: PolicySpec, schema: pl.Schema, lab: Any) -> Ranker:
    """Build a ranker from any form of ``PolicySpec``."""
    if isinstance(spec, pl.Expr):
        return _of_expression(spec, schema)
    if isinstance(spec, Policy):
        return _of_policy(spec, spec.source, schema)
    if isinstance(spec, str) and spec in schema.names():
        if spec in pack_names():
            raise InputError(
                f'"{spec}" is the name of both a pack and a column of the candidates. Pass load_pack("{spec}") or '
                f'pl.col("{spec}").'
            )
        return _of_column(spec, schema)
    try:
        read = read_policy(spec)
    except UnknownName:
        raise UnknownName(
            "pack or column of scores", str(spec), (*pack_names(), *_numeric_columns(schema))
        ) from None
    if isinstance(read, SinglePolicy) and (read.slot == SLOT or read.slot not in SLOTS):
        return _of_text(read, schema, lab)
    policies = getattr(lab, "policies", None)
    return _of_pack(as_pack(read, None if policies is None else lambda: policies.pack), schema)


def _of_pack(pack: Pack, schema: pl.Schema) -> Ranker:
    """Build a ranker from a pack's recall-score policy."""
    policy = pack.policies[SLOT]
    return Ranker(
        pack.name,
        "pack",
        _columns_read(policy, schema),
        "\n".join(pack.sources[:1]),
        pack.hash,
        policy,
        pack,
    )


def _columns_read(policy: Policy, schema: pl.Schema) -> tuple[str, ...]:
    """Return the candidate columns that a policy needs.

    A comparison of two sets that the log lacks as a column is computed from the columns of both
    sets.
    """
    names: dict[str, None] = {}
    for name in policy.inputs:
        is_derived = name in policy.derived and name not in schema.names()
        names.update(dict.fromkeys(policy.derived[name].sets if is_derived else (name,)))
    return tuple(names)


def _of_text(single: SinglePolicy, schema: pl.Schema, lab: Any) -> Ranker:
    """Build a ranker from the text of a recall-score policy.

    The text may read declared features and all columns of the log.
    """
    declared = get_slot(SLOT).signature
    columns = {
        item.name: item
        for name, dtype in schema.items()
        if name not in RESERVED and (kind := _policy_type(dtype)) is not None
        for item in [Input(name, kind)]
        if item.name not in declared.inputs
    }
    signature = Signature(SLOT, {**columns, **declared.inputs}, aggregates=True)
    # A log that was not read from a lab has no pack, and the compiler then refuses (inherited).
    text, policies = single.text, getattr(lab, "policies", None)
    helpers = () if policies is None else inherited_helpers(SLOT, text, (), lambda: policies.pack)
    policy = compile_policy(text, signature, helpers=helpers, file=single.file)
    ranker = _of_policy(policy, text, schema)
    return replace(ranker, name=single.name) if single.name else ranker


def _of_policy(policy: Policy, text: str, schema: pl.Schema) -> Ranker:
    """Build a ranker from a compiled policy that returns a number or a boolean."""
    if policy.signature.returns not in ("num", "bool"):
        raise InputError(
            f"The policy {policy.name} returns a {policy.signature.returns}. Return a number or a boolean to rank by."
        )
    name = policy.name if policy.name != SLOT else f"{SLOT} [{policy.hash[:8]}]"
    return Ranker(name, "policy", _columns_read(policy, schema), text, policy.hash, policy)


def _policy_type(dtype: pl.DataType) -> InputType | None:
    """Return the policy language's type for a column type, or None if no type matches."""
    if dtype.is_numeric():
        return "num"
    if dtype == pl.Boolean:
        return "bool"
    if dtype == pl.List(pl.String):
        return "set"
    return "str" if dtype == pl.String else None


def _of_expression(expression: pl.Expr, schema: pl.Schema) -> Ranker:
    """Build a ranker from a Polars expression over columns of the log."""
    reads = tuple(dict.fromkeys(expression.meta.root_names()))
    for column in reads:
        if column not in schema.names():
            raise UnknownName("column of the candidates", column, schema.names())
    source = str(expression)
    name = expression.meta.output_name()
    if name in reads and not expression.meta.is_column():
        name = source if len(source) <= 48 else f"{name} [{_hash(source)[:8]}]"
    return Ranker(name, "expression", reads, source, _hash(source), expression=expression)


def _of_column(name: str, schema: pl.Schema) -> Ranker:
    """Build a ranker from a numeric or boolean column of scores."""
    if not (schema[name].is_numeric() or schema[name] == pl.Boolean):
        raise InputError(
            f"Column {name} of the candidates has the type {schema[name]}, and scores are numbers. Name a numeric column."
        )
    return Ranker(
        name, "column", (name,), f'pl.col("{name}")', _hash(name), expression=pl.col(name)
    )


def make_logged_ranker(candidates: pl.LazyFrame, schema: pl.Schema) -> Ranker | None:
    """Build a ranker that repeats the logged ranking; None if ranks and scores are missing."""
    present = candidates.select(
        pl.col(name).is_not_null().any() for name in ("score", "rank") if name in schema.names()
    ).collect()
    scored, ranked = (
        name in present.columns and bool(present[name].item()) for name in ("score", "rank")
    )
    reads: tuple[str, ...]
    score, order = pl.col("score"), -pl.col("rank").cast(pl.Float64)
    # Ranks include an order by similarity, which scores do not. Items without a finite score are not shown.
    if scored and ranked:
        reads, kind = ("score", "rank"), "rank"
        expression = pl.when(score.is_finite()).then(order).otherwise(None)
    elif scored or ranked:
        kind, expression = ("score", score) if scored else ("rank", order)
        reads = (kind,)
    else:
        return None
    source = f"the {kind}s in the log"
    return Ranker("logged", "logged", reads, source, _hash(kind), expression=expression)


def _numeric_columns(schema: pl.Schema) -> list[str]:
    """Return the names of the numeric columns that may contain scores."""
    return [name for name, dtype in schema.items() if dtype.is_numeric() and name not in RESERVED]


def _hash(text: str) -> str:
    """Return the hexadecimal SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


# Fingerprints tell whether a logged feature has the value that a policy would compute.
#
# A feature that depends on settings, slots or the embedder is logged with a fingerprint. A policy may be re-scored on
# the logged pool only if each feature that it reads has, in every recall, the fingerprint of the policy's own pack. A
# log without fingerprints (an imported frame) is trusted, and the evaluation says so.


@dataclass(frozen=True)
class Fingerprints:
    """The fingerprints of a log's features.

    ``logged`` has each distinct mapping of feature to fingerprint that occurs in the log.
    ``embedder`` is the fingerprint of the embedder that a policy would use.
    """

    logged: tuple[Mapping[str, str], ...]
    embedder: str | None

    @property
    def thinned(self) -> bool:
        """Whether ``lab.upkeep.thin`` removed the features of some recalls."""
        return any(THINNED in fingerprints for fingerprints in self.logged)

    @property
    def any(self) -> bool:
        """Whether any recall has logged fingerprints."""
        return any(self.logged)

    def objections(self, ranker: Ranker, schema: pl.Schema) -> list[str]:
        """Return the reasons why a ranker cannot re-score the logged pool, or []."""
        # The most general reasons come first: an absent column has no fingerprint to compare.
        thinned = sorted(
            {fingerprints[THINNED] for fingerprints in self.logged if THINNED in fingerprints}
        )
        read = [name for name in ranker.reads if name not in RESERVED]
        if thinned and read:
            return [
                f"it reads {', '.join(read[:3])}{' and more' * (len(read) > 3)}, which lab.upkeep.thin removed from "
                f"the oldest recalls on {thinned[-1]}"
            ]
        spelled = {name.replace("_", "-") for name in schema.names()}
        reasons = [
            f"it reads {name}, which is not in the log"
            for name in ranker.reads
            if _hyphenate(name) not in spelled
        ]
        if reasons or ranker.policy is None or not self.any:
            return reasons
        embedder = self.embedder or load_embedder().fingerprint
        wanted = ranker.pack.fingerprints(embedder) if ranker.pack is not None else {}
        for name in ranker.reads:
            logged = {fingerprints.get(name) for fingerprints in self.logged}
            if name not in FEATURES:
                owners = sorted(
                    {owner for value in logged if (owner := logged_owner(value)) is not None}
                )
                if owners:
                    reasons.append(
                        f"it reads {name}, a feature of the extension {owners[-1]}, which is not registered"
                    )
                continue
            if None in logged:
                unread = (
                    "under a pack that does not read it, or " if FEATURES[name].on_demand else ""
                )
                reasons.append(
                    f"some recalls were logged {unread}by an older schema, without a fingerprint of {name}"
                )
            elif len(logged) > 1:
                reasons.append(
                    f"it reads {name}, which has different fingerprints in different recalls ({_join_fingerprints(logged)})"
                )
            elif name in wanted and logged != {wanted[name]}:
                depends = (
                    f", which depends on {', '.join(FEATURES[name].depends)}"
                    if FEATURES[name].depends
                    else ""
                )
                reasons.append(
                    f"it reads {name}{depends}: the logged fingerprint is {_join_fingerprints(logged)}, and that of this "
                    f"policy {wanted[name]}"
                )
        return reasons


NO_FINGERPRINTS = "The log has no fingerprints: features are assumed to mean what their names say."
"""The remark on a policy that reads features of a log without fingerprints."""


def read_fingerprints(decisions: pl.DataFrame, lab_embedder: str | None) -> Fingerprints:
    """Read the fingerprints of a table of decisions.

    ``lab_embedder`` is the fingerprint of the lab's embedder, if there is a lab. Without one, the
    log's own embedder counts if the log names exactly one.
    """
    if "fingerprints" not in decisions.columns:
        return Fingerprints(({},), lab_embedder)
    logged = []
    for text in decisions["fingerprints"].unique(maintain_order=True).to_list():
        try:
            read = json.loads(text) if text else {}
        except json.JSONDecodeError as error:
            raise InputError(
                f"A value in the column fingerprints of decisions is not valid JSON: {error}. Log a JSON object, or null."
            ) from None
        if not isinstance(read, dict):
            raise InputError(
                f"A value in the column fingerprints of decisions is a JSON {type(read).__name__}. Log an object, or null."
            )
        logged.append(read)
    embedders = {fingerprints["embedder"] for fingerprints in logged if "embedder" in fingerprints}
    return Fingerprints(
        tuple(logged), lab_embedder or (embedders.pop() if len(embedders) == 1 else None)
    )


def _hyphenate(name: str) -> str:
    """Replace underscores in a column name by hyphens, as in a feature's name."""
    return name.replace("_", "-")


def _join_fingerprints(fingerprints: set[str | None]) -> str:
    """Return fingerprints as one sorted, comma-separated text for a message."""
    return ", ".join(sorted(str(value) for value in fingerprints))


# The items that a policy would show are the top-k of each recall, by strict rank.


def rank_top_k(scores: Floats, recall: Ints, limit: Ints) -> tuple[Ints, Ints]:
    """Return the rows and the ranks (from 1) of each recall's ``limit[d]`` best scores.

    ``recall`` (int64[n]) ascends. Rows of one recall are ordered by memory id, which breaks ties.
    Items with a NaN or infinite score are left out, as in a recall.

    >>> rows, ranks = rank_top_k(np.array([0.1, 0.9, 0.9]), np.zeros(3, np.int64), np.array([2]))
    >>> rows.tolist(), ranks.tolist()
    ([1, 2], [1, 2])
    """
    sizes = np.bincount(recall, minlength=len(limit))
    finite = np.isfinite(scores)
    if not finite.all():
        scores = np.where(finite, scores, -np.inf)
    rows = np.flatnonzero(finite & (scores >= _score_bound(scores, recall, sizes, limit)[recall]))
    rows = rows[np.lexsort((-scores[rows], recall[rows]))]
    counts = np.bincount(recall[rows], minlength=len(limit))
    rank = np.arange(len(rows)) - (np.cumsum(counts) - counts)[recall[rows]] + 1
    first = rank <= limit[recall[rows]]
    return rows[first], rank[first]


def _score_bound(scores: Floats, recall: Ints, sizes: Ints, limit: Ints) -> Floats:
    """Return a lower bound for the scores in each recall's top-k, f64[recalls].

    ``sizes`` has each recall's number of candidates, ``limit`` its k. Sorting only the items at or
    above this bound is ten times faster than sorting all.
    """
    pool, largest = int(sizes.max(initial=0)), int(limit.max(initial=1))
    rows = None if largest >= pool else pad_scores(scores, recall, sizes)
    if rows is None:
        return np.full(len(sizes), -np.inf)
    return np.asarray(np.partition(rows, pool - largest, axis=1)[:, pool - largest])


def pad_scores(scores: Floats, recall: Ints, sizes: Ints) -> Floats | None:
    """Return the scores as one row per recall, padded with -inf: f64[recalls, pool].

    The result is None if more than three quarters of the array would be padding.
    """
    pool = int(sizes.max(initial=0))
    if pool * len(sizes) > 4 * len(scores):
        return None
    if pool * len(sizes) == len(scores):
        return scores.reshape(len(sizes), pool)
    rows = np.full((len(sizes), pool), -np.inf)
    rows[recall, np.arange(len(scores)) - (np.cumsum(sizes) - sizes)[recall]] = scores
    return rows


class RecallsAgain(Protocol):
    """A function of a lab that repeats a logged recall under another pack.

    The recall is repeated on the state of the lab just before it. ``decision`` is the recall's row
    of ``decisions``. The result has ``memory_id`` (in the log's type), ``score`` and the features
    of every candidate. It is None if the past state cannot be restored.
    """

    def __call__(self, decision: dict[str, Any], pack: Pack, /) -> pl.DataFrame | None: ...


@dataclass(frozen=True)
class Refused:
    """A policy that cannot be evaluated on a log.

    Parameters
    ----------
    policy
        The name of the policy.
    reason
        Why the policy cannot be evaluated, and what to do.
    """

    policy: str
    reason: str


@dataclass(frozen=True)
class Target:
    """The items that a policy would have shown in each recall, best first.

    Arrays have one value for each of these items. ``row`` is the item's row among the candidates of
    the log, -1 for items outside the log's pool. ``unscored`` is the number of candidates whose
    score is NaN, null or infinite.
    """

    ranker: Ranker
    kind: Literal["re-scored", "re-recalled"]
    recall: Ints
    rank: Ints
    row: Ints
    memory: pl.Series = field(repr=False)
    score: Floats = field(repr=False)
    unscored: int
    scores: Floats | None = field(repr=False)
    """The score of every candidate of the log, f64[n]; None if recalls were repeated."""
    pool: pl.DataFrame | None = field(repr=False)
    """The pools of the repeated recalls, with a column ``recall``; None if re-scored."""

    @property
    def name(self) -> str:
        """The name of the policy."""
        return self.ranker.name


def find_targets(
    rankers: Sequence[Ranker],
    log: Log,
    schema: pl.Schema,
    fingerprints: Fingerprints,
    recall_again: RecallsAgain | None,
    *,
    whole: bool = True,
) -> tuple[list[Target], list[Refused]]:
    """Return the targets of the policies, and a refusal for each policy without a target.

    A policy without a finite score is refused, unless the log is not the ``whole`` one.
    """
    # Re-scoring is cheap and exact. Recalls are repeated under a pack only if the log lacks a value that the pack
    # reads.
    targets: list[Target] = []
    refused: list[Refused] = []
    rescorable, repeated = [], []
    for ranker in rankers:
        objections = [*fingerprints.objections(ranker, schema), *_object_to_similarity(ranker)]
        if not objections:
            rescorable.append(ranker)
        elif ranker.pack is not None and recall_again is not None:
            repeated.append((ranker, ranker.pack))
        else:
            refused.append(Refused(ranker.name, _explain_refusal(ranker, objections)))
    pool = select_pool(rescorable, log, schema) if rescorable else pl.DataFrame()
    results = [rescore(ranker, log, pool, whole=whole) for ranker in rescorable]
    if repeated and recall_again is not None:
        results += _repeat_recalls(repeated, log, recall_again)
    for result in results:
        if isinstance(result, Refused):
            refused.append(result)
        else:
            targets.append(result)
    position = {ranker.name: index for index, ranker in enumerate(rankers)}
    return sorted(targets, key=lambda target: position[target.name]), refused


def _object_to_similarity(ranker: Ranker) -> list[str]:
    """Return an objection if a pack orders results by similarity, otherwise an empty list.

    The log has no similarity between candidates, so such a pack cannot be re-scored.
    """
    if ranker.pack is None or not diversifies(ranker.pack):
        return []
    settings = ", ".join(
        f"{name} {ranker.pack.number(name):g}" for name in ("mmr-weight", "collapse-above")
    )
    return [
        f"its results depend on the similarity of candidates ({settings}), and the log has no vectors"
    ]


def _explain_refusal(ranker: Ranker, objections: Sequence[str]) -> str:
    """Return the objections to a policy as one sentence, followed by a remedy."""
    sentence = "; ".join(objections)
    sentence = f"{sentence[0].upper()}{sentence[1:]}."
    if ranker.pack is not None:
        return f"{sentence} Evaluate on the slates of a lab, which can repeat recalls, or log with this pack for a while."
    return f"{sentence} Log that feature, or evaluate a policy that does not read it."


def _find_column(name: str, schema: pl.Schema) -> str:
    """Return the column of a feature; hyphens and underscores count as equal."""
    names = schema.names()
    if name in names:
        return name
    return next(column for column in names if column.replace("_", "-") == name.replace("_", "-"))


def select_pool(rankers: Sequence[Ranker], log: Log, schema: pl.Schema) -> pl.DataFrame:
    """Return the log's candidates with the columns that the rankers read."""
    columns = dict.fromkeys(
        _find_column(name, schema) for ranker in rankers for name in ranker.reads
    )
    return log.pool([name for name in columns if name not in ("decision", "memory_id")])


def rescore(
    ranker: Ranker, log: Log, pool: pl.DataFrame, *, whole: bool = True
) -> Target | Refused:
    """Rank the logged candidates; refuse the ranker if a whole log has no finite score."""
    if ranker.policy is not None:
        values = ranker.policy.columns(pool, by="decision")
    else:
        assert ranker.expression is not None
        values = pool.select(ranker.expression.alias("value")).to_series()
        if len(values) != pool.height:
            raise InputError(
                f"The expression {ranker.name} gives {len(values)} values for {pool.height} candidates. Return one value "
                f"for each candidate."
            )
    if not (values.dtype.is_numeric() or values.dtype == pl.Boolean):
        raise InputError(
            f"The policy {ranker.name} gives values of type {values.dtype}. Return a number for each candidate."
        )
    scores = values.cast(pl.Float64).to_numpy()
    unscored = int((~np.isfinite(scores)).sum())
    if whole and unscored == len(scores) and unscored:
        return refuse_unscored(ranker.name, unscored)
    row, rank = rank_top_k(scores, log.recall, log.limit)
    memory = log.ids["memory_id"][row]
    return Target(
        ranker, "re-scored", log.recall[row], rank, row, memory, scores[row], unscored, scores, None
    )


def refuse_unscored(name: str, unscored: int) -> Refused:
    """Return the refusal of a policy without a finite score."""
    return Refused(
        name,
        f"None of its {unscored} scores is a finite number, so it would show no item. Check its policy and columns.",
    )


def _repeat_recalls(
    rankers: Sequence[tuple[Ranker, Pack]], log: Log, recall_again: RecallsAgain
) -> list[Target | Refused]:
    """Repeat every recall under each pack, in temporal order.

    The lab rebuilds its past states only once, because all packs repeat a recall together.
    """
    pools: dict[str, dict[int, pl.DataFrame]] = {ranker.name: {} for ranker, _ in rankers}
    refused: dict[str, Refused] = {}
    order = (
        log.decisions["at"].arg_sort().to_list()
        if "at" in log.decisions.columns
        else range(len(log))
    )
    for number in order:
        decision = log.decisions.row(number, named=True)
        for ranker, pack in rankers:
            if ranker.name in refused:
                continue
            frame = recall_again(decision, pack)
            if frame is not None:
                pools[ranker.name][number] = frame.with_columns(
                    recall=pl.lit(number, dtype=pl.Int64)
                )
                continue
            reason = (
                f"Its features differ from the logged ones, and recall {decision['decision']} cannot be repeated, "
                "because its past state is not stored. Log with this pack for a while."
            )
            refused[ranker.name] = Refused(ranker.name, reason)
    return [
        refused.get(ranker.name) or _target_repeated(ranker, pack, log, pools[ranker.name])
        for ranker, pack in rankers
    ]


def _target_repeated(
    ranker: Ranker, pack: Pack, log: Log, pools: dict[int, pl.DataFrame]
) -> Target:
    """Return the top-k of recalls that were repeated under a pack, with their pools.

    ``pools`` has the pool of each recall by the recall's number in the log.
    """
    pool = pl.concat([pools[number] for number in sorted(pools)], how="diagonal").sort(
        "recall", "memory_id"
    )
    scores = pool["score"].cast(pl.Float64).to_numpy()
    recall = pool["recall"].to_numpy()
    order = scores
    if diversifies(pack):
        # The pack reorders by similarity, so its results are the items of the repeated recall, in the order of their
        # ranks.
        order = np.where(
            pool["propensity"].to_numpy() > 0, -pool["rank"].to_numpy().astype(np.float64), np.nan
        )
    rows, rank = rank_top_k(order, recall, log.limit)
    items = pool.select("recall", "memory_id")[rows]
    return Target(
        ranker,
        "re-recalled",
        recall[rows],
        rank,
        log.rows_of(items).fill_null(-1).to_numpy(),
        items["memory_id"],
        scores[rows],
        int((~np.isfinite(scores)).sum()),
        None,
        pool,
    )


# Baselines are packs: they run through the same engine, log the same slates and need the same time for both.


# Okapi BM25, without vectors.
BM25 = """(pack bm25
  "The words alone: Okapi BM25.")

(setting dense-candidates 0) (setting lexical-candidates 100)
(setting seeds 0) (setting spread-steps 0)

(defpolicy eligible [lexical] (> lexical 0))
(defpolicy seed-score [lexical] lexical)
(defpolicy cut [seed received] (+ seed received))
(defpolicy recall-score [lexical] lexical)
"""

# Cosine similarity of vectors, without keywords.
DENSE = """(pack dense
  "The vectors alone: cosine similarity.")

(setting dense-candidates 100) (setting lexical-candidates 0)
(setting seeds 0) (setting spread-steps 0)

(defpolicy eligible [hops] (>= hops 0))
(defpolicy seed-score [similarity] similarity)
(defpolicy cut [seed received] (+ seed received))
(defpolicy recall-score [similarity] similarity)
"""

BASELINES = {"bm25": BM25, "dense": DENSE}
"""The source texts of the baseline packs, by name."""

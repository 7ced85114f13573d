"""What each policy would have shown: re-scored on the logged pool, re-recalled by the lab, or refused by name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeAlias

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import Misfit, Taken, describe_value
from memlab.kernel.embedding import load_embedder
from memlab.kernel.language import (
    Input,
    InputType,
    Policy,
    Signature,
    compile_policy,
    policy_form_text,
    policy_parts,
)
from memlab.kernel.policies import FEATURES, Pack, get_slot, load_pack, logged_owner, pack_names
from memlab.kernel.recall import diversifies
from memlab.kernel.slates import THINNED
from memlab.science.evaluation._intervals import Floats, Ints
from memlab.science.evaluation._log import RESERVED, Log

__all__ = [
    "BASELINES",
    "BM25",
    "DENSE",
    "SLOT",
    "Fingerprints",
    "PolicySpec",
    "Ranker",
    "RecallsAgain",
    "Refused",
    "Target",
    "aim",
    "best_of_each",
    "logged",
    "padded",
    "pool_of",
    "rankers_of",
    "read_fingerprints",
    "rescored",
]


# What may be evaluated: packs, single policies, expressions and columns of scores, each as a ranker with a name.


SLOT = "recall-score"


def _form_as_text(given: object) -> Any:
    """Return a Hy form as text, and a ``Misfit`` for anything else."""
    text = policy_form_text(given)
    return Misfit("a Hy form", describe_value(given)) if text is None else text


PolicySpec: TypeAlias = (
    str | Path | Pack | Policy | pl.Expr | Annotated[Any, Taken("a Hy form", by=_form_as_text)]
)
"""The name, path, text or object of a pack; the text or object of a recall-score; an expression over candidates; the
name of a column of scores."""


@dataclass(frozen=True)
class Ranker:
    """One policy: ``reads`` are the columns of candidates that it needs, ``source`` what it says, ``hash`` its
    version.
    """

    name: str
    sort: Literal["pack", "policy", "expression", "column", "logged"]
    reads: tuple[str, ...]
    source: str
    hash: str
    policy: Policy | None = None
    pack: Pack | None = None
    expression: pl.Expr | None = None


def rankers_of(
    policies: PolicySpec | Sequence[PolicySpec] | Mapping[str, PolicySpec], schema: pl.Schema
) -> list[Ranker]:
    """The rankers, in the order given, under names of their own; ``schema`` is that of the candidates."""
    if isinstance(policies, Mapping):
        found = [replace(_ranker(spec, schema), name=name) for name, spec in policies.items()]
    else:
        single = isinstance(policies, str | Path | Pack | Policy | pl.Expr)
        given: Sequence[PolicySpec] = [policies] if single else policies  # type: ignore[assignment]
        found = [_ranker(spec, schema) for spec in given]
    if not found:
        raise InputError(
            "No policies are given: name a pack, a column of scores, or pass the text of a recall-score."
        )
    hashes: dict[str, str] = {}
    for ranker in found:
        if ranker.name in hashes and hashes[ranker.name] == ranker.hash:
            raise InputError(f"The policy {ranker.name} is given twice.")
        hashes[ranker.name] = ranker.hash
    names = [ranker.name for ranker in found]
    return [
        replace(ranker, name=f"{ranker.name} [{ranker.hash[:8]}]")
        if names.count(ranker.name) > 1
        else ranker
        for ranker in found
    ]


def _ranker(spec: PolicySpec, schema: pl.Schema) -> Ranker:
    if isinstance(spec, pl.Expr):
        return _of_expression(spec, schema)
    if isinstance(spec, Pack | Path):
        return _of_pack(load_pack(spec), schema)
    if isinstance(spec, Policy):
        return _of_policy(spec, spec.source, schema)
    if not isinstance(spec, str):
        raise InputError(
            f"A policy is a pack, a path, a text, a Hy form, a Polars expression or the name of a column, not {spec!r}."
        )
    text = policy_parts(spec.strip())[0]
    if text.startswith(("(", ";")):
        return _of_pack(load_pack(text), schema) if _is_pack(text) else _of_text(text, schema)
    if text.endswith(".hy"):
        return _of_pack(load_pack(text), schema)
    if text in schema.names() and text in pack_names():
        raise InputError(
            f'"{text}" is a pack and a column of the candidates: say load_pack("{text}") or pl.col("{text}").'
        )
    if text in pack_names():
        return _of_pack(load_pack(text), schema)
    if text in schema.names():
        return _of_column(text, schema)
    raise UnknownName("pack or column of scores", text, (*pack_names(), *_numbers(schema)))


def _is_pack(text: str) -> bool:
    lines = (
        line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(";")
    )
    return next(lines, "").lstrip().startswith("(pack")


def _of_pack(pack: Pack, schema: pl.Schema) -> Ranker:
    policy = pack.policies[SLOT]
    return Ranker(
        pack.name,
        "pack",
        _reads(policy, schema),
        "\n".join(pack.sources[:1]),
        pack.hash,
        policy,
        pack,
    )


def _reads(policy: Policy, schema: pl.Schema) -> tuple[str, ...]:
    """The columns that a policy needs: a test of sets that the log does not hold is made from its sets."""
    names: dict[str, None] = {}
    for name in policy.inputs:
        made = name in policy.derived and name not in schema.names()
        names.update(dict.fromkeys(policy.derived[name].sets if made else (name,)))
    return tuple(names)


def _of_text(text: str, schema: pl.Schema) -> Ranker:
    """A policy of its own may read every feature that is declared, and every column that the log has beside them."""
    declared = get_slot(SLOT).signature
    own = {
        item.name: item
        for name, dtype in schema.items()
        if name not in RESERVED and (kind := _type(dtype)) is not None
        for item in [Input(name, kind)]
        if item.name not in declared.inputs
    }
    signature = Signature(SLOT, {**own, **declared.inputs}, aggregates=True)
    return _of_policy(compile_policy(text, signature), text, schema)


def _of_policy(policy: Policy, text: str, schema: pl.Schema) -> Ranker:
    if policy.signature.returns not in ("num", "bool"):
        raise InputError(
            f"The policy {policy.name} returns a {policy.signature.returns}; a ranking needs a number."
        )
    name = policy.name if policy.name != SLOT else f"{SLOT} [{policy.hash[:8]}]"
    return Ranker(name, "policy", _reads(policy, schema), text, policy.hash, policy)


def _type(dtype: pl.DataType) -> InputType | None:
    if dtype.is_numeric():
        return "num"
    if dtype == pl.Boolean:
        return "bool"
    if dtype == pl.List(pl.String):
        return "set"
    return "str" if dtype == pl.String else None


def _of_expression(expression: pl.Expr, schema: pl.Schema) -> Ranker:
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
    if not (schema[name].is_numeric() or schema[name] == pl.Boolean):
        raise InputError(
            f"Column {name} of the candidates holds {schema[name]}; scores are numbers."
        )
    return Ranker(
        name, "column", (name,), f'pl.col("{name}")', _hash(name), expression=pl.col(name)
    )


def logged(candidates: pl.LazyFrame, schema: pl.Schema) -> Ranker | None:
    """The ranking of whoever logged, by its own scores or ranks; none if the log holds neither."""
    held = candidates.select(
        pl.col(name).is_not_null().any() for name in ("score", "rank") if name in schema.names()
    ).collect()
    scored = "score" in held.columns and bool(held["score"].item())
    if scored and "rank" in held.columns and bool(held["rank"].item()):
        # ranks tell what scores do not: an order by likeness. What has no finite score is never shown.
        expression = (
            pl.when(pl.col("score").is_finite())
            .then(-pl.col("rank").cast(pl.Float64))
            .otherwise(None)
        )
        return Ranker(
            "logged",
            "logged",
            ("score", "rank"),
            "the ranks in the log",
            _hash("rank"),
            expression=expression,
        )
    if scored:
        return Ranker(
            "logged",
            "logged",
            ("score",),
            "the scores in the log",
            _hash("score"),
            expression=pl.col("score"),
        )
    if "rank" in held.columns and held["rank"].item():
        expression = -pl.col("rank").cast(pl.Float64)
        return Ranker(
            "logged",
            "logged",
            ("rank",),
            "the ranks in the log",
            _hash("rank"),
            expression=expression,
        )
    return None


def _numbers(schema: pl.Schema) -> list[str]:
    return [name for name, dtype in schema.items() if dtype.is_numeric() and name not in RESERVED]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# Whether a log's features are those that a policy would have read.
#
# A feature that depends on settings, slots or the embedder was logged under a fingerprint. A policy may be scored again
# on the logged pool only where each feature that it reads has, in every recall, the fingerprint that the policy's own
# pack gives it. A log without fingerprints (anybody's frame) is taken at its word, and the evaluation says so.


@dataclass(frozen=True)
class Fingerprints:
    """``logged`` has one mapping of feature to fingerprint for each that occurs; ``embedder`` is the one that a policy
    would meet.
    """

    logged: tuple[Mapping[str, str], ...]
    embedder: str | None

    @property
    def thinned(self) -> bool:
        """Whether some recalls have no features any more."""
        return any(THINNED in given for given in self.logged)

    @property
    def any(self) -> bool:
        return any(self.logged)

    def objections(self, ranker: Ranker, schema: pl.Schema) -> list[str]:
        """Why the logged pool cannot be scored again by this ranker; nothing if it can."""
        thinned = sorted({given[THINNED] for given in self.logged if THINNED in given})
        lost = [name for name in ranker.reads if name not in RESERVED]
        if thinned and lost:
            return [
                f"it reads {', '.join(lost[:3])}{' and more' * (len(lost) > 3)}, which lab.upkeep.thin took from the "
                f"oldest recalls on {thinned[-1]}"
            ]
        spelled = {name.replace("_", "-") for name in schema.names()}
        found = [
            f"it reads {name}, which the log does not hold"
            for name in ranker.reads
            if _bare(name) not in spelled
        ]
        if found or ranker.policy is None or not self.any:
            return found
        embedder = self.embedder or load_embedder().fingerprint
        wanted = ranker.pack.fingerprints(embedder) if ranker.pack is not None else {}
        for name in ranker.reads:
            held = {given.get(name) for given in self.logged}
            if name not in FEATURES:
                owners = sorted(
                    {owner for value in held if (owner := logged_owner(value)) is not None}
                )
                if owners:
                    found.append(
                        f"it reads {name}, a feature of the extension {owners[-1]}, which is not registered"
                    )
                continue
            if None in held:
                unread = (
                    "under a pack that does not read it, or " if FEATURES[name].on_demand else ""
                )
                found.append(
                    f"some recalls were logged {unread}by an older schema, without a fingerprint of {name}"
                )
            elif len(held) > 1:
                found.append(
                    f"it reads {name}, which means different things in different recalls ({_short(held)})"
                )
            elif name in wanted and held != {wanted[name]}:
                depends = (
                    f", which depends on {', '.join(FEATURES[name].depends)}"
                    if FEATURES[name].depends
                    else ""
                )
                found.append(
                    f"it reads {name}{depends}: logged with fingerprint {_short(held)}, where this policy would "
                    f"have {wanted[name]}"
                )
        return found


def read_fingerprints(decisions: pl.DataFrame, lab_embedder: str | None) -> Fingerprints:
    """Those of a table of decisions. ``lab_embedder`` is the fingerprint of the lab's embedder, if there is a lab; the
    log's own counts otherwise, where it is known, and then the one that memlab ships.
    """
    if "fingerprints" not in decisions.columns:
        return Fingerprints(({},), lab_embedder)
    logged = []
    for text in decisions["fingerprints"].unique(maintain_order=True).to_list():
        try:
            read = json.loads(text) if text else {}
        except json.JSONDecodeError as error:
            raise InputError(f"A fingerprints of decisions is no JSON object: {error}.") from None
        if not isinstance(read, dict):
            raise InputError(
                f"A fingerprints of decisions is no JSON object but {type(read).__name__}."
            )
        logged.append(read)
    own = {given["embedder"] for given in logged if "embedder" in given}
    return Fingerprints(tuple(logged), lab_embedder or (own.pop() if len(own) == 1 else None))


def _bare(name: str) -> str:
    return name.replace("_", "-")


def _short(held: set[str | None]) -> str:
    return ", ".join(sorted(str(value) for value in held))


# The items that a policy would show: the best of each recall by strict rank.


def best_of_each(scores: Floats, recall: Ints, limit: Ints) -> tuple[Ints, Ints]:
    """Rows and ranks (from 1) of the ``limit[d]`` best scores of each recall ``d``, best first, recall by recall.

    ``recall`` (int64[n]) ascends, and rows of one recall stand in the order of their memory ids, by which ties break.
    A score that is NaN or infinite is never shown, as in the engine.

    >>> rows, ranks = best_of_each(np.array([0.1, 0.9, 0.9]), np.zeros(3, np.int64), np.array([2]))
    >>> rows.tolist(), ranks.tolist()
    ([1, 2], [1, 2])
    """
    sizes = np.bincount(recall, minlength=len(limit))
    finite = np.isfinite(scores)
    if not finite.all():
        scores = np.where(finite, scores, -np.inf)
    kept = np.flatnonzero(finite & (scores >= _least(scores, recall, sizes, limit)[recall]))
    kept = kept[np.lexsort((-scores[kept], recall[kept]))]
    counts = np.bincount(recall[kept], minlength=len(limit))
    rank = np.arange(len(kept)) - (np.cumsum(counts) - counts)[recall[kept]] + 1
    first = rank <= limit[recall[kept]]
    return kept[first], rank[first]


def _least(scores: Floats, recall: Ints, sizes: Ints, limit: Ints) -> Floats:
    """A score for each recall below which nothing is shown: sorting only what is left is ten times as quick."""
    pool, most = int(sizes.max(initial=0)), int(limit.max(initial=1))
    rows = None if most >= pool else padded(scores, recall, sizes)
    if rows is None:
        return np.full(len(sizes), -np.inf)
    return np.asarray(np.partition(rows, pool - most, axis=1)[:, pool - most])


def padded(scores: Floats, recall: Ints, sizes: Ints) -> Floats | None:
    """f64[recalls, pool]: the scores of each recall, and -inf up to the largest; None where that is most of it."""
    pool = int(sizes.max(initial=0))
    if pool * len(sizes) > 4 * len(scores):
        return None
    if pool * len(sizes) == len(scores):
        return scores.reshape(len(sizes), pool)
    rows = np.full((len(sizes), pool), -np.inf)
    rows[recall, np.arange(len(scores)) - (np.cumsum(sizes) - sizes)[recall]] = scores
    return rows


class RecallsAgain(Protocol):
    """A lab that can answer a logged recall once more, on the state before it, under another pack.

    ``decision`` is the recall's row of ``decisions``. The frame has ``memory_id`` (of the log's type), ``score`` and
    the features of every candidate. None where that state cannot be had.
    """

    def __call__(self, decision: dict[str, Any], pack: Pack, /) -> pl.DataFrame | None: ...


@dataclass(frozen=True)
class Refused:
    """A policy that cannot be evaluated on this log, and why."""

    policy: str
    reason: str


@dataclass(frozen=True)
class Target:
    """The items that a policy would have shown, best first, recall by recall (arrays over these items, t).

    ``row`` points into the log's arrays, -1 for what the log's pool does not hold. ``unscored`` counts candidates whose
    score is NaN, null or infinite: they are never shown.
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
    """Of every candidate of the log, f64[n]; none if it was re-recalled."""
    pool: pl.DataFrame | None = field(repr=False)
    """The re-recalled pools with a column ``recall``; none if it was re-scored."""

    @property
    def name(self) -> str:
        return self.ranker.name


def aim(
    rankers: Sequence[Ranker],
    log: Log,
    schema: pl.Schema,
    fingerprints: Fingerprints,
    recall_again: RecallsAgain | None,
) -> tuple[list[Target], list[Refused]]:
    """A target for each ranker, or the reason why there is none."""
    targets: list[Target] = []
    refused: list[Refused] = []
    rescorable, again = [], []
    for ranker in rankers:
        objections = [*fingerprints.objections(ranker, schema), *_likeness(ranker)]
        if not objections:
            rescorable.append(ranker)
        elif ranker.pack is not None and recall_again is not None:
            again.append((ranker, ranker.pack))
        else:
            refused.append(Refused(ranker.name, _way_out(ranker, objections)))
    pool = pool_of(rescorable, log, schema) if rescorable else pl.DataFrame()
    found = [rescored(ranker, log, pool) for ranker in rescorable]
    if again and recall_again is not None:
        found += _recalled(again, log, recall_again)
    for one in found:
        if isinstance(one, Refused):
            refused.append(one)
        else:
            targets.append(one)
    place = {ranker.name: index for index, ranker in enumerate(rankers)}
    return sorted(targets, key=lambda target: place[target.name]), refused


def _likeness(ranker: Ranker) -> list[str]:
    """A pack that orders by more than its scores shows what no scores of the logged pool can tell."""
    if ranker.pack is None or not diversifies(ranker.pack):
        return []
    given = ", ".join(
        f"{name} {ranker.pack.number(name):g}" for name in ("mmr-weight", "collapse-above")
    )
    return [
        f"what it shows depends on the likeness of candidates ({given}), and the log holds no vectors"
    ]


def _way_out(ranker: Ranker, objections: Sequence[str]) -> str:
    sentence = "; ".join(objections)
    sentence = f"{sentence[0].upper()}{sentence[1:]}."
    if ranker.pack is not None:
        return f"{sentence} Evaluate on the slates of a lab, which can recall again, or log with this pack for a while."
    return f"{sentence} Log that feature, or evaluate a policy that does without it."


def _spelled(name: str, schema: pl.Schema) -> str:
    known = schema.names()
    if name in known:
        return name
    return next(column for column in known if column.replace("_", "-") == name.replace("_", "-"))


def pool_of(rankers: Sequence[Ranker], log: Log, schema: pl.Schema) -> pl.DataFrame:
    """The candidates with every column that one of the rankers reads."""
    columns = dict.fromkeys(_spelled(name, schema) for ranker in rankers for name in ranker.reads)
    return log.pool([name for name in columns if name not in ("decision", "memory_id")])


def rescored(ranker: Ranker, log: Log, pool: pl.DataFrame) -> Target | Refused:
    """What the ranker makes of the logged candidates."""
    if ranker.policy is not None:
        values = ranker.policy.columns(pool, by="decision")
    else:
        assert ranker.expression is not None
        values = pool.select(ranker.expression.alias("value")).to_series()
        if len(values) != pool.height:
            raise InputError(
                f"The expression {ranker.name} gives {len(values)} values for {pool.height} candidates."
            )
    if not (values.dtype.is_numeric() or values.dtype == pl.Boolean):
        raise InputError(f"The policy {ranker.name} gives {values.dtype}; a score is a number.")
    scores = values.cast(pl.Float64).to_numpy()
    unscored = int((~np.isfinite(scores)).sum())
    if unscored == len(scores) and unscored:
        return Refused(
            ranker.name, f"None of its {unscored} scores is a finite number: it would show nothing."
        )
    row, rank = best_of_each(scores, log.recall, log.limit)
    memory = log.ids["memory_id"][row]
    return Target(
        ranker, "re-scored", log.recall[row], rank, row, memory, scores[row], unscored, scores, None
    )


def _recalled(
    rankers: Sequence[tuple[Ranker, Pack]], log: Log, recall_again: RecallsAgain
) -> list[Target | Refused]:
    """Recalls in time order, each under every pack, so that a lab that folds its journal forward does so once."""
    again: dict[str, dict[int, pl.DataFrame]] = {ranker.name: {} for ranker, _ in rankers}
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
                again[ranker.name][number] = frame.with_columns(
                    recall=pl.lit(number, dtype=pl.Int64)
                )
                continue
            why = f"Its features differ from the logged ones, and recall {decision['decision']} cannot be had again."
            refused[ranker.name] = Refused(ranker.name, why)
    return [
        refused.get(ranker.name) or _aimed(ranker, pack, log, again[ranker.name])
        for ranker, pack in rankers
    ]


def _aimed(ranker: Ranker, pack: Pack, log: Log, again: dict[int, pl.DataFrame]) -> Target:
    """What a pack shows of the pools that it found, which are by the number of their recall."""
    pool = pl.concat([again[number] for number in sorted(again)], how="diagonal").sort(
        "recall", "memory_id"
    )
    scores = pool["score"].cast(pl.Float64).to_numpy()
    recall = pool["recall"].to_numpy()
    worth = scores
    if diversifies(pack):
        # the head of the slate is what would have been shown, in the order of its ranks
        worth = np.where(
            pool["propensity"].to_numpy() > 0, -pool["rank"].to_numpy().astype(np.float64), np.nan
        )
    chosen, rank = best_of_each(worth, recall, log.limit)
    shown = pool.select("recall", "memory_id")[chosen]
    return Target(
        ranker,
        "re-recalled",
        recall[chosen],
        rank,
        log.rows_of(shown).fill_null(-1).to_numpy(),
        shown["memory_id"],
        scores[chosen],
        int((~np.isfinite(scores)).sum()),
        None,
        pool,
    )


# Two yardsticks, as packs: they run through the same engine, log the same slates and pay the same costs.


BM25 = """(pack bm25
  "The words alone: Okapi BM25.")

(setting dense-candidates 0) (setting lexical-candidates 100)
(setting seeds 0) (setting spread-steps 0)

(defpolicy eligible [lexical] (> lexical 0))
(defpolicy seed-score [lexical] lexical)
(defpolicy cut [seed received] (+ seed received))
(defpolicy recall-score [lexical] lexical)
"""

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
"""Name and source text."""

"""Read the data of a search: a lab, a log or labelled conversations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arrays import Ints
from memlab.kernel.base.printable import count_of
from memlab.kernel.language import Policy, Signature, compile_policy, policy_parts
from memlab.kernel.language.reader import quoted
from memlab.kernel.policies import FEATURES, Pack, SinglePolicy, as_pack, get_slot, read_policy
from memlab.kernel.slates import CONTENT, TABLES, Slates
from memlab.science.evaluation.parts import (
    RESERVED,
    Log,
    Prepared,
    frame_of_labels,
    gather_evidence,
    prepare,
    read_gold,
    select_features,
    split_metric,
)
from memlab.science.evolution._matrix import FeedbackGoal, Goal, LabelGoal, Matrix, read_columns
from memlab.subjects.opening import open_lab
from memlab.subjects.questions.questions import read_asked
from memlab.subjects.questions.scoring import recall_question

SLOT = "recall-score"
"""The slot that is searched: a log has the features of its candidates, but not what other slots read."""
_PARTS = ("search", "report", "search", "selection")
"""The part that each cluster in turn goes to, largest cluster first."""
_MIN_CLUSTERS = 6
"""The number of clusters with which the report part has the two that an interval needs."""
_SAME_KIND = ", so intervals hold for other queries of the same kind, not for other conversations."
"""The end of notes about decisions that are split one by one."""
_METRIC = "ndcg@10"
"""The default metric of labels, as that of ``lab.score``."""
_TYPES: dict[Any, Any] = {pl.Boolean: "bool", pl.String: "str", pl.List(pl.String): "set"}
"""The types of the language for columns that are not numbers."""


class Part(NamedTuple):
    """One part of the clusters: its log, the features of its candidates, and the goal."""

    log: Log
    matrix: Matrix
    goal: Goal


@dataclass(frozen=True)
class Data:
    """The parts of the data, the start, and the features that programs may read.

    ``codes`` has the number of each recall's part. ``units`` are the clusters, also where they are too
    few for three parts and decisions are split. ``read`` returns any recalls as a part.
    """

    parts: Mapping[str, Part]
    prepared: Prepared
    start: Policy
    base: Pack | None
    signature: Signature
    metric: str
    anchors: Ints
    lab: Any
    notes: tuple[str, ...]
    codes: Ints
    units: Ints
    read: Callable[[Ints], Part]

    def compile(
        self, text: str, helpers: Sequence[str] = (), params: Mapping[str, float] | None = None
    ) -> Policy:
        """Compile a policy that may only read the features in the data."""
        return compile_policy(
            text, self.signature, name=SLOT, helpers=tuple(helpers), params=params or None
        )

    def build_pack(self, policy: Policy) -> Pack | Policy:
        """Replace the policy in the start's pack; return the policy itself if there is no pack."""
        if self.base is None:
            return policy
        base = self.base
        return as_pack(
            SinglePolicy(*policy_parts(policy), SLOT), lambda: base, f"{base.name}-evolved"
        )


def read_data(
    data: Any,
    start: Any,
    labels: Any,
    metric: str | None,
    anchors: Sequence[Any],
    seed: int,
    **options: Any,
) -> Data:
    """Read the data, and split their clusters into parts."""
    notes: list[str] = []
    slates, labels, lab = _read_slates(data, start, labels)
    if start is None:
        if lab is None:
            raise InputError(
                "The data come from no lab, so there is no active pack to start from. Name a policy: start=."
            )
        start = lab.policies.pack
    if isinstance(start, str) and start in slates.candidates.collect_schema():
        start = f"(fn [{start}] {start})"  # a column alone, which the language reads as a feature
    if labels is None:
        metric = metric or "value"
        if metric != "value":
            raise InputError(
                f'metric="{metric}" needs labels. Pass labels=, or metric="value" for feedback.'
            )
    else:
        metric = metric or _METRIC
        split_metric(metric)

    def read(cluster: str | None) -> Prepared:
        """Prepare the evaluated recalls, with clusters by the given unit."""
        prepared = prepare(slates, start, labels=labels, **{**options, "cluster": cluster})
        if labels is None:
            return prepared
        judged = np.flatnonzero(read_gold(labels, prepared.log).judged)
        return replace(prepared, log=prepared.log.only(judged))

    prepared = read(options["cluster"])
    units = prepared.log.cluster
    if prepared.log.clusters < _MIN_CLUSTERS and options["cluster"] is None:
        notes.append(
            f"The data have {count_of(prepared.log.clusters, prepared.log.clustered)}, too few for three parts. Decisions "
            f"are split instead{_SAME_KIND}"
        )
        prepared = read("decision")
    elif options["cluster"] is None and prepared.log.clusters == len(prepared.log):
        notes.append(f"Each decision is a cluster of its own{_SAME_KIND}")
    if prepared.log.clusters < _MIN_CLUSTERS:
        raise InputError(
            f"The data have {count_of(prepared.log.clusters, 'cluster')} ({prepared.log.clustered}), and three parts need "
            f"{_MIN_CLUSTERS}. Add decisions, or name a finer unit: cluster=."
        )
    (ranker,), log = prepared.rankers, prepared.log
    if ranker.policy is None:
        raise InputError(
            f"{ranker.name} is not a policy, so the search cannot start there. Start from a policy."
        )
    base = _find_base(start, ranker.policy, ranker.pack, lab)
    codes, anchored = _split(log, seed, anchors)
    names = _list_features(prepared, base, ranker.policy, log.only(np.flatnonzero(codes == 0)))
    signature = _sign(names, ranker.policy)
    text, helpers, params = policy_parts(ranker.policy)
    policy = compile_policy(text, signature, name=SLOT, helpers=helpers, params=params or None)
    read_part = partial(_read_part, prepared, names, labels, metric)
    return Data(
        {
            name: read_part(np.flatnonzero(codes == code))
            for code, name in enumerate(("search", "selection", "report"))
        },
        prepared,
        policy,
        base,
        signature,
        metric,
        anchored,
        lab,
        (*notes, *log.notes),
        codes,
        units if units.any() else log.cluster,
        read_part,
    )


def _read_slates(data: Any, start: Any, labels: Any) -> tuple[Slates, pl.DataFrame | None, Any]:
    """Return the slates of ``data``, and their labels and their lab or None; questions are recalled first."""
    if isinstance(data, Slates):
        return data, frame_of_labels(labels, data), data.lab
    if isinstance(data, Sequence) and data and all(hasattr(item, "conversation") for item in data):
        lab = open_lab(pack=as_pack("memlab" if start is None else start))
        for item in data:
            lab.remember(item.conversation.rows(project=item.conversation.name), chain=True)
        lab.questions.add(list(data))
        return (*_recall_questions(lab), lab)
    if not hasattr(data, "slates") or isinstance(data, str):
        raise InputError(
            "memlab.evolve searches on a lab, on slates such as lab.slates(), or on labelled conversations such as "
            f"memlab.ingest.read_locomo(path); not on {type(data).__name__}."
        )
    if labels is None and len(getattr(data, "questions", ())):
        return (*_recall_questions(data, start), data)
    slates = data.slates()
    return slates, frame_of_labels(labels, slates), data


def _recall_questions(lab: Any, start: Any = None) -> tuple[Slates, pl.DataFrame]:
    """Recall every accepted question of a lab, and return the log and its labels.

    A decision has the number of its question. The recalls are not stored. Their pack reads every
    feature, also those that are computed on demand.
    """
    active = lab.policies.pack
    pack = active if start is None else as_pack(start, lambda: active)
    pack = pack.with_policy(SLOT, compile_policy(_read_all(), get_slot(SLOT).signature, name=SLOT))
    questions, now = read_asked(lab.questions, None), lab.io.store.clock()
    slates = [
        replace(recall_question(lab, pack, row, 10, now).slate, decision=row["question"])
        for row in questions
    ]
    labels = pl.DataFrame(
        [(row["question"], sorted(set(row["wants"]))) for row in questions],
        schema={"decision": pl.Int64, "memory_id": pl.List(pl.Int64)},
        orient="row",
    )
    labels = labels.explode("memory_id").with_columns(relevance=pl.lit(1.0))
    return Slates.of(slates, pl.DataFrame(schema=TABLES["feedback"]), lab=lab), labels


def _read_all() -> str:
    """Return a policy that reads similarity, the features of extensions, and those logged only on demand."""
    shapes = {
        "num": "(if-null {0} 0)",
        "bool": "(if {0} 1 0)",
        "str": "(if (= {0} {1}) 1 0)",
        "set": "(size {0})",
    }
    inputs = [
        item
        for name, item in get_slot(SLOT).signature.inputs.items()
        if name == "similarity"
        or (name in FEATURES and (FEATURES[name].on_demand or FEATURES[name].owner))
    ]
    terms = [
        shapes[item.type].format(item.name, quoted((item.words or ("",))[0])) for item in inputs
    ]
    return f"(fn [{' '.join(item.name for item in inputs)}] (+ {' '.join(terms)}))"


def _find_base(start: Any, policy: Policy, pack: Pack | None, lab: Any) -> Pack | None:
    """Return the pack with the recall-score to improve, or None if the policy reads inputs of a foreign log."""
    if pack is not None:
        return pack
    if not set(policy.arguments) <= set(get_slot(SLOT).signature.inputs):
        return None
    return as_pack(read_policy(start), None if lab is None else lambda: lab.policies.pack)


def _list_features(
    prepared: Prepared, base: Pack | None, start: Policy, search: Log
) -> dict[str, str]:
    """Return the column of each feature that programs may read, by feature name.

    A feature is left out if its logged value is not what the pack would compute, or if it is the same
    for all candidates of the search part. The start keeps what it reads, and InputError is raised if
    the log lacks that.
    """
    ranker = replace(prepared.rankers[0], pack=base)
    columns = [
        name
        for name, dtype in prepared.schema.items()
        if name not in (*RESERVED, *CONTENT) and (dtype.is_numeric() or dtype in _TYPES)
    ]
    counts = (
        search.pool(columns).select(pl.col(columns).n_unique()).row(0, named=True)
        if columns
        else {}
    )
    read = {name for test in start.derived.values() for name in test.sets} | set(start.arguments)
    names = {}
    for column in columns:
        feature = column.replace("_", "-")
        if feature in read or (
            counts[column] > 1
            and not prepared.fingerprints.objections(
                replace(ranker, reads=(column,)), prepared.schema
            )
        ):
            names[feature] = column
    missing = [name for name in start.inputs if name not in names and name not in start.derived]
    objections = prepared.fingerprints.objections(ranker, prepared.schema)
    if missing or objections:
        reason = objections[0] if objections else f"it reads {missing[0]}, which is not in the log"
        raise InputError(
            f"The start cannot be scored on this log: {reason}. Start from another policy."
        )
    return names


def _sign(names: Mapping[str, str], start: Policy) -> Signature:
    """Return the signature of programs: the slot's and start's inputs that the data has or ``start`` reads."""
    declared = {**get_slot(SLOT).signature.inputs, **start.signature.inputs}
    # A foreign log has columns that no slot declares; the start was compiled with all of them.
    inputs = {
        name: item for name, item in declared.items() if name in names or name in start.arguments
    }
    return Signature(SLOT, inputs, aggregates=True)


def _split(log: Log, seed: int, anchors: Sequence[Any]) -> tuple[Ints, Ints]:
    """Return each recall's part (0 search, 1 selection, 2 report), and the rows of anchors in the search part.

    Clusters of anchors belong to the search part, because anchors steer the search.
    """
    rows = {name: row for row, name in enumerate(log.decisions["decision"].to_list())}
    unknown = [name for name in anchors if name not in rows]
    if unknown:
        raise InputError(
            f"The anchor {unknown[0]!r} is not a decision of the data. Pass ids of decisions."
        )
    anchored = np.isin(np.arange(len(log)), [rows[name] for name in anchors])
    fixed = np.unique(log.cluster[anchored])
    rng = np.random.default_rng((seed, log.clusters))
    size = np.bincount(log.cluster, minlength=log.clusters)
    order = rng.permutation(log.clusters)
    order = order[np.argsort(-size[order], kind="stable")]
    free = order[~np.isin(order, fixed)]
    if len(free) < 4:
        raise InputError(
            "The anchors leave fewer than 4 clusters for selection and report. Name fewer anchors."
        )
    part = np.zeros(log.clusters, dtype=np.int64)
    part[free] = [("search", "selection", "report").index(_PARTS[i % 4]) for i in range(len(free))]
    codes = part[log.cluster]
    return codes, np.flatnonzero(anchored[codes == 0])


def _read_part(
    prepared: Prepared,
    names: Mapping[str, str],
    labels: pl.DataFrame | None,
    metric: str,
    recalls: Ints,
) -> Part:
    """Return one part of the log, with its features and its goal."""
    log = prepared.log.only(recalls)
    matrix = Matrix(read_columns(log.pool(list(names.values())), names), log.recall)
    if labels is None:
        features = select_features(log, prepared.features, prepared.schema)
        return Part(log, matrix, FeedbackGoal(gather_evidence(log, prepared.settings, features)))
    kind, cut = split_metric(metric)
    log = replace(log, limit=np.full(len(log), cut))
    own = labels.join(log.decisions.select("decision"), on="decision", how="semi")
    return Part(log, matrix, LabelGoal(replace(read_gold(own, log), name=kind)))

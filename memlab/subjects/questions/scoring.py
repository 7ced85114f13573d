"""``lab.score``: the retrieval quality of policies on labelled questions, without logging."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.arrays import Flags, Floats
from memlab.kernel.base.clock import from_micros
from memlab.kernel.base.display import Columns, Report, Table, clip, format_rows
from memlab.kernel.base.printable import count_of
from memlab.kernel.base.progress import Step
from memlab.kernel.language import Policy
from memlab.kernel.policies import FEATURES, Pack, list_policies, read_policy
from memlab.kernel.recall import Hits
from memlab.kernel.slates import Slate
from memlab.kernel.verbs.core import Core
from memlab.science.batch import Workers, run_tasks
from memlab.science.evaluation import METRICS, cluster_interval, judge, measure
from memlab.subjects.copies import copy_for_workers
from memlab.subjects.questions.questions import questions_frame, read_asked

ACTIVE = "active"
"""The name of the active pack among the policies of a score."""

NEW = "this policy"
"""The name of a policy that is scored before it is installed."""

_BEFORE_INSTALL = ("hit@5", "ndcg@10")
"""Metrics of a score before an install. The first one decides whether the policy loses."""

_SEED = 0
"""The seed of samples of questions: any fixed number, so that repeated scores ask the same ones."""

_LISTED = 10
"""Gained or lost questions that a table lists, as many as fit a screen next to the scores."""

_MOST = 1_000
"""The maximum number of ranks of a metric, beyond every pool that packs retrieve."""

# Names that users know, and the number of ranks of a metric without one, as in published results.
_ALIASES = {"hit": "recall_any"}
_CUT = 10
_METRIC = re.compile(r"([a-z_]+)(?:@([1-9]\d{0,3}))?\Z")


@dataclass(frozen=True, repr=False)
class Scores(Report):
    """Scores of policies on labelled questions; made by ``lab.score``.

    Parameters
    ----------
    frame
        A row for each policy and metric: ``value`` with its interval ``low`` to ``high``, the
        ``difference`` to the active pack with the paired interval ``difference_low`` to
        ``difference_high``, and the numbers of questions ``gained`` and ``lost``.
    ranks
        A row for each question, with the best rank of a wanted memory under each policy in a column
        with its name. Null beyond the judged ranks.
    cut
        The number of results in which a question counts as answered, for ``gained`` and ``lost``.
    clustered
        The unit of the intervals: question or project.
    pack
        The name of the active pack.
    total
        The number of questions of which ``ranks`` has all or a random sample.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember(["The user prefers tabs", "Deploys go out on Tuesdays"])
    >>> _ = lab.questions.add("when do deploys go out?", wants=2)
    >>> scores = lab.score({"oldest": "(fn [age-days] age-days)"}, metrics="hit@1")
    >>> scores.frame.select("policy", "value", "lost").rows()
    [('active', 1.0, None), ('oldest', 0.0, 1)]
    """

    frame: pl.DataFrame
    ranks: pl.DataFrame = field(repr=False)
    cut: int
    clustered: str
    pack: str
    total: int

    @cached_property
    def policies(self) -> tuple[str, ...]:
        """The names of the policies that are compared with the active pack."""
        return tuple(name for name in self.frame["policy"].unique(maintain_order=True))[1:]

    @checked
    def gained(self, policy: str) -> pl.DataFrame:
        """Return the questions that a policy answers but the active pack does not.

        Parameters
        ----------
        policy
            The name of a policy.

        Returns
        -------
        DataFrame
            A row for each question: ``id``, ``query``, ``wants``, and the best rank of a wanted
            memory ``before``, under the active pack, and ``after``.

        Raises
        ------
        UnknownName
            If there is no such policy.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["The user prefers tabs", "Deploys go out on Tuesdays"])
        >>> _ = lab.questions.add("when do deploys go out?", wants=2)
        >>> lab.score({"oldest": "(fn [age-days] age-days)"}, metrics="hit@1").gained("oldest").height
        0
        """
        return self._changed(policy, ACTIVE)

    @checked
    def lost(self, policy: str) -> pl.DataFrame:
        """Return the questions that the active pack answers but a policy does not.

        Parameters
        ----------
        policy
            The name of a policy.

        Returns
        -------
        DataFrame
            The columns of ``gained``.

        Raises
        ------
        UnknownName
            If there is no such policy.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["The user prefers tabs", "Deploys go out on Tuesdays"])
        >>> _ = lab.questions.add("when do deploys go out?", wants=2)
        >>> scores = lab.score({"oldest": "(fn [age-days] age-days)"}, metrics="hit@1")
        >>> scores.lost("oldest").select("query", "before", "after").rows()
        [('when do deploys go out?', 1, None)]
        """
        return self._changed(policy, policy)

    def _changed(self, policy: str, missing: str) -> pl.DataFrame:
        """Return the questions that one side does not answer and the other side answers.

        ``missing`` is the side that does not answer them: the active pack or ``policy``.
        """
        if policy not in self.policies:
            raise UnknownName("policy of these scores", policy, self.policies)
        active, other = (
            (pl.col(name) <= self.cut).fill_null(value=False) for name in (ACTIVE, policy)
        )
        only = other & ~active if missing == ACTIVE else active & ~other
        return self.ranks.filter(only).select("id", "query", "wants", before=ACTIVE, after=policy)

    @property
    def sentence(self) -> str:
        """A sentence with the first metric of the active pack and of each other policy."""
        first, *others = self.frame.unique("policy", keep="first", maintain_order=True).to_dicts()
        count = count_of(self.ranks.height, "question")
        if self.total > self.ranks.height:
            count = f"a random sample of {count} of {self.total:,}"
        active = f"{self.pack}, active: {first['metric']} {first['value']:.3f} on {count}."
        return " ".join([active, *map(_describe, others)])

    def _display(self) -> object:
        note = (
            f"Intervals are over {self.clustered}s. Gained and lost: a wanted memory in the top {self.cut}, compared "
            "with the active pack."
        )
        rows = format_rows(self.frame.iter_rows(named=True), _COLUMNS)
        table = Table("", *rows, notes=[note], left=(0, 1))
        changed = [
            Table(
                f"{kind} by {name}",
                ("question", "query", "rank before", "after"),
                [
                    (str(id), clip(query), str(before or "-"), str(after or "-"))
                    for id, query, _, before, after in rows.head(_LISTED).rows()
                ],
                left=(1,),
                notes=[f"{rows.height - _LISTED} more"] if rows.height > _LISTED else [],
            )
            for name in self.policies
            for kind, rows in (("Lost", self.lost(name)), ("Gained", self.gained(name)))
            if rows.height
        ]
        return self.sentence, table, *changed

    @checked
    def to_dict(self) -> dict[str, Any]:
        """Return the scores as values that JSON can encode.

        Returns
        -------
        dict
            The rows of ``frame``, the ranks of each question, and the sample.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("The user prefers tabs")
        >>> _ = lab.questions.add("tabs or spaces?", wants=1)
        >>> lab.score().to_dict()["questions"]
        1
        """
        return {
            "pack": self.pack,
            "questions": self.ranks.height,
            "cut": self.cut,
            "clusters": self.clustered,
            "scores": self.frame.to_dicts(),
            "ranks": self.ranks.drop("at").to_dicts(),
        }


def _describe(row: Mapping[str, Any]) -> str:
    """Return a sentence with a policy's score and its difference from the active pack."""
    low, high = row["difference_low"], row["difference_high"]
    interval = ""
    if low is not None:
        verdict = "better" if low > 0 else "worse" if high < 0 else "no significant difference"
        interval = f", {low:+.3f} to {high:+.3f}: {verdict}"
    return (
        f"{row['policy']}: {row['value']:.3f} ({row['difference']:+.3f}{interval}; {row['gained']} gained, "
        f"{row['lost']} lost)."
    )


# The heading and the template of each column of the table.
_COLUMNS: Columns = (
    ("policy", "{policy}"),
    ("metric", "{metric}"),
    ("value", "{value:.3f}"),
    ("95% interval", "{low:.3f} to {high:.3f}"),
    ("difference", "{difference:+.3f}"),
    ("95%", "{difference_low:+.3f} to {difference_high:+.3f}"),
    ("gained", "{gained}"),
    ("lost", "{lost}"),
)


# -- scoring ----------------------------------------------------------------------------------------------------------


def score_notice(core: Core, check: Callable[[], Policy], limit: int) -> tuple[Scores | None, str]:
    """Return a policy's scores on the lab's questions, and a sentence about any loss.

    ``check`` compiles the policy, and is called only if the lab has questions.
    """
    # The core of a background component has no owner, and nobody who reads a warning.
    lab: Any = core.owner
    if lab is None or not len(lab.questions):
        return None, ""
    policy = check()
    scores = score(lab, {NEW: policy}, None, _BEFORE_INSTALL, limit)
    loss = describe_loss(scores)
    undo = f'lab.policies.rollback("{policy.signature.slot}")'
    return scores, loss and f"{loss} {undo} returns to the active policy."


def describe_loss(scores: Scores) -> str:
    """Return a sentence if the new policy loses significantly in hit@5, otherwise ""."""
    row = scores.frame.row(
        by_predicate=(pl.col("policy") == NEW) & (pl.col("metric") == _BEFORE_INSTALL[0]),
        named=True,
    )
    high = row["difference_high"]
    if high is None or high >= 0:
        return ""
    return f"{scores.sentence} It loses more than its interval."


def note_on_feedback(lab: Any, slot: str) -> str:
    """Return a note on mean feedback under a slot's active policy."""
    own = lab.policies.attribution(slot).frame.filter(pl.col("rate").is_not_null()).tail(1)
    live = lab.policies.history(slot)["version"][-1]
    if not own.height or own["version"][0] != live:
        return (
            "No labelled questions and no feedback, so nothing shows whether a change is better. Add questions: "
            'accept proposed ones in the Question list, or lab.questions.add("...", wants="...").'
        )
    row = own.row(0, named=True)
    return (
        f"No labelled questions. Feedback only: {row['rate']:.0%} of {row['success'] + row['fail']} judged results "
        f"helped ({row['low']:.0%} to {row['high']:.0%}) under {slot} version {live}, the active one. That does not show "
        'how a change would do. Add questions: accept proposed ones in the Question list, or lab.questions.add("...", '
        'wants="..."), or lab.questions.infer() from feedback.'
    )


def score(
    lab: Any,
    policies: Any,
    questions: Any,
    metrics: str | Sequence[str],
    limit: int | None = None,
    executor: Workers = None,
) -> Scores:
    """Score policies on the lab's questions or other questions; see ``Lab.score``."""
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    depth = max((_parse_metric(name)[1] for name in names), default=0)
    if not names:
        raise InputError('No metric was given. Pass at least one, such as "ndcg@10".')
    active = lab.policies.pack
    packs = {ACTIVE: active, **_read_policies(active, policies)}
    resolved = read_asked(lab.questions, questions)
    if not resolved:
        raise InputError(
            'There is no accepted question. Add some with lab.questions.add("...", wants=[...]), or accept proposed '
            "ones: lab.questions.propose()."
        )
    chosen = sample_questions(resolved, limit)
    settings = active, chosen, depth, lab.io.store.clock()
    if executor is None:
        ranked = [_rank_questions(lab, settings, pack) for pack in packs.values()]
    else:
        with copy_for_workers(lab) as open_copy:
            rank = partial(_rank_in_copy, open_copy, settings)
            ranked = run_tasks(rank, list(packs.values()), executor)
    rankings = dict(zip(packs, ranked, strict=True))
    return build_scores(rankings, chosen, names, pack=active.name, total=len(resolved))


def sample_questions(rows: list[dict[str, Any]], limit: int | None) -> list[dict[str, Any]]:
    """Return a random sample of at most ``limit`` questions, with a fixed seed."""
    if limit is None or len(rows) <= limit:
        return rows
    chosen = np.random.default_rng(_SEED).choice(len(rows), limit, replace=False)
    return [rows[index] for index in np.sort(chosen)]


def build_scores(
    rankings: Mapping[str, Sequence[Sequence[int]]],
    questions: Sequence[Mapping[str, Any]],
    metrics: Sequence[str],
    *,
    pack: str,
    total: int,
) -> Scores:
    """Return the scores of all rankings; the first ranking is that of the active pack."""
    # Every ranking is judged once for all metrics, and each policy is compared with the active pack.
    measured = [_parse_metric(name) for name in metrics]
    depth = max(cut for _, cut in measured)
    evidence = [set(row["wants"]) for row in questions]
    by_project = len({row.get("project") for row in questions}) > 1
    clusters = [str(row.get("project") if by_project else at) for at, row in enumerate(questions)]
    ranks = {name: _best_ranks(own, evidence) for name, own in rankings.items()}
    cut = next((cut for kind, cut in measured if kind == "recall_any"), measured[0][1])
    wanted = [set(map(str, own)) for own in evidence]
    values = {
        name: [measure(judged, f"{kind}@{at}") for kind, at in measured]
        for name, own in rankings.items()
        for judged in [judge([[*map(str, ids)] for ids in own], wanted, depth=depth)]
    }
    first = {
        name: np.array([rank is not None and rank <= cut for rank in own])
        for name, own in ranks.items()
    }
    rows = [
        _score_row(own, base, clusters)
        | {"policy": name, "metric": metric}
        | ({} if name == ACTIVE else _count_changes(first[ACTIVE], first[name]))
        for name in rankings
        for metric, own, base in zip(metrics, values[name], values[ACTIVE], strict=True)
    ]
    columns = questions_frame({"question": at, **row} for at, row in enumerate(questions, 1))
    return Scores(
        pl.DataFrame(rows, schema=_SCHEMA),
        columns.select(_QUESTION).with_columns(
            pl.Series(name, own, dtype=pl.Int64) for name, own in ranks.items()
        ),
        cut,
        "project" if by_project else "question",
        pack,
        total,
    )


_QUESTION = ("id", "query", "wants", "project", "at", "category")
"""The columns of ``ranks`` that are not policies."""
# The types of ``Scores.frame``, whose intervals may all be null.
_SCHEMA: dict[str, Any] = {
    "policy": pl.String,
    "metric": pl.String,
    **dict.fromkeys(
        ("value", "low", "high", "difference", "difference_low", "difference_high"), pl.Float64
    ),
    "gained": pl.Int64,
    "lost": pl.Int64,
}


def _score_row(values: Floats, base: Floats, clusters: list[str]) -> dict[str, Any]:
    """Return a metric's mean and mean difference from the active pack, with intervals."""
    row: dict[str, Any] = {"value": float(values.mean())}
    if interval := cluster_interval(values, clusters):
        row |= {"low": max(interval.low, 0.0), "high": min(interval.high, 1.0)}
    if values is not base:
        row["difference"] = float((values - base).mean())
        if paired := cluster_interval(values - base, clusters):
            row |= {"difference_low": paired.low, "difference_high": paired.high}
    return row


def _count_changes(before: Flags, after: Flags) -> dict[str, int]:
    """Return the number of questions that only the new or only the old ranking answers."""
    return {"gained": int((after & ~before).sum()), "lost": int((before & ~after).sum())}


def _parse_metric(name: str) -> tuple[str, int]:
    """Return the metric and the number of ranks in a name such as "hit@5"."""
    match = _METRIC.match(name) if isinstance(name, str) else None
    kind = match and _ALIASES.get(match[1], match[1])
    cut = int(match[2] or _CUT) if match else 0
    if kind not in METRICS or cut > _MOST:
        raise UnknownName("metric", name, [f"{metric}@10" for metric in (*_ALIASES, *METRICS)])
    return kind, cut


def recall_question(lab: Any, pack: Pack, row: Mapping[str, Any], depth: int, now: int) -> Hits:
    """Return the results of a pack for a question, without logging the recall."""
    hits: Hits = lab.recall(
        row["query"],
        limit=depth,
        project=row.get("project"),
        viewer=row.get("viewer"),
        at=from_micros(row.get("at") or now),
        pack=pack,
        log=False,
    )
    return hits


_Settings = tuple[Pack, list[dict[str, Any]], int, int]
"""The active pack, the questions, the number of ranks, and the current time in microseconds."""


def _rank_in_copy(
    open_copy: Callable[[], Any], settings: _Settings, policy: Pack | pl.Expr, _: Step
) -> list[Sequence[int]]:
    """Return a policy's rankings of questions, computed on a copy of the lab."""
    with open_copy() as lab:
        return _rank_questions(lab, settings, policy)


def _rank_questions(lab: Any, settings: _Settings, policy: Pack | pl.Expr) -> list[Sequence[int]]:
    """Return the ids that a policy ranks highest for each question."""
    active, questions, depth, now = settings
    return [_rank(lab, active, policy, row, depth, now) for row in questions]


def _rank(
    lab: Any, active: Pack, policy: Pack | pl.Expr, row: Mapping[str, Any], depth: int, now: int
) -> Sequence[int]:
    """Return the ids that a pack or expression ranks highest for a question."""
    if isinstance(policy, Pack):
        return recall_question(lab, policy, row, depth, now).ids
    return _order_by(policy, recall_question(lab, active, row, depth, now).slate, lab.memories)[
        :depth
    ]


def _order_by(expression: pl.Expr, slate: Slate, memories: pl.DataFrame) -> list[int]:
    """Return the ids of the candidates for which an expression is finite, in descending order of its values."""
    columns = memories.with_columns(memory_id=pl.col("id").cast(pl.Int64))
    frame = slate.frame.join(columns, on="memory_id", how="left", suffix="_of_memory")
    for column in expression.meta.root_names():
        if column not in frame.columns:
            raise UnknownName("column of the candidates", column, frame.columns)
    try:
        values = frame.select(expression.cast(pl.Float64)).to_series()
    except pl.exceptions.PolarsError as error:
        raise InputError(f"The expression {clip(str(expression))} has no scores: {error}") from None
    if len(values) != frame.height:
        raise InputError(
            f"The expression {clip(str(expression))} gives {len(values)} values for {frame.height} candidates. Return "
            "one number for each candidate."
        )
    scored = frame.select("memory_id", value=-values).filter(pl.col("value").is_finite())
    return scored.sort("value", "memory_id")["memory_id"].to_list()


def _best_ranks(
    rankings: Sequence[Sequence[int]], evidence: Sequence[Collection[int]]
) -> list[int | None]:
    """Return the best rank of a wanted memory for each question, from 1, or None if not ranked."""
    return [
        next((rank for rank, id in enumerate(ranking, 1) if id in wanted), None)
        for ranking, wanted in zip(rankings, evidence, strict=True)
    ]


def _name_term(term: Any) -> str:
    """Return the label of a term, or its expression with the features' descriptions."""
    if term.label:
        return str(term.label)
    docs = [FEATURES[name].doc.split(": ")[0].split(". ")[0] for name in term.features]
    return f"{term.text} ({'; '.join(docs).rstrip('.')})" if docs else str(term.text)


_TERMS = 3
"""Terms that an explanation names: the most changed ones, as many as a reader compares."""
_QUOTED = 100
"""Characters of a memory in an explanation, which a line of a page fits."""
_VISIBLE = 0.0005
"""The minimum difference of terms that does not print as 0.000."""


def explain_change(
    lab: Any, question: int, before: Pack, after: Pack, *, viewer: str | None = None
) -> list[str]:
    """Return sentences on why a wanted memory's rank differs under another pack."""
    rows = {row["question"]: row for row in read_asked(lab.questions, None)}
    if question not in rows:
        raise UnknownName("question", question, list(map(str, rows)))
    row = {"viewer": viewer, **rows[question]}
    now = lab.io.store.clock()
    both = [recall_question(lab, pack, row, pack.count("pool"), now) for pack in (before, after)]
    old, new = ranks = [{id: rank for rank, id in enumerate(hits.ids, 1)} for hits in both]
    # A memory without a rank is below all others.
    last = 1 + max(map(len, ranks))
    wanted = min(row["wants"], key=lambda id: min(own.get(id, last) for own in ranks))

    def quote(memory: int) -> str:
        return f'memory {memory} ("{clip(lab[memory].text, _QUOTED)}")'

    sentences = [
        f"Wanted: {quote(wanted)}. Its rank before is {old.get(wanted, 'none')}, after {new.get(wanted, 'none')}."
    ]
    missing = [
        when
        for when, hits in zip(("Before", "After"), both, strict=True)
        if wanted not in hits.slate.ids
    ]
    if missing:
        return [
            *sentences,
            f"{missing[0]} the change, it is no candidate: it is not found, or not eligible.",
        ]
    falls = new.get(wanted, last) > old.get(wanted, last)
    high, low = (old, new) if falls else (new, old)
    rival = next(
        (
            id
            for id in low
            if low[id] < low.get(wanted, last) and high.get(id, last) > high.get(wanted, last)
        ),
        None,
    )
    if rival is None:
        return sentences
    sentences.append(
        f"The best memory that {'overtakes it' if falls else 'it overtakes'}: {quote(rival)}."
    )
    leads = [
        {_name_term(term): term.difference for term in hits.why(wanted, rival).terms}
        for hits in both
        if {wanted, rival} <= set(hits.slate.ids.tolist())
    ]
    if len(leads) < 2:
        return [*sentences, "Only one of the two policies finds both memories."]
    moves = {name: [own.get(name, 0.0) for own in leads] for name in leads[0] | leads[1]}

    def lead(value: float) -> str:
        if abs(value) < _VISIBLE:
            return "no difference"
        return f"{abs(value):.3f} in favour of memory {wanted if value > 0 else rival}"

    changed = {name: after - before for name, (before, after) in moves.items()}
    largest = sorted(changed, key=lambda name: -abs(changed[name]))[:_TERMS]
    return sentences + [
        f"{name}: {lead(moves[name][1])}; before, {lead(moves[name][0])}."
        for name in largest
        if abs(changed[name]) >= _VISIBLE
    ]


def _read_policies(active: Pack, policies: Any) -> dict[str, Pack | pl.Expr]:
    """Return each policy's pack or expression, by unique name."""
    packs: dict[str, Pack | pl.Expr] = {}
    for label, spec in list_policies(policies):
        name, pack = _read_policy(active, spec)
        name = label or name
        other = packs.get(name)
        if isinstance(pack, Pack) and isinstance(other, Pack) and other.hash != pack.hash:
            name = f"{name} [{pack.hash[:8]}]"
        if name in packs:
            raise InputError(f"The policy {name} was passed twice. Pass each policy once.")
        packs[name] = pack
    if reserved := {ACTIVE, *_QUESTION} & packs.keys():
        raise InputError(
            f'"{min(reserved)}" is reserved for a column or for the active policy. Give '
            "the policy another name."
        )
    return packs


def _read_policy(active: Pack, spec: Any) -> tuple[str, Pack | pl.Expr]:
    """Return the name of a policy, with a pack that contains it or with the expression."""
    if isinstance(spec, pl.Expr):
        return clip(str(spec)), spec
    read = read_policy(spec)
    if isinstance(read, Pack):
        return read.name, read
    policy = read.compile(lambda: active)
    name = read.name or f"{read.slot} [{policy.hash[:8]}]"
    return name, active.with_policy(read.slot, policy)

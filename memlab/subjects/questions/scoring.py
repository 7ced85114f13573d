"""``lab.score``: the retrieval quality of policies on labelled questions, without logging."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import checked, describe_value
from memlab.kernel.base.clock import from_micros
from memlab.kernel.base.disk import read_source
from memlab.kernel.base.display import Report, Table
from memlab.kernel.base.printable import count_of
from memlab.kernel.language import Policy, policy_form_text, slot_of
from memlab.kernel.policies import FEATURES, Pack, load_pack, pack_names
from memlab.science.evaluation import METRICS, cluster_interval, judge, measure
from memlab.subjects.questions.questions import questions_frame, read_asked

__all__ = ["ACTIVE", "Scores", "score"]

ACTIVE = "active"
"""The name of the active pack among the policies of a score."""

_MOST = 1_000
"""The maximum number of ranks of a metric, beyond every pool that packs retrieve."""

# Names that users know, and the number of ranks of a metric without one, as in published results.
_ALIASES = {"hit": "recall_any"}
_CUT = 10
_METRIC = re.compile(r"([a-z_]+)(?:@([1-9]\d{0,3}))?\Z")

_PACK = re.compile(r"(?:\s|;[^\n]*+)*+\(\s*(?:require memlab\.dialect \*\)\s*\()?pack\b")
"""The beginning of a pack's text: its form ``pack``, after comments and the usual ``require``."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Scores(Report):
    """The scores of policies on labelled questions, next to the active pack; see ``lab.score``.

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

    @cached_property
    def policies(self) -> tuple[str, ...]:
        """The names of the policies that are compared with the active pack."""
        return tuple(name for name in self.frame["policy"].unique(maintain_order=True))[1:]

    @checked
    def gained(self, policy: str) -> pl.DataFrame:
        """Return the questions that a policy answers and the active pack does not.

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
        return self._changed(policy).filter(~pl.col("answered") & pl.col("answers")).drop(_FLAGS)

    @checked
    def lost(self, policy: str) -> pl.DataFrame:
        """Return the questions that the active pack answers and a policy does not.

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
        [('when do deploys go out?', 1, 2)]
        """
        return self._changed(policy).filter(pl.col("answered") & ~pl.col("answers")).drop(_FLAGS)

    def _changed(self, policy: str) -> pl.DataFrame:
        """Return the ranks of a policy next to those of the active pack."""
        if policy not in self.policies:
            raise UnknownName("policy of these scores", policy, self.policies)
        names = {"before": pl.col(ACTIVE), "after": pl.col(policy)}
        first = {
            flag: (names[name] <= self.cut).fill_null(False)
            for flag, name in zip(_FLAGS, names, strict=True)
        }
        return self.ranks.select("id", "query", "wants", **names, **first)

    @property
    def sentence(self) -> str:
        """The finding: the first metric of the active pack, and of each other policy."""
        rows = self.frame.group_by("policy", maintain_order=True).first().rows(named=True)
        first = f"{self.pack}, active: {rows[0]['metric']} {rows[0]['value']:.3f} on "
        parts = [f"{first}{count_of(self.ranks.height, 'question')}."]
        parts += [f"{_describe(row)}." for row in rows[1:]]
        return " ".join(parts)

    def _display(self) -> object:
        heads = ("policy", "metric", "value", "95% interval", "difference", "95%", "gained", "lost")
        table = Table("", heads, map(_format_row, self.frame.rows(named=True)), left=(0, 1))
        note = (
            f"Intervals are over {self.clustered}s. Gained and lost: a wanted memory in the top {self.cut}, compared "
            "with the active pack."
        )
        return self.sentence, table, note

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


_FLAGS = ("answered", "answers")
"""Columns that say whether the active pack and a policy answer a question."""


def _describe(row: Mapping[str, Any]) -> str:
    """Return a policy's score and its difference to the active pack as a sentence part."""
    low, high = row["difference_low"], row["difference_high"]
    change = f"{row['difference']:+.3f}"
    if low is None:
        judgement = change
    else:
        verdict = "better" if low > 0 else "worse" if high < 0 else "no significant difference"
        judgement = f"{change}, {low:+.3f} to {high:+.3f}: {verdict}"
    counts = f"{row['gained']} gained, {row['lost']} lost"
    return f"{row['policy']}: {row['value']:.3f} ({judgement}; {counts})"


def _format_row(row: Mapping[str, Any]) -> list[str]:
    """Return a row of the frame as the cells of a table."""
    low, high, below, above = (
        row[name] for name in ("low", "high", "difference_low", "difference_high")
    )
    return [
        row["policy"],
        row["metric"],
        f"{row['value']:.3f}",
        "" if low is None else f"{low:.3f} to {high:.3f}",
        "" if row["difference"] is None else f"{row['difference']:+.3f}",
        "" if below is None else f"{below:+.3f} to {above:+.3f}",
        *("" if row[name] is None else str(row[name]) for name in ("gained", "lost")),
    ]


# -- scoring ----------------------------------------------------------------------------------------------------------


def score(lab: Any, policies: Any, questions: Any, metrics: str | Sequence[str]) -> Scores:
    """Score policies on a lab's questions; see ``Lab.score``."""
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    measured = [_parse_metric(name) for name in names]
    if not measured:
        raise InputError('There is no metric. Pass at least one, such as "ndcg@10".')
    active = lab.policies.pack
    packs = {ACTIVE: active, **_read_policies(lab, active, policies)}
    asked = _read_questions(lab, questions)
    depth = max(cut for _, cut in measured)
    now = lab.io.store.clock()
    evidence = [frozenset(row["wants"]) for row in asked]
    rankings = {
        name: [_rank(lab, pack, row, depth, now) for row in asked] for name, pack in packs.items()
    }
    projects = {row.get("project") for row in asked}
    by_project = len(projects) > 1
    clusters = [
        (row.get("project") or "") if by_project else str(number)
        for number, row in enumerate(asked)
    ]
    ranks = {name: _best_ranks(rankings[name], evidence) for name in packs}
    cut = next((cut for kind, cut in measured if kind == "recall_any"), measured[0][1])
    rows = []
    for name in packs:
        strings = [[str(id) for id in ranking] for ranking in rankings[name]]
        wanted = [{str(id) for id in ids} for ids in evidence]
        judged = judge(strings, wanted, depth=depth)
        rows.append((name, [measure(judged, f"{kind}@{at}") for kind, at in measured]))
    before = _is_within(ranks[ACTIVE], cut)
    frame = [
        _score_row(name, metric, own, base, clusters, before, _is_within(ranks[name], cut))
        for name, values in rows
        for metric, own, base in zip(names, values, rows[0][1], strict=True)
    ]
    questions_seen = questions_frame(
        [{"question": number, **row} for number, row in enumerate(asked, 1)]
    )
    return Scores(
        pl.DataFrame(frame, schema=_SCHEMA),
        questions_seen.select("id", "query", "wants", "project", "at", "category").with_columns(
            pl.Series(name, values, dtype=pl.Int64) for name, values in ranks.items()
        ),
        cut,
        "project" if by_project else "question",
        active.name,
    )


_SCHEMA: dict[str, Any] = {
    "policy": pl.String,
    "metric": pl.String,
    **dict.fromkeys(
        ("value", "low", "high", "difference", "difference_low", "difference_high"), pl.Float64
    ),
    "gained": pl.Int64,
    "lost": pl.Int64,
}


def _score_row(
    name: str,
    metric: str,
    values: Floats,
    base: Floats,
    clusters: list[str],
    before: NDArray[np.bool_],
    after: NDArray[np.bool_],
) -> dict[str, Any]:
    """Return the row of a policy and a metric, with the paired difference to the active pack."""
    interval = cluster_interval(values, clusters)
    row: dict[str, Any] = {"policy": name, "metric": metric, "value": float(values.mean())}
    if interval is not None:
        row |= {"low": max(interval.low, 0.0), "high": min(interval.high, 1.0)}
    if name == ACTIVE:
        return row
    row |= {
        "difference": float((values - base).mean()),
        "gained": int((after & ~before).sum()),
        "lost": int((before & ~after).sum()),
    }
    paired = cluster_interval(values - base, clusters)
    if paired is not None:
        row |= {"difference_low": paired.low, "difference_high": paired.high}
    return row


def _parse_metric(name: str) -> tuple[str, int]:
    """Return the metric of ``memlab.science.evaluation`` and the number of ranks."""
    match = _METRIC.match(name) if isinstance(name, str) else None
    kind = match and _ALIASES.get(match[1], match[1])
    cut = int(match[2] or _CUT) if match else 0
    if kind not in METRICS or cut > _MOST:
        known = [f"{metric}@10" for metric in (*_ALIASES, *METRICS)]
        raise UnknownName("metric", name, known)
    return kind, cut


def _rank(lab: Any, pack: Pack, row: Mapping[str, Any], depth: int, now: int) -> list[int]:
    """Return the ids that a pack shows for a question, best first, without logging."""
    hits = lab.recall(
        row["query"],
        limit=depth,
        project=row.get("project"),
        viewer=row.get("viewer"),
        at=from_micros(row.get("at") or now),
        pack=pack,
        log=False,
    )
    return [hit.id for hit in hits]


def _best_ranks(
    rankings: Sequence[Sequence[int]], evidence: Sequence[frozenset[int]]
) -> list[int | None]:
    """Return the best rank of a wanted memory for each question."""
    return [
        next((rank for rank, id in enumerate(ranking, 1) if id in wanted), None)
        for ranking, wanted in zip(rankings, evidence, strict=True)
    ]


def _is_within(ranks: Sequence[int | None], cut: int) -> NDArray[np.bool_]:
    """Return whether each rank is within the first ``cut``."""
    return np.array([rank is not None and rank <= cut for rank in ranks], dtype=np.bool_)


def _read_questions(lab: Any, questions: Any) -> list[dict[str, Any]]:
    """Return the questions to ask, with the ids that they want."""
    asked = read_asked(lab.questions, questions)
    if not asked:
        raise InputError(
            'There is no accepted question. Add some with lab.questions.add("...", wants=[...]), or accept proposed '
            "ones: lab.questions.propose()."
        )
    return asked


def _read_policies(lab: Any, active: Pack, policies: Any) -> dict[str, Pack]:
    """Return the pack of each policy by its unique name."""
    if isinstance(policies, Mapping):
        packs = {str(name): _read_policy(lab, active, spec)[1] for name, spec in policies.items()}
    else:
        many = isinstance(policies, list | tuple) and policy_form_text(policies) is None
        packs = {}
        for spec in policies if many else [policies]:
            name, pack = _read_policy(lab, active, spec)
            if packs.get(name, pack) is not pack:
                name = f"{name} [{pack.hash[:8]}]"
            if name in packs:
                raise InputError(f"The policy {name} is given twice. Pass each policy once.")
            packs[name] = pack
    taken = {ACTIVE, "id", "query", "wants", "project", "at", "category"} & packs.keys()
    if taken:
        raise InputError(f'"{min(taken)}" is a name of these scores. Give the policy another name.')
    return packs


def _read_policy(lab: Any, active: Pack, spec: Any) -> tuple[str, Pack]:
    """Return the name of a policy, and the active pack with it or the pack that it names."""
    if isinstance(spec, Pack):
        return spec.name, spec
    if isinstance(spec, Policy):
        slot = spec.signature.slot
        return _with_policy(lab, active, slot, spec)
    if isinstance(spec, Path) or (isinstance(spec, str) and spec.strip().endswith(".hy")):
        path = Path(spec).expanduser()
        try:
            text = read_source(path)
        except (OSError, UnicodeDecodeError):
            text = "(pack"  # load_pack names the fault
        if _PACK.match(text):
            pack = load_pack(path)
            return pack.name, pack
        return path.stem, _with_policy(lab, active, slot_of(text) or _SLOT, text)[1]
    text = spec.strip() if isinstance(spec, str) else policy_form_text(spec)
    if text is None:
        raise InputError(
            "A policy is a pack, a path, a text, a Hy form or the name of a feature, not "
            f"{describe_value(spec)}."
        )
    if text.startswith(("(", ";")):
        if _PACK.match(text):
            pack = load_pack(text)
            return pack.name, pack
        return _with_policy(lab, active, slot_of(text) or _SLOT, spec)
    if text in pack_names():
        return text, load_pack(text)
    feature = text.replace("_", "-")
    if feature in FEATURES:
        return feature, _with_policy(lab, active, _SLOT, f"(fn [{feature}] {feature})")[1]
    raise UnknownName("pack or feature", text, (*pack_names(), *FEATURES))


_SLOT = "recall-score"
"""The slot of a policy that names none."""


def _with_policy(lab: Any, active: Pack, slot: str, source: Any) -> tuple[str, Pack]:
    """Return a name for a policy, and the active pack with it in its slot."""
    policy = lab.policies.check(slot, source)
    return f"{slot} [{policy.hash[:8]}]", active.with_policy(slot, policy)

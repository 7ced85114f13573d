"""The ranks of queries under policies of one slot, without logging, for the studio and the timeline.

Each query runs once, and its pool is kept. A recall-score that reads only features of kept pools is
evaluated on them, in one pass over all queries. Policies of other slots, and policies that read other
features, run the query again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.errors import PolicyError
from memlab.kernel.base.arrays import Floats, Ints
from memlab.kernel.language import Policy, compile_policy, slot_of
from memlab.kernel.policies import Pack, get_slot, inherited_helpers, same_candidates
from memlab.kernel.recall import Hits, diversifies, rank_by_score
from memlab.subjects.lab import Lab
from memlab.subjects.lens import literals
from memlab.subjects.lens.packing import draft_pack, param_places, rebased_text, text_of
from memlab.subjects.questions.scoring import recall_question
from memlab.ui.widgets._widget import MOST_TEXT

__all__ = [
    "DECIDES_RANKS",
    "HEAD",
    "NOTHING",
    "TOP",
    "Draft",
    "Ranks",
    "Recalls",
    "draft_pack",
    "latest_questions",
    "moved",
    "read_draft",
    "rebased_text",
    "shown_moves",
    "summed_moves",
    "text_of",
]

DECIDES_RANKS = (
    "eligible",
    "seed-score",
    "spread",
    "cut",
    "recall-score",
    "select",
    "half-life",
    "retention",
)
"""The slots that affect ranks. ``explore`` adds an exploration item and reorders nothing."""
HEAD = 8
"""Ranks that are drawn: as many as fit next to the editor."""
TOP = 5
"""Ranks whose changes are counted, as in the scores of questions."""
_CACHED = 8
"""Rankings that are cached: those of the last few drafts."""
_POOLS = 3
"""Packs whose pools are kept: the active one, and drafts that read other features."""
_SCHEMA = {"question": pl.Int32, "memory_id": pl.Int64, "score": pl.Float64, "rank": pl.Int64}
"""The columns of a ranking."""
NOTHING = pl.DataFrame(schema=_SCHEMA)
"""The ranking of no query."""


class Result(NamedTuple):
    """The candidates of a recall with their scores and ranks, and the ids of its results."""

    ids: Ints
    scores: Floats
    ranks: Ints
    results: list[int]


class _Pools(NamedTuple):
    """The pools of queries under a pack: the features, and the ids of each query."""

    pack: Pack
    queries: tuple[Any, ...]
    frame: pl.DataFrame
    ids: list[Ints]

    def fit(self, pack: Pack, queries: tuple[Any, ...]) -> bool:
        """Return whether the stored pools suffice to rank the queries under another pack."""
        # A pack that estimates ``known`` may show fewer results, and a diverse order reads vectors.
        return (
            self.queries == queries
            and not pack.tells_known
            and not diversifies(pack)
            and set(pack.policies["recall-score"].inputs) <= set(self.frame.columns)
            and same_candidates(self.pack, pack)
        )

    def rank(self, pack: Pack) -> Iterator[Result]:
        """Yield the result of each query under a pack that can rank the stored pools."""
        values = pack.policies["recall-score"].columns(self.frame, by="question")
        scores = values.cast(pl.Float64).to_numpy()
        scores = np.where(np.isnan(scores), -np.inf, scores)
        start = 0
        for ids in self.ids:
            own = scores[start : start + len(ids)]
            start += len(ids)
            ranking = rank_by_score(own)
            ranks = np.empty(len(ids), dtype=np.int64)
            ranks[ranking.order] = np.arange(1, len(ids) + 1)
            yield Result(ids, own, ranks, ids[ranking.order[: ranking.showable]].tolist())


class Recalls:
    """Recalls of the same queries under changing packs, kept until the lab or its active pack changes.

    A query is a mapping with ``query``, and perhaps ``project``, ``viewer`` and ``at``, such as a
    labelled question. Results are at most ``depth`` long. Without ``depth``, all candidates count.
    """

    def __init__(self, lab: Lab, depth: int | None = None) -> None:
        self.lab, self._depth = lab, depth
        self._seen: tuple[str, int] | None = None

    def follow(self) -> bool:
        """Drop cached rankings and return True if the lab or its active pack has changed."""
        store = self.lab.io.store
        state = self.lab.policies.pack.hash, store.state.seq
        if changed := state != self._seen:
            self._seen, self._now = state, store.clock()
            self._pools: list[_Pools] = []
            self._results: dict[Any, list[Result]] = {}
        return changed

    def hits(self, pack: Pack, query: Mapping[str, Any]) -> Hits:
        """Return the results of a query under a pack."""
        return recall_question(self.lab, pack, query, self._depth or pack.count("pool"), self._now)

    def results(self, pack: Pack, queries: Sequence[Mapping[str, Any]]) -> list[Result]:
        """Return the result of each query under a pack."""
        names = ("query", "project", "viewer", "at")
        key = tuple(tuple(query.get(name) for name in names) for query in queries)
        # The pack before a change is used each time, so that it stays while drafts are dropped.
        results = self._results.pop((pack.hash, key), None)
        if results is None:
            pools = next((own for own in self._pools if own.fit(pack, key)), None)
            results = [*pools.rank(pack)] if pools else self._recall(pack, queries, key)
        self._results[pack.hash, key] = results
        if len(self._results) > _CACHED:
            del self._results[next(iter(self._results))]
        return results

    def _recall(
        self, pack: Pack, queries: Sequence[Mapping[str, Any]], key: tuple[Any, ...]
    ) -> list[Result]:
        """Recall the queries under a pack, and store their candidate pools."""
        every = [self.hits(pack, query) for query in queries]
        slates = [hits.slate for hits in every]
        if slates:
            frame = pl.concat(
                slate.frame.with_columns(question=pl.lit(index, pl.Int32))
                for index, slate in enumerate(slates)
            )
            own = _Pools(pack, key, frame, [slate.ids for slate in slates])
            self._pools = [own, *self._pools][:_POOLS]
        return [
            Result(slate.ids, slate.scores, slate.ranking, list(hits.ids))
            for hits, slate in zip(every, slates, strict=True)
        ]


class Ranks:
    """The ranks of queries in a lab, cached until the lab or its active pack changes.

    ``project`` and ``viewer`` apply to each recall. ``labelled`` returns the labelled question with a
    query, or {}: its own time and project apply, so that ranks and scores show the same recall.
    """

    def __init__(
        self,
        lab: Lab,
        *,
        project: str | None = None,
        viewer: str | None = None,
        labelled: Callable[[str], Mapping[str, Any]] = lambda _: {},
    ) -> None:
        self._recalls, self._labelled = Recalls(lab), labelled
        self._scope = {"project": project, "viewer": viewer}
        self._texts: dict[int, tuple[str, str]] = {}

    def under(self, slot: str, policy: Policy, questions: Sequence[str]) -> pl.DataFrame:
        """Rank every candidate of the queries under a policy.

        The rank is null if the score is not finite.
        """
        self._follow()
        pack = self._recalls.lab.policies.pack
        # Other slots decide no rank, so that no query runs again.
        if slot in DECIDES_RANKS and policy != pack.policies[slot]:
            pack = pack.with_policy(slot, policy)
        results = self._recalls.results(pack, [self._read(question) for question in questions])
        if not results:
            return NOTHING
        frame = pl.DataFrame(
            {
                "question": np.repeat(np.arange(len(results)), [len(own.ids) for own in results]),
                "memory_id": np.concatenate([own.ids for own in results]),
                "score": np.concatenate([own.scores for own in results]),
                "rank": np.concatenate([own.ranks for own in results]),
            },
            schema=_SCHEMA,
        )
        return frame.with_columns(rank=pl.when(pl.col("score").is_finite()).then("rank"))

    def hits(self, question: str, pack: Pack) -> Hits:
        """Return all candidates of a query under a pack, at the time of the cached recalls."""
        self._follow()
        return self._recalls.hits(pack, self._read(question))

    def text(self, memory: int) -> tuple[str, str]:
        """Return a memory's text and kind."""
        if memory not in self._texts:
            record = self._recalls.lab[memory]
            self._texts[memory] = record.text[:MOST_TEXT], record.kind
        return self._texts[memory]

    def wants(self, question: str) -> Collection[int]:
        """Return the memories wanted by the labelled question with this query."""
        own: Collection[int] = self._labelled(question).get("wants", ())
        return own

    def _read(self, question: str) -> dict[str, Any]:
        """Return the labelled question with this query, or the query with the widget's scope."""
        return {"query": question, **self._scope, **self._labelled(question)}

    def _follow(self) -> None:
        if self._recalls.follow():
            self._texts.clear()


def moved(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Join two rankings, with the rank and score of each candidate before and after."""
    both = before.join(
        after, on=["question", "memory_id"], how="full", coalesce=True, suffix="_after"
    )
    both = both.rename({"rank": "rank_before", "score": "score_before"})
    columns = ("question", "memory_id", "rank_before", "rank_after", "score_before", "score_after")
    return both.select(columns).sort(
        "question", "rank_after", "rank_before", "memory_id", nulls_last=True
    )


def summed_moves(moves: pl.DataFrame, questions: Sequence[str]) -> list[dict[str, Any]]:
    """Count each query's reordered ``pairs``, all its pairs (``of``) and its ``new`` results."""
    queries = moves["question"].to_numpy()
    # A null rank becomes NaN, which no comparison accepts.
    before, after = (
        moves[name].cast(pl.Float64).to_numpy() for name in ("rank_before", "rank_after")
    )
    entered = (after <= TOP) & ~(before <= TOP)
    sums = []
    for number, question in enumerate(questions):
        own = queries == number
        both = own & ~np.isnan(before) & ~np.isnan(after)
        ranked = after[both][np.argsort(before[both], kind="stable")]
        pairs = int(np.triu(ranked[:, None] > ranked[None, :], 1).sum())
        of, new = len(ranked) * (len(ranked) - 1) // 2, int(entered[own].sum())
        sums.append({"question": question, "pairs": pairs, "of": of, "new": new})
    return sums


def shown_moves(moves: pl.DataFrame, ranks: Ranks, questions: Sequence[str]) -> pl.DataFrame:
    """Return the rank changes in the top of either ranking, with text, kind and ``wanted``.

    ``wanted`` is true if the labelled question with the query wants the memory.
    """
    head = moves.filter((pl.col("rank_before") <= HEAD) | (pl.col("rank_after") <= HEAD))
    texts = [ranks.text(memory) for memory in head["memory_id"].to_list()]
    words = {"text": [text for text, _ in texts], "kind": [kind for _, kind in texts]}
    wants = [ranks.wants(question) for question in questions]
    pairs = head.select("question", "memory_id").rows()
    return head.with_columns(
        pl.col("memory_id", "rank_before", "rank_after").cast(pl.Int32),
        **{name: pl.Series(values, dtype=pl.String) for name, values in words.items()},
        wanted=pl.Series([memory in wants[at] for at, memory in pairs], dtype=pl.Boolean),
    )


def latest_questions(lab: Lab, limit: int, *, project: str | None = None) -> list[str]:
    """Return the latest distinct queries of the log, newest first."""
    decisions = lab.slates().decisions
    own = decisions if project is None else decisions.filter(pl.col("project") == project)
    queries = own.select("query").tail(20 * limit).collect()["query"].to_list()
    return list(dict.fromkeys(query for query in reversed(queries) if query and query.strip()))[
        :limit
    ]


# -- drafts: policies as texts of an editor ---------------------------------------------------------------------------


class Draft(NamedTuple):
    """The text of a draft compiled to a policy with its sliders, or the error in the text."""

    policy: Policy | None
    problem: dict[str, Any] | None
    sliders: list[dict[str, Any]]
    # The count of numbers in the text that could have a slider.
    numbers: int


def read_draft(source: str, slot: str, pack: Pack) -> Draft:
    """Compile a draft policy for a slot; ``(inherited)`` is the policy of ``pack``."""
    try:
        helpers = inherited_helpers(slot, source, (), lambda: pack)
        policy = compile_policy(source, get_slot(slot).signature, name=slot, helpers=helpers)
        if (other_slot := slot_of(source)) not in ("", slot):
            raise PolicyError(
                f"This policy is for {other_slot}. Choose that slot, or write a policy for {slot}."
            )
    except PolicyError as error:
        span = _error_place(error, source)
        return Draft(None, {"text": error.message, "places": span and _utf16(source, *span)}, [], 0)
    sliders = []
    for name, spans in param_places(source).items():
        # A helper that is never called has no parameters in the policy.
        if (param := policy.params.get(name)) is not None:
            low, high = (
                bound if math.isfinite(bound) else None for bound in (param.low, param.high)
            )
            offsets = [_utf16(source, *span) for span in spans]
            sliders.append(
                {"name": name, "value": param.value, "low": low, "high": high, "places": offsets}
            )
    interpreted = policy.root.op == "interpreted"
    return Draft(
        policy,
        None,
        sliders,
        0 if interpreted else sum(not param.structural for param in literals(policy)),
    )


def _error_place(error: PolicyError, source: str) -> tuple[int, int] | None:
    """Return the source span of an error, cut at the end of its first line, or None if its line is unknown."""
    if error.line is None:
        return None
    lines = source.split("\n")
    before = sum(len(line) + 1 for line in lines[: error.line - 1])
    end = len(lines[error.line - 1]) if error.line <= len(lines) else 0
    start = min((error.column or 1) - 1, end)
    stop = min(error.end_column or end, end)
    return before + start, before + max(stop, start)


def _utf16(source: str, *offsets: int) -> list[int]:
    """Convert text offsets to UTF-16 offsets, which browsers use."""
    if source.isascii():
        return list(offsets)
    return [len(source[:offset].encode("utf-16-le", "surrogatepass")) // 2 for offset in offsets]

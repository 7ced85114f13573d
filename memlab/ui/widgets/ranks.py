"""The ranks of queries under policies of one slot, without logging, for the studio and the timeline.

Each query runs once under the active pack. A recall-score that reads only features of those slates
is evaluated on them again, in one pass over all queries. Policies of other slots, and policies that
read other features, run the query again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.errors import PolicyError
from memlab.kernel.base.clock import from_micros
from memlab.kernel.language import Policy, compile_policy, slot_of
from memlab.kernel.policies import Pack, get_slot, inherited_helpers
from memlab.kernel.recall import Hits, diversifies
from memlab.subjects.lab import Lab
from memlab.subjects.lens import literals
from memlab.subjects.lens.packing import draft_pack, param_places, rebased_text, text_of
from memlab.ui.widgets._widget import MOST_TEXT

__all__ = [
    "DECIDES_RANKS",
    "HEAD",
    "NOTHING",
    "TOP",
    "Draft",
    "Ranks",
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
_SCHEMA = {"question": pl.Int32, "memory_id": pl.Int64, "score": pl.Float64, "rank": pl.Int64}
"""The columns of a ranking."""
NOTHING = pl.DataFrame(schema=_SCHEMA)
"""The ranking of no query."""


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
        self._lab, self._project, self._viewer = lab, project, viewer
        self._labelled, self._now = labelled, 0
        self._seen: tuple[str, int] | None = None
        self._hits: dict[str, Hits] = {}
        self._pools: tuple[tuple[str, ...], pl.DataFrame] | None = None
        self._known: dict[tuple[Any, ...], pl.DataFrame] = {}
        self._texts: dict[int, tuple[str, str]] = {}

    def under(self, slot: str, policy: Policy, questions: Sequence[str]) -> pl.DataFrame:
        """Rank every candidate of the queries under a policy.

        The rank is null if the score is not finite.
        """
        pack = self._pack()
        key = slot, policy.hash, tuple(questions)
        if key not in self._known:
            if len(self._known) >= _CACHED:
                del self._known[next(iter(self._known))]
            self._known[key] = self._ranked(pack, slot, policy, tuple(questions))
        return self._known[key]

    def hits(self, question: str, pack: Pack) -> Hits:
        """Return all candidates of a query under a pack, at the instant of the cached recalls."""
        own = self._labelled(question)
        at = own.get("at") or self._now
        hits = self._lab.recall(
            question,
            limit=pack.count("pool"),
            pack=pack,
            at=from_micros(at) if at else None,
            project=own.get("project") or self._project,
            viewer=own.get("viewer") or self._viewer,
            log=False,
        )
        if at == self._now:
            self._now = hits.slate.at
        return hits

    def text(self, memory: int) -> tuple[str, str]:
        """Return the text and the kind of a memory."""
        if memory not in self._texts:
            record = self._lab[memory]
            self._texts[memory] = record.text[:MOST_TEXT], record.kind
        return self._texts[memory]

    def _pack(self) -> Pack:
        """Return the active pack; clear the caches if the pack or the lab has changed."""
        pack = self._lab.policies.pack
        now = pack.hash, self._lab.io.store.state.seq
        if now != self._seen:
            self._seen, self._pools, self._now = now, None, 0
            for cache in (self._hits, self._known, self._texts):
                cache.clear()
        return pack

    def _ranked(
        self, pack: Pack, slot: str, policy: Policy, questions: tuple[str, ...]
    ) -> pl.DataFrame:
        if not questions:
            return NOTHING
        # Scoring the cached candidates again is fast enough for each keystroke; a recall of each query is not.
        pools = self._read_pools(pack, questions)
        if (
            slot == "recall-score"
            and not diversifies(pack)
            and set(policy.inputs) <= set(pools.columns)
        ):
            return _by_score(pools, policy.columns(pools, by="question"))
        if slot not in DECIDES_RANKS or policy == pack.policies[slot]:
            results = [self._hits[question] for question in questions]
        else:
            other = pack.with_policy(slot, policy)
            results = [self.hits(question, other) for question in questions]
        slates = [hits.slate for hits in results]
        counts = [len(slate) for slate in slates]
        frame = pl.DataFrame(
            {
                "question": np.repeat(np.arange(len(slates), dtype=np.int32), counts),
                "memory_id": np.concatenate([slate.ids for slate in slates]),
                "score": np.concatenate([slate.scores for slate in slates]),
                "rank": np.concatenate([slate.ranking for slate in slates]),
            },
            schema=_SCHEMA,
        )
        return frame.with_columns(rank=pl.when(pl.col("score").is_finite()).then("rank"))

    def _read_pools(self, pack: Pack, questions: tuple[str, ...]) -> pl.DataFrame:
        if self._pools is None or self._pools[0] != questions:
            for question in questions:
                if question not in self._hits:
                    self._hits[question] = self.hits(question, pack)
            frames = [
                self._hits[question].slate.frame.with_columns(question=pl.lit(index, pl.Int32))
                for index, question in enumerate(questions)
            ]
            self._pools = questions, pl.concat(frames)
        return self._pools[1]


def _by_score(pools: pl.DataFrame, values: pl.Series) -> pl.DataFrame:
    """Rank by descending score, leaving null and infinite scores unranked."""
    rows = pools.select("question", "memory_id").with_columns(score=values.cast(pl.Float64))
    score = np.nan_to_num(rows["score"].to_numpy(), nan=-np.inf)
    question, memory = rows["question"].to_numpy(), rows["memory_id"].to_numpy()
    order = np.lexsort((memory, -score, question))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.searchsorted(question[order], question[order]) + 1
    return rows.with_columns(rank=pl.Series(rank).set(pl.Series(~np.isfinite(score)), None))


def moved(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Join two rankings: the rank and score of each candidate before and after."""
    both = before.join(
        after, on=["question", "memory_id"], how="full", coalesce=True, suffix="_after"
    )
    both = both.rename({"rank": "rank_before", "score": "score_before"})
    columns = ("question", "memory_id", "rank_before", "rank_after", "score_before", "score_after")
    return both.select(columns).sort(
        "question", "rank_after", "rank_before", "memory_id", nulls_last=True
    )


def summed_moves(moves: pl.DataFrame, questions: Sequence[str]) -> list[dict[str, Any]]:
    """Count for each query the reordered ``pairs``, all pairs (``of``), and the ``new`` top-5 results."""
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


def shown_moves(moves: pl.DataFrame, ranks: Ranks) -> pl.DataFrame:
    """Return the moves to draw, which are in the top ranks of either ranking, with text and kind."""
    head = moves.filter((pl.col("rank_before") <= HEAD) | (pl.col("rank_after") <= HEAD))
    texts = [ranks.text(memory) for memory in head["memory_id"].to_list()]
    words = {"text": [text for text, _ in texts], "kind": [kind for _, kind in texts]}
    return head.with_columns(
        pl.col("memory_id", "rank_before", "rank_after").cast(pl.Int32),
        **{name: pl.Series(values, dtype=pl.String) for name, values in words.items()},
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
    """The text of a draft compiled to a policy with its sliders, or the error in it."""

    policy: Policy | None
    problem: dict[str, Any] | None
    sliders: list[dict[str, Any]]
    # The count of numbers in the text that could have a slider.
    numbers: int


def read_draft(source: str, slot: str, pack: Pack) -> Draft:
    """Parse and check the text of a draft policy for a slot; ``(inherited)`` is the policy of ``pack``."""
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
    """Return the source span of an error, limited to its first line."""
    if error.line is None:
        return None
    lines = source.split("\n")
    before = sum(len(line) + 1 for line in lines[: error.line - 1])
    end = len(lines[error.line - 1]) if error.line <= len(lines) else 0
    start = min((error.column or 1) - 1, end)
    stop = min(error.end_column or end, end)
    return before + start, before + max(stop, start)


def _utf16(source: str, *offsets: int) -> list[int]:
    """Convert text offsets to UTF-16 offsets, as used by browsers."""
    if source.isascii():
        return list(offsets)
    return [len(source[:offset].encode("utf-16-le", "surrogatepass")) // 2 for offset in offsets]

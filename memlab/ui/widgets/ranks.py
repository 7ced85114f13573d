"""How questions are ranked under policies of one slot, without a trace: what the studio and the timeline show.

Each question is asked once of the live pack. A recall-score whose features stand in those slates is scored on them
again, in one pass over all questions; where a policy decides which candidates there are, or reads what no slate holds,
the lab is asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.errors import PolicyError
from memlab.kernel.base.clock import from_micros
from memlab.kernel.language import Form, Policy, Text, compile_policy, read_forms, slot_of
from memlab.kernel.policies import Pack, get_slot, pack_from_sources
from memlab.kernel.recall import Hits, diversifies
from memlab.subjects.lab import Lab
from memlab.subjects.lens import literals

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
"""The slots by which a recall ranks. ``explore`` adds a probe, and reorders nothing."""
HEAD = 8
"""Ranks that are drawn."""
TOP = 5
"""Ranks whose changes are counted."""
_KEPT = 8
_SCHEMA = {"question": pl.Int32, "memory_id": pl.Int64, "score": pl.Float64, "rank": pl.Int64}
NOTHING = pl.DataFrame(schema=_SCHEMA)
"""The ranks of no question."""


class Ranks:
    """The ranks of a lab's questions; what was asked is kept until the lab, or its live pack, is another.

    ``project`` and ``viewer`` are those of each recall.
    """

    def __init__(self, lab: Lab, *, project: str | None = None, viewer: str | None = None) -> None:
        self._lab, self._project, self._viewer = lab, project, viewer
        self._seen: tuple[str, int] | None = None
        self._hits: dict[str, Hits] = {}
        self._pools: tuple[tuple[str, ...], pl.DataFrame] | None = None
        self._known: dict[tuple[Any, ...], pl.DataFrame] = {}
        self._texts: dict[int, tuple[str, str]] = {}

    def under(self, slot: str, policy: Policy, questions: Sequence[str]) -> pl.DataFrame:
        """``question`` (its place), ``memory_id``, ``score``, ``rank`` (null: never shown) of every candidate."""
        pack = self._pack()
        key = slot, policy.hash, tuple(questions)
        if key not in self._known:
            if len(self._known) >= _KEPT:
                del self._known[next(iter(self._known))]
            self._known[key] = self._ranked(pack, slot, policy, tuple(questions))
        return self._known[key]

    def hits(self, question: str, pack: Pack) -> Hits:
        """All candidates of a question under a pack, as of the instant at which the others were asked."""
        at = next((from_micros(one.slate.at) for one in self._hits.values()), None)
        return self._lab.recall(
            question,
            limit=pack.count("pool"),
            pack=pack,
            at=at,
            project=self._project,
            viewer=self._viewer,
            log=False,
        )

    def text(self, memory: int) -> tuple[str, str]:
        """Text and kind of a memory."""
        if memory not in self._texts:
            found = self._lab[memory]
            self._texts[memory] = found.text, found.kind
        return self._texts[memory]

    def _pack(self) -> Pack:
        """The live pack; what was asked of another one, or before something happened, is dropped."""
        pack = self._lab.policies.pack
        now = pack.hash, self._lab.io.store.state.seq
        if now != self._seen:
            self._seen, self._pools = now, None
            for kept in (self._hits, self._known, self._texts):
                kept.clear()
        return pack

    def _ranked(
        self, pack: Pack, slot: str, policy: Policy, questions: tuple[str, ...]
    ) -> pl.DataFrame:
        if not questions:
            return NOTHING
        pools = self._asked(pack, questions)
        if (
            slot == "recall-score"
            and not diversifies(pack)
            and set(policy.inputs) <= set(pools.columns)
        ):
            return _by_score(pools, policy.columns(pools, by="question"))
        if slot not in DECIDES_RANKS or policy == pack.policies[slot]:
            found = [self._hits[question] for question in questions]
        else:
            other = pack.with_policy(slot, policy)
            found = [self.hits(question, other) for question in questions]
        slates = [hits.slate for hits in found]
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

    def _asked(self, pack: Pack, questions: tuple[str, ...]) -> pl.DataFrame:
        if self._pools is None or self._pools[0] != questions:
            for question in questions:
                if question not in self._hits:
                    self._hits[question] = self.hits(question, pack)
            frames = [
                self._hits[question].slate.frame.with_columns(question=pl.lit(place, pl.Int32))
                for place, question in enumerate(questions)
            ]
            self._pools = questions, pl.concat(frames)
        return self._pools[1]


def _by_score(pools: pl.DataFrame, values: pl.Series) -> pl.DataFrame:
    """Ranks by falling score, ties by id; null and what is not finite last, and without a rank."""
    found = pools.select("question", "memory_id").with_columns(score=values.cast(pl.Float64))
    score = np.nan_to_num(found["score"].to_numpy(), nan=-np.inf)
    question, memory = found["question"].to_numpy(), found["memory_id"].to_numpy()
    order = np.lexsort((memory, -score, question))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.searchsorted(question[order], question[order]) + 1
    return found.with_columns(rank=pl.Series(rank).set(pl.Series(~np.isfinite(score)), None))


def moved(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Each candidate under both: ``rank_before``, ``rank_after``, ``score_before``, ``score_after``."""
    both = before.join(
        after, on=["question", "memory_id"], how="full", coalesce=True, suffix="_after"
    )
    both = both.rename({"rank": "rank_before", "score": "score_before"})
    columns = ("question", "memory_id", "rank_before", "rank_after", "score_before", "score_after")
    return both.select(columns).sort(
        "question", "rank_after", "rank_before", "memory_id", nulls_last=True
    )


def summed_moves(moves: pl.DataFrame, questions: Sequence[str]) -> list[dict[str, Any]]:
    """For each question the ``pairs`` that are reordered, ``of`` how many, and how many of the top five are ``new``."""
    place = moves["question"].to_numpy()
    # null is NaN
    before, after = (
        moves[name].cast(pl.Float64).to_numpy() for name in ("rank_before", "rank_after")
    )
    entered = (after <= TOP) & ~(before <= TOP)
    sums = []
    for number, question in enumerate(questions):
        own = place == number
        both = own & ~np.isnan(before) & ~np.isnan(after)
        ranked = after[both][np.argsort(before[both], kind="stable")]
        pairs = int(np.triu(ranked[:, None] > ranked[None, :], 1).sum())
        of, new = len(ranked) * (len(ranked) - 1) // 2, int(entered[own].sum())
        sums.append({"question": question, "pairs": pairs, "of": of, "new": new})
    return sums


def shown_moves(moves: pl.DataFrame, ranks: Ranks) -> pl.DataFrame:
    """What is drawn of the moves: whatever is in either head, with text and kind."""
    head = moves.filter((pl.col("rank_before") <= HEAD) | (pl.col("rank_after") <= HEAD))
    texts = [ranks.text(memory) for memory in head["memory_id"].to_list()]
    words = {"text": [text for text, _ in texts], "kind": [kind for _, kind in texts]}
    return head.with_columns(
        pl.col("memory_id", "rank_before", "rank_after").cast(pl.Int32),
        **{name: pl.Series(values, dtype=pl.String) for name, values in words.items()},
    )


def latest_questions(lab: Lab, most: int, *, project: str | None = None) -> list[str]:
    """The questions that a lab was asked last, of one project or of all, each once, the newest first."""
    decisions = lab.slates().decisions
    own = decisions if project is None else decisions.filter(pl.col("project") == project)
    asked = own.select("query").tail(20 * most).collect()["query"].to_list()
    return list(dict.fromkeys(query for query in reversed(asked) if query and query.strip()))[:most]


# -- drafts: policies as texts of an editor ---------------------------------------------------------------------------


class Draft(NamedTuple):
    """A text as a policy with its ``sliders``, or else what is wrong with it: ``text`` and ``places``."""

    policy: Policy | None
    problem: dict[str, Any] | None
    sliders: list[dict[str, Any]]
    numbers: int
    """How many numbers of the text could have a slider and have none."""


def read_draft(source: str, slot: str) -> Draft:
    """A text checked for a slot. Places are offsets as a browser counts them: in UTF-16."""
    try:
        policy = compile_policy(source, get_slot(slot).signature, name=slot)
        if (named := slot_of(source)) not in ("", slot):
            raise PolicyError(f"This is a policy of {named}, and here it is for {slot}.")
    except PolicyError as error:
        place = _error_place(error, source)
        return Draft(
            None, {"text": error.message, "places": place and _utf16(source, *place)}, [], 0
        )
    sliders = []
    for name, spans in _param_places(source).items():
        # it is not where the helper that holds it is never called
        if (one := policy.params.get(name)) is not None:
            low, high = (bound if math.isfinite(bound) else None for bound in (one.low, one.high))
            places = [_utf16(source, *span) for span in spans]
            sliders.append(
                {"name": name, "value": one.value, "low": low, "high": high, "places": places}
            )
    interpreted = policy.root.op == "interpreted"
    return Draft(
        policy,
        None,
        sliders,
        0 if interpreted else sum(not one.structural for one in literals(policy)),
    )


def text_of(policy: Policy) -> str:
    """The text that compiles to the policy by itself: helpers that it calls in front, parameters at their values."""
    helpers = {_name(helper): helper for helper in policy.helpers}
    used: dict[str, str] = {}
    waiting = [policy.source]
    while waiting:
        names = {form.text for form in _walk(waiting.pop()) if form.kind == "symbol"}
        for name in sorted((names & helpers.keys()) - used.keys()):
            used[name] = helpers[name]
            waiting.append(helpers[name])
    parts = [helpers[name] for name in helpers if name in used]
    text = "\n\n".join([*parts, policy.source]).replace("\r\n", "\n").replace("\r", "\n").strip()
    given = [
        (span, _written(policy.params[name].value))
        for name, spans in _param_places(text).items()
        for span in spans
        if name in policy.params
    ]
    for (start, stop), value in sorted(given, reverse=True):
        if float(text[start:stop]) != float(value):
            text = text[:start] + value + text[stop:]
    return text


def _param_places(source: str) -> dict[str, list[tuple[int, int]]]:
    """Where the number of each ``(param :name number ...)`` stands in a text, in its order."""
    places: dict[str, list[tuple[int, int]]] = {}
    for form in _walk(source):
        if form.head == "param" and len(form.items) > 2:
            places.setdefault(form.items[1].text, []).append(
                (form.items[2].start, form.items[2].stop)
            )
    return dict(sorted(places.items(), key=lambda item: min(item[1])))


def _error_place(error: PolicyError, source: str) -> tuple[int, int] | None:
    """The stretch of the text that an error is about; to the end of its line where the form goes on below."""
    if error.line is None:
        return None
    lines = source.split("\n")
    before = sum(len(line) + 1 for line in lines[: error.line - 1])
    end = len(lines[error.line - 1]) if error.line <= len(lines) else 0
    start = min((error.column or 1) - 1, end)
    stop = min(error.end_column or end, end)
    return before + start, before + max(stop, start)


def draft_pack(pack: Pack, slot: str, policy: Policy, name: str) -> Pack:
    """``pack`` with the policy in a slot, as texts of its own: what a lab can log and name."""
    read = pack_from_sources(pack.sources)
    changed = {one: own for one, own in pack.policies.items() if own != read.policies[one]} | {
        slot: policy
    }
    doc = f"{pack.name} with another {slot}."
    layers = [_layer(name, doc, one, own) for one, own in changed.items()]
    # above a recall-score of its own a pack inherits nothing of what is known
    if "recall-score" in changed:
        floor = "".join(
            f"(setting {one} {_written(pack.number(one))})\n"
            for one in ("known-floor", "unknown-limit")
        )
        layers.insert(
            0, _layer(name, doc, "known", changed.get("known", pack.policies["known"])) + floor
        )
    return replace(pack_from_sources((*layers, *pack.sources)), known_for=pack.known_for)


def _layer(name: str, doc: str, slot: str, policy: Policy) -> str:
    text = text_of(policy)
    form = next(form for form in read_forms(Text(text)) if form.head != "defn")
    if form.head != "defpolicy":
        text = f"{text[: form.start]}(defpolicy {slot} {text[form.start : form.stop]}){text[form.stop :]}"
    return f'(pack {name} "{doc}")\n{text}\n'


def _walk(source: str) -> Iterator[Form]:
    waiting = list(read_forms(Text(source)))
    while waiting:
        form = waiting.pop()
        yield form
        waiting += form.items


def _name(helper: str) -> str:
    return read_forms(Text(helper))[0].items[1].text


def _written(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _utf16(source: str, *places: int) -> list[int]:
    """Offsets as a browser counts them."""
    if source.isascii():
        return list(places)
    return [len(source[:place].encode("utf-16-le", "surrogatepass")) // 2 for place in places]

"""Verification: verdicts on recalls, the changes they cause, and gaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.arrays import Ints
from memlab.kernel.base.clock import Micros, When
from memlab.kernel.base.display import Displayed
from memlab.kernel.english import STOP_WORDS, vocabulary, words_of
from memlab.kernel.policies import Pack
from memlab.kernel.privacy import screen
from memlab.kernel.recall import Hit, Hits
from memlab.kernel.schema import RELATIONS, is_open_word, normalise_word
from memlab.kernel.slates import Slate
from memlab.kernel.state import Change, State, build_values
from memlab.kernel.verbs.core import Core, Memories, MemoryLike, listed_memories
from memlab.kernel.verbs.corrections.editing import retire
from memlab.kernel.verbs.registers import SNIPPET, Judged
from memlab.kernel.verbs.reinforcement import (
    NAMEABLE,
    Outcome,
    days_between_uses,
    drop_deleted,
    make_pairs,
    reinforce,
    strengthen_pairs,
)
from memlab.kernel.verbs.results import Memory
from memlab.subjects.reading.tags import tags_of
from memlab.subjects.verifiers import Verdict, Verifier

_MAX_NAMED = 10_000
"""Maximum memories in one list of a verdict: the iterable of a verifier may be infinite."""


@dataclass(frozen=True)
class Verified(Displayed):
    """A logged verdict on a recall.

    Attributes
    ----------
    event
        The number of its event.
    decision
        The number of the recall.
    accepted
        The accepted ids, best first.
    rejected
        The rejected ids.
    edges
        The number of new edges between accepted memories.
    strengthened
        The number of existing edges that became stronger.
    tag
        The tag that was added to accepted memories without it, or None.
    gap
        The number of the gap that was logged because no hit was accepted, or None.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember(["The user prefers tabs", "Deploys go out on Tuesdays"])
    >>> verified = lab.agents.verify(lab.recall("tabs or spaces?"), [1])
    >>> verified.accepted, verified.gap
    ((1,), None)
    """

    event: int
    decision: int
    accepted: tuple[int, ...]
    rejected: tuple[int, ...]
    edges: int
    strengthened: int
    tag: str | None
    gap: int | None

    @property
    def frame(self) -> pl.DataFrame:
        """A frame with one row per memory, which tells whether the memory passed.

        The columns are ``memory_id`` and ``passed``.
        """
        ids = [*self.accepted, *self.rejected]
        passed = [True] * len(self.accepted) + [False] * len(self.rejected)
        return pl.DataFrame(
            {"memory_id": ids, "passed": passed},
            schema={"memory_id": pl.Int64, "passed": pl.Boolean},
        )

    def _display(self) -> object:
        parts = [f"{len(self.accepted)} accepted, {len(self.rejected)} rejected"]
        parts += [f"{self.edges} edges added, {self.strengthened} strengthened"] * bool(
            self.edges or self.strengthened
        )
        if self.tag is not None:
            parts.append(f"tag {self.tag} inferred")
        if self.gap is not None:
            parts.append(f"gap {self.gap} logged")
        return f"Recall {self.decision}: {'; '.join(parts)}."


class Verifying:
    """Verification of one lab's recalls."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def verify(
        self,
        hits: Hits,
        accepted: Verifier | Verdict | Memories,
        *,
        rejected: Memories | None = None,
        relations: Mapping[tuple[int, int], str] | None = None,
        at: When | None = None,
    ) -> Verified:
        """Apply a verdict to a recall; see ``lab.agents.verify``."""
        # The verdict is checked before the lab is locked, because a verifier may take seconds.
        decision = hits.decision
        if decision is None:
            raise InputError(
                "This recall was not logged, so it cannot be verified: recall with log=True."
            )
        verdict = get_verdict(hits, accepted)
        accepted_ids = _select_hits(hits, verdict.accepted)
        rejected_memories = verdict.rejected if rejected is None else listed_memories(rejected)
        rejected_ids = (
            [id for id in hits.ids if id not in accepted_ids]
            if rejected_memories is None
            else _select_hits(hits, rejected_memories)
        )
        both = sorted(set(accepted_ids) & set(rejected_ids))
        if both:
            raise InputError(
                f"Memory {both[0]} is both accepted and rejected: name it in only one of the two lists."
            )
        checked_relations = _check_relations(
            {**verdict.relations, **(relations or {})}, accepted_ids, self._core.open_words
        )
        now = self._core.instant(at)
        with self._core.store.writing() as tx:
            state, pack = self._core.store.state, self._core.pack
            if state.projection(Judged).verified(decision):
                raise InputError(
                    f"The recall {decision} was verified already: verify another recall."
                )
            change, tag = _compute_changes(
                state, pack, now, hits.slate, accepted_ids, rejected_ids, checked_relations
            )
            gap = None if accepted_ids else _make_gap(hits.slate)
            body = {
                "decision": decision,
                "used": hits.slate.at,
                "verified": accepted_ids,
                "rejected": rejected_ids,
                **change.body(),
            }
            seq = tx.event("verify", body if gap is None else {**body, "gap": gap}, at=now)
        return Verified(
            seq,
            decision,
            tuple(accepted_ids),
            tuple(rejected_ids),
            edges=len((change.edges or {"source": ()})["source"]),
            strengthened=len((change.strengthen or {"edges": ()})["edges"]),
            tag=tag,
            gap=None if gap is None else seq,
        )


def get_verdict(hits: Hits, accepted: Verifier | Verdict | Memories) -> Verdict:
    """Return a verifier's verdict on the hits, without applying it.

    Raises InputError for other values. Whether the recall showed the named memories is checked
    later.
    """
    answer = accepted(hits) if callable(accepted) else accepted
    if isinstance(answer, Verdict):
        return _check_verdict(
            _materialize(answer.accepted), _materialize(answer.rejected), answer.relations
        )
    return _check_verdict(_materialize(answer))


def _materialize(value: Any) -> Any:
    """Return the items of an iterator as a list, and any other value unchanged.

    Raises InputError for more than ``_MAX_NAMED`` items.
    """
    if isinstance(value, Sized) or not isinstance(value, Iterable):
        return value
    items = list(islice(value, _MAX_NAMED + 1))
    if len(items) > _MAX_NAMED:
        raise InputError(
            f"A verdict names more than {_MAX_NAMED:,} memories: name only hits of the recall."
        )
    return items


@checked
def _check_verdict(
    accepted: Memories,
    rejected: Memories | None = None,
    relations: Mapping[tuple[int, int], str] | None = None,
) -> Verdict:
    """Build a verdict from lists of accepted and rejected memories and their relations."""
    rejected_memories = None if rejected is None else listed_memories(rejected)
    return Verdict(listed_memories(accepted), rejected_memories, relations or {})


def _select_hits(hits: Hits, memories: Iterable[MemoryLike]) -> list[int]:
    """Return the ids of accepted or rejected memories, in the order of the recall's hits.

    Raises UnknownName for a memory that the recall did not show.
    """
    ids = {memory.id if isinstance(memory, Memory | Hit) else memory for memory in memories}
    unknown = next((id for id in ids if id not in hits.ids), None)
    if unknown is not None:
        raise UnknownName("hit of this recall", unknown)
    return [id for id in hits.ids if id in ids]


def _check_relations(
    relations: Mapping[tuple[int, int], str], passed: list[int], open_words: bool
) -> dict[tuple[int, int], str]:
    """Return relations in their stored spelling, or raise an error for invalid relations."""
    relations = {pair: normalise_word(relation, NAMEABLE) for pair, relation in relations.items()}
    for pair, relation in relations.items():
        if relation not in NAMEABLE and not (
            open_words and relation not in RELATIONS and is_open_word(relation)
        ):
            raise UnknownName("relation", relation, NAMEABLE)
        if pair[0] == pair[1]:
            raise InputError(
                f"A relation must join two different accepted memories, such as (3, 7), not {pair!r}."
            )
        outside = next((id for id in pair if id not in passed), None)
        if outside is not None:
            raise UnknownName("accepted memory", outside)
    return dict(relations)


# -- what a verdict changes -------------------------------------------------------------------------------------------


def _compute_changes(
    state: State,
    pack: Pack,
    now: Micros,
    slate: Slate,
    passed: Sequence[int],
    failed: Sequence[int],
    relations: Mapping[tuple[int, int], str],
) -> tuple[Change, str | None]:
    """Return the state change of a verdict, and the tag that the accepted memories get, if any.

    The ``reinforce`` policy gets the accepted and the rejected ids. Accepted memories get edges,
    best pairs first and at most ``edge-pairs``. They get the tag that more than ``tag-share``
    of them have, or a tag that is inferred, if ``infer-common-tag`` is on. Deleted memories do not change.
    """
    accepted = drop_deleted(state, passed)
    relations = {pair: word for pair, word in relations.items() if {*pair} <= {*accepted}}
    change = _reinforce(state, pack, now, slate.at, accepted, "verified")
    change += _reinforce(state, pack, now, slate.at, drop_deleted(state, failed), "rejected")
    change += strengthen_pairs(
        state, pack, make_pairs(accepted, pack.count("edge-pairs")), relations=relations
    )
    change += retire(state, [pair for pair, word in relations.items() if word == "supersedes"], now)
    rows = np.array(accepted, dtype=np.int64) - 1
    tag = find_common_tag(state, pack, rows) or _infer_tag(state, pack, rows, slate.query)
    return change if tag is None else change + _add_tag(state, rows, tag), tag


def _reinforce(
    state: State, pack: Pack, now: Micros, used: Micros, ids: Sequence[int], outcome: Outcome
) -> Change:
    """Return the changes that ``reinforce`` makes to memories that were last used at `used`, after one outcome."""
    rows = np.sort(np.array(ids, dtype=np.int64)) - 1
    return reinforce(
        state,
        pack,
        rows,
        now,
        outcome=outcome,
        elapsed=lambda: days_between_uses(state, rows, now, used=used),
    )


def _make_gap(slate: Slate) -> dict[str, Any] | None:
    """Return the gap record of a query without an accepted memory, or None for a greeting.

    A greeting is a query without candidates and with fewer than two content words.
    """
    content_words = [
        word for word in words_of(slate.query) if word not in vocabulary("negation", "fillers")
    ]
    if not (slate.numbers["hops"] == 0).any() and len(content_words) < 2:
        return None
    return {
        "snippet": screen(slate.query[:SNIPPET]).text,
        "vector": slate.vector,
        "embedder": slate.fingerprints["embedder"],
        "project": slate.project,
        "session": slate.session,
    }


# -- a common tag: memories without the tag that most of them have get it ---------------------------------------------


_MIN_LETTERS = 3
"""Minimum letters of a word that may become a tag."""


def find_common_tag(state: State, pack: Pack, rows: Ints) -> str | None:
    """Return a tag that many memories have, but not all of them; see ``tag-share``.

    Ties are resolved by frequency, then by name. A single memory has no common tag.
    """
    if len(rows) < 2:
        return None
    counts = _count_tags(state, rows)
    minimum = pack.number("tag-share") * len(rows)
    shared = [(-count, tag) for tag, count in counts.items() if max(minimum, 1) < count < len(rows)]
    return min(shared)[1] if shared else None


def _count_tags(state: State, rows: Ints) -> Counter[str]:
    """Return how many memories have each tag."""
    lists = state.lists["tags"]
    return Counter(tag for row in rows.tolist() for tag in dict.fromkeys(lists.value_at(row)))


def _infer_tag(state: State, pack: Pack, rows: Ints, query: str) -> str | None:
    """Infer a common tag for memories that share no tag, from their texts and the query, if the pack infers tags.

    The tag is a topic of all the memories, or else the longest word that they all share with the
    query. Returns None for fewer than two memories, or if two of them have the same tag already.
    """
    # Topics come first: they are words of a list, while a shared word may be accidental.
    if not pack.settings["infer-common-tag"] or len(rows) < 2:
        return None
    counts = _count_tags(state, rows)
    if any(count > 1 for count in counts.values()):
        return None
    texts = [text or "" for text in state.texts.to_list(rows)]
    topics = [tags_of(text, ()) for text in texts]
    common = [topic for topic in topics[0] if all(topic in others for others in topics[1:])]
    if common:
        return common[0]
    word_sets = [frozenset(words_of(text)) for text in texts]
    function_words = STOP_WORDS["english"] | vocabulary("negation", "fillers")
    shared = [
        word
        for word in dict.fromkeys(words_of(query))
        if len(word) >= _MIN_LETTERS
        and word.isalpha()
        and word not in function_words
        and all(word in words for words in word_sets)
    ]
    return max(shared, key=len, default=None)


def _add_tag(state: State, rows: Ints, tag: str) -> Change:
    """Return the change that adds a tag to the rows that lack the tag."""
    lists = state.lists["tags"]
    untagged = [row for row in rows.tolist() if tag not in lists.value_at(row)]
    if not untagged:
        return Change()
    return Change(
        set=(
            build_values(
                [row + 1 for row in untagged],
                tags=[[*lists.value_at(row), tag] for row in untagged],
            ),
        )
    )

"""Verification: a verdict on what a recall showed, what it changes, and what it tells of the memory: a gap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.clock import Micros, When
from memlab.kernel.base.display import Displayed
from memlab.kernel.english import STOP_WORDS, vocabulary, words_of
from memlab.kernel.policies import Pack
from memlab.kernel.privacy import screen
from memlab.kernel.recall import Hit, Hits
from memlab.kernel.schema import RELATIONS, is_open_word, spelled
from memlab.kernel.slates import Slate
from memlab.kernel.state import Change, State, values_of
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

__all__ = ["Verified", "Verifying", "common_tag", "verdict_of"]

_MOST_NAMED = 10_000
"""Memories that one list of a verdict names at most: a verifier may never come to an end."""


@dataclass(frozen=True)
class Verified(Displayed):
    """A verdict as it was logged: which ids passed, best first, and which did not.

    ``edges`` were made between those that passed, ``strengthened`` were there before; ``tag`` was inferred for those
    without it; ``gap`` is the number of the gap that was logged because nothing passed.
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
        """``memory_id``, ``passed``."""
        ids = [*self.accepted, *self.rejected]
        passed = [True] * len(self.accepted) + [False] * len(self.rejected)
        return pl.DataFrame(
            {"memory_id": ids, "passed": passed},
            schema={"memory_id": pl.Int64, "passed": pl.Boolean},
        )

    def _display(self) -> object:
        parts = [f"{len(self.accepted)} passed, {len(self.rejected)} did not"]
        parts += [f"{self.edges} edges made, {self.strengthened} strengthened"] * bool(
            self.edges or self.strengthened
        )
        if self.tag is not None:
            parts.append(f"tag {self.tag} inferred")
        if self.gap is not None:
            parts.append(f"gap {self.gap} logged")
        return f"Recall {self.decision}: {'; '.join(parts)}."


class Verifying:
    """Carry out verdicts on what recalls of one lab showed."""

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
        """Carry out a verdict on a recall; see ``lab.agents.verify``."""
        decision = hits.decision
        if decision is None:
            raise InputError(
                "This recall was not logged, so a verdict on it cannot be: recall with log=True."
            )
        verdict = verdict_of(hits, accepted)
        passed = _shown(hits, verdict.accepted)
        failing = verdict.rejected if rejected is None else listed_memories(rejected)
        failed = (
            [id for id in hits.ids if id not in passed]
            if failing is None
            else _shown(hits, failing)
        )
        both = sorted(set(passed) & set(failed))
        if both:
            raise InputError(f"Memory {both[0]} is both accepted and rejected.")
        named = _checked_relations(
            {**verdict.relations, **(relations or {})}, passed, self._core.open_words
        )
        now = self._core.instant(at)
        with self._core.store.writing() as tx:
            state, pack = self._core.store.state, self._core.pack
            if state.projection(Judged).verified(decision):
                raise InputError(
                    f"The recall {decision} was verified already: a verdict counts once."
                )
            change, tag = _changes(state, pack, now, hits.slate, passed, failed, named)
            gap = None if passed else _gap(hits.slate)
            body = {
                "decision": decision,
                "used": hits.slate.at,
                "verified": passed,
                "rejected": failed,
            }
            body |= change.body()
            seq = tx.event("verify", body if gap is None else {**body, "gap": gap}, at=now)
        return Verified(
            seq,
            decision,
            tuple(passed),
            tuple(failed),
            edges=len((change.edges or {"source": ()})["source"]),
            strengthened=len((change.strengthen or {"edges": ()})["edges"]),
            tag=tag,
            gap=None if gap is None else seq,
        )


def verdict_of(hits: Hits, accepted: Verifier | Verdict | Memories) -> Verdict:
    """What a verifier, or whoever names the hits that pass, says of a recall; nothing is written.

    InputError for what is no verdict. Whether it names what was shown is looked at when it is carried out.
    """
    given = accepted(hits) if callable(accepted) else accepted
    if isinstance(given, Verdict):
        return _verdict(_ended(given.accepted), _ended(given.rejected), given.relations)
    return _verdict(_ended(given))


def _ended(given: Any) -> Any:
    """What a verifier gave; of what has no length, a list. InputError for what may have no end."""
    if isinstance(given, Sized) or not isinstance(given, Iterable):
        return given
    named = list(islice(given, _MOST_NAMED + 1))
    if len(named) > _MOST_NAMED:
        raise InputError(
            f"A verdict names the hits that were shown, and not more than {_MOST_NAMED:,} memories."
        )
    return named


@checked
def _verdict(
    accepted: Memories,
    rejected: Memories | None = None,
    relations: Mapping[tuple[int, int], str] | None = None,
) -> Verdict:
    """What a verifier gave, checked."""
    failing = None if rejected is None else listed_memories(rejected)
    return Verdict(listed_memories(accepted), failing, relations or {})


def _shown(hits: Hits, given: Iterable[MemoryLike]) -> list[int]:
    """The ids that ``given`` names, each once, in the order in which they were shown."""
    ids = {memory.id if isinstance(memory, Memory | Hit) else memory for memory in given}
    unknown = next((id for id in ids if id not in hits.ids), None)
    if unknown is not None:
        raise UnknownName("hit of this recall", unknown, map(str, hits.ids))
    return [id for id in hits.ids if id in ids]


def _checked_relations(
    relations: Mapping[tuple[int, int], str], passed: list[int], open_words: bool
) -> dict[tuple[int, int], str]:
    relations = {pair: spelled(relation, NAMEABLE) for pair, relation in relations.items()}
    for pair, relation in relations.items():
        if relation not in NAMEABLE and not (
            open_words and relation not in RELATIONS and is_open_word(relation)
        ):
            raise UnknownName("relation", relation, NAMEABLE)
        if pair[0] == pair[1]:
            raise InputError(
                f"A relation joins two memories that pass, such as (3, 7), not {pair!r}."
            )
        outside = next((id for id in pair if id not in passed), None)
        if outside is not None:
            raise UnknownName("accepted memory", outside, map(str, passed))
    return dict(relations)


# -- what a verdict changes -------------------------------------------------------------------------------------------


def _changes(
    state: State,
    pack: Pack,
    now: Micros,
    slate: Slate,
    passed: Sequence[int],
    failed: Sequence[int],
    relations: Mapping[tuple[int, int], str],
) -> tuple[Change, str | None]:
    """Return what the event of a verdict carries, and the tag that was inferred, if any.

    Ids that passed (best first) and ids that did not are put to the ``reinforce`` policy. Those that passed are joined
    to one another, best pairs first and at most ``edge-pairs`` of them, and share the tag that most of them have, or
    one inferred from what they share with the query. What was deleted meanwhile is left alone.
    """
    accepted = drop_deleted(state, passed)
    relations = {pair: word for pair, word in relations.items() if {*pair} <= {*accepted}}
    change = _reinforced(state, pack, now, slate.at, accepted, "verified")
    change += _reinforced(state, pack, now, slate.at, drop_deleted(state, failed), "rejected")
    change += strengthen_pairs(
        state, pack, make_pairs(accepted, pack.count("edge-pairs")), relations=relations
    )
    change += retire(state, [pair for pair, word in relations.items() if word == "supersedes"], now)
    rows = np.array(accepted, dtype=np.int64) - 1
    tag = common_tag(state, pack, rows) or _inferred_tag(state, pack, rows, slate.query)
    return change if tag is None else change + _tagged(state, rows, tag), tag


def _reinforced(
    state: State, pack: Pack, now: Micros, used: Micros, ids: Sequence[int], outcome: Outcome
) -> Change:
    rows = np.sort(np.array(ids, dtype=np.int64)) - 1
    return reinforce(
        state,
        pack,
        rows,
        now,
        outcome=outcome,
        elapsed=lambda: days_between_uses(state, rows, now, used=used),
    )


def _gap(slate: Slate) -> dict[str, Any] | None:
    """Return what an event keeps of a context to which no memory was accepted.

    A context for which no memory was found at all is a gap too, unless it holds fewer than two words: a greeting or a
    single word asks for nothing that could be missing.
    """
    said = [word for word in words_of(slate.query) if word not in vocabulary("negation", "fillers")]
    if not (slate.numbers["hops"] == 0).any() and len(said) < 2:
        return None
    return {
        "snippet": screen(slate.query[:SNIPPET]).text,
        "vector": slate.vector,
        "embedder": slate.fingerprints["embedder"],
        "project": slate.project,
        "session": slate.session,
    }


# -- a tag in common: what most of the memories bear is given to the others -------------------------------------------


_SHORTEST = 3
"""Letters of a word that may become a tag."""


def common_tag(state: State, pack: Pack, rows: NDArray[np.int64]) -> str | None:
    """The tag that more than the setting ``tag-share`` of these memories bear, if some of them do not.

    Of several it is the most frequent, then the first by name. One memory shares nothing.
    """
    if len(rows) < 2:
        return None
    lists = state.lists["tags"]
    counts = Counter(tag for row in rows.tolist() for tag in dict.fromkeys(lists.at(row)))
    least = pack.number("tag-share") * len(rows)
    shared = [(-count, tag) for tag, count in counts.items() if max(least, 1) < count < len(rows)]
    return min(shared)[1] if shared else None


def _inferred_tag(state: State, pack: Pack, rows: NDArray[np.int64], query: str) -> str | None:
    """Return a tag for memories that share a context and no tag, if the setting ``infer-common-tag`` asks for one.

    It is the topic that all of them have, else a word that all of them and the query have: the longest, then the first
    of the query. None for fewer than two memories, or where two of them bear the same tag already.
    """
    if not pack.settings["infer-common-tag"] or len(rows) < 2:
        return None
    lists = state.lists["tags"]
    borne = Counter(tag for row in rows.tolist() for tag in dict.fromkeys(lists.at(row)))
    if any(count > 1 for count in borne.values()):
        return None
    texts = [text or "" for text in state.texts.take(rows)]
    topics = [tags_of(text, ()) for text in texts]
    common = [topic for topic in topics[0] if all(topic in others for others in topics[1:])]
    if common:
        return common[0]
    said = [frozenset(words_of(text)) for text in texts]
    plain = STOP_WORDS["english"] | vocabulary("negation", "fillers")
    shared = [
        word
        for word in dict.fromkeys(words_of(query))
        if len(word) >= _SHORTEST
        and word.isalpha()
        and word not in plain
        and all(word in words for words in said)
    ]
    return max(shared, key=len, default=None)


def _tagged(state: State, rows: NDArray[np.int64], tag: str) -> Change:
    """This tag for those of ``rows`` that do not bear it, behind what they have."""
    lists = state.lists["tags"]
    bare = [row for row in rows.tolist() if tag not in lists.at(row)]
    if not bare:
        return Change()
    return Change(
        set=(values_of([row + 1 for row in bare], tags=[[*lists.at(row), tag] for row in bare]),)
    )

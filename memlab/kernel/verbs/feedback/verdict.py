"""What a verifier's verdict on a recall changes, and what it tells of the memory: that something is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memlab.kernel.base.clock import Micros
from memlab.kernel.english import vocabulary, words_of
from memlab.kernel.policies import Pack
from memlab.kernel.privacy import screen
from memlab.kernel.slates import Slate
from memlab.kernel.state import Change, State
from memlab.kernel.verbs.corrections.editing import retired
from memlab.kernel.verbs.feedback.gaps import SNIPPET
from memlab.kernel.verbs.feedback.tags import common_tag, inferred_tag, tagged
from memlab.kernel.verbs.reinforcement.coactivation import joined, pairs_of, remaining
from memlab.kernel.verbs.reinforcement.reinforcing import Outcome, days_before, reinforced

__all__ = ["Judgement", "gap_of", "judged"]


@dataclass(frozen=True)
class Judgement:
    """``change`` is what the event carries; ``tag`` the one that was inferred, if any."""

    change: Change
    tag: str | None


def judged(
    state: State,
    pack: Pack,
    now: Micros,
    *,
    used: Micros,
    accepted: Sequence[int],
    rejected: Sequence[int],
    relations: Mapping[tuple[int, int], str],
    query: str = "",
) -> Judgement:
    """Ids that a verifier let pass (best first) and ids that it did not, of a logged recall at the instant ``used``.

    Both are put to the ``reinforce`` policy. Those that passed are joined to one another, best pairs first and at most
    ``edge-pairs`` of them, and share the tag that most of them have, or one inferred from what they share with the
    ``query``. What was deleted meanwhile is left alone.
    """
    accepted, rejected = remaining(state, accepted), remaining(state, rejected)
    relations = {pair: word for pair, word in relations.items() if {*pair} <= {*accepted}}
    change = _reinforced(state, pack, now, used, accepted, "verified")
    change += _reinforced(state, pack, now, used, rejected, "rejected")
    change += joined(state, pack, pairs_of(accepted, pack.count("edge-pairs")), relations=relations)
    change += retired(state, [pair for pair, word in relations.items() if word == "supersedes"], now)
    rows = np.array(accepted, dtype=np.int64) - 1
    tag = common_tag(state, pack, rows) or inferred_tag(state, pack, rows, query)
    return Judgement(change if tag is None else change + tagged(state, rows, tag), tag)


def _reinforced(state: State, pack: Pack, now: Micros, used: Micros, ids: Sequence[int], outcome: Outcome) -> Change:
    rows = np.sort(np.array(ids, dtype=np.int64)) - 1
    return reinforced(state, pack, rows, now, outcome=outcome, elapsed=lambda: days_before(state, rows, now, used=used))


def gap_of(slate: Slate) -> dict[str, Any] | None:
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

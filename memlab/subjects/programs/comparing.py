"""What another pack would show for queries of the lab's own, in one sentence, before it decides."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from memlab.kernel.policies import Pack, load_pack, pack_names
from memlab.kernel.recall import Filters, Question
from memlab.kernel.slates import question_of
from memlab.kernel.state import State
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.gate import apply_switches

_LEAST_TURNS = 10
"""Turns from which a lab is one of chats."""

_WINDOWS = (64, 512, 4096)
"""Events at the end of the journal in which logged queries are looked for, one window after the other."""

_WORDS = (4, 30)
"""Words of a message that is asked as a query: a shorter one asks back, a longer one tells."""

_Asked = tuple[str, str | None, int]
"""A query, its project, and the id of the message that it stands in; 0 for a logged one."""


def ranking_notice(core: Core, pack: Pack, most: int) -> str | None:
    """Compare what the live pack and ``pack`` show for at most ``most`` queries of a lab of chats.

    Returns
    -------
    str or None
        One sentence. None where ``pack`` is none of those that have a ``-plus`` pack beside them, where nothing was
        chatted, and where there is nothing to ask.

    Notes
    -----
    Queries are the latest that were logged; where none is, questions among the messages, spread evenly, each asked
    without the message that it stands in. The same journal gives the same sentence. No query says which memories it
    wants, so the sentence claims no more than how far the packs agree.
    """
    better = f"{pack.name}-plus"
    if not most or better not in pack_names():
        return None
    with core.reading() as state:
        if not core.store.versions.readable:
            return None
        live = core.pack
        kinds = state.names["kind"]
        turns = int(np.count_nonzero(kinds.codes[: len(state)] == kinds.code("turn")))
        if turns < _LEAST_TURNS or pack.hash == live.hash:
            return None
        asked = list(islice(_logged(core), most))
        source = "logged queries" if asked else "questions found in its messages"
        asked = asked or _questions(state, most)
        if not asked:
            return None
        limit = live.count("limit")
        shown = {
            name: [_top(core, state, each, query, limit) for query in asked]
            for name, each in (("live", live), ("chosen", pack), ("better", load_pack(better)))
        }
    common, same_first = _agreement(shown["live"], shown["chosen"])
    common_better, same_better = _agreement(shown["live"], shown["better"])
    count = len(asked)
    return (
        f"For {count} {source}, {pack.name} shows {common:.0%} of the memories that {live.name} shows, and the same "
        f"first memory for {same_first}; {better}, with the same rules of forgetting and linking, shows "
        f"{common_better:.0%}, and the same first for {same_better} (no query says which is right; "
        f"lab.policies.use(..., compare=0) leaves this out)."
    )


def _logged(core: Core) -> Iterator[_Asked]:
    """Yield the latest distinct logged queries, the newest first."""
    journal = core.store.journal
    seen: set[str] = set()
    until = journal.head
    for window in _WINDOWS:
        start = max(0, journal.head - window)
        asked = [question_of(data, decision=seq) for seq, data in journal.slates(start, upto=until)]
        for slate in reversed(asked):
            if slate.query and slate.query not in seen:
                seen.add(slate.query)
                yield slate.query, slate.project, 0
        until = start
        if not start:
            return


def _questions(state: State, most: int) -> list[_Asked]:
    """Return questions among the messages, spread evenly over the lab."""
    rows = np.flatnonzero(np.asarray(state.asks.values[: len(state)], dtype=np.bool_))
    chosen = []
    places = np.unique(
        np.linspace(0, max(len(rows) - 1, 0), min(len(rows), 4 * most)).astype(np.int64)
    )
    for row in rows[places].tolist():
        text = state.texts.value_at(row) or ""
        if text.rstrip().endswith("?") and _WORDS[0] <= len(text.split()) <= _WORDS[1]:
            chosen.append((text, state.names["project"].value_at(row), row + 1))
    if len(chosen) <= most:
        return chosen
    return [chosen[place] for place in np.linspace(0, len(chosen) - 1, most).astype(int).tolist()]


def _top(core: Core, state: State, pack: Pack, asked: _Asked, limit: int) -> list[int]:
    text, project, own = asked
    filters, _ = apply_switches(core.store, state, project, Filters.of())
    question = Question(text, project=project, filters=filters, at=core.store.clock())
    slate = core.recaller.recall(state, pack, question, limit=limit + 1)
    return [id for id in slate.shown if id != own][:limit]


def _agreement(ones: list[list[int]], others: list[list[int]]) -> tuple[float, int]:
    """Return which share of the memories of the first lists the second lists have, and how often both begin alike."""
    held = sum(len(set(one) & set(other)) for one, other in zip(ones, others, strict=True))
    alike = sum(one[:1] == other[:1] for one, other in zip(ones, others, strict=True))
    return held / max(1, sum(map(len, ones))), alike

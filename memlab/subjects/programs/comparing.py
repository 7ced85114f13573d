"""A notice that compares a pack with the active pack before it is activated."""

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

_MIN_TURNS = 10
"""The minimum number of turns of conversation in a lab for the comparison, which was measured on conversations."""

_WINDOWS = (64, 512, 4096)
"""The numbers of last events that are searched for logged queries, one after the other, because the latest usually
suffice."""

_WORDS = (4, 30)
"""The minimum and maximum number of words of a message that is used as a query. Shorter questions need context, and
longer messages mostly make statements."""

_Query = tuple[str, str | None, int]
"""A query, its project, and the id of the message that contains the query (0 for a logged query)."""


def ranking_notice(core: Core, pack: Pack, limit: int) -> str | None:
    """Describe how the results of ``pack`` differ from results of the active pack.

    Parameters
    ----------
    core
        The core of the lab.
    pack
        The pack that is about to be activated.
    limit
        The maximum number of queries to compare. With 0, nothing is compared.

    Returns
    -------
    str or None
        The notice. None if ``pack`` has no ``-plus`` version, or if the lab has no conversations or no queries.

    Notes
    -----
    The queries are the latest logged queries. Without a log, they are questions in messages, spread evenly over the
    lab. The message itself is then excluded from the results. The same journal gives the same notice. The queries have
    no labels, so the notice only says how far the packs agree.
    """
    better = f"{pack.name}-plus"
    if not limit or better not in pack_names():
        return None
    with core.reading() as state:
        if not core.store.versions.readable:
            return None
        live = core.pack
        kinds = state.names["kind"]
        turns = int(np.count_nonzero(kinds.codes[: len(state)] == kinds.code("turn")))
        if turns < _MIN_TURNS or pack.hash == live.hash:
            return None
        queries = list(islice(_read_queries(core), limit))
        source = "logged queries" if queries else "questions found in its messages"
        queries = queries or _find_questions(state, limit)
        if not queries:
            return None
        limit = live.count("limit")
        results = {
            name: [_top(core, state, each, query, limit) for query in queries]
            for name, each in (("live", live), ("chosen", pack), ("better", load_pack(better)))
        }
    common, same_first = _agreement(results["live"], results["chosen"])
    common_better, same_better = _agreement(results["live"], results["better"])
    count = len(queries)
    return (
        f"For {count} {source}, {pack.name} shows {common:.0%} of the memories that {live.name} shows, and the same "
        f"first memory for {same_first}. {better}, with the same rules of forgetting and linking, shows "
        f"{common_better:.0%}, and the same first memory for {same_better}. The queries have no labels, so neither "
        f"is known to be right. lab.policies.use(..., compare=0) omits this comparison."
    )


def _read_queries(core: Core) -> Iterator[_Query]:
    """Yield the distinct queries among the latest logged recalls, newest first."""
    journal = core.store.journal
    texts: set[str] = set()
    until = journal.head
    for window in _WINDOWS:
        start = max(0, journal.head - window)
        questions = [
            question_of(data, decision=seq) for seq, data in journal.slates(start, upto=until)
        ]
        for slate in reversed(questions):
            if slate.query and slate.query not in texts:
                texts.add(slate.query)
                yield slate.query, slate.project, 0
        until = start
        if not start:
            return


def _find_questions(state: State, count: int) -> list[_Query]:
    """Return at most ``count`` questions from messages, spread over the whole lab."""
    rows = np.flatnonzero(np.asarray(state.asks.values[: len(state)], dtype=np.bool_))
    chosen = []
    places = np.unique(
        np.linspace(0, max(len(rows) - 1, 0), min(len(rows), 4 * count)).astype(np.int64)
    )
    for row in rows[places].tolist():
        text = state.texts.value_at(row) or ""
        if text.rstrip().endswith("?") and _WORDS[0] <= len(text.split()) <= _WORDS[1]:
            chosen.append((text, state.names["project"].value_at(row), row + 1))
    if len(chosen) <= count:
        return chosen
    return [chosen[index] for index in np.linspace(0, len(chosen) - 1, count).astype(int).tolist()]


def _top(core: Core, state: State, pack: Pack, query: _Query, limit: int) -> list[int]:
    """Return the first ``limit`` ids that a pack retrieves for a query, without the query's own message."""
    text, project, own = query
    filters, _ = apply_switches(core.store, state, project, Filters.of())
    question = Question(text, project=project, filters=filters, at=core.store.clock())
    slate = core.recaller.recall(state, pack, question, limit=limit + 1)
    return [id for id in slate.shown if id != own][:limit]


def _agreement(ones: list[list[int]], others: list[list[int]]) -> tuple[float, int]:
    """Return the share of results in ``ones`` that ``others`` has for the same query.

    The second value is the number of queries with the same first result in both.
    """
    common = sum(len(set(first) & set(second)) for first, second in zip(ones, others, strict=True))
    same_first = sum(first[:1] == second[:1] for first, second in zip(ones, others, strict=True))
    return common / max(1, sum(map(len, ones))), same_first

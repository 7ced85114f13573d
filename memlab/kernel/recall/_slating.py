"""The stage that makes the slate of a recall, and its bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.recall._features import Candidates
from memlab.kernel.recall._moment import read
from memlab.kernel.recall._plan import Plan, Run
from memlab.kernel.slates import Slate, encode

__all__ = ["bytes_of", "log"]

Rows = NDArray[np.int64]
Table = NDArray[np.float64]


def log(run: Run) -> None:
    """What the log keeps of the recall: the pool with its features, the scores, what was shown."""
    plan, pack, question, pool = run.plan, run.plan.pack, run.question, run.pool
    shown, selected, said = run.shown, run.selected, run.plan.log
    ids = pool.rows + 1
    branches = question.filters.branch or ()
    run.slate = Slate(
        at=question.at,
        query=question.text,
        vector=run.asked.vector.tobytes(),
        limit=selected.limit,
        project=question.project,
        pack=pack.name,
        pack_hash=pack.hash,
        policies=dict(said.policies),
        settings=dict(pack.settings),
        fingerprints=dict(said.fingerprints),
        state=run.state.seq,
        cut=said.cut,
        sampler=shown.sampler,
        ids=ids,
        scores=run.scores,
        numbers=_numbers(plan, pool),
        words=pool.words(said.words),
        shown=tuple(ids[shown.places].tolist()),
        seed=None if shown.sampler == "deterministic" else run.seed,
        kappa=shown.kappa,
        ranks=shown.ranks,
        propensity=shown.propensity,
        conditional=shown.conditional,
        probes=tuple(ids[shown.probes].tolist()),
        session=question.session,
        branch=branches[0] if len(branches) == 1 else None,
        flags=said.flags,
        filters=question.filters.logged(),
        challenge=run.challenge,
        known=run.known,
        wanted=selected.wanted,
        also=_duplicates(ids, shown.places, selected.ranking.duplicates),
    )


def _numbers(plan: Plan, pool: Candidates) -> dict[str, Table]:
    """The numbers and flags that the slate keeps: rows of one table."""
    numeric, tests = plan.log.numeric, plan.log.tests
    table = np.empty((len(numeric) + len(tests), len(pool.rows)))
    pool.fill(table, numeric)
    for place, (name, policy) in enumerate(tests.items(), start=len(numeric)):
        table[place] = read(pool, policy, name)
    return dict(zip((*numeric, *tests), table, strict=True))


def _duplicates(
    ids: Rows, places: Rows, behind: dict[int, list[int]]
) -> dict[int, tuple[int, ...]]:
    """The near-duplicates for which each one shown stands, by ids."""
    if not behind:
        return {}
    return {
        int(ids[place]): _ids(ids, behind[place]) for place in places.tolist() if place in behind
    }


def _ids(ids: Rows, places: Sequence[int]) -> tuple[int, ...]:
    return tuple(int(ids[place]) for place in places)


def bytes_of(plan: Plan, slate: Slate) -> bytes:
    """The bytes of a slate that this plan's ``log`` made: what ``encode`` gives, its constant parts encoded before."""
    return encode(slate, constants=plan.log.constants, table=_table_of(slate))


def _table_of(slate: Slate) -> Any:
    """The table of which the numbers are the rows."""
    first = next(iter(slate.numbers.values()), None)
    return None if first is None else first.base

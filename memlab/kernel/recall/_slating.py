"""The stage that makes the slate of a recall, and its bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.errors import ExtensionError
from memlab.kernel.base.arguments import warn_caller
from memlab.kernel.recall._features import Candidates
from memlab.kernel.recall._moment import read
from memlab.kernel.recall._plan import Logging, Plan, Run
from memlab.kernel.slates import Slate, encode

__all__ = ["bytes_of", "log"]

Rows = NDArray[np.int64]
Table = NDArray[np.float64]


def log(run: Run) -> None:
    """What the log keeps of the recall: the pool with its features, the scores, what was shown."""
    pack, question, pool = run.plan.pack, run.question, run.pool
    shown, selected = run.shown, run.selected
    logging, numbers, words = _features(run)
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
        policies=dict(logging.policies),
        settings=dict(pack.settings),
        fingerprints=dict(logging.fingerprints),
        state=run.state.seq,
        cut=logging.cut,
        sampler=shown.sampler,
        ids=ids,
        scores=run.scores,
        numbers=numbers,
        words=words,
        shown=tuple(ids[shown.places].tolist()),
        seed=None if shown.sampler == "deterministic" else run.seed,
        kappa=shown.kappa,
        ranks=shown.ranks,
        propensity=shown.propensity,
        conditional=shown.conditional,
        probes=tuple(ids[shown.probes].tolist()),
        session=question.session,
        branch=branches[0] if len(branches) == 1 else None,
        flags=logging.flags,
        filters=question.filters.logged(),
        challenge=run.challenge,
        known=run.known,
        wanted=selected.wanted,
        also=_duplicates(ids, shown.places, selected.ranking.duplicates),
    )


def _features(run: Run) -> tuple[Logging, dict[str, Table], dict[str, list[str | None]]]:
    """Return what the slate says of its pack, its numbers and its words, with those that challengers read."""
    logging = run.plan.log_with([rival.challenge.pack for rival in run.selected.opposed])
    try:
        return logging, _numbers(logging, run.pool), run.pool.words(logging.words)
    except ExtensionError as error:
        if logging is run.plan.log:
            raise
        # A challenger never costs the user a recall, so a feature that only it reads may be missing.
        warn_caller(f"Features that only challengers read are missing from this recall. {error}")
    logging = run.plan.log
    return logging, _numbers(logging, run.pool), run.pool.words(logging.words)


def _numbers(logging: Logging, pool: Candidates) -> dict[str, Table]:
    """Return the numbers and flags that the slate stores, as rows of one table."""
    numeric, tests = logging.numeric, logging.tests
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
    """Return the bytes of a slate that this plan's ``log`` made, by constant parts that are encoded already.

    A slate with features of challengers has other constants: it is encoded without them, to the same bytes.
    """
    own = plan.log.fingerprints == slate.fingerprints and len(slate.numbers) == len(
        plan.log.numeric
    ) + len(plan.log.tests)
    return encode(slate, constants=plan.log.constants if own else None, table=_table_of(slate))


def _table_of(slate: Slate) -> Any:
    """The table of which the numbers are the rows."""
    first = next(iter(slate.numbers.values()), None)
    return None if first is None else first.base

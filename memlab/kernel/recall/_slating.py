"""The stage that builds the slate of a recall, and the encoding of that slate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from memlab.errors import ExtensionError
from memlab.kernel.base.arguments import warn_caller
from memlab.kernel.base.arrays import Floats, Rows
from memlab.kernel.recall._features import Candidates
from memlab.kernel.recall._moment import read
from memlab.kernel.recall._plan import Logging, Plan, Run
from memlab.kernel.slates import Slate, encode

Table = Floats


def log(run: Run) -> None:
    """Build the slate of a recall.

    The slate has the pool with its features, scores and ranks, and the shown memories.
    """
    pack, question, pool = run.plan.pack, run.question, run.pool
    exposure, selected = run.shown, run.selected
    logging, numbers, words = _collect_features(run)
    ids = pool.rows + 1
    branches = question.filters.branch or ()
    run.slate = Slate(
        at=question.at,
        query=question.text,
        vector=run.query.vector.tobytes(),
        limit=selected.limit,
        project=question.project,
        pack=pack.name,
        pack_hash=pack.hash,
        policies=dict(logging.policies),
        settings=dict(pack.settings),
        fingerprints=dict(logging.fingerprints),
        state=run.state.seq,
        cut=logging.cut,
        sampler=exposure.sampler,
        ids=ids,
        scores=run.scores,
        numbers=numbers,
        words=words,
        shown=tuple(ids[exposure.places].tolist()),
        seed=None if exposure.sampler == "deterministic" else run.seed,
        kappa=exposure.kappa,
        ranks=exposure.ranks,
        propensity=exposure.propensity,
        conditional=exposure.conditional,
        probes=tuple(ids[exposure.probes].tolist()),
        session=question.session,
        branch=branches[0] if len(branches) == 1 else None,
        flags=logging.flags,
        filters=question.filters.logged(),
        challenge=run.challenge,
        known=run.known,
        wanted=selected.wanted,
        also=_duplicates(ids, exposure.places, selected.ranking.duplicates),
    )


def _collect_features(run: Run) -> tuple[Logging, dict[str, Table], dict[str, list[str | None]]]:
    """Return the logged parts of a recall: the logging plan, numeric features and string features.

    Features that challengers read are included, unless an extension fails to compute them.
    """
    logging = run.plan.log_with([rival.challenge.pack for rival in run.selected.challengers])
    try:
        return logging, _numbers(logging, run.pool), run.pool.words(logging.words)
    except ExtensionError as error:
        if logging is run.plan.log:
            raise
        # A fault of a challenger must not cost the user a recall.
        warn_caller(f"Features that only challengers read are missing from this recall. {error}")
    logging = run.plan.log
    return logging, _numbers(logging, run.pool), run.pool.words(logging.words)


def _numbers(logging: Logging, pool: Candidates) -> dict[str, Table]:
    """Return numeric features and tests of sets by name, as rows of one table."""
    numeric, tests = logging.numeric, logging.tests
    table = np.empty((len(numeric) + len(tests), len(pool.rows)))
    pool.fill(table, numeric)
    for row, (name, policy) in enumerate(tests.items(), start=len(numeric)):
        table[row] = read(pool, policy, name)
    return dict(zip((*numeric, *tests), table, strict=True))


def _duplicates(
    ids: Rows, positions: Rows, duplicates: dict[int, list[int]]
) -> dict[int, tuple[int, ...]]:
    """Return the near-duplicates of each shown memory, keyed by memory id."""
    if not duplicates:
        return {}
    return {
        int(ids[position]): _ids(ids, duplicates[position])
        for position in positions.tolist()
        if position in duplicates
    }


def _ids(ids: Rows, positions: Sequence[int]) -> tuple[int, ...]:
    """Return the memory ids at the given positions of the pool."""
    return tuple(int(ids[position]) for position in positions)


def bytes_of(plan: Plan, slate: Slate) -> bytes:
    """Return the slate as bytes for the log.

    The plan has encoded the constant parts of slates already. A slate with features of challengers
    has other constant parts, so it is encoded in full.
    """
    shares_constants = plan.log.fingerprints == slate.fingerprints and len(slate.numbers) == len(
        plan.log.numeric
    ) + len(plan.log.tests)
    return encode(
        slate, constants=plan.log.constants if shares_constants else None, table=_table_of(slate)
    )


def _table_of(slate: Slate) -> Any:
    """Return the array whose rows are a slate's numeric features, or None without features."""
    first = next(iter(slate.numbers.values()), None)
    return None if first is None else first.base

"""Random slates and the feedback on them, and the four frames of such a log."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl
from hypothesis import strategies as st

from memlab.kernel.slates import Slate, Slates

STAMP = pl.Datetime("us", "UTC")
FEEDBACK = {
    "decision": pl.Int64,
    "memory_id": pl.Int64,
    "outcome": pl.String,
    "reward": pl.Float64,
    "source": pl.String,
    "at": STAMP,
}
TABLES = ("decisions", "candidates", "exposures", "feedback")
DAY = 86_400_000_000

words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
scores = st.floats(-10, 10).map(lambda value: round(value, 3))
names = st.sampled_from(["similarity", "age-days", "before-coverage", "x"])


@st.composite
def slates(draw, decision=None, minimum=0, features=names, sampler=None):
    """Draw a slate of up to 8 candidates whose fields agree with one another."""
    ids = sorted(draw(st.sets(st.integers(1, 10**12), min_size=minimum, max_size=8)))
    count = len(ids)
    sampler = sampler or draw(st.sampled_from(["deterministic", "probe", "gumbel"]))
    order = draw(st.permutations(range(count)))
    ranks = np.empty(count, dtype=np.int64)
    ranks[list(order)] = np.arange(1, count + 1)
    limit = draw(st.integers(1, 4))
    head, band = list(order[:limit]), list(order[limit : limit + 3])
    propensity = np.zeros(count)
    propensity[head] = 1.0
    probes: list[int] = []
    if sampler != "deterministic" and band:
        propensity[band] = draw(
            st.lists(st.floats(0.001, 0.999), min_size=len(band), max_size=len(band))
        )
        probes = band[: draw(st.integers(0, 2 if sampler == "gumbel" else 1))]
    numeric = draw(st.lists(features, unique=True, max_size=3))
    column = st.lists(st.floats(allow_nan=True), min_size=count, max_size=count)
    flag = st.lists(st.sampled_from([0.0, 1.0, math.nan]), min_size=count, max_size=count)
    numbers = {name: np.array(draw(column), dtype=np.float64) for name in numeric}
    flags = tuple(draw(st.lists(st.sampled_from(["pinned", "asks"]), unique=True)))
    numbers |= {name: np.array(draw(flag), dtype=np.float64) for name in flags}
    kinds = st.lists(st.none() | words, min_size=count, max_size=count)
    return Slate(
        at=draw(st.integers(0, 2 * 10**15)),
        query=draw(words),
        vector=draw(st.binary(max_size=6)),
        limit=limit,
        project=draw(st.none() | st.sampled_from(["api", "web"])),
        session=draw(st.none() | st.sampled_from(["monday", "tuesday"])),
        branch=draw(st.none() | words),
        pack=draw(st.sampled_from(["memlab", "cascade"])),
        pack_hash=draw(words),
        policies=draw(st.dictionaries(words, words, max_size=2)),
        settings=draw(
            st.dictionaries(
                words, st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | words, max_size=3
            )
        ),
        fingerprints=draw(st.dictionaries(words, words, max_size=3)),
        state=draw(st.integers(0, 99)),
        cut="100 best",
        sampler=sampler,
        seed=None if sampler == "deterministic" else draw(st.integers(0, 2**62)),
        kappa=draw(scores) if sampler == "gumbel" else None,
        ids=np.array(ids, dtype=np.int64),
        scores=np.array(
            draw(st.lists(scores | st.just(-math.inf), min_size=count, max_size=count)),
            dtype=np.float64,
        ),
        numbers=numbers,
        words=draw(st.fixed_dictionaries({}, optional={"kind": kinds, "scope": kinds})),
        shown=tuple(ids[position] for position in (*head, *probes)),
        decision=draw(st.integers(1, 10**6)) if decision is None else decision,
        ranks=ranks,
        propensity=propensity,
        conditional=(1.0,) * len(head) + tuple(propensity[probes].tolist()),
        probes=tuple(ids[position] for position in probes),
        flags=flags,
    )


def recalled(dice, decision, *, sampler=None, minimum=0):
    """Draw a slate with numbers from ``dice``: faster than ``slates``, and as varied in shape."""
    count = int(dice.integers(minimum, 9))
    ids = np.sort(dice.choice(50, count, replace=False) + 1)
    values = np.round(dice.normal(size=count), 1)
    order = np.argsort(-values, kind="stable")
    ranks = np.empty(count, dtype=np.int64)
    ranks[order] = np.arange(1, count + 1)
    limit = int(dice.integers(1, 5))
    head, band = order[:limit], order[limit : limit + 3]
    sampler = sampler or str(dice.choice(["deterministic", "probe", "gumbel"]))
    propensity = np.zeros(count)
    propensity[head] = 1.0
    probes = band[:0]
    if sampler != "deterministic":
        propensity[band] = dice.uniform(0.01, 0.99, len(band))
        probes = dice.permutation(band)[: dice.integers(0, 3 if sampler == "gumbel" else 2)]
    positions = np.concatenate([head, probes])
    optional = {
        "similarity": dice.random(count),
        "age-days": np.where(dice.random(count) < 0.3, np.nan, dice.random(count)),
        "asks": dice.choice([0.0, 1.0, np.nan], count),
    }
    numbers = {name: values for name, values in optional.items() if dice.random() < 0.8}
    kinds = [
        None if dice.random() < 0.2 else str(dice.choice(["fact", "turn"])) for _ in range(count)
    ]
    return Slate(
        at=int(dice.integers(0, 2 * 10**15)),
        query=str(dice.choice(["", "tabs?", "Ω, 'quoted'"])),
        vector=b"",
        limit=limit,
        project=dice.choice([None, "api", "web"]),
        session=dice.choice([None, "monday", "tuesday"]),
        pack=str(dice.choice(["memlab", "cascade"])),
        pack_hash="f00",
        policies={},
        settings={"limit": float(limit)},
        fingerprints=dict.fromkeys(numbers, "ab"),
        state=int(dice.integers(0, 99)),
        cut="100 best",
        sampler=sampler,
        seed=None if sampler == "deterministic" else int(dice.integers(0, 2**62)),
        kappa=float(dice.normal()) if sampler == "gumbel" else None,
        ids=ids,
        scores=values,
        numbers=numbers,
        words={"kind": kinds} if dice.random() < 0.8 else {},
        shown=tuple(ids[positions].tolist()),
        decision=decision,
        ranks=ranks,
        propensity=propensity,
        conditional=tuple(propensity[positions].tolist()),
        probes=tuple(ids[probes].tolist()),
        flags=("asks",) if "asks" in numbers else (),
    )


def judged(dice, logged):
    """Draw feedback on some of the shown items: once each, with an outcome, a reward or both."""
    rows = []
    for slate in logged:
        for memory in slate.shown:
            if dice.random() < 0.6:
                outcome = dice.choice([None, "success", "fail"])
                reward = round(dice.random(), 3) if outcome is None or dice.random() < 0.5 else None
                rows.append(
                    (
                        slate.decision,
                        memory,
                        outcome,
                        reward,
                        "user",
                        slate.at + int(dice.integers(0, DAY)),
                    )
                )
    schema = {**FEEDBACK, "at": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col("at").cast(STAMP))


def recalls(*, minimum_recalls=1, maximum=5, **how):
    """Draw several slates, in the order of their decisions."""

    def drawn(seed):
        dice = np.random.default_rng(seed)
        decisions = np.sort(
            dice.choice(1000, dice.integers(minimum_recalls, maximum + 1), replace=False) + 1
        )
        return [recalled(dice, int(decision), **how) for decision in decisions]

    return st.integers(0, 2**32 - 1).map(drawn)


def logs(**how):
    """Draw a log as memlab writes it."""
    return recalls(**how).map(
        lambda logged: Slates.of(logged, judged(np.random.default_rng(len(logged)), logged))
    )


def frames(log):
    """Return the four tables of a log by name."""
    return {name: getattr(log, name).collect() for name in TABLES}


def plain(decision=1, *, ids=(1, 2, 3), shown=(1,), **fields):
    """Return a small slate whose candidates score 0.9, 0.8, ... in the order of their ids."""
    slate = Slate(
        at=1_770_000_000_000_000 + decision * DAY,
        query="tabs?",
        vector=b"",
        limit=2,
        project=None,
        pack="memlab",
        pack_hash="f00",
        policies={},
        settings={"limit": 2.0},
        fingerprints={"similarity": "ab"},
        state=0,
        cut="100 best",
        sampler="deterministic",
        ids=np.array(ids, dtype=np.int64),
        scores=0.9 - np.arange(len(ids)) / 10,
        numbers={"similarity": np.linspace(1, 0, len(ids))},
        words={"kind": ["fact"] * len(ids)},
        shown=tuple(shown),
        decision=decision,
    )
    return replace(slate, **fields)


def no_feedback():
    return pl.DataFrame(schema=FEEDBACK)

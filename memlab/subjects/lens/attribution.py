"""How what each version of a policy showed was judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from memlab.kernel.base.display import Report, Table, format_rows
from memlab.kernel.policies import Version
from memlab.kernel.slates import read_slates
from memlab.kernel.storage.store import Store

LEVEL = 0.95

_FRAME = (
    *(
        "version",
        "hash",
        "pack",
        "since",
        "recalls",
        "shown",
        "judged",
        "success",
        "fail",
        "rate",
        "low",
        "high",
    ),
    *("probes", "probe_judged", "probe_success", "probe_fail"),
)


_COLUMNS = (
    ("version", "{version}"),
    ("hash", "{hash:.12}"),
    ("pack", "{pack}"),
    ("since", "{since:%Y-%m-%d %H:%M}"),
    *((name, f"{{{name}:,}}") for name in ("recalls", "shown", "judged", "success", "fail")),
    ("rate", "{rate:.3f} [{low:.3f}, {high:.3f}]"),
)


@dataclass(frozen=True, repr=False)
class Attribution(Report):
    """Successes and failures of what was shown, by the version of one slot that decided.

    This is observational. Versions were live at different times and showed different memories to different questions,
    so a higher rate may come from easier questions as well as from a better policy; ``memlab.evaluate`` compares
    policies on equal terms. The intervals also take judgements as independent, which those of one conversation are
    not: they are too narrow rather than too wide.

    ``frame`` has one row a version: ``version``, ``hash``, ``pack`` (its name), ``since`` (UTC), ``recalls`` that it
    decided, memories ``shown`` (probes apart), how many of them were ``judged`` and with ``success`` or ``fail`` (the
    last word on a memory counts; a reward without an outcome is neither), ``rate`` = success / (success + fail), and
    ``low`` and ``high``: the central 95% of the Beta posterior under Jeffreys' prior, Beta(1/2, 1/2), reaching to 0
    where nothing succeeded and to 1 where nothing failed (Brown, Cai and DasGupta 2001). What was shown as a probe is
    counted apart, in ``probes``, ``probe_judged``, ``probe_success`` and ``probe_fail``: the policy did not put it
    first.

    ``loose`` is the number of judgements that belong to no logged recall, and so to no version.
    """

    slot: str
    frame: pl.DataFrame
    loose: int = 0

    def _display(self) -> object:
        title = f"{self.slot} by version; the interval is the central {LEVEL:.0%} of the posterior (Jeffreys)"
        heads, rows = format_rows(self.frame.iter_rows(named=True), _COLUMNS)
        return Table(title, heads, rows, self.notes, left=(0, 1, 2, 3))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of these numbers."""
        probes, judged = self.frame["probes"].sum(), self.frame["probe_judged"].sum()
        notes = [
            "Observational: each version met its own questions. memlab.evaluate compares on equal terms."
        ]
        if probes:
            notes.append(f"{probes:,} probes, {judged:,} of them judged, are counted apart.")
        if self.loose:
            notes.append(
                f"{self.loose:,} feedback{'s' * (self.loose > 1)} ignored: not linked to a logged recall."
            )
        return tuple(notes)


def attributed(
    slot: str,
    versions: Sequence[Version],
    timeline: pl.DataFrame,
    decisions: pl.DataFrame,
    exposures: pl.DataFrame,
    feedback: pl.DataFrame,
) -> Attribution:
    """The judgements of what was shown, by the version of ``slot`` that decided.

    ``timeline`` is ``VersionLog.timeline(slot)``; the others are as in ``Slates``: ``decisions`` with ``decision`` and
    ``pack_hash``, ``exposures`` with ``decision``, ``memory_id`` and ``probe``, and ``feedback`` with ``decision``,
    ``memory_id`` and ``outcome`` (null for a bare reward), in the order in which it was given.
    """
    decided = _decided(timeline, decisions)
    shown = exposures.join(decided.select("decision", "version"), on="decision", how="inner")
    judged = feedback.join(shown, on=["decision", "memory_id"], how="inner", maintain_order="left")
    verdicts = judged.group_by(
        "decision", "memory_id", "version", "probe", maintain_order=True
    ).agg(pl.col("outcome").drop_nulls().last())
    success, fail, probe = (
        pl.col("outcome") == "success",
        pl.col("outcome") == "fail",
        pl.col("probe"),
    )
    counts = [
        decided.group_by("version").agg(recalls=pl.len()),
        shown.group_by("version").agg(shown=(~probe).sum(), probes=probe.sum()),
        verdicts.group_by("version").agg(
            judged=(~probe).sum(),
            success=(success & ~probe).sum(),
            fail=(fail & ~probe).sum(),
            probe_judged=probe.sum(),
            probe_success=(success & probe).sum(),
            probe_fail=(fail & probe).sum(),
        ),
    ]
    frame = pl.DataFrame(
        {
            "version": [version.number for version in versions],
            "hash": [version.hash for version in versions],
            "pack": [version.pack for version in versions],
            "since": pl.Series([version.at for version in versions], dtype=pl.Int64).cast(
                pl.Datetime("us", "UTC")
            ),
        },
        schema_overrides={"version": pl.Int64, "hash": pl.String, "pack": pl.String},
    )
    for count in counts:
        frame = frame.join(count, on="version", how="left", maintain_order="left")
    frame = frame.with_columns(
        pl.col(name).fill_null(0).cast(pl.Int64) for name in frame.columns[4:]
    )
    low, high = credible_interval(frame["success"], frame["fail"])
    rated = pl.col("success") + pl.col("fail")
    frame = frame.with_columns(
        low, high, rate=pl.when(rated > 0).then(pl.col("success") / rated)
    ).select(_FRAME)
    return Attribution(slot, frame, loose=feedback.height - judged.height)


def _decided(timeline: pl.DataFrame, decisions: pl.DataFrame) -> pl.DataFrame:
    """``decisions`` with the number of the version that decided.

    The logged hash of the pack tells it; by place in the journal alone, a recall would go to a version that another
    process installed between its reading and its writing. The place tells apart two times at which one pack was live,
    and decides alone where a hash is missing or was another dialect's.
    """
    ordered = decisions.sort("decision")
    timeline = timeline.sort("event")
    by_hash = ordered.join_asof(
        timeline,
        left_on="decision",
        right_on="event",
        by="pack_hash",
        strategy="backward",
        check_sortedness=False,
    )
    by_place = ordered.join_asof(
        timeline.select("event", "version"),
        left_on="decision",
        right_on="event",
        strategy="backward",
    )
    return ordered.with_columns(version=pl.coalesce(by_hash["version"], by_place["version"]))


def credible_interval(success: pl.Series, fail: pl.Series) -> tuple[pl.Series, pl.Series]:
    """``low`` and ``high``: the central 95% of Beta(success + 1/2, fail + 1/2), out to 0 or 1 where one count is 0.

    >>> low, high = credible_interval(pl.Series([8]), pl.Series([2]))
    >>> round(low[0], 3), round(high[0], 3)
    (0.497, 0.956)
    """
    # scipy.stats.beta.ppf is this function, whose import takes a second longer.
    from scipy.special import betaincinv

    a, b = success.to_numpy() + 0.5, fail.to_numpy() + 0.5
    tail = (1 - LEVEL) / 2
    low = pl.Series("low", betaincinv(a, b, tail)).set(success == 0, 0.0)
    high = pl.Series("high", betaincinv(a, b, 1 - tail)).set(fail == 0, 1.0)
    return low, high


def attribute_feedback(
    store: Store, slot: str, versions: Sequence[Version], timeline: pl.DataFrame, head: int
) -> Attribution:
    """Return how what each version of a slot showed was judged, up to the event ``head``."""
    return attributed(slot, versions, timeline, *_logged(store, head))


def _logged(store: Store, head: int) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return the decisions, exposures and feedback up to an event; slates are not read.

    Flat columns: 100,000 recalls with as many judgements take a second to read, as lists and rows 4.
    """
    decisions: dict[str, list[Any]] = {"decision": [], "pack_hash": []}
    feedback: dict[str, list[Any]] = {"decision": [], "memory_id": [], "outcome": []}
    sizes: list[int] = []
    shown: list[int] = []
    flags: list[bool] = []
    unlogged: dict[int, int] = {}
    for event in store.journal.events(upto=head, kinds=("recall", "feedback")):
        body = event.body
        if event.kind == "feedback":
            feedback["decision"].append(body["decision"])
            feedback["memory_id"].append(body["memory"])
            feedback["outcome"].append(body["outcome"])
            continue
        ids, probes = body["ids"], body.get("probes")
        if probes is None:
            unlogged[event.seq] = len(shown)
        decisions["decision"].append(event.seq)
        decisions["pack_hash"].append(body.get("pack"))
        sizes.append(len(ids))
        shown += ids
        flags += [memory in probes for memory in ids] if probes else [False] * len(ids)
    if unlogged:  # recalls logged before events had probes; their slates have them
        for slate in read_slates(store.journal, min(unlogged) - 1, upto=max(unlogged)):
            if slate.decision in unlogged:
                start = unlogged[slate.decision]
                flags[start : start + len(slate.shown)] = [
                    memory in slate.probes for memory in slate.shown
                ]
    exposures = {"decision": np.repeat(np.array(decisions["decision"], dtype=np.int64), sizes)}
    return (
        pl.DataFrame(decisions, schema={"decision": pl.Int64, "pack_hash": pl.String}),
        pl.DataFrame(
            exposures
            | {"memory_id": np.array(shown, dtype=np.int64), "probe": np.array(flags, dtype=bool)}
        ),
        pl.DataFrame(
            feedback, schema={"decision": pl.Int64, "memory_id": pl.Int64, "outcome": pl.String}
        ),
    )

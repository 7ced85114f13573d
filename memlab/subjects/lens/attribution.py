"""Outcomes of shown memories by the version of the policy that selected them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from memlab.kernel.base.clock import INSTANT
from memlab.kernel.base.display import Report, Table, format_rows
from memlab.kernel.base.printable import count_of
from memlab.kernel.policies import Version
from memlab.kernel.slates import read_slates
from memlab.kernel.storage.store import Store
from memlab.science.distributions import beta_quantile

# The level of the credible intervals.
LEVEL = 0.95

# The columns of the frame. _COLUMNS has the columns of the printed table with their formats.
_FRAME = (
    *("version", "hash", "pack", "since", "recalls", "shown", "judged"),
    *("success", "fail", "rate", "low", "high"),
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
    """The successes and failures of shown memories, by version of one slot.

    The comparison is observational. Versions were active at different times and showed different memories for different
    queries, so a higher rate may come from easier queries. ``memlab.evaluate`` compares policies on the same queries.
    The intervals assume that judgements are independent. Judgements within a conversation are not, so the intervals are
    too narrow rather than too wide.

    Attributes
    ----------
    slot
        The slot.
    frame
        One row for each version:

        - ``version``, ``hash``, ``pack`` (its name) and ``since`` (UTC)
        - ``recalls`` that the version decided
        - ``shown`` memories, without exploration items
        - ``judged``, ``success`` and ``fail``: how many of the shown memories were judged, and how.
          The last judgement of a memory counts. A reward without an outcome is neither a success
          nor a failure.
        - ``rate``: success / (success + fail)
        - ``low`` and ``high``: the central 95% of the Beta posterior under Jeffreys' prior,
          Beta(1/2, 1/2). ``low`` is 0 without successes, and ``high`` is 1 without failures
          (Brown, Cai and DasGupta 2001).
        - ``probes``, ``probe_judged``, ``probe_success`` and ``probe_fail``: the same counts for exploration items,
          which are counted separately because the policy did not select them
    loose
        The number of judgements that are not linked to a logged recall, and so to no version.

    Examples
    --------
    >>> memlab.open().policies.attribution("recall-score").frame["recalls"].to_list()
    [0]
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
        """Sentences that explain how to read the frame."""
        probes, judged = self.frame["probes"].sum(), self.frame["probe_judged"].sum()
        notes = [
            "Observational: each version had its own queries. memlab.evaluate compares on equal terms."
        ]
        if probes:
            notes.append(
                f"Not included: {count_of(int(probes), 'exploration item')}, {judged:,} of them judged."
            )
        if self.loose:
            notes.append(
                f"{count_of(self.loose, 'judgement')} ignored: not linked to a logged recall."
            )
        return tuple(notes)


def attribute_outcomes(
    slot: str,
    versions: Sequence[Version],
    timeline: pl.DataFrame,
    decisions: pl.DataFrame,
    exposures: pl.DataFrame,
    feedback: pl.DataFrame,
) -> Attribution:
    """Count the outcomes of recalled memories, by the version of ``slot`` that chose each.

    Parameters
    ----------
    slot
        The slot.
    versions
        The versions of the slot.
    timeline
        The periods of the versions, as ``VersionLog.timeline(slot)`` returns them.
    decisions
        The columns ``decision`` and ``pack_hash``, as in ``Slates``.
    exposures
        The columns ``decision``, ``memory_id`` and ``probe``.
    feedback
        The columns ``decision``, ``memory_id`` and ``outcome`` (null for a reward without an outcome), in order of time.

    Returns
    -------
    Attribution
        One row for each version.
    """
    decided = _assign_versions(timeline, decisions)
    shown_items = exposures.join(decided.select("decision", "version"), on="decision", how="inner")
    judged = feedback.join(
        shown_items, on=["decision", "memory_id"], how="inner", maintain_order="left"
    )
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
        shown_items.group_by("version").agg(shown=(~probe).sum(), probes=probe.sum()),
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
            "since": pl.Series([version.at for version in versions], dtype=pl.Int64).cast(INSTANT),
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


def _assign_versions(timeline: pl.DataFrame, decisions: pl.DataFrame) -> pl.DataFrame:
    """Add a column with the number of the policy version that decided each recall.

    The logged hash of the pack identifies the version. The position in the journal alone could be wrong: another
    process may install a version while a recall runs. If a pack was active in two periods, the position selects one of
    them. It also decides if the hash is missing or unknown.
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
    by_position = ordered.join_asof(
        timeline.select("event", "version"),
        left_on="decision",
        right_on="event",
        strategy="backward",
    )
    return ordered.with_columns(version=pl.coalesce(by_hash["version"], by_position["version"]))


def credible_interval(success: pl.Series, fail: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the bounds of the central 95% of the distribution Beta(success + 1/2, fail + 1/2).

    ``low`` is 0 without successes, and ``high`` is 1 without failures.

    >>> low, high = credible_interval(pl.Series([8]), pl.Series([2]))
    >>> round(low[0], 3), round(high[0], 3)
    (0.497, 0.956)
    """
    tail = (1 - LEVEL) / 2
    counts = list(zip(success, fail, strict=True))
    low = [beta_quantile(won + 0.5, lost + 0.5, tail) if won else 0.0 for won, lost in counts]
    high = [beta_quantile(won + 0.5, lost + 0.5, 1 - tail) if lost else 1.0 for won, lost in counts]
    return pl.Series("low", low, pl.Float64), pl.Series("high", high, pl.Float64)


def attribute_feedback(
    store: Store, slot: str, versions: Sequence[Version], timeline: pl.DataFrame, head: int
) -> Attribution:
    """Count the outcomes of each version of a slot, up to the event ``head``."""
    return attribute_outcomes(slot, versions, timeline, *_read_log(store, head))


def _read_log(store: Store, head: int) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return the decisions, exposures and feedback up to an event, without slates.

    The columns are flat lists. So 100,000 recalls with as many judgements take 1 second, compared with 4 seconds for
    rows with lists.
    """
    # Events of older recalls do not list their probes, so these are read from the slates afterwards.
    decisions: dict[str, list[Any]] = {"decision": [], "pack_hash": []}
    feedback: dict[str, list[Any]] = {"decision": [], "memory_id": [], "outcome": []}
    sizes: list[int] = []
    memories: list[int] = []
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
            unlogged[event.seq] = len(memories)
        decisions["decision"].append(event.seq)
        decisions["pack_hash"].append(body.get("pack"))
        sizes.append(len(ids))
        memories += ids
        flags += [memory in probes for memory in ids] if probes else [False] * len(ids)
    if unlogged:
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
            | {
                "memory_id": np.array(memories, dtype=np.int64),
                "probe": np.array(flags, dtype=bool),
            }
        ),
        pl.DataFrame(
            feedback, schema={"decision": pl.Int64, "memory_id": pl.Int64, "outcome": pl.String}
        ),
    )

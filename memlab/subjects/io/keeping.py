"""The retention of a lab's log: disk usage, and thinning of old recalls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Literal, NamedTuple

import msgspec
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.clock import DAY, INSTANT, from_micros
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import count_of, printable
from memlab.kernel.journal import Body, Journal, data_file, digest_parts
from memlab.kernel.slates import Segment, thin_parts
from memlab.kernel.storage.store import Store


class _Row(NamedTuple):
    """The planned change of one segment of the log."""

    act: Literal["thin", "drop"]
    after: int
    upto: int
    recalls: int
    first: datetime
    last: datetime
    bytes: int


# The columns of ``Thinning.frame``: the fields of _Row.
_SCHEMA: dict[str, pl.DataType] = {
    "act": pl.String(),
    "after": pl.Int64(),
    "upto": pl.Int64(),
    "recalls": pl.Int64(),
    "first": INSTANT,
    "last": INSTANT,
    "bytes": pl.Int64(),
}

_LOG_DAYS = "log-days"
"""The key of the journal's metadata under which the retention times are stored."""

_ENDS = {
    "thin": "Single policies and expressions over features can no longer be evaluated on {span}. Packs can, by "
    "recalling again, which takes longer. Scores, ranks, propensities, results and feedback are kept",
    "drop": "Nothing can be evaluated on {span} any more: queries, scores, results and feedback are removed",
}
"""Sentences about the analyses that a change of the log makes impossible, by the kind of change."""


@dataclass(frozen=True)
class Usage(Displayed):
    """The disk space that each part of a lab takes.

    Attributes
    ----------
    frame
        One row for each part, largest first, with the columns what, count and bytes.

    Examples
    --------
    >>> memlab.open().upkeep.usage().frame.columns
    ['what', 'count', 'bytes']
    """

    frame: pl.DataFrame

    @property
    def total(self) -> int:
        """The size of all files in bytes."""
        return int(self.frame["bytes"].sum())

    def __repr__(self) -> str:
        lines = [f"{size:>15,} {what} ({count:,})" for what, count, size in self.frame.iter_rows()]
        return printable("\n".join([f"<Usage: {self.total:,} bytes", *lines]) + ">")

    def _display(self) -> object:
        return f"{self.total:,} bytes", self.frame


@dataclass(frozen=True)
class Thinning(Displayed):
    """The effect of thinning a log, or a plan for it.

    Attributes
    ----------
    frame
        One row for each segment. ``act`` is "thin" or "drop". The ``recalls`` of the segment lie
        after the event ``after``, up to the event ``upto``, between the times ``first`` and
        ``last``. ``bytes`` is the space that is freed.
    ends
        Sentences that say which analyses become impossible.
    done
        True if the log was thinned, False for a plan.

    Examples
    --------
    >>> memlab.open().upkeep.thin()
    <Thinning: nothing to thin, no sealed recall is older than the days that the lab keeps>
    """

    frame: pl.DataFrame
    ends: tuple[str, ...]
    done: bool = False

    @property
    def bytes(self) -> int:
        """The number of bytes that the plan frees."""
        return int(self.frame["bytes"].sum())

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        if self.frame.is_empty():
            return "<Thinning: nothing to thin, no sealed recall is older than the days that the lab keeps>"
        counts = {act: self.frame.filter(act=act)["recalls"].sum() for act in ("thin", "drop")}
        acts = [
            f"{count_of(int(counts[act]), 'recall')} {word}"
            for act, word in (("thin", "thinned"), ("drop", "dropped"))
        ]
        state = "" if self.done else "; not done yet: call lab.upkeep.thin(consent=True)"
        head = f"<Thinning: {', '.join(acts)}, {self.bytes:,} bytes{state}"
        return printable("\n".join([head, *(f"  {sentence}" for sentence in self.ends)]) + ">")

    def _display(self) -> object:
        return *repr(self).strip("<>").splitlines(), self.frame


@dataclass
class _Plan:
    """The planned changes of segments, and the packs whose challenges these segments record."""

    rows: list[_Row] = field(default_factory=list)
    parts: dict[int, dict[str, bytes]] = field(default_factory=dict)
    challenged: dict[str, set[str]] = field(default_factory=lambda: {"thin": set(), "drop": set()})


class LabKeeping:
    """The retention of a lab's log."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def usage(self) -> Usage:
        """Return the disk space that each part of the lab takes; see ``lab.upkeep.usage``."""
        folder, journal = self._store.folder, self._store.journal
        rows = [row for row in journal.usage() if row[1]] if isinstance(journal, Journal) else []
        if folder is not None:
            own = data_file(folder).name
            counted = sum(size for _, _, size in rows)
            database = sum(file.stat().st_size for file in folder.glob(own))
            # The journal counts the bytes of its content. The other bytes of its file are SQLite's own structures.
            rows.append(("keys, sums and indexes of the database", 1, max(database - counted, 0)))
            others = [path for path in folder.iterdir() if path.name != own]
            for path in others:
                files = [file for file in (path, *path.rglob("*")) if file.is_file()]
                rows.append((path.name, len(files), sum(file.stat().st_size for file in files)))
        schema = {"what": pl.String, "count": pl.Int64, "bytes": pl.Int64}
        return Usage(pl.DataFrame(rows, schema=schema, orient="row").sort("bytes", descending=True))

    def log_days(
        self, full_days: float | None = None, thin_days: float | None = None
    ) -> dict[str, float]:
        """Set the retention times that are passed, and return all retention times of the log.

        See ``lab.upkeep.log_days``.
        """
        journal = self._store.journal
        stored = msgspec.json.decode(journal.meta(_LOG_DAYS) or "{}", type=dict[str, float])
        changes = {"full_days": full_days, "thin_days": thin_days}
        days = {"full_days": 0.0, "thin_days": 0.0} | stored
        if full_days is not None or thin_days is not None:
            days |= {name: float(value) for name, value in changes.items() if value is not None}
            _check_days(**days)
            with journal.write() as tx:
                tx.meta(_LOG_DAYS, msgspec.json.encode(days).decode())
        return days

    def thin(self, *, full_days: float | None, thin_days: float | None, consent: bool) -> Thinning:
        """Thin the log, or only return the plan if ``consent`` is False.

        See ``lab.upkeep.thin``.
        """
        store = self._store
        days = self.log_days()
        full = days["full_days"] if full_days is None else full_days
        thin = days["thin_days"] if thin_days is None else thin_days
        _check_days(full, thin)
        store.seal_if_due()
        if not consent:
            return self._describe(self._plan(full, thin), done=False)
        with store.writing() as tx:
            plan = self._plan(full, thin)
            for row in plan.rows:
                if row.act == "thin":
                    tx.segment(row.upto, plan.parts[row.upto], {})
                else:
                    tx.drop_slates(row.after, row.upto)
            for act in dict.fromkeys(row.act for row in plan.rows):
                tx.event("thin", _build_body(act, plan), at=store.clock())
        return self._describe(plan, done=True)

    def _plan(self, full: float, thin: float) -> _Plan:
        """Plan to drop segments older than ``thin`` days, and to thin others older than ``full`` days; 0 means never."""
        journal, now, after = self._store.journal, self._store.clock(), 0
        plan = _Plan()
        for upto, digest in journal.segments().items() if isinstance(journal, Journal) else ():
            if digest is not None:
                segment = Segment(partial(journal.segment_part, upto))
                age = (now - segment.recalls.at[-1]) / DAY
                if 0 < thin < age:
                    self._add(plan, "drop", after, upto, segment)
                elif 0 < full < age and not segment.thinned:
                    self._add(plan, "thin", after, upto, segment)
            after = upto
        return plan

    def _add(
        self, plan: _Plan, act: Literal["thin", "drop"], after: int, upto: int, segment: Segment
    ) -> None:
        """Add the thinning or dropping of a segment to the plan, with the number of freed bytes."""
        parts = self._store.journal.segment_parts(upto)  # type: ignore[union-attr]  # a journal, as it has segments
        size = sum(map(len, parts.values()))
        if act == "thin":
            plan.parts[upto] = thin_parts(
                parts, when=f"{from_micros(self._store.clock()):%Y-%m-%d}"
            )
            size -= sum(map(len, plan.parts[upto].values()))
        first, last = from_micros(segment.recalls.at[0]), from_micros(segment.recalls.at[-1])
        plan.rows.append(_Row(act, after, upto, segment.meta.count, first, last, size))
        for challenge in segment.recalls.challenge:
            plan.challenged[act] |= set(challenge["heads"] if challenge else ())

    def _describe(self, plan: _Plan, *, done: bool) -> Thinning:
        """Return a report of the recall logs that a plan thins or drops."""
        frame = pl.DataFrame(plan.rows, schema=_SCHEMA, orient="row")
        return Thinning(frame, tuple(_ends(plan)), done)


def _check_days(full_days: float, thin_days: float) -> None:
    """Raise InputError if recall logs would be dropped before they could be thinned."""
    if 0 < thin_days < full_days:
        raise InputError(
            f"Slates would be dropped after {thin_days:g} days, before they are thinned after {full_days:g} days. "
            "thin_days must be 0 or at least full_days."
        )


def _build_body(act: str, plan: _Plan) -> Body:
    """Build the event body that lists thinned or dropped segments of recall logs."""
    chosen = [row for row in plan.rows if row.act == act]
    parts = [plan.parts.get(row.upto) if act == "thin" else None for row in chosen]
    digests = [None if part is None else digest_parts(sorted(part.items())) for part in parts]
    recalls = [row.recalls for row in chosen]
    return {"upto": [row.upto for row in chosen], "recalls": recalls, "digest": digests, "to": act}


def _ends(plan: _Plan) -> Iterator[str]:
    """Yield sentences about the analyses that a plan makes impossible."""
    for act, sentence in _ENDS.items():
        rows = [row for row in plan.rows if row.act == act]
        if rows:
            first, last = min(row.first for row in rows), max(row.last for row in rows)
            count = sum(row.recalls for row in rows)
            span = f"the {count:,} recalls from {first:%Y-%m-%d} to {last:%Y-%m-%d}"
            names = sorted(plan.challenged[act]) if act == "drop" else []
            more = f"; verdicts on {', '.join(names)} lose this evidence" if names else ""
            yield f"{sentence.format(span=span)}{more}."

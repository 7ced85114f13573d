"""What a lab keeps of its log, and for how long: who takes the space, and what thinning would end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.clock import DAY, from_micros
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.journal import Journal, digest_parts
from memlab.kernel.slates import Segment, thin_parts
from memlab.kernel.storage.store import Store

__all__ = ["LabKeeping", "Thinning", "Usage"]


class _Row(NamedTuple):
    """What is to become of a segment."""

    act: Literal["thin", "drop"]
    after: int
    upto: int
    recalls: int
    first: datetime
    last: datetime
    bytes: int


_SCHEMA: dict[str, pl.DataType] = {
    "act": pl.String(),
    "after": pl.Int64(),
    "upto": pl.Int64(),
    "recalls": pl.Int64(),
    "first": pl.Datetime("us", "UTC"),
    "last": pl.Datetime("us", "UTC"),
    "bytes": pl.Int64(),
}

_LOG_DAYS = "log-days"
"""The value of the journal that says how long slates are kept."""

_ENDS = {
    "thin": "Single policies and expressions over features cannot be evaluated on {span}; a pack can, by recalling "
    "again, which takes longer. Scores, ranks, propensities, what was shown and what was judged stay",
    "drop": "Nothing can be concluded from {span} any more: queries, scores, what was shown and judgements go",
}
"""Which questions end, by what is done."""


@dataclass(frozen=True)
class Usage(Displayed):
    """Disk space of a lab by part: ``frame`` has what, count and bytes, the largest part first."""

    frame: pl.DataFrame

    @property
    def total(self) -> int:
        """Bytes of all files."""
        return int(self.frame["bytes"].sum())

    def __repr__(self) -> str:
        lines = [f"{size:>15,} {what} ({count:,})" for what, count, size in self.frame.iter_rows()]
        return printable("\n".join([f"<Usage: {self.total:,} bytes", *lines]) + ">")

    def _display(self) -> object:
        return f"{self.total:,} bytes", self.frame


@dataclass(frozen=True)
class Thinning(Displayed):
    """What thinning a log takes away, by segment, and what ends with it; ``done`` says whether it was carried out.

    ``frame`` has a row for each segment: ``act`` ("thin" or "drop"), the events ``after`` and ``upto`` between which
    its ``recalls`` lie, when the ``first`` and the ``last`` was, and the ``bytes`` that go. ``ends`` says in sentences
    which questions cannot be answered any more.
    """

    frame: pl.DataFrame
    ends: tuple[str, ...]
    done: bool = False

    @property
    def bytes(self) -> int:
        """How many bytes of the log go."""
        return int(self.frame["bytes"].sum())

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        if self.frame.is_empty():
            return "<Thinning: nothing to thin, no sealed recall is older than the days that the lab keeps>"
        counts = {act: self.frame.filter(act=act)["recalls"].sum() for act in ("thin", "drop")}
        acts = [
            f"{counts[act]:,} recalls {word}"
            for act, word in (("thin", "thinned"), ("drop", "dropped"))
        ]
        state = "" if self.done else "; nothing is changed yet: lab.upkeep.thin(consent=True)"
        head = f"<Thinning: {', '.join(acts)}, {self.bytes:,} bytes{state}"
        return printable("\n".join([head, *(f"  {one}" for one in self.ends)]) + ">")

    def _display(self) -> object:
        return *repr(self).strip("<>").splitlines(), self.frame


@dataclass
class _Plan:
    """What is to become of segments, with the challenges and packs that logged in them."""

    rows: list[_Row] = field(default_factory=list)
    parts: dict[int, dict[str, bytes]] = field(default_factory=dict)
    challenged: dict[str, set[str]] = field(default_factory=lambda: {"thin": set(), "drop": set()})


class LabKeeping:
    """How long a lab keeps its log."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def usage(self) -> Usage:
        """See ``lab.upkeep.usage``."""
        folder, journal = self._store.folder, self._store.journal
        rows = [row for row in journal.usage() if row[1]] if isinstance(journal, Journal) else []
        if folder is not None:
            held = sum(size for _, _, size in rows)
            database = sum(file.stat().st_size for file in folder.glob("journal.db"))
            rows.append(("keys, sums and indexes of the database", 1, max(database - held, 0)))
            others = [path for path in folder.iterdir() if path.name != "journal.db"]
            for path in others:
                files = [file for file in (path, *path.rglob("*")) if file.is_file()]
                rows.append((path.name, len(files), sum(file.stat().st_size for file in files)))
        schema = {"what": pl.String, "count": pl.Int64, "bytes": pl.Int64}
        return Usage(pl.DataFrame(rows, schema=schema, orient="row").sort("bytes", descending=True))

    def log_days(
        self, full_days: float | None = None, thin_days: float | None = None
    ) -> dict[str, float]:
        """See ``lab.upkeep.log_days``."""
        journal = self._store.journal
        kept = msgspec.json.decode(journal.meta(_LOG_DAYS) or "{}", type=dict[str, float])
        given = {"full_days": full_days, "thin_days": thin_days}
        days = {"full_days": 0.0, "thin_days": 0.0} | kept
        if full_days is not None or thin_days is not None:
            days |= {name: float(value) for name, value in given.items() if value is not None}
            _check_days(**days)
            with journal.write() as tx:
                tx.meta(_LOG_DAYS, msgspec.json.encode(days).decode())
        return days

    def thin(self, *, full_days: float | None, thin_days: float | None, consent: bool) -> Thinning:
        """See ``lab.upkeep.thin``."""
        store = self._store
        kept = self.log_days()
        full = kept["full_days"] if full_days is None else full_days
        thin = kept["thin_days"] if thin_days is None else thin_days
        _check_days(full, thin)
        store.seal_if_due()
        if not consent:
            plan = self._plan(full, thin)
            return self._told(plan, done=False)
        with store.writing() as tx:
            plan = self._plan(full, thin)
            for row in plan.rows:
                if row.act == "thin":
                    tx.segment(row.upto, plan.parts[row.upto], {})
                else:
                    tx.drop_slates(row.after, row.upto)
            for act in dict.fromkeys(row.act for row in plan.rows):
                tx.event("thin", _body(act, plan), at=store.clock())
        return self._told(plan, done=True)

    def _plan(self, full: float, thin: float) -> _Plan:
        """What is too old: whole segments, of which the last recall is."""
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

    def _told(self, plan: _Plan, *, done: bool) -> Thinning:
        frame = pl.DataFrame(plan.rows, schema=_SCHEMA, orient="row")
        return Thinning(frame, tuple(_ends(plan)), done)


def _check_days(full_days: float, thin_days: float) -> None:
    if 0 < thin_days < full_days:
        raise InputError(
            f"Slates are dropped after {thin_days:g} days, before they lose their features after {full_days:g}. "
            "Give thin_days that is not less than full_days, or 0."
        )


def _body(act: str, plan: _Plan) -> dict[str, Any]:
    """The event that tells of it: the digest of each segment from now on."""
    chosen = [row for row in plan.rows if row.act == act]
    parts = [plan.parts.get(row.upto) if act == "thin" else None for row in chosen]
    digests = [None if one is None else digest_parts(sorted(one.items())) for one in parts]
    recalls = [row.recalls for row in chosen]
    return {"upto": [row.upto for row in chosen], "recalls": recalls, "digest": digests, "to": act}


def _ends(plan: _Plan) -> Iterator[str]:
    """Which questions end, in sentences."""
    for act, what in _ENDS.items():
        rows = [row for row in plan.rows if row.act == act]
        if rows:
            first, last = min(row.first for row in rows), max(row.last for row in rows)
            count = sum(row.recalls for row in rows)
            span = f"the {count:,} recalls from {first:%Y-%m-%d} to {last:%Y-%m-%d}"
            names = sorted(plan.challenged[act]) if act == "drop" else []
            more = f"; verdicts on {', '.join(names)} lose this evidence" if names else ""
            yield f"{what.format(span=span)}{more}."

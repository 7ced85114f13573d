"""A lab as a bundle: what it is called, its journal as a table, and another lab's folder read without its embedder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import msgspec
import polars as pl

from memlab.io.formats.exports.bundle import Bundle, bundle_of
from memlab.io.formats.exports.policies import policies_of
from memlab.kernel.journal import FILE, FORMAT, HEAD, Event, Journal
from memlab.kernel.policies import VOCABULARY, VersionLog
from memlab.kernel.state import State, policy_events

__all__ = ["events_of", "is_lab", "lab_id", "read_lab"]


class Chronicle(Protocol):
    """A journal, or as much of one as a past has."""

    @property
    def head(self) -> int: ...
    def events(self, after: int = 0, *, upto: int | None = None) -> Iterator[Event]: ...


def is_lab(path: Path, head: str) -> bool:
    """Return whether a folder holds a lab."""
    return path.is_dir() and ((path / FILE).exists() or (path / HEAD).exists())


def lab_id(journal: Chronicle) -> str:
    """What tells a lab from others: the first two events of its journal, which say when it was made and with what.

    It needs no write, so a read-only lab has one too. A copy of a lab has the same one, and two labs of one instant
    may: so an import takes a memory for one that is here only if its text and its time agree as well. Numbers of
    versions are left out: they tell memlabs from one another, and not labs.
    """
    digest = hashlib.blake2b(digest_size=8)
    for event in journal.events(upto=min(2, journal.head)):
        body = {name: value for name, value in event.body.items() if name not in (FORMAT, VOCABULARY)}
        digest.update(msgspec.msgpack.encode((event.at, event.kind, body)))
    return digest.hexdigest()


def events_of(journal: Chronicle) -> pl.DataFrame:
    """``seq``, ``at`` (UTC), ``kind`` and ``body`` (JSON) of every event."""
    rows = [(event.seq, event.at, event.kind, msgspec.json.encode(event.body).decode()) for event in journal.events()]
    schema = {"seq": pl.Int64, "at": pl.Int64, "kind": pl.String, "body": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col("at").cast(pl.Datetime("us", "UTC")))


def read_lab(folder: Path, state: State, *, now: int) -> Bundle:
    """Everything in the lab at ``folder``, folded from its journal into a new ``state``.

    Raises NotALab, NewerLab, DamagedLab.
    """
    with Journal.open(folder, read_only=True, create=False) as journal:
        versions = VersionLog()
        upto = journal.head
        for event in journal.events(kinds=policy_events(), upto=upto):
            versions.fold(event, journal.source)
        state.fold(journal.events(upto=upto), journal)
        policies = None if versions.empty else policies_of(versions)
        bundle = bundle_of(state, lab=lab_id(journal), now=now, policies=policies)
    return replace(bundle, source=folder.name)

"""The folder of a lab as a bundle, and the policies of a lab as an export tells them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import msgspec
import polars as pl

from memlab.errors import DatasetError, MemlabError, NewerLab
from memlab.io.formats.bundle import Bundle, bundle_of
from memlab.io.formats.records import time_text
from memlab.kernel.journal import FILE, FORMAT, HEAD, Event, Journal
from memlab.kernel.language import compile_policy
from memlab.kernel.policies import (
    POLICY_FORMAT,
    SLOTS,
    VOCABULARY,
    Pack,
    Version,
    VersionLog,
    get_slot,
    naming_vocabulary,
    pack_from_sources,
)
from memlab.kernel.state import State, policy_events

__all__ = ["events_of", "is_lab", "lab_id", "pack_of", "policies_of", "read_lab"]

_UNNUMBERED = 2
"""The vocabulary of an export that names none. The two up to it differ by one slot, so none is read as another."""


def policies_of(versions: VersionLog) -> dict[str, Any]:
    """The texts of the live pack, what was installed over them, and every version of every slot."""
    live = versions.pack
    read = pack_from_sources(live.sources)
    installed = {
        slot: {
            "source": policy.source,
            "helpers": list(policy.helpers),
            "params": _params(policy.params),
        }
        for slot, policy in live.policies.items()
        if read.policies[slot].hash != policy.hash
    }
    history = [
        {
            "slot": version.slot,
            "version": version.number,
            "at": time_text(version.at),
            "action": version.action,
            "pack": version.pack,
            "hash": version.hash,
            "source": version.source,
            "helpers": list(version.helpers),
            "params": dict(version.params),
            "reason": version.reason,
        }
        for slot in SLOTS
        for version in _told(versions, slot)
    ]
    vocabulary = {VOCABULARY: POLICY_FORMAT} if POLICY_FORMAT > _UNNUMBERED else {}
    return vocabulary | {
        "pack": live.name,
        "hash": live.hash,
        "sources": list(live.sources),
        "installed": installed,
        "history": history,
    }


def _told(versions: VersionLog, slot: str) -> tuple[Version, ...]:
    """Return the versions of a slot; none of one that never had more than the default declared with it."""
    known = versions.versions(slot)
    return () if SLOTS[slot].source and len(known) == 1 else known


def _params(params: Mapping[str, Any]) -> dict[str, float]:
    return {param.name: param.value for param in params.values() if param.value != param.default}


def pack_of(policies: Mapping[str, Any], source: str) -> Pack:
    """Compile the pack that an export tells.

    Raises DatasetError where there is none, NewerLab where it needs words of a later vocabulary.
    """
    texts, installed = policies.get("sources"), policies.get("installed", {})
    if not _texts(texts) or not texts or not isinstance(installed, dict):
        raise DatasetError(
            f"{source}, policies: sources are the texts of a pack, and installed is what came after."
        )
    place = f"{source}, policies"
    try:
        with naming_vocabulary(place, policies.get(VOCABULARY, _UNNUMBERED)):
            pack = pack_from_sources(tuple(texts))
            for slot, record in installed.items():
                signature = get_slot(slot).signature
                helpers, params = _parts_of(record, f"{place}, field {slot}")
                policy = compile_policy(
                    record["source"], signature, name=slot, params=params, helpers=helpers
                )
                pack = pack.with_policy(slot, policy)
    except (DatasetError, NewerLab):
        raise
    except MemlabError as error:
        raise DatasetError(f"{place}: {error}") from None
    return pack


def _parts_of(record: Any, place: str) -> tuple[tuple[str, ...], dict[str, float]]:
    """Return helpers and parameters of an installed policy."""
    whole = (
        isinstance(record, dict)
        and isinstance(record.get("source"), str)
        and _texts(record.get("helpers"))
    )
    if not whole:
        raise DatasetError(f"{place}: A policy has a source and helpers.")
    params = record.get("params") or {}
    if not isinstance(params, dict) or not all(
        isinstance(value, int | float) for value in params.values()
    ):
        raise DatasetError(f"{place}: params are numbers by name.")
    return tuple(record["helpers"]), params


def _texts(value: object) -> bool:
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(isinstance(item, str) for item in value)
    )


# -- folders of labs --------------------------------------------------------------------------------------------------


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
        body = {
            name: value for name, value in event.body.items() if name not in (FORMAT, VOCABULARY)
        }
        digest.update(msgspec.msgpack.encode((event.at, event.kind, body)))
    return digest.hexdigest()


def events_of(journal: Chronicle) -> pl.DataFrame:
    """``seq``, ``at`` (UTC), ``kind`` and ``body`` (JSON) of every event."""
    rows = [
        (event.seq, event.at, event.kind, msgspec.json.encode(event.body).decode())
        for event in journal.events()
    ]
    schema = {"seq": pl.Int64, "at": pl.Int64, "kind": pl.String, "body": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        pl.col("at").cast(pl.Datetime("us", "UTC"))
    )


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

"""Folders of labs as bundles, and policies of a lab in an export."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import msgspec
import polars as pl

from memlab.errors import DatasetError, MemlabError, NewerLab
from memlab.io.formats.bundle import Bundle, build_bundle
from memlab.io.formats.records import format_time
from memlab.kernel.base.clock import INSTANT
from memlab.kernel.journal import FILE, FORMAT, HEAD, Event, Journal, KeySource
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

_UNNUMBERED = 2
"""Vocabulary of an export without a number. Vocabularies 1 and 2 differ by one slot only."""


def export_policies(versions: VersionLog) -> dict[str, Any]:
    """Return the active pack, installed policies and version history for an export.

    The result has the texts of the active pack, policies installed over it, and the history of
    every slot.
    """
    pack = versions.pack
    unchanged = pack_from_sources(pack.sources)
    installed = {
        slot: {
            "source": policy.source,
            "helpers": list(policy.helpers),
            "params": _list_changed_params(policy.params),
        }
        for slot, policy in pack.differing(unchanged).items()
    }
    history = [
        {
            "slot": version.slot,
            "version": version.number,
            "at": format_time(version.at),
            "action": version.action,
            "pack": version.pack,
            "hash": version.hash,
            "source": version.source,
            "helpers": list(version.helpers),
            "params": dict(version.params),
            "reason": version.reason,
        }
        for slot in SLOTS
        for version in _list_versions(versions, slot)
    ]
    return {
        VOCABULARY: POLICY_FORMAT,
        "pack": pack.name,
        "hash": pack.hash,
        "sources": list(pack.sources),
        "installed": installed,
        "history": history,
    }


def _list_versions(versions: VersionLog, slot: str) -> tuple[Version, ...]:
    """Return the versions of a slot, or () if only the default was ever installed."""
    history = versions.versions(slot)
    return () if SLOTS[slot].source and len(history) == 1 else history


def _list_changed_params(params: Mapping[str, Any]) -> dict[str, float]:
    """Return the values, by name, of the parameters that differ from their defaults."""
    return {param.name: param.value for param in params.values() if param.value != param.default}


def restore_pack(policies: Mapping[str, Any], source: str) -> Pack:
    """Compile the pack of an export.

    Raises DatasetError if the export has no valid pack, and NewerLab if the pack needs a later
    version of memlab.
    """
    texts, installed = policies.get("sources"), policies.get("installed", {})
    if not _is_texts(texts) or not texts or not isinstance(installed, dict):
        raise DatasetError(
            f"{source}, policies: sources must be a list of policy texts, and installed an object of slots."
        )
    location = f"{source}, policies"
    try:
        with naming_vocabulary(location, policies.get(VOCABULARY, _UNNUMBERED)):
            pack = pack_from_sources(tuple(texts))
            for slot, record in installed.items():
                signature = get_slot(slot).signature
                helpers, params = _read_parts(record, f"{location}, field {slot}")
                policy = compile_policy(
                    record["source"], signature, name=slot, params=params, helpers=helpers
                )
                pack = pack.with_policy(slot, policy)
    except (DatasetError, NewerLab):
        raise
    except MemlabError as error:
        raise DatasetError(f"{location}: {error}") from None
    return pack


def _read_parts(record: Any, location: str) -> tuple[tuple[str, ...], dict[str, float]]:
    """Check the record of an installed policy, and return its helpers and parameters."""
    whole = (
        isinstance(record, dict)
        and isinstance(record.get("source"), str)
        and _is_texts(record.get("helpers"))
    )
    if not whole:
        raise DatasetError(f"{location}: A policy must have a source and helpers.")
    params = record.get("params") or {}
    if not isinstance(params, dict) or not all(
        isinstance(value, int | float) for value in params.values()
    ):
        raise DatasetError(f"{location}: params must be numbers by name.")
    return tuple(record["helpers"]), params


def _is_texts(value: object) -> bool:
    """Return whether a value is a sequence of texts."""
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(isinstance(item, str) for item in value)
    )


# -- folders of labs --------------------------------------------------------------------------------------------------


class Chronicle(Protocol):
    """The events of a journal, or of the part that a past lab shows."""

    @property
    def head(self) -> int:
        """The number of the last event."""
        ...

    def events(self, after: int = 0, *, upto: int | None = None) -> Iterator[Event]:
        """Yield the events with numbers above ``after``, up to and including ``upto``."""
        ...


def is_lab(path: Path, start: str) -> bool:
    """Return whether a folder contains a lab."""
    return path.is_dir() and ((path / FILE).exists() or (path / HEAD).exists())


def compute_lab_id(journal: Chronicle) -> str:
    """Return the fingerprint of a lab, from the first two events of its journal.

    These events contain the time of creation and the embedder. A fingerprint is computed, so a
    read-only lab has one too. Copies of a lab have the same fingerprint, and so may labs that were
    created at the same instant. An import therefore also compares text and time before it treats
    two memories as one. The fingerprint excludes version numbers, which depend on the version of
    memlab.
    """
    digest = hashlib.blake2b(digest_size=8)
    for event in journal.events(upto=min(2, journal.head)):
        body = {
            name: value for name, value in event.body.items() if name not in (FORMAT, VOCABULARY)
        }
        digest.update(msgspec.msgpack.encode((event.at, event.kind, body)))
    return digest.hexdigest()


def build_event_frame(journal: Chronicle) -> pl.DataFrame:
    """Return all events as a frame: ``seq``, ``at`` (UTC), ``kind``, ``body`` (JSON)."""
    rows = [
        (event.seq, event.at, event.kind, msgspec.json.encode(event.body).decode())
        for event in journal.events()
    ]
    schema = {"seq": pl.Int64, "at": pl.Int64, "kind": pl.String, "body": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col("at").cast(INSTANT))


def read_lab(folder: Path, state: State, *, now: int, key: KeySource | None = None) -> Bundle:
    """Apply the events of a lab in a folder to ``state``, and return the memories as a bundle.

    ``key`` opens an encrypted lab. Raises NotALab, NewerLab, DamagedLab or WrongKey.
    """
    with Journal.open(folder, read_only=True, create=False, key=key) as journal:
        versions = VersionLog()
        upto = journal.head
        for event in journal.events(kinds=policy_events(), upto=upto):
            versions.fold(event, journal.source)
        state.fold(journal.events(upto=upto), journal)
        policies = None if versions.empty else export_policies(versions)
        bundle = build_bundle(state, lab=compute_lab_id(journal), now=now, policies=policies)
    return replace(bundle, source=folder.name)

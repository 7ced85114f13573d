"""The live pack and the history of its policies, as an export tells them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memlab.errors import DatasetError, MemlabError, NewerLab
from memlab.io.formats.exports.records import time_text
from memlab.kernel.language import compile_policy
from memlab.kernel.policies import (
    POLICY_FORMAT,
    SLOTS,
    VOCABULARY,
    Pack,
    Version,
    VersionLog,
    naming_vocabulary,
    pack_from_sources,
    slot_named,
)

__all__ = ["pack_of", "policies_of"]

_UNNUMBERED = 2
"""The vocabulary of an export that names none. The two up to it differ by one slot, so none is read as another."""


def policies_of(versions: VersionLog) -> dict[str, Any]:
    """The texts of the live pack, what was installed over them, and every version of every slot."""
    live = versions.pack
    read = pack_from_sources(live.sources)
    installed = {
        slot: {"source": policy.source, "helpers": list(policy.helpers), "params": _params(policy.params)}
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
        raise DatasetError(f"{source}, policies: sources are the texts of a pack, and installed is what came after.")
    place = f"{source}, policies"
    try:
        with naming_vocabulary(place, policies.get(VOCABULARY, _UNNUMBERED)):
            pack = pack_from_sources(tuple(texts))
            for slot, record in installed.items():
                signature = slot_named(slot).signature
                helpers, params = _parts_of(record, f"{place}, field {slot}")
                policy = compile_policy(record["source"], signature, name=slot, params=params, helpers=helpers)
                pack = pack.with_policy(slot, policy)
    except (DatasetError, NewerLab):
        raise
    except MemlabError as error:
        raise DatasetError(f"{place}: {error}") from None
    return pack


def _parts_of(record: Any, place: str) -> tuple[tuple[str, ...], dict[str, float]]:
    """Return helpers and parameters of an installed policy."""
    whole = isinstance(record, dict) and isinstance(record.get("source"), str) and _texts(record.get("helpers"))
    if not whole:
        raise DatasetError(f"{place}: A policy has a source and helpers.")
    params = record.get("params") or {}
    if not isinstance(params, dict) or not all(isinstance(value, int | float) for value in params.values()):
        raise DatasetError(f"{place}: params are numbers by name.")
    return tuple(record["helpers"]), params


def _texts(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(item, str) for item in value)

"""Which extensions a policy or a pack needs: those that declared what it reads, decides or sets."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from memlab.errors import ExtensionWarning
from memlab.kernel.extension import missing
from memlab.kernel.language import Policy
from memlab.kernel.policies._features import FEATURES
from memlab.kernel.policies._settings import SETTINGS
from memlab.kernel.policies._slots import SLOTS
from memlab.kernel.registry import split_owner

if TYPE_CHECKING:
    from memlab.kernel.policies._packs import Pack

__all__ = ["logged_owner", "needs_of_pack", "needs_of_policy", "refusal_of", "warn_of_versions"]

_FINGERPRINT = re.compile(r"[0-9a-f]{16} ([a-z][a-z0-9-]*) (\S+)")
"""The fingerprint of an extension's feature: a hash, then name and version of the extension."""


def needs_of_policy(slot: str, policy: Policy) -> dict[str, str]:
    """Return the version of each extension that a policy of this slot needs, by name."""
    owners = [FEATURES[name].owner for name in _features_of(policy) if name in FEATURES]
    return _versions([SLOTS[slot].owner, *owners])


def needs_of_pack(pack: Pack) -> dict[str, str]:
    """Return the version of each extension that a pack needs, by name."""
    needs: dict[str, str] = {}
    for slot, policy in pack.policies.items():
        if not SLOTS[slot].owner or slot in pack.decided:
            needs |= needs_of_policy(slot, policy)
    given = [name for name, value in pack.settings.items() if value != SETTINGS[name].default]
    return needs | _versions(SETTINGS[name].owner for name in given)


def _features_of(policy: Policy) -> list[str]:
    """Return the features that a policy reads, those of pairs without their prefix."""
    return [name.removeprefix("new/").removeprefix("old/") for name in policy.inputs]


def _versions(owners: Iterable[str]) -> dict[str, str]:
    return dict(split_owner(owner) for owner in owners if owner)


def refusal_of(what: str, needs: Mapping[str, str] | None) -> str | None:
    """Return why ``what`` cannot be used here, if it needs an extension that is missing; None if it does not."""
    faults = missing(needs) if needs else []
    if not faults:
        return None
    return (
        f"{what} needs an extension: {'; '.join(faults)}. Install it, or register it with memlab.extend(...), and open "
        "the lab again; or put another pack to use with lab.policies.use(...)."
    )


def warn_of_versions(what: str, needs: Mapping[str, str] | None) -> None:
    """Warn where ``what`` was logged with another version of an extension than the one that is registered."""
    faults = missing(needs) if needs else []
    if faults:
        warnings.warn(f"{what} may decide otherwise than it did: {'; '.join(faults)}.", ExtensionWarning, stacklevel=4)


def logged_owner(fingerprint: object) -> str | None:
    """Return the extension whose feature was logged under this fingerprint; None for a feature of memlab."""
    found = _FINGERPRINT.fullmatch(fingerprint) if isinstance(fingerprint, str) else None
    return None if found is None else f"{found[1]} {found[2]}"

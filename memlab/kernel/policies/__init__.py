"""Packs, slots, settings, features and the versions of policies.

`load_pack` reads a pack. `SLOTS`, `FEATURES` and `SETTINGS` declare its possible contents. `VersionLog` folds the history
of the policies of a lab.
"""

from typing import Any

from memlab.kernel.extension import register_own
from memlab.kernel.former_paths import moved_name
from memlab.kernel.policies._features import FEATURES, Feature
from memlab.kernel.policies._given import (
    PolicyLike,
    SinglePolicy,
    as_pack,
    as_packs,
    list_policies,
    read_policy,
)
from memlab.kernel.policies._lineage import Lineage
from memlab.kernel.policies._packs import (
    DEFAULT_PACK,
    Challenge,
    ChallengeDesign,
    ExtraItems,
    Pack,
    PackLike,
    error_share,
    inherited_helpers,
    load_pack,
    logged_owner,
    needs_of_pack,
    needs_of_policy,
    pack_from_sources,
    pack_names,
    same_candidates,
)
from memlab.kernel.policies._settings import SETTINGS, Setting, check_setting
from memlab.kernel.policies._slots import SLOTS, Slot, get_slot
from memlab.kernel.policies._versions import (
    POLICY_FORMAT,
    VOCABULARY,
    Version,
    VersionLog,
    naming_vocabulary,
)

__all__ = [
    "DEFAULT_PACK",
    "FEATURES",
    "POLICY_FORMAT",
    "SETTINGS",
    "SLOTS",
    "VOCABULARY",
    "Challenge",
    "ChallengeDesign",
    "ExtraItems",
    "Feature",
    "Lineage",
    "Pack",
    "PackLike",
    "PolicyLike",
    "Setting",
    "SinglePolicy",
    "Slot",
    "Version",
    "VersionLog",
    "as_pack",
    "as_packs",
    "check_setting",
    "error_share",
    "get_slot",
    "inherited_helpers",
    "list_policies",
    "load_pack",
    "logged_owner",
    "naming_vocabulary",
    "needs_of_pack",
    "needs_of_policy",
    "pack_from_sources",
    "pack_names",
    "read_policy",
    "same_candidates",
]

register_own("features", "settings", "slots")

_MOVED = dict.fromkeys(
    ("Attribution", "PolicyDiff", "bind_form", "expand_form"), "memlab.subjects.lens"
)
"""Public names of earlier versions, and the package that contains them now."""


def __getattr__(name: str) -> Any:
    return moved_name(__name__, name, _MOVED)

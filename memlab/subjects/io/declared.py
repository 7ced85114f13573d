"""The declarations of the subject io: a projection, a hook and accessors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memlab.kernel.hooks import Hook
from memlab.kernel.verbs.declared import Declared, bind, construct
from memlab.subjects.io.synced import Synced

if TYPE_CHECKING:
    from memlab.kernel.verbs.verbs import Verbs


def _load(verbs: Verbs) -> Any:
    """Return the function that ``lab.load`` calls, bound to a lab's verbs."""
    from memlab.subjects.io.loading import LoadOptions, load

    def load_data(x: Any, *, progress: bool, **options: Any) -> Any:
        parts = (
            verbs.core,
            verbs.remembering,
            verbs.component("linker"),
            verbs.component("policies"),
            verbs.component("extraction"),
        )
        return load(x, LoadOptions(**options), *parts, progress=progress)

    return load_data


# Functions are named as strings, so that their modules are imported when a lab first uses them.
DECLARED = Declared(
    projections=(Synced,),
    hooks=(Hook("io-mirrors", "copies", "memlab.subjects.io.mirror:reach_mirrors"),),
    accessors={
        "backups": bind("memlab.subjects.io.backups:back_up_if_due", "store"),
        "io": construct("memlab.subjects.io.io:LabIO", "core", "reembedder"),
        "keeping": construct("memlab.subjects.io.keeping:LabKeeping", "store"),
        "load": _load,
        "mirrors": bind("memlab.subjects.io.io:reach_lost_mirrors", "store"),
    },
    lasting={"reembedder": construct("memlab.subjects.io.reembedding:Reembedder", "store")},
)

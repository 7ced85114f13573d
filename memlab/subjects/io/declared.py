"""What io declares to a lab."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memlab.kernel.hooks import Hook
from memlab.kernel.verbs.declared import Declared, bind, construct
from memlab.subjects.io.synced import Synced

if TYPE_CHECKING:
    from memlab.kernel.verbs.verbs import Verbs

__all__ = ["DECLARED"]


def _load(verbs: Verbs) -> Any:
    from memlab.subjects.io.loading import Given, load

    def load_given(x: Any, *, progress: bool, **given: Any) -> Any:
        parts = (
            verbs.core,
            verbs.remembering,
            verbs.component("linker"),
            verbs.component("policies"),
            verbs.component("extraction"),
        )
        return load(x, Given(**given), *parts, progress=progress)

    return load_given


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

"""What the subject modules adds to a lab: a projection, two hooks and an accessor."""

from __future__ import annotations

from memlab.kernel.hooks import Hook
from memlab.kernel.verbs.declared import Declared, construct
from memlab.subjects.modules.module_map import ModuleMaps

__all__ = ["DECLARED"]


# Functions are named as strings, so that their modules are imported when they are first used.
DECLARED = Declared(
    projections=(ModuleMaps,),
    hooks=(
        Hook("modules-delete", "delete-project", "memlab.subjects.modules.module_map:has_map"),
        Hook("modules-map", "project-map", "memlab.subjects.modules.module_map:words_of_map"),
    ),
    accessors={"modules": construct("memlab.subjects.modules.modules:LabModules", "core")},
)

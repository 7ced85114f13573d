"""The projection, the hooks and the accessor that modules add to a lab."""

from __future__ import annotations

from memlab.kernel.hooks import Hook
from memlab.kernel.verbs.declared import Declared, construct
from memlab.subjects.modules.module_map import ModuleMaps

# Functions are named by strings, so that their modules are imported on first use.
DECLARED = Declared(
    projections=(ModuleMaps,),
    hooks=(
        Hook("modules-delete", "delete-project", "memlab.subjects.modules.module_map:has_map"),
        Hook("modules-map", "project-map", "memlab.subjects.modules.module_map:words_of_map"),
    ),
    accessors={"modules": construct("memlab.subjects.modules.modules:LabModules", "core")},
)

"""What the subject purge adds to a lab: one accessor."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared, bind

# The function is named as a string, so that its module is imported at the first purge.
DECLARED = Declared(
    accessors={"purge": bind("memlab.subjects.purge.purge:purge", "core")},
)

"""Operations as S-expressions: ``(remember "tabs" "preference" 0.8 "30d" ["style"])``, ``(recall "tabs?" 5)``, ...

A text is read by the reader of policies, checked whole, and run by the verbs of a lab with fuel. A memory may hold
such a text and propose it; nothing runs it but a person's consent.
"""

from memlab.subjects.programs._adapt import Adapted, Estimator, Missing, adapt, of_fall
from memlab.subjects.programs._lab import OperableLab
from memlab.subjects.programs._program import Call, Program, checked_operations, read_program
from memlab.subjects.programs._ran import Fuel, Proposal, Ran, Step
from memlab.subjects.programs._revert import Fall, find_fall
from memlab.subjects.programs._run import run_program
from memlab.subjects.programs._table import OPERATIONS, Operation

__all__ = [
    "OPERATIONS",
    "Adapted",
    "Call",
    "Estimator",
    "Fall",
    "Fuel",
    "Missing",
    "OperableLab",
    "Operation",
    "Program",
    "Proposal",
    "Ran",
    "Step",
    "adapt",
    "checked_operations",
    "find_fall",
    "of_fall",
    "read_program",
    "run_program",
]

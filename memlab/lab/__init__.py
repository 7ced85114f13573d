"""``Lab``: every verb that a person uses, in parts by subject, each a few lines that call a room below."""

from memlab.lab._backup import Backup
from memlab.lab._correcting import Corrected, Purged
from memlab.lab._facts import Entity
from memlab.lab._lab import Lab, open_lab
from memlab.lab._moving import load_lab
from memlab.lab._quarantine import Quarantined
from memlab.lab._results import Feedback, Memory, Remembered

__all__ = [
    "Backup",
    "Corrected",
    "Entity",
    "Feedback",
    "Lab",
    "Memory",
    "Purged",
    "Quarantined",
    "Remembered",
    "load_lab",
    "open_lab",
]

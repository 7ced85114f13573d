"""Records of recalls.

The package has the slate of one recall and its encoding, the four tables of a log, and sealed segments of slates.
"""

from memlab.kernel.slates._schema import ATTRIBUTED, CONTENT, TABLES
from memlab.kernel.slates._segments import (
    THINNED,
    SealedLog,
    Segment,
    read_slates,
    seal,
    thin_parts,
)
from memlab.kernel.slates._slate import (
    Constants,
    Question,
    Slate,
    constants_of,
    decode,
    encode,
    is_sealed,
    question_of,
    with_question,
)
from memlab.kernel.slates._tables import Slates, feedback_table
from memlab.kernel.slates._wide import WIDE

__all__ = [
    "ATTRIBUTED",
    "CONTENT",
    "TABLES",
    "THINNED",
    "WIDE",
    "Constants",
    "Question",
    "SealedLog",
    "Segment",
    "Slate",
    "Slates",
    "constants_of",
    "decode",
    "encode",
    "feedback_table",
    "is_sealed",
    "question_of",
    "read_slates",
    "seal",
    "thin_parts",
    "with_question",
]

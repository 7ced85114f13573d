"""Read conversations of benchmarks and remember them as an agent would.

``read_locomo``, ``read_beam``, ``read_longmemeval`` and ``read_lmeb`` read the files of a benchmark into conversations
and, separately, their questions with evidence. Labels have two functions: ``correct_evidence`` applies corrected
labels, and ``read_questions`` reads labels for an existing lab. The function ``conversation`` remembers the turns of a
conversation. A lab never receives its questions or labels.
"""

from memlab.io.formats.chats import read_beam, read_lmeb, read_longmemeval
from memlab.io.formats.labelled import (
    Conversation,
    LabelledConversation,
    Question,
    Turn,
    WantedMemories,
    check_digest,
    conversation,
    digest,
    read_questions,
)
from memlab.io.formats.locomo import (
    LOCOMO_SHA256,
    LOCOMO_URL,
    correct_evidence,
    download_locomo,
    read_locomo,
)

__all__ = [
    "LOCOMO_SHA256",
    "LOCOMO_URL",
    "Conversation",
    "LabelledConversation",
    "Question",
    "Turn",
    "WantedMemories",
    "check_digest",
    "conversation",
    "correct_evidence",
    "digest",
    "download_locomo",
    "read_beam",
    "read_lmeb",
    "read_locomo",
    "read_longmemeval",
    "read_questions",
]

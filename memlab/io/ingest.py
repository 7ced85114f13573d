"""Conversations from outside, read and remembered as an agent would remember them.

``read_locomo``, ``read_beam``, ``read_longmemeval`` and ``read_lmeb`` read the files of a benchmark into conversations
and, apart from them, the questions and their evidence; ``correct_evidence`` gives other labels of the same questions,
and ``read_questions`` reads labels for a lab of one's own.
``conversation`` remembers the turns of one of them; of questions and labels nothing reaches a lab.
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

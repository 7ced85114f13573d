"""Conversations from outside, read and remembered as an agent would remember them.

``read_locomo``, ``read_beam``, ``read_longmemeval`` and ``read_lmeb`` read the files of a benchmark into conversations
and, apart from them, the questions and their evidence; ``correct_evidence`` gives other labels of the same questions,
and ``read_questions`` reads labels for a lab of one's own.
``conversation`` remembers the turns of one of them; of questions and labels nothing reaches a lab.
"""

from memlab.io.formats.benchmarks.beam import read_beam
from memlab.io.formats.benchmarks.conversation import Conversation, Turn, conversation
from memlab.io.formats.benchmarks.corrections import correct_evidence
from memlab.io.formats.benchmarks.download import LOCOMO_SHA256, LOCOMO_URL, download_locomo
from memlab.io.formats.benchmarks.files import check_digest, digest
from memlab.io.formats.benchmarks.labels import LabelledConversation, Question
from memlab.io.formats.benchmarks.lmeb import read_lmeb
from memlab.io.formats.benchmarks.locomo import read_locomo
from memlab.io.formats.benchmarks.longmemeval import read_longmemeval
from memlab.io.formats.benchmarks.questions import WantedMemories, read_questions

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

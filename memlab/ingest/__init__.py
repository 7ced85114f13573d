"""Conversations from outside, read and remembered as an agent would remember them.

``read_locomo`` reads a benchmark file into conversations and, apart from them, the questions and their evidence.
``conversation`` remembers the turns of one of them; of questions and labels nothing reaches a lab.
"""

from memlab.ingest._beam import read_beam
from memlab.ingest._conversation import Conversation, Turn, conversation
from memlab.ingest._download import LOCOMO_SHA256, LOCOMO_URL, download_locomo
from memlab.ingest._labels import LabelledConversation, Question
from memlab.ingest._locomo import read_locomo

__all__ = [
    "LOCOMO_SHA256",
    "LOCOMO_URL",
    "Conversation",
    "LabelledConversation",
    "Question",
    "Turn",
    "conversation",
    "download_locomo",
    "read_beam",
    "read_locomo",
]

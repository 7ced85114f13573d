"""The journal: everything that happens to a lab, in one order, durable once acknowledged.

It knows nothing of memories. It keeps events (a kind and a body), the texts and vectors that events refer to by id,
slates joined to an event, policy sources by hash, and named values.
"""

from memlab.journal._copy import copied, whole
from memlab.journal._event import Event
from memlab.journal._journal import Journal
from memlab.journal._lock import WriterLock
from memlab.journal._scrub import Scrub, expunge
from memlab.journal._transaction import Transaction
from memlab.journal._until import Until

__all__ = ["Event", "Journal", "Scrub", "Transaction", "Until", "WriterLock", "copied", "expunge", "whole"]

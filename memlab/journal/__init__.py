"""The journal: everything that happens to a lab, in one order, durable once acknowledged.

It knows nothing of memories. It keeps events (a kind and a body), the texts and vectors that events refer to by id,
slates joined to an event, policy sources by hash, and named values.
"""

from memlab.journal._check import Fault, faults, replace_rows
from memlab.journal._copy import connected, copied, head_of, is_complete, stamp
from memlab.journal._database import FILE, HEAD, LOCK, RESTORE, present
from memlab.journal._event import Event
from memlab.journal._event_formats import FORMAT, check_event_format
from memlab.journal._head import RESTORED, Head, HeadFile
from memlab.journal._journal import Journal
from memlab.journal._journal_view import JournalView
from memlab.journal._lock import WriterLock
from memlab.journal._migration import Mend
from memlab.journal._reading import Reading
from memlab.journal._scrub import Scrub
from memlab.journal._transaction import Transaction

__all__ = [
    "FILE",
    "FORMAT",
    "HEAD",
    "LOCK",
    "RESTORE",
    "RESTORED",
    "Event",
    "Fault",
    "Head",
    "HeadFile",
    "Journal",
    "JournalView",
    "Mend",
    "Reading",
    "Scrub",
    "Transaction",
    "WriterLock",
    "check_event_format",
    "connected",
    "copied",
    "faults",
    "head_of",
    "is_complete",
    "present",
    "replace_rows",
    "stamp",
]

"""The journal: everything that happens to a lab, in one order, durable once acknowledged.

It knows nothing of memories. It keeps events (a kind and a body), the texts and vectors that events refer to by id,
slates joined to an event, policy sources by hash, and named values.
"""

from memlab.kernel.journal._check import Fault, faults, replace_rows
from memlab.kernel.journal._copy import connected, copied, head_of, is_complete, stamp
from memlab.kernel.journal._database import FILE, HEAD, LOCK, RESTORE, present
from memlab.kernel.journal._event import Event
from memlab.kernel.journal._event_formats import FORMAT, check_event_format
from memlab.kernel.journal._head import RESTORED, Head, HeadFile
from memlab.kernel.journal._journal import Journal
from memlab.kernel.journal._journal_view import JournalView
from memlab.kernel.journal._lock import WriterLock
from memlab.kernel.journal._migration import Mend
from memlab.kernel.journal._reading import Reading
from memlab.kernel.journal._scrub import Scrub
from memlab.kernel.journal._sums import digest_of_parts
from memlab.kernel.journal._transaction import Transaction

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
    "digest_of_parts",
    "faults",
    "head_of",
    "is_complete",
    "present",
    "replace_rows",
    "stamp",
]

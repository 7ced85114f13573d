"""The journal: all events of a lab in one order.

An acknowledged event is durable.

The package knows nothing of memories. The package stores events (a kind and a body), and the texts
and vectors that events refer to by id. It also stores slates joined to events, policy sources by
hash, and named values.
"""

from memlab.kernel.journal._copies import (
    Fault,
    copy_journal,
    copy_rows,
    find_faults,
    open_connection,
    read_head,
    replace_rows,
    stamp_copy,
)
from memlab.kernel.journal._database import (
    HEAD,
    LOCK,
    RepairEvent,
    install_database,
    lab_exists,
    write_record,
)
from memlab.kernel.journal._events import (
    FORMAT,
    RESTORE,
    Body,
    Event,
    check_event_format,
    checksum,
    digest_parts,
)
from memlab.kernel.journal._files import RESTORED, Head, HeadFile, WriterLock
from memlab.kernel.journal._journal import Journal, JournalView
from memlab.kernel.journal._vault import (
    AUDIT_FILE,
    ENCRYPTED,
    FILE,
    KeySource,
    Vault,
    data_file,
    decode_line,
    encode_line,
    encryption_of,
    open_database,
    sql_errors,
    unlock,
)
from memlab.kernel.journal._writing import Scrub, Transaction

__all__ = [
    "AUDIT_FILE",
    "ENCRYPTED",
    "FILE",
    "FORMAT",
    "HEAD",
    "LOCK",
    "RESTORE",
    "RESTORED",
    "Body",
    "Event",
    "Fault",
    "Head",
    "HeadFile",
    "Journal",
    "JournalView",
    "KeySource",
    "RepairEvent",
    "Scrub",
    "Transaction",
    "Vault",
    "WriterLock",
    "check_event_format",
    "checksum",
    "copy_journal",
    "copy_rows",
    "data_file",
    "decode_line",
    "digest_parts",
    "encode_line",
    "encryption_of",
    "find_faults",
    "install_database",
    "lab_exists",
    "open_connection",
    "open_database",
    "read_head",
    "replace_rows",
    "sql_errors",
    "stamp_copy",
    "unlock",
    "write_record",
]

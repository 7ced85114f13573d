"""Reading what others wrote: files, exports, transcripts, frames and lists of messages, as rows for ``remember_many``.

Everything is guessed, and what was guessed is said: which reader, which column is what, what has no place here, and
what was skipped where. A file is read line by line within bounds, or at once where it is one JSON document. Nothing in
a file is run, and nothing here knows a lab.
"""

from memlab.io.reading._lines import MOST_LINE
from memlab.io.reading._messages import Message, messages_of
from memlab.io.reading._notes import MOST_PLACES, Notes
from memlab.io.reading._readers import READERS, Reader
from memlab.io.reading._source import Options, Source, read_file, read_object, sources_of_folder

__all__ = [
    "MOST_LINE",
    "MOST_PLACES",
    "READERS",
    "Message",
    "Notes",
    "Options",
    "Reader",
    "Source",
    "messages_of",
    "read_file",
    "read_object",
    "sources_of_folder",
]

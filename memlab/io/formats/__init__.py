"""File formats: one registry of them, one way to recognise a file, one reader for each, and writers of exports.

``READERS`` holds every format by name, those of extensions included. A format of rows (chats, transcripts, tables,
notes, benchmarks) is read as a ``Source``: rows for ``remember_many``, and what was guessed, left out and skipped. A
format that keeps ids, times, counts and edges (exports of labs, other tools' stores) is read as a ``Bundle``. Nothing
in a file is run, sizes and nesting are bounded, and nothing here writes to a lab.
"""

from memlab.io.formats.bundle import (
    ENGINE,
    FRAME,
    SCHEMA,
    Bundle,
    bundle_of,
    bundle_of_frame,
    is_memories,
    node_of,
)
from memlab.io.formats.lab_folder import events_of, lab_id, pack_of, policies_of, read_lab
from memlab.io.formats.lines import MOST_LINE, MOST_PLACES, Notes, json_of
from memlab.io.formats.messages import Message, messages_of
from memlab.io.formats.parquet import UNREADABLE
from memlab.io.formats.readers import (
    EXPORTS,
    IMPORTS,
    READERS,
    Options,
    Reader,
    Source,
    find_reader,
)
from memlab.io.formats.records import memory_records, time_text
from memlab.io.formats.sources import (
    read_bundle,
    read_file,
    read_object,
    remove_export,
    sources_of_folder,
    sweep_drafts,
    write_bundle,
)
from memlab.io.formats.text_formats import file_name, memory_page

__all__ = [
    "ENGINE",
    "EXPORTS",
    "FRAME",
    "IMPORTS",
    "MOST_LINE",
    "MOST_PLACES",
    "READERS",
    "SCHEMA",
    "UNREADABLE",
    "Bundle",
    "Message",
    "Notes",
    "Options",
    "Reader",
    "Source",
    "bundle_of",
    "bundle_of_frame",
    "events_of",
    "file_name",
    "find_reader",
    "is_memories",
    "json_of",
    "lab_id",
    "memory_page",
    "memory_records",
    "messages_of",
    "node_of",
    "pack_of",
    "policies_of",
    "read_bundle",
    "read_file",
    "read_lab",
    "read_object",
    "remove_export",
    "sources_of_folder",
    "sweep_drafts",
    "time_text",
    "write_bundle",
]

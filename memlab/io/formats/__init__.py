"""File formats: one registry of them, one way to recognise a file, one reader for each, and writers of exports.

``READERS`` holds every format by name, those of extensions included. A format of rows (chats, transcripts, tables,
notes, benchmarks) is read as a ``Source``: rows for ``remember_many``, and what was guessed, left out and skipped. A
format that keeps ids, times, counts and edges (exports of labs, other tools' stores) is read as a ``Bundle``. Nothing
in a file is run, sizes and nesting are bounded, and nothing here writes to a lab.
"""

from memlab.io.formats.exports.bundle import ENGINE, SCHEMA, Bundle, bundle_of, node_of
from memlab.io.formats.exports.files import read_bundle, remove_export, sweep_drafts, write_bundle
from memlab.io.formats.exports.frame import FRAME, bundle_of_frame, is_memories
from memlab.io.formats.exports.lab_folder import events_of, lab_id, read_lab
from memlab.io.formats.exports.markdown import file_name, memory_page
from memlab.io.formats.exports.parquet import UNREADABLE
from memlab.io.formats.exports.policies import pack_of, policies_of
from memlab.io.formats.exports.records import memory_records, time_text
from memlab.io.formats.exports.text import json_of
from memlab.io.formats.registry import Reader, Source
from memlab.io.formats.rows.lines import MOST_LINE
from memlab.io.formats.rows.messages import Message, messages_of
from memlab.io.formats.rows.notes import MOST_PLACES, Notes
from memlab.io.formats.sources import (
    EXPORTS,
    IMPORTS,
    READERS,
    Options,
    find_reader,
    read_file,
    read_object,
    sources_of_folder,
)

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

"""File formats: one registry, one reader for each, and writers of exports.

``READERS`` holds every format by name, including those of extensions. A format of rows (chats, transcripts, tables,
notes, benchmarks) is read as a ``Source``: rows for ``lab.remember``, with notes on guesses and skipped lines. A
format that keeps ids, times, counts and edges (exports of labs, stores of other tools) is read as a ``Bundle``.
Contents of files are never executed, sizes and nesting are limited, and nothing here writes to a lab.
"""

from memlab.io.formats.archives import is_archive
from memlab.io.formats.bundle import (
    ENGINE,
    FRAME,
    SCHEMA,
    Bundle,
    build_bundle,
    build_bundle_from_frame,
    is_memories,
    read_memory_table,
    split_node_name,
)
from memlab.io.formats.lab_folder import (
    build_event_frame,
    compute_lab_id,
    export_policies,
    read_lab,
    restore_pack,
)
from memlab.io.formats.lines import Lines, Notes, check_table, decode_json
from memlab.io.formats.messages import Message, parse_messages
from memlab.io.formats.parquet_limits import UNREADABLE, scan_parquet
from memlab.io.formats.readers import (
    EXPORTS,
    IMPORTS,
    READERS,
    Options,
    Reader,
    Source,
    find_reader,
)
from memlab.io.formats.records import export_memories, format_time
from memlab.io.formats.sources import (
    read_bundle,
    read_file,
    read_folder,
    read_object,
    remove_export,
    sweep_drafts,
    write_bundle,
)
from memlab.io.formats.text_formats import build_file_name, render_memory_page

__all__ = [
    "ENGINE",
    "EXPORTS",
    "FRAME",
    "IMPORTS",
    "READERS",
    "SCHEMA",
    "UNREADABLE",
    "Bundle",
    "Lines",
    "Message",
    "Notes",
    "Options",
    "Reader",
    "Source",
    "build_bundle",
    "build_bundle_from_frame",
    "build_event_frame",
    "build_file_name",
    "check_table",
    "compute_lab_id",
    "decode_json",
    "export_memories",
    "export_policies",
    "find_reader",
    "format_time",
    "is_archive",
    "is_memories",
    "parse_messages",
    "read_bundle",
    "read_file",
    "read_folder",
    "read_lab",
    "read_memory_table",
    "read_object",
    "remove_export",
    "render_memory_page",
    "restore_pack",
    "scan_parquet",
    "split_node_name",
    "sweep_drafts",
    "write_bundle",
]

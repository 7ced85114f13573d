"""Moving memories: exports that read back exactly, imports from other labs and other tools, a mirror of files.

A format is written from a ``Bundle`` and read into one; ``load_bundle`` puts one into a lab. Nothing in a file is ever
run: sizes, nesting and types are checked, texts pass the privacy gate, and a file is taken whole or not at all.
"""

from memlab.io.moving._bundle import SCHEMA, Bundle, bundle_of
from memlab.io.moving._formats import (
    EXPORTS,
    IMPORTS,
    export_at,
    read_bundle,
    remove_export,
    sweep_drafts,
    write_bundle,
)
from memlab.io.moving._frame import FRAME, bundle_of_frame, is_memories
from memlab.io.moving._join import Joined, join_bundle
from memlab.io.moving._lab_folder import events_of, lab_id, read_lab
from memlab.io.moving._load import GUESSED, PLACES, Loaded, load_bundle
from memlab.io.moving._mirror import Mirror, file_name, reach_mirrors
from memlab.io.moving._parquet import UNREADABLE
from memlab.io.moving._policies import pack_of, policies_of
from memlab.io.moving._text import json_of

__all__ = [
    "EXPORTS",
    "FRAME",
    "GUESSED",
    "IMPORTS",
    "PLACES",
    "SCHEMA",
    "UNREADABLE",
    "Bundle",
    "Joined",
    "Loaded",
    "Mirror",
    "bundle_of",
    "bundle_of_frame",
    "events_of",
    "export_at",
    "file_name",
    "is_memories",
    "join_bundle",
    "json_of",
    "lab_id",
    "load_bundle",
    "pack_of",
    "policies_of",
    "reach_mirrors",
    "read_bundle",
    "read_lab",
    "remove_export",
    "sweep_drafts",
    "write_bundle",
]

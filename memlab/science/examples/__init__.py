"""Paths of example data: a small log and a conversation.

    slates = memlab.Slates.from_wide(pl.read_parquet(memlab.examples.LOG), decision="query_id",
    item="memory_id", ...)

``LOG`` is the path of a log of 418 recalls with one row per candidate. Its columns are
``query_id``, ``memory_id``, ``rank`` (null: not shown), ``clicked`` (1, 0 or null: no feedback),
``p`` (the probability of being shown), ``old_score`` and ``new_score``. The live policy was
``old_score``, which prefers similar and old memories; ``new_score`` prefers similar and new ones.
Each recall showed three memories by rank and one probe from the seven below.
``experiments/example_log.py`` simulates the log.
"""

from pathlib import Path

__all__ = ["CONVERSATION", "LOG"]

CONVERSATION = Path(__file__).parent / "conversation.json"
"""The path of a conversation in LoCoMo's format, a JSON file.

It was written for memlab, and has 171 turns and 39 questions with their evidence.
"""

LOG = Path(__file__).parent / "log.parquet"
"""The path of the example log, a Parquet file."""

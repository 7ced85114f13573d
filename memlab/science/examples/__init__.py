"""Small data to try things on.

    slates = memlab.Slates.from_wide(pl.read_parquet(memlab.examples.LOG), decision="query_id", item="memory_id", ...)

``LOG`` is the path of a log of 418 recalls, one row a candidate: ``query_id``, ``memory_id``, ``rank`` (null: not
shown), ``clicked`` (1, 0 or null: no answer), ``p`` (the probability with which it was to be shown), ``old_score`` (of
the policy that was live: what is near, and what is old) and ``new_score`` (what is near, and what is new). Three were
shown by rank and one probe from the seven below. ``experiments/example_log.py`` simulates it.
"""

from pathlib import Path

__all__ = ["CONVERSATION", "LOG"]

CONVERSATION = Path(__file__).parent / "conversation.json"
"""171 turns in LoCoMo's format, with 39 questions and the turns that answer them; written for memlab."""

LOG = Path(__file__).parent / "log.parquet"

"""The state of a lab: frames folded from the journal, the checks before a write, and snapshots."""

from memlab.memory._change import Change, edges_of, join_of, values_of
from memlab.memory._fields import MAX_TEXT_BYTES, checked_columns, checked_text, columns_of
from memlab.memory._snapshot import latest_snapshot, load_snapshot, save_snapshot
from memlab.memory._state import Contents, Happened, State, as_said, stamps

__all__ = [
    "MAX_TEXT_BYTES",
    "Change",
    "Contents",
    "Happened",
    "State",
    "as_said",
    "checked_columns",
    "checked_text",
    "columns_of",
    "edges_of",
    "join_of",
    "latest_snapshot",
    "load_snapshot",
    "save_snapshot",
    "stamps",
    "values_of",
]

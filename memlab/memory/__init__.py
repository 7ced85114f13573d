"""The state of a lab: frames folded from the journal, the checks before a write, and snapshots."""

from memlab.memory._change import Change, edges_of, join_of, values_of
from memlab.memory._clusters import Centroids, Cluster
from memlab.memory._compact import compact, redactions, refuse_names
from memlab.memory._entities import ENTITY_TYPES, Entities, Listed, entity_key, entity_name
from memlab.memory._fields import MAX_TEXT_BYTES, checked_columns, checked_text, columns_of
from memlab.memory._gaps import SNIPPET, Gaps
from memlab.memory._judged import Judged
from memlab.memory._purged import PLACEHOLDER, Tombstones, plain
from memlab.memory._recalls import Recalls
from memlab.memory._registers import Happened
from memlab.memory._relationships import Relationship, Relationships
from memlab.memory._seen import EVERYONE, Asker, Seen, hidden_from, same_edges, seen_rows
from memlab.memory._snapshot import Decided, OldSnapshot, Snapshot, latest_snapshot, load_snapshot, save_snapshot
from memlab.memory._state import Contents, State, as_said, stamps
from memlab.memory._summaries import Stands, Summaries
from memlab.memory._waiting import Waiting

__all__ = [
    "ENTITY_TYPES",
    "EVERYONE",
    "MAX_TEXT_BYTES",
    "PLACEHOLDER",
    "SNIPPET",
    "Asker",
    "Centroids",
    "Change",
    "Cluster",
    "Contents",
    "Decided",
    "Entities",
    "Gaps",
    "Happened",
    "Judged",
    "Listed",
    "OldSnapshot",
    "Recalls",
    "Relationship",
    "Relationships",
    "Seen",
    "Snapshot",
    "Stands",
    "State",
    "Summaries",
    "Tombstones",
    "Waiting",
    "as_said",
    "checked_columns",
    "checked_text",
    "columns_of",
    "compact",
    "edges_of",
    "entity_key",
    "entity_name",
    "hidden_from",
    "join_of",
    "latest_snapshot",
    "load_snapshot",
    "plain",
    "redactions",
    "refuse_names",
    "same_edges",
    "save_snapshot",
    "seen_rows",
    "stamps",
    "values_of",
]

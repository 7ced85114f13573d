"""The state of a lab: frames folded from the journal, the checks before a write, snapshots, and views of it."""

from memlab.state.change import Change, edges_of, join_of, values_of
from memlab.state.columns import gather, words_at, words_of
from memlab.state.compact import compact, redactions, refuse_names
from memlab.state.entities import ENTITY_TYPES, Entities, Listed, entity_key, entity_name
from memlab.state.fields import (
    MAX_TEXT_BYTES,
    check_interval,
    checked_columns,
    checked_text,
    columns_of,
    is_blank,
    tag_name,
)
from memlab.state.projections import Projection
from memlab.state.snapshot import (
    Decided,
    OldSnapshot,
    Snapshot,
    latest_snapshot,
    load_snapshot,
    remove_snapshot,
    save_snapshot,
)
from memlab.state.state import Contents, State, stamps, with_speaker
from memlab.state.tombstones import PLACEHOLDER, Tombstones, plain
from memlab.state.view import EVERYONE, Asker, Seen, hidden_from, same_edges, seen_rows

__all__ = [
    "ENTITY_TYPES",
    "EVERYONE",
    "MAX_TEXT_BYTES",
    "PLACEHOLDER",
    "Asker",
    "Change",
    "Contents",
    "Decided",
    "Entities",
    "Listed",
    "OldSnapshot",
    "Projection",
    "Seen",
    "Snapshot",
    "State",
    "Tombstones",
    "check_interval",
    "checked_columns",
    "checked_text",
    "columns_of",
    "compact",
    "edges_of",
    "entity_key",
    "entity_name",
    "gather",
    "hidden_from",
    "is_blank",
    "join_of",
    "latest_snapshot",
    "load_snapshot",
    "plain",
    "redactions",
    "refuse_names",
    "remove_snapshot",
    "same_edges",
    "save_snapshot",
    "seen_rows",
    "stamps",
    "tag_name",
    "values_of",
    "with_speaker",
    "words_at",
    "words_of",
]

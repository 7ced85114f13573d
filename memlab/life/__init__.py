"""What happens to memories between recalls: decided by policies, returned as changes that an event carries."""

from memlab.life._bond import relationship_of, talked, trusted
from memlab.life._clustering import (
    Clustering,
    centroids_of,
    clustered,
    clusters_frame,
    current,
    in_use,
    near_clusters,
    refined,
)
from memlab.life._consolidating import (
    Group,
    Grouping,
    candidates,
    consolidated,
    groups,
    labelled,
    said_of,
    summaries_of,
    unconsolidated,
)
from memlab.life._correcting import (
    edited,
    in_place_of,
    joined_by_succession,
    kept_fields,
    let_go,
    restored,
    statuses_of,
    superseding,
)
from memlab.life._entities import Decided, declared, entities_of, entity_named, merged, split, undone
from memlab.life._extracting import chosen, cut, sentences, tokens
from memlab.life._facts import (
    fact_text,
    facts_frame,
    facts_of,
    held_at,
    mentioned,
    named,
    renamed,
    retracted,
    with_status,
)
from memlab.life._forecast import Forecast, forecast
from memlab.life._joint import Joint
from memlab.life._linked import OUTCOME, Linked
from memlab.life._linking import linked
from memlab.life._mending import mended, mending
from memlab.life._narrative import USER, Narrative, about, narrative, profile
from memlab.life._pruning import edges_told, may_prune, pruned, reads_degrees
from memlab.life._purge import Gone, gone_of, purging, rewritten_slate, tombstones_of
from memlab.life._quarantine import Displaced, SetApart, came_from, displaced_by, released, set_apart, written_since
from memlab.life._refolded import differences
from memlab.life._reinforce import Outcome, days_before, reinforced
from memlab.life._rewriting import rewritten
from memlab.life._tags import common_tag, tagged
from memlab.life._together import NAMEABLE, joined, pairs_of, pairs_with, remaining
from memlab.life._transitions import Transitions, due_for_purge, transitions
from memlab.life._upkeep import refine_due, spanned
from memlab.life._utterances import DETECTORS, Utterance, kind_of, provenance_of, utterance
from memlab.life._verdict import Judgement, gap_of, judged

__all__ = [
    "DETECTORS",
    "NAMEABLE",
    "OUTCOME",
    "USER",
    "Clustering",
    "Decided",
    "Displaced",
    "Forecast",
    "Gone",
    "Group",
    "Grouping",
    "Joint",
    "Judgement",
    "Linked",
    "Narrative",
    "Outcome",
    "SetApart",
    "Transitions",
    "Utterance",
    "about",
    "came_from",
    "candidates",
    "centroids_of",
    "chosen",
    "clustered",
    "clusters_frame",
    "common_tag",
    "consolidated",
    "current",
    "cut",
    "days_before",
    "declared",
    "differences",
    "displaced_by",
    "due_for_purge",
    "edges_told",
    "edited",
    "entities_of",
    "entity_named",
    "fact_text",
    "facts_frame",
    "facts_of",
    "forecast",
    "gap_of",
    "gone_of",
    "groups",
    "held_at",
    "in_place_of",
    "in_use",
    "joined",
    "joined_by_succession",
    "judged",
    "kept_fields",
    "kind_of",
    "labelled",
    "let_go",
    "linked",
    "may_prune",
    "mended",
    "mending",
    "mentioned",
    "merged",
    "named",
    "narrative",
    "near_clusters",
    "pairs_of",
    "pairs_with",
    "profile",
    "provenance_of",
    "pruned",
    "purging",
    "reads_degrees",
    "refine_due",
    "refined",
    "reinforced",
    "relationship_of",
    "released",
    "remaining",
    "renamed",
    "restored",
    "retracted",
    "rewritten",
    "rewritten_slate",
    "said_of",
    "sentences",
    "set_apart",
    "spanned",
    "split",
    "statuses_of",
    "summaries_of",
    "superseding",
    "tagged",
    "talked",
    "tokens",
    "tombstones_of",
    "transitions",
    "trusted",
    "unconsolidated",
    "undone",
    "utterance",
    "with_status",
    "written_since",
]

"""What happens to memories between recalls: decided by policies, returned as changes that an event carries."""

from memlab.life._bond import relationship_of, talked, trusted
from memlab.life._correcting import (
    LET_GO,
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
from memlab.life._facts import fact_text, facts_frame, facts_of, held_at, named, renamed, retracted
from memlab.life._forecast import Forecast, forecast
from memlab.life._joint import Joint
from memlab.life._linking import OUTCOME, Linked, linked
from memlab.life._narrative import USER, Narrative, about, narrative, profile
from memlab.life._pruning import edges_told, may_prune, pruned, reads_degrees
from memlab.life._purge import Gone, gone_of, purging, rewritten, rewritten_slate, tombstones_of
from memlab.life._reinforce import Outcome, days_before, reinforced
from memlab.life._tags import common_tag, tagged
from memlab.life._together import NAMEABLE, joined, pairs_of, pairs_with
from memlab.life._transitions import Transitions, due_for_purge, transitions
from memlab.life._upkeep import refine_due, spanned
from memlab.life._utterances import DETECTORS, Utterance, kind_of, provenance_of, utterance
from memlab.life._verdict import Judgement, gap_of, judged

__all__ = [
    "DETECTORS",
    "LET_GO",
    "NAMEABLE",
    "OUTCOME",
    "USER",
    "Decided",
    "Forecast",
    "Gone",
    "Joint",
    "Judgement",
    "Linked",
    "Narrative",
    "Outcome",
    "Transitions",
    "Utterance",
    "about",
    "common_tag",
    "days_before",
    "declared",
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
    "held_at",
    "in_place_of",
    "joined",
    "joined_by_succession",
    "judged",
    "kept_fields",
    "kind_of",
    "let_go",
    "linked",
    "may_prune",
    "merged",
    "named",
    "narrative",
    "pairs_of",
    "pairs_with",
    "profile",
    "provenance_of",
    "pruned",
    "purging",
    "reads_degrees",
    "refine_due",
    "reinforced",
    "relationship_of",
    "renamed",
    "restored",
    "retracted",
    "rewritten",
    "rewritten_slate",
    "spanned",
    "split",
    "statuses_of",
    "superseding",
    "tagged",
    "talked",
    "tombstones_of",
    "transitions",
    "trusted",
    "undone",
    "utterance",
]

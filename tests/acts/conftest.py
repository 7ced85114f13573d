"""Acts of the five designs, written by readers of a description and the public reference alone.

Each file stays as its reader wrote it before it was first run. ``test_*_first.py`` were run again and again while
faults were mended. ``test_*_second.py`` were run once for their figure (119 of 125 held, by design 22 to 25 of 25);
three of the six that failed hold since. What does not hold is in ``FAILING`` with the reason; an act
that begins to hold must be taken out.
"""

import pytest

FAILING: dict[str, str] = {
    "test_10_exploration_adds_a_seldom_seen_item_of_a_long_tail": (
        "a plain recall explores only if it asks to, and a probe is anywhere below the first; the reference said that "
        "every recall explores and that a probe is last"
    ),
    "test_10_one_seldom_used_memory_is_added_from_a_long_tail": (
        "a plain recall explores only if it asks to; the reference said that every recall explores"
    ),
    "test_23_two_agents_share_a_fact_and_keep_their_own": (
        "under associative a memory is compared in the background: the two are one after lab.graph.link_waiting()"
    ),
    "test_18_two_circles_of_notes_are_two_communities_with_a_bridge_and_a_key": (
        "clustering is that of nodes with all their neighbours, so that a bridge lowers it; density is 1"
    ),
    "test_03_a_score_is_nearness_freshness_and_use_and_use_counts_to_twenty": (
        "with the embedder that ships the score reads closeness, the cosine on another scale; the act reads similarity"
    ),
    "test_08_what_a_person_said_in_review_stands_before_what_a_tool_found": (
        "with the embedder that ships the score reads closeness, the cosine on another scale; the act reads similarity"
    ),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name == "acts" and item.name in FAILING:
            reason = FAILING[item.name]
            # what a thread does may be done by then
            item.add_marker(pytest.mark.xfail(reason=reason, strict="background" not in reason))

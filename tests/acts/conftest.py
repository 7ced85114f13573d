"""Acts of the five designs, written by readers of a description and the public reference alone.

Each file stays as its reader wrote it before it was first run. ``test_*_first.py`` were run again and again while
faults were mended; ``test_*_second.py`` were run once. What does not hold is in ``FAILING`` with the reason; an act
that begins to hold must be taken out.
"""

import pytest

FAILING: dict[str, str] = {
    "test_10_exploration_adds_a_seldom_seen_item_of_a_long_tail": (
        "a probe stands at a random place among the others; the reference said that it is last"
    ),
    "test_23_two_agents_share_a_fact_and_keep_their_own": (
        "under associative a memory is compared in the background: the two are one after lab.graph.link_waiting()"
    ),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name == "acts" and item.name in FAILING:
            reason = FAILING[item.name]
            # what a thread does may be done by then
            item.add_marker(pytest.mark.xfail(reason=reason, strict="background" not in reason))

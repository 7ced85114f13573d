"""A coding project as the workbench remembers it: what is written, corrected, kept on its branch, and found wrong.

The shipped embedder, the pack as it comes, and texts as people and agents write them; every number is that of the
original's description.
"""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import memlab
from memlab.errors import InputError
from tests.displays import html_of

CODER: dict[str, Any] = {"creator": "agent:coder", "project": "api", "session": "monday"}


@pytest.fixture
def project(clock: memlab.ManualClock) -> memlab.Lab:
    with memlab.open(pack="workbench", clock=clock) as lab:
        lab.remember(
            [
                {"text": "Use tabs for indentation", "kind": "convention", **CODER},
                {
                    "text": "The database runs its migrations with alembic upgrade head",
                    "kind": "decision",
                    **CODER,
                },
                {
                    "text": "Integration tests need the redis container on port 6380",
                    "kind": "gotcha",
                    **CODER,
                },
                {
                    "text": "Payments are retried three times before the order fails",
                    "kind": "gotcha",
                    **CODER,
                },
            ]
        )
        yield lab


def row_of(lab: memlab.Lab, id: int) -> dict[str, Any]:
    return lab.memories.row(id - 1, named=True)


def texts(lab: memlab.Lab, question: str, **more: Any) -> list[str]:
    return [hit.text for hit in lab.recall(question, project="api", log=False, **more)]


@pytest.mark.long
def test_confidence_begins_at_a_half(project: memlab.Lab) -> None:
    assert set(project.memories["confidence"]) == {0.5}


@pytest.mark.long
def test_a_contradiction_deprecates_the_old_one_and_says_so(project: memlab.Lab) -> None:
    """Tabs, then spaces: the old convention leaves recall, and both the result and the memory say what happened."""
    result = project.remember(
        [{"text": "Use spaces for indentation now", "kind": "convention", **CODER}]
    )
    assert result.outcomes.filter(pl.col("outcome") == "superseded")["why"].to_list() == [
        "Updated: tabs -> spaces"
    ]
    assert "Updated: tabs -&gt; spaces" in html_of(result)
    old = row_of(project, 1)
    assert (old["status"], old["superseded_by"], old["reason"]) == (
        "superseded",
        5,
        "Updated: tabs -> spaces",
    )
    assert old["valid_until"] is not None
    joined = project.edges.filter(pl.col("source") == 5).select("target", "relation").rows()
    assert (1, "supersedes") in joined
    assert "Use tabs for indentation" not in texts(project, "How is code indented: tabs or spaces?")
    assert (
        texts(project, "How is code indented: tabs or spaces?")[0]
        == "Use spaces for indentation now"
    )


@pytest.mark.long
def test_denying_a_convention_contradicts_it(project: memlab.Lab) -> None:
    project.remember("Never use tabs for indentation", kind="convention", **CODER)
    assert row_of(project, 1)["status"] == "superseded"
    assert "contradicts" in project.edges["relation"].to_list()


@pytest.mark.long
def test_a_near_duplicate_merges_into_the_one_that_is_there(project: memlab.Lab) -> None:
    again = project.remember(
        "The database runs its migrations with alembic upgrade head.",
        kind="decision",
        tags=["db"],
        **CODER,
    )
    assert again.id == 2
    assert (len(project), again.tags) == (4, ("db",))
    assert row_of(project, 2)["strength"] == row_of(project, 3)["strength"] + 1


@pytest.mark.long
def test_another_port_is_not_the_same_memory(project: memlab.Lab) -> None:
    other = project.remember(
        "Integration tests need the redis container on port 6390", kind="gotcha", **CODER
    )
    assert (other.id, row_of(project, 3)["status"]) == (5, "active")


@pytest.mark.long
def test_only_the_three_nearest_are_compared(project: memlab.Lab) -> None:
    project.policies.install("link", '(fn [pair/rank] "related")', reason="see who is met")
    project.remember("Use linters", kind="convention", **CODER)
    assert project.edges.filter(pl.col("source") == 5).height == 3


@pytest.mark.long
def test_lessons_of_a_branch_stay_in_the_branch(project: memlab.Lab) -> None:
    """On its branch the team tries spaces; the others go on with tabs until it is merged."""
    on = {**CODER, "branch": "spaces"}
    project.remember("Use spaces for indentation now", kind="convention", **on)
    assert row_of(project, 1)["status"] == "active"
    question = "What is used for indentation?"
    assert "Use tabs for indentation" in texts(project, question, branch="main")
    assert "Use spaces for indentation now" not in texts(project, question, branch="main")
    assert "Use spaces for indentation now" in texts(project, question, branch="spaces")


@pytest.mark.long
def test_another_project_is_not_touched(project: memlab.Lab) -> None:
    project.remember(
        "Use spaces for indentation now", kind="convention", **{**CODER, "project": "web"}
    )
    project.remember("Use spaces for indentation now", kind="preference", creator="user")
    assert row_of(project, 1)["status"] == "active"


@pytest.mark.long
def test_fifty_memories_a_session_of_two_kilobytes_each(project: memlab.Lab) -> None:
    told = {"kind": "codebase-discovery", **CODER}
    rows = [{"text": f"Module {row} belongs to team {row * 7}", **told} for row in range(46)]
    project.remember(rows, linking="off")
    with pytest.raises(InputError, match="written 50 memories"):
        project.remember("One too many", **CODER)
    project.remember("The next session may go on", **{**CODER, "session": "tuesday"})
    with pytest.raises(InputError, match="2,049 bytes"):
        project.remember("x" * 2049, **{**CODER, "session": "tuesday"})
    project.remember("A person may write at length. " * 100, creator="user", project="api")


def test_a_log_of_turns_is_stored_whole(project: memlab.Lab) -> None:
    turns = [{"text": "ok", "kind": "turn", **CODER}] * 60 + [
        {"text": "y" * 3000, "kind": "turn", **CODER}
    ]
    assert len(project.remember(turns, chain=True).ids) == 61


def test_a_secret_is_redacted_and_told(project: memlab.Lab) -> None:
    result = project.remember(
        [{"text": "The staging key is AKIAIOSFODNN7EXAMPLE", "kind": "gotcha", **CODER}]
    )
    assert "[REDACTED: AWS access key]" in result[0].text
    assert [(id, finding.type) for id, finding in result.redacted] == [(5, "AWS access key")]


@pytest.mark.long
def test_a_wrong_memory_is_flagged_reviewed_and_restored(project: memlab.Lab) -> None:
    project.remember("Use spaces for indentation now", kind="convention", **CODER)
    flagged = project.forget(5, how="deprecate", reason="the linter says otherwise")
    assert flagged.review["memory_id"].to_list() == [1], "what it superseded comes up for review"
    assert "Use spaces for indentation now" not in texts(project, "What is used for indentation?")
    again = project.remember("Use spaces for indentation now", kind="convention", **CODER)
    assert again.id == 6, "what was flagged as wrong takes no duplicates in"
    project.restore(5)
    assert "Use spaces for indentation now" in texts(project, "What is used for indentation?")

"""Policies of README, how-to pages and notebooks lose at most .03 hit@5 on conversations on which nothing was tuned."""

import re

import pytest

from experiments import documented_policies as documented

POLICIES = documented.find_policies()
SCORED = [policy for policy in POLICIES if not policy.problem]


def test_policies_of_all_documents_are_found():
    places = {policy.position.partition(":")[0] for policy in POLICIES}
    assert {"README.md", "docs/howto/magics.md", "docs/howto/score-a-policy.md"} <= places
    assert any(place.startswith("notebooks/") for place in places)
    assert "select" in {policy.slot for policy in SCORED}


def test_a_policy_that_cannot_be_scored_shows_an_error_or_builds_on_the_inherited_one():
    for policy in POLICIES:
        if policy.problem:
            builds = "(inherited)" in policy.text or policy.slot == "urgent"
            assert builds or policy.is_error, f"{policy.position}: {policy.problem}"


@pytest.mark.long
def test_a_block_is_read_as_a_notebook_runs_it(monkeypatch):
    blocks = [
        (
            "a.md:1",
            'mine = "(fn [recency] recency)"\nlab.score({"x": mine, "y": "(pack p \\"d\\")"})',
        ),
        ("a.md:9", 'lab.policies.install("select", mine, reason="(fn [age-days] 1)")'),
        ("b.md:1", 'lab.score([mine, "similarity"])'),
        ("b.md:5", '%%policy recall-score --reason "x"\n\n(fn [similarity] similarity)'),
        ("b.md:7", "%%policy eligible\n; for comparison: worse, hit@5 .51\n(fn [hops] (< hops 2))"),
        ("b.md:8", 'lab.policies.install("recall-score", "(fn [similarty] 1)")'),
        ("b.md:9", 'lab.challenge("companion")\nlab.policies.install("recall-score", source)'),
        ("b.md:11", "not python ("),
        ("c.md:1", '(lab.policies.install "select" \'(fn [score] (* 2 score)))'),
        ("c.md:2", "(lab.score `(fn [~name] ~name))\n(print '(fn [recency] recency) (fn [row] 1))"),
    ]
    monkeypatch.setattr(documented, "list_blocks", lambda: iter(blocks))
    policies = documented.find_policies()
    assert [(policy.position, policy.slot, policy.is_contrast) for policy in policies] == [
        ("a.md:1", "recall-score", False),
        ("a.md:1", "recall-score", False),
        ("a.md:9", "select", False),
        ("b.md:5", "recall-score", False),
        ("b.md:7", "eligible", True),
        ("b.md:8", "recall-score", False),
        ("c.md:1", "select", False),
        ("c.md:2", "recall-score", False),
    ]
    assert [policy.position for policy in policies if policy.problem] == ["b.md:8"]


@pytest.mark.long
@pytest.mark.parametrize("world", documented.WORLDS, ids=lambda world: world.name)
def test_no_documented_policy_loses(world):
    lab = documented.open_world(world)
    assert len(lab.memories) >= 300
    assert len(lab.questions) >= 40
    cosine = documented.Documented("cosine", "recall-score", "(fn [similarity] similarity)", False)
    values = documented.score_policies(lab, [*SCORED, cosine])
    assert values.pop(cosine.key) < values["active"] - documented.LOSS
    lost = {
        policy.key: round(values[policy.key] - values["active"], 3)
        for policy in SCORED
        if not policy.is_contrast and values[policy.key] < values["active"] - documented.LOSS
    }
    assert not lost, f"{world.name}: build on (inherited), or mark them '; for comparison: worse'"


def test_a_policy_for_comparison_has_a_figure():
    for place, block in documented.list_blocks():
        for line in re.findall("for comparison: worse[^\n]*", block):
            assert re.search(r"\.\d\d", line), f"{place}: {line}"

"""Each pack's numbers against an independent computation in plain Python."""

import math

import pytest

from memlab.policies import load_pack


def score(pack, slot, **values):
    """One row through a slot, features by name with underscores."""
    policy = load_pack(pack).policies[slot]
    return policy.row({name.replace("_", "-"): value for name, value in values.items()})


class TestAssociative:
    """0.4 activation, 0.3 recency, 0.2 importance, 0.1 success rate; a half-life that success stretches."""

    def test_recall_score(self):
        got = score(
            "associative", "recall-score", activation=0.6, recency=0.25, importance=0.9, access=7, success=3, fail=1
        )
        assert got == pytest.approx(0.4 * 0.6 + 0.3 * 0.25 + 0.2 * 0.9 + 0.1 * 3 / 5, abs=1e-15)

    @pytest.mark.parametrize(("success", "fail"), [(0, 0), (3, 1), (0, 9), (50, 0)])
    def test_half_life_is_handed_over_in_milliseconds(self, success, fail):
        pack = load_pack("associative")
        got = score(
            "associative",
            "half-life",
            success=success,
            fail=fail,
            energy=1.0,
            importance=0.5,
            recency_ms=0.0,
            base_half_ms=30 * 86_400_000.0,
        )
        ratio = success / (success + fail + 1)
        assert got / pack.unit("half-life") == pytest.approx(30 * (0.5 + 1.5 * ratio), rel=1e-15)

    def test_spreading_passes_activation_times_weight_times_damping(self):
        assert load_pack("associative").settings["damping"] == 0.7
        got = score("associative", "spread", activation=0.5, weight=0.8, damping=0.7)
        assert got == pytest.approx(0.5 * 0.8 * 0.7)


class TestWorkbench:
    """0.6 cosine, 0.25 e^(-rate days), 0.15 min(access / 20, 1), half-lives by kind."""

    @pytest.mark.parametrize("access", [0, 5, 20, 400])
    def test_recall_score(self, access):
        got = score("workbench", "recall-score", closeness=0.42, recency=0.5, access=access)
        assert got == pytest.approx(0.6 * 0.42 + 0.25 * 0.5 + 0.15 * min(access / 20, 1))

    @pytest.mark.parametrize(
        ("kind", "days"),
        [
            ("preference", 180),
            *((kind, 90) for kind in ("pr-review", "pr-finding", "pr-pattern", "pr-gotcha")),
            *((kind, 60) for kind in ("gotcha", "error-pattern")),
            *((kind, 30) for kind in ("session-insight", "task-outcome", "codebase-discovery")),
            *((kind, 7) for kind in ("context", "environment-quirk")),
        ],
    )
    def test_half_life_by_kind(self, kind, days):
        assert score("workbench", "half-life", kind=kind, pinned=False) == days

    @pytest.mark.parametrize(
        "kind", ["convention", "decision", "dependency-relation", "human-feedback", "codebase-map"]
    )
    def test_some_kinds_never_fade(self, kind):
        century = 36_525
        half = score("workbench", "half-life", kind=kind, pinned=False)
        assert math.exp(-math.log(2) * century / half) == 1.0

    def test_pinned_counts_as_fresh(self):
        half = score("workbench", "half-life", kind="context", pinned=True)
        assert math.exp(-math.log(2) * 365 / half) == 1.0

    def test_another_branch_is_not_eligible(self):
        assert score("workbench", "eligible", same_branch=True) is True
        assert score("workbench", "eligible", same_branch=False) is False


class TestCompanion:
    """0.6 similarity, 0.4 strength as it stands; max(2, 5 - 0.03 emotional weight) is lost a day."""

    @pytest.mark.parametrize(
        ("strength", "weight", "days"), [(100, 5, 0), (100, 5, 3.5), (80, 100, 10), (60, 0, 30), (100, 90, 1)]
    )
    def test_recall_score(self, strength, weight, days):
        now = min(100, max(0, strength - max(2, 5 - 0.03 * weight) * days))
        got = score(
            "companion", "recall-score", closeness=0.5, strength=strength, emotional_weight=weight, idle_days=days
        )
        assert got == pytest.approx(0.6 * 0.5 + 0.4 * now / 100)

    @pytest.mark.parametrize(("closeness", "hops", "expected"), [(0.3, 0, True), (0.29, 0, False), (0.0, 1, True)])
    def test_near_enough_or_linked(self, closeness, hops, expected):
        assert score("companion", "eligible", closeness=closeness, hops=hops) is expected


class TestCascade:
    """Seeds above 0.4 keep their similarity; an edge scores its weight times 0.7 to its distance."""

    @pytest.mark.parametrize(("closeness", "hops", "expected"), [(0.4, 0, True), (0.39, 0, False), (-0.2, 2, True)])
    def test_threshold(self, closeness, hops, expected):
        assert score("cascade", "eligible", closeness=closeness, hops=hops) is expected

    @pytest.mark.parametrize(
        ("relation", "own", "expected"),
        [
            ("has-tag", 1.0, 0.8),
            ("in-cluster", 1.0, 0.6),
            ("supersedes", 1.0, 0.9),
            ("relates-to", 0.45, 0.45),
            ("contradicts", 1.0, 0.3),
            ("derived-from", 1.0, 0.3),
        ],
    )
    @pytest.mark.parametrize("depth", [1, 2])
    def test_edge_scores(self, relation, own, expected, depth):
        got = score("cascade", "spread", relation=relation, weight=own, depth=depth)
        assert got == pytest.approx(expected * 0.7**depth)

    def test_recency_boost(self):
        got = score("cascade", "recall-score", activation=0.5, recency_weight=0.5, idle_days=0.75)
        assert got == pytest.approx(0.5 * (1 + 0.5 * math.exp(-18 / 24)))

    def test_settings(self):
        settings = load_pack("cascade").settings
        assert (settings["seeds"], settings["spread-steps"], settings["limit"]) == (10, 2, 10)
        assert settings["spread-combine"] == "max"

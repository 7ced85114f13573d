"""Pack workbench against its formulas in plain Python."""

import math

import pytest
from conformance import decide, decisions, every

from memlab.kernel.policies import load_pack

FOREVER = ("convention", "decision", "dependency-relation", "human-feedback", "codebase-map")
HALF_LIFE = {
    "preference": 180,
    **dict.fromkeys(("pr-review", "pr-finding", "pr-pattern", "pr-gotcha"), 90),
    **dict.fromkeys(("gotcha", "error-pattern"), 60),
    **dict.fromkeys(("session-insight", "task-outcome", "codebase-discovery"), 30),
    **dict.fromkeys(("context", "environment-quirk"), 7),
}


class TestScore:
    """0.6 cosine + 0.25 e^(-rate days) + 0.15 min(access / 20, 1), rate = ln 2 / half-life."""

    @pytest.mark.long
    def test_from_days_to_score(self):
        rows = every(
            kind=[*HALF_LIFE, *FOREVER],
            pinned=[True, False],
            idle_days=[0, 1, 45.5, 36_525],
            closeness=[-0.1, 0.42],
            access=[0, 5, 20, 400],
        )
        expected = []
        for row in rows:
            rate = (
                0
                if row["pinned"] or row["kind"] in FOREVER
                else math.log(2) / HALF_LIFE[row["kind"]]
            )
            fresh = math.exp(-rate * row["idle-days"])
            value = 0.6 * row["closeness"] + 0.25 * fresh + 0.15 * min(row["access"] / 20, 1)
            # the highest weight of all
            expected.append(value * (1.25 if row["kind"] == "human-feedback" else 1))
        halves = decisions("workbench", "half-life", rows)
        for row, half in zip(rows, halves, strict=True):
            row |= {"half-life": half, "elapsed-days": row["idle-days"]}
        for row, decision in zip(rows, decisions("workbench", "retention", rows), strict=True):
            row["recency"] = decision
        assert decisions("workbench", "recall-score", rows) == pytest.approx(expected, abs=1e-15)

    @pytest.mark.parametrize(("kind", "days"), HALF_LIFE.items())
    def test_half_life_by_kind(self, kind, days):
        assert decide("workbench", "half-life", kind=kind, pinned=False) == days

    def test_another_branch_is_not_eligible(self):
        assert decisions("workbench", "eligible", every(same_branch=[True, False])) == [True, False]

    def test_no_neighbours_and_no_words(self):
        settings = load_pack("workbench").settings
        assert (settings["spread-steps"], settings["lexical-candidates"]) == (0, 0)
        assert 0 < settings["mmr-weight"] < 1


class TestWriting:
    def test_limits(self):
        settings = load_pack("workbench").settings
        assert settings["session-writes"] == 50
        assert settings["write-bytes"] == 2048
        assert settings["link-candidates"] == 3
        assert settings["initial-confidence"] == 0.5

    def test_a_near_duplicate_is_one_above_092(self):
        rows = every(
            pair__closeness=[0.8, 0.92, 0.93], pair__negates=[False], pair__update_words=[False]
        )
        rows = [{**row, "pair/same-numbers": True, "pair/overlap": 0.4} for row in rows]
        assert decisions("workbench", "link", rows) == ["none", "related", "duplicate"]

    def test_another_number_is_another_memory(self):
        row = {
            "pair__closeness": 0.99,
            "pair__overlap": 0.9,
            "pair__negates": False,
            "pair__update_words": False,
        }
        rows = every(
            **{name: [value] for name, value in row.items()}, pair__same_numbers=[True, False]
        )
        assert decisions("workbench", "link", rows) == ["duplicate", "related"]

    def test_a_contradiction_is_no_duplicate_and_deprecates_the_old(self):
        rows = every(
            pair__closeness=[0.93], pair__negates=[True, False], pair__update_words=[True, False]
        )
        rows = [{**row, "pair/same-numbers": True, "pair/overlap": 0.4} for row in rows]
        assert decisions("workbench", "link", rows) == [
            "updates",
            "contradicts",
            "updates",
            "duplicate",
        ]
        assert decisions("workbench", "resolve", rows) == [
            "keep-new",
            "keep-new",
            "keep-new",
            "merge",
        ]

    def test_an_exchanged_word_is_a_contradiction_at_lower_similarity(self):
        rows = every(
            pair__closeness=[0.34, 0.35, 0.81],
            pair__overlap=[0.4, 0.5],
            pair__negates=[True, False],
            pair__update_words=[True, False],
            pair__same_numbers=[True],
        )

        def expected(row):
            near = row["pair/closeness"] > 0.8
            if near or (row["pair/overlap"] >= 0.5 and row["pair/closeness"] >= 0.35):
                if row["pair/update-words"]:
                    return "updates"
                if row["pair/negates"]:
                    return "contradicts"
            return "related" if near else "none"

        assert decisions("workbench", "link", rows) == [expected(row) for row in rows]

    def test_confidence_grows_with_retrieval_and_drops_when_it_is_wrong(self):
        """The numbers are this pack's own: a twentieth of the distance to 1, and half of the value."""
        rows = every(outcome=["recalled", "success", "fail", "rejected"], confidence=[0.5, 1.0])
        expected = [0.525, 1, 0.525, 1, 0.25, 0.5, 0.25, 0.5]
        assert [
            got["confidence"] for got in decisions("workbench", "reinforce", rows)
        ] == pytest.approx(expected)


class TestInjection:
    """Tier 1 always, tier 2 for the task, tier 3 on demand and never the same memory twice in a session."""

    def test_budgets(self):
        settings = load_pack("workbench").settings
        assert [settings[f"tier-{tier}-tokens"] for tier in (1, 2, 3)] == [600, 1200, 30]

    @pytest.mark.long
    def test_which_cluster_a_memory_joins(self):
        truth = [True, False]
        rows = every(
            tier=[1, 2, 3],
            kind=["codebase-map", "convention", "decision", "gotcha"],
            pinned=truth,
            in_task=truth,
            called=truth,
            elsewhere=truth,
            nearness=[0.2, 0.4, 0.7],
            injected=truth,
            rank=[1, 4],
        )

        def belongs(row):
            if row["tier"] == 1:
                return row["pinned"] or row["kind"] in ("codebase-map", "convention", "decision")
            if row["tier"] == 2:
                return row["in-task"]
            fits = row["called"] or row["nearness"] >= (0.6 if row["elsewhere"] else 0.3)
            return fits and not row["injected"]

        result = decisions("workbench", "inject", rows)
        assert [value > 0 for value in result] == [belongs(row) for row in rows]
        by_rank = {}
        for row, value in zip(rows, result, strict=True):
            if value:
                by_rank.setdefault(row["rank"], set()).add(value)
        assert min(by_rank[1]) > max(by_rank[4]), "the better ranked one goes first"

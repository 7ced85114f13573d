"""Pack companion against its formulas in plain Python."""

import pytest
from conformance import decide, decisions, every

from memlab.kernel.policies import load_pack

TELLS = ("tells_identity", "tells_preference", "tells_goal", "tells_event")
SKIPS = ("greets", "holds_code", "commands", "asks_plainly")
USER_FACTS = ("personal", "preference", "goal", "trait")
STATES = every(
    kind=["observation", "event", "fact"],
    strength=[100, 80, 62.5, 3],
    emotional_weight=[5, 0, 100, 99],
    elapsed_days=[0, 0.25, 3.5, 10, 60],
)


def now(row, days="elapsed-days"):
    loss = max(2, 5 - 0.03 * row["emotional-weight"]) * row[days]
    return min(100, max(0, row["strength"] - loss))


class TestRetrieval:
    """0.6 similarity + 0.4 strength / 100, similarity >= 0.3; related memories within two hops."""

    def test_hybrid(self):
        rows = every(
            kind=["learning"],
            nearness=[0.31, 0.9],
            strength=[100, 40],
            emotional_weight=[5, 100],
            idle_days=[0, 3.5, 12],
            hops=[0],
        )
        expected = [0.6 * row["nearness"] + 0.4 * now(row, "idle-days") / 100 for row in rows]
        assert decisions("companion", "recall-score", rows) == pytest.approx(expected, rel=1e-15)

    @pytest.mark.parametrize(
        ("nearness", "hops", "expected"), [(0.3, 0, True), (0.29, 0, False), (0.0, 1, True)]
    )
    def test_near_enough_or_linked(self, nearness, hops, expected):
        assert decide("companion", "eligible", nearness=nearness, hops=hops) is expected

    def test_two_hops(self):
        assert load_pack("companion").settings["spread-steps"] == 2
        rows = every(activation=[0.8], depth=[1, 2, 3], relation=["relates-to"])
        assert [value > 0 for value in decisions("companion", "spread", rows)] == [
            True,
            True,
            False,
        ]
        assert decide("companion", "spread", activation=0.8, depth=1, relation="has-tag") == 0, (
            "a tag is no link"
        )


class TestStrength:
    """Loses max(2, 5 - 0.03 emotional weight) a day since the last recall; a recall adds 5 to what is left."""

    def test_retention_is_the_strength_at_a_time(self):
        assert decisions("companion", "retention", STATES) == pytest.approx(
            [now(row) / 100 for row in STATES]
        )

    def test_a_recall_adds_five_to_the_current_strength(self):
        rows = [{**row, "outcome": "recalled"} for row in STATES]
        strengths = [after["strength"] for after in decisions("companion", "reinforce", rows)]
        assert strengths == pytest.approx([min(100, now(row) + 5) for row in rows])

    def test_nothing_else_changes_it(self):
        rows = [
            {**row, "outcome": outcome}
            for row in STATES
            for outcome in ("success", "fail", "rejected")
        ]
        assert [after["strength"] for after in decisions("companion", "reinforce", rows)] == [
            row["strength"] for row in rows
        ]

    def test_a_memory_of_strength_zero_is_deleted(self):
        expected = [now(row) == 0 for row in STATES]
        assert any(expected)
        assert decisions("companion", "forget", STATES) == expected

    @pytest.mark.parametrize(
        ("strength", "label"),
        [
            (100, "vivid"),
            (80, "vivid"),
            (79.9, "clear"),
            (50, "clear"),
            (49.9, "hazy"),
            (20, "hazy"),
            (19.9, "fragment"),
            (0, "fragment"),
        ],
    )
    def test_labels(self, strength, label):
        assert (
            decide(
                "companion",
                "label",
                kind="event",
                strength=strength,
                emotional_weight=5,
                elapsed_days=0,
            )
            == label
        )

    def test_facts_about_the_user_do_not_fade(self):
        """A user fact has a confidence, and no strength that could be lost."""
        rows = every(
            kind=USER_FACTS, strength=[100], emotional_weight=[5], elapsed_days=[0, 30, 3000]
        )
        assert decisions("companion", "retention", rows) == [1] * len(rows)
        assert decisions("companion", "label", rows) == ["vivid"] * len(rows)
        assert decisions("companion", "forget", rows) == [False] * len(rows)

    def test_labels_follow_time(self):
        assert (
            decide(
                "companion",
                "label",
                kind="event",
                strength=100,
                emotional_weight=0,
                elapsed_days=10,
            )
            == "clear"
        )


class TestLinker:
    """> 0.85 similar, 0.6-0.85 related; > 0.85 with update words updates, with negation contradicts."""

    def test_thresholds_and_signs(self):
        rows = every(
            pair__closeness=[0.59, 0.6, 0.85, 0.86, 1.0],
            pair__negates=[True, False],
            pair__update_words=[True, False],
        )

        def expected(row):
            if row["pair/closeness"] < 0.6:
                return "none"
            if row["pair/closeness"] <= 0.85:
                return "related"
            if row["pair/update-words"]:
                return "updates"
            return "contradicts" if row["pair/negates"] else "similar"

        assert decisions("companion", "link", rows) == [expected(row) for row in rows]


class TestConflicts:
    """Contradictions of similarity above 0.8: keep-new, merge or keep-old.

    The new memory wins if it is user-stated or at least as confident. Otherwise they merge if neither negates.
    """

    def test_resolution(self):
        truth = [True, False]
        rows = every(
            new__provenance=["user-stated", "inferred"],
            new__confidence=[0.5, 0.8, 0.9],
            old__confidence=[0.8],
            pair__closeness=[0.8, 0.81],
            pair__negates=truth,
            pair__same_subject=[True, False, None],
            pair__same_predicate=[True],
            pair__same_value=truth,
            pair__single_valued=truth,
        )

        def expected(row):
            two_values = (
                row["pair/same-subject"] is True
                and row["pair/single-valued"]
                and row["pair/same-value"] is False
            )
            if row["pair/closeness"] <= 0.8 or not (row["pair/negates"] or two_values):
                return "keep-both"
            if (
                row["new/provenance"] == "user-stated"
                or row["new/confidence"] >= row["old/confidence"]
            ):
                return "keep-new"
            return "keep-old" if row["pair/negates"] else "merge"

        wanted = [expected(row) for row in rows]
        assert set(wanted) == {"keep-both", "keep-new", "keep-old", "merge"}
        assert decisions("companion", "resolve", rows) == wanted


class TestExtraction:
    """An extract pattern wins over a skip pattern; what shows neither is not extracted."""

    def test_every_combination(self):
        rows = every(**{name: [True, False] for name in (*TELLS, *SKIPS)})
        threshold = load_pack("companion").settings["admit-threshold"]
        for row, worth in zip(rows, decisions("companion", "admit", rows), strict=True):
            tells = any(row[name.replace("_", "-")] for name in TELLS)
            skips = any(row[name.replace("_", "-")] for name in SKIPS)
            assert (worth >= threshold) is tells
            if tells:
                assert worth == 0.8
            elif skips:
                assert worth == 0


def test_a_relationship_grows_by_settings():
    settings = load_pack("companion").settings
    assert (settings["familiarity-gain"], settings["trust-gain"], settings["trust-loss"]) == (
        0.01,
        1,
        2,
    )
    assert settings["initial-confidence"] == 0.8

"""Pack cascade against its formulas in plain Python."""

import math

import pytest
from conformance import decide, decisions, every

from memlab.kernel.policies import load_pack
from memlab.kernel.schema import PROVENANCES

KINDS = ("correction", "preference", "procedure", "fact", "negative")
TIME_CONSTANT = {"correction": 365, "preference": 90, "procedure": 60, "fact": 30, "negative": 365}
TRUST = {
    "user-stated": 1.0,
    "user-corrected": 1.0,
    "observed": 0.8,
    "inferred": 0.6,
    "extracted": 0.7,
}


def days(row):
    return 7 if row["provenance"] == "inferred" else TIME_CONSTANT[row["kind"]]


class TestRetrieval:
    """Seeds above 0.4 keep their similarity; an edge scores its weight times 0.7 to its distance."""

    def test_ten_seeds_two_steps_ten_results(self):
        settings = load_pack("cascade").settings
        assert (settings["seeds"], settings["spread-steps"], settings["limit"]) == (10, 2, 10)
        # words find candidates too, and what they find has to pass the same threshold
        assert (settings["dense-candidates"], settings["lexical-candidates"]) == (10, 10)
        assert settings["spread-mode"] == "cascade", "reached twice, a memory keeps its best score"

    @pytest.mark.parametrize(
        ("nearness", "hops", "expected"), [(0.4, 0, True), (0.39, 0, False), (-0.2, 1, True)]
    )
    def test_threshold(self, nearness, hops, expected):
        result = decide(
            "cascade", "eligible", nearness=nearness, hops=hops, kind="fact", triggered=False
        )
        assert result is expected

    def test_a_warning_surfaces_when_its_trigger_matches(self):
        rows = every(
            nearness=[0.1, 0.6], hops=[0], kind=["negative", "fact"], triggered=[True, False]
        )
        for row, eligible, seed in zip(
            rows,
            decisions("cascade", "eligible", rows),
            decisions("cascade", "seed-score", rows),
            strict=True,
        ):
            called = row["kind"] == "negative" and row["triggered"]
            assert eligible is (called or row["nearness"] >= 0.4)
            assert seed == (1 if called else row["nearness"])

    def test_an_edge_is_worth_its_weight_times_the_discount(self):
        arguments = {
            "has-tag": 0.8,
            "in-cluster": 0.6,
            "supersedes": 0.9,
            "contradicts": 0.3,
            "derived-from": 0.3,
        }
        rows = every(relation=[*arguments, "relates-to"], weight=[1.0, 0.45], depth=[1, 2])
        expected = [
            arguments.get(row["relation"], row["weight"]) * 0.7 ** row["depth"] for row in rows
        ]
        assert decisions("cascade", "spread", rows) == pytest.approx(expected, rel=1e-15)

    def test_recent_access_lifts(self):
        rows = every(activation=[0.5, 0.9], recency_weight=[0.5, 0.0, 1.0], idle_days=[0, 0.75, 40])
        expected = [
            row["activation"] * (1 + row["recency-weight"] * math.exp(-24 * row["idle-days"] / 24))
            for row in rows
        ]
        assert decisions("cascade", "recall-score", rows) == pytest.approx(expected, rel=1e-15)


class TestConfidence:
    """initial e^(-age / half-life) (1 + 0.1 ln(access + 1)) trust, clamped; the original's half-life is 1/e."""

    @pytest.mark.long
    def test_confidence_at_a_time(self):
        rows = every(
            confidence=[0.3, 0.8, 1.0],
            kind=KINDS,
            provenance=PROVENANCES,
            trust=[None, 0.1, 1.0],
            age_days=[0, 1, 29.5, 400],
            access=[0, 1, 50],
        )
        expected = []
        for row in rows:
            value = row["confidence"] * math.exp(-row["age-days"] / days(row))
            trust = TRUST[row["provenance"]] if row["trust"] is None else row["trust"]
            value *= (1 + 0.1 * math.log(row["access"] + 1)) * trust
            expected.append(min(1.0, max(0.0, value)))
        assert 1.0 in expected, "the clamp is reached"
        assert decisions("cascade", "retention", rows) == pytest.approx(expected, rel=1e-14)

    def test_the_half_life_is_that_of_the_curve(self):
        rows = every(kind=KINDS, provenance=PROVENANCES)
        halves = decisions("cascade", "half-life", rows)
        assert halves == pytest.approx([math.log(2) * days(row) for row in rows], rel=1e-15)
        assert [
            math.exp(-half / days(row)) for half, row in zip(halves, rows, strict=True)
        ] == pytest.approx([0.5] * len(rows))


class TestFeedback:
    def test_each_outcome(self):
        rows = every(
            outcome=["success", "fail", "verified", "rejected", "recalled"],
            strength=[0, 7],
            confidence=[0.5],
        )
        step = {"success": 0.05, "fail": -0.1, "verified": 0.02, "rejected": -0.02, "recalled": 0}
        for row, decision in zip(rows, decisions("cascade", "reinforce", rows), strict=True):
            assert decision["confidence"] == pytest.approx(0.5 + step[row["outcome"]], abs=1e-15)
            assert decision["strength"] == row["strength"] + (row["outcome"] == "success")

    @pytest.mark.parametrize(
        ("outcome", "before", "after"),
        [("success", 0.97, 1), ("verified", 0.99, 1), ("fail", 0.04, 0), ("rejected", 0.01, 0)],
    )
    def test_confidence_stays_a_share(self, outcome, before, after):
        assert (
            decide("cascade", "reinforce", outcome=outcome, strength=1, confidence=before)[
                "confidence"
            ]
            == after
        )


def test_background_settings():
    settings = load_pack("cascade").settings
    assert settings["edge-gain"] == 0.1
    assert settings["topic-closeness"] == 0.3
    assert settings["refine-every"] == 50


def test_contradicting_memories_are_kept_and_flagged():
    rows = every(pair__negates=[True, False], pair__update_words=[False])
    assert decisions("cascade", "resolve", rows) == ["keep-both", "merge"]

"""Pack factgraph against its formulas in plain Python."""

import math

import pytest
from conformance import decide, decisions, every

from memlab.kernel.policies import load_pack
from memlab.kernel.schema import SOURCES, STATUSES, is_single_valued

LIVING = {"age_days": 1000, "ttl_days": None}
SOURCE = {"user-edit": 2.0, "file": 1.5, "system": 1.2, "conversation": 1.0}
FACTS = every(
    confidence=[0.05, 0.09, 0.3, 0.95],
    source=SOURCES,
    elapsed_days=[0, 7, 7.1, 30, 98, 400],
    access=[0, 2, 3, 4, 5, 200],
    status=STATUSES,
)
for fact in FACTS:
    fact["idle-days"] = fact["elapsed-days"]


def factors(row):
    time = 0.95 ** (max(0, row["elapsed-days"] - 7) / 7)
    return SOURCE[row["source"]], time, 1 + 0.5 * math.log10(row["access"] + 1)


def clean_up(row):
    source, time, usage = factors(row)
    return row["confidence"] * source * time * usage


def ranking(row):
    source, time, usage = factors(row)
    return (
        row["confidence"]
        * min(2, max(0.5, source))
        * min(1, max(0.5, time))
        * min(2, max(1, usage))
    )


class TestRelevance:
    @pytest.mark.long
    def test_ranking_clamps_the_factors_and_weighs_the_status(self):
        weight = {"staged": 0.5, "active": 1, "confirmed": 1}
        expected = [ranking(row) * weight.get(row["status"], 0) for row in FACTS]
        assert any(ranking(row) != pytest.approx(clean_up(row)) for row in FACTS), (
            "the clamps are reached"
        )
        assert decisions("factgraph", "recall-score", FACTS) == pytest.approx(expected, rel=1e-13)

    @pytest.mark.long
    def test_time_alone_is_the_retention(self):
        assert decisions("factgraph", "retention", FACTS) == pytest.approx(
            [factors(row)[1] for row in FACTS]
        )

    def test_three_entities_and_two_hops(self):
        """From an entity, its facts are one edge away, its neighbours two, and their facts three."""
        settings = load_pack("factgraph").settings
        assert (settings["entity-seeds"], settings["spread-steps"]) == (3, 3)
        assert (
            settings["seeds"],
            settings["dense-candidates"],
            settings["lexical-candidates"],
        ) == (3, 3, 0)

    def test_a_fact_begins_staged(self):
        assert load_pack("factgraph").settings["fact-status"] == "staged"

    def test_clean_up_and_ranking_part_where_a_clamp_is_reached(self):
        """Time: below a half after ln 0.5 / ln 0.95 weeks beyond the first. Usage: above 2 beyond 99 accesses."""
        weeks = 1 + math.log(0.5) / math.log(0.95)
        for days, access, clamped in (
            (7 * weeks - 1, 99, False),
            (7 * weeks + 1, 99, True),
            (0, 100, True),
        ):
            row = {"confidence": 0.8, "source": "file", "elapsed-days": days, "access": access}
            assert (abs(ranking(row) - clean_up(row)) > 1e-9) is clamped
            asked = {
                "confidence": 0.8,
                "source": "file",
                "idle_days": days,
                "access": access,
                "status": "confirmed",
            }
            assert decide("factgraph", "recall-score", **asked) == pytest.approx(
                ranking(row), rel=1e-13
            )


class TestLifeCycle:
    """Staged, confirmed at 3 accesses; below 0.2 retracted unless accessed 5 times; confirmed does not decay."""

    @pytest.mark.long
    def test_promotion_and_decay(self):
        def expected(row):
            if row["status"] not in ("active", "staged"):
                return row["status"]
            if row["access"] >= 3:
                return "confirmed"
            return "retracted" if clean_up(row) < 0.2 and row["access"] < 5 else "staged"

        wanted = [expected(row) for row in FACTS]
        assert {"staged", "confirmed", "retracted"} <= set(wanted)
        lasting = [{**row, "age-days": 400, "ttl-days": None} for row in FACTS]
        assert decisions("factgraph", "promote", lasting) == wanted

    @pytest.mark.long
    def test_a_memory_with_a_time_to_live_expires(self):
        rows = [{**row, "age-days": 30, "ttl-days": 30} for row in FACTS]
        alive = ("active", "staged", "confirmed")
        wanted = ["expired" if row["status"] in alive else row["status"] for row in rows]
        assert decisions("factgraph", "promote", rows) == wanted

    def test_clean_up_does_not_clamp(self):
        """A fact that ranking would hold at half its worth falls below the line after long enough."""
        row = {"status": "staged", "confidence": 0.9, "source": "conversation", "access": 0}
        row |= {"age_days": 300, "ttl_days": None}
        assert decide("factgraph", "promote", **row, elapsed_days=100) == "staged"
        assert decide("factgraph", "promote", **row, elapsed_days=300) == "retracted"

    @pytest.mark.parametrize(
        ("confidence", "source"), [(0.9, "conversation"), (0.5, "system"), (0.3, "user-edit")]
    )
    @pytest.mark.parametrize("access", [0, 1, 2])
    def test_the_day_on_which_a_staged_fact_is_retracted(self, confidence, source, access):
        """Solve 0.2 = confidence * source * usage * 0.95 ** weeks for the weeks beyond the first."""
        now = confidence * SOURCE[source] * (1 + 0.5 * math.log10(access + 1))
        day = 7 + 7 * math.log(0.2 / now) / math.log(0.95)
        fact = LIVING | {
            "status": "staged",
            "confidence": confidence,
            "source": source,
            "access": access,
        }
        assert decide("factgraph", "promote", **fact, elapsed_days=day - 0.001) == "staged"
        assert decide("factgraph", "promote", **fact, elapsed_days=day + 0.001) == "retracted"

    def test_accesses_keep_it(self):
        """Below 0.2 it is retracted unless it was accessed 5 times; but at 3 it was confirmed, and stays so."""
        faint = LIVING | {"confidence": 0.1, "source": "conversation", "elapsed_days": 1000}
        results = [
            decide("factgraph", "promote", **faint, status="staged", access=access)
            for access in range(7)
        ]
        assert results == ["retracted"] * 3 + ["confirmed"] * 4
        assert decide("factgraph", "promote", **faint, status="confirmed", access=0) == "confirmed"

    def test_retracted_facts_are_cleaned_up(self):
        rows = every(status=STATUSES)
        assert decisions("factgraph", "forget", rows) == [
            row["status"] == "retracted" for row in rows
        ]


class TestFactsOfALab:
    """The same numbers where they end up: ``lab.facts`` after days and recalls."""

    @pytest.mark.long
    def test_relevance(self, lab, clock):
        lab.policies.use("factgraph")
        given = [
            ("lives-in", 0.95, "conversation"),
            ("uses", 0.4, "file"),
            ("knows", 0.7, "user-edit"),
        ]
        for predicate, confidence, source in given:
            lab.facts.add("Ada", predicate, predicate, confidence=confidence, source=source)
        clock.advance(days=40)
        for _ in range(4):
            lab.recall("Ada uses uses", limit=1)
        clock.advance(days=30)
        table = lab.facts.frame().to_dicts()
        assert len({row["access"] for row in table}) > 1
        for row in table:
            days = 30 if row["access"] else 70
            weighed = ranking(row | {"elapsed-days": days}) * (
                0.5 if row["status"] == "staged" else 1
            )
            assert row["relevance"] == pytest.approx(weighed, rel=1e-12)

    def test_single_valued_predicates(self):
        declared = load_pack("factgraph").settings["single-valued"]
        single = (
            "lives-in",
            "status",
            "prefers:theme",
            "works-at",
            "name",
            "age",
            "birthday",
            "role",
        )
        several = ("uses", "knows", "prefers", "lives", "status-of", "STATUS")
        assert [is_single_valued(predicate, declared) for predicate in (*single, *several)] == [
            True
        ] * 8 + [False] * 6


class TestConflicts:
    """Confidence > 0.9 and another value for the same subject and single-valued predicate: the old one goes."""

    PAIRS = every(
        new__confidence=[0.9, 0.91],
        pair__same_subject=[True, False, None],
        pair__same_predicate=[True, False],
        pair__same_value=[True, False, None],
        pair__single_valued=[True, False],
    )

    @staticmethod
    def conflicts(row):
        same = row["pair/same-subject"] is True and row["pair/same-predicate"] is True
        return same and row["pair/single-valued"] and row["pair/same-value"] is False

    @staticmethod
    def repeats(row):
        return all(row[f"pair/same-{what}"] is True for what in ("subject", "predicate", "value"))

    def test_link(self):
        def expected(row):
            if self.repeats(row):
                return "duplicate"
            if self.conflicts(row):
                return "contradicts"
            return "related" if row["pair/same-subject"] else "none"

        assert decisions("factgraph", "link", self.PAIRS) == [expected(row) for row in self.PAIRS]

    def test_resolve(self):
        def expected(row):
            if self.repeats(row):
                return "merge"
            return (
                "keep-new" if self.conflicts(row) and row["new/confidence"] > 0.9 else "keep-both"
            )

        assert decisions("factgraph", "resolve", self.PAIRS) == [
            expected(row) for row in self.PAIRS
        ]

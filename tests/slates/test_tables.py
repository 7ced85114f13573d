"""The four tables of a log, from slates; parts of it; what it says of itself."""

import time

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from properties import examples

from memlab.errors import InputError, UnknownName
from memlab.kernel.slates import TABLES, Slates
from tests.displays import html_of
from tests.slates.logs import frames, judged, logs, no_feedback, plain, recalls

quick = examples(40, quick=10)


def slowly(logged):
    """Build the tables of slates with a frame for each slate and a dict for each row."""
    pools = [
        slate.frame.with_columns(decision=pl.lit(slate.decision, dtype=pl.Int64)).select(
            "decision", *slate.frame.columns
        )
        for slate in logged
    ]
    exposures = [
        {
            "decision": slate.decision,
            "position": position,
            "memory_id": memory,
            "propensity": dict(zip(slate.ids.tolist(), slate.inclusion.tolist(), strict=True))[
                memory
            ],
            "conditional": item,
            "probe": memory in slate.probes,
        }
        for slate in logged
        for position, (memory, item) in enumerate(
            zip(slate.shown, slate.conditional, strict=True), 1
        )
    ]
    return pl.concat(pools, how="diagonal_relaxed"), pl.DataFrame(
        exposures, schema=TABLES["exposures"]
    )


@pytest.mark.long
@quick
@given(recalls())
def test_columns_by_concatenation_are_those_of_a_frame_a_slate(logged):
    result = frames(Slates.of(logged, no_feedback()))
    candidates, exposures = slowly(logged)
    assert_frame_equal(result["candidates"], candidates, check_column_order=False)
    assert_frame_equal(result["exposures"], exposures)
    assert result["decisions"]["decision"].to_list() == [slate.decision for slate in logged]
    assert result["decisions"]["candidates"].to_list() == [len(slate) for slate in logged]


@pytest.mark.long
@quick
@given(recalls(minimum_recalls=0))
def test_tables_have_the_declared_columns(logged):
    for name, frame in frames(Slates.of(logged, no_feedback())).items():
        expected = TABLES[name]
        assert {
            column: kind for column, kind in frame.schema.items() if column in expected
        } == expected
        if name != "candidates":
            assert frame.columns == list(expected)
        else:
            assert frame.columns[:2] == ["decision", "memory_id"]
            assert frame.columns[-3:] == ["score", "rank", "propensity"]


def test_a_feature_that_a_slate_lacks_is_null_there():
    log = Slates.of([plain(1, numbers={}), plain(2), plain(3, numbers={})], no_feedback())
    assert log.features == ("kind", "similarity")
    assert log.candidates.collect()["decision"].to_list() == [1] * 3 + [2] * 3 + [3] * 3
    table = log.candidates.filter(pl.col("similarity").is_not_null()).collect()
    assert table["decision"].unique().to_list() == [2]


def test_a_cluster_is_the_project_else_the_session_else_the_decision():
    log = Slates.of(
        [plain(1, project="api", session="s"), plain(2, session="s"), plain(3)], no_feedback()
    )
    assert log.decisions.collect()["cluster"].to_list() == ["api", "s", "3"]


def test_an_outcome_is_worth_one_or_nothing_unless_a_reward_was_given():
    feedback = no_feedback().vstack(
        pl.DataFrame(
            [
                (1, 1, "success", None),
                (1, 2, "fail", None),
                (1, 3, "success", 0.4),
                (1, 3, None, 7.0),
            ],
            schema=["decision", "memory_id", "outcome", "reward"],
            orient="row",
        ).select(pl.all(), source=pl.lit("user"), at=pl.lit(0).cast(pl.Datetime("us", "UTC")))
    )
    assert Slates.of([plain(1)], feedback).feedback.collect()["reward"].to_list() == [1, 0, 0.4, 7]


def test_a_judgement_without_a_recall_is_kept_and_noted():
    loose = no_feedback().vstack(
        pl.DataFrame(
            {
                "decision": None,
                "memory_id": 1,
                "outcome": "fail",
                "reward": None,
                "source": "u",
                "at": None,
            },
            schema=no_feedback().schema,
        )
    )
    log = Slates.of([plain(1)], loose)
    assert log.feedback.collect().height == 1
    assert log.notes == ("1 judgement ignored: not linked to a recall.",)
    assert log.filter(pl.col("decision") == 1).feedback.collect().height == 0


class TestParts:
    @pytest.mark.long
    @quick
    @given(logs(), st.integers(0, 1000))
    def test_a_filter_keeps_what_belongs_to_its_decisions(self, log, cut):
        part = frames(log.filter(pl.col("decision") < cut))
        for name, frame in frames(log).items():
            assert_frame_equal(part[name], frame.filter(pl.col("decision") < cut))

    def test_a_filter_computes_nothing(self):
        log = Slates.of([plain(1)], no_feedback()).filter(pl.col("absent") > 1)
        with pytest.raises(pl.exceptions.ColumnNotFoundError):
            len(log)

    @pytest.mark.long
    @quick
    @given(
        logs(minimum_recalls=2, maximum=8),
        st.floats(0.05, 0.95),
        st.sampled_from(["time", "cluster"]),
    )
    def test_a_split_is_a_partition_that_keeps_together_what_belongs_together(self, log, share, by):
        column = {"time": "at", "cluster": "cluster"}[by]
        if log.decisions.collect()[column].n_unique() < 2:
            with pytest.raises(InputError):
                log.split(by, share=share)
            return
        one, other = log.split(by, share=share)
        parts = one.decisions.collect(), other.decisions.collect()
        assert all(len(part) for part in parts)
        assert_frame_equal(pl.concat(parts).sort("decision"), log.decisions.collect())
        assert not set(parts[0][column]) & set(parts[1][column])
        if by == "time":
            assert parts[0]["at"].max() < parts[1]["at"].min()

    def test_by_time_the_share_goes_first(self):
        one, other = Slates.of([plain(day) for day in range(1, 11)], no_feedback()).split(share=0.7)
        assert one.decisions.collect()["decision"].to_list() == [1, 2, 3, 4, 5, 6, 7]
        assert len(other) == 3

    def test_at_an_instant(self):
        log = Slates.of([plain(day) for day in range(1, 5)], no_feedback())
        third = log.decisions.collect()["at"][2]
        assert [len(part) for part in log.split(at=third)] == [2, 2]
        with pytest.raises(InputError, match="leaves one part empty"):
            log.split(at="1999-01-01")

    def test_clusters_are_drawn_by_seed(self):
        log = Slates.of([plain(day) for day in range(1, 40)], no_feedback())
        draws = {
            tuple(log.split("cluster", seed=seed)[0].decisions.collect()["decision"])
            for seed in (0, 0, 1, 2)
        }
        assert len(draws) == 3

    @pytest.mark.parametrize(
        ("how", "error"),
        [
            ({"share": 0}, "share"),
            ({"share": 1.0}, "share"),
            ({"by": "clusters"}, "Did you mean cluster"),
            ({"by": "cluster", "at": "2026-01-01"}, "split by time"),
        ],
    )
    def test_logs_that_cannot_be_split(self, how, error):
        with pytest.raises(InputError, match=error):
            Slates.of([plain(1), plain(2)], no_feedback()).split(**how)

    def test_collected_it_is_the_same_log(self):
        log = Slates.of([plain(1), plain(2)], no_feedback())
        for name, frame in frames(log.collect()).items():
            assert_frame_equal(frame, frames(log)[name])


class TestLooks:
    def test_a_summary_counts(self):
        probe = plain(2, sampler="probe", shown=(1, 2, 3), probes=(3,), pack="cascade")
        log = Slates.of([plain(1, shown=(1,)), probe], no_feedback())
        text = repr(log)
        for line in (
            "2 in 2 clusters",
            "6 (3.0 per decision)",
            "4, 25.0% of them probes",
            "deterministic (1), probe (1)",
            "cascade (1), memlab (1)",
            "2026-02-03 02:40 to 2026-02-04 02:40 UTC",
        ):
            assert line in text

    def test_a_log_that_does_not_say_which_items_were_probes_counts_none(self):
        rows = pl.DataFrame(
            {
                "query_id": [1, 1],
                "memory_id": [7, 9],
                "rank": [1, 2],
                "clicked": [1, None],
                "p": [1.0, 0.2],
            }
        )
        log = Slates.from_wide(
            rows,
            decision="query_id",
            item="memory_id",
            shown="rank",
            reward="clicked",
            propensity="p",
            limit=1,
        )
        assert "probes" not in repr(log).split("feedback")[0]

    def test_html_is_escaped(self):
        log = Slates.of([plain(1, pack="<script>")], no_feedback())
        assert "&lt;script&gt;" in html_of(log)
        assert "<script>" not in html_of(log)

    @pytest.mark.long
    @quick
    @given(recalls(minimum_recalls=0))
    def test_every_log_can_be_shown(self, logged):
        log = Slates.of(logged, no_feedback())
        assert f"{len(logged):,} in" in repr(log)
        assert len(log) == len(logged)

    def test_tables_of_fewer_columns_can_be_shown_too(self):
        ids = pl.LazyFrame({"decision": [1], "memory_id": [2]})
        assert "1 in 1 clusters" in repr(Slates(ids.select("decision"), ids, ids, ids))

    def test_fingerprints_of_a_decision(self):
        log = Slates.of([plain(1), plain(2, fingerprints={})], no_feedback())
        assert (log.fingerprints(1), log.fingerprints(2)) == ({"similarity": "ab"}, {})
        with pytest.raises(UnknownName, match="decision"):
            log.fingerprints(3)


@pytest.mark.long
@quick
@given(recalls())
def test_feedback_keeps_its_order(logged):
    result = judged(np.random.default_rng(0), logged)
    assert Slates.of(logged, result).feedback.collect()["at"].to_list() == result["at"].to_list()


@pytest.mark.long
def test_columns_of_many_slates_are_quick():
    dice = np.random.default_rng(0)
    numbers = {f"f{index}": dice.random(100) for index in range(28)}
    kinds = {name: ["fact"] * 100 for name in ("kind", "scope", "provenance", "visibility")}
    logged = [
        plain(day, ids=range(100), shown=range(10), numbers=numbers, words=kinds)
        for day in range(1, 761)
    ]
    start = time.process_time()
    log = Slates.of(logged, no_feedback())
    assert time.process_time() - start < 1.5  # measured: 0.04
    assert log.candidates.collect().height == 76_000

"""A log as one frame, a row a candidate, and the way back."""

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from properties import examples

from memlab.errors import DatasetError, InputError, UnknownName
from memlab.kernel.slates import WIDE, Slates
from tests.slates.logs import frames, logs

quick = examples(40, quick=10)


def log(**changes):
    """Return a log of two queries about three memories each, as a service might write it."""
    frame = pl.DataFrame(
        {
            "query_id": ["a", "a", "a", "b", "b", "b"],
            "memory_id": [7, 8, 9, 7, 8, 9],
            "rank": [1, 2, None, 2, 0, 1],
            "clicked": [True, False, False, False, False, True],
            "p": [1.0, 0.2, 0.8, 0.5, 0.5, 1.0],
            "mine": [0.1, 0.5, 0.4, 0.3, 0.2, 0.9],
            "theirs": [3, 2, 1, 1, 2, 3],
            "age": [1, 2, 3, 4, 5, 6],
            "text": list("uvwxyz"),
        }
    )
    return frame.with_columns(
        **{name: pl.Series(values, strict=False) for name, values in changes.items()}
    )


ARGUMENTS = {
    "decision": "query_id",
    "item": "memory_id",
    "shown": "rank",
    "reward": "clicked",
    "propensity": "p",
}


def read(frame=None, **more):
    return Slates.from_wide(
        log() if frame is None else frame, **ARGUMENTS | {"scores": ["mine", "theirs"]} | more
    )


def test_two_score_columns_of_a_csv(tmp_path):
    log().write_csv(tmp_path / "log.csv")
    slates = Slates.from_wide(
        pl.read_csv(tmp_path / "log.csv"),
        decision="query_id", item="memory_id", shown="rank", reward="clicked", propensity="p",
        scores=["mine", "theirs"],
    )  # fmt: skip
    assert slates.policies == ("mine", "theirs")
    assert slates.features == ("age",)
    result = frames(slates)
    assert result["decisions"]["decision"].to_list() == ["a", "b"]
    assert result["exposures"].select("decision", "position", "memory_id", "propensity").rows() == [
        ("a", 1, 7, 1.0),
        ("a", 2, 8, 0.2),
        ("b", 1, 9, 1.0),
        ("b", 2, 7, 0.5),
    ]
    assert result["feedback"].select("decision", "memory_id", "reward").rows() == [
        ("a", 7, 1.0),
        ("a", 8, 0.0),
        ("b", 7, 0.0),
        ("b", 9, 1.0),
    ]
    assert result["candidates"]["propensity"].to_list() == log()["p"].to_list()
    assert result["decisions"]["limit"].to_list() == [2, 2]


@pytest.mark.long
def test_a_lazy_frame_gives_the_same():
    for name, frame in frames(read(log().lazy())).items():
        assert_frame_equal(frame, frames(read())[name])


@pytest.mark.long
def test_rows_may_stand_in_any_order():
    shuffled = frames(read(log().sample(fraction=1, shuffle=True, seed=3)))
    for name, frame in frames(read()).items():
        keys = [key for key in ("decision", "memory_id") if key in frame.columns]
        assert_frame_equal(shuffled[name].sort(keys), frame.sort(keys))


class TestShown:
    def test_as_a_rank_or_a_flag(self):
        flagged = frames(read(log(rank=[True, True, False, True, False, True])))
        assert flagged["exposures"]["memory_id"].to_list() == [7, 8, 7, 9]
        assert flagged["exposures"]["position"].to_list() == [1, 2, 1, 2]

    def test_without_it_every_row_was_shown(self):
        result = frames(
            Slates.from_wide(
                log().drop("rank"), decision="query_id", item="memory_id", reward="age"
            )
        )
        assert result["exposures"].height == 6

    @pytest.mark.long
    def test_ranks_of_a_csv_with_gaps_are_floats(self):
        assert_frame_equal(
            read(log(rank=[1.0, 2.0, None, 2.0, 0.0, 1.0])).exposures.collect(),
            read().exposures.collect(),
        )

    @pytest.mark.parametrize(
        ("rank", "why"),
        [
            (
                [1, 2, -1, 2, 0, 1],
                r"frame, row 2 \(query_id 'a', memory_id 9\): rank is -1, below 0",
            ),
            ([1.0, 2.5, 0, 2, 0, 1], r"frame, row 1 .*rank is 2\.5, which is not a whole number"),
            ([1.0, math.nan, 0, 2, 0, 1], r"frame, row 1 .*rank is NaN"),
            ([1, 1, 0, 2, 0, 1], r"frame, row 1 .*rank 1 occurs twice"),
            ([1, 2, 0, 0, 0, 0], r"frame, row 3 \(query_id 'b'\): nothing was shown"),
        ],
    )
    def test_an_invalid_rank_is_refused(self, rank, why):
        with pytest.raises(DatasetError, match=why):
            read(log(rank=rank, clicked=[False] * 6))

    def test_text_is_no_rank(self):
        with pytest.raises(InputError, match="rank is String"):
            read(log(rank=list("abcdef")))


class TestPropensity:
    def test_without_it_the_sampler_is_unknown(self):
        slates = Slates.from_wide(
            log().drop("p"), decision="query_id", item="memory_id", shown="rank"
        )
        assert slates.decisions.collect()["sampler"].to_list() == ["unknown"] * 2
        assert slates.exposures.collect()["propensity"].to_list() == [None] * 4
        assert "no propensities" in slates.notes[-1]

    def test_even_if_every_candidate_was_shown(self):
        """A table of impressions has the items that were shown, and not their probabilities."""
        result = frames(
            Slates.from_wide(log().drop("p", "rank"), decision="query_id", item="memory_id")
        )
        assert result["decisions"]["sampler"].to_list() == ["unknown"] * 2
        assert result["exposures"]["propensity"].to_list() == [None] * 6

    def test_of_what_was_shown_only(self):
        slates = read(log(p=[1, 0.2, None, 0.5, None, 1]))
        assert slates.candidates.collect()["propensity"].to_list() == [1, 0.2, None, 0.5, None, 1]
        assert "2 candidates that were not shown have no propensity" in slates.notes[-1]

    @pytest.mark.parametrize(
        ("p", "why"),
        [
            (
                [1, 0.0, 0.8, 0.5, 0.5, 1],
                r"frame, row 1 \(query_id 'a', memory_id 8\): the item was shown with p 0",
            ),
            ([1, -0.2, 0.8, 0.5, 0.5, 1], r"frame, row 1 .*p is -0\.2, below 0"),
            ([1, 0.2, 0.8, 1.5, 0.5, 1], r"frame, row 3 .*p is 1\.5, above 1"),
            ([1, 0.2, 0.8, math.nan, 0.5, 1], r"frame, row 3 .*p is NaN"),
            (
                [1, 0.2, 0.8, None, 0.5, 1],
                r"frame, row 3 .*p is missing, though others have it. Leave these recalls out",
            ),
            (
                [1, 0.2, 1.0, 0.5, 0.5, 1],
                r"frame, row 2 .*p is 1, and it was not shown. Give it the probability",
            ),
        ],
    )
    def test_an_invalid_propensity_is_refused(self, p, why):
        with pytest.raises(DatasetError, match=why):
            read(log(p=p))

    def test_a_forgotten_argument_is_asked_for(self):
        with pytest.raises(InputError, match=r"Pass propensity='propensity'"):
            Slates.from_wide(
                log().rename({"p": "propensity"}),
                decision="query_id",
                item="memory_id",
                shown="rank",
            )
        with pytest.raises(InputError, match=r"Pass shown='rank'"):
            Slates.from_wide(log(), decision="query_id", item="memory_id", propensity="p")


class TestReward:
    def test_null_is_no_feedback_and_nothing_is_known_of_what_was_not_shown(self):
        slates = read(log(clicked=[1.0, None, 0, None, None, 0.5]))
        assert slates.feedback.collect()["reward"].to_list() == [1.0, 0.5]
        assert (
            slates.notes[-1]
            == "1 rows that were not shown have clicked 0; they are left out, as without feedback."
        )

    def test_nan_is_no_feedback_either(self):
        assert read(log(clicked=[1.0, math.nan, None, None, None, 0.5])).feedback.collect()[
            "reward"
        ].to_list() == [
            1.0,
            0.5,
        ]

    @pytest.mark.long
    def test_a_head_without_a_limit_is_said_to_hold_the_probes(self):
        assert "probes included" in read().notes[0]
        assert not any("probes included" in note for note in read(limit=2).notes)

    def test_feedback_may_have_a_time_of_its_own(self):
        table = log().with_columns(when=pl.datetime(2026, 3, 2))
        assert (
            read(table, feedback_at="when", features=[]).feedback.collect()["at"].null_count() == 0
        )

    @pytest.mark.parametrize(
        ("clicked", "why"),
        [
            (
                [1, 0, 1, 0, 0, 1],
                r"frame, row 2 \(query_id 'a', memory_id 9\): the memory has feedback but was not shown",
            ),
            ([1, math.inf, 0, 0, 0, 1], r"frame, row 1 .*clicked is infinite"),
            ([1, 0, 0, 0, 0, 2], r"frame, row 5 .*clicked is 2, outside the range 0\.\.1"),
        ],
    )
    def test_an_invalid_table_is_refused(self, clicked, why):
        with pytest.raises(DatasetError, match=why):
            read(log(clicked=clicked), reward_range=(0, 1))

    def test_there_may_be_none(self):
        assert read(reward=None).feedback.collect().height == 0


class TestColumns:
    @pytest.mark.parametrize(
        "role", ["decision", "item", "shown", "reward", "propensity", "score", "cluster", "at"]
    )
    def test_a_column_that_is_not_there(self, role):
        with pytest.raises(UnknownName, match="column of frame named"):
            read(**{role: "clickde"})

    def test_scores_are_several(self):
        with pytest.raises(InputError, match=r"Did you mean \['mine'\]"):
            read(scores="mine")

    def test_a_candidate_without_a_score_is_never_shown(self):
        scores = read(log(mine=[1, 2, 3, 4, math.nan, 6.0])).candidates.collect()["mine"].to_list()
        assert scores == [1, 2, 3, 4, None, 6]

    @pytest.mark.long
    def test_features_are_the_remaining_or_the_listed_number_columns(self):
        assert read(scores=()).features == ("mine", "theirs", "age")
        assert read(features=["text", "age"]).features == ("text", "age")
        assert read(features=()).features == ()

    def test_of_the_whole_decision_there_is_one_value(self):
        frame = log(
            user=["u", "u", "u", "v", "v", "v"], day=["2026-03-01"] * 3 + ["2026-03-02"] * 3
        )
        table = read(frame, cluster="user", at="day", query="user", limit=1).decisions.collect()
        assert table["cluster"].to_list() == ["u", "v"]
        assert table["limit"].to_list() == [1, 1]
        assert table["at"].dt.day().to_list() == [1, 2]
        with pytest.raises(
            DatasetError,
            match=r"frame, row 4 .*user is 'w', which differs from the first row of the decision",
        ):
            read(frame.with_columns(user=pl.Series(list("uuuvwv"))), cluster="user")

    def test_a_candidate_occurs_once(self):
        with pytest.raises(
            DatasetError,
            match=r"frame, row 1 \(query_id 'a', memory_id 7\): the memory is a candidate twice",
        ):
            read(log(memory_id=[7, 7, 9, 7, 8, 9]))

    def test_an_id_is_there(self):
        with pytest.raises(DatasetError, match=r"frame, row 2 .*query_id is missing"):
            read(log(query_id=["a", "a", None, "b", "b", "b"]))

    def test_the_score_of_the_logging_policy_gives_the_ranks(self):
        table = read(score="mine", scores=["theirs"]).candidates.collect()
        assert table["rank"].to_list() == [3, 1, 2, 2, 3, 1]


class TestThereAndBack:
    @pytest.mark.long
    @quick
    @given(logs(minimum=1))
    def test_the_conversion_is_exact(self, wide_log):
        wide = wide_log.to_wide()
        assert wide.height == wide_log.candidates.collect().height
        again = Slates.from_wide(wide, **WIDE, scores=wide_log.policies, features=wide_log.features)
        result = frames(again)
        for name, frame in frames(wide_log).items():
            order = ["decision", "memory_id"] if name == "feedback" else []
            assert_frame_equal(
                result[name].sort(order) if order else result[name],
                frame.sort(order) if order else frame,
            )

    @pytest.mark.long
    @quick
    @given(logs(minimum=1), st.randoms(use_true_random=False))
    def test_policies_come_along(self, wide, dice):
        scored = wide.candidates.collect().with_columns(
            pl.Series("mine", [dice.random() for _ in range(len(wide.to_wide()))])
        )
        tables = frames(wide) | {"candidates": scored}
        first = Slates.from_frames(*tables.values(), policies=["mine"])
        again = Slates.from_wide(
            first.to_wide(), **WIDE, scores=first.policies, features=first.features
        )
        assert again.policies == ("mine",)
        assert_frame_equal(again.candidates.collect(), first.candidates.collect())

    @pytest.mark.long
    def test_a_memory_that_was_judged_twice_has_one_row(self):
        one = read()
        twice = pl.concat(
            [one.feedback, one.feedback.with_columns(source=pl.lit("judge"), reward=pl.lit(0.0))]
        )
        result = Slates(one.decisions, one.candidates, one.exposures, twice)
        with pytest.raises(DatasetError, match="twice; choose which counts"):
            result.to_wide()
        assert result.to_wide(duplicates="mean")["reward"].drop_nulls().to_list() == [
            0.5,
            0.0,
            0.0,
            0.5,
        ]

    def test_a_feature_with_the_name_of_a_column_of_the_frame(self):
        one = read(log(shown=[1, 2, 3, 4, 5, 6]))
        with pytest.raises(InputError, match=r"'shown'.*Rename"):
            one.to_wide()

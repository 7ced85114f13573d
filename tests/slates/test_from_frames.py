"""Anybody's four frames: what is absent is completed, and what cannot be is refused with its place."""

import contextlib
import math
import re

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from properties import examples

import memlab
from memlab.errors import DatasetError, InputError, MemlabError, UnknownName
from memlab.kernel.slates import Slates
from memlab.kernel.slates._slate import FORMAT
from tests.slates.logs import frames, logs

quick = examples(40, quick=10)


def valid(**how):
    """Draw a log of memlab's own in which every decision had two or more candidates and a result."""
    return logs(minimum=2, **how)


def read_tables(tables, **how):
    return Slates.from_frames(*tables.values(), **how)


@pytest.mark.long
@quick
@given(valid())
def test_a_log_of_memlab_passes_unchanged(log):
    tables = frames(log)
    for name, frame in frames(read_tables(tables, reward_range=(0, 1))).items():
        assert_frame_equal(frame, tables[name])


@pytest.mark.long
@quick
@given(valid())
def test_lazy_frames_are_taken_too(log):
    again = Slates.from_frames(log.decisions, log.candidates, log.exposures, log.feedback)
    assert_frame_equal(again.candidates.collect(), log.candidates.collect())


@pytest.mark.long
@quick
@given(valid())
def test_derivable_columns_may_be_absent(log):
    """Everything but ids, scores, propensities, samplers and the flags of probes can be told from these."""
    tables = frames(log)
    least = {
        "decisions": tables["decisions"].select("decision", "project", "session"),
        "candidates": tables["candidates"].select("decision", "memory_id", score=-pl.col("rank")),
        "exposures": tables["exposures"].select("decision", "memory_id", "propensity", "probe"),
        "feedback": tables["feedback"].select("decision", "memory_id", "reward"),
    }
    result = frames(read_tables(least))
    assert result["decisions"]["cluster"].to_list() == tables["decisions"]["cluster"].to_list()
    assert (
        result["decisions"]["candidates"].to_list() == tables["decisions"]["candidates"].to_list()
    )
    assert result["candidates"]["rank"].to_list() == tables["candidates"]["rank"].to_list()
    assert result["exposures"]["position"].to_list() == tables["exposures"]["position"].to_list()


# Corruptions: (table, column, value, the reason that the message gives). Each falls on a row drawn at random.
CELLS = [
    ("decisions", "decision", None, "decision is missing"),
    ("decisions", "limit", 0, "limit is 0"),
    ("decisions", "limit", None, "limit is missing"),
    ("decisions", "at", None, "at is missing"),
    ("decisions", "format", FORMAT - 1, f"format {FORMAT - 1} is an older schema"),
    ("decisions", "format", FORMAT + 1, f"format {FORMAT + 1} is a later schema"),
    ("decisions", "sampler", "gumble", "no sampler 'gumble'. Did you mean gumbel"),
    ("decisions", "kappa", math.nan, "kappa is NaN"),
    ("decisions", "fingerprints", "[1]", "fingerprints is not a JSON object"),
    ("decisions", "settings", "{", "settings is not a JSON object"),
    ("decisions", "candidates", 99, "the decision had 99 candidates"),
    ("candidates", "decision", None, "decision is missing"),
    ("candidates", "decision", -1, "there is no such decision"),
    ("candidates", "memory_id", None, "memory_id is missing"),
    ("candidates", "score", math.nan, "score is NaN"),
    ("candidates", "score", None, "score is missing"),
    ("candidates", "rank", 0, "rank is 0"),
    ("candidates", "rank", None, "rank is missing"),
    ("candidates", "propensity", -0.1, "propensity is -0.1, below 0"),
    ("candidates", "propensity", 1.5, "propensity is 1.5, above 1"),
    ("candidates", "propensity", math.nan, "propensity is NaN"),
    ("candidates", "propensity", math.inf, "propensity is inf, above 1"),
    ("exposures", "decision", None, "decision is missing"),
    ("exposures", "decision", -1, "there is no such decision"),
    ("exposures", "memory_id", None, "memory_id is missing"),
    ("exposures", "memory_id", -1, "the memory was shown but is not a candidate"),
    ("exposures", "position", 0, "position is 0"),
    ("exposures", "position", None, "position is missing"),
    ("exposures", "propensity", 0.0, "propensity 0, which is impossible"),
    ("exposures", "propensity", -0.5, "propensity is -0.5, below 0"),
    ("exposures", "propensity", 1.2, "propensity is 1.2, above 1"),
    ("exposures", "propensity", math.nan, "propensity is NaN"),
    ("exposures", "propensity", None, "propensity is missing"),
    ("exposures", "conditional", 0.0, "conditional is 0.0"),
    ("exposures", "conditional", math.nan, "conditional is nan"),
    ("feedback", "decision", None, "decision is missing"),
    ("feedback", "decision", -1, "there is no such decision"),
    ("feedback", "memory_id", None, "memory_id is missing"),
    ("feedback", "memory_id", -1, "the memory has feedback but was not shown"),
    ("feedback", "reward", math.nan, "reward is NaN"),
    ("feedback", "reward", math.inf, "reward is infinite"),
    ("feedback", "reward", -3.0, "reward is -3, outside the range 0..1"),
]


@pytest.mark.long
@pytest.mark.parametrize(("table", "column", "value", "why"), CELLS)
@examples(10, quick=3)
@given(data=st.data())
def test_a_corrupt_cell_is_refused_with_its_place(table, column, value, why, data):
    tables = frames(data.draw(valid()))
    frame = tables[table]
    # a column of nulls is an absent one, which follows from the rest
    assume(frame.height > (1 if value is None else 0))
    row = data.draw(st.integers(0, frame.height - 1))
    assume(frame[row, column] != value)
    tables[table] = frame.with_columns(
        pl.when(pl.int_range(pl.len()) == row)
        .then(pl.lit(value, dtype=frame.schema[column]))
        .otherwise(column)
        .alias(column)
    )
    with pytest.raises(DatasetError, match=re.escape(why)) as caught:
        read_tables(tables, reward_range=(0, 1))
    ids = [name for name in ("decision", "memory_id") if name in frame.columns]
    named = ", ".join(f"{name} {tables[table][row, name]}" for name in ids)
    assert str(caught.value).startswith(f"{table}, row {row} ({named}): ")


def without(frame, row):
    return frame.with_row_index("row").filter(pl.col("row") != row).drop("row")


@pytest.mark.long
@examples(20, quick=8)
@given(data=st.data(), table=st.sampled_from(["decisions", "candidates", "exposures", "feedback"]))
def test_a_repeated_row_is_refused(data, table):
    tables = frames(data.draw(valid()))
    frame = tables[table]
    assume(frame.height)
    row = data.draw(st.integers(0, frame.height - 1))
    tables[table] = pl.concat([frame, frame[row]])
    with pytest.raises(DatasetError, match="twice") as caught:
        read_tables(tables)
    assert str(caught.value).startswith(f"{table}, row {frame.height} (")


@pytest.mark.long
@examples(20, quick=8)
@given(data=st.data(), table=st.sampled_from(["decisions", "candidates"]))
def test_a_row_that_was_lost_is_noticed(data, table):
    tables = frames(data.draw(valid()))
    row = data.draw(st.integers(0, tables[table].height - 1))
    decision = tables[table][row, "decision"]
    tables[table] = without(tables[table], row)
    with pytest.raises(DatasetError, match=rf"decision {decision}\b"):
        read_tables(tables)


@pytest.mark.long
@examples(20, quick=8)
@given(data=st.data())
def test_a_probability_that_did_not_let_it_happen_is_refused(data):
    """What a deterministic decision showed was certain, and what was certain was shown."""
    tables = frames(data.draw(valid(sampler="deterministic")))
    for name in ("exposures", "candidates"):
        changed = tables[name].with_columns(
            pl.when(pl.col("propensity") == 1).then(0.5).otherwise(0).alias("propensity")
        )
        tables[name] = changed
    with pytest.raises(
        DatasetError, match=r"the decision is deterministic, and propensity is 0\.5, not 1"
    ):
        read_tables(tables)


def tiny(**changes):
    """Return a log of two decisions with two candidates each, of which the first was shown."""
    both = {"decision": [1, 1, 2, 2], "memory_id": [7, 8, 7, 8]}
    tables = {
        "decisions": pl.DataFrame({"decision": [1, 2]}),
        "candidates": pl.DataFrame(both),
        "exposures": pl.DataFrame({"decision": [1, 2], "memory_id": [7, 7]}),
        "feedback": pl.DataFrame({"decision": [1], "memory_id": [7], "reward": [1.0]}),
    }
    for name, columns in changes.items():
        tables[name] = tables[name].with_columns(
            **{key: pl.Series(values) for key, values in columns.items()}
        )
    return tables


class TestPropensities:
    @pytest.mark.long
    def test_without_any_the_sampler_is_unknown_and_notes_say_so(self):
        log = read_tables(tiny())
        assert log.decisions.collect()["sampler"].to_list() == ["unknown"] * 2
        assert log.exposures.collect()["propensity"].to_list() == [None, None]
        assert "2 of 2 decisions have no propensities" in log.notes[0]

    def test_certainties_make_a_deterministic_log(self):
        result = frames(read_tables(tiny(exposures={"propensity": [1.0, 1.0]})))
        assert result["decisions"]["sampler"].to_list() == ["deterministic"] * 2
        assert result["candidates"]["propensity"].to_list() == [1, 0, 1, 0]
        assert result["exposures"]["conditional"].to_list() == [1, 1]

    def test_a_single_propensity_makes_a_logged_sampler(self):
        log = read_tables(tiny(exposures={"propensity": [1.0, 0.5]}))
        result = frames(log)
        assert result["decisions"]["sampler"].to_list() == ["logged"] * 2
        assert result["candidates"]["propensity"].to_list() == [1, None, 0.5, None]
        assert "2 candidates that were not shown have no propensity" in log.notes[0]

    def test_propensities_of_candidates_are_those_of_their_exposures(self):
        result = frames(read_tables(tiny(candidates={"propensity": [0.5, 0.5, 0.25, 0.75]})))
        assert result["exposures"]["propensity"].to_list() == [0.5, 0.25]

    def test_a_declared_sampler_of_certainties_needs_none(self):
        result = frames(read_tables(tiny(decisions={"sampler": ["deterministic"] * 2})))
        assert result["candidates"]["propensity"].to_list() == [1, 0, 1, 0]

    def test_arithmetic_may_leave_a_trace(self):
        result = frames(read_tables(tiny(exposures={"propensity": [1 + 1e-12, 0.5]})))
        assert result["exposures"]["propensity"].to_list() == [1, 0.5]

    @pytest.mark.parametrize(
        ("changes", "why"),
        [
            (
                {"exposures": {"propensity": [0.5, None]}},
                r"exposures, row 1 .*missing, though others have it",
            ),
            ({"candidates": {"propensity": [None, 0.5, 0.5, 0.5]}}, r"exposures, row 0 .*missing"),
            (
                {
                    "candidates": {"propensity": [0.5, 0.5, 0.2, 0.5]},
                    "exposures": {"propensity": [0.5, 0.5]},
                },
                r"exposures, row 1 .*is 0\.5, and 0\.2 among the candidates",
            ),
            (
                {"candidates": {"propensity": [0.5, 1.0, 0.5, 0.5]}},
                r"candidates, row 1 .*is 1, and it was not shown",
            ),
            (
                {"candidates": {"propensity": [0.0, 1.0, 0.5, 0.5]}},
                r"exposures, row 0 .*which is impossible",
            ),
            (
                {"decisions": {"sampler": ["probe"] * 2}, "exposures": {"propensity": [1.0, 0.5]}},
                r"candidates, row 1 .*is missing, and the sampler is probe",
            ),
            (
                {"decisions": {"sampler": ["logged"] * 2}},
                r"exposures, row 0 .*missing, and the sampler is logged",
            ),
            (
                {
                    "decisions": {"sampler": ["deterministic"] * 2},
                    "candidates": {"propensity": [1.0, 0.5, 1.0, 0.0]},
                },
                r"candidates, row 1 .*did not show it, and propensity is 0\.5, not 0",
            ),
        ],
    )
    def test_contradictions_are_refused(self, changes, why):
        with pytest.raises(DatasetError, match=why):
            read_tables(tiny(**changes))

    def test_an_unknown_sampler_may_have_some_decisions_with_and_some_without(self):
        result = frames(
            read_tables(
                tiny(decisions={"sampler": ["unknown"] * 2}, exposures={"propensity": [0.5, None]})
            )
        )
        assert result["exposures"]["propensity"].to_list() == [0.5, None]


class TestFeedback:
    def test_there_may_be_none(self):
        tables = tiny()
        del tables["feedback"]
        assert read_tables(tables).feedback.collect().height == 0

    @pytest.mark.long
    def test_outcomes_alone(self):
        tables = tiny()
        tables["feedback"] = pl.DataFrame(
            {"decision": [1, 2], "memory_id": [7, 7], "outcome": ["success", "fail"]}
        )
        assert read_tables(tables).feedback.collect()["reward"].to_list() == [1, 0]
        tables["feedback"] = tables["feedback"].with_columns(
            outcome=pl.Series(["success", "maybe"])
        )
        with pytest.raises(
            DatasetError, match=r"feedback, row 1 .*'maybe' is none of success, fail"
        ):
            read_tables(tables)

    @pytest.mark.long
    @pytest.mark.parametrize(("duplicates", "reward"), [("last", 0.0), ("mean", 0.25)])
    def test_of_repeated_judgements_one_counts(self, duplicates, reward):
        tables = tiny()
        tables["feedback"] = pl.DataFrame(
            {"decision": [1, 1], "memory_id": [7, 7], "reward": [0.5, 0.0], "at": [5, 9]}
        )
        log = read_tables(tables, duplicates=duplicates)
        assert log.feedback.collect()["reward"].to_list() == [reward]
        assert log.notes[-1] == f"1 repeated judgement: the {duplicates} of each counts."
        with pytest.raises(DatasetError, match='duplicates="last"'):
            read_tables(tables)

    def test_the_latest_row_counts_wherever_it_is(self):
        tables = tiny()
        tables["feedback"] = pl.DataFrame(
            {"decision": [1, 1], "memory_id": [7, 7], "reward": [0.5, 0.0], "at": [9, 5]}
        )
        assert read_tables(tables, duplicates="last").feedback.collect()["reward"].to_list() == [
            0.5
        ]

    def test_two_sources_are_two_judgements(self):
        tables = tiny()
        tables["feedback"] = pl.DataFrame(
            {
                "decision": [1, 1],
                "memory_id": [7, 7],
                "reward": [0.5, 0.0],
                "source": ["user", "judge"],
            }
        )
        assert read_tables(tables).feedback.collect().height == 2


class TestEmpty:
    @pytest.mark.long
    def test_a_decision_that_showed_nothing_is_refused_kept_or_dropped(self):
        tables = tiny(decisions={"limit": [1, 1]})
        tables["exposures"] = tables["exposures"].head(1)
        with pytest.raises(
            DatasetError, match=r"decisions, row 1 \(decision 2\): nothing was shown.*empty="
        ):
            read_tables(tables)
        assert len(read_tables(tables, empty="keep")) == 2
        dropped = read_tables(tables, empty="drop")
        assert [frame["decision"].unique().to_list() for frame in frames(dropped).values()] == [
            [1]
        ] * 4
        assert dropped.notes[0] == "1 decision without shown items left out."

    def test_a_decision_without_candidates(self):
        tables = tiny()
        tables["candidates"] = tables["candidates"].head(2)
        tables["exposures"] = tables["exposures"].head(1)
        with pytest.raises(
            DatasetError, match=r"decisions, row 1 \(decision 2\): the decision has no candidates"
        ):
            read_tables(tables)

    def test_kept_it_needs_a_limit(self):
        tables = tiny()
        tables["exposures"] = tables["exposures"].head(1)
        with pytest.raises(DatasetError, match="add a limit"):
            read_tables(tables, empty="keep")


class TestColumns:
    @pytest.mark.parametrize("table", ["decisions", "candidates", "exposures", "feedback"])
    def test_a_missing_column_is_named_with_the_nearest(self, table):
        tables = tiny()
        tables[table] = tables[table].rename({"decision": "decisions_id"})
        with pytest.raises(
            UnknownName, match=f"column of {table} named.*decision.*Did you mean decisions_id"
        ):
            read_tables(tables)

    def test_ids_are_of_one_type(self):
        tables = tiny()
        tables["candidates"] = tables["candidates"].with_columns(
            pl.col("memory_id").cast(pl.String)
        )
        with pytest.raises(
            InputError, match="memory_id is String in candidates, Int64 in exposures"
        ):
            read_tables(tables)
        tables["candidates"] = tables["candidates"].with_columns(
            pl.col("memory_id").cast(pl.Float64)
        )
        with pytest.raises(InputError, match="candidates: memory_id is Float64"):
            read_tables(tables)

    def test_ids_may_be_text_or_any_whole_number(self):
        tables = {
            name: frame.with_columns(pl.col("decision").cast(pl.String))
            for name, frame in tiny().items()
        }
        tables = {
            name: frame.with_columns(pl.col("memory_id").cast(pl.UInt8))
            if "memory_id" in frame.columns
            else frame
            for name, frame in tables.items()
        }
        result = frames(read_tables(tables))
        assert result["candidates"].schema["decision"] == pl.String
        assert result["candidates"].schema["memory_id"] == pl.Int64

    def test_features_are_numbers_flags_and_words_and_the_rest_is_left_out(self):
        log = read_tables(
            tiny(
                candidates={
                    "n": [1, 2, 3, 4],
                    "b": [True] * 4,
                    "w": ["a"] * 4,
                    "vector": [[1.0]] * 4,
                }
            )
        )
        assert log.features == ("n", "b", "w")
        assert log.candidates.collect_schema()["n"] == pl.Float64
        assert "vector (List(Float64))" in log.notes[0]

    @pytest.mark.long
    def test_scores_of_policies_may_have_gaps(self):
        tables = tiny(candidates={"mine": [1.0, 2, 3, 4]})
        assert read_tables(tables, policies=["mine"]).policies == ("mine",)
        for value in (math.nan, None):
            result = read_tables(tiny(candidates={"mine": [1.0, 2, value, 4]}), policies=["mine"])
            assert result.candidates.collect()["mine"].to_list() == [1, 2, None, 4]
        with pytest.raises(UnknownName, match="column of candidates named"):
            read_tables(tables, policies=["mines"])
        with pytest.raises(InputError, match="Rename"):
            read_tables(tiny(candidates={"score": [1.0, 2, 3, 4]}), policies=["score"])

    def test_columns_of_ones_own_in_decisions_can_be_filtered_by(self):
        log = read_tables(tiny(decisions={"language": ["de", "en"]}))
        assert len(log.filter(pl.col("language") == "de")) == 1

    @pytest.mark.parametrize("at", [["2026-01-01", "2025-01-01T12:00:00+02:00"], [5, 3]])
    def test_times_may_be_text_or_microseconds_and_go_backwards(self, at):
        result = read_tables(tiny(decisions={"at": at})).decisions.collect()["at"]
        assert result.dtype == pl.Datetime("us", "UTC")
        assert result[1] < result[0]

    @pytest.mark.parametrize(
        ("changes", "why"),
        [
            (
                {"decisions": {"at": ["2026-01-01", "soon"]}},
                r'decisions, row 1 \(decision 2\): "soon" is not an ISO',
            ),
            (
                {"decisions": {"limit": [1.0, 1.5]}},
                r"decisions, row 1 .*limit is 1.5, which is not a whole number",
            ),
            (
                {"exposures": {"propensity": ["1", "half"]}},
                r"exposures, row 1 .*'half', which is not a number",
            ),
            ({"exposures": {"probe": [0, 2]}}, r"exposures, row 1 .*2, which is not a truth value"),
        ],
    )
    def test_a_value_of_the_wrong_type_is_refused(self, changes, why):
        with pytest.raises(DatasetError, match=why):
            read_tables(tiny(**changes))

    @pytest.mark.parametrize(
        ("how", "why"),
        [
            ({"duplicates": "lats"}, "Did you mean last"),
            ({"empty": "skip"}, "There is no empty of"),
            ({"reward_range": (1, 0)}, "reward_range"),
        ],
    )
    def test_choices_are_checked(self, how, why):
        with pytest.raises(InputError, match=why):
            read_tables(tiny(), **how)

    def test_categories_are_their_words(self):
        kinds = pl.Series(["2", "1"], dtype=pl.Categorical)
        assert read_tables(tiny(decisions={"limit": kinds})).decisions.collect()[
            "limit"
        ].to_list() == [
            2,
            1,
        ]

    def test_a_frame_is_a_frame(self):
        with pytest.raises(
            InputError, match="exposures is a Polars DataFrame or a Polars LazyFrame, not"
        ):
            Slates.from_frames(pl.DataFrame({"decision": [1]}), pl.DataFrame({"decision": [1]}), {})


@pytest.mark.long
@examples(25, quick=8)
@given(data=st.data())
def test_whatever_is_wrong_the_error_is_of_the_tree(data):
    """Any cell of any column may hold anything: the log is taken, or refused on purpose."""
    tables = frames(data.draw(valid()))
    table = data.draw(st.sampled_from(sorted(tables)))
    frame = tables[table]
    assume(frame.height)
    column = data.draw(st.sampled_from(frame.columns))
    junk = data.draw(
        st.sampled_from(
            [["x"], [None], [-1], [2**63 - 1], [0.5], [math.nan], [True], [[1]], [{"a": 1}], [b"x"]]
        )
    )
    tables[table] = frame.with_columns(pl.Series(column, junk * frame.height))
    with contextlib.suppress(MemlabError):
        read_tables(tables)


@pytest.mark.long
def test_the_way_of_a_lab(lab):
    lab.remember(["tabs", "spaces", "a goat"])
    lab.feedback(lab.recall("tabs")[0], "success")
    tables = frames(lab.slates())
    for name, frame in frames(memlab.Slates.from_frames(*tables.values())).items():
        assert_frame_equal(frame, tables[name])

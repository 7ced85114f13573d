"""Sealed slates: every bit comes back, and the tables are those of the slates, however they were cut."""

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from properties import examples

from memlab.errors import DamagedLab, NewerLab
from memlab.kernel.slates import (
    Question,
    SealedLog,
    Segment,
    Slates,
    decode,
    encode,
    question_of,
    read_slates,
    seal,
    thin_parts,
    with_question,
)
from memlab.kernel.slates._slate import same_slates
from tests.slates.logs import frames, no_feedback, plain, recalls, slates

DAY = 86_400_000_000


class Log:
    """What a journal keeps of a log: slates and questions by decision, and the parts of segments."""

    def __init__(self, logged, cuts=()):
        self.blobs = {slate.decision: encode(slate) for slate in logged}
        self.parts, after = {}, 0
        for start, stop in zip([0, *cuts], cuts, strict=False):
            if stop > start:
                sealed = seal(
                    [decode(encode(item), decision=item.decision) for item in logged[start:stop]],
                    after=after,
                )
                self.parts[sealed.upto] = sealed.parts
                self.blobs |= sealed.questions
                after = sealed.upto
        self.sealed = after

    def slates(self, after=0, *, upto=None):
        return (
            (key, blob)
            for key, blob in sorted(self.blobs.items())
            if after < key <= (upto or 10**9)
        )

    def segments(self):
        return dict.fromkeys(self.parts, "digest")

    def segment_part(self, upto, name):
        return self.parts[upto][name]

    def tables(self):
        log = SealedLog(self, list(self.parts))
        return frames(Slates.of_log(log, read_slates(self, self.sealed), no_feedback()))


@pytest.mark.long
@examples(40)
@given(recalls(maximum=6), st.data())
def test_the_tables_do_not_depend_on_the_cuts(logged, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(logged)), max_size=3)))
    tables = Log(logged, cuts).tables()
    for name, frame in frames(Slates.of(logged, no_feedback())).items():
        assert_frame_equal(tables[name], frame, check_column_order=False, check_exact=True)


@pytest.mark.long
@examples(60)
@given(st.lists(slates(), min_size=1, max_size=4, unique_by=lambda slate: slate.decision))
def test_every_bit_of_a_slate_comes_back(logged):
    logged = sorted(logged, key=lambda slate: slate.decision)
    log = Log(logged, [len(logged)])
    for slate, again in zip(logged, read_slates(log), strict=True):
        assert same_slates(decode(encode(slate), decision=slate.decision), again)


@pytest.mark.long
def test_a_slate_of_a_segment_is_read_alone():
    log = Log([plain(decision) for decision in range(1, 9)], [3, 6])
    for decision in (2, 5, 8):
        (slate,) = read_slates(log, decision - 1, upto=decision)
        assert slate.decision == decision


def column(values, at=0, **more):
    """Return the encoding of a column of one slate, and check that it is read back."""
    count = len(next(iter(values.values())))
    numbers = {name: np.array(some, dtype=np.float64) for name, some in values.items()}
    slate = plain(
        1,
        ids=range(1, count + 1),
        shown=(1,),
        numbers=numbers,
        scores=np.arange(count) * 0.1,
        words={},
    )
    slate = replace(slate, at=at)
    sealed = seal([slate], after=0)
    again = Segment(sealed.parts.__getitem__)
    for name, some in numbers.items():
        assert again.numbers(name).tobytes() == some.tobytes()
    return {name: len(sealed.parts[name]) for name in numbers}


@pytest.mark.long
def test_a_derivable_column_takes_little_space():
    dice = np.random.default_rng(0)
    seed, received = dice.random(2_000), dice.random(2_000)
    activation = np.where(
        dice.random(2_000) < 0.5,
        seed,
        np.where(dice.random(2_000) < 0.5, received, seed + received),
    )
    session = seed[dice.integers(0, 100, 2_000)]
    at = 1_700_000_000_000_000
    days = (at - (at - dice.integers(0, 90, 2_000) * DAY - 12_345)) / DAY
    sizes = column(
        {
            "seed": seed,
            "received": received,
            "activation": activation,
            "session-seed": session,
            "recency": seed,
            "idle-days": np.where(dice.random(2_000) < 0.2, np.nan, days),
            "flag": np.arange(2_000) % 2,
            "none": np.full(2_000, np.nan),
        },
        at=at,
    )
    assert sizes["seed"] > 12_000
    assert sizes["none"] < sizes["recency"] + 50 < 100
    assert (
        max(sizes["activation"], sizes["session-seed"], sizes["idle-days"], sizes["flag"]) < 4_500
    )


@pytest.mark.parametrize("value", [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-320, 1e300, 0.1])
def test_special_numbers_come_back(value):
    column(
        {
            "x": [value] * 4,
            "y": [value, 1, 2, 0.1],
            "activation": [value, 2, 0.3, 4],
            "seed": [value, 1, 0.3, 0],
        }
    )


def test_closeness_is_interpolated_as_numpy_does_it():
    from memlab.kernel.embedding import SHIPPED_KNOTS

    similarity = np.random.default_rng(1).uniform(-1, 1, 3_000)
    scale, levels = np.array(SHIPPED_KNOTS).T
    sizes = column({"similarity": similarity, "closeness": np.interp(similarity, scale, levels)})
    assert sizes["closeness"] < 1_000


def test_a_segment_holds_no_text():
    text = "xyzzy the zebra"
    slate = replace(
        plain(1, words={"kind": ["fact", "turn", None], "own": [text, "b", "c"]}),
        query=text,
        session=text,
    )
    slate = replace(slate, project=text, branch=text, filters={"viewer": text})
    sealed = seal([slate], after=0)
    assert Question.decoded(sealed.questions[1], 1).words == {"own": [text, "b", "c"]}
    segment = Segment(sealed.parts.__getitem__)
    assert text not in repr((segment.meta, segment.recalls))
    assert segment.meta.words == ["kind"]
    (again,) = segment.slates(sealed.questions)
    assert again.words == slate.words


def test_a_question_changes_whether_its_slate_is_sealed_or_not():
    slate = replace(plain(4), query="goat", vector=b"\1\2", session="monday")
    sealed = seal([slate], after=0)
    for blob in (encode(slate), sealed.questions[4]):
        asked = question_of(blob, decision=4)
        assert (asked.query, asked.session, asked.vector) == ("goat", "monday", b"\1\2")
        changed = question_of(
            with_question(blob, Question("", b"", *[None] * 3, {}, asked.words), decision=4),
            decision=4,
        )
        assert (changed.query, changed.session) == ("", None)


def test_a_question_that_was_touched_is_refused():
    blob = seal([plain(4)], after=0).questions[4]
    with pytest.raises(DamagedLab, match="decision 4"):
        question_of(blob[:-1], decision=4)
    with pytest.raises(NewerLab):
        question_of(blob[:3] + b"\x09" + blob[4:], decision=4)


@pytest.mark.long
def test_thinning_leaves_what_was_shown_and_the_scores():
    logged = [
        plain(day, numbers={"x": np.random.default_rng(day).random(3)}) for day in range(1, 5)
    ]
    log = Log(logged, [4])
    whole = log.tables()
    log.parts[4] = thin_parts(log.parts[4], when="2027-01-01")
    thin = log.tables()
    assert thin["candidates"]["x"].null_count() == thin["candidates"].height
    assert thin["decisions"]["fingerprints"].unique().to_list() == ['{"thinned":"2027-01-01"}']
    texts = ["decision", "memory_id", "score", "rank", "propensity"]
    assert thin["candidates"].select(texts).equals(whole["candidates"].select(texts))
    assert thin["exposures"].equals(whole["exposures"])
    assert [slate.numbers for slate in read_slates(log)] == [{}] * 4


def test_a_score_that_is_a_feature_survives_thinning():
    scores = np.array([0.9, 0.8, 0.7])
    log = Log([plain(1, numbers={"similarity": scores}, scores=scores)], [1])
    log.parts[1] = thin_parts(log.parts[1], when="2027-01-01")
    assert log.tables()["candidates"]["score"].to_list() == scores.tolist()


@pytest.mark.long
def test_a_flag_that_was_a_number_is_a_number():
    asks = [
        plain(1, numbers={"asks": np.array([0.0, 1, 1])}),
        plain(2, numbers={"asks": np.ones(3)}, flags=("asks",)),
    ]
    for cuts in ([1, 2], [2]):
        assert Log(asks, cuts).tables()["candidates"]["asks"].to_list() == [0, 1, 1, 1, 1, 1]


def test_only_what_is_asked_for_is_read():
    log = Log([plain(1, numbers={"x": np.ones(3), "y": np.arange(3.0)})], [1])
    del log.parts[1]["y"]
    candidates = SealedLog(log, [1]).scan()[1]
    assert candidates.select("x").collect()["x"].to_list() == [1, 1, 1]
    assert candidates.filter(pl.col("rank") == 1).select(pl.len()).collect().item() == 1
    with pytest.raises(Exception, match=re.escape("'y'")):
        candidates.select("y").collect()

"""Times of files: what is meant is taken, what may mean two things is not."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memlab
from memlab.errors import DatasetError, InputError
from memlab.io.formats.columns import parse_instant
from memlab.kernel.base.clock import from_micros

DAY = datetime(2026, 5, 2, 10, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "written",
    [
        "2026-05-02T10:30:00Z",
        "2026-05-02 10:30",
        "2026-05-02 10:30:00 UTC",
        "2026-05-02T12:30:00+02:00",
        "Sat, 02 May 2026 10:30:00 +0000",
        DAY,
        DAY.replace(tzinfo=None),
        str(int(DAY.timestamp())),
    ],
)
def test_unambiguous_times_are_read(written):
    assert from_micros(parse_instant(written)[0]) == DAY


@pytest.mark.parametrize(
    "wrong", ["03/04/2026", "soon", "", "12", 12, 0, -5, float("nan"), float("inf"), True, 1e30, []]
)
def test_ambiguous_times_are_refused(wrong):
    with pytest.raises(InputError):
        parse_instant(wrong)


@given(
    st.datetimes(datetime(1974, 1, 1), datetime(2100, 1, 1)).map(lambda at: at.replace(tzinfo=UTC))
)
def test_the_size_of_a_number_tells_its_unit(at):
    micros = (at - datetime(1970, 1, 1, tzinfo=UTC)) // (datetime.resolution)
    assert parse_instant(micros)[0] == micros
    assert parse_instant(micros // 1000)[0] == micros // 1000 * 1000
    assert parse_instant(micros // 10**6)[0] == micros // 10**6 * 10**6
    assert abs(parse_instant(micros * 1000)[0] - micros) <= 1


@pytest.mark.long
def test_a_column_of_times_is_never_a_text(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"message": "2026-01-02T09:00:00+00:00", "n": 1}\n')
    with pytest.raises(DatasetError, match="no column looks like a text"):
        memlab.open().load(path)
    path.write_text(
        '{"value": "2026-01-02T09:00:00+00:00", "words": "I moved to Lisbon in May."}\n'
    )
    lab = memlab.open()
    lab.load(path)
    assert lab.memories["text"].to_list() == ["I moved to Lisbon in May."]


def test_missing_columns_are_told_and_proposed():
    lab = memlab.open()
    loaded = lab.load([{"usr": "Ann", "conv": "c1", "text": "I moved to Lisbon."}])
    guessed = {field: guess for _, field, guess in loaded.guessed.rows()}
    assert guessed["speaker"] == 'nothing. usr may be one: columns={"speaker": "usr"}.'
    assert guessed["session"] == 'nothing. conv may be one: columns={"session": "conv"}.'
    assert guessed["at"] == "nothing, so the time of loading counts"
    with pytest.raises(DatasetError, match=r'msg may be one: columns=\{"text": "msg"\}'):
        lab.load([{"msg": "short", "n": 1}])


def test_an_order_stands_in_for_times():
    lab = memlab.open()
    rows = [{"speaker": "Ann", "text": "First."}, {"speaker": "Ben", "text": "Second."}]
    for added in (2, 0):
        loaded = lab.load(rows, columns={"at": "2024-01-01T09:00"})
        assert loaded.count("added") == added
    times = lab.memories["created"].to_list()
    assert (times[1] - times[0]).total_seconds() == 1
    assert f"{times[0]:%Y-%m-%dT%H:%M}" == "2024-01-01T09:00"

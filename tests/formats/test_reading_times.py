"""Times of files: what is meant is taken, what may mean two things is not."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import InputError
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

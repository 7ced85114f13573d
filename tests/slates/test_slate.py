"""One recall and its bytes: what is written is read, and bytes that were touched are refused."""

import zlib
from dataclasses import fields, replace

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.errors import DamagedLab, InputError, LabError, NewerLab
from memlab.kernel.slates import decode, encode
from memlab.kernel.slates._slate import BLOB_FORMAT
from tests.slates.logs import plain, slates


def same(first, second):
    """Return whether two slates are equal, NaN equal to NaN."""
    for field in fields(first):
        a, b = getattr(first, field.name), getattr(second, field.name)
        if field.name == "numbers":
            assert list(a) == list(b)
            assert all(np.array_equal(a[name], b[name], equal_nan=True) for name in a)
        elif isinstance(a, np.ndarray):
            assert a.dtype == b.dtype
            assert np.array_equal(a, b, equal_nan=True)
        else:
            assert a == b, field.name
    return True


def encode_1(slate):
    """Format 1, as the first version of memlab wrote it."""
    names = "at query vector limit project pack pack_hash policies settings fingerprints state cut sampler words shown"
    header = {name: getattr(slate, name) for name in names.split()}
    header |= {"format": 1, "names": list(slate.numbers), "count": len(slate)}
    head = msgspec.msgpack.encode(header)
    arrays = [slate.ids, slate.scores, *slate.numbers.values()]
    return b"".join([len(head).to_bytes(4, "little"), head, *(array.tobytes() for array in arrays)])


def encode_2(slate):
    """Format 2, as the versions before this one wrote it: every feature a row of float64."""
    names = [field.name for field in fields(slate) if field.name not in _ARRAYS]
    header = {name: getattr(slate, name) for name in names}
    header |= {"format": 2, "names": list(slate.numbers), "count": len(slate)}
    header |= {"ranked": slate.ranks is not None, "weighted": slate.propensity is not None}
    head = msgspec.msgpack.encode(header)
    arrays = [slate.ids, slate.ranks, slate.propensity, slate.scores, *slate.numbers.values()]
    body = b"".join(
        [len(head).to_bytes(4, "little"), head, bytes(-(12 + len(head)) % 8)]
        + [array.tobytes() for array in arrays if array is not None]
    )
    return b"MLS\x02" + zlib.crc32(body).to_bytes(4, "little") + body


_ARRAYS = ("ids", "scores", "numbers", "ranks", "propensity", "decision")

SPECIAL = [0.0, -0.0, 1.0, 0.1, 1e-45, 1e-320, 16777217.0, 1e300, np.inf, -np.inf, np.nan]
"""What float32 holds, what it rounds, what it cannot hold; and zeros that differ in sign."""


@pytest.mark.long
@settings(deadline=None)
@given(slates())
def test_a_written_slate_is_read_back(slate):
    assert same(decode(encode(slate), decision=slate.decision), slate)


@pytest.mark.long
@settings(deadline=None)
@given(slates())
def test_format_2_is_still_read(slate):
    assert same(decode(encode_2(slate), decision=slate.decision), slate)


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from(SPECIAL)] * 3), min_size=1, max_size=6))
def test_every_bit_of_a_number_is_kept(columns):
    numbers = {f"n{at}": np.array(values) for at, values in enumerate(columns)}
    again = decode(encode(plain(numbers=numbers))).numbers
    assert {name: values.tobytes() for name, values in again.items()} == {
        name: values.tobytes() for name, values in numbers.items()
    }


def test_a_constant_column_takes_little_space():
    count = 100
    ids = np.arange(1, count + 1)
    numbers = {
        "one": np.full(count, 0.1),
        "flag": np.arange(count) % 2.0,
        "dice": np.random.default_rng(0).random(count),
    }
    slate = plain(
        ids=ids, scores=np.zeros(count), words={"kind": ["turn"] * count}, numbers=numbers
    )
    assert len(encode(slate)) < len(encode_2(slate)) - 8 * count - 4 * count - 5 * count + 50


@pytest.mark.parametrize("header", [b"", b"w", b"www", b"ws", b"??"])
def test_a_header_that_does_not_fit_its_columns_is_damage(header):
    blob = encode(plain(numbers={"a": np.array([0.1, 0.2, 0.3]), "b": np.array([0.1, 0.2, 0.4])}))
    body = blob[8:].replace(b"\xa4kept\xc4\x02ww", b"\xa4kept\xc4" + bytes([len(header)]) + header)
    body = (int.from_bytes(body[:4], "little") + len(header) - 2).to_bytes(4, "little") + body[4:]
    with pytest.raises(DamagedLab):
        decode(blob[:4] + zlib.crc32(body).to_bytes(4, "little") + body)


@pytest.mark.long
@settings(deadline=None)
@given(slates())
def test_bytes_do_not_depend_on_who_wrote_them(slate):
    assert encode(decode(encode(slate))) == encode(slate)


@pytest.mark.long
@settings(deadline=None)
@given(slates(), st.data())
def test_a_flipped_bit_is_noticed(slate, data):
    blob = bytearray(encode(slate))
    place = data.draw(st.integers(0, len(blob) - 1))
    blob[place] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(LabError, match="decision 7") as caught:
        decode(bytes(blob), decision=7)
    assert caught.type in (DamagedLab, NewerLab)


@pytest.mark.long
@settings(deadline=None)
@given(slates(), st.data())
def test_a_truncated_slate_is_noticed(slate, data):
    blob = encode(slate)
    with pytest.raises(DamagedLab):
        decode(blob[: data.draw(st.integers(0, len(blob) - 1))])


@given(st.binary(max_size=200))
def test_noise_is_no_slate(noise):
    with pytest.raises(LabError):
        decode(noise)


def test_a_later_format_says_so():
    blob = bytearray(encode(plain()))
    blob[3] = BLOB_FORMAT + 1
    with pytest.raises(
        NewerLab, match=f"format {BLOB_FORMAT + 1}.*reads formats up to {BLOB_FORMAT}. Upgrade"
    ):
        decode(bytes(blob))


def test_format_1_is_read_with_defaults_for_newer_fields():
    old = plain(
        shown=(2, 1),
        numbers={"similarity": np.array([1.0, 0, 2]), "asks": np.array([0.0, 1, np.nan])},
    )
    slate = decode(encode_1(old), decision=1)
    assert same(slate, replace(old, flags=("asks",)))
    assert slate.inclusion.tolist() == [1, 1, 0]
    assert slate.frame["asks"].to_list() == [False, True, None]


def test_a_truncated_slate_of_format_1_is_noticed():
    blob = encode_1(plain())
    for end in range(len(blob)):
        with pytest.raises(DamagedLab):
            decode(blob[:end])


def test_ranks_follow_from_scores_with_ties_by_id():
    slate = plain(ids=(3, 5, 7, 9), scores=np.array([0.5, -np.inf, 0.5, 0.9]))
    assert slate.ranking.tolist() == [2, 4, 3, 1]


def test_without_propensities_what_was_shown_was_certain():
    assert plain(shown=(3, 1)).inclusion.tolist() == [1, 0, 1]


@pytest.mark.parametrize(("ids", "fields"), [((1, 2), (3,)), ((), (1,)), ((2, 1), (1,))])
def test_shown_items_must_be_candidates(ids, fields):
    with pytest.raises(InputError, match="Decision 4"):
        _ = plain(4, ids=ids, shown=fields).places


def test_the_frame_has_every_candidate():
    slate = plain(
        shown=(1,),
        numbers={"x": np.array([1, np.nan, 3]), "asks": np.array([1.0, 0, 0])},
        flags=("asks",),
    )
    assert slate.frame.to_dict(as_series=False) == {
        "memory_id": [1, 2, 3],
        "x": [1, None, 3],
        "asks": [True, False, False],
        "kind": ["fact"] * 3,
        "score": pytest.approx([0.9, 0.8, 0.7]),
        "rank": [1, 2, 3],
        "propensity": [1, 0, 0],
    }
    assert slate.frame.schema["asks"] == pl.Boolean

"""Sealed segments are a cache: the same tables however they were cut, and nothing of them is trusted once touched."""

import os
import shutil
import time

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from properties import examples

from memlab.errors import DamageWarning, InputError, LabError, ReadOnlyLab
from memlab.kernel.base.disk import read_sealed, write_sealed
from memlab.kernel.slates import SlateLog, Slates
from tests.slates.logs import frames, no_feedback, plain, recalls

LOGGED = ("decisions", "candidates", "exposures")


def seal(folder, *decisions):
    log = SlateLog(folder)
    for decision in decisions:
        log.append([plain(decision)])
    return log


def segments(folder):
    return sorted(path.name for path in folder.iterdir())


@examples(25)
@given(recalls(most=6), st.data())
def test_the_tables_do_not_depend_on_the_cuts(tmp_path_factory, logged, data):
    folder = tmp_path_factory.mktemp("cuts")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(logged)), max_size=3)))
    log = SlateLog(folder)
    for start, stop in zip([0, *cuts], cuts, strict=False):
        log.append(logged[start:stop])
    tail = logged[cuts[-1] if cuts else 0 :]
    assert log.sealed == (logged[cuts[-1] - 1].decision if cuts and cuts[-1] else 0)
    found = frames(Slates.of_log(SlateLog(folder), tail, no_feedback()))
    for name, frame in frames(Slates.of(logged, no_feedback())).items():
        assert_frame_equal(found[name], frame, check_column_order=False)


def test_an_older_segment_has_nulls_where_a_feature_is_new(tmp_path):
    log = SlateLog(tmp_path)
    log.append([plain(1)])
    log.append([plain(2, numbers={"similarity": np.ones(3), "coverage": np.ones(3)})])
    candidates = log.scan()[1].collect()
    assert candidates["coverage"].to_list() == [None] * 3 + [1.0] * 3


def test_a_flag_that_was_a_number_is_a_number(tmp_path):
    log = SlateLog(tmp_path)
    log.append([plain(1, numbers={"asks": np.array([0.0, 1, 1])})])
    log.append([plain(2, numbers={"asks": np.array([1.0, 0, 0])}, flags=("asks",))])
    assert log.scan()[1].collect()["asks"].to_list() == [0, 1, 1, 1, 0, 0]


def test_an_empty_log_has_empty_tables(tmp_path):
    log = SlateLog(tmp_path / "absent")
    assert (log.sealed, len(log)) == (0, 0)
    assert [table.collect().height for table in log.scan()] == [0, 0, 0]
    log.append([])
    assert not (tmp_path / "absent").exists()


def test_slates_are_sealed_in_order_and_once(tmp_path):
    log = seal(tmp_path, 3, 5)
    with pytest.raises(InputError, match="7 comes after 9"):
        log.append([plain(9), plain(7)])
    log.append([plain(3), plain(5), plain(8)])
    assert segments(tmp_path) == [f"slates-{a:012d}-{b:012d}" for a, b in ((0, 3), (3, 5), (5, 8))]
    assert log.scan()[0].collect()["decision"].to_list() == [3, 5, 8]


def test_two_that_seal_see_one_another(tmp_path):
    one, other = SlateLog(tmp_path), SlateLog(tmp_path)
    one.append([plain(1), plain(2)])
    other.append([plain(1), plain(2), plain(3)])
    assert other.scan()[0].collect()["decision"].to_list() == [1, 2, 3]
    one.refresh()
    assert one.sealed == 3


DAMAGES = {
    "a flipped bit": lambda path: path.write_bytes(flipped(path.read_bytes())),
    "a truncated file": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "an empty file": lambda path: path.write_bytes(b""),
    "no file": lambda path: path.unlink(),
    "noise": lambda path: path.write_bytes(b"\x00PAR1" * 50),
}


def flipped(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]


@pytest.mark.parametrize("file", ["candidates.parquet", "decisions.parquet", "exposures.parquet", "manifest.json"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_segment_ends_the_log_and_is_sealed_anew(tmp_path, file, damage):
    seal(tmp_path, 1, 2, 3)
    DAMAGES[damage](sorted(tmp_path.iterdir())[1] / file)
    with pytest.warns(UserWarning, match=r"slates-000000000001-000000000002.*read from the journal"):
        log = SlateLog(tmp_path)
    assert (log.sealed, len(log.faults)) == (1, 1)
    whole = [plain(decision) for decision in (1, 2, 3)]
    found = frames(Slates.of_log(log, whole[1:], no_feedback()))
    for name, frame in frames(Slates.of(whole, no_feedback())).items():
        assert_frame_equal(found[name], frame)
    log.append(whole[1:])
    assert SlateLog(tmp_path).sealed == log.sealed == 3


def test_a_missing_segment_ends_the_log(tmp_path):
    seal(tmp_path, 1, 2, 3)
    for path in sorted(tmp_path.iterdir())[1:2]:
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    with pytest.warns(UserWarning, match="begins after decision 2, and the one before it ends at 1"):
        assert SlateLog(tmp_path).sealed == 1


def test_a_draft_that_was_not_finished_is_nothing(tmp_path):
    seal(tmp_path, 1)
    draft = tmp_path / ".draft-1-slates-000000000001-000000000009"
    draft.mkdir()
    (draft / "candidates.parquet").write_bytes(b"half")
    log = SlateLog(tmp_path)
    assert log.sealed == 1
    log.append([plain(2)])
    assert not draft.exists()


def test_segments_of_another_format_are_not_read(tmp_path):
    seal(tmp_path, 1)
    manifest = next(tmp_path.iterdir()) / "manifest.json"
    write_sealed(manifest, read_sealed(manifest).replace(b'"format":2', b'"format":3'))
    with pytest.warns(UserWarning, match="has format 3, and memlab .* reads format 2"):
        assert SlateLog(tmp_path).sealed == 0


def test_a_segment_of_another_history_is_not_believed(tmp_path):
    own, other = {"lab": "a", "chain": lambda seq: b"1"}, {"lab": "a", "chain": lambda seq: b"2"}
    SlateLog(tmp_path, **own).append([plain(1), plain(2)])
    assert SlateLog(tmp_path, **own).sealed == 2
    for told in (other, own | {"lab": "b"}):
        with pytest.warns(DamageWarning, match="is of another history than the journal"):
            log = SlateLog(tmp_path, **told)
        assert log.sealed == 0
    log.drop_unsound()
    assert (segments(tmp_path), log.faults) == ([], ())


def test_what_was_thrown_away_by_another_is_gone(tmp_path):
    log = seal(tmp_path, 1, 2)
    for path in tmp_path.iterdir():
        shutil.rmtree(path)
    log.refresh()
    assert log.sealed == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_disk_that_refuses_says_so(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ReadOnlyLab, match="cannot be written"):
        seal(tmp_path / "log", 1)


def test_a_folder_that_cannot_be_made_says_so(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LabError, match="cannot be written"):
        SlateLog(tmp_path / "file" / "log").append([plain(1)])


def test_76000_candidates_are_read_quickly(tmp_path):
    dice = np.random.default_rng(0)
    numbers = {f"f{index}": dice.random(100) for index in range(28)}
    kinds = {name: ["fact"] * 100 for name in ("kind", "scope", "provenance", "visibility")}
    logged = [plain(day, ids=range(100), shown=range(10), numbers=numbers, words=kinds) for day in range(1, 761)]
    log = SlateLog(tmp_path)
    for start in range(0, 760, 190):
        log.append(logged[start : start + 190])
    begin = time.process_time()
    tables = [table.collect() for table in log.scan()]
    assert time.process_time() - begin < 2  # measured: 0.015
    assert tables[1].shape == (76_000, 37)
    assert isinstance(tables[1]["f0"].dtype, pl.Float64)

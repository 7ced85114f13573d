"""The golden record: what counts as a change on the machine that wrote it, and on another."""

import importlib
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
record = importlib.import_module("experiments.recording.record")
things = importlib.import_module("experiments.recording.things")

HERE, ELSEWHERE = "this processor", "another processor"


def frame(**columns):
    return things.frame_thing("lab/pack/table", pl.DataFrame(columns, strict=False))


def changed(was, now, machine=HERE):
    """Return the parts that differ, for a record written here and compared on ``machine``."""
    line = record.line_of(was, HERE)
    (*changes,) = record.compare(
        record.Record({line.name: line}, {}), {now.name: now}, machine, [line.name]
    )
    return set(changes[0].parts) if changes else set()


def everywhere(was, now):
    """Return the parts that differ, which are the same on both machines."""
    here, elsewhere = changed(was, now), changed(was, now, ELSEWHERE)
    assert here == elsewhere
    return here


SCORES = np.random.default_rng(5).random(300)


def with_score(position, value):
    scores = SCORES.copy()
    scores[position] = value
    return frame(score=scores)


def test_the_same_is_no_change():
    columns = {"id": [1, 2], "text": ["a", None], "score": [0.5, math.nan], "tags": [["x"], []]}
    assert everywhere(frame(**columns), frame(**columns)) == set()


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ([1, 2, 3], [1, 2, 4]),
        ([1, 2, 3], [1, 3, 2]),
        ([1, None], [1, 0]),
        ([True, False], [True, True]),
        (["one", "two"], ["one", "two "]),
        (["one", None], ["one", ""]),
        (["7 cups", ""], ["8 cups", ""]),
        ([["x", "y"]], [["y", "x"]]),
        ([[], ["x"]], [["x"], []]),
        ([0.5, None], [0.5, math.nan]),
        ([0.5, math.inf], [0.5, -math.inf]),
        ([0.5, math.nan], [math.nan, 0.5]),
        ([1, 2], [1.0, 2.0]),
    ],
)
def test_values_other_than_floats_are_compared_exactly_on_every_machine(was, now):
    assert everywhere(frame(column=was), frame(column=now)) == {"column"}


def test_the_order_of_rows_and_of_columns_counts():
    assert everywhere(frame(a=[1, 2], b=[3.5, 4.5]), frame(a=[1, 2], b=[4.5, 3.5])) == {"b"}
    assert everywhere(frame(a=[1], b=[2]), frame(b=[2], a=[1])) == {"(columns)"}


def test_rows_and_columns_that_come_and_go():
    assert "(rows)" in everywhere(frame(a=[1, 2]), frame(a=[1, 2, 3]))
    assert "b" in everywhere(frame(a=[1], b=[2]), frame(a=[1]))
    assert "b" in everywhere(frame(a=[1]), frame(a=[1], b=[None]))
    assert "score" in everywhere(frame(score=[0.1] * 64), frame(score=[0.1] * 129))


@pytest.mark.parametrize("position", [0, 63, 64, 191, 299])
@pytest.mark.parametrize("difference", [1e-9, -1e-9, 1.0, 1e12])
def test_a_float_that_differs_is_found_on_every_machine(position, difference):
    assert everywhere(frame(score=SCORES), with_score(position, SCORES[position] + difference)) == {
        "score"
    }


def test_the_last_bits_count_on_the_machine_that_wrote_the_record_alone():
    for difference in (1e-13, 2e-16):
        now = with_score(70, SCORES[70] + difference)
        assert changed(frame(score=SCORES), now) == {"score"}
        assert changed(frame(score=SCORES), now, ELSEWHERE) == set()
        assert record.is_rounded(record.line_of(frame(score=SCORES), HERE), now)


@pytest.mark.long
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200), st.integers(0, 2**32 - 1))
def test_floats_that_all_differ_within_the_tolerance_are_no_change_elsewhere(values, seed):
    numbers = np.array(values)
    noise = np.random.default_rng(seed).choice([-0.99e-12, 0.0, 0.99e-12], len(values))
    now = numbers + noise * np.maximum(np.abs(numbers), 1.0)
    within = np.abs(now - numbers) <= things.TOLERANCE * np.maximum(np.abs(numbers), 1.0)
    assert changed(frame(x=numbers), frame(x=np.where(within, now, numbers)), ELSEWHERE) == set()


@pytest.mark.long
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=200), st.data())
def test_floats_that_change_places_are_found_on_every_machine(values, data):
    one, two = data.draw(st.tuples(*[st.integers(0, len(values) - 1)] * 2))
    moved = [*values]
    moved[one], moved[two] = values[two], values[one]
    if abs(values[one] - values[two]) > 1e-6:
        assert everywhere(frame(x=values), frame(x=moved)) == {"x"}


def test_differences_that_cancel_in_a_sum_are_found():
    now = SCORES.copy()
    now[[3, 4]] += [1e-6, -1e-6]
    assert sum(now) == pytest.approx(sum(SCORES), abs=1e-12)
    assert everywhere(frame(score=SCORES), frame(score=now)) == {"score"}


def test_a_change_says_in_which_values_it_is():
    line = record.line_of(frame(score=SCORES), HERE)
    now = with_score(130, 9.0)
    (change,) = record.compare(record.Record({line.name: line}, {}), {now.name: now}, ELSEWHERE, [])
    assert "1 of 5 runs, first in values 128 to 191 of 300" in str(change)


def test_json_and_texts_have_their_decimals_apart():
    def value(number, word):
        return things.json_thing("x", {"a": {"list": [1, number, word]}, "b": None})

    assert everywhere(value(0.25, "x"), value(0.25, "y")) == {"a"}
    assert everywhere(value(0.25, "x"), value(0.25 + 1e-9, "x")) == {"a"}
    assert changed(value(0.25, "x"), value(0.25 + 1e-14, "x"), ELSEWHERE) == set()

    def text(words):
        return things.text_thing("x", words)

    assert everywhere(text("a 0.25 of 3"), text("a 0.25 of 4")) == {"text"}
    assert everywhere(text("a 0.25 of 3"), text("a 0.26 of 3")) == {"text"}
    assert changed(text("a 0.25 of 3"), text("a 0.25000000000000006 of 3"), ELSEWHERE) == set()
    for exact in ("a1.5b", "1.2.3", "ab12e34", "2e9x"):
        assert not len(text(exact).parts["text"].floats), exact


def test_missing_and_new_parts_are_changes():
    line = record.line_of(frame(a=[1]), HERE)
    held = record.Record({line.name: line}, {})
    assert [change.name for change in record.compare(held, {}, HERE, [line.name])] == [line.name]
    assert record.compare(held, {}, HERE, []) == []
    new = things.json_thing("new", {"a": 1})
    assert [change.name for change in record.compare(held, {"new": new}, HERE, [])] == ["new"]


def written(folder, value, reason="because"):
    was = record.read(folder)
    changes = record.compare(was, {value.name: value}, HERE, [value.name] if was.lines else [])
    held = record.Record(
        {value.name: record.line_of(value, HERE)}, {things.digest(HERE.encode()): HERE}
    )
    record.write(folder, held, changes, reason)


def test_a_record_is_read_as_it_was_written(tmp_path):
    assert record.read(tmp_path).lines == {}
    table = frame(id=[1, 2, 3], score=[0.1, None, math.pi], text=["a 0.5", "b", None])
    written(tmp_path, table)
    held = record.read(tmp_path)
    assert held.machines == {things.digest(HERE.encode()): HERE}
    for machine in (HERE, ELSEWHERE):
        assert record.compare(held, {table.name: table}, machine, [table.name]) == []
    now = frame(id=[1, 2, 3], score=[0.1, None, math.pi + 1e-9], text=["a 0.5", "b", None])
    (change,) = record.compare(held, {table.name: now}, ELSEWHERE, [])
    assert set(change.parts) == {"score"}


def test_a_changed_record_has_a_reason(tmp_path):
    assert record.unlogged(tmp_path) == ""
    written(tmp_path, frame(a=[1]), "the first")
    written(tmp_path, frame(a=[2]), "a counts from two")
    log = (tmp_path / "golden-changes.md").read_text()
    assert log.index("## the first") < log.index("## a counts from two")
    assert "lab/pack/table: a\n" in log
    assert record.unlogged(tmp_path) == ""
    path = tmp_path / "golden.jsonl"
    path.write_text(path.read_text().replace('"rows": 1', '"rows": 2'))
    assert "--reason" in record.unlogged(tmp_path)


def test_the_committed_record_is_that_of_its_last_reason():
    assert record.unlogged(EXPERIMENTS / "data") == ""


@pytest.mark.long
def test_the_committed_record_holds_no_text_of_chats():
    """Of a thing there are names of columns, digests and sums alone."""
    for line in record.read(EXPERIMENTS / "data").lines.values():
        assert all(len(exact) == 12 and len(bits) in (0, 12) for exact, bits in line.parts.values())
        if line.name.startswith(("locomo", "beam")):
            assert not [part for part in line.parts if " " in part], line.name


@pytest.mark.long
def test_the_machine_is_named_by_what_rounds():
    said = record.describe_machine()
    assert "numpy" in said
    assert "openblas" in said
    assert said == record.describe_machine()

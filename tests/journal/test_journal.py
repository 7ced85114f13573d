"""What is written is read: events in order, payloads, vectors, slates, sources; whole writes or none."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from properties import examples

from memlab.errors import InputError, LabBusy, LabError, UnknownName
from memlab.kernel.journal import Event, Journal
from memlab.kernel.privacy import Screened, screen


@pytest.fixture(params=["on disk", "in memory"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with Journal.open(tmp_path / "lab" if request.param == "on disk" else None) as journal:
        yield journal


def note(journal: Journal, *words: str, durable: bool = True) -> list[int]:
    with journal.write(durable=durable) as tx:
        return [tx.event("note", {"word": word}, at=0) for word in words]


def notes(journal: Journal, **bounds: Any) -> list[str]:
    return [event.body["word"] for event in journal.events(**bounds)]


def test_events_are_numbered_and_read_in_the_order_of_writing(journal: Journal) -> None:
    assert journal.head == 0
    assert note(journal, "a", "b") == [1, 2]
    assert note(journal, "c", durable=False) == [3]
    assert journal.head == 3
    assert notes(journal) == ["a", "b", "c"]
    assert notes(journal, after=1) == ["b", "c"]
    assert notes(journal, after=1, upto=2) == ["b"]
    assert notes(journal, after=3) == []


def test_an_event_comes_back_as_it_was(journal: Journal) -> None:
    body = {
        "ids": [1, 2],
        "score": 0.1,
        "blob": b"\x00\xff",
        "none": None,
        "deep": {"text": "ü\x00"},
        "big": 2**63 - 1,
    }
    with journal.write() as tx:
        seq = tx.event("batch", body, at=-5)
    assert list(journal.events()) == [Event(seq, -5, "batch", body)]


def test_events_of_some_kinds(journal: Journal) -> None:
    with journal.write() as tx:
        for number in range(700):
            tx.event(("even", "odd", "never")[number % 2], {"n": number}, at=0)
    assert [event.body["n"] for event in journal.events(kinds=["odd"])] == list(range(1, 700, 2))
    assert list(journal.events(kinds=[])) == []


def test_the_head_within_a_write_is_the_one_before_it(journal: Journal) -> None:
    note(journal, "a")
    with journal.write() as tx:
        assert tx.head == 1
        tx.event("note", {"word": "b"}, at=0)
        assert tx.head == 1
        # reading within a write sees what was there before it, in memory as on disk
        assert journal.head == 1
        assert notes(journal) == ["a"]
    assert journal.head == 2


@pytest.mark.long
def test_texts_come_in_the_order_asked_for(journal: Journal) -> None:
    texts = [Screened(f"text {id} \x00 ü") for id in range(1, 2001)]
    with journal.write() as tx:
        tx.payloads(range(1, 2001), texts)
    assert journal.texts(range(1, 2001)) == texts
    assert journal.texts(range(2000, 0, -1)) == texts[::-1]
    assert journal.texts([7, 3, 7, *np.arange(1, 1500)]) == [
        texts[6],
        texts[2],
        texts[6],
        *texts[:1499],
    ]
    assert journal.texts([]) == []


def test_a_text_that_is_not_there_is_named_and_no_other_id(journal: Journal) -> None:
    with journal.write() as tx:
        tx.payloads([1, 2, 9], [screen(text).text for text in "abc"])
    with pytest.raises(UnknownName, match=r'no stored text of memory "5"'):
        journal.texts([1, 5])
    with pytest.raises(UnknownName):
        journal.texts(range(1, 4))


def rows(journal: Journal, fingerprint: str = "f", after_id: int = 0) -> dict[int, list[int]]:
    return {
        first + row: matrix[row].tolist()
        for first, matrix in journal.vectors(fingerprint, after_id=after_id)
        for row in range(len(matrix))
    }


def test_vectors_come_in_the_order_of_ids_whatever_the_blocks(journal: Journal) -> None:
    matrix = np.arange(-100, 100, dtype=np.int8).reshape(50, 4)
    for start, stop in [(0, 1), (1, 2), (2, 30), (40, 50), (30, 40)]:
        with journal.write() as tx:
            tx.vectors(start + 1, "f", matrix[start:stop])
            tx.vectors(start + 1, "other", -matrix[start:stop])
    [(first, joined)] = journal.vectors("f")
    assert first == 1
    assert joined.dtype == np.int8
    np.testing.assert_array_equal(joined, matrix)
    for after_id in range(51):
        assert list(rows(journal, after_id=after_id)) == list(range(after_id + 1, 51))
    assert list(journal.vectors("unknown")) == []


@pytest.mark.long
@examples(40)
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 12)), max_size=8))
def test_a_vector_written_later_replaces_the_one_of_its_id(blocks: list[tuple[int, int]]) -> None:
    expected: dict[int, list[int]] = {}
    with Journal.open(None) as journal:
        for value, (first, count) in enumerate(blocks):
            with journal.write() as tx:
                tx.vectors(first, "f", np.full((count, 2), value, dtype=np.int8))
            expected |= {id: [value, value] for id in range(first, first + count)}
        assert rows(journal) == dict(sorted(expected.items()))
        assert rows(journal, after_id=9) == {
            id: row for id, row in sorted(expected.items()) if id > 9
        }


def test_a_block_is_kept_as_it_was_when_given(journal: Journal) -> None:
    matrix = np.ones((2, 3), dtype=np.int8)
    with journal.write() as tx:
        tx.vectors(1, "f", matrix)
        matrix[:] = 7
    assert rows(journal) == {1: [1, 1, 1], 2: [1, 1, 1]}


@pytest.mark.long
def test_slates_join_their_event(journal: Journal) -> None:
    blobs = {}
    for number in range(5):
        with journal.write(durable=False) as tx:
            seq = tx.event("recall", {}, at=0)
            tx.slate(seq, bytes([number]) * 2_000_000)
            blobs[seq] = bytes([number]) * 2_000_000
        note(journal, "between")
    assert dict(journal.slates()) == blobs
    assert [seq for seq, _ in journal.slates(1, upto=7)] == [3, 5, 7]


def test_sources_and_named_values(journal: Journal) -> None:
    with journal.write() as tx:
        tx.source("ab12", "(+ 1 2)")
        tx.meta("name", "first")
    with journal.write() as tx:
        tx.source("ab12", "(+ 1 2)")
        tx.meta("name", "second")
    assert journal.source("ab12") == "(+ 1 2)"
    assert journal.meta("name") == "second"
    assert journal.meta("other") is None
    with pytest.raises(UnknownName, match="ab12"):
        journal.source("ab13")


def test_a_write_that_raises_leaves_nothing(journal: Journal) -> None:
    def fail() -> None:
        with journal.write() as tx:
            tx.event("note", {"word": "b"}, at=0)
            tx.payloads([1], [Screened("text")])
            tx.vectors(1, "f", np.ones((1, 2), dtype=np.int8))
            tx.slate(2, b"x")
            tx.source("h", "s")
            tx.meta("k", "v")
            raise KeyError

    note(journal, "a")
    with pytest.raises(KeyError):
        fail()
    assert journal.head == 1
    assert notes(journal) == ["a"]
    assert list(journal.vectors("f")) == list(journal.slates()) == []
    assert journal.meta("k") is None
    for missing in (lambda: journal.texts([1]), lambda: journal.source("h")):
        with pytest.raises(UnknownName):
            missing()
    assert note(journal, "c") == [2]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda tx: tx.payloads([1], ["again"]),
        lambda tx: tx.payloads([2, 2], ["a", "b"]),
        lambda tx: tx.slate(1, b"again"),
        lambda tx: tx.slate(9, b"no such event"),
        lambda tx: tx.source("h", "another text"),
        lambda tx: tx.payloads([1, 2], ["one"]),
        lambda tx: tx.payloads([0], ["below"]),
        lambda tx: tx.payloads([2], ["\ud800"]),
        lambda tx: tx.payloads([2], [b"bytes"]),
        lambda tx: tx.vectors(1, "f", np.ones((1, 2))),
        lambda tx: tx.vectors(1, "f", np.ones(2, dtype=np.int8)),
        lambda tx: tx.event("note", {"word": object()}, at=0),
        lambda tx: tx.event("note", {"word": 2**64}, at=0),
        lambda tx: tx.event("note", {"word": "\ud800"}, at=0),
        lambda tx: tx.event("note", {1: "key"}, at=0),
        lambda tx: tx.event("", {}, at=0),
        lambda tx: tx.event("note", {}, at=0.5),
        lambda tx: tx.event("note", {}, at=2**63),
    ],
)
def test_a_wrong_value_is_an_error_and_the_write_leaves_nothing(
    journal: Journal, spoil: Any
) -> None:
    def write() -> None:
        with journal.write() as tx:
            tx.event("note", {"word": "b"}, at=0)
            spoil(tx)

    with journal.write() as tx:
        tx.slate(tx.event("note", {"word": "a"}, at=0), b"slate")
        tx.payloads([1], [Screened("one")])
        tx.source("h", "s")
    with pytest.raises(InputError):
        write()
    assert notes(journal) == ["a"]
    assert journal.texts([1]) == ["one"]
    assert dict(journal.slates()) == {1: b"slate"}
    assert note(journal, "c") == [2]


def test_the_field_that_cannot_be_stored_is_named(journal: Journal) -> None:
    with pytest.raises(InputError, match='"score"'), journal.write() as tx:
        tx.event("note", {"fine": 1, "score": object()}, at=0)


def test_a_write_is_over_when_its_block_ends(journal: Journal) -> None:
    with journal.write() as tx:
        tx.event("note", {"word": "a"}, at=0)
    with pytest.raises(LabError, match="has ended"):
        tx.event("note", {"word": "late"}, at=0)


def test_a_write_within_a_write_is_refused_at_once(journal: Journal) -> None:
    with journal.write() as tx:
        with pytest.raises(LabError, match="already open in this thread"), journal.write():
            pass
        tx.event("note", {"word": "a"}, at=0)
    assert notes(journal) == ["a"]


def test_a_closed_journal_says_so(journal: Journal) -> None:
    note(journal, "a")
    journal.close()
    journal.close()
    assert journal.closed
    for use in (
        lambda: journal.head,
        lambda: list(journal.events()),
        lambda: journal.write().__enter__(),
    ):
        with pytest.raises(LabError, match="was closed"):
            use()


def test_threads_write_one_after_another_and_lose_nothing(journal: Journal) -> None:
    def write(name: int) -> None:
        for number in range(30):
            note(journal, f"{name}/{number}", durable=number % 3 == 0)

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [event.seq for event in journal.events()] == list(range(1, 121))
    assert sorted(notes(journal)) == sorted(
        f"{name}/{number}" for name in range(4) for number in range(30)
    )


def test_a_reader_does_not_wait_for_an_open_write(journal: Journal) -> None:
    note(journal, "a")
    seen: list[list[str]] = []
    with journal.write() as tx:
        tx.event("note", {"word": "b"}, at=0)
        reader = threading.Thread(target=lambda: seen.append(notes(journal)))
        reader.start()
        reader.join(timeout=60)
        assert not reader.is_alive()
    assert seen == [["a"]]


@pytest.mark.long
def test_a_thread_that_waits_too_long_is_told(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "lab", timeout=0.05) as journal, journal.write():
        failures: list[Exception] = []

        def late() -> None:
            try:
                note(journal, "late")
            except LabBusy as error:
                failures.append(error)

        thread = threading.Thread(target=late)
        thread.start()
        thread.join()
        assert len(failures) == 1


def test_a_long_reading_sees_the_moment_it_began(journal: Journal) -> None:
    note(journal, *map(str, range(600)))
    events = journal.events()
    read = [next(events).body["word"] for _ in range(10)]
    note(journal, "later")
    assert read + [event.body["word"] for event in events] == list(map(str, range(600)))


@pytest.mark.long
def test_the_log_is_moved_into_the_database_before_it_grows_large(tmp_path: Path) -> None:
    path = tmp_path / "lab"
    with Journal.open(path) as journal:
        for _ in range(20):
            with journal.write(durable=False) as tx:
                tx.slate(tx.event("recall", {}, at=0), bytes(1_000_000))
            assert (path / "journal.db-wal").stat().st_size < 6_000_000
        assert (path / "journal.db").stat().st_size > 10_000_000
    assert not (path / "journal.db-wal").exists()
    with Journal.open(path) as journal:
        assert len(list(journal.slates())) == 20


class TwoHandles(RuleBasedStateMachine):
    """Whatever is written through two handles, with reopenings between, both read the same."""

    path: Path

    @initialize()
    def begin(self) -> None:
        self.count = getattr(type(self), "count", 0) + 1
        type(self).count = self.count
        self.here = self.path / str(self.count)
        self.journals = [Journal.open(self.here), Journal.open(self.here)]
        self.events: list[dict[str, Any]] = []
        self.texts: dict[int, str] = {}
        self.slates: dict[int, bytes] = {}
        self.vectors: dict[int, list[int]] = {}

    @rule(
        which=st.integers(0, 1),
        durable=st.booleans(),
        fails=st.booleans(),
        batch=st.lists(st.text(max_size=8), max_size=4),
        blob=st.none() | st.binary(max_size=9),
    )
    def write(
        self, which: int, durable: bool, fails: bool, batch: list[str], blob: bytes | None
    ) -> None:
        first = len(self.texts) + 1
        body = {"first": first, "words": batch}
        matrix = np.array([[len(word), which] for word in batch], dtype=np.int8).reshape(-1, 2)
        try:
            with self.journals[which].write(durable=durable) as tx:
                assert tx.head == len(self.events)
                seq = tx.event("batch", body, at=first)
                tx.payloads(range(first, first + len(batch)), [Screened(word) for word in batch])
                tx.vectors(first, "f", matrix)
                if blob is not None:
                    tx.slate(seq, blob)
                if fails:
                    raise InterruptedError
        except InterruptedError:
            return
        self.events.append(body)
        self.texts.update(enumerate(batch, start=first))
        self.vectors.update(enumerate(matrix.tolist(), start=first))
        if blob is not None:
            self.slates[seq] = blob

    @rule(which=st.integers(0, 1), read_only=st.booleans())
    def reopen(self, which: int, read_only: bool) -> None:
        self.journals[which].close()
        if read_only:
            with Journal.open(self.here, read_only=True) as journal:
                self.compare(journal)
        self.journals[which] = Journal.open(self.here)

    @invariant()
    def both_read_the_same(self) -> None:
        for journal in self.journals:
            self.compare(journal)

    def compare(self, journal: Journal) -> None:
        assert journal.head == len(self.events)
        assert [event.body for event in journal.events()] == self.events
        assert journal.texts(sorted(self.texts)) == [self.texts[id] for id in sorted(self.texts)]
        assert dict(journal.slates()) == self.slates
        assert rows(journal) == self.vectors

    def teardown(self) -> None:
        for journal in getattr(self, "journals", ()):
            journal.close()


@pytest.mark.long
def test_two_handles_always_read_the_same(tmp_path: Path) -> None:
    TwoHandles.path = tmp_path
    run_state_machine_as_test(
        TwoHandles, settings=settings(max_examples=15, stateful_step_count=12, deadline=None)
    )

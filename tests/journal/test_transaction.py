"""A write returns exactly what a reader then finds, so callers need not read back what they wrote."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.kernel.journal import Journal

plain = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
)
bodies = st.dictionaries(
    st.text(), st.recursive(plain, lambda inner: st.lists(inner) | st.tuples(inner), max_leaves=8)
)
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20)


@pytest.mark.long
@settings(deadline=None)
@given(st.lists(bodies, max_size=4), st.lists(texts, max_size=5))
def test_a_transaction_returns_the_stored_values(written, stored):
    with Journal.open(None) as journal:
        with journal.write() as before:
            before.event("earlier", {}, at=1)
        with journal.write() as tx:
            tx.payloads(range(1, len(stored) + 1), stored)
            for number, body in enumerate(written):
                tx.event("told", body, at=number)
        assert tx.events == list(journal.events(after=tx.head))
        ids = range(1, len(stored) + 1)
        assert tx.texts(ids) == journal.texts(ids)


def test_an_incomplete_result_is_read_from_the_journal():
    with Journal.open(None) as journal, journal.write() as tx:
        tx.payloads([2, 3], ["b", "c"])
        assert tx.texts(range(2, 4)) == ["b", "c"]
        assert tx.texts(range(1, 4)) is None
        assert tx.texts(range(5, 5)) == []


@pytest.mark.parametrize(
    ("fingerprint", "first", "stored"),
    [("one", 4, True), ("one", 5, False), ("one", 3, False), ("two", 4, False)],
)
def test_vectors_are_told_from_their_first_id_only(fingerprint, first, stored):
    matrix = np.arange(6, dtype=np.int8).reshape(2, 3)
    with Journal.open(None) as journal:
        with journal.write() as tx:
            tx.vectors(4, "one", matrix)
        own = tx.vectors_from(fingerprint, first)
        assert (own is not None) == stored
        if own is not None:
            (read,) = journal.vectors("one", after_id=3)
            assert (own[0][0], own[0][1].tolist()) == (read[0], read[1].tolist())


def test_blocks_that_follow_one_another_are_known_before_they_are_stored():
    with Journal.open(None) as journal, journal.write() as tx:
        for first in (1, 2):
            tx.vectors(first, "one", np.ones((1, 3), dtype=np.int8))
        assert [first for first, _ in tx.vectors_from("one", 1)] == [1, 2]
        tx.vectors(4, "one", np.ones((1, 3), dtype=np.int8))
        assert tx.vectors_from("one", 1) is None


def test_a_single_vector_among_large_blocks_is_located_by_a_small_key(tmp_path):
    """A table without rowids would read whole blocks to compare keys: 2 ms each among blocks of half a megabyte."""
    with Journal.open(tmp_path / "lab") as journal:
        plan = journal._rows("SELECT sql FROM sqlite_master WHERE name = 'vector'")[0][0]
        assert "WITHOUT ROWID" not in plan

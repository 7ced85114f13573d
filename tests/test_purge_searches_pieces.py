"""Which parts of a purged text a purge looks for, and where in a large file it finds them."""

import polars as pl
import pytest

from memlab.subjects.purge.traces import search_files, search_terms

STAYS = pl.DataFrame({"id": [2], "text": ["nothing of the sort"]})


def test_every_long_part_of_a_text_is_looked_for_and_of_a_short_text_the_longest():
    several = search_terms(
        {1: 'Meg lives by the canal "and likes quince jelly most"'}, [], STAYS, ()
    )
    assert set(several.patterns) == {b"Meg lives by the canal", b"and likes quince jelly most"}
    short = search_terms({1: "PIN 4711\nok"}, [], STAYS, ())
    assert (set(short.patterns), short.short) == ({b"PIN 4711"}, 0)


@pytest.mark.long
def test_a_text_across_the_parts_in_which_a_large_file_is_read_is_found(tmp_path):
    """The archive is broken, so that its bytes alone are searched, 16 million at a time."""
    text = b"Meg lives by the canal"
    file = tmp_path / "broken.zip"
    file.write_bytes(bytes(16_000_000 - 10) + text + bytes(100))
    done = search_files([tmp_path], search_terms({1: text.decode()}, [], STAYS, ()))
    assert [(trace.what, trace.part, trace.count) for trace in done.traces] == [
        ("text of memory 1", "free bytes", 1)
    ]

"""Values under paths, as memories."""

from memlab.io.adapters import Records, build_write


def test_of_two_that_two_processes_wrote_at_once_the_newer_counts_and_both_are_deleted(lab):
    """As it would be had another process added a memory between the look and the write."""
    records = Records(lab, "x")
    for text in ("older", "newer"):
        records.append([build_write(("k",), text)])
    assert [record.text for record in records.get_below()] == ["newer"]
    records.put([build_write(("k",), "newest")])
    assert lab.memories["status"].to_list() == ["deleted", "superseded", "active"]
    records.append([build_write(("k",), "another")])
    records.delete(records.get_below())
    assert not records.get_below()

"""Values under paths, as memories."""

from memlab.io.adapters import Records, written


def test_of_two_that_two_processes_wrote_at_once_the_newer_counts_and_both_are_deleted(lab):
    """As it would be had another process added a memory between the look and the write."""
    records = Records(lab, "x")
    for text in ("older", "newer"):
        records.append([written(("k",), text)])
    assert [record.text for record in records.under()] == ["newer"]
    records.put([written(("k",), "newest")])
    assert lab.memories["status"].to_list() == ["deleted", "superseded", "active"]
    records.append([written(("k",), "another")])
    records.delete(records.under())
    assert not records.under()

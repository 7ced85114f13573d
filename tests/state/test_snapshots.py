"""A snapshot is written when there is none that can be read, and the one that is left is of this state."""

import json

import pytest

import memlab
from memlab.kernel.base.disk import read_sealed, write_sealed
from memlab.kernel.state import OldSnapshot, latest_snapshot, load_snapshot, save_snapshot
from memlab.kernel.verbs.projections import PROJECTIONS


@pytest.fixture
def state(lab):
    lab.remember(["Ana likes tea", "the deploy failed"], chain=True)
    return lab.io.store.state


def of_an_older_format(snapshot):
    manifest = json.loads(read_sealed(snapshot / "manifest.json"))
    write_sealed(
        snapshot / "manifest.json",
        json.dumps({**manifest, "format": manifest["format"] - 1}).encode(),
    )


def of_another_journal(snapshot):
    manifest = json.loads(read_sealed(snapshot / "manifest.json"))
    write_sealed(snapshot / "manifest.json", json.dumps({**manifest, "chain": "00" * 16}).encode())


def with_a_flipped_bit(snapshot):
    file = snapshot / "vectors.bin"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


@pytest.mark.long
def test_a_readable_snapshot_is_kept(state, tmp_path):
    first = save_snapshot(state, tmp_path)
    written = (first / "manifest.json").stat().st_mtime_ns
    assert save_snapshot(state, tmp_path) == first
    assert (first / "manifest.json").stat().st_mtime_ns == written


@pytest.mark.long
@pytest.mark.parametrize(
    "harm",
    [
        of_an_older_format,
        of_another_journal,
        with_a_flipped_bit,
        lambda snapshot: (snapshot / "memories.parquet").write_bytes(b"PAR1"),
        lambda snapshot: (snapshot / "manifest.json").unlink(),
    ],
    ids=["of an older format", "of another journal", "flipped", "truncated", "without a manifest"],
)
def test_an_unreadable_snapshot_of_the_same_event_is_replaced(state, tmp_path, harm):
    harm(save_snapshot(state, tmp_path))
    again = save_snapshot(state, tmp_path)
    assert load_snapshot(again, PROJECTIONS).state.seq == state.seq
    assert [item.name for item in tmp_path.iterdir()] == [again.name]


def test_a_later_one_is_of_another_journal_and_goes(state, tmp_path):
    own = save_snapshot(state, tmp_path)
    own.rename(tmp_path / "snapshot-999999999999")
    own = save_snapshot(state, tmp_path)
    assert latest_snapshot(tmp_path) == own
    assert [item.name for item in tmp_path.iterdir()] == [own.name]


@pytest.mark.parametrize(
    ("change", "advice"), [(-1, "takes longer."), (1, "takes longer. Upgrade memlab to use it.")]
)
def test_a_snapshot_of_another_format_names_both_versions(state, tmp_path, change, advice):
    snapshot = save_snapshot(state, tmp_path)
    manifest = json.loads(read_sealed(snapshot / "manifest.json"))
    number = manifest["format"]
    assert manifest["memlab"] == memlab.__version__
    other = {**manifest, "format": number + change, "memlab": "9.1.0"}
    write_sealed(snapshot / "manifest.json", json.dumps(other).encode())
    with pytest.raises(OldSnapshot) as caught:
        load_snapshot(snapshot, PROJECTIONS)
    assert str(caught.value) == (
        f"The snapshot {snapshot.name} has format {number + change}, written by memlab 9.1.0, and memlab "
        f"{memlab.__version__} reads format {number}: it is rebuilt from the journal, which {advice}"
    )
    # those of format 1 to 4 were not sealed
    (snapshot / "manifest.json").write_text('{"format": 1}')
    with pytest.raises(OldSnapshot, match=f"has format 1, and memlab .* reads format {number}"):
        load_snapshot(snapshot, PROJECTIONS)


@pytest.mark.long
def test_a_lab_with_an_older_snapshot_is_folded_from_the_journal_once(tmp_path):
    folder = tmp_path / "agent.memlab"
    with memlab.open(folder) as lab:
        lab.remember("Ana likes tea")
        lab.io.snapshot()
    of_an_older_format(latest_snapshot(folder / "snapshots"))
    with memlab.open(folder) as lab:  # nothing is damaged: nothing is told
        lab.io.snapshot()
    with memlab.open(folder) as lab:  # warnings are errors
        assert lab.memories["text"].to_list() == ["Ana likes tea"]

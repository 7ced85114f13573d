"""The life cycle of an index: built by another process, published atomically, never stale and never silently wrong."""

import fcntl
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest

from memlab.errors import InputError
from memlab.kernel.base.disk import read_sealed, write_sealed
from memlab.kernel.index import BLOCK, Neighbours, Vectors
from memlab.kernel.index._neighbours import build_from_spool as build_here

pytest.importorskip("annoy")

DIM = 16


def random_matrix(rows, seed=0, dim=DIM):
    return np.random.default_rng(seed).integers(-127, 128, (rows, dim), dtype=np.int8)


def make_vectors(rows=2 * BLOCK + 100, seed=0):
    vectors = Vectors(DIM, exact_up_to=1_000)
    vectors.append(random_matrix(rows, seed))
    return vectors


def build_base(folder, vectors, rows=None, kind="annoy"):
    """Build a base in this process, as the builder does, without waiting for a child process."""
    rows = len(vectors) // BLOCK * BLOCK if rows is None else rows
    folder.mkdir(exist_ok=True)
    spool = folder / ".draft-vectors"
    vectors.spool(spool)
    build_here(str(folder), kind, str(rows), vectors.digest(rows), str(spool))


@functools.cache
def _base_files(rows, kind):
    """Return the files of a base of the first rows of ``made()``. Builds are deterministic, so one is enough."""
    with tempfile.TemporaryDirectory() as folder:
        build_base(Path(folder), make_vectors(), rows, kind)
        return {item.name: item.read_bytes() for item in Path(folder).iterdir()}


def with_base(folder, rows=2 * BLOCK, kind="annoy"):
    """Return a folder with a base of the first rows of ``made()``."""
    folder.mkdir()
    for name, data in _base_files(rows, kind).items():
        (folder / name).write_bytes(data)


def files(folder):
    return sorted(item.name for item in folder.iterdir() if item.name != "build.lock")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "neighbours"


@pytest.fixture
def vectors():
    return make_vectors()


def quiet(folder, vectors, **more):
    """Return refreshed neighbours that build nothing in the background."""
    neighbours = Neighbours(folder, vectors, background=False, **more)
    neighbours.refresh()
    return neighbours


class TestBuilding:
    @pytest.mark.long
    def test_a_base_is_built_in_another_process_and_taken_up(self, folder, vectors):
        neighbours = Neighbours(folder, vectors)
        neighbours.refresh()
        assert neighbours.building
        assert neighbours.wait(60), neighbours.failure
        assert (len(neighbours.base), neighbours.failure, neighbours.building) == (
            2 * BLOCK,
            None,
            False,
        )
        assert vectors.attached is neighbours.base
        assert [name.rpartition(".")[2] for name in files(folder)] == ["index", "json"]
        neighbours.close()
        assert vectors.attached is None

    def test_few_rows_need_none(self, folder):
        neighbours = Neighbours(folder, make_vectors(rows=900))
        neighbours.refresh()
        assert not neighbours.building
        assert not folder.exists()

    @pytest.mark.long
    def test_an_index_is_due_once_many_rows_follow_it(self, folder, vectors):
        with_base(folder)
        neighbours = quiet(folder, vectors, share=0.5)
        assert not neighbours.is_due
        vectors.append(random_matrix(BLOCK, 1))
        assert neighbours.is_due
        build_base(folder, vectors)
        neighbours.refresh()
        assert len(neighbours.base) == 3 * BLOCK
        assert len(files(folder)) == 2

    @pytest.mark.long
    def test_two_builds_are_the_same_bytes(self, tmp_path, vectors):
        for name in ("one", "two"):
            build_base(tmp_path / name, vectors)
        one, two = (next((tmp_path / name).glob("*.index")) for name in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()

    def test_never_two_at_once(self, folder, vectors):
        folder.mkdir()
        with (folder / "build.lock").open("w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            neighbours = Neighbours(folder, vectors)
            neighbours.refresh()
            neighbours.wait(60)
            assert not neighbours.building
            assert (files(folder), neighbours.failure) == ([], None)

    @pytest.mark.long
    def test_the_builder_holds_the_lock_when_its_parent_is_gone(self, folder, vectors, tmp_path):
        # a parent that starts a build and is killed at once: the build goes on, alone, and is found afterwards
        vectors.save(tmp_path / "vectors")
        parent = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import sys, time; from memlab.kernel.index import Neighbours, Vectors\n"
                f"n = Neighbours({str(folder)!r}, Vectors.load({str(tmp_path / 'vectors')!r}, exact_up_to=1000))\n"
                "n.refresh(); n._build.started.wait(); print('started', flush=True); time.sleep(60)",
            ],
            stdout=subprocess.PIPE,
        )
        with parent:
            assert parent.stdout.readline() == b"started\n"
            parent.send_signal(signal.SIGKILL)
        neighbours = quiet(folder, vectors)
        deadline = time.monotonic() + 60
        while neighbours.base is None and time.monotonic() < deadline:
            time.sleep(0.05)
            neighbours.refresh()
        assert len(neighbours.base) == 2 * BLOCK

    @pytest.mark.long
    def test_a_builder_that_is_killed_leaves_nothing_that_counts(self, folder, vectors):
        neighbours = Neighbours(folder, vectors)
        neighbours.refresh()
        neighbours.build.started.wait()
        neighbours.build.stop()
        neighbours.build.wait()
        neighbours.background = False
        neighbours.refresh()
        assert (neighbours.base, neighbours.building) == (None, False)
        assert "exit code -9" in neighbours.failure
        build_base(folder, vectors)
        neighbours.refresh()
        assert neighbours.failure is None
        assert len(neighbours.base) == 2 * BLOCK

    @pytest.mark.long
    def test_files_of_killed_builders_are_removed_by_the_next(self, folder, vectors):
        folder.mkdir()
        for name in (
            ".draft-annoy",
            ".draft-vectors",
            ".draft-77-x.json",
            "annoy-000000004096-abc.index",
        ):
            (folder / name).write_bytes(b"half")
        neighbours = Neighbours(folder, vectors)
        assert neighbours.rebuild()
        assert len(files(folder)) == 2
        neighbours.close()

    def test_a_build_that_fails_says_why_and_is_not_tried_at_every_search(self, folder, vectors):
        folder.write_text("a file where the folder should be")
        neighbours = Neighbours(folder, vectors)
        neighbours.refresh()
        neighbours.build.wait(10)
        neighbours.refresh()
        assert "could not be built" in neighbours.failure
        assert not neighbours.building

    def test_the_builder_refuses_vectors_of_another_fingerprint(self, folder, vectors, tmp_path):
        folder.mkdir()
        vectors.save(tmp_path / "vectors")
        data = bytearray((tmp_path / "vectors").read_bytes())
        data[-100 * DIM - 5 * BLOCK] ^= 1
        (tmp_path / "vectors").write_bytes(data)
        with pytest.raises(Exception, match="do not match their digest"):
            build_here(
                str(folder),
                "annoy",
                str(2 * BLOCK),
                vectors.digest(2 * BLOCK),
                str(tmp_path / "vectors"),
            )
        assert files(folder) == []

    def test_nothing_is_written_for_a_reader(self, folder, vectors):
        neighbours = Neighbours(folder, vectors, writable=False)
        neighbours.refresh()
        assert not folder.exists()
        with pytest.raises(InputError, match="read-only"):
            neighbours.rebuild()
        with pytest.raises(InputError, match="whole block of 4,096"):
            Neighbours(folder, make_vectors(rows=10)).rebuild()

    @pytest.mark.long
    def test_in_memory_it_lives_in_a_temporary_folder_that_goes_with_it(self, vectors):
        neighbours = Neighbours(None, vectors)
        assert neighbours.rebuild()
        folder = neighbours.base.path.parent
        neighbours.close()
        assert not folder.exists()


class TestOpening:
    @pytest.mark.long
    def test_a_sound_base_is_opened_without_building(self, folder, vectors):
        with_base(folder)
        neighbours = quiet(folder, make_vectors())
        assert len(neighbours.base) == 2 * BLOCK
        assert not neighbours.is_due

    @pytest.mark.long
    def test_a_base_of_other_vectors_is_never_used(self, folder, vectors):
        with_base(folder)
        assert quiet(folder, make_vectors(seed=1)).base is None

    @pytest.mark.long
    def test_other_vectors_to_follow_take_the_base_away(self, folder, vectors):
        with_base(folder)
        neighbours = quiet(folder, vectors)
        fresh = make_vectors(seed=1)
        neighbours.refresh(fresh)
        assert (neighbours.base, vectors.attached, fresh.attached) == (None, None, None)
        assert neighbours.is_due
        neighbours.refresh(vectors)
        assert vectors.attached is not None

    @pytest.mark.long
    def test_a_base_of_more_rows_waits_until_they_have_come(self, folder, vectors):
        with_base(folder)
        behind = Vectors(DIM, exact_up_to=1_000)
        behind.append(vectors.take(np.arange(BLOCK)))
        neighbours = quiet(folder, behind)
        time.sleep(0.06)
        neighbours.refresh()
        assert neighbours.base is None
        behind.append(vectors.take(np.arange(BLOCK, 2 * BLOCK)))
        neighbours.refresh()
        assert len(neighbours.base) == 2 * BLOCK

    @pytest.mark.long
    def test_two_processes_see_each_others_bases(self, folder, vectors):
        one, two = quiet(folder, vectors), quiet(folder, make_vectors())
        assert (one.base, two.base) == (None, None)
        assert one.rebuild()
        two.refresh()
        assert len(two.base) == 2 * BLOCK

    @pytest.mark.long
    def test_a_base_that_is_replaced_stays_usable_where_it_is_mapped(self, folder, vectors):
        build_base(folder, vectors, BLOCK)
        base = quiet(folder, vectors).base
        build_base(folder, vectors)
        assert not base.path.exists()
        assert len(base.candidates(random_matrix(1)[0], 10)) >= 10

    @pytest.mark.long
    def test_a_refresh_costs_microseconds(self, folder, vectors):
        with_base(folder)
        neighbours = Neighbours(folder, vectors)
        time.sleep(0.06)
        neighbours.refresh()
        started = time.thread_time()
        for _ in range(1_000):
            neighbours.refresh()
        assert (time.thread_time() - started) / 1_000 < 100e-6

    def test_effort_and_share_are_checked(self, folder, vectors):
        for wrong in ({"effort": 0}, {"effort": float("nan")}, {"share": 0}, {"share": 2}):
            with pytest.raises(InputError):
                Neighbours(folder, vectors, **wrong)


class TestDamage:
    """Each damage is noticed before the file is searched; the base is dropped, and a new one is due."""

    def after(self, folder, change):
        vectors = make_vectors()
        with_base(folder)
        index = next(folder.glob("*.index"))
        change(index, index.with_name(f"{index.name}.json"))
        neighbours = quiet(folder, vectors)
        neighbours.wait()
        return neighbours

    def flip(self, path, offset):
        data = bytearray(path.read_bytes())
        data[offset] ^= 255
        path.write_bytes(data)

    @pytest.mark.parametrize("offset", [0, 1_000_003, -1])
    def test_a_flipped_byte_in_a_file_that_was_written_to(self, folder, offset):
        neighbours = self.after(
            folder, lambda index, header: self.flip(index, offset % index.stat().st_size)
        )
        assert neighbours.base is None
        assert "is damaged" in neighbours.failure
        assert neighbours.is_due
        assert files(folder) == []

    @pytest.mark.parametrize("offset", [0, -1])
    def test_a_flipped_byte_at_either_end_is_noticed_even_without_a_trace(self, folder, offset):
        def silently(index, header):
            times = index.stat().st_atime_ns, index.stat().st_mtime_ns
            self.flip(index, offset)
            os.utime(index, ns=times)

        neighbours = self.after(folder, silently)
        assert (neighbours.base, files(folder)) == (None, [])

    def test_a_flipped_byte_that_left_no_trace_is_found_by_verify(self, folder):
        def silently(index, header):
            times = index.stat().st_atime_ns, index.stat().st_mtime_ns
            self.flip(index, index.stat().st_size // 2 + 2_200)
            os.utime(index, ns=times)

        neighbours = self.after(folder, silently)
        if neighbours.base is not None:  # not within one of the 64 pieces
            name = neighbours.base.path.name
            assert neighbours.verify() == (
                f"The index {name} is damaged. It is removed and rebuilt.",
            )
        assert neighbours.base is None
        assert neighbours.is_due

    def test_a_cut_file(self, folder):
        neighbours = self.after(
            folder, lambda index, header: index.write_bytes(index.read_bytes()[:100])
        )
        assert "is damaged" in neighbours.failure

    def test_a_missing_file(self, folder):
        neighbours = self.after(folder, lambda index, header: index.unlink())
        assert "is missing" in neighbours.failure
        assert neighbours.is_due

    @pytest.mark.parametrize("text", ["", "{", "[1]", "{}", "null"])
    def test_a_header_that_is_nonsense(self, folder, text):
        assert self.after(folder, lambda index, header: header.write_text(text)).base is None

    @pytest.mark.parametrize(
        "change",
        [
            {"format": 1},
            {"rows": 17},
            {"rows": -BLOCK},
            {"dim": 17},
            {"kept": 0},
            {"vectors": "0" * 32},
        ],
    )
    def test_a_header_that_says_otherwise(self, folder, change):
        def say(index, header):
            write_sealed(
                header, msgspec.json.encode(msgspec.json.decode(read_sealed(header)) | change)
            )

        assert self.after(folder, say).base is None

    def test_an_index_whose_file_vanishes_is_dropped(self, folder, vectors):
        with_base(folder)
        neighbours = quiet(folder, vectors)
        for item in folder.iterdir():
            item.unlink()
        neighbours.refresh()
        assert (neighbours.base, vectors.attached) == (None, None)
        assert neighbours.is_due

    @pytest.mark.long
    def test_an_index_that_names_missing_rows_is_dropped(self, folder):
        vectors = make_vectors(rows=2 * BLOCK)
        build_base(folder, vectors)
        neighbours = quiet(folder, vectors)
        # the header of a smaller base over the file of a larger one
        neighbours.base.header = msgspec.structs.replace(neighbours.base.header, rows=BLOCK)
        query = random_matrix(1, 5)[0]
        found, _ = vectors.top(query, 10)
        assert "returns rows beyond" in neighbours.base.broken
        assert found.tolist() == np.argsort(-vectors.similarity(query), kind="stable")[:10].tolist()
        neighbours.refresh()
        assert neighbours.base is None
        assert files(folder) == []

    def test_a_copied_lab_uses_its_index(self, folder, vectors, tmp_path):
        with_base(folder)
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy, copy_function=shutil.copyfile)
        assert quiet(copy, vectors).base is not None

    def test_a_large_index_is_checked_in_the_background_and_searches_are_exact_until_then(
        self, folder, vectors, monkeypatch
    ):
        with_base(folder)
        monkeypatch.setattr("memlab.kernel.index._neighbours._AT_ONCE", 0)
        neighbours = quiet(folder, vectors)
        assert neighbours.wait()
        assert neighbours.base is not None

    def test_damaged_vectors_are_told(self, folder, vectors, tmp_path):
        vectors.save(tmp_path / "vectors")
        self.flip(tmp_path / "vectors", -100 * DIM - 7)
        neighbours = quiet(folder, Vectors.load(tmp_path / "vectors"))
        assert neighbours.verify() == (
            "The file of vectors is damaged: its digest does not match. Restore it from the journal.",
        )
        assert quiet(folder, vectors).verify() == ()

    def test_forgetting_removes_every_base(self, folder, vectors):
        with_base(folder)
        neighbours = quiet(folder, vectors)
        neighbours.forget()
        assert (neighbours.base, files(folder)) == (None, [])

"""A lab's directory: what is accepted as a lab, what is refused, and the messages for a person.

The tests may run as root, whom permissions do not stop. Where a disk must refuse writes, a child process works in a
mount namespace of its own. It binds the lab read-only, or fills a tiny disk. Without the right to do that, these tests
are skipped.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import memlab
from memlab.errors import DamagedLab, InputError, LabBusy, LabError, NewerLab, NotALab, ReadOnlyLab
from memlab.kernel.journal import Journal, checksum
from memlab.kernel.journal._database import VERSION
from memlab.kernel.privacy import Screened


def fill(path: Path, count: int = 200) -> None:
    with Journal.open(path) as journal, journal.write() as tx:
        tx.event("remember", {"first": 1, "count": count}, at=0)
        tx.payloads(
            range(1, count + 1), [Screened(f"text {id} " * 20) for id in range(1, count + 1)]
        )
        tx.vectors(1, "f", np.ones((count, 16), dtype=np.int8))


def read(journal: Journal) -> int:
    """Read everything."""
    list(journal.events())
    list(journal.slates())
    return sum(len(matrix) for _, matrix in journal.vectors("f")) + len(
        journal.texts(range(1, 201))
    )


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    fill(tmp_path / "agent.memlab")
    return tmp_path / "agent.memlab"


# -- creating -------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_new_path_an_empty_directory_and_an_interrupted_creation_become_labs(
    tmp_path: Path,
) -> None:
    empty, interrupted = tmp_path / "empty", tmp_path / "interrupted"
    empty.mkdir()
    interrupted.mkdir()
    (interrupted / "lock").touch()
    (interrupted / "journal.db.new").write_bytes(b"half")
    (interrupted / "journal.db.new-journal").write_bytes(b"half")
    for path in (tmp_path / "deep" / "er" / "lab", tmp_path / "what? #1 %20 ü", empty, interrupted):
        fill(path)
        with Journal.open(path) as journal:
            assert journal.path == path
            assert read(journal) == 400
        assert sorted(entry.name for entry in path.iterdir()) == ["head", "journal.db", "lock"]


def test_nothing_is_created_unless_asked(tmp_path: Path) -> None:
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(NotALab, match="no lab at"):
            Journal.open(tmp_path / "lab", **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_lab_in_memory_is_no_place_to_read_from() -> None:
    with pytest.raises(InputError, match="starts empty"):
        Journal.open(None, read_only=True)


def test_a_relative_path_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Journal.open("lab") as journal:
        monkeypatch.chdir("/")
        with journal.write() as tx:
            tx.event("note", {}, at=0)
        assert journal.path == tmp_path / "lab"


# -- something else, newer, damaged -----------------------------------------------------------------------------------


def test_a_directory_of_other_things_is_left_untouched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(NotALab, match=r"other contents \(thesis.tex"):
        Journal.open(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_is_not_a_lab(tmp_path: Path) -> None:
    (tmp_path / "lab.db").write_text("a file")
    with pytest.raises(NotALab, match="is a file"):
        Journal.open(tmp_path / "lab.db")
    with pytest.raises(NotALab, match="part of the path is a file"):
        Journal.open(tmp_path / "lab.db" / "deeper")


def test_a_database_of_something_else_is_not_a_lab(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "journal.db")) as other:
        other.execute("CREATE TABLE bookmarks (url)")
    before = (tmp_path / "journal.db").read_bytes()
    with pytest.raises(NotALab, match="another program"):
        Journal.open(tmp_path)
    assert (tmp_path / "journal.db").read_bytes() == before


def test_a_lab_of_a_later_version_says_so(lab: Path) -> None:
    with closing(sqlite3.connect(lab / "journal.db")) as database:
        database.execute(f"PRAGMA user_version = {VERSION + 1}")
        row = ("format-by", "9.1.0", checksum("format-by", "9.1.0"))
        database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", row)
        database.commit()
    text = (
        f"{lab} has format {VERSION + 1}, written by memlab 9.1.0. This is memlab {memlab.__version__}, which reads "
        f"formats up to {VERSION}. Upgrade memlab."
    )
    before = (lab / "journal.db").read_bytes()
    for read_only in (False, True):
        with pytest.raises(NewerLab) as caught:
            Journal.open(lab, read_only=read_only)
        assert str(caught.value) == text
    assert (lab / "journal.db").read_bytes() == before


def test_a_later_version_that_keeps_its_name_elsewhere_is_a_later_memlab(lab: Path) -> None:
    with closing(sqlite3.connect(lab / "journal.db")) as database:
        database.execute("DROP TABLE meta")
        database.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(
        NewerLab, match=f"has format {VERSION + 1}, written by a later memlab. This is memlab"
    ):
        Journal.open(lab)


def truncate(length: int) -> Callable[[Path], None]:
    return lambda file: os.truncate(file, length)


def overwrite(offset: int, data: bytes) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        content = bytearray(file.read_bytes())
        content[offset : offset + len(data)] = data
        file.write_bytes(content)

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        truncate(0),
        truncate(50),
        truncate(4096),
        truncate(3 * 4096),
        lambda file: os.truncate(file, file.stat().st_size - 1),
        overwrite(0, b"not a database at all"),
        overwrite(0, b"\0" * 4096),
        overwrite(100, b"\xff" * 3996),
        lambda file: overwrite(4096, b"\xa5" * (file.stat().st_size - 4096))(file),
        lambda file: file.write_text("hello"),
    ],
)
def test_a_truncated_or_overwritten_database_is_damaged(
    lab: Path, damage: Callable[[Path], None]
) -> None:
    damage(lab / "journal.db")
    with pytest.raises((DamagedLab, NotALab)) as raised, Journal.open(lab) as journal:
        read(journal)
    # a zeroed header has no mark of memlab's either, but its name and its neighbours say whose it was
    assert raised.type is DamagedLab
    assert str(lab) in str(raised.value)


def test_a_log_without_its_database_is_damage_and_not_a_new_lab(lab: Path) -> None:
    (lab / "journal.db").rename(lab / "journal.db-wal")
    with pytest.raises(DamagedLab, match=r"has head but no journal\.db: the journal is missing"):
        Journal.open(lab)


def test_damage_within_a_row_is_named(lab: Path) -> None:
    with closing(sqlite3.connect(lab / "journal.db")) as database, database:
        database.execute("UPDATE event SET body = x'c1'")
        database.execute("UPDATE vector SET data = x'00'")
        database.execute("UPDATE payload SET text = CAST(x'ff' AS TEXT) WHERE id = 7")
    with Journal.open(lab) as journal:
        for reading in (
            lambda: list(journal.events()),
            lambda: list(journal.vectors("f")),
            lambda: journal.texts([7]),
        ):
            with pytest.raises(DamagedLab):
                reading()


# -- read-only --------------------------------------------------------------------------------------------------------


def test_a_lab_opened_for_reading_refuses_a_write(lab: Path) -> None:
    before = (lab / "journal.db").read_bytes()
    with Journal.open(lab, read_only=True) as journal:
        assert journal.read_only
        assert read(journal) == 400
        with pytest.raises(ReadOnlyLab, match="read_only=True"), journal.write():
            pass
    assert (lab / "journal.db").read_bytes() == before


def test_a_reader_sees_what_a_writer_adds(lab: Path) -> None:
    with Journal.open(lab, read_only=True) as reader, Journal.open(lab) as writer:
        with writer.write() as tx:
            tx.event("note", {}, at=0)
        assert reader.head == 2


def test_immutable_is_a_way_of_reading(lab: Path) -> None:
    with pytest.raises(InputError, match="read_only=True as well"):
        Journal.open(lab, immutable=True)
    with Journal.open(lab, read_only=True, immutable=True) as journal:
        assert read(journal) == 400
    assert sorted(entry.name for entry in lab.iterdir()) == ["head", "journal.db", "lock"]


def test_immutable_refuses_a_lab_that_is_in_use(lab: Path) -> None:
    with Journal.open(lab) as journal:
        with journal.write() as tx:
            tx.event("note", {}, at=0)
        with pytest.raises(ReadOnlyLab, match="was not closed"):
            Journal.open(lab, read_only=True, immutable=True)


def _mounting() -> list[str] | None:
    """Return a command prefix that allows a command to mount, if this system permits it."""
    for command in (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]):
        if (
            shutil.which("unshare")
            and subprocess.run([*command, "true"], capture_output=True).returncode == 0
        ):
            return command
    return None


MOUNTING = _mounting()
needs_mount = pytest.mark.skipif(
    MOUNTING is None, reason="needs the right to mount in a namespace of its own"
)

PRELUDE = """
import sys
from pathlib import Path
from memlab.errors import *
from memlab.kernel.journal import Journal

def outcome(*args, **options):
    try:
        with Journal.open(*args, **options) as journal:
            return sum(len(matrix) for _, matrix in journal.vectors("f"))
    except LabError as error:
        return f"{type(error).__name__}: {error}"

lab = Path(sys.argv[1])
"""


def mounted(mount: str, script: str, path: Path) -> list[str]:
    """Return the lines that a Python script prints after a mount that only this script sees."""
    assert MOUNTING is not None
    source = Path(__file__).parents[2]
    shell = f'set -e; {mount}; exec "$0" -c "$1" "$2"'
    command = [*MOUNTING, "sh", "-c", shell, sys.executable, PRELUDE + script, str(path)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(source), "LAB": str(path)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


READ_ONLY = 'mount --bind "$LAB" "$LAB"; mount -o remount,bind,ro "$LAB"'


@pytest.mark.long
@needs_mount
def test_a_closed_lab_on_a_read_only_disk_is_read_as_immutable_and_only_when_asked(
    lab: Path,
) -> None:
    script = """
print(outcome(lab))
print(outcome(lab, read_only=True))
print(outcome(lab, read_only=True, immutable=True))
"""
    writing, reading, immutable = mounted(READ_ONLY, script, lab)
    assert writing.startswith("ReadOnlyLab")
    assert "read_only=True" in writing
    assert reading.startswith("ReadOnlyLab")
    assert "immutable=True" in reading
    assert immutable == "200"


@pytest.mark.long
@needs_mount
def test_a_lab_in_use_elsewhere_is_read_on_a_read_only_disk_with_its_log(lab: Path) -> None:
    with Journal.open(lab) as journal:
        with journal.write() as tx:
            tx.vectors(201, "f", np.ones((1, 16), dtype=np.int8))
        assert mounted(READ_ONLY, "print(outcome(lab, read_only=True))", lab) == ["201"]


@pytest.mark.long
@needs_mount
def test_no_lab_can_be_created_on_a_read_only_disk(tmp_path: Path) -> None:
    lines = mounted(READ_ONLY, "print(outcome(lab / 'new')); print(outcome(lab))", tmp_path)
    assert all(line.startswith("ReadOnlyLab") for line in lines)


def execute(journal: Journal, statement: str) -> None:
    """Execute a statement over the connection that the journal writes with."""
    writer = journal._writer
    assert writer is not None
    writer.execute(statement)


def test_a_database_that_becomes_read_only_refuses_the_write(lab: Path) -> None:
    with Journal.open(lab) as journal:
        execute(journal, "PRAGMA query_only = ON")
        with pytest.raises(ReadOnlyLab, match="cannot be written"), journal.write() as tx:
            tx.event("note", {}, at=0)
        assert journal.head == 1


# -- full disks and other programs ----------------------------------------------------------------------------------


@pytest.mark.long
@needs_mount
def test_a_full_disk_says_so_and_leaves_the_journal_as_it_was(tmp_path: Path) -> None:
    script = """
import os
journal = Journal.open(lab / "new")
for attempt in range(10_000):
    try:
        with journal.write() as tx:
            tx.slate(tx.event("recall", {}, at=0), bytes(50_000))
    except LabError as error:
        print(type(error).__name__, "disk is full" in str(error), attempt > 5, journal.head == attempt)
        break
print(len(list(journal.slates())) == attempt)
os.unlink(lab / "ballast")
with journal.write() as tx:
    print(tx.event("note", {}, at=0) == attempt + 1)
journal.close()
with Journal.open(lab / "new") as again:
    print(again.head == attempt + 1)
"""
    mount = 'mount -t tmpfs -o size=4m tmpfs "$LAB"; head -c 2000000 /dev/zero > "$LAB/ballast"'
    assert mounted(mount, script, tmp_path) == ["LabError True True True", "True", "True", "True"]


def test_a_database_that_cannot_grow_counts_as_a_full_disk(lab: Path) -> None:
    def write() -> None:
        with journal.write() as tx:
            tx.event("recall", {}, at=0)
            tx.slate(2, bytes(1_000_000))

    with Journal.open(lab) as journal:
        execute(journal, "PRAGMA max_page_count = 60")
        with pytest.raises(LabError, match="disk is full"):
            write()
        assert journal.head == 1
        assert list(journal.slates()) == []
        with journal.write() as tx:
            tx.event("note", {}, at=0)


@pytest.mark.long
def test_another_program_that_locks_the_database_is_reported(lab: Path) -> None:
    with (
        closing(sqlite3.connect(lab / "journal.db")) as other,
        Journal.open(lab, timeout=0.05) as journal,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LabBusy, match="not memlab"), journal.write():
            pass
        other.rollback()
        with journal.write() as tx:
            tx.event("note", {}, at=0)

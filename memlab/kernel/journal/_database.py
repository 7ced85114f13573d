"""The database file of a journal.

The module contains the schema, connections and migrations, and translates SQLite's errors for a
lab.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

from memlab.errors import (
    DamagedLab,
    InputError,
    LabBusy,
    LabError,
    LabUnavailable,
    NewerLab,
    NotALab,
    ReadOnlyLab,
)
from memlab.kernel.base.disk import sync
from memlab.kernel.journal._events import (
    CHAIN_BYTES,
    RESTORE,
    SALT_BYTES,
    Body,
    Event,
    chain_event,
    checksum,
    decode_body,
    digest_text,
    encode_body,
    hash_digests,
    initial_chain,
)
from memlab.kernel.journal._vault import (
    ENCRYPTED,
    ENCRYPTED_FORMAT,
    FILE,
    RECORD,
    KeySource,
    Vault,
    data_file,
    default_key,
    open_database,
    sql_errors,
    unlock,
)
from memlab.kernel.version import __version__

__all__ = [
    "FORMAT_BY",
    "GENERATION",
    "HEAD",
    "IDENTITY",
    "LOCK",
    "SCHEMA",
    "VERSION",
    "Mode",
    "RepairEvent",
    "Synchronous",
    "add_missing_tables",
    "check_format",
    "connect_journal",
    "copy_to_memory",
    "create_database",
    "create_in_memory",
    "install_database",
    "lab_exists",
    "make_directory",
    "mark_format",
    "migrate",
    "refuse_newer",
    "translate_error",
    "translate_errors",
    "write_record",
]


# The files of a lab's directory, besides the database: the writer's lock, the record of the last event.
LOCK, HEAD = "lock", "head"
_DERIVED_LOCK = (
    "derived.lock"  # left by ``storage.purging``; a folder that holds only locks may become a lab
)

APPLICATION = 0x6D656D6C  # "meml"
VERSION = 4
"""The format of a journal, stored as SQLite's ``user_version``.

If a journal has a later format, ``check_format`` refuses to open it.

Format 1 has neither chain nor checksums. Format 2 has all current tables except ``segment``. Format
3 has the same tables and the value ``FORMAT_BY``, so that a memlab that knows only format 2 refuses
it instead of failing at texts of packs. Format 4 has sealed slates in ``segment``, which an earlier
memlab would report as lost.
"""

Synchronous = Literal["OFF", "NORMAL", "FULL"]
Mode = Literal["rw", "ro", "immutable"]

# Tables with large values keep their rowids. Without them SQLite reads whole rows to compare keys: inserting a vector
# among blocks of half a megabyte took 2 ms, and takes 0.05 ms in a table whose index holds only the keys.
SCHEMA = """
CREATE TABLE event (
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL,
    content BLOB, chain BLOB NOT NULL
);
CREATE TABLE payload (
    id INTEGER PRIMARY KEY, text TEXT NOT NULL, event INTEGER NOT NULL, salt BLOB, digest BLOB NOT NULL
);
CREATE TABLE embedder (id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, sum INTEGER NOT NULL);
CREATE TABLE vector (
    embedder INTEGER NOT NULL, first_id INTEGER NOT NULL, count INTEGER NOT NULL, dim INTEGER NOT NULL,
    data BLOB NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (embedder, first_id)
);
CREATE TABLE slate (seq INTEGER PRIMARY KEY, data BLOB NOT NULL, sum INTEGER NOT NULL);
CREATE TABLE source (hash TEXT PRIMARY KEY, text TEXT NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID;
"""
_META = "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID;"
_SEGMENT = """
CREATE {}TABLE IF NOT EXISTS segment (
    upto INTEGER NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (upto, name)
);
"""
SCHEMA += _META + _SEGMENT.format("")
"""``event.content`` is the digest over the digests of the event's texts."""

IDENTITY, GENERATION, FORMAT_BY = "lab", "generation", "format-by"
"""Keys of ``meta``: the identity of the journal, drawn once; how often a purge has rewritten it; and the version of
memlab that set its format, for the message of an earlier version."""

_LONGEST_VERSION = 40
"""Maximum number of characters of a version that a message repeats, because the file may be damaged."""


def write_identity(connection: sqlite3.Connection, identity: str | None = None) -> None:
    """Give a new journal its identity, random by default."""
    for key, value in ((IDENTITY, identity or secrets.token_hex(16)), (GENERATION, "0")):
        connection.execute("INSERT INTO meta VALUES (?, ?, ?)", (key, value, checksum(key, value)))


def mark_format(connection: sqlite3.Connection) -> None:
    """Add the missing tables and set the current format, within the open transaction."""
    connection.execute(_SEGMENT.format(""))
    row = (FORMAT_BY, __version__, checksum(FORMAT_BY, __version__))
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", row)
    connection.execute(f"PRAGMA user_version={VERSION}")


def refuse_newer(connection: sqlite3.Connection, folder: Path) -> None:
    """Raise NewerLab if a lab's database has a later format than memlab reads."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == ENCRYPTED_FORMAT:
        raise DamagedLab(f"{folder} is encrypted, and its {ENCRYPTED} is missing. {RESTORE}")
    if version > VERSION:
        raise NewerLab.of_format(str(folder), version, VERSION, written_by=_format_by(connection))


def add_missing_tables(connection: sqlite3.Connection) -> None:
    """Create the tables that formats 2 and 3 lack as temporary tables.

    The journal can then be read without a migration.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version in (2, 3):
        connection.execute(_SEGMENT.format("TEMP "))


def _format_by(connection: sqlite3.Connection) -> str:
    """Return the version of memlab that set a journal's format.

    Returns "" if it is not recorded or is damaged.
    """
    try:
        row = connection.execute(
            "SELECT value, sum FROM meta WHERE key = ?", (FORMAT_BY,)
        ).fetchone()
    except sql_errors():
        return ""
    sound = row is not None and isinstance(row[0], str) and row[1] == checksum(FORMAT_BY, row[0])
    return row[0][:_LONGEST_VERSION] if sound else ""


def create_in_memory() -> sqlite3.Connection:
    """Return a connection to an empty journal in memory."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.executescript(SCHEMA)
    write_identity(connection)
    mark_format(connection)
    return connection


def make_directory(folder: Path) -> None:
    """Create ``folder`` and its parents durably."""
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for parent in missing:
            sync(parent.parent)
    except OSError as error:
        raise _refused(folder, error) from None


def create_database(folder: Path, key: KeySource | None = None) -> Vault | None:
    """Create a lab in ``folder`` if there is none; return the vault of an encrypted lab.

    The lab is encrypted if ``key`` or the environment variable ``MEMLAB_KEY`` is given.

    The caller holds the writer's lock.
    """
    if lab_exists(folder):
        return None
    try:
        with translate_errors(folder):
            key = default_key() if key is None else key
            vault = None if key is None else Vault.create()
            record = None if vault is None or key is None else vault.wrap(key)
            install_database(folder, vault, record, _begin)
            return vault
    except OSError as error:
        raise _refused(folder, error) from None


def _begin(connection: sqlite3.Connection) -> None:
    """Write the identity and the format of a new journal."""
    write_identity(connection)
    mark_format(connection)


def install_database(
    folder: Path,
    vault: Vault | None,
    record: str | None,
    fill: Callable[[sqlite3.Connection], None],
) -> None:
    """Replace the lab's database by a new database that ``fill`` fills.

    The database is written and synced under another name and then renamed, so ``journal.db`` is never incomplete. An
    encrypted database is in place before ``journal.db``, whose rename decides whether a lab is encrypted.
    """
    draft = folder / f"{FILE if vault is None else ENCRYPTED}.new"
    for leftover in folder.glob(f"{draft.name}*"):
        leftover.unlink()
    with contextlib.closing(open_database(draft, "mode=rwc", 30.0, vault)) as connection:
        connection.executescript(
            f"PRAGMA synchronous=FULL; BEGIN; {SCHEMA} PRAGMA application_id={APPLICATION};"
        )
        fill(connection)
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode=WAL").fetchone()
    sync(draft)  # SQLite has synced the file, but on macOS only to the drive's cache
    if record is not None:
        write_record(folder, record, draft)
    else:
        draft.rename(folder / FILE)
        sync(folder)


def write_record(folder: Path, record: str, database: Path | None = None) -> None:
    """Replace ``journal.db`` by a plain database with only the encrypted lab's key record.

    ``database`` becomes the lab's encrypted database.
    """
    draft = folder / f"{FILE}.new"
    draft.unlink(missing_ok=True)
    with contextlib.closing(open_database(draft, "mode=rwc", 30.0, None)) as connection:
        connection.executescript(f"BEGIN; {_META} PRAGMA application_id={APPLICATION};")
        for name, value in ((RECORD, record), (FORMAT_BY, f"{__version__}, encrypted")):
            row = (name, value, checksum(name, value))
            connection.execute("INSERT INTO meta VALUES (?, ?, ?)", row)
        connection.execute(f"PRAGMA user_version={ENCRYPTED_FORMAT}")
        connection.execute("COMMIT")
    sync(draft)
    if database is not None:
        database.rename(folder / ENCRYPTED)
    draft.rename(folder / FILE)
    sync(folder)


def lab_exists(folder: Path) -> bool:
    """Return whether ``folder`` holds a lab.

    Raises NotALab if the folder neither holds a lab nor can become a lab.
    """
    try:
        if not folder.exists():
            return False
        if not folder.is_dir():
            raise NotALab(f"{folder} is a file. A lab is a directory: give another path.")
        names = {entry.name for entry in folder.iterdir()}
    except OSError as error:  # no permission, or a network disk that is unavailable
        raise LabUnavailable.at(folder, error.strerror or "cannot be read") from None
    # These files are written in place: a link in a lab of someone else would overwrite a file of the reader.
    for name in sorted(names):
        if (
            name in (LOCK, HEAD, _DERIVED_LOCK) or name.startswith((f"{FILE}-", f"{ENCRYPTED}-"))
        ) and (folder / name).is_symlink():
            raise NotALab(
                f"{folder / name} is a symbolic link, and memlab writes to no file outside of the lab. Remove the link."
            )
    if FILE in names:
        if (folder / FILE).exists() and not (folder / FILE).is_file():
            # SQLite would wait for the writer of a pipe
            raise NotALab(f"{folder / FILE} is not a regular file. Give another path.")
        return True
    left = sorted(names & {f"{FILE}-wal", ENCRYPTED, HEAD, "snapshots", "slates", "backups"})
    if left:
        raise DamagedLab(f"{folder} has {left[0]} but no {FILE}: the journal is missing. {RESTORE}")
    others = sorted(
        name
        for name in names
        if name not in (LOCK, _DERIVED_LOCK)
        and not name.startswith((f"{FILE}.new", f"{ENCRYPTED}.new"))
    )
    if others:
        raise NotALab(
            f"{folder} is a directory with other contents ({others[0]}, ...) and no {FILE}. Give another path."
        )
    return False


def connect_journal(folder: Path, mode: Mode, timeout: float) -> sqlite3.Connection:
    """Open a connection to the database of a lab; only ``mode="rw"`` may write."""
    option = "mode=ro&immutable=1" if mode == "immutable" else f"mode={mode}"
    connection = open_database(data_file(folder), option, timeout, unlock(folder))
    if mode == "rw":
        # wal_autocheckpoint would checkpoint in the middle of a commit; macOS syncs to the disk only with fullfsync.
        connection.executescript(
            "PRAGMA wal_autocheckpoint=0; PRAGMA fullfsync=1; PRAGMA checkpoint_fullfsync=1;"
        )
    return connection


def check_format(connection: sqlite3.Connection, path: Path) -> int:
    """Return the format of an open database.

    Raises NotALab, NewerLab or DamagedLab unless the database is complete and written by memlab.

    The file is read only through SQLite, because opening and closing it separately would drop this
    process's POSIX locks on it.
    """
    if path.stat().st_size == 0:
        raise DamagedLab(f"{path} is empty: it was truncated. {RESTORE}")
    connection.execute("BEGIN")
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        page_size = int(connection.execute("PRAGMA page_size").fetchone()[0])  # SQLCipher: a text
        wal = path.with_name(f"{path.name}-wal")
        # Pages in the log need not be in the file yet; SQLite checks them when it reads them.
        complete = path.stat().st_size >= pages * page_size or (
            wal.exists() and wal.stat().st_size > 0
        )
        if application != APPLICATION:
            raise NotALab(f"{path} is an SQLite database of another program. Give another path.")
        refuse_newer(connection, path.parent)
    finally:
        connection.execute("COMMIT")
    if version < 1:
        raise DamagedLab(f"{path} has format {version}, which does not exist. {RESTORE}")
    if not complete:
        raise DamagedLab(
            f"{path} is truncated: {path.stat().st_size:,} of {pages * page_size:,} bytes. {RESTORE}"
        )
    return int(version)


@contextlib.contextmanager
def translate_errors(folder: Path | None) -> Iterator[None]:
    """Convert SQLite errors raised within the block to memlab errors."""
    try:
        yield
    except sql_errors() as error:
        raise translate_error(error, folder) from error


def translate_error(error: Exception, folder: Path | None) -> LabError | InputError:
    """Return the memlab error that corresponds to a SQLite error.

    ``folder`` is None for a lab in memory.
    """
    where = folder or Path("the lab in memory")
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    file = FILE if folder is None or not (folder / ENCRYPTED).exists() else ENCRYPTED
    if primary in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB} or code == _SHORT_READ:
        return DamagedLab(f"{where}: {file} is damaged ({error}). {RESTORE}")
    if primary is None or primary == sqlite3.SQLITE_ERROR:
        # The cause is a missing table, or text that is not UTF-8.
        return DamagedLab(f"{where}: {file} does not hold what memlab wrote ({error}). {RESTORE}")
    if primary == sqlite3.SQLITE_FULL:
        return LabError(
            f"{where}: the disk is full. Nothing of this write was kept; free some space and repeat it."
        )
    if primary in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}:
        return ReadOnlyLab(f"{where} cannot be written ({error}). Open it with read_only=True.")
    if primary in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return LabBusy(
            f"{where} is locked by a program that is not memlab ({error}). Close it and try again."
        )
    if primary == sqlite3.SQLITE_CONSTRAINT:
        return InputError(f"{where}: the id or key to be written exists already ({error}).")
    if primary == sqlite3.SQLITE_TOOBIG:
        return InputError(
            f"{where}: a text, vector block or slate is larger than SQLite's limit of 1 GB."
        )
    # A disk that went away is not damage: the lab is usable again when the disk is back.
    name = getattr(error, "sqlite_errorname", "unknown")
    if folder is not None and primary in {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}:
        try:
            os.close(os.dup(0))
        except OSError as limit:  # SQLite does not say that the limit of open files is the reason
            if limit.errno == errno.EMFILE:
                return LabUnavailable.at(folder, os.strerror(errno.EMFILE))
        return LabUnavailable.at(folder, f"SQLite failed with {name}: {error}")
    return LabError(f"{where}: SQLite failed with {name} ({error}).")


# Of SQLite's extended input/output errors, only this one means a truncated file.
_SHORT_READ = sqlite3.SQLITE_IOERR_SHORT_READ


def _refused(folder: Path, error: OSError) -> LabError:
    """Return the error for a directory in which no lab can be created."""
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return ReadOnlyLab(
            f"No lab can be created at {folder}: {error.strerror}. Give a path that can be written."
        )
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return LabError(f"No lab can be created at {folder}: the disk is full.")
    if error.errno in {errno.ENOTDIR, errno.EEXIST}:
        return NotALab(f"No lab can be created at {folder}: part of the path is a file.")
    return LabError(f"No lab can be created at {folder}: {error.strerror}.")


# Migrating a journal of an earlier format to the current one, in one transaction.
#
# Formats 2 and 3 lack only the table ``segment``, which is created. Format 1 had neither chain nor
# checksums, so its rows are trusted. ``mend`` may correct the body of each event, because earlier
# versions could commit events that cannot be applied.


RepairEvent = Callable[[Event], Body | None]
"""A function that returns the corrected body of an event, or None if it is correct."""

# Rows migrated at a time, so that a large lab fits in memory; and the tables of format 1.
_AT_ONCE = 1000
_TABLES = ("event", "payload", "embedder", "vector", "slate", "source", "meta")
_CHECKED = {
    "embedder": ("id", "fingerprint"),
    "vector": ("embedder", "first_id", "count", "dim", "data"),
    "slate": ("seq", "data"),
    "source": ("hash", "text"),
    "meta": ("key", "value"),
}
"""The columns that the checksum of each table's rows covers."""


def migrate(connection: sqlite3.Connection, path: Path, mend: RepairEvent | None) -> None:
    """Migrate the open database, unless another process has migrated it already.

    The caller holds the writer's lock.
    """
    connection.create_function(
        "memlab_sum", -1, lambda *values: checksum(*values), deterministic=True
    )
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        refuse_newer(connection, path)  # another process may have raised the format in the meantime
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 1:
            _migrate(connection, path, mend)
        if version < VERSION:
            mark_format(connection)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        # The next write sets the level only if it differs from the last level that was set.
        connection.execute("PRAGMA synchronous=FULL")


def copy_to_memory(
    reader: sqlite3.Connection, path: Path, mend: RepairEvent | None
) -> sqlite3.Connection:
    """Return a migrated copy of the database in memory, for a read-only lab."""
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    reader.backup(copy)
    migrate(copy, path, mend)
    return copy


def _migrate(connection: sqlite3.Connection, path: Path, mend: RepairEvent | None) -> None:
    """Migrate format 1: copy all rows into the new tables with checksums and a chain.

    ``mend`` returns the corrected body of an event, or None to keep the body.
    """
    columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(event)")]
    if columns != ["seq", "at", "kind", "body"]:
        raise DamagedLab(
            f"{path} has the format number 1, but not the tables of format 1. {RESTORE}"
        )
    for table in _TABLES:
        connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    for statement in SCHEMA.split(";"):
        connection.execute(statement)
    for table, names in _CHECKED.items():
        listed = ", ".join(names)
        connection.execute(
            f"INSERT INTO {table} SELECT {listed}, memlab_sum({listed}) FROM old_{table}"
        )
    # The identity is derived from the first events, so that all copies of a lab get the same one
    # and accept its backups.
    began = connection.execute(
        "SELECT at, kind, body FROM old_event ORDER BY seq LIMIT 2"
    ).fetchall()
    write_identity(
        connection,
        hashlib.blake2b(repr(began).encode(), digest_size=16).hexdigest() if began else None,
    )
    (last,) = connection.execute("SELECT coalesce(max(seq), 0) FROM old_event").fetchone()
    _migrate_texts(connection, last)
    _migrate_events(connection, last, mend)
    for table in _TABLES:
        connection.execute(f"DROP TABLE old_{table}")


def _migrate_texts(connection: sqlite3.Connection, last: int) -> None:
    """Copy the texts with digests, and fill gaps in the ids.

    A gap becomes empty texts and zero vectors. Format 1 does not record which event a text came
    with, so the last event covers all texts.
    """
    # Gaps come from interrupted writes of early versions; later formats require ids without gaps.
    rows = connection.execute("SELECT id, text FROM old_payload ORDER BY id")
    while some := rows.fetchmany(_AT_ONCE):
        salted = [(id, text, last, os.urandom(SALT_BYTES)) for id, text in some]
        connection.executemany(
            "INSERT INTO payload VALUES (?, ?, ?, ?, ?)",
            [
                (id, text, event, salt, digest_text(salt, id, text))
                for id, text, event, salt in salted
            ],
        )
    missing = _missing(connection.execute("SELECT id, 1 FROM payload ORDER BY id"))
    blank = [
        (id, "", last, None, os.urandom(CHAIN_BYTES))
        for first, count in missing
        for id in range(first, first + count)
    ]
    connection.executemany("INSERT INTO payload VALUES (?, ?, ?, ?, ?)", blank)
    for (embedder,) in connection.execute("SELECT id FROM embedder").fetchall():
        blocks = connection.execute(
            "SELECT first_id, count FROM vector WHERE embedder = ? ORDER BY first_id", (embedder,)
        )
        gaps = _missing(blocks)
        (dim,) = connection.execute(
            "SELECT max(dim) FROM vector WHERE embedder = ?", (embedder,)
        ).fetchone()
        zeros = [(embedder, first, count, dim, bytes(count * dim)) for first, count in gaps]
        connection.executemany(
            "INSERT INTO vector VALUES (?, ?, ?, ?, ?, ?)",
            [(*row, checksum(*row)) for row in zeros],
        )


def _missing(runs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the gaps in a series of ids as (first, count) pairs, from id 1 on."""
    following, gaps = 1, []
    for first, count in runs:
        if first > following:
            gaps.append((following, first - following))
        following = first + count
    return gaps


def _migrate_events(connection: sqlite3.Connection, last: int, mend: RepairEvent | None) -> None:
    """Copy the journal's events, with corrected bodies and a recomputed hash chain."""
    (identity,) = connection.execute("SELECT value FROM meta WHERE key = 'lab'").fetchone()
    digests = connection.execute(
        "SELECT digest FROM payload WHERE event = ? ORDER BY id", (last,)
    ).fetchall()
    link = initial_chain(identity)
    rows = connection.execute("SELECT seq, at, kind, body FROM old_event ORDER BY seq")
    while some := rows.fetchmany(_AT_ONCE):
        chain = []
        for seq, at, kind, body in some:
            mended = None if mend is None else mend(Event(seq, at, kind, decode_body(seq, body)))
            body = body if mended is None else encode_body(kind, mended)
            content = (
                hash_digests(digest for (digest,) in digests) if seq == last and digests else None
            )
            link = chain_event(link, seq, at, kind, body, content)
            chain.append((seq, at, kind, body, content, link))
        connection.executemany("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)", chain)

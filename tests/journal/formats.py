"""Labs as earlier versions left them."""

import sqlite3
from contextlib import closing
from pathlib import Path

FORMAT_1 = """
CREATE TABLE event (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE payload (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE embedder (id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE);
CREATE TABLE vector (
    embedder INTEGER NOT NULL, first_id INTEGER NOT NULL, count INTEGER NOT NULL, dim INTEGER NOT NULL,
    data BLOB NOT NULL, PRIMARY KEY (embedder, first_id)
);
CREATE TABLE slate (seq INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE source (hash TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
COLUMNS = {
    "event": "seq, at, kind, body",
    "payload": "id, text",
    "embedder": "id, fingerprint",
    "vector": "embedder, first_id, count, dim, data",
    "slate": "seq, data",
    "source": "hash, text",
    "meta": "key, value",
}


def as_format_1(folder: Path) -> None:
    """Make the closed lab in ``folder`` what the version before chains and checksums would have written."""
    with closing(sqlite3.connect(folder / "journal.db", isolation_level=None)) as database:
        for table in COLUMNS:
            database.execute(f"ALTER TABLE {table} RENAME TO new_{table}")
        database.executescript(FORMAT_1)
        for table, columns in COLUMNS.items():
            database.execute(f"INSERT INTO {table} SELECT {columns} FROM new_{table}")
            database.execute(f"DROP TABLE new_{table}")
        database.execute("DELETE FROM meta WHERE key IN ('lab', 'generation', 'format-by')")
        database.execute("PRAGMA user_version = 1")
    (folder / "head").unlink()


def as_format_2(folder: Path) -> None:
    """Make the closed lab in ``folder`` what the version before numbered vocabularies would have written."""
    with closing(sqlite3.connect(folder / "journal.db", isolation_level=None)) as database:
        database.execute("DELETE FROM meta WHERE key = 'format-by'")
        database.execute("PRAGMA user_version = 2")


def format_of(folder: Path) -> tuple[int, str | None]:
    """Return the number of a journal's format, and the version of memlab that gave it; nothing is written."""
    with closing(sqlite3.connect(f"file:{folder / 'journal.db'}?mode=ro", uri=True)) as database:
        (number,) = database.execute("PRAGMA user_version").fetchone()
        by = database.execute("SELECT value FROM meta WHERE key = 'format-by'").fetchone()
        return number, None if by is None else by[0]

"""Encryption of a lab's files: encrypting a lab, decrypting it, and changing its key."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from memlab.errors import InputError, LabBusy
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.clock import system_clock
from memlab.kernel.base.disk import sync, writing
from memlab.kernel.journal import (
    AUDIT_FILE,
    ENCRYPTED,
    LOCK,
    Journal,
    KeySource,
    Vault,
    WriterLock,
    checksum,
    copy_rows,
    decode_line,
    encode_line,
    encryption_of,
    install_database,
    open_connection,
    unlock,
    write_record,
)
from memlab.kernel.storage.backup_folders import list_backup_folders, list_backups
from memlab.kernel.storage.copies import list_copies
from memlab.kernel.storage.purging import DERIVED, PURGE_TIMEOUT, PURGING, end_purge
from memlab.subjects.io.checking import find_lab
from memlab.subjects.mending import make_repairer


@checked
def encrypt(path: str | Path, key: KeySource) -> list[Path]:
    """Encrypt the lab at ``path``, with all its files and backups.

    An encrypted copy of the database is written, and replaces the database in one step. Snapshots, indexes and the
    folder ``replaced`` are then removed, and the backups are replaced by one encrypted backup. If the process is
    killed, the next process that opens the lab completes these steps. Mirrors and exports are not encrypted.

    Parameters
    ----------
    path
        The folder of the lab. No process may use it meanwhile.
    key
        A passphrase, at least 32 random bytes, or a function that returns one of the two. If the key is lost, the lab
        can never be read again.

    Returns
    -------
    list of Path
        The paths of the lab's mirrors and exports, which are not encrypted.

    Raises
    ------
    NotALab
        If there is no lab at ``path``.
    InputError
        If the lab is already encrypted. Call ``rekey`` to change its key.
    MissingExtra
        If the extra ``secure`` is not installed.
    LabBusy
        If another process is writing or reading.

    Notes
    -----
    The database is encrypted by SQLCipher, and snapshots by AES-256-GCM, with a random data key. ``key`` encrypts the
    data key; scrypt derives a key from a passphrase. Blocks of the former plain files may remain on the disk until the
    file system overwrites them.

    Examples
    --------
    >>> memlab.encrypt("agent.memlab", key="a long passphrase")  # doctest: +SKIP
    []
    """
    folder = find_lab(path)
    if encryption_of(folder) is not None:
        raise InputError(f"{folder} is encrypted already. Call memlab.rekey to change its key.")
    vault = Vault.create()
    copies = _convert(folder, vault, vault.wrap(key))
    _convert_audit_log(folder, None, vault)
    return copies


@checked
def decrypt(path: str | Path, *, key: KeySource | None = None) -> None:
    """Decrypt the lab at ``path`` and its backups.

    Parameters
    ----------
    path
        The folder of the lab. No process may use it meanwhile.
    key
        The key, as for ``memlab.open``.

    Raises
    ------
    InputError
        If the lab is not encrypted.
    WrongKey
        If the key is missing or wrong.
    LabBusy
        If another process is writing or reading.

    Examples
    --------
    >>> memlab.decrypt("agent.memlab", key="a long passphrase")  # doctest: +SKIP
    """
    folder = find_lab(path)
    vault = _unlock(folder, key)
    # Before the key is removed: a log of both kinds of lines can be read as long as there is a key.
    _convert_audit_log(folder, vault, None)
    _convert(folder, None, None)
    del vault  # the variable keeps the vault alive until here, so that connections of the conversion need no key


@checked
def rekey(
    path: str | Path,
    new_key: KeySource,
    *,
    key: KeySource | None = None,
) -> None:
    """Change the key of the encrypted lab at ``path`` and of its backups.

    Only the file with the encrypted data key is replaced, in each backup and then in the lab. A copy of the former file
    and the former key can still decrypt the lab. After a theft, decrypt the lab and encrypt it again.

    Parameters
    ----------
    path
        The folder of the lab. Other processes may use it meanwhile.
    new_key
        The new key, in the form that ``encrypt`` takes.
    key
        The current key, in the form that ``memlab.open`` takes.

    Raises
    ------
    InputError
        If the lab is not encrypted.
    WrongKey
        If the key is missing or wrong.

    Examples
    --------
    >>> memlab.rekey("agent.memlab", "another passphrase", key="a long passphrase")  # doctest: +SKIP
    """
    folder = find_lab(path)
    vault = _unlock(folder, key)
    record = vault.wrap(new_key)
    with WriterLock(folder / DERIVED).hold(PURGE_TIMEOUT):
        with Journal.open(folder, create=False, read_only=True) as journal:
            backups = [
                backup.path
                for parent in list_backup_folders(journal)
                for backup in list_backups(parent)
            ]
        with WriterLock(folder / LOCK).hold(PURGE_TIMEOUT), writing(f"The key of {folder}"):
            # The lab is written last. If the process is killed before, the lab still has the former key, so the call
            # can be repeated.
            for path in (*backups, folder):
                # A backup that is plain, or encrypted by another data key, stays as it is.
                if (encryption_of(path) or "").split()[:1] == [vault.id]:
                    write_record(path, record)


def _unlock(folder: Path, key: KeySource | None) -> Vault:
    """Return the vault of an encrypted lab, or raise InputError for an unencrypted lab."""
    vault = unlock(folder, key)
    if vault is None:
        raise InputError(f"{folder} is not encrypted. Call memlab.encrypt to encrypt it.")
    return vault


def _convert_audit_log(folder: Path, old: Vault | None, new: Vault | None) -> None:
    """Rewrite the audit log of a served lab, decrypted with ``old`` and encrypted with ``new``; None is for plain text."""
    for path in folder.glob(f"{AUDIT_FILE}*"):
        lines = [decode_line(line, AUDIT_FILE, old) for line in path.read_bytes().splitlines()]
        draft = path.with_name(f"draft-{path.name}")
        draft.touch(mode=0o600)
        draft.write_bytes(b"".join(encode_line(line, AUDIT_FILE, new) + b"\n" for line in lines))
        draft.replace(path)


def _convert(folder: Path, vault: Vault | None, record: str | None) -> list[Path]:
    """Encrypt a lab and its derived files with ``vault``, or decrypt them for None; return its mirrors and exports."""
    with WriterLock(folder / DERIVED).hold(PURGE_TIMEOUT):
        Journal.open(
            folder, create=False, mend=make_repairer()
        ).close()  # opening migrates an earlier format
        with WriterLock(folder / LOCK).hold(PURGE_TIMEOUT), writing(f"The lab {folder}"):

            def fill(target: sqlite3.Connection) -> None:
                with open_connection(folder, write=True) as source:
                    # SQLite would apply a write-ahead log of the former database to the new one.
                    (busy, _, _) = source.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                    if busy:
                        raise LabBusy(
                            f"{folder} is being read. Close it everywhere, and try again."
                        )
                    copy_rows(source, target)
                # Marking a purge as incomplete makes end_purge replace all derived files and backups.
                row = (PURGING, "1", checksum(PURGING, "1"))
                target.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", row)

            install_database(folder, vault, record, fill)
            if vault is None:
                for left in folder.glob(f"{ENCRYPTED}*"):
                    left.unlink()
            sync(folder)
        with Journal.open(folder, create=False) as journal:
            end_purge(journal, now=system_clock())
            return [copy.path for copy in list_copies(journal)]

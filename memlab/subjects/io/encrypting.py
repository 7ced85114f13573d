"""Encryption of a whole lab at rest: encrypt, decrypt, and change the key."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from memlab.errors import InputError, LabBusy
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.clock import system_clock
from memlab.kernel.base.disk import sync, writing
from memlab.kernel.journal import (
    ENCRYPTED,
    LOCK,
    Journal,
    KeySource,
    Vault,
    WriterLock,
    checksum,
    copy_rows,
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

__all__ = ["decrypt", "encrypt", "rekey"]


@checked
def encrypt(path: str | Path, key: KeySource) -> list[Path]:
    """Encrypt the lab at ``path`` with all its files and backups.

    The lab is written again, encrypted, and replaced in one step. Snapshots, indexes and the folder
    ``replaced`` are then removed, and the backups are replaced by one encrypted backup. If the process
    is killed, the next opening completes this. Mirrors and exports stay plain.

    Parameters
    ----------
    path
        The folder of the lab. No process may use it meanwhile.
    key
        A passphrase, at least 32 random bytes, or a function that returns either. Without the key
        the lab cannot be read by anybody.

    Returns
    -------
    list of Path
        Mirrors and exports of the lab, which stay plain.

    Raises
    ------
    NotALab
        If there is no lab at ``path``.
    InputError
        If the lab is encrypted already: ``rekey`` changes its key.
    MissingExtra
        If the extra ``secure`` is not installed.
    LabBusy
        If another process is writing or reading.

    Notes
    -----
    A random data key encrypts the database with SQLCipher, and snapshots with AES-256-GCM. ``key``
    encrypts the data key, a passphrase by way of scrypt. Blocks of the former plain files may remain on
    the disk until the file system uses them again.

    Examples
    --------
    >>> memlab.encrypt("agent.memlab", key="a long passphrase")  # doctest: +SKIP
    []
    """
    folder = find_lab(path)
    if encryption_of(folder) is not None:
        raise InputError(f"{folder} is encrypted already. memlab.rekey changes its key.")
    vault = Vault.create()
    return _convert(folder, vault, vault.wrap(key))


@checked
def decrypt(path: str | Path, *, key: KeySource | None = None) -> None:
    """Write the lab at ``path`` and its backups without encryption.

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
    _convert(folder, None, None)
    del vault  # held until here, so that the connections of the conversion need no key


@checked
def rekey(
    path: str | Path,
    new_key: KeySource,
    *,
    key: KeySource | None = None,
) -> None:
    """Change the key of the encrypted lab at ``path`` and of its backups.

    Only the file that holds the encrypted data key is replaced, in each backup and then in the lab. A
    copy of that file and the former key still decrypt the lab: after a theft, decrypt the lab and encrypt
    it again.

    Parameters
    ----------
    path
        The folder of the lab. Other processes may use it meanwhile.
    new_key
        The key from now on.
    key
        The key until now, as for ``memlab.open``.

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
            # The lab comes last: if the process is killed before, its key is still the former one, and a repetition works.
            for path in (*backups, folder):
                write_record(path, record)


def _unlock(folder: Path, key: KeySource | None) -> Vault:
    """Return the vault of an encrypted lab."""
    vault = unlock(folder, key)
    if vault is None:
        raise InputError(f"{folder} is not encrypted. memlab.encrypt encrypts it.")
    return vault


def _convert(folder: Path, vault: Vault | None, record: str | None) -> list[Path]:
    """Write a lab again, encrypted or plain, and then its derived files and backups; return its plain copies."""
    with WriterLock(folder / DERIVED).hold(PURGE_TIMEOUT):
        Journal.open(
            folder, create=False, mend=make_repairer()
        ).close()  # an earlier format is migrated
        with WriterLock(folder / LOCK).hold(PURGE_TIMEOUT), writing(f"The lab {folder}"):

            def fill(target: sqlite3.Connection) -> None:
                with open_connection(folder, write=True) as source:
                    # SQLite would apply a log of the former database to the new one.
                    (busy, _, _) = source.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                    if busy:
                        raise LabBusy(
                            f"{folder} is being read. Close it everywhere, and try again."
                        )
                    copy_rows(source, target)
                # What a purge has left to do is what remains here: derived files and backups in the former form.
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

"""Encryption of a lab at rest: keys, encrypted files, and connections to an encrypted database.

A random data key encrypts everything: SQLCipher encrypts the database ``journal.enc``, AES-256-GCM the other files. The
user's key encrypts only the data key, so a change of the user's key replaces one small file. That file is
``journal.db``: a plain database of a later format than earlier versions of memlab read, so that they refuse the lab
instead of reporting damage. Backups have a copy of it.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import secrets
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote
from weakref import WeakValueDictionary

from memlab.errors import DamagedLab, WrongKey, require_extra
from memlab.kernel.journal._events import checksum

__all__ = [
    "AUDIT_FILE",
    "ENCRYPTED",
    "ENCRYPTED_FORMAT",
    "FILE",
    "RECORD",
    "KeySource",
    "Vault",
    "data_file",
    "decode_line",
    "default_key",
    "encode_line",
    "encryption_of",
    "open_database",
    "sql_errors",
    "unlock",
]

FILE, ENCRYPTED = "journal.db", "journal.enc"
"""The database of a plain lab, and of an encrypted one, whose ``journal.db`` holds the encrypted data key."""

ENCRYPTED_FORMAT = 100
"""The ``user_version`` of the file with the data key, far above the formats of plain journals, which count from 1."""

KeySource: TypeAlias = str | bytes | Callable[[], str | bytes]
"""A passphrase, a random key, or a function that returns either, such as a client of a key management service."""

RECORD = "vault"
"""The value of ``meta`` that holds the encrypted data key."""

_VARIABLE, _SERVICE = "MEMLAB_KEY", "memlab"
"""The environment variable and the service in the key ring that may hold the user's key."""

_COST = 1 << 16
"""The cost of scrypt for new keys: 64 MB and 0.15 s for each guess of a passphrase, and for each opening."""

_RANDOM = 32
"""The bytes of a data key, of AES-256. ``bytes`` of this length or more are taken for a random key, without scrypt."""

_NONCE = 12
"""The bytes of a nonce of AES-GCM, as its standard recommends."""


class Vault:
    """The data key of an encrypted lab and of its backups.

    >>> vault = Vault("id", bytes(32))
    >>> vault.decrypt("name", vault.encrypt("name", b"content"))        # doctest: +SKIP
    b'content'
    """

    def __init__(self, id: str, data_key: bytes) -> None:
        self.id, self._key = id, data_key

    @classmethod
    def create(cls) -> Vault:
        """Return a vault with a random data key."""
        return _share(cls(secrets.token_hex(8), secrets.token_bytes(_RANDOM)))

    def wrap(self, key: KeySource) -> str:
        """Return the record of the data key, encrypted by the user's key."""
        salt = os.urandom(16)
        # The key that encrypts is new with each salt, so the nonce may be constant.
        wrapped = _cipher(_derive(key, salt, _COST)).encrypt(
            bytes(_NONCE), self._key, self.id.encode()
        )
        return f"{self.id} {_COST} {salt.hex()} {wrapped.hex()}"

    def encrypt(self, name: str, content: bytes) -> bytes:
        """Encrypt a file's content. Only ``decrypt`` with the same ``name`` accepts it."""
        nonce = os.urandom(_NONCE)
        return bytes(nonce + self._files.encrypt(nonce, content, name.encode()))

    def decrypt(self, name: str, data: bytes) -> bytes:
        """Return the content of an encrypted file.

        Raises DamagedLab if the data was changed or is that of another file.
        """
        content = _decrypt(self._files, data[:_NONCE], data[_NONCE:], name)
        if content is None:
            raise DamagedLab(
                f"{name} was changed since it was encrypted, so it cannot be read. Restore it from a backup."
            )
        return content

    @property
    def _files(self) -> Any:
        """The cipher for the lab's files outside the database."""
        return _cipher(self._subkey(b"memlab files"))

    @property
    def pragma(self) -> str:
        """SQL statements that set a connection's key and turn off SQLCipher's own log."""
        key = self._subkey(b"memlab journal").hex()
        return f"PRAGMA key=\"x'{key}'\"; PRAGMA cipher_log_level=NONE;"

    def _subkey(self, purpose: bytes) -> bytes:
        """Derive the key for one purpose from the data key."""
        return hashlib.blake2b(key=self._key, digest_size=_RANDOM, person=purpose).digest()


AUDIT_FILE = "audit.jsonl"
"""Name of the file of calls of a served lab, which ``memlab.io.serving`` writes."""


def encode_line(line: bytes, name: str, vault: Vault | None) -> bytes:
    """Return a line of JSON for a file of lines, encrypted if the lab has a vault."""
    return line if vault is None else base64.b64encode(vault.encrypt(name, line))


def decode_line(line: bytes, name: str, vault: Vault | None) -> bytes:
    """Return the bytes of JSON of a plain line, or of an encrypted line if the lab has a vault."""
    if vault is None or line.startswith(b"{"):
        return line
    return vault.decrypt(name, base64.b64decode(line, validate=True))


# The vaults in use, by their ids: so opening a backup or a second connection needs no key again. An entry ends with
# the last object that holds the vault, normally when the lab is closed and dropped.
_vaults: WeakValueDictionary[str, Vault] = WeakValueDictionary()


def _share(vault: Vault) -> Vault:
    """Return the vault in use with the same id, registering this vault if there is none."""
    return _vaults.setdefault(vault.id, vault)


def _cipher(key: bytes) -> Any:
    """Return AES-256-GCM with a key."""
    with require_extra("secure", "An encrypted lab"):
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    return AESGCM(key)


def _decrypt(cipher: Any, nonce: bytes, data: bytes, about: str) -> bytes | None:
    """Return the decrypted data, or None if the key, the data or the authenticated name ``about`` differs."""
    from cryptography.exceptions import InvalidTag

    try:
        return bytes(cipher.decrypt(nonce, data, about.encode()))
    except (InvalidTag, ValueError):
        return None


def _derive(key: KeySource, salt: bytes, cost: int) -> bytes:
    """Derive the key that encrypts the data key, by a hash from 32 or more bytes, otherwise by scrypt."""
    value = key() if callable(key) else key
    if not isinstance(value, str | bytes) or not value:
        raise WrongKey("The key is empty: give a passphrase, or 32 random bytes.")
    if isinstance(value, bytes) and len(value) >= _RANDOM:
        return hashlib.blake2b(
            value, salt=salt, digest_size=_RANDOM, person=b"memlab user"
        ).digest()
    secret = value.encode() if isinstance(value, str) else value
    return hashlib.scrypt(secret, salt=salt, n=cost, r=8, p=1, maxmem=cost << 11, dklen=_RANDOM)


def encryption_of(folder: Path) -> str | None:
    """Return the record of a lab's encrypted data key, or None for a plain lab."""
    # A file without the record was left by an interrupted change between plain and encrypted.
    if not (folder / ENCRYPTED).exists() or not (folder / FILE).exists():
        return None
    try:
        with contextlib.closing(_open_plain(folder / FILE, "mode=ro", 30.0)) as connection:
            if connection.execute("PRAGMA user_version").fetchone() != (ENCRYPTED_FORMAT,):
                return None
            record, sum = connection.execute(
                "SELECT value, sum FROM meta WHERE key = ?", (RECORD,)
            ).fetchone()
            if sum != checksum(RECORD, record):
                raise ValueError("the checksum of the file does not match")
            return str(record)
    except (sqlite3.Error, TypeError, ValueError) as error:
        raise DamagedLab(
            f"{folder / FILE} holds the encrypted data key of this lab and is damaged ({error}). Restore a backup with "
            f"`memlab upkeep restore LAB`, or copy {FILE} from a backup."
        ) from None


def unlock(folder: Path, key: KeySource | None = None) -> Vault | None:
    """Return the vault of a lab, or None for a plain lab.

    Without ``key``, the key is that of a lab in use, of the environment variable ``MEMLAB_KEY``, or of the key ring.
    Raises WrongKey if there is none or if it does not decrypt the data key.
    """
    stored = encryption_of(folder)
    if stored is None:
        return None
    id, cost, salt, wrapped = stored.split()
    if key is None:
        shared = _vaults.get(id)
        if shared is not None:
            return shared
        key = default_key() or _from_key_ring(id)
    if key is None:
        raise WrongKey(
            f"{folder} is encrypted and needs its key: memlab.open(path, key=...), `memlab --key-file FILE`, the "
            f"environment variable {_VARIABLE}, or the key ring (`keyring set {_SERVICE} {id}`)."
        )
    cipher = _cipher(_derive(key, bytes.fromhex(salt), int(cost)))
    data_key = _decrypt(cipher, bytes(_NONCE), bytes.fromhex(wrapped), id)
    if data_key is None:
        raise WrongKey(
            f"The key does not open {folder}. Nothing was read or changed; give the key that encrypted it."
        )
    return _share(Vault(id, data_key))


def default_key() -> str | None:
    """Return the key for new labs from the environment variable, or None if it is not set."""
    return os.environ.get(_VARIABLE) or None


def _from_key_ring(id: str) -> str | None:
    """Return a lab's key from the system's key ring, or None without the key, a key ring or the package keyring."""
    try:
        import keyring
    except ImportError:
        return None
    try:
        password: str | None = keyring.get_password(_SERVICE, id)
    except keyring.errors.KeyringError:
        return None  # no key ring is running; the caller says how else to give the key
    return password


def data_file(folder: Path) -> Path:
    """Return the path of a lab's database file."""
    return folder / (FILE if encryption_of(folder) is None else ENCRYPTED)


def open_database(
    path: Path, option: str, timeout: float, vault: Vault | None
) -> sqlite3.Connection:
    """Open a database by URI, encrypted if ``vault`` is given, with the API of ``sqlite3``."""
    if vault is None:
        return _open_plain(path, option, timeout)
    with require_extra("secure", "An encrypted lab"):
        from sqlcipher3 import dbapi2
    connection: sqlite3.Connection = dbapi2.connect(
        _uri(path, option), uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
    )
    connection.executescript(vault.pragma)
    return connection


def _open_plain(path: Path, option: str, timeout: float) -> sqlite3.Connection:
    """Open an unencrypted database."""
    return sqlite3.connect(
        _uri(path, option), uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
    )


def _uri(path: Path, option: str) -> str:
    """Return the SQLite URI of a database, with ``option`` as its query string."""
    return f"file:{quote(str(path))}?{option}"


def sql_errors() -> tuple[type[Exception], ...]:
    """Return the exception classes of SQLite and, if loaded, of SQLCipher."""
    cipher = sys.modules.get("sqlcipher3.dbapi2")
    return (sqlite3.Error,) if cipher is None else (sqlite3.Error, cipher.Error)

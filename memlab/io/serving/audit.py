"""The audit log of served labs: client, call, ids of memories and outcome of each call."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from logging import LogRecord
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from memlab.errors import DamagedLab, DatasetError
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.clock import INSTANT
from memlab.kernel.base.printable import printable
from memlab.kernel.base.threads import ThreadLock
from memlab.kernel.journal import AUDIT_FILE, decode_line, encode_line, unlock

__all__ = ["AUDIT_FILE", "AuditLog", "list_ids", "read_audit_log"]

# Six files of 5 MB hold about 200,000 calls, and bound what a client can write to the disk.
_FILE_BYTES = 5_000_000
_OLD_FILES = 5
# Refused logins are counted and logged once per second. Otherwise a client that guesses tokens would rotate all
# other calls out of the log.
_REFUSAL_SECONDS = 1.0
# Columns of the frame that ``read_audit_log`` returns.
_SCHEMA: dict[str, Any] = {
    "at": INSTANT,
    "client": pl.String,
    "call": pl.String,
    "ids": pl.List(pl.Int64),
    "outcome": pl.String,
    "count": pl.Int64,
}


def _open_private(path: str, flags: int) -> int:
    """Open a file, which only its owner can read if it is created; refuse a link, because others may own the lab."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


class _PrivateFile(RotatingFileHandler):
    """A rotating file that only its owner can read."""

    def _open(self) -> Any:
        """Open the log file; create a missing file with the mode 0600."""
        return open(self.baseFilename, self.mode, encoding="utf-8", opener=_open_private)

    def handleError(self, record: LogRecord) -> None:  # noqa: N802 - the name is that of the standard library
        """Raise the error of a failed write, so that a call that cannot be logged also fails."""
        raise


class AuditLog:
    """A log of calls: a file with one JSON object per line, rotated when it is full.

    The log contains no texts and no queries. In the folder of an encrypted lab each line is encrypted.
    """

    def __init__(self, folder: Path) -> None:
        self._vault = unlock(folder)
        self._file = _PrivateFile(
            folder / AUDIT_FILE, maxBytes=_FILE_BYTES, backupCount=_OLD_FILES, delay=True
        )
        self._lock = ThreadLock()
        self._refused, self._logged = 0, 0.0

    def record(
        self,
        client: str,
        call: str,
        ids: Sequence[int] = (),
        outcome: str = "ok",
        *,
        count: int = 1,
    ) -> None:
        """Append a call to the log; raise OSError if the file cannot be written."""
        line = {
            "at": datetime.now(UTC).isoformat(),
            "client": printable(client),
            "call": printable(call),
            "ids": list(ids),
            "outcome": outcome,
            "count": count,
        }
        data = msgspec.json.encode(line)
        data = encode_line(data, AUDIT_FILE, self._vault)
        self._file.handle(LogRecord("memlab", 20, "", 0, data.decode(), None, None))

    def refuse_login(self) -> None:
        """Count a request without a valid token; log the count once per second."""
        with self._lock:
            self._refused += 1
            count, now = self._refused, time.monotonic()
            if now - self._logged < _REFUSAL_SECONDS:
                return
            self._refused, self._logged = 0, now
        self.record("", "login", outcome="refused", count=count)

    def close(self) -> None:
        """Log the count of refused logins that is still pending, and close the file."""
        if self._refused:
            self.record("", "login", outcome="refused", count=self._refused)
        self._file.close()


def list_ids(answer: object) -> list[int]:
    """Return the memory ids in a tool's answer, without repetitions, in order.

    >>> list_ids({"recall": 7, "memories": [{"id": 3, "tags": []}], "forgotten": [4, 3]})
    [3, 4]
    """
    return list(dict.fromkeys(_find_ids(answer)))


# Fields of the answers of tools that contain ids of memories.
_ID_FIELDS = frozenset({"id", "memory", "forgotten", "superseded"})


def _find_ids(value: object, field: str = "") -> Iterator[int]:
    """Yield the integers in those fields of an answer that contain memory ids."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _find_ids(item, name)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _find_ids(item, field)
    elif isinstance(value, int) and field in _ID_FIELDS:
        yield value


@checked
def read_audit_log(folder: str | Path) -> pl.DataFrame:
    """Read the audit log of a served lab, oldest call first.

    Parameters
    ----------
    folder
        The folder of the lab, or of several labs that are served together.

    Returns
    -------
    DataFrame
        One row per call: ``at``, ``client``, ``call``, ``ids`` of the memories that were returned or
        changed, ``outcome`` ("ok", "refused" or the class of an error), and ``count``, the number of
        refused logins.

    Raises
    ------
    DatasetError
        If a line is damaged.
    WrongKey
        If the lab is encrypted, and neither the environment nor the key ring has its key.

    Examples
    --------
    >>> import tempfile
    >>> read_audit_log(tempfile.mkdtemp()).height
    0
    """
    vault, current = unlock(Path(folder)), Path(folder) / AUDIT_FILE
    names = [f"{AUDIT_FILE}.{number}" for number in range(_OLD_FILES, 0, -1)]
    rows: list[dict[str, Any]] = []
    for path in (*(current.with_name(name) for name in names), current):
        if not path.is_file():
            continue
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            try:
                line = decode_line(line, AUDIT_FILE, vault)
                row = msgspec.json.decode(line, type=dict[str, Any])
                rows.append({**row, "at": datetime.fromisoformat(row["at"])})
            except (DamagedLab, msgspec.MsgspecError, KeyError, TypeError, ValueError) as error:
                raise DatasetError(
                    f"{path}, line {number}: The audit log is damaged: {error}."
                ) from None
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")

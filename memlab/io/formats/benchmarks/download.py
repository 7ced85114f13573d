"""The original LoCoMo file, fetched only when someone asks."""

from __future__ import annotations

import hashlib
import os
import tempfile
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path

from memlab.errors import DatasetError
from memlab.kernel.base.arguments import checked

__all__ = ["LOCOMO_SHA256", "LOCOMO_URL", "download_locomo"]

LOCOMO_URL = "https://raw.githubusercontent.com/snap-research/locomo/main/data/locomo10.json"
LOCOMO_SHA256 = "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4"
_LARGEST = 64 * 2**20


@checked
def download_locomo(
    target: str | Path, *, url: str = LOCOMO_URL, sha256: str = LOCOMO_SHA256, timeout: float = 60
) -> Path:
    """The path of the file, fetched to ``target`` unless it is there already; its sha256 is checked either way.

    The data is licensed CC BY-NC 4.0 by its authors (Maharana et al. 2024, arXiv 2402.17753). Nothing is left at
    ``target`` when the download fails or its hash differs. Raises ``DatasetError``.
    """
    target = Path(target).expanduser()
    if target.exists():
        try:
            found = hashlib.sha256(target.read_bytes()).hexdigest()
        except OSError as error:
            raise DatasetError(f"{target} cannot be read: {error.strerror}.") from error
        if found == sha256:
            return target
        raise DatasetError(f"{target} exists and is another file (sha256 {found}). Move it, or name another target.")
    try:
        with urllib.request.urlopen(url, timeout=timeout) as response:
            body = response.read(_LARGEST + 1)
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise DatasetError(f"{url} could not be fetched: {reason}. Fetch it by hand and pass its path.") from error
    found = hashlib.sha256(body).hexdigest()
    if found != sha256:
        raise DatasetError(f"{url} sent a file with sha256 {found}; {sha256} was expected. Nothing was kept.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, body)
    except OSError as error:
        raise DatasetError(f"{target} cannot be written: {error.strerror}. Name another target.") from error
    return target


def _replace(target: Path, body: bytes) -> None:
    """Write the whole file or nothing."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)

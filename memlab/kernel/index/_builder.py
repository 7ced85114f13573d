"""The process that builds an index: ``python -m memlab.kernel.index._builder FOLDER KIND ROWS DIGEST SPOOL``.

It inherits the folder's lock as an open descriptor, so the lock lasts exactly as long as the process, however it
ends. It trusts nothing it is given: the vectors must have the digest that was asked for.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from memlab.errors import DamagedLab
from memlab.kernel.extension import load_installed
from memlab.kernel.index._base import KINDS, build_base, found_bases, remove
from memlab.kernel.index._kinds import Kind
from memlab.kernel.index._vectors import Vectors

__all__ = ["main"]


def main(folder: str, kind: str, rows: str, digest: str, spool: str) -> None:
    """Build, publish, and remove the bases that this one replaces."""
    started = time.monotonic()
    load_installed()
    vectors = Vectors.load(spool).prefix(int(rows))
    Path(spool).unlink()  # it stays mapped
    if vectors.digest(len(vectors), rehash=True) != digest:
        raise DamagedLab("The vectors changed on their way to the builder, or the file that holds them is damaged.")
    path = build_base(vectors, Path(folder), KINDS[kind], seconds=lambda: time.monotonic() - started)
    _sweep(path, KINDS[kind], len(vectors))


def _sweep(kept: Path, kind: Kind, rows: int) -> None:
    """Bases of this kind over at most as many rows go, and files without a header; the others are not ours to judge."""
    known = {path for path, header in found_bases(kept.parent, kind.name) if header.rows > rows}
    for path in kept.parent.glob(f"{kind.name}-*.index"):
        if path != kept and path not in known:
            remove(path)


if __name__ == "__main__":
    os.nice(10)
    main(*sys.argv[1:])

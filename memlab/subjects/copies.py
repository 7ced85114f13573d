"""Copies of a lab that the workers of an executor open."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from memlab.errors import InputError
from memlab.kernel.embedding import load_embedder
from memlab.kernel.journal import Journal, copy_journal


@contextmanager
def copy_for_workers(lab: Any) -> Iterator[Callable[[], Any]]:
    """Copy a lab to a temporary folder, and yield a function that opens the copy.

    The function can be pickled, and all workers see the lab as it was at one moment. Raises
    InputError for an encrypted lab and for a lab of the past.
    """
    journal, embedder = lab.io.store.journal, lab.io.embedder
    if not isinstance(journal, Journal) or journal.vault is not None:
        raise InputError(
            "Workers read a copy of the lab, and an encrypted lab or a lab of the past is not copied. Omit executor=."
        )
    # The shipped embedder holds its model, so workers load their own.
    sent = None if embedder is load_embedder() else embedder
    with tempfile.TemporaryDirectory(prefix="memlab-copy-") as folder:
        copy_journal(journal, copy := Path(folder).resolve() / "lab")
        open_lab: Callable[..., Any] = type(lab)
        yield partial(open_lab, copy, read_only=True, embedder=sent, seed=lab.io.seed)

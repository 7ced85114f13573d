"""Moving memories out of a lab and into it, and operations written down as text."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.lab_base import LabBase

if TYPE_CHECKING:
    from memlab.moving import Bundle, Loaded, Mirror

__all__ = ["LabMoving"]


class LabMoving(LabBase):
    """``export``, ``load``, ``mirror``, ``run``, ``proposals``."""

    def export(
        self,
        path: str | Path,
        *,
        format: str | None = None,
        where: pl.Expr | None = None,
        project: str | None = None,
        policies: bool = True,
        overwrite: bool = False,
    ) -> Path:
        """Write the lab to a file that ``load`` reads back exactly, and return its path.

        ``format`` is "jsonl", "parquet" (one file, or without a suffix a folder of tables), "markdown" or "sexp"; the
        suffix of ``path`` says it too. Memories of every status are written, with their columns, uses and edges, unless
        ``where`` (an expression over ``lab.memories``) or ``project`` leaves some out; of a whole lab its other tables
        come along. ``policies`` adds the texts of the live pack and of every version before it.

        Raises InputError for a path that is taken (unless ``overwrite``) or whose format nobody can tell.

        >>> lab.export("agent.jsonl")                                                      # doctest: +SKIP
        """
        from memlab.moving import bundle_of, events_of, lab_id, policies_of, write_bundle

        target = Path(path).expanduser()
        with self._reading() as state:
            journal = self._store.journal
            tables = format == "parquet" or (format is None and target.suffix == ".parquet")
            bundle = bundle_of(
                state,
                lab=lab_id(journal),
                now=self._store.clock(),
                where=where,
                project=project,
                policies=policies_of(self._store.versions) if policies else None,
                events=events_of(journal) if tables and where is None and project is None else None,
            )
        return write_bundle(bundle, target, format, overwrite=overwrite)

    def load(
        self, path: str | Path, *, format: str | None = None, project: str | None = None, policies: bool = False
    ) -> Loaded:
        """Add the memories of a file, of another lab's folder, or of what another tool exported.

        ``format`` is one of ``export``'s, "lab", "mem0" or "langgraph"; mostly the path says it. Every memory keeps its
        times, counts and status, and where it comes from in the column ``origin``, so a second import of the same adds
        nothing. Ids are those of the file where this lab is empty and the file holds a whole lab. ``project`` is given
        to all of them; ``policies=True`` also uses the pack of the file. Texts pass the privacy gate, and nothing in the
        file is run.

        It is one transaction: a DatasetError names line, column or field, and nothing was added. InputError where there
        is no file; PrivacyError for a secret that stands in a name; NotALab, NewerLab, DamagedLab.

        >>> lab.load("agent.jsonl")                                                        # doctest: +SKIP
        """
        from memlab.moving import IMPORTS, format_of, lab_id, load_bundle, pack_of, read_bundle, read_lab

        source = Path(path).expanduser()
        if format is not None and format not in IMPORTS:
            raise UnknownName("format of an import", format, IMPORTS)
        chosen = format_of(source) if format is None else format
        bundle = read_lab(source, now=self._store.clock()) if chosen == "lab" else read_bundle(source, chosen)
        pack = pack_of(bundle.policies, bundle.source) if policies and bundle.policies is not None else None
        loaded = load_bundle(self._store, bundle, own=lambda: lab_id(self._store.journal), project=project)
        if pack is not None:
            self.policies.use(pack, reason=f"came with {bundle.source}")
        return loaded

    def mirror(self, folder: str | Path, *, every: float | None = None) -> Mirror:
        """Keep a readable copy in ``folder``: one Markdown file a memory and ``index.json``.

        ``update()`` of what is returned brings it up to date; with ``every``, a thread does, so many seconds apart, until
        ``stop`` or the lab is closed. Only what has changed is written, and the files of deleted and purged memories go.
        Raises InputError for a folder that holds other things, is a link or mirrors another lab.

        >>> mirror = lab.mirror("memories", every=5)                                       # doctest: +SKIP
        """
        from memlab.moving import Mirror, bundle_of, lab_id

        if every is not None and (isinstance(every, bool) or not isinstance(every, int | float) or not every > 0):
            raise InputError(f"every is a number of seconds above 0, not {every!r}.")
        store, kept = self._store, weakref.ref(self)

        def head() -> int | None:
            return None if store.journal.closed or kept() is None else store.journal.head

        def bundle() -> Bundle:
            with store.mutex:
                store.fold()
                return bundle_of(store.state, lab=lab, now=store.clock())

        lab = lab_id(store.journal)
        return Mirror(Path(folder).expanduser(), bundle, head, store.clock, lab=lab, every=every)

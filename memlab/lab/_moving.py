"""Moving memories out of a lab and into it, and operations written down as text."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import polars as pl

from memlab.arguments import Within, checked
from memlab.clock import Clock, system_clock
from memlab.copies import copies, forget_copy, note_copy, written
from memlab.embedding import EmbedderSpec
from memlab.errors import InputError, LabError, MemlabError, PolicyError, UnknownName
from memlab.lab._base import LabBase, MemoryLike
from memlab.operations import Fuel, Proposal
from memlab.purging import PURGE_TIMEOUT
from memlab.seen import SeenStore

if TYPE_CHECKING:
    from memlab.lab._lab import Lab
    from memlab.moving import Loaded, Mirror
    from memlab.operations import Program, Ran

__all__ = ["LabMoving", "load_lab"]


@checked
def load_lab(
    path: str | Path,
    *,
    format: str | None = None,
    embedder: EmbedderSpec = None,
    clock: Clock = system_clock,
    policies: bool = True,
) -> Lab:
    """A lab in memory with what is at ``path``: an export, another lab's folder, a file of another tool.

    See ``lab.load`` for formats and errors. ``policies=False`` leaves the file's pack aside.

    >>> lab = memlab.load("agent.jsonl")                                                   # doctest: +SKIP
    """
    from memlab.lab._lab import Lab

    lab = Lab(embedder=embedder, clock=clock)
    lab.load(path, format=format, policies=policies)
    return lab


class LabMoving(LabBase):
    """``export``, ``load``, ``mirror``, ``run``, ``proposals``."""

    @checked
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

        The journal keeps ``path``, so that the receipt of a ``purge`` tells whether the export holds what was purged;
        a lab that was opened with read_only=True cannot.

        Raises InputError for a path that is taken (unless ``overwrite``) or whose format nobody can tell.

        >>> lab.export("agent.jsonl")                                                      # doctest: +SKIP
        """
        from memlab.moving import Bundle, bundle_of, events_of, lab_id, policies_of, write_bundle

        target = Path(path).expanduser()
        journal = self._store.journal

        def bundle() -> Bundle:
            tables = format == "parquet" or (format is None and target.suffix == ".parquet")
            tables = tables and not isinstance(self._store, SeenStore)  # the events are those of the whole lab
            with self._reading() as state:
                return bundle_of(
                    state,
                    lab=lab_id(journal),
                    now=self._store.clock(),
                    where=where,
                    project=project,
                    policies=policies_of(self._store.versions) if policies else None,
                    events=events_of(journal) if tables and where is None and project is None else None,
                )

        def write(made: Bundle) -> Path:
            known = any(one.path == target.absolute() for one in copies(journal))
            note_copy(journal, "export", target, begun=True)  # first, as a process may be killed
            try:
                return write_bundle(made, target, format, overwrite=overwrite)
            except MemlabError:
                if not known:
                    forget_copy(journal, target)
                raise

        return written(self._store, bundle, write)

    @checked
    def load(
        self, path: str | Path, *, format: str | None = None, project: str | None = None, policies: bool = False
    ) -> Loaded:
        """Add the memories of a file, of another lab's folder, or of what another tool exported.

        ``format`` is one of ``export``'s, "lab", "mem0" or "langgraph"; mostly the path says it. Every memory keeps its
        times, counts and status, and where it comes from in the column ``origin``, so a second import of the same adds
        nothing. Ids are those of the file where this lab is empty and the file holds a whole lab. ``project`` is given
        to all of them; ``policies=True`` also uses the pack of the file. Texts pass the privacy gate, and nothing in
        the file is run.

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
            cast("Lab", self).policies.use(pack, reason=f"came with {bundle.source}")
        return loaded

    @checked
    def mirror(
        self, folder: str | Path, *, every: Annotated[float, Within(0, 9_000_000_000, above=True)] | None = None
    ) -> Mirror:
        """Keep a readable copy in ``folder``: one Markdown file a memory and ``index.json``.

        ``update()`` of what is returned brings it up to date; with ``every``, a thread does, so many seconds apart,
        until ``stop`` or the lab is closed. Only what has changed is written, and the files of deleted and purged
        memories go. The journal keeps ``folder``, and ``purge`` brings it in step whether the mirror runs or not; a lab
        that was opened with read_only=True cannot. Raises InputError for a folder that holds other things, is a link or
        mirrors another lab.

        >>> mirror = lab.mirror("memories", every=5)                                       # doctest: +SKIP
        """
        from memlab.moving import Mirror

        kept = weakref.ref(self)
        return Mirror(Path(folder).expanduser(), self._store, alive=lambda: kept() is not None, every=every)

    def _reach_mirrors(self) -> None:
        """Bring in step the mirrors that the last purge did not reach: it was killed, or a disk was not there."""
        from memlab.moving import reach_mirrors

        store = self._store
        try:
            with store.derived.held(PURGE_TIMEOUT):
                told = reach_mirrors(store)
        except LabError as error:
            told = {store.folder or Path(): str(error)}
        for path, problem in told.items():
            if path.exists() and problem:
                warnings.warn(f"The mirror in {path} may hold what was purged: {problem}", stacklevel=4)

    @checked
    def run(
        self, operations: str | Path | MemoryLike | Proposal, *, consent: bool = False, fuel: Fuel | None = None
    ) -> Ran:
        """Run operations such as ``(remember "tabs" "preference" 0.8 "30d")``: a text, a file, or what a memory holds.

        All of them are checked before the first is run: names, arity, types, limits and ids. A memory's operations run
        only with ``consent=True``; a proposal runs as it was shown, whatever the memory holds by now. Those of memories
        that are recalled meanwhile do not run. ``fuel`` bounds how many operations there
        may be and how many memories they touch. The run is an event, and so is whatever it does.

        Raises a PolicyError with line and caret; InputError without consent.

        >>> lab.run('(recall "how should I indent?" 3) (stats)')                           # doctest: +SKIP
        """
        from memlab.operations import read_program

        if isinstance(operations, str):
            return self._run(read_program(operations), fuel)
        if isinstance(operations, Path):
            try:
                source = operations.expanduser().read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"Cannot read the operations in {operations}: {error}.") from None
            return self._run(read_program(source, file=str(operations)), fuel)
        if isinstance(operations, Proposal):
            proposal = operations
        else:
            proposals = self.proposals(operations)
            if not proposals:
                raise InputError(f"{operations!r} holds no operations: there is nothing to run.")
            proposal = proposals[0]
        if proposal.program is None:
            raise InputError(f"The operations of memory {proposal.memory} cannot be run: {proposal.problem}")
        if consent is not True:
            raise InputError(f"{proposal}\nTo run this, consent: lab.run({proposal.memory}, consent=True).")
        return self._run(proposal.program, fuel, proposal.memory)

    def _run(self, program: Program, fuel: Fuel | None, memory: int | None = None) -> Ran:
        from memlab.operations import run_program

        def record() -> int:
            body = {"memory": memory, "operations": [call.name for call in program.calls], "hash": program.hash}
            with self._store.writing() as tx:
                program.check_ids(len(self._store.state))
                return tx.event("run", body, at=self._store.clock())

        lab = cast("Lab", self)
        return run_program(lab, program, fuel=fuel or Fuel(), record=record, memory=memory)

    @checked
    def proposals(self, memories: MemoryLike | Iterable[MemoryLike]) -> tuple[Proposal, ...]:
        """What these memories would do: hits of a recall, say, of which some hold operations. Nothing is run.

        >>> lab.proposals(lab.recall("release day"))                                       # doctest: +SKIP
        """
        from memlab.operations import read_program

        found = []
        with self._reading() as state:
            held = [(row + 1, state.notes["operations"].at(row)) for row in self._rows(memories)]
        for memory, text in held:
            if text is None:
                continue
            try:
                found.append(Proposal(memory, text, read_program(text, file=f"memory {memory}")))
            except PolicyError as error:
                found.append(Proposal(memory, text, None, str(error)))
        return tuple(found)

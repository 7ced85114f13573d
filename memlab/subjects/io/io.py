"""``lab.io``: exports, mirrors, backups, checks, the joining of labs, and the way to another embedder."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import polars as pl

from memlab.errors import LabError, MemlabError
from memlab.kernel.base.arguments import AsGiven, Count, Seconds, Within, checked, warn_caller
from memlab.kernel.embedding import Embedder, EmbedderSpec
from memlab.kernel.storage.copies import (
    list_copies,
    register_copy,
    unregister_copy,
    write_without_purge,
)
from memlab.kernel.storage.purging import PURGE_TIMEOUT
from memlab.kernel.storage.store import Store
from memlab.kernel.storage.views import ViewerStore
from memlab.kernel.verbs.core import Core
from memlab.subjects.io.backups import Backup, back_up, check_open
from memlab.subjects.io.checking import Checked
from memlab.subjects.io.joining import join
from memlab.subjects.io.migrating import Moved, Preview, move, preview, synced_frame
from memlab.subjects.io.reembedding import Reembedder, Reembedding
from memlab.subjects.io.scanning import scan_edges, scan_memories

if TYPE_CHECKING:
    from memlab.subjects.io.mirror import Mirror
    from memlab.subjects.io.results import Joined

__all__ = ["LabIO", "reach_lost_mirrors"]


class LabIO:
    """``lab.io``: exports, mirrors, backups, checks, the joining of labs. What else comes in: ``lab.load``."""

    def __init__(self, core: Core, reembedder: Reembedder) -> None:
        self._core, self._reembedder = core, reembedder

    @property
    def path(self) -> Path | None:
        """The lab's folder; None in memory."""
        return self._core.store.folder

    @property
    def embedder(self) -> Embedder:
        """What turns texts into vectors."""
        return self._core.store.embedder

    @property
    def seed(self) -> int:
        """What decides, with what the lab has seen, which probes are drawn."""
        return self._core.seed

    @property
    def store(self) -> Store:
        """The journal and the state that is folded from it: for tools that read events, within ``store.reading()``."""
        return self._core.store

    @checked
    def scan(self, table: Literal["memories", "edges"] = "memories") -> pl.LazyFrame:
        """Return ``lab.memories`` or ``lab.edges`` as a lazy frame, read when a query is collected.

        Only the columns that the query names are made, of the lab as it is then. ``lab.slates()`` is lazy itself.

        >>> lab.io.scan().filter(pl.col("kind") == "gotcha").select("id", "text").collect()    # doctest: +SKIP
        """
        return scan_memories(self._core) if table == "memories" else scan_edges(self._core)

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
        """Write the lab to a file that ``lab.load`` reads back exactly, and return its path.

        ``format`` is "jsonl", "parquet" (one file, or without a suffix a folder of tables), "markdown" or "sexp". The
        suffix of ``path`` says it too: .jsonl or .ndjson, .parquet, .md or .markdown, .sexp, .hy or .lisp. Memories of
        every status are written, with their columns, uses and edges, unless ``where`` (an expression over
        ``lab.memories``) or ``project`` leaves some out; of a whole lab its other tables come along. ``policies`` adds
        the texts of the live pack and of every version before it.

        The journal keeps ``path``, so that the receipt of a ``purge`` tells whether the export holds what was purged;
        a lab that was opened with read_only=True cannot.

        Raises InputError for a path that is taken (unless ``overwrite``) or whose format nobody can tell.

        >>> lab.io.export("agent.jsonl")                                                      # doctest: +SKIP
        """
        from memlab.io.formats import (
            Bundle,
            build_bundle,
            build_event_frame,
            compute_lab_id,
            export_policies,
            write_bundle,
        )

        target = Path(path).expanduser()
        journal = self._core.store.journal

        def bundle() -> Bundle:
            tables = format == "parquet" or (format is None and target.suffix == ".parquet")
            # the events are those of the whole lab
            tables = tables and not isinstance(self._core.store, ViewerStore)
            with self._core.reading() as state:
                return build_bundle(
                    state,
                    lab=compute_lab_id(journal),
                    now=self._core.store.clock(),
                    where=where,
                    project=project,
                    policies=export_policies(self._core.store.versions) if policies else None,
                    events=build_event_frame(journal)
                    if tables and where is None and project is None
                    else None,
                )

        def write(made: Bundle) -> Path:
            known = any(one.path == target.absolute() for one in list_copies(journal))
            register_copy(
                journal, "export", target, begun=True
            )  # first, as a process may be killed
            try:
                return write_bundle(made, target, format, overwrite=overwrite)
            except MemlabError:
                if not known:
                    unregister_copy(journal, target)
                raise

        return write_without_purge(self._core.store, bundle, write)

    @checked
    def join(self, other: Annotated[Any, AsGiven], *, dry_run: bool = False) -> Joined:
        """Join another lab into this one: two copies of a lab that both went on, or a lab and what was made of it.

        Memories and edges that only the other has come in. Of a memory that both have, the later change stands, made
        here or there: an edit, a forgetting, a deletion, a restoration. What both changed is listed as a conflict with
        both versions. What was purged there is deleted here, and what was purged here stays away. It is one
        transaction; the same again changes nothing, and joined in either direction the same texts are in use. Texts
        pass the privacy gate. This lab's pack stays, and linking compares nothing.

        Parameters
        ----------
        other
            The path of a lab or of an export of one, or an open lab. It is only read.
        dry_run
            Whether to say what would be done and change nothing.

        Returns
        -------
        Joined
            What came in and what changed, a row for each memory in ``frame``.

        Raises
        ------
        InputError
            Where there is no lab, where it is this lab, or where this lab is one as a viewer sees it.
        ReadOnlyLab
            If this lab was opened with read_only=True, unless ``dry_run``.
        DatasetError, PrivacyError
            If a row of the other lab cannot be taken: nothing is changed then.

        Examples
        --------
        >>> lab.io.join("laptop.memlab", dry_run=True).conflicts                              # doctest: +SKIP
        """
        return join(self._core, other, dry_run=dry_run)

    @checked
    def mirror(
        self,
        folder: str | Path,
        *,
        every: Annotated[float, Within(0, 9_000_000_000, above=True)] | None = None,
    ) -> Mirror:
        """Keep a readable copy in ``folder``: one Markdown file a memory and ``index.json``.

        The files are written before this returns. ``update()`` of what is returned brings them up to date; with
        ``every``, a thread does, so many seconds apart, until ``stop`` or the lab is closed. Only what has changed is
        written, and the files of deleted and purged memories go. The journal keeps ``folder``, and ``purge`` brings it
        in step whether the mirror runs or not; a lab that was opened with read_only=True cannot. Raises InputError for
        a folder that holds other things, is a link or mirrors another lab.

        >>> mirror = lab.io.mirror("memories", every=5)                                       # doctest: +SKIP
        """
        from memlab.subjects.io.mirror import Mirror

        lab = weakref.ref(self._core.owner)
        return Mirror(
            Path(folder).expanduser(),
            self._core.store,
            alive=lambda: lab() is not None,
            every=every,
        )

    @checked
    def backup(self, folder: str | Path | None = None, *, keep: Count = 3) -> Backup:
        """Copy the lab into ``folder`` (``backups`` in its own, unless given), and keep the newest ``keep`` there.

        Others read and write meanwhile; the copy is the lab as it was at one moment, every row of it checked, and is
        there whole or not at all. It opens as a lab: ``memlab.open(backup.path)``. To go back to it, close the lab and
        use ``memlab.restore(path, backup.path)``. Give each lab a folder of its own. ``purge`` reaches every folder
        that was used.

        Raises InputError for ``keep`` below 1 and for a lab in memory without a folder, ReadOnlyLab, LabError where the
        disk refuses, DamagedLab if the lab or the copy is not whole. A lab of 100,000 memories (90 MB) takes 0.4
        seconds of processor time.

        >>> lab.io.backup().path                                                              # doctest: +SKIP
        """
        return back_up(self._core.store, folder, keep)

    @checked
    def check(self, *, repair: bool = True) -> Checked:
        """Compare everything in this lab with what was written, and mend what can be mended: see ``memlab.check``.

        >>> lab.io.check().sound                                                              # doctest: +SKIP
        True
        """
        return check_open(self._core.store, repair=repair)

    @checked
    def preview(self, exclude: Annotated[Iterable[str | None] | str, AsGiven] = ()) -> Preview:
        """Say what ``move_to`` would take along, by project, and the secrets that are found in it today.

        ``exclude`` names the projects that stay, None what belongs to no project. A project for which memory is off
        stays by itself. UnknownName for a project of which nothing is here.

        >>> lab.io.preview(exclude=["diary"]).frame                                           # doctest: +SKIP
        """
        return preview(self._core, exclude)

    @checked
    def move_to(
        self,
        target: str | Path,
        *,
        exclude: Annotated[Iterable[str | None] | str, AsGiven] = (),
        embedder: EmbedderSpec = None,
    ) -> Moved:
        """Bring the memories of this lab into the one at the path ``target``, which is made if there is nothing.

        They are embedded anew, by the embedder of the target (``embedder``, as ``memlab.open`` takes it), and what the
        privacy gate finds today is redacted. A lab without exclusions is one batch, and its tables beside memories
        (facts' times, module maps, switches) come along where the target is empty; else each project is one, with its
        memories, uses and edges alone. A batch is stored whole or not at all; the same again adds nothing, and a move
        that was stopped goes on. The copy here stays, and is marked as synced by an event.

        Packs, recalls and judgements stay here. A later ``purge`` here does not reach the target: purge there too.

        Parameters
        ----------
        target
            The path of a lab, or of one that is to be made.
        exclude
            Projects that stay; None among them: what belongs to no project. Look at ``preview`` first.
        embedder
            That of the target; the shipped one unless given.

        Raises
        ------
        UnknownName
            For an excluded project of which nothing is here.
        MemoryOff
            Where memory is off in the target for a project that would go, or nobody consented to it there; nothing is
            written then.
        PrivacyError
            For a secret in a name, a tag or an operation, where it cannot be redacted; its batch is not stored.
        EmbedderMismatch
            Where the target holds vectors of another embedder.
        LabError
            Where either lab cannot be written.

        Examples
        --------
        >>> lab.io.move_to("/mnt/team/agent.memlab", exclude=["diary"])                       # doctest: +SKIP
        """
        lab: Any = type(self._core.owner)
        clock = self._core.store.clock

        def opened(path: Path) -> Any:
            return lab(path, embedder=embedder, clock=clock)

        return move(self._core, Path(target).expanduser(), exclude, opened)

    def synced(self) -> pl.DataFrame:
        """One row for each move to another lab: target, at (UTC), memories (of this lab there), added, left_out.

        Empty in the lab as a viewer sees it: the counts are of everybody's memories.
        """
        return synced_frame(self._core)

    def reembedding(self) -> Reembedding:
        """Return how many memories have a vector of the lab's embedder: all, unless it is being embedded anew.

        >>> lab.io.reembedding()                                                              # doctest: +SKIP
        <Reembedding: 4,096 of 20,000 memories>
        """
        return self._reembedder.progress()

    @checked
    def reembed(self, timeout: Seconds | None = None) -> bool:
        """Embed here and now what waits for it, for at most ``timeout`` seconds; whether nothing waits any more.

        Nothing has to call this after ``memlab.open(..., reembed="background")``: a thread does the same. It raises
        what hinders that thread: ReadOnlyLab, LabBusy, or what the embedder raises. A piece of 256 texts is embedded to
        its end.

        >>> lab.io.reembed(timeout=10)                                                        # doctest: +SKIP
        True
        """
        return self._reembedder.embed_all(timeout)

    def snapshot(self) -> None:
        """Write the folded state down, so that the next opening is quick; closing does it when there is much new."""
        self._core.store.snapshot()


def reach_lost_mirrors(store: Store) -> None:
    """Bring in step the mirrors that the last purge did not reach: it was killed, or a disk was not there."""
    from memlab.subjects.io.mirror import reach_mirrors

    try:
        with store.derived.hold(PURGE_TIMEOUT):
            problems = reach_mirrors(store)
    except LabError as error:
        problems = {store.folder or Path(): str(error)}
    for path, problem in problems.items():
        if path.exists() and problem:
            warn_caller(f"The mirror in {path} may hold what was purged: {problem}")

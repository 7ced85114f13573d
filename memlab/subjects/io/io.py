"""``lab.io``: exports, mirrors, backups, checks, joins and moves of labs, and re-embedding."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import polars as pl

from memlab.errors import InputError, LabError, MemlabError
from memlab.kernel.base.arguments import AsGiven, Count, Seconds, Within, checked, warn_caller
from memlab.kernel.embedding import Embedder, EmbedderSpec
from memlab.kernel.hooks import load_part
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


class LabIO:
    """``lab.io``: exports, mirrors, backups, checks, joins, moves and re-embedding.

    ``lab.load`` reads files and other data into the lab.

    Examples
    --------
    >>> lab = memlab.open()
    >>> lab.io.embedder is lab.io.store.embedder
    True
    """

    def __init__(self, core: Core, reembedder: Reembedder) -> None:
        self._core, self._reembedder = core, reembedder

    @property
    def path(self) -> Path | None:
        """The lab's folder, or None for a lab in memory."""
        return self._core.store.folder

    @property
    def embedder(self) -> Embedder:
        """The embedder of the lab, which turns texts into vectors."""
        return self._core.store.embedder

    @property
    def seed(self) -> int:
        """The seed of the random draws of exploration items."""
        return self._core.seed

    @property
    def store(self) -> Store:
        """The journal and the folded state, for tools that read events."""
        return self._core.store

    @checked
    def scan(self, table: Literal["memories", "edges"] = "memories") -> pl.LazyFrame:
        """Return a lazy frame of memories or edges.

        A query reads only the columns that it names, from the lab as it is when the query is
        collected. ``lab.slates()`` is lazy itself.

        Parameters
        ----------
        table
            "memories" for the rows of ``lab.memories``, or "edges" for the rows of ``lab.edges``.

        Returns
        -------
        polars.LazyFrame
            One row for each memory or edge.

        Examples
        --------
        >>> lab = memlab.open()
        >>> hit = lab.remember("The build needs Node 20.", kind="gotcha")
        >>> lab.io.scan().filter(pl.col("kind") == "gotcha").select("text").collect().item()
        'The build needs Node 20.'
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
        subject: str | None = None,
        creator: str | None = None,
        viewer: str | None = None,
        policies: bool = True,
        overwrite: bool = False,
    ) -> Path:
        """Write the lab to a file from which ``lab.load`` restores it exactly.

        Memories of every status are written, with their columns, uses and edges. The export of a whole lab also
        contains its other tables. The journal records ``path``, so that the receipt of a later ``purge`` says whether
        the export contains purged texts.

        Parameters
        ----------
        path
            The file to write. A path without a suffix is a folder for Parquet tables.
        format
            "jsonl", "parquet", "markdown" or "sexp". By default the suffix decides: .jsonl or
            .ndjson, .parquet, .md or .markdown, .sexp, .hy or .lisp.
        where
            A Polars expression over ``lab.memories``. Only memories for which it is true are written.
        project
            The name of a project; only its memories are written.
        subject, creator
            The name of a person. The export has exactly what ``lab.purge`` with the same names removes: the memories
            about the subject or by the creator, and the logged queries. Policies are not part of it. Labelled
            questions, which the purge removes too, are not written.
        viewer
            The name of a user; only what this user can see is written.
        policies
            Whether to add the texts of the active pack and of all its earlier versions.
        overwrite
            Whether to replace an existing file.

        Returns
        -------
        Path
            The path of the export.

        Raises
        ------
        InputError
            If ``path`` exists and ``overwrite`` is false, the format is unknown, or ``subject`` and ``creator`` are
            combined with ``where`` or ``viewer``.
        UnknownName
            If no memory has the project, subject or creator.
        ReadOnlyLab
            If the lab was opened with read_only=True.

        Examples
        --------
        >>> import tempfile
        >>> lab = memlab.open()
        >>> hit = lab.remember("The build needs Node 20.")
        >>> lab.io.export(f"{tempfile.mkdtemp()}/agent.jsonl").name
        'agent.jsonl'
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
        journal, names = self._core.store.journal, {"subject": subject, "creator": creator}
        is_person = subject is not None or creator is not None
        if is_person and (where is not None or viewer is not None):
            raise InputError(
                "export does not take subject= or creator= together with where= or "
                "viewer=: it must write exactly what a purge by these names removes."
            )
        store = self._core.store if viewer is None else ViewerStore(self._core.store, viewer)

        def read_bundle() -> Bundle:
            tables = format == "parquet" or (format is None and target.suffix == ".parquet")
            # A viewer's lab exports no events, because the journal has the events of all users.

            tables = tables and not isinstance(store, ViewerStore)
            with store.reading() as state:
                rows, queries = None, ()
                if is_person:
                    rows, queries = load_part("select-person")(store, project=project, **names)
                return build_bundle(
                    state,
                    lab=compute_lab_id(journal),
                    now=store.clock(),
                    where=where,
                    project=project,
                    ids=None if rows is None else [row + 1 for row in rows],
                    queries=queries,
                    policies=export_policies(store.versions)
                    if policies and not is_person
                    else None,
                    events=build_event_frame(journal)
                    if tables and where is None and project is None and not is_person
                    else None,
                )

        def write(bundle: Bundle) -> Path:
            recorded = any(copy.path == target.absolute() for copy in list_copies(journal))
            # The path is recorded before the first byte is written, so that a purge finds the file even if this process
            # is killed.
            register_copy(journal, "export", target, begun=True)
            try:
                return write_bundle(bundle, target, format, overwrite=overwrite)
            except MemlabError:
                if not recorded:
                    unregister_copy(journal, target)
                raise

        return write_without_purge(self._core.store, read_bundle, write)

    @checked
    def join(self, other: Annotated[Any, AsGiven], *, dry_run: bool = False) -> Joined:
        """Merge the memories and edges of another lab into this lab.

        The labs may be two copies that diverged, or a lab and an export of it. Memories and edges that exist only in
        the other lab are added. For a memory in both labs the later change is kept, whichever lab made it: an edit, a
        forgetting, a deletion or a restoration. A memory that both labs changed is listed as a conflict with both
        versions. A memory that was purged in the other lab is deleted in this lab. A memory that was purged in this
        lab is not added again.

        The join is one transaction, and repeating it changes nothing. Joining in either direction gives the same active
        texts. Added texts pass the privacy gate. The pack of this lab stays active, and no pairs are linked.

        Parameters
        ----------
        other
            The path of a lab or of an export, or an open lab. The other lab is not changed.
        dry_run
            Whether to report the changes without making them.

        Returns
        -------
        Joined
            The added and changed memories, one row each in ``frame``.

        Raises
        ------
        InputError
            If ``other`` is not a lab or is this lab, or if this lab is a viewer's lab.
        ReadOnlyLab
            If this lab was opened with read_only=True, unless ``dry_run``.
        DatasetError, PrivacyError
            If a row of the other lab is invalid or has a secret. Nothing is then changed.

        Examples
        --------
        >>> laptop, server = memlab.open(), memlab.open()
        >>> hit = laptop.remember("The build needs Node 20.")
        >>> server.io.join(laptop).count("added")
        1
        """
        return join(self._core, other, dry_run=dry_run)

    @checked
    def mirror(
        self,
        folder: str | Path,
        *,
        every: Annotated[float, Within(0, 9_000_000_000, above=True)] | None = None,
    ) -> Mirror:
        """Keep a readable copy of the lab in a folder.

        The copy is one Markdown file per memory and ``index.json``, written before this method
        returns. Only changed files are written again, and the files of deleted and purged memories
        are removed. The journal records ``folder``, so that ``purge`` also reaches a mirror that is
        not running.

        Parameters
        ----------
        folder
            The folder of the mirror. It must be new, empty, or the folder of an earlier mirror of this lab.
        every
            Seconds between two updates by a background thread, until ``stop`` is called or the lab
            is closed. By default only ``update()`` updates the mirror.

        Returns
        -------
        Mirror
            The mirror, with ``update``, ``wait`` and ``stop``.

        Raises
        ------
        InputError
            If the folder contains other files, is a link, or mirrors another lab.
        ReadOnlyLab
            If the lab was opened with read_only=True.

        Examples
        --------
        >>> import tempfile
        >>> lab = memlab.open()
        >>> hit = lab.remember("The build needs Node 20.")
        >>> len(lab.io.mirror(tempfile.mkdtemp()))
        1
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
        """Copy the lab into a folder of backups.

        Other processes may read and write meanwhile: the copy is the lab at one moment, with every row checked, and is
        either complete or absent. To open it as a lab, call ``memlab.open(backup.path)``. To restore it, close the lab
        and call ``memlab.restore(path, backup.path)``. A ``purge`` replaces the backups in every folder that was used.
        A lab of 100,000 memories (90 MB) takes 0.4 seconds of processor time.

        Parameters
        ----------
        folder
            The folder of the backups, which must belong to this lab alone. The default is
            ``backups`` in the lab's folder.
        keep
            The number of backups to keep in the folder, at least 1. Older backups are removed.

        Returns
        -------
        Backup
            The new backup.

        Raises
        ------
        InputError
            If ``keep`` is below 1, or a lab in memory is backed up without ``folder``.
        ReadOnlyLab
            If the lab was opened with read_only=True.
        LabError
            If the copy cannot be written.
        DamagedLab
            If the lab or the copy is damaged.

        Examples
        --------
        >>> import tempfile
        >>> lab = memlab.open()
        >>> lab.io.backup(tempfile.mkdtemp()).frame.height
        1
        """
        return back_up(self._core.store, folder, keep)

    @checked
    def check(self, *, repair: bool = True) -> Checked:
        """Compare every part of this lab with its checksums, and repair damaged parts.

        ``memlab.check`` does the same for a lab that is not open.

        Parameters
        ----------
        repair
            Whether to repair damaged parts. With False, damage is only reported.

        Returns
        -------
        Checked
            One row for each part of the lab.

        Examples
        --------
        >>> memlab.open().io.check().sound
        True
        """
        return check_open(self._core.store, repair=repair)

    @checked
    def preview(self, exclude: str | Iterable[str | None] = ()) -> Preview:
        """Count the memories and secrets that ``move_to`` would copy, by project.

        Parameters
        ----------
        exclude
            The projects to leave out. None means the memories without a project. A project whose memory is switched off
            is left out automatically.

        Returns
        -------
        Preview
            One row for each project.

        Raises
        ------
        UnknownName
            If an excluded project is not in the lab.

        Examples
        --------
        >>> lab = memlab.open()
        >>> hits = [lab.remember(text, project=text[:4]) for text in ("Met Ann.", "Ship it.")]
        >>> lab.io.preview(exclude=["Ship"]).memories
        1
        """
        return preview(self._core, exclude)

    @checked
    def move_to(
        self,
        target: str | Path,
        *,
        exclude: str | Iterable[str | None] = (),
        embedder: EmbedderSpec = None,
    ) -> Moved:
        """Copy memories of this lab to another lab, and record the move here.

        Texts are embedded again with the embedder of the target. Secrets that the current privacy gate finds are
        redacted. Without exclusions, the lab is moved as one batch. Its other tables (times of facts, module maps,
        switches) are moved too if the target is empty. With exclusions, each project is one batch with its memories,
        uses and edges.

        A batch is stored completely or not at all. Repeating a move adds nothing, and an
        interrupted move continues. The memories stay in this lab, marked as synced by an event.
        Packs, recalls and feedback are not moved. A later ``purge`` of this lab does not reach the
        target: purge there too.

        Parameters
        ----------
        target
            The path of the target lab, which is created if it does not exist.
        exclude
            The projects to leave out. None means the memories without a project. See ``preview``.
        embedder
            The embedder of the target, as in ``memlab.open``. The default is the embedder that memlab ships.

        Returns
        -------
        Moved
            One row for each batch.

        Raises
        ------
        UnknownName
            If an excluded project is not in the lab.
        MemoryOff
            If memory is switched off in the target for a project to be moved, or if the project
            lacks consent there. Nothing is then written.
        PrivacyError
            If a name, a tag or an operation contains a secret, which cannot be redacted there. The batch is then not
            stored.
        EmbedderMismatch
            If the target holds vectors of another embedder.
        LabError
            If either lab cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> lab = memlab.open()
        >>> hit = lab.remember("Ship on Friday.", project="work")
        >>> lab.io.move_to(f"{tempfile.mkdtemp()}/team.memlab").added
        1
        """
        lab: Any = type(self._core.owner)
        clock = self._core.store.clock

        def open_target(path: Path) -> Any:
            return lab(path, embedder=embedder, clock=clock)

        return move(self._core, Path(target).expanduser(), exclude, open_target)

    def synced(self) -> pl.DataFrame:
        """Return the recorded moves of this lab's memories to other labs.

        Returns
        -------
        polars.DataFrame
            One row for each move: target, at (UTC), memories (of this lab in the target), added,
            left_out. Empty in a viewer's lab, because the counts include the memories of every
            user.

        Examples
        --------
        >>> memlab.open().io.synced().height
        0
        """
        return synced_frame(self._core)

    def reembedding(self) -> Reembedding:
        """Return the number of memories that have a vector of the current embedder.

        Returns
        -------
        Reembedding
            The progress of a change of the embedder. It is finished unless such a change is running.

        Examples
        --------
        >>> memlab.open().io.reembedding().finished
        True
        """
        return self._reembedder.progress()

    @checked
    def reembed(self, timeout: Seconds | None = None) -> bool:
        """Embed the memories that have no vector of the lab's current embedder.

        The thread that ``memlab.open(..., reembed="background")`` starts does the same, so calling
        this method is optional. The errors that stop the thread are raised here: ReadOnlyLab,
        LabBusy, or an error of the embedder.

        Parameters
        ----------
        timeout
            The maximum number of seconds, unlimited by default. A started batch of 256 texts is
            completed.

        Returns
        -------
        bool
            True if every memory has its vector.

        Raises
        ------
        ReadOnlyLab
            If memories lack vectors and the lab was opened with read_only=True.
        LabBusy
            If another process is writing.

        Examples
        --------
        >>> memlab.open().io.reembed(timeout=10)
        True
        """
        return self._reembedder.embed_all(timeout)

    def snapshot(self) -> None:
        """Write a snapshot of the folded state, so that the lab opens faster.

        Closing a lab also writes a snapshot if many memories are new.

        Examples
        --------
        >>> memlab.open().io.snapshot()
        """
        self._core.store.snapshot()


def reach_lost_mirrors(store: Store) -> None:
    """Update the mirrors that the last purge missed, and warn about failures.

    A purge misses a mirror if its process was killed or a disk was not mounted.
    """
    from memlab.subjects.io.mirror import reach_mirrors

    try:
        with store.derived.hold(PURGE_TIMEOUT):
            problems = reach_mirrors(store)
    except LabError as error:
        problems = {store.folder or Path(): str(error)}
    for path, problem in problems.items():
        if path.exists() and problem:
            warn_caller(f"The mirror in {path} may contain purged texts: {problem}")

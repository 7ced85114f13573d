"""A readable copy of a lab: one Markdown file per memory and an index, updated from the journal.

Only files of the mirror are written or removed. Each file is written as a draft and then renamed, so a reader sees
either the old file or the new file. File names are ASCII and begin with the id of the memory, because no file system
reserves such names. A link in the folder is replaced and never followed.
"""

from __future__ import annotations

import json
import os
import re
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from memlab.errors import InputError, MemlabError
from memlab.io.formats import (
    SCHEMA,
    Bundle,
    build_bundle,
    build_file_name,
    compute_lab_id,
    export_memories,
    format_time,
    render_memory_page,
)
from memlab.kernel.base.arguments import Seconds, checked
from memlab.kernel.base.disk import translate_error
from memlab.kernel.base.printable import printable
from memlab.kernel.base.threads import Background, Finished, ThreadLock, Worker
from memlab.kernel.storage.copies import list_outdated_mirrors, register_copy, write_without_purge
from memlab.kernel.storage.store import Store

# Names of the mirror's files. An incomplete file has the suffix of drafts.
INDEX = "index.json"
FILE_PATTERN = re.compile(r"[0-9]{7,}(-[a-z0-9-]{1,48})?\.md")
_DRAFT = ".draft"
# The version of the page format. Pages of another version are rewritten.
_PAGES = 2
# Memories with these statuses have no page, because their texts must not remain readable.
_GONE = ("deleted", "purged")


class Mirror(Background):
    """The readable copy of one lab in one folder.

    ``update`` writes the current state of the lab to the files. With ``every``, a background thread calls it until
    ``stop`` is called.

    Attributes
    ----------
    folder
        The folder of the mirror.
    problem
        The error of the last update, or None if it succeeded.

    Examples
    --------
    >>> import tempfile
    >>> lab = memlab.open()
    >>> mirror = lab.io.mirror(tempfile.mkdtemp())
    >>> hit = lab.remember("The build needs Node 20.")
    >>> mirror.update(), len(mirror)
    (1, 1)
    """

    def __init__(
        self,
        folder: Path,
        store: Store,
        *,
        alive: Callable[[], bool] = lambda: True,
        every: float | None = None,
        locked: bool = False,
    ) -> None:
        """Create a mirror of the lab on ``store``, and write its files.

        ``alive`` returns whether the lab is still in use. ``locked`` is True within a purge, which already holds the
        lock on derived files.
        """
        self.folder, self._store, self._alive, self._lab = (
            folder,
            store,
            alive,
            compute_lab_id(store.journal),
        )
        self._locked, self._owns_folder = locked, False
        self.problem: Exception | None = None
        self._seq = -1
        self._files: dict[str, tuple[str, int]] = {}
        # The thread and the user may call update at the same time. The lock keeps the two updates apart.
        self._turn = ThreadLock()
        step = _update_step(weakref.ref(self), every or 0.0)
        self._worker = Worker("mirror", step, delay=every or 0.0)
        self.update()
        if every is not None:
            self._worker.start()

    def update(self) -> int:
        """Write changed files, and remove the files of deleted and purged memories.

        Returns
        -------
        int
            The number of files written or removed, apart from the index.
        """
        with self._turn:
            last, store = self._last_event(), self._store
            if last is None or last == self._seq:
                return 0
            changed = (
                self._write_files(self._read_bundle())
                if self._locked
                else write_without_purge(store, self._read_bundle, self._write_files)
            )
            self._seq = last
            return changed

    @checked
    def wait(self, seconds: Seconds) -> bool:
        """Wait until the mirror stops or the timeout ends.

        Parameters
        ----------
        seconds
            The maximum time to wait.

        Returns
        -------
        bool
            True if the mirror was stopped.
        """
        return self._worker.pause(seconds)

    def __len__(self) -> int:
        """Return the number of memories that the folder contains."""
        return len(self._files)

    def stop(self) -> None:
        """Stop the background thread, and keep the files of the mirror.

        Raises
        ------
        MemlabError
            The error of the last update, if it failed.
        """
        self._worker.stop()
        if self.problem is not None:
            raise self.problem

    def __repr__(self) -> str:
        state = "running" if self.active else "stopped" if self._worker.stopping else "on demand"
        trouble = f", {self.problem}" if self.problem is not None else ""
        return printable(
            f"<Mirror in {self.folder}: {len(self._files):,} memories, {state}{trouble}>"
        )

    def _last_event(self) -> int | None:
        """Return the number of the journal's last event, or None for a closed lab."""
        journal = self._store.journal
        return None if journal.closed or not self._alive() else journal.head

    def _read_bundle(self) -> Bundle:
        """Return the content of the lab as an export bundle."""
        store = self._store
        with store.reading():
            return build_bundle(store.state, lab=self._lab, now=store.clock())

    def _adopt_folder(self) -> None:
        """Check that a folder can hold the mirror, read the index of an earlier mirror, and remove files outside the index.

        Raises InputError for a folder with other files, so that no other file is overwritten.
        """
        folder = self.folder
        if folder.is_symlink():
            raise InputError(f"{folder} is a link. Give the mirror a folder that is not a link.")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            entries = list(os.scandir(folder))
        except OSError as error:
            raise InputError(
                f"{folder} cannot be used for a mirror: {error.strerror}. Give another folder."
            ) from None
        if not entries:
            return
        index = folder / INDEX
        try:
            record: Any = (
                json.loads(index.read_bytes())
                if index.is_file() and not index.is_symlink()
                else None
            )
        except (OSError, ValueError, RecursionError):
            record = None
        ours = (
            isinstance(record, dict)
            and record.get("memlab") == "mirror"
            and isinstance(record.get("files"), dict)
        )
        foreign = next((entry.name for entry in entries if not _is_mirror_file(entry.name)), None)
        if not ours or foreign is not None:
            reason = f"it contains {foreign}" if foreign is not None else "it has no mirror index"
            raise InputError(
                f"{folder} is not empty and not a mirror: {reason}. Give an empty or new folder."
            )
        if record["lab"] != self._lab:
            raise InputError(
                f"{folder} mirrors another lab ({record['lab']:.40}). Give an empty or new folder."
            )
        for name, about in record["files"].items():
            # The index may have been edited, so a name in it is checked not to lead out of the folder.
            valid = (
                isinstance(about, list)
                and len(about) == 2
                and all(isinstance(value, int) for value in about)
            )
            if FILE_PATTERN.fullmatch(name) and valid:
                self._files[name] = (
                    str(about[0]),
                    about[1] if record.get("pages") == _PAGES else -1,
                )
        for entry in entries:
            if entry.name.endswith(_DRAFT) or (
                entry.name != INDEX and entry.name not in self._files
            ):
                (folder / entry.name).unlink(missing_ok=True)

    def _write_files(self, bundle: Bundle) -> int:
        """Write changed pages, remove outdated ones, and record that the mirror is up to date; return their number."""
        if not self._owns_folder:
            self._adopt_folder()
            self._owns_folder = True
            # The folder is recorded before the first page is written, so that a purge finds it even if this process is
            # killed.
            register_copy(self._store.journal, "mirror", self.folder, begun=True)
        try:
            changed = self._write_pages(bundle)
        except OSError as error:
            raise translate_error(str(self.folder), error) from error
        register_copy(self._store.journal, "mirror", self.folder)
        return changed

    def _write_pages(self, bundle: Bundle) -> int:
        """Write changed pages and remove outdated ones; return the number written or removed."""
        memories = bundle.memories.filter(
            ~pl.col("status").is_in(_GONE) & pl.col("text").is_not_null()
        )
        links = _links(bundle, memories["id"])
        joined = memories.join(links, on="id", how="left", maintain_order="left")
        # A digest covers a row and its links, so a page is written only if its text would change.
        digests = joined.hash_rows().to_list()
        wanted = {
            build_file_name(id, text): (id, digest)
            for id, text, digest in zip(
                memories["id"].to_list(), memories["text"].to_list(), digests, strict=True
            )
        }
        stale = [
            name
            for name, (id, digest) in wanted.items()
            if self._files.get(name) != (str(id), digest) or not _is_file(self.folder / name)
        ]
        gone = [name for name in self._files if name not in wanted]
        if stale:
            ids = {wanted[name][0]: name for name in stale}
            changed = memories.filter(pl.col("id").is_in(list(ids)))
            links_of = dict(links.filter(pl.col("id").is_in(list(ids))).iter_rows())
            names = {id: name for name, (id, _) in wanted.items()}
            for fields in export_memories(changed):
                id = fields["id"]
                self._write_file(ids[id], render_memory_page(fields, links_of.get(id) or [], names))
        for name in gone:
            (self.folder / name).unlink(missing_ok=True)
        self._files = {name: (str(id), digest) for name, (id, digest) in wanted.items()}
        if stale or gone or not (self.folder / INDEX).is_file():
            self._write_file(INDEX, self._index())
        return len(stale) + len(gone)

    def _index(self) -> str:
        """Return the mirror's index as JSON: lab, format, and the id and digest of each page."""
        files = {name: [int(id), digest] for name, (id, digest) in self._files.items()}
        about = {
            "memlab": "mirror",
            "schema": SCHEMA,
            "pages": _PAGES,
            "lab": self._lab,
            "written": format_time(self._store.clock()),
        }
        return json.dumps({**about, "files": files}, indent=1)

    def _write_file(self, name: str, content: str) -> None:
        """Write a file atomically, by renaming a complete draft."""
        draft = self.folder / f"{name}{_DRAFT}"
        draft.unlink(missing_ok=True)
        # The mode "x" creates a new file or fails, so that a link of this name is not followed.
        with draft.open("x", encoding="utf-8", newline="") as file:
            file.write(content)
        draft.replace(self.folder / name)


def reach_mirrors(store: Store) -> dict[Path, str]:
    """Update the mirrors that the last purge did not reach.

    Returns the error message of each mirror by its path, or "" for success. The caller holds the lock on derived files.
    A mirror whose folder is missing is updated when the lab is next opened with the folder present.
    """
    problems = {}
    for copy in list_outdated_mirrors(store.journal):
        if not copy.path.is_dir():
            problems[copy.path] = "not there"
            continue
        try:
            Mirror(copy.path, store, locked=True)
            problems[copy.path] = ""
        except MemlabError as error:
            problems[copy.path] = str(error)
    return problems


def _update_step(mirror: weakref.ref[Mirror], every: float) -> Callable[[], float]:
    """Return a step for a worker that updates a mirror each ``every`` seconds while the lab is open."""

    def step() -> float:
        alive_mirror = mirror()
        if alive_mirror is None or alive_mirror._last_event() is None:
            raise Finished
        try:
            alive_mirror.update()
            alive_mirror.problem = None
        except MemlabError as error:
            alive_mirror.problem = error
        return every

    return step


def _is_mirror_file(name: str) -> bool:
    """Return whether a mirror writes files with this name: pages, index or drafts."""
    return (
        name == INDEX
        or FILE_PATTERN.fullmatch(name.removesuffix(_DRAFT)) is not None
        or name == f"{INDEX}{_DRAFT}"
    )


def _is_file(path: Path) -> bool:
    """Return whether a path is a regular file and not a link."""
    return path.is_file() and not path.is_symlink()


def _links(bundle: Bundle, memories: pl.Series) -> pl.DataFrame:
    """Return a frame with each memory's outgoing edges as texts, oldest first."""
    ids = memories.to_list()
    target_exists = pl.col("target").is_in(ids) | pl.col("target").is_null()
    ends = bundle.edges.filter(pl.col("source").is_not_null() & target_exists).select(
        pl.col("source").alias("id"),
        pl.concat_str(
            "relation",
            pl.lit(" "),
            pl.coalesce(pl.col("target").cast(pl.String), pl.col("target_node")),
            pl.lit(" "),
            pl.col("weight").cast(pl.String),
        ).alias("links"),
    )
    return ends.group_by("id", maintain_order=True).agg(pl.col("links"))

"""A readable copy of a lab beside it: one Markdown file a memory and an index, kept in step with the journal.

Only files of the mirror's own are ever written or removed, each by renaming a draft, so that a reader sees the old
one or the new one. A name begins with the memory's number, which no system reserves, and holds ASCII only. A link in
the folder is replaced, never followed.
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

__all__ = ["INDEX", "Mirror", "reach_mirrors"]

INDEX = "index.json"
FILE_PATTERN = re.compile(r"[0-9]{7,}(-[a-z0-9-]{1,48})?\.md")
_DRAFT = ".draft"
_PAGES = 2
"""The way pages are written; those of another are rewritten."""
_GONE = ("deleted", "purged")


class Mirror(Background):
    """The copy of one lab in one folder. ``update`` brings it up to date; with ``every``, a thread does until ``stop``.

    ``problem`` is the error of the last update that failed, None once one succeeds.
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
        """A mirror of the lab on ``store`` as long as that is ``alive``; ``locked`` says that a purge makes it."""
        self.folder, self._store, self._alive, self._lab = (
            folder,
            store,
            alive,
            compute_lab_id(store.journal),
        )
        self._locked, self._taken_over = locked, False
        self.problem: Exception | None = None
        self._seq = -1
        self._files: dict[str, tuple[str, int]] = {}
        self._turn = ThreadLock()
        self._worker = Worker(
            "mirror", _keeping(weakref.ref(self), every or 0.0), delay=every or 0.0
        )
        self.update()
        if every is not None:
            self._worker.start()

    # -- what a person calls ------------------------------------------------------------------------------------------

    def update(self) -> int:
        """Write what has changed and remove what is gone; how many files that were. Nothing, if nothing happened."""
        with self._turn:
            head, store = self._head(), self._store
            if head is None or head == self._seq:
                return 0
            changed = (
                self._written(self._bundle())
                if self._locked
                else write_without_purge(store, self._bundle, self._written)
            )
            self._seq = head
            return changed

    @checked
    def wait(self, seconds: Seconds) -> bool:
        """Wait so long, or until it is stopped; whether it was."""
        return self._worker.pause(seconds)

    def __len__(self) -> int:
        """How many memories the folder holds."""
        return len(self._files)

    def stop(self) -> None:
        """End the thread. The files stay. Raises what the last update raised, if it failed."""
        self._worker.stop()
        if self.problem is not None:
            raise self.problem

    def __repr__(self) -> str:
        state = "running" if self.active else "stopped" if self._worker.stopping else "on demand"
        trouble = f", {self.problem}" if self.problem is not None else ""
        return printable(
            f"<Mirror in {self.folder}: {len(self._files):,} memories, {state}{trouble}>"
        )

    # -- the lab ------------------------------------------------------------------------------------------------------

    def _head(self) -> int | None:
        journal = self._store.journal
        return None if journal.closed or not self._alive() else journal.head

    def _bundle(self) -> Bundle:
        store = self._store
        with store.reading():
            return build_bundle(store.state, lab=self._lab, now=store.clock())

    # -- the folder ---------------------------------------------------------------------------------------------------

    def _take_over(self) -> None:
        """Use an empty folder, or one that this lab's mirror left; InputError for any other."""
        folder = self.folder
        if folder.is_symlink():
            raise InputError(f"{folder} is a link: a mirror is kept in a folder of its own.")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            entries = list(os.scandir(folder))
        except OSError as error:
            raise InputError(f"{folder} cannot be used for a mirror: {error.strerror}.") from None
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
        strange = next((entry.name for entry in entries if not _is_ours(entry.name)), None)
        if not ours or strange is not None:
            what = f"it holds {strange}" if strange is not None else "it has no index of a mirror"
            raise InputError(
                f"{folder} is not empty and no mirror: {what}. Give a folder of its own."
            )
        if record["lab"] != self._lab:
            raise InputError(
                f"{folder} mirrors another lab ({record['lab']:.40}). Give a folder of its own."
            )
        for name, about in record["files"].items():
            # A name from a file is not to lead anywhere else.
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

    def _written(self, bundle: Bundle) -> int:
        if not self._taken_over:
            self._take_over()
            self._taken_over = True
            # before the first page, as a process may be killed
            register_copy(self._store.journal, "mirror", self.folder, begun=True)
        try:
            changed = self._write(bundle)
        except OSError as error:
            raise translate_error(str(self.folder), error) from error
        register_copy(self._store.journal, "mirror", self.folder)
        return changed

    def _write(self, bundle: Bundle) -> int:
        memories = bundle.memories.filter(
            ~pl.col("status").is_in(_GONE) & pl.col("text").is_not_null()
        )
        links = _links(bundle, memories["id"])
        joined = memories.join(links, on="id", how="left", maintain_order="left")
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
                self._put(ids[id], render_memory_page(fields, links_of.get(id) or [], names))
        for name in gone:
            (self.folder / name).unlink(missing_ok=True)
        self._files = {name: (str(id), digest) for name, (id, digest) in wanted.items()}
        if stale or gone or not (self.folder / INDEX).is_file():
            self._put(INDEX, self._index())
        return len(stale) + len(gone)

    def _index(self) -> str:
        files = {name: [int(id), digest] for name, (id, digest) in self._files.items()}
        about = {
            "memlab": "mirror",
            "schema": SCHEMA,
            "pages": _PAGES,
            "lab": self._lab,
            "written": format_time(self._store.clock()),
        }
        return json.dumps({**about, "files": files}, indent=1)

    def _put(self, name: str, content: str) -> None:
        draft = self.folder / f"{name}{_DRAFT}"
        draft.unlink(missing_ok=True)
        # "x" makes a new file or fails: a link that stands in its place is not followed.
        with draft.open("x", encoding="utf-8", newline="") as file:
            file.write(content)
        draft.replace(self.folder / name)


def reach_mirrors(store: Store) -> dict[Path, str]:
    """Bring the mirrors in step that are not since the last purge: each with how that went, "" if it did.

    Whoever calls it holds the lock of files that are made of the journal. A folder that is not there is reported, and
    reached when the lab is opened while it is.
    """
    problems = {}
    for one in list_outdated_mirrors(store.journal):
        if not one.path.is_dir():
            problems[one.path] = "not there"
            continue
        try:
            Mirror(one.path, store, locked=True)
            problems[one.path] = ""
        except MemlabError as error:
            problems[one.path] = str(error)
    return problems


def _keeping(mirror: weakref.ref[Mirror], every: float) -> Callable[[], float]:
    """The step of a mirror's worker, which ends when nobody has the mirror or the lab any more."""

    def step() -> float:
        kept = mirror()
        if kept is None or kept._head() is None:
            raise Finished
        try:
            kept.update()
            kept.problem = None
        except MemlabError as error:
            kept.problem = error
        return every

    return step


def _is_ours(name: str) -> bool:
    return (
        name == INDEX
        or FILE_PATTERN.fullmatch(name.removesuffix(_DRAFT)) is not None
        or name == f"{INDEX}{_DRAFT}"
    )


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _links(bundle: Bundle, kept: pl.Series) -> pl.DataFrame:
    """``id``, ``links``: what each memory is joined to, as texts, in the order in which that was done."""
    ids = kept.to_list()
    there = pl.col("target").is_in(ids) | pl.col("target").is_null()
    ends = bundle.edges.filter(pl.col("source").is_not_null() & there).select(
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

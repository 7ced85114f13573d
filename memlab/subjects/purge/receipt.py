"""The choice of memories to purge, and the receipt of a purge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import MemlabError
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import count_of, printable
from memlab.kernel.hooks import list_hooks
from memlab.kernel.journal import Journal, Scrub, data_file
from memlab.kernel.schema import MEMORY
from memlab.kernel.state import Change, State
from memlab.kernel.storage.backup_folders import list_backup_folders, list_backups
from memlab.kernel.storage.copies import list_copies, unregister_copy
from memlab.kernel.storage.store import Store
from memlab.subjects.purge.planning import PurgePlan
from memlab.subjects.purge.traces import SearchReport, SearchTerms, search_files, search_terms

# The columns of a receipt.
_SCHEMA = {
    "step": pl.String,
    "what": pl.String,
    "where": pl.String,
    "count": pl.Int64,
    "bytes": pl.Int64,
    "how": pl.String,
}
# The maximum number of lines for each step in a terminal.
_SHOWN = 20
# Columns with names that other memories may have too. Origins are unique.
_NAMES = [name for name, column in MEMORY.items() if column.storage == "name" and name != "origin"]


@dataclass(frozen=True)
class Purged(Displayed):
    """The receipt of a purge.

    Attributes
    ----------
    ids
        The ids of the purged memories.
    events, slates
        The number of rewritten events and slates.
    questions
        The number of logged queries that lost their words.
    review
        Remaining memories that may repeat purged content: those that superseded a purged one or
        were superseded by it, and those derived from one. Columns: memory_id, of, how, status,
        text.
    frame
        The receipt as a table without any purged content. Columns: ``step`` ("removed", "searched",
        "found"), ``what``, ``where``, ``count``, ``bytes`` and ``how``. Keep it with
        ``receipt.frame.write_csv(...)``.
    reason
        The reason that the caller passed.

    Examples
    --------
    >>> lab = memlab.open()
    >>> hit = lab.remember("My number is 555-0100.")
    >>> receipt = lab.purge(hit, reason="asked to delete it")
    >>> len(receipt), receipt.found.height
    (1, 0)
    """

    ids: tuple[int, ...]
    events: int
    slates: int
    questions: int
    review: pl.DataFrame
    frame: pl.DataFrame
    reason: str = ""

    @property
    def found(self) -> pl.DataFrame:
        """The rows of ``frame`` about purged content that the search still found."""
        return self.frame.filter(step="found").drop("step", "bytes")

    def __len__(self) -> int:
        return len(self.ids)

    def __str__(self) -> str:
        review = f", {self.review.height:,} to review" if self.review.height else ""
        lines = [
            f"Purged {count_of(len(self), 'memory')} from {count_of(self.events, 'event')} and "
            f"{count_of(self.slates, 'slate')}{review}"
        ]
        for step in ("removed", "searched", "found"):
            rows = [
                _line(row)
                for row in self.frame.filter(step=step).iter_rows(named=True)
                if row["count"]
            ]
            more = [f"{len(rows) - _SHOWN:,} more: see frame"] if len(rows) > _SHOWN else []
            nothing = ["nothing"] if step == "found" and not rows and len(self) else []
            lines += [f"  {step:<8} {line}" for line in (*rows[:_SHOWN], *more, *nothing)]
        return printable("\n".join(lines))

    def __repr__(self) -> str:
        head, _, rest = str(self).partition("\n")
        return printable(f"<{head}>\n{rest}".rstrip())

    def _display(self) -> object:
        return [
            line.strip() for line in str(self).splitlines()
        ], self.review if self.review.height else None


def _line(row: dict[str, Any]) -> str:
    """Return one row of a receipt as a line of text."""
    size = "" if row["bytes"] is None else f", {row['bytes']:,} bytes"
    return " ".join(
        part
        for part in (
            f"{row['count']:,}",
            row["what"] + size,
            f"in {row['where']}" * bool(row["where"]),
            f"({row['how']})" if row["how"] else "",
        )
        if part
    )


def search_terms_of(
    state: State, rows: Sequence[int], gone: PurgePlan, entity: Iterable[str]
) -> SearchTerms:
    """Return the terms to search for after a purge, from the state before the purge."""
    purged = np.array(rows, dtype=np.int64)
    stays = np.setdiff1d(np.arange(len(state)), purged)
    texts = {row + 1: text for row in rows if (text := state.texts.value_at(row))}
    others = pl.DataFrame(
        {"id": stays + 1, "text": state.texts.to_list(stays)},
        schema={"id": pl.Int64, "text": pl.String},
    )
    other_names: set[str] = set()
    for name in _NAMES:
        names = state.names[name]
        other_names.update(
            names.vocabulary[code] for code in np.unique(names.codes[stays]).tolist() if code >= 0
        )
    origins = {
        origin for row in rows if (origin := state.names["origin"].value_at(row)) is not None
    }
    filter_names = gone.filters.values() if len(gone.filters) == 1 else ()
    names_gone = {*gone.names, *gone.clusters, *filter_names, *entity} - origins
    return search_terms(texts, sorted(names_gone), others, other_names)


def list_derived_files(store: Store) -> list[tuple[str, Path, int]]:
    """Return the kind, folder and number of files that a purge removes or rebuilds."""
    journal, derived = store.journal, []
    if store.folder is not None:
        for what, folder, pattern in (
            ("snapshots", "snapshots", "*"),
            ("indexes", "neighbours", "*.index"),
        ):
            count = sum(
                not path.name.startswith(".") for path in (store.folder / folder).glob(pattern)
            )
            derived.append((what, store.folder / folder, count))
    if isinstance(journal, Journal):
        derived += [
            ("backups", backup.path, 1)
            for folder in list_backup_folders(journal)
            for backup in list_backups(folder)
        ]
    return derived


@dataclass
class Receipt:
    """The rows of a receipt while they are collected."""

    rows: list[tuple[str, str, str, int, int | None, str]] = field(default_factory=list)

    def add_removed(self, what: str, count: int, where: object = "", how: str = "") -> None:
        """Add a row about removed content to the receipt."""
        self.rows.append(("removed", what, str(where), count, None, how))

    def add_trace(self, what: str, where: object, how: str, count: int = 1) -> None:
        """Add a row about content that is still present to the receipt."""
        self.rows.append(("found", what, str(where), count, None, how))

    def frame(self) -> pl.DataFrame:
        """Return the collected rows as a frame, ordered by step of the purge."""
        steps = ("removed", "searched", "found")
        ordered = sorted(self.rows, key=lambda row: steps.index(row[0]))
        return pl.DataFrame(ordered, schema=_SCHEMA, orient="row")


def build_receipt(
    store: Store,
    gone: PurgePlan,
    scrub: Scrub,
    change: Change,
    terms: SearchTerms,
    derived: Iterable[tuple[str, Path, int]],
    *,
    remove_exports: bool,
) -> pl.DataFrame:
    """Update mirrors, search all files for traces, and return the receipt.

    The caller holds the lock on derived files, after the purge is complete in the lab's own files.
    """
    receipt = Receipt()
    journal = "memory" if store.folder is None else data_file(store.folder).name
    for what, count in (
        ("memories", len(gone.ids)),
        ("events", len(scrub.bodies)),
        ("slates", len(scrub.slates)),
        ("questions", len(gone.emptied)),
        ("vectors", len(gone.ids)),
        ("edges", len(change.unlink)),
        ("names", len({*gone.names, *gone.clusters})),
    ):
        receipt.add_removed(what, count, journal)
    for what, path, count in derived:
        receipt.add_removed(
            what,
            count,
            path,
            "replaced by one backup of the purged lab" if what == "backups" else "",
        )
    roots = _update_copies(store, receipt)
    report = search_files([path for path, _ in roots], terms)
    _report_search(store, receipt, report, terms, roots, remove_exports=remove_exports)
    return receipt.frame()


def _update_copies(store: Store, receipt: Receipt) -> list[tuple[Path, str]]:
    """Update the mirrors, and return the folders and files to search."""
    # A copy that cannot be reached is reported as found, because it may contain purged content.
    from memlab.io.formats import sweep_drafts

    roots = [] if store.folder is None else [(store.folder, "lab")]
    if isinstance(store.journal, Journal):
        roots += [(folder, "backup") for folder in list_backup_folders(store.journal)]
    mirrors = {
        path: problem for reach in list_hooks("copies") for path, problem in reach(store).items()
    }
    for path, problem in mirrors.items():
        receipt.add_removed("mirrors", int(not problem), path, problem or "updated")
        if problem:
            receipt.add_trace("mirror", path, problem)
        roots.append((path, "mirror"))
    for copy in list_copies(store.journal):
        if copy.kind == "export":
            sweep_drafts(copy.path)
            if not copy.path.exists():
                receipt.add_trace(
                    "export", copy.path, "not there: it was moved, renamed or removed"
                )
            roots.append((copy.path, "export"))
    return roots


def _report_search(
    store: Store,
    receipt: Receipt,
    report: SearchReport,
    terms: SearchTerms,
    roots: Sequence[tuple[Path, str]],
    *,
    remove_exports: bool,
) -> None:
    """Add the extent and findings of the search to the receipt.

    With ``remove_exports``, exports in which purged content was found are deleted and reported.
    """
    # With remove_exports an export is removed at its first trace, and its other traces are then no longer reported.
    opaque = f"; {report.opaque:,} only as bytes" if report.opaque else ""
    if report.decrypted:
        opaque += f"; {report.decrypted:,} encrypted, of which the decrypted rows were searched"
    short = f"; {terms.short:,} texts or names too short to search for" if terms.short else ""
    count = len(terms.patterns) + len(terms.values)
    receipt.rows.append(
        (
            "searched",
            "files",
            "",
            report.files,
            report.bytes,
            f"for {count:,} pieces of texts and names{opaque}{short}",
        )
    )
    exports = {path for path, what in roots if what == "export"}
    removed: dict[Path, str] = {}
    for trace in report.traces:
        root, what = next(
            (
                (path, what)
                for path, what in roots
                if path == trace.file or path in trace.file.parents
            )
        )
        if what == "export" and remove_exports and root not in removed:
            removed[root] = _remove_export(store, root)
        if not removed.get(root, "kept"):
            continue
        note = "an export, which is kept" if root in exports else ""
        receipt.add_trace(
            trace.what,
            trace.file,
            "; ".join(filter(None, (trace.part, note, removed.get(root)))),
            trace.count,
        )
    for path, problem in removed.items():
        receipt.add_removed("exports", int(not problem), path, problem)
    stating: dict[str, list[int]] = {}
    for id, what in terms.stated:
        stating.setdefault(what, []).append(id)
    for what, ids in stating.items():
        more = f" and {len(ids) - 3:,} more" if len(ids) > 3 else ""
        receipt.add_trace(
            what,
            f"memory {', '.join(map(str, ids[:3]))}{more}",
            "contains it too, and was not purged",
            len(ids),
        )


def _remove_export(store: Store, path: Path) -> str:
    """Delete an export; return the error message, or "" on success."""
    from memlab.io.formats import remove_export

    try:
        remove_export(path)
    except MemlabError as error:
        return str(error)
    unregister_copy(store.journal, path)
    return ""

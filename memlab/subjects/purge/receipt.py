"""What a purge is asked to remove, and its receipt: what went from where, and what a search found afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import InputError, MemlabError, UnknownName
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.hooks import list_hooks
from memlab.kernel.journal import Journal, Scrub
from memlab.kernel.schema import MEMORY
from memlab.kernel.state import Change, State, entity_key
from memlab.kernel.storage.backup_folders import list_backup_folders, list_backups
from memlab.kernel.storage.copies import list_copies, unregister_copy
from memlab.kernel.storage.store import Store
from memlab.kernel.verbs.fact_rows import get_entities
from memlab.subjects.purge.planning import PurgePlan
from memlab.subjects.purge.traces import SearchReport, SearchTerms, search_files, search_terms

__all__ = [
    "Chosen",
    "Purged",
    "Receipt",
    "checked_choice",
    "chosen_by",
    "held_files",
    "receipt_of",
    "search_terms_of",
]

_SCHEMA = {
    "step": pl.String,
    "what": pl.String,
    "where": pl.String,
    "count": pl.Int64,
    "bytes": pl.Int64,
    "how": pl.String,
}
_SHOWN = 20
_NAMES = [name for name, column in MEMORY.items() if column.storage == "name" and name != "origin"]


@dataclass(frozen=True)
class Purged(Displayed):
    """The receipt of a purge: what was removed for good, from where, and what a search of all files found afterwards.

    ``events`` and ``slates`` count what was rewritten, ``questions`` the logged questions that lost their words.
    ``review`` has what tells of it and is still there: memories that a purged one superseded or was superseded by, and
    those derived from one (memory_id, of, how, status, text).

    ``frame`` is the receipt itself, to be kept (``done.frame.write_csv(...)``): it names files and ids, and quotes
    nothing of what went. Its columns are ``step`` ("removed", "searched", "found"), ``what``, ``where``, ``count``,
    ``bytes`` and ``how``. ``found`` has the last step alone: where something of it is still held, by what.
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
        """The rows of ``frame`` that say where something is still held; none if the search found nothing."""
        return self.frame.filter(step="found").drop("step", "bytes")

    def __len__(self) -> int:
        return len(self.ids)

    def __str__(self) -> str:
        look = f", {self.review.height:,} to review" if self.review.height else ""
        lines = [
            f"Purged {len(self):,} memories from {self.events:,} events and {self.slates:,} slates{look}"
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
    size = "" if row["bytes"] is None else f", {row['bytes']:,} bytes"
    return " ".join(
        part
        for part in (
            f"{row['count']:,}",
            row["what"] + size,
            f"in {row['where']}" * bool(row["where"]),
            _how(row),
        )
        if part
    )


def _how(row: dict[str, Any]) -> str:
    return f"({row['how']})" if row["how"] else ""


# -- what is asked ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chosen:
    """What goes: the rows, what is asked of questions (project, session or viewer), and the names of an entity."""

    rows: list[int]
    filters: dict[str, str] = field(default_factory=dict)
    entity: tuple[str, ...] = ()


def chosen_by(
    state: State,
    *,
    project: str | None,
    session: str | None,
    subject: str | None,
    creator: str | None,
) -> Chosen:
    """The memories that all of the names given have. UnknownName for one that no memory has."""
    kept = np.ones(len(state), dtype=np.bool_)
    for column, name in (("project", project), ("session", session), ("creator", creator)):
        if name is not None:
            names = state.names[column]
            mine = (
                names.codes == names.code(name)
                if names.code(name) >= 0
                else np.zeros(len(state), dtype=np.bool_)
            )
            if not mine.any():
                raise UnknownName(column, name, (one for one in names.vocabulary))
            kept &= mine
    entity: tuple[str, ...] = ()
    if subject is not None:
        entity = _names_of(state, subject)
        keys, names = {entity_key(name) for name in entity}, state.names["subject"]
        codes = [code for code, name in enumerate(names.vocabulary) if entity_key(name) in keys]
        mine = np.isin(names.codes, codes)
        if not mine.any():
            raise UnknownName("subject", subject, names.vocabulary)
        kept &= mine
    filters = (
        {} if subject is not None else {"project": project, "session": session, "viewer": creator}
    )
    found: list[int] = np.flatnonzero(kept).tolist()
    alone = entity if project is session is creator is None else ()
    return Chosen(found, {name: one for name, one in filters.items() if one is not None}, alone)


def _names_of(state: State, subject: str) -> tuple[str, ...]:
    """All names of an entity, of those that were merged into it too; or the name itself, which no entity may bear."""
    entities = get_entities(state)
    number = entities.find_number(subject)
    if number is None:
        return (subject,)
    listed = entities.summarize(number)
    return (listed.name, *listed.aliases)


def checked_choice(memory: object, overdue: object, **names: object) -> None:
    """InputError unless exactly one way of choosing is given, by names that are texts."""
    for name, given in names.items():
        if given is not None and (not isinstance(given, str) or not given.strip()):
            raise InputError(f"{name} is a name, not {given!r:.60}.")
    if not isinstance(overdue, bool):
        raise InputError(f"overdue is True or False, not {overdue!r:.60}.")
    if sum((memory is not None, any(given is not None for given in names.values()), overdue)) != 1:
        raise InputError(
            "purge takes exactly one of memories, overdue=True, and names: project=, session=, subject= and creator=, "
            "which narrow each other."
        )


# -- the receipt ------------------------------------------------------------------------------------------------------


def search_terms_of(
    state: State, rows: Sequence[int], gone: PurgePlan, entity: Iterable[str]
) -> SearchTerms:
    """What to search for once it is gone; asked of the state that still has it."""
    purged = np.array(rows, dtype=np.int64)
    stays = np.setdiff1d(np.arange(len(state)), purged)
    texts = {row + 1: text for row in rows if (text := state.texts.value_at(row))}
    others = pl.DataFrame(
        {"id": stays + 1, "text": state.texts.to_list(stays)},
        schema={"id": pl.Int64, "text": pl.String},
    )
    borne: set[str] = set()
    for name in _NAMES:
        names = state.names[name]
        borne.update(
            names.vocabulary[code] for code in np.unique(names.codes[stays]).tolist() if code >= 0
        )
    origins = {
        origin for row in rows if (origin := state.names["origin"].value_at(row)) is not None
    }
    alone = gone.filters.values() if len(gone.filters) == 1 else ()
    names_gone = {*gone.names, *gone.clusters, *alone, *entity} - origins
    return search_terms(texts, sorted(names_gone), others, borne)


def held_files(store: Store) -> list[tuple[str, Path, int]]:
    """What a lab keeps beside its journal, by kind, folder and count: a purge rebuilds it, or removes it."""
    journal, found = store.journal, []
    if store.folder is not None:
        for what, folder, pattern in (
            ("snapshots", "snapshots", "*"),
            ("indexes", "neighbours", "*.index"),
        ):
            count = sum(
                not path.name.startswith(".") for path in (store.folder / folder).glob(pattern)
            )
            found.append((what, store.folder / folder, count))
    if isinstance(journal, Journal):
        found += [
            ("backups", one.path, 1)
            for place in list_backup_folders(journal)
            for one in list_backups(place)
        ]
    return found


@dataclass
class Receipt:
    """The rows of a receipt as they are gathered."""

    rows: list[tuple[str, str, str, int, int | None, str]] = field(default_factory=list)

    def removed(self, what: str, count: int, where: object = "", how: str = "") -> None:
        self.rows.append(("removed", what, str(where), count, None, how))

    def found(self, what: str, where: object, how: str, count: int = 1) -> None:
        self.rows.append(("found", what, str(where), count, None, how))

    def frame(self) -> pl.DataFrame:
        steps = ("removed", "searched", "found")
        ordered = sorted(self.rows, key=lambda row: steps.index(row[0]))
        return pl.DataFrame(ordered, schema=_SCHEMA, orient="row")


def receipt_of(
    store: Store,
    gone: PurgePlan,
    scrub: Scrub,
    change: Change,
    wanted: SearchTerms,
    held: Iterable[tuple[str, Path, int]],
    *,
    remove_exports: bool,
) -> pl.DataFrame:
    """Bring the mirrors in step, search every file of the lab and its copies, and tell all of it.

    Needs the lock of files that are made of the journal, after the purge is complete in the lab's own files.
    """
    receipt = Receipt()
    journal = "journal.db" if store.folder is not None else "memory"
    for what, count in (
        ("memories", len(gone.ids)),
        ("events", len(scrub.bodies)),
        ("slates", len(scrub.slates)),
        ("questions", len(gone.emptied)),
        ("vectors", len(gone.ids)),
        ("edges", len(change.unlink)),
        ("names", len({*gone.names, *gone.clusters})),
    ):
        receipt.removed(what, count, journal)
    for what, path, count in held:
        receipt.removed(
            what,
            count,
            path,
            "one of the lab as it is now in their place" if what == "backups" else "",
        )
    roots = _copies_reached(store, receipt)
    done = search_files([path for path, _ in roots], wanted)
    _search(store, receipt, done, wanted, roots, remove_exports=remove_exports)
    return receipt.frame()


def _copies_reached(store: Store, receipt: Receipt) -> list[tuple[Path, str]]:
    """Every folder and file to search, each with what it is: the mirrors are in step from here on."""
    from memlab.io.formats import sweep_drafts

    roots = [] if store.folder is None else [(store.folder, "lab")]
    if isinstance(store.journal, Journal):
        roots += [(place, "backup") for place in list_backup_folders(store.journal)]
    mirrors = {
        path: problem for reach in list_hooks("copies") for path, problem in reach(store).items()
    }
    for path, problem in mirrors.items():
        receipt.removed("mirrors", int(not problem), path, problem or "brought in step")
        if problem:
            receipt.found("mirror", path, problem)
        roots.append((path, "mirror"))
    for one in list_copies(store.journal):
        if one.kind == "export":
            sweep_drafts(one.path)
            if not one.path.exists():
                receipt.found(
                    "export", one.path, "not there: moved, renamed or removed since it was written"
                )
            roots.append((one.path, "export"))
    return roots


def _search(
    store: Store,
    receipt: Receipt,
    done: SearchReport,
    wanted: SearchTerms,
    roots: Sequence[tuple[Path, str]],
    *,
    remove_exports: bool,
) -> None:
    opaque = f"; {done.opaque:,} only as bytes" if done.opaque else ""
    short = f"; {wanted.short:,} texts or names too short to look for" if wanted.short else ""
    count = len(wanted.patterns) + len(wanted.values)
    receipt.rows.append(
        (
            "searched",
            "files",
            "",
            done.files,
            done.bytes,
            f"for {count:,} pieces of texts and names{opaque}{short}",
        )
    )
    exports = {path for path, what in roots if what == "export"}
    removed: dict[Path, str] = {}
    for one in done.found:
        root, what = next(
            ((path, what) for path, what in roots if path == one.file or path in one.file.parents)
        )
        if what == "export" and remove_exports and root not in removed:
            removed[root] = _removed(store, root)
        if not removed.get(root, "kept"):
            continue
        kept = "an export, which is kept" if root in exports else ""
        receipt.found(
            one.what,
            one.file,
            "; ".join(filter(None, (one.held, kept, removed.get(root)))),
            one.count,
        )
    for path, problem in removed.items():
        receipt.removed("exports", int(not problem), path, problem)
    same: dict[str, list[int]] = {}
    for id, what in wanted.stated:
        same.setdefault(what, []).append(id)
    for what, ids in same.items():
        more = f" and {len(ids) - 3:,} more" if len(ids) > 3 else ""
        receipt.found(
            what,
            f"memory {', '.join(map(str, ids[:3]))}{more}",
            "says as much, and stays",
            len(ids),
        )


def _removed(store: Store, path: Path) -> str:
    """Remove an export; why it could not be, or nothing."""
    from memlab.io.formats import remove_export

    try:
        remove_export(path)
    except MemlabError as error:
        return str(error)
    unregister_copy(store.journal, path)
    return ""

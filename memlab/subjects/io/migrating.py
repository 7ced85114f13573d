"""``lab.io.preview`` and ``lab.io.move_to``: moves of memories to another lab."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from memlab.errors import InputError, ReadOnlyLab, UnknownName
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import count_of, printable
from memlab.kernel.journal import Journal
from memlab.kernel.privacy import PERSONAL, refuse, screen_many
from memlab.kernel.schema import MEMORY, RECALLABLE
from memlab.kernel.storage.store import Store
from memlab.kernel.storage.views import ViewerStore
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.gate import Switches, check_on
from memlab.subjects.io.synced import Synced

if TYPE_CHECKING:
    from memlab.io.formats import Bundle

_NOTES = tuple(
    name for name, column in MEMORY.items() if column.storage == "note" and name != "operations"
)
"""Text fields other than the text, such as the summary. Operations are excluded: they are code, and a secret is refused."""

# The columns of ``Preview.frame``, which has them even without rows.
_PREVIEW: dict[str, Any] = {
    "project": pl.String,
    "memories": pl.Int64,
    "live": pl.Int64,
    "private": pl.Int64,
    "characters": pl.Int64,
    "secrets": pl.Int64,
    "personal": pl.Int64,
    "would_go": pl.Boolean,
    "why": pl.String,
}


@dataclass(frozen=True)
class Preview(Displayed):
    """The memories that ``lab.io.move_to`` would move, by project.

    Attributes
    ----------
    frame
        One row for each project:

        - ``project``: null for the memories without a project
        - ``memories``: purged ones are not counted
        - ``live``: the memories that a recall can find
        - ``private`` and ``characters``
        - ``secrets`` and ``personal``: the secrets and personal identifiers in the texts
        - ``would_go``: true for a project that would be moved
        - ``why``: the reason why a project would not be moved

    Examples
    --------
    >>> lab = memlab.open()
    >>> hit = lab.remember("Ship on Friday.", project="work")
    >>> print(lab.io.preview())
    1 memory of 1 project would move, 0 secrets redacted, 0 personal identifiers included
    """

    frame: pl.DataFrame = field(repr=False)

    @property
    def memories(self) -> int:
        """The number of memories that a move would copy."""
        return int(self.frame.filter("would_go")["memories"].sum())

    def __repr__(self) -> str:
        goes = self.frame.filter("would_go")
        stays = self.frame.filter(~pl.col("would_go"))
        text = (
            f"{count_of(self.memories, 'memory')} of {count_of(goes.height, 'project')} would move, "
            f"{count_of(int(goes['secrets'].sum()), 'secret')} redacted, "
            f"{count_of(int(goes['personal'].sum()), 'personal identifier')} included"
        )
        names = ", ".join(
            f"{name or 'memories without a project'} ({why})"
            for name, why in stays["project", "why"].iter_rows()
        )
        return printable(f"{text}; not moved: {names}" if names else text)


@dataclass(frozen=True)
class Moved(Displayed):
    """The result of ``lab.io.move_to``.

    Attributes
    ----------
    target
        The folder of the target lab.
    frame
        One row for each batch, which is stored completely or not at all:

        - ``project``: null for the memories without a project and for a batch of the whole lab
        - ``added``: the number of new memories
        - ``known``: the number of memories already in the target
        - ``purged``: the number of memories that the target purged before
    edges
        The number of added edges.
    redacted
        The number of secrets that were replaced in the texts.

    Examples
    --------
    >>> import tempfile
    >>> lab = memlab.open()
    >>> hit = lab.remember("Ship on Friday.", project="work")
    >>> lab.io.move_to(f"{tempfile.mkdtemp()}/team.memlab").redacted
    0
    """

    target: Path
    frame: pl.DataFrame = field(repr=False)
    edges: int = 0
    redacted: int = 0

    @property
    def added(self) -> int:
        """The number of memories that were added to the target."""
        return int(self.frame["added"].sum())

    def __repr__(self) -> str:
        text = f"{self.added:,} memories and {self.edges:,} edges added to {self.target}"
        if count := int(self.frame["known"].sum()):
            text += f"; {count:,} were already there"
        if purged := int(self.frame["purged"].sum()):
            text += f"; {purged:,} were purged there before and not added"
        return printable(f"{text}; {self.redacted:,} secrets redacted" if self.redacted else text)


def preview(core: Core, exclude: str | Iterable[str | None]) -> Preview:
    """Return the memories that a move would copy; see ``LabIO.preview``."""
    with core.reading() as state:
        frame, switches = state.memories(), state.projection(Switches)
    frame = frame.filter(pl.col("status") != "purged")
    left_out = _check_excluded(exclude, [*frame["project"].unique().to_list(), *switches.projects])
    rows = []
    for project in sorted(
        frame["project"].unique().to_list(), key=lambda name: (name is not None, name or "")
    ):
        some = frame.filter(pl.col("project").eq_missing(pl.lit(project)))
        texts = [text for name in ("text", *_NOTES) for text in some[name].to_list() if text]
        secrets = _count_findings(texts)
        both = _count_findings(texts, frozenset(PERSONAL.values()))
        off = switches.off(project) is not None
        rows.append(
            {
                "project": project,
                "memories": some.height,
                "live": int(some["status"].is_in(list(RECALLABLE)).sum()),
                "private": int((some["visibility"] == "private").sum()),
                "characters": sum(map(len, texts)),
                "secrets": secrets,
                "personal": both - secrets,
                "would_go": not off and project not in left_out,
                "why": "excluded" if project in left_out else "memory is off" if off else None,
            }
        )
    return Preview(pl.DataFrame(rows, schema=_PREVIEW))


def _count_findings(texts: Sequence[str], personal: frozenset[str] = frozenset()) -> int:
    """Return the number of secrets and selected personal identifiers in texts."""
    return sum(len(screening.findings) for screening in screen_many(texts, personal=personal))


def _check_excluded(
    exclude: str | Iterable[str | None], projects: Sequence[str | None]
) -> set[str | None]:
    """Return the names of the excluded projects as a set.

    An unknown name is an error, because a typing error would otherwise move a project that should stay.
    """
    names = [exclude] if isinstance(exclude, str) else list(exclude)
    for name in names:
        if name not in projects:
            raise UnknownName(
                "project", name, [project for project in projects if project is not None]
            )
    return set(names)


def move(
    core: Core, target: Path, exclude: str | Iterable[str | None], open_lab: Callable[[Path], Any]
) -> Moved:
    """Move memories into the lab at ``target``; see ``LabIO.move_to``."""
    journal = core.store.journal
    if not isinstance(journal, Journal) or journal.read_only:
        raise ReadOnlyLab(
            f"{core.store.where} is read-only, but the move must be recorded in it. Open the lab for writing."
        )
    refuse(str(target), "target")
    if core.store.folder is not None and target.absolute() == core.store.folder.absolute():
        raise InputError(f"{target} is this lab. Name another path for the target.")
    plan = preview(core, exclude).frame
    goes = plan.filter("would_go")["project"].to_list()
    with open_lab(target) as other:
        moved = _move_batches(core, other.io.store, target, goes, whole=plan["would_go"].all())
        _record_move(
            core,
            other.io.store,
            moved,
            left_out=int(plan.filter(~pl.col("would_go"))["memories"].sum()),
        )
    return moved


def _move_batches(
    core: Core, other: Store, target: Path, projects: list[str | None], *, whole: bool
) -> Moved:
    """Store the lab in the target as one batch if ``whole``, or one batch per project."""
    from memlab.io.formats import compute_lab_id
    from memlab.subjects.io.results import Loaded
    from memlab.subjects.io.storing import load_bundle

    with other.reading() as state:
        check_on(other, state, projects)

    def store(bundle: Bundle) -> Loaded:
        return load_bundle(other, bundle, own=lambda: compute_lab_id(other.journal))

    rows: list[dict[str, Any]] = []
    edges = redacted = 0
    # The dumps of projections refer to ids, so they are only moved with all memories in one batch.
    for project in [None] if whole else projects:
        bundle, removed = _redact_notes(_read_bundle(core, None if whole else [project]))
        loaded = store(bundle)
        rows.append(
            {"project": project}
            | {what: loaded.count(what) for what in ("added", "known", "purged")}
        )
        edges += loaded.edges
        redacted += len(loaded.redacted) + (removed if loaded.count("added") else 0)
    # Edges between projects are stored last, when both of their ends are in the target.
    if not whole and len(projects) > 1:
        edges += store(_redact_notes(_read_bundle(core, projects))[0]).edges
    schema = {"project": pl.String, "added": pl.Int64, "known": pl.Int64, "purged": pl.Int64}
    return Moved(target, pl.DataFrame(rows, schema=schema), edges, redacted)


def _read_bundle(core: Core, projects: list[str | None] | None) -> Bundle:
    """Return the memories, except purged ones, and edges of some projects; for None, return the whole lab."""
    from memlab.io.formats import build_bundle, compute_lab_id

    where = None
    if projects is not None:
        in_projects = (
            pl.col("project")
            .is_in([name for name in projects if name is not None])
            .fill_null(False)
        )
        where = (in_projects | pl.col("project").is_null() if None in projects else in_projects) & (
            pl.col("status") != "purged"
        )
    with core.reading() as state:
        bundle = build_bundle(
            state, lab=compute_lab_id(core.store.journal), now=core.store.clock(), where=where
        )
    return replace(bundle, source=core.store.where)


def _redact_notes(bundle: Bundle) -> tuple[Bundle, int]:
    """Return a bundle with redacted notes, and the number of redacted secrets.

    Notes are fields such as the summary. Texts are screened when the target stores them. Notes may contain secrets of
    kinds that the gate did not know when they were stored.
    """
    memories, count = bundle.memories, 0
    for name in _NOTES:
        values = memories[name].to_list()
        screenings = screen_many([text or "" for text in values])
        secrets = sum(len(screening.findings) for screening in screenings)
        if secrets:
            clean = [
                screening.text if value is not None else None
                for screening, value in zip(screenings, values, strict=True)
            ]
            memories = memories.with_columns(pl.Series(name, clean, dtype=pl.String))
            count += secrets
    return replace(bundle, memories=memories), count


def _record_move(core: Core, other: Store, moved: Moved, *, left_out: int) -> None:
    """Record a move to the target in this lab, unless the last record is equal."""
    store = core.store
    count = moved.added + int(moved.frame["known"].sum())
    body = {
        "target": str(moved.target.absolute()),
        "lab": other.journal.identity,
        "memories": count,
        "added": moved.added,
        "left_out": left_out,
    }
    last = synced_frame(core).filter(pl.col("target") == body["target"]).tail(1)
    if (
        moved.added
        or last.is_empty()
        or last["memories"].item() != count
        or last["left_out"].item() != left_out
    ):
        with store.writing() as tx:
            tx.event("synced", body, at=store.clock())


def synced_frame(core: Core) -> pl.DataFrame:
    """Return the recorded moves, or no moves for a viewer; see ``LabIO.synced``."""
    with core.reading() as state:
        moves = state.projection(Synced).frame
    return moves.clear() if isinstance(core.store, ViewerStore) else moves

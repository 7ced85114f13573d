"""Memories from one lab into another: what would go, project by project, and the move itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from memlab.errors import InputError, ReadOnlyLab, UnknownName
from memlab.kernel.base.arguments import describe_value
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
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

__all__ = ["Moved", "Preview", "move", "preview", "synced_frame"]

_NOTES = tuple(
    name for name, column in MEMORY.items() if column.storage == "note" and name != "operations"
)
"""Texts beside a memory's own, such as its summary. Operations are code, in which a secret is refused."""

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
    """What ``lab.io.move_to`` would take along; nothing was written.

    Attributes
    ----------
    frame
        A row a project (null: what belongs to none): project, memories (purged ones are none), live (those of which a
        recall knows), private, characters, secrets and personal (identifiers) that are found in their texts today,
        would_go, why (it would not).
    """

    frame: pl.DataFrame = field(repr=False)

    @property
    def memories(self) -> int:
        """How many memories would go."""
        return int(self.frame.filter("would_go")["memories"].sum())

    def __repr__(self) -> str:
        goes = self.frame.filter("would_go")
        stays = self.frame.filter(~pl.col("would_go"))
        said = f"{self.memories:,} memories of {goes.height:,} projects would go, {goes['secrets'].sum():,} secrets of "
        said += f"theirs redacted, {goes['personal'].sum():,} personal identifiers with them"
        names = ", ".join(
            f"{name or 'what has no project'} ({why})"
            for name, why in stays["project", "why"].iter_rows()
        )
        return printable(f"{said}; these stay: {names}" if names else said)


@dataclass(frozen=True)
class Moved(Displayed):
    """What ``lab.io.move_to`` did.

    Attributes
    ----------
    target
        The lab that it went to.
    frame
        A row a batch, each whole or not at all: project (null: what belongs to none, or of a batch of all, all),
        added, known (they were there already), purged (they were purged there, and stay away).
    edges
        How many edges were added.
    redacted
        How many secrets were taken out of the texts on the way.
    """

    target: Path
    frame: pl.DataFrame = field(repr=False)
    edges: int = 0
    redacted: int = 0

    @property
    def added(self) -> int:
        """How many memories were added to the target."""
        return int(self.frame["added"].sum())

    def __repr__(self) -> str:
        said = f"{self.added:,} memories and {self.edges:,} edges added to {self.target}"
        if known := int(self.frame["known"].sum()):
            said += f"; {known:,} were there already"
        if purged := int(self.frame["purged"].sum()):
            said += f"; {purged:,} had been purged there and stay away"
        return printable(f"{said}; {self.redacted:,} secrets redacted" if self.redacted else said)


def preview(core: Core, exclude: Iterable[str | None]) -> Preview:
    """What would go; see ``LabIO.preview``."""
    with core.reading() as state:
        frame, switches = state.memories(), state.projection(Switches)
    frame = frame.filter(pl.col("status") != "purged")
    left_out = _excluded(exclude, [*frame["project"].unique().to_list(), *switches.projects])
    rows = []
    for project in sorted(
        frame["project"].unique().to_list(), key=lambda name: (name is not None, name or "")
    ):
        some = frame.filter(pl.col("project").eq_missing(pl.lit(project)))
        texts = [text for name in ("text", *_NOTES) for text in some[name].to_list() if text]
        secrets = sum(len(one.findings) for one in screen_many(texts))
        both = sum(
            len(one.findings) for one in screen_many(texts, personal=frozenset(PERSONAL.values()))
        )
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


def _excluded(given: Iterable[str | None], projects: Sequence[str | None]) -> set[str | None]:
    """The projects that stay; UnknownName for one that is not there, as a slip would send what was to stay."""
    if isinstance(given, str):
        given = (given,)
    if not isinstance(given, Iterable):
        raise InputError(f"exclude holds names of projects, not {describe_value(given)}.")
    names = list(given)
    for name in names:
        if name is not None and not isinstance(name, str):
            raise InputError(
                f"exclude holds names of projects, or None for what belongs to none, not {describe_value(name)}."
            )
        if name not in projects:
            raise UnknownName("project", name, [one for one in projects if one is not None])
    return set(names)


def move(
    core: Core, target: Path, exclude: Iterable[str | None], open_lab: Callable[[Path], Any]
) -> Moved:
    """Bring what is not excluded into the lab at ``target``; see ``LabIO.move_to``."""
    journal = core.store.journal
    if not isinstance(journal, Journal) or journal.read_only:
        raise ReadOnlyLab(
            f"{core.store.where} cannot be written, and a move is noted in it. Open the lab for writing."
        )
    refuse(str(target), "target")
    if core.store.folder is not None and target.absolute() == core.store.folder.absolute():
        raise InputError(f"{target} is this lab. Move it to another path.")
    plan = preview(core, exclude).frame
    goes = plan.filter("would_go")["project"].to_list()
    with open_lab(target) as there:
        moved = _moved(core, there.io.store, target, goes, whole=plan["would_go"].all())
        _mark(
            core,
            there.io.store,
            moved,
            left_out=int(plan.filter(~pl.col("would_go"))["memories"].sum()),
        )
    return moved


def _moved(
    core: Core, there: Store, target: Path, projects: list[str | None], *, whole: bool
) -> Moved:
    from memlab.io.formats import compute_lab_id
    from memlab.subjects.io.results import Loaded
    from memlab.subjects.io.storing import load_bundle

    with there.reading() as state:
        check_on(there, state, projects)

    def store(bundle: Bundle) -> Loaded:
        return load_bundle(there, bundle, own=lambda: compute_lab_id(there.journal))

    rows: list[dict[str, Any]] = []
    edges = redacted = 0
    # Of a lab that goes whole its registers go too, which speak of ids: one batch. Else a batch a project.
    for project in [None] if whole else projects:
        bundle, taken = _screened(_bundle(core, None if whole else [project]))
        loaded = store(bundle)
        rows.append(
            {"project": project}
            | {what: loaded.count(what) for what in ("added", "known", "purged")}
        )
        edges += loaded.edges
        redacted += len(loaded.redacted) + (taken if loaded.count("added") else 0)
    # edges from one project to another: both ends are there now
    if not whole and len(projects) > 1:
        edges += store(_screened(_bundle(core, projects))[0]).edges
    schema = {"project": pl.String, "added": pl.Int64, "known": pl.Int64, "purged": pl.Int64}
    return Moved(target, pl.DataFrame(rows, schema=schema), edges, redacted)


def _bundle(core: Core, projects: list[str | None] | None) -> Bundle:
    """The memories of these projects with the edges among them; None: all of the lab, as an export has it."""
    from memlab.io.formats import build_bundle, compute_lab_id

    where = None
    if projects is not None:
        named = (
            pl.col("project").is_in([one for one in projects if one is not None]).fill_null(False)
        )
        where = (named | pl.col("project").is_null() if None in projects else named) & (
            pl.col("status") != "purged"
        )
    with core.reading() as state:
        made = build_bundle(
            state, lab=compute_lab_id(core.store.journal), now=core.store.clock(), where=where
        )
    return replace(made, source=core.store.where)


def _screened(bundle: Bundle) -> tuple[Bundle, int]:
    """The bundle without secrets in summaries and other notes (texts pass the gate as they are stored), and how many.

    What was stored before the gate knew a kind of secret is found today.
    """
    memories, count = bundle.memories, 0
    for name in _NOTES:
        values = memories[name].to_list()
        found = screen_many([text or "" for text in values])
        taken = sum(len(one.findings) for one in found)
        if taken:
            clean = [
                one.text if value is not None else None
                for one, value in zip(found, values, strict=True)
            ]
            memories = memories.with_columns(pl.Series(name, clean, dtype=pl.String))
            count += taken
    return replace(bundle, memories=memories), count


def _mark(core: Core, there: Store, moved: Moved, *, left_out: int) -> None:
    """Note in this lab that it is synced with the target, unless that was noted and nothing has come since."""
    store = core.store
    count = moved.added + int(moved.frame["known"].sum())
    body = {
        "target": str(moved.target.absolute()),
        "lab": there.journal.identity,
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
    """One row for each move; see ``LabIO.synced``."""
    with core.reading() as state:
        moves = state.projection(Synced).frame
    return moves.clear() if isinstance(core.store, ViewerStore) else moves

"""``lab.load``: whatever it is given, read in batches, each of them a transaction; what is here already is left out."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import polars as pl

from memlab.errors import InputError, PrivacyError, UnknownName
from memlab.kernel.base.disk import is_url
from memlab.kernel.base.progress import Step, bar
from memlab.kernel.privacy import Finding
from memlab.kernel.state import refuse_secret_values, rows_to_columns, validate_columns
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.gate import check_on
from memlab.kernel.verbs.linking import Linker, check_linking
from memlab.kernel.verbs.policies.policies import LabPolicies
from memlab.kernel.verbs.projections import new_state
from memlab.kernel.verbs.remembering.known import Known
from memlab.kernel.verbs.remembering.remember import Remembering

if TYPE_CHECKING:
    from memlab.io.formats import Bundle, Notes, Source
    from memlab.kernel.policies import Pack
    from memlab.subjects.io.results import Loaded

__all__ = ["Given", "load"]

_ROWS, _BYTES = 2_000, 4 << 20
"""Of one transaction, at most."""
_SECONDS = 1.0
"""Before progress is shown."""

_FRAME = {"theirs": pl.Int64, "id": pl.Int64, "what": pl.String, "origin": pl.String}


@dataclass(frozen=True)
class Given:
    """What a caller says of what is loaded; see ``Lab.load``."""

    columns: Mapping[str, str | None]
    format: str | None = None
    project: str | None = None
    session: str | None = None
    linking: str | None = None
    policies: bool = False
    strict: bool = False
    extract: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether nothing is said that only rows and messages need."""
        return (
            not self.columns
            and self.format is None
            and self.session is None
            and self.linking in (None, "off")
        )


def _path_of(x: Any) -> Path | None:
    """The path that is to be loaded; None where it is data."""
    if not isinstance(x, str | Path):
        return None
    named = str.__str__(x) if isinstance(x, str) else x
    if is_url(named):
        raise InputError(
            f"{named} is a URL, and memlab reads local files only. Download it, and load the file."
        )
    path = Path(named)
    try:
        return path.expanduser()
    except RuntimeError:
        raise InputError(f"There is nothing at {path}: no user of that name is here.") from None


def _nearest(path: Path) -> str:
    """A clause that names the files beside ``path`` whose names are nearest to its own, or nothing."""
    try:
        near = difflib.get_close_matches(
            path.name, [one.name for one in path.parent.iterdir()], n=2, cutoff=0.6
        )
    except OSError:
        return ""
    return (
        f" Did you mean {' or '.join(str(path.with_name(name)) for name in near)}?" if near else ""
    )


def load(
    x: Any,
    given: Given,
    core: Core,
    remembering: Remembering,
    linker: Linker,
    policies: LabPolicies,
    extraction: Any,
    *,
    progress: bool = False,
) -> Loaded:
    """Load ``x``: an export of a lab or of another tool as it is, anything else as rows; see ``memlab.load``."""
    from memlab.io.formats import (
        IMPORTS,
        READERS,
        Options,
        build_bundle_from_frame,
        find_reader,
        is_memories,
        read_file,
        read_folder,
        read_object,
    )

    check_linking(given.linking)
    if given.format is not None and given.format not in READERS:
        raise UnknownName("format", given.format, READERS)
    path = _path_of(x)
    if path is not None:
        if not path.exists():
            raise InputError(f"There is nothing at {path}.{_nearest(path)}")
        reader = find_reader(path, given.format)
        if reader is not None and reader.name in IMPORTS:
            return _imported(path, reader.name, given, core, policies)
    elif given.format in IMPORTS:
        raise InputError(f'format="{given.format}" is that of a file, and no path was given.')
    elif is_memories(x) and given.is_plain:
        return _stored(build_bundle_from_frame(x), given, core, None)
    options = Options(given.format, given.columns, given.session, given.project, given.strict)
    if path is None:
        sources: Iterator[Source] = iter((read_object(x, options),))
    elif path.is_dir():
        sources = read_folder(path, options)
    else:
        sources = iter((read_file(path, options),))
    with core.reading():
        how = str(core.pack.settings["linking"]) if given.linking is None else given.linking
    loading = _Loading(
        core, remembering, "off" if how == "off" else "later", heard=[] if given.extract else None
    )
    with ExitStack() as stack:
        shown = _Shown(stack, progress)
        for source in sources:
            loading.add(source, shown)
            if loading.heard:
                loading.extracted += extraction.of_chats(loading.heard, given.linking)
                loading.heard = []
    if how == "now":
        linker.link_all(None)
    return loading.loaded("what was given" if path is None else path.name or str(path))


def _imported(path: Path, format: str, given: Given, core: Core, policies: LabPolicies) -> Loaded:
    """An export, whole or not at all, with ids, times, counts and edges."""
    from memlab.io.formats import read_bundle, read_lab, restore_pack

    rows_only = {
        "extract": given.extract,
        "columns": given.columns,
        "session": given.session,
        "linking": given.linking not in (None, "off"),
    }
    for name, said in rows_only.items():
        if said:
            raise InputError(
                f"{name}= is for rows and messages: {path.name} is an export ({format}), which says it."
            )
    store = core.store
    bundle = (
        read_lab(path, new_state(), now=store.clock())
        if format == "lab"
        else read_bundle(path, format)
    )
    pack = (
        restore_pack(bundle.policies, bundle.source)
        if given.policies and bundle.policies is not None
        else None
    )
    loaded = _stored(bundle, given, core, pack)
    if pack is not None:
        policies.use(pack, reason=f"came with {bundle.source}")
    return loaded


def _stored(bundle: Bundle, given: Given, core: Core, pack: Pack | None) -> Loaded:
    """Store a bundle, whole or not at all; ``pack`` is the one that comes with it and is used next."""
    from memlab.io.formats import compute_lab_id
    from memlab.subjects.io.storing import load_bundle

    with core.reading() as state:
        check_on(
            core.store,
            state,
            bundle.memories["project"].unique().to_list()
            if given.project is None
            else [given.project],
        )
    return load_bundle(
        core.store,
        bundle,
        own=lambda: compute_lab_id(core.store.journal),
        project=given.project,
        opened=pack is not None and bool(pack.settings["open-words"]),
    )


@dataclass
class _Shown:
    """Progress, once a second has gone by."""

    stack: ExitStack
    wanted: bool
    began: float = field(default_factory=monotonic)
    step: Step | None = None
    source: Source | None = None
    done: int = 0

    def at(self, source: Source, rows: int) -> None:
        if not self.wanted or (self.step is None and monotonic() - self.began < _SECONDS):
            return
        if source is not self.source:
            self.stack.close()
            self.step = self.stack.enter_context(
                bar(
                    True,
                    source.size,
                    unit=source.unit if source.size else "row",
                    desc=source.notes.source,
                )
            )
            self.source, self.done = source, 0
        done = source.done() or rows
        if self.step is not None:
            self.step(done - self.done)
        self.done = done


class _Loading:
    """One call of ``load``: what it has read and stored so far."""

    def __init__(
        self,
        core: Core,
        remembering: Remembering,
        linking: str,
        heard: list[tuple[dict[str, Any], bool]] | None = None,
    ) -> None:
        self._core, self._remembering, self._linking = core, remembering, linking
        self.heard = heard
        """Rows of the source, each with whether it is new, where facts are to be extracted of them."""
        self.extracted = 0
        self._notes: list[Notes] = []
        self._parts: list[pl.DataFrame] = []
        self._redacted: list[tuple[int, Finding]] = []
        self._known = Known()

    def add(self, source: Source, shown: _Shown) -> None:
        """Every row of a source, in transactions of some megabytes."""
        self._notes.append(source.notes)
        places: list[int] = []
        rows: list[dict[str, Any]] = []
        size = count = 0
        for place, row in source.rows:
            places.append(place)
            rows.append(row)
            size += len(row["text"])
            if len(rows) >= _ROWS or size >= _BYTES:
                self._store(places, rows, source.notes)
                count += len(rows)
                shown.at(source, count)
                places, rows, size = [], [], 0
        self._store(places, rows, source.notes)

    def _store(self, places: list[int], rows: list[dict[str, Any]], notes: Notes) -> None:
        if not rows:
            return
        try:
            self._remember(places, rows, notes)
        except (InputError, PrivacyError):
            # Slow, and only where something is wrong: which rows is it?
            right = [self._is_right(*one, notes) for one in zip(places, rows, strict=True)]
            if all(right):
                raise
            places = [place for place, fits in zip(places, right, strict=True) if fits]
            rows = [row for row, fits in zip(rows, right, strict=True) if fits]
            if rows:
                self._remember(places, rows, notes)

    def _is_right(self, place: int, row: dict[str, Any], notes: Notes) -> bool:
        try:
            columns = validate_columns(
                rows_to_columns([row]), now=0, open_words=self._core.open_words
            )
            refuse_secret_values(
                {name: values for name, values in columns.items() if name != "text"}
            )
        except (InputError, PrivacyError) as problem:
            why = (
                "secret in a name"
                if isinstance(problem, PrivacyError)
                else "value that a memory cannot have"
            )
            notes.skip(place, why, str(problem).removeprefix("Row 0: ").replace(" (row 0)", ""))
            return False
        return True

    def _remember(self, places: list[int], rows: list[dict[str, Any]], notes: Notes) -> None:
        known = self._known
        known.timed = [row.get("at") is not None for row in rows]
        stored = self._remembering.remember_many(
            rows, chain=True, linking=self._linking, known_rows=known
        )
        known.stored()
        if self.heard is not None:
            pairs = zip(rows, known.found, strict=True)
            self.heard += [(row, what == "added") for row, what in pairs if what != "purged"]
        ids = iter(stored.ids)
        here = [next(ids) if what == "added" else None for what in known.found]
        data = {
            "theirs": places,
            "id": here,
            "what": known.found,
            "origin": [notes.source] * len(places),
        }
        self._parts.append(pl.DataFrame(data, schema=_FRAME))
        self._redacted += stored.redacted

    def loaded(self, source: str) -> Loaded:
        """What came of it."""
        from memlab.subjects.io.results import GUESSED, PLACES, Loaded

        left_out, skipped = Counter[str](), Counter[str]()
        for notes in self._notes:
            left_out += notes.left_out
            skipped += notes.skipped
        guessed = [(notes.source, *one) for notes in self._notes for one in notes.guessed.items()]
        places = [place for notes in self._notes for place in notes.locations]
        return Loaded(
            source,
            pl.concat(self._parts) if self._parts else pl.DataFrame(schema=_FRAME),
            left_out=dict(left_out),
            redacted=tuple(self._redacted),
            skipped=dict(skipped),
            guessed=pl.DataFrame(guessed, schema=GUESSED, orient="row"),
            places=pl.DataFrame(places, schema=PLACES, orient="row"),
            extracted=self.extracted,
        )

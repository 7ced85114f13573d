"""``lab.load``: data of any source is stored in batches, without rows that the lab already has."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import polars as pl

from memlab.errors import InputError, PrivacyError, UnknownName
from memlab.kernel.base.clock import to_micros
from memlab.kernel.base.disk import is_url
from memlab.kernel.base.progress import Step, bar
from memlab.kernel.journal import KeySource
from memlab.kernel.privacy import Finding
from memlab.kernel.state import refuse_secret_values, rows_to_columns, validate_columns
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.gate import check_on
from memlab.kernel.verbs.linking import Linker, check_linking
from memlab.kernel.verbs.policies.policies import LabPolicies
from memlab.kernel.verbs.projections import new_state
from memlab.kernel.verbs.remembering.known import Known
from memlab.kernel.verbs.remembering.remember import Remembering
from memlab.subjects.io.results import GUESSED, PLACES, ROWS, Loaded

if TYPE_CHECKING:
    from memlab.io.formats import Bundle, Notes, Source
    from memlab.kernel.policies import Pack

_ROWS, _BYTES = 2_000, 4 << 20
"""The maximum number of rows, and of characters of text, in one transaction."""
_SECONDS = 1.0
"""The seconds before progress is shown, so that short loads show no progress."""

# ``theirs`` is the id in the source, ``what`` the outcome of the row, ``origin`` the lab that the row came from.
_FRAME = {"theirs": pl.Int64, "id": pl.Int64, "what": pl.String, "origin": pl.String}


@dataclass(frozen=True)
class LoadOptions:
    """The options of a call of ``lab.load``; see ``Lab.load``."""

    columns: Mapping[str, str | None]
    format: str | None = None
    project: str | None = None
    session: str | None = None
    linking: str | None = None
    policies: bool = False
    strict: bool = False
    extract: bool = False
    key: KeySource | None = None
    seconds: float | None = None

    @property
    def is_plain(self) -> bool:
        """Whether no option is set that applies only to rows and messages."""
        return (
            not self.columns
            and self.format is None
            and self.session is None
            and self.linking in (None, "off")
            and self.key is None
        )


def _path_of(x: Any) -> Path | None:
    """Return the path to load, or None if ``x`` is data instead of a path.

    Raises InputError for a URL.
    """
    if not isinstance(x, str | Path):
        return None
    name = str.__str__(x) if isinstance(x, str) else x
    if is_url(name):
        raise InputError(
            f"{name} is a URL, and memlab reads local files only. Download it and load the file."
        )
    path = Path(name)
    try:
        return path.expanduser()
    except RuntimeError:
        raise InputError(
            f"There is nothing at {path}: this machine has no such user. Check the path."
        ) from None


def _suggest_files(path: Path) -> str:
    """Return a sentence that suggests files with similar names, or "" without such files."""
    try:
        names = difflib.get_close_matches(
            path.name, [entry.name for entry in path.parent.iterdir()], n=2, cutoff=0.6
        )
    except OSError:
        return ""
    return (
        f" Did you mean {' or '.join(str(path.with_name(name)) for name in names)}?"
        if names
        else ""
    )


def load(
    x: Any,
    options: LoadOptions,
    core: Core,
    remembering: Remembering,
    linker: Linker,
    policies: LabPolicies,
    extraction: Any,
    *,
    progress: bool = False,
) -> Loaded:
    """Load an export as a bundle, or any other data as rows; see ``lab.load``."""
    from memlab.io.formats import (
        IMPORTS,
        READERS,
        Options,
        build_bundle_from_frame,
        find_reader,
        is_archive,
        is_memories,
        read_file,
        read_folder,
        read_memory_table,
        read_object,
    )

    check_linking(options.linking)
    if options.format is not None and options.format not in READERS:
        raise UnknownName("format", options.format, READERS)
    path = _path_of(x)
    if path is not None:
        if not path.exists():
            raise InputError(f"There is nothing at {path}.{_suggest_files(path)}")
        reader = find_reader(path, options.format)
        fits = options.key is None or (reader is not None and reader.name == "lab")
        if reader is not None and reader.name in IMPORTS and fits:
            return _load_export(path, reader.name, options, core, policies)
        if options.is_plain and (table := read_memory_table(path)) is not None:
            return _store_bundle(build_bundle_from_frame(table, path.name), options, core, None)
    elif options.format in IMPORTS:
        raise InputError(
            f'format="{options.format}" is read from disk. Give the path of the file or folder.'
        )
    elif is_memories(x) and options.is_plain:
        return _store_bundle(build_bundle_from_frame(x), options, core, None)
    if options.key is not None:
        raise InputError(
            "key= applies only to the folder of an encrypted lab. Omit it for other data."
        )
    reading = Options(
        options.format, options.columns, options.session, options.project, options.strict
    )
    if path is None:
        sources: Iterator[Source] = iter((read_object(x, reading),))
    elif path.is_dir() or is_archive(path):
        sources = read_folder(path, reading)
    else:
        sources = iter((read_file(path, reading),))
    with core.reading():
        how = str(core.pack.settings["linking"]) if options.linking is None else options.linking
    loading = _Loading(
        core,
        remembering,
        {"now": "later"}.get(how, how),
        messages=[] if options.extract else None,
        seconds=options.seconds,
    )
    # Facts are extracted after each source, so that a conversation is read as a whole. Pairs are linked once at the end.
    with ExitStack() as stack:
        display = _Progress(stack, progress)
        for source in sources:
            loading.add(source, display)
            if loading.messages:
                loading.extracted += extraction.of_chats(loading.messages, options.linking)
                loading.messages = []
    if how == "now":
        linker.link_all(None)
    return loading.result(path)


def _load_export(
    path: Path, format: str, options: LoadOptions, core: Core, policies: LabPolicies
) -> Loaded:
    """Load an export with its ids, times, counts and edges, completely or not at all, and install its pack if asked."""
    from memlab.io.formats import read_bundle, read_lab, restore_pack

    rows_only = {
        "extract": options.extract,
        "columns": options.columns,
        "session": options.session,
        "linking": options.linking not in (None, "off"),
    }
    for name, is_set in rows_only.items():
        if is_set:
            raise InputError(
                f"{name}= applies to rows and messages only, and {path.name} is an export ({format}). Omit it."
            )
    store = core.store
    bundle = (
        read_lab(path, new_state(), now=store.clock(), key=options.key)
        if format == "lab"
        else read_bundle(path, format)
    )
    pack = (
        restore_pack(bundle.policies, bundle.source)
        if options.policies and bundle.policies is not None
        else None
    )
    loaded = _store_bundle(bundle, options, core, pack)
    if pack is not None:
        policies.use(pack, reason=f"came with {bundle.source}")
    return loaded


def _store_bundle(bundle: Bundle, options: LoadOptions, core: Core, pack: Pack | None) -> Loaded:
    """Store all new memories of a bundle, or no memory after an error.

    The caller installs ``pack`` afterwards. Words that it allows are accepted.
    """
    from memlab.io.formats import compute_lab_id
    from memlab.subjects.io.storing import load_bundle

    with core.reading() as state:
        check_on(
            core.store,
            state,
            bundle.memories["project"].unique().to_list()
            if options.project is None
            else [options.project],
        )
    return load_bundle(
        core.store,
        bundle,
        own=lambda: compute_lab_id(core.store.journal),
        project=options.project,
        opened=pack is not None and bool(pack.settings["open-words"]),
    )


@dataclass
class _Progress:
    """The progress bars of a load, one for each source, which appear after the first second."""

    stack: ExitStack
    wanted: bool
    began: float = field(default_factory=monotonic)
    step: Step | None = None
    source: Source | None = None
    done: int = 0

    def update(self, source: Source, rows: int) -> None:
        """Show on the progress bar that ``rows`` rows of a source are stored."""
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
    """A running call of ``load``, with the outcomes of the rows stored so far.

    ``messages`` collects rows for the extraction of facts, each with a flag whether it is new. It is None if no facts
    are extracted.
    """

    def __init__(
        self,
        core: Core,
        remembering: Remembering,
        linking: str,
        messages: list[tuple[dict[str, Any], bool]] | None = None,
        seconds: float | None = None,
    ) -> None:
        self._seconds, self._ends = seconds, math.inf if seconds is None else monotonic() + seconds
        self._core, self._remembering, self._linking = core, remembering, linking
        self.messages = messages
        self.extracted = 0
        self._notes: list[Notes] = []
        self._parts: list[pl.DataFrame] = []
        self._rows: list[pl.DataFrame] = []
        self._redacted: list[tuple[int, Finding]] = []
        self._known = Known()

    def add(self, source: Source, display: _Progress) -> None:
        """Store all rows of a source, in transactions of a few megabytes each."""
        self._notes.append(source.notes)
        places: list[int] = []
        rows: list[dict[str, Any]] = []
        size = count = 0
        for line, row in source.rows:
            if monotonic() > self._ends:
                self._store(places, rows, source.notes)
                raise InputError(
                    f"Reading {source.notes.source} stopped at row {line:,} after "
                    f"{self._seconds:g} seconds. The rows before it are stored. Load it "
                    "again to continue, with a larger seconds= (None: no limit)."
                )
            places.append(line)
            rows.append(row)
            size += len(row["text"])
            if len(rows) >= _ROWS or size >= _BYTES:
                self._store(places, rows, source.notes)
                count += len(rows)
                display.update(source, count)
                places, rows, size = [], [], 0
        self._store(places, rows, source.notes)

    def _store(self, places: list[int], rows: list[dict[str, Any]], notes: Notes) -> None:
        """Store a batch of rows; invalid rows are recorded in ``notes`` and skipped."""
        if not rows:
            return
        try:
            self._remember(places, rows, notes)
        except (InputError, PrivacyError):
            # The rows are checked one by one only now, to find the invalid ones, because this is slow.
            valid = [self._is_valid(*pair, notes) for pair in zip(places, rows, strict=True)]
            if all(valid):
                raise
            places = [line for line, fits in zip(places, valid, strict=True) if fits]
            rows = [row for row, fits in zip(rows, valid, strict=True) if fits]
            if rows:
                self._remember(places, rows, notes)

    def _is_valid(self, line: int, row: dict[str, Any], notes: Notes) -> bool:
        """Return whether a row can be stored; add the reason to ``notes`` otherwise."""
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
            notes.skip(line, why, str(problem).removeprefix("Row 0: ").replace(" (row 0)", ""))
            return False
        return True

    def _remember(self, places: list[int], rows: list[dict[str, Any]], notes: Notes) -> None:
        """Store rows in one transaction, and record the outcome of each row."""
        outcomes = self._known
        outcomes.timed = [notes.has_own_times and row.get("at") is not None for row in rows]
        stored = self._remembering.remember_many(
            rows, chain=True, linking=self._linking, known_rows=outcomes
        )
        outcomes.stored()
        if self.messages is not None:
            pairs = zip(rows, outcomes.found, strict=True)
            self.messages += [(row, what == "added") for row, what in pairs if what != "purged"]
        ids = iter(stored.ids)
        ids_here = [next(ids) if what == "added" else None for what in outcomes.found]
        data = {
            "theirs": places,
            "id": ids_here,
            "what": outcomes.found,
            "origin": [notes.source] * len(places),
        }
        self._parts.append(pl.DataFrame(data, schema=_FRAME))
        described = {
            "speaker": [row.get("speaker") for row in rows],
            "session": [row.get("session") for row in rows],
            "at": [None if (at := row.get("at")) is None else to_micros(at) for row in rows],
        }
        self._rows.append(pl.DataFrame(described, schema_overrides={"at": pl.Int64}).cast(ROWS))
        self._redacted += stored.redacted

    def result(self, path: Path | None) -> Loaded:
        """Return the result of a load; ``path`` is None if the caller passed data."""
        left_out, skipped = Counter[str](), Counter[str]()
        for notes in self._notes:
            left_out += notes.left_out
            skipped += notes.skipped
        guessed = [(notes.source, *item) for notes in self._notes for item in notes.guessed.items()]
        places = [skipped_row for notes in self._notes for skipped_row in notes.locations]
        return Loaded(
            "the data" if path is None else path.name or str(path),
            pl.concat(self._parts) if self._parts else pl.DataFrame(schema=_FRAME),
            left_out=dict(left_out),
            redacted=tuple(self._redacted),
            skipped=dict(skipped),
            guessed=pl.DataFrame(guessed, schema=GUESSED, orient="row"),
            places=pl.DataFrame(places, schema=PLACES, orient="row"),
            extracted=self.extracted,
            rows=pl.concat(self._rows) if self._rows else pl.DataFrame(schema=ROWS),
            path=None if path is None else str(path),
            proposed={
                field: name for notes in self._notes for field, name in notes.proposed.items()
            },
        )

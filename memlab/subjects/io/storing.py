"""Import of a bundle into a lab, which is checked completely and then stored in one transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import polars as pl

from memlab.errors import (
    DatasetError,
    InputError,
    MemlabError,
    NewerLab,
    PolicyError,
    PrivacyError,
    UnknownName,
)
from memlab.io.formats import ENGINE, FRAME, Bundle
from memlab.kernel.hooks import load_part
from memlab.kernel.privacy import (
    Screening,
    personal_kinds,
    refuse_strings,
    screen_many,
    split_sensitive,
)
from memlab.kernel.schema import FIELDS, MEMORY, RELATIONS
from memlab.kernel.state import (
    PREFIXED,
    Change,
    State,
    Tombstones,
    add_prefix,
    build_values,
    compact_columns,
    describe_redactions,
    get_prefix,
    refuse_secret_values,
    register_hash_paths,
    validate_columns,
)
from memlab.kernel.storage.store import Store
from memlab.subjects.io.edges import graph_of
from memlab.subjects.io.results import ROWS, Loaded

_CHUNK = 10_000
"""The maximum number of memories in one event. Their columns take a few megabytes."""


@dataclass(frozen=True)
class Screened:
    """The checked and redacted rows of a bundle, ordered by id, as columns of an event.

    Attributes
    ----------
    ids
        The ids in the bundle.
    columns
        The values of every column except the text.
    screenings
        The texts with the findings of the privacy gate.
    created
        The time of creation of each memory, or None if the file has none.
    accessed
        The time of the last access of each memory, or None if it equals the time of creation.
    uses
        The times of the latest uses of each memory.
    superseded
        The id, in the bundle, of the memory that supersedes each memory, or None.
    origins
        The lab and id, or the file, that each memory came from.
    purged
        True for a memory that was purged where the bundle was written.
    sensitive
        The number of paths that were left out because they name files of secrets.
    """

    ids: list[int]
    columns: dict[str, list[Any]]
    screenings: list[Screening]
    created: list[int | None]

    accessed: list[int | None]
    uses: list[list[int]]
    superseded: list[int | None]
    origins: list[str]
    purged: list[bool]
    sensitive: int

    def embedded_text(self, row: int) -> str:
        """Return the text of a row in embedded form, which includes the speaker or title."""
        fields = (self.columns.get(name) for name in PREFIXED)
        prefix = get_prefix(*(None if values is None else values[row] for values in fields))
        return add_prefix(self.screenings[row].text, prefix)


def load_bundle(
    store: Store,
    bundle: Bundle,
    *,
    own: Callable[[], str],
    project: str | None = None,
    opened: bool = False,
) -> Loaded:
    """Add all new memories of a bundle, or no memory after an error.

    ``own`` returns the name of this lab, so that a lab's own export adds nothing to it. New kinds and relations are
    accepted if the active pack allows them, or the pack that comes with the bundle (``opened``).
    """
    now = store.clock()
    with store.reading():
        pack = store.versions.pack
    open_words = opened or bool(pack.settings["open-words"])
    checked = check_bundle(bundle, now, personal_kinds(pack.settings), open_words, project)
    # Embedding is slow, so it runs before the transaction. Another process may write meanwhile, so rows are compared
    # with the lab twice. Only rows that are new both times are stored.
    with store.reading():
        _check_registers(store.state, bundle)
        embedded_rows = [
            row
            for row, what in enumerate(_match_rows(store.state, bundle, checked, own()))
            if what is None
        ]
    encoded = store.embedder.encode(list(map(checked.embedded_text, embedded_rows)))
    vector_of = {row: position for position, row in enumerate(embedded_rows)}
    with store.writing() as tx:
        state = store.state
        matches = _match_rows(state, bundle, checked, own())
        rows = [row for row, what in enumerate(matches) if what is None and row in vector_of]
        first = tx.next_id
        id_of = {checked.ids[row]: first + position for position, row in enumerate(rows)}
        known_ids = {
            checked.ids[row]: match
            for row, match in enumerate(matches)
            if isinstance(match, int) and match > 0
        }
        ids_here = known_ids | id_of
        changed = _list_filled_registers(state, bundle)
        registers = changed if _ids_stay(state, bundle, rows) else {}
        graph, joined = graph_of(state, bundle, id_of, known_ids)
        if rows:
            ids = range(first, first + len(rows))
            tx.payloads(ids, [checked.screenings[row].text for row in rows])
            tx.vectors(first, store.embedder.fingerprint, encoded[[vector_of[row] for row in rows]])
            for body in bodies_of(checked, rows, first, ids_here):
                tx.event("import", {"lab": bundle.lab, **body}, at=now)
        rest: dict[str, Any] = {"graph": graph} if joined or (graph["nodes"] and rows) else {}
        if registers:
            rest["registers"] = registers
        redacted = tuple(
            (ids_here[checked.ids[row]], finding)
            for row in rows
            for finding in checked.screenings[row].findings
        )
        rest |= describe_redactions(redacted)
        if rest:
            tx.event("import", {"lab": bundle.lab, **rest}, at=now)
    store.snapshot_if_due()
    left_out = Counter(bundle.left_out)
    if checked.sensitive:
        left_out["path of a file of secrets"] += checked.sensitive
    left_out.update({f"register {name}": 1 for name in changed if name not in registers and rows})

    outcomes = [
        "added" if id in id_of else "known" if id in known_ids else "purged" for id in checked.ids
    ]
    frame = pl.DataFrame(
        {
            "theirs": checked.ids,
            "id": [ids_here.get(id) for id in checked.ids],
            "what": outcomes,
            "origin": checked.origins,
        },
        schema={"theirs": pl.Int64, "id": pl.Int64, "what": pl.String, "origin": pl.String},
    )
    described = bundle.memories.select("speaker", "session", at="created").cast(ROWS)
    return Loaded(
        bundle.source, frame, joined, tuple(registers), dict(left_out), redacted, rows=described
    )


# -- checks -----------------------------------------------------------------------------------------------------------


def check_bundle(
    bundle: Bundle,
    now: int,
    personal: Collection[str],
    open_words: bool,
    project: str | None = None,
) -> Screened:
    """Check all rows of a bundle, redact secrets in the texts, and return the rows."""
    if not open_words:
        _check_relations(bundle)
    checked = _check_memories(bundle, project, now, personal, open_words)
    _check_names(bundle)
    return checked


def _check_relations(bundle: Bundle) -> None:
    """Raise DatasetError if an edge has a relation that the schema does not have."""
    for row, word in enumerate(bundle.edges["relation"].to_list()):
        if word not in RELATIONS:
            where = bundle.edge_locations[row] if bundle.edge_locations else f"edge {row + 1}"
            raise DatasetError(
                f"{bundle.source}, {where}, field relation: {UnknownName('relation', word, RELATIONS)}"
            )


def _check_memories(
    bundle: Bundle, project: str | None, now: int, personal: Collection[str], open_words: bool
) -> Screened:
    """Check a bundle's memories, redact their texts, and return them in the order of ids."""
    order = bundle.memories["id"].arg_sort().to_list()
    unordered = bundle.memories.to_dict(as_series=False)
    rows = {name: [values[row] for row in order] for name, values in unordered.items()}
    count = len(order)
    purged = [status == "purged" for status in rows["status"]]
    if project is not None:
        rows["project"] = [project] * count
    rows["origin"] = [
        origin if origin is not None else f"{bundle.lab}:{id}"
        for origin, id in zip(rows["origin"], rows["id"], strict=True)
    ]
    sensitive = 0
    for row, paths in enumerate(rows["files"]):
        rows["files"][row], left_out = split_sensitive(paths)
        sensitive += len(left_out)
    # A purged memory has no text, which the checks would refuse. So it gets a full stop as text during the checks.
    rows["text"] = [
        "." if gone and not text else text for gone, text in zip(purged, rows["text"], strict=True)
    ]
    try:
        columns = _checked_rows(rows, now, open_words)
    except (MemlabError, OverflowError):
        # The columns are checked again row by row, which is slow, to find the invalid row for the message.
        for row, position in enumerate(order):
            try:
                _checked_rows(
                    {name: [values[row]] for name, values in rows.items()}, now, open_words
                )
            except (InputError, PolicyError, OverflowError) as error:
                raise DatasetError(
                    f"{bundle.where(position)}: {str(error).removeprefix('Row 0: ')}"
                ) from None
            except PrivacyError as error:
                raise PrivacyError(f"{bundle.where(position)}: {error}") from None
        raise
    texts = ["" if gone else text for gone, text in zip(purged, columns.pop("text"), strict=True)]
    columns.pop("superseded_by")
    accessed = columns.pop("accessed")
    created = columns["created"]
    uses = [some or [at] for some, at in zip(rows["uses"], created, strict=True)]
    return Screened(
        ids=rows["id"],
        columns=columns,
        screenings=screen_many(texts, personal=personal),
        created=rows["created"],
        accessed=[None if at == first else at for at, first in zip(accessed, created, strict=True)],
        uses=uses,
        superseded=[None if id is None else int(id) for id in rows["superseded_by"]],
        origins=columns["origin"],
        purged=purged,
        sensitive=sensitive,
    )


def _checked_rows(
    rows: Mapping[str, list[Any]], now: int, open_words: bool
) -> dict[str, list[Any]]:
    """Check and return the values of every column of the schema.

    Columns that callers cannot set are checked against their declared bounds.
    """
    fields = {name: rows[name] for name in ("text", *FIELDS)}
    columns = validate_columns({**fields, "at": rows["created"]}, now=now, open_words=open_words)
    for name in ENGINE:
        declared = MEMORY[name]
        for row, value in enumerate(rows[name]):
            if (
                declared.storage == "num"
                and value is not None
                and not declared.low <= value <= declared.high
            ):
                raise InputError(
                    f"Row {row}: {name} must be in {declared.low:g}..{declared.high:g}, not {value:g}."
                )
            if declared.storage == "name" and value is not None and not 0 < len(value) <= 1000:
                raise InputError(
                    f"Row {row}: {name} must be a string of 1 to 1000 characters, not {value!r:.60}."
                )
        default = declared.default if declared.storage == "num" else None
        columns[name] = [default if value is None else value for value in rows[name]]
    refuse_secret_values({name: values for name, values in columns.items() if name != "text"})
    load_part("check-operations")(columns.get("operations", ()))
    return columns


def _check_names(bundle: Bundle) -> None:
    """Raise PrivacyError if the name of a node or a register contains a secret."""
    for kind, names in bundle.nodes.items():
        refuse_strings(names, f"name of a {kind}")
    for name, dumped in bundle.registers.items():
        refuse_strings(dumped, f"register {name}", hashes=register_hash_paths(name))


def _check_registers(state: State, bundle: Bundle) -> None:
    """Raise an error if a bundle contains an unknown or invalid dump of a projection."""
    for name, dumped in bundle.registers.items():
        if name not in state.projections:
            raise NewerLab.of_word(f'{bundle.source} contains the state of a projection "{name}"')
        trial = type(state.projections[name])()
        try:
            trial.load(dumped)
            same = _packed(trial.dump()) == _packed(dumped)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, MemlabError) as error:
            raise DatasetError(
                f'{bundle.source}: The saved state of the projection "{name}" cannot be read: {error}.'
            ) from None
        if not same:
            raise DatasetError(
                f'{bundle.source}: The saved state of the projection "{name}" has values that memlab does not write. '
                "Export the lab again."
            )


def _packed(dumped: Any) -> Any:
    """Return a value after a MessagePack round trip, which turns tuples into lists."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(dumped), strict=False)


# -- what is new ------------------------------------------------------------------------------------------------------


def index_origins(state: State) -> dict[str, list[int]]:
    """Return the rows of the memories of each origin."""
    origins, rows = state.names["origin"], dict[str, list[int]]()
    for row in np.flatnonzero(origins.codes >= 0).tolist():
        rows.setdefault(origins.vocabulary[origins.codes[row]], []).append(row)
    return rows


def _match_rows(state: State, bundle: Bundle, checked: Screened, own: str) -> list[int | None]:
    """Return each row's id in the lab, 0 for a purged memory, or None for a new row.

    A row matches a memory with the same origin, text and time. A row whose origin or text was purged from the lab gets
    0 and is not added again.
    """
    statuses, texts = state.names["status"], state.texts
    created, tombstones = state.numbers["created"].values, state.projection(Tombstones)
    rows_of_origin = index_origins(state)
    matches: list[int | None] = []
    for origin, screening, at, gone in zip(
        checked.origins, checked.screenings, checked.created, checked.purged, strict=True
    ):
        candidates = rows_of_origin.get(origin, [])
        lab, _, number = origin.rpartition(":")
        if lab in (own, FRAME) and number.isdecimal() and 1 <= int(number) <= len(state):
            candidates = [*candidates, int(number) - 1]
        same = next(
            (
                row
                for row in candidates
                if texts.value_at(row) == screening.text and at in (None, int(created[row]))
            ),
            None,
        )
        if same is not None:
            matches.append(same + 1)
        elif gone:
            # A purged memory is added as an empty row if this keeps the ids of the other memories.
            matches.append(0 if len(state) or not bundle.complete else None)
        elif any(statuses.value_at(row) == "purged" for row in candidates):
            matches.append(0)
        else:
            matches.append(0 if tombstones.is_purged(screening.text, origin=origin) else None)
    return matches


def _list_filled_registers(state: State, bundle: Bundle) -> dict[str, Any]:
    """Return the dumps of projections in the bundle, except empty dumps."""
    return {
        name: dumped
        for name, dumped in bundle.registers.items()
        if _packed(type(state.projections[name])().dump()) != _packed(dumped)
    }


def _ids_stay(state: State, bundle: Bundle, rows: Sequence[int]) -> bool:
    """Return whether every memory of a bundle keeps its id in the lab.

    Dumps of projections contain ids, so they are imported only in this case.
    """
    ids = bundle.memories["id"].sort().to_list()
    return not len(state) and len(rows) == len(ids) and ids == list(range(1, len(ids) + 1))


def bodies_of(
    checked: Screened, rows: Sequence[int], first: int, ids: Mapping[int, int]
) -> Iterator[dict[str, Any]]:
    """Yield event bodies that add rows of a bundle, with ids that start at ``first``.

    ``ids`` maps ids of the bundle to ids of the lab.
    """
    # Files of other tools seldom have uses and accesses, so these are only written if they differ from the time of
    # creation.
    for start in range(0, len(rows), _CHUNK):
        chunk = rows[start : start + _CHUNK]
        columns = {name: [values[row] for row in chunk] for name, values in checked.columns.items()}
        columns["superseded_by"] = [ids.get(checked.superseded[row] or 0) for row in chunk]
        body: dict[str, Any] = {
            "first": first + start,
            "count": len(chunk),
            "columns": compact_columns(columns),
        }
        uses = [checked.uses[row] for row in chunk]
        if any(times != [at] for times, at in zip(uses, columns["created"], strict=True)):
            body["uses"] = uses
        accesses = [
            (first + start + offset, checked.accessed[row]) for offset, row in enumerate(chunk)
        ]
        accesses = [(id, at) for id, at in accesses if at is not None]
        if accesses:
            change = Change(
                set=[build_values([id for id, _ in accesses], accessed=[at for _, at in accesses])]
            )
            body |= change.body()
        yield body

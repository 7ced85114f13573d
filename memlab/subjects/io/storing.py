"""A bundle into a lab: everything checked first, then one transaction. What is there already is not added again."""

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
    Change,
    State,
    Tombstones,
    build_values,
    compact_columns,
    describe_redactions,
    prefix_speaker,
    refuse_secret_values,
    register_hash_paths,
    validate_columns,
)
from memlab.kernel.storage.store import Store
from memlab.subjects.io.edges import graph_of
from memlab.subjects.io.results import Loaded

__all__ = ["Screened", "bodies_of", "check_bundle", "load_bundle"]

_CHUNK = 10_000
"""Memories of one event: some megabytes of columns."""


@dataclass(frozen=True)
class Screened:
    """The rows of a bundle in the order of their ids, as events take them."""

    ids: list[int]
    columns: dict[str, list[Any]]
    screenings: list[Screening]
    created: list[int | None]
    """When each was remembered, as far as the file says."""
    accessed: list[int | None]
    uses: list[list[int]]
    superseded: list[int | None]
    origins: list[str]
    purged: list[bool]
    sensitive: int
    """How many paths were left out because they are those of files of secrets."""


def load_bundle(
    store: Store,
    bundle: Bundle,
    *,
    own: Callable[[], str],
    project: str | None = None,
    opened: bool = False,
) -> Loaded:
    """Add what is new in ``bundle``: all of it, or on any error nothing.

    ``own`` tells what this lab is called, so that its own export adds nothing to it. Kinds and relations without a
    name here are let in where the live pack is open to them, or the one that comes along (``opened``).
    """
    now = store.clock()
    with store.reading():
        pack = store.versions.pack
    open_words = opened or bool(pack.settings["open-words"])
    checked = check_bundle(bundle, now, personal_kinds(pack.settings), open_words, project)
    with store.reading():
        _check_registers(store.state, bundle)
        fresh = [
            row
            for row, what in enumerate(_standing(store.state, bundle, checked, own()))
            if what is None
        ]
    speakers = checked.columns.get("speaker") or [None] * len(checked.ids)
    encoded = store.embedder.encode(
        [prefix_speaker(checked.screenings[row].text, speakers[row]) for row in fresh]
    )
    vector_of = {row: place for place, row in enumerate(fresh)}
    with store.writing() as tx:
        state = store.state
        standing = _standing(state, bundle, checked, own())
        rows = [row for row, what in enumerate(standing) if what is None and row in vector_of]
        first = tx.next_id
        id_of = {checked.ids[row]: first + place for place, row in enumerate(rows)}
        known = {
            checked.ids[row]: what
            for row, what in enumerate(standing)
            if isinstance(what, int) and what > 0
        }
        here = known | id_of
        changed = _changed_registers(state, bundle)
        registers = changed if _ids_stay(state, bundle, rows) else {}
        graph, joined = graph_of(state, bundle, id_of, known)
        if rows:
            ids = range(first, first + len(rows))
            tx.payloads(ids, [checked.screenings[row].text for row in rows])
            tx.vectors(first, store.embedder.fingerprint, encoded[[vector_of[row] for row in rows]])
            for body in bodies_of(checked, rows, first, here):
                tx.event("import", {"lab": bundle.lab, **body}, at=now)
        rest: dict[str, Any] = {"graph": graph} if joined or (graph["nodes"] and rows) else {}
        if registers:
            rest["registers"] = registers
        redacted = tuple(
            (here[checked.ids[row]], finding)
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
    whats = ["added" if id in id_of else "known" if id in known else "purged" for id in checked.ids]
    frame = pl.DataFrame(
        {
            "theirs": checked.ids,
            "id": [here.get(id) for id in checked.ids],
            "what": whats,
            "origin": checked.origins,
        },
        schema={"theirs": pl.Int64, "id": pl.Int64, "what": pl.String, "origin": pl.String},
    )
    return Loaded(bundle.source, frame, joined, tuple(registers), dict(left_out), redacted)


# -- checks -----------------------------------------------------------------------------------------------------------


def check_bundle(
    bundle: Bundle,
    now: int,
    personal: Collection[str],
    open_words: bool,
    project: str | None = None,
) -> Screened:
    """The rows of a bundle, all that is in it checked and screened: DatasetError or PrivacyError says where."""
    if not open_words:
        _check_relations(bundle)
    checked = _checked(bundle, project, now, personal, open_words)
    _check_names(bundle)
    return checked


def _check_relations(bundle: Bundle) -> None:
    for row, word in enumerate(bundle.edges["relation"].to_list()):
        if word not in RELATIONS:
            where = bundle.edge_locations[row] if bundle.edge_locations else f"edge {row + 1}"
            raise DatasetError(
                f"{bundle.source}, {where}, field relation: {UnknownName('relation', word, RELATIONS)}"
            )


def _checked(
    bundle: Bundle, project: str | None, now: int, personal: Collection[str], open_words: bool
) -> Screened:
    order = bundle.memories["id"].arg_sort().to_list()
    given = bundle.memories.to_dict(as_series=False)
    rows = {name: [values[row] for row in order] for name, values in given.items()}
    count = len(order)
    purged = [status == "purged" for status in rows["status"]]
    if project is not None:
        rows["project"] = [project] * count
    rows["origin"] = [
        origin if origin is not None else f"{bundle.lab}:{id}"
        for origin, id in zip(rows["origin"], rows["id"], strict=True)
    ]
    # Of what was purged the row alone is left; a stop stands for the text while the others are checked.
    sensitive = 0
    for row, paths in enumerate(rows["files"]):
        rows["files"][row], held = split_sensitive(paths)
        sensitive += len(held)
    rows["text"] = [
        "." if gone and not text else text for gone, text in zip(purged, rows["text"], strict=True)
    ]
    try:
        columns = _checked_rows(rows, now, open_words)
    except (MemlabError, OverflowError):
        # Slow, and only where something is wrong: which row is it?
        for row, place in enumerate(order):
            try:
                _checked_rows(
                    {name: [values[row]] for name, values in rows.items()}, now, open_words
                )
            except (InputError, PolicyError, OverflowError) as error:
                raise DatasetError(
                    f"{bundle.where(place)}: {str(error).removeprefix('Row 0: ')}"
                ) from None
            except PrivacyError as error:
                raise PrivacyError(f"{bundle.where(place)}: {error}") from None
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
        accessed=[None if at == made else at for at, made in zip(accessed, created, strict=True)],
        uses=uses,
        superseded=[None if id is None else int(id) for id in rows["superseded_by"]],
        origins=columns["origin"],
        purged=purged,
        sensitive=sensitive,
    )


def _checked_rows(
    rows: Mapping[str, list[Any]], now: int, open_words: bool
) -> dict[str, list[Any]]:
    """Every column of MEMORY, checked; those that the engine keeps by their declared bounds."""
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
                    f"Row {row}: {name} lies in {declared.low:g}..{declared.high:g}, not {value:g}."
                )
            if declared.storage == "name" and value is not None and not 0 < len(value) <= 1000:
                raise InputError(
                    f"Row {row}: {name} is a string of 1 to 1000 characters, not {value!r:.60}."
                )
        default = declared.default if declared.storage == "num" else None
        columns[name] = [default if value is None else value for value in rows[name]]
    refuse_secret_values({name: values for name, values in columns.items() if name != "text"})
    load_part("check-operations")(columns.get("operations", ()))
    return columns


def _check_names(bundle: Bundle) -> None:
    """No secret in the names of nodes, nor anywhere in a register."""
    for kind, names in bundle.nodes.items():
        refuse_strings(names, f"name of a {kind}")
    for name, dumped in bundle.registers.items():
        refuse_strings(dumped, f"register {name}", hashes=register_hash_paths(name))


def _check_registers(state: State, bundle: Bundle) -> None:
    """A register that this version does not know, or that does not read back, is refused with the file."""
    for name, dumped in bundle.registers.items():
        if name not in state.projections:
            raise NewerLab.of_word(f'{bundle.source} holds a register "{name}"')
        trial = type(state.projections[name])()
        try:
            trial.load(dumped)
            same = _packed(trial.dump()) == _packed(dumped)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, MemlabError) as error:
            raise DatasetError(
                f'{bundle.source}: The register "{name}" cannot be read: {error}.'
            ) from None
        if not same:
            raise DatasetError(
                f'{bundle.source}: The register "{name}" does not read back as it is written.'
            )


def _packed(dumped: Any) -> Any:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(dumped), strict=False)


# -- what is new ------------------------------------------------------------------------------------------------------


def _standing(state: State, bundle: Bundle, checked: Screened, own: str) -> list[int | None]:
    """Of each row: None where it is new, its id here where it is known, 0 where it was purged and stays away."""
    origins, statuses, texts = state.names["origin"], state.names["status"], state.texts
    created, tombstones = state.numbers["created"].values, state.projection(Tombstones)
    held: dict[str, list[int]] = {}
    for row in np.flatnonzero(origins.codes >= 0).tolist():
        held.setdefault(origins.vocabulary[origins.codes[row]], []).append(row)
    found: list[int | None] = []
    for origin, screening, at, gone in zip(
        checked.origins, checked.screenings, checked.created, checked.purged, strict=True
    ):
        candidates = held.get(origin, [])
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
            found.append(same + 1)
        elif gone:
            # An empty row keeps the numbers of the others, where they can be kept.
            found.append(0 if len(state) or not bundle.complete else None)
        elif any(statuses.value_at(row) == "purged" for row in candidates):
            found.append(0)
        else:
            found.append(0 if tombstones.is_purged(screening.text, origin=origin) else None)
    return found


def _changed_registers(state: State, bundle: Bundle) -> dict[str, Any]:
    """The registers of the file in which anything is written."""
    return {
        name: dumped
        for name, dumped in bundle.registers.items()
        if _packed(type(state.projections[name])().dump()) != _packed(dumped)
    }


def _ids_stay(state: State, bundle: Bundle, rows: Sequence[int]) -> bool:
    """Whether every id stays what it was: registers speak of ids, and come along only then."""
    ids = bundle.memories["id"].sort().to_list()
    return not len(state) and len(rows) == len(ids) and ids == list(range(1, len(ids) + 1))


def bodies_of(
    checked: Screened, rows: Sequence[int], first: int, here: Mapping[int, int]
) -> Iterator[dict[str, Any]]:
    for start in range(0, len(rows), _CHUNK):
        some = rows[start : start + _CHUNK]
        columns = {name: [values[row] for row in some] for name, values in checked.columns.items()}
        columns["superseded_by"] = [here.get(checked.superseded[row] or 0) for row in some]
        body: dict[str, Any] = {
            "first": first + start,
            "count": len(some),
            "columns": compact_columns(columns),
        }
        uses = [checked.uses[row] for row in some]
        if any(one != [made] for one, made in zip(uses, columns["created"], strict=True)):
            body["uses"] = uses
        moved = [(first + start + place, checked.accessed[row]) for place, row in enumerate(some)]
        moved = [(id, at) for id, at in moved if at is not None]
        if moved:
            change = Change(
                set=[build_values([id for id, _ in moved], accessed=[at for _, at in moved])]
            )
            body |= change.body()
        yield body

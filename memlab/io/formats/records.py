"""Bundles as a series of records, which the text formats share.

A record is a kind and its fields, which are values of JSON. An instant is an ISO 8601 text, or microseconds such as
``"123us"`` outside the years 1-9999. Null values are omitted. Reading checks every type and reports the location of an
error.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import polars as pl

from memlab.errors import DatasetError, InputError, did_you_mean
from memlab.io.formats.bundle import (
    EDGES,
    MEMORIES,
    SCHEMA,
    Bundle,
    build_memory_frame,
    split_node_name,
)
from memlab.kernel.base.clock import from_micros, to_micros
from memlab.kernel.graph import NODE_KINDS
from memlab.kernel.schema import MEMORY, RELATIONS, is_open_word, normalise_word

_FIRST, _LAST = (
    to_micros(datetime.min.replace(tzinfo=UTC)),
    to_micros(datetime.max.replace(tzinfo=UTC)),
)
# An instant that ISO 8601 cannot express, in microseconds.
_MICROS = re.compile(r"-?[0-9]{1,19}us")
# Bound of 64-bit integers, the type of ids and instants.
_INT64 = 2**63
# Maximum records of a file, which bounds the memory that a hostile file can claim. A lab of a
# million memories has a quarter of this number.
MAX_RECORDS = 20_000_000


class Record(NamedTuple):
    """One record of an export.

    Attributes
    ----------
    kind
        memlab (the header), memory, nodes, edge, register or policies.
    fields
        Values by name.
    location
        Location in the file, for errors.
    """

    kind: str
    fields: dict[str, Any]
    location: str = ""


def format_time(micros: int) -> str:
    """Format an instant as ISO 8601, or as microseconds outside the years 1-9999.

    >>> format_time(-1), format_time(2**62)
    ('1969-12-31T23:59:59.999999+00:00', '4611686018427387904us')
    """
    return from_micros(micros).isoformat() if _FIRST <= micros <= _LAST else f"{micros}us"


def parse_time(value: object) -> int:
    """Parse an instant from a text or an integer; raise InputError for an invalid value."""
    if isinstance(value, str) and _MICROS.fullmatch(value):
        value = int(value[:-2])
    micros = to_micros(value)  # type: ignore[arg-type]
    if not -_INT64 < micros < _INT64:
        raise InputError(f"The instant {value} exceeds 64 bits of microseconds.")
    return micros


# -- to records -------------------------------------------------------------------------------------------------------

# Columns by storage, which is compared for every value.
_LISTS = (*(name for name, column in MEMORY.items() if column.storage == "list"), "uses")
_TIMES = tuple(name for name, column in MEMORY.items() if column.storage == "time")


def export_memories(memories: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield each memory as a dict of its non-empty fields, with times as ISO 8601 texts."""
    for row in memories.iter_rows(named=True):
        fields = {name: value for name, value in row.items() if value is not None}
        for name in _TIMES:
            if name in fields:
                fields[name] = format_time(fields[name])
        fields["uses"] = [format_time(at) for at in fields.get("uses", ())]
        yield {name: value for name, value in fields.items() if value != []}


def export_records(bundle: Bundle) -> Iterator[Record]:
    """Yield the records of a bundle in the order of an export.

    Their order is header, memories, nodes, edges, registers, queries, policies: a reader knows a node before an edge
    names it.
    """
    yield Record(
        "memlab",
        {
            "schema": SCHEMA,
            "lab": bundle.lab,
            "exported": format_time(bundle.exported),
            "whole": bundle.complete,
            "memories": len(bundle.memories),
            "edges": len(bundle.edges),
        },
    )
    for fields in export_memories(bundle.memories):
        yield Record("memory", fields)
    for kind, names in bundle.nodes.items():
        yield Record("nodes", {"kind": kind, "names": list(names)})
    for row in bundle.edges.iter_rows(named=True):
        yield Record(
            "edge",
            {
                "source": row["source"] if row["source"] is not None else row["source_node"],
                "target": row["target"] if row["target"] is not None else row["target_node"],
                "relation": row["relation"],
                "weight": row["weight"],
                "reinforcements": row["reinforcements"],
                "created": format_time(row["created"]),
            },
        )
    for name, dumped in bundle.registers.items():
        yield Record("register", {"name": name, **_dump_fields(dumped)})
    for query in bundle.queries:
        yield Record("query", {**query, "at": format_time(query["at"])})
    if bundle.policies is not None:
        yield Record("policies", dict(bundle.policies))


def _dump_fields(dumped: Any) -> dict[str, Any]:
    """Return a register's state under "dump" if JSON keeps it exactly, otherwise packed under "msgpack"."""
    packed = msgspec.msgpack.encode(dumped)
    plain = msgspec.msgpack.decode(packed, strict=False)
    if isinstance(plain, dict | list) and plain == _round_trip_json(plain):
        return {"dump": plain}
    return {"msgpack": base64.b64encode(packed).decode()}


def _round_trip_json(value: Any) -> Any:
    """Encode a value as JSON and decode the text again; return None if encoding fails."""
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, msgspec.MsgspecError):
        return None


# -- from records -----------------------------------------------------------------------------------------------------


class Wrong(InputError):
    """An invalid value in a record; ``at`` adds the location in the file.

    A caller that knows the location of the record converts this error into a DatasetError by
    ``at``.
    """

    def __init__(self, problem: str, field: str = "") -> None:
        super().__init__(problem)
        self.field = field

    def at(self, source: str, location: str) -> DatasetError:
        """Build a DatasetError that states the source and the location of a value."""
        where = f", {location}" if location else ""
        return DatasetError(
            f"{source}{where}{f', field {self.field}' if self.field else ''}: {self}"
        )


def _expect(fits: bool, expected: str, value: object, field: str) -> None:
    """Raise Wrong with the expected and the actual value unless ``fits`` is true."""
    if not fits:
        raise Wrong(f"{expected}, not {value!r:.60}.", field)


def check_column_value(name: str, value: Any) -> Any:
    """Convert a value to the type of a memory column; raise Wrong for an invalid value."""
    # an export also has the columns id and uses, which the schema does not declare
    if value is None:
        return [] if name in _LISTS else None
    if name == "id":
        return _check_integer(name, value)
    if name == "uses":
        _expect(
            isinstance(value, list) and len(value) <= 1000,
            "Expected a list of instants",
            value,
            name,
        )
        return [_check_time(name, item) for item in value]
    storage = MEMORY[name].storage
    if storage == "time":
        return _check_time(name, value)
    if storage == "num":
        number = isinstance(value, int | float) and not isinstance(value, bool)
        _expect(number and math.isfinite(value), "Expected a finite number", value, name)
        return float(value)
    if storage == "bool":
        _expect(isinstance(value, bool), "Expected true or false", value, name)
    elif storage == "list":
        texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
        _expect(texts, "Expected a list of texts", value, name)
    else:
        _expect(isinstance(value, str), "Expected a text", value, name)
    return value


def _check_integer(field: str, value: Any) -> int:
    """Return a 64-bit integer, also from a float without a fraction; raise Wrong for any other value."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    _expect(whole and -_INT64 < value < _INT64, "Expected an integer", value, field)
    return int(value)


def _check_time(field: str, value: Any) -> int:
    """Parse an instant to microseconds; raise Wrong for an invalid value."""
    try:
        return parse_time(value)
    except InputError as problem:
        raise Wrong(str(problem), field) from None


def _check_node_name(field: str, name: Any) -> None:
    """Raise Wrong unless a name is a text of 1 to 1,000 characters."""
    valid = isinstance(name, str) and 0 < len(name) <= 1000
    _expect(valid, "Expected a name of 1 to 1000 characters", name, field)


class _Records:
    """The records of one export while they are read, collected by column."""

    def __init__(self) -> None:
        self.header: Record | None = None
        self.memories: dict[str, list[Any]] = {name: [] for name in MEMORIES}
        self.locations: list[str] = []
        self.ids: set[int] = set()
        self.edges: dict[str, list[Any]] = {name: [] for name in EDGES}
        self.edge_locations: list[str] = []
        self.nodes: dict[str, dict[str, None]] = {}
        self.registers: dict[str, Any] = {}
        self.policies: dict[str, Any] | None = None

    def add(self, record: Record) -> None:
        """Add a record to the bundle; raise Wrong if the record is invalid."""
        if self.header is None:
            if record.kind != "memlab":
                raise Wrong("An export must begin with its header, which names the schema.")
            _check_header(record.fields)
            self.header = record
            return
        kinds = {
            "memory": self._add_memory,
            "edge": self._add_edge,
            "nodes": self._add_nodes,
            "register": self._add_register,
            "policies": self._add_policies,
            "query": self._skip_query,
        }
        if record.kind not in kinds:
            raise Wrong(f'There is no record "{record.kind}". {did_you_mean(record.kind, kinds)}')
        kinds[record.kind](record.fields, record.location)

    def _add_memory(self, fields: dict[str, Any], location: str) -> None:
        """Add a record of a memory; raise Wrong if a field is invalid."""
        for name in fields:
            if name not in MEMORIES:
                raise Wrong(
                    f'The record of a memory has no field "{name}". {did_you_mean(name, MEMORIES)}'
                )
        for name, values in self.memories.items():
            values.append(check_column_value(name, fields.get(name)))
        id = self.memories["id"][-1]
        if id is None or id < 1:
            raise Wrong("Each memory of an export must have an id, an integer of at least 1.", "id")
        if id in self.ids:
            raise Wrong(f"Two memories have the id {id}. Renumber or remove one.", "id")
        self.ids.add(id)
        self.locations.append(location)

    def _add_nodes(self, fields: dict[str, Any], location: str) -> None:
        """Add a record that lists the names of one kind of node."""
        kind, names = fields.get("kind"), fields.get("names")
        _expect(
            kind in NODE_KINDS[1:], f"Expected one of {', '.join(NODE_KINDS[1:])}", kind, "kind"
        )
        _expect(isinstance(names, list), "Expected a list of names", names, "names")
        existing = self.nodes.setdefault(str(kind), {})
        for name in names or ():
            _check_node_name("names", name)
            if name in existing:
                raise Wrong(
                    f'Two nodes of kind {kind} have the name "{name:.60}". Remove one.', "names"
                )
            existing[name] = None

    def _add_edge(self, fields: dict[str, Any], location: str) -> None:
        """Add a record of an edge; raise Wrong if a field is invalid."""
        columns = [name for name in EDGES if not name.endswith("_node")]
        for name in fields:
            if name not in columns:
                raise Wrong(
                    f'The record of an edge has no field "{name}". {did_you_mean(name, columns)}'
                )
        for end in ("source", "target"):
            id, node = self._check_end(end, fields.get(end))
            self.edges[end].append(id)
            self.edges[f"{end}_node"].append(node)
        if fields.get("source") == fields.get("target"):
            raise Wrong("An edge must join two different nodes.", "target")
        relation = fields.get("relation")
        relation = normalise_word(relation, RELATIONS) if isinstance(relation, str) else relation
        if not is_open_word(relation):
            raise Wrong(
                f"Expected a relation, not {relation!r:.60}. {did_you_mean(str(relation), RELATIONS)}",
                "relation",
            )
        weight = fields.get("weight", 1.0)
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        _expect(number and 0 <= weight <= 1, "Expected a weight from 0 to 1", weight, "weight")
        times = _check_integer("reinforcements", fields.get("reinforcements", 0))
        _expect(0 <= times < 2**31, "Expected a count", times, "reinforcements")
        self.edges["relation"].append(relation)
        self.edges["weight"].append(float(weight))
        self.edges["reinforcements"].append(times)
        self.edges["created"].append(_check_time("created", fields.get("created", 0)))
        self.edge_locations.append(location)

    def _check_end(self, end: str, value: Any) -> tuple[int | None, str | None]:
        """Parse one end of an edge; return a memory id and None, or None and the name of another node.

        The name is registered in ``nodes``.
        """
        if not isinstance(value, str):
            return _check_integer(end, value), None
        kind, name = split_node_name(value)
        valid = kind in NODE_KINDS[1:]
        _expect(valid, "Expected an id, tag/..., cluster/... or entity/...", value, end)
        _check_node_name(end, name)
        self.nodes.setdefault(kind, {})[name] = None
        return None, value

    def _add_register(self, fields: dict[str, Any], location: str) -> None:
        """Add a record of a register's state; raise Wrong if the state cannot be decoded."""
        name = fields.get("name")
        if not isinstance(name, str):
            raise Wrong(
                "A register record (the saved state of a projection) must have a name.", "name"
            )
        if name in self.registers:
            raise Wrong(
                f'The file has two saved states of the projection "{name:.60}". Keep one.', "name"
            )
        if "dump" in fields:
            self.registers[name] = fields["dump"]
            return
        try:
            packed = base64.b64decode(str(fields.get("msgpack", "")), validate=True)
            self.registers[name] = msgspec.msgpack.decode(packed, strict=False)
        except (binascii.Error, msgspec.MsgspecError, RecursionError, ValueError) as error:
            raise Wrong(
                f"The value of this register record cannot be decoded: {error}", "msgpack"
            ) from None

    def _skip_query(self, fields: dict[str, Any], location: str) -> None:
        """Skip a logged query, because a lab does not import logged queries."""

    def _add_policies(self, fields: dict[str, Any], location: str) -> None:
        """Store the policies of an export."""
        self.policies = fields


def build_bundle_from_records(records: Iterable[Record], source: str) -> Bundle:
    """Build a bundle from records; raise DatasetError for an invalid record."""
    # the counts, and the ends of edges, are checked last, because an edge may precede its memories
    rows = _Records()
    for number, record in enumerate(records):
        try:
            if number >= MAX_RECORDS:
                raise Wrong(
                    f"The file has more than {MAX_RECORDS:,} records. Export parts of the lab."
                )
            rows.add(record)
        except Wrong as problem:
            raise problem.at(source, record.location) from None
    if rows.header is None:
        raise DatasetError(f"{source}: The file is empty. An export begins with its header.")
    header = rows.header.fields
    for what, count in (
        ("memories", len(rows.locations)),
        ("edges", len(rows.edge_locations)),
    ):
        stated = header.get(what)
        if stated is not None and stated != count:
            raise DatasetError(
                f"{source}: The header announces {stated} {what}, but the file has {count}. It is incomplete; export again."
            )
    for end in ("source", "target"):
        for row, id in enumerate(rows.edges[end]):
            if id is not None and id not in rows.ids:
                raise Wrong(f"No memory of the file has the id {id}.", end).at(
                    source, rows.edge_locations[row]
                )
    return Bundle(
        lab=str(header.get("lab", "")),
        memories=build_memory_frame(rows.memories),
        edges=pl.DataFrame(rows.edges, schema=EDGES),
        nodes={kind: tuple(names) for kind, names in rows.nodes.items()},
        registers=rows.registers,
        policies=rows.policies,
        complete=header.get("whole") is True,
        exported=parse_time(header.get("exported", 0)),
        source=source,
        locations=tuple(rows.locations),
        edge_locations=tuple(rows.edge_locations),
    )


def _check_header(fields: dict[str, Any]) -> None:
    """Raise Wrong if the header or its schema version is not readable."""
    schema, lab = fields.get("schema"), fields.get("lab")
    if isinstance(schema, bool) or not isinstance(schema, int | float) or schema < 1:
        raise Wrong(f"schema must be a version number of at least 1, not {schema!r:.60}.", "schema")
    if schema > SCHEMA:
        raise Wrong(
            f"A newer memlab wrote the file (schema {schema:g}; this memlab reads schemas up to {SCHEMA}). Update memlab.",
            "schema",
        )
    valid = isinstance(lab, str) and 0 < len(lab) <= 200
    _expect(valid, "Expected the name of the lab, in 1 to 200 characters", lab, "lab")
    _check_time("exported", fields.get("exported", 0))


def check_fields(value: Any, source: str, location: str) -> Mapping[str, Any]:
    """Return ``value`` if it is a dict of fields; raise DatasetError otherwise."""
    if not isinstance(value, dict):
        raise DatasetError(
            f"{source}, {location}: A record must be an object with fields, not {type(value).__name__}."
        )
    return value

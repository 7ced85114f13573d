"""A bundle as a series of records, each a word and its fields, and back: what the text formats share.

Fields are what JSON can hold. An instant is an ISO 8601 text, or microseconds as ``"123us"`` beyond the years 1-9999.
A column that is null is left out. Reading checks every type, and says where.
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
from memlab.io.formats.bundle import EDGES, MEMORIES, SCHEMA, Bundle, memory_frame, node_of
from memlab.kernel.base.clock import from_micros, to_micros
from memlab.kernel.graph import NODE_KINDS
from memlab.kernel.schema import MEMORY, RELATIONS, is_open_word, normalise_word

__all__ = [
    "Record",
    "Wrong",
    "bundle_from",
    "column_value",
    "memory_records",
    "records_of",
    "time_of",
    "time_text",
]

_FIRST, _LAST = (
    to_micros(datetime.min.replace(tzinfo=UTC)),
    to_micros(datetime.max.replace(tzinfo=UTC)),
)
_MICROS = re.compile(r"-?[0-9]{1,19}us")
_INT64 = 2**63
MOST_RECORDS = 20_000_000


class Record(NamedTuple):
    """One record: ``kind`` is memory, edge ...; ``place`` says where it stands."""

    kind: str
    fields: dict[str, Any]
    place: str = ""


def time_text(micros: int) -> str:
    """An instant as text, exactly.

    >>> time_text(-1), time_text(2**62)
    ('1969-12-31T23:59:59.999999+00:00', '4611686018427387904us')
    """
    return from_micros(micros).isoformat() if _FIRST <= micros <= _LAST else f"{micros}us"


def time_of(value: object) -> int:
    """The instant that a text or a whole number tells; InputError if it tells none."""
    if isinstance(value, str) and _MICROS.fullmatch(value):
        value = int(value[:-2])
    micros = to_micros(value)  # type: ignore[arg-type]
    if not -_INT64 < micros < _INT64:
        raise InputError(f"{value} is beyond 64 bits of microseconds.")
    return micros


# -- to records -------------------------------------------------------------------------------------------------------

_LISTS = (*(name for name, column in MEMORY.items() if column.storage == "list"), "uses")
_TIMES = tuple(name for name, column in MEMORY.items() if column.storage == "time")


def memory_records(memories: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Give the fields of each memory that has a value, times as texts."""
    for row in memories.iter_rows(named=True):
        fields = {name: value for name, value in row.items() if value is not None}
        for name in _TIMES:
            if name in fields:
                fields[name] = time_text(fields[name])
        fields["uses"] = [time_text(at) for at in fields.get("uses", ())]
        yield {name: value for name, value in fields.items() if value != []}


def records_of(bundle: Bundle) -> Iterator[Record]:
    """The header, memories, nodes, edges, registers, then policies."""
    yield Record(
        "memlab",
        {
            "schema": SCHEMA,
            "lab": bundle.lab,
            "exported": time_text(bundle.exported),
            "whole": bundle.complete,
            "memories": len(bundle.memories),
            "edges": len(bundle.edges),
        },
    )
    for fields in memory_records(bundle.memories):
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
                "created": time_text(row["created"]),
            },
        )
    for name, dumped in bundle.registers.items():
        yield Record("register", {"name": name, **_dump_fields(dumped)})
    if bundle.policies is not None:
        yield Record("policies", dict(bundle.policies))


def _dump_fields(dumped: Any) -> dict[str, Any]:
    """A register's dump as JSON where that says all of it, else as the base64 of its msgpack."""
    packed = msgspec.msgpack.encode(dumped)
    plain = msgspec.msgpack.decode(packed, strict=False)
    if isinstance(plain, dict | list) and plain == _through_json(plain):
        return {"dump": plain}
    return {"msgpack": base64.b64encode(packed).decode()}


def _through_json(value: Any) -> Any:
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, msgspec.MsgspecError):
        return None


# -- from records -----------------------------------------------------------------------------------------------------


class Wrong(InputError):
    """What a field of a record cannot be; whoever reads the record says where it stands."""

    def __init__(self, problem: str, field: str = "") -> None:
        super().__init__(problem)
        self.field = field

    def at(self, source: str, place: str) -> DatasetError:
        """Return the error that names the place."""
        where = f", {place}" if place else ""
        return DatasetError(
            f"{source}{where}{f', field {self.field}' if self.field else ''}: {self}"
        )


def _expect(fits: bool, expected: str, value: object, field: str) -> None:
    if not fits:
        raise Wrong(f"{expected}, not {value!r:.60}.", field)


def column_value(name: str, value: Any) -> Any:
    """Check a value of a memory's column and return it as a bundle holds it; raises Wrong."""
    if value is None:
        return [] if name in _LISTS else None
    if name == "id":
        return _integer(name, value)
    if name == "uses":
        _expect(
            isinstance(value, list) and len(value) <= 1000,
            "A list of instants stands here",
            value,
            name,
        )
        return [_time(name, one) for one in value]
    storage = MEMORY[name].storage
    if storage == "time":
        return _time(name, value)
    if storage == "num":
        number = isinstance(value, int | float) and not isinstance(value, bool)
        _expect(number and math.isfinite(value), "A finite number stands here", value, name)
        return float(value)
    if storage == "bool":
        _expect(isinstance(value, bool), "true or false stands here", value, name)
    elif storage == "list":
        texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
        _expect(texts, "A list of texts stands here", value, name)
    else:
        _expect(isinstance(value, str), "A text stands here", value, name)
    return value


def _integer(field: str, value: Any) -> int:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    _expect(whole and -_INT64 < value < _INT64, "A whole number stands here", value, field)
    return int(value)


def _time(field: str, value: Any) -> int:
    try:
        return time_of(value)
    except InputError as problem:
        raise Wrong(str(problem), field) from None


def _check_node_name(field: str, name: Any) -> None:
    named = isinstance(name, str) and 0 < len(name) <= 1000
    _expect(named, "A name of 1 to 1000 characters stands here", name, field)


class _Reading:
    """The records of one file as they are read; ``take`` raises Wrong."""

    def __init__(self) -> None:
        self.header: Record | None = None
        self.memories: dict[str, list[Any]] = {name: [] for name in MEMORIES}
        self.places: list[str] = []
        self.ids: set[int] = set()
        self.edges: dict[str, list[Any]] = {name: [] for name in EDGES}
        self.edge_places: list[str] = []
        self.nodes: dict[str, dict[str, None]] = {}
        self.registers: dict[str, Any] = {}
        self.policies: dict[str, Any] | None = None

    def take(self, record: Record) -> None:
        """Take in a record, by its kind."""
        if self.header is None:
            if record.kind != "memlab":
                raise Wrong("An export begins with its header, which names its schema.")
            _check_header(record.fields)
            self.header = record
            return
        kinds = {
            "memory": self._memory,
            "edge": self._edge,
            "nodes": self._nodes,
            "register": self._register,
            "policies": self._policies,
        }
        if record.kind not in kinds:
            raise Wrong(f'There is no record "{record.kind}". {did_you_mean(record.kind, kinds)}')
        kinds[record.kind](record.fields, record.place)

    def _memory(self, fields: dict[str, Any], place: str) -> None:
        for name in fields:
            if name not in MEMORIES:
                raise Wrong(f'A memory has no column "{name}". {did_you_mean(name, MEMORIES)}')
        for name, values in self.memories.items():
            values.append(column_value(name, fields.get(name)))
        id = self.memories["id"][-1]
        if id is None or id < 1:
            raise Wrong("A memory has an id, a whole number from 1 on.", "id")
        if id in self.ids:
            raise Wrong(f"Two memories have the id {id}.", "id")
        self.ids.add(id)
        self.places.append(place)

    def _nodes(self, fields: dict[str, Any], place: str) -> None:
        kind, names = fields.get("kind"), fields.get("names")
        _expect(
            kind in NODE_KINDS[1:], f"A node is one of {', '.join(NODE_KINDS[1:])}", kind, "kind"
        )
        _expect(isinstance(names, list), "A list of names stands here", names, "names")
        known = self.nodes.setdefault(str(kind), {})
        for name in names or ():
            _check_node_name("names", name)
            if name in known:
                raise Wrong(f'Two nodes of kind {kind} are called "{name:.60}".', "names")
            known[name] = None

    def _edge(self, fields: dict[str, Any], place: str) -> None:
        for name in fields:
            if name not in EDGES:
                raise Wrong(f'An edge has no column "{name}". {did_you_mean(name, EDGES)}')
        for end in ("source", "target"):
            id, node = self._end(end, fields.get(end))
            self.edges[end].append(id)
            self.edges[f"{end}_node"].append(node)
        if fields.get("source") == fields.get("target"):
            raise Wrong("Nothing is joined to itself.", "target")
        relation = fields.get("relation")
        relation = normalise_word(relation, RELATIONS) if isinstance(relation, str) else relation
        if not is_open_word(relation):
            raise Wrong(
                f"{did_you_mean(str(relation), RELATIONS)} Not {relation!r:.60}.", "relation"
            )
        weight = fields.get("weight", 1.0)
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        _expect(number and 0 <= weight <= 1, "A weight lies in 0..1", weight, "weight")
        times = _integer("reinforcements", fields.get("reinforcements", 0))
        _expect(0 <= times < 2**31, "A count stands here", times, "reinforcements")
        self.edges["relation"].append(relation)
        self.edges["weight"].append(float(weight))
        self.edges["reinforcements"].append(times)
        self.edges["created"].append(_time("created", fields.get("created", 0)))
        self.edge_places.append(place)

    def _end(self, end: str, value: Any) -> tuple[int | None, str | None]:
        """Return an end of an edge as the id of a memory, or as another node."""
        if not isinstance(value, str):
            return _integer(end, value), None
        kind, name = node_of(value)
        known = kind in NODE_KINDS[1:]
        _expect(known, "An end is an id, or tag/..., cluster/... or entity/...", value, end)
        _check_node_name(end, name)
        self.nodes.setdefault(kind, {})[name] = None
        return None, value

    def _register(self, fields: dict[str, Any], place: str) -> None:
        name = fields.get("name")
        if not isinstance(name, str):
            raise Wrong("A register has a name.", "name")
        if name in self.registers:
            raise Wrong(f'The register "{name:.60}" is given twice.', "name")
        if "dump" in fields:
            self.registers[name] = fields["dump"]
            return
        try:
            packed = base64.b64decode(str(fields.get("msgpack", "")), validate=True)
            self.registers[name] = msgspec.msgpack.decode(packed, strict=False)
        except (binascii.Error, msgspec.MsgspecError, RecursionError, ValueError) as error:
            raise Wrong(f"The register cannot be read: {error}", "msgpack") from None

    def _policies(self, fields: dict[str, Any], place: str) -> None:
        self.policies = fields


def bundle_from(records: Iterable[Record], source: str) -> Bundle:
    """Return the bundle that these records tell, checked; DatasetError with the place of what is wrong."""
    reading = _Reading()
    for number, record in enumerate(records):
        try:
            if number >= MOST_RECORDS:
                raise Wrong(f"There are more than {MOST_RECORDS:,} records.")
            reading.take(record)
        except Wrong as problem:
            raise problem.at(source, record.place) from None
    if reading.header is None:
        raise DatasetError(f"{source}: The file is empty: an export begins with its header.")
    header = reading.header.fields
    for what, count in (("memories", len(reading.places)), ("edges", len(reading.edge_places))):
        stated = header.get(what)
        if stated is not None and stated != count:
            raise DatasetError(
                f"{source}: The header tells of {stated} {what}, and there are {count}: it was cut short."
            )
    for end in ("source", "target"):
        for row, id in enumerate(reading.edges[end]):
            if id is not None and id not in reading.ids:
                raise Wrong(f"No memory of the file has the id {id}.", end).at(
                    source, reading.edge_places[row]
                )
    return Bundle(
        lab=str(header.get("lab", "")),
        memories=memory_frame(reading.memories),
        edges=pl.DataFrame(reading.edges, schema=EDGES),
        nodes={kind: tuple(names) for kind, names in reading.nodes.items()},
        registers=reading.registers,
        policies=reading.policies,
        complete=header.get("whole") is True,
        exported=time_of(header.get("exported", 0)),
        source=source,
        places=tuple(reading.places),
        edge_places=tuple(reading.edge_places),
    )


def _check_header(fields: dict[str, Any]) -> None:
    schema, lab = fields.get("schema"), fields.get("lab")
    if isinstance(schema, bool) or not isinstance(schema, int | float) or schema < 1:
        raise Wrong(f"The header names no schema that there is: {schema!r:.60}.", "schema")
    if schema > SCHEMA:
        raise Wrong(
            f"It was written by a later memlab (schema {schema:g}; this one reads {SCHEMA}).",
            "schema",
        )
    named = isinstance(lab, str) and 0 < len(lab) <= 200
    _expect(named, "The header names the lab, in 1 to 200 characters", lab, "lab")
    _time("exported", fields.get("exported", 0))


def fields_of(value: Any, source: str, place: str) -> Mapping[str, Any]:
    """A dict of fields, or a DatasetError."""
    if not isinstance(value, dict):
        raise DatasetError(
            f"{source}, {place}: A record is an object with fields, not {type(value).__name__}."
        )
    return value

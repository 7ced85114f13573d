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
from memlab.kernel.schema import MEMORY, RELATIONS, is_open_word, spelled

__all__ = ["Record", "bundle_from", "memory_records", "records_of", "time_of", "time_text"]

_FIRST, _LAST = to_micros(datetime.min.replace(tzinfo=UTC)), to_micros(datetime.max.replace(tzinfo=UTC))
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


class _Reading:
    """One file as it is read: where it is, and how it complains."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.memories: dict[str, list[Any]] = {name: [] for name in MEMORIES}
        self.places: list[str] = []
        self.ids: set[int] = set()
        self.edges: dict[str, list[Any]] = {name: [] for name in EDGES}
        self.edge_places: list[str] = []
        self.nodes: dict[str, dict[str, None]] = {}
        self.registers: dict[str, Any] = {}
        self.policies: dict[str, Any] | None = None

    def error(self, record: Record, problem: str, field: str = "") -> DatasetError:
        place = f", {record.place}" if record.place else ""
        return DatasetError(f"{self.source}{place}{f', field {field}' if field else ''}: {problem}")

    # One method a kind of record.

    def memory(self, record: Record) -> None:
        for name in record.fields:
            if name not in MEMORIES:
                raise self.error(record, f'A memory has no column "{name}". {did_you_mean(name, MEMORIES)}')
        for name in MEMORIES:
            self.memories[name].append(self._value(record, name, record.fields.get(name)))
        id = self.memories["id"][-1]
        if id is None or id < 1:
            raise self.error(record, "A memory has an id, a whole number from 1 on.", "id")
        if id in self.ids:
            raise self.error(record, f"Two memories have the id {id}.", "id")
        self.ids.add(id)
        self.places.append(record.place)

    def _value(self, record: Record, name: str, value: Any) -> Any:
        if value is None:
            return [] if name in _LISTS else None
        if name == "id":
            return self._integer(record, name, value)
        if name == "uses":
            if not isinstance(value, list) or len(value) > 1000:
                raise self.error(record, f"A list of instants stands here, not {value!r:.60}.", name)
            return [self._time(record, name, one) for one in value]
        storage = MEMORY[name].storage
        if storage == "time":
            return self._time(record, name, value)
        if storage == "num":
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise self.error(record, f"A finite number stands here, not {value!r:.60}.", name)
            return float(value)
        if storage == "bool":
            if not isinstance(value, bool):
                raise self.error(record, f"true or false stands here, not {value!r:.60}.", name)
            return value
        if storage == "list":
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise self.error(record, f"A list of texts stands here, not {value!r:.60}.", name)
            return value
        return self._text(record, name, value)

    def nodes_(self, record: Record) -> None:
        kind, names = record.fields.get("kind"), record.fields.get("names")
        if kind not in NODE_KINDS[1:]:
            raise self.error(record, f"A node is one of {', '.join(NODE_KINDS[1:])}, not {kind!r:.60}.", "kind")
        if not isinstance(names, list):
            raise self.error(record, f"A list of names stands here, not {names!r:.60}.", "names")
        known = self.nodes.setdefault(kind, {})
        for name in names:
            self._node_name(record, "names", name)
            if name in known:
                raise self.error(record, f'Two nodes of kind {kind} are called "{name:.60}".', "names")
            known[name] = None

    def edge(self, record: Record) -> None:
        fields = record.fields
        unknown = next((name for name in fields if name not in EDGES), None)
        if unknown is not None:
            raise self.error(record, f'An edge has no column "{unknown}". {did_you_mean(unknown, EDGES)}')
        for end in ("source", "target"):
            value = fields.get(end)
            if isinstance(value, str):
                kind, name = node_of(value)
                if kind not in NODE_KINDS[1:]:
                    raise self.error(
                        record, f"An end is an id, or tag/..., cluster/... or entity/..., not {value!r:.60}.", end
                    )
                self._node_name(record, end, name)
                self.nodes.setdefault(kind, {})[name] = None
            self.edges[end].append(None if isinstance(value, str) else self._integer(record, end, value))
            self.edges[f"{end}_node"].append(value if isinstance(value, str) else None)
        if fields.get("source") == fields.get("target"):
            raise self.error(record, "Nothing is joined to itself.", "target")
        relation = fields.get("relation")
        relation = spelled(relation, RELATIONS) if isinstance(relation, str) else relation
        if not is_open_word(relation):
            raise self.error(record, f"{did_you_mean(str(relation), RELATIONS)} Not {relation!r:.60}.", "relation")
        weight = fields.get("weight", 1.0)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
            raise self.error(record, f"A weight lies in 0..1, not {weight!r:.60}.", "weight")
        times = self._integer(record, "reinforcements", fields.get("reinforcements", 0))
        if not 0 <= times < 2**31:
            raise self.error(record, f"A count stands here, not {times}.", "reinforcements")
        self.edges["relation"].append(relation)
        self.edges["weight"].append(float(weight))
        self.edges["reinforcements"].append(times)
        self.edges["created"].append(self._time(record, "created", fields.get("created", 0)))
        self.edge_places.append(record.place)

    def register(self, record: Record) -> None:
        name = record.fields.get("name")
        if not isinstance(name, str):
            raise self.error(record, "A register has a name.", "name")
        if name in self.registers:
            raise self.error(record, f'The register "{name:.60}" is given twice.', "name")
        if "dump" in record.fields:
            self.registers[name] = record.fields["dump"]
            return
        try:
            self.registers[name] = msgspec.msgpack.decode(
                base64.b64decode(str(record.fields.get("msgpack", "")), validate=True), strict=False
            )
        except (binascii.Error, msgspec.MsgspecError, RecursionError, ValueError) as error:
            raise self.error(record, f"The register cannot be read: {error}", "msgpack") from None

    # Values.

    def _text(self, record: Record, field: str, value: Any) -> str:
        if not isinstance(value, str):
            raise self.error(record, f"A text stands here, not {value!r:.60}.", field)
        return value

    def _node_name(self, record: Record, field: str, name: Any) -> None:
        if not isinstance(name, str) or not 0 < len(name) <= 1000:
            raise self.error(record, f"A name of 1 to 1000 characters stands here, not {name!r:.60}.", field)

    def _integer(self, record: Record, field: str, value: Any) -> int:
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not -_INT64 < value < _INT64:
            raise self.error(record, f"A whole number stands here, not {value!r:.60}.", field)
        return value

    def _time(self, record: Record, field: str, value: Any) -> int:
        try:
            return time_of(value)
        except InputError as problem:
            raise self.error(record, str(problem), field) from None


def bundle_from(records: Iterable[Record], source: str) -> Bundle:
    """The bundle that these records tell, checked; DatasetError with the place of what is wrong."""
    reading = _Reading(source)
    header: Record | None = None
    for number, record in enumerate(records):
        if number >= MOST_RECORDS:
            raise reading.error(record, f"There are more than {MOST_RECORDS:,} records.")
        if header is None:
            if record.kind != "memlab":
                raise reading.error(record, "An export begins with its header, which names its schema.")
            header = _checked_header(reading, record)
        elif record.kind == "memory":
            reading.memory(record)
        elif record.kind == "edge":
            reading.edge(record)
        elif record.kind == "nodes":
            reading.nodes_(record)
        elif record.kind == "register":
            reading.register(record)
        elif record.kind == "policies":
            reading.policies = record.fields
        else:
            known = ("memory", "edge", "nodes", "register", "policies")
            raise reading.error(record, f'There is no record "{record.kind}". {did_you_mean(record.kind, known)}')
    if header is None:
        raise DatasetError(f"{source}: The file is empty: an export begins with its header.")
    for what, found in (("memories", len(reading.places)), ("edges", len(reading.edge_places))):
        stated = header.fields.get(what)
        if stated is not None and stated != found:
            raise DatasetError(
                f"{source}: The header tells of {stated} {what}, and there are {found}: it was cut short."
            )
    for end in ("source", "target"):
        for row, id in enumerate(reading.edges[end]):
            if id is not None and id not in reading.ids:
                where = Record("edge", {}, reading.edge_places[row])
                raise reading.error(where, f"No memory of the file has the id {id}.", end)
    return Bundle(
        lab=str(header.fields.get("lab", "")),
        memories=memory_frame(reading.memories),
        edges=pl.DataFrame(reading.edges, schema=EDGES),
        nodes={kind: tuple(names) for kind, names in reading.nodes.items()},
        registers=reading.registers,
        policies=reading.policies,
        complete=header.fields.get("whole") is True,
        exported=reading._time(header, "exported", header.fields.get("exported", 0)),
        source=source,
        places=tuple(reading.places),
        edge_places=tuple(reading.edge_places),
    )


def _checked_header(reading: _Reading, record: Record) -> Record:
    schema, lab = record.fields.get("schema"), record.fields.get("lab")
    if isinstance(schema, bool) or not isinstance(schema, int | float) or schema < 1:
        raise reading.error(record, f"The header names no schema that there is: {schema!r:.60}.", "schema")
    if schema > SCHEMA:
        raise reading.error(
            record, f"It was written by a later memlab (schema {schema:g}; this one reads {SCHEMA}).", "schema"
        )
    if not isinstance(lab, str) or not 0 < len(lab) <= 200:
        raise reading.error(record, f"The header names the lab, in 1 to 200 characters, not {lab!r:.60}.", "lab")
    return record


def fields_of(value: Any, source: str, place: str) -> Mapping[str, Any]:
    """A dict of fields, or a DatasetError."""
    if not isinstance(value, dict):
        raise DatasetError(f"{source}, {place}: A record is an object with fields, not {type(value).__name__}.")
    return value

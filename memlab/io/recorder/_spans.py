"""Searches in traces of other programs: ``search_memory`` spans of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from memlab.errors import DatasetError, InputError
from memlab.io.formats import Lines, Notes, decode_json
from memlab.io.recorder._items import first_value, measure_texts, read_items
from memlab.io.recorder._log import to_table
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.clock import check_instant
from memlab.kernel.slates import Slates

# Names of a span's id and start, in OTLP's JSON and as exporters of single spans write them.
_SPAN_IDS = ("spanId", "span_id", "id")
_STARTS = ("startTimeUnixNano", "start_time_unix_nano")


@checked
def read_spans(path: str | Path, feedback: pl.DataFrame | None = None) -> Slates:
    """Read the memory searches of an OpenTelemetry trace as a log.

    Parameters
    ----------
    path
        A file of JSON Lines: requests of OTLP (``resourceSpans``), or spans with ``attributes``.
        Spans whose ``gen_ai.operation.name`` is "search_memory" are read. They need the attribute
        ``gen_ai.memory.records``.
    feedback
        The rewards, with the columns ``decision`` (the id of a span), ``memory_id`` and ``reward``.

    Returns
    -------
    Slates
        The log. A trace has no probabilities, so ``memlab.evaluate`` withholds the value of other
        policies. ``memlab.plan`` forecasts how many searches a comparison needs once they are
        recorded.

    Raises
    ------
    DatasetError
        If no search has records, or a line is no JSON.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> import memlab
    >>> records = [{"id": "m1", "content": "Ana prefers tabs", "score": 0.9}]
    >>> attributes = {
    ...     "gen_ai.operation.name": "search_memory",
    ...     "gen_ai.memory.query.text": "tabs or spaces?",
    ...     "gen_ai.memory.records": json.dumps(records),
    ... }
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "spans.jsonl"
    >>> _ = file.write_text(json.dumps({"span_id": "a1", "attributes": attributes}))
    >>> memlab.read_spans(file).candidates.collect()["memory_id"].to_list()
    ['m1']
    """
    decisions: list[dict[str, object]] = []
    candidates, missing = [], 0
    for number, line in Lines(Path(path), Notes(str(path))):
        document = decode_json(line, str(path), number) if line.strip() else None
        for span, attributes in _find_searches(document):
            records = attributes.get("gen_ai.memory.records")
            if records is None:
                missing += 1
                continue
            if isinstance(records, str):
                records = decode_json(records.encode(), str(path), number)
            items, query = (
                read_items(records),
                str(attributes.get("gen_ai.memory.query.text") or ""),
            )
            key: dict[str, object] = {
                "decision": str(first_value(span, _SPAN_IDS) or f"line {number}")
            }
            session = attributes.get("gen_ai.conversation.id")
            decisions.append(
                key
                | {
                    "query": query,
                    "limit": max(len(items), 1),
                    "at": _read_start(span, f"{path}, line {number}"),
                    "session": str(session) if isinstance(session, str | int) else None,
                }
            )
            ids = [item.id for item in items]
            ranks = list(range(1, len(ids) + 1))
            candidates.append(key | {"memory_id": ids, "rank": ranks} | measure_texts(query, items))
    if not decisions:
        raise DatasetError(
            f"{path} has no search_memory span with gen_ai.memory.records (spans "
            f"of searches without it: {missing:,}). Switch on the capture of content in the program that writes the trace."
        )
    pool = to_table(candidates)
    exposures = pool.select("decision", "memory_id")
    log = Slates.from_frames(to_table(decisions), pool, exposures, feedback, empty="keep")
    note = "memlab.record logs further searches with probabilities; memlab.plan says how many are needed."
    skipped = f"{missing:,} searches without records left out."
    return replace(log, notes=(*log.notes, *[skipped] * bool(missing), note))


def _read_start(span: Mapping[str, Any], where: str) -> int | None:
    """Return the start of a span in microseconds since 1970, or None without a start."""
    start = first_value(span, _STARTS)
    try:
        return None if start is None else check_instant(int(start) // 1000, "The start of a span")
    except (TypeError, ValueError, OverflowError) as error:
        reason = (
            str(error)
            if isinstance(error, InputError)
            else "The start of a span must be nanoseconds since 1970."
        )
        raise DatasetError(f"{where}: {reason}") from None


def _find_searches(document: object) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield the spans of memory searches anywhere in a document, each with its attributes."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            attributes = value.get("attributes") or {}
            if isinstance(attributes, list):
                # OTLP writes an attribute as a key and a value under the name of its type.
                pairs = [
                    (entry.get("key"), entry.get("value"))
                    for entry in attributes
                    if isinstance(entry, Mapping)
                ]
                attributes = {
                    str(key): next(iter(typed.values()))
                    for key, typed in pairs
                    if isinstance(typed, Mapping) and typed
                }
            if (
                isinstance(attributes, Mapping)
                and attributes.get("gen_ai.operation.name") == "search_memory"
            ):
                yield value, attributes
            waiting += list(value.values())[::-1]
        elif isinstance(value, list):
            waiting += value[::-1]

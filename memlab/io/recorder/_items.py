"""The results of any retriever, as items with an id, a score, a text and a time."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from memlab.errors import InputError
from memlab.kernel.base.clock import Micros, to_micros

_LENGTH = 2_000
"""The first characters of a text that are read for ``words`` and ``overlap``: a long text costs little time."""

# The fields that stores use for an id, a text and a time, in the order in which they are tried.
_IDS = ("id", "memory_id", "key")
_TEXTS = ("text", "memory", "content", "document", "page_content", "value")
_TIMES = ("created_at", "created")


class Item(NamedTuple):
    """One result of a store, in its own form and with common fields.

    ``score`` is None, ``text`` "" and ``time`` None if they are unknown.
    """

    raw: Any
    id: str
    score: float | None
    text: str
    time: Any


def finite(value: Any) -> float | None:
    """Return a value as a float, or None if the value is not a finite number."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def read_items(results: Iterable[Any]) -> list[Item]:
    """Convert results to items, best first. A repeated id counts only at its first position.

    Raises InputError if a result has neither an id nor a text, or if there is no list.
    """
    if isinstance(results, str | Mapping) or not isinstance(results, Iterable):
        raise InputError(
            f"The search returned {type(results).__name__} instead of a list of results. Return [] if it found nothing."
        )
    items: dict[str, Item] = {}
    for raw in results:
        item = raw if isinstance(raw, Item) else read_item(raw)
        items.setdefault(item.id, item)
    return list(items.values())


def read_item(raw: Any) -> Item:
    """Convert a result, or a pair of a result and a score, to an item."""
    result, score = raw, None
    if isinstance(raw, tuple) and len(raw) == 2 and finite(raw[1]) is not None:
        result, score = raw
    if isinstance(result, str):
        result = {"text": result}
    elif not isinstance(result, (dict, Mapping)):
        fields = (*_IDS, *_TEXTS, *_TIMES, "score")
        result = {name: getattr(result, name) for name in fields if hasattr(result, name)}
    id, text = first_value(result, _IDS), first_value(result, _TEXTS)
    if not isinstance(text, str):
        inner = isinstance(text, Mapping) and (first_value(text, _TEXTS) or str(text))
        text = inner if isinstance(inner, str) else ""
    if id is None and not text:
        raise InputError(
            f"A result of the search has neither an id nor a text, so it cannot be recorded: it is {type(raw).__name__}. "
            f"Return texts, or dicts with id, and optionally score and text."
        )
    if id is None:
        id = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    time = first_value(result, _TIMES)
    return Item(raw, str(id), finite(result.get("score", score)), text, time)


def read_time(time: Any) -> Micros:
    """Return the time of a result in microseconds, or 0 for an unknown or unreadable time."""
    try:
        return 0 if time is None else to_micros(time)
    except InputError:
        return 0


def first_value(result: Mapping[str, Any], names: Iterable[str]) -> Any:
    """Return the first value that is not None among the named fields, or None."""
    for name in names:
        value = result.get(name)
        if value is not None:
            return value
    return None


def measure_texts(query: str, items: Sequence[Item]) -> dict[str, list[float | None]]:
    """Return features of the results: score, word count, and share of the query's words."""
    query_words = set(query[:_LENGTH].lower().split())
    texts = [item.text[:_LENGTH].lower().split() for item in items]
    return {
        "search-score": [item.score for item in items],
        "words": [float(len(words)) for words in texts],
        "overlap": [
            len(query_words.intersection(words)) / max(len(query_words), 1) for words in texts
        ],
    }

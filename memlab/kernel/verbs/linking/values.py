"""Numbers, dates, times and amounts of a statement, each with what it counts: what two statements may differ in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from memlab.kernel.english import NUMBER_WORDS, number_of, vocabulary
from memlab.kernel.verbs.linking.negation import stem

__all__ = ["Values", "read_values"]

_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec"
_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_PATTERN = re.compile(
    rf"(?P<date>\b(?:{_MONTHS})\.? \d{{1,2}}(?:st|nd|rd|th)?\b(?:, ?\d{{4}})?|\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?(?:{_MONTHS})\b|\b\d{{4}}-\d\d-\d\d\b)"
    rf"|(?P<time>\b\d{{1,2}}:\d\d(?: ?[ap]\.?m\b)?|\b\d{{1,2}} ?[ap]\.?m\b|\bnoon\b|\bmidnight\b)"
    rf"|(?P<day>\b(?:{_DAYS})s?\b)"
    r"|(?P<money>[$\u20ac\u00a3] ?\d[\d,.]*(?:k|m)?|\b\d[\d,.]* (?:dollars|euros|pounds|usd|eur)\b)"
    r"|(?P<percent>\b\d[\d.,]*(?: ?%| percent\b))"
    rf"|(?P<count>(?<![\w.#/-])(?:\d[\d,]*(?:\.\d+)?|{'|'.join(sorted(w for w in NUMBER_WORDS if w not in ('one', 'a', 'an')))}))(?P<unit>(?:[ -][a-z][a-z'-]+){{0,3}})",
    re.IGNORECASE,
)
_VALUED = re.compile(rf"\d|\b(?:{'|'.join(sorted({*NUMBER_WORDS, 'noon', 'midnight'}))})\b|(?:{_DAYS})", re.IGNORECASE)
"""What every text with a value holds; looked for first, as it is found much faster."""

_ABOUT_TIME = frozenset({"date", "time", "day"})


@dataclass(frozen=True)
class Values:
    """Of each kind the values; the kinds of counts are named by what they count (``count:card``), else ``count:``."""

    by_kind: dict[str, frozenset[str]]
    words: frozenset[str]
    """Stems of the units."""
    places: tuple[tuple[str, str, int, int], ...] = ()
    """Kind, value, start and stop of each value, in order; a count of two units stands there twice."""


@lru_cache(maxsize=8192)
def read_values(text: str) -> Values:
    """Return the values of a text by kind.

    >>> sorted(read_values("10 project cards by April 5").by_kind)
    ['count:card', 'count:project', 'date']
    """
    if _VALUED.search(text) is None:
        return Values({}, frozenset())
    found: dict[str, set[str]] = {}
    units: set[str] = set()
    places: list[tuple[str, str, int, int]] = []
    for match in _PATTERN.finditer(text[:2000]):
        kind = match.lastgroup or ""
        if kind in ("count", "unit"):
            number = _number(match["count"])
            names = list((match["unit"] or "").lower().replace("-", " ").split())
            stop = next((at for at, word in enumerate(names) if word in vocabulary("linking", "no-units")), len(names))
            heads = [stem(word) for word in names[:stop]][:2]
            units.update(heads)
            for head in heads or [""]:
                found.setdefault(f"count:{head}", set()).add(number)
                places.append((f"count:{head}", number, match.start("count"), match.end("count")))
        else:
            value = _normal(kind, match[0])
            found.setdefault(kind, set()).add(value)
            places.append((kind, value, *match.span()))
    return Values({kind: frozenset(values) for kind, values in found.items()}, frozenset(units), tuple(places))


def _number(word: str) -> str:
    known = number_of(word.lower())
    return f"{known:g}" if known is not None else word.replace(",", "").rstrip(".")


def _normal(kind: str, value: str) -> str:
    low = value.lower()
    if kind == "date":
        day = re.search(r"\b\d{1,2}(?!\d)", low)
        month = re.search(rf"({_MONTHS})", low)
        return f"{month[1][:3]} {day[0]}" if month and day else low
    if kind == "time":
        return re.sub(r"[ .]|:00", "", low)
    return re.sub(r"[ ,]|percent", "", low).rstrip("s.%")

"""Which rows hold which words: columnar postings that grow, and the postings of a query.

Measured: 2,000,000 postings of 100,000 texts answer a query of ten words in about a millisecond, because only
posted rows are touched.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from memlab.errors import DamagedLab, InputError, UnknownName
from memlab.kernel.english import STOP_WORDS
from memlab.kernel.index._arrays import Grown, compact, ranges
from memlab.kernel.index._tokens import LONG, Tokens, Written, passages_of, words_of

__all__ = ["Passages", "Query", "Segment", "TermHits", "Words", "merged", "segment_of"]


# Postings in columns: immutable segments sorted by term and row, merged as they add up.
#
# As in a log-structured merge tree, a segment is merged into the one before it once it has grown to a quarter of its
# size, so a posting is copied a logarithmic number of times, and a query meets a handful of segments.


Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Segment:
    """Term ``terms[i]`` (ascending) is posted at ``starts[i]:starts[i + 1]`` of ``rows`` (ascending) and ``tf``."""

    terms: Ints
    starts: NDArray[np.int64]
    rows: Ints
    tf: Ints

    def __len__(self) -> int:
        return len(self.rows)

    def places(self, terms: Ints) -> list[slice | None]:
        """Where the postings of each term stand; None where it has none."""
        if not len(self.terms):
            return [None] * len(terms)
        at = self.terms[:-1].searchsorted(terms)
        held, starts, stops = self.terms[at] == terms, self.starts[at], self.starts[at + 1]
        return [
            slice(start, stop) if own else None
            for own, start, stop in zip(held.tolist(), starts.tolist(), stops.tolist(), strict=True)
        ]


def segment_of(terms: Ints, rows: Ints, tf: Ints) -> Segment:
    """A segment of postings in any order; a pair of term and row comes once."""
    order = np.lexsort((rows, terms))
    unique, first = np.unique(terms[order], return_index=True)
    starts = np.append(first, len(terms)).astype(np.int64)
    return Segment(unique.astype(np.int32), starts, rows[order], tf[order])


def merged(parts: Sequence[Segment]) -> Segment:
    """One segment of several whose rows follow one another."""
    terms = np.unique(np.concatenate([part.terms for part in parts]))
    counts = np.zeros(len(terms), dtype=np.int64)
    places = [np.searchsorted(terms, part.terms) for part in parts]
    sizes = [np.diff(part.starts) for part in parts]
    for place, size in zip(places, sizes, strict=True):
        counts[place] += size
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rows, tf = np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1], dtype=np.int32)
    free = starts[:-1].copy()
    for part, place, size in zip(parts, places, sizes, strict=True):
        target = ranges(free[place], size)
        rows[target], tf[target] = part.rows, part.tf
        free[place] += size
    return Segment(terms, starts, rows, tf)


_SEAL = 8192
"""Postings kept unsorted before they become a segment; scanning them costs a query some ten microseconds."""

_MERGE_AT = 4
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Query:
    """``terms``: ids of the known stems, unique, in order of appearance; ``unknown``: how many others no text had.

    ``words`` has the first word of each stem, as it was written, with the id of the stem, -1 for one that no text had.
    """

    terms: Ints
    tokens: tuple[str, ...]
    unknown: int = 0
    words: tuple[tuple[str, int], ...] = ()


class TermHits:
    """Postings of a query, term by term in its order, and by row within a term: posting ``i`` says that the row
    ``row[i]`` holds a term ``tf[i]`` times.

    ``frequency`` counts the rows that hold each term, and ``unknown`` the query's terms that no text had. Sums over
    postings do not depend on how they are stored.
    """

    def __init__(self, row: Ints, tf: Ints, frequency: NDArray[np.int64], unknown: int = 0) -> None:
        self.row, self.tf, self.frequency, self.unknown = row, tf, frequency, unknown
        self.size = len(frequency)
        """How many terms are known."""

    def __len__(self) -> int:
        return len(self.row)

    @cached_property
    def term(self) -> NDArray[np.int64]:
        """The term of each posting, by its number in the query."""
        return np.arange(self.size).repeat(self.frequency)

    @cached_property
    def posted(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows that hold a term, ascending, and the place of each posting's row among them."""
        return compact(self.row.astype(np.int64))

    @cached_property
    def parts(self) -> list[tuple[Ints, Ints]]:
        """Of each term, the rows that hold it, ascending, and how often."""
        stops = self.frequency.cumsum().tolist()
        return [
            (self.row[start:stop], self.tf[start:stop]) for start, stop in pairwise((0, *stops))
        ]


class Passages:
    """The passages of long rows: rows of an index of their own, which has the terms and forms of the whole one."""

    def __init__(self, words: Words, of: NDArray[np.int64] | None = None) -> None:
        of = np.empty(0, dtype=np.int64) if of is None else of
        self.words = words
        self._of = Grown(of)
        opens = np.flatnonzero(np.diff(of, prepend=-1))
        self._long = Grown(of[opens], opens, np.diff(opens, append=len(of)))

    @property
    def of(self) -> NDArray[np.int64]:
        """The row of each passage, ascending."""
        return self._of.column(0)

    def append(
        self, rows: Sequence[int], texts: Sequence[str], speakers: Sequence[str | None]
    ) -> None:
        """The passages of more rows, which are long."""
        first = len(self.words)
        spans = [passages_of(text) for text in texts]
        counts = np.array([len(own) for own in spans])
        self._long.append(np.array(rows), first + np.cumsum(counts) - counts, counts)
        self._of.append(np.repeat(rows, counts))
        self.words.append(
            [text[begin:end] for text, own in zip(texts, spans, strict=True) for begin, end in own],
            [speaker for speaker, own in zip(speakers, spans, strict=True) for _ in own],
        )

    def among(
        self, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Which places of ``rows`` are long, the passages of each one after the other, and where each one's begin."""
        long, first, count = self._long.columns
        at = long[:-1].searchsorted(rows)
        (places,) = (long[at] == rows).nonzero()
        counts = count[at[places]]
        return places, ranges(first[at[places]], counts), np.cumsum(counts) - counts


class Words:
    """The words of ``len(words)`` rows, appended and never changed. A long row is posted once more by ``passages``.

    ``language`` is a Snowball stemmer (None: no stemming). ``stop_words`` are neither indexed nor counted; unless
    given they are ``STOP_WORDS`` of the language, and none if it has no list; ``()`` keeps every word.

    >>> words = Words()
    >>> words.append(["The user prefers tabs", "Spaces are preferred here"])
    >>> hits = words.hits(words.query("who prefers tabs?"))
    >>> hits.row.tolist(), words.lengths.tolist()
    ([0, 1, 0], [3, 2])
    """

    def __init__(
        self, language: str | None = "english", *, stop_words: Iterable[str] | None = None
    ) -> None:
        if stop_words is None:
            stop_words = STOP_WORDS.get(language or "", ())
        self.language = language
        self._tokens = Tokens(language, stop_words)
        self.written = Written(language, self._tokens.__getitem__)
        self._lengths = np.empty(0, dtype=np.int32)
        self._size = 0
        self._segments: list[Segment] = []
        self._pending = np.empty((3, _SEAL), dtype=np.int32)
        self._waiting = 0
        self._places: dict[int, list[int]] = {}
        self._placed = 0
        self.passages: Passages | None = None
        """None where no row is long."""
        self._splits = True

    def __len__(self) -> int:
        return self._size

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The stem of each term id."""
        return tuple(self._tokens.terms)

    @property
    def lengths(self) -> Ints:
        """The number of words of each row, stop words left out; a read-only view of the rows so far."""
        lengths = self._lengths[: self._size]
        lengths.flags.writeable = False
        return lengths

    def append(self, texts: Sequence[str], speakers: Sequence[str | None] = ()) -> None:
        """Index one more row for each text. Who said it is posted with it, as if the text began with the name."""
        if isinstance(texts, str):
            raise InputError("Words are appended from a sequence of texts, not from one text.")
        said: list[list[str]] = []
        names: list[int] = []
        long: list[int] = []
        named: dict[str | None, list[str]] = {None: []}
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise InputError(f"Text {number} is not a str but {type(text).__name__}.")
            speaker = speakers[number] if speakers else None
            name = named.get(speaker)
            if name is None:
                name = named[speaker] = words_of(speaker or "")
            own = words_of(text)
            said.append([*name, *own])
            names.append(len(name))
            if len(own) > LONG and self._splits:
                long.append(number)
        start, fresh = self._size, len(said)
        terms, rows = self.written.append(said, texts, names)
        self._append_lengths(np.bincount(rows, minlength=fresh))
        # one sort groups the words of a row and puts the postings in order of term and row
        keys, tf = _counted(terms * fresh + rows)
        posted, at = np.divmod(keys, max(fresh, 1))
        at += start
        if self._waiting + len(keys) <= _SEAL:
            stop = self._waiting + len(keys)
            self._pending[0, self._waiting : stop] = posted
            self._pending[1, self._waiting : stop] = at
            self._pending[2, self._waiting : stop] = tf
            self._waiting = stop
        else:
            self.seal()
            self._add(segment_of(posted.astype(np.int32), at.astype(np.int32), tf.astype(np.int32)))
        if long:
            self.passages = self.passages or Passages(self._of_passages())
            whose = [speakers[number] if speakers else None for number in long]
            self.passages.append(
                [start + number for number in long], [texts[number] for number in long], whose
            )

    def query(self, text: str) -> Query:
        """The terms of a question: each stem counts once, words that no text had are counted and left out."""
        if not isinstance(text, str):
            raise InputError(f"A question is a str, not {type(text).__name__}.")
        tokens = words_of(text)
        known: dict[int, str] = {}
        unknown: dict[str, str] = {}
        for token in tokens:
            found = self._tokens.get(token)
            if found is None:
                stem = self._tokens.stem(token)
                if stem is None:
                    continue
                found = self._tokens.id_of(stem)
                if found < 0:
                    unknown.setdefault(stem, token)
            if found >= 0:
                known.setdefault(found, token)
        words = [
            *((word, term) for term, word in known.items()),
            *((word, -1) for word in unknown.values()),
        ]
        terms = np.fromiter(known, dtype=np.int32, count=len(known))
        return Query(terms, tuple(tokens), len(unknown), tuple(words))

    def __contains__(self, stem: str) -> bool:
        """Whether some text had this stem."""
        return self._tokens.id_of(stem) >= 0

    @property
    def stop_words(self) -> frozenset[str]:
        return self._tokens.stop_words

    def stems(self, text: str) -> list[str]:
        """The stems of a text in order, stop words left out; it teaches no words.

        >>> Words().stems("The cats were sleeping")
        ['cat', 'sleep']
        """
        tokens, terms = self._tokens, self._tokens.terms
        found: list[str] = []
        for word in words_of(text):
            known = tokens.get(word)
            if known is None:
                known = tokens.recognised(word)
            stem = tokens.stem(word) if known is None else terms[known] if known >= 0 else None
            if stem is not None:
                found.append(stem)
        return found

    def hits(self, query: Query, mask: Mask | None = None) -> TermHits:
        """The postings of a query's terms, of the rows where ``mask`` is true (all unless given)."""
        if mask is not None and (mask.dtype != np.bool_ or mask.shape != (self._size,)):
            raise InputError(
                f"A mask is a bool array ({self._size},), not {mask.dtype} {mask.shape}."
            )
        # rows of a later part are later rows, so each term's stay in order
        held = [(segment, segment.places(query.terms)) for segment in self._segments]
        terms, late, tf = self._pending[:, : self._waiting]
        if self._placed < self._waiting:
            # where each term waits: looked up, where a pass over all that wait costs some microseconds a term
            for number, term in enumerate(terms[self._placed :].tolist(), self._placed):
                self._places.setdefault(term, []).append(number)
            self._placed = self._waiting
        rows, tfs, stops, total = [_NONE], [_NONE], [], 0
        for number, term in enumerate(query.terms.tolist()):
            for segment, places in held:
                place = places[number]
                if place is not None:
                    rows.append(segment.rows[place])
                    tfs.append(segment.tf[place])
                    total += place.stop - place.start
            at = self._places.get(term)
            if at is not None:
                rows.append(late[at])
                tfs.append(tf[at])
                total += len(at)
            stops.append(total)
        row, often = np.concatenate(rows), np.concatenate(tfs)
        ends = np.array([0, *stops], dtype=np.int64)
        if mask is not None:
            kept = mask[row]
            before = np.zeros(len(kept) + 1, dtype=np.int64)
            np.cumsum(kept, out=before[1:])
            row, often, ends = row[kept], often[kept], before[ends]
        return TermHits(row, often, ends[1:] - ends[:-1], query.unknown)

    # -- on disk ----------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write one file of plain arrays (NumPy's npz), replaced whole; everything is merged into one segment."""
        path = Path(path)
        about = {"language": self._tokens.language, "stop_words": sorted(self._tokens.stop_words)}
        arrays: dict[str, Any] = {
            "about": _bytes(json.dumps(about)),
            "vocabulary": _bytes("\n".join(self._tokens.terms)),
            **self._arrays(),
            **{f"written_{name}": array for name, array in self.written.forms_arrays().items()},
        }
        if self.passages is not None:
            arrays["passages_of"] = self.passages.of
            arrays |= {
                f"passages_{name}": array for name, array in self.passages.words._arrays().items()
            }
        draft = path.with_name(f"{path.name}.draft")
        with draft.open("wb") as file:
            np.savez(file, **arrays)
        draft.replace(path)

    @classmethod
    def load(cls, path: str | Path) -> Words:
        """Read what ``save`` wrote. DamagedLab if the file is not whole."""
        path = Path(path)
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                about = json.loads(arrays["about"].tobytes())
                text = arrays["vocabulary"].tobytes().decode()
                given = {
                    name: arrays[name]
                    for name in arrays.files
                    if name not in ("about", "vocabulary")
                }
            words = cls(about["language"], stop_words=about["stop_words"])
            words._tokens = Tokens(
                about["language"], about["stop_words"], text.split("\n") if text else ()
            )
            words.written = Written(about["language"], words._tokens.__getitem__)
            forms, *of_forms = (
                given[f"written_{name}"] for name in ("forms", "form_terms", "form_signs")
            )
            words.written.restore_forms(forms, *of_forms, vocabulary=len(words._tokens.terms))
            words._restore(path, given)
            if "passages_of" in given:
                inner = words._of_passages()
                inner._restore(path, given, "passages_")
                of = given["passages_of"]
                if (
                    len(of) != len(inner)
                    or not len(of)
                    or (np.diff(of) < 0).any()
                    or not 0 <= of[0] <= of[-1] < len(words)
                ):
                    raise ValueError("the passages are those of other rows")
                words.passages = Passages(inner, of)
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            EOFError,
            BadZipFile,
            UnknownName,
        ) as error:
            raise DamagedLab(f"The words in {path} cannot be read: {error}") from None
        return words

    # -- inside -----------------------------------------------------------------------------------------------

    def _of_passages(self) -> Words:
        """An index of other rows with the terms and forms of this one."""
        inner = Words(self.language, stop_words=())
        inner._tokens, inner.written, inner._splits = self._tokens, self.written.beside(), False
        return inner

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """What it holds of its rows, merged into one segment."""
        self.seal()
        self._segments = [merged(self._segments)] if self._segments else []
        base = (
            self._segments[0] if self._segments else segment_of(*np.empty((3, 0), dtype=np.int32))
        )
        return {
            "lengths": self.lengths,
            "terms": base.terms,
            "starts": base.starts,
            "rows": base.rows,
            "tf": base.tf,
            **{f"written_{name}": array for name, array in self.written.arrays().items()},
        }

    def _restore(self, path: Path, arrays: dict[str, NDArray[Any]], prefix: str = "") -> None:
        """Take over what ``_arrays`` gave; DamagedLab or ValueError where the parts contradict each other."""
        given = {
            name.removeprefix(prefix): array
            for name, array in arrays.items()
            if name.startswith(prefix)
        }
        base, lengths = (
            Segment(given["terms"], given["starts"], given["rows"], given["tf"]),
            given["lengths"],
        )
        _check(path, base, len(self._tokens.terms), len(lengths))
        self.written.restore(
            *(given[f"written_{name}"] for name in ("signs", "counts", "stops", "held"))
        )
        if len(self.written) != len(lengths):
            raise DamagedLab(f"The words in {path} are those of other rows: rebuild them.")
        self._append_lengths(lengths)
        self._segments = [base] if len(base) else []

    def _append_lengths(self, lengths: NDArray[Any]) -> None:
        needed = self._size + len(lengths)
        if needed > len(self._lengths):
            grown = np.empty(max(needed, 2 * len(self._lengths)), dtype=np.int32)
            grown[: self._size] = self._lengths[: self._size]
            self._lengths = grown
        self._lengths[self._size : needed] = lengths
        self._size = needed

    def seal(self) -> None:
        """Sort the rows that wait into a segment of their own."""
        if self._waiting:
            pending = self._pending[:, : self._waiting]
            self._waiting = self._placed = 0
            self._places = {}
            self._add(segment_of(*pending))

    def _add(self, segment: Segment) -> None:
        if not len(segment):
            return
        self._segments.append(segment)
        while len(self._segments) > 1 and _MERGE_AT * len(self._segments[-1]) > len(
            self._segments[-2]
        ):
            self._segments[-2:] = [merged(self._segments[-2:])]


def _counted(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different keys, ascending, and how many of each; ``keys`` are put in order. Half the cost of ``unique``."""
    keys.sort()
    opens = np.ones(len(keys) + 1, dtype=np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=opens[1:-1])
    (first,) = opens.nonzero()
    return keys[first[:-1]], first[1:] - first[:-1]


_NONE: Ints = np.empty(0, dtype=np.int32)


def _bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), dtype=np.uint8)


def _check(path: Path, base: Segment, vocabulary: int, size: int) -> None:
    """DamagedLab unless the arrays fit together."""
    starts, terms, rows = base.starts, base.terms, base.rows
    sound = (
        len(starts) == len(terms) + 1
        and len(rows) == len(base.tf) == int(starts[-1])
        and int(starts[0]) == 0
        and bool((np.diff(starts) > 0).all())
        and bool((np.diff(terms) > 0).all())
        and (not len(terms) or (int(terms[0]) >= 0 and int(terms[-1]) < vocabulary))
        and (not len(rows) or (int(rows.min()) >= 0 and int(rows.max()) < size))
    )
    if not sound:
        raise DamagedLab(f"The postings in {path} contradict each other: rebuild them.")

"""The features of memories, by column and only once each: of the memory and the time alone, then of a question.

``memlab.policies.FEATURES`` says what each name means; this module computes it. Nothing here weighs or decides.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from memlab.clock import DAY
from memlab.embedding import evened
from memlab.index import SAYS, Asked, Signs, among
from memlab.language import Coded, Known, Policy, Program
from memlab.policies import FEATURES, Pack
from memlab.recall._dates import days_from
from memlab.recall._extended import extended_values
from memlab.recall._hints import Phrases, file_namer, tag_namer
from memlab.recall._question import QuestionFeatures
from memlab.recall._takes_over import corrects, min_max, takes_over
from memlab.schema import RELATIONS, SPEAKER_ROLES, USES, role_of
from memlab.state import State, gather, words_at
from memlab.state.columns import Names

__all__ = ["COMPUTE", "Candidates", "Column", "Features", "Moment", "Rows", "Values", "columns", "read", "reading_of"]

_NEXT = RELATIONS.index("next")
_UPDATES = RELATIONS.index("updates")
_OUTDATED = 0.4
"""Share of a question's words from which it may be about one statement of a memory."""

_BITS: NDArray[np.bool_] = np.arange(1 << len(SAYS)) >> np.arange(len(SAYS))[:, None] & 1 != 0
"""bool[signs, numbers]: which bits each number has."""

_LN2 = math.log(2.0)
_MS_A_DAY = 86_400_000.0
_TAG = re.compile(r"(?<!\w)#([\w:/.+-]*\w)")

Rows = NDArray[np.int64]
Values = NDArray[Any]
Column = Values | tuple[Values, NDArray[np.bool_]]
Ready = tuple[Any, NDArray[np.bool_] | None]
_BY_ITSELF = (
    *("seed", "received", "activation", "hops", "session-lexical", "names-speaker", "names-other"),
    *("coverage", "similarity", "lexical"),
)
"""Features whose values do not depend on which others are candidates."""

_NOTHING: Mapping[str, Callable[[], Column]] = MappingProxyType({})


class Features(Protocol):
    """Columns of features by name."""

    def __getitem__(self, name: str) -> Values: ...


def read(pool: Features, policy: Policy, name: str) -> Values:
    """What a test of sets, which a policy has as an input, gives; null is NaN."""
    test = policy.derived[name]
    values, nulls = test.array({item: pool[item] for item in test.sets})
    return np.asarray(values if nulls is None else np.where(nulls, np.nan, values))


def columns(
    pool: Features,
    policy: Policy,
    *,
    given: Mapping[str, Callable[[], Column]] = _NOTHING,
    at: Rows | None = None,
) -> dict[str, Column]:
    """What ``policy`` reads, as its arrays want it: ``given`` first, then features, with their nulls.

    ``at`` picks some of the rows. A policy that reads nothing gets one column, which says how many rows there are.
    """
    found: dict[str, Column] = {}
    tests = policy.derived
    for name in policy.inputs or (next(iter(given), "access"),):
        if name in given:
            found[name] = given[name]()
            continue
        values = read(pool, policy, name) if name in tests else pool[name]
        values = values if at is None else values[at]
        nullable = name in FEATURES and FEATURES[name].nullable
        found[name] = (values, np.isnan(values)) if nullable else values
    return found


class Reading:
    """How a policy reads features: a test of sets comes with the sets that it reads, what may be null with a mask, and
    words that are compared with constants alone as codes.
    """

    def __init__(self, policy: Policy, program: Program) -> None:
        self.policy, self.program = policy, program
        self.inputs = tuple((name, _how(policy, program, name)) for name in program.reads)
        self.uniform = tuple(name for name in program.reads if name in _UNIFORM)
        """The inputs that all candidates of some recalls share."""
        self._knowing: dict[Known, Reading] = {}

    def knowing(self, known: Known) -> Reading:
        """The same where all rows have these values."""
        reading = self._knowing.get(known)
        if reading is None:
            if len(self._knowing) > _KEPT:
                self._knowing.clear()
            reading = self._knowing[known] = Reading(self.policy, self.program.knowing(known))
        return reading


_readings: dict[tuple[str, str, int], Reading] = {}


def reading_of(policy: Policy) -> Reading:
    """How ``policy`` reads features, as they are declared now."""
    key = policy.hash, policy.signature.slot, FEATURES.changes
    reading = _readings.get(key)
    if reading is None:
        if len(_readings) > _KEPT:
            _readings.clear()
        reading = _readings[key] = Reading(policy, Program(policy))
    return reading


def _how(policy: Policy, program: Program, name: str) -> str:
    if name in policy.derived:
        return _TEST
    if name in program.compares and name in _CODED:
        return _CODES
    return _NULLABLE if name in FEATURES and FEATURES[name].nullable else _PLAIN


_KEPT = 256
"""Readings that are kept."""

_TEST, _NULLABLE, _CODES, _PLAIN = "test", "nullable", "codes", "plain"


class Moment:
    """Some rows of a state at an instant (``now``, microseconds UTC), with features on demand. Rows are ascending.

    ``now`` may be an instant for each row.
    """

    compute: ClassVar[Mapping[str, Callable[[Any], Values]]]
    """Of each feature, how to have it."""

    quiet: ClassVar[bool] = False
    """Whether NumPy's warnings are off whenever it is asked."""

    def __init__(self, state: State, pack: Pack, rows: Rows, now: int | Rows | NDArray[np.float64]) -> None:
        self.state, self.pack, self.rows, self.now = state, pack, rows, np.asarray(now, dtype=np.float64)
        self._known: dict[str, Values] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Values:
        values = self._known.get(name)
        if values is None:
            compute = self.compute.get(name)
            values = extended_values(FEATURES[name], self) if compute is None else compute(self)
            self._known[name] = values
        return values

    def fill(self, table: NDArray[np.float64], names: tuple[str, ...]) -> None:
        """Write numbers and flags, null as NaN, into the first rows of f64[names, rows]. Columns of the state are read
        all at once.
        """
        layout = _layout(names)
        numbers = self.state.numbers
        gather(
            [numbers[column] for _, column in layout.stored], self.rows, [table[place] for place, _ in layout.stored]
        )
        if layout.uses:
            table[[place for place, _ in layout.uses]] = self.use_days()[[number for _, number in layout.uses]]
        shared = dict(self.shared(layout.uniform))
        known = self._known
        for place, name in layout.others:
            if name in known:
                table[place] = known[name]
            elif name in shared:
                table[place] = np.nan if shared[name] is None else shared[name]
            else:
                table[place] = self[name]

    def words(self, also: Iterable[str] = ()) -> dict[str, list[str | None]]:
        """The features that are columns of words, and those of ``also``, by name."""
        names = self.state.names
        found = dict(zip(_WORDS, words_at([names[column] for column in _WORDS.values()], self.rows), strict=True))
        return found | {name: self[name].tolist() for name in also}

    def give(self, **features: Values) -> None:
        """Set features that something else decided."""
        self._known.update(features)

    def ask(
        self, policy: Policy, *, given: Mapping[str, Callable[[], Column]] = _NOTHING
    ) -> tuple[Values, NDArray[np.bool_] | None]:
        """What a policy makes of these memories, and where it makes nothing. ``given``: inputs that are no features."""
        reading = reading_of(policy)
        if reading.uniform and (known := self.shared(reading.uniform)):
            reading = reading.knowing(known)
        ready = [
            (self[name], None) if how == _PLAIN and name not in given else self._ready(policy, name, how, given)
            for name, how in reading.inputs
        ]
        return reading.program.compute(ready, len(self.rows), order=self.rows, quiet=self.quiet)

    def ask_some(
        self, policy: Policy, places: Rows, given: Mapping[str, Callable[[], Column]]
    ) -> tuple[Values, NDArray[np.bool_] | None]:
        """What a policy makes of the memories at ``places``, in that order; ``given`` are inputs of these alone."""
        reading = reading_of(policy)
        ready: list[Ready] = []
        for name, how in reading.inputs:
            values, nulls = self._ready(policy, name, how, given)
            if name not in given:
                values = (values.array() if isinstance(values, Coded) else values)[places]
                nulls = None if nulls is None else nulls[places]
            ready.append((values, nulls if nulls is not None and nulls.any() else None))
        return reading.program.compute(ready, len(places), order=np.arange(len(places)), quiet=self.quiet)

    def shared(self, names: Iterable[str]) -> Known:
        """Which of these features all rows share, with the value; of a moment without a question none."""
        return ()

    def _ready(self, policy: Policy, name: str, how: str, given: Mapping[str, Callable[[], Column]]) -> Ready:
        """One input of a policy, and where it is null."""
        if name in given:
            column = given[name]()
            values, nulls = column if isinstance(column, tuple) else (column, None)
        elif how == _CODES:
            return self.coded(name), None
        elif how == _TEST:
            return read(self, policy, name), None
        else:
            values = self[name]
            nulls = np.isnan(values) if how == _NULLABLE else None
        return values, nulls if nulls is not None and nulls.any() else None

    def coded(self, name: str) -> Coded | Values:
        """A feature that is a column of words, as codes where it was not given."""
        if name in self._known:
            return self._known[name]
        if name == "speaker-role":
            return self._coded_roles()
        names = self.state.names[_WORDS[name]]
        return Coded(names.codes[self.rows], names.vocabulary, names.known)

    # -- one method for each family ---------------------------------------------------------------------------

    def number(self, column: str) -> Values:
        return np.asarray(self.state.numbers[column].values[self.rows])

    def word(self, column: str) -> Values:
        return self.state.names[column].objects(self.rows)

    def days_since(self, column: str) -> Values:
        # far from now the difference of two instants does not fit 64 bits
        return np.asarray(np.maximum((self.now - self.number(column)) / DAY, 0.0))

    def before(self) -> Rows:
        """The row just before each one in its session; -1 where none is."""
        if "before" not in self._known:
            self._known["before"] = self.state.edges.step(self.rows, _NEXT, outgoing=False)
        return self._known["before"]

    def answers(self) -> Values:
        before = self.before()
        return np.asarray((before >= 0) & self.state.asks.values[before])  # -1 is some row too, and does not count

    def length(self) -> Values:
        words = self.state.words_in(str(self.pack.settings["language"]))
        return np.asarray(words.lengths[self.rows], dtype=np.float64)

    def says(self) -> Values:
        """bool[signs, rows]: of what each row has a sign."""
        if "says" not in self._known:
            written = self.state.words_in(str(self.pack.settings["language"])).written
            self._known["says"] = _BITS.take(written.signs[self.rows], axis=1)
        return self._known["says"]

    def word_count(self) -> Values:
        written = self.state.words_in(str(self.pack.settings["language"])).written
        return written.counts[self.rows].astype(np.float64)

    def speaker_role(self) -> Values:
        """By the name of who said it, or else of who wrote it."""
        coded = self._coded_roles()
        return coded if isinstance(coded, np.ndarray) else coded.array()

    def _coded_roles(self) -> Coded | Values:
        speakers, creators = self.state.names["speaker"], self.state.names["creator"]
        if not creators.held:
            roles = _roles_of(speakers, creators.default)
            return Coded(roles[speakers.codes[self.rows]], SPEAKER_ROLES, _ROLES)
        pairs = zip(speakers.objects(self.rows), creators.objects(self.rows), strict=True)
        return np.array([role_of(*pair) for pair in pairs], dtype=object)

    def use_days(self) -> Values:
        """f64[uses, rows]: the ages of each row's latest uses, the newest first; NaN where there were fewer."""
        if "use-days" not in self._known:
            uses = self.state.uses
            instants = uses.values[self.rows].T
            ages = np.maximum((self.now - instants) / DAY, 0.0)
            ages[instants == uses.NEVER] = np.nan
            self._known["use-days"] = ages
        return self._known["use-days"]

    def half_life(self) -> Values:
        """Days, by the pack's policy; NaN where it gives null."""
        if "half-life" not in self._known:
            policy = self.pack.policies["half-life"]
            base = float(self.pack.settings["base-half-life"])
            given: dict[str, Callable[[], Values]] = {
                "base-half-days": lambda: np.full(len(self), base),
                "base-half-ms": lambda: np.full(len(self), base * _MS_A_DAY),
                "recency-ms": lambda: self["idle-days"] * _MS_A_DAY,
            }
            if policy.inputs == ("base-half-days",) and not reading_of(policy).program.aggregates:
                same = policy.row({"base-half-days": base})
                half = np.full(len(self), np.nan if same is None else same)
                self._known["half-life"] = half / self.pack.unit("half-life")
                return self._known["half-life"]
            half, nulls = self.ask(policy, given=given)
            half = half / self.pack.unit("half-life")
            self._known["half-life"] = half if nulls is None else np.where(nulls, np.nan, half)
        return self._known["half-life"]

    def recency(self) -> Values:
        if self.quiet:
            return np.asarray(np.exp(-_LN2 * self["idle-days"] / self.half_life()))
        with np.errstate(all="ignore"):
            return np.asarray(np.exp(-_LN2 * self["idle-days"] / self.half_life()))

    def retention(self) -> Values:
        values, nulls = self.ask(self.pack.policies["retention"], given={"half-life": self.half_life})
        return np.asarray(values if nulls is None else np.where(nulls, np.nan, values))

    def sets(self, column: str) -> Values:
        """The strings of each row as tuples, empty for none."""
        lists = self.state.lists[column]
        found = np.empty(len(self), dtype=object)
        found[:] = [lists.at(row) for row in self.rows.tolist()]
        return found


_STORED = {
    "access": "access",
    "success": "success",
    "fail": "fail",
    "importance": "importance",
    "confidence": "confidence",
    "trust": "trust",
    "strength": "strength",
    "energy": "energy",
    "stability": "stability",
    "difficulty": "difficulty",
    "ttl-days": "ttl_days",
    "emotional-weight": "emotional_weight",
    "recency-weight": "recency_weight",
    "pinned": "pinned",
}
"""Features that are columns of numbers."""

_WORDS = {name: name for name in ("kind", "scope", "provenance", "visibility", "source", "status")}
"""Features that are columns of words."""

_CODED = frozenset((*_WORDS, "speaker-role"))
"""Features of words that policies can be given as codes."""

_ROLES = {role: code for code, role in enumerate(SPEAKER_ROLES)}
_roles_by_speaker: WeakKeyDictionary[Names, tuple[str | None, NDArray[np.int64]]] = WeakKeyDictionary()


def _roles_of(speakers: Names, creator: str | None) -> NDArray[np.int64]:
    """The role of each speaker by code, and last of those without a speaker, whom ``creator`` wrote."""
    known = _roles_by_speaker.get(speakers)
    if known is None or known[0] != creator or len(known[1]) != len(speakers.vocabulary) + 1:
        roles = [_ROLES[role_of(name, creator)] for name in (*speakers.vocabulary, None)]
        known = _roles_by_speaker[speakers] = creator, np.array(roles, dtype=np.int64)
    return known[1]


_USES = {f"use-{number}-days": number - 1 for number in range(1, USES + 1)}


class _Layout(NamedTuple):
    """Where the features of a table come from, each with its place in it."""

    stored: list[tuple[int, str]]
    uses: list[tuple[int, int]]
    others: list[tuple[int, str]]
    uniform: tuple[str, ...]


@cache
def _layout(names: tuple[str, ...]) -> _Layout:
    placed = list(enumerate(names))
    return _Layout(
        [(place, _STORED[name]) for place, name in placed if name in _STORED],
        [(place, _USES[name]) for place, name in placed if name in _USES],
        [(place, name) for place, name in placed if name not in _STORED and name not in _USES],
        tuple(name for name in names if name in _UNIFORM),
    )


def _number(column: str) -> Callable[[Moment], Values]:
    return lambda moment: moment.number(column)


def _word(column: str) -> Callable[[Moment], Values]:
    return lambda moment: moment.word(column)


def _use(number: int) -> Callable[[Moment], Values]:
    return lambda moment: moment.use_days()[number]


def _says(place: int) -> Callable[[Moment], Values]:
    return lambda moment: moment.says()[place]


COMPUTE: dict[str, Callable[[Moment], Values]] = {
    **{name: _says(place) for place, name in enumerate(SAYS)},
    "words": Moment.word_count,
    "speaker-role": Moment.speaker_role,
    "asks": lambda moment: moment.state.asks.values[moment.rows],
    "answers": Moment.answers,
    "length": Moment.length,
    "age-days": lambda moment: moment.days_since("created"),
    "idle-days": lambda moment: moment.days_since("accessed"),
    "recency": Moment.recency,
    "elapsed-days": lambda moment: moment["idle-days"],
    "retention": Moment.retention,
    "uses": lambda moment: moment["access"] + 1.0,
    **{name: _use(number) for name, number in _USES.items()},
    **{name: _number(column) for name, column in _STORED.items()},
    **{name: _word(column) for name, column in _WORDS.items()},
    "tags": lambda moment: moment.sets("tags"),
    "files": lambda moment: moment.sets("files"),
}
"""Of each feature of the stage ``memory``."""

Moment.compute = COMPUTE


class Candidates(Moment):
    """Some rows of a state under one question, with all features on demand. Rows are ascending."""

    quiet = True

    def __init__(self, state: State, pack: Pack, asked: QuestionFeatures, rows: Rows) -> None:
        super().__init__(state, pack, rows, asked.at)
        self.asked = asked
        self._held: tuple[Rows, Values, Rows] | None = None

    def shared(self, names: Iterable[str]) -> Known:
        """Which of these features all candidates share, with the value."""
        kept, found = self.asked.shared, []
        for name in names:
            if name not in kept:
                kept[name] = _UNIFORM[name](self.asked)
            if kept[name] is not _VARIES:
                found.append((name, kept[name]))
        return tuple(found)

    def among(self, places: Rows) -> Candidates:
        """Those at ascending places, with what is known of each row by itself."""
        found = Candidates(self.state, self.pack, self.asked, self.rows[places])
        known = self._known
        found.give(**{name: known[name][places] for name in _BY_ITSELF if name in known})
        return found

    def contexts(self) -> NDArray[np.int32]:
        return self.state.contexts.codes[self.rows]

    def query_tags(self) -> Values:
        named = tuple(dict.fromkeys(_TAG.findall(self.asked.question.text)))
        found = np.empty(len(self), dtype=object)
        found[:] = [named] * len(self)
        return found

    def triggered(self) -> Values:
        return _any_of(self.rows, self.asked.triggered())

    def names_speaker(self) -> Values:
        return _any_of(self.state.names["speaker"].codes[self.rows], self.asked.named)

    def phrase(self) -> Values:
        """Read are only the texts that hold both words of some pair."""
        asked = Phrases(self.asked.words, self.asked.question.text)
        found = np.zeros(len(self))
        places = np.flatnonzero(self.asked.matches.with_pair(self.rows, asked.terms))
        texts = self.state.texts.take(self.rows[places])
        found[places] = [asked.share(text or "") for text in texts]
        return found

    def windows(self) -> Rows:
        """The rows, the two that take part before each in its session and the two after; -1 where there is none."""
        if "windows" not in self._known:
            self._known["windows"] = self.state.around(self.rows, 2, self.asked.population.mask)
        return self._known["windows"]

    def held(self) -> tuple[Rows, Values, Rows]:
        """The forms of the rows, which of them have a capital, and how many each row has."""
        if self._held is None:
            self._held = self.asked.words.written.held(self.rows)
        return self._held

    def late(self) -> Values:
        forms, _, counts = self.held()
        return self.asked.late(self.rows, forms, counts)

    def takes_over(self) -> Values:
        return takes_over(
            self.state.vectors.take(self.rows),
            (min_max(self["late"]) + min_max(self["similarity"])) / 2.0,
            self.number("created"),
            self.state.names["speaker"].codes[self.rows],
            self.contexts(),
            self.asked.embedder.scale,
        )

    def content(self) -> list[frozenset[int]]:
        """The stems of each row that say what it is about: no stop words, no words such as user and like."""
        forms, _, counts = self.held()
        written = self.asked.words.written
        stems = written.terms[forms]
        unspecific = self.asked.signs.words["unspecific"]
        known = [form for word in unspecific if (form := written.id_of(word)) >= 0]
        stems = np.where(np.isin(stems, written.terms[known]), -1, stems) if known else stems
        parts = np.split(stems, counts.cumsum()[:-1])
        return [frozenset(part[part >= 0].tolist()) for part in parts]

    def corrects(self) -> Values:
        kinds = self.state.names["kind"]
        (rows,) = np.nonzero(kinds.codes[self.rows] == kinds.code("correction"))
        if not len(rows):
            return np.zeros(len(self.rows))
        return corrects(
            rows,
            self.state.vectors.take(self.rows),
            np.maximum(self["late"], (min_max(self["late"]) + min_max(self["similarity"])) / 2.0),
            self["late"],
            self["words"],
            self.content(),
            self["says-change"],
            self.number("created"),
            self.state.names["speaker"].codes[self.rows],
            self.asked.embedder.scale,
        )

    def outdated(self) -> Values:
        """Texts are read only of pairs that both hold enough of the question's words."""
        found, edges = np.zeros(len(self)), self.state.edges
        updated = edges.entered(_UPDATES)
        own = np.flatnonzero(among(self.rows, updated))
        if not len(own):
            return found
        asked = Asked(self.asked.question.text, self.asked.words.language or "none")
        least, held = max(_OUTDATED * len(asked), 1), self.asked.matches.terms_of(self.rows[own])
        enough = held.sum(axis=0) >= least
        own, held = own[enough], held[:, enough]
        if not len(own):
            return found
        met = edges.crossings(self.rows[own])
        places, later = met.position, met.neighbour
        kept = (edges.relation[met.edge] == _UPDATES) & ~met.outgoing & (later < len(self.state))
        if self.asked.population.mask is not None:
            kept[kept] = self.asked.population.mask[later[kept]]
        places, later = places[kept], later[kept]
        rows, which = np.unique(later, return_inverse=True)
        both = (held[:, places] & self.asked.matches.terms_of(rows)[:, which]).sum(axis=0) >= least
        places, later = own[places[both]], later[both]
        texts = (self.state.texts.take(some) for some in (self.rows[places], later))
        for place, old, new in zip(places.tolist(), *texts, strict=True):
            found[place] = max(found[place], asked.outdated(old or "", new or ""))
        return np.where(found >= _OUTDATED, found, 0.0)

    def names_things(self) -> Values:
        forms, capital, counts = self.held()
        (places,) = capital.nonzero()
        places = places[~_any_of(forms[places], self.asked.names)]
        row = counts.cumsum().searchsorted(places, side="right")
        return np.minimum(np.bincount(row, minlength=len(self)), 3).astype(np.float64)

    def nearness(self) -> Values:
        if not self.asked.embedder.calibrated:
            return self["closeness"]
        specific = self.asked.specific_matches
        shared = self["coverage"] if specific is None else specific.coverage(self.rows)
        return evened(self["closeness"], shared, self["length"])

    def date_gap(self) -> Values:
        spans = self.asked.spans
        return days_from(spans, self.number("created")) if spans else np.full(len(self.rows), np.nan)

    def names_date(self) -> Values:
        gap = self["date-gap"]
        return np.where(np.isnan(gap), np.nan, gap == 0) if self.asked.spans else gap

    def names_file(self) -> Values:
        return self._any_named("files", lambda: file_namer(self.asked.words.stop_words, self.asked.question.text))

    def names_tag(self) -> Values:
        return self._any_named("tags", lambda: tag_namer(self.asked.words, self.asked.question.text))

    def _any_named(self, column: str, namer: Callable[[], Callable[[str], bool]]) -> Values:
        lists = self.state.lists[column]
        if not lists.held:
            return np.zeros(len(self.rows), dtype=np.bool_)
        named = namer()
        held = (any(map(named, lists.at(row))) for row in self.rows.tolist())
        return np.fromiter(held, dtype=np.bool_, count=len(self))

    def before_coverage(self) -> Values:
        rows = self.before()
        return np.where(rows >= 0, self.asked.matches.coverage(np.maximum(rows, 0)), 0.0)

    def same_branch(self) -> Values:
        branches = self.state.names["branch"]
        codes = branches.codes[self.rows]
        wanted = self.asked.question.filters.branch or ()
        return _any_of(codes, np.array([-1, *map(branches.code, wanted)]))

    def same_session(self) -> Values:
        sessions = self.state.names["session"]
        session = self.asked.question.session
        if session is None:
            return np.zeros(len(self.rows), dtype=np.bool_)
        return np.asarray(sessions.codes[self.rows] == sessions.code(session))

    def session_seed(self) -> Values:
        """The best seed of each session among these rows; a row without a session has its own."""
        contexts, seeds = self.contexts(), self["seed"]
        # the last place is for rows without a session, whose code is -1
        top = np.full(int(contexts.max(initial=-1)) + 2, -np.inf)
        np.maximum.at(top, contexts, seeds)
        return np.where(contexts >= 0, top[contexts], seeds)


def _any_of(values: Values, wanted: Values) -> Values:
    """Which values are wanted; a few comparisons cost a fifth of ``isin``, which sorts."""
    if len(wanted) > 8:
        return np.isin(values, wanted)
    found = np.zeros(len(values), dtype=np.bool_)
    for value in wanted:
        found |= values == value
    return found


_VARIES = object()
"""In the place of a value that all candidates share: they do not share one."""

_UNIFORM: dict[str, Callable[[QuestionFeatures], Any]] = {
    "asks-when": lambda asked: asked.signs.asks_when(asked.spoken),
    "asks-how-many": lambda asked: asked.signs.asks_how_many(asked.spoken),
    "asks-you": lambda asked: asked.signs.asks_you(asked.spoken),
    "asks-now": lambda asked: asked.signs.asks_now(asked.spoken),
    "asks-over-time": lambda asked: asked.signs.asks_over_time(asked.spoken),
    "names-speaker": lambda asked: _VARIES if len(asked.named) else False,
    "names-other": lambda asked: _VARIES if len(asked.named) else False,
    "names-date": lambda asked: _VARIES if asked.spans else None,
    "date-gap": lambda asked: _VARIES if asked.spans else None,
    "same-session": lambda asked: _VARIES if asked.question.session else False,
    "triggered": lambda asked: _VARIES if len(asked.triggered()) else False,
}
"""Of each feature that all candidates of some recalls share, the value: null as None."""


def _of_question(asks: Callable[[Signs, str], bool]) -> Callable[[Candidates], Values]:
    return lambda pool: (np.ones if asks(pool.asked.signs, pool.asked.spoken) else np.zeros)(len(pool), np.bool_)


_COMPUTE: dict[str, Callable[[Candidates], Values]] = {
    **COMPUTE,
    "late": Candidates.late,
    "around-lexical": lambda pool: pool.asked.around_lexical(pool.windows()),
    "around-similarity": lambda pool: pool.asked.around_similarity(pool.windows()),
    "names-things": Candidates.names_things,
    "asks-when": _of_question(Signs.asks_when),
    "asks-how-many": _of_question(Signs.asks_how_many),
    "asks-you": _of_question(Signs.asks_you),
    "asks-now": _of_question(Signs.asks_now),
    "asks-over-time": _of_question(Signs.asks_over_time),
    "takes-over": Candidates.takes_over,
    "corrects": Candidates.corrects,
    "outdated": Candidates.outdated,
    "similarity": lambda pool: pool.asked.similarity(pool.rows),
    "closeness": lambda pool: pool.asked.embedder.scale(pool["similarity"]),
    "nearness": Candidates.nearness,
    "lexical": lambda pool: pool.asked.matches.scores(pool.rows),
    "coverage": lambda pool: pool.asked.matches.coverage(pool.rows),
    "session-lexical": lambda pool: pool.asked.session_lexical(pool.contexts()),
    "before-coverage": Candidates.before_coverage,
    "names-speaker": Candidates.names_speaker,
    "names-other": lambda pool: ~pool["names-speaker"] & bool(len(pool.asked.named)),
    "phrase": Candidates.phrase,
    "date-gap": Candidates.date_gap,
    "names-date": Candidates.names_date,
    "names-file": Candidates.names_file,
    "names-tag": Candidates.names_tag,
    "query-tags": Candidates.query_tags,
    "triggered": Candidates.triggered,
    "same-session": Candidates.same_session,
    "same-branch": Candidates.same_branch,
    "seed": lambda pool: np.zeros(len(pool.rows)),
    "received": lambda pool: np.zeros(len(pool.rows)),
    "activation": lambda pool: pool["seed"] + pool["received"],
    "hops": lambda pool: np.zeros(len(pool.rows)),
    "session-seed": Candidates.session_seed,
}

Candidates.compute = _COMPUTE

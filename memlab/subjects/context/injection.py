"""Selection of memories for a prompt: pinned, named by the task, or best results.

    tier 1   the names of the project's modules, pinned memories and          tier-1-tokens
             those of the kinds ``always-kinds``
    tier 2   modules and memories that the task names (a trigger, a file,     tier-2-tokens, half of
             a module, an entity), and the best results of the recall         them for named
             memories
    tier 3   further results of the recall, shortened                         tier-3-tokens each

All of them are candidates of one recall and therefore of one slate. The policy ``inject`` is
evaluated last, for each candidate and tier. The number of results is fixed before exploration items
are drawn, so exactly the memories that the slate reports as shown are injected. It is the number
that fits if each is shortened to ``tier-3-tokens``, at most ``limit``. With the setting
``context-fill``, results fill the budget, whatever ``tier-2-tokens`` and ``limit`` say. They are
taken whole in the order of their priority, and those that do not fit are skipped. Then the best
sentences of skipped results follow.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.base.arrays import Flags, Rows, Scores
from memlab.kernel.base.display import clip
from memlab.kernel.hooks import list_hooks
from memlab.kernel.index import best, is_in_sorted
from memlab.kernel.policies import Pack
from memlab.kernel.recall import (
    Candidates,
    Chosen,
    Column,
    Question,
    QuestionFeatures,
    Ranking,
    Selection,
    best_span,
    is_weak,
)
from memlab.kernel.schema import RECALLABLE, RELATIONS
from memlab.kernel.slates import Slate
from memlab.kernel.state import State
from memlab.kernel.verbs.fact_rows import get_entities
from memlab.kernel.verbs.recalling.injected import Injected
from memlab.subjects.context.writing import (
    Entry,
    Sheet,
    Source,
    find_marks,
    fit_entry,
    make_entry,
    quote_line,
    read_sources,
)
from memlab.subjects.fact_rows import are_valid_at, find_facts, have_status
from memlab.subjects.reading.sentences import sentence_spans
from memlab.subjects.reading.tags import file_subject

# -- memories about the files that a text names: by path, name, stem, subject of the name (auth of
# auth-store.ts), or folder


_SEPARATORS = re.compile(r"[\s\"'`()\[\]{}<>,;:?!=|]+")  # between the paths of a text
_MIN_LETTERS = 3
"""Minimum letters of a stem or a folder."""

_MAX_PIECES = 2_000
"""Maximum pieces of a text that are looked up."""


class FileNames:
    """An index of the files of memories by name, stem, subject and folder.

    New memories are added at each call.
    """

    def __init__(self) -> None:
        self._lists: weakref.ref[object] | None = None
        self._read_count = 0
        self._parts: dict[str, dict[str, None]] = {}
        self._rows: dict[str, list[int]] = {}

    def find_rows(self, state: State, text: str, stop_words: frozenset[str]) -> NDArray[np.int64]:
        """Return the ascending rows of memories whose files or folders a text names.

        A word of ``text`` matches the name of a file or folder, with or without the extension. A
        path matches the longer paths that end with it.
        """
        # The index of paths is extended, not rebuilt: a call reads only the memories that are new.
        lists = state.lists["files"]
        if not lists.has_values:
            return np.empty(0, dtype=np.int64)
        if self._lists is None or self._lists() is not lists:
            self._lists, self._read_count, self._parts, self._rows = weakref.ref(lists), 0, {}, {}
        # Passing over the read items takes .1 ms per 5,000.
        new = lists.items() if len(lists.items()) > self._read_count else ()
        for row, paths in islice(new, self._read_count, None):
            for path in map(_normalize_path, paths):
                self._rows.setdefault(path, []).append(row)
                for part in _split_path(path):
                    self._parts.setdefault(part, {})[path] = None
            self._read_count += 1
        rows: set[int] = set()
        pieces = dict.fromkeys(_normalize_path(piece) for piece in _SEPARATORS.split(text))
        for piece in islice(pieces, _MAX_PIECES):
            if piece and piece not in stop_words:
                for path in self._match_paths(piece):
                    rows.update(self._rows[path])
        return np.array(sorted(rows), dtype=np.int64)

    def _match_paths(self, piece: str) -> list[str]:
        """Return the stored paths that match a path or name in a task, then the files in the folder of a named file."""
        if "/" not in piece:
            return list(self._parts.get(piece, ()))
        folder, _, last = piece.rpartition("/")
        same = [
            path
            for path in self._parts.get(last, ())
            if _is_suffix(piece, path) or f"/{piece}/" in f"/{path}"
        ]
        siblings = [
            path
            for path in self._parts.get(folder.rpartition("/")[2], ())
            if "." in last and "/" in path and _is_suffix(folder, path.rpartition("/")[0])
        ]
        return [*same, *siblings]


def _normalize_path(path: str) -> str:
    """Return a path in lower case, with forward slashes, and without dots or slashes at its ends."""
    return path.lower().replace("\\", "/").strip("./")


def _split_path(path: str) -> list[str]:
    """Return the names by which a task may refer to a path: file name, then long enough folders, stem and subject."""
    *folders, name = path.split("/")
    stem = name.rpartition(".")[0]
    subject = file_subject(name.split(".")[0]).replace(" ", "-")
    return [
        name,
        *dict.fromkeys(part for part in (*folders, stem, subject) if len(part) >= _MIN_LETTERS),
    ]


def _is_suffix(path: str, other_path: str) -> bool:
    """Return whether one of two paths ends with all parts of the other."""
    return f"/{path}".endswith(f"/{other_path}") or f"/{other_path}".endswith(f"/{path}")


# From a statement to an earlier one that it probably corrects, which a context leaves out.
_UPDATES = RELATIONS.index("updates")
_MAX_NAMED = 32
"""Maximum candidates for one reason, such as a trigger: pinned, then nearest to the task."""

# Maximum modules that a context describes, and files of each: more leave no room for memories.
_MAX_MODULES = 2
_MAX_FILES = 8

_MAX_NAME_WORDS = 4
"""Maximum words in the name of an entity that a task can name."""

_WHOLE = 4
"""Maximum tokens of a memory that is not shortened, as a multiple of a shortened one's."""

# Reasons for which a memory is missing.
_BEFORE = "the session has received it"
_CORRECTED = "a newer memory probably corrects it"
_NO_PRIORITY = "the policy inject gives it no priority"
_NO_ROOM = "no room: the budget has room for {} results of the recall"
_NO_ROOM_NAMED = "no room in tier {}"


class _Planned(NamedTuple):
    """One memory that will be injected, with its tier and reason."""

    entry: Entry
    tier: int
    reason: str


class Injection:
    """The selection of memories for a prompt, which an empty ``sheet`` limits.

    It implements ``Use`` and ``Selection``.
    """

    abstains = False

    def __init__(self, files: FileNames, sheet: Sheet, *, again: bool = False) -> None:
        self._files, self._budget, self._again = files, sheet.budget, again
        self.sheet, self._weak = sheet, False
        # The columns of the context's frames, once the slate is known
        self.columns: dict[str, Sequence[Any]]
        self.left_out: dict[str, Sequence[Any]]
        self._called: dict[int, str] = {}
        self._planned: dict[int, _Planned] = {}
        self._left: dict[int, str] = {}
        self._before: frozenset[int] = frozenset()
        self.modules: tuple[str, ...] = ()
        self._map: list[Entry] = []
        self._marks: dict[int, tuple[str, ...]] = {}
        # A plan asks for the size of each candidate several times.
        self._entries: dict[int, Entry] = {}
        self._sources: dict[int, Source] = {}
        self._tokens: tuple[Rows, Scores] | None = None
        self._sizes: dict[int, int] = {}

    # -- candidates -----------------------------------------------------------------------------------------------

    def selection(self, state: State, pack: Pack, question: Question) -> Selection:
        """Prepare the candidate selection from the pack, the project map and the session."""
        self._state, self._pack, self._question = state, pack, question
        self._unit = max(pack.count("tier-3-tokens"), self.sheet.minimum)
        self._days = bool(pack.settings["context-days"])
        self._fill = bool(pack.settings["context-fill"])
        self._whole = self._budget if self._fill else _WHOLE * self._unit
        has_map = question.project is not None and question.filters.without is not None
        self._words = find_project_map(state, question.project or "") if has_map else None
        self._spoken_of = (
            [] if self._words is None else self._words.find(question.text, limit=_MAX_MODULES)
        )
        self._agent = question.filters.viewer
        injected = state.projection(Injected)
        if not self._again:
            self._before = frozenset(
                injected.ids(agent=self._agent, project=question.project, session=question.session)
            )
        return self

    def requested_rows(self, query: QuestionFeatures) -> Rows:
        """Return the rows of permanent memories and of memories that the task names."""
        self._population = query.population
        self._always = self._find_permanent(query)
        triggered = self._select_nearest(query, query.triggered)
        rows_of_files = self._files.find_rows(
            self._state, self._question.text, query.words.stop_words
        )
        if self._words is not None and self._question.project is not None:
            names = [part.module for part in self._spoken_of]
            rows_of_files = np.union1d(
                rows_of_files, self._words.rows(self._state, self._question.project, names)
            )
        self._of_task = rows_of_files
        self._in_task = self._select_nearest(query, query.population.keep_members(rows_of_files))
        # a memory has the first of its reasons
        for name, rows in self._find_entity_facts(query):
            self._called = dict.fromkeys((rows + 1).tolist(), f"entity {name}") | self._called
        self._called |= dict.fromkeys((self._in_task + 1).tolist(), "file")
        self._called |= dict.fromkeys((triggered + 1).tolist(), "trigger")
        return np.unique(
            np.concatenate([self._always, np.array(list(self._called), dtype=np.int64) - 1])
        )

    def _find_permanent(self, query: QuestionFeatures) -> Rows:
        """Return at most 32 eligible rows that are pinned or have a kind in ``always-kinds``, ascending."""
        state, population = self._state, query.population
        pinned = state.numbers["pinned"].values == 1
        permanent = pinned | state.names["kind"].is_in(
            str(self._pack.settings["always-kinds"]).split()
        )
        rows = population.keep_members(np.flatnonzero(permanent))
        return self._select_nearest(
            query, rows, before=pinned[rows], key=("always", query.population.key)
        )

    def _select_nearest(
        self,
        query: QuestionFeatures,
        rows: Rows,
        *,
        before: Flags | None = None,
        key: Hashable | None = None,
    ) -> Rows:
        """Return at most 32 rows that are nearest to the task, in ascending row order.

        Rows that are True in ``before`` have precedence. With a ``key``, the vectors of the rows are cached for
        the next task.
        """
        if len(rows) <= _MAX_NAMED:
            return rows
        near = query.similarity(rows, key=key)
        return np.sort(rows[best(near if before is None else near + 3.0 * before, _MAX_NAMED)])

    def _find_entity_facts(self, query: QuestionFeatures) -> Iterable[tuple[str, Rows]]:
        """Yield each entity that the task names, and at most 32 rows of its valid, recallable facts."""
        # Names of several words are tried at each word, because entities have no marks in a text.
        entities = get_entities(self._state)
        if not len(entities):
            return
        words = [
            word
            for word in self._question.text.replace("'s ", " ").split()
            if any(map(str.isalnum, word))
        ]
        words = [word.strip(".,;:!?\"'()[]{}<>") for word in words]
        visited: set[int] = set()
        for start in range(len(words)):
            for stop in range(start + 1, min(start + _MAX_NAME_WORDS, len(words)) + 1):
                name = " ".join(words[start:stop])
                number = (
                    None
                    if not name or name.lower() in query.words.stop_words
                    else entities.find_number(name)
                )
                if number is None or number in visited:
                    continue
                visited.add(number)
                entity = entities.entries[number].name
                rows = query.population.keep_members(find_facts(self._state, subject=entity))
                rows = rows[
                    have_status(self._state, rows, RECALLABLE)
                    & are_valid_at(self._state, rows, query.at)
                ]
                if len(rows):
                    yield entity, self._select_nearest(query, rows)

    # -- selection ------------------------------------------------------------------------------------------------

    def spending(self, rows: Rows) -> tuple[Scores, float]:
        """Return the token cost of each memory, and the number of free tokens in the prompt."""
        return self._count_tokens(rows), float(self.sheet.free // 4)

    def choose(
        self,
        pool: Candidates,
        scores: Scores,
        ranking: Ranking,
        *,
        extra: int,
        probability: float | None,
    ) -> Chosen:
        """Plan the memories of tiers 1 and 2, and rank the rest for exploration and tier 3."""
        # Named memories get at most half of tier 2, or a quarter of a filled budget, so that results have room.
        self._pool, self._scores = pool, scores
        self._count_tokens(pool.rows)
        language = str(self._pack.settings["language"])
        if is_weak(probability, self._question.text, language):
            sheet = Sheet(self._budget, self.sheet.measure, weak=True)
            self._weak = sheet.holds_any
            self.sheet = sheet if self._weak else self.sheet
        self._marks = find_marks(pool, self._pack, self._population)
        ids = (pool.rows + 1).tolist()
        self._are_injected = np.array([id in self._before for id in ids], dtype=np.bool_)
        self._are_called = np.array([id in self._called for id in ids], dtype=np.bool_)
        self._ranks = np.empty(len(ids), dtype=np.int64)
        self._ranks[ranking.order] = np.arange(1, len(ids) + 1)
        tiers = [0, *(self._pack.count(f"tier-{tier}-tokens") for tier in (1, 2, 3))]
        priority_1, priority_2, priority_3 = (
            self._compute_priority(tier, tiers[tier]) for tier in (1, 2, 3)
        )
        corrected = self._find_corrected(pool.rows)
        fresh = ~(self._are_injected | corrected)
        always = fresh & is_in_sorted(pool.rows, self._always)
        called = fresh & self._are_called
        share = tiers[1] / max(tiers[1] + tiers[2], 1)
        map_size, description_size = self._write_map(tiers)
        planned = self._plan(
            always & (priority_1 > 0),
            priority_1,
            1,
            room=min(4 * tiers[1] - map_size, int(self.sheet.free * share)),
        )
        self._room = min(4 * tiers[2] - description_size, max(self.sheet.free, 0))
        called[planned] = False
        room = self._room // (4 if self._fill else 2)
        planned += self._plan(called & (priority_2 > 0), priority_2, 2, room=room)
        called[planned] = False
        planned += self._plan(
            called & (priority_2 <= 0) & (priority_3 > 0), priority_3, 3, room=self.sheet.free // 2
        )
        self._room -= sum(
            self._planned[ids[index]].entry.size for index in planned if self._tier(ids[index]) == 2
        )
        remaining = fresh & ((priority_2 > 0) | (priority_3 > 0))
        remaining[planned] = False
        order = ranking.order[remaining[ranking.order]]
        order = order[np.lexsort((self._ranks[order], -priority_3[order], -priority_2[order]))]
        self._two, self._three = priority_2, priority_3
        room = max(self.sheet.free - 4 * self.sheet.minimum * extra, 0)
        limit = min(self._pack.count("limit"), room // (4 * self._unit))
        if self._fill:
            self._room = room
            order, limit = self._fill_room(order, room)
        self._note_missing(
            ranking,
            ids,
            fresh,
            corrected,
            always,
            (priority_1 > 0) | (priority_2 > 0) | (priority_3 > 0),
            order,
            limit,
        )
        return Chosen(np.array(planned, dtype=np.int64), order, limit)

    def _fill_room(self, order: Rows, room: int) -> tuple[Rows, int]:
        """Return the results in an order with those that fit into ``room`` bytes first, and the number that fit.

        Whole results come before short ones.
        """
        whole, skipped, rows = [], [], self._pool.rows.tolist()
        sizes = np.where(self._two > 0, 4 * self._count_tokens(self._pool.rows), np.inf).tolist()
        for position in order.tolist():
            row, cost = rows[position], room + 1
            if sizes[position] <= room:
                cost = self.sheet.cost(self._make_whole_entry(row))
            if cost <= room:
                room -= cost
                whole.append(position)
                self._sizes[row + 1] = cost
            else:
                skipped.append(position)
        short = skipped[: room // (4 * self._unit)]
        rest = skipped[len(short) :]
        return np.array([*whole, *short, *rest], dtype=np.int64), len(whole) + len(short)

    def _compute_priority(self, tier: int, budget: int) -> Scores:
        """Return each candidate's priority in a tier under the ``inject`` policy; 0 where it is not positive and finite."""
        pool, count = self._pool, len(self._pool.rows)
        agent = self._agent or ""
        inputs: dict[str, Callable[[], Column]] = {
            "tier": lambda: np.full(count, float(tier)),
            "role": lambda: np.array([agent.rpartition(":")[2]] * count, dtype=object),
            "in-task": lambda: is_in_sorted(pool.rows, self._in_task),
            "called": lambda: self._are_called,
            "elsewhere": lambda: self._are_elsewhere,
            "injected": lambda: self._are_injected,
            "tokens": lambda: self._count_tokens(pool.rows),
            "budget": lambda: np.full(count, float(budget)),
            "rank": lambda: self._ranks.astype(np.float64),
            "score": lambda: self._scores,
            "share": lambda: _share_of_best(self._scores),
        }
        policy = self._pack.policies["inject"]
        values, nulls = pool.ask(policy, inputs=inputs)
        positive = np.isfinite(values) & (values > 0)
        return np.where(positive if nulls is None else positive & ~nulls, values, 0.0)

    def _find_corrected(self, rows: Rows) -> Flags:
        """Return a mask of rows that an eligible newer memory probably corrects, if ``linking`` is "corrections"."""
        result, edges = np.zeros(len(rows), dtype=np.bool_), self._state.edges
        if self._pack.settings["linking"] != "corrections":
            return result  # the edges may be about parts of texts
        (positions,) = is_in_sorted(rows, edges.entered(_UPDATES)).nonzero()
        if not len(positions):
            return result
        met = edges.crossings(rows[positions])
        newer = (edges.relation[met.edge] == _UPDATES) & ~met.outgoing
        newer &= met.neighbour < len(self._state)
        eligible = self._population.keep_members(np.unique(met.neighbour[newer]))
        result[positions[met.position[newer & np.isin(met.neighbour, eligible)]]] = True
        return result

    @cached_property
    def _are_elsewhere(self) -> Flags:
        """A mask of the candidates with files of which the task names none; all False if it names no file or module."""
        rows = self._pool.rows
        if not len(self._of_task) and not self._spoken_of:
            return np.zeros(len(rows), dtype=np.bool_)
        files = self._state.lists["files"]
        filled = np.fromiter(
            (bool(files.value_at(row)) for row in rows.tolist()), dtype=np.bool_, count=len(rows)
        )
        return filled & ~is_in_sorted(rows, self._of_task)

    def _count_tokens(self, rows: Rows) -> Scores:
        """Return the number of tokens of each memory's summary, or of its text if it has none."""
        if self._tokens is None or not np.array_equal(self._tokens[0], rows):
            summaries, sources = self._state.notes["summary"], self._sources
            if missing := [row for row in rows.tolist() if row not in sources]:
                sources |= zip(missing, read_sources(self._state, missing), strict=True)
            counts = [
                -(-self.sheet.measure(summaries.value_at(row) or sources[row].text) // 4)
                for row in rows.tolist()
            ]
            self._tokens = rows, np.array(counts, dtype=np.float64)
        return self._tokens[1]

    def _make_entry(self, row: int, maximum: int, *, whole: bool = False) -> Entry:
        """Return an entry for a memory, with at most ``maximum`` tokens; with ``whole``, never only its best sentence."""
        return make_entry(
            self._state,
            self._sources[row],
            maximum=maximum,
            day=self._days,
            marks=self._marks.get(row, ()),
            excerpt=self._find_excerpt if self._fill and not whole else None,
            measure=self.sheet.measure,
        )

    def _find_excerpt(self, text: str) -> str:
        """Return the sentence of a text that best matches the task, or the whole text."""
        language = str(self._pack.settings["language"])
        span = best_span(text, list(sentence_spans(text)), self._question.text, language)
        return text if span is None else text[slice(*span)]

    def _make_whole_entry(self, row: int) -> Entry:
        """Return an unshortened entry for a memory."""
        if row not in self._entries:
            self._entries[row] = self._make_entry(row, self._whole, whole=True)
        return self._entries[row]

    def _plan(self, wanted: Flags, priority: Scores, tier: int, *, room: int) -> list[int]:
        """Add prompt entries for wanted candidates that fit into ``room`` bytes, by priority; return their positions."""
        positions = np.flatnonzero(wanted)
        positions = positions[np.lexsort((self._ranks[positions], -priority[positions]))]
        planned = []
        for position in positions.tolist():
            row = int(self._pool.rows[position])
            room_left = min(room, self.sheet.free)
            if room_left < 4 * self._unit:
                self._left[row + 1] = _NO_ROOM_NAMED.format(tier)
                continue
            entry = self._make_entry(row, self._unit * (_WHOLE if tier < 3 else 1))
            if self.sheet.cost(entry) > room_left:
                entry = self._make_entry(row, self._unit)
            room -= self._write(row, entry, tier, self._find_reason(row, tier))
            planned.append(position)
        return planned

    def _write_map(self, tiers: Sequence[int]) -> tuple[int, int]:
        """Write the map of the project's modules, with details of modules in the task.

        Return the bytes of the list of modules and of the details. The list gets at most a quarter
        of tier 1, the details a quarter of tier 2, and each line a quarter of the free budget.
        """
        if self._words is None:
            return 0, 0
        names = ", ".join(quote_line(name) for name in self._words.modules)
        map_size = self._write_map_line(
            f"Modules of {quote_line(self._question.project or '')}: {names}", tiers[1] // 4
        )
        description_size = 0
        for part in self._spoken_of:
            parts = [
                f"{quote_line(part.module)}: {quote_line(part.known['description'])}".rstrip(":. ")
            ]
            parts += [
                f"{name} {', '.join(map(quote_line, part.known[field][:_MAX_FILES]))}"
                for name, field in (
                    ("files", "files"),
                    ("tests", "tests"),
                    ("imports", "depends_on"),
                )
                if part.known[field]
            ]
            if size := self._write_map_line(
                "; ".join(parts), tiers[2] // (4 * len(self._spoken_of))
            ):
                description_size += size
                self.modules += (part.module,)
        return map_size, description_size

    def _write_map_line(self, words: str, maximum: int) -> int:
        """Write a line of the map, cut to ``maximum`` tokens; return its size in bytes, or 0 if there is no room."""
        maximum = min(maximum, self.sheet.free // 16)
        if maximum < self.sheet.minimum:
            return 0
        self._map.append(fit_entry(Entry(0, "map", words, measure=self.sheet.measure), maximum))
        return self.sheet.add(self._map[-1])

    def _tier(self, id: int) -> int:
        """Return the tier for which a memory was planned."""
        return self._planned[id].tier

    def _find_reason(self, row: int, tier: int) -> str:
        """Return the reason to inject a memory of tier 1 or 2."""
        if tier > 1:
            return self._called[row + 1]
        pinned = self._state.numbers["pinned"].values[row] == 1
        return "pinned" if pinned else f"always: {self._state.names['kind'].value_at(row)}"

    def _write(self, row: int, entry: Entry, tier: int, reason: str) -> int:
        """Add an entry to the prompt, record its reason, and return its size in bytes."""
        self._planned[row + 1] = _Planned(entry, tier, reason)
        return self.sheet.add(entry)

    def _note_missing(
        self,
        ranking: Ranking,
        ids: Sequence[int],
        fresh: Flags,
        corrected: Flags,
        always: Flags,
        wanted: Flags,
        order: Rows,
        limit: int,
    ) -> None:
        """Note why memories that match the task are missing from the context."""
        maximum = self._pack.count("limit")
        top_results = ranking.order[: ranking.showable][:maximum]
        expected = dict.fromkeys([*np.flatnonzero(always).tolist(), *top_results.tolist()])
        expected |= dict.fromkeys(index for index, id in enumerate(ids) if id in self._called)
        for index in expected:
            if not fresh[index]:
                self._left[ids[index]] = _CORRECTED if corrected[index] else _BEFORE
            elif not wanted[index]:
                self._left[ids[index]] = _NO_PRIORITY
        for index in order[limit:maximum].tolist():
            self._left.setdefault(ids[index], _NO_ROOM.format(limit))

    # -- text -----------------------------------------------------------------------------------------------------

    def record_shown(self, slate: Slate) -> None:
        """Add every recalled memory to the prompt, and shorten entries where space is limited.

        Room for the memories that follow is reserved, so that every shown memory is injected.
        """
        index_of = {id: index for index, id in enumerate(slate.ids.tolist())}
        rest = [id for id in slate.shown if id not in self._planned]
        minimum = self.sheet.minimum
        sizes = {id: 4 * (minimum if id in slate.probes else self._unit) for id in rest}
        sizes |= {id: self._sizes[id] for id in rest if id in self._sizes}
        reserved = sum(sizes.values())
        for id in rest:
            index, is_probe = index_of[id], id in slate.probes
            reserved -= sizes[id]
            room_left = max(0, self.sheet.free - reserved)
            entry = self._make_whole_entry(id - 1)
            reason = "exploration" if is_probe else f"rank {int(self._ranks[index])}"
            if self._two[index] > 0 and self.sheet.cost(entry) <= min(room_left, self._room):
                self._room -= self._write(id - 1, entry, 2, reason)
            else:
                entry = self._make_entry(id - 1, min(self._unit, room_left // 4))
                self._write(id - 1, entry, 3 if self._three[index] > 0 else 2, reason)
        self.sheet = Sheet(self._budget, self.sheet.measure, weak=self._weak)
        for entry in self._map:
            self.sheet.add(entry)
        planned = [self._planned[id] for id in slate.shown]  # in the order of the slate
        self.columns = {
            "memory_id": slate.shown,
            "tier": [memory.tier for memory in planned],
            "form": [memory.entry.form for memory in planned],
            "tokens": [-(-self.sheet.add(memory.entry) // 4) for memory in planned],
            "reason": [memory.reason for memory in planned],
        }
        self.sheet.check()
        left_out = {id: why for id, why in self._left.items() if id not in self._planned}
        self.left_out = {
            "memory_id": list(left_out),
            "what": [clip(self._sources[id - 1].text) for id in left_out],
            "why": list(left_out.values()),
        }

    def body(self) -> dict[str, Any]:
        """Return the token budget and the repetition of memories as fields of the recall event."""
        return {"budget": self._budget} | ({"again": True} if self._again else {})

    def events(self, decision: int) -> dict[str, dict[str, Any]]:
        """Return an "inject" event with the injected memories."""
        ids = self.columns["memory_id"]
        if not ids:
            return {}
        question = self._question
        origin = {"agent": self._agent, "project": question.project, "session": question.session}
        return {
            "inject": {
                "decision": decision,
                "ids": list(ids),
                "tokens": self.sheet.tokens,
                "budget": self._budget,
                **{name: value for name, value in origin.items() if value},
            }
        }


def _share_of_best(scores: Scores) -> Scores:
    """Return each score divided by the best finite score, or 1 for each if no score is above 0."""
    top = float(np.max(scores, initial=0.0, where=np.isfinite(scores)))
    return scores / top if top > 0 else np.ones(len(scores))


class Part(Protocol):
    """A module of a project that a task names."""

    @property
    def module(self) -> str:
        """The name of the module."""

    @property
    def known(self) -> Mapping[str, Any]:
        """The description, files, tests and dependencies of the module."""


class ProjectMap(Protocol):
    """The modules of a project, from an extension at the hook "project-map"."""

    @property
    def modules(self) -> Mapping[str, Any]:
        """The modules of the project by name."""

    def find(self, task: str, *, limit: int) -> Sequence[Part]:
        """Return the modules that a task names, in descending order of score."""

    def rows(self, state: State, project: str, names: Iterable[str]) -> Rows:
        """Return the ascending rows of memories about the modules."""


def find_project_map(state: State, project: str) -> ProjectMap | None:
    """Return the project map of the first extension that has a map, or None."""
    maps = (find(state, project) for find in list_hooks("project-map"))
    return next((project_map_ for project_map_ in maps if project_map_ is not None), None)

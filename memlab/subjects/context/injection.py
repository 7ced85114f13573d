"""Which memories go into a prompt: what it always holds, what the task calls up, and the best of a recall.

    tier 1   the names of the project's modules, pinned memories and          tier-1-tokens
             those of the kinds ``always-kinds``
    tier 2   the modules that the task speaks of; what it calls by name       tier-2-tokens, of which names have half
             (a trigger, a file, a module, an entity), and the best of the
             recall, whole
    tier 3   more of the recall, cut                                          tier-3-tokens each

All of them are candidates of one recall, and so of one slate. The policy ``inject`` is asked last, of each candidate in
each tier that it could go into. How many of the recall are shown is known before they are drawn: as many as fit when
each is cut to ``tier-3-tokens``. So whatever is shown is injected, and what the slate says was shown, was.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.base.display import clip
from memlab.kernel.hooks import hooks
from memlab.kernel.index import best
from memlab.kernel.policies import Pack
from memlab.kernel.recall import (
    Candidates,
    Chosen,
    Column,
    Question,
    QuestionFeatures,
    Ranking,
    Selection,
    columns,
)
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.slates import Slate
from memlab.kernel.state import State
from memlab.kernel.verbs.fact_rows import get_entities
from memlab.kernel.verbs.recalling.injected import Injected
from memlab.subjects.context.writing import (
    LEAST,
    Entry,
    Sheet,
    entry_of,
    fitted,
    marks_among,
    quoted,
)
from memlab.subjects.fact_rows import are_valid_at, find_facts, have_status
from memlab.subjects.reading.tags import file_subject

__all__ = ["FileNames", "Injection", "Part", "ProjectMap"]


# Which memories are about the files that a text names: by path, by name, by
# stem, by the subject of the name (auth of auth-store.ts), or by a folder that they lie in.


_APART = re.compile(r"[\s\"'`()\[\]{}<>,;:?!=|]+")
_SHORT = 3
"""Letters from which a stem or a folder counts."""

_MOST = 2_000
"""Pieces of a text that are looked up."""


class FileNames:
    """The paths of a state's memories by their parts; those of new memories are added when they are asked for."""

    def __init__(self) -> None:
        self._of: weakref.ref[object] | None = None
        self._seen = 0
        self._parts: dict[str, dict[str, None]] = {}
        self._rows: dict[str, list[int]] = {}

    def named(self, state: State, text: str, stop_words: frozenset[str]) -> NDArray[np.int64]:
        """The rows, ascending, with a file that ``text`` names or in whose folder a file lies that it names.

        A word is the name of a file or of a folder, without its ending too; a path is the end of a longer one.
        """
        lists = state.lists["files"]
        if not lists.held:
            return np.empty(0, dtype=np.int64)
        if self._of is None or self._of() is not lists:
            self._of, self._seen, self._parts, self._rows = weakref.ref(lists), 0, {}, {}
        for row, paths in islice(lists.filled(), self._seen, None):
            for path in map(_plain, paths):
                self._rows.setdefault(path, []).append(row)
                for part in _parts(path):
                    self._parts.setdefault(part, {})[path] = None
            self._seen += 1
        found: set[int] = set()
        pieces = dict.fromkeys(_plain(piece) for piece in _APART.split(text))
        for piece in islice(pieces, _MOST):
            if piece and piece not in stop_words:
                for path in self._like(piece):
                    found.update(self._rows[path])
        return np.array(sorted(found), dtype=np.int64)

    def _like(self, piece: str) -> list[str]:
        """The kept paths that a piece of text means."""
        if "/" not in piece:
            return list(self._parts.get(piece, ()))
        folder, _, last = piece.rpartition("/")
        same = [
            path
            for path in self._parts.get(last, ())
            if _ends(piece, path) or f"/{piece}/" in f"/{path}"
        ]
        beside = [
            path
            for path in self._parts.get(folder.rpartition("/")[2], ())
            if "." in last and "/" in path and _ends(folder, path.rpartition("/")[0])
        ]
        return [*same, *beside]


def _plain(path: str) -> str:
    return path.lower().replace("\\", "/").strip("./")


def _parts(path: str) -> list[str]:
    """What a path may be called by: its name, its stem, its folders."""
    *folders, name = path.split("/")
    stem = name.rpartition(".")[0]
    subject = file_subject(name.split(".")[0]).replace(" ", "-")
    return [name, *dict.fromkeys(part for part in (*folders, stem, subject) if len(part) >= _SHORT)]


def _ends(one: str, other: str) -> bool:
    """Whether one path is the end of the other: an absolute one and one within a project are the same."""
    return f"/{one}".endswith(f"/{other}") or f"/{other}".endswith(f"/{one}")


Rows = NDArray[np.int64]
Scores = NDArray[np.float64]
Flags = NDArray[np.bool_]

_MOST_NAMED = 32
"""Memories of one sort that become candidates: pinned ones first, then the nearest to the task."""

_MOST_MODULES = 2
"""Modules of which a context says what is known."""
_MOST_FILES = 8

_LONGEST_NAME = 4
"""Words of the name of an entity that a task names."""

_WHOLE = 4
"""A memory that is not cut has at most so many times the tokens of one that is."""

_SCHEMA: dict[str, Any] = {
    "memory_id": pl.Int64,
    "tier": pl.Int64,
    "form": pl.String,
    "tokens": pl.Int64,
    "reason": pl.String,
}
_LEFT_OUT: dict[str, Any] = {"memory_id": pl.Int64, "what": pl.String, "why": pl.String}

_BEFORE = "injected before in this session"
_NO_PRIORITY = "the policy inject gives it no priority"
_NO_ROOM = "no room: the budget holds {} results of the recall"
_NO_ROOM_NAMED = "no room in tier {}"


@dataclass(frozen=True)
class _Planned:
    entry: Entry
    tier: int
    reason: str


class Injection:
    """What one recall is made for: a prompt of at most ``budget`` tokens. A ``Use`` and a ``Selection``."""

    abstains = False

    def __init__(self, files: FileNames, budget: int) -> None:
        self._files, self._budget = files, budget
        self.sheet = Sheet(budget)
        self.frame, self.left_out = pl.DataFrame(schema=_SCHEMA), pl.DataFrame(schema=_LEFT_OUT)
        self._called: dict[int, str] = {}
        self._planned: dict[int, _Planned] = {}
        self._left: dict[int, str] = {}
        self._before: frozenset[int] = frozenset()
        self.modules: tuple[str, ...] = ()
        self._map: list[Entry] = []
        self._marks: dict[int, tuple[str, ...]] = {}

    # -- what takes part ------------------------------------------------------------------------------------------

    def selection(self, state: State, pack: Pack, question: Question) -> Selection:
        self._state, self._pack, self._question = state, pack, question
        self._unit = max(pack.count("tier-3-tokens"), LEAST)
        self._days = bool(pack.settings["context-days"])
        mapped = question.project is not None and question.filters.without is not None
        self._words = project_map(state, question.project or "") if mapped else None
        self._spoken_of = (
            [] if self._words is None else self._words.find(question.text, limit=_MOST_MODULES)
        )
        self._agent = question.filters.viewer
        known = state.projection(Injected)
        self._before = frozenset(
            known.ids(agent=self._agent, project=question.project, session=question.session)
        )
        return self

    def named(self, asked: QuestionFeatures) -> Rows:
        self._population = asked.population
        self._always = self._of_tier_1(asked)
        triggered = self._nearest(asked, asked.triggered)
        named = self._files.named(self._state, self._question.text, asked.words.stop_words)
        if self._words is not None and self._question.project is not None:
            spoken_of = [one.module for one in self._spoken_of]
            named = np.union1d(
                named, self._words.rows(self._state, self._question.project, spoken_of)
            )
        self._of_task = named
        self._in_task = self._nearest(asked, asked.population.among(named))
        self._called = dict.fromkeys((triggered + 1).tolist(), "trigger")
        self._called |= {
            id: "file" for id in (self._in_task + 1).tolist() if id not in self._called
        }
        for name, rows in self._of_entities(asked):
            self._called |= {
                id: f"entity {name}" for id in (rows + 1).tolist() if id not in self._called
            }
        return np.unique(
            np.concatenate([self._always, np.array(list(self._called), dtype=np.int64) - 1])
        )

    def _of_tier_1(self, asked: QuestionFeatures) -> Rows:
        state, population = self._state, asked.population
        pinned = state.numbers["pinned"].values == 1
        wanted = pinned | state.names["kind"].among(
            str(self._pack.settings["always-kinds"]).split()
        )
        rows = population.among(np.flatnonzero(wanted))
        return self._nearest(asked, rows, before=pinned[rows], key=("always", asked.population.key))

    def _nearest(
        self,
        asked: QuestionFeatures,
        rows: Rows,
        *,
        before: Flags | None = None,
        key: Hashable | None = None,
    ) -> Rows:
        """The nearest of these rows to the task, ascending; those that stand ``before`` are nearer than others.

        Under a ``key`` the vectors of the rows are kept together for the next task.
        """
        if len(rows) <= _MOST_NAMED:
            return rows
        near = self._state.vectors.similarity(asked.vector, rows, key=key)
        return np.sort(rows[best(near if before is None else near + 3.0 * before, _MOST_NAMED)])

    def _of_entities(self, asked: QuestionFeatures) -> Iterable[tuple[str, Rows]]:
        """The facts of each entity that the task names, that hold."""
        entities = get_entities(self._state)
        if not len(entities):
            return
        words = [
            word
            for word in self._question.text.replace("'s ", " ").split()
            if any(map(str.isalnum, word))
        ]
        words = [word.strip(".,;:!?\"'()[]{}<>") for word in words]
        found: set[int] = set()
        for start in range(len(words)):
            for stop in range(start + 1, min(start + _LONGEST_NAME, len(words)) + 1):
                name = " ".join(words[start:stop])
                known = (
                    None
                    if not name or name.lower() in asked.words.stop_words
                    else entities.number(name)
                )
                if known is None or known in found:
                    continue
                found.add(known)
                called = entities.entries[known].name
                rows = asked.population.among(find_facts(self._state, subject=called))
                rows = rows[
                    have_status(self._state, rows, RECALLABLE)
                    & are_valid_at(self._state, rows, asked.at)
                ]
                if len(rows):
                    yield called, self._nearest(asked, rows)

    # -- what is chosen -------------------------------------------------------------------------------------------

    def spending(self, rows: Rows) -> tuple[Scores, float]:
        """What each memory would cost in tokens, whole and unmarked, and what the empty prompt has room for."""
        return np.array([self._tokens(row) for row in rows.tolist()]), float(self.sheet.free // 4)

    def choose(self, pool: Candidates, scores: Scores, ranking: Ranking, *, beside: int) -> Chosen:
        self._pool, self._scores = pool, scores
        self._marks = marks_among(pool, self._pack, self._population)
        ids = (pool.rows + 1).tolist()
        self._ranks = np.empty(len(ids), dtype=np.int64)
        self._ranks[ranking.order] = np.arange(1, len(ids) + 1)
        tiers = [0, *(self._pack.count(f"tier-{tier}-tokens") for tier in (1, 2, 3))]
        one, two, three = (self._priority(tier, tiers[tier]) for tier in (1, 2, 3))
        fresh = np.array([id not in self._before for id in ids], dtype=np.bool_)
        always = fresh & np.isin(pool.rows, self._always)
        called = fresh & np.array([id in self._called for id in ids], dtype=np.bool_)
        share = tiers[1] / max(tiers[1] + tiers[2], 1)
        mapped, described = self._write_map(tiers)
        first = self._plan(
            always & (one > 0),
            one,
            1,
            room=min(4 * tiers[1] - mapped, int(self.sheet.free * share)),
        )
        self._room = min(4 * tiers[2] - described, max(self.sheet.free, 0))
        called[first] = False
        first += self._plan(called & (two > 0), two, 2, room=self._room // 2)
        called[first] = False
        first += self._plan(called & (two <= 0) & (three > 0), three, 3, room=self.sheet.free // 2)
        self._room -= sum(
            self._planned[ids[place]].entry.size for place in first if self._tier(ids[place]) == 2
        )
        wanted = fresh & ((two > 0) | (three > 0))
        wanted[first] = False
        order = ranking.order[wanted[ranking.order]]
        order = order[np.lexsort((self._ranks[order], -three[order], -two[order]))]
        self._two, self._three = two, three
        fits = max((self.sheet.free - 4 * LEAST * beside) // (4 * self._unit), 0)
        limit = min(self._pack.count("limit"), fits)
        self._leave(ranking, ids, fresh, always, (one > 0) | (two > 0) | (three > 0), order, limit)
        return Chosen(np.array(first, dtype=np.int64), order, limit)

    def _priority(self, tier: int, budget: int) -> Scores:
        """What the policy ``inject`` gives each candidate in a tier; 0 for what it does not want there."""
        pool, count = self._pool, len(self._pool.rows)
        agent = self._agent or ""
        given: dict[str, Callable[[], Column]] = {
            "tier": lambda: np.full(count, float(tier)),
            "role": lambda: np.array([agent.rpartition(":")[2]] * count, dtype=object),
            "in-task": lambda: np.isin(pool.rows, self._in_task),
            "called": lambda: np.array(
                [row + 1 in self._called for row in pool.rows.tolist()], dtype=np.bool_
            ),
            "elsewhere": lambda: self._elsewhere(pool.rows),
            "injected": lambda: np.array(
                [row + 1 in self._before for row in pool.rows.tolist()], dtype=np.bool_
            ),
            "tokens": lambda: np.array(
                [self._tokens(row) for row in pool.rows.tolist()], dtype=np.float64
            ),
            "budget": lambda: np.full(count, float(budget)),
            "rank": lambda: self._ranks.astype(np.float64),
            "score": lambda: self._scores,
        }
        policy = self._pack.policies["inject"]
        values, nulls = policy.arrays(columns(pool, policy, given=given), order=pool.rows)
        wanted = np.isfinite(values) & (values > 0)
        return np.where(wanted if nulls is None else wanted & ~nulls, values, 0.0)

    def _elsewhere(self, rows: Rows) -> Flags:
        """Return which rows have files, all of them outside the files and modules that the task names."""
        if not len(self._of_task) and not self._spoken_of:
            return np.zeros(len(rows), dtype=np.bool_)
        files = self._state.lists["files"]
        filled = np.fromiter(
            (bool(files.at(row)) for row in rows.tolist()), dtype=np.bool_, count=len(rows)
        )
        return filled & ~np.isin(rows, self._of_task)

    def _tokens(self, row: int) -> float:
        return float(-(-self._whole(row).size // 4))

    def _entry(self, row: int, most: int) -> Entry:
        return entry_of(self._state, row, most=most, day=self._days, marks=self._marks.get(row, ()))

    def _whole(self, row: int) -> Entry:
        return self._entry(row, _WHOLE * self._unit)

    def _plan(self, wanted: Flags, priority: Scores, tier: int, *, room: int) -> list[int]:
        """The places, best first, of those that fit: whole, or else cut."""
        places = np.flatnonzero(wanted)
        places = places[np.lexsort((self._ranks[places], -priority[places]))]
        taken = []
        for place in places.tolist():
            row = int(self._pool.rows[place])
            left = min(room, self.sheet.free)
            if left < 4 * self._unit:
                self._left[row + 1] = _NO_ROOM_NAMED.format(tier)
                continue
            entry = self._entry(row, self._unit * (_WHOLE if tier < 3 else 1))
            if self.sheet.cost(entry) > left:
                entry = self._entry(row, self._unit)
            room -= self._write(row, entry, tier, self._why(row, tier))
            taken.append(place)
        return taken

    def _write_map(self, tiers: Sequence[int]) -> tuple[int, int]:
        """The modules of the project in a line, and what is known of each that the task speaks of: the bytes of both.

        They have at most a quarter of tier 1, and of tier 2, and of what is free.
        """
        if self._words is None:
            return 0, 0
        names = ", ".join(quoted(name) for name in self._words.modules)
        mapped = self._fit(
            f"Modules of {quoted(self._question.project or '')}: {names}", tiers[1] // 4
        )
        described = 0
        for one in self._spoken_of:
            parts = [f"{quoted(one.module)}: {quoted(one.known['description'])}".rstrip(":. ")]
            parts += [
                f"{name} {', '.join(map(quoted, one.known[kept][:_MOST_FILES]))}"
                for name, kept in (
                    ("files", "files"),
                    ("tests", "tests"),
                    ("imports", "depends_on"),
                )
                if one.known[kept]
            ]
            if size := self._fit("; ".join(parts), tiers[2] // (4 * len(self._spoken_of))):
                described += size
                self.modules += (one.module,)
        return mapped, described

    def _fit(self, words: str, most: int) -> int:
        """Write a line that is no memory in at most so many tokens; the bytes that it took, 0 where it has no room."""
        most = min(most, self.sheet.free // 16)
        if most < LEAST:
            return 0
        self._map.append(fitted(Entry(0, "map", words), most))
        return self.sheet.add(self._map[-1])

    def _tier(self, id: int) -> int:
        return self._planned[id].tier

    def _why(self, row: int, tier: int) -> str:
        if tier > 1:
            return self._called[row + 1]
        pinned = self._state.numbers["pinned"].values[row] == 1
        return "pinned" if pinned else f"always: {self._state.names['kind'].at(row)}"

    def _write(self, row: int, entry: Entry, tier: int, reason: str) -> int:
        self._planned[row + 1] = _Planned(entry, tier, reason)
        return self.sheet.add(entry)

    def _leave(
        self,
        ranking: Ranking,
        ids: Sequence[int],
        fresh: Flags,
        always: Flags,
        wanted: Flags,
        order: Rows,
        limit: int,
    ) -> None:
        """Say why what could have been expected is not there."""
        most = self._pack.count("limit")
        head = ranking.order[: ranking.showable][:most]
        expected = dict.fromkeys([*np.flatnonzero(always).tolist(), *head.tolist()])
        expected |= dict.fromkeys(place for place, id in enumerate(ids) if id in self._called)
        for place in expected:
            if not fresh[place]:
                self._left[ids[place]] = _BEFORE
            elif not wanted[place]:
                self._left[ids[place]] = _NO_PRIORITY
        for place in order[limit:most].tolist():
            self._left.setdefault(ids[place], _NO_ROOM.format(limit))

    # -- what is written ------------------------------------------------------------------------------------------

    def shown(self, slate: Slate) -> None:
        """Write what is shown: first as was planned, the rest whole where there is room."""
        place_of = {id: place for place, id in enumerate(slate.ids.tolist())}
        rest = [id for id in slate.shown if id not in self._planned]
        kept = sum(4 * (LEAST if id in slate.probes else self._unit) for id in rest)
        for id in rest:
            place, by_chance = place_of[id], id in slate.probes
            kept -= 4 * (LEAST if by_chance else self._unit)
            left = self.sheet.free - kept
            entry = self._whole(id - 1)
            reason = "to learn" if by_chance else f"rank {int(self._ranks[place])}"
            if self._two[place] > 0 and self.sheet.cost(entry) <= min(left, self._room):
                self._room -= self._write(id - 1, entry, 2, reason)
            else:
                entry = self._entry(id - 1, min(self._unit, left // 4))
                self._write(id - 1, entry, 3 if self._three[place] > 0 else 2, reason)
        self.sheet = Sheet(self._budget)
        for entry in self._map:
            self.sheet.add(entry)
        rows = []
        for id in slate.shown:  # in the order that the slate says
            one = self._planned[id]
            used = self.sheet.add(one.entry)
            rows.append((id, one.tier, one.entry.form, -(-used // 4), one.reason))
        self.frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
        left_out = {id: why for id, why in self._left.items() if id not in self._planned}
        texts = self._state.texts.take(np.array(list(left_out), dtype=np.int64) - 1)
        self.left_out = pl.DataFrame(
            {
                "memory_id": list(left_out),
                "what": list(map(clip, texts)),
                "why": list(left_out.values()),
            },
            schema=_LEFT_OUT,
        )

    def body(self) -> dict[str, Any]:
        return {"budget": self._budget}

    def events(self, decision: int) -> dict[str, dict[str, Any]]:
        if not len(self.frame):
            return {}
        question = self._question
        where = {"agent": self._agent, "project": question.project, "session": question.session}
        said = {
            "ids": self.frame["memory_id"].to_list(),
            "tokens": self.sheet.tokens,
            "budget": self._budget,
        }
        return {
            "inject": {
                "decision": decision,
                **said,
                **{name: one for name, one in where.items() if one},
            }
        }


class Part(Protocol):
    """A part of a project that a task speaks of."""

    @property
    def module(self) -> str:
        """Its name."""

    @property
    def known(self) -> Mapping[str, Any]:
        """Its ``description``, and lists of names: ``files``, ``tests``, ``depends_on``."""


class ProjectMap(Protocol):
    """What an extension knows of a project, for the hook "project-map": a context names its parts."""

    @property
    def modules(self) -> Mapping[str, Any]:
        """The parts by name."""

    def find(self, task: str, *, limit: int) -> Sequence[Part]:
        """Return the parts that a task speaks of, the best first."""

    def rows(self, state: State, project: str, names: Iterable[str]) -> Rows:
        """Return the rows, ascending, of the memories that are about these parts."""


def project_map(state: State, project: str) -> ProjectMap | None:
    """Return the first map of a project that an extension has, None without."""
    maps = (find(state, project) for find in hooks("project-map"))
    return next((found for found in maps if found is not None), None)

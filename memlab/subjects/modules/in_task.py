"""Which modules a task speaks of, by its words.

A word counts by how rare it is among the modules, ln(1 + N / n): threefold in a module's name, twofold in the name of a
file, once in its description. A path of the task counts as all of its words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.state import State
from memlab.subjects.modules.grouping import Nearest
from memlab.subjects.reading.tags import code_words, name_stems

__all__ = ["InTask", "ModuleWords", "described", "owners", "plain_path"]

_LISTS = ("files", "tests", "entry_points", "depends_on")
_MOST = 2_000
"""Words of a task that are looked up."""


class InTask(NamedTuple):
    """A module that a task speaks of: its score, the words that met, and what the map says of it."""

    module: str
    score: float
    why: list[str]
    known: Mapping[str, Any]


class ModuleWords:
    """The words of a project's modules."""

    def __init__(self, modules: Mapping[str, Mapping[str, Any]]) -> None:
        self.modules = modules
        self._owner, self._nearest = owners(modules), Nearest(modules)
        self._weights = {name: _weighed(name, one) for name, one in modules.items()}
        held = Counter(word for mine in self._weights.values() for word in mine)
        self._rarity = {word: math.log1p(len(modules) / count) for word, count in held.items()}

    def find(self, task: str, *, limit: int) -> list[InTask]:
        """The modules that a task speaks of, the best first."""
        asked = [word for word in dict.fromkeys(_words(task)[:_MOST]) if word in self._rarity]
        found = []
        for name, mine in self._weights.items():
            if met := [word for word in asked if word in mine]:
                score = sum(mine[word] * self._rarity[word] for word in met)
                found.append(InTask(name, score, met, self.modules[name]))
        found.sort(key=lambda one: (-one.score, one.module))
        return found[:limit]

    def rows(self, state: State, project: str, names: Iterable[str]) -> NDArray[np.int64]:
        """The rows of a project's memories, ascending, that name a file of one of these modules."""
        wanted, code = set(names), state.names["project"].code(project)
        projects = state.names["project"].codes
        found = [
            row
            for row, paths in state.lists["files"].filled()
            if projects[row] == code and any(self._of(path) in wanted for path in paths)
        ]
        return np.array(sorted(found), dtype=np.int64)

    def _of(self, path: str) -> str | None:
        plain = plain_path(path)
        return self._owner.get(plain) or self._nearest(plain)


def described(known: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The modules of a map by name, with what was said of them since: a description stands in place of what was found,
    lists are joined.
    """
    modules = {one["name"]: one for one in known["modules"]}
    said = known["described"]
    return {name: _with(modules.get(name, {}), said.get(name, {})) for name in dict.fromkeys([*modules, *said])}


def owners(modules: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The module of each file that a scan found."""
    return {path: name for name, one in modules.items() for path in (*one["files"], *one["tests"])}


def plain_path(path: str) -> str:
    """A path as a map writes it."""
    return path.replace("\\", "/").removeprefix("./")


def _with(module: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    lists = {name: list(dict.fromkeys([*module.get(name, ()), *said.get(name, ())])) for name in _LISTS}
    return {"description": said.get("description") or module.get("description", ""), **lists}


def _weighed(name: str, module: Mapping[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    stems = [path.rsplit("/", 1)[-1].rsplit(".", 1)[0] for path in (*module["files"], *module["tests"])]
    for weight, texts in ((1.0, [module["description"]]), (2.0, stems), (3.0, [name])):
        for text in texts:
            found |= dict.fromkeys(_words(text), weight)
    return found


def _words(text: str) -> list[str]:
    """Words in small letters, those of names written together apart; common ones are left out."""
    return [stem for stem in name_stems(text) if stem not in code_words("common")]

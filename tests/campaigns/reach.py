"""Which functions of memlab each test reaches: a pytest plugin that records it, and the map that it writes.

The plugin is used by ``mutants.py``. It does nothing unless an environment variable asks for it:

- ``MEMLAB_REACH=FOLDER``: each process writes ``part-*.json`` there, one entry for each test.
- ``MEMLAB_SELECTED=FILE``: only the tests in FILE (one id a line) run, in that order.

A function is named ``module:qualified.name``. Lambdas, comprehensions and generators count as the function around them.
What a fixture of a module or session reaches counts for each test that uses it. Caches of memlab are emptied before
each file, so that what a file reaches does not depend on the files before it.
"""

from __future__ import annotations

import cProfile
import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
_MOST_MEMORY = 8 << 30
"""Bytes of addresses of a process that runs a mutant: the suite needs 2 GB in one process."""

_PACKAGE = str(ROOT / "memlab") + os.sep


def function_name(code: CodeType) -> str | None:
    """Return the name of the function that ``code`` belongs to; None outside memlab and at the top of a module."""
    if not code.co_filename.startswith(_PACKAGE):
        return None
    parts = [part for part in code.co_qualname.split(".") if not part.startswith("<")]
    if not parts:
        return None
    module = code.co_filename[len(str(ROOT)) + 1 :].removesuffix(".py").replace(os.sep, ".")
    return f"{module.removesuffix('.__init__')}:{'.'.join(parts)}"


class Recorder:
    """The plugin that records which functions each test reaches."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._profiler = cProfile.Profile()
        self._of_threads: set[CodeType] = set()
        self._seen: set[CodeType] = set()
        self._of_fixtures: dict[tuple[str, str], set[CodeType]] = {}
        self._names: dict[CodeType, str | None] = {}
        self._tests: list[dict[str, Any]] = []
        self._file: Path | None = None
        self._failed = False

    def _take(self) -> set[CodeType]:
        """Return the code of each function that was called since this was asked last."""
        self._profiler.disable()
        codes = {
            entry.code for entry in self._profiler.getstats() if isinstance(entry.code, CodeType)
        }
        codes |= self._of_threads
        self._profiler.clear()
        self._of_threads.clear()
        self._profiler.enable(subcalls=False, builtins=False)
        return codes

    def pytest_sessionstart(self) -> None:
        add = self._of_threads.add

        def note(frame: FrameType, event: str, argument: object) -> None:
            add(frame.f_code)

        # the profiler records its own thread; in others each call is noted
        threading.settrace(note)
        self._profiler.enable(subcalls=False, builtins=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if item.path != self._file:
            self._file = item.path
            _empty_caches()
        self._take()
        self._seen.clear()
        self._failed = False
        began = time.perf_counter()
        try:
            return (yield)
        finally:
            seconds = time.perf_counter() - began
            self._seen |= self._take()
            reached = sorted(self._reached(item))
            entry = {
                "test": item.nodeid,
                "seconds": round(seconds, 4),
                "failed": self._failed,
                "reached": reached,
            }
            self._tests.append(entry)

    def _reached(self, item: pytest.Item) -> set[str]:
        codes = set(self._seen)
        for (name, base), reached in self._of_fixtures.items():
            if name in getattr(item, "fixturenames", ()) and item.nodeid.startswith(base):
                codes |= reached
        for code in codes - self._names.keys():
            self._names[code] = function_name(code)
        return {name for name in map(self._names.__getitem__, codes) if name is not None}

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        if fixturedef.scope == "function":
            return (yield)
        self._seen |= self._take()
        try:
            return (yield)
        finally:
            of_fixture = self._take()
            self._of_fixtures.setdefault((fixturedef.argname, fixturedef.baseid), set()).update(
                of_fixture
            )
            self._seen |= of_fixture

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= report.failed

    def pytest_sessionfinish(self) -> None:
        if self._tests:
            (self._folder / f"part-{os.getpid()}.json").write_text(
                json.dumps(self._tests), encoding="utf-8"
            )


def _empty_caches() -> None:
    modules = [module for name, module in sys.modules.items() if name.startswith("memlab")]
    for module in modules:
        owners = [module, *(value for value in vars(module).values() if isinstance(value, type))]
        for owner in owners:
            for value in list(vars(owner).values()):
                if callable(clear := getattr(value, "cache_clear", None)):
                    clear()


class Selector:
    """The plugin that runs only some tests, in a given order."""

    def __init__(self, file: Path) -> None:
        self._places = {
            line: index for index, line in enumerate(file.read_text(encoding="utf-8").splitlines())
        }

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        selected = [item for item in items if item.nodeid in self._places]
        config.hook.pytest_deselected(
            items=[item for item in items if item.nodeid not in self._places]
        )
        items[:] = sorted(selected, key=lambda item: self._places[item.nodeid])


def pytest_configure(config: pytest.Config) -> None:
    if folder := os.environ.get("MEMLAB_REACH"):
        config.pluginmanager.register(Recorder(Path(folder)))
    if file := os.environ.get("MEMLAB_SELECTED"):
        with suppress(ValueError, OSError):  # a mutant may fill whatever memory there is
            resource.setrlimit(
                resource.RLIMIT_AS, (_MOST_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1])
            )
        config.pluginmanager.register(Selector(Path(file)))


class ReachMap:
    """Which functions each test reaches, how long it takes, and which tests fail without a mutation.

    Attributes
    ----------
    tests
        The ids of the tests.
    seconds
        How long each test takes, with the recording.
    functions
        The names of the functions that any test reaches.
    reached
        A matrix of booleans: a row for each test, a column for each function.
    """

    def __init__(
        self, tests: list[str], seconds: np.ndarray, functions: list[str], reached: np.ndarray
    ) -> None:
        self.tests, self.seconds, self.functions, self.reached = tests, seconds, functions, reached
        self._breadth = reached.sum(axis=1)
        self._files = np.array([test.partition("::")[0] for test in tests])

    @classmethod
    def of_parts(cls, folder: Path) -> ReachMap:
        """Return the map of what the processes of one run recorded; tests that failed are left out."""
        parts = [
            json.loads(path.read_text(encoding="utf-8"))
            for path in sorted(folder.glob("part-*.json"))
        ]
        entries = [entry for part in parts for entry in part if not entry["failed"]]
        functions = sorted({name for entry in entries for name in entry["reached"]})
        columns = {name: column for column, name in enumerate(functions)}
        reached = np.zeros((len(entries), len(functions)), dtype=bool)
        for row, entry in enumerate(entries):
            reached[row, [columns[name] for name in entry["reached"]]] = True
        seconds = np.array([entry["seconds"] for entry in entries])
        return cls([entry["test"] for entry in entries], seconds, functions, reached)

    def save(self, path: Path) -> None:
        """Write the map to a file."""
        packed = np.packbits(self.reached, axis=1)
        with path.open("wb") as file:
            np.savez_compressed(
                file,
                tests=self.tests,
                seconds=self.seconds,
                functions=self.functions,
                reached=packed,
            )

    @classmethod
    def load(cls, path: Path) -> ReachMap:
        """Read the map from a file."""
        with np.load(path) as stored:
            functions = stored["functions"].tolist()
            reached = np.unpackbits(stored["reached"], axis=1, count=len(functions)).astype(bool)
            return cls(stored["tests"].tolist(), stored["seconds"], functions, reached)

    def tests_for(self, module: str, name: str) -> tuple[list[int], list[int]]:
        """Return the tests that reach a function, the most specific first, and then others that might.

        Others are the tests of the same files, which may reach it through a cache. For the top of a module, or a
        function that no test calls but an import, they are the tests that reach anything of the module. A function that
        has moved since the map was made is found by its name.

        Parameters
        ----------
        module
            The dotted name of the module.
        name
            The qualified name of the function within it; empty for the top of the module.
        """
        direct = self._reaching(lambda key: key == f"{module}:{name}")
        if not direct.any() and name:  # it has moved since the map was made
            direct = self._reaching(lambda key: key.partition(":")[2] == name)
        if direct.any():
            others = np.isin(self._files, np.unique(self._files[direct])) & ~direct
        else:
            others = self._reaching(lambda key: key.partition(":")[0] == module)
        return self._ordered(direct), self._ordered(others)

    def _reaching(self, chosen: Callable[[str], bool]) -> np.ndarray:
        """Return which tests reach any of the functions of a choice."""
        return self.reached[
            :, [column for column, key in enumerate(self.functions) if chosen(key)]
        ].any(axis=1)

    def _ordered(self, chosen: np.ndarray) -> list[int]:
        """Order tests by the number of functions they reach, and the first case of a test before its others."""
        rows = np.flatnonzero(chosen)
        rows = rows[np.lexsort((rows, self._breadth[rows] * (0.05 + self.seconds[rows])))]
        rounds: dict[str, int] = {}
        keyed = []
        for rank, row in enumerate(rows.tolist()):
            test = self.tests[row].partition("[")[0]
            rounds[test] = rounds.get(test, -1) + 1
            keyed.append((rounds[test], rank, row))
        return [row for _, _, row in sorted(keyed)]

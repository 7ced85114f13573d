"""``lab.agents.modules``: scan a project's folder, look at its map, find the modules of a task, describe one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import AsGiven, Count, checked, describe_value
from memlab.kernel.privacy import screen, split_sensitive
from memlab.kernel.state import refuse_secret_values, validate_text
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.gate import check_on
from memlab.subjects.modules.module_map import ModuleMap, ModuleMaps, described, module_map
from memlab.subjects.modules.scanning import scan

__all__ = ["LabModules", "known_path", "paths_in"]


# Files that a session touched: paths, calls of tools, messages with such calls, or the report of a hook.


_KEYS = (
    "file_path",
    "filePath",
    "notebook_path",
    "path",
    "file",
    "relative_workspace_path",
    "target_file",
)
"""What tools of coding assistants call the file that they read or write."""
_WITHIN = (
    "tool_input",
    "input",
    "arguments",
    "args",
    "content",
    "message",
    "tool_calls",
    "function",
    "parameters",
)
"""Where a message, a call or a hook's report keeps the arguments of a tool."""
_DEEPEST = 8


def paths_in(given: Any, depth: int = 0) -> Iterator[str]:
    """Return the paths that an item names: a path itself, or the files of the calls of tools within it.

    >>> list(paths_in({"tool_name": "Edit", "tool_input": {"file_path": "src/auth.ts", "new_string": "x"}}))
    ['src/auth.ts']
    """
    if depth > _DEEPEST:
        return
    if isinstance(given, str):
        if depth == 0:
            yield given
        elif given.startswith("{"):  # arguments as JSON
            try:
                yield from paths_in(json.loads(given), depth)
            except (ValueError, RecursionError):
                return
    elif isinstance(given, Mapping):
        for key in _KEYS if depth else ():
            if isinstance(given.get(key), str):
                yield given[key]
        for key in _WITHIN:
            if key in given:
                yield from paths_in(given[key], depth + 1)
    elif isinstance(given, Iterable):
        for one in given:
            yield from paths_in(one, depth + 1) if not isinstance(one, str) else ()


def known_path(path: str, files: Iterable[str]) -> str | None:
    """Return a path as the map writes it: an absolute one without what stands before the project's own folders.

    None for an absolute path of which no end is a file of the map or lies in one of its folders.
    """
    plain = path.replace("\\", "/").removeprefix("./")
    held = set(files)
    if not plain.startswith("/") and plain[1:3] != ":/":
        return plain
    parts = plain.split("/")
    ends = ["/".join(parts[at:]) for at in range(1, len(parts))]
    for end in ends:
        if end in held:
            return end
    folders = {path.rpartition("/")[0] for path in held} - {""}
    return next((end for end in ends if end.rpartition("/")[0] in folders), None)


_LONGEST = 500
"""Characters of a path, as a scan takes them."""
_FOUND: dict[str, Any] = {"module": pl.String, "score": pl.Float64, "why": pl.List(pl.String)}


class LabModules:
    """``lab.agents.modules``: the map of each project's modules.

    A scan reads a folder and runs nothing. What memories say of files (``files=``) joins the map by itself: a module is
    shallow, then partial, and mapped once memories of three sessions name its files.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    @checked
    def scan(
        self, path: str | Path, *, project: str | None = None, progress: bool = True
    ) -> ModuleMap:
        """Read a project's folder, and keep its modules, commands and conventions as one event.

        ``project`` is the folder's name unless given. A second scan stands in place of the first; what was said of
        modules stays. Links, hidden and generated folders, what .gitignore and .secretsignore leave out and sensitive
        files are not read. Conventions (of settings of formatters, instructions for agents, CONTRIBUTING and README)
        are shown for review, and nothing is remembered.

        Files of one subject are one module in whatever folders they lie, by their names and imports. Files that are
        left with a layer, such as ``src/utils``, join a module by ``describe``.

        InputError for a path that is no folder.

        >>> found = lab.agents.modules.scan(".", project="api")                                   # doctest: +SKIP
        >>> lab.remember(found.conventions)                                           # doctest: +SKIP
        """
        root = Path(path).expanduser()
        if not root.is_dir():
            raise InputError(f"{str(path)!r} is no folder.")
        named = project if project is not None else root.resolve().name
        _check_project(named)
        read = scan(root, progress=progress)
        body: dict[str, Any] = {
            "project": named,
            "modules": [asdict(module) for module in read.modules],
            "commands": [list(command) for command in read.commands],
            "frameworks": list(read.frameworks),
            "conventions": [list(rule) for rule in read.conventions],
            "languages": read.languages,
            "left_out": read.left_out,
        }
        store = self._core.store
        with store.writing() as tx:
            check_on(store, store.state, [named])
            tx.event("scan", body, at=store.clock())
        return self.map(named)

    @checked
    def map(self, project: str) -> ModuleMap:
        """The map of a project, with what memories have touched by now. UnknownName for one that was not scanned."""
        with self._core.reading() as state:
            return module_map(state, project, self._known(state.projection(ModuleMaps), project))

    @checked
    def find(self, task: str, *, project: str, limit: Count = 3) -> pl.DataFrame:
        """The modules that a task speaks of, the best first: module, score, why (the words that met).

        A word counts by how rare it is among the modules: threefold in the name of a module, twofold in that of a file,
        once in the description. No row where no word is met.

        >>> lab.agents.modules.find("the snapshot is written twice", project="api")               # doctest: +SKIP
        """
        validate_text(task, where="task")
        with self._core.reading() as state:
            maps = state.projection(ModuleMaps)
            words = maps.words(project)
            if words is None:
                raise _unknown(maps, project)
            found = words.find(task, limit=limit)
        return pl.DataFrame([one[:3] for one in found], schema=_FOUND, orient="row")

    @checked
    def describe(
        self,
        module: str,
        *,
        project: str,
        description: str = "",
        files: Sequence[str] = (),
        tests: Sequence[str] = (),
        entry_points: Sequence[str] = (),
        depends_on: Sequence[str] = (),
        new: bool = False,
    ) -> ModuleMap:
        """Say what a module is for, or which files belong to it besides; it holds beyond the next scan.

        UnknownName for a module that the map does not have, unless it is ``new``.
        """
        lists = {
            "files": files,
            "tests": tests,
            "entry_points": entry_points,
            "depends_on": depends_on,
        }
        for name in ("files", "tests", "entry_points"):
            kept, held = split_sensitive(lists[name])
            if held:
                raise InputError(
                    f"describe({name}=...): {held[0]!r} is a file of secrets, and no part of a map."
                )
            lists[name] = kept or ()
        store = self._core.store
        with store.writing() as tx:
            check_on(store, store.state, [project])
            known = self._known(store.state.projection(ModuleMaps), project)
            names = [*known["described"], *(one["name"] for one in known["modules"])]
            if module not in names and not new:
                raise UnknownName("module", module, names)
            before = known["described"].get(module, {})
            said = (
                screen(validate_text(description, where="description")).text if description else ""
            )
            body = {
                "description": said or before.get("description", ""),
                **{
                    name: list(dict.fromkeys([*before.get(name, ()), *given]))
                    for name, given in lists.items()
                },
            }
            tx.event(
                "describe-module",
                {"project": project, "module": module, "with": body},
                at=store.clock(),
            )
        return self.map(project)

    @checked
    def touch(
        self,
        files: Annotated[str | Iterable[str | Mapping[str, Any]] | Mapping[str, Any], AsGiven],
        *,
        project: str,
        session: str | None = None,
    ) -> ModuleMap:
        """Log the files that a session read or wrote, and return the map.

        The files join their modules. A module is partial once a file of it was touched, and mapped after three
        sessions. Nothing is written where nothing is new.

        Parameters
        ----------
        files
            Paths, or what names them: calls of tools (Read, Edit, Write), messages with such calls, or the report that
            a coding agent gives to a hook. An absolute path counts by the end that the map knows. A path without such
            an end is left out, and so is a file of secrets.
        project
            A project with a map.
        session
            Which session touched them; without one the confidence is at most partial.

        Raises
        ------
        UnknownName
            For a project without a map.
        MemoryOff
            While memory is off.

        Examples
        --------
        >>> lab.agents.modules.touch(["src/auth/tokens.ts"], project="api", session="monday")     # doctest: +SKIP
        """
        if not isinstance(files, Iterable):
            raise InputError(
                f"touch(files=...): files are paths, or calls of tools as dicts, not {describe_value(files)}."
            )
        items: list[Any] = [files] if isinstance(files, str | Mapping) else list(files)
        for item in items:
            if not isinstance(item, str | Mapping):
                raise InputError(
                    f"touch(files=...): an item is a path or a call of a tool, not {describe_value(item)}."
                )
        named = (path.strip() for item in items for path in paths_in(item))
        paths = [path for path in named if path and len(path) <= _LONGEST]
        for path in paths:
            validate_text(path, where="files")
        kept, _ = split_sensitive(paths)
        refuse_secret_values({"project": [project], "session": [session]})
        store = self._core.store
        with store.writing() as tx:
            check_on(store, store.state, [project])
            known = self._known(store.state.projection(ModuleMaps), project)
            held = [
                path for one in described(known).values() for path in (*one["files"], *one["tests"])
            ]
            before = {tuple(one) for one in known.get("touched", ())}
            short = dict.fromkeys(
                name for path in kept or () if (name := known_path(path, held)) is not None
            )
            new = [name for name in short if (name, session) not in before]
            if new:
                tx.event(
                    "touch-files",
                    {"project": project, "session": session, "files": new},
                    at=store.clock(),
                )
        return self.map(project)

    def projects(self) -> tuple[str, ...]:
        """The projects that have a map."""
        with self._core.reading() as state:
            return state.projection(ModuleMaps).projects

    @staticmethod
    def _known(maps: ModuleMaps, project: str) -> dict[str, Any]:
        known = maps.get(project)
        if known is None:
            raise _unknown(maps, project)
        return known


def _unknown(maps: ModuleMaps, project: str) -> UnknownName:
    return UnknownName("project with a map (see lab.agents.modules.scan)", project, maps.projects)


def _check_project(project: str) -> None:
    if not project:
        raise InputError("scan(project=...): a folder without a name needs a project.")
    refuse_secret_values({"project": [validate_text(project, where="project")]})

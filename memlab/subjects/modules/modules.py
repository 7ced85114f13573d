"""``lab.agents.modules``: scan projects into maps of their modules."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import Count, checked
from memlab.kernel.privacy import screen, split_sensitive
from memlab.kernel.state import refuse_secret_values, validate_text
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.gate import check_on
from memlab.subjects.modules.module_map import ModuleMap, ModuleMaps, described, module_map
from memlab.subjects.modules.scanning import scan

_KEYS = (
    "file_path",
    "filePath",
    "notebook_path",
    "path",
    "file",
    "relative_workspace_path",
    "target_file",
)
"""The names under which tools of coding assistants take a file as an argument."""
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
"""The keys under which messages, calls and reports of hooks hold the arguments of a tool."""
# Reports of hooks nest arguments four levels deep. Twice that depth is the limit for hostile nesting.
_DEEPEST = 8


def paths_in(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield the file paths in an item, which is a path or a record of tool calls.

    >>> list(paths_in({"tool_name": "Edit", "tool_input": {"file_path": "src/auth.ts", "new_string": "x"}}))
    ['src/auth.ts']
    """
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        if depth == 0:
            yield value
        elif value.startswith("{"):  # Some tools give their arguments as JSON.
            try:
                yield from paths_in(json.loads(value), depth)
            except (ValueError, RecursionError):
                return
    elif isinstance(value, Mapping):
        for key in _KEYS if depth else ():
            if isinstance(value.get(key), str):
                yield value[key]
        for key in _WITHIN:
            if key in value:
                yield from paths_in(value[key], depth + 1)
    elif isinstance(value, Iterable):
        for element in value:
            yield from paths_in(element, depth + 1) if not isinstance(element, str) else ()


def known_path(path: str, files: Iterable[str]) -> str | None:
    """Return the path under which a map stores a file, or None for another file.

    An absolute path is shortened to an end that is a file of the map, or lies in a folder of the
    map. The result is None if there is no such end.
    """
    plain = path.replace("\\", "/").removeprefix("./")
    known_files = set(files)
    if not plain.startswith("/") and plain[1:3] != ":/":
        return plain
    parts = plain.split("/")
    ends = ["/".join(parts[at:]) for at in range(1, len(parts))]
    for end in ends:
        if end in known_files:
            return end
    folders = {path.rpartition("/")[0] for path in known_files} - {""}
    return next((end for end in ends if end.rpartition("/")[0] in folders), None)


_LONGEST = 500
"""The maximum number of characters of a path, as in a scan."""
# The columns of the frame that ``find`` returns.
_FOUND: dict[str, Any] = {"module": pl.String, "score": pl.Float64, "why": pl.List(pl.String)}


class LabModules:
    """``lab.agents.modules``: the map of each project's modules.

    A scan reads a folder and runs nothing. Files that memories name (``files=``) join the map
    automatically. The confidence of a module is shallow at first, then partial. It is mapped once
    memories or touched files of three sessions belong to the module.

    Examples
    --------
    >>> memlab.open().agents.modules.projects()
    ()
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    @checked
    def scan(
        self, path: str | Path, *, project: str | None = None, progress: bool = True
    ) -> ModuleMap:
        """Scan a project's folder, and store its module map as one event.

        The map has modules, commands and conventions. A second scan replaces the first, and
        descriptions of modules stay. Links, hidden and generated folders, sensitive files, and
        files excluded by .gitignore or .secretsignore are not read. Conventions come from settings
        of formatters, instructions for agents, CONTRIBUTING and README. They are returned for
        review and not remembered.

        Files of one subject form one module, in whatever folders they are; their names and imports
        show the subject. Other files stay with their layer, such as ``src/utils``, until
        ``describe`` adds them to a module.

        Parameters
        ----------
        path
            The folder of the project.
        project
            The name of the project; by default that of the folder.
        progress
            Whether to show a progress bar for large projects.

        Returns
        -------
        ModuleMap
            The map of the project.

        Raises
        ------
        InputError
            If ``path`` is not a folder.

        Examples
        --------
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "auth.py").write_text("'''Sessions and tokens.'''")
        >>> memlab.open().agents.modules.scan(folder, project="api").text
        '.: Sessions and tokens.'
        """
        root = Path(path).expanduser()
        if not root.is_dir():
            raise InputError(f"{str(path)!r} is not a folder. Pass the folder of a project.")
        name = project if project is not None else root.resolve().name
        _check_project(name)
        read = scan(root, progress=progress)
        body: dict[str, Any] = {
            "project": name,
            "modules": [asdict(module) for module in read.modules],
            "commands": [list(command) for command in read.commands],
            "frameworks": list(read.frameworks),
            "conventions": [list(rule) for rule in read.conventions],
            "languages": read.languages,
            "left_out": read.left_out,
        }
        store = self._core.store
        with store.writing() as tx:
            check_on(store, store.state, [name])
            tx.event("scan", body, at=store.clock())
        return self.map(name)

    @checked
    def map(self, project: str) -> ModuleMap:
        """Return a project's current module map, with the files that memories name.

        Parameters
        ----------
        project
            The name of the project.

        Returns
        -------
        ModuleMap
            The map of the project.

        Raises
        ------
        UnknownName
            If the project was never scanned.

        Examples
        --------
        >>> import tempfile
        >>> modules = memlab.open().agents.modules
        >>> _ = modules.scan(tempfile.mkdtemp(), project="api")
        >>> modules.map("api").version
        1
        """
        with self._core.reading() as state:
            return module_map(
                state, project, self._stored_map(state.projection(ModuleMaps), project)
            )

    @checked
    def find(self, task: str, *, project: str, limit: Count = 3) -> pl.DataFrame:
        """Return the modules that share words with a task, in descending order of score.

        A word counts by its rarity among the modules: threefold in the name of a module, twofold in
        the name of a file, and once in a description.

        Parameters
        ----------
        task
            A description of the task.
        project
            The name of the project.
        limit
            The maximum number of modules.

        Returns
        -------
        polars.DataFrame
            A row for each module, with ``module``, ``score`` and ``why`` (the common words). Empty
            if no module shares a word with the task.

        Raises
        ------
        UnknownName
            If the project was never scanned.

        Examples
        --------
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "auth.py").write_text("'''Sessions and tokens.'''")
        >>> modules = memlab.open().agents.modules
        >>> _ = modules.scan(folder, project="api")
        >>> modules.find("Refresh the tokens", project="api")["module"].to_list()
        ['.']
        """
        validate_text(task, where="task")
        with self._core.reading() as state:
            maps = state.projection(ModuleMaps)
            words = maps.words(project)
            if words is None:
                raise _unknown(maps, project)
            matches = words.find(task, limit=limit)
        return pl.DataFrame([match[:3] for match in matches], schema=_FOUND, orient="row")

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
        """Describe a module or add files to it; later scans keep the description.

        Parameters
        ----------
        module
            The name of the module.
        project
            The name of the project.
        description
            A text that tells what the module does.
        files, tests, entry_points
            The paths to add to the module.
        depends_on
            The modules that this module uses.
        new
            Whether to accept a module that the map does not have yet.

        Returns
        -------
        ModuleMap
            The map of the project with the description.

        Raises
        ------
        UnknownName
            If the map has no such module and ``new`` is false, or the project has no map.
        InputError
            If a path is that of a sensitive file, such as a file of secrets.

        Examples
        --------
        >>> import tempfile
        >>> modules = memlab.open().agents.modules
        >>> _ = modules.scan(tempfile.mkdtemp(), project="api")
        >>> modules.describe("auth", project="api", description="Sessions.", new=True).text
        'auth: Sessions.'
        """
        lists = {
            "files": files,
            "tests": tests,
            "entry_points": entry_points,
            "depends_on": depends_on,
        }
        for name in ("files", "tests", "entry_points"):
            allowed, sensitive = split_sensitive(lists[name])
            if sensitive:
                raise InputError(
                    f"describe({name}=...): {sensitive[0]!r} is a file of secrets, which a map cannot contain. Leave it "
                    "out."
                )
            lists[name] = allowed or ()
        store = self._core.store
        with store.writing() as tx:
            check_on(store, store.state, [project])
            stored = self._stored_map(store.state.projection(ModuleMaps), project)
            names = [*stored["described"], *(entry["name"] for entry in stored["modules"])]
            if module not in names and not new:
                raise UnknownName("module", module, names)
            before = stored["described"].get(module, {})
            clean_description = (
                screen(validate_text(description, where="description")).text if description else ""
            )
            body = {
                "description": clean_description or before.get("description", ""),
                **{
                    name: list(dict.fromkeys([*before.get(name, ()), *values]))
                    for name, values in lists.items()
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
        files: str | Iterable[str | Mapping[str, Any]] | Mapping[str, Any],
        *,
        project: str,
        session: str | None = None,
    ) -> ModuleMap:
        """Record the files that a session read or wrote; return the current module map.

        The files join their modules. A module is partial once one of its files was touched, and
        mapped after three sessions. Files that were already recorded for a session are not recorded
        again.

        Parameters
        ----------
        files
            Paths, or items that contain paths: calls of tools (Read, Edit, Write), messages with
            such calls, or the report of a coding agent to a hook. An absolute path is shortened to
            an end that the map has, and left out if there is none. Sensitive files are left out
            too.
        project
            The name of a project with a map.
        session
            The session that touched the files. Without a session, modules become at most partial.

        Returns
        -------
        ModuleMap
            The map of the project with the touched files.

        Raises
        ------
        UnknownName
            If the project has no map.
        InputError
            If an item is neither a path nor a call of a tool.
        MemoryOff
            If memory is switched off for the project.

        Examples
        --------
        >>> import tempfile
        >>> modules = memlab.open().agents.modules
        >>> _ = modules.scan(tempfile.mkdtemp(), project="api")
        >>> _ = modules.describe("src/auth", project="api", new=True)
        >>> touched = modules.touch(["src/auth/tokens.ts"], project="api", session="monday")
        >>> touched.frame["confidence"].to_list()
        ['partial']
        """
        items: list[Any] = [files] if isinstance(files, str | Mapping) else list(files)
        stripped = (path.strip() for item in items for path in paths_in(item))
        paths = [path for path in stripped if path and len(path) <= _LONGEST]
        for path in paths:
            validate_text(path, where="files")
        allowed, _ = split_sensitive(paths)
        refuse_secret_values({"project": [project], "session": [session]})
        store = self._core.store
        with store.writing() as tx:
            check_on(store, store.state, [project])
            stored = self._stored_map(store.state.projection(ModuleMaps), project)
            # The end of a path is matched with all files and tests of the map, described ones included.
            mapped = [
                path
                for module in described(stored).values()
                for path in (*module["files"], *module["tests"])
            ]
            before = {tuple(pair) for pair in stored.get("touched", ())}
            short = dict.fromkeys(
                name for path in allowed or () if (name := known_path(path, mapped)) is not None
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
        """Return the names of the projects that have a module map.

        Returns
        -------
        tuple of str
            The names in alphabetical order.

        Examples
        --------
        >>> memlab.open().agents.modules.projects()
        ()
        """
        with self._core.reading() as state:
            return state.projection(ModuleMaps).projects

    @staticmethod
    def _stored_map(maps: ModuleMaps, project: str) -> dict[str, Any]:
        """Return the stored fields of a project's map; raise UnknownName without a map."""
        stored = maps.get(project)
        if stored is None:
            raise _unknown(maps, project)
        return stored


def _unknown(maps: ModuleMaps, project: str) -> UnknownName:
    """Return the error for a project without a map, with the names of mapped projects."""
    return UnknownName("project with a map (see lab.agents.modules.scan)", project, maps.projects)


def _check_project(project: str) -> None:
    """Raise an error if the name of a project is empty or contains a secret."""
    if not project:
        raise InputError(
            "scan(project=...): the folder has no name. Pass the name of the project as project=."
        )
    refuse_secret_values({"project": [validate_text(project, where="project")]})

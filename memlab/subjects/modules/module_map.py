"""The map of a project's modules, with the files that memories and sessions touch.

The confidence of a module tells how well the lab knows it. It is *shallow* if only the files are
known. It is *partial* if a memory names a file of the module, a session touched one, or a user
described the module. It is *mapped* after three sessions or more.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.kernel.base.arguments import checked
from memlab.kernel.base.arrays import Ints
from memlab.kernel.base.display import Displayed, clip, details, table
from memlab.kernel.base.printable import printable
from memlab.kernel.journal import Event
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.state import (
    FLAG,
    NUMBER,
    PROJECT,
    SESSION,
    EventType,
    Field,
    Projection,
    State,
    list_field,
    mapping_field,
)
from memlab.subjects.drawing import write_page
from memlab.subjects.reading.tags import code_words, file_subject, name_stems, stem_code_word

# Files are grouped by subject.
#
# A project is laid out by subject (``src/auth/tokens.ts``) or by layer (``src/routes/auth.ts``,
# ``stores/auth-store.ts``), and most projects mix both. The *key* of a file is its subject without layers. It consists
# of the file's folders that are no layers. For a file in a layer, the words of its name without layer words follow. The
# three paths have the key ``auth``.


Key = tuple[str, ...]

_SHORT = 3
"""The minimum number of letters of a subject."""
_ONE_SUBJECT = 2 / 3
"""The minimum share of a file's imports, in either direction, that lead to the module which it joins."""


def is_layer(folder: str) -> bool:
    """Return whether a folder is the root or a code layer, such as "routes"."""
    last = folder.rsplit("/", 1)[-1]
    return last == "." or _is_layer_word(last)


def by_subject(groups: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Regroup files by subject, so that files of one subject are in one group.

    ``groups`` has files by folder. The result has files by the folder that names each group. Files
    in a layer move to the module of their subject. That is a module with a folder of its own, or
    one of at least two files from at least two layers. Files without a subject stay with their
    folder.
    """
    # The largest folder of a subject gives the module its name. Then files in subfolders of layers move, because a
    # folder is a safer sign of a subject than a file name. Single files move last.
    modules: dict[str, list[str]] = {}
    module_of_key: dict[Key, str] = {}
    for folder, paths in sorted(
        groups.items(), key=lambda item: (-len(item[1]), len(item[0]), item[0])
    ):
        key = _folder_key(folder)
        home = folder if is_layer(folder) or not key else module_of_key.setdefault(key, folder)
        modules.setdefault(home, []).extend(paths)
    in_layers = [(folder, path) for folder in groups if is_layer(folder) for path in groups[folder]]
    by_folder: dict[Key, list[tuple[str, str]]] = defaultdict(list)
    by_name: dict[Key, list[tuple[str, str]]] = defaultdict(list)
    for folder, path in in_layers:
        file_key, in_folder = _file_key(path, folder)
        if file_key is not None:
            (by_folder if in_folder else by_name)[file_key].append((folder, path))
    for key, entries in by_folder.items():
        if key not in module_of_key and entries[0][0] != ".":
            module_of_key[key] = _folder_of(entries[0][1], entries[0][0])
        if key in module_of_key:
            _move(modules, entries, module_of_key[key])
    for key, entries in by_name.items():
        layers = {str(PurePosixPath(path).parent) for _, path in entries}
        if key not in module_of_key and len(layers) > 1 and len(key[-1]) >= _SHORT:
            module_of_key[key] = "/".join([*key[:-1], _hyphenate_name(entries[0][1])])
        target = module_of_key.get(key) or _by_first_word(key, module_of_key)
        if target is not None:
            _move(modules, entries, target)
    return {name: sorted(paths) for name, paths in sorted(modules.items()) if paths}


def neighbours_join(
    modules: Mapping[str, Sequence[str]],
    imported: Mapping[str, Iterable[str]],
    folders: Mapping[str, str],
) -> dict[str, list[str]]:
    """Move files in layer folders to the modules that they import or that import them.

    ``imported`` has the files and folders that each file imports, ``folders`` the module of each
    folder. Imports count in both directions. A file joins a module that is no layer if at least two
    imports, and two thirds of all, lead to that module. One import is enough if no other module has
    a file of the same subject. A file that is used by whole layers stays.
    """
    # Entry points import many modules, so they never join a module.
    owner = {path: name for name, paths in modules.items() for path in paths}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for path, others in imported.items():
        for other in others:
            target_module = owner.get(other) or folders.get(other)
            if path in owner and target_module is not None and other != path:
                counts[path][target_module] += 1
                counts[other][owner[path]] += 1
    stems = _index_subjects(modules)
    result = {name: list(paths) for name, paths in modules.items()}
    for path, name in owner.items():
        if (
            not is_layer(name)
            or name == "."
            or not counts[path]
            or PurePosixPath(path).stem in code_words("entries")
        ):
            continue
        best, count = counts[path].most_common(1)[0]
        same_subject = stems.get(
            file_subject(PurePosixPath(path).name.split(".")[0]).split(" ")[0], set()
        ) == {best}
        if (
            not is_layer(best)
            and count >= (1 if same_subject else 2)
            and count >= _ONE_SUBJECT * counts[path].total()
        ):
            result[name].remove(path)
            result[best].append(path)
    return {name: sorted(paths) for name, paths in result.items() if paths}


class Nearest:
    """Finds the module of a file that no scan found, by its subject or its folder."""

    def __init__(self, modules: Iterable[str]) -> None:
        self._modules = list(modules)
        self._named: dict[Key, str] = {}
        for name in self._modules:
            if name != "." and not is_layer(name):
                self._named.setdefault(_folder_key(name), name)

    def __call__(self, path: str) -> str | None:
        """Return the module nearest to a path, or None if no module is near."""
        around = [name for name in self._modules if name != "." and path.startswith(name + "/")]
        deepest = max(around, key=len, default=None)
        if deepest is not None and not is_layer(deepest):
            return deepest
        folder = str(PurePosixPath(path).parent)
        while not is_layer(folder) and "/" in folder:
            folder = folder.rpartition("/")[0]
        for key in (_folder_key(str(PurePosixPath(path).parent)), _file_key(path, folder)[0]):
            if key and key in self._named:
                return self._named[key]
        return deepest or ("." if "." in self._modules and "/" not in path else None)


def _layers() -> frozenset[str]:
    """Return the stems of layer words, such as routes or components."""
    return code_words("layer stems")


def _is_layer_word(word: str) -> bool:
    """Return whether every word of a name denotes a code layer, as "routes" does."""
    stems = name_stems(word)
    return bool(stems) and all(stem in _layers() for stem in stems)


def _folder_key(folder: str) -> Key:
    """Return the stems of a path's folders, without layer folders such as "routes"."""
    if folder == ".":
        return ()
    return tuple(
        " ".join(name_stems(part)) or part for part in folder.split("/") if not _is_layer_word(part)
    )


def _file_key(path: str, folder: str) -> tuple[Key | None, bool]:
    """Return the key of a file's module, or None, and whether the key comes from the file's folders.

    ``folder`` is the folder of the project. A file outside a subfolder gets its key from its name.
    """
    around, base = _folder_key(str(PurePosixPath(path).parent)), _folder_key(folder)
    if len(around) > len(base):
        return around, True
    subject = file_subject(PurePosixPath(path).name.split(".")[0] or PurePosixPath(path).stem)
    return ((*around, subject) if subject else None), False


def _folder_of(path: str, layer: str) -> str:
    """Return a file's deepest folder below the folder ``layer`` whose name is no layer word such as "routes"."""
    parts = path.split("/")[:-1]
    start = 0 if layer == "." else layer.count("/") + 1
    last = next(
        index for index in range(len(parts) - 1, start - 1, -1) if not _is_layer_word(parts[index])
    )
    return "/".join(parts[: last + 1])


def _hyphenate_name(path: str) -> str:
    """Return a file name as hyphenated words, without layer words such as "routes"."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", PurePosixPath(path).name.split(".")[0])
    words = [
        word
        for word in re.findall(r"[^\W_]{2,}", name.lower())
        if stem_code_word(word) not in _layers()
    ]
    return "-".join(words)


def _index_subjects(modules: Mapping[str, Sequence[str]]) -> dict[str, set[str]]:
    """Return the modules that have a file about each subject, without modules that are layer folders."""
    modules_of: dict[str, set[str]] = defaultdict(set)
    for name, paths in modules.items():
        for path in () if is_layer(name) else paths:
            if subject := file_subject(PurePosixPath(path).name.split(".")[0]):
                modules_of[subject].add(name)
    return modules_of


def _by_first_word(key: Key, module_of_key: Mapping[Key, str]) -> str | None:
    """Return the module that a compound name's first word identifies, if there is one.

    AuthGuard belongs to the module auth.
    """
    first = key[-1].split()[0]
    return module_of_key.get((*key[:-1], first)) if len(first) >= _SHORT else None


def _move(modules: dict[str, list[str]], entries: Sequence[tuple[str, str]], name: str) -> None:
    """Move files, listed as pairs of present module and path, to the module ``name``."""
    for folder, path in entries:
        if folder != name and path in modules.get(folder, ()):
            modules[folder].remove(path)
            modules.setdefault(name, []).append(path)


# Modules of a task are searched by words.
#
# A word counts by its rarity among N modules of which n contain it, ln(1 + N / n). It counts threefold in the name of a
# module, twofold in the name of a file, and once in a description. A path in the task counts as all of its words.


# The fields of a module that a description extends.
_LISTS = ("files", "tests", "entry_points", "depends_on")
_MAX_WORDS = 2_000
"""The maximum number of words of a task that are looked up."""


class InTask(NamedTuple):
    """A module that shares words with a task: its name, score, words and map entry."""

    module: str
    score: float
    why: list[str]
    known: Mapping[str, Any]


class ModuleWords:
    """The words of a project's modules, with their weights and rarities."""

    def __init__(self, modules: Mapping[str, Mapping[str, Any]]) -> None:
        self.modules = modules
        self._owner, self._nearest = owners(modules), Nearest(modules)
        self._weights = {name: _weigh_words(name, module) for name, module in modules.items()}
        counts = Counter(word for mine in self._weights.values() for word in mine)
        self._rarity = {word: math.log1p(len(modules) / count) for word, count in counts.items()}

    def find(self, task: str, *, limit: int) -> list[InTask]:
        """Return the modules that share words with a task, in descending order of score."""
        query_words = [
            word for word in dict.fromkeys(_words(task)[:_MAX_WORDS]) if word in self._rarity
        ]
        matches = []
        for name, weights in self._weights.items():
            if common := [word for word in query_words if word in weights]:
                score = sum(weights[word] * self._rarity[word] for word in common)
                matches.append(InTask(name, score, common, self.modules[name]))
        matches.sort(key=lambda match: (-match.score, match.module))
        return matches[:limit]

    def rows(self, state: State, project: str, names: Iterable[str]) -> Ints:
        """Return the ascending rows of memories that name a file of these modules."""
        wanted, code = set(names), state.names["project"].code(project)
        projects = state.names["project"].codes
        matching = [
            row
            for row, paths in state.lists["files"].items()
            if projects[row] == code and any(self._module_of(path) in wanted for path in paths)
        ]
        return np.array(sorted(matching), dtype=np.int64)

    def _module_of(self, path: str) -> str | None:
        """Return the module to which a path in a memory belongs, or None without a module."""
        plain = plain_path(path)
        return self._owner.get(plain) or self._nearest(plain)


def described(stored: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the modules of a stored map by name, with users' descriptions applied.

    A described text replaces the scanned text, and described lists are appended.
    """
    modules = {module["name"]: module for module in stored["modules"]}
    descriptions = stored["described"]
    return {
        name: _merge(modules.get(name, {}), descriptions.get(name, {}))
        for name in dict.fromkeys([*modules, *descriptions])
    }


def owners(modules: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the module of each file and test, by path."""
    return {
        path: name
        for name, module in modules.items()
        for path in (*module["files"], *module["tests"])
    }


def plain_path(path: str) -> str:
    """Return a path with "/" between folders and without "./" at the start."""
    return path.replace("\\", "/").removeprefix("./")


def _merge(module: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return a module with a user's description and additions applied."""
    lists = {
        name: list(dict.fromkeys([*module.get(name, ()), *change.get(name, ())])) for name in _LISTS
    }
    return {"description": change.get("description") or module.get("description", ""), **lists}


def _weigh_words(name: str, module: Mapping[str, Any]) -> dict[str, float]:
    """Return the words of a module, each with its largest weight."""
    weights: dict[str, float] = {}
    stems = [
        path.rsplit("/", 1)[-1].rsplit(".", 1)[0] for path in (*module["files"], *module["tests"])
    ]
    for weight, texts in ((1.0, [module["description"]]), (2.0, stems), (3.0, [name])):
        for text in texts:
            weights |= dict.fromkeys(_words(text), weight)
    return weights


def _words(text: str) -> list[str]:
    """Return the word stems of a text, with compounds split and common words left out."""
    return [stem for stem in name_stems(text) if stem not in code_words("common")]


# The values of the confidence, ascending.
_CONFIDENCES = ("shallow", "partial", "mapped")
_MAX_TOUCHED = 20_000
"""The maximum number of touched files that are stored for a project.

Only the latest are kept, as many as a map has files.
"""
_SEVERAL = 3
"""The number of sessions from which a module is mapped.

A single session may have touched the module in passing; three have worked on it.
"""
# The columns of ``ModuleMap.frame``.
_SCHEMA: dict[str, Any] = {
    "module": pl.String,
    "description": pl.String,
    "files": pl.List(pl.String),
    "tests": pl.List(pl.String),
    "entry_points": pl.List(pl.String),
    "depends_on": pl.List(pl.String),
    "related": pl.List(pl.String),
    "confidence": pl.Enum(_CONFIDENCES),
    "touched": pl.Int64,
    "sessions": pl.Int64,
}


@dataclass(frozen=True)
class ModuleMap(Displayed):
    """The map of a project: its modules, commands and conventions.

    Attributes
    ----------
    project
        The name of the project.
    version
        The number of scans and descriptions of modules so far.
    frame
        A row for each module:

        - ``module``: its folder, or the name that a user gave
        - ``description``, ``files``, ``tests``, ``entry_points`` and ``depends_on``
        - ``related``: modules that it imports or that import it
        - ``confidence``: "shallow", "partial" or "mapped"
        - ``touched`` and ``sessions``: the number of touched files, and of sessions that touched
          them
    commands
        The commands of the project, with the columns ``what``, ``command`` and ``file``.
    conventions
        The conventions as rows for ``lab.remember``: ``text``, ``kind``, ``project`` and ``files``.
        They are only remembered after a user has reviewed them.
    frameworks
        The known frameworks among the dependencies.
    languages
        The number of files by language.
    left_out
        The number of files that were not read, by reason.

    Examples
    --------
    >>> import tempfile
    >>> memlab.open().agents.modules.scan(tempfile.mkdtemp(), project="api")
    <ModuleMap api, version 1: 0 modules, none>
    """

    project: str
    version: int
    frame: pl.DataFrame = field(repr=False)
    commands: pl.DataFrame = field(repr=False)
    conventions: pl.DataFrame = field(repr=False)
    frameworks: tuple[str, ...] = ()
    languages: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.frame.height

    @property
    def coverage(self) -> float:
        """The share of modules with the confidence "mapped", or NaN without modules."""
        return float((self.frame["confidence"] == "mapped").mean()) if len(self) else math.nan  # type: ignore[arg-type]

    @property
    def text(self) -> str:
        """A prompt text with one line per module and one line per command."""
        lines = [
            f"{name}: {description}"
            for name, description in self.frame.select("module", "description").rows()
        ]
        return "\n".join(
            [*lines, *(f"{what}: {command}" for what, command, _ in self.commands.rows())]
        )

    @checked
    def to_html(self, path: str | Path) -> Path:
        """Write the map and its conventions to one self-contained HTML page.

        Parameters
        ----------
        path
            The file of the page. An existing file is replaced.

        Returns
        -------
        Path
            The path of the written page.

        Raises
        ------
        InputError
            If the page cannot be written.
        """
        columns = self.frame.select(
            "module",
            "confidence",
            "sessions",
            "touched",
            pl.col("description"),
            pl.col("files", "tests", "depends_on").list.join(", "),
        )
        rules = [
            (number, text, ", ".join(files))
            for number, (text, files) in enumerate(
                self.conventions.select("text", "files").rows(), 1
            )
        ]
        confidences = dict(self.frame["confidence"].value_counts().rows())
        counts = ", ".join(f"{confidences.get(word, 0)} {word}" for word in _CONFIDENCES)
        title = f"Modules of {self.project}, version {self.version}"
        body = (
            table(f"{title}: {counts}.", columns.columns, columns.rows())
            + table("Commands of the project.", self.commands.columns, self.commands.rows())
            + table(
                "Conventions to review: accept one to remember it (memlab modules LAB --accept NUMBER).",
                ("number", "convention", "file"),
                rules,
            )
        )
        page = (
            f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{escape(title)}</title>"
            f"<body style='font-family:system-ui,sans-serif;margin:2em'>{body}</body></html>"
        )
        return write_page(page, path)

    def __repr__(self) -> str:
        confidences = self.frame["confidence"].value_counts()
        counts = dict(confidences.rows())
        text = (
            ", ".join(f"{counts[word]} {word}" for word in _CONFIDENCES if word in counts) or "none"
        )
        return printable(
            f"<ModuleMap {self.project}, version {self.version}: {len(self)} modules, {text}>"
        )

    def _display(self) -> object:
        columns = self.frame.select(
            "module",
            pl.col("description").map_elements(
                lambda text: clip(text, 100), return_dtype=pl.String
            ),
            pl.col("files", "tests").list.len(),
            pl.col("depends_on").list.head(4).list.join(", "),
            "confidence",
        )
        rules = self.conventions.select("text", pl.col("files").list.join(", ")).rows()
        return (
            table(repr(self), columns.columns, columns.rows()),
            details(
                "commands",
                table("Commands of the project.", self.commands.columns, self.commands.rows()),
            ),
            details("conventions", table("Conventions to review.", ("text", "file"), rules)),
        )


# The fields of a scan with their roles. The name of a project is declared, so a purge of memories keeps it.
_PROJECT = replace(PROJECT, held="declared")
_LABEL, _COUNTS = Field("label", shared=True), mapping_field({"*": NUMBER})
# "classified" was set by events of earlier versions, in which a model could describe a module.
_MODULE = mapping_field(
    {
        **dict.fromkeys(
            ("name", "description", "files", "tests", "entry_points", "depends_on"), _LABEL
        ),
        "classified": FLAG,
    }
)
# The fields that a scan event and a snapshot share.
_SCANNED = {
    "modules": list_field(_MODULE),
    "commands": list_field(_LABEL, _LABEL, _LABEL),
    "frameworks": _LABEL,
    "conventions": list_field(_LABEL, _LABEL),
    "languages": _COUNTS,
    "left_out": _COUNTS,
}


class ModuleMaps(Projection):
    """The latest map of each project that is not deleted, with later descriptions."""

    name = "modules"
    kinds = ("scan", "describe-module", "touch-files", "delete")
    events = (
        EventType(
            "scan",
            "A project's folder was read into a map of its modules.",
            {"project": _PROJECT, **_SCANNED},
        ),
        EventType(
            "describe-module",
            "A module was described, or files were added to it.",
            {"project": _PROJECT, "module": _LABEL, "with": _MODULE},
        ),
        EventType(
            "touch-files",
            "A session worked on files of a project.",
            {"project": PROJECT, "session": SESSION, "files": _LABEL},
        ),
    )
    dumped = list_field(
        mapping_field(
            {
                "project": _PROJECT,
                **_SCANNED,
                "version": NUMBER,
                "described": list_field(_LABEL, _MODULE, drops=True),
                "touched": list_field(_LABEL, SESSION),
            }
        )
    )

    def __init__(self) -> None:
        self._maps: dict[str, dict[str, Any]] = {}
        self._words: dict[str, ModuleWords] = {}

    def words(self, project: str) -> ModuleWords | None:
        """Return the words in a project's modules, or None if the project has no map.

        The result is cached until the map changes, because each task of an agent asks for it.
        """
        stored = self._maps.get(project)
        if stored is not None and project not in self._words:
            self._words[project] = ModuleWords(described(stored))
        return self._words.get(project)

    def get(self, project: str) -> dict[str, Any] | None:
        """Return the stored fields of a project's map, or None if the project has no map."""
        return self._maps.get(project)

    @property
    def projects(self) -> tuple[str, ...]:
        """The names of the projects that have a module map."""
        return tuple(sorted(self._maps))

    def fold(self, event: Event) -> None:
        """Apply an event to the module map of its project."""
        body = event.body
        # A deleted project loses its map. The deletion of single memories names no project.
        if event.kind == "delete":
            self._maps.pop(body.get("project", ""), None)
            self._words.pop(body.get("project", ""), None)
            return
        stored = self._maps.get(body["project"], {"version": 0, "described": {}, "modules": []})
        if event.kind == "touch-files":
            touched = [
                *stored.get("touched", ()),
                *([path, body["session"]] for path in body["files"]),
            ]
            self._maps[body["project"]] = {**stored, "touched": touched[-_MAX_TOUCHED:]}
            return
        changed = {**stored, "version": stored["version"] + 1}
        if event.kind == "scan":
            changed |= body
        else:
            changed["described"] = {**stored["described"], body["module"]: body["with"]}
        self._maps[body["project"]] = changed
        self._words.pop(body["project"], None)

    def dump(self) -> Any:
        """Return the module maps as plain values for a snapshot."""
        # Names are stored as values instead of keys, because a purge rewrites values.
        return [
            {**stored, "described": [list(pair) for pair in stored["described"].items()]}
            for stored in self._maps.values()
        ]

    def load(self, dumped: Any) -> None:
        """Restore the module maps from the result of ``dump``."""
        self._words = {}
        self._maps = {
            stored["project"]: {**stored, "described": dict(stored["described"])}
            for stored in dumped
        }


def words_of_map(state: State, project: str) -> ModuleWords | None:
    """Return the words in a project's modules, or None if the project has no map."""
    return state.projection(ModuleMaps).words(project)


def module_map(state: State, project: str, stored: Mapping[str, Any]) -> ModuleMap:
    """Return a project's map, including files that sessions and memories touched."""
    modules = described(stored)
    owner, nearest = owners(modules), Nearest(modules)
    touched, sessions = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for path, session in (*_touched(state, project), *stored.get("touched", ())):
        name = owner.get(path) or nearest(path)
        if name is None:
            continue
        touched[name].add(path)
        if session is not None:
            sessions[name].add(session)
        if path not in owner:
            owner[path] = name
            modules[name]["files"] = [*modules[name]["files"], path]
    # A touched file that no scan found has joined the module of its folder or subject.
    classified = {module["name"] for module in stored["modules"] if module.get("classified")}
    needed_by = defaultdict[str, list[str]](list)
    for name, module in modules.items():
        for other in module["depends_on"]:
            needed_by[other].append(name)
    rows = [
        {
            "module": name,
            **{
                part: module[part]
                for part in ("description", "files", "tests", "entry_points", "depends_on")
            },
            "related": list(dict.fromkeys([*module["depends_on"], *needed_by[name]])),
            "confidence": "mapped"
            if len(sessions[name]) >= _SEVERAL
            else "partial"
            if touched[name] or name in stored["described"] or name in classified
            else "shallow",
            "touched": len(touched[name]),
            "sessions": len(sessions[name]),
        }
        for name, module in modules.items()
    ]
    rules = stored.get("conventions", ())
    return ModuleMap(
        project,
        stored["version"],
        pl.DataFrame(rows, schema=_SCHEMA),
        pl.DataFrame(
            list(stored.get("commands", ())),
            schema=dict.fromkeys(("what", "command", "file"), pl.String),
            orient="row",
        ),
        pl.DataFrame(
            {
                "text": [text for text, _ in rules],
                "kind": ["convention"] * len(rules),
                "project": [project] * len(rules),
                "files": [[file] for _, file in rules],
            },
            schema={
                "text": pl.String,
                "kind": pl.String,
                "project": pl.String,
                "files": pl.List(pl.String),
            },
        ),
        tuple(stored.get("frameworks", ())),
        dict(stored.get("languages", {})),
        dict(stored.get("left_out", {})),
    )


def _touched(state: State, project: str) -> Iterator[tuple[str, str | None]]:
    """Yield each file that an active memory of a project names, with the memory's session or None."""
    names, status = state.names, state.names["status"]
    code, live = names["project"].code(project), {status.code(word) for word in RECALLABLE}
    for row, paths in state.lists["files"].items():
        if paths and names["project"].codes[row] == code and int(status.codes[row]) in live:
            for path in paths:
                yield plain_path(path), names["session"].value_at(row)


def has_map(state: State, project: str) -> bool:
    """Return whether a project has a module map."""
    return project in state.projection(ModuleMaps).projects

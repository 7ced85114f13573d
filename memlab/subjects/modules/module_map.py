"""What a lab knows of a project's modules: the map that was made of its folder, and which files memories touched.

Confidence says how well a module is known: *shallow* by its files alone, *partial* where a memory names one of them, a
session touched one, or somebody described it, *mapped* where at least three sessions did.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.base.arguments import checked
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

__all__ = [
    "InTask",
    "ModuleMap",
    "ModuleMaps",
    "ModuleWords",
    "Nearest",
    "by_subject",
    "described",
    "has_map",
    "is_layer",
    "module_map",
    "neighbours_join",
    "owners",
    "plain_path",
    "words_of_map",
]


# Which files are of one subject, wherever they lie.
#
# A project is laid out by subject (``src/auth/tokens.ts``) or by layer (``src/routes/auth.ts``,
# ``stores/auth-store.ts``), and most are laid out by both. The *key* of a file is its subject without the layers: the
# folders that are no layers, and, of a file that lies in a layer, the words of its name without the layer's. The three
# paths have the key ``auth``.


Key = tuple[str, ...]

_SHORT = 3
"""Letters that a subject has at least."""
_ONE_SUBJECT = 2 / 3
"""Share of a file's imports, in either direction, that lead to one module before the file joins it."""


def is_layer(folder: str) -> bool:
    """Return whether the last part of a path names a layer, such as routes or components, or the root."""
    last = folder.rsplit("/", 1)[-1]
    return last == "." or _is_layer_word(last)


def by_subject(groups: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return groups of files by folder with the files of one subject in one group, under the name of its folder.

    Files that lie in a layer go to the module of their subject: one that has a folder, or one made of two files or more
    of two layers or more. Whatever has no subject of its own stays with its folder.
    """
    modules: dict[str, list[str]] = {}
    named: dict[Key, str] = {}
    for folder, held in sorted(groups.items(), key=lambda one: (-len(one[1]), len(one[0]), one[0])):
        key = _folder_key(folder)
        home = folder if is_layer(folder) or not key else named.setdefault(key, folder)
        modules.setdefault(home, []).extend(held)
    waiting = [(folder, path) for folder in groups if is_layer(folder) for path in groups[folder]]
    below: dict[Key, list[tuple[str, str]]] = defaultdict(list)
    loose: dict[Key, list[tuple[str, str]]] = defaultdict(list)
    for folder, path in waiting:
        of_file, in_folder = _file_key(path, folder)
        if of_file is not None:
            (below if in_folder else loose)[of_file].append((folder, path))
    for key, found in below.items():
        if key not in named and found[0][0] != ".":
            named[key] = _folder_of(found[0][1], found[0][0])
        if key in named:
            _move(modules, found, named[key])
    for key, found in loose.items():
        layers = {str(PurePosixPath(path).parent) for _, path in found}
        if key not in named and len(layers) > 1 and len(key[-1]) >= _SHORT:
            named[key] = "/".join([*key[:-1], _written(found[0][1])])
        joined = named.get(key) or _by_first_word(key, named)
        if joined is not None:
            _move(modules, found, joined)
    return {name: sorted(held) for name, held in sorted(modules.items()) if held}


def neighbours_join(
    modules: Mapping[str, Sequence[str]],
    imported: Mapping[str, Iterable[str]],
    folders: Mapping[str, str],
) -> dict[str, list[str]]:
    """Return the modules after each file in a layer joined the module that its imports, in either direction, lead to.

    ``imported`` has the files and folders that each file imports, ``folders`` the modules of folders. Two imports or
    more, and two thirds of them, lead to one module that is no layer; one is enough where that module alone has a file
    of the same subject. A file that whole layers use is of no subject.
    """
    owner = {path: name for name, held in modules.items() for path in held}
    near: dict[str, Counter[str]] = defaultdict(Counter)
    for path, others in imported.items():
        for other in others:
            to = owner.get(other) or folders.get(other)
            if path in owner and to is not None and other != path:
                near[path][to] += 1
                near[other][owner[path]] += 1
    stems = _stems(modules)
    made = {name: list(held) for name, held in modules.items()}
    for path, name in owner.items():
        if (
            not is_layer(name)
            or name == "."
            or not near[path]
            or PurePosixPath(path).stem in code_words("entries")
        ):
            continue
        best, count = near[path].most_common(1)[0]
        alike = stems.get(
            file_subject(PurePosixPath(path).name.split(".")[0]).split(" ")[0], set()
        ) == {best}
        if (
            not is_layer(best)
            and count >= (1 if alike else 2)
            and count >= _ONE_SUBJECT * near[path].total()
        ):
            made[name].remove(path)
            made[best].append(path)
    return {name: sorted(held) for name, held in made.items() if held}


class Nearest:
    """The module of a file that no scan found: by its subject, else by the deepest folder around it."""

    def __init__(self, modules: Iterable[str]) -> None:
        self._modules = list(modules)
        self._named: dict[Key, str] = {}
        for name in self._modules:
            if name != "." and not is_layer(name):
                self._named.setdefault(_folder_key(name), name)

    def __call__(self, path: str) -> str | None:
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
    return code_words("layer stems")


def _is_layer_word(word: str) -> bool:
    found = name_stems(word)
    return bool(found) and all(one in _layers() for one in found)


def _folder_key(folder: str) -> Key:
    """The folders of a path that are no layers, as stems."""
    if folder == ".":
        return ()
    return tuple(
        " ".join(name_stems(part)) or part for part in folder.split("/") if not _is_layer_word(part)
    )


def _file_key(path: str, folder: str) -> tuple[Key | None, bool]:
    """The key of a file that is grouped with the layer ``folder``, and whether a folder of its own gives it."""
    around, base = _folder_key(str(PurePosixPath(path).parent)), _folder_key(folder)
    if len(around) > len(base):
        return around, True
    subject = file_subject(PurePosixPath(path).name.split(".")[0] or PurePosixPath(path).stem)
    return ((*around, subject) if subject else None), False


def _folder_of(path: str, layer: str) -> str:
    """The folder that gives a file its subject: the first below the layer that is no layer."""
    parts = path.split("/")[:-1]
    start = 0 if layer == "." else layer.count("/") + 1
    last = next(at for at in range(len(parts) - 1, start - 1, -1) if not _is_layer_word(parts[at]))
    return "/".join(parts[: last + 1])


def _written(path: str) -> str:
    """The subject of a file's name as it is written there."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", PurePosixPath(path).name.split(".")[0])
    kept = [
        word
        for word in re.findall(r"[^\W_]{2,}", name.lower())
        if stem_code_word(word) not in _layers()
    ]
    return "-".join(kept)


def _stems(modules: Mapping[str, Sequence[str]]) -> dict[str, set[str]]:
    """The modules that are no layers by the subjects of the names of their files."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, held in modules.items():
        for path in () if is_layer(name) else held:
            if subject := file_subject(PurePosixPath(path).name.split(".")[0]):
                found[subject].add(name)
    return found


def _by_first_word(key: Key, named: Mapping[Key, str]) -> str | None:
    """The module that the first word of a compound name names: AuthGuard is of auth."""
    first = key[-1].split()[0]
    return named.get((*key[:-1], first)) if len(first) >= _SHORT else None


def _move(modules: dict[str, list[str]], found: Sequence[tuple[str, str]], name: str) -> None:
    for folder, path in found:
        if folder != name and path in modules.get(folder, ()):
            modules[folder].remove(path)
            modules.setdefault(name, []).append(path)


# Which modules a task speaks of, by its words.
#
# A word counts by how rare it is among the modules, ln(1 + N / n): threefold in a module's name, twofold in the name
# of a file, once in its description. A path of the task counts as all of its words.


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
            for row, paths in state.lists["files"].items()
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
    return {
        name: _with(modules.get(name, {}), said.get(name, {}))
        for name in dict.fromkeys([*modules, *said])
    }


def owners(modules: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The module of each file that a scan found."""
    return {path: name for name, one in modules.items() for path in (*one["files"], *one["tests"])}


def plain_path(path: str) -> str:
    """A path as a map writes it."""
    return path.replace("\\", "/").removeprefix("./")


def _with(module: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    lists = {
        name: list(dict.fromkeys([*module.get(name, ()), *said.get(name, ())])) for name in _LISTS
    }
    return {"description": said.get("description") or module.get("description", ""), **lists}


def _weighed(name: str, module: Mapping[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    stems = [
        path.rsplit("/", 1)[-1].rsplit(".", 1)[0] for path in (*module["files"], *module["tests"])
    ]
    for weight, texts in ((1.0, [module["description"]]), (2.0, stems), (3.0, [name])):
        for text in texts:
            found |= dict.fromkeys(_words(text), weight)
    return found


def _words(text: str) -> list[str]:
    """Words in small letters, those of names written together apart; common ones are left out."""
    return [stem for stem in name_stems(text) if stem not in code_words("common")]


_CONFIDENCES = ("shallow", "partial", "mapped")
_MOST_TOUCHED = 20_000
"""Files of sessions that are kept for each project, the latest: as many as a map has files."""
_SEVERAL = 3
"""Sessions that make a module mapped."""
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
    """The modules of a ``project`` as of its ``version``-th scan or update.

    ``frame``: a row a module (module: its folder; description, files, tests, entry_points, depends_on, related: what it
    imports or is imported by, confidence: shallow, partial or mapped, touched: files that memories name, sessions of
    those).
    ``commands``: what, command, file. ``conventions``: text, kind, project and files, as ``lab.remember`` takes
    them: they are not remembered before somebody has looked at them. ``left_out`` counts files by why.
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
        """The share of modules that are mapped; NaN where there are none."""
        return float((self.frame["confidence"] == "mapped").mean()) if len(self) else math.nan  # type: ignore[arg-type]

    @property
    def text(self) -> str:
        """A line a module, and how to build and test: what an agent needs to find its way."""
        lines = [
            f"{name}: {description}"
            for name, description in self.frame.select("module", "description").rows()
        ]
        return "\n".join(
            [*lines, *(f"{what}: {command}" for what, command, _ in self.commands.rows())]
        )

    @checked
    def to_html(self, path: str | Path) -> Path:
        """Write the map as one self-contained page, with the conventions to review, and return its path.

        Parameters
        ----------
        path
            Where to write the page; a file that is there is replaced.

        Raises
        ------
        InputError
            Where the page cannot be written.
        """
        shown = self.frame.select(
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
        known = dict(self.frame["confidence"].value_counts().rows())
        counts = ", ".join(f"{known.get(word, 0)} {word}" for word in _CONFIDENCES)
        title = f"Modules of {self.project}, version {self.version}"
        body = (
            table(f"{title}: {counts}.", shown.columns, shown.rows())
            + table("How it is built and tested.", self.commands.columns, self.commands.rows())
            + table(
                "Conventions to review: none is remembered before you accept it (memlab modules LAB --accept NUMBER).",
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
        known = self.frame["confidence"].value_counts()
        counts = dict(known.rows())
        said = (
            ", ".join(f"{counts[word]} {word}" for word in _CONFIDENCES if word in counts) or "none"
        )
        return printable(
            f"<ModuleMap {self.project}, version {self.version}: {len(self)} modules, {said}>"
        )

    def _display(self) -> object:
        shown = self.frame.select(
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
            table(repr(self), shown.columns, shown.rows()),
            details(
                "commands",
                table("How it is built and tested.", self.commands.columns, self.commands.rows()),
            ),
            details(
                "conventions", table("Not remembered before you choose.", ("text", "file"), rules)
            ),
        )


_PROJECT = replace(PROJECT, held="declared")
_LABEL, _COUNTS = Field("label", shared=True), mapping_field({"*": NUMBER})
_MODULE = mapping_field(
    {
        **dict.fromkeys(
            ("name", "description", "files", "tests", "entry_points", "depends_on"), _LABEL
        ),
        "classified": FLAG,
    }
)
_SCANNED = {
    "modules": list_field(_MODULE),
    "commands": list_field(_LABEL, _LABEL, _LABEL),
    "frameworks": _LABEL,
    "conventions": list_field(_LABEL, _LABEL),
    "languages": _COUNTS,
    "left_out": _COUNTS,
}


class ModuleMaps(Projection):
    """The latest map of each project, with what was said of its modules since; none of a deleted project."""

    name: ClassVar[str] = "modules"
    kinds: ClassVar[tuple[str, ...]] = ("scan", "describe-module", "touch-files", "delete")
    events: ClassVar[tuple[EventType, ...]] = (
        EventType(
            "scan",
            "A project's folder was read into a map of its modules.",
            {"project": _PROJECT, **_SCANNED},
        ),
        EventType(
            "describe-module",
            "Somebody said what a module is for, or which files belong to it.",
            {"project": _PROJECT, "module": _LABEL, "with": _MODULE},
        ),
        EventType(
            "touch-files",
            "A session worked on files of a project.",
            {"project": PROJECT, "session": SESSION, "files": _LABEL},
        ),
    )
    dumped: ClassVar[Field] = list_field(
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
        """By which words a task speaks of a project's modules; None without a map. It is kept as long as the map is."""
        known = self._maps.get(project)
        if known is not None and project not in self._words:
            self._words[project] = ModuleWords(described(known))
        return self._words.get(project)

    def get(self, project: str) -> dict[str, Any] | None:
        """The body of a project's map."""
        return self._maps.get(project)

    @property
    def projects(self) -> tuple[str, ...]:
        return tuple(sorted(self._maps))

    def fold(self, event: Event) -> None:
        body = event.body
        # of a project its map goes at once; of memories by name no map goes
        if event.kind == "delete":
            self._maps.pop(body.get("project", ""), None)
            self._words.pop(body.get("project", ""), None)
            return
        known = self._maps.get(body["project"], {"version": 0, "described": {}, "modules": []})
        if event.kind == "touch-files":
            touched = [
                *known.get("touched", ()),
                *([path, body["session"]] for path in body["files"]),
            ]
            self._maps[body["project"]] = {**known, "touched": touched[-_MOST_TOUCHED:]}
            return
        made = {**known, "version": known["version"] + 1}
        if event.kind == "scan":
            made |= body
        else:
            made["described"] = {**known["described"], body["module"]: body["with"]}
        self._maps[body["project"]] = made
        self._words.pop(body["project"], None)

    def dump(self) -> Any:
        # texts stand in values, never in keys: a purge rewrites values
        return [
            {**known, "described": [list(one) for one in known["described"].items()]}
            for known in self._maps.values()
        ]

    def load(self, dumped: Any) -> None:
        self._words = {}
        self._maps = {
            known["project"]: {**known, "described": dict(known["described"])} for known in dumped
        }


def words_of_map(state: State, project: str) -> ModuleWords | None:
    """Return by which words a task speaks of a project's modules; None without a map."""
    return state.projection(ModuleMaps).words(project)


def module_map(state: State, project: str, known: Mapping[str, Any]) -> ModuleMap:
    """A map as of this state: what memories in use name among its files joins the modules."""
    modules = described(known)
    owner, nearest = owners(modules), Nearest(modules)
    touched, sessions = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for path, session in (*_touched(state, project), *known.get("touched", ())):
        name = owner.get(path) or nearest(path)
        if name is None:
            continue
        touched[name].add(path)
        if session is not None:
            sessions[name].add(session)
        if path not in owner:
            owner[path] = name
            modules[name]["files"] = [*modules[name]["files"], path]
    classified = {one["name"] for one in known["modules"] if one.get("classified")}
    needed_by = defaultdict[str, list[str]](list)
    for name, one in modules.items():
        for other in one["depends_on"]:
            needed_by[other].append(name)
    rows = [
        {
            "module": name,
            **{
                part: one[part]
                for part in ("description", "files", "tests", "entry_points", "depends_on")
            },
            "related": list(dict.fromkeys([*one["depends_on"], *needed_by[name]])),
            "confidence": "mapped"
            if len(sessions[name]) >= _SEVERAL
            else "partial"
            if touched[name] or name in known["described"] or name in classified
            else "shallow",
            "touched": len(touched[name]),
            "sessions": len(sessions[name]),
        }
        for name, one in modules.items()
    ]
    rules = known.get("conventions", ())
    return ModuleMap(
        project,
        known["version"],
        pl.DataFrame(rows, schema=_SCHEMA),
        pl.DataFrame(
            list(known.get("commands", ())),
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
        tuple(known.get("frameworks", ())),
        dict(known.get("languages", {})),
        dict(known.get("left_out", {})),
    )


def _touched(state: State, project: str) -> Iterator[tuple[str, str | None]]:
    """Files that memories of the project in use name, with the session of each."""
    names, status = state.names, state.names["status"]
    code, live = names["project"].code(project), {status.code(word) for word in RECALLABLE}
    for row, paths in state.lists["files"].items():
        if paths and names["project"].codes[row] == code and int(status.codes[row]) in live:
            for path in paths:
                yield plain_path(path), names["session"].value_at(row)


def has_map(state: State, project: str) -> bool:
    """Return whether a map of this project's modules is kept."""
    return project in state.projection(ModuleMaps).projects

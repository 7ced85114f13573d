"""What a lab knows of a project's modules: the map that was made of its folder, and which files memories touched.

Confidence says how well a module is known: *shallow* by its files alone, *partial* where a memory names one of them, a
session touched one, or somebody described or a model classified it, *mapped* where at least three sessions did.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from memlab.kernel.base.arguments import checked
from memlab.kernel.base.display import Displayed, clip, details, table
from memlab.kernel.base.drawing import write_page
from memlab.kernel.base.printable import printable
from memlab.kernel.journal import Event
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.state import FLAG, NUMBER, PROJECT, SESSION, EventType, Field, Projection, State, listed, mapping
from memlab.subjects.modules.grouping import Nearest
from memlab.subjects.modules.in_task import ModuleWords, described, owners, plain_path

__all__ = ["ModuleMap", "ModuleMaps", "has_map", "module_map", "words_of_map"]

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
        lines = [f"{name}: {description}" for name, description in self.frame.select("module", "description").rows()]
        return "\n".join([*lines, *(f"{what}: {command}" for what, command, _ in self.commands.rows())])

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
            for number, (text, files) in enumerate(self.conventions.select("text", "files").rows(), 1)
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
        said = ", ".join(f"{counts[word]} {word}" for word in _CONFIDENCES if word in counts) or "none"
        return printable(f"<ModuleMap {self.project}, version {self.version}: {len(self)} modules, {said}>")

    def _display(self) -> object:
        shown = self.frame.select(
            "module",
            pl.col("description").map_elements(lambda text: clip(text, 100), return_dtype=pl.String),
            pl.col("files", "tests").list.len(),
            pl.col("depends_on").list.head(4).list.join(", "),
            "confidence",
        )
        rules = self.conventions.select("text", pl.col("files").list.join(", ")).rows()
        return (
            table(repr(self), shown.columns, shown.rows()),
            details("commands", table("How it is built and tested.", self.commands.columns, self.commands.rows())),
            details("conventions", table("Not remembered before you choose.", ("text", "file"), rules)),
        )


_PROJECT = replace(PROJECT, held="declared")
_LABEL, _COUNTS = Field("label", shared=True), mapping({"*": NUMBER})
_MODULE = mapping(
    {
        **dict.fromkeys(("name", "description", "files", "tests", "entry_points", "depends_on"), _LABEL),
        "classified": FLAG,
    }
)
_SCANNED = {
    "modules": listed(_MODULE),
    "commands": listed(_LABEL, _LABEL, _LABEL),
    "frameworks": _LABEL,
    "conventions": listed(_LABEL, _LABEL),
    "languages": _COUNTS,
    "left_out": _COUNTS,
}


class ModuleMaps(Projection):
    """The latest map of each project, with what was said of its modules since; none of a deleted project."""

    name: ClassVar[str] = "modules"
    kinds: ClassVar[tuple[str, ...]] = ("scan", "describe-module", "touch-files", "delete")
    events: ClassVar[tuple[EventType, ...]] = (
        EventType("scan", "A project's folder was read into a map of its modules.", {"project": _PROJECT, **_SCANNED}),
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
    dumped: ClassVar[Field] = listed(
        mapping(
            {
                "project": _PROJECT,
                **_SCANNED,
                "version": NUMBER,
                "described": listed(_LABEL, _MODULE, drops=True),
                "touched": listed(_LABEL, SESSION),
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
        if event.kind == "delete":  # of a project its map goes at once; of memories by name no map goes
            self._maps.pop(body.get("project", ""), None)
            self._words.pop(body.get("project", ""), None)
            return
        known = self._maps.get(body["project"], {"version": 0, "described": {}, "modules": []})
        if event.kind == "touch-files":
            touched = [*known.get("touched", ()), *([path, body["session"]] for path in body["files"])]
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
            {**known, "described": [list(one) for one in known["described"].items()]} for known in self._maps.values()
        ]

    def load(self, dumped: Any) -> None:
        self._words = {}
        self._maps = {known["project"]: {**known, "described": dict(known["described"])} for known in dumped}


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
            **{part: one[part] for part in ("description", "files", "tests", "entry_points", "depends_on")},
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
            list(known.get("commands", ())), schema=dict.fromkeys(("what", "command", "file"), pl.String), orient="row"
        ),
        pl.DataFrame(
            {
                "text": [text for text, _ in rules],
                "kind": ["convention"] * len(rules),
                "project": [project] * len(rules),
                "files": [[file] for _, file in rules],
            },
            schema={"text": pl.String, "kind": pl.String, "project": pl.String, "files": pl.List(pl.String)},
        ),
        tuple(known.get("frameworks", ())),
        dict(known.get("languages", {})),
        dict(known.get("left_out", {})),
    )


def _touched(state: State, project: str) -> Iterator[tuple[str, str | None]]:
    """Files that memories of the project in use name, with the session of each."""
    names, status = state.names, state.names["status"]
    code, live = names["project"].code(project), {status.code(word) for word in RECALLABLE}
    for row, paths in state.lists["files"].filled():
        if paths and names["project"].codes[row] == code and int(status.codes[row]) in live:
            for path in paths:
                yield plain_path(path), names["session"].at(row)


def has_map(state: State, project: str) -> bool:
    """Return whether a map of this project's modules is kept."""
    return project in state.projection(ModuleMaps).projects

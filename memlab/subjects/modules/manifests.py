"""What the files of a project say of its build, its tests, its frameworks, its entry points and its conventions."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from memlab.privacy import screen
from memlab.subjects.modules.walking import Tree
from memlab.subjects.modules.words import words

__all__ = ["Command", "Convention", "Manifests", "read_manifests"]

_MOST = 1 << 20
_MOST_CONVENTIONS = 60
_SCRIPTS = {"build": "build", "test": "test", "lint": "lint", "check": "check", "typecheck": "check", "start": "run"}
"""What is done by the usual targets of a Makefile, and scripts of a package.json."""
_LOCKS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lockb": "bun", "bun.lock": "bun"}
_INSTRUCTIONS = re.compile(
    r"(agents|claude|gemini|contributing|conventions?|style ?guide|copilot-instructions)\.\w+", re.I
)
_README = re.compile(r"readme(\.\w+)?", re.I)
_OF_RULES = re.compile(r"style|convention|guideline|contribut|rules?\b|develop", re.I)
_BULLET = re.compile(r"\s{0,3}(?:[-*+]|\d{1,2}[.)])\s+(\S.{18,238})")
_TARGET = re.compile(r"^([a-z][\w-]{0,30})\s*:(?!=)", re.M)


class Command(NamedTuple):
    """How something is done, by which file: ``what`` is build, test, check, lint or run."""

    what: str
    command: str
    file: str


class Convention(NamedTuple):
    """A rule of the project in its own words, and where it stands."""

    text: str
    file: str


class Manifests(NamedTuple):
    """What was read; ``packages`` has folders by the names under which code imports them."""

    commands: tuple[Command, ...]
    frameworks: tuple[str, ...]
    entry_points: tuple[str, ...]
    conventions: tuple[Convention, ...]
    packages: dict[str, str]


def read_manifests(tree: Tree) -> Manifests:
    """Read them; one that is broken is counted in ``tree.left_out``, and the others count."""
    found = _Found(tree)
    for path in (*tree.others, *tree.sources):
        if (read := _READERS.get(PurePosixPath(path).name)) is not None and path.count("/") <= 3:
            try:
                read(found, path)
            except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
                tree.left_out["a manifest that is broken"] += 1
        elif "/" not in path or path.startswith(".github/"):
            found.instructions(path)
    rules = {screen(rule.text).text: rule.file for rule in reversed(found.conventions)}
    return Manifests(
        tuple(dict.fromkeys(one for one in found.commands if one.command.isprintable() and len(one.command) < 200)),
        tuple(sorted(found.frameworks)),
        tuple(dict.fromkeys(found.entry_points)),
        tuple(Convention(*rule) for rule in reversed(list(rules.items())))[:_MOST_CONVENTIONS],
        found.packages,
    )


class _Found:
    """What was read so far."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.commands: list[Command] = []
        self.frameworks: set[str] = set()
        self.entry_points: list[str] = []
        self.conventions: list[Convention] = []
        self.packages: dict[str, str] = {}

    def command(self, what: str, command: str, file: str) -> None:
        folder = str(PurePosixPath(file).parent)
        self.commands.append(Command(what, command if folder == "." else f"cd {folder} && {command}", file))

    def rule(self, text: str, file: str) -> None:
        self.conventions.append(Convention(text, file))

    def needs(self, names: Iterable[str]) -> set[str]:
        """Dependencies by their plain names; those that are frameworks are kept."""
        plain = {
            re.split(r"[\s<>=!~;\[@^]", name.strip().lower().removeprefix("@").split("/")[-1])[0] for name in names
        }
        self.frameworks |= plain & words("frameworks")
        return plain

    def entry(self, path: str, file: str) -> None:
        whole = str(PurePosixPath(file).parent / path.removeprefix("./"))
        if whole in self.tree.sources:
            self.entry_points.append(whole)

    # -- one reader a file --------------------------------------------------------------------------------------

    def pyproject(self, path: str) -> None:
        given = tomllib.loads(self.tree.text(path, _MOST))
        project, tool = given.get("project", {}), given.get("tool", {})
        extras = (name for names in project.get("optional-dependencies", {}).values() for name in names)
        groups = (
            name for names in given.get("dependency-groups", {}).values() for name in names if isinstance(name, str)
        )
        needs = self.needs(
            [*project.get("dependencies", ()), *extras, *groups, *tool.get("poetry", {}).get("dependencies", ())]
        )
        self.frameworks |= tool.keys() & words("frameworks")
        if "build-system" in given:
            self.command("build", "python -m build", path)
        if "pytest" in needs or "pytest" in tool:
            self.command("test", "pytest", path)
        if "ruff" in tool or "ruff" in needs:
            self.command("lint", "ruff check .", path)
        if "mypy" in tool:
            self.command("check", "mypy", path)
        for tool_name, option in (("ruff", "line-length"), ("black", "line-length")):
            if option in tool.get(tool_name, {}):
                self.rule(
                    f"Lines of Python have at most {int(tool[tool_name][option])} characters ({tool_name}).", path
                )
        if tool.get("mypy", {}).get("strict") is True:
            self.rule("Types are checked by mypy in strict mode.", path)
        if needed := project.get("requires-python"):
            self.rule(f"Python {str(needed)[:40]} is supported.", path)
        for called in project.get("scripts", {}).values():
            module = str(called).split(":")[0].replace(".", "/")
            for end in (".py", "/__init__.py"):
                self.entry(module + end, path)
                self.entry(f"src/{module}{end}", path)

    def package(self, path: str) -> None:
        given = json.loads(self.tree.text(path, _MOST))
        folder = str(PurePosixPath(path).parent)
        beside = {PurePosixPath(one).name for one in self.tree.others if str(PurePosixPath(one).parent) == folder}
        runner = next((tool for lock, tool in _LOCKS.items() if lock in beside), "npm")
        for name in given.get("scripts", {}):
            if name in _SCRIPTS:
                self.command(_SCRIPTS[name], f"{runner} test" if name == "test" else f"{runner} run {name}", path)
        self.needs([*given.get("dependencies", {}), *given.get("devDependencies", {})])
        for named in (given.get("main"), *_values(given.get("bin"))):
            if isinstance(named, str):
                self.entry(named, path)

    def cargo(self, path: str) -> None:
        given = tomllib.loads(self.tree.text(path, _MOST))
        self.needs(given.get("dependencies", {}))
        if "/" not in path:
            self.command("build", "cargo build", path)
            self.command("test", "cargo test", path)
        if name := given.get("package", {}).get("name"):
            folder = str(PurePosixPath(path).parent)
            self.packages[str(name).replace("-", "_")] = "src" if folder == "." else f"{folder}/src"

    def go(self, path: str) -> None:
        text = self.tree.text(path, _MOST)
        self.needs(re.findall(r"^\s*(?:require\s+)?([\w./-]+)\s+v\d", text, re.M))
        self.command("build", "go build ./...", path)
        self.command("test", "go test ./...", path)
        if named := re.search(r"^module\s+(\S+)", text, re.M):
            folder = str(PurePosixPath(path).parent)
            self.packages[named[1]] = "" if folder == "." else folder

    def makefile(self, path: str) -> None:
        for target in dict.fromkeys(_TARGET.findall(self.tree.text(path, _MOST))):
            if target in _SCRIPTS:
                self.command(_SCRIPTS[target], f"make {target}", path)

    def pom(self, path: str) -> None:
        self.command("build", "mvn package", path)
        self.command("test", "mvn test", path)

    def gradle(self, path: str) -> None:
        self.command("build", "gradle build", path)
        self.command("test", "gradle test", path)

    def tox(self, path: str) -> None:
        self.command("test", "tox", path)

    def nox(self, path: str) -> None:
        self.command("test", "nox", path)

    def editorconfig(self, path: str) -> None:
        for section in re.split(r"^(?=\[)", self.tree.text(path, 20_000), flags=re.M):
            if named := re.match(r"\[([^\]\n]{1,60})\]", section):
                style, size = (
                    re.search(rf"^{name}\s*=\s*(\w+)", section, re.M) for name in ("indent_style", "indent_size")
                )
                if style:
                    width = f", {size[1]} wide" if size else ""
                    self.rule(f"Files {named[1]} are indented by {style[1]}{width}.", path)

    def tsconfig(self, path: str) -> None:
        if re.search(r'"strict"\s*:\s*true', self.tree.text(path, _MOST)):
            self.rule("TypeScript is checked in strict mode.", path)

    def prettier(self, path: str) -> None:
        given = json.loads(self.tree.text(path, 20_000))
        chosen = ", ".join(f"{name} {value}" for name, value in sorted(given.items()) if isinstance(value, str | int))
        if chosen:
            self.rule(f"Code is formatted by prettier: {chosen[:200]}.", path)

    def instructions(self, path: str) -> None:
        """The bullets of a file of instructions; of a README those below a heading that speaks of rules."""
        name = PurePosixPath(path).name
        whole = _INSTRUCTIONS.fullmatch(name) is not None
        if not whole and not _README.fullmatch(name):
            return
        ruled = whole
        fenced = False
        for line in self.tree.text(path, 200_000).splitlines():
            if line.lstrip().startswith("```"):
                fenced = not fenced
            elif line.startswith("#") and not fenced:
                ruled = whole or _OF_RULES.search(line) is not None
            elif ruled and not fenced and (bullet := _BULLET.fullmatch(line.rstrip())):
                text = bullet[1].strip()
                if text.isprintable() and not text.startswith(("[", "<", "!")):
                    self.rule(text, path)


_READERS = {
    "pyproject.toml": _Found.pyproject,
    "package.json": _Found.package,
    "Cargo.toml": _Found.cargo,
    "go.mod": _Found.go,
    "Makefile": _Found.makefile,
    "makefile": _Found.makefile,
    "pom.xml": _Found.pom,
    "build.gradle": _Found.gradle,
    "build.gradle.kts": _Found.gradle,
    "tox.ini": _Found.tox,
    "noxfile.py": _Found.nox,
    ".editorconfig": _Found.editorconfig,
    "tsconfig.json": _Found.tsconfig,
    ".prettierrc": _Found.prettier,
    ".prettierrc.json": _Found.prettier,
}


def _values(given: Any) -> Iterator[Any]:
    yield from given.values() if isinstance(given, dict) else [given]

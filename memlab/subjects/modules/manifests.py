"""List the files of a project, and read its manifests: commands and frameworks."""

from __future__ import annotations

import configparser
import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from memlab.kernel.privacy import Ignored, screen, screen_many
from memlab.subjects.modules.conventions import (
    is_instructions,
    rules_of,
    rules_of_package,
    rules_of_pyproject,
    states_rules,
)
from memlab.subjects.reading.tags import code_words, file_language

# The files of a project are those below its folder, without links and hidden, generated or ignored folders.
#
# A folder is untrusted: it may be deep, large, or full of circular links, and its names may be anything. Files that are
# left out are counted by reason.

# The maximum number of entries and of files, which are ten times a large project, and the maximum length of a path.
_MAX_ENTRIES = 200_000
_MAX_FILES = 20_000
_LONGEST = 500
_INSTRUCTIONS = frozenset(
    (
        ".github",
        ".cursor",
        ".windsurf",
        ".clinerules",
        ".roo",
        ".continue",
        ".amazonq",
        ".kiro",
        ".junie",
    )
)
"""Hidden folders that contain instructions; other hidden folders are not read."""


class Tree:
    """The files of a project, as sorted paths below ``root`` with "/".

    ``sources`` are the files in a programming language, and ``others`` are other files, such as
    settings and instructions. ``left_out`` counts the files that were left out, by reason.
    """

    def __init__(
        self, root: Path, sources: list[str], others: list[str], left_out: Counter[str]
    ) -> None:
        self.root, self.sources, self.others, self.left_out = root, sources, others, left_out

    def text(self, path: str, limit: int) -> str:
        """Return the first bytes of a file as text, or "" for a binary or unreadable file."""
        try:
            with (self.root / path).open("rb") as file:
                data = file.read(limit)
        except OSError:
            self.left_out["cannot be read"] += 1
            return ""
        if b"\0" in data:
            return ""
        return data.decode("utf-8-sig", "replace")


def walk(root: Path) -> Tree:
    """Return at most 20,000 files below a folder, after at most 200,000 entries."""
    # Folders are visited in the order of their names, so that the limits always include the same files.
    ignored, left_out = Ignored(root), Counter[str]()
    files: list[str] = []
    folders, count = [""], 0
    while folders:
        folder = folders.pop()
        try:
            entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
        except OSError:
            left_out["cannot be read"] += 1
            continue
        below = []
        for entry in entries:
            count += 1
            path = f"{folder}/{entry.name}" if folder else entry.name
            if reason := _reason(entry, path, ignored):
                left_out[reason] += reason != "hidden"
            elif entry.is_dir(follow_symlinks=False):
                below.append(path)
            elif len(files) >= _MAX_FILES or count > _MAX_ENTRIES:
                left_out["beyond the limit"] += 1
            elif entry.is_file(follow_symlinks=False):
                files.append(path)
        if count <= _MAX_ENTRIES:
            folders += reversed(below)
    clean = [not screening.findings for screening in screen_many(files)]
    left_out["named like a secret"] += clean.count(False)
    visible = sorted(path for path, is_clean in zip(files, clean, strict=True) if is_clean)
    sources = [
        path for path in visible if file_language(path) and path.split("/")[0] not in _INSTRUCTIONS
    ]
    others = sorted(set(visible) - set(sources))
    return Tree(root, sources, others, +left_out)


def _reason(entry: os.DirEntry[str], path: str, ignored: Ignored) -> str:
    """Return the reason to leave out a file or folder, or "" to include it."""
    if not path.isprintable() or len(path) > _LONGEST:
        return "a name that cannot be stored"
    if entry.is_symlink():
        return "a link"
    if entry.is_dir(follow_symlinks=False):
        if entry.name.startswith(".") and entry.name not in _INSTRUCTIONS:
            return "hidden"
        if entry.name in code_words("generated") or entry.name.endswith(".egg-info"):
            return "generated or of others"
        return "ignored" if f"{path}/" in ignored else ""
    return "ignored" if path in ignored else ""


# The maximum bytes of a manifest, the maximum number of conventions, and the maximum bytes of a file with rules.
_MAX_BYTES = 1 << 20
_MAX_CONVENTIONS = 100
_MAX_RULES = 200_000
_DEEPEST = 3
"""The maximum number of folders above a manifest; deeper manifests belong to examples and copies."""
_SCRIPTS = {
    "build": "build",
    "test": "test",
    "lint": "lint",
    "check": "check",
    "typecheck": "check",
    "start": "run",
}
"""The purpose of common targets of a Makefile and of common scripts of a package.json."""
# The package manager that writes each lock file.
_LOCKS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lockb": "bun", "bun.lock": "bun"}
_LOCKS |= {
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
    "uv.lock": "uv",
    "poetry.lock": "poetry",
}
_LOCKS |= {
    "Pipfile.lock": "pipenv",
    "pdm.lock": "pdm",
    "Gemfile.lock": "bundler",
    "composer.lock": "composer",
}
_RUN = {"npm": "npx", "pnpm": "pnpm exec", "yarn": "yarn", "bun": "bunx"}
"""The command by which each manager runs a tool of an installed package."""
# The command of each test framework that a package.json may depend on. The first match counts.
_JS_TESTS = {
    "vitest": "vitest run",
    "jest": "jest",
    "mocha": "mocha",
    "ava": "ava",
    "@playwright/test": "playwright test",
    "cypress": "cypress run",
}
_GRADLE = {"build": "gradle build", "test": "gradle test"}
_COMMANDS = {
    "pom.xml": {"build": "mvn package", "test": "mvn test"},
    "build.gradle": _GRADLE,
    "build.gradle.kts": _GRADLE,
    "tox.ini": {"test": "tox"},
    "noxfile.py": {"test": "nox"},
}
"""The commands that the existence of a file implies, whatever it contains."""
# A pattern of a target of a Makefile, but not of an assignment with ":=".
_TARGET = re.compile(r"^([a-z][\w-]{0,30})\s*:(?!=)", re.M)


class Command(NamedTuple):
    """A command of the project with its file.

    ``what`` is build, test, check, lint or run.
    """

    what: str
    command: str
    file: str


class Convention(NamedTuple):
    """A rule of the project in its own words, and the file that states the rule."""

    text: str
    file: str


class Manifests(NamedTuple):
    """What the manifests of a project state.

    ``packages`` maps the names under which code imports packages to the packages' folders.
    """

    commands: tuple[Command, ...]
    frameworks: tuple[str, ...]
    entry_points: tuple[str, ...]
    conventions: tuple[Convention, ...]
    packages: dict[str, str]


def read_manifests(tree: Tree) -> Manifests:
    """Return what the manifests of a project declare: commands, rules and entry points.

    A broken manifest is counted in ``tree.left_out``, and the other manifests are read.
    """
    reader = _ManifestReader(tree)
    # A manifest may contain anything, so any error of these kinds means that the manifest is broken.
    for path in (*tree.others, *tree.sources):
        name = PurePosixPath(path).name
        if path.count("/") > _DEEPEST and not is_instructions(path):
            continue
        try:
            if (read := _READERS.get(name)) is not None:
                read(reader, path)
            for what, command in _COMMANDS.get(name, {}).items():
                reader.command(what, command, path)
            for rule in rules_of(path, tree.text(path, _MAX_RULES)) if states_rules(path) else ():
                reader.rule(rule, path)
        except (
            ValueError,
            TypeError,
            AttributeError,
            KeyError,
            RecursionError,
            configparser.Error,
        ):
            tree.left_out["a manifest that is broken"] += 1
    reader.unconfigured()
    rules = {screen(rule.text).text: rule.file for rule in reversed(reader.conventions)}
    return Manifests(
        tuple(
            dict.fromkeys(
                entry
                for entry in reader.commands
                if entry.command.isprintable() and len(entry.command) < 200
            )
        ),
        tuple(sorted(reader.frameworks)),
        tuple(dict.fromkeys(reader.entry_points)),
        tuple(Convention(*rule) for rule in reversed(list(rules.items())))[:_MAX_CONVENTIONS],
        reader.packages,
    )


class _ManifestReader:
    """Readers of manifests, which collect commands, frameworks and conventions."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.commands: list[Command] = []
        self.frameworks: set[str] = set()
        self.entry_points: list[str] = []
        self.conventions: list[Convention] = []
        self.packages: dict[str, str] = {}

    def command(self, what: str, command: str, file: str) -> None:
        """Add a command that is run in the folder of a file."""
        folder = str(PurePosixPath(file).parent)
        self.commands.append(
            Command(what, command if folder == "." else f"cd {folder} && {command}", file)
        )

    def rule(self, text: str, file: str) -> None:
        """Add a convention, with the file that states it."""
        self.conventions.append(Convention(text, file))

    def needs(self, names: Iterable[str]) -> set[str]:
        """Return dependencies without version and scope, and record known frameworks."""
        plain = {
            re.split(r"[\s<>=!~;\[@^]", name.strip().lower().removeprefix("@").split("/")[-1])[0]
            for name in names
        }
        self.frameworks |= plain & code_words("frameworks")
        return plain

    def entry(self, path: str, file: str) -> None:
        """Add a file as an entry point if it is a source file of the project."""
        whole = str(PurePosixPath(file).parent / path.removeprefix("./"))
        if whole in self.tree.sources:
            self.entry_points.append(whole)

    def pyproject(self, path: str) -> None:
        """Read a pyproject.toml: all groups of dependencies, tools and scripts."""
        # Dependencies are in five tables: three of the standard, and two of poetry.
        content = tomllib.loads(self.tree.text(path, _MAX_BYTES))
        project, tool = content.get("project", {}), content.get("tool", {})
        poetry = tool.get("poetry", {})
        poetry_groups = (
            group.get("dependencies", ()) for group in poetry.get("group", {}).values()
        )
        extras = (
            name for names in project.get("optional-dependencies", {}).values() for name in names
        )
        groups = (
            name
            for names in content.get("dependency-groups", {}).values()
            for name in names
            if isinstance(name, str)
        )
        needs = self.needs(
            [
                *project.get("dependencies", ()),
                *extras,
                *groups,
                *poetry.get("dependencies", ()),
                *poetry.get("dev-dependencies", ()),
                *(name for group in poetry_groups for name in group),
            ]
        )
        self.frameworks |= tool.keys() & code_words("frameworks")
        if "build-system" in content:
            self.command("build", "python -m build", path)
        if "pytest" in needs or "pytest" in tool:
            self.command("test", "pytest", path)
        if "ruff" in tool or "ruff" in needs:
            self.command("lint", "ruff check .", path)
        if "mypy" in tool:
            self.command("check", "mypy", path)
        for rule in rules_of_pyproject(tool):
            self.rule(rule, path)
        if version := project.get("requires-python"):
            self.rule(f"Python {str(version)[:40]} is supported.", path)
        for target in project.get("scripts", {}).values():
            module = str(target).split(":")[0].replace(".", "/")
            for end in (".py", "/__init__.py"):
                self.entry(module + end, path)
                self.entry(f"src/{module}{end}", path)

    def package(self, path: str) -> None:
        """Read a package.json: its package manager, scripts, dependencies and entry points."""
        # The manager is the declared one, else the one whose lock file is in the same folder, else npm.
        content = json.loads(self.tree.text(path, _MAX_BYTES))
        folder = str(PurePosixPath(path).parent)
        siblings = {
            PurePosixPath(other).name
            for other in self.tree.others
            if str(PurePosixPath(other).parent) == folder
        }
        declared = str(content.get("packageManager", "")).split("@")[0]
        runner = (
            declared
            if declared in _RUN
            else next((tool for lock, tool in _LOCKS.items() if lock in siblings), "npm")
        )
        if declared in _RUN and not siblings & _LOCKS.keys():
            self.manager(declared, path)
        for name in content.get("scripts", {}):
            if name in _SCRIPTS:
                self.command(
                    _SCRIPTS[name],
                    f"{runner} test" if name == "test" else f"{runner} run {name}",
                    path,
                )
        needs = {*content.get("dependencies", {}), *content.get("devDependencies", {})}
        self.needs(needs)
        if "test" not in content.get("scripts", {}):
            for tool, command in _JS_TESTS.items():
                if tool in needs:
                    self.command("test", f"{_RUN[runner]} {command}", path)
                    break
        for rule in rules_of_package(content):
            self.rule(rule, path)
        for entry in (content.get("main"), *_values(content.get("bin"))):
            if isinstance(entry, str):
                self.entry(entry, path)

    def cargo(self, path: str) -> None:
        """Read a Cargo.toml, which adds commands only in the project's root."""
        content = tomllib.loads(self.tree.text(path, _MAX_BYTES))
        self.needs(content.get("dependencies", {}))
        if "/" not in path:
            self.command("build", "cargo build", path)
            self.command("test", "cargo test", path)
        if name := content.get("package", {}).get("name"):
            folder = str(PurePosixPath(path).parent)
            self.packages[str(name).replace("-", "_")] = "src" if folder == "." else f"{folder}/src"

    def go(self, path: str) -> None:
        """Read a go.mod: its requirements and the name of the Go module."""
        text = self.tree.text(path, _MAX_BYTES)
        self.needs(re.findall(r"^\s*(?:require\s+)?([\w./-]+)\s+v\d", text, re.M))
        self.command("build", "go build ./...", path)
        self.command("test", "go test ./...", path)
        if declaration := re.search(r"^module\s+(\S+)", text, re.M):
            folder = str(PurePosixPath(path).parent)
            self.packages[declaration[1]] = "" if folder == "." else folder

    def makefile(self, path: str) -> None:
        """Read a Makefile, in which each target with a common name is a command."""
        for target in dict.fromkeys(_TARGET.findall(self.tree.text(path, _MAX_BYTES))):
            if target in _SCRIPTS:
                self.command(_SCRIPTS[target], f"make {target}", path)

    def requirements(self, path: str) -> None:
        """Read a requirements.txt: packages, and the test command if pytest is among them."""
        lines = (
            line.split("#")[0].strip() for line in self.tree.text(path, _MAX_BYTES).splitlines()
        )
        needs = self.needs(line for line in lines if line and not line.startswith("-"))
        if "pytest" in needs:
            self.tested("pytest", path)

    def gemfile(self, path: str) -> None:
        """Read a Gemfile: gems, and the command that runs rspec or minitest."""
        needs = self.needs(
            re.findall(r"^\s*gem\s+[\"']([\w-]+)", self.tree.text(path, _MAX_BYTES), re.M)
        )
        if "rspec" in needs or "rspec-rails" in needs:
            self.command("test", "bundle exec rspec", path)
        elif "minitest" in needs:
            self.command("test", "bundle exec rake test", path)

    def lock(self, path: str) -> None:
        """Add the convention to use the package manager of a lock file."""
        name = PurePosixPath(path).name
        self.manager(_LOCKS[name], path)

    def manager(self, name: str, file: str) -> None:
        """Add the convention that one package manager installs all packages."""
        folder = str(PurePosixPath(file).parent)
        where = "" if folder == "." else f" of {folder}"
        self.rule(f"Packages{where} are installed by {name}, no other manager.", file)

    def tested(self, command: str, file: str) -> None:
        """Add a test command, unless its folder already has a test command."""
        folder = PurePosixPath(file).parent
        if not any(
            entry.what == "test" and PurePosixPath(entry.file).parent == folder
            for entry in self.commands
        ):
            self.command("test", command, file)

    def unconfigured(self) -> None:
        """Add the test command that imports in tests suggest, if no manifest declares one."""
        # Twenty tests are enough to find the framework, because projects seldom mix frameworks.
        tests = [
            path
            for path in self.tree.sources
            if re.search(r"(^|/)(test_[^/]+|[^/]+_test)\.py$", path)
        ]
        if not tests or any(command.what == "test" for command in self.commands):
            return
        texts = [self.tree.text(path, 8_192) for path in tests[:20]]
        if any(re.search(r"^\s*(?:import pytest|from pytest)", text, re.M) for text in texts):
            self.frameworks.add("pytest")
            self.commands.append(Command("test", "pytest", tests[0]))
        elif any(re.search(r"^\s*(?:import unittest|from unittest)", text, re.M) for text in texts):
            self.frameworks.add("unittest")
            self.commands.append(Command("test", "python -m unittest", tests[0]))


# The reader of each manifest, by the name of the file.
_READERS = {
    "pyproject.toml": _ManifestReader.pyproject,
    "package.json": _ManifestReader.package,
    "Cargo.toml": _ManifestReader.cargo,
    "go.mod": _ManifestReader.go,
    "Makefile": _ManifestReader.makefile,
    "makefile": _ManifestReader.makefile,
    **dict.fromkeys(
        ("requirements.txt", "requirements-dev.txt", "dev-requirements.txt"),
        _ManifestReader.requirements,
    ),
    **dict.fromkeys(_LOCKS, _ManifestReader.lock),
    "Gemfile": _ManifestReader.gemfile,
}


def _values(value: Any) -> Iterator[Any]:
    """Yield the values of a dict, or the value itself for other types."""
    yield from value.values() if isinstance(value, dict) else [value]

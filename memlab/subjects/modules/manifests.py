"""What the files of a project say of its build, its tests, its frameworks, its entry points and its conventions."""

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

__all__ = ["Command", "Convention", "Manifests", "Tree", "read_manifests", "walk"]


# The files of a folder that belong to a project: no links, no hidden or generated folders, nothing that is ignored.
#
# A folder is untrusted: it may be deep, large, full of links in a circle, and its names may be anything. What is left
# out is counted, with the reason.


_MOST_SEEN = 200_000
_MOST_FILES = 20_000
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
"""Hidden folders that hold instructions: nothing else of them is read."""


class Tree:
    """The files of a project, as paths below its ``root`` with /, sorted; ``left_out`` counts others by their reason.

    ``sources`` are those that are written in a language; ``others`` the rest, such as settings and instructions.
    """

    def __init__(
        self, root: Path, sources: list[str], others: list[str], left_out: Counter[str]
    ) -> None:
        self.root, self.sources, self.others, self.left_out = root, sources, others, left_out

    def text(self, path: str, most: int) -> str:
        """The beginning of a file, at most so many bytes; empty where it is binary or cannot be read."""
        try:
            with (self.root / path).open("rb") as file:
                given = file.read(most)
        except OSError:
            self.left_out["cannot be read"] += 1
            return ""
        if b"\0" in given:
            return ""
        return given.decode("utf-8-sig", "replace")


def walk(root: Path) -> Tree:
    """The files below a folder. More than 20,000, or 200,000 entries, are not looked at: the rest is left out."""
    ignored, left_out = Ignored(root), Counter[str]()
    found: list[str] = []
    folders, seen = [""], 0
    while folders:
        folder = folders.pop()
        try:
            entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
        except OSError:
            left_out["cannot be read"] += 1
            continue
        below = []
        for entry in entries:
            seen += 1
            path = f"{folder}/{entry.name}" if folder else entry.name
            if why := _reason(entry, path, ignored):
                left_out[why] += why != "hidden"
            elif entry.is_dir(follow_symlinks=False):
                below.append(path)
            elif len(found) >= _MOST_FILES or seen > _MOST_SEEN:
                left_out["beyond the limit"] += 1
            elif entry.is_file(follow_symlinks=False):
                found.append(path)
        if seen <= _MOST_SEEN:
            folders += reversed(below)
    held = [not screening.findings for screening in screen_many(found)]
    left_out["named like a secret"] += held.count(False)
    kept = sorted(path for path, fine in zip(found, held, strict=True) if fine)
    sources = [
        path for path in kept if file_language(path) and path.split("/")[0] not in _INSTRUCTIONS
    ]
    others = sorted(set(kept) - set(sources))
    return Tree(root, sources, others, +left_out)


def _reason(entry: os.DirEntry[str], path: str, ignored: Ignored) -> str:
    """Why an entry is left out; empty where it is not."""
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


_MOST = 1 << 20
_MOST_CONVENTIONS = 100
_MOST_RULES = 200_000
_DEEPEST = 3
"""Folders above a manifest: deeper ones are of examples and of copies."""
_SCRIPTS = {
    "build": "build",
    "test": "test",
    "lint": "lint",
    "check": "check",
    "typecheck": "check",
    "start": "run",
}
"""What is done by the usual targets of a Makefile, and scripts of a package.json."""
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
"""How each manager runs a tool of a package that is installed."""
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
"""What is done by which command in a project with a file of this name, whatever it holds."""
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
        name = PurePosixPath(path).name
        if path.count("/") > _DEEPEST and not is_instructions(path):
            continue
        try:
            if (read := _READERS.get(name)) is not None:
                read(found, path)
            for what, command in _COMMANDS.get(name, {}).items():
                found.command(what, command, path)
            for rule in rules_of(path, tree.text(path, _MOST_RULES)) if states_rules(path) else ():
                found.rule(rule, path)
        except (
            ValueError,
            TypeError,
            AttributeError,
            KeyError,
            RecursionError,
            configparser.Error,
        ):
            tree.left_out["a manifest that is broken"] += 1
    found.unconfigured()
    rules = {screen(rule.text).text: rule.file for rule in reversed(found.conventions)}
    return Manifests(
        tuple(
            dict.fromkeys(
                one
                for one in found.commands
                if one.command.isprintable() and len(one.command) < 200
            )
        ),
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
        self.commands.append(
            Command(what, command if folder == "." else f"cd {folder} && {command}", file)
        )

    def rule(self, text: str, file: str) -> None:
        self.conventions.append(Convention(text, file))

    def needs(self, names: Iterable[str]) -> set[str]:
        """Dependencies by their plain names; those that are frameworks are kept."""
        plain = {
            re.split(r"[\s<>=!~;\[@^]", name.strip().lower().removeprefix("@").split("/")[-1])[0]
            for name in names
        }
        self.frameworks |= plain & code_words("frameworks")
        return plain

    def entry(self, path: str, file: str) -> None:
        whole = str(PurePosixPath(file).parent / path.removeprefix("./"))
        if whole in self.tree.sources:
            self.entry_points.append(whole)

    # -- one reader a file --------------------------------------------------------------------------------------

    def pyproject(self, path: str) -> None:
        given = tomllib.loads(self.tree.text(path, _MOST))
        project, tool = given.get("project", {}), given.get("tool", {})
        poetry = tool.get("poetry", {})
        poetry_groups = (
            group.get("dependencies", ()) for group in poetry.get("group", {}).values()
        )
        extras = (
            name for names in project.get("optional-dependencies", {}).values() for name in names
        )
        groups = (
            name
            for names in given.get("dependency-groups", {}).values()
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
        if "build-system" in given:
            self.command("build", "python -m build", path)
        if "pytest" in needs or "pytest" in tool:
            self.command("test", "pytest", path)
        if "ruff" in tool or "ruff" in needs:
            self.command("lint", "ruff check .", path)
        if "mypy" in tool:
            self.command("check", "mypy", path)
        for rule in rules_of_pyproject(tool):
            self.rule(rule, path)
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
        beside = {
            PurePosixPath(one).name
            for one in self.tree.others
            if str(PurePosixPath(one).parent) == folder
        }
        stated = str(given.get("packageManager", "")).split("@")[0]
        runner = (
            stated
            if stated in _RUN
            else next((tool for lock, tool in _LOCKS.items() if lock in beside), "npm")
        )
        if stated in _RUN and not beside & _LOCKS.keys():
            self.manager(stated, path)
        for name in given.get("scripts", {}):
            if name in _SCRIPTS:
                self.command(
                    _SCRIPTS[name],
                    f"{runner} test" if name == "test" else f"{runner} run {name}",
                    path,
                )
        needs = {*given.get("dependencies", {}), *given.get("devDependencies", {})}
        self.needs(needs)
        if "test" not in given.get("scripts", {}):
            for tool, command in _JS_TESTS.items():
                if tool in needs:
                    self.command("test", f"{_RUN[runner]} {command}", path)
                    break
        for rule in rules_of_package(given):
            self.rule(rule, path)
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

    def requirements(self, path: str) -> None:
        lines = (line.split("#")[0].strip() for line in self.tree.text(path, _MOST).splitlines())
        needs = self.needs(line for line in lines if line and not line.startswith("-"))
        if "pytest" in needs:
            self.tested("pytest", path)

    def gemfile(self, path: str) -> None:
        needs = self.needs(
            re.findall(r"^\s*gem\s+[\"']([\w-]+)", self.tree.text(path, _MOST), re.M)
        )
        if "rspec" in needs or "rspec-rails" in needs:
            self.command("test", "bundle exec rspec", path)
        elif "minitest" in needs:
            self.command("test", "bundle exec rake test", path)

    def lock(self, path: str) -> None:
        """The package manager that wrote a lock file."""
        name = PurePosixPath(path).name
        self.manager(_LOCKS[name], path)

    def manager(self, name: str, file: str) -> None:
        folder = str(PurePosixPath(file).parent)
        of = "" if folder == "." else f" of {folder}"
        self.rule(f"Packages{of} are installed by {name}, no other manager.", file)

    def tested(self, command: str, file: str) -> None:
        """Say once how tests are run in the folder of a file."""
        folder = PurePosixPath(file).parent
        if not any(
            one.what == "test" and PurePosixPath(one.file).parent == folder for one in self.commands
        ):
            self.command("test", command, file)

    def unconfigured(self) -> None:
        """How tests are run where no file says it: by the tests themselves."""
        tests = [
            path
            for path in self.tree.sources
            if re.search(r"(^|/)(test_[^/]+|[^/]+_test)\.py$", path)
        ]
        if not tests or any(one.what == "test" for one in self.commands):
            return
        texts = [self.tree.text(path, 8_192) for path in tests[:20]]
        if any(re.search(r"^\s*(?:import pytest|from pytest)", text, re.M) for text in texts):
            self.frameworks.add("pytest")
            self.commands.append(Command("test", "pytest", tests[0]))
        elif any(re.search(r"^\s*(?:import unittest|from unittest)", text, re.M) for text in texts):
            self.frameworks.add("unittest")
            self.commands.append(Command("test", "python -m unittest", tests[0]))


_READERS = {
    "pyproject.toml": _Found.pyproject,
    "package.json": _Found.package,
    "Cargo.toml": _Found.cargo,
    "go.mod": _Found.go,
    "Makefile": _Found.makefile,
    "makefile": _Found.makefile,
    **dict.fromkeys(
        ("requirements.txt", "requirements-dev.txt", "dev-requirements.txt"), _Found.requirements
    ),
    **dict.fromkeys(_LOCKS, _Found.lock),
    "Gemfile": _Found.gemfile,
}


def _values(given: Any) -> Iterator[Any]:
    yield from given.values() if isinstance(given, dict) else [given]

"""A project's modules from its folder alone: files in groups, their tests, what they import, what they are for.

A module is a folder of source files, with the files of the same subject in folders of layers such as routes or stores
(see ``grouping``). A folder of a layer, or with more than half of all files, or more than 80, is not one module but as
many as it has folders with two files or more. A test belongs to the module whose folder or file it is named after.
Imports are found by their lines, of Python, JavaScript, TypeScript, Rust and Go: no code is parsed or run.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from memlab.kernel.base.progress import bar
from memlab.kernel.privacy import screen
from memlab.subjects.modules.manifests import Command, Convention, Tree, read_manifests, walk
from memlab.subjects.modules.module_map import by_subject, is_layer, neighbours_join
from memlab.subjects.reading.tags import file_language

__all__ = ["Module", "Scan", "scan"]

_MOST_IN_ONE = 80
_READ = 65_536
_MOST_TEXT = 200
_TEST_PARTS = frozenset(("test", "tests", "testing", "__tests__", "spec", "specs", "e2e"))
_TEST_STEM = re.compile(r"(?:test|tests|spec)[_.-](.+)|(.+?)[_.-](?:test|tests|spec)|(.{2,})Tests?")
_ENTRY = frozenset(("__main__", "main", "index", "cli", "app", "manage", "server", "mod", "lib"))
_PYTHON = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+([\w]+)?|import[ \t]+([\w.]+))", re.M
)
_SCRIPT = re.compile(r"""(?:\bfrom|\brequire\(|\bimport\(?)\s*["']([^"'\n]{1,300})["']""")
_RUST = re.compile(r"^\s*(?:pub\s+)?use\s+(\w+)((?:::\w+)*)", re.M)
_GO = re.compile(r"""^\s*(?:import\s+)?(?:\w+\s+)?"([\w./-]{1,300})"\s*$""", re.M)


@dataclass
class Module:
    """One module: a folder (its ``name``; "." is the root), its files and tests, and the modules that it imports."""

    name: str
    description: str = ""
    files: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    entry_points: list[str] = field(default_factory=list)
    depends_on: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Scan:
    """What a folder told: ``languages`` and ``left_out`` are counts of files."""

    modules: tuple[Module, ...]
    commands: tuple[Command, ...]
    frameworks: tuple[str, ...]
    conventions: tuple[Convention, ...]
    languages: dict[str, int]
    left_out: dict[str, int]


def scan(root: Path, *, progress: bool) -> Scan:
    """Read a folder: nothing in it is run, and nothing outside of it is read."""
    tree = walk(root)
    manifests = read_manifests(tree)
    tests = [path for path in tree.sources if _is_test(path)]
    files = sorted(set(tree.sources) - set(tests))
    known = _Known(files, manifests.packages)
    imported: dict[str, list[str]] = {}
    with bar(progress and len(files) > 3_000, len(files), unit="file", desc="scanning") as step:
        for path in files:
            imported[path] = list(known.imports(path, tree.text(path, _READ)))
            step(1)
    groups = by_subject(_grouped(files))
    groups = neighbours_join(groups, imported, _folders(groups))
    modules = {name: Module(name, files=held) for name, held in groups.items()}
    owner, folders = (
        {path: name for name, held in groups.items() for path in held},
        _folders(groups),
    )
    for path in tests:
        name = _tested(path, modules, owner)
        modules.setdefault(name, Module(name)).tests.append(path)
    entries = set(manifests.entry_points)
    for module in modules.values():
        needed = Counter(
            to
            for path in module.files
            for target in imported[path]
            if (to := owner.get(target) or folders.get(target))
        )
        needed.pop(module.name, None)
        module.depends_on = [name for name, _ in needed.most_common()]
        module.description = _description(module, tree)
        named = [
            path for path in module.files if path in entries or PurePosixPath(path).stem in _ENTRY
        ]
        module.entry_points = sorted(
            named, key=lambda path: (path not in entries, path.count("/"), path)
        )[:5]
    return Scan(
        tuple(modules.values()),
        manifests.commands,
        manifests.frameworks,
        manifests.conventions,
        dict(Counter(file_language(path) or "" for path in tree.sources).most_common()),
        dict(tree.left_out),
    )


def _is_test(path: str) -> bool:
    whole = PurePosixPath(path)
    return (
        not _TEST_PARTS.isdisjoint(whole.parts[:-1]) or _TEST_STEM.fullmatch(whole.stem) is not None
    )


def _grouped(files: Sequence[str]) -> dict[str, list[str]]:
    """The files of each module, by its folder."""
    below = defaultdict[str, list[str]](list)
    for path in files:
        for folder in PurePosixPath(path).parents:
            below[str(folder)].append(path)
    found: dict[str, list[str]] = {}

    def group(folder: str, own: list[str]) -> None:
        depth = 0 if folder == "." else folder.count("/") + 1
        beneath = defaultdict[str, list[str]](list)
        for path in own:
            parts = path.split("/")
            beneath["/".join(parts[: depth + 1]) if len(parts) > depth + 1 else ""].append(path)
        several = [name for name, held in beneath.items() if name and len(held) > 1]
        if not several or not (
            is_layer(folder) or len(own) > len(files) / 2 or len(own) > _MOST_IN_ONE
        ):
            found[folder] = own
            return
        rest = [path for name, held in beneath.items() if name not in several for path in held]
        if rest:
            found[folder] = sorted(rest)
        for name in several:
            group(name, beneath[name])

    if files:
        group(".", list(files))
    return found


def _tested(path: str, modules: Mapping[str, Module], owner: Mapping[str, str]) -> str:
    """The module that a test belongs to; else a module of its folder."""
    whole = PurePosixPath(path)
    parts = [part for part in whole.parts[:-1] if part not in _TEST_PARTS]
    named = _TEST_STEM.fullmatch(whole.stem)
    word = next(filter(None, named.groups()), whole.stem) if named else whole.stem
    for folder in (whole.parent, *whole.parent.parents):  # beside what it tests
        if str(folder) in modules and str(folder) != "." and modules[str(folder)].files:
            return str(folder)
    lasts = {
        name.rsplit("/", 1)[-1]: name for name in reversed(list(modules)) if modules[name].files
    }
    for part in (*reversed(parts), word):
        if part in lasts:
            return lasts[part]
    stems = {
        PurePosixPath(file).stem.strip("_"): name for file, name in reversed(list(owner.items()))
    }
    return stems.get(word) or str(whole.parent)


def _folders(groups: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The module that an import of a folder leads to: its own, else the one with most of the files below it."""
    below = defaultdict[str, Counter[str]](Counter)
    for name, held in groups.items():
        for path in held:
            for folder in PurePosixPath(path).parents:
                below[str(folder)][name] += 1
    return {
        folder: folder if folder in held else held.most_common(1)[0][0]
        for folder, held in below.items()
        if folder != "."
    }


class _Known:
    """Which file or folder an import leads to."""

    def __init__(self, files: Sequence[str], packages: Mapping[str, str]) -> None:
        self._packages = packages
        self._bare: dict[str, str] = {}
        for path in files:
            bare = path.rsplit(".", 1)[0]
            for name in (
                bare,
                bare.removesuffix("/__init__"),
                bare.removesuffix("/index"),
                bare.removesuffix("/mod"),
            ):
                self._bare.setdefault(name, path)
        self._folders = {
            str(folder) for path in files for folder in PurePosixPath(path).parents
        } - {"."}

    def imports(self, path: str, text: str) -> Iterator[str]:
        """The files, else the folders, that the text of a file imports, once for each line that does."""
        end = path.rsplit(".", 1)[-1].lower()
        here = str(PurePosixPath(path).parent)
        if end in ("py", "pyi", "hy"):
            for base, name, plain in _PYTHON.findall(text):
                yield from self._python(here, plain or base, name)
        elif end in ("js", "jsx", "mjs", "ts", "tsx", "vue", "svelte"):
            for target in _SCRIPT.findall(text):
                if target.startswith("."):
                    yield from self._found(_joined(here, re.sub(r"\.[cm]?[jt]sx?$", "", target)))
        elif end == "rs":
            for first, rest in _RUST.findall(text):
                base = f"{path.split('/src/')[0]}/src" if "/src/" in path else "src"
                base = base if first == "crate" else self._packages.get(first, "")
                if base:
                    yield from self._longest(base, rest.split("::")[1:])
        elif end == "go":
            for target in _GO.findall(text):
                for package, folder in self._packages.items():
                    if target == package or target.startswith(package + "/"):
                        yield from self._found(_joined(folder, target[len(package) + 1 :]))

    def _python(self, here: str, dotted: str, name: str) -> Iterator[str]:
        dots = len(dotted) - len(dotted.lstrip("."))
        parts = [part for part in dotted.strip(".").split(".") if part]
        if dots:
            base = _joined(here, "/".join([".."] * (dots - 1)))
            yield from self._longest(base, [*parts, name] if name else parts)
            return
        for root in ("", "src", here):
            if found := list(self._longest(root, [*parts, name] if name else parts, least=1)):
                yield from found
                return

    def _longest(self, base: str, parts: Sequence[str], least: int = 0) -> Iterator[str]:
        for count in range(len(parts), least - 1, -1):
            if found := list(self._found(_joined(base, "/".join(parts[:count])))):
                yield from found
                return

    def _found(self, path: str) -> Iterator[str]:
        if path in self._bare:
            yield self._bare[path]
        elif path in self._folders:
            yield path


def _joined(folder: str, path: str) -> str:
    """A path below the root, or empty where it leads out of it."""
    parts: list[str] = []
    for part in (*folder.split("/"), *path.split("/")):
        if part == "..":
            if not parts:
                return ""
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _description(module: Module, tree: Tree) -> str:
    """The first sentence of the folder's README or of its first docstring or comment; else its languages."""
    prefix = "" if module.name == "." else module.name + "/"
    readmes = (path for path in tree.others if path.lower().startswith(f"{prefix.lower()}readme"))
    first = [
        path
        for path in module.files
        if PurePosixPath(path).stem in ("__init__", "index", "mod", "lib", "main")
    ]
    for path in (*readmes, *sorted(first, key=lambda path: path.count("/")), *module.files[:3]):
        if text := _sentence(tree.text(path, 4_096), path):
            return screen(text).text
    languages = Counter(file_language(path) or "" for path in module.files or module.tests)
    return f"{len(module.files) or len(module.tests)} files of {languages.most_common(1)[0][0]}."


def _sentence(text: str, path: str) -> str:
    if path.endswith((".py", ".pyi")):
        found = re.match(
            r"""(?:\s*#[^\n]*\n)*\s*[rRuU]?(\"{3}|'{3})(.+?)(?:\1|\n\s*\n)""", text, re.S
        )
        said = found[2] if found else ""
    elif path.lower().rsplit("/", 1)[-1].startswith("readme"):
        paragraphs = (part.strip() for part in re.split(r"\n\s*\n", text))
        said = next(
            (
                part
                for part in paragraphs
                if part and part[0] not in "#<![|=->`" and part[:2] != ".."
            ),
            "",
        )
        said = re.sub(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}", "", said)
    else:
        found = re.match(
            r"\s*(?:/\*+|//[/!]?)\s*(.+?)(?:\*/|\n\s*(?!\s|//|\*)|\n\s*\*?\s*\n)", text, re.S
        )
        said = re.sub(r"\n\s*(?:\*|//[/!]?)\s?", " ", found[1]) if found else ""
    plain = " ".join(said.split())
    plain = re.split(r"(?<=[.!?])\s", plain)[0]
    return plain[:_MOST_TEXT] if plain.isprintable() else ""

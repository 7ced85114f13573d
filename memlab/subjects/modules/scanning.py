"""Find the modules of a project from the files in its folder.

A module is a folder of source files, together with files of the same subject in folders of layers
such as routes or stores. A folder of a layer is divided into its subfolders with two files or more.
So is a folder with more than half of all files, and a folder with more than 80 files. A test
belongs to the module whose folder or file the test is named after. Imports of Python, JavaScript,
TypeScript, Rust and Go are found line by line: no code is parsed or run.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from memlab.kernel.base.printable import count_of
from memlab.kernel.base.progress import bar
from memlab.kernel.privacy import screen
from memlab.subjects.modules.manifests import Command, Convention, Tree, read_manifests, walk
from memlab.subjects.modules.module_map import by_subject, is_layer, neighbours_join
from memlab.subjects.reading.tags import file_language

# The maximum number of files in an undivided module: nobody could survey more files as one subject.
_MAX_IN_ONE = 80
# The bytes of a file that are read for imports, which are near its beginning; the maximum length of a description.
_READ = 65_536
_MAX_TEXT = 200
# Names of folders and files of tests, and of files in which a program starts.
_TEST_PARTS = frozenset(("test", "tests", "testing", "__tests__", "spec", "specs", "e2e"))
_TEST_STEM = re.compile(r"(?:test|tests|spec)[_.-](.+)|(.+?)[_.-](?:test|tests|spec)|(.{2,})Tests?")
_ENTRY = frozenset(("__main__", "main", "index", "cli", "app", "manage", "server", "mod", "lib"))
# Patterns of an import statement in each language: the module and, for Python, the first imported name.
_PYTHON = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+([\w]+)?|import[ \t]+([\w.]+))", re.M
)
_SCRIPT = re.compile(r"""(?:\bfrom|\brequire\(|\bimport\(?)\s*["']([^"'\n]{1,300})["']""")
_RUST = re.compile(r"^[^\S\n]*(?:pub\s+)?use\s+(\w+)((?:::\w+)*)", re.M)
_GO = re.compile(r"""^[^\S\n]*(?:import\s+)?(?:\w+\s+)?"([\w./-]{1,300})"\s*$""", re.M)


@dataclass
class Module:
    """A module: its folder as ``name``, its files, its tests and imported modules.

    The name "." stands for the root of the project.
    """

    name: str
    description: str = ""
    files: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    entry_points: list[str] = field(default_factory=list)
    depends_on: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Scan:
    """The result of a scan; ``languages`` and ``left_out`` count files."""

    modules: tuple[Module, ...]
    commands: tuple[Command, ...]
    frameworks: tuple[str, ...]
    conventions: tuple[Convention, ...]
    languages: dict[str, int]
    left_out: dict[str, int]


def scan(root: Path, *, progress: bool) -> Scan:
    """Scan the folder of a project, without running code or reading outside it."""
    tree = walk(root)
    manifests = read_manifests(tree)
    tests = [path for path in tree.sources if _is_test(path)]
    files = sorted(set(tree.sources) - set(tests))
    resolver = _ImportResolver(files, manifests.packages)
    imported: dict[str, list[str]] = {}
    with bar(progress and len(files) > 3_000, len(files), unit="file", desc="scanning") as step:
        for path in files:
            imported[path] = list(resolver.imports(path, tree.text(path, _READ)))
            step(1)
    # Files are grouped by folder, then by subject, then by imports, because each step builds on the previous groups.
    groups = by_subject(_group_by_folder(files))
    groups = neighbours_join(groups, imported, _folders(groups))
    modules = {name: Module(name, files=paths) for name, paths in groups.items()}
    owner, folders = (
        {path: name for name, paths in groups.items() for path in paths},
        _folders(groups),
    )
    for path in tests:
        name = _module_of_test(path, modules, owner)
        modules.setdefault(name, Module(name)).tests.append(path)
    entries = set(manifests.entry_points)
    for module in modules.values():
        needed = Counter(
            target_module
            for path in module.files
            for target in imported[path]
            if (target_module := owner.get(target) or folders.get(target))
        )
        needed.pop(module.name, None)
        module.depends_on = [name for name, _ in needed.most_common()]
        module.description = _description(module, tree)
        entry_paths = [
            path for path in module.files if path in entries or PurePosixPath(path).stem in _ENTRY
        ]
        module.entry_points = sorted(
            entry_paths, key=lambda path: (path not in entries, path.count("/"), path)
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
    """Return whether the folders or the name of a path mark a test."""
    whole = PurePosixPath(path)
    return (
        not _TEST_PARTS.isdisjoint(whole.parts[:-1]) or _TEST_STEM.fullmatch(whole.stem) is not None
    )


def _group_by_folder(files: Sequence[str]) -> dict[str, list[str]]:
    """Return the files of each module by folder; layer folders and large folders are divided into subfolders."""
    below = defaultdict[str, list[str]](list)
    for path in files:
        for folder in PurePosixPath(path).parents:
            below[str(folder)].append(path)
    groups: dict[str, list[str]] = {}

    def group(folder: str, own: list[str]) -> None:
        """Add a folder as a module, or divide it into subfolders with several files."""
        # Subfolders with a single file stay with their folder, so that dividing creates no module of one file.
        depth = 0 if folder == "." else folder.count("/") + 1
        beneath = defaultdict[str, list[str]](list)
        for path in own:
            parts = path.split("/")
            beneath["/".join(parts[: depth + 1]) if len(parts) > depth + 1 else ""].append(path)
        several = [name for name, paths in beneath.items() if name and len(paths) > 1]
        if not several or not (
            is_layer(folder) or len(own) > len(files) / 2 or len(own) > _MAX_IN_ONE
        ):
            groups[folder] = own
            return
        rest = [path for name, paths in beneath.items() if name not in several for path in paths]
        if rest:
            groups[folder] = sorted(rest)
        for name in several:
            group(name, beneath[name])

    if files:
        group(".", list(files))
    return groups


def _module_of_test(path: str, modules: Mapping[str, Module], owner: Mapping[str, str]) -> str:
    """Return the module under test, according to the test's folder or name, or else the test's folder."""
    whole = PurePosixPath(path)
    parts = [part for part in whole.parts[:-1] if part not in _TEST_PARTS]
    match = _TEST_STEM.fullmatch(whole.stem)
    word = next(filter(None, match.groups()), whole.stem) if match else whole.stem
    # Many projects keep a test in the folder of the tested file.
    for folder in (whole.parent, *whole.parent.parents):
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
    """Return the module to which an import of each folder refers.

    This is the module of that folder, or else the module with most of the files below the folder.
    """
    below = defaultdict[str, Counter[str]](Counter)
    for name, paths in groups.items():
        for path in paths:
            for folder in PurePosixPath(path).parents:
                below[str(folder)][name] += 1
    return {
        folder: folder if folder in paths else paths.most_common(1)[0][0]
        for folder, paths in below.items()
        if folder != "."
    }


class _ImportResolver:
    """Finds the file or folder of the project that an import refers to."""

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
        """Yield the file or folder to which each import in a file refers."""
        # Each language resolves names in its own way: from the importing file, from a root, or by the name of a
        # package.
        end = path.rsplit(".", 1)[-1].lower()
        here = str(PurePosixPath(path).parent)
        if end in ("py", "pyi", "hy"):
            for base, name, plain in _PYTHON.findall(text):
                yield from self._python(here, plain or base, name)
        elif end in ("js", "jsx", "mjs", "ts", "tsx", "vue", "svelte"):
            for target in _SCRIPT.findall(text):
                if target.startswith("."):
                    yield from self._resolve(
                        _join_path(here, re.sub(r"\.[cm]?[jt]sx?$", "", target))
                    )
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
                        yield from self._resolve(_join_path(folder, target[len(package) + 1 :]))

    def _python(self, here: str, dotted: str, name: str) -> Iterator[str]:
        """Yield the file or folder to which a relative or absolute Python import refers, if it is in the project."""
        dots = len(dotted) - len(dotted.lstrip("."))
        parts = [part for part in dotted.strip(".").split(".") if part]
        if dots:
            base = _join_path(here, "/".join([".."] * (dots - 1)))
            yield from self._longest(base, [*parts, name] if name else parts)
            return
        for root in ("", "src", here):
            if targets := list(self._longest(root, [*parts, name] if name else parts, minimum=1)):
                yield from targets
                return

    def _longest(self, base: str, parts: Sequence[str], minimum: int = 0) -> Iterator[str]:
        """Yield the file or folder that matches the longest prefix of a dotted name."""
        for count in range(len(parts), minimum - 1, -1):
            if targets := list(self._resolve(_join_path(base, "/".join(parts[:count])))):
                yield from targets
                return

    def _resolve(self, path: str) -> Iterator[str]:
        """Yield the existing file or folder to which a path without suffix refers."""
        if path in self._bare:
            yield self._bare[path]
        elif path in self._folders:
            yield path


def _join_path(folder: str, path: str) -> str:
    """Return the normal form of a path below a folder, or "" for a path outside the root."""
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
    """Return the first sentence of a module's README, docstring or comment, or else its number of files and language."""
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
    count = count_of(len(module.files) or len(module.tests), "file")
    return f"{count} of {languages.most_common(1)[0][0]}."


def _sentence(text: str, path: str) -> str:
    """Return the first sentence of a docstring, README paragraph or comment, cut if long; "" if there is none."""
    if path.endswith((".py", ".pyi")):
        match = re.match(
            r"""(?:\s*#[^\n]*\n)*\s*[rRuU]?(\"{3}|'{3})(.+?)(?:\1|\n\s*\n)""", text, re.S
        )
        prose = match[2] if match else ""
    elif path.lower().rsplit("/", 1)[-1].startswith("readme"):
        paragraphs = (part.strip() for part in re.split(r"\n\s*\n", text))
        prose = next(
            (
                part
                for part in paragraphs
                if part and part[0] not in "#<![|=->`" and part[:2] != ".."
            ),
            "",
        )
        prose = re.sub(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}", "", prose)
    else:
        match = re.match(
            r"\s*(?:/\*+|//[/!]?)\s*(.+?)(?:\*/|\n\s*(?!\s|//|\*)|\n\s*\*?\s*\n)", text, re.S
        )
        prose = re.sub(r"\n\s*(?:\*|//[/!]?)\s?", " ", match[1]) if match else ""
    plain = " ".join(prose.split())
    plain = re.split(r"(?<=[.!?])\s", plain)[0]
    return plain[:_MAX_TEXT] if plain.isprintable() else ""

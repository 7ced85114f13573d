"""Which files are of one subject, wherever they lie.

A project is laid out by subject (``src/auth/tokens.ts``) or by layer (``src/routes/auth.ts``,
``stores/auth-store.ts``), and most are laid out by both. The *key* of a file is its subject without the layers: the
folders that are no layers, and, of a file that lies in a layer, the words of its name without the layer's. The three
paths have the key ``auth``.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from memlab.subjects.reading.tags import code_words, file_subject, name_stems, stem_code_word

__all__ = ["Nearest", "by_subject", "is_layer", "neighbours_join"]

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
    modules: Mapping[str, Sequence[str]], imported: Mapping[str, Iterable[str]], folders: Mapping[str, str]
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
        if not is_layer(name) or name == "." or not near[path] or PurePosixPath(path).stem in code_words("entries"):
            continue
        best, count = near[path].most_common(1)[0]
        alike = stems.get(file_subject(PurePosixPath(path).name.split(".")[0]).split(" ")[0], set()) == {best}
        if not is_layer(best) and count >= (1 if alike else 2) and count >= _ONE_SUBJECT * near[path].total():
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
    return tuple(" ".join(name_stems(part)) or part for part in folder.split("/") if not _is_layer_word(part))


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
    kept = [word for word in re.findall(r"[^\W_]{2,}", name.lower()) if stem_code_word(word) not in _layers()]
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

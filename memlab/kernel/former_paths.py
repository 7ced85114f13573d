"""Import paths of version 0.1, which lead to the current modules with a `RenamedWarning`.

``import memlab.language`` returns the module ``memlab.kernel.language`` itself, not a second copy. The only path that does
not warn is ``memlab.dialect``, the name under which the files of packs require their macros.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

FORMER_PATHS: dict[str, str] = json.loads(
    Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
)
"""Former path of each package or module, and its current path."""

# Paths that do not warn, because files of packs contain them.
_SILENT = {"memlab.dialect": "memlab.subjects.lens.dialect"}


def present_path(path: str) -> str | None:
    """Return the current path of a renamed module, or None if it was not renamed.

    >>> present_path("memlab.adapters.langgraph")
    'memlab.io.adapters.langgraph'
    """
    if path in _SILENT:
        return _SILENT[path]
    head, rest = path, ""
    while head:
        if head in FORMER_PATHS:
            return FORMER_PATHS[head] + rest
        head, _, last = head.rpartition(".")
        rest = f".{last}{rest}"
    return None


# No base class of importlib.abc: its import takes a quarter of the import of memlab.
class _Present:
    """A loader that returns the module at its current path.

    The module keeps its own import specification.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.path)
        self.own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.own


class _FormerPaths:
    """A finder that locates modules by their former import paths."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("memlab."):
            return None
        present = present_path(fullname)
        if present is None:
            return None
        if fullname not in _SILENT:
            from memlab.errors import RenamedWarning

            warnings.warn(f"{fullname} is now {present}", RenamedWarning, stacklevel=2)
        return ModuleSpec(fullname, _Present(present))  # type: ignore[arg-type]  # a loader by its methods


def redirect_former_paths() -> None:
    """Make modules importable by their former paths, when memlab is imported."""
    if not any(isinstance(finder, _FormerPaths) for finder in sys.meta_path):
        sys.meta_path.insert(0, _FormerPaths())


def moved_name(module: str, name: str, moved: Mapping[str, str]) -> Any:
    """Return an object that moved to another module, with a `RenamedWarning`.

    `moved` has the package that now contains each name. Raises AttributeError for any other name.
    """
    if name not in moved:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    from memlab.errors import RenamedWarning

    warnings.warn(f"{module}.{name} is now {moved[name]}.{name}", RenamedWarning, stacklevel=3)
    return getattr(importlib.import_module(moved[name]), name)

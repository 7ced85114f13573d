"""Every public callable of memlab: ``memlab.__all__``, the methods of whatever they return, and ``docs/reference.toml``.

A callable has a name as people say it (``Lab.recall``, ``memlab.open``, ``Policy.why``). What cannot be found (a new
callable without an example) is told by ``tests/test_signatures.py``.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pkgutil
import sys
import tomllib
import typing
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import memlab
from memlab.errors import MissingExtra
from memlab.kernel.base.display import Report
from memlab.kernel.storage.store import Store
from memlab.subjects.lens import Attribution, Explanation, PolicyDiff, Why
from memlab.subjects.programs.watch import Watch

__all__ = ["MADE_BY_MEMLAB", "parameters", "public_callables"]

_GIVEN_BY_NAME: tuple[type, ...] = (Attribution, Explanation, PolicyDiff, Watch, Why)
"""Classes that methods of the kernel return but that extensions define, so that no annotation names them."""

MADE_BY_MEMLAB = {
    "AsyncLab.__getitem__": "looked at where it is awaited",
    **{
        f"AsyncMem0Memory.{name}": "the method of Mem0Memory, which is called in a thread"
        for name in (
            "add",
            "chat",
            "delete",
            "delete_all",
            "get",
            "get_all",
            "history",
            "search",
            "update",
        )
    },
    "Call": "a step of a program that was read",
    "Derived": "the language's own note of an input",
    "Embedder.embed_query": "of a query that was checked",
    "Embedder.scaled": "by a calibration that memlab measured",
    "Mem0Memory.chat": "always refuses",
    "Embedder.embed": "encode, of texts that were checked",
    "Embedder.scale": "closeness, of cosines that memlab computed",
    "Entity.of": "from a state",
    "Extension": "a declaration, which extend checks",
    "Feature": "a declaration, which extend checks",
    "Feature.fingerprint": "from what a pack decides",
    "Hit": "what a recall shows",
    "Hits": "what a recall returns",
    "Life": "what simulation.live returns",
    "Lineage": "a declaration, which checks itself",
    "Memory": "what a lab returns",
    "Memory.of": "from a state",
    "Edited": "what lab.edit returns",
    "Edited.of": "from a state",
    "Node": "a node of the language's graph",
    "Pack": "what load_pack returns",
    "Pool": "what a feature's function is given",
    "Field.ids": "from an event as memlab wrote it",
    "RemoteLab": "what connect returns; a form checks its arguments",
    "Pool.__getitem__": "what a feature's function is given",
    "Pool.frame": "what a feature's function is given",
    "Program": "what was read of a text",
    "Reactions": "what User.react returns",
    "Script": "a protocol",
    "SessionName.of": "from an agent's identity",
    "Setting": "a declaration, which extend checks",
    "Signature": "what a slot declares",
    "Slot": "a declaration, which extend checks",
    "Slates.of": "from slates as memlab wrote them",
    "Slates.of_log": "from slates as memlab wrote them",
    "Synced": "what read_memfs and write_memfs return",
    "Trial": "what simulation.trial returns",
    "VersionLog": "folded from a journal",
    "load_ipython_extension": "called by IPython",
    "serve_http": "serves until it is stopped; tests/serving has its arguments",
    "serve_root": "serves until it is stopped; tests/serving has its arguments",
    "serve_stdio": "serves until it is stopped; tests/serving has its arguments",
    "unload_ipython_extension": "called by IPython",
}
"""Classes and calls that no caller gives arguments to, and why."""

_SUBMODULES = ("adapters", "ingest", "simulation", "verifiers")


@cache
def public_callables() -> dict[str, Callable[..., Any]]:
    """Return the public functions with a parameter, by name, without their wrappers, which hide annotations."""
    result: dict[str, Callable[..., Any]] = {}
    classes = list(_GIVEN_BY_NAME)
    for module in (memlab, *(getattr(memlab, name) for name in _SUBMODULES)):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value):
                classes.append(value)
                if "__init__" in vars(value) and not issubclass(value, Exception):
                    result[value.__name__] = value.__init__
            elif inspect.isfunction(value):
                result[name] = value
                classes += _returned(value)
    for name, function in _referenced():
        result.setdefault(name, function)
    unique: set[type] = set()
    while classes:
        cls = classes.pop()
        if cls in unique or issubclass(cls, BaseException) or cls is Store:
            continue  # the store is for tools that read events; its users are memlab itself
        unique.add(cls)
        for name, function in _methods(cls):
            classes += _returned(function)
            # which every report inherits
            owner = "Report" if function is Report.text else cls.__name__
            result[f"{owner}.{name}"] = function
        for base in cls.__mro__:
            for name, hint in vars(base).get("__annotations__", {}).items():
                if not name.startswith("_") and base.__module__.startswith("memlab"):
                    classes += _classes(_evaluated(hint, sys.modules[base.__module__]))
    return {
        name: function
        for name, function in sorted(result.items())
        if parameters(function)
        and name not in MADE_BY_MEMLAB
        and name.partition(".")[0] not in _INTERNAL | {"RemoteLab", "Pool"}
    }


def _referenced() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the functions and methods in `docs/reference.toml`, without frameworks that are missing."""
    pages = tomllib.loads((Path(__file__).parents[3] / "docs" / "reference.toml").read_text())
    for path, methods in (entry for page in pages.values() for entry in page.items()):
        module, _, name = path.rpartition(".")
        try:
            value = getattr(importlib.import_module(module), name)
        except MissingExtra:
            continue
        if inspect.isfunction(value):
            yield _SHORT.get(name, name), value
        for method in methods:
            function = inspect.getattr_static(value, method)
            function = getattr(function, "__func__", function)
            if inspect.isfunction(function):
                yield f"{name}.{method}", function


_SHORT = {"open_lab": "open", "load_lab": "load"}
"""Functions that are public under another name."""


def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters that a caller passes, without ``self``."""
    parameters = inspect.signature(function).parameters
    return {name: value for name, value in parameters.items() if name not in ("self", "cls")}


_INTERNAL = {"Call", "Derived", "Node", "Operation", "Program", "Signature", "VersionLog"}
"""Classes of which no method is asked by a caller either."""


def _methods(cls: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in dir(cls):
        value = inspect.getattr_static(cls, name)
        if isinstance(value, property):
            value = value.fget
        elif isinstance(value, cached_property):
            value = value.func
        elif isinstance(value, classmethod | staticmethod):
            value = value.__func__
        patterns = (
            not name.startswith("_")
            or name == "__getitem__"
            or (name == "__call__" and cls.__name__.startswith("Lab"))
        )
        if patterns and inspect.isfunction(value) and value.__module__.startswith("memlab"):
            yield name, value


def _returned(function: Callable[..., Any]) -> list[type]:
    hint = getattr(function, "__annotations__", {}).get("return")
    return _classes(_evaluated(hint, sys.modules[function.__module__]))


def _classes(hint: Any) -> list[type]:
    if inspect.isclass(hint) and hint.__module__.startswith("memlab"):
        return [hint]
    return [cls for part in typing.get_args(hint) for cls in _classes(part)]


def _evaluated(hint: Any, module: ModuleType) -> Any:
    if not isinstance(hint, str):
        return hint
    try:
        return eval(hint, {**_everything(), **vars(module)})
    except NameError:  # of a library that is imported for type checkers alone: nothing of memlab
        return None


def _everything() -> dict[str, Any]:
    """Return the classes of all modules, for annotations whose module imports them for type checkers alone."""
    if not _KNOWN:
        for package in pkgutil.walk_packages(memlab.__path__, "memlab."):
            if not package.name.endswith("__main__"):
                with contextlib.suppress(MissingExtra):
                    importlib.import_module(package.name)
        for name, module in list(sys.modules.items()):
            if name.startswith("memlab"):
                _KNOWN.update(
                    {key: value for key, value in vars(module).items() if inspect.isclass(value)}
                )
    return _KNOWN


_KNOWN: dict[str, Any] = {}

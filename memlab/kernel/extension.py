"""Extensions: features, settings, commands and other additions to memlab, declared in one object.

    memlab.extend(Extension("numbers", "1.0", features=(Feature("numbers-met", "num", "query", ...),)))

An installed package declares its extension under the entry point group ``memlab.extensions``. The entry point names an
`Extension`, which memlab loads before the first pack is read.
"""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from memlab.errors import ExtensionWarning, InputError
from memlab.kernel.base.printable import printable
from memlab.kernel.registry import REGISTRIES, Declaration, Owned

GROUP = "memlab.extensions"
"""Entry point group in which installed packages name their extensions."""

_OWN = "memlab.subjects"
"""Package whose ``PACK_DECLARATIONS`` lists the modules with an ``EXTENSION`` of memlab's own."""

# Names and versions enter fingerprints and file names, so they are short and contain no spaces.
_NAME = re.compile(r"[a-z][a-z0-9-]{0,59}")
_VERSION = re.compile(r"[\w.+!-]{1,40}")

_HOMES = {
    "features": "memlab.kernel.policies",
    "settings": "memlab.kernel.policies",
    "slots": "memlab.kernel.policies",
    "events": "memlab.kernel.state",
    "registers": "memlab.kernel.state",
    "projections": "memlab.kernel.state",
    "stages": "memlab.kernel.recall",
    "accessors": "memlab.subjects.lab",
    "hooks": "memlab.kernel.hooks",
    "readers": "memlab.io.formats",
    "indexes": "memlab.kernel.index",
    "embedders": "memlab.kernel.embedding",
    "commands": "memlab.ui.cli",
    "widgets": "memlab.ui.widgets._widget",
}
"""Module with the registry for each field of `Extension`. It is imported only for an extension with that field."""


@dataclass(frozen=True)
class Extension:
    """A named and versioned set of additions to memlab by a package or notebook.

    Parameters
    ----------
    name
        Lower-case letters, digits and hyphens. It enters the fingerprints of the extension's features.
    version
        Version of the extension. Raise it whenever a computed value changes.
    features
        `memlab.Feature` with ``compute``: values of candidates that any policy can read.
    settings, slots
        `memlab.Setting` and `memlab.Slot`. Each has a default, so that existing packs keep their hashes.
    events
        Kinds of events, each with its fields. Their names begin with the name of the extension: ``notes/pin``.
    projections
        Subclasses of ``memlab.kernel.state.Projection``: tables folded from events, with the events that they declare.
    stages
        `memlab.kernel.recall.Stage`: steps of a recall that replace memlab's own.
    accessors
        `Accessor`: an attribute of every lab.
    hooks
        `Hook`: functions that verbs of the kernel call at named points (``memlab.kernel.hooks.POINTS``).
    readers
        `Reader`: file formats that ``lab.load`` reads.
    indexes, embedders
        Nearest-neighbour indexes and embedders, by the name that ``memlab.open`` takes.
    commands
        ``click.Command``: commands of the program ``memlab``.
    widgets
        Subclasses of ``memlab.widgets.Widget``: tabs of ``memlab view``.

    Examples
    --------
    >>> Extension("numbers", "1.0").name
    'numbers'
    """

    name: str
    version: str
    features: Sequence[Declaration] = field(default=(), kw_only=True)
    settings: Sequence[Declaration] = field(default=(), kw_only=True)
    slots: Sequence[Declaration] = field(default=(), kw_only=True)
    events: Sequence[Declaration] = field(default=(), kw_only=True)
    projections: Sequence[Any] = field(default=(), kw_only=True)
    registers: Sequence[Declaration] = field(default=(), init=False, repr=False)
    stages: Sequence[Declaration] = field(default=(), kw_only=True)
    accessors: Sequence[Declaration] = field(default=(), kw_only=True)
    hooks: Sequence[Declaration] = field(default=(), kw_only=True)
    readers: Sequence[Declaration] = field(default=(), kw_only=True)
    indexes: Sequence[Declaration] = field(default=(), kw_only=True)
    embedders: Sequence[Declaration] = field(default=(), kw_only=True)
    commands: Sequence[Any] = field(default=(), kw_only=True)
    widgets: Sequence[Any] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InputError(
                "The name of an extension must be a lower-case word that may contain "
                f"digits and hyphens, not {self.name!r:.80}."
            )
        if not isinstance(self.version, str) or not _VERSION.fullmatch(self.version):
            raise InputError(
                f'The version of the extension {self.name} must be a word such as "1.0", '
                f"not {self.version!r:.80}."
            )

    @property
    def label(self) -> str:
        """The extension's name and version, in the form that fingerprints contain."""
        return f"{self.name} {self.version}"

    def __repr__(self) -> str:
        counts = [
            f"{len(getattr(self, kind))} {kind}"
            for kind in _HOMES
            if kind != "registers" and getattr(self, kind)
        ]
        return printable(f"<Extension {self.label}: {', '.join(counts) or 'nothing'}>")


@dataclass(frozen=True)
class _Present:
    """A registered extension, with the name of the module that registered it."""

    extension: Extension
    module: str


_present: dict[str, _Present] = {}
_installed: list[bool] = []


def extend(extension: Extension) -> Extension:
    """Add an extension to memlab in this process.

    A module may register its extension again, for example when a notebook cell runs twice. The earlier declarations are
    replaced.

    Parameters
    ----------
    extension
        The extension to add. If one declaration is refused, nothing is added.

    Returns
    -------
    Extension
        The extension, in which each declaration names its owner.

    Raises
    ------
    InputError
        If another module has registered an extension of this name, or if the name of a declaration is taken.
    """
    return register_extension(extension, sys._getframe(1).f_globals.get("__name__", ""))


def register_extension(extension: Extension, module: str) -> Extension:
    """Add an extension that ``module`` declares; see `extend`."""
    if not isinstance(extension, Extension):
        raise InputError(
            f"An extension must be a memlab.Extension, not {type(extension).__name__}."
        )
    present = _present.get(extension.name)
    if present is not None and present.module != module:
        raise InputError(
            f"The extension {extension.label} is registered by {module or 'this module'}, and "
            f"{present.extension.label} by {present.module}. Two extensions cannot have one name: rename one of them."
        )
    owned = _with_owner(extension)
    kinds = [kind for kind in _HOMES if getattr(owned, kind)]
    for kind in kinds:
        importlib.import_module(_HOMES[kind])
        registry = REGISTRIES[kind]
        for item in getattr(owned, kind):
            if (refusal := registry.refusal(item)) is not None:
                raise InputError(f"The extension {extension.label} is not added. {refusal}")
    forget_extension(extension.name)
    for kind in kinds:
        REGISTRIES[kind].register(getattr(owned, kind))
    _present[extension.name] = _Present(owned, module)
    return owned


def register_own(*kinds: str) -> None:
    """Register memlab's own declarations when the package that uses them is imported.

    These declarations have no owner, so the hashes of packs and logs do not depend on them.
    """
    for module in importlib.import_module(_OWN).PACK_DECLARATIONS:
        extension = importlib.import_module(module).EXTENSION
        for kind in kinds:
            REGISTRIES[kind].register(getattr(extension, kind))


def _with_owner(extension: Extension) -> Extension:
    """Return the extension with its name and version as the owner of each declaration.

    Raises InputError if two declarations of a kind have the same name.
    """
    declared = {kind: getattr(extension, kind) for kind in _HOMES}
    # Projections declare events and registers of their own, which also belong to the extension.
    declared["events"] = [
        *extension.events,
        *(event for projection in extension.projections for event in _events_of(projection)),
    ]
    declared["registers"] = [
        projection.register()
        for projection in extension.projections
        if hasattr(projection, "register")
    ]
    changed: dict[str, Any] = {}
    for kind, items in declared.items():
        changed[kind] = own = tuple(_owned(item, extension) for item in items)
        names = [item.name for item in own]
        if (twice := next((name for name in names if names.count(name) > 1), None)) is not None:
            raise InputError(
                f"The extension {extension.label} declares {twice} twice among its {kind}. Give them different names."
            )
    registers = changed.pop("registers")
    owned = replace(extension, **changed)
    object.__setattr__(owned, "registers", registers)
    return owned


def _events_of(projection: Any) -> Sequence[Any]:
    """Return the kinds of events that a projection declares."""
    events: Sequence[Any] = getattr(projection, "events", ())
    return events


def _owned(item: Any, extension: Extension) -> Any:
    """Return an item that an extension declares, with the extension's name and version as its owner."""
    if hasattr(type(item), "__dataclass_fields__") and "owner" in {
        attribute.name for attribute in fields(item)
    }:
        return replace(item, owner=extension.label)
    name = getattr(item, "name", None) or getattr(item, "__name__", None)
    if not isinstance(name, str):
        raise InputError(
            f"The extension {extension.label} declares something without a name: {item!r:.80}."
        )
    return Owned(name, item, extension.label)


def forget_extension(name: str) -> None:
    """Remove an extension and all its declarations from the registries."""
    _present.pop(name, None)
    for registry in REGISTRIES.values():
        registry.remove(name)


def extensions() -> Mapping[str, Extension]:
    """Return the extensions of this process, including those of installed packages.

    Returns
    -------
    Mapping
        Each `Extension` by name.
    """
    load_installed()
    return {name: present.extension for name, present in sorted(_present.items())}


def registered_names() -> tuple[str, ...]:
    """Return the names of the extensions that are registered so far."""
    return tuple(_present)


def load_installed() -> None:
    """Register the extensions of all installed packages, once per process.

    Extensions are loaded in the order of their names. An extension that raises is skipped with an ExtensionWarning.
    """
    if _installed:
        return
    _installed.append(True)
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        _load(entry)


def _load(entry: EntryPoint) -> None:
    """Register the extension of an entry point, or warn if its import or registration fails."""
    try:
        register_extension(entry.load(), entry.value)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - memlab must start whatever a package raises
        reason = f"{type(error).__name__}: {error}"
        warnings.warn(
            f"The extension {entry.name} ({entry.value}) was not loaded. {reason}",
            ExtensionWarning,
            stacklevel=4,
        )


def describe_missing(needs: Mapping[str, str]) -> list[str]:
    """Return a message for each required extension that is missing or has another version.

    `needs` has the required version of each extension by name. The list is empty if all are registered in these versions.
    """
    faults = []
    for name, version in sorted(needs.items()):
        present = extensions().get(name)
        if present is None:
            faults.append(f"{name} {version} is not registered")
        elif present.version != version:
            faults.append(f"{name} {version} was used, and {present.version} is registered")
    return faults

"""Registries: what memlab and its extensions declare, by name.

Everybody reads a registry as a mapping. ``memlab.extend`` alone adds to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from memlab.errors import InputError
from memlab.kernel.base.display import Displayed, Markup, box, clip, details
from memlab.kernel.base.printable import printable

__all__ = ["REGISTRIES", "Declaration", "Owned", "Registry", "split_owner"]


class Declaration(Protocol):
    """What a registry holds: a value with a name, and the extension that declared it."""

    @property
    def name(self) -> str: ...

    @property
    def owner(self) -> str:
        """Name and version of the extension; empty for memlab itself."""


@dataclass(frozen=True)
class Owned:
    """A declaration that is a value of another kind, such as a class or a command: its name, itself, its owner."""

    name: str
    value: Any = field(compare=False)
    owner: str = ""

    @property
    def doc(self) -> str:
        """The first line of its documentation."""
        return (
            getattr(self.value, "help", None) or getattr(self.value, "__doc__", None) or ""
        ).split("\n")[0]


D = TypeVar("D", bound=Declaration)

REGISTRIES: dict[str, Registry[Any]] = {}
"""The registries that extensions add to, by the field of `Extension`."""


class Registry(Mapping[str, D], Displayed):
    """Declarations by name, read-only.

    Parameters
    ----------
    noun
        What one declaration is called in error messages: "feature", "policy slot".
    kind
        The field of `Extension` whose items this registry takes; empty where extensions declare none.
    declared
        The declarations of memlab itself.
    about
        The attribute of a declaration that describes it in one sentence.
    known
        What a notebook shows of a declaration besides that; all its attributes unless given.
    check
        Says why a declaration of an extension is refused; None if it is not.
    """

    def __init__(
        self,
        noun: str,
        declared: Iterable[D] = (),
        *,
        kind: str = "",
        about: str,
        known: Callable[[D], Mapping[str, object]] = vars,
        check: Callable[[D], str | None] | None = None,
    ) -> None:
        self.noun, self.kind = noun, kind
        self.changes = 0
        """How often a declaration was added, replaced or removed: part of the key of whatever is derived from them."""
        self._items: dict[str, D] = {item.name: item for item in declared}
        self._about, self._known, self._check = about, known, check
        if kind:
            REGISTRIES[kind] = self

    # -- the mapping ------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> D:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __setitem__(self, name: str, value: object) -> None:
        raise TypeError(
            f"A {self.noun} is declared with memlab.extend(...); this mapping is read-only."
        )

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"The {self.noun} {name} cannot be removed: this mapping is read-only.")

    # -- for memlab.extend ------------------------------------------------------------------------------------

    def refusal(self, item: D) -> str | None:
        """Return why ``item`` cannot be declared, or None.

        An extension may declare its own name again, in another version; a name of memlab or of another extension is
        taken.
        """
        if item.owner and self._check is not None and (fault := self._check(item)) is not None:
            return fault
        present = self._items.get(item.name)
        if present is None or (item.owner and _name_of(present.owner) == _name_of(item.owner)):
            return None
        whose = f"the extension {present.owner}" if present.owner else "memlab"
        return f"The {self.noun} {item.name} is declared by {whose}. Choose another name."

    def register(self, items: Iterable[D]) -> None:
        """Add declarations of an extension, or replace those that it declared before."""
        added = {item.name: item for item in items}
        for item in added.values():
            if (refusal := self.refusal(item)) is not None:
                raise InputError(refusal)
        if added:
            self._items = {**self._items, **added}
            self.changes += 1

    def amend(self, item: D) -> None:
        """Replace a declaration of memlab by one that memlab has completed."""
        self._items = {**self._items, item.name: item}
        self.changes += 1

    def remove(self, extension: str) -> None:
        """Remove whatever the extension of this name declared."""
        kept = {
            name: item
            for name, item in self._items.items()
            if not item.owner or _name_of(item.owner) != extension
        }
        if len(kept) < len(self._items):
            self._items = kept
            self.changes += 1

    # -- how it is shown --------------------------------------------------------------------------------------

    def _descriptions(self) -> list[tuple[str, str]]:
        return [(name, clip(getattr(item, self._about), 160)) for name, item in self._items.items()]

    def __repr__(self) -> str:
        width = max(map(len, self._items), default=0)
        lines = [
            f"{name:<{width}}  {clip(description, 100)}"
            for name, description in self._descriptions()
        ]
        return printable("\n".join(lines))

    def _display(self) -> object:
        parts = [
            details(
                Markup("<b>{}</b> {}").format(name, description), _fields(self._known(self[name]))
            )
            for name, description in self._descriptions()
        ]
        return f"{len(self)} declared", box(parts)


def split_owner(owner: str) -> tuple[str, str]:
    """Return name and version of the extension that a declaration names as its owner."""
    name, _, version = owner.rpartition(" ")
    return name, version


def _name_of(owner: str) -> str:
    return split_owner(owner)[0]


def _fields(known: Mapping[str, object]) -> list[str]:
    """Return the fields that have a value, a line each."""
    lines = []
    for name, value in known.items():
        if name == "name" or value in ("", None) or value is False or callable(value):
            continue
        shown: Any = ", ".join(map(str, value)) if isinstance(value, tuple) else value
        lines.append(f"{name}: {shown}")
    return lines

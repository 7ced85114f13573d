"""Registries: declarations of memlab and its extensions, by name.

A registry is a read-only mapping. Only ``memlab.extend`` adds to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from memlab.errors import InputError
from memlab.kernel.base.display import Displayed, Markup, box, clip, details
from memlab.kernel.base.printable import printable


class Declaration(Protocol):
    """An item of a registry: a value with a name and an owner."""

    @property
    def name(self) -> str:
        """The name of the item, unique within its registry."""

    @property
    def owner(self) -> str:
        """The name and version of the extension that owns the item, or "" for memlab itself."""


@dataclass(frozen=True)
class Owned:
    """A declaration around a value of another type, such as a class or a command."""

    name: str
    value: Any = field(compare=False)
    owner: str = ""

    @property
    def doc(self) -> str:
        """The first line of the value's documentation."""
        return (
            getattr(self.value, "help", None) or getattr(self.value, "__doc__", None) or ""
        ).split("\n")[0]


D = TypeVar("D", bound=Declaration)

REGISTRIES: dict[str, Registry[Any]] = {}
"""Registries that extensions add to, by the field of `Extension`."""


class Registry(Mapping[str, D], Displayed):
    """A read-only mapping from names to declarations.

    Parameters
    ----------
    noun
        Name of one declaration in error messages: "feature", "policy slot".
    declared
        The declarations of memlab itself.
    kind
        Field of `Extension` whose items this registry takes, or "" if extensions cannot add items.
    about
        Attribute of a declaration that describes it in one sentence.
    known
        Function that returns the details of a declaration for display in a notebook. The default is all attributes.
    check
        Function that returns the reason to refuse a declaration of an extension, or None.
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
        """A counter of changes to the registry. Caches of values derived from declarations are keyed by this number."""
        self._items: dict[str, D] = {item.name: item for item in declared}
        self._about, self._known, self._check = about, known, check
        if kind:
            REGISTRIES[kind] = self

    # -- mapping ------------------------------------------------------------------------------------------

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
        """Return the reason why `item` cannot be declared, or None if it can.

        An extension may declare one of its own names again. It may not use a name of memlab or of another extension.

        Parameters
        ----------
        item
            The declaration of an extension, or of memlab itself.

        Returns
        -------
        str or None
            A sentence for the error message, or None if the declaration is accepted.
        """
        if item.owner and self._check is not None and (fault := self._check(item)) is not None:
            return fault
        present = self._items.get(item.name)
        if present is None or (item.owner and _name_of(present.owner) == _name_of(item.owner)):
            return None
        declarer = f"the extension {present.owner}" if present.owner else "memlab"
        return f"The {self.noun} {item.name} is declared by {declarer}. Choose another name."

    def register(self, items: Iterable[D]) -> None:
        """Add declarations, replacing earlier declarations of the same extension and name.

        Parameters
        ----------
        items
            The declarations. If one is refused, none is added.

        Raises
        ------
        InputError
            If a declaration is refused.
        """
        added = {item.name: item for item in items}
        for item in added.values():
            if (refusal := self.refusal(item)) is not None:
                raise InputError(refusal)
        if added:
            self._items = {**self._items, **added}
            self.changes += 1

    def amend(self, item: D) -> None:
        """Replace one of memlab's own declarations by its completed version.

        Parameters
        ----------
        item
            The completed declaration.
        """
        self._items = {**self._items, item.name: item}
        self.changes += 1

    def remove(self, extension: str) -> None:
        """Remove all declarations of an extension.

        Parameters
        ----------
        extension
            Name of the extension.
        """
        remaining = {
            name: item
            for name, item in self._items.items()
            if not item.owner or _name_of(item.owner) != extension
        }
        if len(remaining) < len(self._items):
            self._items = remaining
            self.changes += 1

    # -- display --------------------------------------------------------------------------------------

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
    """Split an owner such as "chess 1.0" into the extension's name and version."""
    name, _, version = owner.rpartition(" ")
    return name, version


def _name_of(owner: str) -> str:
    return split_owner(owner)[0]


def _fields(details: Mapping[str, object]) -> list[str]:
    """Format details as lines "name: value", without the name, functions, False and empty values."""
    lines = []
    for name, value in details.items():
        if name == "name" or value in ("", None) or value is False or callable(value):
            continue
        text: Any = ", ".join(map(str, value)) if isinstance(value, tuple) else value
        lines.append(f"{name}: {text}")
    return lines

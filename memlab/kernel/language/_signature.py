"""What a slot gives to its policies and expects from them: declared by the caller, known by name here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from memlab.errors import InputError
from memlab.kernel.language._words import canonical

__all__ = ["Input", "InputType", "Returns", "Signature", "Type"]

Type = Literal["num", "bool", "str"]
InputType = Type | Literal["set"]
"""A set of strings is read only through tests that give a scalar, see ``_derived``."""
Returns = Type | Literal["record"]
_TYPES = ("num", "bool", "str")


@dataclass(frozen=True)
class Input:
    """One feature that a policy may read; ``words`` is its closed vocabulary, if it has one.

    >>> Input("age_days", "num", "Days since it was created.").name
    'age-days'
    """

    name: str
    type: InputType = "num"
    doc: str = ""
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", canonical(self.name))
        object.__setattr__(self, "words", tuple(self.words))
        if self.type not in (*_TYPES, "set"):
            raise InputError(f'Input {self.name} has the type "{self.type}"; a type is num, bool, str or set.')
        if self.words and self.type != "str":
            raise InputError(f"Input {self.name} is {self.type}, and only a str has words.")


@dataclass(frozen=True, eq=False)
class Signature:
    """A slot's contract: the features by name, the type of the result, and whether aggregates of the slate are allowed.

    ``inputs`` may be a mapping or any iterable of ``Input``. ``words`` is the closed vocabulary of a str result.
    ``lists`` serves policies over lists: it maps a list argument to the feature whose values over the slate it holds.

    A slot that returns a ``record`` has ``fields``: the names of what a policy may update. Each is an input too, which
    holds its old value.
    """

    slot: str
    inputs: Mapping[str, Input]
    returns: Returns = "num"
    words: tuple[str, ...] = ()
    aggregates: bool = False
    lists: Mapping[str, str] = field(default_factory=dict)
    fields: tuple[str, ...] = ()
    _key: tuple[object, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        given = self.inputs.values() if isinstance(self.inputs, Mapping) else self.inputs
        inputs: dict[str, Input] = {}
        for item in given:
            if item.name in inputs:
                raise InputError(f"Slot {self.slot} declares the input {item.name} twice.")
            inputs[item.name] = item
        if self.returns not in (*_TYPES, "record"):
            raise InputError(f'Slot {self.slot} returns "{self.returns}"; a type is num, bool, str or record.')
        fields = tuple(canonical(name) for name in self.fields)
        if bool(fields) != (self.returns == "record"):
            raise InputError(f"Slot {self.slot}: a record has fields, and nothing else has.")
        for name in fields:
            if name not in inputs or inputs[name].type == "set":
                raise InputError(f"Slot {self.slot} updates {name}, which is no scalar among its inputs.")
        lists = {canonical(name): canonical(feature) for name, feature in self.lists.items()}
        for name, feature in lists.items():
            if feature not in inputs or inputs[feature].type == "set":
                raise InputError(f"Slot {self.slot} gives {name} as {feature}, which is no scalar among its inputs.")
        for key, value in (
            ("slot", canonical(self.slot)),
            ("inputs", MappingProxyType(inputs)),
            ("words", tuple(self.words)),
            ("lists", MappingProxyType(lists)),
            ("fields", fields),
        ):
            object.__setattr__(self, key, value)
        identity = (self.slot, self.returns, self.words, self.aggregates, tuple(lists.items()), fields)
        object.__setattr__(self, "_key", (*identity, tuple((i.name, i.type, i.words) for i in inputs.values())))
        object.__setattr__(self, "_hash", hash(self._key))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Signature) and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined,no-any-return]

"""Policies over lists that need a loop: checked once, then run by a small interpreter with fuel, one slate at a time.

Such a policy gets a slate as parallel lists and returns the index of an item; an index outside the slate, such as -1,
or null picks nothing. What ``_lift`` turns into columns means the same here, rounding included, but for NaN and -0.0 at
a computed place of a list, which an aggregate reads as null and 0.0. Beyond it there are functions as values, more
functions over lists, and chance: ``(choice list)``, uniform, and ``(flip probability)``. All outcomes are gone through,
so the weight of an item is the probability that the program picks it, exact up to rounding. A name that a ``let`` binds
is drawn once; each call of ``choice`` draws anew.

Types are found at run time: a list may hold anything. Names, arities, constants and forms are checked at the start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError, PolicyLimitError, PolicyNameError, UnknownName, did_you_mean
from memlab.language._check import Helper
from memlab.language._dag import Value
from memlab.language._hash import digest, source_hash
from memlab.language._params import Param
from memlab.language._reader import Form, Text
from memlab.language._row import row_value
from memlab.language._signature import Signature
from memlab.language.lists._compiler import Compiler
from memlab.language.lists._forms import SPECIAL
from memlab.language.lists._machine import CLASSES, MAX_ITEMS, Machine, Place, Spread, kind
from memlab.language.lists._operators import OPERATORS

__all__ = ["ListProgram"]


class ListProgram:
    """A list policy, checked. ``lists`` and ``counts`` of the signature say what its arguments hold; every other
    argument is an input of the slot that must be the same for all rows of a slate, such as ``limit``.

    ``inputs`` are the features that it reads, sorted; the length of a list is the slate's and reads none. ``params``
    and ``used`` are its parameters and the helpers that it calls; ``digest`` hashes all that its weights depend on.

    >>> from memlab.language import Input
    >>> from memlab.language._definition import definition
    >>> from memlab.language._reader import read_forms
    >>> text = Text("(lambda (accs) (choice (filter (lambda (i) (< (nth accs i) 5)) (range (length accs)))))")
    >>> slot = Signature("explore", [Input("access")], lists={"accs": "access"})
    >>> program = ListProgram(("accs",), definition(read_forms(text)[0], text).body, text, slot, {}, {})
    >>> program.weights({"access": [9.0, 1.0, 0.0]}, 3).tolist()
    [0.0, 0.5, 0.5]
    """

    def __init__(
        self,
        arguments: tuple[str, ...],
        body: Form,
        text: Text,
        signature: Signature,
        helpers: Mapping[str, Helper],
        params: Mapping[str, float],
    ) -> None:
        self.signature, self.place = signature, Place(text, body, ())
        for name in arguments:
            self._check(name, text)
        compiler = Compiler(text, signature, helpers, params, arguments, SPECIAL, OPERATORS)
        self.code = compiler.code(body, compiler.arguments)
        self.arguments = tuple([name if name in compiler.read else None for name in arguments])
        self.inputs = tuple(sorted({feature for name in compiler.read if (feature := self._feature(name))}))
        self.params: dict[str, Param] = compiler.params
        self.used: dict[str, Helper] = compiler.used
        held = [part for name in arguments for part in (name, self._feature(name) or "")]
        helped = [f"{helper.name}:{helper.hash}" for _, helper in sorted(self.used.items())]
        chosen = [part for _, param in sorted(self.params.items()) for part in (param.name, param.value)]
        self.digest = digest("interpreted", source_hash(arguments, body), *held, "helpers", *helped, "params", *chosen)

    def weights(self, columns: Mapping[str, Sequence[Value]], size: int) -> NDArray[np.float64]:
        """The probability with which each item of one slate is picked: ``size`` float64, their sum at most 1.

        ``columns`` holds the features of ``inputs``, in the slate's order, None for null. Raises ``InputError`` for
        columns that do not fit, ``PolicyTypeError`` for a value of the wrong type, ``PolicyLimitError`` when the
        fuel is spent.
        """
        weights = np.zeros(size)
        if size == 0:
            return weights
        if size > MAX_ITEMS:
            message = f"{self.signature.slot} goes through at most {MAX_ITEMS:,} items, and this slate has {size:,}."
            raise self.place.error(f"{message} Write it as a weight for each item.", error=PolicyLimitError)
        machine = Machine(self.signature.slot, size, self.code.frames)
        machine.spend(self.code.cost, self.place)
        env = tuple([None if name is None else self._argument(name, columns, size) for name in self.arguments])
        picked = self.code.run(machine, env)
        for value, probability in picked.outcomes if picked.__class__ is Spread else ((picked, 1.0),):
            if value is None:
                continue
            if value.__class__ is not float:
                raise self.place.error(f"{self.signature.slot} returns an index: a number, and this is {kind(value)}.")
            if 0.0 <= value < size and value.is_integer():
                weights[int(value)] += probability
        return weights

    def _feature(self, name: str) -> str | None:
        """The feature that an argument reads; none if it is the slate's length."""
        feature = self.signature.lists.get(name)
        return None if feature is None and name in self.signature.counts else feature or name

    def _check(self, name: str, text: Text) -> None:
        feature, signature = self._feature(name), self.signature
        if feature is None:
            return
        if feature not in signature.inputs:
            known = [*signature.lists, *signature.counts, *signature.inputs]
            message = f"{name} is no input of {signature.slot}. {did_you_mean(name, known)}"
            raise text.error(PolicyNameError, message, None)
        type = signature.inputs[feature].type
        if type not in CLASSES:
            message = f"{name} is a {type}: a list policy reads numbers, booleans and strings."
            raise text.error(PolicyNameError, message, None)

    def _argument(self, name: str, columns: Mapping[str, Sequence[Value]], size: int) -> Any:
        feature = self._feature(name)
        if feature is None:
            return float(size)
        column = columns.get(feature)
        if column is None:
            column = columns.get(feature.replace("-", "_"))
            if column is None:
                raise UnknownName("column", feature, columns)
        if len(column) != size:
            raise InputError(f"Column {feature} has {len(column)} rows, and the slate has {size}.")
        type = self.signature.inputs[feature].type
        wanted = CLASSES[type]
        values = tuple([v if v.__class__ is wanted else row_value(feature, v, type) for v in column])
        if name in self.signature.lists:
            return values
        first = values[0]
        if any(v != first and (v == v or first == first) for v in values):
            raise InputError(
                f"{name} stands for one value of the whole slate, and its rows differ; what differs comes as a list."
            )
        return first

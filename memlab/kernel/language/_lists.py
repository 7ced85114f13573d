"""Policies over lists, as some originals of exploration are written: checked once, then run by a small interpreter.

Such a policy gets a slate as parallel lists and returns the index of an item; an index outside the slate, such as -1,
or null picks nothing. All outcomes of ``(choice list)`` and ``(flip probability)`` are enumerated, so the weight of
an item is the probability that the program picks it, exact up to rounding. Lists and functions as values exist here
only.

Types are found at run time: a list may hold anything. Names, arities and forms are checked at the start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError, PolicyLimitError, PolicyNameError, UnknownName, did_you_mean
from memlab.kernel.language._check import Helper
from memlab.kernel.language._dag import Value
from memlab.kernel.language._hash import digest, source_hash
from memlab.kernel.language._list_compiler import ListCompiler
from memlab.kernel.language._machine import CLASSES, MAX_ITEMS, Distribution, Machine, Place, kind_of_value
from memlab.kernel.language._reader import Form, Text
from memlab.kernel.language._row import row_value
from memlab.kernel.language._signature import Signature

__all__ = ["ListProgram"]

_NO_RECURSION = "The dialect has no recursion: go through a list with map, filter or reduce."


class ListProgram:
    """A list policy, checked. ``lists`` of the signature says what its arguments hold; every other argument is an
    input of the slot that must be the same for all rows of a slate, such as ``limit``.

    ``inputs`` are the features that it reads, sorted; the length of a list is the slate's and reads none. ``checker``
    has its parameters and the helpers that it calls; ``digest`` hashes all that its weights depend on.

    >>> from memlab.kernel.language import Input
    >>> from memlab.kernel.language._definition import definition
    >>> from memlab.kernel.language._reader import read_forms
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
        self.features = {name: self._feature(name, text) for name in arguments}
        self.checker = compiler = ListCompiler(text, signature, helpers, params, arguments)
        self.code = compiler.code(body, compiler.arguments)
        self.arguments = tuple(name if name in compiler.read else None for name in arguments)
        self.inputs = tuple(sorted({self.features[name] for name in compiler.read}))
        held = [part for name in arguments for part in (name, self.features[name])]
        helped = [f"{helper.name}:{helper.hash}" for _, helper in sorted(compiler.used.items())]
        chosen = [part for _, param in sorted(compiler.params.items()) for part in (param.name, param.value)]
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
        slot = self.signature.slot
        if size > MAX_ITEMS:
            message = f"{slot} goes through at most {MAX_ITEMS:,} items, and this slate has {size:,}."
            raise self.place.error(f"{message} Write it as a weight for each item.", error=PolicyLimitError)
        machine = Machine(slot, size)
        machine.spend(self.code.cost, self.place)
        env = tuple([None if name is None else self._argument(name, columns, size) for name in self.arguments])
        try:
            picked = self.code.run(machine, env)
        except RecursionError:
            raise machine.limit("nests functions too deeply", self.place, _NO_RECURSION) from None
        for value, probability in picked.outcomes if picked.__class__ is Distribution else ((picked, 1.0),):
            if value is not None and value.__class__ is not float:
                raise self.place.error(f"{slot} returns an index: a number, and this is {kind_of_value(value)}.")
            if value is not None and 0.0 <= value < size and value.is_integer():
                weights[int(value)] += probability
        return weights

    def weights_of(self, given: Mapping[str, Any]) -> NDArray[np.float64]:
        """The weights, of what the arguments hold by name: lists of one length, and one value for any other."""
        lists = [given[name] for name in self.features if name in self.signature.lists and name in given]
        size = len(lists[0]) if lists else 0
        columns = {
            self.features[name]: value if name in self.signature.lists else [value] * size
            for name, value in given.items()
            if name in self.features
        }
        return self.weights(columns, size)

    def _feature(self, name: str, text: Text) -> str:
        """The feature that an argument reads."""
        signature = self.signature
        feature = signature.lists.get(name, name)
        if feature not in signature.inputs:
            message = (
                f"Unknown input {name} of {signature.slot}. {did_you_mean(name, [*signature.lists, *signature.inputs])}"
            )
            raise text.error(PolicyNameError, message, None)
        if signature.inputs[feature].type == "set":
            message = f"{name} is a set: a list policy reads numbers, booleans and strings."
            raise text.error(PolicyNameError, message, None)
        return feature

    def _argument(self, name: str, columns: Mapping[str, Sequence[Value]], size: int) -> Any:
        feature = self.features[name]
        column = columns.get(feature, columns.get(feature.replace("-", "_")))
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
                f"{name} is one value of the whole slate, and its rows differ; what differs comes as a list."
            )
        return first

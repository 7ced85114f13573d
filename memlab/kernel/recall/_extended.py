"""Features of extensions: what their functions are given, and the check of what they return."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import ExtensionError, ExtensionWarning, UnknownName
from memlab.kernel.schema import MEMORY
from memlab.kernel.state import State

if TYPE_CHECKING:
    from memlab.kernel.policies import Feature

__all__ = ["Pool", "extended_values"]

_SLOW = 5.0
"""Seconds after which the function of a feature is reported as slow: a recall waits for it."""


class Moment(Protocol):
    """Some rows of a state at an instant, with their features: what ``_moment.Moment`` is."""

    @property
    def state(self) -> State: ...

    @property
    def rows(self) -> NDArray[np.int64]: ...

    @property
    def now(self) -> NDArray[np.float64]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, name: str) -> NDArray[Any]: ...


class Pool:
    """The memories whose values an extension's feature computes, in the order of their ids.

    Attributes
    ----------
    query
        The text of the query. Empty for a feature of stage ``memory``, which has no query.
    now
        The time of the recall, microseconds UTC; an array with one time for each memory where they differ.
    """

    def __init__(self, moment: Moment) -> None:
        self._moment = moment
        asked = getattr(moment, "asked", None)
        self.query: str = "" if asked is None else asked.question.text
        self.now = moment.now

    def __len__(self) -> int:
        return len(self._moment)

    @property
    def ids(self) -> NDArray[np.int64]:
        """The id of each memory."""
        return self._moment.rows + 1

    @property
    def texts(self) -> list[str]:
        """The text of each memory."""
        return [text or "" for text in self._moment.state.texts.take(self._moment.rows)]

    def frame(self, *columns: str) -> pl.DataFrame:
        """Return columns of ``lab.memories``, one row for each memory; only ``id`` unless columns are named."""
        unknown = next((name for name in columns if name not in MEMORY and name != "id"), None)
        if unknown is not None:
            raise UnknownName("column of memories", unknown, ("id", *MEMORY))
        state, rows = self._moment.state, self._moment.rows
        return pl.DataFrame([state.column(name, rows) for name in columns or ("id",)])

    def __getitem__(self, feature: str) -> NDArray[Any]:
        """Return the values of another feature."""
        return self._moment[feature]


def extended_values(feature: Feature, moment: Moment) -> NDArray[Any]:
    """Compute the values of an extension's feature and check them.

    Raises
    ------
    ExtensionError
        If its function raises, or returns anything but one value of the feature's type for each memory.
    """
    assert feature.compute is not None
    began = time.monotonic()
    try:
        given = feature.compute(Pool(moment))
        values = given.to_numpy() if isinstance(given, pl.Series) else np.asarray(given)
    except Exception as error:
        raise ExtensionError(f"{_called(feature)} failed with {type(error).__name__}: {error}") from error
    took = time.monotonic() - began
    if took > _SLOW:
        warnings.warn(
            f"{_called(feature)} took {took:.0f} seconds for {len(moment)} memories, and the recall waited for it.",
            ExtensionWarning,
            stacklevel=2,
        )
    if values.shape != (len(moment),):
        raise ExtensionError(
            f"{_called(feature)} returned values of shape {values.shape} for {len(moment)} memories. "
            "Return one value for each memory."
        )
    return _CHECKED[feature.type](feature, values)


def _called(feature: Feature) -> str:
    return f"The feature {feature.name} of the extension {feature.owner}"


def _numbers(feature: Feature, values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype == object:
        values = np.array([math.nan if value is None else value for value in values.tolist()])
    if values.dtype.kind not in "biuf":
        raise ExtensionError(f"{_called(feature)} returned {_kind_of(values)}, and declares numbers.")
    numbers = values.astype(np.float64)
    if not feature.nullable and np.isnan(numbers).any():
        raise ExtensionError(
            f"{_called(feature)} returned NaN, which stands for null. Declare it with nullable=True, or return numbers."
        )
    return numbers


def _flags(feature: Feature, values: NDArray[Any]) -> NDArray[Any]:
    if feature.nullable:
        return _numbers(feature, values)
    if values.dtype.kind != "b":
        raise ExtensionError(f"{_called(feature)} returned {_kind_of(values)}, and declares true or false.")
    return values


def _words(feature: Feature, values: NDArray[Any]) -> NDArray[Any]:
    words: list[Any] = values.tolist()
    for word in words:
        if word is not None and not isinstance(word, str):
            raise ExtensionError(f"{_called(feature)} returned {word!r:.60}, and declares strings.")
        if word is not None and feature.words and word not in feature.words:
            raise ExtensionError(
                f"{_called(feature)} returned {word!r:.60}, which is none of {', '.join(feature.words)}."
            )
    return np.array(words, dtype=object)


def _sets(feature: Feature, values: NDArray[Any]) -> NDArray[Any]:
    raise ExtensionError(f"{_called(feature)} has the type set. An extension declares num, bool or str.")


_CHECKED = {"num": _numbers, "bool": _flags, "str": _words, "set": _sets}


def _kind_of(values: NDArray[Any]) -> str:
    first: Sequence[Any] = values[:1].tolist()
    return f"values such as {first[0]!r:.60}" if first else "no numbers"

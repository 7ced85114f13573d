"""Checked arguments: public calls refuse values that do not fit their annotations.

    @checked
    def similar(self, memory: MemoryLike, *, limit: Count = 10, project: str | None = None) -> pl.DataFrame: ...

    >>> lab.graph.similar(3, limit=0)                                                            # doctest: +SKIP
    InputError: similar(limit=...): limit is a whole number of at least 1, not 0.

Limits are part of the annotation: ``Annotated[int, Within(1, 5)]``, or one of the names below. The annotation of a type
also contains the type's own rule: ``When = Annotated[datetime | date | str | int, Taken("a time", by=...)]``.

A text must be valid Unicode. A whole number has 64 bits unless its limits say otherwise, and any other number is finite.
NumPy's scalars are converted. Iterables are read once, so a generator may be passed.

A function of the caller is called through `Called`, which turns its exceptions into an InputError with their cause.
Exceptions of a caller's objects also become InputErrors. Errors of the operating system become a LabError, and errors
of Polars about a caller's frames and expressions an InputError. Any other exception is a fault of memlab and is not
changed.
"""

from memlab.kernel.base.arguments._calls import (
    Parameter,
    checked,
    describe_parameters,
    renamed,
    warn_caller,
)
from memlab.kernel.base.arguments._rules import (
    AnyNumber,
    AsGiven,
    Called,
    Count,
    Misfit,
    Seconds,
    Seed,
    Share,
    Taken,
    Within,
    describe_error,
    describe_value,
    get_item,
    iterate,
)

__all__ = [
    "AnyNumber",
    "AsGiven",
    "Called",
    "Count",
    "Misfit",
    "Parameter",
    "Seconds",
    "Seed",
    "Share",
    "Taken",
    "Within",
    "checked",
    "describe_error",
    "describe_parameters",
    "describe_value",
    "get_item",
    "iterate",
    "renamed",
    "warn_caller",
]

"""What a public call takes: its annotations, read once, refuse what does not fit before anything is done.

    @checked
    def similar(self, memory: MemoryLike, *, limit: Count = 10, project: str | None = None) -> pl.DataFrame: ...

    >>> lab.graph.similar(3, limit=0)                                                            # doctest: +SKIP
    InputError: similar(limit=...): limit is a whole number of at least 1, not 0.

Limits stand in the annotation: ``Annotated[int, Within(1, 5)]``, or one of the names below. A type that has a rule of
its own carries it: ``When = Annotated[datetime | date | str | int, Taken("a time", by=...)]``. Everywhere a text is
valid Unicode, a whole number has 64 bits unless its limits say otherwise, another number is finite, and NumPy's scalars
are what they are called. Several are read once, so a generator may be passed. A function of the caller's is called
through ``Called``: what it raises becomes an InputError with its cause, as is what the caller's own objects raise
while they are read. What the operating system refuses is a LabError, what Polars refuses of a caller's frames and
expressions an InputError. Whatever else a call raises goes through as it is: it is a fault of memlab's own.
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
    describe_value,
    get_item,
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
    "describe_parameters",
    "describe_value",
    "get_item",
    "renamed",
    "warn_caller",
]

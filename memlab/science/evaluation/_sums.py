"""Sums over the recalls of a log, from which its policies are evaluated.

Sums of partitions add up to the sums of the log, and equal sums have equal bits, however the log was
cut and in any order. They have four parts:

- *cells*: totals of each policy, and of the items that each pair of policies shares, by cluster;
- *buckets*: the same totals by groups of recalls, from which the influence of single recalls is
  computed;
- *totals*: sums over the log, which decide gates;
- *sample*: the items that some recalls showed, for gates whose tests compare single items.

Buckets and the sample are chosen by a hash of a recall's id. Their size is limited; a log within
the limit is in them completely.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from itertools import zip_longest
from typing import Any, Self

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.arrays import Ints
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import count_of
from memlab.science.evaluation._exact import add_frames
from memlab.science.evaluation._log import Missing

_FORMAT = 1
"""The version of serialised sums; a later one is refused."""
_BUCKETS = 2_048
"""The maximum number of buckets: 500 times the evidence that the gate on influence requires."""
_SAMPLE = 5_000
"""The maximum number of recalls whose items are stored.

The tests that read them are of assumptions that fail for many recalls or for none.
"""
WIDTH = 52
"""The bits of a bucket's number without folding: the most that a float holds exactly."""


FACTS = ("shown", "answered", "earned")
"""Observed totals: the items shown, those with a reward, and the sum of rewards."""

ITEMS = ("items", "randomised", "probes", "unknown", "impossible", "incomplete", "hidden")
"""Counts of the items of a policy, or of the items that two policies share.

"probes" are randomised items with a reward, "unknown" shown items without a propensity,
"impossible" items with a propensity of 0, "incomplete" items without a propensity that were not
shown, and "hidden" items that were not shown.
"""


class Definition(msgspec.Struct, frozen=True):
    """The definition of sums. Only sums with equal definitions can be added.

    ``policies`` has the name, sort, source and hash of each; ``requested`` are the names of the policies that the
    caller passed. ``missing`` is None if the caller did not choose. ``numeric`` is the number of numeric features,
    ``score`` the column that ranked the log, and ``fingerprints`` identifies the features that policies read.
    """

    version: str
    policies: tuple[tuple[str, str, str, str], ...]
    requested: tuple[str, ...]
    refusals: tuple[tuple[str, str], ...]
    missing: Missing | None
    reward_range: tuple[float, float]
    cluster: str | None
    unit: str
    schema: tuple[tuple[str, str], ...]
    numeric: int
    score: str | None
    fingerprints: tuple[tuple[str, tuple[str, ...]], ...]


_WORDS = {
    "version": "version of memlab",
    "missing": "treatment of missing feedback",
    "reward_range": "range of rewards",
    "cluster": "argument cluster",
    "unit": "unit of a cluster",
    "schema": "columns of candidates",
    "numeric": "numeric features",
    "score": "columns that ranked the log (name it: columns={'score': ...})",
}
"""The names of parts of a definition in messages, where they differ from the field."""


def _empty(**schema: Any) -> pl.DataFrame:
    """Return a frame without rows."""
    return pl.DataFrame(schema=schema)


@dataclass(frozen=True, eq=False, repr=False)
class PartialSums(Displayed):
    """The data of ``Sums``, which can be added and stored as bytes.

    The class has no method ``evaluate``, because the modules that evaluate sums import it.
    """

    definition: Definition | None = None
    totals: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    ends: tuple[float, float] = (np.nan, np.nan)
    cells: pl.DataFrame = field(default_factory=lambda: _empty(cluster=pl.String))
    buckets: pl.DataFrame = field(default_factory=lambda: _empty(bucket=pl.Int64))
    bits: int = WIDTH
    recalls: pl.Series = field(default_factory=lambda: pl.Series("recall", [], pl.Int64))
    sample: pl.DataFrame = field(default_factory=lambda: _empty(recall=pl.Int64))
    packs: tuple[str | None, ...] = ()
    notes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.recalls)

    def __bool__(self) -> bool:
        return self.definition is not None

    def _display(self) -> object:
        if self.definition is None:
            return "Sums of 0 recalls."
        names = ", ".join(name for name, *_ in self.definition.policies)
        return f"Sums of {count_of(len(self), 'recall')} in {count_of(self.cells.height, 'cluster')}: {names}."

    def __add__(self, other: object) -> Self:
        return self.merge([self, other]) if isinstance(other, type(self)) else NotImplemented

    def __radd__(self, other: object) -> Self:
        # The built-in ``sum`` starts from 0.
        return self if other == 0 and isinstance(other, int) else NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartialSums):
            return NotImplemented
        return self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]  # A hash would need all bytes.

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (self.to_bytes(),)

    @classmethod
    @checked
    def merge(cls, parts: Iterable[Self]) -> Self:
        """Add many sums at once, which is faster than adding them in turn.

        Parameters
        ----------
        parts
            The sums of partitions of one log.

        Returns
        -------
        Sums
            The sums over all recalls.

        Raises
        ------
        InputError
            If a recall is in two of the sums, or if the sums were made with different policies,
            settings, columns or versions of memlab.
        """
        # Sums without recalls have no definition to compare, and nothing to add.
        whole = [part for part in parts if part]
        if len(whole) < 2:
            return whole[0] if whole else cls()
        first = whole[0]
        assert first.definition is not None
        for part in whole[1:]:
            _check_same(first.definition, part.definition)
        recalls = pl.concat([part.recalls for part in whole]).sort()
        _check_distinct(recalls, first.definition)
        bits, buckets = _merge_buckets(whole)
        lows, highs = zip(*(part.ends for part in whole), strict=True)
        return cls(
            definition=first.definition,
            totals=_add_counts(part.totals for part in whole),
            ends=(float(np.fmin.reduce(lows)), float(np.fmax.reduce(highs))),
            cells=add_frames([part.cells for part in whole], "cluster"),
            buckets=buckets,
            bits=bits,
            recalls=recalls,
            sample=sample_recalls(pl.concat([part.sample for part in whole]), recalls),
            packs=tuple(sorted({pack for part in whole for pack in part.packs}, key=str)),
            notes=_add_counts(part.notes for part in whole),
        )

    @checked
    def to_bytes(self) -> bytes:
        """Encode the sums as bytes, for example to send them from a worker.

        Returns
        -------
        bytes
            A MessagePack map with Arrow IPC streams. Equal sums give equal bytes.
        """
        return msgspec.msgpack.encode(
            {
                "memlab-sums": _FORMAT,
                "definition": self.definition,
                "totals": _as_texts(self.totals),
                "ends": [float(end).hex() for end in self.ends],
                "cells": _write_frame(self.cells),
                "buckets": _write_frame(self.buckets),
                "bits": self.bits,
                "recalls": _write_frame(self.recalls.to_frame()),
                "sample": _write_frame(self.sample),
                "packs": self.packs,
                "notes": _as_texts(self.notes),
            }
        )

    @classmethod
    @checked
    def from_bytes(cls, content: bytes) -> Self:
        """Read sums from the bytes written by ``to_bytes``.

        Parameters
        ----------
        content
            The bytes.

        Returns
        -------
        Sums
            The sums.

        Raises
        ------
        InputError
            If the bytes are not sums, or are of a later memlab.
        """
        try:
            parts = msgspec.msgpack.decode(content)
            form = parts["memlab-sums"]
            if form != _FORMAT:
                raise InputError(
                    f"The sums have format {form!r}, and this memlab reads format {_FORMAT}. Use one version of memlab on "
                    "all workers."
                )
            return cls(
                definition=msgspec.convert(parts["definition"], Definition | None),
                totals=_from_texts(parts["totals"]),
                ends=(float.fromhex(parts["ends"][0]), float.fromhex(parts["ends"][1])),
                cells=_read_frame(parts["cells"]),
                buckets=_read_frame(parts["buckets"]),
                bits=parts["bits"],
                recalls=_read_frame(parts["recalls"])["recall"],
                sample=_read_frame(parts["sample"]),
                packs=tuple(parts["packs"]),
                notes=_from_texts(parts["notes"]),
            )
        except (
            msgspec.MsgspecError,
            KeyError,
            TypeError,
            ValueError,
            pl.exceptions.PolarsError,
        ) as error:
            raise InputError(
                f"The bytes are not sums of memlab ({type(error).__name__}). Pass what Sums.to_bytes returned."
            ) from error


def _check_same(first: Definition, second: Definition | None) -> None:
    """Raise InputError with the first difference between two definitions."""
    for name in Definition.__struct_fields__:
        ours, theirs = getattr(first, name), getattr(second, name)
        if ours == theirs:
            continue
        if isinstance(ours, tuple) and name != "reward_range":
            pairs = [pair for pair in zip_longest(ours, theirs) if pair[0] != pair[1]]
            ours, theirs = pairs[0]
        raise InputError(
            f"Sums of different {_WORDS.get(name, name)} cannot be added: {_describe_part(ours)} and "
            f"{_describe_part(theirs)}. Sum all partitions with the same policies, settings, columns and version of memlab."
        )


def _describe_part(part: object) -> str:
    """Format a part of the definition of sums as a short text."""
    if isinstance(part, tuple):
        # The last element is the one that identifies a policy: its hash.
        return f"{part[0]} ({str(part[-1])[:12]})" if len(part) > 1 else str(part[0])
    return "none" if part is None else str(part)


def _check_distinct(recalls: pl.Series, definition: Definition) -> None:
    """Raise InputError if sorted ids contain duplicates: a recall was summed twice."""
    repeated = recalls.filter(recalls == recalls.shift(1)).unique()
    if not len(repeated):
        return
    is_text = dict(definition.schema).get("decision") == "String"
    first = "" if is_text else f" (first: recall {repeated.sort().to_list()[0]})"
    verb = "is" if len(repeated) == 1 else "are"
    raise InputError(
        f"{count_of(len(repeated), 'recall')} {verb} in more than one of these sums{first}. Add the sums of each partition "
        "once, and cut the log by decision, so that all candidates of a recall are in one partition."
    )


def _add_counts(parts: Iterable[Mapping[str, tuple[int, ...]]]) -> dict[str, tuple[int, ...]]:
    """Add integer vectors with the same name; sort the result by name."""
    added: dict[str, tuple[int, ...]] = {}
    for part in parts:
        for name, counts in part.items():
            before = added.get(name, ())
            added[name] = tuple(a + b for a, b in zip_longest(before, counts, fillvalue=0))
    return dict(sorted(added.items()))


def mix(recalls: pl.Series) -> NDArray[np.uint64]:
    """Return a hash of each id (SplitMix64; Steele, Lea & Flood 2014)."""
    value = recalls.to_numpy().view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = (value ^ (value >> np.uint64(shift))) * np.uint64(factor)
    return value ^ (value >> np.uint64(31))


def choose_bits(numbers: Ints, bits: int) -> int:
    """Return how many leading bits to keep so that at most 2,048 distinct numbers remain.

    ``numbers`` are sorted and have ``bits`` bits. The result depends on the set of recalls alone,
    so folding the buckets of partitions gives the buckets of the whole log.
    """
    numbers = np.unique(numbers)
    if len(numbers) <= _BUCKETS:
        return bits
    # A number differs from the one before it in the bit after their common ones.
    common = bits - np.frexp((numbers[1:] ^ numbers[:-1]).astype(np.float64))[1]
    return int(np.partition(common, _BUCKETS - 1)[_BUCKETS - 1])


def _merge_buckets(parts: Sequence[PartialSums]) -> tuple[int, pl.DataFrame]:
    """Add the buckets of several sums; return the number of bits of a bucket's number, and the buckets.

    Neighbouring buckets are merged if there are too many.
    """
    bits = min(part.bits for part in parts)
    frames = [
        part.buckets.with_columns(pl.col("bucket") // (1 << (part.bits - bits))) for part in parts
    ]
    numbers = np.concatenate([frame["bucket"].to_numpy() for frame in frames])
    fewer = choose_bits(np.sort(numbers), bits)
    fold = pl.col("bucket") // (1 << (bits - fewer))
    return fewer, add_frames([frame.with_columns(fold) for frame in frames], "bucket")


def sample_recalls(items: pl.DataFrame, recalls: pl.Series) -> pl.DataFrame:
    """Return the items of the ``_SAMPLE`` recalls with the smallest hashes, in order of recalls."""
    if len(recalls) > _SAMPLE:
        smallest = np.argpartition(mix(recalls), _SAMPLE)[:_SAMPLE]
        items = items.filter(pl.col("recall").is_in(recalls[smallest].implode()))
    return items.sort("recall", maintain_order=True).rechunk()


def _as_texts(counts: Mapping[str, tuple[int, ...]]) -> dict[str, list[str]]:
    """Convert integers of any size to hexadecimal texts."""
    return {name: [format(count, "x") for count in vector] for name, vector in counts.items()}


def _from_texts(texts: Mapping[str, list[str]]) -> dict[str, tuple[int, ...]]:
    """Convert hexadecimal texts to integers."""
    return {name: tuple(int(text, 16) for text in vector) for name, vector in texts.items()}


def _write_frame(frame: pl.DataFrame) -> bytes:
    """Encode a frame as an Arrow IPC stream that all Arrow libraries can read."""
    stream = BytesIO()
    frame.write_ipc_stream(stream, compression="zstd", compat_level=pl.CompatLevel.oldest())
    return stream.getvalue()


def _read_frame(content: bytes) -> pl.DataFrame:
    """Read a frame from an Arrow IPC stream."""
    return pl.read_ipc_stream(BytesIO(content))

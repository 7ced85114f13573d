"""Published packs: one file with a pack, its licence and the evidence for it.

A file ``NAME.mempack`` has two lines. The first one states the format and the SHA-256 of the second. The second is a JSON
object with the texts of the pack, its hash, and cells of experiments with their rows. Equal contents give equal bytes.
Reading decodes JSON of declared types within limits and compiles policies. No part of a file is executed, unpacked or
used as a path. The checksum detects damage, and not a forger: `PublishedPack.check` computes the figures again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import msgspec
import numpy as np
import polars as pl

from memlab.errors import DatasetError, InputError, MemlabError, MissingExtension, NewerLab
from memlab.io.formats.lines import decode_json
from memlab.kernel.base.arguments import AsGiven, checked
from memlab.kernel.base.disk import open_regular, replacing, writing
from memlab.kernel.base.display import Report, Table, format_rows
from memlab.kernel.base.printable import count_of, printable
from memlab.kernel.extension import describe_missing, load_installed
from memlab.kernel.policies import (
    POLICY_FORMAT,
    Lineage,
    Pack,
    PolicyLike,
    as_pack,
    naming_vocabulary,
    needs_of_pack,
    pack_from_sources,
)
from memlab.kernel.privacy import refuse
from memlab.kernel.version import __version__
from memlab.science.bench.parts import summarise_rows
from memlab.science.cells import Cell, package_versions, read_cells
from memlab.science.experiments import Experiment, digest_data

FORMAT = 1
"""Version of the file; a reader knows its own version and older ones."""

# The first line: every byte of it is checked, and that it ends before the content.
_HEAD = re.compile(rb"mempack ([1-9][0-9]{0,8}) sha256:([0-9a-f]{64})\n")
_MAX_BYTES = 16 << 20
"""Maximum bytes of a file: rows of 50,000 questions with rankings. The most wasteful JSON takes 450 MB of memory."""

_Hash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
_Word = Annotated[str, msgspec.Meta(max_length=200)]
# A pack inherits from a few others; a chain of 32 takes a second to compile.
_Sources = Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=32)]
# Polars holds whole numbers of 64 bits.
_Whole = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class _Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An object of a file, all of whose fields are declared."""


class _Figure(_Struct, frozen=True):
    """Value of a metric, with its interval."""

    value: float | None
    low: float | None
    high: float | None


class _Cell(_Struct, frozen=True):
    """A `Cell` in a published file, with rows stored by column."""

    hash: _Hash
    inputs: dict[_Word, Any]
    data: _Word
    sha256: _Word
    metrics: dict[_Word, _Figure]
    rows: dict[_Word, list[_Whole | float | bool | str | tuple[str, ...] | None]]


class _Content(_Struct, frozen=True):
    """The JSON object in a published file."""

    hash: _Hash
    sources: _Sources
    licence: _Word
    lineage: Lineage | None
    needs: dict[_Word, _Word]
    versions: dict[_Word, _Word]
    vocabulary: int
    cells: tuple[_Cell, ...]


# The fields of a figure.
_ENDS = ("value", "low", "high")
_FIGURES = {
    **dict.fromkeys(("data", "sha256", "metric"), pl.String),
    **dict.fromkeys(_ENDS, pl.Float64),
    "questions": pl.Int64,
    "cell": pl.String,
}
"""Columns of the figures of the evidence."""

_CHECKS = {
    "data": pl.String,
    "seed": pl.Int64,
    "metric": pl.String,
    **dict.fromkeys(("stated", "computed"), pl.Float64),
    "equal": pl.Boolean,
    "differing": pl.Int64,
    "inputs": pl.String,
}
"""Columns of a check of the evidence."""

# The columns of the printed evidence; the hashes are in `frame`.
_COLUMNS = (
    ("data", "{data}"),
    ("metric", "{metric}"),
    ("value", "{value:.4f}"),
    ("95% interval", "[{low:.4f}, {high:.4f}]"),
    ("questions", "{questions}"),
)


@dataclass(frozen=True, repr=False)
class PublishedPack(Report):
    """A pack from a published file, with its licence and evidence.

    The pack is not installed anywhere. ``lab.challenge(published.pack)`` compares it with the active pack of a lab.

    Attributes
    ----------
    pack
        The pack, compiled from the texts of the file. Its ``lineage`` is that of the file.
    licence
        Licence that the publisher states, or "".
    cells
        Stored results of the pack, as ``memlab.Experiment`` writes them.
    versions
        Versions of memlab and of other packages that published the file, by name.
    checksum
        SHA-256 of the content of the file.

    Examples
    --------
    >>> import memlab, tempfile
    >>> path = memlab.publish_pack("companion", tempfile.mkdtemp() + "/companion.mempack", licence="MIT")
    >>> published = memlab.pull_pack(path)
    >>> published.pack.hash == memlab.load_pack("companion").hash, published.licence
    (True, 'MIT')
    """

    pack: Pack
    licence: str
    cells: tuple[Cell, ...]
    versions: Mapping[str, str]
    checksum: str

    @property
    def frame(self) -> pl.DataFrame:
        """The figures of the evidence: a row for each cell and metric."""
        rows = [
            {
                "data": cell.about["data"]["name"],
                "sha256": cell.about["data"]["sha256"],
                "metric": metric,
                **figure,
                "questions": len(cell.rows),
                "cell": cell.hash,
            }
            for cell in self.cells
            for metric, figure in cell.results["metrics"].items()
        ]
        return pl.DataFrame(rows, schema=_FIGURES)

    def to_dict(self) -> dict[str, Any]:
        """Return the hash, origin and figures as JSON values.

        Returns
        -------
        dict
            The keys are ``pack``, ``hash``, ``licence``, ``lineage``, ``versions``, ``checksum`` and ``evidence``, which
            has the rows of ``frame``.
        """
        return {
            "pack": self.pack.name,
            "hash": self.pack.hash,
            "licence": self.licence,
            "lineage": self.pack.lineage and asdict(self.pack.lineage),
            "versions": dict(self.versions),
            "checksum": self.checksum,
            "evidence": self.frame.to_dicts(),
        }

    @checked
    def check(self, *data: str | Path, measure: Annotated[Any, AsGiven] = None) -> pl.DataFrame:
        """Recompute the figures of the evidence, and compare all their digits.

        Parameters
        ----------
        *data
            Files, folders or labs of the evidence, in any place. They are recognised by their SHA-256.
        measure
            The function that the experiment measured with, for figures other than those of retrieval.

        Returns
        -------
        DataFrame
            A row for each cell on the data and metric. Columns:

            - ``data``, ``seed`` and ``metric``
            - ``stated`` and ``computed``: the values in the file and now
            - ``equal``: whether values, intervals and all rows are equal
            - ``differing``: number of questions whose value or ranking differs
            - ``inputs``: versions and other inputs that differ from those of the publisher, or ""

        Raises
        ------
        InputError
            If data or the function are not those of any evidence.
        DatasetError
            If the data cannot be read.

        Examples
        --------
        >>> import memlab, tempfile
        >>> folder, data = tempfile.mkdtemp(), memlab.examples.CONVERSATION
        >>> experiment = memlab.Experiment("words", "actr", data, folder=folder).run()
        >>> path = memlab.publish_pack("actr", folder + "/actr.mempack", evidence=experiment.folder)
        >>> memlab.pull_pack(path).check(data)["equal"].to_list()
        [True, True]
        """
        rows: list[dict[str, Any]] = []
        with TemporaryDirectory(prefix="memlab-") as folder:
            for path in data:
                value = Path(path).expanduser()
                digest = digest_data(value)
                cells = [
                    cell
                    for cell in self.cells
                    if cell.inputs.get("data") == digest
                    and (cell.inputs.get("measure") == "retrieval") == (measure is None)
                    and cell.inputs.keys() >= {"metrics", "seed"}
                ]
                if not cells:
                    listed = self.frame.select(
                        pl.format("{} [{}]", "data", pl.col("sha256").str.head(12))
                    )
                    measured = ", ".join(listed.to_series().unique(maintain_order=True)) or "none"
                    raise InputError(
                        f"The evidence has no figures that can be computed on {path} [{digest[:12]}]. It has figures of: "
                        f"{measured}. Pass one of these files, and measure= for figures of an experiment's own function."
                    )
                for cell in cells:
                    experiment = Experiment(
                        "check",
                        self.pack,
                        {"data": value},
                        metrics=cell.inputs["metrics"],
                        seeds=[cell.inputs["seed"]],
                        folder=Path(folder, cell.hash),
                        measure=measure,
                    )
                    (again,) = read_cells(experiment.run().folder)
                    rows += _compare(cell, again)
        return pl.DataFrame(rows, schema=_CHECKS)

    def _display(self) -> object:
        lineage = self.pack.lineage
        lines = [
            f"{self.pack.name} [{self.pack.hash[:12]}]: {self.pack.doc}",
            f"Licence: {self.licence or 'none stated'}. Published with memlab {self.versions.get('memlab', '?')}.",
            None if lineage is None else repr(lineage).strip("<>"),
        ]
        heads, rows = format_rows(self.frame.to_dicts(), _COLUMNS)
        note = "As the publisher states; published.check(DATA) computes them again."
        return [*lines, Table("Evidence", heads, rows, notes=[note]) if rows else "No evidence."]


@checked
def publish_pack(
    pack: PolicyLike,
    path: str | Path,
    *,
    evidence: str | Path | Sequence[str | Path] = (),
    licence: str = "",
) -> Path:
    """Write a pack, its licence and the evidence for it to one file.

    Parameters
    ----------
    pack
        The pack, in any form that ``lab.challenge`` takes.
    path
        The file to write, by convention ``NAME.mempack``. An existing file is replaced.
    evidence
        Folders of experiments, such as ``"runs"``. The cells of this pack, by its hash, are copied into the file.
    licence
        The licence of the pack, such as "MIT", at most 200 characters.

    Returns
    -------
    Path
        The path of the file. Equal arguments give equal bytes.

    Raises
    ------
    InputError
        If the pack was changed after it was read, or a folder has no cell of this pack.
    PrivacyError
        If a text of the pack or the licence contains a secret.
    DatasetError
        If a cell was changed after it was written.
    LabError
        If the file cannot be written.

    Examples
    --------
    >>> import memlab, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> memlab.publish_pack("actr", folder + "/actr.mempack", licence="MIT").name
    'actr.mempack'
    """
    loaded = as_pack(pack)
    if pack_from_sources(loaded.sources).hash != loaded.hash:
        raise InputError(
            f"The pack {loaded.name} was changed after it was read, but only its text is "
            "published. Write the change into its text."
        )
    for text in (*loaded.sources, licence):
        refuse(text, f"text of the pack {loaded.name}")
    folders = [evidence] if isinstance(evidence, str | Path) else evidence
    cells: dict[str, Cell] = {}
    for folder in folders:
        stored = {cell.hash: cell for cell in read_cells(folder)}
        own = {
            hash: cell for hash, cell in stored.items() if cell.inputs.get("pack") == loaded.hash
        }
        if not own:
            raise InputError(
                f"{folder} has {count_of(len(stored), 'cell')} and none of the pack {loaded.name} [{loaded.hash[:12]}]. "
                "Run an experiment with this pack into the folder, or name another folder."
            )
        cells |= own
    content = {
        "hash": loaded.hash,
        "sources": loaded.sources,
        "licence": licence,
        "lineage": loaded.lineage,
        "needs": needs_of_pack(loaded),
        "versions": package_versions(),
        "vocabulary": POLICY_FORMAT,
        "cells": [_to_record(cell) for _, cell in sorted(cells.items())],
    }
    body = msgspec.json.encode(content, order="sorted")
    data = b"mempack %d sha256:%b\n%b" % (FORMAT, _digest(body).encode(), body)
    path = Path(path).expanduser()
    _read(data, path.name)  # what cannot be pulled is not published
    with writing(f"The published pack {path}"), replacing(path) as file:
        file.write(data)
    return path


@checked
def pull_pack(path: str | Path) -> PublishedPack:
    """Read a published pack, and check its texts and evidence against their hashes.

    Nothing is installed, and nothing in the file is executed.

    Parameters
    ----------
    path
        The path of a file that `publish_pack` wrote.

    Returns
    -------
    PublishedPack
        The pack, its licence and its evidence.

    Raises
    ------
    InputError
        If the file cannot be read.
    DatasetError
        If the file was changed, is no published pack, or states another hash than its pack or a cell has.
    MissingExtension
        If the pack reads features, settings or slots of an extension that is not registered in its version.
    NewerLab
        If a later version of memlab wrote the file.

    Examples
    --------
    >>> import memlab, tempfile
    >>> path = memlab.publish_pack("actr", tempfile.mkdtemp() + "/actr.mempack")
    >>> published = memlab.pull_pack(path)
    >>> memlab.open().challenge(published.pack).name
    'actr'
    """
    path = Path(path).expanduser()
    try:
        with open_regular(path) as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from None
    return _read(data, path.name)


def _read(data: bytes, name: str) -> PublishedPack:
    """Decode and check the bytes of a published pack; ``name`` is the name of its file in messages."""
    if len(data) > _MAX_BYTES:
        raise DatasetError(
            f"{name} has more than {_MAX_BYTES >> 20} MiB. Publish the pack with fewer cells of evidence."
        )
    head = _HEAD.match(data)
    if head is None:
        raise DatasetError(
            f"{name} is not a published pack, or its first line was changed. Write one with memlab.publish_pack(...)."
        )
    number, checksum, body = int(head[1]), head[2].decode(), data[head.end() :]
    if number > FORMAT:
        raise NewerLab.of_format(f"The published pack {name}", number, FORMAT)
    if _digest(body) != checksum:
        raise DatasetError(
            f"{name} was changed after it was published: its checksum differs. Get the file again from its publisher."
        )
    content: _Content = decode_json(body, name, 2, _Content)
    pack = _compile(content, name)
    return PublishedPack(
        replace(pack, lineage=content.lineage),
        content.licence,
        tuple(_to_cell(record, pack, name) for record in content.cells),
        content.versions,
        checksum,
    )


def _compile(content: _Content, name: str) -> Pack:
    """Compile the pack of a published file, and raise DatasetError if its hash is not the stated hash."""
    load_installed()
    if faults := describe_missing(content.needs):
        raise MissingExtension(
            f"The pack of {name} needs an extension: {'; '.join(faults)}. Install it or register it with "
            "memlab.extend(...), then pull the pack again."
        )
    by = f"It was published with memlab {content.versions.get('memlab', '?')}; this is memlab {__version__}."
    try:
        with naming_vocabulary(f"The pack of {name}", content.vocabulary):
            pack = pack_from_sources(content.sources, file=name)
    except NewerLab:
        raise
    except MemlabError as error:
        raise DatasetError(f"The pack of {name} does not compile here. {by} {error}") from error
    if pack.hash != content.hash:
        raise DatasetError(
            f"The texts of {name} give a pack with the hash {pack.hash[:12]}, and the file states {content.hash[:12]}. "
            f"{by} Ask the publisher for a file of this version."
        )
    return pack


def _to_record(cell: Cell) -> _Cell:
    """Return the published part of a cell, without the pack's text and without measured times."""
    rows = cell.rows.to_dict(as_series=False)
    record = {"hash": cell.hash, "inputs": cell.inputs, "rows": rows}
    try:
        about = cell.about["data"]
        record |= {
            "data": about["name"],
            "sha256": about["sha256"],
            "metrics": cell.results["metrics"],
        }
        # A round trip, because NaN becomes null: equal records are equal files.
        return msgspec.json.decode(msgspec.json.encode(record), type=_Cell)
    except (KeyError, TypeError, RecursionError, msgspec.MsgspecError) as error:
        raise DatasetError(
            f"The cell {cell.hash[:12]} is no result of an experiment or benchmark ({error}), so it cannot be published. "
            "Name the folder of one experiment."
        ) from None


def _to_cell(record: _Cell, pack: Pack, name: str) -> Cell:
    """Return a cell of the file `name`; raise an error if its pack or its figures do not match."""
    about = {"data": {"name": record.data, "sha256": record.sha256}}
    results = {"metrics": msgspec.to_builtins(record.metrics)}
    try:
        cell = Cell(record.inputs, about, results, pl.DataFrame(record.rows))
        if cell.hash != record.hash:
            raise ValueError("its hash does not match its inputs")
        if cell.inputs.get("pack") != pack.hash:
            raise ValueError("it measured another pack")
        if not record.metrics:
            raise ValueError("it has no metric")
        computed = summarise_rows(cell.rows, list(record.metrics))["metrics"]
        for metric, stated in results["metrics"].items():
            # Another machine may add the rows in another order.
            before, now = (
                np.array([figure[end] for end in _ENDS], dtype=np.float64)
                for figure in (stated, computed[metric])
            )
            if not np.allclose(before, now, rtol=0, atol=1e-9, equal_nan=True):
                raise ValueError(f"its figures of {metric} cannot be recomputed from its rows")
    except (ValueError, TypeError, RecursionError, pl.exceptions.PolarsError) as error:
        raise DatasetError(
            f"The evidence {record.hash[:12]} of {name} is invalid: {error}. Ask the publisher for another file."
        ) from None
    return cell


def _compare(cell: Cell, again: Cell) -> Iterator[dict[str, Any]]:
    """Yield a row of ``PublishedPack.check`` for each metric in a cell of the evidence."""
    stated, computed = _to_record(cell), _to_record(again)
    before, now = _flatten(stated.inputs), _flatten(computed.inputs)
    other = [
        f"{name} {_shorten(before.get(name))}, here {_shorten(now.get(name))}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
    for metric, figure in stated.metrics.items():
        names = [name for name in ("question", "ranking", metric) if name in stated.rows]
        units = (
            zip(*(record.rows.get(name, ()) for name in names), strict=False)
            for record in (stated, computed)
        )
        differing = sum(a != b for a, b in zip_longest(*units))
        result = computed.metrics.get(metric)  # None: not a metric of the experiment
        yield {
            "data": printable(stated.data),
            "seed": before["seed"],
            "metric": printable(metric),
            "stated": figure.value,
            "computed": result and result.value,
            "equal": figure == result and not differing,
            "differing": differing,
            "inputs": printable("; ".join(other)),
        }


def _flatten(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Move the versions of packages in a cell's inputs to the top level."""
    versions = inputs.get("versions")
    rest = {name: value for name, value in inputs.items() if name != "versions"}
    return rest | (versions if isinstance(versions, dict) else {})


def _shorten(value: object) -> str:
    """Return a word, a number or None as text of at most 60 characters; "..." for any other value."""
    return str(value)[:60] if value is None or isinstance(value, str | int | float) else "..."


def _digest(data: bytes) -> str:
    """Return the SHA-256 of bytes as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()

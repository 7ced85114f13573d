"""Read, compare and write the record: one JSON line per item, sums of floats, and changes."""

from __future__ import annotations

import json
import platform
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from experiments.recording.things import RUN, Thing, digest

__all__ = [
    "Change",
    "Line",
    "Record",
    "compare",
    "describe_machine",
    "is_rounded",
    "line_of",
    "read",
    "unlogged",
    "write",
]

RECORD, SUMS, CHANGES = "golden.jsonl", "golden-sums.parquet", "golden-changes.md"

_NUMERIC = ("numpy", "polars", "scipy", "scikit-learn")
"""Packages that affect rounding: another version counts as another machine."""


def describe_machine() -> str:
    """Return what determines rounding: processor, BLAS kernel, platform, package versions."""
    from numpy._core import _multiarray_umath as built
    from threadpoolctl import threadpool_info

    kernels = sorted(
        {
            f"{library['internal_api']} {library.get('architecture', '')}"
            for library in threadpool_info()
        }
    )
    units = [name for name, there in sorted(built.__cpu_features__.items()) if there]
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists() and (
        model := re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE)
    ):
        processor = model[1]
    packages = ", ".join(f"{name} {version(name)}" for name in _NUMERIC)
    libc = " ".join(platform.libc_ver())
    system = f"{platform.system()} {libc}".strip()
    return f"{processor}; {', '.join(kernels)}; units {digest(' '.join(units).encode())}; {system}; {packages}"


@dataclass(frozen=True)
class Line:
    """One line of the record: for each part its exact digest, and the digest of its float bits."""

    name: str
    rows: int
    parts: Mapping[str, tuple[str, str]]
    machine: str
    sums: Mapping[str, NDArray[np.float64]] = field(repr=False)


@dataclass(frozen=True)
class Record:
    """All lines by name in their order, and the machines that wrote them by digest."""

    lines: Mapping[str, Line]
    machines: Mapping[str, str]


@dataclass(frozen=True)
class Change:
    """A line that differs: its changed parts and their differences."""

    name: str
    parts: Mapping[str, str]

    def __str__(self) -> str:
        lines_of_parts = [f"    {part}: {how}" for part, how in islice(self.parts.items(), 12)]
        more = [f"    and {len(self.parts) - 12} more parts"] if len(self.parts) > 12 else []
        return "\n".join([self.name, *lines_of_parts, *more])


def line_of(item: Thing, machine: str) -> Line:
    """Return the line of an item as computed on a machine."""
    parts = {name: (part.exact, part.bits) for name, part in item.parts.items()}
    sums = {name: part.sums() for name, part in item.parts.items() if len(part.floats)}
    return Line(item.name, item.rows, parts, digest(machine.encode()), sums)


# -- comparing --------------------------------------------------------------------------------------------------------


def compare(
    record: Record, items: Mapping[str, Thing], machine: str, expected: Iterable[str]
) -> list[Change]:
    """Return the differences between the record and items computed here.

    ``expected`` are the recorded names that should have been computed; missing ones are changes.
    """
    here = digest(machine.encode())
    changes = [
        Change(name, {"(thing)": "is in the record and was not made"})
        for name in expected
        if name not in items
    ]
    for name, item in items.items():
        if (line := record.lines.get(name)) is None:
            changes.append(Change(name, {"(thing)": "was made and is not in the record"}))
        elif parts := _changed_parts(line, item, to_the_bit=line.machine == here):
            changes.append(Change(name, parts))
    return changes


def is_rounded(line: Line, item: Thing) -> bool:
    """Return whether any float bits of an item differ from its line."""
    return any(
        line.parts.get(name, ("", part.bits))[1] != part.bits for name, part in item.parts.items()
    )


def _changed_parts(line: Line, item: Thing, *, to_the_bit: bool) -> dict[str, str]:
    changed = {}
    if line.rows != item.rows:
        changed["(rows)"] = f"{line.rows} -> {item.rows}"
    changed |= {name: "gone" for name in line.parts if name not in item.parts}
    for name, part in item.parts.items():
        if name not in line.parts:
            changed[name] = "new"
            continue
        exact, bits = line.parts[name]
        if part.exact != exact:
            changed[name] = "text, integers or order differ"
            continue
        if bits == part.bits:
            continue
        was, now, bound = line.sums.get(name, np.empty(0)), part.sums(), part.bounds()
        if len(was) != len(now):
            changed[name] = f"about {len(was) * RUN} floats -> {len(part.floats)}"
            continue
        beyond = ~(np.abs(now - was) <= bound)
        if beyond.any():
            first = int(np.argmax(beyond))
            last = min((first + 1) * RUN, len(part.floats)) - 1
            changed[name] = (
                f"floats differ in {int(beyond.sum())} of {len(now)} runs, first in values {first * RUN} to {last} "
                f"of {len(part.floats)}: weighted sum {was[first]:.15g} -> {now[first]:.15g}"
            )
        elif to_the_bit:
            changed[name] = (
                f"floats differ within 1e-12, on the machine that wrote the record ({len(part.floats)} floats)"
            )
    return changed


# -- files ------------------------------------------------------------------------------------------------------------


def read(folder: Path) -> Record:
    """Read the record of a folder; one that does not exist is empty."""
    if not (folder / RECORD).exists():
        return Record({}, {})
    head, *rest = (json.loads(line) for line in (folder / RECORD).read_text().splitlines())
    sums: defaultdict[str, dict[str, NDArray[np.float64]]] = defaultdict(dict)
    for name, part, values in pl.read_parquet(folder / SUMS).iter_rows():
        sums[name][part] = np.array(values)
    lines = {}
    for row in rest:
        parts = {
            part: (exact, bits)
            for part, both in row["parts"].items()
            for exact, _, bits in [both.partition("/")]
        }
        lines[row["name"]] = Line(
            row["name"], row["rows"], parts, row["machine"], sums[row["name"]]
        )
    return Record(lines, head["machines"])


def write(folder: Path, record: Record, changes: Iterable[Change], reason: str) -> None:
    """Write the record and its sums, and add the reason and the changed lines to the log."""
    lines = [json.dumps({"machines": dict(record.machines)})]
    rows: list[tuple[str, str, list[float]]] = []
    for line in record.lines.values():
        parts = {
            part: f"{exact}/{bits}" if bits else exact for part, (exact, bits) in line.parts.items()
        }
        lines.append(
            json.dumps(
                {"name": line.name, "rows": line.rows, "machine": line.machine, "parts": parts}
            )
        )
        rows += [(line.name, part, values.tolist()) for part, values in line.sums.items()]
    (folder / RECORD).write_text("\n".join(lines) + "\n")
    schema = {"name": pl.String, "part": pl.String, "sums": pl.List(pl.Float64)}
    pl.DataFrame(rows, schema=schema, orient="row").write_parquet(
        folder / SUMS, compression="zstd", compression_level=19
    )
    log = folder / CHANGES
    text = log.read_text() if log.exists() else _TITLE
    log.write_text(f"{text}\n## {reason}\n{_summary(changes)}\nRecord {_content(folder)}\n")


def unlogged(folder: Path) -> str:
    """Return a message if the last entry of the log does not describe the record, else ""."""
    log = folder / CHANGES
    entries = (
        re.findall(r"^Record ([0-9a-f]+)$", log.read_text(), re.MULTILINE) if log.exists() else []
    )
    if (folder / RECORD).exists() and (not entries or entries[-1] != _content(folder)):
        return f"{RECORD} is not the record of the last entry of {CHANGES}: run --write --reason after every change."
    return ""


_TITLE = """# Changes of the golden record
Written by `experiments/golden.py --write --reason`: why the record changed, and which lines.
"""


def _content(folder: Path) -> str:
    return digest((folder / RECORD).read_bytes() + (folder / SUMS).read_bytes())


def _summary(changes: Iterable[Change]) -> str:
    """Return one line for each set of changed parts and kind of item, grouped by lab and pack."""
    packs_of: defaultdict[tuple[str, str], defaultdict[str, list[str]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for change in changes:
        lab, pack, kind = _split(change.name)
        packs_of[kind, _joined(change.parts)][lab].append(pack)
    lines = []
    for (kind, parts), labs in packs_of.items():
        alike: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
        for lab, packs in labs.items():
            alike[tuple(packs)].append(lab)
        for packs, names in alike.items():
            where = (_braced(names), _braced(packs), kind)
            lines.append(f"- {'/'.join(part for part in where if part)}: {parts}\n")
    return "".join(lines)


def _split(name: str) -> tuple[str, str, str]:
    lab, _, rest = name.partition("/")
    pack, _, kind = rest.partition("/")
    return lab, pack, kind


def _braced(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{{{', '.join(names)}}}"


def _joined(parts: Mapping[str, Any]) -> str:
    names = [*islice(parts, 12)]
    return ", ".join(names) + (f" and {len(parts) - 12} more" if len(parts) > 12 else "")

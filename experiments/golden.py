"""Compare the content and results of labs of every pack with the golden record, or write it.

    python experiments/golden.py                                 # compare; exit with 1 if a line differs
    python experiments/golden.py --only demo/companion           # only lines with this prefix
    python experiments/golden.py --write --reason "..."          # write the differences and the reason
    python experiments/golden.py --dump FOLDER                   # also write every item as text, for a diff
    MEMLAB_DATA=FOLDER python experiments/golden.py              # also the data part, as --data FOLDER does

The public part runs every pack of ``memlab.packs()`` on six labs that need only this repository: the demo's
conversation, a random sequence of calls, two imports, and two generated labs. The data part runs the same on chats in
``FOLDER/locomo`` and ``FOLDER/beam100k``. Of these only digests and weighted sums of floats are stored, never text.
Without the folder their lines are not compared, and a message says so.

Recorded are all slates, the frames of memories, edges and facts, an evaluation, a context, each export, the receipt of
a purge, and the hashes of packs and policies. In ``experiments/data``, ``golden.jsonl`` has one line per item,
``golden-sums.parquet`` has the sums of floats, and ``golden-changes.md`` has the reason of each change.
``recording/things.py`` explains which values are compared exactly and which to 1e-12.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import chain
from pathlib import Path

# Threads change the order in which floats are added.
os.environ["POLARS_MAX_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ[
    "OMP_NUM_THREADS"
] = "1"
import memlab
from experiments.recording.chats import CHATS
from experiments.recording.labs import LABS
from experiments.recording.record import (
    Change,
    Record,
    compare,
    describe_machine,
    is_rounded,
    line_of,
    read,
    unlogged,
    write,
)
from experiments.recording.shown import pack_thing, settled, things_of
from experiments.recording.things import Thing, digest

FOLDER = Path(__file__).parent / "data"
VARIABLE = "MEMLAB_DATA"


def list_jobs(data: Path | None, only: str) -> list[tuple[str, str, Path | None]]:
    """Return every lab with every pack that ``only`` selects; chats need a data folder."""
    labs = [*LABS, *(CHATS if data is not None else ())]
    tasks = [(lab, pack, data) for lab in ("hashes", *labs) for pack in memlab.packs()]
    return [job for job in tasks if _is_selected(f"{job[0]}/{job[1]}/", only)]


def make(job: tuple[str, str, Path | None], keep: bool) -> list[Thing]:
    """Build one lab under one pack, and return its recorded items."""
    lab, pack, data = job
    if lab == "hashes":
        return [pack_thing(pack, keep=keep)]
    with tempfile.TemporaryDirectory(prefix="memlab-golden-") as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name).resolve()
        build = LABS[lab](pack, folder) if lab in LABS else CHATS[lab](pack, data)
        with settled(), build as built:
            return list(things_of(lab, pack, built, folder, keep=keep))


def list_expected(record: Record, data: Path | None, only: str) -> list[str]:
    """Return the names of recorded lines that this run should compute."""
    run = {"hashes", *LABS, *(CHATS if data is not None else ())}
    return [
        name
        for name in record.lines
        if name.startswith(only) and (_lab_of(name) in run or _lab_of(name) not in CHATS)
    ]


def rewrite_record(
    record: Record, records: Iterable[Thing], changes: Iterable[Change], machine: str
) -> Record:
    """Return the record with the changed lines replaced."""
    lines, by_name = dict(record.lines), {item.name: item for item in records}
    for change in changes:
        if change.name in by_name:
            lines[change.name] = line_of(by_name[change.name], machine)
        else:
            del lines[change.name]
    used = {line.machine for line in lines.values()}
    machines = {**record.machines, digest(machine.encode()): machine}
    used_machines = {name: machine for name, machine in sorted(machines.items()) if name in used}
    return replace(record, lines=dict(sorted(lines.items())), machines=used_machines)


def main() -> int:
    """Compare or write; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--write", action="store_true", help="write what differs into the record; needs --reason"
    )
    parser.add_argument("--reason", default="", help="why the lines changed")
    parser.add_argument("--data", type=Path, help=f"folder of the chats; default: {VARIABLE}")
    parser.add_argument(
        "--only", default="", help="only items with this prefix, such as demo/companion"
    )
    parser.add_argument("--dump", type=Path, help="folder in which every item is written as text")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    if arguments.write and not arguments.reason.strip():
        parser.error(
            "--write needs --reason: a changed line is committed together with its reason."
        )
    data_folder = arguments.data or (
        Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None
    )
    if data_folder is not None and not data_folder.is_dir():
        parser.error(
            f"{data_folder} is no folder. --data or {VARIABLE} names one with locomo/ and beam100k/."
        )
    began, machine, record = time.monotonic(), describe_machine(), read(FOLDER)
    records = {}
    for item in _make_all(
        list_jobs(data_folder, arguments.only), arguments.processes, keep=arguments.dump is not None
    ):
        if item.name.startswith(arguments.only):
            records[item.name] = item
            if arguments.dump is not None:
                target = arguments.dump / f"{item.name}.txt"
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(item.content)
    wanted = list_expected(record, data_folder, arguments.only)
    changes = compare(record, records, machine, wanted)
    for change in changes:
        print(change)
    to_the_bit = sum(
        record.lines[name].machine == digest(machine.encode())
        for name in records
        if name in record.lines
    )
    rounded = sum(
        is_rounded(record.lines[name], item)
        for name, item in records.items()
        if name in record.lines
    )
    print(
        f"{len(records)} items, {len(changes)} changed; {to_the_bit} compared to the bit, the others to 1e-12"
    )
    print(f"{rounded} have floats that differ from the record in at least one bit")
    print(f"{machine}\n{time.monotonic() - began:.0f} s")
    if data_folder is None:
        left = sum(_lab_of(name) in CHATS for name in record.lines)
        print(
            f"The data part did not run: {VARIABLE} names no folder. {left} lines of the record were not compared."
        )
    if arguments.write:
        if changes:
            write(
                FOLDER,
                rewrite_record(record, records.values(), changes, machine),
                changes,
                arguments.reason.strip(),
            )
        print(f"{len(changes)} lines written")
        return 0
    if problem := unlogged(FOLDER):
        print(problem)
    if changes:
        print(
            'If the change is intended, run it again with --write --reason "..." and commit the record with the change.'
        )
    return 1 if changes or problem else 0


def _make_all(
    jobs: list[tuple[str, str, Path | None]], processes: int, *, keep: bool
) -> Iterator[Thing]:
    """Run the jobs in processes; return their items."""
    if processes == 1 or len(jobs) < 2:
        return chain.from_iterable(make(job, keep) for job in jobs)
    context = multiprocessing.get_context("spawn")  # a fork of Polars' threads hangs
    with ProcessPoolExecutor(min(processes, len(jobs)), mp_context=context) as pool:
        return chain.from_iterable(list(pool.map(make, jobs, [keep] * len(jobs))))


def _lab_of(name: str) -> str:
    """Return the lab of a name."""
    return name.partition("/")[0]


def _is_selected(name: str, only: str) -> bool:
    """Return whether one name is a prefix of the other."""
    return name.startswith(only) or only.startswith(name)


if __name__ == "__main__":
    sys.exit(main())

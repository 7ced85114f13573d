"""Read hostile files, and mutations of valid files, and check that each read ends, and ends as memlab says.

    python -m tests.campaigns.hostile_files                                    # the list, and 10,000 mutations
    python -m tests.campaigns.hostile_files --cases 200 --seed 3 --data FOLDER # with the valid files of a folder, too

The valid files are tables and JSON that other packages install, the same tables as Parquet in four encodings, and
exports of a small lab.
A mutation flips bits, cuts the end, doubles a part, joins two files, or writes an extreme number over one to
eight bytes, where a length may be. Each file is loaded, and read as a table or as a labelled file, in a process of its own
with limits of time and memory.

    read      the file was read, completely or with notes
    refused   an error of memlab
    raw       an error from outside memlab's tree
    hung      no answer within ten seconds of the processor, or a minute
    large     the process took more than a gigabyte
    died      the interpreter ended
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import os
import random
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

import memlab
from memlab.errors import MemlabError
from memlab.io import ingest

__all__ = ["CLASSES", "LISTED", "MUTATIONS", "Outcome", "mutate", "read_all", "valid_files"]

CLASSES = ("read", "refused", "raw", "hung", "large", "died")
SECONDS = 10.0
# A reader that waits uses no processor.
PATIENCE = 60.0
BYTES = 1 << 30
# what is mutated is small, so that ten thousand reads take minutes
LARGEST = 60_000


# -- valid files ----------------------------------------------------------------------------------------------------


def valid_files(folder: Path, also: Path | None = None) -> list[Path]:
    """Write the valid files into ``folder``, and return their paths."""
    sources = [
        path
        for package in ("matplotlib", "numpy", "sklearn", "networkx", "jupyterlab", "notebook")
        if (spec := find_spec(package)) is not None and spec.origin is not None
        for suffix in ("csv", "json", "md", "txt", "gz")
        for path in sorted(Path(spec.origin).parent.rglob(f"*.{suffix}"))
        if 200 < path.stat().st_size < LARGEST
    ][:80]
    if also is not None:
        sources += [
            path
            for path in sorted(also.rglob("*"))
            if path.is_file() and path.stat().st_size < LARGEST
        ]
    files = [
        Path(shutil.copyfile(path, folder / f"{n}-{path.name}")) for n, path in enumerate(sources)
    ]
    for path in [path for path in files if path.suffix == ".gz"]:
        with gzip.open(path) as file:
            unpacked = path.with_suffix("")
            unpacked.write_bytes(file.read(LARGEST))
            files.append(unpacked)
    return [*files, *_tables(folder, files), *_exports(folder), *_labelled(folder)]


def _tables(folder: Path, files: Sequence[Path]) -> Iterator[Path]:
    """Yield tables as Parquet and as JSON Lines."""
    encodings: dict[str, dict[str, Any]] = {
        "plain": {"compression": "uncompressed"},
        "zstd": {"compression": "zstd", "row_group_size": 100},
        "snappy": {"compression": "snappy", "statistics": "full"},
        "gzip": {"compression": "gzip", "data_page_size": 512},
    }
    for path in [path for path in files if path.suffix == ".csv"][:6]:
        try:
            frame = pl.read_csv(path, truncate_ragged_lines=True, ignore_errors=True)
        except pl.exceptions.PolarsError:
            continue
        texts = frame.select(
            pl.concat_str(pl.all().cast(pl.String).fill_null(""), separator=" ").alias("text")
        )
        rows = texts.with_columns(
            pl.col("text").str.split(" ").alias("tags"), pl.struct(pl.all()).alias("more")
        )
        for name, options in encodings.items():
            target = folder / f"{path.stem}-{name}.parquet"
            rows.write_parquet(target, **options)
            yield target
        target = folder / f"{path.stem}.jsonl"
        rows.write_ndjson(target)
        yield target


def _exports(folder: Path) -> Iterator[Path]:
    """Yield exports of a small lab in every format."""
    with memlab.open() as lab:
        for text in ("Ada lives in Turin", "Deploys go out on Tuesdays", "The user prefers tea"):
            lab.remember(text, kind="fact")
        lab.recall("tea")
        lab.feedback(3, "success")
        for suffix in ("jsonl", "parquet", "md", "sexp"):
            yield lab.io.export(folder / f"export.{suffix}")


def _labelled(folder: Path) -> Iterator[Path]:
    """Yield files of questions, messages and benchmarks."""
    messages = [
        {"role": "user", "content": "I moved to Turin", "at": "2026-03-01T09:00"},
        {"role": "assistant", "content": [{"type": "text", "text": "Noted."}]},
    ]
    texts = {
        "chat.json": json.dumps({"title": "Moving", "messages": messages}),
        "chats.jsonl": "\n".join(map(json.dumps, messages)),
        "questions.jsonl": json.dumps({"query": "Where?", "wanted": [1], "at": "2026-03-01T09:00"}),
        "questions.csv": "query,wanted\nWhere?,1\n",
        "talk.txt": "User: I moved to Turin\n\nAssistant: Noted.\n",
        "pack.hy": '(pack small :include ["default"])',
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
        yield folder / name


# -- mutations ------------------------------------------------------------------------------------------------------

_EXTREMES = (
    0,
    1,
    0x7F,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0xFFFFFFFF,
    0x80000000,
    (1 << 63) - 1,
    (1 << 64) - 1,
)


def _flip(data: bytearray, _other: bytes, dice: random.Random) -> bytearray:
    for _ in range(dice.choice((1, 1, 3, 20))):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return data


def _truncate(data: bytearray, _other: bytes, dice: random.Random) -> bytearray:
    return data[: dice.randrange(len(data))]


def _splice(data: bytearray, other: bytes, dice: random.Random) -> bytearray:
    return data[: dice.randrange(len(data))] + other[dice.randrange(len(other)) :]


def _double(data: bytearray, _other: bytes, dice: random.Random) -> bytearray:
    start = dice.randrange(len(data))
    part = data[start : start + dice.choice((1, 8, 200))]
    return data[:start] + part * dice.choice((2, 100, 500)) + data[start:]


def _number(data: bytearray, _other: bytes, dice: random.Random) -> bytearray:
    # the lengths of Parquet are at the end
    end = dice.random() < 0.5
    start = max(0, len(data) - dice.randrange(1, 200)) if end else dice.randrange(len(data))
    width = dice.choice((1, 2, 4, 8))
    value = dice.choice(_EXTREMES) & ((1 << 8 * width) - 1)
    data[start : start + width] = value.to_bytes(width, dice.choice(("little", "big")))
    return data


MUTATIONS: tuple[Callable[[bytearray, bytes, random.Random], bytearray], ...] = (
    _flip,
    _truncate,
    _splice,
    _double,
    _number,
)


def mutate(files: Sequence[Path], folder: Path, count: int, seed: int) -> Iterator[Path]:
    """Yield ``count`` mutated files; each is deleted when the next one is requested."""
    dice = random.Random(seed)
    by_suffix: dict[str, list[Path]] = {}
    for path in files:
        by_suffix.setdefault(path.suffix, []).append(path)
    suffixes = [*by_suffix, ".parquet", ".parquet", ".jsonl"]
    for number in range(count):
        source = dice.choice(by_suffix[suffixes[number % len(suffixes)]])
        other = dice.choice(by_suffix[source.suffix] if dice.random() < 0.7 else files)
        mutation = MUTATIONS[number // len(suffixes) % len(MUTATIONS)]
        data = mutation(bytearray(source.read_bytes() or b"\0"), other.read_bytes() or b"\0", dice)
        target = folder / f"{number}-{mutation.__name__[1:]}-{source.name}"
        target.write_bytes(data)
        yield target


# -- hostile files that are listed ----------------------------------------------------------------------------------


def _equal_texts(path: Path) -> None:
    pl.DataFrame({"text": ["x" * 10_000] * 60_000}).write_parquet(path)


def _one_list(path: Path) -> None:
    pl.select(
        pl.lit("a").alias("text"), pl.repeat(0, 50_000_000).implode().alias("tags")
    ).write_parquet(path)


def _many_rows(path: Path) -> None:
    pl.select(pl.repeat("a", 30_000_000).alias("text")).write_parquet(path)


def _columns(path: Path) -> None:
    pl.DataFrame({f"c{n}": ["a"] for n in range(20_000)}).write_parquet(path)


def _deep(path: Path) -> None:
    value: Any = "a"
    for _ in range(200):
        value = [value]
    pl.DataFrame({"text": [value]}).write_parquet(path)


def _archive(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(10):
            archive.writestr(f"{number}.jsonl", bytes(20_000_000))


def _gzip(path: Path) -> None:
    with gzip.open(path, "wb") as file:
        file.write(bytes(200_000_000))


def _repeated(start: str, middle: str, end: str = "", *, times: int) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with path.open("w") as file:
            file.write(start)
            for _ in range(64):
                file.write(middle * (times // 64))
            file.write(end)

    return write


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def _levels(path: Path) -> None:
    path.mkdir()
    os.chdir(path)
    for _ in range(1_500):
        Path("d").mkdir()
        os.chdir("d")
    Path("a.txt").write_text("User: hello")
    os.chdir("/")


def _pipes(path: Path) -> None:
    path.mkdir()
    os.mkfifo(path / "a.jsonl")
    os.mkfifo(path / "chat.json")
    os.mkfifo(path / "manifest.json")
    os.mkfifo(path / "memories.parquet")
    (path / "b.jsonl").symlink_to("/dev/zero")
    (path / "c.jsonl").write_text('{"text": "hello"}')


def _lab_of_pipes(path: Path) -> None:
    memlab.open(path).close()
    for name in ("head", "journal.db"):
        (path / name).unlink(missing_ok=True)
        os.mkfifo(path / name)


LISTED: dict[str, Callable[[Path], None]] = {
    "equal-texts.parquet": _equal_texts,
    "one-list.parquet": _one_list,
    "many-rows.parquet": _many_rows,
    "columns.parquet": _columns,
    "deep.parquet": _deep,
    "archive.zip": _archive,
    "archive.jsonl": _archive,
    "zeros.gz": _gzip,
    "zeros.csv": _gzip,
    "deep.json": _repeated("", "[", times=10_000_000),
    "deep.jsonl": _repeated('{"text":', "[", times=10_000_000),
    "small-values.json": _repeated("[", "0,", "0]", times=150_000_000),
    "small-lists.json": _repeated('{"data":[', "[],", "[]]}", times=100_000_000),
    "long-line.jsonl": _repeated('{"text":"', "a", '"}', times=1_000_000_000),
    "long-line.txt": _repeated("User: ", "a", times=500_000_000),
    "long-field.csv": _repeated('text,at\n"', "a", '"\n', times=200_000_000),
    "long-header.csv": _repeated("text,", "a,", "\nx\n", times=2_000_000),
    "open-quote.csv": _repeated('text,at\n"', "a,b\n", times=1_000_000),
    "long.md": _repeated("# a\n", "word ", times=100_000_000),
    "open.sexp": _repeated("", "(", times=5_000_000),
    "open.hy": _repeated("", "(", times=3_000_000),
    "digits.json": _repeated('[{"text":"a","at":', "9", "}]", times=10_000_000),
    "zero.txt": lambda path: path.symlink_to("/dev/zero"),
    "zero.jsonl": lambda path: path.symlink_to("/dev/zero"),
    "zero.parquet": lambda path: path.symlink_to("/dev/zero"),
    "pipe.jsonl": os.mkfifo,
    "pipe.parquet": os.mkfifo,
    "pipe.hy": os.mkfifo,
    "pipe.md": os.mkfifo,
    "socket.json": _socket,
    "itself.json": lambda path: path.symlink_to(path),
    "levels": _levels,
    "pipes": _pipes,
    "lab": _lab_of_pipes,
}


# -- reading --------------------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What the reading of a file came to, and the first sentence that says why."""

    file: str
    kind: str
    why: str
    seconds: float


def read_all(path: Path) -> str:
    """Read a file in each way that its suffix allows; raise the first error of the loading."""
    from memlab.ui.cli._base import read_frame

    ways: list[Callable[[], Any]] = []
    if path.suffix in (".parquet", ".csv", ".jsonl"):
        ways.append(lambda: read_frame(path))
    if path.suffix in (".jsonl", ".csv"):
        ways.append(lambda: ingest.read_questions(path))
    if path.suffix == ".json":
        ways += [lambda: ingest.read_locomo(path), lambda: ingest.read_longmemeval(path)]
    if path.suffix == ".hy":
        ways.append(lambda: memlab.open(pack=path).close())
    if path.is_dir():
        ways += [
            lambda: ingest.read_beam(path),
            lambda: memlab.open(path).close(),
            lambda: ingest.digest(path),
        ]
    for way in ways:
        try:
            way()
        except MemlabError:
            continue
    with memlab.open() as lab:
        return repr(lab.load(path, progress=False))[:200]


def _work(pipe: Connection) -> None:
    # twice the size that counts as large, so that a larger one ends with MemoryError and not the machine
    resource.setrlimit(resource.RLIMIT_DATA, (3 * BYTES, 3 * BYTES))
    pipe.send(None)
    while True:
        path = pipe.recv()
        try:
            kind, why = "read", read_all(path)
        except MemlabError as error:
            kind, why = "refused", f"{type(error).__name__}: {error}"
        except BaseException as error:  # noqa: BLE001  whatever comes out is what is looked for
            kind, why = "raw", f"{type(error).__name__}: {error}"
        # the maximum of the resident memory since the start of the program, which RUSAGE_SELF inherits from its parent
        (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        if int(peak) * 1024 > BYTES:
            kind = "large"
        pipe.send((kind, why[:300]))


class Reader:
    """A process that may hang, grow or die over a file."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._process: Any = None

    def read(self, path: Path) -> Outcome:
        """Read a file, within the limit of time."""
        if self._process is None:
            self._pipe, its = self._context.Pipe()
            self._process = self._context.Process(target=_work, args=(its,), daemon=True)
            self._process.start()
            its.close()
            self._pipe.recv()
        began, used = time.monotonic(), self._processor_seconds()
        kind, why = "hung", ""
        self._pipe.send(path)
        with suppress(EOFError):
            while (
                time.monotonic() - began < PATIENCE and self._processor_seconds() - used < SECONDS
            ):
                if self._pipe.poll(0.5):
                    kind = "died"
                    kind, why = self._pipe.recv()
                    break
        seconds = self._processor_seconds() - used
        if kind in ("hung", "died", "large"):
            self.stop()
        return Outcome(path.name, kind, why, seconds)

    def _processor_seconds(self) -> float:
        """Return the processor time of the process; other programs of the machine do not count."""
        with suppress(OSError):
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return 0.0

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


def run_listed(folder: Path, names: Sequence[str] = tuple(LISTED)) -> Iterator[Outcome]:
    """Write and read the listed files, one after another."""
    reader = Reader()
    for name in names:
        target = folder / name
        LISTED[name](target)
        yield reader.read(target)
        # a command, because shutil.rmtree recurses into every level
        subprocess.run(["rm", "-rf", str(target)], check=True)
    reader.stop()


def run_mutations(
    files: Sequence[Path], folder: Path, count: int, seed: int, *, processes: int = 2
) -> Iterator[Outcome]:
    """Read mutated files in several processes."""

    def part(number: int) -> list[Outcome]:
        home = folder / str(number)
        home.mkdir()
        reader, outcomes = Reader(), []
        for path in mutate(files, home, count // processes, seed * 1_000 + number):
            outcomes.append(reader.read(path))
            if outcomes[-1].kind in ("read", "refused"):
                path.unlink()
        reader.stop()
        return outcomes

    with ThreadPoolExecutor(processes) as threads:
        for outcomes in threads.map(part, range(processes)):
            yield from outcomes


def main() -> int:
    """Run the campaign; the status is 1 if a file hung, grew, died or raised an error from outside memlab."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, help="a folder with more valid files")
    parser.add_argument("--only", default="", help="listed files whose name contains this")
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp())
    totals: Counter[str] = Counter()
    try:
        names = [name for name in LISTED if options.only in name]
        for outcome in run_listed(home, names):
            totals[outcome.kind] += 1
            print(
                f"{outcome.kind:8} {outcome.seconds:5.1f} s  {outcome.file:22} {outcome.why[:110]}",
                flush=True,
            )
        (home / "valid").mkdir()
        files = valid_files(home / "valid", options.data) if options.cases else []
        print(
            f"{len(files)} valid files: {dict(Counter(path.suffix for path in files))}", flush=True
        )
        slowest = 0.0
        for outcome in run_mutations(files, home, options.cases, options.seed):
            totals[outcome.kind] += 1
            slowest = max(slowest, outcome.seconds)
            if outcome.kind not in ("read", "refused"):
                print(
                    f"{outcome.kind:8} {outcome.seconds:5.1f} s  {outcome.file} {outcome.why}",
                    flush=True,
                )
        print({name: totals[name] for name in CLASSES}, f"slowest mutation {slowest:.1f} s")
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return int(any(totals[name] for name in CLASSES[2:]))


if __name__ == "__main__":
    sys.exit(main())

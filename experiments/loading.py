"""Measure how fast files are read by format, and compare loading with ``remember_many``.

    python experiments/loading.py [--megabytes 20] [--words 100] [--seed 0]

A seed generates a file of each format. Reading is timed alone: rows are built and dropped. Loading is timed next to
``remember_many`` of the same rows, which are read beforehand. Both alternate in one process with the shipped embedder.
The ratio is that of their rates; 1 means that reading costs nothing. Seconds are processor time.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import memlab
from memlab.io.formats import Options, read_file

WORDS = [
    f"{a}{b}"
    for a in ("re", "con", "pro", "dis", "in", "sub")
    for b in ("mit", "tain", "form", "sist", "pose")
]
START = 1_767_225_600


def draw_texts(seed: int, mean: int) -> Iterator[str]:
    """Yield random messages without end."""
    dice = random.Random(seed)
    while True:
        yield " ".join(dice.choices(WORDS, k=dice.randint(1, 2 * mean - 1)))


def draw_messages(seed: int, size: int, mean: int) -> Iterator[dict[str, object]]:
    """Yield ``size`` bytes of messages with role, session and time."""
    for number, text in enumerate(draw_texts(seed, mean)):
        yield {
            "role": ("user", "assistant")[number % 2],
            "content": text,
            "created_at": START + 60 * number,
            "session_id": f"s{number // 40}",
        }
        size -= len(text) + 90
        if size <= 0:
            return


def write_files(folder: Path, seed: int, size: int, mean: int) -> Iterator[tuple[str, Path]]:
    """Write a file of each format; yield its format and path."""
    rows = list(draw_messages(seed, size, mean))
    path = folder / "messages.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    yield "JSON Lines, messages", path
    path = folder / "transcript.jsonl"
    path.write_text(
        "".join(
            json.dumps(build_transcript_line(row, number)) + "\n" for number, row in enumerate(rows)
        )
    )
    yield "JSON Lines, transcript with tool calls", path
    path = folder / "conversations.json"
    path.write_text(
        json.dumps([build_conversation(rows[at : at + 40], at) for at in range(0, len(rows), 40)])
    )
    yield "JSON, tree of an export", path
    path = folder / "messages.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    yield "CSV", path
    path = folder / "log.md"
    path.write_text(
        "".join(f"**{str(row['role']).title()}:** {row['content']}\n\n" for row in rows)
    )
    yield "Markdown log", path


def build_transcript_line(row: dict[str, object], number: int) -> dict[str, object]:
    """Return a line of a coding assistant's session."""
    parts: list[dict[str, object]] = [{"type": "text", "text": row["content"]}]
    if number % 4 == 1:
        parts.append(
            {
                "type": "tool_use",
                "id": f"t{number}",
                "name": "Read",
                "input": {"path": f"src/{number}.py"},
            }
        )
    return {
        "type": row["role"],
        "message": {"role": row["role"], "content": parts},
        "timestamp": f"2026-01-{1 + number % 28:02}T10:00:00Z",
        "sessionId": row["session_id"],
        "cwd": "/src/project",
        "uuid": f"u{number}",
        "isSidechain": False,
    }


def build_conversation(rows: list[dict[str, object]], at: int) -> dict[str, object]:
    """Return a conversation as a tree of messages."""
    tree: dict[str, object] = {}
    for number, row in enumerate(rows):
        message = {
            "author": {"role": row["role"]},
            "content": {"content_type": "text", "parts": [row["content"]]},
            "create_time": row["created_at"],
        }
        tree[f"n{number}"] = {
            "id": f"n{number}",
            "message": message,
            "parent": f"n{number - 1}" if number else None,
        }
    return {"id": f"c{at}", "title": "talk", "mapping": tree, "current_node": f"n{len(rows) - 1}"}


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--words", type=int, default=100, help="mean words of a message")
    parser.add_argument("--rows", type=int, default=4_000, help="rows of the second table")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        print(
            f"reading alone, {arguments.megabytes:g} MB each, "
            f"messages of {arguments.words} words, best of 3, seed {arguments.seed}"
        )
        for format, path in write_files(
            Path(name), arguments.seed, int(arguments.megabytes * 1e6), arguments.words
        ):
            seconds, count = [], 0
            for _ in range(3):
                began = process_time()
                count = sum(1 for _ in read_file(path, Options()).rows)
                seconds.append(process_time() - began)
            size = path.stat().st_size / 1e6
            print(f"  {format:<44} {size / min(seconds):7.1f} MB/s  {count:,} rows")
        print_comparison(Path(name) / "some.jsonl", arguments.seed, arguments.rows, arguments.words)


def print_comparison(path: Path, seed: int, maximum: int, mean: int) -> None:
    """Print loading next to ``remember_many``."""
    rows = [row for row, _ in zip(draw_messages(seed, 10**9, mean), range(maximum), strict=False)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    wanted = [row for _, row in read_file(path, Options()).rows]
    loads, writes = [], []
    for _ in range(3):
        with memlab.open() as lab:
            began = process_time()
            lab.remember(wanted, chain=True)
            writes.append(process_time() - began)
        with memlab.open() as lab:
            began = process_time()
            lab.load(path)
            loads.append(process_time() - began)
            began = process_time()
            assert lab.load(path).count("known") == len(wanted)
            again = process_time() - began
    print(f"loading {len(wanted):,} messages ({path.stat().st_size / 1e6:.1f} MB), best of 3")
    print(f"  remember_many {len(wanted) / min(writes):8,.0f} rows/s")
    print(
        f"  load          {len(wanted) / min(loads):8,.0f} rows/s, ratio {min(writes) / min(loads):.2f}"
    )
    print(f"  load again    {len(wanted) / again:8,.0f} rows/s, nothing added")


if __name__ == "__main__":
    main()

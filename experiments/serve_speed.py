"""Measure the time of a recall over the Model Context Protocol.

    python experiments/serve_speed.py                            # 10,000 memories, 300 recalls
    python experiments/serve_speed.py --memories 1000 --http

``memlab serve`` serves a lab of invented memories on disk, drawn by a seed, in a process of its own. The official client
queries it and checks each answer by its schema. Then this process makes the same recalls on the same lab without the
protocol. The share of ``lab.recall`` is the ratio of both medians. Times are milliseconds of wall time; within one
process, of processor time.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import httpx2
import numpy as np
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from speed import draw_rows, draw_sentence

import memlab
from memlab.io.serving import lab_server

WARM = 20
"""Warm-up recalls, in which a process loads its model and its tables."""
SEED = 7


@contextlib.asynccontextmanager
async def connect_client(folder: Path, *, http: bool) -> AsyncIterator[Client]:
    """Connect the official client to a server of this lab."""
    command = ["-m", "memlab", "serve", str(folder)]
    if not http:
        process = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
        async with Client(stdio_client(process)) as client:
            yield client
        return
    with subprocess.Popen(
        [sys.executable, *command, "--http", "--json"], stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())
        try:
            async with (
                httpx2.AsyncClient(
                    headers={"Authorization": f"Bearer {address['token']}"}
                ) as asking,
                Client(streamable_http_client(address["url"], http_client=asking)) as client,
            ):
                yield client
        finally:
            server.terminate()


async def time_round_trips(folder: Path, questions: Sequence[str], *, http: bool) -> list[float]:
    """Return the milliseconds of each recall by the client."""
    spent = []
    async with connect_client(folder, http=http) as client:
        for question in questions:
            began = time.perf_counter()
            answer = await client.call_tool("recall", {"query": question})
            spent.append(1000 * (time.perf_counter() - began))
            assert not answer.is_error, answer
    return spent[WARM:]


async def time_in_process(lab: memlab.Lab, questions: Sequence[str]) -> list[float]:
    """Return the processor time of each recall by a client in this process, in milliseconds."""
    async with Client(lab_server(lab)) as client:
        spent = []
        for question in questions:
            began = time.process_time()
            await client.call_tool("recall", {"query": question})
            spent.append(1000 * (time.process_time() - began))
    return spent[WARM:]


def time_recalls(
    lab: memlab.Lab, questions: Sequence[str], clock: Callable[[], float]
) -> list[float]:
    """Return the milliseconds of each ``lab.recall`` in this process."""
    spent = []
    for question in questions:
        began = clock()
        lab.recall(question)
        spent.append(1000 * (clock() - began))
    return spent[WARM:]


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--recalls", type=int, default=300)
    parser.add_argument(
        "--http",
        action="store_true",
        help="use streamable HTTP instead of standard input and output",
    )
    arguments = parser.parse_args()
    dice = random.Random(SEED)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "lab"
        with memlab.open(folder) as lab:
            lab.remember(draw_rows(arguments.memories, dice), chain=True)
        questions = [draw_sentence(dice, 8) for _ in range(arguments.recalls + WARM)]
        trips = asyncio.run(time_round_trips(folder, questions, http=arguments.http))
        with memlab.open(folder) as lab:
            alone = time_recalls(lab, questions, time.perf_counter)
            processor = time_recalls(lab, questions, time.process_time)
            together = asyncio.run(time_in_process(lab, questions))
    way = "HTTP" if arguments.http else "standard input and output"
    print(
        f"{arguments.recalls} recalls of {arguments.memories:,} memories over {way}, milliseconds"
    )
    _print_row("round trip", trips, alone)
    print("processor time in one process, which other programs hardly change")
    _print_row("client and server", together, processor)


def _print_row(what: str, whole: Sequence[float], alone: Sequence[float]) -> None:
    """Print a row."""
    for name, spent in ((what, whole), ("lab.recall alone", alone)):
        print(f"  {name:<17} p50 {np.median(spent):6.2f}   p95 {np.percentile(spent, 95):6.2f}")
    print(f"  share of lab.recall in the median: {np.median(alone) / np.median(whole):.0%}")


if __name__ == "__main__":
    main()

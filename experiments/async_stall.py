"""Measure how long recalls stall an event loop, directly, on many threads and through ``AsyncLab``.

    python -m experiments.async_stall                 # 100 recalls in flight on 5,000 memories, five times
    python -m experiments.async_stall --users 50      # as many users of one lab for a minute, errors counted

A stall is the time by which a task that sleeps for a millisecond wakes too late. A user recalls, remembers and
gives feedback, each time after a short pause.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import memlab

TOPICS = ("deploys", "tests", "tabs", "backups", "releases", "tokens", "reviews", "logs")
PAUSE = 0.001  # seconds between two looks of the watcher


def make_texts(count: int, seed: int = 0) -> list[str]:
    draw = random.Random(seed)
    return [
        f"Note {number}: {' '.join(draw.choices(TOPICS, k=6))} on day {draw.randrange(365)}"
        for number in range(count)
    ]


async def watch(until: asyncio.Event, stalls: list[float]) -> None:
    """Append by how many seconds each sleep of a millisecond was exceeded."""
    while not until.is_set():
        began = time.perf_counter()
        await asyncio.sleep(PAUSE)
        stalls.append(time.perf_counter() - began - PAUSE)


async def measure_stall(run: Callable[[], Awaitable[object]]) -> list[float]:
    stalls: list[float] = []
    done = asyncio.Event()
    watching = asyncio.create_task(watch(done, stalls))
    await asyncio.sleep(0.05)
    await run()
    done.set()
    await watching
    return stalls


async def compare(memories: int, recalls: int, repeats: int) -> None:
    queries = [f"when about {topic}?" for topic in random.Random(1).choices(TOPICS, k=recalls)]
    async with memlab.AsyncLab() as lab:
        await lab.remember(make_texts(memories))
        await lab.recall("first use")

        async def directly() -> None:
            for query in queries:
                lab.lab.recall(query)

        async def on_threads() -> None:
            await asyncio.gather(*(asyncio.to_thread(lab.lab.recall, query) for query in queries))

        async def through_async_lab() -> None:
            await asyncio.gather(*(lab.recall(query) for query in queries))

        async def idle() -> None:
            await asyncio.sleep(1)

        print(
            f"{recalls} recalls in flight on {memories:,} memories, {repeats} times; milliseconds"
        )
        for run in (idle, directly, on_threads, through_async_lab):
            stalls = [await measure_stall(run) for _ in range(repeats)]
            highest = sorted(1000 * max(times) for times in stalls)
            typical = statistics.median(1000 * stall for times in stalls for stall in times)
            print(
                f"{run.__name__:>18}: longest stall {highest[-1]:8.1f}, "
                f"median of longest {statistics.median(highest):8.1f}, median {typical:6.2f}"
            )


async def use(lab: memlab.AsyncLab, user: int, until: float, errors: list[str]) -> int:
    """Recall, remember and judge as one user until a time; return the number of calls."""
    draw, calls = random.Random(user), 0
    agent = lab.agent(f"user{user}")
    while time.monotonic() < until:
        topic = draw.choice(TOPICS)
        try:
            hits = await agent.recall(f"what about {topic}?", limit=5)
            if hits:
                await agent.feedback(hits[0], draw.choice(("success", "fail")))
            await agent.remember(f"{topic} of user {user}, note {calls}", kind="learning")
            calls += 3
        except Exception as error:  # noqa: BLE001 - each error is counted and printed
            errors.append(f"{type(error).__name__}: {error}")
        await asyncio.sleep(draw.random() / 2)
    return calls


async def serve(users: int, seconds: float) -> None:
    errors: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        async with memlab.AsyncLab(Path(folder) / "users.memlab") as lab:
            await lab.remember(make_texts(5000))
            until = time.monotonic() + seconds
            calls: list[int] = []

            async def run() -> None:
                calls.extend(
                    await asyncio.gather(*(use(lab, user, until, errors) for user in range(users)))
                )

            stalls = await measure_stall(run)
            print(
                f"{users} users, {seconds:.0f} s: {sum(calls):,} calls, {len(errors)} errors, "
                f"longest stall {1000 * max(stalls):.1f} ms, {len(await lab.memories):,} memories"
            )
    for error in sorted(set(errors)):
        print(f"  {errors.count(error)} x {error}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memories", type=int, default=5000)
    parser.add_argument("--recalls", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--users", type=int, help="measure users instead of stalls")
    parser.add_argument("--seconds", type=float, default=60)
    arguments = parser.parse_args()
    if arguments.users:
        asyncio.run(serve(arguments.users, arguments.seconds))
    else:
        asyncio.run(compare(arguments.memories, arguments.recalls, arguments.repeats))


if __name__ == "__main__":
    main()

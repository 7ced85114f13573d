"""The processes that share the inputs."""

from __future__ import annotations

import ctypes
import multiprocessing as mp
import queue
import struct
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.campaigns.fuzzing.session import SLOW, Session
from tests.campaigns.fuzzing.tally import Finding, Tally

__all__ = ["Crew"]

HANG = 60.0
"""Seconds after which a process that has not finished one text is stopped."""
CHUNK = 500
"""Inputs between two reports."""
MAX_TEXT = 1 << 21


def work(number: int, seed: int, chunks: list[int], reports: Any, current: Any) -> None:
    """Try chunks in one process, one after another, and report each."""
    with tempfile.TemporaryDirectory() as folder:
        session = Session(f"{seed}/{number}/{chunks[0] if chunks else 0}", Path(folder))

        def before(text: str, slot: str) -> None:
            data = f"{slot}\n{text}".encode("utf-8", "surrogatepass")[: MAX_TEXT - 4]
            current[: 4 + len(data)] = struct.pack(">I", len(data)) + data

        for chunk in chunks:
            reports.put((number, chunk, session.run(CHUNK, before)))
    reports.put((number, -1, None))


class Crew:
    """The processes, each replaced by a fresh one when it dies or hangs."""

    def __init__(self, inputs: int, processes: int, seed: int) -> None:
        self.context = mp.get_context("spawn")
        self.reports: Any = self.context.Queue()
        self.seed = seed
        count = -(-inputs // CHUNK)
        self.left = [[c for c in range(count) if c % processes == n] for n in range(processes)]
        self.current = [self.context.RawArray(ctypes.c_char, MAX_TEXT) for _ in range(processes)]
        self.heard = [time.monotonic()] * processes
        self.crew = [self.start(n) for n in range(processes)]

    def start(self, number: int) -> Any:
        self.heard[number] = time.monotonic() + 60
        arguments = (number, self.seed, list(self.left[number]), self.reports, self.current[number])
        process = self.context.Process(target=work, args=arguments, daemon=True)
        process.start()
        return process

    def text(self, number: int) -> tuple[str, str]:
        raw = self.current[number].raw
        (size,) = struct.unpack(">I", raw[:4])
        slot, _, text = raw[4 : 4 + size].decode("utf-8", "surrogatepass").partition("\n")
        return text, slot

    def run(self) -> Iterator[Tally]:
        """Yield the tallies as they arrive."""
        while any(self.left):
            try:
                number, chunk, tally = self.reports.get(timeout=1)
            except queue.Empty:
                pass
            else:
                if tally is not None:
                    self.heard[number] = time.monotonic()
                    self.left[number].remove(chunk)
                    yield tally
                continue
            for number, process in enumerate(self.crew):
                hung = time.monotonic() - self.heard[number] > HANG + CHUNK * SLOW
                if self.left[number] and (hung or not process.is_alive()):
                    text, slot = self.text(number)
                    what = (
                        "took too long"
                        if hung
                        else f"ended the process with status {process.exitcode}"
                    )
                    process.kill()
                    process.join()
                    self.left[number].pop(0)
                    yield Tally(inputs=CHUNK, findings=[Finding("crash", what, text, slot)])
                    self.crew[number] = self.start(number)
        for process in self.crew:
            process.join()

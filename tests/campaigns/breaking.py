"""Helpers of the campaigns that break labs: labs with every feature, and what is compared of them.

``kill_points.py`` kills, ``interruptions.py`` raises, ``damage.py`` overwrites files, ``fulldisk.py`` fills the disk.
Each compares *pictures*: digests of everything that a lab reports at one instant of its clock, computed exactly and
without probes. Readers cannot distinguish two labs with equal pictures.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import multiprocessing
import os
import shutil
import signal
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import numpy as np
import polars as pl

# Asking for its size starts Polars' pool of threads, which a forked child does not have: memlab asks when imported.
_asked, pl.thread_pool_size = pl.thread_pool_size, lambda: os.cpu_count() or 1

import memlab  # noqa: E402
import memlab.io.formats  # noqa: E402
import memlab.kernel.storage.store  # noqa: E402
import memlab.subjects.lab  # noqa: E402

pl.thread_pool_size = _asked

from memlab.errors import EmbedderMismatch  # noqa: E402
from memlab.kernel.base.clock import HOUR, ManualClock, to_micros  # noqa: E402
from memlab.kernel.index import Vectors  # noqa: E402

__all__ = [
    "DERIVED",
    "PACKAGE",
    "QUESTIONS",
    "READINGS",
    "Hung",
    "add_key",
    "checked",
    "concluded",
    "copied",
    "embed",
    "embed_otherwise",
    "encrypted",
    "everything",
    "forking",
    "leftovers",
    "low_thresholds",
    "many",
    "opened",
    "opened_by_either",
    "patience",
    "picture",
    "tell",
    "texts",
    "without_derived",
]

PACKAGE = str(Path(memlab.__file__).parent)
DERIVED = ("snapshots", "slates", "neighbours")
START = to_micros("2026-03-01T12:00:00")
DIM = 24
WORDS = (
    *("goat", "sea", "bakery", "tabs", "deploy", "review", "swim", "village", "six", "branch"),
    *(
        "oslo",
        "harbour",
        "bread",
        "letter",
        "winter",
        "garden",
        "music",
        "engine",
        "river",
        "window",
    ),
)
QUESTIONS = ("goat by the sea", "who reviews the deploy", "bread in winter")


# -- labs -----------------------------------------------------------------------------------------------------------


def embed(texts: Sequence[str]) -> np.ndarray:
    """Embed texts by hashed words: quick, and good enough to rank."""
    return _hashed(texts, 0)


def embed_otherwise(texts: Sequence[str]) -> np.ndarray:
    """Embed texts by another encoder, for a change of model."""
    return _hashed(texts, 1)


def _hashed(texts: Sequence[str], start: int) -> np.ndarray:
    out = np.zeros((len(texts), DIM))
    for row, text in enumerate(texts):
        for word in text.lower().split():
            code = zlib.crc32(word.encode(), start)
            out[row, code % DIM] += 1 if code & 1024 else -1
    return out


def opened(path: Path | str, *, hours: float = 0, embedder: Any = embed, **more: Any) -> memlab.Lab:
    """Open the lab at ``path`` with a clock that stands still ``hours`` after the start."""
    return memlab.open(
        path, embedder=embedder, clock=ManualClock(START + round(hours * HOUR)), **more
    )


def opened_by_either(path: Path | str, *, hours: float = 0) -> memlab.Lab:
    """Open the lab at ``path`` with whichever of the two encoders wrote it."""
    try:
        return opened(path, hours=hours)
    except EmbedderMismatch:
        return opened(path, hours=hours, embedder=embed_otherwise)


def texts(count: int, *, first: int = 0, seed: int = 0) -> list[str]:
    """Return different texts; each ends with a unique word that can be searched for in files."""
    dice = np.random.default_rng([seed, first])
    chosen = dice.choice(len(WORDS), size=(count, 5))
    return [
        " ".join(WORDS[word] for word in row) + f" mark{first + n}q"
        for n, row in enumerate(chosen.tolist())
    ]


def everything(path: Path, *, seed: int = 0, recalls: int = 40) -> None:
    """Write and close a small lab that uses every feature, with events after its last snapshot and backup."""
    with opened(path, pack="companion") as lab:
        results = texts(30, seed=seed)
        for n, text in enumerate(results[:6]):
            lab.remember(
                text, session="first", chain=True, tags=["one", f"tag{n % 2}"], speaker="Ada"
            )
        lab.remember(
            [{"text": text, "session": "second", "project": "apple"} for text in results[6:20]],
            chain=True,
        )
        lab.facts.add("Ada", "lives-in", object="Oslo")
        lab.facts.add("Ada", "likes", "goats and the sea")
        lab.facts.entities.declare("Adele Quuxley", type="person", aliases=["Adele"])
        lab.facts.entities.declare("Adelheid", type="person")
        lab.facts.entities.merge("Adelheid", "Adele Quuxley")
        hits = lab.recall(QUESTIONS[0])
        lab.feedback(hits[0], "success")
        lab.graph.link(3, 1, "relates-to")
        lab.edit(2, text="the village bakery bakes six loaves")
        lab.policies.install(
            "recall-score", "(fn [similarity recency] (+ similarity (* 0.1 recency)))"
        )
        lab.forget(5, how="deprecate", reason="it was wrong")
        lab.forget(7, how="delete")
        lab.io.backup()
        lab.remember(results[20:])
        lab.purge(9)
        for n in range(recalls):
            lab.recall(f"{QUESTIONS[n % 3]} {WORDS[n % len(WORDS)]}")
    with opened(path, hours=24 * 4) as lab:
        lab.upkeep.maintain(progress=False)
        lab.remember("what the backup still has", session="third")
        lab.io.backup()
        lab.remember("what the snapshot still has", session="third")
        lab.io.snapshot()
        lab.remember(texts(5, first=100, seed=seed), chain=True)
        lab.recall(QUESTIONS[1])


def many(path: Path, count: int, *, seed: int = 0) -> None:
    """Write a lab of ``count`` memories, enough for an index to be built over them."""
    with opened(path) as lab:
        lab.remember(texts(count, seed=seed))


@contextlib.contextmanager
def low_thresholds() -> Iterator[None]:
    """Let this process search by an index from 1,000 memories on (not 100,000), and seal slates by 20 (not 500)."""
    methods = (Vectors.__init__, Vectors.load.__func__)  # type: ignore[attr-defined]
    before = memlab.kernel.storage.store.EXACT_UP_TO
    with contextlib.ExitStack() as changes:
        changes.enter_context(
            mock.patch.multiple("memlab.kernel.storage.store", EXACT_UP_TO=1_000, _SEAL_EVERY=20)
        )
        for method in methods:
            assert method.__kwdefaults__["exact_up_to"] == before
            changes.enter_context(mock.patch.dict(method.__kwdefaults__, exact_up_to=1_000))
        yield


@contextlib.contextmanager
def encrypted(key: str | None) -> Iterator[None]:
    """Encrypt every new lab with a passphrase that is derived cheaply, and open it again; None leaves labs plain."""
    if key is None:
        yield
        return
    cheap = mock.patch("memlab.kernel.journal._vault._COST", 16)
    with cheap, mock.patch.dict(os.environ, MEMLAB_KEY=key):
        yield


def add_key(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--key``."""
    parser.add_argument("--key", help="encrypt all labs with this passphrase (extra secure)")


def copied(path: Path, to: Path) -> Path:
    """Copy the folder with its times of modification, and the log that a killed process left."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(path, to, copy_function=_copy)
    return to


def _copy(source: str, target: str) -> None:
    # The process that builds an index may outlive the killed one and replace its files.
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(source, target)


def without_derived(path: Path, to: Path) -> Path:
    """Copy the folder without all that is derived from the journal, so that opening folds it from scratch."""
    copied(path, to)
    for name in DERIVED:
        shutil.rmtree(to / name, ignore_errors=True)
    return to


def leftovers(path: Path) -> list[str]:
    """List the files that a sound and closed lab does not have: drafts, and an unmerged write-ahead log."""
    return sorted(
        str(item.relative_to(path))
        for item in path.rglob("*")
        if item.name.startswith(".")
        or any(word in item.name for word in ("draft", "tmp", ".part", ".new", ".old"))
        or (
            item.name in ("journal.db-wal", "journal.enc-wal")
            and item.parent == path
            and item.stat().st_size
        )
    )


# -- pictures -------------------------------------------------------------------------------------------------------


def _digest(value: Any) -> str:
    if isinstance(value, pl.LazyFrame):
        value = value.collect()
    if isinstance(value, pl.DataFrame):
        value = f"{value.height} {value.schema} {value.write_ndjson()}"
    assert not callable(value)
    return hashlib.blake2b(str(value).encode(), digest_size=12).hexdigest()


def _recalled(lab: memlab.Lab) -> str:
    results = [lab.recall(question, limit=8, log=False) for question in QUESTIONS]
    return _digest([[(hit.id, hit.text, round(hit.score, 9)) for hit in hits] for hits in results])


def _logged(lab: memlab.Lab) -> str:
    slates = lab.slates()
    return " ".join(
        map(_digest, (slates.decisions, slates.candidates, slates.exposures, slates.feedback))
    )


def _past(lab: memlab.Lab) -> str:
    """Return the digest of the journal folded from its first event."""
    past = lab.at(event=lab.log["event"][-1], progress=False)
    return f"{_digest(past.memories)} {_digest(past.edges)}"


READINGS: dict[str, Callable[[memlab.Lab], str]] = {
    "memories": lambda lab: _digest(lab.memories),
    "edges": lambda lab: _digest(lab.edges),
    # a look may seal what is due
    "log": lambda lab: _digest(lab.log.filter(pl.col("kind") != "seal").drop("event")),
    "pack": lambda lab: (
        f"{lab.policies.pack.hash} {_digest(lab.policies.history())} {lab.io.embedder.fingerprint}"
    ),
    "entities": lambda lab: f"{_digest(lab.facts.entities.frame())} {_digest(lab.facts.frame())}",
    "clusters": lambda lab: (
        f"{_digest(lab.graph.clusters.frame())} {_digest(lab.upkeep.consolidation.frame())}"
    ),
    "recall": _recalled,
    "slates": _logged,
    "past": _past,
}
"""What is read of a lab, each as a digest."""


def picture(lab: memlab.Lab) -> dict[str, str]:
    return {name: read(lab) for name, read in READINGS.items()}


def checked(lab: memlab.Lab) -> tuple[bool, list[str]]:
    """Return whether ``lab.io.check()`` reports the lab as sound, and the rows that it lists otherwise."""
    report = lab.io.check()
    frame = report.frame
    return bool(report.sound), [
        " ".join(map(str, row)) for row in frame.filter(pl.col("state") != "sound").iter_rows()
    ]


# -- processes ------------------------------------------------------------------------------------------------------


def forking(campaign: str) -> Any:
    """Return the context of processes forked from one that has imported ``campaign``, so that a child starts at once."""
    root = Path(__file__).resolve().parents[2]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(root), *sys.path])
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([campaign])
    return context


# -- patience -------------------------------------------------------------------------------------------------------


class Hung(BaseException):
    """A call has not come back for longer than it may."""


@contextlib.contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Raise ``Hung`` in the main thread unless the block ends in time."""

    def over(_number: int, _frame: FrameType | None) -> None:
        raise Hung(f"no answer within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# -- what a campaign prints -------------------------------------------------------------------------------------------


def tell(
    row: str, problems: Sequence[str], counts: Mapping[str, int], totals: dict[str, int]
) -> None:
    """Print a row with its first problems, and add the counts to ``totals``."""
    print(row, flush=True)
    for problem in problems[:6]:
        print(f"    {problem[:300]}", flush=True)
    for name in totals:
        totals[name] += counts[name]


def concluded(totals: Mapping[str, int]) -> int:
    """Print the last line; the exit status: 0 if every count is zero."""
    print(", ".join(f"{count} {name}" for name, count in totals.items()))
    return int(any(totals.values()))

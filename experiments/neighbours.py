"""Compare exact search with Annoy: recall@10, time, size and memory.

    python experiments/neighbours.py locomo10.json                       # 1,000 to 100,000 rows
    python experiments/neighbours.py locomo10.json --rows 1000000 --efforts 0.5 1 2

Questions are those of the conversations. Memories are mixtures of their turns, because random vectors differ from
vectors of texts. A mixture is the first half of one sentence, the second half of another, and up to two whole
sentences, all drawn evenly. The vector of a text is the mean of its words' vectors. So each piece is embedded once,
and mixtures are sums weighted by the number of words.

Times are of one search for ten neighbours on one thread: ``cpu`` is processor time, ``wall`` is wall time. ``rss`` is
the peak memory of a process that maps vectors and index, and searches.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memlab.io.ingest import read_locomo
from memlab.kernel.embedding import load_embedder
from memlab.kernel.index import Neighbours, Vectors

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_BLOCK = 20_000


def read_sentences(path: Path) -> tuple[list[str], list[str]]:
    """Return the sentences of at least four words, and the questions."""
    sentences, questions = set(), []
    for labelled in read_locomo(path):
        for turn in labelled.conversation.turns:
            sentences |= {part for part in _SENTENCE.split(turn.text) if len(part.split()) > 3}
        questions += [question.text for question in labelled.questions]
    return sorted(sentences), questions


def embed_weighted(texts: list[str]) -> NDArray[np.float32]:
    """Return unit vectors times the number of words."""
    vectors = load_embedder().encode(texts).astype(np.float32)
    norms = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1)
    scaled: NDArray[np.float32] = (
        vectors / norms * np.array([[len(text.split())] for text in texts], dtype=np.float32)
    )
    return scaled


def mix_memories(sentences: list[str], rows: int, seed: int) -> Vectors:
    """Return ``rows`` memories mixed from sentences."""
    halves = [text.split() for text in sentences]
    first = embed_weighted([" ".join(words[: len(words) // 2]) for words in halves])
    second = embed_weighted([" ".join(words[len(words) // 2 :]) for words in halves])
    wholes = embed_weighted(sentences)
    dice, vectors = np.random.default_rng(seed), Vectors(wholes.shape[1])
    for start in range(0, rows, _BLOCK):
        count = min(_BLOCK, rows - start)
        drawn = dice.integers(0, len(sentences), (4, count))
        more = dice.integers(0, 3, count)[:, None]
        summed = (
            first[drawn[0]]
            + second[drawn[1]]
            + (more > 0) * wholes[drawn[2]]
            + (more > 1) * wholes[drawn[3]]
        )
        largest = np.maximum(np.abs(summed).max(axis=1, keepdims=True), 1e-9)
        vectors.append(np.rint(summed * (127 / largest)).astype(np.int8))
    return vectors


def find_exact(vectors: Vectors, queries: NDArray[np.int8]) -> list[NDArray[np.int64]]:
    """Return the exact ten nearest rows of each query."""
    return [vectors.top(query, 10)[0] for query in queries]


def format_search(
    vectors: Vectors, queries: NDArray[np.int8], exact: list[NDArray[np.int64]]
) -> str:
    """Return recall and times as a row of the table."""
    cpu, wall, hits = [], [], 0
    for query, near in zip(queries, exact, strict=True):
        began, started = time.thread_time(), time.perf_counter()
        rows, _ = vectors.top(query, 10)
        cpu.append(time.thread_time() - began)
        wall.append(time.perf_counter() - started)
        hits += int(np.isin(near, rows).sum())
    shares = np.quantile(cpu, [0.5, 0.95]) * 1000, np.quantile(wall, [0.5, 0.95]) * 1000
    return (
        f"recall@10 {hits / sum(len(near) for near in exact):.3f}  cpu p50 {shares[0][0]:6.2f} p95 {shares[0][1]:6.2f}"
        f"  wall p50 {shares[1][0]:6.2f} p95 {shares[1][1]:6.2f} ms"
    )


def search_saved(folder: Path, kind: str, efforts: list[float]) -> None:
    """Map the saved vectors, build an index if needed, and search, in a process of its own."""
    queries = np.load(folder / "queries.npy")
    vectors = Vectors.load(folder / "vectors")
    exact = find_exact(vectors, queries)
    if kind == "exact":
        print(f"  exact                 {format_search(vectors, queries, exact)}")
        return
    vectors.exact_up_to = 0
    neighbours = Neighbours(folder / "index", vectors, kind=kind, background=False)
    if not neighbours.rebuild() or (base := neighbours.base) is None:
        print(f"  {kind:6} {neighbours.failure}")
        return
    for effort in efforts:
        base.effort = effort
        print(
            f"  {kind:6} effort {effort:<6g}  {format_search(vectors, queries, exact)}", flush=True
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    settings = ", ".join(
        f"{name} {value}" for name, value in base.settings.items() if name != "seed"
    )
    print(
        f"         {settings}; built in {base.header.seconds:.0f} s, {base.header.size >> 20} MB, rss {peak} MB"
    )


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description="recall and speed of the ways to find neighbours")
    parser.add_argument("path", type=Path, help="a LoCoMo file")
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--efforts", type=float, nargs="+", default=[0.25, 0.5, 1, 2])
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--searched", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.searched:
        search_saved(options.path, options.searched, options.efforts)
        return
    sentences, questions = read_sentences(options.path)
    dice = np.random.default_rng(options.seed)
    rows_of_queries = dice.permutation(len(questions))[: options.queries]
    print(
        f"{len(sentences):,} sentences, {len(rows_of_queries):,} of {len(questions):,} questions, seed {options.seed}"
    )
    for rows in options.rows:
        print(f"{rows:,} rows", flush=True)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            mix_memories(sentences, rows, options.seed).save(folder / "vectors")
            np.save(
                folder / "queries.npy",
                load_embedder().encode([questions[number] for number in rows_of_queries]),
            )
            for kind in ["exact", *(["annoy"] if rows >= 4096 else [])]:
                efforts = [str(effort) for effort in options.efforts]
                subprocess.run(
                    [
                        sys.executable,
                        __file__,
                        str(folder),
                        "--searched",
                        kind,
                        "--efforts",
                        *efforts,
                    ],
                    check=True,
                )


if __name__ == "__main__":
    main()

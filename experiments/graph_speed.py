"""Measure the speed of the graph on 1,000,000 nodes and 10,000,000 edges.

    python experiments/graph_speed.py                     # even and skewed degrees
    python experiments/graph_speed.py --nodes 100000 --edges 1000000

Printed is the minimum CPU time of several calls, which other programs affect less than wall time. Where plain SciPy has
an equivalent, the ratio to it follows. The equivalents are building a compressed matrix, and one product of it with a
vector for each step of spreading.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from memlab.kernel.graph import SPREAD_MODES, EdgeBatch, Edges, communities, spread

Ints = NDArray[np.int64]


def minimum_cpu(call: Callable[[], object], times: int = 5) -> float:
    """Return the minimum CPU time of several calls, in seconds."""
    spent = []
    for _ in range(times):
        started = time.process_time()
        call()
        spent.append(time.process_time() - started)
    return min(spent)


def print_row(what: str, seconds: float, baseline: float | None = None) -> None:
    """Print a row of the table."""
    duration = f"{seconds:10.3f} s " if seconds >= 1 else f"{1000 * seconds:10.3f} ms"
    print(
        f"  {what:<50}{duration}" + (f"{seconds / baseline:10.2f} x" if baseline else ""),
        flush=True,
    )


def draw_even_edges(nodes: int, edges: int, dice: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the ends of random edges in random order."""
    source = dice.integers(0, nodes, edges)
    return source, (source + dice.integers(1, nodes, edges)) % nodes


def draw_skewed_edges(nodes: int, edges: int, dice: np.random.Generator) -> tuple[Ints, Ints]:
    """Return edges with one power-law end; each of the first nodes has a hundredth of them."""
    source = dice.integers(0, nodes, edges)
    target = (nodes * dice.random(edges) ** 6).astype(np.int64)
    return source, np.where(target == source, (target + 1) % nodes, target)


def pass_on(batch: EdgeBatch) -> NDArray[np.float64]:
    """Return the weight that each edge passes on."""
    return 0.7 * batch.activation * batch.weight


def spread_by_products(matrix: csr_array, seeds: Ints, steps: int) -> NDArray[np.float64]:
    """Spread as a whole-graph baseline does: A += 0.7 W A."""
    activation = np.zeros(matrix.shape[0])
    activation[seeds] = 1.0
    for _ in range(steps):
        activation += 0.7 * (matrix @ activation)
    return activation


def measure(name: str, source: Ints, target: Ints, nodes: int, dice: np.random.Generator) -> None:
    """Measure one graph."""
    weight = dice.random(len(source))
    seeds = np.sort(dice.choice(nodes, 10, replace=False))
    matrix: list[csr_array] = []
    built = minimum_cpu(
        lambda: matrix.append(csr_array((weight, (source, target)), shape=(nodes, nodes))), 1
    )
    both = (matrix[0] + matrix[0].T).tocsr()
    multiplied = minimum_cpu(lambda: spread_by_products(both, seeds, 3), 2)

    edges = Edges()
    print(f"{name}: {nodes:,} nodes, {len(source):,} edges", flush=True)
    print_row(
        "append all",
        minimum_cpu(lambda: edges.append(source, target, 0, weight, nodes=nodes), 1),
        built,
    )
    print_row(
        "first look-up (builds the base)", minimum_cpu(lambda: edges.crossings(seeds), 1), built
    )
    print(f"  maximum edges of a node: {int(edges.degree(np.arange(nodes)).max()):,}")
    for mode in SPREAD_MODES:
        threshold = 1e-4 if mode == "ppr" else 0.01

        def go(mode: str = mode, threshold: float = threshold, steps: int = 3) -> object:
            return spread(
                edges,
                seeds,
                np.ones(10),
                pass_on,
                mode=mode,  # type: ignore[arg-type]
                steps=50 if mode == "ppr" else 3,
                nodes=nodes,
                threshold=threshold,
            )

        result = go()
        print_row(
            f"spread {mode}, 10 seeds: {len(result.rows):,} reached", minimum_cpu(go), multiplied
        )  # type: ignore[attr-defined]
        if result.unexpanded or result.narrowed:  # type: ignore[attr-defined]
            print(f"    limited: {result.unexpanded:,} not expanded, {result.narrowed:,} narrowed")  # type: ignore[attr-defined]

    def singles(look: bool, count: int = 10_000) -> None:
        for at in range(count):
            edges.append([at], [at + 1], 0, 0.5, nodes=nodes)
            if look:
                edges.crossings(seeds[:1])

    count = 10_000
    print_row("append one edge", minimum_cpu(lambda: singles(False), 1) / count)
    print_row("append one edge, look up after each", minimum_cpu(lambda: singles(True), 1) / count)
    print_row(
        "append one edge, maximum 1,000 per relation",
        minimum_cpu(lambda: link_bounded(edges, nodes, count), 1) / count,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edges.bin"
        print_row("save", minimum_cpu(lambda: edges.save(path), 1))
        print_row("open", minimum_cpu(lambda: Edges.load(path)))
        loaded = Edges.load(path)
        print_row("open, first look-up", minimum_cpu(lambda: Edges.load(path).crossings(seeds)))
        print_row(
            "first append after opening",
            minimum_cpu(lambda: loaded.append([0], [1], 0, 0.5, nodes=nodes), 1),
        )
        print(f"  bytes per edge on disk: {path.stat().st_blocks * 512 / len(edges):.1f}")
    print(f"  peak resident memory so far, the baseline's included: {peak_mb():,} MB\n", flush=True)


def measure_communities(
    dice: np.random.Generator, nodes: int = 100_000, edges: int = 1_000_000, groups: int = 500
) -> None:
    """Measure community detection on planted groups, next to igraph if installed."""
    label = np.sort(dice.integers(0, groups, nodes))
    first = np.searchsorted(label, np.arange(groups + 1))
    source = dice.integers(0, nodes, edges)
    size = np.diff(first)[label[source]]
    inside = first[label[source]] + (dice.random(edges) * size).astype(np.int64)
    target = np.where(dice.random(edges) < 0.7, inside, dice.integers(0, nodes, edges))
    target = np.where(target == source, (source + 1) % nodes, target)
    weight, graph_edges = dice.random(edges), Edges()
    graph_edges.append(source, target, 0, weight, nodes=nodes)
    print(f"communities: {nodes:,} nodes, {edges:,} edges, {groups} groups planted")
    communities_found = communities(graph_edges)
    print_row(
        f"communities, modularity {communities_found.modularity:.4f}",
        minimum_cpu(lambda: communities(graph_edges), 2),
    )
    if find_spec("igraph"):
        import igraph

        graph = igraph.Graph(n=nodes, edges=np.c_[source, target])
        for name, split in (
            ("Louvain", lambda: graph.community_multilevel(weights=weight)),
            (
                "Leiden",
                lambda: graph.community_leiden("modularity", weights=weight, n_iterations=2),
            ),
        ):
            score = graph.modularity(split().membership, weights=weight)
            print_row(f"igraph {name}, modularity {score:.4f}", minimum_cpu(split, 2))


def link_bounded(edges: Edges, nodes: int, count: int) -> None:
    """Link with a maximum number of edges."""
    for at in range(count):
        edges.append([at], [at + 7], 1, 0.5, nodes=nodes, most=1000)


def peak_mb() -> int:
    """Return the peak resident memory in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    """Run the measurements."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=7)
    chosen = parser.parse_args()
    for name, draw in (("even", draw_even_edges), ("skewed", draw_skewed_edges)):
        dice = np.random.default_rng(chosen.seed)
        measure(name, *draw(chosen.nodes, chosen.edges, dice), chosen.nodes, dice)
    measure_communities(np.random.default_rng(chosen.seed))


if __name__ == "__main__":
    main()

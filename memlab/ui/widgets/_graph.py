"""The graph around a few memories, for a picture: nodes by places, edges between them, activation at each step."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.subjects.lab import Lab

__all__ = ["around", "waves"]

_KINDS = ("memory", "tag", "cluster", "entity")
_SHIFT = 40
_NEAREST = 6
_MOST_NAME = 80

Ints = NDArray[np.int64]


def around(lab: Lab, seeds: list[int], *, depth: int, most: int) -> tuple[pl.DataFrame, pl.DataFrame, bool]:
    """Nodes (kind, id, name, hops), edges (source, target: places of nodes; relation, weight), and whether nodes are
    left out: at most ``most`` are kept, the nearest, and of equals those of the heaviest edges.

    A single memory is also joined to its nearest by meaning, as relation "near", which is no edge of the lab.
    """
    texts = {one: lab[one].text for one in seeds}
    edges = lab.edges.select(
        _code("from_kind", "source").alias("source"),
        _code("to_kind", "target").alias("target"),
        "relation",
        pl.col("weight").cast(pl.Float64),
        "to",
    )
    if len(seeds) == 1:
        near = lab.graph.similar(seeds[0], limit=_NEAREST)
        edges = edges.vstack(
            near.select(
                pl.lit(seeds[0], dtype=pl.Int64).alias("source"),
                pl.col("memory_id").cast(pl.Int64).alias("target"),
                pl.lit("near").alias("relation"),
                pl.col("similarity").cast(pl.Float64).alias("weight"),
                pl.lit(None, dtype=pl.String).alias("to"),
            )
        )
    source, target = edges["source"].to_numpy(), edges["target"].to_numpy()
    hops = dict.fromkeys(seeds, 0)
    cut = False
    for hop in range(1, depth + 1):
        known = np.array(list(hops), dtype=np.int64)
        out, back = np.isin(source, known), np.isin(target, known)
        ends = np.concatenate([target[out], source[back]])
        weights = np.concatenate([edges["weight"].to_numpy()[out], edges["weight"].to_numpy()[back]])
        fresh = list(dict.fromkeys(ends[np.argsort(-weights, kind="stable")].tolist()))
        fresh = [code for code in fresh if code not in hops]
        cut |= len(fresh) > most - len(hops)
        hops |= dict.fromkeys(fresh[: most - len(hops)], hop)
    codes = np.array(list(hops), dtype=np.int64)
    place = {code: at for at, code in enumerate(codes.tolist())}
    inner = edges.filter(pl.Series(np.isin(source, codes) & np.isin(target, codes)))
    named = dict(inner.filter(pl.col("to").is_not_null()).select("target", "to").unique("target").rows())
    for code in codes.tolist():
        if code not in named:
            named[code] = (texts.get(code) or lab[code].text)[:_MOST_NAME]
    nodes = pl.DataFrame(
        {
            "kind": [_KINDS[code >> _SHIFT] for code in codes.tolist()],
            "id": [code & ((1 << _SHIFT) - 1) for code in codes.tolist()],
            "name": [named[code] for code in codes.tolist()],
            "hops": list(hops.values()),
        },
        schema={"kind": pl.String, "id": pl.Int32, "name": pl.String, "hops": pl.Int32},
    )
    ends_of = [pl.col(name).replace_strict(place, return_dtype=pl.Int32) for name in ("source", "target")]
    return nodes, inner.select(*ends_of, "relation", "weight"), cut


def waves(lab: Lab, seeds: list[int], nodes: pl.DataFrame, *, steps: int, decay: float) -> tuple[pl.DataFrame, int]:
    """What is active after each step (step, node: its place, activation), and how many that are active at the end are
    no nodes of the picture."""
    known = nodes.select(pl.col("kind"), pl.col("id").cast(pl.Int64)).with_row_index("node")
    parts: list[pl.DataFrame] = []
    beyond = 0
    for step in range(steps + 1):
        active = lab.graph.activate(seeds, steps=step, decay=decay)
        found = active.select("kind", pl.col("id").cast(pl.Int64), "activation").join(known, on=["kind", "id"])
        beyond = active.height - found.height
        parts.append(
            found.select(pl.lit(step, dtype=pl.Int32).alias("step"), pl.col("node").cast(pl.Int32), "activation")
        )
    return pl.concat(parts), beyond


def _code(kind: str, number: str) -> pl.Expr:
    """A node as one number: its kind above its number within the kind."""
    which = pl.col(kind).replace_strict({name: place for place, name in enumerate(_KINDS)}, return_dtype=pl.Int64)
    return which * (1 << _SHIFT) + pl.col(number)

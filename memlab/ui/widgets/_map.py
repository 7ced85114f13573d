"""Memory map: all memories as points by meaning, a lasso, the neighbourhood of one, and how activation spreads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import Count, Share, Within, checked
from memlab.kernel.recall import Moment
from memlab.kernel.state import visible_rows
from memlab.subjects.lab import Lab
from memlab.ui.widgets._rows import event_of
from memlab.ui.widgets._widget import Widget, arrow, synced

__all__ = ["COLOURS", "MemoryMap", "Points", "around", "read_points", "shades", "waves"]

_SEEDS = 5
"""Hits of a question whose activation is spread."""
_MOST_NODES = 2_000


class MemoryMap(Widget, bundle="map"):
    """Every memory as a point where its meaning is: near each other what says alike things.

    The axes are the two principal components of the vectors, of up to 200,000 memories; of more, of an even sample. The
    same memories give the same picture each time. ``colour`` is "kind", "status", "retention" (what time has left),
    "cluster" (of ``lab.graph.clusters``) or "recalled" (when last).
    ``ids`` are the points in the lasso, ``focus`` the memory whose neighbourhood is drawn (0: none).

    ``selection`` is a Polars expression over ``lab.memories``: what is in the lasso, or else everything.

    >>> chart = memlab.widgets.MemoryMap(lab, colour="retention")                          # doctest: +SKIP
    >>> lab.memories.filter(chart.selection)                                               # doctest: +SKIP
    """

    colour = synced("kind")
    ids = synced([int])
    focus = synced(0)

    _points = synced(b"")
    _shades = synced(b"")
    _about = synced({})

    @checked
    def __init__(
        self,
        lab: Lab,
        *,
        colour: Literal["kind", "status", "retention", "cluster", "recalled"] = "kind",
    ) -> None:
        self._at: Points | None = None
        super().__init__(lab, colour=colour)
        self.observe(lambda _: self._follow(), names=["colour"])
        self._follow()

    @property
    def selection(self) -> pl.Expr:
        """What is in the lasso, or else everything: an expression over the columns of ``lab.memories``."""
        return pl.col("id").is_in(self.ids) if self.ids else pl.lit(True)

    def refresh(self) -> None:
        """Read the lab again."""
        self._show()

    # -- what a browser asks ------------------------------------------------------------------------------------

    @checked
    def answer_refresh(self) -> None:
        """Read the lab again."""
        self._show()

    @checked
    def answer_look(self, memories: int | list[int]) -> dict[str, Any]:
        """What some memories say: at most 50 of them."""
        given = [memories] if not isinstance(memories, list) else memories[:50]
        found = [self.lab[one] for one in given]
        rows = [
            (one.id, one.text[:300], one.kind, one.status, one.speaker, f"{one.created:%Y-%m-%d}")
            for one in found
        ]
        texts = dict.fromkeys(("text", "kind", "status", "speaker", "created"), pl.String)
        return {"rows": pl.DataFrame(rows, schema={"id": pl.Int32, **texts}, orient="row")}

    @checked
    def answer_graph(
        self, seeds: int | list[int], *, depth: Annotated[int, Within(1, 4)] = 2, most: Count = 150
    ) -> dict[str, Any]:
        """The neighbourhood of memories: nodes (kind, id, name, hops), and edges between them by their places."""
        given = seeds if isinstance(seeds, list) else [seeds]
        nodes, edges, cut = around(self.lab, given, depth=depth, most=min(most, _MOST_NODES))
        return {"nodes": nodes, "edges": edges, "cut": cut}

    @checked
    def answer_spread(
        self,
        question: str,
        *,
        steps: Annotated[int, Within(1, 10)] = 4,
        decay: Share = 0.7,
        most: Count = 150,
    ) -> dict[str, Any]:
        """How the activation of a question's best hits spreads: the graph around them, and what is active at each step.

        The recall is not logged. Steps are those of ``lab.graph.activate``, energy 1 for each hit.
        """
        if not question.strip():
            raise InputError("Type a question first: its best hits are where activation starts.")
        seeds = list(self.lab.recall(question, limit=_SEEDS, log=False).ids)
        if not seeds:
            raise InputError("Nothing that may answer was found, so nothing is active.")
        nodes, edges, cut = around(
            self.lab, seeds, depth=min(steps, 3), most=min(most, _MOST_NODES)
        )
        active, beyond = waves(self.lab, seeds, nodes, steps=steps, decay=decay)
        return {
            "nodes": nodes,
            "edges": edges,
            "cut": cut,
            "active": active,
            "seeds": seeds,
            "beyond": beyond,
        }

    # -- showing ------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        with self.faults_shown():
            self._show()

    def _show(self) -> None:
        event = event_of(self.lab)
        points = read_points(self.lab, self._at)
        values, legend = shades(self.lab, points, self.colour)
        with self.hold_sync():
            if points is not self._at:
                self._points = arrow(points.frame)
            self._at = points
            self._shades = arrow(values)
            self._about = {
                "memories": points.memories,
                "shown": points.frame.height,
                "kept": points.kept,
                "legend": legend,
                "event": event,
                "colours": list(COLOURS),
            }
            self.fault = ""


# -- places and colours of memories -----------------------------------------------------------------------------------
# By principal components, fitted to an even sample: always the same.

COLOURS = ("kind", "status", "cluster", "retention", "recalled")
_MOST = 200_000
_PLACES = 7
"""Words that have a colour and a shape of their own; the eighth is that of all others."""
_FITTED = 10_000
"""Vectors that the axes are fitted to: all of 100,000 took nine times as long, for the same picture."""
_BLOCK = 4_096
_DAY = 86_400_000_000

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Points:
    """Points (id, x, y, from -1 to 1) of ``memories``, of the first ``rows`` of a lab; ``kept`` is the share of the
    variance that they show, None where that says nothing."""

    rows: int
    memories: int
    frame: pl.DataFrame
    kept: float | None


def read_points(lab: Lab, last: Points | None) -> Points:
    """Read the points of a lab; return ``last`` where no memory came since."""
    with lab.io.store.reading() as state:
        if last is not None and last.rows == state.rows:
            return last
        seen = visible_rows(state)
        rows = np.arange(state.rows) if seen is None else seen
        total, count = state.rows, len(rows)
        if count > _MOST:
            rows = rows[np.linspace(0, count - 1, _MOST).astype(np.int64)]
        vectors = state.vectors.take(rows)
    places, kept = principal_axes(vectors)
    x, y = _spanned(places).T
    ids = (rows + 1).astype(np.int32)
    return Points(total, count, pl.DataFrame({"id": ids, "x": x, "y": y}), kept)


def principal_axes(vectors: NDArray[np.int8]) -> tuple[Floats, float | None]:
    """The two directions of most variance of unit vectors, and the share of it that they show."""
    if len(vectors) < 3:
        return np.column_stack([np.arange(len(vectors)), np.zeros(len(vectors))]).astype(
            np.float32
        ), None
    dim = vectors.shape[1]
    total, products = np.zeros(dim), np.zeros((dim, dim))
    fitted = vectors[np.linspace(0, len(vectors) - 1, min(_FITTED, len(vectors))).astype(np.int64)]
    for block in _units(fitted):
        total += block.sum(axis=0, dtype=np.float64)
        products += (block.T @ block).astype(np.float64)
    mean = total / len(fitted)
    values, axes = np.linalg.eigh(products / len(fitted) - np.outer(mean, mean))
    best = axes[:, -2:][:, ::-1]
    # an axis has no direction of its own: one is chosen
    best *= np.sign(best[np.abs(best).argmax(axis=0), [0, 1]])
    narrow, centre = best.astype(np.float32), (mean @ best).astype(np.float32)
    kept = float(values[-2:].sum() / values.sum()) if values.sum() > 0 else None
    placed = np.empty((len(vectors), 2), dtype=np.float32)
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK].astype(np.float32)
        length = np.sqrt(np.einsum("ij,ij->i", block, block))[:, None]
        placed[start : start + _BLOCK] = block @ narrow / np.maximum(length, 1e-9) - centre
    return placed, kept


def _units(vectors: NDArray[np.int8]) -> Any:
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK].astype(np.float32)
        yield block / np.maximum(np.linalg.norm(block, axis=1, keepdims=True), 1e-9)


def _spanned(places: Floats) -> Floats:
    """Within -1..1, one scale for both axes; the farthest thousandth lies on the border, so that no outlier rules."""
    if not len(places):
        return places.reshape(0, 2)
    centred = places - np.median(places, axis=0)
    reach = float(np.quantile(np.abs(centred), 0.999)) or 1.0
    return np.asarray(np.clip(centred / reach, -1, 1), dtype=np.float32)


def shades(lab: Lab, points: Points, colour: str) -> tuple[pl.DataFrame, dict[str, Any]]:
    """For each point ``place`` (of a word of the legend; 255: none) and ``value`` (0..1, NaN: none), and the legend.

    The legend of words has ``words`` [name, count]; that of a scale what its ends are called, and ``none``.
    """
    if colour not in COLOURS:
        raise UnknownName("colour", colour, COLOURS)
    ids = points.frame["id"].cast(pl.Int64)
    with lab.io.store.reading() as state:
        rows = ids.to_numpy() - 1
        if colour in ("kind", "status"):
            return _worded(state.column(colour).gather(rows), colour)
        if colour == "retention":
            left = np.asarray(
                Moment(state, lab.policies.pack, rows, lab.io.store.clock())["retention"],
                dtype=np.float32,
            )
            return _scaled(left, ("0: faded", "1: as new"), "no retention")
        if colour == "recalled":
            at = state.column("accessed").to_physical().gather(rows).cast(pl.Float64).to_numpy()
            days = np.maximum(0.0, lab.io.store.clock() - at) / _DAY
            most = float(np.nanmax(days)) if np.isfinite(days).any() else 1.0
            fresh = 1 - np.log1p(days) / max(np.log1p(most), 1e-9)
            return _scaled(
                fresh.astype(np.float32), (f"{most:.0f} days ago", "now"), "never recalled"
            )
    found = lab.edges.filter(relation="in-cluster").unique("source", keep="last")
    named = points.frame.select(pl.col("id").cast(pl.Int64)).join(
        found.select(pl.col("source").alias("id"), "to"), on="id", how="left", maintain_order="left"
    )
    return _worded(named["to"], "cluster")


def _worded(values: pl.Series, colour: str) -> tuple[pl.DataFrame, dict[str, Any]]:
    counted = values.drop_nulls().value_counts(sort=True)
    words = counted[values.name].to_list()
    code = {word: min(place, _PLACES) for place, word in enumerate(words)}
    places = values.replace_strict(code, default=255, return_dtype=pl.UInt8).fill_null(255)
    shown = [list(row) for row in counted.head(_PLACES).rows()]
    if len(words) > _PLACES:
        shown.append([f"{len(words) - _PLACES:,} others", int(counted["count"][_PLACES:].sum())])
    frame = pl.DataFrame(
        {
            "place": places,
            "value": pl.repeat(float("nan"), len(places), dtype=pl.Float32, eager=True),
        }
    )
    return frame, {"colour": colour, "words": shown, "none": int(values.null_count())}


def _scaled(
    values: Floats, ends: tuple[str, str], none: str
) -> tuple[pl.DataFrame, dict[str, Any]]:
    frame = pl.DataFrame(
        {"place": np.full(len(values), 255, dtype=np.uint8), "value": np.clip(values, 0, 1)}
    )
    return frame, {"ends": list(ends), "named": none, "none": int(np.isnan(values).sum())}


# -- the graph around a few memories ----------------------------------------------------------------------------------

_KINDS = ("memory", "tag", "cluster", "entity")
_SHIFT = 40
_NEAREST = 6
_MOST_NAME = 80

Ints = NDArray[np.int64]


def around(
    lab: Lab, seeds: list[int], *, depth: int, most: int
) -> tuple[pl.DataFrame, pl.DataFrame, bool]:
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
        weights = np.concatenate(
            [edges["weight"].to_numpy()[out], edges["weight"].to_numpy()[back]]
        )
        fresh = list(dict.fromkeys(ends[np.argsort(-weights, kind="stable")].tolist()))
        fresh = [code for code in fresh if code not in hops]
        cut |= len(fresh) > most - len(hops)
        hops |= dict.fromkeys(fresh[: most - len(hops)], hop)
    codes = np.array(list(hops), dtype=np.int64)
    place = {code: at for at, code in enumerate(codes.tolist())}
    inner = edges.filter(pl.Series(np.isin(source, codes) & np.isin(target, codes)))
    named = dict(
        inner.filter(pl.col("to").is_not_null()).select("target", "to").unique("target").rows()
    )
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
    ends_of = [
        pl.col(name).replace_strict(place, return_dtype=pl.Int32) for name in ("source", "target")
    ]
    return nodes, inner.select(*ends_of, "relation", "weight"), cut


def waves(
    lab: Lab, seeds: list[int], nodes: pl.DataFrame, *, steps: int, decay: float
) -> tuple[pl.DataFrame, int]:
    """What is active after each step (step, node: its place, activation), and how many that are active at the end are
    no nodes of the picture."""
    known = nodes.select(pl.col("kind"), pl.col("id").cast(pl.Int64)).with_row_index("node")
    parts: list[pl.DataFrame] = []
    beyond = 0
    for step in range(steps + 1):
        active = lab.graph.activate(seeds, steps=step, decay=decay)
        found = active.select("kind", pl.col("id").cast(pl.Int64), "activation").join(
            known, on=["kind", "id"]
        )
        beyond = active.height - found.height
        parts.append(
            found.select(
                pl.lit(step, dtype=pl.Int32).alias("step"),
                pl.col("node").cast(pl.Int32),
                "activation",
            )
        )
    return pl.concat(parts), beyond


def _code(kind: str, number: str) -> pl.Expr:
    """A node as one number: its kind above its number within the kind."""
    which = pl.col(kind).replace_strict(
        {name: place for place, name in enumerate(_KINDS)}, return_dtype=pl.Int64
    )
    return which * (1 << _SHIFT) + pl.col(number)

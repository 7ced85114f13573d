"""Memory map: memories as points by meaning, a lasso, neighbourhoods and spreading activation."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import Count, Share, Within, checked
from memlab.kernel.base.arrays import Components
from memlab.kernel.base.clock import from_micros
from memlab.kernel.index import words_of
from memlab.kernel.recall import Moment
from memlab.kernel.state import visible_rows
from memlab.subjects.lab import Lab
from memlab.ui.widgets._rows import event_of
from memlab.ui.widgets._widget import MOST_TEXT, Answer, Widget, arrow, synced

_SEEDS = 5
"""Results of a query from which activation spreads, as in the default packs."""
_MOST_NODES = 2_000
"""Nodes that the force layout of the browser draws at 60 frames a second."""

Colour = Literal[
    "kind", "status", "speaker", "session", "cluster", "created", "retention", "recalled"
]
"""A choice of a colour."""
COLOURS: tuple[str, ...] = get_args(Colour)
"""The choices of a colour, in the order of the menu."""


class MemoryMap(Widget, bundle="map"):
    """Every memory as a point: nearby points have similar meanings.

    The axes are the two principal components of the vectors, so that the same memories always have
    the same picture. Regions of the map are labelled with words that are frequent there and rare
    elsewhere. Above 200,000 memories, the map shows an even sample.

    Parameters
    ----------
    lab
        The lab.
    colour
        "kind", "status", "speaker", "session", "cluster" (of ``lab.graph.clusters``), "created" (the
        date of the memory), "retention" or "recalled" (the time since the last recall).

    Attributes
    ----------
    ids
        The memories in the lasso.
    focus
        The memory whose neighbourhood is drawn; 0 for none.

    Examples
    --------
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
        colour: Colour = "kind",
    ) -> None:
        self._at: Points | None = None
        super().__init__(lab, colour=colour)
        self.observe(lambda _: self._follow(), names=["colour"])
        self._follow()

    @property
    def selection(self) -> pl.Expr:
        """The lassoed memories, or all, as an expression over ``lab.memories``."""
        return pl.col("id").is_in(self.ids) if self.ids else pl.lit(True)

    def refresh(self) -> None:
        """Read the memories again, and recompute their positions and colours."""
        self._show()

    # -- what a browser asks ------------------------------------------------------------------------------------

    @checked
    def answer_refresh(self) -> None:
        """Read the memories again, and recompute their positions and colours."""
        self._show()

    @checked
    def answer_look(self, memories: int | list[int]) -> Answer:
        """Return the texts and fields of memories, at most 50."""
        ids = [memories] if not isinstance(memories, list) else memories[:50]
        records = [self.lab[record] for record in ids]
        rows = [
            (
                record.id,
                record.text[:300],
                record.kind,
                record.status,
                record.speaker,
                f"{record.created:%Y-%m-%d}",
            )
            for record in records
        ]
        texts = dict.fromkeys(("text", "kind", "status", "speaker", "created"), pl.String)
        return {"rows": pl.DataFrame(rows, schema={"id": pl.Int32, **texts}, orient="row")}

    @checked
    def answer_graph(
        self, seeds: int | list[int], *, depth: Annotated[int, Within(1, 4)] = 2, most: Count = 150
    ) -> dict[str, Any]:
        """Return the nodes and edges of the graph around memories."""
        starts = seeds if isinstance(seeds, list) else [seeds]
        nodes, edges, cut = around(self.lab, starts, depth=depth, limit=min(most, _MOST_NODES))
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
        """Return how activation spreads through the graph from the results of a query.

        The recall is not logged. Steps are computed by ``lab.graph.activate``, with an energy of 1 for
        each result.
        """
        if not question.strip():
            raise InputError("Type a query first. Activation starts from its results.")
        seeds = list(self.lab.recall(question, limit=_SEEDS, log=False).ids)
        if not seeds:
            raise InputError("No memory matches this query, so nothing is active.")
        nodes, edges, cut = around(
            self.lab, seeds, depth=min(steps, 3), limit=min(most, _MOST_NODES)
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
            if self._at is None or points.frame is not self._at.frame:
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
                "regions": points.regions,
            }
            self.fault = ""


# -- positions and colours of memories -----------------------------------------------------------------------------------
# Principal components of an even sample are the same each time.

_MOST = 200_000
"""Points of a map: 17 bytes each, 3.4 MB in one message, a third of what hosts of notebooks carry."""
_COLOURED = 7
"""Words with a colour and a shape of their own; all others share the eighth."""
_FITTED = 10_000
"""Vectors for fitting the axes: all of 100,000 took nine times as long, for the same picture."""
_BLOCK = 4_096
"""Vectors that are converted to floats at a time, so that memory stays small."""
_DAY = 86_400_000_000
"""Microseconds of a day."""
_REGIONS = 12
"""Labels of a map: as many as a panel of 460 pixels carries without overlaps."""
_OF_A_REGION = 25
"""Memories of a region on average, below which frequencies of words are noise."""
_READ = 5_000
"""Texts from which labels are taken, an even sample: 0.1 seconds, and more gave the same words."""

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Points:
    """The positions of a lab's memories on the map.

    Attributes
    ----------
    event
        The last event of the lab when the points were computed.
    memories
        The number of visible memories.
    frame
        The columns ``id``, ``x`` and ``y``, from -1 to 1.
    kept
        The share of the variance that the axes explain; None if it is undefined.
    regions
        Words and position of each label: ``[words, x, y]``.
    """

    event: int
    memories: int
    frame: pl.DataFrame
    kept: float | None
    regions: list[list[Any]]


def read_points(lab: Lab, last: Points | None) -> Points:
    """Compute the positions of a lab's memories; reuse ``last`` if the lab did not change.

    Positions of the same memories are kept. Labels are computed again: a purge adds no memory, and
    its words must leave them.
    """
    with lab.io.store.reading() as state:
        if last is not None and last.event == state.seq:
            return last
        visible = visible_rows(state)
        rows = np.arange(state.rows) if visible is None else visible
        event, count = state.seq, len(rows)
        if count > _MOST:
            rows = rows[np.linspace(0, count - 1, _MOST).astype(np.int64)]
        ids = (rows + 1).astype(np.int32)
        kept = last is not None and np.array_equal(last.frame["id"].to_numpy(), ids)
        vectors = None if kept else state.vectors.take(rows)
        some = np.linspace(0, len(rows) - 1, min(_READ, len(rows))).astype(np.int64)
        texts = state.column("text").gather(rows[some]).str.slice(0, MOST_TEXT).to_list()
        stop_words = state.words.stop_words
    if vectors is None:
        assert last is not None
        frame, share = last.frame, last.kept
    else:
        places, share = principal_axes(vectors)
        x, y = _spanned(places).T
        frame = pl.DataFrame({"id": ids, "x": x, "y": y})
    regions = label_regions(frame[some, ["x", "y"]].to_numpy(), texts, stop_words)
    return Points(event, count, frame, share, regions)


def label_regions(
    places: Floats, texts: list[str | None], stop_words: Collection[str]
) -> list[list[Any]]:
    """Return up to three characteristic words for each region, with the region's position.

    Regions are clusters of positions. A word is rated by its information about the region: the
    share of the region's texts with the word, times the logarithm of its ratio to the share in all.
    """
    count = min(_REGIONS, len(places) // _OF_A_REGION)
    if count < 2:
        return []
    # Lloyd's algorithm, from points that are spread evenly along the first axis.
    centres = places[np.argsort(places[:, 0])[np.linspace(0, len(places) - 1, count).astype(int)]]
    for _ in range(20):
        near = np.square(places[:, None] - centres).sum(axis=2).argmin(axis=1)
        centres = np.array(
            [
                places[near == at].mean(axis=0) if (near == at).any() else centres[at]
                for at in range(count)
            ]
        )
    words = [
        {word for word in words_of(text or "") if len(word) > 2 and word.isalpha()}.difference(
            stop_words
        )
        for text in texts
    ]
    pairs = pl.DataFrame(
        {
            "region": np.repeat(near, [len(own) for own in words]),
            "words": [*chain.from_iterable(words)],
        },
        schema_overrides={"words": pl.String},
    )
    size = pl.col("region").replace_strict(dict(enumerate(np.bincount(near).tolist())))
    rated = (
        pairs.group_by("region", "words")
        .agg(pl.len(), share=pl.len() / size.first())
        .with_columns(overall=pl.col("len").sum().over("words") / len(texts))
        .filter(pl.col("len") > 2, pl.col("share") > 2 * pl.col("overall"))
        .sort(
            (pl.col("share") * (pl.col("share") / pl.col("overall")).log()),
            "words",
            descending=[True, False],
        )
    )
    return [
        [
            " · ".join(rated.filter(region=at)["words"].head(3)),
            *np.median(places[near == at], axis=0).tolist(),
        ]
        for at in range(count)
        if (rated["region"] == at).any()
    ]


def principal_axes(vectors: Components) -> tuple[Floats, float | None]:
    """Return the first two principal components of unit vectors, and their variance share."""
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
    # The sign of an axis is arbitrary, so its largest component is made positive.
    best *= np.sign(best[np.abs(best).argmax(axis=0), [0, 1]])
    narrow, centre = best.astype(np.float32), (mean @ best).astype(np.float32)
    share = float(values[-2:].sum() / values.sum()) if values.sum() > 0 else None
    placed = np.empty((len(vectors), 2), dtype=np.float32)
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK].astype(np.float32)
        length = np.sqrt(np.einsum("ij,ij->i", block, block))[:, None]
        placed[start : start + _BLOCK] = block @ narrow / np.maximum(length, 1e-9) - centre
    return placed, share


def _units(vectors: Components) -> Any:
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK].astype(np.float32)
        yield block / np.maximum(np.linalg.norm(block, axis=1, keepdims=True), 1e-9)


def _spanned(places: Floats) -> Floats:
    """Scale each axis to -1..1, with three quarters of the length for 90% of the points.

    Distances of the others are logarithmic, so that outliers keep their order and form no line.
    """
    if not len(places):
        return places.reshape(0, 2)
    low, high = np.quantile(places, (0.05, 0.95), axis=0)
    scaled = (places - (low + high) / 2) / np.maximum((high - low) / 2, 1e-6)
    away = np.abs(scaled)
    beyond = np.log1p(np.maximum(away - 1, 0))
    tail = beyond / np.maximum(beyond.max(axis=0), 1e-6)
    return np.asarray(
        np.sign(scaled) * (0.75 * np.minimum(away, 1) + 0.25 * tail), dtype=np.float32
    )


def shades(lab: Lab, points: Points, colour: str) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Return each point's legend entry and value, and the legend.

    ``place`` is the number of a word of the legend, 255 for none; ``value`` is 0 to 1, NaN for none.
    """
    if colour not in COLOURS:
        raise UnknownName("colour", colour, COLOURS)
    ids = points.frame["id"].cast(pl.Int64)
    with lab.io.store.reading() as state:
        rows = ids.to_numpy() - 1
        if colour in ("kind", "status", "speaker", "session"):
            return _worded(state.column(colour).gather(rows), colour)
        if colour == "retention":
            left = np.asarray(
                Moment(state, lab.policies.pack, rows, lab.io.store.clock())["retention"],
                dtype=np.float32,
            )
            return _scaled(left, ("0: faded", "1: as new"), "no retention")
        if colour in ("created", "recalled"):
            column = state.column("created" if colour == "created" else "accessed")
            at = column.to_physical().gather(rows).cast(pl.Float64).to_numpy()
            if colour == "created":
                first, last = (float(at.min()), float(at.max())) if len(at) else (0.0, 0.0)
                ends = (f"{from_micros(int(first)):%Y-%m-%d}", f"{from_micros(int(last)):%Y-%m-%d}")
                return _scaled(((at - first) / max(last - first, 1)).astype(np.float32), ends, "")
            days = np.maximum(0.0, lab.io.store.clock() - at) / _DAY
            longest = float(np.nanmax(days)) if np.isfinite(days).any() else 1.0
            fresh = 1 - np.log1p(days) / max(np.log1p(longest), 1e-9)
            return _scaled(
                fresh.astype(np.float32), (f"{longest:.0f} days ago", "now"), "never recalled"
            )
    memberships = lab.edges.filter(relation="in-cluster").unique("source", keep="last")
    clusters = points.frame.select(pl.col("id").cast(pl.Int64)).join(
        memberships.select(pl.col("source").alias("id"), "to"),
        on="id",
        how="left",
        maintain_order="left",
    )
    return _worded(clusters["to"], "cluster")


def _worded(values: pl.Series, colour: str) -> tuple[pl.DataFrame, dict[str, Any]]:
    counted = values.drop_nulls().value_counts(sort=True)
    words = counted[values.name].to_list()
    code = {word: min(index, _COLOURED) for index, word in enumerate(words)}
    places = values.replace_strict(code, default=255, return_dtype=pl.UInt8).fill_null(255)
    entries = [list(row) for row in counted.head(_COLOURED).rows()]
    if len(words) > _COLOURED:
        entries.append(
            [f"{len(words) - _COLOURED:,} others", int(counted["count"][_COLOURED:].sum())]
        )
    frame = pl.DataFrame(
        {
            "place": places,
            "value": pl.repeat(float("nan"), len(places), dtype=pl.Float32, eager=True),
        }
    )
    return frame, {"colour": colour, "words": entries, "none": int(values.null_count())}


def _scaled(
    values: Floats, ends: tuple[str, str], none: str
) -> tuple[pl.DataFrame, dict[str, Any]]:
    frame = pl.DataFrame(
        {"place": np.full(len(values), 255, dtype=np.uint8), "value": np.clip(values, 0, 1)}
    )
    return frame, {"ends": list(ends), "named": none, "none": int(np.isnan(values).sum())}


# -- the graph around a few memories ----------------------------------------------------------------------------------

_KINDS = ("memory", "tag", "cluster", "entity")
"""Kinds of nodes; a number of a node begins with the index of its kind."""
_SHIFT = 40
"""Bits of the number within a kind: more than a lab has memories."""
_NEAREST = 6
"""Similar memories around a single memory: as many as are readable."""
_MOST_NAME = 80
"""Characters of a name, more than the graph draws."""


def around(
    lab: Lab, seeds: list[int], *, depth: int, limit: int
) -> tuple[pl.DataFrame, pl.DataFrame, bool]:
    """Return the nodes and edges around memories, and whether any nodes were omitted.

    Nodes have ``kind, id, name, hops``; edges have ``source, target`` (row numbers of nodes),
    ``relation, weight``. At most ``limit`` nodes are returned, fewest hops first, then nodes with
    the heaviest edges. A single memory also has edges to its most similar memories, with the
    relation "near", which is no edge of the lab.
    """
    # A breadth-first search: each hop adds the ends of all edges at the nodes that were reached before.
    texts = {seed: lab[seed].text for seed in seeds}
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
        reached = np.array(list(hops), dtype=np.int64)
        out, back = np.isin(source, reached), np.isin(target, reached)
        ends = np.concatenate([target[out], source[back]])
        weights = np.concatenate(
            [edges["weight"].to_numpy()[out], edges["weight"].to_numpy()[back]]
        )
        fresh = list(dict.fromkeys(ends[np.argsort(-weights, kind="stable")].tolist()))
        fresh = [code for code in fresh if code not in hops]
        cut |= len(fresh) > limit - len(hops)
        hops |= dict.fromkeys(fresh[: limit - len(hops)], hop)
    codes = np.array(list(hops), dtype=np.int64)
    position = {code: at for at, code in enumerate(codes.tolist())}
    inner = edges.filter(pl.Series(np.isin(source, codes) & np.isin(target, codes)))
    names = dict(
        inner.filter(pl.col("to").is_not_null()).select("target", "to").unique("target").rows()
    )
    for code in codes.tolist():
        if code not in names:
            names[code] = (texts.get(code) or lab[code].text)[:_MOST_NAME]
    nodes = pl.DataFrame(
        {
            "kind": [_KINDS[code >> _SHIFT] for code in codes.tolist()],
            "id": [code & ((1 << _SHIFT) - 1) for code in codes.tolist()],
            "name": [names[code] for code in codes.tolist()],
            "hops": list(hops.values()),
        },
        schema={"kind": pl.String, "id": pl.Int32, "name": pl.String, "hops": pl.Int32},
    )
    ends_of = [
        pl.col(name).replace_strict(position, return_dtype=pl.Int32)
        for name in ("source", "target")
    ]
    return nodes, inner.select(*ends_of, "relation", "weight"), cut


def waves(
    lab: Lab, seeds: list[int], nodes: pl.DataFrame, *, steps: int, decay: float
) -> tuple[pl.DataFrame, int]:
    """Compute the activation of nodes at each step, and count the active nodes not drawn."""
    numbered = nodes.select(pl.col("kind"), pl.col("id").cast(pl.Int64)).with_row_index("node")
    parts: list[pl.DataFrame] = []
    beyond = 0
    for step in range(steps + 1):
        active = lab.graph.activate(seeds, steps=step, decay=decay)
        inside = active.select("kind", pl.col("id").cast(pl.Int64), "activation").join(
            numbered, on=["kind", "id"]
        )
        beyond = active.height - inside.height
        parts.append(
            inside.select(
                pl.lit(step, dtype=pl.Int32).alias("step"),
                pl.col("node").cast(pl.Int32),
                "activation",
            )
        )
    return pl.concat(parts), beyond


def _code(kind: str, number: str) -> pl.Expr:
    """Encode a node as one number: the index of its kind, then its number within the kind."""
    which = pl.col(kind).replace_strict(
        {name: index for index, name in enumerate(_KINDS)}, return_dtype=pl.Int64
    )
    return which * (1 << _SHIFT) + pl.col(number)

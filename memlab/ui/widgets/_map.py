"""Memory map: all memories as points by meaning, a lasso, the neighbourhood of one, and how activation spreads."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import polars as pl
import traitlets

from memlab.errors import InputError
from memlab.kernel.base.arguments import Count, Share, Within, checked
from memlab.subjects.lab import Lab
from memlab.ui.widgets._graph import around, waves
from memlab.ui.widgets._points import COLOURS, Points, read_points, shades
from memlab.ui.widgets._reading import event_of
from memlab.ui.widgets._widget import Widget, arrow

__all__ = ["MemoryMap"]

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

    colour = traitlets.Unicode("kind").tag(sync=True)
    ids = traitlets.List(traitlets.Int()).tag(sync=True)
    focus = traitlets.Int(0).tag(sync=True)

    _points = traitlets.Bytes(b"").tag(sync=True)
    _shades = traitlets.Bytes(b"").tag(sync=True)
    _about = traitlets.Dict().tag(sync=True)

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
        rows = [(one.id, one.text[:300], one.kind, one.status, one.speaker, f"{one.created:%Y-%m-%d}") for one in found]
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
        self, question: str, *, steps: Annotated[int, Within(1, 10)] = 4, decay: Share = 0.7, most: Count = 150
    ) -> dict[str, Any]:
        """How the activation of a question's best hits spreads: the graph around them, and what is active at each step.

        The recall is not logged. Steps are those of ``lab.graph.activate``, energy 1 for each hit.
        """
        if not question.strip():
            raise InputError("Type a question first: its best hits are where activation starts.")
        seeds = list(self.lab.recall(question, limit=_SEEDS, log=False).ids)
        if not seeds:
            raise InputError("Nothing that may answer was found, so nothing is active.")
        nodes, edges, cut = around(self.lab, seeds, depth=min(steps, 3), most=min(most, _MOST_NODES))
        active, beyond = waves(self.lab, seeds, nodes, steps=steps, decay=decay)
        return {"nodes": nodes, "edges": edges, "cut": cut, "active": active, "seeds": seeds, "beyond": beyond}

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

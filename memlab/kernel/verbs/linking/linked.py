"""What became of new memories that were compared with old ones, as a person reads it and as the fold reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.state import Change
from memlab.kernel.verbs.results import OUTCOME

__all__ = ["Linked", "Outcome"]

Outcome = Literal["added", "merged", "skipped"]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Linked:
    """What became of new memories: ``outcomes[i]`` of the i-th, and ``standing[i]``, the id of what represents it.

    ``superseded`` are (place of the new one, id of the one that stays, id of the one that goes, why); ``whys`` say why
    something was merged or skipped. ``change`` is what the fold applies once the stored ones are there.
    """

    outcomes: tuple[Outcome, ...]
    standing: tuple[int, ...]
    superseded: tuple[tuple[int, int, int, str], ...]
    whys: dict[int, str]
    change: Change
    texts: dict[int, str]
    """What some of the new ones say, by place, since they were combined with what they supersede."""
    edges: tuple[Ints, Ints, Ints, NDArray[Any], NDArray[np.float64]]
    """Of each edge that joins a new memory to another: place, ids of both ends, relation, closeness."""

    fact_times: list[list[Any]] = field(default_factory=list)
    """Of facts that were told again: id, instants, gaps."""

    @property
    def body(self) -> dict[str, Any]:
        """What the event carries that links these memories; empty where nothing changes."""
        told = {"fact_times": self.fact_times} if self.fact_times else {}
        return {**self.change.body(), **told}

    @property
    def added(self) -> NDArray[np.bool_]:
        """Which of the new ones are stored."""
        return np.array([outcome == "added" for outcome in self.outcomes], dtype=np.bool_)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """A row for what became of each new memory, then one for each memory that it superseded or was joined to.

        ``row`` is its place among the new ones, ``id`` its own (null if it was not stored), ``of`` the other memory's.
        """
        own = pl.DataFrame(
            {
                "row": range(len(self.outcomes)),
                "id": [
                    standing_id if came == "added" else None
                    for came, standing_id in zip(self.outcomes, self.standing, strict=True)
                ],
                "outcome": self.outcomes,
                "of": [
                    None if came == "added" else standing_id
                    for came, standing_id in zip(self.outcomes, self.standing, strict=True)
                ],
                "relation": [None] * len(self.outcomes),
                "why": [self.whys.get(place, "new") for place in range(len(self.outcomes))],
            },
            schema=OUTCOME,
        )
        gone = pl.DataFrame(
            [
                {"row": place, "id": stays, "outcome": "superseded", "of": goes, "relation": "supersedes", "why": why}
                for place, stays, goes, why in self.superseded
            ],
            schema=OUTCOME,
        )
        place, source, target, relation, closeness = self.edges
        joined = pl.DataFrame(
            [
                pl.Series("row", place, dtype=pl.Int64),
                pl.Series("id", source, dtype=pl.Int64),
                pl.Series("outcome", ["linked"] * len(place), dtype=pl.String),
                pl.Series("of", target, dtype=pl.Int64),
                pl.Series("relation", relation.tolist(), dtype=pl.String),
                pl.Series("closeness", closeness),
            ]
        ).select(*list(OUTCOME)[:-1], why=pl.format("closeness {}", pl.col("closeness").round(2)))
        return pl.concat([own, gone, joined]).sort("row", maintain_order=True)
